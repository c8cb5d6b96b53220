"""How the data are stored, or how far from the origin they lie, has no part in the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import proxmargin
from proxmargin.data.designs import StandardizedDesign, as_design
from proxmargin.data.kernels import Linear, Polynomial, Rbf, Sigmoid
from tests.cases import ESTIMATORS, KERNEL_MACHINES

# every linear model, and a kernel of inner products, of distances and of anything
NONLINEAR: dict[str, Any] = {
    "rbf": "rbf",
    "poly": "poly",
    "function": lambda left, right: np.exp(-abs_distances(left, right)),
}
MODELS: dict[str, Callable[..., Any]] = {
    **ESTIMATORS,
    **{
        f"{name}, {kernel}": lambda make=make, how=how, **given: make(kernel=how, **given)
        for name, make in KERNEL_MACHINES.items()
        for kernel, how in NONLINEAR.items()
    },
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())


def abs_distances(left: Any, right: Any) -> np.ndarray:
    """Manhattan distances of rows, dense or sparse."""
    left, right = (one.toarray() if sp.issparse(one) else one for one in (left, right))
    return np.abs(left[:, None] - right).sum(axis=2)


def sample(n: int = 36, p: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Single-precision numbers, half of them zero; halves and quarters of them are exact."""
    rng = np.random.default_rng(5)
    X = np.round(rng.standard_normal((n, p)) * 64) / 64 * (rng.random((n, p)) < 0.6)
    y = np.where(X[:, 0] + X[:, 1] + 0.8 * rng.standard_normal(n) > 0, "yes", "no")
    return X, y


def pieces(matrix: np.ndarray, kind: str) -> Any:
    """A compressed matrix whose entries are stored in two pieces, unsorted."""
    rng = np.random.default_rng(0)
    lines = matrix if kind == "csr" else matrix.T
    row, column = np.nonzero(lines)
    row, column = np.tile(row, 2), np.tile(column, 2)
    data = lines[row, column] * np.repeat([0.25, 0.75], row.size // 2)
    order = rng.permutation(row.size)
    order = order[np.argsort(row[order], kind="stable")]
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(lines)))])
    parts = (data[order], column[order].astype(np.int32), ends.astype(np.int32))
    return {"csr": sp.csr_array, "csc": sp.csc_array}[kind](parts, shape=matrix.shape)


def unsorted(matrix: np.ndarray) -> Any:
    tidy = sp.csr_array(matrix)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(tidy.indptr)])
    return sp.csr_array((tidy.data[order], tidy.indices[order], tidy.indptr), shape=matrix.shape)


def every_entry(matrix: np.ndarray) -> Any:
    """CSR that stores its zeros, too."""
    n, p = matrix.shape
    return sp.csr_array((matrix.ravel(), np.tile(np.arange(p), n), p * np.arange(n + 1)), (n, p))


def some_zeros(matrix: np.ndarray) -> Any:
    """CSC that stores some of its zeros, too."""
    added = sp.csc_array(matrix + 1.0 * (np.arange(matrix.size) % 3 == 0).reshape(matrix.shape))
    added.data -= 1.0 * ((added.indices * matrix.shape[1] + _columns(added)) % 3 == 0)
    return added


def _columns(matrix: Any) -> np.ndarray:
    return np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr))


def spare_room(matrix: np.ndarray) -> Any:
    """CSR whose arrays are longer than what is stored, with rubbish at their ends."""
    tidy = sp.csr_array(matrix)
    tidy.data = np.concatenate([tidy.data, [np.nan, 1e300]])
    tidy.indices = np.concatenate([tidy.indices, np.zeros(2, dtype=tidy.indices.dtype)])
    return tidy


def long_indices(matrix: Any) -> Any:
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "F order": np.asfortranarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_matrix,
    "CSR in pieces": lambda m: pieces(m, "csr"),
    "CSC in pieces": lambda m: pieces(m, "csc"),
    "CSR in pieces, 64 bit": lambda m: long_indices(pieces(m, "csr")),
    "CSR in pieces, float32": lambda m: pieces(m, "csr").astype(np.float32),
    "CSR unsorted": unsorted,
    "CSR of every entry": every_entry,
    "CSC with zeros": some_zeros,
    "CSR with spare room": spare_room,
    "float32": lambda m: m.astype(np.float32),
    "CSC, float32": lambda m: sp.csc_array(m.astype(np.float32)),
}
every_form = pytest.mark.parametrize("form", FORMS)


def read_only(data: Any) -> Any:
    for part in (data.data, data.indices, data.indptr) if sp.issparse(data) else (data,):
        part.setflags(write=False)
    return data


def looks(data: Any) -> list[Any]:
    """All there is to see of data: the arrays themselves, and their numbers."""
    parts = (data.data, data.indices, data.indptr) if sp.issparse(data) else (data,)
    return [(id(part), part.dtype, part.shape, part.tobytes()) for part in parts]


CHOSEN = ("gamma_", "nu_", "kappa_")


def kept(
    model: Any, names: tuple[str, ...] = (*CHOSEN, "feature_centre_", "feature_scale_")
) -> Any:
    """What the data decided."""
    return [getattr(model, name) for name in names if getattr(model, name, None) is not None]


@cache
def plain_fit(make: Any, standardize: bool) -> Any:
    """The model of the dense data, which all forms are compared to."""
    return make(standardize=standardize, tol=1e-10).fit(*sample())


@pytest.mark.sampled(8)
@every_model
@every_form
@pytest.mark.parametrize("standardize", [False, True])
def test_every_form_of_the_data_gives_the_same_model(
    make: Any, form: str, standardize: bool
) -> None:
    X, y = sample()
    given = read_only(FORMS[form](X))
    before = looks(given)
    plain = plain_fit(make, standardize)
    model = make(standardize=standardize, tol=1e-10).fit(given, y)
    scores = plain.decision_function(X)
    close = {"rtol": 0.0, "atol": 1e-5 * np.abs(scores).max()}
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)
    for found, expected in zip(kept(model), kept(plain), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    for one, data in ((model, X), (model, given), (plain, given)):
        np.testing.assert_allclose(one.decision_function(data), scores, **close)
    assert looks(given) == before


@every_form
@pytest.mark.parametrize("standardize", [False, True])
def test_every_form_of_the_data_gives_the_same_design(form: str, standardize: bool, rng) -> None:
    X, _ = sample()
    design, samples, features = as_design(FORMS[form](X)), rng.random(36), rng.random(5)
    mean, scale = (X.mean(axis=0), X.std(axis=0)) if standardize else (np.zeros(5), np.ones(5))
    if standardize:
        design = StandardizedDesign(design, mean, scale)
    seen, centre = (X - mean) / scale, 0.3 * rng.standard_normal(5)
    off = seen - centre
    close = {"rtol": 1e-11, "atol": 1e-12}
    np.testing.assert_allclose(design.scores(features[:, None])[:, 0], seen @ features, **close)
    np.testing.assert_allclose(design.adjoint(samples[:, None])[:, 0], samples @ seen, **close)
    np.testing.assert_allclose(design.row_squares(features, centre), off**2 @ features, **close)
    np.testing.assert_allclose(design.column_squares(samples, centre), samples @ off**2, **close)
    np.testing.assert_allclose(design.gram(samples, centre), (off.T * samples) @ off, **close)
    np.testing.assert_allclose(design.inner_products(features), (seen * features) @ seen.T, **close)
    around = seen - samples @ seen / samples.sum()
    gram = design.centred_gram(samples / samples.sum())
    np.testing.assert_allclose(gram, around @ around.T, **close)


@every_form
@pytest.mark.parametrize(
    "kernel", [Linear(), Rbf(0.3), Polynomial(3, 0.5, 1.5), Sigmoid(0.2, -0.4)], ids=repr
)
def test_every_form_of_the_data_gives_the_same_kernel_from_any_point(form: str, kernel) -> None:
    X, _ = sample()
    origin = np.array([0.5, 0.0, -2.0, 1.0, 0.25])
    expected = kernel(X - origin, X - origin)
    about, close = kernel.standardized(origin), {"rtol": 1e-11, "atol": 1e-11}
    given = FORMS[form](X)
    for right in (sp.csr_array(X), sp.csc_array(X), every_entry(X)):
        np.testing.assert_allclose(about(given, right), expected, **close)
    np.testing.assert_allclose(about.diagonal(sp.csr_array(X)), expected.diagonal(), **close)


# -- far from the origin ------------------------------------------------------------------------


def grid(offset: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples to which adding the offset is exact."""
    rng = np.random.default_rng(3)
    X = np.round(rng.standard_normal((60, 4)) * 64) / 64
    y = np.where(X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.standard_normal(60) > 0, "yes", "no")
    return X + offset, y


STORED: dict[str, Callable[[np.ndarray], Any]] = {
    "dense": np.asarray,
    "CSR": sp.csr_array,
    "CSC": sp.csc_array,
}


@pytest.mark.filterwarnings("ignore:NuSVC stopped before")  # by rounding of the scores at 1e-6
@pytest.mark.sampled(4)
@every_model
@pytest.mark.parametrize("form", STORED)
def test_an_offset_changes_no_standardised_model(make: Any, form: str) -> None:
    X, y = grid(0.0)
    far, _ = grid(1e8)
    near, model = make(standardize=True).fit(X, y), make(standardize=True).fit(STORED[form](far), y)
    for found, expected in zip(kept(model, CHOSEN), kept(near, CHOSEN), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    scores = near.decision_function(X)
    clear = np.abs(scores) > 1e-2 * np.abs(scores).max()
    for data in (far, sp.csr_array(far), sp.csc_array(far)):
        np.testing.assert_array_equal(model.predict(data)[clear], near.predict(X)[clear])


@pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
@pytest.mark.parametrize("form", STORED)
def test_an_offset_changes_no_model_of_distances(make: Any, form: str) -> None:
    X, y = grid(0.0)
    far, _ = grid(1e8)
    near, model = make(kernel="rbf").fit(X, y), make(kernel="rbf").fit(STORED[form](far), y)
    for found, expected in zip(kept(model), kept(near), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    scores = near.decision_function(X)
    for data in (far, sp.csr_array(far), sp.csc_array(far)):
        close = {"atol": 1e-4 * np.abs(scores).max()}
        np.testing.assert_allclose(model.decision_function(data), scores, **close)


@pytest.mark.parametrize("form", STORED)
@pytest.mark.parametrize("offset", [1e8, 1e10])
def test_an_offset_changes_neither_kappa_nor_the_nu_of_distances(form: str, offset: float) -> None:
    X, y = grid(0.0)
    far = STORED[form](grid(offset)[0])
    for model in ("fda", "mpm"):
        expected = proxmargin.kappa_max(X, y, model)
        assert proxmargin.kappa_max(far, y, model) == pytest.approx(expected, rel=1e-5)
    few = {"max_iter": 0, "standardize": True}
    with pytest.warns(match="stopped before"):
        expected = proxmargin.DWD(**few).fit(X, y).nu_
    with pytest.warns(match="stopped before"):
        assert proxmargin.DWD(**few).fit(far, y).nu_ == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("by_rows", [True, False])
def test_a_column_filled_by_the_rows_with_weight_keeps_its_digits(by_rows: bool, rng) -> None:
    X = np.round(64 * rng.standard_normal((40, 3))) / 64
    far = X + np.array([1e8, 0.0, 1e4])
    weights = (np.arange(40) % 3 > 0) / 26.0
    far[weights == 0] = 0.0  # not stored
    design = as_design(sp.csr_array(far) if by_rows else sp.csc_array(far))
    live, share = X[weights > 0], weights[weights > 0]
    mean = share @ live
    centre = mean + np.array([1e8, 0.0, 1e4])
    np.testing.assert_allclose(
        design.column_squares(weights, centre), share @ (live - mean) ** 2, rtol=1e-6
    )
    wanted = ((live - mean).T * share) @ (live - mean)
    np.testing.assert_allclose(design.gram(weights, centre), wanted, atol=1e-6)


def test_an_almost_full_column_keeps_the_digits_of_distances(rng) -> None:
    X = np.round(64 * rng.standard_normal((60, 3))) / 64
    far = X + 1e8
    far[7, 1] = far[20, 0] = 0.0
    near = np.setdiff1d(np.arange(60), [7, 20])
    K = Rbf(0.5)(sp.csr_array(far), sp.csr_array(far))
    np.testing.assert_allclose(K[np.ix_(near, near)], Rbf(0.5)(X[near], X[near]), atol=1e-6)
    np.testing.assert_array_equal(K[7, near], 0.0)
