"""Scalar functions that losses bring: compiled, and complete."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from proxmargin.compiled.cache import njit
from proxmargin.compiled.losses.scalars import OPTIONAL, REQUIRED, scalars
from tests.cases import COMPILED_LOSSES


class Parabola(NamedTuple):
    smoothness: float = 2.0

    def value(self, t: float) -> float:
        return t * t

    def descent(self, t: float) -> float:
        return -2.0 * t

    def curvature(self, t: float) -> float:
        return 2.0


@pytest.mark.parametrize("phi", COMPILED_LOSSES.values(), ids=COMPILED_LOSSES.keys())
def test_compiled_methods_give_what_python_gives(phi) -> None:
    @njit(nogil=True)
    def everything(phi, t, a):
        both = phi.descent_and_curvature(t)
        shrunk = phi.value_and_shrunk_gap(t, 0.5, 0.5 * (1.0 - math.log(2.0)))
        alone = (phi.value(t), phi.descent(t), phi.curvature(t), phi.fenchel_young(t, a))
        return (*alone, *both, *shrunk, phi.zone())

    for t in (-3.0, 0.3, 0.97, 1.0, 5.0):
        a = 0.7 * min(phi.dual_bound, 1.0)
        found = everything(phi.scalars, t, a)
        np.testing.assert_allclose(found, everything.py_func(phi.scalars, t, a), rtol=1e-14)
        formulas = [phi.value, phi.descent, phi.curvature, lambda t, a=a: phi.fenchel_young(t, a)]
        expected = [formula(np.array(t)) for formula in formulas]
        np.testing.assert_allclose(found[:4], expected, rtol=1e-13, atol=1e-15)
        assert found[-1] == phi.zone


def test_a_loss_without_a_required_function_is_refused() -> None:
    with pytest.raises(TypeError, match="Parabola lacks fenchel_young"):
        scalars(Parabola)


def test_two_losses_of_one_name_are_refused() -> None:
    class CappedScalars(NamedTuple):
        smoothness: float

    for name in REQUIRED:
        setattr(CappedScalars, name, lambda self, *arguments: 0.0)
    with pytest.raises(TypeError, match="there is a CappedScalars in proxmargin"):
        scalars(CappedScalars)


def test_every_method_has_a_default_or_is_required() -> None:
    for phi in COMPILED_LOSSES.values():
        assert all(callable(getattr(phi.scalars, name)) for name in (*REQUIRED, *OPTIONAL))
