"""Threads of fits, a cluster that joblib reaches, and the measured speed of BLAS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
import threadpoolctl
from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

from proxmargin.compiled.clock import clock

# of a product, up to which a second thread gains nothing on an idle machine; on a busy one BLAS
# waits for it in a loop, and fits take several times as long
ONE_THREAD_BYTES = 32_000_000


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def _blas() -> list[object]:
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
            needless = nbytes >= ONE_THREAD_BYTES or (
                # asking is faster than setting the limit
                self._running == 0 and {1}.issuperset(map(attrgetter("num_threads"), _blas()))
            )
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


T = TypeVar("T")
R = TypeVar("R")

LARGE = 1 << 20  # bytes; joblib sends what has more than a thousand by itself


class Carried(Generic[T]):
    """Data for many tasks, which joblib's Dask backend sends once: it asks Dask for the size of
    arguments, and what is inside of other objects would be sent with every task."""

    def __init__(self, value: T) -> None:
        self.value = value

    def __sizeof__(self) -> int:
        return LARGE


def is_on_cluster() -> bool:
    """Whether joblib has been told to use Dask, outside of a task of Dask itself. A task runs its
    own fits one after the other: there are tasks for the other workers already."""
    return _has_dask_backend() and not _is_task()


def threads_here(n_jobs: int | None) -> int:
    """Threads of this process for ``n_jobs``: of a task of Dask one, as its workers have more."""
    if not _has_dask_backend():
        return int(effective_n_jobs(n_jobs))
    return 1 if _is_task() or n_jobs is None else max(1, n_jobs)


def on_cluster(
    function: Callable[[T, Any], R], data: T, items: Iterable[object], *, ordered: bool
) -> Iterator[R]:
    """``function(data, item)`` for all items, on the workers; the results as they arrive. ``data``:
    sent to the workers once. ``ordered``: in the order of the items."""
    parallel = Parallel(n_jobs=-1, return_as="generator" if ordered else "generator_unordered")
    carried = Carried(data)
    results: Iterator[R] = parallel(delayed(_called)(function, carried, each) for each in items)
    return results


def _called(function: Callable[[T, Any], R], data: Carried[T], item: object) -> R:
    return function(data.value, item)


def _has_dask_backend() -> bool:
    backend, _ = get_active_backend()
    return type(backend).__name__ == "DaskDistributedBackend"


def _is_task() -> bool:
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True


TRIAL_SIDE = 256  # of the matrices whose product is timed: some milliseconds in all
TRIALS = 3  # repetitions, of which the median counts
STEP_SHARE = 0.2  # of the remaining time that a step may take, unless stated otherwise
SPARSE_COST = 8.0  # time of an operation on sparse rows, over that in a dense product
EIGEN_COST = 10.0  # time of an eigendecomposition, over that of a dense product of the same size


def operations_in(seconds: float) -> float:
    """Multiply-adds of dense products that take ``seconds``, which may be infinite."""
    return seconds * _per_second() if np.isfinite(seconds) else np.inf


def affordable(operations: float, deadline: float, share: float = STEP_SHARE) -> bool:
    """Whether that many multiply-adds take at most a share, in (0, 1], of the time left until the
    deadline on the clock of `proxmargin.compiled.clock`."""
    if not np.isfinite(deadline):
        return True
    return operations <= operations_in(share * max(deadline - clock(), 0.0))


def gram_work(rows: int, columns: int, density: float = 1.0) -> float:
    """Operations of the inner products of columns; dense data need one triangle only."""
    share = 0.5 if density == 1.0 else SPARSE_COST * density**2
    return share * rows * float(columns) ** 2


def factor_work(side: int) -> float:
    """Operations of a Cholesky factorisation, doubled as it runs at half the speed of products."""
    return float(side) ** 3 / 3.0


def eigen_work(side: int) -> float:
    """Operations of eigenvalues and eigenvectors of a symmetric matrix."""
    return EIGEN_COST * float(side) ** 3


@cache
def _per_second() -> float:
    """Multiply-adds per second of a dense product, the median of the trials."""
    matrix = np.ones((TRIAL_SIDE, TRIAL_SIDE))
    times = []
    for _ in range(TRIALS):
        started = clock()
        matrix @ matrix
        times.append(clock() - started)
    return float(TRIAL_SIDE**3 / np.median(times))
