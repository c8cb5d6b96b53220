"""How long each thread compiles kernels, for `proxmargin.compiled.clock`."""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import Any

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

from proxmargin.compiled.clock import compiling


class _Meter(event.Listener):
    """Times the lock that Numba holds to compile and to load, by its outermost holder."""

    def on_start(self, event: Any) -> None:
        if not _holds():
            compiling.since = perf_counter()

    def on_end(self, event: Any) -> None:
        if compiling.since is not None and not _holds():
            compiling.seconds += perf_counter() - compiling.since
            compiling.since = None


def _holds() -> bool:
    """Whether this thread has the lock."""
    return bool(global_compiler_lock.is_locked())


@cache
def listen() -> None:
    """Have Numba say when it takes the lock and when it releases it."""
    event.register("numba:compiler_lock", _Meter())
