"""The parameters of kernels: their ranges, and the rules behind a named ``gamma``."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from proxmargin.designs.base import CONSTANT_VARIANCE, Design
from proxmargin.designs.convert import as_design
from proxmargin.designs.samples import compressed
from proxmargin.kernels.base import Array
from proxmargin.magnitudes import check_magnitude
from proxmargin.runtime.brief import shown

__all__ = ["check_coef0", "check_gamma", "resolve_gamma"]


def resolve_gamma(gamma: str | float, X: Any, weights: Array | None = None) -> float:
    """The number behind ``gamma``, by scikit-learn's rules.

    Parameters
    ----------
    gamma : 'scale', 'auto' or float > 0
        ``1 / (n_features var(X))`` with the variance of all entries (1 where that is zero), or
        ``1 / n_features``.
    X : (n_samples, n_features), dense or sparse, or a `Design`
    weights : (n_samples,) >= 0, optional
        Of the samples: weight 2 is the same as a repeated row.

    Raises
    ------
    ValueError
        For anything else.
    """
    if isinstance(gamma, str):
        rules: dict[str, Callable[[Design, Array | None], float]] = {"scale": _scale, "auto": _auto}
        if gamma not in rules:
            raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {shown(gamma)}")
        return rules[gamma](as_design(compressed(X)), weights)
    check_gamma(gamma)
    return float(gamma)


def _scale(design: Design, weights: Array | None) -> float:
    given = np.ones(design.n_samples) if weights is None else weights
    mean, variance = _moments(design, given / given.sum())
    middle = float(mean.mean())
    spread = float((variance + (mean - middle) ** 2).mean())
    return 1.0 / (design.n_features * spread) if spread > CONSTANT_VARIANCE * middle**2 else 1.0


def _moments(design: Design, shares: Array) -> tuple[Array, Array]:
    """Mean and variance of each feature, (n_features,)."""
    mean = design.adjoint(shares[:, None])[:, 0]
    return mean, design.column_squares(shares, mean)


def _auto(design: Design, weights: Array | None) -> float:
    return 1.0 / design.n_features


def check_gamma(gamma: Any) -> None:
    if not isinstance(gamma, Real) or not (isfinite(gamma) and float(gamma) > 0):
        raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {shown(gamma)}")


def check_coef0(coef0: Any) -> None:
    if not isinstance(coef0, Real) or not isfinite(coef0):
        raise ValueError(f"coef0 is a finite number, not {shown(coef0)}")
    check_magnitude("coef0", float(coef0), positive=False)
