"""The multiclass models of Xu et al. (2015), section 3.2, their grids, and what is measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import LinearSVC

from benchmarks.multiclass_data import Split
from benchmarks.papers.xu.settings import huberized
from proxmargin import SVC, DDAGClassifier, MulticlassSVC, critical_C

__all__ = [
    "Fit",
    "by_cross_validation",
    "ddag",
    "fitted",
    "joint",
    "l1_hinge",
    "mean",
    "one_vs_all",
    "sup_hinge",
]

TOL = 1e-4  # relative gap
TOL_RULE = 1e-6  # of rule (20)
LIMIT = 20.0  # seconds a fit
FOLDS = 3  # as 3.2.3 has them
SHARES = (2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 7.0, 10.0)  # of the least C that leaves a coefficient
COSTS = (1.0, 10.0, 100.0)  # C of DDAG
WIDTHS = (0.01, 0.1, 1.0)  # gamma of DDAG


class Fit(NamedTuple):
    """Of one model on one draw; what a model does not have is NaN."""

    accuracy: float  # per cent
    seconds: float  # CPU
    rows: float  # features with a coefficient of any class
    nonzeros: np.ndarray  # of each class


def joint(l1: float, l2: float, **others: Any) -> Any:
    """(3), with lambda3 = 1, by M-PGH and rule (20)."""
    rule = {"solver": "m-pgh", "stopping": "relative-change", "tol": TOL_RULE}
    return huberized(l1, l2, intercept_ridge=1.0, time_limit=LIMIT, **{**rule, **others})


def l1_hinge(C: float) -> Any:
    """[42], Wang and Shen (2007)."""
    return MulticlassSVC(loss="lee", penalty="l1", C=C, tol=TOL, time_limit=LIMIT)


def sup_hinge(C: float) -> Any:
    """[50], Zhang et al. (2008): sup norms of the coefficients of each feature."""
    return MulticlassSVC(
        loss="lee", penalty="group_linf", groups="features", C=C, tol=TOL, time_limit=LIMIT
    )


def strengths(make: Callable[[float], Any], split: Split) -> list[Any]:
    """Models at `SHARES` of the least C, the sparsest first."""
    least = float(critical_C(make(1.0), split.X, split.y))
    return [make(share * least) for share in SHARES]


def one_vs_all() -> Any:
    """LIBLINEAR with its defaults: squared hinge, C = 1, no intercept."""
    return LinearSVC(fit_intercept=False, max_iter=20_000)


def ddag(widths: Sequence[float] = WIDTHS) -> list[Any]:
    """Gaussian kernels over the grid of C and gamma."""
    return [
        DDAGClassifier(SVC(kernel="rbf", C=cost, gamma=width, tol=TOL, time_limit=LIMIT))
        for cost in COSTS
        for width in widths
    ]


def by_cross_validation(models: Sequence[Any], split: Split) -> Any:
    """The first model of the best score."""
    if len(models) == 1:
        return models[0]
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of folds without a sample of some class, and early ends
        scores = [
            cross_val_score(model, split.X, split.y, cv=folds, error_score=0.0).mean()
            for model in models
        ]
    return models[int(np.argmax(np.round(scores, 10)))]


def fitted(model: Any, split: Split) -> Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(split.X, split.y)
        taken = time.process_time() - start
    accuracy = 100.0 * float(np.mean(model.predict(split.X_test) == split.y_test))
    coef = getattr(model, "coef_", None)
    if coef is None:
        return Fit(accuracy, taken, np.nan, np.full(np.unique(split.y).size, np.nan))
    rows = float(np.count_nonzero((coef != 0).any(axis=0)))
    return Fit(accuracy, taken, rows, np.count_nonzero(coef, axis=1))


def mean(fits: Sequence[Fit]) -> Fit:
    """Means over the draws."""
    parts: Mapping[str, Any] = {
        name: np.mean([getattr(fit, name) for fit in fits], axis=0) for name in Fit._fields
    }
    return Fit(**parts)
