"""The problems whose solutions make up a model, and the model made of their solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import filterfalse
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import SCORE_ROUNDING
from proxmargin.data.designs import uncentred
from proxmargin.data.inputs.targets import Targets
from proxmargin.functions.losses import Loss, MarginLoss, MarginSum, wrong_classes
from proxmargin.functions.penalties import GroupNorm, Penalty, SumToZero, SumToZeroGroups
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array, Index
from proxmargin.solvers.loop.report import Solution, Status

Features = slice | NDArray[np.integer]
ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Assembly:
    """A data set turned into the problems whose solutions make up the model."""

    targets: Targets
    problems: tuple[Problem, ...]
    # centre, scale: (n_features,): Of the standardisation; zeros and ones without one
    centre: Array
    scale: Array
    # (n_samples,): Indices of the samples with positive weight, which are the ones fitted
    numbers: Index

    def with_penalty(self, penalty: Penalty) -> Assembly:
        """The same problems under another penalty."""
        problems = tuple(replace(p, penalty=with_zero_sums(penalty, p.loss)) for p in self.problems)
        return replace(self, problems=problems)

    def published(self, points: Sequence[Point], features: Features = ALL) -> tuple[Array, Array]:
        """Coefficients (rows, n_features) and intercepts (rows,) in the units of the data.

        ``features`` are those of the points, if they do not have all. The intercepts of classes
        that are fitted together sum to zero: a constant in all of them is of no meaning where the
        losses compare classes, and rounding where the coefficients sum to zero.
        """
        coefs, intercepts, _ = zip(*points, strict=True)
        coef = np.vstack(list(map(np.transpose, coefs)))
        coef /= self.scale[features]
        intercept = uncentred(np.concatenate(intercepts), coef.T, self.centre[features])
        # points of one output may be several models side by side
        if self.problems[0].loss.n_outputs > 1:
            intercept = _balanced(intercept, points[0].intercept.size)
        return coef, intercept

    def points(self, coef: Array, intercept: Array) -> list[Point]:
        """The inverse of `published`."""
        shifted = intercept + coef @ self.centre
        if self.problems[0].loss.compares_classes:
            shifted = _balanced(shifted, shifted.size // len(self.problems))
        finite = np.where(np.isfinite(self.scale), self.scale, 0.0)  # zero if constant
        rows = np.split(coef * finite, len(self.problems))
        return [
            Point(np.ascontiguousarray(part.T), b)
            for part, b in zip(rows, np.split(shifted, len(self.problems)), strict=True)
        ]


def _balanced(intercept: Array, outputs: int) -> Array:
    """The intercepts of models of several outputs, each less its mean over the outputs."""
    if outputs == 1:
        return intercept
    models = intercept.reshape(-1, outputs)
    balanced: Array = (models - models.mean(axis=1, keepdims=True)).ravel()
    return balanced


def unmet(solutions: Sequence[Solution], by_rule: bool = False) -> list[Solution]:
    """The solutions that missed their duality gap, or the rule of a paper where that ends fits."""
    if by_rule:
        return [s for s in solutions if s.status is not Status.RULE_MET]
    return list(filterfalse(attrgetter("certificate.converged"), solutions))


def with_zero_sums(penalty: Penalty, loss: Loss) -> Penalty:
    """The penalty; with zero sums over the classes if the loss does not compare their scores."""
    if loss.n_outputs == 1 or loss.compares_classes or penalty.sums_to_zero:
        return penalty
    if isinstance(penalty, GroupNorm):
        return SumToZeroGroups(penalty)
    if penalty.can_sum_to_zero:
        return SumToZero(penalty)
    raise ValueError(
        "classes are fitted together with an elastic net, a ridge or norms of groups only, got "
        f"{penalty!r}: use multi_class='ovr'"
    )


def each_class(targets: Targets) -> list[int]:
    """The positive class of each problem: the second of two classes, or every one of more."""
    return [1] if targets.classes.size == 2 else list(range(targets.classes.size))


def opposed(targets: Targets, positive: int) -> str:
    """The classes of a problem in words, by its positive one: the other one, or all others."""
    named = [repr(str(label)) for label in targets.classes]
    return f"class {named[positive]} against {'the others' if len(named) > 2 else named[0]}"


def margin_sums(phi: MarginLoss, targets: Targets, joint: bool) -> list[MarginSum]:
    """The sum of a margin loss over the samples: for all classes jointly, or one a class."""
    if joint:
        count = targets.classes.size
        return [wrong_classes(phi, targets.codes, targets.shares, count, targets.total)]
    of_signs = partial(MarginSum, phi, weights=targets.shares[:, None], sample_count=targets.total)
    return list(map(of_signs, map(targets.signs, each_class(targets))))


def without_rounding(intercept: Array) -> Array:
    """The intercepts of a model without coefficients, equal where only rounding tells them apart.

    Of classes of equal weight the first is then predicted, whatever the order of the rows.
    """
    if intercept.size == 1:
        return np.where(np.abs(intercept) <= SCORE_ROUNDING, 0.0, intercept)
    same = np.abs(intercept - intercept[:, None]) <= SCORE_ROUNDING * np.abs(intercept).max()
    return intercept[same.argmax(axis=1)]
