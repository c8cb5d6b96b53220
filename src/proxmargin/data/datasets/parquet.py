"""Rows of Parquet files, by batches of their row groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proxmargin.data.datasets.dataset import Chunk, DataLostError, FileState
from proxmargin.runtime.brief import shown
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Column, Values

Schema = Mapping[str, Sequence[Any] | None]


class ParquetRows:
    """The rows of a Parquet file, or of all Parquet files of a folder, that pass the filters.
    Target and weight are names of columns; ``columns`` names the others, a dict with categories
    (None: numbers)."""

    def __init__(self, path: Path, target: Any, weight: Any, columns: Any, filters: Any) -> None:
        self._parquet = optional("pyarrow.parquet", "reading Parquet files")
        self._arrow = optional("pyarrow", "reading Parquet files")
        self._files = _files_of(path)
        self._states = [FileState.of(file.stat()) for file in self._files]
        found = [self._head(file) for file in self._files]
        first = found[0][0]
        used = {target, weight, *(first.names if columns is None else columns)}
        _check_names(first, used, self._files[0])
        self._check_columns(first, target, weight, path)
        self.target, self.weight = target, weight
        self._schema = _schema(first, columns, (target, weight), path, self._arrow)
        for file, (other, _) in zip(self._files, found, strict=True):
            self._check_same(file, other, first)
        self._filter = None if filters is None else self._expression(filters)
        self.n_rows = sum(
            self._passing(file) if self._filters else rows
            for file, (_, rows) in zip(self._files, found, strict=True)
        )
        self.names: tuple[str, ...] | None = tuple(
            name if known is None else f"{name}={value}"
            for name, known in self._schema.items()
            for value in ([None] if known is None else known)
        )
        self.n_features = len(self.names or ())
        kinds = [first.field(name).type for name, known in self._schema.items() if known is None]
        narrow = bool(kinds) and all(kind == self._arrow.float32() for kind in kinds)
        self._dtype = np.dtype(np.float32 if narrow else np.float64)
        self.row_bytes = float(self._dtype.itemsize * self.n_features)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        wanted = [*self._schema, *(name for name in (self.target, self.weight) if name)]
        for file, state in zip(self._files, self._states, strict=True):
            state.require(file)
            with self._opened(file, lost=True) as opened:
                for group in range(opened.num_row_groups):
                    first = 0
                    for batch in self._batches(opened, group, rows, wanted):
                        yield self._chunk(batch, f"{file}, row group {group}{self._note}", first)
                        first += batch.num_rows
            state.require(file)  # rows of two versions may have been read

    def _batches(self, opened: Any, group: int, rows: int, wanted: list[str]) -> Iterator[Any]:
        """The rows of a row group that pass the filters, at most ``rows`` at a time. A scanner of
        pyarrow, which filters by itself, holds several batches in memory."""
        columns = None if self._filters else wanted  # an expression does not tell its columns
        for batch in opened.iter_batches(rows, row_groups=[group], columns=columns):
            if not self._filters:
                yield batch
                continue
            table = self._arrow.Table.from_batches([batch]).filter(self._filter).select(wanted)
            yield from table.combine_chunks().to_batches()

    @property
    def _filters(self) -> bool:
        return self._filter is not None

    @property
    def _note(self) -> str:
        return ", among the rows that pass the filters" if self._filters else ""

    def _expression(self, filters: object) -> Any:
        try:
            return self._parquet.filters_to_expression(filters)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(
                "filters must be an expression of pyarrow, or a list of tuples (column, "
                f"comparison, value), got {filters!r}: {error}"
            ) from error

    def _passing(self, file: Path) -> int:
        """Rows of a file that pass the filters."""
        try:
            return int(self._data(file).count_rows(filter=self._filter))
        except (self._arrow.ArrowInvalid, self._arrow.ArrowNotImplementedError) as error:
            raise ValueError(f"filters cannot be applied to {file}: {error}") from error

    def _data(self, file: Path) -> Any:
        return optional("pyarrow.dataset", "reading Parquet files").dataset(file, format="parquet")

    def _chunk(self, batch: Any, where: str, first: int) -> Chunk:
        X = np.empty((batch.num_rows, self.n_features), self._dtype)
        place = 0
        for name, known in self._schema.items():
            column = batch.column(name)
            if known is None:
                X[:, place] = column.to_numpy(zero_copy_only=False)  # missing values become NaN
                place += 1
                continue
            codes = self._codes(column, name, known, where, first)
            X[:, place : place + len(known)] = codes[:, None] == np.arange(len(known))
            place += len(known)
        y, weight = (
            None if name is None else _labels(batch.column(name), name, where, first)
            for name in (self.target, self.weight)
        )
        return Chunk(X, y, weight, where, first)

    def _codes(
        self, column: Column, name: str, known: Sequence[object], where: str, first: int
    ) -> Values:
        """The number of the category of each row."""
        compute = optional("pyarrow.compute", "reading Parquet files")
        plain = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
        try:
            wanted = self._arrow.array(known, type=plain.type)
        except (self._arrow.ArrowInvalid, self._arrow.ArrowTypeError) as error:
            raise ValueError(
                f"the categories of {name!r}, {list(known)}, are no values of a column of "
                f"{plain.type}: {error}"
            ) from error
        found = compute.index_in(plain, value_set=wanted)
        if found.null_count:
            row = int(np.flatnonzero(~found.is_valid().to_numpy(zero_copy_only=False))[0])
            raise ValueError(
                f"column {name!r} holds {plain[row].as_py()!r} in {where}, row {first + row} "
                f"(counted from 0), which is not among its categories {list(known)}"
            )
        return np.asarray(found.to_numpy(zero_copy_only=False))

    def _head(self, file: Path) -> tuple[Any, int]:
        """Schema and number of rows; the file is closed again, as there may be thousands."""
        with self._opened(file) as opened:
            return opened.schema_arrow, int(opened.metadata.num_rows)

    def _opened(self, file: Path, lost: bool = False) -> Any:
        try:
            return self._parquet.ParquetFile(file)
        except self._arrow.ArrowInvalid as error:
            kind = DataLostError if lost else ValueError
            raise kind(f"{file} is no Parquet file: {error}") from error

    def _check_columns(self, schema: Any, target: Any, weight: Any, path: Path) -> None:
        for role, name in (("target", target), ("weight", weight)):
            if name is not None and not (isinstance(name, str) and name in schema.names):
                raise ValueError(
                    f"{role} must name a column of {path}, got {name!r}: it has "
                    f"{', '.join(schema.names)}"
                )
        kind = None if weight is None else schema.field(weight).type
        if kind is not None and not _is_number(kind, self._arrow):
            raise ValueError(f"the weight {weight!r} of {path} is {kind}, and must hold numbers")

    def _check_same(self, file: Path, schema: Any, first: Any) -> None:
        """Raise if a file lacks a column that the first one has, or has it in another type, or
        twice."""
        used = [*self._schema, *filter(None, (self.target, self.weight))]
        _check_names(schema, used, file)
        for name in used:
            if name not in schema.names:
                raise ValueError(f"{file} has no column {name!r}, which {self._files[0]} has")
            here, there = schema.field(name).type, first.field(name).type
            if here != there:
                raise ValueError(
                    f"column {name!r} is {here} in {file} and {there} in {self._files[0]}"
                )


def _check_names(schema: Any, used: Collection[Any], file: Path) -> None:
    """Raise if a file has several columns of a name that is used."""
    repeated = [name for name, n in Counter(schema.names).items() if n > 1 and name in used]
    if repeated:
        raise ValueError(
            f"{file} has {schema.names.count(repeated[0])} columns of the name "
            f"{shown(repeated[0])}: write it with a name for each column"
        )


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.parquet"))
    if not files:
        raise ValueError(f"the folder {path} holds no file called *.parquet")
    left = sorted({*path.glob("*.parquet.*"), *path.glob("*/*.parquet")} - {*files})
    # not what programs that write Parquet files put beside the data
    hidden = (".", "_")
    seen = [p for p in left if not any(x.startswith(hidden) for x in p.relative_to(path).parts)]
    if left := seen:
        raise ValueError(
            f"the folder {path} also holds {left[0].relative_to(path)}, which would not be read: "
            "give a folder of unpacked *.parquet files alone, without folders in it"
        )
    return files


def _schema(schema: Any, columns: Any, others: Any, path: Path, arrow: Any) -> Schema:
    """The features with their categories; raises for columns that are missing or no numbers."""
    if isinstance(columns, str):
        raise ValueError(f"columns must list names, got the one name {columns!r}")
    if columns is None:
        columns = [name for name in schema.names if name not in others]
    chosen = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns)
    for name, known in chosen.items():
        if name in others:
            raise ValueError(f"columns names {name!r}, which is the target or the weight")
        if name not in schema.names:
            raise ValueError(f"columns names {name!r}, which {path} does not have")
        kind = schema.field(name).type
        if known is None and not (_is_number(kind, arrow) or arrow.types.is_boolean(kind)):
            raise ValueError(
                f"column {name!r} of {path} is {kind}, and must hold numbers: give its categories, "
                f"columns={{{name!r}: [...]}}, or leave it out"
            )
        if known is not None:
            _check_categories(name, known)
    return chosen


def _check_categories(name: str, known: object) -> None:
    if isinstance(known, str) or not isinstance(known, Sequence | np.ndarray):
        raise ValueError(f"columns must give a list of categories of {name!r}, got {known!r}")
    if not len(known):
        raise ValueError(f"columns gives no category of {name!r}")
    if len(set(known)) < len(known):
        raise ValueError(f"columns gives a category of {name!r} twice: {list(known)}")


def _is_number(kind: Any, arrow: Any) -> bool:
    return bool(arrow.types.is_floating(kind) or arrow.types.is_integer(kind))


def _labels(column: Any, name: str, where: str, first: int) -> Values:
    if column.null_count:
        row = int(np.flatnonzero(~column.is_valid().to_numpy(zero_copy_only=False))[0])
        raise ValueError(f"column {name!r} is empty in {where}, row {first + row} (from 0)")
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    return values.astype(str) if values.dtype == object else values
