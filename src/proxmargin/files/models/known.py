"""The classes that a model file may name. Nothing else is ever looked up on its behalf."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from proxmargin.estimators.registry import MODELS, model_names

# name in the file -> (module, attribute)
Allowed = dict[str, tuple[str, str]]

ESTIMATORS: Allowed = {name: ("proxmargin", name) for name in sorted(model_names())}

# estimators that hold other estimators, of any library: what to do instead
COMPOSED: Mapping[str, str] = {
    name: model.instead_of_saving for name, model in MODELS.items() if model.instead_of_saving
}

_PART_HOMES: dict[str, tuple[str, ...]] = {
    "proxmargin.kernels": ("Linear", "Polynomial", "Precomputed", "Rbf", "Sigmoid"),
    "proxmargin.losses": (
        "DistanceWeighted",
        "Hinge",
        "HuberizedHinge",
        "Logistic",
        "Rescaled",
        "SquaredHinge",
    ),
    "proxmargin.penalties": ("Ball", "ElasticNet", "Pinned", "Ridge", "SumToZero"),
    # the table of solvers, which knows them all
    "proxmargin.solvers.names": (
        "AcceleratedProximalGradient",
        "AlternatingDirections",
        "BallInteriorPoint",
        "BallNewton",
        "BlockDecomposition",
        "ByTheRules",
        "CoordinateDescent",
        "CuttingPlanes",
        "FastProximalGradient",
        "FastProximalGradientStar",
        "FisherSecular",
        "GuaranteedProximalGradient",
        "HingeNewton",
        "InteriorPoint",
        "LinearProgram",
        "NetInteriorPoint",
        "PrimalDual",
        "Isvm1",
        "Isvm2",
        "Isvm3",
        "MulticlassProximalGradient",
        "MulticlassTwoStage",
        "MultiplierNewton",
        "ProbabilityNewton",
        "ProximalGradient",
        "ProximalNewton",
        "Relay",
        "RidgeNewton",
        "SemismoothNewton",
        "TallNewton",
        "Turns",
        "TwoStage",
        "WorkingSet",
    ),
}

# losses, penalties, kernels and solvers: frozen dataclasses whose fields are plain values or parts
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
