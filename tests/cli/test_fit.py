"""``proxmargin fit``: what is fitted, printed and saved."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

import proxmargin
from proxmargin import HuberizedSVC, HuberizedSVCCV, LogisticRegressionCV, load_model
from proxmargin.cli import main
from proxmargin.cli.failures import FAILED, OK, USAGE
from tests.cli.conftest import COLUMNS, ROWS

X, y = (each[:ROWS] for each in load_breast_cancer(return_X_y=True))
X = X[:, :COLUMNS]


class TestFit:
    def test_it_saves_a_standardised_model_with_the_names_of_the_columns(self, model):
        fitted = load_model(model)
        assert fitted.standardize
        assert fitted.certificate_.converged
        assert list(fitted.feature_names_in_) == [f"f{j}" for j in range(COLUMNS)]

    @pytest.mark.parametrize(
        "words",
        [
            ["SparseLogisticRegression"],
            ["HuberizedSVC", "--alpha", "auto", "--no-intercept"],
            ["SVC", "--kernel", "rbf", "--no-standardize", "--set", "random_state=3"],
            ["MulticlassSVC", "--penalty", "l1", "-q"],
        ],
    )
    def test_the_printed_expression_fits_the_same_model(self, words, training, capsys):
        assert main(["fit", str(training), "--json", "--model", *words]) == OK
        told = json.loads(capsys.readouterr().out)
        table = proxmargin.read_data(training)
        again = eval(told["python"], dict(vars(proxmargin))).fit(table.X, table.y)
        primal = told["model"]["certificate"]["primal"]
        assert again.certificate_.primal == pytest.approx(primal, rel=1e-9)

    @pytest.mark.parametrize(
        ("words", "scaled"),
        [
            ([], False),
            (["--standardize", "yes"], True),
            (["--standardize", "auto"], False),
            (["--set", "standardize=true"], True),
            (["--no-standardize"], False),
        ],
    )
    def test_sparse_features_stay_in_their_units_unless_asked(self, words, scaled, tmp_path):
        data, path = str(tmp_path / "data.svm"), str(tmp_path / "m.pmz")
        dump_svmlight_file(np.round(X, 1), y, data)
        given = ["--model", "SquaredHingeSVC", "--alpha", "0.1", "-o", path, "-q"]
        assert main(["fit", data, *given, *words]) == OK
        assert load_model(path).standardize is scaled

    def test_it_prints_the_certificate(self, training, capsys):
        words = ["--model", "SquaredHingeSVC", "--alpha", "0.1", "--standardize", "auto"]
        assert main(["fit", str(training), *words]) == OK
        out, err = capsys.readouterr()
        assert "SquaredHingeSVC(alpha=0.1, " in out
        assert "converged: objective" in out
        assert err == ""

    def test_options_reach_the_estimator(self, training, tmp_path):
        path = tmp_path / "m.pmz"
        status = main(
            f"fit {training} --model-name HuberizedSVC --alpha 0.3 --l1-ratio 0.25 --delta 2 "
            f"--solver fapg --tol 0.5 --max-iter 500 --time-limit 60 --no-standardize "
            f"--no-intercept --class-weight balanced --set intercept_ridge=0.5 -q -o {path}".split()
        )
        assert status == OK
        fitted = load_model(path)
        assert (fitted.alpha, fitted.l1_ratio, fitted.delta) == (0.3, 0.25, 2.0)
        assert (fitted.solver, fitted.tol, fitted.max_iter) == ("fapg", 0.5, 500)
        assert (fitted.time_limit, fitted.standardize, fitted.fit_intercept) == (60, False, False)
        assert (fitted.class_weight, fitted.intercept_ridge) == ("balanced", 0.5)

    def test_a_fit_that_did_not_converge_is_saved_and_exits_with_1(
        self, training, tmp_path, capsys
    ):
        path = tmp_path / "m.pmz"
        arguments = ["fit", str(training), "--model", "HuberizedSVC", "--max-iter", "2", "-q"]
        assert main([*arguments, "-o", str(path), "--json"]) == FAILED
        out, err = capsys.readouterr()
        assert json.loads(out)["model"]["certificate"]["converged"] is False
        assert err.startswith("proxmargin: warning: HuberizedSVC stopped before its tolerance")
        assert len(err.splitlines()) == 1
        assert not load_model(path).certificate_.converged

    def test_a_warning_is_told_whatever_python_is_to_do_with_warnings(self, training, capsys):
        arguments = ["fit", str(training), "--model", "HuberizedSVC", "--max-iter", "2", "-q"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as python -W ignore
            assert main(arguments) == FAILED
        assert capsys.readouterr().err.startswith("proxmargin: warning: HuberizedSVC stopped")


class TestHeldOut:
    """The accuracy of the training samples is called so, and that of others stands beside it."""

    def test_the_training_accuracy_is_called_so_with_advice(self, training, capsys):
        assert main(["fit", str(training), "--model", "SquaredHingeSVC", "-q"]) == OK
        out = capsys.readouterr().out
        assert "training accuracy:" in out
        assert "--cv 5 holds some out" in out
        assert "\naccuracy" not in out

    def test_noise_is_learned_by_heart_and_not_predicted(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        path = tmp_path / "noise.npz"
        np.savez(path, X=rng.normal(size=(60, 300)), y=np.arange(60) % 2)
        words = ["--model", "L2SVC", "--cv", "3", "--standardize", "yes", "-q", "--json"]
        assert main(["fit", str(path), *words]) == OK
        told = json.loads(capsys.readouterr().out)
        assert told["training_accuracy"] == 1.0
        held_out = told["held_out"]
        assert held_out["folds"] == 3
        assert held_out["low"] < 0.5 < held_out["high"]
        assert held_out["low"] < held_out["accuracy"] < held_out["high"]

    def test_it_is_the_mean_over_stratified_folds(self, training, capsys):
        assert main(["fit", str(training), "--model", "HuberizedSVC", "--cv", "4", "--json"]) == OK
        told = json.loads(capsys.readouterr().out)["held_out"]
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        scores = cross_val_score(HuberizedSVC(), X, y, cv=folds)
        assert told["accuracy"] == pytest.approx(scores.mean())

    def test_rows_of_one_group_are_not_many_to_the_interval(self, tmp_path, capsys):
        rng = np.random.default_rng(0)
        path, table = tmp_path / "patients.csv", pd.DataFrame({"a": 0.01 * rng.normal(size=160)})
        table["patient"] = np.repeat([f"p{k}" for k in range(8)], 20)
        table["y"] = np.where(np.repeat(np.arange(8) % 2, 20), "ill", "well")
        table["a"] += table["y"] == "ill"
        table.to_csv(path, index=False)
        command = ["fit", str(path), "--model", "L2SVC", "--target", "y", "--cv", "4", "--json"]
        assert main([*command, "--groups", "patient", "-q"]) == OK
        held_out = json.loads(capsys.readouterr().out)["held_out"]
        assert held_out["accuracy"] == 1.0
        assert held_out["low"] == pytest.approx(binomtest(8, 8).proportion_ci().low)

    @pytest.mark.parametrize(("folds", "words"), [("1", "at least 2 folds"), ("150", "there are")])
    def test_folds_that_cannot_be_are_a_sentence(self, folds, words, training, capsys):
        assert main(["fit", str(training), "--model", "L2SVC", "--cv", folds, "-q"]) == USAGE
        assert words in capsys.readouterr().err


class TestChosenStrength:
    @pytest.mark.parametrize(
        ("name", "flag", "searched"),
        [
            ("HuberizedSVC", "--alpha", HuberizedSVCCV),
            ("LogisticRegression", "--C", LogisticRegressionCV),
        ],
    )
    def test_it_is_that_of_cross_validation(self, name, flag, searched, training, tmp_path, capsys):
        path = tmp_path / "m.pmz"
        words = ["fit", str(training), "--model", name, flag, "auto", "-q", "-o", str(path)]
        assert main(words) == OK
        strength = flag.removeprefix("--")
        assert "chosen by 5-fold cross-validation" in capsys.readouterr().out
        names = load_breast_cancer().target_names
        search = searched().fit(X, names[y])
        assert getattr(load_model(path), strength) == getattr(search, f"{strength}_")

    def test_the_share_of_the_l1_norm_is_kept(self, training, tmp_path, capsys):
        path = tmp_path / "m.pmz"
        words = ["--model", "SquaredHingeSVC", "--alpha", "auto", "--l1-ratio", "0.5", "-q", "-o"]
        assert main(["fit", str(training), *words, str(path)]) == OK
        assert load_model(path).l1_ratio == 0.5

    def test_the_choice_is_made_anew_in_each_fold(self, training, capsys, monkeypatch):
        fitted, rows = HuberizedSVCCV.fit, []

        def counted(self, X, y, **given):
            rows.append(X.shape[0])
            return fitted(self, X, y, **given)

        monkeypatch.setattr(HuberizedSVCCV, "fit", counted)
        words = ["fit", str(training), "--model", "HuberizedSVC", "--alpha", "auto", "--cv", "2"]
        assert main([*words, "-q"]) == OK
        assert rows == [ROWS // 2, ROWS // 2, ROWS]

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["DWD", "--C", "auto"], "DWD has no parameter for --C"),
            (["L2SVC", "--C", "auto"], "knows no strength of L2SVC"),
            (["HuberizedSVC", "--C", "auto"], "HuberizedSVC has no parameter for --C"),
        ],
    )
    def test_a_model_without_such_a_choice_says_so(self, options, words, training, capsys):
        assert main(["fit", str(training), "--model", *options, "-q"]) == USAGE
        assert words in capsys.readouterr().err


def test_the_largest_coefficients_are_named(training, capsys):
    words = ["fit", str(training), "--model", "HuberizedSVC", "-q", "--standardize", "yes"]
    assert main(words) == OK
    line = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("largest:"))
    assert " per sd)" in line
    assert line.endswith("positive speaks for malignant")
    assert main([*words, "--json"]) == OK
    leading = json.loads(capsys.readouterr().out)["model"]["top_features"]
    assert line.split()[1] == leading[0]["feature"]
    assert leading[0]["class"] == "malignant"


@pytest.mark.parametrize("strength", [(), ("--alpha", "auto", "--impute", "median")])
def test_a_calibrated_fit_has_probabilities(strength, tmp_path, capsys) -> None:
    path = str(tmp_path / "model.pmz")
    data = "breast_cancer" if strength else "iris"
    fit = ["fit", data, "--model", "HuberizedSVC", "--quiet", *strength]
    assert main([*fit, "--calibrate", "-o", path]) == 0
    assert "of calibrated scores" in capsys.readouterr().out
    assert main(["predict", path, data, "--proba", "--quiet"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    shares = np.array([[float(v) for k, v in row.items() if k != "prediction"] for row in rows])
    assert shares.shape == ((569, 2) if strength else (150, 3))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    plain = load_model(path)
    assert main([*fit, "-o", path]) == 0
    again = load_model(path)
    inner = getattr(plain, "model", plain), getattr(again, "model", again)
    np.testing.assert_array_equal(inner[0].coef_, inner[1].coef_)


def test_a_logistic_fit_needs_no_calibration(capsys) -> None:
    assert main(["fit", "iris", "--model", "SparseLogisticRegression", "--calibrate"]) == USAGE
    assert "probabilities of its own" in capsys.readouterr().err


def test_predictions_that_are_less_probable_are_counted(tmp_path, capsys) -> None:
    path = str(tmp_path / "model.pmz")
    assert main(["fit", "breast_cancer", "--model", "DWD", "-q", "--calibrate", "-o", path]) == 0
    capsys.readouterr()
    assert main(["predict", path, "breast_cancer", "--proba", "-q"]) == 0
    assert re.search(r"\d+ of 569 predicted classes are not the most", capsys.readouterr().err)


@pytest.mark.parametrize("more", [[], ["--impute", "mean"], ["--weights", "w"], ["--cv-command"]])
def test_the_expression_in_python_makes_the_same_model(tmp_path, capsys, more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 10, 100]
    y, weights = X[:, 0] + rng.normal(size=40) > 0, rng.integers(1, 4, 40)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "w": weights, "y": y})
    if "--impute" in more:
        frame.loc[3, "a"] = np.nan
    frame.to_csv(tmp_path / "d.csv", index=False)
    columns = ["a", "b", "c"] if "--weights" in more else ["a", "b", "c", "w"]
    command = ["cv", "--folds", "3"] if "--cv-command" in more else ["fit", *more]
    model = ["--model", "SparseLogisticRegression", "-o", str(tmp_path / "m.pmz"), "--json", "-q"]
    assert main([command[0], str(tmp_path / "d.csv"), *command[1:], *model]) == OK
    made = json.loads(capsys.readouterr().out)["python"]
    X, weights = frame[columns].to_numpy(), frame["w"].to_numpy(dtype=float)
    names = {"SimpleImputer": SimpleImputer, "make_pipeline": make_pipeline, "X": X}
    names |= {"SparseLogisticRegression": proxmargin.SparseLogisticRegression}
    found = eval(made, names | {"y": y, "weights": weights})
    found = found if ".fit(" in made else found.fit(X, y)
    saved = proxmargin.load_model(tmp_path / "m.pmz")
    np.testing.assert_allclose(
        found.decision_function(X), saved.decision_function(X), rtol=1e-3, atol=1e-3
    )
