"""Dual coordinate descent with shrinking, for a box on the dual points and a ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.solvers.dual_coordinates import curvatures, descend, solve_on_face
from proxmargin.designs.base import Design
from proxmargin.designs.memory import unlocked
from proxmargin.loop.solver import CLAIM_FRACTION, PricedState, Solver, at_least_one, require
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.losses.box import Box
from proxmargin.problem import Point, Problem
from proxmargin.solvers.box.box_program import box_objection, box_of

__all__ = ["DualCoordinateDescent", "Swept"]

FIRST_VIOLATION = 1.0  # to which the first inner problem is solved, in margins
LEAST_VIOLATION = 1e-13  # range of violations, in margins, below which it is rounding
KINK_TOLERANCE = 1e-3  # distance to the kink up to which a margin is on it at a warm start
GAP_REDUCTION = 0.9  # ratio to the smallest gap so far, below which a gap is progress
IDLE = 2  # inner problems without a smaller gap, after which the penalty parameter grows
STIFFNESS_GROWTH = 3.0  # factor of that
LEANING = 0.5  # share of the gap because of y'a, above which only the multiplier moves
FACE_SWEEPS = 20  # sweeps over one inner problem before conjugate gradients are tried on its face
SETTLED_FACE = 1.005  # active samples over those inside their box, up to which the face is found
FACE_ITERATIONS = 100  # of conjugate gradients; no more than sweeps before
FACE_FORCING = 1e-3  # ratio of the residual that they reach
STEP_PASSES = 8.0  # passes over the data in a step, at most
STEP_ENTRIES = 1 << 27  # entries read in a step, beyond which it ends after the current sweep
SEED = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False, kw_only=True)
class Swept(PricedState):
    """The state of dual coordinate descent.

    Attributes
    ----------
    a : (n_samples,)
        Dual points in the box.
    v : (n_features,)
        ``metric * sum_i y_i a_i x_i``, see `proxmargin.compiled.solvers.dual_coordinates`.
    active : (n_live,) int
        The samples with a positive weight, the first ``n_active`` of them active.
    lean, moment : float
        ``y'a`` and ``centre'v``.
    stiffness, base : float
        Penalty parameter and multiplier of ``y'a = 0`` for a free intercept; otherwise the
        curvature of its ridge, or zero, and zero.
    least, most : float
        Range of the violations in the last sweep, infinite where they are unknown.
    violation : float
        The range at which the inner problem counts as solved.
    solved : bool
        It is solved: the multiplier is due.
    sweeps : int
        Sweeps over this inner problem.
    blocked : bool
        A step on a face of this inner problem did not decrease its objective.
    seed : int
        State of the random numbers.
    scores : (n_samples,), optional
        Scores, without offset, at ``intercept``; known after an inner problem.
    intercept : float
        Of centred features, if the intercept is free.
    best : float
        Smallest relative gap so far.
    idle : int
        Inner problems since then.
    leans : bool
        Most of the gap comes from ``y'a != 0``.
    last : float
        Sweeps after which the method ends.
    """

    a: Array
    v: Array
    active: NDArray[np.int64]
    n_active: int
    lean: float
    moment: float
    stiffness: float
    base: float = 0.0
    least: float = -np.inf
    most: float = np.inf
    violation: float = FIRST_VIOLATION
    solved: bool = False
    sweeps: int = 0
    blocked: bool = False
    seed: int = SEED
    scores: Array | None = None
    intercept: float = 0.0
    best: float = np.inf
    idle: int = 0
    leans: bool = False
    last: float = np.inf


class _Rows(NamedTuple):
    """The data by rows, and what coordinate descent needs of them; remembered with the design.

    Attributes
    ----------
    base : Design
        The data before any centring and scaling.
    data, indices, indptr : arrays
        Rows of a compressed matrix; of a dense one, all entries, None, and where its rows start.
    metric : (n_features,) or (1,)
        ``1 / (l2 scale^2)``, a single number if the scales are equal.
    norms, pull : (n_samples,)
        Squared norms of the centred samples over l2, and ``x_i'(metric centre)``.
    square : float
        ``centre'(metric centre)``.
    centre, scale : (n_features,)
    shift : (n_features,)
        The intercept is that of centred features less ``shift'w``.
    """

    base: Design
    data: Array
    indices: NDArray[Any] | None
    indptr: NDArray[Any]
    metric: Array
    norms: Array
    pull: Array
    square: float
    centre: Array
    scale: Array
    shift: Array


@dataclass(frozen=True)
class DualCoordinateDescent(Solver[Swept]):
    """Exact steps along single dual points in random order, on a shrinking set of samples.

    For hinge, huberized and squared hinge with a ridge, the dual points a minimise

        ``l2/2 |w|^2 + sum_i (bends_i a_i^2 / 2 - goal_i a_i)``,  ``0 <= a_i <= caps_i``,

    with ``l2 w = X'(y a)``. A step along one of them reads its row of the data twice, and once if
    it does not move. A ridge of the intercept adds ``(y'a)^2`` over twice its strength. A free
    intercept demands ``y'a = 0``: an augmented Lagrangian, whose multiplier is the intercept. Its
    inner problems are solved to violations that fall by ``forcing``, each from the last one's
    solution; then the duality gap is computed, the multiplier moves and all samples are active
    again. Features are centred where the intercept is free, which changes nothing but the speed:
    centred rows of sparse data are not formed.

    Where the weights of the loss are large, sweeps become slow although few samples change sides:
    conjugate gradients on the face of the box then take steps to its minimum, as long as they
    decrease the objective.

    Parameters
    ----------
    stiffness : float > 0
        Penalty parameter of the augmented Lagrangian, over the mean of ``|x_i|^2 / l2``.
    forcing : float in (0, 1)
        Ratio of the violations to which an inner problem is solved to that of the one before.
    max_stalled : int >= 1
        Inner problems without a smaller gap, which has reached rounding, after which the method
        ends.
    max_sweeps : int >= 1
        Sweeps over one inner problem, after which the method ends: it is too ill-conditioned.

    Notes
    -----
    Hsieh, Chang, Lin, Keerthi and Sundararajan (2008), "A dual coordinate descent method for
    large-scale linear SVM", whose intercept has a ridge. An iteration is a sweep over the active
    samples; a step of the solver is one inner problem or part of it. Sweeps run on one thread: each
    step needs the coefficients that the one before it has written.
    """

    stiffness: float = 0.1
    forcing: float = 0.1
    max_stalled: int = 20
    max_sweeps: int = 5000

    name: ClassVar[str] = "dual-coordinate-descent"
    check_every: ClassVar[int] = 1
    prices: ClassVar[bool] = True
    max_iter: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        require(
            0 < self.stiffness < np.inf, "stiffness must be positive and finite", self.stiffness
        )
        require(0 < self.forcing < 1, "forcing must lie between 0 and 1", self.forcing)
        at_least_one(self, "max_stalled", "max_sweeps")

    def objection(self, problem: Problem) -> str | None:
        objection = box_objection(problem)
        if objection is None and box_of(problem).pull != 0:
            objection = "it needs a loss without a threshold, which a nu-SVM has"
        return objection or _objection_to_data(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> Swept:
        rows, box = _rows(problem), box_of(problem)
        a = _first_dual(problem, start)
        signed = (box.signs * a)[:, None]
        v = rows.base.adjoint(signed)[:, 0] * rows.metric if a.any() else np.zeros_like(rows.centre)
        return Swept(
            a=a,
            v=v,
            active=np.flatnonzero(box.caps > 0).astype(np.int64),
            n_active=int(np.count_nonzero(box.caps > 0)),
            lean=float(signed.sum()),
            moment=float(rows.centre @ v),
            stiffness=self._first_stiffness(problem),
            base=_first_multiplier(problem, start),
            intercept=float(start.intercept[0] + rows.shift @ start.coef[:, 0]),
            tol=CLAIM_FRACTION * stop.tol,
            last=np.inf if stop.max_iter is None else stop.max_iter,
        )

    def step(self, problem: Problem, state: Swept) -> Swept:
        """Sweeps until the inner problem is solved, or has taken its share of a step."""
        state = self._prepared(problem, state) if state.solved else state
        there = self._swept(problem, state)
        if not there.solved:
            there = _moved_on_face(problem, there)
        if not there.solved and there.sweeps >= self.max_sweeps:
            return self._priced(problem, there).but(finished=True)
        return self._priced(problem, there) if there.solved else there.claimed(final=False)

    def _swept(self, problem: Problem, state: Swept) -> Swept:
        rows, n = _rows(problem), state.a.size
        budget = min(STEP_PASSES * n, STEP_ENTRIES * n / max(rows.data.size, 1))
        inner = _Inner.of(problem, state)
        n_active, lean, moment, least, most, sweeps, visited, seed = descend(
            *inner.arguments(rows, rows.norms + state.stiffness + inner.box.bends),
            state.least,
            state.most,
            state.violation,
            int(np.clip(state.last - state.n_iter, 1, FACE_SWEEPS)),
            max(int(budget), 1),
            np.uint64(state.seed),
        )
        problem.design.ledger.charge(problem.design.share * visited / max(n, 1))
        return state.but(
            n_iter=state.n_iter + sweeps,
            sweeps=state.sweeps + sweeps,
            a=inner.a,
            v=inner.v,
            active=inner.active,
            n_active=int(n_active),
            lean=float(lean),
            moment=float(moment),
            least=float(least),
            most=float(most),
            seed=int(seed),
            solved=most - least <= state.violation,
            scores=None,
            final=False,
        )

    def point(self, problem: Problem, state: Swept) -> Point:
        coef = _coef(problem, state)
        moved = state.intercept - float(_rows(problem).shift @ coef)
        return Point(coef[:, None], np.array([moved]))

    def scores(self, problem: Problem, state: Swept) -> Array | None:
        return None if state.scores is None else state.scores[:, None]

    def dual(self, problem: Problem, state: Swept) -> Array:
        return (-box_of(problem).signs * state.a)[:, None]

    def _first_stiffness(self, problem: Problem) -> float:
        """Curvature in ``y'a``: of the augmented Lagrangian, or of the intercept's ridge."""
        if not problem.fits_intercept:
            return 0.0
        if problem.intercept.l2 > 0:
            return 1.0 / problem.intercept.l2
        caps = box_of(problem).caps
        # at small caps: dual points at their caps move the multiplier by a margin
        least = 1.0 / float(caps.sum()) if np.isfinite(caps).all() else np.finfo(float).tiny
        return max(self.stiffness * float(_rows(problem).norms.mean()), least)

    def _prepared(self, problem: Problem, state: Swept) -> Swept:
        """The next inner problem: the multiplier moved, all samples active again."""
        base, stiffness = state.base, state.stiffness
        if problem.intercept.is_shift_invariant:
            base = state.intercept if state.idle == 0 else base + stiffness * state.lean
            if state.leans and state.idle >= IDLE:
                stiffness *= STIFFNESS_GROWTH
        violation = state.violation if state.leans else self.forcing * state.violation
        return state.but(
            base=base,
            stiffness=stiffness,
            n_active=state.active.size,
            least=-np.inf,
            most=np.inf,
            violation=max(violation, LEAST_VIOLATION),
            solved=False,
            sweeps=0,
            blocked=False,
        )

    def _priced(self, problem: Problem, state: Swept) -> Swept:
        """The state with scores, the best intercept and the gap (rounding ignored)."""
        coef, box = _coef(problem, state)[:, None], box_of(problem)
        bare = problem.design.scores(coef) - _rows(problem).shift @ coef
        guess = np.array([state.base + state.stiffness * state.lean])
        intercept = problem.loss.best_intercept(bare, problem.intercept, guess)
        scores = bare + intercept
        primal = problem.loss.value(scores) + problem.penalty.value(coef)
        primal += problem.intercept.value(intercept[None, :])
        bound = float(state.a @ (box.goal - 0.5 * box.bends * state.a))
        bound -= problem.penalty.value(coef)
        excess = 0.0
        if problem.intercept.is_shift_invariant:
            excess = abs(float(intercept[0]) * state.lean)
        elif problem.fits_intercept:
            bound -= 0.5 * state.lean**2 / problem.intercept.l2
        gap = primal - bound + excess
        relative = gap / max(abs(primal), abs(bound), problem.negligible)
        idle = 0 if relative <= GAP_REDUCTION * state.best else state.idle + 1
        return state.but(
            scores=scores[:, 0],
            intercept=float(intercept[0]),
            relative_gap=relative,
            best=min(relative, state.best),
            idle=idle,
            leans=excess > LEANING * gap,
            finished=idle >= self.max_stalled,
        ).claimed(final=True)

    def observe(self, problem: Problem, state: Swept, gap: Any) -> Swept:
        return state.observed()


class _Inner(NamedTuple):
    """An inner problem, and copies of what kernels change in place."""

    state: Swept
    box: Box
    a: Array
    v: Array
    active: NDArray[np.int64]

    @classmethod
    def of(cls, problem: Problem, state: Swept) -> _Inner:
        return cls(state, box_of(problem), state.a.copy(), state.v.copy(), state.active.copy())

    def arguments(self, rows: _Rows, bends: Array) -> tuple[Any, ...]:
        """Those that the kernels share, with the curvatures ``bends`` along dual points."""
        state, box = self.state, self.box
        return (
            rows.data,
            rows.indices,
            rows.indptr,
            box.signs,
            box.caps,
            box.bends,
            box.goal,
            bends,
            rows.metric,
            rows.pull,
            rows.square,
            state.stiffness,
            state.base,
            self.a,
            self.v,
            self.active,
            state.n_active,
            state.lean,
            state.moment,
        )


def _moved_on_face(problem: Problem, state: Swept) -> Swept:
    """The state after conjugate gradients on the face of the box, if that seems to be found."""
    rows, box = _rows(problem), box_of(problem)
    active = state.active[: state.n_active]
    inside = np.count_nonzero((state.a[active] > 0) & (state.a[active] < box.caps[active]))
    if state.blocked or not 0 < state.n_active <= SETTLED_FACE * inside:
        return state
    inner = _Inner.of(problem, state)
    moved, lean, moment, products = solve_on_face(
        *inner.arguments(rows, rows.norms + box.bends),  # the preconditioner
        FACE_FORCING,
        2 * min(state.sweeps, FACE_ITERATIONS),
    )
    share = problem.design.share * products * float(inside) / state.a.size
    problem.design.ledger.charge(share)
    return state.but(
        a=inner.a,
        v=inner.v,
        lean=float(lean),
        moment=float(moment),
        least=-np.inf,
        most=np.inf,
        blocked=not moved,
    )


def _objection_to_data(problem: Problem) -> str | None:
    base = problem.design.stored.base.whole
    if base.compressed is not None:
        return None
    matrix = getattr(base, "matrix", None) if base.is_dense else None
    if matrix is None:
        return "it needs the rows of a matrix"
    if not matrix.flags.c_contiguous:
        return "it reads single rows, which are not contiguous in these dense data"
    return None


def _coef(problem: Problem, state: Swept) -> Array:
    """w, (n_features,)."""
    rows = _rows(problem)
    moved = state.v - state.lean * rows.metric * rows.centre
    return np.multiply(rows.scale, moved, out=np.zeros_like(moved), where=np.isfinite(rows.scale))


def _rows(problem: Problem) -> _Rows:
    """The rows; problems on one design with the same ridge and weights share them."""
    shares = problem.loss.shares
    if not problem.intercept.is_shift_invariant:
        shares = np.zeros_like(shares)  # nothing is centred
    return problem.design.remembered(_new_rows, np.append(shares, problem.penalty.l2))


def _new_rows(design: Design, key: Array) -> _Rows:
    base, given, scale = design.stored
    shares, l2 = key[:-1], float(key[-1])
    centre = base.adjoint(shares[:, None])[:, 0] if shares.any() else given
    shift = (centre - given) / scale
    metric = 1.0 / (l2 * scale**2)
    pull = base.scores((metric * centre)[:, None])[:, 0]
    square = float(centre @ (metric * centre))
    if metric.size and np.all(metric == metric[0]):
        metric = metric[:1].copy()
    stored, norms = _stored_rows(base), np.empty_like(pull)
    curvatures(*stored, metric, pull, square, norms)
    return _Rows(base, *stored, metric, norms, pull, square, centre, scale, shift)


def _stored_rows(base: Design) -> tuple[Array, NDArray[Any] | None, NDArray[Any]]:
    if base.compressed is not None:
        matrix = base.compressed.by_rows
        return unlocked(matrix.data), unlocked(matrix.indices), unlocked(matrix.indptr)
    matrix = base.sweep_data()[0]
    starts = np.arange(matrix.shape[0] + 1, dtype=np.int64) * matrix.shape[1]
    return unlocked(matrix).reshape(-1), None, starts


def _first_multiplier(problem: Problem, start: Point) -> float:
    """The best intercept at zero coefficients, or that of a start with others."""
    if not problem.intercept.is_shift_invariant:
        return 0.0
    if start.coef.any():
        return float(start.intercept[0] + _rows(problem).shift @ start.coef[:, 0])
    return float(problem.null_point().intercept[0])


def _first_dual(problem: Problem, start: Point) -> Array:
    """The given dual points, else those that the margins of the start imply; zero if it is zero."""
    box = box_of(problem)
    if start.dual is not None:
        return np.clip(-box.signs * start.dual[:, 0], 0.0, box.caps)
    if not start.coef.any():
        return np.zeros_like(box.caps)
    scores = problem.design.scores(start.coef)[:, 0] + start.intercept[0]
    missing = box.goal - box.signs * scores
    on_kink = np.where(np.isfinite(box.caps), 0.5 * box.caps, 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        curved = np.clip(missing / box.bends, 0.0, box.caps)
    capped = np.where(missing > 0, box.caps, 0.0)
    return np.where(
        box.bends > 0, curved, np.where(np.abs(missing) <= KINK_TOLERANCE, on_kink, capped)
    )
