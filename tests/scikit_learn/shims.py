"""Classifiers of this library under the names and with the parameters of scikit-learn's."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Self

import sklearn.linear_model
import sklearn.svm

import proxmargin
from proxmargin.functions.penalties import ElasticNet

__all__ = ["SHIMS"]

TOL = 1e-8  # relative gaps: scikit-learn's tests compare coefficients


def _constructor(theirs: type, ours: type) -> Callable[..., None]:
    """An ``__init__`` with the parameters of ``theirs``; others have the defaults of ``ours``."""
    accepted = signature(theirs.__init__)
    defaults = {n: each.default for n, each in accepted.parameters.items() if n != "self"}

    def __init__(self: Any, **given: Any) -> None:
        ours.__init__(self)
        self.__dict__.update(defaults | given)

    __init__.__signature__ = accepted
    return __init__


class _Shim:
    """Fits with parameters of this library, and keeps those of scikit-learn."""

    def _translated(self) -> dict[str, Any]:
        limit = self.max_iter
        return {"max_iter": None if limit is None or limit < 0 else limit, "tol": TOL}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        theirs = self.get_params(deep=False)
        self.__dict__.update(self._translated())
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.__dict__.update(theirs)


class SVC(_Shim, proxmargin.SVC):
    """One against the rest, where scikit-learn's is one against one."""

    __init__ = _constructor(sklearn.svm.SVC, proxmargin.SVC)


class LinearSVC(_Shim, proxmargin.L2SVC):
    """With a free intercept, where scikit-learn's is penalised."""

    __init__ = _constructor(sklearn.svm.LinearSVC, proxmargin.L2SVC)

    def _translated(self) -> dict[str, Any]:
        return super()._translated() | {"max_iter": None, "multi_class": "ovr"}


class LogisticRegression(_Shim, proxmargin.SparseLogisticRegression):
    """Multinomial, with ``alpha = 1 / (C n)``, and none with ``C=inf``."""

    __init__ = _constructor(
        sklearn.linear_model.LogisticRegression, proxmargin.SparseLogisticRegression
    )

    def _translated(self) -> dict[str, Any]:
        return super()._translated() | {"max_iter": None, "solver": "auto", "n_jobs": None}

    def _penalty(self, targets: Any, design: Any) -> Any:
        alpha = 1.0 / (self.C * targets.total)
        return ElasticNet.from_mixture(alpha, float(self.l1_ratio or 0.0))


SHIMS = {each.__name__: each for each in (SVC, LinearSVC, LogisticRegression)}
