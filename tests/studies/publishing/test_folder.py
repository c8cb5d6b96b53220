"""A folder to publish: what is in it, that it agrees with itself, and work is done once."""

from __future__ import annotations

import csv
import json
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.svm import SVC

from proxmargin import compare, load_model
from proxmargin.cli import main
from proxmargin.studies.publishing import folder
from proxmargin.studies.publishing.methods import permutation_sentence

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

SLOW = pytest.mark.slow
X, Y = (each[::4] for each in load_breast_cancer(return_X_y=True))
X = X[:, :5]
MODELS = ("--models", "L2SVC", "SquaredHingeSVC", "--quick", "--quiet")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "clinic.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["patient", *"abcde", "diagnosis"])
        rows = zip(X.tolist(), Y.tolist(), strict=True)
        words = ("malignant", "benign")
        writer.writerows((f"P{k:03d}", *x, words[y]) for k, (x, y) in enumerate(rows))
    return path


@pytest.fixture(scope="module")
def published(table, tmp_path_factory):
    where = tmp_path_factory.mktemp("out") / "paper"
    command = ["publish", str(table), "--id", "patient", "-o", str(where), *MODELS]
    assert main([*command, "--positive", "malignant", "--permutations", "2"]) == 0
    return where


def read(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_it_has_the_files_that_it_lists_with_their_digests(published, table) -> None:
    record = json.loads((published / "provenance.json").read_text())
    assert record["data"]["sha256"] == sha256(table.read_bytes()).hexdigest()
    assert record["data"]["of"] == "the file"
    assert "publish" in record["command"]
    for name, digest in record["files"].items():
        assert sha256((published / name).read_bytes()).hexdigest() == digest
    expected = {
        "README.md",
        "report.html",
        "report.pdf",
        "model.pmz",
        "predictions.csv",
        "methods.md",
    }
    assert expected <= set(record["files"])
    assert (published / "report.pdf").read_bytes().startswith(b"%PDF")


def test_its_numbers_agree(published) -> None:
    results = json.loads((published / "results.json").read_text())
    rows = read(published / "predictions.csv")
    assert [row["id"] for row in rows[:2]] == ["P000", "P001"]
    name = results["recommended"]
    found = results["clinical"]["models"][name]
    right = sum(row["true"] == row[name] == "malignant" for row in rows)
    assert found["predicted"]["tp"] == right
    wrong = {row["id"] for row in rows if row["true"] != row[name]}
    listed = read(published / "tables" / "misclassified.csv")
    assert {row["id"] for row in listed} == wrong
    assert list(listed[0])[-1] == "probability of malignant"
    told = (published / "README.md").read_text()
    assert f"{name} is recommended" in told
    files = {path.name for path in published.iterdir()} - {"README.md"}
    assert all(file in told for file in files)
    assert told.count("\n| `") == 9  # a row a line
    text = (published / "methods.md").read_text()
    heads = [line.split("**")[1] for line in text.strip().split("\n\n")[1:]]
    assert heads[:3] == ["Data.", "Models and their parameters.", "Validation."]
    assert heads[3:6] == ["Statistics.", "Software.", "Result."]
    assert heads[6:] == [
        "Other models.",
        "Clinical numbers.",
        "Test against chance.",
        "References.",
    ]
    assert f"{found['auc']['value']:.3f}" in text
    assert f"Of {results['certificates']['fits']} fits" in text
    assert f"{len(rows)} samples (" in text
    assert "Wilson (1927), Journal" in text
    assert "Obuchowski" not in text  # there are no groups
    for row in read(published / "tables" / "features.csv"):
        assert 0 <= float(row["auc"]) <= 1
        assert row["partners"] == "" or row["partners"].endswith(")")
    folds = read(published / "tables" / "folds.csv")
    assert {row["fold"] for row in folds} == {row["fold"] for row in rows} == {"1", "2", "3"}
    assert {row["repeat"] for row in folds} == {"1"}
    assert "permutations of the labels scored as high" in text
    assert f"Permutation test of the balanced accuracy of {name}, its parameters" in text
    assert "best of 2 models is a little optimistic" in text
    asked = (published / "tripod-ai.md").read_text()
    assert asked.count("\n| ") == 1 + 52
    model = load_model(published / "model.pmz")
    assert type(model).__name__ == name
    assert hasattr(model, "predict_proba")
    assert list(model.feature_names_in_) == list("abcde")


@pytest.mark.slow
def test_finished_work_is_not_done_again(published, table, monkeypatch, capsys) -> None:
    def fail(*_, **__):
        raise AssertionError("done again")

    monkeypatch.setattr(folder, "pipeline_test", fail)
    monkeypatch.setattr("proxmargin.studies.comparing.run.perform", fail)
    command = ["publish", str(table), "--id", "patient", "-o", str(published), *MODELS]
    assert main([*command, "--positive", "malignant", "--permutations", "2"]) == 0
    assert "predictions.csv" in capsys.readouterr().out


@pytest.mark.slow
def test_three_classes_without_a_positive_one_have_no_clinical_numbers(tmp_path) -> None:
    x, y = load_iris(return_X_y=True)
    found = compare(x, y, models=["L2SVC"], cv=3, progress=False, quick=True)
    files = folder.publish(found, x, y, tmp_path)
    assert "tables/thresholds.csv" not in files
    assert "tables/coefficients.csv" in files
    assert "Permutation" not in (tmp_path / "methods.md").read_text()
    assert "thresholds.csv" not in (tmp_path / "tripod-ai.md").read_text()


def test_an_unfinished_comparison_is_not_published(tmp_path) -> None:
    x, y = load_iris(return_X_y=True)
    found = compare(x, y, models=["L2SVC"], cv=2, progress=False, time_limit=1e-9)
    with pytest.raises(ValueError, match="not finished"):
        folder.publish(found, x, y, tmp_path)


def test_groups_of_one_class_each_are_tested_as_wholes(tmp_path, monkeypatch, capsys) -> None:
    rng, patients = np.random.default_rng(0), np.repeat(np.arange(10), 3)
    x, y = rng.standard_normal(30), np.array(["well", "sick"])[patients % 2]
    lines = [f"P{p},{v},{w}" for p, v, w in zip(patients, x, y, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["patient,a,diagnosis", *lines]))
    tests = []
    monkeypatch.setattr(folder, "publish", lambda *_, test, **__: tests.append(test) or [])
    command = ["publish", str(tmp_path / "t.csv"), "--target", "diagnosis", "--groups", "patient"]
    command += ["-o", str(tmp_path / "o"), "--models", "L2SVC", "--quick", "--quiet"]
    assert main([*command, "--permutations", "19"]) == 0
    told = capsys.readouterr()
    assert "no permutation test" not in told.err
    assert "No other model was compared with it." in told.out
    assert "Every other model" not in told.out
    assert 1 / 20 <= tests[0].pvalue <= 1.0


@pytest.mark.slow
def test_a_test_says_how_many_permutations_reached_the_accuracy() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    found = compare(x, y, models=["L2SVC"], cv=2, progress=False, quick=True)
    test = folder.pipeline_test(found, x, y, permutations=19, progress=False)
    assert test.chooses
    assert f"p = {round(20 * test.pvalue)}/20" in permutation_sentence(vars(test))


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"groups": np.arange(len(Y)) // 2}])
def test_a_test_scores_the_given_labels_as_the_comparison_did(asked) -> None:
    models = ["HuberizedSVC", "DWD"]
    found = compare(X, Y, models=models, cv=3, progress=False, quick=True, baselines=True, **asked)
    means = found.folds.groupby("model")["score"].mean()
    for whole in (False, True):
        test = folder.pipeline_test(
            found, X, Y, permutations=2, whole=whole, progress=False, **asked
        )
        assert test.score == pytest.approx(means[found.recommended_], 1e-12)
    assert test.inside == 5  # two models, and three of scikit-learn
    again = folder._candidate(found, "sklearn LinearSVC", None)
    assert len(again.search.values["model__C"]) == 4
    assert folder.chooses(again)
    assert not folder.chooses(folder._candidate(found, "DWD", None))
    own = compare(X, Y, models={"mine": SVC(C=3.0)}, cv=2, progress=False)
    alone = folder.pipeline_test(own, X, Y, permutations=2, progress=False)
    assert not alone.chooses
    assert alone.score == pytest.approx(own.folds["score"].mean(), 1e-12)


def test_weights_and_groups_are_not_passed_over_in_silence() -> None:
    asked = {"models": ["L2SVC"], "cv": 2, "progress": False, "quick": True}
    weighted = compare(X, Y, sample_weight=1.0 + Y, **asked)
    assert any("weigh the samples" in note for note in weighted.notes())
    with pytest.raises(ValueError, match="sample_weight: permuted labels"):
        folder.pipeline_test(weighted, X, Y, permutations=2)
    grouped = compare(X, Y, groups=np.arange(len(Y)) // 2, **asked)
    with pytest.raises(ValueError, match="groups: the comparison has some"):
        folder.pipeline_test(grouped, X, Y, permutations=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "scoring", "load", "label"),
    [
        pytest.param("L2SVC", "log_loss", load_breast_cancer, "minus log loss", marks=SLOW),
        ("LogisticRegression", "brier", load_breast_cancer, "minus Brier score"),
        pytest.param("L2SVC", "roc_auc", load_iris, "ROC AUC", marks=SLOW),
    ],
)
def test_a_test_is_by_the_metric_of_the_comparison(model, scoring, load, label) -> None:
    x, y = load(return_X_y=True)
    x, y = x[::3, :3], np.array(["no", "yes", "so"])[y[::3]]
    found = compare(x, y, models=[model], scoring=scoring, cv=2, progress=False, quick=True)
    test = folder.pipeline_test(found, x, y, permutations=2, progress=False)
    assert test.metric.replace("-", " ") == label
    assert test.pvalue == pytest.approx(1 / 3)
    score = found.folds["score"].mean()
    assert test.score == pytest.approx(-score if scoring in ("log_loss", "brier") else score, 1e-12)
    sentence = permutation_sentence(vars(test))
    assert f"test of the {test.metric} of {model}, its parameters chosen" in sentence


def test_an_interrupted_test_says_that_the_comparison_is_kept(table, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        folder.BestScore, "tested", lambda *_, **__: SimpleNamespace(interrupted=True)
    )
    command = ["publish", str(table), "--id", "patient", "-o", str(tmp_path / "out"), *MODELS]
    assert main([*command, "--permutations", "9"]) != 0
    assert "the comparison is kept" in capsys.readouterr().err


@pytest.fixture(scope="module")
def chosen():
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((40, 12)), np.arange(40) % 2
    found = compare(x, y, models=["L2SVC", "DWD"], cv=2, progress=False, quick=True)
    return found, x, y


@pytest.mark.slow
def test_the_choice_among_models_is_inside_a_test_of_all_of_them(chosen) -> None:
    found, x, y = chosen
    alone = folder.pipeline_test(found, x, y, permutations=3, progress=False)
    whole = folder.pipeline_test(found, x, y, permutations=3, whole=True, progress=False)
    assert (alone.inside, whole.inside) == (1, 2)
    assert whole.score == alone.score
    assert whole.pvalue >= alone.pvalue  # against the best of two for each permutation
    assert "is not inside" in permutation_sentence(vars(alone))
    assert "the choice among the 2 models" in permutation_sentence(vars(whole))
    assert "is not inside" not in permutation_sentence(vars(whole))


@pytest.mark.slow
def test_a_single_model_was_not_chosen(chosen) -> None:
    _, x, y = chosen
    found = compare(x, y, models=["L2SVC"], cv=2, progress=False, quick=True)
    test = folder.pipeline_test(found, x, y, permutations=2, progress=False)
    assert "not inside" not in permutation_sentence(vars(test))


@pytest.mark.slow
def test_the_page_says_what_a_test_has_inside(chosen, tmp_path) -> None:
    found, x, y = chosen
    test = folder.pipeline_test(found, x, y, permutations=2, progress=False)
    folder.publish(found, x, y, tmp_path, test=test)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert permutation_sentence(vars(test)) in page


def test_weighted_rows_are_published_without_a_test_and_told(tmp_path, monkeypatch, capsys) -> None:
    rng = np.random.default_rng(0)
    rows = zip(rng.standard_normal(30), rng.uniform(0.5, 2, 30), np.arange(30) % 2, strict=True)
    lines = [f"{x},{w},{y}" for x, w, y in rows]
    (tmp_path / "t.csv").write_text("\n".join(["a,w,diagnosis", *lines]))
    tests = []
    monkeypatch.setattr(folder, "publish", lambda *_, test, **__: tests.append(test) or [])
    command = ["publish", str(tmp_path / "t.csv"), "--target", "diagnosis", "--weights", "w"]
    command += ["-o", str(tmp_path / "o"), "--models", "L2SVC", "--quick", "--quiet"]
    assert main(command) == 0
    assert "no permutation test: sample_weight" in capsys.readouterr().err
    assert tests == [None]
