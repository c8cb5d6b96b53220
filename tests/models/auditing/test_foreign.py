"""Every documented value of every parameter of the models of scikit-learn that `certify` takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, LinearSVC
from sklearn.utils._param_validation import Interval, Options, StrOptions

import proxmargin
from proxmargin import certify

# tight, and short where a parameter makes the problem unbounded
BASES = {
    "LinearSVC": LinearSVC(tol=1e-9, max_iter=100_000, random_state=0),
    "LogisticRegression": LogisticRegression(tol=1e-10, max_iter=10_000, random_state=0),
    "SGDClassifier": SGDClassifier(random_state=0),
    "SVC": SVC(tol=1e-9, max_iter=20_000, random_state=0),
}
# other parameters with which scikit-learn takes a value; each is tried
WITH: tuple[dict[str, Any], ...] = (
    {},
    {"dual": False},
    {"dual": True},
    {"loss": "hinge", "dual": True},
    {"solver": "liblinear"},
    {"solver": "saga"},
    {"penalty": "elasticnet"},
    {"penalty": "elasticnet", "solver": "saga", "l1_ratio": 0.5},
    {"learning_rate": "constant"},
    {"kernel": "poly"},
    {"kernel": "linear"},
)
LOOSE = 1e-5  # gap of a tight fit


def documented(constraint: Any) -> Iterator[Any]:
    """Values of a parameter that its constraint admits."""
    if isinstance(constraint, str):
        yield from {"boolean": (True, False), "random_state": (0,)}.get(constraint, ())
    elif isinstance(constraint, StrOptions | Options):
        yield from sorted(constraint.options, key=str)
    elif isinstance(constraint, Interval):
        low, high = constraint.left, constraint.right
        whole = "int" in str(constraint.type).lower() or "Integral" in str(constraint.type)
        inner = 1 if whole else 0.5
        yield inner if (low is None or low < inner) or constraint.closed in ("left", "both") else 2
        for end, closed in ((low, "left"), (high, "right")):
            if end is not None and constraint.closed in (closed, "both"):
                yield int(end) if whole and np.isfinite(end) else float(end)
    elif constraint is dict:
        yield {0: 2.0, 1: 0.5}
        yield {0: 0.0, 1: 1.0}
    elif constraint is callable:
        yield lambda A, B: A @ B.T
    elif constraint is None:
        yield None


def cases() -> Iterator[Any]:
    for name, base in BASES.items():
        for parameter, constraints in base._parameter_constraints.items():
            yield pytest.param(base, parameter, constraints, id=f"{name}-{parameter}")


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = (X[:, 0] + 0.7 * rng.standard_normal(40) > 0).astype(int)
    return X, y, (np.arange(40) % 3 > 0) * rng.uniform(0.5, 2.0, 40)


def loss_of(model: Any, margins: np.ndarray) -> np.ndarray:
    kind = getattr(model, "loss", "log_loss" if isinstance(model, LogisticRegression) else "hinge")
    if kind == "log_loss":
        return np.logaddexp(0.0, -margins)
    return np.maximum(1.0 - margins, 0.0) ** (2 if kind == "squared_hinge" else 1)


def shrunk(model: Any, X: np.ndarray) -> float:
    """The penalty, in the units of each model, without its strength."""
    if isinstance(model, SVC) and model.kernel != "linear":
        beta, vectors = model.dual_coef_[0], model.support_vectors_
        more = {"gamma": model._gamma}
        if model.kernel == "poly":
            more |= {"degree": model.degree, "coef0": model.coef0}
        return 0.5 * float(beta @ pairwise_kernels(vectors, metric=model.kernel, **more) @ beta)
    coef = model.coef_.ravel()
    if isinstance(model, LinearSVC) or getattr(model, "solver", "") == "liblinear":
        free = model.intercept_ / model.intercept_scaling if model.fit_intercept else []
        coef = np.append(coef, free)
    ratio = getattr(model, "l1_ratio", 0.0)
    ratio = {"l1": 1.0, "l2": 0.0}.get(getattr(model, "penalty", ""), ratio or 0.0)
    return float(ratio * np.abs(coef).sum() + (1 - ratio) * 0.5 * coef @ coef)


def objective(model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """The model's own objective, by its documentation."""
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    factors = np.ones(2)
    if isinstance(model.class_weight, dict):
        factors = np.array([model.class_weight[0], model.class_weight[1]])
    if model.class_weight == "balanced":
        counts = np.bincount(y) if hasattr(model, "class_weight_") else np.bincount(y, weight)
        if isinstance(model, SGDClassifier):
            counts = np.bincount(y)
        factors = counts.sum() / (2 * counts)
    losses = weight * factors[y] * loss_of(model, margins)
    if isinstance(model, SGDClassifier):
        return float(losses.mean() + model.alpha * shrunk(model, X))
    return float(model.C * losses.sum() + shrunk(model, X))


def certificate_or_refusal(model: Any, X: Any, y: Any, weight: Any) -> Any:
    try:
        return certify(model, X, y, sample_weight=weight)
    except (TypeError, ValueError) as error:
        return str(error)


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("base", "parameter", "constraints"), list(cases()))
def test_each_value_is_certified_or_refused_by_name(
    base: Any, parameter: str, constraints: Any, weighted: bool, data: Any
) -> None:
    X, y, weight = data
    weight = weight if weighted else np.ones(y.size)
    own = base.get_params()
    for value in (v for each in constraints for v in documented(each)):
        for more in WITH:
            if not set(more) <= set(own) or parameter in more:
                continue
            model = clone(base).set_params(**more, **{parameter: value})
            if getattr(model, "C", 1.0) == np.inf:
                model.set_params(max_iter=50)
            try:
                model.fit(X, y, sample_weight=weight if weighted else None)
            except (ValueError, OverflowError):
                continue  # scikit-learn refuses the value, or this combination
            found = certificate_or_refusal(model, X, y, weight if weighted else None)
            if isinstance(found, str):
                assert parameter in found, (model, found)
                continue
            assert found.primal == pytest.approx(objective(model, X, y, weight), rel=1e-9), model
            tight = not isinstance(model, SGDClassifier) and "max_iter" not in (parameter, *more)
            if tight and model.tol <= base.tol and model.max_iter == base.max_iter:
                assert found.relative_gap < LOOSE, model


def test_sgd_without_a_share_of_the_l1_norm(data: Any) -> None:
    X, y, _ = data
    plain, none = (SGDClassifier(random_state=0, **m).fit(X, y) for m in ({}, {"l1_ratio": None}))
    assert certify(none, X, y).primal == certify(plain, X, y).primal


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_support_vectors_are_counted_among_samples_of_positive_weight(form: Any, data: Any) -> None:
    X, y, weight = data
    live = weight > 0
    model = SVC(gamma=0.4, tol=1e-9).fit(form(X), y, sample_weight=weight)
    alone = SVC(gamma=0.4, tol=1e-9).fit(form(X[live]), y[live], sample_weight=weight[live])
    found = certify(model, form(X), y, sample_weight=weight)
    expected = certify(alone, form(X[live]), y[live], sample_weight=weight[live])
    assert found.primal == pytest.approx(expected.primal, rel=1e-9)
    assert found.converged
    with pytest.raises(ValueError, match="the data that the model was fitted to"):
        certify(model, form(X), y)  # without the weights other rows are meant


@pytest.mark.parametrize(
    "make", [LinearSVC, LogisticRegression, SGDClassifier, SVC, lambda: SVC(kernel="linear")]
)
def test_coefficients_that_are_no_numbers_or_overflow_are_refused_as_such(
    make: Any, data: Any
) -> None:
    X, y, _ = data
    model = make().fit(X, y)
    for wrong, told in ((np.nan, "finite, got nan"), (np.inf, "finite"), (1e200, "overflows")):
        broken = _with_coefficient(model, wrong)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(ValueError, match=told):
                certify(broken, X, y)


def _with_coefficient(model: Any, value: float) -> Any:
    broken = deepcopy(model)
    if isinstance(model, SVC):
        broken.dual_coef_[0, 0] = broken._dual_coef_[0, 0] = value
    else:
        broken.coef_[0, 0] = value
    return broken


def test_given_coefficients_that_overflow_are_told_from_those_outside(data: Any) -> None:
    X, y, _ = data
    for model in (proxmargin.SVC(), proxmargin.HuberizedSVC()):
        with pytest.raises(ValueError, match="overflows"):
            certify(model, X, y, np.full(3, 1e200))
    with pytest.raises(ValueError, match="outside of the constraints"):
        certify(proxmargin.HuberizedSVC(bounds=(-1.0, 1.0)), X, y, np.full(3, 1e200))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("classes", [2, 3])
def test_several_classes_of_skglm_and_celer_are_each_against_the_others(classes: int, rng) -> None:
    skglm, celer = pytest.importorskip("skglm"), pytest.importorskip("celer")
    X = rng.standard_normal((60, 4))
    y = np.argmax(X[:, :classes] + 0.5 * rng.standard_normal((60, classes)), axis=1)
    for model in (
        skglm.SparseLogisticRegression(alpha=0.02, fit_intercept=False, tol=1e-10),
        skglm.LinearSVC(C=0.3, tol=1e-9),  # whose fit_intercept is True, and not used
        celer.LogisticRegression(C=0.5, tol=1e-10),
    ):
        assert certify(model.fit(X, y), X, y).relative_gap < 1e-6
        with pytest.raises(TypeError, match="fits without sample_weight"):
            certify(model, X, y, sample_weight=np.ones(y.size))
