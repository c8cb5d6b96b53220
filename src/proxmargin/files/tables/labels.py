"""Labels, groups and weights of samples: what they must be, and what is hardly meant."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from proxmargin.files.errors import DataError, listed, pandas, plural, refused, warned
from proxmargin.files.tables.cells import example_of, is_number, is_text, slips
from proxmargin.files.tables.contents import Table
from proxmargin.runtime.memory import free_bytes, shortage
from proxmargin.runtime.types import Column, Frame, Values

# Beyond this, float64 no longer tells neighbouring integers apart.
_EXACT_INTEGERS = 2.0**53
# whole numbers that come back as they are written
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")
# What a target column is usually called; used when the caller names none.
TARGET_NAMES = frozenset({"target", "label", "class", "y"})
# what else columns of classes are called, of which none is a feature without a warning
OUTCOMES = TARGET_NAMES | {"diagnosis", "outcome", "status", "response", "disease", "event"}
# classes above which the last column is hardly the target, if no one has named it
MANY_CLASSES = 20
# vectors as long as the coefficients that a fit holds at once: 5 to 16, depending on the solver
_VECTORS = 8
_LABELS_LACK = (
    "remove these rows or fill in their labels, leave them out (unlabelled='drop'), take words "
    "such as NA for classes (na_labels=True), or choose another target column (target=NAME)"
)


def _refuse_rows(what: str, wrong: NDArray[np.bool_], rows: object, advice: str) -> None:
    """Refuse values that are ``what`` in some of these rows of the file."""
    if wrong.any():
        named = listed(np.asarray(rows)[wrong] + 1, quote=False)
        raise DataError(
            f"{what} in {plural(int(wrong.sum()), 'row')} (row {named}, counting data rows from 1);"
            f" {advice}."
        )


def _unusable(values: Values) -> NDArray[np.bool_]:
    """Where numbers are not finite, and text is missing."""
    numbers = values.dtype.kind in "fiub"
    return ~np.isfinite(values) if numbers else np.asarray(pandas().isna(values))


def written_labels(column: Column) -> Column:
    """Labels of a text table: whole numbers where all are written as such, else as written."""
    if not is_text(column.dtype) or column.hasnans:
        return column
    places, words = pandas().factorize(column)
    if not all(map(_WHOLE.fullmatch, words)):
        return column
    return pandas().Series(words.astype(np.int64)[places], column.index, name=column.name)


def class_labels(
    labels: Values, name: str, source: str, rows: object, elsewhere: str = ""
) -> Values:
    """The labels, with a warning of classes hardly meant. DataError: missing, or measurements."""
    what = f"{source}: the target {name!r} is missing or infinite"
    _refuse_rows(what, _unusable(labels), rows, _LABELS_LACK)
    if labels.dtype.kind not in "fiub":
        words = _as_words(labels, name, source)
        classes = np.unique(words).tolist()
        # beyond 2**53 no number has a fraction
        if all(map(is_number, classes)) and any(float(word) % 1 > 0 for word in classes):
            _refuse_measurements(words.astype(np.float64), name, source, elsewhere)
        doubts = slips(classes, name)
        if doubts:
            warned("doubtful_classes", source, name=name, doubts=doubts)
        return words
    _refuse_measurements(labels, name, source, elsewhere)
    exact = labels.astype(np.float64)  # half precision has no number as large
    whole = np.all(np.abs(exact) < _EXACT_INTEGERS) and np.all(exact == np.trunc(exact))
    return labels.astype(np.int64) if labels.dtype.kind == "f" and whole else labels


def _refuse_measurements(labels: Values, name: str, source: str, elsewhere: str) -> None:
    # numbers beyond the integers are compared with integers, and scikit-learn warns when most
    # labels are distinct: small tables are allowed to be
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)
        kind = type_of_target(labels)
    if kind == "continuous":
        raise refused(
            "measured_labels", source, name=name, n=len(np.unique(labels)), elsewhere=elsewhere
        )


def _as_words(labels: Values, name: str, source: str, role: str = "target") -> NDArray[np.str_]:
    """Labels as an array of strings, each of which takes as much room as the longest."""
    places, words = pandas().factorize(labels)
    lengths = np.fromiter(map(len, words), dtype=np.int64)[places]
    # held at once: the words, those without blanks around them, and those in their order
    short = shortage(3 * 4 * int(lengths.max(initial=0)) * lengths.size)
    if short:
        raise refused(
            "long_label",
            source,
            role=role,
            name=name,
            n=lengths.max(),
            row=lengths.argmax() + 1,
            short=short,
        )
    return np.asarray(words).astype(str)[places]


def other_classes(y: Values, names: Sequence[str], source: str) -> NDArray[np.bool_]:
    """Which samples are of none of these classes."""
    words = y.astype(str)
    unknown = sorted(set(map(str, names)) - set(words.tolist()))
    if unknown:
        classes = np.unique(words)
        raise refused("no_class", source, unknown=unknown, classes=classes)
    kept: NDArray[np.bool_] = ~np.isin(words, list(map(str, names)))
    if not kept.any():
        raise DataError(f"{source}: no sample is of another class (drop_classes=NAME).")
    return kept


def class_columns(frame: Frame) -> list[str]:
    """Columns that may hold classes: first those of a usual name, of text, the last ones."""
    found = []
    for j, name in enumerate(frame.columns):
        column = frame.iloc[:, j].dropna()
        counts = column.value_counts()
        text = is_text(column.dtype)
        whole = text or column.dtype.kind in "ib" or bool((column % 1 == 0).all())
        several = 2 * len(counts) <= len(column) if text else len(counts) and counts.min() > 1
        if whole and several and 2 <= len(counts) <= MANY_CLASSES:
            found.append((name.lower() not in TARGET_NAMES, not text, -j, name))
    return [str(name) for *_, name in sorted(found)]


def refuse_one_class(y: Values, name: str, source: str) -> None:
    """Refuse labels that are all the same."""
    if len(y) > 1 and (y == y[0]).all():
        raise refused("one_class", source, name=name, y=str(y[0]))


def warn_of_default_target(table: Table, source: str, left_out: Sequence[str]) -> None:
    """Warn where the column that is the target by its name or place is hardly one of classes, or so
    as others are left out."""
    name = table.target_name
    if table.y is None or name is None:
        return
    columns = dict.fromkeys(each.partition("=")[0] for each in table.feature_names or ())
    others = [column for column in columns if column.lower() in OUTCOMES]
    if left_out and name.lower() not in OUTCOMES:
        warned("default_instead", source, name=name, left_out=left_out)
        return
    if others and name.lower() not in OUTCOMES:
        warned("default_beside", source, name=name, others=others)
        return
    classes, counts = np.unique(table.y, return_counts=True)
    if classes.size > MANY_CLASSES or (classes.size > 2 and counts.min() == 1):
        place = "column" if name.lower() in TARGET_NAMES else "last column"
        warned(
            "default_doubtful",
            source,
            place=place,
            name=name,
            n=classes.size,
            alone=np.count_nonzero(counts == 1),
        )


def group_names(column: Any, source: str) -> Values:
    """The group of each sample: numbers, or text. DataError: one is missing or infinite."""
    groups, role = column.to_numpy(), "column of groups"
    what = f"{source}: the {role} {column.name!r} is missing or infinite"
    advice = "remove these rows or fill in their groups"
    _refuse_rows(what, _unusable(groups), column.index, advice)
    return groups if groups.dtype.kind in "fiub" else _as_words(groups, column.name, source, role)


def sample_weights(column: Column, source: str) -> NDArray[np.float64]:
    """The weights as floats. DataError: one is no finite number >= 0, or all are zero."""
    if is_text(column.dtype):
        raise refused("words_for_weights", source, cell=example_of(column))
    weights: NDArray[np.float64] = column.to_numpy(dtype=np.float64)
    wrong = {"missing": np.isnan(weights), "infinite": np.isinf(weights), "negative": weights < 0}
    for kind, where in wrong.items():
        what = f"{source}: the weights {column.name!r} are {kind}"
        _refuse_rows(what, where, column.index, "a weight of 0 leaves a row out")
    if not weights.any():
        raise DataError(f"{source}: the weights {column.name!r} are all zero.")
    return weights


def refuse_too_wide(source: str, n_features: int, y: Values) -> None:
    """Refuse features and classes whose coefficients do not fit into the free memory."""
    vector = 8 * _VECTORS * n_features
    if vector * max(len(y), 1) <= free_bytes():
        return  # however many classes there are
    classes = int(np.unique(y).size)
    short = shortage(vector * (1 if classes <= 2 else classes))
    if short:
        raise refused("wide_model", source, n_features=n_features, classes=classes, short=short)
