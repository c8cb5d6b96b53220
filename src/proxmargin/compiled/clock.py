"""A clock that stands still while kernels are compiled: what time limits are measured with.

Kernels are compiled on their first use, in the middle of a fit. That can take a minute, and says
nothing about the fit.
"""

from __future__ import annotations

import threading
from time import perf_counter


class _Compiling(threading.local):
    """How long this thread has compiled (`proxmargin.compiled.meter`), and when it began to."""

    seconds = 0.0
    since: float | None = None


compiling = _Compiling()


def clock() -> float:
    """Seconds of this thread without those in which it compiled kernels, loaded them from disk, or
    waited for another thread that did; like `time.perf_counter` from an arbitrary start.
    """
    return perf_counter() - compiling.seconds
