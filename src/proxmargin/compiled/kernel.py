"""Kernels as Numba compiles them on their first use, where no library has them.

A kernel has a twin for the calls of other kernels, whose code is not optimised by itself
(`proxmargin.compiled.lowering`).
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.core.types import Dispatcher

from proxmargin.compiled import digest, signatures
from proxmargin.compiled.clock import standing_still
from proxmargin.compiled.lowering import Pipeline, Unoptimised, libraries, without_collector

NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # for compiled callers only

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
        super().__init__(py_func, locals, targetoptions, Pipeline)
        linked = {**targetoptions, **NO_WRAPPERS}
        self.twin = CPUDispatcher(py_func, locals, linked, Pipeline)

    @property
    def _numba_type_(self) -> Any:
        """What a kernel finds under this name."""
        return Dispatcher(self.twin)

    def enable_caching(self) -> None:
        """Keep what is compiled where Numba keeps such things; in memory if it cannot."""
        try:
            self._cache = _Cache(self.py_func)
        except RuntimeError:  # no folder that can be written
            _say("every process does so again, as no folder can be written: set NUMBA_CACHE_DIR")

    def compile(self, sig: Any) -> Any:
        codegen = self.targetctx.codegen()  # type: ignore[attr-defined]
        with (
            standing_still(),
            global_compiler_lock,
            without_collector(),
            _callees_only_lowered(codegen),
        ):
            return super().compile(sig)


class _Cache(FunctionCache):
    """Numba's files, which hold good while no kernel of the package changes: one contains others.

    Kernels of a loss of the user's own are not kept, as nothing tells when its code changes.
    """

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = digest.of_sources()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not _are_ours(sig):
            _say("every process does so for a loss of your own")
            return None
        found = super().load_overload(sig, target_context)
        if found is None:
            _say("`python -m proxmargin.compiled.build` compiles all, once and for all processes")
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
            if not (signatures.is_ours(named.instance_class) and _are_ours(named.types)):
                return False
    return True


@cache
def _say(then: str) -> None:
    logger.warning(
        "compiling kernels for their first use: some seconds, up to a minute for a family of "
        "models; %s",
        then,
    )


def _callees_only_lowered(codegen: Any) -> Any:
    """Optimise, of what is compiled now, only functions that Python can call."""
    usual = codegen.create_library

    def library(options: Any, name: str, **more: Any) -> Any:
        if options is not None and options.no_cpython_wrapper:
            return Unoptimised(codegen, name)
        return usual(name, **more)

    return libraries(codegen, library)
