"""`python -m benchmarks startup`: the first fit of a process, with kernels on disk and without.

And one kernel both ways: as Numba compiles it on first use, and ahead of time by a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from shutil import which
from time import process_time
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from benchmarks.datasets import Floats, load
from benchmarks.report import RESULTS, table, write_section

# what is fitted, in words, and the code; the data are X, y
FITS = {
    "SVC": "pm.SVC().fit(X, y)",
    "SVC, rbf": "pm.SVC(kernel='rbf').fit(X, y)",
    "L2SVC": "pm.L2SVC().fit(X, y)",
    "LogisticRegression": "pm.LogisticRegression().fit(X, y)",
    "NuSVC": "pm.NuSVC().fit(X, y)",
    "DWD": "pm.DWD().fit(X, y)",
    "MarginFDA": "pm.MarginFDA().fit(X, y)",
    "MarginMPM": "pm.MarginMPM().fit(X, y)",
    "HuberizedSVC": "pm.HuberizedSVC(alpha=0.01, l1_ratio=0.5).fit(X, y)",
    "SquaredHingeSVC": "pm.SquaredHingeSVC(alpha=0.01, l1_ratio=0.5).fit(X, y)",
    "SparseLogisticRegression": "pm.SparseLogisticRegression(alpha=0.01).fit(X, y)",
    "ElasticNetSVC": "pm.ElasticNetSVC(alpha=0.01, l1_ratio=0.5).fit(X, y)",
    "MulticlassSVC": "pm.MulticlassSVC().fit(X, np.digitize(X[:, [0]].sum(1), [-0.5, 0.5]))",
    "path, SparseLogisticRegression": "pm.margin_path(pm.SparseLogisticRegression(), X, y)",
    "path, HuberizedSVC": "pm.margin_path(pm.HuberizedSVC(), X, y)",
}
LAYOUTS = {"tall": (300, 20), "wide": (40, 300), "sparse": (300, 60)}  # samples, features
PROCESS = """
import json, time
start = time.process_time()
import sklearn
import sklearn.utils.validation
told = {"sklearn": time.process_time() - start}
import warnings
import numpy as np
from scipy.sparse import csr_array
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((SAMPLES, FEATURES))
y = X[:, 0] + rng.standard_normal(SAMPLES) > 0
X = csr_array(X * (rng.random(X.shape) < 0.2)) if SPARSE else X
start = time.process_time()
import proxmargin as pm
for name in ("import and first fit", "second fit"):
    CODE
    told[name] = time.process_time() - start
    start = time.process_time()
print(json.dumps(told))
"""
REPEATS = 3  # of a process with kernels on disk: the fastest counts
SWEPT = "a9a"  # data of the sweeps: many sparse rows
SWEEPS = 20  # that are timed: a tenth of a second
STRENGTH = 1e-3  # of the l1 norm: some coefficients are zero
CALL = "import benchmarks.startup as b; b._by_numba(b.Sweep(*b.TOY))"
TOY = (  # two samples of a feature
    *(np.ones(2), np.arange(2, dtype=np.int32), np.array([0, 2], np.int32)),
    *(np.ones(2), np.ones(2), np.zeros(1), np.zeros(2), np.ones(1)),
)
# logistic coordinate descent: a sweep over columns, as `sweep_sparse` of compiled/solvers/sweeps.py
SOURCE = r"""
#include <math.h>
#include <stdint.h>
static double soft(double t, double l1) { return t > l1 ? t - l1 : t < -l1 ? t + l1 : 0.0; }
void sweep(int64_t p, const double *data, const int32_t *indices, const int32_t *indptr,
           const double *signs, const double *weights, double *coef, double *scores,
           const double *major, double l1) {
    for (int64_t j = 0; j < p; j++) {
        double slope = 0.0, old = coef[j];
        for (int32_t e = indptr[j]; e < indptr[j + 1]; e++) {
            int32_t i = indices[e];
            double u = signs[i] * scores[i], z = exp(-fabs(u));
            double descent = (u > 0.0 ? z : 1.0) / (1.0 + z);
            slope -= weights[i] * signs[i] * data[e] * descent;
        }
        if (major[j] <= 0.0) continue;
        double next = soft(major[j] * old - slope, l1) / major[j];
        if (next == old) continue;
        coef[j] = next;
        for (int32_t e = indptr[j]; e < indptr[j + 1]; e++)
            scores[indices[e]] += (next - old) * data[e];
    }
}
"""
PORTABLE = "x86-64-v2"  # what a wheel may assume of the processor
FIRST = "import and first fit"
REMARKS = """\
- CPU seconds of a process of its own for each cell: `import proxmargin` and the first fit, after
  `import sklearn`, which alone takes {imported:.2f} s. Compiling: with an empty folder of kernels.
  Cached: the same again, with the kernels on disk; the fastest of {repeats} processes. The last
  column is the second fit of that process, in milliseconds."""
KERNEL = """\
One kernel both ways, a sweep of logistic coordinate descent over the columns of a9a (the mean of
{sweeps} sweeps): `sweep_sparse` as Numba compiles it for this processor, and the same loops in C,
built with `-O3` for this processor and for {portable}, which a wheel could assume. Load: CPU
seconds of a process that does nothing else, over one that imports NumPy."""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fits", nargs="+", choices=tuple(FITS), default=list(FITS))
    parser.add_argument("--layouts", nargs="+", choices=tuple(LAYOUTS), default=list(LAYOUTS))
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    rows = []
    for name in arguments.fits:
        row = [name]
        for layout in arguments.layouts:
            compiling, cached = _both(FITS[name], layout)
            row += [f"{value:.2f}" for value in (compiling[FIRST], cached[FIRST])]
            row.append(f"{1e3 * cached['second fit']:.2g}")
        rows.append(row)
        print(" ".join(row), flush=True)
    head = ["first fit", *(h for layout in arguments.layouts for h in _headings(layout))]
    imported = min(_process("pass", "tall", os.environ)["sklearn"] for _ in range(REPEATS))
    parts = [
        REMARKS.format(imported=imported, repeats=REPEATS),
        table(head, rows),
        KERNEL.format(sweeps=SWEEPS, portable=PORTABLE),
        table(["kernel", "build s", "load s", "a sweep, ms"], _kernel_rows()),
    ]
    write_section("startup", "The first fit of a process", "\n\n".join(parts), arguments.results)
    return 0


def _headings(layout: str) -> tuple[str, ...]:
    return f"{layout}: compiling", "cached", "ms"


def _both(code: str, layout: str) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """What a process tells that compiles, and the fastest of those that find kernels on disk."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        compiling = _process(code, layout, environment)
        again = [_process(code, layout, environment) for _ in range(REPEATS)]
    return compiling, min(again, key=lambda told: told[FIRST])


def _process(code: str, layout: str, environment: Mapping[str, str]) -> dict[str, float]:
    samples, features = LAYOUTS[layout]
    words = {"SAMPLES": samples, "FEATURES": features, "SPARSE": layout == "sparse", "CODE": code}
    script = PROCESS
    for word, value in words.items():
        script = script.replace(word, str(value))
    one_thread = {**environment, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=one_thread, capture_output=True, text=True, check=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


# ---- one kernel both ways ----------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """The arguments of a sweep of logistic coordinate descent at zero coefficients."""

    data: Floats
    indices: Any
    indptr: Any
    signs: Floats
    weights: Floats
    coef: Floats
    scores: Floats
    major: Floats

    @classmethod
    def of(cls, name: str) -> Sweep:
        chosen = load(name)
        n, p = chosen.design.shape
        columns = csc_array(chosen.design)
        squares = np.asarray(columns.multiply(columns).sum(axis=0)).ravel()
        return cls(
            data=columns.data,
            indices=columns.indices.astype(np.int32),
            indptr=columns.indptr.astype(np.int32),
            signs=chosen.labels,
            weights=np.full(n, 1.0 / n),
            coef=np.zeros(p),
            scores=np.zeros(n),
            major=0.25 * squares / n,
        )

    def milliseconds(self, run: Callable[..., Any]) -> float:
        """Of a sweep, after a first one."""
        run(self)
        before = process_time()
        for _ in range(SWEEPS):
            run(self)
        return 1e3 * (process_time() - before) / SWEEPS


def _kernel_rows() -> Iterator[list[str]]:
    idle = _spent("import numpy", os.environ)
    with tempfile.TemporaryDirectory() as folder:
        kept = {**os.environ, "NUMBA_CACHE_DIR": folder}
        built, loaded = _spent(CALL, kept) - idle, _spent(CALL, kept) - idle
    yield _row("Numba", built, loaded, Sweep.of(SWEPT).milliseconds(_by_numba))
    compiler = which("cc")
    for target in ("native", PORTABLE) if compiler else ():
        with tempfile.TemporaryDirectory() as folder:
            library, built = _library(str(compiler), target, Path(folder))
            loaded = _spent(f"import numpy, ctypes; ctypes.CDLL({str(library)!r})", os.environ)
            run = _by_library(library)
            yield _row(f"C, {target}", built, loaded - idle, Sweep.of(SWEPT).milliseconds(run))


def _row(name: str, built: float, loaded: float, sweep: float) -> list[str]:
    return [name, f"{built:.2f}", f"{max(loaded, 0.0):.2f}", f"{sweep:.2f}"]


def _spent(code: str, environment: Mapping[str, str]) -> float:
    """CPU seconds of a process, the fastest of some; where it compiles, only the first does."""
    told = f"{code}\nimport time; print(time.process_time())"
    command = [sys.executable, "-c", told]
    times = 1 if code == CALL else REPEATS
    done = (
        subprocess.run(command, env={**environment}, capture_output=True, text=True, check=True)
        for _ in range(times)
    )
    return min(float(one.stdout) for one in done)


def _by_numba(sweep: Sweep) -> None:
    from proxmargin.compiled.solvers.nets import Net
    from proxmargin.compiled.solvers.sweeps import sweep_sparse
    from proxmargin.losses import Logistic

    p = sweep.coef.size
    net = Net(np.full(p, STRENGTH), np.zeros(p), np.full(p, -np.inf), np.full(p, np.inf))
    given = (getattr(sweep, each.name) for each in fields(sweep))
    sweep_sparse(Logistic().scalars, *given, net)


def _library(compiler: str, target: str, folder: Path) -> tuple[Path, float]:
    """The kernel in C, built for a processor, and the CPU seconds of the compiler."""
    source, library = folder / "sweep.c", folder / "sweep.so"
    source.write_text(SOURCE)
    before = os.times()
    options = ["-O3", f"-march={target}", "-fno-math-errno", "-shared", "-fPIC", "-lm"]
    subprocess.run([compiler, source, *options, "-o", library], check=True)
    after = os.times()
    spent = after.children_user + after.children_system
    return library, spent - before.children_user - before.children_system


def _by_library(library: Path) -> Callable[[Sweep], None]:
    function = ctypes.CDLL(str(library)).sweep

    def run(sweep: Sweep) -> None:
        arrays = [getattr(sweep, each.name).ctypes for each in fields(sweep)]
        pointers = [ctypes.c_void_p(each.data) for each in arrays]
        function(ctypes.c_int64(sweep.coef.size), *pointers, ctypes.c_double(STRENGTH))

    return run
