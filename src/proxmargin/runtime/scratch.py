"""Arrays in memory-mapped files without a name, for vectors with an entry a row of data on disk.

The operating system writes such arrays to the disk where memory is short, so that the disk limits
the number of rows. Results that are written beside a mapped array (`empty_beside`) are mapped too:
what a fit makes of such vectors follows their storage.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["beside", "copied", "empty_beside", "is_mapped", "mapped", "mapped_empty"]

LEAST_BYTES = 1 << 26  # of an array that is mapped: 64 MB


class _Pages(mmap.mmap):
    """The memory of a mapped array."""


def mapped_empty(shape: tuple[int, ...], dtype: DTypeLike = float) -> NDArray[Any]:
    """An array of undefined content, in a mapped file of the temporary folder if it is large.

    Raises
    ------
    OSError
        The disk is full: the space is reserved at once.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < LEAST_BYTES:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="proxmargin-") as file:
        try:
            _reserve(file, size)
        except OSError as error:
            raise OSError(
                error.errno,
                f"no room for a vector of {size} bytes in the temporary folder "
                f"{tempfile.gettempdir()} ({error.strerror}): set TMPDIR to another folder",
            ) from error
        pages = _Pages(file.fileno(), size)
    return np.frombuffer(pages, dtype).reshape(shape)


def mapped(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that is mapped, or the array itself if it is small."""
    if values.nbytes < LEAST_BYTES or values.dtype.hasobject:
        return values
    copy = mapped_empty(values.shape, values.dtype)
    copy[...] = values
    return copy


def is_mapped(values: NDArray[Any]) -> bool:
    """Whether an array, or what it is a view of, is mapped."""
    base: Any = values
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, "obj", None), _Pages)


def empty_beside(values: NDArray[Any]) -> NDArray[np.float64]:
    """An array of undefined float64 of the same shape, mapped if ``values`` are."""
    return mapped_empty(values.shape) if is_mapped(values) else np.empty(values.shape)


def beside(values: NDArray[Any], made: NDArray[Any]) -> NDArray[Any]:
    """``made``, moved into a mapped file if ``values`` are in one."""
    return mapped(made) if is_mapped(values) else made


def copied(values: NDArray[Any]) -> NDArray[Any]:
    """A copy, mapped if ``values`` are."""
    copy = mapped_empty(values.shape, values.dtype) if is_mapped(values) else np.empty_like(values)
    copy[...] = values
    return copy


def _reserve(file: IO[bytes], size: int) -> None:
    """Reserve space: a write to a mapped page without it would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    zeros = bytes(min(size, LEAST_BYTES))
    for start in range(0, size, len(zeros)):
        file.write(zeros[: size - start])
    file.flush()
