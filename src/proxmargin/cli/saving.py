"""Results are worth more than the place they go to: each is put out whatever became of the other."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from proxmargin.atomic import replaced

__all__ = ["saved_first", "text_replaced"]


@contextmanager
def saved_first(save: Callable[[], object]) -> Iterator[bool]:
    """Save before the block prints; where that failed, raise after the block has printed.

    Gives whether it was saved.
    """
    failure: Exception | None = None
    try:
        save()
    except (OSError, ValueError, MemoryError) as error:
        failure = error
    try:
        yield failure is None
    finally:
        if failure is not None:
            raise failure


@contextmanager
def text_replaced(path: str) -> Iterator[TextIO]:
    """A text stream whose content replaces the file at ``path``; see `proxmargin.atomic`."""
    with replaced(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        yield text
        text.detach()
