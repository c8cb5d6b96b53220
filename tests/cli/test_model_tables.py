"""What a model file knows of its training table: the target, the names of the samples."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from proxmargin import load_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE
from proxmargin.files.errors import ModelFileError
from tests.files.model_files import forged_file

ROWS = 40
FIT = ("--model", "L2SVC", "--target", "group", "-q", "-o")


def written(path: Path, rows: list[list[Any]]) -> str:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["pid", "group", "age", "crp"], *rows])
    return str(path)


@pytest.fixture
def rows() -> list[list[Any]]:
    rng = np.random.default_rng(3)
    age, crp = rng.integers(20, 80, ROWS).tolist(), rng.normal(5, 2, ROWS).round(3).tolist()
    groups = ["sick" if a > 45 else "well" for a in age]
    return [[f"P{k:03}", *row] for k, row in enumerate(zip(groups, age, crp, strict=True))]


@pytest.fixture
def files(rows, tmp_path) -> tuple[str, str]:
    """The training table, and a model of it."""
    table, model = written(tmp_path / "a.csv", rows), str(tmp_path / "m.pmz")
    assert main(["fit", table, *FIT, model]) == OK
    return table, model


def test_every_command_with_a_model_file_knows_its_target_and_ids(files, capsys) -> None:
    table, model = files
    capsys.readouterr()
    assert main(["permute", model, table, "--permutations", "9", "-q"]) == OK
    assert main(["coefs", model, table]) == OK
    assert "AUC alone" in capsys.readouterr().out
    assert main(["predict", model, table]) == OK
    out, err = capsys.readouterr()
    assert out.startswith("pid,prediction\n")
    assert "; accuracy " in err
    assert main(["info", model]) == OK
    assert re.search(r"table roles: +target group, ids pid\n", capsys.readouterr().out)


def test_what_the_model_knows_of_a_table_is_no_must(files, rows, tmp_path, capsys) -> None:
    _, model = files
    path = tmp_path / "new.csv"
    path.write_text("code,age,crp\n" + "".join(f"N{k},{k + 20},3.5\n" for k in range(12)))
    assert main(["predict", model, str(path)]) == OK
    assert "accuracy" not in capsys.readouterr().err
    new = written(tmp_path / "n.csv", [[f"N{k}", "", 30 + k, 4.5] for k in range(12)])
    assert main(["predict", model, new]) == OK
    assert "accuracy" not in capsys.readouterr().err


def test_classes_that_the_model_has_never_seen_are_named(files, rows, tmp_path, capsys) -> None:
    rows[3][1], rows[5][1], rows[7][1] = "unknown", "unknown", "Sick"
    new = written(tmp_path / "n.csv", [["N" + pid[1:], *rest] for pid, *rest in rows])
    for options in ([], ["--target", "group"]):
        assert main(["predict", files[1], new, "-o", str(tmp_path / "p.csv"), *options]) == OK
        err = capsys.readouterr().err
        has = "the target 'group' has 2 samples of classes that the model has never seen"
        assert f"{has}: 'unknown' (row 4, 6), counting" in err
    assert main(["coefs", files[1], new]) == OK
    out, err = capsys.readouterr()
    assert "'unknown' (row 4, 6)" in err
    assert "AUC alone" not in out


def test_samples_of_the_training_table_are_found_in_new_data(files, rows, tmp_path, capsys) -> None:
    for row in rows[5:]:
        row[0] = f"N{row[0]}"
    new = written(tmp_path / "n.csv", rows)
    assert main(["predict", files[1], new]) == OK
    err = capsys.readouterr().err
    assert err.count("5 of 40 samples were in the training data") == 1
    assert "'P000', 'P001', 'P002'" in err
    assert b"P001" not in Path(files[1]).read_bytes()
    other = written(tmp_path / "o.csv", [[f"N{row[0]}", *row[1:]] for row in rows])
    assert main(["predict", files[1], other]) == OK
    assert "training data" not in capsys.readouterr().err


@pytest.mark.parametrize("first", [0, 1])
def test_numbers_of_rows_are_no_names_of_samples(first, rows, tmp_path, capsys) -> None:
    def numbered(path: Path, count: int) -> str:
        lines = [[k + first, *row[1:]] for k, row in enumerate(rows[:count])]
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([["", "group", "age", "crp"], *lines])
        return str(path)

    model = str(tmp_path / "m.pmz")
    assert main(["fit", numbered(tmp_path / "a.csv", ROWS), *FIT, model]) == OK
    assert not hasattr(load_model(model), "table_ids_")
    assert main(["predict", model, numbered(tmp_path / "b.csv", 20)]) == OK
    assert "training data" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "change", [{"roles": {"entries": [["sep", ","]]}}, {"roles": 1}, {"ids": [1.5]}, {"ids": 3}]
)
def test_forged_roles_and_ids_are_refused(change, files, tmp_path) -> None:
    model = load_model(files[1])
    forged = forged_file(tmp_path, model, lambda plain: plain.update(change))
    with pytest.raises(ModelFileError, match="table"):
        load_model(forged)


def test_advice_on_missing_cells_works_when_typed(files, rows, tmp_path, capsys) -> None:
    table, model = files
    rows[4][2] = ""
    new = written(tmp_path / "n.csv", rows)
    assert main(["predict", model, new]) == USAGE
    said = re.search(r"(proxmargin fit DATA [^,;]*?-o MODEL)", capsys.readouterr().err)
    assert said is not None
    words = shlex.split(said[1].replace("DATA", table).replace("MODEL", model))[1:]
    assert main([*words, "--target", "group", "-q"]) == OK
    assert main(["predict", model, new, "-q"]) == OK


@pytest.mark.parametrize("filled", [False, True])
def test_codes_are_read_as_missing_only_where_the_model_fills_them_in(
    filled, files, rows, tmp_path, capsys
) -> None:
    table, model = files
    if filled:
        assert main(["fit", table, "--impute", "median", *FIT, model]) == OK
    rows[4][2] = rows[6][2] = 999
    new = written(tmp_path / "n.csv", rows)
    capsys.readouterr()
    assert main(["predict", model, new]) == OK
    err = capsys.readouterr().err
    assert "'age' holds 999 in 2 rows" in err
    assert ("(--missing age=999)" in err) == filled
    assert ("--impute median --model L2SVC" in err) != filled
    if filled:
        assert main(["predict", model, new, "--missing", "age=999"]) == OK


def test_rows_without_a_label_or_of_other_classes_are_not_permuted(
    files, rows, tmp_path, capsys
) -> None:
    table, model = files
    rows += [["X1", "", 50, 3.5], ["X2", "unknown", 50, 3.5]]
    command = ["--permutations", "9", "--json", "-q"]
    capsys.readouterr()
    assert main(["permute", model, written(tmp_path / "n.csv", rows), *command]) == OK
    out, err = capsys.readouterr()
    assert "'unknown' (row 42)" in err
    assert main(["permute", model, table, *command]) == OK
    null = re.search(r'"null": \[.*?\]', out, re.DOTALL)
    assert null is not None
    assert null[0] in capsys.readouterr().out


def test_labels_of_a_second_table_are_permuted(files, rows, tmp_path, capsys) -> None:
    _, model = files
    samples, labels = tmp_path / "s.csv", tmp_path / "l.csv"
    samples.write_text("pid,age,crp\n" + "".join(f"{p},{a},{c}\n" for p, _, a, c in rows))
    labels.write_text("group,pid\n" + "".join(f"{g},{p}\n" for p, g, *_ in reversed(rows)))
    capsys.readouterr()
    assert main(["permute", model, str(samples), "--permutations", "9"]) == USAGE
    assert "(--labels)" in capsys.readouterr().err
    beside = [str(samples), "--labels", str(labels)]
    assert main(["permute", model, *beside, "--permutations", "9", "-q"]) == OK
    assert main(["coefs", model, *beside]) == OK
    assert "AUC alone" in capsys.readouterr().out


def test_permuting_a_model_that_fills_in_cells_says_nothing_of_names(
    files, tmp_path, capsys
) -> None:
    table, model = files
    assert main(["fit", table, "--impute", "median", *FIT, model]) == OK
    capsys.readouterr()
    assert main(["permute", model, table, "--permutations", "9", "-q"]) == OK
    assert capsys.readouterr().err == ""
