"""Where paths start, and the strengths that they take."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.estimators.base import Assembly, MarginEstimator
from proxmargin.estimators.multiclass import MulticlassSVC
from proxmargin.inputs.validation import check_number
from proxmargin.limits.critical import critical_strength

__all__ = ["alpha_grid", "alpha_max", "checked_alphas", "critical_C", "default_grid", "unfitted"]

Array = NDArray[np.float64]
Estimator = TypeVar("Estimator", bound=MarginEstimator)

# a pure ridge penalty has no strength at which the coefficients vanish; its grid starts where
# the grid of this share of l1 would, as is customary for elastic nets
RIDGE_L1_RATIO = 1e-3


def alpha_max(
    estimator: MarginEstimator, X: Any, y: Any, sample_weight: Any = None, offset: Any = None
) -> float:
    """The least ``alpha`` for which all coefficients are zero, exactly.

    With only the intercept fitted, ``max_j |gradient_j| / l1_ratio`` for the gradient of the loss
    in the coefficients; the largest over the class problems of a one-vs-rest model. For a hinge it
    is the least value over its subdifferential, which a linear program computes.

    Parameters
    ----------
    estimator : an estimator with ``alpha`` and ``l1_ratio``
        Is not changed; its ``alpha`` does not matter.
    X, y, sample_weight, offset
        As for ``estimator.fit``.

    Returns
    -------
    float
        Infinite for ``l1_ratio=0``, because a ridge penalty alone never makes a coefficient zero.
    """
    template = unfitted(estimator)
    return _alpha_max(template, template._assemble(X, y, sample_weight, offset))


def critical_C(estimator: MulticlassSVC, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The largest ``C`` for which all coefficients are zero, exactly.

    For hinges it is the least dual norm over the subdifferential at the null model, the value of a
    linear program (`proxmargin.limits.critical`).

    Parameters
    ----------
    estimator : MulticlassSVC
        Is not changed; its ``C`` (or ``eta``) does not matter.
    X, y, sample_weight
        As for ``estimator.fit``.

    Returns
    -------
    float
        Zero for penalties without an l1 part, infinite if no feature is related to the labels.
    """
    parameters = estimator.get_params(deep=False)
    if not {"C", "eta"} <= set(parameters):
        raise TypeError(
            f"critical_C needs an estimator with C and eta: MulticlassSVC; "
            f"{type(estimator).__name__} has none; for an estimator with alpha there is alpha_max"
        )
    template = type(estimator)(**{**parameters, "C": 1.0, "eta": None})
    assembly = template._assemble(X, y, sample_weight)
    if template.norm_share == 0:
        return 0.0
    (problem,) = assembly.problems
    strength = critical_strength(problem) * assembly.targets.total
    return template.norm_share / strength if strength > 0 else np.inf


def alpha_grid(
    estimator: MarginEstimator,
    X: Any,
    y: Any,
    *,
    n_alphas: int = 100,
    eps: float = 1e-3,
    sample_weight: Any = None,
    offset: Any = None,
) -> Array:
    """The strengths that `margin_path` takes by default; parameters as there."""
    template = unfitted(estimator)
    assembly = template._assemble(X, y, sample_weight, offset)
    return default_grid(template, assembly, n_alphas, eps)


def default_grid(template: Any, assembly: Assembly, n_alphas: int, eps: float) -> Array:
    check_number("n_alphas", n_alphas, low=1, integer=True)
    check_number("eps", eps, low=0.0, low_open=True, high=1.0)
    start = _critical_strength(template, assembly) / (template.l1_ratio or RIDGE_L1_RATIO)
    start = start if start > 0 else 1.0
    return np.geomspace(start, eps * start, n_alphas)


def checked_alphas(alphas: ArrayLike) -> Array:
    grid = np.array(alphas, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not np.all(np.isfinite(grid) & (grid >= 0)):
        raise ValueError(f"alphas must be a non-empty list of finite numbers >= 0, got {alphas!r}")
    return grid


def unfitted(estimator: Estimator) -> Estimator:
    """A copy with the same parameters (callbacks are the caller's own), learned nothing yet."""
    parameters = estimator.get_params(deep=False)
    if not {"alpha", "l1_ratio"} <= set(parameters):
        raise TypeError(
            f"alpha_max and paths need an estimator with alpha and l1_ratio, such as HuberizedSVC; "
            f"{type(estimator).__name__} has none"
        )
    return type(estimator)(**parameters)


def _critical_strength(template: Any, assembly: Assembly) -> float:
    """The least l1 strength without coefficients; it does not depend on the ridge part."""
    unit = template._unit_penalty(assembly.targets, assembly.problems[0].design)
    return max(critical_strength(p) for p in assembly.with_penalty(unit).problems)


def _alpha_max(template: Any, assembly: Assembly) -> float:
    if template.l1_ratio == 0:
        return np.inf
    return float(_critical_strength(template, assembly) / template.l1_ratio)
