"""Kernels are scikit-learn's, on whatever data; their parameters are checked."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from proxmargin.data.designs.samples import TILE_COLUMNS, TILE_ROWS, by_rows
from proxmargin.data.kernels import (
    Custom,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Rbf,
    Sigmoid,
    named_kernel,
    resolve_gamma,
)

KERNELS = {
    Linear(): pairwise.linear_kernel,
    Rbf(0.3): lambda x, z: pairwise.rbf_kernel(x, z, gamma=0.3),
    Polynomial(3, 0.5, 1.5): lambda x, z: pairwise.polynomial_kernel(x, z, 3, 0.5, 1.5),
    Polynomial(4, 0.2, -1.0): lambda x, z: pairwise.polynomial_kernel(x, z, 4, 0.2, -1.0),
    Sigmoid(0.2, -0.4): lambda x, z: pairwise.sigmoid_kernel(x, z, 0.2, -0.4),
}
SOME = {"gamma": "scale", "degree": 3, "coef0": 0.0}


def data(n: int, p: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.6)


def wide_indices(X: Any) -> Any:
    """The same compressed matrix with 64-bit indices."""
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def unsorted_with_duplicates(X: np.ndarray) -> Any:
    """CSR in which every entry is stored twice, as halves."""
    half = sparse.csr_matrix(X / 2)
    twice = sparse.hstack([half, half]).tocsr()
    return sparse.csr_matrix((twice.data, twice.indices % X.shape[1], twice.indptr), X.shape)


FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "csr float32, 64 bit": lambda X: wide_indices(sparse.csr_array(X.astype(np.float32))),
    "duplicate entries": unsorted_with_duplicates,
}


def dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if sparse.issparse(X) else X).astype(np.float64)


def read_only(X: Any) -> Any:
    for part in (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else ():
        part.flags.writeable = False
    if isinstance(X, np.ndarray):
        X.flags.writeable = False
    return X


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.pairwise
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("left", FORMS)
@pytest.mark.parametrize("right", ["C", "float32", "csr", "csc", "duplicate entries"])
def test_kernels_are_those_of_scikit_learn(kernel: Kernel, left: str, right: str) -> None:
    X, Z = read_only(FORMS[left](data(23, 6))), read_only(FORMS[right](data(17, 6, seed=1)))
    assert_close(kernel(X, Z), KERNELS[kernel](dense(X), dense(Z)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("form", ["C", "csr"])
def test_values_across_tiles_are_those_of_scikit_learn(kernel: Kernel, form: str) -> None:
    X, Z = data(2 * TILE_ROWS + 5, 4), data(TILE_COLUMNS + 9, 4, seed=1)
    assert_close(kernel(FORMS[form](X), FORMS[form](Z)), KERNELS[kernel](X, Z))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("form", FORMS)
def test_the_diagonal_is_that_of_the_matrix(kernel: Kernel, form: str) -> None:
    X = FORMS[form](data(31, 5))
    assert_close(kernel.diagonal(X), np.diagonal(kernel(X, X)))


@given(st.integers(0, 12), st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_sparse_and_dense_data_have_the_same_kernels(n: int, p: int, seed: int) -> None:
    X, Z = data(n, p, seed), data(7, p, seed + 1)
    for kernel in KERNELS:
        values = kernel(X, Z)
        for form in (sparse.csr_array, sparse.csc_array):
            np.testing.assert_allclose(kernel(form(X), form(Z)), values, rtol=1e-10, atol=1e-11)
            np.testing.assert_allclose(kernel(form(X), Z), values, rtol=1e-10, atol=1e-11)


@given(st.integers(0, 40))
@settings(max_examples=41, deadline=None)
def test_powers_are_right_for_every_degree(degree: int) -> None:
    X = data(6, 3)
    expected = pairwise.polynomial_kernel(X, X, degree, 0.7, 0.3) if degree else np.ones((6, 6))
    np.testing.assert_allclose(Polynomial(degree, 0.7, 0.3)(X, X), expected, rtol=1e-12, atol=0)


def test_a_common_offset_costs_distances_no_digits() -> None:
    X = data(40, 3)
    grid = np.round(X * 2**10) / 2**10  # so that adding the offset is exact
    near, far = Rbf(0.5)(grid, grid), Rbf(0.5)(grid + 2.0**20, grid + 2.0**20)
    np.testing.assert_allclose(far, near, rtol=1e-12)


def test_distances_are_never_negative() -> None:
    X = np.repeat(1e6 * data(4, 3), 5, axis=0) + 1e-9 * data(20, 3, seed=1)
    assert Rbf(1e3)(X, X).max() <= 1.0


def test_rounding_is_what_distances_pass_on_and_none_where_nothing_is_left_of_them() -> None:
    X = np.random.default_rng(0).standard_normal((90, 3)) @ np.diag([1.0, 1.0, 1e-4])
    assert Rbf(0.3).mean_rounding(X) == 1.0 == Linear().mean_rounding(X)
    apart = X + 1e6 * (np.arange(90) % 2)[:, None]  # two clouds, far from the point between them
    assert Rbf(0.3).mean_rounding(apart) > 1e10
    assert Rbf(1e9).mean_rounding(apart) == 1.0
    small = apart.astype(np.longdouble)
    exact = np.exp(-0.3 * ((small[:, None] - small) ** 2).sum(axis=2))
    allowed = np.finfo(float).eps * Rbf(0.3).mean_rounding(apart)
    assert np.abs(Rbf(0.3)(apart, apart) - exact).mean() <= allowed


@pytest.mark.parametrize("kernel", [*KERNELS, Rbf(100.0), Polynomial(9, 1.0, 0.0)], ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", ["plain", "pairs", "outliers", "offset"])
def test_no_value_has_lost_more_than_is_said(kernel: Kernel, form: Any, kind: str) -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))
    X = np.vstack([X, X + 1e-9]) if kind == "pairs" else X
    X = np.vstack([X, X[:2] + 1e4]) if kind == "outliers" else X + 1e5 * (kind == "offset")
    exact = X.astype(np.longdouble)
    if isinstance(kernel, Rbf):
        values = np.exp(-kernel.gamma * ((exact[:, None] - exact) ** 2).sum(axis=2))
    else:
        values = exact @ exact.T
        kernel.transform(values, values)
    others = kernel.others(form(X))
    computed = kernel(form(X), form(X))
    lost = kernel.lost(others, kernel.diagonal(form(X)))
    allowed = lost.relative * np.outer(lost.roots, lost.roots)
    allowed = allowed + lost.own[:, None] + lost.own
    assert (np.abs(computed - values) <= allowed).all()
    weights = np.random.default_rng(1).standard_normal(len(X))
    np.testing.assert_allclose(lost.of(weights), allowed @ np.abs(weights), rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_predictions_by_differences_keep_close_samples_apart(form: Any) -> None:
    X = np.vstack([data(30, 3), 1e6 + data(8, 3, seed=1)])
    kernel, weights = Rbf(1.0), np.random.default_rng(2).standard_normal((38, 2))
    exact = X.astype(np.longdouble)
    values = np.exp(-((exact[:, None] - exact) ** 2).sum(axis=2)) @ weights
    found = kernel.product(form(X), kernel.others(X), weights)
    np.testing.assert_allclose(found, values.astype(float), rtol=1e-12, atol=1e-14)
    near = kernel.product(form(X[:30]), kernel.others(X[:30]), weights[:30])
    np.testing.assert_allclose(near, kernel(X[:30], X[:30]) @ weights[:30], rtol=1e-13)


def test_products_by_differences_have_lost_next_to_nothing() -> None:
    X = np.vstack([data(30, 3), 1e6 + data(2, 3, seed=1)])
    index, weights = np.array([0, 5, 30, 31]), np.array([1e3, -2.0, 1e5, -1e5])
    found = Rbf(1.0).precisely(X, index, weights)
    assert found is not None
    exact = X.astype(np.longdouble)
    values = np.exp(-((exact[:, None] - exact[index]) ** 2).sum(axis=2)) @ weights
    every = np.zeros(32)
    every[index] = weights
    assert (np.abs(found[0] - values) <= found[1].of(every) + 1e-15 * np.abs(values)).all()
    assert found[1].of(every).max() < 1e-8
    assert Rbf(1.0).precisely(sparse.csr_array(X), index, weights) is None
    assert Linear().precisely(X, index, weights) is None


def test_values_are_written_where_asked() -> None:
    X = data(5, 3)
    out = np.empty((5, 5))
    for kernel in (*KERNELS, Custom(pairwise.laplacian_kernel)):
        assert kernel(X, X, out) is out
        np.testing.assert_array_equal(out, kernel(X, X))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_follows_the_rules_of_scikit_learn(gamma: str, form: str) -> None:
    X = FORMS[form](data(30, 4) + (form == "C") * 1e3)
    model = SVC(gamma=gamma).fit(dense(X), np.arange(30) % 2)
    assert resolve_gamma(gamma, X) == pytest.approx(model._gamma, rel=1e-12)


def test_gamma_of_constant_data_is_one_and_a_number_is_itself() -> None:
    assert resolve_gamma("scale", np.full((4, 2), 3.0)) == 1.0
    assert resolve_gamma("scale", sparse.csr_array((4, 2))) == 1.0
    assert resolve_gamma(np.float32(0.5), data(3, 2)) == 0.5


@pytest.mark.parametrize("gamma", ["other", 0.0, -1, np.nan, np.inf, None, [1.0]])
def test_a_wrong_gamma_is_named(gamma: Any) -> None:
    with pytest.raises(ValueError, match=r"gamma is 'scale', 'auto' or a positive number, not"):
        named_kernel("rbf", **{**SOME, "gamma": gamma}, X=data(3, 2))


@pytest.mark.parametrize("degree", [-1, 2.5, "3", None])
def test_a_wrong_degree_is_named(degree: Any) -> None:
    with pytest.raises(ValueError, match="degree"):
        named_kernel("poly", **{**SOME, "degree": degree}, X=data(3, 2))


@pytest.mark.parametrize("name", ["poly", "sigmoid"])
def test_a_wrong_coef0_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="coef0 is a finite number, not nan"):
        named_kernel(name, **{**SOME, "coef0": np.nan}, X=data(3, 2))


def test_names_stand_for_kernels() -> None:
    X = data(9, 4)
    given_as = {"gamma": 0.5, "degree": 2, "coef0": 1.0, "X": X}
    assert named_kernel("linear", **given_as) == Linear()
    assert named_kernel("rbf", **given_as) == Rbf(0.5)
    assert named_kernel("poly", **given_as) == Polynomial(2, 0.5, 1.0)
    assert named_kernel("sigmoid", **given_as) == Sigmoid(0.5, 1.0)
    assert named_kernel("precomputed", **given_as) == Precomputed()
    assert named_kernel(Rbf(2.0), **given_as) == Rbf(2.0)
    custom = named_kernel(pairwise.laplacian_kernel, **given_as)
    assert custom == Custom(pairwise.laplacian_kernel)
    assert_close(custom(X, X[:3]), pairwise.laplacian_kernel(X, X[:3]))
    assert_close(custom.diagonal(X), np.ones(9))


@pytest.mark.parametrize("name", ["gaussian", 3, None])
def test_an_unknown_kernel_is_named_with_those_there_are(name: Any) -> None:
    with pytest.raises(ValueError, match=r"'linear', 'rbf', .* or a function, not "):
        named_kernel(name, **SOME, X=data(3, 2))


def test_samples_with_other_features_are_refused() -> None:
    with pytest.raises(ValueError, match="4 and 5 features"):
        Rbf(1.0)(data(3, 4), data(3, 5))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, z: np.ones(len(x)), "shape"),
        (lambda x, z: np.full((len(x), len(z)), np.nan), "not finite"),
        (lambda x, z: np.full((len(x), len(z)), 1j), "not finite numbers"),
        (lambda x, z: np.full((len(x), len(z)), "a"), "not finite numbers"),
    ],
)
def test_what_a_function_returns_is_checked(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Custom(function)(data(3, 2), data(4, 2))


def test_a_function_may_return_a_sparse_matrix() -> None:
    X = sparse.csr_array(data(6, 3))
    assert_close(Custom(lambda x, z: x @ z.T)(X, X), Linear()(X, X))


def test_precomputed_values_are_picked_by_the_numbers_of_the_training_samples() -> None:
    K = Rbf(1.0)(data(6, 2), data(6, 2)).astype(np.float32)
    kernel, support = Precomputed(), np.array([4, 1])
    anchors = kernel.anchors(K, support)
    np.testing.assert_array_equal(kernel(K[:3], anchors), K[:3][:, support])
    np.testing.assert_array_equal(Rbf(1.0).anchors(K, support), K[support])
    assert_close(kernel.diagonal(K), np.ones(6))


def test_picking_rows_copies_only_data_in_other_formats() -> None:
    X = data(5, 3)
    rows = sparse.csr_array(X)
    assert by_rows(X) is X
    assert by_rows(rows) is rows
    assert by_rows(sparse.csc_array(X)).format == "csr"
    twice = unsorted_with_duplicates(X)
    stored = twice.nnz
    by_rows(twice)
    assert twice.nnz == stored  # the caller's matrix stays as it is


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels_survive_pickling(kernel: Kernel) -> None:
    assert pickle.loads(pickle.dumps(kernel)) == kernel
