"""What is said of cells that are read, and may be meant otherwise."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect
from proxmargin.files.tables.table import survey

N = 40
RNG = np.random.default_rng(3)
AGES = RNG.integers(20, 80, N)
LABELS = ["case" if age > 50 else "control" for age in AGES]


@pytest.fixture
def written(tmp_path):
    def write(name: str, **columns) -> str:
        path = tmp_path / name
        rows = [list(columns), *zip(*columns.values(), strict=True)]
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        return str(path)

    return write


@pytest.mark.parametrize("code", [-9, -99, -999, 999, 9999, -88])
def test_codes_of_missing_cells_are_suspected_and_read_by_what_is_named(written, code):
    ages = np.where(np.arange(N) % 5, AGES, code)
    path = written("d.csv", age=ages, size=RNG.normal(size=N).round(2), grp=LABELS)
    option = f"age={code}"
    assert option in survey(path)["suspected_missing"]["age"]
    with pytest.warns(UserWarning, match=f"'age' holds {code} in 8 rows.*missing='{option}'"):
        read_data(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_data(path, blanks=True, dialect=Dialect(missing=(option,)))
    assert np.isnan(table.X[:, 0]).sum() == 8
    assert not np.isnan(table.X[:, 1]).any()


@pytest.mark.parametrize(
    "values",
    [
        np.where(np.arange(N) % 5, RNG.normal(0, 9, N).round(), -9),  # one of many negative ones
        np.where(np.arange(N), RNG.integers(0, 3000, N), 999),
        np.where(np.arange(N) % 2, 0, 99),
    ],
)
def test_numbers_among_others_are_no_codes(written, values):
    path = written("d.csv", value=values, grp=LABELS)
    assert "suspected_missing" not in survey(path)


def test_the_codes_of_a_column_are_those_of_no_other_one(written):
    path = written("d.csv", a=[-9, *AGES[1:]], b=[-9, *AGES[1:]], grp=LABELS)
    table = read_data(path, blanks=True, dialect=Dialect(missing=("a=-9",)))
    assert np.isnan(table.X[0, 0])
    assert table.X[0, 1] == -9


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx", "arff", "turned", "labels"])
def test_codes_of_one_column_are_read_in_every_kind_of_table_and_of_no_unknown_column(
    tmp_path, written, kind
):
    frame = pd.DataFrame({"age": [-9, *AGES[1:]], "size": [-9, *AGES[1:]], "grp": LABELS})
    names, path, given = [f"S{k}" for k in range(N)], str(tmp_path / f"d.{kind}"), {}
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    elif kind == "turned":
        frame[["age", "size"]].T.set_axis(names, axis=1).to_csv(path, index_label="gene")
        given = {"labels": written("l.csv", sample=names, grp=LABELS)}
    elif kind == "labels":
        frame[["age", "size"]].set_axis(names).to_csv(path, index_label="sample")
        given = {"labels": written("l.csv", sample=names, grp=LABELS)}
    else:
        top = "@relation t\n@attribute age real\n@attribute size real\n@attribute grp {a}\n@data\n"
        body = frame.to_csv(index=False, header=kind == "csv")
        (tmp_path / f"d.{kind}").write_text(body if kind == "csv" else top + body)
    turned = kind == "turned"

    def read(*missing):
        dialect = Dialect(missing=missing, transpose=turned)
        return read_data(path, target="grp", blanks=True, dialect=dialect, **given)

    X = read("age=-9").X
    assert np.isnan(X[:, 0]).tolist() == [True, *[False] * (N - 1)]
    assert X[:, 1].tolist() == frame["size"].tolist()
    with pytest.raises(DataError, match=r"no column 'agee'.*missing='age=-9'"):
        read("agee=-9")


def test_codes_in_a_sheet_are_read_as_missing(tmp_path):
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.append(["age", "size", "grp"])
    for k, label in enumerate(LABELS):
        book.active.append([int(AGES[k]) if k else -9, int(AGES[k]), label])
    book.save(tmp_path / "d.xlsx")
    for option in ("-9", "age=-9"):
        table = read_data(tmp_path / "d.xlsx", blanks=True, dialect=Dialect(missing=(option,)))
        assert np.isnan(table.X[0, 0])


def test_a_column_of_text_called_as_labels_are_is_to_be_named_before_others(written):
    path = written("d.csv", age=AGES, diagnosis=LABELS, complete=[2] * N)
    with pytest.raises(DataError, match=r"target='diagnosis'.*encode=True"):
        read_data(path)
    assert set(read_data(path, target="diagnosis").y) == {"case", "control"}


def test_spellings_of_classes_are_joined_where_those_of_levels_are(written):
    labels = [f"{label} " if k % 4 == 0 else label for k, label in enumerate(LABELS)]
    path = written("d.csv", age=AGES, grp=labels)
    with pytest.warns(UserWarning, match=r"'case' and 'case '.*normalize_levels=True"):
        assert len(set(read_data(path).y)) == 4
    assert read_data(path, normalize_levels=True).y.tolist() == LABELS


def test_pairs_of_numbers_are_no_names_of_samples(written):
    path = written("d.csv", age=AGES, bp=[f"{100 + k}/{60 + k}" for k in range(N)], grp=LABELS)
    with pytest.raises(DataError, match=r"'bp' .row 1 holds '100/60'; ratios"):
        read_data(path)


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b'[{"a": 1}]', r"JSON.*CSV"),
        (b"<html><table>", r"HTML.*\.xlsx or CSV"),
        (b"%%MatrixMarket matrix\n", r"mmread.*dump_svmlight_file"),
        (b"$FL2@(#) SPSS", r"SPSS.*CSV"),
    ],
)
def test_files_of_other_programs_say_how_to_save_them(tmp_path, content, advice):
    (tmp_path / "d.txt").write_bytes(content)
    with pytest.raises(DataError, match=advice):
        read_data(tmp_path / "d.txt")


def test_comments_behind_cells_are_no_data(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text(
        "a,b,grp # names\n" + "".join(f'{k},"#",{"xy"[k % 2]} # k\n' for k in range(12))
    )
    table = read_data(path, dialect=Dialect(comment="#"), ignore="b")
    assert (table.X[:, 0].tolist(), set(table.y)) == ([*range(12)], {"x", "y"})


@pytest.mark.parametrize(
    "cell", ["2021-03-{:02}", "{}/3/2021", "{}. March 2021", "Public on Mar {:02} 2021"]
)
def test_dates_are_to_be_left_out_and_other_words_encoded(written, cell):
    dates = [cell.format(1 + k % 28) for k in range(N)]
    sexes = ["m" if k % 3 else "f" for k in range(N)]
    path = written("d.csv", age=AGES, seen=dates, sex=sexes, grp=LABELS)
    with pytest.raises(DataError, match=r"ignore='seen'.*encode=True"):
        read_data(path)
    assert read_data(path, ignore="seen", encode=True).feature_names == ["age", "sex=f", "sex=m"]


def test_measurements_with_signs_on_some_cells_are_refused(written):
    path = written("d.csv", share=["5%", *AGES[1:]], age=AGES, grp=LABELS)
    with pytest.raises(DataError, match=r"'share' .row 1 holds '5%'"):
        read_data(path)


@pytest.mark.parametrize("turned", [True, False])
def test_tables_that_are_the_wrong_way_round_are_told(tmp_path, written, turned):
    names = [f"S{k}" for k in range(N)]
    clinical = written("clinical.csv", sample=names, age=AGES, status=LABELS)
    genes = {f"g{j}": RNG.normal(size=N).round(3) for j in range(4)}
    if turned:
        columns = {"gene": list(genes)}
        columns |= {name: [genes[g][k] for g in genes] for k, name in enumerate(names)}
        expression = written("genes.csv", **columns)
    else:
        expression = written("genes.csv", sample=names, **genes)
    more = r".*transpose=True" if turned else ""
    with pytest.raises(DataError, match=rf"wrong way round.*genes\.csv{more}.*labels='.*clinical"):
        read_data(clinical, labels=expression)
    table = read_data(expression, labels=clinical, dialect=Dialect(transpose=turned))
    assert table.y.tolist() == LABELS


def test_old_workbooks_and_protected_ones_say_what_to_do(tmp_path):
    for name, words in (("d.xls", r"save it as \.xlsx or CSV"), ("d.xlsx", "password")):
        (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0" + bytes(100))
        with pytest.raises(DataError, match=words):
            read_data(tmp_path / name)
