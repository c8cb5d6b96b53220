"""The stack level of warnings, so that they name the line of the user's code."""

from __future__ import annotations

import sys


def users_level() -> int:
    """The ``stacklevel`` with which a warning of the caller names the first line outside."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("proxmargin."):
        if frame.f_back is None:
            break
        level, frame = level + 1, frame.f_back
    return level
