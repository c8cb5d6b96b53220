"""Exponentials of tiles, against those of extended precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from proxmargin.compiled.products.gaussian import gaussian


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [1e-3, 1.0, 30.0, 80.0])
def test_it_is_within_two_ulps_of_the_exponential(dtype: Any, most: float) -> None:
    distances = (np.random.default_rng(0).random((7, 1003)) * 2.0 * most).astype(dtype)
    values = distances.copy()
    gaussian(values, 0.5)
    exact = np.exp(-0.5 * distances.astype(np.longdouble))
    assert values.dtype == dtype
    assert (np.abs(values - exact) <= 2.0 * np.finfo(dtype).eps * exact).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_samples_have_zero_and_negative_distances_are_rounding(dtype: Any) -> None:
    tile = np.array([[0.0, -1e-9, 1e4, 1e30, np.inf]], dtype)
    gaussian(tile, 1.0)
    np.testing.assert_array_equal(tile, [[1.0, dtype(1.0 - 1e-9), 0.0, 0.0, 0.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_not_a_number_stays_so(dtype: Any) -> None:
    tile = np.array([[np.nan, 1.0]], dtype)
    gaussian(tile, 1.0)
    assert np.isnan(tile[0, 0])
    assert not np.isnan(tile[0, 1])
