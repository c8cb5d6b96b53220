"""The four models that Chierchia et al. (2015, 4.1) compare."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.multiclass_data import Split
from proxmargin import MulticlassSVC, critical_C

__all__ = ["MODELS", "NAMES", "ONE_VS_ALL", "Fit", "Penalised"]

MODELS = {"hinge": "hinge", "square": "squared_hinge", "logit": "logistic"}  # (7), (19), (20)
ONE_VS_ALL = "one-vs-all"  # (21)
NAMES = (*MODELS, ONE_VS_ALL)


@dataclass(frozen=True)
class Fit:
    """What a fitted model does: which test samples are wrong, its coefficients (n_classes,
    n_features)."""

    wrong: np.ndarray
    coef: np.ndarray
    certified: bool

    @property
    def errors(self) -> int:
        return int(self.wrong.sum())

    @property
    def nonzeros(self) -> tuple[int, ...]:
        """Of each class."""
        return tuple(np.count_nonzero(self.coef, axis=1).tolist())


@dataclass(frozen=True)
class Penalised:
    """A model with a penalty, to be fitted at several strengths."""

    name: str
    penalty: str
    groups: Any
    tol: float
    time_limit: float

    def of(self, C: float) -> MulticlassSVC:
        """With the loss of the model; a problem of its own for each class if one-vs-all."""
        return MulticlassSVC(
            loss=MODELS.get(self.name, "squared_hinge"),
            penalty=self.penalty,
            C=C,
            groups=self.groups,
            tol=self.tol,
            time_limit=self.time_limit,
        )

    def least(self, split: Split) -> float:
        """The least C that leaves a coefficient; one over the mean squared norm of the samples
        with a squared norm as penalty."""
        if self.penalty == "l2":
            return 1.0 / float(np.square(split.X).sum(axis=1).mean())
        if self.name != ONE_VS_ALL:
            return float(critical_C(self.of(1.0), split.X, split.y))
        each = np.unique(split.y)
        return min(float(critical_C(self.of(1.0), split.X, split.y == one)) for one in each)

    def fitted(self, split: Split, C: float) -> Fit:
        # with two classes the pairwise form of the loss has w = x_1 - x_2, which is (21)
        part = self.of(C)
        model = OneVsRestClassifier(part) if self.name == ONE_VS_ALL else part
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit that ends early is marked
            model.fit(split.X, split.y)
        parts = getattr(model, "estimators_", [model])
        return Fit(
            wrong=model.predict(split.X_test) != split.y_test,
            coef=np.vstack([one.coef_ for one in parts]),
            certified=all(bool(np.all(one.certificate_.converged)) for one in parts),
        )
