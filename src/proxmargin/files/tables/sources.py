"""Which reader opens which file, by its content, and by its name where that does not tell."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import partial
from importlib.util import find_spec
from itertools import islice, takewhile
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import DataError, library, listed, messages, pandas, refused, said
from proxmargin.files.tables.cells import as_text
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import USUAL, Dialect
from proxmargin.files.tables.delimited import columns_of_text, read_delimited
from proxmargin.files.tables.layout import Layout, end_of, layout_of_rows
from proxmargin.files.tables.matrices import (
    EMBEDDED,
    PlainMatrix,
    embedded_set,
    is_svmlight,
    read_npz,
    read_svmlight,
)
from proxmargin.files.tables.text import first_lines, opened_text
from proxmargin.runtime.brief import brief
from proxmargin.runtime.files import PACKINGS
from proxmargin.runtime.memory import shortage
from proxmargin.runtime.types import Frame

TableSource: TypeAlias = NamedColumns | PlainMatrix

# A column of equal cells takes next to nothing in a compressed file, and in memory as much as
# others: bytes of a cell in the table and in the features.
_CELL_BYTES = 16
_XML_BYTES = 8  # bytes of memory for a byte of a workbook's text
_FIRST_ROWS = 1000  # from which the header of a sheet is told, and the quotes of ARFF
_SHOWN = 64  # bytes from which a kind of file is told
_TOLD_BY = 80  # lines from which a kind of text is told


@contextmanager
def _readable(path: Path, kind: str) -> Iterator[None]:
    try:
        yield
    except DataError:
        raise
    except Exception as error:  # damage surfaces as anything, down to decimal.InvalidOperation
        reason = brief(str(error).partition("\n")[0]).rstrip(".")
        raise refused("not_readable", path, kind=kind, reason=reason) from error


def _read_parquet(path: Path, dialect: Dialect) -> NamedColumns:
    with _readable(path, "Parquet"):
        # the file alone: `read_table` would also read columns from folder names: `year=2020`
        file = library("pyarrow.parquet").ParquetFile(str(path))
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        if short := shortage(_CELL_BYTES * rows * columns):
            raise refused("large_parquet", path, rows=rows, columns=columns, short=short)
        return _arrow_columns(path, dialect, file.read())


def _read_arrow(path: Path, dialect: Dialect) -> NamedColumns:
    pa = library("pyarrow")
    with _readable(path, "Arrow or Feather"):
        try:
            table = library("pyarrow.feather").read_table(str(path), memory_map=False)
        except pa.ArrowInvalid:
            with pa.OSFile(str(path), "rb") as stream:
                table = library("pyarrow.ipc").open_stream(stream).read_all()
        return _arrow_columns(path, dialect, table)


def _arrow_columns(path: Path, dialect: Dialect, table: Any) -> NamedColumns:
    table.validate(full=True)  # offsets of a damaged file may point anywhere
    if not (table.num_columns and table.num_rows):
        raise refused("no_rows" if table.num_columns else "no_columns", path)
    given, is_nested = table.column_names, library("pyarrow").types.is_nested
    lists = {each.name for each in table.schema if is_nested(each.type)}
    if len(set(given)) < len(given):  # which some versions of PyArrow refuse
        table = table.rename_columns([*map(str, range(len(given)))]).replace_schema_metadata()
        frame, names = table.to_pandas(), given
    else:
        frame = table.to_pandas()
        names = list(map(str, frame.columns))
    index, notes = frame.index, []
    # the row index that pandas wrote along names the rows
    named = index.nlevels == 1 and not (
        index.name is None and isinstance(index, pandas().RangeIndex)
    )
    if named:
        names = ["" if index.name is None else str(index.name), *names]
    elif index.nlevels > 1:
        notes = [said("levels_of_index", path, names=index.names)]
    frame = frame.reset_index(drop=not named, names=[""] if named else None, allow_duplicates=True)
    frame.columns = range(len(names))

    def parse(positions: Collection[int], text: Collection[int]) -> Frame:
        nested = [names[j] for j in positions if names[j] in lists]
        if nested:
            options = " ".join(f"ignore={name!r}" for name in nested)
            raise refused("nested_columns", path, names=nested, options=options)
        return frame[list(positions)]

    return NamedColumns(
        str(path), names, parse, dialect, typed=True, notes=notes, index_first=named
    )


_ATTRIBUTE = re.compile(
    r"""(?i)\s*@attribute\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]+)\s*(\S.*?)\s*"""
)
_NUMERIC = ("numeric", "real", "integer")


def _read_arff(path: Path, dialect: Dialect) -> NamedColumns:
    """An ARFF file: nominal attributes, strings and dates are text, whatever they look like."""
    with opened_text(path, USUAL) as stream:
        lines = [*takewhile(lambda line: line.strip().lower() != "@data", stream)]
        body = [line for line in islice(stream, _FIRST_ROWS) if line.strip() and line[0] != "%"]
    found = [each for line in lines if (each := _ATTRIBUTE.fullmatch(line.rstrip("\n")))]
    names = [re.sub(r"\\(.)", r"\1", each[1].strip("'\"")) for each in found]
    kinds = [each[2].lower() for each in found]
    if not (body and names):
        raise refused("not_arff", path)
    relations = [n for n, kind in zip(names, kinds, strict=True) if kind.startswith("relational")]
    if relations or body[0].startswith("{"):
        what = f"relations ({listed(relations)})" if relations else "sparse rows ({index value})"
        raise refused("other_arff", path, what=what)
    single = any("'" in line for line in body) and not any('"' in line for line in body)
    mark = None if any("%" in line for line in body) else "%"  # which cells may have, too
    skipped = 1 + sum(not (mark and line.startswith(mark)) for line in lines)
    plain = Dialect(comment=mark, missing=("?", *dialect.missing), na_text=True)
    layout = Layout(",", names, skipped, quote="'" if single else '"')
    words = {j for j, kind in enumerate(kinds) if kind not in _NUMERIC}
    return replace(columns_of_text(path, plain, layout), words=words)


def _read_workbook(path: Path, dialect: Dialect, engine: str = "openpyxl") -> NamedColumns:
    """A sheet of an Excel workbook: numbers are those of its cells, other cells text."""
    library(engine)
    with _readable(path, "Excel"):
        size = path.stat().st_size
        if engine == "openpyxl":
            with zipfile.ZipFile(path) as archive:
                size = sum(each.file_size for each in archive.infolist())
        if short := shortage(_XML_BYTES * size):
            raise refused("large_workbook", path, short=short)
        with pandas().ExcelFile(path, engine=engine) as book:
            names, asked = book.sheet_names, dialect.sheet
            if isinstance(asked, str) and asked not in names and asked.lstrip("-").isdecimal():
                asked = int(asked)
            if asked is not None and asked not in (*names, *range(len(names))):
                raise refused("no_sheet", path, sheet=asked, names=names)
            options = {"header": None, "keep_default_na": False, "na_values": [""]}
            sheets = book.parse(names if asked is None else [asked], **options)
    filled = {n: s.dropna(how="all").dropna(how="all", axis=1) for n, s in sheets.items()}
    filled = {name: sheet for name, sheet in filled.items() if not sheet.empty}
    if len(filled) != 1:
        raise refused(
            "several_sheets" if filled else "no_cells",
            path,
            names=filled or sheets,
            name=next(iter(filled), ""),
        )
    ((name, sheet),) = filled.items()

    top = sheet.iloc[:_FIRST_ROWS].astype(object)
    first = top.where(top.notna(), "").map(str).to_numpy().tolist()
    layout = layout_of_rows(f"{path}: sheet {name!r}", [*enumerate(first, 1)], dialect)
    end = max(end_of(sheet), layout.skipped)
    frame = sheet.iloc[layout.skipped : end].reset_index(drop=True)
    frame = frame.set_axis(range(sheet.shape[1]), axis=1).infer_objects()
    if frame.empty:
        raise refused("header_alone", path)
    notes = [*layout.notes]
    if len(names) > 1:
        notes.append(said("sheet_read", path, sheet=name))
    if end < len(sheet):
        notes.append(said("notes_of_sheet", path, count=len(sheet) - end))
    return NamedColumns(
        str(path),
        layout.names,
        lambda positions, text: frame[list(positions)],
        dialect,
        notes=notes,
        index_first=layout.index_first,
    )


def _read_old_workbook(path: Path, dialect: Dialect) -> NamedColumns:
    """A workbook of Excel until 2003, of which a new one with a password has the same frame."""
    locked = _suffix(path.name) in _WORKBOOKS
    if locked or find_spec("xlrd") is None:
        raise refused("locked_workbook" if locked else "old_workbook", path)
    return _read_workbook(path, dialect, "xlrd")


def transposed(
    table: NamedColumns,
    dialect: Dialect,
    beside: Mapping[str, list[str]] = MappingProxyType({}),
    first: int = 1,
) -> NamedColumns:
    """The table turned: its column 0 names features, and samples begin at ``first``."""
    count = len(table.names)
    if count <= first:
        raise refused("names_alone", table.source)
    names = table.load([0], [0])[0].fillna("").tolist()
    samples = range(first, count)
    read: list[Any] = []  # the cells, once

    def parse(positions: Collection[int], text: Collection[int]) -> Frame:
        pd = pandas()
        if not read:
            read.append(_rows_of_numbers(table, samples))
        cells, whole, written = read[0]
        block = [j for j in positions if 0 < j <= len(names) and whole[j - 1] and j not in text]
        others = {}
        for j in set(positions).difference(block):
            if 0 < j <= len(names):
                written = table.load(samples, samples) if written is None else written
                others[j] = as_text(written.iloc[j - 1]).tolist()
            else:
                others[j] = [table.names[first:], *beside.values()][max(j - len(names), 0)]
        numbers = pd.DataFrame(cells[[j - 1 for j in block]].T, range(count - first), block)
        text_ = pd.DataFrame({j: pd.Series(row, dtype="string") for j, row in others.items()})
        return pd.concat([numbers, text_], axis=1) if others else numbers

    return NamedColumns(
        table.source,
        ["sample", *names, *beside],
        parse,
        dialect,
        notes=table.notes,
        turned=True,
        index_first=True,
    )


def _rows_of_numbers(
    table: NamedColumns, samples: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.bool_], Any]:
    """The cells as numbers, which rows have nothing else, and the cells as text, if read."""
    cells = table.load(samples)
    if all(dtype.kind in "fiub" for dtype in cells.dtypes):
        return cells.to_numpy(dtype=np.float64), np.ones(len(cells), dtype=bool), None
    written = table.load(samples, samples)
    flat = pandas().Series(written.to_numpy(dtype=object).ravel())
    numbers = pandas().to_numeric(flat, errors="coerce").to_numpy(dtype=np.float64)
    plain = flat.isna().to_numpy() | ~np.isnan(numbers)
    cells, plain = numbers.reshape(written.shape), plain.reshape(written.shape)
    whole = plain.all(axis=1) & ~np.isnan(cells).all(axis=1)
    return cells, whole & (table.dialect.decimal == "."), written


def _read_gct(path: Path, dialect: Dialect) -> NamedColumns:
    """A GCT file: two lines, then genes with a name and a description in rows."""
    lines = first_lines(path, dialect)
    names = [cell.strip() for cell in lines[2].rstrip("\n").split("\t")] if len(lines) > 2 else []
    if len(names) < 3:
        raise refused("not_gct", path)
    table = columns_of_text(path, dialect, Layout("\t", names, 3))
    return transposed(table, dialect, first=2)


def _read_series_matrix(path: Path, dialect: Dialect) -> NamedColumns:
    """A series matrix of GEO: what is known of the samples, then genes in rows."""
    beside: dict[str, list[str]] = {}
    skipped = 1
    with opened_text(path, dialect) as stream:
        for line in stream:
            name, *cells = (cell.strip().strip('"') for cell in line.rstrip("\n").split("\t"))
            if name == "!series_matrix_table_begin":
                break
            skipped += not line.startswith("!")
            keys = {cell.partition(":")[0].strip() for cell in cells if cell}
            if name == "!Sample_characteristics_ch1" and len(keys) == 1:
                beside[keys.pop()] = [cell.partition(":")[2].strip() for cell in cells]
        else:
            raise refused("no_matrix", path)
        names = [cell.strip().strip('"') for cell in stream.readline().rstrip("\n").split("\t")]
    beside = {key: cells for key, cells in beside.items() if len(cells) == len(names) - 1}
    plain = replace(dialect, comment="!", transpose=False)
    return transposed(columns_of_text(path, plain, Layout("\t", names, skipped)), plain, beside)


# suffixes of text tables, and what separates their cells if nothing else is said
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def _read_text(path: Path, dialect: Dialect, suffix: str) -> NamedColumns:
    others = "" if suffix in (*SEPARATORS, ".txt") else _known()
    return read_delimited(path, dialect, SEPARATORS.get(suffix), others)


# by kind: what it is called, options of `Dialect` that apply to it, and what reads it
_CELLS = ("missing", "na_text", "transpose", "exact")
_NUMBERS = (*_CELLS, "decimal", "thousands")
_LINES = (*_NUMBERS, "encoding", "short_rows")
_TEXT = ("a text table", (*_LINES, "comment", "separator", "header"))
_KINDS: Mapping[
    str, tuple[str, Sequence[str], Callable[[Path, Dialect], NamedColumns | PlainMatrix]]
] = {
    "set": ("a data set of this package", ("exact",), lambda path, _: embedded_set(str(path))),
    ".parquet": ("a Parquet file", _CELLS, _read_parquet),
    ".arrow": ("an Arrow file", _CELLS, _read_arrow),
    ".feather": ("a Feather file", _CELLS, _read_arrow),
    ".npz": ("a matrix", ("exact",), lambda path, _: read_npz(path)),
    ".svm": ("a matrix", ("exact",), lambda path, _: read_svmlight(path)),
    ".arff": ("an ARFF file", _CELLS, _read_arff),
    ".gct": ("a GCT file", _LINES, _read_gct),
    "series": ("a series matrix of GEO", _LINES, _read_series_matrix),
    ".xlsx": ("a workbook", (*_NUMBERS, "header", "sheet"), _read_workbook),
    ".xls": ("a workbook", (*_NUMBERS, "header", "sheet"), _read_old_workbook),
}
_SVMLIGHT = (".svm", ".svmlight", ".libsvm")
_WORKBOOKS = (".xlsx", ".xlsm")
_PACKED = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
# what begins files of some kinds
_MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"FEA1": ".feather",
    b"\xd0\xcf\x11\xe0": ".xls",
}
_FIRST_WORDS = {
    "@relation": ".arff",
    "#1.2": ".gct",
    "#1.3": ".gct",
    **dict.fromkeys(("!series_", "!sample_"), "series"),
}


def open_source(
    source: str | os.PathLike[str], dialect: Dialect = USUAL, *, beside: bool = False
) -> TableSource:
    """The opened file or embedded set; ``beside`` a table for which the dialect is meant, of which
    applies what can. DataError: there is none, of no known kind, or one option does not apply."""
    path = Path(source)
    kind = "set" if source in EMBEDDED else _kind_of(path, dialect)
    what, takes, read = _KINDS.get(kind) or (*_TEXT, partial(_read_text, suffix=kind))
    usual = {f.name: getattr(USUAL, f.name) for f in fields(Dialect) if f.name not in takes}
    given = {name: getattr(dialect, name) for name in usual}
    others = {name: value for name, value in given.items() if value != usual[name]}
    if others and not beside:
        typed = (f"{'na_labels' if n == 'na_text' else n}={_word(v)!r}" for n, v in others.items())
        raise refused("other_kind", source, what=what, typed=", ".join(typed))
    dialect = replace(dialect, **usual)
    opened = read(path, dialect)
    if isinstance(opened, NamedColumns) and dialect.transpose and not opened.turned:
        return transposed(opened, dialect)
    return opened


def _word(value: object) -> object:
    """A value as messages have it: one code, or a list of them."""
    if not isinstance(value, tuple):
        return value
    return value[0] if len(value) == 1 else [*value]


def _kind_of(path: Path, dialect: Dialect) -> str:
    """The kind of a file, or the suffix of a text table."""
    _refuse_unreadable(path)
    suffix, head = _suffix(path.name), b""
    if path.is_file():  # what comes through a pipe comes once
        with path.open("rb") as stream:
            head = stream.read(_SHOWN)
    if suffix in _WORKBOOKS and not head.startswith((b"PK", b"\xd0\xcf\x11\xe0")):
        suffix = ".txt"  # under the name of a workbook
    if head.startswith(b"PK\x03\x04") or suffix == ".npz":
        members = _members(path)
        if suffix in _WORKBOOKS or "xl/workbook.xml" in members:
            return ".xlsx"
        if suffix == ".npz" or any(name.endswith(".npy") for name in members):
            return ".npz"
        suffix = _suffix(members[0]) if len(members) == 1 else suffix
    for message, marks in messages()["begins"].items():
        if head.startswith(tuple(mark.encode("latin-1") for mark in marks)):
            raise refused(message, path)
    told = next((kind for mark, kind in _MAGIC.items() if head.startswith(mark)), None)
    kind = told or suffix
    if kind in _MAGIC.values() and head.startswith(_PACKED):
        raise refused("packed_binary", path)
    if told or kind in (".parquet", ".arrow", ".feather", ".arff"):
        return kind
    if kind in _SVMLIGHT and dialect.separator is None:
        return ".svm"
    if path.is_fifo():
        raise refused("pipe", path)
    library("pandas")
    if dialect.separator is None:
        lines = [line for line in first_lines(path, dialect)[:_TOLD_BY] if line.strip()]
        start = next((line.lower() for line in lines if not line.startswith("%")), "")
        for words, found in _FIRST_WORDS.items():
            if start.startswith(words):
                return found
        if kind not in SEPARATORS and dialect == USUAL and is_svmlight(lines):
            return ".svm"
    return kind if kind in (*SEPARATORS, ".txt") else "text"


def _suffix(name: str) -> str:
    """The suffix of a name, without that of a compression."""
    parts = PurePath(name.lower()).suffixes
    while parts and parts[-1] in PACKINGS:
        parts.pop()
    return parts[-1] if parts else ""


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]
    except Exception:  # damage surfaces as anything, and whoever reads it says so
        return []


def _refuse_unreadable(path: Path) -> None:
    try:
        size = path.stat().st_size
    except (OSError, ValueError):
        raise refused("no_file", name=str(path), known=_known()) from None
    if path.is_dir():
        raise refused("folder", path)
    if size == 0 and path.is_file():
        raise refused("empty", path)
    if not os.access(path, os.R_OK):
        raise refused("not_allowed", path)


def _known() -> str:
    suffixes = [*SEPARATORS, ".txt", *_SVMLIGHT, *(k for k in _KINDS if k[0] == "."), ".xlsm"]
    known = (", ".join(dict.fromkeys(each)) for each in (suffixes, EMBEDDED))
    return "known are the suffixes {}, and the embedded sets {}".format(*known)
