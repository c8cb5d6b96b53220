"""Tables 11 and 12 of Xu et al. (2015): multiclass benchmark data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from benchmarks.multiclass_data import Split, load_split
from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.papers.xu import xu2015
from benchmarks.papers.xu.bounds import more, numbers
from benchmarks.papers.xu.multiclass import by_cross_validation, ddag, fitted, joint, one_vs_all
from benchmarks.report import table
from proxmargin.stats import wilcoxon_signed_ranks

__all__ = ["TABLES"]

HERE = ("dna", "glass", "letter", "poker", "usps", "wine")
DRAWS = {Size.SMALL: 4, Size.FULL: 10}
WITHIN = 3.0  # points of accuracy, beside the deviations over the draws
DEVIATIONS = 2.0
LEVEL = 0.05  # of the paper's tests
EMPTY = 0.5  # lambda1 that leaves no coefficient on poker
PAIRS = [(l1, l2) for l1 in (0.05, 0.01, 1e-3, 0.0) for l2 in (1.0, 0.1, 0.01, 1e-4)]
STANDARD = "M-PGH, standardised"
SCALED = "M-PGH"

Accuracies = dict[str, np.ndarray]
"""By method or data set, in per cent, of each draw."""


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
    body = f"""{table(head, rows)}

{WHY}

{table(HEAD_POKER, _poker_rows(DRAWS[size]))}"""
    return _with_missing(judged(body, _claims(found), numbers(_off(found))))


WHY = """On letter the huberized hinge of all classes depends on how the features are scaled: it
is least accurate with [-1, 1], the scaling of the LIBSVM site, at any lambda. With sum-to-zero
scores each sample pushes 25 classes down by a loss of their own, so that linear scores approximate
the 26 classes badly; one-vs-all and DDAG do not share this.

DDAG on dna: the printed 33.7 % is less than naming the largest class gives, about a half, and looks
like a gamma too large for 180 features, with which a kernel sees no neighbours: see the section on
Table 14. With a grid that reaches smaller gamma the same method has over 90 %.

glass and usps: OVA has its default C = 1, as printed; the paper does not say how features were
scaled. On usps (50 samples) our M-PGH is below its printed number and our OVA at it.

poker: the printed 35.1 % is not met by any preparation below, M-PGH with the pair of the best
three-fold score on each: cards as numbers, as categories (suit and rank of each card as dummies),
and hands sorted by rank. A linear rule of single cards has little to say of pairs and straights;
the training part has nearly equal classes, so that weights of classes change little. The last
column would explain it: with a lambda1 that leaves no coefficient, M-PGH names the first of the
equal classes, "nothing in hand", half of all hands. A mean over 10 draws on some of which
cross-validation ends at that model lies between both, as the printed one does; whether it did is
not printed."""
HEAD_POKER = (
    "poker, features",
    "M-PGH",
    "OVA",
    "M-PGH without coefficients",
)


def _categories(split: Split) -> Split:
    """Each suit and rank as a dummy."""
    encoder = OneHotEncoder(sparse_output=False).fit(np.vstack([split.X, split.X_test]))
    X, X_test = (encoder.transform(part) for part in (split.X, split.X_test))
    return Split(split.name, X, split.y, X_test, split.y_test)


def _by_rank(split: Split) -> Split:
    """Hands sorted by rank, standardised."""

    def arranged(X: np.ndarray) -> np.ndarray:
        cards = X.reshape(len(X), -1, 2)  # suit, rank
        order = np.argsort(cards[:, :, 1], axis=1)
        return np.take_along_axis(cards, order[:, :, None], axis=1).reshape(X.shape)

    X, X_test = arranged(split.X), arranged(split.X_test)
    return standardised(Split(split.name, X, split.y, X_test, split.y_test))


PREPARATIONS: dict[str, Callable[[Split], Split]] = {
    "numbers in [-1, 1]": _same,
    "numbers, standardised": standardised,
    "categories": _categories,
    "numbers, hands sorted by rank": _by_rank,
}


def _poker_rows(draws: int) -> list[list[str]]:
    rows = []
    for label, prepared in PREPARATIONS.items():
        splits = [prepared(load_split("poker", draw)) for draw in range(draws)]
        tuned = by_cross_validation([joint(*pair) for pair in PAIRS], splits[0])
        models = tuned, one_vs_all(), joint(EMPTY, 1.0)
        cells = [np.mean([fitted(one, split).accuracy for split in splits]) for one in models]
        rows.append([label, *(f"{cell:.1f}" for cell in cells)])
    return rows


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
    best = {name: max(by[STANDARD], by[SCALED], key=np.mean) for name, by in found.items()}
    ova = {name: by["OVA"] for name, by in found.items()}
    dag = {name: by["DDAG"] for name, by in found.items()}
    return [
        _consistently(best, ova),
        _comparable(best, dag),
        _higher("on the imbalanced poker M-PGH is much better than OVA", best, ova, ["poker"]),
        _higher("DDAG is better on glass and letter", dag, best, ["glass", "letter"]),
        _higher("DDAG is bad on dna", best, dag, ["dna"]),
    ]


def _consistently(best: Accuracies, ova: Accuracies) -> Claim:
    """Fails if OVA is better elsewhere by more than a standard error, or not so on letter."""
    each = {name: more("", best[name], ova[name]) for name in HERE}
    others = [each[name].holds for name in HERE if name != "letter"]
    holds: bool | None = None
    if each["letter"].holds or False in others:
        holds = False
    elif each["letter"].holds is False and None not in others:
        holds = True
    told = "; ".join(f"{name}: {one.numbers}" for name, one in each.items())
    return Claim("M-PGH is consistently better than OVA but for letter", holds, told)


def _comparable(best: Accuracies, dag: Accuracies) -> Claim:
    """By the signed ranks that the paper compares both with."""
    means = np.array([[best[name].mean(), dag[name].mean()] for name in HERE])
    p = float(wilcoxon_signed_ranks(means).pvalue[0, 1])
    sentence = f"M-PGH is comparable with DDAG (signed ranks as in Table 15, p >= {LEVEL:g})"
    told = "; ".join(
        f"{name}: {m:.1f} and {d:.1f}" for name, (m, d) in zip(HERE, means, strict=True)
    )
    return Claim(sentence, p >= LEVEL, f"p = {p:.3f}; {told}")


def _higher(sentence: str, one: Accuracies, two: Accuracies, names: Sequence[str]) -> Claim:
    """By more than `WITHIN`; untested where a difference is within its standard error."""
    each = {name: more("", one[name], two[name]) for name in names}
    told = "; ".join(f"{name}: {claim.numbers}" for name, claim in each.items())
    if any(claim.holds is None for claim in each.values()):
        return Claim(sentence, None, told)
    by = [float((one[name] - two[name]).mean()) for name in names]
    return Claim(f"{sentence} (by {WITHIN:g} points, ours)", min(by) > WITHIN, told)


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
        "Table 12 of Xu et al.: multiclass benchmark data", PROTOCOL, (4, 8), _table_12
    ),
}
