"""Kernel fits on factors: what is left out is found, and all that was done is told."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from proxmargin import DWD, L2SVC, SVC, LogisticRegression, MarginFDA, MarginMPM, NuSVC
from proxmargin.models.classifiers import kernel_machine, kernel_rounds
from proxmargin.solvers.loop.report import Report
from proxmargin.solvers.ridge import ridge_forms

SMOOTH = (
    (LogisticRegression, {"C": 5.0}),
    (L2SVC, {"C": 2.0, "solver": "ridge-newton"}),
    (DWD, {}),
    (MarginFDA, {"kappa": 0.6}),
    (MarginMPM, {"kappa": 0.4}),
)
KERNEL = {"kernel": "rbf", "gamma": 0.4}


def moons(n: int = 900, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 4))
    score = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.standard_normal(n)
    return X, np.digitize(score, np.linspace(-0.5, 0.5, classes + 1)[1:-1])


@pytest.fixture
def few_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_rounds, "FIRST_RANK", 60)


@pytest.mark.usefixtures("few_columns")
@pytest.mark.parametrize(("make", "settings"), SMOOTH)
def test_rounds_on_a_small_factor_end_at_the_optimum(make: Any, settings: dict[str, Any]) -> None:
    X, y = moons()
    model = make(**settings, **KERNEL).fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    assert int(certificate.because.rsplit(" ", 1)[1]) < 600
    exact = make(rank=900, tol=1e-9, **settings, **KERNEL).fit(X, y).certificate_
    assert abs(certificate.primal - exact.primal) <= 1.1 * (certificate.gap + exact.gap)
    assert certificate.dual <= exact.primal


@pytest.mark.usefixtures("few_columns")
def test_the_work_of_all_rounds_and_of_the_factor_is_told() -> None:
    X, y = moons(classes=3)
    reports: list[Report] = []
    started = time.perf_counter()
    model = LogisticRegression(C=5.0, callbacks=[reports.append], **KERNEL).fit(X, y)
    took = time.perf_counter() - started
    last = [
        one
        for one, next_ in zip(reports, [*reports[1:], None], strict=True)
        if next_ is None or next_.n_iter < one.n_iter or next_.n_passes < one.n_passes
    ]
    assert len(last) > 3  # more than one round
    certificate = model.certificate_
    assert certificate.n_iter == sum(one.n_iter for one in last)
    assert certificate.n_passes > sum(one.n_passes for one in last)
    assert 0.5 * took < certificate.seconds <= took


@pytest.mark.usefixtures("few_columns")
def test_the_limits_are_those_of_all_rounds() -> None:
    X, y = moons()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=5.0, max_iter=5, tol=1e-12, **KERNEL).fit(X, y)
        assert model.certificate_.n_iter <= 5
        short = LogisticRegression(C=5.0, time_limit=1e-3, **KERNEL).fit(X, y)
    assert not short.certificate_.converged
    assert "of rank 60" in short.certificate_.because or "of rank" in short.certificate_.because


@pytest.mark.parametrize(
    ("make", "name"), [(MarginFDA, "kappa_"), (MarginMPM, "kappa_"), (DWD, "nu_"), (NuSVC, "nu_")]
)
def test_what_the_data_chose_is_published_and_does_not_depend_on_the_rank(
    make: Any, name: str
) -> None:
    X, y = moons(150)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = [getattr(make(rank=r, **KERNEL).fit(X, y), name) for r in (20, 150, None)]
    assert isinstance(values[0], float)
    assert values[0] == values[1] == values[2] > 0
    X, y = moons(150, classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        per_class = getattr(make().fit(X, y), name)
    assert per_class.shape == (3,)
    assert (per_class > 0).all()


def test_a_number_that_was_given_is_published_as_it_is() -> None:
    X, y = moons(150)
    assert MarginFDA(kappa=0.3).fit(X, y).kappa_ == 0.3
    assert NuSVC(nu=0.8).fit(X, y).nu_ == 0.8
    assert DWD(nu=0.01).fit(X, y).nu_ == pytest.approx(0.01, rel=1e-12)
    assert NuSVC(nu="0.5max", **KERNEL).fit(X, y).nu_ == NuSVC(**KERNEL).fit(X, y).nu_


def contradicted(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Half of the samples are there again, with the other label."""
    X = np.random.default_rng(seed).normal(size=(n, p))
    y = np.where(np.arange(n) % 2 == 0, 1, -1)
    return np.vstack([X, X[: n // 2]]), np.concatenate([y, -y[: n // 2]])


def published_objective(model: DWD, X: np.ndarray, y: np.ndarray, nu: float) -> float:
    q = np.sqrt(y.size * nu)
    t = y * model.decision_function(X)
    return float(np.where(t >= q, 1.0 / np.maximum(t, q), (2.0 * q - t) / q**2).sum())


@pytest.mark.parametrize("size", [(20, 3), (6, 2), (10, 2)])
def test_equal_samples_with_other_labels_cancel_in_a_model_within_its_ball(
    size: tuple[int, int],
) -> None:
    X, y = contradicted(*size)
    model = DWD(kernel="rbf", gamma=100.0, nu=1e-8).fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    K = np.exp(-100.0 * ((X[:, None] - X) ** 2).sum(axis=2))[np.ix_(model.support_, model.support_)]
    weights = model.dual_coef_[0]
    assert weights @ K @ weights <= 1.0 + 1e-12
    at = published_objective(model, X, y, 1e-8)
    assert certificate.dual <= at <= certificate.primal + certificate.gap + 1e-9 * at


def test_nearly_equal_samples_with_other_labels_leave_a_gap_that_covers_their_rounding() -> None:
    X, y = contradicted(20, 3)
    X[20:] += 1e-12 * np.random.default_rng(1).normal(size=(10, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DWD(kernel="rbf", gamma=100.0, nu=1e-8).fit(X, y)
    exact = X.astype(np.longdouble)
    K = np.exp(-100 * ((exact[:, None] - exact[model.support_]) ** 2).sum(axis=2))
    weights = model.dual_coef_[0].astype(np.longdouble)
    scores = K @ weights
    assert weights @ scores[model.support_] <= 1.0
    q = np.sqrt(30 * 1e-8)
    t = y * (scores + model.intercept_)
    at = np.where(t >= q, 1.0 / np.maximum(t, q), (2.0 * q - t) / q**2).sum()
    assert abs(at - model.certificate_.primal) <= model.certificate_.gap


@pytest.mark.usefixtures("few_columns")
@pytest.mark.parametrize("intercept", [True, False])
def test_newton_on_the_kernel_takes_the_place_of_a_large_factor(intercept: bool) -> None:
    X, y = moons(150)
    model = LogisticRegression(C=20.0, kernel="rbf", gamma=1.0, fit_intercept=intercept).fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.solver == "ridge-newton"
    columns = np.linalg.cholesky(rbf_kernel(X, gamma=1.0) + 1e-12 * np.eye(150))
    peer = SklearnLogistic(C=20.0, tol=1e-10, max_iter=10_000, fit_intercept=intercept)
    peer.fit(columns, y)
    margins = (2 * y - 1) * peer.decision_function(columns)
    best = 20.0 * np.logaddexp(0.0, -margins).sum() + 0.5 * float(np.sum(peer.coef_**2))
    assert certificate.dual <= best
    assert certificate.primal == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(
        model.decision_function(X), peer.decision_function(columns), rtol=1e-3, atol=1e-3
    )


@pytest.mark.usefixtures("few_columns")
def test_decomposition_takes_the_place_of_a_factor_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = moons(150)
    exact = L2SVC(C=20.0, kernel="rbf", gamma=1.0).fit(X, y).certificate_
    monkeypatch.setattr(L2SVC, "_most_decomposed", 0)
    found = L2SVC(C=20.0, kernel="rbf", gamma=1.0).fit(X, y).certificate_
    assert found.converged
    assert found.solver == "decomposition"
    assert found.primal == pytest.approx(exact.primal, rel=2e-6)


@pytest.mark.usefixtures("few_columns")
def test_newton_on_the_kernel_takes_the_classes_that_need_it() -> None:
    X, y = moons(150, classes=3)
    model = LogisticRegression(C=20.0, kernel="rbf", gamma=1.0).fit(X, y)
    assert {one.solver for one in model.certificate_} == {"ridge-newton"}
    exact = LogisticRegression(C=20.0, kernel="rbf", gamma=1.0, rank=150, tol=1e-9).fit(X, y)
    for one, other in zip(model.certificate_, exact.certificate_, strict=True):
        assert one.converged
        assert one.primal == pytest.approx(other.primal, rel=1e-6)
        assert one.dual <= other.primal


@pytest.mark.usefixtures("few_columns")
@pytest.mark.usefixtures("few_columns")
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("gamma", [0.4, 2.0], ids=["after the last factor", "flat"])
def test_newton_with_products_takes_the_place_of_factors_that_leave_much(
    gamma: float, intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = moons(700)
    monkeypatch.setattr(ridge_forms, "MAX_SIDE", 100)
    monkeypatch.setattr(kernel_rounds, "MAX_WORK", 700 * 60.0**2)
    model = LogisticRegression(C=5.0, kernel="rbf", gamma=gamma, fit_intercept=intercept).fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    assert certificate.because.startswith("a kernel matrix")
    assert "of rank" not in certificate.because
    K, signs, beta = rbf_kernel(X, gamma=gamma), 2.0 * y - 1.0, np.zeros(y.size)
    beta[model.support_] = model.dual_coef_[0]
    margins, share = signs * (K @ beta + model.intercept_), signs * beta / 5.0
    primal = 0.5 * beta @ K @ beta + 5.0 * np.logaddexp(0.0, -margins).sum()
    entropy = share * np.log(share) + (1.0 - share) * np.log1p(-share)
    dual = -0.5 * beta @ K @ beta - 5.0 * entropy.sum()
    assert primal - dual <= 1e-6 * primal
    assert not intercept or abs(beta.sum()) <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_logistic_kernels_of_many_samples_and_a_flat_spectrum_are_certified(C: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 8))
    score = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(4000)
    model = LogisticRegression(C=C, kernel="rbf", gamma=0.5, time_limit=60.0).fit(X, score > 0)
    assert model.certificate_.converged


def test_a_rank_or_a_solver_that_is_asked_for_stays() -> None:
    X, y = moons(150)
    for asked in ({"rank": 100}, {"solver": "ridge-newton"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(C=20.0, kernel="rbf", gamma=1.0, **asked).fit(X, y)
        assert model.certificate_.solver == "ridge-newton"


@pytest.mark.parametrize("seed", range(3))
def test_a_kernel_of_low_rank_is_certified_by_the_weights_of_its_pivots(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = 20.0 * rng.standard_normal((150, 1))
    y = np.where(X[:, 0] + 4.0 * rng.standard_normal(150) > 0, 1.0, -1.0)
    settings = {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 1.0, "C": 0.1}
    model = SVC(**settings).fit(X, y)
    found = model.certificate_
    assert found.relative_gap <= 1e-6
    features = np.column_stack([X[:, 0] ** 2, np.sqrt(2.0) * X[:, 0], np.ones(150)])
    w = features[model.support_].T @ model.dual_coef_[0]
    hinges = np.maximum(1.0 - y * (features @ w + model.intercept_[0]), 0.0)
    primal = 0.5 * w @ w + 0.1 * hinges.sum()
    assert found.primal == pytest.approx(primal, rel=1e-6)
    # the objective of any model is no less than the certified lower bound
    theirs = LinearSVC(loss="hinge", C=0.1, max_iter=20_000, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coef = theirs.fit(features, y).coef_[0]
    others = 0.5 * coef @ coef + 0.1 * np.maximum(1.0 - y * (features @ coef), 0.0).sum()
    assert found.primal - found.gap <= others * (1.0 + 1e-12)


def test_a_factor_of_low_rank_is_first_solved_on_its_first_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = moons(1200)
    runs: list[tuple[int, int, bool]] = []
    solve = kernel_machine._KernelSolver.on_factor

    def recorded(self: Any, problems: Any, starts: Any, stop: Any) -> Any:
        found = solve(self, problems, starts, stop)
        rank, started = problems[0].design.n_features, starts[0] is not None
        runs.append((rank, found[0].certificate.n_iter, started))
        return found

    monkeypatch.setattr(kernel_machine._KernelSolver, "on_factor", recorded)
    model = DWD(kernel="rbf", gamma=0.02).fit(X, y)
    (rank, _, begun), (full, few, warm), *_ = runs
    assert (begun, warm) == (False, True)
    assert rank == full // 4
    assert model.certificate_.converged
    assert model.certificate_.n_iter == sum(count for _, count, _ in runs)
    monkeypatch.setattr(kernel_rounds, "FIRST_COLUMNS", 0.0)
    runs.clear()
    cold = DWD(kernel="rbf", gamma=0.02).fit(X, y)
    assert few < runs[0][1]  # steps with all columns
    assert cold.certificate_.primal == pytest.approx(model.certificate_.primal, rel=2e-6)
