"""Chord Newton steps in compiled code: `proxmargin.compiled.paths` for one column of scores.

The kernels return early where arrays are too small, which are then enlarged, where they have taken
their number of steps, and at a strength that they cannot solve to the tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.paths import driver, state, unpenalised
from proxmargin.compiled.paths.candidates import Candidates
from proxmargin.compiled.paths.dual_subspace import DualSubspace
from proxmargin.compiled.paths.loss_passes import loss_of
from proxmargin.compiled.paths.quadratic import Quadratic
from proxmargin.compiled.paths.state import Buffers, State, Strengths, Terms
from proxmargin.compiled.paths.stores import ColumnCache, Dense
from proxmargin.compiled.paths.unpenalised import UnpenalisedColumns
from proxmargin.compiled.products.columns import Compressed
from proxmargin.compiled.solvers.nets import Net
from proxmargin.designs import DenseDesign, Design, SparseDesign
from proxmargin.designs.compressed import narrow_indices
from proxmargin.penalties import WeightedElasticNet
from proxmargin.problem import Point, Problem
from proxmargin.rounding import TINY
from proxmargin.traits import Trait
from proxmargin.unpenalised import are_separated, unpenalised_columns

__all__ = ["Advance", "ChordEngine"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

REFERENCES = 16  # dual points q in a span, each kept with its products X'q
# sparse data within both bounds are read at every strength: a pass costs less than references do
FEW_FEATURES = 2000
FEW_ENTRIES = 6  # mean number of nonzero entries of a sample
CACHED_COLUMNS = 256  # maximum number of copied columns of data that are stored by rows
FIRST_CANDIDATES = 256  # initial capacity for features that may enter the model
FIRST_MEMBERS = 128  # initial capacity for features in a quadratic model
MODEL_BYTES = 2**26  # limit for a quadratic model, or the size of the data if that is larger
COPY_BYTES = 2**26  # limit for a copy of dense data whose layout or type kernels cannot read
ENTRIES_PER_CALL = 20_000_000  # entries read, over all strengths of a call: a fraction of a second
WORK_PER_CALL = 10**9  # multiply-adds of a Hessian formed at every strength: the same
ENTRIES_PER_SAMPLE = 50  # read beside the data, for Hessians and steps at a strength
SELDOM = 10  # strengths per pass over the data when spans of dual points replace passes
FIRST_ENTRIES = 64  # initial room for coefficients, for each strength of a call
WIDEST_RATIO = 1.1  # largest ratio of neighbouring strengths for wide dense data
FARTHEST_RATIO = 1e6  # ratio of neighbours that is left to a single fit: such paths rarely arrive
MOST_UNPENALISED = 64  # unpenalised features: their Gram matrix is formed in each step
NEEDED = Trait.SMOOTH | Trait.MARGINS | Trait.COMPILED | Trait.SINGLE_OUTPUT | Trait.NET


class Advance(NamedTuple):
    """What a call of the kernel has reached.

    Attributes
    ----------
    found : Strengths
    first : int
        The first strength that is not solved.
    unfinished : bool
        That one needs more steps than were allowed.
    """

    found: Strengths
    first: int
    unfinished: bool


@dataclass(eq=False)
class ChordEngine:
    """Newton's method for one strength after the other, each from the solution of the last one.

    The first starts from the null model.

    Parameters
    ----------
    problem : Problem
        At strength one; see `ChordEngine.takes`.
    tol : float
        Relative duality gap of every strength.
    """

    problem: Problem
    tol: float

    @staticmethod
    def takes(last: Problem) -> bool:
        """Whether a path can be solved here whose weakest penalty is that of ``last``.

        Features without an l1 penalty must be unpenalised; it must not underflow.
        """
        if NEEDED not in last.traits or not np.any(last.net.l1):
            return False
        if not np.all(last.net.l1) and not _are_settled(last):
            return False
        return last.has_unpenalised_intercept and _is_readable(last.design.stored.base.whole)

    def __post_init__(self) -> None:
        base = self.problem.design.stored.base
        whole = base.whole
        n, p, dense = whole.n_samples, whole.n_features, whole.is_dense
        self.loss, self._parameters = loss_of(self.problem.margins.phi.scalars)
        self.caches = dense and n < p
        self.store = _store(whole, self.caches)
        self.terms = _terms(self.problem, self.caches or _has_many_entries(whole))
        self.span = _empty_span(REFERENCES if self.terms.spans else 0, n, p)
        scattered = self.caches and isinstance(self.store, Dense) and self.store.by_rows
        self.column_cache = _empty_column_cache(min(p, CACHED_COLUMNS) if scattered else 0, n, p)
        holds_all = dense and not self.caches
        bytes_of_two = max(MODEL_BYTES, base.nbytes)  # Hessian and factor
        self.most_members = min(p, max(FIRST_MEMBERS, int(np.sqrt(bytes_of_two / 16))))
        members = min(p, FIRST_MEMBERS)
        self.unpenalised = _unpenalised(self.problem, self.terms)
        first_candidates = max(FIRST_CANDIDATES, self.unpenalised.feature.size)
        self._make_candidates(p if holds_all else min(p, first_candidates), members)
        self.quadratic, self.buffers = _quadratic(members), _buffers(n, p, members)
        self.counts = np.zeros(state.COUNTS, np.int64)
        self.counts[state.LAST] = np.iinfo(np.int64).max
        self.levels = np.zeros(state.LEVELS)
        if holds_all:
            self.candidates.feature[:] = self.candidates.slot_of[:] = np.arange(p)
            self.counts[state.CANDIDATES] = p
        driver.begin(self._state, *_null_model(self.problem))

    @property
    def _state(self) -> State:
        """The argument of the kernels; arrays that are too small are replaced between calls."""
        return State(
            store=self.store,
            loss=self.loss,
            terms=self.terms,
            unpenalised=self.unpenalised,
            candidates=self.candidates,
            quadratic=self.quadratic,
            span=self.span,
            column_cache=self.column_cache,
            buffers=self.buffers,
            counts=self.counts,
            levels=self.levels,
        )

    @property
    def effort(self) -> Array:
        """The numbers of steps and passes so far."""
        return np.array([self.counts[state.STEPS], self.levels[state.READ]])

    @property
    def _width(self) -> int:
        """Number of cached entries of each candidate."""
        return self.terms.signs.size if self.caches else 0

    def _make_candidates(self, capacity: int, members: int) -> None:
        """Allocate candidates, and the columns of a quadratic model of so many members."""
        self.candidates = Candidates(
            feature=np.zeros(capacity, np.int64),
            every=np.arange(capacity),
            slot_of=np.full(self.terms.norms.size, -1, np.int64),
            gate=self.terms.factor.copy(),
            coef=np.zeros(capacity),
            slope=np.zeros(capacity),
            mean=np.zeros(capacity),
            place=np.full(capacity, -1, np.int64),
            guess=np.zeros(capacity),
            lag=np.zeros(capacity),
            cache=np.empty((capacity, self._width)),
            rows=np.empty((members, self._width)),
            average=np.zeros(members),
        )

    def _make_model(self, members: int) -> None:
        """Allocate a quadratic model of this capacity; the kernel forms it anew."""
        rows = np.empty((members, self._width))
        self.candidates = self.candidates._replace(rows=rows, average=np.zeros(members))
        self.quadratic = _quadratic(members)
        self.buffers = self.buffers._replace(**_of_members(members))

    def _add_candidates(self) -> None:
        """Double the capacity for candidates."""
        old = self.candidates
        self._make_candidates(min(2 * old.feature.size, self.terms.norms.size), 0)
        for name in set(Candidates._fields) - {"every", "rows", "average"}:
            before = getattr(old, name)
            getattr(self.candidates, name)[: len(before)] = before
        self.candidates = self.candidates._replace(rows=old.rows, average=old.average)

    def _add_members(self) -> bool:
        """Double the capacity of the quadratic model; False if it is at its limit."""
        members = min(2 * self.candidates.average.size, self.most_members)
        if members == self.candidates.average.size:
            return False
        self.candidates.place[:] = -1
        self.counts[state.MEMBERS] = self.counts[state.KEPT] = 0
        self._make_model(members)
        return True

    def chunk(self, strengths: int) -> int:
        """How many strengths a call may take."""
        entries = self.problem.design.stored.base.nbytes // 8
        read = entries // SELDOM if self.terms.spans else entries
        samples, members = self.terms.signs.size, int(self.counts[state.MEMBERS])
        read += ENTRIES_PER_SAMPLE * samples
        most = min(ENTRIES_PER_CALL // max(read, 1), WORK_PER_CALL // max(samples * members**2, 1))
        return max(1, min(strengths, most))

    def advanced(self, found: Strengths, first: int) -> Advance:
        """Solve the strengths of ``found`` from ``first`` on, as far as possible.

        Ends early at a strength that cannot be solved, or after `limit_steps`.
        """
        retried = np.zeros((2, found.l1.size))
        while True:
            before, effort = first, self.effort
            first, code = driver.advance(self._state, found, first, found.l1.size, self.tol)
            if first < found.l1.size:  # effort on the strength that is tried again with more room
                done = slice(before, first)
                retried[:, first] += self.effort - effort
                retried[:, first] -= found.steps[done].sum(), found.passes[done].sum()
            if code == state.NO_SLOT:
                self._add_candidates()
            elif code == state.NO_ENTRY:
                found = _with_more_room(found)
            elif code != state.NO_MEMBER or not self._add_members():
                break
        for told, more in zip((found.steps, found.passes), retried, strict=True):
            told += more
        return Advance(found, first, code == state.NO_STEP)

    def stepwise(self, l1: Array, l2: Array) -> tuple[Array, Array, Index]:
        """Strengths with intermediate ones inserted, and the indices of the requested ones."""
        return _stepwise(float(self.levels[state.BEFORE]), l1, l2)

    def blank(self, l1: Array, l2: Array) -> Strengths:
        """Empty results for these strengths."""
        entries = max(FIRST_ENTRIES, 2 * int(np.count_nonzero(self.candidates.coef)))
        return _blank(l1, l2, entries * l1.size)

    def limit_steps(self, count: int) -> None:
        """End after so many further steps; without this, only where a strength is given up."""
        self.counts[state.LAST] = self.counts[state.STEPS] + count

    @property
    def point(self) -> Point:
        """The coefficients and the intercept after the last step."""
        candidates, terms = self.candidates, self.terms
        taken = slice(0, int(self.counts[state.CANDIDATES]))
        index, values = candidates.feature[taken], candidates.coef[taken]
        coef = np.zeros((terms.norms.size, 1))
        coef[index, 0] = values
        apart = (terms.centre[index] - candidates.mean[taken]) * terms.inverse[index]
        return Point(coef, np.array([self.levels[state.INTERCEPT] + float(apart @ values)]))

    def go_on_from(self, point: Point, strength: float) -> None:
        """Continue from a solution that was found elsewhere."""
        index = np.flatnonzero(point.coef[:, 0])
        absent = np.count_nonzero(self.candidates.slot_of[index] < 0)
        while self.counts[state.CANDIDATES] + absent > self.candidates.feature.size:
            self._add_candidates()
        values, intercept = point.coef[index, 0], float(point.intercept[0])
        driver.restart(self._state, index, values, intercept, strength)


def _stepwise(before: float, l1: Array, l2: Array) -> tuple[Array, Array, Index]:
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


def _terms(problem: Problem, spans: bool) -> Terms:
    """The terms over all samples of the stored data; those outside of the subset weigh nothing."""
    design, margins, net = problem.design, problem.margins, problem.net
    base, centre, scale = design.stored
    inverse, is_shifted = 1.0 / scale, problem.loss.largest_offset > 0.0
    return Terms(
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
        spans=spans,
    )


def _are_settled(problem: Problem) -> bool:
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
    null = problem.null_point()
    return index.astype(np.int64), null.coef[index, 0], float(null.intercept[0])


def _unpenalised(problem: Problem, terms: Terms) -> UnpenalisedColumns:
    """The columns of the unpenalised features, zero at samples outside of the subset."""
    base, index, n = problem.design.stored.base, problem.unpenalised, terms.signs.size
    k = index.size
    columns, least = np.zeros((k, n)), 1.0
    rows = np.zeros((unpenalised.ROWS, k))
    if k:
        own = unpenalised_columns(problem)
        for u in range(k):
            columns[u] = base.spread_out(own.matrix[:, u])
        mean, unit, least = own.mean, own.unit, own.least
        shift = terms.centre[index] * terms.inverse[index]
        rows[unpenalised.NORM] = np.sqrt(np.einsum("ui,ui->u", columns, columns))
        rows[unpenalised.UNIT], rows[unpenalised.MEAN] = unit, mean + shift
        rows[unpenalised.END] = (terms.bounds[index] + np.abs(mean) + 2.0 * np.abs(shift)) / unit
    return UnpenalisedColumns(
        feature=index.astype(np.int64),
        columns=columns,
        least=float(least),
        most=float(problem.margins.phi.dual_bound),
        factor=np.zeros((k, k)),
        rows=rows,
        samples=np.zeros((unpenalised.SAMPLE_ROWS, n if k else 0)),
    )


def _empty_span(references: int, n: int, p: int) -> DualSubspace:
    """Room for so many references over n samples and p features."""
    return DualSubspace(
        points=np.empty((references, n)),
        products=np.empty((references, p)),
        slack=np.zeros(references),
        shares=np.zeros(references),
        rest=np.empty(n),
    )


def _empty_column_cache(columns: int, n: int, p: int) -> ColumnCache:
    """Room for so many columns of n samples, of p features."""
    return ColumnCache(
        columns=np.empty((columns, n)),
        owner=np.full(columns, -1, np.int64),
        place=np.full(p, -1, np.int64),
    )


def _quadratic(members: int) -> Quadratic:
    """Room for a quadratic model of so many features."""
    return Quadratic(
        hessian=np.empty((members, members)),
        factor=np.empty((members, members)),
        order=np.zeros(members, np.int64),
        placed=np.zeros(members, np.bool_),
        direction=np.zeros(members),
        right=np.zeros(members),
    )


def _buffers(n: int, p: int, members: int) -> Buffers:
    """Buffers for n samples and p features, and for so many members of the quadratic model."""
    flags = np.zeros(8 * -(-p // 8), np.uint8)
    return Buffers(
        scores=np.zeros(n),
        theta=np.zeros(n),
        curved=np.zeros(n),
        bends=np.zeros(n),
        change=np.zeros(n),
        moved=np.zeros(n),
        estimate=np.zeros(p),
        to_check=np.empty(p, np.int64),
        near=np.empty(p, np.int64),
        flags=flags,
        words=flags.view(np.uint64),
        **_of_members(members),
    )


def _of_members(count: int) -> dict[str, Any]:
    """The buffers for ``count`` members of the quadratic model."""
    return {
        "members": np.zeros(count, np.int64),
        "lift": np.zeros(count),
        "slope": np.zeros(count),
        "start": np.zeros(count),
        "move": np.zeros(count),
        "net": Net(*np.zeros((len(Net._fields), count))),
    }


def _kernel_array(values: Array) -> Array:
    """The array, or a contiguous, writeable copy, so that kernels compile for one type of array."""
    plain = values.flags.c_contiguous and values.flags.writeable
    return values if plain else values.copy()


def _blank(l1: Array, l2: Array, entries: int) -> Strengths:
    """Empty results with room for ``entries`` coefficients."""
    return Strengths(
        l1=l1,
        l2=l2,
        indptr=np.zeros(l1.size + 1, np.int64),
        indices=np.empty(entries, np.int64),
        values=np.empty(entries),
        intercepts=np.zeros(l1.size),
        gaps=np.zeros(l1.size),
        objectives=np.zeros(l1.size),
        violations=np.zeros(l1.size),
        passes=np.zeros(l1.size),
        steps=np.zeros(l1.size),
    )


def _with_more_room(found: Strengths) -> Strengths:
    indices, values = np.empty((2, 2 * found.values.size))
    indices = indices.view(np.int64)
    indices[: found.indices.size], values[: found.values.size] = found.indices, found.values
    return found._replace(indices=indices, values=values)


def _is_readable(base: Design) -> bool:
    """Whether kernels can read the entries in place, or in a copy, for dense data a small one."""
    if isinstance(base, SparseDesign):
        return True
    small = 8 * base.n_samples * base.n_features <= COPY_BYTES
    return isinstance(base, DenseDesign) and (base.lines is not None or small)


def _has_many_entries(base: Design) -> bool:
    """Whether the data are sparse and a pass over them costs more than references do."""
    if not isinstance(base, SparseDesign):
        return False
    p = base.n_features
    return p > FEW_FEATURES or base.density * p > FEW_ENTRIES


def _store(base: Design, caches: bool) -> Dense | Compressed:
    if not isinstance(base, DenseDesign):
        return base.remembered(_by_columns)
    lines = base.remembered(_copied_lines) if base.lines is None else base.lines
    return Dense(lines=lines, by_rows=base.by_rows, caches=caches)


def _copied_lines(design: Design) -> Array:
    """A float64 copy with samples as rows, or features as rows if these are contiguous."""
    if not isinstance(design, DenseDesign):
        raise TypeError(f"{design!r} is not dense")
    matrix = design.matrix if design.by_rows else design.matrix.T
    return np.array(matrix, dtype=np.float64, order="C")


def _by_columns(design: Design) -> Compressed:
    if not isinstance(design, SparseDesign):
        raise TypeError(f"{design!r} is not compressed")
    matrix = design.matrix.tocsc()
    entries = matrix.data.astype(np.float64, copy=False)
    return Compressed(matrix.shape[0], entries, *narrow_indices(matrix))
