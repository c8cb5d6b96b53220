"""Hinge models with flat penalties as one large linear program each, with all rows and columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

__all__ = ["WholeProgram", "whole_program"]


class WholeProgram(NamedTuple):
    """The optimal value, coefficients (K, p) or (p,) if binary, and offsets."""

    value: float
    coef: np.ndarray
    offsets: np.ndarray


def whole_program(
    X: Any,
    y: np.ndarray,
    strength: float,
    *,
    loss: str = "worst",
    groups: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    offsets: bool = True,
    budget: float | None = None,
) -> WholeProgram:
    """``min mean loss + strength penalty``, or ``min strength penalty s.t. mean loss <= budget``.

    Parameters
    ----------
    y : classes 0 to K-1; for ``loss='binary'`` signs
    loss : 'worst' (Crammer and Singer), 'wrong' (Lee, Lin and Wahba, rows that sum to zero) or
        'binary'
    groups : (K, p), optional
        Labels of the groups whose largest entry is penalised; the l1 norm by default.
    """
    X = np.asarray(X.todense()) if sp.issparse(X) else np.asarray(X)
    n, p = X.shape
    K = 1 if loss == "binary" else int(y.max()) + 1
    weights = np.ones(n) if weights is None else weights
    shares = weights / weights.sum()
    signs = np.eye(K)[y] if loss != "binary" else None
    pieces = []  # sample, hinge, what multiplies the scores
    for i in range(n):
        for k in range(K):
            if loss == "binary":
                pieces.append((i, i, y[i] * np.ones(1)))
            elif k != y[i]:
                other = signs[i] if loss == "worst" else np.zeros(K)
                hinge = i if loss == "worst" else i * K + k
                pieces.append((i, hinge, other - np.eye(K)[k]))
    hinges = n * K if loss == "wrong" else n
    costs = np.repeat(shares, K) if loss == "wrong" else shares
    labels = np.arange(K * p) if groups is None else np.unique(groups, return_inverse=True)[1]
    labels = labels.ravel()
    count = int(labels.max()) + 1
    # columns: W, offsets, one bound a group, hinges
    size = K * p + K + count + hinges
    rows, low = [], []
    for i, hinge, gain in pieces:
        row = np.zeros(size)
        row[: K * p] = np.kron(gain, X[i])
        row[K * p : K * p + K] = gain
        row[K * p + K + count + hinge] = 1.0
        rows.append(row)
        low.append(1.0)
    for j, label in enumerate(labels):
        for sign in (-1.0, 1.0):
            row = np.zeros(size)
            row[j], row[K * p + K + label] = sign, 1.0
            rows.append(row)
            low.append(0.0)
    cost = np.zeros(size)
    cost[K * p + K : K * p + K + count] = strength
    if budget is None:
        cost[K * p + K + count :] = costs
    else:
        row = np.zeros(size)
        row[K * p + K + count :] = -costs
        rows.append(row)
        low.append(-budget)
    equal = []
    if loss == "wrong":
        for part in np.eye(p):
            row = np.zeros(size)
            row[: K * p] = np.tile(part, K)
            equal.append(row)
        row = np.zeros(size)
        row[K * p : K * p + K] = 1.0
        equal.append(row)
    free = [(None, None)] * (K * p)
    free += [(None, None) if offsets else (0.0, 0.0)] * K
    found = linprog(
        cost,
        A_ub=-sp.csr_array(np.array(rows)),
        b_ub=-np.array(low),
        A_eq=sp.csr_array(np.array(equal)) if equal else None,
        b_eq=np.zeros(len(equal)) if equal else None,
        bounds=free + [(0.0, None)] * (count + hinges),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.success, found.message
    coef = found.x[: K * p].reshape(K, p)
    return WholeProgram(float(found.fun), coef, found.x[K * p : K * p + K])
