"""`python -m benchmarks kernel-grid`: kernel SVMs against LIBSVM and scikit-learn-intelex.

    P(beta, b) = beta'K beta / 2 + C sum_i max(0, 1 - y_i (K beta + b)_i)

A model of any package is a weight beta_i for each sample and an intercept. With
``0 <= y_i beta_i <= C`` and ``sum_i beta_i = 0`` its dual value is ``|beta|_1 - beta'K beta / 2``,
so that the model certifies itself: `certified` computes K in plain NumPy, from no package's code.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.datasets import SEED, Floats, _stored
from benchmarks.family_data import ranged
from benchmarks.measure import THREAD_LIMITS
from benchmarks.peers import other_environment
from benchmarks.report import RESULTS, seconds, table, write_section
from benchmarks.shares import SLOWER, Shares, shares

GAPS = (1e-3, 1e-6)
# loosest first
LADDERS = {
    "proxmargin": GAPS,
    "LIBSVM": (1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    "sklearnex": (1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
}
SERVER = Path(__file__).resolve().parent / "peers" / "servers" / "serve_svc.py"
BLOCK_ROWS = 1000  # of the kernel matrix, in a certificate
CACHE_MEGABYTES = 1000
TOY_ROWS = 200  # of a fit that loads what a profiled one needs


@dataclass(frozen=True)
class Cell:
    """Data, a kernel and a strength: a row of the table."""

    data: str
    kernel: str
    gamma: float
    C: float

    def __str__(self) -> str:
        return f"{self.data}, {self.kernel} {self.gamma:g}, C = {self.C:g}"


CELLS = (
    *(Cell("usps@2000", "rbf", 0.02, C) for C in (0.1, 10.0, 100.0)),
    *(Cell("covtype@2000", "rbf", 0.5, C) for C in (0.1, 100.0)),
    *(Cell("dna", "rbf", 0.01, C) for C in (0.1, 1.0, 100.0)),
    Cell("dna", "poly", 0.01, 1.0),
    *(Cell("mnist@5000", "rbf", 0.02, C) for C in (1.0, 100.0)),
    *(Cell("letter@8000", "rbf", 2.0, C) for C in (0.1, 10.0)),
    Cell("letter@8000", "poly", 1.0, 1.0),
    Cell("a9a@8000", "rbf", 0.05, 10.0),
    *(Cell("covtype@10000", "rbf", 0.5, C) for C in (1.0, 100.0)),
    Cell("electricity@10000", "rbf", 5.0, 10.0),
    *(Cell("waves@10000", "rbf", 0.5, C) for C in (10.0, 100.0)),
    Cell("skin@25000", "rbf", 5.0, 1.0),
)
LARGE = (
    Cell("covtype@25000", "rbf", 0.5, 1.0),
    Cell("waves@25000", "rbf", 0.5, 10.0),
    Cell("covtype@50000", "rbf", 0.5, 1.0),
)


@dataclass
class Found:
    """Of one package in one cell: seconds and gap for each gap that was reached, or why none.

    Attributes
    ----------
    tols : dict
        The tolerance at which each gap was reached.
    """

    reached: dict[float, tuple[float, float]] = field(default_factory=dict)
    vectors: int = 0
    passes: float | None = None
    missing: str = ""
    tols: dict[float, float] = field(default_factory=dict)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--large", action="store_true", help="25,000 and 50,000 samples as well")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--repeats", type=int, default=3, help="fits, of which the fastest counts")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a process")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder to write into")


def main(arguments: argparse.Namespace) -> int:
    found: dict[Cell, dict[str, Found]] = {}
    shapes: dict[Cell, tuple[int, ...]] = {}
    slow: list[str] = []
    for cell in (*CELLS, *(LARGE if arguments.large else ())):
        if arguments.only not in str(cell):
            continue
        X, y = load(cell.data)
        shapes[cell], found[cell] = X.shape, {}
        for package in LADDERS:
            found[cell][package] = _climbed(cell, package, X, y, arguments)
        slow += _explained(cell, X, y, found[cell])
        print(_row(cell, shapes[cell], found[cell]), *slow, sep="\n", flush=True)
        write_section("kernel-grid", "Kernel SVMs", _body(found, shapes, slow), arguments.results)
    return 0


def load(name: str) -> tuple[Floats, Floats]:
    """So many samples by chance, features in [0, 1]; the lower half of the classes is +1.

    ``waves@n`` are eight Gaussian features with labels by a sine, a product and noise.
    """
    bare, _, rows = name.partition("@")
    rng = np.random.default_rng(SEED)
    if bare == "waves":
        design = rng.standard_normal((int(rows), 8))
        noise = 0.3 * rng.standard_normal(int(rows))
        score = np.sin(design[:, 0]) + design[:, 1] * design[:, 2] + noise
        return design, np.where(score > 0, 1.0, -1.0)
    design, labels, _ = _stored(bare)
    if rows:
        some = np.sort(rng.choice(labels.size, min(int(rows), labels.size), replace=False))
        design, labels = design[some], labels[some]
    dense = ranged(design.toarray() if hasattr(design, "toarray") else design, 0.0)
    classes, codes = np.unique(labels, return_inverse=True)
    return dense[:, dense.any(axis=0)], np.where(codes < classes.size / 2, 1.0, -1.0)


def certified(
    cell: Cell, X: Floats, y: Floats, weights: Floats, support: Any, intercept: float
) -> float:
    """The relative gap of a model; the best intercept is taken where it is better.

    The dual point is the weights, scaled so that none exceeds C, and moved into the constraints
    that they violate by rounding; the model is the same multiple of it that the weights are.
    """
    signed = weights * y[support]
    multiple = max(1.0, float(signed.max()) / cell.C)
    inside = np.clip(signed / multiple, 0.0, cell.C) * y[support]
    positive = inside > 0
    masses = inside[positive].sum(), -inside[~positive].sum()
    inside *= np.where(positive, min(1.0, masses[1] / masses[0]), min(1.0, masses[0] / masses[1]))
    scores = np.empty(y.size)
    for start in range(0, y.size, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        scores[rows] = _values(cell, X[rows], X[support]) @ inside
    square = float(inside @ scores[support])

    longer = multiple * scores

    def primal(b: float) -> float:
        hinges = np.maximum(1.0 - y * (longer + b), 0.0)
        return 0.5 * multiple**2 * square + cell.C * float(hinges.sum())

    least = min(primal(intercept), primal(_best_intercept(y, longer)))
    return (least - float(np.abs(inside).sum()) + 0.5 * square) / least


def _best_intercept(y: Floats, scores: Floats) -> float:
    """The kink at which the slope of the hinges' sum in the intercept changes its sign.

    Sample i ends to lose at ``b = y_i - s_i``, or starts to: the slope is minus the number of
    positive samples beyond it plus that of negative ones before it.
    """
    kinks = np.sort(y - scores)
    return float(kinks[min(np.count_nonzero(y > 0), kinks.size - 1)])


def _values(cell: Cell, left: Floats, right: Floats) -> Floats:
    products = left @ right.T
    if cell.kernel == "poly":
        return (cell.gamma * products + 1.0) ** 3
    squares = np.square(left).sum(axis=1)[:, None] + np.square(right).sum(axis=1)
    return np.exp(-cell.gamma * np.maximum(squares - 2.0 * products, 0.0))


def _climbed(
    cell: Cell, package: str, X: Floats, y: Floats, arguments: argparse.Namespace
) -> Found:
    """Tolerances from the loosest on, until every gap is certified."""
    found = Found(missing=_missing(package))
    if found.missing:
        return found
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "X.npy", X)
        np.save(folder / "y.npy", y)
        for tol in LADDERS[package]:
            try:
                answer = _answer(cell, package, folder, tol, arguments)
            except subprocess.TimeoutExpired:
                found.missing = f"more than {arguments.limit:g} s"
                break
            weights, support = np.load(folder / "weights.npy"), np.load(folder / "support.npy")
            gap = certified(cell, X, y, weights, support, answer["intercept"])
            found.vectors, found.passes = support.size, answer["passes"]
            for wanted in GAPS:
                if gap <= wanted and wanted not in found.reached:
                    found.reached[wanted], found.tols[wanted] = (answer["seconds"], gap), tol
            if len(found.reached) == len(GAPS):
                break
    return found


def _missing(package: str) -> str:
    if package != "sklearnex" or other_environment.version("scikit-learn-intelex"):
        return ""
    return "scikit-learn-intelex is not installed"


def _answer(
    cell: Cell, package: str, folder: Path, tol: float, arguments: argparse.Namespace
) -> dict[str, Any]:
    python = str(other_environment.python()) if package == "sklearnex" else sys.executable
    settings = _settings(cell, tol) | {"repeats": arguments.repeats}
    command = [python, str(SERVER), package, str(folder), json.dumps(settings)]
    ours = {} if package == "sklearnex" else {"PYTHONPATH": os.pathsep.join(sys.path)}
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    limits = dict.fromkeys(THREAD_LIMITS, "1")
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        timeout=arguments.limit,
        env={**surroundings, **limits, **ours},
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _settings(cell: Cell, tol: float) -> dict[str, Any]:
    """Parameters of the `SVC` of any package."""
    settings = {
        "kernel": cell.kernel,
        "gamma": cell.gamma,
        "C": cell.C,
        "tol": tol,
        "cache_size": CACHE_MEGABYTES,
    }
    return settings | ({"degree": 3, "coef0": 1.0} if cell.kernel == "poly" else {})


def _explained(cell: Cell, X: Floats, y: Floats, found: dict[str, Found]) -> Iterator[str]:
    """A sentence for each gap at which another package is faster: where our time goes."""
    ours, told = found["proxmargin"], dict[float, Shares]()
    for gap in GAPS:
        other, ratio = _ratio(found, gap)
        if not ratio > SLOWER:  # NaN where no other reached the gap
            continue
        tol = ours.tols[gap]
        if tol not in told:
            told[tol] = _profiled(cell, X, y, tol)
        head = f"{cell}, gap {gap:g}: {ratio:.2f} times {other}"
        yield f"- {head}; of a profiled fit {told[tol].words}."


def _profiled(cell: Cell, X: Floats, y: Floats, tol: float) -> Shares:
    from proxmargin import SVC

    step = max(1, y.size // TOY_ROWS)
    with threadpool_limits(1):
        SVC(**_settings(cell, tol)).fit(X[::step], y[::step])
        return shares(lambda: SVC(**_settings(cell, tol)).fit(X, y))


def _ratio(found: dict[str, Found], gap: float) -> tuple[str, float]:
    """The fastest other package, and our time over its; not a number where one is missing."""
    times = {name: one.reached[gap][0] for name, one in found.items() if gap in one.reached}
    ours = times.pop("proxmargin", None)
    if ours is None or not times:
        return "", float("nan")
    best = min(times, key=times.__getitem__)
    return best, ours / times[best]


def _row(cell: Cell, shape: tuple[int, ...], found: dict[str, Found]) -> list[str]:
    ours = found["proxmargin"]
    row = [str(cell), f"{shape[0]} x {shape[1]}", str(ours.vectors)]
    for gap in GAPS:
        row += [_shown(one, gap) for one in found.values()]
        other, ratio = _ratio(found, gap)
        row.append(f"{ratio:.2f}" if other else "")
    return [*row, "" if ours.passes is None else f"{ours.passes:.2f}"]


def _shown(one: Found, gap: float) -> str:
    if gap in one.reached:
        return seconds(one.reached[gap][0])
    return one.missing or "-"


def _head() -> Iterator[str]:
    yield from ("data, kernel, C", "shape", "support")
    for gap in GAPS:
        yield from (f"{name}, {gap:g}" for name in LADDERS)
        yield "ratio"
    yield "values / n^2"


def _body(
    found: dict[Cell, dict[str, Found]], shapes: dict[Cell, tuple[int, ...]], slow: list[str]
) -> str:
    number = other_environment.version("scikit-learn-intelex") or "not installed"
    rows = [_row(cell, shapes[cell], one) for cell, one in found.items()]
    reasons = f"\n\n### Where the ratio is over {SLOWER:g}\n\n" + "\n".join(slow) if slow else ""
    return f"""- CPU seconds on one thread, the least of a few fits, at the loosest tolerance whose
  model has the relative gap at the head of the column by the NumPy formulas of this benchmark (`-`:
  no power of ten down to 1e-6 has). Ratios are ours over the fastest other package's.
- LIBSVM is scikit-learn's `SVC`; sklearnex is that of scikit-learn-intelex {number}, in an
  environment of its own. Caches of {CACHE_MEGABYTES} MB; memory that the fit can take is touched
  beforehand.
- rbf g: ``exp(-g |x - z|^2)``; poly g: ``(g <x, z> + 1)^3``. Features in [0, 1]; of more than two
  classes, the lower half against the others; `waves`: eight Gaussian features, labels by a sine, a
  product and noise.
- Values / n^2: entries of the kernel that were used, cached ones included, over all entries.

{table(list(_head()), rows)}{reasons}"""
