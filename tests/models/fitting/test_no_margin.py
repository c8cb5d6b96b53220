"""Where nu or kappa leaves no margin: refused with the admissible range, or a margin is found."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from proxmargin import DWD, DDAGClassifier, MarginFDA, MarginMPM, NuSVC, kappa_max, nu_range
from proxmargin.models.classifiers import nu_dwd
from proxmargin.models.limits import kappa as limits
from proxmargin.models.limits.nu import ProgramTooLargeError
from tests.oracles.models import TIGHT
from tests.shared_data import clouds

every_kernel = pytest.mark.parametrize("kernel", ["linear", "rbf"])
minimax = pytest.mark.parametrize(("make", "model"), [(MarginFDA, "fda"), (MarginMPM, "mpm")])


@every_kernel
def test_a_nu_above_the_largest_is_refused_with_the_largest(kernel: str) -> None:
    X, y = clouds()
    with pytest.raises(ValueError, match=r"nu=0\.9 is above nu_max=0\.8 .*'0\.5max'"):
        NuSVC(nu=0.9, kernel=kernel).fit(X, y)
    assert nu_range(X, y)[1] == pytest.approx(0.8)
    assert NuSVC(nu=0.8, kernel=kernel).fit(X, y).certificate_.converged


@every_kernel
def test_of_more_classes_the_largest_nu_is_that_of_all(kernel: str) -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.repeat([0, 1, 2], [30, 24, 6])
    told = r"nu_max=0\.2 = .*, the least of 3, of class '2' against the others: choose"
    with pytest.raises(ValueError, match=told):
        NuSVC(nu=0.9, kernel=kernel).fit(X, y)
    NuSVC(nu=1.0, kernel=kernel, fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match=r"nu=1\.1 is above nu_max=1, the largest without an"):
        NuSVC(nu=1.1, kernel=kernel, fit_intercept=False).fit(X, y)


@every_kernel
@pytest.mark.parametrize("nu", [0.2, 0.3, 0.5, 0.7])
def test_a_given_nu_is_published_as_it_is(kernel: str, nu: float) -> None:
    X, y = clouds()
    assert NuSVC(nu=nu, kernel=kernel).fit(X, y).nu_ == nu
    assert DWD(nu=nu, kernel=kernel).fit(X, y).nu_ == nu
    three = np.arange(len(y)) % 3
    assert DWD(nu=nu, kernel=kernel).fit(X, three).nu_.tolist() == [nu] * 3


def test_a_nu_below_the_least_is_refused_with_the_least() -> None:
    X, y = clouds(apart=0.2)
    least, most = nu_range(X, y)
    assert 0.05 < least < most
    with pytest.raises(ValueError, match=f"nu=.* leaves no margin.*nu_min={least:.4g}"):
        NuSVC(nu=0.8 * least).fit(X, y)
    model = NuSVC(nu=1.05 * least).fit(X, y)
    assert model.certificate_.primal < 0
    assert model.coef_.any()


def three_classes() -> tuple[Any, Any]:
    """The class 'a' is far from 'b' and 'c', which overlap."""
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.repeat(["a", "b", "c"], 30)
    X[:30] += 20.0
    return X, y


@pytest.mark.parametrize(
    ("model", "among", "problem"),
    [
        (NuSVC(nu=0.05), "abc", "class 'b' against the others"),
        (NuSVC(nu=0.05), "bc", "class 'c' against 'b'"),
        (DDAGClassifier(NuSVC(nu=0.05)), "bc", "class 'c' against 'b'"),
    ],
)
def test_the_classes_that_a_nu_is_too_small_for_are_named(
    model: Any, among: str, problem: str
) -> None:
    X, y = three_classes()
    rows = np.isin(y, list(among))
    fitted = rows | isinstance(model, DDAGClassifier)
    with pytest.raises(ValueError, match=f", for {problem}") as refused:
        model.fit(X[fitted], y[fitted])
    least, most = nu_range(X[rows], y[rows] == problem[7])
    assert f"nu_min={least:.6g} and nu_max={most:.6g}" in str(refused.value)


def test_of_more_classes_the_one_whose_largest_kappa_refuses_is_named() -> None:
    with pytest.raises(ValueError, match=r"kappa_max=.*, for class 'b' against the others"):
        MarginFDA(kappa=2.0).fit(*three_classes())


def test_a_share_of_the_largest_nu_is_that_number_and_warns_where_no_margin_is_left() -> None:
    X, y = clouds()
    share, number = NuSVC(nu="0.75max").fit(X, y), NuSVC(nu=0.6).fit(X, y)
    np.testing.assert_allclose(share.coef_, number.coef_, atol=1e-6)
    auto, half = NuSVC().fit(X, y), NuSVC(nu="0.5max").fit(X, y)
    np.testing.assert_array_equal(auto.coef_, half.coef_)
    X, y = clouds(apart=0.2)
    with pytest.warns(ConvergenceWarning, match="between the classes: choose nu between nu_min="):
        flat = NuSVC(nu="0.1max").fit(X, y)
    assert not flat.coef_.any()
    assert np.ptp(flat.decision_function(X)) == 0


@pytest.mark.parametrize(
    ("failure", "logged"),
    [
        (RuntimeError("the program failed: unbounded"), ["unbounded"]),
        (ProgramTooLargeError("too large"), []),
        (TimeoutError("too late"), []),
    ],
)
def test_a_program_that_fails_is_told_from_one_that_is_too_large(
    failure: Exception, logged: list[str], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    def fail(*arguments: Any, **options: Any) -> float:
        raise failure

    X, y = clouds(apart=0.2)
    monkeypatch.setattr(nu_dwd, "smallest_nu", fail)
    caplog.set_level(logging.INFO, "proxmargin")
    with pytest.raises(ValueError, match="no margin between the classes: the reduced hulls"):
        NuSVC(nu=0.05).fit(X, y)
    said = [each for each in caplog.messages if "range of nu" in each]
    assert [each.rpartition(" ")[2] for each in said] == logged


def test_auto_leaves_a_margin_where_the_data_are_too_large_for_the_simplex_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nu_dwd, "MAX_PROGRAM_ENTRIES", 0)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6_000, 10))
    y = X[:, 0] + 3.0 * rng.standard_normal(6_000) > 0
    least, most = nu_range(X, y)
    assert 0.5 * most < least
    model = NuSVC().fit(X, y)
    assert model.nu_ == pytest.approx(0.5 * (least + most), rel=1e-6)
    assert model.certificate_.primal < 0


@pytest.mark.parametrize("make", [NuSVC, MarginMPM, MarginFDA])
@pytest.mark.parametrize("large", [[0], [0, 1]])
def test_a_margin_in_the_features_of_small_units_is_found(make: Any, large: list[int]) -> None:
    """Larger units make coefficients of these features free: the objective falls to a limit."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 3))
    y = X[:, 2] + rng.standard_normal(40) > 0
    found = []
    for power in (0, 4, 8, 10):
        units = np.ones(3)
        units[large] = 10.0**power
        certificate = make().fit(X * units, y).certificate_
        assert certificate.converged
        assert certificate.gap <= 1e-6 * -certificate.primal
        found.append(certificate.primal)
    assert found[1] < found[0]
    np.testing.assert_allclose(found[1:], found[-1], rtol=2e-6)


def test_the_limit_of_large_units_is_that_of_clarabel() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 3))
    signs = np.where(X[:, 2] + rng.standard_normal(40) > 0, 1.0, -1.0)
    w, b, rho = cp.Variable(3), cp.Variable(), cp.Variable()
    tail = -rho + cp.sum(cp.pos(rho - cp.multiply(signs, X @ w + b))) / (0.6 * 40)
    limit = cp.Problem(cp.Minimize(tail + 0.5 * cp.square(w[2]))).solve(solver="CLARABEL", **TIGHT)
    model = NuSVC(nu=0.6).fit(X * [1e8, 1e8, 1.0], signs)
    assert model.certificate_.primal == pytest.approx(limit, rel=1e-6)


def test_a_margin_that_units_hide_is_not_denied() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 3)) * [1e16, 1e16, 1.0]
    y = X[:, 2] + rng.standard_normal(40) > 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = NuSVC(nu=0.6).fit(X, y).certificate_
    assert not certificate.converged
    assert [("leaves no margin" in str(one.message)) for one in caught] == [False]


@minimax
def test_a_kappa_from_the_largest_on_is_refused_with_the_largest(make: Any, model: str) -> None:
    X, y = clouds()
    largest = kappa_max(X, y, model)
    for kappa in (1.01 * largest, 3.0 * largest):
        with pytest.raises(ValueError, match=f"leaves no margin.*kappa_max={largest:.4g}"):
            make(kappa=kappa).fit(X, y)
    fitted = make(kappa=0.98 * largest).fit(X, y)
    assert fitted.certificate_.primal < 0
    share, number = make(kappa="0.4max").fit(X, y), make(kappa=0.4 * largest).fit(X, y)
    np.testing.assert_allclose(share.coef_, number.coef_, rtol=1e-5)


@minimax
@pytest.mark.parametrize("classes", [2, 3])
def test_a_share_of_a_bound_is_told_once_with_the_bounds(
    make: Any, model: str, classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = clouds()
    X = np.hstack([X * 10.0**k for k in range(-2, 3)])
    X += 1e-3 * np.random.default_rng(0).standard_normal(X.shape)
    y = np.arange(len(X)) % classes
    X[:, 0] += 0.01 * y
    exact = kappa_max(X, y == 1, model)
    monkeypatch.setattr(limits, "MAX_SIDE", 0)
    monkeypatch.setattr(limits, "LSMR_STEPS", 4)
    with pytest.warns(ConvergenceWarning, match="kappa_max, which is at least") as caught:
        fitted = make(kappa="0.5max").fit(X, y)
    assert len(caught) == 1
    assert "kappa_max, which is at least" in fitted.certificate_.stop_reason
    assert np.all(np.ravel(fitted.kappa_)[classes - 2] <= 0.5 * exact * (1 + 1e-9))
    assert "_largest" not in vars(fitted)


@minimax
@every_kernel
def test_without_ellipsoids_the_direction_is_the_difference_of_the_means(
    make: Any, model: str, kernel: str
) -> None:
    X, y = clouds()
    fitted = make(kappa=0.0, kernel=kernel, gamma=0.1, tol=1e-10).fit(X, y)
    if kernel == "linear":
        difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        np.testing.assert_allclose(fitted.coef_[0], difference, atol=1e-5)
        return
    K = rbf_kernel(X, gamma=0.1)
    scores = K[:, y == 1].mean(axis=1) - K[:, y == 0].mean(axis=1)
    np.testing.assert_allclose(fitted.decision_function(X) - fitted.intercept_, scores, atol=1e-5)


def test_a_limit_of_iterations_is_no_lack_of_a_margin() -> None:
    X, y = clouds()
    with pytest.warns(ConvergenceWarning, match="the iteration limit was reached after 0 iter"):
        NuSVC(max_iter=0).fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_auto_takes_a_larger_nu_for_kernels_until_the_margin_is_clear(kernel: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), np.arange(200) % 2  # noise
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NuSVC(kernel=kernel).fit(X, y)
    assert model.certificate_.converged
    assert model.nu_ in (0.75, 0.875, 0.9375, 0.96875, 0.984375, 0.9921875)
    assert np.ptp(model.decision_function(X)) > 0.1


def test_a_nu_that_a_kernel_admits_is_not_refused() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 1)), np.arange(60) % 2
    with pytest.warns(ConvergenceWarning, match="nu_min=0.*rounding of the kernel: a larger nu"):
        NuSVC(kernel="rbf", gamma=0.1, nu=0.1).fit(X, y)


def test_a_margin_close_to_rounding_is_no_long_search_of_a_further_solver(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((230, 2)), rng.integers(0, 2, 230)  # not tiny: no limit of its own
    monkeypatch.setattr("proxmargin.models.classifiers.kernel_machine.TINY_WORK", 1e8)
    model = NuSVC(nu=0.1, kernel="rbf", gamma=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = model.fit(X, y).certificate_
    assert "went on" in found.because
    assert found.n_iter < 1000  # some 8,000 to the end


@pytest.mark.slow
def test_all_classes_without_a_clear_margin_take_a_larger_nu_at_once(monkeypatch) -> None:
    attempts, fit_kernel = [], NuSVC._fit_kernel

    def counted(self: Any, *arguments: Any) -> Any:
        attempts.append(1)
        return fit_kernel(self, *arguments)

    monkeypatch.setattr(NuSVC, "_fit_kernel", counted)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 1)), np.arange(90) % 3  # noise
    model = NuSVC(kernel="rbf").fit(X, y)
    largest = 2 / 3
    steps = np.round(np.log2(0.5 * largest / (largest - model.nu_)))  # halvings of the distance
    assert np.count_nonzero(steps) > 1
    assert len(attempts) == 1 + steps.max()
