"""Which reader opens which file, by its content, and by its name where that does not tell."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice, takewhile
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import DataError, library, listed, pandas, plural
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
        raise DataError(f"{path}: not a readable {kind} file: {reason}.") from error


def _read_parquet(path: Path, dialect: Dialect) -> NamedColumns:
    with _readable(path, "Parquet"):
        # the file alone: `read_table` would also read columns from folder names: `year=2020`
        file = library("pyarrow.parquet").ParquetFile(str(path))
        rows, columns = file.metadata.num_rows, file.metadata.num_columns
        short = shortage(_CELL_BYTES * rows * columns)
        if short:
            raise DataError(
                f"{path}: {rows} rows of {columns} columns need {short}; read fewer rows or "
                "columns."
            )
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
    if not table.num_columns:
        raise DataError(f"{path}: the file has no columns.")
    if not table.num_rows:
        raise DataError(f"{path}: there are columns but no data rows.")
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
        notes = [f"{path}: levels of the row index are left out: {listed(index.names)}"]
    frame = frame.reset_index(drop=not named, names=[""] if named else None, allow_duplicates=True)
    frame.columns = range(len(names))

    def parse(positions: Collection[int], text: Collection[int]) -> Frame:
        nested = [names[j] for j in positions if names[j] in lists]
        if nested:
            raise DataError(
                f"{path}: columns of lists or records cannot be used: {listed(nested)}; leave them "
                f"out: {' '.join(f'ignore={name!r}' for name in nested)}."
            )
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
    names: list[str] = []
    kinds: list[str] = []
    with opened_text(path, USUAL) as stream:
        lines = [*takewhile(lambda line: line.strip().lower() != "@data", stream)]
        body = [line for line in islice(stream, _FIRST_ROWS) if line.strip() and line[0] != "%"]
    for line in lines:
        found = _ATTRIBUTE.fullmatch(line.rstrip("\n"))
        if found:
            names.append(re.sub(r"\\(.)", r"\1", found[1].strip("'\"")))
            kinds.append(found[2].lower())
    if not (body and names):
        raise DataError(f"{path}: not a readable ARFF file: it lacks attributes, or rows of @data.")
    relations = [n for n, kind in zip(names, kinds, strict=True) if kind.startswith("relational")]
    if relations or any(line.startswith("{") for line in body[:1]):
        what = f"relations ({listed(relations)})" if relations else "sparse rows ({index value})"
        raise DataError(f"{path}: {what} of ARFF are not read; save the table as CSV.")
    single = any("'" in line for line in body) and not any('"' in line for line in body)
    mark = None if any("%" in line for line in body) else "%"  # which cells may have, too
    skipped = 1 + sum(not (mark and line.startswith(mark)) for line in lines)
    plain = Dialect(comment=mark, missing=("?", *dialect.missing), na_text=True)
    layout = Layout(",", names, skipped, quote="'" if single else '"')
    words = {j for j, kind in enumerate(kinds) if kind not in _NUMERIC}
    return replace(columns_of_text(path, plain, layout), words=words)


def _read_workbook(path: Path, dialect: Dialect, engine: str) -> NamedColumns:
    """A sheet of an Excel workbook: numbers are those of its cells, other cells text."""
    library(engine)
    pd = pandas()
    with _readable(path, "Excel"):
        size = path.stat().st_size
        if engine == "openpyxl":
            with zipfile.ZipFile(path) as archive:
                size = sum(each.file_size for each in archive.infolist())
        short = shortage(_XML_BYTES * size)
        if short:
            raise DataError(f"{path}: the workbook needs {short}; save the sheet as CSV.")
        with pd.ExcelFile(path, engine=engine) as book:
            names = book.sheet_names
            asked = dialect.sheet
            if isinstance(asked, str) and asked not in names and asked.lstrip("-").isdecimal():
                asked = int(asked)
            if asked is not None and asked not in (*names, *range(len(names))):
                raise DataError(
                    f"{path}: there is no sheet {asked!r}; name one of {listed(names)} (sheet=)."
                )
            chosen = names if asked is None else [asked]
            options = {"header": None, "keep_default_na": False, "na_values": [""]}
            sheets = {name: pd.read_excel(book, sheet_name=name, **options) for name in chosen}
    filled = {n: s.dropna(how="all").dropna(how="all", axis=1) for n, s in sheets.items()}
    filled = {name: sheet for name, sheet in filled.items() if not sheet.empty}
    if not filled:
        raise DataError(f"{path}: there are no cells in the sheets {listed(sheets)}.")
    if len(filled) > 1:
        raise DataError(
            f"{path}: {len(filled)} sheets have cells: {listed(filled)}; choose one "
            f"(sheet={next(iter(filled))!r})."
        )
    ((name, sheet),) = filled.items()

    top = sheet.iloc[:_FIRST_ROWS].astype(object)
    first = top.where(top.notna(), "").map(str).to_numpy().tolist()
    layout = layout_of_rows(f"{path}: sheet {name!r}", [*enumerate(first, 1)], dialect)
    end = max(end_of(sheet), layout.skipped)
    frame = sheet.iloc[layout.skipped : end].reset_index(drop=True)
    frame = frame.set_axis(range(sheet.shape[1]), axis=1).infer_objects()
    if frame.empty:
        raise DataError(f"{path}: there is a header but no data rows.")
    notes = [*layout.notes]
    if len(names) > 1:
        notes.append(f"{path}: the sheet {name!r} is read (sheet=)")
    if end < len(sheet):
        notes.append(f"{path}: {plural(len(sheet) - end, 'row')} of notes below the table left out")
    return NamedColumns(
        str(path),
        layout.names,
        lambda positions, text: frame[list(positions)],
        dialect,
        notes=notes,
        index_first=layout.index_first,
    )


def _read_old_workbook(path: Path, dialect: Dialect, suffix: str) -> NamedColumns:
    """A workbook of Excel until 2003, of which a new one with a password has the same frame."""
    if suffix in _WORKBOOKS:
        raise DataError(f"{path}: the workbook has a password: save it without one, or as CSV.")
    if find_spec("xlrd") is None:
        raise DataError(
            f"{path}: an old Excel workbook (.xls): save it as .xlsx or CSV, or install what reads "
            "it (pip install xlrd)."
        )
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
        raise DataError(f"{table.source}: there are no columns beside the names of the features.")
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
        raise DataError(f"{path}: not a readable GCT file: the third line names no samples.")
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
            raise DataError(f"{path}: the series matrix has no table.")
        names = [cell.strip().strip('"') for cell in stream.readline().rstrip("\n").split("\t")]
    beside = {key: cells for key, cells in beside.items() if len(cells) == len(names) - 1}
    plain = Dialect(encoding=dialect.encoding, comment="!", missing=dialect.missing)
    return transposed(columns_of_text(path, plain, Layout("\t", names, skipped)), plain, beside)


_SVMLIGHT = (".svm", ".svmlight", ".libsvm")
# suffixes of text tables, and what separates their cells if nothing else is said
SEPARATORS = {".csv": ",", ".tsv": "\t"}
_TYPED: dict[str, Callable[[Path, Dialect], TableSource]] = {
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".npz": lambda path, _: read_npz(path),
    ".arff": _read_arff,
}
_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"FEA1": ".feather"}
# what begins files that are not read, and what to do
_FOREIGN = {
    b"\x93NUMPY": "one array of NumPy, without labels: save both by np.savez('data.npz', X=X, y=y)",
    b"%%MatrixMarket": "a matrix without labels: read it by scipy.io.mmread, and save it with them "
    "by sklearn.datasets.dump_svmlight_file",
    **dict.fromkeys((b"{", b"["), "JSON: save it as CSV (pandas.read_json, to_csv)"),
    b"<": "a page of HTML or XML: open it in a spreadsheet program, and save it as .xlsx or CSV",
    b"$FL": "a file of SPSS: save it as CSV there, or by pandas.read_spss and to_csv",
    b"HEADER RECORD": "a file of SAS: save it as CSV there, or by pandas.read_sas and to_csv",
    b"MATLAB 5": "a file of MATLAB: save a table as CSV there, or by scipy.io.loadmat",
    b"\x89HDF": "an HDF5 file: save its table as CSV or Parquet",
    **dict.fromkeys(
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        "a pickle of Python, which could run any code: save the table as Parquet",
    ),
    b"%PDF": "a PDF: copy its table into a spreadsheet program, and save that as CSV",
    **dict.fromkeys(
        (b"\x89PNG", b"GIF8", b"\xff\xd8\xff"), "a picture: type its table, and save that as CSV"
    ),
    b"RDX": "a file of R: save the table there, by write.csv",
}
_PACKED = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_WORKBOOKS = (".xlsx", ".xlsm")
_GEO = ("!Series_", "!Sample_", "!series_matrix")


def open_source(source: str | os.PathLike[str], dialect: Dialect = USUAL) -> TableSource:
    """The opened file or embedded set. DataError: there is none, or of no known kind."""
    if source in EMBEDDED:
        _refuse_dialect(str(source), dialect)
        return embedded_set(str(source))
    path = Path(source)
    _refuse_unreadable(path)
    opened = _opened(path, dialect)
    if not dialect.transpose:
        return opened
    if isinstance(opened, PlainMatrix):
        raise DataError(f"{path}: a matrix has its samples in rows: leave out transpose=True.")
    return opened if opened.turned else transposed(opened, dialect)


def _opened(path: Path, dialect: Dialect) -> TableSource:
    suffix = _suffix(path.name)
    head = b""
    if path.is_file():  # what comes through a pipe comes once
        with path.open("rb") as stream:
            head = stream.read(_SHOWN)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return _read_old_workbook(path, dialect, suffix)
    if suffix in _WORKBOOKS and not head.startswith(b"PK"):
        suffix = ".txt"  # under the name of a workbook
    if head.startswith(b"PK\x03\x04") or suffix in (*_WORKBOOKS, ".npz"):
        members = _members(path)
        if suffix in _WORKBOOKS or "xl/workbook.xml" in members:
            return _read_workbook(path, dialect, "openpyxl")
        if suffix == ".npz" or any(name.endswith(".npy") for name in members):
            suffix = ".npz"
        elif len(members) == 1:
            suffix = _suffix(members[0])
    foreign = next((what for mark, what in _FOREIGN.items() if head.startswith(mark)), None)
    if foreign:
        raise DataError(f"{path}: {foreign}.")
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), suffix)
    if kind in _TYPED:
        _refuse_dialect(str(path), dialect, but=() if kind == ".npz" else ("missing", "na_text"))
        if kind != ".arff" and head.startswith(_PACKED) and suffix != ".npz":
            raise DataError(f"{path}: a compressed file of a binary format: unpack it.")
        return _TYPED[kind](path, dialect)
    if kind in _SVMLIGHT and dialect.separator is None:
        _refuse_dialect(str(path), dialect)
        return read_svmlight(path)
    if path.is_fifo():
        raise DataError(
            f"{path}: what comes through a pipe comes once, and tables are read more than once: "
            "save it as a file, and name that."
        )
    library("pandas")
    lines = first_lines(path, dialect)
    if dialect.separator is None:
        filled = [line for line in lines[:_TOLD_BY] if line.strip()]
        start = next((line.lower() for line in filled if not line.startswith("%")), "")
        if start.startswith("@relation"):
            return _read_arff(path, dialect)
        if filled and filled[0].startswith(("#1.2", "#1.3")):
            return _read_gct(path, dialect)
        if filled and filled[0].startswith(_GEO):
            return _read_series_matrix(path, dialect)
        if kind not in SEPARATORS and dialect == USUAL and is_svmlight(filled):
            return read_svmlight(path)
    others = "" if kind in (*SEPARATORS, ".txt") else _known()
    return read_delimited(path, dialect, lines, SEPARATORS.get(kind), others)


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


def _refuse_dialect(source: str, dialect: Dialect, but: Collection[str] = ()) -> None:
    usual = {name: getattr(USUAL, name) for name in ("transpose", "exact", *but)}
    if replace(dialect, **usual) != USUAL:
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
    suffixes = listed(
        [*SEPARATORS, ".txt", *_SVMLIGHT, *_TYPED, ".gct", *_WORKBOOKS], quote=False, at_most=99
    )
    names = listed(EMBEDDED, quote=False, at_most=len(EMBEDDED))
    return f"known are the suffixes {suffixes}, and the embedded sets {names}"
