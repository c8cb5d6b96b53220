"""Values in messages."""

from __future__ import annotations

__all__ = ["brief"]

LONGEST = 200  # characters of a value in a message
CUT = " [...]"


def brief(value: object, at_most: int = LONGEST) -> str:
    """The text of a value on one line, cut where it is longer."""
    line = " ".join(str(value).split())
    return line if len(line) <= at_most else line[: at_most - len(CUT)] + CUT
