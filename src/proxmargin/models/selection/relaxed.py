"""Relaxed fits: chosen features fitted again without a penalty, and mixed with the penalised model.

As ``relax`` of glmnet (Hastie, Tibshirani and Tibshirani 2020): the coefficients are
``gamma * penalised + (1 - gamma) * unpenalised``, the second ones of the features that the first
ones use.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from proxmargin.compiled.rounding import TINY
from proxmargin.models.classifiers.elastic_net import ElasticNetEstimator
from proxmargin.models.fitting.assembly import Assembly
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.frames import users_level
from proxmargin.models.paths.found import Found, published
from proxmargin.models.paths.path import Path
from proxmargin.models.paths.strength import at_strength, problems_of
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList, combined
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import are_separated, null_point
from proxmargin.runtime.brief import shown

Array = NDArray[np.float64]
Index = NDArray[np.intp]

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # gammas of relaxed=True, those of glmnet
VALUE_ROUNDING = 1e-12  # relative rounding of an objective, added to gaps that are not small
SOLVER = "relaxed"
NO_REFIT = "the chosen features separate the classes, or are linearly dependent"
BECAUSE = "coefficients of the penalised minimiser mixed with an unpenalised fit of its features"


@dataclass(frozen=True, eq=False)
class Mixed:
    """The models of a path for one gamma."""

    path: Path  # its certificates are those of the penalised models
    # (n_strengths,) bool, whether the unpenalised fit exists; where it does not, the penalised
    # model stands
    exists: NDArray[np.bool_]


def shares_of(relaxed: Any) -> tuple[float, ...]:
    """The gammas for a value of ``relaxed``, the penalised model first. Raises ValueError: not a
    flag, nor numbers in [0, 1]."""
    if isinstance(relaxed, bool | np.bool_):
        return SHARES if relaxed else (1.0,)
    try:
        given = np.unique(np.asarray(relaxed, dtype=np.float64).ravel())
    except (TypeError, ValueError):
        given = np.empty(0)
    if not given.size or not np.all((given >= 0.0) & (given <= 1.0)):
        raise ValueError(f"relaxed must be True, False or numbers in [0, 1], got {shown(relaxed)}")
    return tuple(given[::-1].tolist())


def check_relaxed(template: MarginEstimator, n_classes: int) -> None:
    """Raise ValueError if the features of this model cannot be fitted without a penalty."""
    assert isinstance(template, ElasticNetEstimator)
    if not np.isfinite(template._margin_loss().smoothness):
        also = " and multi_class='ovr'" if n_classes > 2 else ""
        raise ValueError(
            "relaxed needs a smooth loss, and the hinge is not: use HuberizedSVCCV with a small "
            f"delta{also}"
        )
    if n_classes > 2 and template.multi_class == "joint":
        raise ValueError(
            f"relaxed fits one class at a time, and these are {n_classes} classes together: use "
            "multi_class='ovr'"
        )


def check_refits(scores: Array, shares: Sequence[float]) -> None:
    """Raise ValueError if only relaxed fits were asked for, and none has a score on every fold.
    ``scores``: (n_l1_ratios * n_shares, n_strengths, n_folds)."""
    if 1.0 not in shares and not np.isfinite(scores.mean(axis=2)).any():
        raise ValueError(
            f"relaxed={list(shares)}: no strength has an unpenalised fit with a score on every "
            f"fold: {NO_REFIT}; add 1 to relaxed for the penalised models, or give stronger "
            "penalties (the scoring may also have given no number)"
        )


def mixed_paths(path: Path, assembly: Assembly, shares: Sequence[float]) -> Iterator[Mixed]:
    """The path for each gamma; the unpenalised fits are made once."""
    everywhere = np.ones(len(path), np.bool_)
    if tuple(shares) == (1.0,):
        yield Mixed(path, everywhere)
        return
    refits, exists = _refits(path, assembly, range(len(path)))
    stacked, intercepts = published(path.template, assembly, refits)
    for share in shares:
        if share == 1.0:
            yield Mixed(path, everywhere)
            continue
        part = np.where(exists, share, 1.0)
        rows = np.repeat(part, path.intercepts.shape[1])
        own, other = sparse.diags_array(rows), sparse.diags_array(1.0 - rows)
        coefs = sparse.csr_array(own @ path.stacked + other @ stacked)
        shifts = part[:, None] * path.intercepts + (1.0 - part)[:, None] * intercepts
        yield Mixed(replace(path, stacked=coefs, intercepts=shifts), exists)


def mixed_models(
    best: MarginEstimator, path: Path, assembly: Assembly, column: int, share: float
) -> float:
    """Mix the fitted model of a strength with its unpenalised fit; returns gamma.

    That is 1 if there is no unpenalised fit, with a warning.

    The certificate is of the mixed coefficients as a solution of the penalised problem: by its
    lower bound, and their own objective.
    """
    if share == 1.0:
        return 1.0
    (parts,), (exists,) = _refits(path, assembly, [column])
    if not exists:
        warnings.warn(
            f"relaxed: on all rows {NO_REFIT}; they have no fit without a penalty, and the "
            "penalised model is kept (gamma_=1)",
            UserWarning,
            stacklevel=users_level(),
        )
        return 1.0
    stacked, intercepts = published(path.template, assembly, [parts])
    best.coef_ = share * best.coef_ + (1.0 - share) * stacked.toarray()
    best.intercept_ = share * best.intercept_ + (1.0 - share) * intercepts[0]
    problems = problems_of(at_strength(path.template, float(path.strengths[column])), assembly)
    given = best.certificate_
    each = given if isinstance(given, CertificateList) else [given]
    points, tol = assembly.points(best.coef_, best.intercept_), path.template.tol
    best.certificate_ = combined(
        [_certificate(*one, tol) for one in zip(problems, points, each, strict=True)]
    )
    return share


def _refits(
    path: Path, assembly: Assembly, columns: Sequence[int]
) -> tuple[list[list[Found]], NDArray[np.bool_]]:
    """The unpenalised fits of some strengths, of every problem; and whether all of them exist."""
    bare = problems_of(at_strength(path.template, 0.0), assembly)
    makers = [_Refits(problem) for problem in bare]
    origins = [problem.origin() for problem in bare]
    nothing = [_found(np.empty(0, np.intp), each.coef[:0], each.intercept) for each in origins]
    refits, exists = [], []
    for column in columns:
        rows = path._coef_sparse(column)
        used = [np.sort(rows.indices[a:b]).astype(np.intp) for a, b in pairwise(rows.indptr)]
        found = [make(each) for make, each in zip(makers, used, strict=True)]
        complete = [one for one in found if one is not None]
        exists.append(len(complete) == len(bare))
        refits.append(complete if exists[-1] else nothing)
    return refits, np.array(exists, np.bool_)


class _Refits:
    """Unpenalised fits of sets of features: neighbouring strengths often use the same set."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._known: dict[bytes, Found] = {}
        self._failing: list[frozenset[int]] = []

    def __call__(self, used: Index) -> Found | None:
        """The fit; None if the features are dependent, or separate the classes."""
        key, features = used.tobytes(), frozenset(used.tolist())
        # what fails for some features fails with more of them
        if key not in self._known and not any(part <= features for part in self._failing):
            part = self.problem.on_columns(used)
            if used.size and (part.unpenalised.size < used.size or are_separated(part)):
                self._failing.append(features)
            else:
                point = null_point(part)
                self._known[key] = _found(used, point.coef, point.intercept)
        return self._known.get(key)


def _found(features: Index, coef: Array, intercept: Array) -> Found:
    """One solution, whose objective and certificate nobody reads."""
    return Found(
        features=features,
        coef=coef,
        starts=np.array([0, features.size]),
        intercepts=intercept[None, :],
        primal=np.zeros(1),
        met=np.ones(1, np.bool_),
        certify=_unread,
    )


def _unread(number: int) -> Certificate:
    raise AssertionError("unpenalised fits have no certificate of the penalised problem")


def _certificate(problem: Problem, point: Point, penalised: Certificate, tol: float) -> Certificate:
    """The gap of a point by the lower bound of the minimiser's certificate."""
    primal = problem.value(point)
    gap = max(primal - penalised.dual, 0.0) + VALUE_ROUNDING * abs(primal)
    relative = gap / max(abs(primal), abs(penalised.dual), TINY)
    return replace(
        penalised,
        primal=primal,
        gap=gap,
        relative_gap=relative,
        kkt_residual=certify(problem, point).kkt_residual,
        converged=bool(relative <= tol),
        stop_reason=SOLVER,
        solver=SOLVER,
        because=BECAUSE,
    )
