"""Laws of designs: products, restrictions, standardisation, and what they charge for."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.data.designs import (
    DenseDesign,
    PassCounter,
    RowView,
    SparseDesign,
    StandardizedDesign,
    as_design,
    moments,
)
from proxmargin.data.designs.blocks import BlockedDesign
from proxmargin.data.designs.blocks.device import DeviceBlock
from tests.cases import DENSE_DATA, DESIGNS, SPARSE_DATA, as_seen, small_matrix

every_design = pytest.mark.parametrize("name", DESIGNS)
WITH_MATRIX = [
    name
    for name, make in DESIGNS.items()
    if not isinstance(
        make(small_matrix(np.random.default_rng(0))).stored.base,
        RowView | BlockedDesign | DeviceBlock,
    )
]
every_matrix = pytest.mark.parametrize("name", WITH_MATRIX)  # that the design has as its own
every_data = pytest.mark.parametrize("name", [*DENSE_DATA, *SPARSE_DATA])


def pair(name: str, rng: np.random.Generator, **shape: int):
    """A design and the dense matrix that it stands for."""
    matrix = small_matrix(rng, **shape)
    return DESIGNS[name](matrix), as_seen(name, matrix)


@every_design
@pytest.mark.parametrize("outputs", [1, 3])
def test_products_are_those_of_the_matrix(name: str, outputs: int, rng) -> None:
    design, X = pair(name, rng)
    coef, dual = rng.standard_normal((6, outputs)), rng.standard_normal((14, outputs))
    dual[3] = 0.0
    scores, adjoint = design.scores(coef), design.adjoint(dual)
    assert scores.dtype == adjoint.dtype == np.float64
    np.testing.assert_allclose(scores, X @ coef, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(adjoint, X.T @ dual, rtol=1e-13, atol=1e-13)


@every_design
def test_products_with_few_live_coefficients_are_those_of_the_matrix(name: str, rng) -> None:
    design, X = pair(name, rng, p=40)
    for live in ([], [7], [0, 39]):
        coef = np.zeros((40, 2))
        coef[live] = rng.standard_normal((len(live), 2))
        np.testing.assert_allclose(design.scores(coef), X @ coef, rtol=1e-13, atol=1e-13)


@every_matrix
def test_what_is_stored_is_the_matrix_before_centring_and_scaling(name: str, rng) -> None:
    design, X = pair(name, rng)
    base, centre, scale = design.stored
    _, none, ones = base.stored
    assert not none.any()
    assert (ones == 1.0).all()
    assert (base.compressed is base) == sp.issparse(base.matrix)  # type: ignore[attr-defined]
    raw = base.dense_columns(np.arange(X.shape[1]))
    np.testing.assert_allclose((raw - centre) / scale, X, rtol=1e-13, atol=1e-13)


@pytest.mark.sampled(4)
@every_design
@pytest.mark.parametrize("index", [[], [1], [0, 2, 5]])
def test_dense_columns_are_those_of_the_matrix(name: str, index: list[int], rng) -> None:
    design, X = pair(name, rng)
    before = design.counter.passes
    columns = design.dense_columns(np.array(index, dtype=np.intp))
    assert columns.dtype == np.float64
    assert design.counter.passes - before <= 1.0
    np.testing.assert_allclose(columns, X[:, index], rtol=1e-13, atol=1e-13)


@every_design
def test_the_adjoint_identity_holds(name: str, rng) -> None:
    design, _ = pair(name, rng)
    w, q = rng.standard_normal((6, 2)), rng.standard_normal((14, 2))
    left, right = np.vdot(design.scores(w), q), np.vdot(w, design.adjoint(q))
    assert left == pytest.approx(right, rel=1e-12)


@every_design
def test_row_and_column_squares_are_those_of_the_matrix(name: str, rng) -> None:
    design, X = pair(name, rng)
    feature_weights, weights, centre = rng.random(6), rng.random(14), rng.standard_normal(6)
    zero = np.zeros(6)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(design.row_norms(), (X**2).sum(axis=1), **close)
    np.testing.assert_allclose(
        design.row_squares(feature_weights, zero), X**2 @ feature_weights, **close
    )
    np.testing.assert_allclose(design.column_squares(weights, zero), weights @ X**2, **close)
    off = (X - centre) ** 2
    np.testing.assert_allclose(
        design.row_squares(feature_weights, centre), off @ feature_weights, **close
    )
    centred = weights @ off
    np.testing.assert_allclose(design.column_squares(weights, centre), centred, **close)


@pytest.mark.sampled(4)
@every_design
@pytest.mark.parametrize(
    "index", [[1, 3, 4], [4, 0], [5], [], [0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]], ids=str
)
def test_a_restriction_to_columns_is_that_of_the_matrix(name: str, index: list[int], rng) -> None:
    design, X = pair(name, rng)
    chosen = np.array(index, dtype=np.intp)
    part = design.columns(chosen)
    assert (part.n_samples, part.n_features) == (14, chosen.size)
    coef, dual = rng.standard_normal((chosen.size, 2)), rng.standard_normal((14, 2))
    np.testing.assert_allclose(part.scores(coef), X[:, chosen] @ coef, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(part.adjoint(dual), X[:, chosen].T @ dual, rtol=1e-13, atol=1e-13)
    weights = rng.random(14)
    np.testing.assert_allclose(
        part.column_squares(weights, np.zeros(chosen.size)),
        weights @ X[:, chosen] ** 2,
        rtol=1e-12,
        atol=1e-12,
    )


@every_design
def test_what_coordinate_descent_reads_are_the_columns(name: str, rng) -> None:
    design, X = pair(name, rng)
    if design.passes_only:
        with pytest.raises(ValueError, match="no columns"):
            design.stored.base.sweep_data()
        return
    if not design.has_columns:
        assert design.stored.base.compressed is not None
        with pytest.raises(TypeError, match="standardised sparse data"):
            design.sweep_data()
        return
    data = design.sweep_data()
    if data[0].ndim == 2:
        matrix, centre, scale = data
        seen = (matrix - centre) / scale
    else:
        seen = sp.csc_matrix(data, shape=X.shape).toarray()
    np.testing.assert_allclose(seen, X, rtol=1e-13, atol=1e-13)


@every_matrix
def test_products_charge_one_pass_and_restrictions_their_share(name: str, rng) -> None:
    design, _ = pair(name, rng)
    before = design.counter.passes
    design.scores(np.ones((6, 1)))
    assert design.counter.passes - before == pytest.approx(1)
    design.adjoint(np.ones((14, 1)))
    assert design.counter.passes - before == pytest.approx(2)
    part = design.columns(np.array([0, 1, 4]))
    assert part.counter is design.counter
    part.scores(np.ones((3, 1)))
    matrix = design.stored.base.matrix
    share = matrix[:, [0, 1, 4]].nnz / matrix.nnz if sp.issparse(matrix) else 0.5
    assert part.share == pytest.approx(share)
    assert design.counter.passes - before == pytest.approx(2 + share)


def test_a_product_with_few_live_coefficients_charges_their_share(rng) -> None:
    design = DenseDesign(rng.standard_normal((5, 100)))
    coef = np.zeros((100, 1))
    coef[:3] = 1.0
    design.scores(coef)
    assert design.counter.passes == pytest.approx(0.03)


def test_designs_can_share_a_ledger(rng) -> None:
    counter = PassCounter()
    for matrix in (np.ones((3, 2)), np.ones((4, 2))):
        DenseDesign(matrix, counter).scores(np.ones((2, 1)))
    assert counter.passes == 2


@every_data
def test_a_design_neither_copies_nor_changes_the_data(name: str, rng) -> None:
    data = {**DENSE_DATA, **SPARSE_DATA}[name](small_matrix(rng))
    before = deepcopy(data)
    design = as_design(data)
    assert design.matrix is data
    design.scores(np.ones((6, 2)))
    design.adjoint(np.ones((14, 2)))
    design.column_squares(np.ones(14), np.ones(6))
    design.columns(np.array([0, 1]))
    design.sweep_data()
    if sp.issparse(data):
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(data, part), getattr(before, part))
            assert getattr(data, part).dtype == getattr(before, part).dtype
    else:
        np.testing.assert_array_equal(data, before)


@every_data
def test_size_and_density_are_those_of_the_data(name: str, rng) -> None:
    data = {**DENSE_DATA, **SPARSE_DATA}[name](small_matrix(rng))
    design = as_design(data)
    if sp.issparse(data):
        assert design.nbytes == data.data.nbytes + data.indices.nbytes + data.indptr.nbytes
        assert design.density == pytest.approx(data.nnz / data.shape[0] / data.shape[1])
    else:
        assert design.nbytes == data.nbytes
        assert design.density == 1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_memory_map_is_read_in_place(order: str, dtype, rng, tmp_path) -> None:
    X = np.asarray(rng.standard_normal((50, 8)), dtype=dtype, order=order)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    design = as_design(mapped)
    assert design.matrix is mapped
    coef, dual = rng.standard_normal((8, 2)), rng.standard_normal((50, 2))
    np.testing.assert_allclose(design.scores(coef), X.astype(float) @ coef, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(design.adjoint(dual), X.T.astype(float) @ dual, atol=1e-13)


@pytest.mark.parametrize("order", ["C", "F"])
def test_float32_is_accumulated_in_float64_over_many_blocks(order: str, rng) -> None:
    X = np.asarray(rng.standard_normal((3000, 120)) + 100, dtype=np.float32, order=order)
    wide = X.astype(np.float64)
    coef, dual = rng.standard_normal((120, 1)), rng.standard_normal((3000, 1))
    design = DenseDesign(X)
    np.testing.assert_allclose(design.scores(coef), wide @ coef, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(design.adjoint(dual), wide.T @ dual, rtol=1e-12, atol=1e-9)
    weights = np.full(3000, 1 / 3000)
    np.testing.assert_allclose(
        design.column_squares(weights, wide.mean(axis=0)), wide.var(axis=0), rtol=1e-11
    )


@every_data
def test_moments_are_weighted_mean_and_population_deviation(name: str, rng) -> None:
    matrix = small_matrix(rng)
    weights = rng.random(14) * (np.arange(14) != 5)
    weights /= weights.sum()
    mean, scale = moments(as_design({**DENSE_DATA, **SPARSE_DATA}[name](matrix)), weights)
    centred = matrix - weights @ matrix
    deviation = np.sqrt(weights @ centred**2)
    np.testing.assert_allclose(mean, weights @ matrix, rtol=1e-13, atol=1e-14)
    constant = np.ptp(matrix[weights > 0], axis=0) == 0
    np.testing.assert_allclose(scale, np.where(constant, 1.0, deviation), rtol=1e-12)


@pytest.mark.parametrize("kind", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_mean_does_not_blur_the_deviation(kind: str, dtype, rng) -> None:
    # a year, an altitude, a time stamp: the mean is a large multiple of the deviation
    column = (10_000 + rng.standard_normal((400, 1))).astype(dtype)
    X = np.hstack([column, column[::-1]])
    data = X.copy(order=kind) if kind in "CF" else sp.csr_matrix(X).asformat(kind)
    _, scale = moments(as_design(data), np.full(400, 1 / 400))
    # sparse data are centred by a difference of sums, which loses the square of mean / deviation
    rtol = 1e-9 if kind in "CF" else 10 * np.finfo(float).eps * 10_000**2
    np.testing.assert_allclose(scale, X.astype(float).std(axis=0), rtol=rtol)


@pytest.mark.parametrize("kind", ["C", "csr"])
def test_a_constant_feature_standardises_to_zero(kind: str, rng) -> None:
    X = np.full((30, 3), 0.1) + np.array([0.0, 1e8, -1e-12])
    data = X if kind == "C" else sp.csr_matrix(X)
    base = as_design(data)
    design = StandardizedDesign(base, *moments(base, np.full(30, 1 / 30)))
    np.testing.assert_allclose(design.scores(np.ones((3, 1))), 0, atol=1e-6)
    np.testing.assert_array_equal(design.scale, 1.0)


def test_data_of_an_unknown_type_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="type list"):
        as_design([[1.0, 2.0]])


def test_a_sparse_design_is_compressed() -> None:
    with pytest.raises(TypeError, match="CSR or CSC, not COO"):
        SparseDesign(sp.coo_matrix(np.eye(3)))


def test_a_design_is_its_own_design() -> None:
    design = DenseDesign(np.eye(2))
    assert as_design(design) is design


@every_design
def test_the_gram_matrix_is_the_weighted_product(name: str, rng) -> None:
    matrix = small_matrix(rng)
    design, X = DESIGNS[name](matrix), as_seen(name, matrix)
    weights = rng.random(X.shape[0]) * (rng.random(X.shape[0]) < 0.6)
    centre = rng.standard_normal(X.shape[1])
    expected = (X - centre).T @ (weights[:, None] * (X - centre))
    close = {"rtol": 1e-6, "atol": 1e-6} if "float32" in name else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(design.gram(weights, centre), expected, **close)


@every_design
def test_inner_products_of_samples_are_computed_once_for_one_pass(
    name: str, rng, monkeypatch
) -> None:
    design, X = pair(name, rng)
    if "device" in name:
        np.testing.assert_allclose(design.outer_gram(), X @ X.T, rtol=1e-6, atol=1e-12)
        return
    if design.passes_only:  # of few data alone, which are read into memory
        np.testing.assert_allclose(design.outer_gram(), X @ X.T, rtol=1e-12, atol=1e-12)
        monkeypatch.setattr("proxmargin.data.designs.blocks.base.FEW_BYTES", 0)
        with pytest.raises(ValueError, match="all pairs of samples"):
            pair(name, rng)[0].outer_gram()
        return
    before = design.counter.passes
    outer = design.outer_gram()
    assert outer.dtype == np.float64
    np.testing.assert_allclose(outer, X @ X.T, rtol=1e-12, atol=1e-12)
    sparse_centred = isinstance(design, StandardizedDesign) and not design.is_dense
    assert design.counter.passes - before == pytest.approx(2 if sparse_centred else 1)
    assert design.outer_gram() is outer
    assert design.counter.passes - before <= 2


@pytest.mark.parametrize("kind", ["C", "F", "csr", "csc"])
def test_inner_products_of_many_samples_are_put_together_from_blocks(kind: str, rng) -> None:
    X = np.where(rng.random((1100, 700)) < 0.05, rng.standard_normal((1100, 700)), 0.0)
    data = X.copy(order=kind) if kind in "CF" else sp.csr_matrix(X).asformat(kind)
    np.testing.assert_allclose(as_design(data).outer_gram(), X @ X.T, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_mean_does_not_blur_the_inner_products_of_dense_samples(dtype, rng) -> None:
    X = (10_000 + rng.standard_normal((30, 4))).astype(dtype)
    centre = X.astype(float).mean(axis=0)
    design = StandardizedDesign(as_design(X), centre, np.ones(4))
    moved = X.astype(float) - centre
    np.testing.assert_allclose(design.outer_gram(), moved @ moved.T, rtol=1e-12, atol=1e-12)


@pytest.mark.sampled(4)
@every_design
@pytest.mark.parametrize("index", [[1, 3, 4], [9, 0], [5], list(range(14))], ids=str)
def test_a_restriction_to_rows_is_that_of_the_matrix(name: str, index: list[int], rng) -> None:
    design, X = pair(name, rng)
    chosen = np.array(index, dtype=np.intp)
    part, seen = design.rows(chosen), X[chosen]
    assert (part.n_samples, part.n_features) == seen.shape
    coef, dual = rng.standard_normal((6, 2)), rng.standard_normal((chosen.size, 2))
    close = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(part.scores(coef), seen @ coef, **close)
    np.testing.assert_allclose(part.adjoint(dual), seen.T @ dual, **close)
    np.testing.assert_allclose(part.outer_gram(), seen @ seen.T, rtol=1e-12, atol=1e-12)
    assert design.rows(chosen) is part


@every_matrix
def test_products_with_some_of_the_rows_charge_their_share(name: str, rng) -> None:
    design, _ = pair(name, rng)
    chosen = np.array([0, 5, 6, 13])
    part = design.rows(chosen)
    assert part.counter is design.counter
    before = design.counter.passes
    part.scores(np.ones((6, 1)))
    matrix = design.stored.base.matrix
    share = matrix[chosen].nnz / matrix.nnz if sp.issparse(matrix) else 4 / 14
    assert design.counter.passes - before == pytest.approx(share)


def test_the_gram_matrix_of_no_features_is_empty() -> None:
    design = as_design(np.zeros((5, 0)))
    assert design.gram(np.ones(5), np.zeros(0)).shape == (0, 0)


def test_what_is_remembered_is_computed_again_when_what_was_given_changes() -> None:
    design, asked = as_design(np.zeros((3, 2))), []

    def answer(design, *given, scale=1) -> int:
        asked.append(given)
        return scale * len(asked)

    weights = np.ones(3)
    assert [design.remembered(answer, weights) for _ in range(2)] == [1, 1]
    weights[0] = 2.0
    assert design.remembered(answer, weights) == 2
    # of what is hashable every answer is kept; what only computing takes is not compared
    assert design.remembered(answer, weights, "other", scale=10) == 30
    assert design.remembered(answer, weights, "other", scale=20) == 30
    assert design.remembered(answer, weights) == 2
