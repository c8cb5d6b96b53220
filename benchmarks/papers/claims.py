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
    """A sentence of the paper, whether our numbers agree (None: untested), and the numbers."""

    sentence: str
    holds: bool | None
    numbers: str


def judged(
    body: str,
    claims: Sequence[Claim],
    printed: Sequence[Claim] = (),
    picture: Figure | None = None,
) -> Outcome:
    """In shape if no claim fails; reproduced if all about conclusions and printed numbers hold;
    undecided if none about conclusions is tested."""
    every = [*claims, *printed]
    rows = [[one.sentence, _word(one.holds), one.numbers] for one in every]
    said = table(["claim", "here", "our numbers"], rows)
    verdict, why = _verdict(claims, printed)
    return Outcome(f"{said}\n\n{body}", verdict, why, picture)


def _word(holds: bool | None) -> str:
    return "untested" if holds is None else "yes" if holds else "no"


def _verdict(claims: Sequence[Claim], printed: Sequence[Claim]) -> tuple[Verdict, str]:
    against, differing = _listed(claims, "no"), _listed(printed, "no")
    untested = _listed([*claims, *printed], "untested")
    if against:
        return Verdict.NOT, f"not so here: {against}"
    if printed and not differing and not untested:
        return Verdict.REPRODUCED, "its numbers and conclusions"
    but = f", but not: {differing}" if differing else ""
    if claims and all(one.holds is None for one in claims):
        return Verdict.UNDECIDED, f"untested: {untested}{but}"
    why = f"what the paper concludes holds here{but}"
    return Verdict.IN_SHAPE, f"{why}; untested: {untested}" if untested else why


def _listed(claims: Sequence[Claim], word: str) -> str:
    return "; ".join(one.sentence for one in claims if _word(one.holds) == word)
