"""The bounds are those of the theorems: no distribution that they admit exceeds them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from proxmargin.models.selection.stability.bounds import (
    _largest_tail,
    false_selections,
    largest_q,
    least_threshold,
)

# (q, p, threshold, pairs): bounds by um_const and minD of R's stabs 0.7-1, which maximises over
# each shift to about 1e-4 of its bracket, from below: ours may be larger by a per cent
STABS = {
    (5, 100, 0.6, 50): (0.6578947368, 0.2605329076),
    (10, 1000, 0.6, 50): (0.2631578947, 0.06971363554),
    (50, 1000, 0.75, 50): (2.551020408, 0.6465257923),
    (50, 1000, 0.9, 50): (1.078431373, 0.1688116233),
    (30, 7129, 0.7, 50): (0.1618524553, 0.04441318128),
    (20, 200, 0.8, 25): (1.692307692, 0.4644865719),
    (2, 10, 0.9, 50): (0.1725490196, 0.03737142223),
    (15, 2000, 0.55, 100): (0.5921052632, 0.0644389895),
}


@pytest.mark.parametrize("case", STABS)
def test_bounds_are_those_of_stabs(case) -> None:
    q, p, threshold, pairs = case
    unimodal, concave = STABS[case]
    assert false_selections(threshold, q, p, pairs, "unimodal") == pytest.approx(unimodal, rel=1e-9)
    found = false_selections(threshold, q, p, pairs, "r-concave")
    assert concave * (1 - 1e-6) <= found <= 1.015 * concave
    plain = false_selections(threshold, q, p, pairs, "none")
    assert plain == pytest.approx(q**2 / (p * (2 * threshold - 1)))


def test_the_third_parameter_follows_as_in_stabs() -> None:
    """``optimal_cutoff`` and ``optimal_q`` of R's stabs with 50 pairs."""
    for q, p, pfer, unimodal, concave in [(20, 1000, 1, 0.61, 0.51), (50, 1000, 1, 0.91, 0.7)]:
        assert least_threshold(q, p, pfer, 50, "unimodal") == unimodal
        assert least_threshold(q, p, pfer, 50, "r-concave") == concave  # at least 0.51
    for p, threshold, pfer, unimodal, concave in [
        (1000, 0.6, 1, 19, 31),
        (1000, 0.9, 1, 48, 113),
        (7129, 0.75, 1, 83, 170),
        (300, 0.7, 2, 21, 36),
        (9, 0.75, 1, 2, 3),
    ]:
        assert largest_q(threshold, p, pfer, 50, "unimodal") == unimodal
        assert largest_q(threshold, p, pfer, 50, "r-concave") == concave
    # the example of its manual on the body fat data: cutoff 0.75, PFER 1 of 9 features
    assert f"{false_selections(0.75, 2, 9, 50, 'unimodal'):.3g}" == "0.454"
    assert least_threshold(3, 10, 1, 50, "none") == pytest.approx(0.95)


@pytest.mark.parametrize("assumption", ["none", "unimodal", "r-concave"])
def test_two_of_three_give_the_third_and_back(assumption) -> None:
    p, pairs = 400, 30
    for q in (3, 12, 25):
        pfer = false_selections(0.8, q, p, pairs, assumption)
        again = least_threshold(q, p, pfer, pairs, assumption)
        assert again == pytest.approx(0.8)
        assert largest_q(0.8, p, pfer, pairs, assumption) == q


def test_no_unimodal_distribution_exceeds_the_bound() -> None:
    """Linear programs over the distributions on 0, 1/B, ..., 1 with each mode."""
    pairs, exact = 8, []
    for theta in (0.05, 0.15, 0.3):
        for count in range(pairs + 2, 2 * pairs + 1):
            bound = false_selections(count / (2 * pairs), theta, 1, pairs, "unimodal")
            if not np.isfinite(bound):
                continue
            # simultaneous selection: twice the frequency less one, of mean theta^2
            most = max(
                _unimodal_tail(theta**2, count - pairs, pairs, mode) for mode in range(pairs + 1)
            )
            assert most <= bound * (1 + 1e-9)
            exact.append(most / bound)
    assert len(exact) > 12
    assert max(exact) == pytest.approx(1.0, abs=1e-6)


def _unimodal_tail(mean: float, count: int, steps: int, mode: int) -> float:
    i = np.arange(steps + 1)
    rise = np.diff(np.eye(steps + 1), axis=0)
    rise[mode:] *= -1.0  # from the mode on values fall
    found = linprog(
        -(i >= count).astype(float),
        A_ub=-rise,
        b_ub=np.zeros(steps),
        A_eq=[np.ones(steps + 1), i / steps],
        b_eq=[1.0, mean],
    )
    return -found.fun if found.success else 0.0


@pytest.mark.parametrize(("mean", "doublings"), [(0.1, 1), (0.04, 1), (0.2, 2), (0.1, 2)])
def test_no_r_concave_distribution_exceeds_the_bound(mean, doublings) -> None:
    """The best of local searches over convex f^r: it stays below the bound and comes near it."""
    steps, count = 10, 5
    bound = _largest_tail(mean, count, steps, doublings)
    i = np.arange(steps + 1.0)
    bends = np.maximum(i[:, None] - i[1:-1], 0.0)
    basis = np.column_stack([np.ones(steps + 1), i, bends])

    def masses(x):
        powered = np.maximum(basis @ x, 1e-9) ** -(2.0**doublings)
        return powered / powered.sum()

    best, rng = 0.0, np.random.default_rng(0)
    limits = [(1e-3, 1.0), (0.0, 5.0), *[(0.0, 50.0)] * bends.shape[1]]
    for _ in range(12):
        start = np.array([rng.uniform(0.05, 1), rng.uniform(0, 1), *np.zeros(bends.shape[1])])
        found = minimize(
            lambda x: -masses(x)[count:].sum(),
            start,
            bounds=limits,
            constraints={"type": "ineq", "fun": lambda x: mean - masses(x) @ i / steps},
            method="SLSQP",
        )
        f = masses(found.x)
        if f @ i / steps <= mean * (1 + 1e-6):
            best = max(best, float(f[count:].sum()))
    assert best <= bound * (1 + 1e-4)
    assert best >= 0.95 * bound


def test_a_bound_does_not_apply_just_above_one_half() -> None:
    assert false_selections(0.505, 5, 100, 50, "unimodal") == np.inf
    assert false_selections(0.51, 90, 100, 50, "r-concave") == 100
