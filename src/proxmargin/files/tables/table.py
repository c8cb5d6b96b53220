"""Reading a data file into features and labels: which reader opens which file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from proxmargin.data.inputs.parameters import check_choice
from proxmargin.files.errors import DataError, library, listed
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import (
    USUAL,
    Dialect,
    Table,
    TableRequest,
    Wanted,
    numbers_or_text,
)
from proxmargin.files.tables.delimited import read_delimited, read_svmlight
from proxmargin.files.tables.matrices import EMBEDDED, PlainMatrix, embedded_set, read_npz
from proxmargin.runtime.brief import brief
from proxmargin.runtime.files import PACKINGS
from proxmargin.runtime.memory import shortage

DUPLICATES = ("error", "suffix", "mean", "first")
# A column of equal cells takes next to nothing in a Parquet file, and in memory as much as others:
# bytes of a cell in the table and in the features.
_CELL_BYTES = 16


def _parquet_table(path: Path) -> Any:
    # the file alone: `read_table` would also read columns from folder names such as `year=2020`
    file = library("pyarrow.parquet").ParquetFile(str(path))
    rows, columns = file.metadata.num_rows, file.metadata.num_columns
    short = shortage(_CELL_BYTES * rows * columns)
    if short:
        raise DataError(
            f"{path}: {rows} rows of {columns} columns need {short}; read fewer rows or columns."
        )
    return file.read()


def _arrow_table(path: Path) -> Any:
    pa = library("pyarrow")
    try:
        return library("pyarrow.feather").read_table(str(path), memory_map=False)
    except pa.ArrowInvalid:
        with pa.OSFile(str(path), "rb") as stream:
            return library("pyarrow.ipc").open_stream(stream).read_all()


def _read(path: Path, kind: str, load_table: Callable[[Path], Any]) -> NamedColumns:
    library("pandas")
    with _readable(path, kind):
        table = load_table(path)
        table.validate(full=True)  # offsets of a damaged file may point anywhere
        table = _without_index(table)
    if not table.num_columns:
        raise DataError(f"{path}: the file has no columns.")
    if not table.num_rows:
        raise DataError(f"{path}: there are columns but no data rows.")

    def load(positions: Sequence[int], text: Collection[int]) -> Any:
        # a type knows whether it is text, so `text` needs no second reading here
        with _readable(path, kind):
            return _frame(path, table, positions)

    return NamedColumns(str(path), table.column_names, load)


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # damage surfaces as anything, down to decimal.InvalidOperation
        reason = brief(str(error).partition("\n")[0]).rstrip(".")
        raise DataError(f"{path}: not a readable {kind} file: {reason}.") from error


def _without_index(table: Any) -> Any:
    """The table without a row index that pandas wrote along."""
    metadata = table.schema.pandas_metadata or {}
    index = {name for name in metadata.get("index_columns", []) if isinstance(name, str)}
    return table.select([j for j, name in enumerate(table.column_names) if name not in index])


def _frame(path: Path, table: Any, positions: Sequence[int]) -> Any:
    types = library("pyarrow").types
    nested = [table.field(j).name for j in positions if types.is_nested(table.field(j).type)]
    if nested:
        raise DataError(f"{path}: columns of lists or records cannot be used: {listed(nested)}.")
    columns = {j: numbers_or_text(table.column(j).to_pandas()) for j in positions}
    return library("pandas").DataFrame(columns)


def _read_arrow(path: Path) -> NamedColumns:
    return _read(path, "Arrow or Feather", _arrow_table)


TableSource: TypeAlias = NamedColumns | PlainMatrix
Reader: TypeAlias = Callable[[Path], TableSource]

# text is read compressed, too
_PACKED = ("", *PACKINGS)
_SVMLIGHT = [
    f"{kind}{packed}" for kind in (".svm", ".svmlight", ".libsvm", ".txt") for packed in _PACKED
]

# suffixes of text tables, and what separates their cells if nothing else is said
SEPARATORS = {
    f"{kind}{packed}": mark for kind, mark in ((".csv", ","), (".tsv", "\t")) for packed in _PACKED
}
# files that may be tables too: they are where a separator is given
_PERHAPS_TABLES = tuple(f".txt{packed}" for packed in _PACKED)

READERS: dict[str, Reader] = {
    **dict.fromkeys(_SVMLIGHT, read_svmlight),
    ".parquet": lambda path: _read(path, "Parquet", _parquet_table),
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".npz": read_npz,
}


def open_source(source: str | os.PathLike[str], dialect: Dialect = USUAL) -> TableSource:
    """The opened data file, or the embedded set of that name. Raises DataError: there is no such
    file or set, its suffix is unknown, or it is no text and a dialect is given."""
    if source in EMBEDDED:
        _refuse_dialect(str(source), dialect)
        return embedded_set(str(source))
    path = Path(source)
    _refuse_unreadable(path)
    name = path.name.lower()
    ends = (suffix for suffix in (*READERS, *SEPARATORS) if name.endswith(suffix))
    suffix = max(ends, key=len, default="")
    separator = dialect.separator or SEPARATORS.get(suffix)
    if separator and (suffix not in READERS or suffix in _PERHAPS_TABLES):
        return read_delimited(path, separator, dialect)
    if suffix not in READERS:
        raise DataError(
            f"{path}: unknown kind of file; {_known()}. A text table with another suffix is read "
            "where its separator is given (separator=)."
        )
    _refuse_dialect(str(path), dialect)
    return READERS[suffix](path)


def _refuse_dialect(source: str, dialect: Dialect) -> None:
    if dialect != USUAL:
        raise DataError(
            f"{source}: this is no text table, so separator, decimal mark, encoding and header "
            "do not apply."
        )


def _refuse_unreadable(path: Path) -> None:
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        raise DataError(
            f"There is no file {str(path)!r}, nor a data set of that name; {_known()}."
        ) from None
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; name one data file in it.")
    if size == 0 and path.is_file():
        raise DataError(f"{path}: the file is empty.")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path}: the file may not be read (permission denied).")


def _known() -> str:
    suffixes = listed([*SEPARATORS, *READERS], quote=False, at_most=99)
    names = listed(EMBEDDED, quote=False, at_most=len(EMBEDDED))
    return f"known are the suffixes {suffixes}, and the embedded sets {names}"


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
        na_labels=na_labels,
        drop_classes=_several(drop_classes),
        duplicates=duplicates,
        normalize_levels=normalize_levels,
    )
    samples = open_source(source, dialect)
    if labels is None:
        return samples.table(request)
    beside = Dialect(encoding=dialect.encoding, missing=dialect.missing)
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
    na_labels: bool = False,
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
        na_labels=na_labels,
        duplicates=duplicates,
    )
    return open_source(source, dialect).for_model(wanted)
