"""A digest of functions that are compiled into kernels and live in files of their own.

The folder of the cache is named by the files of `proxmargin.compiled`; scalar functions of losses
are elsewhere, in the package or in a user's module.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

LIBRARIES = ("builtins", "math", "numba", "numpy", "scipy")  # that do not change under a cache


def digest(kind: type) -> str:
    """The digest of a named tuple's methods and of all functions and numbers that they refer to,
    by name in their own module or as an attribute of another.
    """
    parts = [part for method in _methods(kind) for part in _parts(method, set())]
    return sha256(repr(parts).encode()).hexdigest()


def can_be_kept(kind: type) -> bool:
    """Whether another process finds the class: none that was made in a session or a function."""
    return kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__


def _methods(kind: type) -> Iterator[FunctionType]:
    own = [each for each in kind.__mro__ if each.__module__ not in ("builtins", "typing")]
    for each in own:  # inherited ones too
        for name, value in sorted(vars(each).items()):
            if isinstance(value, FunctionType) and not name.startswith("_"):
                yield value


def _parts(function: FunctionType, seen: set[int]) -> Iterator[object]:
    """Byte code and constants of a function, and of all functions that it calls."""
    if id(function) in seen:
        return
    seen.add(id(function))
    names: set[str] = set()
    yield from _code(function.__code__, names)
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    for value in (*(function.__defaults__ or ()), *cells, *_globals(function, names)):
        called: Any = getattr(value, "py_func", value)
        if isinstance(called, FunctionType):
            yield from _parts(called, seen)
        elif isinstance(called, np.ndarray):
            yield called.dtype.str, called.shape, called.tobytes()
        elif isinstance(called, int | float | str | tuple | np.generic):
            yield called


def _globals(function: FunctionType, names: set[str]) -> Iterator[object]:
    """Values of the globals that the code names, and of the attributes of modules that it names."""
    for name in sorted(names & function.__globals__.keys()):
        value = function.__globals__[name]
        yield value
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in LIBRARIES:
            yield from (getattr(value, each) for each in sorted(names & vars(value).keys()))


def _code(code: CodeType, names: set[str]) -> Iterator[object]:
    names.update(code.co_names)
    yield code.co_code
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, names)
        else:
            yield constant
