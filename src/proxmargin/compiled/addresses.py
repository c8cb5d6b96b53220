"""Calls of compiled functions by their addresses.

A kernel that is handed functions is compiled once for each choice of them. One that is handed the
addresses of functions, all of the same signature, is compiled once; a call costs nanoseconds, which
is nothing where each is a loop over samples.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

NUMBER = types.float64
ARRAY = types.float64[::1]


def address_of(kernel: Any, parameters: tuple[float, ...], arguments: tuple[Any, ...]) -> int:
    """The address of a kernel ``f(at, *arguments)``, where ``at[0]`` is a tuple of parameters.

    Parameters
    ----------
    kernel : function compiled by `proxmargin.compiled.cache.njit`
        It must not raise: nobody would learn of it.
    parameters : named tuple of floats
        Its type, which callers need not know: to them `at` is an address.
    arguments : tuple of Numba's types
    """
    kinds = (types.CPointer(typeof(parameters)), *arguments)
    kernel.compile(kinds)
    compiled = kernel.overloads[kinds]
    name = compiled.fndesc.llvm_cfunc_wrapper_name
    return int(compiled.library.get_pointer_to_function(name))


def caller(result: Any) -> Any:
    """For kernels: ``call(address, at, arguments)``, of a function that returns this type.

    The types of the tuple of arguments must be those that `address_of` was given.
    """

    @intrinsic
    def call(typing: Any, address: Any, at: Any, arguments: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            function, place, packed = values
            given = cgutils.unpack_tuple(builder, packed)
            pointer = ir.IntType(8).as_pointer()
            kinds = [pointer, *(each.type for each in given)]
            kind = ir.FunctionType(context.get_value_type(result), kinds)
            callee = builder.inttoptr(function, kind.as_pointer())
            return builder.call(callee, [builder.inttoptr(place, pointer), *given])

        return result(address, at, arguments), generate

    return call
