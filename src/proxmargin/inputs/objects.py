"""Samples that are objects, such as texts or graphs, which a kernel function compares."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.runtime.brief import shown

__all__ = ["as_objects", "check_objects", "needs_numbers", "takes_objects"]

SHOWN = 60  # characters of an object that an error shows


def takes_objects(estimator: Any) -> bool:
    """Whether an estimator compares samples by a function alone."""
    return bool(getattr(estimator, "_takes_objects", False))


def as_objects(X: Any) -> NDArray[Any] | None:
    """Samples that are no rows of numbers, as an array (n_samples, ...); None for rows of numbers.

    An array keeps its shape; a list becomes a one-dimensional array of its items.
    """
    if sparse.issparse(X) or isinstance(X, str | bytes | Mapping) or not hasattr(X, "__len__"):
        return None
    if isinstance(X, list | tuple):
        rows = X and (isinstance(X[0], list | tuple | Number) or hasattr(X[0], "__array__"))
        if not X or (rows and _are_numbers(X)):
            return None
        return np.fromiter(X, dtype=object, count=len(X))
    if _are_numbers(X):
        return None
    found = np.asarray(X)
    return found if found.dtype.kind in "biuf" else found.astype(object)


def check_objects(estimator: Any, objects: NDArray[Any]) -> None:
    """Raise ValueError if the parameters of the estimator ask for numbers."""
    if getattr(estimator, "standardize", False):
        raise ValueError(
            f"standardize=True needs rows of numbers, and X holds objects such as "
            f"{shown(objects[0], SHOWN)}: set standardize=False"
        )


def needs_numbers(estimator: Any, objects: NDArray[Any]) -> ValueError:
    """The error for samples that an estimator cannot compare."""
    name, kernel = type(estimator).__name__, getattr(estimator, "kernel", None)
    if kernel is None:
        needs = f"{name} needs rows of numbers"
    elif callable(kernel):
        needs = f"this {name} was fitted to rows of numbers"
    else:
        needs = (
            f"{name} with kernel={kernel!r} needs rows of numbers: a function of two lists of such "
            "objects, kernel(A, B), may compare them"
        )
    return ValueError(f"X holds objects such as {shown(objects[0], SHOWN)}, and {needs}")


def _are_numbers(X: Any) -> bool:
    """Whether samples are rows of numbers, or what is wrong with them is told of such."""
    try:
        values = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    if values.dtype.kind not in "OUS" or not values.size:
        return values.ndim <= 2
    if values.ndim == 1:
        return isinstance(values[0], Number)
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return values.ndim == 2
