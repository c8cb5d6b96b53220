"""Many labelings at once end where independent solvers end with each of them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression as ScikitLogistic

from proxmargin.designs import as_design
from proxmargin.losses import DistanceWeighted, Logistic, SquaredHinge
from proxmargin.solvers.labelings import principal_axes
from proxmargin.solvers.smooth.labelings import Balls, Ridges, fit_labelings


def drawn(n: int, p: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples, and labels in columns of which the first are not random."""
    rng = np.random.default_rng(n + p)
    X = rng.standard_normal((n, p)) * rng.uniform(0.1, 10.0, p)
    y = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    return X, np.column_stack([y, *(rng.permutation(y) for _ in range(count - 1))])


@pytest.mark.parametrize("shape", [(25, 60), (60, 5)])
@pytest.mark.parametrize("centred", [True, False])
def test_principal_axes_keep_inner_products_of_the_samples(shape, centred) -> None:
    X, _ = drawn(*shape, 1)
    expected = X - X.mean(axis=0) if centred else X
    for stored in (X, sparse.csr_array(X)):
        axes = principal_axes(as_design(stored), centred=centred)
        np.testing.assert_allclose(axes.samples @ axes.samples.T, expected @ expected.T, atol=1e-10)
        squares = axes.samples.T @ axes.samples
        np.testing.assert_allclose(squares, np.diag(axes.squares), atol=1e-9 * axes.squares[0])


def test_a_ball_minimises_a_quadratic_over_it() -> None:
    rng = np.random.default_rng(0)
    pull, bend = rng.standard_normal((6, 4)), rng.uniform(0.1, 5.0, (6, 4))
    radii = np.array([0.1, 1.0, 3.0, 1e3])
    found, _ = Balls(radii).minimiser(pull, bend, np.ones(4))
    for k, radius in enumerate(radii):
        u = cp.Variable(6)
        objective = 0.5 * cp.sum(cp.multiply(bend[:, k], u**2)) - pull[:, k] @ u
        cp.Problem(cp.Minimize(objective), [cp.norm(u) <= radius]).solve(cp.CLARABEL)
        np.testing.assert_allclose(found[:, k], u.value, atol=1e-5 * radius)


@pytest.mark.parametrize("shape", [(40, 90), (80, 6)])
def test_logistic_regression_of_scikit_learn_finds_the_same_scores(shape) -> None:
    X, signs = drawn(*shape, 5)
    axes = principal_axes(as_design(X), centred=True)
    found = fit_labelings(Logistic(), axes, signs, Ridges(1.0 / (0.3 * shape[0])), 1e-12)
    assert (found.gaps <= 1e-12).all()
    for scores, length, labels in zip(found.scores.T, found.norms, signs.T, strict=True):
        model = ScikitLogistic(C=0.3, tol=1e-12, solver="newton-cholesky").fit(X, labels)
        np.testing.assert_allclose(length, np.linalg.norm(model.coef_), rtol=1e-5)
        centred = (X - X.mean(axis=0)) @ model.coef_[0]
        np.testing.assert_allclose(scores, centred, atol=1e-4 * np.abs(centred).max())


@pytest.mark.parametrize("shape", [(20, 40), (40, 4)])
def test_distance_weighted_discrimination_meets_the_optimum_of_a_cone_program(shape) -> None:
    X, signs = drawn(*shape, 3)
    radii = np.array([0.05, 0.5, 2.0])
    axes = principal_axes(as_design(X), centred=True)
    found = fit_labelings(DistanceWeighted(1.0), axes, signs, Balls(radii), 1e-9)
    for k, labels in enumerate(signs.T):
        # phi(t) = min over r <= t, r <= ... of 1/r + (r - t)_+ : its tangent below one
        w, b, r = cp.Variable(shape[1]), cp.Variable(), cp.Variable(shape[0])
        margins = cp.multiply(labels, (X - X.mean(axis=0)) @ w + b)
        objective = cp.sum(cp.inv_pos(r) + cp.pos(r - margins)) / shape[0]
        program = cp.Problem(cp.Minimize(objective), [cp.norm(w) <= radii[k]])
        program.solve(cp.CLARABEL)
        # the best intercept for the scores found
        values = [
            DistanceWeighted(1.0).value(labels * (found.scores[:, k] + shift)).mean()
            for shift in b.value + np.linspace(-1e-3, 1e-3, 5)
        ]
        assert found.gaps[k] <= 1e-9
        assert min(values) <= program.value * (1 + 1e-6)
        assert found.norms[k] <= radii[k] * (1 + 1e-12)


def test_gaps_bound_the_distance_from_the_optimum() -> None:
    X, signs = drawn(30, 50, 6)
    axes = principal_axes(as_design(X), centred=True)
    penalty = Ridges(0.05)
    tight = fit_labelings(SquaredHinge(), axes, signs, penalty, 1e-11)

    def objectives(fitted):
        shifts = np.linspace(-3, 3, 6001)[:, None, None]
        losses = SquaredHinge().value(signs * (fitted.scores + shifts)).mean(axis=1)
        return losses.min(axis=0) + 0.025 * fitted.norms**2

    loose = fit_labelings(SquaredHinge(), axes, signs, penalty, 1e-2)
    excess = objectives(loose) - objectives(tight)
    assert (loose.gaps <= 1e-2).all()
    assert (excess <= loose.gaps * objectives(loose) * (1 + 1e-6) + 1e-5).all()


def test_labelings_do_not_depend_on_the_others() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    axes = principal_axes(as_design(X[:50] / X.std(axis=0)), centred=True)
    rng = np.random.default_rng(1)
    signs = np.column_stack([rng.permutation(2.0 * y[:50] - 1.0) for _ in range(7)])
    together = fit_labelings(Logistic(), axes, signs, Ridges(0.01), 1e-10)
    alone = fit_labelings(Logistic(), axes, signs[:, 3:4], Ridges(0.01), 1e-10)
    np.testing.assert_allclose(together.scores[:, 3], alone.scores[:, 0], rtol=1e-4, atol=1e-5)
