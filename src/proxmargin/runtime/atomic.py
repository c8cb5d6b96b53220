"""Atomic writes: files are written whole or not at all, here and nowhere else in the library."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

if sys.platform != "win32":
    import fcntl

__all__ = ["folder_of", "replaced"]

# letters of a file's name that its drafts carry: with the rest no more bytes than a name may have
NAMED = 50
# bytes of what makes the name of a draft unique
UNIQUE = 8


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose content replaces the file at ``path`` once the block has ended well.

    The content goes to a draft in the same folder, reaches the disk, and takes the place of the
    file in one step: whatever happens, ``path`` holds all of the new content or what it held
    before. Drafts that a process left behind when it died are removed first. An existing file
    keeps its permissions; a link stays one; a device or a pipe is written to as it is.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    OSError
        The file cannot be written.
    """
    if _is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a folder")
    _remove_leftovers(target)
    with _drafted(target) as (stream, draft):
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
        if sys.platform == "win32":  # where an open file can be neither renamed nor removed
            stream.close()
        os.replace(draft, target)
    _reach_disk(target.parent)


def folder_of(path: str | os.PathLike[str]) -> Path | None:
    """The folder that has to be writable for `replaced`; None for a device or a pipe."""
    return None if _is_stream(path) else Path(os.path.realpath(path)).parent


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether there is something that is neither a file nor a folder."""
    found = Path(path)
    return found.exists() and not (found.is_file() or found.is_dir())


@contextmanager
def _drafted(target: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new draft, open and locked; it is gone in the end."""
    stream, draft = _new_draft(target)
    try:
        with stream:
            with suppress(OSError):  # there is no file yet, or its system knows no permissions
                os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
            yield stream, draft
    finally:
        with suppress(OSError):
            draft.unlink()


def _new_draft(target: Path) -> tuple[BinaryIO, Path]:
    """Not by `tempfile`: its files are private to the user, and would stay so in their place."""
    while True:
        unique = secrets.token_hex(UNIQUE)
        draft = target.with_name(f".{target.name[:NAMED]}.{unique}.part")
        stream = open(draft, "xb")  # noqa: SIM115
        if not _taken(stream) or draft.exists():
            return stream, draft
        stream.close()  # another process took it for a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """Drafts of this file that nobody writes to any more.

    A living process holds a lock on its draft (Windows: does not let go of it), which dies with
    the process.
    """
    pattern = re.compile(rf"\.{re.escape(target.name[:NAMED])}\.[0-9a-f]{{{2 * UNIQUE}}}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        drafts = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
        for draft in drafts:
            with suppress(OSError), open(draft, "rb") as stream:
                if _taken(stream):
                    os.unlink(draft)


def _taken(stream: IO[bytes]) -> bool:
    """Whether the file could be locked, for as long as it is open."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _reach_disk(folder: Path) -> None:
    """Make the new name in the folder outlast a loss of power, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
