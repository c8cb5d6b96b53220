"""The benchmark in benchopt's format: a run of its own command on a small problem."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("benchopt")

from benchmarks.peers import ALL

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "benchopt_margin"


@pytest.fixture
def outcome() -> Iterator[Path]:
    path = FOLDER / "outputs" / f"test_{os.getpid()}.parquet"
    yield path
    path.unlink(missing_ok=True)
    if path.parent.exists() and not any(path.parent.iterdir()):
        path.parent.rmdir()


@pytest.mark.slow
def test_a_run_certifies_what_it_solves_and_skips_the_rest(outcome: Path) -> None:
    words = ["-d", "synthetic[n=40,p=20,s=5,rho=0.0]", "-s", "proxmargin[peer='proxmargin auto']"]
    words += ["-s", "scikit-learn[peer=sklearn-liblinear]", "-s", "rehline"]
    model = "*[loss=logistic,fraction=0.1,l1_ratio=1.0,fit_intercept=False]"
    options = ["--no-plot", "--no-html", "--no-display", "--no-cache", "--timeout", "60"]
    words += ["-o", model, *options, "--output", outcome.stem]
    subprocess.run(
        [sys.executable, "-m", "benchopt", "run", str(FOLDER), *words],
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        timeout=300,
    )
    table = pd.read_parquet(outcome)
    best = table.groupby("solver_name")[["objective_relative_gap", "objective_value"]].min()
    assert len(best) == 2
    assert (best["objective_relative_gap"] <= 1e-9).all()
    assert np.ptp(best["objective_value"]) <= 1e-8


def test_every_peer_is_a_solver_of_the_benchmark() -> None:
    texts = [path.read_text() for path in (FOLDER / "solvers").glob("*.py")]
    absent = {name for name in ALL if not any(f'"{name}"' in text for text in texts)}
    assert absent == {"proxmargin b-pgh", "proxmargin b-pgh-2", "proxmargin fapg"}
