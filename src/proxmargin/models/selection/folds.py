"""The models of the training part of a fold, relaxed or not, and their scores on held-out rows.

Relaxed (Hastie, Tibshirani and Tibshirani 2020): ``gamma * penalised + (1 - gamma) * unpenalised``,
the second fitted to the features that the first one uses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.compiled.rounding import TINY
from proxmargin.data.designs import Design, RowView, as_design
from proxmargin.data.designs.samples import holds_objects
from proxmargin.data.inputs.kinds import ClassWeight
from proxmargin.data.inputs.parameters import real_numbers, row_numbers
from proxmargin.data.inputs.targets import Targets
from proxmargin.models.classifiers.elastic_net import ElasticNetEstimator
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.paths.compute import compute_path
from proxmargin.models.paths.fit_by_fit import fitted_grid
from proxmargin.models.paths.found import Found, published, unmet_of
from proxmargin.models.paths.grid import at_strength, problems_of, strength_of
from proxmargin.models.paths.path import Path
from proxmargin.models.selection.scoring import HeldOutRows, Judge, Models, no_convergence_warnings
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList, combined
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import are_separated, null_point
from proxmargin.runtime.brief import shown, users_level
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.progress import ProgressBar
from proxmargin.runtime.threads import is_on_cluster, on_cluster, quiet_threads, threads_here
from proxmargin.runtime.types import Array, Facts, Index, Values

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # gammas of relaxed=True, those of glmnet
VALUE_ROUNDING = 1e-12  # relative rounding of an objective, added to gaps that are not small
SOLVER = "relaxed"
NO_REFIT = "the chosen features separate the classes, or are linearly dependent"
BECAUSE = "coefficients of the penalised minimiser mixed with an unpenalised fit of its features"


@dataclass(frozen=True, eq=False)
class Mixed:
    """The models of a path for one gamma."""

    path: Path  # its certificates are those of the penalised models
    # (n_strengths,) bool, whether the unpenalised fit exists; where it does not, the penalised
    # model stands
    exists: NDArray[np.bool_]


def shares_of(relaxed: object) -> tuple[float, ...]:
    """The gammas for a value of ``relaxed``, the penalised model first. Raises ValueError: not a
    flag, nor numbers in [0, 1]."""
    if isinstance(relaxed, bool | np.bool_):
        return SHARES if relaxed else (1.0,)
    try:
        given = np.unique(real_numbers("relaxed", relaxed).ravel())
    except ValueError:
        given = np.empty(0)
    if not given.size or not np.all((given >= 0.0) & (given <= 1.0)):
        raise ValueError(f"relaxed must be True, False or numbers in [0, 1], got {shown(relaxed)}")
    return tuple(given[::-1].tolist())


def check_relaxed(template: MarginEstimator, n_classes: int) -> None:
    """Raise ValueError if the features of this model cannot be fitted without a penalty."""
    assert isinstance(template, ElasticNetEstimator)
    if not np.isfinite(template._margin_loss().smoothness):
        also = " and multi_class='ovr'" if n_classes > 2 else ""
        raise ValueError(
            "relaxed needs a smooth loss, and the hinge is not: use HuberizedSVCCV with a small "
            f"delta{also}"
        )
    if n_classes > 2 and template.multi_class == "joint":
        raise ValueError(
            f"relaxed fits one class at a time, and these are {n_classes} classes together: use "
            "multi_class='ovr'"
        )


def check_refits(scores: Array, shares: Sequence[float]) -> None:
    """Raise ValueError if only relaxed fits were asked for, and none has a score on every fold.
    ``scores``: (n_l1_ratios * n_shares, n_strengths, n_folds)."""
    if 1.0 not in shares and not np.isfinite(scores.mean(axis=2)).any():
        raise ValueError(
            f"relaxed={list(shares)}: no strength has an unpenalised fit with a score on every "
            f"fold: {NO_REFIT}; add 1 to relaxed for the penalised models, or give stronger "
            "penalties (the scoring may also have given no number)"
        )


def mixed_paths(path: Path, assembly: Assembly, shares: Sequence[float]) -> Iterator[Mixed]:
    """The path for each gamma; the unpenalised fits are made once."""
    everywhere = np.ones(len(path), np.bool_)
    if tuple(shares) == (1.0,):
        yield Mixed(path, everywhere)
        return
    refits, exists = _refits(path, assembly, range(len(path)))
    stacked, intercepts = published(path.template, assembly, refits)
    for share in shares:
        if share == 1.0:
            yield Mixed(path, everywhere)
            continue
        part = np.where(exists, share, 1.0)
        rows = np.repeat(part, path.intercepts.shape[1])
        own, other = sparse.diags_array(rows), sparse.diags_array(1.0 - rows)
        coefs = sparse.csr_array(own @ path.stacked + other @ stacked)
        shifts = part[:, None] * path.intercepts + (1.0 - part)[:, None] * intercepts
        yield Mixed(replace(path, stacked=coefs, intercepts=shifts), exists)


def mixed_models(
    best: MarginEstimator, path: Path, assembly: Assembly, column: int, share: float
) -> float:
    """Mix the fitted model of a strength with its unpenalised fit; returns gamma, which is 1, with
    a warning, if there is none. The certificate is by the penalised lower bound and the own
    objective."""
    if share == 1.0:
        return 1.0
    (parts,), (exists,) = _refits(path, assembly, [column])
    if not exists:
        warnings.warn(
            f"relaxed: on all rows {NO_REFIT}; they have no fit without a penalty, and the "
            "penalised model is kept (gamma_=1)",
            UserWarning,
            stacklevel=users_level(),
        )
        return 1.0
    stacked, intercepts = published(path.template, assembly, [parts])
    best.coef_ = share * best.coef_ + (1.0 - share) * stacked.toarray()
    best.intercept_ = share * best.intercept_ + (1.0 - share) * intercepts[0]
    problems = problems_of(at_strength(path.template, float(path.strengths[column])), assembly)
    given = best.certificate_
    each = given if isinstance(given, CertificateList) else [given]
    points, tol = assembly.points(best.coef_, best.intercept_), path.template.tol
    best.certificate_ = combined(
        [_certificate(*one, tol) for one in zip(problems, points, each, strict=True)]
    )
    return share


def _refits(
    path: Path, assembly: Assembly, columns: Sequence[int]
) -> tuple[list[list[Found]], NDArray[np.bool_]]:
    """The unpenalised fits of some strengths, of every problem; and whether all of them exist."""
    bare = problems_of(at_strength(path.template, 0.0), assembly)
    makers = [_Refits(problem) for problem in bare]
    origins = [problem.origin() for problem in bare]
    nothing = [_found(np.empty(0, np.intp), each.coef[:0], each.intercept) for each in origins]
    refits, exists = [], []
    for column in columns:
        rows = path._coef_sparse(column)
        used = [np.sort(rows.indices[a:b]).astype(np.intp) for a, b in pairwise(rows.indptr)]
        found = [make(each) for make, each in zip(makers, used, strict=True)]
        complete = [one for one in found if one is not None]
        exists.append(len(complete) == len(bare))
        refits.append(complete if exists[-1] else nothing)
    return refits, np.array(exists, np.bool_)


class _Refits:
    """Unpenalised fits of sets of features: neighbouring strengths often use the same set."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[bytes, Found] = {}
        self._failing: list[frozenset[int]] = []

    def __call__(self, used: Index) -> Found | None:
        """The fit; None if the features are dependent, or separate the classes."""
        key, features = used.tobytes(), frozenset(used.tolist())
        # what fails for some features fails with more of them
        if key not in self._known and not any(part <= features for part in self._failing):
            part = self.problem.on_columns(used)
            if used.size and (part.unpenalised.size < used.size or are_separated(part)):
                self._failing.append(features)
            else:
                point = null_point(part)
                self._known[key] = _found(used, point.coef, point.intercept)
        return self._known.get(key)


def _found(features: Index, coef: Array, intercept: Array) -> Found:
    """One solution, whose objective and certificate nobody reads."""
    return Found(
        features=features,
        coef=coef,
        starts=np.array([0, features.size]),
        intercepts=intercept[None, :],
        primal=np.zeros(1),
        met=np.ones(1, np.bool_),
        certify=_unread,
    )


def _unread(number: int) -> Certificate:
    raise AssertionError("unpenalised fits have no certificate of the penalised problem")


def _certificate(problem: Problem, point: Point, penalised: Certificate, tol: float) -> Certificate:
    """The gap of a point by the lower bound of the minimiser's certificate."""
    primal = problem.value(point)
    gap = max(primal - penalised.dual, 0.0) + VALUE_ROUNDING * abs(primal)
    relative = gap / max(abs(primal), abs(penalised.dual), TINY)
    return replace(
        penalised,
        primal=primal,
        gap=gap,
        relative_gap=relative,
        kkt_residual=certify(problem, point).kkt_residual,
        converged=bool(relative <= tol),
        stop_reason=SOLVER,
        solver=SOLVER,
        because=BECAUSE,
    )


Notify = Callable[[int], object]


class Scored(NamedTuple):
    """Models, and their scores of the held-out rows without offset."""

    models: Models
    decisions: Array  # (n_strengths, n_test[, n_classes])
    # (n_strengths,) bool, which of the models are to be judged; all by default
    exists: NDArray[np.bool_] | None = None
    is_fit: bool = True  # whether they count as fits of their own


@dataclass(frozen=True, eq=False)
class Fold:
    """Row numbers of a training and a test part."""

    number: int
    train: Index
    test: Index


@dataclass(frozen=True, eq=False)
class ValidatedRows:
    """Validated rows."""

    X: Values
    # their weights are those of a fit to all rows: sample weights times class weights. They hold
    # the offset too
    targets: Targets
    sample_weight: Array | None  # (n_samples,)
    arguments: Facts  # what scorers take besides the data: a value a row
    pairwise: bool = False  # X holds a kernel of the samples with themselves

    @cached_property
    def design(self) -> Design:
        """The data of linear models, shared by all folds and by the fit to all rows; objects have
        no features."""
        features = np.zeros((len(self.X), 1)) if holds_objects(self.X) else self.X
        return as_design(features)

    @property
    def labels(self) -> Values:
        return np.asarray(self.targets.classes[self.targets.codes])

    def rows(self, index: Index, train: Index) -> Values:
        """The data of the samples ``index``; of a kernel matrix their columns for ``train``."""
        return self.X[np.ix_(index, train)] if self.pairwise else self.X[index]

    def held_out(self, fold: Fold) -> HeldOutRows:
        arguments = {
            name: None if each is None else np.asarray(each)[fold.test]
            for name, each in self.arguments.items()
        }
        weights = None if self.sample_weight is None else self.sample_weight[fold.test]
        return HeldOutRows(
            RowView(self.design, fold.test),
            self.targets.picked(fold.test),
            weights,
            arguments,
            partial(self.rows, fold.test, fold.train),
        )

    def training(self, fold: Fold, class_weight: ClassWeight) -> Targets:
        """The targets of all rows, with weight zero for the held-out ones, and for a row that a
        bootstrap repeats the weight of all copies. ValueError: the training rows lack a class."""
        weights = np.zeros(self.targets.codes.size)
        given = 1.0 if self.sample_weight is None else self.sample_weight[fold.train]
        np.add.at(weights, fold.train, given)
        classes = self.targets.classes
        counts = np.bincount(self.targets.codes[weights > 0], minlength=classes.size)
        if not counts.all():
            raise ValueError(
                f"the training rows of fold {fold.number} have no sample of class "
                f"{classes[np.argmin(counts)]!s}: choose fewer folds, or stratified ones"
            )
        return self.targets.weighted(weights, class_weight)


def folds_of(splits: Iterable[tuple[object, object]], data: ValidatedRows) -> list[Fold]:
    """The folds of a splitter, given by row numbers or masks. Raises ValueError: there are no
    folds; or one has rows beyond the data, or no row of positive weight to score."""
    count = data.targets.codes.size
    folds = [
        Fold(k, *(row_numbers(k, part, count) for part in parts)) for k, parts in enumerate(splits)
    ]
    if not folds:
        raise ValueError("cv makes no folds: it is to make at least one")
    weights = np.ones(count) if data.sample_weight is None else data.sample_weight
    for fold in folds:
        if not np.any(weights[fold.test]):
            what = "with positive sample_weight " if fold.test.size else ""
            raise ValueError(f"cv: fold {fold.number} holds out no rows {what}to judge models by")
    return folds


@dataclass(frozen=True, eq=False)
class Plan:
    """What is fitted to each training part: a path for each l1_ratio."""

    templates: Sequence[MarginEstimator]  # one for each l1_ratio, with validated parameters
    grids: Array  # (n_l1_ratios, n_strengths), from the strongest penalty
    shares: Sequence[float] = (1.0,)  # the gammas of relaxed fits, each with scores of its own

    @property
    def shape(self) -> tuple[int, int]:
        """Of the scores: a row for each pair of l1_ratio and gamma."""
        return len(self.grids) * len(self.shares), self.grids.shape[1]


def path_models(plan: Plan, data: ValidatedRows, fold: Fold, notify: Notify) -> Iterator[Scored]:
    """The paths of linear models, one for each l1_ratio. Held-out rows have weight zero, so that
    neither standardisation nor any bound depends on them. Removing them would copy the data."""
    first = plan.templates[0]
    assembly = first._assembled(data.design, data.training(fold, first.class_weight))
    for template, grid in zip(plan.templates, plan.grids, strict=True):
        own = assembly if template is first else template._reassembled(assembly)
        path = compute_path(template, own, grid, notify=notify)
        for share, mixed in zip(plan.shares, mixed_paths(path, own, plan.shares), strict=True):
            decisions = mixed.path._scores_of(data.design, fold.test)
            yield Scored(mixed.path, decisions, mixed.exists, share == plan.shares[0])


def kernel_models(plan: Plan, data: ValidatedRows, fold: Fold, notify: Notify) -> Iterator[Scored]:
    """Models with a nonlinear kernel, each fitted on its own."""
    data.training(fold, plan.templates[0].class_weight)
    X, y = data.rows(fold.train, fold.train), data.labels[fold.train]
    weights = None if data.sample_weight is None else data.sample_weight[fold.train]
    offset = data.targets.picked(fold.train).offset
    held_out = data.rows(fold.test, fold.train)
    for template, grid in zip(plan.templates, plan.grids, strict=True):
        settings = [{strength_of(template).name: strength} for strength in grid.tolist()]
        models = []
        try:
            for model in fitted_grid(template, settings, X, y, weights, offset):
                models.append(model)
                notify(1)
        except KeyboardInterrupt:
            if not interrupts.pending:
                raise
        # the offset of the held-out rows is added to all scores later
        none = None if offset is None else 0.0
        scores = [model.decision_function(held_out, none) for model in models]
        yield Scored(Machines(template, models), np.array(scores))


@dataclass(frozen=True, eq=False)
class Machines:
    """Kernel models of several strengths; as `Path` is for models with coefficients."""

    template: MarginEstimator
    models: Sequence[MarginEstimator]

    def __len__(self) -> int:
        return len(self.models)

    @property
    def certificates(self) -> list[Certificate | CertificateList]:
        return [model.certificate_ for model in self.models]

    def model(self, index: int) -> MarginEstimator:
        return self.models[index]


@dataclass(frozen=True, eq=False)
class Judged:
    """The scores of the models of one fold."""

    # (n_l1_ratios, n_strengths), NaN for strengths that were not fitted because of an interruption
    scores: Array
    # list of (n_strengths, n_test[, n_classes]), one for each l1_ratio, scores of the held-out
    # rows, if they are kept
    decisions: list[Array]
    fits: int  # how many models were fitted
    # list of Certificate or CertificateList, certificates of the models whose gap did not meet the
    # tolerance
    unmet: list[Certificate | CertificateList]


@dataclass(frozen=True, eq=False)
class Judging:
    """How the models of folds are fitted and scored."""

    plan: Plan
    # `path_models` or `kernel_models`
    models: Callable[[Plan, ValidatedRows, Fold, Notify], Iterator[Scored]]
    judge: Judge
    keep: bool  # whether the scores of the held-out rows are kept

    def judged(self, data: ValidatedRows, fold: Fold, notify: Notify) -> Judged:
        """Fit the models of a fold, and score them on its held-out rows."""
        rows, scores, kept, fits = data.held_out(fold), np.full(self.plan.shape, np.nan), [], 0
        unmet: list[Certificate | CertificateList] = []
        fitted = self.models(self.plan, data, fold, notify)
        for index, (each, decisions, exists, is_fit) in enumerate(fitted):
            if not len(each):
                break
            if rows.targets.offset is not None:
                decisions = decisions + rows.targets.offset
            judged = self.judge(each, decisions, rows)
            if exists is not None:
                judged = np.where(exists, judged, np.nan)
            scores[index, : len(each)] = judged
            if is_fit:
                fits += len(each)
                unmet += unmet_of(each.certificates)
            if self.keep:
                kept.append(decisions)
        return Judged(scores, kept, fits, unmet)

    def in_subprocess(self, data: ValidatedRows, fold: Fold) -> Judged:
        """The same in another process, whose filters and threads are its own."""
        with no_convergence_warnings(), quiet_threads(0):
            return self.judged(data, fold, lambda count: None)

    def of_folds(
        self,
        data: ValidatedRows,
        folds: list[Fold],
        progress: ProgressBar,
        n_jobs: int | None,
        ahead: Callable[[], Path] | None,
    ) -> tuple[list[Judged], Path | None]:
        """All folds, on threads or a cluster, with the same bits. ``ahead`` fits the path of all
        rows, which takes longest: one of several threads begins with it; a single one leaves it."""

        def one(place: int) -> Judged:
            progress.starts(f"fold {place + 1} of {len(folds)}")
            return self.judged(data, folds[place], progress.advance)

        threads = min(threads_here(n_jobs), len(folds) + (ahead is not None))
        with no_convergence_warnings():
            if is_on_cluster():
                arriving = on_cluster(self.in_subprocess, replace(data), folds, ordered=True)
                path = ahead() if ahead is not None else None
                judged = []
                for each in arriving:
                    judged.append(each)
                    progress.advance(each.fits)
                return judged, path
            if threads == 1:
                return [one(place) for place in range(len(folds))], None
            with ThreadPoolExecutor(threads) as pool:
                first = pool.submit(ahead) if ahead is not None else None
                results = list(pool.map(one, range(len(folds))))
                return results, first.result() if first is not None else None
