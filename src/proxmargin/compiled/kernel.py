"""Kernels as Numba compiles them: what Python calls is optimised as a whole, once.

Numba optimises a function together with all that it calls, and makes machine code of it, even
where only other functions call it, which contain it once more: of a chain of calls the last link is
compiled as many times as the chain is long. Here callees (other kernels, and Numba's
implementations of built-in functions) are typed and lowered, and no more. That replaces private
steps of Numba's, of the versions `digest.NUMBA`.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.core.types import Dispatcher

from proxmargin.compiled import digest
from proxmargin.compiled.clock import standing_still

NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # for compiled callers only

logger = logging.getLogger("proxmargin")


class Lowered(JITCodeLibrary):
    """Code that is only linked into other code, never run."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@contextmanager
def callees_only_lowered(codegen: Any) -> Iterator[None]:
    """Optimise, of what is compiled now, only functions that Python can call."""
    usual = codegen.create_library, codegen.set_env

    def create_library(name: str, **more: Any) -> Any:
        options = ConfigStack.top_or_none()  # none for Numba's runtime, before any kernel
        lowered = options is not None and options.no_cpython_wrapper
        return Lowered(codegen, name) if lowered else usual[0](name, **more)

    def set_env(name: str, env: Any) -> None:
        if codegen._engine.is_symbol_defined(name):  # what is only lowered is not in memory
            usual[1](name, env)

    codegen.create_library, codegen.set_env = create_library, set_env
    try:
        yield
    finally:
        codegen.create_library, codegen.set_env = usual


class Kernel(CPUDispatcher):
    """A function that is compiled for the types of its arguments, with options of `numba.njit`."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
        locals, targetoptions = dict(locals or {}), dict(targetoptions or {})
        super().__init__(py_func, locals, targetoptions)
        self.twin = CPUDispatcher(py_func, locals, {**targetoptions, **NO_WRAPPERS})

    @property
    def _numba_type_(self) -> Any:
        """What a kernel finds under this name."""
        return Dispatcher(self.twin)

    def enable_caching(self) -> None:
        """Keep what is compiled where Numba keeps such things, if it can."""
        with suppress(RuntimeError):  # no folder that can be written
            self._cache = _Cache(self.py_func)

    def compile(self, sig: Any) -> Any:
        codegen = self.targetctx.codegen()  # type: ignore[attr-defined]
        with standing_still(), global_compiler_lock, callees_only_lowered(codegen):
            return super().compile(sig)


class _Cache(FunctionCache):
    """Numba's files, which hold good while no kernel of the package changes: one contains others.

    Kernels of a loss of the user's own are not kept, as nothing tells when its code changes.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = digest.of_sources()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context) if _are_ours(sig) else None
        if found is None:
            _say()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        if _are_ours(sig) and digest.of_sources() and not data.library.has_dynamic_globals:
            super().save_overload(sig, data)


def _are_ours(kinds: Any) -> bool:
    """Whether the code of all named tuples among these types is part of the digest of sources."""
    for kind in kinds:
        kind = kind.dtype if isinstance(kind, types.CPointer) else kind
        if issubclass(type(kind), types.BaseNamedTuple):  # the stubs lack its attributes
            named: Any = kind
            file = getattr(sys.modules[named.instance_class.__module__], "__file__", "")
            if Path(file) not in digest.sources() or not _are_ours(named.types):
                return False
    return True


@cache
def _say() -> None:
    logger.warning(
        "compiling kernels for their first use: some seconds, up to a minute for a family of "
        "models; every process does so for a loss of your own, and where neither this package nor "
        "NUMBA_CACHE_DIR is a folder that can be written; `python -m proxmargin.compiled.build` "
        "compiles all others, once and for all processes"
    )
