"""Locks of files, which the system releases when their process ends, however it ends."""

from __future__ import annotations

import sys
from typing import IO, Any

if sys.platform != "win32":
    import fcntl

__all__ = ["taken"]


def taken(stream: IO[Any], *, without: bool = False) -> bool:
    """Whether an exclusive lock was acquired, which lasts until the file is closed.

    Parameters
    ----------
    stream : open file
    without : bool
        The answer where the file system has no locks. On Windows, where an open file cannot be
        removed, it is always true.
    """
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without
    return True
