"""Arrays on small pages, against those of NumPy."""

from __future__ import annotations

import os
import pickle
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from proxmargin.runtime import memory
from proxmargin.runtime.memory import on_small_pages


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LEAST_MAPPED", 1)


@pytest.mark.parametrize("shape", [(300, 400), (7,), (0, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_an_array_like_any_other(shape: tuple[int, ...], dtype: Any) -> None:
    array = on_small_pages(shape, dtype)
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.flags.writeable
    assert array.flags.c_contiguous
    array[...] = 3.0
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)), np.full(shape, 3.0))


def test_what_does_not_fit_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        on_small_pages((1 << 55,), np.float64)


def _write(array: NDArray[Any]) -> None:
    array[:] = 1.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_its_own_copy() -> None:
    array = on_small_pages((1000,), np.float64)
    child = get_context("fork").Process(target=_write, args=(array,))
    child.start()
    child.join()
    assert child.exitcode == 0
    np.testing.assert_array_equal(array, np.zeros(1000))
