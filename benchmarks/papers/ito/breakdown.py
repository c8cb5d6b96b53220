"""Tables 3, 7 and 9 of Ito et al. (2017): where the time of a fit goes."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
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
SKIPPED = 10  # iterations between two tests of L
SAVED = 0.05  # share of an iteration that counts as saved
DOMINANT = 0.5  # share of the time
REPEATED = 0.3  # projections of steps that are tried again, over the gradients
GRADIENTS, VALUES, _ = BREAKDOWN["I3"][0]
PARTS = {
    "forward": "product X'alpha: f",
    "backward": "product with X: its gradient",
    "prox": "projection",
}

Fitted = Callable[..., fapg.Fit]  # of a limit of iterations and rules


def _nu_fit(data: DataSet) -> Fitted:
    return lambda most, **rules: fapg.nu_svm(data, NU, most, **rules)


def _logistic_fit(data: DataSet) -> Fitted:
    return lambda most, **rules: fapg.logistic(data, C, most, **rules)


def _mpm_fit(data: DataSet) -> Fitted:
    """On square roots of the covariances, as in the paper; they and kappa are made beforehand."""
    kappa, roots = chosen_kappa(data), with_square_roots(data)
    return lambda most, **rules: fapg.mm_mpm(roots, kappa, most, **rules)


def _table(name: str, prepared: Callable[[DataSet], Fitted], size: Size) -> Outcome:
    data = load_scaled(DATA[size])
    fitted = prepared(data)
    fitted(2)  # compiles what there is
    watch, fit = _watched(fitted, MOST[size])
    costs = {every: _cost(fitted(MOST[size], bt_every=every)) for every in (SKIPPED, 1)}
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
    return judged(f"{data.name}: {told}\n\n{body}", [*_claims(name, watch), _skipping(costs)])


def _cost(fit: fapg.Fit) -> float:
    """Seconds an iteration."""
    return fit.seconds / fit.iterations


def _skipping(costs: Mapping[int, float]) -> Claim:
    """By the cost of an iteration: runs that are cut do not end at the same point."""
    saved = 1.0 - costs[SKIPPED] / costs[1]
    return Claim(
        f"testing L ('bt') in every {SKIPPED}th iteration only saves time"
        f" ({SAVED:.0%} an iteration)",
        saved >= SAVED,
        f"{1e3 * costs[SKIPPED]:.2f} against {1e3 * costs[1]:.2f} ms an iteration: {saved:.0%}",
    )


def _watched(fitted: Fitted, most: int) -> tuple[Watch, fapg.Fit]:
    with watched(time.process_time) as watch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = fitted(most)
    return watch, fit


def _claims(name: str, watch: Watch) -> list[Claim]:
    (gradient, _, projection), _ = BREAKDOWN[name]
    share: dict[str, float] = {part: watch.seconds[part] / watch.total for part in PARTS}
    products = share["forward"] + share["backward"]
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
            calls["backward"] <= calls["prox"] <= (1.0 + REPEATED) * calls["backward"],
            f"{calls['backward']} gradients, {calls['prox']} projections; printed"
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
gradients), which cannot show here; what 'bt' costs is the repeated trials. 5.2.2 has tests of L
every 100 iterations and checks of the optimality every 10, Algorithm 4, 4.3.2 and 5.2.3 have it the
other way round, which is run here: a misprint."""


TABLES = {
    "I3": PaperTable(
        "Table 3 of Ito et al.: runtime of the nu-SVM",
        _protocol(f"nu = {NU:g}"),
        (0.15, 3.0),
        partial(_table, "I3", _nu_fit),
    ),
    "I7": PaperTable(
        "Table 7 of Ito et al.: runtime of logistic regression",
        _protocol(f"C = {C:g}, xi = {fapg.FLOOR:g}"),
        (0.15, 3.0),
        partial(_table, "I7", _logistic_fit),
    ),
    "I9": PaperTable(
        "Table 9 of Ito et al.: runtime of MM-MPM",
        _protocol(
            f"kappa = {KAPPA:g}, or half of the largest where that is less, on n x n square roots"
            " of the covariances, which are made beforehand"
        ),
        (0.15, 1.0),
        partial(_table, "I9", _mpm_fit),
    ),
}
