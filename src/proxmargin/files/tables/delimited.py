"""Comma- and tab-separated tables and their kin."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.cells import MISSING, is_number
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import Dialect
from proxmargin.files.tables.layout import COMMENTS, Layout, cells, is_blank, is_note, layout_of
from proxmargin.files.tables.text import NulFound, first_lines, lines_of, opened_text
from proxmargin.runtime.brief import brief, shown

# A cell has a place and a length in the parsed text, and a float64 in the table and the features.
_CELL_BYTES = 32
_NOTES = 50  # rows below a table at most
_FIRST = 100  # rows that tell how numbers are written
# numbers that could have a point between groups of digits
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})?|0")


def read_delimited(
    path: Path, dialect: Dialect, usual: str | None, *, any_text: bool = True
) -> NamedColumns:
    """A text table. Raises DataError: the file cannot be read, or it cannot be known what its
    first line is."""
    lines = first_lines(path, dialect)
    nul = next((n for n, line in enumerate(lines) if "\0" in line), len(lines))
    if nul == 0:
        raise DataError(_nul_sentence(path, dialect, Layout(usual or ",", [], 0)))
    layout = layout_of(str(path), lines[:nul], dialect, usual, any_text=any_text)
    usual_marks = layout.separator == ";" and dialect.decimal == "." and not dialect.thousands
    grouped = _grouped(lines[:nul], layout) if usual_marks else set()
    first: list[str] = next(cells(lines[layout.skipped : nul], layout.separator, layout.quote), [])
    words = {j for j, cell in enumerate(first) if _is_word(cell.strip(), dialect)}
    return columns_of_text(path, dialect, layout, grouped, words)


def columns_of_text(
    path: Path,
    dialect: Dialect,
    layout: Layout,
    grouped: Collection[int] = (),
    words: Collection[int] = (),
) -> NamedColumns:
    """The columns of a text table that is laid out so, of which some begin with numbers that may be
    ``grouped``, and others with ``words``."""
    notes = list(layout.notes)

    def parse(positions: Collection[int], text: Collection[int]) -> Any:
        asked = {*text}.difference(words)  # pandas reads text faster where it finds it itself
        frame, said = _whole_rows(path, dialect, layout, _frame(path, dialect, layout, asked, text))
        doubtful = [layout.names[j] for j in positions if j in grouped and _thrice(frame[j])]
        if doubtful:
            said.append(
                f"{path}: three digits follow each point, which is read as a decimal one, in "
                f"{listed(doubtful)}; if it groups digits, say so (thousands='.' with decimal=',')"
            )
        # columns may be loaded more than once
        notes.extend(note for note in said if note not in notes)
        return frame

    return NamedColumns(
        str(path), layout.names, parse, dialect, notes=notes, index_first=layout.index_first
    )


def _grouped(lines: list[str], layout: Layout) -> set[int]:
    """The columns whose first cells are numbers with three digits after each point."""
    some = lines[layout.skipped : layout.skipped + _FIRST]
    rows = cells(some, layout.separator, layout.quote)
    columns = enumerate(zip(*(row for row in rows if len(row) == len(layout.names)), strict=True))
    words = ((j, {cell.strip() for cell in column} - {*MISSING}) for j, column in columns)
    return {j for j, found in words if found and all(map(_GROUPED.fullmatch, found))}


def _is_word(cell: str, dialect: Dialect) -> bool:
    """Whether a column with this cell is one of text."""
    others = {*MISSING, *dialect.missing, "true", "false"}
    return not (others & {cell, cell.lower()} or is_number(cell, dialect.decimal))


def _thrice(column: Any) -> bool:
    """Whether all numbers could have thousands in the place of their decimals."""
    if column.dtype.kind != "f":
        return False
    sizes = column.dropna().abs()
    grouped = ((sizes >= 1) | (sizes == 0)) & (sizes < 1000) & (sizes.round(3) == sizes)
    return bool(grouped.all() and (sizes % 1 != 0).any())


def _frame(
    path: Path,
    dialect: Dialect,
    layout: Layout,
    asked: Collection[int],
    text: Collection[int],
    *,
    beyond: bool = False,
) -> Any:
    """The cells, labelled by position: numbers, or text as it is written, also in the columns
    ``asked`` of those of ``text``. ``beyond``: rows may have more cells, all of them empty."""
    pd = pandas()
    width = len(layout.names)
    # to the last bit, as pandas reads floats from 3.1 on in any case
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exact = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    words: Any = [*MISSING, *dialect.shared_missing(layout.names)]
    if dialect.na_text or dialect.exact:
        words = {j: words for j in range(width) if j not in text}
    with (
        opened_text(path, dialect, _CELL_BYTES * width) as stream,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            for _ in islice(lines_of(stream, dialect), layout.skipped):
                pass
            frame = pd.read_csv(
                stream,
                sep=r"\s+" if layout.separator == " " else layout.separator,
                decimal=dialect.decimal,
                header=None,
                names=range(width),
                index_col=False,
                dtype=dict.fromkeys(asked, str),
                keep_default_na=False,
                na_values=words,
                skipinitialspace=layout.separator != "\t" and not dialect.exact,
                quotechar=layout.quote,
                comment=dialect.comment,
                low_memory=False,
                **({"usecols": range(width)} if beyond else {}),
                **exact,
            )
            if dialect.comment:  # blanks before one
                words = frame.select_dtypes(exclude="number").columns
                frame[words] = frame[words].apply(lambda column: column.str.rstrip())
            return frame
        except pd.errors.EmptyDataError:
            return pd.DataFrame()
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            _refuse_uneven_rows(path, dialect, layout)
            if not beyond:
                return _frame(path, dialect, layout, asked, text, beyond=True)
            raise DataError(
                f"{path}: the rows do not all have the {width} columns of the header: "
                f"{brief(error).rstrip('.')}."
            ) from error
        except NulFound as error:
            raise DataError(_nul_sentence(path, dialect, layout)) from error


def _whole_rows(path: Path, dialect: Dialect, layout: Layout, frame: Any) -> tuple[Any, list[str]]:
    """Without rows of empty cells, notes below the table, and the header where it occurs again; and
    notes on them."""
    out = {}
    if len(frame):
        # pandas ends short rows with missing cells: without any in the last column there are none
        last = frame.iloc[:, layout.least - 1]
        doubtful = np.flatnonzero(last.isna() | (last == ""))
        if doubtful.size:
            if dialect.short_rows == "error":
                _refuse_uneven_rows(path, dialect, layout)
            part = frame.iloc[doubtful]
            empty = (part.isna() | (part == "")).all(axis=1).to_numpy()
            out["of empty cells"] = doubtful[empty]
            after = len(frame)
            while after and len(frame) - after < _NOTES and after - 1 in doubtful:
                row = frame.iloc[after - 1].astype(object)
                cells_ = row.where(row.notna(), "").tolist()
                if not (is_note(cells_, len(row)) or row.isna().all()):
                    break
                after -= 1
            out["of notes below the table"] = doubtful[(doubtful >= after) & ~empty]
        words = [j for j, dtype in frame.dtypes.items() if dtype.kind not in "fiub"]
        names = layout.names
        if words and any(names) and dialect.header is not False:
            again = np.flatnonzero(frame[words[0]] == names[words[0]])
            if again.size:
                same = frame.iloc[again].to_numpy(dtype=object) == np.array(names, dtype=object)
                out["that repeat the header"] = again[same.all(axis=1)]
    out = {what: rows for what, rows in out.items() if rows.size}
    if sum(rows.size for rows in out.values()) == len(frame):
        raise DataError(f"{path}: there is a header but no data rows.")
    notes = [
        f"{path}: {plural(rows.size, 'row')} {what} left out "
        f"({listed(rows + 1, quote=False)}, counting data rows from 1)"
        for what, rows in out.items()
    ]
    if out:
        frame = frame.drop(index=np.concatenate(list(out.values()))).reset_index(drop=True)
    return frame, notes


def _refuse_uneven_rows(path: Path, dialect: Dialect, layout: Layout) -> None:
    """Name the lines with too few or too many cells, if there are any."""
    width = len(layout.names)
    short: list[tuple[int, list[str]]] = []
    long: list[tuple[int, list[str]]] = []
    below: list[tuple[int, list[str]]] = []  # what may be notes below the table
    for pair in _rows(path, dialect, layout):
        row = pair[1]
        if is_note(row, width):
            below.append(pair)
            continue
        short += [each for each in below if len(each[1]) < layout.least]
        below = []
        if len(row) < layout.least:
            short.append(pair)
        elif len(row) > width and any(cell.strip() for cell in row[width:]):
            long.append(pair)
    refused = long or ([] if dialect.short_rows == "missing" else short)
    if not refused:
        return
    lines = listed([f"line {n} has {len(row)}" for n, row in refused], quote=False)
    starts = {row[0].strip()[:1] for _, row in refused}
    if len(starts) == 1 and starts <= set(COMMENTS):
        (mark,) = starts
        advice = f"if these lines are comments, leave them out (comment={mark!r})"
    elif long:
        quoted = "" if layout.separator == " " else f", and quote cells with a {layout.separator!r}"
        advice = f"correct these lines{quoted}, or name another separator (separator=)"
    else:
        advice = (
            "correct these lines, or read the cells that they lack as missing "
            "(short_rows='missing')"
        )
    raise DataError(
        f"{path}: the rows do not all have the {width} columns of the header: {lines}; {advice}."
    )


def _rows(path: Path, dialect: Dialect, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """The rows of data that are not blank, each with the number of its last line."""
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for number, line in islice(lines_of(stream, dialect), layout.skipped, None):  # noqa: B007
            yield line

    with opened_text(path, dialect) as stream:
        for row in cells(lines(), layout.separator, layout.quote):
            if not is_blank(row):
                yield number, row


def _nul_sentence(path: Path, dialect: Dialect, layout: Layout) -> str:
    """Which cell holds the NUL character at which a C parser would cut it."""
    for row, (_, line) in enumerate(_rows(path, dialect, layout), 1):
        found = next((j for j, cell in enumerate(line) if "\0" in cell), None)
        if found is not None:
            name = repr(layout.names[found]) if found < len(layout.names) else str(found + 1)
            place = f"row {row}, column {name}"
            if not layout.names:
                place = f"column {found + 1} of the header"
            return (
                f"{path}: a NUL character in {place}, which holds {shown(line[found], 80)} "
                "(counting data rows from 1): the file is damaged, or its encoding is another "
                "one (encoding=)."
            )
    return f"{path}: a NUL character: the file is damaged."
