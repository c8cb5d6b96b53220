"""``proxmargin compare`` with several data sets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proxmargin import Comparison
from proxmargin.cli import failures, main
from proxmargin.cli.commands import compare

MODELS = ("--models", "L2SVC", "DWD")


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> list[str]:
    """Three small data sets of two classes."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    for name in ("one", "two", "three"):
        labels = np.arange(40) % 2
        X = rng.standard_normal((40, 3)) + labels[:, None]
        rows = "\n".join(
            ",".join(f"{v:.3f}" for v in row) + f",{k}" for row, k in zip(X, labels, strict=True)
        )
        (folder / f"{name}.csv").write_text(f"a,b,c,y\n{rows}\n")
    return [str(folder / f"{name}.csv") for name in ("one", "two", "three")]


def run(*arguments: str) -> int:
    return main(["compare", *arguments, "--quick", "-q"])


def test_models_are_ranked_over_the_data_sets(tables, tmp_path, capsys) -> None:
    pytest.importorskip("matplotlib")
    runs, plot = tmp_path / "runs", tmp_path / "ranks.svg"
    assert run(*tables, *MODELS, "--run", str(runs), "--plot", str(plot)) == failures.OK
    told = capsys.readouterr().out
    assert told.startswith("balanced accuracy (larger is better)")
    head = told.splitlines()[2].split()
    assert head == ["model", "one", "two", "three", "average", "rank"]
    assert "Iman and Davenport" in told
    assert sorted(path.name for path in runs.iterdir()) == ["one", "three", "two"]
    assert sorted(Comparison.from_run(runs / "two").names) == ["DWD", "L2SVC"]
    assert "critical difference" in plot.read_text()


def test_json_has_every_comparison_and_the_ranks(tables, capsys) -> None:
    assert run(*tables[:2], *MODELS, "--json") == failures.OK
    told = json.loads(capsys.readouterr().out)
    assert told["datasets"] == list(told["comparisons"]) == ["one", "two"]
    assert {each["name"] for each in told["models"]} == {"L2SVC", "DWD"}
    assert told["comparisons"]["one"]["format"] == "proxmargin comparison"


def test_a_data_set_that_cannot_be_compared_is_named_and_the_others_are(
    tables, monkeypatch, capsys
) -> None:
    def compared(arguments: Any, table: Any) -> Any:
        if arguments.data == tables[1]:
            raise ValueError("class 1 has 1 sample")
        return original(arguments, table)

    original = compare.compared
    monkeypatch.setattr(compare, "compared", compared)
    assert run(*tables[:2], *MODELS) == failures.FAILED
    assert "Note: two is not compared: class 1 has 1 sample." in capsys.readouterr().out


def test_an_interruption_keeps_what_was_finished(tables, monkeypatch, capsys) -> None:

    original = compare.compared

    def compared(arguments: Any, table: Any) -> Any:
        if arguments.data == tables[1]:
            raise KeyboardInterrupt
        return original(arguments, table)

    monkeypatch.setattr(compare, "compared", compared)
    assert run(*tables, *MODELS) == failures.interrupted()
    told = capsys.readouterr().out
    assert "two is not compared: interrupted" in told
    assert "three is not compared: interrupted" in told


def test_the_time_limit_is_for_all_data_sets(tables, capsys) -> None:
    assert run(*tables[:2], *MODELS, "--time-limit", "1e-9") == failures.USAGE
    assert "the time limit was reached" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--output", "best.pmz"), "--output is for one data set, and there are 2"),
        (("--report", "page.html"), "--report is for one data set"),
        (("--plot", "ranks.txt"), "must end in .png"),
        (("--models", "Nope"), "no model 'Nope'"),
    ],
)
def test_bad_options_are_refused_at_once(tables, options, message, capsys) -> None:
    assert run(*tables[:2], *options) == failures.USAGE
    assert message in capsys.readouterr().err


def test_data_sets_are_named_by_their_files_or_paths_where_these_are_the_same() -> None:
    assert compare._named_sources(["a/x.csv", "y.csv.gz"]) == {"x": "a/x.csv", "y": "y.csv.gz"}
    paths = [str(Path("a") / "x.csv"), str(Path("b") / "x.csv")]
    assert list(compare._named_sources(paths)) == paths
    with pytest.raises(ValueError, match=r"given twice: y\.csv"):
        compare._named_sources(["y.csv", "y.csv"])


def test_unusable_data_are_told_before_anything_is_compared(tables, capsys) -> None:
    assert run(tables[0], "no_such_data", *MODELS) == failures.USAGE
    assert "no file 'no_such_data'" in capsys.readouterr().err


def test_one_data_set_can_be_drawn(tables, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    plot = tmp_path / "scores.svg"
    assert run(tables[0], *MODELS, "--plot", str(plot)) == failures.OK
    assert "majority class" in plot.read_text()
