"""Projections against the problems that define them, against CVXPY, and against each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from benchmarks.papers.ito.boxes import box_hyperplane_multiplier, capped_simplex
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from proxmargin.compiled.projections.knapsack import Knapsack, _place
from proxmargin.functions.projections import BoxHyperplane, NotFiniteError, ball, lp_ball

Array = NDArray[np.float64]
EPS = float(np.finfo(float).eps)
MANY = 10**6
WITHIN = 10.0  # units of rounding: of theta, of an entry, and of what it takes of the others'

# CVXPY is asked for more digits than it always gets
roughly = pytest.mark.filterwarnings("ignore:Solution may be inaccurate")


def box_hyperplane(*given: Any, **options: Any) -> np.ndarray:
    return box_hyperplane_multiplier(*given, **options)[0]


def drawn(rng: np.random.Generator, n: int) -> tuple[Array, Array, float, Array, Array]:
    """A feasible problem of every kind of entry: ties, zero normals, equal and infinite bounds."""
    point = rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)
    point *= 10.0 ** (rng.uniform(-12, 12, n) * rng.integers(0, 2))
    normal = rng.choice([-1.0, 1.0, 0.0, 0.3, -7.0, 1e3], n)
    low = rng.choice([0.0, -1.0, -100.0], n)
    high = low + rng.choice([0.0, 1.0, 50.0, np.inf], n)
    share = np.where(rng.random(n) < 0.3, rng.integers(0, 2, n), rng.random(n))
    inside = low + share * np.minimum(high - low, 10.0)
    return point, normal, math.fsum(normal * inside), low, high


def violation(
    point: Array, normal: Array, total: float, low: Array, high: Array, u: Array, theta: float
) -> float:
    """By how much the optimality conditions fail, in units of the rounding of the data."""
    assert np.all(low <= u)
    assert np.all(u <= high)
    formula = np.clip(point - theta * normal, low, high)
    entries = np.max(np.abs(u - formula) / (np.abs(point) + np.abs(theta * normal) + 1e-300))
    terms = normal * u
    equality = abs(math.fsum([*terms, -total])) / (np.sum(np.abs(terms)) + abs(total) + 1e-300)
    return max(float(entries), equality) / EPS


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_the_optimality_conditions_hold_to_rounding(seed: int, n: int) -> None:
    problem = drawn(np.random.default_rng(seed), n)
    u, theta = box_hyperplane_multiplier(*problem)
    assert violation(*problem, u, theta) <= WITHIN


@given(
    point=arrays(float, st.integers(1, 20), elements=st.floats(-1e9, 1e9)),
    cap=st.floats(1e-9, 1e9),
    share=st.floats(0.0, 1.0),
)
@settings(max_examples=50, deadline=None)
def test_the_conditions_hold_on_a_capped_simplex(point: Array, cap: float, share: float) -> None:
    total = share * cap * point.size
    u, theta = box_hyperplane_multiplier(point, 1.0, total, 0.0, cap)
    assert np.array_equal(u, capped_simplex(point, total, cap))
    low, high = np.zeros(point.size), np.full(point.size, cap)
    assert violation(point, np.ones(point.size), total, low, high, u, theta) <= WITHIN


def test_many_small_problems_end_on_the_right_piece() -> None:
    for seed in range(1500):
        rng = np.random.default_rng(seed)
        problem = drawn(rng, int(rng.integers(1, 12)))
        u, theta = box_hyperplane_multiplier(*problem)
        assert violation(*problem, u, theta) <= WITHIN, seed


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_no_feasible_direction_descends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    point, cap = rng.normal(size=30), rng.uniform(0.5, 2.0, 30)
    total = float(cap.sum() * rng.uniform(0.05, 0.95))
    u = capped_simplex(point, total, cap)
    for _ in range(10):
        v = capped_simplex(10.0 * rng.normal(size=30), total, cap)
        assert (point - u) @ (v - u) <= 1e-12


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_a_nearest_point_is_its_own_nearest_point(seed: int) -> None:
    problem = drawn(np.random.default_rng(seed), 40)
    normal = problem[1]
    once = box_hyperplane(*problem)
    again = box_hyperplane(once, *problem[1:])
    # what the equality may miss by rounding is as large as its terms, and any entry may make it up
    missed = np.abs(normal * once).sum() / np.where(normal == 0.0, 1.0, np.abs(normal))
    assert np.all(np.abs(again - once) <= 4 * EPS * (np.abs(once).max() + missed))


@pytest.mark.parametrize("n", [1, 2, 50, 20_000])
def test_a_guess_changes_rounding_only(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        problem = drawn(rng, n)
        wanted, theta = box_hyperplane_multiplier(*problem)
        tolerance = 16 * EPS * (np.abs(problem[0]) + np.abs(theta * problem[1]))
        for guess in (theta, theta + 0.1, -1e9):
            u = box_hyperplane(*problem, guess=guess)
            assert np.all(np.abs(u - wanted) <= tolerance)


def drifting(rng: np.random.Generator, steps: int) -> tuple[Any, list[tuple[Array, float]]]:
    """A set, and points of steps from it against a gradient that hardly changes."""
    n = int(rng.integers(1, 200))
    sizes = (np.ones(n), np.full(n, 3.0), 0.1 + rng.random(n))[rng.integers(3)]
    normal = rng.choice([-1.0, 1.0], n) * sizes
    low, high = np.zeros(n), np.full(n, 2.0) if rng.random() < 0.5 else 1.0 + rng.random(n)
    total = float(normal @ (high * rng.random(n)))
    u = box_hyperplane(rng.random(n), normal, total, low, high)
    gradient, found = rng.normal(size=n), []
    for _ in range(steps):
        step = 10.0 ** rng.uniform(-2, 2)
        gradient += rng.choice([0.0, 1e-3]) * rng.normal(size=n)
        found.append((u - step * gradient, step))
        u = box_hyperplane(found[-1][0], normal, total, low, high)
    return (normal, total, low, high), found


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_one_set_after_another_step_is_the_set_itself(seed: int) -> None:
    box, points = drifting(np.random.default_rng(seed), 6)
    normal, total, low, high = box
    warm = BoxHyperplane(*box)
    for point, step in points:
        u = warm.nearest(point, step)
        assert np.all((low <= u) & (u <= high))
        assert abs(math.fsum([*(normal * u), -total])) <= 2 * EPS * np.abs(normal * u).sum()
        wanted, theta = box_hyperplane_multiplier(point, *box)
        rounding = 8 * EPS * (np.abs(point) + np.abs(theta * normal))
        inside = normal[(low < wanted) & (wanted < high)]
        moved = EPS * abs(total) / max(float(inside @ inside), 0.01)  # of theta, by the total's
        assert np.all(np.abs(u - wanted) <= rounding + moved * np.abs(normal))


def test_where_a_search_starts_changes_no_digit() -> None:
    for seed in range(50):
        box, points = drifting(np.random.default_rng(seed), 4)
        warm = BoxHyperplane(*box)
        for point, step in points:
            cold = BoxHyperplane(*box).nearest(point, step)
            assert np.array_equal(cold, warm.nearest(point, step)), seed


def test_a_step_that_tells_nothing_of_the_next_does_no_harm() -> None:
    rng = np.random.default_rng(1)
    normal, low, high = np.ones(500), np.zeros(500), np.full(500, 0.01)
    one = BoxHyperplane(normal, 1.0, low, high)
    for step in (1e-200, 1.0, 1e200, 1e-3):
        point = 1e6 * rng.normal(size=500)
        np.testing.assert_array_equal(
            one.nearest(point, step), BoxHyperplane(normal, 1.0, low, high).nearest(point, 1.0)
        )
    with pytest.raises(ValueError, match="NaN or infinite"):
        one.nearest(np.full(500, np.nan), 1.0)


@pytest.mark.parametrize("seed", range(4))
@roughly
def test_small_problems_match_cvxpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    point, normal = rng.normal(size=12), rng.choice([-1.0, 1.0, 0.5, 0.0], 12)
    low, high = -rng.random(12), rng.random(12)
    total = float(normal @ (low + (high - low) * rng.random(12)))
    u = box_hyperplane(point, normal, total, low, high)
    wanted = solved(point, lambda v: [normal @ v == total, v >= low, v <= high])
    np.testing.assert_allclose(u, wanted, atol=1e-7)


def solved(point: Array, constraints: Callable[[Any], list[Any]]) -> Array:
    """The nearest point by an interior point method."""
    v = cp.Variable(point.size)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v - point)), constraints(v))
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    problem.solve(solver=cp.CLARABEL, **tight)
    return np.asarray(v.value)


def test_a_million_entries_of_all_sizes_sum_to_the_last_digit() -> None:
    rng = np.random.default_rng(7)
    point = 10.0 ** rng.uniform(-12, 12, MANY)
    cap = 10.0 ** rng.uniform(-12, 12, MANY)
    for total in (1e-9, 1.0, 1e9, 0.5 * math.fsum(cap)):
        u, theta = box_hyperplane_multiplier(point, 1.0, total, 0.0, cap)
        assert abs(math.fsum([*u, -total])) <= EPS * total
        assert np.all(u >= 0.0)
        assert np.all(u <= cap)
        formula = np.clip(point - theta, 0.0, cap)
        assert np.all(np.abs(u - formula) <= 8 * EPS * (point + abs(theta)))


def test_a_million_labelled_entries_of_all_sizes_balance() -> None:
    rng = np.random.default_rng(8)
    point = 10.0 ** rng.uniform(-12, 12, MANY)
    labels = rng.choice([-1.0, 1.0], MANY)
    u = box_hyperplane(point, labels, 0.0, 0.0, np.inf)
    assert abs(math.fsum(labels * u)) <= EPS * math.fsum(u)


def test_a_total_that_only_caps_reach_puts_entries_at_their_caps() -> None:
    point = np.random.default_rng(1).uniform(0, 1000, 10_000)
    u = capped_simplex(point, 0.5, 2e-4)
    assert math.fsum(u) == pytest.approx(0.5, abs=EPS)
    assert np.array_equal(np.sort(np.argsort(-point)[:2500]), np.flatnonzero(u > 1e-4))


def test_equal_entries_share_equally() -> None:
    for n in (1, 3, 10_000):
        u = capped_simplex(np.full(n, 4.0), 1.0, np.inf)
        np.testing.assert_allclose(u, 1.0 / n, rtol=8 * EPS)
        assert abs(math.fsum(u) - 1.0) <= EPS


def test_one_entry_is_what_the_hyperplane_says() -> None:
    assert box_hyperplane([5.0], [-2.0], 3.0, -4.0, 4.0) == [-1.5]
    assert box_hyperplane([1e300], [1.0], 3.0, 0.0, np.inf) == [3.0]
    assert box_hyperplane([7.0], [2.0], 4.0, 2.0, 2.0) == [2.0]


def test_boxes_of_one_point_are_that_point() -> None:
    low = np.array([1.0, 2.0, 3.0])
    assert np.array_equal(box_hyperplane(-low, [1.0, 1, 1], 6.0, low, low), low)


def test_entries_of_zero_normal_are_clipped() -> None:
    u = box_hyperplane([9.0, -9.0, 0.2, 0.2], [0.0, 0, 1, 1], 1.0, 0.0, 2.0)
    np.testing.assert_allclose(u, [2.0, 0.0, 0.5, 0.5], rtol=EPS)
    only = box_hyperplane([9.0, -9.0], [0.0, 0.0], 0.0, 0.0, 2.0)
    assert np.array_equal(only, [2.0, 0.0])


def test_unbounded_boxes_are_hyperplanes() -> None:
    rng = np.random.default_rng(3)
    point, normal = rng.normal(size=50), rng.normal(size=50)
    u = box_hyperplane(point, normal, 2.0, -np.inf, np.inf)
    wanted = point - normal * (normal @ point - 2.0) / (normal @ normal)
    np.testing.assert_allclose(u, wanted, atol=1e-14)


def test_the_ends_of_the_range_are_reached_and_rounding_beyond_them_is_forgiven() -> None:
    cap = np.full(10, 0.1)
    point = np.linspace(-1, 1, 10)
    nearly = capped_simplex(point, math.fsum(cap), cap)
    np.testing.assert_allclose(nearly, cap, rtol=4 * EPS)
    assert np.array_equal(capped_simplex(point, 1.0 + 1e-13, cap), cap)
    for total in (0.0, -0.0):
        assert np.array_equal(capped_simplex(point, total, cap), 0.0 * cap)


@pytest.mark.parametrize("total", [1.0 + 1e-9, 2.0, -1e-9, -5.0])
def test_a_total_out_of_range_is_refused_with_the_range(total: float) -> None:
    with pytest.raises(ValueError, match=r"out of reach.* from 0 to 1"):
        capped_simplex([3.0, 1.0, 2.0, 0.0], total, 0.25)


@pytest.mark.parametrize("n", [5, 5000])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_entries_that_are_not_numbers_are_refused(n: int, bad: float) -> None:
    spoilt = np.ones(n)
    spoilt[n // 2] = bad
    with pytest.raises(ValueError, match="point has entries"):
        box_hyperplane(spoilt, 1.0, 1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="normal has entries"):
        box_hyperplane(np.ones(n), spoilt, 1.0, 0.0, 1.0)
    for low, high in ((np.nan * spoilt, 1.0), (0.0, np.where(spoilt == 1, 1.0, np.nan))):
        with pytest.raises(ValueError, match="low <= high"):
            box_hyperplane(np.ones(n), 1.0, 1.0, low, high)


def test_misuse_is_told() -> None:
    with pytest.raises(ValueError, match="low <= high"):
        box_hyperplane([1.0, 2.0], 1.0, 1.0, 2.0, 1.0)
    with pytest.raises(ValueError, match=r"normal has shape \(3,\)"):
        box_hyperplane([1.0, 2.0], [1.0, 1.0, 1.0], 1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="point has shape"):
        capped_simplex(np.ones((2, 2)), 1.0, 1.0)
    with pytest.raises(ValueError, match="total=nan"):
        capped_simplex([1.0, 2.0], math.nan, 1.0)


def test_the_inputs_are_left_as_they_are() -> None:
    problem = drawn(np.random.default_rng(5), 100)
    before = [np.copy(part) for part in problem]
    box_hyperplane(*problem)
    assert all(np.array_equal(old, new) for old, new in zip(before, problem, strict=True))


@given(seed=st.integers(0, 2**32 - 1), theta=st.floats(-100.0, 100.0))
@settings(max_examples=50, deadline=None)
def test_the_compiled_pass_is_the_array_formula(seed: int, theta: float) -> None:
    problem = drawn(np.random.default_rng(seed), 50)
    point, normal, total, low, high = problem
    out = np.empty(50)
    knapsack = Knapsack(point, normal, low, high, total)
    head, tail, _, _, size, ordered = _place(knapsack, theta, out)
    formula = np.clip(point - theta * normal, low, high)
    assert np.array_equal(out, formula)
    assert ordered
    terms = normal * formula
    assert head + tail == pytest.approx(math.fsum([total, *-terms]), abs=EPS * size)
    assert size == pytest.approx(np.abs(terms).sum())


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 30), radius=st.floats(1e-300, 20.0))
@settings(max_examples=50, deadline=None)
def test_a_ball_shrinks_along_the_ray(seed: int, n: int, radius: float) -> None:
    point = np.random.default_rng(seed).normal(size=n)
    wanted = point * min(1.0, radius / float(np.linalg.norm(point)))
    np.testing.assert_allclose(ball(point, radius), wanted, rtol=1e-14)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
@roughly
def test_an_lp_ball_matches_cvxpy(p: float, seed: int) -> None:
    point = np.random.default_rng(seed).normal(size=8)
    radius = 0.4 * float(np.linalg.norm(point, p))
    wanted = solved(point, lambda v: [cp.pnorm(v, p) <= radius])
    np.testing.assert_allclose(lp_ball(point, radius, p), wanted, atol=1e-6)


@given(
    seed=st.integers(0, 2**32 - 1),
    p=st.sampled_from([1.05, 1.5, 2.0, 2.5, 3.0, 10.0, 60.0]),
    share=st.floats(0.001, 0.999),
    exponent=st.integers(-140, 140),
)
@settings(max_examples=60, deadline=None)
def test_the_optimality_conditions_of_an_lp_ball_hold_at_any_magnitude(
    seed: int, p: float, share: float, exponent: int
) -> None:
    rng = np.random.default_rng(seed)
    base = rng.normal(size=20) * 10.0 ** rng.uniform(-4, 1, 20)
    radius = share * float(np.linalg.norm(base, p))
    u = lp_ball(10.0**exponent * base, 10.0**exponent * radius, p) / 10.0**exponent
    assert np.linalg.norm(u, p) == pytest.approx(radius, rel=1e-13)
    assert np.all(u * base >= 0.0)
    # point - u is a multiple of the gradient of the norm at u
    gradient = (np.abs(u) / radius) ** (p - 1.0)
    gap = np.abs(base) - np.abs(u)
    multiple = (gap @ gradient) / (gradient @ gradient)
    np.testing.assert_allclose(gap, multiple * gradient, atol=1e-12 * np.abs(base).max())


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_points_inside_a_ball_stay_and_a_radius_of_zero_is_the_origin(p: float) -> None:
    point = np.array([0.3, -0.4, 0.0])
    assert np.array_equal(lp_ball(point, 1.0, p), point)
    assert np.array_equal(lp_ball(point, math.inf, p), point)
    assert np.array_equal(lp_ball(point, 0.0, p), np.zeros(3))
    assert np.array_equal(lp_ball(np.zeros(3), 0.0, p), np.zeros(3))
    assert lp_ball(np.zeros(0), 1.0, p).size == 0


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_balls_take_huge_and_tiny_entries_and_radii(p: float) -> None:
    for point, radius in (([1e300, -1e300], 1e-300), ([1e308, 1e308], 1e307)):
        u = lp_ball(point, radius, p)
        np.testing.assert_allclose(np.abs(u), radius * 0.5 ** (1.0 / p), rtol=1e-14)
        assert np.array_equal(np.sign(u), np.sign(point))
    u = lp_ball([1e-310, 1e-310], 1e-311, p)
    np.testing.assert_allclose(u, 1e-311 * 0.5 ** (1.0 / p), rtol=1e-10)


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_balls_refuse_what_is_no_number(p: float) -> None:
    with pytest.raises(NotFiniteError, match="NaN or infinite"):
        lp_ball([1.0, math.nan], 1.0, p)
