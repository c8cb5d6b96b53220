"""Algorithm 4 of Ito et al. (2017) on the nu-SVM with a kernel matrix: one product with it a step.

As the paper has it; the library's own fits of kernels work with a factor G of the matrix, whose
products with G and G' take twice as long where G has as many columns as rows. The gradient at the
extrapolated point is a combination of those at iterates, so that a trial of a step length costs
one product, and the value of f none.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.datasets import DataSet, Floats
from benchmarks.papers.ito.boxes import capped_simplex
from benchmarks.papers.ito.fapg import EPSILON, Fit, classes, repeated

__all__ = ["largest_eigenvalue", "nu_svm"]

ETA = 1.1
STABILITY = 0.8  # delta
PATIENCE = 100  # K_1, as in Table 4
TESTED = 10  # iterations between tests of L
CHECKED = 100  # and of the residual


def nu_svm(data: DataSet, nu: float, most: int) -> Fit:
    """(14) with the RBF kernel of gamma 1/n; seconds with those of the kernel matrix.

    L_k and the tests of them are those of `fapg.Recorded`.
    """

    def run() -> tuple[int, bool, list[float]]:
        kernel = _matrix(data)
        kernel *= data.labels[:, None]
        kernel *= data.labels
        return _minimised(kernel, data.labels, nu, most)

    iterations, met, constants = run()
    taken = repeated(run)
    mean, largest = float(np.mean(constants)), float(np.max(constants))
    return Fit(taken, iterations, met, mean, largest, float("nan"), None)


def largest_eigenvalue(data: DataSet) -> float:
    """L_f: of the kernel matrix."""
    last = data.labels.size - 1
    return float(eigh(_matrix(data), eigvals_only=True, subset_by_index=(last, last))[0])


def _matrix(data: DataSet) -> Floats:
    design = data.design.toarray() if sp.issparse(data.design) else data.design
    found: Floats = rbf_kernel(design, gamma=1.0 / design.shape[1])
    return found


def _minimised(Q: Floats, y: Floats, nu: float, most: int) -> tuple[int, bool, list[float]]:
    parts, cap = classes(y), 1.0 / (y.size * nu)

    def project(point: Floats) -> Floats:
        found = np.empty_like(point)
        for rows in parts:
            found[rows] = capped_simplex(point[rows], 0.5, cap)
        return found

    point = np.empty(y.size)
    for rows in parts:
        point[rows] = 0.5 / rows.size
    base, slope = point, Q @ point  # beta and Q beta
    point_slope = slope
    lipschitz, t, decrease = float(Q.diagonal().max()) / ETA, 1.0, ETA
    restart, patience, constants = 0, PATIENCE, []
    for k in range(1, most + 1):
        new = project(base - slope / lipschitz)
        moved = new - base
        new_slope = Q @ new
        while k % TESTED == 1 and moved @ (new_slope - slope) > lipschitz * (moved @ moved):
            lipschitz *= ETA
            new = project(base - slope / lipschitz)
            moved, new_slope = new - base, Q @ new
        constants.append(lipschitz)
        if lipschitz * float(np.linalg.norm(moved)) <= EPSILON:
            return k, True, constants
        if k % CHECKED == 1:
            again = project(new - new_slope / lipschitz)
            if lipschitz * float(np.linalg.norm(again - new)) <= EPSILON:
                return k, True, constants
        if k % TESTED == 0:
            lipschitz /= decrease
        if k > restart + patience and slope @ (new - point) > 0.0:
            restart, patience = k, 2 * patience
            decrease = STABILITY * decrease + 1.0 - STABILITY
            base, slope, t = point, point_slope, 1.0
            continue
        t_new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t**2))
        push = (t - 1.0) / t_new
        base = new + push * (new - point)
        slope = new_slope + push * (new_slope - point_slope)
        point, point_slope, t = new, new_slope, t_new
    return most, False, constants
