"""Certificates of more features than are worked on at a time."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.optimality.certificates import certify as home
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point
from proxmargin.penalties import Ball, ElasticNet, Penalty, Ridge
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from tests.cases import MARGIN_LOSSES, binary_problem

PENALTIES = [Ball(2.0, 0.5), Ball(1.5, 0.7), Ball(4.0, 0.6), Ridge(0.1), ElasticNet(0.02, 0.05)]
every_penalty = pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
FEATURES = 23


@every_penalty
@pytest.mark.parametrize("phi", ["hinge", "logistic", "squared hinge"])
@pytest.mark.parametrize("block", [1, 4, 23, 1000])
def test_a_certificate_does_not_depend_on_the_blocks(
    penalty: Penalty, phi: str, block: int, rng, monkeypatch
) -> None:
    problem = binary_problem(rng, MARGIN_LOSSES[phi], penalty, p=FEATURES)
    coef = penalty.prox(rng.standard_normal((FEATURES, 1)), 1.0)
    if isinstance(penalty, Ball):
        coef *= penalty.radius / np.linalg.norm(coef[:, 0], penalty.p)
    point = Point(coef, np.zeros(1))
    whole = certify(problem, point)
    monkeypatch.setattr(home, "CACHED_ENTRIES", 4 * block)
    parts = certify(problem, point)
    assert np.isfinite(whole.primal)
    for name in ("primal", "dual", "gap", "kkt_residual"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-12)
    np.testing.assert_allclose(parts.violations, whole.violations, atol=1e-14)


@every_penalty
@pytest.mark.parametrize("phi", ["hinge", "logistic"])
def test_no_certificate_in_blocks_is_smaller_than_the_suboptimality(
    penalty: Penalty, phi: str, rng, monkeypatch
) -> None:
    problem = binary_problem(rng, MARGIN_LOSSES[phi], penalty, p=FEATURES)
    optimum = minimize(problem, choose(problem).solver, stop=Stop(tol=1e-8)).certificate
    assert optimum.converged
    monkeypatch.setattr(home, "CACHED_ENTRIES", 20)
    for size in (0.0, 1e-3, 0.1, 1.0, 10.0):
        coef = penalty.prox(size * rng.standard_normal((FEATURES, 1)), 1e-9)
        gap = certify(problem, Point(coef, np.zeros(1)))
        assert gap.gap >= gap.primal - optimum.primal - 1e-12
        assert gap.dual <= optimum.primal + 1e-12
