"""Numba's compiler, where functions that kernels call are translated and no more.

Numba optimises a function together with all that it calls, and makes machine code of it, even
where only other functions call it, which contain it once more: of a chain of calls the last link is
compiled as many times as the chain is long. Here callees (other kernels, and Numba's
implementations of built-in functions) are typed and lowered; a kernel that Python calls is
optimised once, as a whole. That replaces private steps of Numba's, of the versions `digest.NUMBA`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.targetconfig import ConfigStack

ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of these variables begin


class _Options(Flags):
    """Options of a function, compared as they are set.

    They are part of the keys by which Numba finds implementations of functions. It would compare
    all that there are, set or not, which is a fifth of the time of compilation.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Options) and bool(self._values == other._values)


class Pipeline(Compiler):
    """Numba's passes, with these options."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any
    ) -> None:
        super().__init__(typing, target, library, args, result, _Options(flags), local)


@contextmanager
def without_collector() -> Iterator[None]:
    """Compilation makes millions of objects that live to its end: collections find nothing and
    take a seventh of its time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def libraries(codegen: Any, of: Any) -> Iterator[None]:
    """Have Numba put code into ``of(options, name, **more)``: the options of the function that is
    compiled; None for Numba's runtime, before any kernel."""
    usual = codegen.create_library
    codegen.create_library = lambda name, **more: of(ConfigStack.top_or_none(), name, **more)
    try:
        yield
    finally:
        codegen.create_library = usual


class Unoptimised(JITCodeLibrary):
    """Code that is only linked into other code, never run."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        engine: Any = self._codegen._engine
        engine.add_module(self._environments())
        self._finalized = True

    def _environments(self) -> Any:
        """The one thing that Numba sets in memory: pointers to the globals of functions."""
        module, pointer = ir.Module(), ir.IntType(8).as_pointer()
        for variable in self._final_module.global_variables:
            if variable.name.startswith(ENVIRONMENT):
                place = ir.GlobalVariable(module, pointer, variable.name)
                place.linkage, place.initializer = "common", ir.Constant(pointer, None)
        parsed = binding.parse_assembly(str(module))
        parsed.data_layout = self._codegen._data_layout
        return parsed
