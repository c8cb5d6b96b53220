"""Comma- and tab-separated text with a header line."""

from __future__ import annotations

import csv
import gzip
import warnings
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from proxmargin.files.column import Column, series_column
from proxmargin.files.columns import NamedColumns
from proxmargin.files.errors import DataError
from proxmargin.files.extras import pandas

# Cells that count as missing. Words such as 'None' and 'n/a' are levels of many real columns.
MISSING = ("", "NA", "N/A", "NaN", "NAN", "nan", "-nan", "<NA>", "NULL", "null")


def read_commas(path: Path) -> NamedColumns:
    """A CSV file."""
    return _read(path, ",")


def read_tabs(path: Path) -> NamedColumns:
    """A TSV file."""
    return _read(path, "\t")


def _read(path: Path, separator: str) -> NamedColumns:
    names = _header(path, separator)

    def load(wanted: Sequence[str], text: Collection[str]) -> list[Column]:
        frame = _frame(path, separator, names, text)
        return [series_column(name, frame[name]) for name in wanted]

    return NamedColumns(str(path), names, load)


def _header(path: Path, separator: str) -> list[str]:
    with _opened(path) as stream:
        # skipping initial blanks would swallow the empty cells of a tab-separated header
        lines = csv.reader(stream, delimiter=separator, skipinitialspace=separator != "\t")
        names = next((line for line in lines if any(cell.strip() for cell in line)), None)
    if names is None:
        raise DataError(f"{path}: the file is empty.")
    names = [name.strip() for name in names]
    if "" in names:
        raise DataError(
            f"{path}: column {names.index('') + 1} has no name in the header; name it, or remove "
            "it if it is a row number."
        )
    if _looks_like_data(names):
        raise DataError(
            f"{path}: the first line holds only numbers, so the columns have no names; "
            "add a header line."
        )
    return names


def _looks_like_data(names: Sequence[str]) -> bool:
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    # data frames without names are written with 0, 1, 2, ... as their header
    counts = [float(j) for j in range(len(names) + 1)]
    return numbers not in (counts[:-1], counts[1:])


def _frame(path: Path, separator: str, names: list[str], text: Collection[str]) -> Any:
    pd = pandas()
    with _opened(path) as stream, warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            frame = pd.read_csv(
                stream,
                sep=separator,
                header=0,
                names=names,
                index_col=False,
                dtype=dict.fromkeys(text, str),
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=separator != "\t",
                low_memory=False,
                **_exact_floats(pd),
            )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            reason = str(error).replace("\n", " ").strip().rstrip(".")
            raise DataError(
                f"{path}: the rows do not all have the {len(names)} columns of the header: "
                f"{reason}."
            ) from error
    if frame.empty:
        raise DataError(f"{path}: there is a header but no data rows.")
    return frame


def _exact_floats(pd: Any) -> dict[str, str]:
    """The option that makes pandas read floats to the last bit; from 3.1 on it always does."""
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a text file in UTF-8: {error.reason}.") from error
    except csv.Error as error:
        raise DataError(f"{path}: not a readable text table: {error}.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}.") from error
