"""The table of rules: every rule is reached, and what it says of a problem is true."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from proxmargin.data.designs import DenseDesign, Design, SparseDesign, StandardizedDesign, moments
from proxmargin.functions.losses.minimax import EllipsoidLoss
from proxmargin.functions.losses.tail_mean import largest_nu
from proxmargin.functions.penalties.custom import OwnPenalty
from proxmargin.functions.traits import Trait
from proxmargin.losses import (
    CrammerSinger,
    DistanceWeighted,
    Hinge,
    HuberizedHinge,
    LevelSet,
    Logistic,
    Loss,
    MarginLoss,
    MarginSum,
    MinimaxFisher,
    MinimaxProbability,
    Multinomial,
    SquaredHinge,
    TailMean,
    wrong_classes,
)
from proxmargin.optimality.problem import Problem
from proxmargin.penalties import (
    Ball,
    ElasticNet,
    GroupL2,
    GroupLinf,
    Groups,
    Penalty,
    Ridge,
    SumToZero,
    WeightedElasticNet,
)
from proxmargin.solvers.choice.names import SOLVERS, Choice, choose
from proxmargin.solvers.choice.rules import CELLS, FALLBACKS, KERNEL_RULES, PASSES, RULES, rules_for
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop, UnsuitableSolverError
from tests.cases import hinge_problem, kernel_problem, ridge_problem
from tests.examples import example

MARGINS: dict[str, MarginLoss] = {
    "hinge": Hinge(),
    "huberized": HuberizedHinge(0.5),
    "squared": SquaredHinge(),
    "logistic": Logistic(),
    "by an array formula": DistanceWeighted(1.0),
}


def binary_losses(n: int) -> Iterator[Loss]:
    signs, shares = np.where(np.arange(n) % 5 < 2, 1.0, -1.0), np.full(n, 1.0 / n)
    for phi in MARGINS.values():
        yield MarginSum(phi, signs[:, None], shares[:, None], float(n))
    yield TailMean(signs, shares, 0.5 * largest_nu(signs, shares), float(n))
    yield MinimaxFisher(signs, shares, 0.5, float(n))
    yield MinimaxProbability(signs, shares, 0.5, float(n))


def class_losses(n: int, classes: int) -> Iterator[Loss]:
    codes, shares = np.arange(n) % classes, np.full(n, 1.0 / n)
    for name in ("hinge", "huberized", "by an array formula"):
        yield wrong_classes(MARGINS[name], codes, shares, classes, float(n))
    worst = CrammerSinger(codes, shares, classes, float(n))
    yield from (worst, LevelSet(worst, 0.3, 10.0), Multinomial(codes, shares, classes, float(n)))


def penalties(p: int, joint: bool) -> Iterator[Penalty]:
    l1, net = ElasticNet(0.1, 0.0), ElasticNet(0.1, 0.1)
    yield from (l1, net, Ridge(0.1), Ridge(0.0), Ball(2.0, 1.0), Ball(1.5, 1.0))
    groups = Groups.within_classes(np.arange(p) // 3)
    yield from (GroupL2(groups, 0.1), GroupLinf(groups, 0.1))
    if joint:
        yield SumToZero(net)
    else:
        yield WeightedElasticNet(ElasticNet(0.0, 0.1), np.arange(p) > 0)  # one without a penalty
        yield OwnPenalty(example("huber_penalty").SortedL1(), (p, 1))


@cache
def designs() -> tuple[Design, ...]:
    rng = np.random.default_rng(0)
    shapes = ((200, 30), (50, 80), (10, 600), (800, 9), (700, 6), (9000, 12))
    dense = [DenseDesign(rng.normal(size=s)) for s in shapes]
    wide = sp.random(4000, 6000, 2e-4, format="csr", random_state=0)
    centred = SparseDesign(wide)
    few = SparseDesign(sp.random(60, 900, 0.02, format="csr", random_state=0))
    return (
        *dense,
        few,
        centred,
        StandardizedDesign(centred, *moments(centred, np.full(4000, 1 / 4000))),
    )


def problems() -> Iterator[Problem]:
    for design in designs():
        n, p = design.n_samples, design.n_features
        for loss in binary_losses(n):
            for penalty in penalties(p, joint=False):
                yield Problem(loss, penalty, design, Ridge(0.0))
        if n > 1000:
            continue
        for classes in (3, 9):
            for loss in class_losses(n, classes):
                for penalty in penalties(p, joint=True):
                    yield Problem(loss, penalty, design, SumToZero(ElasticNet(0.0, 0.0)))


@cache
def walked() -> list[tuple[Problem, str]]:
    """Problems, and what the rule that they reach says; those that no solver takes are left out."""
    found = []
    for problem in problems():
        try:
            found.append((problem, choose(problem).because))
        except UnsuitableSolverError:
            assert problem.penalty.l2 == 0  # a homogeneous loss, and so is the penalty
    return found


@cache
def reached() -> set[str]:
    """What the rules say that problems reach, first or where the solver before gives up."""
    reasons = set()
    for problem, _ in walked():
        choice: Choice | None = choose(problem)
        while choice is not None:
            reasons.add(choice.because)
            choice = choice.following(problem)
    return reasons


def n(problem: Problem) -> int:
    return problem.design.n_samples


def p(problem: Problem) -> int:
    return problem.design.n_features


def smooth(problem: Problem) -> bool:
    return Trait.SMOOTH in problem.traits


def hinges(problem: Problem) -> bool:
    loss = problem.loss.loss if isinstance(problem.loss, LevelSet) else problem.loss
    of_margins = isinstance(loss, MarginSum) and isinstance(loss.phi, Hinge)
    return of_margins or isinstance(loss, CrammerSinger)


def piecewise_quadratic(problem: Problem) -> bool:
    loss = problem.loss
    of_margins = isinstance(loss, MarginSum) and loss.phi.has_quadratic_conjugate
    return of_margins or isinstance(loss, TailMean)


def inner(penalty: Penalty) -> Penalty:
    return penalty.inner if isinstance(penalty, SumToZero) else penalty


# what words in a reason claim
CLAIMS: dict[str, Callable[[Problem], bool]] = {
    "a smooth loss": smooth,
    "a loss with kinks": lambda problem: not smooth(problem),
    "a piecewise linear or quadratic loss": piecewise_quadratic,
    "the hinge": lambda problem: hinges(problem) and problem.loss.n_outputs == 1,
    "hinges": hinges,
    "multiclass": lambda problem: problem.loss.n_outputs > 1,
    "of all classes": lambda problem: problem.loss.n_outputs > 1,
    "one column of scores": lambda problem: problem.loss.n_outputs == 1,
    "a budget": lambda problem: isinstance(problem.loss, LevelSet),
    "MM-FDA or MM-MPM": lambda problem: isinstance(problem.loss, EllipsoidLoss),
    " ball": lambda problem: isinstance(problem.penalty, Ball),
    "and a ridge": lambda problem: problem.penalty.l2 > 0,
    "an l1 norm": lambda problem: problem.penalty.l1 > 0,
    "an elastic net": lambda problem: isinstance(inner(problem.penalty), ElasticNet | Ridge),
    "polyhedral norm": lambda problem: isinstance(inner(problem.penalty), ElasticNet | GroupLinf),
    "smooth conjugate": lambda problem: Trait.SMOOTH_CONJUGATE in problem.traits,
    "more features than samples": lambda problem: p(problem) > n(problem),
    "many samples of few features": lambda problem: n(problem) >= 8 * p(problem),
    "few entries": lambda problem: n(problem) * (p(problem) + 2) ** 2 <= 1_000_000,
    "few samples": lambda problem: n(problem) <= 300 or problem.design.density <= 0.05,
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.because)
def test_every_rule_is_reached(rule) -> None:
    assert rule.because in reached(), "delete it"


def test_no_two_rules_say_the_same() -> None:
    reasons = [rule.because for rule in (*RULES, *KERNEL_RULES)]
    assert len(set(reasons)) == len(reasons)
    assert {rule.use for rule in (*RULES, *KERNEL_RULES)} <= SOLVERS.keys()


@pytest.mark.parametrize("words", CLAIMS)
def test_what_a_reason_says_of_a_problem_is_true(words: str) -> None:
    reached = [problem for problem, because in walked() if words in because]
    assert reached, "no rule says so"
    assert [problem for problem in reached if not CLAIMS[words](problem)] == []


def test_a_kernel_matrix_has_rules_that_are_reached(rng) -> None:
    sparse = kernel_problem(rng)
    curved = replace(ridge_problem(rng, Logistic()), design=sparse.design)
    found = [choose(problem).because for problem in (sparse, curved)]
    assert found == [rule.because for rule in KERNEL_RULES]


@pytest.mark.parametrize("loss", ["logistic", "by an array formula"])
def test_a_smooth_loss_and_a_penalty_of_ones_own_get_accelerated_steps(loss: str, rng) -> None:
    custom = OwnPenalty(example("huber_penalty").SortedL1(), (6, 1))
    assert choose(replace(ridge_problem(rng, MARGINS[loss]), penalty=custom)).name == "fapg"


def test_a_problem_is_asked_of_the_rules_of_its_kind_alone() -> None:
    """At most three; each can take some problem of the kind, as the fallbacks need not."""
    assert max(len(cell) for cell in (*CELLS, KERNEL_RULES, PASSES)) == 3
    asked = {problem: rules_for(problem) for problem in problems()}
    kinds = {rules: [p for p in asked if asked[p] == rules] for rules in asked.values()}
    assert len(kinds) > 8
    for rules, found in kinds.items():
        assert set(rules) <= set(RULES)
        for rule in set(rules) - set(FALLBACKS):
            solver = SOLVERS[rule.use](**rule.options)
            assert any(solver.objection(problem) is None for problem in found), rule.because


def test_few_solvers_are_asked_before_one_takes_a_problem() -> None:
    """At most three, unless none but a fallback does."""
    for problem, because in walked():
        rows = [rule for rule in rules_for(problem) if rule.when is None or rule.when(problem)]
        if because not in {rule.because for rule in set(FALLBACKS) - set(rows[:3])}:
            assert [rule.because for rule in rows].index(because) < 3


def test_a_smooth_loss_by_an_array_formula_with_an_l1_norm_gets_accelerated_steps() -> None:
    loss = {"fapg-ws": 0, "fapg": 0}
    for problem, _ in walked():
        margins = isinstance(problem.loss, MarginSum) and problem.loss.n_outputs == 1
        if margins and smooth(problem) and Trait.COMPILED not in problem.traits:
            name = choose(problem).name
            if problem.penalty.l1 > 0:
                assert name == ("fapg-ws" if p(problem) > n(problem) else "fapg")
                loss[name] += 1
    assert min(loss.values()) > 0


@pytest.mark.parametrize("exponent", [1.3, 2.0])
def test_accelerated_steps_are_for_balls_in_which_few_margins_are_reached(exponent, rng) -> None:
    """They take few steps there, and thousands in large balls."""
    data = {"n": 300, "p": 10}
    small, large = (
        replace(hinge_problem(rng, **data), penalty=Ball(exponent, radius))
        for radius in (0.1, 20.0)
    )
    assert choose(small).name == "fapg-star"
    solution = minimize(small, SOLVERS["fapg-star"](), stop=Stop(tol=1e-6, max_iter=50))
    assert solution.certificate.converged
    assert choose(large).name == "interior-point"


def test_accelerated_steps_are_for_balls_whose_first_point_has_no_loss(rng) -> None:
    """They end there, where an interior point method takes tens of steps."""
    problem = hinge_problem(rng, n=40, p=400)
    dual = problem.loss.balanced(
        problem.loss.value_and_gradient(np.zeros((40, 1)))[1], problem.intercept
    )
    direction = problem.design.adjoint(-dual)[:, 0]
    least = np.abs(problem.design.scores(direction[:, None])).min() / np.linalg.norm(direction, 3)
    loose = replace(problem, penalty=Ball(1.5, 20.0 / least))
    assert choose(loose).name == "fapg-star"
    solution = minimize(loose, SOLVERS["fapg-star"](), stop=Stop(tol=1e-6, max_iter=10))
    assert solution.certificate.converged
    assert solution.certificate.primal == 0.0
