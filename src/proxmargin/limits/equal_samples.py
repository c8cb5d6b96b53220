"""Limits of nu and kappa with a strictly positive definite kernel: only equal samples matter.

The Gram matrix of distinct samples is then positive definite, so that some model gives them any
scores: two classes are told apart but for samples that both have. Their shares in each class decide
both limits exactly, without a value of the kernel.
"""

from __future__ import annotations

from math import inf

import numpy as np

from proxmargin.kernels.matrix import KernelMatrix
from proxmargin.losses.base import Array

__all__ = ["class_shares", "fisher_limit", "halves", "meeting_share"]


def class_shares(matrix: KernelMatrix, signs: Array, shares: Array) -> tuple[Array, Array]:
    """The share of each distinct sample in all samples, as one of the positive class and as one of
    the negative, (n_distinct,) each."""
    _, sample = np.unique(matrix.first_of_equals(), return_inverse=True)
    up, down = np.zeros((2, int(sample.max()) + 1))
    np.add.at(up, sample, np.where(signs > 0, shares, 0.0))
    np.add.at(down, sample, np.where(signs > 0, 0.0, shares))
    live = up + down > 0
    return up[live], down[live]


def meeting_share(up: Array, down: Array) -> float:
    """The largest nu at which the reduced hulls meet: equal samples of both classes cancel."""
    return 2.0 * float(np.minimum(up, down).sum())


def fisher_limit(up: Array, down: Array) -> float:
    """kappa_max of MM-FDA: ``sqrt((1 - 2 c) / c)``, ``c = sum p q / (p + q)``.

    p and q are the shares of the distinct samples in their class. With ``A = diag(p + q)`` the
    covariances are ``S+ + S- = A - p p' - q q'``, of which ``A^-1 (p - q)`` is an eigenvector with
    respect to A, of eigenvalue ``2 c``; its square in A is ``2 - 4 c``.
    """
    p, q = up / up.sum(), down / down.sum()
    shared = float((p * q / (p + q)).sum())
    return float(np.sqrt(max(1.0 - 2.0 * shared, 0.0) / shared)) if shared > 0 else inf


def halves(up: Array, down: Array, m: float) -> tuple[float, float]:
    """``|g+|, |g-|`` of the g with ``Z g = D`` and the least ``m |g+|^2 + (1 - m) |g-|^2``.

    The scores w of the distinct samples solve ``(S+ / m + S- / (1 - m)) w = p - q``; of the
    solutions, which differ by a constant, the one with ``q'w = 0``.
    """
    p, q = up / up.sum(), down / down.sum()
    both = p / m + q / (1.0 - m)
    level = float((q * q / both).sum()) / float((p * q / both).sum())
    w = (level * p - q) / both
    apart = w - float(p @ w)
    return float(np.sqrt(p @ apart**2)) / m, float(np.sqrt(q @ w**2)) / (1.0 - m)
