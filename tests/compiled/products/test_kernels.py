"""Every compiled kernel equals its array formula, for every type of data it may be given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from proxmargin.compiled.losses import margins
from proxmargin.compiled.products import products
from proxmargin.compiled.products.kernels import gaussian
from proxmargin.compiled.projections.rows import sum_to_zero_rows, sum_to_zero_shifts
from proxmargin.compiled.solvers import newton, sweeps
from proxmargin.compiled.solvers.nets import Net
from proxmargin.losses import MarginLoss
from proxmargin.penalties import ElasticNet
from tests.cases import COMPILED_LOSSES, small_matrix

every_smooth_loss = pytest.mark.parametrize(
    "phi", COMPILED_LOSSES.values(), ids=COMPILED_LOSSES.keys()
)
every_type = pytest.mark.parametrize("dtype", [np.float64, np.float32])
every_index_type = pytest.mark.parametrize("index_type", [np.int32, np.int64])
outputs = pytest.mark.parametrize("outputs", [1, 3])


def scored(phi: MarginLoss, outputs: int, rng: np.random.Generator):
    """Scores on every piece of the loss and on its kinks, with signs and weights."""
    n = 60
    signs = np.where(rng.random((n, outputs)) < 0.5, -1.0, 1.0)
    t = np.concatenate([phi.kinks, np.linspace(-40, 40, 30), 1 + 1.5 * rng.standard_normal(200)])
    scores = signs * rng.permutation(np.resize(t, n * outputs)).reshape(n, outputs)
    weights = rng.random((n, outputs)) * (rng.random((n, outputs)) < 0.8) / n
    return scores, signs, weights


@every_smooth_loss
@outputs
def test_value_and_gradient_equal_their_formula(phi: MarginLoss, outputs: int, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    gradient = np.full(scores.shape, np.nan)
    value = margins.value_and_gradient(phi.scalars, scores, signs, weights, gradient)
    t = signs * scores
    assert value == pytest.approx(np.vdot(weights, phi.value(t)), rel=1e-13)
    np.testing.assert_allclose(gradient, -weights * signs * phi.descent(t), rtol=1e-14, atol=1e-18)


@every_smooth_loss
@outputs
def test_the_fenchel_young_sum_equals_its_formula(phi: MarginLoss, outputs: int, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    for share in (0.0, 0.3, 1.0, rng.random(scores.shape)):
        a = share * np.ones(scores.shape) * min(phi.dual_bound, 4.0)
        found = margins.bregman_sum(phi.scalars, scores, signs, weights, -weights * signs * a)
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
    found = margins.bregman_sum(phi.scalars, other, signs, weights, gradient)
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-13)


@every_smooth_loss
@outputs
def test_slope_and_curvature_equal_their_formula(phi: MarginLoss, outputs: int, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    shift = rng.standard_normal(outputs)
    slope, curvature = margins.slope_and_curvature(phi.scalars, scores, signs, weights, shift)
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
    moved = rows - sum_to_zero_shifts(rows, threshold)
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
    by_columns = X.tocsc()
    for centre in (np.zeros(6), rng.standard_normal(6)):
        off = (X.toarray().astype(float) - centre) ** 2
        for Y, by_rows in ((X, True), (by_columns, False)):
            parts = (Y.data, Y.indices, Y.indptr)
            rows = products.centred_squares(*parts, features, centre, by_rows, True, 14)
            columns = products.centred_squares(*parts, samples, centre, by_rows, False, 6)
            np.testing.assert_allclose(rows, off @ features, rtol=1e-12)
            np.testing.assert_allclose(columns, samples @ off, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_lines_of_dense_data(dtype, order, rng) -> None:
    X = np.asarray(rng.standard_normal((14, 6)), dtype=dtype, order=order)
    by_rows = order == "C"
    lines = X if by_rows else X.T
    centre, live, roots = rng.standard_normal(6), np.array([1, 4, 5, 13]), rng.random(14)
    scaled = np.empty((4, 6) if by_rows else (6, 4))
    products.scaled_lines(lines, live, centre, roots, by_rows, scaled)
    wanted = (X[live].astype(float) - centre) * roots[live, None]
    np.testing.assert_allclose(scaled if by_rows else scaled.T, wanted, rtol=1e-12)
    off = (X.astype(float) - centre) ** 2
    for samples, wanted in ((False, off @ np.arange(6.0)), (True, roots @ off)):
        out = np.zeros(wanted.size)
        weights = roots if samples else np.arange(6.0)
        products.line_squares(lines, weights, centre, by_rows != samples, by_rows, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-12)
    for of_lines in (True, False):
        out = np.zeros(lines.shape[0 if of_lines else 1])
        products.line_largest(lines, of_lines, out)
        np.testing.assert_array_equal(out, np.abs(lines).max(axis=1 if of_lines else 0))


def test_squares_of_a_full_sparse_column_with_a_large_mean_keep_their_digits(rng) -> None:
    column = 1e8 + rng.standard_normal((500, 1))
    X, centre = sp.csc_matrix(column), np.array([column.mean()])
    parts = (X.data, X.indices, X.indptr)
    found = products.centred_squares(*parts, np.full(500, 1 / 500), centre, False, False, 1)
    np.testing.assert_allclose(found, column.var(axis=0), rtol=1e-12)


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


def net(p: int, l1: float, l2: float) -> Net:
    return ElasticNet(l1, l2).net(p)


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
    sweeps.sweep_dense(
        phi.scalars, data, centre, scale, signs, weights, *got, major, net(6, l1, l2)
    )
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
    same = major, net(6, l1, l2)
    sweeps.sweep_dense(phi.scalars, X, np.zeros(6), np.ones(6), signs, weights, *dense, *same)
    sweeps.sweep_sparse(
        phi.scalars, columns.data, columns.indices, columns.indptr, signs, weights, *sparse, *same
    )
    np.testing.assert_allclose(sparse[0], dense[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(sparse[1], dense[1], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_sweep_zeroes_the_coefficient_of_a_feature_that_is_zero(kind: str, rng) -> None:
    # it changes no score, but it costs l1: a start from elsewhere may bring one in
    phi = COMPILED_LOSSES["huberized hinge"]
    X = np.zeros((4, 1))
    signs, weights = np.array([1.0, -1, 1, -1]), np.full(4, 0.25)
    coef, scores = np.array([2.0]), np.zeros(4)
    rest = signs, weights, coef, scores, np.zeros(1), net(1, 0.1, 0.0)
    if kind == "dense":
        sweeps.sweep_dense(phi.scalars, X, np.zeros(1), np.ones(1), *rest)
    else:
        columns = sp.csc_matrix(X)
        sweeps.sweep_sparse(phi.scalars, columns.data, columns.indices, columns.indptr, *rest)
    assert coef[0] == 0.0


@every_smooth_loss
@outputs
def test_the_sum_of_values_equals_its_formula(phi: MarginLoss, outputs: int, rng) -> None:
    scores, signs, weights = scored(phi, outputs, rng)
    found = margins.value_sum(phi.scalars, scores, signs, weights)
    assert found == pytest.approx(np.vdot(weights, phi.value(signs * scores)), rel=1e-13)


@outputs
@pytest.mark.parametrize("bound", [0.7, np.inf])
def test_clipping_into_the_box_and_shrinking_columns_equal_their_formulas(outputs, bound, rng):
    _, signs, weights = scored(COMPILED_LOSSES["logistic"], outputs, rng)
    dual = rng.standard_normal(signs.shape) / 60
    inside, low, high = margins.clip_into_box(dual, signs, weights, bound)
    reach = np.where(weights > 0, bound * np.where(weights > 0, weights, 1.0), 0.0)
    plain = -signs * np.clip(-signs * dual, 0.0, reach)
    np.testing.assert_allclose(inside, plain, atol=1e-18)
    np.testing.assert_allclose(high, np.maximum(plain, 0).sum(axis=0), atol=1e-15)
    np.testing.assert_allclose(low, np.minimum(plain, 0).sum(axis=0), atol=1e-15)
    target = low + rng.random(outputs) * (high - low)
    margins.shrink_columns(inside, target, low, high)
    up, down = np.minimum((target - low) / high, 1.0), np.minimum((target - high) / low, 1.0)
    np.testing.assert_allclose(inside.sum(axis=0), target, atol=1e-15)
    np.testing.assert_allclose(inside, np.where(plain > 0, up * plain, down * plain), atol=1e-18)


def test_the_compiled_shifts_zero_the_sum_of_every_row(rng) -> None:
    rows = rng.standard_normal((50, 6)) * 10.0 ** rng.integers(-3, 4, (50, 1))
    for threshold in (0.0, 0.1, 3.0):
        found = sum_to_zero_shifts(rows, threshold)
        moved = rows - found
        left = np.sign(moved) * np.maximum(np.abs(moved) - threshold, 0.0)
        np.testing.assert_allclose(left.sum(axis=1), 0.0, atol=1e-12 * np.abs(rows).max())
        narrow = np.ptp(rows, axis=1) <= 2 * threshold
        middle = 0.5 * (rows.max(axis=1) + rows.min(axis=1))
        np.testing.assert_allclose(found[narrow, 0], middle[narrow])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_products_along_and_across_dense_lines_are_those_of_numpy(dtype, rng) -> None:
    lines = (10 * rng.standard_normal((23, 17))).astype(dtype)
    right, left = rng.standard_normal(17), rng.standard_normal(23)
    out, back = np.empty(23), np.zeros(17)
    products.along(lines, right, out)
    products.across(lines, left, back)
    np.testing.assert_allclose(out, lines.astype(float) @ right, rtol=1e-12)
    np.testing.assert_allclose(back, lines.astype(float).T @ left, rtol=1e-12, atol=1e-12)


@every_smooth_loss
def test_curvature_weights_are_the_second_derivative_or_a_majoriser_of_it(phi, rng) -> None:
    scores, signs, weights = (part[:, 0] for part in scored(phi, 1, rng))
    out = np.empty(scores.size)
    newton.curvature_weights(phi.scalars, scores, signs, weights, 0.0, out)
    np.testing.assert_allclose(out, weights * phi.curvature(signs * scores), rtol=1e-13)
    if not np.isfinite(phi.zone):
        return
    newton.curvature_weights(phi.scalars, scores, signs, weights, 1.0, out)
    t, other = signs * scores, np.linspace(-20, 20, 4001)
    bend = np.divide(out, weights, out=np.ones_like(out), where=weights > 0)
    for here, curved in zip(t, bend, strict=True):
        if phi.curvature(np.array([here]))[0] > 0:
            continue
        above = phi.value(np.array([here])) - phi.descent(np.array([here])) * (other - here)
        above = above + 0.5 * curved * (other - here) ** 2
        assert np.all(above >= phi.value(other) - 0.5 * phi.zone**2 * phi.smoothness)


@every_smooth_loss
@pytest.mark.parametrize("l1", [0.01, 0.5])
def test_the_search_along_a_ray_ends_where_its_slope_has_fallen(phi: MarginLoss, l1, rng) -> None:
    scores, signs, weights = (part[:, 0] for part in scored(phi, 1, rng))
    moved, coef = rng.standard_normal(scores.size), rng.standard_normal(6)
    coef[:2] = 0.0
    direction, l2, lift, bend = rng.standard_normal(6), 0.1, -6.0, 0.5
    ray = (
        phi.scalars,
        scores,
        moved,
        signs,
        weights,
        coef,
        direction,
        np.full(6, l1),
        np.full(6, l2),
    )

    def value(step: float) -> float:
        at = coef + step * direction
        loss = float(np.vdot(weights, phi.value(signs * (scores + step * moved))))
        rest = lift * step + 0.5 * bend * step**2
        return rest + loss + l1 * np.abs(at).sum() + 0.5 * l2 * at @ at

    def slope(step: float, side: float) -> float:
        return (value(step + 2e-6 * side) - value(step + 1e-6 * side)) / (1e-6 * side)

    step, enough = newton.exact_step(*ray, lift, bend, 0.01), 0.011 * abs(slope(0.0, 1.0))
    assert step > 0
    assert slope(step, -1.0) <= enough
    assert slope(step, 1.0) >= -enough
    assert newton.exact_step(*ray, 1e6, 0.0, 0.3) == 0.0


@every_smooth_loss
def test_the_search_meets_a_jump_of_the_slope_exactly(phi: MarginLoss, rng) -> None:
    scores, signs, weights = (part[:, 0] for part in scored(phi, 1, rng))
    moved = 0.01 * rng.standard_normal(scores.size)
    coef, direction = np.array([1.0, -0.6, 0.3]), np.array([-1.0, 0.3, 0.1])
    step = newton.exact_step(
        phi.scalars,
        scores,
        moved,
        signs,
        weights,
        coef,
        direction,
        np.full(3, 5.0),
        np.zeros(3),
        0.0,
        0.0,
        1e-6,
    )
    assert step in (1.0, 2.0)  # where one of the first two coefficients is zero
    assert np.count_nonzero(coef + step * direction) == 2


@every_type
@every_index_type
def test_the_sparse_gram_matrix_is_the_weighted_product(dtype, index_type, rng) -> None:
    matrix = rng.standard_normal((30, 12)) * (rng.random((30, 12)) < 0.4)
    X = compressed(matrix, dtype, index_type)
    bend = rng.random(30) * (rng.random(30) < 0.7)
    out = np.zeros((12, 12))
    newton.sparse_gram(X.data, X.indices, X.indptr, bend, out)
    dense = X.toarray().astype(float)
    np.testing.assert_allclose(out, dense.T @ (bend[:, None] * dense), atol=1e-12)


@every_type
def test_largest_entries_are_those_of_each_column(dtype, rng) -> None:
    X = compressed(small_matrix(rng), dtype, np.int32)
    expected = np.abs(X.toarray()).max(axis=0)
    for Y, by_rows in ((X, True), (X.tocsc(), False)):
        found = products.largest_entries(Y.data, Y.indices, Y.indptr, by_rows, X.shape[1])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("most", [1e-3, 1.0, 30.0, 80.0])
def test_a_gaussian_is_within_two_ulps_of_the_exponential(dtype: Any, most: float) -> None:
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
