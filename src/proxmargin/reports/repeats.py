"""Rows and columns that are there more than once."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["repeated_columns", "repeated_rows"]

# bytes of a digest: among 1e9 rows, two differing ones agree with probability 1e-21
DIGEST = 16
# rows that are made contiguous at once
BLOCK_ROWS = 1024


def repeated_rows(X: Any) -> list[NDArray[np.intp]]:
    """Groups of equal rows of an array or a canonical CSR matrix, two or more in each."""
    return _groups(_sparse_lines(X) if hasattr(X, "indptr") else _dense_lines(X))


def repeated_columns(X: Any, skipped: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Groups of equal columns of an array or a canonical CSC matrix; some are not looked at."""
    kept = (~skipped).nonzero()[0]
    lines = _sparse_lines(X) if hasattr(X, "indptr") else _dense_lines(X.T)
    return _groups(lines, kept=set(kept.tolist()))


def _groups(lines: Iterator[bytes], kept: set[int] | None = None) -> list[NDArray[np.intp]]:
    seen: dict[bytes, list[int]] = {}
    for place, line in enumerate(lines):
        if kept is None or place in kept:
            seen.setdefault(blake2b(line, digest_size=DIGEST).digest(), []).append(place)
    return [np.array(places) for places in seen.values() if len(places) > 1]


def _dense_lines(X: NDArray[Any]) -> Iterator[bytes]:
    for start in range(0, X.shape[0], BLOCK_ROWS):
        # adding zero turns -0.0, which equals 0.0, into it
        block = np.ascontiguousarray(X[start : start + BLOCK_ROWS]) + 0
        yield from (line.tobytes() for line in block)


def _sparse_lines(X: Any) -> Iterator[bytes]:
    """Places and values of each line along the compressed axis."""
    data = X.data + 0
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop].tobytes() + data[start:stop].tobytes()
