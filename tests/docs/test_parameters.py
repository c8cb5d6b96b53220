"""The parameters that public classes document are those that they take."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import pytest

MODULES = (
    "proxmargin",
    "proxmargin.losses",
    "proxmargin.penalties",
)
SECTION = r"{}\n-+\n(.*?)(\n\n[A-Z][A-Za-z ]+\n-+\n|\Z)"


def names(cls: type, section: str) -> set[str]:
    """The names that a section of the docstring describes."""
    found = re.search(SECTION.format(section), inspect.getdoc(cls) or "", re.DOTALL)
    lines = found.group(1).replace("\\\n", "").splitlines() if found else []
    heads = [line.split(":")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip() for head in heads for name in head.split(",")}


def documenting() -> list[Any]:
    """All public classes with a section of parameters, and all estimators."""
    public = {
        value
        for module in map(import_module, MODULES)
        for value in (getattr(module, name) for name in module.__all__)
        if isinstance(value, type)
    }
    having = [cls for cls in public if hasattr(cls, "get_params") or names(cls, "Parameters")]
    return sorted(having, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", documenting(), ids=lambda cls: cls.__name__)
def test_documented_parameters_are_those_of_the_class(cls: type) -> None:
    taken = {name for name in inspect.signature(cls).parameters if not name.startswith("_")}
    documented = names(cls, "Parameters")
    assert documented <= taken
    assert taken <= documented | names(cls, "Attributes")
    if hasattr(cls, "get_params"):
        assert taken == documented


def test_every_classifier_is_among_them() -> None:
    assert len(documenting()) >= 25
