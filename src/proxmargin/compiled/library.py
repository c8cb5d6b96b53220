"""Kernels from a library that was compiled ahead of time (`proxmargin.compiled.build`).

Beside this file, in the folder ``library``, lie a library for each level of processors and
``kernels.json``, the table of what is in them: first a digest of the rest, then the digest of the
sources that were compiled, the digests of the libraries, and how each kernel is called. What does
not have its digest is not loaded.
"""

from __future__ import annotations

import importlib
import inspect
import logging
import os
import pickle
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from hashlib import sha256
from importlib.machinery import ExtensionFileLoader
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_loader
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from proxmargin.compiled import digest
from proxmargin.compiled.digest import Refused

PACKAGE = "proxmargin."
SETTING = "PROXMARGIN_KERNELS"  # "numba": without the library; or the level of processors to take
WITHOUT_NUMBA = "this needs a kernel that is not compiled; type: pip install 'proxmargin[custom]'"
UNUSABLE = (Refused, OSError, ImportError, ValueError, KeyError)  # where a library is not right

logger = logging.getLogger("proxmargin")
_filling = Lock()  # of the list of overloads of a kernel, by one thread


class Library:
    """A library that this processor runs, and its table."""

    def __init__(self, folder: Path) -> None:
        table = digest.table(folder)
        self.kernels: dict[str, Any] = table["kernels"]
        self.passes: dict[str, int] = table["passes"]
        self.tuples: list[str] = table["tuples"]  # the named ones that kernels take
        self.is_complete: bool = table["complete"]
        self.level, self.module = _loaded(folder, table["libraries"])
        self.kind: Any = type("LibraryKernel", (_LibraryKernel, self.module.Kernel), {})
        self.missing: set[str] = set()  # calls with types that the library does not have

    def address(self, kernel: Any, parameters: tuple[Any, ...]) -> int | None:
        """The address of a pass over samples for losses of this class, if the library has it."""
        number = self.passes.get(f"{_name(kernel.py_func)} {place_of(type(parameters))}")
        return None if number is None else int(self.module.address(number))

    def knows(self, value: Any) -> bool:
        """Whether all named tuples in an argument are of the list, none a user's own."""
        return not isinstance(value, tuple) or (
            (type(value) is tuple or place_of(type(value)) in self.tuples)
            and all(map(self.knows, value))
        )


def _loaded(folder: Path, digests: dict[str, str]) -> tuple[str, Any]:
    levels, wanted = digest.levels(), os.environ.get(SETTING)
    for level in levels:
        if level not in digests or (wanted in levels and wanted != level):
            continue
        path = folder / f"kernels-{level}{digest.SUFFIX}"
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
    digest.of_sources()
    if os.environ.get(SETTING) == "numba" or not (digest.FOLDER / "kernels.json").exists():
        return None
    try:
        return Library(digest.FOLDER)
    except UNUSABLE as reason:
        then = "kernels are compiled on their first use" if has_numba() else WITHOUT_NUMBA
        logger.warning(
            "the library of compiled kernels in %s is not used (%s): %s",
            digest.FOLDER,
            reason,
            then,
        )
        return None


@cache
def has_numba() -> bool:
    """Whether kernels that the library lacks can be compiled: by the Numba that was tried."""
    return find_spec("numba") is not None and version("numba").startswith(f"{digest.NUMBA}.")


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


class _LibraryKernel:
    """A kernel of the library; for types that it lacks, and for other kernels, one of Numba's.

    The base class in C calls `missed` where no overload fits the arguments.
    """

    overloads: list[Any]  # filled by the first call: their classes may not be there yet

    def __init__(self, function: Any, library: Library, compiled: Callable[[], Any]) -> None:
        self.py_func, self.library, self.compiled = function, library, compiled
        self.rows = library.kernels.get(_name(function), [])
        update_wrapper(self, function)  # type: ignore[arg-type]

    def missed(self, *arguments: Any, **named: Any) -> Any:
        """The first call, one with defaults or names of arguments, or one of other types."""
        if len(self.overloads) < len(self.rows):
            with _filling:
                if not self.overloads:
                    self.overloads.extend(map(_overload, self.rows))
            return self(*arguments, **named)  # type: ignore[operator]
        bound = inspect.signature(self.py_func).bind(*arguments, **named)
        bound.apply_defaults()
        if named or len(bound.args) != len(arguments):
            return self(*bound.args)  # type: ignore[operator]
        lacked = f"{_name(self.py_func)} {' '.join(map(described, arguments))}"
        if self.library.is_complete and all(map(self.library.knows, arguments)):
            self.library.missing.add(lacked)
        logger.debug("the library lacks %s", lacked)
        if not has_numba():
            raise ImportError(f"{WITHOUT_NUMBA} (the library lacks {lacked})")
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


def described(value: Any) -> str:
    """The type of an argument as the list of `proxmargin.compiled.objects` would have it."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{value.dtype}:{value.ndim}{order}{'' if flags.writeable else 'r'}"
    if isinstance(value, tuple):
        name = type(value).__name__ if type(value) is not tuple else ""
        return f"{name}({','.join(map(described, value))})"
    if isinstance(value, np.void):
        fields = (f"{name}:{value.dtype[name]}" for name in value.dtype.names or ())
        return "{" + ",".join(fields) + "}"
    if isinstance(value, np.generic):
        return str(value.dtype)
    named = {int: "int64", float: "float64", type(None): "none"}
    return named.get(type(value), type(value).__name__)


def _overload(row: Any) -> tuple[int, bytes, bytes, tuple[Any, ...]]:
    entry, arguments, result, objects = row
    return entry, bytes.fromhex(arguments), bytes.fromhex(result), tuple(map(_object, objects))


def _object(described: Any) -> Any:
    """A class, as ``module:name``, or the type of an array or of a record."""
    if isinstance(described, list):
        return np.dtype([(name, kind) for name, kind in described])
    module, _, name = described.partition(":")
    return getattr(importlib.import_module(module), name) if name else np.dtype(described)
