"""What a paper concludes from a figure, held against our numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from benchmarks.papers.table import Outcome, Verdict
from benchmarks.report import table

__all__ = ["Claim", "judged"]


class Claim(NamedTuple):
    """A sentence of the paper, whether our numbers agree, and the numbers."""

    sentence: str
    holds: bool
    numbers: str


def judged(body: str, claims: Sequence[Claim], picture: Callable[[], Any] | None = None) -> Outcome:
    """In shape if every claim holds."""
    rows = [[one.sentence, "yes" if one.holds else "no", one.numbers] for one in claims]
    said = table(["the paper says", "here", "our numbers"], rows)
    against = [one.sentence for one in claims if not one.holds]
    verdict = Verdict.NOT if against else Verdict.IN_SHAPE
    why = f"not so here: {'; '.join(against)}" if against else "what the paper concludes holds here"
    return Outcome(f"{said}\n\n{body}", verdict, why, picture)
