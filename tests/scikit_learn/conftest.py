"""The fixtures and the marks that scikit-learn's tests use, and which cases have to differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from types import ModuleType

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "thread_unsafe: of scikit-learn's tests")
    config.addinivalue_line("markers", "allow_network: of scikit-learn's tests")
    config.addinivalue_line("markers", "differs(cases, reason): the cases it names must fail")


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """A case that differs by design and passes after all fails the suite."""
    for item in items:
        for mark in item.iter_markers("differs"):
            cases, reason = mark.args
            if re.search(cases, item.name.partition("[")[2].removesuffix("]")):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture
def global_random_seed() -> int:
    return 42


@pytest.fixture
def pyplot() -> Iterator[ModuleType]:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")
