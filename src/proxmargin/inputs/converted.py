"""Files that cannot be read from the middle, converted once to `.npy` files in a folder."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from proxmargin.runtime.brief import brief
from proxmargin.runtime.files import unpacked_bytes

__all__ = ["unpacked", "without_text"]

TEXT_BYTES = 1 << 24  # of a svmlight file that are parsed at a time: 16 MB, and the rest of a line
LONGEST_LINE = 1 << 27  # bytes: a sample of some million values
# what files begin with that are read, but not compressed
BINARY = {b"PAR1": "Parquet", b"\x93NUMPY": "NPY", b"PK\x03\x04": "NPZ"}
MOST_FEATURES = 2**31 - 1  # of a svmlight file; their number is that of the last one in use


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


def _with_header(folder: Path, name: str, dtype: np.dtype[Any], count: int) -> None:
    """Turn raw entries into an ``.npy`` file."""
    with (folder / f"{name}.npy").open("wb") as out:
        header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
        npy.write_array_header_1_0(out, header)
        with (folder / name).open("rb") as raw:
            shutil.copyfileobj(raw, out)
    (folder / name).unlink()
