"""The last column of a table is taken for the target, and doubted where it is none."""

from __future__ import annotations

import warnings

import pytest

from proxmargin.files.errors import DataError
from proxmargin.files.tables.table import read_data


def table(tmp_path, header: str, last) -> str:
    path = tmp_path / "d.csv"
    rows = (f"{'ab'[k % 2]},{k}.5,{last(k)}" for k in range(30))
    path.write_text("\n".join([header, *rows]))
    return str(path)


@pytest.mark.parametrize("named", [["p", "q"], ["0", "1"]])
def test_another_outcome_is_named(tmp_path, named):
    path = tmp_path / "d.csv"
    rows = "".join(f"{k}.5,{named[k % 2]},{k % 3}\n" for k in range(12))
    path.write_text("x,diagnosis,batch\n" + rows)
    with pytest.warns(UserWarning, match=r"'batch' is taken .* 'diagnosis' for a feature.*target="):
        assert read_data(path, encode=True).target_name == "batch"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_data(path, encode=True, target="batch")
        read_data(path, encode=True, ignore="diagnosis")


@pytest.mark.parametrize(
    ("last", "words"),
    [(lambda k: k, "'age' is taken for the target, and has 30 classes, 30 of them with one"),
     (lambda k: k % 22, "has 22 classes, 14 of them"),
     (lambda k: max(k - 27, 0), "has 3 classes, 2 of them")],
)  # fmt: skip
def test_a_column_of_numbers_is_doubted(tmp_path, last, words):
    path = table(tmp_path, "kind,x,age", last)
    with pytest.warns(UserWarning, match=r"name it \(target=NAME\)") as caught:
        read_data(path, encode=True)
    assert words in str(caught[0].message)


def test_a_usual_name_does_not_help(tmp_path):
    with pytest.warns(UserWarning, match="the column 'Y' is taken for the target, and has 30"):
        read_data(table(tmp_path, "kind,x,Y", lambda k: k), encode=True)


@pytest.mark.parametrize(
    ("header", "target", "last"),
    [
        ("kind,x,age", "age", lambda k: k),  # it was named
        ("kind,x,group", None, lambda k: k % 5),  # a few classes of some samples each
        ("kind,x,case", None, lambda k: int(k == 3)),  # a rare case among others
    ],
)
def test_a_column_of_classes_is_not(tmp_path, header, target, last):
    path = table(tmp_path, header, last)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_data(path, target=target, encode=True)


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (lambda k: k + 0.25, r"looks like a measurement.*\(target=NAME\)"),
        (
            lambda k: "" if k == 4 else "ab"[k % 2],
            r"fill in their labels, leave them out .*\(target=NAME\)",
        ),
    ],
)
def test_a_column_that_cannot_be_the_target_names_the_option(tmp_path, last, words):
    with pytest.raises(DataError, match=words):
        read_data(table(tmp_path, "kind,x,age", last), encode=True)


def test_groups_and_weights_are_not_taken_for_it(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(
        "x,g,kind,w\n" + "\n".join(f"{k}.5,{k // 2},{'ab'[k % 2]},{k}" for k in range(8))
    )
    found = read_data(path, groups="g", weights="w")
    assert found.target_name == "kind"
    assert found.feature_names == ["x"]
    assert found.weights.tolist() == list(range(8))
    with pytest.raises(DataError, match="the weights 'w' cannot be the groups"):
        read_data(path, groups="w", weights="w")


def test_a_target_is_the_last_column_as_the_usual_one_is_left_out(tmp_path) -> None:
    rows = "".join(f"{k % 2},{k}.5,{k % 3},{k}.5\n" for k in range(20))
    (tmp_path / "d.csv").write_text(f"class,crp,stage,age\n{rows}")
    with pytest.raises(DataError, match=r"'age' holds .*it is the last column, as 'class' is left"):
        read_data(tmp_path / "d.csv", ignore="class")
    with pytest.warns(UserWarning, match=r"last column 'stage' is taken .*as 'class' is left out"):
        read_data(tmp_path / "d.csv", ignore=["class", "age"])
