"""``proxmargin warm-up``: what it compiles is there for later processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proxmargin.cli import main
from proxmargin.cli.failures import FAILED, OK, USAGE
from proxmargin.compiled import folders

LATER = """
import logging, sys
import numpy as np
from scipy.sparse import csr_array
from proxmargin import MarginFDA
logging.basicConfig(stream=sys.stdout, format="%(message)s")
X = np.random.default_rng(1).standard_normal((50, 7))
S, y = csr_array(X * (X > 1)), np.arange(50) % 3
for data in (X, np.asfortranarray(X), X.astype(np.float32), S, S.astype(np.float32)):
    MarginFDA(standardize=True).fit(data, y)
    MarginFDA(kernel="rbf").fit(data, y > 0)
"""


def test_first_fits_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm-up", "--models", "MarginFDA", "-q"]) == OK
    head, row, *_, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["model", "first", "fits", "CPU", "seconds"]
    name, fits, seconds = row.split()
    assert (name, int(fits) > 20, float(seconds) >= 0.0) == ("MarginFDA", True, True)
    assert last == f"Kernels are kept in {folders.home()}"


def test_an_unknown_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm-up", "--models", "MarginLDA"]) == USAGE
    assert "there is no model 'MarginLDA'" in capsys.readouterr().err


def test_nothing_is_compiled_that_cannot_be_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "home", lambda: None)
    assert main(["warm-up"]) in (FAILED, USAGE)
    assert "set NUMBA_CACHE_DIR" in capsys.readouterr().err


@pytest.mark.slow
def test_later_processes_compile_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PROXMARGIN_KERNELS": "numba"}
    words = [sys.executable, "-m", "proxmargin", "warm-up", "--models", "MarginFDA", "--json"]
    warmed = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    told = json.loads(warmed.stdout)
    assert told["folder"].startswith(str(tmp_path))
    assert sum(told["seconds"]["MarginFDA"].values()) > 0.2
    later = subprocess.run(
        [sys.executable, "-c", LATER], env=environment, capture_output=True, text=True, check=True
    )
    assert later.stdout == ""
