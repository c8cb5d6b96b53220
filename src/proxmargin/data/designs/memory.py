"""Memory of arrays: read-only ones passed to compiled kernels, large ones that are partly used."""

from __future__ import annotations

import mmap
import sys
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHED_ENTRIES = 1 << 16  # of float64 that fit in a core's cache: half a megabyte
LEAST_MAPPED = 1 << 24  # bytes; smaller arrays often get memory that was in use before


class _Memory:
    """The memory of an array, without its read-only flag.

    Kernels do not write to it, but Numba compiles them anew for read-only arrays, such as the
    memory maps that parallel fits share.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        known = array.__array_interface__
        self.array = array  # must outlive this
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}


def unlocked(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself if it is writeable, else a view without the read-only flag."""
    return array if array.flags.writeable else np.asarray(_Memory(array))


def on_small_pages(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """`numpy.empty`, but no page of it is huge: memory is taken as it is first written to.

    NumPy asks Linux for huge pages, each of which is cleared whole, and for which the system may
    have to move other memory: for a cache that is filled in part, or used a few times, that takes
    longer than the values in it.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    if sys.platform != "linux" or size < LEAST_MAPPED:
        return np.empty(shape, dtype)
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    except OSError:  # too large, or a system without huge pages
        return np.empty(shape, dtype)
    return np.frombuffer(memory, dtype).reshape(shape)
