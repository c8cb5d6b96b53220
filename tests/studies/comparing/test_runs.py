"""A run directory: killed at any moment and started again, the same comparison."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import RidgeClassifier

from proxmargin import Comparison, SquaredHingeSVC, compare
from proxmargin.studies.comparing import run, setup, work
from proxmargin.studies.comparing.candidates import CANDIDATES, AlphaPath
from proxmargin.studies.comparing.setup import locked

QUICK = replace(CANDIDATES["SquaredHingeSVC"], search=AlphaPath(l1_ratios=(0.9,), n_alphas=4))
RIDGE = CANDIDATES["L2SVC"]
TIMES = ("seconds", "seconds_per_fit")


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def uninterrupted(iris) -> Comparison:
    return compare(*iris, models=[QUICK, RIDGE], cv=3, progress=False)


def same_but_for_times(a: Comparison, b: Comparison) -> bool:
    tables = [each.table.drop(columns="seconds_per_fit") for each in (a, b)]
    folds = [each.folds.drop(columns="seconds") for each in (a, b)]
    return tables[0].equals(tables[1]) and folds[0].equals(folds[1])


def test_a_run_is_read_again_with_its_facts_and_models(iris, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    first = compare(X, y, models=[QUICK, RIDGE], cv=3, progress=False, run_dir=tmp_path / "run")
    read = Comparison.from_run(tmp_path / "run")
    again = compare(X, y, models=[QUICK, RIDGE], cv=3, progress=False, run_dir=tmp_path / "run")
    facts = json.dumps(first.to_dict(), allow_nan=False)
    for other in (read, again):
        assert json.dumps(other.to_dict(), allow_nan=False) == facts
        assert other.table.equals(first.table)
        assert str(other) == str(first)
        np.testing.assert_array_equal(other.best_.coef_, first.best_.coef_)
        assert list(other.best_.feature_names_in_) == list(X.columns)


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_table(
    iris, uninterrupted, tmp_path, monkeypatch
):
    """Killed in a fit, and before, while and after a file is written."""
    rng = random.Random(0)
    fuse = {"left": 0}

    def burning(function):
        def call(*arguments, **named):
            fuse["left"] -= 1
            if fuse["left"] < 0:
                raise Killed
            found = function(*arguments, **named)
            fuse["left"] -= 1
            if fuse["left"] < 0:
                raise Killed
            return found

        return call

    monkeypatch.setattr(os, "replace", burning(os.replace))
    monkeypatch.setattr(os, "fsync", burning(os.fsync))
    monkeypatch.setattr(run, "perform", burning(work.perform))
    kills, found = 0, None
    while found is None:
        fuse["left"] = rng.randint(2, 25)
        try:
            found = compare(
                *iris, models=[QUICK, RIDGE], cv=3, progress=False, run_dir=tmp_path / "r"
            )
        except Killed:
            kills += 1
    assert kills >= 2
    assert not found.interrupted
    assert same_but_for_times(found, uninterrupted)
    assert Comparison.from_run(tmp_path / "r").table.equals(found.table)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_processes_killed_at_twenty_random_moments_end_with_the_same_table(tmp_path):
    code = (
        "from sklearn.datasets import load_iris; from proxmargin import compare; import sys;"
        "compare(*load_iris(return_X_y=True), models=['L2SVC', 'LogisticRegression'], cv=5, "
        "repeats=2, progress=False, run_dir=sys.argv[1], n_jobs=int(sys.argv[2]))"
    )
    names = ["L2SVC", "LogisticRegression"]
    expected = compare(*load_iris(return_X_y=True), models=names, cv=5, repeats=2, progress=False)
    rng, where = random.Random(1), tmp_path / "run"

    def finished() -> int:
        return len(list((where / "tasks").glob("*.json"))) if where.exists() else 0

    for kill in range(20):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(where), str(1 + kill % 2)], start_new_session=True
        )
        before, end = finished(), time.monotonic() + 60
        while process.poll() is None and finished() <= before and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.05))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    subprocess.run([sys.executable, "-c", code, str(where), "1"], check=True)
    found = Comparison.from_run(where)
    assert not found.interrupted
    assert same_but_for_times(found, expected)


def test_torn_records_are_done_again(iris, uninterrupted, tmp_path):
    where = tmp_path / "run"
    compare(*iris, models=[QUICK, RIDGE], cv=3, progress=False, run_dir=where)
    tasks = sorted((where / "tasks").iterdir())
    for number, file in enumerate(tasks[:3]):
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) * number // 3])
    next((where / "models").iterdir()).write_bytes(b"no archive")
    partial = Comparison.from_run(where)
    assert partial.interrupted
    assert len(partial.outcomes) == len(tasks) - 4
    found = compare(*iris, models=[QUICK, RIDGE], cv=3, progress=False, run_dir=where)
    assert same_but_for_times(found, uninterrupted)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"metrics": ["f1_micro"]}, "this fit has ['balanced_accuracy', 'f1_micro']"),
        ({"scoring": "accuracy"}, "scoring"),
        ({"cv": 4}, "cv=3"),
        ({"repeats": 2}, "repeats=1"),
        ({"models": [QUICK]}, "models"),
        ({"random_state": 5}, "seed=0"),
        ({"models": [replace(QUICK, search=AlphaPath(n_alphas=5)), RIDGE]}, "models"),
        ({"sample_weight": np.arange(1, 151)}, "other labels or weights"),
    ],
)
def test_other_settings_are_refused_by_name(iris, tmp_path, changed, words):
    asked = {"models": [QUICK, RIDGE], "cv": 3, "progress": False, "run_dir": tmp_path / "r"}
    compare(*iris, **{**asked, "time_limit": 1e-9})
    with pytest.raises(ValueError, match="holds another comparison") as caught:
        compare(*iris, **{**asked, **changed})
    assert words in str(caught.value)


def test_other_data_and_other_files_are_refused(iris, tmp_path):
    X, y = iris
    asked = {"models": [QUICK], "cv": 3, "progress": False, "time_limit": 1e-9}
    compare(X, y, run_dir=tmp_path / "r", **asked)
    changed = X.copy()
    changed[7, 2] += 1e-9
    with pytest.raises(ValueError, match="other entries"):
        compare(changed, y, run_dir=tmp_path / "r", **asked)
    with pytest.raises(ValueError, match="of data of shape"):
        compare(*load_wine(return_X_y=True), run_dir=tmp_path / "r", **asked)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match=r"holds 'thesis.tex' and no comparison"):
        compare(X, y, run_dir=tmp_path / "mine", **asked)
    with pytest.raises(ValueError, match="is no directory of a comparison"):
        Comparison.from_run(tmp_path / "mine")
    with pytest.raises(ValueError, match=r"thesis.tex' is a file: give a new or an empty"):
        compare(X, y, run_dir=tmp_path / "mine" / "thesis.tex", **asked)
    with pytest.raises(OSError, match="run_dir cannot be made"):
        compare(X, y, run_dir=tmp_path / "mine" / "thesis.tex" / "below", **asked)


def test_a_time_limit_keeps_what_is_complete_and_says_so(iris, uninterrupted, tmp_path):
    asked = {"models": [QUICK, RIDGE], "cv": 3, "progress": False, "run_dir": tmp_path / "r"}
    found = compare(*iris, **asked, time_limit=1e-9)
    assert len(found.outcomes) == 1
    assert found.interrupted
    assert "the time limit was reached" in str(found)
    assert same_but_for_times(compare(*iris, **asked), uninterrupted)


def test_a_seed_that_was_drawn_is_that_of_the_continued_run(iris, tmp_path):
    asked = {"models": [QUICK], "cv": 2, "progress": False, "random_state": None}
    first = compare(*iris, **asked, run_dir=tmp_path / "r", time_limit=1e-9)
    found = compare(*iris, **asked, run_dir=tmp_path / "r")
    assert found.setup.protocol.random_state == first.setup.protocol.random_state
    assert not found.interrupted


def test_a_full_disk_costs_one_warning_and_no_result(iris, uninterrupted, tmp_path, monkeypatch):
    real, count = setup.replaced, {"files": 0}

    def full_after_three(path):
        count["files"] += 1
        if count["files"] > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path)

    monkeypatch.setattr(setup, "replaced", full_after_three)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = compare(*iris, models=[QUICK, RIDGE], cv=3, progress=False, run_dir=tmp_path / "r")
    told = [str(each.message) for each in caught if "cannot be written" in str(each.message)]
    assert len(told) == 1
    assert "No space left" in told[0]
    assert "finished work is in memory only" in str(found)
    assert same_but_for_times(found, uninterrupted)
    monkeypatch.undo()
    read = Comparison.from_run(tmp_path / "r")
    assert read.interrupted
    assert len(read.outcomes) == 2


def test_models_of_other_libraries_are_fitted_again_and_are_not_in_the_directory(iris, tmp_path):
    asked = {"models": {"ridge": RidgeClassifier(), "own": SquaredHingeSVC(alpha=0.1)}, "cv": 2}
    first = compare(*iris, **asked, progress=False, run_dir=tmp_path / "r")
    read = Comparison.from_run(tmp_path / "r")
    assert set(read.models_) == {"own"}
    assert any("ridge" in note for note in read.notes())
    again = compare(*iris, **asked, progress=False, run_dir=tmp_path / "r")
    assert again.table.equals(first.table)
    np.testing.assert_array_equal(again.models_["ridge"].coef_, first.models_["ridge"].coef_)


HOLD = """
import sys
from pathlib import Path
from proxmargin.studies.comparing.setup import locked
stream = locked(Path(sys.argv[1]))
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_one_process_at_a_time_works_in_a_run(iris, tmp_path):
    asked = {"models": [QUICK], "cv": 3, "progress": False, "time_limit": 1e-9, "run_dir": tmp_path}
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(ValueError, match=f"is in use by process {process.pid} on "):
            compare(*iris, **asked)
        process.kill()  # its lock ends with it, however it ends
    assert compare(*iris, **asked).interrupted
    with locked(tmp_path) as stream:  # released at the end
        assert stream.writable()


def test_a_path_that_is_cut_short_by_a_signal_is_no_error(iris, monkeypatch) -> None:
    """Strengths that are missing end the comparison, which keeps what was finished."""
    from proxmargin.models.selection import folds as engine
    from proxmargin.runtime.interrupts import interrupts

    whole, calls = engine.path_models, []

    def cut(*arguments):
        calls.append(None)
        for scored in whole(*arguments):
            if len(calls) == 5:  # of three inner folds: the second for the second outer one
                interrupts.pending = True
                yield scored._replace(decisions=scored.decisions[:2])
            else:
                yield scored

    monkeypatch.setattr(engine, "path_models", cut)
    monkeypatch.setattr("proxmargin.studies.comparing.work.MOST_FURTHER", 0)  # three calls a fold
    result = compare(*iris, models=[QUICK], cv=2, progress=False)
    assert result.interrupted
    assert [outcome.fold for outcome in result.outcomes] == [0]
