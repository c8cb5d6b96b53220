"""Warnings of what makes scores of a file too good, each with the option that helps."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from proxmargin import L2SVC, read_data, save_model
from proxmargin.cli import main
from proxmargin.cli.failures import OK, USAGE
from proxmargin.files.errors import DataError

ROWS = 60


@pytest.fixture
def frame(rng) -> pd.DataFrame:
    """Nothing to doubt."""
    features = rng.standard_normal((ROWS, 3))
    labels = (features[:, 0] + rng.standard_normal(ROWS) > 0).astype(int)
    return pd.DataFrame(features, columns=["a", "b", "c"]).assign(y=labels)


@pytest.fixture
def told(tmp_path, capsys):
    """What a command says on standard error of a frame."""

    def run(frame: pd.DataFrame, command: str = "info", *options: str) -> str:
        path = tmp_path / "data.csv"
        frame.to_csv(path, index=False)
        assert main([command, str(path), *options]) == OK
        return capsys.readouterr().err

    return run


def test_ordinary_data_cause_no_warning(frame, told) -> None:
    assert told(frame) == ""


def test_a_column_that_counts_the_rows_is_named_with_the_option_that_leaves_it_out(
    frame, told
) -> None:
    numbered = frame.assign(y=frame["y"])
    numbered.insert(0, "sample no", np.arange(ROWS))
    err = told(numbered)
    assert "'sample no' numbers or names the rows: --ignore 'sample no'" in err
    assert err.count("warning") == 1
    assert told(numbered, "info", "--ignore", "sample no") == ""


def test_names_that_differ_in_each_row_are_no_feature(frame, told) -> None:
    named = frame.copy()
    named.insert(0, "patient", [f"p{j:03}" for j in np.random.default_rng(0).permutation(ROWS)])
    for options in ((), ("--encode",)):
        assert "'patient' names the samples, and is no feature" in told(named, "info", *options)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_feature_that_alone_separates_the_classes_is_named(frame, told, rng, classes) -> None:
    labels = rng.permutation(np.arange(ROWS) % classes)
    leaky = frame.assign(y=labels)
    leaky.insert(1, "code", labels * 10.0 + rng.random(ROWS))
    assert "'code' alone separates the classes: --ignore code" in told(leaky)
    leaky["code"] = np.where(labels == 0, 0.0, rng.random(ROWS) + 1)  # one class only
    assert ("alone separates" in told(leaky)) == (classes == 2)


def test_repeated_rows_are_counted_unless_groups_are_given(frame, told) -> None:
    doubled = pd.concat([frame, frame.iloc[:6]])
    err = told(doubled)
    assert "6 of 66 rows repeat earlier ones" in err
    assert "--groups COL" in err
    grouped = doubled.assign(patient=[*range(ROWS), *range(6)])[["patient", "a", "b", "c", "y"]]
    options = ("--groups", "patient", "--models", "L2SVC", "--folds", "2", "--quick", "-q")
    assert "repeat" not in told(grouped, "compare", *options)


@pytest.mark.parametrize(
    "command",
    [
        ("info",),
        ("fit", "--model", "L2SVC", "-q"),
        ("compare", "--models", "L2SVC", "--folds", "2", "--quick", "-q"),
    ],
    ids=lambda command: command[0],
)
def test_a_file_sorted_by_class_is_told_by_every_command(frame, told, command) -> None:
    assert "sorted by class: folds of your own must be shuffled" in told(
        frame.sort_values("y"), *command
    )


@pytest.mark.parametrize(
    ("command", "options", "advice"),
    [
        ("stability", ("--pairs", "5"), "both halves make selections look stable: keep them tog"),
        ("permute", ("--permutations", "2"), "p is too small: keep one row a sample"),
    ],
)
def test_rows_of_one_id_are_told_where_rows_are_taken_for_independent(
    frame, told, command, options, advice
) -> None:
    parted = frame.assign(patient=[f"p{j // 3}" for j in range(ROWS)])
    columns = ("--target", "y", "--id", "patient", "--quiet")
    err = told(parted, command, "--model", "SquaredHingeSVC", *options, *columns)
    assert err.count("40 of 60 rows have the id of an earlier one (patient)") == 1
    assert advice in err


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("compare", ("--models", "SquaredHingeSVC", "--quick")),
        ("cv", ("--model", "SquaredHingeSVC", "--n-strengths", "2")),
        ("fit", ("--model", "SquaredHingeSVC", "--cv", "2")),
    ],
)
def test_folds_that_part_rows_of_one_id_are_told_once(frame, told, command, options) -> None:
    parted = frame.assign(patient=[f"p{j // 3}" for j in range(ROWS)])
    columns = ("--target", "y", "--id", "patient", "--quiet")
    err = told(parted, command, *options, *columns)
    assert err.count("40 of 60 rows have the id of an earlier one (patient)") == 1
    assert "keep them together (--groups patient)" in err
    grouped = told(parted, command, *options, *columns, "--groups", "patient")
    assert "have the id" not in grouped


def test_a_fit_without_folds_parts_no_rows(frame, told) -> None:
    parted = frame.assign(patient=[f"p{j // 3}" for j in range(ROWS)])
    columns = ("--target", "y", "--id", "patient", "--quiet")
    assert told(parted, "fit", "--model", "SquaredHingeSVC", *columns) == ""


def test_a_huge_number_is_named_by_its_row_and_column_and_read_as_missing(tmp_path, capsys):
    path = tmp_path / "d.csv"
    rows = (f"{k % 7},{'1e308' if k == 9 else k % 5},{'pq'[k % 2]}\n" for k in range(20))
    path.write_text("a,b,y\n" + "".join(["3,1,\n", *rows]))
    command = ["fit", str(path), "--model", "L2SVC", "-q", "--unlabelled", "drop"]
    assert main(command) == USAGE
    said = capsys.readouterr().err
    assert "1e+308 in row 11, column 'b'" in said
    assert "--missing b=1e+308" in said
    assert main([*command, "--missing", "b=1e+308", "--impute", "median"]) == OK


@pytest.mark.parametrize("command", ["predict", "coefs", "permute"])
def test_a_huge_number_is_named_alike_beside_the_model_of_a_file(
    command, model, training, tmp_path, capsys
):
    frame = pd.read_csv(training)
    frame.loc[4, "f2"] = -1e80
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert main([command, str(model), str(tmp_path / "d.csv")]) == USAGE
    assert "-1e+80 in row 5, column 'f2' (counting data rows from 1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "where"),
    [
        ("d.csv", "a,b,y\n1,2,p\n1,1e71,q\n", "row 2, column 'b'"),
        ("d.svm", "1 1:1 2:2\n2 1:1 2:1e71\n", "row 2, column '2'"),
    ],
)
def test_a_huge_number_is_named_in_python_too(name, text, where, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=rf"1e\+71 in {where} \(counting data rows from 1\)"):
        read_data(tmp_path / name)


def test_a_huge_number_is_named_beside_the_text_that_a_pipeline_takes(tmp_path, capsys):
    X = pd.DataFrame({"a": ["u", "v"] * 10, "b": np.arange(20.0), "c": np.arange(20.0) % 3})
    text = ColumnTransformer([("a", OneHotEncoder(), ["a"])], remainder="passthrough")
    fitted = make_pipeline(text, L2SVC()).fit(X, np.arange(20) > 9)
    save_model(fitted, tmp_path / "m.pmz")
    X.loc[3, "c"] = 1e71
    X.to_csv(tmp_path / "d.csv", index=False)
    assert main(["predict", str(tmp_path / "m.pmz"), str(tmp_path / "d.csv")]) == USAGE
    assert "1e+71 in row 4, column 'c'" in capsys.readouterr().err


def test_features_of_one_value_each_are_told(tmp_path, capsys):
    (tmp_path / "d.csv").write_text("a,b,y\n" + "3,1,p\n3,1,q\n" * 10)
    assert main(["fit", str(tmp_path / "d.csv"), "--model", "L2SVC", "-q"]) == OK
    assert "2 features, and one value in all rows of each" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--report"])
def test_a_table_that_is_read_is_not_written_over(option: str, frame, tmp_path, capsys) -> None:
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    before = path.read_bytes()
    written = str(tmp_path / "." / "data.csv")
    assert main(["compare", str(path), "--models", "DWD", option, written]) == USAGE
    assert f"{option} {written}: that file is read" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_the_command_of_info_leaves_out_a_column_that_counts_the_rows(
    frame, tmp_path, capsys
) -> None:
    path = tmp_path / "data.csv"
    frame.insert(0, "sample no", np.arange(ROWS))
    frame.to_csv(path, index=False)
    assert main(["info", str(path)]) == OK
    assert "--ignore 'sample no'" in capsys.readouterr().out


def test_a_mark_of_missing_cells_may_end_with_a_full_stop(frame, tmp_path, capsys) -> None:
    path = tmp_path / "data.csv"
    frame.assign(a=[*frame["a"][1:].astype(str), "n.d."]).to_csv(path, index=False)
    assert main(["info", str(path)]) == OK
    assert capsys.readouterr().out.rstrip().endswith("--missing n.d. --impute median")


def test_a_word_for_missing_cells_may_have_a_comma(tmp_path, capsys) -> None:
    crp = ["<0,1" if i % 9 == 0 else f"{1 + i % 7},{i % 10}" for i in range(36)]
    rows = [f"{20 + 7 * i % 31};{i % 2};{cell};{'ab'[i // 3 % 2]}" for i, cell in enumerate(crp)]
    file = tmp_path / "klinik.csv"
    file.write_text("\n".join(["alter;diabetes;crp;klasse", *rows]) + "\n")
    assert main(["info", str(file), "--json"]) == OK
    words = shlex.split(json.loads(capsys.readouterr().out)["read_with"])
    assert words[words.index("--missing") + 1] == '"<0,1"'
    assert "--ignore" not in words
    command = ["fit", *words[2:], "--model", "L2SVC", "--json"]
    assert main(command) == OK
    assert json.loads(capsys.readouterr().out)["data"]["columns"] == 3  # and no zero or one is lost
