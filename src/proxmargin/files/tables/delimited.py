"""Comma- and tab-separated text, and its kin."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from proxmargin.files.errors import DataError
from proxmargin.files.extras import pandas
from proxmargin.files.tables.column import Column, frame_columns
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.dialect import Dialect
from proxmargin.files.tables.streams import Cost, NulFound, opened_text
from proxmargin.files.wording import listed
from proxmargin.runtime.brief import brief, shown

# Cells that count as missing. Words such as 'None' and 'n/a' are levels of many real columns.
MISSING = ("", "NA", "N/A", "NaN", "NAN", "nan", "-nan", "<NA>", "NULL", "null")


# Rows in which a text of the first line is searched for: a label soon occurs again.
LOOKED_AT = 1000
# and in how many cells
CELLS_LOOKED_AT = 1_000_000
# A cell has a place and a length in the parsed text, and a float64 in the table and the features.
_CELL_BYTES = 32
_TEXT_ONLY = Cost()
# columns that are read as text for what they are: labels and groups
_ROLES = 2


def read(path: Path, separator: str, dialect: Dialect) -> NamedColumns:
    """A text table with this separator.

    Raises
    ------
    DataError
        The file cannot be read, or its first line is no header and one is expected.
    """
    if separator == dialect.decimal:
        raise DataError(
            f"{path}: the decimal mark {separator!r} also separates the cells; name another "
            "separator (separator=)."
        )
    names = _names(path, separator, dialect)

    def load(wanted: Sequence[str], text: Collection[str]) -> list[Column]:
        frame = _frame(path, separator, dialect, names, text)
        written = {name: _as_written(name, frame[name]) for name in wanted if name in text}
        typed = [name for name in wanted if name not in written]
        if typed and len(written) <= _ROLES:  # numbers in their place make the frame one block
            blank = np.zeros(len(frame), dtype=np.float64)
            for name in written:
                frame[name] = blank
        found = written | dict(zip(typed, frame_columns(frame, typed), strict=True))
        return [found[name] for name in wanted]

    return NamedColumns(str(path), names, load, tells_text=False)


def _names(path: Path, separator: str, dialect: Dialect) -> list[str]:
    with _opened(path, dialect) as stream:
        filled = (line for line in _lines(stream, separator) if any(map(str.strip, line)))
        first = [cell.strip() for cell in next(filled, [])]
        below = list(islice(stream, min(LOOKED_AT, CELLS_LOOKED_AT // max(len(first), 1))))
    if not first:
        raise DataError(f"{path}: the file is empty.")
    names = first if dialect.header else [str(position) for position in range(len(first))]
    if any("\0" in cell for cell in first):
        raise DataError(_nul_sentence(path, separator, dialect, names))
    if not dialect.header:
        return names
    if "" in first:
        raise DataError(
            f"{path}: column {first.index('') + 1} has no name in the header; name it, or remove "
            "it if it is a row number."
        )
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
    """The evidence that a line is data and not a header; empty if there is none.

    ``below`` is the text of the lines after it.
    """
    words = {j: cell for j, cell in enumerate(first) if not _is_number(cell, decimal)}
    if not words:
        # data frames without names are written with 0, 1, 2, ... as their header
        counts = [str(j) for j in range(len(first) + 1)]
        return "" if first in (counts[:-1], counts[1:]) else "holds only numbers"
    if len(words) == len(first) and not _all_within(words.values(), "".join(below)):
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


def _all_within(words: Iterable[str], text: str) -> bool:
    """Whether all words may be cells of a text, which is far cheaper than to take it apart."""
    # a quote within a cell is written twice
    return all(word in text for word in words if '"' not in word and "\n" not in word)


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return False
    return True


def _as_written(name: str, series: Any) -> Column:
    """A column of text from its cells, of which pandas has taken hardly any for missing."""
    values = series.to_numpy(dtype=object, copy=True)
    absent = [cell in MISSING for cell in values.tolist()]
    missing = series.isna().to_numpy(dtype=bool) | np.array(absent, dtype=bool)
    values[missing] = ""
    return Column(name, values, missing)


def _frame(
    path: Path, separator: str, dialect: Dialect, names: list[str], text: Collection[str]
) -> Any:
    pd = pandas()
    cost = Cost(line=_CELL_BYTES * len(names))
    with _opened(path, dialect, cost) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                stream,
                sep=separator,
                decimal=dialect.decimal,
                header=0 if dialect.header else None,
                names=names,
                index_col=False,
                # a mapping of types would cost more than the numbers of a wide table
                converters=dict.fromkeys(text, str),
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=separator != "\t",
                low_memory=False,
                **_exact_floats(pd),
            )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            reason = brief(error).rstrip(".")
            first = "header" if dialect.header else "first row"
            raise DataError(
                f"{path}: the rows do not all have the {len(names)} columns of the {first}: "
                f"{reason}."
            ) from error
        except NulFound as error:
            raise DataError(_nul_sentence(path, separator, dialect, names)) from error
    if frame.empty:
        raise DataError(f"{path}: there is a header but no data rows.")
    return frame


def _exact_floats(pd: Any) -> dict[str, str]:
    """The option that makes pandas read floats to the last bit; from 3.1 on it always does."""
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


def _nul_sentence(path: Path, separator: str, dialect: Dialect, names: Sequence[str]) -> str:
    """Which cell holds the NUL character at which a C parser would cut it."""
    with _opened(path, dialect) as stream:
        filled = (line for line in _lines(stream, separator) if line)
        for row, line in enumerate(filled, 0 if dialect.header else 1):
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
        with opened_text(path, cost, dialect.codec) as stream:
            yield stream
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
