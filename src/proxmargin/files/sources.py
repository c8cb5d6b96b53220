"""Which reader opens which file: the one place that knows suffixes and names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from proxmargin.files import columnar, delimited, embedded, npz, svmlight
from proxmargin.files.contents import Source
from proxmargin.files.errors import DataError
from proxmargin.files.wording import listed

Reader = Callable[[Path], Source]

# scikit-learn's svmlight reader unpacks both kinds of compression
_SVMLIGHT = [
    f"{kind}{packed}"
    for kind in (".svm", ".svmlight", ".libsvm", ".txt")
    for packed in ("", ".gz", ".bz2")
]

READERS: dict[str, Reader] = {
    **dict.fromkeys(_SVMLIGHT, svmlight.read),
    ".csv": delimited.read_commas,
    ".csv.gz": delimited.read_commas,
    ".tsv": delimited.read_tabs,
    ".tsv.gz": delimited.read_tabs,
    ".parquet": columnar.read_parquet,
    ".arrow": columnar.read_arrow,
    ".feather": columnar.read_arrow,
    ".npz": npz.read,
}


def open_source(source: str | os.PathLike[str]) -> Source:
    """The opened data file, or the embedded set of that name.

    Raises
    ------
    DataError
        There is no such file or set, or its suffix is unknown.
    """
    if source in embedded.EMBEDDED:
        return embedded.read(str(source))
    path = Path(source)
    _refuse_unreadable(path)
    return _reader(path)(path)


def _reader(path: Path) -> Reader:
    name = path.name.lower()
    suffix = max((s for s in READERS if name.endswith(s)), key=len, default=None)
    if suffix is None:
        raise DataError(f"{path}: unknown kind of file; {_known()}.")
    return READERS[suffix]


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
    suffixes = listed(READERS, quote=False, at_most=len(READERS))
    names = listed(embedded.EMBEDDED, quote=False, at_most=len(embedded.EMBEDDED))
    return f"known are the suffixes {suffixes}, and the embedded sets {names}"
