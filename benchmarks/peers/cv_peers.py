"""Cross-validation of a path: the same folds and strengths for all, and the path of all rows.

What is timed is what a user calls: fits, held-out losses and choice together. The models of the
folds are what is certified, each on the rows that it was fitted to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Design
from benchmarks.objective import Floats
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, Stopwatch, absent, mean_seconds
from benchmarks.peers.own import OwnPeer, estimator
from benchmarks.peers.path_peers import FittedPath, OwnPath, PathProblem
from benchmarks.peers.remote import PACKAGES
from benchmarks.peers.sklearn_peers import SEED, LiblinearLogisticPeer, SagaPeer

AGREEMENT = 10.0  # scores of two paths apart, in roots of their relative gaps


@dataclass(frozen=True)
class CvProblem(PathProblem):
    """A path with folds that have each class in its proportion."""

    n_folds: int = 10

    @cached_property
    def fold(self) -> NDArray[np.intp]:
        """(n,): where each sample is held out."""
        from sklearn.model_selection import StratifiedKFold

        splits = StratifiedKFold(self.n_folds, shuffle=True, random_state=SEED)
        fold = np.empty(self.labels.size, dtype=np.intp)
        for k, (_, held) in enumerate(splits.split(np.zeros(fold.size), self.labels)):
            fold[held] = k
        return fold

    def training(self, k: int) -> PathProblem:
        """The path of the rows that fold k does not hold out."""
        kept = self.fold != k
        return replace(self.whole, design=self.design[kept], labels=self.labels[kept])

    @property
    def whole(self) -> PathProblem:
        """The path of all rows."""
        return PathProblem(
            self.design, self.labels, self.loss, self.alphas, self.l1_ratio, self.fit_intercept
        )


@dataclass(frozen=True)
class FittedCv:
    """A path a fold, and that of all rows where the package has one."""

    folds: tuple[FittedPath, ...]
    whole: FittedPath | None = None
    passes: float | None = None
    clocked: tuple[float, float] | None = None

    @property
    def coef(self) -> Floats:
        """Of the last strength."""
        return (self.whole or self.folds[-1]).coef

    def packed(self) -> FittedCv:
        folds = tuple(one.packed() for one in self.folds)
        return replace(self, folds=folds, whole=self.whole and self.whole.packed())


@dataclass(frozen=True)
class CvPeer(ABC):
    """What cross-validations share: they solve what the single solver solves."""

    single: Any
    ladder: tuple[float, ...] = DECADES[1:11]
    mark: str = ""

    @property
    def name(self) -> str:
        return str(self.single.name)

    @property
    def package(self) -> str:
        return str(self.single.package)

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        return absent(self.single)

    def solves(self, problem: CvProblem) -> str | None:
        return self.single.solves(problem.at(problem.alphas[-1]))

    def prepared(self, design: Design) -> Design:
        return self.single.prepared(design)

    def trained(self, problem: CvProblem, k: int) -> PathProblem:
        """The path that it solves in fold k."""
        return problem.training(k)

    @abstractmethod
    def fit(self, problem: CvProblem, setting: float) -> FittedCv:
        """The models of all folds, and of all rows, at this setting of its tolerance."""

    def mean_seconds(self, problem: CvProblem, setting: float, times: int) -> tuple[float, float]:
        """(wall, CPU) seconds of a cross-validation, the mean of so many."""
        return mean_seconds(lambda: self.fit(problem, setting), times)


@dataclass(frozen=True)
class RemoteCv(CvPeer):
    """`cv.glmnet`, `GeneralizedLinearRegressorCV` of glum, a loop over adelie's `grpnet`."""

    @property
    def missing(self) -> str:
        return str(self.single.missing)

    def mean_seconds(self, problem: CvProblem, setting: float, times: int) -> tuple[float, float]:
        return self._asked(problem, setting, times)

    def _asked(self, problem: CvProblem, setting: float, times: int) -> tuple[float, float]:
        problem.design.write("folds", problem.fold.astype(np.float64))
        clocked: tuple[float, float] = self.single.asked(
            "cv", problem, setting, times=times, folds=problem.n_folds
        )
        return clocked

    def fit(self, problem: CvProblem, setting: float) -> FittedCv:
        clocked = self._asked(problem, setting, 1)
        shape = problem.n_folds + 1, len(problem.alphas)
        coefs = problem.design.read("coefs", (*shape, problem.design.shape[1]))
        intercepts = problem.design.read("intercepts", shape)
        *folds, whole = (FittedPath(w, b) for w, b in zip(coefs, intercepts, strict=True))
        return FittedCv(tuple(folds), whole, clocked=clocked)


@dataclass(frozen=True)
class SklearnCv(CvPeer):
    """`LogisticRegressionCV`, whose C is that of sums: folds of another size, another strength."""

    solver: str = "saga"

    def fit(self, problem: CvProblem, setting: float) -> FittedCv:
        from sklearn.linear_model import LogisticRegressionCV
        from sklearn.model_selection import PredefinedSplit

        model = LogisticRegressionCV(
            Cs=1.0 / (_training_size(problem) * np.array(problem.alphas)),
            l1_ratios=np.array([problem.l1_ratio]),  # a tuple fails without a refit
            fit_intercept=problem.fit_intercept,
            cv=PredefinedSplit(problem.fold),
            scoring="neg_log_loss",
            solver=self.solver,
            tol=setting,
            max_iter=UNLIMITED,
            refit=False,
            random_state=SEED,
            use_legacy_attributes=False,
        ).fit(problem.design, problem.labels)
        columns = problem.design.shape[1]
        paths = model.coefs_paths_.reshape(problem.n_folds, len(problem.alphas), -1)
        folds = (FittedPath(each[:, :columns], each[:, columns:].sum(axis=1)) for each in paths)
        return FittedCv(tuple(folds))

    def trained(self, problem: CvProblem, k: int) -> PathProblem:
        path = problem.training(k)
        factor = _training_size(problem) / path.labels.size
        return replace(path, alphas=tuple(factor * alpha for alpha in path.alphas))


def _training_size(problem: CvProblem) -> int:
    """Of the first fold; others may differ by a sample a class."""
    return int(np.count_nonzero(problem.fold != 0))


@dataclass(frozen=True)
class OwnCv(CvPeer):
    """`SparseLogisticRegressionCV` as a user calls it.

    It keeps no coefficients of folds: the path of each is made once more, outside the clock, with
    zeros for the weights of the rows that were held out, and has to score what was scored.
    """

    def _model(self, problem: CvProblem, setting: float) -> Any:
        from sklearn.model_selection import PredefinedSplit

        import proxmargin

        return proxmargin.SparseLogisticRegressionCV(
            alphas=np.array(problem.alphas),
            l1_ratios=(problem.l1_ratio,),
            fit_intercept=problem.fit_intercept,
            tol=setting,
            cv=PredefinedSplit(problem.fold),
        )

    def mean_seconds(self, problem: CvProblem, setting: float, times: int) -> tuple[float, float]:
        model = self._model(problem, setting)
        return mean_seconds(lambda: model.fit(problem.design, problem.labels), times)

    def fit(self, problem: CvProblem, setting: float) -> FittedCv:
        import proxmargin

        clock, alphas = Stopwatch(), np.array(problem.alphas)
        model = self._model(problem, setting)
        with clock.running():
            model.fit(problem.design, problem.labels)
        plain = estimator(problem.at(alphas[0]), tol=setting)
        paths = []
        for k in range(problem.n_folds):
            held = problem.fold == k
            weights = np.where(held, 0.0, 1.0)
            path = proxmargin.margin_path(
                plain, problem.design, problem.labels, alphas=alphas, sample_weight=weights
            )
            margins = problem.labels[held] * path.scores(problem.design[held])
            scores = -np.logaddexp(0.0, -margins).mean(axis=1)
            # two paths of this accuracy are as far apart as the root of it
            apart = float(np.abs(scores - model.cv_scores_[0, :, k]).max())
            if apart > AGREEMENT * setting**0.5:
                raise RuntimeError(f"the path of fold {k} scores {apart:.1e} off its scores")
            paths.append(path)
        folds = tuple(map(_fitted_path, paths))
        told = [one.n_passes for path in (*paths, model.path_) for one in path.certificates]
        whole = _fitted_path(model.path_)
        return FittedCv(folds, whole, passes=float(sum(told)), clocked=clock.times)


def _fitted_path(path: Any) -> FittedPath:
    intercepts = path.intercepts[:, 0] if path.template.fit_intercept else np.zeros(len(path))
    return FittedPath(path.stacked, intercepts)


@dataclass(frozen=True)
class GridSearch(CvPeer):
    """`GridSearchCV` over our estimator, then `margin_path` of all rows."""

    def fit(self, problem: CvProblem, setting: float) -> FittedCv:
        from sklearn.model_selection import GridSearchCV, PredefinedSplit

        record = Record([])
        model = estimator(problem.at(problem.alphas[0]), tol=setting, max_iter=UNLIMITED)
        GridSearchCV(
            model,
            {"alpha": problem.alphas},
            cv=PredefinedSplit(problem.fold),
            scoring=record,
            refit=False,
            error_score="raise",
        ).fit(problem.design, problem.labels)
        whole = OwnPath(self.single).fit(problem, setting)
        # candidates are the outer loop
        folds = (FittedPath.of(record.fits[k :: problem.n_folds]) for k in range(problem.n_folds))
        passes = sum(one.passes or 0.0 for one in (whole, *record.fits))
        return FittedCv(tuple(folds), whole, passes=passes)


@dataclass(frozen=True)
class Record:
    """A score, minus the mean loss, that remembers the models."""

    fits: list[Fitted]

    def __call__(self, model: Any, design: Design, labels: Floats) -> float:
        intercept = float(model.intercept_[0]) if model.fit_intercept else 0.0
        passes = float(model.certificate_.n_passes)
        self.fits.append(Fitted(model.coef_.ravel(), intercept, passes=passes))
        return -float(np.logaddexp(0.0, -labels * model.decision_function(design)).mean())


CV_PEERS: tuple[Any, ...] = (
    OwnCv(OwnPeer("proxmargin auto", "auto")),
    GridSearch(replace(OwnPeer("proxmargin auto", "auto"), name="GridSearchCV")),
    SklearnCv(SagaPeer(), mark="no path of all rows"),
    SklearnCv(LiblinearLogisticPeer(), mark="no path of all rows", solver="liblinear"),
    *(RemoteCv(package, package.ladder) for package in PACKAGES),
)
