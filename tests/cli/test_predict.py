"""``proxmargin predict``: labels and scores of a saved model."""

from __future__ import annotations

import csv
import json

import numpy as np
from sklearn.datasets import load_breast_cancer

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK
from tests.cli.conftest import COLUMNS, ROWS


class TestPredict:
    def test_labels_and_scores_are_those_of_the_model(self, model, training, capsys):
        assert main(["predict", str(model), str(training), "--scores"]) == OK
        out, err = capsys.readouterr()
        rows = list(csv.DictReader(out.splitlines()))
        fitted = load_model(model)
        X = load_breast_cancer().data[:ROWS, :COLUMNS]
        del fitted.feature_names_in_
        assert [row["prediction"] for row in rows] == fitted.predict(X).tolist()
        np.testing.assert_allclose(
            [float(row["score"]) for row in rows], fitted.decision_function(X), rtol=1e-6
        )
        assert "balanced accuracy 0." in err
        assert "warning" not in err

    def test_output_goes_to_a_file(self, model, training, tmp_path, capsys):
        path = tmp_path / "predictions.csv"
        assert main(["predict", str(model), str(training), "-q", "--output", str(path)]) == OK
        assert len(path.read_text().splitlines()) == ROWS + 1
        assert capsys.readouterr() == ("", "")

    def test_json_has_the_quality_where_labels_are_known(self, model, training, capsys):
        assert main(["predict", str(model), str(training), "--json", "--scores"]) == OK
        found = json.loads(capsys.readouterr().out)
        assert found["classes"] == ["benign", "malignant"]
        assert len(found["prediction"]) == len(found["score"]) == ROWS
        assert found["accuracy"] > 0.8

    def test_unlabelled_data_and_other_columns_are_fine(self, model, tmp_path, capsys):
        path = tmp_path / "new.csv"
        path.write_text("other,f5,f4,f3,f2,f1,f0\n1,0.1,0.1,900,90,20,15\n")
        assert main(["predict", str(model), str(path), "--json"]) == OK
        found = json.loads(capsys.readouterr().out)
        assert "accuracy" not in found
        assert len(found["prediction"]) == 1

    def test_a_multiclass_model_has_a_score_a_class(self, tmp_path, capsys):
        path = str(tmp_path / "iris.pmz")
        assert main(["fit", "iris", "--model", "SparseLogisticRegression", "-q", "-o", path]) == OK
        capsys.readouterr()
        assert main(["predict", path, "iris", "--scores"]) == OK
        head = capsys.readouterr().out.splitlines()[0]
        assert head == "prediction,score_setosa,score_versicolor,score_virginica"

    def test_a_budget_takes_the_place_of_a_weight(self, tmp_path, capsys):
        path = str(tmp_path / "iris.pmz")
        model = ["--model", "MulticlassSVC", "--eta", "20", "--loss", "squared_hinge"]
        assert main(["fit", "iris", *model, "--penalty", "l2", "-o", path]) == OK
        shown = capsys.readouterr().out
        assert "eta=20" in shown
        assert "C=" not in shown
        assert main(["predict", path, "iris", "--json"]) == OK
        assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9
