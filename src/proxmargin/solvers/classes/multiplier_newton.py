"""The proximal method of multipliers with semismooth Newton steps, for the multiclass hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from proxmargin.certificates.certify import certify
from proxmargin.certificates.gap import Gap
from proxmargin.loop.solver import Solver, at_least_one
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.losses.classes.multinomial import CrammerSinger
from proxmargin.problem import Point, Problem
from proxmargin.solvers.classes.block import class_coordinates
from proxmargin.solvers.classes.smoothing import Smoothed
from proxmargin.solvers.multipliers import MultiplierState, worst_of
from proxmargin.solvers.smoothed_newton import minimise
from proxmargin.traits import Trait

__all__ = ["ClassMultipliers", "MultiplierNewton"]

# sharpness, the penalty parameter of the augmented Lagrangian: move of a multiplier in the unit
# simplex per unit of margin deficit
FIRST_SHARPNESS = 0.2
WARM_SHARPNESS = 10.0  # first value for a warm start
MAX_SHARPNESS = 3e5  # beyond it the rounding of scores dominates the multipliers
# growth of the sharpness with each multiplier update: TARGET_STEPS over the Newton steps, clipped
MIN_GROWTH = 1.5
MAX_GROWTH = 8.0
TARGET_STEPS = 6.0
# relative residual to which smoothed problems are solved
FIRST_RESIDUAL = 1e-2
RESIDUAL_REDUCTION = 0.5  # factor from one problem to the next
# working set of features
MIN_ADDED_FEATURES = 10  # half the least number of features added at once, if as many violate
MIN_SPREAD = 1e-3  # of a feature over the mean one, in its proximal term
KINK_TOLERANCE = 1e-3  # distance to the largest margin that counts as a tie at a warm start
INTERCEPT_PROXIMAL = 1e-6  # proximal curvature of the intercept, absolute


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassMultipliers(MultiplierState):
    """The state of the proximal method of multipliers.

    Attributes
    ----------
    stacked : (n_members + 1, n_classes)
        Coefficients of the working set and, as last row, the intercept at the solution of the last
        smoothed problem, in the coordinates of `ClassCoordinates`.
    masses, scores : (n_samples, n_classes)
        Multipliers there, in unit simplices, and scores.
    centre, centre_masses : arrays
        ``stacked`` and ``masses`` around which the smoothed problem was built.
    violations : (n_features,) or None
        Violations of the optimality conditions, from the certificate of the point.
    steps : int
        Newton steps for the last smoothed problem.
    """

    stacked: Array
    masses: Array
    scores: Array
    centre: Array
    centre_masses: Array
    violations: Array | None = None
    sharpest: float = MAX_SHARPNESS
    residual: float = FIRST_RESIDUAL
    steps: int = 0


@dataclass(frozen=True)
class MultiplierNewton(Solver[ClassMultipliers]):
    """Proximal method of multipliers for the multiclass hinge plus an elastic net.

    Around the multipliers p (in the unit simplex for each sample) and the coefficients of the last
    step, the smooth function of `Smoothed` is minimised by semismooth Newton steps on the active
    coefficients; only samples with a tie of several classes have curvature. The maximisers are the
    next multipliers. The sharpness grows and the proximal term falls from step to step. As in any
    augmented Lagrangian method, smoothing around the multipliers leaves no bias: the sharpness need
    not go to infinity. The certificate prices the features, and systems contain a working set only.

    Parameters
    ----------
    max_stalled : int >= 1
        Steps at the largest sharpness without a smaller gap, which has reached rounding, after
        which the method ends.

    Notes
    -----
    Rockafellar (1976), "Augmented Lagrangians and applications of the proximal point algorithm";
    the model is (7) of Chierchia, Pustelnik, Pesquet and Pesquet-Popescu (2015).
    """

    max_stalled: int = 4

    name: ClassVar[str] = "multiplier-newton"
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 3000

    def __post_init__(self) -> None:
        at_least_one(self, "max_stalled")

    def objection(self, problem: Problem) -> str | None:
        loss, penalty = problem.loss, problem.penalty
        if not isinstance(loss, CrammerSinger):
            return "it needs the multiclass hinge of Crammer and Singer"
        if Trait.UNIFORM_NET not in penalty.traits or penalty.l2 + penalty.l1 <= 0:
            return f"it needs {Trait.UNIFORM_NET.sentence()}"
        return None

    def init(self, problem: Problem, start: Point, stop: Stop) -> ClassMultipliers:
        coordinates, loss = class_coordinates(problem), _loss(problem)
        warm = bool(start.coef.any())
        if not warm:
            start = problem.null_point()
        whole = coordinates.stacked(start)
        members = np.arange(len(whole) - 1)
        if problem.penalty.l1 > 0 and members.size > 2 * MIN_ADDED_FEATURES:
            members = np.flatnonzero(whole[:-1].any(axis=1))
        stacked = np.vstack([whole[members], whole[-1:]])
        scores = coordinates.block(members).scores(stacked)
        dual = loss.balanced(
            loss.dual_of(loss.near_points(scores, KINK_TOLERANCE)), problem.intercept
        )
        masses = loss.points_of(dual)
        return ClassMultipliers(
            members=members, stacked=stacked, masses=masses, scores=scores,
            centre=stacked, centre_masses=masses,
            sharpness=WARM_SHARPNESS if warm else FIRST_SHARPNESS, stop=stop,
        )  # fmt: skip

    def step(self, problem: Problem, state: ClassMultipliers) -> ClassMultipliers:
        """Solve the next smoothed problem, or the same one on a larger working set."""
        state = self._prepared(problem, state)
        smoothed = _smoothed(problem, state)
        here, _, end = minimise(
            smoothed,
            smoothed.at(state.stacked),
            state.residual,
            state.newton_steps,
            state.stop.deadline,
        )
        return state.after(end, FIRST_SHARPNESS).but(
            stacked=here.stacked,
            masses=here.masses,
            scores=here.scores,
            violations=None,
            steps=end.steps,
        )

    def observe(self, problem: Problem, state: ClassMultipliers, gap: Gap) -> ClassMultipliers:
        judged = state.judged(gap.relative_gap, self.max_stalled)
        return judged.but(violations=gap.violations)

    def point(self, problem: Problem, state: ClassMultipliers) -> Point:
        point = class_coordinates(problem).point(state.stacked, state.members)
        return problem.projected(point)

    def scores(self, problem: Problem, state: ClassMultipliers) -> Array:
        point = self.point(problem, state)
        moved = point.intercept + class_coordinates(problem).centre @ point.coef - state.stacked[-1]
        return state.scores + moved

    def dual(self, problem: Problem, state: ClassMultipliers) -> Array:
        return _loss(problem).dual_of(state.masses)

    def _prepared(self, problem: Problem, state: ClassMultipliers) -> ClassMultipliers:
        """Recentre if the last problem is solved, and enlarge the working set."""
        if state.violations is None:
            point, dual = self.point(problem, state), self.dual(problem, state)
            state = self.observe(problem, state, certify(problem, point, dual=dual))
        assert state.violations is not None
        selects = problem.penalty.l1 > 0
        outside = state.outside(state.violations) if selects else np.zeros(1)
        if state.is_complete(outside, problem.penalty.l1):
            growth = min(max(TARGET_STEPS / max(state.steps, 1), MIN_GROWTH), MAX_GROWTH)
            sharper = state.sharpened(growth, RESIDUAL_REDUCTION)
            state = sharper.but(centre=state.stacked, centre_masses=state.masses)
        return self._grown(problem, state, outside) if selects else state

    def _grown(self, problem: Problem, state: ClassMultipliers, outside: Array) -> ClassMultipliers:
        """The state with the features outside the working set that violate most added to it."""
        pairs = int(np.count_nonzero(state.stacked[:-1]))
        size = 2 * max(MIN_ADDED_FEATURES, pairs, min(2 * state.scores.shape[0], 50))
        worst = worst_of(outside, size)
        if worst.size == 0:
            return state
        members = np.union1d(state.members, worst).astype(np.intp)
        places = np.append(np.searchsorted(members, state.members), members.size)

        def spread(stacked: Array) -> Array:
            larger = np.zeros((members.size + 1, stacked.shape[1]))
            larger[places] = stacked
            return larger

        return state.but(
            members=members, stacked=spread(state.stacked), centre=spread(state.centre)
        )


def _smoothed(problem: Problem, state: ClassMultipliers) -> Smoothed:
    coordinates, members = class_coordinates(problem), state.members
    l1, l2 = problem.penalty.l1, problem.penalty.l2
    spreads = coordinates.spreads
    proximal = np.zeros(members.size)
    if l1 > 0:
        mean = float(np.sqrt((spreads**2).mean()))
        proximal = state.proximal * l1 * np.maximum(spreads[members], MIN_SPREAD * mean)
    fits = problem.fits_intercept
    return Smoothed(
        block=coordinates.block(members),
        loss=_loss(problem),
        l1=np.append(np.full(members.size, l1), 0.0)[:, None],
        l2=np.append(np.full(members.size, l2), problem.intercept.l2)[:, None],
        proximal=np.append(proximal, INTERCEPT_PROXIMAL)[:, None],
        stacked=state.centre,
        masses=state.centre_masses,
        sharpness=state.sharpness,
        movable=np.append(np.ones(members.size, dtype=bool), fits)[:, None],
    )


def _loss(problem: Problem) -> CrammerSinger:
    assert isinstance(problem.loss, CrammerSinger)
    return problem.loss
