"""Labels, groups and weights of samples, and rows of one table for the samples of another one."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from proxmargin.files.errors import DataError, listed, pandas, plural, warn
from proxmargin.files.tables.contents import Table, TableRequest, is_number, is_text
from proxmargin.files.tables.levels import example_of, normal_forms, slips
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
        warn(
            f"{source}: the last column {name!r} is taken for the target, and {listed(others)} for "
            "a feature; name the one that has the labels (target=NAME)."
        )
        return
    classes, counts = np.unique(table.y, return_counts=True)
    if classes.size > MANY_CLASSES or (classes.size > 2 and counts.min() == 1):
        place = "column" if name.lower() in TARGET_NAMES else "last column"
        warn(
            f"{source}: the {place} {name!r} is taken for the target, and has {classes.size} "
            f"classes, {np.count_nonzero(counts == 1)} of them with one sample; if another column "
            "has the labels, name it (target=NAME)."
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
        warn(
            f"{source}: of the classes in the target {name!r}, {listed(doubts, quote=False)}; "
            "each is a class of its own."
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


Found = dict[str, Any]  # Series by the role of their column


def best_key(frame: Any, names: Any) -> int | None:
    """The column of text whose cells are most often names of the samples; None: none has one."""
    shared = []
    for j in frame.columns:
        column, wanted = normal_forms(frame[j].str.strip(), names)
        shared.append(column[column.isin(wanted)].nunique())
    best = int(np.argmax(shared))
    return best if shared[best] else None


def partners(
    samples: Any, found: Found, key: str, source: str, of: str, request: TableRequest
) -> tuple[Found, list[str], int]:
    """The columns ``found``, of which ``ids`` is the one called ``key``, in the order of the
    ``samples`` of another table ``of``; notes on names without a partner; and how many samples
    have none. Raises DataError: a name stands twice, or a sample has no row and needs one."""
    written = found.pop("ids").str.strip()
    _refuse_twice(written, key, source)
    names, wanted = normal_forms(written, samples)
    notes = []
    others = written[names.notna() & ~names.isin(wanted)]
    if len(others):
        notes.append(
            f"{source}: {plural(len(others), 'row')} without a sample in {of}: {listed(others)}"
        )
    lost = samples[~wanted.isin(names)]
    if len(lost):
        notes.append(f"{source}: no row for {plural(len(lost), 'sample')} of {of}: {listed(lost)}")
        if len(lost) == len(samples):
            raise DataError(
                f"{notes[-1]}; its column {key!r} has {listed(written.dropna())}: name another "
                "column (ids=NAME)."
            )
        if request.unlabelled == "error" and request.labelled:
            raise DataError(
                f"{notes[-1]}; leave these samples out (unlabelled='drop'), or name other "
                "columns (ids=NAME)."
            )
    rows = pandas().Index(names).get_indexer(wanted)
    taken = {role: c.take(rows.clip(0)).set_axis(samples.index) for role, c in found.items()}
    same = written.take(rows.clip(0)).set_axis(samples.index)
    other = (rows >= 0) & (same != samples).fillna(False).to_numpy()
    if other.any():
        notes.append(
            f"{source}: {plural(int(other.sum()), 'name')} written otherwise: "
            f"{same[other].iloc[0]!r} is {samples[other].iloc[0]!r}"
        )
    if (rows < 0).any():
        taken = {role: column.where(rows >= 0) for role, column in taken.items()}
    return taken, notes, len(lost)


def _refuse_twice(names: Any, key: str, source: str) -> None:
    repeated = names[names.duplicated() & names.notna()].unique()
    if len(repeated):
        raise DataError(
            f"{source}: the column {key!r} must name each sample once, and has {listed(repeated)} "
            "more than once; remove the other rows, or name another column (ids=NAME)."
        )
