"""The outer loop of the proximal method of multipliers: sharpness, working set, convergence.

A step builds a smooth problem around the multipliers and coefficients of the last one, and solves
it by Newton steps (`proxmargin.solvers.smoothed_newton`). This module has what the binary and the
multiclass hinge share: growth of the sharpness, growth of the working set, and the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.loop.solver import GAP_REDUCTION, State
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.solvers.smoothed_newton import End

__all__ = ["MultiplierState", "worst_of"]

NEWTON_STEPS = 60  # limit for one smoothed problem
SHARPNESS_RETREAT = 4.0  # divisor after a line search that failed because of rounding
MIN_PROXIMAL = 1e-6  # proximal curvature of the coefficients, relative to the penalty
MIN_RESIDUAL = 1e-13  # some 500 ulp
OUTSIDE_VIOLATION = 0.1  # over l1, above which the same problem is solved on more features


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiplierState(State):
    """The state of a proximal method of multipliers, without its points.

    Attributes
    ----------
    members : integers
        Features of the working set, sorted.
    sharpness : float
        Penalty parameter of the augmented Lagrangian, the inverse width of the smoothing.
    sharpest : float
        Its upper bound, lowered if rounding ended a line search.
    proximal : float
        Curvature of the proximal term of the coefficients, relative to the penalty; one at first.
    residual : float
        Relative residual to which the next smoothed problem is solved.
    solved : bool
        Whether the last smoothed problem was solved to its residual.
    best : float
        Smallest relative gap so far.
    idle : int
        Steps at the largest sharpness since then.
    """

    members: NDArray[np.intp]
    sharpness: float
    sharpest: float
    proximal: float = 1.0
    residual: float
    solved: bool = False
    best: float = np.inf
    idle: int = 0
    stop: Stop = field(default_factory=Stop)

    @property
    def newton_steps(self) -> int:
        """The limit of Newton steps for the next smoothed problem."""
        if self.stop.max_iter is None:
            return NEWTON_STEPS
        return min(NEWTON_STEPS, self.stop.max_iter - self.n_iter)

    def outside(self, violations: Array) -> Array:
        """Violations of the optimality conditions by features that are not in the working set."""
        others = violations.copy()
        others[self.members] = 0.0
        return others

    def is_complete(self, outside: Array, level: float) -> bool:
        """Whether the smoothed problem is solved for all features, so that the next one is due."""
        return self.solved and float(outside.max(initial=0.0)) <= OUTSIDE_VIOLATION * level

    def sharpened(self, growth: float, reduction: float) -> Self:
        """The state for the next smoothed problem: sharper, with a smaller residual."""
        return self.but(
            sharpness=min(growth * self.sharpness, self.sharpest),
            proximal=max(self.proximal / growth, MIN_PROXIMAL),
            residual=max(reduction * self.residual, MIN_RESIDUAL),
        )

    def after(self, end: End, least: float) -> Self:
        """The state after Newton's method; less sharp if rounding ended it."""
        failed = end.stuck and not end.solved
        sharpness = self.sharpness / SHARPNESS_RETREAT if failed else self.sharpness
        return self.but(
            n_iter=self.n_iter + max(end.steps, 1),
            objective_change=np.inf,
            sharpness=sharpness,
            sharpest=sharpness if failed else self.sharpest,
            solved=end.solved,
            finished=failed and sharpness < least,
        )

    def judged(self, relative_gap: float, max_stalled: int) -> Self:
        """The state with its gap; finished after ``max_stalled`` steps without progress."""
        better = relative_gap < GAP_REDUCTION * self.best
        idle = 0 if better or self.sharpness < self.sharpest else self.idle + 1
        return self.but(
            best=min(self.best, relative_gap),
            idle=idle,
            finished=self.finished or idle >= max_stalled,
        )


def worst_of(outside: Array, size: int) -> NDArray[np.intp]:
    """At most ``size`` features that violate the optimality conditions most."""
    size = min(size, outside.size)
    worst = np.argpartition(outside, outside.size - size)[outside.size - size :]
    return worst[outside[worst] > 0]
