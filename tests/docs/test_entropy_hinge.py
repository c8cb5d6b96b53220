"""The example of a loss of one's own: it keeps the laws, and Newton's methods certify its fits."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from proxmargin import MarginClassifier
from proxmargin.losses import Logistic, Rescaled
from proxmargin.penalties import ElasticNet
from tests.examples import example

WIDTH = 0.2


@pytest.fixture(scope="module")
def loss() -> Any:
    return example("entropy_hinge").EntropyHinge(WIDTH)


def test_it_is_a_rescaled_logistic_loss(loss: Any) -> None:
    same = Rescaled(Logistic(), height=WIDTH, slope=1 / WIDTH, shift=-1 / WIDTH)
    t, a = np.linspace(-5.0, 7.0, 61), np.linspace(0.0, 1.0, 61)
    for name in ("value", "descent", "curvature"):
        np.testing.assert_allclose(getattr(loss, name)(t), getattr(same, name)(t), atol=1e-13)
        found = [getattr(loss.scalars, name)(at) for at in t]
        np.testing.assert_allclose(found, getattr(same, name)(t), atol=1e-13)
    found = [loss.scalars.fenchel_young(*pair) for pair in zip(t, a, strict=True)]
    np.testing.assert_allclose(found, same.fenchel_young(t, a), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(loss.fenchel_young(t, a), same.fenchel_young(t, a), atol=1e-12)
    np.testing.assert_allclose(loss.conjugate(a), same.conjugate(a), atol=1e-13)
    np.testing.assert_allclose(loss.prox(t, 0.7), same.prox(t, 0.7), atol=1e-12)


@pytest.mark.slow  # kernels are compiled for it
@pytest.mark.parametrize(
    ("samples", "features", "solver"), [(40, 60, "newton"), (300, 8, "chord-newton")]
)
def test_newton_methods_for_l1_norms_find_the_optimum(loss, samples, features, solver, rng) -> None:
    y = np.where(np.arange(samples) % 2 == 0, 1.0, -1.0)
    X = rng.standard_normal((samples, features)) + 0.5 * y[:, None] * (np.arange(features) < 3)
    model = MarginClassifier(loss, ElasticNet(0.02, 0.01), tol=1e-9).fit(X, y)
    certificate = model.certificate_
    assert certificate.solver == solver
    assert certificate.converged
    w, b = cp.Variable(features), cp.Variable()
    losses = WIDTH * cp.logistic((1 - cp.multiply(y, X @ w + b)) / WIDTH)
    penalty = 0.02 * cp.norm1(w) + 0.005 * cp.sum_squares(w)
    problem = cp.Problem(cp.Minimize(cp.sum(losses) / samples + penalty))
    problem.solve(solver="CLARABEL")
    assert certificate.primal == pytest.approx(problem.value, rel=1e-7)
    assert certificate.dual <= problem.value * (1 + 1e-7)
