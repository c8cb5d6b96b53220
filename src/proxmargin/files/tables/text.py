"""Text as it comes from files: unpacked, decoded, and watched for what it will cost."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from proxmargin.files.errors import refused
from proxmargin.files.tables.contents import Dialect
from proxmargin.runtime.files import unpacked_bytes
from proxmargin.runtime.memory import free_bytes, in_words

_PIECE = 1 << 17  # bytes that are asked of the system at a time
_LONGEST_LINE = 1 << 27  # bytes: a sample of some million values
# a line is held several times at once, cell by cell: the share of the free memory it may have
_LINE_SHARE = 64
_SAMPLE = 1 << 19  # characters from which the dialect and the header of a file are told
# byte order marks, the longer before those that begin alike; Python's decoders drop them
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class NulFound(ValueError):
    """A NUL character in text; C code takes it for the end of a cell."""


@contextmanager
def opened_bytes(path: Path, line: int = 0, colon: int = 0) -> Iterator[io.BufferedReader]:
    """The unpacked bytes of a file, of which each takes a byte of memory, a line and a colon
    ``line`` and ``colon`` more. Raises DataError while it is read: a line has no end, or more
    memory must follow than is free. Raises OSError: as of `unpacked_bytes`."""
    with unpacked_bytes(path) as packed:
        yield io.BufferedReader(_Watched(packed, path, line, colon), _PIECE)


class _Watched(io.RawIOBase):
    """Passes bytes on and adds up what they will cost."""

    def __init__(self, source: BinaryIO, path: Path, line: int, colon: int) -> None:
        self._source, self._path, self._line, self._colon = source, path, line, colon
        self._free = free_bytes()
        self._longest = min(_LONGEST_LINE, self._free // _LINE_SHARE)
        self._needed = self._lines = self._unended = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._source.read(len(buffer))
        buffer[: len(piece)] = piece
        end = b"\n" if b"\n" in piece else b"\r"
        lines = piece.count(end)
        self._lines += lines
        self._needed += len(piece) + self._line * lines
        self._needed += self._colon * piece.count(b":") if self._colon else 0
        after = len(piece) - 1 - piece.rfind(end)
        self._unended = after if lines else self._unended + len(piece)
        if self._unended > self._longest:
            longest = in_words(self._longest)
            raise refused("long_line", self._path, line=self._lines + 1, longest=longest)
        if self._needed > self._free:
            needed, free = in_words(self._needed), in_words(self._free)
            raise refused("large_text", self._path, lines=self._lines, needed=needed, free=free)
        return len(piece)


class _Text(io.TextIOWrapper):
    """Text that, read in pieces, raises `NulFound` at a NUL."""

    def read(self, size: int | None = -1, /) -> str:
        text = super().read(size)
        if "\0" in text:
            raise NulFound
        return text


@contextmanager
def opened_text(path: Path, dialect: Dialect, line: int = 0) -> Iterator[TextIO]:
    """The decoded text of a file, line ends as newlines. Raises DataError: it is not in the
    encoding, cannot be read, or is no table."""
    encoding = dialect.encoding
    try:
        with opened_bytes(path, line) as stream:
            head = stream.peek(4)[:4]
            marks = (name for mark, name in _MARKS.items() if head.startswith(mark))
            encoding = next(marks, encoding)
            # pandas loses an empty cell after a lone carriage return: line ends become newlines
            yield _Text(stream, encoding=encoding, newline=None)
    except NulFound as error:
        with opened_text(path, dialect) as text:
            line = next(number for number, line in enumerate(text, 1) if "\0" in line)
        raise refused("nul", path, line=line) from error
    except UnicodeError as error:
        reason = getattr(error, "reason", str(error))
        raise refused("encoding", path, encoding=encoding.upper(), reason=reason) from error
    except csv.Error as error:
        raise refused("not_readable", path, kind="text table", reason=error) from error
    except OSError as error:
        raise refused("unreadable", path, reason=error) from error


def lines_of(stream: TextIO, dialect: Dialect) -> Iterator[tuple[int, str]]:
    """The lines of a text without comments, each with its number."""
    mark = dialect.comment
    if not mark:
        return enumerate(stream, 1)
    before = re.compile(rf'((?:[^"{re.escape(mark)}\n]|"[^"\n]*")*){re.escape(mark)}.*')
    lines = (pair for pair in enumerate(stream, 1) if not pair[1].startswith(mark))
    return ((number, before.sub(r"\1", line, count=1)) for number, line in lines)


def first_lines(path: Path, dialect: Dialect) -> list[str]:
    """Some lines from the start of a file: at least a few, and not many more than half a
    million characters."""
    lines, size = [], 0
    with opened_text(path, dialect) as stream:
        for _, line in lines_of(stream, dialect):
            if "\0" in line:
                raise NulFound
            lines.append(line)
            size += len(line)
            if size > _SAMPLE and len(lines) > 3:
                break
    return lines
