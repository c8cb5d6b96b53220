"""A path: models of the same data for many strengths of the penalty.

The strongest penalty comes first, each solution the start of the next.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from proxmargin.data.designs import as_design
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.parameters import check_number
from proxmargin.data.inputs.validation import validated_features
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.factors import warn_if_separated
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.models.paths.descent import Ending, Saturation, explained, solve_grid
from proxmargin.models.paths.fit_by_fit import fits_of, stacked, template_of, values_of
from proxmargin.models.paths.found import (
    Certificates,
    Found,
    listed,
    published,
    unmet_of,
    warn_of_unmet,
    weights_of_samples,
)
from proxmargin.models.paths.grid import (
    Strength,
    at_strength,
    default_grid,
    limited_by,
    strength_of,
    unfitted,
    varying_of,
)
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList
from proxmargin.runtime.brief import Listing, html_line, users_level, with_pages
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.optional import optional
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.types import Array, Values

if TYPE_CHECKING:
    import pandas as pd


SHOWN = 10  # strengths in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Path:
    """Models of many strengths, as `margin_path` found them.

    Attributes
    ----------
    strengths : (n_strengths,)
        In the order given; by default from the strongest penalty. They are ``alphas``, or ``Cs``
        for a model with ``C``, ``nus`` or ``kappas`` for one with these. With a fixed ``l2`` they
        are ``alphas = l1s + l2``.
    stacked : (n_strengths * n_rows, n_features) CSR array
        ``coef_`` of every model, in the units of the data, below each other.
    coefs_sparse : list of (n_rows, n_features) CSR arrays
        The same, one for each model.
    coefs : (n_strengths, n_rows, n_features)
        The same as one dense array, made when it is asked for.
    intercepts : (n_strengths, n_rows)
    n_nonzero : (n_strengths,) integers
        Features with a nonzero coefficient for any class.
    certificates : sequence of Certificate or CertificateList
        The proven distance of each model from the optimum. Strengths that are solved
        together (``solver`` is 'chord-newton', 'ridge-newton' or 'active-set') share their time:
        ``seconds`` is the mean over those of one call of the solver.
    classes : (n_classes,)
    scale : (n_features,)
        Standard deviations of the features where they are standardised, else ones.
    template : estimator
        Has the parameters that all models share; `model` copies it and adds the solution.
    ended : str
        Why there are no further strengths: 'complete', 'interrupted', where ``stop_at`` was
        given 'explained' or 'flat', and where ``max_features`` was 'features'.
    weights : (n_strengths * n_rows, n_samples) CSR array, optional
        Weights of the samples in the coefficients of every model, if models have ``dual_coef_``.
    l2 : float, optional
        The ridge part of all models, where it was fixed.
    models : sequence of estimators
        The fitted models, where each was fitted on its own.
    explained_loss : (n_strengths,), optional
        `deviance_ratio`; None for paths in nu and kappa, and with a fixed ``l2``.

    See Also
    --------
    margin_path : Fits a path.
    PathDisplay : Draws one.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SparseLogisticRegression, margin_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> lasso = SparseLogisticRegression(l1_ratio=1.0, standardize=True)
    >>> path = margin_path(lasso, X, y, alphas=[0.2, 0.1, 0.05])
    >>> path.n_nonzero.tolist(), path.deviance_ratio.round(2).tolist()
    ([3, 4, 4], [0.4, 0.6, 0.73])
    >>> path.coef(0.07).shape, path.predict_proba(X).shape
    ((1, 30), (3, 569, 2))
    """

    strengths: Array
    stacked: sparse.csr_array
    intercepts: Array
    certificates: Sequence[Certificate | CertificateList]
    classes: Values
    scale: Array
    template: MarginEstimator = field(repr=False)
    ended: str = Ending.COMPLETE.value
    weights: sparse.csr_array | None = field(default=None, repr=False)
    l2: float | None = None
    models: Sequence[MarginEstimator] = field(default=(), repr=False)
    explained_loss: Array | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return self.strengths.size

    def __repr__(self) -> str:
        used, name = self.n_nonzero, self.strength.name
        if not len(self):
            return f"<Path of {type(self.template).__name__}: no {name}s>"
        return (
            f"<Path of {type(self.template).__name__}: {len(self)} {name}s from "
            f"{self.strengths[0]:.3g} to {self.strengths[-1]:.3g}, {used.min()} to {used.max()} of "
            f"{self.stacked.shape[1]} features>"
        )

    def _repr_html_(self) -> str:
        picked = np.unique(np.linspace(0, len(self) - 1, SHOWN).round().astype(int))
        rows = [
            (
                f"{self.strengths[k]:.3g}",
                str(self.n_nonzero[k]),
                f"{self.certificates[k].relative_gap:.1e}",
            )
            for k in picked[: len(self)]
        ]
        headings = (self.strength.name, "features", "relative gap")
        return f"{html_line(repr(self).strip('<>'))}{Listing(headings, rows).html()}"

    @property
    def strength(self) -> Strength:
        """The parameter that varies along the path."""
        return varying_of(self.template)

    @property
    def alphas(self) -> Array:
        return self._strengths_named("alpha")

    @property
    def Cs(self) -> Array:
        return self._strengths_named("C")

    @property
    def nus(self) -> Array:
        return self._strengths_named("nu")

    @property
    def kappas(self) -> Array:
        return self._strengths_named("kappa")

    @property
    def l1s(self) -> Array:
        """The l1 parts of elastic nets."""
        alphas = self._strengths_named("alpha")
        if self.l2 is not None:
            return alphas - self.l2
        return alphas * getattr(self.template, "norm_share", 1.0)

    def _strengths_named(self, name: str) -> Array:
        if self.strength.name != name:
            own = self.strength.name
            raise AttributeError(f"this is a path in {own}: it has {own}s and no {name}s")
        return self.strengths

    def _picked(self, index: NDArray[np.intp]) -> Path:
        """The path of some of its strengths, in their order."""
        rows = (index[:, None] * self._rows + np.arange(self._rows)).ravel()
        return replace(
            self,
            strengths=self.strengths[index],
            stacked=self.stacked[rows],
            weights=None if self.weights is None else self.weights[rows],
            intercepts=self.intercepts[index],
            certificates=[self.certificates[i] for i in index],
            models=[self.models[i] for i in index] if self.models else (),
            explained_loss=None if self.explained_loss is None else self.explained_loss[index],
        )

    @property
    def _rows(self) -> int:
        """Number of rows of the coefficients of one model."""
        return int(self.intercepts.shape[1])

    def _coef_sparse(self, index: int) -> sparse.csr_array:
        return self.stacked[self._place(index)]

    def _place(self, index: int) -> slice:
        """The rows of one model."""
        return slice(index * self._rows, (index + 1) * self._rows)

    @property
    def coefs_sparse(self) -> list[sparse.csr_array]:
        return [self._coef_sparse(index) for index in range(len(self))]

    @property
    def coefs(self) -> Array:
        return np.reshape(self.stacked.toarray(), (len(self), self._rows, -1))

    @property
    def n_nonzero(self) -> NDArray[np.intp]:
        if self._rows == 1:
            return np.diff(self.stacked.indptr).astype(np.intp)
        pairs = pairwise(self.stacked.indptr[:: self._rows])
        return np.array([np.unique(self.stacked.indices[a:b]).size for a, b in pairs], np.intp)

    @property
    def deviance_ratio(self) -> Array:
        """The share of the null model's loss that each model explains, (n_strengths,).

        ``1 - loss / null loss`` on the data of the path, weighted as in the fits; of a logistic
        model glmnet's ``dev.ratio``. Of one class against the rest, losses are summed over the
        classes. NaN where features without a penalty alone separate the classes.
        """
        if self.explained_loss is None:
            raise AttributeError(
                "deviance_ratio is of paths in alpha or C, without a fixed l2: other models share "
                "no loss along their path"
            )
        return self.explained_loss

    def coef(self, strength: float) -> Array:
        """Coefficients at a strength between those of the path, (n_rows, n_features).

        Linear interpolation in the strength between the two neighbours, as glmnet's
        ``coef(fit, s=)``: no fit, and no certificate. The model that is optimal at this strength
        is ``estimator.set_params(alpha=strength).fit(X, y)``.

        Raises
        ------
        ValueError
            The strength is beyond those of the path.
        """
        (first, second), share = self._neighbours(strength)
        between = (1 - share) * self._coef_sparse(first) + share * self._coef_sparse(second)
        return np.asarray(between.toarray())

    def intercept(self, strength: float) -> Array:
        """Intercepts at a strength, (n_rows,), interpolated as in `coef`."""
        (first, second), share = self._neighbours(strength)
        return np.asarray((1 - share) * self.intercepts[first] + share * self.intercepts[second])

    def _neighbours(self, strength: float) -> tuple[tuple[int, int], float]:
        """The models between whose strengths this one is, and the share of the second."""
        check_number(self.strength.name, strength, low=0.0)
        order = np.argsort(self.strengths, kind="stable")
        grid = self.strengths[order]
        if not len(grid) or not grid[0] <= strength <= grid[-1]:
            ends = f"from {grid[0]:.6g} to {grid[-1]:.6g}" if len(grid) else "of no strength"
            raise ValueError(
                f"{self.strength.name}={strength:g} is beyond this path, {ends}: give its strength "
                f"to margin_path ({self.strength.name}s=), or fit the estimator with it"
            )
        above = min(max(int(np.searchsorted(grid, strength)), 1), max(len(grid) - 1, 0))
        below = max(above - 1, 0)
        step = grid[above] - grid[below]
        share = float((strength - grid[below]) / step) if step > 0 else 0.0
        return (int(order[below]), int(order[above])), share

    def model(self, index: int) -> MarginEstimator:
        """The fitted estimator for ``strengths[index]``."""
        index = range(len(self))[index]
        if self.models:
            return copy(self.models[index])
        model = at_strength(self.template, self.strengths[index])
        model.coef_, model.intercept_ = (
            self._coef_sparse(index).toarray(),
            self.intercepts[index].copy(),
        )
        model.classes_ = self.classes
        if model.standardize:
            model.feature_scale_ = self.scale
        model.certificate_ = self.certificates[index]
        model.n_iter_ = max(model.certificate_.n_iter, 1)
        if self.weights is not None:
            weights: Any = self.weights[self._place(index)]
            support = np.unique(weights.indices).astype(np.intp)
            model.__dict__.update(support_=support, dual_coef_=weights[:, support].toarray())
        return model

    def scores(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """``decision_function`` of every model: (n_strengths, n_samples[, n_classes]).

        One product with the data, of the features that any model has.
        """
        offset = by_sample("offset", offset, X)
        X = validated_features(self.template, X)
        offset = self.template._predicting_offset(offset, X, self.classes)
        scores = self._scores_of(X)
        return scores if offset is None else scores + offset

    def _scores_of(self, X: Any, rows: NDArray[np.intp] | None = None) -> Array:
        """`scores` of validated samples, or of some ``rows`` of them, without offset."""
        design, stacked = as_design(X), self.stacked
        used, places = listed(stacked.indices, design.n_features)
        owner = np.repeat(np.arange(stacked.shape[0]), np.diff(stacked.indptr))
        coef = np.zeros((used.size, stacked.shape[0]))
        coef[places, owner] = stacked.data
        if rows is not None:
            design = design.part(rows, used)
        elif used.size < design.n_features:
            design = design.columns(used)
        flat, shape = design.scores(coef), self.intercepts.shape
        scores = flat.reshape(len(flat), *shape).swapaxes(0, 1) + self.intercepts[:, None, :]
        return scores if self._rows > 1 else scores[:, :, 0]

    def predict(self, X: Values, offset: Array | None = None) -> Values:
        """The class with the largest score by every model, (n_strengths, n_samples)."""
        scores = self.scores(X, offset)
        codes = scores.argmax(axis=2) if scores.ndim == 3 else (scores > 0).astype(int)
        return np.asarray(self.classes[codes])

    def predict_proba(self, X: Features, offset: ArrayLike | None = None) -> Array:
        """Probabilities by every model, (n_strengths, n_samples, n_classes).

        Raises
        ------
        AttributeError
            The models have none: `proxmargin.CalibratedMargin` makes some of any model.
        """
        template = self.template
        if not isinstance(template, LogisticProbabilities):
            name = type(template).__name__
            raise AttributeError(f"{name} has no predict_proba: use CalibratedMargin({name}())")
        return np.stack([template._probabilities_of(each) for each in self.scores(X, offset)])

    def to_frame(self) -> pd.DataFrame:
        """The nonzero coefficients, one a row: columns strength, class, feature and coef.

        The first column is called ``alpha`` or ``C``. Features have their names if the path was
        fitted to a data frame, otherwise their numbers. Models without features have no row.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        pandas = optional("pandas", "a data frame of coefficients")
        listed = self.stacked.tocoo()
        rows = self.intercepts.shape[1]
        names = getattr(self.template, "feature_names_in_", np.arange(listed.shape[1]))
        positive = self.classes[1:] if rows == 1 else self.classes
        frame: pd.DataFrame = pandas.DataFrame(
            {
                self.strength.name: self.strengths[listed.row // rows],
                "class": positive[listed.row % rows],
                "feature": names[listed.col],
                "coef": listed.data,
            }
        )
        return frame


@with_pages
def margin_path(
    estimator: MarginEstimator,
    X: Features,
    y: Labels,
    *,
    alphas: ArrayLike | None = None,
    n_alphas: int = 100,
    Cs: ArrayLike | None = None,
    nus: ArrayLike | None = None,
    kappas: ArrayLike | None = None,
    l2: float | None = None,
    eps: float = 1e-3,
    stop_at: float | None = None,
    max_features: int | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
) -> Path:
    """Fit the model for many strengths, from the strongest penalty, each from the last solution.

    The data are checked, standardised and turned into a problem once. With ``verbose`` of the
    estimator, paths of more than two seconds show how many strengths are done.

    Parameters
    ----------
    estimator : an estimator with ``alpha`` and ``l1_ratio``, or a linear one with ``C``, ``nu`` or
        ``kappa``
        Is not changed. Its ``tol``, ``max_iter`` and ``time_limit`` hold for every single fit.
    X, y, sample_weight, offset
        As for ``estimator.fit``.
    alphas : (n_alphas,), optional
        In any order. By default ``n_alphas`` numbers in geometric progression from `alpha_max`
        down to ``eps`` times that. For ``l1_ratio=0`` (where `alpha_max` is infinite) the
        progression starts at the `alpha_max` of ``l1_ratio=0.001``; and at 1 where no feature
        is related to the labels.
    n_alphas : int
        Of either strength.
    Cs : (n_alphas,), optional
        For estimators with ``C``, in any order. By default increasing from `critical_C` up to that
        over ``eps``; with a ridge alone from where the scores are small, up to that over
        ``eps**2``.
    nus, kappas : (n_alphas,), optional
        For `NuSVC` and `DWD`, and for `MarginFDA` and `MarginMPM`, in any order, within the range
        that leaves a margin. By default ``n_alphas`` values from the largest: of NuSVC evenly over
        `nu_range`, of DWD two decades on either side of Marron's rule, of kappa from 0.9 times
        `kappa_max` to zero; over the range that all classes have in common.
    l2 : float >= 0, optional
        For elastic nets, as in gcdnet: a ridge part that all models share, while the l1 part falls.
        ``alphas`` are then the l1 parts, by default from where all coefficients are zero, and
        ``l1_ratio`` of the estimator does not matter.
    eps : float in (0, 1]
    stop_at : float in (0, 1], optional
        Ends the path at the first strength where this fraction of the null model's loss is
        explained, or where, after five, the fraction has risen by less than 1e-5 of itself while
        the penalty became weaker by a quarter; glmnet does much the same, with 0.999. By default
        every strength is fitted.
    max_features : int, optional
        Ends the path before the first model that uses more features (those without a penalty
        count), as ``dfmax`` of glmnet.

    Returns
    -------
    Path
        Of the strengths that are complete, if the path was interrupted.

    Raises
    ------
    ValueError
        An invalid parameter or invalid data, named in the message; the first model uses more than
        ``max_features``.
    TypeError
        The estimator has no strength, a nonlinear kernel, or another strength than is given.
    KeyboardInterrupt
        Interrupted before the first strength was complete.

    Warns
    -----
    ConvergenceWarning
        Once for the whole path, with the worst gap, when a fit ended before its gap met ``tol``.
    UserWarning
        The path was interrupted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, margin_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = margin_path(HuberizedSVC(l1_ratio=0.9, standardize=True), X, y, n_alphas=5)
    >>> path.coefs.shape, int(path.n_nonzero[0])
    ((5, 1, 30), 0)
    """
    if limited_by(estimator) is not None or l2 is not None:
        for name, limit in {"stop_at": stop_at, "max_features": max_features}.items():
            if limit is not None:
                raise ValueError(f"{name} is for paths in alpha and C, without a fixed l2")
        grids = {"alpha": alphas, "C": Cs, "nu": nus, "kappa": kappas}
        data = (X, y, sample_weight, offset)
        return _path_of_fits(estimator, data, grids, n_alphas, l2, eps)
    template = unfitted(estimator)
    strength = strength_of(template)
    given = _explicit_grid(strength, {"alpha": alphas, "C": Cs, "nu": nus, "kappa": kappas})
    assembly = template._assemble(X, y, sample_weight, offset)
    grid = default_grid(template, assembly, n_alphas, eps) if given is None else given
    order = strength.order(grid)
    progress = ProgressBar(
        f"{type(template).__name__} path: strengths", grid.size, shown=bool(template.verbose)
    )
    limits = (stop_at, max_features)
    with interrupts, progress:
        path = compute_path(template, assembly, grid[order], limits, progress.advance)
        if interrupts.pending:
            _note_interruption(path, grid)
    path = with_explained(path, assembly)
    warn_if_separated(assembly.problems)
    return _in_given_order(path, order)


def _path_of_fits(
    estimator: MarginEstimator,
    data: Sequence[object],
    grids: Mapping[str, ArrayLike | None],
    count: int,
    l2: float | None,
    eps: float,
) -> Path:
    """A path of single fits: in nu or kappa, or in l1 beside a fixed l2 (`fit_by_fit`)."""
    template = template_of(estimator, l2)
    fixed = None if l2 is None else float(l2)
    strength = varying_of(template)
    given = _explicit_grid(strength, grids)
    grid = values_of(template, data, count, fixed, eps) if given is None else given
    order = strength.order(grid)
    models, scale = fits_of(template, data, grid[order], fixed)
    coefs, intercepts = stacked(models)
    done = len(models)
    path = Path(
        strengths=grid[order][:done] + (fixed or 0.0),
        stacked=coefs,
        intercepts=intercepts,
        certificates=[model.certificate_ for model in models],
        classes=models[0].classes_,
        scale=scale,
        template=template,
        ended=(Ending.COMPLETE if done == grid.size else Ending.INTERRUPTED).value,
        l2=fixed,
        models=models,
    )
    if done < grid.size:
        _note_interruption(path, grid)
    return _in_given_order(path, order)


def _in_given_order(path: Path, order: NDArray[np.intp]) -> Path:
    """The path in the order of the caller's grid; warns of strengths that missed the tolerance."""
    short, name = unmet_of(path.certificates), type(path.template).__name__
    warn_of_unmet(f"the {name} path", path.template.tol, len(path), short)
    taken = order[: len(path)]
    return path if np.all(taken[1:] > taken[:-1]) else path._picked(np.argsort(taken))


def compute_path(
    template: MarginEstimator,
    assembly: Assembly,
    grid: Array,
    limits: tuple[float | None, int | None] = (None, None),
    notify: Callable[[int], object] = lambda count: None,
) -> Path:
    """The path over a grid from the strongest penalty; shorter if interrupted or saturated.

    ``template`` assembled the data. ``limits`` are ``stop_at`` and ``max_features`` of
    `margin_path`. ``notify`` is called with the number of strengths completed since the last call.
    """
    saturation = Saturation(template, assembly, *limits)
    quiet = template
    if template.verbose:
        quiet = copy(template)
        quiet.verbose = 0
    parts: list[Sequence[Found]] = []
    count = 0
    for found in solve_grid(quiet, assembly, grid):
        kept, ended = saturation.ending(grid[count : count + found[0].count], found)
        parts.append([each.part(0, kept) for each in found])
        count += kept
        notify(kept)
        if ended is not None:
            break
    else:
        ended = Ending.COMPLETE if count == grid.size else Ending.INTERRUPTED
    if ended is Ending.FEATURES and not count:
        raise ValueError(
            f"max_features={limits[1]}: the first model of the path has more features; start with "
            f"a stronger penalty ({strength_of(template).name}s=), or with l1_ratio > 0"
        )
    stacked, intercepts = published(template, assembly, parts)
    return Path(
        strengths=grid[:count],
        stacked=stacked,
        intercepts=intercepts,
        certificates=Certificates(parts),
        classes=assembly.targets.classes,
        scale=assembly.scale,
        template=template,
        ended=ended.value,
        weights=weights_of_samples(assembly, parts),
    )


def with_explained(path: Path, assembly: Assembly) -> Path:
    """A path of `compute_path` with the share of the loss that each model explains."""
    assert isinstance(path.certificates, Certificates)
    parts = path.certificates.parts
    share = explained(path.template, assembly, path.strengths, parts)
    return replace(path, explained_loss=share)


def _note_interruption(path: Path, grid: Array) -> None:
    if not len(path):
        raise KeyboardInterrupt(f"before the first of {grid.size} fits of a path was complete")
    lost = f"it has {len(path)} of {grid.size} strengths"
    if path.ended != Ending.INTERRUPTED.value:
        lost = "nothing is missing, as it was complete"
    warnings.warn(
        f"the path was interrupted: {lost}",
        stacklevel=users_level(),
    )


def _explicit_grid(strength: Strength, grids: Mapping[str, ArrayLike | None]) -> Array | None:
    """The strengths that the caller gave; None if it asks for the default grid. Raises TypeError:
    values are given for a parameter that the estimator does not have.
    """
    foreign = [name for name, grid in grids.items() if name != strength.name and grid is not None]
    if foreign:
        raise TypeError(f"the path is one in {strength.name}: give {strength.name}s")
    values = grids[strength.name]
    return None if values is None else strength.checked(values)
