"""Kernels called by kernels and by Python, where Numba compiles them on first use."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from proxmargin.compiled import library
from proxmargin.compiled.cache import njit

numba = pytest.importorskip("numba")


class Data(NamedTuple):
    values: Any
    scale: float


@njit(nogil=True)
def _sum(data):  # type: ignore[no-untyped-def]
    if data.values.size == 0:
        raise ValueError("no values")
    total = 0.0
    for value in data.values:
        total += value
    return data.scale * total


@njit(nogil=True)
def mean(data):  # type: ignore[no-untyped-def]
    """With an array of its own, and another kernel."""
    whole = np.zeros(1)
    whole[0] = _sum(data)
    return whole / data.values.size


def test_a_kernel_can_be_called_by_python_and_by_kernels() -> None:
    for values in (np.arange(5.0), np.arange(5)):
        data = Data(values, 2.0)
        np.testing.assert_array_equal(mean(data), [4.0])
        assert _sum(data) == 20.0


def test_errors_in_kernels_of_kernels_are_raised() -> None:
    for called in (_sum, mean):
        with pytest.raises(ValueError, match="no values"):
            called(Data(np.zeros(0), 1.0))


@pytest.mark.slow
def test_functions_of_plain_numba_can_be_called_by_kernels_and_call_them() -> None:
    @numba.njit
    def risen(x):  # type: ignore[no-untyped-def]
        return x + 1.0

    @njit(nogil=True)
    def middle(x):  # type: ignore[no-untyped-def]
        return np.median(risen(x))

    @numba.njit
    def whole(x):  # type: ignore[no-untyped-def]
        return middle(x) + np.median(x)

    x = np.arange(3.0)
    assert middle(x) == 2.0
    np.testing.assert_array_equal(risen(x), x + 1.0)
    assert whole(x) == 3.0


def test_another_numba_compiles_nothing(monkeypatch) -> None:
    monkeypatch.setattr(library, "version", lambda name: "0.1.0")
    assert not library.has_numba.__wrapped__()
