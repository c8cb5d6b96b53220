"""``proxmargin predict``: labels and scores of a saved model."""

from __future__ import annotations

import csv
import json
import pathlib

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from proxmargin import L2SVC, load_model, save_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE
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
        assert "C=" not in shown.partition("in Python")[0]
        assert main(["predict", path, "iris", "--json"]) == OK
        assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9


class TestColumns:
    """The samples of a user keep their names, and get scores and probabilities beside them."""

    @pytest.fixture(scope="class")
    @staticmethod
    def logistic(training) -> str:
        path = str(training.with_name("logistic.pmz"))
        assert main(["fit", str(training), "--model", "LogisticRegression", "-q", "-o", path]) == OK
        return path

    @pytest.fixture
    def named(self, training, tmp_path) -> str:
        """The training table with names that start with zeros, in front, and a note."""
        lines = training.read_text().splitlines()
        path = tmp_path / "named.csv"
        rows = [f"{k:03d},{line},{'' if k else 'x'}" for k, line in enumerate(lines[1:4])]
        path.write_text("\n".join([f"patient,{lines[0]},note", *rows]))
        return str(path)

    def rows(self, capsys) -> list[dict[str, str]]:
        return list(csv.DictReader(capsys.readouterr().out.splitlines()))

    def test_ids_stand_first_as_they_are_written(self, logistic, named, capsys):
        assert main(["predict", logistic, named, "--id", "patient", "--scores", "--proba"]) == OK
        rows = self.rows(capsys)
        assert list(rows[0]) == [
            *("patient", "prediction", "score", "proba_benign", "proba_malignant")
        ]
        assert [row["patient"] for row in rows] == ["000", "001", "002"]
        for row in rows:
            share = float(row["proba_malignant"])
            assert share + float(row["proba_benign"]) == pytest.approx(1)
            assert share == pytest.approx(1 / (1 + np.exp(-float(row["score"]))))

    @pytest.mark.parametrize("column", ["class", "f0", "0", "-1"])
    def test_any_column_may_be_kept(self, column, logistic, named, capsys):
        assert main(["predict", logistic, named, "--id", column, "-q"]) == OK
        rows = self.rows(capsys)
        name = {"0": "patient", "-1": "note"}.get(column, column)
        own = list(csv.DictReader(pathlib.Path(named).read_text().splitlines()))
        assert [row[name] for row in rows] == [row[name] for row in own]

    def test_an_ignored_target_is_not_judged(self, logistic, named, capsys):
        assert main(["predict", logistic, named]) == OK
        assert "accuracy" in capsys.readouterr().err
        assert main(["predict", logistic, named, "--ignore", "class", "--ignore", "note"]) == OK
        assert "accuracy" not in capsys.readouterr().err

    def test_a_model_without_names_takes_the_columns_that_are_left(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 2))
        y = np.where(X[:, 0] > 0, "a", "b")
        np.savez(tmp_path / "plain.npz", X=X, y=y)
        model = str(tmp_path / "m.pmz")
        fit = ["fit", str(tmp_path / "plain.npz"), "--model", "L2SVC", "-q", "-o", model]
        assert main(fit) == OK
        capsys.readouterr()
        path = tmp_path / "d.csv"
        path.write_text(
            "id,batch,u,v\n" + "\n".join(f"s{k},7,{u},{v}" for k, (u, v) in enumerate(X))
        )
        words = ["predict", model, str(path), "--ignore", "batch", "--id", "id", "-q"]
        assert main(words) == OK
        rows = self.rows(capsys)
        assert [row["id"] for row in rows] == [f"s{k}" for k in range(40)]
        assert np.mean([row["prediction"] for row in rows] == y) > 0.9

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--id", "name"], "there is no column 'name'; the columns are 'patient'"),
            (["--id", "name"], "(--id NAME)"),
            (["--ignore", "f1"], "the model needs 'f1', which cannot be ignored"),
        ],
    )
    def test_a_mistake_names_the_option(self, options, words, logistic, named, capsys):
        assert main(["predict", logistic, named, *options]) == USAGE
        assert words in capsys.readouterr().err

    def test_a_name_that_the_output_has_already_is_refused(self, logistic, named, capsys):
        path = pathlib.Path(named).with_name("clash.csv")
        path.write_text(pathlib.Path(named).read_text().replace("patient", "prediction", 1))
        assert main(["predict", logistic, str(path), "--id", "prediction"]) == USAGE
        assert "has that name already" in capsys.readouterr().err

    def test_an_id_of_a_matrix_is_refused(self, logistic, tmp_path, capsys):
        np.savez(tmp_path / "plain.npz", X=np.eye(6))
        assert main(["predict", logistic, str(tmp_path / "plain.npz"), "--id", "x"]) == USAGE
        assert "this is a matrix" in capsys.readouterr().err

    def test_scores_that_are_no_probabilities_are_explained(self, model, training, capsys):
        assert main(["predict", str(model), str(training), "--proba"]) == USAGE
        out, err = capsys.readouterr()
        assert out == ""
        assert "this HuberizedSVC has scores and no probabilities" in err
        assert f"--model HuberizedSVC --calibrate -o {model}" in err


class TestLevelsOfEncoders:
    """Of a pipeline with scikit-learn's encoder."""

    @staticmethod
    def saved(tmp_path, levels, encoder):
        X = pd.DataFrame({"country": np.tile(np.array(levels, dtype=object), 30)})
        X["n"] = np.arange(len(X)) % 7 * 1.0
        columns = ColumnTransformer([("c", encoder, ["country"])], remainder="passthrough")
        y = np.where(X["country"] == levels[0], "p", "q")
        model = make_pipeline(columns, L2SVC()).fit(X, y)
        save_model(model, tmp_path / "m.pmz")
        return str(tmp_path / "m.pmz"), model, X

    @pytest.mark.parametrize(
        "levels",
        [
            *(["NA", "US", "FR"], ["US", "NA", "FR"], [" US", "DE", "FR"], [" US", "US", "FR"]),
            *(["", "US", "null"], ["US", "", "null"], ["DE", " US", "FR"], ["US", "01", ""]),
        ],
    )
    @pytest.mark.parametrize("separator", [",", "\t"])
    def test_cells_are_the_levels_as_they_are_written(self, tmp_path, capsys, levels, separator):
        path, model, X = self.saved(tmp_path, levels, OneHotEncoder(handle_unknown="ignore"))
        table = tmp_path / "rows.txt"
        X.assign(label="p").to_csv(table, index=False, sep=separator)
        assert main(["predict", path, str(table), "--json", "--target", "label"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["prediction"] == model.predict(X).tolist()

    TABLE = "country,n\na,1\nZZ,2\nb,3\nZZ,4\n"

    @pytest.mark.parametrize("unknown", ["ignore", "error"])
    def test_others_are_refused(self, tmp_path, capsys, unknown):
        path, _, _ = self.saved(tmp_path, [*"abc"], OneHotEncoder(handle_unknown=unknown))
        table = tmp_path / "rows.csv"
        table.write_text(self.TABLE)
        assert main(["predict", path, str(table)]) == 2
        assert "in 'country' 'ZZ' (row 2, 4), of 'a', 'b', 'c'" in capsys.readouterr().err
        for asked in ("zero", "missing"):
            code = main(["predict", path, str(table), "--unseen", asked])
            assert code == (0 if unknown == "ignore" else 2)
            refused = f"--unseen {asked} is not for 'country'" in capsys.readouterr().err
            assert refused == (unknown == "error")

    def test_so_are_other_codes_and_missing_ones(self, tmp_path, capsys):
        table = tmp_path / "rows.csv"
        table.write_text("country,n\n1,1\n9,2\n")
        path, model, X = self.saved(tmp_path, [*"abc"], OneHotEncoder())
        model.fit(X.assign(country=np.arange(90) % 3), np.arange(90) % 3 > 1)
        save_model(model, path)
        assert main(["predict", path, str(table)]) == 2
        assert "in 'country' 9 (row 2), of '0', '1', '2'" in capsys.readouterr().err
        table.write_text("country,n\n1,1\n,2\n")
        assert main(["predict", path, str(table)]) == 2
        assert "row 2, column 'country'" in capsys.readouterr().err

    @pytest.mark.parametrize("unknown", ["ignore", "error"])
    def test_so_are_those_of_columns_without_names(self, tmp_path, capsys, unknown):
        codes = np.arange(60).reshape(30, 2) // 2 % 3
        model = make_pipeline(OneHotEncoder(handle_unknown=unknown), L2SVC())
        save_model(model.fit(codes, codes[:, 0] > 1), tmp_path / "m.pmz")
        table = tmp_path / "rows.csv"
        table.write_text("a,b\n1,1\n2,9\n")
        command = ["predict", str(tmp_path / "m.pmz"), str(table)]
        assert main(command) == 2
        assert "in '1' 9.0 (row 2), of '0', '1', '2'" in capsys.readouterr().err
        assert main([*command, "--unseen", "zero"]) == (0 if unknown == "ignore" else 2)

    @pytest.mark.parametrize("unknown", ["ignore", "error"])
    def test_so_are_those_of_integers_stored_as_objects(self, tmp_path, capsys, unknown):
        path, model, X = self.saved(tmp_path, [2, 3, 5], OneHotEncoder(handle_unknown=unknown))
        table = tmp_path / "rows.csv"
        X.to_csv(table, index=False)
        assert main(["predict", path, str(table), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["prediction"] == model.predict(X).tolist()
        table.write_text("country,n\n5,1\n9,2\n")
        assert main(["predict", path, str(table)]) == 2
        assert "in 'country' 9 (row 2), of '2', '3', '5'" in capsys.readouterr().err
        code = main(["predict", path, str(table), "--unseen", "zero"])
        assert code == (0 if unknown == "ignore" else 2)

    @pytest.mark.parametrize("kind", ["svm", "npz"])
    @pytest.mark.parametrize("named", [False, True])
    def test_so_are_those_of_matrices(self, tmp_path, capsys, kind, named):
        codes = np.arange(60).reshape(30, 2) // 2 % 3
        model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), L2SVC())
        X = pd.DataFrame(codes, columns=["a", "b"]) if named else codes
        save_model(model.fit(X, codes[:, 0] > 1), tmp_path / "m.pmz")
        table = tmp_path / f"rows.{kind}"

        def predicted(rows, *options):
            rows = np.array(rows, dtype=float)
            if kind == "npz":
                np.savez(table, X=rows)
            else:
                dump_svmlight_file(rows, np.zeros(len(rows)), str(table), zero_based=False)
            return main(["predict", str(tmp_path / "m.pmz"), str(table), "--json", *options])

        assert predicted(codes) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["prediction"] == model.predict(X).tolist()
        assert predicted([[1, 1], [2, 9]]) == 2
        assert "9.0 (row 2), of '0', '1', '2'" in capsys.readouterr().err
        assert predicted([[1, 1], [2, 9]], "--unseen", "zero") == 0

    def test_missing_ones_are_filled_in(self, tmp_path, capsys):
        encoder = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
        path, _, _ = self.saved(tmp_path, [*"abc"], encoder)
        table = tmp_path / "rows.csv"
        table.write_text(self.TABLE)
        assert main(["predict", path, str(table), "--unseen", "missing", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["prediction"] == ["p", "p", "q", "p"]

    def test_spellings_are_joined(self, tmp_path, capsys):
        path, _, _ = self.saved(tmp_path, [*"abc"], OneHotEncoder())
        table = tmp_path / "rows.csv"
        table.write_text("country,n\nA,1\nb ,2\n")
        assert main(["predict", path, str(table), "--normalize-levels", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["prediction"] == ["p", "q"]
