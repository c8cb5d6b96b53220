"""FAPG: the practical fast accelerated proximal gradient method of Ito et al. (2017)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from proxmargin.losses.base import Array
from proxmargin.problem import Point, PrimalSide, Problem
from proxmargin.solvers.base import ROOM, Solver, State, require
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["FastProximalGradient", "Restarting"]


@dataclass(frozen=True, eq=False)
class Restarting(State):
    """The state of FAPG.

    Attributes
    ----------
    u, u_old, z, z_old : arrays
        Last two iterates (coefficients, then the intercept as the last row) and their scores.
    base, base_z : arrays
        The extrapolated point beta of the next step, and its scores.
    t, lipschitz, bound, decrease : float
        Nesterov's sequence, L, the constant L never needs to exceed, eta_d.
    restart_at, patience : int
        No restart before iteration ``restart_at + patience``; patience doubles at each restart.
    """

    u: Array = None  # type: ignore[assignment]
    u_old: Array = None  # type: ignore[assignment]
    z: Array = None  # type: ignore[assignment]
    z_old: Array = None  # type: ignore[assignment]
    base: Array = None  # type: ignore[assignment]
    base_z: Array = None  # type: ignore[assignment]
    t: float = 1.0
    lipschitz: float = 1.0
    bound: float = np.inf
    decrease: float = 1.1
    restart_at: int = 0
    patience: int = 2
    objective: float = np.inf


@dataclass(frozen=True, eq=False)
class _Trial:
    """A proximal step, its L, and the curvature of f met along it (zero when not measured)."""

    u: Array
    z: Array
    lipschitz: float
    curvature: float


@dataclass(frozen=True)
class FastProximalGradient(Solver[Restarting]):
    """Algorithm 4: backtracking, decreasing L, restarts, and the two rules that keep them stable.

    Parameters
    ----------
    bt_every : int
        Iterations between two backtracking tests. The paper tests every 10th, because on the dual
        side a test costs a product with the data; on the primal side it costs none, and testing
        always keeps L from sinking below what the step needs.
    growth, decrease : float > 1
        eta_u and eta_d.
    dec, re, mt, st : bool
        The strategies: let L decrease, restart, wait twice as long after each restart, and pull
        eta_d towards 1 at each restart (by ``stability``).
    measured : bool
        Let L decrease only when the curvature met by the last tested step leaves room for it.
        The paper decreases L always; the next test then fails at about every step, and each
        failure costs a product with the data.
    patience : int
        K_1, the iterations before the first restart.
    scaled : bool
        Work in coordinates of unit scale (`Problem.scaled_side`), so that one step length suits
        every feature whatever its units.
    """

    bt_every: int = 1
    growth: float = 1.1
    decrease: float = 1.1
    stability: float = 0.8
    patience: int = 2
    dec: bool = True
    re: bool = True
    mt: bool = True
    st: bool = True
    measured: bool = True
    scaled: bool = True

    name: ClassVar[str] = "fapg"
    needs: ClassVar[Trait] = Trait.SMOOTH

    def __post_init__(self) -> None:
        require(self.bt_every >= 1, "bt_every must be an integer >= 1", self.bt_every)
        require(self.growth > 1, "growth must be > 1", self.growth)
        require(self.decrease >= 1, "decrease must be >= 1", self.decrease)
        require(0 <= self.stability <= 1, "stability must be in [0, 1]", self.stability)
        require(self.patience >= 1, "patience must be >= 1", self.patience)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Restarting:
        side = self._side(problem)
        u = side.pack(start)
        z = side.scores(u)
        bound = side.curvature_bound()
        return Restarting(
            u=u,
            u_old=u,
            z=z,
            z_old=z,
            base=u,
            base_z=z,
            # the mean of the samples' own constants over their number: small, and soon grown
            lipschitz=bound / max(problem.loss.sample_count, 1.0),
            bound=bound,
            decrease=self.decrease,
            patience=self.patience,
            objective=problem.loss.value(z) + side.penalty_value(u),
        )

    def step(self, problem: Problem, state: Restarting) -> Restarting:
        side = self._side(problem)
        _, dual = side.loss.value_and_gradient(state.base_z)
        gradient = side.pull_back(dual)
        n_iter = state.n_iter + 1
        tested = (n_iter - 1) % self.bt_every == 0
        trial = self._proximal_step(side, state, gradient, dual, tested)
        u, z = trial.u, trial.z
        objective = problem.loss.value(z) + side.penalty_value(u)
        moved = u - state.u
        size = float(np.linalg.norm(moved))
        fresh = replace(
            state,
            n_iter=n_iter,
            lipschitz=self._decreased(state, trial),
            objective_change=(state.objective - objective) / (1.0 + abs(state.objective)),
            point_change=size / (1.0 + float(np.linalg.norm(state.u))),
            finished=size == 0.0 and bool(np.array_equal(u, state.base)),
        )
        if self._restarts(side, state, n_iter, gradient, moved, u):
            return self._restarted(state, fresh)
        t = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * state.t**2))
        weight = (state.t - 1.0) / t
        return replace(
            fresh,
            u=u,
            u_old=state.u,
            z=z,
            z_old=state.z,
            base=u + weight * moved,
            base_z=z + weight * (z - state.z),
            t=t,
            objective=objective,
        )

    def point(self, problem: Problem, state: Restarting) -> Point:
        return self._side(problem).unpack(state.u)

    def scores(self, problem: Problem, state: Restarting) -> Array:
        return state.z

    def _side(self, problem: Problem) -> PrimalSide:
        return problem.scaled_side if self.scaled else problem.primal_side

    def _proximal_step(
        self, side: PrimalSide, state: Restarting, gradient: Array, dual: Array, tested: bool
    ) -> _Trial:
        lipschitz = state.lipschitz
        while True:
            u = side.prox(state.base - gradient / lipschitz, 1.0 / lipschitz)
            z = side.scores(u)
            moved = u - state.base
            length = float(np.vdot(moved, moved))
            if not tested or length == 0.0:
                return _Trial(u, z, lipschitz, 0.0)
            # F <= Q as a Bregman divergence: it keeps its digits where F - Q has none
            curvature = 2.0 * side.loss.fenchel_young(z, dual) / length
            if curvature <= lipschitz or lipschitz >= ROOM * state.bound:
                return _Trial(u, z, lipschitz, curvature)
            lipschitz = min(self.growth * lipschitz, ROOM * state.bound)

    def _decreased(self, state: Restarting, trial: _Trial) -> float:
        """L for the next step: smaller by eta_d, when the step just taken had room for it."""
        smaller = trial.lipschitz / state.decrease
        room = not self.measured or trial.curvature <= smaller
        return smaller if self.dec and room else trial.lipschitz

    def _restarts(
        self,
        side: PrimalSide,
        state: Restarting,
        n_iter: int,
        gradient: Array,
        moved: Array,
        u: Array,
    ) -> bool:
        """Whether the step went uphill along the last direction, and restarting is allowed."""
        if not self.re or n_iter <= state.restart_at + (state.patience if self.mt else 0):
            return False
        rise = float(np.vdot(gradient, moved)) + side.penalty_value(u) - side.penalty_value(state.u)
        return rise > 0.0 and state.t > 1.0

    def _restarted(self, state: Restarting, fresh: Restarting) -> Restarting:
        """Go back to the last iterate without momentum."""
        pull = self.stability if self.st else 1.0
        return replace(
            fresh,
            base=state.u,
            base_z=state.z,
            u_old=state.u,
            z_old=state.z,
            t=1.0,
            restart_at=fresh.n_iter,
            patience=2 * state.patience,
            decrease=pull * state.decrease + (1.0 - pull),
        )
