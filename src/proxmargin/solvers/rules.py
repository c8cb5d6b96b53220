"""The rules of ``solver='auto'``: a table, the first match wins, each row with its reason.

The thresholds come from comparing the solvers on the data sets of ``benchmarks/``. If several rules
match, the first one whose solver takes the problem is used: only the solver knows what it is for
(its loss, its penalty, its size).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proxmargin.penalties.custom import OwnPenalty
from proxmargin.problem import Problem
from proxmargin.solvers.box.box_program import LARGEST
from proxmargin.traits import Trait

__all__ = ["KERNEL_RULES", "PASS_RULES", "RULES", "Facts", "Rule", "rules_for"]

# crossovers between solvers, measured on the data sets of ``benchmarks/``
VERY_WIDE_RATIO = 50  # features per sample above which a working set pays for the multiclass hinge
TALL_RATIO = 8  # samples per feature from which on semismooth Newton beats interior points
MAX_SCALE_RATIO = 1e8  # ratio of feature scales above which Newton systems are ill-conditioned
# hinge pieces (samples times wrong classes) up to which the simplex method is faster than
SIMPLEX_PIECES = 300  # semismooth Newton in the coefficients
SIMPLEX_SPARSE_PIECES = 50_000  # the same for sparse data
SIMPLEX_DUAL_PIECES = 2000  # semismooth Newton on the dual, for group l_inf norms
SPARSE_DENSITY = 0.05  # density up to which data count as sparse
LOOSE_REACH = 1.0  # largest mean change of a margin by its own dual point, in margins
WEAK_REACH = 200.0  # the same up to which sweeps win for the logistic loss
SMALL_MATRIX_BYTES = 64_000_000  # a matrix of this size is accepted whatever the data
MANY_FEATURES = 400  # from which on a working set pays for losses that are sums over classes
FEW_BEYOND_MARGINS = 0.4  # share of samples up to which first-order steps win in a ball
MANY_DUAL_POINTS = 1000  # dual coordinates from which on primal-dual steps are a good warm start


class Facts:
    """The properties of a problem that rules depend on.

    Attributes
    ----------
    single : bool
        One column of scores.
    smooth : bool
        The loss has a Lipschitz continuous gradient.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.single = problem.loss.n_outputs == 1
        self.smooth = Trait.SMOOTH in problem.traits

    @property
    def curved(self) -> bool:
        """Whether the loss is a sum of strictly convex functions of margins."""
        convex = Trait.MARGINS in self.problem.traits
        return convex and self.problem.margins.phi.is_strictly_convex

    @property
    def wide(self) -> bool:
        """More features than samples."""
        return self.problem.design.n_features > self.problem.design.n_samples

    @property
    def tall(self) -> bool:
        """Many more samples than features."""
        return self.problem.design.n_samples >= TALL_RATIO * self.problem.design.n_features

    @property
    def even(self) -> bool:
        """Whether feature scales are close enough for Newton systems to be well-conditioned."""
        design = self.problem.design
        sizes = design.column_bounds()
        return float(sizes.max(initial=0.0)) <= MAX_SCALE_RATIO * float(
            sizes[sizes > 0].min(initial=np.inf)
        )

    @property
    def very_wide(self) -> bool:
        """Many more features than samples."""
        return self.problem.design.n_features > VERY_WIDE_RATIO * self.problem.design.n_samples

    @property
    def small_systems(self) -> bool:
        """Whether a square matrix over samples or features, whichever are fewer, is small.

        No larger than the data, or than `SMALL_MATRIX_BYTES`, as sparse data can be much smaller.
        """
        design = self.problem.design
        side = min(design.n_samples, design.n_features)
        return 8 * side**2 <= max(SMALL_MATRIX_BYTES, design.nbytes)

    @property
    def system_exceeds_data(self) -> bool:
        """Whether the penalty is a ridge, and the system is larger than the data.

        One that does not fit counts for sparse data of many features only.
        """
        design, penalty = self.problem.design, self.problem.penalty
        solvable = min(design.n_samples, design.n_features) <= LARGEST
        return (solvable or self.text) and not self.small_systems and penalty.l1 == 0 < penalty.l2

    @property
    def selects(self) -> bool:
        """Whether the penalty has an l1 part."""
        return self.problem.penalty.l1 > 0

    @property
    def keeps_all(self) -> bool:
        """Whether the penalty is a ridge, which sets no coefficients to zero."""
        return self.problem.penalty.l1 == 0 < self.problem.penalty.l2

    @property
    def ball(self) -> bool:
        """Whether coefficients are restricted to a ball."""
        return Trait.BALL in self.problem.traits

    @property
    def net(self) -> bool:
        """Whether the penalty has an l1 part and a ridge."""
        return self.selects and self.problem.penalty.l2 > 0

    @property
    def own(self) -> bool:
        """Whether the penalty is one that a user wrote."""
        return isinstance(self.problem.penalty, OwnPenalty)

    @property
    def flat_ball(self) -> bool:
        """Whether the ball has p >= 2, where first-order steps are slow."""
        return self.ball and self.problem.ball.p >= 2

    @property
    def tight_ball(self) -> bool:
        """Whether few samples exceed their margins in the ball, so that most dual points are at
        caps.

        Estimated from the scores of the point of the ball that is farthest along the direction of
        steepest descent at zero scores.
        """
        problem, box = self.problem, self.problem.loss.box
        if not self.ball or box is None or problem.loss.is_homogeneous:
            return False
        design, zero = problem.centred.design, np.zeros((problem.design.n_samples, 1))
        dual = problem.loss.balanced(problem.loss.value_and_gradient(zero)[1], problem.intercept)
        furthest = problem.penalty.conjugate_gradient(design.adjoint(dual))
        beyond = np.abs(design.scores(furthest)[:, 0]) > np.abs(box.goal)
        return float(beyond.mean()) <= FEW_BEYOND_MARGINS

    @property
    def text(self) -> bool:
        """Sparse data, not with many samples of few features."""
        return self.problem.design.density <= SPARSE_DENSITY and not self.tall

    @property
    def loose(self) -> bool:
        """Whether dual points have small caps: at its cap, one moves its own margin little.

        Most dual points are then at an end of their box, and the others hardly interact.
        """
        problem, box = self.problem, self.problem.loss.box
        if box is None or problem.penalty.l2 <= 0 or not np.isfinite(box.caps).all():
            return False
        reach = box.caps @ problem.design.row_norms() / (box.caps.size * problem.penalty.l2)
        return float(reach) <= LOOSE_REACH

    @property
    def boxed(self) -> bool:
        """Whether the conjugate of the loss is linear or quadratic, on a box."""
        return self.problem.loss.box is not None

    @property
    def weak(self) -> bool:
        """Whether dual points have weights so small that sweeps over them are few.

        The measure of `loose`, for the logistic loss.
        """
        problem = self.problem
        if not self.curved or problem.penalty.l2 <= 0:
            return False
        reach = problem.loss.shares @ problem.design.row_norms() / problem.loss.shares.size
        return float(reach) <= WEAK_REACH * problem.penalty.l2

    @property
    def coupled(self) -> bool:
        """Whether the loss is no sum over the columns of scores."""
        return Trait.OUTPUTWISE not in self.problem.loss.traits

    @property
    def many_features(self) -> bool:
        """Whether there are enough features for a working set to pay."""
        return self.problem.design.n_features >= MANY_FEATURES

    def pieces_within(self, most: int) -> bool:
        """Whether the hinge has at most ``most`` pieces, one for each sample and wrong class."""
        wrong = max(self.problem.loss.n_outputs - 1, 1)
        return self.problem.design.n_samples * wrong <= most

    @property
    def few_pieces(self) -> bool:
        """Whether hinge pieces are few enough for the simplex method to be the fastest."""
        sparse = self.problem.design.density <= SPARSE_DENSITY
        return self.pieces_within(SIMPLEX_SPARSE_PIECES if sparse else SIMPLEX_PIECES)

    @property
    def many_dual_points(self) -> bool:
        """Whether dual coordinates are too many for dual Newton steps far from the solution."""
        return int(np.count_nonzero(self.problem.loss.dual_support)) >= MANY_DUAL_POINTS


@dataclass(frozen=True)
class Rule:
    """A row of the table: use the solver ``use`` with ``options`` if ``when`` holds.

    ``because`` is the reason.
    """

    when: Callable[[Facts], bool]
    use: str
    because: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def solver(self) -> tuple[str, Mapping[str, Any]]:
        """The solver's name and options."""
        return self.use, self.options


def _always(facts: Facts) -> bool:
    return True


# the first rule that holds and whose solver takes the problem decides: only the solver knows what
# it is for (its loss, its penalty, its size)
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
    Rule(
        lambda facts: facts.single and facts.text and facts.boxed,
        "dual-coordinate-descent",
        "a piecewise linear or quadratic loss and a ridge, sparse data of many features: steps "
        "along single dual points",
    ),
    Rule(
        lambda facts: facts.single and facts.text and facts.weak,
        "dual-coordinate-descent",
        "the logistic loss and a ridge, sparse data of many features: steps along single dual "
        "points, a few sweeps in place of the products of a Newton step",
    ),
    Rule(
        lambda facts: facts.single and not facts.smooth and facts.loose,
        "dual-coordinate-descent",
        "a loss with kinks and a ridge so strong that dual points hardly interact: steps along "
        "single ones",
    ),
    Rule(
        lambda facts: facts.wide,
        "active-set",
        "a box on the dual and a ridge, fewer samples than features: the face of the box that "
        "holds the optimum, in inner products of the samples",
    ),
    Rule(
        _always,
        "sampled-newton",
        "a loss of continuous curvature and a ridge, many samples of few features: Newton steps "
        "with the Hessian of a subsample, corrected by differences of gradients",
    ),
    Rule(_always, "ridge-newton", "a smooth loss and a ridge: few Newton steps"),
    Rule(
        lambda facts: facts.single and not facts.smooth and facts.tall and facts.even,
        "hinge-newton",
        "the hinge, many samples of few features: semismooth Newton in an augmented Lagrangian",
    ),
    Rule(
        lambda facts: facts.small_systems,
        "interior-point",
        "a loss with kinks and a ridge: interior point, with systems of the smaller of samples and "
        "features",
    ),
    Rule(
        lambda facts: facts.single and not facts.smooth and facts.system_exceeds_data,
        "fapg-star",
        "a loss with kinks and a ridge, data smaller than a square matrix of their shorter side: "
        "accelerated steps on the dual",
    ),
    Rule(
        lambda facts: facts.single and not facts.smooth and facts.tight_ball,
        "fapg-star",
        "a loss with kinks in a ball so small that most samples stay within their margins: "
        "accelerated steps on the dual",
    ),
    Rule(
        lambda facts: facts.small_systems,
        "ball-interior-point",
        "a piecewise linear or quadratic loss in a ball: interior point, systems of the smaller of "
        "samples and features",
    ),
    Rule(
        _always,
        "hinge-newton",
        "the hinge with an elastic net: semismooth Newton in an augmented Lagrangian",
    ),
    Rule(
        lambda facts: facts.single and not (facts.smooth and facts.selects),
        "net-interior-point",
        "a loss with a box on its dual and a ridge, small data on which other methods stall, or "
        "bounds: interior points in units of the features",
    ),
    Rule(
        lambda facts: facts.few_pieces,
        "linear-program",
        "hinges and a polyhedral norm, few samples: the simplex method with column generation",
    ),
    Rule(
        _always,
        "multiplier-newton",
        "a multiclass hinge: semismooth Newton in an augmented Lagrangian, on a working set of "
        "features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "chord-newton",
        "many samples of few features: Newton steps on Hessians of the features in the model, each "
        "of which serves several steps",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "newton",
        "one column of scores: proximal Newton on a working set of features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "net-interior-point",
        "a smooth loss and an elastic net or l1 norm, small data on which other Newton methods "
        "stall: interior points in units of the features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth and facts.selects and facts.wide,
        "fapg-ws",
        "a smooth loss and an l1 norm, more features than samples: accelerated steps on a working "
        "set of features",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth and facts.selects,
        "fapg",
        "a smooth loss and an l1 norm, at least as many samples as features: accelerated steps, "
        "preconditioned by feature scales",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth and facts.ball and facts.wide,
        "fapg-star",
        "a smooth loss in a ball, more features than samples: accelerated steps on the dual",
    ),
    Rule(
        _always,
        "ball-newton",
        "a smooth loss in a ball, few features: Newton's method inside it, balls of any norm",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth and facts.own,
        "fapg",
        "a smooth loss and a penalty of one's own: accelerated steps, preconditioned by feature "
        "scales where the penalty is a sum over coefficients",
    ),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "b-pgh",
        "a smooth loss of one column of scores: accelerated steps in the coefficients",
    ),
    Rule(
        lambda facts: not facts.smooth and facts.pieces_within(SIMPLEX_DUAL_PIECES),
        "linear-program",
        "hinges and a polyhedral norm: the simplex method with column generation",
    ),
    Rule(
        lambda facts: facts.very_wide and not facts.smooth and not facts.keeps_all,
        "ssnal",
        "hinges of all classes together, many more features than samples: semismooth Newton on the "
        "dual, on a working set of features",
        {"working_set": True},
    ),
    Rule(
        lambda facts: facts.many_dual_points and not facts.smooth,
        "fapg-ssnal",
        "hinges of all classes together, many of them: primal-dual steps, then semismooth Newton "
        "on the dual",
        {"first": "fbpd"},
    ),
    Rule(
        lambda facts: not facts.smooth,
        "ssnal",
        "hinges of all classes together: semismooth Newton on the dual",
    ),
    Rule(
        lambda facts: not facts.smooth,
        "ssnal",
        "hinges of all classes together: semismooth Newton on the dual, started again for smaller "
        "and smaller gaps",
        {"working_set": True},
    ),
    Rule(
        _always,
        "linear-program",
        "hinges and a polyhedral norm: the simplex method with row and column generation",
    ),
    Rule(
        _always,
        "cutting-planes",
        "a budget for the loss: cutting planes in its multiplier",
    ),
    Rule(
        lambda facts: facts.single,
        "fapg-star",
        "a loss with kinks and a penalty with a smooth conjugate: accelerated steps on the dual",
    ),
    Rule(
        lambda facts: not facts.single and facts.smooth and facts.selects,
        "class-newton",
        "a smooth loss of all classes together and an l1 norm: proximal Newton on a working set of "
        "coefficients",
    ),
    Rule(
        lambda facts: facts.wide,
        "fapg-ssnal",
        "more features than samples: accelerated, then Newton steps on a working set of features",
        {"working_set": True},
    ),
    Rule(
        lambda facts: facts.net and (facts.coupled or facts.many_features),
        "fapg-ssnal",
        "an elastic net, and classes that are coupled or many features: accelerated steps that "
        "start again on a growing set of features, then Newton steps",
        {"working_set": True},
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
        "at least as many samples as features: accelerated steps, preconditioned by feature scales",
    ),
    Rule(_always, "fbpd", "a loss with kinks that no other solver takes: primal-dual steps"),
)
# for a matrix of inner products, which has no features, while all of the above need them
KERNEL_RULES: tuple[Rule, ...] = (
    Rule(
        _always,
        "decomposition",
        "a kernel matrix and a sparse dual: block coordinate descent on the dual",
    ),
    Rule(
        _always,
        "dual-newton",
        "a kernel matrix and a loss that is curved everywhere: few Newton steps on the dual",
    ),
)
# for data that are read anew in every pass: methods of few passes, none of columns or single rows
PASS_RULES: tuple[Rule, ...] = (
    Rule(
        _always,
        "fisher-secular",
        "MM-FDA: one pass for the covariance of the classes, then a scalar equation",
    ),
    Rule(_always, "probability-newton", "MM-MPM: few Newton steps in the coefficients"),
    Rule(
        lambda facts: facts.single and facts.smooth,
        "pass-newton",
        "data read in passes, a smooth loss: a Newton step with each pass, from a sample of the "
        "rows",
    ),
    Rule(
        _always,
        "ball-newton",
        "data read in passes, a smooth loss in a ball: few Newton steps inside it",
    ),
    Rule(
        lambda facts: facts.smooth,
        "fapg",
        "data read in passes, a smooth loss: accelerated steps, preconditioned by feature scales",
    ),
    Rule(
        lambda facts: facts.single and facts.small_systems and not facts.wide,
        "interior-point",
        "data read in passes, a loss with kinks and a ridge, few features: interior point, with "
        "systems of the features",
    ),
    Rule(
        lambda facts: facts.single,
        "fapg-star",
        "data read in passes, a loss with kinks and a ridge: accelerated steps on the dual",
    ),
    Rule(_always, "fbpd", "data read in passes, a loss with kinks: primal-dual steps"),
)


def rules_for(problem: Problem) -> tuple[Rule, ...]:
    """The table of rules for the problem."""
    if problem.design.passes_only:
        return PASS_RULES
    return RULES if problem.design.kernel_matrix is None else KERNEL_RULES
