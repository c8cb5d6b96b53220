"""Losses that couple the samples: tail means and minimax losses, against their definitions."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from proxmargin.functions.losses.tail_mean import largest_nu
from proxmargin.functions.traits import Trait
from proxmargin.losses import Loss, MinimaxFisher, MinimaxProbability, TailMean
from tests.cases import COUPLED, INTERCEPTS, two_classes
from tests.unchanged import unchanged

every_loss = pytest.mark.parametrize("make", COUPLED.values(), ids=COUPLED.keys())
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS["binary"])
KINDS = {"tail mean": TailMean, "fisher": MinimaxFisher, "probability": MinimaxProbability}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


def defined(loss: Loss, z: np.ndarray) -> float:
    """The loss, word for word."""
    signs, s = loss.signs, loss.shares
    if isinstance(loss, TailMean):
        t = signs * z
        candidates = t[s > 0]
        return min(-rho + s @ np.maximum(rho - t, 0) / loss.nu for rho in candidates)
    up, down = signs > 0, signs < 0
    means = [np.average(z[one], weights=s[one]) for one in (up, down)]
    variances = [
        np.average((z[one] - mean) ** 2, weights=s[one])
        for one, mean in zip((up, down), means, strict=True)
    ]
    fisher = isinstance(loss, MinimaxFisher)
    spread = np.sqrt(sum(variances)) if fisher else np.sqrt(variances).sum()
    return means[1] - means[0] + loss.kappa * spread


def random_dual(loss: Loss, intercept: str, rng: np.random.Generator) -> np.ndarray:
    form = loss.dual_form(INTERCEPTS["binary"][intercept])
    return form.dual_point(form.project(rng.standard_normal(12)))[:, None]


@every_loss
def test_the_value_is_that_of_the_definition(make, rng) -> None:
    loss = make(rng)
    for shift in (0.0, 100.0):
        z = 3 * rng.standard_normal(12) + shift
        z[2] = z[0]  # a tie
        assert loss.value(z[:, None]) == pytest.approx(defined(loss, z), rel=1e-12, abs=1e-12)


@every_loss
def test_the_loss_is_homogeneous_and_its_traits_are_true(make, rng) -> None:
    loss, z = make(rng), rng.standard_normal((12, 1))
    assert loss.is_homogeneous
    assert Trait.SINGLE_OUTPUT | Trait.DUAL_FORM in loss.traits
    assert Trait.SMOOTH not in loss.traits
    for factor in (0.0, 1e-3, 7.0):
        assert loss.value(factor * z) == pytest.approx(factor * loss.value(z), rel=1e-12)


@every_loss
def test_the_gradient_is_a_subgradient_with_a_finite_conjugate(make, rng) -> None:
    loss = make(rng)
    for _ in range(10):
        z, other = (2 * rng.standard_normal((12, 1)) for _ in range(2))
        value, gradient = loss.value_and_gradient(z)
        assert value == loss.value(z)
        assert not np.any(gradient[loss.shares == 0])
        assert loss.conjugate(gradient) == 0
        tangent = value + float(np.vdot(gradient, other - z))
        assert loss.value(other) >= tangent - 1e-13
        assert float(np.vdot(gradient, z)) == pytest.approx(value, abs=1e-13)


@every_loss
@every_intercept
def test_fenchel_young_is_value_minus_product_and_vanishes_at_the_gradient(
    make, intercept, rng
) -> None:
    loss = make(rng)
    for shift in (0.0, 50.0):
        z = 2 * rng.standard_normal((12, 1)) + shift
        dual = random_dual(loss, intercept, rng)
        term = loss.fenchel_young(z, dual)
        assert term >= 0
        plain = loss.value(z) - float(np.vdot(z, dual))
        assert term == pytest.approx(plain, rel=1e-11, abs=1e-13 * (1 + shift))
        assert loss.fenchel_young(z, loss.value_and_gradient(z)[1]) <= 1e-14 * (1 + shift)


@every_loss
def test_the_conjugate_is_infinite_outside_its_domain(make, rng) -> None:
    loss = make(rng)
    dual = random_dual(loss, "none", rng)
    for other in (0.99 * dual, 1.01 * dual, dual + 1e-3 * (np.arange(12) == 3)[:, None], 0 * dual):
        assert loss.conjugate(other) == np.inf
        assert loss.fenchel_young(rng.standard_normal((12, 1)), other) == np.inf
    assert loss.conjugate(dual) == 0


@every_loss
def test_the_loss_is_the_support_function_of_its_domain(make, rng) -> None:
    loss, z = make(rng), rng.standard_normal(12)
    q = cp.Variable(12)
    signs, s = loss.signs, loss.shares
    if isinstance(loss, TailMean):
        a = -cp.multiply(signs, q)
        limits = [a >= 0, a <= s / loss.nu, cp.sum(a) == 1]
    else:
        up, down = np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)
        r = np.sqrt(np.where(signs > 0, s / s[up].sum(), s / s[down].sum()))
        u = cp.Variable(12)
        balls = [u] if isinstance(loss, MinimaxFisher) else [u[up], u[down]]
        limits = [q == -signs * r**2 + loss.kappa * cp.multiply(r, u)]
        limits += [cp.norm(part) <= 1 for part in balls]
        limits += [cp.sum(cp.multiply(r[one], u[one])) == 0 for one in (up, down)]
    problem = cp.Problem(cp.Maximize(z @ q), limits)
    problem.solve(solver=cp.CLARABEL)
    assert problem.value == pytest.approx(loss.value(z[:, None]), abs=1e-6)


@every_loss
@every_intercept
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_a_balanced_dual_point_is_exactly_feasible(make, intercept, size, rng) -> None:
    loss, penalty = make(rng), INTERCEPTS["binary"][intercept]
    for trial in range(10):
        dual = size * rng.standard_normal((12, 1))
        if trial % 4 == 0:  # one-sided
            dual = -loss.signs[:, None] * np.abs(dual)
        balanced = loss.balanced(dual, penalty)
        assert loss.excess(balanced) <= 1e-14
        assert not np.any(balanced[loss.shares == 0])
        if intercept == "free" or not isinstance(loss, TailMean):
            assert abs(balanced.sum()) <= 1e-14
        if isinstance(loss, TailMean):
            a = -loss.signs * balanced[:, 0]
            assert np.all((a >= 0) & (a <= loss.upper))
        np.testing.assert_allclose(loss.balanced(balanced, penalty), balanced, atol=1e-14)


@every_loss
@every_intercept
def test_the_best_intercept_is_the_minimiser(make, intercept, rng) -> None:
    loss, penalty = make(rng), INTERCEPTS["binary"][intercept]
    for spread in (0.1, 3.0):
        z = spread * rng.standard_normal((12, 1)) + 0.4
        b = loss.best_intercept(z, penalty, np.zeros(1))
        assert b.shape == (1,)
        here = loss.value(z + b) + penalty.value(b[None, :])
        if intercept == "none":
            assert b == 0
            continue

        def objective(c: float, z=z) -> float:
            return loss.value(z + c) + penalty.value(np.array([[c]]))

        found = minimize_scalar(objective, bounds=(-20, 20), method="bounded")
        kinks = [objective(float(c)) for c in b + np.linspace(-1, 1, 201)]
        assert here <= min(found.fun, *kinks) + 1e-12


@pytest.mark.parametrize("name", ["tail mean", "tail mean, short", "tail mean, longest"])
def test_at_the_best_free_intercept_the_subgradient_is_balanced(name: str, rng) -> None:
    for _ in range(10):
        loss = COUPLED[name](rng)
        z = rng.standard_normal((12, 1))
        z += loss.best_intercept(z, INTERCEPTS["binary"]["free"], np.zeros(1))
        gradient = loss.value_and_gradient(z)[1]
        assert abs(gradient.sum()) <= 1e-13
        t, a = loss.signs * z[:, 0], -loss.signs * gradient[:, 0]
        rho = loss.threshold(z)
        assert np.all((a > 1e-13) <= (t <= rho + 1e-12))
        assert np.all((t < rho - 1e-12) <= (a >= loss.upper * (1 - 1e-13)))


def test_the_intercept_and_the_threshold_of_a_tail_mean_are_those_of_both_classes() -> None:
    # four samples a class, nu = 1/2: half of the mass of a tail is that of two samples
    z = np.array([3.0, 1.0, 2.0, 7.0, -1.0, 4.0, -3.0, 0.0])
    signs = np.repeat([1.0, -1.0], 4)
    loss = TailMean(signs, np.full(8, 1 / 8), 0.5, 8.0)
    # levels: between 2 and 3 for the positive class, between 0 and 1 for the negative one
    b = loss.best_intercept(z[:, None], INTERCEPTS["binary"]["free"], np.zeros(1))
    assert b[0] == pytest.approx((0.5 - 2.5) / 2)
    assert loss.threshold(z[:, None] + b) == pytest.approx((2.5 + 0.5) / 2)


@every_kind
def test_a_weight_of_two_is_a_repeated_row(kind, rng) -> None:
    counts = np.array([1, 2, 0, 3, 1, 2, 2, 1])
    signs = np.where(np.arange(8) % 2 == 0, 1.0, -1.0)
    rows = np.repeat(np.arange(8), counts)
    total = counts.sum()
    weighted = kind(signs, counts / total, 0.4, float(total))
    repeated = kind(signs[rows], np.full(rows.size, 1 / total), 0.4, float(total))
    z = rng.standard_normal((8, 1))
    assert weighted.value(z) == pytest.approx(repeated.value(z[rows]), rel=1e-13)
    for intercept in ("free", "ridge", "none"):
        penalty = INTERCEPTS["binary"][intercept]
        np.testing.assert_allclose(
            weighted.best_intercept(z, penalty, np.zeros(1)),
            repeated.best_intercept(z[rows], penalty, np.zeros(1)),
            atol=1e-13,
        )
    gradient = np.zeros((8, 1))
    np.add.at(gradient, rows, repeated.value_and_gradient(z[rows])[1])
    np.testing.assert_allclose(weighted.value_and_gradient(z)[1], gradient, atol=1e-13)


def test_the_largest_nu_leaves_half_of_the_mass_to_each_class(rng) -> None:
    signs, shares, total = two_classes(rng)
    most = largest_nu(signs, shares)
    assert most == pytest.approx(2 * min(shares[signs > 0].sum(), shares[signs < 0].sum()))
    TailMean(signs, shares, most, total)
    with pytest.raises(ValueError, match=r"at most 0\.\d+ = 2 min.*got 0\.99"):
        TailMean(signs, shares, 0.99, total)
    free = TailMean(signs, shares, 0.99, total, free_intercept=False)
    assert np.isfinite(free.value(np.ones((12, 1))))
    with pytest.raises(ValueError, match="with a free intercept"):
        free.dual_form(INTERCEPTS["binary"]["free"])


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_nu_and_kappa_have_their_ranges(bad: float, rng) -> None:
    signs, shares, total = two_classes(rng)
    with pytest.raises(ValueError, match="nu must be > 0 and at most"):
        TailMean(signs, shares, bad, total)
    if bad != 0.0:
        for kind in (MinimaxFisher, MinimaxProbability):
            with pytest.raises(ValueError, match="kappa must be a finite number >= 0"):
                kind(signs, shares, bad, total)


@pytest.mark.parametrize("kind", [MinimaxFisher, MinimaxProbability])
def test_the_nearest_scores_differ_by_minus_the_loss(kind, rng) -> None:
    signs, shares, total = two_classes(rng)
    loss, z = kind(signs, shares, 0.6, total), rng.standard_normal(12) + 4
    positive, negative = loss.nearest_scores(z)
    assert positive - negative == pytest.approx(-loss.value(z[:, None]), rel=1e-12)


@every_loss
def test_evaluating_a_loss_leaves_its_arguments_unchanged(make, rng) -> None:
    loss = make(rng)
    scores, dual = rng.standard_normal((12, 1)), random_dual(loss, "free", rng)
    with unchanged(scores, dual):
        loss.value_and_gradient(scores)
        loss.fenchel_young(scores, dual)
        loss.balanced(dual, INTERCEPTS["binary"]["free"])
        loss.best_intercept(scores, INTERCEPTS["binary"]["free"], np.zeros(1))
        loss.dual_form(INTERCEPTS["binary"]["free"]).project(dual[:, 0])
