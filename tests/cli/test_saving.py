"""Hours of work are not lost to a full disk, a closed pipe or a signal."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import FAILED, OK, PIPE_CLOSED, USAGE

FIT = ("fit", "iris", "--model", "L2SVC", "-q")
COMPARE = ("compare", "iris", "--models", "L2SVC", "--folds", "2", "-q")


@pytest.fixture
def full_disk(monkeypatch) -> None:
    """Nothing more reaches the disk."""

    def fsync(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize(("command", "option"), [(FIT, "-o"), (COMPARE, "--output")])
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


@pytest.mark.slow
@pytest.mark.parametrize("command", [(*FIT, "-o"), (*COMPARE, "--output")])
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


@pytest.mark.slow
def test_results_on_a_full_disk_are_one_failure(tmp_path) -> None:
    path = tmp_path / "m.pmz"
    with open("/dev/full", "w") as full:
        process = start(*FIT, "-o", str(path), stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == FAILED
    assert err == "proxmargin: error: [Errno 28] No space left on device\n"
    assert load_model(path).certificate_.converged


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_comparison_with_its_table_and_saves_what_it_can(
    number, status, tmp_path, capsys, monkeypatch
) -> None:
    from proxmargin.studies.comparing import run, work

    def perform(task, data, scorer):
        if (task.candidate.name, task.fold) == ("SquaredHingeSVC", None):
            signal.raise_signal(number)
        return work.perform(task, data, scorer)

    monkeypatch.setattr(run, "perform", perform)
    path = tmp_path / "m.pmz"
    names = ["--models", "L2SVC", "SquaredHingeSVC"]
    assert main([*COMPARE, *names, "--output", str(path)]) == status
    out = capsys.readouterr().out
    assert "interrupted; the table holds what was finished" in out
    assert len(re.findall(r"^\w*SVC  ", out, re.M)) == 2  # rows of the table
    assert re.search(
        rf"^Saved to {path}: L2SVC, the (recommended model|best that was finished);", out, re.M
    )
    assert type(load_model(path)).__name__ == "L2SVC"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_fit_with_the_model_found_so_far(
    number, status, tmp_path, capsys, monkeypatch
) -> None:
    def signalled(report) -> None:
        if report.n_iter >= 20:
            signal.raise_signal(number)

    from proxmargin.cli import estimators

    path, made = tmp_path / "m.pmz", estimators.estimator_of
    monkeypatch.setattr(estimators, "estimator_of", lambda arguments: made(arguments, signalled))
    given = ["--model", "HuberizedSVC", "--solver", "fapg", "--tol", "1e-14", "-q"]
    assert main(["fit", "iris", *given, "-o", str(path)]) == status
    assert "it was interrupted" in capsys.readouterr().out
    assert load_model(path).certificate_.stop_reason == "it was interrupted"


def members(group: int) -> list[int]:
    """Processes of the session that a process began, itself included."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:  # it ended
            continue
        if int(fields[3]) == group and fields[0] != "Z":
            found.append(int(place.parent.name))
    return found


def awaited_end(group: int, seconds: float) -> list[int]:
    """The processes that are left after at most so long."""
    end = time.monotonic() + seconds
    while members(group) and time.monotonic() < end:
        time.sleep(0.1)
    return members(group)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize(
    ("number", "to_all"),
    [
        (signal.SIGTERM, False),
        (signal.SIGTERM, True),
        (signal.SIGINT, True),
        (signal.SIGKILL, False),
    ],
)
def test_a_signal_ends_all_processes_of_a_comparison(number, to_all) -> None:
    arguments = ("compare", "digits", "--models", "SquaredHingeSVC", "L2SVC", "--folds", "40")
    process = start(*arguments, "--jobs", "2", stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if " done, " in line and " 0 of " not in line:
                break
        (os.killpg if to_all else os.kill)(process.pid, number)
        out, err = process.communicate(timeout=30)
        left = awaited_end(process.pid, 5.0)
    finally:
        if members(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    assert left == []
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert "interrupted; the table holds what was finished" in out
        assert "always the largest class" in out
        assert "Traceback" not in err


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that takes no files: /proc")
@pytest.mark.parametrize("option", ["--report", "--output", "--plot"])
def test_a_file_that_cannot_be_made_is_refused_before_the_work(option, capsys) -> None:
    assert main([*COMPARE, option, "/proc/x.png"]) == USAGE
    told = capsys.readouterr().err
    assert re.search("cannot write to /proc/x.png: /proc (takes no|may not)", told)


def test_a_run_that_is_a_file_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "r").write_text("")
    assert main([*COMPARE, "--run", str(tmp_path / "r")]) == USAGE
    assert f"--run {tmp_path / 'r'} is a file: give a new" in capsys.readouterr().err
