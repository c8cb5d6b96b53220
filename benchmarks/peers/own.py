"""proxmargin's solvers, through the public estimators; `tol` is the relative duality gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.datasets import Design
from benchmarks.objective import Hinge, HuberizedHinge, Problem, SquaredHinge
from benchmarks.peers.base import DECADES, UNLIMITED, Fitted, column_major


def estimator(problem: Problem, **settings: Any) -> Any:
    """The public estimator that states this problem."""
    import proxmargin

    common = {
        "alpha": problem.alpha,
        "l1_ratio": problem.l1_ratio,
        "fit_intercept": problem.fit_intercept,
        **settings,
    }
    match problem.loss:
        case HuberizedHinge(delta=delta):
            ridge = problem.intercept_ridge
            return proxmargin.HuberizedSVC(delta=delta, intercept_ridge=ridge, **common)
        case Hinge():
            return proxmargin.ElasticNetSVC(**common)
        case SquaredHinge():
            return proxmargin.SquaredHingeSVC(**common)
        case _:
            return proxmargin.SparseLogisticRegression(**common)


@dataclass(frozen=True)
class OwnPeer:
    """One of our solvers by its name."""

    name: str
    solver: str
    options: Mapping[str, Any] = field(default_factory=dict)
    ladder: tuple[float, ...] = DECADES[1:11]
    package: str = "proxmargin"
    mark: str = ""

    def solves(self, problem: Problem) -> str | None:
        if isinstance(problem.loss, Hinge) and self.solver != "auto":
            return "smooth losses only"
        is_huberized = isinstance(problem.loss, HuberizedHinge)
        if problem.intercept_ridge > 0.0 and not is_huberized:
            return "intercept ridge: huberized hinge only"
        return None

    def prepared(self, design: Design) -> Design:
        return column_major(design)

    def fit(self, problem: Problem, setting: float) -> Fitted:
        settings = {"max_iter": UNLIMITED, "tol": setting, **self.options}
        model = estimator(problem, solver=self.solver, **settings)
        return told(model.fit(problem.design, problem.labels))


def told(model: Any) -> Fitted:
    """Coefficients and what the certificate says about the way to them."""
    certificate = model.certificate_
    intercept = float(model.intercept_[0]) if model.fit_intercept else 0.0
    return Fitted(
        coef=model.coef_.ravel(),
        intercept=intercept,
        passes=certificate.n_passes,
        iterations=certificate.n_iter,
        note=str(certificate.solver),
    )


SOLVERS = ("auto", "b-pgh", "b-pgh-2", "gcd", "fapg", "fapg-ws")
PEERS = tuple(OwnPeer(f"proxmargin {name}", name) for name in SOLVERS)
