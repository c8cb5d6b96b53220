"""Tables and figures of Chierchia, Pustelnik, Pesquet and Pesquet-Popescu (2015)."""

from benchmarks.papers.chierchia import curves, leukemia, quadratic, times
from benchmarks.papers.table import PaperTable

__all__ = ["TABLES"]

TABLES: dict[str, PaperTable] = {
    **leukemia.TABLES,
    **curves.TABLES,
    **times.TABLES,
    **quadratic.TABLES,
}
"""In the order of the paper."""
