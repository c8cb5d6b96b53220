"""Cells of `python -m benchmarks cells` in which both packages take turns in one process.

A rival has the loosest tolerance of its ladder with which the gap of its model is certified; ours
has that gap for its tolerance. CPU seconds, of which the least counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.comparison import LOSSES, stated
from benchmarks.comparison_table import Case
from benchmarks.datasets import Floats, _stored, load, standardized
from benchmarks.kernel_grid import Cell as KernelCell
from benchmarks.kernel_grid import certified
from benchmarks.kernel_grid import load as load_kernel
from benchmarks.measure import judged_on
from benchmarks.peers import ALL, absent
from benchmarks.peers.own import OwnPeer
from benchmarks.report import seconds, table

TURNS = 7  # of each package, while they take less than SHORT
SHORT = 2.0  # seconds of all turns
LONGEST = 60.0  # seconds in which what no rival certifies is wanted
LADDER = tuple(10.0**-k for k in range(1, 10))  # of others
SPARSE = "sparse:49749,300,0.04"  # the shape of w8a
TALL = "synthetic:49990,22,5,0.5"  # that of ijcnn1
GENES = ("colon", "leukemia", "synthetic:102,12600,10,0.3", "synthetic:181,12533,10,0.3")
SKGLM = ("skglm-acd-shipped", "skglm-pn-shipped")
COVERTYPE = "covtype@3000"
GAMMAS: tuple[str | float, ...] = ("scale", 0.5, 2.0)
OWN_RULES = {"LogisticRegression": ("ridge-newton", "b-pgh"), "DWD": ("b-pgh", "fapg-star")}
NOISE = 60_000, 20_000, 0.001  # samples, features, density
REMARKS = f"""\
- Least CPU seconds of up to {TURNS} fits in which the packages take turns in one process, kernels
  loaded. A rival has the loosest tolerance (powers of ten) with which its gap is certified at the
  gap of the row, from its model and NumPy alone. `-`: none is timed; `*`: the gap, not met, of
  its tightest one, or of a limit on the wall that a loaded machine reaches early.
- `sparse:` and `synthetic:` are simulated by a seed, in the shapes of w8a, ijcnn1, prostate and
  lung cancer data; `musk` are 476 x 166 of thirty clusters; noise is {NOISE[0]} x {NOISE[1]} with
  20 entries a row and labels by chance."""

Fit = Callable[[], Any]


@dataclass(frozen=True)
class Result:
    """Seconds of a fit and the gap that it certifies."""

    seconds: float
    gap: float


@dataclass(frozen=True)
class Paired:
    """A row of the table: ours, and the rivals by name."""

    model: str
    data: str
    goal: float
    wanted: float | None  # ratio, or seconds where there is no rival
    ours: Result
    others: dict[str, Result]

    @property
    def rival(self) -> str:
        """The fastest that meets the gap, else the one that comes closest."""

        def rank(name: str) -> tuple[float, float]:
            one = self.others[name]
            return max(one.gap, self.goal), one.seconds

        return min(self.others, key=rank, default="")

    def cells(self) -> list[str]:
        cells = [self.model, self.data, f"{self.goal:g}", self._told(self.ours)]
        limit = "" if self.wanted is None else f"{self.wanted:g}"
        if not self.rival:
            return [*cells, "-", "", "", f"{limit} s"]
        other = self.others[self.rival]
        ratio = f"{self.ours.seconds / other.seconds:.2f}"
        return [*cells, self.rival, self._told(other), ratio, limit]

    def _told(self, one: Result) -> str:
        return seconds(one.seconds) + ("" if one.gap <= self.goal else f" * {one.gap:.1e}")


def paired_body(limit: float) -> Iterator[str]:
    """The table, after each of its rows; fits that no rival has end after ``limit`` seconds."""
    rows: list[list[str]] = []
    head = ["model", "data", "gap", "proxmargin", "rival", "its time", "ratio", "wanted"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stopped early shows in its gap
        for one in _cells(limit):
            rows.append(one.cells())
            print(" | ".join(rows[-1]), flush=True)
            yield f"### Packages in turn, in one process\n\n{REMARKS}\n\n{table(head, rows)}"


def _cells(limit: float) -> Iterator[Paired]:
    for goal in (1e-3, 1e-6):
        yield _l1(SPARSE, 0.1, True, goal, 0.5, ("skglm-acd", "skglm-pn", "celer-pn"))
        yield _l1(SPARSE, 0.1, False, goal, 0.9, ("snapml", *SKGLM))
        yield _l1(TALL, 0.1, False, goal, 0.9, ("snapml", *SKGLM))
    for name in GENES:
        for share in (0.5, 0.1):
            yield _l1(name, share, False, 1e-3, 0.8, (*SKGLM, "celer-pn"))
    for goal in (1e-3, 1e-6):
        yield _rbf("waves@8000 of 22", *_waves(8000, 22), 1.0, goal, 0.7)
        for C in (0.1, 1.0, 10.0):
            yield _rbf("musk", *_musk(), C, goal, 1.0)
    for name in ("sonar", "ionosphere", "diabetes", "german", "australian"):
        yield _rbf(name, *load_kernel(name), 10.0, 1e-6, 1.0)
    for name in ("colon", "leukemia", "srbct"):
        yield _compared(name)
    for model, gamma in ((m, g) for m in OWN_RULES for g in GAMMAS):
        yield _own_rules(model, gamma)
    yield from _single(limit)


# ---- measuring ----------------------------------------------------------------------------------


def _in_turn(fits: dict[str, Fit]) -> dict[str, float]:
    least, spent = dict.fromkeys(fits, np.inf), 0.0
    for _ in range(TURNS):
        for name, fit in fits.items():
            started = time.process_time()
            fit()
            taken = time.process_time() - started
            least[name], spent = min(least[name], taken), spent + taken
        if spent > SHORT:
            break
    return least


def _row(
    model: str,
    data: str,
    goal: float,
    wanted: float,
    ladders: dict[str, Callable[[float], Any]],
    gap: Callable[[Any], float],
) -> Paired:
    """``ladders`` fit at a tolerance; the first is ours."""
    fits: dict[str, Fit] = {}
    gaps = {}
    for name, fit in ladders.items():
        for setting in LADDER if fits else (goal, 0.1 * goal):
            gaps[name] = gap(fit(setting))
            fits[name] = partial(fit, setting)
            if gaps[name] <= goal:
                break
    least = _in_turn(fits)
    found = {name: Result(least[name], gaps[name]) for name in fits}
    ours = found.pop(next(iter(ladders)))
    return Paired(model, data, goal, wanted, ours, found)


def _l1(
    data: str, share: float, free: bool, goal: float, wanted: float, peers: Sequence[str]
) -> Paired:
    """Logistic regression with an l1 norm."""
    problem = stated(Case(data, LOSSES["logistic"], share, 1.0, free))
    solvers = [OwnPeer("proxmargin", "auto"), *(ALL[p] for p in peers if not absent(ALL[p]))]
    ladders: dict[str, Callable[[float], Any]] = {}
    for peer in solvers:
        if peer.solves(problem) is None:
            design = peer.prepared(problem.design)
            own = type(problem)(
                design, problem.labels, problem.loss, problem.l1, problem.l2, fit_intercept=free
            )
            ladders[peer.name] = partial(peer.fit, own)
    intercept = "" if free else ", no intercept"
    model = f"logistic, l1, {share:g} critical{intercept}"
    return _row(model, data, goal, wanted, ladders, judged_on(problem))


def _rbf(data: str, X: Floats, y: Floats, C: float, goal: float, wanted: float) -> Paired:
    """A Gaussian kernel of scikit-learn's `gamma='scale'`, against LIBSVM."""
    from sklearn.svm import SVC

    import proxmargin

    gamma = 1.0 / (X.shape[1] * float(X.var()))
    cell = KernelCell(data, "rbf", gamma, C)

    def gap(model: Any) -> float:
        weights, intercept = model.dual_coef_.ravel(), float(np.ravel(model.intercept_)[0])
        return certified(cell, X, y, weights, model.support_, intercept)

    ladders = {
        "proxmargin": lambda tol: proxmargin.SVC(C=C, kernel="rbf", gamma=gamma, tol=tol).fit(X, y),
        "LIBSVM": lambda tol: SVC(C=C, gamma=gamma, tol=tol).fit(X, y),
    }
    return _row(
        f"SVC rbf, C {C:g}", f"{data} ({X.shape[0]} x {X.shape[1]})", goal, wanted, ladders, gap
    )


def _own_rules(model: str, gamma: str | float) -> Paired:
    """What `solver='auto'` chooses against other solvers, by the model's own certificate."""
    import proxmargin

    data = load(COVERTYPE)
    X = np.ascontiguousarray(data.design)

    def fit(name: str, tol: float) -> Any:
        make = getattr(proxmargin, model)
        return make(kernel="rbf", gamma=gamma, solver=name, tol=tol, time_limit=5.0).fit(
            X, data.labels
        )

    ladders = {name: partial(fit, name) for name in ("auto", *OWN_RULES[model])}
    found: dict[str, Result] = {}
    fits = {name: partial(one, 1e-6) for name, one in ladders.items()}
    gaps = {name: float(one().certificate_.relative_gap) for name, one in fits.items()}
    least = _in_turn({name: one for name, one in fits.items() if gaps[name] <= 1e-6})
    found = {name: Result(least[name], gaps[name]) for name in least}
    ours = found.pop("auto", Result(np.nan, gaps["auto"]))
    return Paired(f"{model} rbf, gamma {gamma}", COVERTYPE, 1e-6, 1.0, ours, found)


def _compared(name: str) -> Paired:
    """A nested comparison against nested `GridSearchCV`, seconds a setting."""
    from benchmarks.nested import PAIRS, _data, _ours, _theirs

    X, y = _data(name)
    pair = next(one for one in PAIRS if one.ours == "SVC-rbf")
    ours, theirs = _ours(X, y, pair.ours), _theirs(X, y, pair)
    others = {"GridSearchCV": Result(theirs.per_point, 0.0)}
    return Paired(
        "compare: SVC-rbf, a setting", name, 1.0, 0.5, Result(ours.per_point, 0.0), others
    )


def _single(limit: float) -> Iterator[Paired]:
    """Fits that are measured in seconds, by their own certificates."""
    import proxmargin
    from benchmarks.stability import DATA, HUBERIZED, fitted
    from proxmargin.losses import Hinge
    from proxmargin.penalties import Ball

    def alone(model: str, data: str, wanted: float, fit: Fit) -> Paired:
        started = time.process_time()
        certificate = fit().certificate_
        spent = time.process_time() - started
        gap = float(certificate.relative_gap)
        return Paired(model, data, 1e-6, wanted, Result(spent, gap), {})

    wide = load("synthetic:100,5000,5,0")
    for p in (1.5, 3.0):
        ball = proxmargin.MarginClassifier(Hinge(), Ball(p, 1.0))
        ball.fit(wide.design, wide.labels)
        fit = partial(ball.fit, wide.design, wide.labels)
        yield alone(f"hinge in the l_{p:g} ball", wide.name, 0.01, fit)
    X, y, _ = _stored(DATA[-1])
    measured = fitted(HUBERIZED, standardized(X), y)
    result = Result(measured.seconds, 0.0)
    yield Paired("joint stability selection", DATA[-1], 1e-6, 5.0, result, {})
    X, y = _waves(10_000, 8)
    for name in ("L2SVC", "LogisticRegression"):
        model = getattr(proxmargin, name)(C=10.0, kernel="rbf", gamma=0.5, time_limit=limit)
        yield alone(f"{name} rbf, C 10", "waves (10000 x 8)", LONGEST, partial(model.fit, X, y))
    rng = np.random.default_rng(0)
    n, features, density = NOISE
    X = sp.random(n, features, density, "csr", random_state=rng, data_rvs=rng.standard_normal)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    svc = proxmargin.SVC(C=1e3, time_limit=limit)
    yield alone("SVC, C 1000", "sparse noise", LONGEST, partial(svc.fit, X, y))


# ---- data ---------------------------------------------------------------------------------------


def _waves(n: int, p: int) -> tuple[Floats, Floats]:
    """Gaussian features; labels by a sine, a product and noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    score = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(n)
    return X, np.where(score > 0, 1.0, -1.0)


def _musk() -> tuple[Floats, Floats]:
    """Thirty clusters, each of one class, with a few labels turned."""
    rng = np.random.default_rng(0)
    n, p, clusters = 476, 166, 30
    centres, signs = (
        rng.standard_normal((clusters, p)),
        np.where(rng.random(clusters) < 0.45, 1, -1),
    )
    which = rng.integers(0, clusters, n)
    X = standardized(centres[which] + 0.7 * rng.standard_normal((n, p)))
    return X, signs[which] * np.where(rng.random(n) < 0.03, -1.0, 1.0)
