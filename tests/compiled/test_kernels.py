"""Every compiled kernel equals its array formula, for every type of data it may be given."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proxmargin.compiled import margins, products, sweeps
from proxmargin.compiled.rows import sum_to_zero_rows
from proxmargin.losses import MarginLoss
from proxmargin.penalties.sum_to_zero import sum_to_zero_shift
from tests.cases import SMOOTH_LOSSES, kinks, small_matrix

every_smooth_loss = pytest.mark.parametrize("phi", SMOOTH_LOSSES.values(), ids=SMOOTH_LOSSES.keys())
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])
every_index_type = pytest.mark.parametrize("index_type", [np.int32, np.int64])
outputs = pytest.mark.parametrize("outputs", [1, 3])


def scored(phi: MarginLoss, outputs: int, rng: np.random.Generator):
    """Scores on every piece of the loss and on its kinks, with signs and weights."""
    n = 60
    signs = np.where(rng.random((n, outputs)) < 0.5, -1.0, 1.0)
    t = np.concatenate([kinks(phi), np.linspace(-40, 40, 30), 1 + 1.5 * rng.standard_normal(200)])
    scores = signs * rng.permutation(np.resize(t, n * outputs)).reshape(n, outputs)
    weights = rng.random((n, outputs)) * (rng.random((n, outputs)) < 0.8) / n
    return scores, signs, weights


@every_smooth_loss
@outputs
def test_value_and_gradient_equal_their_formula(phi: MarginLoss, outputs: int, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    gradient = np.full(scores.shape, np.nan)
    value = margins.value_and_gradient(phi.shape, scores, signs, weights, gradient)
    t = signs * scores
    assert value == pytest.approx(np.vdot(weights, phi.value(t)), rel=1e-13)
    np.testing.assert_allclose(gradient, -weights * signs * phi.descent(t), rtol=1e-14, atol=1e-18)


@every_smooth_loss
@outputs
def test_the_fenchel_young_sum_equals_its_formula(phi: MarginLoss, outputs: int, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    for share in (0.0, 0.3, 1.0, rng.random(scores.shape)):
        a = share * np.ones(scores.shape) * min(phi.dual_bound, 4.0)
        found = margins.bregman_sum(phi.shape, scores, signs, weights, -weights * signs * a)
        plain = np.vdot(weights, phi.fenchel_young(signs * scores, a))
        assert found == pytest.approx(plain, rel=1e-12, abs=1e-14)


@every_smooth_loss
@outputs
def test_the_fenchel_young_sum_of_a_gradient_is_the_bregman_divergence(phi, outputs, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    other = scores + 0.5 * rng.standard_normal(scores.shape)
    gradient = -weights * signs * phi.descent(signs * scores)
    drop = phi.value(signs * other) - phi.value(signs * scores)
    plain = np.vdot(weights, drop) - np.vdot(gradient, other - scores)
    found = margins.bregman_sum(phi.shape, other, signs, weights, gradient)
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-13)


@every_smooth_loss
@outputs
def test_slope_and_curvature_equal_their_formula(phi: MarginLoss, outputs: int, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    shift = rng.standard_normal(outputs)
    slope, curvature = margins.slope_and_curvature(phi.shape, scores, signs, weights, shift)
    t = signs * (scores + shift)
    plain = -(weights * signs * phi.descent(t)).sum(axis=0)
    np.testing.assert_allclose(slope, plain, rtol=1e-11, atol=1e-14)
    bend = (weights * phi.curvature(t)).sum(axis=0)
    np.testing.assert_allclose(curvature, bend, rtol=1e-12, atol=1e-15)


@given(
    rows=arrays(
        float, (5, 4), elements=st.one_of(st.floats(-50, 50), st.integers(-3, 3).map(float))
    ),
    threshold=st.one_of(st.just(0.0), st.floats(0.0, 20.0)),
)
def test_sum_to_zero_rows_equal_the_soft_threshold_at_the_shift(rows, threshold) -> None:
    moved = rows - sum_to_zero_shift(rows, threshold)
    plain = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0.0)
    before = rows.copy()
    found = sum_to_zero_rows(rows, np.full((len(rows), 1), threshold))
    np.testing.assert_allclose(found, plain, atol=1e-12 * (1 + np.abs(rows).max()))
    np.testing.assert_array_equal(rows, before)


def test_sum_to_zero_rows_end_for_entries_of_very_different_size() -> None:
    rows = np.array([[1e8, 1e-8, 0.0, -1.0], [1e300, 0.0, 0.0, -1e300], [5e-324, 0.0, 0.0, 0.0]])
    found = sum_to_zero_rows(rows, np.full((len(rows), 1), 0.25))
    assert np.all(np.abs(found.sum(axis=1)) <= 1e-15 * np.abs(rows).max(axis=1) + 1e-300)


def compressed(matrix: np.ndarray, dtype, index_type) -> sp.csr_matrix:
    X = sp.csr_matrix(matrix.astype(dtype))
    X.indices, X.indptr = X.indices.astype(index_type), X.indptr.astype(index_type)
    return X


@every_type
@every_index_type
@outputs
def test_gather_and_scatter_are_the_products_of_scipy(dtype, index_type, outputs, rng) -> None:
    matrix = small_matrix(rng)
    X = compressed(matrix, dtype, index_type)
    right, left = rng.standard_normal((6, outputs)), rng.standard_normal((14, outputs))
    left[2] = 0.0
    along, across = np.full((14, outputs), np.nan), np.zeros((6, outputs))
    products.gather(X.data, X.indices, X.indptr, right, along)
    products.scatter(X.data, X.indices, X.indptr, left, across)
    wide = sp.csr_matrix(matrix.astype(float))
    np.testing.assert_allclose(along, wide @ right, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(across, wide.T @ left, rtol=1e-13, atol=1e-14)


@every_type
@every_index_type
def test_sums_of_squares_are_those_of_scipy(dtype, index_type, rng) -> None:
    matrix = small_matrix(rng)
    X = compressed(matrix, dtype, index_type)
    features, samples = rng.random(6), rng.random(14)
    along, across = np.full(14, np.nan), np.zeros(6)
    products.squares_along(X.data, X.indices, X.indptr, features, along)
    products.squares_across(X.data, X.indices, X.indptr, samples, across)
    squares = sp.csr_matrix(matrix.astype(float)).power(2)
    np.testing.assert_allclose(along, squares @ features, rtol=1e-14)
    np.testing.assert_allclose(across, squares.T @ samples, rtol=1e-14)


@every_type
def test_products_accumulate_in_float64(dtype, rng) -> None:
    X = compressed(np.full((1, 4000), 0.1), dtype, np.int32)
    out = np.zeros((1, 1))
    products.gather(X.data, X.indices, X.indptr, np.ones((4000, 1)), out)
    assert out[0, 0] == pytest.approx(4000 * float(dtype(0.1)), rel=1e-12)


def plain_sweep(phi, X, signs, weights, coef, scores, major, l1, l2):
    """One sweep of generalised coordinate descent, as it is written in a paper."""
    coef, scores = coef.copy(), scores.copy()
    for j in range(coef.size):
        if major[j] + l2 == 0:
            continue
        slope = -np.sum(weights * signs * X[:, j] * phi.descent(signs * scores))
        target = major[j] * coef[j] - slope
        new = np.sign(target) * max(abs(target) - l1, 0.0) / (major[j] + l2)
        scores += (new - coef[j]) * X[:, j]
        coef[j] = new
    return coef, scores


def sweeping(phi, rng, l1: float, l2: float):
    matrix = small_matrix(rng)
    signs, weights = np.where(np.arange(14) % 2, 1.0, -1.0), rng.random(14) / 7
    coef = rng.standard_normal(6) * np.array([1, 1, 0, 0, 1, 1])
    return matrix, signs, weights, coef, l1, l2


@every_smooth_loss
@every_type
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("l1", "l2"), [(0.05, 0.1), (0.05, 0.0), (0.0, 0.1)])
def test_a_dense_sweep_is_the_plain_sweep(phi, dtype, order, l1, l2, rng) -> None:
    matrix, signs, weights, coef, l1, l2 = sweeping(phi, rng, l1, l2)
    centre, scale = rng.standard_normal(6), rng.uniform(0.5, 2.0, 6)
    X = (matrix - centre) / scale
    scores = X @ coef + 0.3
    major = phi.smoothness * (weights @ X**2)
    expected = plain_sweep(phi, X, signs, weights, coef, scores, major, l1, l2)
    data = np.asarray(matrix, dtype=dtype, order=order)
    got = coef.copy(), scores.copy()
    sweeps.sweep_dense(phi.shape, data, centre, scale, signs, weights, *got, major, l1, l2)
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-11, atol=1e-12)


@every_smooth_loss
@every_type
@every_index_type
@pytest.mark.parametrize(("l1", "l2"), [(0.05, 0.1), (0.05, 0.0)])
def test_a_sparse_sweep_is_the_dense_sweep(phi, dtype, index_type, l1, l2, rng) -> None:
    matrix, signs, weights, coef, l1, l2 = sweeping(phi, rng, l1, l2)
    X = matrix.astype(float)
    scores = X @ coef + 0.3
    major = phi.smoothness * (weights @ X**2)
    dense, sparse = (coef.copy(), scores.copy()), (coef.copy(), scores.copy())
    columns = compressed(matrix.T, dtype, index_type)
    sweeps.sweep_dense(phi.shape, X, np.zeros(6), np.ones(6), signs, weights, *dense, major, l1, l2)
    sweeps.sweep_sparse(
        phi.shape, columns.data, columns.indices, columns.indptr, signs, weights, *sparse,
        major, l1, l2,
    )  # fmt: skip
    np.testing.assert_allclose(sparse[0], dense[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sparse[1], dense[1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_sweep_zeroes_the_coefficient_of_a_feature_that_is_zero(kind: str, rng) -> None:
    # it changes no score, but it costs l1: a start from elsewhere may bring one in
    phi = SMOOTH_LOSSES["huberized hinge"]
    X = np.zeros((4, 1))
    signs, weights = np.array([1.0, -1, 1, -1]), np.full(4, 0.25)
    coef, scores = np.array([2.0]), np.zeros(4)
    rest = signs, weights, coef, scores, np.zeros(1), 0.1, 0.0
    if kind == "dense":
        sweeps.sweep_dense(phi.shape, X, np.zeros(1), np.ones(1), *rest)
    else:
        columns = sp.csc_matrix(X)
        sweeps.sweep_sparse(phi.shape, columns.data, columns.indices, columns.indptr, *rest)
    assert coef[0] == 0.0
