"""Text as it comes from files: unpacked, decoded, and watched for what it will cost."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect
from proxmargin.runtime.files import unpacked_bytes
from proxmargin.runtime.memory import free_bytes, in_words

# bytes that are asked of the system at a time
_PIECE = 1 << 17
# longest line, bytes: a sample of some million values
_LONGEST_LINE = 1 << 27
# a line is held several times at once, cell by cell: the share of the free memory it may have
_LINE_SHARE = 64
# characters from which the dialect and the header of a file are told
_SAMPLE = 1 << 19
# byte order marks, the longer before those that begin alike; Python's decoders drop them
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class Cost:
    """Bytes of memory that follow from what a file holds, besides one a byte of text."""

    line: int = 0
    colon: int = 0

    def of(self, piece: bytes, lines: int) -> int:
        colons = piece.count(b":") if self.colon else 0
        return len(piece) + self.line * lines + self.colon * colons


_TEXT_ONLY = Cost()


class NulFound(ValueError):
    """A NUL character in text; C code takes it for the end of a cell."""


@contextmanager
def opened_bytes(path: Path, cost: Cost = _TEXT_ONLY) -> Iterator[io.BufferedReader]:
    """The unpacked bytes of a file. Raises DataError: while it is read: a line has no end, or more
    memory must follow than is free. Raises OSError: as of `unpacked_bytes`."""
    with unpacked_bytes(path) as packed:
        yield io.BufferedReader(_Watched(packed, path, cost), _PIECE)


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


class _Text(io.TextIOWrapper):
    """Text that, read in pieces, raises `NulFound` at a NUL and leaves out lines of comments."""

    comment: re.Pattern[str] | None = None

    def read(self, size: int | None = -1, /) -> str:
        while True:
            text = super().read(size)
            if "\0" in text:
                raise NulFound
            if self.comment is None or not text:
                return text
            text = self.comment.sub("", text + self.readline())
            if text:  # an empty piece would be the end
                return text


def _codec(head: bytes, dialect: Dialect) -> str:
    """The encoding by a byte order mark, or else as it is named."""
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), dialect.encoding)


@contextmanager
def opened_text(path: Path, dialect: Dialect, cost: Cost = _TEXT_ONLY) -> Iterator[TextIO]:
    """The decoded text of a file, line ends as newlines. Raises DataError: it is not in the
    encoding, cannot be read, or is no table."""
    encoding = dialect.encoding
    try:
        with opened_bytes(path, cost) as stream:
            encoding = _codec(stream.peek(4)[:4], dialect)
            # pandas loses an empty cell after a lone carriage return: line ends become newlines
            text = _Text(stream, encoding=encoding, newline=None)
            if dialect.comment:
                text.comment = re.compile(rf"(?m)^{re.escape(dialect.comment)}.*\n?")
            yield text
    except UnicodeError as error:
        reason = getattr(error, "reason", str(error))
        raise DataError(
            f"{path}: not a text file in {encoding.upper()}: {reason}; name its encoding "
            "(encoding=), such as latin-1."
        ) from error
    except csv.Error as error:
        raise DataError(f"{path}: not a readable text table: {error}.") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}.") from error


def lines_of(stream: TextIO, dialect: Dialect) -> Iterator[tuple[int, str]]:
    """The lines of a text that are no comments, each with its number."""
    mark = dialect.comment
    return (pair for pair in enumerate(stream, 1) if not (mark and pair[1].startswith(mark)))


def first_lines(path: Path, dialect: Dialect) -> list[str]:
    """Some lines from the start of a file: at least a few, and not many more than half a
    million characters."""
    lines, size = [], 0
    with opened_text(path, dialect) as stream:
        for _, line in lines_of(stream, dialect):
            lines.append(line)
            size += len(line)
            if size > _SAMPLE and len(lines) > 3:
                break
    return lines
