"""Dual coordinate descent with shrinking, for a box on the dual points and a ridge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import SUM_ROUNDING, TINY
from proxmargin.compiled.solvers.dual_coordinates import (
    Descent,
    DualTerms,
    StoredRows,
    descend,
    products,
    summed,
)
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.types import Array
from proxmargin.solvers.dual.dual_rows import (
    dual_bound,
    implied,
    inside,
    rows_of,
    terms_objection,
    terms_of,
)
from proxmargin.solvers.loop.solver import (
    CLAIM_FRACTION,
    GAP_REDUCTION,
    GapState,
    Solver,
    Stop,
    at_least_one,
    check_numbers,
)
from proxmargin.solvers.shared.numerical import CG_TOLERANCE, MAX_SIDE, conjugate_gradients

FIRST_SHARE = 0.03  # relative gap to which the first inner problem is solved for a free intercept
LEAST_VIOLATION = 1e-13  # range of violations, in margins, below which it is rounding
IDLE = 2  # inner problems without a smaller gap, after which the penalty parameter grows
STIFFNESS_GROWTH = 3.0  # factor of that
ENTROPIC_SWEEPS = 3  # after which the dual objective of the logistic loss is computed
ENTROPIC_PART = 5  # of the sweeps of other losses: these read all samples
ENTROPIC_STIFFNESS = 4.0  # penalty parameter over the curvature of the entropies along y
LEAST_PART = 1e-3  # of the weights in a class that is taken for that
FACE_SWEEPS = 20  # sweeps over one inner problem before conjugate gradients are tried on its face
SETTLED_FACE = 1.02  # active samples over those inside their box, up to which the face is found
FEW_SETTLED = 0.1  # of the samples, up to which many sweeps have found no face
FACE_ITERATIONS = 100  # of conjugate gradients, at most; at first as many as sweeps before
TRIALS = 6  # lengths of a step to the minimum on a face, each half of the one before
DRIFT = 0.1  # of the multiplier, in margins, after which samples that were left out return
RESTLESS = 4  # calls of the kernel that do not halve the gap, after which it has not settled
STEP_PASSES = 8.0  # passes over the data in a step, at most
STEP_ENTRIES = 1 << 27  # entries read in a step, beyond which it ends after the current sweep
SEED = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False, kw_only=True)
class CoordinateDescentState(GapState):
    a: Array  # (n_samples,), dual points in the box
    # (n_features,); ``metric * sum_i y_i a_i x_i``, see
    # `proxmargin.compiled.solvers.dual_coordinates`
    v: Array
    # (n_live,) int; the samples with a positive weight, the first ``n_active`` of them active
    active: NDArray[np.int64]
    n_active: int
    # ``y'a`` and ``centre'v``
    residual: float
    moment: float
    # penalty parameter and multiplier of ``y'a = 0`` for a free intercept; otherwise the curvature
    # of its ridge, or zero, and zero
    stiffness: float
    multiplier: float = 0.0
    # range of the violations in the last sweep, infinite where they are unknown
    least: float = -np.inf
    most: float = np.inf
    # the dual objective, and the duality gap by the last sweep
    value: float = 0.0
    excess: float = np.inf
    # the relative gap by a sweep at which the inner problem counts as solved
    share: float = FIRST_SHARE
    solved: bool = False  # it is solved: the multiplier is due
    sweeps: int = 0  # sweeps over this inner problem
    blocked: bool = False  # a step on a face of this inner problem did not decrease its objective
    faces: int = 0  # steps on faces of this inner problem
    anchor: float = 0.0  # the multiplier when all samples were active last
    calm: float = np.inf  # smallest gap by a sweep while the multiplier moves after each
    restless: int = 0  # calls of the kernel since it fell by much
    # the multiplier moves after inner problems only, as it did not settle otherwise
    steady: bool = False
    seed: int = SEED  # state of the random numbers
    # (n_features,) and (n_samples,), optional; coefficients, and their products with the data;
    # known after an inner problem
    coef: Array | None = None
    products: Array | None = None
    intercept: float = 0.0  # of centred features, if the intercept is free
    best: float = np.inf  # smallest relative gap so far
    idle: int = 0  # inner problems since then
    unbalanced: bool = False  # most of the gap comes from ``y'a != 0``
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class DualCoordinateDescent(Solver[CoordinateDescentState]):
    """Exact steps along single dual points in random order, on a shrinking set of samples.

    For hinge, huberized and squared hinge with a ridge, the dual points a minimise

        ``l2/2 |w|^2 + sum_i (curvatures_i a_i^2 / 2 - targets_i a_i)``,  ``0 <= a_i <= upper_i``,

    with ``l2 w = X'(y a)``. A step along one of them reads its row of the data twice, and once if
    it does not move. A ridge of the intercept adds ``(y'a)^2`` over twice its strength. A free
    intercept demands ``y'a = 0``: an augmented Lagrangian, whose multiplier is the intercept. It
    moves after each sweep. If it cycles, it moves after inner problems only, which are solved to
    gaps that fall by ``forcing``, each from the last one's solution; then all samples are active
    again. Features are centred where the intercept is free, which changes nothing but the speed:
    centred rows of sparse data are not formed.

    Where the weights of the loss are large, sweeps become slow although few samples change sides:
    conjugate gradients on the face of the box then take steps to its minimum, as long as they
    decrease the objective; they solve for the multiplier too.

    Parameters
    ----------
    stiffness : float > 0
        Penalty parameter of the augmented Lagrangian, over the mean of ``|x_i|^2 / l2``.
    forcing : float in (0, 1)
        Ratio of the gap to which an inner problem is solved to that of the whole problem, where
        the multiplier moves after inner problems only.
    max_stalled : int >= 1
        Inner problems without a smaller gap, which has reached rounding, after which the method
        ends.
    max_sweeps : int >= 1
        Sweeps over one inner problem, after which the method ends: it is too ill-conditioned. For
        the logistic loss, of which no sample is left out, a fifth of them.

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
    computes_gap: ClassVar[bool] = True
    exact_scores: ClassVar[bool] = True
    max_iter: ClassVar[int] = 100_000

    def __post_init__(self) -> None:
        check_numbers(self, "stiffness", above=0)
        check_numbers(self, "forcing", above=0, below=1)
        at_least_one(self, "max_stalled", "max_sweeps")

    def objection(self, problem: Problem) -> str | None:
        return terms_objection(problem)

    def init(self, problem: Problem, start: Point, stop: Stop) -> CoordinateDescentState:
        rows, terms = rows_of(problem), terms_of(problem)
        multiplier = _first_multiplier(problem, start)
        a = _first_dual(problem, start, multiplier)
        signed = terms.signs * a
        v = rows.weighted_sum(signed)
        tol = CLAIM_FRACTION * stop.tol
        state = CoordinateDescentState(
            a=a,
            v=v,
            active=np.flatnonzero(terms.upper > 0).astype(np.int64),
            n_active=int(np.count_nonzero(terms.upper > 0)),
            residual=float(signed.sum()),
            moment=float(rows.centre @ v),
            stiffness=self._first_stiffness(problem),
            multiplier=multiplier,
            anchor=multiplier,
            share=max(tol, SUM_ROUNDING),
            intercept=float(start.intercept[0] + rows.shift @ start.coef[:, 0]),
            tol=tol,
            stop=stop,
        )
        return state.but(value=_bound(problem, state, rows.coef(v, state.residual)))

    def step(self, problem: Problem, state: CoordinateDescentState) -> CoordinateDescentState:
        """Sweeps until the inner problem is solved, or has taken its share of a step."""
        state = self._prepared(problem, state) if state.solved else state
        there = self._swept(problem, state)
        if not there.solved:
            there = _moved_on_face(problem, there)
        part = ENTROPIC_PART if terms_of(problem).entropic else 1
        spent = there.sweeps >= max(self.max_sweeps // part, 1)
        if not there.solved and (spent or (part == 1 and _is_hopeless(there))):
            return self._with_gap(problem, there).but(finished=True)
        if there.solved:
            return self._with_gap(problem, there)
        value = _bound(problem, there, _coef(problem, there))
        return there.but(value=value).claimed(final=False)

    def _swept(self, problem: Problem, state: CoordinateDescentState) -> CoordinateDescentState:
        rows, terms, n = rows_of(problem), terms_of(problem), state.a.size
        budget = min(STEP_PASSES * n, STEP_ENTRIES * n / max(rows.stored.data.size, 1))
        free = problem.intercept.is_shift_invariant and not state.steady
        a, v, active = state.a.copy(), state.v.copy(), state.active.copy()  # changed in place
        most_sweeps = ENTROPIC_SWEEPS if terms.entropic else FACE_SWEEPS
        *after, excess, sweeps, visited, seed = descend(
            rows.stored,
            terms,
            rows.norms + state.stiffness + terms.curvatures,
            a,
            v,
            active,
            Descent(*(getattr(state, name) for name in Descent._fields)),
            state.stiffness,
            free,
            LEAST_VIOLATION,
            state.share,
            int(np.clip(state.stop.iterations(self.max_iter) - state.n_iter, 1, most_sweeps)),
            max(int(budget), 1),
            np.uint64(state.seed),
        )
        problem.design.counter.add(problem.design.share * visited / max(n, 1))
        at = Descent(int(after[0]), *(float(number) for number in after[1:]))
        precise = not free and at.most - at.least <= LEAST_VIOLATION
        settled = at.n_active == 0 or precise or excess <= state.share * (at.value + excess)
        there = state.but(
            n_iter=state.n_iter + sweeps,
            sweeps=state.sweeps + sweeps,
            a=a,
            v=v,
            active=active,
            **at._asdict(),
            excess=float(excess),
            seed=int(seed),
            solved=bool(settled),
            coef=None,
            products=None,
            final=False,
        )
        return _watched(there) if free and not settled else there

    def point(self, problem: Problem, state: CoordinateDescentState) -> Point:
        coef = _coef(problem, state)
        moved = state.intercept - float(rows_of(problem).shift @ coef)
        return Point(coef[:, None], np.array([moved]))

    def scores(self, problem: Problem, state: CoordinateDescentState) -> Array | None:
        if state.products is None or state.coef is None:
            return None
        moved = state.intercept - float(rows_of(problem).shift @ state.coef)
        return (state.products + moved)[:, None]

    def dual(self, problem: Problem, state: CoordinateDescentState) -> Array:
        return (-terms_of(problem).signs * state.a)[:, None]

    def _first_stiffness(self, problem: Problem) -> float:
        """Curvature in ``y'a``: of the augmented Lagrangian, or of the intercept's ridge."""
        if not problem.fits_intercept:
            return 0.0
        if problem.intercept.l2 > 0:
            return 1.0 / problem.intercept.l2
        terms = terms_of(problem)
        total = float(terms.upper.sum())
        # at small caps: dual points at their caps move the multiplier by a margin
        least = 1.0 / total if np.isfinite(total) else TINY
        if terms.entropic:  # the curvature of the entropies along y is that at zero coefficients
            part = float(terms.upper[terms.signs > 0].sum()) / total
            least *= ENTROPIC_STIFFNESS / max(part * (1.0 - part), LEAST_PART)
        return max(self.stiffness * float(rows_of(problem).norms.mean()), least)

    def _prepared(self, problem: Problem, state: CoordinateDescentState) -> CoordinateDescentState:
        """The next inner problem: the multiplier moved, all samples active again."""
        multiplier, stiffness = state.multiplier, state.stiffness
        if problem.intercept.is_shift_invariant:
            multiplier = (
                state.intercept if state.idle == 0 else multiplier + stiffness * state.residual
            )
            if state.unbalanced and state.idle >= IDLE:
                stiffness *= STIFFNESS_GROWTH
        return state.but(
            multiplier=multiplier,
            anchor=multiplier,
            stiffness=stiffness,
            n_active=state.active.size,
            least=-np.inf,
            most=np.inf,
            share=max(self._next_share(problem, state), SUM_ROUNDING),
            solved=False,
            sweeps=0,
            blocked=False,
            faces=0,
        )

    def _next_share(self, problem: Problem, state: CoordinateDescentState) -> float:
        """The relative gap to which the next inner problem is solved. If the gap is twice the one
        by the last sweep, that is because of samples which were left out: the next inner problem
        begins with all."""
        share, gap = state.share, state.relative_gap
        if state.steady:
            return self.forcing * gap
        return share if gap > 2.0 * share and state.idle == 0 else 0.5 * share

    def _with_gap(self, problem: Problem, state: CoordinateDescentState) -> CoordinateDescentState:
        """The state with scores, the best intercept and the gap (rounding ignored)."""
        rows, flat = rows_of(problem), _coef(problem, state)
        coef = flat[:, None]
        products = problem.design.scores(coef)
        shift = float(rows.shift @ flat)
        guess = np.array([state.multiplier + state.stiffness * state.residual - shift])
        intercept = problem.loss.best_intercept(products, problem.intercept, guess)
        primal = problem.loss.value(products + intercept) + problem.penalty.value(coef)
        primal += problem.intercept.value(intercept[None, :])
        bound = _bound(problem, state, flat)
        centred, excess = float(intercept[0]) + shift, 0.0
        if problem.intercept.is_shift_invariant:
            excess = abs(centred * state.residual)
        gap = primal - bound + excess
        relative = gap / max(abs(primal), abs(bound), problem.negligible)
        idle = 0 if relative <= GAP_REDUCTION * state.best else state.idle + 1
        return state.but(
            coef=flat,
            products=products[:, 0],
            intercept=centred,
            value=bound,
            relative_gap=relative,
            best=min(relative, state.best),
            idle=idle,
            unbalanced=excess > 0.5 * gap,  # only the multiplier moves
            finished=idle >= self.max_stalled,
        ).claimed(final=True)


def _is_hopeless(state: CoordinateDescentState) -> bool:
    """Whether many sweeps left half of the objective as the gap, and few samples have settled at an
    end of their box: no face is in sight. On small data further sweeps cost little."""
    far = state.sweeps >= RESTLESS * FACE_SWEEPS and state.excess > state.value
    loose = far and state.n_active > (1.0 - FEW_SETTLED) * state.active.size
    return loose and min(state.active.size, state.v.size) > MAX_SIDE


def _watched(state: CoordinateDescentState) -> CoordinateDescentState:
    """The state after sweeps with a multiplier that moves after each. Samples were left out for the
    multiplier as it was: they return when it has moved far. If it cycles, the state is steady from
    here on, and due for pricing."""
    if state.excess <= 0.5 * state.calm:
        state = state.but(calm=state.excess, restless=0)
    else:
        state = state.but(restless=state.restless + 1)
    if state.restless >= RESTLESS:
        return state.but(steady=True, solved=True)
    if abs(state.multiplier - state.anchor) <= DRIFT:
        return state
    return state.but(
        anchor=state.multiplier, n_active=state.active.size, least=-np.inf, most=np.inf
    )


def _moved_on_face(problem: Problem, state: CoordinateDescentState) -> CoordinateDescentState:
    """The state after conjugate gradients on the face of the box, if that seems to be found."""
    rows, terms = rows_of(problem), terms_of(problem)
    active = state.active[: state.n_active]
    free = active[(state.a[active] > 0) & (state.a[active] < terms.upper[active])]
    if terms.entropic or state.blocked or not 0 < active.size <= SETTLED_FACE * free.size:
        return state
    face = _Face(rows.stored, terms, state.stiffness, free, state.v.size)
    balanced = problem.intercept.is_shift_invariant and not state.steady
    limit = min((1 + state.faces) * FACE_SWEEPS, FACE_ITERATIONS)
    there = face.moved(state, rows.norms, balanced, limit)
    read = face.read * free.size / state.a.size
    problem.design.counter.add(problem.design.share * read)
    return there.but(least=-np.inf, most=np.inf, faces=state.faces + 1, coef=None, products=None)


class _Sums(NamedTuple):
    """The weighted sum v of the rows for dual points on a face, ``y'a`` and ``centre'v``."""

    v: Array
    residual: float
    moment: float


class _Face:
    """The dual points strictly inside their box, of which the objective is a quadratic. ``read``
    counts products with their rows."""

    def __init__(
        self,
        rows: StoredRows,
        terms: DualTerms,
        stiffness: float,
        free: NDArray[np.int64],
        n_features: int,
    ) -> None:
        self.rows, self.stiffness, self.free, self.read = rows, stiffness, free, 0
        self.signs, self.upper = terms.signs[free], terms.upper[free]
        self.curvatures, self.targets = terms.curvatures[free], terms.targets[free]
        self.pull = rows.pull[free]
        self.n_features = n_features

    def sums(self, change: Array) -> _Sums:
        signed = self.signs * change
        v = np.zeros(self.n_features)
        summed(self.rows, self.free, signed, v)
        self.read += 1
        return _Sums(v, float(signed.sum()), float(signed @ self.pull))

    def image(self, change: Array, at: _Sums, multiplier: float = 0.0) -> Array:
        """The Hessian of the face times ``change`` with these sums; plus ``multiplier y``."""
        scores = np.empty(self.free.size)
        products(self.rows, self.free, at.v, scores)
        self.read += 1
        shift = multiplier - at.moment
        scores += at.residual * (self.stiffness + self.rows.square - self.pull) + shift
        return self.signs * scores + self.curvatures * change

    def moved(
        self, state: CoordinateDescentState, norms: Array, balanced: bool, limit: int
    ) -> CoordinateDescentState:
        """The state after a step to the minimum, projected onto the box, and halved until the
        objective falls; ``blocked`` if that does not."""
        step, residual, multiplier = self.minimiser(state, norms, balanced, limit)
        old = state.a[self.free]
        for trial in range(TRIALS):
            new = np.clip(old + 0.5**trial * step, 0.0, self.upper)
            change = new - old
            sums = self.sums(change)
            if float(change @ (0.5 * self.image(change, sums) - residual)) < 0.0:
                a = state.a.copy()
                a[self.free] = new
                return state.but(
                    a=a,
                    v=state.v + sums.v,
                    residual=state.residual + sums.residual,
                    moment=state.moment + sums.moment,
                    multiplier=state.multiplier + multiplier,
                )
        return state.but(blocked=True)

    def minimiser(
        self, state: CoordinateDescentState, norms: Array, balanced: bool, limit: int
    ) -> tuple[Array, Array, float]:
        """A step towards the minimum, minus the gradient before it, and the change of multiplier.

        Conjugate gradients with the diagonal as preconditioner. If ``balanced``, they solve for the
        multiplier of ``y'a = 0`` too, in the null space of y; the gradient is that with the new
        multiplier.
        """
        a, at = state.a[self.free], _Sums(state.v, state.residual, state.moment)
        first = self.targets - self.image(a, at, state.multiplier)
        stiffness = self.stiffness if balanced else 0.0
        roots = np.sqrt(np.maximum(norms[self.free] + self.curvatures + stiffness, TINY))
        normal = self.signs / roots
        weight = float(normal @ normal)
        step, right = np.zeros_like(a), first
        if balanced:
            step = -state.residual / weight * normal / roots
            right = first - self.image(step, self.sums(step))

        def within(scaled: Array) -> Array:
            return scaled - normal * (float(normal @ scaled) / weight) if balanced else scaled

        def product(scaled: Array) -> Array:
            change = scaled / roots
            return within(self.image(change, self.sums(change)) / roots)

        known = product, np.copy, within(right / roots)
        scaled = conjugate_gradients(*known, CG_TOLERANCE, state.stop.deadline, limit)
        step += scaled / roots
        multiplier = 0.0
        if balanced:
            rest = first - self.image(step, self.sums(step))
            multiplier = float(normal @ (rest / roots)) / weight
            if not abs(multiplier) <= float(np.abs(right).max()):
                multiplier = 0.0  # on a singular face it may be anything
        return step, first - multiplier * self.signs, multiplier


def _coef(problem: Problem, state: CoordinateDescentState) -> Array:
    """w, (n_features,)."""
    return rows_of(problem).coef(state.v, state.residual) if state.coef is None else state.coef


def _bound(problem: Problem, state: CoordinateDescentState, coef: Array) -> float:
    """The dual objective with the ridge of the intercept, if it has one."""
    bound = dual_bound(terms_of(problem), state.a) - problem.penalty.value(coef[:, None])
    if problem.fits_intercept and not problem.intercept.is_shift_invariant:
        bound -= 0.5 * state.residual**2 / problem.intercept.l2
    return bound


def _first_multiplier(problem: Problem, start: Point) -> float:
    """The best intercept at zero coefficients, or that of a start with others."""
    if not problem.intercept.is_shift_invariant:
        return 0.0
    if start.coef.any():
        return float(start.intercept[0] + rows_of(problem).shift @ start.coef[:, 0])
    return float(null_point(problem).intercept[0])


def _first_dual(problem: Problem, start: Point, multiplier: float) -> Array:
    """The given dual points, else those that the margins of the start imply. At zero coefficients
    they are zero: the first sweep then costs what the product with others would. Entropies are
    infinitely steep at zero: there the best intercept implies dual points."""
    terms, free = terms_of(problem), problem.intercept.is_shift_invariant
    if start.dual is not None:
        return inside(terms, -terms.signs * start.dual[:, 0])
    if start.coef.any():
        scores = problem.design.scores(start.coef)[:, 0] + start.intercept[0]
        return implied(terms, scores, free)
    if terms.entropic:
        return implied(terms, np.full_like(terms.upper, multiplier), free)
    return np.zeros_like(terms.upper)
