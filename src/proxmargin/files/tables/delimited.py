"""Comma- and tab-separated tables and their kin."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.columns import NamedColumns
from proxmargin.files.tables.contents import Dialect, is_text, numbers_or_text
from proxmargin.files.tables.layout import (
    COMMENTS,
    DOUBTFUL,
    MISSING,
    SIGNS,
    Layout,
    cells,
    is_blank,
    is_note,
    layout_of,
)
from proxmargin.files.tables.text import Cost, NulFound, first_lines, lines_of, opened_text
from proxmargin.runtime.brief import brief, shown

# A cell has a place and a length in the parsed text, and a float64 in the table and the features.
_CELL_BYTES = 32
_NOTES = 50  # rows below a table at most


def read_delimited(
    path: Path, dialect: Dialect, usual: str | None, *, any_text: bool = True
) -> NamedColumns:
    """A text table. Raises DataError: the file cannot be read, or it cannot be known what its
    first line is."""
    lines = first_lines(path, dialect)
    nul = next((n for n, line in enumerate(lines) if "\0" in line), None)
    if nul is not None:
        lines = lines[:nul] or [lines[0].replace("\0", "")]
        if nul == 0:
            raise DataError(_nul_sentence(path, dialect, Layout(usual or ",", [], 0)))
    return columns_of_text(
        path, dialect, layout_of(str(path), lines, dialect, usual, any_text=any_text)
    )


def columns_of_text(path: Path, dialect: Dialect, layout: Layout) -> NamedColumns:
    """The columns of a text table that is laid out so."""
    notes = list(layout.notes)
    absent = dialect.absent([name or f"Unnamed: {j}" for j, name in enumerate(layout.names)])

    def load(positions: Sequence[int], text: Collection[int]) -> Any:
        frame, said = _frame(path, dialect, layout, absent, text)
        # columns may be loaded more than once
        notes.extend(note for note in said if note not in notes)
        if frame.columns.tolist() != list(positions):
            frame = frame[list(positions)]
        kinds = frame.dtypes.items()
        words = {j: frame[j] for j, type_ in kinds if type_.kind not in "fiub" and j not in text}
        others = numbers_among(words, layout.names, str(path), dialect, notes)
        others |= {j: _as_written(frame[j], dialect, absent[j]) for j in positions if j in text}
        for (
            j,
            column,
        ) in others.items():  # in place: the numbers of a wide table stay where they are
            frame[j] = column
        return frame

    return NamedColumns(
        str(path),
        layout.names,
        load,
        tells_text=False,
        notes=notes,
        index_first=layout.index_first,
        reread=partial(numbers_left, source=str(path), dialect=dialect, notes=notes),
    )


def _as_written(series: Any, dialect: Dialect, absent: Collection[str]) -> Any:
    """A column of text from its cells, of which pandas has taken hardly any for missing."""
    text = series.astype("string")
    return text.mask(text.isin([*(("",) if dialect.na_text else MISSING), *absent]))


def numbers_among(
    words: Mapping[int, Any],
    names: Sequence[str],
    source: str,
    dialect: Dialect,
    notes: list[str],
) -> dict[int, Any]:
    """Columns of words, those that are numbers as `numbers_meant`; a note says what was taken for
    missing."""
    found: dict[int, Any] = {}
    marks: dict[str, list[str]] = {}
    signs: dict[str, list[str]] = {}
    for j, series in words.items():
        name = names[j] or str(j + 1)
        found[j], missing, sign = numbers_meant(series, f"{source}: column {name!r}", dialect)
        if missing:
            marks[name] = missing
        if sign:
            signs.setdefault(sign, []).append(name)
    told = [
        f"{source}: numbers are read without their {sign!r}: {listed(columns)}"
        for sign, columns in signs.items()
    ]
    if marks:
        each = sorted({mark for missing in marks.values() for mark in missing})
        told.append(
            f"{source}: {listed(each)} among numbers {'is' if len(each) == 1 else 'are'} taken for "
            f"missing in {plural(len(marks), 'column')}: {listed(marks)}"
        )
    notes.extend(note for note in told if note not in notes)
    return found


def numbers_left(frame: Any, source: str, dialect: Dialect, notes: list[str]) -> Any:
    """Some of the rows, where columns may be numbers without the words of the others, such as a
    last row of totals."""
    names = frame.columns.tolist()
    words = {j: frame.iloc[:, j] for j, dtype in enumerate(frame.dtypes) if is_text(dtype)}
    found = numbers_among(words, names, source, dialect, notes)
    return frame.assign(**{names[j]: column for j, column in found.items()})


def numbers_meant(series: Any, what: str, dialect: Dialect) -> tuple[Any, list[str], str]:
    """A column of words as numbers where all of them are, but for marks of thousands, words for
    missing cells and one sign of percent or a currency in each; these words; and that sign. Else as
    text. DataError: they would be numbers with another decimal mark or with marks of thousands, and
    what to type."""
    pd = pandas()
    series = numbers_or_text(series)
    if not is_text(series.dtype):
        return series, [], ""
    absent = series.isna() | series.isin([*MISSING, *dialect.missing])
    text = series.mask(absent)
    words = text[~absent].str.strip()
    doubtful = words.isin(DOUBTFUL)
    present = words[~doubtful]
    first = present.iloc[0] if len(present) else ""
    sign = next((s for s in SIGNS if s in first and present.str.contains(s, regex=False).all()), "")
    if sign:
        present = present.str.replace(sign, "", n=1, regex=False).str.strip()
    plain = present
    if dialect.thousands:
        mark, point = re.escape(dialect.thousands), re.escape(dialect.decimal)
        grouped = present.str.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{3}})+({point}\d*)?")
        plain = present.mask(grouped, present.str.replace(dialect.thousands, "", regex=False))
    if dialect.decimal != ".":  # a point is none now
        plain = plain.str.translate(str.maketrans({".": "?", dialect.decimal: "."}))
    numbers = pd.to_numeric(plain.astype(object), errors="coerce")
    if present.empty or numbers.isna().any():
        _refuse_other_marks(present, what, dialect, sign)
        return text, [], ""
    found = pd.Series(np.nan, index=series.index, dtype=np.float64)
    found[numbers.index] = numbers.astype(np.float64)
    return found, words[doubtful].unique().tolist(), sign


def _refuse_other_marks(words: Any, what: str, dialect: Dialect, sign: str) -> None:
    """Refuse numbers in another notation by the options that read it: they would be levels."""
    point, other = dialect.decimal, "," if dialect.decimal == "." else "."
    ways = {f"decimal={other!r}": _form("", other)}
    ways |= {f"thousands={mark!r}": _form(mark, point) for mark in (other, " ", "'", "\u00a0")}
    ways[f"decimal={other!r} with thousands={point!r}"] = _form(point, other)
    others = words[~words.str.fullmatch(_form("", point))]
    if others.empty:
        return
    fits = [way for way, form in ways.items() if others.str.fullmatch(form).all()]
    if len(fits) > 1:  # that of 1,234 is also one of 1.234,5
        fits = fits[:-1]
    if sign and sign != "%":
        fits.reverse()  # sums have marks of thousands
    if fits:
        raise DataError(
            f"{what} holds numbers written like {others.iloc[0]!r}{sign and f' and {sign!r}'}; "
            f"name their marks: {' or '.join(fits)}."
        )


def _form(thousands: str, decimal: str) -> str:
    """The pattern of numbers with these marks."""
    point = re.escape(decimal)
    if not thousands:
        return rf"[+-]?(\d+{point}?\d*|{point}\d+)([eE][+-]?\d+)?"
    return rf"[+-]?\d{{1,3}}({re.escape(thousands)}\d{{3}})*({point}\d*)?"


def _frame(
    path: Path,
    dialect: Dialect,
    layout: Layout,
    absent: Sequence[Collection[str]],
    text: Collection[int],
    *,
    beyond: bool = False,
) -> tuple[Any, list[str]]:
    """The rows with their cells, and notes on rows that are left out. ``beyond``: rows may have
    more cells, all of them empty."""
    pd = pandas()
    width = len(layout.names)
    # to the last bit, as pandas reads floats from 3.1 on in any case
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    exact = {} if version >= (3, 1) else {"float_precision": "round_trip"}
    cost = Cost(line=_CELL_BYTES * width)
    words: Any = [*MISSING, *absent[0]]
    if dialect.na_text or len(set(absent)) > 1:
        words = {j: [*MISSING, *absent[j]] for j in range(width) if j not in text}
    with opened_text(path, dialect, cost) as stream, warnings.catch_warnings():
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
                # a mapping of types would cost more than the numbers of a wide table
                converters=dict.fromkeys(text, str),
                keep_default_na=False,
                na_values=words,
                skipinitialspace=layout.separator != "\t",
                quotechar=layout.quote,
                low_memory=False,
                **({"usecols": range(width)} if beyond else {}),
                **exact,
            )
        except pd.errors.EmptyDataError:
            frame = pd.DataFrame()
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            _refuse_uneven_rows(path, dialect, layout)
            if not beyond:
                return _frame(path, dialect, layout, absent, text, beyond=True)
            raise DataError(
                f"{path}: the rows do not all have the {width} columns of the header: "
                f"{brief(error).rstrip('.')}."
            ) from error
        except NulFound as error:
            raise DataError(_nul_sentence(path, dialect, layout)) from error
    if frame.empty:
        raise DataError(f"{path}: there is a header but no data rows.")
    return _whole_rows(path, dialect, layout, frame)


def _whole_rows(path: Path, dialect: Dialect, layout: Layout, frame: Any) -> tuple[Any, list[str]]:
    """Without rows of empty cells, notes below the table, and the header where it occurs again."""
    # pandas ends short rows with missing cells: without any in the last column there are none
    last = frame.iloc[:, layout.least - 1]
    doubtful = np.flatnonzero(last.isna() | (last == ""))
    out = {}
    if doubtful.size:
        if dialect.short_rows == "error":
            _refuse_uneven_rows(path, dialect, layout)
        part = frame.iloc[doubtful]
        empty = (part.isna() | (part == "")).all(axis=1).to_numpy()
        out["of empty cells"] = doubtful[empty]
        after = len(frame)
        while after and len(frame) - after < _NOTES and after - 1 in doubtful:
            row = frame.iloc[after - 1].astype(object)
            if not (is_note(row.where(row.notna(), "").tolist(), len(row)) or row.isna().all()):
                break
            after -= 1
        out["of notes below the table"] = doubtful[(doubtful >= after) & ~empty]
    words = [j for j, dtype in frame.dtypes.items() if dtype.kind not in "fiub"]
    names = layout.names
    if words and any(names) and dialect.header is not False:
        again = np.flatnonzero(frame[words[0]].astype(object) == names[words[0]])
        if again.size:
            same = frame.iloc[again].to_numpy(dtype=object) == np.array(names, dtype=object)
            out["that repeat the header"] = again[same.all(axis=1)]
    out = {what: rows for what, rows in out.items() if rows.size}
    if not out:
        return frame, []
    if sum(rows.size for rows in out.values()) == len(frame):
        raise DataError(f"{path}: there is a header but no data rows.")
    notes = [
        f"{path}: {plural(rows.size, 'row')} {what} left out "
        f"({listed(rows + 1, quote=False)}, counting data rows from 1)"
        for what, rows in out.items()
    ]
    return frame.drop(index=np.concatenate(list(out.values()))).reset_index(drop=True), notes


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
    what = f"the rows do not all have the {width} columns of the header: {lines}"
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
    raise DataError(f"{path}: {what}; {advice}.")


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
            header = not layout.names
            place = f"column {found + 1} of the header" if header else f"row {row}, column {name}"
            return (
                f"{path}: a NUL character in {place}, which holds {shown(line[found], 80)} "
                "(counting data rows from 1): the file is damaged, or its encoding is another "
                "one (encoding=)."
            )
    return f"{path}: a NUL character: the file is damaged."
