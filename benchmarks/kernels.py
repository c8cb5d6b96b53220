"""`python -m benchmarks kernels`: kernel machines on many samples, by seconds, gap and memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Floats
from benchmarks.family_data import load_scaled
from benchmarks.report import RESULTS, seconds, table, write_section

MODELS = ("SVC", "NuSVC", "L2SVC", "LogisticRegression", "DWD", "MarginFDA", "MarginMPM")
WITH_C = ("SVC", "L2SVC", "LogisticRegression")
# a kernel of low numerical rank with a moderate C, and one of high rank with a large C
SETTINGS = {"covtype": (0.5, 1.0), "waves": (0.5, 10.0)}
SEED = 0


@dataclass(frozen=True)
class Case:
    """A model on the first samples of some data, with a Gaussian kernel."""

    model: str
    data: str
    rows: int
    gamma: float
    C: float
    limit: float | None

    @property
    def parameters(self) -> dict[str, Any]:
        return {"C": self.C} if self.model in WITH_C else {}

    @property
    def parameter(self) -> str:
        return f"C = {self.C:g}" if self.model in WITH_C else "default"


@dataclass(frozen=True)
class Fit:
    """What came of a fit: its own certificate, the clocks, and the memory of its process."""

    wall: float
    cpu: float
    gap: float
    converged: bool
    iterations: int
    vectors: int
    megabytes: float
    told: str


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", choices=tuple(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows", type=int, default=50_000, help="the first so many samples")
    parser.add_argument("--limit", type=float, help="seconds a fit, by the clock on the wall")
    parser.add_argument("--gamma", type=float, help="instead of that of the data")
    parser.add_argument("--C", type=float, help="instead of that of the data")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu for a machine that is busy"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    found: dict[Case, Fit] = {}
    for case in _cases(arguments):
        found[case] = _apart(case)
        print(f"{case.model}; {case.data}: {found[case]}", flush=True)
        write_section("kernels", "Large kernels", _body(found, arguments.clock), arguments.results)
    return 0


def _cases(arguments: argparse.Namespace) -> Iterator[Case]:
    for data in arguments.data:
        gamma, C = SETTINGS[data]
        gamma = gamma if arguments.gamma is None else arguments.gamma
        C = C if arguments.C is None else arguments.C
        for model in arguments.models:
            if data == "waves" and model not in WITH_C:
                continue  # a large C is what is hard about it
            yield Case(model, data, arguments.rows, gamma, C, arguments.limit)


def load(name: str, rows: int) -> tuple[Floats, Floats]:
    """The first samples: of covtype scaled to [0, 1], or of eight Gaussian features and waves."""
    if name == "covtype":
        data = load_scaled(name)
        return np.ascontiguousarray(data.design[:rows], dtype=np.float64), data.labels[:rows]
    rng = np.random.default_rng(SEED)
    design = rng.standard_normal((rows, 8))
    score = np.sin(design[:, 0]) + design[:, 1] * design[:, 2] + 0.3 * rng.standard_normal(rows)
    return design, np.where(score > 0, 1.0, -1.0)


def _apart(case: Case) -> Fit:
    """The fit in a process of its own, whose memory is that of the fit."""
    command = [sys.executable, "-m", "benchmarks.kernels", json.dumps(asdict(case))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Fit(**json.loads(done.stdout.splitlines()[-1]))


def fit(case: Case) -> Fit:
    """Fit here and now; compiled code is loaded by a small fit beforehand."""
    import resource

    import proxmargin

    X, y = load(case.data, case.rows)
    make = getattr(proxmargin, case.model)
    settings = {"kernel": "rbf", "gamma": case.gamma, **case.parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(**settings).fit(X[:400], y[:400])
        wall, cpu = time.perf_counter(), time.process_time()
        model = make(**settings, time_limit=case.limit).fit(X, y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    certificate = model.certificate_
    return Fit(
        wall=wall,
        cpu=cpu,
        gap=float(certificate.relative_gap),
        converged=bool(certificate.converged),
        iterations=int(certificate.n_iter),
        vectors=int(model.support_.size),
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        told=f"{certificate.stop_reason}; {certificate.because}",
    )


def _body(found: dict[Case, Fit], clock: str) -> str:
    head = ["model", "data", "n", "gamma", "parameter", "seconds", "gap", "support", "memory"]
    rows = (
        [
            case.model,
            case.data,
            str(case.rows),
            f"{case.gamma:g}",
            case.parameter,
            seconds(one.cpu if clock == "cpu" else one.wall),
            f"{one.gap:.1e}" + ("" if one.converged else " *"),
            str(one.vectors),
            f"{one.megabytes:.0f} MB",
        ]
        for case, one in found.items()
    )
    limits = {case.limit for case in found} - {None}
    limited = f" At most {max(limits):g} s on the wall a fit." if limits else ""
    busiest = max(one.wall / one.cpu for one in found.values())
    notes = "\n".join(
        f"- {case.model} on {case.data}: {one.iterations} iterations; {one.told}."
        for case, one in found.items()
    )
    return f"""- Gaussian kernel ``exp(-gamma |x - z|^2)``; 50,000 samples have a matrix of 20 GB.
- covtype: its first samples, scaled to [0, 1]; waves: eight standard normal features, labels by
  the sign of a sine and a product of features with noise.
- Seconds are {clock} time of one fit on one thread, from the data to the certificate for the exact
  kernel, with the default tolerance of 1e-6; compiled code is loaded before. The gap is that of
  the model's certificate (`*`: not within the tolerance).{limited} Largest ratio of wall to CPU
  time: {busiest:.2f}.
- Memory is the largest resident set of the process: interpreter, data and fit.

{table(head, rows)}

### How they ended

{notes}"""


if __name__ == "__main__":
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        print(json.dumps(asdict(fit(Case(**json.loads(sys.argv[1]))))))
