"""The methods of Xu et al. (2015): proximal gradient, in one stage or two, and its rival, GCD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from proxmargin.compiled.rounding import EPS
from proxmargin.compiled.solvers import sweeps
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.composite import PrimalForm, primal_form
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.solver import (
    LIPSCHITZ_MARGIN,
    RelativeChange,
    Solver,
    State,
    Stop,
    check_flags,
    check_numbers,
)
from proxmargin.solvers.shared.working_set import Restricted, WorkingSet


@dataclass(frozen=True, eq=False, kw_only=True)
class Momentum(State):
    """The state of a proximal gradient method with extrapolation."""

    # u, u_old: (n_features + 1, n_outputs): The last two iterates; the last row is the intercept
    u: Array
    u_old: Array
    # z, z_old: (n_samples, n_outputs): Their scores. Scores of extrapolated points are combinations
    # of these, so that an iteration costs one product with X and one with X'
    z: Array
    z_old: Array
    t: float = 1.0  # Nesterov's sequence
    lipschitz: float = 1.0  # L_k
    bound: float = np.inf  # upper bound of the Lipschitz constant
    objective: float = np.inf  # F(u)
    extrapolation: float = 0.0  # the weight omega of the step to u


class _ProximalStep(NamedTuple):
    """From an extrapolated point."""

    u: Array
    z: Array
    lipschitz: float
    extrapolation: float


@dataclass(frozen=True)
class ProximalGradient(Solver[Momentum]):
    """Accelerated proximal gradient with a growing step constant (B-PGH).

    Parameters
    ----------
    backtracking : bool
        Increase ``L_k`` by the factor ``eta`` from ``L_0 = 2 L_f / n`` until (11) holds, up to L_f
        of (8); with False, ``L_k = L_f``.
    monotone : bool
        Repeat the step without extrapolation whenever the objective rises (line 6).
    extrapolate : bool
        With False, ``omega = 0``: the plain method of the two-stage method's first stage.
    omega : float in [0, 1], optional
        A weight in place of Nesterov's, lowered as it is to the ``sqrt(L_{k-1} / L_k)`` up to which
        Theorem 1 holds.
    eta : float > 1
    first_lipschitz : float > 0, optional
        L_0 in place of the paper's, for the objective with losses averaged over the samples; at
        most L_f, as the method never decreases it: from far above steps are so short that rule
        (20) holds anywhere.

    Notes
    -----
    (11) is tested as a Bregman divergence, ``f(u) - f(u^) - <f'(u^), u - u^> <= (L/2)|u - u^|^2``,
    whose left form is a sum of Fenchel-Young terms in closed form: it is accurate near the optimum,
    where a difference of objective values cancels.
    """

    backtracking: bool = True
    monotone: bool = True
    extrapolate: bool = True
    omega: float | None = None
    eta: float = 1.5
    first_lipschitz: float | None = None

    name: ClassVar[str] = "b-pgh"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.SINGLE_OUTPUT
    first_share: ClassVar[float] = 2.0
    """``L_0 = first_share * L_f / n``."""

    def __post_init__(self) -> None:
        check_flags(self, "backtracking", "monotone", "extrapolate")
        check_numbers(self, "eta", above=1)
        check_numbers(self, "omega", least=0, most=1, optional=True)
        check_numbers(self, "first_lipschitz", above=0, optional=True)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Momentum:
        form = primal_form(problem)
        u = form.start(start)
        z = form.forward(u)
        bound = form.curvature_bound()
        lipschitz = self._first_lipschitz(problem, form, bound) if self.backtracking else bound
        objective = problem.loss.value(z) + form.penalty_value(u)
        return Momentum(
            u=u, u_old=u, z=z, z_old=z, lipschitz=lipschitz, bound=bound, objective=objective
        )

    def _first_lipschitz(self, problem: Problem, form: PrimalForm, bound: float) -> float:
        """L_0 of 3.1.1 and 3.2, at most the bound."""
        if self.first_lipschitz is not None:
            return min(self.first_lipschitz, bound)
        printed = form.printed_curvature_bound()
        return min(self.first_share * printed / problem.loss.sample_count, bound)

    def step(self, problem: Problem, state: Momentum) -> Momentum:
        form = primal_form(problem)
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.t**2))
        weight = (state.t - 1.0) / t if self.omega is None else self.omega
        weight = weight if self.extrapolate else 0.0
        trial = self._search(form, state, weight)
        objective = problem.loss.value(trial.z) + form.penalty_value(trial.u)
        highest = state.objective + 4.0 * EPS * abs(state.objective)
        if self.monotone and self.extrapolate and objective > highest:
            trial = self._search(form, state, 0.0)
            objective = problem.loss.value(trial.z) + form.penalty_value(trial.u)
        moved = float(np.linalg.norm(trial.u - state.u))
        return replace(
            state,
            n_iter=state.n_iter + 1,
            u=trial.u,
            u_old=state.u,
            z=trial.z,
            z_old=state.z,
            t=t,
            lipschitz=trial.lipschitz,
            extrapolation=trial.extrapolation,
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=moved / (1.0 + float(np.linalg.norm(state.u))),
            finished=moved == 0.0 and weight == 0.0,
        )

    def point(self, problem: Problem, state: Momentum) -> Point:
        return primal_form(problem).point(state.u, state.z)

    def scores(self, problem: Problem, state: Momentum) -> Array:
        return state.z

    def measures(self, state: Momentum) -> Mapping[str, float]:
        return {
            "objective": state.objective,
            "step_constant": state.lipschitz,
            "extrapolation": state.extrapolation,
        }

    def _search(self, form: PrimalForm, state: Momentum, weight: float) -> _ProximalStep:
        """Steps (9) with L increased by eta until (11) holds or L is the Lipschitz constant."""
        lipschitz = state.lipschitz
        known_weight, gradient = -1.0, state.u
        while True:
            # omega_{k-1} = min((t_{k-1} - 1) / t_k, sqrt(L_{k-1} / L_k)), so it moves with L_k
            omega = float(min(weight, np.sqrt(state.lipschitz / lipschitz)))
            if omega != known_weight:
                base = state.u + omega * (state.u - state.u_old)
                base_scores = state.z + omega * (state.z - state.z_old)
                backward = form.backward(base_scores)
                gradient = backward.product
                known_weight = omega
            u = form.prox(base - gradient / lipschitz, 1.0 / lipschitz)
            z = form.forward(u)
            if not self.backtracking or lipschitz >= LIPSCHITZ_MARGIN * state.bound:
                return _ProximalStep(u, z, lipschitz, omega)
            moved = u - base
            square = float(np.vdot(moved, moved))
            if form.divergence(u, z, base, backward.partner) <= 0.5 * lipschitz * square:
                return _ProximalStep(u, z, lipschitz, omega)
            # (10), up to the bound; beyond it by `LIPSCHITZ_MARGIN`, for rounding
            margin = 1.0 if lipschitz < state.bound else LIPSCHITZ_MARGIN
            lipschitz = min(self.eta * lipschitz, margin * state.bound)


@dataclass(frozen=True)
class MulticlassProximalGradient(ProximalGradient):
    """M-PGH: the same method on all classes together, with ``L_0 = L_m / (n K)``. L_m of (13)
    carries a factor K that the block-diagonal Hessian does not need, and counts each sample in
    every class: the bound of L here is smaller."""

    name: ClassVar[str] = "m-pgh"
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MANY_OUTPUTS
    first_share: ClassVar[float] = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class TwoStageState(State):
    """Stage one until ``second`` is set; ``settled`` counts iterations that meet rule (20)."""

    first: Momentum
    second: Restricted | None = None
    settled: int = 0
    stop: Stop


@dataclass(frozen=True)
class TwoStage(Solver[TwoStageState]):
    """Stage one: plain steps with ``L_k = L_f`` until rule (20) holds at ``first_tol``. Stage two:
    B-PGH on the support found.

    The paper stops there. Its support can be wrong, so here stage two prices all features, adds
    those that violate the optimality conditions, and repeats until none does.

    Parameters
    ----------
    first_tol : float
        Tolerance of rule (20) in stage one.
    eta, first_lipschitz : float
        Of stage two, as for `ProximalGradient`: stage one takes ``L_k = L_f`` throughout. L_f is
        that of the features of stage two.
    repair : bool
        With False the printed method, which ends with the support of stage one: the certificate, of
        the whole problem, says how wrong that is.
    """

    first_tol: float = 1e-3
    repair: bool = True
    eta: float = 1.5
    first_lipschitz: float | None = None

    method: ClassVar[type[ProximalGradient]] = ProximalGradient
    """The method of both stages."""

    name: ClassVar[str] = "b-pgh-2"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.SINGLE_OUTPUT

    def __post_init__(self) -> None:
        check_numbers(self, "first_tol", above=0)
        check_flags(self, "repair")
        self.method(eta=self.eta, first_lipschitz=self.first_lipschitz)  # checks these settings

    @property
    def stage_one(self) -> ProximalGradient:
        return self.method(backtracking=False, extrapolate=False)

    @property
    def stage_two(self) -> WorkingSet:
        inner = self.method(eta=self.eta, first_lipschitz=self.first_lipschitz)
        return WorkingSet(inner, fixed=not self.repair)

    def init(self, problem: Problem, start: Point, stop: Stop) -> TwoStageState:
        return TwoStageState(first=self.stage_one.init(problem, start, stop), stop=stop)

    def step(self, problem: Problem, state: TwoStageState) -> TwoStageState:
        if state.second is None:
            return self._first_step(problem, state)
        second = self.stage_two.step(problem, state.second)
        return replace(
            state,
            second=second,
            n_iter=state.first.n_iter + second.n_iter,
            finished=second.finished,
            interrupted=second.interrupted,
            objective_change=second.objective_change,
            point_change=second.point_change,
        )

    def observe(self, problem: Problem, state: TwoStageState, gap: Gap) -> TwoStageState:
        if state.second is None:
            return state
        return replace(state, second=self.stage_two.observe(problem, state.second, gap))

    def measures(self, state: TwoStageState) -> Mapping[str, float]:
        if state.second is None or state.second.n_iter == 0:
            return self.stage_one.measures(state.first)
        return self.stage_two.measures(state.second)

    def point(self, problem: Problem, state: TwoStageState) -> Point:
        if state.second is None:
            return self.stage_one.point(problem, state.first)
        return self.stage_two.point(problem, state.second)

    def scores(self, problem: Problem, state: TwoStageState) -> Array | None:
        return None if state.second else state.first.z

    def _first_step(self, problem: Problem, state: TwoStageState) -> TwoStageState:
        first = self.stage_one.step(problem, state.first)
        rule = RelativeChange(self.first_tol)
        settled = state.settled + 1 if rule.met(first) else 0
        moved = replace(state, first=first, settled=settled, n_iter=first.n_iter)
        if settled < rule.times and np.any(first.u[:-1]):
            return moved
        start = self.stage_one.point(problem, first)
        return replace(moved, second=self.stage_two.init(problem, start, state.stop))


@dataclass(frozen=True)
class MulticlassTwoStage(TwoStage):
    """M-PGH-2: the same on all classes together."""

    method: ClassVar[type[ProximalGradient]] = MulticlassProximalGradient

    name: ClassVar[str] = "m-pgh-2"
    needs: ClassVar[Trait] = Trait.SMOOTH | Trait.MANY_OUTPUTS


@dataclass(frozen=True, eq=False, kw_only=True)
class SweepState(State):
    coef: Array  # (n_features,)
    intercept: float = 0.0
    scores: Array  # (n_samples,): Scores including the offset
    major: Array  # (n_features,): Curvature majorants ``M_j = smoothness * sum_i weights_i x_ij^2``
    objective: float = np.inf  # F of the point


@dataclass(frozen=True)
class CoordinateDescent(Solver[SweepState]):
    """Sweeps of ``w_j <- soft(M_j w_j - f'_j, l1) / (M_j + l2)`` and the same for the intercept.

    ``M_j`` majorises the curvature along coordinate j, so that every step decreases the objective.
    The scores are updated after every step; a sweep reads every column once or twice. Columns of
    C-ordered data are strided and slow to read: a `WorkingSet` copies those in use to Fortran
    order.
    """

    name: ClassVar[str] = "gcd"
    rules: ClassVar[tuple[str, ...]] = ("relative-change",)
    needs: ClassVar[Trait] = (
        Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET
    )
    reads_columns: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        if not problem.design.has_columns:
            return "it reads single columns, which are dense in standardised sparse data"
        return super().objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> SweepState:
        loss = problem.margins
        bare = (problem.design.scores(start.coef) + start.intercept)[:, 0]
        squares = problem.design.column_squares(
            loss.weights[:, 0], np.zeros(problem.design.n_features)
        )
        return SweepState(
            coef=start.coef[:, 0].copy(),
            intercept=float(start.intercept[0]),
            scores=bare + problem.offset,
            major=loss.phi.smoothness * squares,
            objective=_objective(problem, bare + problem.offset, start),
        )

    def step(self, problem: Problem, state: SweepState) -> SweepState:
        loss = problem.margins
        coef, scores = state.coef.copy(), state.scores.copy()
        data = problem.design.sweep_data()
        sweep: Any = sweeps.sweep_dense if data[0].ndim == 2 else sweeps.sweep_sparse
        signs, weights = loss.signs[:, 0], loss.weights[:, 0]
        sweep(loss.phi.scalars, *data, signs, weights, coef, scores, state.major, problem.net)
        problem.design.counter.add(2.0 * problem.design.share)
        intercept = self._moved_intercept(problem, scores, state.intercept)
        scores += intercept - state.intercept
        moved = np.hypot(np.linalg.norm(coef - state.coef), intercept - state.intercept)
        size = np.hypot(np.linalg.norm(state.coef), state.intercept)
        here = Point(coef[:, None], np.array([intercept]))
        objective = _objective(problem, scores, here)
        return replace(
            state,
            n_iter=state.n_iter + 1,
            coef=coef,
            intercept=intercept,
            scores=scores,
            objective=objective,
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=float(moved / (1.0 + size)),
            finished=bool(moved == 0.0),
        )

    def point(self, problem: Problem, state: SweepState) -> Point:
        return Point(state.coef[:, None], np.array([state.intercept]))

    def scores(self, problem: Problem, state: SweepState) -> Array | None:
        # subtracting the offset would add rounding
        return None if problem.offset.any() else state.scores[:, None]

    def measures(self, state: SweepState) -> Mapping[str, float]:
        return {"objective": state.objective}

    def _moved_intercept(self, problem: Problem, scores: Array, intercept: float) -> float:
        """The intercept after its majorised step; its column is all ones."""
        loss = problem.margins
        _, dual = loss.value_and_gradient(scores[:, None])
        step = 1.0 / loss.phi.smoothness
        trial = np.array([[intercept - step * float(dual.sum())]])
        return float(problem.intercept.prox(trial, step)[0, 0])


def _objective(problem: Problem, scores: Array, point: Point) -> float:
    penalties = problem.penalty.value(point.coef) + problem.intercept.value(point.intercept[None])
    return problem.margins.value(scores[:, None]) + penalties
