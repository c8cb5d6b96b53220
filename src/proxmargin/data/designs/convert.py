"""Conversion of the user's data to a design, by type."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from scipy import sparse

from proxmargin.data.designs.base import Design
from proxmargin.data.designs.compressed import canonical
from proxmargin.data.designs.dense import DenseDesign
from proxmargin.data.designs.sparse import SparseDesign


@singledispatch
def as_design(data: Any) -> Design:
    """The design over ``data``; ``as_design.register`` adds further types.

    The data are copied only if they are sparse and not canonical.
    """
    raise TypeError(f"no design is known for data of type {type(data).__name__}")


@as_design.register
def _(data: np.ndarray) -> Design:
    return DenseDesign(data)


@as_design.register(sparse.spmatrix)
@as_design.register(sparse.sparray)
def _(data: Any) -> Design:
    return SparseDesign(canonical(data))


@as_design.register
def _(data: Design) -> Design:
    return data
