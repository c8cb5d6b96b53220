"""The models of the training part of a fold, and their scores on its held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.designs import Design, RowView, as_design
from proxmargin.data.designs.samples import holds_objects
from proxmargin.data.inputs.seeds import row_numbers
from proxmargin.data.inputs.targets import Targets
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.paths.path import compute_path, unmet_of
from proxmargin.models.paths.sharing import fitted_grid
from proxmargin.models.paths.strength import strength_of
from proxmargin.models.selection.relaxed import mixed_paths
from proxmargin.models.selection.scoring import HeldOutRows, Judge, Models
from proxmargin.models.selection.splitting import no_convergence_warnings
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import quiet_threads

Array = NDArray[np.float64]
Index = NDArray[np.intp]
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

    X: Any
    # their weights are those of a fit to all rows: sample weights times class weights. They hold
    # the offset too
    targets: Targets
    sample_weight: Array | None  # (n_samples,)
    arguments: Mapping[str, Any]  # what scorers take besides the data: a value a row
    pairwise: bool = False  # X holds a kernel of the samples with themselves

    @cached_property
    def design(self) -> Design:
        """The data of linear models, shared by all folds and by the fit to all rows; objects have
        no features."""
        features = np.zeros((len(self.X), 1)) if holds_objects(self.X) else self.X
        return as_design(features)

    @property
    def labels(self) -> NDArray[Any]:
        return np.asarray(self.targets.classes[self.targets.codes])

    def rows(self, index: Index, train: Index) -> Any:
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

    def training(self, fold: Fold, class_weight: Any) -> Targets:
        """The targets of all rows, with weight zero for the held-out ones.

        A row that the training part repeats, as bootstraps do, has the weight of all its copies.

        Raises ValueError: the training rows lack a class.
        """
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


def folds_of(splits: Iterable[tuple[Any, Any]], data: ValidatedRows) -> list[Fold]:
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
            decisions = mixed.path.scores_of(data.design, fold.test)
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
