"""``--impute``: missing cells on the command line, from the fit to the prediction."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE

FEATURES = [f"f{j}" for j in range(4)]


@pytest.fixture(scope="module")
def holed(tmp_path_factory) -> Path:
    """Numbers with blanks, a column of text with one, and labels."""
    data = load_breast_cancer()
    frame = pd.DataFrame(data.data[:120, :4], columns=FEATURES)
    frame["site"] = np.where(np.arange(120) % 3 == 0, "left", "right")
    frame.loc[::9, "f1"] = np.nan
    frame.loc[5, "site"] = None
    frame["class"] = data.target_names[data.target[:120]]
    path = tmp_path_factory.mktemp("data") / "holed.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_model_predicts_with_the_values_of_its_training_data(holed, tmp_path, capsys) -> None:
    path = str(tmp_path / "model.pmz")
    given = ["--encode", "--impute", "median", "--model", "SquaredHingeSVC", "-q"]
    assert main(["fit", str(holed), *given, "-o", path]) == OK
    model, frame = load_model(path), pd.read_csv(holed)
    assert model[0].statistics_[1] == frame["f1"].median()
    assert list(model.feature_names_in_) == [*FEATURES, "site=left", "site=right"]
    one = tmp_path / "one.csv"
    frame.drop(columns="class").iloc[:1].assign(f0=None).to_csv(one, index=False)
    capsys.readouterr()
    assert main(["predict", path, str(one), "--scores", "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    row = frame.iloc[0]
    filled = [frame["f0"].median(), frame["f1"].median(), row["f2"], row["f3"], 1.0, 0.0]
    expected = model.model.decision_function(np.array([filled]))
    np.testing.assert_allclose(told["score"], expected, rtol=1e-12)
    assert main(["info", path, "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["imputed"] == "median"


@pytest.mark.parametrize(
    "command",
    [
        ["cv", "--model", "SquaredHingeSVC", "--n-strengths", "4", "--folds", "3"],
        ["path", "--model", "SquaredHingeSVC", "--n-alphas", "4"],
        ["compare", "--models", "SquaredHingeSVC", "--folds", "2", "--quick"],
        ["stability", "--model", "SquaredHingeSVC", "--pairs", "4", "--n-strengths", "8"],
    ],
    ids=lambda command: command[0],
)
@pytest.mark.filterwarnings("ignore")
def test_every_command_that_fits_takes_it(holed, command, capsys) -> None:
    name, *options = command
    given = [name, str(holed), *options, "--encode", "-q", "--json"]
    assert main(given) != OK
    assert "--impute median" in capsys.readouterr().err
    assert main([*given, "--impute", "mean"]) == OK
    told = json.loads(capsys.readouterr().out)
    if name == "compare":
        assert "SimpleImputer" in str(told)


def test_the_best_model_of_a_comparison_is_saved_with_its_imputer(holed, tmp_path, capsys) -> None:
    path = str(tmp_path / "best.pmz")
    given = ["--encode", "--impute", "median", "--models", "L2SVC", "--folds", "2", "-q"]
    assert main(["compare", str(holed), *given, "-o", path]) == OK
    assert "SimpleImputer" in capsys.readouterr().out
    assert load_model(path)[0].statistics_[1] == pd.read_csv(holed)["f1"].median()
    assert main(["predict", path, str(holed), "-q"]) == OK


def test_infinite_cells_are_refused_also_where_blanks_are_filled_in(tmp_path, capsys) -> None:
    path = tmp_path / "infinite.csv"
    path.write_text("a,b,y\n1,,0\ninf,2,1\n3,4,0\n4,5,1\n")
    assert main(["fit", str(path), "--model", "L2SVC", "--impute", "mean"]) != OK
    assert "1 infinite value: row 2, column 'a'" in capsys.readouterr().err


def test_the_coefficients_of_a_model_with_an_imputer_have_the_names_of_its_columns(
    holed, tmp_path, capsys
) -> None:
    path = str(tmp_path / "model.pmz")
    given = ["--encode", "--impute", "median", "--model", "SquaredHingeSVC", "-q"]
    assert main(["fit", str(holed), *given, "-o", path]) == OK
    capsys.readouterr()
    assert main(["coefs", path, "--all", "--json"]) == OK
    rows = json.loads(capsys.readouterr().out)["coefficients"]
    found = {row["feature"]: row["coefficient"] for row in rows}
    model = load_model(path)
    assert found == dict(zip(model.feature_names_in_, model.coef_[0], strict=True))
    # from data with the same blanks: their deviations are those of the filled columns
    assert main(["coefs", path, str(holed), "--target", "class", "--all", "--json"]) == OK
    assert json.loads(capsys.readouterr().out)["coefficients"]


@pytest.mark.parametrize("strategy", ["median", "mean", "constant"])
def test_every_strategy_is_saved_and_read(holed, strategy, tmp_path, capsys) -> None:
    path = str(tmp_path / "model.pmz")
    given = ["--encode", "--impute", strategy, "--model", "SquaredHingeSVC", "-q"]
    assert main(["fit", str(holed), *given, "-o", path]) == OK
    expected = 0.0 if strategy == "constant" else getattr(pd.read_csv(holed)["f1"], strategy)()
    assert load_model(path)[0].statistics_[1] == pytest.approx(expected)


def test_no_probabilities_are_those_of_the_model_behind_the_imputer(
    holed, tmp_path, capsys
) -> None:
    path = str(tmp_path / "model.pmz")
    given = ["--encode", "--impute", "mean", "--model", "SquaredHingeSVC", "-q"]
    assert main(["fit", str(holed), *given, "-o", path]) == OK
    assert main(["predict", path, str(holed), "--proba"]) == USAGE
    assert "this SquaredHingeSVC has scores and no probabilities" in capsys.readouterr().err
