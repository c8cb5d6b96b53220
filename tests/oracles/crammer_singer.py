"""The multiclass hinge of Crammer and Singer written down a second time, and its optimum."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import scipy.sparse as sp

from tests.oracles.models import TIGHT

__all__ = ["crammer_singer_objective", "crammer_singer_optimum"]


def crammer_singer_objective(X, y, W, b, *, l1=0.0, l2=0.0, weights=None) -> float:
    """``sum s_i max_k (z_ik + [k != y] - z_iy) + l1 |W|_1 + l2/2 |W|^2``; W is (p, K)."""
    scores = X @ W + b
    weights = np.ones(len(y)) if weights is None else weights
    margins = scores - scores[np.arange(len(y)), y][:, None] + 1.0
    margins[np.arange(len(y)), y] = 0.0
    loss = float(weights @ margins.max(axis=1)) / float(weights.sum())
    return loss + l1 * float(np.abs(W).sum()) + 0.5 * l2 * float((W**2).sum())


def crammer_singer_optimum(X, y, *, l1=0.0, l2=0.0, weights=None, fit_intercept=True) -> float:
    """The optimal objective by Clarabel: one row for each sample and wrong class."""
    n, p = X.shape
    classes = int(y.max()) + 1
    weights = np.ones(n) if weights is None else weights
    W, b, xi = cp.Variable((p, classes)), cp.Variable(classes), cp.Variable(n, nonneg=True)
    samples, wrong = np.nonzero(np.arange(classes) != y[:, None])
    pick = sp.csr_array(
        (np.ones(samples.size), (np.arange(samples.size), samples)), (samples.size, n)
    )
    differ = np.zeros((samples.size, classes))
    differ[np.arange(samples.size), wrong] = 1.0
    differ[np.arange(samples.size), y[samples]] -= 1.0
    gains = cp.sum(cp.multiply(differ, (pick @ sp.csr_array(X)) @ W), axis=1) + differ @ b
    limits = [pick @ xi >= 1 + gains]
    if not fit_intercept:
        limits.append(b == 0)
    cost = weights @ xi / weights.sum() + 0.5 * l2 * cp.sum_squares(W)
    if l1 > 0:
        cost += l1 * cp.sum(cp.abs(W))
    problem = cp.Problem(cp.Minimize(cost), limits)
    problem.solve(solver=cp.CLARABEL, **TIGHT)
    return crammer_singer_objective(X, y, W.value, b.value, l1=l1, l2=l2, weights=weights)
