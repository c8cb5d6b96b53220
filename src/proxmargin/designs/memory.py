"""Read-only arrays passed to compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["unlocked"]


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
