"""`njit` for the kernels of this package: from the library, or compiled by Numba on first use.

Numba is imported when the first kernel is compiled, not before. What is to be registered with it,
implementations of functions and intrinsics, is handed over then (`overload`, `intrinsic`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from proxmargin.compiled import library

if TYPE_CHECKING:
    from proxmargin.compiled.kernel import Kernel

logger = logging.getLogger("proxmargin")

SUMS = {"reassoc", "contract", "nsz"}  # `fastmath` of sums in any order: their loops vectorise

_registrations: list[Callable[[], object]] = []


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit`, where ``cache=True`` keeps the result in the cache of this package.

    A kernel with ``allocates=False`` makes no arrays, only views of those that it is given, and
    counts no references to them: counting is atomic and takes, where arrays come in tuples, longer
    than the work of a small kernel, and half of the time of its compilation.
    """

    def compiled(function: Any) -> Any:
        found = library.loaded()
        if found is not None and function.__module__.startswith(library.PACKAGE):
            return found.kind(function, options, found, just_in_time)
        return just_in_time(function, options) if library.has_numba() else _Absent(function)

    return compiled


def just_in_time(function: Any, options: dict[str, Any]) -> Any:
    """The kernel as Numba compiles it on its first use."""
    import numba

    options = dict(options)
    kept, allocates = options.pop("cache", False), options.pop("allocates", True)
    while _registrations:
        _registrations.pop(0)()
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    made = _kind_of_kernel(kept)
    if made is None:
        return numba.njit(**options)(function)
    fixed = {"nopython": True, "boundscheck": None, "_nrt": allocates}
    return made(function, targetoptions={**fixed, **options})


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
        raise ImportError(library.HOW_TO_GET_NUMBA)


@cache
def _kind_of_kernel(kept: bool) -> type[Kernel] | None:
    """The class of kernels, those kept on disk or the others; None where Numba lacks its parts."""
    try:
        from proxmargin.compiled import meter, note
        from proxmargin.compiled.kept_kernels import KeptKernel
        from proxmargin.compiled.kernel import Kernel

        meter.listen()
        note.listen()
    except (ImportError, AttributeError) as missing:
        logger.warning(
            "every process compiles its kernels anew: this Numba differs from the versions that "
            "the cache of kernels was written for (%s)",
            missing,
        )
        return None
    return KeptKernel if kept else Kernel
