"""``proxmargin path``: its table, its status and its picture."""

from __future__ import annotations

import json

import pytest

from proxmargin.cli import main
from proxmargin.cli.failures import FAILED, OK, USAGE


class TestPath:
    def test_it_lists_alphas_from_the_largest(self, capsys):
        arguments = ["path", "wine", "--model", "HuberizedSVC", "--n-alphas", "4"]
        assert main([*arguments, "--json"]) == OK
        rows = json.loads(capsys.readouterr().out)["path"]
        assert rows[0]["features"] == 0
        assert [row["alpha"] for row in rows] == sorted((r["alpha"] for r in rows), reverse=True)
        assert all(row["converged"] and row["relative_gap"] <= 1e-6 for row in rows)
        assert main(arguments) == OK
        out = capsys.readouterr().out
        assert "certified gap" in out
        assert len(out.splitlines()) == 2 + 1 + 4

    def test_alpha_is_not_an_option_here(self, capsys):
        assert main(["path", "wine", "--model", "HuberizedSVC", "--alpha", "1"]) == USAGE
        assert "leave out --alpha" in capsys.readouterr().err

    def test_a_path_that_did_not_converge_exits_with_1(self, capsys):
        arguments = ["path", "wine", "--model", "HuberizedSVC", "--n-alphas", "3"]
        assert main([*arguments, "--max-iter", "1"]) == FAILED
        out, err = capsys.readouterr()
        assert " !" in out
        assert "of 3 fits of the HuberizedSVC path" in err

    def test_it_is_drawn(self, tmp_path):
        pytest.importorskip("matplotlib")
        picture = tmp_path / "path.png"
        arguments = ["path", "wine", "--model", "SVC", "--n-alphas", "3", "-q"]
        assert main([*arguments, "--plot", str(picture)]) == OK
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert main([*arguments, "--plot", str(tmp_path / "path.doc")]) == USAGE


def test_json_names_the_features_of_each_strength(training, capsys):
    words = ["path", str(training), "--model", "HuberizedSVC", "--n-alphas", "4", "--json", "-q"]
    assert main(words) == OK
    rows = json.loads(capsys.readouterr().out)["path"]
    assert rows[0]["top_features"] == []
    assert all(name.startswith("f") for name in rows[-1]["top_features"])
    assert len(rows[-1]["top_features"]) == min(rows[-1]["features"], 10)
