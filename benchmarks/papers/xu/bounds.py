"""Whether printed numbers are met within bounds, and orders beyond chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.papers.claims import Claim

__all__ = ["SIGNIFICANTLY", "gain", "more", "numbers"]

NAMED = 4  # numbers that differ, named in the overview
SIGNIFICANTLY = 2.0  # times, "significantly faster": the paper gives no factor, this one is ours


def numbers(off: Sequence[str]) -> list[Claim]:
    """The claim that every number is within its bounds, from the names of those that are not."""
    if not off:
        return [Claim("numbers within their bounds", True, "all")]
    rest = f" and {len(off) - NAMED} more" if len(off) > NAMED else ""
    beyond = f"numbers within their bounds ({', '.join(off[:NAMED])}{rest} beyond)"
    return [Claim(beyond, False, ", ".join(off))]


def more(sentence: str, one: np.ndarray, two: np.ndarray) -> Claim:
    """The claim that the first mean over the same draws is the larger one; untested where the
    difference is within its standard error."""
    difference = one - two
    mean, error = float(difference.mean()), float(difference.std() / np.sqrt(len(difference)))
    told = f"{abs(one.mean()):.1f} against {abs(two.mean()):.1f}, standard error {error:.1f}"
    return Claim(sentence, None if abs(mean) <= error else mean > 0.0, told)


def gain(
    ones: Mapping[str, np.ndarray], twos: Mapping[str, np.ndarray]
) -> tuple[float, float, str]:
    """Mean over the data sets of the mean differences on the same draws, its standard error, and
    the words for both."""
    differences = [ones[name] - twos[name] for name in ones]
    mean = float(np.mean([one.mean() for one in differences]))
    squares = [one.var() / len(one) for one in differences]
    error = float(np.sqrt(np.sum(squares)) / len(differences))
    told = "; ".join(
        f"{name}: {twos[name].mean():.1f} and {ones[name].mean():.1f}" for name in ones
    )
    return mean, error, f"{told}; mean difference {mean:.1f}, standard error {error:.1f}"
