"""Tables 11 and 12 of Xu et al. (2015): multiclass benchmark data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.multiclass_data import Split, load_split
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.papers.xu import xu2015
from benchmarks.papers.xu.bounds import numbers
from benchmarks.papers.xu.multiclass import by_cross_validation, ddag, fitted, joint, one_vs_all
from benchmarks.report import table

__all__ = ["TABLES"]

HERE = ("dna", "glass", "letter", "poker", "usps", "wine")
DRAWS = {Size.SMALL: 4, Size.FULL: 10}
WITHIN = 3.0  # points of accuracy, beside the deviations over the draws
DEVIATIONS = 2.0
PAIRS = [(l1, l2) for l1 in (0.05, 0.01, 1e-3, 0.0) for l2 in (1.0, 0.1, 0.01, 1e-4)]
STANDARD = "M-PGH, standardised"
SCALED = "M-PGH"

Accuracies = dict[str, np.ndarray]
"""By method, in per cent, of each draw."""


def _table_11(size: Size) -> Outcome:
    rows, off = [], []
    for name, printed in xu2015.MULTICLASS_SIZES.items():
        if name not in HERE:
            rows.append([name, str(printed), "not public here"])
            continue
        split = load_split(name)
        classes = np.unique(split.y).size
        ours = (split.y.size, split.y_test.size, split.X.shape[1], classes)
        rows.append([name, str(printed), str(ours)])
        if ours != printed:
            off.append(name)
    body = table(["data", "training, test, features, classes, printed", "here"], rows)
    train = [name for name in off if load_split(name).y.size != xu2015.MULTICLASS_SIZES[name][0]]
    claim = Claim(f"training sizes of {', '.join(HERE)}", not train, "see below")
    return _with_missing(judged(body, [claim], numbers(off)))


def _with_missing(outcome: Outcome) -> Outcome:
    missing = ", ".join(name for name in xu2015.MULTICLASS_SIZES if name not in HERE)
    share = f"for {len(HERE)} of {len(xu2015.MULTICLASS_SIZES)} data sets"
    why = f"{share}: {outcome.why}; out of reach: {missing}"
    return Outcome(outcome.body, outcome.verdict, why)


def standardised(split: Split) -> Split:
    """By the means and deviations of the training part."""
    mean, deviation = split.X.mean(axis=0), split.X.std(axis=0)
    deviation = np.where(deviation > 0.0, deviation, 1.0)
    X, X_test = ((part - mean) / deviation for part in (split.X, split.X_test))
    return Split(split.name, X, split.y, X_test, split.y_test)


def _same(split: Split) -> Split:
    return split


METHODS: dict[str, tuple[Callable[[Split], Split], Callable[[], list[Any]]]] = {
    STANDARD: (standardised, lambda: [joint(*pair) for pair in PAIRS]),
    SCALED: (_same, lambda: [joint(*pair) for pair in PAIRS]),
    "OVA": (_same, lambda: [one_vs_all()]),
    "DDAG": (_same, ddag),
}


def _table_12(size: Size) -> Outcome:
    found = {name: _accuracies(name, DRAWS[size]) for name in HERE}
    rows = []
    for name, by_method in found.items():
        printed = xu2015.BENCHMARK[name]
        theirs = dict(zip(METHODS, [printed[0], *printed], strict=True))
        cells = [f"{values.mean():.1f} ({values.std():.1f})" for values in by_method.values()]
        pairs = zip(theirs.values(), cells, strict=True)
        rows.append([name, *(cell for theirs, ours in pairs for cell in (f"{theirs:g}", ours))])
    head = ["data", *(word for name in METHODS for word in (f"{name}, printed", name))]
    return _with_missing(
        judged(f"{table(head, rows)}\n\n{WHY}", _claims(found), numbers(_off(found)))
    )


WHY = """On letter the huberized hinge of all classes depends on how the features are scaled: it
is least accurate with [-1, 1], the scaling of the LIBSVM site, at any lambda. With sum-to-zero
scores each sample pushes 25 classes down by a loss of their own, so that linear scores
approximate the 26 classes badly; one-vs-all and DDAG do not share this. DDAG on dna: the printed
33.7 % is less than naming the largest class gives, about a half."""


def _accuracies(name: str, draws: int) -> Accuracies:
    """Parameters from the first draw, then all draws."""
    found: Accuracies = {}
    for label, (prepared, models) in METHODS.items():
        chosen = by_cross_validation(models(), prepared(load_split(name, 0)))
        fits = [fitted(chosen, prepared(load_split(name, draw))) for draw in range(draws)]
        found[label] = np.array([fit.accuracy for fit in fits])
        print(f"{name}, {label}: {chosen}: {found[label].round(1)}", flush=True)
    return found


def _claims(found: Mapping[str, Accuracies]) -> list[Claim]:
    best = {name: max(by[STANDARD].mean(), by[SCALED].mean()) for name, by in found.items()}
    ova = {name: by["OVA"].mean() for name, by in found.items()}
    dag = {name: by["DDAG"].mean() for name, by in found.items()}
    others = [name for name in HERE if name != "letter"]
    behind = [name for name in others if best[name] < ova[name]]
    return [
        Claim(
            "M-PGH is better than OVA but for letter",
            not behind and best["letter"] < ova["letter"],
            "; ".join(f"{name}: {best[name]:.1f} against {ova[name]:.1f}" for name in HERE),
        ),
        _higher("on the imbalanced poker M-PGH is much better than OVA", best, ova, ["poker"]),
        _higher("DDAG is better on glass and letter", dag, best, ["glass", "letter"]),
        _higher("DDAG is bad on dna", best, dag, ["dna"]),
    ]


def _higher(
    sentence: str, one: Mapping[str, float], two: Mapping[str, float], names: Sequence[str]
) -> Claim:
    told = "; ".join(f"{name}: {one[name]:.1f} against {two[name]:.1f}" for name in names)
    return Claim(sentence, all(one[name] > two[name] + WITHIN for name in names), told)


def _off(found: Mapping[str, Accuracies]) -> list[str]:
    """Accuracies beyond their bounds; of M-PGH the nearer of both scalings counts."""
    off = []
    for name, by in found.items():
        theirs = dict(zip(("M-PGH", "OVA", "DDAG"), xu2015.BENCHMARK[name], strict=True))
        for method, printed in theirs.items():
            kinds = (STANDARD, SCALED) if method == "M-PGH" else (method,)
            distances = [
                abs(by[kind].mean() - printed) - DEVIATIONS * by[kind].std() for kind in kinds
            ]
            if min(distances) > WITHIN:
                off.append(f"{method} on {name}")
    return off


PROTOCOL = f"""training and test parts of Table 11, lambda3 = 1, delta = 1, lambda1 and lambda2
and the C and gamma of DDAG tuned, OVA with LIBLINEAR's defaults, 10 draws, as printed
({DRAWS[Size.SMALL]} at the small size); means and deviations. Inferred: {len(PAIRS)} pairs by
three-fold cross-validation on the first draw (of equal ones that with the largest lambda1),
features scaled to [-1, 1] as on the LIBSVM site; for M-PGH also standardised, as in 3.2.3.
The claims take of both scalings the one with the better test accuracy, the bounds the one nearer
the printed number: both choices look at the test part, and favour M-PGH. The other
24,658 hands of poker are tested instead of 100,000 of its test file.
Bounds: {WITHIN:g} points and {DEVIATIONS:g} deviations over the draws."""
TABLES = {
    "X11": PaperTable(
        "Table 11 of Xu et al.: sizes of the multiclass data",
        "Sizes of the draws of Table 12. The paper counts 128 samples of wine, which are its test"
        " part: it has 178.",
        (0.1, 0.1),
        _table_11,
    ),
    "X12": PaperTable(
        "Table 12 of Xu et al.: multiclass benchmark data", PROTOCOL, (3, 6), _table_12
    ),
}
