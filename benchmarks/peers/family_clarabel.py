"""Clarabel, an interior point method for cones, through cvxpy: every model in its primal form.

The time is that of the factors of the covariances and of the solver's call: cvxpy's translation
into cones is outside the clock.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Design
from benchmarks.family import Case, Ellipsoids, Hinge, InBall, Regularized, Tail
from benchmarks.objective import SquaredHinge
from benchmarks.peers.base import Fitted, row_major


@dataclass(frozen=True)
class ClarabelPeer:
    """The tolerance is that of gaps and feasibility; `most` are the stored entries it is given."""

    most: int
    name: str = "Clarabel"
    ladder: tuple[float, ...] = (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
    compiles: bool = False

    def solves(self, case: Case) -> bool:
        stored = case.design.nnz if sp.issparse(case.design) else case.design.size
        return stored <= self.most and not getattr(case.model, "augmented", False)

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        import cvxpy as cp

        start = _now()
        factors = spread(case) if isinstance(case.model, Ellipsoids) else []
        factored = _now() - start
        w, b = cp.Variable(case.design.shape[1]), cp.Variable()
        objective, constraints = stated(case, w, b, factors)
        program = cp.Problem(objective, constraints)
        tolerances = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), setting)
        data, chain, inverse = program.get_problem_data(cp.CLARABEL, solver_opts=tolerances)
        start = _now()
        raw = chain.solve_via_data(program, data, solver_opts=tolerances)
        wall, cpu = factored + _now() - start
        program.unpack_results(raw, chain, inverse)
        return Fitted(
            coef=np.asarray(w.value),
            intercept=0.0 if b.value is None else float(b.value),
            iterations=int(program.solver_stats.num_iters),
            dual=_multipliers(case, constraints),
            clocked=(wall, cpu),
        )


def _now() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def _multipliers(case: Case, constraints: list[Any]) -> np.ndarray | None:
    """alpha where the model has a constraint a sample, for the models whose losses have kinks."""
    match case.model:
        case Tail():
            return np.asarray(constraints[0].dual_value)
        case Regularized(loss=Hinge(), C=C):
            return np.asarray(constraints[0].dual_value) / C
    return None


def stated(case: Case, w: Any, b: Any, factors: list[np.ndarray]) -> tuple[Any, list[Any]]:
    """The objective and the constraints of the model, with factors for those with ellipsoids."""
    import cvxpy as cp

    rows = case.labels.size
    half = cp.sum_squares(w) / 2
    if isinstance(case.model, Ellipsoids):
        deviations = sum(cp.norm(factor @ w) for factor in factors)
        return cp.Minimize(half + case.model.kappa * deviations - _difference(case) @ w), []
    t = cp.multiply(case.labels, case.design @ w + b)
    slack = cp.Variable(rows, nonneg=True)
    match case.model:
        case Regularized(loss=Hinge(), C=C):
            return cp.Minimize(half + C * cp.sum(slack)), [slack >= 1 - t]
        case Regularized(loss=SquaredHinge(), C=C):
            return cp.Minimize(half + C * cp.sum_squares(slack)), [slack >= 1 - t]
        case Regularized(C=C):
            return cp.Minimize(half + C * cp.sum(cp.logistic(-t))), []
        case Tail(nu=nu):
            rho = cp.Variable()
            return cp.Minimize(half - rho + cp.sum(slack) / (rows * nu)), [slack >= rho - t]
        case InBall(loss=loss):
            cost = cp.sum(cp.inv_pos(t + slack)) + cp.sum(slack) / loss.threshold**2
            return cp.Minimize(cost), [cp.norm(w) <= 1]
    raise TypeError(f"no program states {case.model!r}")


def _difference(case: Case) -> np.ndarray:
    """Of the class means."""
    weights = np.where(case.labels > 0, 1.0 / (case.labels > 0).sum(), 0.0)
    weights -= np.where(case.labels < 0, 1.0 / (case.labels < 0).sum(), 0.0)
    return np.asarray(case.design.T @ weights)


def spread(case: Case) -> list[np.ndarray]:
    """A factor for each ellipsoid, whose Gram matrix is the covariance (MM-FDA: their sum)."""
    dense = case.design.toarray() if sp.issparse(case.design) else case.design
    parts = [dense[case.labels == sign] for sign in (1.0, -1.0)]
    roots = [(part - part.mean(axis=0)) / np.sqrt(len(part)) for part in parts]
    roots = [np.vstack(roots)] if case.model.joint else roots
    return [np.linalg.qr(r, mode="r") if r.shape[0] > r.shape[1] else r for r in roots]
