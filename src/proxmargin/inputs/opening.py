"""`open_dataset`: which reader a path or an array needs."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from proxmargin.datasets.arrays import Arrays, CompressedRows, NpyRows
from proxmargin.datasets.chunk import Source
from proxmargin.datasets.dataset import Dataset
from proxmargin.datasets.parquet import ParquetRows
from proxmargin.inputs.converted import unpacked, without_text
from proxmargin.runtime.files import errors_named

__all__ = ["open_dataset"]

Columns = Sequence[Any] | Mapping[str, Sequence[Any] | None] | None


def open_dataset(
    path: Any,
    *,
    target: Any,
    weight: Any = None,
    columns: Columns = None,
    filters: Any = None,
    chunk_rows: int | None = None,
) -> Dataset:
    """Open data on disk that are read in chunks of rows, for `fit` of the linear models.

    Parameters
    ----------
    path : path-like or array
        A Parquet file, or a folder of ``*.parquet`` files with the same columns (in the order of
        their names); an ``.npy`` file; an ``.npz`` file with ``X``, or with the arrays of a CSR
        matrix (``data, indices, indptr, shape``), unpacked once into a temporary folder; a svmlight
        file (of any other name), also compressed by gzip, bzip2 or xz, converted once likewise; a
        memory map or another array, or a CSR matrix.
    target : str, path-like, array or None
        The column of labels of Parquet files; else labels, (n_rows,), or the path of an ``.npy``
        file of them, or their name in an ``.npz`` file. svmlight files have their own: None.
        None for data without labels, which models can predict.
    weight : likewise, optional
        Sample weights.
    columns : sequence or dict, optional
        The features: names of columns (numbers of columns, of files without names). A dict gives
        the categories of columns of text, ``{"city": ["Oslo", "Rome"], "age": None}``: such a
        column becomes an indicator of each category, and other values are an error. By default all
        columns but target and weight.
    filters : expression or list of tuples, optional
        Which rows of Parquet files are read, as of `pyarrow.parquet.read_table`:
        ``[("age", ">", 17)]``, or an expression of `pyarrow.compute`.
    chunk_rows : int, optional
        Rows of a chunk; by default 32 MB of them.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        No rows, or none that pass the filters; no such column, files with different columns,
        columns that are not numbers.
    OSError
        The files cannot be read.
    """
    if chunk_rows is not None:
        whole = isinstance(chunk_rows, Integral) and not isinstance(chunk_rows, bool)
        if not whole or chunk_rows < 1:
            raise ValueError(f"chunk_rows must be an integer >= 1 or None, got {chunk_rows!r}")
    source = _source(path, target, weight, columns, filters)
    if source.n_rows == 0:
        raise ValueError(f"{path} holds no rows" + (" that pass the filters" if filters else ""))
    if source.n_features == 0:
        raise ValueError(f"{path} holds no features besides target and weight")
    return Dataset(source, chunk_rows)


def _source(path: Any, target: Any, weight: Any, columns: Columns, filters: Any) -> Source:
    if hasattr(path, "iloc"):
        raise TypeError("a data frame is in memory: give fit its values, or open a Parquet file")
    is_array = hasattr(path, "shape")
    where = Path() if is_array else Path(path)
    if not is_array and not where.exists():
        raise FileNotFoundError(f"there is no file or folder {where}")
    if not is_array and (where.is_dir() or where.suffix == ".parquet" or _is_parquet(where)):
        return ParquetRows(where, target, weight, columns, filters)
    if filters is not None:
        raise ValueError("filters are for Parquet files: pick rows of other data before")
    if is_array:
        is_sparse: bool = sparse.issparse(path)
        X = path.tocsr() if is_sparse else path
        source = Arrays(X, target, weight, columns, "the array")
        if is_sparse:
            source.row_bytes = 12.0 * X.nnz / max(X.shape[0], 1) + 8.0
        return source
    if where.suffix == ".npy":
        return Arrays(NpyRows(where), target, weight, columns, str(where))
    if where.suffix == ".npz":
        return _of_folder(where, unpacked, target, weight, columns)
    return _of_folder(where, without_text, "y" if target is None else target, weight, columns)


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(4) == b"PAR1"


def _of_folder(where: Path, convert: Any, target: Any, weight: Any, columns: Columns) -> Source:
    """Rows of arrays that are written into a temporary folder, which lives as long as the rows."""
    folder = tempfile.TemporaryDirectory(prefix="proxmargin-")
    home = Path(folder.name)
    try:
        with errors_named(home):
            convert(where, home)
        X = NpyRows(home / "X.npy") if (home / "X.npy").exists() else CompressedRows(home)
        source = Arrays(X, _inside(home, target), _inside(home, weight), columns, str(where))
    except BaseException:
        folder.cleanup()  # at once: a traceback would keep it
        raise
    if isinstance(X, CompressedRows):
        source.row_bytes = X.row_bytes
    weakref.finalize(source, folder.cleanup)
    return source


def _inside(home: Path, name: Any) -> Any:
    """An array of the folder, if it is called by its name there."""
    if not isinstance(name, str):
        return name
    file = home / f"{name}.npy"
    if file.exists():
        return np.load(file, allow_pickle=False)
    if Path(name).exists():
        return name
    known = ", ".join(sorted(each.stem for each in home.glob("*.npy")))
    raise ValueError(f"there is no array {name!r}, only {known}")
