"""What all tests share: one BLAS thread, a generator, and how hypothesis runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from threadpoolctl import threadpool_limits

# what it remembers between runs stays out of the checkout
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "proxmargin-hypothesis")
# the same examples every time: a failure found here is a failure everywhere
settings.register_profile(
    "house",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("house")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread() -> Iterator[None]:
    """Tests run side by side; threads of small products would only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)
