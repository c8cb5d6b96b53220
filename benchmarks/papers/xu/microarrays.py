"""Tables 13 and 14 of Xu et al. (2015): two microarrays of several classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.datasets import standardized
from benchmarks.multiclass_data import Split, genes, load_split
from benchmarks.papers.claims import (
    Agreement,
    Claim,
    alike,
    decided,
    judged,
    met,
    numbers,
    ordered,
    told,
)
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.papers.xu import xu2015
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

__all__ = ["TABLES", "dudoit", "most_relevant"]

STORED = {"srbct": "srbct", "leukemia": "leukemia3"}
LABELS = {"BL": 1, "EWS": 2, "NB": 3, "RMS": 4, "B-ALL": "ALL-B", "T-ALL": "ALL-T", "AML": "AML"}
GENES = 3571  # of leukemia
# the preprocessing of Dudoit et al. (2002), [10] of the paper, over all samples
FLOOR = 100.0
CEILING = 16_000.0
RATIO = 5.0  # of the largest to the least intensity of a gene: not more, and it is left out
RANGE = 500.0  # between them, likewise
PAIRS = [(l1, l2) for l1 in (0.3, 0.2, 0.15, 0.1, 0.08, 0.05, 0.02) for l2 in (1.0, 0.1)]
WIDTHS = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0)  # gamma of DDAG; 1 / p is 4e-4 and 3e-4
FLOORED = WIDTHS[2:]  # the least by the printed accuracies
DRAWS = {Size.SMALL: 12, Size.FULL: 100}
RUNS = 100  # printed draws
DIGIT = 0.1  # printed
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
    classes = [Claim("classes of both parts", not off, "see below")]
    return judged(body, classes, met("the printed samples of the classes", off, len(rows)))


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


def dudoit(X: np.ndarray) -> np.ndarray:
    """Logarithms of the intensities between floor and ceiling, of the genes that vary."""
    bounded = np.clip(X, FLOOR, CEILING)
    low, high = bounded.min(axis=0), bounded.max(axis=0)
    found: np.ndarray = np.log10(bounded[:, (high / low > RATIO) & (high - low > RANGE)])
    return found


def _apart(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Each part standardised on its own, as printed."""
    found = np.empty(X.shape)
    found[train], found[~train] = standardized(X[train]), standardized(X[~train])
    return found


def _together(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return standardized(X)


def _not_scaled(X: np.ndarray, train: np.ndarray) -> np.ndarray:
    return X


def _by_relevance() -> Split:
    """The reading of the text alone: of all genes the most relevant of the training part."""
    split = load_split(STORED["leukemia"])
    some = most_relevant(split.X, split.y, GENES)
    return Split(split.name, split.X[:, some], split.y, split.X_test[:, some], split.y_test)


def _by_intensity(scaled: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Split:
    X, y, train = genes(STORED["leukemia"])
    X = scaled(dudoit(X), train)
    return Split("leukemia", X[train], y[train], X[~train], y[~train])


READINGS: dict[str, Callable[[], Split]] = {
    "3,571 genes of [10], parts standardised apart (judged)": lambda: _by_intensity(_apart),
    "3,571 genes of [10], all samples standardised": lambda: _by_intensity(_together),
    "3,571 genes of [10], not standardised": lambda: _by_intensity(_not_scaled),
    "3,571 of all genes by R(g), parts standardised apart": _by_relevance,
}


def _prepared(data: str) -> Split:
    return _by_intensity(_apart) if data == "leukemia" else load_split(STORED[data])


def _redrawn(split: Split, draw: int) -> Split:
    """Both parts together, split by chance into the same sizes."""
    X, y = np.vstack([split.X, split.X_test]), np.concatenate([split.y, split.y_test])
    order = np.random.default_rng([3, draw]).permutation(y.size)
    train, test = order[: split.y.size], order[split.y.size :]
    return Split(split.name, X[train], y[train], X[test], y[test])


def _table_14(size: Size) -> Outcome:
    text, claims, held = [], [], {}
    for data in xu2015.GENES:
        split = _prepared(data)
        found = _over_draws(split, DRAWS[size])
        narrow = by_cross_validation(ddag(FLOORED), split)
        accuracy = mean([fitted(narrow, draw) for draw in _draws(split, DRAWS[size])]).accuracy
        note = f"DDAG with gamma from {FLOORED[0]:g} on, by the print: {accuracy:.1f} %."
        text.append(f"{data}\n\n{table(HEAD, _rows(data, found))}\n\n{note}")
        claims += _claims_srbct(found) if data == "srbct" else _claims_leukemia(found)
        held |= _held(data, found)
    body = [*text, f"{WHY_READINGS}\n\n{_readings(DRAWS[size])}", WHY]
    return judged("\n\n".join(body), claims, numbers(held))


def _draws(split: Split, count: int) -> list[Split]:
    return [_redrawn(split, draw) for draw in range(count)]


def _over_draws(split: Split, count: int) -> Found:
    chosen, draws = _chosen(split), _draws(split, count)
    print(f"{split.name}: {chosen}", flush=True)
    return {name: [fitted(model, draw) for draw in draws] for name, model in chosen.items()}


def _readings(count: int) -> str:
    rows = []
    for label, made in READINGS.items():
        split = made()
        found = _over_draws(split, count)
        cells = [
            f"{np.mean(each):.1f} ({np.std(each):.1f})"
            for each in ([fit.accuracy for fit in fits] for fits in found.values())
        ]
        rows.append([label, str(split.X.shape[1]), *cells])
    printed = [_number(one.accuracy, one.deviation) for one in xu2015.GENES["leukemia"].values()]
    rows.append(["printed", str(GENES), *printed])
    return table(["leukemia", "genes", *NAMES], rows)


WHY_READINGS = f"""The text ranks genes by R(g), "the method used in [10]", and takes the 3,571 most
significant ones. 3,571 is what the preprocessing of [10] leaves of the genes here: intensities
between {FLOOR:g} and {CEILING:g}, genes with a ratio of more than {RATIO:g} and a range of more
than {RANGE:g} over all 72 samples; then logarithms. On these genes (3), [42] and [50] are about as
accurate as printed. OVA depends on the parts: standardised apart they have different zeros, which a
linear rule without an intercept mistakes for the other class; standardised together, or not at all,
it is far better, and the printed 81.5 lie between."""
WHY = """That DDAG performs badly, "possibly because the training samples are too few", is not
reproduced: with a grid of gamma that reaches kernels wide enough for thousands of genes it
does not. It does with a floor of gamma sought by the printed accuracies, which is not judged.

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


def _of(found: Found, name: str) -> np.ndarray:
    return np.array([fit.accuracy for fit in found[name]])


def _dense(found: Found, name: str) -> np.ndarray:
    return np.array([fit.nonzeros.sum() for fit in found[name]], float)


def _denser(sentence: str, found: Found, one: str, others: Sequence[str]) -> Claim:
    """Of non-zeros on the same draws."""
    differences = {f"than {name}": _dense(found, one) - _dense(found, name) for name in others}
    return ordered(sentence, differences)


def _claims_srbct(found: Found) -> list[Claim]:
    apart = {name: _of(found, "(3)") - _of(found, name) for name in ("[42]", "[50]")}
    verdicts = [alike(each, SIMILAR) for each in apart.values()]
    return [
        Claim(
            f"srbct: (3), [42] and [50] are about as accurate (within {SIMILAR:g} points)",
            False if False in verdicts else None if None in verdicts else True,
            "; ".join(f"(3) less {name}: {told(each)}" for name, each in apart.items()),
        ),
        _denser("srbct: [50] has the densest solutions", found, "[50]", ("(3)", "[42]")),
        _bad(found, "srbct"),
    ]


def _claims_leukemia(found: Found) -> list[Claim]:
    others = {f"than {name}": _of(found, "(3)") - _of(found, name) for name in ("[42]", "[50]")}
    return [
        ordered("leukemia: (3) is more accurate than [42] and [50]", others, main=True),
        _denser(
            "leukemia: (3) has denser solutions than [42] and [50]", found, "(3)", ("[42]", "[50]")
        ),
        _bad(found, "leukemia"),
        Claim("leukemia: M-PGH is significantly faster than Sedumi", None, "Sedumi is not run"),
    ]


def _bad(found: Found, data: str) -> Claim:
    best = max((name for name in found if name != "DDAG"), key=lambda one: _of(found, one).mean())
    behind = _of(found, best) - _of(found, "DDAG")
    return Claim(
        f"{data}: DDAG is bad (at least {BAD:g} points behind the best)",
        decided(behind, BAD),
        f"{_of(found, 'DDAG').mean():.1f} against {_of(found, best).mean():.1f} ({best}),"
        f" behind by {told(behind)}",
    )


def _held(data: str, found: Found) -> dict[str, bool]:
    """Which printed means are met."""
    held = {}
    usual = xu2015.GENES[data]["(3)"].deviation
    for name, printed in xu2015.GENES[data].items():
        deviation = usual if np.isnan(printed.deviation) else printed.deviation
        right = Agreement(_of(found, name), printed.accuracy, DIGIT, RUNS, deviation)
        held[f"accuracy of {name} on {data}"] = right.holds
        for what, counts, theirs in (
            ("NZ", _dense(found, name), printed.nonzeros),
            ("NR", np.array([fit.rows for fit in found[name]]), printed.rows),
        ):
            if not np.isnan(theirs):
                held[f"{what} of {name} on {data}"] = Agreement(counts, theirs, DIGIT, RUNS).holds
    return held


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
part, then both parts together split by chance into the same sizes, {RUNS} draws, lambda3 = 1, delta
= 1, as printed. Inferred: the {GENES} genes of leukemia, see below; {len(PAIRS)} pairs (lambda1,
lambda2), C of [42] and [50] as 2 to 10 times the least with coefficients, the sparsest of equal
scores; gamma of DDAG in powers of ten from {WIDTHS[0]:g} to {WIDTHS[-1]:g}, which is judged, and
from {FLOORED[0]:g} on, a floor tuned on the printed accuracies of DDAG, for information. M-PGH by
rule (20), the others to a gap of 1e-4: seconds of [42] and [50] are those of our solvers, not of
Sedumi, and are not judged. Printed deviations: those of OVA and DDAG are taken to be that of (3),
those of counts to be ours."""
TABLES = {
    "X13": PaperTable(
        "Table 13 of Xu et al.: classes of the microarrays",
        "The split of the sources.",
        (0.1, 0.1),
        _table_13,
    ),
    "X14": PaperTable(
        "Table 14 of Xu et al.: microarrays",
        PROTOCOL,
        (2.0, 14.0),
        _table_14,
        (str(DRAWS[Size.SMALL]), str(DRAWS[Size.FULL])),
    ),
}
