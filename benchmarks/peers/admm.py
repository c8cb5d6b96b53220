"""ADMM of Ye, Chen and Xie (2011) for the hinge with an elastic net, the reference of Xu et al.

    minimise (1/n) sum [a_i]_+ + l1 ||c||_1 + (l2/2) ||w||^2
    subject to  a = 1 - Y (X w + b),  c = w

with multipliers g1, g2 and penalty parameters mu1 = 100/n, mu2 = 50 as Xu et al. set them. It
solves another model (their (1): hinge, no ridge on the intercept) and stops by relative changes;
it is timed, never certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from benchmarks.datasets import Design
from benchmarks.objective import Floats, Problem
from benchmarks.peers.base import Fitted

# penalties of the augmented Lagrangian
MU1_TIMES_N = 100.0
MU2 = 50.0
TIMES = 3  # the rule must hold this often in a row
MOST_ITERATIONS = 100_000


@dataclass(frozen=True)
class Variables:
    """w (p,), b, c (p,), a (n,) and the multipliers g1 (n,), g2 (p,)."""

    w: Floats
    b: float
    a: Floats
    c: Floats
    g1: Floats
    g2: Floats


@dataclass(frozen=True)
class AdmmPeer:
    """Dense designs; the setting is the tolerance on relative changes."""

    name: str = "ADMM (hinge)"
    ladder: tuple[float, ...] = (1e-3, 1e-5)

    def solves(self, problem: Problem) -> str | None:
        return None if isinstance(problem.design, np.ndarray) else "dense designs only"

    def prepared(self, design: Design) -> Design:
        return np.asfortranarray(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        n, p = problem.design.shape
        at = Variables(np.zeros(p), 0.0, np.ones(n), np.zeros(p), np.zeros(n), np.zeros(p))
        solve = ridge_solver(problem.design, problem.l2 + MU2, MU1_TIMES_N / n)
        value, calm = hinge_objective(problem, at.c, at.b), 0
        iteration = 0
        while calm < TIMES and iteration < MOST_ITERATIONS:
            iteration += 1
            before, value_before = at, value
            at = updated(problem, at, solve)
            value = hinge_objective(problem, at.c, at.b)
            calm = calm + 1 if _small_change(before, at, value_before, value, setting) else 0
        return Fitted(at.c, at.b, iterations=iteration)


def updated(
    problem: Problem, at: Variables, solve: Callable[[Floats], tuple[Floats, float]]
) -> Variables:
    """One round: (w, b) jointly, then a and c, then the multipliers."""
    X, y = problem.design, problem.labels
    mu1 = MU1_TIMES_N / len(y)
    pull = y * (at.g1 + mu1 * (1.0 - at.a))
    w, b = solve(np.append(X.T @ pull - at.g2 + MU2 * at.c, pull.sum()))
    slack = 1.0 - y * (X @ w + b)
    a = hinge_prox(slack + at.g1 / mu1, 1.0 / (len(y) * mu1))
    moved = w + at.g2 / MU2
    c = np.sign(moved) * np.maximum(np.abs(moved) - problem.l1 / MU2, 0.0)
    return Variables(w, b, a, c, at.g1 + mu1 * (slack - a), at.g2 + MU2 * (w - c))


def hinge_prox(at: Floats, step: float) -> Floats:
    """argmin over a of step [a]_+ + (a - at)^2 / 2."""
    return np.where(at > step, at - step, np.minimum(at, 0.0))


def ridge_solver(X: Floats, kappa: float, mu: float) -> Callable[[Floats], tuple[Floats, float]]:
    """(w, b) with kappa w + mu X'(X w + b) = r_w and mu 1'(X w + b) = r_b, factored once.

    b is eliminated by centring; the smaller of the p x p and n x n systems is factored.
    """
    n, p = X.shape
    mean = X.mean(axis=0)
    centred = X - mean
    wide = p > n
    gram = centred @ centred.T if wide else centred.T @ centred
    factor = cho_factor(kappa * np.eye(min(n, p)) + mu * gram)

    def solve(right: Floats) -> tuple[Floats, float]:
        total = float(right[-1])
        target = right[:-1] - total * mean
        if wide:
            inner = cho_solve(factor, centred @ target)
            w = (target - mu * (centred.T @ inner)) / kappa
        else:
            w = cho_solve(factor, target)
        return w, total / (mu * n) - float(mean @ w)

    return solve


def hinge_objective(problem: Problem, w: Floats, b: float) -> float:
    """Model (1) of the paper at (w, b)."""
    t = problem.labels * (problem.design @ w + b)
    penalty = problem.l1 * np.abs(w).sum() + problem.l2 / 2.0 * w @ w
    return float(np.maximum(1.0 - t, 0.0).mean() + penalty)


def _small_change(
    before: Variables, at: Variables, value_before: float, value: float, tol: float
) -> bool:
    moved = np.append(at.c - before.c, at.b - before.b)
    size = np.linalg.norm(np.append(before.c, before.b))
    change = abs(value_before - value) / (1.0 + abs(value_before))
    return bool(change <= tol and np.linalg.norm(moved) <= tol * (1.0 + size))
