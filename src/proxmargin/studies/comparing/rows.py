"""The samples of a comparison, validated once, and the folds that they are split into."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, TimeSeriesSplit, check_cv
from sklearn.utils.multiclass import type_of_target

from proxmargin.data.inputs.aligned import by_sample, checked_groups, refuse_other_order
from proxmargin.data.inputs.kinds import Labels, Splits
from proxmargin.data.inputs.parameters import check_folds, check_number
from proxmargin.data.inputs.preprocessing import fitted_transformer
from proxmargin.data.inputs.targets import refuse_small_classes
from proxmargin.data.inputs.validation import validated, validated_weights
from proxmargin.runtime.types import Estimator, Record, Values

INNER_FOLDS = 3  # as few as tell a choice: each costs a path for every outer fold
# half of the largest class goes into a training part, which is then halved again
FEWEST_OF_LARGEST_CLASS = 4
LARGEST_SEED = 2**31 - 1
LISTED = 8  # labels in a message


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Samples with labels, weights and groups."""

    X: Any  # (n_samples, n_features) array or CSR matrix; as given, until `prepared` transforms it
    y: Values
    weights: Values | None = None  # above 0
    names: Values | None = None  # of the features, where the caller gave a data frame
    groups: Values | None = None  # samples of one are never on both sides of a split
    numbers: NDArray[np.intp] | None = None  # of rows in the caller's data; None if all are here
    ids: Values | None = None  # names of the samples, where the caller has such
    preprocess: Estimator | None = None  # a transformer that is not fitted
    outputs: tuple[str, ...] = ()  # names of what the transformer returns, fitted to all rows
    in_time: bool = False  # whether splits are to test later rows than they train on

    @classmethod
    def checked(
        cls,
        estimator: Estimator,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: Labels | None = None,
        preprocess: Estimator | None = None,
        ids: Any = None,
    ) -> LabelledRows:
        """The caller's data as the estimators use them; samples of weight zero are left out."""
        if y is None:
            raise ValueError("y must be the labels of the samples, got None")
        sample_weight = by_sample("sample_weight", sample_weight, X)
        groups, ids = by_sample("groups", groups, X), _checked_ids(by_sample("ids", ids, X), X)
        _refuse_measurements(y)
        refuse_other_order("y", y, X)
        if preprocess is not None:
            # the models' checks are for what the transformer returns
            validated(estimator, fitted_transformer(preprocess, X, y).transform(X), y)
            X = X if hasattr(X, "iloc") or hasattr(X, "tocsr") else np.asarray(X)
            y = np.asarray(y)
        else:
            try:
                X, y = validated(estimator, X, y)
            except ValueError as error:
                if "NaN" not in str(error) or "no label" in str(error):
                    raise
                raise ValueError(
                    f"{error}; preprocess=SimpleImputer(), of sklearn.impute, fills in missing "
                    "entries from the training rows of each fold (on the command line: --impute "
                    "median)"
                ) from error
        weights = validated_weights(sample_weight, X)
        # rows are taken out again and again, which only CSR does fast among the sparse formats
        X = X.tocsr() if hasattr(X, "tocsr") else X
        if preprocess is None:
            names = getattr(estimator, "feature_names_in_", None)
        else:
            names = np.array([str(name) for name in X.columns]) if hasattr(X, "columns") else None
        members = None if groups is None else checked_groups(groups, X.shape[0])[1]
        data = cls(X, y, weights, names, members, preprocess=preprocess, ids=ids)
        if weights is None or weights.all():
            return data
        kept = weights.nonzero()[0]
        return replace(data.rows(kept), numbers=kept)

    def named(self, names: Sequence[str]) -> LabelledRows:
        """The same samples with these names of the features."""
        if len(names) != self.n_features:
            raise ValueError(
                f"{len(names)} feature_names were given for {self.n_features} features"
            )
        repeated = [name for name, count in Counter(map(str, names)).items() if count > 1]
        if repeated:
            raise ValueError(
                f"feature_names: {repeated[0]!r} is the name of several features: give each its own"
            )
        return replace(self, names=np.array([str(name) for name in names], dtype=object))

    def rows(self, index: NDArray[np.intp]) -> LabelledRows:
        """Some of the samples."""
        names = ("weights", "groups", "ids")
        own: Record = {n: v if (v := getattr(self, n)) is None else v[index] for n in names}
        X = self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]
        return replace(self, X=X, y=self.y[index], **own)

    def prepared(self) -> tuple[LabelledRows, Estimator | None]:
        """These samples as models see them, and the transformer, fitted to them alone."""
        if self.preprocess is None:
            return self, None
        transformer = fitted_transformer(self.preprocess, self.X, self.y)
        return self.transformed(transformer), transformer

    def transformed(self, transformer: Estimator) -> LabelledRows:
        """These samples as a fitted transformer returns them; None leaves them as they are."""
        if transformer is None:
            return self
        X = transformer.transform(self.X)
        X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, np.float64)
        if not np.isfinite(X.data if hasattr(X, "tocsr") else X).all():
            raise ValueError("preprocess leaves entries that are not finite numbers")
        return replace(self, X=X, preprocess=None, outputs=self._names_after(transformer, X))

    def _names_after(self, transformer: Estimator, X: Values) -> tuple[str, ...]:
        """Names of the features that the transformer returns."""
        given = [f"x{j}" for j in range(self.n_features)] if self.names is None else self.names
        try:
            return tuple(map(str, transformer.get_feature_names_out(np.array(given, object))))
        except (AttributeError, ValueError):
            same = X.shape[1] == self.n_features
            return tuple(map(str, given if same else (f"f{j}" for j in range(X.shape[1]))))

    def seen(self) -> LabelledRows:
        """All samples as a report shows them: with the names of the transformed features."""
        ready, transformer = self.prepared()
        return self if transformer is None else replace(ready, names=np.array(ready.outputs))

    @property
    def n_samples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1]) if self.X.ndim > 1 else 1  # texts, before their transformer

    @property
    def is_sparse(self) -> bool:
        return hasattr(self.X, "tocsr")

    @property
    def shares(self) -> NDArray[np.float64]:
        """The weights of the samples; ones by default."""
        return np.ones(self.n_samples) if self.weights is None else self.weights


def _refuse_measurements(y: Labels) -> None:
    """Raise ValueError for labels that are measurements, and say what to do."""
    values = np.asarray(y)
    if values.dtype.kind != "f" or values.ndim != 1 or not np.isfinite(values).all():
        return  # what else is wrong is told by the validation
    if type_of_target(values) == "continuous":
        raise ValueError(
            f"the target holds measurements ({np.unique(values).size} different numbers such as "
            f"{values[values % 1 != 0][0]:g}), and compare is for classes: name another column "
            "(target=NAME), or make classes of it first, e.g. y > numpy.median(y)"
        )


def _checked_ids(ids: Any, X: Values) -> Values | None:
    """Those given, or the index of a data frame, unless that only counts the rows."""
    count = X.shape[0] if hasattr(X, "shape") else len(X)
    if ids is None:
        ids = getattr(X, "index", None)
        if not hasattr(ids, "get_indexer") or np.array_equal(ids, np.arange(count)):
            return None
    given = list(ids)
    if len(given) != count:
        raise ValueError(f"ids must be one name a sample, {count} here, got {len(given)}")
    found = np.empty(count, dtype=object)
    found[:] = [each if isinstance(each, int | str) else str(each) for each in given]
    return found


@dataclass(frozen=True, eq=False)
class TrainTestRows:
    """Row numbers of a training and a test part."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    repeat: int = 0


def outer_splits(
    data: LabelledRows, cv: Splits, repeats: int, seed: int
) -> tuple[list[TrainTestRows], list[str]]:
    """The folds of all repeats, and notes on how they differ from what was asked for. A number
    means shuffled stratified folds (or of whole groups), no more than the smallest class has
    samples. ValueError for too few samples or groups, or a training part that lacks a class."""
    check_folds("cv", cv)
    check_number("repeats", repeats, low=1, integer=True)
    classes, counts = np.unique(data.y, return_counts=True)
    _refuse_small(classes, counts)
    if isinstance(cv, int | np.integer):
        folds, notes = _number_of_folds(data, int(cv), classes, counts)
        further = np.random.RandomState(seed).randint(LARGEST_SEED, size=repeats - 1).tolist()
        splits = [
            each
            for repeat, own in enumerate([seed, *further])
            for each in _numbered(_shuffled(data, folds, own), repeat, data.n_samples)
        ]
    elif repeats > 1:
        raise ValueError(
            f"repeats={repeats} needs a number of folds for cv; a splitter repeats by itself"
        )
    else:
        splitter, notes = check_cv(cv, data.y, classifier=True), []
        splits = list(_numbered(splitter.split(data.X, data.y, data.groups), 0, data.n_samples))
        splits = _in_repeats(splits, data.n_samples)
    _refuse_lacking(data, splits)
    return splits, notes + _notes_on_tests(data, splits)


def inner_splits(data: LabelledRows, seed: int) -> list[TrainTestRows]:
    """Folds inside a training part; of rows in time each tests later rows than it trains on. Those
    whose own training part lacks a class are left out with a warning; ValueError where none is
    left, as all samples of a class are in one group."""
    classes, counts = np.unique(data.y, return_counts=True)
    folds = max(2, min(INNER_FOLDS, int(counts.min())))
    if data.groups is not None:
        folds = max(2, min(INNER_FOLDS, np.unique(data.groups).size))
    if data.in_time:
        parts = TimeSeriesSplit(folds).split(np.zeros(data.n_samples))
    else:
        parts = _shuffled(data, folds, seed)
    splits = list(_numbered(parts, 0, data.n_samples))
    lacking = [np.setdiff1d(classes, data.y[split.train]) for split in splits]
    kept = [split for split, each in zip(splits, lacking, strict=True) if not each.size]
    missing = [str(each[0]) for each in lacking if each.size]
    if not kept:
        if data.groups is None:
            what = "a training part that is split again needs"
            refuse_small_classes(classes, counts, 2, what, ", or ask for fewer folds")
        raise ValueError(
            "cv: the first rows of a training part are of one class: give fewer folds"
            if data.in_time
            else "groups: a training part cannot be split again so that every class is left in it; "
            "too few groups hold samples of the same class"
        )
    if missing:
        warnings.warn(
            f"settings are chosen on {len(kept)} of {folds} inner folds in some training parts: "
            f"the training rows of others have no sample of class {missing[0]}",
            UserWarning,
            stacklevel=2,
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
    data: LabelledRows, cv: int, classes: Values, counts: NDArray[np.intp]
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
                "2 of them in every training part (of two centres fit to one, and judge the other)"
            )
        if not split.test.size:
            raise ValueError(f"cv: fold {number + 1} holds out no rows to judge models by")


def _notes_on_tests(data: LabelledRows, splits: list[TrainTestRows]) -> list[str]:
    alone = [k + 1 for k, split in enumerate(splits) if np.unique(data.y[split.test]).size < 2]
    if not alone:
        return []
    which = ", ".join(map(str, alone[:LISTED])) + (", ..." if len(alone) > LISTED else "")
    return [f"folds that hold out a single class have no area under a curve: {which}"]


def _refuse_small(classes: Values, counts: NDArray[np.intp]) -> None:
    if classes.size < 2:
        raise ValueError(f"there is only one class ({classes[0]}): nothing to classify")
    # training parts of classes of two have one of each, which no second split leaves in
    alone = np.count_nonzero(counts == 2) > 1 and classes.size > 2
    refuse_small_classes(classes, counts, 3 if alone else 2, "cross-validation needs")
    if counts.max() < FEWEST_OF_LARGEST_CLASS:
        raise ValueError(
            f"the largest class has {counts.max()} samples; nested cross-validation needs at "
            f"least {FEWEST_OF_LARGEST_CLASS}"
        )
