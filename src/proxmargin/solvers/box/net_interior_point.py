"""An interior point method for kinked losses and an elastic net, invariant to feature units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificates.gap import Gap
from proxmargin.loop.solver import Solver, State, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.solvers.boundary import BOUNDARY_FRACTION, COMPLEMENTARITY_FLOOR
from proxmargin.solvers.box.box_program import program_of
from proxmargin.solvers.box.pairs import complementarity, idle_after, longest, products
from proxmargin.solvers.linear_algebra import inverse_of
from proxmargin.traits import Trait

__all__ = ["NetInteriorPoint", "NetInteriorPointState"]

FIRST_SLACK = 1.0  # first slack of the boxes, in units of the goal of the margins
LEAST_SHARE = 1e-16  # of the caps in the first duals: smaller ones are rounding
WIDE = 2  # variables per sample, from which systems are formed over the samples
MIN_STEP = 1e-10  # step length below which the method ends
# convergence
FEASIBLE = 1e-8  # residuals over the first ones, up to which they are rounding
ROUNDING_PRODUCTS = 0.1  # complementarity over the gap, below which the gap is rounding


@dataclass(frozen=True, eq=False, kw_only=True)
class NetInteriorPointState(State):
    """The state of `NetInteriorPoint`, with a box for each sample, l1 term and finite bound.

    Attributes
    ----------
    at : (n_features + n_free,)
        Coefficients in units of their features, then the unpenalised parameters.
    dual, room : (n_boxes,)
        ``a`` and ``u - a``, both positive.
    below, above : (n_boxes,)
        Slacks of the two sides of the box.
    infeasible : float
        Residuals of the equations over the first ones; a step of length s leaves 1 - s of them.
    best : float
        Smallest gap so far.
    idle : int
        Certificates in a row without progress.
    """

    at: Array
    dual: Array
    room: Array
    below: Array
    above: Array
    infeasible: float = 1.0
    best: float = np.inf
    idle: int = 0


class _Boxes(NamedTuple):
    """``<ridge, t^2>/2 + pull't + sum_i max_{0 <= a <= caps_i} {a (goal_i - m_i) - bends_i a^2/2}``

    for the variables t, coefficients in units of their features first; m are the margins and, with
    an l1 part, the coefficients: ``l |w| = l w + max_{0 <= a <= 2 l} -a w``. A bound of a
    coefficient is a box without a cap: ``w <= u`` is ``max_{0 <= a} a (w - u)``.

    Attributes
    ----------
    rows : (n_samples, n_numbers)
        Rows of the margins.
    owner, sign : (n_boxes - n_samples,)
        For each other box, the index of its coefficient and the sign of it in the box.
    goal, caps, bends, units : (n_boxes,)
        On the central path the product of a box is proportional to its unit.
    pull, ridge : (n_numbers,)
    scale : (n_features,)
        Coefficients times these are the variables.
    selected : (n_selected,)
        The features with an l1 part.
    held, free : index arrays
        The variables with a ridge or a box of their own, and those without.
    """

    rows: Array
    owner: NDArray[np.intp]
    sign: Array
    goal: Array
    caps: Array
    bends: Array
    units: Array
    pull: Array
    ridge: Array
    scale: Array
    selected: NDArray[np.intp]
    held: NDArray[np.intp]
    free: NDArray[np.intp]

    @property
    def nets(self) -> slice:
        """The boxes of the l1 norm."""
        n = len(self.rows)
        return slice(n, n + self.selected.size)

    @property
    def is_wide(self) -> bool:
        """Whether the samples are so few that a weak penalty lets all of them be fitted."""
        samples, size = self.rows.shape
        return WIDE * samples <= size

    def feasible_share(self, dual: Array) -> float:
        """The factor that makes first duals feasible where all samples may be fitted.

        They are then as small as the penalty at the solution: other first duals would take steps
        that overshoot the coefficients, and more of them the weaker the penalty is.
        """
        if not self.is_wide:
            return 1.0
        back = np.abs(dual[: len(self.rows)] @ self.rows)[self.held]
        room = (self.pull + self.ridge)[self.held]
        shares = np.divide(room, back, out=np.ones(back.size), where=back > room)
        return max(float(shares.min(initial=1.0)), LEAST_SHARE)

    def margins(self, at: Array) -> Array:
        return np.concatenate([self.rows @ at, self.sign * at[self.owner]])

    def adjoint(self, dual: Array) -> Array:
        """The transpose of `margins`, applied to duals of the boxes."""
        n, size = self.rows.shape
        alone = np.bincount(self.owner, self.sign * dual[n:], size)
        pulled: Array = self.rows.T @ dual[:n] + alone
        return pulled

    def matrix(self, theta: Array) -> Array:
        """The Hessian in the variables if the boxes have curvatures theta."""
        n, size = self.rows.shape
        matrix: Array = self.rows.T @ (theta[:n, None] * self.rows)
        alone = np.bincount(self.owner, theta[n:], size)
        np.einsum("ii->i", matrix)[:] += self.ridge + alone
        return matrix


class _NetDirection(NamedTuple):
    """A Newton step of each part of the state."""

    at: Array
    dual: Array
    below: Array
    above: Array


@dataclass(frozen=True)
class NetInteriorPoint(Solver[NetInteriorPointState]):
    """Mehrotra's predictor-corrector method for losses with a box on their dual, and an elastic
    net.

    Variables are coefficients times ``hypot(largest entry, root of the ridge)`` of their feature,
    so that steps do not depend on the units of the features. The l1 norm gives a box for each
    coefficient, as the hinge does for each sample, and each finite bound another one. Products of
    complementary pairs are kept proportional to the size of their boxes, which is tiny for a weak
    penalty in these units.

    Parameters
    ----------
    max_entries, max_features : int >= 1
        Limits of the problem: entries of its dense matrix (2^18 take 2 MB), and features.
    max_stalled : int >= 1
        Certificates without a smaller gap, because of rounding, after which the method ends.

    Notes
    -----
    Mehrotra (1992), "On the implementation of a primal-dual interior point method". It is meant for
    small problems on which other methods stall: the data are copied into a dense matrix, and each
    step factors a matrix over the smaller of samples and features. There is no warm start.
    """

    max_entries: int = 1 << 18
    max_features: int = 1000
    max_stalled: int = 12

    name: ClassVar[str] = "net-interior-point"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 200
    polishing: ClassVar[int] = 2
    conclusive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least_one(self, "max_entries", "max_features", "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if not (_is_net(problem) and problem.has_plain_intercept):
            return (
                "it needs a ridge or an elastic net (or an l1 norm, if the loss is smooth), and an "
                "intercept with a ridge or none"
            )
        if problem.loss.box is None or problem.loss.is_homogeneous:
            return "it needs a hinge loss (plain, huberized or squared), binary"
        n, p = problem.design.n_samples, problem.design.n_features
        if n * p > self.max_entries or p > self.max_features:
            return (
                f"it is made for small data, of at most {self.max_entries} entries and "
                f"{self.max_features} features: got {n} x {p}"
            )
        return None

    def init(self, problem: Problem, start: Point, stop: Stop) -> NetInteriorPointState:
        """The first state: zero coefficients, close to the central path or dual feasible."""
        boxes = _boxes_of(problem)
        capped = np.isfinite(boxes.caps)
        # bounds are boxes with goals <= 0 and no cap; zero coefficients are feasible
        margins = np.arange(boxes.goal.size) < len(boxes.rows)
        slack = np.where(margins | (boxes.goal == 0.0), FIRST_SLACK, 0.0)
        below = slack + np.maximum(-boxes.goal, 0.0)
        above = np.where(capped, slack + np.maximum(boxes.goal, 0.0), 0.0)
        flat = capped & (boxes.goal == 0.0)
        below[flat] = above[flat] = 2.0 * FIRST_SLACK * (boxes.units / boxes.caps)[flat]
        share = np.divide(above, below + above, out=np.ones_like(above), where=capped)
        dual = np.where(capped, boxes.caps * share, FIRST_SLACK * boxes.units / below)
        feasible = boxes.feasible_share(dual)
        dual[~flat] *= feasible
        above *= feasible
        below[flat] *= feasible
        return NetInteriorPointState(
            at=np.zeros_like(boxes.pull),
            dual=dual,
            room=boxes.caps - dual,
            below=below,
            above=above,
        )

    def step(self, problem: Problem, state: NetInteriorPointState) -> NetInteriorPointState:
        boxes, n_iter = _boxes_of(problem), state.n_iter + 1
        toward = _system(boxes, state)
        ahead = toward(np.zeros_like(state.dual), np.zeros_like(state.dual))
        low, top = products(state, ahead, longest(state, ahead))
        mean = complementarity(state)
        share = (float(low.sum() + top.sum()) / mean) ** 3 if mean > 0 else 0.0
        pairs = float(boxes.units.sum() + boxes.units[np.isfinite(boxes.caps)].sum())
        target = min(share, 1.0) * mean / pairs * boxes.units
        found = toward(target - ahead.dual * ahead.below, target + ahead.dual * ahead.above)
        length = min(1.0, BOUNDARY_FRACTION * longest(state, found))
        if not (np.isfinite(length) and np.isfinite(found.at).all()):
            return replace(state, n_iter=n_iter, finished=True)
        moved = _moved(boxes, state, found, length)
        return replace(moved, n_iter=n_iter, finished=length < MIN_STEP)

    def point(self, problem: Problem, state: NetInteriorPointState) -> Point:
        program, boxes = program_of(problem), _boxes_of(problem)
        p = boxes.scale.size
        numbers = np.where(_is_zero(boxes, state), 0.0, state.at[:p])
        net = problem.penalty.net(p)
        point = program.point(problem, numbers / boxes.scale, state.at[p:])
        within = np.clip(point.coef, net.lower[:, None], net.upper[:, None])
        return problem.centred.point(within, point.intercept)

    def dual(self, problem: Problem, state: NetInteriorPointState) -> Array:
        program = program_of(problem)
        return program.dual_point(problem, state.dual[: program.signs.size])

    def observe(
        self, problem: Problem, state: NetInteriorPointState, gap: Gap
    ) -> NetInteriorPointState:
        """End if the gap no longer follows the complementary products, and the residuals as long as
        these are not those of rounding.

        Steps change the last digits of the dual point, which may still improve by chance.
        """
        program, feasible = program_of(problem), state.infeasible <= FEASIBLE
        left = complementarity(state) if feasible else _gap_of(_boxes_of(problem), state)
        expected = program.dual_unit * program.coef_unit * left
        idle = idle_after(state, gap, expected, ROUNDING_PRODUCTS)
        best = min(gap.gap, state.best)
        finished = state.finished or idle >= self.max_stalled
        return replace(state, best=best, idle=idle, finished=finished)


def _boxes_of(problem: Problem) -> _Boxes:
    """The boxes of the problem, computed once."""
    return problem.remembered(_new_boxes)


def _new_boxes(problem: Problem) -> _Boxes:
    program = program_of(problem)
    p = program.design.n_features
    net = problem.penalty.net(p)
    l1, l2 = net.l1 / program.dual_unit, net.l2 / program.dual_unit
    fixed = net.lower == net.upper  # at zero: a box without interior, so the feature is left out
    data = np.where(fixed, 0.0, program.design.dense_columns(np.arange(p)))
    scale = np.hypot(np.abs(data).max(axis=0, initial=0.0), np.sqrt(l2))
    scale[scale == 0.0] = 1.0  # a constant feature
    pulls = l1 / scale
    low = np.flatnonzero(np.isfinite(net.lower) & ~fixed)
    high = np.flatnonzero(np.isfinite(net.upper) & ~fixed)
    selected = np.flatnonzero(np.where(fixed, 0.0, l1))
    bounds = np.concatenate([scale[low] * net.lower[low], -scale[high] * net.upper[high]])
    caps = np.concatenate([program.caps, 2.0 * pulls[selected], np.full(bounds.size, np.inf)])
    units = np.minimum(caps, 1.0)
    endless = np.flatnonzero(np.isinf(program.caps))
    units[endless] = FIRST_SLACK / program.bends[endless]
    alone = selected.size + bounds.size
    owner = np.concatenate([selected, low, high])
    ridge = np.concatenate([(np.sqrt(l2) / scale) ** 2, program.ridge])
    held = (ridge > 0) | (np.bincount(owner, minlength=ridge.size) > 0)
    return _Boxes(
        rows=program.signs[:, None] * np.hstack([data / scale, program.borders]),
        owner=owner,
        sign=np.concatenate([np.ones(selected.size + low.size), np.full(high.size, -1.0)]),
        goal=np.concatenate([program.goal, np.zeros(selected.size), bounds]),
        caps=caps,
        bends=np.concatenate([program.bends, np.zeros(alone)]),
        units=units,
        pull=np.concatenate([pulls, program.pull]),
        ridge=ridge,
        scale=scale,
        selected=selected,
        held=np.flatnonzero(held),
        free=np.flatnonzero(~held),
    )


def _equations(boxes: _Boxes, state: NetInteriorPointState) -> tuple[Array, Array]:
    """The two sides of the optimality conditions, less the slacks: of the boxes, ``above - below``
    at a solution; of the variables, zero."""
    missing = boxes.goal - boxes.margins(state.at) - boxes.bends * state.dual
    return missing, boxes.ridge * state.at + boxes.pull - boxes.adjoint(state.dual)


def _gap_of(boxes: _Boxes, state: NetInteriorPointState) -> float:
    """The duality gap if the equations held, and what their residuals may add to it."""
    missing, slope = _equations(boxes, state)
    unmet = np.abs(missing + state.below - state.above)
    with np.errstate(divide="ignore"):  # without bends the caps alone bound the dual
        steepest = np.minimum(boxes.caps, state.dual + unmet / boxes.bends)
    return complementarity(state) + float(unmet @ steepest + np.abs(slope) @ np.abs(state.at))


def _is_net(problem: Problem) -> bool:
    """Whether the penalty is an elastic net: with a ridge, or of a smooth loss with any strength.

    Features without a penalty are free parameters, as the intercept is.
    """
    if Trait.NET not in problem.penalty.traits:
        return False
    penalised = np.any(problem.net.l1 > 0) or np.any(problem.net.l2 > 0)
    return problem.penalty.l2 > 0 or bool(Trait.SMOOTH in problem.loss.traits and penalised)


Solve = Callable[[Array, Array], tuple[Array, Array]]
"""Maps ``(aim, slope)`` to the changes of the variables t and of the duals a of all boxes.

    a / theta + margins(t) = aim,    ridge t - adjoint(a) = -slope

It takes one step of iterative refinement: very different theta make the system ill-conditioned.
"""


def _system(boxes: _Boxes, state: NetInteriorPointState) -> Callable[[Array, Array], _NetDirection]:
    """Maps target products of the complementary pairs to the Newton step.

    The targets contain Mehrotra's second-order correction.
    """
    steep, flat = state.below / state.dual, state.above / state.room
    theta = 1.0 / (steep + flat + boxes.bends)
    solve = (_over_samples if boxes.is_wide else _over_variables)(boxes, theta)
    missing, slope = _equations(boxes, state)

    def toward(low: Array, top: Array) -> _NetDirection:
        pushed, pressed = low / state.dual, top / state.room
        aim = missing + pushed - pressed
        at, dual = solve(aim, slope)
        below = pushed - state.below - steep * dual
        return _NetDirection(at, dual, below, pressed - state.above + flat * dual)

    return toward


def _over_variables(boxes: _Boxes, theta: Array) -> Solve:
    """Solve by Cholesky of ``ridge + margins' diag(theta) margins``."""
    inverse = inverse_of(boxes.matrix(theta), overwrite=True)

    def solve(aim: Array, slope: Array) -> tuple[Array, Array]:
        wanted = theta * aim
        at = inverse(boxes.adjoint(wanted) - slope)
        dual = wanted - theta * boxes.margins(at)  # meets the first equation up to rounding
        again = inverse(boxes.adjoint(dual) - boxes.ridge * at - slope)
        return at + again, dual - theta * boxes.margins(again)

    return solve


def _over_samples(boxes: _Boxes, theta: Array) -> Solve:
    """Solve by Cholesky of ``F D^-1 F' + 1 / theta``, F the columns of the variables that have a
    ridge or a box of their own; the free ones by a Schur complement.

    D is the diagonal of ridges and of the boxes of single coefficients. With fewer samples than
    features ``F' theta F`` is singular, and its rounding swamps a small D.
    """
    n, size, held = len(boxes.rows), boxes.ridge.size, boxes.held
    columns, borders = boxes.rows[:, held], boxes.rows[:, boxes.free]
    stiff = (boxes.ridge + np.bincount(boxes.owner, theta[n:], size))[held]
    matrix = (columns / stiff) @ columns.T
    np.einsum("ii->i", matrix)[:] += 1.0 / theta[:n]
    inverse = inverse_of(matrix, overwrite=True)
    across = inverse(borders)
    corner = borders.T @ across

    def once(aim: Array, slope: Array) -> tuple[Array, Array]:
        own = theta[n:] * aim[n:]
        pulled = np.bincount(boxes.owner, boxes.sign * own, size) - slope
        alone = inverse(aim[:n] - columns @ (pulled[held] / stiff))
        at = np.zeros(size)
        right = borders.T @ alone + pulled[boxes.free]
        at[boxes.free] = np.linalg.lstsq(corner, right, rcond=None)[0]
        dual = alone - across @ at[boxes.free]
        at[held] = (pulled[held] + columns.T @ dual) / stiff
        return at, np.concatenate([dual, own - theta[n:] * boxes.sign * at[boxes.owner]])

    def solve(aim: Array, slope: Array) -> tuple[Array, Array]:
        at, dual = once(aim, slope)
        left = aim - dual / theta - boxes.margins(at)
        again, more = once(left, slope + boxes.ridge * at - boxes.adjoint(dual))
        return at + again, dual + more

    return solve


def _moved(
    boxes: _Boxes, state: NetInteriorPointState, by: _NetDirection, step: float
) -> NetInteriorPointState:
    floor, capped = COMPLEMENTARITY_FLOOR * boxes.units, np.isfinite(boxes.caps)
    above = np.maximum(state.above + step * by.above, COMPLEMENTARITY_FLOOR)
    return replace(
        state,
        at=state.at + step * by.at,
        infeasible=state.infeasible * (1.0 - step),
        dual=np.maximum(state.dual + step * by.dual, floor),
        room=np.maximum(state.room - step * by.dual, floor),
        below=np.maximum(state.below + step * by.below, COMPLEMENTARITY_FLOOR),
        above=np.where(capped, above, 0.0),
    )


def _is_zero(boxes: _Boxes, state: NetInteriorPointState) -> NDArray[np.bool_]:
    """Which coefficients count as zero at the present accuracy: their boxes are not active."""
    nets, zero = boxes.nets, np.zeros(boxes.scale.size, dtype=bool)
    numbers = np.abs(state.at[: boxes.scale.size])
    open_share = np.minimum(state.dual[nets], state.room[nets]) / boxes.caps[nets]
    zero[boxes.selected] = numbers[boxes.selected] < open_share * float(numbers.max(initial=0.0))
    return zero
