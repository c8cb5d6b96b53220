"""CSV and TSV files: what is read, what is refused, and how the refusal reads."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect


@pytest.fixture
def written(tmp_path):
    def write(content: str | bytes, name: str = "data.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_a_table_has_features_labels_and_names(written):
    table = read_data(written("a,b,y\n1,2.5,0\n3,4,1\n"))
    np.testing.assert_array_equal(table.X, [[1, 2.5], [3, 4]])
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.y, [0, 1])
    assert table.feature_names == ["a", "b"]
    assert table.target_name == "y"


def test_tab_separated_files_keep_empty_first_cells_apart(written):
    path = written("a\tb\ty\n\t2\t0\n3\t4\t1\n", "data.tsv")
    with pytest.raises(DataError, match="row 1, column 'a'"):
        read_data(path)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("d.csv.gz", gzip.compress),
        ("d.csv.bz2", bz2.compress),
        ("d.csv.xz", lzma.compress),
        ("d.csv", lzma.compress),
        ("d.csv.gz", lambda text: gzip.compress(text[:6]) + gzip.compress(text[6:])),
    ],
)
def test_compressed_files_are_read(written, name, pack):
    table = read_data(written(pack(b"a,y\n1,u\n2,v\n"), name))
    assert table.y.tolist() == ["u", "v"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (bytes(4096), "a NUL character in line 1:"),
        ((bytes(30) + b"\n") * 100, "a NUL character in line 1:"),
        ("a,b,y\n1,2,0\n3,4,1\n".encode("utf-16-le"), "its encoding is another one"),
        (b"a,b,y\n" + bytes(4096), "a NUL character in line 2:"),
        (b"x" * 5000 + b"\n1\n2\n", "no feature columns"),
        (2 * (b"x" * 5000 + b",") + b"y\n1,2,0\n3,4,1\n", "column names must differ"),
    ],
)
@pytest.mark.parametrize("name", ["d.csv", "d.svm"])
def test_long_cells_are_told_in_one_short_line(written, name, content, sentence):
    with pytest.raises(DataError, match=sentence if name == "d.csv" else "svmlight") as caught:
        read_data(written(content, name))
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.csv", b"7z\xbc\xaf\x27\x1c" + b"a,y\n1,u\n2,v\n"),
        ("d.csv.gz", b"\x04\x22\x4d\x18" + b"a,y\n1,u\n2,v\n"),
    ],
)
def test_other_compressions_are_refused(written, name, content):
    with pytest.raises(DataError, match=r"it is compressed \(.*\): unpack it"):
        read_data(written(content, name))


def test_a_byte_order_mark_and_windows_line_ends_are_no_data(written):
    table = read_data(written(b"\xef\xbb\xbfa,b,y\r\n1,2,0\r\n3,4,1\r\n"))
    assert table.feature_names == ["a", "b"]


def test_blanks_around_names_and_labels_are_dropped(written):
    table = read_data(written("a, b ,Y\n1, 2, p\n3, 4, q\n"))
    assert table.feature_names == ["a", "b"]
    assert table.y.tolist() == ["p", "q"]


def test_booleans_are_numbers(written):
    table = read_data(written("flag,y\nTrue,0\nFalse,1\n"))
    np.testing.assert_array_equal(table.X, [[1.0], [0.0]])


@pytest.mark.parametrize("again", ["x,z,label{}", " X, z ,Label {}", '"x","z","label"{}'])
@pytest.mark.parametrize("end", ["", ","])
def test_the_header_among_the_rows_is_no_sample(written, again, end):
    lines = ["x,z,label{}", "1,4,p{}", "2,3,q{}", again, "1,4,p{}", "2,3,q{}", ""]
    table = read_data(written("\n".join(lines).format(*[end] * 6)))
    assert table.X.tolist() == [[1, 4], [2, 3], [1, 4], [2, 3]]
    assert table.y.tolist() == ["p", "q", "p", "q"]
    assert any("1 row that repeat the header left out (3" in note for note in table.notes)


def test_a_year_is_a_name_in_the_header_among_the_rows(written):
    path = written("2019,z,label,\n0.5,4,p,\n2019,z,label,\n2,3,q,\n")
    table = read_data(path, dialect=Dialect(header=True))
    assert table.X.tolist() == [[0.5, 4], [2, 3]]


def test_rows_that_differ_from_the_header_in_one_cell_stay(written):
    path = written("sex,label,\nlabel,p,\nsex,q,\nsex,label,7\nsex,p,\n")
    table = read_data(path, target="label", encode=True, blanks=True, dialect=Dialect(header=True))
    assert table.y.tolist() == ["p", "q", "label", "p"]


def test_levels_of_the_only_column_that_are_like_its_name_stay(written):
    table = read_data(written("smoker\nSmoker\nother\n"), labelled=False, encode=True)
    assert len(table.X) == 2


@pytest.mark.parametrize("others", ["", "1,( 4 )\n", "1,-4\n"])
def test_brackets_are_negative_whatever_the_other_rows_hold(written, others):
    table = read_data(written(f"x,bal\n0.5,(23.1)\n{others}"), labelled=False)
    assert table.X[:, 1].tolist() == [-23.1, -4][: len(table.X)]
    assert any("those in brackets as negative: 'bal'" in note for note in table.notes)


def test_words_in_brackets_are_words(written):
    table = read_data(written("x,w\n0.5,(a)\n1,(b)\n"), labelled=False, encode=True)
    assert table.feature_names == ["x", "w=(a)", "w=(b)"]


def test_unlabelled_data_keeps_every_column(written):
    table = read_data(written("a,b\n1,2\n3,4\n"), labelled=False)
    assert table.y is None
    assert table.target_name is None
    assert table.X.shape == (2, 2)


class TestTarget:
    @pytest.mark.parametrize("usual", ["target", "Label", "CLASS", "y"])
    def test_a_usual_name_is_found_anywhere(self, written, usual):
        table = read_data(written(f"a,{usual},b\n1,0,5\n2,1,6\n"))
        assert table.target_name == usual
        assert table.feature_names == ["a", "b"]

    def test_the_last_column_stands_in(self, written):
        assert read_data(written("a,b,c\n1,2,0\n3,4,1\n")).target_name == "c"

    def test_two_usual_names_leave_the_last_column(self, written):
        assert read_data(written("y,label,c\n1,2,0\n3,4,1\n")).target_name == "c"

    @pytest.mark.parametrize("target", ["b", 1, "1", -2, "-2"])
    def test_name_and_position_both_choose(self, written, target):
        assert read_data(written("a,b,c\n1,2,0\n3,4,1\n"), target=target).target_name == "b"

    def test_a_column_named_like_a_number_goes_by_its_name(self, written):
        assert read_data(written("1,0,y\n1,2,0\n3,4,1\n"), target="1").target_name == "1"

    def test_an_unknown_name_lists_the_columns(self, written):
        with pytest.raises(DataError, match=r"no column 'z'; the columns are 'a', 'b'"):
            read_data(written("a,b\n1,2\n3,4\n"), target="z")

    @pytest.mark.parametrize("target", [2, -3, "7"])
    def test_a_position_outside_is_refused(self, written, target):
        with pytest.raises(DataError, match="2 columns"):
            read_data(written("a,b\n1,2\n3,4\n"), target=target)

    def test_measurements_are_no_classes(self, written):
        with pytest.raises(DataError, match="looks like a measurement"):
            read_data(written("a,y\n1,0.5\n2,1.25\n3,7.5\n"))

    def test_whole_numbers_written_as_decimals_are_classes(self, written):
        assert read_data(written("a,y\n1,-1.0\n2,1.0\n")).y.tolist() == ["-1.0", "1.0"]

    def test_missing_labels_are_refused_by_row(self, written):
        with pytest.raises(DataError, match=r"target 'y' is missing or infinite in 1 row \(row 2"):
            read_data(written("a,y\n1,u\n2,\n3,v\n"))

    def test_an_empty_target_column_is_absent_where_labels_are_not_needed(self, written):
        table = read_data(written("a,y\n1,\n2,\n"), labelled=False)
        assert table.y is None
        assert table.feature_names == ["a"]


class TestEncoding:
    CONTENT = "size,colour,y\n1,red,0\n2,blue,1\n3,red,1\n"

    def test_text_is_refused_by_name_with_an_example(self, written):
        with pytest.raises(DataError, match=r"'colour' \(row 1 holds 'red'\).*encode=True"):
            read_data(written(self.CONTENT))

    def test_text_becomes_one_feature_per_level(self, written):
        table = read_data(written(self.CONTENT), encode=True)
        assert table.feature_names == ["size", "colour=blue", "colour=red"]
        np.testing.assert_array_equal(table.X, [[1, 0, 1], [2, 1, 0], [3, 0, 1]])

    def test_a_stray_cell_among_numbers_is_warned_about_once_by_column_and_row(self, written):
        content = "a,b,c,y\n1,5,red,0\n2,6,7,1\n3,oops,blue,1\nx,8,green,0\n"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            table = read_data(written(content), encode=True)
        (said,) = (str(one.message) for one in caught)
        assert "2 columns of numbers with cells that are none" in said
        assert "'a' (row 4 holds 'x'; 3 of 4 cells are numbers)" in said
        assert "'b' (row 3 holds 'oops'; 3 of 4 cells are numbers)" in said
        assert "'c'" not in said
        assert "b=oops" in table.feature_names
        assert caught[0].filename == __file__

    def test_categories_are_encoded_without_a_word(self, written):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read_data(written(self.CONTENT), encode=True)

    def test_many_levels_give_a_sparse_matrix_with_the_same_entries(self, written):
        rows = [f"{j % 3},w{j % 30:02d},{j % 2}" for j in range(60)]
        table = read_data(written("\n".join(["n,word,y", *rows])), encode=True)
        assert sp.issparse(table.X)
        dense = table.X.toarray()
        np.testing.assert_array_equal(dense[:, 0], np.arange(60) % 3)
        np.testing.assert_array_equal(dense[:, 1:], np.tile(np.eye(30), (2, 1)))

    def test_a_level_that_makes_an_existing_name_is_refused(self, written):
        with pytest.raises(DataError, match="'a=b' twice"):
            read_data(written("a=b,a,y\n1,b,0\n2,c,1\n"), encode=True)

    def test_missing_text_is_refused_too(self, written):
        with pytest.raises(DataError, match="row 2, column 'colour'"):
            read_data(written("size,colour,y\n1,red,0\n2,,1\n"), encode=True)


class TestDoubtfulLabels:
    @pytest.mark.parametrize(
        ("labels", "sentence"),
        [
            (["a", "b", "a "], "'a' and 'a ' differ only in blanks, case or number format"),
            (["yes", "no", "Yes"], "'Yes' and 'yes' differ only in blanks, case or number format"),
            (["a", "b", "?"], "'?' looks like a missing value"),
            (["a", "b", "n/a"], "'n/a' looks like a missing value"),
        ],
    )
    def test_classes_that_are_perhaps_none_are_said_once(self, written, labels, sentence):
        rows = "".join(f"{j},{label}\n" for j, label in enumerate(labels * 2))
        with pytest.warns(UserWarning, match="each is a class of its own") as caught:
            table = read_data(written(f"x,y\n{rows}"))
        assert len(caught) == 1
        assert sentence in str(caught[0].message)
        assert caught[0].filename == __file__
        assert sorted(set(table.y)) == sorted(labels)

    def test_usual_labels_are_not_talked_about(self, written, recwarn):
        read_data(written("x,y\n" + "1,none of them\n2,a\n3,b\n" * 2))
        assert not recwarn.list


class TestRefusals:
    def test_a_carriage_return_swallows_no_cell(self, written):
        with pytest.raises(DataError, match="the rows do not all have the 3 columns"):
            read_data(written("a,b,y\n1,2,p\n\r,1,3,q\n1,4,p\n"))

    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    def test_line_ends_of_all_kinds_are_read(self, written, end):
        table = read_data(written(end.join(["a,b,y", "1,2,p", "", "3,4,q", ""])))
        np.testing.assert_array_equal(table.X, [[1.0, 2.0], [3.0, 4.0]])

    def test_the_bad_cell_of_a_column_of_numbers_is_named(self, written):
        with pytest.raises(DataError, match=r"'b' \(row 3 holds '7x'; 3 of 4 cells are numbers\)"):
            read_data(written("a,b,y\n1,2,p\n3,,q\n5,7x,p\n6,8,q\n7,9,p\n"))

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            (b"a,b,y\n1,2,p\n\n12\0 34,3,q\n", 4),
            (b"a,b,y\n1,2,p\n1,3,q\0\n", 3),
            (b"a,b\0c,y\n1,2,p\n1,3,q\n", 1),
            (b'a,b,y\n1,"2\n\0",p\n1,3,q\n', 3),
            (b"a,b,y\n" + b"1,2,p\n" * 200_000 + b"1\0,3,q\n", 200_002),
        ],
    )
    def test_a_nul_character_is_refused_by_line(self, written, content, line):
        with pytest.raises(DataError, match=f"NUL character in line {line}:"):
            read_data(written(content))

    @pytest.mark.parametrize("cell", ["", "NA", "NaN", "nan", "N/A", "null"])
    def test_missing_cells_are_named_by_row_and_column(self, written, cell):
        with pytest.raises(DataError, match=r"1 missing value: row 2, column 'b'"):
            read_data(written(f"a,b,y\n1,2,0\n3,{cell},1\n"))

    @pytest.mark.parametrize("cell", ["inf", "-inf"])
    def test_infinite_cells_are_named_by_row_and_column(self, written, cell):
        with pytest.raises(DataError, match=r"1 infinite value: row 1, column 'b'"):
            read_data(written(f"a,b,y\n1,{cell},0\n3,4,1\n"))

    def test_a_number_too_large_for_floats_is_refused(self, written):
        with pytest.raises(DataError, match="'b'"):  # as infinite, or by older pandas as text
            read_data(written("a,b,y\n1,1e999,0\n3,4,1\n"))

    def test_many_missing_cells_are_counted(self, written):
        rows = "\n".join(f",{j},{j % 2}" for j in range(100))
        with pytest.raises(DataError, match=r"100 missing values: row 1.* and 95 more"):
            read_data(written(f"a,b,y\n{rows}\n"))

    def test_blank_lines_count_as_no_row(self, written):
        with pytest.raises(DataError, match="row 2, column 'a'"):
            read_data(written("a,y\n1,0\n\n\nNA,1\n"))

    def test_repeated_names_are_refused_by_name(self, written):
        with pytest.raises(DataError, match="more than once: 'a'"):
            read_data(written("a,b,a,y\n1,2,3,0\n"))

    @pytest.mark.parametrize("rows", ["1,2,0,9\n1,4,1,9\n", "1,2,0\n3,4,1,9\n"])
    def test_rows_longer_than_the_header_are_refused(self, written, rows):
        with pytest.raises(DataError, match="3 columns of the header"):
            read_data(written("a,b,y\n" + rows))

    def test_short_rows_are_refused_by_line_or_end_with_missing_cells(self, written):
        path = written("a,b,y\n1,2,0\n\n3,4\n")
        with pytest.raises(DataError, match=r"line 4 has 2; .*short_rows='missing'"):
            read_data(path)
        with pytest.raises(DataError, match=r"'y' is missing or infinite in 1 row \(row 2"):
            read_data(path, dialect=Dialect(short_rows="missing"))

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("", "is empty"),
            ("\n\n\n", "is empty"),
            ("a,b,y\n", "no data rows"),
            ("a,b,y", "no data rows"),
            ("5.1,3.5,0\n4.9,3.0,1\n", r"\(header=True\) or .* \(header=False\)"),
            ('a,b,y\n1,"2,0\n3,4,1\n', "columns of the header"),
            (bytes(range(256)), "not a text file in UTF-8"),
            ("a,b,y\n1,é,0\n".encode("latin-1"), "not a text file in UTF-8"),
        ],
    )
    def test_what_is_no_table_gets_a_sentence(self, written, content, sentence):
        with pytest.raises(DataError, match=sentence):
            read_data(written(content))

    @pytest.mark.parametrize(
        "content", [b"\x1f\x8bno gzip", gzip.compress(b"a,y\n1,2\n" * 50, mtime=0)[:-9]]
    )
    def test_damaged_compression_gets_a_sentence(self, written, content):
        with pytest.raises(DataError, match="cannot be read"):
            read_data(written(content, "data.csv.gz"))

    @pytest.mark.parametrize("start", [0, 1])
    def test_a_header_of_counts_is_a_header_if_hardly_a_row(self, written, start):
        names = [str(j + start) for j in range(8)]
        table = read_data(written(f"{','.join(names)}\n7,8,0,3,1,2,1,0\n9,1,1,2,5,6,0,1\n"))
        assert table.feature_names == names[:-1]
        with pytest.raises(DataError, match="holds only numbers"):
            read_data(written("0,1,2\n7,8,0\n9,1,1\n"))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=8)
NUMBERS = st.floats(-1e70, 1e70)


@given(data=st.data())
def test_numbers_survive_a_csv_file_to_the_last_bit(tmp_path, data):
    names = data.draw(st.lists(NAMES.map("x{}".format), min_size=1, max_size=4, unique=True))
    row = st.lists(NUMBERS, min_size=len(names), max_size=len(names))
    rows = data.draw(st.lists(row, min_size=1, max_size=6))
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow([*names, "target"])
    writer.writerows([*map(repr, values), f"c{j % 2}"] for j, values in enumerate(rows))
    path = tmp_path / "data.csv"
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")

    table = read_data(path)

    np.testing.assert_array_equal(table.X, np.array(rows, dtype=float))
    assert table.feature_names == names
    assert table.y.tolist() == [f"c{j % 2}" for j in range(len(rows))]


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=6)


@given(words=st.lists(WORDS.map("w{}".format), min_size=1, max_size=12))
def test_every_row_of_an_encoded_column_has_exactly_its_level(tmp_path, words):
    path = tmp_path / "data.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("word", "y"), *((w, j % 2) for j, w in enumerate(words))])
    table = read_data(path, encode=True)
    X = table.X.toarray() if sp.issparse(table.X) else table.X
    assert [table.feature_names[j] for j in X.argmax(axis=1)] == [f"word={w}" for w in words]
    np.testing.assert_array_equal(X.sum(axis=1), 1.0)


@given(content=st.binary(min_size=1, max_size=200))
def test_arbitrary_bytes_are_read_or_refused_with_a_sentence(tmp_path, content):
    for name in ("data.csv", "data.tsv", "data.svm"):
        path = tmp_path / name
        path.write_bytes(content)
        with suppress(DataError):
            table = read_data(path, encode=True)
            assert len(table.y) == table.X.shape[0] > 0


@pytest.mark.parametrize("label", ["first", "last"])
@pytest.mark.parametrize("whole", [True, False], ids=["integers", "floats"])
def test_the_place_of_the_labels_and_the_kind_of_numbers_do_not_matter(written, label, whole):
    """For frames of one type and of several."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    numbers = rng.integers(-(2**53), 2**53, (7, 5)) if whole else rng.normal(size=(7, 5))
    frame = pd.DataFrame(numbers, columns=[f"g{j}" for j in range(5)])
    frame.insert(0 if label == "first" else 5, "label", ["01", "02", *["1"] * 5])
    path = written(frame.to_csv(index=False))
    table = read_data(path)
    np.testing.assert_array_equal(table.X, numbers)  # to the last bit
    assert table.y.tolist() == ["01", "02", *["1"] * 5]
    mixed = read_data(path, ignore=["g1"], groups="g4")
    np.testing.assert_array_equal(mixed.X, table.X[:, [0, 2, 3]])
    np.testing.assert_array_equal(mixed.groups, frame["g4"].astype(str))
    assert mixed.y.tolist() == table.y.tolist()


@pytest.mark.parametrize("word", ["", "NA", "nan", '"NULL"', "<NA>"])
def test_the_words_for_missing_are_missing_in_columns_of_text_too(written, word):
    path = written(f"a,y\n1,u\n2,{word}\n3,v\n")
    with pytest.raises(DataError, match=r"target 'y' is missing or infinite in 1 row \(row 2"):
        read_data(path)


@pytest.mark.parametrize("name", ["r{}", "{}"])
def test_a_repeated_header_with_a_name_fewer_is_left_out(tmp_path, name):
    rows = [f"{name.format(k)},{k}.5,{k * k}.25,{'uv'[k % 2]}" for k in range(1, 21)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(["a,b,grp", *rows[:10], "a,b,grp", *rows[10:], "a,b,grp"]) + "\n")
    table = read_data(path)
    assert table.X[:, 0].tolist() == [k + 0.5 for k in range(1, 21)]
    assert any("2 rows that repeat the header left out" in note for note in table.notes)


def test_marks_in_brackets_are_words(tmp_path):
    path = tmp_path / "data.csv"
    rows = (f"({1 + k % 3}),{k}.5,{'uv'[k % 2]}\n" for k in range(20))
    path.write_text("stage,b,grp\n" + "".join(rows))
    with pytest.raises(DataError, match=r"'stage' .row 1 holds '\(1\)'.*encode=True"):
        read_data(path)
    assert read_data(path, encode=True).X.shape == (20, 4)
