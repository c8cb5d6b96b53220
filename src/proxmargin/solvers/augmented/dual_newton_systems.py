"""Linear systems of dual Newton methods, each solved in the space of least dimension.

With the Jacobians J of the penalty's prox, B of the intercept's and P of the prox of the loss's
conjugate, the Hessian of the augmented Lagrangian in the dual point is

    V = tau X J X' + tau_b 1 B 1' + D,    D = ts (I - (1 - eps) P)

on the scores of all classes; eps keeps D invertible where P is a projection. V is factored if
samples are few; if active coefficients are fewer, the Woodbury identity leads to a system over
these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from proxmargin.data.designs.base import Design
from proxmargin.functions.penalties.jacobian import BalancedJacobian, BlockRoot, ProxJacobian, Root
from proxmargin.runtime.memory import cached_property
from proxmargin.runtime.threads import affordable, factor_work
from proxmargin.runtime.types import Array
from proxmargin.solvers.shared.numerical import (
    CG_TOLERANCE,
    LARGEST_SIDE,
    SMALL_SIDE,
    conjugate_gradients,
    inverse_of,
)

FAR_CHEAPER = 0.2  # its work over that of factoring V


@dataclass(frozen=True, eq=False)
class DualNewtonSystem:
    """The Jacobians of the proximal maps at a dual point, and the step sizes of the subproblem."""

    design: Design
    # J, (n_features, n_outputs), and B, (1, n_outputs)
    coef: ProxJacobian
    intercept: ProxJacobian
    dual: ProxJacobian  # P, (n_samples, n_outputs)
    # (n_samples, n_outputs) booleans; where dual points can be nonzero; V is restricted to it
    support: NDArray[np.bool_]
    # proximal steps of coefficients, intercept and scores
    tau: float
    tau_b: float
    ts: float
    floor: float  # eps

    @cached_property
    def active(self) -> NDArray[np.intp]:
        """Indices of the active features, whose coefficients the prox does not all set to zero."""
        return np.flatnonzero(self.coef.live.any(axis=1))

    @cached_property
    def jacobian(self) -> ProxJacobian:
        """J restricted to the active features."""
        return self.coef.on_rows(self.active)

    @cached_property
    def columns(self) -> Array:
        """The columns of the active features, (n_samples, n_active)."""
        return self.design.dense_columns(self.active)

    @cached_property
    def roots(self) -> list[Root | BlockRoot]:
        return self.jacobian.roots()

    @cached_property
    def bias(self) -> Array:
        """``tau_b B``, (n_outputs, n_outputs)."""
        units = np.eye(self.intercept.diagonal.shape[1])[:, None, :]
        return self.tau_b * np.vstack([self.intercept.apply(unit) for unit in units])

    @cached_property
    def inverse(self) -> tuple[Array, Array]:
        """e and f of ``D^-1 = diag(e) - f f'``, with one f a sample; zero off the support. By the
        Sherman-Morrison formula for ``P = diag(d) - v v'`` and ``g = 1 / (1 - (1 - eps) d)``."""
        kept = 1.0 - self.floor
        grown = np.where(self.support, 1.0 / (1.0 - kept * self.dual.diagonal), 0.0)
        if self.dual.vectors is None:
            return grown / self.ts, np.zeros_like(grown)
        scaled = grown * self.dual.vectors
        length = 1.0 / kept + (scaled * self.dual.vectors).sum(axis=1, keepdims=True)
        return grown / self.ts, scaled / np.sqrt(self.ts * length)

    def solved_by_loss(self, right: Array) -> Array:
        """``D^-1 right``."""
        e, f = self.inverse
        product: Array = e * right - f * (f * right).sum(axis=1, keepdims=True)
        return product

    def apply(self, direction: Array) -> Array:
        """``V direction``."""
        direction = np.where(self.support, direction, 0.0)
        coef = self.tau * self.coef.apply(self.design.adjoint(direction))
        moved = self.design.scores(coef) + direction.sum(axis=0) @ self.bias
        moved += self.ts * (direction - (1.0 - self.floor) * self.dual.apply(direction))
        return np.where(self.support, moved, 0.0)


def newton_direction(system: DualNewtonSystem, gradient: Array, deadline: float) -> Array:
    """``V^-1 gradient`` on the support, by a system in the space of least dimension; by CG, which
    begins no product after the deadline, if no factorisation would end before it."""
    samples = dual_length(system)
    fits = samples <= LARGEST_SIDE and affordable(factor_work(samples), deadline)
    dual = factor_work(samples) if fits else np.inf
    dual *= FAR_CHEAPER if samples <= SMALL_SIDE else 1.0
    # only the zero sums of the coefficients of a feature couple the classes
    by_class = system.dual.vectors is None and system.coef.across and system.coef.sign < 0
    work = _constrained_work(system) if by_class else _factored_work(system)
    if work < dual and affordable(work, deadline):
        if by_class:
            direction = _constrained_direction(system, gradient)
        else:
            direction = _Factor(system).direction(gradient)
        # digits cancel in Woodbury's identity
        left = np.where(system.support, gradient - system.apply(direction), 0.0)
        if float(np.linalg.norm(left)) <= CG_TOLERANCE * float(np.linalg.norm(gradient)):
            return direction
    if dual < np.inf:
        return _dual_direction(system, gradient)
    return _iterated_direction(system, gradient, deadline)


def dual_length(system: DualNewtonSystem) -> int:
    """The number of dual coordinates in the support, which is the side of V."""
    return int(np.count_nonzero(system.support))


# -- in the samples ----------------------------------------------------------------------------


def _dual_direction(system: DualNewtonSystem, gradient: Array) -> Array:
    """``V^-1 gradient`` with V as a matrix, ordered class by class."""
    n, classes = gradient.shape
    matrix = np.zeros((classes, n, classes, n))
    _add_features(system, matrix)
    matrix += system.bias[:, None, :, None]
    place = np.arange(n)
    matrix[:, place, :, place] += _rows_of_loss(system)
    chosen = np.flatnonzero(system.support.T)
    size = classes * n
    whole = chosen.size == size
    flat = matrix.reshape(size, size)
    solve = inverse_of(flat if whole else flat[np.ix_(chosen, chosen)], overwrite=True)
    direction = np.zeros(size)
    direction[chosen] = solve(gradient.T.ravel()[chosen])
    return direction.reshape(classes, n).T.copy()


def _add_features(system: DualNewtonSystem, matrix: Array) -> None:
    """Add ``tau X J X'`` to the blocks of every pair of classes."""
    if not system.active.size:
        return
    jacobian, columns, tau = system.jacobian, system.columns, system.tau
    if isinstance(jacobian, BalancedJacobian):
        matrix += tau * jacobian.seen_through(columns)
        return
    if jacobian.vectors is None or not jacobian.across:
        for k, root in enumerate(system.roots):
            part = root.combined(columns)
            matrix[k, :, k, :] += tau * (part @ part.T)
        return
    classes = jacobian.vectors.shape[1]
    for k in range(classes):
        for m in range(k, classes):
            weights = jacobian.diagonal[:, k] * (m == k)
            for sign, vectors in jacobian.terms:
                weights = weights + sign * vectors[:, k] * vectors[:, m]
            some = np.flatnonzero(weights)
            part = columns[:, some]
            block = (tau * part * weights[some]) @ part.T
            matrix[k, :, m, :] += block
            if m > k:
                matrix[m, :, k, :] += block


def _rows_of_loss(system: DualNewtonSystem) -> Array:
    """D as one matrix over the classes for each sample, (n_samples, n_outputs, n_outputs)."""
    dual = system.dual
    kept = (1.0 - system.floor) * dual.diagonal
    rows = np.zeros((*kept.shape, kept.shape[1]))
    np.einsum("ikk->ik", rows)[:] = 1.0 - kept
    if dual.vectors is not None:
        rows -= (
            (1.0 - system.floor) * dual.sign * dual.vectors[:, :, None] * dual.vectors[:, None, :]
        )
    return system.ts * rows


# -- in the active coefficients, with rows that sum to zero ----------------------------------------


def _constrained_work(system: DualNewtonSystem) -> float:
    """Multiplications of `_constrained_direction`; infinite if it does not apply."""
    (n, classes), side = system.support.shape, system.active.size
    if side >= min(dual_length(system), LARGEST_SIDE):
        return np.inf
    return float(classes * side**2 * (n + side))


def _constrained_direction(system: DualNewtonSystem, gradient: Array) -> Array:
    """The direction for losses that are sums over classes: a system a class, and a coupling one.

    It is ``D^-1 (gradient - X y - 1 y_b)`` for the y that minimises
    ``y' (F' D^-1 F + C) y / 2 - y' F' D^-1 gradient`` with rows that sum to zero, F the active
    features and the constant of each class, C the inverse of J there. The multipliers of the row
    sums solve a Schur complement system.
    """
    e, _ = system.inverse
    diagonal = system.jacobian.diagonal * system.tau
    offset = system.intercept.diagonal[0] * system.tau_b
    whole = np.hstack([system.columns, np.ones((gradient.shape[0], 1))])
    strengths = np.vstack([diagonal, offset])
    constraints = np.zeros((whole.shape[1], whole.shape[1]))
    pulled = np.zeros(whole.shape[1])
    solved = []
    for k in range(gradient.shape[1]):
        rows = np.flatnonzero(strengths[:, k])
        part = whole[:, rows]
        matrix = (part * e[:, k : k + 1]).T @ part
        np.einsum("ii->i", matrix)[:] += 1.0 / strengths[rows, k]
        inverse = inverse_of(matrix, overwrite=True)(np.eye(rows.size))
        right = part.T @ (e[:, k] * gradient[:, k])
        constraints[np.ix_(rows, rows)] += inverse
        pulled[rows] += inverse @ right
        solved.append((rows, part, inverse, right))
    multipliers = _multipliers(system, constraints, pulled)
    direction = np.empty_like(gradient)
    for k, (rows, part, inverse, right) in enumerate(solved):
        y = inverse @ (right - multipliers[rows])
        direction[:, k] = e[:, k] * (gradient[:, k] - part @ y)
    return direction


def _multipliers(system: DualNewtonSystem, matrix: Array, right: Array) -> Array:
    """Multipliers of the rows of y that must sum to zero; zero for other rows."""
    coupled = np.append(
        np.full(system.active.size, system.coef.sign < 0), system.intercept.sign < 0
    )
    rows = np.flatnonzero(coupled & (np.einsum("ii->i", matrix) > 0))
    multipliers = np.zeros(right.size)
    multipliers[rows] = inverse_of(matrix[np.ix_(rows, rows)], overwrite=True)(right[rows])
    return multipliers


# -- in the active coefficients --------------------------------------------------------------------


def _factored_work(system: DualNewtonSystem) -> float:
    """Multiplications of `_Factor`; infinite if it does not apply."""
    if np.count_nonzero(system.jacobian.live) > 8 * LARGEST_SIDE:  # the rank would take too long
        return np.inf
    n, classes = system.support.shape
    size = sum(root.size for root in system.roots) + classes
    if size >= min(dual_length(system), LARGEST_SIDE):
        return np.inf
    vectors = system.dual.vectors
    coupled = 0 if vectors is None else np.count_nonzero(vectors.any(axis=1))
    return size**2 * (n / classes + coupled + size / 3.0)


class _Factor:
    """A factorisation ``tau X J X' + tau_b 1 B 1' = F R R' F'`` with one matrix F a class. If
    groups lie within classes, F includes the root R and has rank(J) columns."""

    def __init__(self, system: DualNewtonSystem) -> None:
        self.system = system
        classes, roots = system.support.shape[1], system.roots
        self.root = roots[0] if system.coef.across else None
        ranks = [root.size for root in roots]
        self.rank = sum(ranks)
        widths = [system.active.size] * classes if system.coef.across else ranks
        ends = np.cumsum([0, *widths])
        self.places = [slice(a, b) for a, b in pairwise(ends)]
        self.bias_at = int(ends[-1])
        self.bias = _square_root(system.bias)
        self.features = [system.columns] * classes
        if not system.coef.across:
            self.features = [root.combined(system.columns) for root in roots]

    def direction(self, gradient: Array) -> Array:
        """``V^-1 = D^-1 - D^-1 F R (I + R' F' D^-1 F R)^-1 R' F' D^-1``."""
        right = self.system.solved_by_loss(gradient)
        matrix = self._times_root(self._times_root(self._gram()).T)
        np.einsum("ii->i", matrix)[:] += 1.0
        inner = self._times_root(self._pulled(right)[None, :])[0]
        inner = inverse_of(matrix, overwrite=True)(inner)
        return right - self.system.solved_by_loss(self._scores(inner))

    def _times_root(self, matrix: Array) -> Array:
        """``matrix R``."""
        features = np.sqrt(self.system.tau) * matrix[:, : self.bias_at]
        if self.root is not None:
            features = self.root.combined(features)
        return np.hstack([features, matrix[:, self.bias_at :] @ self.bias])

    def _gram(self) -> Array:
        """``F' D^-1 F``."""
        e, f = self.system.inverse
        size = self.bias_at + f.shape[1]
        gram, coupled = np.zeros((size, size)), np.zeros((f.shape[0], size))
        for k, (part, place) in enumerate(zip(self.features, self.places, strict=True)):
            scaled = part * e[:, k : k + 1]
            bias = self.bias_at + k
            gram[place, place] = part.T @ scaled
            gram[place, bias] = gram[bias, place] = scaled.sum(axis=0)
            gram[bias, bias] = e[:, k].sum()
            coupled[:, place] = part * f[:, k : k + 1]
            coupled[:, bias] = f[:, k]
        some = np.flatnonzero(f.any(axis=1))
        gram -= coupled[some].T @ coupled[some]
        return gram

    def _pulled(self, dual: Array) -> Array:
        """``F' dual``."""
        parts = [part.T @ column for part, column in zip(self.features, dual.T, strict=True)]
        return np.concatenate([*parts, dual.sum(axis=0)])

    def _scores(self, inner: Array) -> Array:
        """``F R inner``."""
        last = self.rank
        bias = self.bias @ inner[last:]
        coef = np.sqrt(self.system.tau) * inner[:last]
        if self.root is not None:
            coef = self.root.times(coef)
        parts = zip(self.features, self.places, strict=True)
        return np.column_stack([part @ coef[place] for part, place in parts]) + bias


def _square_root(matrix: Array) -> Array:
    """A square root of a small positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


# -- in the samples, without a matrix ------------------------------------------------------------


def _iterated_direction(system: DualNewtonSystem, gradient: Array, deadline: float) -> Array:
    """``V^-1 gradient`` by conjugate gradients, preconditioned by the diagonal of V."""
    weights = system.coef.diagonal
    for sign, vectors in system.coef.terms:
        weights = weights + sign * vectors**2
    centre = np.zeros(system.design.n_features)
    squares = [system.design.row_squares(column, centre) for column in weights.T]
    diagonal = system.tau * np.column_stack(squares) + np.diagonal(system.bias)
    diagonal += np.einsum("ikk->ik", _rows_of_loss(system))

    def product(flat: Array) -> Array:
        return system.apply(flat.reshape(gradient.shape)).ravel()

    solved = conjugate_gradients(
        product, lambda flat: flat / diagonal.ravel(), gradient.ravel(), CG_TOLERANCE, deadline
    )
    return solved.reshape(gradient.shape)
