"""Tables of Xu, Akrotirianakis and Chakraborty (2015)."""

from benchmarks.papers.table import PaperTable
from benchmarks.papers.xu import (
    benchmark,
    binary,
    four_classes,
    microarrays,
    recovery,
    settings,
    smoothing,
    statistics,
    theory,
    times,
)

__all__ = ["TABLES"]

_PARTS = (
    settings,
    recovery,
    binary,
    smoothing,
    statistics,
    four_classes,
    benchmark,
    microarrays,
    times,
)
_ALL = {name: found for part in _PARTS for name, found in part.TABLES.items()}
_NUMBERED = sorted(_ALL.items(), key=lambda item: int(item[0].removeprefix("X")))
TABLES: dict[str, PaperTable] = {**dict(_NUMBERED), **theory.TABLES}
"""In the order of the paper."""
