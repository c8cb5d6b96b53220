"""``compare --report`` and ``report`` write the same page; what is missing is said before work."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from proxmargin.cli import main

pytest.importorskip("vl_convert", reason="the extra report is not installed")

MODELS = ["SquaredHingeSVC", "MarginFDA"]


def test_a_comparison_and_its_run_directory_make_the_same_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, run = tmp_path / "first.html", tmp_path / "run"
    words = ["compare", "iris", "--models", *MODELS, "--folds", "3", "--quiet"]
    assert main([*words, "--run", str(run), "--report", str(first)]) == 0
    assert f"Report: {first}" in capsys.readouterr().out
    assert main(["report", str(run), "--json"]) == 0
    second = Path(json.loads(capsys.readouterr().out)["report"])
    assert second == run / "report.html"
    assert second.read_text(encoding="utf-8") == first.read_text(encoding="utf-8")
    assert all(name in first.read_text(encoding="utf-8") for name in (*MODELS, "setosa"))


def test_a_folder_without_a_comparison_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_is_said_before_models_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["compare", "iris", "--report", str(tmp_path / "report.html")]) == 1
    said = capsys.readouterr()
    assert "A report needs jinja2, which is not installed" in said.err
    assert "compare:" not in said.err
    assert said.out == ""
