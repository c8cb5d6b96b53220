"""The least strength of a norm for which zero coefficients are optimal: where paths start."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.compiled.rounding import DOMAIN_ROUNDING, SLOPE_ROUNDING, TINY
from proxmargin.data.designs.base import Design
from proxmargin.functions.penalties import (
    ElasticNet,
    GroupL2,
    GroupLinf,
    Penalty,
    SumToZero,
    SumToZeroGroups,
    WeightedElasticNet,
)
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point, smooth_critical_strength
from proxmargin.runtime.types import Array
from proxmargin.solvers.choice.names import choose, solve
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.programs.gauge_columns import Atoms, gauge_columns
from proxmargin.solvers.programs.linear_program import HingeProgram, hinge_program
from proxmargin.solvers.programs.restricted_program import (
    PROGRAM_TOLERANCE,
    RestrictedProgram,
    Vertex,
    solved,
)

Ids = NDArray[np.intp]
# over its upper bound: a smaller strength is zero; a smaller product of a feature and a dual point,
# over their norms, too
LEAST_STRENGTH = 1e-12
# linear program with row and column generation
# first bound of intercepts, in units of the scores of directions, and its factor while it is active
INTERCEPT_REACH = 1e3
MAX_ROUNDS = 1000  # then the best value so far is returned
# tied pieces up to which the program is solved; with more, Dinkelbach's iteration is faster
MAX_DENSE_PIECES = 2000
MAX_SPARSE_PIECES = 20_000
MAX_ROUND_PIECES = 500  # for the l2 norms of groups
# Dinkelbach's iteration
# first strength over its upper bound, and the factor as long as fits are loose: zero is certified
# in less time than a fit far below the critical strength takes
FIRST_DECREASE = 0.75
RATIO_CHANGE = 1e-6  # relative change of the ratio at convergence
FIRST_GAP = 1e-2  # relative gap of the first fits: any point has a ratio, a lower bound
COARSE_STRENGTH = 0.1  # over its upper bound, above which a loose fit tells zero from others
GAP_DECREASE = 1e-3  # factor on that gap where it lets no larger ratio be found
RATIO_GAP = 1e-8  # relative gap of the last fit


def critical_strength(problem: Problem) -> float:
    """The least strength of a norm (or of the l1 part) for which zero coefficients are optimal.

    That is the least dual norm among the gradients of the loss at the null model. A smooth loss
    has one gradient there. Hinges have a subdifferential where wrong classes are tied, and at the
    null model most are: the least norm is the optimal value of a linear program, whose dual, solved
    here, finds the direction (W, b) of steepest descent,

        min  sum_c costs_c xi_c   s.t.   xi_c(r) >= -gains_r'(XW + 1b')_i(r),  norm(W) <= 1,

    over the pieces r that are tied with their hinge (and xi_c >= 0 where that is zero). For l2
    norms of groups it is exact to `PROGRAM_TOLERANCE`. With many tied pieces the simplex method is
    slow, and the strength is found as the largest ratio of the decrease of the loss to the norm.
    """
    problem = replace(problem, penalty=_unit_norm(problem.penalty.near_zero()))
    program = hinge_program(problem)
    if program is None or program.level is not None or not problem.has_unpenalised_intercept:
        return smooth_critical_strength(problem)
    gauge = gauge_columns(problem.penalty)
    assert gauge is not None
    units = gauge.in_units(problem.design.column_bounds())
    descent = _TiedPieces.of(replace(program, gauge=units))
    most = MAX_DENSE_PIECES if problem.design.density == 1.0 else MAX_SPARSE_PIECES
    most = most if gauge.is_polyhedral else min(most, MAX_ROUND_PIECES)
    if np.count_nonzero(descent.tied) > most:
        return _by_ratios(problem)
    return units.unit * _least_dual_norm(descent)


@dataclass(frozen=True, eq=False)
class _TiedPieces:
    """The pieces of the hinges that are tied at the null model."""

    program: HingeProgram
    tied: NDArray[np.bool_]  # (n_samples, n_outputs)
    # (n_hinges,); lower bounds of the xi: 0 for a hinge that is zero, tied or not; -inf for a
    # positive one
    floors: Array

    @classmethod
    def of(cls, program: HingeProgram) -> _TiedPieces:
        rows, problem = program.rows, program.problem
        null = null_point(problem).intercept
        shortfalls = rows.shortfalls(np.tile(null, (len(rows.goals), 1)))
        hinges = rows.hinges(np.arange(shortfalls.size)).reshape(shortfalls.shape)
        sizes = np.zeros(rows.costs.size)
        np.maximum.at(sizes, hinges, shortfalls)
        floors = np.where(sizes > PROGRAM_TOLERANCE, -np.inf, 0.0)
        return cls(program, shortfalls >= sizes[hinges] - PROGRAM_TOLERANCE, floors)

    def slopes(self, scores: Array) -> Array:
        """How fast each tied piece rises; -inf for the others."""
        rows = self.program.rows
        rises = rows.shortfalls(scores) - rows.goals
        return np.where(self.tied, rises, -np.inf)

    def restricted(self, rows: Ids, columns: Atoms, reach: float) -> RestrictedProgram:
        """The program of some tied pieces and some columns, with the norm as the first row.
        Intercepts are bounded by ``reach``: the pieces in the program may not bound them."""
        program = self.program
        base = program.restricted(rows, columns)
        hinges = slice(program.free, program.ahead)
        lower, upper, cost = base.lower.copy(), base.upper.copy(), np.zeros(base.cost.size)
        lower[: program.free], upper[: program.free] = -reach, reach
        lower[hinges], cost[hinges] = self.floors, program.rows.costs
        norm = np.concatenate([np.zeros(program.ahead), -columns.costs])
        goals = np.zeros(program.above + rows.size)
        return RestrictedProgram(
            cost=cost,
            lower=lower,
            upper=upper,
            matrix=sparse.vstack([sparse.csr_array(norm[None, :]), base.matrix], format="csc"),
            row_lower=np.concatenate([[-1.0], goals]),
            row_upper=np.concatenate([[np.inf], base.row_upper]),
        )

    def scores(self, columns: Atoms, vertex: Vertex) -> Array:
        """Scores of the direction, (n_samples, n_outputs)."""
        direction = self.program.point(columns, vertex)
        scores: Array = self.program.problem.design.scores(direction.coef) + direction.intercept
        return scores

    def dual(self, rows: Ids, vertex: Vertex) -> Array:
        """A subgradient of the loss at the null model that meets the intercepts' constraint."""
        duals = np.maximum(vertex.duals[1 + self.program.above :], 0.0)
        return self.program.rows.dual(rows, duals)


def _least_dual_norm(descent: _TiedPieces) -> float:
    """An upper bound of the least dual norm, by row and column generation; in gauge units."""
    program = descent.program
    gauge, rows, design = program.gauge, program.rows, program.problem.design
    # at least one piece of each positive hinge, or the program would be unbounded
    none, flat = np.zeros(0, dtype=np.intp), np.zeros(descent.tied.shape)
    known = rows.violated(descent.slopes(flat), none, -np.inf, -np.inf)
    columns = gauge.starting(np.zeros((design.n_features, program.outputs)))
    basis, norm, reach = None, np.inf, INTERCEPT_REACH
    for _ in range(MAX_ROUNDS):
        vertex = solved(descent.restricted(known, columns, reach), basis)
        dual = descent.dual(known, vertex)
        pulled = _soft_thresholded_adjoint(SLOPE_ROUNDING * design.n_samples, design, dual)
        largest = float(gauge.norms(pulled).max(initial=0.0))
        # the rounded product with a feature of large entries may have misled HiGHS
        multiplier = float(vertex.duals[0]) * (1.0 + PROGRAM_TOLERANCE)
        sound = vertex.optimal or largest <= multiplier
        holds = sound and _balance_violation(program, dual) <= PROGRAM_TOLERANCE
        norm = min(norm, largest) if holds else norm
        if holds and not gauge.norms(_soft_thresholded_adjoint(LEAST_STRENGTH, design, dual)).any():
            return 0.0
        slopes = descent.slopes(descent.scores(columns, vertex))
        new_rows = rows.violated(slopes, known, DOMAIN_ROUNDING, descent.floors)
        # once no active piece is missing, the multiplier of the norm is a lower bound
        unit = max(multiplier, LEAST_STRENGTH * largest, TINY)
        new = gauge.entering(pulled / unit, columns, 2 * design.n_samples)
        if not (new_rows.size or new.parts.size):
            if holds:
                break
            reach *= INTERCEPT_REACH
        basis = vertex.basis.extended(new.parts.size, new_rows.size)
        known, columns = np.concatenate([known, new_rows]), columns.joined(new)
    return norm


def _soft_thresholded_adjoint(least: float, design: Design, dual: Array) -> Array:
    """``-X'q``, each entry soft-thresholded at ``least |x_j| |q|_1``, its level of rounding."""
    pulled = -design.adjoint(dual)
    floor = least * np.abs(dual).sum(axis=0) * design.column_bounds()[:, None]
    beyond: Array = np.sign(pulled) * np.maximum(np.abs(pulled) - floor, 0.0)
    return beyond


def _by_ratios(problem: Problem) -> float:
    """The largest of ``(L(0) - L(W)) / norm(W)``, by Dinkelbach's iteration. The solution at a
    strength equal to the last ratio gives the next, larger ratio, until zero is optimal. The loss
    is piecewise linear, so that this takes few steps. Each point has a ratio, of which the strength
    is the largest: fits are as accurate as it takes to find a larger one."""
    at_null = _loss_of(problem, null_point(problem))
    norm = problem.penalty
    bound = smooth_critical_strength(problem)
    if _is_flat(problem):
        return 0.0
    strength, largest, point, gap = FIRST_DECREASE * bound, 0.0, None, FIRST_GAP
    for _ in range(MAX_ROUNDS):
        if strength <= LEAST_STRENGTH * bound:
            return 0.0
        one = replace(problem, penalty=norm.times(strength))
        point = solve(one, choose(one), stop=Stop(tol=gap), start=point).point
        size = norm.value(point.coef)
        ratio = (at_null - _loss_of(problem, point)) / size if size > 0.0 else 0.0
        if ratio > largest * (1.0 + max(RATIO_CHANGE, gap)):
            # a loose fit may be no better than zero: its ratio is below the strength
            strength, largest = max(ratio, FIRST_DECREASE * strength), ratio
            continue
        if gap <= RATIO_GAP and 0.0 < strength <= largest:
            return max(largest, ratio)
        if largest == 0.0:
            loose = strength > COARSE_STRENGTH * bound  # zero is optimal here: a smaller one
            strength *= FIRST_DECREASE if loose else 0.5
            if loose:
                continue
        else:
            strength = largest = max(largest, ratio)
        gap = max(GAP_DECREASE * gap, RATIO_GAP)
    return largest


def _is_flat(problem: Problem) -> bool:
    """Whether the pulled-back subgradient of the loss at the null model is zero up to rounding."""
    null = null_point(problem)
    scores = problem.design.scores(null.coef) + null.intercept
    _, dual = problem.loss.value_and_gradient(scores)
    pulled = _soft_thresholded_adjoint(LEAST_STRENGTH, problem.design, dual)
    return problem.penalty.critical_strength(pulled) == 0.0


def _loss_of(problem: Problem, point: Point) -> float:
    return problem.loss.value(problem.design.scores(point.coef) + point.intercept)


def _unit_norm(penalty: Penalty) -> Penalty:
    """The norm at strength one, without its ridge part, whose gradient at zero vanishes."""
    if isinstance(penalty, SumToZero):
        return SumToZero(_unit_norm(penalty.inner))
    if isinstance(penalty, SumToZeroGroups):
        return replace(penalty, inner=replace(penalty.inner, strength=1.0))
    if isinstance(penalty, ElasticNet):
        return ElasticNet(1.0)
    if isinstance(penalty, WeightedElasticNet):
        return replace(penalty, inner=ElasticNet(1.0))
    assert isinstance(penalty, GroupL2 | GroupLinf)
    return replace(penalty, strength=1.0)


def _balance_violation(program: HingeProgram, dual: Array) -> float:
    """By how much the column sums of a dual point violate the free intercept's constraint."""
    if not program.free:
        return 0.0
    sums = dual.sum(axis=0)
    return float(np.abs(sums - program.sums * sums.mean()).max())
