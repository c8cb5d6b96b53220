"""What the rules of ``solver='auto'`` ask of a problem.

The thresholds come from comparing the solvers on the data sets of ``benchmarks/``.
"""

from __future__ import annotations

import numpy as np

from proxmargin.penalties.custom import OwnPenalty
from proxmargin.problem import Problem
from proxmargin.solvers.box.box_program import LARGEST
from proxmargin.traits import Trait

__all__ = ["Facts"]

# crossovers between solvers, measured on the data sets of ``benchmarks/``
VERY_WIDE_RATIO = 50  # features per sample above which a working set pays for the multiclass hinge
TALL_RATIO = 8  # samples per feature from which on semismooth Newton beats interior points
MAX_SCALE_RATIO = 1e8  # ratio of feature scales above which Newton systems are ill-conditioned
# hinge pieces (samples times wrong classes) up to which the simplex method is faster than
SIMPLEX_PIECES = 300  # semismooth Newton in the coefficients
SIMPLEX_SPARSE_PIECES = 50_000  # the same for sparse data
SPARSE_DENSITY = 0.05  # density up to which data count as sparse
FREE_DUALS_REACH = 1.0  # largest mean change of a margin by its own dual point, in margins
EASY_LOGISTIC_REACH = 200.0  # the same up to which sweeps win for the logistic loss
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
    def has_similar_scales(self) -> bool:
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
        return (
            (solvable or self.is_sparse_and_wide)
            and not self.small_systems
            and penalty.l1 == 0 < penalty.l2
        )

    @property
    def has_l1(self) -> bool:
        """Whether the penalty has an l1 part."""
        return self.problem.penalty.l1 > 0

    @property
    def is_ridge(self) -> bool:
        """Whether the penalty is a ridge, which sets no coefficients to zero."""
        return self.problem.penalty.l1 == 0 < self.problem.penalty.l2

    @property
    def is_ball(self) -> bool:
        """Whether coefficients are restricted to a ball."""
        return Trait.BALL in self.problem.traits

    @property
    def is_elastic_net(self) -> bool:
        """Whether the penalty has an l1 part and a ridge."""
        return self.has_l1 and self.problem.penalty.l2 > 0

    @property
    def penalty(self) -> str:
        """The kind of penalty: 'ball', 'custom' (one that a user wrote), 'l1' (with or without a
        ridge) or 'l2' (none, or other norms, too).
        """
        if isinstance(self.problem.penalty, OwnPenalty):
            return "custom"
        if self.is_ball:
            return "ball"
        return "l1" if self.has_l1 else "l2"

    @property
    def is_flat_ball(self) -> bool:
        """Whether the ball has p >= 2, where first-order steps are slow."""
        return self.problem.ball.p >= 2

    @property
    def is_tight_ball(self) -> bool:
        """Whether few samples exceed their margins in the ball, so that most dual points are at
        caps.

        Estimated from the scores of the point of the ball that is farthest along the direction of
        steepest descent at zero scores.
        """
        problem, box = self.problem, self.problem.loss.box
        if box is None or problem.loss.is_homogeneous:
            return False
        design, zero = problem.centred.design, np.zeros((problem.design.n_samples, 1))
        dual = problem.loss.balanced(problem.loss.value_and_gradient(zero)[1], problem.intercept)
        furthest = problem.penalty.conjugate_gradient(design.adjoint(dual))
        beyond = np.abs(design.scores(furthest)[:, 0]) > np.abs(box.goal)
        return float(beyond.mean()) <= FEW_BEYOND_MARGINS

    @property
    def is_sparse_and_wide(self) -> bool:
        """Sparse data, not with many samples of few features."""
        return self.problem.design.density <= SPARSE_DENSITY and not self.tall

    @property
    def has_few_free_duals(self) -> bool:
        """Whether dual points have small caps: at its cap, one moves its own margin little.

        Most dual points are then at an end of their box, and the others hardly interact.
        """
        problem, box = self.problem, self.problem.loss.box
        if box is None or problem.penalty.l2 <= 0 or not np.isfinite(box.caps).all():
            return False
        reach = box.caps @ problem.design.row_norms() / (box.caps.size * problem.penalty.l2)
        return float(reach) <= FREE_DUALS_REACH

    @property
    def has_boxed_dual(self) -> bool:
        """Whether the conjugate of the loss is linear or quadratic, on a box."""
        return self.problem.loss.box is not None

    @property
    def is_easy_logistic(self) -> bool:
        """Whether dual points have weights so small that sweeps over them are few.

        The measure of `has_few_free_duals`, for the logistic loss.
        """
        problem = self.problem
        if not self.curved or problem.penalty.l2 <= 0:
            return False
        reach = problem.loss.shares @ problem.design.row_norms() / problem.loss.shares.size
        return float(reach) <= EASY_LOGISTIC_REACH * problem.penalty.l2

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
