"""The parameter that a path moves along, ``alpha`` or ``C``: its strongest value, its grid."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.parameters import check_magnitude, check_number, real_numbers
from proxmargin.functions.losses import Logistic
from proxmargin.functions.penalties import ElasticNet, Ridge
from proxmargin.functions.traits import Trait
from proxmargin.models.classifiers.multiclass import MulticlassSVC
from proxmargin.models.fitting.assembly import Assembly, margin_sums
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.limits.critical import critical_strength
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import (
    NEGLIGIBLE_LOSS,
    are_separated,
    null_point,
    smooth_critical_strength,
)
from proxmargin.runtime.brief import shown, users_level
from proxmargin.runtime.types import Array, Record, Values

Estimator = TypeVar("Estimator", bound=MarginEstimator)


@dataclass(frozen=True)
class Strength:
    """The name of the parameter, and which of its values mean a strong penalty."""

    name: str
    falls: bool = False  # the penalty grows with the parameter, so that a path takes falling values

    def order(self, grid: Array) -> NDArray[np.intp]:
        """Indices of the grid from the strongest penalty to the weakest."""
        return np.argsort(-grid if self.falls else grid, kind="stable")

    def of_alpha(self, alphas: Array, total: float) -> Array:
        """The values that weigh the penalty against the mean loss with ``alphas``.

        ``total``: the sum of the weights, as ``C`` multiplies the sum of the losses.
        """
        return alphas if self.falls else 1.0 / (total * alphas)

    def checked(self, values: ArrayLike) -> Array:
        """The values as an array; raises ValueError for values outside the parameter's range."""
        least = ">= 0" if self.falls else "> 0"
        try:
            grid = real_numbers(f"{self.name}s", values)
        except ValueError:
            grid = np.empty(0)
        good = np.isfinite(grid) & (grid >= 0 if self.falls else grid > 0)
        if grid.ndim != 1 or grid.size == 0 or not np.all(good):
            raise ValueError(
                f"{self.name}s must be a non-empty list of finite numbers {least}, got "
                f"{shown(values)}"
            )
        for extreme in (grid.max(), grid.min()):
            check_magnitude(f"each of {self.name}s", float(extreme), positive=not self.falls)
        return grid


ALPHA = Strength("alpha", falls=True)
WEIGHT = Strength("C")
LIMITED = (Strength("nu", falls=True), Strength("kappa", falls=True))


def strength_of(estimator: object) -> Strength:
    """The strength parameter of an estimator. Raises TypeError: it has neither ``alpha`` with
    ``l1_ratio`` nor ``C``.
    """
    strength = _of_kind(type(estimator))  # type: ignore[arg-type]  # classes are hashable
    if strength is None or strength in LIMITED:
        raise TypeError(
            f"paths need an estimator with alpha and l1_ratio, such as HuberizedSVC, or with C, "
            f"such as SVC; {_what_instead(estimator)}"
        )
    return strength


def _what_instead(estimator: object) -> str:
    """What a model without a strength offers instead of a path."""
    if isinstance(estimator, type):
        return f"{estimator.__name__} is a class: {estimator.__name__}() is an estimator"
    name = type(estimator).__name__
    if not isinstance(estimator, MarginEstimator):
        return f"{name} is no single model of this library"
    limited = limited_by(estimator)
    if limited is None:
        return f"{name} has none"
    return f"{name} has {limited.name}, of which margin_path fits several values ({limited.name}s=)"


def limited_by(estimator: object) -> Strength | None:
    """The nu or kappa of a model that has no strength, or None."""
    found = _of_kind(type(estimator))  # type: ignore[arg-type]  # classes are hashable
    return found if found in LIMITED else None


def varying_of(estimator: object) -> Strength:
    """The parameter of a path: the strength, or the nu or kappa of a model without one."""
    return limited_by(estimator) or strength_of(estimator)


@cache
def parameters_of(kind: type[MarginEstimator]) -> tuple[str, ...]:
    """The parameter names of a class of estimators, cached because reading signatures is slow."""
    return tuple(kind._get_param_names())


@cache
def _of_kind(kind: type) -> Strength | None:
    """The first of the strengths, nu and kappa that a class has, or None; a subclass may have fixed
    it."""
    if not issubclass(kind, MarginEstimator):
        return None
    names = {each.name for each in fields(kind)}
    return next((one for one in (ALPHA, WEIGHT, *LIMITED) if one.name in names), None)


def at_strength(estimator: Estimator, strength: float) -> Estimator:
    """A copy of the estimator with this strength."""
    model = copy(estimator)
    setattr(model, varying_of(estimator).name, float(strength))
    return model


def problems_of(model: MarginEstimator, assembly: Assembly) -> tuple[Problem, ...]:
    """The assembled problems under the penalty of this model."""
    penalty = model._penalty(assembly.targets, assembly.problems[0].design)
    return assembly.with_penalty(penalty).problems


# share of l1 whose grid start a pure ridge penalty takes, as is customary for elastic nets: a ridge
# has no strength at which the coefficients vanish
RIDGE_L1_RATIO = 1e-3


def alpha_max(
    estimator: MarginEstimator,
    X: Values,
    y: Values,
    sample_weight: Array | None = None,
    offset: Array | None = None,
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

    Raises
    ------
    TypeError
        The estimator has no ``alpha``.
    ValueError
        Invalid parameters or data, named in the message.

    See Also
    --------
    critical_C : The same for MulticlassSVC.
    alpha_grid : The strengths below it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SparseLogisticRegression, alpha_max
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> lasso = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    >>> largest = alpha_max(lasso, X, y)
    >>> bool(lasso.set_params(alpha=largest).fit(X, y).coef_.any())
    False
    >>> bool(lasso.set_params(alpha=0.99 * largest).fit(X, y).coef_.any())
    True
    """
    template: Any = _with_alpha(estimator)
    assembly = template._assemble(X, y, sample_weight, offset)
    share = template.norm_share
    return float(_critical_strength(assembly) / share) if share else np.inf


def critical_C(
    estimator: MulticlassSVC, X: Features, y: Labels, sample_weight: ArrayLike | None = None
) -> float:
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

    Raises
    ------
    TypeError
        The estimator has no ``C`` and ``eta``.
    ValueError
        Invalid parameters or data, named in the message; margins of zero, at which all-zero
        coefficients have no loss.

    See Also
    --------
    alpha_max : The same for models with ``alpha``.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from proxmargin import MulticlassSVC, critical_C
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MulticlassSVC(penalty="group_l2", groups="features", standardize=True)
    >>> C = critical_C(model, X, y)
    >>> int((model.set_params(C=2 * C).fit(X, y).coef_ != 0).any(axis=0).sum())
    7
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
    if strength == 0 and problem.value(null_point(problem)) < NEGLIGIBLE_LOSS:
        raise ValueError(
            "critical_C is infinite: with these margins all-zero coefficients have no loss, and "
            f"are optimal at every C; give margins > 0, got {shown(estimator.margins)}"
        )
    return template.norm_share / strength if strength > 0 else np.inf


def alpha_grid(
    estimator: MarginEstimator,
    X: Features,
    y: Labels,
    *,
    n_alphas: int = 100,
    eps: float = 1e-3,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Array:
    """The strengths that `margin_path` takes by default; parameters as there.

    Raises
    ------
    TypeError
        The estimator has no ``alpha``.
    ValueError
        Invalid parameters or data, named in the message.

    See Also
    --------
    margin_path : Fits models of these strengths.
    alpha_max : The first of them, for elastic nets.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, alpha_grid
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HuberizedSVC(l1_ratio=1.0, standardize=True)
    >>> alpha_grid(model, X, y, n_alphas=3, eps=0.01).round(4)
    array([0.6115, 0.0612, 0.0061])
    """
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
    critical = _critical_strength(assembly) if exact else _typical_strength(assembly)
    separated = any(map(are_separated, assembly.problems))
    start = critical / (share or RIDGE_L1_RATIO) if critical > 0 and not separated else 1.0
    # C = 1 / (total weight * alpha), with a ridge alone over twice as many decades
    last = eps if exact else eps**2
    grid = strength.of_alpha(np.geomspace(start, last * start, count), total)
    if critical == 0 and not separated:
        kinks = any(Trait.SMOOTH not in problem.traits for problem in assembly.problems)
        rare = ", or a class is so rare that a hinge never names it (class_weight='balanced')"
        warnings.warn(
            f"no feature with a penalty is related to the labels{rare if kinks else ''}: their "
            f"coefficients are zero for every {strength.name}, and the grid starts at {grid[0]:g}",
            UserWarning,
            stacklevel=users_level(),
        )
    return grid


def unfitted(estimator: Estimator) -> Estimator:
    """An unfitted copy with the same parameters; callbacks are shared, not copied.

    Raises TypeError: the estimator has no strength, or its kernel is not linear.
    """
    strength = strength_of(estimator)
    names = parameters_of(type(estimator))  # type: ignore[arg-type]  # classes are hashable
    if not getattr(estimator, "_is_linear", True):
        kernel = getattr(estimator, "kernel", None)
        raise TypeError(f"paths need a linear model: {type(estimator).__name__} has {kernel=}")
    template = type(estimator)(**{name: getattr(estimator, name) for name in names})
    settings: Record = {strength.name: 1.0}  # any but 0, which would leave no penalty
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


def _critical_strength(assembly: Assembly) -> float:
    """The least strength of the norm at which all coefficients are zero, for any ridge part."""
    # the first of equals, which keeps out a zero that is negative
    return max(0.0, *map(critical_strength, assembly.problems))


def _typical_strength(assembly: Assembly) -> float:
    """The critical strength of an l1 norm with the logistic loss, the largest over the classes."""
    (first, *_), targets = assembly.problems, assembly.targets
    bare = replace(first, penalty=ElasticNet(1.0, 0.0), intercept=Ridge(0.0))
    losses = margin_sums(Logistic(), targets, joint=False)
    return max(smooth_critical_strength(replace(bare, loss=loss)) for loss in losses)
