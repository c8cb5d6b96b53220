"""A chunk of rows, where chunks come from, and the error of data that are gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

__all__ = ["Chunk", "DataLostError", "FileState", "Source"]


class DataLostError(OSError):
    """Data that could be read when a fit began can be read no longer."""


class FileState(NamedTuple):
    """Size and time of the last change of a file, which tell that it was written again."""

    size: int
    modified: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        return cls(status.st_size, status.st_mtime_ns)

    def require(self, path: Path, status: os.stat_result | None = None) -> None:
        """Raise DataLostError if the file is another one now, or gone."""
        try:
            now = path.stat() if status is None else status
        except OSError as error:
            raise DataLostError(f"{path} cannot be read any longer: {error}") from error
        if FileState.of(now) != self:
            raise DataLostError(f"{path} has changed since it was opened")


class Chunk(NamedTuple):
    """Some rows that follow each other.

    Attributes
    ----------
    X : (n_rows, n_features) array or CSR matrix
    y : (n_rows,) or None
        Labels; None if the data have no target.
    weight : (n_rows,) or None
    where : str
        File and part of the file, for messages.
    first : int
        Number of the first row in that part.
    """

    X: Any
    y: NDArray[Any] | None
    weight: NDArray[Any] | None
    where: str
    first: int


class Source(Protocol):
    """Rows in a file or an array."""

    n_rows: int
    n_features: int
    row_bytes: float
    """Bytes of a row in memory, on average."""
    names: tuple[str, ...] | None
    """Names of the features."""

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """All rows in order, at most ``rows`` at a time; the same parts in every pass."""
        ...
