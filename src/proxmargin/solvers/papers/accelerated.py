"""The accelerated proximal gradient methods of Ito et al. (2017), on either side of a problem.

One iteration serves them all. With ``T_L(b) = prox_{g/L}(b - f'(b) / L)``,

    base_k  = u_{k-1} + ((t_{k-1} - 1) / t_k) (u_{k-1} - u_{k-2})
    u_k     = T_{L_k}(base_k),  L_k growing by eta_u until F(u_k) <= Q(u_k; base_k)   ('bt')
    L_{k+1} = L_k / eta_d                                                             ('dec')
    return to u_{k-1} without momentum if the step goes uphill                        ('re')
    with at least K_i iterations between restarts, K_{i+1} = 2 K_i                    ('mt')
    and eta_d moved towards 1 at each restart                                         ('st')

Where images and responses are affine, those at ``base_k`` are combinations of those at the last two
points, so that an iteration costs one product with the data for each trial and one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.loop.solver import (
    LIPSCHITZ_MARGIN,
    Solver,
    State,
    at_least_one,
    check_flags,
    check_numbers,
)
from proxmargin.loop.stopping import (
    OVERRUN,
    FixedPoint,
    PointResidual,
    RelativeChange,
    StepResidual,
    Stop,
)
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.rounding import SLOPE_ROUNDING
from proxmargin.sides import (
    PrimalSide,
    Response,
    Side,
    dual_side,
    lives_on_the_dual,
    primal_side,
    scaled_side,
)
from proxmargin.traits import Trait

__all__ = [
    "Accelerated",
    "AcceleratedProximalGradient",
    "FastProximalGradient",
    "FastProximalGradientStar",
    "GuaranteedProximalGradient",
]

RESIDUAL_RULES = (StepResidual.name, FixedPoint.name, PointResidual.name)
MIN_LIPSCHITZ = 1e-100  # outside of this range the step length 1 / L overflows or underflows
MAX_LIPSCHITZ = 1e200
PROGRESS = 0.01  # relative fall of F by which a run still moves, whatever its gap


@dataclass(frozen=True, eq=False, kw_only=True)
class Accelerated(State):
    """The state of an accelerated method.

    Attributes
    ----------
    u, u_old : arrays
        The last two points.
    image, image_old, response, response_old
        Their images and responses (`proxmargin.sides.Side`); responses only where they are affine.
    t, lipschitz : float
        t_{k-1} and L_{k-1} of the last step.
    next_lipschitz : float
        L_k with which the next search starts.
    bound : float
        Upper bound of the Lipschitz constant.
    decrease : float
        eta_d.
    restart_at, patience : int
        No restart before iteration ``restart_at + patience``; patience doubles at each restart.
    restarts : int
        Restarts so far.
    extrapolation : float
        The weight of the extrapolation in the last step.
    objective : float
        F(u).
    lowest, lowest_at : float, int
        Smallest F so far, and the last iteration that came close to it (`allowed_rise`).
    mark : float
        F at `moved_at`, when it had last fallen by the share `PROGRESS`.
    measured : bool
        A rule asks for the residuals.
    stop : Stop
        Limits of the run; a search that is late takes the upper bound for L.
    step_residual, point_residual : float
        ``L |u_k - base_k|`` and, in the iterations of `FixedPoint`, ``L |T_L(u_k) - u_k|``;
        infinite where not measured.
    """

    u: Array
    u_old: Array
    image: Array
    image_old: Array
    response: Response | None = None
    response_old: Response | None = None
    t: float = 0.0
    lipschitz: float = 1.0
    next_lipschitz: float = 1.0
    bound: float = np.inf
    decrease: float = 1.1
    restart_at: int = 0
    restarts: int = 0
    extrapolation: float = 0.0
    patience: int = 2
    objective: float = np.inf
    lowest: float = np.inf
    lowest_at: int = 0
    mark: float = np.inf
    measured: bool = False
    stop: Stop = field(default_factory=Stop)
    step_residual: float = np.inf
    point_residual: float = np.inf


class _Base(NamedTuple):
    """The extrapolated point of a step, with its image, response and gradient."""

    u: Array
    image: Array
    response: Response
    gradient: Array
    t: float
    weight: float


class _Trial(NamedTuple):
    """A proximal step, with the curvature of f along it; zero if that was not tested."""

    u: Array
    image: Array
    base: _Base
    lipschitz: float
    curvature: float


@dataclass(frozen=True)
class AcceleratedProximalGradient(Solver[Accelerated]):
    """Algorithm 1: backtracking with a constant L that may decrease (Scheinberg et al. 2014).

    Parameters
    ----------
    bt, dec, re, mt, st : bool
        The strategies; see the module. Without 'bt' L is its upper bound, which does not exist for
        the dual side of a ball.
    growth, decrease : float > 1
        eta_u and eta_d.
    stability : float in [0, 1]
        delta: a restart turns eta_d into ``delta eta_d + 1 - delta``.
    patience : int
        K_1, the iterations before the first restart.
    bt_every : int
        Iterations between two tests of L.
    floor : float in (0, 0.5)
        xi: relative distance that dual coordinates keep from the ends of their domain where the
        conjugate of the loss is not smooth (logistic, DWD).
    first_lipschitz : float > 0, optional
        L_0, for the objective with losses averaged over the samples. By default on the dual side
        the largest diagonal entry of its Hessian, on the primal one a bound over the samples.
    first_point : float, optional
        alpha_0, the value of every coordinate: on the dual side of the dual variables, projected
        onto their set (for hinges and logistic losses ``[0, 1]``, with a free intercept cut by its
        hyperplane), on the primal side of the coefficients. By default where the fit starts: the
        centre of the dual set, or zero, and with ``warm_start=True`` the last solution.
    scaled : bool
        On the primal side, precondition: scale every feature to unit variance.
    max_stalled : float >= 1
        Iterations with F farther above the smallest F than `allowed_rise`, if also half of all,
        after which the method ends: if no step length works it cycles. Infinite in the paper, and
        the run then never ends for want of progress, only by its rule and limits.

    Notes
    -----
    The step after a restart is a plain proximal gradient step, which goes uphill only by rounding;
    it causes no restart, so that 're' without 'mt' cannot stall. L stays within a small factor of
    its upper bound, above which only rounding can fail the test.
    """

    bt: bool = True
    dec: bool = True
    re: bool = False
    mt: bool = False
    st: bool = False
    growth: float = 1.1
    decrease: float = 1.1
    stability: float = 0.8
    patience: int = 2
    bt_every: int = 1
    floor: float = 1e-4
    first_lipschitz: float | None = None
    first_point: float | None = None
    scaled: bool = True
    max_stalled: float = 1000

    name: ClassVar[str] = "apg"
    rules: ClassVar[tuple[str, ...]] = (RelativeChange.name, *RESIDUAL_RULES)
    coupled: ClassVar[bool] = True
    """t and the base of a step depend on L during the search (Algorithms 1 and 3)."""
    whole: ClassVar[bool] = False
    """The dual side keeps the whole conjugate of the loss in its prox."""
    allowed_rise: ClassVar[float] = 1.0
    """How far above the smallest F the method still moves towards it, over its absolute value: F
    may rise for thousands of iterations before it falls further. Cycles are far above."""

    def __post_init__(self) -> None:
        check_flags(self, "bt", "dec", "re", "mt", "st", "scaled")
        check_numbers(self, "growth", above=1)
        check_numbers(self, "decrease", least=1)
        check_numbers(self, "stability", least=0, most=1)
        check_numbers(self, "patience", "bt_every", least=1, whole=True)
        check_numbers(self, "floor", above=0, below=0.5)
        check_numbers(self, "first_lipschitz", above=0, optional=True)
        check_numbers(self, "first_point", optional=True)
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        if Trait.SMOOTH in problem.traits or lives_on_the_dual(problem):
            return super().objection(problem)
        return (
            "it needs a loss with a Lipschitz continuous gradient, or a loss whose dual form is "
            "known with a penalty that has a ridge part or is a ball"
        )

    def init(self, problem: Problem, start: Point, stop: Stop) -> Accelerated:
        side = self._side(problem)
        u = side.start(start)
        if self.first_point is not None:
            u = side.uniform(self.first_point)
        image = side.image(u)
        response = side.response(image) if side.responds_linearly else None
        bound = side.curvature_bound()
        first = self.first_lipschitz or min(side.first_curvature(image), bound)
        first = first if self.bt else bound
        return Accelerated(
            u=u,
            u_old=u,
            image=image,
            image_old=image,
            response=response,
            response_old=response,
            lipschitz=first,
            next_lipschitz=first,
            bound=bound,
            decrease=self.decrease,
            patience=self.patience,
            objective=side.value(u, image),
            measured=stop.rule is not None and stop.rule.name in RESIDUAL_RULES,
            stop=stop,
        )

    def step(self, problem: Problem, state: Accelerated) -> Accelerated:
        side = self._side(problem)
        n_iter = state.n_iter + 1
        due = (n_iter - 1) % self.bt_every == 0 or self._is_careful(side)
        trial = self._search(side, state, tested=due and self.bt)
        objective = side.value(trial.u, trial.image)
        moved = trial.u - state.u
        size = float(np.linalg.norm(moved))
        low = objective <= state.lowest + self.allowed_rise * abs(state.lowest) or n_iter == 1
        fallen = objective < state.mark - PROGRESS * abs(state.mark) or n_iter == 1
        fresh = replace(
            state,
            n_iter=n_iter,
            mark=objective if fallen else state.mark,
            moved_at=n_iter if fallen or np.isinf(self.max_stalled) else state.moved_at,
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=size / (1.0 + float(np.linalg.norm(state.u))),
            finished=not trial.lipschitz < MAX_LIPSCHITZ or np.array_equal(trial.u, trial.base.u),
            lowest=min(state.lowest, objective),
            lowest_at=n_iter if low else state.lowest_at,
            lipschitz=trial.lipschitz,
            next_lipschitz=self._decreased_lipschitz(side, state, trial),
        )
        if state.measured:
            fresh = self._with_residuals(side, trial, fresh)
        if n_iter - fresh.lowest_at > max(self.max_stalled, n_iter // 2):
            fresh = replace(fresh, finished=True)
        # the printed algorithms stop before they restart
        ends = fresh.measured and state.stop.rule is not None and state.stop.rule.met(fresh)
        if not ends and self._goes_uphill(side, state, trial, n_iter):
            return self._restarted(state, fresh)
        return replace(
            fresh,
            u=trial.u,
            u_old=state.u,
            image=trial.image,
            image_old=state.image,
            response=side.response(trial.image) if side.responds_linearly else None,
            response_old=state.response,
            t=trial.base.t,
            extrapolation=trial.base.weight,
            objective=objective,
        )

    def _with_residuals(self, side: Side, trial: _Trial, fresh: Accelerated) -> Accelerated:
        """The state with the quantities of `StepResidual` and `FixedPoint`."""
        lipschitz, point_residual = trial.lipschitz, np.inf
        rule = fresh.stop.rule
        if isinstance(rule, FixedPoint) and rule.is_due(fresh.n_iter):
            gradient = side.gradient(trial.u, side.response(trial.image))
            image = side.prox(trial.u - gradient / lipschitz, 1.0 / lipschitz)
            point_residual = lipschitz * float(np.linalg.norm(image - trial.u))
        step_residual = lipschitz * float(np.linalg.norm(trial.u - trial.base.u))
        return replace(fresh, step_residual=step_residual, point_residual=point_residual)

    def point(self, problem: Problem, state: Accelerated) -> Point:
        return self._side(problem).point(state.u, state.image)

    def scores(self, problem: Problem, state: Accelerated) -> Array | None:
        return self._side(problem).scores(state.image, state.response)

    def dual(self, problem: Problem, state: Accelerated) -> Array | None:
        return self._side(problem).dual(state.u)

    def measures(self, state: Accelerated) -> Mapping[str, float]:
        return {
            "objective": state.objective,
            "step_constant": state.lipschitz,
            "extrapolation": state.extrapolation,
            "restarts": state.restarts,
        }

    def _is_careful(self, side: Side) -> bool:
        """Whether L is tested in each step by a Bregman divergence, and decreased only if that
        allows.

        The printed methods compare values of F and Q, whose difference cancels near the optimum,
        and decrease L after each step.
        """
        return False

    def _side(self, problem: Problem) -> Side:
        if lives_on_the_dual(problem):
            return dual_side(problem, whole=self.whole, floor=0.0 if self.whole else self.floor)
        return scaled_side(problem) if self.scaled else primal_side(problem)

    def _search(self, side: Side, state: Accelerated, tested: bool) -> _Trial:
        """'bt': the step, with L increased until the quadratic model at the base bounds F."""
        lipschitz = state.next_lipschitz
        base = self._base(side, state, lipschitz)
        while True:
            if not np.isfinite(base.gradient).all():
                return _Trial(state.u, state.image, base, MAX_LIPSCHITZ, 0.0)
            u = side.prox(base.u - base.gradient / lipschitz, 1.0 / lipschitz)
            image = side.image(u)
            moved = u - base.u
            square = float(np.vdot(moved, moved))
            if not tested or square == 0.0:
                return _Trial(u, image, base, lipschitz, 0.0)
            curvature = 2.0 * self._rise_above_tangent(side, base, u, image) / square
            most = LIPSCHITZ_MARGIN * state.bound
            if curvature <= lipschitz or lipschitz >= min(most, MAX_LIPSCHITZ):
                return _Trial(u, image, base, lipschitz, curvature)
            larger = min(self.growth * lipschitz, most)
            # a search from far below takes a product a trial, and the bound needs none; searches
            # that are not long end as without a limit, so that a fit resumes on its trajectory
            late = state.stop.is_late(-OVERRUN) and np.isfinite(most)
            lipschitz = most if late else larger
            if self.coupled:
                base = self._base(side, state, lipschitz)

    def _base(self, side: Side, state: Accelerated, lipschitz: float) -> _Base:
        """The extrapolated point; in Algorithms 1 and 3 t depends on the ratio of the L."""
        ratio = lipschitz / state.lipschitz if self.coupled else 1.0
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * ratio * state.t**2))
        weight = (state.t - 1.0) / t if state.t > 0 else 0.0
        u = state.u + weight * (state.u - state.u_old)
        image = state.image + weight * (state.image - state.image_old)
        if state.response is None or state.response_old is None:
            response = side.response(image)
        else:
            response = state.response.moved(state.response_old, weight)
        return _Base(u, image, response, side.gradient(u, response), t, weight)

    def _rise_above_tangent(self, side: Side, base: _Base, u: Array, image: Array) -> float:
        """``f(u) - f(base) - <f'(base), u - base>``."""
        if self._is_careful(side):
            return side.divergence(u, image, base.u, base.response.partner)
        rise = side.smooth_value(u, image) - side.smooth_value(base.u, base.image)
        return rise - float(np.vdot(base.gradient, u - base.u))

    def _decreased_lipschitz(self, side: Side, state: Accelerated, trial: _Trial) -> float:
        """'dec': L for the next step."""
        smaller = max(trial.lipschitz / state.decrease, MIN_LIPSCHITZ)
        room = not self._is_careful(side) or trial.curvature <= smaller
        return smaller if self.dec and room else trial.lipschitz

    def _goes_uphill(self, side: Side, state: Accelerated, trial: _Trial, n_iter: int) -> bool:
        """'re' and 'mt': whether the step goes uphill and a restart is allowed."""
        allowed = n_iter > state.restart_at + (state.patience if self.mt else 0)
        if not self.re or not allowed or trial.base.t <= 1.0:
            return False
        moved = trial.u - state.u
        slope = float(np.vdot(trial.base.gradient, moved))
        rise = slope + side.penalty_value(trial.u) - side.penalty_value(state.u)
        size = float(np.linalg.norm(trial.base.gradient)) * float(np.linalg.norm(moved))
        return rise > SLOPE_ROUNDING * size

    def _restarted(self, state: Accelerated, fresh: Accelerated) -> Accelerated:
        """The state at the last point, without momentum."""
        pull = self.stability if self.st else 1.0
        return replace(
            fresh,
            u_old=state.u,
            image_old=state.image,
            response_old=state.response,
            t=0.0,
            restart_at=fresh.n_iter,
            restarts=state.restarts + 1,
            extrapolation=0.0,
            patience=2 * state.patience,
            decrease=pull * state.decrease + (1.0 - pull),
        )


@dataclass(frozen=True)
class GuaranteedProximalGradient(AcceleratedProximalGradient):
    """Algorithm 3: with restarts, and the rate ``O((log k / k)^2)``.

    Takes the parameters of `AcceleratedProximalGradient`.
    """

    re: bool = True
    mt: bool = True
    st: bool = True

    name: ClassVar[str] = "fapg-guaranteed"


@dataclass(frozen=True)
class FastProximalGradient(GuaranteedProximalGradient):
    """Algorithm 4, the practical one: t does not depend on L, which every tenth step tests.

    Takes the parameters of `AcceleratedProximalGradient`, and

    careful : bool, optional
        Test L in each step by a Bregman divergence, and decrease it only if the measured curvature
        allows. By default on the primal side, where a test needs no product with the data and L
        would otherwise fall below the curvature; False is the printed method.

    Notes
    -----
    On the dual side this is the printed method, which can cycle: L may be too small in the nine
    steps between two tests. The certificate then reports the gap that was reached.
    """

    bt_every: int = 10
    careful: bool | None = None

    name: ClassVar[str] = "fapg"
    coupled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_flags(self, "careful", optional=True)

    def _is_careful(self, side: Side) -> bool:
        return isinstance(side, PrimalSide) if self.careful is None else self.careful


@dataclass(frozen=True)
class FastProximalGradientStar(GuaranteedProximalGradient):
    """Algorithm 3 with two products with the data an iteration, and a test without cancellation.

    ``F <= Q`` is tested as a Bregman divergence, in closed form, and the prox of the whole
    conjugate of the loss is used, so that no floor ``xi`` is needed. Takes the parameters of
    `AcceleratedProximalGradient`.
    """

    name: ClassVar[str] = "fapg-star"
    allowed_rise: ClassVar[float] = 1e-12
    whole: ClassVar[bool] = True

    def _is_careful(self, side: Side) -> bool:
        return True
