"""Limits at which solvers give up or refuse a problem are theirs to be set."""

from __future__ import annotations

import re
from dataclasses import replace
from inspect import signature
from itertools import cycle

import numpy as np
import pytest

from proxmargin.data.designs import as_design
from proxmargin.losses import HuberizedHinge, MarginSum
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.penalties import ElasticNet, Ridge
from proxmargin.solvers.choice.names import RETIRED, SOLVERS, named_solver
from proxmargin.solvers.l1.chord_newton import ChordNewton
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.accelerated import FastProximalGradient
from proxmargin.solvers.shared.working_set import WorkingSet
from proxmargin.solvers.wrappers import Relay

LIMITS = [
    (name, option)
    for name, make in SOLVERS.items()
    for option in signature(make).parameters
    if option.startswith("max_") or option == "samples_per_feature"
]


@pytest.fixture
def problem(rng) -> Problem:
    X = rng.standard_normal((60, 4))
    y = np.where(X[:, 0] + rng.standard_normal(60) > 0, 1.0, -1.0)
    loss = MarginSum(HuberizedHinge(0.5), y[:, None], np.full((60, 1), 1 / 60))
    return Problem(loss, ElasticNet(0.01, 0.01), as_design(X), Ridge(0.0))


@pytest.mark.parametrize(("name", "option"), LIMITS)
def test_a_limit_below_one_is_refused_by_name(name, option) -> None:
    SOLVERS[name](**{option: 1})
    with pytest.raises(ValueError, match=f"solver_options: {option} must be a number >= 1, got 0"):
        SOLVERS[name](**{option: 0})


@pytest.mark.parametrize("value", ["a", None, [1], True])
def test_a_limit_that_is_no_number_is_refused_by_name(value) -> None:
    with pytest.raises(ValueError, match="solver_options: max_samples must be a number >= 1"):
        SOLVERS["active-set"](max_samples=value)


@pytest.mark.parametrize(("limit", "ends"), [(5, True), (1000, False), (np.inf, False)])
def test_accelerated_steps_end_without_a_new_least_objective(limit, ends, problem) -> None:
    solver = FastProximalGradient(max_stalled=limit)
    state = solver.init(problem, null_point(problem), Stop())
    old = replace(state, n_iter=30, lowest=-1.0, lowest_at=1)
    assert solver.step(problem, old).finished is ends


def test_a_larger_limit_lets_a_solver_take_what_it_refuses(problem) -> None:
    assert "at most 1000 features and at least 20 samples a feature" in str(
        ChordNewton().objection(problem)
    )
    willing = ChordNewton(samples_per_feature=15)
    assert willing.objection(problem) is None
    assert minimize(problem, willing, stop=Stop(tol=1e-9)).certificate.converged


def options_of(kind: str) -> list[tuple[str, str]]:
    return [
        (name, option)
        for name, make in SOLVERS.items()
        for option, told in signature(make).parameters.items()
        if kind in str(told.annotation)
    ]


@pytest.mark.parametrize(("name", "option"), options_of("bool"))
def test_a_flag_is_true_or_false_and_nothing_else(name, option) -> None:
    with pytest.raises(ValueError, match=f"solver_options: {option} must be True.*, got 'no'"):
        SOLVERS[name](**{option: "no"})
    SOLVERS[name](**{option: np.False_})


@pytest.mark.sampled(3)
# one check serves all options: each meets one of what is no number
@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        (*option, value)
        for option, value in zip(
            [*options_of("int"), *options_of("float")], cycle(["a", [1], np.nan, True, -3])
        )
    ],
)
def test_a_number_is_a_number_that_can_be_used(name, option, value) -> None:
    if option == "first_point" and value == -3:
        return
    message = rf"solver_options: {option} must be .*, got {re.escape(repr(value))}"
    with pytest.raises(ValueError, match=message):
        SOLVERS[name](**{option: value})


@pytest.mark.parametrize(
    ("make", "option"), [(Relay, "first"), (Relay, "second"), (WorkingSet, "inner")]
)
def test_a_solver_inside_another_one_is_a_solver(make, option) -> None:
    with pytest.raises(ValueError, match=f"solver_options: {option} must be a solver object"):
        make(**{option: "newton"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fapg", {"bt_every": 2.5}, "bt_every must be an integer >= 1, got 2.5"),
        ("fapg", {"floor": 0}, "floor must be a number > 0 and < 0.5, got 0"),
        ("fapg", {"stability": 1.5}, "stability must be a number >= 0 and <= 1, got 1.5"),
        ("fapg", {"careful": 1}, "careful must be True, False or None, got 1"),
        ("b-pgh-2", {"first_lipschitz": 0.0}, "first_lipschitz must be a number > 0, or None"),
        ("b-pgh-2", {"eta": 1}, "eta must be a number > 1, got 1"),
        ("gcd", {"smallest": 2.5}, "smallest must be an integer >= 1, got 2.5"),
        ("gcd", {"forcing": 1.0}, "forcing must be a number > 0 and < 1, got 1.0"),
        ("admm", {"setting": ["xu"]}, r"setting must be one of liu, xu, got \['xu'\]"),
        ("fapg-ssnal", {"first": "gcd"}, "first must be one of fapg, fbpd, got 'gcd'"),
        ("fapg-ssnal", {"first": ["fapg"]}, r"first must be one of fapg, fbpd, got \['fapg'\]"),
    ],
)
def test_an_option_that_cannot_be_is_shown(name, options, message) -> None:
    with pytest.raises(ValueError, match=f"solver_options: {message}"):
        SOLVERS[name](**options)


def test_limits_may_be_infinite_where_the_paper_has_none() -> None:
    SOLVERS["fapg"](max_stalled=np.inf)
    SOLVERS["isvm3"](largest=np.inf)
    SOLVERS["fapg-ssnal"](far_steps=np.inf)


@pytest.mark.parametrize("name", ["ssnal", "fapg-ssnal"])
def test_a_solver_on_a_working_set_keeps_its_name_and_its_settings(name) -> None:
    plain, restricted = SOLVERS[name](), SOLVERS[name](working_set=True, smallest=7)
    assert isinstance(restricted, WorkingSet)
    assert restricted.inner == plain
    assert restricted.smallest == 7
    assert restricted.name == plain.name == name


def test_the_hybrid_takes_either_first_method() -> None:
    first, other = SOLVERS["fapg-ssnal"](), SOLVERS["fapg-ssnal"](first="fbpd", near=0.1)
    assert isinstance(first, Relay)
    assert isinstance(other, Relay)
    assert (first.first.name, first.far_steps) == ("fapg", 60)
    assert (other.first.name, other.far_steps, other.near) == ("fbpd", 60, 0.1)


@pytest.mark.parametrize("name", RETIRED)
def test_a_name_of_an_earlier_version_says_the_new_one(name, problem) -> None:
    with pytest.raises(ValueError, match=f"no solver '{name}' any more") as told:
        named_solver(name, {}, problem)
    new = str(told.value).partition("solver='")[2].partition("'")[0]
    assert new in SOLVERS
    assert name not in SOLVERS
