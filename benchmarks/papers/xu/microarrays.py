"""Tables 13 and 14 of Xu et al. (2015): two microarrays of several classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.multiclass_data import Split, load_split
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.papers.xu import xu2015
from benchmarks.papers.xu.bounds import more, numbers
from benchmarks.papers.xu.multiclass import (
    Fit,
    by_cross_validation,
    ddag,
    fitted,
    joint,
    l1_hinge,
    mean,
    one_vs_all,
    strengths,
    sup_hinge,
)
from benchmarks.report import seconds, table

__all__ = ["TABLES", "most_relevant"]

STORED = {"srbct": "srbct", "leukemia": "leukemia3"}
LABELS = {"BL": 1, "EWS": 2, "NB": 3, "RMS": 4, "B-ALL": "ALL-B", "T-ALL": "ALL-T", "AML": "AML"}
GENES = 3571  # of leukemia, the most significant ones
PAIRS = [(l1, l2) for l1 in (0.3, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02) for l2 in (1.0, 0.1)]
WIDTHS = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0)  # gamma of DDAG; 1 / p is 4e-4 and 3e-4
FLOORED = WIDTHS[2:]  # the least by the printed accuracies
DRAWS = {Size.SMALL: 12, Size.FULL: 100}
DEVIATIONS = 1.0  # printed ones, of a mean accuracy
COUNTS_WITHIN = 0.3  # relative, of NZ and NR
SIMILAR = 2.0  # points
BAD = 10.0  # points behind the best
NAMES = {
    "(3)": "(3) by M-PGH",
    "[42]": "l1-regularised [42]",
    "[50]": "l_inf-regularised [50]",
    "OVA": "OVA",
    "DDAG": "DDAG",
}

Found = dict[str, list[Fit]]


def _table_13(size: Size) -> Outcome:
    rows, off = [], []
    for data, classes in xu2015.GENE_CLASSES.items():
        split = load_split(STORED[data])
        for name, printed in classes.items():
            ours = tuple(int((labels == LABELS[name]).sum()) for labels in (split.y, split.y_test))
            rows.append([data, name, str(printed), str(ours)])
            if ours != printed:
                off.append(f"{name} of {data}")
    body = table(["data", "class", "training, test, printed", "here"], rows)
    return judged(body, [Claim("classes of both parts", not off, "see below")], numbers(off))


def most_relevant(X: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Features with the largest ratio of sums of squares between and within the classes."""
    centre = X.mean(axis=0)
    between, within = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for label in np.unique(y):
        rows = X[y == label]
        own = rows.mean(axis=0)
        between += len(rows) * (own - centre) ** 2
        within += ((rows - own) ** 2).sum(axis=0)
    ratio = np.where(within > 0.0, between / np.where(within > 0.0, within, 1.0), 0.0)
    return np.sort(np.argsort(-ratio, kind="stable")[:count])


def _prepared(data: str) -> Split:
    split = load_split(STORED[data])
    if data != "leukemia":
        return split
    genes = most_relevant(split.X, split.y, GENES)
    return Split(split.name, split.X[:, genes], split.y, split.X_test[:, genes], split.y_test)


def _redrawn(split: Split, draw: int) -> Split:
    """Both parts together, split by chance into the same sizes."""
    X, y = np.vstack([split.X, split.X_test]), np.concatenate([split.y, split.y_test])
    order = np.random.default_rng([3, draw]).permutation(y.size)
    train, test = order[: split.y.size], order[split.y.size :]
    return Split(split.name, X[train], y[train], X[test], y[test])


def _table_14(size: Size) -> Outcome:
    text, claims, off = [], [], []
    for data in xu2015.GENES:
        split = _prepared(data)
        chosen = _chosen(split)
        draws = [_redrawn(split, draw) for draw in range(DRAWS[size])]
        found = {name: [fitted(model, draw) for draw in draws] for name, model in chosen.items()}
        print(f"{data}: {chosen}", flush=True)
        narrow = by_cross_validation(ddag(FLOORED), split)
        accuracy = mean([fitted(narrow, draw) for draw in draws]).accuracy
        note = f"DDAG with gamma from {FLOORED[0]:g} on, by the print: {accuracy:.1f} %."
        text.append(f"{data}\n\n{table(HEAD, _rows(data, found))}\n\n{note}")
        claims += _claims_srbct(found) if data == "srbct" else _claims_leukemia(found)
        off += _off(data, found)
    return judged("\n\n".join([*text, WHY]), claims, numbers(off))


WHY = """That DDAG performs badly, "possibly because the training samples are too few", is not
reproduced: with a grid of gamma that reaches kernels wide enough for thousands of genes it does
not. It does with a floor of gamma sought by the printed accuracies, which is not judged.

The printed rows of [42] and [50] on leukemia agree to the last digit, and must: with
three classes the coefficients of a gene have zero sum, so that their l1 norm is twice their sup
norm, and both are one model. On four classes they differ."""


def _chosen(split: Split) -> dict[str, Any]:
    grids: dict[str, Sequence[Any]] = {
        "(3)": [joint(*pair) for pair in PAIRS],
        "[42]": strengths(l1_hinge, split),
        "[50]": strengths(sup_hinge, split),
        "OVA": [one_vs_all()],
        "DDAG": ddag(WIDTHS),
    }
    return {name: by_cross_validation(grid, split) for name, grid in grids.items()}


def _accuracies(found: Found) -> dict[str, float]:
    return {name: mean(fits).accuracy for name, fits in found.items()}


def _claims_srbct(found: Found) -> list[Claim]:
    by = _accuracies(found)
    joint_ones = [by[name] for name in ("(3)", "[42]", "[50]")]
    zeros = {name: float(mean(found[name]).nonzeros.sum()) for name in ("(3)", "[42]", "[50]")}
    return [
        Claim(
            f"srbct: (3), [42] and [50] are about as accurate (within {SIMILAR:g} points)",
            max(joint_ones) - min(joint_ones) <= SIMILAR,
            ", ".join(f"{value:.1f}" for value in joint_ones),
        ),
        Claim(
            "srbct: [50] has the densest solutions",
            zeros["[50]"] > max(zeros["(3)"], zeros["[42]"]),
            ", ".join(f"{name} {value:.0f}" for name, value in zeros.items()),
        ),
        _bad(by, "srbct"),
    ]


def _claims_leukemia(found: Found) -> list[Claim]:
    by = _accuracies(found)
    best = max((name for name in by if name != "(3)"), key=by.__getitem__)
    zeros = {name: float(mean(found[name]).nonzeros.sum()) for name in ("(3)", "[42]", "[50]")}
    return [
        more(
            f"leukemia: (3) is the most accurate (against {best})",
            *(np.array([fit.accuracy for fit in found[name]]) for name in ("(3)", best)),
        ),
        Claim(
            "leukemia: (3) has denser solutions than [42] and [50]",
            zeros["(3)"] > max(zeros["[42]"], zeros["[50]"]),
            ", ".join(f"{name} {value:.0f}" for name, value in zeros.items()),
        ),
        _bad(by, "leukemia"),
    ]


def _bad(accuracies: Mapping[str, float], data: str) -> Claim:
    best = max(accuracies.values())
    return Claim(
        f"{data}: DDAG is bad (at least {BAD:g} points behind the best)",
        accuracies["DDAG"] <= best - BAD,
        f"{accuracies['DDAG']:.1f} against {best:.1f}",
    )


def _off(data: str, found: Found) -> list[str]:
    off = []
    for name, printed in xu2015.GENES[data].items():
        ours = mean(found[name])
        bound = (
            DEVIATIONS
            * (xu2015.GENES[data]["(3)"] if np.isnan(printed.deviation) else printed).deviation
        )
        if abs(ours.accuracy - printed.accuracy) > bound:
            off.append(f"accuracy of {name} on {data}")
        for what, count, theirs in (
            ("NZ", ours.nonzeros.sum(), printed.nonzeros),
            ("NR", ours.rows, printed.rows),
        ):
            if abs(count / theirs - 1) > COUNTS_WITHIN:  # False where nothing is printed
                off.append(f"{what} of {name} on {data}")
    return off


def _rows(data: str, found: Found) -> list[list[str]]:
    rows = []
    for name, printed in xu2015.GENES[data].items():
        ours = mean(found[name])
        deviation = float(np.std([fit.accuracy for fit in found[name]]))
        rows.append(
            [
                *(NAMES[name], _number(printed.accuracy, printed.deviation)),
                *(f"{ours.accuracy:.1f} ({deviation:.1f})", _number(printed.seconds)),
                *(seconds(ours.seconds), _number(printed.nonzeros)),
                *(_count(ours.nonzeros.sum()), _number(printed.rows), _count(ours.rows)),
            ]
        )
    return rows


def _number(value: float, deviation: float = np.nan) -> str:
    if np.isnan(value):
        return "-"
    return f"{value:g}" if np.isnan(deviation) else f"{value:g} ({deviation:g})"


def _count(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.1f}"


HEAD = (
    *("model", "accuracy %, printed", "accuracy %", "seconds, printed", "CPU seconds"),
    *("NZ, printed", "NZ", "NR, printed", "NR"),
)
PROTOCOL = f"""each part standardised, parameters by three-fold cross-validation on the training
part, then both parts together split by chance into the same sizes, 100 draws there,
{DRAWS[Size.SMALL]} at the small size; of leukemia the {GENES} genes with the largest ratio of
sums of squares between and within the classes of the training part, as printed (but for the
squares, which the print lacks); lambda3 = 1, delta = 1. Inferred: {len(PAIRS)} pairs (lambda1,
lambda2), C of [42] and [50] as 2 to 10 times the least with coefficients, the sparsest of equal
scores; gamma of DDAG in powers of ten from {WIDTHS[0]:g} to {WIDTHS[-1]:g}, which is judged, and
from {FLOORED[0]:g} on, a floor tuned on the printed accuracies of DDAG, for information. M-PGH by
rule (20), the others to a gap of 1e-4:
seconds of [42] and [50] are those of our solvers, not of Sedumi, and are not judged. Bounds:
{DEVIATIONS:g} printed deviation of an accuracy (OVA and DDAG: that of (3)), {COUNTS_WITHIN:.0%}
of a count. An order of (3) is untested where the mean difference on the same draws is within its
standard error."""
TABLES = {
    "X13": PaperTable(
        "Table 13 of Xu et al.: classes of the microarrays",
        "The split of the sources.",
        (0.1, 0.1),
        _table_13,
    ),
    "X14": PaperTable("Table 14 of Xu et al.: microarrays", PROTOCOL, (0.9, 6.0), _table_14),
}
