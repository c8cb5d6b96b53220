"""Interruption, limits, warm starts, callbacks, memory: what happens around the mathematics."""

from __future__ import annotations

import os
import signal
import threading
import tracemalloc
import warnings
from time import process_time
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from proxmargin import (
    DWD,
    SVC,
    Checkpoint,
    History,
    HuberizedSVC,
    MarginFDA,
    MulticlassSVC,
    NuSVC,
    SparseLogisticRegression,
)
from proxmargin.optimality.problem import Point
from proxmargin.runtime.interrupts import interrupts
from proxmargin.runtime.threads import quiet_threads
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.run import Run
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.papers.proximal_gradient import CoordinateDescent
from tests.shared_data import load_set, needs_data

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


class Interrupt:
    """Raises what Ctrl-C raises, at one of the certificates."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, report) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("solver", ["fapg", "b-pgh", "b-pgh-2", "gcd", "fapg-ws", "newton"])
def test_an_interrupted_fit_keeps_the_model_found_so_far(solver) -> None:
    history = History()
    model = HuberizedSVC(
        3e-3, delta=0.05, tol=1e-12, solver=solver, callbacks=[history, Interrupt(3)]
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.certificate_.stop_reason == "it was interrupted"
    assert 0 < model.certificate_.gap < np.inf
    assert model.history_ is history
    assert len(history) >= 2  # of three certificates two may be of one iteration
    assert history.best is not None
    assert model.score(X, Y) >= 0.6
    np.testing.assert_allclose(history.best.coef[:, 0], model.coef_[0])


@pytest.mark.parametrize("model", [HuberizedSVC(), SVC(), DWD()])
def test_a_signal_after_convergence_does_not_say_that_it_ended_the_fit(model) -> None:
    def kill(report) -> None:
        if report.gap.relative_gap <= 1e-6:
            interrupts.pending = True

    model = clone(model).set_params(callbacks=[kill])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert model.certificate_.converged
    assert model.certificate_.stop_reason == "the certified gap met the tolerance"


def test_an_interrupted_one_vs_rest_fit_has_a_certificate_for_every_class() -> None:
    features, labels = load_wine(return_X_y=True)
    model = SparseLogisticRegression(multi_class="ovr", standardize=True, callbacks=[Interrupt(4)])
    with pytest.raises(KeyboardInterrupt):
        model.fit(features, labels)
    assert len(model.certificate_) == 3
    assert model.coef_.shape == (3, 13)


def test_a_checkpoint_holds_the_point_of_the_last_certificate(tmp_path) -> None:
    path = tmp_path / "fit.npz"
    model = HuberizedSVC(callbacks=[Checkpoint(path, every=0.0)]).fit(X, Y)
    point, facts = Checkpoint.load(path)
    np.testing.assert_array_equal(point.coef[:, 0], model.coef_[0])
    assert facts["primal"] == model.certificate_.primal
    assert not list(tmp_path.glob("*.part"))


def test_the_history_shows_a_falling_bound() -> None:
    history = History()
    HuberizedSVC(alpha=1e-3, solver="b-pgh", callbacks=[history]).fit(X, Y)
    primal = np.array(history.column("primal"))
    assert np.all(np.diff(primal) <= 1e-12)
    assert np.all(np.array(history.column("gap")) >= 0)
    assert history.column("n_iter")[:3] == [0, 10, 20]


def test_a_time_limit_ends_the_fit_with_a_certificate() -> None:
    with pytest.warns(ConvergenceWarning, match="the time limit was reached"):
        model = HuberizedSVC(alpha=1e-7, tol=0.0, solver="b-pgh", time_limit=0.05).fit(X, Y)
    assert model.certificate_.stop_reason == "the time limit was reached"
    assert model.certificate_.seconds < 5


def test_tiny_problems_without_limits_end_soon_and_say_why(monkeypatch, rng) -> None:
    monkeypatch.setattr("proxmargin.models.fitting.fitting.TINY_WORK", 1e6)
    features, labels = rng.standard_normal((40, 30)), np.arange(40) % 2
    weights = np.ones(40)
    weights[0] = 1e20  # a slope that no step length of the others can follow
    begun = process_time()
    with pytest.warns(ConvergenceWarning, match="multiply-adds that so small a problem"):
        model = DWD().fit(features, labels, sample_weight=weights)
    assert process_time() - begun < 1.0
    assert 0 < model.certificate_.gap < np.inf
    with pytest.warns(ConvergenceWarning, match="the iteration limit"):
        DWD(max_iter=3).fit(features, labels, sample_weight=weights)
    with pytest.warns(ConvergenceWarning, match="the time limit"):
        DWD(time_limit=1e-3).fit(features, labels, sample_weight=weights)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_warm_start_from_the_solution_needs_no_iteration(standardize) -> None:
    model = HuberizedSVC(warm_start=True, standardize=standardize, solver="fapg").fit(X, Y)
    coef = model.coef_.copy()
    model.fit(X, Y)
    assert model.certificate_.n_iter == 0
    np.testing.assert_allclose(model.coef_, coef, atol=1e-12)
    model.set_params(alpha=0.02).fit(X, Y)
    cold = HuberizedSVC(alpha=0.02, standardize=standardize, solver="fapg", tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-3)
    model.fit(X[:, :5], Y)  # another shape starts cold
    assert model.coef_.shape == (1, 5)


def test_the_rule_of_the_paper_stops_and_the_certificate_tells_what_it_is_worth() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = HuberizedSVC(
            alpha=1e-4, l1_ratio=1.0, solver="b-pgh", stopping="relative-change", tol=1e-4
        ).fit(X, Y)
    assert model.certificate_.stop_reason == "the stopping rule asked for was met"
    exact = HuberizedSVC(alpha=1e-4, l1_ratio=1.0, tol=1e-9).fit(X, Y).certificate_
    assert model.certificate_.gap >= model.certificate_.primal - exact.primal > 0


def test_the_two_stage_method_repairs_a_wrong_support() -> None:
    rng = np.random.default_rng(0)
    n, p = 60, 400
    wide = rng.standard_normal((n, p))
    labels = np.sign(wide[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(n))
    model = HuberizedSVC(alpha=0.02, l1_ratio=1.0, solver="b-pgh-2").fit(wide, labels)
    assert model.certificate_.converged
    # the support found by the first stage alone, as the paper would have kept it
    from proxmargin.solvers.loop.minimize import minimize
    from proxmargin.solvers.loop.solver import Stop
    from proxmargin.solvers.papers.proximal_gradient import TwoStage

    problem = model._assemble(wide, labels, None).problems[0]
    first = TwoStage(first_tol=1e-2)
    state = first.init(problem, problem.origin(), Stop())
    while state.second is None:
        state = first.step(problem, state)
    frozen = state.second.members
    missing = np.setdiff1d(np.flatnonzero(model.coef_[0]), frozen)
    assert missing.size > 0, "the first stage found the whole support: the case shows nothing"
    loose = minimize(problem, first, stop=Stop(tol=1e-6))
    assert loose.certificate.converged


def test_parallel_fits_in_threads_give_identical_models() -> None:
    alone = HuberizedSVC(alpha=1e-3).fit(X, Y).coef_
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(HuberizedSVC(alpha=1e-3).fit(X, Y).coef_))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for coef in found:
        np.testing.assert_array_equal(coef, alone)


@pytest.mark.sampled(4)
@needs_data("data/news20.npz")
@pytest.mark.parametrize("solver", ["auto", "fapg", "fapg-ws", "b-pgh-2"])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_large_sparse_fit_stays_within_four_times_the_data(solver, standardize) -> None:
    text, labels = load_set("news20")[:2]
    size = text.data.nbytes + text.indices.nbytes + text.indptr.nbytes
    alpha = 0.05 if standardize else 5e-4
    model = HuberizedSVC(alpha, 0.9, solver=solver, max_iter=100, tol=1e-3)
    model.set_params(standardize=standardize)
    model.fit(text[:100], labels[:100] == labels[0])  # compile first
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(text, labels == labels[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * size


@pytest.mark.slow
@needs_data("data/news20.npz")
@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_twenty_classes_of_text_stay_within_four_times_the_data(multi_class) -> None:
    text, labels = load_set("news20")[:2]
    size = text.data.nbytes + text.indices.nbytes + text.indptr.nbytes
    model = HuberizedSVC(alpha=1e-3, l1_ratio=0.9, multi_class=multi_class, tol=1e-2)
    model.fit(text[:100], labels[:100])
    tracemalloc.start()
    model.fit(text, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * size


@pytest.mark.parametrize("solver", ["b-pgh", "fapg", "gcd", "fapg-ws", "newton", "b-pgh-2"])
@pytest.mark.parametrize("size", [1e3, 1e7, 1e11])
def test_a_start_far_away_never_leads_to_a_false_certificate(solver, size) -> None:
    optimum = HuberizedSVC(tol=1e-10).fit(X, Y).certificate_
    model = HuberizedSVC(solver=solver, warm_start=True, max_iter=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y)
        model.coef_ = np.full_like(model.coef_, size)
        model.fit(X, Y)
    certificate = model.certificate_
    assert certificate.dual <= optimum.primal * (1 + 1e-12)
    assert certificate.gap >= certificate.primal - optimum.primal - 1e-12


def test_a_lower_bound_is_kept_without_the_rounding_of_a_huge_objective() -> None:
    problem = HuberizedSVC()._assemble(X, Y, None).problems[0]
    optimum = HuberizedSVC(tol=1e-10).fit(X, Y).certificate_.primal
    for size in (1e6, 1e10, 1e14):
        far = Point(np.full((30, 1), size), np.zeros(1))
        for steps in (1, 50):
            state = CoordinateDescent().init(problem, far, Stop())
            stop = Stop(max_iter=steps)
            found = minimize(problem, CoordinateDescent(), start=state, stop=stop)
            assert found.certificate.dual <= optimum * (1 + 1e-12)


def test_a_bad_start_is_given_up_for_the_null_model() -> None:
    model = HuberizedSVC(warm_start=True).fit(X, Y)
    model.coef_ = 1e8 * model.coef_
    assert model.fit(X, Y).certificate_.converged


@pytest.mark.parametrize(
    ("solver", "check", "check_of"),
    [
        ("b-pgh-2", "check", 6),
        ("gcd", "check", 6),
        ("fapg-ws", "check", 6),
        ("newton", "is_proved", 1),
    ],
)
def test_an_interruption_inside_a_working_set_ends_the_fit(
    solver, check, check_of, monkeypatch
) -> None:
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((50, 400))
    labels = (wide[:, 0] > 0).astype(int)
    count = 0

    plain = getattr(Run, check)

    def interrupting(run, state):
        nonlocal count
        count += 1
        if count == check_of:
            raise KeyboardInterrupt
        return plain(run, state)

    monkeypatch.setattr(Run, check, interrupting)
    model = HuberizedSVC(alpha=0.01, solver=solver, tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(wide, labels)
    reasons = "it was interrupted", "the certified gap met the tolerance"
    assert model.certificate_.stop_reason == reasons[model.certificate_.converged]
    assert count < 20


@pytest.mark.parametrize("solver", ["b-pgh", "b-pgh-2", "gcd", "fapg", "fapg-ws", "newton"])
def test_the_rule_of_the_paper_stops_every_solver(solver) -> None:
    model = HuberizedSVC(solver=solver, stopping="relative-change", tol=1e-6).fit(X, Y)
    assert model.certificate_.relative_gap < 1e-2
    assert model.certificate_.n_iter < 5000


def test_limits_on_threads_are_restored_after_fits_that_overlap() -> None:
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    inside = [quiet_threads(0) for _ in range(2)]
    for one in inside:
        one.__enter__()
    for one in inside:
        one.__exit__(None, None, None)
    after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert after == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e10, 1e13, 1e16])
@pytest.mark.parametrize("standardize", [False, True])
def test_a_large_mean_converges_or_is_not_called_converged(offset, standardize) -> None:
    rng = np.random.default_rng(1)
    centred = rng.standard_normal((100, 5))
    labels = (centred[:, 0] > 0).astype(int)
    shifted = centred + offset
    seen = shifted - offset  # what is left of the data in float64
    model = HuberizedSVC(alpha=0.01, l1_ratio=0.9, standardize=standardize, time_limit=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        certificate = model.fit(shifted, labels).certificate_
        reference = HuberizedSVC(alpha=0.01, l1_ratio=0.9, standardize=standardize, tol=1e-9)
        optimum = reference.fit(seen, labels).certificate_.primal
    if offset <= 1e6:
        assert certificate.converged
        assert certificate.primal == pytest.approx(optimum, rel=2e-6)
    if offset < 1e12:  # beyond, features this narrow count as constant
        assert certificate.gap >= certificate.primal - optimum - 1e-12


def test_a_huge_constant_column_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    narrow = rng.standard_normal((30, 3))
    labels = (narrow[:, 1] > 0).astype(int)
    narrow[:, 0] = 1.2345678901234568e22
    model = HuberizedSVC(standardize=True).fit(narrow, labels)
    without = HuberizedSVC(standardize=True).fit(narrow[:, 1:], labels)
    assert model.certificate_.primal == pytest.approx(without.certificate_.primal, rel=1e-6)
    assert model.coef_[0, 0] == 0.0


def test_a_signal_in_the_middle_of_compiled_code_is_not_lost() -> None:
    rng = np.random.default_rng(2)
    wide = rng.standard_normal((62, 2000))
    labels = (wide[:, 0] > 0).astype(int)
    model = HuberizedSVC(alpha=1e-4, tol=0.0, solver="gcd", max_iter=10**7, time_limit=20)
    model.set_params(max_iter=10).fit(wide[:, :300], labels)  # compile first
    model.set_params(max_iter=10**7)
    for delay in (0.1, 0.17, 0.23, 0.31):
        alarm = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT))
        alarm.start()
        try:
            with pytest.raises(KeyboardInterrupt):
                model.fit(wide, labels)
        finally:
            alarm.cancel()
        assert model.certificate_.stop_reason == "it was interrupted"
        assert model.certificate_.seconds < 10
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_logistic_probabilities_are_those_of_the_model() -> None:
    model = SparseLogisticRegression(alpha=0.01).fit(X, Y)
    found = model.predict_proba(X)
    scores = model.decision_function(X)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(found), atol=1e-15)
    features, labels = load_wine(return_X_y=True)
    several = SparseLogisticRegression(standardize=True).fit(features, labels)
    shares = several.predict_proba(features)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(shares.argmax(axis=1), several.predict(features))


@pytest.mark.parametrize(
    "model",
    [HuberizedSVC(), MulticlassSVC(), SVC(kernel="rbf"), NuSVC(kernel="rbf"), MarginFDA()],
    ids=lambda model: type(model).__name__,
)
def test_only_parameters_and_results_are_on_an_estimator_while_it_fits(model: Any) -> None:
    seen: list[set[str]] = []
    model.set_params(callbacks=[lambda report: seen.append(set(vars(model)))])
    model.fit(X, Y)
    assert seen
    for names in (*seen, set(vars(model))):
        assert all(name.endswith("_") for name in names - model.get_params().keys())
