"""What all tests share: no network, one BLAS thread, a generator, and how hypothesis runs."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from threadpoolctl import threadpool_limits

from tests.offline import forbid_to_children

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
    """Of a test marked `sampled(k)` one case in k is quick and the others are slow tests.

    Which ones is drawn by their names, so that no parameter is always left out; one at least.
    """
    quick = set()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        name = item.nodeid.partition("[")[0]
        if sampled and name in quick and crc32(item.nodeid.encode()) % sampled.args[0]:
            item.add_marker(pytest.mark.slow)
        quick.add(name)


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """Tests run side by side; threads of small products would only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
