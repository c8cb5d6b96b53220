"""The least loss that any coefficients attain: budgets for the loss cannot be below it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from proxmargin.losses.base import Array
from proxmargin.losses.level_set import LevelSet
from proxmargin.problem import Problem
from proxmargin.solvers.gauge_columns import Columns, GaugeColumns
from proxmargin.solvers.hinge_program import HingeProgram
from proxmargin.solvers.hinge_rows import hinge_rows
from proxmargin.solvers.linear_program import first_rows
from proxmargin.solvers.restricted_program import Basis, Vertex, solved
from proxmargin.solvers.row_span import in_short_coordinates

__all__ = ["least_loss", "require_attainable"]

Ids = NDArray[np.intp]
# by how much a hinge may be above what the rows in the program make of it
SLACK = 1e-11
# share of the largest square of a singular value below which one is zero
SINGULAR = 1e-10
# relative to the least loss, what of a budget below it is rounding
ROUNDING = 1e-9
# samples up to which their linear independence is looked at
MANY_SAMPLES = 5000


@dataclass(frozen=True)
class _Free(GaugeColumns):
    """No norm at all: both signs of a basis of the coefficients at no cost.

    The basis is that of single entries, or of differences from the last one of a row where rows
    sum to zero.
    """

    strength: float
    outputs: int
    sums_to_zero: bool

    def norms(self, pulled: Array) -> Array:
        return np.zeros(2 * len(pulled) * (self.outputs - self.sums_to_zero))

    def vertices(self, parts: Ids, pulled: Array) -> Columns:
        kept = self.outputs - self.sums_to_zero
        features, outputs = np.divmod(parts // 2, kept)
        entries, owners = features * self.outputs + outputs, np.arange(parts.size)
        signs = np.where(parts % 2 > 0, -1.0, 1.0)
        if self.sums_to_zero:
            last = (features + 1) * self.outputs - 1
            entries, owners = np.concatenate([entries, last]), np.tile(owners, 2)
            signs = np.concatenate([signs, -signs])
        return Columns(parts, np.zeros(parts.size), signs, entries, owners)


def least_loss(problem: Problem) -> float:
    """The infimum of a hinge loss over all coefficients and intercepts.

    Zero at once where samples are linearly independent, together with the intercept: then there
    are coefficients for any scores. Otherwise a linear program over coordinates of the span of
    the samples, with the pieces of the hinges that matter.

    Raises
    ------
    TypeError
        The loss is not made of hinges.
    """
    loss = problem.loss.loss if isinstance(problem.loss, LevelSet) else problem.loss
    rows = hinge_rows(loss)
    if rows is None:
        raise TypeError(f"no linear program is known for the least value of {loss!r}")
    if _are_independent(problem):
        return 0.0
    short = replace(problem, loss=loss, design=in_short_coordinates(problem.design).design)
    free = _Free(1.0, loss.n_outputs, problem.penalty.sums_to_zero)
    return _least(HingeProgram(short, rows, free))


def require_attainable(problem: Problem, unit: float = 1.0, name: str = "eta") -> None:
    """Raise a sentence with the least loss where the budget of ``problem`` is below it.

    Parameters
    ----------
    problem : Problem
        With a `LevelSet`.
    unit : float
        What the caller's losses are in the units of the problem, which are means: the sum of the
        sample weights for a sum.
    name : str
        What the caller calls the budget.
    """
    assert isinstance(problem.loss, LevelSet)
    budget, least = problem.loss.budget, least_loss(problem)
    if budget < least * (1.0 - ROUNDING):
        raise ValueError(
            f"{name} must be at least {unit * least:.10g}, the least loss that any coefficients "
            f"attain on these data, got {unit * budget:.10g}"
        )


def _are_independent(problem: Problem) -> bool:
    """Whether the samples, each with a one for the intercept, are linearly independent."""
    design, ones = problem.design, float(problem.fits_intercept)
    if not design.n_samples <= min(design.n_features + ones, MANY_SAMPLES):
        return False
    squares = np.linalg.eigvalsh(design.outer_gram() + ones)
    return bool(squares[0] > SINGULAR * squares[-1])


def _least(program: HingeProgram) -> float:
    shape = program.problem.design.n_features, program.outputs
    every = np.arange(program.gauge.norms(np.zeros(shape)).size)
    columns = program.gauge.vertices(every, np.zeros(shape))
    known = first_rows(program.rows, np.zeros((program.rows.n_samples, program.outputs)))
    basis: Basis | None = None
    while True:
        vertex: Vertex = solved(program.restricted(known, columns), basis)
        point = program.point(columns, vertex)
        scores = program.problem.design.scores(point.coef) + point.intercept
        new = program.rows.violated(program.rows.shortfalls(scores), known, SLACK)
        if not new.size:
            return float(program.rows.costs @ vertex.columns[program.free : program.ahead])
        known, basis = np.concatenate([known, new]), vertex.basis.extended(0, new.size)
