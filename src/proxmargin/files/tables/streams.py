"""The bytes and the text of a data file, unpacked, within the memory that is free.

The unpacked size of a file is known only while it is read: every piece is checked as it passes, and
reading ends before it needs more memory than was free at its start.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from proxmargin.files.errors import DataError
from proxmargin.runtime.memory import free_bytes, in_words
from proxmargin.runtime.unpacking import unpacked_bytes

__all__ = ["Cost", "NulFound", "opened_bytes", "opened_text"]

# bytes that are asked of the system at a time
_PIECE = 1 << 17
# longest line, bytes: a sample of some million values
_LONGEST_LINE = 1 << 27
# a line is held several times at once, cell by cell: the share of the free memory it may have
_LINE_SHARE = 64


@dataclass(frozen=True)
class Cost:
    """Bytes of memory that follow from what a file holds, besides one a byte of text."""

    line: int = 0
    colon: int = 0

    def of(self, piece: bytes, lines: int) -> int:
        colons = piece.count(b":") if self.colon else 0
        return len(piece) + self.line * lines + self.colon * colons


class NulFound(ValueError):
    """A NUL character in text; C code takes it for the end of a cell."""


@contextmanager
def opened_bytes(path: Path, cost: Cost) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file.

    Raises
    ------
    DataError
        While it is read: a line has no end, or more memory must follow than is free.
    OSError
        As of `unpacked_bytes`.
    """
    with unpacked_bytes(path) as packed:
        yield io.BufferedReader(_Watched(packed, path, cost), _PIECE)


@contextmanager
def opened_text(path: Path, cost: Cost, codec: str) -> Iterator[TextIO]:
    """The text of a file; read in pieces, it raises `NulFound` at a NUL.

    Line ends of all kinds become newlines: pandas loses an empty cell after a lone carriage return.
    """
    with opened_bytes(path, cost) as stream:
        yield _Text(stream, encoding=codec, newline=None)


class _Text(io.TextIOWrapper):
    def read(self, size: int | None = -1, /) -> str:
        text = super().read(size)
        if "\0" in text:
            raise NulFound
        return text


class _Watched(io.RawIOBase):
    """Passes bytes on and adds up what they will cost."""

    def __init__(self, source: BinaryIO, path: Path, cost: Cost) -> None:
        self._source, self._path, self._cost = source, path, cost
        self._free = free_bytes()
        self._longest = min(_LONGEST_LINE, self._free // _LINE_SHARE)
        self._needed = self._lines = self._unended = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._source.read(len(buffer))
        buffer[: len(piece)] = piece
        self._look_at(piece)
        return len(piece)

    def _look_at(self, piece: bytes) -> None:
        end = b"\n" if b"\n" in piece else b"\r"
        lines = piece.count(end)
        self._lines += lines
        self._needed += self._cost.of(piece, lines)
        after = len(piece) - 1 - piece.rfind(end)
        self._unended = after if lines else self._unended + len(piece)
        if self._unended > self._longest:
            raise DataError(
                f"{self._path}: line {self._lines + 1} is longer than {in_words(self._longest)}; "
                "the file is damaged, or it is no text with one sample a line."
            )
        if self._needed > self._free:
            raise DataError(
                f"{self._path}: the first {self._lines} lines need {in_words(self._needed)} of "
                f"memory, and {in_words(self._free)} is free; read fewer rows or columns, or use a "
                "machine with more memory."
            )
