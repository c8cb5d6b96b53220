"""FBPD: the primal-dual method of Chierchia et al. (2015), Algorithms 1 and 2.

With the scores ``z = X W + b`` and steps tau, sigma with ``tau sigma |T|^2 <= 1``, T the data with
their column of ones:

    W+ = prox of tau G at W - tau X'q          b+ = prox of tau B at b - tau 1'q
    q+ = prox of sigma L* at q + sigma (2 z+ - z)                                (Algorithm 1)

A loss within a budget gets a level zeta_i >= h_i(z_i) for each sample (Algorithm 2): the levels
are projected onto the half-space ``sum_i s_i zeta_i <= budget``, and rows with their levels onto
the epigraphs of the h_i. The two hats of the printed algorithm differ: ``y + sigma T(2 x+ - x)``
is projected, and the residual of the projection is the next y (Moreau).

Their rival states the budget by linear constraints, with a level for each class (section 4.2):

    sum_ik s_i zeta_ik <= K budget,  zeta_i1 = ... = zeta_iK >= 0,  (T W)_i + r_i - zeta_i <= 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np

from proxmargin.compiled.rounding import TINY
from proxmargin.data.designs.base import Design
from proxmargin.functions.losses.base import Loss
from proxmargin.functions.losses.classes.multinomial import CrammerSinger
from proxmargin.functions.losses.shifted import LevelSet
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.projections import hinge_epigraphs
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.solver import Solver, State, Stop, check_flags, check_numbers

POWER_ITERATIONS = 60  # for the estimate of |T|
NORM_MARGIN = 1.02  # factor on that estimate, which is a lower bound
RESTART_GAP = 0.3  # gap over that at the last restart, below which the method restarts


class Primal(NamedTuple):
    """Coefficients, intercept, their scores, and the levels: (n_samples,) in Algorithm 2, with
    linear constraints (n_samples, n_classes)."""

    coef: Array
    intercept: Array
    scores: Array
    levels: Array


class Dual(NamedTuple):
    """Multipliers of the scores (or of their differences), and of the levels."""

    rows: Array
    levels: Array


P = TypeVar("P", Primal, Dual)


@dataclass(frozen=True, eq=False, kw_only=True)
class PrimalDualState(State):
    primal: Primal
    dual: Dual
    # primal_sum, dual_sum, count: sums and number of the pairs since the last restart
    primal_sum: Primal
    dual_sum: Dual
    count: int = 0
    # primal_start, dual_start, gap_start: the pair and the gap at the last restart
    primal_start: Primal
    dual_start: Dual
    gap_start: float = np.inf
    averages: bool = False  # the average since then had the smaller gap at the last check
    norm: float = 1.0  # an upper bound of |T|
    ones: float = 1.0  # entry of the column of ones, squared: factor on the step of the intercept
    balance: float = 1.0  # ``sqrt(tau / sigma)``
    iterate_change: float = np.inf  # ``|W_old - W_new| / |W_old|``; infinite from zero
    compares: bool = False  # whether objectives are computed, for callbacks
    # Objective of the primal point, if computed; of a loss within a budget with its exact penalty
    # (`LevelSet`), infinite outside of a ball
    objective: float = np.nan
    tau: float = np.nan  # tau, sigma: Steps of the last iteration
    sigma: float = np.nan


class Splitting:
    """Algorithm 1: the dual step is the prox of the conjugate of the loss, without levels."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def squared_norm(self, square: float) -> float:
        """Of the linear map, from that of the data with a column of ones."""
        return max(square, TINY)

    def start(self, scores: Array, dual: Array | None) -> tuple[Array, Dual]:
        """First levels, and first dual variables, from a given dual point of the loss or zero."""
        empty = np.zeros(0)
        return empty, Dual(np.zeros_like(scores) if dual is None else dual, empty)

    def levels_step(self, levels: Array, dual: Dual, tau: float) -> Array:
        """The levels after a primal step."""
        return levels

    def dual_step(self, dual: Dual, scores: Array, levels: Array, sigma: float) -> Dual:
        """The dual variables after a step towards extrapolated scores and levels."""
        return Dual(self.loss.conjugate_prox(dual.rows + sigma * scores, sigma), levels)

    def dual_point(self, dual: Dual) -> Array:
        """The dual point of the loss, (n_samples, n_outputs)."""
        return dual.rows

    def proof(self, dual: Dual, intercept: Penalty) -> Array:
        """A dual point for the certificate, close to `dual_point` but with a smaller gap."""
        return dual.rows


class Epigraphs(Splitting):
    """Algorithm 2: differences ``z_i - z_iy``, with the levels of their hinges. The map to
    differences has squared norm K, the number of classes."""

    loss: CrammerSinger

    def __init__(self, loss: CrammerSinger, budget: float) -> None:
        super().__init__(loss)
        self.budget = budget
        self.codes, self.shares = loss.codes, loss.shares
        self.own = np.arange(loss.codes.size), loss.codes
        self.square = float(loss.shares @ loss.shares)

    def squared_norm(self, square: float) -> float:
        return max(self.loss.count * square, 1.0)

    def start(self, scores: Array, dual: Array | None) -> tuple[Array, Dual]:
        levels = np.full(self.codes.size, self.budget)
        return levels, Dual(np.zeros_like(scores), np.zeros_like(levels))

    def levels_step(self, levels: Array, dual: Dual, tau: float) -> Array:
        moved = levels - tau * dual.levels
        excess = max(float(self.shares @ moved) - self.budget, 0.0)
        return moved - (excess / self.square) * self.shares

    def dual_step(self, dual: Dual, scores: Array, levels: Array, sigma: float) -> Dual:
        rows = dual.rows + sigma * self.differences(scores)
        heights = dual.levels + sigma * levels
        nearest, nearest_levels = hinge_epigraphs(rows / sigma, heights / sigma, self.codes)
        return Dual(rows - sigma * nearest, heights - sigma * nearest_levels)

    def differences(self, scores: Array) -> Array:
        """``z_i - z_iy``, to the own class."""
        return scores - scores[self.own][:, None]

    def dual_point(self, dual: Dual) -> Array:
        point = dual.rows.copy()
        point[self.own] -= dual.rows.sum(axis=1)
        return point

    def proof(self, dual: Dual, intercept: Penalty) -> Array:
        """The dual point, balanced for the single multiplier nu of the budget."""
        point, nu = self.dual_point(dual), float(self.shares @ self.prices(dual)) / self.square
        return nu * self.loss.balanced(point / nu, intercept) if nu > 0 else np.zeros_like(point)

    def prices(self, dual: Dual) -> Array:
        """(n_samples,), at the optimum ``nu s_i``."""
        return -dual.levels


class LinearConstraints(Epigraphs):
    """A level for each class, in linear constraints alone. The half-space is projected onto in the
    primal step; the dual levels (2, n_samples, n_classes) are those of equal levels and of their
    signs. The map ``(W, zeta) -> (zeta, zeta, T W - zeta)`` has a squared norm of at most
    ``|T|^2 + 3``."""

    def squared_norm(self, square: float) -> float:
        return self.loss.count * square + 3.0

    def start(self, scores: Array, dual: Array | None) -> tuple[Array, Dual]:
        levels = np.full(scores.shape, self.budget)
        return levels, Dual(np.zeros_like(scores), np.zeros((2, *scores.shape)))

    def levels_step(self, levels: Array, dual: Dual, tau: float) -> Array:
        moved = levels - tau * (dual.levels.sum(axis=0) - dual.rows)
        excess = max(float(self.shares @ moved.mean(axis=1)) - self.budget, 0.0)
        return moved - (excess / self.square) * self.shares[:, None]

    def dual_step(self, dual: Dual, scores: Array, levels: Array, sigma: float) -> Dual:
        equal, signs = dual.levels + sigma * levels
        equal -= equal.mean(axis=1, keepdims=True)
        above = self.differences(scores) + self.loss.margins - levels
        rows = np.maximum(dual.rows + sigma * above, 0.0)
        return Dual(rows, np.stack([equal, np.minimum(signs, 0.0)]))

    def prices(self, dual: Dual) -> Array:
        return (dual.rows - dual.levels[1]).sum(axis=1)


@dataclass(frozen=True)
class PrimalDual(Solver[PrimalDualState]):
    """FBPD, for any loss whose conjugate has a prox and any penalty with one.

    Parameters
    ----------
    balance : float > 0, optional
        ``sqrt(tau / sigma)``, for the loss as a weighted mean. The default, one over the strength
        of the penalty, is about ``tau = sigma = 1 / |T|`` for a sum over the samples times C.
    relaxation : float in (0, 2)
        Over-relaxation of both steps.
    restarts : bool
        Restart from the average of the pairs since the last restart when its certified gap has
        fallen enough, and adapt the balance to the ratio of primal and dual distances.

    Notes
    -----
    |T| includes the column of ones, which dominates if features are not centred. The paper stops at
    small changes of the iterates (``stopping='iterate-change'``), which bound no error; the
    certificate does.
    """

    balance: float | None = None
    relaxation: float = 1.0
    restarts: bool = False

    name: ClassVar[str] = "fbpd"
    rules: ClassVar[tuple[str, ...]] = ("iterate-change",)
    needs: ClassVar[Trait] = Trait.CONJUGATE_PROX
    check_every: ClassVar[int] = 50

    def __post_init__(self) -> None:
        check_numbers(self, "balance", above=0, optional=True)
        check_numbers(self, "relaxation", above=0, below=2)
        check_flags(self, "restarts")

    def init(self, problem: Problem, start: Point, stop: Stop) -> PrimalDualState:
        splitting = self._splitting(problem.loss)
        scores = problem.design.scores(start.coef) + start.intercept
        levels, dual = splitting.start(scores, start.dual)
        primal = Primal(start.coef, start.intercept, scores, levels)
        ones = self._ones(problem)
        square = operator_norm(problem.design, ones) ** 2
        compares = bool(stop.callbacks)
        return PrimalDualState(
            primal=primal,
            dual=dual,
            primal_sum=_scaled(primal, 0.0),
            dual_sum=_scaled(dual, 0.0),
            primal_start=primal,
            dual_start=dual,
            norm=float(np.sqrt(splitting.squared_norm(square))),
            ones=ones,
            balance=self._first_balance(problem) if self.balance is None else self.balance,
            compares=compares,
            objective=_objective(problem, primal) if compares else np.nan,
        )

    def step(self, problem: Problem, state: PrimalDualState) -> PrimalDualState:
        splitting = self._splitting(problem.loss)
        tau, sigma = state.balance / state.norm, 1.0 / (state.balance * state.norm)
        old, dual = state.primal, state.dual
        q = splitting.dual_point(dual)
        coef = problem.penalty.prox(old.coef - tau * problem.design.adjoint(q), tau)
        shifted = (old.intercept - state.ones * tau * q.sum(axis=0))[None, :]
        intercept = problem.intercept.prox(shifted, state.ones * tau)[0]
        scores = problem.design.scores(coef) + intercept
        levels = splitting.levels_step(old.levels, dual, tau)
        primal = Primal(coef, intercept, scores, levels)
        raised = splitting.dual_step(dual, 2 * scores - old.scores, 2 * levels - old.levels, sigma)
        if self.relaxation != 1.0:
            primal = _interpolated(old, primal, self.relaxation)
            raised = _interpolated(dual, raised, self.relaxation)
        moved, size = (float(np.linalg.norm(w)) for w in (primal.coef - old.coef, old.coef))
        return replace(
            state,
            n_iter=state.n_iter + 1,
            point_change=moved / (1.0 + size),
            iterate_change=moved / size if size > 0 else np.inf,
            primal=primal,
            dual=raised,
            primal_sum=_sum(state.primal_sum, primal) if self.restarts else state.primal_sum,
            dual_sum=_sum(state.dual_sum, raised) if self.restarts else state.dual_sum,
            count=state.count + 1,
            objective=_objective(problem, primal) if state.compares else np.nan,
            tau=tau,
            sigma=sigma,
        )

    def point(self, problem: Problem, state: PrimalDualState) -> Point:
        """Projected onto the domain of the penalties, which over-relaxation leaves."""
        primal, _ = _pair(state, state.averages)
        return problem.projected(Point(primal.coef, primal.intercept))

    def measures(self, state: PrimalDualState) -> Mapping[str, float]:
        return {"objective": state.objective, "tau": state.tau, "sigma": state.sigma}

    def dual(self, problem: Problem, state: PrimalDualState) -> Array | None:
        _, dual = _pair(state, state.averages)
        return self._splitting(problem.loss).proof(dual, problem.intercept)

    def observe(self, problem: Problem, state: PrimalDualState, gap: Gap) -> PrimalDualState:
        if not self.restarts or state.count == 0:
            return replace(state, gap_start=min(state.gap_start, gap.gap - gap.rounding))
        other = _pair(state, not state.averages)
        proved = certify(
            problem,
            problem.projected(Point(other[0].coef, other[0].intercept)),
            dual=self._splitting(problem.loss).proof(other[1], problem.intercept),
        )
        # bounds of rounding are those of each, and do not fall
        here, there = (one.gap - one.rounding for one in (gap, proved))
        averages = state.averages != (there < here)
        if min(here, there) > RESTART_GAP * state.gap_start:
            return replace(state, averages=averages)
        pair = _pair(state, averages)
        state = replace(state, balance=_balance_of_distances(state), averages=averages)
        return _restarted(state, *pair, min(here, there))

    def _ones(self, problem: Problem) -> float:
        """Square of the entry of the column of ones: with restarts its norm is at most that of the
        data, so that it does not shorten their steps."""
        if not problem.fits_intercept:
            return 0.0
        share = operator_norm(problem.design, 0.0) ** 2 / problem.design.n_samples
        return share if self.restarts and 0.0 < share < np.inf else 1.0

    def _first_balance(self, problem: Problem) -> float:
        """One over the strength of the penalty: tau = sigma for the model stated as ``C sum + G``;
        with restarts at most tau = sigma for the sum alone, as C may be out of all proportion."""
        probe = np.zeros((problem.design.n_features, problem.loss.n_outputs))
        probe[0, :2] = np.array([1.0, -1.0])[: probe.shape[1]] / np.sqrt(min(2, probe.shape[1]))
        strength = problem.penalty.value(probe)
        found = 1.0 / strength if 0 < strength < np.inf else 1.0
        return min(found, problem.design.n_samples) if self.restarts else found

    def _splitting(self, loss: Loss) -> Splitting:
        """Algorithm 2 for the hinge of Crammer and Singer within a budget, else Algorithm 1."""
        if isinstance(loss, LevelSet) and isinstance(loss.loss, CrammerSinger):
            return Epigraphs(loss.loss, loss.budget)
        return Splitting(loss)


@dataclass(frozen=True)
class LinearPrimalDual(PrimalDual):
    """FBPD for the hinge of Crammer and Singer within a budget, stated by linear constraints: the
    rival of Algorithm 2 in section 4.2. Takes the parameters of `PrimalDual`."""

    name: ClassVar[str] = "fbpd-linear"

    def objection(self, problem: Problem) -> str | None:
        loss = problem.loss
        if isinstance(loss, LevelSet) and isinstance(loss.loss, CrammerSinger):
            return None
        return "it needs the hinge of Crammer and Singer, margins of one, within a budget (eta)"

    def _splitting(self, loss: Loss) -> Splitting:
        assert isinstance(loss, LevelSet)
        assert isinstance(loss.loss, CrammerSinger)
        return LinearConstraints(loss.loss, loss.budget)


def operator_norm(design: Design, ones: float) -> float:
    """An upper estimate of the largest singular value of the data with a column of this entry,
    squared. By power iterations times `NORM_MARGIN`, and never above the Frobenius norm."""
    entry = float(np.sqrt(ones))
    right = np.random.default_rng(0).standard_normal((design.n_features + 1, 1))
    right[-1] *= entry
    norm = 0.0
    for _ in range(POWER_ITERATIONS):
        size = float(np.linalg.norm(right))
        if size == 0:
            break
        left = design.scores(right[:-1] / size) + entry * right[-1] / size
        norm = float(np.linalg.norm(left))
        right = np.vstack([design.adjoint(left), entry * left.sum(keepdims=True)])
    rows = design.row_norms() + ones
    return min(NORM_MARGIN * norm, float(np.sqrt(rows.sum())))


def _objective(problem: Problem, primal: Primal) -> float:
    penalties = problem.penalty.value(primal.coef) + problem.intercept.value(primal.intercept[None])
    return float(problem.loss.value(primal.scores) + penalties)


def _balance_of_distances(state: PrimalDualState) -> float:
    """The balance, smoothed towards the ratio of primal and dual distances since the restart."""
    primal = [a - b for a, b in zip(state.primal, state.primal_start, strict=True)]
    dual = [a - b for a, b in zip(state.dual, state.dual_start, strict=True)]
    intercept = np.linalg.norm(primal[1]) / np.sqrt(state.ones or 1.0)
    across = np.linalg.norm([np.linalg.norm(primal[0]), intercept])
    along = np.linalg.norm([np.linalg.norm(part) for part in dual])
    if across == 0 or along == 0:
        return state.balance
    return float(np.sqrt(state.balance * across / along))


def _pair(state: PrimalDualState, averages: bool) -> tuple[Primal, Dual]:
    """The average since the last restart, or the iterate."""
    if not averages or state.count == 0:
        return state.primal, state.dual
    share = 1.0 / state.count
    return _scaled(state.primal_sum, share), _scaled(state.dual_sum, share)


def _restarted(state: PrimalDualState, primal: Primal, dual: Dual, gap: float) -> PrimalDualState:
    return replace(
        state,
        primal=primal,
        dual=dual,
        primal_sum=_scaled(primal, 0.0),
        dual_sum=_scaled(dual, 0.0),
        count=0,
        primal_start=primal,
        dual_start=dual,
        gap_start=gap,
    )


def _interpolated(old: P, new: P, share: float) -> P:
    return type(old)(*(a + share * (b - a) for a, b in zip(old, new, strict=True)))


def _sum(total: P, part: P) -> P:
    return type(total)(*(a + b for a, b in zip(total, part, strict=True)))


def _scaled(part: P, factor: float) -> P:
    return type(part)(*(factor * a for a in part))
