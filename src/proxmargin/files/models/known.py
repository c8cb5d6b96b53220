"""The classes that a model file may name. Nothing else is ever looked up on its behalf."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from inspect import isabstract

from proxmargin.estimators.registry import MODELS, model_names

# name in the file -> (module, attribute)
Allowed = dict[str, tuple[str, str]]

ESTIMATORS: Allowed = {name: ("proxmargin", name) for name in sorted(model_names())}

# estimators that hold other estimators, of any library: what to do instead
COMPOSED: Mapping[str, str] = {
    name: model.instead_of_saving for name, model in MODELS.items() if model.instead_of_saving
}
# no models of one set of coefficients: what to do instead
OTHERS: Mapping[str, str] = {
    "StabilitySelection": "write its to_frame() as CSV, and save a model of the stable features",
    "CalibratedMargin": "save its estimator, fitted to all samples, and calibrate the loaded one "
    "again: CalibratedMargin(load_model(path)).fit(X, y)",
}

# the packages of kernels, losses and penalties, and the table of solvers, which knows them all
_PART_HOMES = (
    "proxmargin.kernels",
    "proxmargin.losses",
    "proxmargin.penalties",
    "proxmargin.solvers.names",
)


@cache
def parts() -> Allowed:
    """Losses, penalties, kernels and solvers: the dataclasses there that are `is_portable`."""
    return {
        name: (home, name)
        for home in _PART_HOMES
        for name, value in vars(importlib.import_module(home)).items()
        if _is_part(value)
    }


def _is_part(value: object) -> bool:
    concrete = isinstance(value, type) and is_dataclass(value) and not isabstract(value)
    return concrete and getattr(value, "is_portable", False)


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
