"""What is advised where an optional library is absent can be typed as it stands."""

from __future__ import annotations

import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from proxmargin.runtime.optional import EXTRAS, FILES, RECORD, how_to_install

ROOT = Path(__file__).parents[2]


def test_the_advice_names_what_the_extra_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = project["optional-dependencies"]
    assert EXTRAS["files"] == FILES
    for extra, libraries in EXTRAS.items():
        wanted = [Requirement(text) for text in listed[extra]]
        ours = (name for each in wanted if each.name == "proxmargin" for name in each.extras)
        inner = [text for name in ours for text in listed[name]]
        named = [Requirement(text).name for text in (*inner, *listed[extra])]
        assert tuple(name for name in named if name != "proxmargin") == libraries


def test_elsewhere_pip_is_to_install_the_libraries_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert how_to_install() == "pip install pandas pyarrow openpyxl"
    assert how_to_install("report") == "pip install matplotlib jinja2 vl-convert-python"


def test_in_an_environment_that_run_py_made_run_py_is_to_install_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / RECORD).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    python, script, task, extra = shlex.split(how_to_install())
    assert (python, Path(script), task, extra) == ("python3", ROOT / "run.py", "install", "files")
    text = Path(script).read_text(encoding="utf-8")
    assert f'"{task}"' in text
    assert f'"{RECORD}"' in text


def test_no_message_advises_to_fetch_this_package_from_an_index() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    guilty = [path for path in sources if "install proxmargin" in path.read_text().replace('"', "")]
    assert guilty == []
