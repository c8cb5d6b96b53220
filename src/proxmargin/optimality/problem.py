"""The optimisation problem that every solver minimises."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import EPS, TINY
from proxmargin.compiled.solvers.nets import Net
from proxmargin.data.designs.base import Design
from proxmargin.data.designs.views import centred
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.losses.base import Loss
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.shifted import LevelSet
from proxmargin.functions.penalties.ball import Ball
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.traits import Trait
from proxmargin.runtime.memory import Remembers, cached_property
from proxmargin.runtime.types import Array

SOLVED_WITHOUT_PENALTY = Trait.SMOOTH | Trait.OUTPUTWISE | Trait.SINGLE_OUTPUT
SMALLEST_MARGIN = 3e-4  # that counts as one, over the spread of the samples (`Design.spread`)
# singular value, of columns of unit mean square, below which the rounding of a dual point does not
# bound what their best coefficients could still gain
LEAST_SINGULAR_VALUE = 1e-7
# where no feature has a penalty: a dense copy of all of them and Newton steps on it are cheap
MOST_FEATURES = 256
MOST_ENTRIES = 8_000_000  # 64 MB


class Point(NamedTuple):
    """Coefficients (n_features, n_outputs) and intercept (n_outputs,).

    ``dual``, (n_samples, n_outputs), is a dual point close to the one of these coefficients, if
    known: a warm start for solvers with multipliers.
    """

    coef: Array
    intercept: Array
    dual: Array | None = None


class Centred(NamedTuple):
    """A centred design; the intercept of centred features is ``intercept + centre' coef``."""

    design: Design
    centre: Array  # (n_features,)

    def intercept(self, point: Point) -> Array:
        """The intercept of centred features, (n_outputs,)."""
        return point.intercept + self.centre @ point.coef

    def point(self, coef: Array, intercept: Array) -> Point:
        """The point, in the given units, of coefficients and intercept of centred features."""
        return Point(coef, intercept - self.centre @ coef)


class UnitColumns(NamedTuple):
    """Columns of some features, ``(x_j - mean_j) / unit_j``."""

    # (n_samples, k); centred if the intercept is free, which absorbs the shift; of unit weighted
    # mean square
    matrix: Array
    # (k,)
    mean: Array
    unit: Array
    # (k,); bounds of the coefficients of these columns
    lower: Array
    upper: Array
    # their least singular value, over the root of the sum of the shares: coefficients u of these
    # columns are at most the root mean square of the scores ``matrix u`` over it
    least: float


@dataclass(frozen=True, eq=False)
class Problem(Remembers):
    """``minimise over (W, b)  loss(X W + b) + penalty(W) + intercept(b)``.

    Parameters
    ----------
    loss : Loss
        Of the scores; holds targets and weights.
    penalty : Penalty
        Of the coefficients.
    design : Design
        The data, X.
    intercept : Penalty
        Of the intercept: `Ridge(0)` for a free one, `Pinned` for none, and their sum-to-zero
        form when classes are fitted together.
    """

    loss: Loss
    penalty: Penalty
    design: Design
    intercept: Penalty

    @cached_property
    def traits(self) -> Trait:
        """Properties of loss and penalty that solvers may rely on."""
        return self.loss.traits | self.penalty.traits

    @cached_property
    def net(self) -> Net:
        """The penalty feature by feature, where it is an elastic net (`Trait.NET`). Problems on one
        design that differ only in the loss share its arrays."""
        penalty = self.penalty
        if Trait.UNIFORM_NET not in penalty.traits:
            return penalty.net(self.design.n_features)
        key = np.array([penalty.l1, penalty.l2, penalty.is_pinned])
        return self.design.remembered(_uniform_net, key, penalty=penalty)

    @cached_property
    def unpenalised(self) -> NDArray[np.intp]:
        """Indices of features without penalty whose best coefficients are computed with the
        intercept (`proxmargin.optimality.unpenalised`): fewer than the samples, of a smooth loss
        with one output. Empty if no feature has a penalty and they are many or dependent."""
        found = self.penalty.unpenalised(self.design.n_features)
        if not found.size:
            return found
        known = SOLVED_WITHOUT_PENALTY in self.loss.traits and found.size < self.design.n_samples
        if known and Trait.UNIFORM_NET in self.penalty.traits:
            known = _are_determined(self)
        return found if known else found[:0]

    @cached_property
    def level(self) -> float:
        """A typical l1 strength of a feature: the median of the nonzero ones."""
        if Trait.UNIFORM_NET in self.penalty.traits:
            return self.penalty.l1
        live = self.net.l1[self.net.l1 > 0]
        return float(np.median(live)) if live.size else 0.0

    @property
    def margins(self) -> MarginSum:
        """The sum of losses of margins of a problem with `Trait.MARGINS`, without its offset."""
        loss = self.loss.unshifted
        if not isinstance(loss, MarginSum):
            raise TypeError(f"{self.loss!r} is no sum of losses of margins")
        return loss

    @cached_property
    def offset(self) -> Array:
        """The offset of the scores, (n_samples,), for a loss with one output."""
        return self.loss.offset[:, 0]

    @property
    def ball(self) -> Ball:
        if not isinstance(self.penalty, Ball):
            raise TypeError(f"{self.penalty!r} keeps coefficients in no ball")
        return self.penalty

    @property
    def level_set(self) -> LevelSet:
        if not isinstance(self.loss, LevelSet):
            raise TypeError(f"{self.loss!r} has no budget")
        return self.loss

    @property
    def fits_intercept(self) -> bool:
        return not self.intercept.is_pinned

    @property
    def has_unpenalised_intercept(self) -> bool:
        """Whether the intercept is free, or pinned at zero."""
        return self.intercept.is_shift_invariant or self.intercept.is_pinned

    @cached_property
    def centred(self) -> Centred:
        """The design, centred if the intercept is free, for Gram matrices and covariances of data
        with large means; a kernel matrix, which has no features, stays as it is."""
        if self.intercept.is_shift_invariant and not isinstance(self.design, KernelDesign):
            design = centred(self.design, self.loss.shares)
            return Centred(design, design.centre)
        return Centred(self.design, np.zeros(self.design.n_features))

    @property
    def has_ridge_alone(self) -> bool:
        """Whether the penalty is a ridge with the same positive strength for all features."""
        return Trait.UNIFORM_NET in self.penalty.traits and self.penalty.l1 == 0 < self.penalty.l2

    @property
    def has_plain_intercept(self) -> bool:
        """Whether the penalty of the intercept couples no outputs: free, with a ridge, or none."""
        return Trait.NET in self.intercept.traits

    @property
    def slope_size(self) -> float:
        """Root mean square norm of the samples, the scale of ``X'q`` for ``|q_i|`` = share i."""
        return float(np.sqrt(self.loss.shares @ self.design.row_norms()))

    def origin(self) -> Point:
        outputs = self.loss.n_outputs
        return Point(np.zeros((self.design.n_features, outputs)), np.zeros(outputs))

    def projected(self, point: Point) -> Point:
        """The point projected onto the domains of the penalties."""
        return Point(
            self.penalty.into_domain(point.coef),
            self.intercept.into_domain(point.intercept[None, :])[0],
            point.dual,
        )

    def value(self, point: Point) -> float:
        bare = np.zeros((self.design.n_samples, self.loss.n_outputs))
        if point.coef.any():
            bare = self.design.scores(point.coef)
        scores = bare + point.intercept
        return (
            self.loss.value(scores)
            + self.penalty.value(point.coef)
            + self.intercept.value(point.intercept[None, :])
        )

    def best_multiple(self, point: Point, value: float) -> float:
        """The optimal multiple of a point, for a homogeneous loss with this value there."""
        l2, b = self.intercept.l2, point.intercept
        curvature = l2 * float(b @ b) if l2 > 0 else 0.0  # its square may overflow
        return self.penalty.best_multiple(point.coef, value, curvature)

    @cached_property
    def negligible(self) -> float:
        """The least denominator of relative gaps: a smaller objective counts as zero.

        If the penalty is zero only at zero coefficients, the optimum has a scale of its own,
        however small. Without a penalty, or in a ball, the objective can fall to zero with the
        loss: rounding is then relative to the loss at zero scores, which is about one.

        For a homogeneous loss the optimum is minus half the squared margin over l2 (or minus the
        margin times the radius of a ball). It is zero without a margin, where no relative gap would
        be small: the gap is then relative to the objective of a margin of `SMALLEST_MARGIN`.
        """
        if not self.loss.is_homogeneous:
            sized = self.penalty.is_definite((self.design.n_features, self.loss.n_outputs))
            return TINY if sized else EPS
        spread = SMALLEST_MARGIN * self.design.spread(self.loss.shares)
        l2 = self.penalty.l2  # an l1 part only lowers the bound
        length = spread / l2 if l2 > 0 else self.penalty.conjugate(np.array([[1.0]]))
        return max(0.5 * spread * length, TINY)

    def on_columns(self, index: NDArray[np.intp]) -> Problem:
        """The same problem with only some of the features."""
        design, penalty = self.design.columns(index), self.penalty.restricted(index)
        return replace(self, design=design, penalty=penalty)


def _uniform_net(design: Design, key: NDArray[np.float64], *, penalty: Penalty) -> Net:
    return penalty.net(design.n_features)


def _are_determined(problem: Problem) -> bool:
    """Whether unpenalised features are few and linearly independent, of a free intercept too: only
    then are their best coefficients determined."""
    n, p = problem.design.n_samples, problem.design.n_features
    if p > MOST_FEATURES or n * p > MOST_ENTRIES:
        return False
    columns, sizes = unit_columns(problem, np.arange(p)), problem.design.column_bounds()
    varies = columns.matrix.any(axis=0) & (columns.unit > LEAST_SINGULAR_VALUE * sizes)
    return columns.least >= LEAST_SINGULAR_VALUE and bool(np.all(varies | (sizes == 0)))


def unit_columns(problem: Problem, index: NDArray[np.intp]) -> UnitColumns:
    """The columns of the features ``index``, copied."""
    shares, net = problem.loss.shares, problem.net
    matrix = problem.design.columns(index).scores(np.eye(index.size))
    mean = np.zeros(index.size)
    if problem.intercept.is_shift_invariant:
        mean = shares @ matrix
        matrix = matrix - mean
    unit = np.sqrt(shares @ matrix**2)
    unit[unit == 0] = 1.0
    matrix = matrix / unit
    least = _least_singular_value(matrix * np.sqrt(shares)[:, None])
    return UnitColumns(matrix, mean, unit, net.lower[index] * unit, net.upper[index] * unit, least)


def _least_singular_value(matrix: Array) -> float:
    """The least singular value of the nonzero columns; 1 if there are none."""
    live = matrix[:, np.any(matrix != 0, axis=0)]
    if not live.shape[1]:
        return 1.0
    triangle = np.linalg.qr(live, mode="r")
    return float(np.linalg.svd(triangle, compute_uv=False)[-1])


def is_interior(problem: Problem, dual: Array) -> bool:
    """Whether the dual coordinates of all samples with positive weight are nonzero."""
    return bool(dual[problem.loss.shares > 0].all())
