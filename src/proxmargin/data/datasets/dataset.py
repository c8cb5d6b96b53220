"""Data sets, opened, and their chunks of rows; those of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from proxmargin.runtime.types import Values

CHUNK_BYTES = 1 << 25  # of a chunk: 32 MB; three are in memory while one is read ahead
LEAST_ROWS = 1 << 8  # of a chunk of wide data, below which products lose speed
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


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
    """Some rows that follow each other."""

    X: Any  # (n_rows, n_features) array or CSR matrix
    y: Values | None  # (n_rows,), labels; None if the data have no target
    weight: Values | None  # (n_rows,) or None
    where: str  # file and part of the file, for messages
    first: int  # number of the first row in that part


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

    See Also
    --------
    open_dataset : Opens one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import open_dataset
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", X)
    >>> np.save(folder / "y.npy", y)
    >>> dataset = open_dataset(folder / "X.npy", target=folder / "y.npy")
    >>> dataset.n_rows, dataset.n_features
    (569, 30)
    """

    def __init__(self, source: Source, chunk_rows: int | None = None) -> None:
        self.source = source
        self.n_rows, self.n_features = source.n_rows, source.n_features
        self.feature_names = source.names
        fitting = max(int(CHUNK_BYTES // max(source.row_bytes, 1.0)), LEAST_ROWS)
        self.chunk_rows = int(chunk_rows or fitting)

    def __repr__(self) -> str:
        return (
            f"<Dataset of {self.n_rows} rows and {self.n_features} features, in chunks of "
            f"{self.chunk_rows} rows>"
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the features in memory, were they all read."""
        return int(self.n_rows * self.source.row_bytes)

    def __len__(self) -> int:
        return self.n_rows

    def chunks(self) -> Iterator[Chunk]:
        """All chunks in order; a thread reads the next one while one is in use. Raises
        DataLostError: a file is gone, or has another number of rows than when it was opened."""
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


def column_of(values: ArrayLike, name: str, n_rows: int) -> Values:
    """Labels or weights, one a row: an array or the path of an ``.npy`` file."""
    if isinstance(values, str | Path):
        values = np.load(values, allow_pickle=False)
    column = np.asarray(values)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n_rows,):
        raise ValueError(
            f"{name} must hold one entry a row, ({n_rows},) here, got an array of shape "
            f"{column.shape}"
        )
    return column


class NpyRows:
    """The rows of an ``.npy`` file, read where they are needed; a file in Fortran order is mapped.
    Mapped files would count towards limits of a process on its address space."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as stream:
            try:
                version = npy.read_magic(stream)
                shape, by_columns, dtype = _HEADERS[version](stream)
            except (ValueError, KeyError) as error:
                raise ValueError(f"{path} is not a file in NumPy's format: {error}") from error
            self._begin = stream.tell()
            self._state = FileState.of(os.fstat(stream.fileno()))
        if dtype.hasobject:
            raise ValueError(f"{path} holds Python objects, which are not read")
        self.shape, self.dtype = shape, dtype
        self._mapped = np.load(path, mmap_mode="r") if by_columns and len(shape) > 1 else None
        self._row = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
        declared = self._begin + self._row * (shape[0] if shape else 1)
        if declared != self._state.size:  # longer: a second array was written behind it
            raise ValueError(
                f"{path} has {self._state.size} bytes, and an array of shape {shape} needs "
                f"{declared}"
            )

    def __getitem__(self, part: slice) -> Values:
        if self._mapped is not None:
            self._state.require(self.path)
            return np.ascontiguousarray(self._mapped[part])
        rows = part.stop - part.start
        out = np.empty((rows, *self.shape[1:]), self.dtype)
        with self.path.open("rb", buffering=0) as stream:
            self._state.require(self.path, os.fstat(stream.fileno()))
            stream.seek(self._begin + part.start * self._row)
            into, done = out.reshape(-1).view(np.uint8), 0
            while done < into.size:
                count = stream.readinto(into[done:].data)
                if not count:
                    raise DataLostError(f"{self.path} has become shorter")
                done += count
        return out


class Arrays:
    """Rows of an array or of an ``.npy`` file, with labels and weights in memory."""

    names: tuple[str, ...] | None = None

    def __init__(self, X: Any, y: Values, weight: Any, columns: object, where: str) -> None:
        if len(X.shape) != 2:
            raise ValueError(f"{where} must have rows and columns, got an array of shape {X.shape}")
        if X.dtype.kind not in "fiub":
            raise ValueError(f"{where} holds {X.dtype}, and must hold numbers")
        self._X, self._where = X, where
        self.n_rows = int(X.shape[0])
        self._columns = _column_numbers(columns, int(X.shape[1]))
        self.n_features = int(X.shape[1]) if self._columns is None else self._columns.size
        wide = X.dtype if X.dtype == np.float32 else np.dtype(np.float64)
        self._dtype, self.row_bytes = wide, float(wide.itemsize * self.n_features)
        self._y = None if y is None else column_of(y, "target", self.n_rows)
        self._weight = None if weight is None else column_of(weight, "weight", self.n_rows)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        for start in range(0, self.n_rows, rows):
            part = slice(start, min(start + rows, self.n_rows))
            X = self._X[part]
            if self._columns is not None:
                X = X[:, self._columns]
            if not sparse.issparse(X):
                X = np.ascontiguousarray(X)
            yield Chunk(
                X.astype(self._dtype, copy=False),
                None if self._y is None else self._y[part],
                None if self._weight is None else self._weight[part],
                self._where,
                start,
            )


class CompressedRows:
    """A CSR matrix whose arrays are ``.npy`` files in a folder: rows are read where needed."""

    def __init__(self, folder: Path) -> None:
        self._data, self._indices = (NpyRows(folder / f"{k}.npy") for k in ("data", "indices"))
        self._ends = np.load(folder / "indptr.npy")
        n, p = np.load(folder / "shape.npy").tolist()
        if self._ends.size != n + 1 or self._ends[-1] != self._data.shape[0]:
            raise ValueError(f"{folder} holds no CSR matrix of {n} rows")
        self.shape, self.dtype = (int(n), int(p)), self._data.dtype

    def __getitem__(self, part: slice) -> Any:
        ends = self._ends[part.start : part.stop + 1]
        inside = slice(int(ends[0]), int(ends[-1]))
        parts = (self._data[inside], self._indices[inside], ends - ends[0])
        return sparse.csr_matrix(parts, shape=(ends.size - 1, self.shape[1]))

    @property
    def row_bytes(self) -> float:
        """Bytes of the stored entries of a row, on average."""
        return 12.0 * float(self._ends[-1]) / max(self.shape[0], 1) + 8.0


def _column_numbers(columns: object, count: int) -> NDArray[np.intp] | None:
    if columns is None:
        return None
    index = np.asarray(columns)
    if index.ndim != 1 or index.dtype.kind not in "iu" or not index.size:
        raise ValueError("columns must be numbers of columns for data without names")
    if index.min() < 0 or index.max() >= count:
        raise ValueError(f"columns must lie between 0 and {count - 1}, got {index.tolist()}")
    return index.astype(np.intp)
