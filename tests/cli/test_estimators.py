"""Commands that make one model make that of its class."""

from __future__ import annotations

import json
from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_wine

import proxmargin
from proxmargin import load_model
from proxmargin.cli import estimators, main
from proxmargin.cli.commands import fit
from proxmargin.cli.failures import OK
from proxmargin.cli.program import parser
from proxmargin.models.fitting.registry import CROSS_VALIDATED, model_names

ONE_MODEL = ("fit", "path", "stability", "permute")
# what a command gives besides: its data, what it shows of its work, and None for what is not asked
OF_COMMANDS = {"verbose", "progress", "command", "name", "feature_names", "ids"}


@pytest.mark.parametrize("command", ONE_MODEL)
@pytest.mark.parametrize("name", sorted(model_names()))
def test_a_model_has_the_parameters_of_its_class(name: str, command: str) -> None:
    made = estimators.estimator_of(parser().parse_args([command, "iris", "--model", name]))
    assert made.get_params(deep=False) == getattr(proxmargin, name)().get_params(deep=False)


@pytest.mark.parametrize("name", sorted(CROSS_VALIDATED))
def test_a_search_has_the_parameters_of_its_class(name: str) -> None:
    kind = getattr(proxmargin, name)
    words = ["iris", "--model", CROSS_VALIDATED[name]]
    chosen = [*words, f"--{kind.strength.name}", "auto"]
    for made in (
        fit._search(parser().parse_args(["cv", *words])),
        estimators.classifier_of(parser().parse_args(["fit", *chosen])),
        estimators.classifier_of(parser().parse_args(["permute", *chosen])),
    ):
        made.set_params(verbose=0)
        assert made.get_params(deep=False) == kind().get_params(deep=False)


class Called(Exception):
    """The function was called."""


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("path iris --model HuberizedSVC", "margin_path"),
        ("stability iris --model HuberizedSVC", "StabilitySelection"),
        ("permute breast_cancer --model HuberizedSVC", "permutation_test"),
    ],
)
def test_what_is_done_with_a_model_has_the_defaults_of_the_function(
    words: str, name: str, monkeypatch
) -> None:
    function, given = getattr(proxmargin, name), {}

    def called(*_: object, **settings: Any) -> None:
        given.update(settings)
        raise Called

    monkeypatch.setitem(vars(proxmargin), name, called)
    arguments = parser().parse_args([*words.split(), "-q"])
    with pytest.raises(Called):
        arguments.run(arguments)
    defaults = {n: p.default for n, p in signature(function).parameters.items()}
    assert {n: v for n, v in given.items() if n not in OF_COMMANDS} == {
        n: defaults[n] for n in given if n not in OF_COMMANDS
    }
    assert len(given) > 3


@pytest.mark.parametrize(
    "words",
    [
        "SparseLogisticRegression --alpha 0.1",
        "SquaredHingeSVC --alpha 0.1",
        "MulticlassSVC --C 0.01",
        "SVC --kernel rbf",
        "L2SVC --C 0.01",
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_a_fit_is_that_of_the_class(words: str, sparse: bool, tmp_path, capsys) -> None:
    X, y = load_wine(return_X_y=True)
    data = tmp_path / ("wine.svm" if sparse else "wine.npz")
    if sparse:
        X = np.round(X, 2)
        dump_svmlight_file(X, y, str(data), zero_based=False)
    else:
        np.savez(data, X=X, y=y)
    name, *options = words.split()
    assert main(["fit", str(data), "--model", name, *options, "--json", "-q"]) == OK
    told = json.loads(capsys.readouterr().out)
    (flag, value) = options
    value = value if flag == "--kernel" else float(value)
    model = getattr(proxmargin, name)(**{flag.removeprefix("--"): value}).fit(X, y)
    primal = told["model"]["certificate"]["primal"]
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert told["training_accuracy"] == pytest.approx(model.score(X, y))


@pytest.mark.parametrize("told", ["auto", "yes", "no"])
def test_scaling_is_an_option(told: str, tmp_path) -> None:
    path = str(tmp_path / "m.pmz")
    words = ["fit", "wine", "--model", "L2SVC", "--standardize", told, "-q", "-o", path]
    assert main(words) == OK
    assert load_model(path).standardize is (told != "no")


class TestUnits:
    """That features of different units are not scaled is said once."""

    @pytest.mark.parametrize(
        "command",
        [
            "fit --model L2SVC --C 0.01 --cv 3",
            "fit --model HuberizedSVC --alpha auto --impute mean",
            "cv --model HuberizedSVC --n-strengths 3 --folds 2",
            "path --model HuberizedSVC --n-alphas 3",
            "stability --model HuberizedSVC --pairs 5",
            "permute --model L2SVC --permutations 2 --statistic accuracy",
        ],
    )
    def test_with_numbers_and_what_to_type(self, command: str, capsys) -> None:
        name, *words = command.split()
        assert main([name, "breast_cancer", *words]) == OK
        err = capsys.readouterr().err
        deviations = load_breast_cancer().data.std(axis=0)
        assert err.count("not scaled") == err.count("--standardize yes") == 1
        assert f"from {deviations.min():.3g} (fractal dimension error)" in err
        assert f"to {deviations.max():.3g} (worst area)" in err
        for quiet in (["-q"], ["--standardize", "yes"], ["--no-standardize"]):
            assert main([name, "breast_cancer", *words, *quiet]) == OK
            assert "not scaled" not in capsys.readouterr().err

    def test_constant_features_and_equal_units_are_no_reason(self, tmp_path, capsys) -> None:
        rng = np.random.default_rng(0)
        X = np.c_[rng.normal(size=(50, 2)) * [1, 5], np.full(50, 1e6), np.zeros(50)]
        np.savez(tmp_path / "d.npz", X=X, y=X[:, 0] > 0)
        assert main(["fit", str(tmp_path / "d.npz"), "--model", "L2SVC"]) == OK
        assert "not scaled" not in capsys.readouterr().err

    def test_sparse_features_are_left_as_they_are(self, tmp_path, capsys) -> None:
        X, y = load_wine(return_X_y=True)
        dump_svmlight_file(np.round(X, 1), y, str(tmp_path / "d.svm"))
        words = ["--model", "HuberizedSVC", "--alpha", "0.5"]
        assert main(["fit", str(tmp_path / "d.svm"), *words]) == OK
        assert "not scaled" not in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--standardize", "no"], ["--impute", "median"]])
def test_the_model_that_a_comparison_names_is_the_one_that_it_saves(more, tmp_path, capsys) -> None:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    path = str(tmp_path / "m.pmz")
    words = ["compare", "iris", "--models", "SVC-rbf", "--folds", "2", "-q", *more]
    assert main([*words, "-o", path]) == OK
    line = next(x for x in capsys.readouterr().out.splitlines() if "fitted on all" in x)
    made = line.removeprefix("Recommended and best: SVC-rbf, ").partition(", fitted on all")[0]
    names = {**vars(proxmargin), "make_pipeline": make_pipeline, "SimpleImputer": SimpleImputer}
    names["SVC"] = proxmargin.SVC
    table = proxmargin.read_data("iris")
    again, saved = eval(made, names).fit(table.X, table.y), load_model(path)
    np.testing.assert_allclose(
        again.decision_function(table.X), saved.decision_function(table.X), atol=1e-4
    )
    assert main([*words, "--json"]) == OK
    told = json.loads(capsys.readouterr().out)["models"][0]
    assert told["final"]["python"] == made


def test_an_option_that_a_search_cannot_use_is_refused(capsys) -> None:
    words = ["fit", "iris", "--model", "MulticlassSVC", "--C", "auto", "--eta", "30", "-q"]
    assert main(words) != OK
    assert "no parameter for --eta" in capsys.readouterr().err
