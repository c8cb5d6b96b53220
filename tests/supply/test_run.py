"""run.py installs again where its record of the environment says anything but what is asked for."""

from __future__ import annotations

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

FILE = Path(__file__).parents[2] / "run.py"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module, with an environment that works and a pip that only takes notes."""
    monkeypatch.setenv("PROXMARGIN_VENV", str(tmp_path))
    monkeypatch.delenv("PROXMARGIN_REQUIREMENTS", raising=False)
    spec = spec_from_file_location("run", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.installed = []
    monkeypatch.setattr(module, "succeeds", lambda *command: True)
    monkeypatch.setattr(module, "install", lambda *words: module.installed.append(words[-1]))
    monkeypatch.setattr(module, "begin_kernels", Mock)
    return module


@pytest.mark.parametrize("record", [None, "", '{"complete": true, "extras": ["cli"]}'])
def test_without_a_record_of_this_version_it_installs_once(run, tmp_path, record) -> None:
    if record is not None:
        (tmp_path / run.RECORD).write_text(record)
    run.provide("cli")
    run.provide("cli")
    assert run.installed == [f"{run.ROOT}[cli,custom]"]


def test_extras_are_kept_and_a_change_installs_again(run, tmp_path) -> None:
    run.provide("cli")
    run.provide("test")
    assert run.installed[-1] == f"{run.ROOT}[cli,custom,test]"
    file = tmp_path / run.RECORD
    file.write_text(json.dumps({**json.loads(file.read_text()), "state": "another"}))
    run.provide("cli")
    assert len(run.installed) == 3


def test_the_kernels_of_a_first_comparison_are_compiled_while_the_rest_is_installed(
    run, monkeypatch
) -> None:
    begun, installed = [], []
    monkeypatch.undo()
    monkeypatch.setattr(run, "install", lambda *words: installed.extend(words))
    monkeypatch.setattr(run.subprocess, "Popen", lambda command, env: begun.append(command))
    run.begin_kernels()
    names = [re.match(r"\w+", each)[0] for each in installed]
    assert names == ["numba", "numpy", "scipy", "joblib"]
    assert begun == [[run.PYTHON, "-m", run.BUILD, "--first"]]
