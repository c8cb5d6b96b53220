"""`python -m benchmarks limits`: seconds of fits with a time limit, memory beside the
data, and what reading a table takes beside pandas."""

from __future__ import annotations

import argparse
import ctypes
import gc
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.report import RESULTS, seconds, table, write_section

SAMPLES = 20_000
SMALL = 300  # samples of the fit before it, which compiles
DENSE_FEATURES = 50
SPARSE_FEATURES = 5_000
DENSITY = 0.01
WIDE_FEATURES = 200  # of dense data for memory
CLASSES = 8
LIMIT = 1.0  # seconds
FULL = 2.0  # seconds of a fit whose memory is measured: the largest arrays come early
MOST = 40.0  # seconds after which a fit is given up
GIVEN_SHARE = 0.1  # of its limit, that a fit may take beyond it
GIVEN_SECONDS = 0.5  # that a fit may take beyond its limit, if that is more
FITS_APART = 1  # a fit that overran is repeated so often: the first may have compiled

ALPHAS = {"dense": 1e-3, "sparse": 1e-5}
BUDGETS = {"dense": 19_000.0, "sparse": 15_000.0}  # above the least sums of losses
NETS = ("HuberizedSVC", "ElasticNetSVC", "SquaredHingeSVC", "SparseLogisticRegression")
JOINT = ("HuberizedSVC", "SparseLogisticRegression", "MarginClassifier")
MACHINES = ("SVC", "NuSVC", "L2SVC", "LogisticRegression", "DWD", "MarginFDA", "MarginMPM")
LOSSES = ("hinge", "squared_hinge", "logistic", "lee")
PENALTIES = ("l1", "l2", "group_l2", "group_linf", "elasticnet")


READ = ((20_000, 3_000, False), (20_000, 3_000, True), (200_000, 10, False))


@dataclass(frozen=True)
class Case:
    """A fit: what travels to the process that measures it.

    Attributes
    ----------
    model : str
        Name of the estimator.
    data : str
        'dense', 'sparse' or 'wide'.
    classes : int
    options : tuple of pairs
        Parameters of the estimator.
    """

    model: str
    data: str
    classes: int
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def title(self) -> str:
        said = (f"{key}={value}" for key, value in self.options if key != "alpha")
        return " ".join([self.model, *said])

    def estimator(self, **more: Any) -> Any:
        import proxmargin

        options = dict(self.options)
        if self.model == "DDAGClassifier":
            return proxmargin.DDAGClassifier(proxmargin.SVC(**options, **more))
        return getattr(proxmargin, self.model)(**options, **more)


def cases() -> list[Case]:
    """Every estimator on dense and on sparse data, two and more classes."""
    return [case for data in ("dense", "sparse") for case in _cases_on(data)]


def _cases_on(data: str) -> Iterator[Case]:
    alpha = ALPHAS[data]
    for name in NETS:
        yield Case(name, data, 2, (("alpha", alpha),))
        yield Case(name, data, CLASSES, (("alpha", alpha), ("multi_class", "ovr")))
    for name in JOINT:
        own = () if name == "MarginClassifier" else (("alpha", alpha),)
        yield Case(name, data, CLASSES, (*own, ("multi_class", "joint")))
    yield Case("MarginClassifier", data, 2)
    for name in MACHINES:
        for kernel in ("linear", "rbf"):
            for classes in (2, CLASSES):
                yield Case(name, data, classes, (("kernel", kernel),))
    yield Case("DDAGClassifier", data, CLASSES)
    for loss in LOSSES:
        for penalty in PENALTIES:
            grouped = (("groups", "features"),) if penalty.startswith("group") else ()
            yield Case(
                "MulticlassSVC", data, CLASSES, (("loss", loss), ("penalty", penalty), *grouped)
            )
    budget = (("C", None), ("eta", BUDGETS[data]))
    yield Case("MulticlassSVC", data, CLASSES, (("loss", "hinge"), *budget))
    yield Case("MulticlassSVC", data, 2, (("loss", "hinge"), ("penalty", "l1")))


@lru_cache(maxsize=2)
def samples(data: str, classes: int, count: int, single: bool = False) -> tuple[Any, Any]:
    """Random samples whose labels follow a linear rule, but for noise."""
    rng = np.random.default_rng(classes)
    features = {"dense": DENSE_FEATURES, "wide": WIDE_FEATURES, "sparse": SPARSE_FEATURES}[data]
    kind = np.float32 if single else np.float64
    if data == "sparse":
        X: Any = sparse.random_array(
            (count, features), density=DENSITY, format="csr", rng=rng, dtype=np.float64
        ).astype(kind)
    else:
        X = rng.standard_normal((count, features)).astype(kind)
    scores = X @ rng.standard_normal((features, classes)).astype(kind)
    scores = scores / scores.std() + 0.7 * rng.standard_normal(scores.shape)
    return X, scores.argmax(axis=1)


@dataclass(frozen=True)
class Taken:
    """What a fit took of its limit, on the clock and of the processor, and what it proved.

    ``busy`` is the CPU time of the process itself. The system's, which is that of clearing and
    moving memory, varies by the second with what other processes hold.
    """

    limit: float
    seconds: float
    busy: float
    gap: float
    converged: bool
    real: bool
    solver: str

    @property
    def within(self) -> bool:
        beyond = self.seconds - self.limit
        return beyond <= max(GIVEN_SECONDS, GIVEN_SHARE * self.limit)


def taken(case: Case, count: int = SAMPLES, limit: float = LIMIT) -> Taken:
    """Fit with a limit, after a small fit that compiles what there is to compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case.estimator(time_limit=MOST, max_iter=20).fit(*samples(case.data, case.classes, SMALL))
        found = _timed(case, count, limit)
        for _ in range(FITS_APART):
            if not found.within:
                found = min(found, _timed(case, count, limit), key=lambda one: one.seconds)
    return found


def _timed(case: Case, count: int, limit: float) -> Taken:
    X, y = samples(case.data, case.classes, count)
    model = case.estimator(time_limit=limit)
    start, begun = time.perf_counter(), os.times().user
    try:
        model.fit(X, y)
    except ValueError as error:
        spent = time.perf_counter() - start
        return Taken(limit, spent, spent, np.inf, False, False, f"{error}"[:70])
    spent, busy = time.perf_counter() - start, os.times().user - begun
    told = model.certificate_
    parts = list(told) if hasattr(told, "__len__") else [told]
    weights = getattr(model, "coef_", getattr(model, "dual_coef_", np.zeros(1)))
    worst = max(float(part.relative_gap) for part in parts)
    real = bool(np.isfinite(np.asarray(weights)).all())
    names = "+".join(sorted({part.solver for part in parts}))
    return Taken(limit, spent, busy, worst, all(part.converged for part in parts), real, names)


# ---- memory -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Used:
    """Bytes of the data, and of what was allocated beside them at most, by the system's count."""

    data: int
    peak: int

    @property
    def ratio(self) -> float:
        return self.peak / self.data


def used(case: Case, single: bool, limit: float = FULL) -> Used:
    """The most memory that a fit takes beside its data; of a process of its own."""
    X, y = samples(case.data, case.classes, SAMPLES, single)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = samples(case.data, case.classes, SMALL, single)
        case.estimator(max_iter=2, time_limit=MOST).fit(*small)
        model = case.estimator(time_limit=limit)
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what was freed is not to hide what is asked for
        before = _resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts here
        model.fit(X, y)
    parts = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    size = sum(int(part.nbytes) for part in parts)
    return Used(size, max(_resident("VmHWM") - before, 0))


def read(path: str, ours: bool) -> tuple[float, int]:
    """CPU seconds of a table's reading, by pandas or into features and labels, and the most memory
    that it takes; of a process of its own."""
    import pandas as pd

    import proxmargin

    how: Callable[[str], Any] = proxmargin.read_data if ours else pd.read_csv
    small = Path(path).with_name("small.csv")
    small.write_text("a,b,grp\n" + "1.5,2,u\n3,0.5,v\n" * 20)
    how(str(small))
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    begun = time.process_time()
    kept = how(path)
    spent = time.process_time() - begun
    assert kept is not None  # and in memory until here
    return spent, _resident("VmHWM") - before


def reading(rows: int, columns: int, ids: bool) -> Sequence[str]:
    """The row of a table of numbers and labels, perhaps with names of samples."""
    numbers = np.random.default_rng(0).normal(size=(min(rows, 500), columns)).round(6)
    lines = [",".join(map(str, x)) + f",{'uv'[int(x[0] > 0)]}\n" for x in numbers.tolist()]
    names = [*["sample_id"][:ids], *(f"f{j}" for j in range(columns)), "grp"]
    with TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        with path.open("w") as stream:
            stream.write(",".join(names) + "\n")
            for k in range(rows):
                stream.write((f"S{k:07d}," if ids else "") + lines[k % len(lines)])
        plain, found = (_apart(read, str(path), ours) for ours in (False, True))
    shape = [f"{rows} x {columns}", "yes" if ids else "no", seconds(plain[0]), seconds(found[0])]
    return [*shape, f"{found[0] / plain[0]:.2f}", f"{found[1] / plain[1]:.2f}"]


def _resident(key: str) -> int:
    """A line of the process's status, in bytes; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key + ":"))


# ---- tables -------------------------------------------------------------------------------------

TIME_NOTES = f"""\
- {SAMPLES} samples; dense data have {DENSE_FEATURES} features, sparse ones {SPARSE_FEATURES},
  {100 * DENSITY:g} % of them not zero. A fit with `time_limit={LIMIT:g}` after a small one, which
  compiles; of those that overran, the better of two.
- `within`: no more than {GIVEN_SECONDS:g} s beyond the limit, on the wall clock."""
MEMORY_NOTES = f"""\
- The most memory beside the data while fits run for {FULL:g} s, over the size of the data: of
  float64, and of float32. Dense data have {WIDE_FEATURES} features here.
- Solvers that work on some columns, or on samples near the margin, copy those in float64, which
  is twice the size of the same float32 data.
- What does not grow with the data counts most beside the sparse ones: matrices of the features that
  are not zero, each as large as the data at 1,200 features."""


READING_NOTES = """\
- `read_data` to features and labels, and `pandas.read_csv` to a frame, each in a process of its
  own, after a small file; the peak is that of memory beside what the process had."""


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", nargs="+", default=None)
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=("time", "memory", "reading"),
        default=["time", "memory", "reading"],
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    chosen = [c for c in cases() if arguments.models is None or c.model in arguments.models]
    times: list[Sequence[str]] = []
    memory: list[Sequence[str]] = []
    for case in chosen if "time" in arguments.tables else ():
        times.append(_time_row(case, _apart(taken, case)))
        print(*times[-1], sep=" | ", flush=True)
    if times:
        head = ["model", "data", "classes", "wall / s", "CPU / s", "within", "gap", "solver"]
        text = f"{TIME_NOTES}\n\n{table(head, times)}"
        write_section("limits", "Limits of time", text, arguments.results)
    for case in _measured_for_memory(chosen) if "memory" in arguments.tables else ():
        memory.append(_memory_row(case, [_apart(used, case, single) for single in (False, True)]))
        print(*memory[-1], sep=" | ", flush=True)
    if memory:
        head = ["model", "data", "classes", "data / MB", "peak / data", "of float32 data"]
        text = f"{MEMORY_NOTES}\n\n{table(head, memory)}"
        write_section("limits-memory", "Memory beside the data", text, arguments.results)
    if "reading" in arguments.tables:
        rows = [reading(*shape) for shape in READ]
        head = ["numbers", "ids", "pandas / CPU s", "read_data / CPU s", "ratio", "peak ratio"]
        text = f"{READING_NOTES}\n\n{table(head, rows)}"
        write_section("limits-reading", "Reading CSV", text, arguments.results)
    return 0


def _measured_for_memory(chosen: Sequence[Case]) -> Iterator[Case]:
    """Binary fits, and those of joint losses; kernels keep rows of their matrix on purpose."""
    for case in chosen:
        linear = ("kernel", "rbf") not in case.options
        if linear and (case.classes == 2 or case.model == "MulticlassSVC"):
            yield replace(case, data="wide" if case.data == "dense" else case.data)


def _apart(measure: Callable[..., Any], *arguments: Any) -> Any:
    """Measured in a process of its own; what went wrong there as a sentence."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(measure, *arguments).result(10 * MOST)
        except (TimeoutError, BrokenProcessPool) as error:
            return f"{type(error).__name__} {error}"


def _time_row(case: Case, found: Taken | str) -> Sequence[str]:
    head = [case.title, case.data, str(case.classes)]
    if isinstance(found, str):
        return [*head, "-", "-", "no", "-", found]
    within = "yes" if found.within and found.real and np.isfinite(found.gap) else "no"
    clocks = seconds(found.seconds), seconds(found.busy)
    return [*head, *clocks, within, f"{found.gap:.0e}", found.solver]


def _memory_row(case: Case, found: Sequence[Used | str]) -> Sequence[str]:
    ratios = [one if isinstance(one, str) else f"{one.ratio:.1f}" for one in found]
    size = next((f"{one.data / 1e6:.0f}" for one in found if isinstance(one, Used)), "-")
    return [case.title, case.data, str(case.classes), size, *ratios]
