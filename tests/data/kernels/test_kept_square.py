"""The kernel matrix of a changing set of samples, against the matrix computed at once."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from collections.abc import Callable
from typing import Any
from weakref import ref

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from proxmargin.data.designs import as_design
from proxmargin.data.kernels import Polynomial, Precomputed, Rbf
from proxmargin.data.kernels import matrix as matrix_module
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KeptSquare, KernelDesign, KernelMatrix

N = 30
X = np.random.default_rng(5).standard_normal((N, 4)) + 2.0
MATRICES: dict[str, tuple[KernelMatrix, Any]] = {
    "rbf": (kernel_matrix(Rbf(0.3), X), rbf_kernel(X, gamma=0.3)),
    "poly": (kernel_matrix(Polynomial(3, 0.2, 1.0), X), polynomial_kernel(X, X, 3, 0.2, 1.0)),
    "given": (kernel_matrix(Precomputed(), rbf_kernel(X, gamma=0.1)), rbf_kernel(X, gamma=0.1)),
}
sets = st.lists(st.sets(st.integers(0, N - 1), min_size=1, max_size=N), min_size=1, max_size=5)


@given(sets, st.sampled_from(sorted(MATRICES)), st.sampled_from([np.float32, np.float64]))
def test_every_set_has_its_matrix(wanted: list[set[int]], name: str, dtype: Any) -> None:
    matrix, plain = MATRICES[name]
    square = KeptSquare(matrix, dtype)
    for one in wanted:
        order, store = square.of(np.array(sorted(one)))
        assert sorted(order) == sorted(one)
        found = store[: order.size, : order.size]
        tolerance = 1e-5 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(found, plain[np.ix_(order, order)], rtol=tolerance)
        np.fill_diagonal(store, np.nan)  # the diagonal is the caller's to write into


def test_only_new_samples_are_computed() -> None:
    matrix = kernel_matrix(Rbf(0.3), X)
    square = matrix.square(np.dtype(np.float32))
    square.of(np.arange(10))
    before = matrix.counter.passes
    order, _ = square.of(np.arange(10))
    assert matrix.counter.passes == before
    np.testing.assert_array_equal(order, np.arange(10))
    order, _ = square.of(np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 20]))
    assert order[9] == 20
    assert matrix.counter.passes - before == pytest.approx(10 / N**2)


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, plain = MATRICES["rbf"]
    monkeypatch.setattr(matrix_module, "BLOCK_ENTRIES", 25)
    square = KeptSquare(matrix, np.float64)
    for index in (np.arange(12), np.arange(5, 25)):
        order, store = square.of(index)
        found = store[: order.size, : order.size]
        np.testing.assert_allclose(found, plain[np.ix_(order, order)], rtol=1e-11)


def test_a_matrix_keeps_one_square_and_a_part_has_its_own() -> None:
    matrix = kernel_matrix(Rbf(0.3), X)
    single = matrix.square(np.dtype(np.float32))
    assert matrix.square(np.dtype(np.float32)) is single
    assert matrix.part(np.arange(5)).square(np.dtype(np.float32)) is not single
    assert matrix.square(np.dtype(np.float64)) is not single


@pytest.mark.parametrize("name", sorted(MATRICES))
def test_a_block_in_single_precision_has_the_values_of_the_block(name: str) -> None:
    matrix, _ = MATRICES[name]
    rows, columns = np.arange(20), np.array([3, 25, 7])
    values = matrix.single_block(rows, columns)
    np.testing.assert_allclose(values, matrix.block(rows, columns), rtol=1e-5)


def test_sparse_samples_have_a_block_too() -> None:
    matrix = kernel_matrix(Rbf(0.3), csr_array(X))
    values = matrix.single_block(np.arange(5), np.arange(30))
    np.testing.assert_allclose(values, rbf_kernel(X[:5], X, gamma=0.3), rtol=1e-12)


def test_groups_stay_apart_and_keep_their_places() -> None:
    matrix, plain = MATRICES["rbf"]
    square = KeptSquare(matrix, np.float64)
    for first, second in ((range(8), range(8, 18)), (range(2, 11), range(11, 20)), ([29], [3, 4])):
        groups = np.array(list(first)), np.array(list(second))
        order, store = square.of(*groups)
        assert set(order[: groups[0].size]) == set(groups[0])
        assert set(order[groups[0].size :]) == set(groups[1])
        found = store[: order.size, : order.size]
        np.testing.assert_allclose(found, plain[np.ix_(order, order)], rtol=1e-11)
    before = matrix.counter.passes
    square.of(np.array([29]), np.array([3, 4]))
    assert matrix.counter.passes == before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_symmetry_halves_a_square_that_is_all_new(dtype: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(matrix_module, "TILE_ROWS", 4)
    matrix = kernel_matrix(Rbf(0.3), X)
    order, store = KeptSquare(matrix, dtype).of(np.arange(N))
    expected = rbf_kernel(X, gamma=0.3)[np.ix_(order, order)]
    np.testing.assert_allclose(store, expected, rtol=1e-5 if dtype == np.float32 else 1e-11)
    assert matrix.counter.passes < 0.6


def test_a_matrix_and_its_square_are_freed_without_the_garbage_collector() -> None:
    matrix = kernel_matrix(Rbf(1.0), np.ones((5, 2)))
    matrix.square(np.dtype(np.float64)).of(np.arange(5))
    alive = ref(matrix)
    gc.disable()
    try:
        del matrix
        assert alive() is None
    finally:
        gc.enable()


def joblib_copy(value: object) -> Any:
    stream = io.BytesIO()
    joblib.dump(value, stream)
    stream.seek(0)
    return joblib.load(stream)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "joblib": joblib_copy,
}


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", MATRICES)
def test_a_copy_of_a_used_matrix_or_design_is_whole_and_keeps_for_itself(
    name: str, make: Callable[[Any], Any]
) -> None:
    matrix, plain = MATRICES[name]
    matrix.square(np.dtype(np.float64)).of(np.arange(5))
    matrix.matvec(np.ones((N, 1)))
    design = KernelDesign(matrix)
    design.outer_gram()
    for found in (make(matrix), make(design).kernel_matrix):
        np.testing.assert_allclose(found.matvec(np.eye(N)), plain, rtol=1e-11)
    twin = make(matrix)
    square = twin.square(np.dtype(np.float64))
    assert square is not matrix.square(np.dtype(np.float64))
    order, store = square.of(np.arange(3, 12))
    np.testing.assert_allclose(store[:9, :9], plain[np.ix_(order, order)], rtol=1e-11)
    np.testing.assert_allclose(make(design).outer_gram(), plain, rtol=1e-11)


@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("data", [X, csr_array(X)], ids=["dense", "sparse"])
def test_a_copy_of_a_used_design_has_its_products(data: Any, make: Callable[[Any], Any]) -> None:
    design = as_design(data)
    design.outer_gram(), design.rows(np.arange(4)), design.columns(np.arange(2))
    np.testing.assert_allclose(make(design).outer_gram(), X @ X.T, rtol=1e-12)
    np.testing.assert_allclose(make(design).scores(np.eye(4)), X, rtol=1e-12)
