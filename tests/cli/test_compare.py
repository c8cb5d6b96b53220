"""``proxmargin compare`` on one data set."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import INTERRUPTED, OK, USAGE
from proxmargin.studies.comparing.comparison import Comparison
from tests.cli.conftest import COLUMNS, ROWS


class TestCompare:
    def test_a_practitioner_finds_everything(self, training, tmp_path, capsys):
        path = tmp_path / "best.pmz"
        arguments = ["compare", str(training), "--folds", "2", "-q", "--output", str(path)]
        assert main([*arguments, "--models", "SquaredHingeSVC,HuberizedSVC"]) == OK
        out = capsys.readouterr().out
        assert out.startswith("Recommended: ")
        for words in (
            f"{training}: {ROWS} samples, {COLUMNS} features (standardised), 2 classes",
            "95 % interval",
            "stability",
            "balanced accuracy",
            "features used",
            "largest gap",
            "l1_ratio",
            "always the largest class",
            "positive speaks for malignant",
            "Certificate: converged",
            f"Saved to {path}",
        ):
            assert words in out
        assert re.search(r"^f\d +[+-]\d", out, re.MULTILINE)
        assert main(["predict", str(path), str(training), "-q"]) == OK

    def test_the_recommended_model_is_saved_or_on_request_the_best(
        self, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setattr(Comparison, "recommended_", property(lambda self: self.names[-1]))
        path = tmp_path / "m.pmz"
        command = ["compare", "iris", "--models", "L2SVC", "DWD", "--folds", "2", "-q", "--json"]
        for more, place in (([], -1), (["--save", "best"], 0)):
            assert main([*command, "--output", str(path), *more]) == OK
            found = json.loads(capsys.readouterr().out)
            name = found["models"][place]["name"]
            assert found["saved_model"] == type(load_model(path)).__name__ == name

    def test_json_parses(self, training, capsys):
        arguments = ["compare", str(training), "--folds", "2", "-q", "--json", "--seed", "5"]
        assert main([*arguments, "--models", "SquaredHingeSVC", "--scoring", "accuracy"]) == OK
        found = json.loads(capsys.readouterr().out)
        (best,) = found["models"]
        assert found["best"] == best["name"] == "SquaredHingeSVC"
        assert best["certificate"]["converged"] is True
        assert best["metrics"]["accuracy"]["mean"] > found["majority"]["accuracy"]
        assert found["features"]["SquaredHingeSVC"][0]["feature"].startswith("f")
        assert found["data"]["name"] == str(training)
        assert found["protocol"]["command"].startswith("proxmargin ")

    def test_model_is_refused_with_the_options_that_are_meant(self, capsys):
        with pytest.raises(SystemExit) as caught:
            main(["compare", "iris", "--model", "HuberizedSVC"])
        assert caught.value.code == USAGE
        err = capsys.readouterr().err
        assert "--models NAME" in err
        assert "--output FILE" in err

    def test_groups_are_a_column_and_no_feature(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        lines = [
            f"p{k // 4},{x:.6f},{y:.6f},{'ab'[k % 2]}"
            for k, (x, y) in enumerate(rng.normal(size=(80, 2)) + np.arange(80)[:, None] % 2)
        ]
        path = tmp_path / "patients.csv"
        path.write_text("\n".join(["patient,u,v,class", *lines]))
        arguments = ["compare", str(path), "--groups", "patient", "--folds", "2", "-q", "--json"]
        assert main([*arguments, "--models", "L2SVC"]) == OK
        found = json.loads(capsys.readouterr().out)
        assert found["data"]["n_features"] == 2
        assert found["protocol"]["groups"] is True
        rows = np.array(found["predictions"]["rows"])
        assert sorted(rows) == list(range(80))
        assert set(rows[:40] // 4).isdisjoint(rows[40:] // 4)

    def test_a_target_that_is_not_last_is_to_be_named(self, tmp_path, capsys):
        path = tmp_path / "first.csv"
        path.write_text("kind,u,v\n" + "\n".join(f"{'ab'[k % 2]},{k},{k}.5" for k in range(20)))
        assert main(["compare", str(path), "-q"]) == USAGE
        assert "--target NAME" in capsys.readouterr().err

    def test_an_interruption_prints_what_there_is_and_exits_with_130(
        self, training, capsys, monkeypatch
    ):
        from proxmargin.studies.comparing import run, work

        done = []

        def perform(*arguments):
            if done:
                raise KeyboardInterrupt
            done.append(work.perform(*arguments))
            return done[0]

        monkeypatch.setattr(run, "perform", perform)
        arguments = ["compare", str(training), "--folds", "2", "-q", "--models", "SquaredHingeSVC"]
        assert main(arguments) == INTERRUPTED
        assert "interrupted" in capsys.readouterr().out


def test_what_is_said_of_the_file_is_on_the_page_and_in_the_record(tmp_path, capsys) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(10.0, 1.0, (40, 2)).round(2)
    X[8, 0] = 1e12
    rows = [f"{a},{b},{'yn'[i % 3 % 2]}" for i, (a, b) in enumerate(X.tolist())]
    data, page = tmp_path / "far.csv", tmp_path / "far.html"
    data.write_text("\n".join(["wbc,hb,sick", *rows]) + "\n")
    words = ["compare", str(data), "--models", "DWD", "--quick", "--json", "--report", str(page)]
    assert main(words) == OK
    (note,) = (n for n in json.loads(capsys.readouterr().out)["notes"] if "wbc" in n)
    assert "in row 9" in note
    assert "--missing wbc=" in note
    assert "in row 9" in page.read_text()
