"""``proxmargin permute``."""

from __future__ import annotations

import json

import pytest
from sklearn.datasets import load_wine

from proxmargin import SVC, permutation_test
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE


def test_it_prints_the_test_and_draws_it(capsys, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "null.png"
    command = ["permute", "breast_cancer", "--model", "DWD", "--permutations", "20", "-q"]
    assert main([*command, "--plot", str(picture)]) == OK
    told = capsys.readouterr().out
    assert "p-value:          0.04762" in told
    assert "20, drawn by chance" in told
    assert picture.stat().st_size > 0


def test_json_has_what_the_function_returns(capsys) -> None:
    command = ["permute", "wine", "--model", "SVC", "--statistic", "accuracy", "--folds", "3"]
    assert main([*command, "--permutations", "4", "--seed", "3", "--json", "-q"]) == OK
    told = json.loads(capsys.readouterr().out)
    X, y = load_wine(return_X_y=True)
    options = {"statistic": "accuracy", "n_permutations": 4, "cv": 3, "random_state": 3}
    found = permutation_test(SVC(standardize=True), X, y, **options)
    assert told["null"] == found.null.tolist()
    assert told["pvalue"] == found.pvalue
    assert told["largest_gap"] is None


def test_three_classes_need_an_accuracy(capsys) -> None:
    assert main(["permute", "iris", "--model", "DWD", "-q"]) == USAGE
    assert "statistic='accuracy'" in capsys.readouterr().err
