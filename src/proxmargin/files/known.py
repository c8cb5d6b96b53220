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

_PART_HOMES: dict[str, tuple[str, ...]] = {
    "proxmargin.losses": ("Hinge", "HuberizedHinge", "Logistic", "SquaredHinge"),
    "proxmargin.penalties": ("ElasticNet", "Pinned", "Ridge", "SumToZero"),
    "proxmargin.solvers.coordinate_descent": ("CoordinateDescent",),
    "proxmargin.solvers.accelerated": (
        "AcceleratedProximalGradient",
        "FastProximalGradient",
        "FastProximalGradientStar",
        "GuaranteedProximalGradient",
    ),
    "proxmargin.solvers.newton": ("ProximalNewton",),
    "proxmargin.solvers.proximal_gradient": ("MulticlassProximalGradient", "ProximalGradient"),
    "proxmargin.solvers.two_stage": ("MulticlassTwoStage", "TwoStage"),
    "proxmargin.solvers.working_set": ("WorkingSet",),
}

# losses, penalties and solvers: frozen dataclasses whose fields are plain values or parts
PARTS: Allowed = {name: (home, name) for home, names in _PART_HOMES.items() for name in names}


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
