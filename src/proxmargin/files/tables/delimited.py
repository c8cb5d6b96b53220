"""Comma- and tab-separated tables and their kin."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import listed, pandas, refused, said
from proxmargin.files.tables.cells import MISSING, is_number
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import Dialect
from proxmargin.files.tables.layout import (
    COMMENTS,
    Layout,
    cells,
    end_of,
    is_blank,
    is_note,
    layout_of,
    repeats,
)
from proxmargin.files.tables.text import first_lines, lines_of, opened_text
from proxmargin.runtime.brief import brief
from proxmargin.runtime.types import Frame

# A cell has a place and a length in the parsed text, and a float64 in the table and the features.
_CELL_BYTES = 32
_FIRST = 100  # rows that tell how numbers are written
# numbers that could have a point between groups of digits
_GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})?|0")


def read_delimited(path: Path, dialect: Dialect, usual: str | None, others: str) -> NamedColumns:
    """A text table. Raises DataError: the file cannot be read, or it cannot be known what its first
    line is."""
    lines = first_lines(path, dialect)
    layout = layout_of(str(path), lines, dialect, usual, others)
    rows = [*islice(cells(lines[layout.skipped :], layout.separator, layout.quote), _FIRST)]
    if layout.separator == ";" and dialect.decimal == "." and not dialect.thousands:
        grouped = _grouped(layout.names, rows)
        if grouped:
            note = said("grouped_digits", path, names=grouped)
            layout = replace(layout, notes=(*layout.notes, note))
    words = {j for j, cell in enumerate(rows[0] if rows else []) if _is_word(cell.strip(), dialect)}
    return columns_of_text(path, dialect, layout, words)


def columns_of_text(
    path: Path, dialect: Dialect, layout: Layout, words: Collection[int] = ()
) -> NamedColumns:
    """The columns of a text table that is laid out so, of which some begin with ``words``."""
    notes = list(layout.notes)

    def parse(positions: Collection[int], text: Collection[int]) -> Frame:
        asked = {*text}.difference(words)  # pandas reads text faster where it finds it itself
        frame, told = _whole_rows(path, dialect, layout, _frame(path, dialect, layout, asked, text))
        # columns may be loaded more than once
        notes.extend(note for note in told if note not in notes)
        return frame

    return NamedColumns(
        str(path), layout.names, parse, dialect, notes=notes, index_first=layout.index_first
    )


def _grouped(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The columns of whose first cells all are numbers with three digits after each point."""
    columns = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    words = [{cell.strip() for cell in column} - {*MISSING} for column in columns]
    return [
        name
        for name, found in zip(names, words, strict=False)
        if any("." in word for word in found) and all(map(_GROUPED.fullmatch, found))
    ]


def _is_word(cell: str, dialect: Dialect) -> bool:
    """Whether a column with this cell is one of text."""
    others = {*MISSING, *dialect.missing, "true", "false"}
    return not (others & {cell, cell.lower()} or is_number(cell, dialect.decimal))


def _frame(
    path: Path,
    dialect: Dialect,
    layout: Layout,
    asked: Collection[int],
    text: Collection[int],
    **more: object,
) -> Any:
    """The cells, labelled by position: numbers, or text as it is written, also in the columns
    ``asked`` of those of ``text``. ``more``: what the rows need, as was found out."""
    pd = pandas()
    width = len(layout.names)
    # to the last bit, as pandas reads floats from 3.1 on in any case
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exact = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    words: Any = [*MISSING, *dialect.codes(layout.names)[0]]
    if dialect.na_text or dialect.exact:
        words = {j: words for j in range(width) if j not in text}
    with opened_text(path, dialect, _CELL_BYTES * width) as stream, warnings.catch_warnings():
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
                low_memory=False,  # in one piece: joining those of wide tables costs more
                **exact,
                **more,
            )
            if dialect.comment:  # blanks before one
                words = frame.select_dtypes(exclude="number").columns
                frame[words] = frame[words].apply(lambda column: column.str.rstrip())
            return frame
        except pd.errors.EmptyDataError:
            return pd.DataFrame()
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            _refuse_uneven_rows(path, dialect, layout)
            if "usecols" not in more:  # the cells beyond the header are all empty
                return _frame(path, dialect, layout, asked, text, **more, usecols=range(width))
            lines = brief(error).rstrip(".")
            raise refused("uneven", path, width=width, lines=lines) from error


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
            below = doubtful >= end_of(frame)
            out["of notes below the table"] = doubtful[below & ~empty]
        if dialect.header is not False:
            missing = {*MISSING, *dialect.codes(layout.names)[0]}
            # that of R has no name above those of the rows
            names = [*layout.names[1:], ""] if layout.index_first else layout.names
            out["that repeat the header"] = _headers(frame, names, missing)
    out = {what: rows for what, rows in out.items() if rows.size}
    if sum(rows.size for rows in out.values()) == len(frame):
        raise refused("header_alone", path)
    notes = [
        said("left_out", path, what=what, count=rows.size, rows=rows + 1)
        for what, rows in out.items()
    ]
    if out:
        frame = frame.drop(index=np.concatenate(list(out.values()))).reset_index(drop=True)
    return frame, notes


def _headers(frame: Frame, names: Sequence[str], missing: Collection[str]) -> NDArray[np.intp]:
    """The rows that are the header again; ``missing``: words that were read as missing cells."""
    named = ["" if name in missing else name for name in names]
    words = [j for j, dtype in enumerate(frame.dtypes) if dtype.kind not in "fiub" and named[j]]
    rows = np.array([], dtype=np.intp)
    if words and len(names) > 1:  # levels of the only column may be like its name
        column, name = frame[words[-1]], named[words[-1]].strip().casefold()
        same = [w for w in column.unique() if str(w).strip().casefold() == name]
        rows = np.flatnonzero(column.isin(same)) if same else rows
    if not rows.size:
        return rows
    found = frame.iloc[rows].astype(object)
    written = found.mask(found.isna() | found.isin([*missing]), "").to_numpy()
    return rows[np.fromiter((repeats(row, named) for row in written), np.bool_)]


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
            again = layout.index_first and len(row) == width - 1
            if not (again and repeats(row, layout.names[1:])):
                short.append(pair)
        elif len(row) > width and any(cell.strip() for cell in row[width:]):
            long.append(pair)
    wrong = long or ([] if dialect.short_rows == "missing" else short)
    if not wrong:
        return
    starts = {row[0].strip()[:1] for _, row in wrong}
    comments = len(starts) == 1 and starts <= set(COMMENTS)
    mark, kind = layout.separator, "uneven_long" if long else "uneven_short"
    raise refused(
        "uneven_comments" if comments else kind,
        path,
        width=width,
        lines=listed([f"line {n} has {len(row)}" for n, row in wrong], quote=False),
        mark=next(iter(starts)),
        quoted="" if mark == " " else f", and quote cells with a {mark!r}",
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
