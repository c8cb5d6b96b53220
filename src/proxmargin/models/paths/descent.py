"""The solutions of all strengths of a path, and its early end where the loss is explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import TINY
from proxmargin.data.inputs.parameters import check_number
from proxmargin.functions.traits import Trait
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.fitting import FitContext
from proxmargin.models.paths.chord_path import ChordPath, InnerProducts, JointPath
from proxmargin.models.paths.found import Found
from proxmargin.models.paths.grid import ALPHA, at_strength, problems_of, strength_of
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import null_point
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.types import Array, Estimator
from proxmargin.solvers.loop.report import Solution, Status

LOOSE_TOL = 1e-5  # relative gap above which a path is to choose a strength
FURTHEST = (
    3.0  # step in the reciprocal strength over the last; beyond it there are many breakpoints
)
EXTRAPOLATED = Trait.HINGE | Trait.SINGLE_OUTPUT | Trait.NET
# (template, assembly, grid, k) -> the solutions of problem k, some strengths at a time
PathMethod = Callable[[MarginEstimator, Assembly, Array, int], Iterator[Found]]


def solve_grid(template: MarginEstimator, assembly: Assembly, grid: Array) -> Iterator[list[Found]]:
    """Yield the solutions of every problem, some strengths at a time; end early if interrupted.

    A list has one entry a problem, all for the same strengths. ``template`` has assembled the data;
    ``grid``, (n_strengths,), is from the strongest penalty: each solution is the start of the next.
    """
    shrunk = grid[grid > 0]  # strengths fall to a last one of zero
    method = _method_for(template, assembly, shrunk)
    starts, done = None, 0
    if method is not None:
        for found in _all_problems(method, template, assembly, shrunk):
            yield found
            done += found[0].count
            starts = [partial(one.point, -1, assembly.scale.size) for one in found]
        if done < shrunk.size:
            return
    if done < grid.size:
        yield from _one_by_one(template, assembly, grid[done:], starts)


def _method_for(template: MarginEstimator, assembly: Assembly, grid: Array) -> PathMethod | None:
    """How to solve strengths together; None for single fits."""
    if not (grid.size and _leaves_solver_open(template)):
        return None
    last = problems_of(at_strength(template, grid[-1]), assembly)
    if strength_of(template) is ALPHA and all(map(ChordPath.takes, last)):
        return _by_chord_newton
    if all(map(InnerProducts.takes, last)):
        return partial(_in_chunks, partial(InnerProducts, tol=template.tol))
    if all(map(JointPath.takes, last)):
        return partial(_in_chunks, lambda _: JointPath(template.tol, _polishes(template)))
    return None


def _leaves_solver_open(template: MarginEstimator) -> bool:
    """Whether the model sets nothing that only single fits support: a solver, limits, callbacks."""
    asked = (
        template.max_iter is not None,
        template.time_limit is not None,
        template.callbacks,
        template.solver_options,
        template.solver != "auto",
        template.stopping != "gap",
        template.tol == 0,
    )
    return not any(asked)


def _fitted(
    model: MarginEstimator,
    assembly: Assembly,
    problems: Sequence[Problem],
    starts: Sequence[Point],
) -> list[Solution]:
    """Single fits of the problems of this model; empty if one was interrupted.

    Loose paths in alpha, from which a strength is to be chosen, end at their tolerance, as in
    compiled code: polishing steps, which other fits take after it, would take most of the time.
    """
    design = problems[0].design
    stop = model._bounded(model._started(), design.n_samples, design.n_features)
    stop = replace(stop, polish=_polishes(model))
    context = FitContext(stop)
    solutions = model._solve(replace(assembly, problems=tuple(problems)), starts, context)
    context.guard.has_ended()
    interrupted = any(solution.status is Status.INTERRUPTED for solution in solutions)
    return [] if interrupted else solutions


def _polishes(model: MarginEstimator) -> bool:
    """Whether fits of a path go on to more digits than its tolerance asks for."""
    return strength_of(model) is not ALPHA or model.tol < LOOSE_TOL


def _one_by_one(
    template: MarginEstimator,
    assembly: Assembly,
    grid: Array,
    first: Sequence[Callable[[], Point]] | None = None,
) -> Iterator[list[Found]]:
    """The path as single fits with warm starts; ``first`` make those of the first strength."""
    starts = [
        make() for make in first or [partial(null_point, problem) for problem in assembly.problems]
    ]
    reach = 1.0 / np.maximum(grid, TINY) if strength_of(template).falls else grid
    before = starts
    for k, strength in enumerate(grid):
        model = at_strength(template, strength)
        problems = problems_of(model, assembly)
        solutions = _fitted(model, assembly, problems, starts)
        if not solutions:
            return
        yield _with_weights(model, problems, solutions)
        starts = last = [solution.point for solution in solutions]
        if 0 < k < grid.size - 1:
            at = (float(reach[k - 1]), float(reach[k]), float(reach[k + 1]))
            starts = [extrapolated(*each, at) for each in zip(problems, last, before, strict=True)]
        before = last


def _all_problems(
    method: PathMethod, template: MarginEstimator, assembly: Assembly, grid: Array
) -> Iterator[list[Found]]:
    """All strengths of a problem together, each problem on its own."""
    paths = [method(template, assembly, grid, k) for k in range(len(assembly.problems))]
    ahead = [next(each, None) for each in paths]
    while known := [found for found in ahead if found is not None]:
        if len(known) < len(paths):  # a problem was interrupted
            return
        count = min(found.count for found in known)
        yield [found.part(0, count) for found in known]
        ahead = [
            found.part(count, found.count) if found.count > count else next(each, None)
            for found, each in zip(known, paths, strict=True)
        ]


def _by_chord_newton(
    template: Estimator, assembly: Assembly, grid: Array, k: int
) -> Iterator[Found]:
    """The path of problem k by compiled Newton steps; where these fail, by a single fit."""
    model = at_strength(template, 1.0)
    unit = (assembly.problems if template.alpha == 1 else problems_of(model, assembly))[k]
    path = ChordPath(unit, template.tol)
    l1, l2 = (float(each.max()) * grid for each in (unit.net.l1, unit.net.l2))
    last, at = partial(null_point, unit), 0
    while at < grid.size and not interrupts.pending:
        part = slice(at, at + path.chunk(grid.size - at))
        found = path.solved(l1[part], l2[part])
        if not found.count:
            model = at_strength(template, grid[at])
            fitted = _fitted(model, assembly, [problems_of(model, assembly)[k]], [last()])
            if not fitted:
                return
            path.go_on_from(fitted[0].point, float(l1[at]))
            found = Found.of(fitted[0])
        yield found
        last, at = partial(found.point, -1, unit.design.n_features), at + found.count


def _in_chunks(
    path_of: Callable[[Problem], InnerProducts | JointPath],
    template: MarginEstimator,
    assembly: Assembly,
    grid: Array,
    k: int,
) -> Iterator[Found]:
    """The path of problem k; a strength that is not solved by it is solved by a single fit."""
    path = path_of(assembly.problems[k])
    point, at = null_point(assembly.problems[k]), 0
    while at < grid.size and not interrupts.pending:
        part = grid[at : at + path.chunk(grid.size - at)]
        models = [at_strength(template, strength) for strength in part]
        problems = [problems_of(model, assembly)[k] for model in models]
        solutions = path.solved(problems)
        if interrupts.pending and not solutions:
            return
        if solutions:
            # certificates are scaled to the model's objective, as in single fits
            pairs = zip(models, problems, strict=True)
            scales = [model._objective_scale(problem) for model, problem in pairs]
            solutions = [
                replace(found, certificate=found.certificate.scaled(scale))
                for scale, found in zip(scales, solutions, strict=False)
            ]
        else:
            solutions = _fitted(models[0], assembly, problems[:1], [point])
            if not solutions:
                return
            path.go_on_from(problems[0], solutions[0].point)
        yield from _with_weights(template, problems, solutions)
        point, at = solutions[-1].point, at + len(solutions)


def _with_weights(
    model: MarginEstimator, problems: Sequence[Problem], solutions: Sequence[Solution]
) -> list[Found]:
    """The solutions as `Found`, with the weights of the samples where the model has any."""
    return [
        Found.of(solution, model._weights_of_samples(problem, solution))
        for problem, solution in zip(problems, solutions, strict=False)
    ]


def extrapolated(
    problem: Problem, last: Point, before: Point, at: tuple[float, float, float]
) -> Point:
    """The predictor at the next strength of a path of hinges; ``last`` where it does not apply.

    As long as the samples on the kink of the hinge and the features with a nonzero coefficient stay
    the same, the optimality conditions are linear equations in ``(w, b, c q)``, ``c = 1 / alpha``
    and q the dual point, whose right-hand side is affine in c. So these are piecewise linear in c
    (Hastie, Rosset, Tibshirani and Zhu 2004; Wang, Zhu and Zou 2006, section 3), and the predictor

        w_2 + (c_3 - c_2) / (c_2 - c_1) (w_2 - w_1),

    likewise for b and c q, is exact if there is no breakpoint between ``c_1`` and ``c_3``. Without
    a ridge the coefficients are piecewise constant in c, and the last solution is a better start.

    It does not for losses other than the binary hinge, without a ridge, without dual points, or
    where the next step is more than `FURTHEST` times the last one. ``problem``: of any strength.
    ``last``, ``before``: the solutions at ``c_2`` and ``c_1``. ``at``: ``c_1 < c_2 < c_3``.
    """
    first, second, third = at
    if EXTRAPOLATED not in problem.traits or not problem.penalty.l2 > 0 or not 0 < first < second:
        return last
    step = (third - second) / (second - first)
    if last.dual is None or before.dual is None or not 0 < step <= FURTHEST:
        return last
    coef = last.coef + step * (last.coef - before.coef)
    coef[coef * last.coef <= 0] = 0.0  # a sign would change: the breakpoint at zero comes first
    scaled = second * last.dual
    return Point(
        coef,
        last.intercept + step * (last.intercept - before.intercept),
        (scaled + step * (scaled - first * before.dual)) / third,
    )


# As `fdev` and `mnlam` of glmnet, which compares neighbouring strengths. The explained fraction of
# a hinge is constant between breakpoints, and on a dense grid it rises little from one strength to
# the next: here the strengths that are compared are at least a fixed factor apart.
LEAST_RISE = 1e-5  # relative rise of the explained fraction between the strengths compared
WEAKER = 1.25  # least ratio of these strengths
FEWEST = 5  # strengths before a path may end


class Ending(StrEnum):
    """Why a path has no further strengths."""

    COMPLETE = "complete"
    EXPLAINED = "explained"
    FLAT = "flat"
    FEATURES = "features"
    INTERRUPTED = "interrupted"


class Saturation:
    """The test for the early end of a path, evaluated at each strength.

    A path ends at the explained fraction ``stop_at``, in (0, 1], and before the first model of more
    than ``max_features`` features; with None never.
    """

    def __init__(
        self,
        template: MarginEstimator,
        assembly: Assembly,
        stop_at: float | None,
        max_features: int | None,
    ) -> None:
        check_number("stop_at", stop_at, low=0.0, low_open=True, high=1.0, optional=True)
        check_number("max_features", max_features, low=0, integer=True, optional=True)
        self.template, self.stop_at, self.max_features = template, stop_at, max_features
        self.units = () if stop_at is None else _at_strength_one(template, assembly)
        self.count = 0
        self.marked: tuple[float, float] | None = None  # a strength and its explained fraction
        self.null = 0.0 if stop_at is None else sum(map(_null_loss, assembly.problems))

    def ending(self, strengths: Array, found: Sequence[Found]) -> tuple[int, Ending | None]:
        """The number of strengths up to the end of the path, and the reason; all and None if none.

        Must be called for all strengths in order, with the solutions of each problem at these.
        """
        kept, ended = strengths.size, None
        if self.max_features is not None:
            over = np.flatnonzero(_counts(found) > self.max_features)
            kept, ended = (int(over[0]), Ending.FEATURES) if over.size else (kept, None)
        if self.stop_at is not None:
            explained = 1.0 - losses(self.units, self.template, strengths, found) / self.null
            for k, (strength, share) in enumerate(zip(strengths, explained[:kept], strict=False)):
                resolved = sum(each.certify(k).relative_gap * abs(each.primal[k]) for each in found)
                self.count += 1
                if share >= self.stop_at:
                    return k + 1, Ending.EXPLAINED
                if self._is_flat(float(strength), float(share), resolved / self.null):
                    return k + 1, Ending.FLAT
        return kept, ended

    def _is_flat(self, strength: float, explained: float, resolved: float) -> bool:
        """Whether the explained fraction ``f`` has stopped rising.

        ``f`` is compared with its value ``f_0`` at a marked strength, once the penalty is
        weaker by the factor `WEAKER`: flat is ``f - f_0 < LEAST_RISE f``. Then the mark moves to
        this strength. A fraction within ``resolved``, the sum of the duality gaps over the null
        loss, may be all error: it is neither compared nor marked.
        """
        if explained <= resolved:
            return False
        if self.marked is None:
            self.marked = strength, explained
            return False
        before, marked = self.marked
        if max(before, strength) < WEAKER * min(before, strength):
            return False
        self.marked = strength, explained
        return self.count >= FEWEST and explained - marked < LEAST_RISE * explained


def explained(
    template: MarginEstimator, assembly: Assembly, grid: Array, parts: Sequence[Sequence[Found]]
) -> Array:
    """``1 - loss / loss of the null model`` at each strength; for a likelihood, glmnet's fraction
    of the null deviance. NaN where features without a penalty explain everything.

    The losses are the objectives less the penalties, which takes no pass over the data.
    """
    starts = np.cumsum([0, *(part[0].count for part in parts)])
    units = _at_strength_one(template, assembly)
    chunks = [
        losses(units, template, grid[first : first + part[0].count], part)
        for first, part in zip(starts, parts, strict=False)
    ]
    total = np.concatenate([np.empty(0), *chunks])
    is_null = bool(total.size) and not any(found.starts[1] for found in parts[0])
    null = float(total[0]) if is_null else sum(map(_null_loss, assembly.problems))
    return 1.0 - total / null if null > 0 else np.full(total.size, np.nan)


def _at_strength_one(template: MarginEstimator, assembly: Assembly) -> tuple[Problem, ...]:
    return problems_of(at_strength(template, 1.0), assembly)


def losses(
    units: Sequence[Problem], template: MarginEstimator, strengths: Array, found: Sequence[Found]
) -> Array:
    """The loss at each strength, (n_strengths,): the sum over the problems, which are ``units`` at
    a strength of one."""
    total = np.zeros(strengths.size)
    times = strengths if strength_of(template).falls else 1.0 / strengths
    for unit, one in zip(units, found, strict=True):
        total += one.primal
        if unit.intercept.l2 > 0:
            total -= [unit.intercept.value(row) for row in one.intercepts]
        if Trait.NET in unit.penalty.traits:
            l1, l2 = unit.penalty.l1, unit.penalty.l2
            if Trait.UNIFORM_NET not in unit.penalty.traits:
                l1, l2 = unit.net.l1[one.features], unit.net.l2[one.features]
            sizes = 0.5 * l2 * np.einsum("ij,ij->i", one.coef, one.coef)
            if np.any(l1):
                sizes += l1 * np.abs(one.coef).sum(axis=1)
            total -= times * np.diff(np.concatenate([[0.0], np.cumsum(sizes)])[one.starts])
        else:
            points = (one.point(k, unit.design.n_features) for k in range(one.count))
            total -= times * [unit.penalty.value(point.coef) for point in points]
    return total


def _counts(found: Sequence[Found]) -> NDArray[np.intp]:
    """The features of each model, (n_strengths,), with a nonzero coefficient in any problem."""
    of_each = [np.split(one.features, one.starts[1:-1]) for one in found]
    return np.array([np.unique(np.concatenate(each)).size for each in zip(*of_each, strict=True)])


def _null_loss(problem: Problem) -> float:
    null = null_point(problem)
    return problem.loss.value(problem.design.scores(null.coef) + null.intercept)
