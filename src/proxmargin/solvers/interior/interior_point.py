"""The interior point method for losses with a box on their dual."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.compiled.solvers.box_program import FEASIBLE, MIN_STEP
from proxmargin.functions.penalties.elastic_net import Ridge
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.memory import kept
from proxmargin.runtime.types import Array
from proxmargin.solvers.interior.ball import BallModel
from proxmargin.solvers.interior.box_program import (
    has_ridge,
    program_of,
    size_objection,
    system_work,
)
from proxmargin.solvers.interior.boxes import (
    BoxModel,
    Iterate,
    NetModel,
    RidgeModel,
    predictor_corrector,
)
from proxmargin.solvers.loop.solver import GAP_REDUCTION, Solver, State, Stop, at_least_one

# convergence
ROUNDING_PRODUCTS = 0.1  # complementarity over the gap, below which the gap is rounding
CLOSE_GAP = 1e-3  # relative gap below which coefficients of a net that are close to zero are zero


@dataclass(frozen=True, eq=False, kw_only=True)
class InteriorPointState(State):
    """The state of `InteriorPoint`, in units of `BoxProgram`."""

    at: Iterate  # variables, slacks and multipliers of `BoxModel`
    best: float = np.inf  # smallest gap so far
    # residuals of the equations over the first ones; a step of length s leaves 1 - s of them
    residual: float = 1.0
    relative: float = np.inf  # the last relative gap
    idle: int = 0  # certificates in a row without progress because of rounding


@dataclass(frozen=True)
class InteriorPoint(Solver[InteriorPointState]):
    """Mehrotra's predictor-corrector method.

    Losses whose margin terms are conjugates of linear or quadratic functions on an interval (hinge,
    huberized and squared hinge), and the tail mean of the nu-SVM, give with a penalty P the program

        min  P(w) + pull'f + sum_i max_{0 <= a <= u_i} {a (target_i - t_i) - d_i a^2 / 2},

    with margins ``t = y (X w + F f)`` and free parameters f (intercept, threshold). P is a ridge,
    an elastic net with factors and bounds of single features, whose kinks are boxes too, or a ball
    of an l_p norm, lifted by a variable for each coefficient. An iteration reduces the Newton
    system to one positive definite matrix, over the features or over the samples, whichever is
    smaller, bordered by F: no null-space basis of the constraint ``F'(y a) = pull`` is needed.

    Parameters
    ----------
    max_stalled : int >= 1
        Certificates without a smaller gap, because of rounding, after which the method ends.

    Notes
    -----
    Mehrotra (1992), "On the implementation of a primal-dual interior point method". The models are
    (11), (12) and (14) of Ito, Takeda and Toh (2017), whose bounds carry the sample weights here.

    A square matrix over the samples or the features, whichever are fewer, is stored; its side is at
    most `LARGEST`. There is no warm start: points at the boundary are bad starts. The point is the
    primal iterate, not ``X'v / l2`` of the dual: after a full step both agree up to rounding, which
    is larger in the dual.
    """

    max_stalled: int = 8

    name: ClassVar[str] = "interior-point"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 200
    polishing: ClassVar[int] = 3  # as exact as the dual coordinates of supports need it

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if problem.loss.box is None:
            return "it needs a hinge loss (plain, huberized or squared), binary, or a tail mean"
        if not problem.has_plain_intercept:
            return "it needs an intercept with a ridge or none"
        if not (has_ridge(problem) or Trait.BALL in problem.traits or _is_net(problem)):
            return (
                "it needs a ridge penalty, coefficients in a ball or, unless the loss is a tail "
                "mean, an elastic net (or an l1 norm, if the loss is smooth)"
            )
        return size_objection(problem)

    def work(self, problem: Problem) -> float:
        return system_work(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> InteriorPointState:
        return InteriorPointState(at=_model_of(problem).first)

    def step(self, problem: Problem, state: InteriorPointState) -> InteriorPointState:
        model = _model_of(problem)
        at, length = predictor_corrector(model, state.at)
        return replace(
            state,
            n_iter=state.n_iter + 1,
            at=at,
            residual=state.residual * (1.0 - length),
            finished=length < MIN_STEP,
        )

    def point(self, problem: Problem, state: InteriorPointState) -> Point:
        model = _model_of(problem)
        _, free, _ = model.of_variables(state.at.variables)
        close = state.relative <= CLOSE_GAP
        coef, free = model.penalty.coef_and_free(model.own(state.at), free, close)
        point = model.program.point(problem, coef, free)
        return problem.centred.point(point.coef, point.intercept)

    def dual(self, problem: Problem, state: InteriorPointState) -> Array:
        model = _model_of(problem)
        return model.program.dual_point(problem, model.of_pairs(state.at.slacks)[0])

    def observe(self, problem: Problem, state: InteriorPointState, gap: Gap) -> InteriorPointState:
        """End if the gap has exceeded the complementary products for several certificates. In exact
        arithmetic they are equal once the equations hold."""
        program = _model_of(problem).program
        expected = program.dual_unit * program.coef_unit * state.at.complementarity
        rounding = gap.gap > GAP_REDUCTION * state.best and expected < ROUNDING_PRODUCTS * gap.gap
        idle = state.idle + 1 if rounding and state.residual <= FEASIBLE else 0
        best = min(gap.gap, state.best)
        finished = state.finished or idle >= self.max_stalled
        return replace(state, best=best, relative=gap.relative_gap, idle=idle, finished=finished)


def _is_net(problem: Problem) -> bool:
    """Whether the penalty is an elastic net: with a ridge, or of a smooth loss with any strength.
    Features without a penalty are free parameters, as the intercept is."""
    if Trait.NET not in problem.penalty.traits or problem.loss.is_homogeneous:
        return False
    penalised = np.any(problem.net.l1 > 0) or np.any(problem.net.l2 > 0)
    return problem.penalty.l2 > 0 or bool(Trait.SMOOTH in problem.loss.traits and penalised)


@kept
def _model_of(problem: Problem) -> BoxModel:
    if Trait.BALL in problem.traits:  # in units of a ridge for which scores are of order one
        ball = problem.ball
        square = program_of(replace(problem, penalty=Ridge(1.0))).coef_unit
        program = program_of(replace(problem, penalty=Ridge(np.sqrt(square) / ball.radius)))
        return BoxModel(BallModel(program, ball.radius, ball.p))
    program = program_of(problem)
    ridge = has_ridge(problem)
    return BoxModel(RidgeModel(program) if ridge else NetModel(program, problem))
