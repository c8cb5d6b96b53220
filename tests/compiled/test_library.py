"""Kernels compiled ahead of time: the machine code of Numba's, found by types, or refused."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

from proxmargin import HuberizedSVC
from proxmargin.compiled import build, library
from proxmargin.compiled.library import Library, Refused
from proxmargin.compiled.products.products import across, gather
from tests.compiled.signatures import described
from tests.conftest import lacking

built = pytest.mark.skipif(
    library.loaded() is None, reason="no library is built: python3 run.py build"
)

RESULTS = """
import sys, warnings
import numpy as np
from scipy.sparse import csr_array
from proxmargin import HuberizedSVC, SparseLogisticRegression, SVC, L2SVC, margin_path
from proxmargin.compiled import library
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((80, 12)); y = X[:, 0] + rng.standard_normal(80) > 0
parts = [margin_path(SparseLogisticRegression(), X, y).coefs]
parts.append(HuberizedSVC(alpha=0.01).fit(csr_array(X * (X > 0)), y).coef_)
for model in (HuberizedSVC(alpha=0.01), SVC(kernel="rbf"), L2SVC()):
    parts.append(model.fit(X, y).decision_function(X))
print(*np.concatenate([np.ravel(part) for part in parts]).tolist())
print(library.loaded() is not None, [name for name in ("numba", "llvmlite") if name in sys.modules])
"""
KERNELS = """
import sys
import numpy as np
from proxmargin.compiled.products.products import across
from proxmargin.compiled.solvers.newton import curvature_weights
from proxmargin.losses import Logistic
from proxmargin.compiled import library
rng = np.random.default_rng(0)
X, v, ones, out = rng.standard_normal((7, 6)), rng.standard_normal(7), np.ones(7), np.zeros(7)
curvature_weights(Logistic().scalars, v, np.sign(v), ones, 0.0, out)
across(X, v, total := np.zeros(6))
print(*out.tolist(), *total.tolist())
print(library.loaded() is not None, [name for name in ("numba", "llvmlite") if name in sys.modules])
"""
PLAIN = """
import sys, warnings
import numpy as np
import proxmargin as pm
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 6)); y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
pm.SVC().fit(X, y).predict(X)
pm.margin_path(pm.HuberizedSVC(), X, y)
pm.SparseLogisticRegressionCV(cv=3).fit(X, y)
pm.compare(X, y, models=["L2SVC", "SparseLogisticRegression"], cv=3, repeats=1, progress=False)
print([name for name in ("numba", "llvmlite") if name in sys.modules])
"""


def told(code: str, *arguments: str, **settings: str) -> list[str]:
    """The lines that a process of its own prints."""
    run = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(run, env={**os.environ, **settings}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def fitted(seed: int = 0) -> bytes:
    X = np.random.default_rng(seed).standard_normal((50, 8))
    return HuberizedSVC(alpha=0.01).fit(X, X[:, 0] > 0.1).coef_.tobytes()


@built
@pytest.mark.parametrize("code", [KERNELS, pytest.param(RESULTS, marks=pytest.mark.slow)])
def test_results_are_those_of_numba_bit_for_bit(code: str) -> None:
    level = library.loaded().level  # type: ignore[union-attr]
    settings = {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "PROXMARGIN_KERNELS": "numba"}
    ahead, just_in_time = told(code), told(code, **settings)
    assert ahead[1] == "True []"
    assert just_in_time[1] == "False ['numba', 'llvmlite']"
    found, expected = (np.array(lines[0].split(), float) for lines in (ahead, just_in_time))
    np.testing.assert_array_equal(found, expected)


@built
def test_fits_paths_cross_validation_and_comparisons_import_no_compiler() -> None:
    assert told(PLAIN) == ["[]"]


@built
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_other_processes_compute_the_same(method: str) -> None:
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(fitted).result() == fitted()


def test_threads_compute_the_same() -> None:
    expected = [fitted(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fitted, range(4))) == expected


@built
def test_threads_that_are_first_share_the_kernel() -> None:
    kernel = library.Kernel(across.py_func, library.loaded(), None)  # type: ignore[union-attr]
    out = np.zeros((8, 3))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda row: kernel(np.ones((2, 3)), np.ones(2), row), out))
    np.testing.assert_array_equal(out, 2.0)


@built
def test_arrays_of_any_order_that_may_be_read_alone_fit(rng: np.random.Generator) -> None:
    X, weights = rng.standard_normal((7, 6)), rng.standard_normal(7)
    X.setflags(write=False)
    for matrix in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        out = np.zeros(6)
        across(matrix, weights, out)
        np.testing.assert_allclose(out, weights @ X)


@built
def test_what_a_kernel_writes_must_be_writable() -> None:
    out = np.zeros((1, 1))
    out.setflags(write=False)
    one, at = np.ones(1), np.array([0, 1], dtype=np.int32)
    with pytest.raises(Exception, match="readonly"):
        gather(one, at[:1], at, np.ones((1, 1)), out)
    lacking.lines.clear()
    assert not out.any()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the library, to be spoilt."""
    return Path(copytree(library.FOLDER, tmp_path / "library"))


@built
@pytest.mark.parametrize("damage", ["table", "code", "sources"])
def test_a_damaged_or_foreign_library_is_refused(damage: str, copy: Path) -> None:
    known = library.table(copy)
    assert known["complete"]
    table = copy / "kernels.json"
    if damage == "table":
        table.write_bytes(table.read_bytes()[:-1] + b" ")
    elif damage == "code":
        (code,) = copy.glob(f"kernels-{library.loaded().level}*")  # type: ignore[union-attr]
        code.write_bytes(code.read_bytes()[:-1] + b"x")
    else:
        table.write_text(json.dumps({**known, "digest": "another"}))
    reason = {"sources": "other sources, or for another system", "code": "is damaged"}
    with pytest.raises(library.UNUSABLE, match=reason.get(damage)):
        Library(copy)


def test_damaged_object_code_is_compiled_again(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(build, "CACHE", tmp_path)
    path = tmp_path / "key"
    assert build.kept("key") is None
    code = build.Compiled("kernel_1", b"code", ["double"], "0164", "64", [])
    path.write_bytes(gzip.compress(pickle.dumps(tuple(code))))
    assert build.kept("key") == code
    path.write_bytes(path.read_bytes()[:-1])
    assert build.kept("key") is None


def test_object_code_is_named_by_the_files_that_its_kernel_imports(monkeypatch) -> None:
    listed, _, modules = build.signatures()
    before = {each: build._key(each, modules, "generic") for each in listed}
    read = Path.read_text

    def edited(path: Path, **options: Any) -> str:
        return read(path, **options) + ("# edited" if path.name == "nets.py" else "")

    monkeypatch.setattr(Path, "read_text", edited)
    build._content.cache_clear()
    changed = {
        each.kernel for each, key in before.items() if build._key(each, modules, "generic") != key
    }
    build._content.cache_clear()
    assert "compiled.solvers.proximal_newton.newton_steps" in changed  # imports it
    assert "compiled.paths.driver.advance" in changed  # is given one, and imports what imports it
    assert "compiled.products.products.across" not in changed
    assert len(set(before.values())) == len(listed)


@built
def test_a_library_that_is_gone_is_built_again(copy: Path, monkeypatch) -> None:
    monkeypatch.setattr(library, "FOLDER", copy)
    assert build.is_there(partly=False)
    monkeypatch.setattr(library, "levels", lambda: {"none": ""})
    assert not build.is_there(partly=False)


@built
def test_a_refusal_is_told_and_numba_takes_over(
    copy: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    next(copy.glob("kernels-*")).write_bytes(b"")
    monkeypatch.setattr(library, "FOLDER", copy)
    assert library.loaded.__wrapped__() is None
    assert "damaged" in caplog.text
    assert "compiled on their first use" in caplog.text


@built
def test_a_lesser_processor_takes_a_lesser_library(copy: Path, monkeypatch) -> None:
    here = library.loaded().level  # type: ignore[union-attr]
    monkeypatch.setattr(library, "levels", lambda: {"none": "", here: ""})
    assert Library(copy).level == here
    monkeypatch.setattr(library, "levels", lambda: {"none": ""})
    with pytest.raises(Refused, match="this processor"):
        Library(copy)


def test_the_list_of_signatures_is_sorted_and_says_what_it_means() -> None:
    numba = pytest.importorskip("numba")
    types = numba.types
    found, first, modules = build.signatures()
    assert len(found) == len(set(found)) > len(first) > 0
    assert [each.kernel for each in found] == sorted(each.kernel for each in found)
    assert "PathState" in modules
    example = np.zeros((2, 3), np.float32).T, 1, None, np.zeros(1, [("a", "f8"), ("b", "i8")])[0]
    text = described(example)
    assert text == "(float32:2F,int64,none,{a:float64,b:int64})"
    (kind,) = build.types_of(text, modules)
    array = types.Array(types.float32, 2, "F")
    parts = (array, types.int64, types.none, numba.from_dtype(example[3].dtype))
    assert kind == types.Tuple(parts)


LEVELS = """
import numpy as np
from proxmargin import HuberizedSVC
from proxmargin.compiled import library
X = np.random.default_rng(0).standard_normal((50, 8))
print(library.loaded().level, *HuberizedSVC(alpha=0.01, tol=1e-10).fit(X, X[:, 0] > 0.1).coef_[0])
"""


@built
@pytest.mark.slow
@pytest.mark.parametrize("level", library.levels())
def test_every_level_that_was_built_and_runs_here_finds_the_same_optimum(level: str) -> None:
    table = library.table(library.FOLDER)
    own = library.loaded().level  # type: ignore[union-attr]
    better = list(library.levels()).index(level) < list(library.levels()).index(own)
    if level not in table["libraries"] or better:
        pytest.skip(f"there is no library of {level}, or it does not run here")
    X = np.random.default_rng(0).standard_normal((50, 8))
    expected = HuberizedSVC(alpha=0.01, tol=1e-10).fit(X, X[:, 0] > 0.1).coef_[0]
    (line,) = told(LEVELS, PROXMARGIN_KERNELS=level)
    taken, *found = line.split()
    assert taken == level
    np.testing.assert_allclose(np.array(found, float), expected, atol=1e-8)


LESSER = """
import sys
from pathlib import Path
from proxmargin.compiled import library
library.FOLDER = Path(sys.argv[1])
if len(sys.argv) > 2:
    from proxmargin.compiled import build
    sys.exit(build.main(sys.argv[2], "--first"))
import numpy as np
import proxmargin as pm
from proxmargin.compiled import library
rng = np.random.default_rng(0)
X = rng.standard_normal((80, 12))
y = X[:, 0] + rng.standard_normal(80) > 0
print(library.loaded().level)
for model in (pm.SVC(kernel="rbf"), pm.L2SVC(), pm.SparseLogisticRegression(alpha=0.01)):
    print(model.fit(X, y).certificate_.relative_gap <= 1e-6)
print("numba" in sys.modules)
"""


@built
@pytest.mark.slow
def test_a_library_for_lesser_processors_certifies_fits(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    levels = list(library.levels())
    lesser = levels[levels.index(library.loaded().level) + 1 :]  # type: ignore[union-attr]
    if not lesser:
        pytest.skip("this processor is of the least level")
    told(LESSER, str(tmp_path), lesser[0])
    assert told(LESSER, str(tmp_path)) == [lesser[0], "True", "True", "True", "False"]


ENDED = """
import os, signal, sys, threading
from multiprocessing import active_children
from pathlib import Path
from proxmargin.compiled import build, library
library.FOLDER = Path(sys.argv[1])

def end():
    while not active_children():
        threading.Event().wait(0.01)
    threading.Event().wait(1.0)
    print(*(each.pid for each in active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end).start()
build.main("--first")
"""


@pytest.mark.slow
def test_an_ended_build_leaves_no_process_and_no_file(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    settings = {**os.environ, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    run = [sys.executable, "-c", ENDED, str(tmp_path / "library")]
    done = subprocess.run(run, env=settings, capture_output=True, text=True)
    assert done.returncode == 143
    for number in done.stdout.split():
        stat = Path("/proc", number, "stat")  # they end soon, and their parent is no more
        assert not stat.exists() or stat.read_text().split()[2] in "ZX"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
