"""Kernel SVMs of one package on the data in a folder: `serve_svc.py PACKAGE FOLDER SETTINGS`.

It runs in the environment of the package: nothing here imports the benchmarks. The answer is a
line of JSON, the least seconds of a few fits with what the package says; the model is left in the
folder.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

SHORT = 0.4  # seconds of fits below which more are made than asked for
ENOUGH = 2.0  # seconds of fits after which none is repeated
TOUCHED = 50_000_000  # numbers written beforehand: a machine gives memory slowly the first time
TOY_ROWS = 200  # a fit that loads and compiles


def estimator(package: str) -> Any:
    if package == "proxmargin":
        from proxmargin import SVC
    elif package == "sklearnex":
        import daal4py
        from sklearnex.svm import SVC

        daal4py.daalinit(1)
    else:
        from sklearn.svm import SVC
    return SVC


def main(package: str, folder: Path, settings: dict[str, Any]) -> None:
    X, y, make = np.load(folder / "X.npy"), np.load(folder / "y.npy"), estimator(package)
    repeats = settings.pop("repeats")
    step = max(1, y.size // TOY_ROWS)
    make(**settings).fit(X[::step], y[::step])
    spent: list[float] = []
    while sum(spent) < (ENOUGH if len(spent) < repeats else SHORT):
        model = make(**settings)
        np.ones(TOUCHED)
        gc.collect()
        started = time.process_time()
        model.fit(X, y)
        spent.append(time.process_time() - started)
    np.save(folder / "weights.npy", np.asarray(model.dual_coef_)[0])
    np.save(folder / "support.npy", np.asarray(model.support_))
    told = getattr(model, "certificate_", None)
    answer = {
        "seconds": min(spent),
        "intercept": float(np.ravel(model.intercept_)[0]),
        "passes": None if told is None else float(told.n_passes),
        "iterations": None if told is None else int(told.n_iter),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
