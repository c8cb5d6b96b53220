"""Values in messages, and as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LONGEST = 200  # characters of a value in a message
CUT = " [...]"


def brief(value: object, at_most: int = LONGEST) -> str:
    """The text of a value on one line, cut where it is longer."""
    line = " ".join(str(value).split())
    return line if len(line) <= at_most else line[: at_most - len(CUT)] + CUT


def shown(value: object, at_most: int = LONGEST) -> str:
    """A value as it is typed, `brief`."""
    return brief(repr(value), at_most)


def plain(value: Any) -> Any:
    """Values that JSON has: arrays as lists, None for numbers that are not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, bool | int | float | str | None) else str(value)
