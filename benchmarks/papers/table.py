"""What a reproduced table says: their figures, ours, and whether they agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Outcome", "PaperTable", "Size", "Verdict"]


class Size(Enum):
    """How much of a table a command repeats."""

    SMALL = "small"
    FULL = "full"


class Verdict(Enum):
    """Whether a table is reproduced."""

    REPRODUCED = "reproduced"  # to the printed digits, or within their standard errors
    IN_SHAPE = "in shape"  # the same order and the same conclusions
    NOT = "not"  # a conclusion fails here
    UNDECIDED = "undecided"  # its conclusions need another size
    OUT_OF_REACH = "out of reach"  # on data that are not public here


@dataclass(frozen=True)
class Outcome:
    """The section of a table.

    Attributes
    ----------
    body : Markdown, with their figures beside ours
    verdict : Verdict
    why : a clause for the overview
    picture : matplotlib.figure.Figure, optional
    """

    body: str
    verdict: Verdict
    why: str
    picture: Figure | None = None


@dataclass(frozen=True)
class PaperTable:
    """A table or a figure.

    Attributes
    ----------
    title : str
    protocol : str
        The printed protocol, and what of it is inferred.
    minutes : about how long a small and a full run take, on one core
    run : callable
        From a size to the outcome.
    """

    title: str
    protocol: str
    minutes: tuple[float, float]
    run: Callable[[Size], Outcome]
