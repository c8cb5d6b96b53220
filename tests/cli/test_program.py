"""The command as a process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import proxmargin
from proxmargin.cli import main
from tests.cli.conftest import ROWS


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proxmargin", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


class TestProcess:
    def test_version_and_help(self):
        version = run("--version")
        assert (version.returncode, version.stdout) == (
            0,
            f"proxmargin {proxmargin.__version__}\n",
        )
        for command in (
            [],
            ["compare"],
            ["fit"],
            ["cv"],
            ["predict"],
            ["path"],
            ["stability"],
            ["info"],
        ):
            shown = run(*command, "--help")
            assert shown.returncode == 0
            assert shown.stdout.startswith("usage: proxmargin")

    @pytest.mark.slow
    def test_fit_predict_and_info_follow_each_other(self, training, tmp_path, capsys):
        options = ("--model", "SquaredHingeSVC", "-q", "-o", "m.pmz")
        fitted = run("fit", training, *options, cwd=tmp_path)
        told = [line for line in fitted.stderr.splitlines() if "compiling kernels" not in line]
        assert (fitted.returncode, told) == (0, [])
        stored = str(tmp_path / "m.pmz")  # each process takes seconds: the others are this one
        assert main(["predict", stored, str(training)]) == 0
        assert len(capsys.readouterr().out.splitlines()) == ROWS + 1
        assert main(["info", stored]) == 0
        assert "SquaredHingeSVC" in capsys.readouterr().out

    def test_a_reader_that_leaves_is_no_error(self, model, training):
        command = [sys.executable, "-m", "proxmargin", "predict", str(model), str(training), "-q"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) == 141
        assert errors == b""

    @pytest.mark.slow
    def test_letters_that_a_terminal_lacks_are_no_error(self):
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        arguments = ("compare", "iris", "--models", "SquaredHingeSVC", "--folds", "2", "-q")
        shown = run(*arguments, env=environment)
        assert shown.returncode == 0
        assert "always the largest class" in shown.stdout
