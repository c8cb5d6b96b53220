"""The accelerated proximal gradient methods of Ito et al. (2017), on a problem or its dual.

One iteration serves them all. With ``T_L(b) = prox_{g/L}(b - f'(b) / L)``,

    base_k  = u_{k-1} + ((t_{k-1} - 1) / t_k) (u_{k-1} - u_{k-2})
    u_k     = T_{L_k}(base_k),  L_k growing by eta_u until F(u_k) <= Q(u_k; base_k)   ('bt')
    L_{k+1} = L_k / eta_d                                                             ('dec')
    return to u_{k-1} without momentum if the step goes uphill                        ('re')
    with at least K_i iterations between restarts, K_{i+1} = 2 K_i                    ('mt')
    and eta_d moved towards 1 at each restart                                         ('st')

Products with the data are affine in u, so that those at ``base_k`` are combinations of those at the
last two points: an iteration costs one product for each trial and one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from proxmargin.compiled.rounding import SLOPE_ROUNDING, TINY
from proxmargin.functions.traits import Trait
from proxmargin.optimality.composite import (
    Backward,
    CompositeForm,
    PrimalForm,
    fenchel_dual,
    lives_on_the_dual,
    primal_form,
    scaled_form,
)
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.solver import (
    LIPSCHITZ_MARGIN,
    OVERRUN,
    FixedPoint,
    IterateChange,
    PointResidual,
    RelativeChange,
    Solver,
    State,
    StepResidual,
    Stop,
    at_least_one,
    check_flags,
    check_numbers,
)
from proxmargin.solvers.papers.primal_dual import operator_norm

RESIDUAL_RULES = (StepResidual.name, FixedPoint.name, PointResidual.name)
MIN_LIPSCHITZ = 1e-100  # outside of this range the step length 1 / L overflows or underflows
MAX_LIPSCHITZ = 1e200
PROGRESS = 0.01  # relative fall of F by which a run still moves, whatever its gap


@dataclass(frozen=True, eq=False, kw_only=True)
class Accelerated(State):
    """The state of an accelerated method: its last two points, and the scalars of the strategies.
    ``forward`` and ``backward`` are the products of `CompositeForm` at the points, the latter only
    where they are affine; ``bound`` bounds the Lipschitz constant; ``mark`` is F at `moved_at`."""

    u: Array
    u_old: Array
    forward: Array
    forward_old: Array
    backward: Backward | None = None
    backward_old: Backward | None = None
    t: float = 0.0
    extrapolation: float = 0.0  # the weight of the last step
    lipschitz: float = 1.0  # L_{k-1} of the last step
    next_lipschitz: float = 1.0  # with which the next search starts
    bound: float = np.inf
    decrease: float = 1.1  # eta_d
    restart_at: int = 0  # no restart before iteration ``restart_at + patience``
    patience: int = 2
    restarts: int = 0
    objective: float = np.inf  # F(u)
    penalty: float = 0.0  # g(u)
    lowest: float = np.inf  # F so far, and the last iteration close to it (`allowed_rise`)
    lowest_at: int = 0
    mark: float = np.inf
    stop: Stop = field(default_factory=Stop)  # a search that is late takes the bound for L
    step_residual: float = np.inf  # those of `StepResidual` and `FixedPoint`, where they are due
    point_residual: float = np.inf
    iterate_change: float = np.inf  # ``|W_old - W_new| / |W_old|``, of `Fista`


class _Base(NamedTuple):
    """The extrapolated point of a step, with its products, gradient, t and weight."""

    u: Array
    forward: Array
    backward: Backward
    gradient: Array
    t: float
    weight: float


class _Trial(NamedTuple):
    """A proximal step, with the curvature of f along it; zero if that was not tested."""

    u: Array
    forward: Array
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
        form = self._form(problem)
        u = form.start(start) if self.first_point is None else form.uniform(self.first_point)
        forward, bound = form.forward(u), self._curvature_bound(form)
        backward = form.backward(forward) if form.is_linear_backward else None
        first = self.first_lipschitz or min(form.first_curvature(forward), bound)
        first = first if self.bt else bound
        penalty = form.penalty_value(u)
        return Accelerated(
            u=u,
            u_old=u,
            forward=forward,
            forward_old=forward,
            backward=backward,
            backward_old=backward,
            lipschitz=first,
            next_lipschitz=first,
            bound=bound,
            decrease=self.decrease,
            patience=self.patience,
            objective=form.smooth_value(u, forward) + penalty,
            penalty=penalty,
            stop=stop,
        )

    def step(self, problem: Problem, state: Accelerated) -> Accelerated:
        form, n_iter = self._form(problem), state.n_iter + 1
        due = (n_iter - 1) % self.bt_every == 0 or self._is_careful(form)
        trial = self._search(form, state, tested=due and self.bt)
        base, penalty = trial.base, form.penalty_value(trial.u)
        objective = form.smooth_value(trial.u, trial.forward) + penalty
        size = float(np.linalg.norm(trial.u - state.u))
        low = n_iter == 1 or objective <= state.lowest + self.allowed_rise * abs(state.lowest)
        lowest_at = n_iter if low else state.lowest_at
        cycles = n_iter - lowest_at > max(self.max_stalled, n_iter // 2)
        fallen = n_iter == 1 or objective < state.mark - PROGRESS * abs(state.mark)
        stays = not trial.lipschitz < MAX_LIPSCHITZ or np.array_equal(trial.u, base.u)
        fresh = state.but(
            n_iter=n_iter,
            mark=objective if fallen else state.mark,
            moved_at=n_iter if fallen or np.isinf(self.max_stalled) else state.moved_at,
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=size / (1.0 + float(np.linalg.norm(state.u))),
            finished=stays or cycles,
            lowest=min(state.lowest, objective),
            lowest_at=lowest_at,
            lipschitz=trial.lipschitz,
            next_lipschitz=self._decreased_lipschitz(form, state, trial),
        )
        rule, ends = state.stop.rule, False
        if rule is not None and rule.name in RESIDUAL_RULES:
            fresh = self._with_residuals(form, trial, fresh)
            ends = rule.met(fresh)  # the printed algorithms stop before they restart
        if not ends and self._goes_uphill(state, trial, penalty, n_iter):
            return self._restarted(state, fresh)
        return fresh.but(
            u=trial.u,
            u_old=state.u,
            forward=trial.forward,
            forward_old=state.forward,
            backward=form.backward(trial.forward) if form.is_linear_backward else None,
            backward_old=state.backward,
            t=base.t,
            extrapolation=base.weight,
            objective=objective,
            penalty=penalty,
        )

    def point(self, problem: Problem, state: Accelerated) -> Point:
        return self._form(problem).point(state.u, state.forward)

    def scores(self, problem: Problem, state: Accelerated) -> Array | None:
        return self._form(problem).scores(state.forward, state.backward)

    def dual(self, problem: Problem, state: Accelerated) -> Array | None:
        return self._form(problem).dual(state.u)

    def measures(self, state: Accelerated) -> Mapping[str, float]:
        return {
            "objective": state.objective,
            "step_constant": state.lipschitz,
            "extrapolation": state.extrapolation,
            "restarts": state.restarts,
        }

    def _is_careful(self, form: CompositeForm) -> bool:
        """Whether L is tested in each step by a Bregman divergence, and decreased only if that
        allows. The printed methods compare values of F and Q, whose difference cancels near the
        optimum, and decrease L after each step."""
        return False

    def _curvature_bound(self, form: CompositeForm) -> float:
        return form.curvature_bound()

    def _form(self, problem: Problem) -> CompositeForm:
        if lives_on_the_dual(problem):
            return fenchel_dual(problem, whole=self.whole, floor=0.0 if self.whole else self.floor)
        return scaled_form(problem) if self.scaled else primal_form(problem)

    def _search(self, form: CompositeForm, state: Accelerated, tested: bool) -> _Trial:
        """'bt': the step, with L increased until the quadratic model at the base bounds F."""
        lipschitz, most = state.next_lipschitz, LIPSCHITZ_MARGIN * state.bound
        base = self._base(form, state, lipschitz)
        while True:
            if not np.isfinite(base.gradient).all():
                return _Trial(state.u, state.forward, base, MAX_LIPSCHITZ, 0.0)
            u = form.prox(base.u - base.gradient / lipschitz, 1.0 / lipschitz)
            forward = form.forward(u)
            moved = u - base.u
            square = float(np.vdot(moved, moved))
            if not tested or square == 0.0:
                return _Trial(u, forward, base, lipschitz, 0.0)
            if self._is_careful(form):
                rise = form.divergence(u, forward, base.u, base.backward.partner)
            else:
                rise = form.smooth_value(u, forward) - form.smooth_value(base.u, base.forward)
                rise -= float(np.vdot(base.gradient, moved))
            curvature = 2.0 * rise / square
            if curvature <= lipschitz or lipschitz >= min(most, MAX_LIPSCHITZ):
                return _Trial(u, forward, base, lipschitz, curvature)
            # a search from far below takes a product a trial, and the bound needs none; searches
            # that are not long end as without a limit, so that a fit resumes on its trajectory
            late = state.stop.is_late(-OVERRUN) and np.isfinite(most)
            known = curvature if self._is_careful(form) else 0.0  # no smaller L will do
            lipschitz = most if late else min(max(self.growth * lipschitz, known), most)
            if self.coupled:
                base = self._base(form, state, lipschitz)

    def _base(self, form: CompositeForm, state: Accelerated, lipschitz: float) -> _Base:
        """The extrapolated point; in Algorithms 1 and 3 t depends on the ratio of the L."""
        ratio = lipschitz / state.lipschitz if self.coupled else 1.0
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * ratio * state.t**2))
        weight = (state.t - 1.0) / t if state.t > 0 else 0.0
        u = state.u + weight * (state.u - state.u_old)
        forward = state.forward + weight * (state.forward - state.forward_old)
        if state.backward is None or state.backward_old is None:
            backward = form.backward(forward)
        else:
            backward = state.backward.moved(state.backward_old, weight)
        return _Base(u, forward, backward, form.gradient(u, backward), t, weight)

    def _decreased_lipschitz(self, form: CompositeForm, state: Accelerated, trial: _Trial) -> float:
        """'dec': L for the next step."""
        smaller = max(trial.lipschitz / state.decrease, MIN_LIPSCHITZ)
        room = not self._is_careful(form) or trial.curvature <= smaller
        return smaller if self.dec and room else trial.lipschitz

    def _with_residuals(
        self, form: CompositeForm, trial: _Trial, fresh: Accelerated
    ) -> Accelerated:
        """The state with the quantities of `StepResidual` and `FixedPoint`."""
        lipschitz, rule, residual = trial.lipschitz, fresh.stop.rule, np.inf
        if isinstance(rule, FixedPoint) and rule.is_due(fresh.n_iter):
            gradient = form.gradient(trial.u, form.backward(trial.forward))
            there = form.prox(trial.u - gradient / lipschitz, 1.0 / lipschitz)
            residual = lipschitz * float(np.linalg.norm(there - trial.u))
        step_residual = lipschitz * float(np.linalg.norm(trial.u - trial.base.u))
        return fresh.but(step_residual=step_residual, point_residual=residual)

    def _goes_uphill(self, state: Accelerated, trial: _Trial, penalty: float, n_iter: int) -> bool:
        """'re' and 'mt': whether the step goes uphill and a restart is allowed."""
        allowed = n_iter > state.restart_at + (state.patience if self.mt else 0)
        if not self.re or not allowed or trial.base.t <= 1.0:
            return False
        moved, gradient = trial.u - state.u, trial.base.gradient
        slope = float(np.vdot(gradient, moved))
        rise = slope + penalty - state.penalty
        return rise > SLOPE_ROUNDING * float(np.linalg.norm(gradient) * np.linalg.norm(moved))

    def _restarted(self, state: Accelerated, fresh: Accelerated) -> Accelerated:
        """The state at the last point, without momentum; 'st' moves eta_d towards 1."""
        kept = self.stability if self.st else 1.0
        return fresh.but(
            u_old=state.u,
            forward_old=state.forward,
            backward_old=state.backward,
            t=0.0,
            restart_at=fresh.n_iter,
            restarts=state.restarts + 1,
            extrapolation=0.0,
            patience=2 * state.patience,
            decrease=kept * state.decrease + (1.0 - kept),
        )


@dataclass(frozen=True)
class GuaranteedProximalGradient(AcceleratedProximalGradient):
    """Algorithm 3: with restarts, and the rate ``O((log k / k)^2)``. Takes the parameters of
    `AcceleratedProximalGradient`."""

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

    def _is_careful(self, form: CompositeForm) -> bool:
        return isinstance(form, PrimalForm) if self.careful is None else self.careful


@dataclass(frozen=True)
class FastProximalGradientStar(GuaranteedProximalGradient):
    """Algorithm 3 with two products with the data an iteration, and a test without cancellation.
    ``F <= Q`` is tested as a Bregman divergence, in closed form, and the prox of the whole
    conjugate of the loss is used, so that no floor ``xi`` is needed. Takes the parameters of
    `AcceleratedProximalGradient`."""

    name: ClassVar[str] = "fapg-star"
    allowed_rise: ClassVar[float] = 1e-12
    whole: ClassVar[bool] = True

    def _is_careful(self, form: CompositeForm) -> bool:
        return True


@dataclass(frozen=True)
class Fista(AcceleratedProximalGradient):
    """FISTA of Beck and Teboulle (2009), which Chierchia et al. (2015, 4.2) run on (19):

        u_k = T_L(v_k),   t_{k+1} = (1 + sqrt(1 + 4 t_k^2)) / 2
        v_{k+1} = u_k + ((t_k - 1) / t_{k+1}) (u_k - u_{k-1})

    on the primal side, with L the largest curvature of a sample times the squared norm of the data
    with their column of ones. Takes the parameters of `AcceleratedProximalGradient`; with
    ``bt=True`` it is their form with backtracking."""

    bt: bool = False
    dec: bool = False
    scaled: bool = False
    max_stalled: float = np.inf

    name: ClassVar[str] = "fista"
    needs: ClassVar[Trait] = Trait.SMOOTH
    rules: ClassVar[tuple[str, ...]] = (
        *AcceleratedProximalGradient.rules,
        IterateChange.name,
    )

    def objection(self, problem: Problem) -> str | None:
        return Solver.objection(self, problem)

    def step(self, problem: Problem, state: Accelerated) -> Accelerated:
        fresh = super().step(problem, state)
        size = float(np.linalg.norm(state.u[:-1]))
        moved = float(np.linalg.norm(fresh.u[:-1] - state.u[:-1]))
        return fresh.but(iterate_change=moved / size if size > 0 else np.inf)

    def _form(self, problem: Problem) -> PrimalForm:
        return scaled_form(problem) if self.scaled else primal_form(problem)

    def _curvature_bound(self, form: CompositeForm) -> float:
        assert isinstance(form, PrimalForm)
        square = operator_norm(form.design, form.problem.fits_intercept) ** 2
        steepest = float(form.loss.row_curvatures.max(initial=0.0))
        return max(min(form.curvature_bound(), steepest * square), TINY)


@dataclass(frozen=True)
class ForwardBackward(Fista):
    """Forward-backward splitting, ``u_k = T_L(u_{k-1})``, which Chierchia et al. (2015, 4.2) run on
    (20); L and the parameters are those of `Fista`."""

    name: ClassVar[str] = "forward-backward"

    def _base(self, form: CompositeForm, state: Accelerated, lipschitz: float) -> _Base:
        return super()._base(form, state.but(t=0.0), lipschitz)
