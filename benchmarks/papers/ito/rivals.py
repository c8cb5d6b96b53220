"""The rivals of Ito et al. (2017): LIBSVM and LIBLINEAR of scikit-learn, Clarabel for SeDuMi."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn import svm
from sklearn.linear_model import LogisticRegression

from benchmarks.datasets import DataSet
from benchmarks.family import Case, Model
from benchmarks.papers.ito.fapg import EPSILON, repeated
from benchmarks.peers.family_clarabel import ClarabelPeer
from benchmarks.report import seconds

__all__ = [
    "COMPETITIVE",
    "LATE",
    "LIBLINEAR_PASSES",
    "SMALL_PROGRAM",
    "interior_point",
    "liblinear",
    "libsvm",
    "shown",
]

LATE = float("inf")  # seconds of a rival that met its limit of iterations
LIBSVM_STEPS = 3_000_000  # of one pair of samples
LIBLINEAR_PASSES = 20_000  # the default is 1000, which the paper's machine exceeds
SMALL_PROGRAM = 300_000  # entries of X up to which the interior point method is asked
CACHE_MB = 1000
COMPETITIVE = 5.0  # ratio of the seconds up to which a method is: not printed


def libsvm(data: DataSet, nu: float, kernel: str = "linear") -> float:
    """CPU seconds of LIBSVM for (14), without shrinking as there; RBF with gamma 1/n."""
    rival = svm.NuSVC(
        nu=nu,
        kernel=kernel,
        gamma=1.0 / data.design.shape[1],
        tol=EPSILON,
        shrinking=False,
        cache_size=CACHE_MB,
        max_iter=LIBSVM_STEPS,
    )
    taken = repeated(lambda: rival.fit(data.design, data.labels))
    return LATE if np.max(rival.n_iter_) >= LIBSVM_STEPS else taken


def liblinear(data: DataSet, C: float, loss: str) -> float:
    """CPU seconds of LIBLINEAR's dual coordinate descent, without an intercept as there."""
    if loss == "logistic":
        rival = LogisticRegression(
            C=C, solver="liblinear", dual=True, fit_intercept=False, tol=EPSILON
        )
    else:
        rival = svm.LinearSVC(C=C, loss=loss, dual=True, fit_intercept=False, tol=EPSILON)
    rival.set_params(max_iter=LIBLINEAR_PASSES, random_state=0)
    taken = repeated(lambda: rival.fit(data.design, data.labels))
    return LATE if np.max(rival.n_iter_) >= LIBLINEAR_PASSES else taken


def interior_point(data: DataSet, model: Model, most: int = SMALL_PROGRAM) -> float:
    """CPU seconds of Clarabel, in place of SeDuMi; NaN for data with more entries than ``most``."""
    size = data.design.nnz if sp.issparse(data.design) else data.design.size
    if size > most:
        return float("nan")
    found = ClarabelPeer(most).fit(Case(data.design, data.labels, model), EPSILON)
    return float(found.clocked[1]) if found.clocked is not None else float("nan")


def shown(value: float) -> str:
    """Seconds; ``late`` over the limit of iterations, ``-`` where nothing was measured."""
    if np.isnan(value):
        return "-"
    return "late" if value == LATE else seconds(value)
