"""Objectives, rules and ends of the accelerated methods of Ito et al. (2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine

from proxmargin import History, LogisticRegression, MulticlassSVC, NuSVC, SparseLogisticRegression
from proxmargin.solvers.loop import run
from proxmargin.solvers.loop.report import Status

pytestmark = pytest.mark.filterwarnings("ignore:.* stopped before")


@pytest.mark.parametrize(
    "model",
    [
        SparseLogisticRegression(alpha=0.05),
        MulticlassSVC(penalty="l1", loss="squared_hinge"),
        MulticlassSVC(penalty="l1", loss="logistic"),
    ],
    ids=["multinomial", "squared hinge", "logistic"],
)
@pytest.mark.parametrize("solver", ["fapg", "apg", "fapg-guaranteed"])
def test_joint_classes_in_centred_coordinates_have_an_objective(model: Any, solver: str) -> None:
    history = History(every=1)
    X, y = load_wine(return_X_y=True)  # means up to 750: the coordinates are centred
    model.set_params(solver=solver, callbacks=[history], max_iter=50).fit(X, y)
    objective, primal = (history.to_frame()[name].to_numpy() for name in ("objective", "primal"))
    assert np.isfinite(objective[1:]).all()
    assert primal[-1] <= objective[-1] * (1 + 1e-9)  # the best of all iterates


def test_rule_20_ends_a_joint_fit() -> None:
    X, y = load_wine(return_X_y=True)
    model = SparseLogisticRegression(
        alpha=0.05, solver="fapg", stopping="relative-change", tol=1e-5, max_iter=2000
    ).fit(X, y)
    assert model.certificate_.stop_reason == Status.RULE_MET.value
    assert model.certificate_.relative_gap < 1e-5


class Course:
    """Of each iteration: restarts, the residual of the step, F."""

    every = 1

    def __init__(self) -> None:
        self.seen: list[tuple[int, float, float]] = []

    def __call__(self, report: Any) -> None:
        state = report.state
        self.seen.append((state.restarts, state.step_residual, state.objective))


def fitted(tol: float) -> list[tuple[int, float, float]]:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 10))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(60) > 0, 1, -1)
    course = Course()
    options = {"first_point": 0.9, "patience": 1, "decrease": 1.5}
    LogisticRegression(
        C=0.1,
        solver="fapg",
        solver_options=options,
        stopping="step-residual",
        tol=tol,
        max_iter=120,
        callbacks=[course],
    ).fit(X, y)
    return course.seen


def test_a_step_that_meets_the_rule_is_kept_though_it_goes_uphill() -> None:
    """Algorithm 4 stops before it restarts: the point it returns is that of the small step."""
    course = fitted(1e-30)
    lows = np.minimum.accumulate([residual for _, residual, _ in course])
    restarts = [
        k
        for k in range(1, len(course))
        if course[k][0] > course[k - 1][0] and course[k][1] < lows[k - 1] < np.inf
    ]
    first = restarts[0]
    ended = fitted(course[first][1] * (1 + 1e-7))
    assert len(ended) == first + 1
    assert ended[-1][0] == ended[-2][0]
    assert ended[-1][2] != ended[-2][2]


@pytest.mark.parametrize("max_stalled", [1000, np.inf])
def test_a_run_whose_objective_falls_is_not_taken_for_stalled(
    max_stalled: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features that differ by four orders of magnitude: F falls for long before the gap does."""
    monkeypatch.setattr(run, "STALL_ITERATIONS", 500)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 30))
    y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(80) > 0, 1, -1)
    options = {"max_stalled": max_stalled}
    model = NuSVC(nu=0.3, solver="fapg", solver_options=options, max_iter=1500)
    told = model.fit(X * np.logspace(0, 4, 30), y).certificate_
    assert told.stop_reason == Status.ITERATION_LIMIT.value
