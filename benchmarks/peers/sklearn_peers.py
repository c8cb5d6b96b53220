"""scikit-learn: LIBLINEAR's coordinate descent and SAGA.

LIBLINEAR adds the intercept to the penalised coefficients. That is another model, so its two
adapters take part only where the problem has no intercept. `C = 1/(n alpha)` throughout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from benchmarks.datasets import Design
from benchmarks.objective import Logistic, Problem, SquaredHinge
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, row_major

LIBLINEAR_CAP = 10**8  # LIBLINEAR's counter is a C int; this never binds either
SEED = 0  # of the random order of coordinates or samples


def _liblinear_objection(problem: Problem) -> str | None:
    if problem.fit_intercept:
        return "penalises the intercept: compared where there is none"
    return "no ridge term beside l1" if problem.l2 > 0.0 else None


def _inverse_strength(problem: Problem) -> float:
    return 1.0 / (len(problem.labels) * problem.alpha)


def _fitted(model: Any) -> Fitted:
    intercept = float(model.intercept_[0]) if model.fit_intercept else 0.0
    return Fitted(model.coef_.ravel(), intercept, iterations=int(max(model.n_iter_.ravel())))


@dataclass(frozen=True)
class LinearSVCPeer:
    """LIBLINEAR solver 5: l1 penalty, squared hinge, primal coordinate descent."""

    name: str = "sklearn-linearsvc"
    ladder: tuple[float, ...] = DECADES[:11]
    package: str = "sklearn"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, SquaredHinge):
            return "squared hinge only"
        return _liblinear_objection(problem)

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        model = LinearSVC(
            penalty="l1",
            loss="squared_hinge",
            dual=False,
            C=_inverse_strength(problem),
            fit_intercept=False,
            tol=setting,
            max_iter=LIBLINEAR_CAP,
            random_state=SEED,
        )
        model.fit(problem.design, problem.labels)
        return Fitted(model.coef_.ravel(), 0.0, iterations=int(model.n_iter_))


@dataclass(frozen=True)
class LiblinearLogisticPeer:
    """LIBLINEAR solver 6: l1 penalty, logistic loss, newGLMNET."""

    name: str = "sklearn-liblinear"
    ladder: tuple[float, ...] = DECADES[:11]
    package: str = "sklearn"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Logistic):
            return "logistic only"
        return _liblinear_objection(problem)

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        model = LogisticRegression(
            solver="liblinear",
            l1_ratio=1.0,
            C=_inverse_strength(problem),
            fit_intercept=False,
            tol=setting,
            max_iter=LIBLINEAR_CAP,
            random_state=SEED,
        )
        return _fitted(model.fit(problem.design, problem.labels))


@dataclass(frozen=True)
class SagaPeer:
    """Stochastic average gradient; its tolerance is on the change of the coefficients.

    An iteration is a pass over the data.
    """

    name: str = "sklearn-saga"
    ladder: tuple[float, ...] = DECADES[:11]
    package: str = "sklearn"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if not isinstance(problem.loss, Logistic):
            return "logistic only"
        return "no ridge on the intercept" if problem.intercept_ridge > 0.0 else None

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        model = LogisticRegression(
            solver="saga",
            l1_ratio=problem.l1_ratio,
            C=_inverse_strength(problem),
            fit_intercept=problem.fit_intercept,
            tol=setting,
            max_iter=UNLIMITED,
            random_state=SEED,
        )
        fitted = _fitted(model.fit(problem.design, problem.labels))
        return replace(fitted, passes=float(fitted.iterations or 0))


PEERS = (LinearSVCPeer(), LiblinearLogisticPeer(), SagaPeer())
