"""Kernels, as Python calls them and as other kernels do.

Numba optimises a function together with all that it calls, and makes machine code of it, even
where only other functions call it, which contain it once more: of a chain of calls the last link is
compiled as many times as the chain is long. So a kernel has a twin for the calls of others. It is
typed and lowered and no more; the kernel that Python calls is optimised once, as a whole.

This takes the place of two private steps of Numba's. A version without them compiles as it always
does: more slowly, to the same code.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher
from numba.core.types import Dispatcher

__all__ = ["Kernel"]

ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of these variables begin
NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
STEPS = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
HAS_STEPS = all(hasattr(JITCodeLibrary, name) for name in STEPS)


class Kernel(CPUDispatcher):
    """A function that is compiled for the types of its arguments.

    Parameters
    ----------
    py_func : function
    locals : dict, optional
    targetoptions : dict
        Options of `numba.njit`.
    """

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        locals, targetoptions = dict(locals or {}), dict(targetoptions or {})
        super().__init__(py_func, locals, targetoptions)
        self.twin = CPUDispatcher(py_func, locals, {**targetoptions, **NO_WRAPPERS}, _Lowered)

    @property
    def _numba_type_(self) -> Any:
        """What a kernel finds under this name."""
        return Dispatcher(self.twin if HAS_STEPS else self)


class _Lowered(Compiler):
    """Numba's passes, without what they end with."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        if library is None:
            library = _Unoptimised(targetctx.codegen(), "linked")  # type: ignore[no-untyped-call]
        super().__init__(typingctx, targetctx, library, *rest)  # type: ignore[no-untyped-call]


class _Unoptimised(JITCodeLibrary):
    """Code that is only linked into other code, never run."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
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
