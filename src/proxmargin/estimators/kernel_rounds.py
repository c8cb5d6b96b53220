"""Kernel models from factors of the kernel: solved, certified for the kernel itself, refined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from time import perf_counter

import numpy as np

from proxmargin.certificates.representer import (
    Representer,
    represented,
    represented_by_few,
    represented_together,
)
from proxmargin.compiled.clock import clock
from proxmargin.designs import DenseDesign
from proxmargin.designs.kernel import KernelMatrix
from proxmargin.designs.low_rank import LowRankFactor, factorise
from proxmargin.loop.outcome import Solution, Status
from proxmargin.loop.stopping import Stop
from proxmargin.losses.base import Array
from proxmargin.problem import Point, Problem
from proxmargin.runtime.pace import operations_in

__all__ = ["Fitted", "Rounds", "is_interior"]

# the factor G (n x r)
FIRST_RANK = 1000  # columns at first
FIRST_WORK = 5e10  # multiplications n r^2 of the first factor, at most
MAX_WORK = 4e11  # of any factor
MAX_FACTOR_BYTES = 4e9
# the gap of a round over that of the round before
SLOW_REDUCTION = 0.1  # above which the rank is doubled
USELESS_REDUCTION = 0.7  # above which the round was of no use
FAR_GAP = 0.03  # relative gap above which the rank is doubled in any case
# estimate of the time of a product with the kernel
TIMED_ROWS = 32  # computed to estimate it
TIMINGS = 3  # of them; the median counts
# shares of the time left
PRODUCT_TIME = 0.4  # that one product with the kernel may take
FACTOR_TIME = 0.3  # that the first factor may take
FACTOR_PRODUCT_TIME = 0.05  # that n r^2 multiplications with a factor may take, for each problem
# support vectors of solvers whose dual points have no exact zeros
SUPPORT_CUTS = (1e-6, 1e-9, 0.0)  # of the largest coordinate, tried until the certificate agrees
SLIGHT_CUT = 0.1  # of the norm of the model, up to which the part that is cut is slight

Solve = Callable[[Sequence[Problem], Sequence[Point | None], Stop], list[Solution]]


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result for one problem.

    Attributes
    ----------
    solution : Solution
        Certified for the kernel itself, with the work of all rounds.
    model : Representer
        Of that solution, the best so far.
    last : Representer
        That of the last round.
    start : Point
        Of the last round, on its factor.
    objective : float
        There, which is that of the same model with the kernel itself.
    """

    solution: Solution
    model: Representer
    last: Representer
    start: Point
    objective: float

    @property
    def is_done(self) -> bool:
        settled = self.solution.status in (Status.SETTLED, Status.INTERRUPTED)
        return settled or self.solution.certificate.converged


class Meter:
    """Passes over a kernel matrix, and seconds, since it was set up."""

    def __init__(self, matrix: KernelMatrix) -> None:
        self.ledger = matrix.ledger
        self.passes, self.started = self.ledger.passes, perf_counter()

    def read(self, parts: int = 1) -> tuple[int, float, float]:
        """Iterations (none), passes and seconds, divided among ``parts`` problems."""
        passes, seconds = self.ledger.passes - self.passes, perf_counter() - self.started
        return 0, passes / parts, seconds / parts


@dataclass(frozen=True, eq=False)
class Rounds:
    """Solve on ``K ~ G G'``, certify for K, refine G while the gap is too large.

    A certificate costs the product of K with the model, a combination of samples, and with it the
    factor is made exact at that combination. The residual ``K - G G'`` then acts only on the change
    of the model between two rounds, so that the gap falls by orders of magnitude a round unless the
    residual is large. Where it falls slowly, the rank is doubled too.

    Parameters
    ----------
    matrix : KernelMatrix
    problems : sequence of Problem
        Over the kernel itself.
    solve : callable
        From problems over factors, starts and limits to solutions.
    scale : callable
        From a problem to what its objective is multiplied with in certificates.
    stop : Stop
        Limits of the whole; it has started.
    rank : int, optional
        The most columns of a factor.
    """

    matrix: KernelMatrix
    problems: Sequence[Problem]
    solve: Solve
    scale: Callable[[Problem], float]
    stop: Stop
    rank: int | None = None

    def run(self) -> list[Fitted]:
        """The best that was found for each problem."""
        meter = Meter(self.matrix)
        if self.is_rushed:
            return self._roughly(meter)
        end = self.before_product.deadline
        factor = self.first(FIRST_RANK, end)
        found = self._round(factor, [None] * len(self.problems), meter, end)
        before = np.inf
        while True:
            meter, gap = Meter(self.matrix), _worst(found)
            finer = self._finer(factor, found, gap, before, end)
            if finer.rank == factor.rank:
                return [_told(one, factor) for one in found]
            factor, before = finer, gap
            found = self._round(factor, found, meter, end)

    @cached_property
    def product(self) -> float:
        """Seconds that a product with the kernel may take, where there is a limit to keep."""
        if not np.isfinite(self.stop.deadline):
            return 0.0
        count = min(TIMED_ROWS, self.matrix.n_samples)
        times = []
        for _ in range(TIMINGS):
            started = clock()
            self.matrix.block(np.arange(count), np.arange(self.matrix.n_samples))
            times.append(clock() - started)
        # half of the entries are computed
        return 0.5 * float(np.median(times)) * self.matrix.n_samples / count

    @cached_property
    def is_rushed(self) -> bool:
        """There is no time for a product with the kernel beside all else."""
        return self.product > PRODUCT_TIME * (self.stop.deadline - clock())

    @property
    def before_product(self) -> Stop:
        """The limits of what has to leave the time for a product with the kernel."""
        return replace(self.stop, time_limit=None, deadline=self.stop.deadline - self.product)

    def first(self, rank: int, end: float) -> LowRankFactor:
        """A factor of this rank at most, in a part of the time until ``end``."""
        now = clock()
        part = now + FACTOR_TIME * max(end - now, 0.0)
        most = min(rank, self._most(FIRST_WORK))
        return factorise(self.matrix, rank=most, deadline=part)

    def _roughly(self, meter: Meter) -> list[Fitted]:
        """One round, and a product with the kernel only if there is time for it at the end."""
        factor, count = self.first(FIRST_RANK, self.stop.deadline), len(self.problems)
        solutions = self.solve(on_factor(self.problems, factor), [None] * count, self.stop)
        if self.product <= self.stop.deadline - clock():
            models = self._models(self.problems, solutions)
        else:
            models = self._of_pivots(factor, solutions)
        work = meter.read(count)
        found = []
        for problem, solution, model in zip(self.problems, solutions, models, strict=True):
            certified = with_work(self._noted(problem, solution, model), *work)
            found.append(Fitted(certified, model, model, solution.point, solution.gap.primal))
        return [_told(one, factor) for one in found]

    def _of_pivots(self, factor: LowRankFactor, solutions: Sequence[Solution]) -> list[Representer]:
        """The solutions as weights of the pivots: no other columns of the kernel are needed."""
        models = []
        for problem, solution in zip(self.problems, solutions, strict=True):
            weights = factor.at_pivots(solution.point.coef[: factor.rank, 0])
            dual = solution.gap.dual_point
            square = factor.square(dual[:, 0])
            models.append(represented_by_few(problem, self.matrix, weights, dual, square))
        return models

    def _most(self, operations: float) -> int:
        """The largest rank whose factor takes at most so many operations and fits in the time."""
        n = self.matrix.n_samples
        left = max(self.stop.deadline - clock(), 0.0) / len(self.problems)
        operations = min(operations, operations_in(FACTOR_PRODUCT_TIME * left))
        affordable = min(int(np.sqrt(operations / n)), int(MAX_FACTOR_BYTES / (8 * n)))
        return min(n, max(affordable, 1) if self.rank is None else int(self.rank))

    def _round(
        self,
        factor: LowRankFactor,
        known: Sequence[Fitted | None],
        meter: Meter,
        end: float,
    ) -> list[Fitted]:
        """Solve again, on this factor, what is not done; ``meter`` has seen its making."""
        todo = [k for k, one in enumerate(known) if one is None or not one.is_done]
        shared = meter.read(len(todo))
        solutions = self.solve(
            on_factor([self.problems[k] for k in todo], factor),
            [_start(factor, known[k]) for k in todo],
            self._left(known, end),
        )
        found = list(known)
        meter = Meter(self.matrix)
        models = self._models([self.problems[k] for k in todo], solutions)
        work = meter.read(len(todo))
        for k, solution, model in zip(todo, solutions, models, strict=True):
            certified = self._noted(self.problems[k], solution, model)
            certified = with_work(with_work(certified, *shared), *work)
            now = Fitted(certified, model, model, solution.point, solution.gap.primal)
            found[k] = _joined(known[k], now)
        return [one for one in found if one is not None]

    def _left(self, known: Sequence[Fitted | None], end: float) -> Stop:
        """The limits of the next round."""
        most = self.stop.max_iter
        if most is not None:
            done = max(0 if one is None else one.solution.certificate.n_iter for one in known)
            most = max(most - done, 0)
        return replace(self.stop, max_iter=most, time_limit=None, deadline=end)

    def _models(
        self, problems: Sequence[Problem], solutions: Sequence[Solution]
    ) -> list[Representer]:
        """Weights of samples with their certificates: one product with the kernel for all.

        If the entries cut from a dual point may explain its gap, fewer are cut.
        """
        duals = [solution.gap.dual_point for solution in solutions]
        cuts = [
            SUPPORT_CUTS if is_interior(problem, dual) else SUPPORT_CUTS[-1:]
            for problem, dual in zip(problems, duals, strict=True)
        ]
        given = [_cut_of(dual, cut[0]) for dual, cut in zip(duals, cuts, strict=True)]
        models = represented_together(problems, self.matrix, given, tol=self.stop.tol)
        return [
            self._uncut(problem, dual, model, cut)
            for problem, dual, model, cut in zip(problems, duals, models, cuts, strict=True)
        ]

    def _uncut(
        self, problem: Problem, dual: Array, model: Representer, cuts: tuple[float, ...]
    ) -> Representer:
        """The model for the first cut, or the next one that improves the certificate."""
        tol = self.stop.tol
        for past, cut in pairwise(cuts):
            gap = model.gap.relative_gap
            if gap <= tol or gap - _share_of_cut(model, self.matrix, dual, past) > tol:
                break  # the tolerance is met, or would not be without a cut
            if clock() >= self.stop.deadline:
                break
            model = represented(problem, self.matrix, dual, cut=cut, tol=tol)
        return model

    def _noted(self, problem: Problem, solution: Solution, model: Representer) -> Solution:
        """The solution with the certificate of its model, which is for the kernel itself."""
        gap, scale = model.gap, self.scale(problem)
        certificate = replace(
            solution.certificate,
            primal=scale * gap.primal,
            dual=scale * gap.dual,
            gap=scale * gap.gap,
            relative_gap=gap.relative_gap,
            kkt_residual=scale * gap.kkt_residual,
            converged=bool(gap.relative_gap <= self.stop.tol),
        )
        return replace(solution, gap=gap, certificate=certificate)

    def _finer(
        self,
        factor: LowRankFactor,
        found: Sequence[Fitted],
        gap: float,
        before: float,
        end: float,
    ) -> LowRankFactor:
        """The factor refined; the same one if that would not help or is not allowed."""
        todo = [one for one in found if not one.is_done]
        stopped = any(one.solution.status is Status.INTERRUPTED for one in found)
        spent = self.stop.max_iter is not None and self._left(found, end).max_iter == 0
        most = self._most(MAX_WORK)
        slow = gap > min(SLOW_REDUCTION * before, FAR_GAP)
        useless = gap > USELESS_REDUCTION * before and factor.rank >= most
        if not todo or stopped or spent or useless or clock() >= end:
            return factor
        weights = np.column_stack([one.last.weights for one in todo])
        products = np.column_stack(
            [one.last.scores[:, 0] - one.last.gap.point.intercept for one in todo]
        )
        room = most - factor.rank
        finer = factor.along(weights[:, :room], products[:, :room])
        return finer.extend(min(2 * finer.rank, most), deadline=end) if slow else finer


def is_interior(problem: Problem, dual: Array) -> bool:
    """Whether no dual coordinate of a sample with positive weight is exactly zero."""
    return bool(dual[problem.loss.shares > 0].all())


def _worst(found: Sequence[Fitted]) -> float:
    """The largest relative gap of what the last round was for."""
    return max((one.last.gap.relative_gap for one in found if not one.is_done), default=0.0)


def on_factor(problems: Sequence[Problem], factor: LowRankFactor) -> list[Problem]:
    """The problems over the factor of their kernel."""
    # a kernel that is zero has a factor without columns: a design needs one
    columns = factor.factor if factor.rank else np.zeros((factor.matrix.n_samples, 1))
    design = DenseDesign(columns)
    return [replace(problem, design=design) for problem in problems]


def samples_of(problem: Problem, solution: Solution) -> Point:
    """The weights of samples of a solution on a factor, as a warm start.

    Only for a ridge; support vectors that are rounding are dropped.
    """
    dual = solution.gap.dual_point
    cut = SUPPORT_CUTS[0] * float(np.abs(dual).max(initial=0.0))
    weights = np.where(np.abs(dual) > cut, dual, 0.0) / -problem.penalty.l2
    return Point(weights, solution.gap.point.intercept)


def is_stuck(solution: Solution) -> bool:
    """Whether its solver gave up before the tolerance was met."""
    return (
        solution.status in (Status.STALLED, Status.ROUNDED) and not solution.certificate.converged
    )


def better(
    before: tuple[Solution, Representer], now: tuple[Solution, Representer]
) -> tuple[Solution, Representer]:
    """The better of a stalled solution and that of another solver, with the work of both.

    The status is that of the second.
    """
    solution, model = now if now[1].gap.gap <= before[1].gap.gap else before
    first, second = before[0].certificate, now[0].certificate
    certificate = replace(
        solution.certificate,
        stop_reason=second.stop_reason,
        solver=second.solver,
        n_iter=first.n_iter + second.n_iter,
        n_passes=first.n_passes + second.n_passes,
        seconds=first.seconds + second.seconds,
        because=(
            f"{first.because}; it stalled at a relative gap of {first.relative_gap:.1e}, "
            f"and {second.solver!r} went on: {second.because}"
        ),
    )
    return replace(solution, certificate=certificate, status=now[0].status), model


def _start(factor: LowRankFactor, known: Fitted | None) -> Point | None:
    """A warm start on a refined factor: the samples' weights there, or the last point if better."""
    if known is None:
        return None
    columns = factor.factor
    if known.last.gap.primal < known.objective:
        return Point(columns.T @ known.last.weights[:, None], known.last.gap.point.intercept)
    missing = columns.shape[1] - known.start.coef.shape[0]
    return Point(np.vstack([known.start.coef, np.zeros((missing, 1))]), known.start.intercept)


def _joined(before: Fitted | None, now: Fitted) -> Fitted:
    """The better of two, for the work of both."""
    if before is None:
        return now
    best = now if now.model.gap.gap <= before.model.gap.gap else before
    last = now.solution.certificate
    kept = replace(
        best.solution.certificate,
        stop_reason=last.stop_reason,
        because=last.because,
        solver=last.solver,
        n_iter=0,
        n_passes=0.0,
        seconds=0.0,
    )
    solution = replace(best.solution, certificate=kept, status=now.solution.status)
    for part in (before.solution, now.solution):
        solution = with_work(solution, *work_of(part))
    return replace(now, solution=solution, model=best.model)


def work_of(solution: Solution) -> tuple[int, float, float]:
    """Iterations, passes and seconds."""
    done = solution.certificate
    return done.n_iter, done.n_passes, done.seconds


def with_work(solution: Solution, n_iter: int, n_passes: float, seconds: float) -> Solution:
    """The solution, when so much more was done for it."""
    certificate = solution.certificate
    more = replace(
        certificate,
        n_iter=certificate.n_iter + n_iter,
        n_passes=certificate.n_passes + n_passes,
        seconds=certificate.seconds + seconds,
    )
    return replace(solution, certificate=more)


def _cut_of(dual: Array, cut: float) -> Array:
    """The dual point without entries below this share of the largest."""
    return np.where(np.abs(dual) > cut * np.abs(dual).max(), dual, 0.0)


def _share_of_cut(model: Representer, matrix: KernelMatrix, dual: Array, cut: float) -> float:
    """An upper bound on the part of a model's relative gap that cutting its dual point causes.

    Scores change by at most the sum of the cut entries times the largest entry of the kernel, if
    that is small beside the model; otherwise the bound is one.
    """
    sizes = np.abs(dual)
    mass = float(sizes[sizes <= cut * sizes.max()].sum())
    largest = float(np.abs(matrix.diagonal()).max(initial=0.0))
    product = model.scores[:, 0] - model.gap.point.intercept
    length = np.sqrt(max(float(model.weights @ product), 0.0))
    if mass > 0 and model.factor * mass * np.sqrt(largest) >= SLIGHT_CUT * length:
        return np.inf
    share = 2.0 * largest * mass * float(np.abs(model.weights).sum())
    return share * model.gap.relative_gap / model.gap.gap if share > 0 else 0.0


def _told(fitted: Fitted, factor: LowRankFactor) -> Fitted:
    """State in ``because`` that the approximation of the kernel limited the gap, if it did."""
    solution = fitted.solution
    certificate, status = solution.certificate, solution.status
    if certificate.converged and status not in (Status.SETTLED, Status.INTERRUPTED):
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.STALLED if factor.is_complete else Status.RANK_LIMIT
    because = f"{certificate.because}; on a factor of the kernel of rank {factor.rank}"
    certificate = replace(certificate, because=because, stop_reason=status.value)
    return replace(fitted, solution=replace(solution, status=status, certificate=certificate))
