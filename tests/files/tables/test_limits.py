"""Small files that stand for much memory are refused in a sentence with the number."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy

from proxmargin import load_model, read_data
from proxmargin.files.errors import DataError, ModelFileError
from proxmargin.runtime import memory
from tests.files.model_files import forged_file, learned

# free memory that most of these tests pretend, bytes
LITTLE = 2**24


@pytest.fixture
def little_memory(monkeypatch):
    for module in ("runtime.memory", "files.tables.text", "files.tables.labels"):
        monkeypatch.setattr(f"proxmargin.{module}.free_bytes", lambda: LITTLE)


@pytest.fixture
def written(tmp_path):
    def write(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


class TestWhatIsFree:
    def test_it_is_a_number_of_bytes(self):
        assert 2**20 < memory.free_bytes() < 2**62

    @pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
    def test_a_limit_of_the_process_counts(self, limit):
        pytest.importorskip("resource")
        code = (
            f"import resource; resource.setrlimit(resource.{limit}, (2**31, 2**31)); "
            "from proxmargin.runtime.memory import free_bytes; print(free_bytes())"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
        assert 0 < int(found.stdout) < 2**31

    @pytest.mark.parametrize(
        ("line", "folder", "limit", "used"),
        [
            ("0::/a/b", "a", "memory.max", "memory.current"),
            ("4:memory:/a", "memory/a", "memory.limit_in_bytes", "memory.usage_in_bytes"),
            ("4:memory:/of/the/host", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        ],
    )
    def test_limits_of_containers_count(self, tmp_path, monkeypatch, line, folder, limit, used):
        group = tmp_path / folder
        group.mkdir(parents=True)
        (group / limit).write_text("1000000\n")
        (group / used).write_text("400000\n")
        (group / "memory.stat").write_text("anon 5\ninactive_file 100000\n")
        real = memory._text
        monkeypatch.setattr(memory, "_CONTROL", tmp_path)
        monkeypatch.setattr(
            memory, "_text", lambda p: line if str(p) == "/proc/self/cgroup" else real(p)
        )
        assert memory.free_bytes() == 700_000

    def test_no_limit_is_no_number(self, tmp_path, monkeypatch):
        (tmp_path / "memory.max").write_text("max\n")
        (tmp_path / "memory.current").write_text("400000\n")
        monkeypatch.setattr(memory, "_CONTROL", tmp_path)
        assert list(memory._containers()) == []

    def test_without_any_system_call_a_small_machine_is_assumed(self, monkeypatch):
        monkeypatch.setattr(memory, "_machine", lambda: iter(()))
        monkeypatch.setattr(memory, "_containers", lambda: iter(()))
        monkeypatch.setattr(memory, "_limits", lambda: iter(()))
        assert memory.free_bytes() == memory.UNKNOWN

    @pytest.mark.parametrize(
        ("size", "words"), [(999, "999 bytes"), (1000, "1.0 kB"), (17_200_000_000, "17.2 GB")]
    )
    def test_sizes_are_readable(self, size, words):
        assert memory.in_words(size) == words


class TestSvmlight:
    @pytest.mark.parametrize("index", [2147483647, 99999999])
    def test_a_wrong_index_is_told_by_its_number(self, written, monkeypatch, index):
        free = 16 * index
        monkeypatch.setattr("proxmargin.files.tables.labels.free_bytes", lambda: free)
        monkeypatch.setattr("proxmargin.runtime.memory.free_bytes", lambda: free)
        path = written("d.svm", f"# made\n1 1:0.5\n-1 3:1\n1 2:1 {index}:1\n".encode())
        with pytest.raises(DataError, match=rf"{index} features.*check the largest index"):
            read_data(path)

    def test_many_entries_are_refused_while_they_are_read(self, written, little_memory):
        path = written("d.svm.gz", gzip.compress(b"1 1:1 2:1 3:1\n" * 1_000_000))
        with pytest.raises(DataError, match=r"lines need 1\d\.\d MB of memory, and 16\.8"):
            read_data(path)


@pytest.mark.parametrize(
    "name", ["d.csv", "d.csv.gz", "d.tsv.gz", "d.svm", "d.svm.gz", "d.svm.bz2"]
)
@pytest.mark.parametrize("start", [b"", b"a,b,y\n1,2,0\n"])
def test_a_line_without_an_end_is_refused(written, little_memory, name, start):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get("." + name.split(".")[-1], bytes)
    start = start.replace(b",", b"\t") if "tsv" in name else start
    path = written(name, pack((b"1 1:1\n" if "svm" in name else start) + b"1" * 3_000_000))
    with pytest.raises(DataError, match=r"line [123] is longer than 262\.1 kB"):
        read_data(path)


class TestTables:
    def test_short_rows_below_a_long_header_are_refused(self, written, little_memory):
        names = ",".join(f"f{j}" for j in range(5000))
        path = written("d.csv", f"{names}\n".encode() + b"1\n" * 1000)
        with pytest.raises(DataError, match=r"and 16\.8 MB is free; read fewer rows or col"):
            read_data(path)

    def test_one_long_label_among_many_is_refused(self, written, little_memory):
        path = written("d.csv", b"a,y\n" + b"1,p\n" * 5000 + b"1," + b"q" * 2000 + b"\n")
        with pytest.raises(DataError, match="label of 2000 characters in row 5001"):
            read_data(path)

    def test_classes_and_features_of_one_column_of_text_each(self, written, little_memory):
        rows = b"".join(b"u%d,v%d\n" % (j, j) for j in range(2000))
        with pytest.raises(DataError, match=r"2000 features and 2000 classes needs 256\.0 MB"):
            read_data(written("d.csv", b"a,y\n" + rows), encode=True)

    def test_an_ordinary_table_needs_little(self, written, little_memory):
        rows = b"".join(b"%d,%d,p\n%d,1,q\n" % (j, j, j) for j in range(5000))
        assert read_data(written("d.csv", b"a,b,y\n" + rows)).X.shape == (10000, 2)


def test_equal_cells_of_a_parquet_file_are_counted_as_cells(tmp_path, little_memory):
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    same = pa.array(np.zeros(2_000_000))
    parquet.write_table(pa.table({"a": same, "y": same}), tmp_path / "d.parquet")
    assert (tmp_path / "d.parquet").stat().st_size < 100_000
    with pytest.raises(DataError, match=r"2000000 rows of 2 columns need 64\.0 MB"):
        read_data(tmp_path / "d.parquet")


class TestNpz:
    def write(self, path, shape, dtype, content):
        stream = io.BytesIO()
        header = {"descr": dtype, "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(stream, header)
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("X.npy", stream.getvalue() + content)
        return path

    def test_an_array_is_weighed_before_it_is_unpacked(self, tmp_path, little_memory):
        path = self.write(tmp_path / "d.npz", (1000, 3000), "|b1", bytes(3_000_000))
        assert path.stat().st_size < 20_000
        with pytest.raises(DataError, match=r"'X' has shape \(1000, 3000\), which needs 30.0 MB"):
            read_data(path)

    def test_a_shape_larger_than_what_is_there_is_refused(self, tmp_path):
        path = self.write(tmp_path / "d.npz", (2**40, 2**20), "<f8", bytes(80))
        with pytest.raises(DataError, match="and there are 80"):
            read_data(path)

    @pytest.mark.parametrize("shape", [(2**62, 0), (0, 2**62), (2**70, 0), (3, -1)])
    def test_shapes_of_nothing_are_refused(self, tmp_path, shape):
        path = self.write(tmp_path / "d.npz", shape, "<f8", b"")
        with pytest.raises(DataError, match=r"X|no data"):
            read_data(path, labelled=False)

    def test_a_sparse_matrix_wider_than_any_model_is_refused(self, tmp_path, little_memory):
        arrays = {"data": [1.0, 1.0], "indices": [0, 9], "indptr": [0, 1, 2], "shape": [2, 2**30]}
        np.savez(tmp_path / "d.npz", y=[0, 1], **arrays)
        with pytest.raises(DataError, match="1073741824 features and 2 classes needs"):
            read_data(tmp_path / "d.npz")

    def test_characters_that_do_not_exist_are_refused(self, tmp_path):
        X, y = np.eye(2), np.full(2, 0x7FFFFFFF, dtype=np.uint32).view("<U1")
        np.savez(tmp_path / "d.npz", X=X, y=y)
        with pytest.raises(DataError, match="characters that do not exist"):
            read_data(tmp_path / "d.npz")

    def test_an_array_that_is_there_twice_is_refused(self, tmp_path):
        path = self.write(tmp_path / "d.npz", (1, 1), "<f8", bytes(8))
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("X", b"")
        with pytest.raises(DataError, match="an array twice"):
            read_data(path)


class TestModels:
    def test_settings_that_expand_are_refused(self, tmp_path):
        wide = {"array": [""] * 70_000, "type": "<U1024"}

        def change(document):
            document["settings"]["solver_options"] = {"entries": [[j, wide] for j in range(9)]}

        path = forged_file(tmp_path, learned(), change)
        with pytest.raises(ModelFileError, match="strings of an excessive size"):
            load_model(path)

    def test_a_document_of_many_objects_is_weighed_first(self, tmp_path, little_memory):
        lists = json.dumps([[]] * 200_000).encode()
        path = forged_file(tmp_path, learned(), members={"model.json": lists})
        with pytest.raises(ModelFileError, match=r"model.json of 800000 bytes may need 51\.2 MB"):
            load_model(path)
