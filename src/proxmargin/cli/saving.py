"""Results are saved and printed, each even if the other fails."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from proxmargin.runtime.files import replaced

__all__ = ["saved_first", "text_replaced", "with_imputer"]


@contextmanager
def saved_first(name: str | None, save: Callable[[str], object]) -> Iterator[str | None]:
    """Save to a file before the block prints; where that failed, raise after it has printed.

    Gives the name of the file; None where there was none to write, or it could not be written.
    """
    failure: Exception | None = None
    try:
        if name:
            save(name)
    except (OSError, ValueError, MemoryError) as error:
        failure = error
    try:
        yield name if name and failure is None else None
    finally:
        if failure is not None:
            raise failure


def with_imputer(model: Any, imputer: Any) -> Any:
    """The model after the imputer that filled in its training data; the model without one."""
    if imputer is None:
        return model
    from proxmargin.inputs.preprocessing import Preprocessed

    return Preprocessed.of(imputer, model)


@contextmanager
def text_replaced(path: str) -> Iterator[TextIO]:
    """A text stream whose content replaces the file at ``path`` (`proxmargin.runtime.files`)."""
    with replaced(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        yield text
        text.detach()
