"""Data sets on disk: the same rows whatever the file, and errors that name the place."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from proxmargin import Dataset, SparseLogisticRegression, open_dataset
from proxmargin.data.datasets import DataLostError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def table(rng) -> tuple[np.ndarray, np.ndarray]:
    X = np.round(rng.standard_normal((23, 4)), 3) * (rng.random((23, 4)) < 0.7)
    X[0, 3] = 1.0
    return X, (np.arange(23) % 3 == 0).astype(int)


def parquet(path: Path, X: np.ndarray, **others: Any) -> Path:
    columns = {f"x{k}": column for k, column in enumerate(X.T)}
    pq.write_table(pa.table({**columns, **others}), path, row_group_size=7)
    return path


def rows_of(dataset: Dataset) -> tuple[Any, np.ndarray]:
    chunks = list(dataset.chunks())
    parts = [c.X.toarray() if sp.issparse(c.X) else c.X for c in chunks]
    return np.concatenate(parts), np.concatenate([c.y for c in chunks])


def opened(kind: str, tmp_path: Path, X: np.ndarray, y: np.ndarray, rows: int) -> Dataset:
    matrix = sp.csr_matrix(X)
    csr = {k: getattr(matrix, k) for k in ("data", "indices", "indptr")} | {"shape": X.shape}
    if kind == "parquet":
        return open_dataset(parquet(tmp_path / "a.parquet", X, y=y), target="y", chunk_rows=rows)
    if kind == "folder":
        parquet(tmp_path / "a.parquet", X[:10], y=y[:10])
        parquet(tmp_path / "b.parquet", X[10:], y=y[10:])
        return open_dataset(tmp_path, target="y", chunk_rows=rows)
    if kind in ("npy", "npy, F order"):
        np.save(tmp_path / "X.npy", np.asfortranarray(X) if "F" in kind else X)
        np.save(tmp_path / "y.npy", y)
        return open_dataset(tmp_path / "X.npy", target=tmp_path / "y.npy", chunk_rows=rows)
    if kind == "npz":
        np.savez(tmp_path / "a.npz", X=X, y=y)
        return open_dataset(tmp_path / "a.npz", target="y", chunk_rows=rows)
    if kind == "npz of CSR":
        np.savez_compressed(tmp_path / "a.npz", y=y, **csr)
        return open_dataset(tmp_path / "a.npz", target="y", chunk_rows=rows)
    if kind == "svmlight":
        dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
        return open_dataset(tmp_path / "a.svm", target=None, chunk_rows=rows)
    if kind == "memory map":
        np.save(tmp_path / "X.npy", X)
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        return open_dataset(mapped, target=y, chunk_rows=rows)
    return open_dataset(matrix, target=y, chunk_rows=rows)


KINDS = (
    *("parquet", "folder", "npy", "npy, F order", "npz", "npz of CSR", "svmlight"),
    *("memory map", "CSR"),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 6, 1000])
def test_chunks_are_the_rows_in_order(kind: str, rows: int, table, tmp_path) -> None:
    X, y = table
    dataset = opened(kind, tmp_path, X, y, rows)
    assert (dataset.n_rows, dataset.n_features, len(dataset)) == (23, 4, 23)
    for _ in range(2):
        seen, labels = rows_of(dataset)
        np.testing.assert_array_equal(seen, X)
        np.testing.assert_array_equal(labels, y)
    assert all(chunk.X.shape[0] <= rows for chunk in dataset.chunks())


def test_a_text_file_is_converted_part_by_part(table, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.inputs.opening.TEXT_BYTES", 50)
    seen, labels = rows_of(opened("svmlight", tmp_path, *table, 6))
    np.testing.assert_array_equal(seen, table[0])
    np.testing.assert_array_equal(labels, table[1])


PACKINGS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def zipped(content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.svm", content)
    return stream.getvalue()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", PACKINGS)
@pytest.mark.parametrize("name", ["a.svm.{}", "a.svm", "a.svm.other"])
@pytest.mark.parametrize("parts", [1, 2])
def test_all_rows_of_a_compressed_text_file_are_read(
    kind: str, name: str, parts: int, table, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("proxmargin.data.inputs.opening.TEXT_BYTES", 50)
    X, y = table
    lines = io.BytesIO()
    dump_svmlight_file(X, y, lines, zero_based=False)
    text = 40 * lines.getvalue()  # far longer than its compressed form
    half = text.index(b"\n", len(text) // 2) + 1
    pieces = [text] if parts == 1 else [text[:half], text[half:]]
    path = tmp_path / name.format(kind)
    path.write_bytes(b"".join(map(PACKINGS[kind], pieces)))
    assert path.stat().st_size < len(text) // 10
    seen, labels = rows_of(open_dataset(path, target=None, chunk_rows=7))
    np.testing.assert_array_equal(seen, np.tile(X, (40, 1)))
    np.testing.assert_array_equal(labels, np.tile(y, 40))


@pytest.mark.parametrize("kind", PACKINGS)
def test_text_that_is_packed_and_damaged_is_refused(kind: str, tmp_path) -> None:
    whole = PACKINGS[kind](b"1 1:2 2:3\n-1 1:4\n" * 1000)
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    for content in (whole[:-9], whole[: len(whole) // 2], bytes(damaged)):
        (tmp_path / "a.svm.gz").write_bytes(content)
        with pytest.raises(OSError, match=r"a\.svm\.gz cannot be read"):
            open_dataset(tmp_path / "a.svm.gz", target=None)


def test_other_compressions_and_other_packed_files_are_refused(table, tmp_path) -> None:
    X, y = table
    text = b"1 1:2\n-1 1:3\n"
    (tmp_path / "a.svm.lz4").write_bytes(pa.Codec("lz4").compress(text, asbytes=True))
    with pytest.raises(OSError, match=r"a\.svm\.lz4 .*\(LZ4\): unpack it"):
        open_dataset(tmp_path / "a.svm.lz4", target=None)
    for name, packed in (
        ("a.svm.zip", zipped(text)),
        ("a.svm.zst", pa.Codec("zstd").compress(text, asbytes=True)),
    ):
        (tmp_path / name).write_bytes(packed)
        np.testing.assert_array_equal(
            rows_of(open_dataset(tmp_path / name, target=None))[1], [1, -1]
        )
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", X=X)
    parquet(tmp_path / "a.parquet", X, y=y)
    for name, kind in (("npy", "NPY"), ("npz", "NPZ"), ("parquet", "Parquet")):
        packed = tmp_path / f"a.{name}.gz"
        packed.write_bytes(gzip.compress((tmp_path / f"a.{name}").read_bytes()))
        with pytest.raises(ValueError, match=f"is a compressed {kind} file: unpack it"):
            open_dataset(packed, target="y")


def test_a_line_without_an_end_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("proxmargin.data.inputs.opening.TEXT_BYTES", 50)
    monkeypatch.setattr("proxmargin.data.inputs.opening.LONGEST_LINE", 1000)
    (tmp_path / "a.svm.gz").write_bytes(gzip.compress(b"1 1:1" + b" " * 5000))
    with pytest.raises(ValueError, match=r"a line of more than 1000 bytes"):
        open_dataset(tmp_path / "a.svm.gz", target=None)


def test_a_full_temporary_disk_is_named(table, tmp_path, monkeypatch) -> None:
    def full(path: Path, folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("proxmargin.data.inputs.opening.without_text", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/proxmargin-"):
        opened("svmlight", tmp_path, *table, 6)


def test_a_second_array_behind_the_first_is_refused(table, tmp_path) -> None:
    with (tmp_path / "a.npy").open("wb") as stream:
        np.save(stream, table[0])
        np.save(stream, table[0])
    with pytest.raises(ValueError, match=r"a\.npy has \d+ bytes, and an array of shape \(23, 4\)"):
        open_dataset(tmp_path / "a.npy", target=table[1])


@pytest.mark.parametrize("other", ["b.parquet.gz", "year=2020/b.parquet"])
def test_a_folder_of_which_files_would_be_left_out_is_refused(other: str, table, tmp_path) -> None:
    X, y = table
    parquet(tmp_path / "a.parquet", X, y=y)
    for hidden in (".a.parquet.crc", "_SUCCESS"):
        (tmp_path / hidden).write_bytes(b"")
    assert open_dataset(tmp_path, target="y").n_rows == 23
    (tmp_path / other).parent.mkdir(exist_ok=True)
    (tmp_path / other).write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    with pytest.raises(ValueError, match=rf"also holds {other}, which would not be read"):
        open_dataset(tmp_path, target="y")


def test_columns_are_chosen_and_text_becomes_indicators(table, tmp_path) -> None:
    X, y = table
    city = np.array(["Oslo", "Rome"])[y]
    path = parquet(tmp_path / "a.parquet", X, y=y, city=city, w=np.arange(23.0))
    columns = {"x2": None, "city": ["Rome", "Oslo"]}
    dataset = open_dataset(path, target="y", weight="w", columns=columns, chunk_rows=5)
    assert dataset.feature_names == ("x2", "city=Rome", "city=Oslo")
    expected = np.column_stack([X[:, 2], city == "Rome", city == "Oslo"])
    np.testing.assert_array_equal(rows_of(dataset)[0], expected)
    weights = np.concatenate([chunk.weight for chunk in dataset.chunks()])
    np.testing.assert_array_equal(weights, np.arange(23.0))
    known = open_dataset(path, target="y", columns={"city": ["Rome"]})
    with pytest.raises(ValueError, match=r"'Oslo' in .*row group 0, row 1 .*not among"):
        list(known.chunks())
    with pytest.raises(ValueError, match=r"'city' .* must hold numbers"):
        open_dataset(path, target="y")


def test_numbers_of_columns_are_chosen(table, tmp_path) -> None:
    np.save(tmp_path / "X.npy", table[0])
    dataset = open_dataset(tmp_path / "X.npy", target=table[1], columns=[3, 1])
    np.testing.assert_array_equal(rows_of(dataset)[0], table[0][:, [3, 1]])
    with pytest.raises(ValueError, match="between 0 and 3"):
        open_dataset(tmp_path / "X.npy", target=table[1], columns=[4])


def test_what_is_missing_is_named(table, tmp_path) -> None:
    X, y = table
    path = parquet(tmp_path / "a.parquet", X, y=y)
    with pytest.raises(ValueError, match=r"target must name a column .* 'label'"):
        open_dataset(path, target="label")
    with pytest.raises(ValueError, match="columns names 'age'"):
        open_dataset(path, target="y", columns=["age"])
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        open_dataset(tmp_path / "other.parquet", target="y")
    with pytest.raises(ValueError, match="one entry a row"):
        open_dataset(X, target=y[:-1])
    with pytest.raises(ValueError, match="chunk_rows must be an integer >= 1"):
        open_dataset(path, target="y", chunk_rows=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no file called \*.parquet"):
        open_dataset(tmp_path / "empty", target="y")


def test_data_without_rows_or_features_are_refused(tmp_path) -> None:
    parquet(tmp_path / "a.parquet", np.zeros((0, 2)), y=np.zeros(0))
    with pytest.raises(ValueError, match="holds no rows"):
        open_dataset(tmp_path / "a.parquet", target="y")
    parquet(tmp_path / "b.parquet", np.zeros((3, 0)), y=np.arange(3))
    with pytest.raises(ValueError, match="no features"):
        open_dataset(tmp_path / "b.parquet", target="y")


@pytest.mark.parametrize("as_expression", [False, True])
@pytest.mark.parametrize("rows", [3, 100])
def test_filters_pick_rows(rows: int, as_expression: bool, table, tmp_path) -> None:
    X, y = table
    parquet(tmp_path / "a.parquet", X, y=y, age=np.arange(23))
    parquet(tmp_path / "b.parquet", X, y=y, age=np.arange(23, 46))
    compute = pytest.importorskip("pyarrow.compute")
    age, column = np.arange(46), compute.field("age")
    filters = (column >= 5) & (column < 27) if as_expression else [("age", ">", 30)]
    kept = (age >= 5) & (age < 27) if as_expression else age > 30
    features = [f"x{k}" for k in range(X.shape[1])]
    found = open_dataset(tmp_path, target="y", columns=features, filters=filters, chunk_rows=rows)
    assert found.n_rows == kept.sum()
    for _ in range(2):  # a second pass reads the same chunks
        chunks = list(found.chunks())
        assert max(len(chunk.y) for chunk in chunks) <= rows
        expected = np.tile(X, (2, 1))[kept]
        np.testing.assert_array_equal(np.concatenate([c.X for c in chunks]), expected)
        np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), np.tile(y, 2)[kept])


def test_filters_that_cannot_be_applied_are_refused(table, tmp_path) -> None:
    X, y = table
    path = parquet(tmp_path / "a.parquet", X, y=y, age=np.arange(23))
    with pytest.raises(ValueError, match="holds no rows that pass the filters"):
        open_dataset(path, target="y", filters=[("age", ">", 99)])
    with pytest.raises(ValueError, match=r"filters cannot be applied to .*a\.parquet"):
        open_dataset(path, target="y", filters=[("height", ">", 99)])
    with pytest.raises(ValueError, match="filters must be an expression"):
        open_dataset(path, target="y", filters="age > 3")
    with pytest.raises(ValueError, match="filters are for Parquet files"):
        open_dataset(X, target=y, filters=[("x0", ">", 0)])
    X = X.copy()
    X[20, 1] = np.nan
    path = parquet(tmp_path / "b.parquet", X, y=y, age=np.arange(23))
    dataset = open_dataset(path, target="y", filters=[("age", ">", 9)])
    with pytest.raises(
        ValueError, match="row group 2, among the rows that pass the filters, row 6"
    ):
        SparseLogisticRegression().fit(dataset)


@pytest.mark.parametrize("name", ["a.parquet", "a.npy", "a.npz"])
def test_empty_files_are_refused(name: str, tmp_path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=name):
        open_dataset(tmp_path / name, target="y")


def test_files_of_a_folder_must_have_the_same_columns(table, tmp_path) -> None:
    X, y = table
    parquet(tmp_path / "a.parquet", X, y=y)
    parquet(tmp_path / "b.parquet", X[:, :3], y=y)
    with pytest.raises(ValueError, match=r"b\.parquet has no column 'x3'"):
        open_dataset(tmp_path, target="y")
    parquet(tmp_path / "b.parquet", X.astype(np.float32), y=y)
    with pytest.raises(ValueError, match=r"is float in .*b\.parquet and double"):
        open_dataset(tmp_path, target="y")


def test_two_columns_of_one_name_are_refused_where_they_are_used(tmp_path) -> None:
    parts = [pa.array(each) for each in ([1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [0, 1])]
    twice = pa.table(parts, names=["a", "a", "b", "y"])
    pq.write_table(twice, tmp_path / "b.parquet")
    for columns in (None, ["a"], {"a": None}):
        with pytest.raises(ValueError, match=r"b\.parquet has 2 columns of the name 'a'"):
            open_dataset(tmp_path / "b.parquet", target="y", columns=columns)
    with pytest.raises(ValueError, match="2 columns of the name 'a'"):
        open_dataset(tmp_path / "b.parquet", target="a", columns=["b"])
    dataset = open_dataset(tmp_path / "b.parquet", target="y", columns=["b"])
    np.testing.assert_array_equal(rows_of(dataset)[0], [[5.0], [6.0]])
    pq.write_table(twice.select([0, 2, 3]), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has 2 columns of the name 'a'"):
        open_dataset(tmp_path, target="y")


@pytest.mark.parametrize("content", [bytes(4096), b"a" * 5000 + b",b\n"])
def test_what_is_no_svmlight_file_is_told_in_one_short_line(content: bytes, tmp_path) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ValueError, match="neither a Parquet") as caught:
        open_dataset(tmp_path / "a.csv", target=None)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_labels_and_weights_are_no_features(table, tmp_path) -> None:
    X, y = table
    path = parquet(tmp_path / "a.parquet", X, y=y, w=np.ones(23))
    for name in ("y", "w"):
        with pytest.raises(ValueError, match=f"columns names '{name}', which is the target or"):
            open_dataset(path, target="y", weight="w", columns=["x0", name])
    with pytest.raises(ValueError, match="the one name 'x0'"):
        open_dataset(path, target="y", columns="x0")


def test_weights_of_text_are_refused(table, tmp_path) -> None:
    X, y = table
    path = parquet(tmp_path / "a.parquet", X, y=y, city=["Oslo"] * 23)
    with pytest.raises(ValueError, match=r"weight 'city' of .* is string, and must hold numbers"):
        open_dataset(path, target="y", weight="city", columns=["x0"])


def test_indices_outside_of_a_matrix_are_refused(table, tmp_path) -> None:
    parts = {"data": np.ones(4), "indices": np.array([0, 1, 0, -1]), "indptr": np.array([0, 2, 4])}
    np.savez(tmp_path / "a.npz", **parts, shape=(2, 2), y=np.array([0, 1]))
    dataset = open_dataset(tmp_path / "a.npz", target="y")
    with pytest.raises(ValueError, match="holds no CSR matrix"):
        SparseLogisticRegression().fit(dataset)


def test_a_matrix_by_columns_is_not_read_as_one_by_rows(tmp_path) -> None:
    sp.save_npz(tmp_path / "a.npz", sp.csc_matrix(np.array([[1.0, 2.0], [0.0, 3.0]])))
    with pytest.raises(ValueError, match=r"holds a CSC matrix: save X.tocsr\(\)"):
        open_dataset(tmp_path / "a.npz", target=None)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", ["a.svm", "a9a", "a9a.t"])
def test_text_files_have_any_name_and_count_features_from_zero_or_one(
    first: int, name: str, table, tmp_path
) -> None:
    X, y = table
    assert X[:, 0].any()
    dump_svmlight_file(X, y, str(tmp_path / name), zero_based=first == 0)
    found, labels = rows_of(open_dataset(tmp_path / name, target=None))
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, y)


def test_other_files_are_refused_and_leave_nothing_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.csv is neither a Parquet nor a NumPy nor a svmlight"):
        open_dataset(tmp_path / "a.csv", target=None)
    assert [each.name for each in tmp_path.iterdir()] == ["a.csv"]


def test_files_of_a_folder_are_not_held_open(table, tmp_path) -> None:
    X, y = table
    for k in range(12):
        parquet(tmp_path / f"{k:02}.parquet", X, y=y)
    before = len(list(Path("/proc/self/fd").iterdir()))
    dataset = open_dataset(tmp_path, target="y")
    assert dataset.n_rows == 12 * 23
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_a_file_that_is_written_again_is_another_one(table, tmp_path) -> None:
    X, y = table
    path = parquet(tmp_path / "a.parquet", X, y=y)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", np.asfortranarray(X))
    opened = [open_dataset(path, target="y")]
    opened += [open_dataset(tmp_path / name, target=y) for name in ("a.npy", "b.npy")]
    for dataset in opened:
        assert sum(len(chunk.y) for chunk in dataset.chunks()) == 23
    parquet(path, X + 1.0, y=y)
    np.save(tmp_path / "a.npy", X + 1.0)
    os.utime(tmp_path / "b.npy", ns=(0, 0))
    for dataset in opened:
        with pytest.raises(DataLostError, match="has changed since it was opened"):
            list(dataset.chunks())
    path.unlink()
    with pytest.raises(DataLostError, match="cannot be read any longer"):
        list(opened[0].chunks())


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ("Oslo", "must give a list of categories"),
        ({"Oslo", "Rome"}, "must give a list of categories"),
        ([], "gives no category"),
        (["Oslo", "Rome", "Oslo"], "twice"),
    ],
)
def test_categories_are_a_list_without_repeats(known: Any, message: str, table, tmp_path) -> None:
    X, y = table
    path = parquet(tmp_path / "a.parquet", X, y=y, city=["Oslo"] * 23)
    with pytest.raises(ValueError, match=message):
        open_dataset(path, target="y", columns={"x0": None, "city": known})


def test_categories_of_another_type_are_refused(table, tmp_path) -> None:
    X, y = table
    path = parquet(tmp_path / "a.parquet", X, y=y, city=["Oslo"] * 23)
    dataset = open_dataset(path, target="y", columns={"x0": None, "city": [1, 2]})
    with pytest.raises(ValueError, match="are no values of a column of string"):
        list(dataset.chunks())
