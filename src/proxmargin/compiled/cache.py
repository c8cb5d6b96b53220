"""`njit` for the kernels of this package: from the library, or compiled by Numba on first use.

Numba is imported when the first kernel is compiled, not before. What is to be registered with it,
implementations of functions and intrinsics, is handed over then (`overload`, `intrinsic`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache, cached_property, partial
from threading import Lock
from typing import Any

from proxmargin.compiled import library
from proxmargin.compiled.clock import compiling

SUMS = {"reassoc", "contract", "nsz"}  # `fastmath` of sums in any order: their loops vectorise

# Numba's types of arguments of functions that have addresses
NUMBER = "float64"
ARRAY = "float64[::1]"

_registrations: list[Callable[[], object]] = []
_registering = Lock()


def njit(*, allocates: bool = True, **options: Any) -> Callable[[Any], Any]:
    """`numba.njit`, unless the library has the kernel.

    A kernel with ``allocates=False`` makes no arrays, only views of those that it is given, and
    counts no references to them: counting is atomic and takes, where arrays come in tuples, longer
    than the work of a small kernel, and half of the time of its compilation.
    """

    def compiled(function: Any) -> Any:
        later = partial(just_in_time, function, {**options, "_nrt": allocates})
        found = library.loaded()
        if found is not None and function.__module__.startswith(library.PACKAGE):
            return library.Kernel(function, found, later)
        return later() if library.has_numba() else _refuse

    return compiled


def _refuse(*arguments: Any, **named: Any) -> None:
    """A kernel where there is neither a library nor Numba."""
    raise ImportError(library.WITHOUT_NUMBA)


def just_in_time(function: Any, options: dict[str, Any]) -> Any:
    """The kernel as Numba compiles it on its first use, in every process."""
    import numba

    _listen()
    building = os.environ.get(library.SETTING) == library.BUILDING
    wrappers = {"no_cpython_wrapper": building, "no_cfunc_wrapper": True}
    compiled: Any = numba.njit  # the stubs lack what is private
    return compiled(**options, **wrappers)(function)


@cache
def _listen() -> None:
    """Be ready whenever Numba compiles: stop the clock, say so of a kernel once, and register."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, begun: Any) -> None:
            if begun.kind == "numba:compiler_lock":
                compiling.begin()
                with _registering:
                    while _registrations:
                        _registrations.pop(0)()
            elif str(begun.data["dispatcher"].py_func.__module__).startswith(library.PACKAGE):
                _say()  # not of other packages' functions

        def on_end(self, ended: Any) -> None:
            if ended.kind == "numba:compiler_lock":
                compiling.end()

    for kind in ("numba:compiler_lock", "numba:compile"):
        event.register(kind, Listener())


@cache
def _say() -> None:
    logging.getLogger("proxmargin").warning(
        "compiling kernels for their first use: some seconds, a minute or two for a path; every "
        "process does so for a loss of your own, and for kernels that the library lacks or whose "
        "source has changed, until `python -m proxmargin.compiled.build` (in a checkout: python3 "
        "run.py build) makes it whole"
    )


def at_first_compilation(register: Callable[[], object]) -> None:
    """Call this before Numba compiles anything, which may be never."""
    _registrations.append(register)


def overload(function: Any, **options: Any) -> Callable[[Any], Any]:
    """`numba.extending.overload`, which takes effect when Numba is needed."""

    def register(implementation: Any) -> None:
        from numba.extending import overload

        overload(function, **options)(implementation)

    return lambda implementation: at_first_compilation(partial(register, implementation))


class intrinsic:
    """`numba.extending.intrinsic`, which takes effect when Numba is needed."""

    __call__: Callable[..., Any]  # in kernels alone

    def __init__(self, definition: Any) -> None:
        self.definition = definition

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


def address_of(kernel: Any, parameters: tuple[float, ...], arguments: tuple[str, ...]) -> int:
    """The address of a kernel ``f(at, *arguments)``, of `NUMBER` and `ARRAY`, which must not raise.

    ``at[0]`` is a named tuple of the type of ``parameters``, which callers need not know: a kernel
    that is handed addresses is compiled once for all functions, one that is handed functions once
    for each choice of them. A call by address costs nanoseconds.
    """
    found = library.loaded()
    if found is not None and (known := found.address(kernel, parameters)) is not None:
        return known
    if not library.has_numba():
        raise ImportError(library.WITHOUT_NUMBA)
    from numba import typeof, types

    kinds = {NUMBER: types.float64, ARRAY: types.float64[::1]}
    given = (types.CPointer(typeof(parameters)), *map(kinds.__getitem__, arguments))
    compiled: Any = getattr(kernel, "just_in_time", kernel)
    compiled.compile(given)
    made = compiled.overloads[given]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def caller(count: int) -> Any:
    """For kernels: ``call(address, at, arguments)``, of a function that returns so many numbers.

    The types of the tuple of arguments must be those that `address_of` was given.
    """

    @intrinsic
    def call(typing: Any, address: Any, at: Any, arguments: Any) -> Any:
        from numba import types
        from numba.core import cgutils

        number: Any = types.float64
        several = types.UniTuple(number, count)
        result = types.none if count == 0 else number if count == 1 else several

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            function, place, packed = values
            kinds = (types.voidptr, *arguments)
            kind = context.call_conv.get_function_type(result, kinds).as_pointer()
            given = [builder.inttoptr(place, cgutils.voidptr_t)]
            given += cgutils.unpack_tuple(builder, packed)
            called = builder.inttoptr(function, kind)
            return context.call_conv.call_function(builder, called, result, kinds, given)[1]

        return result(address, at, arguments), generate

    return call
