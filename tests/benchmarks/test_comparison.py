"""The comparison of solvers: a run from the command line, and what its table says."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from benchmarks.bandwidth import one_pass
from benchmarks.comparison_table import Case, Circumstances, body
from benchmarks.measure import (
    Climb,
    Limits,
    Trial,
    Worker,
    repeated,
    resident_at_most,
    resident_now,
)
from benchmarks.objective import Logistic
from benchmarks.peers import ALL, Fitted
from scipy.sparse import csr_matrix

from benchmarks import comparison

DATA = "synthetic:60,30,5,0"
NAMES = ("proxmargin auto", "sklearn-liblinear", "sklearn-saga")


def trial(seconds: float, passes: float | None = None) -> Trial:
    fitted = Fitted(np.ones(3), 0.0, passes=passes)
    return Trial(1e-4, seconds, 1.0, 1e-10, 3, fitted, memory=2e6)


@pytest.mark.slow
def test_a_run_writes_every_column(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    comparison.options(parser)
    path = tmp_path / "peers.md"
    words = ["--data", DATA, "--losses", "logistic", "--strengths", "0.1:1", "--limit", "20"]
    words += ["--goals", "1e-2", "1e-4", "--repeating", "0", "--results", str(tmp_path)]
    words += ["--solvers", "proxmargin auto", "sklearn-saga", "sklearn-liblinear"]
    assert comparison.main(parser.parse_args(words)) == 0
    text = path.read_text()
    (head,) = [line for line in text.splitlines() if line.startswith("| problem")]
    named = ["problem", "solver", "s to 0.01", "s to 0.0001", "passes", "effective passes"]
    assert [cell.strip() for cell in head.strip("|").split("|")] == [*named, "MB", "nonzeros"]
    (bare,) = [line for line in text.splitlines() if line.startswith("|  | sklearn-liblinear |")]
    assert all("0." in cell for cell in bare.split("|")[3:5])
    assert "Unfinished" not in text


def test_ratios_are_to_the_fastest_other_package() -> None:
    case = Case(DATA, Logistic(), 0.1, 1.0, False)
    climbs = {
        "proxmargin auto": Climb({1e-6: trial(0.5, passes=12.0)}, 1e-10),
        "sklearn-liblinear": Climb({1e-6: trial(2.0)}, 1e-10),
        "sklearn-saga": Climb({}, 1e-3, "more than 10 s"),
    }
    peers = {name: ALL[name] for name in NAMES}
    around = Circumstances(Limits(), [1e-6], peers, {"celer": "celer is not installed"}, 2)
    a_pass = one_pass(np.ones((60, 30)))
    text = body({case: climbs}, {DATA: a_pass}, around)
    assert "proxmargin auto | **0.500 (0.25)** | 12 |" in text
    assert "sklearn-liblinear | 2.00 (1) |" in text
    assert "sklearn-saga | late |" in text
    assert f"| {0.5 / a_pass.seconds:.3g} | 2 | 3 |" in text
    assert "Unfinished: 1 of 2" in text
    assert "Not run: celer, celer is not installed." in text
    assert "| proxmargin auto | 0.25, 1 of 1 |" in text


def test_rows_without_intercept_where_a_peer_has_no_other() -> None:
    grid = comparison.Grid((DATA,), ("0.1:1",))
    alone = list(comparison._cases(grid, ["logistic"], [ALL["proxmargin auto"]]))
    with_celer = list(comparison._cases(grid, ["logistic"], [ALL["celer"]]))
    assert [case.fit_intercept for case in alone] == [True]
    assert [case.fit_intercept for case in with_celer] == [True, False]


def test_two_threads_are_timed_by_the_wall_clock() -> None:
    parser = argparse.ArgumentParser()
    comparison.options(parser)
    with pytest.raises(SystemExit, match="adds up the threads"):
        comparison.main(parser.parse_args(["--threads", "2", "--clock", "cpu"]))


@pytest.mark.slow
def test_a_pass_is_of_the_data_as_stored() -> None:
    dense = np.ones((200, 50))
    assert one_pass(dense).size == dense.nbytes
    assert one_pass(dense, threads=2).seconds > 0.0
    sparse = csr_matrix(np.eye(50))
    assert one_pass(sparse).size == 50 * 8 + 50 * 4 + 51 * 4


def test_memory_is_that_of_the_highest_point() -> None:
    before = resident_now()
    if np.isnan(before):
        pytest.skip("this system tells nothing of resident memory")
    block = np.ones(4_000_000)  # 32 MB
    del block
    grown = resident_at_most() - before
    assert 30e6 < grown < 60e6


@dataclass
class Timed:
    """A worker whose batches take what they are told to, and its first fit less than any."""

    limits: Limits
    seconds: list[float]
    sizes: list[int] = field(default_factory=list)

    def again(self, spec: object, setting: float, times: int) -> tuple[float, float]:
        self.sizes.append(times)
        taken = self.seconds[len(self.sizes) - 1]
        return 2.0 * taken, taken


def test_short_fits_are_timed_in_batches() -> None:
    limits = Limits(clock="cpu", repeating=0.32, repeats=10, batch=0.05)
    worker = Timed(limits, [0.014, 0.012, 0.013, 0.015, 0.013, 0.016])
    best = repeated(cast("Worker", worker), None, trial(0.01))
    assert worker.sizes == [5] * 6
    assert (best.seconds, best.busy) == (0.012, 2.0)
    worker = Timed(limits, [0.07, 0.08, 0.09, 0.1, 0.11])
    assert repeated(cast("Worker", worker), None, trial(0.06)).seconds == 0.06
    assert set(worker.sizes) == {1}
