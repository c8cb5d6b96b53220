"""The command line, end to end: results, exit statuses, one-sentence errors."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import proxmargin
from proxmargin import load_model
from proxmargin.cli import main, output
from proxmargin.cli.failures import FAILED, INTERRUPTED, OK, USAGE, guarded
from proxmargin.cli.wording import as_options
from proxmargin.comparing.comparison import Comparison
from proxmargin.comparing.layout import Listing
from proxmargin.selection.base import CrossValidated

ROWS, COLUMNS = 200, 6


@pytest.fixture(scope="module")
def training(tmp_path_factory) -> Path:
    """A CSV file with named columns and words as labels."""
    data = load_breast_cancer()
    path = tmp_path_factory.mktemp("data") / "train.csv"
    names = [f"f{j}" for j in range(COLUMNS)]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "class"])
        for row, code in zip(data.data[:ROWS, :COLUMNS], data.target[:ROWS], strict=True):
            writer.writerow([*row, data.target_names[code]])
    return path


@pytest.fixture(scope="module")
def model(training) -> Path:
    path = training.with_name("model.pmz")
    assert main(["fit", str(training), "--model", "HuberizedSVC", "-q", "-o", str(path)]) == OK
    return path


def run(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proxmargin", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


class TestFit:
    def test_it_saves_a_standardised_model_with_the_names_of_the_columns(self, model):
        fitted = load_model(model)
        assert fitted.standardize
        assert fitted.certificate_.converged
        assert list(fitted.feature_names_in_) == [f"f{j}" for j in range(COLUMNS)]

    def test_it_prints_the_certificate(self, training, capsys):
        assert main(["fit", str(training), "--model", "SquaredHingeSVC", "--alpha", "0.1"]) == OK
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
        arguments = ["fit", str(training), "--model", "HuberizedSVC", "--max-iter", "2"]
        assert main([*arguments, "-o", str(path), "--json"]) == FAILED
        out, err = capsys.readouterr()
        assert json.loads(out)["model"]["certificate"]["converged"] is False
        assert err.startswith("proxmargin: warning: HuberizedSVC stopped before its tolerance")
        assert len(err.splitlines()) == 1
        assert not load_model(path).certificate_.converged

    def test_a_warning_is_told_whatever_python_is_to_do_with_warnings(self, training, capsys):
        arguments = ["fit", str(training), "--model", "HuberizedSVC", "--max-iter", "2"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as python -W ignore
            assert main(arguments) == FAILED
        assert capsys.readouterr().err.startswith("proxmargin: warning: HuberizedSVC stopped")


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


class TestPath:
    def test_it_lists_alphas_from_the_largest(self, capsys):
        arguments = ["path", "wine", "--model", "HuberizedSVC", "--n-alphas", "4"]
        assert main([*arguments, "--json"]) == OK
        rows = json.loads(capsys.readouterr().out)["path"]
        assert rows[0]["features"] == 0
        assert [row["alpha"] for row in rows] == sorted((r["alpha"] for r in rows), reverse=True)
        assert all(row["converged"] and row["relative_gap"] <= 1e-6 for row in rows)
        assert main(arguments) == OK
        out = capsys.readouterr().out
        assert "certified gap" in out
        assert len(out.splitlines()) == 2 + 1 + 4

    def test_alpha_is_not_an_option_here(self, capsys):
        assert main(["path", "wine", "--model", "HuberizedSVC", "--alpha", "1"]) == USAGE
        assert "leave out --alpha" in capsys.readouterr().err

    def test_a_path_that_did_not_converge_exits_with_1(self, capsys):
        arguments = ["path", "wine", "--model", "HuberizedSVC", "--n-alphas", "3"]
        assert main([*arguments, "--max-iter", "1"]) == FAILED
        out, err = capsys.readouterr()
        assert " !" in out
        assert "of 3 fits of the HuberizedSVC path" in err

    def test_it_is_drawn(self, tmp_path):
        pytest.importorskip("matplotlib")
        picture = tmp_path / "path.png"
        arguments = ["path", "wine", "--model", "SVC", "--n-alphas", "3", "-q"]
        assert main([*arguments, "--plot", str(picture)]) == OK
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert main([*arguments, "--plot", str(tmp_path / "path.doc")]) == USAGE


class TestCrossValidation:
    def test_it_chooses_prints_and_saves(self, tmp_path, capsys):
        arguments = ["cv", "wine", "--model", "HuberizedSVC", "--multi-class", "ovr", "-q"]
        arguments += ["--n-strengths", "3", "--folds", "3", "--l1-ratios", "1", "0.5"]
        path = tmp_path / "m.pmz"
        assert main([*arguments, "-o", str(path), "--json"]) == OK
        told = json.loads(capsys.readouterr().out)
        assert len(told["scores"]) == 6
        best = max(told["scores"], key=lambda row: row["mean_test_score"])
        assert told["chosen"] == best
        assert best["mean_test_score"] == pytest.approx(np.mean(best["folds"]))
        model = load_model(path)
        assert (model.alpha, model.l1_ratio) == (best["alpha"], best["l1_ratio"])
        assert main(arguments) == OK
        assert " *" in capsys.readouterr().out

    def test_relaxed_fits_have_scores_of_their_own(self, capsys):
        arguments = ["cv", "breast_cancer", "-q", "--n-strengths", "3", "--folds", "2", "--relaxed"]
        lasso = [*arguments, "--model", "SparseLogisticRegression", "--eps", "0.5"]
        assert main([*lasso, "--json"]) == OK
        told = json.loads(capsys.readouterr().out)
        scores = told["scores"]
        assert told["one_standard_error"] in scores
        assert [row["gamma"] for row in scores] == np.repeat([1, 0.75, 0.5, 0.25, 0], 3).tolist()
        assert main(lasso) == OK
        table = capsys.readouterr().out.partition("\n* chosen, + ")[0].splitlines()
        assert len({row.split()[2] for row in table[1:]}) == len(table[1:]) == 3
        assert sum("*" in row for row in table) == sum("+" in row for row in table) == 1
        assert main([*arguments, "--model", "SVC"]) == USAGE
        assert "SVC has no parameter for --relaxed" in capsys.readouterr().err

    def test_complete_folds_are_printed_after_ctrl_c(self, capsys, monkeypatch):
        fitted = CrossValidated.fit

        models = []

        def interrupted(model, X, y):
            fitted(model, X, y)
            model.cv_scores_[:, 1, 2] = np.nan
            del model.best_index_  # an interrupted search has chosen nothing
            models.append(model)
            raise KeyboardInterrupt

        monkeypatch.setattr(CrossValidated, "fit", interrupted)
        arguments = ["cv", "breast_cancer", "--model", "LogisticRegression", "-q", "--json"]
        assert main([*arguments, "--n-strengths", "2", "--folds", "3"]) == INTERRUPTED
        told = json.loads(capsys.readouterr().out)
        assert told["complete_folds"] == 2
        assert [len(row["folds"]) for row in told["scores"]] == [2, 2]
        assert models[0].cv_scores_.shape == (1, 2, 3)

    def test_a_choice_at_the_edge_is_told_of(self, capsys):
        arguments = ["cv", "wine", "--model", "SquaredHingeSVC", "-q", "--eps", "0.9"]
        assert main([*arguments, "--n-strengths", "2", "--folds", "3"]) == OK
        err = capsys.readouterr().err
        assert err.count("warning") == 1
        assert "is the weakest penalty of its grid: a weaker one may be better" in err

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["HuberizedSVC", "--alpha", "1"], "leave out --alpha"),
            (["HuberizedSVC", "--l1-ratio", "1"], "give --l1-ratios"),
            (["SVC", "--l1-ratios", "1"], "has no parameter for --l1-ratios"),
            (["DWD"], "knows no strength of DWD"),
        ],
    )
    def test_a_mistake_is_a_sentence(self, options, words, capsys):
        assert main(["cv", "wine", "-q", "--model", *options]) == USAGE
        assert words in capsys.readouterr().err


class TestStability:
    WORDS = ("stability", "wine", "--model", "HuberizedSVC", "-q", "--pairs", "5")

    def test_it_lists_the_stable_features_and_writes_all(self, tmp_path, capsys):
        table = tmp_path / "all.csv"
        words = [*self.WORDS, "--n-strengths", "4", "--q", "3", "--csv", str(table)]
        assert main([*words, "--json"]) == OK
        told = json.loads(capsys.readouterr().out)
        assert (told["q"], told["threshold"], told["half_samples"]) == (3, 0.75, 10)
        assert all(row["frequency"] >= 0.75 for row in told["stable"])
        lines = table.read_text().splitlines()
        assert lines[0] == "feature,frequency,stable,cluster"
        assert len(lines) == 1 + 13
        kept = ["--checkpoint", str(tmp_path / "halves.npz"), "--cluster", "0.8"]
        for _ in range(2):
            assert main([*words, *kept]) == OK
        out = capsys.readouterr().out
        assert "cluster" in out
        assert "expected (unimodal)" in out

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


class TestInfo:
    def test_a_model_is_described(self, model, capsys):
        assert main(["info", str(model)]) == OK
        out = capsys.readouterr().out
        assert "HuberizedSVC" in out
        assert "converged: objective" in out
        assert main(["info", str(model), "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert facts["features"] == COLUMNS
        assert facts["classes"] == ["benign", "malignant"]

    def test_a_model_with_another_suffix_is_recognised(self, model, tmp_path, capsys):
        path = tmp_path / "model.zip"
        path.write_bytes(model.read_bytes())
        assert main(["info", str(path)]) == OK
        assert "estimator:" in capsys.readouterr().out

    @pytest.mark.parametrize("name", ["data.npz", "model.pmz"])
    def test_a_damaged_archive_is_a_sentence(self, model, tmp_path, name, capsys):
        path = tmp_path / name
        np.savez(tmp_path / "whole.npz", X=np.eye(2), y=[0, 1])
        whole = (tmp_path / "whole.npz" if name == "data.npz" else model).read_bytes()
        # names of two members in the directory at the end no longer fit those before the members
        path.write_bytes(whole[:-150] + bytes(100) + whole[-50:])
        assert main(["info", str(path)]) == USAGE
        err = capsys.readouterr().err
        assert err.startswith(f"proxmargin: error: {path}: ")
        assert "--debug" not in err

    def test_doubtful_classes_are_said_once(self, tmp_path, capsys):
        (tmp_path / "d.csv").write_text("x,y\n1,a\n2,?\n3,a\n4,?\n")
        assert main(["info", str(tmp_path / "d.csv"), "--json"]) == OK
        err = capsys.readouterr().err
        assert err.startswith("proxmargin: warning: ")
        assert err.count("'?' looks like a missing value") == 1

    def test_data_are_described(self, training, capsys):
        assert main(["info", str(training), "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert (facts["rows"], facts["columns"], facts["target"]) == (ROWS, COLUMNS, "class")
        assert sum(facts["classes"].values()) == ROWS


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
            "certified gap",
            "l1_ratio",
            "majority class",
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
        from proxmargin.comparing import run as running
        from proxmargin.comparing import work

        done = []

        def perform(*arguments):
            if done:
                raise KeyboardInterrupt
            done.append(work.perform(*arguments))
            return done[0]

        monkeypatch.setattr(running, "perform", perform)
        arguments = ["compare", str(training), "--folds", "2", "-q", "--models", "SquaredHingeSVC"]
        assert main(arguments) == INTERRUPTED
        assert "interrupted" in capsys.readouterr().out


class TestTextTables:
    """Files as other programs write them."""

    OPTIONS = ("--sep", ";", "--decimal", ",", "--encoding", "latin-1", "-q")

    @pytest.fixture
    def foreign(self, training, tmp_path) -> Path:
        rows = list(csv.reader(training.read_text().splitlines()))
        lines = [f"größe;{';'.join(rows[0])}"]
        lines += [f"n{j};{';'.join(row).replace('.', ',')}" for j, row in enumerate(rows[1:])]
        path = tmp_path / "foreign.dat"
        path.write_text("\n".join(lines), encoding="latin-1")
        return path

    def test_they_give_the_same_model(self, training, foreign, model, tmp_path):
        path = tmp_path / "m.pmz"
        arguments = ["fit", str(foreign), "--model", "HuberizedSVC", "--ignore", "größe"]
        assert main([*arguments, *self.OPTIONS, "-o", str(path)]) == OK
        np.testing.assert_array_equal(load_model(path).coef_, load_model(model).coef_)

    def test_they_are_predicted_and_described(self, foreign, model, tmp_path, capsys):
        out = tmp_path / "out.csv"
        assert main(["predict", str(model), str(foreign), *self.OPTIONS, "-o", str(out)]) == OK
        assert len(out.read_text().splitlines()) == ROWS + 1
        assert main(["info", str(foreign), "--ignore", "0", *self.OPTIONS, "--json"]) == OK
        assert json.loads(capsys.readouterr().out)["columns"] == COLUMNS

    def test_a_file_without_a_header(self, training, tmp_path, capsys):
        path = tmp_path / "bare.tsv"
        lines = training.read_text().splitlines()[1:]
        path.write_text("\n".join(line.replace(",", "\t") for line in lines))
        assert main(["info", str(path), "--json"]) == USAGE
        assert "(--no-header)" in capsys.readouterr().err
        assert main(["info", str(path), "--no-header", "--sep", "tab", "--json"]) == OK
        facts = json.loads(capsys.readouterr().out)
        assert (facts["rows"], facts["target"]) == (ROWS, str(COLUMNS))


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ("fit nowhere.csv --model HuberizedSVC", "There is no file 'nowhere.csv'"),
            ("fit iris --model Nope", "there is no model 'Nope'; models are DWD, "),
            ("fit iris --model SquaredHingeSVC --delta 2", "has no parameter for --delta"),
            ("fit iris --model SVC --set width=2", "has no parameter for --set width"),
            ("fit iris --model HuberizedSVC --alpha -1", "alpha must be"),
            ("fit iris --model HuberizedSVC --solver nope", "unknown solver 'nope'"),
            ("fit iris --model HuberizedSVC --target nope", "nope"),
            ("fit iris --model HuberizedSVC -o no/where/m.pmz", "cannot write to no/where/m.pmz"),
            ("compare iris --models Nope", "no model 'Nope' to compare"),
            ("compare iris --scoring nope", "unknown scoring 'nope'"),
            ("compare iris --folds 1", "at least 2 folds"),
            ("compare iris --output .", "it is a folder"),
            ("compare iris --report no/where.html", "cannot write to no/where.html"),
            ("compare iris --time-limit 0", "time_limit must be a finite number > 0"),
            ("compare iris --metrics nope", "unknown metrics 'nope'"),
            ("compare iris --groups site", "this is a matrix"),
            ("path iris --model MarginClassifier", "has no alpha"),
            ("path iris --model HuberizedSVC --n-alphas 0", "n_alphas"),
            ("predict nowhere.pmz iris", "nowhere.pmz"),
            ("info nowhere.pmz", "nowhere.pmz"),
            ("info iris --sep ;", "no text table"),
            ("info iris --encoding klingon", "no encoding 'klingon'"),
            ("fit iris --model HuberizedSVC --ignore 0", "this is a matrix"),
        ],
    )
    def test_a_mistake_is_one_sentence_and_status_2(self, arguments, words, capsys):
        assert main([*arguments.split(), "--quiet"]) == USAGE
        out, err = capsys.readouterr()
        assert out == ""
        assert words in err
        assert err.startswith("proxmargin: error: ")
        assert len(err.splitlines()) == 1

    def test_the_wrong_data_for_a_model_are_refused(self, model, capsys):
        assert main(["predict", str(model), "iris"]) == USAGE
        assert "Traceback" not in capsys.readouterr().err

    def test_debug_shows_the_traceback(self, capsys):
        assert main(["fit", "nowhere.csv", "--model", "HuberizedSVC", "--debug"]) == USAGE
        assert "Traceback" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments",
        [[], ["nope"], ["fit", "iris"], ["fit"], ["compare", "iris", "--folds", "x"],
         ["fit", "iris", "--model", "HuberizedSVC", "--set", "nonsense"]],
    )  # fmt: skip
    def test_wrong_usage_exits_with_2(self, arguments, capsys):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == USAGE
        assert "usage: proxmargin" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("error", "status", "words"),
        [
            (ValueError("bad"), USAGE, "error: bad"),
            (PermissionError(13, "denied"), FAILED, "denied"),
            (MemoryError(), FAILED, "not enough memory"),
            (RuntimeError("two\nlines"), FAILED, "RuntimeError: two lines (--debug shows where)"),
            (KeyboardInterrupt(), INTERRUPTED, "interrupted"),
        ],
    )
    def test_every_exception_has_a_status(self, error, status, words, capsys):
        def work() -> int:
            raise error

        assert guarded(work, debug=False) == status
        assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("use multi_class='ovr'", "use --multi-class ovr"),
        ("it is above (nu=0.25).", "it is above (--nu 0.25)."),
        ("encode them (encode=True) or not", "encode them (--encode) or not"),
        ("name it (encoding=).", "name it (--encoding)."),
        ("(tol=1e-05)", "(--tol 1e-05)"),
        ("SVC(shrinking=True), x_nu=1", "SVC(shrinking=True), x_nu=1"),
    ],
)
def test_sentences_name_options(sentence, words):
    assert as_options(sentence) == words


class TestProcess:
    def test_version_and_help(self):
        version = run("--version")
        assert (version.returncode, version.stdout) == (
            0,
            f"proxmargin {proxmargin.__version__}\n",
        )
        for command in (
            [],
            ["compare"],
            ["fit"],
            ["cv"],
            ["predict"],
            ["path"],
            ["stability"],
            ["info"],
        ):
            shown = run(*command, "--help")
            assert shown.returncode == 0
            assert shown.stdout.startswith("usage: proxmargin")

    def test_fit_predict_and_info_follow_each_other(self, training, tmp_path, capsys):
        options = ("--model", "SquaredHingeSVC", "-q", "-o", "m.pmz")
        fitted = run("fit", training, *options, cwd=tmp_path)
        told = [line for line in fitted.stderr.splitlines() if "compiling kernels" not in line]
        assert (fitted.returncode, told) == (0, [])
        stored = str(tmp_path / "m.pmz")  # each process takes seconds: the others are this one
        assert main(["predict", stored, str(training)]) == 0
        assert len(capsys.readouterr().out.splitlines()) == ROWS + 1
        assert main(["info", stored]) == 0
        assert "SquaredHingeSVC" in capsys.readouterr().out

    def test_a_reader_that_leaves_is_no_error(self, model, training):
        command = [sys.executable, "-m", "proxmargin", "predict", str(model), str(training), "-q"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(60) == 141
        assert errors == b""

    @pytest.mark.slow
    def test_letters_that_a_terminal_lacks_are_no_error(self):
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        arguments = ("compare", "iris", "--models", "SquaredHingeSVC", "--folds", "2", "-q")
        shown = run(*arguments, env=environment)
        assert shown.returncode == 0
        assert "majority class" in shown.stdout


class TestOutput:
    def test_numbers_that_json_lacks_become_null(self, capsys):
        output.print_json({"a": [np.nan, np.float64(1.5), np.inf], 2: np.arange(2), "n": None})
        assert json.loads(capsys.readouterr().out) == {
            "a": [None, 1.5, None],
            "2": [0, 1],
            "n": None,
        }

    def test_a_terminal_gets_rules_and_a_file_does_not(self, capsys, monkeypatch):
        listing = Listing(["model", "certified gap"], [["[a]", "1e-7"]])
        output.print_listing(listing)
        assert capsys.readouterr().out == listing.plain() + "\n"
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        output.print_listing(listing)
        shown = capsys.readouterr().out
        assert "[a]" in shown
        assert "─" in shown
