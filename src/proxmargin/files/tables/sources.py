"""Which reader opens which file: the one place that knows suffixes and names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from proxmargin.files.errors import DataError
from proxmargin.files.tables import columnar, delimited, embedded, npz, svmlight
from proxmargin.files.tables.contents import TableSource
from proxmargin.files.tables.dialect import USUAL, Dialect
from proxmargin.files.wording import listed
from proxmargin.runtime.unpacking import PACKINGS

Reader = Callable[[Path], TableSource]

# text is read compressed, too
_PACKED = ("", *PACKINGS)
_SVMLIGHT = [
    f"{kind}{packed}" for kind in (".svm", ".svmlight", ".libsvm", ".txt") for packed in _PACKED
]

# suffixes of text tables, and what separates their cells if nothing else is said
SEPARATORS = {
    f"{kind}{packed}": mark for kind, mark in ((".csv", ","), (".tsv", "\t")) for packed in _PACKED
}
# files that may be tables too: they are where a separator is given
_PERHAPS_TABLES = tuple(f".txt{packed}" for packed in _PACKED)

READERS: dict[str, Reader] = {
    **dict.fromkeys(_SVMLIGHT, svmlight.read),
    ".parquet": columnar.read_parquet,
    ".arrow": columnar.read_arrow,
    ".feather": columnar.read_arrow,
    ".npz": npz.read,
}


def open_source(source: str | os.PathLike[str], dialect: Dialect = USUAL) -> TableSource:
    """The opened data file, or the embedded set of that name.

    Raises
    ------
    DataError
        There is no such file or set, its suffix is unknown, or it is no text and a dialect is
        given.
    """
    if source in embedded.EMBEDDED:
        _refuse_dialect(str(source), dialect)
        return embedded.read(str(source))
    path = Path(source)
    _refuse_unreadable(path)
    suffix = _suffix(path)
    separator = dialect.separator or SEPARATORS.get(suffix)
    if separator and (suffix not in READERS or suffix in _PERHAPS_TABLES):
        return delimited.read(path, separator, dialect)
    if suffix not in READERS:
        raise DataError(
            f"{path}: unknown kind of file; {_known()}. A text table with another suffix is read "
            "where its separator is given (separator=)."
        )
    _refuse_dialect(str(path), dialect)
    return READERS[suffix](path)


def _suffix(path: Path) -> str:
    name = path.name.lower()
    known = (suffix for suffix in (*READERS, *SEPARATORS) if name.endswith(suffix))
    return max(known, key=len, default="")


def _refuse_dialect(source: str, dialect: Dialect) -> None:
    if dialect != USUAL:
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
    suffixes = listed([*SEPARATORS, *READERS], quote=False, at_most=99)
    names = listed(embedded.EMBEDDED, quote=False, at_most=len(embedded.EMBEDDED))
    return f"known are the suffixes {suffixes}, and the embedded sets {names}"
