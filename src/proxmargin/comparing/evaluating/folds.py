"""Stratified folds that exist for small classes too, and keep groups together."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv

from proxmargin.comparing.evaluating.data import LabelledRows
from proxmargin.inputs.validation import check_folds, check_number

__all__ = ["INNER_FOLDS", "TrainTestRows", "inner_splits", "outer_splits"]

INNER_FOLDS = 3  # as few as tell a choice: each costs a path for every outer fold
# half of the largest class goes into a training part, which is then halved again
FEWEST_OF_LARGEST_CLASS = 4
LARGEST_SEED = 2**31 - 1
LISTED = 8  # labels in a message


@dataclass(frozen=True, eq=False)
class TrainTestRows:
    """Row numbers of a training and a test part."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    repeat: int = 0


def outer_splits(
    data: LabelledRows, cv: Any, repeats: int, seed: int
) -> tuple[list[TrainTestRows], list[str]]:
    """The folds of all repeats, and notes on how they differ from what was asked for.

    Parameters
    ----------
    cv : int, or anything that scikit-learn takes for ``cv``
        A number means shuffled stratified folds, no more than the smallest class has samples; with
        groups, folds of whole groups.
    repeats : int
        With new random folds each.

    Raises
    ------
    ValueError
        There are too few samples of a class, or ``cv`` is no number of folds; a training part lacks
        a class.
    """
    check_folds("cv", cv)
    check_number("repeats", repeats, low=1, integer=True)
    classes, counts = np.unique(data.y, return_counts=True)
    _refuse_small(classes, counts)
    if not isinstance(cv, int | np.integer):
        if repeats > 1:
            raise ValueError(
                f"repeats={repeats} needs a number of folds for cv; a splitter repeats by itself"
            )
        splitter = check_cv(cv, data.y, classifier=True)
        splits = list(_numbered(splitter.split(data.X, data.y, data.groups), 0, data.n_samples))
        splits = _in_repeats(splits, data.n_samples)
        _refuse_lacking(data, splits)
        return splits, _notes_on_tests(data, splits)
    folds, notes = _number_of_folds(data, int(cv), classes, counts)
    seeds = [seed, *np.random.RandomState(seed).randint(LARGEST_SEED, size=repeats - 1).tolist()]
    splits = [
        each
        for repeat, own in enumerate(seeds)
        for each in _numbered(_shuffled(data, folds, own), repeat, data.n_samples)
    ]
    _refuse_lacking(data, splits)
    return splits, notes + _notes_on_tests(data, splits)


def inner_splits(data: LabelledRows, seed: int) -> list[TrainTestRows]:
    """Folds inside a training part; those whose own training part lacks a class are left out.

    Raises
    ------
    ValueError
        None is left, because all samples of a class are in one group.
    """
    classes, counts = np.unique(data.y, return_counts=True)
    folds = max(2, min(INNER_FOLDS, int(counts.min())))
    if data.groups is not None:
        folds = max(2, min(INNER_FOLDS, np.unique(data.groups).size))
    splits = _numbered(_shuffled(data, folds, seed), 0, data.n_samples)
    kept = [split for split in splits if np.unique(data.y[split.train]).size == classes.size]
    if not kept:
        raise ValueError(
            "groups: a training part cannot be split again so that every class is left in it; "
            "too few groups hold samples of the same class"
        )
    return kept


def _shuffled(data: LabelledRows, folds: int, seed: int) -> Iterator[tuple[Any, Any]]:
    kind = StratifiedKFold if data.groups is None else StratifiedGroupKFold
    splitter = kind(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # callers handle classes with fewer samples than folds
        warnings.simplefilter("ignore", UserWarning)
        yield from splitter.split(np.zeros(data.n_samples), data.y, data.groups)


def _numbered(parts: Iterable[tuple[Any, Any]], repeat: int, count: int) -> Iterator[TrainTestRows]:
    every = np.arange(count)  # of masks too
    for train, test in parts:
        yield TrainTestRows(every[train], every[test], repeat)


def _in_repeats(splits: list[TrainTestRows], count: int) -> list[TrainTestRows]:
    """The splits of a splitter, numbered by repeat where they are passes over all rows of equally
    many folds, as of a ``RepeatedStratifiedKFold``; else all of one."""
    repeats, tested = [], np.zeros(count, dtype=np.intp)
    for split in splits:
        tested[split.test] += 1
        repeats.append(int(tested.max()) - 1)
        if tested.max() - tested.min() > 1:  # a row is held out again before all others
            return splits
    if tested.min() != tested.max() or len({*np.bincount(repeats).tolist()}) > 1:
        return splits
    return [replace(each, repeat=repeat) for each, repeat in zip(splits, repeats, strict=True)]


def _number_of_folds(
    data: LabelledRows, cv: int, classes: NDArray[Any], counts: NDArray[np.intp]
) -> tuple[int, list[str]]:
    if data.groups is not None:
        groups = np.unique(data.groups).size
        if groups < 2:
            raise ValueError("groups: all samples are of one group, which cannot be split")
        folds, few = min(cv, groups), f"there are only {groups} groups"
    else:
        smallest = int(counts.argmin())
        folds = min(cv, int(counts[smallest]))
        few = f"the smallest class ({classes[smallest]}) has only {counts[smallest]} samples"
    asked = f"{cv} folds were asked for; {few}, so there are {folds}"
    return folds, [asked] if folds < cv else []


def _refuse_lacking(data: LabelledRows, splits: list[TrainTestRows]) -> None:
    """Raise ValueError if a training part lacks a class, or a test part has no row."""
    if not splits:
        raise ValueError("cv makes no folds: it is to make at least one")
    classes = np.unique(data.y)
    for number, split in enumerate(splits):
        missing = np.setdiff1d(classes, data.y[split.train])
        if missing.size:
            why = (
                "give fewer folds, or stratified ones"
                if data.groups is None
                else "its samples are all in the groups held out: give fewer folds, or merge groups"
            )
            raise ValueError(
                f"the training rows of fold {number + 1} have no sample of class {missing[0]!s}: "
                f"{why}"
            )
        if data.groups is not None and np.unique(data.groups[split.train]).size < 2:
            raise ValueError(
                f"groups: the training rows of fold {number + 1} are of one group, which cannot be "
                "split again: nested cross-validation needs 3 groups or more, and a cv that leaves "
                "2 of them in every training part"
            )
        if not split.test.size:
            raise ValueError(f"cv: fold {number + 1} holds out no rows to judge models by")


def _notes_on_tests(data: LabelledRows, splits: list[TrainTestRows]) -> list[str]:
    alone = [k + 1 for k, split in enumerate(splits) if np.unique(data.y[split.test]).size < 2]
    if not alone:
        return []
    which = ", ".join(map(str, alone[:LISTED])) + (", ..." if len(alone) > LISTED else "")
    return [f"folds that hold out a single class have no area under a curve: {which}"]


def _refuse_small(classes: NDArray[Any], counts: NDArray[np.intp]) -> None:
    if classes.size < 2:
        raise ValueError(f"there is only one class ({classes[0]}): nothing to classify")
    if counts.min() < 2:
        names = ", ".join(str(label) for label in classes[counts < 2][:LISTED])
        raise ValueError(
            f"cross-validation needs at least 2 samples of every class; there is only one of: "
            f"{names}. Remove these samples or merge the classes."
        )
    if counts.max() < FEWEST_OF_LARGEST_CLASS:
        raise ValueError(
            f"the largest class has {counts.max()} samples; nested cross-validation needs at "
            f"least {FEWEST_OF_LARGEST_CLASS}"
        )
