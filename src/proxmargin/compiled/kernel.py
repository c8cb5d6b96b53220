"""Kernels, as Python calls them and as other kernels do.

Numba optimises a function together with all that it calls, and makes machine code of it, even
where only other functions call it, which contain it once more: of a chain of calls the last link is
compiled as many times as the chain is long. So a kernel has a twin for the calls of others, and
while a kernel is compiled, its callees (twins, and Numba's implementations of built-in functions)
are typed and lowered and no more; the kernel that Python calls is optimised once, as a whole.

This takes the place of private steps of Numba's. A version without them compiles as it always
does: more slowly, to the same code.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir
from numba.core.codegen import Codegen, JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.types import Dispatcher

__all__ = ["NO_WRAPPERS", "Kernel"]

ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of these variables begin
NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # for compiled callers only
STEPS = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals")
HAS_STEPS = hasattr(Codegen, "create_library") and all(
    hasattr(JITCodeLibrary, name) for name in STEPS
)


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
        super().__init__(py_func, locals, targetoptions, _Pipeline)
        linked = {**targetoptions, **NO_WRAPPERS}
        self.twin = CPUDispatcher(py_func, locals, linked, _Pipeline)

    @property
    def _numba_type_(self) -> Any:
        """What a kernel finds under this name."""
        return Dispatcher(self.twin if HAS_STEPS else self)

    def compile(self, sig: Any) -> Any:
        if not HAS_STEPS:
            return super().compile(sig)
        target: Any = self.targetctx
        with global_compiler_lock, _callees_only_lowered(target.codegen()):
            return super().compile(sig)


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


class _Pipeline(Compiler):
    """Numba's passes, with these options."""

    def __init__(
        self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, local: Any
    ) -> None:
        options = _Options(flags)  # type: ignore[no-untyped-call]
        super().__init__(typing, target, library, args, result, options, local)  # type: ignore[no-untyped-call]


@contextmanager
def _callees_only_lowered(codegen: Any) -> Iterator[None]:
    """Optimise, of what is compiled now, only functions that Python can call."""
    make = codegen.create_library

    def library(name: str, **options: Any) -> Any:
        function = ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
        if function is not None and function.no_cpython_wrapper:
            return _Unoptimised(codegen, name)  # type: ignore[no-untyped-call]
        return make(name, **options)

    codegen.create_library = library
    try:
        yield
    finally:
        codegen.create_library = make


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
