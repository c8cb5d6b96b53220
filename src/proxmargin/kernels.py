"""Kernels: positive semidefinite functions of two samples.

The definitions are scikit-learn's. Everything is computed in float64 whatever the precision of
the data, tile by tile, so that neither a converted nor a dense copy of the data is ever held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from proxmargin.compiled.kernels import sparse_products
from proxmargin.compiled.products import centred_squares

__all__ = [
    "Custom",
    "Kernel",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Rbf",
    "Sigmoid",
    "by_columns",
    "by_rows",
    "named_kernel",
    "resolve_gamma",
]

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Tile = tuple[slice, slice, Array]

# a tile of kernel values: a megabyte, which stays in a core's cache
TILE_ROWS, TILE_COLUMNS = 128, 1024
# samples behind the centre of the distances: any point amid the data will do
CENTRE_SAMPLES = 256
# samples of a function's diagonal computed at a time: a small square for each small piece of it
FUNCTION_ROWS = 8
# entries converted to float64 at a time
BLOCK = 1 << 16


class Kernel(ABC):
    """A symmetric function of two samples."""

    @property
    @abstractmethod
    def is_definite(self) -> bool:
        """Known to be positive semidefinite on any data."""

    def __call__(self, left: Any, right: Any, out: Array | None = None) -> Array:
        """Values at all pairs of rows.

        Parameters
        ----------
        left : (n_left, n_features), dense or sparse
        right : (n_right, n_features), dense or sparse
        out : (n_left, n_right), optional
            Where to write them: large new arrays cost as much as the values.

        Returns
        -------
        (n_left, n_right)

        Raises
        ------
        ValueError
            If the numbers of features differ.
        """
        values = np.empty((left.shape[0], right.shape[0])) if out is None else out
        self.fill(left, right, values)
        return values

    @abstractmethod
    def fill(self, left: Any, right: Any, out: Array) -> None:
        """Write the values at all pairs of rows into ``out``."""

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """The kernel of every row of ``X`` with itself, (n_samples,)."""

    def rounding(self, X: Any) -> float:
        """Relative error of the largest values on ``X``, in units of the last place."""
        return 1.0

    def mean_rounding(self, X: Any) -> float:
        """Error of a value on ``X`` on average, in units of the last place of the largest.

        What certificates allow for: a product sums over all values. It is estimated from some
        pairs, and at least one.
        """
        return 1.0

    def roundings(self, X: Any) -> Array:
        """That of the value of each pair of samples, (n_samples, n_samples)."""
        return np.ones((X.shape[0], X.shape[0]))

    def anchors(self, X: Any, index: Index) -> Any:
        """What predictions need of the training samples ``index``: the right of a later call."""
        return X[index]


class ProductKernel(Kernel):
    """A kernel that is a function of inner products."""

    def fill(self, left: Any, right: Any, out: Array) -> None:
        left, right = _compressed(left), _compressed(right)
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                f"the samples have {left.shape[1]} and {right.shape[1]} features; a kernel "
                "compares samples with the same features"
            )
        for rows, columns, tile in self.tiles(left, right):
            self.transform(tile, out[rows, columns])

    def diagonal(self, X: Any) -> Array:
        values = row_squares(_compressed(X))
        self.transform(values, values)
        return values

    def tiles(self, left: Any, right: Any) -> Iterator[Tile]:
        """What `transform` wants of each pair, tile by tile: inner products."""
        return inner_products(left, right)

    @abstractmethod
    def transform(self, tile: Array, out: Array) -> None:
        """Write the kernel values into ``out``; ``tile`` may be overwritten."""


@dataclass(frozen=True)
class Linear(ProductKernel):
    """``<x, z>``"""

    is_definite = True

    def transform(self, tile: Array, out: Array) -> None:
        out[...] = tile


@dataclass(frozen=True)
class Rbf(ProductKernel):
    """``exp(-gamma |x - z|^2)``

    Parameters
    ----------
    gamma : float > 0
    """

    gamma: float

    is_definite = True

    def __post_init__(self) -> None:
        _check_gamma(self.gamma)

    def tiles(self, left: Any, right: Any) -> Iterator[Tile]:
        return squared_distances(left, right)

    def transform(self, tile: Array, out: Array) -> None:
        # what rounding makes negative is as small as what it hides: this is faster than a maximum
        np.abs(tile, out=tile)
        np.multiply(tile, -self.gamma, out=tile)
        np.exp(tile, out=out)

    def diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def rounding(self, X: Any) -> float:
        """Distances are differences of squares, whose rounding the exponential passes on."""
        spread = _compressed(X)
        largest = row_squares(spread, _centre(spread)).max(initial=0.0)
        return max(1.0, self.gamma * float(largest))

    def mean_rounding(self, X: Any) -> float:
        """``exp(-gamma d)`` passes on what d lost, some last places of ``|x|^2 + |z|^2``.

        Values near zero, those of samples far apart, have nothing left to lose.
        """
        lost = self.roundings(X[:: max(1, X.shape[0] // CENTRE_SAMPLES)])
        return max(1.0, float(lost.sum()) / max(len(lost), 1) ** 2)

    def roundings(self, X: Any) -> Array:
        sample = _compressed(X)
        squares = row_squares(sample, _centre(sample))
        last_place, number = float(np.finfo(float).eps), np.arange(sample.shape[0])
        lost = np.empty((number.size, number.size))
        for rows, columns, tile in self.tiles(sample, sample):
            distances = np.abs(tile)
            error = last_place * (squares[rows, None] + squares[columns])
            most = np.exp(-self.gamma * np.maximum(distances - error, 0.0))
            change = -np.expm1(-self.gamma * np.minimum(2.0 * error, distances + error)) * most
            change[number[rows, None] == number[columns]] = 0.0  # the diagonal is exact
            lost[rows, columns] = 0.5 * change / last_place
        return lost


@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """``(gamma <x, z> + coef0)^degree``

    Parameters
    ----------
    degree : int >= 0
    gamma : float > 0
    coef0 : float
        Positive semidefiniteness is certain only where it is not negative.
    """

    degree: int
    gamma: float
    coef0: float

    def __post_init__(self) -> None:
        _check_gamma(self.gamma)
        _check_coef0(self.coef0)
        if not isinstance(self.degree, Integral) or self.degree < 0:
            raise ValueError(
                f"the degree of a polynomial kernel is a whole number >= 0, not {self.degree!r}"
            )

    @property
    def is_definite(self) -> bool:
        return self.coef0 >= 0

    def transform(self, tile: Array, out: Array) -> None:
        np.multiply(tile, self.gamma, out=tile)
        np.add(tile, self.coef0, out=tile)
        out[...] = _whole_power(tile, int(self.degree))


@dataclass(frozen=True)
class Sigmoid(ProductKernel):
    """``tanh(gamma <x, z> + coef0)``: not positive semidefinite on most data.

    Parameters
    ----------
    gamma : float > 0
    coef0 : float
    """

    gamma: float
    coef0: float

    is_definite = False

    def __post_init__(self) -> None:
        _check_gamma(self.gamma)
        _check_coef0(self.coef0)

    def transform(self, tile: Array, out: Array) -> None:
        np.multiply(tile, self.gamma, out=tile)
        np.add(tile, self.coef0, out=tile)
        np.tanh(tile, out=out)


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel given as a function of two sets of samples.

    Parameters
    ----------
    function : callable
        ``function(left, right)`` returns the (n_left, n_right) values; it is called with blocks
        of rows of the data as they are, so a value may depend on its own two rows only.
    """

    function: Callable[[Any, Any], Any]

    is_definite = False

    def fill(self, left: Any, right: Any, out: Array) -> None:
        """See `Kernel`.

        Raises
        ------
        ValueError
            If the function returns another shape, or values that are not finite real numbers.
        """
        values = self.function(left, right)
        dense = np.asarray(values.toarray() if _is_sparse(values) else values)
        expected = (left.shape[0], right.shape[0])
        if dense.shape != expected:
            raise ValueError(
                f"the kernel function returned shape {dense.shape} for {expected[0]} and "
                f"{expected[1]} samples; it should return {expected}"
            )
        if dense.dtype.kind not in "fiub" or not np.isfinite(dense).all():
            raise ValueError("the kernel function returned values that are not finite numbers")
        out[...] = dense

    def diagonal(self, X: Any) -> Array:
        step = FUNCTION_ROWS
        blocks = [X[start : start + step] for start in range(0, X.shape[0], step)]
        return np.concatenate([np.diagonal(self(block, block)) for block in blocks])


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Values that were computed beforehand: the data are the kernel matrix itself.

    For training the data are the square matrix, for predictions (n_test, n_train); the training
    samples on the right of a call are given by their numbers.
    """

    is_definite = False

    def fill(self, left: Any, right: Any, out: Array) -> None:
        """``left[:, right]``

        Parameters
        ----------
        left : (n_left, n_train)
        right : (n_right,) int
            Training samples.
        """
        out[...] = np.asarray(left)[:, right]

    def diagonal(self, X: Any) -> Array:
        return np.diagonal(X).astype(np.float64)

    def anchors(self, X: Any, index: Index) -> Any:
        """The numbers of the samples: no data need to be kept."""
        return np.asarray(index)


def resolve_gamma(gamma: str | float, X: Any) -> float:
    """The number behind ``gamma``, by scikit-learn's rules.

    Parameters
    ----------
    gamma : 'scale', 'auto' or float > 0
        ``1 / (n_features var(X))`` with the variance of all entries (1 where that is zero), or
        ``1 / n_features``.
    X : (n_samples, n_features), dense or sparse

    Raises
    ------
    ValueError
        For anything else.
    """
    if isinstance(gamma, str):
        rules: dict[str, Callable[[Any], float]] = {"scale": _scale, "auto": _auto}
        if gamma not in rules:
            raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {gamma!r}")
        return rules[gamma](X)
    _check_gamma(gamma)
    return float(gamma)


def named_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: str | float,
    degree: int,
    coef0: float,
    X: Any,
) -> Kernel:
    """The kernel of a name and its parameters, or of a function.

    Parameters
    ----------
    kernel : 'linear', 'rbf', 'poly', 'sigmoid', 'precomputed', callable or Kernel
    gamma, degree, coef0
        Read only by the kernels that have them.
    X : (n_samples, n_features)
        The training data, for the rules behind ``gamma``.

    Raises
    ------
    ValueError
        For an unknown name, or a parameter outside its range.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Custom(kernel)
    builders: dict[str, Callable[[], Kernel]] = {
        "linear": Linear,
        "rbf": lambda: Rbf(resolve_gamma(gamma, X)),
        "poly": lambda: Polynomial(degree, resolve_gamma(gamma, X), coef0),
        "sigmoid": lambda: Sigmoid(resolve_gamma(gamma, X), coef0),
        "precomputed": Precomputed,
    }
    if not isinstance(kernel, str) or kernel not in builders:
        names = ", ".join(repr(name) for name in builders)
        raise ValueError(f"kernel is one of {names} or a function, not {kernel!r}")
    return builders[kernel]()


def by_columns(X: Any) -> Any:
    """``X`` as the right of many calls: sparse data compressed by columns."""
    return _compressed(X).tocsc() if _is_sparse(X) else X


def by_rows(X: Any) -> Any:
    """``X`` with rows that can be picked cheaply: sparse data compressed by rows.

    Only data in other sparse formats are copied.
    """
    return _compressed(X).tocsr() if _is_sparse(X) else X


def inner_products(left: Any, right: Any) -> Iterator[Tile]:
    """Tiles ``(rows, columns, <left_i, right_j>)``; a tile is overwritten by the next.

    Parameters
    ----------
    left, right : (n, n_features)
        Dense, or sparse and without duplicate entries.
    """
    if _is_sparse(right):
        yield from _sparse_products(left, right)
    elif _is_sparse(left):
        for columns, rows, tile in _sparse_products(right, left):
            yield rows, columns, tile.T
    else:
        for rows, lines in _dense_rows(left, TILE_ROWS):
            for columns, others in _dense_rows(right, TILE_COLUMNS):
                yield rows, columns, lines @ others.T


def squared_distances(left: Any, right: Any) -> Iterator[Tile]:
    """Tiles ``(rows, columns, |left_i - right_j|^2)``, negative by rounding at worst.

    Dense samples are measured from a point amid ``right``: then a common offset costs no digits.
    """
    if _is_sparse(left) or _is_sparse(right):
        lefts, rights = row_squares(left), row_squares(right)
        for rows, columns, tile in inner_products(left, right):
            np.multiply(tile, -2.0, out=tile)
            tile += lefts[rows, None]
            tile += rights[columns]
            yield rows, columns, tile
        return
    centre = _centre(right)
    for rows, lines in _dense_rows(left, TILE_ROWS):
        # [-2 x, |x|^2, 1] [z, 1, |z|^2]' = |x - z|^2: the squares ride along in the product
        x = np.empty((len(lines), left.shape[1] + 2))
        np.subtract(lines, centre, out=x[:, :-2])
        x[:, -2] = np.einsum("ij,ij->i", x[:, :-2], x[:, :-2])
        x[:, -1] = 1.0
        x[:, :-2] *= -2.0
        for columns, others in _dense_rows(right, TILE_COLUMNS):
            z = np.empty((len(others), right.shape[1] + 2))
            np.subtract(others, centre, out=z[:, :-2])
            z[:, -1] = np.einsum("ij,ij->i", z[:, :-2], z[:, :-2])
            z[:, -2] = 1.0
            yield rows, columns, x @ z.T


def row_squares(X: Any, centre: Any = 0.0) -> Array:
    """``|x_i - centre|^2`` of every row, (n_samples,); sparse data are not centred."""
    n, p = X.shape
    if _is_sparse(X):
        parts = (X.data, X.indices, X.indptr, np.ones(p), np.zeros(p))
        squares: Array = centred_squares(*parts, X.format == "csr", True, n)
        return squares
    out = np.empty(n)
    for rows, lines in _dense_rows(X, max(1, BLOCK // max(p, 1))):
        out[rows] = np.square(lines - centre).sum(axis=1)
    return out


def _centre(X: Any) -> Any:
    """A point amid dense samples, (n_features,); the origin for sparse ones."""
    if _is_sparse(X) or not X.shape[0]:
        return 0.0
    return X[:: max(1, X.shape[0] // CENTRE_SAMPLES)].mean(axis=0, dtype=np.float64)


def _dense_rows(X: NDArray[Any], step: int) -> Iterator[tuple[slice, Array]]:
    """Slices of ``step`` rows, as float64."""
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield rows, X[rows].astype(np.float64, copy=False)


def _sparse_products(left: Any, right: Any) -> Iterator[Tile]:
    """`inner_products` for sparse ``right``, compressed by columns for it if it is not."""
    columns, n = right.tocsc(), right.shape[0]
    rows_left = left.tocsr() if _is_sparse(left) else left
    step = max(1, TILE_ROWS * TILE_COLUMNS // max(n, 1))
    for start in range(0, left.shape[0], step):
        rows = slice(start, min(start + step, left.shape[0]))
        lines = csr_array(rows_left[rows])
        tile = np.empty((lines.shape[0], n))
        parts = (columns.data, columns.indices, columns.indptr)
        sparse_products(lines.data, lines.indices, lines.indptr, *parts, tile)
        yield rows, slice(0, n), tile


def _compressed(X: Any) -> Any:
    """Dense data as they are; sparse data as CSR or CSC without duplicate entries."""
    if not _is_sparse(X):
        return X
    compressed = X if X.format in ("csr", "csc") else X.tocsr()
    if not compressed.has_canonical_format:
        compressed = compressed.copy()  # the user's matrix stays as it is
        compressed.sum_duplicates()
    return compressed


def _is_sparse(X: Any) -> bool:
    return bool(issparse(X))


def _whole_power(base: Array, degree: int) -> Array:
    """``base^degree`` by repeated squaring: a hundred times faster than a general power."""
    power = np.ones_like(base) if degree % 2 == 0 else base.copy()
    while degree > 1:
        degree //= 2
        base = base * base
        if degree % 2:
            power *= base
    return power


def _scale(X: Any) -> float:
    variance = _variance(X)
    return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0


def _auto(X: Any) -> float:
    return 1.0 / X.shape[1]


def _variance(X: Any) -> float:
    """The population variance of all entries, those not stored included."""
    X = _compressed(X)
    size = X.shape[0] * X.shape[1]
    stored = X.data[:, None] if _is_sparse(X) else X
    step = max(1, BLOCK // max(stored.shape[1], 1))
    mean = sum(float(block.sum()) for _, block in _dense_rows(stored, step)) / size
    squares = sum(float(((block - mean) ** 2).sum()) for _, block in _dense_rows(stored, step))
    return (squares + (size - stored.size) * mean**2) / size


def _check_gamma(gamma: Any) -> None:
    if not isinstance(gamma, Real) or not (isfinite(gamma) and float(gamma) > 0):
        raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {gamma!r}")


def _check_coef0(coef0: Any) -> None:
    if not isinstance(coef0, Real) or not isfinite(coef0):
        raise ValueError(f"coef0 is a finite number, not {coef0!r}")
