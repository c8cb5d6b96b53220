"""How our numbers are held against the printed ones of Ito et al. (2017)."""

from __future__ import annotations

from collections.abc import Sequence, Sized

import numpy as np

from benchmarks.papers.claims import Claim
from benchmarks.papers.ito.data import OUT_OF_REACH, REACH
from benchmarks.papers.ito.rivals import shown
from benchmarks.papers.table import Size

__all__ = [
    "NAMES_OUT_OF_REACH",
    "OUR_CHECK",
    "OUR_MEASURE",
    "STARRED",
    "at_full",
    "but",
    "digits_agree",
    "faster",
    "is_same",
    "median_over_printed",
    "starred",
    "stood_for",
    "tested",
    "to_digits",
    "within_factor",
]

FACTOR = 2.0  # of two numbers of iterations, or two L_k, that agree
DIGITS = 3  # significant ones, printed
UNITS = 1.0  # of the last printed digit: data scaled twice may differ in it
OUR_CHECK = "(our check)"  # of a sentence that the paper does not say
OUR_MEASURE = "(our measure)"  # of a printed number, whose bound is ours
STARRED = "* other data than the paper's: shown, not judged."
NAMES_OUT_OF_REACH = f"Out of reach: {', '.join(OUT_OF_REACH)}."


def is_same(name: str) -> bool:
    """Whether a set of the paper is here as it is there, so that its numbers are judged."""
    return name in REACH and not REACH[name].differs


def starred(name: str) -> str:
    """The name, with a star if the data differ from the paper's."""
    return name if is_same(name) else f"{name} *"


def to_digits(value: float, printed: float) -> bool:
    """Whether a number agrees with three printed digits."""
    unit = 10.0 ** (np.floor(np.log10(abs(printed))) - DIGITS + 1)
    return bool(abs(value - printed) <= UNITS * unit)


def tested(holds: bool, of: Sized) -> bool | None:
    """None, untested, where there is nothing to test a claim on."""
    return bool(holds) if len(of) else None


def at_full(size: Size, holds: bool) -> bool | None:
    """None, untested, at the small size, where the cut of the run would decide."""
    return bool(holds) if size is Size.FULL else None


def faster(rival: str, where: str, pairs: Sequence[tuple[float, float]]) -> Claim:
    """FAPG against one rival, by seconds of both; NaN where the rival was not run."""
    run = [(ours, theirs) for ours, theirs in pairs if not np.isnan(theirs)]
    won = [ours < theirs for ours, theirs in run]
    told = ", ".join(f"{shown(ours)} against {shown(theirs)}" for ours, theirs in run)
    missing = len(pairs) - len(run)
    parts = [f"{told} s"] if run else []
    if missing or not pairs:
        parts.append(f"not run on {missing}" if missing else "no such data at this size")
    sentence = f"FAPG is faster than {rival} {where}"
    return Claim(sentence, tested(all(won), won), "; ".join(parts))


def stood_for(claim: str, pairs: Sequence[tuple[float, float]]) -> Claim:
    """About SeDuMi, which is not run here: untested, with the seconds of FAPG and Clarabel."""
    run = [(ours, theirs) for ours, theirs in pairs if not np.isnan(theirs)]
    told = ", ".join(f"{shown(ours)} against {shown(theirs)}" for ours, theirs in run)
    beside = f"FAPG against Clarabel: {told} s" if run else "nor is Clarabel"
    missing = len(pairs) - len(run)
    left = f"; Clarabel not run on {missing}" if run and missing else ""
    return Claim(claim, None, f"SeDuMi is not run; {beside}{left}")


def median_over_printed(pairs: Sequence[tuple[float, float]]) -> str:
    """The median of ours over the printed, of numbers that are both known."""
    ratios = [ours / printed for ours, printed in pairs if np.isfinite([ours, printed]).all()]
    return f"{np.median(ratios):.2g}" if ratios else "-"


def but(names: Sequence[str]) -> str:
    """The exceptions, if there are any."""
    return f", not {', '.join(names)}" if names else ""


def within_factor(what: str, triples: Sequence[tuple[str, float, float]]) -> Claim:
    """Sets of the paper, ours and the printed number: within `FACTOR` of it in most of them."""
    ratios = np.array(
        [
            ours / printed
            for name, ours, printed in triples
            if is_same(name) and np.isfinite(printed)
        ]
    )
    near = int(np.sum((ratios >= 1 / FACTOR) & (ratios <= FACTOR)))
    middle = f"{np.median(ratios):.2g}" if ratios.size else "-"
    told = f"{near} of {ratios.size}; median of ours over the printed {middle}"
    sentence = f"{what}, within a factor of {FACTOR:g} on most sets {OUR_MEASURE}"
    return Claim(sentence, tested(2 * near > ratios.size, ratios), told)


def digits_agree(what: str, triples: Sequence[tuple[str, float, float]]) -> Claim:
    """The same to the printed digits."""
    same = [(n, one, other) for n, one, other in triples if is_same(n) and np.isfinite(other)]
    off = [name for name, ours, printed in same if not to_digits(ours, printed)]
    told = f"{len(same) - len(off)} of {len(same)}{but(off)}"
    sentence = f"{what} to the printed digits on most sets {OUR_MEASURE}"
    return Claim(sentence, tested(2 * len(off) < len(same), same), told)
