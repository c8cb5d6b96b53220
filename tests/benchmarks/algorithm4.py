"""Algorithm 4 of Ito et al. (2017) in plain NumPy, by the formulas of the paper: an oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Dual(NamedTuple):
    """``min f over a set``, with where to start."""

    value: Callable[[Array], float]
    gradient: Callable[[Array], Array]
    project: Callable[[Array], Array]
    start: Array
    lipschitz: float


def algorithm4(dual: Dual, epsilon: float, patience: int, tests_only: bool) -> list[float]:
    """The L_k of all iterations; ``tests_only``: 'dec' only before a test of L."""
    eta, stability = 1.1, 0.8
    point = base = dual.start
    lipschitz, t, restart, decrease = dual.lipschitz, 1.0, 0, 1.1
    if tests_only:
        lipschitz /= decrease
    constants: list[float] = []
    for k in range(1, 10_000):
        slope = dual.gradient(base)
        new = dual.project(base - slope / lipschitz)
        if k % 10 == 1:
            while dual.value(new) > _model(dual, base, slope, new, lipschitz):
                lipschitz *= eta
                new = dual.project(base - slope / lipschitz)
        constants.append(lipschitz)
        if lipschitz * np.linalg.norm(new - base) <= epsilon:
            return constants
        if k % 100 == 1:
            again = dual.project(new - dual.gradient(new) / lipschitz)
            if lipschitz * np.linalg.norm(again - new) <= epsilon:
                return constants
        if not tests_only or k % 10 == 0:
            lipschitz /= decrease
        t_new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t**2))
        pushed = new + (t - 1.0) / t_new * (new - point)
        if k > restart + patience and slope @ (new - point) > 0:
            restart, patience = k, 2 * patience
            decrease = stability * decrease + 1.0 - stability
            base, t = point, 1.0
        else:
            point, base, t = new, pushed, t_new
    return constants


def _model(dual: Dual, base: Array, slope: Array, new: Array, lipschitz: float) -> float:
    moved = new - base
    return dual.value(base) + slope @ moved + 0.5 * lipschitz * float(moved @ moved)


def nu_svm(X: Array, y: Array, nu: float) -> Dual:
    """(14)."""
    rows, cap = y[:, None] * X, 1.0 / (y.size * nu)
    start = np.where(y > 0, 0.5 / (y > 0).sum(), 0.5 / (y < 0).sum())

    def project(alpha: Array) -> Array:
        found = np.empty_like(alpha)
        for one in (y > 0, y < 0):
            found[one] = _with_sum(alpha[one], np.ones(one.sum()), 0.0, cap, 0.5)
        return found

    return Dual(
        lambda alpha: 0.5 * float(np.sum((rows.T @ alpha) ** 2)),
        lambda alpha: rows @ (rows.T @ alpha),
        project,
        start,
        float((rows**2).sum(axis=1).max()),
    )


def logistic(X: Array, y: Array, C: float, xi: float) -> Dual:
    """(13) on ``xi <= alpha <= 1 - xi``; f is continued outside of it by parabolas."""
    rows = y[:, None] * X

    def parts(alpha: Array) -> tuple[Array, Array, Array, Array]:
        held = np.clip(alpha, xi, 1.0 - xi)
        entropy = held * np.log(held) + (1.0 - held) * np.log(1.0 - held)
        return alpha - held, entropy, np.log(held / (1.0 - held)), 1.0 / (held * (1.0 - held))

    def value(alpha: Array) -> float:
        off, entropy, slope, bend = parts(alpha)
        square = 0.5 * C * float(np.sum((rows.T @ alpha) ** 2))
        return square + float(np.sum(entropy + off * (slope + 0.5 * bend * off)))

    def gradient(alpha: Array) -> Array:
        off, _, slope, bend = parts(alpha)
        return C * (rows @ (rows.T @ alpha)) + slope + bend * off

    def project(alpha: Array) -> Array:
        return _with_sum(alpha, y, xi, 1.0 - xi, 0.0)

    return Dual(value, gradient, project, project(np.full(y.size, xi)), 1.0)


def mm_mpm(X: Array, y: Array, kappa: float) -> Dual:
    """(17) with the n x n square roots of the covariances."""
    up, down = X[y > 0], X[y < 0]
    difference = up.mean(axis=0) - down.mean(axis=0)
    covariances = [np.cov(part.T, bias=True) for part in (up, down)]
    roots = []
    for one in covariances:
        values, vectors = np.linalg.eigh(one)
        roots.append((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
    both, n = np.hstack([roots[0], -roots[1]]), X.shape[1]

    def project(u: Array) -> Array:
        parts = (u[:n], u[n:])
        return np.concatenate([one * min(1.0, kappa / max(_norm(one), 1e-300)) for one in parts])

    return Dual(
        lambda u: 0.5 * float(np.sum((difference + both @ u) ** 2)),
        lambda u: both.T @ (difference + both @ u),
        project,
        np.zeros(2 * n),
        float(max(np.diag(one).max() for one in covariances)),
    )


def _norm(values: Array) -> float:
    return float(np.linalg.norm(values))


def _with_sum(point: Array, signs: Array, low: float, high: float, total: float) -> Array:
    """The nearest point of a box with ``signs'alpha = total``, by bisection."""
    least, most = -1e4, 1e4
    for _ in range(200):
        theta = 0.5 * (least + most)
        if signs @ np.clip(point - theta * signs, low, high) > total:
            least = theta
        else:
            most = theta
    return np.clip(point - theta * signs, low, high)
