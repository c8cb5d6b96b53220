"""What a paper concludes from a figure, held against our numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.papers.table import Outcome, Verdict
from benchmarks.report import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Claim", "judged"]


class Claim(NamedTuple):
    """A sentence of the paper, whether our numbers agree, and the numbers."""

    sentence: str
    holds: bool
    numbers: str


def judged(
    body: str,
    claims: Sequence[Claim],
    printed: Sequence[Claim] = (),
    picture: Figure | None = None,
) -> Outcome:
    """In shape if every claim holds; reproduced if every one about a printed number does too."""
    every = [*claims, *printed]
    rows = [[one.sentence, "yes" if one.holds else "no", one.numbers] for one in every]
    said = table(["the paper says", "here", "our numbers"], rows)
    against = [one.sentence for one in claims if not one.holds]
    differing = [one.sentence for one in printed if not one.holds]
    if against:
        verdict, why = Verdict.NOT, f"not so here: {'; '.join(against)}"
    elif printed and not differing:
        verdict, why = Verdict.REPRODUCED, "its numbers and conclusions"
    else:
        verdict, why = Verdict.IN_SHAPE, "what the paper concludes holds here"
        if differing:
            why = f"{why}, but not: {'; '.join(differing)}"
    return Outcome(f"{said}\n\n{body}", verdict, why, picture)
