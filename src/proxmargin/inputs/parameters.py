"""Parameters that other libraries have under other names."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache

__all__ = ["refuse_unknown"]

# what users of other libraries look for, and where it is
ELSEWHERE: Mapping[str, str] = {
    "penalty": (
        "each penalty has estimators of its own: an l1 norm or an elastic net HuberizedSVC, "
        "ElasticNetSVC, SquaredHingeSVC and SparseLogisticRegression, norms of groups MulticlassSVC"
    ),
    "loss": (
        "each loss is an estimator of its own: hinge SVC, squared hinge L2SVC, logistic "
        "LogisticRegression; MarginClassifier takes losses as objects"
    ),
    "alpha": "models with a ridge alone have C",
    "C": "models with an elastic net have alpha, which is 1 / (C n_samples)",
    "lambda1": "the l1 strength is alpha * l1_ratio",
    "lambda2": "the ridge strength is alpha * (1 - l1_ratio)",
    "probability": "proxmargin.CalibratedMargin gives probabilities of held-out scores",
    "decision_function_shape": (
        "there is one score a class; DDAGClassifier and sklearn.multiclass.OneVsOneClassifier fit "
        "pairs of classes"
    ),
    "break_ties": "there is one score a class, and the largest wins",
    "l1_ratio": "HuberizedSVC, ElasticNetSVC, SquaredHingeSVC and SparseLogisticRegression have it",
    "dual": "solver names the method; 'auto' chooses",
    "n_jobs": "single fits run on one core",
    "shrinking": "the certificate is of the whole problem, shrinking or not",
    "intercept_scaling": "the intercept is free: it has no penalty",
}


def refuse_unknown(cls: type, names: Iterable[str]) -> None:
    """Raise TypeError for a parameter that the class does not have, and say what has it."""
    known = _parameters(cls)
    for name in names:
        if known is not None and name not in known:
            hint = f"; {ELSEWHERE[name]}" if name in ELSEWHERE else f"; it has {', '.join(known)}"
            raise TypeError(f"{cls.__name__} has no parameter {name!r}{hint}")


@cache
def _parameters(cls: type) -> tuple[str, ...] | None:
    """The names of the parameters; None of a subclass that hands on any keyword."""
    found = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    if any(one.kind is one.VAR_KEYWORD for one in found.values()):
        return None
    return tuple(name for name in found if name != "self")
