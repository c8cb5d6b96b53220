"""Files of the library: written atomically, locked, and read unpacked.

The system releases locks when their process ends, however it ends. The first bytes of a file tell
how it is compressed, whatever its name.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import secrets
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from proxmargin.runtime.optional import optional

if sys.platform != "win32":
    import fcntl


def taken(stream: IO[bytes] | IO[str], *, without: bool = False) -> bool:
    """Whether an exclusive lock was acquired, until the file is closed; ``without`` where the file
    system has no locks. Always on Windows, where an open file cannot be removed."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without
    return True


# characters of the file's name in the name of a draft, which must not exceed a name's limit
NAMED = 50
# random bytes in the name of a draft
UNIQUE = 8


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose content replaces the file at ``path``, as a whole, if the block ends without
    an error: a draft in the same folder is synchronised and renamed, and drafts of dead processes
    removed. Permissions and links stay; devices and pipes are written directly. OSError names the
    file."""
    with errors_named(path), _stream(path) as stream:
        yield stream


@contextmanager
def errors_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the system that name no file name this one: that of a full disk names none."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextmanager
def _stream(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    if _is_stream(path):
        with open(path, "wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a folder")
    _remove_leftovers(target)
    with _drafted(target, path) as (stream, draft):
        yield stream
        stream.flush()
        os.fsync(stream.fileno())
        if sys.platform == "win32":  # an open file can be neither renamed nor removed there
            stream.close()
        os.replace(draft, target)
    _reach_disk(target.parent)


def folder_of(path: str | os.PathLike[str]) -> Path | None:
    """The folder that must be writable for `replaced`; None for a device or a pipe."""
    return None if _is_stream(path) else Path(os.path.realpath(path)).parent


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether the path exists and is neither a file nor a folder."""
    found = Path(path)
    return found.exists() and not (found.is_file() or found.is_dir())


@contextmanager
def _drafted(target: Path, named: str | os.PathLike[str]) -> Iterator[tuple[BinaryIO, Path]]:
    """A new draft, open and locked; removed at the end unless it was renamed."""
    try:
        stream, draft = _new_draft(target)
    except OSError as error:  # names the draft, which nobody has asked for
        raise OSError(error.errno, error.strerror, os.fspath(named)) from error
    try:
        with stream:
            with suppress(OSError):  # no file yet, or a file system without permissions
                os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
            yield stream, draft
    finally:
        with suppress(OSError):
            draft.unlink()


def _new_draft(target: Path) -> tuple[BinaryIO, Path]:
    """A new draft with default permissions; `tempfile` would make it private to the user."""
    while True:
        unique = secrets.token_hex(UNIQUE)
        draft = target.with_name(f".{target.name[:NAMED]}.{unique}.part")
        stream = open(draft, "xb")  # noqa: SIM115
        if not taken(stream) or draft.exists():
            return stream, draft
        stream.close()  # another process removed it as a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """Remove drafts of this file whose processes have died. A process holds a lock on its draft as
    long as it lives (on Windows, an open file cannot be removed)."""
    pattern = re.compile(rf"\.{re.escape(target.name[:NAMED])}\.[0-9a-f]{{{2 * UNIQUE}}}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        drafts = [entry.path for entry in entries if pattern.fullmatch(entry.name)]
        for draft in drafts:
            with suppress(OSError), open(draft, "rb") as stream:
                if taken(stream):
                    os.unlink(draft)


def _reach_disk(folder: Path) -> None:
    """Synchronise the folder, so that the new name survives a power loss, where supported."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# suffixes of the compressions that are read
PACKINGS = (".gz", ".bz2", ".xz", ".zst", ".zip")
_HEAD = 10  # bytes that tell the kind
# what follows "BZh" and a digit: a block, or the end of an empty file
_BZIP2 = (b"1AY&SY", b"\x17rE8P\x90")
_NOT_READ = {b"\x04\x22\x4d\x18": "LZ4", b"7z\xbc\xaf\x27\x1c": "a 7z archive"}
# errors of damaged or locked content; a ZIP archive with a password raises RuntimeError
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)


@contextmanager
def unpacked_bytes(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked if compressed by gzip, bzip2, xz or Zstandard, or alone in a
    ZIP archive. OSError: it cannot be read, is compressed otherwise, or (while it is read) damaged
    or cut short."""
    try:
        with path.open("rb") as raw, _opener(raw.peek(_HEAD)[:_HEAD])(raw) as stream:
            yield stream
    except _DAMAGE as error:
        raise OSError(str(error)) from error


def _opener(head: bytes) -> Any:
    if head.startswith(b"\x1f\x8b"):
        return lambda raw: gzip.GzipFile(fileobj=raw)
    if head.startswith(b"BZh") and head[4:] in _BZIP2:
        return bz2.BZ2File
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        arrow = optional("pyarrow", "Reading a file compressed by Zstandard")
        return lambda raw: io.BufferedReader(arrow.CompressedInputStream(raw, "zstd"))
    if head.startswith(b"PK\x03\x04"):
        return _only_member
    for begin, kind in _NOT_READ.items():
        if head.startswith(begin):
            raise OSError(f"it is compressed ({kind}): unpack it, or pack it by gzip, bzip2 or xz")
    return lambda raw: raw


@contextmanager
def _only_member(raw: BinaryIO) -> Iterator[BinaryIO]:
    with zipfile.ZipFile(raw) as archive:
        members = [each for each in archive.infolist() if not each.is_dir()]
        own = [each for each in members if not each.filename.startswith("__MACOSX/")]
        if len(own) != 1:
            names = ", ".join(each.filename for each in own[:3])
            raise OSError(f"it is a ZIP archive of {len(own)} files ({names}): unpack it")
        with archive.open(own[0]) as stream:
            yield cast(BinaryIO, stream)
