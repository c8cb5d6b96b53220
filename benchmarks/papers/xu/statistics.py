"""Tables 6, 7, 15 and 16 of Xu et al. (2015): statistics of the accuracies printed in others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import numpy as np
from scipy.stats import rankdata

from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size, Verdict
from benchmarks.papers.xu import xu2015
from benchmarks.papers.xu.xu2015 import RankTest
from benchmarks.report import table
from proxmargin.stats import (
    ControlComparison,
    Friedman,
    against_control,
    friedman,
    wilcoxon_signed_ranks,
)

__all__ = ["TABLES"]

Z_DIGITS = 6e-5  # half a unit of the last printed digit, and its rounding
P_DIGITS = 1e-4  # a unit of the last printed digit
EXACTLY = "to the printed digits"
WITHIN_UNIT = "z to the printed digits, p within one unit of the last digit"
LEVEL = 0.05  # of the tests, as printed
WEAKER = 0.1  # the other one
UNITS = 0.51  # of the last printed digit
NAMED = 3  # numbers that differ, named in the overview
SAME_TENTH = "B-PGH-2, ADMM"
MISPRINTS_6 = {SAME_TENTH: "takes two differences of 0.1 for unequal"}
SWAPPED = "the ranks of gisette"
MISPRINTS_7 = {SWAPPED: "those of B-PGH-2 and ADMM are interchanged, which changes a conclusion"}
WHY_6 = """B-PGH-2 against ADMM: 92.7 - 92.8 and 92.9 - 92.8 are both 0.1 and share a rank, T = 7.5.
In double precision they differ in the last place; with T = 7 follows the printed -2.0896."""
WHY_7 = """On gisette Table 5 prints 92.7 for B-PGH-2 and 92.8 for ADMM, Table 7 the ranks 2 and 3.
With 3 and 2, ADMM does not differ from B-PGH at level 0.1 after Holm's procedure, as it does in the
paper."""


def _table_6(size: Size) -> Outcome:
    names = xu2015.BINARY_METHODS
    body, off = _signed_ranks(xu2015.BINARY, xu2015.SIGNED_RANKS, names)
    body = f"{body}\n\n{WHY_6}" if SAME_TENTH in off else body
    return _judged(body, _claims_6(xu2015.BINARY), off, MISPRINTS_6, WITHIN_UNIT)


def _claims_6(scores: np.ndarray) -> list[Claim]:
    p = _pvalues(scores, xu2015.BINARY_METHODS)
    alike = [("B-PGH", "B-PGH-2"), ("GCD", "ADMM")]
    others = {pair: value for pair, value in p.items() if pair not in alike}
    told = f"p at most {max(others.values()):.4f}"
    return [
        *(_differs(p, pair, LEVEL, False) for pair in alike),
        Claim(
            f"every other pair differs significantly at {LEVEL:g}",
            max(others.values()) < LEVEL,
            told,
        ),
    ]


def _claims_15(scores: np.ndarray) -> list[Claim]:
    p = _pvalues(scores, xu2015.MULTICLASS_METHODS)
    return [
        Claim(
            f"no pair differs significantly at {LEVEL:g}",
            min(p.values()) >= LEVEL,
            f"p at least {min(p.values()):.4f}",
        ),
        _differs(p, ("M-PGH", "OVA"), WEAKER, True),
    ]


def _pvalues(scores: np.ndarray, names: Sequence[str]) -> dict[tuple[str, str], float]:
    """Of the signed ranks, by pair."""
    found = wilcoxon_signed_ranks(scores).pvalue
    pairs = zip(*np.triu_indices(len(names), 1), strict=True)
    return {(names[int(i)], names[int(j)]): float(found[i, j]) for i, j in pairs}


def _differs(
    p: Mapping[tuple[str, str], float], pair: tuple[str, str], level: float, differ: bool
) -> Claim:
    words = "differ significantly" if differ else "do not differ significantly"
    sentence = f"{pair[0]} and {pair[1]} {words} at {level:g}"
    return Claim(sentence, (p[pair] < level) is differ, f"p = {p[pair]:.4f}")


def _table_15(size: Size) -> Outcome:
    body, off = _signed_ranks(
        xu2015.MULTICLASS, xu2015.MULTICLASS_SIGNED_RANKS, xu2015.MULTICLASS_METHODS
    )
    return _judged(body, _claims_15(xu2015.MULTICLASS), off, {}, WITHIN_UNIT)


def _signed_ranks(
    scores: np.ndarray, printed: np.ndarray, names: Sequence[str]
) -> tuple[str, list[str]]:
    """The table, and the pairs that differ from the print."""
    result = wilcoxon_signed_ranks(scores)
    rows, off = [], []
    for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
        pair = f"{names[int(i)]}, {names[int(j)]}"
        z, p = result.zscore[i, j], result.pvalue[i, j]
        if abs(z - printed[i, j]) > Z_DIGITS or abs(p - printed[j, i]) > P_DIGITS:
            off.append(pair)
        rows.append([pair, f"{printed[i, j]:.4f}", f"{z:.4f}", f"{printed[j, i]:.4f}", f"{p:.4f}"])
    return table(["pair", "z, printed", "z", "p, printed", "p"], rows), off


def _table_7(size: Size) -> Outcome:
    methods, printed = xu2015.BINARY_METHODS, xu2015.BINARY_FRIEDMAN
    by_print = friedman(xu2015.BINARY_RANKS, higher_is_better=False)
    after = against_control(xu2015.BINARY_RANKS, higher_is_better=False)
    found = {
        "from the printed ranks": (by_print, after),
        "from Table 5": (friedman(xu2015.BINARY), against_control(xu2015.BINARY)),
    }
    body = _rank_tables(methods, printed, found)
    off = [*_off_ranks(), *_off(methods, printed, by_print, after)]
    body = f"{body}\n\n{WHY_7}" if SWAPPED in off else body
    claims = _claims_7(*found["from the printed ranks"], "by the printed ranks: ")
    return _judged(body, claims, off, MISPRINTS_7)


def _claims_7(test: Friedman, after: ControlComparison, told: str) -> list[Claim]:
    names = xu2015.BINARY_METHODS
    return [
        _all_differ(test, LEVEL, True),
        _after(after, names, {"GCD", "LIBLINEAR"}, LEVEL, told),
        _after(after, names, {"GCD", "ADMM", "LIBLINEAR"}, WEAKER, told),
    ]


def _claims_16(test: Friedman, after: ControlComparison) -> list[Claim]:
    names = xu2015.MULTICLASS_METHODS
    return [
        _all_differ(test, LEVEL, False),
        _all_differ(test, WEAKER, True),
        _after(after, names, {"OVA", "DDAG"}, WEAKER, ""),
    ]


def _all_differ(test: Friedman, level: float, differ: bool) -> Claim:
    words = "differ significantly" if differ else "do not differ significantly"
    holds = (test.pvalue < level) is differ
    return Claim(f"the methods {words} at {level:g} (Friedman)", holds, f"p = {test.pvalue:.3g}")


def _after(
    after: ControlComparison, names: Sequence[str], differing: set[str], level: float, told: str
) -> Claim:
    """By Holm's procedure, that the first method differs from these and no others."""
    adjusted = dict(zip(names[1:], map(float, after.adjusted), strict=True))
    others = [name for name in adjusted if name not in differing]
    but = f", not from {', '.join(others)}" if others else ""
    listed = ", ".join(name for name in adjusted if name in differing)
    sentence = f"{names[0]} differs significantly from {listed}{but} at {level:g} (Holm)"
    holds = {name for name, p in adjusted.items() if p <= level} == differing
    numbers = ", ".join(f"{name} {p:.3g}" for name, p in adjusted.items())
    return Claim(sentence, holds, f"{told}adjusted p: {numbers}")


def _off_ranks() -> list[str]:
    """The rows of Table 7 whose printed ranks do not follow from Table 5."""
    ours = rankdata(-xu2015.BINARY, axis=1)  # printed decimals: equal ones are the same double
    swapped = xu2015.BINARY_RANKS[xu2015.GISETTE, [0, 3, 2, 1, 4]]
    return [
        SWAPPED
        if row == xu2015.GISETTE and np.array_equal(ours[row], swapped)
        else f"the ranks of row {row + 1}"
        for row in np.flatnonzero((ours != xu2015.BINARY_RANKS).any(axis=1))
    ]


def _table_16(size: Size) -> Outcome:
    methods, printed = xu2015.MULTICLASS_METHODS, xu2015.MULTICLASS_FRIEDMAN
    found = friedman(xu2015.MULTICLASS), against_control(xu2015.MULTICLASS)
    body = _rank_tables(methods, printed, {"ours": found})
    return _judged(body, _claims_16(*found), _off(methods, printed, *found), {})


def _rank_tables(
    methods: Sequence[str],
    printed: RankTest,
    found: Mapping[str, tuple[Friedman, ControlComparison]],
) -> str:
    """Ranks with Friedman's test, and comparisons with the first: the printed, and ours."""
    ranks = table(
        ["", *methods, "chi^2", "p"],
        [
            ["printed", *printed.ranks, printed.statistic, printed.pvalue],
            *(_ranks_row(name, test) for name, (test, _) in found.items()),
        ],
    )
    after = table(
        [f"p against {methods[0]} (Holm's adjusted)", *methods[1:]],
        [
            ["printed", *printed.against_first],
            *(_holm_row(name, comparison) for name, (_, comparison) in found.items()),
        ],
    )
    return f"{ranks}\n\n{after}"


def _off(
    methods: Sequence[str], printed: RankTest, test: Friedman, after: ControlComparison
) -> list[str]:
    """What differs from the printed digits."""
    compared: list[tuple[str, float, str]] = [
        *_named("rank", methods, test.average_ranks, printed.ranks),
        ("chi^2", test.statistic, printed.statistic),
        ("p", test.pvalue, printed.pvalue),
        *_named("p", methods[1:], after.pvalue, printed.against_first),
    ]
    return [name for name, value, digits in compared if not _agrees(value, digits)]


def _named(
    what: str, methods: Sequence[str], values: np.ndarray, printed: Sequence[str]
) -> Iterable[tuple[str, float, str]]:
    for method, value, digits in zip(methods, values, printed, strict=True):
        yield f"{what} of {method}", float(value), digits


def _agrees(value: float, printed: str) -> bool:
    """Whether a number rounds to the printed digits."""
    exponent = int(Decimal(printed).as_tuple().exponent)
    return abs(value - float(printed)) <= UNITS * 10.0**exponent


def _judged(
    body: str,
    claims: Sequence[Claim],
    off: Sequence[str],
    misprints: Mapping[str, str],
    closely: str = EXACTLY,
) -> Outcome:
    """Reproduced if nothing differs but known misprints and no claim fails."""
    told = judged(body, claims)
    body = told.body
    unknown = [name for name in off if name not in misprints]
    if unknown:
        rest = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        return Outcome(body, Verdict.NOT, f"differs in {'; '.join(unknown[:NAMED])}{rest}")
    if told.verdict is Verdict.NOT:
        return told
    known = "; ".join(f"{name}, a misprint: {misprints[name]}" for name in off)
    why = f"{closely} but for {known}" if known else closely
    return Outcome(body, Verdict.REPRODUCED, why)


def _ranks_row(name: str, found: Friedman) -> list[str]:
    ranks = [f"{rank:.2f}" for rank in found.average_ranks]
    return [name, *ranks, f"{found.statistic:.2f}", f"{found.pvalue:.3g}"]


def _holm_row(name: str, found: ControlComparison) -> list[str]:
    pairs = zip(found.pvalue, found.adjusted, strict=True)
    return [name, *(f"{alone:.3g} ({adjusted:.3g})" for alone, adjusted in pairs)]


SIGNED = """Printed in full: (21), signed ranks with those of zero differences split evenly, and the
normal approximation without a correction for ties."""
RANKED = """Printed in full: (22), with the squares that it lacks, and p-values of comparisons with
the first method, judged by Holm's procedure."""
TABLES = {
    "X6": PaperTable("Table 6 of Xu et al.: signed ranks", SIGNED, (0.0, 0.0), _table_6),
    "X7": PaperTable("Table 7 of Xu et al.: Friedman's ranks", RANKED, (0.0, 0.0), _table_7),
    "X15": PaperTable("Table 15 of Xu et al.: signed ranks", SIGNED, (0.0, 0.0), _table_15),
    "X16": PaperTable("Table 16 of Xu et al.: Friedman's ranks", RANKED, (0.0, 0.0), _table_16),
}
