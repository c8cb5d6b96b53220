"""``proxmargin stability``: stable features, files and mistakes."""

from __future__ import annotations

import json

import pytest

from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE


class TestStability:
    WORDS = ("stability", "wine", "--model", "HuberizedSVC", "-q", "--pairs", "5")

    def test_it_lists_the_stable_features_and_writes_all(self, tmp_path, capsys):
        table = tmp_path / "all.csv"
        words = [*self.WORDS, "--n-strengths", "4", "--q", "3", "--csv", str(table)]
        assert main([*words, "--json"]) == OK
        told = json.loads(capsys.readouterr().out)
        assert (told["q"], told["threshold"], told["half_samples"]) == (3, 0.75, 10)
        stated = {"n_features": 13, "n_pairs": 5, "assumption": "unimodal", "seed": 0}
        assert stated.items() <= told.items()
        assert all(row["frequency"] >= 0.75 for row in told["stable"])
        lines = table.read_text().splitlines()
        assert lines[0] == "feature,frequency,stable,cluster"
        assert len(lines) == 1 + 13
        kept = ["--checkpoint", str(tmp_path / "halves.npz"), "--cluster", "0.8"]
        for _ in range(2):
            assert main([*words, *kept]) == OK
        out = capsys.readouterr().out
        assert "cluster" in out
        assert "are expected to be there by mistake" in out

    def test_it_is_drawn(self, tmp_path):
        pytest.importorskip("matplotlib")
        for name, more in (("paths.png", []), ("bars.png", ["--bars"])):
            picture = tmp_path / name
            words = [*self.WORDS, "--n-strengths", "3", "--plot", str(picture), *more]
            assert main(words) == OK
            assert picture.read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("model", "options", "words"),
        [
            ("HuberizedSVC", ["--alpha", "1"], "leave out --alpha"),
            ("SVC", [], "SVC with these parameters selects no features: choose HuberizedSVC"),
            ("DWD", [], "DWD has no alpha and no C"),
            ("HuberizedSVC", ["--q", "14"], "--q 14 is more than the 13 features"),
            ("HuberizedSVC", ["--q", "9", "--pfer", "0.1"], "--pfer 0.1 is impossible"),
            ("HuberizedSVC", ["--threshold", "0.4"], "threshold must be"),
        ],
    )
    def test_a_mistake_is_a_sentence(self, model, options, words, capsys):
        assert main(["stability", "wine", "-q", "--model", model, *options]) == USAGE
        assert words in capsys.readouterr().err
