"""Docstrings that are filled from shared sections."""

from __future__ import annotations

import re

import pytest

import proxmargin
from proxmargin.models.fitting.documented import PARTS
from proxmargin.models.fitting.registry import model_names


@pytest.mark.parametrize("name", model_names())
def test_no_mark_is_left_in_a_docstring(name: str) -> None:
    text = getattr(proxmargin, name).__doc__
    assert not re.search(r"<\w+>", text)
    assert "tol : float" in text or "As in `proxmargin.HuberizedSVC`" in text


def test_every_section_is_in_a_docstring() -> None:
    texts = " ".join(" ".join(getattr(proxmargin, n).__doc__.split()) for n in model_names())
    for name, part in PARTS.items():
        first = re.split(r"<\w+>", " ".join(part.split()))[0].strip()
        assert first in texts, name
