"""From columns to labels, groups and weights of the samples."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.contents import Column, Table, is_number
from proxmargin.models.fitting.frames import users_level
from proxmargin.runtime.memory import free_bytes, shortage

# Beyond this, float64 no longer tells neighbouring integers apart.
_EXACT_INTEGERS = 2.0**53

_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|infinity)", re.IGNORECASE)
# digits that a conversion to a number would lose: leading zeros, and those beyond 18
_CODE = re.compile(r"[+-]?(0\d+|\d{19,})")
_TRUTH = {"True": True, "TRUE": True, "true": True, "False": False, "FALSE": False, "false": False}

# What a target column is usually called; used when the caller names none.
TARGET_NAMES = frozenset({"target", "label", "class", "y"})
# classes above which the last column is hardly the target, if no one has named it
_MANY_CLASSES = 20

# what people write where they do not know; CSV files have some of these as missing values already
_UNKNOWN = frozenset(
    {"", "?", "-", ".", "*", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "missing"}
)


def written_labels(column: Column) -> Column:
    """Text as numbers or booleans where all of it is that and no digit gets lost."""
    if column.missing.any():
        return column  # these are no labels yet
    places, words = pandas().factorize(column.values)
    meant = _meant([word.strip() for word in words])
    return Column(column.name, column.values if meant is None else meant[places], column.missing)


def _meant(words: list[str]) -> NDArray[Any] | None:
    """The numbers or booleans that distinct words denote, or None if they are just words."""
    if any(_CODE.fullmatch(word) for word in words):
        return None
    if all(word in _TRUTH for word in words):
        return np.array([_TRUTH[word] for word in words])
    if all(_WHOLE.fullmatch(word) for word in words):
        return np.array([int(word) for word in words])
    if all(_NUMBER.fullmatch(word) for word in words):
        return np.array([float(word) for word in words])
    return None


def class_labels(column: Column, source: str) -> NDArray[Any]:
    """The labels, one per sample: str, bool or integers; other numbers stay as they are.

    Whole numbers stored as floats (svmlight's ``+1.0``) become integers.

    Raises DataError: a label is missing or infinite, or the column holds measurements and not
    classes. Warns UserWarning: once, of classes that are perhaps none: those that differ only in
    blanks or case, and words for a missing value.
    """
    _refuse_missing(
        column, source, "target", "labels", ", or choose another target column (target=NAME)"
    )
    if not column.is_numeric:
        words = _as_words(column, source)
        _warn_of_slips(np.unique(words).tolist(), column.name, source)
        return words
    labels = column.values
    # numbers beyond the integers are compared with integers, and scikit-learn warns when most
    # labels are distinct: small tables are allowed to be
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        kind = type_of_target(labels)
    if kind == "continuous":
        raise DataError(
            f"{source}: the target {column.name!r} holds {plural(len(np.unique(labels)), 'value')} "
            "that are not whole numbers, which looks like a measurement and not like classes; "
            "choose another target column (target=NAME), or turn the values into classes first."
        )
    exact = labels.astype(np.float64)  # half precision has no number as large
    whole = np.all(np.abs(exact) < _EXACT_INTEGERS) and np.all(exact == np.trunc(exact))
    return labels.astype(np.int64) if labels.dtype.kind == "f" and whole else labels


def warn_of_default_target(table: Table, source: str) -> None:
    """Warn where the last column, which no one has named, is hardly one of classes."""
    name = table.target_name
    if table.y is None or name is None or name.lower() in TARGET_NAMES:
        return
    classes, counts = np.unique(table.y, return_counts=True)
    if classes.size > _MANY_CLASSES or (classes.size > 2 and counts.min() == 1):
        warnings.warn(
            f"{source}: the last column, {name!r}, is taken for the target, and has {classes.size} "
            f"classes, {np.count_nonzero(counts == 1)} of them with one sample; if another column "
            "has the labels, name it (target=NAME).",
            UserWarning,
            stacklevel=users_level(),
        )


def group_names(column: Column, source: str) -> NDArray[Any]:
    """The group of each sample: numbers, or text as it is written. Raises DataError: the group of a
    sample is missing or infinite."""
    _refuse_missing(column, source, "column of groups", "groups")
    return column.values if column.is_numeric else _as_words(column, source, "column of groups")


def _as_words(column: Column, source: str, role: str = "target") -> NDArray[np.str_]:
    """Labels as an array of strings, each of which takes as much room as the longest."""
    lengths = np.fromiter(map(len, column.values.tolist()), dtype=np.int64)
    # held at once: the words, those without blanks around them, and those in their order
    short = shortage(3 * 4 * int(lengths.max(initial=0)) * lengths.size)
    if short:
        raise DataError(
            f"{source}: the {role} {column.name!r} has a label of {lengths.max()} characters in "
            f"row {lengths.argmax() + 1} (counting data rows from 1); labels of that length need "
            f"{short}: choose another column, or shorten the label."
        )
    return column.values.astype(str)


def _warn_of_slips(classes: list[str], name: str, source: str) -> None:
    alike: dict[str, list[str]] = {}
    for label in classes:
        alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
    doubts = [
        f"{' and '.join(map(repr, same))} differ only in blanks or case"
        for same in alike.values()
        if len(same) > 1
    ] + [
        f"{label!r} looks like a missing value"
        for label in classes
        if label.strip().casefold() in _UNKNOWN
    ]
    if doubts:
        warnings.warn(
            f"{source}: of the classes in the target {name!r}, {listed(doubts, quote=False)}; "
            "each is a class of its own.",
            UserWarning,
            stacklevel=users_level(),
        )


def _refuse_missing(
    column: Column, source: str, role: str, entries: str, way_out: str = ""
) -> None:
    unusable = np.flatnonzero(column.missing | column.infinite())
    if unusable.size:
        raise DataError(
            f"{source}: the {role} {column.name!r} is missing or infinite in "
            f"{plural(unusable.size, 'row')} (row {listed(unusable + 1, quote=False)}, counting "
            f"data rows from 1); remove these rows or fill in their {entries}{way_out}."
        )


def sample_weights(column: Column, source: str) -> NDArray[np.float64]:
    """The weights, one a sample, as floats. Raises DataError: a weight is missing, infinite,
    negative or no number, by data row (from 1); or all are zero."""
    if not column.is_numeric:
        numbers = np.array([is_number(cell) for cell in column.values.tolist()], dtype=bool)
        row = int(np.flatnonzero(~column.missing & ~numbers)[0])
        raise DataError(
            f"{source}: the weights {column.name!r} must be numbers, and row {row + 1} (counting "
            f"data rows from 1) holds {str(column.values[row])[:40]!r}."
        )
    weights = np.where(column.missing, 0.0, column.values.astype(np.float64))
    for kind, wrong in (
        ("missing", column.missing),
        ("infinite", column.infinite()),
        ("negative", weights < 0),
    ):
        rows = np.flatnonzero(wrong)
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
    """Refuse features and classes whose coefficients cannot be fitted in the free memory.

    ``y``: (n_samples,) labels. ``last_feature``: says where the last feature is from and what to
    do, where one entry makes many features.
    """
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
