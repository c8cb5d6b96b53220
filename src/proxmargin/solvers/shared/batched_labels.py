"""One model fitted to many labelings of the same samples, for permutation tests.

With labels ``y_k``, one column a labeling, and samples z in coordinates of their principal axes,
where ``Z'Z`` is diagonal and does not depend on the labels, there are three methods:

* smooth losses (`fit_labelings`): a bound h on the curvature of the loss gives a majoriser with a
  diagonal Hessian, ``(h/n) Z'Z``, for all labelings at once. A step is two matrix products with Z,
  and the condition number of the data does not matter. Steps are accelerated (Nesterov) with
  restarts, and h is found by backtracking for each column.
* SVM and nu-SVM (`DualBoxes`): sequential minimal optimisation with the Gram matrix ``Z Z'``.
* MM-FDA (`FisherSpectra`): one small spectrum a labeling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from proxmargin.compiled.rounding import RISE_ROUNDING, ROOT_STEPS, TINY, UNIT
from proxmargin.compiled.solvers.decomposition import pairwise
from proxmargin.data.designs.base import Design
from proxmargin.functions.losses import MarginLoss
from proxmargin.runtime.memory import BLOCK_ENTRIES
from proxmargin.runtime.types import Array, Index, Mask
from proxmargin.solvers.shared.numerical import secular_multipliers

# accelerated steps
CHECK_EVERY = 5  # steps between two duality gaps, which cost half a step each
MAX_STEPS = 2000  # after which a labeling is left unsolved
DECAY = 0.9  # of h after each step that it held for
SECULAR_TOLERANCE = 1e-6  # relative, of the norm; the rest is scaled into the ball
# sequential minimal optimisation: where fits one by one are slower, whatever C and nu
LEAST_RANK = 2.0 / 3.0  # of the data, over the number of samples: of less, K is ill-conditioned
MOST_SAMPLES = 500  # a descent takes more than linearly many steps, each over all samples
FORCINGS = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11)  # violations, relative, after which a face is solved
PAIRS_PER_SAMPLE = 60  # limit of the steps to a face, beyond which a fit by itself is faster
LEAST_EIGENVALUE = 1e-10  # over the largest; labelings with smaller ones are left unsolved


class Axes(NamedTuple):
    """Samples in coordinates of their principal axes."""

    # (n_samples, rank), Z; with orthogonal columns, which sum to zero if they are centred
    samples: Array
    squares: Array  # (rank,), the diagonal of ``Z'Z``
    centred: bool


def principal_axes(design: Design, *, centred: bool) -> Axes:
    """The samples in coordinates of their principal axes, by the smaller Gram matrix."""
    n, p = design.n_samples, design.n_features
    shares = np.full(n, 1.0 / n)
    mean = design.adjoint(shares[:, None])[:, 0] if centred else np.zeros(p)
    if n <= p:
        gram = design.centred_gram(shares) if centred else design.outer_gram()
        squares, basis = _spectrum(gram)
        return Axes(basis * np.sqrt(squares), squares, centred)
    squares, basis = _spectrum(design.gram(np.ones(n), mean))
    return Axes(design.scores(basis) - mean @ basis, squares, centred)


def _spectrum(gram: Array) -> tuple[Array, Array]:
    """Eigenvalues above rounding, from the largest, and their eigenvectors in C order."""
    values, vectors = np.linalg.eigh(gram)
    live = values > UNIT * values.size * max(values[-1], 0.0)
    return values[live][::-1], np.ascontiguousarray(vectors[:, live][:, ::-1])


class LabelingFits(NamedTuple):
    """Solutions of the labelings."""

    scores: Array  # (n_samples, n_labelings), ``Z u``, without intercept
    norms: Array  # (n_labelings,), ``|u|``
    gaps: Array  # (n_labelings,), relative duality gaps


class FitsLabelings(Protocol):
    """A method that fits one model to many labelings."""

    def __call__(self, axes: Axes, signs: Array, *, tol: float) -> LabelingFits:
        """Of labelings (n_samples, n_labelings) of -1 and +1, to a relative gap of ``tol``; those
        that it does not solve have a larger one."""


# ---- smooth losses ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Balls:
    """``|u| <= radius``, with a radius > 0 for each column."""

    radii: Array

    def minimiser(self, pull: Array, curvature: Array, start: Array) -> tuple[Array, Array]:
        """``argmin_u P(u) + u' diag(curvature) u / 2 - pull'u`` of each column, (rank, n), and its
        multipliers (n,); those of the step before are the start.

        Newton's method on the secular equation ``radius / |u(mu)| = 1``, which is nearly linear in
        mu, with ``u(mu) = pull / (curvature + mu)``.
        """
        mu = np.maximum(start, TINY)
        for _ in range(ROOT_STEPS):
            inverse = 1.0 / (curvature + mu)
            u = pull * inverse
            squares = np.einsum("ij,ij->j", u, u)
            norms = np.sqrt(squares)
            slopes = np.einsum("ij,ij,ij->j", u, u, inverse)
            excess = norms / self.radii - 1.0
            moved = np.maximum(mu + excess * squares / np.maximum(slopes, TINY), TINY)
            inside = (moved == TINY) & (excess <= 0.0)
            if np.all((np.abs(excess) <= SECULAR_TOLERANCE) | (inside & (mu == moved))):
                break
            mu = moved
        return u * np.minimum(1.0, self.radii / np.maximum(norms, TINY)), mu

    def value(self, u: Array) -> Array:
        """``P(u)`` of each column."""
        return np.zeros(u.shape[1])

    def gap(self, u: Array, v: Array) -> Array:
        """``P(u) + P*(v) - u'v >= 0`` of each column."""
        return self.radii * np.sqrt(np.einsum("ij,ij->j", v, v)) - np.einsum("ij,ij->j", u, v)

    def picked(self, columns: Index) -> Balls:
        """The penalties of some of the columns."""
        return Balls(self.radii[columns])


@dataclass(frozen=True, eq=False)
class Ridges:
    """``strength |u|^2 / 2``, the same for all columns; methods are those of `Balls`."""

    strength: float

    def minimiser(self, pull: Array, curvature: Array, start: Array) -> tuple[Array, Array]:
        return pull / (curvature + self.strength), start

    def value(self, u: Array) -> Array:
        return 0.5 * self.strength * np.einsum("ij,ij->j", u, u)

    def gap(self, u: Array, v: Array) -> Array:
        rest = self.strength * u - v
        return np.einsum("ij,ij->j", rest, rest) / (2.0 * self.strength)

    def picked(self, columns: Index) -> Ridges:
        return self


@dataclass(frozen=True, eq=False)
class _Batch:
    """Iterates of the columns that have not converged."""

    columns: Index  # (n,) their numbers
    signs: Array  # (n_samples, n)
    penalty: Balls | Ridges
    # u, scores: the iterates, a free intercept in the last row of u, and scores with it
    u: Array
    scores: Array
    # ahead, ahead_scores: the extrapolated points
    ahead: Array
    ahead_scores: Array
    weight: Array  # (n,) the t of Nesterov's sequence
    curvature: Array  # (n,) the h of the majoriser
    multipliers: Array  # (n,) of the last step, if the penalty has them

    def picked(self, live: Index) -> _Batch:
        """The columns whose places are ``live``."""
        arrays = {name: getattr(self, name)[..., live] for name in _ARRAYS}
        return replace(self, penalty=self.penalty.picked(live), **arrays)


_ARRAYS = tuple(name for name in _Batch.__dataclass_fields__ if name != "penalty")


def fit_labelings(
    loss: MarginLoss, axes: Axes, signs: Array, penalty: Balls | Ridges, tol: float
) -> LabelingFits:
    """Fit a smooth loss to all labelings, to a relative duality gap of ``tol``. Columns whose gap
    meets the tolerance leave the batch; a labeling that is not solved after `MAX_STEPS` steps has a
    larger one. The intercept is free if the samples are centred, otherwise it is zero."""
    (n, count), rank = signs.shape, axes.squares.size
    found = LabelingFits(np.zeros_like(signs), np.zeros(count), np.full(count, np.inf))
    if axes.centred:  # a constant is orthogonal to centred samples: the intercept has its own axis
        samples = np.column_stack([axes.samples, np.ones(n)])
        axes = Axes(samples, np.append(axes.squares, n), True)
    zero = np.zeros((axes.squares.size, count)), np.zeros((n, count))
    more = np.ones(count), np.full(count, loss.smoothness), np.ones(count)
    batch = _Batch(np.arange(count), signs, penalty, *zero, *zero, *more)
    for step in range(1, MAX_STEPS + 1):
        batch = _stepped(loss, axes, rank, batch)
        if step % CHECK_EVERY:
            continue
        gaps = _relative_gaps(loss, axes, rank, batch)
        better = gaps < found.gaps[batch.columns]
        at, u = batch.columns[better], batch.u[:, better]
        found.scores[:, at] = batch.scores[:, better] - u[rank:].sum(axis=0)
        found.norms[at] = np.sqrt(np.einsum("ij,ij->j", u[:rank], u[:rank]))
        found.gaps[at] = gaps[better]
        live = np.flatnonzero(found.gaps[batch.columns] > tol)
        if not live.size:
            break
        if live.size < batch.columns.size:
            batch = batch.picked(live)
    return found


def _stepped(loss: MarginLoss, axes: Axes, rank: int, batch: _Batch) -> _Batch:
    """One step of all columns; where the majoriser is violated only its curvature grows. Columns
    restart where the last step points against the way from the extrapolated point (O'Donoghue and
    Candes)."""
    n = axes.samples.shape[0]
    margins = batch.signs * batch.ahead_scores
    dual = loss.descent(margins)
    curvature = np.outer(axes.squares / n, batch.curvature)
    pull = curvature * batch.ahead + axes.samples.T @ (batch.signs * dual) / n
    u = pull / curvature
    u[:rank], multipliers = batch.penalty.minimiser(
        pull[:rank], curvature[:rank], batch.multipliers
    )
    scores = axes.samples @ u
    # the Bregman distance of the loss, without cancellation
    distance = loss.fenchel_young(batch.signs * scores, dual).mean(axis=0)
    way = scores - batch.ahead_scores
    bound = 0.5 * batch.curvature * np.einsum("ij,ij->j", way, way) / n
    holds = distance <= bound + RISE_ROUNDING * loss.value(margins).mean(axis=0)
    restarts = np.einsum("ij,ij->j", way, scores - batch.scores) < 0.0
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * batch.weight**2))
    momentum = np.where(restarts, 0.0, (batch.weight - 1.0) / following)
    new = replace(
        batch,
        u=u,
        scores=scores,
        ahead=u + momentum * (u - batch.u),
        ahead_scores=scores + momentum * (scores - batch.scores),
        weight=np.where(restarts, 1.0, following),
        curvature=batch.curvature * DECAY,
        multipliers=multipliers,
    )
    if holds.all():
        return new
    grown = replace(batch, curvature=2.0 * batch.curvature)
    chosen = {
        name: np.where(holds, getattr(new, name), getattr(grown, name)) for name in _ARRAYS[2:]
    }
    return replace(new, **chosen)


def _relative_gaps(loss: MarginLoss, axes: Axes, rank: int, batch: _Batch) -> Array:
    """Duality gaps of the iterates over their objectives. With a free intercept the dual points of
    the heavier class are scaled down, so that the signed dual points sum to zero."""
    margins = batch.signs * batch.scores
    dual = loss.descent(margins)
    if axes.centred:
        up = batch.signs > 0
        sums = np.stack([(dual * up).sum(axis=0), (dual * ~up).sum(axis=0)])
        first, second = np.divide(sums.min(axis=0), sums, out=np.zeros_like(sums), where=sums > 0)
        dual = dual * np.where(up, first, second)
    pulled = axes.samples[:, :rank].T @ (batch.signs * dual) / len(margins)
    u = batch.u[:rank]
    losses = loss.fenchel_young(margins, dual).mean(axis=0)
    gaps = losses + np.maximum(batch.penalty.gap(u, pulled), 0.0)
    return gaps / np.maximum(loss.value(margins).mean(axis=0) + batch.penalty.value(u), TINY)


# ---- SVM and nu-SVM -----------------------------------------------------------------------------


def suits(axes: Axes) -> bool:
    """Whether `DualBoxes` is fast for these samples; it needs a free intercept."""
    samples, rank = axes.samples.shape
    return axes.centred and samples <= MOST_SAMPLES and rank >= LEAST_RANK * samples


@dataclass(frozen=True)
class DualBoxes:
    """SVM or nu-SVM: ``beta'K beta / 2 - target y'beta`` over ``0 <= y_i beta_i <= upper``.

    ``sum_i beta_i = 0`` for the hinge, with ``target = 1``; for the nu-SVM with ``target = 0``, and
    the ``y_i beta_i`` of each class sum to 1/2. Sequential minimal optimisation finds the face of
    the box, and a linear system the minimum on it; where that is outside of the box or its gap too
    large, the descent goes on from where it was.
    """

    upper: float
    target: float

    def __call__(self, axes: Axes, signs: Array, *, tol: float) -> LabelingFits:
        gram = axes.samples @ axes.samples.T
        weights, gaps = np.zeros_like(signs), np.empty(signs.shape[1])
        for k, column in enumerate(signs.T):
            order = np.arange(column.size) if self.target else np.argsort(-column, kind="stable")
            dual = self._dual(gram[order[:, None], order], column[order])
            weights[order, k], gaps[k] = _minimised(dual, tol)
        scores = gram @ weights
        squares = np.maximum(np.einsum("ij,ij->j", weights, scores), 0.0)
        return LabelingFits(scores, np.sqrt(squares), gaps)

    def _dual(self, matrix: Array, signs: Array) -> _Dual:
        up = signs > 0
        low, high = np.where(up, 0.0, -self.upper), np.where(up, self.upper, 0.0)
        if self.target:
            groups, sums = np.ones((1, signs.size)), np.zeros(1)
        else:
            groups, sums = np.stack([up, ~up]).astype(np.float64), np.array([0.5, -0.5])
        return _Dual(matrix, low, high, self.target * signs, groups, sums)


class _Dual(NamedTuple):
    """``beta'K beta / 2 - pull'beta`` on a box, with the sum of each group."""

    matrix: Array  # (n, n)
    # low, high, pull: (n,)
    low: Array
    high: Array
    pull: Array
    groups: Array  # (n_groups, n), one for the members of each, the first group first
    sums: Array  # (n_groups,)


def _minimised(dual: _Dual, tol: float) -> tuple[Array, float]:
    """The weights, and their relative duality gap."""
    value: Array = (dual.sums / dual.groups.sum(axis=1)) @ dual.groups  # the sums, evenly
    best, least, gradient = value, np.inf, dual.matrix @ value - dual.pull
    most, split = PAIRS_PER_SAMPLE * value.size, int(dual.groups[0].sum())
    for forcing in FORCINGS:
        # the unit of scores: the margin of a hinge, or the squared length of a nu-SVM
        unit = 1.0 if dual.pull.any() else float(value @ gradient)
        pairs, _ = pairwise(
            dual.matrix, value, gradient, dual.low, dual.high, split, forcing * unit, most
        )
        for point in (_face_minimum(dual, value), value):
            if point is None:
                continue
            gap = _relative_gap(dual, point)
            if gap < least:
                best, least = point.copy(), gap
            if gap <= tol:
                return best, least
        if pairs == most:
            break
    return best, least


def _face_minimum(dual: _Dual, value: Array) -> Array | None:
    """The minimum with the entries at an end of their interval fixed; None outside of the box."""
    free = np.flatnonzero((value > dual.low) & (value < dual.high))
    fixed, count = value.copy(), free.size
    fixed[free] = 0.0
    sums = dual.groups[:, free]
    live = sums.any(axis=1)
    size = count + np.count_nonzero(live)
    system, right = np.zeros((size, size)), np.empty(size)
    system[:count, :count] = dual.matrix[free[:, None], free]
    system[count:, :count] = sums[live]
    system[:count, count:] = sums[live].T
    right[:count] = dual.pull[free] - dual.matrix[free] @ fixed
    right[count:] = (dual.sums - dual.groups @ fixed)[live]
    try:
        fixed[free] = np.linalg.solve(system, right)[:count]
    except np.linalg.LinAlgError:  # of equal samples
        return None
    inside = (fixed >= dual.low) & (fixed <= dual.high)
    return fixed if inside.all() else None


def _relative_gap(dual: _Dual, value: Array) -> float:
    """The sum of Fenchel-Young terms at the multipliers in the middle of what each group admits."""
    scores = dual.matrix @ value
    gap, gradient, rise, fall = 0.0, scores - dual.pull, dual.high - value, value - dual.low
    for group, total in zip(dual.groups > 0, dual.sums, strict=True):
        lowest = gradient[group & (rise > 0)].min(initial=np.inf)
        highest = gradient[group & (fall > 0)].max(initial=-np.inf)
        ends = [end for end in (lowest, highest) if np.isfinite(end)]
        level = float(np.mean(ends))
        slopes = gradient[group] - level
        gap += float(rise[group] @ np.maximum(-slopes, 0.0) + fall[group] @ np.maximum(slopes, 0.0))
        gap += abs(level * (float(value[group].sum()) - total))
    bound = float(dual.pull @ value - 0.5 * (value @ scores))
    return gap / max(abs(bound), abs(bound + gap), TINY)


# ---- MM-FDA -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FisherSpectra:
    """MM-FDA: ``w = mu (S + mu I)^-1 d / l2`` for the root mu of ``d'(S + mu I)^-1 S (S + mu I)^-1
    d = kappa^2``, with the difference d of the class means m and the within-class covariance ``S =
    Z' diag(1 / n_o) Z - m+ m+' - m- m-'``. Covariances, spectra and secular equations of a block of
    labelings are computed together.
    ``kappa_of`` gives that of a model from the largest one of its labeling."""

    kappa_of: Callable[[float], float]

    def __call__(self, axes: Axes, signs: Array, *, tol: float) -> LabelingFits:
        samples, rank = axes.samples.shape
        size = max(1, BLOCK_ENTRIES // (rank * samples))
        starts = range(0, signs.shape[1], size)
        parts = [self._fitted(axes.samples, signs[:, k : k + size] > 0) for k in starts]
        return LabelingFits(*(np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)))

    def _fitted(self, samples: Array, up: Mask) -> LabelingFits:
        classes = _Classes.of(samples, up)
        values, vectors = np.linalg.eigh(classes.covariances())
        along = np.einsum("bji,bj->bi", vectors, classes.apart)
        # n samples in general position vary within two classes in n - 2 directions
        null = max(0, samples.shape[1] - (samples.shape[0] - 2))
        solved = values[:, null] > LEAST_EIGENVALUE * values[:, -1]
        real = np.arange(values.shape[1]) >= null
        heavy = np.where(real & solved[:, None], values, 1.0)
        squares = np.where(real, along**2, 0.0)
        most = np.sqrt((squares / heavy).sum(axis=1)) + (np.inf if null else 0.0)
        kappa = np.array([self.kappa_of(float(each)) for each in most])
        mu = secular_multipliers(heavy, squares, kappa)[:, None]
        regression = np.where(real, along / (heavy + mu), 0.0)
        direction = np.where(real, mu * regression, along)
        coef, free = (np.einsum("bij,bj->bi", vectors, each) for each in (direction, regression))
        gaps = np.where(solved, classes.relative_gaps(coef, free, kappa), np.inf)
        return LabelingFits(samples @ coef.T, np.linalg.norm(coef, axis=1), gaps)


class _Classes(NamedTuple):
    """Means and covariances of the classes of labelings."""

    samples: Array  # (n_samples, rank)
    shares: Array  # (2, n_samples, n_labelings), of each sample in each class
    means: Array  # (2, n_labelings, rank)

    @classmethod
    def of(cls, samples: Array, up: Mask) -> _Classes:
        shares = np.stack([up / up.sum(axis=0), ~up / (~up).sum(axis=0)])
        return cls(samples, shares, shares.transpose(0, 2, 1) @ samples)

    @property
    def apart(self) -> Array:
        """The difference d of the means, (n_labelings, rank)."""
        return np.asarray(self.means[0] - self.means[1])

    def covariances(self) -> Array:
        """The sum of the covariances of both classes, (n_labelings, rank, rank)."""
        weights = self.shares.sum(axis=0).T
        found = (self.samples.T * weights[:, None, :]) @ self.samples
        for mean in self.means:
            found -= mean[:, :, None] * mean[:, None, :]
        return np.asarray(found)

    def deviations(self, coef: Array) -> Array:
        """``r_i (z_i'w - mean)``, whose squares sum to ``w'S w``, (n_samples, n_labelings)."""
        scores = self.samples @ coef.T
        for share in self.shares:
            scores = scores - (share > 0) * (share * scores).sum(axis=0)
        return np.asarray(np.sqrt(self.shares.sum(axis=0)) * scores)

    def relative_gaps(self, coef: Array, free: Array, kappa: Array) -> Array:
        """Duality gaps of ``-d'w + kappa sqrt(w'S w) + |w|^2 / 2`` over the objective.

        The dual point has ``u = v / kappa`` for the deviations v of the scores by ``free``, scaled
        into the unit ball. The gap is a sum of Fenchel-Young terms, of the ridge and of the loss
        (`EllipsoidLoss.fenchel_young`).
        """
        v, u = self.deviations(coef), self.deviations(free) / kappa
        u = u / np.maximum(np.linalg.norm(u, axis=0), 1.0)
        pulled = kappa[:, None] * ((np.sqrt(self.shares.sum(axis=0)) * u).T @ self.samples)
        sizes, rest = np.linalg.norm(v, axis=0), coef - self.apart + pulled
        turned = u - np.divide(v, sizes, out=np.zeros_like(v), where=sizes > 0)
        inside = np.maximum(1.0 - (u**2).sum(axis=0), 0.0)
        losses = 0.5 * kappa * sizes * ((turned**2).sum(axis=0) + inside)
        gaps = 0.5 * (rest**2).sum(axis=1) + losses
        objectives = 0.5 * (coef**2).sum(axis=1) - (self.apart * coef).sum(axis=1) + kappa * sizes
        scale = np.maximum(np.abs(objectives), np.abs(objectives - gaps))
        return np.asarray(gaps / np.maximum(scale, TINY))
