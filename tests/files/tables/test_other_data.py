"""svmlight, Parquet, Arrow, NPZ and embedded data."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zipfile
from contextlib import suppress
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.lib import format as npy

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables import matrices
from proxmargin.runtime.optional import how_to_install
from tests.files.model_files import read_columns


class TestSvmlight:
    CONTENT = b"# a comment\n+1 1:2 3:4.5\n-1 2:1\n"

    @pytest.mark.parametrize(
        ("name", "pack"),
        [
            ("d.svm", bytes),
            ("d.svmlight", bytes),
            ("d.libsvm", bytes),
            ("d.txt", bytes),
            ("D.SVM", bytes),
            ("d.svm.gz", gzip.compress),
            ("d.libsvm.bz2", bz2.compress),
            ("d.svm.xz", lzma.compress),
            ("d.svm", gzip.compress),
            ("d.svm.gz", bytes),
        ],
    )
    def test_samples_are_sparse_and_labels_whole(self, tmp_path, name, pack):
        (tmp_path / name).write_bytes(pack(self.CONTENT))
        table = read_data(tmp_path / name)
        assert sp.issparse(table.X)
        assert table.X.format == "csr"
        np.testing.assert_array_equal(table.X.toarray(), [[2, 0, 4.5], [0, 1, 0]])
        assert table.y.tolist() == [1, -1]
        assert table.feature_names is None

    @pytest.mark.parametrize(
        "content",
        [
            b"garbage\n",
            b"1,2,3\n4,5,6\n",
            b"1 1:x\n",
            b"1 3:1 1:2\n",
            b"1 99999999999:1\n",
            b"1 999999999999999999999999:1\n",
            bytes(range(256)),
        ],
    )
    def test_other_text_is_refused(self, tmp_path, content):
        (tmp_path / "d.svm").write_bytes(content)
        with pytest.raises(DataError, match="svmlight"):
            read_data(tmp_path / "d.svm")

    @pytest.mark.parametrize("name", ["d.svm.gz", "d.svm.bz2"])
    def test_damaged_compression_is_refused(self, tmp_path, name):
        (tmp_path / name).write_bytes(b"not compressed")
        with pytest.raises(DataError, match="svmlight"):
            read_data(tmp_path / name)

    def test_a_value_that_is_no_number_is_refused_by_row(self, tmp_path):
        (tmp_path / "d.svm").write_bytes(b"1 1:1\n2 2:nan\n")
        with pytest.raises(DataError, match="row 2, feature column 2"):
            read_data(tmp_path / "d.svm")

    def test_there_is_no_target_to_choose(self, tmp_path):
        (tmp_path / "d.svm").write_bytes(self.CONTENT)
        with pytest.raises(DataError, match="cannot be chosen"):
            read_data(tmp_path / "d.svm", target="y")


WRITERS = {
    "d.parquet": pd.DataFrame.to_parquet,
    "d.feather": pd.DataFrame.to_feather,
    "d.arrow": pd.DataFrame.to_feather,
}


@pytest.mark.parametrize("name", WRITERS)
class TestColumnar:
    FRAME = pd.DataFrame(
        {
            "a": [1, 2, 3],
            "b": np.array([0.5, 1.5, 2.5], dtype=np.float32),
            "flag": [True, False, True],
            "colour": pd.Categorical(["red", "blue", "red"]),
            "amount": [Decimal("1.25"), Decimal("2.5"), Decimal("3")],
            "y": ["p", "q", "p"],
        }
    )

    def write(self, tmp_path, name, frame):
        WRITERS[name](frame, tmp_path / name)
        return tmp_path / name

    def test_types_decide_what_is_numeric(self, tmp_path, name):
        table = read_data(self.write(tmp_path, name, self.FRAME), encode=True)
        assert table.feature_names == ["a", "b", "flag", "colour=blue", "colour=red", "amount"]
        np.testing.assert_array_equal(table.X[1], [2, 1.5, 0, 1, 0, 2.5])
        assert table.y.tolist() == ["p", "q", "p"]
        with pytest.raises(DataError, match="'colour'"):
            read_data(tmp_path / name)

    def test_float32_stays(self, tmp_path, name):
        table = read_data(self.write(tmp_path, name, self.FRAME[["b", "y"]]))
        assert table.X.dtype == np.float32

    @pytest.mark.parametrize(
        "column", [[1, None, 3], [True, None, False], [None, None, None], [1.0, np.nan, 2.0]]
    )
    def test_missing_values_are_refused(self, tmp_path, name, column):
        frame = pd.DataFrame({"a": pd.Series(column, dtype=object), "y": [0, 1, 0]})
        with pytest.raises(DataError, match="missing value"):
            read_data(self.write(tmp_path, name, frame))

    def test_lists_are_refused_by_name(self, tmp_path, name):
        frame = pd.DataFrame({"a": [1, 2], "many": [[1], [2, 3]], "y": [0, 1]})
        with pytest.raises(DataError, match=r"lists or records .*: 'many'; .*ignore='many'"):
            read_data(self.write(tmp_path, name, frame), encode=True)

    def test_no_rows_are_refused(self, tmp_path, name):
        with pytest.raises(DataError, match="no data rows"):
            read_data(self.write(tmp_path, name, self.FRAME[:0].reset_index(drop=True)))

    @pytest.mark.parametrize("keep", [2, 9, 100, -8])
    def test_a_cut_file_is_refused(self, tmp_path, name, keep):
        path = self.write(tmp_path, name, self.FRAME)
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(DataError, match="not a readable"):
            read_data(path)

    def test_damaged_bytes_are_read_or_refused(self, tmp_path, name, rng):
        whole = self.write(tmp_path, name, self.FRAME).read_bytes()
        for _ in range(150):
            content = bytearray(whole)
            for at in rng.integers(0, len(whole), size=3):
                content[at] = rng.integers(0, 256)
            (tmp_path / name).write_bytes(content)
            with suppress(DataError):
                read_data(tmp_path / name, encode=True)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (pd.Index([10, 20]), "Unnamed: 0"),
        (pd.Index(["10", "20"], name="patient"), "patient"),
        (pd.RangeIndex(10, 30, 10, name="patient"), "patient"),
    ],
)
def test_the_row_index_of_a_data_frame_names_the_samples(tmp_path, index, name):
    frame = pd.DataFrame({"a": [1, 2], "y": [0, 1]}, index=index)
    frame.to_parquet(tmp_path / "d.parquet")
    table = read_data(tmp_path / "d.parquet")
    assert table.feature_names == ["a"]
    assert (table.ids.name, table.ids.tolist()) == (name, ["10", "20"])
    again = read_columns(tmp_path / "d.parquet", ["a"], 1)
    assert (again.ids.name, again.ids.tolist()) == (name, ["10", "20"])


def test_levels_of_a_row_index_are_left_out_and_told(tmp_path):
    index = pd.MultiIndex.from_tuples([("p", 1), ("q", 1)], names=["patient", "visit"])
    pd.DataFrame({"a": [1, 2], "y": [0, 1]}, index=index).to_parquet(tmp_path / "d.parquet")
    table = read_data(tmp_path / "d.parquet")
    assert table.feature_names == ["a"]
    assert any("'patient'" in note and "'visit'" in note for note in table.notes)


def test_samples_of_matrices_are_left_out(tmp_path):
    y = np.array([0.0, 1, np.nan, 2, 1])
    np.savez(tmp_path / "d.npz", X=np.arange(10.0).reshape(5, 2), y=y)
    table = read_data(tmp_path / "d.npz", unlabelled="drop", drop_classes=["2"])
    assert table.y.tolist() == [0, 1, 1]
    assert table.X[:, 0].tolist() == [0, 2, 8]
    assert "1 row without a label" in table.notes[0]
    assert set(read_data("iris", drop_classes=["setosa"]).y) == {"versicolor", "virginica"}
    with pytest.raises(DataError, match="no class 'Setosa'"):
        read_data("iris", drop_classes=["Setosa"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_text_through_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "d.csv")
    with pytest.raises(DataError, match=r"pipe comes once.* save it as a file"):
        read_data(tmp_path / "d.csv")


def test_binary_files_that_are_not_read_say_what_to_do(tmp_path):
    np.save(tmp_path / "d.npy", np.eye(2))
    with pytest.raises(DataError, match=r"one array of NumPy.*np\.savez"):
        read_data(tmp_path / "d.npy")
    pd.DataFrame({"a": [1, 2], "y": [0, 1]}).to_parquet(tmp_path / "d.parquet")
    packed = tmp_path / "d.parquet.gz"
    packed.write_bytes(gzip.compress((tmp_path / "d.parquet").read_bytes()))
    with pytest.raises(DataError, match="unpack it"):
        read_data(packed)


def test_folder_names_add_no_columns_to_a_parquet_file(tmp_path):
    folder = tmp_path / "year=2020"
    folder.mkdir()
    pd.DataFrame({"a": [1, 2], "y": [0, 1]}).to_parquet(folder / "d.parquet")
    assert read_data(folder / "d.parquet").feature_names == ["a"]


def test_arrow_streams_are_read(tmp_path):
    table = pa.table({"a": [1, 2], "y": ["u", "v"]})
    with (
        pa.OSFile(str(tmp_path / "d.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as w,
    ):
        w.write_table(table)
    assert read_data(tmp_path / "d.arrow").y.tolist() == ["u", "v"]


def test_repeated_arrow_columns_are_refused(tmp_path):
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "y"])
    with (
        pa.OSFile(str(tmp_path / "d.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as w,
    ):
        w.write_table(table)
    with pytest.raises(DataError, match="more than once: 'a'"):
        read_data(tmp_path / "d.arrow")


class TestNpz:
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    y = np.array([0, 1])

    def csr(self, **changes):
        m = sp.csr_array(self.X)
        arrays = {"data": m.data, "indices": m.indices, "indptr": m.indptr, "shape": m.shape}
        return {**arrays, "y": self.y, **changes}

    def write(self, tmp_path, save=np.savez, **arrays):
        save(tmp_path / "d.npz", **arrays)
        return tmp_path / "d.npz"

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float16, np.float32, ">f8", bool])
    def test_dense_features_become_floats(self, tmp_path, save, dtype):
        X = self.X.astype(dtype)
        table = read_data(self.write(tmp_path, save, X=X, y=self.y))
        np.testing.assert_array_equal(table.X, X.astype(float))
        narrow = dtype in (np.float16, np.float32)
        assert table.X.dtype == (np.float32 if narrow else np.float64)
        assert table.X.dtype.isnative

    def test_fortran_order_is_understood(self, tmp_path):
        table = read_data(self.write(tmp_path, X=np.asfortranarray(self.X), y=self.y))
        np.testing.assert_array_equal(table.X, self.X)

    def test_sparse_features_with_names_and_words(self, tmp_path):
        arrays = self.csr(y=np.array(["no", "yes"]), feature_names=np.array(["a", "b", "c"]))
        table = read_data(self.write(tmp_path, **arrays))
        assert sp.issparse(table.X)
        np.testing.assert_array_equal(table.X.toarray(), self.X)
        assert table.y.tolist() == ["no", "yes"]
        assert table.feature_names == ["a", "b", "c"]

    def test_labels_of_half_precision_are_labels(self, tmp_path):
        table = read_data(self.write(tmp_path, X=self.X, y=self.y.astype(np.float16)))
        assert table.y.tolist() == [0, 1]

    def test_labels_may_be_absent_for_prediction(self, tmp_path):
        path = self.write(tmp_path, X=self.X)
        assert read_data(path, labelled=False).y is None
        with pytest.raises(DataError, match="no labels"):
            read_data(path)

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"indptr": np.array([0, 3, 1])}, "never fall"),
            ({"indptr": np.array([1, 2, 3])}, "never fall"),
            ({"indptr": np.array([0, 3])}, "2 rows need"),
            ({"indptr": np.array([0, 2, 9])}, "as many entries"),
            ({"indices": np.array([0, 2, 3])}, "from 0 to 2"),
            ({"indices": np.array([0, -1, 1])}, "from 0 to 2"),
            ({"indices": np.array([0, 2])}, "as many entries"),
            ({"indices": np.array([0.0, 2.0, 1.0])}, "'indices' cannot be used"),
            ({"shape": np.array([2, 3, 4])}, "two sizes"),
            ({"shape": np.array([2, -3])}, "two sizes"),
            ({"shape": np.array([2**60, 3])}, "rows need"),
            ({"shape": np.array([2, 2**60])}, "probably damaged"),
            ({"y": np.array([0, 1, 1])}, "2 rows but labels"),
            ({"data": np.array([1.0, np.nan, 1.0])}, "row 1, feature column 3"),
            ({"feature_names": np.array(["a", "a", "b"])}, "different names"),
        ],
    )
    def test_damaged_structure_is_refused(self, tmp_path, changes, sentence):
        with pytest.raises(DataError, match=sentence):
            read_data(self.write(tmp_path, **self.csr(**changes)))

    @pytest.mark.parametrize(
        ("arrays", "sentence"),
        [
            ({"X": np.array([[1, "a"], [2, "b"]], dtype=object), "y": [0, 1]}, "Python objects"),
            ({"X": [[1.0], [2.0]], "y": np.array(["a", None])}, "Python objects"),
            ({"X": [[1j], [2.0]], "y": [0, 1]}, "complex"),
            ({"X": [1.0, 2.0], "y": [0, 1]}, "two dimensions"),
            ({"X": np.zeros((0, 3)), "y": np.zeros(0)}, "no data"),
            ({"X": [[1.0], [np.inf]], "y": [0, 1]}, "row 2, feature column 1"),
            ({"Z": [[1.0], [2.0]]}, "an NPZ file holds"),
            ({"X": [[1.0], [2.0]], "y": [0.5, 1.5]}, "measurement"),
        ],
    )
    def test_unsuitable_arrays_are_refused(self, tmp_path, arrays, sentence):
        with pytest.raises(DataError, match=sentence):
            read_data(self.write(tmp_path, **arrays))

    def test_a_header_that_claims_too_much_allocates_nothing(self, tmp_path):
        stream = io.BytesIO()
        npy.write_array_header_1_0(
            stream, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**6)}
        )
        with zipfile.ZipFile(tmp_path / "d.npz", "w") as archive:
            archive.writestr("X.npy", stream.getvalue() + bytes(80))
        with pytest.raises(DataError, match="needs 8000000000000000 bytes and there are 80"):
            read_data(tmp_path / "d.npz")

    def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(self, tmp_path, monkeypatch):
        monkeypatch.setattr(matrices, "_TRUSTED_BYTES", 10_000)
        path = self.write(tmp_path, np.savez_compressed, X=np.zeros((1000, 100)), y=self.y)
        with pytest.raises(DataError, match="would grow"):
            read_data(path)

    def test_damaged_bytes_are_read_or_refused(self, tmp_path, rng):
        whole = self.write(tmp_path, np.savez_compressed, **self.csr()).read_bytes()
        for _ in range(300):
            content = bytearray(
                whole[: rng.integers(1, len(whole) + 1)] if rng.random() < 0.3 else whole
            )
            content[rng.integers(0, len(content))] ^= 1 << rng.integers(0, 8)
            (tmp_path / "d.npz").write_bytes(content)
            with suppress(DataError):
                read_data(tmp_path / "d.npz")


class TestEmbedded:
    @pytest.mark.parametrize(
        ("name", "shape", "label"),
        [
            ("breast_cancer", (569, 30), "benign"),
            ("wine", (178, 13), "class_0"),
            ("digits", (1797, 64), "7"),
            ("iris", (150, 4), "setosa"),
        ],
    )
    def test_sets_have_names_and_words_for_classes(self, name, shape, label):
        table = read_data(name)
        assert table.X.shape == shape
        assert len(table.feature_names) == shape[1]
        assert label in table.y.tolist()

    def test_a_description_is_plain(self):
        facts = read_data("iris").describe()
        assert facts["rows"] == 150
        assert facts["columns"] == 4
        assert facts["sparse"] is False
        assert facts["density"] == 1.0
        assert facts["classes"] == {"setosa": 50, "versicolor": 50, "virginica": 50}


class TestFinding:
    @pytest.mark.parametrize("source", ["wines", "data.csv", "no\0name"])
    def test_a_missing_file_lists_what_is_known(self, source):
        with pytest.raises(DataError, match=r"There is no file.*\.parquet.*iris"):
            read_data(source)

    def test_an_unknown_suffix_lists_what_is_known(self, tmp_path):
        (tmp_path / "d.xls").write_bytes(b"x")
        with pytest.raises(DataError, match=r"unknown kind of file.*\.csv.*breast_cancer"):
            read_data(tmp_path / "d.xls")

    def test_a_folder_is_refused(self, tmp_path):
        with pytest.raises(DataError, match="folder"):
            read_data(tmp_path)

    @pytest.mark.parametrize("name", ["d.svm", "d.csv", "d.parquet", "d.arrow", "d.npz"])
    def test_an_empty_file_is_refused(self, tmp_path, name):
        (tmp_path / name).touch()
        with pytest.raises(DataError, match="empty"):
            read_data(tmp_path / name)

    def test_text_under_the_name_of_a_workbook_is_read(self, tmp_path):
        (tmp_path / "d.xlsx").write_text("a,y\n1,p\n2,q\n3,p\n")
        np.testing.assert_array_equal(read_data(tmp_path / "d.xlsx").X, [[1], [2], [3]])

    @pytest.mark.parametrize("name", ["d.parquet", "d.arrow", "d.feather", "d.npz"])
    def test_foreign_bytes_are_refused(self, tmp_path, name):
        (tmp_path / name).write_bytes(bytes(range(256)) * 4)
        with pytest.raises(DataError, match="not a readable"):
            read_data(tmp_path / name)

    @pytest.mark.parametrize(("library", "name"), [("pandas", "d.csv"), ("pyarrow", "d.parquet")])
    def test_an_absent_library_is_named_with_the_command_that_installs_it(
        self, tmp_path, monkeypatch, library, name
    ):
        (tmp_path / name).write_bytes(b"a,y\n1,2\n")
        monkeypatch.setitem(sys.modules, library, None)
        monkeypatch.setitem(sys.modules, f"{library}.parquet", None)
        sentence = f"{library}, which is not installed: {how_to_install()}"
        with pytest.raises(DataError, match=re.escape(sentence)):
            read_data(tmp_path / name)
