"""Losses within a budget, against their definition: the hinge of Crammer and Singer and others."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from proxmargin.data.designs import DenseDesign
from proxmargin.losses import CrammerSinger, Hinge, LevelSet, Loss, wrong_classes
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.penalties import ElasticNet, SumToZero
from tests.cases import COMPARISONS, INTERCEPTS

FREE = INTERCEPTS["multiclass"]["free"]


def hinge(rng: np.random.Generator, n: int = 12) -> CrammerSinger:
    weights = rng.uniform(0.1, 1.0, n) * (np.arange(n) % 5 != 3)
    return CrammerSinger(np.arange(n) % 3, weights / weights.sum(), 3, float(weights.sum()))


def lee(rng: np.random.Generator, n: int = 12) -> Loss:
    weights = rng.uniform(0.1, 1.0, n) * (np.arange(n) % 5 != 3)
    return wrong_classes(Hinge(), np.arange(n) % 3, weights / weights.sum(), 3, weights.sum())


INNER = {**COMPARISONS, "crammer-singer": hinge, "lee": lee}
every_inner = pytest.mark.parametrize("make", INNER.values(), ids=INNER.keys())


def dual_of(inner: Loss, nu: float, rng: np.random.Generator) -> np.ndarray:
    """A dual point with that multiplier, balanced."""
    _, gradient = inner.value_and_gradient(rng.standard_normal((12, 3)))
    return nu * inner.balanced(gradient, FREE)


@every_inner
def test_the_value_is_the_price_of_what_is_above_the_budget(make, rng) -> None:
    inner = make(rng)
    loss = LevelSet(inner, 0.7, 3.0)
    for size in (0.0, 1.0, 10.0):
        scores = size * rng.standard_normal((12, 3))
        expected = 3.0 * max(0.0, inner.value(scores) - 0.7)
        assert loss.value(scores) == expected
        value, gradient = loss.value_and_gradient(scores)
        assert value == expected
        for other in (rng.standard_normal((12, 3)), 0.9 * scores):
            tangent = value + float(np.vdot(gradient, other - scores))
            assert loss.value(other) >= tangent - 1e-12


@every_inner
@pytest.mark.parametrize("nu", [1e-6, 0.3, 2.9])
def test_the_conjugate_is_the_supremum_over_scores(make, nu, rng) -> None:
    inner = make(rng)
    loss = LevelSet(inner, 0.7, 3.0)
    dual = dual_of(inner, nu, rng)
    value = loss.conjugate(dual)
    for size in (0.1, 1.0, 5.0):
        for _ in range(50):
            scores = size * rng.standard_normal((12, 3))
            assert value >= float(np.vdot(dual, scores)) - loss.value(scores) - 1e-12
            # and the Fenchel-Young term is what is missing
            plain = loss.value(scores) + value - float(np.vdot(dual, scores))
            assert loss.fenchel_young(scores, dual) == pytest.approx(plain, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("make", [hinge, COMPARISONS["multinomial"]], ids=["hinge", "multinomial"])
def test_the_supremum_is_reached(make, rng) -> None:
    inner = make(rng)
    loss = LevelSet(inner, 0.7, 3.0)
    dual = dual_of(inner, 0.8, rng)
    scores, each = cp.Variable((12, 3)), cp.Variable(12)
    own = cp.sum(cp.multiply(scores, np.eye(3)[inner.codes]), axis=1)
    if make is hinge:
        limits = [each >= scores[:, k] - own + (inner.codes != k) for k in range(3)]
    else:
        limits = [each >= cp.log_sum_exp(scores, axis=1) - own, cp.abs(scores) <= 30]
    above = cp.pos(inner.shares @ each - 0.7)
    program = cp.Problem(cp.Maximize(cp.sum(cp.multiply(dual, scores)) - 3.0 * above), limits)
    program.solve(solver=cp.CLARABEL)
    assert loss.conjugate(dual) == pytest.approx(program.value, rel=1e-6)


@every_inner
def test_dual_points_beyond_the_price_are_outside_the_domain(make, rng) -> None:
    inner = make(rng)
    loss, dual = LevelSet(inner, 0.7, 3.0), dual_of(inner, 1.0, rng)
    gauge = inner.domain_gauge(dual)
    assert loss.conjugate(np.zeros((12, 3))) == 0.0
    if gauge > 0:
        assert np.isfinite(inner.conjugate(dual / gauge * (1 - 1e-12)))
        assert inner.conjugate(dual / gauge * (1 + 1e-6)) == np.inf
        assert loss.conjugate(dual * 3.001 / gauge) == np.inf
        assert np.isfinite(loss.conjugate(dual * 2.999 / gauge))


@every_inner
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e3])
def test_balanced_points_are_feasible_and_feasible_points_stay(make, size, rng) -> None:
    inner = make(rng)
    loss = LevelSet(inner, 0.7, 3.0)
    for _ in range(10):
        dual = size * rng.standard_normal((12, 3)) * inner.shares[:, None]
        balanced = loss.balanced(dual, FREE)
        assert np.isfinite(loss.conjugate(balanced))
        sums = balanced.sum(axis=0)
        assert np.abs(sums - sums.mean()).max() <= 1e-14 * (1e-300 + np.abs(balanced).sum())
        np.testing.assert_allclose(loss.balanced(balanced, FREE), balanced, atol=1e-12 * size)


@every_inner
@pytest.mark.parametrize("budget", [0.3, 2.0])
def test_a_certificate_bounds_the_distance_from_the_constrained_optimum(make, budget, rng) -> None:
    # the best multiplier comes from minimising the Lagrangian with SciPy on a tiny problem
    inner = make(rng)
    X = rng.standard_normal((12, 2)) + np.eye(3)[np.arange(12) % 3][:, :2]
    net: ElasticNet | SumToZero = ElasticNet(0.0, 1.0)
    if not inner.compares_classes:
        net = SumToZero(net)
    problem = Problem(LevelSet(inner, budget, 50.0), net, DenseDesign(X), FREE)
    W, b = cp.Variable((2, 3)), cp.Variable(3)
    z = X @ W + np.ones((12, 1)) @ cp.reshape(b, (1, 3), order="C")
    codes, s = np.arange(12) % 3, inner.shares
    own = cp.sum(cp.multiply(z, np.eye(3)[codes]), axis=1)
    off = [z[:, k] - own for k in range(3)]
    name = next(n for n, m in INNER.items() if m is make)
    wrong = np.arange(3) != codes[:, None]
    if name == "lee":
        level = cp.sum(cp.multiply(s[:, None] * wrong, cp.pos(1 + z)))
    elif name == "crammer-singer":
        level = s @ cp.maximum(*[off[k] + wrong[:, k] for k in range(3)])
    elif name == "pairwise squared hinge":
        level = sum((s * wrong[:, k]) @ cp.square(cp.pos(1 + off[k])) for k in range(3))
    else:
        margin = inner.margin
        level = s @ cp.log_sum_exp(
            cp.vstack([off[k] + margin * wrong[:, k] for k in range(3)]), axis=0
        )
    limits = [level <= budget] + ([cp.sum(W, axis=1) == 0] if name == "lee" else [])
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W)), limits)
    program.solve(solver=cp.CLARABEL)
    nu = float(limits[0].dual_value)
    assert nu < 50.0
    coef = W.value - W.value.mean(axis=1, keepdims=True)
    best = Point(coef, b.value - b.value.mean())
    for point in [best] + [Point(c * coef, best.intercept) for c in (0.0, 0.5, 0.9, 1.1, 2.0)]:
        gap = certify(problem, point)
        assert gap.gap >= gap.primal - program.value - 1e-6 * (1 + program.value)
    if program.value > 1e-3:
        # the multiplier times a dual point of the loss closes the gap
        scores = X @ best.coef + best.intercept
        _, gradient = inner.value_and_gradient(scores)
        smooth = np.isfinite(inner.curvature_bound(np.ones(12)))
        if smooth:
            gap = certify(problem, best, dual=nu * gradient)
            assert gap.relative_gap <= 1e-4


@pytest.mark.parametrize("make", [hinge, lee], ids=["crammer-singer", "lee"])
@pytest.mark.parametrize("size", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("step", [0.01, 1.0, 100.0])
def test_the_prox_of_the_conjugate_is_that_of_the_loss_by_moreau(make, size, step, rng) -> None:
    inner = make(rng)
    loss = LevelSet(inner, 0.4, 2.0)
    dual = size * rng.standard_normal((12, 3))
    q = loss.conjugate_prox(dual, step)
    # q = dual - step z with z = argmin F(z) + step |z - dual / step|^2 / 2
    z = (dual - q) / step

    def objective(at: np.ndarray) -> float:
        return loss.value(at) + 0.5 * step * float(((at - dual / step) ** 2).sum())

    here = objective(z)
    for length in (1e-6, 1e-3, 0.1):
        for _ in range(50):
            assert objective(z + length * rng.standard_normal(z.shape)) >= here - 1e-9 * (1 + here)
    assert loss.fenchel_young(z, q) <= 1e-7 * (1 + here)


def test_bad_settings_are_named(rng) -> None:
    for budget, price, word in (
        (-1.0, 1.0, "budget"),
        (np.inf, 1.0, "budget"),
        (1.0, 0.0, "price"),
    ):
        with pytest.raises(ValueError, match=word):
            LevelSet(hinge(rng), budget, price)
    ridge = INTERCEPTS["multiclass"]["ridge"]
    with pytest.raises(TypeError, match="intercept"):
        LevelSet(hinge(rng), 1.0, 1.0).best_intercept(np.zeros((12, 3)), ridge, np.zeros(3))
