"""What columns are besides features: names of samples, labels of another file, repeated names."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect
from tests.files.model_files import read_columns

ROWS = 12


@pytest.fixture
def written(tmp_path):
    def write(content: str, name: str = "data.csv") -> str:
        (tmp_path / name).write_text(content)
        return str(tmp_path / name)

    return write


def rows(*columns) -> str:
    """Lines of cells, each from its row."""
    return "".join(",".join(str(column(k)) for column in columns) + "\n" for k in range(ROWS))


def sample(k: int) -> str:
    return f"s{(7 * k) % ROWS}"


def value(k: int) -> float:
    return (k * k) % 5 + 0.5


def kind(k: int) -> str:
    return "ab"[k % 2]


SAMPLES = [sample(k) for k in range(ROWS)]


class TestIds:
    @pytest.mark.parametrize(
        ("header", "columns"),
        [
            (",x,kind", (sample, value, kind)),
            (",x,kind", (lambda k: k, value, kind)),
            ("Unnamed: 0,x,kind", (lambda k: k, value, kind)),
            ("sample_id,x,kind", (sample, value, kind)),
            ("x,kind,barcode", (value, kind, sample)),
        ],
    )
    def test_columns_that_name_the_rows_are_kept_and_no_features(self, written, header, columns):
        target = "kind"
        table = read_data(written(f"{header}\n{rows(*columns)}"), target=target)
        own = sample if sample in columns else lambda k: k
        assert table.feature_names == ["x"]
        assert table.ids.tolist() == [str(own(k)) for k in range(ROWS)]
        assert "names the samples, and is no feature (another one: ids=NAME)" in table.notes[-1]

    def test_a_column_that_is_named_is_kept_without_a_note(self, written):
        path = written("number,x,y\n" + rows(lambda k: f"{k:02}", value, kind))
        table = read_data(path, ids="number")
        assert table.feature_names == ["x"]
        assert table.ids.tolist() == [f"{k:02}" for k in range(ROWS)]
        assert table.notes == ()

    def test_typed_files_have_them_too(self, tmp_path):
        frame = pd.DataFrame({"id": SAMPLES, "x": [value(k) for k in range(ROWS)]})
        frame.assign(y=[kind(k) for k in range(ROWS)]).to_parquet(tmp_path / "d.parquet")
        table = read_data(tmp_path / "d.parquet")
        assert (table.feature_names, table.ids.tolist()) == (["x"], SAMPLES)

    @pytest.mark.parametrize("cell", [lambda k: f"2020-01-{k + 1:02}", kind])
    def test_dates_numbers_and_repeated_words_name_nothing(self, written, cell):
        path = written("when,x,y\n" + rows(lambda k: f'"{cell(k)}"', value, kind))
        with pytest.raises(DataError, match="1 column not numeric: 'when'"):
            read_data(path)

    def test_numbers_of_patients_are_doubted(self, written):
        path = written("id,x,y\n" + rows(lambda k: 842302 + 17 * ((5 * k) % ROWS), value, kind))
        with pytest.warns(UserWarning, match=r"'id'; if that is a number of the sample.*ids='id'"):
            read_data(path)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_data(path, ids="id").feature_names == ["x"]

    def test_a_column_without_a_name_and_a_cell_is_left_out(self, written):
        path = written("x,y,\n" + rows(value, kind, lambda k: ""))
        table = read_data(path)
        assert (table.feature_names, table.target_name) == (["x"], "y")
        assert "left out, as without a name and a cell: 'Unnamed: 2'" in table.notes[0]


class TestIgnore:
    @pytest.mark.parametrize("ignore", ["1-3", ["b", "c", "d"], "[bcd]", ["b", 2, "-2"], "?"])
    def test_ranges_and_patterns(self, written, ignore):
        path = written("aa,b,c,d,kind\n1,2,3,4,p\n5,6,7,8,q\n")
        assert read_data(path, ignore=ignore).feature_names == ["aa"]

    def test_a_pattern_without_a_column_is_refused(self, written):
        with pytest.raises(DataError, match=r"no column is called like 'z\*'.*ignore=NAME"):
            read_data(written("a,y\n1,2\n"), ignore="z*")


class TestDuplicates:
    CONTENT = "g,h,g,y\n1,2,4,p\n3,5,8,q\n"

    def test_they_are_refused_with_what_to_do(self, written):
        with pytest.raises(DataError, match=r"more than once: 'g'; number them \(duplicates='suf"):
            read_data(written(self.CONTENT))

    @pytest.mark.parametrize(
        ("duplicates", "names", "X"),
        [
            ("suffix", ["g", "h", "g.1"], [[1, 2, 4], [3, 5, 8]]),
            ("first", ["g", "h"], [[1, 2], [3, 5]]),
            ("mean", ["g", "h"], [[2.5, 2], [5.5, 5]]),
        ],
    )
    def test_they_are_numbered_left_out_or_averaged(self, written, duplicates, names, X):
        table = read_data(written(self.CONTENT), duplicates=duplicates)
        assert table.feature_names == names
        np.testing.assert_array_equal(table.X, X)

    @pytest.mark.parametrize(
        ("ignore", "names"), [("g", ["h"]), (0, ["h", "g"]), ("2", ["g", "h"])]
    )
    def test_they_are_ignored_together_or_one_by_one(self, written, ignore, names):
        assert read_data(written(self.CONTENT), ignore=ignore).feature_names == names

    def test_one_role_needs_a_position(self, written):
        with pytest.raises(DataError, match="'g' is the name of 2 columns; give a position: 0, 2"):
            read_data(written(self.CONTENT), groups="g")


@pytest.mark.parametrize("cell", ["{:.1f} kg", "<{:.2f}", "{:.0f} mg/l", "{:.0f}:30"])
def test_measurements_name_no_samples(written, cell):
    cells = [f"{cell.format(k + 0.01)},{value(k)},{kind(k)}\n" for k in range(ROWS)]
    path = written("w,b,y\n" + "".join(cells))
    with pytest.raises(DataError, match=r"'w' .*numbers with a unit.*ignore=NAME"):
        read_data(path)
    with pytest.warns(UserWarning, match="'w' holds times or numbers with a unit"):
        assert read_data(path, encode=True).ids is None
    assert read_data(path, ignore="w").feature_names == ["b"]


TOTALS = ["TOTAL", "sum", "Mean:", " Grand total", "Gesamt", "SUMME", "average (n=4)"]


class TestTotals:
    CONTENT = "name,a,b,y\nann,1,4,p\nbob,2,3,q\ncy,3,5,p\ndi,4,1,q\n"

    @pytest.mark.parametrize("word", TOTALS)
    @pytest.mark.parametrize("label", ["p", "", None])
    def test_a_row_of_totals_is_told_by_its_number_and_left_out(self, written, word, label):
        content = f"{self.CONTENT}{word},10,13,{label}\n"
        ids = "name"
        if label is None:  # the word is in the place of a label
            content, ids = self.CONTENT + f"zed,10,13,{word}\n", None
        path = written(content)
        with pytest.raises(DataError, match=r"row 5 \(.*unlabelled='drop'"):
            read_data(path, ids=ids)
        table = read_data(path, ids=ids, unlabelled="drop")
        assert table.y.tolist() == ["p", "q", "p", "q"]
        assert any("1 row called as totals are left out (5, " in note for note in table.notes)

    def test_a_class_of_several_samples_may_be_called_so(self, written):
        path = written("a,y\n1,total\n2,partial\n3,total\n4,partial\n")
        assert sorted(set(read_data(path).y)) == ["partial", "total"]

    def test_a_row_that_is_left_out_or_called_otherwise_is_not_told(self, written):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            path = written(f"{self.CONTENT}TOTAL,10,13,\n")
            assert len(read_data(path, ids="name", unlabelled="drop").X) == 4
            path = written(f"{self.CONTENT}Summer,1,4,p\nmean-7,2,6,p\n", "b.csv")
            assert len(read_data(path, ids="name").X) == 6

    def test_new_data_may_have_one_below_numbers_of_samples(self, written):
        path = written("id,a,b\n1,1,4\n2,2,3\nTotal,3,7\n")
        with pytest.warns(UserWarning, match=r"row 3 \('Total'\)"):
            read_columns(path, ["a", "b"], 2)


class TestRows:
    CONTENT = "x,y\n1,NA\n2,p\n3,q\n9,\n4,p\n5,rare\n"

    def test_rows_without_a_label_are_left_out_and_counted(self, written):
        with pytest.raises(DataError, match=r"2 rows \(row 1, 4.*unlabelled='drop'"):
            read_data(written(self.CONTENT))
        table = read_data(written(self.CONTENT), unlabelled="drop")
        assert table.y.tolist() == ["p", "q", "p", "rare"]
        assert "2 rows without a label" in table.notes[0]

    def test_words_for_missing_may_be_classes(self, written):
        path = written("x,y\n1,NA\nNA,EU\n3,NA\n4,EU\n")
        table = read_data(path, na_labels=True, blanks=True)
        assert table.y.tolist() == ["NA", "EU", "NA", "EU"]
        assert np.isnan(table.X).sum() == 1
        with pytest.raises(DataError, match="missing or infinite in 1 row"):
            read_data(written("x,y\n1,NA\n2,\n3,EU\n"), na_labels=True)

    def test_classes_are_left_out(self, written):
        options = {"unlabelled": "drop", "drop_classes": ["rare"]}
        table = read_data(written(self.CONTENT), **options)
        np.testing.assert_array_equal(table.X, [[2], [3], [4]])
        with pytest.raises(DataError, match=r"'y' has one class only, 'p'.*target=NAME"):
            read_data(written(self.CONTENT), unlabelled="drop", drop_classes=["rare", "q"])
        with pytest.raises(DataError, match="no class 'P'; classes are 'p', 'q', 'rare'"):
            read_data(written(self.CONTENT), unlabelled="drop", drop_classes="P")

    @pytest.mark.parametrize("name", ["data.csv", "data.xlsx"])
    @pytest.mark.parametrize(("first", "last"), [("", "Total,,"), ("years,kg,\n", "")])
    def test_columns_without_totals_and_units_are_numbers(self, written, name, first, last):
        path = written(f"age,w,y\n{first}60,1.5,p\n70,2.5,q\n80,3.5,p\n{last}\n")
        if name == "data.xlsx":
            pytest.importorskip("openpyxl")
            frame = pd.read_csv(path)
            path = path.replace(".csv", ".xlsx")
            frame.to_excel(path, index=False)
        table = read_data(path, unlabelled="drop")
        assert table.feature_names == ["age", "w"]
        np.testing.assert_array_equal(table.X, [[60, 1.5], [70, 2.5], [80, 3.5]])

    def test_empty_cells_beyond_the_header_are_none(self, written):
        path = written("x,y\n1,p\n2,q,,\n3,p,\n")
        np.testing.assert_array_equal(read_data(path).X, [[1], [2], [3]])
        with pytest.raises(DataError, match="line 3 has 4"):
            read_data(written("x,y\n1,p\n2,q,,r\n3,p,\n"))

    def test_rows_keep_their_numbers(self, written):
        with pytest.raises(DataError, match=r"row 3, column 'x'.*--impute.*blanks=True"):
            read_data(written("x,y\n1,\n2,p\n,q\n"), unlabelled="drop")


class TestLabels:
    """Expressions in one file, the clinic in another."""

    @pytest.fixture
    def expressions(self, written) -> str:
        return written("sample,g1,g2\n" + rows(sample, value, lambda k: k), "genes.csv")

    def clinic(self, written, samples, header="sample_id,sex,outcome") -> str:
        lines = (f"{name},{'fm'[k % 2]},{'01'[k % 2]}" for k, name in enumerate(samples))
        return written("\n".join([header, *lines]) + "\n", "clinical.csv")

    def test_they_are_joined_by_the_names_of_the_samples(self, written, expressions):
        path = self.clinic(written, [f" s{k} " for k in range(ROWS)])
        table = read_data(expressions, labels=path)
        assert (table.feature_names, table.target_name) == (["g1", "g2"], "outcome")
        assert table.y.tolist() == [int(name[1:]) % 2 for name in SAMPLES]
        assert table.ids.tolist() == SAMPLES
        assert read_data(expressions, labels=path, target="sex").y.tolist()[:2] == ["f", "m"]
        assert read_data(expressions, labels=path, groups="sex").groups.tolist()[:2] == ["f", "m"]

    def test_names_without_a_partner_are_told(self, written, expressions):
        path = self.clinic(written, [*SAMPLES[2:], "s99"])
        with pytest.raises(DataError, match=r"no row for 2 samples of .*: 's0', 's7'; leave"):
            read_data(expressions, labels=path)
        table = read_data(expressions, labels=path, unlabelled="drop")
        assert len(table.y) == len(table.ids) == ROWS - 2
        assert any("1 row without a sample" in note and "'s99'" in note for note in table.notes)

    def test_a_sample_with_two_rows_is_refused(self, written, expressions):
        with pytest.raises(DataError, match="must name each sample once, and has 's3' more than"):
            read_data(expressions, labels=self.clinic(written, [*SAMPLES, "s3"]))

    def test_numbers_of_samples_are_joined_however_they_are_written(self, written, tmp_path):
        numbered = written("id,g1\n" + rows(lambda k: f"{k + 1:03d}", value), "genes.csv")
        clinic = pd.DataFrame({"no": range(1, ROWS + 1), "kind": [kind(k) for k in range(ROWS)]})
        for name, dtype in (("int.csv", int), ("float.csv", float)):
            clinic.astype({"no": dtype}).to_csv(tmp_path / name, index=False)
        clinic.to_parquet(tmp_path / "int.parquet")
        clinic.set_index("no").to_parquet(tmp_path / "index.parquet")
        for name in ("int.csv", "float.csv", "int.parquet", "index.parquet"):
            table = read_data(numbered, ids="id", labels=tmp_path / name, target="kind")
            assert table.y.tolist() == clinic["kind"].tolist()
            assert any("12 names written otherwise" in note for note in table.notes)
        apart = written("id,g1\n01,1.5\n1,2.5\n", "genes.csv")
        with pytest.raises(DataError, match=r"no row for 1 sample of .*: '01'"):
            read_data(apart, ids="id", labels=tmp_path / "int.csv", target="kind")

    def test_the_names_may_have_a_column_of_another_name_there(self, written, expressions):
        path = self.clinic(written, SAMPLES)
        table = read_data(expressions, labels=path, ids="sample_id")
        assert table.y.tolist() == [k % 2 for k in range(ROWS)]
        assert table.ids.name == "sample"

    def test_no_sample_with_a_label_is_refused(self, written, expressions):
        path = self.clinic(written, SAMPLES)
        other = written("sex,outcome\nf,0\nm,1\n", "other.csv")
        with pytest.raises(DataError, match=r"'sex' has 'f', .*: name another column \(ids=NAME"):
            read_data(expressions, labels=other, ids="sex", unlabelled="drop")
        with pytest.raises(DataError, match=r"no row has a label in 'y'.*target=NAME"):
            read_data(written("x,y\n1,\n2,\n"), target="y", unlabelled="drop")
        with pytest.raises(DataError, match="no sample is of another class"):
            read_data(path, ignore="sample_id", encode=True, drop_classes=["0", "1"])

    def test_a_target_that_both_tables_have_is_no_feature(self, written):
        expressions = written("sample,g1,outcome\n" + rows(sample, value, lambda k: k % 2), "g.csv")
        path = self.clinic(written, SAMPLES)
        with pytest.raises(DataError, match=r"'outcome' of .* here, too: .*ignore='outcome'"):
            read_data(expressions, labels=path)
        assert read_data(expressions, labels=path, ignore="outcome").feature_names == ["g1"]

    def test_genes_in_rows_are_told(self, written):
        lines = ([f"g{k}", *(value(k + j) for j in range(ROWS))] for k in range(30))
        content = "\n".join(",".join(map(str, line)) for line in [["gene", *SAMPLES], *lines])
        genes = written(content, "genes.csv")
        with pytest.raises(DataError, match=r"measurement.*transpose=True.*labels=FILE"):
            read_data(genes)
        with pytest.raises(DataError, match=r"genes.csv are called so: turn it \(transpose=True\)"):
            read_data(genes, labels=self.clinic(written, SAMPLES))
        repeated = written("\n".join([content, content.partition("\n")[2]]), "genes.csv")
        with pytest.raises(DataError, match=r"genes.csv are called so: turn it \(transpose=True\)"):
            read_data(repeated, labels=self.clinic(written, SAMPLES))
        turned = Dialect(transpose=True)
        with pytest.raises(DataError, match=r"from another table \(labels=FILE") as caught:
            read_data(written(content, "genes.csv"), dialect=turned)
        assert "transpose" not in str(caught.value)

    def test_matrices_name_no_samples(self, written, expressions):
        with pytest.raises(DataError, match="a matrix names no samples"):
            read_data("iris", labels=expressions)
