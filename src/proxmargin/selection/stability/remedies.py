"""What to change where the terms of a selection contradict each other."""

from __future__ import annotations

import sys
from math import ceil, floor, isfinite, log10
from typing import Protocol

from proxmargin.selection.stability.bounds import (
    false_selections,
    largest_q,
    least_threshold,
    reached,
)

__all__ = ["remedies"]

PAIRS = (5, 10, 20, 50, 100, 200, 500, 1000)  # numbers of pairs that are worth a try
DIGITS = 3  # of a bound in a message


class SelectionRequest(Protocol):
    """What is given of threshold, pfer and q, the assumption and the number of pairs."""

    @property
    def threshold(self) -> float | None: ...
    @property
    def pfer(self) -> float | None: ...
    @property
    def q(self) -> int | None: ...
    @property
    def assumption(self) -> str: ...
    @property
    def n_pairs(self) -> int: ...


def remedies(asked: SelectionRequest, q: float, p: int) -> str:
    """The smallest pfer that is attainable, and all changes of one parameter that will do.

    Parameters
    ----------
    asked : Terms
        Without a solution.
    q : float
        Features of a half-sample: the given number, or 1 if it is to be found.
    p : int
    """
    least = false_selections(1.0, q, p, asked.n_pairs, asked.assumption)
    changes = [_threshold(asked, q, p), _q(asked, p), _pairs(asked, q, p), _pfer(asked, q, p)]
    told = [change for change in changes if change]
    if not told:  # only together with the highest threshold
        told = [f"threshold=1 and pfer >= {_up(least)}"]
    smallest = f"the smallest pfer attainable is {_up(least)}, with threshold=1"
    return f"{smallest}; give {', '.join(told[:-1])}{' or ' if told[:-1] else ''}{told[-1]}"


def _threshold(asked: SelectionRequest, q: float, p: int) -> str:
    if asked.threshold is None:
        return ""
    least = least_threshold(q, p, _most(asked), asked.n_pairs, asked.assumption)
    if least is None:
        return ""
    count, steps = reached(least, asked.n_pairs), 2 * asked.n_pairs
    return "threshold=1" if count == steps else f"threshold >= {count}/{steps}"


def _q(asked: SelectionRequest, p: int) -> str:
    if asked.q is None:
        return ""
    at = 1.0 if asked.threshold is None else asked.threshold
    most = largest_q(at, p, _most(asked), asked.n_pairs, asked.assumption)
    return f"q <= {most}" if most else ""


def _pairs(asked: SelectionRequest, q: float, p: int) -> str:
    at = 1.0 if asked.threshold is None else asked.threshold
    for count in PAIRS:
        if count > asked.n_pairs:
            bound = false_selections(at, q, p, count, asked.assumption)
            if bound <= _most(asked):
                return f"n_pairs >= {count}"
    return ""


def _pfer(asked: SelectionRequest, q: float, p: int) -> str:
    at = 1.0 if asked.threshold is None else asked.threshold
    bound = false_selections(at, q, p, asked.n_pairs, asked.assumption)
    return f"pfer >= {_up(bound)}" if asked.pfer is not None and isfinite(bound) else ""


def _most(asked: SelectionRequest) -> float:
    """The bound to meet: any number where there is none to meet."""
    return sys.float_info.max if asked.pfer is None else asked.pfer


def _up(bound: float) -> str:
    """A bound rounded up, so that it is met when it is given back."""
    if bound == 0.0:
        return "0"
    unit = 10.0 ** (floor(log10(bound)) + 1 - DIGITS)
    return f"{ceil(bound / unit) * unit:.{DIGITS}g}"
