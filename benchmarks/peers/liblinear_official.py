"""The official LIBLINEAR package: l1-regularised squared hinge and logistic loss.

Unlike scikit-learn's copy it can leave the intercept unpenalised (-B 1 -R), and unlike there it
stops after the 1000 rounds that are built in, whatever its tolerance. The copy of the data into its
nodes is outside the clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.datasets import Design
from benchmarks.objective import Floats, Logistic, Problem, SquaredHinge
from benchmarks.peers.base import DECADES, Fitted, Stopwatch

L1_SOLVERS: dict[type, int] = {SquaredHinge: 5, Logistic: 6}


@dataclass(frozen=True)
class OfficialLiblinearPeer:
    """LIBLINEAR solvers 5 (coordinate descent) and 6 (newGLMNET)."""

    name: str = "liblinear"
    ladder: tuple[float, ...] = DECADES[:11]
    package: str = "liblinear"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if type(problem.loss) not in L1_SOLVERS:
            return "squared hinge and logistic only"
        if problem.intercept_ridge > 0.0:
            return "no ridge on the intercept"
        return "no ridge term beside l1" if problem.l2 > 0.0 else None

    def prepared(self, design: Design) -> Design:
        return csr_matrix(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        kind, C = L1_SOLVERS[type(problem.loss)], 1.0 / (len(problem.labels) * problem.alpha)
        bias = "-B 1 -R" if problem.fit_intercept else "-B -1"
        return trained(problem.design, problem.labels, f"-s {kind} -c {C!r} -e {setting!r} {bias}")


def trained(design: Any, labels: Floats, options: str) -> Fitted:
    """A model for +1; the last weight is the intercept where a bias is appended."""
    model, seconds = _run(design, labels, options)
    columns = design.shape[1]
    weights = np.ctypeslib.as_array(model.w, (columns + (model.bias >= 0),)).copy()
    weights *= 1.0 if model.get_labels()[0] > 0 else -1.0
    return Fitted(weights[:columns], float(weights[columns:].sum()), clocked=seconds)


def trained_classes(design: Any, labels: Floats, options: str) -> Fitted:
    """A row of weights for each of three classes or more, in their order; see `OneVsRest`."""
    model, seconds = _run(design, labels, options)
    shape = design.shape[1] + (model.bias >= 0), model.nr_class
    weights = np.ctypeslib.as_array(model.w, shape).T[np.argsort(model.get_labels())]
    return Fitted(np.ascontiguousarray(weights), 0.0, clocked=seconds)


def _run(design: Any, labels: Floats, options: str) -> tuple[Any, tuple[float, float]]:
    """The model and the (wall, CPU) seconds of its training."""
    from liblinear.liblinear import parameter, problem
    from liblinear.liblinearutil import train

    data, watch = problem(labels, design), Stopwatch()
    settings = parameter(f"{options} -q")
    with watch.running():
        model = train(data, settings)
    return model, watch.times


PEERS = (OfficialLiblinearPeer(),)
