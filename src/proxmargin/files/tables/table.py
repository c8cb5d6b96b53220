"""Reading a data file into features and labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from proxmargin.data.inputs.parameters import check_choice
from proxmargin.files.errors import DataError
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import USUAL, Dialect, Table, TableRequest, Wanted
from proxmargin.files.tables.sources import TableSource, open_source

DUPLICATES = ("error", "suffix", "mean", "first")


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
    beside = Dialect(encoding=dialect.encoding, missing=dialect.missing, na_text=na_labels)
    if na_labels:
        dialect = replace(dialect, na_text=True)
    samples = open_source(source, dialect)
    if labels is None:
        return samples.table(request)
    return _named(samples).table(request, _named(open_source(labels, beside)))


def _named(source: TableSource) -> NamedColumns:
    if isinstance(source, NamedColumns):
        return source
    raise DataError(f"{source.source}: a matrix names no samples, by which labels are joined.")


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, str | int) else tuple(given)


def read_for_model(
    source: str | os.PathLike[str],
    model: Any,
    *,
    target: str | int | None = None,
    ignore: Sequence[str | int] = (),
    ids: str | int | None = None,
    unseen: str = "error",
    normalize_levels: bool = False,
    duplicates: str = "error",
    dialect: Dialect = USUAL,
) -> Table:
    """The columns a model was fitted on, in its order, with blanks if it fills them in. They are
    found by name, ``column=level`` by the text of the column; without names their number must
    agree, but svmlight leaves out zeros. ``target``: by default the only column with a usual name
    that is no feature; there need not be one. ``ignore``: neither features nor the target. ``ids``:
    kept as `Table.ids`, and of a model with names perhaps a feature, too. ``unseen``: whether
    levels that the model has not seen are refused ('error'), 'zero' in all features, or 'missing'
    cells. DataError names missing columns and unseen levels."""
    check_choice("unseen", unseen, ("error", "zero", "missing"))
    check_choice("duplicates", duplicates, DUPLICATES)
    names = getattr(model, "feature_names_in_", None)
    wanted = Wanted(
        None if names is None else [str(name) for name in names],
        int(model.n_features_in_),
        target=target,
        ignore=_several(ignore),
        ids=ids,
        blanks=getattr(model, "fills_blanks", False),
        unseen=unseen,
        normalize_levels=normalize_levels,
        duplicates=duplicates,
    )
    return open_source(source, dialect).for_model(wanted)
