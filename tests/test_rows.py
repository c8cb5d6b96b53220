"""Reductions of rows: those of NumPy, for one column and for several."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.rows import largest_of_rows, live_rows, sums_of_rows


@pytest.mark.parametrize("columns", [1, 3])
def test_reductions_are_those_of_numpy(columns, rng) -> None:
    values = rng.standard_normal((9, columns)) * (rng.random((9, columns)) < 0.5)
    np.testing.assert_array_equal(live_rows(values), np.flatnonzero(values.any(axis=1)))
    np.testing.assert_array_equal(sums_of_rows(values), values.sum(axis=1))
    np.testing.assert_array_equal(largest_of_rows(values), values.max(axis=1))
    assert live_rows(values[:0]).size == sums_of_rows(values[:0]).size == 0
