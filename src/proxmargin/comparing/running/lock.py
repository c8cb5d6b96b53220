"""The lock of a run directory: one comparison at a time works in it."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import IO

from proxmargin.runtime.files import taken

__all__ = ["locked"]

LOCK = ".lock"  # in the run directory; a leftover file is no lock
OWNER = 200  # characters of what an owner writes into it


def locked(folder: Path) -> IO[str] | None:
    """The open lock file: the lock lasts until it is closed, or its process ends.

    None where no such file can be written, and so no result either.

    Raises
    ------
    ValueError
        Another comparison works in the directory; names its process.
    """
    try:
        stream = open(folder / LOCK, "a+", encoding="utf-8")  # noqa: SIM115
    except OSError:
        return None
    if not taken(stream, without=True):
        with stream:
            stream.seek(0)
            owner = stream.read(OWNER).strip() or "another process"
        raise ValueError(
            f"run_dir={os.fspath(folder)!r} is in use by {owner}: wait until it has ended, or give "
            "another directory"
        )
    with suppress(OSError):  # a full disk
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        stream.flush()
    return stream
