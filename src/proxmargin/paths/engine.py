"""Whole paths in compiled code: `proxmargin.compiled.paths` for problems of one column of scores.

The kernel is called for several strengths at a time, so that an interruption finds all that are
complete. It returns early where arrays are too small, which are then enlarged, and where it gives
up: that strength is left to the caller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.paths import driver
from proxmargin.compiled.paths.driver import Buffers, Strengths, Terms
from proxmargin.compiled.paths.quadratic import Quadratic
from proxmargin.compiled.paths.span import Span
from proxmargin.compiled.paths.stores import Dense, Slots
from proxmargin.compiled.products.columns import Compressed
from proxmargin.compiled.solvers.nets import Net
from proxmargin.designs import Design, StandardizedDesign
from proxmargin.designs.dense import DenseDesign
from proxmargin.designs.sparse import SparseDesign
from proxmargin.problem import Problem

__all__ = ["Engine"]

Array = NDArray[np.float64]

REFERENCES = 16  # dual points whose products with all features are kept
FEW_FEATURES = 2000  # of sparse data, up to which all are read at every strength
FIRST_SLOTS = 256
FIRST_MEMBERS = 128
CHUNK = 10  # strengths a call


@dataclass(eq=False)
class Engine:
    """The state of a path."""

    problem: Problem
    tol: float

    def __post_init__(self) -> None:
        problem = self.problem
        design, margins = problem.design, problem.margins
        n, p = design.n_samples, design.n_features
        self.phi = margins.phi.scalars
        self.store, inverse, centre = stored(design)
        caches = isinstance(self.store, Dense) and self.store.caches
        all_slots = isinstance(self.store, Dense) and not caches
        net = problem.net
        factor = np.ones(p)
        norms = np.sqrt(_base(design).column_squares(np.ones(n), np.zeros(p))) * inverse * (1 + 1e-12)
        self.terms = Terms(
            margins.signs[:, 0].copy(), margins.weights[:, 0].copy(), centre, inverse, norms,
            design.column_bounds(), factor, net.lower, net.upper, problem.fits_intercept,
            not margins.phi.is_strictly_convex,
            not all_slots and (isinstance(self.store, Dense) or p > FEW_FEATURES),
        )
        capacity = p if all_slots else min(p, FIRST_SLOTS)
        members = min(p, FIRST_MEMBERS)
        self.slots = Slots(
            np.zeros(capacity, np.int64), np.full(p, -1, np.int64), np.zeros(capacity), np.zeros(capacity),
            np.zeros(capacity), np.full(capacity, -1, np.int64),
            np.empty((capacity, n) if caches else (0, n)), np.empty((members, n) if caches else (0, n)),
            np.zeros(members),
        )
        self.span = Span(
            np.empty((REFERENCES if self.terms.spans else 0, n)),
            np.empty((REFERENCES if self.terms.spans else 0, p)),
            np.zeros(REFERENCES), np.zeros(REFERENCES), np.empty(n),
        )
        self._members(members)
        self.buffers = Buffers(
            np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(p),
            np.zeros(p, np.int64), *self.of_members,
        )
        self.counts = np.zeros(7, np.int64)
        self.levels = np.zeros(6)
        driver.begin(
            self.store, self.phi, self.terms, self.slots, self.span, self.buffers, self.counts, self.levels
        )
        if all_slots:
            self.slots.feature[:] = np.arange(p)
            self.slots.slot_of[:] = np.arange(p)
            self.slots.slope[:] = self.buffers.estimate
            self.counts[driver.SLOTS] = p

    def _members(self, m: int) -> None:
        self.quadratic = Quadratic(
            np.empty((m, m)), np.empty((m, m)), np.zeros(m, np.int64), np.zeros(m, np.bool_), np.zeros(m), np.zeros(m)
        )
        self.of_members = (
            np.zeros(m, np.int64), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m),
            Net(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)),
        )

    def run(self, l1: Array, l2: Array) -> Strengths:
        count, p = l1.size, self.slots.slot_of.size
        room = min(count * p, 1 << 22)
        s = Strengths(
            l1, l2, np.zeros(count + 1, np.int64), np.empty(room, np.int64), np.empty(room), *(np.zeros(count) for _ in range(6))
        )
        at = 0
        while at < count:
            end, code = driver.advance(
                self.store, self.phi, self.terms, self.slots, self.quadratic, self.span, self.buffers,
                s, at, count, self.tol, self.counts, self.levels,
            )
            if code == driver.ROOM:
                self._enlarge()
            elif code == driver.GAVE_UP:
                self.gave_up = end
                return s
            at = end
        self.gave_up = None
        return s

    def _enlarge(self) -> None:
        p, n = self.slots.slot_of.size, self.buffers.scores.size
        capacity, members = self.slots.feature.size, self.buffers.members.size
        caches = self.slots.cache.shape[0] > 0
        more, most = min(2 * capacity, p), min(2 * members, p)
        s = self.slots
        grow = lambda a, size: np.concatenate([a, np.zeros((size - len(a), *a.shape[1:]), a.dtype)])
        self.slots = Slots(
            grow(s.feature, more), s.slot_of, grow(s.coef, more), grow(s.slope, more), grow(s.mean, more),
            np.full(more, -1, np.int64), grow(s.cache, more) if caches else s.cache,
            np.empty((most, n)) if caches else s.rows, np.zeros(most),
        )
        self._members(most)
        self.buffers = self.buffers._replace(
            members=self.of_members[0], lift=self.of_members[1], slope=self.of_members[2],
            start=self.of_members[3], move=self.of_members[4], net=self.of_members[5],
        )
        self.counts[driver.MEMBERS] = self.counts[driver.KEPT] = 0


def _base(design: Design) -> Design:
    return design.base if isinstance(design, StandardizedDesign) else design


def stored(design: Design) -> tuple[Any, Array, Array]:
    base = _base(design)
    p = design.n_features
    inverse, centre = np.ones(p), np.zeros(p)
    if isinstance(design, StandardizedDesign):
        inverse, centre = 1.0 / design.scale, design.centre
    if isinstance(base, DenseDesign):
        return Dense(base._major, base._by_rows, base.n_samples < p), inverse, centre
    assert isinstance(base, SparseDesign)
    csc = base.matrix.tocsc()
    return Compressed(base.n_samples, csc.data, csc.indices, csc.indptr), inverse, centre
