"""Paths of models with a ridge for data with more features than samples.

Such a model depends on the inner products K of the samples only: with signed dual points v,
``w = X'v / l2``, and the scores are ``K v / l2 + b``. K is formed once; a strength then costs
systems of the size of K, and the coefficients of all strengths one product with the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.clock import clock
from proxmargin.functions.traits import Trait
from proxmargin.models.paths.found import solution_of
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import certify_together
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.threads import factor_work, quiet_threads
from proxmargin.solvers.interior.active_set import ActiveSet
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.stopping import Stop
from proxmargin.solvers.ridge.ridge_newton import RidgeNewton

Array = NDArray[np.float64]

BECAUSE = (
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
    """A path in progress, from the strongest ridge.

    Parameters
    ----------
    problem : Problem
        At any of the strengths; see `InnerProducts.takes`.
    tol : float
        Relative duality gap of every strength.
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
        self.state: Any = None  # solver state at the last strength
        self.at_once = np.inf  # strengths per call: few after one that missed its tolerance

    def chunk(self, strengths: int) -> int:
        """How many strengths a call may take."""
        work = int(factor_work(self.design.n_samples))
        most = min(ENTRIES_PER_CALL // self.design.n_features, WORK_PER_CALL // work)
        return max(1, int(min(strengths, most, self.at_once)))

    def solved(self, problems: Sequence[Problem], *, afresh: bool = False) -> list[Solution]:
        """Solutions for falling ridges; fewer if one could not be solved.

        With ``afresh`` no strength starts from the previous one, as for other labels.
        """
        started, passes = clock(), self.design.counter.passes
        # overflow and NaN are detected by checks, not by warnings
        silent = np.errstate(over="ignore", invalid="ignore", divide="ignore")
        with quiet_threads(self.design.nbytes), silent:
            models = list(self._models(problems, afresh))
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
                because=BECAUSE,
            )
            for gap, model in zip(gaps[:count], models[:count], strict=True)
        ]

    def _models(self, problems: Sequence[Problem], afresh: bool) -> Iterator[_StrengthFit]:
        """Yield the models of the strengths up to one that could not be solved."""
        for problem in problems:
            if afresh or self.state is None:
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
