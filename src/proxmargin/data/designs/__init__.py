"""Designs: how coefficients become scores. Only these modules see the data."""

from proxmargin.data.designs.base import Design, PassCounter, as_design
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.data.designs.sparse import SparseDesign
from proxmargin.data.designs.views import (
    RowView,
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
