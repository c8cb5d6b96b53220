"""Matrices: NPZ archives, svmlight, sets of scikit-learn; arrays as NumPy stores them."""

from __future__ import annotations

import io
import math
import re
import sys
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from sklearn import datasets
from sklearn.datasets import load_svmlight_file

from proxmargin.files.errors import DataError, listed, plural, refused
from proxmargin.files.tables.contents import FeatureMatrix, Table, TableRequest
from proxmargin.files.tables.labels import (
    class_labels,
    other_classes,
    refuse_one_class,
    refuse_too_wide,
)
from proxmargin.files.tables.spelling import spelt_otherwise, told_otherwise
from proxmargin.files.tables.text import opened_bytes
from proxmargin.runtime.brief import brief
from proxmargin.runtime.memory import shortage
from proxmargin.runtime.types import Values

NUMBERS = frozenset("fiub")
TEXT = frozenset("U")

# A header of a plain array has about 120 bytes; this one is NumPy's own safety limit.
_MAX_HEADER = 10_000
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_KIND_NAMES = {"O": "Python objects", "V": "records", "c": "complex numbers", "S": "bytes"}


def array_from(
    stream: IO[bytes],
    kinds: Collection[str],
    size: int,
    check: Callable[[tuple[int, ...], np.dtype[np.generic]], object] = lambda shape, dtype: None,
) -> Values:
    """The array in a file of ``size`` bytes; ``check`` may refuse its header. ValueError: none."""
    # NumPy's parser meets damage with errors of many kinds, some of them of the tokenizer
    try:
        shape, fortran_order, dtype = _HEADERS[npy.read_magic(stream)](
            stream, max_header_size=_MAX_HEADER
        )
    except KeyError:
        raise ValueError("it is in an unknown version of NumPy's format") from None
    except Exception as error:
        raise ValueError(f"its header cannot be read ({error})") from error
    if dtype.kind not in kinds or dtype.fields is not None or dtype.shape:
        raise ValueError(f"it holds {_KIND_NAMES.get(dtype.kind, f'values of type {dtype}')}")
    entries = math.prod(shape)
    declared, present = entries * dtype.itemsize, size - stream.tell()
    if min(shape, default=0) < 0 or declared != present or (entries and not declared):
        raise ValueError(f"its shape {shape} needs {declared} bytes and there are {present}")
    check(shape, dtype)
    flat = np.frombuffer(stream.read(declared), dtype, count=entries)
    array = flat.reshape(shape, order="F" if fortran_order else "C")
    array = array.astype(dtype.newbyteorder("="), order="K", copy=True)
    if dtype.kind == "U" and array.size:
        codes = array.ravel().view(np.uint32)
        if codes.max() > sys.maxunicode or ((codes >= 0xD800) & (codes < 0xE000)).any():
            raise ValueError("it holds characters that do not exist")
    return array


def bytes_of(array: Values) -> bytes:
    stream = io.BytesIO()
    npy.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


def csr_fault(data: Values, indices: Values, indptr: Values, shape: Values) -> str | None:
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


# Solvers index features with 32-bit integers; a larger width comes from a damaged file.
MAX_FEATURES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class PlainMatrix:
    """A matrix with labels beside it."""

    source: str
    X: FeatureMatrix  # ndarray or csr_array
    y: Values | None
    feature_names: list[str] | None = None
    # whether the format leaves out trailing columns of zeros, as svmlight does, so that a file may
    # show fewer columns than the model has
    trailing_zeros_implied: bool = False

    def __post_init__(self) -> None:
        rows, columns = self.X.shape
        if rows == 0 or columns == 0:
            raise DataError(f"{self.source}: no data: {rows} rows, {columns} feature columns.")
        if columns > MAX_FEATURES:
            raise refused("too_many_columns", self.source, n=columns, most=MAX_FEATURES)
        if self.y is not None and self.y.shape != (rows,):
            raise DataError(f"{self.source}: {rows} rows but labels of shape {self.y.shape}.")
        names = self.feature_names
        if names is not None and (len(names) != columns or len(set(names)) != columns):
            raise refused("names_of_matrix", self.source, columns=columns, count=len(set(names)))

    def table(self, request: TableRequest) -> Table:
        """The matrix and its labels; there is no column to choose as the target."""
        for role in ("target", "ids", "ignore", "groups", "weights"):
            given = getattr(request, role)
            for column in () if given is None else np.atleast_1d(given):
                raise refused("no_columns_of_matrix", self.source, role=role, column=str(column))
        _refuse_nonfinite(self.X, self.source, request.blanks)
        if self.y is None:
            if request.labelled:
                raise DataError(f"{self.source}: no labels: the array 'y' is missing.")
            return Table(self.X, None, self.feature_names, None, self.source)
        kept = np.arange(len(self.y))
        if request.labelled and request.unlabelled == "drop" and self.y.dtype.kind == "f":
            kept = np.flatnonzero(~np.isnan(self.y))
            if not len(kept):
                raise DataError(f"{self.source}: no row has a label.")
        lost = len(self.y) - len(kept)
        notes = (f"{self.source}: {plural(lost, 'row')} without a label",) if lost else ()
        y = class_labels(self.y[kept], "y", self.source, kept)
        if request.drop_classes:
            others = other_classes(y, request.drop_classes, self.source)
            kept, y = kept[others], y[others]
        X = self.X[kept] if len(kept) < len(self.y) else self.X
        if request.labelled:
            refuse_one_class(y, "y", self.source)
            refuse_too_wide(self.source, int(X.shape[1]), y)
        return Table(X, y, self.feature_names, "y", self.source, notes=notes, rows=kept)

    def for_model(self, request: TableRequest) -> Table:
        """The columns by name where both sides have names, otherwise all, if as many."""
        table = self.table(request)
        if table.feature_names is None or request.feature_names is None:
            return same_width(table, request, may_pad=self.trailing_zeros_implied)
        where = {name: j for j, name in enumerate(table.feature_names)}
        names, notes = list(request.feature_names), table.notes
        other = spelt_otherwise(names, where)
        if other:
            where |= {name: where[here] for name, here in other.items()}
            notes = *notes, told_otherwise(table.source, other)
        missing = [name for name in names if name not in where]
        if missing:
            raise refused("columns_of_model", table.source, count=len(missing), missing=missing)
        X = table.X[:, [where[name] for name in names]]
        return replace(table, X=X, feature_names=names, notes=notes)


def same_width(table: Table, request: TableRequest, *, may_pad: bool) -> Table:
    """The table if it has the model's number of columns; sparse ones can be padded."""
    X: Any = table.X
    width = int(X.shape[1])
    if width < request.n_features and may_pad:
        X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], request.n_features))
    elif width != request.n_features:
        raise DataError(
            f"{table.source}: the file has {plural(width, 'feature column')} and the model "
            f"{request.n_features}"
            + ("." if may_pad else "; without names on both sides the numbers must agree.")
        )
    names = None if request.feature_names is None else list(request.feature_names)
    return replace(table, X=X, feature_names=names)


def _refuse_nonfinite(X: FeatureMatrix, source: str, blanks: bool) -> None:
    values = X.data if isinstance(X, sp.csr_array) else X
    if np.isfinite(values).all() or (blanks and not np.isinf(values).any()):
        return
    entries = sp.coo_array(X)  # an entry that is not finite is never dropped as a zero
    bad = np.flatnonzero(~np.isfinite(entries.data))
    row, column = (int(where[bad[0]]) for where in entries.coords)
    raise refused("not_finite", source, n=bad.size, row=row + 1, column=column + 1)


EMBEDDED: dict[str, Callable[[], Any]] = {
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}


def embedded_set(name: str) -> PlainMatrix:
    """The set with its feature names and its classes as words."""
    bunch = EMBEDDED[name]()
    labels = np.asarray(bunch.target_names).astype(str)[bunch.target]
    return PlainMatrix(name, np.asarray(bunch.data), labels, [str(n) for n in bunch.feature_names])


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


def read_npz(path: Path) -> PlainMatrix:
    """The archive's matrix and labels; no pickled object is ever loaded."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if len(members) != len(archive.infolist()):
                raise DataError(f"{path}: damaged: it holds an array twice.")
            known = [key for key in _KINDS if key in members]
            arrays = {key: _array(archive, members[key], key, path) for key in known}
    except DataError:
        raise
    except Exception as error:  # damage surfaces as anything
        raise DataError(f"{path}: not a readable NPZ archive: {error}.") from error
    y, names = arrays.get("y"), arrays.get("feature_names")
    return PlainMatrix(
        str(path),
        _features(arrays, path),
        y.ravel() if y is not None and y.ndim == 2 and y.shape[1] == 1 else y,
        None if names is None else [str(name) for name in names.ravel()],
    )


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, key: str, path: Path) -> Values:
    if info.file_size > max(_TRUSTED_BYTES, _TRUSTED_RATIO * info.compress_size):
        raise refused("trap", path, key=key, small=info.compress_size, size=info.file_size)

    def check(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        # what is read is held twice for a moment; integers become floats, and text words
        needed = math.prod(shape) * (2 * dtype.itemsize + _CONVERTED_BYTES[dtype.kind])
        short = shortage(needed)
        if short:
            what = f"{path}: the array {key!r} has shape {shape}"
            raise DataError(f"{what}, which needs {short}; use fewer rows.")

    try:
        with archive.open(info) as member:
            return array_from(member, _KINDS[key], info.file_size, check)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path}: the array {key!r} cannot be used: {error}.") from error


def _features(arrays: Mapping[str, Values], path: Path) -> FeatureMatrix:
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2:
            raise DataError(f"{path}: 'X' must have two dimensions, and has shape {X.shape}.")
        return _as_float(X)
    if all(key in arrays for key in _CSR_KEYS):
        data, indices, indptr, shape = (arrays[key].ravel() for key in _CSR_KEYS)
        fault = csr_fault(data, indices, indptr, shape)
        if fault:
            raise DataError(f"{path}: not a valid CSR matrix: {fault}.")
        size = (int(shape[0]), int(shape[1]))
        matrix = sp.csr_array((_as_float(data), indices, indptr), shape=size)
        matrix.sum_duplicates()
        return matrix
    raise refused("no_arrays", path, found=listed(arrays) or "none")


def _as_float(X: Values) -> Values:
    narrow = X.dtype in (np.float16, np.float32)
    return X.astype(np.float32 if narrow else np.float64, copy=False)


# bytes: an entry is a value and an index, converted once; a line has a label and where it starts
_ENTRY = 24
# a label, and pairs of an index and a value
_LINE = re.compile(r"[+-]?[\d.,eE+-]+(\s+qid:\d+)?(\s+\d+:\S+)*\s*(#.*)?")


def is_svmlight(lines: Sequence[str]) -> bool:
    """Whether lines look like svmlight."""
    filled = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return any(":" in line for line in filled) and all(map(_LINE.fullmatch, filled))


def read_svmlight(path: Path) -> PlainMatrix:
    """The file as a sparse matrix; indices start at 1, or at 0 where the file uses index 0."""
    try:
        with opened_bytes(path, line=_ENTRY, colon=_ENTRY) as stream:
            X, y = load_svmlight_file(stream)
    except DataError:
        raise
    except (ValueError, OverflowError, OSError) as error:
        raise refused("not_svmlight", path, reason=brief(error).rstrip(".")) from error
    return PlainMatrix(str(path), sp.csr_array(X), y, trailing_zeros_implied=True)
