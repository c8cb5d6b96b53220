"""Kernels: positive semidefinite functions of two samples.

The definitions are scikit-learn's. A kernel compares samples (`Kernel.fill`) with others that it
was shown before (`Kernel.others`) and has preprocessed.
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

from proxmargin.compiled.products.kernels import rbf_product
from proxmargin.designs.base import CONSTANT_VARIANCE, Design
from proxmargin.designs.convert import as_design
from proxmargin.designs.samples import (
    TILE_COLUMNS,
    TILE_ROWS,
    Others,
    Tile,
    about,
    amid,
    by_rows,
    compressed,
    dense_rows,
    inner_products,
    is_sparse,
    row_squares,
    squared_distances,
)
from proxmargin.rounding import UNIT, Lost, gamma

__all__ = [
    "Custom",
    "Kernel",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Rbf",
    "Sigmoid",
    "named_kernel",
    "resolve_gamma",
]

Array = NDArray[np.float64]
Index = NDArray[np.intp]

ROUNDING_SAMPLES = 256  # between which the rounding of distances is measured
FUNCTION_ULPS = 4.0  # error bound of exp, tanh and a few products
MAX_DIFFERENCES = 2_000_000_000  # squared differences of a product computed by them: some seconds
FUNCTION_ROWS = 8  # samples of a callable's diagonal computed at a time, as a square each


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
        self.fill(left, self.others(right), values)
        return values

    def others(self, X: Any) -> Any:
        """``X`` as the right of many calls of `fill`."""
        return X

    @abstractmethod
    def fill(self, left: Any, others: Any, out: Array) -> None:
        """Write the values of all rows of ``left`` with all `others` into ``out``."""

    def about(self, origin: Array) -> Kernel:
        """The kernel of ``x - origin`` and ``z - origin``, for sparse samples x and z."""
        return Centred(self, origin)

    @abstractmethod
    def diagonal(self, X: Any) -> Array:
        """The kernel of every row of ``X`` with itself, (n_samples,)."""

    def rounding(self, others: Any) -> float:
        """Relative error of the largest values between `others`, in units of the last place."""
        return 1.0

    def mean_rounding(self, X: Any) -> float:
        """Error of a value on ``X`` on average, in units of the last place of the largest.

        Estimated from some pairs, and at least one, to reject data whose kernel values have no
        correct digits. Certificates use `lost`, a bound.
        """
        return 1.0

    def lost(self, others: Any, diagonal: Array) -> Lost:
        """A bound on the rounding of the values between `others`.

        For an unknown function, a few ulps of the largest value that a pair can have.
        """
        return Lost(
            FUNCTION_ULPS * UNIT, np.sqrt(np.maximum(diagonal, 0.0)), np.zeros(diagonal.size)
        )

    def precisely(self, X: Any, index: Index, weights: Array) -> tuple[Array, Lost] | None:
        """The products of the values between all of X and the samples ``index`` with weights
        (n_index,), where they can be had with less rounding than the values alone; or None."""
        return None

    def anchors(self, X: Any, index: Index, numbers: Index | None = None) -> Any:
        """What predictions need of the training samples ``index``: the right of a later call.

        Parameters
        ----------
        X : (n_samples, n_features)
        index : (n_anchors,) int
        numbers : (n_samples,) int, optional
            Of these samples among all there were; by default their places.
        """
        return X[index]


class ProductKernel(Kernel):
    """A kernel that is a function of inner products."""

    def others(self, X: Any) -> Others:
        return about(X, np.zeros(X.shape[1]))

    def fill(self, left: Any, others: Others, out: Array) -> None:
        if left.shape[1] != others.shape[1]:
            raise ValueError(
                f"the samples have {left.shape[1]} and {others.shape[1]} features; a kernel "
                "compares samples with the same features"
            )
        for rows, columns, tile in self.tiles(left, others):
            self.transform(tile, out[rows, columns])

    def about(self, origin: Array) -> Kernel:
        return About(self, origin)

    def diagonal(self, X: Any) -> Array:
        values = row_squares(X)
        self.transform(values, values)
        return values

    def tiles(self, left: Any, others: Others) -> Iterator[Tile]:
        """What `transform` wants of each pair, tile by tile: inner products."""
        return inner_products(left, others)

    def lost(self, others: Any, diagonal: Array) -> Lost:
        lengths = np.sqrt(others.squares) + float(np.linalg.norm(others.rest))
        return self.lost_of(lengths, gamma(others.terms + 8))

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        """For inner products off by no more than ``relative`` times both lengths."""
        return Lost(relative, lengths, np.zeros(lengths.size))

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

    def others(self, X: Any) -> Others:
        return amid(X)

    def about(self, origin: Array) -> Kernel:
        """The kernel itself: it sees differences alone."""
        return self

    def tiles(self, left: Any, others: Others) -> Iterator[Tile]:
        return squared_distances(left, others)

    def transform(self, tile: Array, out: Array) -> None:
        # negative values are rounding: their absolute values are as accurate as zero, and faster
        np.abs(tile, out=tile)
        np.multiply(tile, -self.gamma, out=tile)
        np.exp(tile, out=out)

    def diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def rounding(self, others: Any) -> float:
        """Distances are differences of squares, whose rounding the exponential passes on."""
        return max(1.0, self.gamma * float(others.squares.max(initial=0.0)))

    def mean_rounding(self, X: Any) -> float:
        """``exp(-gamma d)`` passes on what d lost, some last places of ``|x|^2 + |z|^2``.

        The absolute error vanishes for samples far apart, whose values are close to zero.
        """
        sample = X[:: max(1, X.shape[0] // ROUNDING_SAMPLES)]
        others = self.others(sample)
        squares = row_squares(sample, others.point)
        last_place, lost, number = float(np.finfo(float).eps), 0.0, np.arange(sample.shape[0])
        for rows, columns, tile in self.tiles(sample, others):
            distances = np.abs(tile)
            error = last_place * (squares[rows, None] + squares[columns])
            most = np.exp(-self.gamma * np.maximum(distances - error, 0.0))
            change = -np.expm1(-self.gamma * np.minimum(2.0 * error, distances + error)) * most
            change[number[rows, None] == number[columns]] = 0.0  # the diagonal is exact
            lost += float(change.sum())
        return max(1.0, 0.5 * lost / last_place / max(number.size, 1) ** 2)

    def lost(self, others: Any, diagonal: Array) -> Lost:
        """``exp(-gamma d)`` passes on what d lost: sums of products of lengths about a point."""
        own = self.gamma * gamma(3 * others.terms + 12) * others.squares
        return Lost(FUNCTION_ULPS * UNIT, np.ones(own.size), np.minimum(own, 1.0))

    def precisely(self, X: Any, index: Index, weights: Array) -> tuple[Array, Lost] | None:
        """By differences of samples, which lose nothing that ``y exp(-y) <= 1 / e`` would pass on;
        of dense samples, where that does not take too long."""
        n, p = X.shape
        if is_sparse(X) or n * index.size * p > MAX_DIFFERENCES:
            return None
        out = np.empty(n)
        rbf_product(X, X[index], weights, self.gamma, out)
        relative = 0.4 * gamma(p + 4) + FUNCTION_ULPS * UNIT  # 1 / e < 0.4
        return out, Lost(relative, np.ones(n), np.zeros(n))


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

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        """``|v'^d - v^d| <= d |v' - v| max(|v|, |v'|)^(d-1)``, v no larger than two lengths of
        ``gamma |x|^2 + |coef0|``."""
        roots = np.sqrt(self.gamma * lengths**2 + abs(self.coef0)) ** int(self.degree)
        off = (int(self.degree) + 1) * (relative + FUNCTION_ULPS * UNIT)
        return Lost(off, roots, np.zeros(roots.size))

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

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        """The slope of tanh is at most one."""
        roots = np.sqrt(self.gamma * lengths**2 + abs(self.coef0))
        return Lost(
            relative + FUNCTION_ULPS * UNIT, roots, np.full(roots.size, FUNCTION_ULPS * UNIT)
        )

    def transform(self, tile: Array, out: Array) -> None:
        np.multiply(tile, self.gamma, out=tile)
        np.add(tile, self.coef0, out=tile)
        np.tanh(tile, out=out)


@dataclass(frozen=True, eq=False)
class About(ProductKernel):
    """A function of the inner products of samples less a point; sparse ones are not filled.

    Parameters
    ----------
    kernel : ProductKernel
        Of inner products.
    origin : (n_features,)
    """

    kernel: ProductKernel
    origin: Array

    @property
    def is_definite(self) -> bool:
        return self.kernel.is_definite

    def others(self, X: Any) -> Others:
        return about(X, self.origin)

    def diagonal(self, X: Any) -> Array:
        values = row_squares(X, self.origin)
        self.transform(values, values)
        return values

    def lost_of(self, lengths: Array, relative: float) -> Lost:
        return self.kernel.lost_of(lengths, relative)

    def transform(self, tile: Array, out: Array) -> None:
        self.kernel.transform(tile, out)


@dataclass(frozen=True, eq=False)
class Centred(Kernel):
    """Any kernel of samples less a point: it is shown dense blocks of them.

    Parameters
    ----------
    kernel : Kernel
    origin : (n_features,)
    """

    kernel: Kernel
    origin: Array

    @property
    def is_definite(self) -> bool:
        return self.kernel.is_definite

    def others(self, X: Any) -> Any:
        return by_rows(X)

    def fill(self, left: Any, others: Any, out: Array) -> None:
        for rows, lines in dense_rows(by_rows(left), TILE_ROWS):
            for columns, block in dense_rows(others, TILE_COLUMNS):
                self.kernel(lines - self.origin, block - self.origin, out[rows, columns])

    def diagonal(self, X: Any) -> Array:
        blocks = dense_rows(by_rows(X), TILE_ROWS)
        return np.concatenate([self.kernel.diagonal(lines - self.origin) for _, lines in blocks])


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

    def fill(self, left: Any, others: Any, out: Array) -> None:
        """See `Kernel`.

        Raises
        ------
        ValueError
            If the function returns another shape, or values that are not finite real numbers.
        """
        values = self.function(left, others)
        dense = np.asarray(values.toarray() if is_sparse(values) else values)
        expected = (left.shape[0], others.shape[0])
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

    def fill(self, left: Any, others: Any, out: Array) -> None:
        """``left[:, others]``

        Parameters
        ----------
        left : (n_left, n_train)
        others : (n_others,) int
            Training samples.
        """
        out[...] = np.asarray(left)[:, others]

    def diagonal(self, X: Any) -> Array:
        return np.diagonal(X).astype(np.float64)

    def anchors(self, X: Any, index: Index, numbers: Index | None = None) -> Any:
        """The numbers of the samples: no data need to be kept."""
        return np.asarray(index if numbers is None else numbers[index])


def resolve_gamma(gamma: str | float, X: Any, weights: Array | None = None) -> float:
    """The number behind ``gamma``, by scikit-learn's rules.

    Parameters
    ----------
    gamma : 'scale', 'auto' or float > 0
        ``1 / (n_features var(X))`` with the variance of all entries (1 where that is zero), or
        ``1 / n_features``.
    X : (n_samples, n_features), dense or sparse, or a `Design`
    weights : (n_samples,) >= 0, optional
        Of the samples: weight 2 is the same as a repeated row.

    Raises
    ------
    ValueError
        For anything else.
    """
    if isinstance(gamma, str):
        rules: dict[str, Callable[[Design, Array | None], float]] = {"scale": _scale, "auto": _auto}
        if gamma not in rules:
            raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {gamma!r}")
        return rules[gamma](as_design(compressed(X)), weights)
    _check_gamma(gamma)
    return float(gamma)


def named_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: str | float,
    degree: int,
    coef0: float,
    X: Any,
    weights: Array | None = None,
) -> Kernel:
    """The kernel of a name and its parameters, or of a function.

    Parameters
    ----------
    kernel : 'linear', 'rbf', 'poly', 'sigmoid', 'precomputed', callable or Kernel
    gamma, degree, coef0
        Read only by the kernels that have them.
    X : (n_samples, n_features), or a `Design`
        The training data, for the rules behind ``gamma``.
    weights : (n_samples,), optional
        Of the training samples, for the same.

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
        "rbf": lambda: Rbf(resolve_gamma(gamma, X, weights)),
        "poly": lambda: Polynomial(degree, resolve_gamma(gamma, X, weights), coef0),
        "sigmoid": lambda: Sigmoid(resolve_gamma(gamma, X, weights), coef0),
        "precomputed": Precomputed,
    }
    if not isinstance(kernel, str) or kernel not in builders:
        names = ", ".join(repr(name) for name in builders)
        raise ValueError(f"kernel is one of {names} or a function, not {kernel!r}")
    return builders[kernel]()


def _whole_power(base: Array, degree: int) -> Array:
    """``base^degree`` by repeated squaring: a hundred times faster than a general power."""
    power = np.ones_like(base) if degree % 2 == 0 else base.copy()
    while degree > 1:
        degree //= 2
        base = base * base
        if degree % 2:
            power *= base
    return power


def _scale(design: Design, weights: Array | None) -> float:
    given = np.ones(design.n_samples) if weights is None else weights
    mean, variance = _moments(design, given / given.sum())
    middle = float(mean.mean())
    spread = float((variance + (mean - middle) ** 2).mean())
    return 1.0 / (design.n_features * spread) if spread > CONSTANT_VARIANCE * middle**2 else 1.0


def _moments(design: Design, shares: Array) -> tuple[Array, Array]:
    """Mean and variance of each feature, (n_features,)."""
    mean = design.adjoint(shares[:, None])[:, 0]
    return mean, design.column_squares(shares, mean)


def _auto(design: Design, weights: Array | None) -> float:
    return 1.0 / design.n_features


def _check_gamma(gamma: Any) -> None:
    if not isinstance(gamma, Real) or not (isfinite(gamma) and float(gamma) > 0):
        raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {gamma!r}")


def _check_coef0(coef0: Any) -> None:
    if not isinstance(coef0, Real) or not isfinite(coef0):
        raise ValueError(f"coef0 is a finite number, not {coef0!r}")
