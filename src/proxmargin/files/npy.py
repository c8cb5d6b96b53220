"""Arrays in NumPy's file format, checked before anything is allocated."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Collection
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

NUMBERS = frozenset("fiub")
TEXT = frozenset("U")

# A header of a plain array has about 120 bytes; this one is NumPy's own safety limit.
_MAX_HEADER = 10_000
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_KIND_NAMES = {"O": "Python objects", "V": "records", "c": "complex numbers", "S": "bytes"}

Shape = tuple[int, ...]


def array_from(
    stream: IO[bytes],
    kinds: Collection[str],
    size: int,
    check: Callable[[Shape, np.dtype[Any]], object] = lambda shape, dtype: None,
) -> NDArray[Any]:
    """The array in a file of ``size`` bytes, in this machine's byte order.

    ``check`` may refuse what the header declares. Raises ValueError: the bytes are no such file,
    hold another kind of data or less than they declare, or characters that do not exist.
    """
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


def bytes_of(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    npy.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()


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
