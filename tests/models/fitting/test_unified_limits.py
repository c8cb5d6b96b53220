"""Where the models of inner products end: odd data, odd parameters, other norms."""

from __future__ import annotations

import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from proxmargin import (
    DWD,
    L2SVC,
    SVC,
    LogisticRegression,
    MarginClassifier,
    MarginFDA,
    MarginMPM,
    NuSVC,
    nu_range,
)
from proxmargin.data.kernels.checks import IndefiniteKernelError
from proxmargin.losses import DistanceWeighted, HuberizedHinge, Logistic, SquaredHinge
from proxmargin.penalties import Ball
from tests.cases import KERNEL_MACHINES
from tests.oracles.models import TIGHT
from tests.shared_data import clouds

every_model = pytest.mark.parametrize("make", KERNEL_MACHINES.values(), ids=KERNEL_MACHINES.keys())
every_kernel = pytest.mark.parametrize("kernel", ["linear", "rbf"])
of_C = pytest.mark.parametrize("make", [SVC, L2SVC, LogisticRegression])
minimax = pytest.mark.parametrize(("make", "model"), [(MarginFDA, "fda"), (MarginMPM, "mpm")])


def quiet(model: Any, *data: Any, **options: Any) -> Any:
    """Fitted, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **options)


def check_honest(model: Any, X: Any) -> None:
    """Finite numbers, and a gap that is one."""
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert np.isfinite(model.certificate_.primal)
    assert model.certificate_.gap >= 0


# -- odd data -------------------------------------------------------------------------------------


@every_model
@every_kernel
def test_one_sample_a_class_is_enough(make: Any, kernel: str) -> None:
    X = np.array([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    model = make(kernel=kernel, gamma=0.5).fit(X, ["a", "b"])
    check_honest(model, X)
    scores = model.decision_function(X)
    assert scores[1] > scores[0]
    assert model.predict(X).tolist() == ["a", "b"]
    # mirror images: the boundary is in the middle
    assert scores.sum() == pytest.approx(0.0, abs=1e-3 * np.abs(scores).max())


@every_model
@every_kernel
def test_duplicated_samples_change_no_mean(make: Any, kernel: str) -> None:
    X, y = clouds()
    options = {"kernel": kernel, "gamma": 0.2, "tol": 1e-9}
    once = make(**options).fit(X, y)
    twice = {"C": 0.5} if "C" in once.get_params() else {}
    if make is DWD:  # its threshold is sqrt(S nu)
        options["nu"] = 0.01
        once, twice = make(**options).fit(X, y), {"nu": 0.005}
    model = make(**{**options, **twice}).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    scores = once.decision_function(X)
    near = 1e-3 * (1 + np.abs(scores).max())
    np.testing.assert_allclose(model.decision_function(X), scores, atol=near)


@every_model
@every_kernel
def test_identical_samples_have_one_score_and_an_honest_certificate(make: Any, kernel: str) -> None:
    X, y = np.full((12, 3), 1.7), np.arange(12) % 3 == 0
    model = quiet(make(kernel=kernel), X, y)
    check_honest(model, X)
    assert np.ptp(model.decision_function(X)) == pytest.approx(0.0, abs=1e-6)
    if "C" in model.get_params():
        assert model.certificate_.converged


@of_C
@every_kernel
@pytest.mark.parametrize("C", [1e-8, 1e-4, 1e4, 1e8])
def test_extreme_strengths_are_certified(make: Any, kernel: str, C: float) -> None:
    X, y = clouds()
    model = quiet(make(C=C, kernel=kernel, gamma=0.2, tol=1e-5), X, y)
    check_honest(model, X)
    assert model.certificate_.converged
    if C == 1e-8:  # next to no model: the loss of the better constant
        shares = np.bincount(y) / y.size
        entropy = -(shares @ np.log(shares))
        least = {SVC: 2 * shares.min(), L2SVC: 4 * shares.prod(), LogisticRegression: entropy}
        assert model.certificate_.primal == pytest.approx(C * y.size * least[make], rel=1e-4)


@every_model
def test_a_kernel_that_sees_no_neighbours_is_the_identity(make: Any) -> None:
    X, y = clouds()
    sharp = make(kernel="rbf", gamma=1e6, tol=1e-8).fit(X, y)
    plain = make(kernel="precomputed", tol=1e-8).fit(np.eye(y.size), y)
    scores = plain.decision_function(np.eye(y.size))
    near = 1e-4 * (1 + np.abs(scores).max())
    np.testing.assert_allclose(sharp.decision_function(X), scores, atol=near)
    far = sharp.decision_function(np.full((1, X.shape[1]), 50.0))
    np.testing.assert_allclose(far, sharp.intercept_)


@every_model
@every_kernel
def test_constant_columns_change_nothing(make: Any, kernel: str) -> None:
    X, y = clouds()
    more = np.column_stack([X, np.full(y.size, 3.0), np.zeros(y.size)])
    for standardize in (False, True):
        options = {"kernel": kernel, "gamma": 0.2, "standardize": standardize, "tol": 1e-9}
        plain, wider = make(**options).fit(X, y), make(**options).fit(more, y)
        scores = plain.decision_function(X)
        near = 1e-3 * (1 + np.abs(scores).max())
        np.testing.assert_allclose(wider.decision_function(more), scores, atol=near)


@every_model
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_more_features_than_samples_are_fitted(make: Any, form: Any) -> None:
    X, y = clouds(n=20, p=200, apart=0.1)
    model = make(tol=1e-8).fit(form(X), y)
    assert model.certificate_.converged
    assert model.score(form(X), y) == 1.0
    K = make(kernel="precomputed", tol=1e-8).fit(X @ X.T, y)
    primal = model.certificate_.primal
    assert K.certificate_.primal == pytest.approx(primal, rel=1e-6)


@every_model
@every_kernel
def test_bad_data_are_refused_in_a_sentence(make: Any, kernel: str) -> None:
    X, y = clouds()
    bad = X.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN in row 3, column 2"):
        make(kernel=kernel).fit(bad, y)
    with pytest.raises(ValueError, match="one class only"):
        make(kernel=kernel).fit(X, np.zeros(y.size))
    with pytest.raises(ValueError, match="sample_weight must be >= 0"):
        make(kernel=kernel).fit(X, y, sample_weight=-np.ones(y.size))
    with pytest.raises(ValueError, match="one class only"):
        make(kernel=kernel).fit(X, y, sample_weight=y.astype(float))
    model = make(kernel=kernel, tol=1e-2).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X[:, :2])


@pytest.mark.parametrize("make", [MarginFDA, MarginMPM])
@pytest.mark.parametrize("kappa", ["0.1max", "0.3max", "0.5max", "0.7max", "0.9max", "0.99max"])
def test_classes_that_are_segments_are_certified_at_every_kappa(make: Any, kappa: str) -> None:
    # parallel segments: no spread at all along the second feature
    X = np.repeat(np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 3.0], [4.0, 1.0]]), 4, axis=0)
    model = make(kappa=kappa, tol=1e-10).fit(X, np.repeat([1, 2, 1, 2], 4))
    assert model.certificate_.converged
    assert "went on" not in model.certificate_.because


# -- odd kernels ----------------------------------------------------------------------------------


@every_model
def test_an_indefinite_kernel_is_refused(make: Any) -> None:
    X, y = clouds()
    K = X @ X.T
    K[0, 0] = -5.0
    with pytest.raises(IndefiniteKernelError, match="negative"):
        make(kernel="precomputed").fit(K, y)
    with pytest.raises(IndefiniteKernelError):
        make(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X, y)
    with pytest.raises(IndefiniteKernelError):
        make(kernel=lambda a, b: -np.exp(-((a[:, None] - b) ** 2).sum(axis=2))).fit(X, y)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda K: K[:, :-1], "square"),
        (lambda K: np.triu(K), "symmetric"),
        (lambda K: np.where(K.max() > K, K, np.nan), "NaN"),
        (sp.csr_matrix, "[Ss]parse"),
    ],
)
def test_a_precomputed_matrix_that_is_no_kernel_is_refused(change: Any, sentence: str) -> None:
    X, y = clouds()
    with pytest.raises((ValueError, TypeError), match=sentence):
        SVC(kernel="precomputed").fit(change(X @ X.T), y)
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X @ X[:-1].T)


@every_model
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"kernel": "gauss"}, "kernel is one of .*not 'gauss'"),
        ({"kernel": 3}, "kernel is one of"),
        ({"kernel": "rbf", "gamma": 0.0}, "gamma"),
        ({"kernel": "rbf", "gamma": "wide"}, "gamma is 'scale', 'auto'"),
        ({"kernel": "poly", "degree": 0}, "degree must be an integer >= 1"),
        ({"kernel": "poly", "degree": 1.5}, "degree must be an integer"),
        ({"kernel": "poly", "coef0": np.nan}, "coef0"),
        ({"kernel": "rbf", "rank": 0}, "rank must be an integer >= 1 or None"),
        ({"kernel": "rbf", "rank": "all"}, "rank must be"),
        ({"cache_size": -1.0}, "cache_size"),
        ({"multi_class": "joint"}, "multi_class"),
        ({"kernel": "precomputed", "standardize": True}, "standardize must be False"),
        ({"solver": "gcd"}, "cannot take this problem|gcd"),
        ({"solver": "quick"}, "unknown solver 'quick'"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(make: Any, settings: dict, sentence: str) -> None:
    X, y = clouds()
    if settings == {"solver": "gcd"} and make in (L2SVC, LogisticRegression):
        return
    with pytest.raises(ValueError, match=sentence):
        make(**settings).fit(X @ X.T if settings.get("kernel") == "precomputed" else X, y)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (SVC(C=0.0), "C must be a finite number > 0"),
        (SVC(C="big"), "C must be"),
        (NuSVC(nu=0.0), "nu must be"),
        (NuSVC(nu="half"), "nu must be a number, or a fraction"),
        (NuSVC(nu="1.5max"), "strictly between 0 and 1"),
        (NuSVC(norm=1.0), "norm must be a finite number > 1"),
        (NuSVC(norm=np.inf), "norm must be"),
        (NuSVC(norm=3.0, kernel="rbf"), "norm must be 2 for a nonlinear kernel"),
        (DWD(norm=1.5, kernel="precomputed"), "norm must be 2 for a nonlinear kernel"),
        (DWD(nu=-1.0), "nu must be"),
        (DWD(nu="0.5max"), "nu must be"),
        (MarginFDA(kappa=-0.1), "kappa must be"),
        (MarginMPM(kappa="max"), "kappa must be a number, or a fraction"),
        (MarginFDA(bias="middle"), "bias must be one of 'training_error', 'minimax'"),
        (MarginMPM(bias=None), "bias must be one of"),
        (MarginClassifier(penalty=Ball(2.0, 1.0), multi_class="other"), "multi_class"),
    ],
    ids=repr,
)
def test_bad_parameters_of_one_model_are_refused_in_a_sentence(model: Any, sentence: str) -> None:
    X, y = clouds()
    data = X @ X.T if getattr(model, "kernel", "") == "precomputed" else X
    with pytest.raises(ValueError, match=sentence):
        model.fit(data, y)


@every_model
def test_a_factor_of_low_rank_says_what_it_leaves_out(make: Any) -> None:
    X, y = clouds(n=80)
    options = {"kernel": "rbf", "gamma": 0.5}
    # kappa and the threshold of DWD are those of the factor: give them as numbers
    options |= {MarginFDA: {"kappa": 0.5}, MarginMPM: {"kappa": 0.3}, DWD: {"nu": 0.002}}.get(
        make, {}
    )
    exact = make(tol=1e-10, **options).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="rank") as told:
        model = make(rank=5, **options).fit(X, y)
    certificate = model.certificate_
    assert f"relative gap of {certificate.relative_gap:.2e}" in str(told[0].message)
    assert "of rank 5" in certificate.because
    assert not certificate.converged
    optimum = exact.certificate_.primal
    assert certificate.dual <= optimum + exact.certificate_.gap
    assert certificate.gap >= certificate.primal - optimum - exact.certificate_.gap
    assert certificate.primal >= optimum - exact.certificate_.gap
    # more columns, better proofs
    gaps = [quiet(make(rank=r, **options), X, y).certificate_.gap for r in (5, 20, 80)]
    assert gaps[2] <= gaps[1] <= gaps[0]


# -- other norms ----------------------------------------------------------------------------------


def solved(program: cp.Problem) -> float:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, **TIGHT)
    return float(program.value)


@pytest.mark.parametrize("p", [1.5, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_nu_svm_in_other_norms_is_that_of_an_interior_point(p: float, weighted: bool) -> None:
    X, y = clouds()
    signs, nu = 2.0 * y - 1.0, 0.55
    weights = 1.0 + np.arange(y.size) % 3 if weighted else np.ones(y.size)
    shares = weights / weights.sum()
    w, b, rho = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable()
    t = cp.multiply(signs, X @ w + b)
    tail = -rho + shares @ cp.pos(rho - t) / nu
    best = solved(cp.Problem(cp.Minimize(tail), [cp.pnorm(w, p) <= 1]))
    model = NuSVC(nu=nu, norm=p, tol=1e-8).fit(X, y, sample_weight=weights)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(best, rel=1e-6)
    # scores are scaled so that rho is one: undo that
    coef = model.coef_[0]
    found = coef / np.linalg.norm(coef, p)
    np.testing.assert_allclose(found, w.value / np.linalg.norm(w.value, p), atol=2e-3)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_dwd_in_other_norms_is_that_of_an_interior_point(p: float, weighted: bool) -> None:
    X, y = clouds()
    signs, nu = 2.0 * y - 1.0, 0.01
    weights = 1.0 + np.arange(y.size) % 3 if weighted else np.ones(y.size)
    q = np.sqrt(weights.sum() * nu)
    w, b, slack = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(y.size, nonneg=True)
    t = cp.multiply(signs, X @ w + b)
    value = weights @ (cp.inv_pos(t + slack) + slack / q**2)
    best = solved(cp.Problem(cp.Minimize(value), [cp.pnorm(w, p) <= 1]))
    model = DWD(nu=nu, norm=p, tol=1e-8).fit(X, y, sample_weight=weights)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(model.coef_[0], w.value, atol=2e-3)
    assert np.linalg.norm(model.coef_[0], p) <= 1 + 1e-9


BALL_LOSSES: dict[str, Any] = {
    "huberized hinge": (
        HuberizedHinge(0.5),
        lambda t: 0.5 * cp.huber(cp.pos(1 - t), 0.5) / 0.5,
    ),
    "squared hinge": (SquaredHinge(), lambda t: cp.square(cp.pos(1 - t))),
    "logistic": (Logistic(), lambda t: cp.logistic(-t)),
    "distance weighted": (DistanceWeighted(0.7), None),
}


@pytest.mark.parametrize("loss", BALL_LOSSES)
@pytest.mark.parametrize(("p", "radius"), [(1.5, 0.4), (2.0, 0.7), (3.0, 0.3), (3.0, 50.0)])
def test_any_loss_in_a_ball_is_that_of_an_interior_point(
    loss: str, p: float, radius: float
) -> None:
    X, y = clouds()
    phi, expression = BALL_LOSSES[loss]
    signs = 2.0 * y - 1.0
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    t = cp.multiply(signs, X @ w + b)
    if expression is None:
        slack = cp.Variable(y.size, nonneg=True)
        values = cp.inv_pos(t + slack) + slack / phi.threshold**2
    else:
        values = expression(t)
    best = solved(cp.Problem(cp.Minimize(cp.sum(values) / y.size), [cp.pnorm(w, p) <= radius]))
    model = quiet(MarginClassifier(phi, Ball(p, radius), tol=1e-8, time_limit=5.0), X, y)
    assert model.certificate_.converged
    assert model.certificate_.primal == pytest.approx(best, rel=1e-6)
    assert np.linalg.norm(model.coef_[0], p) <= radius * (1 + 1e-9)


# -- the intercept that the minimax models leave open ----------------------------------------------


@minimax
@every_kernel
@pytest.mark.parametrize("weighted", [False, True])
def test_the_intercept_of_least_training_error_is_found_by_trying_all(
    make: Any, model: str, kernel: str, weighted: bool
) -> None:
    X, y = clouds()
    weights = 0.5 + np.arange(y.size) % 3 if weighted else np.ones(y.size)
    fitted = make(kernel=kernel, gamma=0.2).fit(X, y, sample_weight=weights)
    scores = fitted.decision_function(X) - fitted.intercept_[0]
    edges = np.sort(scores)
    middles = 0.5 * (edges[1:] + edges[:-1])
    thresholds = np.concatenate([[edges[0] - 1], middles, [edges[-1] + 1]])
    errors = [weights @ ((scores > threshold) != (y == 1)) for threshold in thresholds]
    reached = weights @ (fitted.predict(X) != y)
    assert reached == pytest.approx(min(errors))


@minimax
@every_kernel
def test_the_minimax_intercept_gives_both_classes_the_same_worst_margin(
    make: Any, model: str, kernel: str
) -> None:
    X, y = clouds()
    weights = 0.5 + np.arange(y.size) % 3
    kappa = 0.3
    fitted = make(kappa=kappa, bias="minimax", kernel=kernel, gamma=0.2, tol=1e-10)
    scores = fitted.fit(X, y, sample_weight=weights).decision_function(X)
    means, spreads = [], []
    for one in (y == 1, y == 0):
        shares = weights[one] / weights[one].sum()
        means.append(shares @ scores[one])
        spreads.append(np.sqrt(shares @ (scores[one] - means[-1]) ** 2))
    if model == "fda":
        # one ellipsoid around the difference: its nearest point moves both classes by their part
        whole = np.hypot(*spreads)
        spreads = [spread**2 / whole for spread in spreads]
    worst = means[0] - kappa * spreads[0], -(means[1] + kappa * spreads[1])
    assert worst[0] == pytest.approx(worst[1], abs=1e-5 * np.ptp(scores))


def test_rules_for_the_intercept_give_one_direction() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    for make in (MarginFDA, MarginMPM):
        models = [make(bias=b, standardize=True).fit(X, y) for b in ("training_error", "minimax")]
        np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
        assert models[0].score(X, y) >= models[1].score(X, y)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_auto_takes_a_nu_with_a_margin_where_half_of_the_largest_has_none(kernel: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = (X[:, 0] + rng.standard_normal(120) > 0).astype(int)
    model = NuSVC(kernel=kernel, degree=1, coef0=1.0).fit(X, y)
    least, largest = nu_range(X, y)
    assert 0.5 * largest < least < model.nu_ < largest
    assert model.certificate_.converged
    assert model.score(X, y) > 0.65


def test_one_feature_in_tiny_units_keeps_its_certificate(rng) -> None:
    X = rng.standard_normal((60, 5))
    y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(int)
    X[:, 1] *= 1e12
    assert SVC().fit(X, y).certificate_.converged


def test_a_fit_without_a_margin_is_warned_of_once(rng) -> None:
    X = rng.standard_normal((12, 1))
    with pytest.warns(ConvergenceWarning) as said:
        NuSVC(nu="0.5max").fit(X, np.arange(12) % 3)
    assert len(said) == 1
    assert "3 of 3 class problems" in str(said[0].message)
