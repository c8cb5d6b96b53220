"""Calls of compiled functions by their addresses.

A kernel that is handed functions is compiled once for each choice of them. One that is handed the
addresses of functions, all of the same signature, is compiled once; a call costs nanoseconds, which
is nothing where each is a loop over samples.
"""

from __future__ import annotations

from typing import Any

from proxmargin.compiled import library
from proxmargin.compiled.cache import intrinsic

# types of arguments
NUMBER = "float64"
ARRAY = "float64[::1]"


def address_of(kernel: Any, parameters: tuple[float, ...], arguments: tuple[Any, ...]) -> int:
    """The address of a kernel ``f(at, *arguments)``, where ``at[0]`` is a tuple of parameters.

    Parameters
    ----------
    kernel : function compiled by `proxmargin.compiled.cache.njit`
        It must not raise: nobody would learn of it.
    parameters : named tuple of floats
        Its type, which callers need not know: to them `at` is an address.
    arguments : tuple of str
        `NUMBER` or `ARRAY`.
    """
    found = library.loaded()
    known = found.address(kernel, parameters) if found is not None else None
    if known is not None:
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
            place = builder.inttoptr(place, cgutils.voidptr_t)
            given = [place, *cgutils.unpack_tuple(builder, packed)]
            called = builder.inttoptr(function, kind)
            return context.call_conv.call_function(builder, called, result, kinds, given)[1]

        return result(address, at, arguments), generate

    return call
