"""Theorems 6 and 7 of Ito et al. (2017): F of Algorithm 3 beside its bounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import lambertw

from benchmarks.datasets import DataSet, Floats
from benchmarks.family_data import load_scaled
from benchmarks.papers.claims import Claim, illustrated
from benchmarks.papers.ito import fapg
from benchmarks.papers.pictures import panels
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import table
from proxmargin import History, NuSVC

__all__ = ["TABLES", "Course", "bound_6", "bound_7"]

NU = 0.5
ETA = 1.1  # eta_u
K_1 = 2
DATA = {
    Size.SMALL: ("artificial:500,50", "heart", "sonar"),
    Size.FULL: ("artificial:500,50", "artificial:5000,500", "heart", "sonar", "splice"),
}
MOST = {Size.SMALL: 3000, Size.FULL: 20_000}  # iterations
NEVER = 1e-15  # a gap that ends no run
FIRST = 3  # k from which the theorems hold
ROUNDING = 1e-12  # relative to F(alpha^0)


class Course(NamedTuple):
    """F(alpha^k) - F* for k >= `FIRST`, relative to the first one; L_f R^2 in the same units."""

    excess: Floats
    scale: float


def bound_6(k: Floats) -> Floats:
    """Over ``2 eta_u L_f R^2``."""
    logs = np.log2(k + 2.0)
    return (logs / (k - logs)) ** 2


def bound_7(k: Floats) -> Floats:
    """The same with Lambert's W."""
    w = lambertw(2.0 * k * np.log(2.0)).real
    found: Floats = (w / (k * np.log(2.0) - w)) ** 2
    return found


def _course(data: DataSet, most: int) -> Course:
    """Of the nu-SVM: ``|alpha - alpha*|^2 <= |alpha|^2 + |alpha*|^2 <= 2 / (m nu)`` bounds R^2."""
    history = History(every=1)
    model: Any = NuSVC(
        nu=NU,
        solver="fapg-guaranteed",
        solver_options={"patience": K_1, "max_stalled": float("inf")},
        tol=NEVER,
        max_iter=most,
        callbacks=[history],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it never meets its gap
        model.fit(data.design, data.labels)
        exact = NuSVC(nu=NU, tol=1e-12).fit(data.design, data.labels)
    values = np.array(history.column("objective"), float)
    reach = 2.0 / (data.labels.size * NU)
    best = -float(exact.certificate_.dual)
    best = min(best, float(values.min()))
    scale = fapg.squared_norm(data.design) * reach
    return Course(values[FIRST:] - best, scale)


def _theorem(bound: Callable[[Floats], Floats], name: str, size: Size) -> Outcome:
    rows, below, drawn = [], [], {}
    for source in DATA[size]:
        found = _course(load_scaled(source), MOST[size])
        k = np.arange(FIRST, FIRST + found.excess.size, dtype=float)
        limit = 2.0 * ETA * found.scale * bound(k)
        slack = ROUNDING * found.excess[0]
        below.append(bool(np.all(found.excess <= limit + slack)))
        kept = found.excess > 1e-9 * found.excess[0]
        power = -float(np.polyfit(np.log(k[kept]), np.log(found.excess[kept]), 1)[0])
        ratio = float(np.min(limit[kept] / found.excess[kept]))
        rows.append([source, str(found.excess.size), f"{power:.2f}", f"{ratio:.2g}"])
        drawn[source] = (k, found.excess, limit)
    claims = [
        Claim(
            f"F(alpha^k) - F* is below the bound of {name} for every k >= {FIRST}",
            all(below),
            f"in {sum(below)} of {len(below)} runs",
        )
    ]
    figure, axes = panels(len(drawn))
    for axis, (source, (k, excess, limit)) in zip(axes, drawn.items(), strict=True):
        axis.loglog(k, np.where(excess > 0, excess, np.nan), label="F - F*")
        axis.loglog(k, limit, label=name)
        axis.set(title=source, xlabel="k")
        axis.legend(fontsize="small")
    head = ["data", "iterations", "power of 1/k, measured", "least bound over F - F*"]
    return illustrated(f"{table(head, rows)}\n\n{WHY}", claims, figure)


WHY = """The power is the slope of log (F - F*) over log k, down to 1e-9 of the first; the bounds
have about 2. They are of the worst case, and loose by the last column: R^2 is bounded by the caps
of the dual box alone."""
TABLES = {
    name: PaperTable(
        f"Theorem {name.removeprefix('IT')} of Ito et al.: the rate of Algorithm 3",
        f"""nu-SVM with nu = {NU:g} by Algorithm 3 with K_1 = {K_1}, eta_u = {ETA:g}; F* from a fit
to a relative gap of 1e-12; {MOST[Size.SMALL]:,} iterations (full size: {MOST[Size.FULL]:,}).""",
        (0.2, 3.0),
        partial(_theorem, bound, f"Theorem {name.removeprefix('IT')}"),
    )
    for name, bound in (("IT6", bound_6), ("IT7", bound_7))
}
