"""One process at a time: what one compiles and keeps, another that needs it loads.

The processes lock single bytes of a file in the folder of the cache, a byte for each kernel. A lock
ends with its process, whatever ends that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from zlib import crc32

from proxmargin.compiled import folders

try:
    import fcntl
except ImportError:  # Windows: everyone compiles for themselves
    fcntl = None  # type: ignore[assignment]

NAME = "turns"  # of the file
PATIENCE = 120.0  # seconds, some times what the longest kernel takes: then both compile it
PAUSE = 0.02  # seconds between two looks


@contextmanager
def turn(kernel: str) -> Iterator[None]:
    """Unless it is on disk, wait until no other process compiles this kernel, and let none begin.

    Parameters
    ----------
    kernel : str
        The name of its file.
    """
    file = None if fcntl is None or _is_kept(kernel) else _opened(folders.home())
    if file is None:
        yield
        return
    byte = crc32(kernel.encode())
    _wait(file, byte)
    try:
        yield
    finally:
        with suppress(OSError):
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


def _is_kept(kernel: str) -> bool:
    with suppress(OSError):
        return any((folder / kernel).exists() for folder in folders.folders())
    return False


def _wait(file: int, byte: int) -> None:
    end = monotonic() + PATIENCE
    while monotonic() < end:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            return
        except (BlockingIOError, PermissionError):  # someone else has it
            sleep(PAUSE)
        except OSError:  # a file system without locks
            return


@cache
def _opened(home: Path | None) -> int | None:
    """Open until the process ends: to close the file would release its locks."""
    if home is not None:
        with suppress(OSError):
            return os.open(home / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return None
