"""A path in progress: the data, the candidates, the quadratic model, the point and its dual.

Numbers that kernels change are the fields of NumPy records, ``scalars`` of each part (`record`).
Kernels take the parts that they read or change. (No field of a named tuple has the name of a method
of `proxmargin.compiled.losses.scalars`: Numba would find that.)
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Any, NamedTuple

import numpy as np


class PathOutcome(IntEnum):
    """Why a call has ended."""

    DONE = auto()
    CANDIDATES_FULL = auto()  # no room for a feature that enters
    MODEL_FULL = auto()  # no room for a feature in the quadratic model
    SOLUTIONS_FULL = auto()  # no room for the coefficients of a solution
    GAVE_UP = auto()  # the tolerance was not met
    STEPS_TAKEN = auto()  # the last step that was allowed has been taken


def record(kind: dict[str, str]) -> Any:
    """Zeros with names, which kernels read and write as attributes."""
    return np.zeros(1, list(kind.items()))[0]


class ColumnCache(NamedTuple):
    """Contiguous copies of the most recently used columns of dense data that are stored by rows."""

    columns: Any  # (capacity, n_samples)
    owner: Any  # (capacity,) integers; feature of each copy, -1 where there is none
    place: Any  # (n_features,) integers; index of the copy of each feature, -1 where it has none
    scalars: Any  # record of ``CACHE``


CACHE = {"copied": "i8"}  # columns so far


class Store(NamedTuple):
    """The entries of the data, dense or compressed by columns; kernels are compiled for both."""

    is_sparse: bool
    sparse: Any  # Compressed; empty if the data are dense
    # (n_samples, n_features), or its transpose; contiguous; empty if the data are sparse
    lines: Any
    by_rows: bool  # lines are samples
    # candidates have centred copies of their columns: dense data with more features than samples
    copies: bool
    cache: ColumnCache  # of other features of such data


class Data(NamedTuple):
    """What does not change along a path: entries, loss, and penalty at strength one."""

    store: Store
    loss: Any  # Loss
    # (n_samples,)
    signs: Any
    weights: Any
    offset: Any  # (n_samples,), or empty; constant added to the scores
    largest_offset: float
    # (n_features,); the features of the problem are ``(x_j - centre_j) inverse_j``
    centre: Any
    inverse: Any
    # (n_features,); Euclidean norms of the uncentred columns times ``inverse``, rounded up; and the
    # largest absolute entries of the features of the problem
    norms: Any
    bounds: Any
    # (n_features,); factors and bounds of the penalty
    factor: Any
    lower: Any
    upper: Any
    free: bool  # the intercept is not penalised
    jumps: bool  # the curvature of the loss is not continuous
    # features are proven inactive by former dual points; otherwise all are read at every strength
    uses_subspace: bool


class Candidates(NamedTuple):
    """Features that may enter the model, the strong set, in order of entry."""

    feature: Any  # (capacity,) integers
    every: Any  # (capacity,) integers; 0, 1, 2, ...: all candidates
    number: Any  # (n_features,) integers; which candidate a feature is, -1 if none
    # (n_features,); the factors of the penalty, infinite where a feature is a candidate
    outside_factor: Any
    # (capacity,); coefficients of the scaled features, and their inner products with the dual point
    coef: Any
    correlation: Any
    mean: Any  # (capacity,); mean that was subtracted from the copied columns
    member: Any  # (capacity,) integers; index in the quadratic model, -1 outside
    # (capacity,); the coefficients after the predictor step at a strength, and its error: what the
    # correctors added (`proxmargin.compiled.paths.steps`)
    predicted: Any
    error: Any
    columns: Any  # (capacity, n_samples), or empty; copied columns, centred and scaled
    scalars: Any  # record of ``CANDIDATES``


CANDIDATES = {"count": "i8"}


class PathModel(NamedTuple):
    """The quadratic model of the objective in some of the candidates, its members."""

    members: Any  # (capacity,) integers; candidates
    mean: Any  # (capacity,); means of their columns, weighted by the curvatures
    # (capacity, n_samples), or empty; copied columns less these means, times the roots of the
    # curvatures; only valid while the Hessian is formed
    weighted: Any
    # (n_samples,); curvatures of the samples, and their last change
    curvatures: Any
    change: Any
    quadratic: Any  # Quadratic
    # (capacity,); ridge and damping; gradient; start of the step; the step
    diagonal: Any
    gradient: Any
    start: Any
    step: Any
    net: Any  # Net; penalty of the members
    scalars: Any  # record of ``MODEL``


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
    """Scores and dual point at the coefficients of the candidates."""

    # (n_samples,); scores without intercept, with the offset; the dual point and the curvatures
    # there
    scores: Any
    dual: Any
    curvatures: Any
    change: Any  # (n_samples,); of the scores by the last step
    scalars: Any  # record of ``POINT``


POINT = {
    "intercept": "f8",  # for the centred columns
    "loss": "f8",
    "dual_sum": "f8",  # minus the derivative of the loss in the intercept
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
    """Inner products of all features with the dual point, and the features still to check."""

    correlation: Any  # (n_features,); inner products, or estimates of them
    # (n_features,) integers; features whose inner products are needed at this strength, and perhaps
    # at the next one
    to_check: Any
    near: Any
    # (8 k,) bytes, words : (k,) integers of 64 bits; whether features are near, 0 or 1; and the
    # same memory, eight flags a word
    flags: Any
    words: Any
    scalars: Any  # record of ``SCREENING``


SCREENING = {
    "near": "i8",  # number of features that are
    "threshold": "f8",  # correlation, over its factor, above which they are
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
    """Strengths, and the solution of each."""

    # (n_strengths,)
    l1: Any
    l2: Any
    # (n_strengths + 1,), indices, values : (capacity,); coefficients, compressed by strengths
    indptr: Any
    indices: Any
    values: Any
    # (n_strengths,)
    intercepts: Any
    gaps: Any
    objectives: Any
    violations: Any
    passes: Any
    steps: Any


class PathTarget(NamedTuple):
    """The thresholds and the tolerance of one strength."""

    # strengths of the features with the largest factor
    l1: float
    l2: float
    threshold: float  # the correlation, over its factor, from which a feature belongs to the model
    next_threshold: float  # the expected one at the next strength, at most this strength
    tol: float  # relative duality gap
