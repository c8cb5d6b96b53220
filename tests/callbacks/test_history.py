"""Histories: what rows hold, in which units, and that recording changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler

from proxmargin import (
    DWD,
    SVC,
    ConvergenceDisplay,
    ElasticNetSVC,
    History,
    HuberizedSVC,
    LogisticRegression,
)


def cancer() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:150], y[:150]


@pytest.mark.parametrize(
    "model",
    [SVC(solver="fapg"), HuberizedSVC(alpha=0.01, solver="b-pgh"), LogisticRegression(), SVC()],
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
