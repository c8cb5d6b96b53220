"""Solvers of the models of Ito, Takeda, Toh (2017): the library's own and scikit-learn's.

LIBLINEAR has no free intercept: it fits the model with an intercept that is penalised like a
coefficient, which is what it is asked for (`Regularized.augmented`) and judged on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.datasets import Design
from benchmarks.family import (
    Case,
    Ellipsoids,
    Hinge,
    InBall,
    Model,
    OneVsRest,
    Regularized,
    Tail,
    augmented,
)
from benchmarks.objective import Logistic, SquaredHinge
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, Stopwatch, row_major
from benchmarks.peers.sklearn_peers import LIBLINEAR_CAP, SEED

CACHE_MB = 1000
MADE_FOR: dict[str, type] = {"hinge": Hinge, "squared": SquaredHinge, "logistic": Logistic}


class FamilyPeer(Protocol):
    """A solver; `solves` says whether a model on data of that size is one of its own."""

    @property
    def name(self) -> str: ...
    @property
    def ladder(self) -> tuple[float, ...]: ...
    @property
    def compiles(self) -> bool: ...
    def solves(self, case: Case) -> bool: ...
    def prepared(self, design: Design) -> Design: ...
    def fit(self, case: Case, setting: float) -> Fitted: ...


def is_plain(model: Model, loss: str) -> bool:
    """(7) with that loss and a free intercept."""
    return _has_loss(model, loss) and not model.augmented


def is_augmented(model: Model, loss: str) -> bool:
    return _has_loss(model, loss) and model.augmented


def _has_loss(model: Any, loss: str) -> bool:
    return isinstance(model, Regularized) and isinstance(model.loss, MADE_FOR[loss])


# ---- ours ---------------------------------------------------------------------------------------


def estimator(model: Model, rows: int, **settings: Any) -> Any:
    """The public estimator that states the model; it needs the samples for DWD's nu."""
    import proxmargin

    match model:
        case Regularized(loss=Hinge(), C=C):
            return proxmargin.SVC(C=C, fit_intercept=not model.augmented, **settings)
        case Regularized(loss=SquaredHinge(), C=C):
            return proxmargin.L2SVC(C=C, fit_intercept=not model.augmented, **settings)
        case Regularized(C=C):
            free = not model.augmented
            return proxmargin.LogisticRegression(C=C, fit_intercept=free, **settings)
        case OneVsRest(each=each):
            return estimator(each, rows, **settings)
        case InBall(loss=loss):
            return proxmargin.DWD(nu=loss.threshold**2 / rows, **settings)
        case Tail(nu=nu):
            return proxmargin.NuSVC(nu=nu, **settings)
        case Ellipsoids(kappa=kappa, joint=joint):
            kind = proxmargin.MarginFDA if joint else proxmargin.MarginMPM
            return kind(kappa=kappa, **settings)
    raise TypeError(f"no estimator states {model!r}")


@dataclass(frozen=True)
class OwnFamilyPeer:
    """One of our solvers by its name, with a time limit of its own so that it answers."""

    name: str
    solver: str
    time_limit: float
    ladder: tuple[float, ...] = DECADES[3:10]
    compiles: bool = True

    def solves(self, case: Case) -> bool:
        return not _is_wide(case.model)

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        wide = _is_wide(case.model)
        design = augmented(case.design) if wide else case.design
        limits = {"max_iter": UNLIMITED, "time_limit": self.time_limit, "tol": setting}
        model = estimator(case.model, case.labels.size, solver=self.solver, **limits)
        watch = Stopwatch()
        with watch.running():
            model.fit(design, case.labels)
        rows = model.coef_ if wide else np.column_stack([model.coef_, model.intercept_])
        several = isinstance(case.model, OneVsRest)
        return Fitted(
            coef=rows if several else rows[0, :-1],
            intercept=0.0 if several else float(rows[0, -1]),
            passes=model.certificate_.n_passes,
            iterations=model.certificate_.n_iter,
            note=str(model.certificate_.solver),
            dual=_dual(case, model),
            clocked=watch.times,
        )


@dataclass(frozen=True)
class OwnAugmentedPeer(OwnFamilyPeer):
    """Ours on the models with a penalised intercept; the column of ones is outside the clock."""

    def solves(self, case: Case) -> bool:
        return _is_wide(case.model)


def _is_wide(model: Model) -> bool:
    one = model.each if isinstance(model, OneVsRest) else model
    return isinstance(one, Regularized) and one.augmented


def _dual(case: Case, model: Any) -> np.ndarray:
    """`dual_of`; of several classes a row for each against the others."""
    if not isinstance(case.model, OneVsRest):
        return dual_of(case, model.support_, model.dual_coef_)
    rows = []
    for one, weights in zip(model.classes_, model.dual_coef_, strict=True):
        labels = np.where(case.labels == one, 1.0, -1.0)
        rows.append(dual_of(Case(case.design, labels, case.model.each), model.support_, weights))
    return np.array(rows)


def dual_of(case: Case, support: Any, weights: Any) -> np.ndarray:
    """alpha from the weights of the support vectors, up to a factor where only that matters."""
    alpha = np.zeros(case.labels.size)
    alpha[support] = np.ravel(weights)
    alpha *= case.labels
    return alpha / case.model.C if isinstance(case.model, Regularized) else alpha


# ---- LIBSVM -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LibsvmPeer:
    """LIBSVM through scikit-learn's SVC and NuSVC, with a cache that holds what it can."""

    name: str = "LIBSVM"
    ladder: tuple[float, ...] = DECADES[1:9]
    compiles: bool = False

    def solves(self, case: Case) -> bool:
        return is_plain(case.model, "hinge") or isinstance(case.model, Tail)

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        from sklearn.svm import SVC, NuSVC

        common = {"kernel": "linear", "tol": setting, "cache_size": CACHE_MB}
        match case.model:
            case Tail(nu=nu):
                model = NuSVC(nu=nu, **common)
            case Regularized(C=C):
                model = SVC(C=C, **common)
        model.fit(case.design, case.labels)
        coef, weights = _dense(model.coef_), _dense(model.dual_coef_)
        dual = dual_of(case, model.support_, weights)
        return Fitted(coef, float(model.intercept_[0]), iterations=int(model.n_iter_[0]), dual=dual)


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.todense() if hasattr(values, "todense") else values).ravel()


# ---- scikit-learn's linear models ---------------------------------------------------------------


@dataclass(frozen=True)
class LiblinearPeer:
    """LIBLINEAR: dual coordinate descent for the hinge, trust-region Newton for the others."""

    name: str = "LIBLINEAR"
    ladder: tuple[float, ...] = DECADES[1:10]
    compiles: bool = False

    def solves(self, case: Case) -> bool:
        return any(is_augmented(case.model, loss) for loss in MADE_FOR)

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        from sklearn.linear_model import LogisticRegression
        from sklearn.svm import LinearSVC

        common: dict[str, Any] = {"tol": setting, "max_iter": LIBLINEAR_CAP, "random_state": SEED}
        common["C"] = case.model.C
        if is_augmented(case.model, "hinge"):
            model = LinearSVC(loss="hinge", dual=True, **common)
        elif is_augmented(case.model, "squared"):
            model = LinearSVC(loss="squared_hinge", dual=False, **common)
        else:
            model = LogisticRegression(solver="liblinear", **common)
        return _found(model.fit(case.design, case.labels))


@dataclass(frozen=True)
class LogisticPeer:
    """scikit-learn's LogisticRegression by a solver with a free intercept."""

    name: str
    solver: str
    ladder: tuple[float, ...] = DECADES[:10]
    compiles: bool = False

    def solves(self, case: Case) -> bool:
        return is_plain(case.model, "logistic")

    def prepared(self, design: Design) -> Design:
        return row_major(design)

    def fit(self, case: Case, setting: float) -> Fitted:
        from sklearn.linear_model import LogisticRegression

        settings = {"tol": setting, "max_iter": LIBLINEAR_CAP, "C": case.model.C}
        return _found(
            LogisticRegression(solver=self.solver, **settings).fit(case.design, case.labels)
        )


def _found(model: Any) -> Fitted:
    iterations = int(np.max(model.n_iter_))
    return Fitted(model.coef_.ravel(), float(np.ravel(model.intercept_)[0]), iterations=iterations)
