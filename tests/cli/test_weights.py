"""``--weights COL``: samples of a table weigh as one of its columns says, wherever it is fitted."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE

ROWS = 60


def write(path, weights, rows) -> str:
    """A table of some rows with their weights in the last column."""
    data = load_breast_cancer()
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["f0", "kind", "f1", "f2", "w"])
        for row, weight in zip(rows, weights, strict=True):
            x = data.data[row]
            writer.writerow([x[0], data.target_names[data.target[row]], x[1], x[2], weight])
    return str(path)


@pytest.fixture
def weighted(tmp_path) -> str:
    return write(tmp_path / "weighted.csv", np.arange(ROWS) % 3, range(ROWS))


@pytest.fixture
def repeated(tmp_path) -> str:
    """The same samples as often as they weigh."""
    rows = np.repeat(np.arange(ROWS), np.arange(ROWS) % 3)
    return write(tmp_path / "repeated.csv", np.ones(rows.size, int), rows)


def test_a_weight_of_two_is_a_repeated_row(weighted, repeated, tmp_path):
    models = []
    for name, data in (("a", weighted), ("b", repeated)):
        path = str(tmp_path / f"{name}.pmz")
        words = ["--target", "kind", "--weights", "w", "--model", "L2SVC", "--tol", "1e-10"]
        assert main(["fit", data, *words, "-q", "-o", path]) == OK
        models.append(load_model(path))
    assert list(models[0].feature_names_in_) == ["f0", "f1", "f2"]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-5)


def test_paths_weigh_the_samples(weighted, repeated, capsys):
    found = []
    for data in (weighted, repeated):
        words = ["--target", "kind", "--weights", "w", "--model", "HuberizedSVC", "--json", "-q"]
        assert main(["path", data, *words, "--n-alphas", "3"]) == OK
        told = json.loads(capsys.readouterr().out)
        assert told["data"]["columns"] == 3
        found.append([row["objective"] for row in told["path"]])
    np.testing.assert_allclose(*found, rtol=1e-4)


@pytest.mark.parametrize(
    "command",
    [
        "cv --model SquaredHingeSVC --n-strengths 2 --folds 2",
        "stability --model SquaredHingeSVC --n-strengths 3 --pairs 20 --q 1 --standardize yes",
        "compare --models SquaredHingeSVC --folds 2",
    ],
)
def test_searches_and_comparisons_take_weights(command, weighted, capsys):
    name, *words = command.split()
    shared = ["--target", "kind", "-q", "--json"]
    with_weights, without = [
        main([name, weighted, *shared, *words, *more]) or json.loads(capsys.readouterr().out)
        for more in (["--weights", "w"], ["--ignore", "w"])
    ]
    width = {"columns": 3, "n_features": 3}
    assert width.items() & with_weights["data"].items()
    assert with_weights != without


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("-1", "the weights 'w' are negative in 1 row (row 8, counting data rows from 1)"),
        ("", "the weights 'w' are missing in 1 row (row 8"),
        ("inf", "the weights 'w' are infinite in 1 row (row 8"),
        ("heavy", "the weights must be numbers: 'w' (row 8 holds 'heavy'"),
    ],
)
def test_a_weight_that_is_none_names_its_row(weight, words, tmp_path, capsys):
    weights = [weight if k == 7 else 1 for k in range(ROWS)]
    data = write(tmp_path / "d.csv", weights, range(ROWS))
    command = ["fit", data, "--target", "kind", "--weights", "w", "--model", "L2SVC", "-q"]
    assert main(command) == USAGE
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--weights", "mass"], "there is no column 'mass'"),
        (["--weights", "mass"], "(--weights NAME)"),
        (["--weights", "kind"], "the target 'kind' cannot be the weights"),
    ],
)
def test_a_mistake_names_the_option(options, words, weighted, capsys):
    assert main(["fit", weighted, "--target", "kind", "--model", "L2SVC", "-q", *options]) == USAGE
    assert words in capsys.readouterr().err


def test_the_target_is_the_last_of_the_other_columns(tmp_path, capsys):
    path = tmp_path / "d.csv"
    path.write_text("f0,kind,w\n" + "\n".join(f"{k}.5,{'ab'[k % 2]},1" for k in range(8)))
    assert main(["fit", str(path), "--weights", "w", "--model", "L2SVC", "-q", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["data"]["target"] == "kind"


def test_a_matrix_has_no_column_of_weights(capsys):
    assert main(["fit", "iris", "--model", "L2SVC", "--weights", "w", "-q"]) == USAGE
    assert "columns cannot be chosen (--weights " in capsys.readouterr().err
