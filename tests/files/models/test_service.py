"""A service that loads a calibrated pipeline and predicts: soon, quickly, and always the same."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

from proxmargin import L2SVC, CalibratedMargin, load_model, save_model
from proxmargin.compiled import library

X, Y = shuffle(*load_breast_cancer(return_X_y=True), random_state=0)
MOST_SECONDS = 1.5  # of CPU time until the first prediction, after the import of scikit-learn
MOST_PER_ROW = 200e-6  # seconds of CPU time

SERVICE = """
import sys, time
import sklearn.pipeline, sklearn.preprocessing
begun = time.process_time()
import numpy as np
import proxmargin
model = proxmargin.load_model(sys.argv[1])
rows = np.load(sys.argv[2])
model.predict_proba(rows[:1])
first = time.process_time() - begun
def per_row(row, times=100):
    begun = time.process_time()
    for _ in range(times):
        model.predict_proba(row)
    return (time.process_time() - begun) / times
print(first, min(per_row(rows[:1]) for _ in range(20)), "numba" in sys.modules)
print(model.predict_proba(rows).tobytes().hex())
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> tuple[Path, Path, bytes]:
    """The file of a model, that of rows, and the bytes of their probabilities."""
    folder = tmp_path_factory.mktemp("service")
    pipeline = make_pipeline(StandardScaler(), L2SVC(C=0.1))
    model = CalibratedMargin(pipeline, cv=3, ensemble=False).fit(X, Y)
    save_model(model, folder / "model.pmz")
    np.save(folder / "rows.npy", X)
    return folder / "model.pmz", folder / "rows.npy", model.predict_proba(X).tobytes()


def probabilities(path: Path) -> bytes:
    return load_model(path).predict_proba(X).tobytes()


@pytest.mark.slow
def test_a_process_predicts_soon_and_quickly(served) -> None:
    path, rows, expected = served
    command = [sys.executable, "-c", SERVICE, str(path), str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    times, found = done.stdout.splitlines()
    first, per_row, has_numba = times.split()
    assert bytes.fromhex(found) == expected
    assert float(first) < MOST_SECONDS
    assert float(per_row) < MOST_PER_ROW
    if library.loaded() is not None:  # else kernels are compiled just in time, which imports it
        assert has_numba == "False"


def test_threads_share_a_model_to_the_bit(served) -> None:
    path, _, expected = served
    model = load_model(path)
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: model.predict_proba(X).tobytes(), range(40))
    assert set(found) == {expected}


@pytest.mark.parametrize("way", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_processes_predict_the_same_bits(served, way) -> None:
    path, _, expected = served
    context = multiprocessing.get_context(way)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert set(pool.map(probabilities, [path] * 4)) == {expected}
