"""Kernels by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxmargin.kernels.base import Array, Kernel
from proxmargin.kernels.custom import Custom
from proxmargin.kernels.linear import Linear
from proxmargin.kernels.parameters import resolve_gamma
from proxmargin.kernels.polynomial import Polynomial
from proxmargin.kernels.precomputed import Precomputed
from proxmargin.kernels.rbf import Rbf
from proxmargin.kernels.sigmoid import Sigmoid
from proxmargin.runtime.brief import shown

__all__ = ["named_kernel"]


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
