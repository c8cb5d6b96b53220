"""Figures 5, 7 and 9 of Ito et al. (2017): seconds against n, m and the parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.datasets import DataSet
from benchmarks.family import Ellipsoids, Tail
from benchmarks.family_data import load_scaled
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.ito import fapg
from benchmarks.papers.ito.agreement import faster, median_over_printed, stood_for
from benchmarks.papers.ito.logistic import C
from benchmarks.papers.ito.nu_machines import chosen_nu
from benchmarks.papers.ito.printed import LOGISTIC
from benchmarks.papers.ito.rivals import LATE, interior_point, liblinear, libsvm, shown
from benchmarks.papers.ito.roots import with_square_roots
from benchmarks.papers.ito.strategies import KAPPA, NU, chosen_kappa
from benchmarks.papers.pictures import panels
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table
from proxmargin import kappa_max

__all__ = ["FAPG", "TABLES", "Panel", "Shapes", "growth", "lines", "sketched"]

FAPG = "FAPG"
LIBSVM = "LIBSVM"
LIBLINEAR = "LIBLINEAR"
INTERIOR = "Clarabel"  # beside SeDuMi, which is not run
SEDUMI = "SeDuMi"
LITTLE = 5.0  # ratio of seconds that is no great change: not printed
FLAT = 0.5  # power of m up to which the time does not depend on it: not printed
MOST = {Size.SMALL: 20_000, Size.FULL: 50_000}  # iterations
NU_PROGRAM = 3_000_000  # entries of X up to which Clarabel is asked: most of a minute
LARGE_PROGRAM = 50_000_000  # entries of square roots


@dataclass(frozen=True)
class Shapes:
    """The data of a size: features and samples of the panels, and those held fixed."""

    features: Sequence[int]
    samples: Sequence[int]
    m: int  # of the left and the right panel
    n: int  # of the middle panel
    narrow: int  # features of the right panel


SHAPES = {
    Size.SMALL: Shapes((10, 100, 1000), (300, 1000, 3000), 3000, 100, 100),
    Size.FULL: Shapes((10, 100, 1000, 3000), (1000, 10_000, 63_000), 10_000, 1000, 100),
}
LOGISTIC_SHAPES = {  # n = 3000 and m = 63,000, too, in the paper
    Size.SMALL: SHAPES[Size.SMALL],
    Size.FULL: Shapes((10, 100, 1000), (1000, 10_000), 10_000, 1000, 100),
}
ROOT_SHAPES = {  # 2000 features in the paper
    Size.SMALL: Shapes((10, 100, 1000), (300, 1000, 3000), 3000, 500, 500),
    Size.FULL: Shapes((10, 100, 1000, 2000), (1000, 10_000, 100_000), 10_000, 2000, 2000),
}
Timed = Mapping[str, float]
Method = Callable[[DataSet, float, int], Timed]


@dataclass(frozen=True)
class Panel:
    """Seconds of each method at each value of x."""

    label: str
    xs: Sequence[float]
    seconds: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Figure:
    """What is timed at a parameter, the parameter of the first panels and those of the last."""

    measure: Method
    usual: Callable[[DataSet], float]
    grid: Callable[[DataSet], Sequence[float]]
    parameter: str
    claims: Callable[[Sequence[Panel]], list[Claim]]
    shapes: Mapping[Size, Shapes]
    prepare: Callable[[DataSet], DataSet] = lambda data: data
    explained: Callable[[Sequence[Panel]], str] = lambda found: ""


def _nu_svm(data: DataSet, nu: float, most: int) -> Timed:
    fit = fapg.nu_svm(data, nu, most)
    return {
        FAPG: _seconds(fit),
        LIBSVM: libsvm(data, nu),
        INTERIOR: interior_point(data, Tail(nu), NU_PROGRAM),
        LIBLINEAR: liblinear(data, C, "hinge"),
    }


def _logistic(data: DataSet, strength: float, most: int) -> Timed:
    fit = fapg.logistic(data, strength, most, epsilon=strength * fapg.EPSILON)
    return {FAPG: _seconds(fit), LIBLINEAR: liblinear(data, strength, "logistic")}


def _mpm(data: DataSet, kappa: float, most: int) -> Timed:
    fit = fapg.mm_mpm(data, kappa, most)
    model = Ellipsoids(kappa, joint=False)
    return {FAPG: _seconds(fit), INTERIOR: interior_point(data, model, LARGE_PROGRAM)}


def _seconds(fit: fapg.Fit) -> float:
    return fit.seconds if fit.met else LATE


def _figure(figure: Figure, size: Size) -> Outcome:
    shapes, most = figure.shapes[size], MOST[size]
    by_n = [(n, _drawn(shapes.m, n, figure)) for n in shapes.features]
    by_m = [(m, _drawn(m, shapes.n, figure)) for m in shapes.samples]
    narrow = _drawn(shapes.m, shapes.narrow, figure)
    grid = figure.grid(narrow)
    found = [
        _panel("n", [(x, data, figure.usual(data)) for x, data in by_n], figure.measure, most),
        _panel("m", [(x, data, figure.usual(data)) for x, data in by_m], figure.measure, most),
        _panel(figure.parameter, [(x, narrow, x) for x in grid], figure.measure, most),
    ]
    parts = [figure.explained(found), *(lines(one) for one in found)]
    body = "\n\n".join(part for part in parts if part)
    return judged(body, figure.claims(found), picture=sketched(found))


def _drawn(m: int, n: int, figure: Figure) -> DataSet:
    return figure.prepare(load_scaled(f"artificial:{m},{n}"))


def _panel(
    label: str, points: Sequence[tuple[float, DataSet, float]], measure: Method, most: int
) -> Panel:
    rows = []
    for x, data, parameter in points:
        rows.append(measure(data, parameter, most))
        told = ", ".join(f"{name} {shown(value)}" for name, value in rows[-1].items())
        print(f"{data.name}, {label} {x:.3g}: {told}", flush=True)
    seconds = {name: [row[name] for row in rows] for name in rows[0]}
    return Panel(label, [x for x, _, _ in points], seconds)


def lines(panel: Panel) -> str:
    """The panel as a table."""
    head = [f"{panel.label}: CPU seconds", *(f"{x:.3g}" for x in panel.xs)]
    return table(head, [[name, *map(shown, times)] for name, times in panel.seconds.items()])


def sketched(found: Sequence[Panel]) -> Any:
    """The panels on logarithmic axes; methods that were late have no points."""
    figure, axes = panels(len(found))
    for axis, panel in zip(axes, found, strict=True):
        for name, times in panel.seconds.items():
            finite = np.where(np.isfinite(times), times, np.nan)
            axis.plot(panel.xs, finite, marker="o", label=name)
        axis.set(xscale="log", yscale="log", xlabel=panel.label, ylabel="CPU seconds")
        axis.legend(fontsize="small")
    return figure


# ---- the text beside the figures ----------------------------------------------------------------


def growth(panel: Panel, name: str) -> float:
    """The slope of log seconds over log x between its first and last one; infinite if late last."""
    times = np.array(panel.seconds[name])
    known = np.flatnonzero(np.isfinite(times))
    if times[-1] == LATE:
        return float("inf")
    if known.size < 2:
        return float("nan")
    first, last = known[[0, -1]]
    return float(np.log(times[last] / times[first]) / np.log(panel.xs[last] / panel.xs[first]))


def _wide(panel: Panel, rivals: Sequence[str], least: float) -> list[Claim]:
    """The advantage for many features, over each rival that was run there."""
    k = [i for i, x in enumerate(panel.xs) if x >= least]
    ours = panel.seconds[FAPG]
    return [
        faster(name, f"for n >= {least:g}", [(ours[i], panel.seconds[name][i]) for i in k])
        for name in rivals
    ]


def _beside(panel: Panel, where: str, least: float = 0.0) -> Claim:
    """What is said of SeDuMi, with the seconds of Clarabel."""
    pairs = [
        (panel.seconds[FAPG][i], panel.seconds[INTERIOR][i])
        for i, x in enumerate(panel.xs)
        if x >= least
    ]
    return stood_for(f"FAPG is faster than {SEDUMI} {where}", pairs)


def _slower_growth(sentence: str, panel: Panel, rival: str) -> Claim:
    """FAPG's power of x is less than the rival's; untested where one of them is unknown."""
    ours, theirs = growth(panel, FAPG), growth(panel, rival)
    known = not np.isnan([ours, theirs]).any()
    told = f"powers of {panel.label}: {ours:.2g}, {rival} {theirs:.2g}"
    return Claim(sentence, ours < theirs if known else None, told)


def _spread(panel: Panel, name: str) -> float:
    times = panel.seconds[name]
    return float(max(times) / min(times))


def _claims_5(found: Sequence[Panel]) -> list[Claim]:
    by_n, by_m, by_nu = found
    times = by_nu.seconds[FAPG]
    return [
        *_wide(by_n, (LIBSVM,), 1000),
        _beside(by_n, "for n >= 1000", 1000),
        _slower_growth("LIBSVM does not scale with m as FAPG does", by_m, LIBSVM),
        Claim(
            "FAPG is faster for a larger nu",
            times[-1] < times[0],
            f"{shown(times[0])} s at {by_nu.xs[0]:.2g}, {shown(times[-1])} s at {by_nu.xs[-1]:.2g}",
        ),
    ]


def _claims_7(found: Sequence[Panel]) -> list[Claim]:
    by_n, by_m, by_c = found
    steady, unsteady = _spread(by_c, FAPG), _spread(by_c, LIBLINEAR)
    return [
        *_wide(by_n, (LIBLINEAR,), 100),
        _slower_growth("FAPG's time grows slower with m than LIBLINEAR's", by_m, LIBLINEAR),
        Claim(
            "FAPG's time changes less with C than LIBLINEAR's",
            steady < unsteady,
            f"largest over smallest: {steady:.2g} and {unsteady:.2g}",
        ),
        Claim(
            f"FAPG's time does not change so much with C (at most {LITTLE:g} times, ours)",
            steady <= LITTLE,
            f"largest over smallest: {steady:.2g}, C from {by_c.xs[0]:g} to {by_c.xs[-1]:g}",
        ),
    ]


def _explained_7(found: Sequence[Panel]) -> str:
    by_n = found[0]
    pairs = zip(by_n.xs, by_n.seconds[FAPG], by_n.seconds[LIBLINEAR], strict=True)
    told = ", ".join(f"{ours / theirs:.2g} at n = {n:g}" for n, ours, theirs in pairs)
    printed = [(one.fapg, one.liblinear) for one in LOGISTIC.values()]
    return f"""Seconds of FAPG over those of LIBLINEAR: {told}. The figure prints no seconds. Table
8 does: there FAPG takes {median_over_printed(printed)} times LIBLINEAR's in the median of the sets
within reach, and LIBLINEAR takes longer than here by the factor that section I8 tells. The rule of
FAPG is that of section I8, the residual of (13) over C."""


def _claims_9(found: Sequence[Panel]) -> list[Claim]:
    by_n, by_m, by_kappa = found
    power, times = growth(by_m, FAPG), by_kappa.seconds[FAPG]
    return [
        _beside(by_n, "for n >= 1000", 1000),
        Claim(
            "FAPG's time does not depend on m",
            None if np.isnan(power) else abs(power) < FLAT,
            f"power of m {power:.2g}",
        ),
        Claim(
            "a larger kappa takes more time",
            times[-1] > times[0],
            f"{shown(times[0])} s at {by_kappa.xs[0]:.2g},"
            f" {shown(times[-1])} s at {by_kappa.xs[-1]:.2g}",
        ),
        _beside(by_kappa, "at every kappa"),
    ]


def _nu_grid(data: DataSet) -> list[float]:
    """From just above the least nu: 0.1 is chosen_nu's own step."""
    least = chosen_nu(data)
    return [least, *(nu for nu in (0.1, 0.3, 0.5, 0.7, 0.9) if nu > least)]


def _c_grid(data: DataSet) -> list[float]:
    return [0.01, 0.1, 1.0, 10.0, 100.0]


def _kappa_grid(data: DataSet) -> list[float]:
    most = kappa_max(data.design, data.labels, "mpm")
    top = most if np.isfinite(most) else 2.0 * KAPPA
    return [share * top for share in (0.1, 0.5, 0.9)]


FIGURES = {
    "IF5": Figure(_nu_svm, lambda data: chosen_nu(data, NU), _nu_grid, "nu", _claims_5, SHAPES),
    "IF7": Figure(
        _logistic,
        lambda data: C,
        _c_grid,
        "C",
        _claims_7,
        LOGISTIC_SHAPES,
        explained=_explained_7,
    ),
    "IF9": Figure(
        _mpm, chosen_kappa, _kappa_grid, "kappa", _claims_9, ROOT_SHAPES, with_square_roots
    ),
}
TITLES = {
    "IF5": ("Figure 5 of Ito et al.: seconds of nu-SVMs", f"nu = {NU:g} where that has a margin"),
    "IF7": (
        "Figure 7 of Ito et al.: seconds of logistic regression",
        f"C = {C:g}; n = 3,000 and m = 63,000 of the figure are left out, fits of many minutes",
    ),
    "IF9": (
        "Figure 9 of Ito et al.: seconds of MM-MPM",
        f"kappa = {KAPPA:g}, or half of the largest where that is less; on n x n square roots of"
        " the covariances, which are made outside of the clock, as the text implies",
    ),
}


def _protocol(name: str) -> str:
    small, full = (FIGURES[name].shapes[size] for size in (Size.SMALL, Size.FULL))
    return f"""Artificial data of section 5 with m = {small.m:,} (left, right; full size: {full.m:,}
as printed), and n = {small.n:,} (middle; full size: {full.n:,}) and {small.narrow:,} (right; full
size: {full.narrow:,}); {TITLES[name][1]}. The figure has no numbers: its sentences are held
against ours. Algorithm 4 as in the tables, at most {MOST[Size.SMALL]:,} (full size:
{MOST[Size.FULL]:,}) iterations; CPU seconds; "late": over a limit of iterations; "-": not run,
for more data than it is given. SeDuMi is not run: what is said of it is untested, with the seconds
of Clarabel, another interior point method, beside."""


MINUTES = {"IF5": 90.0, "IF7": 4.0, "IF9": 90.0}
TABLES = {
    name: PaperTable(
        *(TITLES[name][0], _protocol(name), (1.0, MINUTES[name])), partial(_figure, FIGURES[name])
    )
    for name in FIGURES
}
