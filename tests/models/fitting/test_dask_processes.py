"""Fits on two worker processes: one is killed; what travels; public data in sparse blocks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.offline.sitecustomize import LOOPBACK
from tests.shared_data import CHECKOUT, needs_data

pytest.importorskip("dask.array", reason="dask is not installed (extra dask)")
pytest.importorskip("distributed", reason="distributed is not installed (extra dask)")

SECONDS = 600


def in_a_process(*arguments: str) -> dict[str, Any]:
    """What `dask_processes` finds, in processes that may speak to each other and no one else."""
    command = [sys.executable, "-m", "tests.models.fitting.dask_processes", *arguments]
    done = subprocess.run(
        command,
        env={**os.environ, LOOPBACK: "1"},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_worker_is_killed_and_the_fit_goes_on(at: int) -> None:
    found = in_a_process("killed", str(at))
    assert found["passes"] >= at
    assert found["gone"]
    assert found["converged"]
    assert found["off"] < 1e-9
    assert 0 < found["largest"] < found["block"] / 2  # the sample


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a9a", "covtype", "news20"])
def test_public_data_in_sparse_blocks_agree_with_those_in_memory(name: str) -> None:
    needs = needs_data(f"data/{name}.npz")
    if needs.args[0]:
        pytest.skip(needs.kwargs["reason"])
    found = in_a_process(name)
    assert {what: off for what, off in found["off"].items() if off >= 1e-9} == {}
    assert 0 < found["largest"] < found["block"] / 2  # the sample
