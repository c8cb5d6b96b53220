"""Kernels, as Python calls them and as other kernels do.

Numba optimises a function together with all that it calls, and makes machine code of it, even
where only other functions call it, which contain it once more: of a chain of calls the last link is
compiled as many times as the chain is long. So a kernel has a twin for the calls of others, and
while a kernel is compiled, its callees (twins, and Numba's implementations of built-in functions)
are typed and lowered and no more; the kernel that Python calls is optimised once, as a whole.

This takes the place of private steps of Numba's. They are tried once in a process that compiles,
on a small kernel (`private_steps_work`). A version in which they act otherwise compiles as it
always does: more slowly, to the same code.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.types import Dispatcher

ENVIRONMENT = "_ZN08NumbaEnv"  # how the names of these variables begin
NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # for compiled callers only
TRIAL = {"nopython": True, "_nrt": False}  # compiles in a tenth of a second

logger = logging.getLogger("proxmargin")


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
        return Dispatcher(self.twin if private_steps_work() else self)

    def compile(self, sig: Any) -> Any:
        target: Any = self.targetctx
        with global_compiler_lock, _without_collector(), _callees_only_lowered(target.codegen()):
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
        options = _Options(flags) if private_steps_work() else flags
        super().__init__(typing, target, library, args, result, options, local)


@contextmanager
def _without_collector() -> Iterator[None]:
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
def _callees_only_lowered(codegen: Any) -> Iterator[None]:
    """Optimise, of what is compiled now, only functions that Python can call."""
    make = codegen.create_library

    def library(name: str, **options: Any) -> Any:
        if _Trial.works:  # tried by now, unless this is Numba's runtime before any kernel
            function = ConfigStack.top_or_none()
            if function is not None and function.no_cpython_wrapper:
                return _Unoptimised(codegen, name)
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


class _Trial:
    """The outcome of `private_steps_work`; None until the first kernel is compiled."""

    works: bool | None = None


def private_steps_work() -> bool:
    """Whether this Numba takes the private steps as assumed, tried on a kernel that calls another.

    Called while a kernel is compiled, under Numba's lock.
    """
    if _Trial.works is None:
        _Trial.works = True  # for the kernels of the trial
        try:
            _Trial.works = _trial_succeeds()
        except Exception:
            _Trial.works = False
        if not _Trial.works:
            logger.info("this version of Numba compiles kernels more slowly")
    return _Trial.works


def _trial_succeeds() -> bool:
    """Whether callee and caller compute and raise, and only the caller is machine code."""

    def reciprocal(x):
        if x == 0.0:
            raise ValueError("zero has no reciprocal")
        return 1.0 / x

    called = Kernel(reciprocal, targetoptions=TRIAL)

    def total(x, y):
        return called(x) + called(y)

    caller = Kernel(total, targetoptions=TRIAL)
    if caller(0.5, 0.25) != 6.0:
        return False
    try:
        caller(1.0, 0.0)
    except ValueError:
        callees: Any = called.twin.overloads.values()
        return bool(callees) and all(isinstance(each.library, _Unoptimised) for each in callees)
    return False
