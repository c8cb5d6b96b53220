"""Every design, once, over data in every form."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from proxmargin.compiled.clock import compiling
from proxmargin.data.datasets import Dataset
from proxmargin.data.datasets.dataset import Arrays
from proxmargin.data.designs import (
    DenseDesign,
    Design,
    RowView,
    SparseDesign,
    StandardizedDesign,
    moments,
)
from proxmargin.data.designs.blocks import BlockedDesign, ChunkedDesign, scanned
from proxmargin.data.designs.blocks.dask_blocks import DaskDesign, facts_of
from proxmargin.data.designs.blocks.device import DeviceBlock, DeviceDesign
from proxmargin.data.designs.blocks.placement import Group, Placement, merged
from proxmargin.data.designs.blocks.together import SharedBlocks, SharedPasses


def _strided(matrix: np.ndarray) -> np.ndarray:
    return np.repeat(np.repeat(matrix, 2, axis=0), 3, axis=1)[::2, ::3]


def _read_only(matrix: np.ndarray) -> np.ndarray:
    frozen = matrix.copy()
    frozen.setflags(write=False)
    return frozen


def _long_indices(matrix: Any) -> Any:
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def _standardized(base: Design) -> StandardizedDesign:
    weights = np.full(base.n_samples, 1.0 / base.n_samples)
    return StandardizedDesign(base, *moments(base, weights))


def _among_others(matrix: np.ndarray, form: Callable[[np.ndarray], Any]) -> RowView:
    """Every second row of data whose other rows are giants."""
    whole = np.full((2 * len(matrix), matrix.shape[1]), 1e30)
    whole[1::2] = matrix
    stored = form(whole)
    base = SparseDesign(stored) if sp.issparse(stored) else DenseDesign(stored)
    return RowView(base, np.arange(1, len(whole), 2))


def _chunked(data: Any, rows: int) -> ChunkedDesign:
    """Data read in chunks of so many rows."""
    source = Arrays(data, None, None, None, "data")
    return scanned(Dataset(source, rows), lambda chunk: chunk).design


class InlinePlacement(Placement):
    """Blocks in memory, of which every second one is on another worker."""

    def __init__(self, blocks: list[Any]) -> None:
        self._blocks = blocks
        numbers = (range(0, len(blocks), 2), range(1, len(blocks), 2))
        self._groups = [Group("here", tuple(each), None) for each in numbers if each]

    def answers(self, function: Any, asked: Any, combine: Any) -> Any:
        found = [
            function([self._blocks[k] for k in group.numbers], asked(group.numbers), group.anchor)
            for group in self.groups
        ]
        nodes = merged(combine, [node for _, each in found for node in each])
        rows = [each for each, _ in found]
        small = reduce(combine, [node.small for node in nodes]) if nodes else ()
        return list(zip(self.groups, rows, strict=True)), small


def _in_blocks(data: Any, rows: int) -> DaskDesign:
    """Blocks of so many rows, as on the workers of a cluster."""
    blocks = [data[k : k + rows] for k in range(0, data.shape[0], rows)]
    return DaskDesign(InlinePlacement(blocks), [facts_of(each, np.inf) for each in blocks])


def _shared(blocks: BlockedDesign) -> SharedBlocks:
    """Blocks as one of several fits sees them, where it is the last one left."""
    meeting = SharedPasses(blocks, 1)
    meeting._own.compiled = compiling.seconds
    return SharedBlocks(blocks, meeting, 0)


def _moved(base: Design) -> StandardizedDesign:
    """Features in other units, which standardising undoes."""
    p = base.n_features
    return StandardizedDesign(base, np.linspace(-1.0, 2.0, p), np.linspace(1.0, 3.0, p))


# data as users hold them, from a small matrix of integers (so that every type holds it exactly)
DENSE_DATA: dict[str, Callable[[np.ndarray], Any]] = {
    "C order": lambda m: np.ascontiguousarray(m, dtype=float),
    "F order": lambda m: np.asfortranarray(m, dtype=float),
    "strided": lambda m: _strided(m.astype(float)),
    "rows backwards": lambda m: m.astype(float)[::-1].copy()[::-1],
    "float32, C order": lambda m: np.ascontiguousarray(m, dtype=np.float32),
    "float32, F order": lambda m: np.asfortranarray(m, dtype=np.float32),
    "int64": lambda m: m.astype(np.int64),
    "int8, F order": lambda m: np.asfortranarray(m, dtype=np.int8),
    "read-only": lambda m: _read_only(m.astype(float)),
}
SPARSE_DATA: dict[str, Callable[[np.ndarray], Any]] = {
    "CSR": lambda m: sp.csr_matrix(m.astype(float)),
    "CSC": lambda m: sp.csc_matrix(m.astype(float)),
    "CSR array": lambda m: sp.csr_array(m.astype(float)),
    "CSR, float32": lambda m: sp.csr_matrix(m.astype(np.float32)),
    "CSC, float32": lambda m: sp.csc_matrix(m.astype(np.float32)),
    "CSR, int64 indices": lambda m: _long_indices(sp.csr_matrix(m.astype(float))),
    "CSC, int64 indices": lambda m: _long_indices(sp.csc_matrix(m.astype(float))),
}
DESIGNS: dict[str, Callable[[np.ndarray], Design]] = {
    **{k: (lambda m, f=f: DenseDesign(f(m))) for k, f in DENSE_DATA.items()},
    **{k: (lambda m, f=f: SparseDesign(f(m))) for k, f in SPARSE_DATA.items()},
    "rows, C order": lambda m: _among_others(m, np.ascontiguousarray),
    "rows, F order": lambda m: _among_others(m, np.asfortranarray),
    "rows of CSR": lambda m: _among_others(m, sp.csr_matrix),
    "rows of CSC": lambda m: _among_others(m, sp.csc_matrix),
    "standardized rows": lambda m: _standardized(_among_others(m, np.ascontiguousarray)),
    "chunks of one row": lambda m: _chunked(m.astype(float), 1),
    "chunks of five rows, float32": lambda m: _chunked(m.astype(np.float32), 5),
    "chunks of all rows": lambda m: _chunked(m.astype(float), 1000),
    "chunks of CSR": lambda m: _chunked(sp.csr_matrix(m.astype(float)), 4),
    "columns of chunks": lambda m: _chunked(np.hstack([m, 1.0 - m, m]).astype(float), 4).columns(
        np.arange(m.shape[1])
    ),
    "blocks elsewhere": lambda m: _in_blocks(m.astype(float), 2),
    "blocks elsewhere, CSR": lambda m: _in_blocks(sp.csr_matrix(m.astype(float)), 4),
    "standardized blocks elsewhere": lambda m: _standardized(_in_blocks(m.astype(float), 3)),
    "shared chunks": lambda m: _shared(_chunked(m.astype(float), 3)),
    "standardized shared chunks": lambda m: _standardized(_shared(_chunked(m.astype(float), 3))),
    "device": lambda m: DeviceDesign(m.astype(float), np),
    "device, float32": lambda m: DeviceDesign(m.astype(np.float32), np),
    "standardized device": lambda m: _standardized(DeviceDesign(m.astype(float), np)),
    "block of a device": lambda m: DeviceBlock(m.astype(float), np),
    "standardized chunks": lambda m: _standardized(_chunked(m.astype(float), 3)),
    "standardized chunks of CSR": lambda m: _standardized(
        _chunked(sp.csr_matrix(m.astype(float)), 3)
    ),
    "standardized, C order": lambda m: _standardized(DenseDesign(m.astype(float))),
    "standardized, F order": lambda m: _standardized(
        DenseDesign(np.asfortranarray(m, dtype=float))
    ),
    "standardized, float32": lambda m: _standardized(DenseDesign(m.astype(np.float32))),
    "standardized CSR": lambda m: _standardized(SparseDesign(sp.csr_matrix(m.astype(float)))),
    "standardized CSC": lambda m: _standardized(SparseDesign(sp.csc_matrix(m.astype(float)))),
    "standardized, in other units": lambda m: _standardized(_moved(DenseDesign(m.astype(float)))),
    "standardized CSR, in other units": lambda m: _standardized(
        _moved(SparseDesign(sp.csr_matrix(m.astype(float))))
    ),
}


def small_matrix(rng: np.random.Generator, n: int = 14, p: int = 6) -> np.ndarray:
    """Small integers, half of them zero, with a constant and an all-zero column."""
    matrix = rng.integers(-5, 6, (n, p)) * (rng.random((n, p)) < 0.5)
    matrix[:, 1] = 3
    matrix[:, 2] = 0
    return matrix


def as_seen(name: str, matrix: np.ndarray) -> np.ndarray:
    """The dense float64 matrix that the design called ``name`` stands for."""
    matrix = matrix.astype(float)
    if not name.startswith("standardized"):
        return matrix
    scale = matrix.std(axis=0)
    return (matrix - matrix.mean(axis=0)) / np.where(scale == 0, 1.0, scale)
