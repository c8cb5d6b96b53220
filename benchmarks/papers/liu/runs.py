"""Fits of the doubly regularised machine by the solvers of Liu et al. (2013).

The paper sums the losses: its strengths and its rho are divided by the number of samples here.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.datasets import DataSet
from benchmarks.peers.drsvm import mean_hinge
from proxmargin import SVC, ElasticNetSVC
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import (
    PrimalResidual,
    RelativeChange,
    Solver,
    Stop,
    StoppingRule,
)
from proxmargin.solvers.papers.iterated_svm import AlternatingDirections, Isvm2, Isvm3

__all__ = [
    "AUTO",
    "SOLVERS",
    "TAU",
    "Run",
    "Split",
    "ended",
    "fitted",
    "isvm2",
    "isvm3",
    "machine",
    "strength",
]

TAU = 1e-4  # of |u - w|, printed
INNER = 1e-6  # accuracy of the inner problem of ISVM, which no certificate refines here
TOL = 1e-6  # relative gap of our own choice of a solver
LIMIT = 10.0  # seconds a fit
AUTO = "auto"
Stopped = tuple[Solver[Any], StoppingRule]
"""A solver, and the rule that ends it."""


def isvm2(rho: float = 50.0) -> Stopped:
    return Isvm2(rho=rho), PrimalResidual(TAU)


def isvm3(growth: float = 1.2) -> Stopped:
    """Without the bound of rho that ours has."""
    return Isvm3(rho=10.0, growth=growth, largest=np.inf), PrimalResidual(TAU)


def _admm() -> Stopped:
    return AlternatingDirections(setting="liu"), RelativeChange(TAU)


# stopped by the printed rules
SOLVERS: dict[str, Callable[[], Stopped]] = {"isvm2": isvm2, "isvm3": isvm3, "admm": _admm}


@dataclass(frozen=True)
class Split:
    """Samples to train with, and to test with."""

    train: DataSet
    test: DataSet


@dataclass(frozen=True)
class Run:
    """One fit: how it classifies, what it took, the coefficients, what is proven of it."""

    accuracy: float
    seconds: float
    iterations: int
    coef: np.ndarray
    gap: float

    @property
    def zeros(self) -> int:
        return int((self.coef == 0).sum())


def machine(data: DataSet, C: float = 1.0, *, bias: bool = True) -> SVC:
    """The standard support vector machine."""
    return SVC(C=C, tol=TOL, fit_intercept=bias).fit(data.design, data.labels)


def strength(data: DataSet) -> float:
    """lambda1 as printed: ten times the largest coefficient of the standard machine."""
    return 10.0 * float(np.abs(machine(data).coef_).max())


def fitted(name: str, split: Split, l1: float, l2: float) -> Run:
    """By ISVM2, ISVM3 or ADMM until the printed rule, or by `AUTO` to a certified gap."""
    if name != AUTO:
        return ended(SOLVERS[name](), split, l1, l2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that end early show in their gaps
        return _to_the_gap(split, l1, l2)


def ended(stopped: Stopped, split: Split, l1: float, l2: float) -> Run:
    """By a solver until its rule."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        return _by_the_rule(*stopped, split, l1, l2)


def _by_the_rule(
    solver: Solver[Any], rule: StoppingRule, split: Split, l1: float, l2: float
) -> Run:
    X, y = split.train.design, split.train.labels
    problem = mean_hinge(X, y, l1 / y.size, l2 / y.size)
    stop = Stop(tol=TAU, time_limit=LIMIT, rule=rule)
    start = time.process_time()
    state = solver.init(problem, Point(np.zeros((X.shape[1], 1)), np.zeros(1)), stop)
    if isinstance(solver, Isvm2):
        state = replace(state, exactness=INNER)
    found = minimize(problem, solver, stop=stop, start=state)
    spent = time.process_time() - start
    # the last iterate: that with the smallest gap, which the run returns, can be one before
    last: Any = found.state
    point = solver.point(problem, last)
    gap = certify(problem, point, dual=solver.dual(problem, last)).relative_gap
    coef, intercept = point.coef[:, 0], float(point.intercept[0])
    return Run(_right(split.test, coef, intercept), spent, last.n_iter, coef, gap)


def _to_the_gap(split: Split, l1: float, l2: float) -> Run:
    X, y = split.train.design, split.train.labels
    model = ElasticNetSVC(
        alpha=(l1 + l2) / y.size, l1_ratio=l1 / (l1 + l2), tol=TOL, time_limit=LIMIT
    )
    start = time.process_time()
    model.fit(X, y)
    spent = time.process_time() - start
    coef, told = model.coef_[0], model.certificate_
    right = _right(split.test, coef, float(model.intercept_[0]))
    return Run(right, spent, told.n_iter, coef, told.relative_gap)


def _right(data: DataSet, coef: np.ndarray, intercept: float) -> float:
    """The share of samples on the right side."""
    positive = data.design @ coef + intercept > 0
    return float(np.mean(positive == (data.labels > 0)))
