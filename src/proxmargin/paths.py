"""Many models of the same data: regularisation paths, and grids of other settings.

On a path the strongest penalty comes first, each solution the start of the next.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from proxmargin.certificate import Certificate, CertificateList
from proxmargin.estimators.base import Assembly, MarginEstimator, certificate_of, unmet
from proxmargin.estimators.multiclass import MulticlassSVC
from proxmargin.estimators.registry import MODELS
from proxmargin.inputs.validation import check_number
from proxmargin.interrupts import interrupts
from proxmargin.limits.critical import critical_strength
from proxmargin.outcome import Solution, Status

__all__ = ["Path", "alpha_grid", "alpha_max", "critical_C", "fitted_grid", "margin_path"]

Array = NDArray[np.float64]
Estimator = TypeVar("Estimator", bound=MarginEstimator)

# models that differ in parameters of the loss and the penalty alone share their data
OF_THE_PROBLEM = {"tol", *(name for model in MODELS.values() for name in model.parameters)}
# a pure ridge penalty has no strength at which the coefficients vanish; its grid starts where
# the grid of this share of l1 would, as is customary for elastic nets
RIDGE_L1_RATIO = 1e-3


@dataclass(frozen=True, eq=False)
class Path:
    """Models of decreasing or any other strength, as `margin_path` found them.

    Attributes
    ----------
    alphas : (n_alphas,)
        In the order in which they were asked for; by default decreasing.
    coefs : (n_alphas, n_rows, n_features)
        ``coef_`` of every model, in the units of the data.
    intercepts : (n_alphas, n_rows)
    n_nonzero : (n_alphas,) integers
        Features with a nonzero coefficient for any class.
    certificates : list of Certificate or CertificateList
        What each model proves about its distance from the optimum.
    classes : (n_classes,)
    template : estimator
        With the parameters that all models share; `model` fills it in.
    """

    alphas: Array
    coefs: Array
    intercepts: Array
    n_nonzero: NDArray[np.intp]
    certificates: list[Certificate | CertificateList]
    classes: NDArray[Any]
    template: MarginEstimator = field(repr=False)

    def __len__(self) -> int:
        return self.alphas.size

    def model(self, index: int) -> MarginEstimator:
        """The fitted estimator for ``alphas[index]``."""
        model = copy(self.template)
        model.set_params(alpha=float(self.alphas[index]))
        model.coef_, model.intercept_ = self.coefs[index], self.intercepts[index]
        model.classes_ = self.classes
        model.certificate_ = self.certificates[index]
        model.n_iter_ = max(model.certificate_.n_iter, 1)
        return model


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
    template = _unfitted(estimator)
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
    template = _unfitted(estimator)
    assembly = template._assemble(X, y, sample_weight, offset)
    return _default_grid(template, assembly, n_alphas, eps)


def margin_path(
    estimator: MarginEstimator,
    X: Any,
    y: Any,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    eps: float = 1e-3,
    sample_weight: Any = None,
    offset: Any = None,
) -> Path:
    """Fit the model for many ``alpha``, from the largest down, each from the previous solution.

    The data are checked, standardised and turned into a problem once.

    Parameters
    ----------
    estimator : an estimator with ``alpha`` and ``l1_ratio``
        Is not changed. Its ``tol``, ``max_iter`` and ``time_limit`` hold for every single fit.
    X, y, sample_weight, offset
        As for ``estimator.fit``.
    alphas : (n_alphas,), optional
        In any order. By default ``n_alphas`` numbers in geometric progression from `alpha_max`
        down to ``eps`` times that. For ``l1_ratio=0`` (where `alpha_max` is infinite) the
        progression starts at the `alpha_max` of ``l1_ratio=0.001``; and at 1 where no feature
        is related to the labels.
    n_alphas : int
    eps : float in (0, 1]

    Returns
    -------
    Path

    Raises
    ------
    KeyboardInterrupt
        The fit was interrupted.

    Warns
    -----
    ConvergenceWarning
        Once for the whole path, with the worst gap, when a fit ended before its gap met ``tol``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, margin_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = margin_path(HuberizedSVC(l1_ratio=0.9, standardize=True), X, y, n_alphas=5)
    >>> path.coefs.shape, int(path.n_nonzero[0])
    ((5, 1, 30), 0)
    """
    template = _unfitted(estimator)
    assembly = template._assemble(X, y, sample_weight, offset)
    given = None if alphas is None else _checked_alphas(alphas)
    grid = _default_grid(template, assembly, n_alphas, eps) if given is None else given
    solved = _descended(template, assembly, grid)
    _warn(template, solved)
    published = [template._published(assembly, solutions) for solutions in solved]
    coefs = np.stack([coef for coef, _ in published])
    return Path(
        alphas=grid,
        coefs=coefs,
        intercepts=np.stack([intercept for _, intercept in published]),
        n_nonzero=np.count_nonzero(coefs.any(axis=1), axis=1),
        certificates=[certificate_of(solutions) for solutions in solved],
        classes=assembly.targets.classes,
        template=template,
    )


def fitted_grid(
    estimator: Any,
    settings: Sequence[Mapping[str, Any]],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    offset: Any = None,
) -> Iterator[Any]:
    """A fitted copy of the estimator for each of the settings, in their order.

    For a linear model whose settings are those of the loss and the penalty the data are checked
    and standardised once, and what solvers compute of them alone (inner products of the samples,
    their factors) serves all fits; each starts from the solution before. Others are fitted on
    their own.

    Parameters
    ----------
    estimator : estimator
        Is not changed.
    settings : sequence of parameters by name
    X, y, sample_weight, offset
        As for ``estimator.fit``, which is given no offset that is None.
    """
    assembly, before = None, estimator
    shift = {} if offset is None else {"offset": offset}
    for each in settings:
        model = clone(estimator).set_params(**each)
        if not _shares_data(model, each):
            yield model.fit(X, y, sample_weight=sample_weight, **shift)
            continue
        with interrupts:
            if assembly is None:
                assembly, starts = model._assemble(X, y, sample_weight, offset), None
            else:
                model = copy(before).set_params(**model.get_params(deep=False))
                assembly = model._reassembled(assembly)
                starts = copy(model).set_params(warm_start=True)._starts(assembly)
            model._fit_assembled(assembly, starts)
        before = model
        yield copy(model)


def _shares_data(model: Any, setting: Mapping[str, Any]) -> bool:
    """Whether a fit with this setting can use the data as they were assembled for another one."""
    linear = isinstance(model, MarginEstimator) and getattr(model, "kernel", "linear") == "linear"
    # what 'auto' stands for is found by fits
    return linear and OF_THE_PROBLEM.issuperset(setting) and getattr(model, "nu", 0) != "auto"


def _unfitted(estimator: Estimator) -> Estimator:
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


def _default_grid(template: Any, assembly: Assembly, n_alphas: int, eps: float) -> Array:
    check_number("n_alphas", n_alphas, low=1, integer=True)
    check_number("eps", eps, low=0.0, low_open=True, high=1.0)
    start = _critical_strength(template, assembly) / (template.l1_ratio or RIDGE_L1_RATIO)
    start = start if start > 0 else 1.0
    return np.geomspace(start, eps * start, n_alphas)


def _checked_alphas(alphas: ArrayLike) -> Array:
    grid = np.array(alphas, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not np.all(np.isfinite(grid) & (grid >= 0)):
        raise ValueError(f"alphas must be a non-empty list of finite numbers >= 0, got {alphas!r}")
    return grid


def _descended(template: MarginEstimator, assembly: Assembly, grid: Array) -> list[list[Solution]]:
    """Solutions in the order of the grid, computed from the largest alpha down."""
    starts = [problem.null_point() for problem in assembly.problems]
    solved: dict[int, list[Solution]] = {}
    for index in np.argsort(-grid, kind="stable").tolist():
        template.alpha = float(grid[index])
        penalty = template._penalty(assembly.targets, assembly.problems[0].design)
        solutions = template._solve(assembly.with_penalty(penalty), starts)
        if any(solution.status is Status.INTERRUPTED for solution in solutions):
            raise KeyboardInterrupt(f"after {len(solved)} of {grid.size} fits of a path")
        starts = [solution.point for solution in solutions]
        solved[index] = solutions
    return [solved[index] for index in range(grid.size)]


def _warn(template: MarginEstimator, solved: Sequence[Sequence[Solution]]) -> None:
    short = [solutions for solutions in solved if unmet(solutions)]
    if short:
        worst = max(s.certificate.relative_gap for solutions in short for s in unmet(solutions))
        warnings.warn(
            f"{len(short)} of {len(solved)} fits of the {type(template).__name__} path stopped "
            f"before their tolerance was met; the worst is certified to be within a relative gap "
            f"of {worst:.2e} of its optimum (tol={template.tol:g})",
            ConvergenceWarning,
            stacklevel=3,
        )
