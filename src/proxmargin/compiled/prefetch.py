"""Loads ahead of use, for arrays that are read in random order."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

# arguments of LLVM's intrinsic
READ = 0  # not a write
NEAR = 3  # into all caches
DATA = 1  # not instructions


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line that holds the entry ``index`` of an array with one axis.

    Nothing waits for it, and an index out of bounds does no harm.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, number = signature.args
        start = context.make_array(kind)(context, builder, arguments[0]).data
        at = context.cast(builder, arguments[1], number, types.intp)
        line = builder.bitcast(builder.gep(start, [at]), cgutils.voidptr_t)
        flag = ir.IntType(32)
        described = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, flag, flag, flag])
        called = cgutils.get_or_insert_function(builder.module, described, "llvm.prefetch.p0i8")
        builder.call(called, [line, flag(READ), flag(NEAR), flag(DATA)])
        return context.get_dummy_value()

    return types.none(array, index), codegen
