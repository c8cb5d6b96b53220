"""Designs: how coefficients become scores. Only these modules see the data."""

from proxmargin.designs.base import Design, PassCounter
from proxmargin.designs.convert import as_design
from proxmargin.designs.dense import DenseDesign
from proxmargin.designs.row_view import RowView
from proxmargin.designs.sparse import SparseDesign
from proxmargin.designs.standardized import (
    StandardizedDesign,
    moments,
    precise_sums,
    standardized,
    uncentred,
)

__all__ = [
    "DenseDesign",
    "Design",
    "PassCounter",
    "RowView",
    "SparseDesign",
    "StandardizedDesign",
    "as_design",
    "moments",
    "precise_sums",
    "standardized",
    "uncentred",
]
