"""Tables of Liu, Qian, Dai and Zhang (2013)."""

from benchmarks.papers.liu import expressions, parameters, simulated, theory
from benchmarks.papers.table import PaperTable

__all__ = ["TABLES"]

TABLES: dict[str, PaperTable] = {
    **simulated.TABLES,
    **expressions.TABLES,
    **parameters.TABLES,
    **theory.TABLES,
}
"""In the order of the paper."""
