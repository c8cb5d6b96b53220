"""Text files: comma- and tab-separated tables and their kin, and the svmlight format."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from proxmargin.files.errors import DataError, listed, pandas
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import Dialect, assembled, is_number, numbers_or_text
from proxmargin.files.tables.matrices import PlainMatrix
from proxmargin.runtime.brief import brief, shown
from proxmargin.runtime.files import unpacked_bytes
from proxmargin.runtime.memory import free_bytes, in_words

# bytes that are asked of the system at a time
_PIECE = 1 << 17
# longest line, bytes: a sample of some million values
_LONGEST_LINE = 1 << 27
# a line is held several times at once, cell by cell: the share of the free memory it may have
_LINE_SHARE = 64


@dataclass(frozen=True)
class Cost:
    """Bytes of memory that follow from what a file holds, besides one a byte of text."""

    line: int = 0
    colon: int = 0

    def of(self, piece: bytes, lines: int) -> int:
        colons = piece.count(b":") if self.colon else 0
        return len(piece) + self.line * lines + self.colon * colons


class NulFound(ValueError):
    """A NUL character in text; C code takes it for the end of a cell."""


@contextmanager
def opened_bytes(path: Path, cost: Cost) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file. Raises DataError: while it is read: a line has no end, or more
    memory must follow than is free. Raises OSError: as of `unpacked_bytes`."""
    with unpacked_bytes(path) as packed:
        yield io.BufferedReader(_Watched(packed, path, cost), _PIECE)


class _Text(io.TextIOWrapper):
    """Text that, read in pieces, raises `NulFound` at a NUL."""

    def read(self, size: int | None = -1, /) -> str:
        text = super().read(size)
        if "\0" in text:
            raise NulFound
        return text


class _Watched(io.RawIOBase):
    """Passes bytes on and adds up what they will cost."""

    def __init__(self, source: BinaryIO, path: Path, cost: Cost) -> None:
        self._source, self._path, self._cost = source, path, cost
        self._free = free_bytes()
        self._longest = min(_LONGEST_LINE, self._free // _LINE_SHARE)
        self._needed = self._lines = self._unended = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._source.read(len(buffer))
        buffer[: len(piece)] = piece
        self._look_at(piece)
        return len(piece)

    def _look_at(self, piece: bytes) -> None:
        end = b"\n" if b"\n" in piece else b"\r"
        lines = piece.count(end)
        self._lines += lines
        self._needed += self._cost.of(piece, lines)
        after = len(piece) - 1 - piece.rfind(end)
        self._unended = after if lines else self._unended + len(piece)
        if self._unended > self._longest:
            raise DataError(
                f"{self._path}: line {self._lines + 1} is longer than {in_words(self._longest)}; "
                "the file is damaged, or it is no text with one sample a line."
            )
        if self._needed > self._free:
            raise DataError(
                f"{self._path}: the first {self._lines} lines need {in_words(self._needed)} of "
                f"memory, and {in_words(self._free)} is free; read fewer rows or columns, or use a "
                "machine with more memory."
            )


# an entry is a value and an index, converted once; a line has a label and a place where it starts
_COST = Cost(line=24, colon=24)


def read_svmlight(path: Path) -> PlainMatrix:
    """The file as a sparse matrix; indices start at 1, or at 0 where the file uses index 0."""
    with _opened_svmlight(path) as stream:
        X, y = load_svmlight_file(stream)
    width = int(X.shape[1])
    return PlainMatrix(
        str(path),
        sp.csr_array(X),
        y,
        trailing_zeros_implied=True,
        last_feature=lambda: _last_feature(path, width),
    )


@contextmanager
def _opened_svmlight(path: Path) -> Iterator[BinaryIO]:
    try:
        with opened_bytes(path, _COST) as stream:
            yield stream
    except DataError:
        raise
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(
            f"{path}: not a readable svmlight file (lines of 'label index:value ...', "
            f"indices rising): {brief(error).rstrip('.')}."
        ) from error


def _last_feature(path: Path, width: int) -> str:
    """The line with the largest index, which may be a slip of the pen."""
    for index in (width, width - 1):  # counted from 1, or from 0
        entry = re.compile(rb"\s\+?0*%d\s*:" % index)
        with _opened_svmlight(path) as stream:
            lines = enumerate(stream, 1)
            line = next((n for n, text in lines if entry.search(text.partition(b"#")[0])), None)
        if line:
            return (
                f"line {line} has the index {index}: correct it if it is wrong, or use a machine "
                "with more memory"
            )
    return "use a machine with more memory"


# Cells that count as missing. Words such as 'None' and 'n/a' are levels of many real columns.
MISSING = ("", "NA", "N/A", "NaN", "NAN", "nan", "-nan", "<NA>", "NULL", "null")


# Rows in which a text of the first line is searched for: a label soon occurs again.
LOOKED_AT = 1000
# and in how many cells
CELLS_LOOKED_AT = 1_000_000
# A cell has a place and a length in the parsed text, and a float64 in the table and the features.
_CELL_BYTES = 32
_TEXT_ONLY = Cost()


def read_delimited(path: Path, separator: str, dialect: Dialect) -> NamedColumns:
    """A text table with this separator. Raises DataError: the file cannot be read, or its first
    line is no header and one is expected."""
    if separator == dialect.decimal:
        raise DataError(
            f"{path}: the decimal mark {separator!r} also separates the cells; name another "
            "separator (separator=)."
        )
    names = _names(path, separator, dialect)

    def load(positions: Sequence[int], text: Collection[int]) -> Any:
        frame = _frame(path, separator, dialect, names, text)
        written = {j: _as_written(frame.pop(j)) for j in positions if j in text}
        typed = [j for j in positions if j not in written]
        if typed != frame.columns.tolist():
            frame = frame[typed]
        words = [j for j, dtype in frame.dtypes.items() if dtype.kind not in "fiub"]
        others = {j: numbers_or_text(frame.pop(j)) for j in words}
        return assembled(frame, others | written, positions)

    return NamedColumns(str(path), names, load, tells_text=False)


def _names(path: Path, separator: str, dialect: Dialect) -> list[str]:
    with _opened(path, dialect) as stream:
        filled = (line for line in _lines(stream, separator) if any(map(str.strip, line)))
        first = [cell.strip() for cell in next(filled, [])]
        below = list(islice(stream, min(LOOKED_AT, CELLS_LOOKED_AT // max(len(first), 1))))
    if not first:
        raise DataError(f"{path}: the file is empty.")
    names = [str(j) for j in range(len(first))] if dialect.header is False else first
    if any("\0" in cell for cell in first):
        raise DataError(_nul_sentence(path, separator, dialect, names))
    if dialect.header is not None:
        return names
    sign = _sign_of_data(first, below, separator, dialect.decimal)
    if sign:
        raise DataError(
            f"{path}: the first line {sign}, so the columns have no names; add a header line, or "
            "read the file as one without (header=False)."
        )
    return first


def _lines(text: Iterable[str], separator: str) -> Iterator[list[str]]:
    # skipping initial blanks would swallow the empty cells of a tab-separated header
    return csv.reader(text, delimiter=separator, skipinitialspace=separator != "\t")


def _sign_of_data(first: Sequence[str], below: Sequence[str], separator: str, decimal: str) -> str:
    """The evidence that a line is data and not a header; empty if there is none. ``below`` is the
    text of the lines after it."""
    words = {j: cell for j, cell in enumerate(first) if not is_number(cell, decimal)}
    if not words:
        # data frames without names are written with 0, 1, 2, ... as their header
        counts = [str(j) for j in range(len(first) + 1)]
        return "" if first in (counts[:-1], counts[1:]) else "holds only numbers"
    # whether all words may be cells of the text is far cheaper to see than to take it apart;
    # a quote within a cell is written twice
    text, plain = "".join(below), [w for w in words.values() if '"' not in w and "\n" not in w]
    if len(words) == len(first) and not all(word in text for word in plain):
        return ""
    rows = list(_lines(below, separator))
    again = {
        j: cell
        for j, cell in words.items()
        if any(len(row) > j and row[j].strip() == cell for row in rows)
    }
    if again and (len(words) < len(first) or len(again) == len(words)):
        return f"is one of the rows ({listed(again.values())} again below it)"
    return ""


def _as_written(series: Any) -> Any:
    """A column of text from its cells, of which pandas has taken hardly any for missing."""
    text = series.astype("string")
    return text.mask(text.isin(MISSING))


def _frame(
    path: Path, separator: str, dialect: Dialect, names: list[str], text: Collection[int]
) -> Any:
    pd = pandas()
    # to the last bit, as pandas reads floats from 3.1 on in any case
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exact = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    cost = Cost(line=_CELL_BYTES * len(names))
    with _opened(path, dialect, cost) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                stream,
                sep=separator,
                decimal=dialect.decimal,
                header=None if dialect.header is False else 0,
                names=range(len(names)),
                index_col=False,
                # a mapping of types would cost more than the numbers of a wide table
                converters=dict.fromkeys(text, str),
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=separator != "\t",
                low_memory=False,
                **exact,
            )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            reason = brief(error).rstrip(".")
            first = "first row" if dialect.header is False else "header"
            raise DataError(
                f"{path}: the rows do not all have the {len(names)} columns of the {first}: "
                f"{reason}."
            ) from error
        except NulFound as error:
            raise DataError(_nul_sentence(path, separator, dialect, names)) from error
    if frame.empty:
        raise DataError(f"{path}: there is a header but no data rows.")
    return frame


def _nul_sentence(path: Path, separator: str, dialect: Dialect, names: Sequence[str]) -> str:
    """Which cell holds the NUL character at which a C parser would cut it."""
    with _opened(path, dialect) as stream:
        filled = (line for line in _lines(stream, separator) if line)
        for row, line in enumerate(filled, 1 if dialect.header is False else 0):
            found = next((j for j, cell in enumerate(line) if "\0" in cell), None)
            if found is not None:
                name = repr(names[found]) if found < len(names) else str(found + 1)
                place = f"row {row}, column {name}" if row else f"column {found + 1} of the header"
                cell = shown(line[found], 80)
                return (
                    f"{path}: a NUL character in {place}, which holds {cell} "
                    "(counting data rows from 1): the file is damaged, or its encoding is another "
                    "one (encoding=)."
                )
    return f"{path}: a NUL character: the file is damaged."


@contextmanager
def _opened(path: Path, dialect: Dialect, cost: Cost = _TEXT_ONLY) -> Iterator[TextIO]:
    try:
        with opened_bytes(path, cost) as stream:
            # pandas loses an empty cell after a lone carriage return: line ends become newlines
            yield _Text(stream, encoding=dialect.codec, newline=None)
    except UnicodeError as error:
        reason = getattr(error, "reason", str(error))
        raise DataError(
            f"{path}: not a text file in {dialect.encoding.upper()}: {reason}; name its encoding "
            "(encoding=)."
        ) from error
    except csv.Error as error:
        raise DataError(f"{path}: not a readable text table: {error}.") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}.") from error
