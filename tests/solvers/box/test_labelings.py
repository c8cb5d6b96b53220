"""SVMs of many labelings at once are those that LIBSVM finds one by one."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC as ScikitSVC
from sklearn.svm import NuSVC as ScikitNuSVC

from proxmargin.designs import as_design
from proxmargin.solvers.box.labelings import DualBoxes, suits
from proxmargin.solvers.labelings import principal_axes


def drawn(n: int, p: int, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
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
    X, signs = drawn(*shape)
    axes = principal_axes(as_design(X), centred=True)
    assert suits(axes)
    found = DualBoxes(cap=C, goal=1.0)(axes, signs, tol=1e-9)
    assert (found.gaps <= 1e-9).all()
    K = axes.samples @ axes.samples.T
    model = ScikitSVC(kernel="precomputed", C=C, tol=1e-9)
    expected = directions(model, K, signs)
    np.testing.assert_allclose(found.scores / found.norms, expected, atol=1e-4 * np.abs(K).max())


@pytest.mark.parametrize("shape", [(30, 80), (40, 35)])
@pytest.mark.parametrize("nu", [0.1, 0.4, 0.6])
def test_nu_machines_are_those_of_libsvm(shape, nu) -> None:
    X, signs = drawn(*shape)
    axes = principal_axes(as_design(X), centred=True)
    found = DualBoxes(cap=1.0 / (shape[0] * nu), goal=0.0)(axes, signs, tol=1e-9)
    assert (found.gaps <= 1e-9).all()
    K = axes.samples @ axes.samples.T
    expected = directions(ScikitNuSVC(kernel="precomputed", nu=nu, tol=1e-9), K, signs)
    np.testing.assert_allclose(found.scores / found.norms, expected, atol=1e-4 * np.abs(K).max())


def test_gaps_bound_the_distance_from_the_optimum() -> None:
    X, signs = drawn(30, 80)
    axes = principal_axes(as_design(X), centred=True)
    loose, tight = (DualBoxes(cap=0.05, goal=1.0)(axes, signs, tol=tol) for tol in (0.3, 1e-11))

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
    X, signs = drawn(30, 80)
    X[20:] = X[:10]
    signs[20:] = -signs[:10]  # the hulls of the classes meet
    axes = principal_axes(as_design(X), centred=True)
    most = 2.0 * (signs > 0).mean(axis=0)
    nu = 0.9 * min(most.min(), (2.0 - most).min())
    boxes = DualBoxes(cap=1.0 / (30 * nu), goal=0.0)(axes, signs[:, :1], tol=1e-6)
    assert np.isfinite(boxes.scores).all()
    hinges = DualBoxes(cap=1.0, goal=1.0)(axes, signs, tol=1e-6)
    K = axes.samples @ axes.samples.T
    expected = directions(ScikitSVC(kernel="precomputed", tol=1e-9), K, signs)
    solved = hinges.gaps <= 1e-6
    unit = hinges.scores[:, solved] / hinges.norms[solved]
    np.testing.assert_allclose(unit, expected[:, solved], atol=1e-3 * np.abs(K).max())


def test_few_features_or_a_pinned_intercept_are_for_other_methods() -> None:
    few, wide = drawn(60, 20)[0], drawn(30, 80)[0]
    assert not suits(principal_axes(as_design(few), centred=True))
    assert not suits(principal_axes(as_design(wide), centred=False))
