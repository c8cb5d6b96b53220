"""How a text table is laid out, told from its first lines: separator, header, width."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import listed, pandas, refused, said
from proxmargin.files.tables.cells import DOUBTFUL, MISSING, PLAIN, SIGNS, is_number, normal_form
from proxmargin.files.tables.contents import Dialect
from proxmargin.files.tables.features import is_id_name
from proxmargin.files.tables.labels import TARGET_NAMES
from proxmargin.runtime.types import Frame, Values

COMMENTS = "#!%"  # what lines of comments before a table usually begin with

_SEPARATORS = (",", "\t", ";", "|", " ")
_ROWS = 100  # from which a separator is told
_SOME = 10  # of wide rows that a header is told from
_CONSISTENT = 0.9  # share of rows as wide as most
_CELLS = 6000  # of which a header is told, in rows of which there are some
_ABSENT = frozenset((*MISSING, *DOUBTFUL))
_USUAL_NAMES = TARGET_NAMES | {"id", "sample", "sample_id", "patient", "name", "group"}
# chance of a first row of data being as unlike the others, below which it is a header
_UNLIKELY = 0.05
_RISING = 7  # numbers in a row that hardly rise (or fall) by chance
_FEW = 3  # rows, or columns, that a comparison needs
_NOTES = 50  # rows below a table at most


@dataclass(frozen=True)
class Layout:
    """Where the cells of a text table are, and the names of its columns."""

    separator: str  # ' ' for blanks of any number
    names: list[str]
    skipped: int  # lines before the first row of data
    index_first: bool = False
    notes: tuple[str, ...] = ()
    quote: str = '"'

    @property
    def least(self) -> int:
        """The cells that each row has: separators at the ends of lines may make more."""
        return max((j + 1 for j, name in enumerate(self.names) if name), default=1)


def cells(text: Iterable[str], separator: str, quote: str = '"') -> Any:
    """A reader of the rows of a text, by the csv module: as lists of cells."""
    if separator == " ":
        text = (line.replace("\t", " ").rstrip() for line in text)
    # skipping initial blanks would swallow the empty cells of a tab-separated header
    initial = separator != "\t"
    return csv.reader(text, delimiter=separator, skipinitialspace=initial, quotechar=quote)


def is_blank(row: Sequence[str]) -> bool:
    return not any(map(str.strip, row))


def is_note(row: Sequence[object], width: int) -> bool:
    """Whether a row has several words in its first cell alone, as notes below a table have."""
    words = str(row[0]).strip() if row else ""
    alone = width >= _FEW and not any(str(cell).strip() for cell in row[1:])
    return alone and (" " in words or words[:1] in ("*", "†", "‡", "§")) and not is_number(words)


def end_of(frame: Frame) -> int:
    """The number of rows before the notes below a table."""
    end = len(frame)
    while end and len(frame) - end < _NOTES:
        row = frame.iloc[end - 1].astype(object)
        words = row.where(row.notna(), "").map(str).tolist()
        if not (is_note(words, len(words)) or is_blank(words)):
            break
        end -= 1
    return end


def layout_of(
    source: str, lines: list[str], dialect: Dialect, usual: str | None, others: str
) -> Layout:
    """The layout of the table of these lines. DataError: no table, or perhaps no header."""
    preamble, marks = 0, dialect.comment or COMMENTS
    while preamble < len(lines) and (not lines[preamble].strip() or lines[preamble][0] in marks):
        preamble += 1
    body = lines[preamble:]
    if not body:
        raise refused("empty" if is_blank(lines) else "comments_alone", source)
    separator = _known_separator(source, body, dialect, usual, others)
    notes = []
    if dialect.separator is None and usual is not None and separator != usual:
        notes.append(said("separated", source, mark=separator))
    rows, left, reader = [], _CELLS, cells(body, separator)
    for row in reader:
        if not is_blank(row):
            rows.append((reader.line_num, row))
            left -= len(row)
            if left < 0 and len(rows) > _SOME:
                break
    told = sum(not is_blank([line]) for line in lines[:preamble])
    if preamble and dialect.header is None and rows:
        names: list[str] = next(cells([lines[preamble - 1].lstrip(COMMENTS)], separator), [])
        if _is_commented_header(names, rows, dialect.decimal):
            rows.insert(0, (0, names))
            told -= 1
    laid = layout_of_rows(source, rows, dialect, told)
    if separator == "," and laid.index_first and _may_be_decimal_commas(laid.names, rows):
        raise refused("unquoted_commas", source, name=laid.names[1])
    skipped, notes = preamble + laid.skipped, [*notes, *laid.notes]
    return replace(laid, separator=separator, skipped=skipped, notes=tuple(notes))


def _may_be_decimal_commas(names: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]) -> bool:
    """Whether a column of names has another one before it, and whole numbers follow each other."""
    table = [row for _, row in rows if len(row) == len(names)]
    whole = [
        all(cell.strip(" +-").isdecimal() for cell in column) for column in zip(*table, strict=True)
    ]
    return is_id_name(names[1]) and any(a and b for a, b in pairwise(whole))


def _is_commented_header(
    names: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]], decimal: str
) -> bool:
    """Whether a line of comments is as wide as the rows and has only words above numbers."""
    numbers = any(is_number(cell, decimal) for cell in rows[0][1])
    alike = 1 < len(names) == _usual_width([row for _, row in rows])
    return alike and numbers and not any(is_number(cell, decimal) for cell in names)


def layout_of_rows(
    source: str, rows: list[tuple[int, list[str]]], dialect: Dialect, told: int = 0
) -> Layout:
    """The layout of these rows, each with its last line; ``told`` lines are not for it."""
    width = _usual_width([row for _, row in rows])
    notes, start = [], 0
    while start < len(rows) - 1 and _is_title([row for _, row in rows[start : start + 3]], width):
        start += 1
    if told + start:
        notes.append(said("preamble", source, count=told + start))
    end, first = rows[start]
    first, below = [cell.strip() for cell in first], [row for _, row in rows[start + 1 :]]
    if dialect.header is False:
        names = [str(j) for j in range(max(width, len(first)))]
        before = rows[start - 1][0] if start else 0
        return Layout(",", names, before, notes=tuple(notes))
    index_first = False
    second = [cell.strip() for cell in below[0]] if len(below) > 2 else []
    if len(second) == len(first) and second != first and _are_units(second, below[1:], dialect):
        del below[0]
        end = rows[start + 1][0]
        notes.append(said("units", source, units=[*filter(None, second)]))
    if below and len(first) == width - 1:
        # a header with a name fewer than the rows have cells, as of write.table in R; or a
        # separator at the end of each row
        wide = [row for row in below if len(row) == width]
        if not any(row[-1].strip() for row in wide):
            first = [*first, ""]
        elif _are_row_names([row[0] for row in wide]):
            index_first, first = True, ["", *first]
    doubt = header_doubt(first, below, dialect.decimal) if dialect.header is None else ""
    if doubt:
        raise refused("first_line", source, doubt=doubt)
    return Layout(",", first, end, index_first, tuple(notes))


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    """The most frequent number of cells, but of the first row where there are others."""
    return Counter(map(len, rows[1:] or rows)).most_common(1)[0][0] if rows else 0


def _are_units(row: Sequence[str], below: Sequence[Sequence[str]], dialect: Dialect) -> bool:
    """Whether a row has new words alone, some above two or more columns of numbers."""
    decimal, table = dialect.decimal, [each for each in below if len(each) == len(row)]
    filled = [j for j, cell in enumerate(row) if cell not in _ABSENT]
    if not table or any(is_number(row[j], decimal) for j in filled):
        return False
    columns = [[each[j].strip() for each in table] for j in range(len(row))]
    present = [[cell for cell in column if cell not in _ABSENT] for column in columns]
    measured = [j for j, c in enumerate(present) if c and all(is_number(x, decimal) for x in c)]
    above = sum(j in filled for j in measured)
    return above >= 2 and not any(row[j] in columns[j] for j in filled)


def _are_row_names(first_column: Sequence[str]) -> bool:
    """Whether all cells differ, and are words or counts."""
    words = not any(map(is_number, first_column))
    return len(set(first_column)) == len(first_column) and (
        words or all(cell.strip().isdecimal() for cell in first_column)
    )


def _is_title(rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether the first of these rows is a title of the table, or above names of some columns."""
    row, below, *data = rows
    filled = [cell for cell in row if cell.strip()]
    half = 2 * len(filled) <= width
    # a name that spans columns, above the names of all of them, above numbers
    spans = len(filled) < len(row) == len(set(below)) and not all(map(str.strip, row[1:]))
    of_columns = half or (spans and any(map(is_number, data[0] if data else ())))
    words = not any(map(is_number, (*filled, *below))) and all(map(str.strip, below))
    return width >= _FEW and (len(filled) == 1 or (of_columns and words))


def _known_separator(
    source: str, body: list[str], dialect: Dialect, usual: str | None, others: str
) -> str:
    separator = dialect.separator or separator_of(body, usual) or (not others and (usual or ","))
    if not separator:
        raise refused("no_cells_seen", source, known=others)
    # where both are the same, cells with a decimal mark are quoted
    rows = cells(body[:_ROWS], separator) if separator == dialect.decimal else []
    if separator == dialect.decimal and not any(separator in cell for row in rows for cell in row):
        raise refused("decimal_separates", source, mark=separator)
    return separator


def separator_of(body: Sequence[str], usual: str | None = None) -> str | None:
    """The usual mark if it parts lines into as many cells each, else that which does so best."""
    found = {}
    for mark in dict.fromkeys([*([usual] if usual else []), *_SEPARATORS]):
        try:
            rows = [row for row in cells(body[:_ROWS], mark) if not is_blank(row)]
        except csv.Error:
            continue
        width = _usual_width(rows)
        if width > 1:
            alike = [len(row) == width for row in rows[1:]]
            # the header of R has a name fewer
            fits = [len(rows[0]) in (width - 1, width), *alike]
            shares = sum(alike) / max(len(alike), 1), sum(fits) / len(fits)
            found[mark] = *shares, len(rows[0]) == width
            if mark == usual and all(fits) and found[mark][-1]:
                return mark  # which no other one does better
    sure = {
        mark: fits for mark, (alike, *fits) in found.items() if alike >= _CONSISTENT or fits[0] == 1
    }
    best = max(sure, key=lambda mark: (mark != " ", sure[mark]), default=None)
    return best or (usual if usual in found else None)


def header_doubt(first: Sequence[str], rows: Sequence[Sequence[str]], decimal: str = ".") -> str:
    """Why the first row may be one of data; empty if it is a header, as a word above numbers or
    repeated levels tells, and numbers unlike those below. What is below it again is data."""
    table = [row for row in rows if len(row) == len(first)]
    if not any(map(is_number, first)):  # files that are joined have their header again
        table = [row for row in table if not repeats(row, first)]
    if not table:
        return "holds only numbers" if all(is_number(c, decimal) for c in first if c) else ""
    columns = np.array(table, dtype=object).T
    values = _numbers([first, *table]).T
    blank: Values = np.isin(columns, [*_ABSENT])
    shares = [
        np.isfinite(v[1:][present]).mean() if present.any() else 0.0
        for v, present in zip(values, ~blank, strict=True)
    ]
    numeric = [bool(share >= _CONSISTENT) for share in shares]
    named = [j for j, cell in enumerate(first) if cell not in _ABSENT]
    numbers = [j for j in named if np.isfinite(values[j, 0])]
    words = [j for j in named if not np.isfinite(values[j, 0])]
    below = [{cell.strip() for cell in column} for column in columns]
    again = [first[j] for j in words if not numeric[j] and first[j] in below[j]]
    if again:
        which = f" ({listed(again)} again below it)" if len(again) < len(first) else ""
        return f"is one of the rows{which}"
    if any(first[j].lower() in _USUAL_NAMES for j in words):
        return ""
    above = [j for j in numbers if numeric[j]]
    unlike = [j for j in above if _is_unlike(first[j], values[j], columns[j])]
    apart = len(unlike) >= 2 and 2 * len(unlike) >= len(above)
    if not words:
        # data frames without names are written with 0, 1, 2, ... as their header
        counts = np.ptp(values[:, 0] - np.arange(len(first))) == 0 and values[0, 0] in (0, 1)
        return "" if counts and (apart or len(first) >= _RISING) else "holds only numbers"
    over = sum(shares[j] >= 0.5 for j in words)
    plausible = len(above) - len(unlike)
    if over and (not plausible or over >= 3 * plausible):
        return ""
    if above:
        axis = len(above) >= _RISING and _is_axis(values[above])
        above_numbers = f"has numbers such as {first[above[0]]} above numbers, as a row of data has"
        return "" if axis or apart else above_numbers
    chances = [_chance_of_new(columns[j]) for j in words if not numeric[j]]
    if prod(chances) < _UNLIKELY or len(table) <= _FEW:
        return ""
    return f"has words ({listed(first[j] for j in words)}) above words that differ in each row"


def repeats(row: Iterable[object], names: Iterable[str]) -> bool:
    """Whether the cells are the names, but for blanks, case and the format of numbers."""
    pairs = zip(row, names, strict=True)
    return all(normal_form(str(cell)) == normal_form(name) for cell, name in pairs)


def _numbers(rows: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """The cells as numbers in any notation, NaN where they are none."""
    pd = pandas()
    flat = pd.Series([cell for row in rows for cell in row], dtype=object)
    found = pd.to_numeric(flat, errors="coerce")
    marked = flat[found.isna()].astype("string").str.translate(PLAIN)
    marked = marked.str.replace(rf"^\s*[({SIGNS}]|[{SIGNS})]\s*$", "", regex=True)
    marked = marked[marked.str.fullmatch(r"\s*[+-]?[\d.,' ]*\d([eE][+-]?\d+)?\s*")]
    plain = marked.str.replace(r"[.,' ](?=\d{3}(\D|$))", "", regex=True)
    plain = plain.str.replace(",", ".").astype(object)
    found[plain.index] = pd.to_numeric(plain, errors="coerce")
    return np.asarray(found.to_numpy(dtype=np.float64).reshape(len(rows), -1))


def _is_unlike(name: str, values: NDArray[np.float64], column: Values) -> bool:
    """Whether a number is far from those below it, or written otherwise."""
    below = values[1:][np.isfinite(values[1:])]
    low, high = below.min(), below.max()
    far = max(values[0] - high, low - values[0]) > high - low
    fractions = [bool({".", ","} & set(cell)) for cell in column if cell.strip()]
    whole = not ({".", ","} & set(name))
    otherwise = len(fractions) >= _FEW and (all(fractions) if whole else not any(fractions))
    return bool(far or otherwise)


def _is_axis(values: NDArray[np.float64]) -> bool:
    """Whether the first row rises or falls throughout, as hardly another one does."""
    steps = np.diff(values, axis=0)
    monotone = np.asarray((steps > 0).all(axis=0) | (steps < 0).all(axis=0))
    return bool(monotone[0] and monotone[1:].mean() < 1 - _CONSISTENT)


def _chance_of_new(column: Values) -> float:
    """The chance that another row has a level that is not in the column (Good and Turing)."""
    counts = Counter(column.tolist())
    single = sum(count == 1 for count in counts.values())
    return min(max(single, 1) / len(column), 1.0)
