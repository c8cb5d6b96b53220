"""Histories: what rows hold, in which units, and that recording changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from proxmargin import (
    DWD,
    SVC,
    Checkpoint,
    ConvergenceDisplay,
    ElasticNetSVC,
    History,
    HuberizedSVC,
    LogisticRegression,
    MulticlassSVC,
)
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.accelerated import FastProximalGradient


def cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:150], y[:150]


@pytest.mark.parametrize(
    "model",
    [
        SVC(solver="fapg"),
        HuberizedSVC(alpha=0.01, solver="b-pgh"),
        LogisticRegression(),
        SVC(solver="interior-point"),
    ],
)
def test_a_row_for_every_iteration_leaves_the_fit_as_it_is(model: Any) -> None:
    X, y = cancer()
    plain = model.set_params(tol=1e-4, callbacks=()).fit(X, y)
    coef, count = plain.coef_, plain.n_iter_
    history = History(every=1)
    told = model.set_params(callbacks=[history]).fit(X, y)
    np.testing.assert_array_equal(told.coef_, coef)
    assert told.n_iter_ == count
    assert sorted(set(history.column("n_iter"))) == list(range(count + 1))


def test_other_callbacks_are_called_as_without_it() -> None:
    X, y = cancer()
    alone: list[int] = []
    beside: list[int] = []
    model = SVC(solver="fapg", tol=1e-4)
    model.set_params(callbacks=[lambda report: alone.append(report.n_iter)]).fit(X, y)
    callbacks = [History(every=1), lambda report: beside.append(report.n_iter)]
    model.set_params(callbacks=callbacks).fit(X, y)
    assert beside == alone


@pytest.mark.parametrize(
    "model",
    [SVC(C=3.0, solver="fapg"), DWD(solver="fapg-star"), HuberizedSVC(solver="b-pgh", alpha=0.01)],
)
def test_objectives_are_those_of_the_documented_model(model: Any) -> None:
    history = History()
    certificate = model.set_params(tol=1e-5, callbacks=[history]).fit(*cancer()).certificate_
    last = history.rows[-1]
    assert last["best_gap"] == pytest.approx(certificate.gap, rel=0.5)
    assert last["primal"] == pytest.approx(certificate.primal, rel=1e-4)


def test_the_iterate_has_an_objective_of_its_own() -> None:
    X, y = cancer()
    history = History(every=1)
    model = HuberizedSVC(
        alpha=0.01, l1_ratio=1.0, delta=1.0, solver="b-pgh", callbacks=[history], tol=1e-5
    )
    model.fit(X, y)
    objective = np.array(history.column("objective"), dtype=float)
    primal = np.array(history.column("primal"), dtype=float)
    assert (objective >= primal * (1 - 1e-12)).all()  # the primal has the best intercept
    assert (np.diff(objective) <= 1e-12).all()  # B-PGH is monotone
    margins = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    losses = np.where(margins < 0, 0.5 - margins, 0.5 * np.square(np.clip(1 - margins, 0, None)))
    total = losses.mean() + 0.01 * np.abs(model.coef_).sum()
    assert primal.min() == pytest.approx(total, rel=1e-9)
    steps = np.array(history.column("step_constant"), dtype=float)
    assert (np.diff(steps) >= 0).all()  # L_k grows
    assert np.isnan(np.array(history.column("restarts"), dtype=float)).all()


def test_a_dual_method_tells_minus_the_dual_objective() -> None:
    history = History(every=1)
    SVC(solver="fapg", callbacks=[history], tol=1e-6).fit(*cancer())
    last = history.rows[-1]
    assert -float(last["objective"]) == pytest.approx(float(last["dual"]), rel=1e-3)
    restarts = np.array(history.column("restarts"), dtype=float)
    assert (np.diff(restarts) >= 0).all()
    assert restarts[-1] > 0


def test_class_problems_are_numbered() -> None:
    X, y = load_iris(return_X_y=True)
    history = History()
    SVC(callbacks=[history], multi_class="ovr").fit(X, y)
    assert sorted(set(history.column("problem"))) == [0, 1, 2]


def test_rows_make_a_frame_and_a_picture() -> None:
    pytest.importorskip("pandas")
    figure = pytest.importorskip("matplotlib.figure")
    model = ElasticNetSVC(alpha=0.01, solver="isvm2", callbacks=[History(every=1)], tol=1e-3)
    model.fit(*cancer())
    frame = model.history_.to_frame()
    assert {"objective", "n_support", "relative_gap"} <= set(frame.columns)
    ax = figure.Figure().subplots()
    display = ConvergenceDisplay.from_estimator(model, model, x="seconds", ax=ax)
    assert len(display.lines_) == 2
    assert (np.diff(display.lines_[0].get_ydata()) <= 0).all()
    assert ax.get_xlabel() == "seconds"


def test_what_cannot_be_drawn_or_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="every=0"):
        History(every=0)
    with pytest.raises(ValueError, match="History"):
        ConvergenceDisplay.from_estimator(SVC().fit(*cancer()))
    with pytest.raises(ValueError, match="n_iter, n_passes, seconds"):
        ConvergenceDisplay({"a": History()}, x="minutes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no certificates"):
        ConvergenceDisplay({"a": History()})


@pytest.mark.parametrize("solver", ["gcd", "b-pgh-2", "fapg-ws"])
def test_rows_of_runs_inside_a_step_go_on_from_those_before_it(solver: str) -> None:
    history = History(every=1)
    model = HuberizedSVC(alpha=0.05, l1_ratio=0.9, solver=solver, callbacks=[history])
    model.fit(*cancer())
    for name in ("n_iter", "n_passes", "seconds"):
        numbers = np.array(history.column(name), dtype=float)
        assert (np.diff(numbers) >= -0.01 * numbers[-1]).all(), name
    assert history.rows[-1]["n_iter"] == model.n_iter_


def iterate(state: Any) -> np.ndarray:
    """The coefficients u_k of a solver's state, without an intercept."""
    if hasattr(state, "first"):  # the two stages
        return state.first.u[:-1, 0] if state.second is None else state.second.coef[:, 0]
    if hasattr(state, "primal"):
        return state.primal.coef
    coef = state.sparse if hasattr(state, "sparse") else state.coef
    return coef.ravel()


def huberized(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """The objective of Xu et al. (2), with delta 1/2, and strengths 0.05 and 0.05."""
    short = 1.0 - np.where(y == 1, 1.0, -1.0) * (X @ w)
    losses = np.where(short > 0.5, short - 0.25, np.square(np.clip(short, 0, None)))
    return float(losses.mean() + 0.05 * np.abs(w).sum() + 0.025 * w @ w)


def doubly_regularised(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """The objective of Liu et al. (2), over the number of samples."""
    losses = np.clip(1.0 - np.where(y == 1, 1.0, -1.0) * (X @ w), 0, None)
    return float(losses.mean() + 0.05 * np.abs(w).sum() + 0.025 * w @ w)


def crammer_singer(w: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """The objective of Chierchia et al. (2) with an l1 norm and C = 3."""
    scores, rows = X @ w, np.arange(y.size)
    rivals = scores - scores[rows, y][:, None] + 1.0
    rivals[rows, y] = 0.0
    return float(3.0 * rivals.max(axis=1).sum() + np.abs(w).sum())


NET: dict[str, Any] = {"alpha": 0.1, "l1_ratio": 0.5, "fit_intercept": False}


@pytest.mark.parametrize(
    ("model", "objective"),
    [
        (HuberizedSVC(delta=0.5, solver="gcd", **NET), huberized),
        (
            HuberizedSVC(delta=0.5, solver="gcd", solver_options={"plain": True}, **NET),
            huberized,
        ),
        (HuberizedSVC(delta=0.5, solver="b-pgh-2", **NET), huberized),
        (ElasticNetSVC(solver="admm", **NET), doubly_regularised),
        (ElasticNetSVC(solver="isvm1", **NET), doubly_regularised),
        (ElasticNetSVC(solver="isvm2", **NET), doubly_regularised),
        (ElasticNetSVC(solver="isvm3", **NET), doubly_regularised),
        (
            MulticlassSVC(C=3.0, penalty="l1", fit_intercept=False, solver="fbpd", max_iter=300),
            crammer_singer,
        ),
    ],
    ids=lambda model: model.solver if hasattr(model, "solver") else "",
)
@pytest.mark.filterwarnings("ignore:.*iteration limit")
def test_every_row_has_the_objective_that_the_paper_prints(model: Any, objective: Any) -> None:
    X, y = cancer() if objective is not crammer_singer else load_iris(return_X_y=True)
    found: list[float] = []

    class Beside:
        every = 1

        def __call__(self, report: Any) -> None:
            if not report.inner:
                found.append(objective(iterate(report.state), X, y))
                told.append(report.scale * report.measures["objective"])

    told: list[float] = []
    history = History(every=1)
    model.set_params(tol=1e-4, callbacks=[history, Beside()]).fit(X, y)
    np.testing.assert_allclose(told, found, rtol=1e-9)
    assert len(told) > 1
    objectives = np.array(history.column("objective"), dtype=float)
    assert objectives.size == model.n_iter_ + 1
    assert np.isfinite(objectives).all()
    assert objectives[-1] == pytest.approx(found[-1], rel=1e-9)
    # the certificate is of the best intercept, and may be of a better length of the coefficients
    assert (objectives >= np.array(history.column("primal")) * (1 - 1e-9)).all()


@pytest.mark.parametrize("solver", ["gcd", "b-pgh-2", "m-pgh-2"])
def test_every_iteration_has_one_row(solver: str) -> None:
    X, y = cancer() if solver != "m-pgh-2" else load_iris(return_X_y=True)
    history = History(every=1)
    model = HuberizedSVC(alpha=0.05, solver=solver, callbacks=[history]).fit(X, y)
    assert history.column("n_iter") == list(range(model.n_iter_ + 1))
    assert history.rows[-1]["solver"] == solver  # the certificate of all features


def test_rows_tell_the_step_constant_of_either_stage() -> None:
    X, y = cancer()
    L_f = (1.0 + np.square(X).sum(axis=1)).mean() / 0.5  # (8)
    history = History(every=1)
    options = {"first_lipschitz": 0.02, "eta": 3.0}
    HuberizedSVC(
        alpha=0.05, delta=0.5, solver="b-pgh-2", solver_options=options, callbacks=[history]
    ).fit(X, y)
    steps = np.array(history.column("step_constant"), dtype=float)
    stage_one = np.array(history.column("solver")) == "b-pgh-2"
    np.testing.assert_allclose(steps[stage_one][:-1], steps[0])
    assert steps[0] <= L_f * (1 + 1e-12)
    raised = steps[~stage_one]
    powers = np.log(raised / 0.02) / np.log(3.0)
    assert raised.size
    np.testing.assert_allclose(powers, np.round(powers), atol=1e-9)


@pytest.mark.filterwarnings("ignore:.*iteration limit")
def test_rows_tell_the_constants_of_the_papers() -> None:
    X, y = cancer()
    courses: dict[str, Any] = {}
    for solver, options in (("isvm3", {}), ("admm", {"setting": "xu"})):
        courses[solver] = history = History(every=1)
        ElasticNetSVC(
            alpha=0.1, solver=solver, solver_options=options, max_iter=25, callbacks=[history]
        ).fit(X, y)
    # rho of Liu et al., from 10 by a factor of 1.2, bounded here
    steps = np.arange(len(courses["isvm3"]) - 1)
    growing = np.minimum(10.0 * 1.2**steps, 250.0)
    np.testing.assert_allclose(courses["isvm3"].column("rho")[1:], growing)
    # mu of Xu et al. 3.1: 100 / n and 50 for the mean of the losses, times n for the sum
    np.testing.assert_allclose(courses["admm"].column("rho_margin"), 100.0)
    np.testing.assert_allclose(courses["admm"].column("rho_coef"), 50.0 * y.size)
    # tau and gamma of Chierchia et al.: tau gamma |T|^2 <= 1
    X, y = load_iris(return_X_y=True)
    history = History(every=1)
    MulticlassSVC(C=3.0, penalty="l1", solver="fbpd", max_iter=200, callbacks=[history]).fit(X, y)
    norm = np.linalg.norm(np.column_stack([X, np.ones(150)]), 2)
    tau, sigma = (np.array(history.column(name)[1:], dtype=float) for name in ("tau", "sigma"))
    assert (tau * sigma * norm**2 <= 1.0).all()
    assert (tau * sigma * norm**2 > 0.9).all()


@pytest.mark.parametrize("every", [0, -1, 2.5, True, "a"])
def test_an_interval_of_a_callback_that_is_none_is_refused(every: Any) -> None:
    def callback(report: Any) -> None:
        raise AssertionError("no report before the error")

    callback.every = every  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=f"callbacks: every={every!r} must be an integer >= 1"):
        SVC(callbacks=[callback]).fit(*cancer())


def test_seconds_between_checkpoints_are_no_iterations(tmp_path: Any) -> None:
    X, y = cancer()
    problem = SVC()._assemble(X, y, None).problems[0]
    for seconds in (0.0, 0.5, 30):
        told: list[int] = []
        callbacks = [Checkpoint(tmp_path / "run.npz", every=seconds)]
        minimize(
            problem,
            FastProximalGradient(),
            stop=Stop(tol=1e-4),
            callbacks=[*callbacks, lambda report, told=told: told.append(report.n_iter)],
        )
        assert told[:4] == [0, 10, 20, 30]


def test_a_clone_begins_an_empty_history(rng) -> None:
    """Searches and folds clone for every fit, and would copy all rows of earlier fits each time."""
    X, y = rng.standard_normal((30, 3)), np.arange(30) % 2
    history = History(every=2)
    model = HuberizedSVC(callbacks=[history]).fit(X, y)
    known = len(history)
    assert known > 0
    copied = clone(model).callbacks[0]
    assert (copied.every, copied.rows, copied.best) == (2, [], None)
    search = GridSearchCV(model, {"alpha": [0.1, 0.01]}, cv=2).fit(X, y)
    assert len(history) == known
    alone = HuberizedSVC(callbacks=[History(every=2)], alpha=search.best_params_["alpha"]).fit(X, y)
    assert len(search.best_estimator_.history_) == len(alone.history_)
