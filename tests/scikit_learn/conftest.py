"""The fixture and the marks that scikit-learn's tests use."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thread_unsafe: of scikit-learn's tests")
    config.addinivalue_line("markers", "allow_network: of scikit-learn's tests")


@pytest.fixture
def global_random_seed() -> int:
    return 42
