"""A path in progress: the data, the candidates, the quadratic model, the point and its dual.

Numbers that kernels change are the fields of NumPy records, ``scalars`` of each part (`record`).
Kernels take the parts that they read or change. (No field of a named tuple has the name of a method
of `proxmargin.compiled.losses.scalars`: Numba would find that.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# return codes of a call
DONE = 0
CANDIDATES_FULL = 1  # no room for a feature that enters
MODEL_FULL = 2  # no room for a feature in the quadratic model
SOLUTIONS_FULL = 3  # no room for the coefficients of a solution
GAVE_UP = 4  # the tolerance was not met
STEPS_TAKEN = 5  # the last step that was allowed has been taken


def record(kind: dict[str, str]) -> Any:
    """Zeros with names, which kernels read and write as attributes."""
    return np.zeros(1, list(kind.items()))[0]


class ColumnCache(NamedTuple):
    """Contiguous copies of the most recently used columns of dense data that are stored by rows.

    Attributes
    ----------
    columns : (capacity, n_samples)
    owner : (capacity,) integers
        Feature of each copy, -1 where there is none.
    place : (n_features,) integers
        Index of the copy of each feature, -1 where it has none.
    scalars : record of ``CACHE``
    """

    columns: Any
    owner: Any
    place: Any
    scalars: Any


CACHE = {"copied": "i8"}  # columns so far


class Store(NamedTuple):
    """The entries of the data, dense or compressed by columns; kernels are compiled for both.

    Attributes
    ----------
    is_sparse : bool
    sparse : Compressed
        Empty if the data are dense.
    lines : (n_samples, n_features), or its transpose
        Contiguous; empty if the data are sparse.
    by_rows : bool
        Lines are samples.
    copies : bool
        Candidates have centred copies of their columns: dense data with more features than
        samples.
    cache : ColumnCache
        Of other features of such data.
    """

    is_sparse: bool
    sparse: Any
    lines: Any
    by_rows: bool
    copies: bool
    cache: ColumnCache


class Data(NamedTuple):
    """What does not change along a path: entries, loss, and penalty at strength one.

    Attributes
    ----------
    store : Store
    loss : Loss
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
    uses_subspace : bool
        Features are proven inactive by former dual points; otherwise all are read at every
        strength.
    """

    store: Store
    loss: Any
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
    uses_subspace: bool


class Candidates(NamedTuple):
    """Features that may enter the model, the strong set, in order of entry.

    Attributes
    ----------
    feature : (capacity,) integers
    every : (capacity,) integers
        0, 1, 2, ...: all candidates.
    number : (n_features,) integers
        Which candidate a feature is, -1 if none.
    screened : (n_features,)
        The factors of the penalty, infinite where a feature is a candidate.
    coef, slope : (capacity,)
        Coefficients of the scaled features, and their inner products with the dual point.
    mean : (capacity,)
        Mean that was subtracted from the copied columns.
    member : (capacity,) integers
        Index in the quadratic model, -1 outside.
    predicted, error : (capacity,)
        The coefficients after the predictor step at a strength, and its error: what the correctors
        added (`proxmargin.compiled.paths.steps`).
    columns : (capacity, n_samples), or empty
        Copied columns, centred and scaled.
    scalars : record of ``CANDIDATES``
    """

    feature: Any
    every: Any
    number: Any
    screened: Any
    coef: Any
    slope: Any
    mean: Any
    member: Any
    predicted: Any
    error: Any
    columns: Any
    scalars: Any


CANDIDATES = {"count": "i8"}


class PathModel(NamedTuple):
    """The quadratic model of the objective in some of the candidates, its members.

    Attributes
    ----------
    members : (capacity,) integers
        Candidates.
    mean : (capacity,)
        Means of their columns, weighted by the curvatures.
    weighted : (capacity, n_samples), or empty
        Copied columns less these means, times the roots of the curvatures; only valid while the
        Hessian is formed.
    curvatures, change : (n_samples,)
        Curvatures of the samples, and their last change.
    quadratic : Quadratic
    diagonal, gradient, start, step : (capacity,)
        Ridge and damping; gradient; start of the step; the step.
    net : Net
        Penalty of the members.
    scalars : record of ``MODEL``
    """

    members: Any
    mean: Any
    weighted: Any
    curvatures: Any
    change: Any
    quadratic: Any
    diagonal: Any
    gradient: Any
    start: Any
    step: Any
    net: Any
    scalars: Any


MODEL = {
    "size": "i8",  # number of members
    "factored": "i8",  # valid rows of the factor of the Hessian
    "formed": "i8",  # Hessians so far
    "total": "f8",  # sum of the curvatures; 0 without intercept
    "majorant": "f8",  # weight of the majoriser where the loss has no curvature
    "largest": "f8",  # largest diagonal entry of the Hessian
    "ridge": "f8",  # strength in the factor of the Hessian
    "damping": "f8",  # in the factor of the Hessian
}


class PathPoint(NamedTuple):
    """Scores and dual point at the coefficients of the candidates.

    Attributes
    ----------
    scores, dual, curvatures : (n_samples,)
        Scores without intercept, with the offset; the dual point and the curvatures there.
    change : (n_samples,)
        Of the scores by the last step.
    scalars : record of ``POINT``
    """

    scores: Any
    dual: Any
    curvatures: Any
    change: Any
    scalars: Any


POINT = {
    "intercept": "f8",  # for the centred columns
    "loss": "f8",
    "slope": "f8",  # derivative of minus the loss in the intercept
    "positive": "f8",  # sum of the dual coordinates of positive signs, before they are balanced
    "up": "f8",  # factor that balanced the dual coordinates of positive signs
    "down": "f8",  # the same for negative signs
    "projected": "f8",  # sum of the squared moves by the projection, over curvatures
    "largest_move": "f8",  # of a dual coordinate by the projection, relative to its interval
    "updates": "i8",  # steps added to the scores since these were computed from the coefficients
    "rounding": "f8",  # bound on the rounding of these
    "has_metric": "?",  # that of the projection is one of an earlier dual point
}


class Screening(NamedTuple):
    """Inner products of all features with the dual point, and the features still to check.

    Attributes
    ----------
    slope : (n_features,)
        Inner products, or estimates of them.
    to_check, near : (n_features,) integers
        Features whose inner products are needed at this strength, and perhaps at the next one.
    flags : (8 k,) bytes, words : (k,) integers of 64 bits
        Whether features are near, 0 or 1; and the same memory, eight flags a word.
    scalars : record of ``SCREENING``
    """

    slope: Any
    to_check: Any
    near: Any
    flags: Any
    words: Any
    scalars: Any


SCREENING = {
    "near": "i8",  # number of features that are
    "threshold": "f8",  # slope, over its factor, above which they are
}


class PathState(NamedTuple):
    """A path in progress; ``scalars`` is a record of ``PATH``."""

    data: Data
    unpenalised: Any
    candidates: Candidates
    model: PathModel
    point: PathPoint
    screening: Screening
    subspace: Any
    scalars: Any


PATH = {
    "steps": "i8",  # of Newton's method
    "last_step": "i8",  # number of steps after which to return
    "read": "f8",  # passes over the data, with passes over some columns as fractions
    "strength": "f8",  # l1 strength before
    "is_first": "?",  # until the predictor step at a strength
    "predicted": "f8",  # intercept after the predictor step
    "error": "f8",  # of that: the sum of the corrector steps
    "length": "f8",  # relative step: fall of the l1 strength over the strength before
}


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


class PathTarget(NamedTuple):
    """The thresholds and the tolerance of one strength.

    Attributes
    ----------
    l1, l2 : float
        Strengths of the features with the largest factor.
    threshold : float
        The slope, over its factor, from which a feature belongs to the model.
    next_threshold : float
        The expected one at the next strength, at most this strength.
    tol : float
        Relative duality gap.
    """

    l1: float
    l2: float
    threshold: float
    next_threshold: float
    tol: float
