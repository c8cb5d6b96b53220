"""The strongest penalty of a path, and the default grid of strengths."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.inputs.parameters import check_number
from proxmargin.functions.losses import Logistic
from proxmargin.functions.penalties import ElasticNet, Ridge
from proxmargin.models.classifiers.multiclass import MulticlassSVC
from proxmargin.models.fitting.assembly import Assembly, margin_sums
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.limits.critical import critical_strength
from proxmargin.models.paths.strength import ALPHA, parameters_of, strength_of
from proxmargin.optimality.unpenalised import are_separated, smooth_critical_strength
from proxmargin.runtime.brief import users_level

Array = NDArray[np.float64]
Estimator = TypeVar("Estimator", bound=MarginEstimator)

# share of l1 whose grid start a pure ridge penalty takes, as is customary for elastic nets: a ridge
# has no strength at which the coefficients vanish
RIDGE_L1_RATIO = 1e-3


def alpha_max(
    estimator: MarginEstimator, X: Any, y: Any, sample_weight: Any = None, offset: Any = None
) -> float:
    """The least ``alpha`` for which all penalised coefficients are zero, exactly.

    With only the intercept (and features of factor 0) fitted, ``max_j |gradient_j| / l1_ratio`` for
    the gradient of the loss in the coefficients; the largest over the class problems of a
    one-vs-rest model. For a hinge it is the least value over its subdifferential, which a linear
    program computes.

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
    template = _with_alpha(estimator)
    assembly = template._assemble(X, y, sample_weight, offset)
    share = template.norm_share
    return float(_critical_strength(template, assembly) / share) if share else np.inf


def critical_C(estimator: MulticlassSVC, X: Any, y: Any, sample_weight: Any = None) -> float:
    """The largest ``C`` for which all coefficients are zero, exactly.

    For hinges it is the least dual norm over the subdifferential at the null model, the value of a
    linear program (`proxmargin.models.limits.critical`).

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
    ours = isinstance(estimator, MarginEstimator)
    parameters = estimator.get_params(deep=False) if ours else {}
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
    template = _with_alpha(estimator)
    assembly = template._assemble(X, y, sample_weight, offset)
    return default_grid(template, assembly, n_alphas, eps)


def default_grid(template: Any, assembly: Assembly, count: int, eps: float) -> Array:
    """Strengths in geometric progression, from the strongest penalty; as `margin_path` says."""
    strength = strength_of(template)
    check_number("n_alphas, the number of strengths,", count, low=1, integer=True)
    check_number("eps", eps, low=0.0, low_open=True, high=1.0)
    share, total = template.norm_share, assembly.targets.total
    exact = share > 0 or strength is ALPHA
    critical = _critical_strength(template, assembly) if exact else _typical_strength(assembly)
    separated = any(map(are_separated, assembly.problems))
    start = critical / (share or RIDGE_L1_RATIO) if critical > 0 and not separated else 1.0
    # C = 1 / (total weight * alpha), with a ridge alone over twice as many decades
    last = eps if exact else eps**2
    grid = strength.of_alpha(np.geomspace(start, last * start, count), total)
    if critical == 0 and not separated:
        warnings.warn(
            "no feature with a penalty is related to the labels: their coefficients are zero for "
            f"every {strength.name}, and the grid starts at {grid[0]:g}",
            UserWarning,
            stacklevel=users_level(),
        )
    return grid


def unfitted(estimator: Estimator) -> Estimator:
    """An unfitted copy with the same parameters; callbacks are shared, not copied.

    Raises
    ------
    TypeError
        The estimator has no strength, or its kernel is not linear.
    """
    strength = strength_of(estimator)
    names = parameters_of(type(estimator))  # type: ignore[arg-type]  # classes are hashable
    if not getattr(estimator, "_is_linear", True):
        raise TypeError(
            f"paths need a linear model: {type(estimator).__name__} has kernel={estimator.kernel!r}"
        )
    template = type(estimator)(**{name: getattr(estimator, name) for name in names})
    settings: dict[str, Any] = {strength.name: 1.0}  # any but 0, which would leave no penalty
    if hasattr(template, "eta"):
        settings["eta"] = None
    template.__dict__.update(settings)  # parameters that a subclass may have fixed
    return template


def _with_alpha(estimator: Estimator) -> Estimator:
    template = unfitted(estimator)
    if strength_of(template) is not ALPHA:
        raise TypeError(
            f"alpha_max needs an estimator with alpha and l1_ratio, such as HuberizedSVC; "
            f"{type(estimator).__name__} has none"
        )
    return template


def _critical_strength(template: Any, assembly: Assembly) -> float:
    """The least strength of the norm at which all coefficients are zero, for any ridge part."""
    design = assembly.problems[0].design
    norm = template._unit_penalty(assembly.targets, design)
    # the first of equals, which keeps out a zero that is negative
    return max(0.0, *(critical_strength(p) for p in assembly.with_penalty(norm).problems))


def _typical_strength(assembly: Assembly) -> float:
    """The critical strength of an l1 norm with the logistic loss, the largest over the classes."""
    (first, *_), targets = assembly.problems, assembly.targets
    bare = replace(first, penalty=ElasticNet(1.0, 0.0), intercept=Ridge(0.0))
    losses = margin_sums(Logistic(), targets, joint=False)
    return max(smooth_critical_strength(replace(bare, loss=loss)) for loss in losses)
