"""What counts as certain, and as a difference, wherever models are compared."""

from __future__ import annotations

from typing import Final

__all__ = ["CONFIDENCE", "INTERVAL", "ROPE", "percent"]

CONFIDENCE: Final = 0.95  # of intervals; tests are at the level 1 - CONFIDENCE
# in units of a score: smaller differences do not matter in practice (Corani and Benavoli 2015)
ROPE: Final = 0.01


def percent(share: float) -> str:
    """``95 %`` for 0.95."""
    return f"{100 * share:.3g} %"


INTERVAL: Final = f"{percent(CONFIDENCE)} interval"  # its name in tables and charts
