"""One pass over blocks of rows that answers all products of a certificate of a minimax model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.designs.base import Array, Design, Index
from proxmargin.designs.blocks import tasks
from proxmargin.designs.blocks.base import BlockedDesign
from proxmargin.designs.blocks.class_moments import indicators, spread_codes
from proxmargin.designs.blocks.tasks import Answer, Arrays
from proxmargin.designs.standardized import StandardizedDesign
from proxmargin.rounding import UNIT, Enclosed, gamma

__all__ = ["Answered", "AnsweredDesign", "Answers", "PassRequest", "answered"]

Codes = NDArray[np.intp]

COEF_ULPS = 8.0  # difference of coefficients from a multiple of the known ones, in unit roundoffs
DUAL_ULPS = 32.0  # difference of a dual point from a known one, over its sum, in unit roundoffs
OPERATIONS = 4  # roundings behind an entry of a combination of two known ones
RECALL_ERROR = 4.0 * DUAL_ULPS * UNIT  # of `AnsweredDesign.adjoint`, relative to each term


class PassRequest(NamedTuple):
    """What a pass is to find for one problem.

    Attributes
    ----------
    coef : (n_features,)
    positive : int
        The class that is told from all others.
    levels : (2,)
        About the mean of the scores that make up the dual point in that class, and in the others,
        less their mean over all samples. They are subtracted, so that little is lost to rounding.
    steering : (n_features, 2), optional
        The coefficients of those scores; ``coef`` by default.
    """

    coef: Array
    positive: int
    levels: Array
    steering: Array | None = None


class Answered(NamedTuple):
    """The data, with what a pass has found for one problem.

    Attributes
    ----------
    design : Design
    steered : (n_samples,)
        The scores that make up the dual point, less the level of their class.
    """

    design: Design
    steered: Array


@dataclass(frozen=True, eq=False)
class Answers:
    """What a pass has found for one column of coefficients.

    Attributes
    ----------
    coef : (n_features, 1)
    intercept : float
    scores : Enclosed
        ``X @ coef + intercept``, (n_samples, 1), by compensated sums; one size for all samples.
    shares : (n_samples,)
        Weights of the samples.
    groups : two arrays of indices
        The samples of the positive class, and all others.
    steered : (n_samples,)
        The scores that dual points are made of, less the level of their group.
    along, of_ones : Enclosed
        ``X' (shares steered)`` and ``X' shares`` over each of the groups, (n_features, 2).
    """

    coef: Array
    intercept: float
    scores: Enclosed
    shares: Array
    groups: tuple[Index, Index]
    steered: Array
    along: Enclosed
    of_ones: Enclosed

    def multiple(self, coef: Array) -> float | None:
        """The t >= 0 with ``coef = t self.coef`` up to rounding, if there is one."""
        if coef.shape != self.coef.shape:
            return None
        largest = int(np.argmax(np.abs(self.coef[:, 0])))
        if self.coef[largest, 0] == 0.0:
            return None
        t = float(coef[largest, 0] / self.coef[largest, 0])
        apart = np.abs(coef - t * self.coef)
        return None if t < 0 or np.any(apart > COEF_ULPS * UNIT * np.abs(coef)) else t

    def combination(self, dual: Array) -> Array | None:
        """``a_k, b_k`` with ``dual = shares (a_k steered + b_k)`` in group k, (2, 2), to rounding.

        None unless the sum of all absolute differences, their own rounding included, is below
        `DUAL_ULPS` of that of the dual point.
        """
        if dual.shape[1] != 1:
            return None
        found, lost = np.zeros((2, 2)), 0.0
        for k, group in enumerate(self.groups):
            s, z, q = self.shares[group], self.steered[group], dual[group, 0]
            weight = float(s.sum())
            apart, level = z - float(s @ z) / weight, float(q.sum()) / weight
            square = float(s @ apart**2)
            a = float((q - level * s) @ apart) / square if square > 0 else 0.0
            b = level - a * float(s @ z) / weight
            moved, constant = a * (s * z), b * s
            lost += float(np.abs(q - (moved + constant)).sum())
            lost += OPERATIONS * UNIT * float((np.abs(moved) + np.abs(constant)).sum())
            found[k] = a, b
        return found if lost <= DUAL_ULPS * UNIT * float(np.abs(dual).sum()) else None


class AnsweredDesign(StandardizedDesign):
    """Some samples of blocks of rows, with the answers of one pass; other products take passes.

    Known are the scores of one column of coefficients and of its multiples, and the products of the
    dual points that are, in each of two groups of samples, the shares times an affine function of
    these (or other) scores. The gradient of a minimax loss is one, and what makes it feasible keeps
    it one.

    Parameters
    ----------
    base : Design
        Blocks of rows, or a view of some of their rows.
    known : Answers
    """

    recall_error = RECALL_ERROR

    def __init__(self, base: Design, known: Answers) -> None:
        super().__init__(base, np.zeros(base.n_features), np.ones(base.n_features))
        self.known = known

    def scores(self, coef: Array) -> Array:
        t = self.known.multiple(coef)
        if t is None:
            return self.base.scores(coef)
        return t * (self.known.scores.values - self.known.intercept)

    def adjoint(self, dual: Array) -> Array:
        found = self.known.combination(dual)
        if found is None:
            return self.base.adjoint(dual)
        known = self.known
        return (known.along.values @ found[:, 0] + known.of_ones.values @ found[:, 1])[:, None]

    def adjoint_error(self, sizes: Array) -> Array:
        return Design.adjoint_error(self, sizes)

    def largest(self) -> Array:
        return self.base.whole.column_bounds()

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        t, known = self.known.multiple(coef), self.known
        if not t:  # for zero the intercept alone would have a tighter bound
            return self.base.precise_scores(coef, intercept)
        moved = known.scores.times(t).plus(intercept - t * known.intercept)
        sizes = moved.sizes + abs(t * known.intercept)
        return Enclosed(moved.values, moved.error + (COEF_ULPS + OPERATIONS) * UNIT * sizes, sizes)

    def precise_adjoint(self, dual: Array) -> Enclosed:
        found = self.known.combination(dual)
        if found is None:
            return self.base.precise_adjoint(dual)
        known = Enclosed(*map(np.hstack, zip(self.known.along, self.known.of_ones, strict=True)))
        factors = found.T.reshape(-1, 1)
        sizes, size = np.abs(factors), float(np.abs(dual).sum())
        error = known.error @ sizes + gamma(OPERATIONS) * (np.abs(known.values) @ sizes)
        error += DUAL_ULPS * UNIT * size * self.column_bounds()[:, None]
        return Enclosed(known.values @ factors, error, known.sizes @ sizes)


def answered(
    design: Design, codes: Codes, shares: Array, n_classes: int, asked: Sequence[PassRequest]
) -> list[Answered]:
    """The design for each problem, with its `Answers`; one pass for all.

    Parameters
    ----------
    design : Design
        Blocks of rows, a view of some of their rows, or one of these standardised.
    codes, shares : (n_samples,)
        Class and weight of each sample.
    """
    if isinstance(design, StandardizedDesign):
        scale = design.scale[:, None]
        raw = [
            each._replace(
                coef=each.coef / design.scale,
                steering=None if each.steering is None else each.steering / scale,
            )
            for each in asked
        ]
        below = answered(design.base, codes, shares, n_classes, raw)
        centre = design.centre, design.scale
        return [each._replace(design=StandardizedDesign(each.design, *centre)) for each in below]
    whole = design.whole
    assert isinstance(whole, BlockedDesign)
    mean, _ = design.mean_and_variance(shares)
    plan = _Plan.of(asked, mean, n_classes)
    cut = spread_codes(design, codes), design.spread_out(shares)
    rows, (*parts, sizes) = whole.run(products_of_classes, (plan,), cut, _combined)
    if whole is not design:
        live = np.flatnonzero(design.spread_out(np.ones(design.n_samples)))
        rows = tuple(each[live] for each in rows)
    pulled = tasks.total_of(tuple(parts), whole.n_blocks)
    found = []
    for j in range(len(asked)):
        known = plan.answers(j, rows, sizes, pulled, codes, shares)
        found.append(Answered(AnsweredDesign(design, known), known.steered))
    return found


class _Plan(NamedTuple):
    """The coefficients of a pass, and which of their scores serve which dual points.

    Attributes
    ----------
    coef, steering : (n_features, n), (n_features, m)
    intercepts, shifts : (n,), (m,)
        Of both; they centre the scores, whose size is the unit of rounding.
    positives : of each of the n problems
    places : pairs of columns of the n + m scores, for each of the n problems
    levels : pairs of numbers to subtract from these
    n_classes : int
    """

    coef: Array
    steering: Array
    intercepts: Array
    shifts: Array
    positives: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    levels: tuple[Array, ...]
    n_classes: int

    @classmethod
    def of(cls, asked: Sequence[PassRequest], mean: Array, n_classes: int) -> _Plan:
        coef = np.column_stack([each.coef for each in asked])
        extra, places = [np.empty((len(coef), 0))], []
        for j, each in enumerate(asked):
            if each.steering is None:
                places.append((j, j))
            else:
                first = len(asked) + 2 * (len(extra) - 1)
                extra.append(each.steering)
                places.append((first, first + 1))
        steering = np.hstack(extra)
        return cls(
            coef,
            steering,
            -(mean @ coef),
            -(mean @ steering),
            tuple(each.positive for each in asked),
            tuple(places),
            tuple(each.levels for each in asked),
            n_classes,
        )

    def steered(self, j: int, scores: Array, codes: Codes) -> Array:
        """The scores that make up the dual point of problem j, less their levels."""
        (up, down), (high, low) = self.places[j], self.levels[j]
        one = codes == self.positives[j]
        return np.where(one, scores[:, up] - high, scores[:, down] - low)

    def answers(
        self,
        j: int,
        rows: Arrays,
        sizes: Array,
        pulled: Enclosed,
        codes: Codes,
        shares: Array,
    ) -> Answers:
        """The part of the answers that belongs to problem j."""
        values, error, extra = rows
        positive, column = self.positives[j], slice(j, j + 1)
        one = codes == positive
        others = [k for k in range(self.n_classes) if k != positive]
        first = self.n_classes + 2 * j
        return Answers(
            coef=self.coef[:, column],
            intercept=float(self.intercepts[j]),
            scores=Enclosed(values[:, column], error[:, column], sizes[column]),
            shares=shares,
            groups=(np.flatnonzero(one), np.flatnonzero(~one)),
            steered=self.steered(j, np.hstack([values, extra]), codes),
            along=Enclosed(*(part[:, first : first + 2] for part in pulled)),
            of_ones=_summed(pulled, [[positive], others]),
        )


def _summed(pulled: Enclosed, groups: list[list[int]]) -> Enclosed:
    """The sums of some columns, (n_features, n_groups), with the rounding of these sums."""
    values, error, sizes = (
        np.stack([part[:, group].sum(axis=1) for group in groups], axis=1) for part in pulled
    )
    terms = float(max(map(len, groups)))
    return Enclosed(values, error + terms * UNIT * sizes, sizes)


# -- in the blocks


def products_of_classes(block: Design, shared: Arrays, cut: Arrays) -> Answer:
    """Scores with their errors, and the products of `Answers`: those of the shares of each class,
    then, for each problem, those of the shares times scores in both groups."""
    (plan,), (codes, shares) = shared, cut
    found = block.precise_scores(plan.coef, plan.intercepts)
    values, error, sizes = (np.broadcast_to(part, found.values.shape) for part in found)
    extra = np.empty((codes.size, 0))
    if plan.steering.shape[1]:
        extra = block.scores(plan.steering) + plan.shifts
    scores, columns = np.hstack([values, extra]), [indicators(codes, shares, plan.n_classes)]
    for j, positive in enumerate(plan.positives):
        moved = shares * plan.steered(j, scores, codes)
        columns.append(np.where((codes == positive)[:, None] == [True, False], moved[:, None], 0.0))
    pulled = block.precise_adjoint(np.hstack(columns))
    small = (pulled.values, np.zeros_like(pulled.values), pulled.error, pulled.sizes)
    return (values, error, extra), (*small, sizes.max(axis=0))


def _combined(first: Arrays, second: Arrays) -> Arrays:
    *sums, largest = first
    *more, other = second
    return *tasks.added_precisely(tuple(sums), tuple(more)), np.maximum(largest, other)
