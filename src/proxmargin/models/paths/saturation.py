"""The early end of a path: the loss is explained, or no longer falls."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.inputs.parameters import check_number
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.paths.found import Found
from proxmargin.models.paths.grid import at_strength, problems_of
from proxmargin.optimality.problem import Problem
from proxmargin.optimality.unpenalised import null_point

Array = NDArray[np.float64]

# As `fdev` and `mnlam` of glmnet, which compares neighbouring strengths. The explained fraction of
# a hinge is constant between breakpoints, and on a dense grid it rises little from one strength to
# the next: here the strengths that are compared are at least a fixed factor apart.
LEAST_RISE = 1e-5  # relative rise of the explained fraction between the strengths compared
WEAKER = 1.25  # least ratio of these strengths
FEWEST = 5  # strengths before a path may end


class Ending(StrEnum):
    """Why a path has no further strengths."""

    COMPLETE = "complete"
    EXPLAINED = "explained"
    FLAT = "flat"
    INTERRUPTED = "interrupted"


class Saturation:
    """The test for the early end of a path, evaluated at each strength.

    The explained fraction is ``1 - loss / loss of the null model``; for a likelihood, glmnet's
    fraction of the null deviance. The loss is the objective less the penalties, which takes no
    pass over the data.

    Parameters
    ----------
    stop_at : float in (0, 1] or None
        The explained fraction at which a path ends; with None it never does.
    """

    def __init__(
        self, template: MarginEstimator, assembly: Assembly, stop_at: float | None
    ) -> None:
        check_number("stop_at", stop_at, low=0.0, low_open=True, high=1.0, optional=True)
        self.template, self.assembly, self.stop_at = template, assembly, stop_at
        self.count = 0
        self.marked: tuple[float, float] | None = None  # a strength and its explained fraction
        self.null = 0.0 if stop_at is None else sum(map(_null_loss, assembly.problems))

    def ending(self, strengths: Array, found: Sequence[Found]) -> tuple[int, Ending | None]:
        """The number of strengths up to the end of the path, and the reason; all and None if none.

        Must be called for all strengths in order.

        Parameters
        ----------
        found : the solutions of each problem, at these strengths
        """
        if self.stop_at is not None:
            for k, strength in enumerate(strengths.tolist()):
                model = [each.part(k, k + 1) for each in found]
                ending = self._ending(strength, model, self.stop_at)
                if ending is not None:
                    return k + 1, ending
        return strengths.size, None

    def _ending(self, strength: float, model: Sequence[Found], stop_at: float) -> Ending | None:
        """The reason to end the path with this model, or None."""
        explained = 1.0 - self._loss(strength, model) / self.null
        self.count += 1
        if explained >= stop_at:
            return Ending.EXPLAINED
        resolved = sum(one.certify(0).relative_gap * abs(one.primal[0]) for one in model)
        resolved /= self.null
        return Ending.FLAT if self._is_flat(strength, explained, resolved) else None

    def _is_flat(self, strength: float, explained: float, resolved: float) -> bool:
        """Whether the explained fraction ``f`` has stopped rising.

        ``f`` is compared with its value ``f_0`` at a marked strength, once the penalty is
        weaker by the factor `WEAKER`: flat is ``f - f_0 < LEAST_RISE f``. Then the mark moves to
        this strength. A fraction within ``resolved``, the sum of the duality gaps over the null
        loss, may be all error: it is neither compared nor marked.
        """
        if explained <= resolved:
            return False
        if self.marked is None:
            self.marked = strength, explained
            return False
        before, marked = self.marked
        if max(before, strength) < WEAKER * min(before, strength):
            return False
        self.marked = strength, explained
        return self.count >= FEWEST and explained - marked < LEAST_RISE * explained

    def _loss(self, strength: float, model: Sequence[Found]) -> float:
        problems = problems_of(at_strength(self.template, strength), self.assembly)
        return sum(
            float(one.primal[0])
            - problem.penalty.value(one.point(0, problem.design.n_features).coef)
            - problem.intercept.value(one.intercepts)
            for problem, one in zip(problems, model, strict=True)
        )


def _null_loss(problem: Problem) -> float:
    null = null_point(problem)
    return problem.loss.value(problem.design.scores(null.coef) + null.intercept)
