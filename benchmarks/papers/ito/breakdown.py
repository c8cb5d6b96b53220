"""Tables 3, 7 and 9 of Ito et al. (2017): where the time of a fit goes."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.datasets import DataSet
from benchmarks.family_data import load_scaled
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.ito import fapg
from benchmarks.papers.ito.agreement import OUR_CHECK
from benchmarks.papers.ito.logistic import C
from benchmarks.papers.ito.printed import BREAKDOWN
from benchmarks.papers.ito.roots import with_square_roots
from benchmarks.papers.ito.strategies import KAPPA, NU, chosen_kappa
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import seconds, table
from benchmarks.watch import Watch, watched

__all__ = ["TABLES"]

DATA = {Size.SMALL: "artificial:2000,1000", Size.FULL: "artificial:10000,1000"}
MOST = {Size.SMALL: 500, Size.FULL: 10_000}  # iterations
MARGINAL = 0.25  # share of the time of a projection that is "marginal", against the products
DOMINANT = 0.5  # share of the time
REPEATED = 0.3  # projections of steps that are tried again, over the gradients
GRADIENTS, VALUES, _ = BREAKDOWN["I3"][0]
PARTS = {
    "image": "product X'alpha: f",
    "response": "product with X: its gradient",
    "prox": "projection",
}

Fitted = Callable[[DataSet, int], fapg.Fit]


def _fit_nu(data: DataSet, most: int) -> fapg.Fit:
    return fapg.nu_svm(data, NU, most)


def _fit_logistic(data: DataSet, most: int) -> fapg.Fit:
    return fapg.logistic(data, C, most)


def _fit_mpm(data: DataSet, most: int) -> fapg.Fit:
    """On square roots of the covariances, as in the paper."""
    return fapg.mm_mpm(data, chosen_kappa(data), most)


def _table(name: str, fitted: Fitted, size: Size) -> Outcome:
    data = load_scaled(DATA[size])
    if name == "I9":
        data = with_square_roots(data)
    _watched(fitted, data, 2)  # compiles what there is
    watch, fit = _watched(fitted, data, MOST[size])
    rest = watch.total - sum(watch.seconds[part] for part in PARTS)
    rows = [
        [
            PARTS[part],
            f"{watch.seconds[part] / watch.total:.1%}",
            seconds(watch.seconds[part]),
            str(watch.calls[part]),
            f"{1e3 * watch.seconds[part] / max(watch.calls[part], 1):.3f}",
        ]
        for part in PARTS
    ]
    rows.append(["the rest", f"{rest / watch.total:.1%}", seconds(rest), "", ""])
    (gradient, value, projection), total = BREAKDOWN[name]
    for what, one in (("gradient", gradient), ("value", value), ("projection", projection)):
        rows.append([f"printed: {what}", f"{one.percent:g}%", "", str(one.evaluations), ""])
    body = table(["part", "share", "seconds", "calls", "ms a call"], rows)
    ended = "the rule met" if fit.met else "the rule not met"
    told = f"{seconds(watch.total)} s, {fit.iterations} iterations, {ended}; printed {total:g} s"
    return judged(f"{data.name}: {told}\n\n{body}", _claims(name, watch))


def _watched(fitted: Fitted, data: DataSet, most: int) -> tuple[Watch, fapg.Fit]:
    with watched(time.process_time) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = fitted(data, most)
    return watch, fit


def _claims(name: str, watch: Watch) -> list[Claim]:
    (gradient, _, projection), _ = BREAKDOWN[name]
    share: dict[str, float] = {part: watch.seconds[part] / watch.total for part in PARTS}
    products = share["image"] + share["response"]
    calls: Any = watch.calls
    return [
        Claim(
            "f and its gradient take most of the time",
            products > DOMINANT,
            f"{products:.0%}, printed {_printed_share()}",
        ),
        Claim(
            "the projection is marginal beside them",
            share["prox"] < MARGINAL * products,
            f"{share['prox']:.1%} of the time",
        ),
        Claim(
            f"one projection for each gradient, and at most {REPEATED:.0%} more {OUR_CHECK}",
            calls["response"] <= calls["prox"] <= (1.0 + REPEATED) * calls["response"],
            f"{calls['response']} gradients, {calls['prox']} projections; printed"
            f" {gradient.evaluations} and {projection.evaluations}",
        ),
    ]


def _printed_share() -> str:
    sums = (sum(one.percent for one in parts[:2]) for parts, _ in BREAKDOWN.values())
    return ", ".join(f"{one:.0f}%" for one in sums if not math.isnan(one))


def _protocol(what: str) -> str:
    return f"""{what}; Algorithm 4 with the paper's constants. Data: {DATA[Size.FULL]} as printed,
{DATA[Size.SMALL]} at the small size, at most {MOST[Size.SMALL]:,} (full size: {MOST[Size.FULL]:,})
iterations. CPU times by timers around the side of the problem. An image, the product with X', is
what f needs, and its gradient one product with X more; both are linear, so that those at beta are
combinations and cost nothing. So there is an image for every step, where the paper evaluates f less
often than its gradient (Table 3: {VALUES.evaluations:,} times for {GRADIENTS.evaluations:,}
gradients), which cannot show here."""


TABLES = {
    "I3": PaperTable(
        "Table 3 of Ito et al.: runtime of the nu-SVM",
        _protocol(f"nu = {NU:g}"),
        (0.15, 3.0),
        partial(_table, "I3", _fit_nu),
    ),
    "I7": PaperTable(
        "Table 7 of Ito et al.: runtime of logistic regression",
        _protocol(f"C = {C:g}, xi = {fapg.FLOOR:g}"),
        (0.15, 3.0),
        partial(_table, "I7", _fit_logistic),
    ),
    "I9": PaperTable(
        "Table 9 of Ito et al.: runtime of MM-MPM",
        _protocol(
            f"kappa = {KAPPA:g}, or half of the largest where that is less, on n x n square roots"
            " of the covariances, which are made beforehand"
        ),
        (0.15, 1.0),
        partial(_table, "I9", _fit_mpm),
    ),
}
