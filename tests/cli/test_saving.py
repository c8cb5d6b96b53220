"""Hours of work are not lost to a full disk, a closed pipe or a signal."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import FAILED, OK, PIPE_CLOSED

FIT = ("fit", "iris", "--model", "L2SVC", "-q")
COMPARE = ("compare", "iris", "--models", "L2SVC", "--folds", "2", "-q")


@pytest.fixture
def full_disk(monkeypatch) -> None:
    """Nothing more reaches the disk."""

    def fsync(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize(("command", "option"), [(FIT, "-o"), (COMPARE, "--model")])
def test_results_are_printed_where_the_disk_is_full(
    command, option, full_disk, tmp_path, capsys
) -> None:
    assert main([*command, option, str(tmp_path / "m.pmz")]) == FAILED
    out, err = capsys.readouterr()
    assert "converged: objective" in out
    assert str(tmp_path) not in out
    assert err.endswith("m.pmz: cannot be written: No space left on device.\n")
    assert os.listdir(tmp_path) == []


def test_predictions_are_written_all_or_not_at_all(tmp_path, capsys, full_disk, monkeypatch):
    path, out = str(tmp_path / "m.pmz"), tmp_path / "out.csv"
    with monkeypatch.context() as real:
        real.setattr(os, "fsync", lambda handle: None)
        assert main([*FIT, "-o", path]) == OK
    out.write_text("what was there")
    assert main(["predict", path, "iris", "-o", str(out)]) == FAILED
    assert out.read_text() == "what was there"
    assert "No space left" in capsys.readouterr().err


def test_predictions_go_to_a_device(tmp_path, capsys) -> None:
    path = str(tmp_path / "m.pmz")
    assert main([*FIT, "-o", path]) == OK
    assert main(["predict", path, "iris", "-q", "-o", "/dev/null"]) == OK
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_takes_no_new_file_is_refused_first(tmp_path, capsys) -> None:
    path = tmp_path / "m.pmz"
    path.write_text("")
    tmp_path.chmod(0o555)
    try:
        assert main([*FIT, "-o", str(path)]) == 2
    finally:
        tmp_path.chmod(0o755)
    assert "cannot write to" in capsys.readouterr().err


def start(*arguments: str, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "proxmargin", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("command", [(*FIT, "-o"), (*COMPARE, "--model")])
def test_a_model_is_saved_where_nobody_reads_the_results(command, tmp_path) -> None:
    path = tmp_path / "m.pmz"
    reading, writing = os.pipe()
    os.close(reading)
    process = start(*command, str(path), stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert process.returncode == PIPE_CLOSED
    assert err == ""
    assert load_model(path).certificate_.converged


def test_results_on_a_full_disk_are_one_failure(tmp_path) -> None:
    path = tmp_path / "m.pmz"
    with open("/dev/full", "w") as full:
        process = start(*FIT, "-o", str(path), stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == FAILED
    assert err == "proxmargin: error: [Errno 28] No space left on device\n"
    assert load_model(path).certificate_.converged
