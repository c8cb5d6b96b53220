"""What one fit hands on to the functions that carry it out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from proxmargin.callbacks.guard import Guard
from proxmargin.loop.stopping import Stop
from proxmargin.resuming.journal import UNRECORDED, Journal

__all__ = ["FitContext"]


@dataclass(frozen=True, eq=False)
class FitContext:
    """Limits, checkpoints and callbacks of one fit, and what is to be said at its end.

    Attributes
    ----------
    stop : Stop
        The limits, begun.
    journal : Journal
        Of the checkpoints.
    guard : Guard
        Of the callbacks.
    remarks : tuple of str
        Warnings of optima without a margin, which are issued in place of unmet tolerances.
    hint : str
        The end of the warning of an unmet tolerance: what in the data may be the cause.
    nus : dict
        By the signs of a problem: the nu of the next attempt, where one leaves no margin.
    largest : list
        The largest kappa of each problem, where kappa is a share of it.
    """

    stop: Stop = field(default_factory=Stop)
    journal: Journal = UNRECORDED
    guard: Guard = field(default_factory=Guard)
    remarks: tuple[str, ...] = ()
    hint: str = ""
    nus: dict[bytes, float] = field(default_factory=dict)
    largest: list[Any] = field(default_factory=list)

    def within(self, stop: Stop) -> FitContext:
        """The same fit within other limits."""
        return replace(self, stop=stop)
