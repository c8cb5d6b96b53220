"""Arrays in NumPy's file format, checked before anything is allocated."""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Collection
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Header:
    """The header of an ``.npy`` file."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    begin: int  # offset of the first entry

    @property
    def entries(self) -> int:
        return math.prod(self.shape)


def header_of(stream: IO[bytes], kinds: Collection[str], size: int) -> Header:
    """The header of an array of one of the `kinds`, in a file of `size` bytes. Raises ValueError:
    the bytes are no such file, hold another kind of data, or less than they declare."""
    # NumPy's parser meets damage with errors of many kinds, some of them of the tokenizer
    try:
        shape, fortran_order, dtype = _HEADERS[npy.read_magic(stream)](
            stream, max_header_size=_MAX_HEADER
        )
    except KeyError:
        raise ValueError("it is in an unknown version of NumPy's format") from None
    except Exception as error:
        raise ValueError(f"its header cannot be read ({error})") from error
    header = Header(shape, fortran_order, dtype, stream.tell())
    if dtype.kind not in kinds or dtype.fields is not None or dtype.shape:
        raise ValueError(f"it holds {_KIND_NAMES.get(dtype.kind, f'values of type {dtype}')}")
    declared, present = header.entries * dtype.itemsize, size - header.begin
    if min(shape, default=0) < 0 or declared != present or (header.entries and not declared):
        raise ValueError(f"its shape {shape} needs {declared} bytes and there are {present}")
    return header


def array_from(content: bytes, kinds: Collection[str]) -> NDArray[Any]:
    """The array in the bytes of an ``.npy`` file, in this machine's byte order. Raises ValueError:
    as `header_of` and `array_of`."""
    header = header_of(io.BytesIO(content), kinds, len(content))
    return array_of(header, memoryview(content)[header.begin :])


def array_of(header: Header, content: bytes | memoryview) -> NDArray[Any]:
    """The array of a header and the bytes that follow it. Raises ValueError: there are too few
    bytes, or a string has characters that do not exist."""
    flat = np.frombuffer(content, dtype=header.dtype, count=header.entries)
    array = flat.reshape(header.shape, order="F" if header.fortran_order else "C")
    array = array.astype(header.dtype.newbyteorder("="), order="K", copy=True)
    if array.dtype.kind == "U" and array.size:
        codes = array.ravel().view(np.uint32)
        if codes.max() > sys.maxunicode or ((codes >= 0xD800) & (codes < 0xE000)).any():
            raise ValueError("it holds characters that do not exist")
    return array


def bytes_of(array: NDArray[Any]) -> bytes:
    """The array as the bytes of an ``.npy`` file."""
    stream = io.BytesIO()
    npy.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()
