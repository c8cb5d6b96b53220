"""`python -m benchmarks startup`: the first fit of a process, with the library of kernels.

And, with `--compiling`, where Numba compiles them on first use.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

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
REPEATS = 3  # of a process that compiles nothing: the fastest counts
FIRST = "import and first fit"
REMARKS = """\
- CPU seconds of a process of its own for each cell: `import proxmargin` and the first fit, after
  `import sklearn`, which alone takes {imported:.2f} s; the fastest of {repeats} processes. Kernels
  are in the library of level {level}, compiled ahead of time; nothing else is kept on disk.
- The second column of a layout is the second fit of that process, in milliseconds."""
COMPILING = "- The third: import and first fit where Numba compiles the kernels on their first use."


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fits", nargs="+", choices=tuple(FITS), default=list(FITS))
    parser.add_argument("--layouts", nargs="+", choices=tuple(LAYOUTS), default=list(LAYOUTS))
    parser.add_argument("--compiling", action="store_true", help="without the library: minutes")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    from proxmargin.compiled import library

    kernels = library.loaded()
    if kernels is None:
        sys.exit("there is no library of kernels: python3 run.py build")
    rows, imported = [], float("inf")
    for name in arguments.fits:
        row = [name]
        for layout in arguments.layouts:
            told = [_process(FITS[name], layout) for _ in range(REPEATS)]
            best = min(told, key=lambda one: one[FIRST])
            imported = min(imported, *(one["sklearn"] for one in told))
            row += [f"{best[FIRST]:.2f}", f"{1e3 * best['second fit']:.2g}"]
            if arguments.compiling:
                row.append(f"{_compiling(FITS[name], layout)[FIRST]:.1f}")
        rows.append(row)
        print(" ".join(row), flush=True)
    more = ("compiling",) if arguments.compiling else ()
    head = ["first fit", *(h for each in arguments.layouts for h in (f"{each}: s", "ms", *more))]
    remarks = REMARKS.format(imported=imported, repeats=REPEATS, level=kernels.level)
    if arguments.compiling:
        remarks = f"{remarks}\n{COMPILING}"
    body = f"{remarks}\n\n{table(head, rows)}"
    write_section("startup", "The first fit of a process", body, arguments.results)
    return 0


def _compiling(code: str, layout: str) -> Mapping[str, float]:
    return _process(code, layout, PROXMARGIN_KERNELS="numba")


def _process(code: str, layout: str, **settings: str) -> dict[str, float]:
    samples, features = LAYOUTS[layout]
    words = {"SAMPLES": samples, "FEATURES": features, "SPARSE": layout == "sparse", "CODE": code}
    script = PROCESS
    for word, value in words.items():
        script = script.replace(word, str(value))
    one_thread = {**os.environ, **settings, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=one_thread, capture_output=True, text=True, check=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told
