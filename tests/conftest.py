"""What all tests share: no network, one BLAS thread, a generator, and how hypothesis runs."""

from __future__ import annotations

import gc
import logging
import signal
import tempfile
from collections.abc import Iterator, Sequence
from itertools import combinations, groupby
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from threadpoolctl import threadpool_limits

from proxmargin.compiled import library
from tests.compiled.signatures import Lacking
from tests.offline import forbid_to_children

# a job in a shell's background has it ignored, and tests of interruption would run to their end
signal.signal(signal.SIGINT, signal.default_int_handler)
forbid_to_children()  # importing it has forbidden it to this process
# what it remembers between runs stays out of the checkout
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "proxmargin-hypothesis")
# the same examples every time: a failure found here is a failure everywhere
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("house")


kernels = library.loaded()
lacking = Lacking(kernels) if kernels is not None and kernels.is_complete else None
if lacking:
    library.logger.addHandler(lacking)
    library.logger.setLevel(logging.DEBUG)


@pytest.fixture(autouse=True)
def every_call_of_a_kernel_is_in_the_list() -> Iterator[None]:
    """What the library lacks would be compiled while a user waits, or not at all."""
    yield
    if lacking and lacking.lines:
        lines = sorted(lacking.lines)
        lacking.lines.clear()
        pytest.fail("add to src/proxmargin/compiled/signatures.txt:\n" + "\n".join(lines))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, and keep it from what is collected.

    All of it lives to the end of the session: looking through it again and again would take a
    quarter of the time of the tests.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Of a test marked `sampled(k)` or `pairwise` some cases are quick and the others are slow."""
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(group)
        sampled = cases[0].get_closest_marker("sampled")
        quick = set(cases)
        if sampled:
            # drawn by their names, so that no parameter is always left out; the first at least
            drawn = (c for c in cases if crc32(c.nodeid.encode()) % sampled.args[0] == 0)
            quick = {cases[0], *drawn}
        elif cases[0].get_closest_marker("pairwise"):
            quick = covering_pairs(cases)
        for case in cases:
            if case not in quick:
                case.add_marker(pytest.mark.slow)


def covering_pairs(cases: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Enough cases for each pair of values of two parameters to occur in one of them."""
    found, met = set(), set()
    drawn = sorted(cases, key=lambda case: crc32(case.nodeid.encode()))
    # the names of its values, one a decorator; pytest has no public list of them
    values = {case: list(enumerate(case.callspec._idlist)) for case in drawn}
    most = max(len(parameters) for parameters in values.values())
    for least in range(most * (most - 1) // 2, 0, -1):  # new pairs in a case
        for case in drawn:
            pairs = set(combinations(values[case], 2))
            if len(pairs - met) >= least:
                found.add(case)
                met |= pairs
    return found


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """Tests run side by side; threads of small products would only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
