"""What a path under way consists of: the problem, the working arrays, the solutions so far."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Buffers", "Goal", "State", "Strengths", "Terms"]

# how a call ends
DONE = 0
NO_SLOT = 1  # for a feature that enters
NO_MEMBER = 2  # a place in the quadratic model, for a slot
NO_ENTRY = 3  # a place for a coefficient that was found
GAVE_UP = 4  # the tolerance was not met
# places in the array of integers that is kept between calls
SLOTS = 0  # features that have one
MEMBERS = 1  # of the quadratic model
KEPT = 2  # rows of its factor
REFERENCES = 3  # of the span
PASSES = 4  # over all of the data
STEPS = 5  # of Newton's method
MODELS = 6  # quadratic models formed
NEAR = 7  # features whose inner product may be above the level LOW
LOOKED = 8  # inner products of single features since the last reference
SHELVED = 9  # columns that have been put on the shelf
FIRST = 10  # 1 until the predictor step at a strength
COUNTS = 11
# places in the same of numbers
INTERCEPT = 0  # of the centred columns
BEFORE = 1  # the l1 strength before this one
TOTAL = 2  # sum of the curvatures in the quadratic model; 0 without intercept
SHARE = 3  # weight of the majoriser where the loss is flat
LARGEST = 4  # diagonal entry of the Hessian
READ = 5  # passes, those over columns in shares
LOSS = 6  # at the scores
SLOPE = 7  # of minus the loss there, in the intercept
UP = 8  # factor that balanced the dual coordinates of positive signs
DOWN = 9  # the same of negative ones
LOW = 10  # in units of the factors
RIDGE = 11  # strength in the factor of the Hessian
DAMPED = 12  # the same
GUESS = 13  # the intercept after the predictor step at a strength
LAG = 14  # the error of that: what the correctors added
STRIDE = 15  # relative step length: fall of the l1 strength over the strength before
LEVELS = 16


class Terms(NamedTuple):
    """What a problem is made of, besides its features.

    Attributes
    ----------
    signs, weights : (n_samples,)
    offset : (n_samples,), or empty
        What is added to the scores.
    largest_offset : float
    centre, inverse : (n_features,)
        Of the features as the problem has them: ``(x_j - centre_j) inverse_j``.
    norms, bounds : (n_features,)
        Of the columns times ``inverse``, not centred: their Euclidean norms, rounded up; and the
        largest entries of the features as the problem has them.
    factor, lower, upper : (n_features,)
        Of the penalty.
    free : bool
        The intercept is.
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
    bends : (n_samples,)
        The curvatures in the quadratic model.
    moved : (n_samples,)
        The change of the scores by the last step.
    estimate : (n_features,)
        Inner products with the dual point, as far as they are known.
    unsure, near : (n_features,) integers
        Features that are to be looked at, now and at the next strength.
    flags : (8 k,) bytes, words : (k,) integers of 64 bits
        Whether features are near, 0 or 1; and the same memory by eights.
    members : (members,) integers
        The slots in the quadratic model.
    lift, slope, start, move : (members,)
        What is added to the diagonal of the Hessian; the gradient; where the step starts; the step.
    net : Net
        Of the members.
    """

    scores: Any
    theta: Any
    curved: Any
    bends: Any
    moved: Any
    estimate: Any
    unsure: Any
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
    """Strengths, and what was found for each.

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
    """A path under way.

    Attributes
    ----------
    store : Dense or Compressed
    phi : scalars of the loss
    terms : Terms
    slots : Slots
    quadratic : Quadratic
    span : Span
    shelf : Shelf
    buffers : Buffers
    counts : (COUNTS,) integers
    levels : (LEVELS,)
    """

    store: Any
    phi: Any
    terms: Any
    slots: Any
    quadratic: Any
    span: Any
    shelf: Any
    buffers: Any
    counts: Any
    levels: Any


class Goal(NamedTuple):
    """What a strength asks for.

    Attributes
    ----------
    l1, l2 : float
        Strengths of the features with the largest factor.
    rule : float
        The slope, over its factor, from which a feature belongs to the model.
    low : float
        At most the strength, and what the rule will be at the next one.
    tol : float
        Relative duality gap.
    """

    l1: float
    l2: float
    rule: float
    low: float
    tol: float
