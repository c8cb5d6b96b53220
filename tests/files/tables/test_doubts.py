"""What is doubtful in a table is said with the cell and with what to type."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect
from proxmargin.files.tables.table import survey

N = 40
RNG = np.random.default_rng(5)
AGES = RNG.integers(20, 79, N).astype(float)
SIZES = RNG.normal(size=N).round(3)
GROUPS = np.where(AGES > 50, "case", "control")


def table(**columns) -> pd.DataFrame:
    return pd.DataFrame({"age": AGES, "size": SIZES, **columns, "grp": GROUPS})


@pytest.fixture
def written(tmp_path):
    def write(frame: pd.DataFrame, name: str = "d.csv", **how) -> str:
        path = tmp_path / name
        writers = {"csv": "to_csv", "xlsx": "to_excel", "parquet": "to_parquet"}
        getattr(frame, writers[name.rpartition(".")[2]])(path, **{"index": False, **how})
        return str(path)

    return write


class TestFarCells:
    @pytest.mark.parametrize("value", [1e12, -1e12, 7.5e5, 9e9])
    @pytest.mark.parametrize("missing", [False, True])
    def test_they_are_named_once_and_kept(self, written, value, missing):
        frame = table()
        frame.loc[7, "age"] = value
        frame.loc[3, "age"] = np.nan if missing else 33.0
        path = written(frame)
        with pytest.warns(UserWarning, match=rf"'age' holds {value:.15g} in row 8 .others") as said:
            read = read_data(path, blanks=True)
        assert read.X[7, 0] == value
        (sentence,) = (str(w.message) for w in said if "far from" in str(w.message))
        assert f"missing='age={value!r}'" in sentence
        code = re.search("missing='(.*?)'", sentence)[1]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = read_data(path, blanks=True, dialect=Dialect(missing=(code,)))
        assert np.isnan(read.X[7, 0])
        assert "row 8" in survey(path)["suspected_errors"]["age"]

    def test_two_of_them_are_as_far(self, written):
        frame = table()
        frame.loc[[7, 9], "age"] = [1e12, 2e12]
        with pytest.warns(UserWarning, match=r"'age' holds 1000000000000 in row 8"):
            read_data(written(frame))

    @pytest.mark.parametrize(
        "values",
        [
            RNG.lognormal(0, 2, N),
            np.where(np.arange(N) == 5, 500, RNG.integers(0, 2, N)),  # counts with many zeros
            np.arange(N) == 5,
            RNG.standard_t(2, N),
            np.full(N, 3.5),
            np.full(N, np.nan),
        ],
    )
    def test_heavy_tails_and_counts_are_none(self, written, values):
        path = written(table(x=np.asarray(values, dtype=float)))
        assert "suspected_errors" not in survey(path)

    def test_many_rows_are_looked_at(self, written):
        frame = pd.DataFrame({"a": RNG.normal(size=5000), "grp": ["a", "b"] * 2500})
        frame.loc[4321, "a"] = 1e7
        with pytest.warns(UserWarning, match=r"'a' holds 10000000 in row 4322"):
            read_data(written(frame))


class TestInfiniteCells:
    @pytest.mark.parametrize(("value", "code"), [(np.inf, "age=inf"), (-np.inf, "age=-inf")])
    def test_the_cell_is_named_and_what_reads_it_as_missing(self, written, value, code):
        frame = table()
        frame.loc[7, "age"] = value
        path = written(frame)
        with pytest.raises(DataError, match=rf"row 8, column 'age'.*missing='{code}'"):
            read_data(path)
        read = read_data(path, blanks=True, dialect=Dialect(missing=(code,)))
        assert np.isnan(read.X[7, 0])

    def test_those_of_several_columns_have_one_code(self, written):
        frame = table()
        frame.loc[7, ["age", "size"]] = np.inf
        frame.loc[8, "size"] = -np.inf
        path = written(frame)
        with pytest.raises(DataError, match=r"missing=\['-inf', 'inf'\]"):
            read_data(path)
        read = read_data(path, blanks=True, dialect=Dialect(missing=("inf", "-inf")))
        assert np.isnan(read.X).sum() == 3


class TestOptionsOfOtherFiles:
    @pytest.mark.parametrize(
        ("name", "given", "typed"),
        [
            ("d.csv", {"sheet": "3"}, "sheet='3'"),
            ("d.xlsx", {"encoding": "latin-1", "comment": "#"}, "encoding='latin-1', comment='#'"),
            ("d.xlsx", {"separator": ";"}, "separator=';'"),
            ("d.parquet", {"short_rows": "missing"}, "short_rows='missing'"),
            ("d.parquet", {"header": False, "decimal": ","}, "decimal=',', header=False"),
            ("iris", {"missing": ("-9", "-8")}, r"missing=\['-9', '-8'\]"),
            ("iris", {"transpose": True, "na_text": True}, "transpose=True, na_labels=True"),
        ],
    )
    def test_they_are_refused_by_name(self, written, name, given, typed):
        path = written(table(), name) if "." in name else name
        with pytest.raises(DataError, match=f"leave out {typed}"):
            read_data(path, dialect=Dialect(**given))

    def test_those_of_the_data_are_no_options_of_the_labels(self, written):
        data = table(ids=[f"P{k}" for k in range(N)]).drop(columns="grp")
        labels = written(pd.DataFrame({"ids": data["ids"], "grp": GROUPS}), "l.xlsx")
        path = written(data, encoding="latin-1")
        read = read_data(path, labels=labels, dialect=Dialect(encoding="latin-1"))
        assert read.y.tolist() == GROUPS.tolist()


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_one_class_is_refused_with_what_to_type(written, suffix):
    frame = table().assign(stage=RNG.choice(["i", "ii"], N), grp="case")
    path = written(frame[["age", "size", "stage", "grp"]], f"d.{suffix}")
    with pytest.raises(DataError, match=r"'grp' has one class only, 'case'.*target=NAME"):
        read_data(path, encode=True)
    assert survey(path)["target_candidates"] == ["stage"]


@pytest.mark.parametrize("rare", [1, 2])
def test_columns_with_a_class_of_one_sample_have_classes(written, rare):
    frame = table(ids=[f"P{k}" for k in range(N)])
    frame.loc[: rare - 1, "grp"] = "rare"
    found = survey(written(frame))
    assert found["target_candidates"] == ["grp"]
    assert "doubt" not in found


def test_counts_of_genes_are_told_from_samples(written):
    names = [f"P{k:02d}" for k in range(12)]
    frame = pd.DataFrame(RNG.poisson(3, (60, 12)), columns=names)
    frame.insert(0, "gene", [f"G{k}" for k in range(60)])
    assert "transpose=True" in survey(written(frame))["doubt"]


class TestLabelsOfGenesInRows:
    NAMES = tuple(f"P{k:02d}" for k in range(N))

    @pytest.fixture
    def genes(self, written):
        frame = pd.DataFrame(RNG.normal(size=(60, N)), columns=self.NAMES)
        frame.insert(0, "gene", [f"G{k}" for k in range(60)])
        return written(frame, "genes.csv")

    def read(self, genes, labels, **more):
        return read_data(genes, labels=labels, dialect=Dialect(transpose=True), **more)

    def test_the_target_is_asked_for_where_columns_could_be_it(self, written, genes):
        frame = table(stage=RNG.integers(1, 5, N)).rename(columns={"grp": "group"})
        frame.insert(0, "sample", self.NAMES)
        labels = written(frame[["sample", "group", "age", "stage"]], "clinical.csv")
        with pytest.raises(DataError, match=r"'group', 'stage'; name it \(target='group'\)"):
            self.read(genes, labels)
        assert self.read(genes, labels, target="group").y.tolist() == GROUPS.tolist()

    @pytest.mark.parametrize("order", [["group", "age"], ["age", "group"]])
    def test_the_only_column_of_classes_is_found(self, written, genes, order):
        frame = table().rename(columns={"grp": "group"})
        frame.insert(0, "sample", self.NAMES)
        frame.loc[0, "age"] = 41.5
        labels = written(frame[["sample", *order]], "clinical.csv")
        read = self.read(genes, labels)
        assert read.target_name == "group"
        assert read.y.tolist() == GROUPS.tolist()

    @pytest.mark.parametrize("name", ["diagnosis", "y", "Outcome"])
    def test_a_usual_name_is_taken(self, written, genes, name):
        frame = table(sex=RNG.choice(["f", "m"], N)).rename(columns={"grp": name})
        frame.insert(0, "sample", self.NAMES)
        labels = written(frame[["sample", name, "sex", "age"]], "clinical.csv")
        assert self.read(genes, labels).target_name == name

    def test_a_table_of_names_alone_has_no_labels(self, written, genes):
        labels = written(pd.DataFrame({"sample": self.NAMES}), "clinical.csv")
        with pytest.raises(DataError, match=r"none beside the names .*labels=FILE"):
            self.read(genes, labels)


class TestDecimalCommasWithoutQuotes:
    @pytest.mark.parametrize("header", ["sample_id,crp,grp", "patient,sex,crp,grp"])
    def test_they_are_not_taken_for_names_of_rows(self, tmp_path, header):
        path = tmp_path / "d.csv"
        sex = "f," if "sex" in header else ""
        rows = "".join(f"P{k},{sex}{k % 7},{k * 3 % 10},{'uv'[k % 2]}\n" for k in range(20))
        path.write_text(f"{header}\n{rows}")
        with pytest.raises(DataError, match=r"decimal commas .* not quoted.*decimal=','"):
            read_data(path, encode=True)
        quoted = "".join(f'P{k},{sex}"{k % 7},{k}",{"uv"[k % 2]}\n' for k in range(20))
        path.write_text(f"{header}\n{quoted}")
        read = read_data(path, encode=True, dialect=Dialect(decimal=","))
        assert read.feature_names[-1] == "crp"
        assert read.ids.name == header.partition(",")[0]

    def test_names_of_rows_beside_measurements_are_read(self, tmp_path):
        path = tmp_path / "d.csv"
        rows = "".join(f"r{k},{k + 100},{k}.5,{'uv'[k % 2]}\n" for k in range(20))
        path.write_text(f"id,crp,grp\n{rows}")
        assert read_data(path).feature_names == ["id", "crp"]


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
def test_marks_of_thousands_are_told_from_decimal_ones_by_other_columns(written, order):
    frame = pd.DataFrame({"a": [f"{1000 + 37 * k:,}" for k in range(N)], "b": SIZES})
    path = written(frame[order].assign(grp=GROUPS))
    with pytest.raises(DataError, match=r"name their marks: thousands=','"):
        read_data(path)
    read = read_data(path, dialect=Dialect(thousands=","))
    assert read.X[:, order.index("a")].tolist() == [1000 + 37 * k for k in range(N)]
