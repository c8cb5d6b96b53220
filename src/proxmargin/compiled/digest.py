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

NUMBA = "0.68"  # how the versions begin whose private parts are as `objects` needs them
HERE = Path(__file__).parent
FOLDER = HERE / "library"
# beside the rooms: what kernels are made of elsewhere
FURTHER = ("cache.py", "objects.py", "rounding.py", "signatures.txt")
SCALARS = ("hinge.py", "logistic.py")  # in functions/losses/margins
SUFFIX = ".dll" if sys.platform == "win32" else ".so"
MACHINE = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
LEVELS = {  # of processors, the best first, and the feature that tells each
    "x86_64": {"x86-64-v4": "avx512vl", "x86-64-v3": "avx2", "x86-64-v2": "sse4.2"},
    "aarch64": {"generic": ""},
}


class Refused(Exception):
    """A library that is there and must not be used; the message says why."""


def sources() -> list[Path]:
    """The files whose content is in the library."""
    rooms = [*HERE.glob("[!._]*/[!.]*.py"), *HERE.glob("native/*.c")]
    margins = HERE.parent / "functions" / "losses" / "margins"
    return sorted([*rooms, *map(HERE.joinpath, FURTHER), *map(margins.joinpath, SCALARS)])


@cache
def of_sources() -> str:
    """Their digest, with that of the system."""
    digest = sha256(f"{sys.platform} {MACHINE}".encode())
    for path in sources():
        content = path.read_bytes()
        digest.update(f"{path.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def levels() -> dict[str, str]:
    """Of processors of this kind, the best first; none where no library is built."""
    return LEVELS.get(MACHINE, {})


def compiler() -> list[str]:
    """The command of the C compiler; empty where there is none, or no headers of Python's."""
    command = shlex.split(os.environ.get("CC", shutil.which("cc") or shutil.which("gcc") or ""))
    return command if Path(sysconfig.get_paths()["include"], "Python.h").exists() else []


def table(folder: Path) -> Any:
    """The digests of the libraries in a folder; `Refused` unless they are of these sources."""
    found = json.loads((folder / "kernels.json").read_bytes())
    if found["digest"] != of_sources():
        raise Refused("it was built from other sources, or for another system")
    return found
