"""The augmented Lagrangian method for the multiclass hinge, against interior-point optima."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine

from proxmargin.data.designs import Design, StandardizedDesign, as_design, standardized
from proxmargin.losses import CrammerSinger, Hinge, MarginSum
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.penalties import ElasticNet, Penalty, Pinned, Ridge, SumToZero
from proxmargin.solvers.augmented.multiplier_newton import MultiplierNewton
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from tests.cases import binary_problem, class_problem
from tests.oracles.crammer_singer import crammer_singer_objective, crammer_singer_optimum
from tests.shared_data import load_instance, reference_instances

FREE = SumToZero(ElasticNet(0.0, 0.0))
NETS = {"l1": (0.02, 0.0), "elastic net": (0.01, 0.02), "ridge": (0.0, 0.03)}
every_net = pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())
REFERENCE = [
    i for i in reference_instances("crammer_singer") if i["params"]["penalty"] in ("l1", "l2")
]


def problem_of(
    X: Any, y: np.ndarray, l1: float, l2: float, *, weights: Any = None, intercept: Penalty = FREE
) -> Problem:
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    loss = CrammerSinger(y, weights / weights.sum(), int(y.max()) + 1, float(weights.sum()))
    design = X if isinstance(X, Design) else as_design(X)
    return Problem(loss, ElasticNet(l1, l2), design, intercept)


def solved(problem: Problem, tol: float = 1e-9, **options: Any) -> Solution:
    solution = minimize(problem, MultiplierNewton(), stop=Stop(tol=tol), **options)
    assert solution.certificate.converged, str(solution.certificate)
    assert solution.gap.primal == pytest.approx(problem.value(solution.point), rel=1e-12)
    return solution


def blobs(rng: np.random.Generator, n: int, p: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes, one sample in each at least."""
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    return rng.standard_normal((n, p)) + 1.2 * rng.standard_normal((classes, p))[y], y


def real(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A small set, standardised; of the digits some samples and the pixels that vary in them."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, y = X[:150], y[:150]
    else:
        X, y = {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize(
    "instance", REFERENCE, ids=[f"{i['data']}, {i['params']}" for i in REFERENCE]
)
def test_the_reference_optimum_is_reached(instance: dict[str, Any]) -> None:
    X, y, weights = load_instance(instance)
    total = float(len(y) if weights is None else weights.sum())
    strength = 1.0 / (instance["params"]["C"] * total)
    nets = {"l1": (strength, 0.0), "l2": (0.0, strength)}
    solution = solved(problem_of(X, y, *nets[instance["params"]["penalty"]], weights=weights))
    value = solution.gap.primal / strength
    assert abs(value / instance["optimum"] - 1) <= 1e-7 + instance["accuracy"]
    assert solution.certificate.dual / strength <= instance["optimum"] * (1 + instance["accuracy"])


@every_net
@pytest.mark.parametrize("name", ["iris", "wine", pytest.param("digits", marks=pytest.mark.slow)])
def test_small_real_sets_reach_the_interior_point_optimum(name: str, net) -> None:
    X, y = real(name)
    best = crammer_singer_optimum(X, y, l1=net[0], l2=net[1])
    solution = solved(problem_of(X, y, *net))
    assert solution.gap.primal == pytest.approx(best, rel=1e-7)
    point = solution.point
    assert crammer_singer_objective(
        X, y, point.coef, point.intercept, l1=net[0], l2=net[1]
    ) == pytest.approx(solution.gap.primal, rel=1e-12)


@every_net
@pytest.mark.parametrize("intercept", [FREE, SumToZero(ElasticNet(0.0, 0.5)), Pinned()], ids=repr)
def test_intercepts_that_are_penalised_or_absent(net, intercept: Penalty, rng) -> None:
    X, y = blobs(rng, 40, 6, 3)
    X += 0.7
    solution = solved(problem_of(X, y, *net, intercept=intercept))
    if isinstance(intercept, Pinned):
        best = crammer_singer_optimum(X, y, l1=net[0], l2=net[1], fit_intercept=False)
        assert solution.gap.primal == pytest.approx(best, rel=1e-7)
        assert not solution.point.intercept.any()
    else:
        assert abs(solution.point.intercept.sum()) <= 1e-9


@every_net
def test_the_gap_is_never_below_the_distance_from_the_optimum(net, rng) -> None:
    X, y = blobs(rng, 60, 8, 4)
    problem = problem_of(X, y, *net)
    best = crammer_singer_optimum(X, y, l1=net[0], l2=net[1])
    checks = []
    minimize(problem, MultiplierNewton(), stop=Stop(tol=1e-9), callbacks=[checks.append])
    assert len(checks) > 3
    for report in checks:
        value = problem.value(report.gap.point)
        assert report.gap.primal == pytest.approx(value, rel=1e-12)
        assert report.gap.gap >= value - best - 1e-9 * best
        assert report.gap.dual <= best * (1 + 1e-9)
    for size in (0.01, 0.3, 10.0):
        point = Point(size * rng.standard_normal((8, 4)), rng.standard_normal(4))
        gap = certify(problem, point)
        assert gap.gap >= problem.value(gap.point) - best - 1e-9 * best


@every_net
def test_two_classes_are_the_binary_hinge(net, rng) -> None:
    X, y = blobs(rng, 50, 7, 2)
    joint = solved(problem_of(X, y, *net))
    sum_ = MarginSum(Hinge(), np.where(y == 1, 1.0, -1.0)[:, None], np.full((50, 1), 1 / 50), 50.0)
    # |w|_1 and half of |w|^2 for w the difference of the two columns
    binary = Problem(sum_, ElasticNet(net[0], 0.5 * net[1]), as_design(X), Ridge())
    w = (joint.point.coef[:, 1] - joint.point.coef[:, 0])[:, None]
    shift = np.array([joint.point.intercept[1] - joint.point.intercept[0]])
    assert binary.value(Point(w, shift)) == pytest.approx(joint.gap.primal, rel=1e-8)
    best = crammer_singer_optimum(X, y, l1=net[0], l2=net[1])
    assert joint.gap.primal == pytest.approx(best, rel=1e-7)


@every_net
def test_weights_are_repeated_rows(net, rng) -> None:
    X, y = blobs(rng, 40, 6, 3)
    counts = rng.integers(0, 4, 40)
    counts[:3] = 1
    rows = np.repeat(np.arange(40), counts)
    weighted = solved(problem_of(X, y, *net, weights=counts))
    repeated = solved(problem_of(X[rows], y[rows], *net))
    removed = counts > 0
    without = solved(problem_of(X[removed], y[removed], *net, weights=counts[removed]))
    assert weighted.gap.primal == pytest.approx(repeated.gap.primal, rel=1e-8)
    assert weighted.gap.primal == pytest.approx(without.gap.primal, rel=1e-8)


@every_net
def test_a_class_without_weight_is_as_if_it_were_not_there(net, rng) -> None:
    X, y = blobs(rng, 45, 6, 3)
    weights = np.where(y == 1, 0.0, 1.0)
    solution = solved(problem_of(X, y, *net, weights=weights))
    kept = y != 1
    two = solved(problem_of(X[kept], y[kept] // 2, *net))
    assert solution.gap.primal == pytest.approx(two.gap.primal, rel=1e-8)


def ties(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(rng, 30, 5, 3)
    return np.round(X), y


def duplicates(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(rng, 20, 4, 3)
    return np.tile(np.hstack([X, X[:, :2]]), (3, 1)), np.tile(y, 3)


def contradictions(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(rng, 20, 4, 3)
    return np.vstack([X, X]), np.concatenate([y, (y + 1) % 3])


def constants(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(rng, 30, 5, 3)
    X[:, 1], X[:, 3] = 4.0, 0.0
    return X, y


def alphabet(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return blobs(rng, 80, 10, 26)


def one_sample_a_class(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return blobs(rng, 6, 9, 6)


def lonely(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(rng, 30, 5, 2)
    return np.vstack([X, [[9.0] * 5]]), np.append(y, 2)


def wide(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return blobs(rng, 25, 120, 4)


def of_many_units(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, y = blobs(rng, 40, 5, 3)
    return X * [1e-2, 1.0, 30.0, 1.0, 10.0] + [0.0, 100.0, -300.0, 2.0, 50.0], y


HARD = [
    ties, duplicates, contradictions, constants, alphabet, one_sample_a_class, lonely, wide,
    of_many_units,
]  # fmt: skip


@pytest.mark.sampled(2)
@every_net
@pytest.mark.parametrize("make", HARD, ids=lambda make: make.__name__)
def test_degenerate_data_reach_the_interior_point_optimum(make, net, rng) -> None:
    X, y = make(rng)
    solution = solved(problem_of(X, y, *net), tol=1e-8)
    best = crammer_singer_optimum(X, y, l1=net[0], l2=net[1])
    assert solution.gap.primal == pytest.approx(best, rel=2e-7)


@every_net
def test_sparse_dense_and_standardised_data_give_one_optimum(net, rng) -> None:
    X, y = blobs(rng, 50, 20, 4)
    X *= rng.random(X.shape) < 0.3
    values = [
        solved(problem_of(make(X), y, *net)).gap.primal
        for make in (np.asfortranarray, sp.csr_matrix, sp.csc_array, np.ascontiguousarray)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-8)
    shares = np.full(50, 1 / 50)
    scaled = []
    for design in (as_design(X), as_design(sp.csr_matrix(X))):
        whole = standardized(design, shares)
        scaled.append(solved(problem_of(whole, y, *net)).gap.primal)
        # centred sparse data without an intercept that could take the centre
        given = StandardizedDesign(design, whole.centre, whole.scale)
        scaled.append(solved(problem_of(given, y, *net, intercept=Pinned())).gap.primal)
    assert scaled[0] == pytest.approx(scaled[2], rel=1e-8)
    assert scaled[1] == pytest.approx(scaled[3], rel=1e-8)
    dense = problem_of((X - X.mean(axis=0)) / X.std(axis=0), y, *net)
    assert scaled[0] == pytest.approx(solved(dense).gap.primal, rel=1e-8)


def test_above_the_critical_strength_nothing_is_selected(rng) -> None:
    X, y = blobs(rng, 60, 10, 3)
    y = np.sort(y % 3)
    problem = problem_of(X, y, 5.0, 0.0)
    solution = solved(problem)
    assert not solution.point.coef.any()
    assert solution.gap.primal == pytest.approx(problem.value(null_point(problem)), rel=1e-9)


@every_net
def test_a_path_of_warm_starts_takes_few_steps(net, rng) -> None:
    X, y = blobs(rng, 60, 30, 3)
    strengths = np.geomspace(4.0, 0.5, 8)
    start, warm, cold = None, 0, 0
    for factor in strengths:
        problem = problem_of(X, y, factor * net[0], factor * net[1])
        solution = solved(problem, 1e-6, start=start)
        again = solved(problem, 1e-6)
        assert solution.gap.primal == pytest.approx(again.gap.primal, rel=3e-6)
        start = solution.point
        warm += solution.certificate.n_iter
        cold += again.certificate.n_iter
    assert warm < cold


def test_the_rules_choose_it_and_it_refuses_what_it_cannot_take(rng) -> None:
    assert choose(class_problem(rng)).name == "multiplier-newton"
    for other in (binary_problem(rng), class_problem(rng, penalty=SumToZero(ElasticNet(0.1)))):
        with pytest.raises(UnsuitableSolverError, match="cannot take this problem: it needs"):
            minimize(other, MultiplierNewton())
    with pytest.raises(UnsuitableSolverError, match="it needs an elastic net"):
        minimize(class_problem(rng, penalty=ElasticNet(0.0, 0.0)), MultiplierNewton())
