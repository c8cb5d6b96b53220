"""Scores of fitted models on held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring, get_scorer_names

from proxmargin.comparing.data import Data
from proxmargin.comparing.fits import Tried
from proxmargin.designs import as_design
from proxmargin.inputs.targets import Targets
from proxmargin.paths import Path
from proxmargin.selection.scoring import OF_CLASSES, HeldOut, Judge

__all__ = ["Scorer", "scorer_of"]


@dataclass(frozen=True)
class Scorer:
    """A scorer of scikit-learn, with a formula for all models of a path at once if there is one."""

    asked: Callable[..., float]
    formula: Judge | None = None

    def __call__(self, model: Any, data: Data) -> float:
        """The score of a fitted model on weighted samples."""
        weights = {} if data.weights is None else {"sample_weight": data.weights}
        try:
            return float(self.asked(model, data.X, data.y, **weights))
        except (AttributeError, ValueError) as error:
            raise ValueError(f"these models cannot be scored in this way: {error}") from error

    def each(self, models: Tried, data: Data) -> list[float]:
        """Scores of several models; a formula avoids scikit-learn's validation at each call."""
        if self.formula is None or not isinstance(models, Path):
            return [self(models.model(index), data) for index in range(len(models))]
        codes = np.searchsorted(models.classes, data.y)
        shares = np.ones(data.n_samples) if data.weights is None else data.weights
        targets = Targets(models.classes, codes, shares)
        rows = HeldOut(as_design(data.X), targets, data.weights, {}, lambda: data.X)
        scores: list[float] = self.formula(models, models.scores(data.X), rows).tolist()
        return scores


def scorer_of(scoring: str | Callable[..., float], model: Any) -> Scorer:
    """The `Scorer` for a value of ``scoring``, checked against the methods of ``model``.

    Raises
    ------
    ValueError
        There is no such scoring.
    """
    if callable(scoring):
        return Scorer(check_scoring(model, scoring))
    if scoring not in get_scorer_names():
        raise ValueError(
            f"unknown scoring {scoring!r}; scikit-learn knows, among others, 'balanced_accuracy', "
            "'accuracy', 'f1_macro', 'roc_auc', 'matthews_corrcoef'"
        )
    return Scorer(check_scoring(model, scoring), OF_CLASSES.get(scoring))
