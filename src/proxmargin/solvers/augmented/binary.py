"""The binary hinge smoothed around multipliers, with an elastic net, and its Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import EPS, OBJECTIVE_ROUNDING, TINY
from proxmargin.compiled.solvers.hinge_newton import (
    net_slopes,
    orthant,
    orthant_step,
    smoothed_hinge,
)
from proxmargin.compiled.solvers.nets import Net
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import cached_property
from proxmargin.runtime.types import Array
from proxmargin.solvers.augmented.hinge_system import (
    COPIED_ENTRIES,
    WIDE,
    HessianTerms,
    HingeSystem,
    NewtonRows,
    few_by_rows,
    hinge_system,
    newton_rows,
)
from proxmargin.solvers.augmented.multipliers import (
    FIRST_SHARPNESS,
    MIN_PROXIMAL,
    ORTHANT_CORRECTIONS,
    Centre,
    End,
    HingeModel,
    MultiplierState,
    line_search,
    minimise,
)
from proxmargin.solvers.shared.margin_model import (
    first_multipliers,
    intercept_ridge,
    signs_and_upper,
    spread_of,
    target_margins,
)

# Newton step within an orthant
RELATIVE_SHIFTS = (0.0, 1e-14, 1e-11, 1e-8)  # relative to the diagonal, until Cholesky succeeds
ORTHANT_BREAKPOINTS = 50  # pieces of the path that drops features one by one, if active sets fail
# sharpness, over its unit
WARM_SHARPNESS = 2.0  # for a warm start
MAX_SHARPNESS = 3e4
UNPENALISED_PROXIMAL = 1e-3  # proximal curvature of unpenalised coefficients, absolute
ACCEPTED_EXCESS = 1e3  # residual over its target that is accepted if rounding ends the search


class HingePoint(NamedTuple):
    coef: Array  # (n_features,)
    intercept: float
    scores: Array  # (n_samples,)
    dual: Array  # (n_samples,); the maximisers, which are the multipliers at this point
    free: NDArray[np.intp]  # samples whose maximiser is strictly inside its box
    value: float

    @property
    def rounding(self) -> float:
        return OBJECTIVE_ROUNDING * abs(self.value)


class Slopes(NamedTuple):
    """The gradient of the smooth part at a point, and the residual of the optimality conditions."""

    coef: Array  # (n_features,)
    intercept: float  # the derivative in the intercept
    residual: float  # largest violation of the optimality conditions, relative to ``max |X'(y a)|``
    least: float  # the part of the residual that is explained by rounding of the scores
    pulled: Array  # (n_features,); ``X'(y a)`` for the multipliers a


@dataclass(frozen=True, eq=False)
class SmoothedHinge:
    """``F(w, b) = sum_i e_i(x_i'w + b + offset_i) + G(w) + ridge/2 b^2 + proximal terms``,

        e_i(z) = max_{0 <= a <= upper_i} {a (1 - y_i z) - (a - centre_i)^2 / (2 widths_i)},

    with the elastic net G, the proximal terms being ``|w - centre|^2_D / 2`` and
    ``proximal_b/2 (b - centre)^2``.
    """

    design: Design
    # (n_samples,)
    signs: Array
    upper: Array
    widths: Array
    offset: Array
    net: Net  # bounds are zero or infinite
    level: float  # a typical l1 strength
    coef: Array  # (n_features,)
    intercept: float
    multipliers: Array  # (n_samples,); the centre
    proximal: float  # the diagonal of D
    ridge: float
    intercept_proximal: float | None  # None without intercept

    @cached_property
    def rows(self) -> NewtonRows:
        return newton_rows(self.design)

    def at(self, coef: Array, intercept: float, scores: Array | None = None) -> HingePoint:
        """The smoothed problem at a point; ``scores`` if they are known."""
        if scores is None:
            scores = self.rows.scores(coef) + intercept
        dual = np.empty_like(scores)
        value, free = smoothed_hinge(
            scores,
            self.offset,
            self.signs,
            self.upper,
            self.multipliers,
            self.widths,
            coef,
            self.coef,
            self.net.l1,
            self.net.l2,
            self.proximal,
            dual,
        )
        intercept_step = intercept - self.intercept
        value += (
            0.5 * self.ridge * intercept**2
            + 0.5 * (self.intercept_proximal or 0.0) * intercept_step**2
        )
        return HingePoint(coef, intercept, scores, dual, free, value)

    def slopes(self, here: HingePoint) -> Slopes:
        signed = self.signs * here.dual
        pulled, slope = self.rows.adjoint(signed), np.empty_like(here.coef)
        rest, pull = net_slopes(here.coef, self.coef, pulled, *self.net, self.proximal, slope)
        intercept_slope = 0.0
        if self.intercept_proximal is not None:
            intercept_step = here.intercept - self.intercept
            intercept_slope = self.ridge * here.intercept - float(signed.sum())
            intercept_slope += self.intercept_proximal * intercept_step
        unit = max(pull, self.level) or 1.0
        total = max(float(here.dual.sum()), TINY)
        residual = max(rest / unit, abs(intercept_slope) / total)
        widths = self.widths[here.free]
        noise = 2 * EPS * float(widths @ widths) ** 0.5 * self.rows.largest
        return Slopes(slope, intercept_slope, residual, noise / unit, pulled)

    def hessian_terms(self, here: HingePoint, index: NDArray[np.intp]) -> HessianTerms:
        """The Hessian at a point, in the intercept and the features ``index``."""
        part, curvature = self.design, self.widths[here.free]
        if self.rows.is_large(here.free.size, index.size):
            curvature = np.zeros_like(self.widths)
            curvature[here.free] = self.widths[here.free]
        else:
            part = self.rows.part(here.free, index)
        return HessianTerms(
            part,
            curvature,
            self.proximal + self.net.l2[index],
            None if self.intercept_proximal is None else self.intercept_proximal + self.ridge,
        )

    def newton_step(
        self, here: HingePoint, slopes: Slopes, deadline: float
    ) -> tuple[HingePoint, Slopes] | None:
        """A Newton step in an orthant, with a line search; None if the search fails."""
        to = _direction(self, here, slopes, deadline)
        first, whole = here.coef[to.features], np.zeros_like(here.coef)
        whole[to.features] = to.coef
        moved = self.rows.scores(whole) + to.intercept
        fall = -float(to.slope @ to.coef) - to.intercept * slopes.intercept

        def along(length: float) -> HingePoint:
            coef = here.coef.copy()
            coef[to.features] = first + length * to.coef
            intercept = here.intercept + length * to.intercept
            return self.at(coef, intercept, here.scores + length * moved)

        def ahead(there: HingePoint, end: Slopes, length: float) -> float:
            slope = end.coef[to.features] + self.net.l1[to.features] * to.side
            return length * (float(slope @ to.coef) + to.intercept * end.intercept)

        def falls(there: HingePoint, length: float) -> float:
            return length * fall

        return line_search(here, along, self.slopes, fall, falls, ahead)


class _OrthantStep(NamedTuple):
    """A step of the ``features``, in the orthant with signs ``side``, and their gradient."""

    features: NDArray[np.intp]
    side: Array
    slope: Array
    coef: Array
    intercept: float


def _direction(
    smoothed: SmoothedHinge, here: HingePoint, slopes: Slopes, deadline: float
) -> _OrthantStep:
    """The Newton step in the orthant of the nonzero and the violating coefficients."""
    net = smoothed.net
    index, side, slope = orthant(here.coef, slopes.coef, net.l1, net.lower, net.upper)
    terms, coef = smoothed.hessian_terms(here, index), here.coef[index]
    matrix = few_by_rows(terms.design)
    if matrix is not None:
        own = -1.0 if terms.intercept_curvature is None else terms.intercept_curvature
        parts = matrix, terms.curvature, terms.diagonal, own
        start = coef, side, slope, slopes.intercept
        move, intercept_step = orthant_step(
            *parts, *start, WIDE, RELATIVE_SHIFTS, ORTHANT_CORRECTIONS, ORTHANT_BREAKPOINTS
        )
    else:
        model = _Model(hinge_system(terms, deadline), coef, side, slope, slopes.intercept)
        move, intercept_step = _active_set_step(model)
        if not float(slope @ move) + intercept_step * slopes.intercept < 0:
            move, intercept_step = _path_step(model)
    return _OrthantStep(index, side, slope, move, intercept_step)


class _Model(NamedTuple):
    """A quadratic model: its linear system, and the point with its orthant and gradient."""

    system: HingeSystem
    coef: Array
    side: Array
    slope: Array
    intercept_slope: float


def _active_set_step(model: _Model) -> tuple[Array, float]:
    """A primal active-set guess of the minimiser of the model in the orthant. Coefficients that
    would change their sign are fixed at zero and the others are solved for again, a few times. The
    result need not be a descent direction."""
    coef, side = model.coef, model.side
    stays = np.ones(coef.size, dtype=bool)
    for _ in range(ORTHANT_CORRECTIONS):
        index = np.flatnonzero(stays)
        product, intercept_product = model.system.product(np.where(stays, 0.0, -coef), 0.0)
        part, intercept_step = model.system.step(
            index, (model.slope + product)[index], model.intercept_slope + intercept_product
        )
        move = -coef
        move[index] = part
        beyond = stays & ((coef + move) * side < 0)
        if not beyond.any():
            break
        stays &= ~beyond
    return np.where((coef + move) * side < 0, -coef, move), intercept_step


def _path_step(model: _Model) -> tuple[Array, float]:
    """A descent direction in the orthant, by a piecewise linear path. Each piece leads towards the
    minimiser over the free coefficients, until the first of them reaches zero and is fixed
    there."""
    coef, side = model.coef, model.side
    stays = np.ones(coef.size, dtype=bool)
    move, intercept_step = np.zeros(coef.size), 0.0
    for _ in range(ORTHANT_BREAKPOINTS):
        index = np.flatnonzero(stays)
        product, intercept_product = model.system.product(move, intercept_step)
        part, shift = model.system.step(
            index, (model.slope + product)[index], model.intercept_slope + intercept_product
        )
        room, pace = (coef + move)[index] * side[index], -part * side[index]
        reach = np.where(pace > 0, room / np.where(pace > 0, pace, 1.0), np.inf)
        length = min(1.0, float(reach.min(initial=np.inf)))
        move[index] += length * part
        intercept_step += length * shift
        hit = index[reach <= length]
        if length == 1.0 and hit.size == 0:
            break
        move[hit] = -coef[hit]
        stays[hit] = False
    return move, intercept_step


class BinaryHinge(HingeModel):
    """``sum_i u_i [1 - y_i z_i]_+``, on the centred data of the problem."""

    first_residual: ClassVar[float] = 0.1
    residual_reduction: ClassVar[float] = 0.3
    growths: ClassVar[tuple[float, float]] = (2.0, 2.0)

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.design = problem.centred.design
        self.signs, self.upper = signs_and_upper(problem)
        # of the sharpness, ``l2 / mean |x_i|^2``; above one if the ridge alone keeps scores within
        # one of the intercept: how far multipliers must move for scores to move by one
        reach = spread_of(problem)
        self.unit = max(1.0, problem.penalty.l2 / reach) if reach > 0 else 1.0
        self.least_sharpness = FIRST_SHARPNESS * self.unit
        self.max_sharpness = MAX_SHARPNESS * self.unit

    def start(self, start: Point) -> tuple[Centre, Array, float]:
        intercept = self.problem.centred.intercept(start)
        scores = self.design.scores(start.coef) + intercept
        multipliers = first_multipliers(self.problem, start, scores[:, 0])[:, None]
        tall = len(scores) > len(start.coef) and self.unit == 1.0
        cold = 1.0 if tall else FIRST_SHARPNESS  # multipliers of wide data are far from optimal
        sharpness = self.unit * (WARM_SHARPNESS if start.coef.any() else cold)
        return Centre(start.coef, intercept, multipliers), scores, sharpness

    def solved(self, state: MultiplierState) -> tuple[Centre, Array, Array | None, End]:
        problem, members, centre = self.problem, state.members, state.centre
        level, l2 = problem.level, problem.penalty.l2
        ridge = intercept_ridge(problem)
        smoothed = SmoothedHinge(
            design=_working_set(self.design, members),
            signs=self.signs,
            upper=self.upper,
            offset=problem.offset,
            widths=state.sharpness * self.upper,
            net=Net(*(each[members] for each in problem.net)),
            level=level,
            coef=centre.coef[members, 0],
            intercept=float(centre.intercept[0]),
            multipliers=centre.multipliers[:, 0],
            proximal=state.proximal * (max(level, l2) or UNPENALISED_PROXIMAL),
            ridge=ridge or 0.0,
            intercept_proximal=None
            if ridge is None
            else MIN_PROXIMAL * float(self.upper.sum()) / self.upper.size,
        )
        here, slopes, end = minimise(
            smoothed,
            smoothed.at(state.at.coef[members, 0], float(state.at.intercept[0])),
            state.residual,
            state.newton_steps,
            state.stop.deadline,
            ACCEPTED_EXCESS,
        )
        at = Centre(here.coef[:, None], np.array([here.intercept]), here.dual[:, None])
        return at, here.scores[:, None], -slopes.pulled[:, None], end

    def point(self, at: Centre) -> Point:
        return self.problem.centred.point(at.coef, at.intercept)

    def dual(self, multipliers: Array) -> Array:
        return -self.signs[:, None] * multipliers

    def loss(self, scores: Array) -> float:
        missing = target_margins(self.problem) - self.signs * scores[:, 0]
        return float(self.upper @ np.maximum(missing, 0.0))

    def dual_value(self, multipliers: Array) -> float:
        return float(multipliers[:, 0] @ target_margins(self.problem))


def _working_set(design: Design, members: NDArray[np.intp]) -> Design:
    """The features of the working set; copied if few, because they are read often."""
    if design.is_dense and design.n_samples * members.size <= COPIED_ENTRIES:
        return design.remembered(_plain_columns, members)
    return design if members.size == design.n_features else design.narrowed(members)


def _plain_columns(design: Design, members: NDArray[np.intp]) -> DenseDesign:
    matrix = design.dense_columns(members)
    share = design.share * members.size / max(design.n_features, 1)
    return DenseDesign(matrix, design.counter, share)
