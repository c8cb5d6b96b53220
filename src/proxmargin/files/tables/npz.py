"""NumPy archives: ``X`` and ``y``, or the arrays of a CSR matrix and ``y``."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import DataError
from proxmargin.files.npy import NUMBERS, TEXT, Header, array_of, header_of
from proxmargin.files.tables.contents import FeatureMatrix
from proxmargin.files.tables.matrices import PlainMatrix
from proxmargin.files.wording import listed
from proxmargin.runtime.memory import shortage

_CSR_KEYS = ("data", "indices", "indptr", "shape")
_KINDS: Mapping[str, Collection[str]] = {
    "X": NUMBERS,
    "data": NUMBERS,
    "indices": frozenset("iu"),
    "indptr": frozenset("iu"),
    "shape": frozenset("iu"),
    "y": NUMBERS | TEXT,
    "feature_names": TEXT,
}
# Deflate can shrink zeros a thousandfold. Beyond this size such a ratio is taken for a trap.
_TRUSTED_BYTES = 2**30
_TRUSTED_RATIO = 500

# Bytes of an entry in the form in which it is used: a float64, or a Python string and its place.
_CONVERTED_BYTES: Mapping[str, int] = {"f": 0, "i": 8, "u": 8, "b": 8, "U": 64}

_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
    OSError,
)


def read(path: Path) -> PlainMatrix:
    """The archive's matrix and labels; no pickled object is ever loaded."""
    arrays = _arrays(path)
    y = arrays.get("y")
    names = arrays.get("feature_names")
    return PlainMatrix(
        str(path),
        _features(arrays, path),
        y.ravel() if y is not None and y.ndim == 2 and y.shape[1] == 1 else y,
        None if names is None else [str(name) for name in names.ravel()],
    )


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path)
            return {key: _array(archive, members[key], path) for key in _KINDS if key in members}
    except DataError:
        raise
    except _ZIP_ERRORS as error:
        raise DataError(f"{path}: not a readable NPZ archive: {error}.") from error


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """The members by the names of their arrays."""
    entries = archive.infolist()
    members = {info.filename.removesuffix(".npy"): info for info in entries}
    if len(members) != len(entries):
        raise DataError(f"{path}: damaged: it holds an array twice.")
    return members


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> NDArray[Any]:
    key = info.filename.removesuffix(".npy")
    if info.file_size > max(_TRUSTED_BYTES, _TRUSTED_RATIO * info.compress_size):
        raise DataError(
            f"{path}: {key!r} would grow from {info.compress_size} to {info.file_size} bytes; "
            "if that is right, store it as a sparse matrix or uncompressed."
        )
    try:
        with archive.open(info) as member:
            header = header_of(member, _KINDS[key], info.file_size)
            _refuse_too_large(header, f"{path}: the array {key!r}")
            return array_of(header, member.read(header.entries * header.dtype.itemsize))
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path}: the array {key!r} cannot be used: {error}.") from error


def _refuse_too_large(header: Header, what: str) -> None:
    """What is read is held twice for a moment; integers become floats, and text words."""
    needed = header.entries * (2 * header.dtype.itemsize + _CONVERTED_BYTES[header.dtype.kind])
    short = shortage(needed)
    if short:
        raise DataError(f"{what} has shape {header.shape}, which needs {short}; use fewer rows.")


def _features(arrays: Mapping[str, NDArray[Any]], path: Path) -> FeatureMatrix:
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2:
            raise DataError(f"{path}: 'X' must have two dimensions, and has shape {X.shape}.")
        return _as_float(X)
    if all(key in arrays for key in _CSR_KEYS):
        return _csr(arrays, path)
    raise DataError(
        f"{path}: no features: an NPZ file holds 'X' and 'y', or 'data', 'indices', 'indptr', "
        f"'shape' (CSR) and 'y'; of these this one has {listed(arrays) or 'none'}."
    )


def _csr(arrays: Mapping[str, NDArray[Any]], path: Path) -> sp.csr_array:
    data, indices, indptr, shape = (arrays[key].ravel() for key in _CSR_KEYS)
    fault = csr_fault(data, indices, indptr, shape)
    if fault:
        raise DataError(f"{path}: not a valid CSR matrix: {fault}.")
    size = (int(shape[0]), int(shape[1]))
    X = sp.csr_array((_as_float(data), indices, indptr), shape=size)
    X.sum_duplicates()
    return X


def csr_fault(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: NDArray[Any]
) -> str | None:
    """What is wrong with the arrays of a CSR matrix, or None."""
    if shape.size != 2 or np.any(shape < 0):
        return "'shape' must be two sizes"
    if indptr.size != int(shape[0]) + 1:
        return f"{int(shape[0])} rows need as many entries in 'indptr' and one more"
    if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]):
        return "'indptr' must start at 0 and never fall"
    if not indptr[-1] == indices.size == data.size:
        return "'data' and 'indices' must have as many entries as 'indptr' ends with"
    if indices.size and (indices.min() < 0 or int(indices.max()) >= int(shape[1])):
        return f"'indices' must be from 0 to {int(shape[1]) - 1}"
    return None


def _as_float(X: NDArray[Any]) -> NDArray[Any]:
    narrow = X.dtype in (np.float16, np.float32)
    return X.astype(np.float32 if narrow else np.float64, copy=False)
