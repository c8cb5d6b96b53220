"""Which bound holds a fit that another package is faster than: memory, checks or the solver."""

from __future__ import annotations

from benchmarks.bandwidth import Pass
from benchmarks.measure import Trial
from benchmarks.shares import Shares

__all__ = ["bound_in_words"]

EVEN = 1.1  # ratio of times up to which they count as equal


def bound_in_words(one: Trial, other: float, single: Pass | None, profile: Shares | None) -> str:
    """Sentences on a trial of ours and the seconds of the ``other``, from what was measured.

    The passes of ours times the seconds of a single pass are a floor of its time, whatever the
    solver does with the data. A profile divides its time into checks, certificates and the rest.
    """
    sentences = []
    floor = None
    if single is not None and one.fitted.passes is not None:
        floor = one.fitted.passes * single.seconds
        sentences.append(
            f"A product with the data takes {single.in_words}: the passes take {floor:.3g} s at"
            f" least, {floor / other:.2f} of the {other:.3g} s of the other"
        )
    if profile is not None:
        rest = 1.0 - profile.checks - profile.certificates
        sentences.append(f"The solver and what is around it are {rest:.0%} of the profile")
    verdict = _verdict(one.seconds, other, floor, profile)
    if verdict:
        sentences.append(f"Bound: {verdict}")
    return "".join(f" {sentence}." for sentence in sentences)


def _verdict(ours: float, other: float, floor: float | None, profile: Shares | None) -> str:
    """The first bound that explains the difference."""
    if floor is not None and floor > other:
        return "the memory, as it is read too often"
    if profile is not None:
        solving = ours * (1.0 - profile.checks - profile.certificates)
        if solving <= EVEN * other:
            more = "checks" if profile.checks >= profile.certificates else "certificates"
            return f"{more}, as the ratio is {solving / other:.2f} without checks and certificates"
    if floor is None or profile is None:
        return ""
    return f"the work of the solver, {ours / floor:.1f} times what its passes take"
