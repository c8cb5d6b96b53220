"""What a library of compiled kernels is made of, and which one a system takes.

Imports the standard library alone: the build of a wheel reads this file before anything is there.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import sys
import sysconfig
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

NUMBA = "0.68"  # how the versions begin whose private parts are as `kernel` and `objects` need them
HERE = Path(__file__).parent
FOLDER = HERE / "library"
LEVELS = {  # of processors, the best first, and the feature that tells each
    "x86_64": {"x86-64-v4": "avx512vl", "x86-64-v3": "avx2", "x86-64-v2": "sse4.2"},
    "aarch64": {"generic": ""},
}
SUFFIX = ".dll" if sys.platform == "win32" else ".so"
# beside the rooms: what kernels are made of elsewhere
FURTHER = ("addresses.py", "objects.py", "rounding.py", "signatures.txt")
SCALARS = ("hinge.py", "logistic.py")  # in functions/losses/margins


class Refused(Exception):
    """A library that is there and must not be used; the message says why."""


def sources() -> list[Path]:
    """The files whose content is in the library."""
    rooms, native = sorted(HERE.glob("[!._]*/[!.]*.py")), sorted(HERE.glob("native/*.c"))
    margins = HERE.parent / "functions" / "losses" / "margins"
    return [*rooms, *native, *(HERE / name for name in FURTHER), *(margins / n for n in SCALARS)]


@cache
def of_sources() -> str:
    """Their digest when the first kernel was imported: what this process compiles later is that."""
    return digest_of(sources())


def digest_of(paths: list[Path]) -> str:
    """One digest of these files and their names; "" if one is not there, as in archives."""
    digest = sha256()
    try:
        for path in paths:
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)} ".encode() + content)
    except OSError:
        return ""
    return digest.hexdigest()


def sealed(content: bytes) -> bytes:
    """The content behind its digest."""
    return sha256(content).hexdigest().encode() + b"\n" + content


def unsealed(path: Path) -> bytes:
    """What is in a file behind its digest."""
    seal, _, content = path.read_bytes().partition(b"\n")
    if sha256(content).hexdigest().encode() != seal:
        raise Refused(f"{path.name} is damaged")
    return content


def machine() -> str:
    """The system and the kind of processor, of those that libraries are built for."""
    kind = platform.machine().lower()
    return f"{sys.platform}-{ {'amd64': 'x86_64', 'arm64': 'aarch64'}.get(kind, kind) }"


def levels() -> dict[str, str]:
    """Of processors of this kind, the best first; none where no library is built."""
    return LEVELS.get(machine().rpartition("-")[2], {})


def compiler() -> list[str]:
    """The command of the C compiler; empty where there is none, or no headers of Python's."""
    command = shlex.split(os.environ.get("CC", shutil.which("cc") or shutil.which("gcc") or ""))
    return command if Path(sysconfig.get_paths()["include"], "Python.h").exists() else []


def table(folder: Path) -> Any:
    """What is said of the libraries in a folder; `Refused` unless they are of these sources."""
    found = json.loads(unsealed(folder / "kernels.json"))
    if found["machine"] != machine():
        raise Refused(f"it is for {found['machine']}")
    if found["digest"] != of_sources():
        raise Refused("it was built from other sources")
    return found
