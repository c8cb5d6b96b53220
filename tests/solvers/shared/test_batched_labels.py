"""Many labelings at once end where independent solvers end with each of them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression as ScikitLogistic
from sklearn.svm import SVC as ScikitSVC
from sklearn.svm import NuSVC as ScikitNuSVC

from proxmargin.data.designs import as_design
from proxmargin.losses import DistanceWeighted, Logistic, SquaredHinge
from proxmargin.solvers.shared.batched_labels import (
    Balls,
    DualBoxes,
    Ridges,
    fit_labelings,
    principal_axes,
    suits,
)


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


# -- SVM and nu-SVM -------------------------------------------------------------------------------


def drawn_thirds(n: int, p: int, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Samples, and labels of which two in three are positive; the first column is not random."""
    rng = np.random.default_rng(n + p)
    X = rng.standard_normal((n, p)) * rng.uniform(0.3, 3.0, p)
    order = np.argsort(X[:, 0] + X[:, 1])
    y = np.where(np.isin(np.arange(n), order[: n // 3]), -1.0, 1.0)
    return X, np.column_stack([y, *(rng.permutation(y) for _ in range(count - 1))])


def directions(model, K, signs):
    """Scores of the samples along the unit vector that LIBSVM finds, one column a labeling."""
    columns = []
    for y in signs.T:
        fitted = model.fit(K, y)
        beta = np.zeros(y.size)
        beta[fitted.support_] = fitted.dual_coef_[0]
        columns.append(K @ beta / np.sqrt(beta @ K @ beta))
    return np.column_stack(columns)


@pytest.mark.parametrize("shape", [(30, 80), (40, 35), (36, 28)])
@pytest.mark.parametrize("C", [1e-3, 0.05, 1.0, 100.0])
def test_hinges_are_those_of_libsvm(shape, C) -> None:
    X, signs = drawn_thirds(*shape)
    axes = principal_axes(as_design(X), centred=True)
    assert suits(axes)
    found = DualBoxes(upper=C, target=1.0)(axes, signs, tol=1e-9)
    assert (found.gaps <= 1e-9).all()
    K = axes.samples @ axes.samples.T
    model = ScikitSVC(kernel="precomputed", C=C, tol=1e-9)
    expected = directions(model, K, signs)
    np.testing.assert_allclose(found.scores / found.norms, expected, atol=1e-4 * np.abs(K).max())


@pytest.mark.parametrize("shape", [(30, 80), (40, 35)])
@pytest.mark.parametrize("nu", [0.1, 0.4, 0.6])
def test_nu_machines_are_those_of_libsvm(shape, nu) -> None:
    X, signs = drawn_thirds(*shape)
    axes = principal_axes(as_design(X), centred=True)
    found = DualBoxes(upper=1.0 / (shape[0] * nu), target=0.0)(axes, signs, tol=1e-9)
    assert (found.gaps <= 1e-9).all()
    K = axes.samples @ axes.samples.T
    expected = directions(ScikitNuSVC(kernel="precomputed", nu=nu, tol=1e-9), K, signs)
    np.testing.assert_allclose(found.scores / found.norms, expected, atol=1e-4 * np.abs(K).max())


def test_gaps_of_boxes_bound_the_distance_from_the_optimum() -> None:
    X, signs = drawn_thirds(30, 80)
    axes = principal_axes(as_design(X), centred=True)
    loose, tight = (DualBoxes(upper=0.05, target=1.0)(axes, signs, tol=tol) for tol in (0.3, 1e-11))

    def objectives(fitted):
        least = np.full(signs.shape[1], np.inf)
        for column, (scores, y) in enumerate(zip(fitted.scores.T, signs.T, strict=True)):
            for b in y - scores:  # a kink of the hinges is the best intercept
                loss = 0.05 * np.maximum(1.0 - y * (scores + b), 0.0).sum()
                least[column] = min(least[column], loss)
        return least + 0.5 * fitted.norms**2

    exact = objectives(tight)
    assert (objectives(loose) - exact <= loose.gaps * objectives(loose) + 1e-12).all()
    assert (tight.gaps <= 1e-11).all()


def test_of_classes_that_meet_and_samples_that_repeat_nothing_false_is_claimed() -> None:
    X, signs = drawn_thirds(30, 80)
    X[20:] = X[:10]
    signs[20:] = -signs[:10]  # the hulls of the classes meet
    axes = principal_axes(as_design(X), centred=True)
    most = 2.0 * (signs > 0).mean(axis=0)
    nu = 0.9 * min(most.min(), (2.0 - most).min())
    boxes = DualBoxes(upper=1.0 / (30 * nu), target=0.0)(axes, signs[:, :1], tol=1e-6)
    assert np.isfinite(boxes.scores).all()
    hinges = DualBoxes(upper=1.0, target=1.0)(axes, signs, tol=1e-6)
    K = axes.samples @ axes.samples.T
    expected = directions(ScikitSVC(kernel="precomputed", tol=1e-9), K, signs)
    solved = hinges.gaps <= 1e-6
    unit = hinges.scores[:, solved] / hinges.norms[solved]
    np.testing.assert_allclose(unit, expected[:, solved], atol=1e-3 * np.abs(K).max())


def test_few_features_or_a_pinned_intercept_are_for_other_methods() -> None:
    few, wide = drawn_thirds(60, 20)[0], drawn_thirds(30, 80)[0]
    assert not suits(principal_axes(as_design(few), centred=True))
    assert not suits(principal_axes(as_design(wide), centred=False))
