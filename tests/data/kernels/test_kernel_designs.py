"""Kernel matrices by blocks, their bounded cache, their factors, and what is refused."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise

from proxmargin.data.kernels import (
    Custom,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Rbf,
    Sigmoid,
    checks,
    matrices,
)
from proxmargin.data.kernels import matrix as matrix_module
from proxmargin.data.kernels.checks import (
    IndefiniteKernelError,
    check_definite,
    checked_precomputed,
)
from proxmargin.data.kernels.low_rank import LowRankFactor, factorise
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KernelMatrix

N = 90
DEFINITE = [Linear(), Rbf(0.2), Rbf(3.0), Polynomial(3, 0.4, 1.0)]
WHOLE, SOME, NONE = N * N * 8, 17 * N * 8, 0


def data(n: int = N, p: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


def sparse_right(outputs: int, live: int, seed: int, n: int = N) -> np.ndarray:
    """A right-hand side with ``live`` rows that are not zero."""
    rng = np.random.default_rng(seed)
    right = np.zeros((n, outputs))
    right[rng.choice(n, live, replace=False)] = rng.standard_normal((live, outputs))
    return right


def whole(matrix: KernelMatrix) -> np.ndarray:
    everything = np.arange(matrix.n_samples)
    return matrix.block(everything, everything)


def stored(K: np.ndarray) -> KernelMatrix:
    return kernel_matrix(Precomputed(), K)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_module, "ROWS_ENTRIES", 7 * N)
    monkeypatch.setattr(matrices, "ROWS_ENTRIES", 7 * N)
    monkeypatch.setattr(matrices, "BLOCK_ENTRIES", 5 * N)
    monkeypatch.setattr(matrix_module, "FEWEST_ROWS", 1)
    monkeypatch.setattr(checks, "ROWS_ENTRIES", 7 * N)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("cache_bytes", [WHOLE, SOME, NONE])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sparse.csr_array, sparse.csc_array])
def test_products_by_blocks_equal_those_with_the_whole(
    cache_bytes: int, outputs: int, form: Any
) -> None:
    X = form(data())
    K = Rbf(0.2)(X, X)
    matrix = kernel_matrix(Rbf(0.2), X, cache_bytes=cache_bytes)
    for seed, live in enumerate([0, 4, 30, N, 12, 30, 60]):
        right = sparse_right(outputs, live, seed)
        np.testing.assert_allclose(matrix.matvec(right), K @ right, rtol=0, atol=1e-12)
        index = np.random.default_rng(seed).choice(N, 11)
        np.testing.assert_allclose(matrix.rows(index), K[index], rtol=0, atol=1e-13)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("kernel", [Linear(), Rbf(0.2), Polynomial(3, 0.1, 1.0)])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_only_rows_that_serve_again_are_kept(form: Any, kernel: Any, outputs: int) -> None:
    X = form(data())
    K, matrix = kernel(X, X), kernel_matrix(kernel, X)
    again = np.arange(N) % 3 == 0
    for seed, live in enumerate([30, 60]):
        right = sparse_right(outputs, live, seed)
        found, kept = matrix.matvec(right, again), again & right.any(axis=1)
        np.testing.assert_allclose(found, K @ right, rtol=1e-12, atol=1e-12)
        assert matrix._cache.holds(np.flatnonzero(kept)).all()  # type: ignore[attr-defined]
        assert not matrix._cache.holds(np.flatnonzero(~again)).any()  # type: ignore[attr-defined]


def test_streamed_rows_have_the_exact_diagonal() -> None:
    X = 1e3 * data()
    unit = np.eye(N)[:, :1]
    column = kernel_matrix(Rbf(1e8), X).matvec(unit, np.zeros(N, dtype=bool))
    np.testing.assert_array_equal(column, unit)


@given(st.lists(st.integers(0, N), max_size=8), st.integers(0, N + 5), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_the_cache_gives_the_same_products_and_stays_within_its_budget(
    lives: list[int], rows: int, seed: int
) -> None:
    X = data(seed=seed)
    K = Linear()(X, X)
    matrix = kernel_matrix(Linear(), X, cache_bytes=rows * N * 8)
    for turn, live in enumerate(lives):
        right = sparse_right(1, live, seed + turn)
        np.testing.assert_allclose(matrix.matvec(right), K @ right, rtol=0, atol=1e-11)
        assert matrix.nbytes <= rows * N * 8


@pytest.mark.parametrize("kind", ["dense", "sparse", "function"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_half_of_a_matrix_that_cannot_be_kept_is_computed(
    kind: str, outputs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrices, "TILE_COLUMNS", 32)
    X: Any = data()
    kernel = Custom(lambda a, b: (1.0 + a @ b.T) ** 2) if kind == "function" else Rbf(0.3)
    expected = kernel(X, X)
    if kind == "sparse":
        X = sparse.csr_array(X)
    matrix = kernel_matrix(kernel, X, cache_bytes=3 * N * 8)
    right = sparse_right(outputs, N - 5, 0)
    np.testing.assert_allclose(matrix.matvec(right), expected @ right, rtol=1e-12, atol=1e-11)
    assert matrix.nbytes == 0
    assert matrix.counter.passes == pytest.approx(1 - 5 / N)


def test_a_part_of_a_matrix_is_that_of_its_samples() -> None:
    index = np.array([5, 80, 2])
    K = Rbf(0.3)(data(), data())
    for matrix in (kernel_matrix(Rbf(0.3), data()), stored(K)):
        part = matrix.part(index)
        np.testing.assert_allclose(part.rows(np.arange(3)), K[np.ix_(index, index)], atol=1e-14)


def test_memory_stays_within_budget_and_a_block() -> None:
    n, budget = 3000, 6_000_000
    matrix = kernel_matrix(Rbf(0.2), data(n, 3), cache_bytes=budget)
    right = sparse_right(1, 2000, 0, n)
    matrix.matvec(sparse_right(1, 20, 0, n))
    tracemalloc.start()
    matrix.matvec(right)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    block = 8 * matrices.ROWS_ENTRIES
    assert 0 < matrix.nbytes <= budget
    assert peak < block + 8_000_000 < 8 * n * n


def test_kept_rows_are_not_computed_again() -> None:
    calls = []

    def counted(left: Any, right: Any) -> np.ndarray:
        calls.append(len(left) * len(right))
        return left @ right.T

    matrix = kernel_matrix(Custom(counted), data(), cache_bytes=40 * N * 8)
    right = sparse_right(1, 30, 0)
    matrix.matvec(right)
    calls.clear()
    matrix.matvec(right)
    matrix.rows(np.flatnonzero(right[:, 0]))
    assert calls == []
    matrix.matvec(sparse_right(1, N, 0))  # more than fit: those kept before are used and stay
    assert sum(calls) == (N - 30) * N
    calls.clear()
    matrix.matvec(right)
    assert calls == []


def test_rows_cost_their_share_of_a_pass() -> None:
    for matrix in (kernel_matrix(Linear(), data()), stored(Linear()(data(), data()))):
        matrix.matvec(sparse_right(1, N // 3, 0))
        assert matrix.counter.passes == pytest.approx(1 / 3)
        matrix.rows(np.arange(9))
        assert matrix.counter.passes == pytest.approx(1 / 3 + 0.1)
        matrix.matvec(np.ones((N, 2)))
        assert matrix.counter.passes == pytest.approx(4 / 3 + 0.1)


@pytest.mark.parametrize("gamma", [0.1, 1e8])
def test_the_distance_of_a_sample_to_itself_is_exactly_zero(gamma: float) -> None:
    X = 1e3 * data()
    matrix = kernel_matrix(Rbf(gamma), X)
    index = np.array([5, 3, 70])
    for values in (matrix.block(index, index).diagonal(), matrix.rows(index)[[0, 1, 2], index]):
        np.testing.assert_array_equal(values, 1.0)
    np.testing.assert_array_equal(matrix.diagonal(), 1.0)


def test_a_kernel_beyond_floating_point_is_refused() -> None:
    with pytest.raises(ValueError, match="exceeds the range"):
        kernel_matrix(Polynomial(200, 1.0, 1.0), 1e3 * data()).diagonal()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
def test_precomputed_matrices_are_used_as_they_are(dtype: Any, order: str) -> None:
    K = np.asarray(Rbf(0.2)(data(), data()), dtype=dtype, order=order)
    K = np.triu(K) + np.triu(K, 1).T
    K.flags.writeable = False
    matrix = stored(K)
    assert matrix.matrix is K  # type: ignore[attr-defined]
    for live in (0, 7, N):
        right = sparse_right(2, live, live)
        expected = K.astype(np.float64) @ right
        np.testing.assert_allclose(matrix.matvec(right), expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(matrix.rows(np.array([3, 1])), K[[3, 1]])
    np.testing.assert_array_equal(matrix.block(np.array([3, 1]), np.array([2])), K[[3, 1], 2:3])
    np.testing.assert_array_equal(matrix.diagonal(), np.diagonal(K))


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((3, 4)), r"square.*\(3, 4\)"),
        (np.ones(3), r"square.*\(3,\)"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not finite"),
        (np.array([[1.0, np.inf], [np.inf, 1.0]]), "not finite"),
        (np.array([[1.0, 0.5], [0.4, 1.0]]), "not symmetric.*0.1"),
        (np.eye(2) * 1j, "real numbers"),
        (sparse.eye_array(3), "dense"),
    ],
)
def test_a_matrix_that_is_none_is_refused(K: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel_matrix(Precomputed(), K)


def test_asymmetry_by_rounding_is_accepted() -> None:
    K = pairwise.rbf_kernel(data(), data())
    assert checked_precomputed(K * (1 + 1e-14 * data(N, N))) is not None
    single = (K * (1 + 1e-7 * data(N, N))).astype(np.float32)
    assert checked_precomputed(single) is single


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, z: x @ np.triu(np.ones((5, 5))) @ z.T, "not symmetric"),
        (lambda x, z: (x - x.mean(axis=0)) @ (z - z.mean(axis=0)).T, "among others"),
        (lambda x, z: np.ones((len(x), 3)), "shape"),
        (lambda x, z: np.full((len(x), len(z)), np.inf), "not finite"),
    ],
)
def test_functions_are_tried_out(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kernel_matrix(Custom(function), data())


def assert_factor_of(factor: LowRankFactor, K: np.ndarray) -> None:
    G = factor.factor
    scale = max(np.abs(K).max(initial=0.0), 1e-300)
    assert G.shape == (len(K), factor.rank)
    assert np.unique(factor.pivots).size == factor.rank
    assert (factor.residual >= 0).all()
    rest = K - G @ G.T
    np.testing.assert_allclose(rest.diagonal(), factor.residual, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(rest[factor.pivots], 0.0, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("kernel", DEFINITE, ids=repr)
@pytest.mark.parametrize("block", [1, 8, 128])
def test_a_complete_factor_reproduces_the_matrix(kernel: Kernel, block: int) -> None:
    X = data(300)
    matrix = kernel_matrix(kernel, X)
    K = whole(matrix)
    factor = factorise(matrix, block=block)
    assert_factor_of(factor, K)
    assert np.abs(K - factor.factor @ factor.factor.T).max() <= 1e-10 * K.diagonal().max()
    assert factor.residual.sum() <= 1e-12 * np.trace(K)


@given(st.integers(1, 40), st.integers(1, 4), st.sampled_from(DEFINITE), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_any_samples_with_repetitions_are_factorised(
    n: int, p: int, kernel: Kernel, seed: int
) -> None:
    X = np.random.default_rng(seed).integers(-2, 3, size=(n, p)).astype(float)
    K = kernel(X, X)
    for matrix in (kernel_matrix(kernel, X), stored((K + K.T) / 2)):
        factor = factorise(matrix, block=7, rng=np.random.default_rng(seed))
        assert_factor_of(factor, K)
        assert factor.rank <= len(np.unique(X, axis=0))
        assert np.abs(K - factor.factor @ factor.factor.T).max() <= 1e-10 * K.diagonal().max()


def test_the_rank_bounds_the_factor_and_extending_equals_going_on() -> None:
    matrix = kernel_matrix(Rbf(0.5), data(400))
    K = whole(matrix)
    short = factorise(matrix, rank=50, block=16)
    before = short.factor.copy()
    longer = short.extend(120)
    assert (short.rank, longer.rank) == (50, 120)
    for factor in (short, longer):
        assert_factor_of(factor, K)
    np.testing.assert_array_equal(short.factor, before)
    np.testing.assert_array_equal(longer.factor[:, :50], before)
    assert longer.residual.sum() < short.residual.sum()
    assert_factor_of(longer.extend(), K)
    assert longer.extend(10).rank == 120


def test_pivots_are_close_to_the_best_there_can_be() -> None:
    X = data(500, 3)
    K = Rbf(0.3)(X, X)
    best = np.cumsum(np.linalg.eigvalsh(K)[::-1])
    matrix = kernel_matrix(Rbf(0.3), X)
    factors = [factorise(matrix, rank=40, rng=np.random.default_rng(seed)) for seed in range(10)]
    errors = [factor.residual.sum() for factor in factors]
    # random pivots one at a time are 3.1 times the best on average, the largest residuals 5.3
    assert np.mean(errors) <= 3.6 * (np.trace(K) - best[39])


def test_the_same_generator_gives_the_same_factor() -> None:
    matrix = kernel_matrix(Rbf(0.5), data())
    one, two = (factorise(matrix, rank=20, rng=np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one.factor, two.factor)


def test_a_factor_is_exact_at_the_combinations_it_is_continued_along() -> None:
    matrix = kernel_matrix(Rbf(0.3), data())
    K = whole(matrix)
    weights = np.random.default_rng(1).standard_normal((N, 3))
    weights[:, 2] = weights[:, 0] - 2.0 * weights[:, 1]
    factor = factorise(matrix, rank=20)
    finer = factor.along(weights, K @ weights)
    assert finer.rank == 22  # the third is a combination of the others
    G = finer.factor
    np.testing.assert_allclose(G @ (G.T @ weights), K @ weights, atol=1e-11)
    np.testing.assert_allclose(finer.residual, np.diag(K - G @ G.T), atol=1e-13)
    assert np.linalg.eigvalsh(K - G @ G.T)[0] > -1e-12
    whole_factor = finer.extend().factor
    np.testing.assert_allclose(whole_factor @ whole_factor.T, K, atol=1e-10)
    assert finer.along(weights, K @ weights) is finer


def test_a_factor_ends_soon_after_its_deadline() -> None:
    factor = factorise(kernel_matrix(Rbf(1e3), data()), block=8, deadline=0.0)
    assert 0 < factor.rank <= 8
    assert not factor.is_complete
    assert factor.extend().is_complete


def test_identical_samples_have_rank_one() -> None:
    for kernel in DEFINITE:
        factor = factorise(kernel_matrix(kernel, np.tile(data(1), (50, 1))))
        assert factor.rank == 1
        assert factor.residual.sum() == pytest.approx(0.0, abs=1e-10)


def test_samples_far_apart_have_full_rank() -> None:
    factor = factorise(kernel_matrix(Rbf(1e6), data()))
    assert factor.rank == N
    assert factor.residual.sum() == 0.0
    np.testing.assert_allclose(factor.factor @ factor.factor.T, np.eye(N), atol=1e-14)


def test_one_sample_is_a_square_root() -> None:
    factor = factorise(kernel_matrix(Linear(), np.array([[3.0, 4.0]])))
    np.testing.assert_allclose(factor.factor, [[5.0]])


def test_the_zero_matrix_has_no_columns() -> None:
    for matrix in (kernel_matrix(Linear(), np.zeros((4, 2))), stored(np.zeros((4, 4)))):
        assert factorise(matrix).factor.shape == (4, 0)


def test_samples_of_very_different_size_are_factorised() -> None:
    X = data() * np.logspace(-3, 3, N)[:, None]
    matrix = kernel_matrix(Linear(), X)
    factor = factorise(matrix, tol=0.0)
    assert factor.rank == 5
    np.testing.assert_allclose(factor.factor @ factor.factor.T, X @ X.T, rtol=1e-6, atol=1e-8)


def test_distances_known_to_few_digits_are_factorised_no_further() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([centre + 1e-4 * data(100, 3) for centre in 1e2 * data(3, 3)])
    matrix = kernel_matrix(Rbf(1e6), X[rng.permutation(300)])
    factor = factorise(matrix)
    error = np.abs(whole(matrix) - factor.factor @ factor.factor.T).max()
    assert 1e-12 < error < 1e3 * matrix.precision < 1e-2
    assert factor.residual.sum() > 0


def test_a_single_precision_matrix_is_factorised_to_single_precision() -> None:
    K = pairwise.rbf_kernel(data(200), gamma=0.2).astype(np.float32)
    K = (K + K.T) / 2
    factor = factorise(stored(K))
    assert np.abs(K - factor.factor @ factor.factor.T).max() <= 1e-4


def indefinite(kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    values = {
        "one negative": np.append(np.linspace(0.1, 2, 59), -0.01),
        "low rank": np.concatenate([np.zeros(55), [3.0, 2.0, 1.0, 0.5, -1e-6]]),
        "negative": -np.linspace(0.1, 2, 60),
    }
    K = (basis * values[kind]) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize("kind", ["one negative", "low rank", "negative"])
@pytest.mark.parametrize("rank", [None, 3])
def test_a_negative_eigenvalue_is_found(kind: str, rank: int | None) -> None:
    with pytest.raises(IndefiniteKernelError, match=r"not positive semidefinite.* -") as caught:
        factorise(stored(indefinite(kind)), rank=rank)
    assert caught.value.amount < 0


@pytest.mark.parametrize("kind", ["one negative", "low rank", "negative"])
def test_pivots_alone_reveal_a_negative_eigenvalue(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "PROBE_SAMPLES", 1)
    with pytest.raises(IndefiniteKernelError):
        factorise(stored(indefinite(kind)), block=4)


def test_a_zero_diagonal_hides_nothing() -> None:
    with pytest.raises(IndefiniteKernelError, match="-1"):
        factorise(stored(np.array([[0.0, 1.0], [1.0, 0.0]])))


def test_entries_beyond_the_diagonal_are_indefinite() -> None:
    with pytest.raises(IndefiniteKernelError, match=r"-0\.5"):
        factorise(stored(np.array([[1.0, 1.5], [1.5, 1.0]])))


def test_a_sigmoid_that_is_indefinite_is_refused() -> None:
    with pytest.raises(IndefiniteKernelError, match="'rbf'"):
        factorise(kernel_matrix(Sigmoid(0.5, -1.0), data()))


def test_a_sigmoid_that_is_definite_on_the_data_is_factorised() -> None:
    X = np.eye(20)
    matrix = kernel_matrix(Sigmoid(0.5, 0.0), X)
    assert_factor_of(factorise(matrix), whole(matrix))


def test_a_definite_function_and_its_rounding_pass_the_check() -> None:
    for K in (pairwise.rbf_kernel(data(400)), np.ones((400, 400)), data() @ data().T):
        check_definite(stored((K + K.T) / 2), np.random.default_rng(0))
    matrix = kernel_matrix(Custom(pairwise.laplacian_kernel), data(200))
    assert_factor_of(factorise(matrix), whole(matrix))


def test_the_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(IndefiniteKernelError(-0.5, 2.0)))
    assert (error.amount, error.scale) == (-0.5, 2.0)
    assert isinstance(error, ValueError)
