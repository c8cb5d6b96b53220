"""The state of a path in progress: the problem, the working arrays, the solutions so far."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Buffers", "Goal", "State", "Strengths", "Terms"]

# return codes of a call
DONE = 0
NO_SLOT = 1  # no room for a feature that enters
NO_MEMBER = 2  # no room in the quadratic model
NO_ENTRY = 3  # no room for the coefficients of a solution
GAVE_UP = 4  # the tolerance was not met
NO_STEP = 5  # the last step that was allowed has been taken
# indices into `State.counts`, integers that persist between calls
CANDIDATES = 0  # number of candidate features
MEMBERS = 1  # number of members of the quadratic model
KEPT = 2  # valid rows of its factor
REFERENCES = 3  # number of references of the span
PASSES = 4  # passes over all of the data
STEPS = 5  # steps of Newton's method
MODELS = 6  # quadratic models formed
NEAR = 7  # features whose inner product may be above the level LOW
LOOKED = 8  # inner products of single features since the last reference
COLUMNS_CACHED = 9  # columns that have been copied into the column cache
FIRST = 10  # 1 until the predictor step at a strength
METRIC = 11  # 1 if the metric of the unpenalised features is one of an earlier dual point
MOVED = 12  # moves added to the scores since these were computed from the coefficients
LAST = 13  # number of steps after which to return
COUNTS = 14
# indices into `State.levels`, numbers that persist between calls
INTERCEPT = 0  # intercept for the centred columns
BEFORE = 1  # previous l1 strength
TOTAL = 2  # sum of the curvatures in the quadratic model; 0 without intercept
SHARE = 3  # weight of the majoriser where the loss is flat
LARGEST = 4  # largest diagonal entry of the Hessian
READ = 5  # passes over the data, with passes over some columns as fractions
LOSS = 6  # loss at the scores
SLOPE = 7  # derivative of minus the loss there in the intercept
UP = 8  # factor that balanced the dual coordinates of positive signs
DOWN = 9  # the same for negative signs
LOW = 10  # slope, over its factor, above which features are in ``near``
RIDGE = 11  # ridge strength in the factor of the Hessian
DAMPED = 12  # damping in the factor of the Hessian
GUESS = 13  # the intercept after the predictor step at a strength
LAG = 14  # error of GUESS: the sum of the corrector steps
STRIDE = 15  # relative step length: fall of the l1 strength over the strength before
SLIP = 16  # squared length of the projection of the dual point
TILT = 17  # the largest relative move of a dual coordinate by the projection
POSITIVE = 18  # sum of the dual coordinates of positive signs, before they are balanced
DRIFT = 19  # bound on the rounding of these moves
LEVELS = 20


class Terms(NamedTuple):
    """The terms of a problem: loss, penalty and scaling, without the entries of the data.

    Attributes
    ----------
    signs, weights : (n_samples,)
    offset : (n_samples,), or empty
        Constant added to the scores.
    largest_offset : float
    centre, inverse : (n_features,)
        The features of the problem are ``(x_j - centre_j) inverse_j``.
    norms, bounds : (n_features,)
        Euclidean norms of the uncentred columns times ``inverse``, rounded up; and the largest
        absolute entries of the features of the problem.
    factor, lower, upper : (n_features,)
        Factors and bounds of the penalty.
    free : bool
        The intercept is not penalised.
    jumps : bool
        The curvature of the loss is not continuous.
    spans : bool
        Features are proven inactive by spans; otherwise all are read at every strength.
    """

    signs: Any
    weights: Any
    offset: Any
    largest_offset: float
    centre: Any
    inverse: Any
    norms: Any
    bounds: Any
    factor: Any
    lower: Any
    upper: Any
    free: bool
    jumps: bool
    spans: bool


class Buffers(NamedTuple):
    """Vectors over samples, features and members of the quadratic model.

    Attributes
    ----------
    scores, theta, curved : (n_samples,)
        Scores without intercept, with the offset; the dual point and the curvatures there.
    bends, change : (n_samples,)
        The curvatures in the quadratic model, and their last change.
    moved : (n_samples,)
        The change of the scores by the last step.
    estimate : (n_features,)
        Estimated inner products with the dual point, from the span.
    unsure, near : (n_features,) integers
        Features whose inner products are needed at this strength, and perhaps at the next one.
    flags : (8 k,) bytes, words : (k,) integers of 64 bits
        Whether features are near, 0 or 1; and the same memory, eight flags a word.
    members : (members,) integers
        The candidates in the quadratic model.
    lift, slope, start, move : (members,)
        Addition to the diagonal of the Hessian; gradient; start of the step; the step.
    net : Net
        Penalty of the members.
    """

    scores: Any
    theta: Any
    curved: Any
    bends: Any
    change: Any
    moved: Any
    estimate: Any
    to_check: Any
    near: Any
    flags: Any
    words: Any
    members: Any
    lift: Any
    slope: Any
    start: Any
    move: Any
    net: Any


class Strengths(NamedTuple):
    """Strengths, and the solution of each.

    Attributes
    ----------
    l1, l2 : (n_strengths,)
    indptr : (n_strengths + 1,), indices, values : (capacity,)
        Coefficients, compressed by strengths.
    intercepts, gaps, objectives, violations, passes, steps : (n_strengths,)
    """

    l1: Any
    l2: Any
    indptr: Any
    indices: Any
    values: Any
    intercepts: Any
    gaps: Any
    objectives: Any
    violations: Any
    passes: Any
    steps: Any


class State(NamedTuple):
    """A path in progress.

    Attributes
    ----------
    store : Dense or Compressed
    loss : Loss
    terms : Terms
    unpenalised : Unpenalised
    candidates : Slots
    quadratic : Quadratic
    span : Span
    column_cache : Shelf
    buffers : Buffers
    counts : (COUNTS,) integers
    levels : (LEVELS,)
    """

    store: Any
    loss: Any
    terms: Any
    unpenalised: Any
    candidates: Any
    quadratic: Any
    span: Any
    column_cache: Any
    buffers: Any
    counts: Any
    levels: Any


class Goal(NamedTuple):
    """The thresholds and the tolerance of one strength.

    Attributes
    ----------
    l1, l2 : float
        Strengths of the features with the largest factor.
    rule : float
        The slope, over its factor, from which a feature belongs to the model.
    low : float
        The expected rule of the next strength, at most this strength.
    tol : float
        Relative duality gap.
    """

    l1: float
    l2: float
    rule: float
    low: float
    tol: float
