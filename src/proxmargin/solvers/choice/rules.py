"""The rules of ``solver='auto'``: a table by the kind of problem, each row with its reason.

Of the rows of a kind, at most three, the first that matches and whose solver takes the problem is
used, and its ``because`` is that of the certificate. If it stalls, the next row goes on, after the
last the fallbacks. A row above it was passed over because ``when`` does not hold, because
`Solver.objection` says why not, or because a step would exceed the time limit. The thresholds are
crossovers between solvers, measured on the data sets of ``benchmarks/``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.losses import CrammerSinger
from proxmargin.functions.losses.minimax import EllipsoidLoss
from proxmargin.functions.penalties.custom import OwnPenalty
from proxmargin.functions.traits import Trait
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.types import Facts
from proxmargin.solvers.dual.dual_rows import SPARSE_DENSITY
from proxmargin.solvers.interior.box_program import LARGEST
from proxmargin.solvers.interior.small_box import is_small
from proxmargin.solvers.programs.gauge_columns import gauge_columns
from proxmargin.solvers.ridge.newton import BallNewton

VERY_WIDE_RATIO = 50  # features per sample above which a working set pays for the multiclass hinge
MAX_SCALE_RATIO = 1e8  # ratio of feature scales above which Newton systems are ill-conditioned
# hinge pieces (samples times wrong classes) up to which the simplex method is the fastest
SIMPLEX_PIECES = 300
SIMPLEX_SPARSE_PIECES = 50_000  # of sparse data
SIMPLEX_DUAL_PIECES = 2000  # the same against `ssnal`
FREE_DUALS_REACH = 1.0  # largest mean change of a margin by its own dual point, in margins
# the same up to which sweeps win for the logistic loss of sparse data; a tenth of it for dense data
EASY_LOGISTIC_REACH = 200.0
SMALL_MATRIX_BYTES = 64_000_000  # a matrix of this size is accepted whatever the data
# from which on a working set pays for sums over classes, and sweeps of an easy logistic loss
MANY_FEATURES = 400
FEW_BEYOND_MARGINS = 0.4  # share of samples up to which first-order steps win in a ball
MANY_DUAL_POINTS = 1000  # dual coordinates from which on primal-dual steps are a good warm start


@dataclass(frozen=True, eq=False)
class Rule:
    """A row of the table: the solver ``use`` with ``options`` where ``when`` holds, or always.
    ``because`` is the reason."""

    use: str
    because: str
    when: Callable[[Problem], bool] | None = None
    options: Facts = field(default_factory=dict)


# ---- what rules ask of a problem ----------------------------------------------------------------


def _wide(problem: Problem) -> bool:
    """More features than samples."""
    return problem.design.n_features > problem.design.n_samples


def _is_very_wide(problem: Problem) -> bool:
    """The same many times over, for a penalty that selects."""
    selects = problem.penalty.l1 > 0 or problem.penalty.l2 == 0
    return selects and problem.design.n_features > VERY_WIDE_RATIO * problem.design.n_samples


def _has_similar_scales(problem: Problem) -> bool:
    """Feature scales so close that Newton systems are well-conditioned."""
    sizes = problem.design.column_bounds()
    least = float(sizes[sizes > 0].min(initial=np.inf))
    return float(sizes.max(initial=0.0)) <= MAX_SCALE_RATIO * least


def _has_small_systems(problem: Problem) -> bool:
    """A square matrix over samples or features, whichever are fewer, is no larger than the data, or
    than `SMALL_MATRIX_BYTES`. Of data read in passes the features are the fewer."""
    design = problem.design
    side = min(design.n_samples, design.n_features)
    small = 8 * side**2 <= max(SMALL_MATRIX_BYTES, design.nbytes)
    return small and not (design.passes_only and _wide(problem))


def _is_sparse_and_wide(problem: Problem) -> bool:
    """Sparse data, not with many samples of few features."""
    return problem.design.density <= SPARSE_DENSITY and not problem.design.is_tall


def _system_exceeds_data(problem: Problem) -> bool:
    """There is a ridge, and its system is larger than the data. One that does not fit counts for
    sparse data of many features only."""
    design = problem.design
    solvable = min(design.n_samples, design.n_features) <= LARGEST
    large = (solvable or _is_sparse_and_wide(problem)) and not _has_small_systems(problem)
    return large and problem.penalty.l2 > 0


def _has_few_free_duals(problem: Problem) -> bool:
    """At its upper bound, a dual coordinate moves its own margin little. Most are then at an end of
    their box, and the others hardly interact."""
    box = problem.loss.box
    if box is None or not np.isfinite(box.upper).all():
        return False
    reach = box.upper @ problem.design.row_norms() / (box.upper.size * problem.penalty.l2)
    return float(reach) <= FREE_DUALS_REACH


def _is_easy_logistic(problem: Problem, limit: float) -> bool:
    """The measure of `_has_few_free_duals`, for the logistic loss: sweeps are few."""
    if not (Trait.MARGINS in problem.traits and problem.margins.phi.is_strictly_convex):
        return False
    reach = problem.loss.shares @ problem.design.row_norms() / problem.loss.shares.size
    return float(reach) <= limit * problem.penalty.l2


def _suits_dual_coordinate_descent(problem: Problem) -> bool:
    if _is_sparse_and_wide(problem):
        return problem.loss.box is not None or _is_easy_logistic(problem, EASY_LOGISTIC_REACH)
    if Trait.SMOOTH not in problem.traits:
        return _has_few_free_duals(problem)
    # Hessians of so many features take longer than the sweeps
    many = problem.design.n_features >= MANY_FEATURES and not (
        _wide(problem) or problem.design.is_tall
    )
    return many and _is_easy_logistic(problem, 0.1 * EASY_LOGISTIC_REACH)


def _suits_dual_steps_in_ball(problem: Problem) -> bool:
    """Few samples exceed their margins in the ball, so that most dual points are at their bounds,
    or none has a loss; or no second-order method takes the problem: samples are fewer than features
    and the loss has no box. The first two are estimated from the scores of the point of the ball
    that is farthest along the direction of steepest descent at zero scores, where the steps
    begin."""
    box, smooth = problem.loss.box, Trait.SMOOTH in problem.traits
    if smooth and problem.ball.p == 2:
        return False
    if box is None or problem.loss.is_homogeneous:
        by_newton = problem.design.n_features <= BallNewton.max_curved_features
        return smooth and _wide(problem) and not by_newton
    design, zero = problem.centred.design, np.zeros((problem.design.n_samples, 1))
    dual = problem.loss.balanced(problem.loss.value_and_gradient(zero)[1], problem.intercept)
    scores = design.scores(problem.penalty.conjugate_gradient(design.adjoint(-dual)))
    beyond = np.abs(scores[:, 0]) > np.abs(box.target)
    if float(beyond.mean()) <= FEW_BEYOND_MARGINS:
        return True
    intercept = problem.loss.best_intercept(scores, problem.intercept, np.zeros(1))
    return problem.loss.value(scores + intercept) == 0.0


def _profits_from_working_set(problem: Problem) -> bool:
    """Many features, or classes that the loss couples, for a smooth loss of all classes."""
    coupled = Trait.OUTPUTWISE not in problem.loss.traits
    net = problem.penalty.l1 > 0 and problem.penalty.l2 > 0
    return _wide(problem) or (net and (coupled or problem.design.n_features >= MANY_FEATURES))


def _pieces(problem: Problem) -> int:
    """Pieces of a hinge, one for each sample and wrong class."""
    return problem.design.n_samples * max(problem.loss.n_outputs - 1, 1)


def _has_few_pieces(problem: Problem) -> bool:
    sparse = problem.design.density <= SPARSE_DENSITY
    return _pieces(problem) <= (SIMPLEX_SPARSE_PIECES if sparse else SIMPLEX_PIECES)


# ---- rows of several kinds ----------------------------------------------------------------------

MINIMAX = (Rule("minimax-newton", "MM-FDA or MM-MPM: few Newton steps in the coefficients"),)
DUAL_COORDINATE_DESCENT = Rule(
    "dual-coordinate-descent",
    "sparse data of many features, or a ridge so strong that most dual variables are at a bound or "
    "hardly interact: dual coordinate descent",
    _suits_dual_coordinate_descent,
)
ACTIVE_SET = Rule(
    "active-set",
    "a piecewise linear or quadratic loss and a ridge, more features than samples: active set on "
    "the dual, with the Gram matrix of the samples",
    _wide,
)
INTERIOR_POINT = Rule(
    "interior-point",
    "a piecewise linear or quadratic loss: interior point, with systems of the smaller of samples "
    "and features",
    _has_small_systems,
)
SMALL = Rule(
    "interior-point",
    "a piecewise linear or quadratic loss and a ridge, few entries: interior point in one call",
    options={"at_once": True},
)
RIDGE_NEWTON = Rule("ridge-newton", "a smooth loss and a ridge: Newton's method")
NEWTON = Rule("newton", "one column of scores: proximal Newton on a working set of features")
MULTIPLIER_NEWTON = Rule(
    "multiplier-newton",
    "the hinge with an elastic net: semismooth Newton in an augmented Lagrangian",
)
LINEAR_PROGRAM = Rule(
    "linear-program",
    "hinges and a polyhedral norm: the simplex method with row and column generation",
)
BALL_NEWTON = Rule("ball-newton", "a smooth loss in a ball: Newton's method inside it")
DUAL_IN_BALL = Rule(
    "fapg-star",
    "a ball so small that most samples stay within their margins, or whose first point has no "
    "loss, or a loss whose dual is no box: accelerated proximal gradient on the dual",
    _suits_dual_steps_in_ball,
)
FAPG_WS = Rule(
    "fapg-ws",
    "a smooth loss, more features than samples: accelerated proximal gradient on a working set of "
    "features",
    _wide,
)
FAPG = Rule(
    "fapg", "a smooth loss: accelerated proximal gradient, preconditioned by feature scales"
)
DUAL_PROXIMAL_GRADIENT = Rule(
    "fapg-star",
    "a penalty with a smooth conjugate: accelerated proximal gradient on the dual",
    lambda problem: problem.loss.n_outputs == 1,
)
RESTARTED = {"restarts": True, "relaxation": 1.8}
PRIMAL_DUAL = Rule("fbpd", "a loss with kinks that no other solver takes: primal-dual steps")
SSNAL = Rule("ssnal", "hinges of all classes together: semismooth Newton on the dual")
PRIMAL_DUAL_SSNAL = Rule(
    "fapg-ssnal",
    "hinges of all classes together, many of them: primal-dual steps, then semismooth Newton on "
    "the dual",
    lambda problem: int(np.count_nonzero(problem.loss.dual_support)) >= MANY_DUAL_POINTS,
    {"first": "fbpd"},
)
FEW_PIECES = Rule(
    "linear-program",
    "hinges and a polyhedral norm, few samples: the simplex method with column generation",
    _has_few_pieces,
)

# ---- the kinds: rows, the first of which that fits is used --------------------------------------

BUDGET = (
    LINEAR_PROGRAM,
    Rule("cutting-planes", "a budget for the loss: cutting planes in its multiplier"),
)
# one column of scores, by loss and penalty
ONE_OUTPUT: Mapping[tuple[str, str], tuple[Rule, ...]] = {
    ("smooth", "ridge"): (
        DUAL_COORDINATE_DESCENT,
        ACTIVE_SET,
        RIDGE_NEWTON,
    ),
    ("smooth", "small ridge"): (SMALL, RIDGE_NEWTON),
    ("kinked", "small ridge"): (SMALL, INTERIOR_POINT),
    ("kinked", "wide ridge"): (DUAL_COORDINATE_DESCENT, ACTIVE_SET, INTERIOR_POINT),
    ("kinked", "ridge"): (
        DUAL_COORDINATE_DESCENT,
        Rule(
            "multiplier-newton",
            "the hinge, many samples of few features: semismooth Newton in an augmented Lagrangian",
            lambda problem: problem.design.is_tall and _has_similar_scales(problem),
        ),
        INTERIOR_POINT,
    ),
    ("smooth", "l1"): (
        Rule(
            "chord-newton",
            "many samples of few features: proximal Newton whose Hessians, of the features in the "
            "model, serve several steps",
        ),
        NEWTON,
        INTERIOR_POINT,
    ),
    ("formula", "l1"): (FAPG_WS, FAPG),
    ("kinked", "l1"): (
        Rule(
            "fbpd",
            "a loss with kinks and an elastic net, sparse data: primal-dual steps with restarts",
            lambda problem: problem.penalty.l2 > 0 and problem.design.density <= SPARSE_DENSITY,
            RESTARTED,
        ),
        Rule(
            "linear-program",
            "the hinge and an l1 norm, few samples of sparse data: the simplex method with column "
            "generation",
            lambda problem: (
                problem.design.density <= SPARSE_DENSITY
                and problem.penalty.l2 == 0
                and _pieces(problem) <= SIMPLEX_PIECES
            ),
        ),
        MULTIPLIER_NEWTON,
    ),
    ("smooth", "ball"): (DUAL_IN_BALL, BALL_NEWTON, INTERIOR_POINT),
    ("kinked", "ball"): (DUAL_IN_BALL, INTERIOR_POINT),
    ("smooth", "own"): (FAPG,),
    ("kinked", "own"): (),
    ("smooth", "other"): (
        Rule(
            "newton",
            "factors or bounds, many samples of few features: proximal Newton on a working set",
            lambda problem: problem.design.is_tall,
        ),
        INTERIOR_POINT,
        NEWTON,
    ),
    ("kinked", "other"): (MULTIPLIER_NEWTON, INTERIOR_POINT, LINEAR_PROGRAM),
}
# several columns of scores
SMOOTH_CLASSES = (
    Rule(
        "class-newton",
        "a smooth loss of all classes together and an l1 norm: proximal Newton on a working set "
        "of coefficients",
        lambda problem: problem.penalty.l1 > 0,
    ),
    Rule(
        "fapg-ssnal",
        "a smooth loss of all classes together, many features or coupled classes: accelerated "
        "proximal gradient on a working set of features, then semismooth Newton",
        _profits_from_working_set,
        {"working_set": True},
    ),
    Rule(
        "fapg-ssnal",
        "a smooth loss of all classes together: accelerated proximal gradient, then semismooth "
        "Newton on the dual where that is quicker",
    ),
)
WORST_CLASS = (
    FEW_PIECES,
    Rule(
        "fapg-ssnal",
        "a multiclass hinge and a ridge, sparse data of many features: primal-dual steps, whose "
        "cost is that of products with the data, then semismooth Newton on the dual",
        lambda problem: problem.penalty.l2 > 0 and _is_sparse_and_wide(problem),
        {"first": "fbpd"},
    ),
    Rule(
        "multiplier-newton",
        "a multiclass hinge: semismooth Newton in an augmented Lagrangian, on a working set of "
        "features",
    ),
)
POLYHEDRAL_CLASSES = (
    Rule(
        "linear-program",
        "hinges and a polyhedral norm, too many samples for column generation alone: the simplex "
        "method",
        lambda problem: _pieces(problem) <= SIMPLEX_DUAL_PIECES or _has_few_pieces(problem),
    ),
    PRIMAL_DUAL_SSNAL,
    SSNAL,
)
KINKED_CLASSES = (
    Rule(
        "ssnal",
        "hinges of all classes together, many more features than samples: semismooth Newton on "
        "the dual, on a working set of features",
        _is_very_wide,
        {"working_set": True},
    ),
    PRIMAL_DUAL_SSNAL,
    SSNAL,
)
# a matrix of inner products, which has no features
KERNEL_RULES = (
    Rule(
        "decomposition", "a kernel matrix and a sparse dual: block coordinate descent on the dual"
    ),
    Rule(
        "ridge-newton",
        "a kernel matrix and a loss that is curved everywhere: Newton's method on the dual",
    ),
)
# data that are read anew in every pass: methods of few passes, none of columns or single rows
PASSES = (
    Rule(
        "pass-newton",
        "data read in passes, a smooth loss: a proximal Newton step with each pass, from a sample "
        "of the rows",
    ),
    BALL_NEWTON,
    FAPG,
)

# ---- what goes on where these stall, or take a problem not --------------------------------------

FALLBACK = (DUAL_PROXIMAL_GRADIENT, PRIMAL_DUAL)
SMOOTH_FALLBACK = (INTERIOR_POINT, NEWTON, FAPG_WS, FAPG, *FALLBACK)
KINKED_FALLBACK = (
    Rule(
        "fbpd",
        "a loss with kinks and a ridge, data smaller than a square matrix of their shorter side: "
        "primal-dual steps with restarts",
        _system_exceeds_data,
        RESTARTED,
    ),
    MULTIPLIER_NEWTON,
    INTERIOR_POINT,
    LINEAR_PROGRAM,
    *FALLBACK,
)
CLASS_FALLBACK = (
    SSNAL,
    Rule(
        "ssnal",
        "hinges of all classes together: semismooth Newton on the dual, started again for smaller "
        "and smaller gaps",
        options={"working_set": True},
    ),
    LINEAR_PROGRAM,
    PRIMAL_DUAL,
)
# of problems with features in memory; each once
CLASSES = (SMOOTH_CLASSES, WORST_CLASS, POLYHEDRAL_CLASSES, KINKED_CLASSES)
CELLS = (MINIMAX, BUDGET, *ONE_OUTPUT.values(), *CLASSES)
FALLBACKS = tuple(dict.fromkeys((*SMOOTH_FALLBACK, *KINKED_FALLBACK, *CLASS_FALLBACK)))
RULES = tuple(dict.fromkeys((*chain(*CELLS), *FALLBACKS)))


def rules_for(problem: Problem) -> tuple[Rule, ...]:
    """The rules for problems of this kind, in the order in which they are asked.

    The kind is the access to the data (in memory, in passes, a kernel matrix), the loss (of one
    column of scores or several, smooth or with kinks, of moments, within a budget) and the penalty.
    At most three rows are of the kind; the others go on where these stall.
    """
    smooth = Trait.SMOOTH in problem.traits
    if isinstance(problem.design, KernelDesign):
        return KERNEL_RULES
    if isinstance(problem.loss.unshifted, EllipsoidLoss):
        return MINIMAX + FALLBACK
    if problem.design.passes_only:
        return (PASSES if smooth else ()) + (INTERIOR_POINT, *FALLBACK)
    if Trait.BUDGET in problem.traits:
        return (*BUDGET, PRIMAL_DUAL)
    if problem.loss.n_outputs > 1:
        if smooth:
            return (*SMOOTH_CLASSES, FAPG_WS, FAPG)
        return _kinked_classes(problem) + CLASS_FALLBACK
    return _one_output(problem, smooth) + (SMOOTH_FALLBACK if smooth else KINKED_FALLBACK)


def _one_output(problem: Problem, smooth: bool) -> tuple[Rule, ...]:
    """The rows for one column of scores, by loss and penalty: one that a user wrote ('own'), a
    ball, an l1 norm (with or without a ridge), a ridge, or 'other' (none, norms of groups)."""
    loss, penalty = "smooth" if smooth else "kinked", "other"
    if isinstance(problem.penalty, OwnPenalty):
        penalty = "own"
    elif Trait.BALL in problem.traits:
        penalty = "ball"
    elif problem.penalty.l1 > 0:
        penalty = "l1"
        if smooth and Trait.COMPILED not in problem.traits:
            loss = "formula"  # by arrays: no compiled solver takes it
    elif problem.penalty.l2 > 0:
        wide = not smooth and _wide(problem)
        penalty = "small ridge" if is_small(problem) else "wide ridge" if wide else "ridge"
    return ONE_OUTPUT.get((loss, penalty), ONE_OUTPUT["kinked", "ball"])


def _kinked_classes(problem: Problem) -> tuple[Rule, ...]:
    """The rows for hinges of several columns of scores."""
    penalty, gauge = problem.penalty, gauge_columns(problem.penalty)
    is_net = Trait.UNIFORM_NET in penalty.traits and penalty.l1 + penalty.l2 > 0
    if isinstance(problem.loss, CrammerSinger) and is_net:  # with margins of one
        return WORST_CLASS
    polyhedral = gauge is not None and gauge.is_polyhedral and penalty.l2 == 0
    return POLYHEDRAL_CLASSES if polyhedral else KINKED_CLASSES
