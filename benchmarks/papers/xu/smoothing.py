"""Table 9 of Xu et al. (2015): the smoothing parameter."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.papers.claims import Claim, judged
from benchmarks.papers.table import Outcome, PaperTable, Size
from benchmarks.papers.xu.binary import (
    DIGIT,
    HEAD,
    METHODS,
    PROTOCOL,
    SOURCES,
    Results,
    beyond_bounds,
    is_capped,
    matched_strength,
    mean_of,
    mean_seconds,
    over_draws,
    result_rows,
    with_missing,
)
from benchmarks.papers.xu.bounds import numbers
from benchmarks.report import table

__all__ = ["TABLES"]

SMALL_DELTAS = (0.1, 0.01)
STEADY = 5.0  # ratio of seconds up to which a method is not affected
SELDOM = 0.2  # largest share of the data sets


def _table_9(size: Size) -> Outcome:
    rows, off = [], []
    deltas = (1.0, *SMALL_DELTAS)
    methods = {name: METHODS[name] for name in ("B-PGH", "GCD")}
    found: dict[float, dict[str, Results]] = {delta: {} for delta in deltas}
    for name in SOURCES:
        l1 = matched_strength(name)
        for delta in deltas:
            results = over_draws(name, lambda method, part, l1=l1: l1, delta, size, methods)
            found[delta][name] = results
            if delta in SMALL_DELTAS:
                rows += [
                    [f"{delta:g}", *row]
                    for row in result_rows(name, f"{l1:g}, as in Table 5", results, delta)
                    if row[2] in methods
                ]
    for delta in SMALL_DELTAS:
        off += [f"{one}, delta {delta:g}" for one in beyond_bounds(found[delta], delta)]
    body = f"{table(['delta', *HEAD], rows)}\n\n{WHY_9}"
    claims = [
        _denser(found),
        _more_accurate(found),
        _seldom_slower(found),
        _mostly_slower(found),
    ]
    return with_missing(judged(body, claims, numbers(off)))


WHY_9 = """Ratios are of the slower of both small deltas to delta = 1, without times of fits at a
limit of work (marked ">"), which are lower bounds; a set with no others is left out."""


def _denser(found: Mapping[float, Mapping[str, Results]]) -> Claim:
    told, holds = [], True
    for name in SOURCES:
        sizes = [mean_of(by[name]["B-PGH"]).support for by in found.values()]
        holds = holds and sizes[0] <= min(sizes[1:])
        told.append(f"{name}: {', '.join(f'{size:.0f}' for size in sizes)}")
    return Claim("more features are selected with small delta", bool(holds), "; ".join(told))


def _more_accurate(found: Mapping[float, Mapping[str, Results]]) -> Claim:
    told, gains = [], []
    for name in SOURCES:
        one, small = (mean_of(found[delta][name]["B-PGH"]).accuracy for delta in (1.0, 0.1))
        gains.append(small - one)
        told.append(f"{name}: {one:.1f} and {small:.1f}")
    sentence = "with delta = 0.1 predictions tend to be more accurate than with 1"
    return Claim(sentence, sum(gains) > DIGIT * len(gains), "; ".join(told))


def _seldom_slower(found: Mapping[float, Mapping[str, Results]]) -> Claim:
    ratios = _ratios(found, "B-PGH")
    slower = [name for name, ratio in ratios.items() if ratio > STEADY]
    sentence = f"B-PGH is seldom slower with small delta (more than {STEADY:g} times)"
    holds = len(slower) <= SELDOM * len(ratios) if ratios else None
    return Claim(sentence, holds, _told(ratios))


def _mostly_slower(found: Mapping[float, Mapping[str, Results]]) -> Claim:
    ratios = _ratios(found, "GCD")
    slower = [name for name, ratio in ratios.items() if ratio > STEADY]
    sentence = f"GCD is in most cases slower with small delta (more than {STEADY:g} times)"
    return Claim(sentence, 2 * len(slower) > len(ratios) if ratios else None, _told(ratios))


def _ratios(found: Mapping[float, Mapping[str, Results]], method: str) -> dict[str, float]:
    """Of seconds with the slower of both small deltas to those with 1, by data set."""
    ratios = {}
    for name in SOURCES:
        one, *small = (by[name][method] for by in found.values())
        times = [mean_seconds(results) for results in small if not is_capped(results)]
        if times and not is_capped(one):
            ratios[name] = max(times) / mean_seconds(one)
    return ratios


def _told(ratios: Mapping[str, float]) -> str:
    told = [f"{name}: {ratio:.2g} times" for name, ratio in ratios.items()]
    left = [f"{name}: at a limit of work" for name in SOURCES if name not in ratios]
    return "; ".join([*told, *left])


TABLES = {
    "X9": PaperTable(
        "Table 9 of Xu et al.: the smoothing parameter",
        f"""delta = 0.1 and 0.01, all else as in Table 5, lambda1 by the printed support there.
"Seldom": on at most {SELDOM:.0%} of the sets. {PROTOCOL}""",
        (1.5, 12.0),
        _table_9,
    ),
}
