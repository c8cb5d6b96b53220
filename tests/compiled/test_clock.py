"""The clock of time limits stands still for a thread that compiles, and goes on for the others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from time import perf_counter, sleep

import numpy as np
import pytest

from proxmargin.compiled import cache
from proxmargin.compiled.clock import clock, compiling
from proxmargin.compiled.products.compensated import add
from proxmargin.solvers.choice.names import SOLVERS
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Status
from proxmargin.solvers.loop.solver import Stop
from tests.cases import hinge_problem

COLD_FIT = """
import warnings
from proxmargin import HuberizedSVC
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
X, y = load_breast_cancer(return_X_y=True)
warnings.simplefilter("ignore")
fitted = HuberizedSVC(alpha=0.01, solver="gcd", time_limit=1).fit(scale(X), y).certificate_
print(fitted.seconds, fitted.relative_gap)
"""


def elapsed(task: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a task by the wall and by the clock."""
    wall, start = perf_counter(), clock()
    task()
    return perf_counter() - wall, clock() - start


@contextmanager
def standing_still() -> Iterator[None]:
    """The block in which a thread compiles."""
    compiling.begin()
    yield
    compiling.end()


def compile_for(seconds: float) -> None:
    """As a kernel within a kernel does."""
    with standing_still(), standing_still():
        sleep(seconds)


def test_the_clock_goes_on_while_nothing_is_compiled() -> None:
    assert elapsed(lambda: sleep(0.02))[1] >= 0.02


def test_the_clock_stands_still_while_a_kernel_is_compiled() -> None:
    kernel = cache.just_in_time(add.py_func, {"nogil": True})
    wall, seconds = elapsed(lambda: kernel(1.0, 0.0, 2.0))
    assert seconds < 0.5 * wall


def test_kernels_within_kernels_count_once() -> None:
    wall, seconds = elapsed(lambda: compile_for(0.1))
    assert 0.0 <= seconds < 0.5 * wall


def test_a_kernel_that_cannot_be_compiled_leaves_the_clock_right() -> None:
    kernel = cache.just_in_time(add.py_func, {"nogil": True})
    with pytest.raises(Exception, match="No implementation of function"):
        kernel("a", None, 2.0)
    assert elapsed(lambda: sleep(0.02))[1] >= 0.02


def test_who_waits_for_another_threads_kernel_does_not_pay_for_it() -> None:
    lock = pytest.importorskip("numba.core.compiler_lock").global_compiler_lock
    kernel, begun = cache.just_in_time(add.py_func, {"nogil": True}), Event()
    kernel(1.0, 0.0, 2.0)

    def compile_long() -> None:
        with lock:
            begun.set()
            sleep(0.1)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(compile_long)
        begun.wait()
        wall, seconds = elapsed(lambda: kernel(1, 0.0, 2.0))
        other.result()
    assert wall > 0.05
    assert seconds < 0.5 * wall


def test_the_clock_of_another_thread_goes_on() -> None:
    with ThreadPoolExecutor(1) as pool, standing_still():
        assert pool.submit(lambda: elapsed(lambda: sleep(0.02))).result()[1] >= 0.02


@pytest.mark.parametrize(("task", "status"), [
    (compile_for, Status.CONVERGED), (sleep, Status.TIME_LIMIT),
])  # fmt: skip
def test_a_run_whose_kernels_are_compiled_has_its_time_all_the_same(
    task: Callable[[float], None], status: Status, rng: np.random.Generator
) -> None:
    problem, stop = hinge_problem(rng), Stop(tol=1e-6, time_limit=0.5)
    minimize(problem, SOLVERS["interior-point"]())  # its kernels are there
    slept: list[float] = []

    def work(report: object) -> None:
        if not slept:
            slept.append(0.6)
            task(0.6)

    solution = minimize(problem, SOLVERS["interior-point"](), stop=stop, callbacks=[work])
    assert solution.status is status
    assert solution.certificate.seconds > 0.6


@pytest.mark.slow
def test_a_first_fit_uses_its_time_limit_for_the_fit() -> None:
    settings = {**os.environ, "PROXMARGIN_KERNELS": "numba"}
    printed = subprocess.run(
        [sys.executable, "-c", COLD_FIT], env=settings, check=True, capture_output=True, text=True
    ).stdout
    seconds, gap = map(float, printed.split())
    assert seconds > 1.0  # there was something to compile
    assert gap <= 1e-6


def test_only_kernels_are_said_to_be_compiled(caplog) -> None:
    numba = pytest.importorskip("numba")

    def twice(x: float) -> float:
        return 2.0 * x

    cache._say.cache_clear()
    kernel = cache.just_in_time(twice, {})
    assert kernel(1.0) == 2.0
    assert numba.njit(lambda x: x)(1.0) == 1.0
    twice.__module__ = None  # as of what `exec` makes for a class of another package
    assert cache.just_in_time(twice, {})(1.0) == 2.0
    assert not caplog.messages
    twice.__module__ = "proxmargin.compiled.twice"
    assert cache.just_in_time(twice, {})(1.0) == 2.0
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("compiling kernels")


def test_an_end_without_a_beginning_counts_nothing() -> None:
    compiling.end()
    assert compiling.depth == 0
    before = compiling.seconds
    compiling.begin()
    sleep(0.01)
    compiling.end()
    assert compiling.seconds >= before + 0.01
