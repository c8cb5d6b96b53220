"""A clock that stands still while kernels are compiled: what time limits are measured with.

Kernels that no library has are compiled on their first use, in the middle of a fit. That can take a
minute, and says nothing about the fit.
"""

from __future__ import annotations

import threading
from time import perf_counter


class _Compiling(threading.local):
    """How long this thread has compiled kernels, or waited for another thread that did."""

    seconds = 0.0
    depth = 0
    since = 0.0

    def begin(self) -> None:
        self.since = self.since if self.depth else perf_counter()
        self.depth += 1

    def end(self) -> None:
        if not self.depth:  # it began before anybody listened
            return
        self.depth -= 1
        self.seconds += 0.0 if self.depth else perf_counter() - self.since


compiling = _Compiling()


def clock() -> float:
    """Seconds of this thread without those; like `time.perf_counter` from an arbitrary start."""
    return perf_counter() - compiling.seconds
