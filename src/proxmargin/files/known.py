"""The classes that a model file may name. Nothing else is ever looked up on its behalf."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

# name in the file -> (module, attribute)
Allowed = dict[str, tuple[str, str]]

ESTIMATORS: Allowed = {
    name: ("proxmargin", name)
    for name in ("HuberizedSVC", "MarginClassifier", "SparseLogisticRegression", "SquaredHingeSVC")
}

PARTS: Allowed = {
    **{
        name: ("proxmargin.losses", name)
        for name in ("Hinge", "HuberizedHinge", "Logistic", "SquaredHinge")
    },
    **{
        name: ("proxmargin.penalties", name)
        for name in ("ElasticNet", "Pinned", "Ridge", "SumToZero")
    },
}


def named(allowed: Mapping[str, tuple[str, str]], name: str) -> type | None:
    """The class of that name, or None where the list does not have it."""
    if name not in allowed:
        return None
    module, attribute = allowed[name]
    found: type = getattr(importlib.import_module(module), attribute)
    return found


def is_known(allowed: Mapping[str, tuple[str, str]], value: object) -> bool:
    """Whether the object is exactly of a listed class (a subclass would come back changed)."""
    return named(allowed, type(value).__name__) is type(value)
