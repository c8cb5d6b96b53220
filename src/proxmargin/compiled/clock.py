"""Clocks that stand still while kernels are compiled: what time limits are measured with.

Kernels are compiled on their first use, in the middle of a fit. That can take a minute, and says
nothing about the fit.
"""

from __future__ import annotations

import threading
from time import perf_counter, thread_time
from typing import Any

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

__all__ = ["clock", "cpu_clock"]


def clock() -> float:
    """Seconds of this thread without those in which it compiled kernels, loaded them from disk, or
    waited for another thread that did; like `time.perf_counter` from an arbitrary start.
    """
    return perf_counter() - _compiling.seconds


def cpu_clock() -> float:
    """CPU seconds of this thread without those in which it compiled kernels or loaded them."""
    return thread_time() - _compiling.cpu_seconds


class _Compiling(threading.local):
    """How long this thread has compiled, and when it began to."""

    seconds = 0.0
    cpu_seconds = 0.0
    since: tuple[float, float] | None = None


class _Meter(event.Listener):
    """Times the lock that Numba holds to compile and to load, by its outermost holder."""

    def on_start(self, event: Any) -> None:
        if not _holds():
            _compiling.since = perf_counter(), thread_time()

    def on_end(self, event: Any) -> None:
        if _compiling.since is not None and not _holds():
            wall, cpu = _compiling.since
            _compiling.seconds += perf_counter() - wall
            _compiling.cpu_seconds += thread_time() - cpu
            _compiling.since = None


def _holds() -> bool:
    """Whether this thread has the lock."""
    return bool(global_compiler_lock.is_locked())


_compiling = _Compiling()
event.register("numba:compiler_lock", _Meter())
