"""`open_dataset`: which reader a path or an array needs, and files that are converted first."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike
from scipy import sparse

from proxmargin.data.datasets.dataset import Arrays, CompressedRows, Dataset, NpyRows, Source
from proxmargin.data.datasets.parquet import ParquetRows
from proxmargin.data.inputs.aligned import refuse_masked
from proxmargin.data.inputs.kinds import Labels, SparseMatrix
from proxmargin.runtime.brief import brief
from proxmargin.runtime.files import errors_named, unpacked_bytes

Columns = Sequence[Any] | Mapping[str, Sequence[Any] | None] | None
Place: TypeAlias = "str | os.PathLike[str] | Labels | None"  # of labels or weights
Filters: TypeAlias = Any  # an expression of pyarrow, which has no types, or triples
TEXT_BYTES = 1 << 24  # of a svmlight file that are parsed at a time: 16 MB, and the rest of a line
LONGEST_LINE = 1 << 27  # bytes: a sample of some million values
# what files begin with that are read, but not compressed
BINARY = {b"PAR1": "Parquet", b"\x93NUMPY": "NPY", b"PK\x03\x04": "NPZ"}
MOST_FEATURES = 2**31 - 1  # of a svmlight file; their number is that of the last one in use


def open_dataset(
    path: str | os.PathLike[str] | ArrayLike | SparseMatrix,
    *,
    target: Place,
    weight: Place = None,
    columns: Columns = None,
    filters: Filters = None,
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

    See Also
    --------
    read_data : Tables that fit into memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import HuberizedSVC, open_dataset
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", X)
    >>> np.save(folder / "y.npy", y)
    >>> dataset = open_dataset(folder / "X.npy", target=folder / "y.npy", chunk_rows=100)
    >>> HuberizedSVC(standardize=True).fit(dataset).certificate_.converged
    True
    """
    if chunk_rows is not None:
        whole = isinstance(chunk_rows, Integral) and not isinstance(chunk_rows, bool)
        if not whole or chunk_rows < 1:
            raise ValueError(f"chunk_rows must be an integer >= 1 or None, got {chunk_rows!r}")
    for name, given in (("path", path), ("target", target), ("weight", weight)):
        refuse_masked(name, given)
    source = _source(path, target, weight, columns, filters)
    if source.n_rows == 0:
        raise ValueError(f"{path!s} holds no rows" + (" that pass the filters" if filters else ""))
    if source.n_features == 0:
        raise ValueError(f"{path!s} holds no features besides target and weight")
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


def unpacked(path: Path, folder: Path) -> None:
    """Write the arrays of an ``.npz`` file into ``folder``."""
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if Path(name).name != name or not name.endswith(".npy"):
                    raise ValueError(f"{path} holds {name!r}, which is no array")
                with archive.open(name) as source, (folder / name).open("wb") as copy:
                    shutil.copyfileobj(source, copy)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is no .npz file: {error}") from error
    names = {each.stem for each in folder.glob("*.npy")}
    kind = np.load(folder / "format.npy").item() if "format" in names else b"csr"
    if kind not in (b"csr", "csr"):
        told = kind.decode() if isinstance(kind, bytes) else kind
        raise ValueError(f"{path} holds a {told.upper()} matrix: save X.tocsr() instead")
    if "X" not in names and not {"data", "indices", "indptr", "shape"} <= names:
        raise ValueError(
            f"{path} holds neither X nor the arrays data, indices, indptr and shape of a CSR "
            f"matrix, only {', '.join(sorted(names))}"
        )


def without_text(path: Path, folder: Path) -> None:
    """Write the CSR arrays and the labels of a svmlight file into ``folder``, part by part."""
    from sklearn.datasets import load_svmlight_file  # imported late: it loads much

    width, least = 0, MOST_FEATURES
    ends: list[np.ndarray] = [np.zeros(1, np.int64)]
    labels: list[np.ndarray] = []
    with (folder / "data").open("wb") as data, (folder / "indices").open("wb") as indices:
        for lines in _pieces(path):
            try:
                X, y = load_svmlight_file(
                    io.BytesIO(lines), n_features=MOST_FEATURES, zero_based=True
                )
            except ValueError as error:
                raise ValueError(
                    f"{path} is neither a Parquet nor a NumPy nor a svmlight file: {brief(error)}"
                ) from error
            if not y.size:
                continue
            width = max(width, int(X.indices.max(initial=-1)) + 1)
            least = min(least, int(X.indices.min(initial=MOST_FEATURES)))
            data.write(X.data.astype(np.float64).data)
            indices.write(X.indices.astype(np.int32).data)
            ends.append(X.indptr[1:].astype(np.int64) + ends[-1][-1])
            labels.append(y)
    first = 1 if 1 <= least < MOST_FEATURES else 0  # features are counted from 1, unless one is 0
    if first:
        stored = np.memmap(folder / "indices", np.int32, "r+")
        stored -= np.int32(first)
        stored.flush()
    indptr = np.concatenate(ends)
    y = np.concatenate(labels) if labels else np.zeros(0)
    for name, dtype in (("data", np.float64), ("indices", np.int32)):
        _with_header(folder, name, np.dtype(dtype), int(indptr[-1]))
    np.save(folder / "indptr.npy", indptr)
    np.save(folder / "shape.npy", np.array([y.size, width - first]))
    np.save(folder / "y.npy", y)


def _pieces(path: Path) -> Iterator[bytes]:
    """The lines of a text file, unpacked, some at a time."""
    try:
        with unpacked_bytes(path) as stream:
            while piece := stream.read(TEXT_BYTES):
                rest = stream.readline(LONGEST_LINE)
                if len(rest) == LONGEST_LINE:
                    raise ValueError(f"{path} has a line of more than {LONGEST_LINE} bytes")
                for begin, kind in BINARY.items():
                    if piece.startswith(begin):
                        raise ValueError(f"{path} is a compressed {kind} file: unpack it")
                yield piece + rest
    except OSError as error:
        raise OSError(f"{path} cannot be read: {error}") from error


def _with_header(folder: Path, name: str, dtype: np.dtype[np.generic], count: int) -> None:
    """Turn raw entries into an ``.npy`` file."""
    with (folder / f"{name}.npy").open("wb") as out:
        header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
        npy.write_array_header_1_0(out, header)
        with (folder / name).open("rb") as raw:
            shutil.copyfileobj(raw, out)
    (folder / name).unlink()
