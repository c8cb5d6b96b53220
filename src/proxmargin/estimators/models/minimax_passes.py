"""The minimax models on data in blocks of rows: solved in class moments, certified by one pass.

MM-FDA and MM-MPM depend on the data through the mean and the covariance of each class alone. One
pass forms these for all classes (`class_moments`); a few rows in memory that have the same moments
then take the place of the data, for every solver and for kappa_max. What rounding has done to the
moments need not be known: another pass computes the scores of the data with the coefficients found,
by compensated sums, and the products of the data with the gradient of the loss at these scores
(`answered`). The gap that is published is that of the data themselves, with its rounding; the same
scores give the intercept of least training error and the weights of the samples. Where the gap
misses the tolerance (features that depend on each other lose digits in the moments), the fit goes
on with the data as in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proxmargin.certificates.certify import certify
from proxmargin.certificates.gap import Gap
from proxmargin.designs import DenseDesign, Design, standardized
from proxmargin.designs.blocks.answered import Answered, PassRequest, answered
from proxmargin.designs.blocks.class_moments import ClassMoments, class_moments, rows_with
from proxmargin.estimators.assembly import Assembly, each_class
from proxmargin.inputs.targets import Targets
from proxmargin.loop.outcome import Solution, Status
from proxmargin.loop.stopping import Stop
from proxmargin.losses import MinimaxFisher, MinimaxProbability
from proxmargin.problem import Point, Problem

__all__ = [
    "CertifiedFits",
    "Summary",
    "certified",
    "continued",
    "in_moments",
    "know_moments",
    "solving",
    "summary",
    "unmet",
]

Array = NDArray[np.float64]

MOMENT_TOLERANCE = 0.5  # of the solver, over that of the fit: leaves room for rounding
PASSES = 2.0  # over the data: moments, and certificates
SMALLEST_DIRECTION = 1e-12  # singular value over the largest one, below which it is rounding
ROUNDED = (Status.STALLED, Status.ROUNDED, Status.UNBALANCED)


class Summary(NamedTuple):
    """A few samples with the moments of two groups of the data, up to a common shift.

    Attributes
    ----------
    design : Design
    signs, shares : (n_samples,)
    """

    design: Design
    signs: Array
    shares: Array


class CertifiedFits(NamedTuple):
    """Problems on the data, which answer for their coefficients without a pass, and solutions."""

    problems: tuple[Problem, ...]
    solutions: list[Solution]


def know_moments(design: Design, targets: Targets) -> ClassMoments | None:
    """The moments of the classes, found once by a pass; None where they are not formed."""
    return class_moments(design, targets.codes, targets.shares, targets.classes.size)


def summary(design: Design, targets: Targets, positive: int) -> Summary | None:
    """The samples in place of the data, for one class against all others."""
    moments = know_moments(design, targets)
    if moments is None:
        return None
    others = [k for k in range(targets.classes.size) if k != positive]
    groups = [moments.together([positive]), moments.together(others)]
    weights = np.array([weight for weight, _, _ in groups]) / float(moments.weights.sum())
    middle = sum(weight * mean for weight, (_, mean, _) in zip(weights, groups, strict=True))
    rows = [rows_with(mean - middle, covariance) for _, mean, covariance in groups]
    constant = np.isinf(standardized(design, targets.shares).scale)
    for part in rows:
        part[:, constant] = 0.0  # the moments of the others are known to more than their rounding
    sizes = [len(part) for part in rows]
    shares = np.repeat(weights / sizes, sizes)
    return Summary(DenseDesign(np.vstack(rows)), np.repeat([1.0, -1.0], sizes), shares)


def in_moments(assembly: Assembly) -> Assembly | None:
    """The same problems on samples with the same moments, if there are some."""
    targets, problems = assembly.targets, []
    for positive, problem in zip(each_class(targets), assembly.problems, strict=True):
        loss, known = problem.loss, summary(problem.design, targets, positive)
        if known is None or not isinstance(loss, MinimaxFisher | MinimaxProbability):
            return None
        its = type(loss)(known.signs, known.shares, loss.kappa, loss.sample_count)
        problems.append(replace(problem, loss=its, design=known.design))
    return replace(assembly, problems=tuple(problems))


def solving(stop: Stop) -> Stop:
    """The limits of the solver in moments."""
    return stop if stop.rule is not None else replace(stop, tol=MOMENT_TOLERANCE * stop.tol)


def certified(
    assembly: Assembly, short: Assembly, solutions: Sequence[Solution], tol: float
) -> CertifiedFits:
    """The solutions in moments (``short``), certified on the data of ``assembly`` by one pass."""
    began, targets = perf_counter(), assembly.targets
    moments = know_moments(assembly.problems[0].design, targets)
    assert moments is not None
    asked = [
        _asked(positive, problem, solution, tol)
        for positive, problem, solution in zip(
            each_class(targets), short.problems, solutions, strict=True
        )
    ]
    codes, shares, count = targets.codes, targets.shares, targets.classes.size
    found = answered(assembly.problems[0].design, codes, shares, count, asked)
    problems = tuple(
        replace(problem, design=one.design)
        for problem, one in zip(assembly.problems, found, strict=True)
    )
    gaps = [_gap(*each, tol) for each in zip(problems, asked, found, strict=True)]
    each = (moments.seconds + perf_counter() - began) / len(gaps)
    told = [
        _told(solution, gap, tol, PASSES / len(gaps), each)
        for solution, gap in zip(solutions, gaps, strict=True)
    ]
    return CertifiedFits(problems, told)


def _asked(positive: int, problem: Problem, solution: Solution, tol: float) -> PassRequest:
    """What the pass is to find for a solution in moments.

    The dual point is the gradient of the loss where that proves the tolerance. But where all
    samples of a class have the same score the loss has a kink, and the dual point of the solver is
    far from any gradient: then it is expressed by the scores of other coefficients in each class.
    """
    form, design, coef = _loss(problem).form, problem.design, solution.point.coef
    by_gradient = certify(problem, solution.point._replace(dual=None))
    if by_gradient.relative_gap <= max(MOMENT_TOLERANCE * tol, 2.0 * solution.gap.relative_gap):
        return PassRequest(coef[:, 0], positive, form.means(design.scores(coef)[:, 0]))
    rows = design.dense_columns(np.arange(design.n_features))
    u, found = form.coordinates(solution.gap.dual_point[:, 0]), []
    for one in form.classes:
        roots = form.roots[one]
        centred = roots[:, None] * (rows[one] - roots**2 @ rows[one])
        found.append(np.linalg.lstsq(centred, u[one], rcond=SMALLEST_DIRECTION)[0])
    steering = np.column_stack(found)
    levels = np.diag(np.array([form.means(each) for each in design.scores(steering).T]))
    return PassRequest(coef[:, 0], positive, levels, steering)


def _gap(problem: Problem, asked: PassRequest, found: Answered, tol: float) -> Gap:
    """The gap on the data, which answer without a pass."""
    loss, intercept = _loss(problem), np.zeros(1)
    if asked.steering is None:  # the loss and its gradient are invariant to the levels
        _, dual = loss.value_and_gradient(found.steered[:, None])
    else:
        dual = loss.form.dual_point(loss.form.deviations(found.steered))[:, None]
    if problem.fits_intercept:  # centres the scores, to which the loss is invariant
        mean, _ = problem.design.mean_and_variance(loss.shares)
        intercept[0] = -float(mean @ asked.coef)
    return certify(problem, Point(asked.coef[:, None], intercept), dual=dual, tol=tol)


def _loss(problem: Problem) -> MinimaxFisher | MinimaxProbability:
    assert isinstance(problem.loss, MinimaxFisher | MinimaxProbability)
    return problem.loss


def unmet(solution: Solution) -> bool:
    """Whether a solution that was certified on the data missed the tolerance by rounding alone."""
    return not solution.certificate.converged and solution.status in ROUNDED


def continued(first: Solution, second: Solution) -> Solution:
    """The solution on the data that followed the one in moments, with the passes of both."""
    done, before = second.certificate, first.certificate
    passes, spent = done.n_passes + before.n_passes, done.seconds + before.seconds
    return replace(second, certificate=replace(done, n_passes=passes, seconds=spent))


def _told(solution: Solution, gap: Gap, tol: float, passes: float, seconds: float) -> Solution:
    """The solution with its gap on the data, and with these passes and seconds."""
    status, met, reason = solution.status, gap.relative_gap <= tol, solution.certificate.stop_reason
    if status not in (Status.INTERRUPTED, Status.RULE_MET):
        unmet = Status.STALLED if status is Status.CONVERGED else status
        status = Status.CONVERGED if met else unmet
        reason = status.value
    certificate = replace(
        solution.certificate,
        primal=gap.primal,
        dual=gap.dual,
        gap=gap.gap,
        relative_gap=gap.relative_gap,
        kkt_residual=gap.kkt_residual,
        converged=bool(met),
        stop_reason=reason,
        n_passes=passes,
        seconds=solution.certificate.seconds + seconds,
    )
    return Solution(gap.point, gap, status, certificate, None)
