"""Numbers as words of the page."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

__all__ = [
    "NONE",
    "count",
    "gap",
    "interval",
    "joined",
    "known",
    "p_value",
    "percent",
    "score",
    "seconds",
    "setting",
]

NONE = "–"  # where there is no number
MINUS = "−"
SMALL_P = 0.001  # p-values below are told as that


def known(value: Any) -> TypeGuard[float]:
    """Whether there is a number."""
    return isinstance(value, int | float) and math.isfinite(value)


def score(value: Any, digits: int = 3) -> str:
    if not known(value):
        return NONE
    text = f"{value:.{digits}f}"
    # a difference that rounds to nothing has no sign
    return text.lstrip("-") if float(text) == 0 else text.replace("-", MINUS)


def interval(low: Any, high: Any, digits: int = 3) -> str:
    """``0.940 to 0.980``, which no line end divides."""
    return (
        f"{score(low, digits)}\u00a0to\u00a0{score(high, digits)}"
        if known(low) and known(high)
        else NONE
    )


def p_value(value: Any) -> str:
    if not known(value):
        return NONE
    return f"< {SMALL_P}" if value < SMALL_P else f"{value:.3f}"


def percent(value: Any) -> str:
    return f"{100 * value:.0f} %" if known(value) else NONE


def seconds(value: Any) -> str:
    if not known(value):
        return NONE
    return f"{value:.3f}" if value < 1 else f"{value:.1f}"


def gap(value: Any) -> str:
    return f"{value:.1e}".replace("e-0", "e-").replace("-", MINUS) if known(value) else NONE


def count(value: Any) -> str:
    """A mean number of things: with a decimal only where it has one."""
    if not known(value):
        return NONE
    return f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:.1f}"


def setting(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def joined(words: list[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *first, final = words or [""]
    return f"{', '.join(first)} {last} {final}" if first else final
