"""`njit` for the kernels of this package: from the library, or compiled by Numba on first use.

Numba is imported when the first kernel is compiled, not before. What is to be registered with it,
implementations of functions and intrinsics, is handed over then (`overload`, `intrinsic`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from proxmargin.compiled import library

SUMS = {"reassoc", "contract", "nsz"}  # `fastmath` of sums in any order: their loops vectorise

_registrations: list[Callable[[], object]] = []


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit`, where ``cache=True`` keeps the result on disk, unless the library has it.

    A kernel with ``allocates=False`` makes no arrays, only views of those that it is given, and
    counts no references to them: counting is atomic and takes, where arrays come in tuples, longer
    than the work of a small kernel, and half of the time of its compilation.
    """

    def compiled(function: Any) -> Any:
        found, later = library.loaded(), partial(just_in_time, function, options)
        if found is not None and function.__module__.startswith(library.PACKAGE):
            return found.kind(function, found, later)
        return later() if library.has_numba() else _Absent(function)

    return compiled


def just_in_time(function: Any, options: dict[str, Any]) -> Any:
    """The kernel as Numba compiles it on its first use."""
    from proxmargin.compiled.kernel import Kernel

    fixed = {"nopython": True, "boundscheck": None, "_nrt": options.get("allocates", True)}
    given = {name: options[name] for name in options.keys() - {"cache", "allocates"}}
    while _registrations:
        _registrations.pop(0)()
    made = Kernel(function, targetoptions={**fixed, **given})
    if options.get("cache"):
        made.enable_caching()
    return made


def at_first_compilation(register: Callable[[], object]) -> None:
    """Call this before Numba compiles anything, which may be never."""
    if library.loaded() is None and library.has_numba():
        register()
    else:
        _registrations.append(register)


def overload(function: Any, **options: Any) -> Callable[[Any], Any]:
    """`numba.extending.overload`, which takes effect when Numba is needed."""

    def implemented(implementation: Any) -> Any:
        def register() -> None:
            from numba.extending import overload

            overload(function, **options)(implementation)

        at_first_compilation(register)
        return implementation

    return implemented


class intrinsic:
    """`numba.extending.intrinsic`, which takes effect when Numba is needed."""

    def __init__(self, definition: Any) -> None:
        self.definition = definition

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"only kernels call {self.definition.__name__}")

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        self.made = intrinsic(self.definition)
        context: Any = cpu_target.typing_context
        context.refresh()
        return context.resolve_value_type(self.made)


def is_array(kind: Any) -> bool:
    """Whether one of Numba's types is an array, for implementations that depend on it."""
    from numba import types

    return isinstance(kind, types.Array)


class _Absent:
    """A kernel where there is neither a library nor Numba."""

    def __init__(self, function: Any) -> None:
        self.py_func = function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise ImportError(library.WITHOUT_NUMBA)
