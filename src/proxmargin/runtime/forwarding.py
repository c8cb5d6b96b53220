"""Attributes and methods that an object has of another one within."""

from __future__ import annotations

from operator import attrgetter
from typing import Any


def forwarded(part: str, *names: str) -> Any:
    """Properties, one for each of ``names``: that attribute or method of the attribute ``part``."""
    return [property(attrgetter(f"{part}.{name}")) for name in names]
