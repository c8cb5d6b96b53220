"""One list of roles for all commands, and files as people keep them on the command line."""

from __future__ import annotations

import argparse
import csv

import numpy as np
import pytest

from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE
from proxmargin.cli.program import parser

ROWS = 40
COMMANDS = ("compare", "fit", "cv", "path", "stability", "permute")


@pytest.fixture
def table(tmp_path) -> str:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 3))
    labels = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "true", "false")
    lines = (
        f"s{k},{a:.3f},{b:.3f},{c:.3f},p{k // 2},{label}"
        for k, ((a, b, c), label) in enumerate(zip(X, labels, strict=True))
    )
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["sample,a,b,c,patient,kind", *lines]) + "\n")
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_roles_and_a_seed(command) -> None:
    (commands,) = (
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    known = commands.choices[command]._option_string_actions
    roles = {"--target", "--id", "--ignore", "--groups", "--weights", "--seed", "--impute"}
    assert roles <= set(known)
    assert {"--labels", "--transpose", "--missing", "--unlabelled", "--duplicates"} <= set(known)


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "--model", "SparseLogisticRegression", "--alpha", "auto", "--cv", "3"),
        ("cv", "--model", "SparseLogisticRegression", "--n-strengths", "5", "--folds", "3"),
        ("path", "--model", "SparseLogisticRegression", "--n-alphas", "5"),
        ("stability", "--model", "SparseLogisticRegression", "--pairs", "5"),
        ("permute", "--model", "DWD", "--permutations", "9", "--impute", "median"),
    ],
    ids=lambda command: command[0],
)
def test_groups_are_no_features_and_names_are_left_out(command, table, capsys) -> None:
    name, *given = command
    assert main([name, table, *given, "--groups", "patient", "--seed", "1", "--json"]) == OK
    out, err = capsys.readouterr()
    assert '"columns": 3' in out
    assert '"ids": "sample"' in out
    assert "proxmargin: " in err
    assert "'sample' names the samples, and is no feature (another one: --id NAME)" in err


def test_labels_come_back_as_they_are_written_with_the_names(table, tmp_path, capsys) -> None:
    model = str(tmp_path / "m.pmz")
    given = ["--ignore", "patient", "--model", "DWD", "-q", "-o", model]
    assert main(["fit", table, *given]) == OK
    assert capsys.readouterr().err == ""  # notes are no warnings
    assert main(["predict", model, table, "-q"]) == OK
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert list(rows[0]) == ["sample", "prediction"]
    assert [row["sample"] for row in rows] == [f"s{k}" for k in range(ROWS)]
    assert {row["prediction"] for row in rows} == {"true", "false"}


def test_predictions_with_gaps_need_a_model_that_fills_them_in(table, tmp_path, capsys) -> None:
    new, model = tmp_path / "new.csv", str(tmp_path / "m.pmz")
    new.write_text("a,b,c\n,1,2\n")
    fit = ["fit", table, "--ignore", "patient", "--model", "DWD", "-q", "-o", model]
    assert main(fit) == OK
    assert main(["predict", model, str(new)]) == USAGE
    assert "proxmargin fit DATA --impute median" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["predict", model, str(new), "--impute", "median"])
    assert "by a model that was fitted with --impute" in capsys.readouterr().err
    assert main([*fit, "--impute", "median"]) == OK
    assert main(["predict", model, str(new), "-q"]) == OK


@pytest.mark.parametrize("rare", [["r", "r", "q", "q"], ["r"]])
def test_small_classes_are_named_with_the_option_that_leaves_them_out(
    rare, tmp_path, capsys
) -> None:
    labels = [*(["a", "b"] * 14), *rare]
    lines = [f"{(k * 7) % 11}.5,{(k * 5) % 13}.25,{label}" for k, label in enumerate(labels)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["x,z,grp", *lines]))
    compare = ["compare", str(path), "--models", "L2SVC", "--quick", "-q"]
    assert main(compare) == USAGE
    err = capsys.readouterr().err
    assert "groups" not in err
    options = [word for label in sorted(set(rare)) for word in ("--drop-classes", label)]
    assert all(option in err for option in options)
    assert main([*compare, *options]) == OK
