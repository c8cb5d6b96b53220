"""Tables 2 and 8 of Xu et al. (2015): seconds of B-PGH, B-PGH-2, GCD and ADMM."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import LinearSVC

from benchmarks.datasets import DataSet, _stored, synthetic
from benchmarks.papers.claims import ERRORS, Claim, decided, judged, standard_error
from benchmarks.papers.table import Outcome, PaperTable, Size, Verdict
from benchmarks.papers.xu import xu2015
from benchmarks.papers.xu.binary import doubly_regularized
from benchmarks.papers.xu.interpreted import sweep_seconds
from benchmarks.papers.xu.settings import SIGNIFICANTLY, huberized
from benchmarks.report import seconds, table

__all__ = ["TABLES"]

TOL = 1e-6  # of rule (20)
TOL_ADMM = 1e-5
GOAL = 1e-6  # relative gap that a fit by rule (20) is held against
MOST = {Size.SMALL: 3000, Size.FULL: 100_000}  # iterations or sweeps of a fit
PAIRS = [(l1, l2) for l1 in (0.02, 0.04, 0.08, 0.12, 0.2) for l2 in (0.1, 0.3, 1.0, 2.0, 5.0)]
DIAGONAL = PAIRS[::6]  # in a small run, from the weakest to the strongest
LARGEST = (2000, 20000, 200)
# at this size, of these pairs, with so many iterations or sweeps; GCD on the first draw of the
# first pair only
AT_LARGEST = {size: ([(0.08, 1.0), *DIAGONAL[:2], *DIAGONAL[3:]], 1000) for size in Size}
DRAWS_LARGEST = 2
ONCE = "GCD"
DRAWS = 10
NARROW = 10  # relevant features are few: s at most p / this many ...
WIDE = 2000  # ... and p is large from here on, as in the text
TIMES_ADMM = 50.0  # "over 50 times faster than ADMM"
TWO_STAGE = 5.0  # times: the acceleration by the second stage that the introduction has

Method = Callable[[float, float, int], Any]
"""A model from lambda1, lambda2 and the most iterations."""


class Cell(NamedTuple):
    """Of a method on one size and correlation: each fit's CPU seconds, passes, gap, and seconds of
    its loops if they were interpreted, NaN if they are none."""

    seconds: list[float]
    passes: list[float]
    gaps: list[float]
    interpreted: list[float]

    @property
    def mean(self) -> float:
        return float(np.mean(self.seconds))


def _by_rule(solver: str, **options: Any) -> Method:
    stop = {"stopping": "relative-change", "tol": TOL}

    def model(l1: float, l2: float, most: int) -> Any:
        return huberized(l1, l2, solver=solver, solver_options=options, max_iter=most, **stop)

    return model


def _admm(l1: float, l2: float, most: int) -> Any:
    stop = {"stopping": "relative-change", "tol": TOL_ADMM, "max_iter": most}
    return doubly_regularized(l1, l2, solver="admm", solver_options={"setting": "xu"}, **stop)


def _auto(l1: float, l2: float, most: int) -> Any:
    return huberized(l1, l2, tol=GOAL, max_iter=most)


METHODS: dict[str, Method] = {
    "B-PGH": _by_rule("b-pgh"),
    "B-PGH-2": _by_rule("b-pgh-2", repair=False),
    "GCD": _by_rule("gcd", plain=True),
    "ADMM": _admm,
    "auto": _auto,
}
Row = dict[str, Cell]


def _warm() -> None:
    """Loads the kernels."""
    data = synthetic(40, 30, 5, 0.0, np.random.default_rng(0))
    for method in METHODS.values():
        _fit(method(0.1, 0.1, MOST[Size.SMALL]), data)


def _fit(model: Any, data: DataSet, sweep: float = np.nan) -> tuple[float, float, float, float]:
    """Seconds, passes, gap; and seconds of so many sweeps of ``sweep`` seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        told = model.fit(data.design, data.labels).certificate_
        taken = time.process_time() - start
    return taken, told.n_passes, told.relative_gap, told.n_iter * sweep


# ---- Table 2 ------------------------------------------------------------------------------------


def _table_2(size: Size) -> Outcome:
    _warm()
    rows = {}
    small = size is Size.SMALL
    for key in xu2015.SECONDS:
        is_largest = key[0] == LARGEST
        usual = (DIAGONAL if small else PAIRS), MOST[size]
        pairs, most = AT_LARGEST[size] if is_largest else usual
        draws = DRAWS_LARGEST if is_largest else DRAWS
        names = [name for name in METHODS if not (is_largest and name == "ADMM")]
        rows[key] = _row(*key, names, pairs, draws, most)
        print(f"{key}: { ({name: cell.mean for name, cell in rows[key].items()}) }", flush=True)
    times, passes, gaps = zip(*(_cells(key, row) for key, row in rows.items()), strict=True)
    body = f"""Mean CPU seconds a fit, printed and here

{table(HEAD_TIMES, times)}

Mean passes over the data (products with X or X', or sweeps)

{table(HEAD_COUNTS, passes)}

Fits that end with a relative gap above {GOAL:g}, and the largest gap

{table(HEAD_COUNTS, gaps)}

{_why_2(rows)}"""
    return judged(body, _claims(rows), _compiled(rows))


def _why_2(rows: Mapping[tuple[tuple[int, int, int], float], Row]) -> str:
    names = list(METHODS)
    faster = {
        name: max(
            xu2015.SECONDS[key][names.index(name)] / row[name].mean
            for key, row in rows.items()
            if name in row
        )
        for name in ("B-PGH", "ADMM")
    }
    return f"""The paper times Matlab 2010b (its footnote 3): an update of one coordinate in GCD is
an interpreted line there and a few compiled operations here, while the products with X of B-PGH
cost the same in both. The column "GCD, interpreted" is the number of its sweeps times the seconds
of a sweep in NumPy, timed on the same data: in one language B-PGH is the faster one at every size,
by compiled loops it is not, and in passes over the data GCD needs fewer in some cells (below). The
printed seconds of ADMM exceed ours by up to {faster["ADMM"]:.0f} times, those of B-PGH by up to
{faster["B-PGH"]:.1f}: so the factor of {TIMES_ADMM:g} is not reached, though ADMM is the slowest at
every size where it runs. B-PGH-2 saves products with all of X in its second stage, but its first
takes plain steps with L_k = L_f, and needs more of them than the second saves where few iterations
are needed in all. Where GCD ends at the limit of sweeps, with the gap in the last table, its
seconds are a lower bound."""


def _row(
    size: tuple[int, int, int],
    rho: float,
    names: Sequence[str],
    pairs: Sequence[tuple[float, float]],
    draws: int,
    most: int,
) -> Row:
    row = {name: Cell([], [], [], []) for name in names}
    for seed in range(draws):
        data = synthetic(*size, rho, np.random.default_rng(seed))
        for pair in pairs:
            sweep = sweep_seconds(data, *pair)
            for name, cell in row.items():  # in turns, on the same problem
                if name == ONCE and size == LARGEST and cell.seconds:
                    continue
                found = _fit(METHODS[name](*pair, most), data, sweep if name == "GCD" else np.nan)
                for part, value in zip(cell, found, strict=True):
                    part.append(value)
    return row


def _cells(
    key: tuple[tuple[int, int, int], float], row: Row
) -> tuple[list[str], list[str], list[str]]:
    printed = xu2015.SECONDS[key]
    label = f"{key[0]}, {key[1]:g}"
    times, passes, gaps = [label], [label], [label]
    for name, theirs in zip(METHODS, (*printed, None), strict=True):
        cell = row.get(name)
        if theirs is not None:
            times.append("-" if np.isnan(theirs) else f"{theirs:g}")
        times.append(seconds(cell.mean) if cell else "-")
        if name == "GCD":
            times.append(seconds(float(np.mean(cell.interpreted))))
        if name != "ADMM":
            assert cell is not None
            short = sum(gap > GOAL for gap in cell.gaps)
            passes.append(f"{np.mean(cell.passes):.0f}")
            gaps.append(f"{short} of {len(cell.gaps)}; {max(cell.gaps):.1e}")
    return times, passes, gaps


def _claims(rows: Mapping[tuple[tuple[int, int, int], float], Row]) -> list[Claim]:
    slower = {
        key: float(np.mean(row["GCD"].interpreted)) / _on_the_same(row) for key, row in rows.items()
    }
    admm = {k: row["ADMM"].mean / row["B-PGH"].mean for k, row in rows.items() if "ADMM" in row}
    wide = [key for key in rows if key[0][1] >= WIDE and key[0][2] * NARROW <= key[0][1]]
    gains = {key: np.log(_ratios(rows[key])) for key in wide}
    every = np.concatenate(list(gains.values()))
    return [
        Claim(
            "B-PGH is consistently faster than GCD, both interpreted",
            min(slower.values()) > 1.0,
            _between(slower.values()),
            main=True,
        ),
        Claim(
            f"and over {TIMES_ADMM:g} times faster than ADMM",
            min(admm.values()) > TIMES_ADMM,
            _between(admm.values()),
        ),
        Claim(
            "B-PGH-2 is significantly faster than B-PGH where p is large and s much smaller"
            f" ({SIGNIFICANTLY:g} times, our factor)",
            decided(every, np.log(SIGNIFICANTLY)),
            _geometric(every),
        ),
        Claim(
            f"B-PGH-2 is more than {TWO_STAGE:g} times faster (1.2; in print at {LARGEST})",
            decided(every, np.log(TWO_STAGE)),
            _geometric(every),
        ),
    ]


def _compiled(rows: Mapping[tuple[tuple[int, int, int], float], Row]) -> list[Claim]:
    """What our seconds and passes say of the same order, which the paper does not speak of."""
    slower = [row["GCD"].mean / _on_the_same(row) for row in rows.values()]
    passes = [
        float(np.mean(row["GCD"].passes) / np.mean(row["B-PGH"].passes[: len(row["GCD"].passes)]))
        for row in rows.values()
    ]
    fewer = sum(one > 1.0 for one in passes)
    return [
        Claim(
            "B-PGH is faster than GCD with compiled loops (our measure)",
            min(slower) > 1.0,
            f"in {sum(one > 1.0 for one in slower)} of {len(slower)} cells; {_between(slower)}",
        ),
        Claim(
            "B-PGH needs fewer passes over the data than GCD (our measure)",
            fewer == len(passes),
            f"in {fewer} of {len(passes)} cells; GCD {_between(passes)} as many",
        ),
    ]


def _on_the_same(row: Row) -> float:
    """Mean seconds of B-PGH on the fits that GCD has."""
    return float(np.mean(row["B-PGH"].seconds[: len(row["GCD"].seconds)]))


def _ratios(row: Row) -> np.ndarray:
    """Seconds of B-PGH over those of B-PGH-2, of each fit."""
    return np.array(row["B-PGH"].seconds) / np.array(row["B-PGH-2"].seconds)


def _between(ratios: Collection[float]) -> str:
    return f"{min(ratios):.2g} to {max(ratios):.2g} times"


def _geometric(logs: np.ndarray) -> str:
    error = standard_error(logs)
    return (
        f"{np.exp(logs.mean()):.2g} times on {logs.size} fits, within a factor of"
        f" {np.exp(ERRORS * error):.2g}"
    )


# ---- Table 8 ------------------------------------------------------------------------------------

TESTED = 2000
STRENGTHS = {Size.SMALL: (1e-4,), Size.FULL: (1e-5, 1e-4, 1e-3)}  # lambda1 = lambda2
SAME = 1.0  # points, "very similar"
ALMOST = 400.0  # times, printed; half of it counts


def _table_8(size: Size) -> Outcome:
    _warm()
    design, groups, train = _stored("news20")
    labels = np.where(groups < 10, 1.0, -1.0)
    test = np.flatnonzero(~train)[:TESTED]
    data = DataSet("news20", design[train], labels[train])
    rows, claims = [], []
    for strength in STRENGTHS[size]:
        found = {}
        for name in ("B-PGH", "B-PGH-2", "GCD"):
            model = METHODS[name](strength, strength, MOST[size])
            model.set_params(fit_intercept=False, intercept_ridge=0.0)
            taken, _, gap, _ = _fit(model, data)
            accuracy = 100.0 * model.score(design[test], labels[test])
            sweeps = model.certificate_.n_iter * sweep_seconds(data, strength, strength)
            found[name] = taken, accuracy, sweeps
            counted = np.count_nonzero(model.coef_)
            shown = seconds(sweeps) if name == "GCD" else "-"
            cells = [f"{accuracy:.1f}", str(counted), seconds(taken), shown, f"{gap:.1e}"]
            rows.append([name, f"{strength:g}", *cells])
            print(rows[-1], flush=True)
        claims += _claims_8(found, strength)
    linear = LinearSVC(fit_intercept=False).fit(data.design, data.labels)
    accuracy = 100.0 * linear.score(design[test], labels[test])
    rows.append(["LIBLINEAR", "-", f"{accuracy:.1f}", *"----"])
    head = ["method", "lambda1 = lambda2", "accuracy %", "features", "CPU seconds", "interpreted"]
    head.append("relative gap")
    outcome = judged(f"{table(head, rows)}\n\nPrinted\n\n{_printed_8()}\n\n{WHY_8}", claims)
    why = f"rcv1 and realsim; on news20 instead: {outcome.why}"
    return Outcome(outcome.body, Verdict.OUT_OF_REACH, why)


WHY_8 = """The printed 8,000 seconds of GCD are of interpreted loops over 20,000 to 47,000 features.
"Interpreted" are its sweeps times the seconds of one in NumPy, over the stored entries of each
column; compiled, as the CPU seconds have it, a sweep is about the cost of one product with X."""


def _printed_8() -> str:
    rows = []
    for name, (methods, linear) in xu2015.LARGE.items():
        for method, one in methods.items():
            rows.append([name, method, f"{one.accuracy:g}", str(one.support), f"{one.seconds:g}"])
        rows.append([name, "LIBLINEAR", f"{linear:g}", "-", "-"])
    return table(["data", "method", "accuracy %", "features", "seconds"], rows)


def _claims_8(found: Mapping[str, tuple[float, float, float]], strength: float) -> list[Claim]:
    ours, two, gcd = (found[name] for name in ("B-PGH", "B-PGH-2", "GCD"))
    ratios = [gcd[2] / ours[0], gcd[2] / two[0]]
    return [
        Claim(
            "both are significantly faster than GCD, all interpreted"
            f" ({SIGNIFICANTLY:g} times, our factor)",
            min(ratios) >= SIGNIFICANTLY,
            f"{min(ratios):.2g} and {max(ratios):.2g} times at {strength:g}",
        ),
        Claim(
            f"by almost {ALMOST:g} times",
            min(ratios) > ALMOST / 2.0,
            f"{min(ratios):.2g} and {max(ratios):.2g} times at {strength:g}",
        ),
        Claim(
            f"accuracies are very similar (within {SAME:g} points)",
            max(ours[1], two[1], gcd[1]) - min(ours[1], two[1], gcd[1]) <= SAME,
            f"{ours[1]:.1f}, {two[1]:.1f}, {gcd[1]:.1f}",
        ),
    ]


HEAD_TIMES = (
    "(n, p, s), rho",
    *("B-PGH, printed", "B-PGH", "B-PGH-2, printed", "B-PGH-2", "GCD, printed", "GCD"),
    *("GCD, interpreted", "ADMM, printed", "ADMM"),
    f"auto, gap {GOAL:g}",
)
HEAD_COUNTS = ("(n, p, s), rho", *(name for name in METHODS if name != "ADMM"))
TABLES = {
    "X2": PaperTable(
        "Table 2 of Xu et al.: seconds on synthetic data",
        f"""delta = 1, lambda3 = lambda2, rule (20) at {TOL:g} (ADMM {TOL_ADMM:g}, mu1 = 100/n,
mu2 = 50), 25 pairs of (lambda1, lambda2), {DRAWS} draws, as printed; at the small size
{len(DIAGONAL)} pairs. At {LARGEST} {DRAWS_LARGEST} draws of {len(DIAGONAL)} pairs and at most
{AT_LARGEST[Size.SMALL][1]} iterations or sweeps, GCD on the first of them; ADMM is left out there
as in the paper;
B-PGH-2 without our repair and GCD over all features, also as printed; a fit ends after
{MOST[Size.SMALL]} iterations or sweeps ({MOST[Size.FULL]} at full size). Inferred: the pairs,
lambda1 of 0.02 to 0.2 and lambda2 of 0.1 to 5, around those of Tables 1 and 3. Theirs are Matlab;
here B-PGH, B-PGH-2 and ADMM are NumPy and GCD is compiled, so that its sweeps are timed in NumPy
too. CPU seconds include our certificates; methods in turns on each problem.""",
        (8.0, 30.0),
        _table_2,
        (f"{DRAWS} and {DRAWS_LARGEST}",) * 2,
    ),
    "X8": PaperTable(
        "Table 8 of Xu et al.: large sparse data",
        f"""Its data sets rcv1 and realsim are not public here. In their place the first ten
groups of news20 against the others (11,314 x 130,107, sparse, {TESTED} documents to test), b = 0,
delta = 1, rule (20) at {TOL:g}, as printed there; lambda1 = lambda2 given instead of
cross-validated.""",
        (0.8, 6.0),
        _table_8,
        ("1", "1"),
    ),
}
