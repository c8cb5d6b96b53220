"""Paths of models without a strength that shrinks coefficients to zero, and of a fixed ridge.

Each model is a fit from the solution before, to data that are checked and standardised once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.parameters import check_number
from proxmargin.models.classifiers.kernel_machine import KernelData
from proxmargin.models.classifiers.nu_dwd import NuSVC
from proxmargin.models.fitting.admissible import OfMax
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.fitting import FitContext
from proxmargin.models.fitting.registry import MODELS
from proxmargin.models.limits.kappa import kappa_max
from proxmargin.models.limits.nu import nu_range
from proxmargin.models.paths.grid import at_strength, default_grid, unfitted, varying_of
from proxmargin.optimality.problem import Point
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.types import Array, Estimator, Facts, Values

T = TypeVar("T")

LARGEST_SHARE = 0.9  # of the largest kappa, near which the margin vanishes
DECADES_OF_NU = 2.0  # of a DWD on either side of Marron's rule


def template_of(estimator: MarginEstimator, l2: float | None) -> MarginEstimator:
    """An unfitted copy; of an elastic net beside a fixed ridge the one with an l1 part alone.

    Raises TypeError: the estimator has a nonlinear kernel, or is no elastic net and l2 is given.
    """
    name = type(estimator).__name__
    if l2 is not None:
        check_number("l2", l2, low=0.0)
        if varying_of(estimator).name != "alpha":
            raise TypeError(f"l2 is for elastic nets with alpha, which {name} does not have")
        return at_strength(unfitted(estimator), 1.0).set_params(l1_ratio=1.0)
    if not getattr(estimator, "_is_linear", True):
        raise TypeError(f"paths need a linear model: {name} has a kernel")
    copied: MarginEstimator = clone(estimator)
    return copied


def values_of(
    template: MarginEstimator, data: Sequence[Any], count: int, l2: float | None, eps: float
) -> Array:
    """The default values; ``data`` are X, y, sample_weight and offset."""
    if l2 is not None:
        return default_grid(template, template._assemble(*data), count, eps)
    X, y, weights, _ = data
    return _default_values(template, X, y, weights, count)


def fits_of(
    template: MarginEstimator, data: Sequence[Any], values: Array, l2: float | None
) -> tuple[list[Any], Array]:
    """The models of these values, the strongest penalty first, fewer if they are interrupted; and
    the scale of the features, (n_features,).

    ``template`` gets the first setting, and knows the features as a fitted model does.
    """
    name = varying_of(template).name
    settings: Sequence[Facts] = [{name: float(value)} for value in values]
    settings = settings if l2 is None else _mixes(l2, values)
    template.set_params(**settings[0])  # first, because values called 'auto' take fits
    scale = template._assemble(*data).scale
    return _fitted_models(template, settings, *data), scale


def _default_values(estimator: Estimator, X: Any, y: Any, weights: Any, count: int) -> Array:
    """Values of nu or kappa that leave every class a margin, the largest first."""
    check_number("n_alphas, the number of strengths,", count, low=1, integer=True)
    if varying_of(estimator).name == "kappa":
        shares = np.linspace(LARGEST_SHARE, 0.0, count)
        kappa = min(_of_each_class(estimator, X, y, weights, kappa_max, estimator._model))
        return np.array([OfMax(float(share)).of(kappa) for share in shares])
    if isinstance(estimator, NuSVC):
        least, most = zip(*_of_each_class(estimator, X, y, weights, nu_range), strict=True)
        # at the least nu the margin is zero
        return np.linspace(min(most), max(least), count + 1)[:-1]
    template = clone(estimator).set_params(nu="auto")
    problems = template._assemble(X, y, weights).problems
    centre = float(np.median([template._chosen(problem) for problem in problems]))
    return centre * np.logspace(DECADES_OF_NU, -DECADES_OF_NU, count)


def _of_each_class(
    estimator: MarginEstimator,
    X: Values,
    y: Labels,
    weights: Array,
    limit: Callable[..., T],
    *more: object,
) -> list[T]:
    """A limit of the data for each problem of one class against the rest."""
    assembly = clone(estimator)._assemble(X, y, weights)
    classes, labels = assembly.targets.classes, np.asarray(y)
    total = np.zeros(labels.size)
    total[assembly.numbers] = assembly.targets.weights
    positive = classes[1:] if classes.size == 2 else classes
    return [limit(X, labels == one, *more, total) for one in positive]


def _mixes(l2: float, l1s: Array) -> list[dict[str, float]]:
    """The parameters of elastic nets with this ridge part and falling l1 parts."""
    alphas = l1s + l2
    shares = np.divide(l1s, alphas, out=np.ones_like(l1s), where=alphas > 0)
    return [
        {"alpha": float(alpha), "l1_ratio": float(share)}
        for alpha, share in zip(alphas, shares, strict=True)
    ]


def _fitted_models(
    estimator: MarginEstimator,
    settings: Sequence[Facts],
    X: Any,
    y: Any,
    weights: Any,
    offset: Any,
) -> list[Any]:
    """A model for each of the settings; those before an interruption, if there are any."""
    quiet = clone(estimator).set_params(verbose=0)
    found: list[Any] = []
    progress = ProgressBar(
        f"{type(estimator).__name__} path: fits", len(settings), shown=bool(estimator.verbose)
    )
    with progress, warnings.catch_warnings():
        # one warning at the end sums them up
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            for model in fitted_grid(quiet, settings, X, y, weights, offset):
                found.append(model.set_params(verbose=estimator.verbose))
                progress.advance(1)
        except KeyboardInterrupt:
            if not found:
                raise
    return found


def stacked(models: Sequence[Any]) -> tuple[sparse.csr_array, Array]:
    """Coefficients of all models below each other, and their intercepts, (n_models, n_rows)."""
    coefs = sparse.csr_array(np.concatenate([model.coef_ for model in models]))
    return coefs, np.array([model.intercept_ for model in models])


# parameters of the loss, the penalty and the tolerance: models that differ in these share data
OF_THE_PROBLEM = {"tol", *(name for model in MODELS.values() for name in model.parameters)}


def fitted_grid(
    estimator: Estimator,
    settings: Sequence[Facts],
    X: Features,
    y: Labels,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Iterator[Estimator]:
    """A fitted copy of the estimator for each of the settings, in their order.

    Where the settings are those of the loss and the penalty the data are checked and standardised
    once, and what solvers compute from the data alone (inner products or kernel values of the
    samples, their factors) serves all fits; each fit of a linear model starts from the previous
    solution. Other models are fitted independently.

    Parameters
    ----------
    estimator : estimator
        Is not changed.
    settings : sequence of parameters by name
    X, y, sample_weight, offset
        As for ``estimator.fit``, which is given no offset that is None.

    See Also
    --------
    margin_path : A path in one parameter.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import DWD
    >>> from proxmargin.paths import fitted_grid
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = list(fitted_grid(DWD(standardize=True), [{"nu": 0.5}, {"nu": 0.3}], X, y))
    >>> [round(model.nu_, 3) for model in models]
    [0.5, 0.3]
    """
    assembly, kernel, before = None, None, None
    shift = {} if offset is None else {"offset": offset}
    given = estimator.get_params(deep=False)
    for each in settings:
        if not _shares_data(estimator, each):
            model = clone(estimator).set_params(**each)
            yield model.fit(X, y, sample_weight=sample_weight, **shift)
            continue
        with interrupts:
            model = clone(estimator) if before is None else copy(before)
            model.set_params(**{**given, **each})
            if not getattr(model, "_is_linear", True):
                kernel = _fit_kernel(model, kernel, (X, y, sample_weight, offset))
            elif assembly is None:
                assembly = model._assemble(X, y, sample_weight, offset)
                _fit(model, assembly, model._starts(assembly))
            else:
                assembly = refitted(model, assembly)
        before = model
        yield copy(model)


def refitted(model: MarginEstimator, assembly: Assembly) -> Assembly:
    """Fit a fitted model again with its present parameters, from its own solution.

    Returns the data and problems of that fit: ``assembly`` for the present parameters.
    """
    assembly = model._reassembled(assembly)
    starts = copy(model).set_params(warm_start=True)._starts(assembly)
    _fit(model, assembly, starts)
    return assembly


def _fit(model: MarginEstimator, assembly: Assembly, starts: Sequence[Point | None]) -> None:
    """Solve the problems and publish the model."""
    context = FitContext(model._started())
    model._publish(assembly, model._solve(assembly, starts, context), context)
    if interrupts.pending:
        raise KeyboardInterrupt


def _fit_kernel(model: Estimator, known: KernelData | None, given: Sequence[object]) -> KernelData:
    """Fit a kernel machine; ``known`` are its data, if an earlier fit has computed them from X, y,
    sample_weight and offset. Returns the data."""
    stop = model._started()
    if known is None:
        known = model._kernel_data(*model._checked(*given), stop)
    else:
        model._check_parameters()
        model._check_model()
    model._fit_kernel(known, FitContext(model._bounded(stop, *known.X.shape[:2])))
    if interrupts.pending:
        raise KeyboardInterrupt
    return known


def _shares_data(model: Estimator, setting: Facts) -> bool:
    """Whether a fit with this setting can use the data as they were assembled for another one."""
    ours = isinstance(model, MarginEstimator)
    # the number for nu='auto' comes from fits of its own
    nu = setting.get("nu", getattr(model, "nu", None))
    return ours and OF_THE_PROBLEM.issuperset(setting) and nu != "auto"
