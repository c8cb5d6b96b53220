"""One-vs-rest on blocks of rows: one pass for all classes, the same bits, and nothing left over."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import proxmargin as pm
from proxmargin import open_dataset
from proxmargin.data.datasets import DataLostError, Dataset
from proxmargin.data.designs.blocks import ChunkedDesign
from proxmargin.data.designs.blocks.device import namespace_of
from proxmargin.models.fitting.fitting import MATRICES, VECTORS
from proxmargin.runtime.interrupts import interrupts
from proxmargin.solvers.l1.pass_newton import PassNewton
from tests.data.designs.test_device import every_library, on_device
from tests.models.fitting.test_beyond_memory import counted
from tests.shared_data import Vanishing

X, Y = load_digits(return_X_y=True)
X, Y = X[:600] / 16.0, Y[:600]
ROWS = 80  # of a chunk

MODELS: dict[str, Any] = {
    "sparse logistic": pm.SparseLogisticRegression(alpha=0.003, multi_class="ovr"),
    "standardized": pm.HuberizedSVC(alpha=0.01, standardize=True, multi_class="ovr"),
    "no intercept": pm.SquaredHingeSVC(alpha=0.01, fit_intercept=False, multi_class="ovr"),
    "logistic": pm.LogisticRegression(C=0.1),
    "distance weighted": pm.DWD(),
    "hinge": pm.SVC(C=0.05, tol=1e-3),
    "hinge with an elastic net": pm.ElasticNetSVC(alpha=0.05, multi_class="ovr", tol=0.1),
}


def again(model: Any, **changes: Any) -> Any:
    return type(model)(**{**model.get_params(), **changes})


def one_after_the_other(model: Any) -> Any:
    """The model, whose classes are solved in turn: callbacks are told of them so."""
    return again(model, callbacks=[lambda report: None], n_jobs=1)


def dataset(rows: np.ndarray = X, labels: np.ndarray = Y, **options: Any) -> Dataset:
    return open_dataset(rows, target=labels, chunk_rows=ROWS, **options)


def equal(one: Any, other: Any) -> None:
    """The models are the same to the bit, with the same certificates."""
    np.testing.assert_array_equal(one.coef_, other.coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    for ours, theirs in zip(one.certificate_, other.certificate_, strict=True):
        assert (ours.primal, ours.dual, ours.gap) == (theirs.primal, theirs.dual, theirs.gap)
        assert (ours.n_iter, ours.stop_reason) == (theirs.n_iter, theirs.stop_reason)


@pytest.fixture
def small_sample(monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 100 * X.shape[1] * 8)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", MODELS)
def test_a_pass_serves_all_classes_and_the_bits_are_those_of_one_at_a_time(
    name: str, monkeypatch, small_sample
) -> None:
    alone = one_after_the_other(MODELS[name]).fit(dataset())
    begun = counted(dataset(), monkeypatch)
    together = again(MODELS[name]).fit(dataset())
    equal(together, alone)
    slowest = max(each.n_passes for each in alone.certificate_)
    passes = together.certificate_.n_passes
    assert passes <= slowest + 4
    assert alone.certificate_.n_passes > 4 * passes
    # the first one of all; some models take one or two more when the classes are fitted
    assert round(passes) + 1 <= len(begun) <= round(passes) + 4


def test_rows_without_weight_and_many_features_make_no_difference(monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 500_000)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 2100))
    labels = np.digitize(rows[:, 0] + rows[:, 1] + 0.1 * rng.standard_normal(200), [-1.0, 1.0])
    weights = rng.integers(0, 3, 200).astype(float)
    for standardize in (False, True):
        model = pm.SparseLogisticRegression(
            alpha=0.1, l1_ratio=1.0, multi_class="ovr", standardize=standardize
        )
        reads, fits = [], []
        for each in (one_after_the_other(model), again(model)):
            with monkeypatch.context() as patch:
                begun = counted(dataset(), patch)
                fits.append(each.fit(dataset(rows, labels), sample_weight=weights))
                reads.append(len(begun))
        equal(fits[1], fits[0])
        assert fits[1].certificate_.converged
        assert reads[1] <= max(each.n_passes for each in fits[0].certificate_) + 4
        assert reads[1] < 0.6 * reads[0]


def test_groups_of_classes_fit_in_the_memory_that_is_left(monkeypatch, small_sample) -> None:
    threads: set[int] = set()
    step = PassNewton.step

    def noted(self: Any, problem: Any, state: Any) -> Any:
        threads.add(threading.get_ident())
        return step(self, problem, state)

    monkeypatch.setattr(PassNewton, "step", noted)
    model = MODELS["sparse logistic"]
    together = again(model).fit(dataset())
    assert len(threads) == 10
    each = 8 * (VECTORS * len(X) + MATRICES * 64 * 64) + X.nbytes
    monkeypatch.setattr("proxmargin.models.fitting.fitting.free_bytes", lambda: 4 * 3 * each)
    threads.clear()
    grouped = again(model).fit(dataset())
    assert len(threads) == 3
    equal(grouped, together)
    passes = grouped.certificate_.n_passes
    assert together.certificate_.n_passes < passes
    assert passes < 0.6 * one_after_the_other(model).fit(dataset()).certificate_.n_passes
    assert grouped.certificate_.n_passes == again(model).fit(dataset()).certificate_.n_passes
    monkeypatch.setattr("proxmargin.models.fitting.fitting.free_bytes", lambda: 0)
    equal(again(model).fit(dataset()), together)


def test_a_warm_start_reads_the_data_once_for_all_classes(monkeypatch, small_sample) -> None:
    model = again(MODELS["sparse logistic"], warm_start=True).fit(dataset())
    found = model.coef_.copy()
    begun = counted(dataset(), monkeypatch)
    model.fit(dataset())
    np.testing.assert_allclose(model.coef_, found, atol=1e-3)
    assert len(begun) <= 5


# -- how fits end


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_file_that_vanishes_leaves_the_last_certified_model_of_every_class(small_sample) -> None:
    model = pm.SparseLogisticRegression(alpha=0.001, tol=1e-12, multi_class="ovr")
    chunks = -(-len(X) // ROWS)
    with pytest.warns(ConvergenceWarning, match="could not be read any longer"):
        model.fit(dataset(Vanishing(X, 4 * chunks + 2)))
    best = again(model, tol=1e-9).fit(X, Y).certificate_
    assert len(model.certificate_) == 10
    for found, least in zip(model.certificate_, best, strict=True):
        assert found.dual <= least.primal
        assert least.dual <= found.primal
        assert "read" in found.stop_reason
    with pytest.raises(DataLostError, match=r"X\.npy"):
        again(model).fit(dataset(Vanishing(X, chunks + 2)))
    assert not left_over()


def left_over() -> list[str]:
    """Threads of classes that have not ended."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("proxmargin-class")]


def interrupting(monkeypatch, number: int, times: int) -> None:
    """Press Ctrl-C so many times in a pass, counted from the start of the fit."""
    run, done = ChunkedDesign.run, [0]

    def pressed(self: Any, *arguments: Any) -> Any:
        done[0] += 1
        if done[0] == number:
            for _ in range(times):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return run(self, *arguments)

    monkeypatch.setattr(ChunkedDesign, "run", pressed)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupted_fit_publishes_all_classes_as_they_are(monkeypatch, small_sample) -> None:
    interrupting(monkeypatch, 3, 1)
    model = pm.SparseLogisticRegression(alpha=0.001, tol=1e-12, multi_class="ovr")
    with pytest.raises(KeyboardInterrupt, match="the fit was interrupted"):
        model.fit(dataset())
    assert model.coef_.shape == (10, 64)
    best = again(model, tol=1e-9).fit(X, Y).certificate_
    for found, least in zip(model.certificate_, best, strict=True):
        assert found.dual <= least.primal
        assert least.dual <= found.primal
    assert not left_over()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_second_interrupt_ends_the_fit_after_the_pass_that_runs(
    monkeypatch, small_sample
) -> None:
    begun = counted(dataset(), monkeypatch)
    interrupting(monkeypatch, 3, 1)
    act = ChunkedDesign._blocks
    pressed = []

    def blocks(self: Any) -> Any:
        for each in act(self):
            yield each
            if len(begun) == 4 and not pressed:
                while not interrupts.pending:  # two signals at once would be one
                    time.sleep(0.001)
                pressed.append(signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))

    monkeypatch.setattr(ChunkedDesign, "_blocks", blocks)
    model = pm.SparseLogisticRegression(alpha=0.001, tol=1e-12, multi_class="ovr")
    with pytest.raises(KeyboardInterrupt):
        model.fit(dataset())
    assert not hasattr(model, "coef_")
    assert len(begun) <= 6
    assert not left_over()


def test_an_error_of_one_class_ends_the_others(monkeypatch, small_sample) -> None:
    step = PassNewton.step

    def failing(self: Any, problem: Any, state: Any) -> Any:
        if state.n_iter > 0 and np.array_equal(problem.margins.signs[:, 0] > 0, Y == 4):
            raise ArithmeticError("in class 4")
        return step(self, problem, state)

    monkeypatch.setattr(PassNewton, "step", failing)
    begun = counted(dataset(), monkeypatch)
    with pytest.raises(ArithmeticError, match="in class 4"):
        again(MODELS["sparse logistic"], tol=1e-12).fit(dataset())
    assert len(begun) <= 5
    assert not left_over()


def test_an_error_in_a_pass_is_raised_once(monkeypatch, small_sample) -> None:
    run, done = ChunkedDesign.run, [0]

    def failing(self: Any, *arguments: Any) -> Any:
        done[0] += 1
        if done[0] == 3:
            raise MemoryError("no room")
        return run(self, *arguments)

    monkeypatch.setattr(ChunkedDesign, "run", failing)
    with pytest.raises(MemoryError, match="no room"):
        again(MODELS["sparse logistic"]).fit(dataset())
    assert done[0] == 3
    assert not left_over()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_limit_of_time_holds_for_all_classes_at_once() -> None:
    model = pm.HuberizedSVC(1e-6, multi_class="ovr", solver="b-pgh", tol=0.0, time_limit=1.0).fit(
        dataset()
    )
    assert len(model.certificate_) == 10
    assert all(np.isfinite(each.gap) for each in model.certificate_)
    assert all("time" in each.stop_reason for each in model.certificate_)
    assert max(each.seconds for each in model.certificate_) < 3.0


def test_verbose_fits_share_passes_too(monkeypatch, capsys, small_sample) -> None:
    monkeypatch.setattr("proxmargin.solvers.callbacks.SHOW_AFTER", 0.0)
    monkeypatch.setattr("proxmargin.solvers.callbacks.REFRESH", 0.0)
    model = MODELS["sparse logistic"]
    found = again(model, verbose=1).fit(dataset())
    equal(found, again(model).fit(dataset()))
    lines = capsys.readouterr().err.splitlines()
    assert any("10/10 together" in line for line in lines)
    passes = found.certificate_.n_passes
    assert passes < 0.3 * one_after_the_other(model).fit(dataset()).certificate_.n_passes
    assert f"{passes:.0f} passes" in lines[-1]


# -- other blocks of rows


@pytest.mark.sampled(4)
@every_library
@pytest.mark.parametrize("name", ["standardized", "logistic", "distance weighted"])
def test_devices_compute_for_all_classes_in_a_pass(library: str, name: str, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.designs.base.SAMPLE_BYTES", 50_000)
    there = on_device(library, X)
    assert namespace_of(there) is not None
    alone = one_after_the_other(MODELS[name]).fit(there, Y)
    together = again(MODELS[name]).fit(there, Y)
    equal(together, alone)
    slowest = max(each.n_passes for each in alone.certificate_)
    assert together.certificate_.n_passes <= slowest + 4


def test_data_in_memory_are_fitted_as_before() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = again(MODELS["sparse logistic"]).fit(X, Y)
    assert all(each.n_passes >= 1 for each in model.certificate_)
