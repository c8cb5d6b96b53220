"""Kernels from a library that was compiled ahead of time (`proxmargin.compiled.build`).

Beside this file, in the folder ``library``, lie a library for each level of processors, which holds
the table of how its kernels are called, and ``kernels.json`` with the digests of the libraries and
of the sources that were compiled. What does not have its digest is not loaded. The build of a wheel
reads this file before anything is there: it begins with the standard library alone.
"""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import os
import pickle
import platform
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from hashlib import sha256
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

NUMBA = "0.68"  # how the versions begin whose private parts are as the build needs them
HERE = Path(__file__).parent
FOLDER = HERE / "library"
# beside the rooms: what kernels are made of elsewhere
FURTHER = ("build.py", "cache.py", "rounding.py", "signatures.txt")
SCALARS = ("hinge.py", "logistic.py")  # in functions/losses/margins
SUFFIX = ".dll" if sys.platform == "win32" else ".so"
MACHINE = platform.machine().lower().replace("amd64", "x86_64").replace("arm64", "aarch64")
LEVELS = {  # of processors, the best first, and the feature that tells each
    "x86_64": {"x86-64-v4": "avx512vl", "x86-64-v3": "avx2", "x86-64-v2": "sse4.2"},
    "aarch64": {"generic": ""},
}
PACKAGE = "proxmargin."
SETTING = "PROXMARGIN_KERNELS"  # "numba": without the library; or the level of processors to take
BUILDING = "building"  # its value in processes that make a library
WITHOUT_NUMBA = "this needs a kernel that is not compiled; type: pip install 'proxmargin[custom]'"

logger = logging.getLogger(__name__)


class Refused(Exception):
    """A library that is there and must not be used; the message says why."""


# where a library is not right
UNUSABLE = (Refused, OSError, ImportError, ValueError, KeyError, TypeError)


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


class Library:
    """A library that this processor runs, and its table."""

    def __init__(self, folder: Path) -> None:
        known = table(folder)
        self.is_complete: bool = known["complete"]
        self.level, self.module = _loaded(folder, known["libraries"])
        calls = json.loads(self.module.table)
        self.kernels: dict[str, Any] = calls["kernels"]
        self.passes: dict[str, int] = calls["passes"]
        self.tuples: list[str] = calls["tuples"]  # the named ones that kernels take

    def address(self, kernel: Any, parameters: tuple[Any, ...]) -> int | None:
        """The address of a pass over samples for losses of this class, if the library has it."""
        number = self.passes.get(f"{_name(kernel.py_func)} {place_of(type(parameters))}")
        return None if number is None else int(self.module.address(number))


def _loaded(folder: Path, digests: dict[str, str]) -> tuple[str, Any]:
    wanted = os.environ.get(SETTING)
    for level in [wanted] if wanted in levels() else levels():
        if level not in digests:
            continue
        path = folder / f"kernels-{level}{SUFFIX}"
        if sha256(path.read_bytes()).hexdigest() != digests[level]:
            raise Refused(f"{path.name} is damaged")
        loader = ExtensionFileLoader("proxmargin.compiled.kernels", str(path))
        module: Any = module_from_spec(spec_from_loader(loader.name, loader))  # type: ignore[arg-type]
        loader.exec_module(module)
        if module.runs_here():
            return level, module
    raise Refused("it has no code for this processor")


@cache
def loaded() -> Library | None:
    """The library; None where there is none for this package and processor, which the log tells."""
    ignored = os.environ.get(SETTING) in ("numba", BUILDING)
    if ignored or not (FOLDER / "kernels.json").exists():
        return None
    try:
        return Library(FOLDER)
    except UNUSABLE as reason:
        then = "kernels are compiled on their first use" if has_numba() else WITHOUT_NUMBA
        told = "the library of compiled kernels in %s is not used (%s): %s"
        logger.warning(told, FOLDER, reason, then)
        return None


@cache
def has_numba() -> bool:
    """Whether kernels that the library lacks can be compiled: by the Numba that was tried."""
    return find_spec("numba") is not None and version("numba").startswith(f"{NUMBA}.")


@cache
def takes(kind: type) -> bool:
    """Whether there are kernels for losses with parameters of this class, or there can be."""
    found = loaded()
    return found is None or place_of(kind) in found.tuples or has_numba()


def place_of(kind: type) -> str:
    """Where a class is, as tables have it."""
    return f"{kind.__module__}:{kind.__qualname__}"


def _name(function: Any) -> str:
    return f"{function.__module__.removeprefix(PACKAGE)}.{function.__qualname__}"


class Kernel(partial[Any]):
    """A kernel of the library; for types that it lacks, and for other kernels, one of Numba's.

    Calls go to ``call`` of native/caller.c, which calls `missed` where no overload fits.
    """

    def __new__(cls, function: Any, library: Library, compiled: Callable[[], Any]) -> Kernel:
        overloads: list[Any] = []  # filled by the first call: their classes may not be there yet
        kernel = super().__new__(cls, library.module.call, overloads)
        overloads.append(kernel)
        return kernel

    def __init__(self, function: Any, library: Library, compiled: Callable[[], Any]) -> None:
        self.py_func, self.library, self.compiled = function, library, compiled
        self.rows = library.kernels.get(_name(function), [])
        update_wrapper(self, function)

    def missed(self, *arguments: Any, **named: Any) -> Any:
        """The first call, one with defaults or names of arguments, or one of other types."""
        (overloads,) = self.args
        if len(overloads) <= len(self.rows):
            overloads.extend([*map(_overload, self.rows)])  # at once; two threads do no harm
            return self(*arguments, **named)
        bound = inspect.signature(self.py_func).bind(*arguments, **named)
        bound.apply_defaults()
        if named or len(bound.args) != len(arguments):
            return self(*bound.args)
        name = _name(self.py_func)
        logger.debug("the library lacks %s of %s", name, arguments)
        if not has_numba():
            types = ", ".join(type(each).__name__ for each in arguments)
            raise ImportError(f"{WITHOUT_NUMBA} (the library lacks {name} of {types})")
        return self.just_in_time(*arguments)

    def raised(self, pickled: bytes) -> None:
        """Raise the exception that the kernel ended with."""
        kind, arguments, _ = pickle.loads(pickled)
        raise kind(*arguments)

    @cached_property
    def just_in_time(self) -> Any:
        """The kernel as Numba compiles it."""
        return self.compiled()

    @property
    def targetoptions(self) -> dict[str, Any]:
        """What Numba asks for before it inlines."""
        return self.just_in_time.targetoptions

    @property
    def _numba_type_(self) -> Any:
        return self.just_in_time._numba_type_


def _overload(row: Any) -> tuple[int, bytes, bytes, tuple[Any, ...]]:
    entry, arguments, result, objects = row
    return entry, bytes.fromhex(arguments), bytes.fromhex(result), tuple(map(_object, objects))


def _object(described: str) -> Any:
    """A class as ``module:name``, or a type of arrays."""
    module, _, name = described.partition(":")
    found = name and "{" not in described
    return getattr(importlib.import_module(module), name) if found else dtype_of(described)


def dtype_of(text: str) -> Any:
    """The type of arrays of this name, or that of records as ``{name:type,...}``."""
    import numpy as np

    fields = [tuple(field.split(":")) for field in text.strip("{}").split(",")]
    return np.dtype(fields if "{" in text else text)
