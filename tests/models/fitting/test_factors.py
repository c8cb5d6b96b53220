"""Penalty factors and bounds of single features: optima of other solvers, and equivalences."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

import proxmargin
from proxmargin import (
    ElasticNetSVC,
    HuberizedSVC,
    MarginClassifier,
    SparseLogisticRegression,
    SquaredHingeSVC,
    alpha_max,
    margin_path,
)
from proxmargin.penalties import ElasticNet, Ridge, WeightedElasticNet

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")

SAMPLES = 60
FEATURES = 10
LOSSES = {
    "huberized": (HuberizedSVC, lambda t: cp.huber(cp.pos(1 - t), 1.0) / 2),
    "squared hinge": (SquaredHingeSVC, lambda t: cp.square(cp.pos(1 - t))),
    "logistic": (SparseLogisticRegression, lambda t: cp.logistic(-t)),
}
every_loss = pytest.mark.parametrize("loss", LOSSES)
NO_BOUND = np.full(FEATURES, np.inf)
SOME = np.arange(FEATURES) % 3 == 0
HALF = np.where(np.arange(FEATURES) % 2, -0.02, -np.inf)
FACTORS = np.linspace(0.3, 2.0, FEATURES)
FREE = np.where(SOME, 0.0, FACTORS)
# factors, lower and upper bounds
MODELS = {
    "factors": (FACTORS, -NO_BOUND, NO_BOUND),
    "some without a penalty": (FREE, -NO_BOUND, NO_BOUND),
    "non-negative": (np.ones(FEATURES), np.zeros(FEATURES), NO_BOUND),
    "all of it": (FREE, HALF, np.where(np.arange(FEATURES) % 4, 0.05, np.inf)),
}
every_model = pytest.mark.parametrize("model", MODELS)


def two_classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features of different scales and means, about half of the entries zero."""
    X = rng.standard_normal((SAMPLES, FEATURES)) * np.geomspace(0.5, 3.0, FEATURES) + 0.4
    X[rng.random(X.shape) < 0.4] = 0.0
    y = X[:, 0] - X[:, 1] + 0.7 * X[:, 3] + 1.5 * rng.standard_normal(SAMPLES) > 0.3
    return X, np.where(y, 1, -1)


def optimum(
    loss: Any,
    X: np.ndarray,
    signs: np.ndarray,
    shares: np.ndarray,
    strengths: tuple[float, float],
    model: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> float:
    """By an interior-point method."""
    factors, lower, upper = model
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    penalty = strengths[0] * factors @ cp.abs(w) + strengths[1] / 2 * factors @ cp.square(w)
    below, above = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    within = [w[below] >= lower[below], w[above] <= upper[above]]
    objective = shares @ loss(cp.multiply(signs, X @ w + b)) + penalty
    found = cp.Problem(cp.Minimize(objective), within)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the last digits
        found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(found.value)


@pytest.mark.sampled(3)
@every_loss
@every_model
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
@pytest.mark.parametrize("standardize", [False, True], ids=["as it is", "standardised"])
def test_the_optimum_is_that_of_an_interior_point_method(
    loss: str, model: str, l1_ratio: float, standardize: bool, rng
) -> None:
    X, y = two_classes(rng)
    weights = rng.uniform(0.2, 2.0, SAMPLES) if l1_ratio < 1 else np.ones(SAMPLES)
    shares = weights / weights.sum()
    factors, lower, upper = MODELS[model]
    estimator, formula = LOSSES[loss]
    mean, scale = np.zeros(FEATURES), np.ones(FEATURES)
    if standardize:
        mean = shares @ X
        scale = np.sqrt(shares @ (X - mean) ** 2)
    strengths = 0.03 * l1_ratio, 0.03 * (1 - l1_ratio)
    bounds = factors, lower * scale, upper * scale
    best = optimum(formula, (X - mean) / scale, y, shares, strengths, bounds)
    for data in (X, sp.csr_array(X)):
        fitted = estimator(
            0.03, l1_ratio, penalty_factor=factors, bounds=(lower, upper), tol=1e-9,
            standardize=standardize,
        ).fit(data, y, sample_weight=weights)  # fmt: skip
        assert fitted.certificate_.primal == pytest.approx(best, rel=2e-7)
        assert fitted.certificate_.dual <= best * (1 + 1e-7)
        assert np.all((fitted.coef_ >= lower) & (fitted.coef_ <= upper))


@every_model
@pytest.mark.parametrize("solver", ["newton", "gcd", "fapg", "fapg-ws", "b-pgh", "apg"])
def test_every_solver_finds_the_same_model(model: str, solver: str, rng) -> None:
    factors, lower, upper = MODELS[model]
    X, y = two_classes(rng)
    X, y = np.tile(X, (4, 1)) + 0.1 * rng.standard_normal((4 * SAMPLES, FEATURES)), np.tile(y, 4)
    plain = HuberizedSVC(0.02, 0.8, penalty_factor=factors, bounds=(lower, upper), tol=1e-8)
    fitted = clone(plain).set_params(solver=solver).fit(X, y)
    expected = plain.fit(X, y).certificate_
    assert fitted.certificate_.primal == pytest.approx(expected.primal, rel=3e-8)


@every_loss
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_factors_of_one_and_infinite_bounds_are_the_plain_model(loss, l1_ratio, rng) -> None:
    X, y = two_classes(rng)
    plain = LOSSES[loss][0](0.02, l1_ratio, tol=1e-10).fit(X, y)
    for given in (
        {"penalty_factor": np.ones(FEATURES)},
        {"bounds": (None, None)},
        {"bounds": (-np.inf, NO_BOUND)},
    ):
        same = clone(plain).set_params(**given).fit(X, y)
        np.testing.assert_allclose(same.coef_, plain.coef_, atol=1e-7)
        assert same.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-12)


@every_loss
def test_under_l1_a_factor_is_a_change_of_scale(loss: str, rng) -> None:
    X, y = two_classes(rng)
    weighted = LOSSES[loss][0](0.02, 1.0, penalty_factor=FACTORS, tol=1e-10).fit(X, y)
    scaled = LOSSES[loss][0](0.02, 1.0, tol=1e-10).fit(X / FACTORS, y)
    np.testing.assert_allclose(weighted.coef_, scaled.coef_ / FACTORS, atol=1e-6)
    assert weighted.certificate_.primal == pytest.approx(scaled.certificate_.primal, rel=1e-9)


def test_the_adaptive_lasso_selects_fewer_features(rng) -> None:
    X = rng.standard_normal((150, 40))
    y = X[:, :3] @ [2.0, -2.0, 1.5] + rng.standard_normal(150) > 0
    first = SparseLogisticRegression(0.02, 1.0).fit(X, y)
    weights = 1.0 / (np.abs(first.coef_[0]) + 0.02)
    weights *= weights.size / weights.sum()
    adaptive = SparseLogisticRegression(0.02, 1.0, penalty_factor=weights).fit(X, y)
    live = np.flatnonzero(adaptive.coef_[0])
    assert set(live) >= {0, 1, 2}
    assert live.size < np.count_nonzero(first.coef_)


def test_bounds_of_zero_leave_a_feature_out(rng) -> None:
    X, y = two_classes(rng)
    upper = np.where(SOME, 0.0, np.inf)
    bounded = HuberizedSVC(0.02, bounds=(-upper, upper), tol=1e-9).fit(X, y)
    without = HuberizedSVC(0.02, tol=1e-9).fit(X[:, ~SOME], y)
    assert not bounded.coef_[0, SOME].any()
    np.testing.assert_allclose(bounded.coef_[0, ~SOME], without.coef_[0], atol=1e-5)


def test_a_constant_feature_may_have_bounds(rng) -> None:
    X, y = two_classes(rng)
    X[:, 4] = 2.0
    fitted = HuberizedSVC(0.02, bounds=(0, 0.1), standardize=True).fit(X, y)
    assert fitted.coef_[0, 4] == 0.0
    assert np.all((fitted.coef_ >= 0) & (fitted.coef_ <= 0.1))


def test_more_features_than_samples_and_than_a_certificate_works_on_at_a_time(rng) -> None:
    X = rng.standard_normal((50, 5000))
    X = np.concatenate([X, X[:, :2000], X, X[:, :5500]], axis=1)
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(50) > 0
    factors = rng.uniform(0.5, 2.0, X.shape[1])
    factors[:2] = 0.0
    fitted = HuberizedSVC(0.05, 0.9, penalty_factor=factors, bounds=(-1.0, None), tol=1e-8).fit(
        X, y
    )
    assert fitted.certificate_.relative_gap <= 1e-8
    assert fitted.coef_[0, :2].all()


@pytest.mark.parametrize("model", ["factors", "all of it"])
def test_one_problem_a_class_against_the_rest_has_them_in_each(model: str, rng) -> None:
    X, _ = two_classes(rng)
    y = rng.integers(0, 3, SAMPLES)
    factors, lower, upper = MODELS[model]
    given = {"penalty_factor": factors, "bounds": (lower, upper), "tol": 1e-9}
    fitted = HuberizedSVC(0.02, multi_class="ovr", **given).fit(X, y)
    for k in range(3):
        one = HuberizedSVC(0.02, **given).fit(X, y == k)
        np.testing.assert_allclose(fitted.coef_[k], one.coef_[0], atol=1e-8)


def test_the_multinomial_model_has_factors_and_bounds(rng) -> None:
    X, _ = two_classes(rng)
    y = (X[:, 0] + rng.standard_normal(SAMPLES) > 0).astype(int) + (X[:, 1] > 0.5)
    lower = np.full(FEATURES, -0.1)
    fitted = SparseLogisticRegression(
        0.02, 0.7, penalty_factor=FACTORS, bounds=(lower, None), tol=1e-8
    ).fit(X, y)
    W, b = cp.Variable((FEATURES, 3)), cp.Variable(3)
    scores = X @ W + np.ones((SAMPLES, 1)) @ cp.reshape(b, (1, 3), order="C")
    own = cp.sum(cp.multiply(scores, np.eye(3)[y]), axis=1)
    penalty = 0.014 * FACTORS @ cp.sum(cp.abs(W), axis=1)
    penalty += 0.003 * FACTORS @ cp.sum(cp.square(W), axis=1)
    objective = cp.sum(cp.log_sum_exp(scores, axis=1) - own) / SAMPLES + penalty
    best = cp.Problem(cp.Minimize(objective), [W >= -0.1]).solve(solver=cp.CLARABEL)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)


def test_classes_that_sum_to_zero_have_factors(rng) -> None:
    X, _ = two_classes(rng)
    y = (X[:, 0] + rng.standard_normal(SAMPLES) > 0).astype(int) + (X[:, 1] > 0.5)
    fitted = HuberizedSVC(0.03, 0.7, penalty_factor=FACTORS, tol=1e-8).fit(X, y)
    W, b = cp.Variable((FEATURES, 3)), cp.Variable(3)
    scores = X @ W + np.ones((SAMPLES, 1)) @ cp.reshape(b, (1, 3), order="C")
    losses = cp.huber(cp.pos(1 + scores), 1.0) / 2
    penalty = 0.021 * FACTORS @ cp.sum(cp.abs(W), axis=1)
    penalty += 0.0045 * FACTORS @ cp.sum(cp.square(W), axis=1)
    objective = cp.sum(cp.multiply(losses, 1 - np.eye(3)[y])) / SAMPLES + penalty
    sums = [cp.sum(W, axis=1) == 0, cp.sum(b) == 0]
    best = cp.Problem(cp.Minimize(objective), sums).solve(solver=cp.CLARABEL)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-6)
    start = alpha_max(HuberizedSVC(l1_ratio=0.7, penalty_factor=FACTORS), X, y)
    for share, zero in ((1.0001, True), (0.99, False)):
        near = clone(fitted).set_params(alpha=share * start, tol=1e-10).fit(X, y)
        assert near.coef_.any() != zero


# -- paths --------------------------------------------------------------------------------------


@every_loss
@every_model
def test_the_path_starts_where_penalised_coefficients_are_zero(loss: str, model: str, rng) -> None:
    X, y = two_classes(rng)
    factors, lower, upper = MODELS[model]
    estimator = LOSSES[loss][0](
        l1_ratio=0.7, penalty_factor=factors, bounds=(lower, upper), tol=1e-11
    )
    start = alpha_max(estimator, X, y)
    penalised = factors > 0
    above = clone(estimator).set_params(alpha=start * (1 + 1e-6)).fit(X, y)
    below = clone(estimator).set_params(alpha=start * 0.99).fit(X, y)
    assert not above.coef_[0, penalised].any()
    assert below.coef_[0, penalised].any()


@every_model
def test_every_model_of_a_path_is_certified_and_keeps_its_bounds(model: str, rng) -> None:
    X, y = two_classes(rng)
    factors, lower, upper = MODELS[model]
    estimator = HuberizedSVC(
        l1_ratio=0.9, penalty_factor=factors, bounds=(lower, upper), standardize=True
    )
    path = margin_path(estimator, X, y, n_alphas=8, eps=0.01)
    assert all(certificate.converged for certificate in path.certificates)
    assert path.n_nonzero[0] == np.count_nonzero(path.coefs[0])
    assert np.all((path.coefs >= lower) & (path.coefs <= upper))
    single = clone(estimator).set_params(alpha=path.alphas[4]).fit(X, y)
    assert single.certificate_.primal == pytest.approx(path.certificates[4].primal, rel=3e-6)


# -- the hinge ----------------------------------------------------------------------------------


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("model", ["factors", "non-negative"])
def test_the_hinge_has_factors_and_bounds(model: str, l1_ratio: float, rng) -> None:
    X, y = two_classes(rng)
    factors, lower, upper = MODELS[model]
    best = optimum(
        lambda t: cp.pos(1 - t), X, y, np.full(SAMPLES, 1 / SAMPLES),
        (0.05 * l1_ratio, 0.05 * (1 - l1_ratio)), MODELS[model],
    )  # fmt: skip
    fitted = ElasticNetSVC(
        0.05, l1_ratio, penalty_factor=factors, bounds=(lower, upper), tol=1e-8
    ).fit(X, y)
    assert fitted.certificate_.solver == "multiplier-newton"
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-7)
    assert fitted.certificate_.dual <= best * (1 + 1e-7)


@pytest.mark.parametrize("solver", ["fbpd", "auto"])
def test_the_hinge_has_bounds_that_are_not_zero(solver: str, rng) -> None:
    X, y = two_classes(rng)
    best = optimum(
        lambda t: cp.pos(1 - t), X, y, np.full(SAMPLES, 1 / SAMPLES), (0.05, 0.05),
        (FACTORS, np.full(FEATURES, -0.1), np.full(FEATURES, 0.2)),
    )  # fmt: skip
    fitted = ElasticNetSVC(
        0.1, 0.5, penalty_factor=FACTORS, bounds=(-0.1, 0.2), tol=1e-4, solver=solver
    ).fit(X, y)
    assert fitted.certificate_.primal == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("lower", [None, 0.0], ids=["either sign", "non-negative"])
def test_programs_and_paths_of_the_hinge_know_factors(lower: float | None, rng) -> None:
    X, y = two_classes(rng)
    model = ElasticNetSVC(
        0.05, 1.0, penalty_factor=FACTORS, bounds=(lower, None), tol=1e-9
    )  # fmt: skip
    program = clone(model).set_params(solver="linear-program").fit(X, y).certificate_
    assert model.fit(X, y).certificate_.primal == pytest.approx(program.primal, rel=2e-9)
    start = alpha_max(model, X, y)
    assert not clone(model).set_params(alpha=start * (1 + 1e-6)).fit(X, y).coef_.any()
    assert clone(model).set_params(alpha=start * 0.99).fit(X, y).coef_.any()


def test_paths_start_where_bounds_that_are_not_zero_have_no_say(rng) -> None:
    X, y = two_classes(rng)
    model = ElasticNetSVC(0.05, 0.5)
    bounded = clone(model).set_params(bounds=(-0.1, 0.2))
    assert alpha_max(bounded, X, y) == pytest.approx(alpha_max(model, X, y), rel=1e-12)


def test_exact_hinges_with_an_l1_norm_take_bounds_of_zero_only(rng) -> None:
    X, y = two_classes(rng)
    with pytest.raises(ValueError, match="bounds must be 0 or infinite for the hinge"):
        ElasticNetSVC(0.05, 1.0, bounds=(-0.1, 0.2)).fit(X, y)


@pytest.mark.parametrize("make", [SparseLogisticRegression, HuberizedSVC, SquaredHingeSVC])
def test_features_without_a_penalty_that_rounding_alone_tells_apart_are_refused(make, rng) -> None:
    X, y = two_classes(rng)
    X[:, 0] = 170 + 10 * rng.standard_normal(SAMPLES)
    X[:, 1] = X[:, 0] / 2.54
    factors = np.ones(FEATURES)
    factors[:2] = 0.0
    with pytest.raises(ValueError, match="2 features without a penalty are linearly dependent"):
        make(0.05, penalty_factor=factors).fit(X, y)


@every_loss
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_without_any_penalty_the_optimum_of_independent_features_is_proven(loss, form, rng) -> None:
    X, y = two_classes(rng)
    y[::7] *= -1  # no plane separates the classes
    estimator, formula = LOSSES[loss]
    shares = np.full(SAMPLES, 1 / SAMPLES)
    best = optimum(formula, X, y, shares, (0.0, 0.0), (np.ones(FEATURES), -NO_BOUND, NO_BOUND))
    bare = MarginClassifier(estimator()._margin_loss(), Ridge(0.0), tol=1e-9)
    for model in (estimator(0.0, tol=1e-9), bare):
        found = model.fit(form(X), y).certificate_
        assert found.dual - 1e-9 <= best <= found.primal + 1e-9
        assert found.primal == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("make", [SquaredHingeSVC, HuberizedSVC])
def test_without_any_penalty_separable_classes_have_a_loss_of_zero(make, rng) -> None:
    X, _ = two_classes(rng)
    y = np.where(X @ np.arange(FEATURES) > 20, 1, -1)
    assert make(0.0).fit(X, y).certificate_.primal < 1e-20


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["a constant", "a copy"])
def test_dependent_features_without_any_penalty_have_their_true_residual(extra, rng) -> None:
    X, y = two_classes(rng)
    y[::7] *= -1
    X[:, 1] = 3.0 if extra == "a constant" else X[:, 0]
    for limit in (3, 30, None):
        model = SquaredHingeSVC(0.0, max_iter=limit, solver="b-pgh")
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        short = np.maximum(1.0 - y * (X @ model.coef_[0] + model.intercept_[0]), 0.0)
        steepest = np.abs(X.T @ (y * short)).max() * 2 / SAMPLES
        certificate = model.certificate_
        assert certificate.kkt_residual == pytest.approx(steepest, rel=1e-6, abs=1e-12)
        assert certificate.gap == pytest.approx(certificate.primal)


@pytest.mark.parametrize("closeness", [1.0, 1e-3, 1e-5])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.05, 0.0])
def test_certificates_hold_for_close_features_without_a_penalty(closeness, seed, alpha) -> None:
    rng = np.random.default_rng(seed)
    X, y = two_classes(rng)
    y[::7] *= -1  # no plane separates the classes
    X[:, 1] = X[:, 0] + closeness * rng.standard_normal(SAMPLES)
    apart = X.copy()  # the same models: what is not shrunk has no units
    apart[:, 1] = (X[:, 1] - X[:, 0]) / closeness
    factors = np.ones(FEATURES)
    factors[:2] = 0.0
    given = {"penalty_factor": factors} if alpha else {}
    model = SparseLogisticRegression(alpha, 1.0, tol=1e-10, **given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # rounding counts here
        best = clone(model).fit(apart, y).certificate_
        found = clone(model).fit(X, y).certificate_
    assert found.gap >= found.primal - best.primal - 1e-15
    assert found.dual <= best.primal + 1e-15


# -- objects and bad input ----------------------------------------------------------------------


def test_the_penalty_is_an_object_for_any_loss(rng) -> None:
    X, y = two_classes(rng)
    penalty = WeightedElasticNet(ElasticNet(0.014, 0.006), FACTORS, 0.0)
    given = MarginClassifier(penalty=penalty, tol=1e-9).fit(X, y)
    same = HuberizedSVC(0.02, 0.7, penalty_factor=FACTORS, bounds=(0, None), tol=1e-9).fit(X, y)
    np.testing.assert_allclose(given.coef_, same.coef_, atol=1e-8)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "negative": ({"penalty_factor": -FACTORS}, "penalty_factor must be finite numbers >= 0"),
    "too few": ({"penalty_factor": FACTORS[:3]}, r"penalty_factor must be one number a feature"),
    "a number": ({"penalty_factor": 2.0}, r"penalty_factor must be one number a feature"),
    "all zero": ({"penalty_factor": 0 * FACTORS}, "penalty_factor is zero for all features"),
    "NaN": ({"penalty_factor": FACTORS + np.nan}, "penalty_factor must be finite"),
    "infinite": ({"penalty_factor": NO_BOUND}, r"penalty_factor must be finite.*bounds \(0, 0\)"),
    "words": ({"penalty_factor": ["a"] * FEATURES}, "penalty_factor must be numbers"),
    "text": ({"penalty_factor": {0: "2"}}, "penalty_factor must be numbers, got '2'"),
    "truth": ({"penalty_factor": {0: True}}, "penalty_factor must be numbers, got True"),
    "a mask": ({"penalty_factor": np.ma.masked_equal(FACTORS, FACTORS[1])}, "has a masked entry"),
    "text in a pair": ({"bounds": {0: (0, "1")}}, "bounds: upper must be numbers, got '1'"),
    "truth in a pair": ({"bounds": (False, 1)}, "bounds: lower must be numbers, got False"),
    "complex": ({"bounds": (0, 1j)}, "bounds: upper must be numbers, got 1j"),
    "masked bound": ({"bounds": (0, np.ma.masked_equal(FACTORS, FACTORS[1]))}, "a masked entry"),
    "no pair": ({"bounds": 0.0}, r"bounds must be a pair \(lower, upper\)"),
    "lower above zero": ({"bounds": (0.1, 1.0)}, "bounds: lower must be <= 0, got 0.1"),
    "upper below zero": ({"bounds": (None, -FACTORS)}, "bounds: upper must be >= 0"),
    "NaN bound": ({"bounds": (np.nan, 1.0)}, "bounds: lower must be numbers, got nan"),
    "bounds of others": ({"bounds": (np.zeros(3), 1.0)}, r"bounds: lower must be a number or one"),
}


@pytest.mark.parametrize(("given", "message"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("name", ["HuberizedSVC", "ElasticNetSVC"])
def test_bad_factors_and_bounds_are_named(given: Any, message: str, name: str, rng) -> None:
    X, y = two_classes(rng)
    with pytest.raises(ValueError, match=message):
        getattr(proxmargin, name)(**given).fit(X, y)


def test_what_has_no_place_in_a_model_is_refused_in_a_sentence(rng) -> None:
    X, y = two_classes(rng)
    classes = np.arange(SAMPLES) % 3
    with pytest.raises(ValueError, match=r"bounds .* multi_class='ovr'"):
        HuberizedSVC(bounds=(0, None)).fit(X, classes)
    for model in (HuberizedSVC, SparseLogisticRegression):
        with pytest.raises(ValueError, match=r"penalty_factor must be > 0 .* multi_class='ovr'"):
            model(penalty_factor=FREE).fit(X, classes)
    with pytest.raises(ValueError, match="penalty_factor must be > 0 for the hinge"):
        ElasticNetSVC(penalty_factor=FREE).fit(X, y)
    few = np.array([0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"penalty_factor is zero for 4 features.* 4 samples"):
        HuberizedSVC(penalty_factor=FREE).fit(X[few], [0, 1, 0, 1])


def test_without_a_minimiser_no_more_is_proved_than_that_losses_are_positive(rng) -> None:
    X, _ = two_classes(rng)
    y = X[:, 0] > 0.3  # the loss falls without end
    model = SparseLogisticRegression(0.02, penalty_factor=FREE, max_iter=5)
    with pytest.warns(UserWarning, match="separate the classes"):
        certificate = model.fit(X, y).certificate_
    assert certificate.dual <= 1e-12 * certificate.primal
    assert certificate.gap >= certificate.primal > 0


# -- what carries a model -----------------------------------------------------------------------


@pytest.mark.parametrize("make", [HuberizedSVC, SquaredHingeSVC, SparseLogisticRegression])
@pytest.mark.parametrize("alpha", [1e-3, 1e-9])
def test_features_without_a_penalty_that_separate_the_classes_are_named(make, alpha) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 120)), np.where(rng.random(40) > 0.5, 1, -1)
    factors = np.where(np.arange(120) < 38, 0.0, 1.0)
    with pytest.warns(UserWarning, match="without a penalty separate the classes"):
        model = make(alpha=alpha, penalty_factor=factors).fit(X, y)
    assert model.certificate_.converged
    assert model.certificate_.primal < 1e-20
    assert np.abs(model.coef_).max() < 1e6
    if make is SparseLogisticRegression:
        margins = np.where(y > 0, 1, -1) * model.decision_function(X)
        loss = np.mean(np.log1p(np.exp(-margins)))
        assert model.certificate_.primal == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("intercept", [{"fit_intercept": False}, {"intercept_ridge": 0.1}])
def test_separating_coefficients_are_no_longer_than_the_margins_ask_for(intercept, rng) -> None:
    """Where all margins are on the linear piece of the loss, there is no curvature."""
    y = np.where(np.arange(40) % 2, 1, -1)
    X = rng.standard_normal((40, 6))
    X[:, 0] = y * (1.0 + rng.random(40))
    model = HuberizedSVC(delta=0.1, penalty_factor=[0, 1, 1, 1, 1, 1], **intercept)
    with pytest.warns(UserWarning, match="without a penalty separate the classes"):
        fitted = clone(model).fit(X, y)
    with pytest.warns(UserWarning, match="without a penalty separate the classes"):
        path = margin_path(model, X, y, alphas=[0.1, 0.01])
    for one in (fitted, path.model(1)):
        assert one.certificate_.converged
        assert 0.5 < one.coef_[0, 0] < 10.0


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_the_best_of_many_flat_directions_is_close(l1_ratio: float) -> None:
    """Few samples within the margin determine no coefficients: those found stay of their size."""
    rng = np.random.default_rng(1)
    X = scale(rng.standard_normal((60, 300)))
    y = np.where(rng.random(60) > 0.5, 1, -1)
    factors = np.where(np.arange(300) < 5, 0.0, 1.0)
    model = SquaredHingeSVC(alpha=1e-4, l1_ratio=l1_ratio, penalty_factor=factors).fit(X, y)
    assert model.certificate_.converged
    assert np.abs(model.coef_).max() < 10.0


@pytest.mark.parametrize("as_object", [False, True], ids=["parameters", "an object"])
def test_files_and_clones_carry_factors_and_bounds(as_object: bool, rng, tmp_path) -> None:
    X, y = two_classes(rng)
    penalty = WeightedElasticNet(ElasticNet(0.014, 0.006), FACTORS, HALF, 0.5)
    model = MarginClassifier(penalty=penalty)
    if not as_object:
        model = HuberizedSVC(0.02, penalty_factor=FREE, bounds=(HALF, None))
    proxmargin.save_model(clone(model).fit(X, y), tmp_path / "model")
    loaded = proxmargin.load_model(tmp_path / "model")
    given, kept = model.get_params(), loaded.get_params()
    if as_object:
        given, kept = vars(given["penalty"]), vars(kept["penalty"])
    for name in ("factors", "lower", "upper") if as_object else ("penalty_factor",):
        np.testing.assert_array_equal(kept[name], given[name])
    again = loaded.fit(X, y)
    np.testing.assert_array_equal(again.coef_, clone(model).fit(X, y).coef_)
    assert ("WeightedElasticNet" if as_object else "penalty_factor") in repr(model)


def test_a_fit_with_other_factors_does_not_resume(rng, tmp_path) -> None:
    X, y = two_classes(rng)
    note = proxmargin.Checkpoint(tmp_path / "note")
    model = HuberizedSVC(0.02, penalty_factor=FACTORS, callbacks=[note]).fit(X, y)
    same = clone(model).fit(X, y, resume_from=tmp_path / "note")
    np.testing.assert_array_equal(same.coef_, model.coef_)
    with pytest.raises(ValueError, match="penalty_factor"):
        HuberizedSVC(0.02, penalty_factor=FACTORS[::-1]).fit(X, y, resume_from=tmp_path / "note")


@pytest.mark.parametrize("least", [1e-20, 1e-200])
def test_factors_too_small_to_certify_are_refused(least: float) -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 2
    with pytest.raises(ValueError, match="penalty_factor must be 0 or at least 1e-16 times"):
        HuberizedSVC(alpha=0.1, penalty_factor=[least, 1.0, 1.0]).fit(X, y)
    model = HuberizedSVC(alpha=0.1, penalty_factor=[1e-15, 1.0, 1.0]).fit(X, y)
    assert model.certificate_.converged


@pytest.mark.parametrize("constant", [1.0, 1e9, -1e-9])
@pytest.mark.parametrize("kind", [HuberizedSVC, SquaredHingeSVC, SparseLogisticRegression])
def test_a_constant_feature_without_a_penalty_is_the_intercept(kind, constant, rng) -> None:
    X, y = two_classes(rng)
    X[:, :2] = constant, 2.0 * constant
    factors = np.r_[0.0, 0.0, np.ones(X.shape[1] - 2)]
    model = kind(0.02, penalty_factor=factors, tol=1e-9).fit(X, y)
    alone = kind(0.02, tol=1e-9).fit(X[:, 2:], y)
    assert model.certificate_.converged
    np.testing.assert_array_equal(model.coef_[0, :2], 0.0)
    assert model.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-9)
    np.testing.assert_allclose(model.coef_[0, 2:], alone.coef_[0], atol=1e-5)


def test_features_that_bounds_fix_are_not_free(rng) -> None:
    X, y = two_classes(rng)
    X, y = X[:4], np.arange(4) % 2
    fixed = np.where(np.arange(X.shape[1]) < X.shape[1] - 1, 0.0, np.inf)
    factors = np.isinf(fixed) * 1.0
    model = SquaredHingeSVC(0.02, penalty_factor=factors, bounds=(-fixed, fixed)).fit(X, y)
    assert model.certificate_.converged
    hinge = ElasticNetSVC(0.02, penalty_factor=factors, bounds=(-fixed, fixed)).fit(X, y)
    assert hinge.certificate_.converged
