"""Chord Newton steps in compiled code: `proxmargin.compiled.paths` for one column of scores.

The kernels return early where arrays are too small, which are then enlarged, where they have taken
their number of steps, and at a strength that they cannot solve to the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.paths import driver, dual_subspace, state
from proxmargin.compiled.paths.dual_subspace import DualSubspace
from proxmargin.compiled.paths.loss_passes import loss_of
from proxmargin.compiled.paths.state import (
    Candidates,
    ColumnCache,
    Data,
    PathModel,
    PathOutcome,
    PathPoint,
    PathState,
    Screening,
    Store,
    Strengths,
    record,
)
from proxmargin.compiled.paths.unpenalised import UnpenalisedColumns
from proxmargin.compiled.products.columns import Compressed
from proxmargin.compiled.rounding import TINY
from proxmargin.compiled.solvers.nets import Net
from proxmargin.compiled.solvers.quadratic_model import room_for
from proxmargin.data.designs import DenseDesign, Design, SparseDesign
from proxmargin.data.designs.base import SAMPLE_BYTES
from proxmargin.data.designs.samples import narrow_indices
from proxmargin.functions.penalties import WeightedElasticNet
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import are_separated, null_point, unpenalised_columns
from proxmargin.runtime.memory import kept
from proxmargin.runtime.types import Array
from proxmargin.solvers.l1.newton import ENTRIES_PER_CALL, WORK_PER_CALL

Index = NDArray[np.int64]

DUAL_POINTS = 16  # dimension of the subspace of former dual points q, kept with products X'q
# sparse data within both bounds are read at every strength: a pass costs less than these do
FEW_FEATURES = 2000
FEW_ENTRIES = 6  # mean number of nonzero entries of a sample
CACHED_COLUMNS = 256  # maximum number of copied columns of data that are stored by rows
FIRST_CAPACITY = 128  # initial room for features in the model, and for coefficients of a strength
ENTRIES_PER_SAMPLE = 50  # read beside the data, for Hessians and steps at a strength
SELDOM = 10  # strengths per pass over the data when former dual points replace passes
WIDEST_RATIO = 1.1  # largest ratio of neighbouring strengths for wide dense data
FARTHEST_RATIO = 1e6  # ratio of neighbours that is left to a single fit: such paths rarely arrive
MOST_UNPENALISED = 64  # unpenalised features: their Gram matrix is formed in each step
NEEDED = Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET


class Advance(NamedTuple):
    """What a call of the kernel has reached."""

    found: Strengths
    first: int  # the first strength that is not solved
    unfinished: bool  # that one needs more steps than were allowed


@dataclass(eq=False)
class ChordEngine:
    """Newton's method for one strength after the other, each from the solution of the last one, the
    first from the null model; for a problem at strength one that `ChordEngine.takes`, to a relative
    duality gap of ``tol``."""

    problem: Problem
    tol: float

    @staticmethod
    def takes(last: Problem) -> bool:
        """Whether a path can be solved here whose weakest penalty is that of ``last``. Features
        without an l1 penalty must be unpenalised; it must not underflow. The parameters of the loss
        must be numbers: those of a rescaled one hold another loss."""
        if NEEDED not in last.traits or not np.any(last.net.l1):
            return False
        if any(isinstance(each, tuple) for each in last.margins.phi.scalars or ()):
            return False
        if not np.all(last.net.l1) and not _are_optimised(last):
            return False
        return last.has_unpenalised_intercept and _is_readable(last.design.stored.base.whole)

    def __post_init__(self) -> None:
        base = self.problem.design.stored.base
        whole = base.whole
        n, p, dense = whole.n_samples, whole.n_features, whole.is_dense
        copies, holds_all = dense and n < p, dense and n >= p
        loss, self._parameters = loss_of(self.problem.margins.phi.scalars)
        data = _data(self.problem, _store(whole, copies), loss)
        bytes_of_two = max(SAMPLE_BYTES, base.nbytes)  # Hessian and factor
        flags, dimension = (
            np.zeros(8 * -(-p // 8), np.uint8),
            DUAL_POINTS if data.uses_subspace else 0,
        )
        self.most_members = min(p, max(FIRST_CAPACITY, int(np.sqrt(bytes_of_two / 16))))
        free = _unpenalised(self.problem, data)
        capacity = p if holds_all else min(p, max(2 * FIRST_CAPACITY, free.feature.size))
        candidates = _candidates(capacity, p, n if copies else 0)._replace(
            outside_factor=data.factor.copy()
        )
        if holds_all:
            candidates.feature[:] = candidates.number[:] = np.arange(p)
            candidates.scalars["count"] = p
        self.progress = PathState(
            data=data,
            unpenalised=free,
            candidates=candidates,
            model=_model(min(p, FIRST_CAPACITY), n, copies),
            point=_point(n),
            screening=Screening(
                correlation=np.zeros(p),
                to_check=np.empty(p, np.int64),
                near=np.empty(p, np.int64),
                flags=flags,
                words=flags.view(np.uint64),
                scalars=record(state.SCREENING),
            ),
            subspace=DualSubspace(
                basis=np.empty((dimension, n)),
                products=np.empty((dimension, p)),
                errors=np.zeros(dimension),
                coordinates=np.zeros(dimension),
                residual=np.empty(n),
                scalars=record(dual_subspace.SUBSPACE),
            ),
            scalars=record(state.PATH),
        )
        self.progress.scalars["last_step"] = np.iinfo(np.int64).max
        driver.begin(self.progress, *_null_model(self.problem))

    @property
    def copies(self) -> bool:
        """Whether columns are copied: of dense data with more features than samples."""
        return bool(self.progress.data.store.copies)

    @property
    def effort(self) -> Array:
        """The numbers of steps and passes so far."""
        scalars = self.progress.scalars
        return np.array([scalars["steps"], scalars["read"]])

    def _add_candidates(self) -> None:
        """Double the capacity for candidates."""
        old, p = self.progress.candidates, self.progress.data.norms.size
        new = _candidates(min(2 * old.feature.size, p), p, old.columns.shape[1])
        same = {name: getattr(old, name) for name in ("number", "outside_factor", "scalars")}
        for name in set(Candidates._fields) - {"every", *same}:
            before = getattr(old, name)
            getattr(new, name)[: len(before)] = before
        self.progress = self.progress._replace(candidates=new._replace(**same))

    def _add_members(self) -> bool:
        """Double the capacity of the quadratic model, to be formed anew; False at its limit."""
        old, n = self.progress.model, self.progress.data.signs.size
        members = min(2 * old.members.size, self.most_members)
        if members == old.members.size:
            return False
        self.progress.candidates.member[:] = -1
        old.scalars["size"] = old.scalars["factored"] = 0
        new = _model(members, n, self.copies)
        same = {"curvatures": old.curvatures, "change": old.change, "scalars": old.scalars}
        self.progress = self.progress._replace(model=new._replace(**same))
        return True

    def chunk(self, strengths: int) -> int:
        """How many strengths a call may take."""
        entries = self.problem.design.stored.base.nbytes // 8
        data, members = self.progress.data, int(self.progress.model.scalars["size"])
        read, samples = entries // SELDOM if data.uses_subspace else entries, data.signs.size
        read += ENTRIES_PER_SAMPLE * samples
        most = min(ENTRIES_PER_CALL // max(read, 1), WORK_PER_CALL // max(samples * members**2, 1))
        return max(1, min(strengths, most))

    def advanced(self, found: Strengths, first: int) -> Advance:
        """Solve the strengths of ``found`` from ``first`` on, as far as possible. Ends early at a
        strength that cannot be solved, or after the step ``last_step`` of `progress`."""
        retried = np.zeros((2, found.l1.size))
        while True:
            before, effort = first, self.effort
            first, code = driver.advance(self.progress, found, first, found.l1.size, self.tol)
            if first < found.l1.size:  # effort on the strength that is tried again with more room
                done = slice(before, first)
                retried[:, first] += self.effort - effort
                retried[:, first] -= found.steps[done].sum(), found.passes[done].sum()
            if code == PathOutcome.CANDIDATES_FULL:
                self._add_candidates()
            elif code == PathOutcome.SOLUTIONS_FULL:
                found = _with_more_room(found)
            elif code != PathOutcome.MODEL_FULL or not self._add_members():
                break
        for counted, more in zip((found.steps, found.passes), retried, strict=True):
            counted += more
        return Advance(found, first, code == PathOutcome.STEPS_TAKEN)

    def blank(self, l1: Array, l2: Array) -> Strengths:
        """Empty results for these strengths, with room for coefficients."""
        each = max(FIRST_CAPACITY, 2 * int(np.count_nonzero(self.progress.candidates.coef)))
        return Strengths(
            l1=l1,
            l2=l2,
            indptr=np.zeros(l1.size + 1, np.int64),
            indices=np.empty(each * l1.size, np.int64),
            values=np.empty(each * l1.size),
            intercepts=np.zeros(l1.size),
            gaps=np.zeros(l1.size),
            objectives=np.zeros(l1.size),
            violations=np.zeros(l1.size),
            passes=np.zeros(l1.size),
            steps=np.zeros(l1.size),
        )

    @property
    def point(self) -> Point:
        candidates, data = self.progress.candidates, self.progress.data
        taken = slice(0, int(candidates.scalars["count"]))
        index, values = candidates.feature[taken], candidates.coef[taken]
        coef = np.zeros((data.norms.size, 1))
        coef[index, 0] = values
        apart = (data.centre[index] - candidates.mean[taken]) * data.inverse[index]
        intercept = float(self.progress.point.scalars["intercept"]) + float(apart @ values)
        return Point(coef, np.array([intercept]))

    def go_on_from(self, point: Point, strength: float) -> None:
        """Continue from a solution that was found elsewhere."""
        index = np.flatnonzero(point.coef[:, 0])
        absent = np.count_nonzero(self.progress.candidates.number[index] < 0)
        while (
            self.progress.candidates.scalars["count"] + absent
            > self.progress.candidates.feature.size
        ):
            self._add_candidates()
        values, intercept = point.coef[index, 0], float(point.intercept[0])
        driver.restart(self.progress, index, values, intercept, strength)


def stepwise(before: float, l1: Array, l2: Array) -> tuple[Array, Array, Index]:
    """Strengths with intermediate ones inserted, and the indices of the requested ones.

    Far below the last strength the strong rule keeps most of the features, and one dense model of
    so many takes longer than the models of all strengths between. (With sparse data it does not.)
    Strengths end before the first that is too far from the one before it.
    """
    above = np.concatenate(([before], l1[:-1]))
    if not np.any(above > WIDEST_RATIO * l1):
        return l1, l2, np.arange(l1.size)
    far = np.append(above > FARTHEST_RATIO * l1, True)
    l1, l2, above = (each[: np.argmax(far)] for each in (l1, l2, above))
    fall = np.maximum(np.log(np.maximum(above, TINY)) - np.log(l1), 0.0)
    count = np.maximum(np.ceil(fall / np.log(WIDEST_RATIO)), 1.0).astype(np.int64)
    last = np.cumsum(count) - 1
    owner = np.repeat(np.arange(l1.size), count)
    above = np.exp(fall[owner] * ((last[owner] - np.arange(owner.size)) / count[owner]))
    return l1[owner] * above, l2[owner] * above, last


def _data(problem: Problem, store: Store, loss: object) -> Data:
    """The problem over all stored samples; those outside of the subset weigh nothing."""
    design, margins, net = problem.design, problem.margins, problem.net
    base, centre, scale = design.stored
    inverse, is_shifted = 1.0 / scale, problem.loss.largest_offset > 0.0
    return Data(
        store=store,
        loss=loss,
        signs=base.spread_out(margins.signs[:, 0]).copy(),
        weights=base.spread_out(margins.weights[:, 0]).copy(),
        offset=base.spread_out(problem.offset).copy() if is_shifted else np.zeros(0),
        largest_offset=problem.loss.largest_offset,
        centre=_kernel_array(centre),
        inverse=inverse,
        norms=base.column_norms() * inverse,
        bounds=_kernel_array(design.column_bounds()),
        factor=net.l1 / net.l1.max(),
        lower=_kernel_array(net.lower),
        upper=_kernel_array(net.upper),
        free=problem.fits_intercept,
        jumps=not margins.phi.is_strictly_convex,
        uses_subspace=store.copies or _has_many_entries(base.whole),
    )


def _are_optimised(problem: Problem) -> bool:
    """Whether all features without l1 strength are unpenalised, unbounded and few, and their null
    model does not separate the classes."""
    index, net = problem.unpenalised, problem.net
    if not isinstance(problem.penalty, WeightedElasticNet) or index.size > MOST_UNPENALISED:
        return False
    zeros = np.count_nonzero(np.asarray(problem.penalty.factors) == 0)
    if not zeros == np.count_nonzero(net.l1 == 0) == index.size:
        return False
    if np.isfinite(net.lower[index]).any() or np.isfinite(net.upper[index]).any():
        return False
    return not are_separated(problem)


def _null_model(problem: Problem) -> tuple[Index, Array, float]:
    """The unpenalised features, their best coefficients and the best intercept."""
    index = problem.unpenalised
    if not index.size:
        return index.astype(np.int64), np.zeros(0), 0.0
    null = null_point(problem)
    return index.astype(np.int64), null.coef[index, 0], float(null.intercept[0])


def _unpenalised(problem: Problem, data: Data) -> UnpenalisedColumns:
    """The columns of the unpenalised features, zero at samples outside of the subset."""
    base, index = problem.design.stored.base, problem.unpenalised
    k, n = index.size, data.signs.size
    columns, least, bounds = np.zeros((k, n)), 1.0, np.zeros(k)
    mean, unit = np.zeros(k), np.ones(k)
    if k:
        own = unpenalised_columns(problem)
        for u in range(k):
            columns[u] = base.spread_out(own.matrix[:, u])
        shift, unit, least = data.centre[index] * data.inverse[index], own.unit, own.least
        mean = own.mean + shift
        bounds = (data.bounds[index] + np.abs(own.mean) + 2.0 * np.abs(shift)) / unit
    return UnpenalisedColumns(
        feature=index.astype(np.int64),
        columns=columns,
        least=float(least),
        most=float(problem.margins.phi.dual_bound),
        factor=np.zeros((k, k)),
        norms=np.sqrt(np.einsum("ui,ui->u", columns, columns)),
        unit=unit,
        mean=mean,
        bounds=bounds,
        centre=np.zeros(k),
        correlation=np.zeros(k),
        step=np.zeros(k),
        metric=np.zeros(n if k else 0),
        combined=np.zeros(n if k else 0),
    )


def _candidates(capacity: int, p: int, width: int) -> Candidates:
    """Room for so many of p features, with copied columns of ``width`` entries."""
    return Candidates(
        feature=np.zeros(capacity, np.int64),
        every=np.arange(capacity),
        number=np.full(p, -1, np.int64),
        outside_factor=np.empty(0),
        coef=np.zeros(capacity),
        correlation=np.zeros(capacity),
        mean=np.zeros(capacity),
        member=np.full(capacity, -1, np.int64),
        predicted=np.zeros(capacity),
        error=np.zeros(capacity),
        columns=np.empty((capacity, width)),
        scalars=record(state.CANDIDATES),
    )


def _model(members: int, n: int, copies: bool) -> PathModel:
    """Room for a quadratic model of so many features over n samples."""
    return PathModel(
        members=np.zeros(members, np.int64),
        mean=np.zeros(members),
        weighted=np.empty((members, n if copies else 0)),
        curvatures=np.zeros(n),
        change=np.zeros(n),
        quadratic=room_for(np.empty((members, members))),
        diagonal=np.zeros(members),
        gradient=np.zeros(members),
        start=np.zeros(members),
        step=np.zeros(members),
        net=Net(*np.zeros((len(Net._fields), members))),
        scalars=record(state.MODEL),
    )


def _point(n: int) -> PathPoint:
    scores, dual, curvatures, change = np.zeros((4, n))
    return PathPoint(scores, dual, curvatures, change, record(state.POINT))


def _kernel_array(values: Array) -> Array:
    """The array, or a contiguous, writeable copy, so that kernels compile for one type of array."""
    plain = values.flags.c_contiguous and values.flags.writeable
    return values if plain else values.copy()


def _with_more_room(found: Strengths) -> Strengths:
    indices, values = np.empty((2, 2 * found.values.size))
    indices = indices.view(np.int64)
    indices[: found.indices.size], values[: found.values.size] = found.indices, found.values
    return found._replace(indices=indices, values=values)


def _is_readable(base: Design) -> bool:
    """Whether kernels can read the entries in place, or in a copy, for dense data a small one."""
    if isinstance(base, SparseDesign):
        return True
    small = 8 * base.n_samples * base.n_features <= SAMPLE_BYTES
    return isinstance(base, DenseDesign) and (base.lines is not None or small)


def _has_many_entries(base: Design) -> bool:
    """Whether the data are sparse and a pass over them costs more than references do."""
    if not isinstance(base, SparseDesign):
        return False
    p = base.n_features
    return p > FEW_FEATURES or base.density * p > FEW_ENTRIES


def _store(base: Design, copies: bool) -> Store:
    n, p = base.n_samples, base.n_features
    sparse = Compressed(0, np.empty(0), *np.zeros((2, 1), np.int32))
    lines, by_rows = np.empty((0, 0)), False
    if isinstance(base, DenseDesign):
        lines = _copied_lines(base) if base.lines is None else base.lines
        by_rows = base.by_rows
    else:
        sparse = _by_columns(base)
    capacity = min(p, CACHED_COLUMNS) if copies and by_rows else 0
    cache = ColumnCache(
        columns=np.empty((capacity, n)),
        owner=np.full(capacity, -1, np.int64),
        place=np.full(p, -1, np.int64),
        scalars=record(state.CACHE),
    )
    return Store(not base.is_dense, sparse, lines, by_rows, copies, cache)


@kept
def _copied_lines(design: Design) -> Array:
    """A float64 copy with samples as rows, or features as rows if these are contiguous."""
    if not isinstance(design, DenseDesign):
        raise TypeError(f"{design!r} is not dense")
    matrix = design.matrix if design.by_rows else design.matrix.T
    return np.array(matrix, dtype=np.float64, order="C")


@kept
def _by_columns(design: Design) -> Compressed:
    if not isinstance(design, SparseDesign):
        raise TypeError(f"{design!r} is not compressed")
    matrix = design.matrix.tocsc()
    entries = matrix.data.astype(np.float64, copy=False)
    return Compressed(matrix.shape[0], entries, *narrow_indices(matrix))
