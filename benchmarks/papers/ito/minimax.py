"""Table 10 of Ito et al. (2017): MM-MPM, the largest kappa, seconds and constants."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import DataSet, Floats
from benchmarks.family import Ellipsoids
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.ito import fapg
from benchmarks.papers.ito.agreement import (
    NAMES_OUT_OF_REACH,
    STARRED,
    digits_agree,
    is_same,
    starred,
    stood_for,
    tested,
    within_factor,
)
from benchmarks.papers.ito.data import loaded, reached
from benchmarks.papers.ito.printed import MINIMAX, SETS
from benchmarks.papers.ito.rivals import interior_point, shown
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.report import seconds, table
from proxmargin import kappa_max

__all__ = ["TABLES", "largest_constant"]

MOST = {Size.SMALL: 20_000, Size.FULL: 100_000}  # iterations
WIDE = 2000  # features from which the paper's method is above all faster than SeDuMi


class Row(NamedTuple):
    """A set: kappa_max, the fit at half of it, L_f and seconds of an interior point method."""

    kappa_max: float
    fit: fapg.Fit
    lipschitz: float
    interior: float


def largest_constant(data: DataSet) -> float:
    """L_f: the largest eigenvalue of the sum of the covariances."""
    design = data.design.toarray() if sp.issparse(data.design) else data.design
    parts: list[Floats] = []
    for rows in fapg.classes(data.labels):
        part = design[rows]
        parts.append((part - part.mean(axis=0)) / np.sqrt(rows.size))
    return fapg.squared_norm(np.vstack(parts))


def _row(name: str, size: Size) -> Row:
    data, printed = loaded(name), MINIMAX[name]
    most = kappa_max(data.design, data.labels, "mpm")
    kappa = 0.5 * (most if math.isfinite(most) else printed.kappa_max)
    fit = fapg.mm_mpm(data, kappa, MOST[size])
    interior = interior_point(data, Ellipsoids(kappa, joint=False))
    return Row(most, fit, largest_constant(data), interior)


def _table_10(size: Size) -> Outcome:
    rows, found = [], {}
    for name in reached(size):
        printed, one = MINIMAX[name], _row(name, size)
        found[name] = one
        ended = "" if one.fit.met else f", gap {one.fit.gap:.0e}"
        rows.append(
            [
                starred(name),
                f"{printed.kappa_max:g}, {one.kappa_max:.3g}",
                f"{printed.sedumi:g}, {shown(one.interior)}",
                f"{printed.fapg:g} ({printed.iterations}), "
                f"{seconds(one.fit.seconds)} ({one.fit.iterations}{ended})",
                f"{printed.constants.mean:g}, {one.fit.mean:.3g}",
                f"{printed.constants.most:g}, {one.fit.most:.3g}",
                f"{printed.constants.lipschitz:g}, {one.lipschitz:.3g}",
            ]
        )
        print(f"{name}: {rows[-1]}", flush=True)
    head = ["printed, ours", "kappa_max", "SeDuMi, Clarabel", "FAPG", "mean L", "largest L", "L_f"]
    note = f"""Seconds, of FAPG with iterations in brackets. {STARRED} An
infinite kappa_max: the difference of the means is outside of the range of the covariances, so that
no ellipsoids meet; kappa is then half of the printed number. {NAMES_OUT_OF_REACH}"""
    return judged(f"{note}\n\n{table(head, rows)}", _claims(found), _printed_claims(found))


def _claims(everything: dict[str, Row]) -> list[Claim]:
    found = {name: one for name, one in everything.items() if is_same(name)}
    small = [name for name, one in found.items() if one.fit.mean < one.lipschitz]
    wide = [one for name, one in found.items() if SETS[name].n >= WIDE]
    return [
        Claim(
            "the mean of the L_k is smaller than L_f",
            tested(len(small) == len(found), found),
            f"on {len(small)} of {len(found)}",
        ),
        _larger(found),
        stood_for(
            "FAPG is much faster than SeDuMi",
            [(one.fit.seconds, one.interior) for one in found.values()],
        ),
        stood_for(f"most so for n >= {WIDE}", [(one.fit.seconds, one.interior) for one in wide]),
    ]


def _printed_claims(everything: dict[str, Row]) -> list[Claim]:
    fits = [(name, one) for name, one in everything.items() if is_same(name)]
    return [
        digits_agree("kappa_max", [(n, one.kappa_max, MINIMAX[n].kappa_max) for n, one in fits]),
        digits_agree("L_f", [(n, o.lipschitz, MINIMAX[n].constants.lipschitz) for n, o in fits]),
        within_factor(
            "the printed iterations",
            [(n, one.fit.iterations, MINIMAX[n].iterations) for n, one in fits],
        ),
        within_factor(
            "the mean L_k", [(n, o.fit.mean, MINIMAX[n].constants.mean) for n, o in fits]
        ),
    ]


def _larger(found: dict[str, Row]) -> Claim:
    above = [name for name, one in found.items() if one.fit.most > one.lipschitz]
    printed = [
        name for name in found if MINIMAX[name].constants.most > MINIMAX[name].constants.lipschitz
    ]
    listed = f" ({', '.join(above)})" if above else ""
    return Claim(
        "some L_k are larger than L_f",
        tested(len(above) > 0, found),
        f"on {len(above)} of {len(found)}{listed}; printed: {', '.join(printed)}",
    )


PROTOCOL = f"""Algorithm 4 with 'dec' where L is tested and K_1 = 100, as in Table 4, from the
origin with L_0 the largest diagonal entry of the covariances, kappa half of its largest value,
eta_u = eta_d = 1.1, delta = 0.8, ended by L |u - v| or, every hundredth iteration, L |T_L(u) - u|
at 1e-6, as printed, or after {MOST[Size.SMALL]:,} (full size: {MOST[Size.FULL]:,}) iterations.
Inferred: 'dec' as in Table 4, and K_1 by fitting these very iterations, which therefore agree
partly by choice. Factors of the covariances, a column a sample, stand for
their square roots: the iterates are the same. CPU seconds on this machine. SeDuMi is not run:
what is said of it is untested. Beside it are the seconds of Clarabel, another interior point
method, which is given the means and a factor of the covariances with a column a sample, not n x n
roots."""
TABLES = {
    "I10": PaperTable("Table 10 of Ito et al.: MM-MPM", PROTOCOL, (0.7, 5.0), _table_10),
}
