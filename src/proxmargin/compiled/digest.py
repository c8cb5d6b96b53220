"""What a library of compiled kernels is made of and by, and which one a system takes.

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

NUMBA = "0.68"  # how the versions begin whose private parts are as `build` and `kernel` need them
HERE = Path(__file__).parent
FOLDER = HERE / "library"
LEVELS = {  # of processors, the best first
    "x86_64": ("x86-64-v4", "x86-64-v3", "x86-64-v2"),
    "aarch64": ("generic",),
}
SUFFIX = ".dll" if sys.platform == "win32" else ".so"
# beside the rooms: what kernels are made of elsewhere
FURTHER = ("addresses.py", "rounding.py", "signatures.txt")
SCALARS = ("hinge.py", "logistic.py")  # in functions/losses/margins


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


def machine() -> str:
    """The system and the kind of processor, of those that libraries are built for."""
    kind = platform.machine().lower()
    return f"{sys.platform}-{ {'amd64': 'x86_64', 'arm64': 'aarch64'}.get(kind, kind) }"


def sealed(content: bytes) -> bytes:
    """The content behind its digest."""
    return sha256(content).hexdigest().encode() + b"\n" + content


def unsealed(content: bytes) -> bytes:
    """What is behind a digest; ValueError if it has another."""
    seal, _, rest = content.partition(b"\n")
    if sha256(rest).hexdigest().encode() != seal:
        raise ValueError("damaged")
    return rest


def levels() -> tuple[str, ...]:
    """Of processors of this kind, the best first; none where no library is built."""
    return LEVELS.get(machine().rpartition("-")[2], ())


def compiler() -> list[str]:
    """The command of the C compiler; empty where there is none, or no headers of Python's."""
    command = shlex.split(os.environ.get("CC", shutil.which("cc") or shutil.which("gcc") or ""))
    return command if Path(sysconfig.get_paths()["include"], "Python.h").exists() else []


def is_current(folder: Path = FOLDER, *, partly: bool = False) -> bool:
    """Whether there is a library of the sources as they are, for this system; or part of one."""
    try:
        table = json.loads(unsealed((folder / "kernels.json").read_bytes()))
        return (
            table["digest"] == digest_of(sources())
            and table["machine"] == machine()
            and (partly or table["complete"])
            and all(
                sha256((folder / f"kernels-{level}{SUFFIX}").read_bytes()).hexdigest() == own
                for level, own in table["libraries"].items()
            )
        )
    except (OSError, ValueError, KeyError):
        return False
