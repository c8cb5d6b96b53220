"""Part "dask" of `python -m benchmarks scale`: fits and passes on one and two worker processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.report import seconds, table
from benchmarks.scale_problem import ALPHA, L1_RATIO, TOL, clocked, planted

WORKERS = (1, 2)
BLOCKS = 8  # on the workers
MANY_BLOCKS = 64  # of a second pass that is all overhead
TINY_ROWS = 4_000  # of a pass that is all overhead
FITS = 2  # the faster one counts
PASSES = 9  # that are all overhead; the fastest counts
WARM_ROWS = 500  # of a block for the fit that loads the kernels
MEGABYTE = 1e6


@dataclass
class Watched:
    """What the passes of a fit take, and what they send to workers and get back."""

    passes: list[float] = field(default_factory=list)
    sweeps: list[float] = field(default_factory=list)
    sent: int = 0
    fetched: int = 0

    def answered(self, run: Callable[..., Any], task: Any, *given: Any, **named: Any) -> Any:
        from proxmargin.data.designs.blocks import tasks

        found: list[Any] = []
        spent = clocked(lambda: found.append(run(task, *given, **named)))
        self.passes.append(spent)
        if task is tasks.sweep:
            self.sweeps.append(spent)
            self.sent, self.fetched = _bytes(given), _bytes(found)
        return found[0]


@dataclass
class Measured:
    """Of one number of workers."""

    workers: int
    passes: float
    fit: float
    outside: float
    sweep: float
    hessian: float
    overhead: float
    many: float
    client_cpu: float
    worker_cpu: float
    sent: int
    fetched: int

    @property
    def path(self) -> float:
        """CPU seconds of what runs one after the other: the client, and the busiest worker."""
        return self.client_cpu + self.worker_cpu


def on_workers(megabytes: float, p: int) -> str:
    """Time of fits and passes with one and with two worker processes."""
    n = BLOCKS * (int(megabytes * MEGABYTE) // (4 * p * BLOCKS))
    measured = [_measured(count, n, p) for count in WORKERS]
    return _text(n, p, measured)


def _measured(count: int, n: int, p: int) -> Measured:
    import dask.array as da

    from proxmargin import SparseLogisticRegression
    from proxmargin.data.designs.blocks.dask_blocks import on_workers as placed

    model = SparseLogisticRegression(alpha=ALPHA, l1_ratio=L1_RATIO, tol=TOL)
    with _cluster(count) as client:
        small, labels = _spread(client, WARM_ROWS, p)
        model.fit(small, labels)
        placed(small, np.inf).gram(np.ones(BLOCKS * WARM_ROWS), np.zeros(p))
        X, y = _spread(client, n // BLOCKS, p)
        fits = [_fitted(model, client, X, y) for _ in range(FITS)]
        watched, fit, client_cpu, worker_cpu = min(fits, key=lambda each: each[1])
        whole, square = placed(X, np.inf), (np.ones(n), np.zeros(p))
        hessian = min(clocked(lambda: whole.gram(*square)) for _ in range(FITS))
        tiny, coef = planted(TINY_ROWS, p, 0)[0], np.ones((p, 1))
        overheads = []
        for blocks in (BLOCKS, MANY_BLOCKS):
            parts = -(-TINY_ROWS // blocks)
            design = placed(da.from_array(tiny, chunks=(parts, -1)), np.inf)
            overheads.append(_overhead(lambda design=design: design.scores(coef)))
    return Measured(
        workers=count,
        passes=model.certificate_.n_passes,
        fit=fit,
        outside=fit - sum(watched.passes),
        sweep=min(watched.sweeps),
        hessian=hessian,
        overhead=overheads[0],
        many=overheads[1],
        client_cpu=client_cpu,
        worker_cpu=worker_cpu,
        sent=watched.sent,
        fetched=watched.fetched,
    )


@contextmanager
def _cluster(count: int) -> Iterator[Any]:
    import distributed

    kind = {"threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(n_workers=count, **kind) as cluster,
        distributed.Client(cluster) as client,
    ):
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        for place, worker in enumerate(client.nthreads() if len(cores) >= count else ()):
            client.run(os.sched_setaffinity, 0, {cores[place]}, workers=[worker])
        yield client


def _spread(client: Any, rows: int, p: int) -> tuple[Any, Any]:
    """Blocks that the workers make, each as many of them, and their labels."""
    import dask
    import dask.array as da
    import distributed

    homes = list(client.nthreads())
    made = [
        client.submit(planted, rows, p, k, pure=False, workers=[homes[k % len(homes)]])
        for k in range(BLOCKS)
    ]
    labels = [client.submit(_second, each, pure=False) for each in made]
    features = [client.submit(_first, each, pure=False) for each in made]
    distributed.wait([*labels, *features])
    parts = [da.from_delayed(dask.delayed(each), (rows, p), np.float32) for each in features]
    return da.concatenate(parts), np.concatenate(client.gather(labels))


def _first(pair: Any) -> Any:
    return pair[0]


def _second(pair: Any) -> Any:
    return pair[1]


def _fitted(model: Any, client: Any, X: Any, y: Any) -> tuple[Watched, float, float, float]:
    """A fit: its passes, its time, the CPU seconds of the client and of the busiest worker."""
    from proxmargin.data.designs.blocks.dask_blocks import DaskDesign

    watched, run, rows = Watched(), DaskDesign.run, DaskDesign._rows

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        return watched.answered(lambda *a, **k: run(self, *a, **k), *given, **named)

    def picked(self: Any, index: Any) -> Any:
        found: list[Any] = []
        watched.passes.append(clocked(lambda: found.append(rows(self, index))))
        return found[0]

    DaskDesign.run, DaskDesign._rows = counted, picked  # type: ignore[method-assign]
    try:
        there, here = client.run(time.process_time), time.process_time()
        fit = clocked(lambda: model.fit(X, y))
        after, here = client.run(time.process_time), time.process_time() - here
    finally:
        DaskDesign.run, DaskDesign._rows = run, rows  # type: ignore[method-assign]
    return watched, fit, here, max(after[each] - there[each] for each in after)


def _overhead(work: Callable[[], Any]) -> float:
    work()
    return min(clocked(work) for _ in range(PASSES))


def _bytes(values: Any) -> int:
    """Of all arrays within."""
    if isinstance(values, np.ndarray):
        return values.nbytes
    return sum(map(_bytes, values)) if isinstance(values, tuple | list) else 0


def _text(n: int, p: int, measured: list[Measured]) -> str:
    first = measured[0]
    rows = [
        [
            str(each.workers),
            f"{each.passes:.0f}",
            seconds(each.fit),
            f"{first.fit / each.fit:.2f}",
            seconds(each.sweep),
            f"{first.sweep / each.sweep:.2f}",
            seconds(each.hessian),
            f"{first.hessian / each.hessian:.2f}",
            f"{100 * each.outside / each.fit:.0f}%",
            f"{1e3 * each.overhead:.1f}",
            f"{1e3 * each.many:.1f}",
            seconds(each.client_cpu),
            seconds(each.worker_cpu),
            f"{first.path / each.path:.2f}",
        ]
        for each in measured
    ]
    head = ("workers", "passes", "fit, s", "speed-up", "pass, s", "speed-up")
    head = (*head, "pass with Hessian, s", "speed-up", "client alone", "overhead, ms")
    head = (*head, f"in {MANY_BLOCKS} blocks", "client, CPU s", "busiest worker", "speed-up")
    return (
        f"{n:,} rows of {p} features in float32, {n * p * 4 / MEGABYTE:.0f} MB in {BLOCKS} blocks "
        "on the workers of a `LocalCluster`, each a process of one thread, on a core of its own, "
        f"with as many blocks; SparseLogisticRegression to {TOL}, the faster of {FITS} fits after "
        "one to little data, which loads the kernels. A pass computes scores, derivatives and "
        f"slopes (`Design.sweep`): in a fit it sends {first.sent / MEGABYTE:.1f} MB to the workers "
        f"and fetches {first.fetched / MEGABYTE:.1f} MB. Client alone: the share of the time of a "
        "fit outside of passes, most of it the model of a sample, where the fit begins. Overhead: "
        f"a pass over {TINY_ROWS:,} rows, in {BLOCKS} blocks and in {MANY_BLOCKS}. Speed-ups in "
        "seconds need cores that no other program uses: see the load average. The last three "
        "columns count CPU seconds of a fit: of the client (with the scheduler), and of the worker "
        "that used most; the last speed-up is that of their sum, which does not count what other "
        "programs use.\n\n" + table(head, rows)
    )
