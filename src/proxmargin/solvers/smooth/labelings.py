"""Fits of one smooth model to many labelings of the same samples, side by side.

For a loss phi of margins and labels ``y_k``, one column a labeling,

    minimise over (u, b)    (1/n) sum_i phi(y_ik (z_i'u + b)) + P_k(u),

with samples z in coordinates of their principal axes, where ``Z'Z`` is diagonal and does not
depend on the labels. A bound h on the curvature of the loss then gives a majoriser with a diagonal
Hessian, ``(h/n) Z'Z``, for all labelings at once: a step is two matrix products with Z, and the
condition number of the data does not matter. Steps are accelerated (Nesterov) with restarts, and h
is found by backtracking for each column. Columns whose duality gap meets the tolerance leave the
batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.base import Array, Index
from proxmargin.losses import MarginLoss
from proxmargin.rounding import TINY
from proxmargin.solvers.labelings import Axes, LabelingFits

__all__ = ["Balls", "Ridges", "Shrinkage", "fit_labelings"]

Mask = NDArray[np.bool_]

CHECK_EVERY = 5  # steps between two duality gaps, which cost half a step each
MAX_STEPS = 2000  # after which a labeling is left unsolved
GROWTH = 2.0  # of the curvature h where the majoriser is violated
DECAY = 0.9  # of h after each step that it held for
SLACK = 1e-12  # relative to the loss: below it a Bregman distance is rounding
MAX_SECULAR_STEPS = 60  # Newton's method needs half a dozen from the multiplier of the step before
SECULAR_TOLERANCE = 1e-6  # relative, of the norm; the rest is scaled into the ball
LEAST_MULTIPLIER = 1e-300


# ---- penalties, one for each column -------------------------------------------------------------


class Shrinkage(Protocol):
    """The penalties of the columns."""

    def minimiser(self, pull: Array, bend: Array, start: Array) -> tuple[Array, Array]:
        """``argmin_u P(u) + u' diag(bend) u / 2 - pull'u`` of each column, (rank, n), and its
        multipliers (n,); those of the step before are the start."""

    def value(self, u: Array) -> Array:
        """``P(u)`` of each column."""

    def gap(self, u: Array, v: Array) -> Array:
        """``P(u) + P*(v) - u'v >= 0`` of each column."""

    def picked(self, columns: Index) -> Self:
        """The penalties of some of the columns."""


@dataclass(frozen=True, eq=False)
class Balls:
    """``|u| <= radius``, with a radius for each column.

    Parameters
    ----------
    radii : (n_labelings,) > 0
    """

    radii: Array

    def minimiser(self, pull: Array, bend: Array, start: Array) -> tuple[Array, Array]:
        """Newton's method on the secular equation ``radius / |u(mu)| = 1``, which is nearly linear
        in mu, with ``u(mu) = pull / (bend + mu)``."""
        mu = np.maximum(start, LEAST_MULTIPLIER)
        for _ in range(MAX_SECULAR_STEPS):
            inverse = 1.0 / (bend + mu)
            u = pull * inverse
            squares = np.einsum("ij,ij->j", u, u)
            norms = np.sqrt(squares)
            slopes = np.einsum("ij,ij,ij->j", u, u, inverse)
            excess = norms / self.radii - 1.0
            moved = mu + excess * squares / np.maximum(slopes, LEAST_MULTIPLIER)
            moved = np.maximum(moved, LEAST_MULTIPLIER)
            inside = (moved == LEAST_MULTIPLIER) & (excess <= 0.0)
            if np.all((np.abs(excess) <= SECULAR_TOLERANCE) | (inside & (mu == moved))):
                break
            mu = moved
        return u * np.minimum(1.0, self.radii / np.maximum(norms, LEAST_MULTIPLIER)), mu

    def value(self, u: Array) -> Array:
        return np.zeros(u.shape[1])

    def gap(self, u: Array, v: Array) -> Array:
        return self.radii * np.sqrt(np.einsum("ij,ij->j", v, v)) - np.einsum("ij,ij->j", u, v)

    def picked(self, columns: Index) -> Balls:
        return Balls(self.radii[columns])


@dataclass(frozen=True, eq=False)
class Ridges:
    """``strength |u|^2 / 2``, the same for all columns."""

    strength: float

    def minimiser(self, pull: Array, bend: Array, start: Array) -> tuple[Array, Array]:
        return pull / (bend + self.strength), start

    def value(self, u: Array) -> Array:
        return 0.5 * self.strength * np.einsum("ij,ij->j", u, u)

    def gap(self, u: Array, v: Array) -> Array:
        rest = self.strength * u - v
        return np.einsum("ij,ij->j", rest, rest) / (2.0 * self.strength)

    def picked(self, columns: Index) -> Ridges:
        return self


# ---- the batch ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Batch:
    """Iterates of the columns that have not converged.

    Attributes
    ----------
    columns : (n,) their numbers
    signs : (n_samples, n)
    shrinkage : Shrinkage
    u, intercepts, scores : the iterates, and ``Z u``
    ahead, ahead_intercepts, ahead_scores : the extrapolated points
    weight : (n,) the t of Nesterov's sequence
    curvature : (n,) the h of the majoriser
    multipliers : (n,) of the last step, if the penalty has them
    """

    columns: Index
    signs: Array
    shrinkage: Shrinkage
    u: Array
    intercepts: Array
    scores: Array
    ahead: Array
    ahead_intercepts: Array
    ahead_scores: Array
    weight: Array
    curvature: Array
    multipliers: Array

    @classmethod
    def of(cls, axes: Axes, signs: Array, shrinkage: Shrinkage, curvature: float) -> _Batch:
        n, count = signs.shape
        u, zero, scores = (
            np.zeros((axes.squares.size, count)),
            np.zeros(count),
            np.zeros((n, count)),
        )
        start = (u, zero, scores)
        more = (np.ones(count), np.full(count, curvature), np.ones(count))
        return cls(np.arange(count), signs, shrinkage, *start, *start, *more)

    def picked(self, live: Index) -> _Batch:
        """The columns whose places are ``live``."""
        arrays = {name: getattr(self, name)[..., live] for name in _ARRAYS}
        return replace(self, shrinkage=self.shrinkage.picked(live), **arrays)


_ARRAYS = tuple(name for name in _Batch.__dataclass_fields__ if name != "shrinkage")


def fit_labelings(
    loss: MarginLoss, axes: Axes, signs: Array, shrinkage: Shrinkage, tol: float
) -> LabelingFits:
    """Fit all labelings to a relative duality gap of ``tol``.

    Parameters
    ----------
    loss : MarginLoss
        Smooth.
    axes : Axes
        With centred samples if the intercept is free; otherwise it is zero.
    signs : (n_samples, n_labelings) of -1 and +1
    shrinkage : Shrinkage
    tol : float

    Returns
    -------
    Fitted
        A labeling that is not solved after `MAX_STEPS` steps has a gap above ``tol``.
    """
    count = signs.shape[1]
    found = LabelingFits(np.zeros_like(signs), np.zeros(count), np.full(count, np.inf))
    batch = _Batch.of(axes, signs, shrinkage, loss.smoothness)
    for step in range(1, MAX_STEPS + 1):
        batch = _stepped(loss, axes, batch)
        if step % CHECK_EVERY:
            continue
        gaps = _relative_gaps(loss, axes, batch)
        better = gaps < found.gaps[batch.columns]
        _record(found, batch, gaps, better)
        live = np.flatnonzero(found.gaps[batch.columns] > tol)
        if not live.size:
            break
        if live.size < batch.columns.size:
            batch = batch.picked(live)
    return found


def _record(found: LabelingFits, batch: _Batch, gaps: Array, better: Mask) -> None:
    at = batch.columns[better]
    found.scores[:, at] = batch.scores[:, better]
    found.norms[at] = np.sqrt(np.einsum("ij,ij->j", batch.u[:, better], batch.u[:, better]))
    found.gaps[at] = gaps[better]


def _stepped(loss: MarginLoss, axes: Axes, batch: _Batch) -> _Batch:
    """One step of all columns; where the majoriser is violated only its curvature grows."""
    n = axes.samples.shape[0]
    margins = batch.signs * (batch.ahead_scores + batch.ahead_intercepts)
    dual = loss.descent(margins)
    pulled = batch.signs * dual
    bend = np.outer(axes.squares / n, batch.curvature)
    pull = bend * batch.ahead + axes.samples.T @ pulled / n
    u, multipliers = batch.shrinkage.minimiser(pull, bend, batch.multipliers)
    intercepts = batch.ahead_intercepts
    if axes.centred:
        intercepts = intercepts + pulled.mean(axis=0) / batch.curvature
    scores = axes.samples @ u
    moved = scores + intercepts
    # the Bregman distance of the loss, without cancellation
    distance = loss.fenchel_young(batch.signs * moved, dual).mean(axis=0)
    way = moved - batch.ahead_scores - batch.ahead_intercepts
    bound = 0.5 * batch.curvature * np.einsum("ij,ij->j", way, way) / n
    holds = distance <= bound + SLACK * loss.value(margins).mean(axis=0)
    return _extrapolated(batch, u, intercepts, scores, multipliers, holds, way)


def _extrapolated(
    batch: _Batch,
    u: Array,
    intercepts: Array,
    scores: Array,
    multipliers: Array,
    holds: Array,
    way: Array,
) -> _Batch:
    """The batch at the new points, and the extrapolated ones; columns restart where the last step
    points against the way from the extrapolated point (O'Donoghue and Candes)."""
    since = scores + intercepts - batch.scores - batch.intercepts
    restarts = np.einsum("ij,ij->j", way, since) < 0.0
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * batch.weight**2))
    weight = np.where(restarts, 1.0, following)
    momentum = np.where(restarts, 0.0, (batch.weight - 1.0) / following)
    new = replace(
        batch,
        u=u,
        intercepts=intercepts,
        scores=scores,
        ahead=u + momentum * (u - batch.u),
        ahead_intercepts=intercepts + momentum * (intercepts - batch.intercepts),
        ahead_scores=scores + momentum * (scores - batch.scores),
        weight=weight,
        curvature=batch.curvature * DECAY,
        multipliers=multipliers,
    )
    if holds.all():
        return new
    grown = replace(batch, curvature=batch.curvature * GROWTH)
    chosen = {
        name: np.where(holds, getattr(new, name), getattr(grown, name)) for name in _ARRAYS[2:]
    }
    return replace(new, **chosen)


def _relative_gaps(loss: MarginLoss, axes: Axes, batch: _Batch) -> Array:
    """Duality gaps of the iterates over their objectives.

    With a free intercept the dual points of the heavier class are scaled down, so that the signed
    dual points sum to zero.
    """
    margins = batch.signs * (batch.scores + batch.intercepts)
    dual = loss.descent(margins)
    if axes.centred:
        up = batch.signs > 0
        first, second = (dual * up).sum(axis=0), (dual * ~up).sum(axis=0)
        least = np.minimum(first, second)
        dual = dual * np.where(up, _share(least, first), _share(least, second))
    pulled = axes.samples.T @ (batch.signs * dual) / margins.shape[0]
    losses = loss.fenchel_young(margins, dual).mean(axis=0)
    gaps = losses + np.maximum(batch.shrinkage.gap(batch.u, pulled), 0.0)
    objectives = loss.value(margins).mean(axis=0) + batch.shrinkage.value(batch.u)
    return gaps / np.maximum(objectives, TINY)


def _share(least: Array, each: Array) -> Array:
    return np.divide(least, each, out=np.zeros_like(each), where=each > 0)
