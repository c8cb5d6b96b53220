"""Damaged and crafted files load as what they say, or are refused in one sentence.

``PROXMARGIN_FUZZ=10000`` sets the number of cases of each test; `-s` shows their outcomes.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import os
import time
import warnings
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

import proxmargin
from proxmargin import load_model, read_data, save_model
from proxmargin.data.kernels import Rbf
from proxmargin.files.errors import DataError, ModelFileError
from proxmargin.losses import HuberizedHinge
from proxmargin.penalties import Ball
from tests.files.model_files import assert_same, learned
from tests.fuzz import mutations

CASES = int(os.environ.get("PROXMARGIN_FUZZ", "150"))
# bytes of memory that files may believe to be free
FREE = 2**28
# bytes that reading may add to the process
GROWTH = 2**29
# a file of a few kilobytes is read in milliseconds; the rest is for a busy machine, seconds
LONGEST = 10.0

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("error::RuntimeWarning"),
]


@pytest.fixture(autouse=True)
def bounded_memory(monkeypatch):
    """Files are read as on a small machine, and must keep to it."""
    for module in ("runtime.memory", "files.tables.text", "files.tables.labels"):
        monkeypatch.setattr(f"proxmargin.{module}.free_bytes", lambda: FREE)
    before = peak_memory()
    yield
    assert peak_memory() - before < GROWTH


def peak_memory() -> int:
    resource = pytest.importorskip("resource")
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# -- data files -----------------------------------------------------------------------------------

X = np.round(np.random.default_rng(5).standard_normal((12, 3)), 3)
X[::4, 1] = 0.0
WORDS = np.array(["no", "yes", "perhaps"])[np.arange(12) % 3]


def table_text(separator):
    rows = [["height", "width", "weight", "label"], *np.column_stack([X.astype(str), WORDS])]
    return "\n".join(separator.join(row) for row in rows) + "\n"


def svmlight_text():
    rows = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(x) if v) for x in X.tolist()]
    return "\n".join(f"{2 * (i % 2) - 1} {row}" for i, row in enumerate(rows)) + "\n"


def npz_arrays(kind):
    if kind == "dense":
        return {"X": X, "y": WORDS, "feature_names": np.array(["a", "b", "c"])}
    m = sp.csr_array(X)
    parts = {"data": m.data, "indices": m.indices, "indptr": m.indptr, "shape": np.array(m.shape)}
    return {**parts, "y": np.arange(12) % 2}


def npz_members(kind):
    return {f"{name}.npy": mutations.npy(array) for name, array in npz_arrays(kind).items()}


def columnar_bytes(suffix):
    pandas, stream = pytest.importorskip("pandas"), io.BytesIO()
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(label=WORDS)
    (frame.to_parquet if suffix == ".parquet" else frame.to_feather)(stream)
    return stream.getvalue()


TEXTS = {
    ".csv": (table_text(","), ","),
    ".tsv": (table_text("\t"), "\t"),
    ".svm": (svmlight_text(), " "),
}
PACKED = {"": bytes, ".gz": lambda data: gzip.compress(data, mtime=0), ".bz2": bz2.compress}
UNPACKED = {".gz": gzip.decompress, ".bz2": bz2.decompress}
DATA = [(".csv", ""), (".csv", ".gz"), (".tsv", ""), (".tsv", ".gz"), (".svm", ""), (".svm", ".gz"),
        (".svm", ".bz2"), (".npz", "dense"), (".npz", "sparse"), (".parquet", ""),
        (".feather", "")]  # fmt: skip


def whole_data(suffix, kind):
    if suffix in TEXTS:
        return PACKED[kind](TEXTS[suffix][0].encode())
    if suffix == ".npz":
        compression = {"dense": 0, "sparse": 8}[kind]
        return mutations.zipped(npz_members(kind).items(), compression)
    return columnar_bytes(suffix)


def crafted_data(rng, suffix, kind):
    if suffix in TEXTS:
        return PACKED[kind](mutations.edited(rng, *TEXTS[suffix]).encode())
    if suffix == ".npz":
        compression = {"dense": 0, "sparse": 8}[kind]
        return mutations.zipped(mutations.changed_members(rng, npz_members(kind)), compression)
    return mutations.damaged(rng, columnar_bytes(suffix))


def said_by_table(content, separator):
    """Features as Python reads the same text, an independent account of what it says."""
    text = content.decode("utf-8-sig")
    lines = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=separator != "\t"
    )
    header, *rows = [line for line in lines if any(cell.strip() for cell in line)]
    names = [name.strip() for name in header]
    rows = [row for row in rows if [cell.strip() for cell in row] != names]  # files that are joined
    usual = [name for name in names if name.lower() in ("target", "label", "class", "y")]
    target = names.index(usual[0] if len(usual) == 1 else names[-1])
    truth = {"true": 1.0, "false": 0.0}
    return [
        [truth.get(c.strip().lower()) if c.strip().lower() in truth else float(c) for c in cells]
        for cells in ([c for j, c in enumerate(row[: len(names)]) if j != target] for row in rows)
    ]


def said_by_svmlight(content):
    lines = [line.partition(b"#")[0].split() for line in content.split(b"\n")]
    rows = [
        {int(index): float(value) for index, value in (e.split(b":") for e in line[1:])
         if index != b"qid"}
        for line in lines if line
    ]  # fmt: skip
    low = 0 if any(0 in row for row in rows) else 1
    width = max(max(row, default=low) for row in rows) + 1 - low
    return [[row.get(j + low, 0.0) for j in range(width)] for row in rows]


def said_by_npz(content):
    with np.load(io.BytesIO(content)) as arrays:
        if "X" in arrays:
            return arrays["X"].astype(float)
        parts = (
            arrays["data"].ravel().astype(float),
            arrays["indices"].ravel(),
            arrays["indptr"].ravel(),
        )
        return sp.csr_array(parts, shape=tuple(arrays["shape"].ravel())).toarray()


def said_by(content, suffix, kind):
    content = UNPACKED.get(kind, bytes)(content)
    if suffix == ".svm":
        return said_by_svmlight(content)
    return said_by_npz(content) if suffix == ".npz" else said_by_table(content, TEXTS[suffix][1])


def assert_sentence(error, path):
    text = str(error)
    assert text.startswith(str(path))
    assert text.endswith(".")
    assert "\n" not in text


def outcome_of_data(path, content, suffix, kind):
    path.write_bytes(content)
    try:
        table = read_data(path)
    except DataError as error:
        assert_sentence(error, path)
        return "refused"
    assert table.y.shape == (table.X.shape[0],)
    entries = table.X.toarray() if sp.issparse(table.X) else table.X
    assert np.isfinite(entries).all()
    if suffix in TEXTS or suffix == ".npz":
        said = np.array(said_by(content, suffix, kind), dtype=float)
        # a first column without a name names the samples
        np.testing.assert_allclose(entries, said[:, table.ids is not None :], rtol=1e-6)
    return "read"


@pytest.mark.parametrize("craft", [False, True], ids=["damaged", "crafted"])
def test_data_files_are_read_as_they_say_or_refused(tmp_path, craft):
    outcomes = Counter()
    for case in range(CASES):
        rng = np.random.default_rng([1, craft, case])
        suffix, kind = DATA[case % len(DATA)]
        content = (
            crafted_data(rng, suffix, kind)
            if craft
            else mutations.damaged(rng, whole_data(suffix, kind))
        )
        path = tmp_path / f"d{suffix}{kind if suffix in TEXTS else ''}"
        outcomes[f"{suffix} {timed(case, outcome_of_data, path, content, suffix, kind)}"] += 1
    report("crafted data" if craft else "damaged data", outcomes)
    assert {name.split()[1] for name in outcomes} == {"read", "refused"}


# -- models ---------------------------------------------------------------------------------------


def fitted_models():
    labels = np.arange(12) % 2
    sparse = sp.csr_array(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield learned()
        yield learned(("a", "b", "ç"), penalty=Ball(p=1.5, radius=0.5), loss=HuberizedHinge(0.3))
        yield proxmargin.MulticlassSVC(class_weight={"no": 2.0}, tol=1e-2).fit(X, WORDS)
        yield proxmargin.SVC(kernel="rbf", standardize=True, tol=1e-2).fit(X, labels)
        yield proxmargin.SVC(kernel=Rbf(0.3), tol=1e-2).fit(sparse, WORDS)
        yield proxmargin.L2SVC(kernel="precomputed", tol=1e-2).fit(X @ X.T, labels)
        yield proxmargin.NuSVC(kernel="linear", tol=1e-2).fit(X, labels)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Models and their files, the last with a signature."""
    path, found = tmp_path_factory.mktemp("models") / "m.pmz", []
    for model in fitted_models():
        save_model(model, path)
        found.append((load_model(path), path.read_bytes()))
    save_model(model, path, sign=lambda document: b"me" * 16)
    return [*found, (load_model(path), path.read_bytes())]


def outcome_of_damage(path, model, content):
    path.write_bytes(content)
    try:
        again = load_model(path)
    except ModelFileError as error:
        assert_sentence(error, path)
        return "refused"
    assert_same(model, again)
    return "the same model"


def outcome_of_craft(path, content):
    path.write_bytes(content)
    try:
        model = load_model(path)
    except ModelFileError as error:
        assert_sentence(error, path)
        return "refused"
    assert_says(model, path, content)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if model.n_features_in_ < 100:
            predictions = model.predict(np.ones((2, model.n_features_in_)))
            assert set(predictions.tolist()) <= set(model.classes_.tolist())
    return "loaded"


def assert_says(model, path, content):
    """Stored again, the model says what its file said."""
    save_model(model, path)
    before, after = mutations.unzipped(content), mutations.unzipped(path.read_bytes())
    said, says = (json.loads(m["model.json"], parse_int=float) for m in (before, after))
    for part in ("estimator", "settings", "fitted", "certificate"):
        assert said[part] == says[part]
    for name in says["members"]:
        first, second = (np.load(io.BytesIO(members[name])) for members in (before, after))
        np.testing.assert_array_equal(first, second)


def test_a_damaged_model_is_the_same_or_refused(tmp_path, stored):
    outcomes = Counter()
    for case in range(CASES):
        rng = np.random.default_rng([2, case])
        model, content = stored[case % len(stored)]
        content = mutations.damaged(rng, content)
        outcomes[timed(case, outcome_of_damage, tmp_path / "m.pmz", model, content)] += 1
    report("damaged models", outcomes)
    assert outcomes["refused"] > CASES / 2


def test_a_crafted_model_is_what_it_says_or_refused(tmp_path, stored):
    outcomes = Counter()
    for case in range(CASES):
        rng = np.random.default_rng([3, case])
        content = mutations.crafted_model(rng, stored[case % len(stored)][1])
        outcomes[timed(case, outcome_of_craft, tmp_path / "m.pmz", content)] += 1
    report("crafted models", outcomes)
    assert set(outcomes) == {"refused", "loaded"}


def timed(case, work, *arguments):
    """The outcome of a case; a failure says which it was."""
    start = time.process_time()
    try:
        return work(*arguments)
    except BaseException as error:
        error.add_note(f"in case {case}")
        raise
    finally:
        assert time.process_time() - start < LONGEST


def report(what, outcomes):
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items(), key=str))
    print(f"{what}: {counts}")
