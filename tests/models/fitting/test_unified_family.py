"""The models of inner products: one fit however it is said, and scikit-learn's where it has one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from proxmargin import DWD, L2SVC, SVC, LogisticRegression, MarginFDA, MarginMPM, NuSVC
from proxmargin.optimality.certificates.certificate import CertificateList
from tests.cases import KERNEL_MACHINES

every_model = pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
TIGHT = 1e-10


def cancer(rows: int = 120, features: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Some rows and features of breast cancer, standardised."""
    X, y = load_breast_cancer(return_X_y=True)
    chosen = np.sort(np.random.default_rng(5).permutation(y.size)[: rows + 40])
    X = X[chosen, :features]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[:rows], y[chosen][:rows]


def wide(n: int = 24, p: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """More features than samples: even the sigmoid kernel is definite there."""
    rng = np.random.default_rng(3)
    y = np.arange(n) % 2
    return rng.standard_normal((n, p)) + 0.3 * (2 * y[:, None] - 1), y


def polynomial(left: Any, right: Any) -> Any:
    return pairwise_kernels(left, right, metric="poly", degree=2, gamma=0.2, coef0=1.0)


KERNELS: dict[str, dict[str, Any]] = {
    "linear": {},
    "rbf": {"gamma": 0.1},
    "poly": {"gamma": 0.2, "degree": 2, "coef0": 1.0},
}

# -- one model said in several ways ---------------------------------------------------------------


def same_model(one: Any, other: Any, X: Any, Z: Any, near: float = 2e-4) -> None:
    """Equal objectives, and scores that are as near as strong convexity makes them."""
    first, second = one.certificate_.primal, other.certificate_.primal
    assert first == pytest.approx(second, rel=1e-8, abs=1e-10)
    a, b = one.decision_function(X), other.decision_function(Z)
    np.testing.assert_allclose(a, b, atol=near * (1 + np.abs(b).max()))


@every_model
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_precomputed_kernel_is_the_kernel_it_was_computed_by(make: Any, kernel: str) -> None:
    X, y = cancer()
    K = pairwise_kernels(X, metric=kernel, **KERNELS[kernel])
    named = make(kernel=kernel, tol=TIGHT, **KERNELS[kernel]).fit(X, y)
    computed = make(kernel="precomputed", tol=TIGHT).fit(K, y)
    # DWD sets its threshold by distances, which the kernel holds too; MM-FDA and MM-MPM kappa
    same_model(named, computed, X, K)
    assert computed.support_vectors_.tolist() == computed.support_.tolist()
    fresh = np.random.default_rng(0).standard_normal((7, X.shape[1]))
    against = pairwise_kernels(fresh, X, metric=kernel, **KERNELS[kernel])
    scores = named.decision_function(fresh)
    near = 2e-4 * (1 + np.abs(scores).max())
    np.testing.assert_allclose(computed.decision_function(against), scores, atol=near)


@every_model
def test_a_kernel_that_is_a_function_is_the_named_one(make: Any) -> None:
    X, y = cancer()
    named = make(kernel="poly", tol=TIGHT, **KERNELS["poly"]).fit(X, y)
    same_model(make(kernel=polynomial, tol=TIGHT).fit(X, y), named, X, X)


@pytest.mark.parametrize("make", [SVC, L2SVC, LogisticRegression])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_weights_of_samples_are_off_by_no_more_than_the_gap(rng, make, tol, C) -> None:
    for n, p in ((60, 8), (30, 60)):
        X = rng.standard_normal((n, p))
        y = (X[:, 0] + rng.standard_normal(n) > 0).astype(int)
        model = make(C=C, tol=tol).fit(X, y)
        apart = model.dual_coef_ @ X[model.support_] - model.coef_
        rounding = 1e-13 * float(np.sum(model.coef_**2))
        assert np.sum(apart**2) <= 2.0 * model.certificate_.gap * (1 + 1e-9) + rounding


@every_model
@pytest.mark.parametrize("standardize", [False, True])
def test_weights_of_samples_reproduce_the_coefficients_of_a_linear_model(
    make: Any, standardize: bool
) -> None:
    X, y = cancer()
    X = X * np.linspace(0.5, 2.0, X.shape[1]) + 1.0
    model = make(standardize=standardize, tol=1e-12).fit(X, y)
    seen = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    coef = model.coef_ * X.std(axis=0) if standardize else model.coef_
    found = model.dual_coef_ @ seen[model.support_]
    np.testing.assert_allclose(found, coef, atol=1e-4 * np.abs(coef).max())
    # each weight pulls towards its class
    assert np.all(model.dual_coef_[0] * (2 * y[model.support_] - 1) >= 0) or make in (
        MarginFDA,
        MarginMPM,
    )


@every_model
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("standardize", [False, True])
def test_weights_of_support_vectors_are_the_decision_function(
    make: Any, kernel: str, standardize: bool
) -> None:
    X, y = cancer()
    shifted = 3.0 * X + 1.0
    model = make(kernel=kernel, standardize=standardize, **KERNELS[kernel]).fit(shifted, y)
    scale, centre = (shifted.std(axis=0), shifted.mean(axis=0)) if standardize else (1.0, 0.0)
    Z = (shifted - centre) / scale
    K = pairwise_kernels(Z, Z[model.support_], metric=kernel, **KERNELS[kernel])
    scores = (K @ model.dual_coef_.T)[:, 0] + model.intercept_[0]
    found = model.decision_function(shifted)
    np.testing.assert_allclose(found, scores, atol=1e-9 * (1 + np.abs(scores).max()))
    assert not hasattr(model, "coef_")
    np.testing.assert_allclose(model.support_vectors_, Z[model.support_], atol=1e-12)


@pytest.mark.sampled(2)
@every_model
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_every_form_of_the_data_gives_the_same_model(make: Any, kernel: str) -> None:
    X, y = cancer()
    X = np.round(X, 2).astype(np.float32).astype(float)
    options = {"kernel": kernel, "gamma": 0.1, "tol": TIGHT}
    dense = make(**options).fit(X, y)
    forms = {
        "CSR": sp.csr_matrix(X),
        "CSC": sp.csc_array(X),
        "float32": X.astype(np.float32),
        "CSR, float32": sp.csr_array(X.astype(np.float32)),
        "columns": np.asfortranarray(X),
        "list": X.tolist(),
    }
    for name, form in forms.items():
        model = make(**options).fit(form, y)
        primal = dense.certificate_.primal
        assert model.certificate_.primal == pytest.approx(primal, rel=1e-8), name
        scores, expected = model.decision_function(form), dense.decision_function(X)
        near = 5e-4 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(scores, expected, atol=near, err_msg=name)


@every_model
def test_standardize_is_a_standard_scaler_in_front_of_a_kernel(make: Any) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:100, :6], y[:100]
    inside = make(kernel="rbf", gamma="auto", standardize=True, tol=TIGHT).fit(X, y)
    outside = make_pipeline(StandardScaler(), make(kernel="rbf", gamma="auto", tol=TIGHT))
    same_model(inside, outside.fit(X, y)[-1], X, outside[0].transform(X))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@every_model
def test_sample_weights_are_repeated_rows_in_the_space_of_a_kernel(make: Any, kernel: str) -> None:
    X, y = cancer(60, 5)
    times = np.arange(y.size) % 3
    # rules that read the rows, not their weights, would see different data
    options = {"kernel": kernel, "gamma": 0.2, "tol": TIGHT}
    weighted = make(**options).fit(X, y, sample_weight=times.astype(float))
    repeated = make(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    same_model(weighted, repeated, X, X, near=1e-3)
    removed = np.flatnonzero(times == 0)
    assert not set(weighted.support_) & set(removed)


@every_model
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_class_weights_multiply_sample_weights(make: Any, kernel: str) -> None:
    X, y = cancer(80, 5)
    options = {"kernel": kernel, "gamma": 0.2, "tol": TIGHT}
    by_class = make(class_weight={0: 2.0, 1: 0.5}, **options).fit(X, y)
    by_sample = make(**options).fit(X, y, sample_weight=np.where(y == 0, 2.0, 0.5))
    same_model(by_class, by_sample, X, X)
    counts = np.bincount(y)
    balanced = make(class_weight="balanced", **options).fit(X, y)
    by_hand = make(**options).fit(X, y, sample_weight=y.size / (2 * counts[y]))
    same_model(balanced, by_hand, X, X)


@every_model
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_against_the_rest_fits_each_class(make: Any, kernel: str) -> None:
    X, y = load_wine(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[::2], y[::2]
    options = {"kernel": kernel, "gamma": 0.05, "tol": 1e-9}
    model = make(**options).fit(X, np.array(["low", "middle", "up"])[y])
    assert isinstance(model.certificate_, CertificateList)
    assert len(model.certificate_) == 3
    scores = model.decision_function(X)
    assert scores.shape == (y.size, 3)
    for k in range(3):
        alone = make(**options).fit(X, y == k)
        near = 2e-4 * (1 + np.abs(scores[:, k]).max())
        np.testing.assert_allclose(scores[:, k], alone.decision_function(X), atol=near)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, np.array(["low", "middle", "up"])[y]) > 0.95


@every_model
def test_iris_and_digits_are_told_apart_by_a_gaussian_kernel(make: Any) -> None:
    X, y = load_iris(return_X_y=True)
    assert make(kernel="rbf", tol=1e-4).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.93
    X, y = load_digits(n_class=4, return_X_y=True)
    X, y = X[:300], y[:300]
    assert make(kernel="rbf", tol=1e-4).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95


@every_model
def test_relative_change_stops_a_fit_and_certifies_it(make: Any) -> None:
    X, y = cancer()
    model = make(solver="fapg-star", stopping="relative-change", tol=1e-6).fit(X, y)
    assert model.certificate_.relative_gap < 0.05
    assert model.certificate_.n_iter < 1000


@pytest.mark.sampled(2)
@every_model
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_default_fits_of_embedded_sets_meet_their_tolerance(make: Any, kernel: str) -> None:
    for load in (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*leaves no margin")
            warnings.filterwarnings("error", message=".*stopped before", category=UserWarning)
            model = make(kernel=kernel, standardize=True).fit(X, y)
        assert model.certificate_.converged, load.__name__


@pytest.mark.parametrize("make", [SVC, NuSVC])
def test_support_vectors_are_few_where_most_samples_are_beyond_the_margin(make: Any) -> None:
    X, y = cancer(160, 8)
    parameter = {"C": 1.0} if make is SVC else {"nu": 0.2}
    theirs = {SVC: svm.SVC, NuSVC: svm.NuSVC}[make](kernel="rbf", gamma=0.1, **parameter).fit(X, y)
    model = make(kernel="rbf", gamma=0.1, **parameter).fit(X, y)
    assert model.support_.size <= 1.1 * theirs.support_.size


# -- other libraries ------------------------------------------------------------------------------

SETTINGS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.1},
    {"kernel": "rbf", "gamma": "scale"},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "poly", "degree": 3, "gamma": 0.1, "coef0": 1.0},
    {"kernel": "poly", "degree": 2, "gamma": "scale"},
    {"kernel": "sigmoid", "gamma": 0.005, "coef0": 0.0},
]
every_setting = pytest.mark.parametrize(
    "settings", SETTINGS, ids=lambda s: "-".join(map(str, s.values()))
)


def data_of(settings: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return wide() if settings["kernel"] == "sigmoid" else cancer()


def check_scores(ours: Any, theirs: Any, X: np.ndarray) -> None:
    scores = theirs.decision_function(X)
    found = ours.decision_function(X)
    np.testing.assert_allclose(found, scores, atol=1e-4 * max(1.0, np.abs(scores).max()))


@every_setting
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_decisions_of_the_c_svm_are_those_of_scikit_learn(settings: dict, C: float) -> None:
    X, y = data_of(settings)
    theirs = svm.SVC(C=C, tol=1e-9, **settings).fit(X, y)
    ours = SVC(C=C, tol=TIGHT, **settings).fit(X, y)
    check_scores(ours, theirs, X)
    if settings["kernel"] != "linear":
        gamma = theirs._gamma
        assert ours.gamma_ == pytest.approx(gamma)


@every_setting
# not a whole number of samples a class: then rho is unique
@pytest.mark.parametrize("nu", [0.37, 0.53])
def test_decisions_of_the_nu_svm_are_those_of_scikit_learn(settings: dict, nu: float) -> None:
    X, y = data_of(settings)
    theirs = svm.NuSVC(nu=nu, tol=1e-9, **settings).fit(X, y)
    check_scores(NuSVC(nu=nu, tol=TIGHT, **settings).fit(X, y), theirs, X)


def test_weighted_decisions_of_the_c_svm_are_those_of_scikit_learn() -> None:
    X, y = cancer()
    weights = 0.5 + np.arange(y.size) % 4
    theirs = svm.SVC(gamma=0.1, tol=1e-9).fit(X, y, sample_weight=weights)
    ours = SVC(kernel="rbf", gamma=0.1, tol=TIGHT).fit(X, y, sample_weight=weights)
    check_scores(ours, theirs, X)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_logistic_regression_is_that_of_scikit_learn_intercept_included(C: float) -> None:
    X, y = cancer()
    theirs = linear_model.LogisticRegression(C=C, tol=1e-12, max_iter=10_000).fit(X + 2.0, y)
    ours = LogisticRegression(C=C, tol=1e-12).fit(X + 2.0, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-3)
    probabilities = ours.predict_proba(X + 2.0)
    np.testing.assert_allclose(probabilities, theirs.predict_proba(X + 2.0), atol=1e-4)


def test_kernel_logistic_regression_is_the_linear_one_on_a_factor_of_the_kernel() -> None:
    X, y = cancer()
    K = pairwise_kernels(X, metric="rbf", gamma=0.1)
    values, axes = np.linalg.eigh(K)
    factor = axes * np.sqrt(np.maximum(values, 0))
    theirs = linear_model.LogisticRegression(C=2.0, tol=1e-12, max_iter=10_000).fit(factor, y)
    ours = LogisticRegression(C=2.0, kernel="rbf", gamma=0.1, tol=TIGHT).fit(X, y)
    found, scores = ours.decision_function(X), theirs.decision_function(factor)
    np.testing.assert_allclose(found, scores, atol=1e-3)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_l2_svm_without_intercept_is_that_of_scikit_learn(C: float) -> None:
    X, y = cancer()
    theirs = svm.LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-12, max_iter=100_000)
    ours = L2SVC(C=C, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.fit(X, y).coef_, atol=1e-4)
    assert ours.intercept_.tolist() == [0.0]


@every_model
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_without_an_intercept_there_is_none(make: Any, kernel: str) -> None:
    X, y = cancer()
    model = make(kernel=kernel, gamma=0.1, fit_intercept=False).fit(X, y)
    assert model.intercept_.tolist() == [0.0]
    assert model.certificate_.converged


def test_probabilities_are_those_of_log_odds_and_sum_to_one() -> None:
    X, y = load_iris(return_X_y=True)
    for kernel in ("linear", "rbf"):
        model = LogisticRegression(kernel=kernel).fit(X, y)
        probabilities = model.predict_proba(X)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
        each = 1 / (1 + np.exp(-model.decision_function(X)))
        np.testing.assert_allclose(probabilities, each / each.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), probabilities)
    binary = LogisticRegression().fit(X[:100], y[:100])
    odds = np.log(binary.predict_proba(X)[:, 1] / binary.predict_proba(X)[:, 0])
    np.testing.assert_allclose(odds, binary.decision_function(X), atol=1e-9)
    assert not hasattr(SVC(), "predict_proba")


# -- scikit-learn's tools --------------------------------------------------------------------------


@pytest.mark.parametrize("make", [SVC, NuSVC, DWD, MarginMPM])
def test_scikit_learn_reduces_several_classes_to_them(make: Any) -> None:
    X, y = load_iris(return_X_y=True)
    binary = make(kernel="rbf", gamma=0.3)
    for reduction in (OneVsOneClassifier, OneVsRestClassifier):
        assert reduction(binary).fit(X, y).score(X, y) > 0.93
    rest = OneVsRestClassifier(make(kernel="rbf", gamma=0.3, tol=1e-9)).fit(X, y)
    ours = make(kernel="rbf", gamma=0.3, tol=1e-9).fit(X, y)
    scores = ours.decision_function(X)
    near = 2e-3 * np.abs(scores).max()
    np.testing.assert_allclose(rest.decision_function(X), scores, atol=near)


def test_they_work_in_pipelines_searches_and_cross_validation() -> None:
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SVC(kernel="rbf"))
    grid = {"svc__C": [0.1, 10.0], "svc__gamma": ["scale", 0.001]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    for make in (NuSVC, DWD, MarginFDA):
        model = make_pipeline(StandardScaler(), make(kernel="rbf", tol=1e-3))
        assert cross_val_score(model, X, y, cv=3).mean() > 0.95


def test_cross_validation_cuts_a_precomputed_kernel_both_ways() -> None:
    X, y = cancer()
    K = pairwise_kernels(X, metric="rbf", gamma=0.1)
    computed = cross_val_score(SVC(kernel="rbf", gamma=0.1), X, y, cv=3)
    stored = cross_val_score(SVC(kernel="precomputed"), K, y, cv=3)
    np.testing.assert_allclose(computed, stored)


def test_a_fit_that_ends_early_warns_once_with_the_gap_reached() -> None:
    X, y = cancer()
    for kernel in ("linear", "rbf"):
        model = SVC(kernel=kernel, solver="fapg-star", max_iter=3)
        with pytest.warns(ConvergenceWarning, match="relative gap of") as told:
            model.fit(X, y)
        assert len(told) == 1
        assert f"{model.certificate_.relative_gap:.2e}" in str(told[0].message)
        assert not model.certificate_.converged


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_the_rule_of_distances_does_not_depend_on_the_order_of_many_samples(store, kernel) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(2600) % 2  # of each class a thousand are taken
    X = rng.standard_normal((y.size, 3)) + y[:, None]
    found = []
    for order in (np.arange(y.size), rng.permutation(y.size), np.argsort(X[:, 0])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(DWD(kernel=kernel, max_iter=1).fit(store(X[order]), y[order]).nu_)
    np.testing.assert_allclose(found, found[0], rtol=1e-12)
