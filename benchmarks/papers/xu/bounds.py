"""Whether printed numbers are met within bounds."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.papers.claims import Claim

__all__ = ["numbers"]

NAMED = 4  # numbers that differ, named in the overview


def numbers(off: Sequence[str]) -> list[Claim]:
    """The claim that every number is within its bounds, from the names of those that are not."""
    if not off:
        return [Claim("numbers within their bounds", True, "all")]
    rest = f" and {len(off) - NAMED} more" if len(off) > NAMED else ""
    beyond = f"numbers within their bounds ({', '.join(off[:NAMED])}{rest} beyond)"
    return [Claim(beyond, False, ", ".join(off))]
