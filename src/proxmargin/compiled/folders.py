"""Where compiled kernels are kept on disk: one folder for each state of their sources.

A compiled kernel holds the code of all kernels that it calls, of whatever file. So the name of the
folder is a digest of all files here, of the packages that compile them and of the processor:
whatever changes, nothing out of date is found.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from time import time
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import config as numba_config

config: Any = numba_config  # names its members only when it is imported

HERE = Path(__file__).parent
DAY = 86_400.0  # seconds
UNUSED = 30 * DAY  # seconds without use after which a folder is removed
MOST = 10  # folders of other sources that are kept: each edit of a kernel leaves one
DIGITS = 16  # hexadecimal digits of the digest, 64 bits: collisions do not happen
USERS_CACHES = {"darwin": "Library/Caches", "win32": "AppData/Local"}


def name() -> str:
    """The name of the folder for the sources as they are on disk now; "" if they are not there.

    They are not in archives, where what is out of date could not be told.
    """
    # some installations have byte code alone; what editors leave begins with a dot
    sources = _files("py") or _files("pyc")
    digest = sha256(repr(_makers()).encode())
    for path in sources:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(HERE)} {len(content)} ".encode() + content)
    return f"proxmargin-{digest.hexdigest()[:DIGITS]}" if sources else ""


def _files(suffix: str) -> list[Path]:
    """The package's own, of its rooms too; not what lies in ``__pycache__``, which is a lot."""
    rooms = (f"[!.]*.{suffix}", f"[!._]*/[!.]*.{suffix}")
    return sorted(path for room in rooms for path in HERE.glob(room))


def _makers() -> tuple[object, ...]:
    """What machine code depends on besides the sources: who compiles it, how, and for what."""
    return (
        platform.python_implementation(),
        sys.version_info[:3],
        [each.__version__ for each in (numba, llvmlite, np)],
        (config.CPU_NAME, config.CPU_FEATURES, int(config.OPT), config.BOUNDSCHECK),
        llvmlite.binding.get_process_triple(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
    )


NAME = name()


def places() -> tuple[Path, ...]:
    """Where the folder may be, the first place to be preferred.

    That which ``NUMBA_CACHE_DIR`` names and no other; if it is not set, the folder of byte code
    beside the kernels, then the caches of the user.
    """
    if not NAME:
        return ()
    if config.CACHE_DIR:
        return (Path(config.CACHE_DIR).absolute(),)
    return (HERE / "__pycache__", *_users_caches())


def _users_caches() -> Iterator[Path]:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        yield given / "proxmargin"
        return
    with suppress(RuntimeError):  # a user without a home, as containers have them
        yield Path.home() / USERS_CACHES.get(sys.platform, ".cache") / "proxmargin"


def folders() -> Iterator[Path]:
    """The folders that there are, and that only those can write who can change the package."""
    for place in places():
        with suppress(OSError):
            if trusted((place / NAME).stat()):
                yield place / NAME


@cache
def home() -> Path | None:
    """The folder that keeps what this process compiles; None where none can be written.

    Folders of sources that are gone are removed beside it.
    """
    for place in places():
        folder = place / NAME
        with suppress(OSError):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                if trusted(folder.stat()):
                    _tidy(place)
                    return folder
    return None


def trusted(status: os.stat_result) -> bool:
    """Whether who wrote this file could as well have changed the package.

    What is read is unpickled and run. Beside this user those are the owner of the package and the
    administrator: an image may bring its cache along.
    """
    if not hasattr(os, "geteuid"):  # Windows: access lists guard the user's folders
        return True
    owners = {os.geteuid(), HERE.stat().st_uid, 0}
    return status.st_uid in owners and not status.st_mode & stat.S_IWOTH


@cache
def used(folder: Path) -> None:
    """Leave a trace of the use of a folder, which keeps it from being removed."""
    with suppress(OSError):
        os.utime(folder)


def _tidy(place: Path) -> None:
    """Remove what nobody needs: old folders, and what interrupted processes have left."""
    others = [each for each in place.glob("proxmargin-*") if _is_another(each)]
    for rank, (age, folder) in enumerate(sorted((_age(each), each) for each in others)):
        if age > (UNUSED if rank < MOST else DAY):  # who uses one now has touched it today
            shutil.rmtree(folder, ignore_errors=True)
    for draft in (place / NAME).glob("*.tmp"):
        if _age(draft) > DAY:
            with suppress(OSError):
                draft.unlink()


def _is_another(folder: Path) -> bool:
    own = re.fullmatch(rf"proxmargin-[0-9a-f]{{{DIGITS}}}", folder.name) is not None
    return own and folder.name != NAME


def _age(path: Path) -> float:
    """Seconds since the last change; none for what is gone."""
    try:
        return time() - path.lstat().st_mtime
    except OSError:
        return 0.0
