"""The accuracy on held-out samples, for many labelings, and the folds that hold them out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
    cross_val_score,
)
from sklearn.utils.metadata_routing import MetadataRequest, _routing_enabled

from proxmargin.inputs.folds import row_numbers
from proxmargin.inputs.seeds import seeded_splitter
from proxmargin.inputs.validation import check_folds
from proxmargin.permutations.fits import LabelingStatistics, until_interrupted
from proxmargin.permutations.labelings import Codes
from proxmargin.runtime.interrupts import interrupts

__all__ = ["CrossValidatedAccuracy", "splitter_of"]

# of these, whether all training parts have all classes does not depend on the permutation
EVEN = (StratifiedKFold, RepeatedStratifiedKFold, StratifiedShuffleSplit, StratifiedGroupKFold)


class Part(NamedTuple):
    """Row numbers of a fold."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


class Lack(NamedTuple):
    """A training part without samples of a class, by their numbers."""

    fold: int
    code: int


@dataclass(frozen=True, eq=False)
class KnownFolds:
    """A splitter of given folds. It asks for groups, so that an estimator may do so, too."""

    parts: list[Part]

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Part]:
        return iter(self.parts)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return len(self.parts)

    def get_metadata_routing(self) -> MetadataRequest:
        request = MetadataRequest(owner=self)
        request.split.add_request(param="groups", alias=True)
        return request

    def lack(self, codes: Codes) -> Lack | None:
        """The first class that a training part has no sample of."""
        classes = int(codes.max()) + 1
        for fold, part in enumerate(self.parts):
            counts = np.bincount(codes[part.train], minlength=classes)
            if not counts.all():
                return Lack(fold, int(np.argmin(counts)))
        return None


@dataclass(frozen=True, eq=False)
class CrossValidatedAccuracy:
    """The accuracy of a classifier on held-out samples, for each labeling.

    Parameters
    ----------
    estimator : classifier
    X : array or matrix
    classes : labels
    cv : a splitter of scikit-learn
    groups : (n_samples,) or None
        For splitters that keep groups together, and estimators that ask for them.
    """

    estimator: Any
    X: Any
    classes: NDArray[Any]
    cv: Any
    groups: Any
    block: ClassVar[int] = 10
    in_processes: ClassVar[bool] = True

    def __call__(self, codes: Codes) -> LabelingStatistics:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            accuracies = until_interrupted(self._accuracy, codes)
        return LabelingStatistics(np.array(accuracies), np.full(len(accuracies), np.nan))

    def check(self, codes: Codes, permuted: Iterator[Codes]) -> None:
        """Raise ValueError unless all folds train on all classes and hold out samples.

        A labeling without an accuracy can be neither left out nor counted without a bias of the
        p-value.

        Parameters
        ----------
        codes : (n_samples,)
            The given labels.
        permuted : of (n_samples, n_labelings)
        """
        folds = self._folds(codes, tell=True)
        empty = [fold for fold, part in enumerate(folds.parts) if not part.test.size]
        if empty or not folds.parts:
            what = f"fold {empty[0]} holds out no samples" if empty else "there are no folds"
            raise ValueError(f"cv: {what} to compute an accuracy of")
        lack = folds.lack(codes)
        if lack is not None:
            raise ValueError(f"cv: {self._told(lack)}")
        if type(self.cv) not in EVEN:
            self._check_permuted(permuted)

    def _check_permuted(self, permuted: Iterator[Codes]) -> None:
        found: list[Lack] = []
        for column in (column for block in permuted for column in block.T):
            interrupts.act()
            lack = self._folds(column).lack(column)
            found += [] if lack is None else [lack]
        if found:
            raise ValueError(
                f"cv: {len(found)} permutations of the labels have no accuracy; of the first, "
                f"{self._told(found[0])}"
            )

    def _told(self, lack: Lack) -> str:
        ways = ["give fewer folds"]
        ways += [] if type(self.cv) in EVEN else ["or stratified ones, as a number does"]
        ways += [] if self.groups is None else ["or merge groups"]
        return (
            f"the training rows of fold {lack.fold} are without class {self.classes[lack.code]!s}: "
            + ", ".join(ways)
        )

    def _folds(self, codes: Codes, *, tell: bool = False) -> KnownFolds:
        """As a splitter draws them anew, from the same state of its generator; ``tell``: with its
        warnings, which are to be heard once."""
        splitter, labels = deepcopy(self.cv), self.classes[codes]
        with warnings.catch_warnings():
            if not tell:
                warnings.simplefilter("ignore", UserWarning)
            splits = list(splitter.split(self.X, labels, groups=self.groups))
        parts = []
        for fold, (train, test) in enumerate(splits):
            rows = (row_numbers(fold, part, codes.size) for part in (train, test))
            parts.append(Part(*rows))
        return KnownFolds(parts)

    def _accuracy(self, codes: Codes) -> float:
        folds = self._folds(codes)
        lack = folds.lack(codes)
        if lack is not None:  # of a splitter that drew other folds for `check`
            raise ValueError(f"cv: of permuted labels, {self._told(lack)}")
        asked = self.groups is not None and _routing_enabled()
        with parallel_config(backend="sequential"):  # it is labelings that run side by side
            scores = cross_val_score(
                self.estimator,
                self.X,
                self.classes[codes],
                cv=folds,
                scoring="accuracy",
                params={"groups": self.groups} if asked else None,
                error_score="raise",
            )
        return float(scores.mean())


def splitter_of(cv: Any, labels: NDArray[Any], groups: Codes | None, seed: int) -> Any:
    """The splitter that ``cv`` stands for; a number of folds means whole groups, where there are
    groups.

    Parameters
    ----------
    cv : int or splitter
    labels : (n_samples,)
    groups : (n_samples,) or None
        As numbers from 0.
    seed : int
        Of a splitter that shuffles and has none.
    """
    check_folds("cv", cv)
    if not isinstance(cv, Integral):
        return seeded_splitter(check_cv(cv, labels, classifier=True), seed)
    least = int(np.unique(labels, return_counts=True)[1].min())
    if least < int(cv):
        raise ValueError(
            f"cv={cv} folds need as many samples of each class, and the smallest has {least}"
        )
    if groups is None:
        return StratifiedKFold(int(cv))
    count = int(groups.max()) + 1
    if count < int(cv):
        raise ValueError(
            f"cv={cv} folds of whole groups need as many groups, and there are {count}"
        )
    return StratifiedGroupKFold(int(cv))
