"""Solvers of a whole path: many strengths from the largest down, each from the one before.

Where a package has no paths of its own, the loop over the strengths is here, with its warm starts;
where it cannot start from a solution either, every strength starts from zero, which is marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.datasets import Design
from benchmarks.objective import Floats, MarginLoss, Problem
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted
from benchmarks.peers.celer_peers import ROUNDS, SWEEPS, CelerPeer
from benchmarks.peers.liblinear_official import OfficialLiblinearPeer
from benchmarks.peers.own import OwnPeer, estimator
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
    """A solution a strength."""

    fits: tuple[Fitted, ...]
    passes: float | None = None
    clocked: tuple[float, float] | None = None

    @property
    def coef(self) -> Floats:
        """Of the last strength."""
        return self.fits[-1].coef


@dataclass(frozen=True)
class PathPeer:
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

    def solves(self, path: PathProblem) -> str | None:
        return self.single.solves(path.at(path.alphas[-1]))

    def prepared(self, design: Design) -> Design:
        return self.single.prepared(design)


@dataclass(frozen=True)
class OwnPath(PathPeer):
    """`proxmargin.margin_path`."""

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        import proxmargin

        model = estimator(path.at(path.alphas[0]), tol=setting, max_iter=UNLIMITED)
        found = proxmargin.margin_path(model, path.design, path.labels, alphas=path.alphas)
        passes = sum(float(one.n_passes) for one in found.certificates)
        coefs = found.coefs[:, 0]
        intercepts = found.intercepts[:, 0] if path.fit_intercept else np.zeros(len(coefs))
        fits = (Fitted(w, float(b)) for w, b in zip(coefs, intercepts, strict=True))
        return FittedPath(tuple(fits), passes)


@dataclass(frozen=True)
class SkglmPath(PathPeer):
    """A loop over a solver that starts from the coefficients before."""

    def fit(self, path: PathProblem, setting: float) -> FittedPath:
        columns, fits = path.design.shape[1], []
        weights = np.zeros(columns + path.fit_intercept)
        for problem in path:
            weights, _ = self.single.solved(problem, setting, weights.copy())
            fits.append(Fitted(weights[:columns].copy(), float(weights[columns:].sum())))
        return FittedPath(tuple(fits))


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
        duals = path.labels * thetas
        fits = (Fitted(w, 0.0, dual=dual) for w, dual in zip(coefs.T, duals, strict=True))
        return FittedPath(tuple(fits))


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
        return FittedPath(tuple(fits), passes)


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
        return FittedPath(fits, clocked=total)


PATH_PEERS = (
    OwnPath(replace(OwnPeer("proxmargin auto", "auto"), name="margin_path")),
    SkglmPath(SkglmPeer("skglm-acd", "AndersonCD")),
    SkglmPath(SkglmPeer("skglm-pn", "ProxNewton")),
    SkglmPath(ShippedSkglmPeer("skglm-pn-shipped", "ProxNewton")),
    CelerPath(CelerPeer("celer-pn", True)),
    CelerPath(CelerPeer("celer", False)),
    SagaPath(SagaPeer()),
    ColdPath(OfficialLiblinearPeer()),
)
