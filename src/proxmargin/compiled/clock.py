"""A clock that stands still while kernels are compiled: what time limits are measured with.

Without a library kernels are compiled on their first use, in the middle of a fit. That can take a
minute, and says nothing about the fit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class _Compiling(threading.local):
    """How long this thread has compiled, and when it began to."""

    seconds = 0.0
    since: float | None = None


compiling = _Compiling()


def clock() -> float:
    """Seconds of this thread without those in which it compiled kernels, loaded them from disk, or
    waited for another thread that did; like `time.perf_counter` from an arbitrary start.
    """
    return perf_counter() - compiling.seconds


@contextmanager
def standing_still() -> Iterator[None]:
    """The block in which a thread compiles; blocks within blocks count once."""
    if compiling.since is not None:
        yield
        return
    compiling.since = perf_counter()
    try:
        yield
    finally:
        compiling.seconds += perf_counter() - compiling.since
        compiling.since = None
