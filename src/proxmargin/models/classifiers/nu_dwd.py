"""nu-SVM and DWD: models whose weight vector has a bounded length, linear or with a kernel."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from proxmargin.compiled.rounding import Enclosed
from proxmargin.data.designs import Design
from proxmargin.data.inputs.kinds import KernelChoice, OneVsRest, Width
from proxmargin.data.inputs.parameters import check_strength
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.losses import DistanceWeighted, Loss, MarginLoss, TailMean
from proxmargin.functions.losses.tail_mean import largest_nu
from proxmargin.functions.penalties import Ball, Penalty, Ridge
from proxmargin.functions.rows import evenly_taken
from proxmargin.models.classifiers.kernel_machine import Finish, KernelMachine, Named, per_class
from proxmargin.models.fitting.admissible import Admissible, OfMax, no_margin, number_or_fraction
from proxmargin.models.fitting.assembly import Assembly, each_class, opposed
from proxmargin.models.fitting.documented import documented_kernels
from proxmargin.models.fitting.fitting import FitContext
from proxmargin.models.limits.binary_data import KERNEL_RANK
from proxmargin.models.limits.nu import ProgramTooLargeError, smallest_nu
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.optimality.problem import Point, Problem
from proxmargin.runtime.types import Array, Index
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.shared.batched_labels import (
    Axes,
    Balls,
    DualBoxes,
    FitsLabelings,
    fit_labelings,
    suits,
)

logger = logging.getLogger("proxmargin")

MARRON_SHARE = 0.1  # threshold over the median distance between the classes (Marron's rule)
DISTANCE_SAMPLES = 1000  # samples of each class for that median
MEDIAN_BLOCK = 1 << 20  # distances held at a time for the medians of many labelings: 8 MB
MIN_DISTANCE = 1e-60  # between the classes; powers of smaller ones would underflow
HALF_ROUNDING = 1e-12  # relative rounding of a sum of weights when it is compared with one half
# 'auto' with a kernel
CLEAR_MARGIN = 1e-3  # margin over the length of samples, from which on it is clear of rounding
LAST_STEP = 0.01  # distance of nu from the largest, over that, within which it stays as it is
NU_ACCURACY = 1e-6  # relative, of the least nu
NU_ROUNDING = 1e-12  # relative, of the largest nu: a sum of shares
# n_samples n_features up to which the least nu is computed, where the given one leaves no margin
MAX_PROGRAM_ENTRIES = 2_000_000  # by the simplex method
MAX_TALL_ENTRIES = 100_000_000  # by interior points, which need more samples than features


@dataclass(eq=False, repr=False)
class _NuMachine(KernelMachine):
    """Base of both models: ``nu`` and the norm of the weight vector."""

    _without_offset = "its scores are distances from a hyperplane, up to a factor"

    nu: float | str = "auto"
    norm: float = 2.0
    kernel: KernelChoice = "linear"
    gamma: Width = "scale"
    degree: int = 3
    coef0: float = 0.0
    multi_class: OneVsRest = "ovr"

    def _check_model(self) -> None:
        super()._check_model()
        check_strength("norm", self.norm, low=1.0, low_open=True)
        if self.norm != 2.0 and not self._is_linear:
            raise ValueError(f"norm must be 2 for a nonlinear kernel, got {self.norm!r}")

    def _note_chosen(self, problems: Sequence[Problem]) -> None:
        self.nu_ = per_class([self._chosen(problem) for problem in problems])

    @abstractmethod
    def _chosen(self, problem: Problem) -> float:
        """The nu of a problem."""


@documented_kernels(
    "'active-set', 'interior-point' (any norm), 'decomposition' (other kernels than 'linear'), "
    "'apg', 'fapg-guaranteed', 'fapg', 'fapg-star'"
)
class NuSVC(_NuMachine):
    """nu-support vector machine (Ito et al. 2017, 3.2.4; dual (14)).

    ``minimise  CVaR_nu(-y (x'w + b)) + |w|^2 / 2``: the mean of the worst share nu of the margins
    is as large as it can be for the length of w. Scores are scaled so that the margin rho is 1,
    where it is positive.

    Parameters
    ----------
    nu : 'auto', float or str, default 'auto'
        At most ``2 min(S+, S-) / S``, S+ and S- the weights of the classes
        (`proxmargin.nu_range`); ``'0.3max'`` is that share of it. 'auto' is ``'0.5max'``, or for
        classes that this leaves no margin between, the middle of what the data admit; with a
        nonlinear kernel the first of ``'0.5max'``, ``'0.75max'``, ``'0.875max'`` and so on whose
        margin is a thousandth of the length of the samples.
        Where nu is so small that the reduced hulls of the classes meet, there is no margin: an
        error names the least nu (a warning where nu is a share).
    norm : float > 1, default 2.0
        p of ``|w|_p``. Other than 2: ``minimise CVaR_nu`` over ``|w|_p <= 1``, linear only.
    <shared>

    <attributes>
    nu_ : float, or (n_classes,) where there are more than two
        The nu of each problem.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import NuSVC, nu_range
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NuSVC(nu=0.2, standardize=True).fit(X, y)
    >>> model.certificate_.converged, model.nu_
    (True, 0.2)
    """

    _in_memory = (
        "the worst share nu of the margins is found by pivoting on single rows; L2SVC and SVC with "
        "a linear kernel take such data"
    )
    _most_decomposed = np.inf

    def _fit_recorded(self, X: Any, targets: Targets, context: FitContext) -> None:
        while True:  # all attempts share the limits
            try:
                super()._fit_recorded(X, targets, context)
                return
            except _MarginlessError:
                continue

    def _check_model(self) -> None:
        super()._check_model()
        if not (isinstance(self.nu, str) and self.nu == "auto"):
            number_or_fraction("nu", self.nu, low_open=True)

    @property
    def _asked(self) -> float | OfMax:
        """nu, or its share of the largest one."""
        if self.nu == "auto":
            return OfMax(0.5)
        return number_or_fraction("nu", self.nu, low_open=True)

    def _of_labelings(self, axes: Axes, signs: Array) -> FitsLabelings | None:
        n = signs.shape[0]
        if self.norm != 2.0 or not suits(axes):
            return None
        most = largest_nu(signs[:, 0], np.full(n, 1.0 / n))  # labelings have equal counts
        nu = self._asked.of(most) if isinstance(self._asked, OfMax) else self._asked
        return DualBoxes(upper=1.0 / (n * nu), target=0.0) if nu <= most else None

    def _losses(
        self, targets: Targets, design: Design, joint: bool, context: FitContext
    ) -> Sequence[Loss]:
        shares, total, free = targets.shares, targets.total, self.fit_intercept
        losses = []
        for positive in each_class(targets):
            signs = targets.signs(positive)[:, 0]
            most = largest_nu(signs, shares) if free else 1.0
            asked = self._asked.of(most) if isinstance(self._asked, OfMax) else self._asked
            if asked > most:
                self._check_targets([targets])
            nu = context.nus.get(signs.tobytes()) or min(asked, most)
            losses.append(TailMean(signs, shares, nu, total, free_intercept=free))
        return losses

    def _check_targets(self, fits: Iterable[Targets]) -> None:
        nu = self._asked
        if isinstance(nu, OfMax):
            return
        if not self.fit_intercept:
            if nu > 1.0:
                raise ValueError(f"nu={nu:g} is above nu_max=1, the largest without an intercept")
            return
        limits = [
            (largest_nu(targets.signs(k)[:, 0], targets.shares), targets, k)
            for targets in fits
            for k in each_class(targets)
        ]
        most, least, k = min(limits, key=itemgetter(0))
        if nu > most * (1 + NU_ROUNDING):
            told = f"the least of {len(limits)}, " if len(limits) > 1 else ""
            raise ValueError(
                f"nu={nu:g} is above nu_max={most:.6g} = 2 min(S+, S-) / S, {told}of "
                f"{opposed(least, k)}: choose a smaller nu, or a share such as '0.5max'"
            )

    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        return Ridge(1.0) if self.norm == 2.0 else Ball(float(self.norm), 1.0)

    def _finish(self, problem: Problem, scores: Callable[[], Enclosed], intercept: Array) -> Finish:
        rho = _tail_mean(problem).threshold(scores().values)
        return Finish(1.0 / rho if rho > 0 else 1.0, intercept)

    def _chosen(self, problem: Problem) -> float:
        return float(_tail_mean(problem).nu)

    def _is_faint(self, problem: Problem, objective: float) -> bool:
        """Whether the 'auto' of a kernel goes on to a larger nu from a margin with this objective.
        The objective is minus half the square of the margin, which is to be a thousandth of the
        root mean square of ``sqrt(k(x, x))``: far above rounding, whatever the order of samples."""
        if self.nu != "auto" or self._is_linear:
            return False
        loss = _tail_mean(problem)
        most = largest_nu(loss.signs, loss.shares) if self.fit_intercept else 1.0
        square = float(loss.shares @ problem.design.row_norms())
        is_last = loss.nu > (1.0 - LAST_STEP) * most
        return not is_last and objective > -0.5 * CLEAR_MARGIN**2 * square

    def _is_futile(self, problem: Problem, gap: Gap) -> bool:
        return self._is_faint(problem, gap.dual)

    def _with_remarks(
        self,
        context: FitContext,
        targets: Targets,
        problems: Sequence[Problem],
        solutions: Sequence[Solution],
        gaps: Sequence[Gap],
    ) -> FitContext:
        before = dict(context.nus)
        context = super()._with_remarks(context, targets, problems, solutions, gaps)
        if context.nus != before:
            raise _MarginlessError
        return context

    def _check_gap(
        self, problem: Problem, gap: Gap, status: Status, context: FitContext, classes: Named
    ) -> str | None:
        loss = _tail_mean(problem)
        if self._is_faint(problem, gap.primal) and status is not Status.TIME_LIMIT:
            most = largest_nu(loss.signs, loss.shares) if self.fit_intercept else 1.0
            context.nus[loss.signs.tobytes()] = 0.5 * (loss.nu + most)
            return None
        if gap.is_negative:
            return None
        signs = loss.signs.tobytes()
        bounds = _nu_bounds(problem, loss, context.stop.deadline)
        leaves_margin = loss.nu > bounds[0] * (1.0 + NU_ACCURACY) if bounds else None
        replaceable = self.nu == "auto" and self._is_linear and not leaves_margin
        replaceable = replaceable and signs not in context.nus
        if replaceable and bounds and bounds[0] < bounds[1]:
            context.nus[signs] = sum(bounds) / 2.0
            return None

        def admissible() -> Admissible:
            words = _range_in_words(bounds, leaves_margin)
            return Admissible(leaves_margin, f"{words}, for {classes()}")

        return no_margin(self, "nu", gap, status, isinstance(self.nu, str), admissible)


def _tail_mean(problem: Problem) -> TailMean:
    """The loss of a nu-SVM."""
    assert isinstance(problem.loss, TailMean)
    return problem.loss


def _range_in_words(bounds: tuple[float, float] | None, leaves_margin: bool | None) -> str:
    """The range of nu, for messages."""
    if bounds is None:
        return "the reduced hulls of the classes meet"
    if leaves_margin:
        return f"it is above nu_min={bounds[0]:.6g}"
    between = "choose nu between" if bounds[0] < bounds[1] else "no nu is between"
    return f"{between} nu_min={bounds[0]:.6g} and nu_max={bounds[1]:.6g}"


class _MarginlessError(Exception):
    """The nu of 'auto' leaves no margin between some classes, but another nu does."""


def _nu_bounds(problem: Problem, loss: TailMean, until: float) -> tuple[float, float] | None:
    """The least and the largest nu; None if their program is too large or takes too long, or if
    HiGHS fails, which the log says."""
    design = problem.design
    entries, most = design.n_samples * design.n_features, MAX_TALL_ENTRIES
    if isinstance(design, KernelDesign):
        most = KERNEL_RANK**2
    elif design.n_samples < design.n_features:
        most = MAX_PROGRAM_ENTRIES
    if entries > most:
        return None
    try:
        least = smallest_nu(design, loss.signs, loss.shares, until, max_entries=MAX_PROGRAM_ENTRIES)
    except (TimeoutError, ProgramTooLargeError):
        return None
    except RuntimeError as failure:
        logger.info("the range of nu is not known: %s", failure)
        return None
    return least, largest_nu(loss.signs, loss.shares)


@documented_kernels("'ball-newton', 'apg', 'fapg-guaranteed', 'fapg', 'fapg-star'")
class DWD(_NuMachine):
    """Distance weighted discrimination (Marron et al. 2007; Ito et al. 2017, 3.2.5, dual (15)).

    ``minimise  sum_i s_i l(y_i (x_i'w + b))`` over ``|w| <= 1``, with ``l(t) = 1/t`` for
    ``t >= q`` and its tangent ``(2q - t) / q^2`` below.

    Parameters
    ----------
    nu : 'auto' or float > 0, default 'auto'
        ``q = sqrt(S nu)``, S the sum of the weights; q must be comparable with the scores, so nu is
        not confined to (0, 1]. 'auto' is Marron's rule: q is a tenth of the median distance
        between samples of the two classes, at most a thousand of each, in the space of the kernel.
    norm : float > 1, default 2.0
        p of ``|w|_p``; other than 2 for linear models only.
    <shared>

    <attributes>
    nu_ : float, or (n_classes,) where there are more than two
        The nu of each problem.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import DWD
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DWD(standardize=True).fit(X, y)
    >>> model.certificate_.converged, round(model.score(X, y), 2)
    (True, 0.96)
    """

    def _check_model(self) -> None:
        super()._check_model()
        if not (isinstance(self.nu, str) and self.nu == "auto"):
            check_strength("nu", self.nu, low=0.0, low_open=True)

    def _margin_loss(self) -> MarginLoss:
        return DistanceWeighted(1.0)

    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        return Ball(float(self.norm), 1.0)

    def _problems(
        self, targets: Targets, design: Design, context: FitContext | None = None
    ) -> tuple[Problem, ...]:
        """In units of q: scores are ``f / q``, and ``|w| <= 1 / q``, in any units of the data."""
        return tuple(
            replace(problem, penalty=Ball(float(self.norm), 1.0 / threshold))
            for problem, threshold in zip(
                super()._problems(targets, design, context),
                self._thresholds(targets, design),
                strict=True,
            )
        )

    def _of_labelings(self, axes: Axes, signs: Array) -> FitsLabelings | None:
        n, count = signs.shape
        if self.norm != 2.0 or (self.nu == "auto" and n > DISTANCE_SAMPLES):
            return None
        if self.nu != "auto":
            thresholds = np.full(count, np.sqrt(n * float(self.nu)))
        else:
            thresholds = MARRON_SHARE * _median_distances(axes.samples, signs)
        if not np.all(thresholds > MARRON_SHARE * MIN_DISTANCE):
            return None
        return partial(fit_labelings, DistanceWeighted(1.0), penalty=Balls(1.0 / thresholds))

    def _thresholds(self, targets: Targets, design: Design) -> list[float]:
        """The q of each problem."""
        classes = each_class(targets)
        if self.nu != "auto":
            return [float(np.sqrt(targets.total * float(self.nu)))] * len(classes)
        shares, order = targets.shares, _order_of_samples(design)
        pairs = [SamplePairs.of(targets.signs(each)[:, 0], shares, order) for each in classes]
        if design.passes_only:  # one for all classes
            union = np.unique(np.concatenate([each.numbers for each in pairs]))
            design = design.rows(union)
            pairs = [each._replace(numbers=np.searchsorted(union, each.numbers)) for each in pairs]
        found = []
        for each in pairs:
            distance = _median_distance(design, each)
            if 0 < distance < MIN_DISTANCE:
                raise ValueError(
                    f"the samples of different classes are {distance:.3g} apart: rescale the "
                    f"features, so that it is at least {MIN_DISTANCE:g}"
                )
            found.append(MARRON_SHARE * distance if distance > 0 else 1.0)
        return found

    def _points(self, assembly: Assembly, coef: Array, intercept: Array) -> list[Point]:
        units = np.array([[_threshold(problem)] for problem in assembly.problems])
        return super()._points(assembly, coef / units, intercept / units[:, 0])

    def _finish(self, problem: Problem, scores: Callable[[], Enclosed], intercept: Array) -> Finish:
        return Finish(_threshold(problem), intercept)

    def _objective_scale(self, problem: Problem) -> float:
        return problem.loss.sample_count / _threshold(problem)

    def _chosen(self, problem: Problem) -> float:
        if self.nu != "auto":
            return float(self.nu)
        return _threshold(problem) ** 2 / problem.loss.sample_count


def _threshold(problem: Problem) -> float:
    """The threshold q, which is the unit of the scores of a problem."""
    assert isinstance(problem.penalty, Ball)
    return 1.0 / problem.penalty.radius


class SamplePairs(NamedTuple):
    """Samples of two classes, at most a thousand of each, at even steps of the cumulative weight of
    samples in a given order."""

    numbers: Index  # (n,): Those of the first class before those of the second
    weights: Array  # (n,)
    first: int  # how many are of the first class

    @classmethod
    def of(cls, signs: Array, shares: Array, order: Index) -> SamplePairs:
        signs, shares = signs[order], shares[order]
        up, down = (
            evenly_taken(shares * (signs == side), DISTANCE_SAMPLES) for side in (1.0, -1.0)
        )
        taken = order[np.concatenate([up[0], down[0]])]
        return cls(taken, np.concatenate([up[1], down[1]]), up[0].size)


def _order_of_samples(design: Design) -> Index:
    """An order that depends on the samples alone, where not all of them are taken: by their kernel,
    or by a projection; the order of the rows where data are read in passes."""
    if design.n_samples <= DISTANCE_SAMPLES or design.passes_only:
        return np.arange(design.n_samples)
    if isinstance(design, KernelDesign):
        return design.kernel_matrix.order
    direction = np.random.default_rng(0).random((design.n_features, 1))
    return np.argsort(design.scores(direction)[:, 0], kind="stable")


def _median_distance(design: Design, pairs: SamplePairs) -> float:
    """The weighted median distance between samples of different classes."""
    index, part, first = pairs
    if first in (0, index.size):
        return 0.0
    between = design.rows(index).squared_distances(first, part / part.sum())
    weights = np.outer(part[:first], part[first:])
    return float(np.sqrt(max(_weighted_median(between.ravel(), weights.ravel()), 0.0)))


def _median_distances(samples: Array, signs: Array) -> Array:
    """The median distance between the classes for labelings with equally many samples of a class.
    ``samples``: (n_samples, n_coordinates). ``signs``: (n_samples, n_labelings)."""
    gram = samples @ samples.T
    lengths = np.diag(gram)
    squares = lengths[:, None] + lengths - 2.0 * gram
    order = np.argsort(signs, axis=0, kind="stable")
    first = int(np.count_nonzero(signs[:, 0] < 0))
    down, up = order[:first], order[first:]
    found = np.empty(signs.shape[1])
    block = max(1, MEDIAN_BLOCK // (first * (signs.shape[0] - first)))
    for start in range(0, found.size, block):
        part = slice(start, start + block)
        between = squares[up[:, None, part], down[None, :, part]]
        found[part] = np.median(between.reshape(-1, between.shape[2]).T, axis=1)
    return np.sqrt(np.maximum(found, 0.0))


def _weighted_median(values: Array, weights: Array) -> float:
    """The weighted median; the mean of two values if each side has exactly half the weight."""
    if weights.min() == weights.max():
        return float(np.median(values))  # a selection in O(n), while weights need a sort
    order = np.argsort(values)
    below = np.cumsum(weights[order]) / weights.sum()
    at = min(int(np.searchsorted(below, 0.5 - HALF_ROUNDING)), values.size - 1)
    after = at + 1 if abs(below[at] - 0.5) <= HALF_ROUNDING and at + 1 < values.size else at
    return 0.5 * float(values[order[at]] + values[order[after]])
