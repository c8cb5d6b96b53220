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

    REPRODUCED = "reproduced"  # every claim holds, and the printed numbers are met
    IN_SHAPE = "in shape"  # no conclusion fails, numbers differ or are not printed
    NOT = "not"  # a conclusion fails here
    UNDECIDED = "undecided"  # its size or its draws do not decide what it concludes
    ILLUSTRATION = "illustration"  # nothing of the paper could fail: it tests our implementation
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
    draws : of a small and a full run, in words; "-" where nothing is drawn
    """

    title: str
    protocol: str
    minutes: tuple[float, float]
    run: Callable[[Size], Outcome]
    draws: tuple[str, str] = ("-", "-")
