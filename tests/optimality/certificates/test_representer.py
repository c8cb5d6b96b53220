"""Kernel models: one product for several, and a model of few samples without any."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.data.kernels import Rbf
from proxmargin.data.kernels.low_rank import factorise
from proxmargin.data.kernels.matrices import kernel_matrix
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.losses import Logistic, Loss, MarginSum, TailMean
from proxmargin.models.classifiers.kernel_rounds import on_factor
from proxmargin.optimality.certificates.representer import (
    represented,
    represented_by_few,
    represented_together,
)
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import Ridge
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop

N = 60
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, 3))
SIGNS = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.standard_normal(N) > 0, 1.0, -1.0)
MATRIX = kernel_matrix(Rbf(0.5), X)
LOSSES: dict[str, tuple[Loss, float]] = {
    "logistic": (MarginSum(Logistic(), SIGNS[:, None], np.full((N, 1), 1.0 / N), float(N)), 0.02),
    "tail mean": (TailMean(SIGNS, np.full(N, 1.0 / N), 0.5, float(N)), 1.0),
}


def problem_of(name: str) -> Problem:
    loss, l2 = LOSSES[name]
    return Problem(loss, Ridge(l2), KernelDesign(MATRIX), Ridge(0.0))


@pytest.mark.parametrize("name", LOSSES)
def test_a_model_of_the_pivots_is_certified_without_a_product(name: str) -> None:
    problem = problem_of(name)
    whole = factorise(MATRIX)
    best = minimize(*_linear(problem, whole), stop=Stop(tol=1e-9)).gap
    factor = factorise(MATRIX, rank=20)
    solution = minimize(*_linear(problem, factor), stop=Stop(tol=1e-9))
    weights = factor.at_pivots(solution.point.coef[:, 0])
    dual = solution.gap.dual_point
    square = factor.square(dual[:, 0])
    assert square >= float(dual[:, 0] @ MATRIX.matvec(dual)[:, 0]) - 1e-12
    assert np.count_nonzero(weights) <= 20
    gap = represented_by_few(problem, MATRIX, weights, dual, square).gap
    # the same model as on the factor, and bounds that hold for the kernel itself
    assert gap.primal == pytest.approx(solution.gap.primal, rel=1e-6)
    assert gap.dual <= best.primal + 1e-9
    assert best.dual - 1e-9 <= gap.primal
    assert np.isfinite(gap.gap)


def test_one_product_serves_several_models() -> None:
    problem = problem_of("logistic")
    duals = [np.linspace(0.2, 0.8, N)[:, None] / N * -SIGNS[:, None] * k for k in (0.5, 1.0)]
    before = MATRIX.counter.passes
    both = represented_together([problem, problem], MATRIX, duals)
    assert MATRIX.counter.passes - before <= 1.0
    for one, dual in zip(both, duals, strict=True):
        alone = represented(problem, MATRIX, dual)
        assert one.gap.gap == pytest.approx(alone.gap.gap, rel=1e-9)
        np.testing.assert_allclose(one.weights, alone.weights, rtol=1e-12)


def _linear(problem: Problem, factor):
    (linear,) = on_factor([problem], factor)
    return linear, choose(linear).solver
