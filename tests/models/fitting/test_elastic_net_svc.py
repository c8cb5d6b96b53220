"""The doubly regularised machine against its neighbours, and where its path starts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_wine

from proxmargin import SVC, ElasticNetSVC, alpha_max, margin_path
from tests.oracles.models import binary_objective, binary_optimum


@pytest.fixture(scope="module")
def cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.where(y == 1, 1.0, -1.0)


@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.1, 0.5), (0.01, 0.9), (1e-3, 0.2)])
def test_the_default_tolerance_gives_six_digits_of_the_optimum(alpha, l1_ratio, cancer):
    X, y = cancer
    model = {"alpha": alpha, "l1_ratio": l1_ratio}
    fit = ElasticNetSVC(**model).fit(X, y)
    value = binary_objective(X, y, fit.coef_[0], fit.intercept_[0], loss="hinge", **model)
    best = binary_optimum(X, y, loss="hinge", **model).value
    assert best * (1 - 1e-8) <= value <= best * (1 + 1e-6)
    assert fit.certificate_.dual <= best * (1 + 1e-9)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_without_l1_it_is_the_support_vector_machine(C, cancer):
    X, y = cancer
    alpha = 1 / (C * y.size)
    net = ElasticNetSVC(alpha=alpha, l1_ratio=0.0, tol=1e-10).fit(X, y)
    svm = SVC(C=C, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(net.coef_, svm.coef_, atol=1e-5)
    np.testing.assert_allclose(net.intercept_, svm.intercept_, atol=1e-4)
    stated = net.certificate_.primal * C * y.size
    assert stated == pytest.approx(svm.certificate_.primal, rel=1e-9)
    # and so it is with the solver for any elastic net
    named = ElasticNetSVC(alpha, 0.0, tol=1e-9, solver="multiplier-newton").fit(X, y)
    assert named.certificate_.primal == pytest.approx(net.certificate_.primal, rel=2e-9)


@pytest.mark.parametrize("alpha", [0.1, 0.005])
def test_without_a_ridge_it_is_a_linear_program(alpha, cancer):
    X, y = cancer
    n, p = X.shape
    cost = np.concatenate([np.full(2 * p, alpha), [0.0], np.full(n, 1 / n)])
    rows = -y[:, None] * np.column_stack([X, -X, np.ones(n)])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, None)] * n
    program = linprog(cost, np.column_stack([rows, -np.eye(n)]), -np.ones(n), bounds=bounds)
    for solver in ("auto", "linear-program"):
        fit = ElasticNetSVC(alpha, 1.0, tol=1e-9, solver=solver).fit(X, y)
        assert fit.certificate_.primal == pytest.approx(program.fun, rel=1e-8)


def test_sparse_data_and_repeated_rows_give_the_same_model(cancer):
    X, y = cancer
    X = X * (np.random.default_rng(0).random(X.shape) < 0.3)
    times = np.random.default_rng(1).integers(0, 3, y.size)
    expected = ElasticNetSVC(0.02, tol=1e-11).fit(X, y, sample_weight=times)
    for data in (sparse.csr_matrix(X), sparse.csc_array(X)):
        found = ElasticNetSVC(0.02, tol=1e-11).fit(data, y, sample_weight=times)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    repeated = ElasticNetSVC(0.02, tol=1e-11).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(repeated.coef_, expected.coef_, atol=1e-6)


def test_several_classes_are_one_problem_each():
    X, y = load_wine(return_X_y=True)
    model = ElasticNetSVC(0.05, standardize=True).fit(X, y)
    assert model.coef_.shape == (3, 13)
    assert len(model.certificate_) == 3
    assert model.certificate_.converged
    alone = ElasticNetSVC(0.05, standardize=True).fit(X, y == 1)
    np.testing.assert_allclose(model.coef_[1], alone.coef_[0], atol=1e-4)
    assert model.score(X, y) > 0.97


# -- where the path starts --------------------------------------------------------------------


def classes(rng, n: int, share: float, p: int) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(n) < share * n, 1.0, -1.0)
    return rng.standard_normal((n, p)) + 0.3 * y[:, None] * (np.arange(p) < 3), y


def least_by_linear_program(X: np.ndarray, y: np.ndarray) -> float:
    """The least ``|X'(y a)|_inf`` over multipliers of the null model, written out."""
    n, p = X.shape
    few = np.sign(y.sum()) != y if y.sum() else np.ones(n, dtype=bool)
    bounds = [(1 / n, 1 / n) if low else (0, 1 / n) for low in few] + [(0, None)]
    signed = (y[:, None] * X).T
    rows = np.vstack([np.column_stack([s * signed, -np.ones(p)]) for s in (1, -1)])
    balance = np.append(y, 0.0)[None, :]
    cost = np.append(np.zeros(n), 1.0)
    program = linprog(cost, rows, np.zeros(2 * p), balance, [0.0], bounds=bounds)
    return float(program.fun)


@pytest.mark.parametrize("share", [0.5, 0.3, 0.8, 1 / 30])
@pytest.mark.parametrize("p", [4, 60])
def test_alpha_max_of_the_hinge_is_that_of_a_linear_program(share, p, rng):
    X, y = classes(rng, 30, share, p)
    found = alpha_max(ElasticNetSVC(l1_ratio=0.5), X, y)
    assert found == pytest.approx(least_by_linear_program(X, y) / 0.5, rel=1e-8)


@pytest.mark.parametrize("share", [0.5, 0.3])
@pytest.mark.parametrize("l1_ratio", [0.4, 1.0])
@pytest.mark.parametrize("p", [4, 60])
def test_coefficients_vanish_at_alpha_max_and_not_below(share, l1_ratio, p, rng):
    X, y = classes(rng, 30, share, p)
    alpha = alpha_max(ElasticNetSVC(l1_ratio=l1_ratio), X, y)
    assert not ElasticNetSVC(1.001 * alpha, l1_ratio, tol=1e-9).fit(X, y).coef_.any()
    assert ElasticNetSVC(0.999 * alpha, l1_ratio, tol=1e-9).fit(X, y).coef_.any()


def test_alpha_max_without_an_intercept_has_one_gradient(rng):
    X, y = classes(rng, 30, 0.3, 6)
    found = alpha_max(ElasticNetSVC(l1_ratio=1.0, fit_intercept=False), X, y)
    assert found == pytest.approx(np.abs(X.T @ y).max() / 30)


def test_alpha_max_counts_weights_like_repeated_samples(rng):
    X, y = classes(rng, 30, 0.3, 6)
    times = rng.integers(0, 4, 30)
    repeated = alpha_max(ElasticNetSVC(), np.repeat(X, times, axis=0), np.repeat(y, times))
    assert alpha_max(ElasticNetSVC(), X, y, times) == pytest.approx(repeated, rel=1e-8)


def test_warm_starts_of_a_path_take_fewer_steps_than_cold_fits(rng):
    X, y = classes(rng, 60, 0.4, 300)
    path = margin_path(ElasticNetSVC(l1_ratio=0.9), X, y, n_alphas=25, eps=0.05)
    assert path.n_nonzero[0] == 0
    assert path.n_nonzero[-1] > 10
    cold = [ElasticNetSVC(alpha, 0.9).fit(X, y).certificate_ for alpha in path.alphas]
    for warm, alone in zip(path.certificates, cold, strict=True):
        assert warm.converged
        assert warm.primal == pytest.approx(alone.primal, rel=2e-6)
    assert sum(c.n_iter for c in path.certificates) < 0.7 * sum(c.n_iter for c in cold)


@pytest.mark.parametrize("l1_ratio", [1e-6, 1e-3])
def test_bounds_that_a_weak_penalty_presses_against_are_no_end_far_from_the_optimum(
    l1_ratio: float,
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((80, 60)), np.arange(80) % 2
    X[:, 0] += y
    model = ElasticNetSVC(alpha=1e-5, l1_ratio=l1_ratio, bounds=(-1, 2)).fit(X, y)
    assert model.certificate_.converged
