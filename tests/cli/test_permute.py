"""``proxmargin permute``."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import TimeSeriesSplit

from proxmargin import DWD, L2SVC, SVC, HuberizedSVC, permutation_test
from proxmargin.cli import main
from proxmargin.cli.failures import INTERRUPTED, OK, USAGE


def test_it_prints_the_test_and_draws_it(capsys, tmp_path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "null.png"
    command = ["permute", "breast_cancer", "--model", "DWD", "--permutations", "20", "-q"]
    assert main([*command, "--plot", str(picture)]) == OK
    told = capsys.readouterr().out
    assert "p-value:          0.04762" in told
    assert "20, drawn by chance" in told
    assert picture.stat().st_size > 0


def test_json_has_what_the_function_returns(capsys) -> None:
    command = ["permute", "wine", "--model", "SVC", "--statistic", "accuracy", "--folds", "3"]
    assert main([*command, "--permutations", "4", "--seed", "3", "--json", "-q"]) == OK
    told = json.loads(capsys.readouterr().out)
    X, y = load_wine(return_X_y=True)
    options = {"statistic": "accuracy", "n_permutations": 4, "cv": 3, "random_state": 3}
    found = permutation_test(SVC(), X, y, **options)
    assert told["null"] == found.null.tolist()
    assert told["pvalue"] == found.pvalue
    assert told["largest_gap"] is None


def test_json_states_what_the_p_value_depends_on(capsys) -> None:
    command = ["permute", "wine", "--model", "SVC", "--statistic", "accuracy", "--folds", "3"]
    options = ["--C", "0.3", "--class-weight", "balanced", "--permutations", "4", "--seed", "3"]
    assert main([*command, *options, "--json", "-q"]) == OK
    told = json.loads(capsys.readouterr().out)
    X, y = load_wine(return_X_y=True)
    found = permutation_test(
        SVC(**told["parameters"]),
        X,
        y,
        statistic=told["statistic"],
        n_permutations=told["asked"],
        cv=told["folds"],
        random_state=told["seed"],
    )
    assert told["null"] == found.null.tolist()
    assert told["parameters"]["C"] == 0.3
    assert told["interrupted"] is False


@pytest.mark.parametrize("as_json", [True, False])
def test_ctrl_c_prints_what_is_complete_and_exits_with_130(as_json, monkeypatch, capsys) -> None:
    fits, original = [], HuberizedSVC._fit_recorded

    def signalled(self, *arguments):
        fits.append(1)
        if len(fits) == 31:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, *arguments)

    monkeypatch.setattr(HuberizedSVC, "_fit_recorded", signalled)
    command = ["permute", "breast_cancer", "--model", "HuberizedSVC", "--alpha", "0.1"]
    shown = ["--json"] if as_json else []
    assert main([*command, "--permutations", "200", "-q", *shown]) == INTERRUPTED
    out, err = capsys.readouterr()
    assert "interrupted: the test is that of" in err
    if as_json:
        told = json.loads(out)
        assert (told["asked"], told["interrupted"]) == (200, True)
        assert told["permutations"] == len(told["null"]) < 200
    else:
        assert "of 200 (interrupted), drawn by chance" in out


def test_three_classes_need_an_accuracy(capsys) -> None:
    assert main(["permute", "iris", "--model", "DWD", "-q"]) == USAGE
    assert "--statistic accuracy" in capsys.readouterr().err


class TestGroups:
    """Pairs of one patient: one is a case, the other a control."""

    @pytest.fixture
    def pairs(self, tmp_path):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((24, 2)) + np.arange(24)[:, None] // 2
        X[1::2, 0] += 1.0  # patients differ by more than cases and controls
        kinds = np.tile(["control", "case"], 12)
        rows = [f"{a},{b},0{i // 2},{kinds[i]}" for i, (a, b) in enumerate(X)]
        path = tmp_path / "pairs.csv"
        path.write_text("\n".join(["a,b,patient,kind", *rows]) + "\n")
        return path, X, kinds, [f"0{i // 2}" for i in range(24)]

    def test_labels_are_permuted_within_the_groups_of_a_column_that_is_no_feature(
        self, pairs, capsys
    ) -> None:
        path, X, kinds, patients = pairs
        command = ["permute", str(path), "--model", "DWD", "--permutations", "30", "-q"]
        assert main([*command, "--groups", "patient", "--json"]) == OK
        told = json.loads(capsys.readouterr().out)
        options = {"n_permutations": 30, "random_state": 0, "groups": patients}
        found = permutation_test(DWD(), X, kinds, **options)
        assert told["data"]["columns"] == 2
        assert told["null"] == pytest.approx(found.null.tolist(), rel=1e-6)
        assert main([*command, "--groups", "2"]) == OK
        assert "30, drawn by chance, within 12 groups" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("column", "words"),
        [
            ("kind", "the target 'kind' cannot be the groups"),
            ("centre", "there is no column 'centre'"),
        ],
    )
    def test_a_column_that_cannot_hold_groups_is_refused(
        self, pairs, capsys, column, words
    ) -> None:
        command = ["permute", str(pairs[0]), "--model", "DWD", "-q", "--groups", column]
        assert main(command) != OK
        assert words in capsys.readouterr().err

    def test_a_sample_without_a_group_is_refused(self, tmp_path, capsys) -> None:
        path = tmp_path / "missing.csv"
        path.write_text("a,batch,y\n1,x,0\n2,,1\n3,x,0\n4,z,1\n")
        assert main(["permute", str(path), "--model", "DWD", "-q", "--groups", "batch"]) != OK
        assert "column of groups 'batch' is missing or infinite in 1 row" in capsys.readouterr().err

    def test_a_matrix_has_no_column_of_groups(self, capsys) -> None:
        assert main(["permute", "breast_cancer", "--model", "DWD", "-q", "--groups", "0"]) != OK
        assert "columns cannot be chosen (--groups " in capsys.readouterr().err


def test_weights_are_refused_with_what_to_do_instead(capsys) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["permute", "iris", "--model", "DWD", "--weights", "w"])
    assert caught.value.code == USAGE
    assert "--ignore COL" in capsys.readouterr().err


def test_the_answer_is_a_sentence_and_a_strength_is_chosen_each_time(capsys) -> None:
    words = ["permute", "breast_cancer", "--model", "SparseLogisticRegression", "--alpha", "auto"]
    options = ["--permutations", "3", "--folds", "2", "-q"]
    assert main([*words, *options]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("None of 3 permutations of the labels scored as high: p = 1/4.\n")
    assert "alpha chosen by cross-validation each time" in out
    assert "balanced_accuracy:" in out  # as models are compared by
    assert "penalty of its grid" not in err  # of permuted labels, which have nothing to learn


def test_a_saved_model_is_tested_with_its_parameters(tmp_path, capsys) -> None:
    file = str(tmp_path / "model.pmz")
    assert main(["fit", "wine", "--model", "L2SVC", "--C", "0.3", "-q", "-o", file]) == 0
    capsys.readouterr()
    words = ["wine", "--statistic", "accuracy", "--permutations", "2", "-q", "--json"]
    assert main(["permute", file, *words]) == 0
    saved = json.loads(capsys.readouterr().out)
    assert main(["permute", *words, "--model", "L2SVC", "--C", "0.3"]) == 0
    given = json.loads(capsys.readouterr().out)
    assert saved["parameters"]["C"] == 0.3
    assert (saved["value"], saved["null"]) == (given["value"], given["null"])
    assert main(["permute", file, "wine", "--model", "L2SVC", "-q"]) == 2
    assert "--model is not for the model of a file" in capsys.readouterr().err
    assert main(["permute", "wine", "-q"]) == 2
    assert "permute model.pmz DATA" in capsys.readouterr().err


def test_a_scorer_is_a_statistic_of_held_out_samples(capsys) -> None:
    command = ["permute", "breast_cancer", "--model", "L2SVC", "--permutations", "3", "-q"]
    assert main([*command, "--statistic", "balanced_accuracy", "--folds", "2", "--json"]) == OK
    told = json.loads(capsys.readouterr().out)
    assert (told["statistic"], told["folds"]) == ("balanced_accuracy", 2)
    assert told["pvalue"] == 0.25


def test_the_choice_among_models_is_inside(capsys) -> None:
    command = ["permute", "iris", "--models", "L2SVC,DWD", "--permutations", "2", "--folds", "2"]
    assert main([*command, "--statistic", "accuracy", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["models"] == ["L2SVC", "DWD"]
    assert found["value"] == max(0, *[found["value"], *found["null"]])
    assert found["pvalue"] == pytest.approx(1 / 3)
    assert main([*command, "--model", "DWD"]) != 0
    assert "leave --model, or the file, out" in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--statistic", "accuracy", "--folds", "2")])
def test_the_order_of_rows_is_told_with_options_of_the_command_line(capsys, more) -> None:
    words = ["permute", "breast_cancer", "--model", "DWD", "--permutations", "2", "-q"]
    assert main([*words, *more]) == OK
    err = capsys.readouterr().err
    assert "hold out the last ones: --splits time;" in err
    assert "TimeSeriesSplit" not in err


def test_groups_of_features_are_no_option(capsys) -> None:
    words = ["fit", "iris", "--model", "MulticlassSVC", "--set", "groups=[1,1,2,2]"]
    assert main(words) == USAGE
    assert "got groups=[1, 1, 2, 2]" in capsys.readouterr().err


def test_later_rows_are_held_out_where_asked(capsys) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    command = ["permute", "breast_cancer", "--model", "L2SVC", "--permutations", "3", "--json"]
    words = ["--statistic", "accuracy", "--splits", "time", "--folds", "3", "-q"]
    assert main([*command, *words]) == OK
    told = json.loads(capsys.readouterr().out)
    options = {"n_permutations": 3, "statistic": "accuracy", "cv": TimeSeriesSplit(3)}
    assert told["splits"] == "time"
    assert told["null"] == permutation_test(L2SVC(), X, y, **options).null.tolist()
    models = ["permute", "iris", "--models", "L2SVC", "--permutations", "1", "--folds", "2"]
    assert main([*command[:4], *words[2:]]) == USAGE
    assert "--statistic balanced_accuracy" in capsys.readouterr().err
    assert main([*models, "--splits", "time", "-q"]) in (OK, USAGE)  # sorted by class


def test_a_model_file_knows_the_groups_and_takes_no_parameters(tmp_path, capsys) -> None:
    rng = np.random.default_rng(0)
    numbers = enumerate(rng.normal(size=(36, 2)))
    rows = [f"{a},{b},p{i // 3},{'ab'[i // 3 % 2]}" for i, (a, b) in numbers]
    data, file = tmp_path / "visits.csv", str(tmp_path / "model.pmz")
    data.write_text("\n".join(["u,v,patient,kind", *rows]) + "\n")
    words = ["fit", str(data), "--model", "DWD", "--groups", "patient", "-q", "-o", file]
    assert main(words) == OK
    capsys.readouterr()
    command = ["permute", file, str(data), "--permutations", "20", "-q"]
    for more in ([], ["--groups", "patient"]):
        assert main([*command, *more]) == OK
        assert "20, drawn by chance, of 12 whole groups" in capsys.readouterr().out
    for more in (["--kernel", "rbf"], ["--standardize=no"], ["--set", "foo=3"]):
        assert main([*command, *more]) == USAGE
        assert "is not for the model of a file" in capsys.readouterr().err
