"""Weight 2 is a repeated row and weight 0 a removed one, in all that is derived from data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC as OtherSVC

import proxmargin
from proxmargin import DWD, HuberizedSVC, MulticlassSVC
from proxmargin.data.kernels import Rbf, resolve_gamma
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.rows import evenly_taken
from tests.cases import ESTIMATORS, KERNEL_MACHINES, PENALISED

MODELS: dict[str, Callable[..., Any]] = {
    **ESTIMATORS,
    **{
        f"{name}, {kernel}": lambda make=make, kernel=kernel, **given: make(kernel=kernel, **given)
        for name, make in KERNEL_MACHINES.items()
        for kernel in ("rbf", "poly")
    },
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
FORMS: dict[str, Callable[[np.ndarray], Any]] = {"dense": np.asarray, "CSR": sp.csr_array}
every_form = pytest.mark.parametrize("form", FORMS)
# what data decide, in estimators that have it
CHOSEN = ("classes_", "gamma_", "nu_", "kappa_", "feature_centre_", "feature_scale_")
FRACTIONS = {"kappa": "0.1max", "nu": "0.6max"}


def sample(classes: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples, labels and weights from 0 to 3; what has no weight lies far away."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4)) + 0.5
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.standard_normal(60), [0.6, 1.3])
    weights = rng.integers(0, 4, 60).astype(float)
    X[weights == 0] *= 1e12
    return X, np.minimum(y, classes - 1), weights


def repeated(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    times = weights.astype(int)
    return np.repeat(X, times, axis=0), np.repeat(y, times)


def assert_same(one: Any, other: Any, X: Any, digits: float) -> None:
    for name in CHOSEN:
        if getattr(other, name, None) is not None:
            found, expected = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=digits)
    scores = other.decision_function(X)
    close = {"rtol": 0.0, "atol": digits * np.abs(scores).max()}
    np.testing.assert_allclose(one.decision_function(X), scores, **close)


def with_fractions(make: Any) -> Any:
    names = set(make().get_params()) & set(FRACTIONS) - (
        {"nu"} if isinstance(make(), DWD) else set()
    )
    return lambda **given: make(**{name: FRACTIONS[name] for name in names}, **given)


@pytest.mark.sampled(6)
@every_model
@every_form
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weights_are_repeated_and_removed_rows(
    make: Any, form: str, standardize: bool, class_weight: Any
) -> None:
    X, y, weights = sample()
    make, of = with_fractions(make), FORMS[form]
    given = {"standardize": standardize, "class_weight": class_weight, "tol": 1e-9}
    model = make(**given).fit(of(X), y, sample_weight=weights)
    live = weights > 0
    rows, labels = repeated(X, y, weights)
    twice = make(**given).fit(of(rows), labels)
    fewer = make(**given).fit(of(X[live]), y[live], sample_weight=weights[live])
    assert_same(model, twice, X[live], 1e-4)
    assert_same(model, fewer, X[live], 1e-12)
    if hasattr(model, "support_"):
        np.testing.assert_array_equal(model.support_, np.flatnonzero(live)[fewer.support_])
        np.testing.assert_allclose(model.dual_coef_, fewer.dual_coef_, rtol=1e-9)


@pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
def test_weights_are_repeated_rows_with_three_classes(make: Any) -> None:
    X, y, weights = sample(3)
    make = with_fractions(make)
    given = {"kernel": "rbf", "tol": 1e-9}
    model = make(**given).fit(X, y, sample_weight=weights)
    assert_same(model, make(**given).fit(*repeated(X, y, weights)), X[weights > 0], 1e-4)


@pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
def test_a_sample_without_weight_leaves_a_precomputed_kernel(make: Any) -> None:
    X, y, weights = sample()
    live = np.flatnonzero(weights)
    X[weights == 0] = X[live[0]] + 1.0
    K = Rbf(0.3)(X, X)
    model = make(kernel="precomputed").fit(K, y, sample_weight=weights)
    plain = make(kernel=Rbf(0.3)).fit(X[live], y[live], sample_weight=weights[live])
    np.testing.assert_allclose(
        model.decision_function(K), plain.decision_function(X), rtol=0, atol=1e-3
    )
    assert np.isin(model.support_, live).all()
    np.testing.assert_array_equal(model.support_vectors_, model.support_)


@every_form
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_what_is_derived_from_data_is_that_of_repeated_rows(
    form: str, standardize: bool, class_weight: Any
) -> None:
    X, y, weights = sample()
    other, labels = repeated(X, y, weights)
    X, other = FORMS[form](X), FORMS[form](other)
    close = {"rel": 1e-9}
    for make in set(PENALISED.values()) - {proxmargin.MarginClassifier}:
        estimator = make(standardize=standardize, class_weight=class_weight)
        expected = proxmargin.alpha_max(estimator, other, labels)
        assert proxmargin.alpha_max(estimator, X, y, weights) == pytest.approx(expected, **close)
    estimator = MulticlassSVC(standardize=standardize, class_weight=class_weight)
    expected = proxmargin.paths.critical_C(estimator, other, labels)
    found = proxmargin.paths.critical_C(estimator, X, y, weights)
    assert found == pytest.approx(expected, **close)
    expected = proxmargin.nu_range(other, labels)
    assert proxmargin.nu_range(X, y, weights) == pytest.approx(expected, rel=1e-6)
    for model in ("fda", "mpm"):
        expected = proxmargin.kappa_max(other, labels, model)
        assert proxmargin.kappa_max(X, y, model, weights) == pytest.approx(expected, **close)


def test_gamma_without_weights_is_that_of_scikit_learn_and_with_them_of_repeated_rows() -> None:
    X, y, weights = sample()
    X = X[weights > 0] + 3.0
    model = proxmargin.SVC(kernel="rbf").fit(X, y[weights > 0])
    theirs = OtherSVC().fit(X, y[weights > 0])
    assert model.gamma_ == pytest.approx(theirs._gamma, rel=1e-12)
    for of in FORMS.values():
        gamma = resolve_gamma("scale", of(np.repeat(X, 2, axis=0)), np.tile([1.0, 0.0], len(X)))
        assert gamma == pytest.approx(theirs._gamma, rel=1e-12)
    scaled = proxmargin.SVC(kernel="rbf", standardize=True)
    for of in FORMS.values():  # every feature has unit variance
        assert scaled.fit(of(X), y[weights > 0]).gamma_ == pytest.approx(0.25, rel=1e-12)


def test_rows_are_taken_at_even_steps_of_their_weight(rng) -> None:
    weights = rng.integers(0, 4, 3000).astype(float)
    times = weights.astype(int)
    taken, stands_for = evenly_taken(weights, 500)
    again, counts = evenly_taken(np.ones(times.sum()), 500)
    places = np.repeat(np.arange(3000), times)[again]
    assert stands_for.sum() == pytest.approx(weights.sum())
    np.testing.assert_array_equal(
        np.bincount(taken, stands_for, 3000).round(6), np.bincount(places, counts, 3000).round(6)
    )
    few, of_few = evenly_taken(weights[:20], 500)
    np.testing.assert_array_equal(few, np.flatnonzero(weights[:20]))
    np.testing.assert_array_equal(of_few, weights[few])


def test_medians_and_spreads_of_many_samples_are_those_of_repeated_rows(rng) -> None:
    n = 4000
    X, y = rng.standard_normal((n, 2)), np.arange(n) % 2
    X[:, 0] += y
    weights = rng.integers(1, 3, n).astype(float)
    other, labels = repeated(X, y, weights)
    with pytest.warns(match="stopped before"):
        found = DWD(max_iter=0).fit(X, y, sample_weight=weights)
    with pytest.warns(match="stopped before"):
        expected = DWD(max_iter=0).fit(other, labels)
    assert found.nu_ * weights.sum() == pytest.approx(expected.nu_ * len(other), rel=1e-12)
    designs = (KernelDesign(kernel_matrix(Rbf(0.5), one)) for one in (X, other))
    shares = weights / weights.sum(), np.full(len(other), 1 / len(other))
    one, two = (design.spread(share) for design, share in zip(designs, shares, strict=True))
    assert one == pytest.approx(two, rel=1e-12)


def test_rows_without_weight_say_nothing_of_rounding() -> None:
    X, y, weights = sample()
    model = HuberizedSVC().fit(X, y, sample_weight=weights)
    assert model.certificate_.relative_gap < 1e-6
