"""A fit leaves what it was given as it was, whatever the type; estimators clone and pickle."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from tests.cases import DENSE_DATA, ESTIMATORS, MULTICLASS, SPARSE_DATA, small_matrix

every_estimator = pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
DATA = {**DENSE_DATA, **SPARSE_DATA}


def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    matrix = small_matrix(rng, n=24, p=6)
    y = np.where(matrix[:, 0] + matrix[:, 3] + rng.standard_normal(24) > 0, "yes", "no")
    return matrix, y, rng.integers(1, 3, 24).astype(float)


def bits(data: Any) -> list[Any]:
    """Everything there is to see of an array or a compressed matrix."""
    parts = [data.data, data.indices, data.indptr] if sp.issparse(data) else [data]
    return [(part.dtype, part.shape, part.strides, part.tobytes()) for part in parts]


@pytest.mark.sampled(8)
@every_estimator
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("standardize", [False, True])
def test_a_fit_leaves_its_inputs_bit_for_bit(make, name: str, standardize: bool, rng) -> None:
    matrix, y, weights = sample(rng)
    X = DATA[name](matrix)
    arguments = (X, y, weights)
    before = [bits(argument) for argument in arguments]
    model = make(standardize=standardize).fit(X, y, sample_weight=weights)
    model.decision_function(X)
    model.predict(X)
    assert [bits(argument) for argument in arguments] == before


@every_estimator
@pytest.mark.parametrize("kind", ["dense", "CSR", "CSC"])
def test_a_fit_takes_arrays_that_cannot_be_written(make, kind: str, rng) -> None:
    matrix, y, weights = sample(rng)
    X = {"dense": np.asarray, "CSR": sp.csr_matrix, "CSC": sp.csc_matrix}[kind](
        matrix.astype(float)
    )
    free = make().fit(X, y, sample_weight=weights)
    for part in ([X.data, X.indices, X.indptr] if sp.issparse(X) else [X]) + [y, weights]:
        part.setflags(write=False)
    frozen = make().fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(frozen.coef_, free.coef_)
    np.testing.assert_array_equal(frozen.predict(X), free.predict(X))


@every_estimator
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_fit_takes_a_memory_map_and_leaves_the_file(make, order: str, rng, tmp_path) -> None:
    matrix, y, _ = sample(rng)
    X = np.asarray(matrix, dtype=float, order=order)
    path = tmp_path / "X.npy"
    np.save(path, X)
    stored = path.read_bytes()
    mapped = np.load(path, mmap_mode="r")
    np.testing.assert_array_equal(make().fit(mapped, y).coef_, make().fit(X, y).coef_)
    assert path.read_bytes() == stored


@every_estimator
def test_every_type_of_the_same_data_gives_the_same_model(make, rng) -> None:
    matrix, y, weights = sample(rng)
    reference = make(tol=1e-11).fit(matrix.astype(float), y, sample_weight=weights)
    for name, kind in DATA.items():
        model = make(tol=1e-11).fit(kind(matrix), y, sample_weight=weights)
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5, err_msg=name)
        primal = reference.certificate_.primal
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-9), name


@every_estimator
def test_an_unsorted_matrix_with_duplicates_is_summed_but_not_changed(make, rng) -> None:
    matrix, y, _ = sample(rng)
    tidy = sp.csr_matrix(matrix.astype(float))
    halves = sp.csr_matrix(
        (np.repeat(tidy.data, 2) / 2, np.repeat(tidy.indices, 2), 2 * tidy.indptr), tidy.shape
    )
    for row in range(24):
        part = slice(halves.indptr[row], halves.indptr[row + 1])
        halves.indices[part] = halves.indices[part][::-1]
        halves.data[part] = halves.data[part][::-1]
    halves.has_sorted_indices = False
    before = bits(halves)
    model, plain = make(tol=1e-10).fit(halves, y), make(tol=1e-10).fit(tidy, y)
    assert bits(halves) == before
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)


@every_estimator
def test_a_fit_leaves_the_parameters_and_a_clone_fits_the_same(make, rng) -> None:
    matrix, y, _ = sample(rng)
    options = {"growth": 1.5}
    smooth = {"loss": "squared_hinge"} if make in MULTICLASS.values() else {}
    model = make(
        solver="fapg-star", solver_options=options, class_weight={"yes": 2.0}, tol=1e-8, **smooth
    )
    before = deepcopy(model.get_params())
    model.fit(matrix, y)
    assert model.get_params() == before
    twin = clone(model)
    assert not hasattr(twin, "coef_")
    np.testing.assert_array_equal(twin.fit(matrix, y).coef_, model.coef_)


@every_estimator
def test_a_fitted_estimator_survives_pickling(make, rng) -> None:
    matrix, y, _ = sample(rng)
    model = make().fit(matrix, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.decision_function(matrix), model.decision_function(matrix))
    assert loaded.certificate_ == model.certificate_
    assert loaded.get_params() == model.get_params()
