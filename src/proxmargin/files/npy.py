"""Arrays in NumPy's file format, checked before anything is allocated."""

from __future__ import annotations

import io
import math
from collections.abc import Collection
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

NUMBERS = frozenset("fiub")
TEXT = frozenset("U")

# A header of a plain array has about 120 bytes; this one is NumPy's own safety limit.
_MAX_HEADER = 10_000
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_KIND_NAMES = {"O": "Python objects", "V": "records", "c": "complex numbers", "S": "bytes"}


def array_from(content: bytes, kinds: Collection[str]) -> NDArray[Any]:
    """The array in the bytes of an ``.npy`` file, in this machine's byte order.

    Raises
    ------
    ValueError
        The bytes are no such file, hold another kind of data, or not as much as they declare.
    """
    stream = io.BytesIO(content)
    shape, fortran_order, dtype = _header(stream)
    if dtype.kind not in kinds or dtype.fields is not None or dtype.shape:
        raise ValueError(f"it holds {_KIND_NAMES.get(dtype.kind, f'values of type {dtype}')}")
    declared = math.prod(shape) * dtype.itemsize
    present = len(content) - stream.tell()
    if min(shape, default=0) < 0 or declared != present:
        raise ValueError(f"its shape {shape} needs {declared} bytes and there are {present}")
    flat = np.frombuffer(content, dtype=dtype, offset=stream.tell(), count=math.prod(shape))
    array = flat.reshape(shape, order="F" if fortran_order else "C")
    return array.astype(dtype.newbyteorder("="), order="K", copy=True)


def _header(stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        read_header = _HEADERS[npy.read_magic(stream)]
        return read_header(stream, max_header_size=_MAX_HEADER)
    except KeyError:
        raise ValueError("it is in an unknown version of NumPy's format") from None
    except (ValueError, TypeError, SyntaxError, EOFError, RecursionError, MemoryError) as error:
        raise ValueError(f"its header cannot be read ({error})") from error


def bytes_of(array: NDArray[Any]) -> bytes:
    """The array as the bytes of an ``.npy`` file."""
    stream = io.BytesIO()
    npy.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()
