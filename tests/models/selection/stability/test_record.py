"""A run that was interrupted continues, with the same bits, and no file of another run is taken."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone

from proxmargin import StabilitySelection
from proxmargin.models.selection.stability import half_samples
from proxmargin.models.selection.stability.half_samples import Record
from tests.models.selection.stability.test_selector import LASSO, planted


def selector(path, **settings):
    made = {"n_pairs": 6, "threshold": 0.7, "q": 4, "random_state": 3, "alphas": 10, **settings}
    return StabilitySelection(clone(LASSO), checkpoint=path, **made)


@pytest.fixture(scope="module")
def data():
    return planted()


@pytest.fixture(scope="module")
def whole(data):
    return selector(None).fit(*data)


@pytest.mark.parametrize("threads", [None, 2])
def test_an_interrupted_run_continues_with_the_same_bits(
    data, whole, tmp_path, monkeypatch, threads
) -> None:
    path, calls = tmp_path / "halves.npz", []
    original = half_samples.HalfSampleTask.entry

    def interrupted(self, *arguments):
        calls.append(arguments)
        if len(calls) == 5:
            signal.raise_signal(signal.SIGINT)
        return original(self, *arguments)

    monkeypatch.setattr(half_samples.HalfSampleTask, "entry", interrupted)
    if threads is None:
        with pytest.raises(KeyboardInterrupt, match=r"after 4 of 12 half-samples; .*halves.npz"):
            selector(path).fit(*data)
    else:
        with pytest.raises(KeyboardInterrupt):
            selector(path, n_jobs=None).fit(*data)
    fitted = len(calls)
    again = selector(path, n_jobs=threads).fit(*data)
    assert len(calls) - fitted == 8
    np.testing.assert_array_equal(again.frequencies_, whole.frequencies_)
    selector(path, threshold=0.9).fit(*data)  # another threshold fits nothing
    assert len(calls) - fitted == 8


@pytest.mark.slow
def test_a_killed_process_leaves_a_file_that_continues(data, tmp_path) -> None:
    path = tmp_path / "halves.npz"
    program = f"""
import proxmargin.models.selection.stability.half_samples as record
record.EVERY = 0.0
from tests.models.selection.stability.test_record import selector
from tests.models.selection.stability.test_selector import planted
selector({str(path)!r}, n_pairs=2000).fit(*planted())
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 240  # kernels may have to be compiled
    while time.monotonic() < deadline and not (path.exists() and len(np.load(path)["halves"])):
        time.sleep(0.05)
    process.kill()
    process.wait()
    resumed = selector(path, n_pairs=2000)
    assert 0 < len(np.load(path)["halves"]) < 4000
    resumed.fit(*data)
    fresh = selector(None, n_pairs=2000).fit(*data)
    np.testing.assert_array_equal(resumed.frequencies_, fresh.frequencies_)


def test_a_run_without_a_seed_continues_with_that_of_the_file(data, tmp_path) -> None:
    path = tmp_path / "halves.npz"
    first = selector(path, random_state=None).fit(*data)
    second = selector(path, random_state=None).fit(*data)
    np.testing.assert_array_equal(first.frequencies_, second.frequencies_)


def test_a_file_of_another_run_is_refused(data, tmp_path) -> None:
    X, y = data
    path = tmp_path / "halves.npz"
    selector(path).fit(X, y)
    for match, settings in [
        ("it has q=4, and this run 5", {"q": 5}),
        ("it has seed=", {"random_state": 4}),
        ("it has n_pairs=6", {"n_pairs": 7}),
        ("it has alphas=", {"alphas": 11}),
        ("it has units=", {"cluster": 0.3}),
    ]:
        with pytest.raises(ValueError, match=f"belongs to another run: {match}"):
            selector(path, **settings).fit(X, y)
    with pytest.raises(ValueError, match=r"belongs to another run: .*l1_ratio"):
        selector(path).set_params(estimator__l1_ratio=0.5).fit(X, y)
    with pytest.raises(ValueError, match="belongs to another run: it is of data with other"):
        selector(path).fit(X, y[::-1])
    selector(path).set_params(n_jobs=2).fit(X, y)


def test_a_damaged_file_is_refused(data, tmp_path) -> None:
    path = tmp_path / "halves.npz"
    path.write_bytes(b"no archive")
    for seed in (None, 3):
        with pytest.raises(ValueError, match="no file of half-samples"):
            selector(path, random_state=seed).fit(*data)
    path.unlink()
    selector(path).fit(*data)
    with np.load(path) as file:
        held = dict(file)
    held["entered"] = held["entered"] + 1000
    np.savez(path, **held)
    with pytest.raises(ValueError, match="damaged: remove it"):
        selector(path).fit(*data)


def test_a_file_that_cannot_be_written_fails_before_work(data, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(half_samples.HalfSampleTask, "entry", None)
    with pytest.raises(OSError, match="nowhere"):
        selector(tmp_path / "nowhere" / "halves.npz").fit(*data)


def test_a_record_without_a_file_keeps_entries_in_memory() -> None:
    record = Record(None, {"seed": 1}, None, 3, 2, 2)
    record.open()
    record.write()
    assert record.entries == {}
