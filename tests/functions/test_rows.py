"""Reductions of rows: those of NumPy, for one column and for several."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.functions.rows import first_of_equals, largest_of_rows, live_rows, sums_of_rows


@pytest.mark.parametrize("columns", [1, 3])
def test_reductions_are_those_of_numpy(columns, rng) -> None:
    values = rng.standard_normal((9, columns)) * (rng.random((9, columns)) < 0.5)
    np.testing.assert_array_equal(live_rows(values), np.flatnonzero(values.any(axis=1)))
    np.testing.assert_array_equal(sums_of_rows(values), values.sum(axis=1))
    np.testing.assert_array_equal(largest_of_rows(values), values.max(axis=1))
    assert live_rows(values[:0]).size == sums_of_rows(values[:0]).size == 0


@pytest.mark.parametrize("form", [np.array, np.asfortranarray, sp.csr_array])
def test_equal_rows_are_found_and_rows_nearly_equal_are_not(form, rng) -> None:
    some = rng.standard_normal((5, 3)) * (rng.random((5, 3)) < 0.7)
    some[4] = np.nextafter(some[0], 9.0)
    rows = some[[0, 1, 0, 4, 2, 1, 3]]
    rows[2] *= -1.0 * np.where(rows[2] == 0, 1.0, -1.0)  # zeros with another sign
    np.testing.assert_array_equal(first_of_equals(form(rows)), [0, 1, 0, 3, 4, 1, 6])
