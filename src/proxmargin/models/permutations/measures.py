"""Models fitted to many labelings of the same samples, and what is measured on each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_score,
)
from sklearn.utils.metadata_routing import MetadataRequest, _routing_enabled

from proxmargin.data.designs import Design, as_design
from proxmargin.data.designs.samples import is_sparse
from proxmargin.data.inputs.kinds import Features, Labels, Splits
from proxmargin.data.inputs.parameters import row_numbers, seeded_splitter
from proxmargin.data.inputs.row_order import RowOrderWarning
from proxmargin.data.inputs.targets import Targets, refuse_small_classes
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.fitting import FitContext
from proxmargin.models.permutations.labelings import Codes, Statistic
from proxmargin.models.selection.scoring import of_second_class, splitter_of
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.types import Array, Estimator, Record, Values
from proxmargin.solvers.shared.batched_labels import Axes, principal_axes

T = TypeVar("T")

MOST_SIDE = 2000  # of the smaller Gram matrix of the data that is decomposed: seconds


class LabelingStatistics(NamedTuple):
    """The statistic of each labeling, and the relative duality gap of its fit (NaN if unknown);
    after Ctrl-C of those that were complete."""

    statistics: Array
    gaps: Array


def until_interrupted(work: Callable[[Codes], T], codes: Codes) -> list[T]:
    """What ``work`` returns for each labeling; after Ctrl-C for those that were complete."""
    found: list[T] = []
    try:
        for column in codes.T:
            found.append(work(column))
            if interrupts.pending:
                break
    except KeyboardInterrupt:
        interrupts.pending = True  # a fit has acted upon the signal
    return found


@dataclass(frozen=True, eq=False)
class OneByOne:
    """A fit for each labeling; linear models share what can be computed from the data alone."""

    estimator: Estimator  # with coefficients, or one of this package with a kernel
    X: Any
    classes: Values  # (2,) labels
    statistic: Statistic
    block: ClassVar[int] = 50  # labelings at a time, whatever the number of jobs
    in_processes: ClassVar[bool] = True  # it holds the interpreter's lock

    def __call__(self, codes: Codes) -> LabelingStatistics:
        found = until_interrupted(self._projected, codes)
        if not found:
            return LabelingStatistics(np.empty(0), np.empty(0))
        projections = np.stack([each for each, _ in found], axis=1)
        statistics = self.statistic(projections, codes[:, : len(found)] > 0)
        return LabelingStatistics(statistics, np.array([gap for _, gap in found]))

    @cached_property
    def _design(self) -> Design:
        return as_design(self.X if is_sparse(self.X) else np.asarray(self.X))

    def __getstate__(self) -> Record:
        """Without the design, which processes make for themselves."""
        return {name: value for name, value in vars(self).items() if name != "_design"}

    def _projected(self, codes: Codes) -> tuple[Array, float]:
        """Projections of the samples onto the direction of the model, and its gap."""
        model = clone(self.estimator)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # gaps are reported together
            warnings.simplefilter("ignore", RowOrderWarning)  # the test itself says so
            if is_linear(model):
                return self._by_coefficients(model, codes)
            model.fit(self.X, self.classes[codes])
        if isinstance(model, MarginEstimator):
            return _in_kernel_space(model, self.X), _gap_of(model)
        if not hasattr(model, "coef_"):
            raise TypeError(
                f"{type(model).__name__} has no coef_ after a fit, and so no direction to project "
                "onto: take statistic='accuracy', or a linear classifier (standardize=True in the "
                "place of a pipeline)"
            )
        return _along(self._design, np.ravel(model.coef_)), _gap_of(model)

    def _by_coefficients(self, model: MarginEstimator, codes: Codes) -> tuple[Array, float]:
        """Of a linear model, in units of its features: standardised ones if it standardises."""
        targets = model._encoded(self.classes[codes], None)
        stop = model._bounded(model._started(), self._design.n_samples, self._design.n_features)
        model._fit_recorded(self._design, targets, FitContext(stop))
        coef = np.ravel(model.coef_)
        if model.standardize:
            design, _, scale = model._design(self._design, targets)
            return _along(design, coef * np.where(np.isfinite(scale), scale, 0.0)), _gap_of(model)
        return _along(self._design, coef), _gap_of(model)


def is_linear(model: Estimator) -> bool:
    """Whether it is a model of this package with coefficients."""
    kernel = getattr(model, "kernel", "linear")
    return isinstance(model, MarginEstimator) and isinstance(kernel, str) and kernel == "linear"


def _in_kernel_space(model: Estimator, X: Values) -> Array:
    """Scores of the samples by a function of norm one, ``|f|^2 = beta'K beta``."""
    scores = np.asarray(model.decision_function(X)) - model.intercept_[0]
    squared = float(model.dual_coef_[0] @ scores[model.support_])
    return scores / np.sqrt(squared) if squared > 0 else np.zeros_like(scores)


def _along(design: Design, coef: Array) -> Array:
    """Scores of the samples by coefficients of length one."""
    length = float(np.linalg.norm(coef))
    if length == 0.0:
        return np.zeros(design.n_samples)
    return np.asarray(design.scores(coef[:, None] / length)[:, 0])


def _gap_of(model: Estimator) -> float:
    certificate = getattr(model, "certificate_", None)
    return float("nan") if certificate is None else float(certificate.relative_gap)


@dataclass(frozen=True, eq=False)
class SideBySide:
    """All labelings of a model with a ridge or in a ball at once, on one Gram matrix. Labelings
    that the common method does not solve are fitted one by one."""

    single: OneByOne  # of a linear model with a method for many labelings (`_of_labelings`)
    axes: Axes  # the samples as the model sees them
    block: ClassVar[int] = 500
    in_processes: ClassVar[bool] = False  # products run outside of the interpreter's lock

    @classmethod
    def of(cls, single: OneByOne, codes: Codes) -> SideBySide | OneByOne:
        """The method for the estimator; ``codes`` are its labels."""
        model = single.estimator
        if not _is_plain(model) or min(single.X.shape) > MOST_SIDE:
            return single
        targets = Targets.encode(single.classes[codes], None, None)
        design, _, _ = model._design(single._design, targets)
        axes = principal_axes(design, centred=model.fit_intercept)
        if not axes.squares.size:
            return single
        if model._of_labelings(axes, _signs(codes[:, None])) is not None:
            return cls(single, axes)
        if model._is_faster_in_axes and axes.squares.size < design.n_features:
            plain = clone(model).set_params(standardize=False)
            return replace(single, estimator=plain, X=axes.samples)
        return single

    def __call__(self, codes: Codes) -> LabelingStatistics:
        model = self.single.estimator
        signs = _signs(codes)
        fitted = model._of_labelings(self.axes, signs)(self.axes, signs, tol=model.tol)
        lengths = np.where(fitted.norms > 0, fitted.norms, 1.0)
        statistics = self.single.statistic(fitted.scores / lengths, codes > 0)
        gaps = fitted.gaps
        left = np.flatnonzero(gaps > model.tol)
        if left.size:
            again = self.single(codes[:, left])
            done = left[: again.gaps.size]
            statistics[done], gaps[done] = again
        return LabelingStatistics(statistics, gaps)


def _is_plain(model: Estimator) -> bool:
    """Whether nothing but the defaults says how to solve it, and samples weigh the same."""
    return (
        is_linear(model)
        and model.solver == "auto"
        and model.stopping == "gap"
        and not model.callbacks
        and all(getattr(model, name) is None for name in ("class_weight", "max_iter", "time_limit"))
    )


def _signs(codes: Codes) -> Array:
    return np.where(codes > 0, 1.0, -1.0)


# of these, whether all training parts have all classes does not depend on the permutation
EVEN = (StratifiedKFold, RepeatedStratifiedKFold, StratifiedShuffleSplit, StratifiedGroupKFold)


class Part(NamedTuple):
    train: NDArray[np.intp]
    test: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class KnownFolds:
    """A splitter of given folds. It asks for groups, so that an estimator may do so, too."""

    parts: list[Part]

    def split(
        self, X: Features, y: Labels | None = None, groups: Labels | None = None
    ) -> Iterator[Part]:
        return iter(self.parts)

    def get_n_splits(
        self, X: Features | None = None, y: Labels | None = None, groups: Labels | None = None
    ) -> int:
        return len(self.parts)

    def get_metadata_routing(self) -> MetadataRequest:
        request = MetadataRequest(owner=self)
        request.split.add_request(param="groups", alias=True)
        return request

    def lack(self, codes: Codes) -> tuple[int, int] | None:
        """The first training part without samples of a class, and this class, by numbers."""
        classes = int(codes.max()) + 1
        for fold, part in enumerate(self.parts):
            counts = np.bincount(codes[part.train], minlength=classes)
            if not counts.all():
                return fold, int(np.argmin(counts))
        return None


@dataclass(frozen=True, eq=False)
class CrossValidatedScore:
    """A score of a classifier on held-out samples, for each labeling."""

    estimator: Estimator
    X: Any
    classes: Values  # labels
    cv: Any  # a splitter of scikit-learn
    # (n_samples,), for splitters that keep groups together, and estimators that ask for them
    groups: Any
    scoring: str  # a scorer of scikit-learn
    block: ClassVar[int] = 10
    in_processes: ClassVar[bool] = True

    def __call__(self, codes: Codes) -> LabelingStatistics:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RowOrderWarning)
            warnings.simplefilter("ignore", UndefinedMetricWarning)  # NaN is refused
            # permuted labels have nothing to learn
            warnings.filterwarnings("ignore", "the (chosen .* penalty of its grid|map of the held)")
            scores = until_interrupted(self._score, codes)
        return LabelingStatistics(np.array(scores), np.full(len(scores), np.nan))

    def check(self, codes: Codes, permuted: Iterator[Codes]) -> None:
        """Raise ValueError unless all folds, of the given and of ``permuted`` labels, train on all
        classes and hold out samples: leaving out a labeling, or counting it, would bias the
        p-value."""
        folds = self._folds(codes, warns=True)
        empty = [fold for fold, part in enumerate(folds.parts) if not part.test.size]
        if empty or not folds.parts:
            what = f"fold {empty[0]} holds out no samples" if empty else "there are no folds"
            raise ValueError(f"cv: {what} to score")
        lack = folds.lack(codes)
        if lack is not None:
            raise ValueError(f"cv: {self._objection(lack)}")
        if type(self.cv) not in EVEN:
            self._check_permuted(permuted)

    def _check_permuted(self, permuted: Iterator[Codes]) -> None:
        found: list[tuple[int, int]] = []
        for column in (column for block in permuted for column in block.T):
            interrupts.act()
            lack = self._folds(column).lack(column)
            found += [] if lack is None else [lack]
        if found:
            raise ValueError(
                f"cv: {len(found)} permutations of the labels have no {self.scoring}; of the "
                f"first, {self._objection(found[0])}"
            )

    def _objection(self, lack: tuple[int, int]) -> str:
        fold, code = lack
        ways = ["give fewer folds"]
        ways += [] if type(self.cv) in EVEN else ["or stratified ones, as a number does"]
        ways += [] if self.groups is None else ["or merge groups"]
        return (
            f"the training rows of fold {fold} are without class {self.classes[code]!s}: "
            + ", ".join(ways)
        )

    def _folds(self, codes: Codes, *, warns: bool = False) -> KnownFolds:
        """As a splitter draws them anew, from the same state of its generator; ``warns``: with its
        warnings, which are to be heard once."""
        splitter, labels = deepcopy(self.cv), self.classes[codes]
        with warnings.catch_warnings():
            if not warns:
                warnings.simplefilter("ignore", UserWarning)
            splits = list(splitter.split(self.X, labels, groups=self.groups))
        parts = []
        for fold, (train, test) in enumerate(splits):
            rows = (row_numbers(fold, part, codes.size) for part in (train, test))
            parts.append(Part(*rows))
        return KnownFolds(parts)

    def _score(self, codes: Codes) -> float:
        folds = self._folds(codes)
        lack = folds.lack(codes)
        if lack is not None:  # of a splitter that drew other folds for `check`
            raise ValueError(f"cv: of permuted labels, {self._objection(lack)}")
        asked = self.groups is not None and _routing_enabled()
        with parallel_config(backend="sequential"):  # it is labelings that run side by side
            scores = cross_val_score(
                self.estimator,
                self.X,
                self.classes[codes],
                cv=folds,
                scoring=of_second_class(self.scoring, self.classes),
                params={"groups": self.groups} if asked else None,
                error_score="raise",
            )
        return float(scores.mean())


class Measure(Protocol):
    """What is measured on labelings, (n_samples, n_labelings)."""

    block: ClassVar[int]  # labelings at a time
    in_processes: ClassVar[bool]  # whether jobs are processes

    def __call__(self, codes: Codes) -> LabelingStatistics: ...


def seeded_folds(cv: Splits, labels: Values, groups: Codes | None, seed: int) -> Any:
    """The splitter that ``cv`` stands for, with the seed if it shuffles and has none. ``groups``:
    (n_samples,), which a number of folds keeps whole."""
    splitter = splitter_of(cv, labels, groups, seed)
    if not isinstance(cv, Integral):
        return seeded_splitter(splitter, seed)
    classes, counts = np.unique(labels, return_counts=True)
    refuse_small_classes(classes, counts, int(cv), f"{cv} folds need", ", or ask for fewer folds")
    return splitter
