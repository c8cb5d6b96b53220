"""Reading a data file into features and labels, and what it holds, readable or not."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from proxmargin.data.inputs.parameters import check_choice
from proxmargin.data.inputs.preprocessing import SeenLevels, levels_of
from proxmargin.files.errors import DataError, pandas, refused, said
from proxmargin.files.tables.cells import MISSING, is_text
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import DUPLICATES, USUAL, Dialect, Table, TableRequest
from proxmargin.files.tables.features import (
    NOT_FILLED,
    are_ids,
    checked,
    extremes,
    far_cells,
    known_levels,
    suspected_codes,
)
from proxmargin.files.tables.labels import OUTCOMES, class_columns
from proxmargin.files.tables.matrices import PlainMatrix
from proxmargin.files.tables.samples import model_table, training_table
from proxmargin.files.tables.sources import TableSource, open_source, transposed
from proxmargin.files.tables.spelling import spelt_otherwise, told_otherwise
from proxmargin.models.fitting.registry import model_names
from proxmargin.runtime.memory import shortage
from proxmargin.runtime.types import Estimator, Record


def read_data(
    source: str | os.PathLike[str],
    *,
    target: str | int | None = None,
    ids: str | int | None = None,
    ignore: Sequence[str | int] = (),
    groups: str | int | None = None,
    weights: str | int | None = None,
    labels: str | os.PathLike[str] | None = None,
    encode: bool = False,
    normalize_levels: bool = False,
    blanks: bool = False,
    labelled: bool = True,
    unlabelled: str = "error",
    na_labels: bool = False,
    drop_classes: Sequence[str] = (),
    duplicates: str = "error",
    dialect: Dialect = USUAL,
) -> Table:
    """The samples and labels of a data file or an embedded set.

    Parameters
    ----------
    source : str or path
        A file in svmlight, CSV, TSV, Parquet, Arrow/Feather or NPZ format, known by its suffix,
        or one of ``breast_cancer``, ``digits``, ``iris``, ``wine``.
    target : str or int, optional
        The column with the labels, by name or by position (0 is the first, -1 the last). By
        default the only column called target, label, class or y (in any case); otherwise the last.
    ids : str or int, optional
        The column with the names of the samples; it is no feature. By default a first column
        without a name, or one of text that is different in each row.
    ignore : sequence of str or int
        Columns that are no features: names, positions, ranges of positions such as ``'2-5'``, and
        patterns such as ``'Unnamed*'``.
    groups : str or int, optional
        A column that says which samples belong together (patients, batches); it is no feature.
    weights : str or int, optional
        A column with the weights of the samples, numbers >= 0; it is no feature.
    labels : str or path, optional
        A second table with the target, the groups and the weights, joined by the names of the
        samples.
    encode : bool
        Turn columns of text into one feature ``column=level`` per level. Otherwise they are
        refused.
    normalize_levels : bool
        Join levels that differ only in blanks, case or number format.
    blanks : bool
        Keep missing cells of features, as NaN and as zeros in all levels of a column of text.
        Otherwise they are refused.
    labelled : bool
        Whether labels are needed. Where not, a target is used if it is named or obvious, and
        the last column is not taken for one.
    unlabelled : {'error', 'drop'}
        Whether rows without a label are refused or left out.
    na_labels : bool
        Whether labels such as NA are a class; only empty ones are missing then.
    drop_classes : sequence of str
        Classes whose samples are left out.
    duplicates : {'error', 'suffix', 'mean', 'first'}
        Whether columns of one name are refused, numbered, averaged, or only the first one is kept.
    dialect : Dialect
        How a text table is written: separator, decimal mark, encoding, header.

    Notes
    -----
    Labels of a text table are whole numbers where all are written as such, and otherwise text as
    it is written: true, 1.0, 01.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        The file cannot be read, or is no table for classification; the message says why.

    See Also
    --------
    open_dataset : Data that do not fit into memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from proxmargin import read_data
    >>> file = Path(tempfile.mkdtemp(), "genes.csv")
    >>> _ = file.write_text("g1,g2,class\\n0.1,2.0,a\\n0.7,1.0,b\\n0.2,2.5,a\\n")
    >>> table = read_data(file)
    >>> table.X.shape, table.y.tolist(), list(table.feature_names)
    ((3, 2), ['a', 'b', 'a'], ['g1', 'g2'])
    """
    for name, given, choices in (
        ("unlabelled", unlabelled, ("error", "drop")),
        ("duplicates", duplicates, DUPLICATES),
    ):
        check_choice(name, given, choices)
    request = TableRequest(
        target=target,
        encode=encode,
        labelled=labelled,
        ignore=_several(ignore),
        groups=groups,
        weights=weights,
        blanks=blanks,
        ids=ids,
        unlabelled=unlabelled,
        drop_classes=_several(drop_classes),
        duplicates=duplicates,
        normalize_levels=normalize_levels,
    )
    if na_labels:
        dialect = replace(dialect, na_text=True)
    samples = open_source(source, dialect)
    if labels is None:
        if isinstance(samples, PlainMatrix):
            return checked(samples.table(request))
        return checked(training_table(samples, request))
    named, others = _named(samples), _opened_labels(labels, dialect)
    try:
        return checked(training_table(named, request, others))
    except DataError as error:
        hint = _swapped(named, others, request)
        raise DataError(f"{str(error)[:-1]}{hint and f'; {hint}'}.") from None


def _opened_labels(labels: str | os.PathLike[str], dialect: Dialect) -> NamedColumns:
    """The table of labels beside one that is written so."""
    same = {name: getattr(dialect, name) for name in ("encoding", "missing", "na_text")}
    return _named(open_source(labels, Dialect(**same), beside=True))


def _swapped(samples: NamedColumns, labels: NamedColumns, request: TableRequest) -> str:
    """What to type where the two tables can be read the other way round, with classes as labels."""
    for turned in (False, True):
        with warnings.catch_warnings(), suppress(DataError):
            warnings.simplefilter("ignore")
            data = transposed(labels, USUAL) if turned else labels
            every = range(len(samples.names))
            classes = class_columns(samples.load(every).set_axis(samples.called, axis=1))
            target = next(iter(classes), None) if request.target is None else request.target
            wanted = replace(request, unlabelled="drop", target=target)
            y = training_table(data, wanted, samples).y
            if y is not None and (y.dtype.kind == "U" or request.target is not None):
                more = ", transpose=True" if turned else ""
                return said("swapped", data=labels.source, more=more, labels=samples.source)
    return ""


def _named(source: TableSource) -> NamedColumns:
    if isinstance(source, NamedColumns):
        return source
    raise refused("matrix_without_names", source.source)


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, str | int) else tuple(given)


def read_for_model(
    source: str | os.PathLike[str],
    model: Estimator,
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    ids: str | int | None = None,
    groups: str | int | Literal[True] | None = None,
    labels: str | os.PathLike[str] | None = None,
    unlabelled: str = "error",
    unseen: str = "error",
    normalize_levels: bool = False,
    duplicates: str = "error",
    dialect: Dialect = USUAL,
) -> Table:
    """The columns that a model was fitted to, in its order, found by name, or as many; ``groups``:
    True for those of the training table, where they are there; ``labels``: as of `read_data`;
    ``unlabelled``: where some rows have a label, 'drop' leaves out others, or else none has one;
    ``unseen``: whether levels that are not known are refused ('error'), 'zero' in all features, or
    'missing'. What cells stood for in the training table holds here, too. DataError: columns are
    missing."""
    check_choice("unseen", unseen, ("error", "zero", "missing"))
    check_choice("duplicates", duplicates, DUPLICATES)
    kept = getattr(model, "table_options_", {})
    names = getattr(model, "feature_names_in_", None)
    first = getattr(model, "_predicting", [model])[0]  # of a calibrated model
    kind = type(getattr(model, "model", model)).__name__
    again = f"fit DATA --impute median --model {kind}"
    again = again if kind in model_names() else "compare DATA --impute median"
    levels: dict[str, SeenLevels] = {}
    for fitted in getattr(model, "_predicting", [model]):
        for j, each in levels_of(fitted).items():  # of which folds may have other ones
            name = str(j if names is None else names[j])
            seen = dict.fromkeys((*levels.get(name, each).known, *each.known))
            levels[name] = each._replace(known=[*seen])
    words = [w for each in levels.values() if each.is_text for w in each.known]
    if any(word in MISSING or word != word.lstrip() for word in words):
        dialect = replace(dialect, exact=True)
    wanted = TableRequest(
        feature_names=None if names is None else [str(name) for name in names],
        signs=kept.get("signs", ()),
        n_features=int(model.n_features_in_),
        labelled=False,
        target=target,
        ignore=_several(ignore),
        ids=ids,
        groups=None if groups is True else groups,
        unlabelled=unlabelled,
        blanks=getattr(first, "fills_blanks", False),
        levels=levels,
        roles={
            role: name
            for role, name in getattr(model, "table_roles_", {}).items()
            if role != "groups" or groups is True
        },
        not_filled=NOT_FILLED.format(again),
        unseen=unseen,
        normalize_levels=normalize_levels or "normalize_levels" in kept,
        duplicates=kept.get("duplicates", duplicates) if duplicates == "error" else duplicates,
    )
    opened = open_source(source, dialect)
    codes = [word for word in kept.get("missing", ()) if word not in dialect.missing]
    untold = []
    if isinstance(opened, NamedColumns):
        opened = _as_in_the_model(opened, wanted)
        codes = [word for word in codes if word.rpartition("=")[0] in ("", *opened.called)]
        typed = [f"missing={word!r}" for word in codes]
        if wanted.normalize_levels != normalize_levels:
            typed.append("normalize_levels=True")
        if wanted.duplicates != duplicates:
            typed.append(f"duplicates={wanted.duplicates!r}")
        if typed:
            opened.notes.append(said("read_as_in_training", source, typed=typed))
        known = replace(opened.dialect, missing=(*opened.dialect.missing, *codes))
        beside = None if labels is None else _opened_labels(labels, dialect)
        table = model_table(replace(opened, dialect=known), wanted, beside)
    else:
        if codes:
            untold = [said("codes_of_matrix", source, codes=codes)]
        table = opened.for_model(wanted)
    not_filled = "" if wanted.blanks else wanted.not_filled
    ranges = getattr(model, "table_ranges_", None)
    table = checked(table, ranges, training=False, not_filled=not_filled)
    if levels and (names is None or isinstance(opened, PlainMatrix)):
        columns = table.feature_names or [*map(str, range(wanted.n_features))]
        rows, width = table.X.shape
        short = shortage(2 * 8 * rows * width) if sp.issparse(table.X) else ""
        if short:
            raise refused("large_levels", source, rows=rows, width=width, short=short)
        X = table.X.toarray() if sp.issparse(table.X) else table.X  # zeros are levels, too
        frame = pandas().DataFrame(X, columns=columns)
        frame = known_levels(frame, (), wanted, table.source, exact=False)
        objects = any(each.as_objects for each in levels.values())
        table = replace(table, X=frame.to_numpy(dtype=object if objects else None))
    return replace(table, notes=(*table.notes, *untold))


def _as_in_the_model(opened: NamedColumns, request: TableRequest) -> NamedColumns:
    """The table with the names of the model for columns whose names are written otherwise."""
    wanted = request.feature_names or ()
    columns = [*wanted, *(n[: end.start()] for n in wanted for end in re.finditer("=", n))]
    other = spelt_otherwise(columns, filter(None, opened.names))
    if not other:
        return opened
    opened.notes.append(told_otherwise(opened.source, other))
    names = {here: name for name, here in other.items()}
    return replace(opened, names=[names.get(name, name) for name in opened.names])


_GENES = re.compile(r"(?i)gene|probe|symbol|ensembl|protein|transcript|feature|locus")
NARROWEST = 3  # rows by columns from which the rows are probably not samples


def survey(source: str | os.PathLike[str], dialect: Dialect = USUAL) -> Record:
    """Facts about the columns of a table, of which perhaps only the header can be read."""
    opened = open_source(source, dialect)
    if not isinstance(opened, NamedColumns):
        return {}
    positions = list(range(len(opened.names)))
    try:
        frame = opened.load(positions, ()).set_axis(opened.called, axis=1)
    except DataError:  # rows that do not fit the header: of which whoever reads them tells
        return {"columns": len(positions), "header": opened.called}
    gaps = frame.isna().sum()
    ids = [j for j in positions if are_ids(frame.iloc[:, j].rename(opened.called[j]))]
    ids = [0, *ids] if opened.index_first or not opened.names[0] else ids
    names = [opened.called[j] for j in dict.fromkeys(ids)]
    candidates = class_columns(frame.iloc[:, [j for j in positions if j not in ids]])
    text = [n for n, dtype in zip(frame.columns, frame.dtypes, strict=True) if is_text(dtype)]
    numbers = frame.loc[:, [not is_text(dtype) for dtype in frame.dtypes]]
    X = numbers.to_numpy(dtype=np.float64)
    ends = extremes(X)
    codes = suspected_codes(X, numbers.columns.tolist(), ends)
    facts = {
        "rows": len(frame),
        "columns": len(positions),
        "text_columns": [name for name in text if name not in names],
        "missing_cells": {name: int(count) for name, count in gaps.items() if count},
        "suspected_missing": {
            name: f"{code} in {count} rows (missing='{name}={code}')"
            for name, (code, count) in codes.items()
        },
        "suspected_errors": {
            each.column: each.told() for each in far_cells(X, [*numbers.columns], ends)
        },
        "names_of_samples": names,
        "target_candidates": candidates,
    }
    numeric = {*text} <= {*names} and OUTCOMES.isdisjoint(map(str.lower, opened.called))
    genes = any(map(_GENES.search, names))
    if names == opened.called[:1] and not candidates:
        unnamed = not opened.names[0] and names[0] in text
        genes = genes or unnamed or len(frame) > NARROWEST * len(positions)
    if numeric and genes:
        facts["doubt"] = said("genes_in_rows", name=names[0])
    return {name: fact for name, fact in facts.items() if fact}
