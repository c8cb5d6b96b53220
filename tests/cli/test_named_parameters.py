"""Parameters by the names of features and labels, which are text on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import proxmargin
from proxmargin import HuberizedSVC, load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE

ROWS = 60


@pytest.fixture
def frame(rng) -> pd.DataFrame:
    features = rng.standard_normal((ROWS, 2))
    labels = (features[:, 0] + rng.standard_normal(ROWS) > 0).astype(int)
    return pd.DataFrame(features, columns=["age", "dose"]).assign(y=labels)


@pytest.fixture
def path(frame, tmp_path) -> str:
    frame.to_csv(tmp_path / "d.csv", index=False)
    return str(tmp_path / "d.csv")


@pytest.mark.parametrize(
    "setting",
    [
        {"penalty_factor": {"dose": 0}},
        {"bounds": [{"dose": 0}, {}]},
        {"bounds": {"age": [None, 0.1]}},
        {"class_weight": {"0": 2}},
    ],
)
def test_names_are_those_of_the_table(setting, frame, path, tmp_path, capsys) -> None:
    ((name, value),) = setting.items()
    saved = str(tmp_path / "m.pmz")
    words = ["fit", path, "--model", "HuberizedSVC", "--set", f"{name}={json.dumps(value)}"]
    assert main([*words, "-q", "-o", saved, "--json"]) == OK
    made = json.loads(capsys.readouterr().out)["python"]
    wanted = {0: 2} if name == "class_weight" else value
    X, y = frame[["age", "dose"]], frame["y"]
    model = HuberizedSVC(**{name: wanted}).fit(X, y)
    found = load_model(saved)
    np.testing.assert_allclose(found.coef_, model.coef_, atol=1e-12)
    found.fit(X, y)  # again, with the names
    again = eval(made, vars(proxmargin).copy())
    np.testing.assert_allclose(again.fit(X.to_numpy(), y).coef_, model.coef_, atol=1e-12)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('penalty_factor={"dos":0}', "did you mean 'dose'?"),
        ('bounds=[{"Age":0},{}]', "did you mean 'age'?"),
        ('penalty_factor={"qqq":0}', "X has 'age', 'dose'"),
        ('class_weight={"7":2}', "labels in y: 0, 1"),
    ],
)
def test_unknown_names_are_refused(setting, words, path, capsys) -> None:
    assert main(["fit", path, "--model", "HuberizedSVC", "--set", setting, "-q"]) == USAGE
    err = capsys.readouterr().err
    assert words in err
    assert "data frame" not in err


def test_class_weights_are_given_as_json_and_to_all_commands(path, capsys) -> None:
    options = ["--class-weight", '{"0": 2}', "--set", 'penalty_factor={"dose":0}', "-q"]
    for command in ("cv", "path"):
        assert main([command, path, "--model", "HuberizedSVC", *options]) == OK
