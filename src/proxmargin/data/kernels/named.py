"""Kernels by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from proxmargin.data.designs.base import CONSTANT_VARIANCE, Design, as_design
from proxmargin.data.designs.samples import compressed
from proxmargin.data.kernels.base import Array, Kernel, check_gamma
from proxmargin.data.kernels.functions import Custom, Linear, Polynomial, Precomputed, Rbf, Sigmoid
from proxmargin.runtime.brief import shown


def named_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: str | float,
    degree: int,
    coef0: float,
    X: Any,
    weights: Array | None = None,
) -> Kernel:
    """The kernel of a name and its parameters, or of a function.

    Parameters
    ----------
    kernel : 'linear', 'rbf', 'poly', 'sigmoid', 'precomputed', callable or Kernel
    gamma, degree, coef0
        Read only by the kernels that have them.
    X : (n_samples, n_features), or a `Design`
        The training data, for the rules behind ``gamma``.
    weights : (n_samples,), optional
        Of the training samples, for the same.

    Raises
    ------
    ValueError
        For an unknown name, or a parameter outside its range.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Custom(kernel)
    builders: dict[str, Callable[[], Kernel]] = {
        "linear": Linear,
        "rbf": lambda: Rbf(resolve_gamma(gamma, X, weights)),
        "poly": lambda: Polynomial(degree, resolve_gamma(gamma, X, weights), coef0),
        "sigmoid": lambda: Sigmoid(resolve_gamma(gamma, X, weights), coef0),
        "precomputed": Precomputed,
    }
    if not isinstance(kernel, str) or kernel not in builders:
        names = ", ".join(repr(name) for name in builders)
        raise ValueError(f"kernel is one of {names} or a function, not {shown(kernel)}")
    return builders[kernel]()


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
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {shown(gamma)}")
        design = as_design(compressed(X))
        return _scale(design, weights) if gamma == "scale" else 1.0 / design.n_features
    check_gamma(gamma)
    return float(gamma)


def _scale(design: Design, weights: Array | None) -> float:
    given = np.ones(design.n_samples) if weights is None else weights
    mean, variance = design.mean_and_variance(given / given.sum())
    middle = float(mean.mean())
    spread = float((variance + (mean - middle) ** 2).mean())
    return 1.0 / (design.n_features * spread) if spread > CONSTANT_VARIANCE * middle**2 else 1.0
