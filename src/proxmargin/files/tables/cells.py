"""Cells of columns: which are missing, which are numbers and in what notation, what others are."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import pandas, refused
from proxmargin.files.tables.contents import Dialect
from proxmargin.runtime.types import Column, Frame

# words for missing cells, which speak neither for a header nor against one
MISSING = ("", "NA", "N/A", "NaN", "NAN", "nan", "-nan", "<NA>", "NULL", "null")
# words that are also levels of real columns: missing where all other cells are numbers
DOUBTFUL = (
    *("?", ".", "-", "n/a", "#N/A", "#N/A N/A", "#NA", "None", "none", "-NaN", "na", "Na", "nil"),
    *("\\N", "NaT", "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NULL!"),
)
# what people write where they do not know
_UNKNOWN = frozenset(word.casefold() for word in (*MISSING, *DOUBTFUL, "*", "missing"))
SIGNS = "%‰$€£¥₹"  # before or behind numbers
# signs and blanks of typesetters
PLAIN = str.maketrans({"\u2212": "-", "\u00a0": " ", "\u202f": " ", "\u2009": " "})
# what `pandas.api.types.infer_dtype` calls numbers (or nothing at all)
_NUMERIC = frozenset({"boolean", "integer", "floating", "mixed-integer-float", "decimal", "empty"})
_HEAD = 100  # cells of which one that is no number tells that a column is text
# Share of numbers among its cells above which a column of text was probably meant to be numbers.
MOSTLY = 0.5
_BRACKETS = r"\([^-+()]+\)"  # around the negative numbers of accountants
_MARKS = r"\(\d{1,2}\)"  # of notes, or of kinds
_MONTH = r"(?i:(jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[^\W\d_]*)"
_KINDS = {
    "dates": r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?"
    rf"|([\w ]+ )?((\d{{1,2}}[-. ]{{1,2}})?{_MONTH}\.?[- ]|{_MONTH}\.? \d{{1,2}},? )(19|20)?\d\d",
    # also with the sign of a limit: 12.5 mg, 12 %, <0.5
    "ratios": r"\d{1,3}/\d{1,3}",
    "times or numbers with a unit": r"[<>≤≥~=$€£¥₹\s]*[+-]?(\d+[.,]\d+|\d+(?=\s|%|$))\s*%?"
    r"([^\W\d_]\S*)?\s*|\d{1,2}:\d\d(:\d\d)?",
}


def is_number(cell: object, decimal: str = ".") -> bool:
    """Whether a cell is a number as pandas reads it: without the underscores of Python."""
    text = str(cell).replace(decimal, ".")
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def is_text(dtype: Any) -> bool:
    """Whether a column of a table that was read holds text; all others hold numbers."""
    return type(dtype).__name__ == "StringDtype"  # without an import: asked of each column


def numbers_or_text(series: Column) -> Column:
    """The series in the types that tables have: numbers or booleans of NumPy, NaN where they are
    missing, or pandas strings, NA where they are."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "fiub":
        return series
    if is_text(series.dtype):
        return series.astype("string")
    missing = series.isna()
    kind = pandas().api.types.infer_dtype(series, skipna=True)
    if kind not in _NUMERIC:
        return series.astype(object).where(missing, series.map(str)).astype("string")
    if kind == "boolean" and not missing.any():
        return series.astype(bool)
    return series.astype(object).where(~missing, np.nan).astype(np.float64)


def as_text(column: Column) -> Column:
    """The column as text, of which numbers are written as Python does."""
    if is_text(column.dtype):
        return column
    return column.map(str).where(column.notna()).astype("string")


def text_columns(frame: Frame) -> list[Any]:
    """The columns of text that hold anything."""
    names = (n for n, dtype in zip(frame.columns, frame.dtypes, strict=True) if is_text(dtype))
    return [frame[name] for name in names if frame[name].notna().any()]


def are_among(column: Column, words: Collection[str]) -> Column:
    """Which cells are these words, or the numbers that they are."""
    codes = words if is_text(column.dtype) else [float(w) for w in words if is_number(w)]
    return column.isin(codes)


def without(column: Column, words: Collection[str]) -> Column:
    """The column without these words, or the numbers that they are."""
    return column.mask(are_among(column, words)) if len(words) else column


def numbers_meant(
    series: Column, what: str, dialect: Dialect, beside: Frame
) -> tuple[Column, list[str], str]:
    """A column of cells as numbers where all of them are, but for marks of thousands, words for
    missing cells, one sign of percent or a currency in each, and brackets around negative ones;
    these words; and these signs. Else as text. DataError: they would be numbers with another
    decimal mark or with marks of thousands, as those ``beside`` may tell, and what to type."""
    series = numbers_or_text(series)
    if not is_text(series.dtype):
        return series, [], ""
    text = without(series, MISSING)
    words = text.dropna()
    for some in (words.iloc[:_HEAD], words):  # the first words tell most columns of text
        cells = some.str.translate(PLAIN).str.strip()
        doubtful = cells.isin(DOUBTFUL)
        present = cells[~doubtful]
        first = present.iloc[0] if len(present) else ""
        signs = (s for s in SIGNS if s in first and present.str.contains(s, regex=False).all())
        sign = next(signs, "")
        if sign:
            present = present.str.replace(sign, "", n=1, regex=False).str.strip()
        negative = present.str.fullmatch(_BRACKETS)
        if negative.any() and not present.str.fullmatch(_MARKS).all():
            present = present.where(~negative, "-" + present.str[1:-1].str.strip())
            sign = f"{sign}()"
        numbers = _parsed(present, dialect)
        ways = _other_marks(present, dialect, sign) if numbers.isna().any() else []
        if len(ways) > 1 and dialect.decimal == "." and _have_fractions(beside):
            ways = [way for way in ways if not way.startswith("decimal")]
        if numbers.isna().any() and not ways:
            return text, [], ""
    if ways:
        cell, sign = present[numbers.isna()].iloc[0], sign and f" with {sign!r}"
        raise refused("other_marks", what=what, cell=cell, sign=sign, ways=" or ".join(ways))
    if present.empty:
        return text, [], ""
    found = pandas().Series(np.nan, index=series.index, dtype=np.float64)
    found[numbers.index] = numbers.astype(np.float64)
    return found, cells[doubtful].unique().tolist(), sign


def _have_fractions(frame: Frame) -> bool:
    """Whether numbers among the first cells have a decimal point."""
    numbers = frame.iloc[:_HEAD].select_dtypes("number")
    return bool((numbers % 1 > 0).to_numpy().any())


def _parsed(words: Any, dialect: Dialect) -> Column:
    """Words as numbers of that notation, NaN where they are none."""
    if dialect.thousands:
        thousands = dialect.thousands.translate(PLAIN)
        mark, point = re.escape(thousands), re.escape(dialect.decimal)
        grouped = words.str.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{3}})+({point}\d*)?")
        words = words.mask(grouped, words.str.replace(thousands, "", regex=False))
    if dialect.decimal != ".":  # a point is none now
        words = words.str.translate(str.maketrans({".": "?", dialect.decimal: "."}))
    return pandas().to_numeric(words.astype(object), errors="coerce")


def _other_marks(words: Column, dialect: Dialect, sign: str) -> list[str]:
    """The options by which words are numbers in another notation: they would be levels."""
    point, other = dialect.decimal, "," if dialect.decimal == "." else "."
    ways = {f"decimal={other!r}": _form("", other)}
    ways |= {f"thousands={mark!r}": _form(mark, point) for mark in (other, " ", "'")}
    ways[f"decimal={other!r} with thousands={point!r}"] = _form(point, other)
    others = words[~words.str.fullmatch(_form("", point))]
    if others.empty:
        return []
    fits = [way for way, form in ways.items() if others.str.fullmatch(form).all()]
    if len(fits) > 1:  # that of 1,234 is also one of 1.234,5
        fits = fits[:-1]
    return fits[::-1] if sign and sign != "%" else fits  # sums have marks of thousands


def _form(thousands: str, decimal: str) -> str:
    """The pattern of numbers with these marks."""
    point = re.escape(decimal)
    if not thousands:
        return rf"[+-]?(\d+{point}?\d*|{point}\d+)([eE][+-]?\d+)?"
    return rf"[+-]?\d{{1,3}}({re.escape(thousands)}\d{{3}})*({point}\d*)?"


def measured(column: Column) -> str:
    """What most cells of a column of text are that are no levels; empty if they are words."""
    counts = column.value_counts()
    counts = counts[[not is_number(word) for word in counts.index]]
    words = counts.index.str.strip()
    fits = {kind: counts[words.str.fullmatch(form).astype(bool)] for kind, form in _KINDS.items()}
    return next((kind for kind, c in fits.items() if c.sum() > MOSTLY * counts.sum()), "")


def numbers_among(column: Column) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows of cells that are not missing, and whether each is a number, with a decimal point or
    comma."""
    places, words = pandas().factorize(column)
    numbers = np.array([is_number(word, ",") for word in words], dtype=bool)
    present = np.flatnonzero(places >= 0)
    return present, numbers[places[present]]


def stray_words(column: Column) -> list[str]:
    """The words of a column most of whose cells are numbers."""
    present, numbers = numbers_among(column)
    return column.iloc[present[~numbers]].unique().tolist() if numbers.mean() > MOSTLY else []


def example_of(column: Column) -> str:
    """The first cell that is no number; where there are others, how many cells are numbers."""
    present, numbers = numbers_among(column)
    row = int(present[numbers.argmin()])
    kind = f"; {kind}" if (kind := measured(column)) else ""
    mixed = numbers.any() and not numbers.all()
    others = f"; {numbers.sum()} of {present.size} cells are numbers" if mixed else ""
    cell = column.iloc[row][:40]
    return f"{column.name!r} (row {column.index[row] + 1} holds {cell!r}{others}{kind})"


def normal_form(level: str) -> str:
    """What levels have in common that differ only in blanks, case or the format of a number."""
    text = " ".join(level.split()).casefold()
    return repr(float(text)) if is_number(text) else text


def alike(words: Iterable[str]) -> dict[str, list[str]]:
    """The words by their normal forms."""
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault(normal_form(word), []).append(word)
    return found


def slips(words: Iterable[str], name: str) -> list[str]:
    """Which distinct words of a column are hardly meant to be different, and which to be words."""
    words = list(words)
    groups = (same for same in alike(words).values() if len(same) > 1)
    spelt = "differ only in blanks, case or number format (normalize_levels=True)"
    return [f"{' and '.join(map(repr, same))} {spelt}" for same in groups] + [
        f"{word!r} looks like a missing value"
        + ("" if word in MISSING else f" (missing={f'{name}={word}'!r})")
        for word in words
        if word.strip().casefold() in _UNKNOWN
    ]
