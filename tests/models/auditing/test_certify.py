"""`certify`: objectives of anybody's coefficients, between the optimum and the claim."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

import proxmargin
from proxmargin import certify
from tests.cases import ESTIMATORS

TIGHT = {"tol": 1e-9, "max_iter": 10**6}
LOGISTIC = {"tol": 1e-12, "max_iter": 10**5}
MARGIN = 1e-7  # of objectives by Clarabel, relative
# fitted tightly: the gap shows that the mapped objective is the model's own
OPTIMAL = (
    LinearSVC(**TIGHT),
    LinearSVC(loss="hinge", **TIGHT),
    LinearSVC(fit_intercept=False, **TIGHT),
    LinearSVC(penalty="l1", dual=False, intercept_scaling=3.0, **TIGHT),
    LogisticRegression(**LOGISTIC),
    LogisticRegression(solver="liblinear", intercept_scaling=2.0, **LOGISTIC),
    LogisticRegression(solver="saga", l1_ratio=0.5, C=0.1, tol=1e-7, max_iter=10**4),
    SVC(tol=1e-9),
    SVC(kernel="poly", degree=2, coef0=1.0, tol=1e-9),
    SVC(kernel="linear", tol=1e-9),
)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200], y[:200]


def fitted(model: Any, X: Any, y: Any, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, **more)


@pytest.mark.parametrize("balanced", [None, "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", OPTIMAL, ids=lambda model: str(model).replace("\n", "")[:60])
def test_tight_fits_of_scikit_learn_are_optimal_for_their_own_objective(
    model: Any, weighted: bool, balanced: str | None, data: Any, rng: np.random.Generator
) -> None:
    X, y = data
    weights = rng.uniform(0.2, 3.0, y.size) if weighted else None
    model = fitted(model.set_params(class_weight=balanced), X, y, sample_weight=weights)
    assert certify(model, X, y, sample_weight=weights, tol=1e-7).relative_gap < 2e-6


def hinge_optimum(X: np.ndarray, y: np.ndarray, C: float) -> float:
    """``sum hinge * C + (|w|^2 + b^2) / 2``, the model of LIBLINEAR."""
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = cp.sum(cp.pos(1 - cp.multiply(2.0 * y - 1, X @ w + b)))
    problem = cp.Problem(cp.Minimize(C * loss + 0.5 * (cp.sum_squares(w) + cp.square(b))))
    return float(problem.solve(solver="CLARABEL"))


def test_the_gap_of_a_rough_fit_is_that_to_the_optimum(data: Any) -> None:
    X, y = data
    model = fitted(LinearSVC(loss="hinge", max_iter=3, random_state=0), X, y)
    found, optimum = certify(model, X, y), hinge_optimum(X, y, 1.0)
    scores = model.decision_function(X)
    primal = np.maximum(0, 1 - (2 * y - 1) * scores).sum()
    primal += 0.5 * (np.sum(model.coef_**2) + np.sum(model.intercept_**2))
    assert found.primal == pytest.approx(primal, rel=1e-12)
    assert found.dual <= optimum * (1 + MARGIN)
    assert found.gap == pytest.approx(primal - optimum, abs=3e-6 * optimum)
    assert not found.converged
    assert found.gap > 1e-3 * optimum


def test_classes_are_certified_one_by_one_or_together() -> None:
    X, y = load_iris(return_X_y=True)
    each = certify(fitted(LinearSVC(**TIGHT), X, y), X, y)
    assert len(each) == 3
    assert each.converged
    rough = certify(fitted(SGDClassifier(random_state=0), X, y), X, y)
    assert rough.relative_gap > 0.1
    assert certify(fitted(LogisticRegression(**LOGISTIC), X, y), X, y).converged


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sgd_approaches_its_optimum_from_above(loss: str, weighted: bool, data: Any, rng) -> None:
    X, y = data
    weights = rng.uniform(0.2, 3.0, y.size) if weighted else None
    steps = {"learning_rate": "invscaling", "eta0": 0.01, "power_t": 0.5}
    options = {"alpha": 0.1, "tol": None, "random_state": 0, **steps}
    rough, long = (
        fitted(SGDClassifier(loss, max_iter=k, **options), X, y, sample_weight=weights)
        for k in (1, 1000)
    )
    gaps = [certify(m, X, y, sample_weight=weights).relative_gap for m in (rough, long)]
    assert gaps[1] < 0.03 < 0.05 < gaps[0]


def test_sparse_data_and_pipelines_and_searches(data: Any) -> None:
    X, y = data
    model = fitted(LinearSVC(**TIGHT), X, y)
    assert certify(model, sparse.csr_array(X), y).converged
    inside = make_pipeline(StandardScaler(), LogisticRegression(**LOGISTIC)).fit(3.0 + X, y)
    assert certify(inside, 3.0 + X, y).converged
    search = GridSearchCV(inside, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, y)
    assert certify(search, X, y).converged
    own = make_pipeline(StandardScaler(), proxmargin.SVC()).fit(X, y)
    assert certify(own, X, y).converged


@pytest.mark.parametrize("make", ESTIMATORS.values(), ids=ESTIMATORS.keys())
@pytest.mark.parametrize("classes", [2, 3])
def test_models_of_this_library_keep_their_certificate(make: Any, classes: int, rng: Any) -> None:
    y = np.arange(42) % classes
    X = rng.standard_normal((42, 4)) + (np.arange(4) == y[:, None])
    model = make().fit(X, y)
    if isinstance(model, proxmargin.NuSVC) and classes > 2:
        with pytest.raises(TypeError, match="another nu for each class"):
            certify(model, X, y)
        return
    found = certify(model, X, y)
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert found.relative_gap <= 2.0 * max(model.certificate_.relative_gap, 1e-6)


def test_coefficients_of_any_program_are_certified(data: Any) -> None:
    X, y = data
    model = proxmargin.HuberizedSVC(alpha=0.05, standardize=True)
    best = proxmargin.HuberizedSVC(alpha=0.05, standardize=True).fit(X, y)
    assert certify(model, X, y, best.coef_, best.intercept_).converged
    nothing = certify(model, X, y, np.zeros(X.shape[1]))
    assert nothing.primal > best.certificate_.primal
    assert nothing.dual == pytest.approx(best.certificate_.primal, rel=1e-5)
    assert not hasattr(model, "coef_")


def test_a_kernel_model_is_certified_through_its_scores(data: Any) -> None:
    X, y = data
    model = proxmargin.SVC(kernel="rbf", tol=1e-8).fit(X, y)
    assert certify(model, X, y).primal == pytest.approx(model.certificate_.primal, rel=1e-7)
    with pytest.raises(ValueError, match="data that the model was fitted to"):
        certify(SVC().fit(X, y), X[::-1], y)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_kernel_model_is_refused_on_other_rows(standardize: bool, data: Any) -> None:
    X, y = data
    model = proxmargin.SVC(kernel="rbf", C=0.1, standardize=standardize).fit(X, y)
    assert certify(model, X, y).converged
    for rows in (np.arange(y.size)[::-1], np.argsort(y, kind="stable"), np.arange(50)):
        with pytest.raises(ValueError, match="data that the model was fitted to"):
            certify(model, X[rows], y[rows])


def test_offsets_count_or_are_refused(data: Any, rng: np.random.Generator) -> None:
    X, y = data
    offset = rng.standard_normal(y.size)
    own = proxmargin.SparseLogisticRegression().fit(X, y, offset=offset)
    assert certify(own, X, y, offset=offset).converged
    assert not certify(own, X, y).converged
    kernel = proxmargin.SVC(kernel="rbf").fit(X, y)
    for model in (LogisticRegression().fit(X, y), kernel):
        with pytest.raises(TypeError, match="offset is for"):
            certify(model, X, y, offset=offset)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (RidgeClassifier(), "is not known here"),
        (NuSVC(), "is not known here"),
        (SGDClassifier("modified_huber"), "modified_huber"),
        (SVC(kernel="sigmoid"), "sigmoid"),
        (LinearSVC(multi_class="crammer_singer"), "crammer_singer"),
        (LogisticRegression(C=np.inf), "without a penalty"),
        (LogisticRegressionCV(Cs=2, cv=2), "the C that it chose"),
    ],
)
def test_what_cannot_be_certified_says_why(model: Any, told: str, data: Any) -> None:
    X, y = data
    with pytest.raises(TypeError, match=told):
        certify(fitted(model, X, y), X, y)


def test_bad_coefficients_are_refused(data: Any) -> None:
    X, y = data
    model = proxmargin.HuberizedSVC(bounds=(0.0, None))
    with pytest.raises(ValueError, match="shape"):
        certify(model, X, y, np.zeros(3))
    with pytest.raises(ValueError, match="finite"):
        certify(model, X, y, np.full(X.shape[1], np.nan))
    with pytest.raises(ValueError, match="intercept needs coef"):
        certify(model, X, y, intercept=1.0)
    with pytest.raises(ValueError, match="outside of the constraints"):
        certify(model, X, y, np.full(X.shape[1], -1.0))
    with pytest.raises(TypeError, match="bring their own"):
        certify(LinearSVC(), X, y, np.zeros(30))


class TestOtherData:
    """Data that cannot be those of the fit are refused before any objective is computed."""

    @pytest.fixture
    def frame(self, data: Any) -> pd.DataFrame:
        return pd.DataFrame(data[0], columns=[f"f{j}" for j in range(data[0].shape[1])])

    @pytest.mark.parametrize("make", [proxmargin.SVC, LogisticRegression])
    def test_columns_must_be_those_of_the_fit_in_their_order(
        self, make: Any, frame: pd.DataFrame, data: Any
    ) -> None:
        model = make().fit(frame, data[1])
        assert certify(model, frame, data[1], tol=1e-2).converged
        with pytest.raises(ValueError, match="must be in the same order"):
            certify(model, frame[frame.columns[::-1]], data[1])
        with pytest.raises(ValueError, match=r"yet now missing:\n- f0"):
            certify(model, frame.drop(columns="f0"), data[1])

    @pytest.mark.parametrize("make", [proxmargin.SVC, LogisticRegression])
    def test_labels_must_be_those_of_the_fit(self, make: Any, data: Any) -> None:
        X, y = data
        model = make().fit(X, y)
        for labels, told in (
            (np.where(y == y[0], "x", y.astype(str)), "x.* are none of the model's classes"),
            (np.full_like(y, y[0]), "of the model that y lacks"),
            (np.where(np.arange(y.size) == 3, None, y.astype(object)), "no label in row 3"),
            (None, "got None"),
        ):
            with pytest.raises(ValueError, match=told):
                certify(model, X, labels)

    def test_weights_are_checked_for_models_of_others_too(self, data: Any) -> None:
        X, y = data
        model = LogisticRegression().fit(X, y)
        with pytest.raises(ValueError, match="sample_weight must be >= 0"):
            certify(model, X, y, sample_weight=-np.ones(y.size))
        with pytest.raises(ValueError, match="at least one non-zero"):
            certify(model, X, y, sample_weight=np.zeros(y.size))


def test_sparse_coefficients_and_coo_matrices_are_taken(data: Any) -> None:
    X, y = data
    coef = np.zeros((1, X.shape[1]))
    coef[0, 0] = 0.1
    found = certify(proxmargin.SVC(), sparse.coo_array(X), y, sparse.csr_array(coef))
    assert found.primal == pytest.approx(certify(proxmargin.SVC(), X, y, coef).primal)


@pytest.mark.parametrize("make", [SVC, proxmargin.SVC])
def test_the_objective_of_a_kernel_model_is_no_less_than_that_in_long_arithmetic(
    make: Any, rng: np.random.Generator
) -> None:
    """Far from the origin distances are differences of large squares, which libsvm rounds too."""
    X = (rng.standard_normal((40, 3)) + 1e3).astype(np.longdouble)
    y = np.arange(40) % 2
    model = make(C=10.0, kernel="rbf", gamma=0.5).fit(X.astype(float), y)
    square = ((X[:, None].astype(float) - X[None].astype(float)) ** 2).astype(np.longdouble)
    beta = np.zeros(40, np.longdouble)
    beta[model.support_] = model.dual_coef_[0]
    image = np.exp(np.longdouble(-0.5) * square.sum(axis=2)) @ beta
    margins = np.where(y == 1, 1, -1) * (image + model.intercept_[0])
    exact = 10.0 * np.maximum(1 - margins, 0).sum() + beta @ image / 2
    found = certify(model, X.astype(float), y)
    assert exact <= found.primal <= exact * (1 + 1e-7)
