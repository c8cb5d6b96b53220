"""Kernel models by low-rank factors that are refined until the exact certificate is met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import perf_counter

import numpy as np

from proxmargin.compiled.clock import clock
from proxmargin.data.designs import DenseDesign
from proxmargin.data.kernels.low_rank import LowRankFactor, factorise
from proxmargin.data.kernels.matrix import KernelMatrix
from proxmargin.functions.traits import Trait
from proxmargin.optimality.certificates.representer import (
    Representer,
    ScoredGap,
    represented_by_few,
    represented_together,
)
from proxmargin.optimality.problem import Point, Problem, is_interior
from proxmargin.runtime.threads import operations_in
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.loop.solver import Stop

# the factor G (n x r)
FIRST_RANK = 1000  # columns of the first factor
FIRST_WORK = 5e10  # largest n r^2 of the first factor
MAX_WORK = 4e11  # largest n r^2 of any factor
MAX_FACTOR_BYTES = 4e9  # of its float64 entries
# ratio of the gap of a round to the gap of the round before
SLOW_REDUCTION = 0.1  # above it the rank is doubled
USELESS_REDUCTION = 0.7  # above it no further round is tried at the largest rank
ALL_SHARE = 0.5  # rank over samples, above which the exact kernel is cheaper than a factor
FAR_GAP = 0.03  # relative gap above which the rank is doubled in any case
FLAT_SHARE = 0.3  # of the trace that a factor leaves, above which one of twice the rank is as far
FIRST_COLUMNS = 0.25  # share of the first factor's columns whose solution is the start
# estimate of the time of a product with the kernel
TIMED_ROWS = 32  # rows that are computed and timed
TIMINGS = 3  # repetitions, of which the median counts
# shares of the remaining time
PRODUCT_TIME = 0.4  # above which one product with the kernel is too expensive
FACTOR_TIME = 0.3  # of the first factor
FACTOR_PRODUCT_TIME = 0.05  # of n r^2 multiplications with a factor, for each problem
SUPPORT_CUT = 1e-9  # weight of a support vector over the largest one, below which it is rounding

Solve = Callable[[Sequence[Problem], Sequence[Point | None], Stop], list[Solution]]


@dataclass(frozen=True, eq=False)
class RoundResult:
    """The solution and the models of one problem after a round."""

    solution: Solution  # certified for the exact kernel, with the work of all rounds
    model: Representer  # the best model so far, which belongs to the solution
    last: Representer  # the model of the last round
    start: Point  # the solution of the last round on its factor
    # its objective on the factor, which its model on the pivots also has with the exact kernel
    objective: float
    exact: bool = False  # the last solution was found with the exact kernel

    @property
    def is_done(self) -> bool:
        settled = self.solution.status in (Status.RULE_MET, Status.INTERRUPTED)
        return settled or self.solution.certificate.converged


class Meter:
    """Passes over a kernel matrix and seconds since it was created."""

    def __init__(self, matrix: KernelMatrix) -> None:
        self.counter = matrix.counter
        self.passes, self.started = self.counter.passes, perf_counter()

    def read(self, parts: int) -> tuple[float, float]:
        """Passes and seconds for each of so many problems."""
        passes, seconds = self.counter.passes - self.passes, perf_counter() - self.started
        return passes / parts, seconds / parts


@dataclass(frozen=True, eq=False)
class Rounds:
    """Solve on ``K ~ G G'``, certify for K, and refine G while the gap is too large.

    A certificate costs the product of K with the weights of the model; that product also makes the
    factor exact at these weights. The residual ``K - G G'`` then acts only on the change of the
    model between two rounds, so that the gap falls by orders of magnitude a round unless the
    residual is large. If the gap falls slowly, the rank is doubled too.
    """

    matrix: KernelMatrix
    problems: Sequence[Problem]  # with the exact kernel
    solve: Solve  # maps problems on a factor, starts and limits to solutions
    scale: Callable[[Problem], float]  # of a problem: the factor on its objective in certificates
    stop: Stop  # limits of the fit, whose time has started
    rank: int | None = None  # largest number of columns of a factor
    # `solve` for the problems with the exact kernel: used once, in place of a factor whose rank
    # would be more than half the number of samples, or, of a sparse dual or a flat spectrum, beyond
    # the first one; or after the last factor
    solve_exactly: Solve | None = None

    def run(self) -> list[RoundResult]:
        """The best solution of each problem."""
        meter = Meter(self.matrix)
        if self.product > PRODUCT_TIME * (self.stop.deadline - clock()):
            return self._single_round(meter)
        end = self.stop.deadline - self.product
        factor = self.first(FIRST_RANK, end)
        found = self._round(factor, [None] * len(self.problems), meter, end)
        before, exact = np.inf, self.solve_exactly is None
        while True:
            unmet = [one.last.gap.relative_gap for one in found if not one.is_done]
            meter, gap = Meter(self.matrix), max(unmet, default=0.0)
            if before == np.inf and not exact and self._needs_all(factor, gap):
                found, exact = self._round_on_kernel(found, end), True
            finer = self._refined_factor(factor, found, gap, before, end)
            if finer.rank == factor.rank:
                if not (exact or factor.is_complete):
                    found = self._round_on_kernel(found, end)
                return [_with_rank_status(one, factor) for one in found]
            factor, before = finer, gap
            found = self._round(factor, found, meter, end)

    @cached_property
    def product(self) -> float:
        """Estimated seconds of a product with the kernel; zero without a deadline."""
        if not np.isfinite(self.stop.deadline):
            return 0.0
        count = min(TIMED_ROWS, self.matrix.n_samples)
        times = []
        for _ in range(TIMINGS):
            started = clock()
            self.matrix.block(np.arange(count), np.arange(self.matrix.n_samples))
            times.append(clock() - started)
        # symmetry halves the kernel values
        return 0.5 * float(np.median(times)) * self.matrix.n_samples / count

    def first(self, rank: int, end: float) -> LowRankFactor:
        """A factor of at most this rank, within a share of the time until ``end``."""
        now = clock()
        part = now + FACTOR_TIME * max(end - now, 0.0)
        most = min(rank, self._max_rank(FIRST_WORK))
        return factorise(self.matrix, rank=most, deadline=part)

    def _single_round(self, meter: Meter) -> list[RoundResult]:
        """A single round; a product with the kernel only if there is time for it at the end."""
        factor, count = self.first(FIRST_RANK, self.stop.deadline), len(self.problems)
        solutions = self.solve(on_factor(self.problems, factor), [None] * count, self.stop)
        if self.product <= self.stop.deadline - clock():
            models = self._models(self.problems, solutions)
        else:
            # as weights of the pivots, which need no other columns of the kernel
            pairs = zip(self.problems, solutions, strict=True)
            models = [self._model_of_pivots(problem, factor, one) for problem, one in pairs]
        work = meter.read(count)
        found = []
        for problem, solution, model in zip(self.problems, solutions, models, strict=True):
            certified = _with_work(self._with_kernel_certificate(problem, solution, model), *work)
            found.append(RoundResult(certified, model, model, solution.point, solution.gap.primal))
        return [_with_rank_status(one, factor) for one in found]

    def _model_of_pivots(
        self, problem: Problem, factor: LowRankFactor, solution: Solution
    ) -> Representer:
        weights = factor.at_pivots(solution.point.coef[: factor.rank, 0])
        dual = solution.gap.dual_point
        square = factor.square(dual[:, 0])
        return represented_by_few(problem, self.matrix, weights, dual, square)

    def _or_of_pivots(
        self,
        factor: LowRankFactor,
        todo: Sequence[int],
        solutions: Sequence[Solution],
        models: Sequence[Representer],
    ) -> list[Representer]:
        """The models, or, where the gap is too large and theirs is smaller, those of the pivots. Of
        a kernel of low numerical rank the weights of a dual point largely cancel: its coefficients
        are further from the optimum than those that the solver found on the factor."""
        tol, chosen = self.stop.tol, list(models)
        if not factor.is_complete or factor.pivots.size < factor.rank:
            return chosen
        for place, (k, solution) in enumerate(zip(todo, solutions, strict=True)):
            before = models[place].gap
            if before.relative_gap <= tol or clock() >= self.stop.deadline:
                continue
            few = self._model_of_pivots(self.problems[k], factor, solution)
            if few.gap.gap < before.gap:
                chosen[place] = few
        return chosen

    def _max_rank(self, operations: float) -> int:
        """The largest rank with n r^2 <= ``operations`` that fits in memory and the time left."""
        n = self.matrix.n_samples
        left = max(self.stop.deadline - clock(), 0.0) / len(self.problems)
        operations = min(operations, operations_in(FACTOR_PRODUCT_TIME * left))
        affordable = min(int(np.sqrt(operations / n)), int(MAX_FACTOR_BYTES / (8 * n)))
        return min(n, max(affordable, 1) if self.rank is None else int(self.rank))

    def _round(
        self,
        factor: LowRankFactor,
        known: Sequence[RoundResult | None],
        meter: Meter,
        end: float,
    ) -> list[RoundResult]:
        """Solve the unfinished problems on this factor; ``meter`` has its cost."""
        todo = [k for k, one in enumerate(known) if one is None or not one.is_done]
        shared = meter.read(len(todo))
        solutions = self._solved(
            [self.problems[k] for k in todo],
            factor,
            [known[k] for k in todo],
            self._remaining_limits(known, end),
        )
        found = list(known)
        meter = Meter(self.matrix)
        models = self._models([self.problems[k] for k in todo], solutions)
        models = self._or_of_pivots(factor, todo, solutions, models)
        work = meter.read(len(todo))
        for k, solution, model in zip(todo, solutions, models, strict=True):
            certified = self._with_kernel_certificate(self.problems[k], solution, model)
            certified = _with_work(_with_work(certified, *shared), *work)
            now = RoundResult(certified, model, model, solution.point, solution.gap.primal)
            found[k] = _better_with_all_work(known[k], now)
        return [one for one in found if one is not None]

    def _solved(
        self,
        problems: Sequence[Problem],
        factor: LowRankFactor,
        known: Sequence[RoundResult | None],
        limits: Stop,
    ) -> list[Solution]:
        """The solutions on this factor, from the known ones. The first, of smooth problems, start
        from rough ones on its first columns, whose Hessians take a sixteenth of the time."""
        starts = [_warm_start(factor, one) for one in known]
        rank = int(FIRST_COLUMNS * factor.rank)
        smooth = all(Trait.SMOOTH in problem.traits for problem in problems)
        low = rank > 0 and factor.rank <= ALL_SHARE * self.matrix.n_samples
        if any(known) or limits.max_iter is not None or not (smooth and low):
            return self.solve(on_factor(problems, factor), starts, limits)
        first = replace(factor, factor=np.ascontiguousarray(factor.factor[:, :rank]), rank=rank)
        rough = self.solve(on_factor(problems, first), starts, limits.rough(FAR_GAP))
        starts = [_padded(one.point, factor.rank) for one in rough]
        found = self.solve(on_factor(problems, factor), starts, limits)
        pairs = zip(found, (one.certificate for one in rough), strict=True)
        return [_with_work(one, b.n_passes, b.seconds, b.n_iter) for one, b in pairs]

    def _needs_all(self, factor: LowRankFactor, gap: float) -> bool:
        """Whether the exact kernel is to take the place of a factor of large rank."""
        large = 2 * factor.rank > ALL_SHARE * self.matrix.n_samples
        sparse = all(problem.loss.box is not None for problem in self.problems)
        flat = factor.residual.sum() > FLAT_SHARE * self.matrix.diagonal().sum()
        return gap > FAR_GAP and bool(large or sparse or flat)

    def _round_on_kernel(self, known: list[RoundResult], end: float) -> list[RoundResult]:
        """Solve the unfinished problems with the exact kernel, from the models so far."""
        assert self.solve_exactly is not None
        todo = [k for k, one in enumerate(known) if not one.is_done]
        if not todo or self._has_ended(known, end):
            return known
        solutions = self.solve_exactly(
            [self.problems[k] for k in todo],
            [known[k].last.gap.point for k in todo],
            self._remaining_limits(known, end),
        )
        found = known.copy()
        for k, solution in zip(todo, solutions, strict=True):
            model = model_of(solution)
            now = replace(known[k], solution=solution, model=model, last=model, exact=True)
            found[k] = _better_with_all_work(known[k], now)
        return found

    def _remaining_limits(self, known: Sequence[RoundResult | None], end: float) -> Stop:
        """The limits of the next round."""
        most = self.stop.max_iter
        if most is not None:
            done = max(0 if one is None else one.solution.certificate.n_iter for one in known)
            most = max(most - done, 0)
        return replace(self.stop, max_iter=most, time_limit=None, deadline=end)

    def _models(
        self, problems: Sequence[Problem], solutions: Sequence[Solution]
    ) -> list[Representer]:
        """The kernel models of solutions on a factor, certified by one product with the kernel."""
        duals = [
            without_rounding(problem, one.gap.dual_point)
            for problem, one in zip(problems, solutions, strict=True)
        ]
        return represented_together(problems, self.matrix, duals, tol=self.stop.tol)

    def _with_kernel_certificate(
        self, problem: Problem, solution: Solution, model: Representer
    ) -> Solution:
        """The solution with the certificate of its kernel model, for the exact kernel."""
        gap, met = model.gap, bool(model.gap.relative_gap <= self.stop.tol)
        stated = replace(solution.certificate, **gap.numbers, converged=met)
        return replace(solution, gap=gap, certificate=stated.scaled(self.scale(problem)))

    def _has_ended(self, known: Sequence[RoundResult], end: float) -> bool:
        """Whether the limits or a callback allow no further round."""
        stopped = any(one.solution.status is Status.INTERRUPTED for one in known)
        return stopped or self._remaining_limits(known, end).max_iter == 0 or clock() >= end

    def _refined_factor(
        self,
        factor: LowRankFactor,
        found: Sequence[RoundResult],
        gap: float,
        before: float,
        end: float,
    ) -> LowRankFactor:
        """The refined factor; the same one if refining is useless or the limits forbid it."""
        todo = [one for one in found if not one.is_done]
        most = self._max_rank(MAX_WORK)
        slow = gap > min(SLOW_REDUCTION * before, FAR_GAP)
        useless = gap > USELESS_REDUCTION * before and factor.rank >= most
        if not todo or useless or self._has_ended(found, end):
            return factor
        weights = np.column_stack([one.last.weights for one in todo])
        products = np.column_stack(
            [one.last.scores[:, 0] - one.last.gap.point.intercept for one in todo]
        )
        room = most - factor.rank
        finer = factor.along(weights[:, :room], products[:, :room])
        return finer.extend(min(2 * finer.rank, most), deadline=end) if slow else finer


def on_factor(problems: Sequence[Problem], factor: LowRankFactor) -> list[Problem]:
    """The problems with the factor as their design."""
    # a zero kernel has rank zero, but a design needs a column
    columns = factor.factor if factor.rank else np.zeros((factor.matrix.n_samples, 1))
    design = DenseDesign(columns)
    return [replace(problem, design=design) for problem in problems]


def model_of(solution: Solution) -> Representer:
    """The kernel model of a solution that `certify_represented` certified."""
    gap = solution.gap
    assert isinstance(gap, ScoredGap)
    return Representer(gap.point.coef[:, 0], gap.scores, gap)


def _warm_start(factor: LowRankFactor, known: RoundResult | None) -> Point | None:
    """A warm start on a refined factor: the last model, or the last point if that is better."""
    if known is None:
        return None
    columns = factor.factor
    if known.last.gap.primal < known.objective:
        return Point(columns.T @ known.last.weights[:, None], known.last.gap.point.intercept)
    return _padded(known.start, factor.rank)


def _padded(point: Point, rank: int) -> Point:
    """The point with coefficients of zero for further columns of a factor, ``rank`` in all."""
    missing = np.zeros((rank - len(point.coef), 1))
    return Point(np.vstack([point.coef, missing]), point.intercept)


def _better_with_all_work(before: RoundResult | None, now: RoundResult) -> RoundResult:
    """The better of two results, with the work of both."""
    if before is None:
        return now
    best = now if now.model.gap.gap <= before.model.gap.gap else before
    done, last = before.solution.certificate, now.solution.certificate
    kept = replace(
        best.solution.certificate,
        stop_reason=last.stop_reason,
        because=last.because,
        solver=last.solver,
        n_iter=done.n_iter + last.n_iter,
        n_passes=done.n_passes + last.n_passes,
        seconds=done.seconds + last.seconds,
    )
    solution = replace(best.solution, certificate=kept, status=now.solution.status)
    return replace(now, solution=solution, model=best.model)


def _with_work(solution: Solution, n_passes: float, seconds: float, n_iter: int = 0) -> Solution:
    """The solution with this work added to its certificate."""
    known = solution.certificate
    work = replace(
        known,
        n_iter=known.n_iter + n_iter,
        n_passes=known.n_passes + n_passes,
        seconds=known.seconds + seconds,
    )
    return replace(solution, certificate=work)


def without_rounding(problem: Problem, dual: Array) -> Array:
    """The dual point of a solver; where it has no exact zeros, with zeros for tiny entries."""
    if not is_interior(problem, dual):
        return dual
    return np.where(np.abs(dual) > SUPPORT_CUT * np.abs(dual).max(), dual, 0.0)


def _with_rank_status(fitted: RoundResult, factor: LowRankFactor) -> RoundResult:
    """The result, with RANK_LIMIT as its status if the rank of the factor limited the gap."""
    if fitted.exact:
        return fitted
    solution = fitted.solution
    certificate, status = solution.certificate, solution.status
    if certificate.converged and status not in (Status.RULE_MET, Status.INTERRUPTED):
        status = Status.CONVERGED
    elif status is Status.CONVERGED:
        status = Status.STALLED if factor.is_complete else Status.RANK_LIMIT
    because = f"{certificate.because}; on a factor of the kernel of rank {factor.rank}"
    certificate = replace(certificate, because=because, stop_reason=status.value)
    return replace(fitted, solution=replace(solution, status=status, certificate=certificate))
