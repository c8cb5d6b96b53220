"""Arrays on a device: products are computed there, vectors travel, data never do."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.compiled.products.compensated import SPLIT
from proxmargin.compiled.rounding import Enclosed, compensated_error
from proxmargin.data.designs.base import Design, PassCounter
from proxmargin.data.designs.blocks import tasks
from proxmargin.data.designs.blocks.base import BlockedDesign
from proxmargin.data.designs.blocks.tasks import Answer, Arrays, Combine, Task
from proxmargin.data.designs.samples import Entry, sentence
from proxmargin.runtime.optional import library_of
from proxmargin.runtime.types import Array, Index, Values

DEVICES = frozenset({"cupy", "cupyx", "torch", "array_api_strict", "jax", "jaxlib", "dpnp"})
TO_SCIPY = {  # what to type where a sparse matrix is on a device
    "cupyx": "X.get()",
    "jax": "scipy.sparse.csr_array(X.todense())",
    "torch": "csr = X.cpu().to_sparse_csr(); X = scipy.sparse.csr_array((csr.values(), "
    "csr.col_indices(), csr.crow_indices()), shape=csr.shape)",
}
BLOCK_ENTRIES = 1 << 24  # entries converted to float64 on the device at a time: 128 MB


def on_host(values: ArrayLike) -> Values:
    """A device array, or any other, in memory."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "iloc"):  # the get of pandas is another one
        return np.asarray(values)
    for move in ("get", "cpu"):  # CuPy; PyTorch
        if hasattr(values, move):
            here = getattr(values, move)()
            return np.asarray(here.numpy() if hasattr(here, "numpy") else here)
    return np.asarray(values)


def namespace_of(X: Values) -> ModuleType:
    """The array-API namespace of an array, by the layer that scikit-learn brings along."""
    try:
        from sklearn.externals.array_api_compat import array_namespace
    except ImportError:  # older versions of scikit-learn
        return X.__array_namespace__()
    return array_namespace(X)


def in_memory(values: Any) -> Any:
    """A device array in memory; anything else as it is."""
    if library_of(values) not in DEVICES:
        return values
    _require_dense(values)
    return on_host(values)


def _require_dense(values: Any) -> None:
    """Raise ValueError for a sparse matrix on a device."""
    layout = str(getattr(values, "layout", ""))  # of PyTorch, where all are of one class
    if "sparse" in layout or hasattr(values, "todense"):
        raise ValueError(
            f"sparse matrices are read in memory, not on a device ({layout or type(values)}): give "
            f"a CSR matrix of SciPy, {TO_SCIPY.get(library_of(values), 'scipy.sparse.csr_array')}"
        )


class DeviceBlock(Design):
    """Some rows of a device array of the array-API namespace ``xp``. Products are in float64, a
    block of rows at a time."""

    passes_only = True
    has_columns = False

    def __init__(self, X: Values, xp: ModuleType, counter: PassCounter | None = None) -> None:
        n, p = (int(size) for size in X.shape)
        super().__init__(n, p, n * p * (4 if X.dtype == xp.float32 else 8), counter=counter)
        self.X, self.xp = X, xp

    def scores(self, coef: Array) -> Array:
        right = self._there(coef)
        parts = [on_host(X @ right) for X, _ in self._blocks()]
        return np.concatenate([np.zeros((0, coef.shape[1])), *parts])

    def adjoint(self, dual: Array) -> Array:
        total = np.zeros((self.n_features, dual.shape[1]))
        for X, part in self._blocks():
            total += on_host(X.T @ self._there(dual[part]))
        return total

    def row_squares(self, weights: Array, centre: Array) -> Array:
        right, middle = self._there(weights[:, None]), self._there(centre)
        parts = [on_host((X - middle) ** 2 @ right)[:, 0] for X, _ in self._blocks()]
        return np.concatenate([np.zeros(0), *parts])

    def column_squares(self, weights: Array, centre: Array) -> Array:
        total, middle = np.zeros(self.n_features), self._there(centre)
        for X, part in self._blocks():
            total += on_host(((X - middle) ** 2).T @ self._there(weights[part][:, None]))[:, 0]
        return total

    def largest(self) -> Array:
        total = np.zeros(self.n_features)
        for X, _ in self._blocks():
            total = np.maximum(total, on_host(self.xp.max(self.xp.abs(X), axis=0)))
        return total

    def gram(self, weights: Array, centre: Array) -> Array:
        total, middle = np.zeros((self.n_features, self.n_features)), self._there(centre)
        for X, part in self._blocks():
            moved = (X - middle) * self._there(np.sqrt(weights[part])[:, None])
            total += on_host(moved.T @ moved)
        return total

    def precise_scores(self, coef: Array, intercept: Array) -> Enclosed:
        parts = zip(*(self._precise(X.T, coef) for X, _ in self._blocks()), strict=True)
        values, sizes = (np.concatenate([part.T for part in each]) for each in parts)
        return Enclosed(values, compensated_error(values, sizes, len(coef)), sizes).plus(intercept)

    def precise_adjoint(self, dual: Array) -> Enclosed:
        total: Arrays | None = None
        for X, part in self._blocks():
            values, sizes = (each.T for each in self._precise(X, dual[part]))
            error = compensated_error(values, sizes, part.stop - part.start)
            more = (values, np.zeros_like(values), error, sizes)
            total = more if total is None else tasks.added_precisely(total, more)
        assert total is not None
        return tasks.total_of(total, -(-self.n_samples // self._rows_at_once))

    def _precise(self, lines: Values, right: Array) -> tuple[Array, Array]:
        """``right.T @ lines`` by compensated sums, with the sums of absolute products. Each array
        operation rounds by itself, so that the error of a product is known by splitting its factors
        (Dekker 1971), and that of a sum by Knuth (1998), 4.2.2, theorem B."""
        values, sizes = [], []
        join = getattr(self.xp, "concat", None) or self.xp.concatenate  # NumPy before 2
        for k in range(right.shape[1]):
            column = self._there(right[:, k : k + 1])
            high = lines * column
            low = _product_error(lines, column, high)
            size = self.xp.sum(self.xp.abs(high), axis=0)
            while high.shape[0] > 1:
                half = high.shape[0] // 2
                first, second, odd = high[:half, :], high[half : 2 * half, :], high[2 * half :, :]
                total = first + second
                back = total - second
                lost = (first - back) + (second - (total - back))
                low = join(
                    [low[:half, :] + low[half : 2 * half, :] + lost, low[2 * half :, :]], axis=0
                )
                high = join([total, odd], axis=0)
            values.append(on_host(high[0, :] + low[0, :]))
            sizes.append(on_host(size))
        return np.array(values), np.array(sizes)

    def dense_columns(self, index: Index, order: Any = "F") -> Array:
        picked = self.scores(np.eye(self.n_features)[:, index])
        return np.asarray(picked, order=order)

    def _columns(self, index: Index) -> Design:
        picked = self.xp.take(self.X, self._numbers(index), axis=1)
        return DeviceBlock(picked, self.xp, self.counter)

    def _rows(self, index: Index) -> DeviceBlock:
        picked = self.xp.take(self.X, self._numbers(index), axis=0)
        return DeviceBlock(picked, self.xp, self.counter)

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        X = self._wide(self.X) - self._there(centre)
        return np.array(on_host((X * self._there(weights)) @ X.T))

    def sweep_data(self) -> tuple[Values, ...]:
        raise ValueError("data on a device have no columns that can be read cheaply")

    @property
    def _rows_at_once(self) -> int:
        return max(1, BLOCK_ENTRIES // max(self.n_features, 1))

    def _blocks(self) -> Any:
        """Blocks of rows in float64, on the device."""
        rows = self._rows_at_once
        for start in range(0, self.n_samples, rows):
            part = slice(start, min(start + rows, self.n_samples))
            yield self._wide(self.X[part, :]), part

    def _wide(self, X: Values) -> Values:
        """``X`` in float64."""
        return self.xp.asarray(X, dtype=self.xp.float64)

    def _there(self, values: Array) -> Values:
        """A vector or small matrix on the device."""
        return self._moved(np.ascontiguousarray(values))

    def _numbers(self, index: Index) -> Values:
        return self._moved(np.asarray(index, dtype=np.int64))

    def _moved(self, values: Values) -> Any:
        if isinstance(self.X, np.ndarray):
            return values
        return self.xp.asarray(values, device=self.X.device)


class DeviceDesign(BlockedDesign):
    """The rows of an array on a device, float32 or float64, in one block."""

    def __init__(self, X: Values, xp: ModuleType) -> None:
        self.block = DeviceBlock(X, xp)
        n, p = self.block.n_samples, self.block.n_features
        super().__init__(n, p, self.block.nbytes, 1.0, 1, n)

    @classmethod
    def checked(cls, X: Any, most: float) -> DeviceDesign:
        """The design; raises ValueError for data that are not finite numbers of modest size."""
        _require_dense(X)
        if getattr(X, "ndim", 2) != 2:
            raise ValueError(f"X must have rows and columns, got an array of shape {X.shape}")
        if str(X.dtype).rpartition(".")[2] not in ("float32", "float64"):
            raise ValueError(
                f"X must hold float32 or float64 on its device, got {X.dtype}{_converted(X)}"
            )
        if 0 in tuple(X.shape):
            raise ValueError(f"X has no rows or no features: its shape is {tuple(X.shape)}")
        xp: Any = namespace_of(X)
        if _accumulator(X, xp) != xp.float64:
            raise ValueError(
                "X is on a device that computes in float32, where no certificate holds: choose "
                "another device (of JAX: jax.config.update('jax_enable_x64', True))"
            )
        design = cls(X, xp)
        entries = np.array([float(xp.min(X)), float(xp.max(X))])
        if not np.all(np.abs(entries) <= most):
            raise ValueError(sentence(_first_bad(design.block, most), most))
        return design

    def run(
        self, task: Task, shared: Arrays = (), cut: Arrays = (), combine: Combine = tasks.added
    ) -> Answer:
        self.counter.add(1.0)
        return task(self.block, shared, cut)

    def _outer_gram(self, weights: Array, centre: Array) -> Array:
        self.counter.add(1.0)
        return self.block._outer_gram(weights, centre)

    def _rows(self, index: Index) -> Design:
        self.counter.add(index.size / self.n_samples)
        return DeviceDesign(self.block._rows(index).X, self.block.xp)


def _converted(X: Any) -> str:
    """What to type for real numbers of another type, by the library of the array."""
    if "complex" in str(X.dtype):
        return ""
    kind = "float32" if "float16" in str(X.dtype) else "float64"  # or integers would be rounded
    is_tensor = library_of(X) == "torch"
    return f": give X.to(torch.{kind})" if is_tensor else f": give X.astype('{kind}')"


def _product_error(left: Values, right: Values, product: Values) -> Values:
    """``left right - product`` without rounding (Dekker 1971), for factors below 1e140."""
    halves = []
    for factor in (left, right):
        scaled = SPLIT * factor
        high = scaled - (scaled - factor)
        halves.append((high, factor - high))
    (a, b), (c, d) = halves
    return b * d - (((product - a * c) - b * c) - a * d)


def _first_bad(block: DeviceBlock, most: float) -> Entry:
    for X, part in block._blocks():
        bad = on_host(~(block.xp.abs(X) <= most))
        if bad.any():
            row, column = (int(each) for each in np.argwhere(bad)[0])
            return Entry(part.start + row, column, float(X[row, column]))
    raise AssertionError("called without such an entry")


def _accumulator(X: Values, xp: ModuleType) -> object:
    """The type of sums on the device of X; some have no float64, or replace it silently."""
    try:
        return xp.astype(X[:1, :1], xp.float64).dtype
    except (TypeError, RuntimeError):
        return None
