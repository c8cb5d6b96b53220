"""A single BLAS thread for fits to little data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import threadpoolctl
from threadpoolctl import ThreadpoolController

__all__ = ["quiet_threads"]

# of a product, up to which a second thread gains nothing on an idle machine; on a busy one BLAS
# waits for it in a loop, and fits take several times as long
ONE_THREAD_BYTES = 32_000_000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def _is_quiet() -> bool:
    """Whether BLAS has one thread already: asking is faster than setting the limit."""
    return all(each.num_threads == 1 for each in _blas())


@cache
def _blas() -> list[Any]:
    return list(_controller().select(user_api="blas").lib_controllers)


class _QuietThreads:
    """Limits BLAS to one thread while fits to little data run; they are counted."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running = 0
        self._limiter: Any = None

    @staticmethod
    def _hand_over() -> None:
        """Let this thread set OpenBLAS's limit, which recent threadpoolctl grants to one only."""
        controller = getattr(threadpoolctl, "OpenBLASController", None)
        clear = getattr(controller, "clear_controlling_thread", None)
        if clear is not None:
            clear(force=True)

    @contextmanager
    def __call__(self, nbytes: int) -> Iterator[None]:
        with self._lock:
            needless = nbytes >= ONE_THREAD_BYTES or (self._running == 0 and _is_quiet())
            if not needless:
                if self._running == 0:
                    self._hand_over()
                    self._limiter = _controller().limit(limits=1, user_api="blas")
                self._running += 1
        if needless:
            yield
            return
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0:  # perhaps in another thread than the one that set the limit
                    self._hand_over()
                    self._limiter.restore_original_limits()
                    self._hand_over()


quiet_threads = _QuietThreads()
