"""Factors and conjugate gradients against dense solutions, and what a factorisation leaves."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.solvers.shared.numerical import cholesky, conjugate_gradients, inverse_of


def definite(rng: np.random.Generator, n: int, rank: int | None = None) -> np.ndarray:
    root = rng.standard_normal((n, rank or n + 3))
    return root @ root.T


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_factor_solves_for_one_and_for_many_right_sides(overwrite, order, rng) -> None:
    matrix = definite(rng, 7)
    factor = cholesky(np.array(matrix, order=order), overwrite=overwrite)
    assert factor is not None
    for right in (rng.standard_normal(7), rng.standard_normal((7, 3))):
        np.testing.assert_allclose(factor.solve(right), np.linalg.solve(matrix, right), rtol=1e-9)
    right = rng.standard_normal(7)
    squared = np.linalg.norm(factor.solve_half(right)) ** 2
    assert squared == pytest.approx(right @ np.linalg.solve(matrix, right))


@pytest.mark.parametrize("order", ["C", "F"])
def test_only_the_upper_triangle_is_read_and_the_matrix_stays(order, rng) -> None:
    matrix = definite(rng, 6)
    upper = np.array(np.triu(matrix), order=order)
    kept, right = upper.copy(), rng.standard_normal(6)
    np.testing.assert_allclose(inverse_of(upper)(right), np.linalg.solve(matrix, right))
    np.testing.assert_array_equal(upper, kept)


def test_a_factor_may_take_the_place_of_the_matrix(rng) -> None:
    matrix = definite(rng, 6)
    factor = cholesky(matrix, overwrite=True)
    assert factor is not None
    assert np.shares_memory(factor.triangle, matrix)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_matrix_that_is_not_definite_is_shifted_from_what_it_was(overwrite, rng) -> None:
    matrix = definite(rng, 12)
    matrix -= 1.5 * np.linalg.eigvalsh(matrix)[0] * np.eye(12)  # breaks down at a late pivot
    shift = 2.0 * abs(np.linalg.eigvalsh(matrix)[0])
    right = rng.standard_normal(12)
    wanted = np.linalg.solve(matrix + shift * np.eye(12), right)
    factor = cholesky(matrix.copy(), [0.0, 1e-14, shift], overwrite=overwrite)
    assert factor is not None
    np.testing.assert_allclose(factor.solve(right), wanted, rtol=1e-7)


def test_a_singular_matrix_is_solved_for_right_sides_in_its_range(rng) -> None:
    matrix = definite(rng, 9, rank=4)
    right = matrix @ rng.standard_normal(9)
    np.testing.assert_allclose(matrix @ inverse_of(matrix)(right), right, rtol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_not_finite_have_no_factor(value, rng) -> None:
    matrix = definite(rng, 5)
    matrix[1, 3] = matrix[3, 1] = value
    assert cholesky(matrix) is None


def test_without_a_factor_the_diagonal_is_left(rng) -> None:
    matrix = np.array([[2.0, 9.0], [9.0, 4.0]])
    np.testing.assert_allclose(inverse_of(matrix)(np.ones(2)), [0.5, 0.25])
    assert inverse_of(np.empty((0, 0)))(np.empty(0)).size == 0


def test_conjugate_gradients_reach_the_residual_they_are_asked_for(rng) -> None:
    matrix, right = definite(rng, 20), rng.standard_normal(20)
    found = conjugate_gradients(
        lambda v: matrix @ v, lambda v: v / np.diag(matrix), right, 1e-10, np.inf, 200
    )
    assert np.linalg.norm(matrix @ found - right) <= 1e-9 * np.linalg.norm(right)


def test_a_deadline_that_has_passed_leaves_one_step(rng) -> None:
    matrix, right = definite(rng, 5), rng.standard_normal(5)
    found = conjugate_gradients(lambda v: matrix @ v, np.copy, right, 0.0, 0.0, 9)
    np.testing.assert_allclose(found, right * (right @ right) / (right @ matrix @ right))
