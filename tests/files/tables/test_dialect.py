"""Text tables of every dialect: separators, decimal marks, encodings, headers, ignored columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect
from tests.files.model_files import read_columns

SEMICOLONS = Dialect(separator=";", decimal=",")
BARE = Dialect(header=False)
IRIS = "5.1,3.5,setosa\n7.0,3.2,versicolor\n4.9,3.0,setosa\n6.4,3.2,versicolor\n"


@pytest.fixture
def written(tmp_path):
    def write(content: str, name: str = "data.csv", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode(encoding))
        return path

    return write


class TestDialect:
    def test_semicolons_and_decimal_commas(self, written):
        table = read_data(written("a;b;y\n1,5;2;p\n-3,25;4;q\n"), dialect=SEMICOLONS)
        np.testing.assert_array_equal(table.X, [[1.5, 2.0], [-3.25, 4.0]])
        assert table.y.tolist() == ["p", "q"]

    @pytest.mark.parametrize("name", ["data.dat", "data", "data.txt", "DATA.TSV"])
    def test_a_separator_makes_a_table_of_any_text(self, written, name):
        table = read_data(written("a|y\n1|u\n2|v\n", name), dialect=Dialect(separator="|"))
        assert (table.feature_names, table.y.tolist()) == (["a"], ["u", "v"])

    @pytest.mark.parametrize("mark", [";", "|", "\t", " "])
    @pytest.mark.parametrize("name", ["d.csv", "d.txt", "d.data", "d"])
    def test_lines_show_what_separates_their_cells(self, written, mark, name):
        table = read_data(written("a,b,y\n1.5,2,u\n2,3,v\n".replace(",", mark), name))
        np.testing.assert_array_equal(table.X, [[1.5, 2], [2, 3]])

    def test_an_unknown_suffix_says_that_a_separator_would_do(self, written):
        with pytest.raises(DataError, match=r"unknown kind of file.*separator="):
            read_data(written("y\n1\n2\n", "data.dat"))

    @pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252", "UTF-8"])
    def test_encodings(self, written, encoding):
        path = written("größe,y\n1,ä\n2,ß\n", encoding=encoding)
        table = read_data(path, dialect=Dialect(encoding=encoding))
        assert (table.feature_names, table.y.tolist()) == (["größe"], ["ä", "ß"])

    def test_a_wrong_encoding_says_how_to_name_the_right_one(self, written):
        path = written("größe,y\n1,ä\n2,ß\n", encoding="latin-1")
        with pytest.raises(DataError, match=r"not a text file in UTF-8.*\(encoding=\)"):
            read_data(path)
        with pytest.raises(DataError, match="not a text file in UTF-16"):
            read_data(path, dialect=Dialect(encoding="utf-16"))

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"separator": ";;"}, "separator must be one character"),
            ({"separator": '"'}, "separator must be one character"),
            ({"decimal": ""}, "decimal mark must be one character"),
            ({"encoding": "klingon"}, "no encoding 'klingon'"),
        ],
    )
    def test_settings_without_meaning(self, settings, words):
        with pytest.raises(DataError, match=words):
            Dialect(**settings)

    def test_a_decimal_mark_cannot_separate(self, written):
        with pytest.raises(DataError, match="',' also separates the cells"):
            read_data(written("a,y\n1,0\n"), dialect=Dialect(decimal=","))

    @pytest.mark.parametrize("name", ["iris", "data.svm", "data.npz", "data.parquet"])
    def test_other_formats_have_no_dialect(self, written, name):
        source = name if name == "iris" else written("1 1:2\n", name)
        with pytest.raises(DataError, match="options: leave out encoding='latin-1'"):
            read_data(source, dialect=Dialect(encoding="latin-1"))


class TestHeader:
    def test_a_first_row_of_numbers_and_a_label_is_no_header(self, written):
        with pytest.raises(DataError, match=r"'setosa' again below it.*header=False"):
            read_data(written(IRIS))

    def test_a_first_row_of_levels_is_no_header(self, written):
        with pytest.raises(DataError, match="is one of the rows"):
            read_data(written("p,x,s\ne,x,y\np,b,s\n"), encode=True)

    def test_a_first_row_of_numbers_is_no_header(self, written):
        with pytest.raises(DataError, match="holds only numbers"):
            read_data(written("5.1,3.5,0\n4.9,3.0,1\n"))

    @pytest.mark.parametrize("header", ["400.5,402.25,kind", "a,b,kind", "1990,x,kind", "p,b,kind"])
    def test_names_that_are_numbers_or_also_levels_are_names(self, written, header):
        table = read_data(written(f"{header}\n1,2,p\n3,4,q\n"))
        assert table.feature_names == header.split(",")[:2]
        assert table.X.shape == (2, 2)

    def test_without_a_header_every_row_is_data(self, written):
        table = read_data(written(IRIS), dialect=BARE)
        assert table.X.shape == (4, 2)
        assert table.feature_names == ["0", "1"]
        assert table.y.tolist() == ["setosa", "versicolor", "setosa", "versicolor"]
        assert table.target_name == "2"

    def test_positions_choose_the_target_and_what_is_ignored(self, written):
        table = read_data(written("17,p,1.5\n18,q,2.5\n"), target="1", ignore=[0], dialect=BARE)
        assert (table.feature_names, table.y.tolist()) == (["2"], ["p", "q"])

    def test_new_data_without_a_header_go_by_position(self, written):
        table = read_columns(written("9,1.5,8\n9,2.5,8\n"), ["1"], 1, dialect=BARE)
        np.testing.assert_array_equal(table.X, [[1.5], [2.5]])


class TestLabels:
    def test_leading_zeros_are_kept(self, written):
        assert read_data(written("a,y\n1,01\n2,1\n3,1\n")).y.tolist() == ["01", "1", "1"]

    @pytest.mark.parametrize(
        ("cells", "labels"),
        [
            (["1", "-1"], [1, -1]),
            (["0", "1"], [0, 1]),
            (["+1", "2.0"], ["+1", "2.0"]),
            (["1e1", "2"], ["1e1", "2"]),
            (["True", "false"], ["True", "false"]),
            (["1", "b"], ["1", "b"]),
            (["10000000000000000000", "2"], ["10000000000000000000", "2"]),
        ],
    )
    def test_all_but_whole_numbers_is_as_it_is_written(self, written, cells, labels):
        y = read_data(written("a,y\n" + "".join(f"0,{cell}\n" for cell in cells))).y
        assert y.tolist() == labels


class TestIgnore:
    TABLE = "id,a,b,y\nu1,1,2,p\nu2,3,4,q\n"

    @pytest.mark.parametrize("ignore", [["id"], [0], ["0"], [-4], ("id", "id")])
    def test_the_columns_are_no_features(self, written, ignore):
        table = read_data(written(self.TABLE), ignore=ignore)
        assert table.feature_names == ["a", "b"]

    def test_the_last_column_that_is_left_holds_the_labels(self, written):
        table = read_data(written("a,kind,id\n1,p,7\n2,q,8\n"), ignore=["id"])
        assert (table.feature_names, table.target_name) == (["a"], "kind")

    def test_what_is_needed_cannot_be_ignored(self, written):
        with pytest.raises(DataError, match="target 'y' cannot be ignored"):
            read_data(written(self.TABLE), target="y", ignore=["y"])
        with pytest.raises(DataError, match="no feature columns"):
            read_data(written(self.TABLE), ignore=["id", "a", "b"])

    def test_an_unknown_column_is_named(self, written):
        with pytest.raises(DataError, match="no column 'idd'"):
            read_data(written(self.TABLE), ignore=["idd"])

    def test_a_matrix_has_no_columns_to_ignore(self):
        with pytest.raises(DataError, match="this is a matrix"):
            read_data("iris", ignore=[0])
