"""Tables and figures of Ito, Takeda, Toh (2017), one command each."""

from benchmarks.papers.ito import (
    accuracy,
    breakdown,
    data,
    floors,
    illustrations,
    logistic,
    minimax,
    nu_machines,
    projections,
    scaling,
    sparse,
    strategies,
    theory,
)
from benchmarks.papers.table import PaperTable

__all__ = ["TABLES"]

_ALL: dict[str, PaperTable] = {
    **data.TABLES,
    **projections.TABLES,
    **breakdown.TABLES,
    **nu_machines.TABLES,
    **floors.TABLES,
    **logistic.TABLES,
    **minimax.TABLES,
    **accuracy.TABLES,
    **illustrations.TABLES,
    **strategies.TABLES,
    **scaling.TABLES,
    **sparse.TABLES,
    **theory.TABLES,
}


def _place(name: str) -> tuple[int, int]:
    """Tables, figures, theorems, each in their order."""
    kind = name.rstrip("0123456789")
    return ("I", "IF", "IT").index(kind), int(name.removeprefix(kind))


TABLES = {name: _ALL[name] for name in sorted(_ALL, key=_place)}
