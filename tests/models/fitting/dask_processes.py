"""Fits on two worker processes, in a process of their own, as they speak by 127.0.0.1.

``python -m tests.models.fitting.dask_processes killed|NAME`` prints what was found as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
from scipy import sparse

import proxmargin as pm
from proxmargin.data.designs import base
from proxmargin.data.designs.base import as_design
from proxmargin.data.designs.blocks.dask_blocks import DaskDesign, on_workers
from tests.shared_data import clouds, load_set

ROWS = 24_000
FEATURES = 40
BLOCKS = 6
PICKED_ROWS = {"covtype": 5000}
ALONE = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}


@contextmanager
def cluster() -> Iterator[Any]:
    with (
        distributed.LocalCluster(n_workers=2, host="127.0.0.1", **ALONE) as here,
        distributed.Client(here) as client,
    ):
        yield client


class Fetched:
    """Bytes of the most rows of the data that the client has fetched at a time."""

    def __init__(self, client: Any, features: int) -> None:
        self.largest, gather = 0, type(client).gather

        def watched(other: Any, futures: Any, **options: Any) -> Any:
            found = gather(other, futures, **options)
            rows = [bytes_of(each) for each in arrays_in(found) if holds_rows(each, features)]
            self.largest = max(self.largest, sum(rows))
            return found

        type(client).gather = watched


def holds_rows(array: Any, features: int) -> bool:
    """Whether it is of the shape of rows, and no square matrix."""
    return array.ndim == 2 and array.shape[1] == features != array.shape[0]


def arrays_in(found: Any) -> Iterator[Any]:
    if isinstance(found, np.ndarray) or sparse.issparse(found):
        yield found
    elif isinstance(found, list | tuple):
        for each in found:
            yield from arrays_in(each)


def bytes_of(array: Any) -> int:
    parts = (array.data, array.indices, array.indptr) if sparse.issparse(array) else (array,)
    return sum(part.nbytes for part in parts)


def killed(at: int) -> dict[str, Any]:
    """A fit during whose pass ``at`` a worker is killed, amid its task."""
    X, y = clouds(ROWS, FEATURES, apart=0.2)
    base.SAMPLE_BYTES = X.nbytes // 50
    model = pm.SparseLogisticRegression(alpha=1e-3, tol=1e-10)
    expected = model.fit(X, y).certificate_.primal
    with cluster() as client:
        fetched, passes, run = Fetched(client, FEATURES), [], DaskDesign.run
        workers = list(client.run(os.getpid).values())

        def watched(self: Any, task: Any, *arguments: Any, **options: Any) -> Any:
            passes.append(task)
            if len(passes) == at:
                task = Killed(task, workers[0])
            return run(self, task, *arguments, **options)

        DaskDesign.run = watched
        model.fit(da.from_array(X, chunks=(ROWS // BLOCKS, -1)), y)
        left = client.run(os.getpid).values()
    return {
        "passes": len(passes),
        "gone": workers[0] not in left,
        "off": abs(model.certificate_.primal - expected) / expected,
        "converged": model.certificate_.converged,
        "largest": fetched.largest,
        "block": X.nbytes // BLOCKS,
    }


class Killed:
    """A task that kills the process that runs it, if that is the one with this number."""

    def __init__(self, task: Any, pid: int) -> None:
        self.task, self.pid = task, pid

    def __call__(self, *arguments: Any) -> Any:
        if os.getpid() == self.pid:
            os.kill(self.pid, signal.SIGKILL)
        return self.task(*arguments)


def agreement(name: str) -> dict[str, Any]:
    """What a design of sparse blocks answers, relative to the one in memory, and a fit."""
    X, y = load_set(name, rows=PICKED_ROWS.get(name))
    X, y = sparse.csr_matrix(X), y == y.max()
    base.SAMPLE_BYTES = bytes_of(X) // (4 * BLOCKS)
    ends = np.linspace(0, len(y), BLOCKS + 1).astype(int)
    blocks = [X[a:b] for a, b in pairwise(ends)]
    with cluster() as client:
        fetched = Fetched(client, X.shape[1])
        lazy = da.concatenate(
            [
                da.from_delayed(dask.delayed(each), each.shape, X.dtype, meta=X[:0])
                for each in blocks
            ]
        )
        there, here = on_workers(lazy, np.inf), as_design(X)
        off = {k: distance(*pair) for k, pair in enumerate(answers(there, here))}
        model = pm.HuberizedSVC(alpha=0.002, l1_ratio=1.0, tol=1e-10)
        found = model.fit(lazy, y).certificate_.primal
    expected = model.fit(X, y).certificate_.primal
    return {
        "off": {**off, "fit": abs(found - expected) / expected},
        "largest": fetched.largest,
        "block": min(map(bytes_of, blocks)),
    }


def answers(there: Any, here: Any) -> Iterator[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    n, p = here.n_samples, here.n_features
    coef, dual, centre = rng.normal(size=(p, 2)), rng.normal(size=(n, 2)), rng.normal(size=p)
    weights, some = rng.uniform(size=n), np.sort(rng.permutation(p)[:50])
    for design in (
        ("scores", coef),
        ("adjoint", dual),
        ("mean_and_variance", weights / weights.sum()),
    ):
        yield tuple(np.hstack(list(getattr(each, design[0])(design[1]))) for each in (there, here))
    yield there.row_squares(np.abs(centre), centre), here.row_squares(np.abs(centre), centre)
    yield there.column_squares(weights, centre), here.column_squares(weights, centre)
    yield there.largest(), here.largest()
    pair = there.columns(some), here.columns(some)
    yield tuple(each.gram(weights, centre[some]) for each in pair)
    index = rng.permutation(n)[:40]
    yield there.rows(index).scores(coef), here.rows(index).scores(coef)


def distance(found: Any, expected: Any) -> float:
    return float(np.abs(found - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)  # blocks are small, and come from here
    what, *rest = sys.argv[1:]
    print(json.dumps(killed(int(rest[0])) if what == "killed" else agreement(what)))
