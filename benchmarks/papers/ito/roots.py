"""Square roots of covariances as data, which is how Ito et al. (2017) solve MM-MPM."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from benchmarks.datasets import DataSet
from benchmarks.papers.ito.fapg import classes

__all__ = ["with_square_roots"]


def with_square_roots(data: DataSet) -> DataSet:
    """2 n points a class with its mean and covariance: ``mean +- sqrt(n) S^(1/2) e_j``.

    A fit to them takes as long for any number of samples, and has the same iterates.
    """
    design, n = data.design, data.design.shape[1]
    parts, labels = [], []
    for rows, sign in zip(classes(data.labels), (1.0, -1.0), strict=True):
        part = design[rows]
        mean = part.mean(axis=0)
        centred = part - mean
        values, vectors = eigh(centred.T @ centred / rows.size)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        parts += [mean + np.sqrt(n) * root, mean - np.sqrt(n) * root]
        labels.append(np.full(2 * n, sign))
    return DataSet(f"{data.name}, roots", np.vstack(parts), np.concatenate(labels))
