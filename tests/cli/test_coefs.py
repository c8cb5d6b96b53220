"""``proxmargin coefs``: a table on the screen, and as CSV."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer

from proxmargin import feature_report, load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE


def test_the_csv_file_is_the_frame_of_the_model(model, tmp_path, capsys):
    path = tmp_path / "genes.csv"
    assert main(["coefs", str(model), "-o", str(path)]) == OK
    out, err = capsys.readouterr()
    assert out == ""
    assert "positive speaks for malignant" in err
    own = load_model(model).coefficients()
    pd.testing.assert_frame_equal(pd.read_csv(path), own, check_exact=False)
    assert list(own)[:2] == ["feature", "class"]


def test_it_prints_the_largest_first(model, capsys):
    assert main(["coefs", str(model), "-q"]) == OK
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["feature", "class", "coefficient", "per", "sd", "rank"]
    assert [line.split()[-1] for line in lines[1:3]] == ["1", "2"]
    assert main(["coefs", str(model), "--json"]) == OK
    rows = json.loads(capsys.readouterr().out)["coefficients"]
    assert [row["feature"] for row in rows] == [line.split()[0] for line in lines[1:]]


def test_long_tables_are_cut_unless_all_is_asked_for(tmp_path, capsys):
    path = str(tmp_path / "m.pmz")
    assert main(["fit", "digits", "--model", "L2SVC", "--tol", "0.1", "-q", "-o", path]) == OK
    capsys.readouterr()
    assert main(["coefs", path]) == OK
    out, err = capsys.readouterr()
    assert " more rows: --all prints them" in out
    assert "positive speaks for" not in err
    assert main(["coefs", path, "--all"]) == OK
    assert len(capsys.readouterr().out.splitlines()) == 1 + 10 * 64


def test_a_model_in_the_units_of_the_data_takes_deviations_from_data(training, tmp_path, capsys):
    path = str(tmp_path / "m.pmz")
    words = ["--model", "HuberizedSVC", "--alpha", "0.001", "--no-standardize", "-q", "-o", path]
    assert main(["fit", str(training), *words]) == OK
    capsys.readouterr()
    assert main(["coefs", path, "--json"]) == OK
    rows = json.loads(capsys.readouterr().out)["coefficients"]
    assert {row["coefficient_per_sd"] for row in rows} == {None}
    assert main(["coefs", path]) == OK
    assert f"proxmargin coefs {path} DATA" in capsys.readouterr().err
    assert main(["coefs", path, str(training), "--json"]) == OK
    deviations = pd.read_csv(training).std(ddof=0, numeric_only=True)
    for row in json.loads(capsys.readouterr().out)["coefficients"]:
        expected = row["coefficient"] * deviations[row["feature"]]
        assert row["coefficient_per_sd"] == pytest.approx(expected)


def test_with_labelled_data_each_feature_is_described_alone_and_over_folds(
    model, training, tmp_path, capsys
):
    path = tmp_path / "genes.csv"
    assert main(["coefs", str(model), str(training), "-o", str(path)]) == OK
    found, frame = pd.read_csv(path), pd.read_csv(training)
    report = feature_report(load_model(model), *_split(frame, load_model(model)))
    for name in ("auc", "folds"):
        np.testing.assert_allclose(found[name], report[name])
    assert list(found.columns[-4:]) == ["auc", "folds", "fold_rank", "partners"]
    capsys.readouterr()
    assert main(["coefs", str(model), str(training), "-q"]) == OK
    heading, first, *_ = capsys.readouterr().out.splitlines()
    assert "AUC alone" in heading
    assert f"{report.auc[0]:.3f}" in first


def _split(frame, model):
    (target,) = set(frame.columns) - set(model.feature_names_in_)
    return frame[model.feature_names_in_], frame[target]


def test_a_kernel_has_none(tmp_path, capsys):
    path = str(tmp_path / "m.pmz")
    assert main(["fit", "iris", "--model", "SVC", "--kernel", "rbf", "-q", "-o", path]) == OK
    capsys.readouterr()
    assert main(["coefs", path]) == USAGE
    err = capsys.readouterr().err
    assert "SVC with --kernel rbf has no coefficients of features" in err
    assert "fit it with --kernel linear" in err


def test_ranks_and_labels_of_another_table(tmp_path, capsys):
    """Ranks are those of the model, with data or without; labels may be in a second table."""
    X, y = load_breast_cancer(return_X_y=True)
    frame = pd.DataFrame(X[:80, :5], columns=[f"f{j}" for j in range(5)]).assign(y=y[:80])
    frame.index = pd.Index([f"s{j}" for j in range(80)], name="sample")
    frame.to_csv(tmp_path / "d.csv")
    frame.drop(columns="y").to_csv(tmp_path / "X.csv")
    frame[["y"]].iloc[::-1].to_csv(tmp_path / "y.csv")
    model, data, labels = (str(tmp_path / name) for name in ("m.pmz", "X.csv", "y.csv"))
    words = ["--model", "HuberizedSVC", "--alpha", "0.001", "-q", "-o", model]
    assert main(["fit", str(tmp_path / "d.csv"), *words]) == OK
    capsys.readouterr()
    found = []
    for more in ([], [data], [str(tmp_path / "d.csv")], [data, "--labels", labels]):
        assert main(["coefs", model, *more, "--json", "-q"]) == OK
        found.append(json.loads(capsys.readouterr().out)["coefficients"])
    ranks = [[(row["feature"], row["rank"]) for row in rows] for rows in found]
    assert ranks[0] == ranks[1] == ranks[2] == ranks[3]
    assert found[2] == found[3]
    assert found[3][0]["auc"] is not None
