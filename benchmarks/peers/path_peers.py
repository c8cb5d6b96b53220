"""Solvers of a whole path: many strengths from the largest down, each from the one before.

Where a package has no paths of its own, the loop over the strengths is here, with its warm starts;
where it cannot start from a solution either, every strength starts from zero, which is marked.
"""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from benchmarks.datasets import Design
from benchmarks.measure import Bench, Clocked
from benchmarks.objective import Floats, MarginLoss, Problem
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, Stopwatch, absent, mean_seconds
from benchmarks.peers.celer_peers import ROUNDS, SWEEPS, CelerPeer
from benchmarks.peers.liblinear_official import OfficialLiblinearPeer
from benchmarks.peers.own import OwnPeer, estimator
from benchmarks.peers.prototype_peer import Prototype
from benchmarks.peers.remote import PACKAGES, RemoteDesign
from benchmarks.peers.skglm_peers import ShippedSkglmPeer, SkglmPeer
from benchmarks.peers.sklearn_peers import SEED, SagaPeer


@dataclass(frozen=True)
class PathProblem:
    """One model with strengths that fall."""

    design: Design
    labels: Floats
    loss: MarginLoss
    alphas: tuple[float, ...]
    l1_ratio: float
    fit_intercept: bool = True

    def at(self, alpha: float) -> Problem:
        free = self.fit_intercept
        blank = Problem(self.design, self.labels, self.loss, 1.0, 0.0, fit_intercept=free)
        return blank.with_strength(alpha, self.l1_ratio)

    def __iter__(self) -> Iterator[Problem]:
        return (self.at(alpha) for alpha in self.alphas)


@dataclass(frozen=True)
class FittedPath:
    """A solution a strength: coefficients (strengths, p), intercepts, and dual points, if any."""

    coefs: Any
    intercepts: Floats
    duals: Floats | None = None
    passes: float | None = None
    clocked: tuple[float, float] | None = None

    @classmethod
    def of(cls, fits: Sequence[Fitted], **told: Any) -> FittedPath:
        """From solutions one by one."""
        coefs = np.stack([one.coef for one in fits])
        return cls(coefs, np.array([one.intercept for one in fits]), **told)

    def __iter__(self) -> Iterator[Fitted]:
        for k, intercept in enumerate(self.intercepts):
            coef = self.coefs[k].toarray().ravel() if issparse(self.coefs) else self.coefs[k]
            yield Fitted(coef, float(intercept), dual=None if self.duals is None else self.duals[k])

    @property
    def coef(self) -> Floats:
        """Of the last strength."""
        return list(self)[-1].coef

    def packed(self) -> FittedPath:
        """The same in less memory."""
        return replace(self, coefs=csr_matrix(self.coefs))


class PathBench(Bench):
    """Many solutions are packed before they travel, outside the clock.

    The memory of a solver in another process is not known.
    """

    peer: Any

    def clocked(self, spec: Any, setting: float) -> Clocked:
        answer = super().clocked(spec, setting)
        is_here = not isinstance(self.design, RemoteDesign)
        memory = answer.memory if is_here else float("nan")
        return replace(answer, fitted=answer.fitted.packed(), memory=memory)

    def mean_seconds(self, spec: Any, setting: float, times: int) -> tuple[float, float]:
        problem = self.problem(spec)
        gc.collect()
        seconds: tuple[float, float] = self.peer.mean_seconds(problem, setting, times)
        return seconds


@dataclass(frozen=True)
class PathPeer(ABC):
    """What the solvers of paths share: they solve what the single solver solves."""

    single: Any
    ladder: tuple[float, ...] = DECADES[1:11]

    @property
    def name(self) -> str:
        return str(self.single.name)

    @property
    def package(self) -> str:
        return str(self.single.package)

    @property
    def mark(self) -> str:
        return str(self.single.mark)

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty where it can."""
        return absent(self.single)

    def solves(self, path: PathProblem) -> str | None:
        return self.single.solves(path.at(path.alphas[-1]))

    def prepared(self, design: Design) -> Design:
        return self.single.prepared(design)

    @abstractmethod
    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        """The models at this setting of its tolerance."""

    def mean_seconds(self, path: PathProblem, setting: float, times: int) -> tuple[float, float]:
        """(wall, CPU) seconds of a path, the mean of so many."""
        return mean_seconds(lambda: self.fit(path, setting), times)


@dataclass(frozen=True)
class OwnPath(PathPeer):
    """`proxmargin.margin_path`."""

    def _call(self, path: PathProblem, setting: float) -> Callable[[], Any]:
        import proxmargin

        model = estimator(path.at(path.alphas[0]), tol=setting)
        given = model, path.design, path.labels
        return lambda: proxmargin.margin_path(*given, alphas=path.alphas)

    def mean_seconds(self, path: PathProblem, setting: float, times: int) -> tuple[float, float]:
        return mean_seconds(self._call(path, setting), times)

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        call, watch = self._call(path, setting), Stopwatch()
        with watch.running():
            found = call()
        passes = sum(float(one.n_passes) for one in found.certificates)
        intercepts = found.intercepts[:, 0] if path.fit_intercept else np.zeros(len(found))
        return FittedPath(found.coefs[:, 0], intercepts, passes=passes, clocked=watch.times)


@dataclass(frozen=True)
class SkglmPath(PathPeer):
    """A loop over a solver that starts from the coefficients before."""

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        columns, fits = path.design.shape[1], []
        weights = np.zeros(columns + path.fit_intercept)
        for problem in path:
            weights, _ = self.single.solved(problem, setting, weights.copy())
            fits.append(Fitted(weights[:columns].copy(), float(weights[columns:].sum())))
        return FittedPath.of(fits)


@dataclass(frozen=True)
class CelerPath(PathPeer):
    """`celer_path`."""

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        from celer.homotopy import celer_path

        rows = path.labels.size
        _, coefs, _, thetas = celer_path(
            path.design,
            path.labels,
            "logreg",
            alphas=rows * np.array(path.alphas),
            tol=setting * rows * np.log(2.0),
            use_PN=self.single.newton,
            max_iter=ROUNDS,
            max_epochs=SWEEPS,
            return_thetas=True,
        )
        return FittedPath(coefs.T, np.zeros(len(thetas)), duals=path.labels * thetas)


@dataclass(frozen=True)
class SagaPath(PathPeer):
    """A loop over scikit-learn's warm_start."""

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(
            solver="saga",
            l1_ratio=path.l1_ratio,
            fit_intercept=path.fit_intercept,
            tol=setting,
            max_iter=UNLIMITED,
            warm_start=True,
            random_state=SEED,
        )
        fits, passes = [], 0.0
        for alpha in path.alphas:
            model.set_params(C=1.0 / (path.labels.size * alpha)).fit(path.design, path.labels)
            intercept = float(model.intercept_[0]) if path.fit_intercept else 0.0
            fits.append(Fitted(model.coef_.ravel().copy(), intercept))
            passes += float(np.max(model.n_iter_))
        return FittedPath.of(fits, passes=passes)


@dataclass(frozen=True)
class ColdPath(PathPeer):
    """A loop over a solver that knows no warm start."""

    @property
    def mark(self) -> str:
        return "no warm start"

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        fits = tuple(self.single.fit(problem, setting) for problem in path)
        clocks = [one.clocked for one in fits if one.clocked is not None]
        total = tuple(map(sum, zip(*clocks, strict=True))) if len(clocks) == len(fits) else None
        return FittedPath.of(fits, clocked=total)


@dataclass(frozen=True)
class RemotePath(PathPeer):
    """A package in a process of another home, with its own path."""

    @property
    def missing(self) -> str:
        return str(self.single.missing)

    def mean_seconds(self, path: PathProblem, setting: float, times: int) -> tuple[float, float]:
        clocked: tuple[float, float] = self.single.asked("path", path, setting, times=times)
        return clocked

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        clocked = self.single.asked("path", path, setting)
        count, columns = len(path.alphas), path.design.shape[1]
        coefs = path.design.read("coefs", (count, columns))
        intercepts = path.design.read("intercepts", (count,))
        return FittedPath(coefs, intercepts, clocked=clocked)


@dataclass(frozen=True)
class PrototypePath(PathPeer):
    """The prototype of the path engine."""

    @property
    def missing(self) -> str:
        return str(self.single.missing)

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        coefs, intercepts, passes = self.single.path(path, setting)
        return FittedPath(coefs, intercepts, passes=passes)


PATH_PEERS = (
    OwnPath(replace(OwnPeer("proxmargin auto", "auto"), name="margin_path")),
    SkglmPath(SkglmPeer("skglm-acd", "AndersonCD")),
    SkglmPath(SkglmPeer("skglm-pn", "ProxNewton")),
    SkglmPath(ShippedSkglmPeer("skglm-pn-shipped", "ProxNewton")),
    CelerPath(CelerPeer("celer-pn", True)),
    CelerPath(CelerPeer("celer", False)),
    SagaPath(SagaPeer()),
    ColdPath(OfficialLiblinearPeer()),
    *(RemotePath(package, package.ladder) for package in PACKAGES),
    PrototypePath(Prototype()),
)
