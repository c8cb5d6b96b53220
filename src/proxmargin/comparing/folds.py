"""Stratified folds that exist for small classes too."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

__all__ = ["INNER_FOLDS", "Split", "inner_splits", "outer_splits"]

INNER_FOLDS = 3
# half of the largest class goes into a training part, which is then halved again
FEWEST_OF_LARGEST_CLASS = 4


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of a training and a test part."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]


def outer_splits(X: Any, y: NDArray[Any], cv: Any, seed: int) -> tuple[list[Split], list[str]]:
    """The folds, and notes on how they differ from what was asked for.

    Parameters
    ----------
    cv : int, or anything that scikit-learn takes for ``cv``
        A number means shuffled stratified folds, no more than the smallest class has samples.

    Raises
    ------
    ValueError
        There are too few samples of a class, or ``cv`` is no number of folds.
    """
    classes, counts = np.unique(y, return_counts=True)
    _refuse_small(classes, counts)
    if not isinstance(cv, int | np.integer) or isinstance(cv, bool):
        splitter = check_cv(cv, y, classifier=True)
        return [Split(train, test) for train, test in splitter.split(X, y)], []
    if cv < 2:
        raise ValueError(f"cv must be at least 2 folds, got {cv}")
    smallest = int(counts.argmin())
    folds = min(int(cv), int(counts[smallest]))
    notes = []
    if folds < cv:
        notes.append(
            f"{cv} folds were asked for; the smallest class ({classes[smallest]}) has only "
            f"{counts[smallest]} samples, so there are {folds}"
        )
    return _stratified(y, folds, seed), notes


def inner_splits(y: NDArray[Any], seed: int) -> list[Split]:
    """Folds inside a training part; those whose own training part lacks a class are left out."""
    classes, counts = np.unique(y, return_counts=True)
    folds = max(2, min(INNER_FOLDS, int(counts.min())))
    splits = _stratified(y, folds, seed)
    return [split for split in splits if np.unique(y[split.train]).size == classes.size]


def _stratified(y: NDArray[Any], folds: int, seed: int) -> list[Split]:
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # callers handle classes with fewer samples than folds
        warnings.simplefilter("ignore", UserWarning)
        return [Split(train, test) for train, test in splitter.split(np.zeros(y.size), y)]


def _refuse_small(classes: NDArray[Any], counts: NDArray[np.intp]) -> None:
    if classes.size < 2:
        raise ValueError(f"there is only one class ({classes[0]}): nothing to classify")
    if counts.min() < 2:
        names = ", ".join(str(label) for label in classes[counts < 2][:8])
        raise ValueError(
            f"cross-validation needs at least 2 samples of every class; there is only one of: "
            f"{names}. Remove these samples or merge the classes."
        )
    if counts.max() < FEWEST_OF_LARGEST_CLASS:
        raise ValueError(
            f"the largest class has {counts.max()} samples; nested cross-validation needs at "
            f"least {FEWEST_OF_LARGEST_CLASS}"
        )
