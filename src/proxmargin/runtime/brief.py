"""Values in messages."""

from __future__ import annotations

__all__ = ["brief", "shown"]

LONGEST = 200  # characters of a value in a message
CUT = " [...]"


def brief(value: object, at_most: int = LONGEST) -> str:
    """The text of a value on one line, cut where it is longer."""
    line = " ".join(str(value).split())
    return line if len(line) <= at_most else line[: at_most - len(CUT)] + CUT


def shown(value: object, at_most: int = LONGEST) -> str:
    """A value as it is typed, `brief`."""
    return brief(repr(value), at_most)
