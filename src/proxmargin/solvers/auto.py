"""``solver='auto'``: a table of rules, first match wins, each with its reason.

The rules compare the named solvers on the data sets of ``benchmarks/``; ask `choose` (or read
``certificate_.because``) which rule decided. Where the solver of a rule gives up, that of the next
one goes on (`solve`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proxmargin.certificate import Gap, certify
from proxmargin.compiled.clock import clock
from proxmargin.designs.kernel_design import KernelDesign
from proxmargin.minimize import Certify, Report, minimize
from proxmargin.outcome import Solution, Status
from proxmargin.pace import affordable
from proxmargin.penalties.ball import Ball
from proxmargin.problem import Point, Problem
from proxmargin.solvers.base import Solver, State, UnsuitableSolverError
from proxmargin.solvers.box_program import LARGEST
from proxmargin.solvers.names import SOLVERS
from proxmargin.stopping import Stop
from proxmargin.traits import Trait

__all__ = ["KERNEL_RULES", "RULES", "Choice", "Facts", "Rule", "choose", "solve"]

# a gap of so many times the rounding in it is the least that any solver can prove
LEAST_GAP = 4.0
# and so many times what the last digits of its dual point cost, the least that is worth more work
GRAINS = 30.0
# conditions of optimality that are off by this share of what slopes can be hold but for rounding
STATIONARY = 1e-13
# an objective of this share of that of no coefficients is all but zero
ALL_BUT_ZERO = 1e-8
# features for each sample from which a working set of them pays for exact hinges of all classes
VERY_WIDE = 50
# samples for each feature from which Newton steps for the hinge need less than interior points do
TALL = 8
# the largest entry of a feature over that of another, up to which they do
EVEN = 1e8
# wrong classes of all samples up to which the simplex method is faster than Newton's: of dense
# data, and of data with so small a share of entries that are not zero; and up to which it is
# faster than Newton's on the dual, which is what there is for the largest entries of groups
FEW_PIECES, FEW_SPARSE_PIECES, SPARSE, SOME_PIECES = 300, 50_000, 0.05, 2000
# bytes of a matrix that there is room for beside any data
ROOMY = 64_000_000
# features from which a working set of them pays for losses of each class by itself
MANY_FEATURES = 400
# coordinates of the dual from which primal-dual steps lead to where Newton's steps are few
MANY_DUAL_POINTS = 1000


class Facts:
    """What the rules may ask about a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @property
    def single(self) -> bool:
        """One column of scores."""
        return self.problem.loss.n_outputs == 1

    @property
    def smooth(self) -> bool:
        """The loss has a Lipschitz continuous gradient."""
        return Trait.SMOOTH in self.problem.traits

    @property
    def wide(self) -> bool:
        """More features than samples."""
        return self.problem.design.n_features > self.problem.design.n_samples

    @property
    def tall(self) -> bool:
        """Many more samples than features."""
        return self.problem.design.n_samples >= TALL * self.problem.design.n_features

    @property
    def even(self) -> bool:
        """Units of the features that are not too many orders apart for steps without factors."""
        design = self.problem.design
        sizes = design.remembered("largest", design.largest)
        return float(sizes.max(initial=0.0)) <= EVEN * float(sizes[sizes > 0].min(initial=np.inf))

    @property
    def very_wide(self) -> bool:
        """Many more features than samples."""
        return self.problem.design.n_features > VERY_WIDE * self.problem.design.n_samples

    @property
    def small_systems(self) -> bool:
        """A matrix over features or samples, whichever are fewer, is no larger than the data.

        Or than what there is room for beside any data; sparse data can be much smaller.
        """
        design = self.problem.design
        side = min(design.n_samples, design.n_features)
        return 8 * side**2 <= max(ROOMY, design.nbytes)

    @property
    def outgrown(self) -> bool:
        """Systems that could be solved are larger than the data, with a ridge and no l1 part."""
        design, penalty = self.problem.design, self.problem.penalty
        solvable = min(design.n_samples, design.n_features) <= LARGEST
        return solvable and not self.small_systems and penalty.l1 == 0 < penalty.l2

    @property
    def net(self) -> bool:
        """A penalty with an l1 part and a ridge."""
        return self.problem.penalty.l1 > 0 and self.problem.penalty.l2 > 0

    @property
    def flat_ball(self) -> bool:
        """A ball that is no rounder than a Euclidean one: there first-order steps are slow."""
        return isinstance(self.problem.penalty, Ball) and self.problem.penalty.p >= 2

    @property
    def coupled(self) -> bool:
        """A loss that is no sum over the columns of scores."""
        return Trait.OUTPUTWISE not in self.problem.loss.traits

    @property
    def many_features(self) -> bool:
        """So many of them that a solution with few is worth looking for by itself."""
        return self.problem.design.n_features >= MANY_FEATURES

    def pieces_within(self, most: int) -> bool:
        """A loss with a kink for each wrong class has so many of them at most."""
        wrong = max(self.problem.loss.n_outputs - 1, 1)
        return self.problem.design.n_samples * wrong <= most

    @property
    def few_pieces(self) -> bool:
        """So few of them that the simplex method is the fastest."""
        sparse = self.problem.design.density <= SPARSE
        return self.pieces_within(FEW_SPARSE_PIECES if sparse else FEW_PIECES)

    @property
    def many_dual_points(self) -> bool:
        """So many of them that Newton steps on the dual pay near the solution only."""
        return int(np.count_nonzero(self.problem.loss.dual_support)) >= MANY_DUAL_POINTS


@dataclass(frozen=True)
class Rule:
    """Use the solver called ``use`` when ``when`` holds, ``because`` of this."""

    when: Callable[[Facts], bool]
    use: str
    because: str


@dataclass(frozen=True)
class Choice:
    """A solver and the reason for it; and the rules to ask should it give up, none by default."""

    solver: Solver[Any]
    name: str
    because: str
    others: tuple[Rule, ...] = ()

    def following(self, problem: Problem, deadline: float = np.inf) -> Choice | None:
        """What the next rule says whose solver takes the problem, with short steps."""
        found = _first_match(self.others, problem, deadline)
        return found if isinstance(found, Choice) else None


def _always(facts: Facts) -> bool:
    return True


# where several rules hold, the first whose solver takes the problem: what a solver is for
# (its loss, its penalty, its size) is known to the solver alone
RULES: tuple[Rule, ...] = (
    Rule(
        _always,
        "fisher-secular",
        "MM-FDA: one decomposition of the covariance, then a scalar equation",
    ),
    Rule(_always, "probability-newton", "MM-MPM: few Newton steps in the coefficients"),
    Rule(
        lambda facts: facts.flat_ball,
        "ball-newton",
        "a smooth loss in a ball: few Newton steps inside it",
    ),
    Rule(_always, "ridge-newton", "a smooth loss and a ridge: few Newton steps"),
    Rule(
        lambda facts: facts.single and not facts.smooth and facts.tall and facts.even,
        "hinge-newton",
        "the hinge, many samples of few features: few Newton steps on smooth problems around "
        "multipliers",
    ),
    Rule(
        lambda facts: facts.small_systems,
        "interior-point",
        "a loss with kinks and a ridge: few systems of the smaller of samples and features",
    ),
    Rule(
        lambda facts: facts.single and not facts.smooth and facts.outgrown,
        "fapg-star",
        "a loss with kinks and a ridge, sparse data smaller than a matrix of their features: "
        "accelerated steps on the dual",
    ),
    Rule(
        lambda facts: facts.small_systems,
        "ball-interior-point",
        "a loss with kinks in a ball: few systems of the smaller of samples and features",
    ),
    Rule(
        _always,
        "hinge-newton",
        "the hinge with an elastic net: few Newton steps on smooth problems around multipliers",
    ),
    Rule(
        lambda facts: facts.single and not (facts.smooth and facts.net),
        "net-interior-point",
        "a small problem in units that are far apart, or far from one: an interior point in units "
        "of the features",
    ),
    Rule(
        lambda facts: facts.few_pieces,
        "linear-program",
        "hinges and a norm with flat faces, few samples: the simplex method on few features",
    ),
    Rule(
        _always,
        "multiplier-newton",
        "a multiclass hinge: few Newton steps around multipliers, on a working set of features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "tall-newton",
        "many samples of few features: Newton steps with one small matrix, kept up to date",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "newton",
        "one column of scores: few Newton steps on a working set of features",
    ),
    Rule(
        lambda facts: facts.single,
        "net-interior-point",
        "a small problem that Newton steps in the units of the data leave unsolved: an interior "
        "point in units of the features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "b-pgh-fapg-star",
        "a smooth loss in a ball that is not Euclidean: accelerated steps in the coefficients and "
        "on the dual, by turns",
    ),
    Rule(
        _always,
        "ball-newton",
        "a smooth loss in a small ball that is not Euclidean: few Newton steps inside it",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "b-pgh",
        "a smooth loss in a ball that is not Euclidean: accelerated steps in the coefficients",
    ),
    Rule(
        lambda facts: not facts.smooth and facts.pieces_within(SOME_PIECES),
        "linear-program",
        "hinges and a norm with flat faces: the simplex method on few features",
    ),
    Rule(
        lambda facts: facts.very_wide and not facts.smooth,
        "ssnal-ws",
        "hinges of all classes together, many more features than samples: few Newton steps on the "
        "dual, on a working set of features",
    ),
    Rule(
        lambda facts: facts.many_dual_points and not facts.smooth,
        "fbpd-ssnal",
        "hinges of all classes together, many of them: primal-dual steps, then few Newton steps "
        "on the dual",
    ),
    Rule(
        lambda facts: not facts.smooth,
        "ssnal",
        "hinges of all classes together: few Newton steps on the dual",
    ),
    Rule(
        _always,
        "linear-program",
        "hinges and a norm with flat faces: the simplex method on some samples and features",
    ),
    Rule(
        _always,
        "cutting-planes",
        "a budget for the loss: problems without one, at multipliers that close in on its own",
    ),
    Rule(
        lambda facts: facts.single,
        "fapg-star",
        "too large for second-order steps: accelerated steps on the dual",
    ),
    Rule(
        lambda facts: facts.wide,
        "fapg-ssnal-ws",
        "more features than samples: accelerated, then Newton steps on a working set of features",
    ),
    Rule(
        lambda facts: facts.net and (facts.coupled or facts.many_features),
        "fapg-ssnal-ws",
        "an elastic net, and classes that are coupled or many features: accelerated steps that "
        "start again on a growing set of features, then Newton steps",
    ),
    Rule(_always, "fapg-ssnal", "accelerated steps, then Newton steps on the dual where quicker"),
    Rule(
        lambda facts: facts.wide and not facts.single,
        "fapg-ws",
        "more features than samples: accelerated steps on a working set of features",
    ),
    Rule(
        lambda facts: not facts.single,
        "fapg",
        "at least as many samples as features: accelerated steps at unit feature scale",
    ),
    Rule(_always, "fbpd", "a loss with kinks that no other solver takes: primal-dual steps"),
)
# a matrix of inner products has no features, which all of the above read
KERNEL_RULES: tuple[Rule, ...] = (
    Rule(
        _always,
        "decomposition",
        "a kernel matrix and a sparse dual: small blocks of it, one after the other",
    ),
)


def choose(problem: Problem, deadline: float = np.inf) -> Choice:
    """The first rule that matches and whose solver takes the problem.

    Of solvers whose steps are short beside the time that is left until the ``deadline``, on the
    clock of `proxmargin.compiled.clock`, if there is one.

    Raises
    ------
    UnsuitableSolverError
        No solver takes the problem; the message says what the last one asked for lacks.
    """
    rules = KERNEL_RULES if isinstance(problem.design, KernelDesign) else RULES
    found = _first_match(rules, problem, deadline)
    if isinstance(found, str):
        found = _first_match(rules, problem, np.inf)
    if isinstance(found, Choice):
        return found
    raise UnsuitableSolverError(f"no solver takes this problem: {found}")


def solve(
    problem: Problem,
    choice: Choice,
    *,
    stop: Stop,
    callbacks: Sequence[Callable[[Report], object]] = (),
    start: Point | State | None = None,
    certify: Certify = certify,
    minimize: Callable[..., Solution] = minimize,
) -> Solution:
    """`minimize` with the chosen solver; where it gives up, the next one that is of use goes on.

    It starts from the best point so far and has what is left of the limits. Iterations, passes
    and seconds add up, ``because`` tells the story, and the better of the results is returned.
    """
    stop = stop.started(clock(), ())

    def run(choice: Choice, stop: Stop, start: Any, told: Any, known: Gap | None) -> Solution:
        return minimize(
            problem,
            choice.solver,
            stop=stop,
            callbacks=told,
            start=start,
            because=choice.because,
            certify=certify,
            known=known,
        )

    solution = run(choice, stop, start, callbacks, None)
    while _gave_up(solution, stop):
        if _is_unprovable(problem, solution.gap):
            return _ended(solution, Status.UNPROVED)
        if choice.solver.conclusive:
            grain = _is_grain(problem, solution.gap)
            return _ended(solution, Status.UNBALANCED if grain else solution.status)
        following = choice.following(problem, stop.deadline)
        if following is None:
            break
        best, done = solution.gap, solution.certificate
        left = None if stop.max_iter is None else max(stop.max_iter - done.n_iter, 0)
        told = [_told_of_both(callback, solution) for callback in callbacks]
        begin = best.point if np.isfinite(best.gap) else start
        try:
            further = run(following, replace(stop, max_iter=left), begin, told, best)
        except (ArithmeticError, MemoryError, ValueError) as error:  # what is found is kept
            return _noted(solution, f"{following.name!r} was to go on, and failed: {error}")
        solution, choice = _joined(solution, further), following
    return solution


def _first_match(rules: Sequence[Rule], problem: Problem, deadline: float) -> Choice | str:
    """The choice by the first rule that fits, or why the solver of the last one does not."""
    facts = Facts(problem)
    objection = "there are no rules"
    for k, rule in enumerate(rules):
        if not rule.when(facts):
            continue
        solver = SOLVERS[rule.use]()
        refusal = solver.objection(problem)
        if refusal is None and not affordable(solver.work(problem), deadline):
            refusal = "a step of it would take longer than there is time"
        if refusal is None:
            others = tuple(other for other in rules[k + 1 :] if other.use != rule.use)
            return Choice(solver, rule.use, rule.because, others)
        objection = refusal
    return objection


def _gave_up(solution: Solution, stop: Stop) -> bool:
    """Whether a solver had no more progress to make where another one might.

    Or no more patience: a limit of its own is none of the caller's.
    """
    ended = solution.status in (Status.STALLED, Status.DIVERGED)
    ended |= solution.status is Status.ITERATION_LIMIT and stop.max_iter is None
    return ended and not solution.certificate.converged and not _is_rounding(solution.gap)


def _is_unprovable(problem: Problem, gap: Gap) -> bool:
    """Whether a smooth loss without a penalty is stationary but for rounding.

    Only slopes of exactly zero would prove a bound then. Where the loss is all but zero there may
    be no such point, but steps for ever towards it, and zero is a bound.
    """
    features = (problem.design.n_features, problem.loss.n_outputs)
    bare = problem.penalty.domain_scale(np.full(features, np.finfo(float).tiny)) == 0.0
    if not (bare and Trait.SMOOTH in problem.traits):
        return False
    if not gap.kkt_residual <= STATIONARY * problem.slope_size:
        return False
    return gap.primal > ALL_BUT_ZERO * problem.value(problem.null_point())


def _is_grain(problem: Problem, gap: Gap) -> bool:
    """Whether the gap is what the last digits of a dual point cost where a ridge makes up for them.

    No dual point of double precision balances features whose entries are so large.
    """
    design, l2 = problem.design, problem.penalty.l2
    squares = (np.spacing(np.abs(gap.dual_point)) ** 2 / 12.0).sum(axis=1)
    pulled = design.column_squares(squares, np.zeros(design.n_features))
    return gap.gap <= GRAINS * float(pulled.sum()) / (2.0 * l2)


def _ended(solution: Solution, status: Status) -> Solution:
    certificate = replace(solution.certificate, stop_reason=status.value)
    return replace(solution, status=status, certificate=certificate)


def _is_rounding(gap: Gap) -> bool:
    size = 16 * float(np.finfo(float).eps) * abs(gap.primal)
    return gap.gap <= LEAST_GAP * (gap.rounding + size)


def _told_of_both(
    callback: Callable[[Report], object], before: Solution
) -> Callable[[Report], object]:
    """The callback, told of iterations, passes and seconds since the first solver began."""
    past = before.certificate

    def told(report: Report) -> object:
        return callback(
            replace(
                report,
                n_iter=report.n_iter + past.n_iter,
                n_passes=report.n_passes + past.n_passes,
                seconds=report.seconds + past.seconds,
            )
        )

    return told


def _noted(solution: Solution, remark: str) -> Solution:
    because = f"{solution.certificate.because}; {remark}"
    return replace(solution, certificate=replace(solution.certificate, because=because))


def _joined(first: Solution, second: Solution) -> Solution:
    """The better of two results, for the work of both; why it ended is what the second says."""
    better = second if second.gap.gap <= first.gap.gap else first
    one, two = first.certificate, second.certificate
    certificate = replace(
        better.certificate,
        stop_reason=two.stop_reason,
        n_iter=one.n_iter + two.n_iter,
        n_passes=one.n_passes + two.n_passes,
        seconds=one.seconds + two.seconds,
        because=(
            f"{one.because}; it stalled at a relative gap of {one.relative_gap:.1e}, "
            f"and {two.solver!r} went on: {two.because}"
        ),
    )
    return replace(better, status=second.status, certificate=certificate)
