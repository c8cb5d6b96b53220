"""The svmlight format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from proxmargin.files.errors import DataError
from proxmargin.files.tables.matrices import PlainMatrix
from proxmargin.files.tables.text import Cost, opened_bytes
from proxmargin.runtime.brief import brief

# an entry is a value and an index, converted once; a line has a label and a place where it starts
_COST = Cost(line=24, colon=24)


# a label, and pairs of an index and a value
_LINE = re.compile(r"[+-]?[\d.,eE+-]+(\s+qid:\d+)?(\s+\d+:\S+)*\s*(#.*)?")


def is_svmlight(lines: Sequence[str]) -> bool:
    """Whether lines look like svmlight."""
    filled = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return any(":" in line for line in filled) and all(map(_LINE.fullmatch, filled))


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
