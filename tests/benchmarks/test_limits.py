"""Limits of time and memory at the size of real data: what a fit takes beyond what it was given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.limits import Case, cases, taken

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1.0
# one of each kind of fit that once went far beyond its limit, or could: a step on many samples, a
# product with a kernel a class, a linear program, the largest kappa of every class
LONG = (
    *(Case(m, "dense", 8, (("kernel", "rbf"),)) for m in ("SVC", "NuSVC", "L2SVC", "DWD")),
    *(Case(m, "sparse", 8, (("kernel", "linear"),)) for m in ("SVC", "NuSVC", "DWD")),
    *(Case(m, "sparse", 8, (("kernel", "linear"),)) for m in ("MarginFDA", "MarginMPM")),
    Case("MarginMPM", "dense", 8, (("kernel", "rbf"),)),
    Case("NuSVC", "dense", 8, (("kernel", "linear"),)),
    Case("DDAGClassifier", "sparse", 8),
    Case("MulticlassSVC", "sparse", 8, (("loss", "hinge"), ("penalty", "l1"))),
)
MAPPED = """
import warnings; warnings.simplefilter("ignore")
import sys, numpy as np, proxmargin
from threadpoolctl import threadpool_limits
def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(l.split()[1]) / 1024 for l in lines if l.startswith("RssAnon:"))
X = np.load(sys.argv[1], mmap_mode="r")
y = np.load(sys.argv[2])
peak = []
model = getattr(proxmargin, sys.argv[3])(callbacks=[lambda report: peak.append(anonymous())])
model.fit(X[:500], y[:500])
before = anonymous()
peak.clear()
with threadpool_limits(1):
    model.set_params(max_iter=20).fit(X, y)
print(max(peak) - before)
"""


def test_every_estimator_is_measured_on_dense_and_on_sparse_data() -> None:
    named = {(case.model, case.data) for case in cases()}
    assert len(named) == 2 * len({model for model, _ in named}) == 28


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG, ids=lambda case: f"{case.title} {case.data}")
def test_a_fit_ends_in_time_with_a_certified_model(case: Case) -> None:
    found = taken(case, limit=LIMIT)
    assert found.real
    assert np.isfinite(found.gap)
    # other processes may be busy, too
    assert min(found.seconds, found.busy) <= LIMIT + 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("model", "dtype"), [("SVC", np.float32), ("L2SVC", np.float64)])
def test_a_memory_map_is_not_loaded_whole(model: str, dtype: type, tmp_path: Path) -> None:
    rng, shape = np.random.default_rng(0), (100_000 if dtype is np.float64 else 200_000, 500)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", dtype, shape)
    for start in range(0, shape[0], 10_000):
        X[start : start + 10_000] = rng.standard_normal((10_000, shape[1]))
    np.save(tmp_path / "y.npy", (X[:, 0] + X[:, 1] > 0).astype(np.int64))
    assert X.nbytes == 400_000_000
    X.flush()
    done = subprocess.run(
        [sys.executable, "-c", MAPPED, tmp_path / "X.npy", tmp_path / "y.npy", model],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert float(done.stdout) < 100.0  # megabytes
