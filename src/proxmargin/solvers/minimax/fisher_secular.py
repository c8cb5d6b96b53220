"""MM-FDA with a ridge: an eigendecomposition of the covariance, then a scalar equation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal

from proxmargin.compiled.rounding import SUM_ROUNDING
from proxmargin.data.designs.base import Design
from proxmargin.functions.losses.minimax import MinimaxFisher
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.solver import Solver, State, Stop
from proxmargin.solvers.minimax.ellipsoids import (
    REFINEMENTS,
    coordinates_of,
    covariances,
    ellipsoid_loss,
    forms_covariances,
    spectrum,
    variances_of,
)
from proxmargin.solvers.shared.numerical import secular_multipliers

# |part of the mean difference in the null space| over |mean difference|, below which it is rounding
NULL_SPACE_ROUNDING = 1e-11
# Lanczos iteration
LANCZOS_BLOCK = 8  # vectors added in one step of the solver
LANCZOS_BREAKDOWN = 1e-13  # relative norm of a residual at which the Krylov space is exhausted


@dataclass(frozen=True, eq=False, kw_only=True)
class FisherState(State):
    coef: Array  # (n_features,)
    dual: Array | None = None  # (n_samples,), the dual point of these coefficients
    # tuple of (LANCZOS_BLOCK or fewer, n_features); orthonormal Lanczos vectors, for large data;
    # ``following`` is the next one
    basis: tuple[Array, ...] = ()
    following: Array
    # (k,); diagonal and subdiagonal of the tridiagonal matrix; the last entry belongs to
    # ``following``
    diagonal: Array
    beside: Array
    # limits of the run, within which a step adds fewer Lanczos vectors
    stop: Stop = field(default_factory=Stop)


class _Secular(NamedTuple):
    """The solution of the secular equation, in the basis of eigenvectors."""

    direction: Array  # (k,), ``mu (Lambda + mu)^-1 d``: l2 times the coefficients
    # (k,), ``(Lambda + mu)^-1 d``, whose scores are the free part of the dual point
    regression: Array
    mu: float

    def solved(self, values: Array, right: Array) -> Array:
        """``(Lambda + mu)^-1 right`` in the range of Lambda, (k,)."""
        real = values > 0
        return np.divide(right, values + self.mu, out=np.zeros_like(right), where=real)

    def refined(self, step: Array) -> _Secular:
        return _Secular(self.direction + self.mu * step, self.regression + step, self.mu)


@dataclass(frozen=True)
class FisherSecular(Solver[FisherState]):
    """MM-FDA with a ridge: ridge discriminant analysis whose strength solves a scalar equation.

    With the difference of the means d and the pooled within-class covariance S, the optimum is

        ``l2 w = mu (S + mu I)^-1 d``,  ``d'(S + mu I)^-1 S (S + mu I)^-1 d = kappa^2``:

    one eigendecomposition of S, over the samples or features, whichever are fewer, then Newton's
    method in mu. If no mu > 0 solves the equation, w is the projection of d onto the null space of
    S, which is zero for most data with more samples than features: kappa has then reached its
    largest value. Data with many samples and many features use a Lanczos basis of S started at d,
    which grows until the certificate is met.
    """

    name: ClassVar[str] = "fisher-secular"
    needs: ClassVar[Trait] = Trait.SINGLE_OUTPUT
    check_every: ClassVar[int] = 1
    max_iter: ClassVar[int] = 300
    reads_columns: ClassVar[bool] = False

    def objection(self, problem: Problem) -> str | None:
        fits = isinstance(problem.loss, MinimaxFisher) and problem.has_ridge_alone
        return None if fits else "it needs the minimax loss of Fisher's criterion and a ridge"

    def init(self, problem: Problem, start: Point, stop: Stop) -> FisherState:
        forms_covariances(problem, deadline=stop.deadline)
        return FisherState(
            coef=start.coef[:, 0].copy(),
            following=_means_apart(problem),
            diagonal=np.empty(0),
            beside=np.empty(0),
            stop=stop,
        )

    def step(self, problem: Problem, state: FisherState) -> FisherState:
        if forms_covariances(problem):
            return self._decomposed(problem, state)
        return self._extended(problem, state)

    def point(self, problem: Problem, state: FisherState) -> Point:
        return Point(state.coef[:, None], np.zeros(1))

    def dual(self, problem: Problem, state: FisherState) -> Array | None:
        return None if state.dual is None else state.dual[:, None]

    def _decomposed(self, problem: Problem, state: FisherState) -> FisherState:
        loss, coordinates = ellipsoid_loss(problem), coordinates_of(problem)
        design = coordinates.design
        apart = -design.adjoint(loss.form.offset[:, None])[:, 0]
        values, vectors = design.remembered(  # independent of kappa
            _within_class_spectrum, loss.form.roots, loss.form.offset, problem=problem
        )
        found = _secular(values, vectors.T @ apart, loss.kappa)
        regression = vectors @ found.regression
        dual = _dual_of(problem, design, regression)
        for _ in range(REFINEMENTS if np.isfinite(found.mu) else 0):
            # residuals from the data: the condition number of the covariance is the square of
            # theirs
            rest = -design.adjoint(dual[:, None])[:, 0] - vectors @ found.direction
            step = found.solved(values, vectors.T @ rest)
            regression = regression + vectors @ step
            found = found.refined(step)
            dual = _dual_of(problem, design, regression)
        coef = coordinates.coef(vectors @ found.direction) / problem.penalty.l2
        return replace(state, n_iter=state.n_iter + 1, coef=coef, dual=dual, finished=True)

    def _extended(self, problem: Problem, state: FisherState) -> FisherState:
        """The state with more Lanczos vectors, and the optimum in their span."""
        loss, size = ellipsoid_loss(problem), float(np.linalg.norm(_means_apart(problem)))
        if size == 0.0:
            return replace(state, n_iter=state.n_iter + 1, finished=True)
        state = _lanczos(problem, state)
        found_values, vectors = eigh_tridiagonal(state.diagonal, state.beside[:-1])
        values: Array = np.array(found_values, np.float64)
        values[values <= SUM_ROUNDING * values.size * values[-1]] = 0.0
        found = _secular(values, size * vectors[0], loss.kappa)
        coef = _basis_combination(state.basis, vectors @ found.direction) / problem.penalty.l2
        regression = _basis_combination(state.basis, vectors @ found.regression)
        dual = _dual_of(problem, problem.design, regression)
        return replace(state, n_iter=state.n_iter + 1, coef=coef, dual=dual)


def _means_apart(problem: Problem) -> Array:
    """Difference of the means of the classes, (n_features,)."""
    return -problem.design.adjoint(ellipsoid_loss(problem).form.offset[:, None])[:, 0]


def _dual_of(problem: Problem, design: Design, regression: Array) -> Array:
    """The dual point whose free part is the scores of ``regression``, (n_samples,)."""
    form = ellipsoid_loss(problem).form
    scores = design.scores(regression[:, None])[:, 0]
    dual: Array = form.offset + form.roots * form.deviations(scores)
    return dual


def _within_class_spectrum(
    design: Design, roots: Array, offset: Array, *, problem: Problem
) -> tuple[Array, Array]:
    """The spectrum of the sum of the class covariances; ``roots`` and ``offset`` are its key."""
    loss = ellipsoid_loss(problem)
    return spectrum(np.add(*covariances(loss, design)), variances_of(problem))


def _secular(values: Array, apart: Array, kappa: float) -> _Secular:
    """Solve the secular equation (`secular_multipliers`) for mu >= 0, eigenvalues ``values`` >= 0
    and the difference ``apart`` of the means in the basis of eigenvectors, (k,). Without a root mu
    is zero and the direction is d's projection onto the null space."""
    real = values > 0
    if kappa == 0 or not real.any():
        return _Secular(apart.copy(), np.zeros_like(apart), np.inf)
    heavy, part = values[real], apart[real]
    mu = float(secular_multipliers(heavy[None, :], part[None, :] ** 2, kappa)[0])
    direction, regression = np.zeros_like(apart), np.zeros_like(apart)
    regression[real] = part / (heavy + mu)
    direction[real] = mu * regression[real]
    if mu > 0 or np.linalg.norm(apart[~real]) > NULL_SPACE_ROUNDING * np.linalg.norm(apart):
        direction[~real] = apart[~real]
    return _Secular(direction, regression, mu)


def _lanczos(problem: Problem, state: FisherState) -> FisherState:
    """The state with `LANCZOS_BLOCK` more Lanczos vectors, fully reorthogonalised. Fewer, but one
    at least, if the time is over before."""
    design, form = problem.design, ellipsoid_loss(problem).form
    diagonal = state.diagonal.tolist()
    beside = state.beside.tolist()
    block = np.zeros((LANCZOS_BLOCK, design.n_features))
    following, count = state.following / np.linalg.norm(state.following), 0
    ended = False
    while count < LANCZOS_BLOCK and not ended and not (count and state.stop.is_late()):
        block[count] = following
        count += 1
        scores = design.scores(following[:, None])[:, 0]
        spread = form.roots * form.deviations(scores)
        image = design.adjoint(spread[:, None])[:, 0]
        diagonal.append(float(following @ image))
        size = float(np.linalg.norm(image))
        for _ in range(2):  # Gram-Schmidt twice is enough (Kahan)
            for part in (*state.basis, block[:count]):
                image -= part.T @ (part @ image)
        rest = float(np.linalg.norm(image))
        beside.append(rest)
        ended = rest <= LANCZOS_BREAKDOWN * size
        following = image if ended else image / rest
    return replace(
        state,
        basis=(*state.basis, block[:count]),
        following=following,
        diagonal=np.array(diagonal),
        beside=np.array(beside),
        finished=ended,
    )


def _basis_combination(basis: tuple[Array, ...], weights: Array) -> Array:
    """``sum_j weights_j basis_j``."""
    total, first = np.zeros(basis[0].shape[1]), 0
    for block in basis:
        total += block.T @ weights[first : first + len(block)]
        first += len(block)
    return total
