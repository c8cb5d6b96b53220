"""A chunk of rows, where chunks come from, and the error of data that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

__all__ = ["Chunk", "DataLostError", "Source"]


class DataLostError(OSError):
    """Data that could be read when a fit began can be read no longer."""


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
