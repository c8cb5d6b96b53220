"""Labels, groups and weights of samples."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.contents import Table, is_number, is_text
from proxmargin.files.tables.levels import example_of, slips
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.memory import free_bytes, shortage

# Beyond this, float64 no longer tells neighbouring integers apart.
_EXACT_INTEGERS = 2.0**53

# whole numbers that come back as they are written
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")

# What a target column is usually called; used when the caller names none.
TARGET_NAMES = frozenset({"target", "label", "class", "y"})
# what else columns of classes are called, of which none is a feature without a warning
_OUTCOMES = TARGET_NAMES | {"diagnosis", "outcome", "status", "response", "disease", "event"}
# classes above which the last column is hardly the target, if no one has named it
MANY_CLASSES = 20


def written_labels(column: Any) -> Any:
    """Labels of a text table: whole numbers where all are written as such, else as written."""
    places, words = pandas().factorize(column)
    if column.isna().any() or not all(_WHOLE.fullmatch(word) for word in words):
        return column
    return pandas().Series(words.astype(np.int64)[places], column.index, name=column.name)


def class_labels(
    labels: NDArray[Any], name: str, source: str, rows: Any = None, elsewhere: str = ""
) -> NDArray[Any]:
    """The labels, one per sample: str, bool or integers (also of whole floats); other numbers as
    they are. DataError: one is missing or infinite, or they are measurements; ``rows``: the numbers
    of the samples in the file; ``elsewhere``: where they may be instead. Warns once of classes that
    differ in blanks, case or the way a number is written only, or are words for a missing value."""
    way_out = (
        ", leave them out (unlabelled='drop'), take words such as NA for classes (na_labels=True), "
        "or choose another target column (target=NAME)"
    )
    _refuse_missing(labels, name, source, "target", "labels", way_out, rows)
    if labels.dtype.kind not in "fiub":
        words = _as_words(labels, name, source)
        classes = np.unique(words).tolist()
        # beyond 2**53 no number has a fraction
        if all(map(is_number, classes)) and any(float(word) % 1 > 0 for word in classes):
            _refuse_measurements(words.astype(np.float64), name, source, elsewhere)
        _warn_of_slips(classes, name, source)
        return words
    _refuse_measurements(labels, name, source, elsewhere)
    exact = labels.astype(np.float64)  # half precision has no number as large
    whole = np.all(np.abs(exact) < _EXACT_INTEGERS) and np.all(exact == np.trunc(exact))
    return labels.astype(np.int64) if labels.dtype.kind == "f" and whole else labels


def _refuse_measurements(labels: NDArray[Any], name: str, source: str, elsewhere: str) -> None:
    # numbers beyond the integers are compared with integers, and scikit-learn warns when most
    # labels are distinct: small tables are allowed to be
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        kind = type_of_target(labels)
    if kind == "continuous":
        raise DataError(
            f"{source}: the target {name!r} holds {plural(len(np.unique(labels)), 'value')} "
            "that are not whole numbers, which looks like a measurement and not like classes; "
            "choose another target column (target=NAME), or turn the values into classes "
            f"first{elsewhere}."
        )


def other_classes(y: NDArray[Any], names: Sequence[str], source: str) -> NDArray[np.bool_]:
    """Which samples are of none of these classes."""
    words = y.astype(str)
    unknown = sorted(set(map(str, names)) - set(words.tolist()))
    if unknown:
        classes = np.unique(words)
        raise DataError(
            f"{source}: there is no class {listed(unknown)}; classes are {listed(classes)} "
            "(drop_classes=NAME)."
        )
    kept: NDArray[np.bool_] = ~np.isin(words, list(map(str, names)))
    if not kept.any():
        raise DataError(f"{source}: no sample is of another class (drop_classes=NAME).")
    return kept


def warn_of_default_target(table: Table, source: str) -> None:
    """Warn where the column that is the target by its name or place is hardly one of classes."""
    name = table.target_name
    if table.y is None or name is None:
        return
    others = [] if name.lower() in _OUTCOMES else _outcomes(table.feature_names or ())
    if others:
        warnings.warn(
            f"{source}: the last column {name!r} is taken for the target, and {listed(others)} for "
            "a feature; name the one that has the labels (target=NAME).",
            UserWarning,
            stacklevel=users_level(),
        )
        return
    classes, counts = np.unique(table.y, return_counts=True)
    if classes.size > MANY_CLASSES or (classes.size > 2 and counts.min() == 1):
        place = "column" if name.lower() in TARGET_NAMES else "last column"
        warnings.warn(
            f"{source}: the {place} {name!r} is taken for the target, and has {classes.size} "
            f"classes, {np.count_nonzero(counts == 1)} of them with one sample; if another column "
            "has the labels, name it (target=NAME).",
            UserWarning,
            stacklevel=users_level(),
        )


def _outcomes(features: Iterable[str]) -> list[str]:
    """The columns of features, ``column=level`` for text, that are called as labels are."""
    columns = dict.fromkeys(name.partition("=")[0] for name in features)
    return [column for column in columns if column.lower() in _OUTCOMES]


def group_names(column: Any, source: str) -> NDArray[Any]:
    """The group of each sample: numbers, or text as it is written. Raises DataError: the group of a
    sample is missing or infinite."""
    groups, role = column.to_numpy(), "column of groups"
    _refuse_missing(groups, column.name, source, role, "groups", rows=column.index)
    return groups if groups.dtype.kind in "fiub" else _as_words(groups, column.name, source, role)


def _as_words(
    labels: NDArray[Any], name: str, source: str, role: str = "target"
) -> NDArray[np.str_]:
    """Labels as an array of strings, each of which takes as much room as the longest."""
    lengths = np.fromiter(map(len, labels.tolist()), dtype=np.int64)
    # held at once: the words, those without blanks around them, and those in their order
    short = shortage(3 * 4 * int(lengths.max(initial=0)) * lengths.size)
    if short:
        raise DataError(
            f"{source}: the {role} {name!r} has a label of {lengths.max()} characters in "
            f"row {lengths.argmax() + 1} (counting data rows from 1); labels of that length need "
            f"{short}: choose another column, or shorten the label."
        )
    return labels.astype(str)


def _warn_of_slips(classes: list[str], name: str, source: str) -> None:
    doubts = slips(classes)
    if doubts:
        warnings.warn(
            f"{source}: of the classes in the target {name!r}, {listed(doubts, quote=False)}; "
            "each is a class of its own.",
            UserWarning,
            stacklevel=users_level(),
        )


def _refuse_missing(
    labels: NDArray[Any],
    name: str,
    source: str,
    role: str,
    entries: str,
    way_out: str = "",
    rows: Any = None,
) -> None:
    # text is missing where it is no string
    unusable = np.flatnonzero(
        ~np.isfinite(labels)
        if labels.dtype.kind in "fiub"
        else [not isinstance(label, str) for label in labels.tolist()]
    )
    if unusable.size:
        unusable = unusable if rows is None else np.asarray(rows)[unusable]
        raise DataError(
            f"{source}: the {role} {name!r} is missing or infinite in "
            f"{plural(unusable.size, 'row')} (row {listed(unusable + 1, quote=False)}, counting "
            f"data rows from 1); remove these rows or fill in their {entries}{way_out}."
        )


def sample_weights(column: Any, source: str) -> NDArray[np.float64]:
    """The weights, one a sample, as floats. Raises DataError: a weight is missing, infinite,
    negative or no number, by data row (from 1); or all are zero."""
    if is_text(column.dtype):
        raise DataError(
            f"{source}: the weights must be numbers: {example_of(column)}, counting data rows from "
            "1."
        )
    weights = column.to_numpy(dtype=np.float64)
    for kind, wrong in (
        ("missing", np.isnan(weights)),
        ("infinite", np.isinf(weights)),
        ("negative", weights < 0),
    ):
        rows = column.index[wrong]
        if rows.size:
            raise DataError(
                f"{source}: the weights {column.name!r} are {kind} in {plural(rows.size, 'row')} "
                f"(row {listed(rows + 1, quote=False)}, counting data rows from 1); a weight of 0 "
                "leaves a row out."
            )
    if not weights.any():
        raise DataError(f"{source}: the weights {column.name!r} are all zero.")
    return weights


# vectors as long as the coefficients that a fit holds at once: 5 to 16, depending on the solver
_VECTORS = 8
_REMEDY = "choose fewer features, check that the target holds classes, or use more memory"


def refuse_too_wide(
    source: str, n_features: int, y: NDArray[Any], last_feature: Callable[[], str] | None = None
) -> None:
    """Refuse features and classes whose coefficients do not fit into the free memory.
    ``last_feature`` says where the last one is from, where one entry makes many features."""
    vector = 8 * _VECTORS * n_features
    if vector * max(len(y), 1) <= free_bytes():
        return  # however many classes there are
    classes = int(np.unique(y).size)
    short = shortage(vector * (1 if classes <= 2 else classes))
    if short:
        remedy = last_feature() if last_feature else _REMEDY
        raise DataError(
            f"{source}: a model of {plural(n_features, 'feature')} and {classes} classes needs "
            f"{short}; {remedy}."
        )
