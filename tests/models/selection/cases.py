"""Models, data and scorers of the tests of cross-validation."""

from __future__ import annotations

import signal

import numpy as np
from sklearn.metrics import log_loss

import proxmargin
from proxmargin import (
    SVCCV,
    ElasticNetSVCCV,
    HuberizedSVCCV,
    LogisticRegressionCV,
    MulticlassSVCCV,
    SparseLogisticRegressionCV,
    SquaredHingeSVCCV,
)
from proxmargin.models.fitting.registry import CROSS_VALIDATED

EXACT = {"standardize": True, "tol": 1e-11}
MODELS = [
    (HuberizedSVCCV, {"alphas": [0.3, 0.03, 0.01]}),
    (ElasticNetSVCCV, {"alphas": [0.3, 0.03], "l1_ratios": (0.5,)}),
    (SquaredHingeSVCCV, {"alphas": [0.3, 0.03]}),
    (SparseLogisticRegressionCV, {"alphas": [0.1, 0.01]}),
    (MulticlassSVCCV, {"Cs": [0.01, 0.1], "penalty": "l2", "loss": "squared_hinge"}),
    (SVCCV, {"Cs": [0.01, 1.0]}),
    (SVCCV, {"Cs": [0.1, 1.0], "kernel": "rbf"}),
    (LogisticRegressionCV, {"Cs": [0.01, 1.0]}),
]


def made(count):
    """Classes that overlap, in features of different scales."""
    rng = np.random.default_rng(3)
    y = np.arange(72) % count
    X = rng.standard_normal((72, 12)) * np.linspace(0.5, 20, 12)
    X[:, 0] += 3 * y
    X[:, 1] -= 4 * (y == 1)
    return X, np.array(["ja", "nein", "oft"])[y]


def interrupted_at(call):
    """A scorer in one of whose calls Ctrl-C is pressed."""
    calls = []

    def scorer(model, X, y):
        calls.append(model)
        if len(calls) == call:
            signal.raise_signal(signal.SIGINT)
        return model.score(X, y)

    return scorer


def plain_of(model):
    """The plain classifier with the parameters that both have."""
    kind = getattr(proxmargin, CROSS_VALIDATED[type(model).__name__])
    shared = set(kind().get_params()) & set(model.get_params())
    return kind(**{name: getattr(model, name) for name in shared})


def grid_of(model):
    grid = {name[:-1]: getattr(model, name) for name in ("alphas", "Cs") if hasattr(model, name)}
    if model.strength.name == "alpha":
        grid["l1_ratio"] = list(model.l1_ratios)
    return {name: sorted(values, reverse=name == "alpha") for name, values in grid.items()}


def negated_loss(model, X, y):
    """The mean loss of each model, from its definition."""
    codes = np.searchsorted(model.classes_, y)
    scores = model.decision_function(X)
    one = scores.ndim == 1
    signs = (
        np.where(codes == 1, 1.0, -1.0)[:, None]
        if one
        else np.where(codes[:, None] == np.arange(scores.shape[1]), 1.0, -1.0)
    )
    margins = signs * (scores[:, None] if one else scores)
    name = type(model).__name__
    rows = np.arange(len(y))
    if name == "HuberizedSVC":
        short = 1 - margins
        if not one:  # of the other classes alone
            short[rows, codes] = 0.0
        each = np.where(short > 1, short - 0.5, 0.5 * np.maximum(short, 0) ** 2)
    elif name == "MulticlassSVC":
        both = scores if not one else scores[:, None] * np.array([-0.5, 0.5])
        short = 1 + both - both[rows, codes][:, None]
        short[rows, codes] = 0.0
        each = np.maximum(short, 0) ** 2
    elif name == "SparseLogisticRegression":
        return -log_loss(y, model.predict_proba(X))
    elif name == "LogisticRegression":
        each = np.logaddexp(0.0, -margins)
    else:
        each = np.maximum(1 - margins, 0) ** (2 if name == "SquaredHingeSVC" else 1)
    return -each.sum(axis=1).mean()
