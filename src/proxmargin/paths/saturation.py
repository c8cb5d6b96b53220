"""Where a path ends early: the loss is explained, or no longer falls."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from proxmargin.estimators.base import Assembly, MarginEstimator
from proxmargin.inputs.validation import check_number
from proxmargin.paths.found import Found
from proxmargin.paths.strength import strength_of
from proxmargin.problem import Problem

__all__ = ["Saturation"]

# as glmnet's fdev and mnlam
LEAST_RISE = 1e-5  # relative rise of the explained fraction from one strength to the next
FEWEST = 5  # strengths


class Saturation:
    """Whether weaker penalties would change little, asked at each strength of a path.

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
        self.template, self.assembly, self.stop_at = copy(template), assembly, stop_at
        self.explained, self.count = 0.0, 0
        self.null = 0.0 if stop_at is None else sum(map(_null_loss, assembly.problems))

    def reached(self, strength: float, model: Sequence[Found]) -> bool:
        """Whether the path ends with this model."""
        if self.stop_at is None:
            return False
        before, self.explained = self.explained, 1.0 - self._loss(strength, model) / self.null
        self.count += 1
        rise = self.explained - before
        flat = self.count >= FEWEST and rise < LEAST_RISE * self.explained
        return flat or self.explained >= self.stop_at

    def _loss(self, strength: float, model: Sequence[Found]) -> float:
        setattr(self.template, strength_of(self.template).name, strength)
        design = self.assembly.problems[0].design
        penalty = self.template._penalty(self.assembly.targets, design)
        return sum(
            one.primal
            - problem.penalty.value(one.point(design.n_features).coef)
            - problem.intercept.value(one.intercept[None, :])
            for problem, one in zip(
                self.assembly.with_penalty(penalty).problems, model, strict=True
            )
        )


def _null_loss(problem: Problem) -> float:
    null = problem.null_point()
    return problem.loss.value(problem.design.scores(null.coef) + null.intercept)
