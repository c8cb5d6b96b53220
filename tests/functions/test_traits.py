"""Traits in words."""

from __future__ import annotations

import pytest

from proxmargin.functions.traits import Trait


@pytest.mark.parametrize("trait", list(Trait), ids=lambda trait: trait.name)
def test_every_trait_has_a_sentence(trait: Trait) -> None:
    assert trait.sentence()


def test_several_traits_are_joined() -> None:
    both = Trait.HINGE | Trait.BALL
    assert both.sentence() == "the hinge loss; coefficients in a ball"
