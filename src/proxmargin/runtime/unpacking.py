"""Files read unpacked, whatever their name: their first bytes tell how they are compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["PACKINGS", "unpacked_bytes"]

# suffixes of the compressions that are read
PACKINGS = (".gz", ".bz2", ".xz")
_HEAD = 10  # bytes that tell the kind
# what follows "BZh" and a digit: a block, or the end of an empty file
_BZIP2 = (b"1AY&SY", b"\x17rE8P\x90")
_NOT_READ = {
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\x04\x22\x4d\x18": "LZ4",
    b"PK\x03\x04": "a ZIP archive",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
}


@contextmanager
def unpacked_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if it is compressed by gzip, bzip2 or xz.

    Raises
    ------
    OSError
        The file cannot be read; it is compressed otherwise; while it is read: what is compressed is
        damaged, or ends early.
    """
    with path.open("rb") as raw, _opener(raw.peek(_HEAD)[:_HEAD])(raw) as stream:
        try:
            yield stream
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise OSError(str(error)) from error


def _opener(head: bytes) -> Any:
    if head.startswith(b"\x1f\x8b"):
        return lambda raw: gzip.GzipFile(fileobj=raw)
    if head.startswith(b"BZh") and head[4:] in _BZIP2:
        return bz2.BZ2File
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile
    for begin, kind in _NOT_READ.items():
        if head.startswith(begin):
            raise OSError(f"it is compressed ({kind}): unpack it, or pack it by gzip, bzip2 or xz")
    return lambda raw: raw
