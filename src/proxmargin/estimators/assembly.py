"""The problems whose solutions make up a model, and what is made of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificates.certificate import Certificate, CertificateList, combined
from proxmargin.designs import uncentred
from proxmargin.inputs.targets import Targets
from proxmargin.loop.outcome import Solution, Status
from proxmargin.losses import Loss, MarginLoss, MarginSum, wrong_classes
from proxmargin.penalties import GroupNorm, Penalty, SumToZero, SumToZeroGroups
from proxmargin.problem import Point, Problem
from proxmargin.resuming.journal import UNRECORDED, Journal

__all__ = [
    "ALL",
    "Assembly",
    "Features",
    "certificate_of",
    "each_class",
    "joined",
    "margin_sums",
    "unmet",
]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Features = slice | NDArray[np.integer]
ALL = slice(None)


@dataclass(frozen=True, eq=False)
class Assembly:
    """A data set turned into the problems whose solutions make up the model.

    Attributes
    ----------
    targets : Targets
    problems : one problem, or one a class for one-vs-rest; they share the design
    centre, scale : (n_features,)
        Of the standardisation; zeros and ones without.
    numbers : (n_samples,) int
        Of the samples among those given: the ones that have weight.
    journal : Journal
        Of the fit that they are solved in.
    """

    targets: Targets
    problems: tuple[Problem, ...]
    centre: Array
    scale: Array
    numbers: Index
    journal: Journal = UNRECORDED

    def with_penalty(self, penalty: Penalty) -> Assembly:
        """The same problems under another penalty."""
        problems = tuple(replace(p, penalty=joined(penalty, p.loss)) for p in self.problems)
        return replace(self, problems=problems)

    def published(self, points: Sequence[Point], features: Features = ALL) -> tuple[Array, Array]:
        """Coefficients (rows, n_features) and intercepts (rows,) in the units of the data.

        Of ``features`` alone, if the points have no others.
        """
        coef = np.vstack([point.coef.T for point in points])
        coef /= self.scale[features]
        intercept = np.concatenate([point.intercept for point in points])
        return coef, uncentred(intercept, coef.T, self.centre[features])

    def points(self, coef: Array, intercept: Array) -> list[Point]:
        """The inverse of `published`."""
        shifted = intercept + coef @ self.centre
        finite = np.where(np.isfinite(self.scale), self.scale, 0.0)  # no constant features
        rows = np.split(coef * finite, len(self.problems))
        return [
            Point(np.ascontiguousarray(part.T), b)
            for part, b in zip(rows, np.split(shifted, len(self.problems)), strict=True)
        ]


class Certified(Protocol):
    """A solution of one problem."""

    @property
    def certificate(self) -> Certificate: ...


def certificate_of(solutions: Sequence[Certified]) -> Certificate | CertificateList:
    """The certificate of a model: of its one problem, or of all that make it up."""
    return combined([solution.certificate for solution in solutions])


def unmet(solutions: Sequence[Solution]) -> list[Solution]:
    """Those that were to meet a gap and did not."""
    return [s for s in solutions if not s.certificate.converged and s.status is not Status.SETTLED]


def joined(penalty: Penalty, loss: Loss) -> Penalty:
    """The penalty itself, or its sum-to-zero form where the scores of a class are absolute."""
    if loss.n_outputs == 1 or loss.compares_classes:
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
    """The classes that are positive in one problem each: the second of two, or every one."""
    return [1] if targets.classes.size == 2 else list(range(targets.classes.size))


def margin_sums(phi: MarginLoss, targets: Targets, joint: bool) -> list[MarginSum]:
    """A loss of one margin over the samples: of all classes together, or of each class."""
    if joint:
        count = targets.classes.size
        return [wrong_classes(phi, targets.codes, targets.shares, count, targets.total)]
    shares = targets.shares[:, None]
    return [MarginSum(phi, targets.signs(k), shares, targets.total) for k in each_class(targets)]
