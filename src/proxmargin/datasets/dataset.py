"""Data sets, opened, and their chunks of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

__all__ = ["Chunk", "DataLostError", "Dataset", "FileState", "Source"]

CHUNK_BYTES = 1 << 25  # of a chunk: 32 MB; three are in memory while one is read ahead
LEAST_ROWS = 1 << 8  # of a chunk of wide data, below which products lose speed


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


class Dataset:
    """Rows on disk that are read in chunks, anew in every pass; made by `proxmargin.open_dataset`.

    ``estimator.fit(dataset)`` fits a model in passes, ``predict(dataset)`` and
    ``decision_function(dataset)`` are iterators of an array a chunk, ``score(dataset)`` a number.

    Attributes
    ----------
    n_rows, n_features : int
    feature_names : tuple of str, or None
    chunk_rows : int
        Rows of a chunk. Sums are formed chunk by chunk in the order of the rows, so that results
        depend on it in the last bits, and on nothing else.
    """

    def __init__(self, source: Source, chunk_rows: int | None = None) -> None:
        self.source = source
        fitting = max(int(CHUNK_BYTES // max(source.row_bytes, 1.0)), LEAST_ROWS)
        self.chunk_rows = int(chunk_rows or fitting)

    def __repr__(self) -> str:
        return (
            f"<Dataset of {self.n_rows} rows and {self.n_features} features, in chunks of "
            f"{self.chunk_rows} rows>"
        )

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    @property
    def n_features(self) -> int:
        return self.source.n_features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return self.source.names

    @property
    def nbytes(self) -> int:
        """Bytes of the features in memory, were they all read."""
        return int(self.n_rows * self.source.row_bytes)

    def __len__(self) -> int:
        return self.n_rows

    def chunks(self) -> Iterator[Chunk]:
        """All chunks in order; a thread reads the next one while one is in use.

        Raises
        ------
        DataLostError
            A file is gone, or has another number of rows than when it was opened.
        """
        seen, reader = 0, self.source.chunks(self.chunk_rows)
        with ThreadPoolExecutor(1, thread_name_prefix="proxmargin-read") as pool:
            following = pool.submit(next, reader, None)
            while (chunk := _found(following.result)) is not None:
                following = pool.submit(next, reader, None)
                seen += chunk.X.shape[0]
                yield chunk
        if seen != self.n_rows:
            raise DataLostError(f"there were {self.n_rows} rows, and now there are {seen}")


def _found(result: Callable[[], Chunk | None]) -> Chunk | None:
    """The chunk that was read; whatever prevents it is a loss of data."""
    try:
        return result()
    except DataLostError:
        raise
    except OSError as error:
        raise DataLostError(f"the data cannot be read any longer: {error}") from error
