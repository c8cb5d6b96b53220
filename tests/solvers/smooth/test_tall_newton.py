"""Newton's method with one small matrix, kept up to date."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin import HuberizedSVC
from proxmargin.loop.minimize import minimize
from proxmargin.loop.solver import UnsuitableSolverError
from proxmargin.loop.stopping import Stop
from proxmargin.penalties import Pinned, Ridge
from proxmargin.solvers.auto import choose
from proxmargin.solvers.smooth.newton import ProximalNewton
from proxmargin.solvers.smooth.tall_newton import TallNewton
from tests.solvers.smooth.test_newton import LOSSES, clouds, problem_of


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if kind != "nearly a hinge"])
@pytest.mark.parametrize("rho", [0.0, 0.95])
@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_it_finds_what_newton_on_columns_finds(kind, rho, unscaled, noise, rng) -> None:
    X, y = clouds(rng, 2500, 9, rho, unscaled, noise)
    problem = problem_of(X, y, *LOSSES[kind])
    found = minimize(problem, TallNewton(), stop=Stop(tol=1e-9))
    other = minimize(problem, ProximalNewton(), stop=Stop(tol=1e-9))
    assert found.certificate.converged
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=3e-9)


@pytest.mark.parametrize("kind", ["huberized", "squared", "logistic"])
@pytest.mark.parametrize("intercept", [Ridge(), Ridge(0.3), Pinned()], ids=repr)
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
def test_any_intercept_on_dense_and_sparse_data(kind, intercept, form, rng) -> None:
    X, y = clouds(rng, 700, 6)
    X[rng.random(X.shape) < 0.6] = 0.0
    problem = problem_of(form(X), y, LOSSES[kind][0], 0.1, intercept, 0.7)
    solution = minimize(problem, TallNewton(), stop=Stop(tol=1e-10))
    assert solution.certificate.converged
    assert problem.value(solution.point) == pytest.approx(solution.certificate.primal, rel=1e-12)


def test_sparse_data_that_centring_would_fill(rng) -> None:
    X, y = clouds(rng, 3000, 20)
    X[rng.random(X.shape) < 0.7] = 0.0
    found = []
    for matrix in (X, sp.csr_matrix(X)):
        model = HuberizedSVC(0.01, 0.9, intercept_ridge=0.1, standardize=True).fit(matrix, y)
        assert model.certificate_.converged
        found.append(model.certificate_.primal)
    assert found[1] == pytest.approx(found[0], rel=2e-6)


def test_auto_takes_it_for_large_tall_data_only(rng) -> None:
    X, y = clouds(rng, 40_000, 10)
    assert choose(problem_of(X, y, *LOSSES["huberized"])).name == "tall-newton"
    small = problem_of(X[:400], y[:400], *LOSSES["huberized"])
    assert choose(small).name == "chord-newton"
    wide = problem_of(X[:40], y[:40], *LOSSES["huberized"])
    assert choose(wide).name == "newton"
    with pytest.raises(
        UnsuitableSolverError, match="samples a feature, and there are 40 samples of 10"
    ):
        minimize(wide, TallNewton())
