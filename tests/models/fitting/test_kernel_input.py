"""Kernel machines on odd data: a right answer, or a sentence that says what is wrong."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    LogisticRegression,
    MarginFDA,
    MarginMPM,
    NuSVC,
)

MODELS = (SVC, L2SVC, LogisticRegression, NuSVC, DWD, MarginFDA, MarginMPM)
every_model = pytest.mark.parametrize("make", MODELS)


def blobs(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    return X, (X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.standard_normal(n) > 0).astype(int)


def mapped(X: np.ndarray, folder: Path) -> np.ndarray:
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@every_model
@pytest.mark.parametrize("form", ["memmap", "object", "text", "fortran", "integers"])
def test_any_form_of_the_numbers_gives_the_same_model(make: Any, form: str, tmp_path: Path) -> None:
    X, y = blobs()
    X = np.round(10.0 * X)
    data = {
        "memmap": lambda: mapped(X, tmp_path),
        "object": lambda: X.astype(object),
        "text": lambda: X.astype(str),
        "fortran": lambda: np.asfortranarray(X),
        "integers": lambda: X.astype(np.int32),
    }[form]()
    plain, other = (make(kernel="rbf").fit(one, y) for one in (X, data))
    assert other.certificate_.converged
    near = 1e-6 if form == "fortran" else 1e-9  # BLAS adds up in another order
    np.testing.assert_allclose(
        plain.decision_function(X), other.decision_function(data), rtol=near, atol=near
    )


@every_model
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed"])
def test_single_precision_is_read_as_it_is(make: Any, kernel: str, tmp_path: Path) -> None:
    X, y = blobs()
    X = X.astype(np.float32)
    data = (X @ X.T).astype(np.float32) if kernel == "precomputed" else X
    # half of the largest kappa or nu is no number that rounding leaves alone
    given = {NuSVC: {"nu": 0.7}, MarginFDA: {"kappa": 0.3}, MarginMPM: {"kappa": 0.2}}.get(make, {})
    one = make(kernel=kernel, **given).fit(mapped(data, tmp_path), y)
    two = make(kernel=kernel, **given).fit(data.astype(np.float64), y)
    assert one.certificate_.converged
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-5)


@pytest.mark.sampled(3)
@every_model
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("data", "labels", "sentence"),
    [
        (lambda X: np.where(X > 2.0, np.nan, X), None, "NaN in row 19, column 3"),
        (lambda X: np.where(X > 2.0, np.inf, X), None, "infinity .* in row 19, column 3"),
        (lambda X: X, np.zeros(60), "one class only"),
        (lambda X: X[:1], np.zeros(1), "1 sample"),
        (lambda X: X[:0], np.zeros(0), "0 sample"),
        (lambda X: X[:, :0], None, "0 feature"),
        (lambda X: X[:, 0], None, "2D array"),
        (lambda X: X, np.linspace(0, 1, 60), "continuous"),
    ],
)
def test_what_is_no_data_is_refused(
    make: Any, kernel: str, data: Any, labels: Any, sentence: str
) -> None:
    X, y = blobs()
    with pytest.raises(ValueError, match=sentence):
        make(kernel=kernel).fit(data(X), y if labels is None else labels)


@every_model
def test_two_samples_are_enough(make: Any) -> None:
    X = np.array([[1.0, 2.0], [3.0, -1.0]])
    model = make(kernel="rbf", gamma=0.5).fit(X, ["b", "a"])
    assert model.certificate_.converged
    np.testing.assert_array_equal(model.predict(X), ["b", "a"])
    # by symmetry both are as far from the decision
    first, second = model.decision_function(X)
    assert first == pytest.approx(-second, abs=1e-3)
    assert first > 0


@every_model
def test_one_feature_and_constant_features_are_data_like_others(make: Any) -> None:
    X, y = blobs()
    extended = np.column_stack([X[:, :1], np.full(60, 7.0)])
    settings = {"kernel": "rbf", "gamma": 0.8}
    if make is NuSVC:
        settings["nu"] = 0.6
    alone, beside = (make(**settings).fit(one, y) for one in (X[:, :1], extended))
    assert alone.certificate_.converged
    np.testing.assert_allclose(
        alone.decision_function(X[:, :1]), beside.decision_function(extended), atol=1e-3
    )


@every_model
@pytest.mark.parametrize("same", ["samples", "both classes"])
def test_samples_that_are_all_the_same_end_truthfully(make: Any, same: str) -> None:
    X, y = blobs()
    data = np.ones((60, 3)) if same == "samples" else np.vstack([X, X])
    labels = y if same == "samples" else np.concatenate([y, 1 - y])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # some say that there is no margin
        model = make(kernel="rbf").fit(data, labels)
    assert model.certificate_.converged
    scores = model.decision_function(data)
    assert np.isfinite(scores).all()
    if same == "samples":
        assert np.ptp(scores) <= 1e-6 * (1.0 + np.abs(scores).max())


@every_model
@pytest.mark.parametrize("scale", [1e12, 1e-12])
def test_a_feature_in_other_units_is_no_harm_once_standardised(make: Any, scale: float) -> None:
    X, y = blobs()
    odd = X.copy()
    odd[:, 1] *= scale
    settings = {"kernel": "rbf", "gamma": 0.3, "standardize": True, "tol": 1e-9}
    one, two = (make(**settings).fit(data, y) for data in (X, odd))
    assert two.certificate_.converged
    np.testing.assert_allclose(
        one.decision_function(X), two.decision_function(odd), rtol=1e-4, atol=1e-4
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        as_it_is = make(kernel="rbf").fit(odd, y)
    certificate = as_it_is.certificate_
    assert certificate.gap >= 0
    assert certificate.converged


@every_model
@pytest.mark.parametrize("gamma", [1e6, 1e9])
def test_samples_without_anything_in_common_are_certified(make: Any, gamma: float) -> None:
    X, y = blobs()
    model = make(kernel="rbf", gamma=gamma).fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("make", [SVC, L2SVC, LogisticRegression])
@pytest.mark.parametrize("C", [1e-8, 1e8])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_extreme_strengths_are_certified(make: Any, C: float, kernel: str) -> None:
    X, y = blobs()
    assert make(kernel=kernel, coef0=1.0, C=C).fit(X, y).certificate_.converged


def test_an_l2_svm_without_a_penalty_to_speak_of_separates_the_classes() -> None:
    X, y = blobs()
    model = L2SVC(kernel="rbf", C=1e12).fit(X, y)
    assert model.certificate_.converged
    margins = (2.0 * y - 1.0) * model.decision_function(X)
    np.testing.assert_array_less(1.0 - 1e-3, margins)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("unit", [1e-60, 1e-30, 1e-8, 1e30, 1e60])
def test_distance_weighted_discrimination_does_not_depend_on_the_units(
    kernel: str, unit: float
) -> None:
    X, y = blobs()
    plain, other = DWD(kernel=kernel).fit(X, y), DWD(kernel=kernel).fit(unit * X, y)
    assert other.certificate_.converged
    change = unit if kernel == "linear" else 1.0
    assert other.certificate_.primal * change == pytest.approx(plain.certificate_.primal, rel=1e-6)
    assert other.nu_ == pytest.approx(plain.nu_ * change**2, rel=1e-9)
    np.testing.assert_allclose(
        other.decision_function(unit * X) / change, plain.decision_function(X), rtol=1e-4, atol=1e-6
    )
    if kernel == "linear":
        assert np.linalg.norm(other.coef_) == pytest.approx(1.0, rel=1e-9)


def test_units_beyond_the_range_of_numbers_are_refused_in_a_sentence() -> None:
    X, y = blobs()
    with pytest.raises(ValueError, match=r"different classes are .*e-70 apart: rescale"):
        DWD().fit(1e-70 * X, y)
    with pytest.raises(ValueError, match="products underflow: rescale"):
        DWD().fit(1e-100 * X, y)


@pytest.mark.parametrize("make", [SVC, L2SVC, NuSVC, MarginFDA, MarginMPM])
def test_kernel_values_whose_products_overflow_are_refused(make: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 3)), np.arange(20) % 2
    with pytest.raises(ValueError, match=r"values of the kernel reach .*smaller gamma"):
        make(kernel="poly", gamma=1e60).fit(X, y)


def test_a_warm_start_of_a_dwd_is_where_it_ended() -> None:
    X, y = blobs()
    model = DWD(warm_start=True, tol=1e-8).fit(X, y)
    first = model.certificate_.n_iter
    assert model.fit(X, y).certificate_.n_iter < first


def test_a_stalled_decomposition_is_gone_on_with_on_a_factor() -> None:
    X, y = blobs()
    settings = {"kernel": "rbf", "nu": "0.5max", "tol": 1e-5}
    model = NuSVC(**settings).fit(X[:, :1], y)
    certificate = model.certificate_
    assert certificate.converged
    assert "'interior-point' went on" in certificate.because
    assert certificate.solver == "interior-point"
    alone = NuSVC(**settings, rank=60).fit(X[:, :1], y).certificate_
    assert certificate.n_iter > alone.n_iter
    assert certificate.primal == pytest.approx(alone.primal, rel=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_a_standardised_model_predicts_sparse_and_dense_samples_alike(kernel: str) -> None:
    X, y = blobs()
    model = SVC(kernel=kernel, standardize=True).fit(X + 3.0, y)
    np.testing.assert_allclose(
        model.decision_function(sparse.csr_array(X + 3.0)),
        model.decision_function(X + 3.0),
        rtol=1e-12,
    )


@pytest.mark.parametrize("offset", [1e3, 1e8])
def test_an_offset_of_full_sparse_features_costs_distances_no_digits(offset: float) -> None:
    X, y = blobs()
    X = np.round(X * 2.0**6) / 2.0**6  # so that adding the offset is exact
    exact = SVC(kernel="rbf", gamma=0.5).fit(X, y).certificate_
    near = SVC(kernel="rbf", gamma=0.5).fit(sparse.csr_array(X + offset), y).certificate_
    assert near.converged
    assert abs(near.primal - exact.primal) <= near.gap + exact.gap


def half_empty(X: np.ndarray, offset: float) -> np.ndarray:
    """Samples far from the origin, with half of their entries missing: by these they differ."""
    return (X + offset) * (np.arange(X.shape[0]) % 4 < 2)[:, None]


def test_distances_of_sparse_samples_that_rounding_has_eaten_are_refused() -> None:
    X, y = blobs()
    SVC(kernel="rbf", gamma=0.5).fit(sparse.csr_array(half_empty(X, 1e3)), y)
    with pytest.raises(ValueError, match="lost in rounding: offsets of the features"):
        SVC(kernel="rbf", gamma=0.5).fit(sparse.csr_array(half_empty(X, 1e8)), y)


def test_predictions_from_distances_that_rounding_has_eaten_are_refused() -> None:
    X, y = blobs()
    model = SVC(kernel="rbf", gamma=0.5).fit(sparse.csr_array(X + 1e8), y)
    model.support_vectors_ = sparse.csr_array(half_empty(X, 1e8)[model.support_])
    with pytest.raises(ValueError, match="lost in rounding: offsets of the features"):
        model.predict(sparse.csr_array(X + 1e8))


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kernel", ["poly", "rbf", "linear"])
def test_entries_stored_in_halves_give_the_model_of_their_sums(kernel, standardize) -> None:
    """And it is the published model that is certified: its scores are those of the sums too."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 4, (24, 5)).astype(float), np.arange(24) % 2
    X[:, 0] += 2.0 * y
    rows, columns = np.nonzero(X)
    order = np.argsort(np.tile(rows, 2), kind="stable")
    values, entries = np.tile(X[rows, columns] / 2, 2)[order], np.tile(columns, 2)[order]
    indptr = np.searchsorted(np.tile(rows, 2)[order], np.arange(25))
    halves = sparse.csr_matrix((values, entries, indptr), shape=X.shape)
    assert halves.nnz == 2 * len(rows)
    options = {"kernel": kernel, "degree": 2, "coef0": 1.0, "gamma": 0.2}
    options = options if kernel != "linear" else {"kernel": kernel}
    make = NuSVC(nu="0.5max", standardize=standardize, tol=1e-9, **options)
    model, plain = clone(make).fit(halves, y), clone(make).fit(sparse.csr_matrix(X), y)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)
    for data in (X, sparse.csr_matrix(X), halves):
        np.testing.assert_allclose(
            model.decision_function(data), plain.decision_function(X), atol=2e-4
        )


@pytest.mark.parametrize(
    ("make", "parameters", "said"),
    [
        *[
            (make, given, said)
            for make in MODELS
            for given, said in [
                ({"solver": "interior-pont"}, "unknown solver 'interior-pont'"),
                ({"solver": "class-newton"}, "cannot take this problem"),
                ({"solver_options": {"eta": 2}}, "need a solver asked for by name"),
                ({"solver": "apg", "solver_options": {"eta": 2}}, "'apg' has no 'eta'"),
                ({"rank": 0}, "rank"),
                ({"class_weight": "balancd"}, "class_weight"),
            ]
        ],
        (NuSVC, {"nu": 0.95}, "above nu_max"),
        (NuSVC, {"nu": 1.5, "fit_intercept": False}, "above nu_max=1"),
        (MarginFDA, {"stopping": "relative-change"}, "does not stop by"),
        (MarginMPM, {"bias": "none"}, "bias"),
        (DWD, {"norm": 3.0}, "norm must be 2"),
    ],
)
def test_what_no_kernel_would_mend_is_refused_before_it_is_computed(
    make: Any, parameters: dict[str, Any], said: str
) -> None:
    calls = []

    def counted(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        calls.append(left.shape)
        return left @ right.T

    X, y = blobs()
    y[:20] = 0
    with pytest.raises(ValueError, match=said):
        make(kernel=counted, **parameters).fit(X, y)
    assert not calls
