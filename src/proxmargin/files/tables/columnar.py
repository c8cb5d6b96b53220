"""Parquet, Arrow and Feather files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proxmargin.files.errors import DataError
from proxmargin.files.extras import pandas, pyarrow
from proxmargin.files.tables.column import Column, series_column
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.wording import listed
from proxmargin.runtime.brief import brief
from proxmargin.runtime.memory import shortage

# A column of equal cells takes next to nothing in a Parquet file, and in memory as much as others:
# bytes of a cell in the table and in the features.
_CELL_BYTES = 16


def read_parquet(path: Path) -> NamedColumns:
    """A Parquet file."""
    return _read(path, "Parquet", lambda: _parquet_table(path))


def read_arrow(path: Path) -> NamedColumns:
    """An Arrow file, Arrow stream or Feather file."""
    return _read(path, "Arrow or Feather", lambda: _arrow_table(path))


def _parquet_table(path: Path) -> Any:
    # the file alone: `read_table` would also read columns from folder names such as `year=2020`
    file = pyarrow("parquet").ParquetFile(str(path))
    rows, columns = file.metadata.num_rows, file.metadata.num_columns
    short = shortage(_CELL_BYTES * rows * columns)
    if short:
        raise DataError(
            f"{path}: {rows} rows of {columns} columns need {short}; read fewer rows or columns."
        )
    return file.read()


def _arrow_table(path: Path) -> Any:
    pa = pyarrow()
    try:
        return pyarrow("feather").read_table(str(path), memory_map=False)
    except pa.ArrowInvalid:
        with pa.OSFile(str(path), "rb") as stream:
            return pyarrow("ipc").open_stream(stream).read_all()


def _read(path: Path, kind: str, load_table: Callable[[], Any]) -> NamedColumns:
    pandas()
    with _readable(path, kind):
        table = load_table()
        table.validate(full=True)  # offsets of a damaged file may point anywhere
        names = _names(table)
    if not names:
        raise DataError(f"{path}: the file has no columns.")
    if not table.num_rows:
        raise DataError(f"{path}: there are columns but no data rows.")

    def load(wanted: Sequence[str], text: Collection[str]) -> list[Column]:
        # a type knows whether it is text, so `text` needs no second reading here
        with _readable(path, kind):
            return _columns(path, table.select(list(wanted)))

    return NamedColumns(str(path), names, load)


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # damage surfaces as anything, down to decimal.InvalidOperation
        reason = brief(str(error).partition("\n")[0]).rstrip(".")
        raise DataError(f"{path}: not a readable {kind} file: {reason}.") from error


def _names(table: Any) -> list[str]:
    """The columns, without a row index that pandas wrote along."""
    metadata = table.schema.pandas_metadata or {}
    index = {name for name in metadata.get("index_columns", []) if isinstance(name, str)}
    return [name for name in table.column_names if name not in index]


def _columns(path: Path, table: Any) -> list[Column]:
    types = pyarrow().types
    nested = [field.name for field in table.schema if types.is_nested(field.type)]
    if nested:
        raise DataError(f"{path}: columns of lists or records cannot be used: {listed(nested)}.")
    columns = (table.column(j).to_pandas() for j in range(table.num_columns))
    return [series_column(n, c) for n, c in zip(table.column_names, columns, strict=True)]
