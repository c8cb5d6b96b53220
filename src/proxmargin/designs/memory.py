"""Read-only arrays as kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["unlocked"]


class _Memory:
    """The memory of an array, without its mark that it is not to be written.

    Kernels only read it, but Numba would compile them again for arrays with the mark: memory maps,
    which parallel fits share.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        known = array.__array_interface__
        self.array = array  # must outlive this
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}


def unlocked(array: NDArray[Any]) -> NDArray[Any]:
    """The array itself, or a view of it without that mark."""
    return array if array.flags.writeable else np.asarray(_Memory(array))
