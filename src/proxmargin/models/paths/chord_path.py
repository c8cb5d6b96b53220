"""Whole paths without the loop of a fit.

In compiled code, by `proxmargin.solvers.l1.chord_engine`: one call of the kernel solves several
strengths, but not all, so that an interruption keeps those of complete calls. A strength that it
cannot solve to the tolerance the caller solves as a single fit. Of models of all classes
together, by the steps of `ClassNewton`. And of models with a ridge for data with more features than
samples, which depend on the inner products K of the samples only: with signed dual points v,
``w = X'v / l2``, and the scores are ``K v / l2 + b``. K is formed once; a strength then costs
systems of the size of K, and the coefficients of all strengths one product with the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.compiled.paths.state import Strengths
from proxmargin.compiled.rounding import TINY
from proxmargin.functions.traits import Trait
from proxmargin.models.paths.found import Found, solution_of
from proxmargin.optimality.certificates.certificate import Certificate, Gap, lower_bound
from proxmargin.optimality.certificates.certify import certify, certify_together
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import factor_work, quiet_threads
from proxmargin.runtime.types import Array
from proxmargin.solvers.choice.names import choose
from proxmargin.solvers.interior.active_set import ActiveSet
from proxmargin.solvers.l1.chord_engine import ChordEngine, stepwise
from proxmargin.solvers.l1.chord_newton import ChordNewton
from proxmargin.solvers.l1.class_newton import ClassNewton, ClassNewtonState
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.ridge.newton import RidgeNewton

Index = NDArray[np.int64]

NAME = ChordNewton.name
BECAUSE = "on a path of strengths chord Newton steps and former dual points read the data least"


class ChordPath(ChordEngine):
    """A path in progress, from the null model; the problem is at strength one (`ChordEngine`)."""

    def solved(self, l1: Array, l2: Array) -> Found:
        """Solutions for falling strengths, (n_strengths,) each, of the features with the largest
        factor; fewer if one could not be solved.
        """
        last, started = np.arange(l1.size), clock()
        if self.copies:
            l1, l2, last = stepwise(float(self.progress.scalars["strength"]), l1, l2)
        found, first, _ = self.advanced(self.blank(l1, l2), 0)
        last = last[last < first]
        seconds = (clock() - started) / max(last.size, 1)
        self.problem.design.counter.add(float(found.passes[:first].sum()))
        features, values, starts = _entries(found, last)
        light = found._replace(indices=features[:0], values=values[:0])
        return Found(
            features=features,
            coef=values[:, None],
            starts=starts,
            intercepts=found.intercepts[last][:, None],
            primal=found.objectives[last],
            met=np.ones(last.size, np.bool_),
            certify=partial(_certificate, light, last, seconds),
        )


def _entries(found: Strengths, last: Index) -> tuple[Index, Array, Index]:
    """Features and coefficients of the strengths with these indices, and where each starts."""
    count = last.size
    if count and last[-1] == count - 1:  # no intermediate strengths
        end = found.indptr[count]
        return found.indices[:end].copy(), found.values[:end].copy(), found.indptr[: count + 1]
    first = found.indptr[last]
    starts = np.append(0, np.cumsum(found.indptr[last + 1] - first))
    own = np.arange(starts[-1]) + np.repeat(first - starts[:-1], np.diff(starts))
    return found.indices[own], found.values[own], starts


def _certificate(found: Strengths, last: Index, seconds: float, number: int) -> Certificate:
    """The certificate of a requested strength; its effort includes intermediate strengths."""
    at = last[number]
    spent = slice(last[number - 1] + 1 if number else 0, at + 1)
    primal, gap = float(found.objectives[at]), float(found.gaps[at])
    dual = lower_bound(primal, gap)
    return Certificate(
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=gap / max(primal, abs(dual), TINY),
        kkt_residual=float(found.violations[at]),
        converged=True,
        stop_reason=Status.CONVERGED.value,
        n_iter=int(found.steps[spent].sum()),
        n_passes=float(found.passes[spent].sum()),
        seconds=seconds,
        solver=NAME,
        because=BECAUSE,
    )


JOINT_BECAUSE = (
    "on a path of strengths the coefficients, and the products with the data, of one are the start "
    "of the next"
)


class JointPath:
    """A path in progress, from the strongest penalty, to the relative gap ``tol`` at every strength
    and, with ``polish``, to more digits.
    """

    def __init__(self, tol: float, polish: bool) -> None:
        self.stop = Stop(tol, polish=polish)
        self.solver = ClassNewton()
        self.state: ClassNewtonState | None = None

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether all strengths like this one can be solved here."""
        return choose(problem).name == ClassNewton.name

    def chunk(self, strengths: int) -> int:
        """How many strengths a call may take."""
        return min(strengths, 1)

    def solved(self, problems: Sequence[Problem]) -> list[Solution]:
        """The solution for the next strength, alone; none if not found, or interrupted."""
        (problem,) = problems
        started, passes = clock(), problem.design.counter.passes
        # overflow and NaN are detected by checks, not by warnings
        silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        with quiet_threads(self.solver.product_bytes(problem)), silent:
            gap = self._certified(problem)
        if gap is None:
            return []
        assert self.state is not None
        solution = solution_of(
            gap,
            steps=self.state.n_iter,
            passes=problem.design.counter.passes - passes,
            seconds=clock() - started,
            solver=self.solver.name,
            because=JOINT_BECAUSE,
        )
        return [solution]

    def go_on_from(self, problem: Problem, point: Point) -> None:
        """Continue from a solution that was found elsewhere."""
        self.state = self.solver.init(problem, point, self.stop)

    def _certified(self, problem: Problem) -> Gap | None:
        """The gap of the solution, with the state at it; None if the steps stall before."""
        solver = self.solver
        if self.state is None:
            state = solver.init(problem, null_point(problem), self.stop)
        else:
            state = solver.onward(problem, self.state, self.stop)
        while True:
            if state.claims:
                gap = certify(problem, solver.point(problem, state), tol=self.stop.tol)
                if gap.relative_gap <= self.stop.tol:
                    self.state = state
                    return gap
                state = solver.observe(problem, state, gap)
            if state.finished or interrupts.pending or state.n_iter >= solver.max_iter:
                return None
            state = solver.step(problem, state)


PRODUCTS_BECAUSE = (
    "a ridge and fewer samples than features: on a path of strengths the inner products of the "
    "samples, formed once, replace the features"
)
# limits of one call: an interruption keeps the strengths of complete calls
ENTRIES_PER_CALL = 2_000_000  # entries of the coefficients of all its strengths: 16 MB
WORK_PER_CALL = 10**10  # multiply-adds for factors of the inner products: about a second
NEEDED = Trait.MARGINS | Trait.SINGLE_OUTPUT
# both give the weights a of ``w = X'a`` (`weights_of`) and go on to another ridge (`onward`)
WAYS: tuple[Any, ...] = (ActiveSet(), RidgeNewton())


class _StrengthFit(NamedTuple):
    """The result of one strength: ``w = X'inner``, a dual point, and the number of steps."""

    inner: Array
    dual: Array
    steps: int


@dataclass(eq=False)
class InnerProducts:
    """A path in progress, from the strongest ridge, to the relative gap ``tol`` at every strength.
    ``problem``: at any of the strengths; see `InnerProducts.takes`.
    """

    problem: Problem
    tol: float

    @staticmethod
    def takes(problem: Problem) -> bool:
        """Whether all strengths like this one can be solved here."""
        design = problem.design
        if not (design.n_samples < design.n_features and NEEDED in problem.traits):
            return False
        unshifted = problem.loss.largest_offset == 0
        return problem.has_unpenalised_intercept and unshifted and _way_for(problem) is not None

    def __post_init__(self) -> None:
        way = _way_for(self.problem)
        assert way is not None
        self.way, self.design = way, self.problem.centred.design
        self.state: object = None  # solver state at the last strength
        self.at_once = np.inf  # strengths per call: few after one that missed its tolerance

    def chunk(self, strengths: int) -> int:
        """How many strengths a call may take."""
        work = int(factor_work(self.design.n_samples))
        most = min(ENTRIES_PER_CALL // self.design.n_features, WORK_PER_CALL // work)
        return max(1, int(min(strengths, most, self.at_once)))

    def solved(self, problems: Sequence[Problem]) -> list[Solution]:
        """Solutions for falling ridges; fewer if one could not be solved."""
        started, passes = clock(), self.design.counter.passes
        # overflow and NaN are detected by checks, not by warnings
        silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        with quiet_threads(self.design.nbytes), silent:
            models = list(self._models(problems))
            gaps = self._certified(problems[: len(models)], models) if models else []
        met = [gap.relative_gap <= self.tol for gap in gaps]
        count = met.index(False) if False in met else len(met)
        self.at_once = 2.0 * self.at_once if count == len(problems) else 1.0
        seconds = (clock() - started) / max(len(gaps), 1)
        read = (self.design.counter.passes - passes) / max(len(gaps), 1)
        return [
            solution_of(
                gap,
                steps=model.steps,
                passes=read,
                seconds=seconds,
                solver=self.way.name,
                because=PRODUCTS_BECAUSE,
            )
            for gap, model in zip(gaps[:count], models[:count], strict=True)
        ]

    def _models(self, problems: Sequence[Problem]) -> Iterator[_StrengthFit]:
        """Yield the models of the strengths up to one that could not be solved."""
        for problem in problems:
            if self.state is None:
                state = self.way.init(problem, problem.origin(), Stop(self.tol))
            else:
                state = self.way.onward(problem, self.state)
            while not (state.claims or state.finished or state.n_iter >= self.way.max_iter):
                state = self.way.step(problem, state)
            if not state.claims:
                return
            self.state = state
            inner, dual = self.way.weights_of(problem, state), self.way.dual(problem, state)
            yield _StrengthFit(inner, dual, state.n_iter)

    def _certified(self, problems: Sequence[Problem], models: Sequence[_StrengthFit]) -> list[Gap]:
        """The duality gaps of the models, computed on the data rather than the inner products."""
        inner = np.column_stack([model.inner for model in models])
        coef = np.asfortranarray(self.design.adjoint(inner))
        points = [Point(column, np.zeros(1)) for column in np.hsplit(coef, len(models))]
        return certify_together(problems, points, [model.dual for model in models], self.tol)

    def go_on_from(self, problem: Problem, point: Point) -> None:
        """Continue from a solution that was found elsewhere."""
        self.state = self.way.init(problem, point, Stop(self.tol))


def _way_for(problem: Problem) -> Any:
    """The method for this loss, if it forms inner products of so many samples."""
    way = next((way for way in WAYS if way.objection(problem) is None), None)
    return None if isinstance(way, RidgeNewton) and not way.is_in_samples(problem) else way
