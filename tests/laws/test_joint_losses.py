"""Laws of losses that couple the classes of a sample: conjugates, duals, intercepts, weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from proxmargin.functions.traits import Trait
from proxmargin.losses import CrammerSinger, Hinge, Loss, MarginSum
from proxmargin.penalties import Ridge
from tests.cases import INTERCEPTS, JOINT
from tests.unchanged import unchanged

every_loss = pytest.mark.parametrize("make", JOINT.values(), ids=JOINT.keys())
every_intercept = pytest.mark.parametrize("intercept", INTERCEPTS["multiclass"])
FREE = INTERCEPTS["multiclass"]["free"]


def defined(loss: CrammerSinger, scores: np.ndarray) -> float:
    """The loss, word for word."""
    total = 0.0
    for z, y, s in zip(scores, loss.codes, loss.shares, strict=True):
        total += s * max(z[k] + (k != y) - z[y] for k in range(loss.count))
    return total


def masses(loss: CrammerSinger, dual: np.ndarray) -> np.ndarray:
    """The point of the simplex of each sample that a dual point stands for, times its share."""
    own = np.zeros(dual.shape)
    own[np.arange(len(dual)), loss.codes] = loss.shares
    return dual + own


def random_dual(loss: CrammerSinger, rng: np.random.Generator) -> np.ndarray:
    p = rng.dirichlet(np.full(loss.count, 0.4), loss.codes.size)
    p[rng.random(p.shape) < 0.3] = 0.0
    p[p.sum(axis=1) == 0, 0] = 1.0
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(len(p)), loss.codes] -= 1.0
    return loss.shares[:, None] * p


def best_shift(loss: CrammerSinger, scores: np.ndarray) -> float:
    """The least loss over the intercepts, from a linear program."""
    n, K = scores.shape
    rows, cols, values, right = [], [], [], []
    for i, y in enumerate(loss.codes):
        for k in range(K):
            if k != y:
                r = len(right)
                rows += [r, r, r]
                cols += [k, int(y), K + i]
                values += [1.0, -1.0, -1.0]
                right.append(scores[i, y] - scores[i, k] - 1.0)
    A = sp.csr_array((values, (rows, cols)), shape=(len(right), K + n))
    cost = np.concatenate([np.zeros(K), loss.shares])
    found = linprog(cost, A_ub=A, b_ub=right, bounds=[(None, None)] * K + [(0, None)] * n)
    return float(found.fun)


@every_loss
def test_the_value_is_that_of_the_definition(make: Callable[..., Any], rng) -> None:
    loss = make(rng)
    for size in (0.0, 0.3, 5.0):
        scores = size * rng.standard_normal((loss.codes.size, loss.count))
        assert loss.value(scores) == pytest.approx(defined(loss, scores), rel=1e-13)


@every_loss
def test_the_gradient_is_a_subgradient_in_the_domain_of_the_conjugate(make, rng) -> None:
    loss = make(rng)
    for trial in range(10):
        scores, other = (2 * rng.standard_normal((loss.codes.size, loss.count)) for _ in range(2))
        if trial % 2:  # ties
            scores, other = np.round(scores), np.round(other)
        value, gradient = loss.value_and_gradient(scores)
        assert value == pytest.approx(loss.value(scores), rel=1e-14)
        assert np.isfinite(loss.conjugate(gradient))
        assert loss.value(other) >= value + float(np.vdot(gradient, other - scores)) - 1e-13
        np.testing.assert_array_equal(gradient.sum(axis=1)[loss.shares == 0], 0.0)


@every_loss
def test_fenchel_young_is_value_plus_conjugate_minus_product(make, rng) -> None:
    loss = make(rng)
    for shift in (0.0, 100.0):
        scores = 2 * rng.standard_normal((loss.codes.size, loss.count)) + shift
        dual = random_dual(loss, rng)
        term = loss.fenchel_young(scores, dual)
        plain = loss.value(scores) + loss.conjugate(dual) - float(np.vdot(scores, dual))
        assert term >= 0
        assert term == pytest.approx(plain, rel=1e-10, abs=1e-14 * (1 + shift))
        assert loss.fenchel_young(scores, loss.value_and_gradient(scores)[1]) <= 1e-15


@every_loss
def test_the_conjugate_is_the_supremum_and_infinite_outside_its_domain(make, rng) -> None:
    loss = make(rng)
    dual = random_dual(loss, rng)
    conjugate = loss.conjugate(dual)
    for size in (0.1, 1.0, 30.0):
        scores = size * rng.standard_normal(dual.shape)
        assert float(np.vdot(scores, dual)) - loss.value(scores) <= conjugate + 1e-12
    # attained where every class of a sample is as bad as every other
    level = 1.0 * (np.arange(loss.count) == loss.codes[:, None])
    assert float(np.vdot(level, dual)) - loss.value(level) == pytest.approx(conjugate, abs=1e-13)
    live = int(np.argmax(loss.shares))
    own, other = loss.codes[live], (loss.codes[live] + 1) % loss.count
    for at, change in (((live, other), 1e-3), ((live, own), -1e-3)):
        outside = dual.copy()
        outside[at] += change
        assert loss.conjugate(outside) == np.inf
    outside = dual.copy()
    outside[live, other] = -1e-3
    outside[live, own] -= outside[live].sum()
    assert loss.conjugate(outside) == np.inf


@every_loss
@every_intercept
@pytest.mark.parametrize("size", [1e-4, 1.0, 1e3])
def test_a_balanced_dual_point_is_exactly_feasible(make, intercept: str, size: float, rng) -> None:
    loss, penalty = make(rng), INTERCEPTS["multiclass"][intercept]
    for trial in range(8):
        dual = size * rng.standard_normal((loss.codes.size, loss.count))
        if trial % 4 == 0:
            dual = np.round(dual, 1)
        balanced, rounding = loss.balanced(dual, penalty), 4 * np.finfo(float).eps
        assert masses(loss, balanced).min() >= -rounding * loss.shares.max()
        assert np.abs(balanced.sum(axis=1)).max() <= rounding * loss.shares.max()
        assert not np.any(balanced[loss.shares == 0])
        if intercept == "free":
            assert np.abs(balanced.sum(axis=0)).max() <= rounding
        np.testing.assert_allclose(loss.balanced(balanced, penalty), balanced, atol=1e-15)


@every_loss
@every_intercept
def test_a_balanced_dual_point_is_the_nearest_feasible_one(make, intercept: str, rng) -> None:
    # the difference to the point is normal to the set: no other member is on its side
    loss, penalty = make(rng), INTERCEPTS["multiclass"][intercept]
    dual = loss.shares[:, None] * rng.standard_normal((loss.codes.size, loss.count))
    balanced = loss.balanced(dual, penalty)
    for _ in range(30):
        member = loss.balanced(rng.standard_normal(dual.shape) * loss.shares.max(), penalty)
        assert float(np.vdot(dual - balanced, member - balanced)) <= 1e-13 * loss.shares.max()


@every_loss
@pytest.mark.parametrize("step", [1e-3, 0.1, 10.0])
def test_the_prox_of_the_conjugate_is_its_minimisation(make, step: float, rng) -> None:
    loss = make(rng)
    dual = 0.2 * rng.standard_normal((loss.codes.size, loss.count))
    near = loss.conjugate_prox(dual, step)

    def objective(q: np.ndarray) -> float:
        return loss.conjugate(q) + float(((q - dual) ** 2).sum()) / (2 * step)

    here = objective(near)
    assert np.isfinite(here)
    for _ in range(30):
        other = random_dual(loss, rng)
        for share in (1e-4, 0.1, 1.0):
            assert here <= objective(near + share * (other - near)) + 1e-12
    # Moreau: the residual is a subgradient of the loss's conjugate
    scores = (dual - near) / step
    assert loss.fenchel_young(scores, near) <= 1e-12 * (1 + np.abs(scores).max())


@every_loss
@pytest.mark.parametrize("spread", [0.0, 0.1, 2.0, 30.0])
def test_the_best_free_intercept_is_that_of_a_linear_program(make, spread: float, rng) -> None:
    loss = make(rng)
    for trial in range(4):
        scores = spread * rng.standard_normal((loss.codes.size, loss.count))
        if trial % 2:
            scores = np.round(scores)
        b = loss.best_intercept(scores, FREE, np.zeros(loss.count))
        assert abs(b.sum()) <= 1e-12 * (1 + np.abs(b).max())
        assert loss.value(scores + b) == pytest.approx(best_shift(loss, scores), rel=1e-9)


@every_loss
@every_intercept
def test_the_best_intercept_is_never_worse_than_the_start(make, intercept: str, rng) -> None:
    loss, penalty = make(rng), INTERCEPTS["multiclass"][intercept]
    scores = rng.standard_normal((loss.codes.size, loss.count))

    def objective(b: np.ndarray) -> float:
        return loss.value(scores + b) + penalty.value(b[None, :])

    starts = [rng.standard_normal(loss.count) * size for size in (0.0, 0.1, 3.0)]
    found = [loss.best_intercept(scores, penalty, start) for start in starts]
    for start, b in zip(starts, found, strict=True):
        assert objective(b) <= objective(penalty.prox(start[None, :], 1e-300)[0]) + 1e-14
        assert objective(b) == pytest.approx(objective(found[0]), rel=1e-9)
        for _ in range(20):
            near = b + 0.1 * rng.standard_normal(loss.count)
            near = penalty.prox(near[None, :], 1e-300)[0]
            assert objective(b) <= objective(near) + 1e-12


@every_loss
def test_a_weight_of_two_is_a_repeated_row(make, rng) -> None:
    base = make(rng)
    counts = rng.integers(0, 4, base.codes.size)
    counts[: base.count] = 1
    rows = np.repeat(np.arange(counts.size), counts)
    total = counts.sum()
    weighted = CrammerSinger(base.codes, counts / total, base.count, float(total))
    repeated = CrammerSinger(base.codes[rows], np.full(rows.size, 1 / total), base.count, total)
    scores = rng.standard_normal((counts.size, base.count))
    assert weighted.value(scores) == pytest.approx(repeated.value(scores[rows]), rel=1e-13)
    gradient = np.zeros(scores.shape)
    np.add.at(gradient, rows, repeated.value_and_gradient(scores[rows])[1])
    np.testing.assert_allclose(weighted.value_and_gradient(scores)[1], gradient, atol=1e-15)
    one = weighted.best_intercept(scores, FREE, np.zeros(base.count))
    many = repeated.best_intercept(scores[rows], FREE, np.zeros(base.count))
    assert weighted.value(scores + one) == pytest.approx(weighted.value(scores + many), rel=1e-12)


def test_two_classes_are_the_binary_hinge_of_the_difference(rng) -> None:
    codes = np.arange(15) % 2
    shares = rng.dirichlet(np.ones(15))
    joint = CrammerSinger(codes, shares, 2, 1.0)
    binary = MarginSum(Hinge(), np.where(codes == 1, 1.0, -1.0)[:, None], shares[:, None], 1.0)
    for size in (0.3, 1.0, 4.0):
        scores = size * rng.standard_normal((15, 2))
        difference = scores[:, 1:] - scores[:, :1]
        assert joint.value(scores) == pytest.approx(binary.value(difference), rel=1e-13)
        shift = joint.best_intercept(scores, FREE, np.zeros(2))
        alone = binary.best_intercept(difference, Ridge(), np.zeros(1))
        assert joint.value(scores + shift) == pytest.approx(
            binary.value(difference + alone), rel=1e-12
        )
        dual = joint.balanced(rng.standard_normal((15, 2)), FREE)
        assert joint.conjugate(dual) == pytest.approx(binary.conjugate(dual[:, 1:]), rel=1e-12)
        step = 0.7
        moved = joint.conjugate_prox(np.column_stack([-dual[:, 1], dual[:, 1]]), step)
        a = -binary.signs[:, 0] * dual[:, 1]
        # half of the squared distance of both columns is the squared distance of one
        expected = np.clip(a + 0.5 * step, 0.0, shares)
        np.testing.assert_allclose(-binary.signs[:, 0] * moved[:, 1], expected, atol=1e-14)


def test_zero_scores_ask_for_an_intercept_only_where_one_class_has_the_majority() -> None:
    def null(weights: list[float]) -> float:
        shares = np.array(weights) / sum(weights)
        loss = CrammerSinger(np.arange(shares.size), shares, shares.size, sum(weights))
        zero = np.zeros((shares.size, shares.size))
        b = loss.best_intercept(zero, FREE, np.zeros(shares.size))
        assert loss.value(b + zero) == pytest.approx(best_shift(loss, zero), abs=1e-9)
        return loss.value(b + zero)

    assert null([1.0, 1.0, 1.0]) == pytest.approx(1.0)
    assert null([4.0, 3.0, 2.0]) == pytest.approx(1.0)
    assert null([8.0, 1.0, 1.0]) == pytest.approx(0.4)
    assert null([0.0, 3.0, 2.0, 1.0, 0.0]) == pytest.approx(1.0)
    assert null([0.0, 7.0, 2.0, 1.0, 0.0]) == pytest.approx(0.6)


@every_loss
def test_declared_traits_are_true(make, rng) -> None:
    loss: Loss = make(rng)
    assert Trait.MANY_OUTPUTS in loss.traits
    assert Trait.SMOOTH not in loss.traits
    assert loss.curvature_bound(np.ones(loss.shares.size)) == np.inf
    assert loss.shares.sum() == pytest.approx(1.0)


@every_loss
def test_evaluating_a_loss_leaves_its_arguments_unchanged(make, rng) -> None:
    loss = make(rng)
    scores, dual = rng.standard_normal((loss.codes.size, loss.count)), random_dual(loss, rng)
    with unchanged(scores, dual, loss.codes, loss.shares):
        loss.value_and_gradient(scores)
        loss.fenchel_young(scores, dual)
        loss.conjugate(dual)
        loss.balanced(dual, FREE)
        loss.conjugate_prox(dual, 0.5)
        loss.best_intercept(scores, FREE, np.zeros(loss.count))
