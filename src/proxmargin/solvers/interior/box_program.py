"""The quadratic program of losses with a box on their dual and a ridge, and its linear systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import TINY
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.views import StandardizedDesign
from proxmargin.functions.losses.base import Box
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.threads import factor_work, gram_work
from proxmargin.runtime.types import Array
from proxmargin.solvers.shared.numerical import cholesky

LARGEST = 6_000  # side of a factored matrix: 288 MB
# samples per feature up to which systems are formed over the samples
WIDE = 1.9  # a system over them takes less work
UNEVEN_WIDE = 0.5  # columns of uneven sizes: in X X' the rounding of large ones swamps small ones
UNEVEN = 1e-6  # ratio of the smallest column to the largest, below which they are uneven
# of systems over the features
REFINEMENTS = 3  # at most
ACCURATE = 1e-8  # residual over its largest term that needs no refinement


class BoxProgram(NamedTuple):
    """The program in units in which the largest upper bound and the typical margin are one. ``l2/2
    |w|^2 + <pull, f> + <ridge, f^2>/2 + sum_i box_i(y_i (w'x_i + borders_i'f))``"""

    # (n_samples,); labels, upper bounds of the dual coordinates, curvatures of their terms and
    # target margins, of the samples with positive weight
    signs: Array
    upper: Array
    curvature: Array
    target: Array
    borders: Array  # (n_samples, n_free); columns of the free parameters f: intercept and threshold
    # (n_free,)
    pull: Array
    ridge: Array
    l2: float
    # units: dual coordinate, and coefficient or intercept, of the problem for one of the program
    dual_unit: float
    coef_unit: float
    design: Design  # the data of these samples, centred if the intercept is free
    is_wide: bool  # whether linear systems are formed over the samples

    def scores(self, coef: Array) -> Array:
        """``X coef``, (n_samples,)."""
        return self.design.scores(coef[:, None])[:, 0]

    def adjoint(self, dual: Array) -> Array:
        """``X' dual``, (n_features,)."""
        return self.design.adjoint(dual[:, None])[:, 0]

    def point(self, problem: Problem, coef: Array, free: Array) -> Point:
        """The point of the centred problem for coefficients and free parameters of the program."""
        intercept = self.coef_unit * free[:1] if problem.fits_intercept else np.zeros(1)
        return Point(self.coef_unit * coef[:, None], intercept)

    def dual_point(self, problem: Problem, dual: Array) -> Array:
        """The dual point of the problem, (n_samples, 1), for dual coordinates ``a``."""
        found = np.zeros((problem.design.n_samples, 1))
        found[live_samples(problem), 0] = -self.dual_unit * self.signs * dual
        return found

    def system(self, theta: Array, stiffness: Array | None = None) -> Solve | None:
        """The linear system for theta, with one ridge a feature if not ``l2``; None if Cholesky
        failed."""
        factored = _over_samples if self.is_wide else _over_features
        if stiffness is None:
            return factored(self, theta)
        root = np.sqrt(stiffness)
        scaled = StandardizedDesign(self.design, np.zeros_like(root), root)
        solve = factored(self._replace(design=scaled, l2=1.0), theta)
        if solve is None:
            return None

        def unscaled(
            r: Array | float, rp: Array, rf: Array | float
        ) -> tuple[Array, Array, Array, Array]:
            coef, free, scores, signed = solve(r, rp / root, rf)
            return coef / root, free, scores, signed

        return unscaled


Solve = Callable[[Array | float, Array, Array | float], tuple[Array, Array, Array, Array]]
"""Maps ``(r, rp, rf)`` to the changes of coef, free, scores and signed dual.

With signed duals ``v = y a`` and F the borders, a step solves, for given theta,

    v / theta + X w + F f = r,    l2 w - X'v = -rp,    ridge f - F'v = -rf.

Where theta is zero, v is zero and the first equation is dropped.
"""


def _over_features(program: BoxProgram, theta: Array) -> Solve | None:
    """Solve by Cholesky of ``X' diag(theta) X + l2 I``, bordered by the free parameters. It takes
    steps of iterative refinement: very different theta make the system ill-conditioned."""
    design, borders = program.design, program.borders
    p = design.n_features
    matrix = np.empty((p + program.ridge.size,) * 2)
    matrix[:p, :p] = design.gram(theta, np.zeros(p))
    weighted = theta[:, None] * borders
    if borders.shape[1]:
        matrix[p:, :p] = design.adjoint(weighted).T
        matrix[:p, p:] = matrix[p:, :p].T
        matrix[p:, p:] = borders.T @ weighted
    matrix.flat[:: len(matrix) + 1] += np.append(np.full(p, program.l2), program.ridge)
    factor = cholesky(matrix, overwrite=True)
    if factor is None:
        return None

    def solve(r: Array | float, rp: Array, rf: Array | float) -> tuple[Array, Array, Array, Array]:
        dual = theta * r
        right = np.append(program.adjoint(dual) - rp, borders.T @ dual - rf)
        both = factor.solve(right)
        coef, free = both[:p], both[p:]
        scores = program.scores(coef) + borders @ free
        return coef, free, scores, theta * (r - scores)

    def refined(
        r: Array | float, rp: Array, rf: Array | float
    ) -> tuple[Array, Array, Array, Array]:
        step = solve(r, rp, rf)
        for _ in range(REFINEMENTS):
            coef, free, _, dual = step
            pulled = program.adjoint(dual)
            left = rp + program.l2 * coef - pulled
            if np.all(np.abs(left) <= ACCURATE * (np.abs(rp) + np.abs(pulled))):
                break
            more = solve(0.0, left, rf + program.ridge * free - borders.T @ dual)
            step = step[0] + more[0], step[1] + more[1], step[2] + more[2], step[3] + more[3]
        return step

    return refined


def _over_samples(program: BoxProgram, theta: Array) -> Solve | None:
    """Solve by Cholesky of ``X X' / l2 + diag(1 / theta)``; free parameters by a Schur complement.
    X X' serves for the step only. Residuals are computed with X, because with columns of very
    different scales the rounding of X X' can swamp the small ones."""
    live, l2 = np.flatnonzero(theta), program.l2
    outer, borders, stiff = program.design.outer_gram(), program.borders[live], 1.0 / theta[live]

    matrix = (outer if live.size == theta.size else outer[np.ix_(live, live)]) * (1.0 / l2)
    matrix.flat[:: len(matrix) + 1] += stiff
    factor = cholesky(matrix, overwrite=True)
    if factor is None:
        return None
    across = factor.solve(borders)
    corner = borders.T @ across + np.diag(program.ridge)

    def solve(r: Array | float, rp: Array, rf: Array | float) -> tuple[Array, Array, Array, Array]:
        alone = factor.solve((r + program.scores(rp / l2))[live])
        free = np.asarray(np.linalg.lstsq(corner, borders.T @ alone - rf, rcond=None)[0])
        dual = np.zeros_like(theta)
        dual[live] = alone - across @ free
        coef = (program.adjoint(dual) - rp) / l2
        return coef, free, program.scores(coef) + program.borders @ free, dual

    return solve


def size_objection(problem: Problem) -> str | None:
    """The objection to a matrix that would be too large, or None."""
    size = min(problem.design.n_samples, problem.design.n_features)
    if size <= LARGEST:
        return None
    return (
        f"it factorises a matrix over samples or features, of which there may be {LARGEST} at "
        f"most, and the smaller number here is {size}"
    )


def has_ridge(problem: Problem) -> bool:
    return problem.has_ridge_alone and problem.has_plain_intercept


def box_objection(problem: Problem) -> str | None:
    """The objection to a problem that is no program of this kind, or None."""
    if not has_ridge(problem):
        return "it needs a ridge penalty (without l1) and an intercept with a ridge or none"
    if problem.loss.box is None:
        return "it needs a hinge loss (plain, huberized or squared), binary, or a tail mean"
    return None


def box_of(problem: Problem) -> Box:
    box = problem.loss.box
    if box is None:
        raise TypeError(f"the dual points of {problem.loss!r} lie in no box")
    return box


def system_work(problem: Problem) -> float:
    """Multiply-adds of one linear system: its matrix and its Cholesky factor."""
    design = problem.design
    short, long = sorted((design.n_samples, design.n_features))
    return gram_work(long, short, design.density) + factor_work(short)


def live_samples(problem: Problem) -> NDArray[np.intp]:
    """Indices of the samples with a positive weight."""
    return np.flatnonzero(problem.loss.shares > 0)


@kept
def program_of(problem: Problem) -> BoxProgram:
    box, live, data = box_of(problem), live_samples(problem), problem.centred.design
    data = data if live.size == data.n_samples else data.rows(live)
    signs, upper = box.signs[live], box.upper[live]
    finite = np.isfinite(upper[0])
    unit = float(upper.max()) if finite else float(1.0 / box.curvature[live].max())
    borders, pull, ridge = _borders(problem, box, signs)
    length = 1.0
    if box.pull:  # a homogeneous loss: coefficients scale as the data over l2
        length = max(problem.design.spread(problem.loss.shares) ** 2, TINY) / problem.penalty.l2
    n, p = data.n_samples, data.n_features
    sizes = data.column_bounds()
    uneven = sizes.min(initial=np.inf, where=sizes > 0.0) < UNEVEN * sizes.max(initial=0.0)
    most = (UNEVEN_WIDE if uneven else WIDE) * (p + pull.size)
    wide = n <= LARGEST and (n <= most or p > LARGEST)
    return BoxProgram(
        signs=signs,
        upper=upper / unit,
        curvature=box.curvature[live] * unit / length,
        target=box.target[live],
        borders=borders,
        pull=pull / unit,
        ridge=ridge * length / unit,
        l2=problem.penalty.l2 * length / unit,
        dual_unit=unit,
        coef_unit=length,
        design=data,
        is_wide=wide,
    )


def _borders(problem: Problem, box: Box, signs: Array) -> tuple[Array, Array, Array]:
    """Columns of intercept and threshold, with their linear and quadratic coefficients."""
    columns, pull, ridge = [], [], []
    if problem.fits_intercept:
        columns.append(np.ones_like(signs))
        pull.append(0.0)
        ridge.append(problem.intercept.l2)
    if box.pull:
        columns.append(-signs)
        pull.append(box.pull)
        ridge.append(0.0)
    borders = np.column_stack(columns) if columns else np.empty((signs.size, 0))
    return borders, np.array(pull), np.array(ridge)
