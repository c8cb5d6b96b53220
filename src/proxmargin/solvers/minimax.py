"""Second-order methods for the minimax models: one direction, two means, two covariances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, eigh_tridiagonal

from proxmargin.designs.base import Array, Design, subtract_outer
from proxmargin.designs.standardized import centred
from proxmargin.losses.minimax import EllipsoidLoss, MinimaxFisher, MinimaxProbability
from proxmargin.penalties.ridge import Ridge
from proxmargin.problem import Point, Problem
from proxmargin.solvers.base import Solver, State
from proxmargin.solvers.ridge_newton import cholesky, conjugate_gradients
from proxmargin.solvers.row_span import AllFeatures, Coordinates, in_short_coordinates, short_side
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["FisherSecular", "FisherState", "ProbabilityNewton", "ProbabilityState"]

# the most features or samples, whichever are fewer, for which covariances are formed
LARGEST_SIDE = 5000
# variances below this share of the largest, times the number of them, are rounding; and so is
# what the difference of the means has outside the range of the covariance, below that share
ROUNDING, OUTSIDE = 1e-15, 1e-11
# the secular equation converges quadratically, from the left
SECULAR_STEPS, SECULAR = 200, 1e-15
# vectors that a Lanczos step adds, and the loss of norm that ends it
LANCZOS_BLOCK, BREAKDOWN = 8, 1e-13
# Newton's method: the lift of the reweighted system, and when the search for a margin gives up;
# a proof that there is none leaves this share of what the difference of the means could gain
SEARCH_LIFT, SEARCH_LIMIT, NOTHING = 1e-14, 100, 1e-14
# conjugate gradients: iterations, and relative residuals, loosest and tightest
CG_LIMIT, LOOSEST, TIGHTEST = 50, 0.1, 1e-8
# the search along a step ends when the slope has fallen to this share of its first value
RAY_STEPS, RAY_SHARE = 100, 1e-6
# steps without a smaller gap after which rounding is all that is left
PATIENCE, FALL = 6, 0.8
# the gap that did not halve this often is that of a class whose scores all but coincide
STUCK = 2
# a level moves by factors in this range; in units of the largest variance over l2 it is low below
# the second number, and as good as zero, but harmless to a Cholesky factor, at the third
LEVEL_FALL, LEVEL_RISE, LOW, LEAST, LEVEL_PATIENCE = 1e-3, 10.0, 1e-5, 1e-11, 8


@dataclass(frozen=True, eq=False)
class FisherState(State):
    """The state of `FisherSecular`.

    Attributes
    ----------
    coef : (n_features,)
    dual : (n_samples,)
        The dual point that belongs to it.
    basis : tuple of (LANCZOS_BLOCK, n_features)
        Orthonormal Lanczos vectors, for large data; the next one is ``following``.
    diagonal, beside : (k,)
        The tridiagonal matrix; the last entry of ``beside`` links to ``following``.
    """

    coef: Array = None  # type: ignore[assignment]
    dual: Array | None = None
    basis: tuple[Array, ...] = ()
    following: Array = None  # type: ignore[assignment]
    diagonal: Array = None  # type: ignore[assignment]
    beside: Array = None  # type: ignore[assignment]


class _Secular(NamedTuple):
    """Where ``mu`` solves the secular equation, in the basis of eigenvectors.

    Attributes
    ----------
    direction : (k,)
        ``mu (Lambda + mu)^-1 d``: l2 times the coefficients.
    regression : (k,)
        ``(Lambda + mu)^-1 d``: its scores are the free part of the dual point.
    """

    direction: Array
    regression: Array


@dataclass(frozen=True)
class FisherSecular(Solver[FisherState]):
    """MM-FDA with a ridge: ridge discriminant analysis whose strength solves a scalar equation.

    With the difference of the means d and the pooled within-class covariance S, the optimum is

        ``l2 w = mu (S + mu I)^-1 d``,  ``d'(S + mu I)^-1 S (S + mu I)^-1 d = kappa^2``:

    one eigendecomposition of S on the shorter side of the data, then Newton's method in mu. Where
    no mu > 0 solves it, w is what d has outside the range of S, zero for most data with more
    samples than features: kappa has reached its largest value then. Data that are large both ways
    get a Lanczos basis of S instead, started at d, that grows until the certificate is met.
    """

    name: ClassVar[str] = "fisher-secular"
    needs: ClassVar[Trait] = Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 300
    reads_columns: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        fits = isinstance(problem.loss, MinimaxFisher) and _is_ridge(problem)
        return None if fits else "it needs the minimax loss of Fisher's criterion and a ridge"

    def init(self, problem: Problem, start: Point, stop: Stop) -> FisherState:
        return FisherState(coef=start.coef[:, 0].copy(), following=_means_apart(problem))

    def step(self, problem: Problem, state: FisherState) -> FisherState:
        if short_side(problem.design) <= LARGEST_SIDE:
            return self._decomposed(problem, state)
        return self._extended(problem, state)

    def point(self, problem: Problem, state: FisherState) -> Point:
        return Point(state.coef[:, None], np.zeros(1))

    def dual(self, problem: Problem, state: FisherState) -> Array | None:
        return None if state.dual is None else state.dual[:, None]

    def _decomposed(self, problem: Problem, state: FisherState) -> FisherState:
        loss, coordinates = _loss(problem), _coordinates(problem)
        design = coordinates.design
        apart = -design.adjoint(loss.form.offset[:, None])[:, 0]
        first, second = _covariances(loss, design)
        values, vectors = eigh(first + second, overwrite_a=True, check_finite=False)
        found = _secular(values, vectors.T @ apart, loss.kappa)
        coef = coordinates.coef(vectors @ found.direction) / problem.penalty.l2
        scores = design.scores((vectors @ found.regression)[:, None])
        dual = loss.form.offset + loss.form.roots * loss.form.deviations(scores[:, 0])
        return replace(state, n_iter=state.n_iter + 1, coef=coef, dual=dual, finished=True)

    def _extended(self, problem: Problem, state: FisherState) -> FisherState:
        """Some more Lanczos vectors, and the optimum among their combinations."""
        loss, size = _loss(problem), float(np.linalg.norm(_means_apart(problem)))
        if size == 0.0:
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        state = _lanczos(problem, state)
        values, vectors = eigh_tridiagonal(state.diagonal, state.beside[:-1])
        found = _secular(np.asarray(values, np.float64), size * vectors[0], loss.kappa)
        coef = _combined(state.basis, vectors @ found.direction) / problem.penalty.l2
        scores = problem.design.scores(_combined(state.basis, vectors @ found.regression)[:, None])
        dual = loss.form.offset + loss.form.roots * loss.form.deviations(scores[:, 0])
        return replace(state, n_iter=state.n_iter + 1, coef=coef, dual=dual)


@dataclass(frozen=True, eq=False)
class ProbabilityState(State):
    """The state of `ProbabilityNewton`.

    Attributes
    ----------
    coef : (k,)
        In the features, or in the span of the samples where these are fewer.
    scores : (n_samples,)
    dual : (n_samples,)
        The better of two dual points: the gradient of the loss, and the multipliers of the last
        quadratic model.
    covariances : (2, k, k)
        Of the two classes, where they are formed.
    levels : (2,)
        ``n_o / kappa`` of the classes as variables of their own, once Newton's method in the
        coefficients is stuck.
    gap : float
        Least gap so far.
    idle : int
        Steps without progress.
    """

    coef: Array = None  # type: ignore[assignment]
    scores: Array = None  # type: ignore[assignment]
    dual: Array | None = None
    covariances: Array | None = None
    levels: Array | None = None
    gap: float = np.inf
    idle: int = 0


@dataclass(frozen=True)
class ProbabilityNewton(Solver[ProbabilityState]):
    """MM-MPM with a ridge: Newton's method in the coefficients, with an exact line search.

    ``-w'd + kappa (n_+ + n_-) + (l2/2) |w|^2`` with ``n_o^2 = w'S_o w`` has the Hessian
    ``l2 I + kappa sum_o (S_o / n_o - g_o g_o' / n_o^3)``, ``g_o = S_o w``, which is at least l2.
    Along a step the objective is known from eight scalars. While w has no margin it is replaced
    by ``(sum_o S_o / n_o)^-1 d`` instead, Lanckriet's iteration for the largest kappa with one,
    until there is a margin or a dual point proves that there is none.

    Where the optimum gives all samples of a class one score, n_o has a kink there and Newton's
    method in w stalls. Then it goes on in the two levels mu of ``kappa n = min over mu of
    n^2 / (2 mu) + kappa^2 mu / 2``: the objective minimised over w is smooth and convex in them
    down to zero, ``w = (l2 I + sum_o S_o / mu_o)^-1 d``, and their dual points need no repair
    where a level is falling.
    """

    name: ClassVar[str] = "probability-newton"
    needs: ClassVar[Trait] = Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 300
    reads_columns: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        fits = isinstance(problem.loss, MinimaxProbability) and _is_ridge(problem)
        return None if fits else "it needs the loss of minimax probability machines and a ridge"

    def init(self, problem: Problem, start: Point, stop: Stop) -> ProbabilityState:
        coordinates, loss = _coordinates(problem), _loss(problem)
        design = coordinates.design
        coef = coordinates.of(start.coef[:, 0])
        if not coef.any():
            coef = -design.adjoint(loss.form.offset[:, None])[:, 0] / problem.penalty.l2
        formed = short_side(problem.design) <= LARGEST_SIDE
        return ProbabilityState(
            coef=coef,
            scores=design.scores(coef[:, None])[:, 0],
            covariances=np.stack(_covariances(loss, design)) if formed else None,
        )

    def step(self, problem: Problem, state: ProbabilityState) -> ProbabilityState:
        if not state.coef.any():
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        if state.levels is not None:
            return self._in_levels(problem, state, state.levels)
        value = _loss(problem).value(state.scores[:, None])
        if value >= 0:
            return self._without_margin(problem, state)
        multiple = problem.penalty.best_multiple(state.coef[:, None], value)
        return self._newton(
            problem, replace(state, coef=multiple * state.coef, scores=multiple * state.scores)
        )

    def point(self, problem: Problem, state: ProbabilityState) -> Point:
        return Point(_coordinates(problem).coef(state.coef)[:, None], np.zeros(1))

    def dual(self, problem: Problem, state: ProbabilityState) -> Array | None:
        return None if state.dual is None else state.dual[:, None]

    def _newton(self, problem: Problem, state: ProbabilityState) -> ProbabilityState:
        at, l2 = _Spread(problem, state), problem.penalty.l2
        gradient = at.pull(at.dual()) + l2 * state.coef
        direction = at.solved(l2, at.bent, -gradient)
        moved = at.design.scores(direction[:, None])[:, 0]
        length = at.step_length(direction, moved, l2)
        reached = replace(
            state, coef=state.coef + length * direction, scores=state.scores + length * moved
        )
        duals = _Spread(problem, reached).dual(), at.multipliers(moved)
        gaps = [_gap(problem, reached, dual) for dual in duals]
        best = int(np.argmin(gaps))
        idle = 0 if gaps[best] < FALL * state.gap else state.idle + 1
        change = length * float(np.linalg.norm(direction))
        stuck = idle >= STUCK and state.covariances is not None and at.kappa > 0
        return replace(
            reached,
            n_iter=state.n_iter + 1,
            levels=_Spread(problem, reached).sizes / at.kappa if stuck else None,
            dual=duals[best],
            gap=min(gaps[best], state.gap),
            idle=idle,
            point_change=change / (1.0 + float(np.linalg.norm(state.coef))),
            finished=not stuck and (change == 0.0 or idle >= PATIENCE),
        )

    def _in_levels(
        self, problem: Problem, state: ProbabilityState, levels: Array
    ) -> ProbabilityState:
        """A Newton step in the levels, from what the coefficients are at these."""
        at, l2 = _Spread(problem, state), problem.penalty.l2
        unit = float(at.variances().max()) / l2
        levels = np.maximum(levels, LEAST * unit)
        solve = cholesky(at.matrix(l2, 1.0 / levels))
        coef = solve(-at.pull(at.form.offset))
        scores = at.design.scores(coef[:, None])[:, 0]
        reached = replace(state, coef=coef, scores=scores)
        found = _Spread(problem, reached)
        dual = found.at_levels(levels)
        gap = _gap(problem, reached, dual)
        pulls = np.stack([found.image(k) / levels[k] ** 2 for k in range(2)], axis=1)
        slope = 0.5 * (at.kappa**2 - (found.sizes / levels) ** 2)
        bend = np.diag(found.sizes**2 / levels**3) - pulls.T @ solve(pulls)
        idle = 0 if gap < FALL * state.gap else state.idle + 1
        return replace(
            reached,
            n_iter=state.n_iter + 1,
            dual=dual,
            levels=_next_levels(levels, slope, bend, LOW * unit),
            gap=min(gap, state.gap),
            idle=idle,
            finished=idle >= LEVEL_PATIENCE,
        )

    def _without_margin(self, problem: Problem, state: ProbabilityState) -> ProbabilityState:
        """Look for a direction with a margin, or for a proof that there is none."""
        at = _Spread(problem, state)
        apart = -at.pull(at.form.offset)
        coef = at.solved(SEARCH_LIFT * at.curvature(), at.weighed, apart)
        scores = at.design.scores(coef[:, None])[:, 0]
        reached = replace(state, n_iter=state.n_iter + 1, coef=coef, scores=scores)
        u = at.weighed(at.form.deviations(scores)) / at.kappa
        if all(float(np.linalg.norm(u[one])) <= 1.0 for one in at.form.classes):
            nothing = replace(
                reached,
                coef=np.zeros_like(coef),
                scores=np.zeros_like(scores),
                dual=at.form.dual_point(at.form.project(u)),
                finished=True,
            )
            most = float(apart @ apart) / problem.penalty.l2
            if _gap(problem, nothing, nothing.dual) <= NOTHING * most:
                return nothing
        return replace(reached, idle=state.idle + 1, finished=state.idle >= SEARCH_LIMIT)


class _Spread:
    """Coefficients w, and the deviations ``v_i = r_i (x_i'w - mean)`` of the samples.

    Their norms over the classes are the standard deviations n_o, ``S_o w = X' (r v)_o``.
    """

    def __init__(self, problem: Problem, state: ProbabilityState) -> None:
        self.design, self.covariances = _coordinates(problem).design, state.covariances
        self.form, self.kappa = _loss(problem).form, _loss(problem).kappa
        self.coef, self.v = state.coef, self.form.deviations(state.scores)
        self.sizes = np.array([np.linalg.norm(self.v[one]) for one in self.form.classes])

    def pull(self, dual: Array) -> Array:
        """``X'q``."""
        return self.design.adjoint(dual[:, None])[:, 0]

    def dual(self) -> Array:
        """The gradient of the loss in the scores."""
        return self.form.dual_point(self.weighed(self.v) / self.kappa if self.kappa else self.v)

    def weighed(self, e: Array) -> Array:
        """``kappa e_o / n_o`` in each class that varies."""
        rate = np.zeros_like(e)
        for one, size in zip(self.form.classes, self.sizes, strict=True):
            if size > 0:
                rate[one] = e[one] * (self.kappa / size)
        return rate

    def bent(self, e: Array) -> Array:
        """Derivative of ``kappa v_o / n_o`` along e: without what e has along v."""
        rate = self.weighed(e)
        for one, size in zip(self.form.classes, self.sizes, strict=True):
            if size > 0:
                unit = self.v[one] / size
                rate[one] -= unit * float(unit @ rate[one])
        return rate

    def multipliers(self, moved: Array) -> Array:
        """The dual point of the quadratic model after a step, made feasible."""
        if self.kappa == 0:
            return self.dual()
        u = (self.weighed(self.v) + self.bent(self.form.deviations(moved))) / self.kappa
        return self.form.dual_point(self.form.project(u))

    def curvature(self) -> float:
        """A mean curvature of ``kappa sum_o S_o / n_o`` over the coordinates."""
        if self.covariances is None:
            bend = self.kappa * float((self.sizes**2).sum() / self.sizes.max())
            return bend / float(self.coef @ self.coef)
        matrix = self._hessian(0.0, self.weighed)
        return float(np.trace(matrix)) / len(matrix)

    def solved(self, l2: float, rate: Callable[[Array], Array], right: Array) -> Array:
        """Solve ``(l2 I + X' r rate(v of .)) d = right``, rate being `bent` or `weighed`."""
        if self.covariances is not None:
            return cholesky(self._hessian(l2, rate))(right)

        def product(direction: Array) -> Array:
            e = self.form.deviations(self.design.scores(direction[:, None])[:, 0])
            return l2 * direction + self.pull(self.form.roots * rate(e))

        share = float(np.linalg.norm(right) / (l2 * np.linalg.norm(self.coef)))
        share = min(LOOSEST, max(TIGHTEST, share))
        return conjugate_gradients(product, np.ones_like(right), right, share, CG_LIMIT)

    def _hessian(self, l2: float, rate: Callable[[Array], Array]) -> Array:
        matrix = self.matrix(l2, self._factors())
        if rate == self.bent:
            for k in range(2):
                if self.sizes[k] == 0:
                    continue
                unit = self.image(k) / self.sizes[k]
                subtract_outer(matrix, unit * (self.kappa / self.sizes[k]), unit)
        return matrix

    def matrix(self, l2: float, factors: Array) -> Array:
        """``l2 I + sum_o factors_o S_o``."""
        assert self.covariances is not None
        matrix: Array = np.tensordot(factors, self.covariances, axes=1)
        np.einsum("ii->i", matrix)[:] += l2
        return matrix

    def image(self, k: int) -> Array:
        """``S_o w`` of one class."""
        assert self.covariances is not None
        image: Array = self.covariances[k] @ self.coef
        return image

    def variances(self) -> Array:
        """The total variance of each class, (2,)."""
        assert self.covariances is not None
        return np.array([np.trace(covariance) for covariance in self.covariances])

    def at_levels(self, levels: Array) -> Array:
        """The dual point ``u_o = v_o / (kappa mu_o)``, made feasible."""
        u = np.zeros_like(self.v)
        for one, level in zip(self.form.classes, levels, strict=True):
            u[one] = self.v[one] / (self.kappa * level)
        return self.form.dual_point(self.form.project(u))

    def _factors(self) -> Array:
        """``kappa / n_o``, zero for a class that does not vary."""
        return np.divide(self.kappa, self.sizes, out=np.zeros(2), where=self.sizes > 0)

    def step_length(self, direction: Array, moved: Array, l2: float) -> float:
        """The step at which the objective along ``w + t d`` stops falling.

        ``f'(t) = (l2 w - means apart)'d + t l2 |d|^2 + kappa sum_o (v + t e)_o'e_o / |v + t e|_o``
        """
        e, bend = self.form.deviations(moved), l2 * float(direction @ direction)
        start = float(self.form.offset @ moved) + l2 * float(self.coef @ direction)
        parts = [
            (float(self.v[one] @ self.v[one]), float(self.v[one] @ e[one]), float(e[one] @ e[one]))
            for one in self.form.classes
        ]

        def slope(t: float) -> float:
            total = start + t * bend
            for a, b, c in parts:
                square = a + 2.0 * t * b + t * t * c
                total += self.kappa * (b + t * c) / np.sqrt(square) if square > 0 else 0.0
            return float(total)

        return _root(slope)


def _loss(problem: Problem) -> EllipsoidLoss:
    assert isinstance(problem.loss, EllipsoidLoss)
    return problem.loss


def _is_ridge(problem: Problem) -> bool:
    return isinstance(problem.penalty, Ridge) and problem.penalty.l2 > 0


def _coordinates(problem: Problem) -> Coordinates:
    """All features, or the span of the samples; centred, which these losses do not see.

    Data that are large both ways are taken as they are: products with them are all that is used.
    """
    if short_side(problem.design) > LARGEST_SIDE:
        return AllFeatures(problem.design)
    return in_short_coordinates(centred(problem.design, problem.loss.shares))


def _means_apart(problem: Problem) -> Array:
    """Difference of the means of the classes, (n_features,)."""
    return -problem.design.adjoint(_loss(problem).form.offset[:, None])[:, 0]


def _covariances(loss: EllipsoidLoss, design: Design) -> tuple[Array, Array]:
    """The weighted covariances of the two classes, (k, k) each."""

    def covariance(one: NDArray[np.intp]) -> Array:
        shares = np.zeros(design.n_samples)
        shares[one] = loss.form.roots[one] ** 2
        return design.gram(shares, design.adjoint(shares[:, None])[:, 0])

    first, second = (covariance(one) for one in loss.form.classes)
    return first, second


def _gap(problem: Problem, state: ProbabilityState, dual: Array | None) -> float:
    """The duality gap of the state's coefficients and a dual point."""
    if dual is None:
        return np.inf
    l2, design = problem.penalty.l2, _coordinates(problem).design
    rest = l2 * state.coef + design.adjoint(dual[:, None])[:, 0]
    young = _loss(problem).fenchel_young(state.scores[:, None], dual[:, None])
    return young + float(rest @ rest) / (2.0 * l2)


def _next_levels(levels: Array, slope: Array, bend: Array, low: float) -> Array:
    """A Newton step in the two levels, kept within factors of what they are.

    A low level that wants to fall goes to zero, and out of the equations of the other one.
    """
    falling = (slope > 0) & (levels <= low)
    wanted = np.where(falling, 0.0, levels * np.where(slope > 0, 0.1, LEVEL_RISE))
    rest = np.flatnonzero(~falling)
    part = bend[np.ix_(rest, rest)]
    if rest.size and np.linalg.eigvalsh(part)[0] > 0:
        wanted[rest] = levels[rest] - np.linalg.solve(part, slope[rest])
    moved: Array = np.clip(wanted, LEVEL_FALL * levels, LEVEL_RISE * levels)
    return moved


def _secular(values: Array, apart: Array, kappa: float) -> _Secular:
    """Solve ``sum_j d_j^2 lambda_j / (lambda_j + mu)^2 = kappa^2`` for mu >= 0.

    Newton's method on ``1 / kappa = 1 / root(mu)``, concave in mu: from the left it stays there.
    Without a solution mu is zero, and what is left of d is what lies outside the range.

    Parameters
    ----------
    values, apart : (k,)
        Eigenvalues lambda, and the difference of the means d in the eigenvectors.
    """
    top = float(values.max(initial=0.0))
    real = values > ROUNDING * values.size * top
    if kappa == 0 or not real.any():
        return _Secular(apart.copy(), np.zeros_like(apart))
    heavy, part = values[real], apart[real]
    mu, found = 0.0, False
    for _ in range(SECULAR_STEPS):
        shifted = heavy + mu
        square = float((part**2 * heavy / shifted**2).sum())
        if square <= kappa**2 * (1.0 + SECULAR):
            break
        found = True
        fall = float((part**2 * heavy / shifted**3).sum())
        step = (np.sqrt(square) / kappa - 1.0) * square / fall
        if mu + step == mu:
            break
        mu += step
    direction, regression = np.zeros_like(apart), np.zeros_like(apart)
    regression[real] = part / (heavy + mu)
    if found:
        direction[real] = mu * regression[real]
    if found or np.linalg.norm(apart[~real]) > OUTSIDE * np.linalg.norm(apart):
        direction[~real] = apart[~real]
    return _Secular(direction, regression)


def _lanczos(problem: Problem, state: FisherState) -> FisherState:
    """`LANCZOS_BLOCK` more orthonormal vectors that make the covariance tridiagonal."""
    design, form = problem.design, _loss(problem).form
    diagonal = [] if state.diagonal is None else list(state.diagonal)
    beside = [] if state.beside is None else list(state.beside)
    block = np.zeros((LANCZOS_BLOCK, design.n_features))
    following, count = state.following / np.linalg.norm(state.following), 0
    ended = False
    while count < LANCZOS_BLOCK and not ended:
        block[count] = following
        count += 1
        scores = design.scores(following[:, None])[:, 0]
        spread = form.roots * form.deviations(scores)
        image = design.adjoint(spread[:, None])[:, 0]
        diagonal.append(float(following @ image))
        size = float(np.linalg.norm(image))
        for _ in range(2):  # twice is enough
            for part in (*state.basis, block[:count]):
                image -= part.T @ (part @ image)
        rest = float(np.linalg.norm(image))
        beside.append(rest)
        ended = rest <= BREAKDOWN * size
        following = image if ended else image / rest
    return replace(
        state,
        basis=(*state.basis, block[:count]),
        following=following,
        diagonal=np.array(diagonal),
        beside=np.array(beside),
        finished=ended,
    )


def _combined(basis: tuple[Array, ...], weights: Array) -> Array:
    """``sum_j weights_j basis_j``."""
    total, first = np.zeros(basis[0].shape[1]), 0
    for block in basis:
        total += block.T @ weights[first : first + len(block)]
        first += len(block)
    return total


def _root(slope: Callable[[float], float]) -> float:
    """The root of an increasing function, by doubling, then false position and bisection in turn.

    Zero where the function does not start below zero.
    """
    first = slope(0.0)
    if not first < 0.0:
        return 0.0
    low, high, t = 0.0, np.inf, 1.0
    at_low, at_high = first, np.inf
    for trial in range(RAY_STEPS):
        here = slope(t)
        if abs(here) <= RAY_SHARE * abs(first):
            return t
        if here < 0.0:
            low, at_low = t, here
        else:
            high, at_high = t, here
        if high == np.inf:
            t = 2.0 * t
        elif trial % 2 == 0:
            t = low + (high - low) * at_low / (at_low - at_high)
        else:
            t = 0.5 * (low + high)
        if t in (low, high):
            return t
    return low
