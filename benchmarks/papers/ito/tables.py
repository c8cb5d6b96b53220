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
)
from benchmarks.papers.table import PaperTable

__all__ = ["TABLES"]

TABLES: dict[str, PaperTable] = {
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
}
