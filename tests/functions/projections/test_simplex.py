"""Projections onto simplices and transportation polytopes, against their optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proxmargin.functions.projections import (
    column_shift,
    simplex_rows,
    transport,
    transport_rounded,
)

values = arrays(float, (4, 6), elements=st.floats(-1e6, 1e6) | st.floats(-2.0, 2.0))


def by_sorting(row: np.ndarray, size: float) -> np.ndarray:
    """The textbook formula."""
    ordered = np.sort(row)[::-1]
    levels = (np.cumsum(ordered) - size) / np.arange(1, row.size + 1)
    count = int(np.flatnonzero(ordered > levels)[-1]) + 1
    return np.maximum(row - levels[count - 1], 0.0)


@given(rows=values, size=st.floats(1e-3, 1e3))
def test_rows_are_those_of_the_sorting_formula(rows: np.ndarray, size: float) -> None:
    projected = simplex_rows(rows, size)
    assert np.all(projected >= 0)
    np.testing.assert_allclose(projected.sum(axis=1), size, rtol=1e-14)
    for row, found in zip(rows, projected, strict=True):
        scale = np.abs(row).max() + size
        np.testing.assert_allclose(found, by_sorting(row, size), atol=1e-14 * scale)


@pytest.mark.parametrize("classes", [1, 2, 3, 26, 200])
def test_many_classes_ties_and_sizes_of_their_own(classes: int, rng) -> None:
    rows = np.round(3 * rng.standard_normal((50, classes)), 1)
    sizes = rng.uniform(0.0, 2.0, 50) * (np.arange(50) % 7 > 0)
    projected = simplex_rows(rows, sizes)
    np.testing.assert_allclose(projected.sum(axis=1), sizes, rtol=1e-14)
    assert not np.any(projected[sizes == 0])
    for row, size, found in zip(rows, sizes, projected, strict=True):
        if size > 0:
            np.testing.assert_allclose(found, by_sorting(row, size), atol=1e-13)


def test_a_projection_is_its_own_projection_and_far_rows_keep_their_digits(rng) -> None:
    rows = simplex_rows(rng.standard_normal((20, 5)), 1e-3)
    np.testing.assert_allclose(simplex_rows(rows, 1e-3), rows, atol=1e-18)
    far = simplex_rows(rows + 1e9, 1e-3)
    np.testing.assert_allclose(far.sum(axis=1), 1e-3, rtol=1e-14)


def test_entries_of_minus_infinity_are_zero() -> None:
    projected = simplex_rows([[0.3, -np.inf, 0.1]], 1.0)
    np.testing.assert_allclose(projected, [[0.6, 0.0, 0.4]], atol=1e-15)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1.0, np.nan]], "NaN or infinite"),
        ([[1.0, np.inf]], "NaN or infinite"),
        ([[-np.inf, -np.inf]], "none that is finite"),
    ],
)
def test_entries_that_are_no_numbers_are_refused(rows, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        simplex_rows(rows, 1.0)


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0, 1e3])
@pytest.mark.parametrize("shape", [(3, 2), (12, 3), (40, 7), (300, 26), (5, 40)])
def test_a_transport_matrix_has_its_sums_and_is_the_nearest(shape, scale: float, rng) -> None:
    row_sums = rng.uniform(0.0, 1.0, shape[0]) * (np.arange(shape[0]) % 6 != 5)
    row_sums /= row_sums.sum()
    column_sums = rng.dirichlet(np.ones(shape[1]))
    column_sums[-1] += 1.0 - column_sums.sum()
    rows = scale * rng.standard_normal(shape)
    found = transport(rows, row_sums, column_sums)
    assert found.min() >= 0
    np.testing.assert_allclose(found.sum(axis=1), row_sums, atol=1e-15)
    np.testing.assert_allclose(found.sum(axis=0), column_sums, atol=1e-15)
    for _ in range(20):
        other = transport_rounded(rng.random(shape), row_sums, column_sums)
        excess = float(np.vdot(rows - found, other - found))
        assert excess <= 1e-11 * max(scale, 1.0)


def test_columns_without_mass_stay_empty(rng) -> None:
    column_sums = np.array([0.5, 0.0, 0.3, 0.2])
    found = transport(rng.standard_normal((9, 4)), np.full(9, 1 / 9), column_sums)
    assert not np.any(found[:, 1])
    np.testing.assert_allclose(found.sum(axis=0), column_sums, atol=1e-16)


def test_rounding_repairs_any_matrix_and_leaves_a_feasible_one(rng) -> None:
    row_sums, column_sums = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(3))
    feasible = np.outer(row_sums, column_sums)
    np.testing.assert_allclose(
        transport_rounded(feasible, row_sums, column_sums), feasible, atol=1e-16
    )
    for matrix in (np.zeros((8, 3)), rng.random((8, 3)), 1e5 * rng.random((8, 3))):
        rounded = transport_rounded(matrix, row_sums, column_sums)
        assert rounded.min() >= 0
        np.testing.assert_allclose(rounded.sum(axis=1), row_sums, atol=1e-15)
        np.testing.assert_allclose(rounded.sum(axis=0), column_sums, atol=1e-15)


@pytest.mark.parametrize("ridge", [0.0, 0.05, 2.0])
def test_the_shift_of_the_columns_solves_its_equation(ridge: float, rng) -> None:
    rows, row_sums = rng.standard_normal((30, 4)), rng.dirichlet(np.ones(30))
    column_sums = np.array([0.1, 0.2, 0.3, 0.4])
    matrix, shift = column_shift(rows, row_sums, column_sums, np.zeros(4), ridge)
    np.testing.assert_allclose(matrix, simplex_rows(rows + shift, row_sums), atol=1e-14)
    np.testing.assert_allclose(matrix.sum(axis=0) + ridge * shift, column_sums, atol=1e-14)
