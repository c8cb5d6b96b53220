"""The rules of ``solver='auto'``: a table, the first match wins, each row with its reason.

The rules compare the named solvers on the data sets of ``benchmarks/``. Where several hold, the
first whose solver takes the problem is used: what a solver is for (its loss, its penalty, its size)
is known to the solver alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from proxmargin.designs.kernel_design import KernelDesign
from proxmargin.problem import Problem
from proxmargin.solvers.box.box_program import LARGEST
from proxmargin.traits import Trait

__all__ = ["KERNEL_RULES", "RULES", "Facts", "Rule", "rules_for"]

# features per sample from which a working set pays for exact hinges of all classes
VERY_WIDE = 50
# samples per feature from which Newton steps for the hinge are cheaper than interior points
TALL = 8
# ratio of the largest to the smallest scale of a feature up to which they are
EVEN = 1e8
# wrong classes of all samples up to which the simplex method is faster than Newton's method
FEW_PIECES = 300
# the same, of sparse data
FEW_SPARSE_PIECES = 50_000
# density up to which data count as sparse
SPARSE = 0.05
# wrong classes of all samples up to which it is faster than Newton's method on the dual, the
# alternative for l_inf norms of groups
SOME_PIECES = 2000
# bytes of a matrix that there is room for beside any data
ROOMY = 64_000_000
# features from which a working set pays for losses that are sums over the classes
MANY_FEATURES = 400
# dual coordinates from which primal-dual steps are a good warm start of Newton's method
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
        sizes = design.column_bounds()
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

    def holds(self, problem: Problem) -> bool:
        return self.when(Facts(problem))


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
    Rule(_always, "ball-newton", "a smooth loss in a ball: few Newton steps inside it"),
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
        lambda facts: facts.single and facts.smooth,
        "b-pgh-fapg-star",
        "a smooth loss in a ball that is not Euclidean: accelerated steps in the coefficients and "
        "on the dual, by turns",
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


def rules_for(problem: Problem) -> tuple[Rule, ...]:
    """The table that the problem is looked up in."""
    return KERNEL_RULES if isinstance(problem.design, KernelDesign) else RULES
