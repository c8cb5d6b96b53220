"""Kernels of inner products and distances, given values, functions of the user, and their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.products.kernels import gaussian, rbf_product
from proxmargin.compiled.rounding import CONSTANT_VARIANCE, EPS, UNIT, Lost, gamma
from proxmargin.data.designs.base import Design, as_design
from proxmargin.data.designs.samples import (
    FEW_SAMPLES,
    TILE_ROWS,
    Others,
    Tile,
    about,
    amid,
    compressed,
    dense_rows,
    is_sparse,
    row_squares,
    squared_distances,
)
from proxmargin.data.inputs.kinds import Features
from proxmargin.data.kernels.base import (
    FUNCTION_ULPS,
    Kernel,
    ProductKernel,
    check_coef0,
    check_gamma,
)
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Array, Index, Matrix, Values

LOSSY = 1e5  # ulps of a kernel value from which on predictions take differences
MAX_DIFFERENCES = 2_000_000_000  # squared differences of a product computed by them: some seconds


@dataclass(frozen=True)
class Linear(ProductKernel):
    """``<x, z>``"""

    is_definite = True

    def transform(self, tile: Array, out: Array) -> None:
        out[...] = tile


@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """``(gamma <x, z> + coef0)^degree``; certainly positive semidefinite only where ``coef0 >=
    0``."""

    degree: int
    gamma: float
    coef0: float

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_coef0(self.coef0)
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


def _whole_power(base: Array, degree: int) -> Array:
    """``base^degree`` by repeated squaring: a hundred times faster than a general power."""
    power = np.ones_like(base) if degree % 2 == 0 else base.copy()
    while degree > 1:
        degree //= 2
        base = base * base
        if degree % 2:
            power *= base
    return power


@dataclass(frozen=True)
class Sigmoid(ProductKernel):
    """``tanh(gamma <x, z> + coef0)``: not positive semidefinite on most data."""

    gamma: float
    coef0: float

    is_definite = False

    def __post_init__(self) -> None:
        check_gamma(self.gamma)
        check_coef0(self.coef0)

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


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Values that were computed beforehand: the data are the kernel matrix itself. For training the
    data are the square matrix, for predictions (n_test, n_train); the training samples on the right
    of a call are given by their numbers."""

    is_definite = False

    def fill(self, left: Values, others: Any, out: Array) -> None:
        """``left[:, others]``, for (n_left, n_train) values and the numbers of training samples."""
        out[...] = np.asarray(left)[:, others]

    def diagonal(self, X: Any) -> Array:
        return np.diagonal(X).astype(np.float64)

    def anchors(self, X: Features, index: Index, numbers: Index | None = None) -> Values:
        """The numbers of the samples: no data need to be kept."""
        return np.asarray(index if numbers is None else numbers[index])


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel given as a function of two sets of samples, which returns the (n_left, n_right)
    values; it is called with blocks of rows of the data, so a value may depend on its own two rows
    only."""

    function: Callable[[Any, Any], Any]

    is_definite = False
    is_portable = False

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
        step = 8  # samples of a square block, of which only the diagonal is used
        blocks = [X[start : start + step] for start in range(0, X.shape[0], step)]
        return np.concatenate([np.diagonal(self(block, block)) for block in blocks])


@dataclass(frozen=True)
class Rbf(ProductKernel):
    """``exp(-gamma |x - z|^2)``"""

    gamma: float

    is_definite = True
    is_strict = True

    def __post_init__(self) -> None:
        check_gamma(self.gamma)

    def others(self, X: Values) -> Others:
        return amid(X)

    def standardized(self, origin: Array | None = None) -> Kernel:
        """It sees differences alone, whatever the origin."""
        return StandardizedRbf(self.gamma)

    def tiles(self, left: Matrix, others: Others) -> Iterator[Tile]:
        return squared_distances(left, others)

    def single_factors(
        self, others: Others
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        return others.single

    def transform(self, tile: Array, out: Array) -> None:
        gaussian(tile, self.gamma)
        if out is not tile:
            out[...] = tile

    def diagonal(self, X: Any) -> Array:
        return np.ones(X.shape[0])

    def rounding(self, others: Any) -> float:
        """Distances are differences of squares, whose rounding the exponential passes on."""
        return max(1.0, self.gamma * float(others.squares.max(initial=0.0)))

    def mean_rounding(self, X: Any) -> float:
        """``exp(-gamma d)`` passes on what d lost, some last places of ``|x|^2 + |z|^2``. The
        absolute error vanishes for samples far apart, whose values are close to zero."""
        sample = X[:: max(1, X.shape[0] // FEW_SAMPLES)]
        others = self.others(sample)
        squares = row_squares(sample, others.point)
        last_place, lost, number = EPS, 0.0, np.arange(sample.shape[0])
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
        own = self.gamma * gamma(3 * others.terms + 16) * others.squares
        return Lost(FUNCTION_ULPS * UNIT, np.ones(own.size), np.minimum(own, 1.0))

    def product(self, left: Any, others: Others, weights: Array) -> Array:
        """See `Kernel`; by differences of dense samples, as `precisely`, if others lose digits."""
        if is_sparse(others.matrix) or self.rounding(others) < LOSSY:
            return super().product(left, others, weights)
        out = np.empty((weights.shape[1], left.shape[0]))
        columns = np.ascontiguousarray(weights.T)
        for rows, lines in dense_rows(left, TILE_ROWS):
            samples = np.ascontiguousarray(lines)
            for column, values in zip(columns, out, strict=True):
                rbf_product(samples, others.matrix, column, self.gamma, values[rows])
        return out.T

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
class StandardizedRbf(Rbf):
    """``exp(-gamma |x - z|^2)`` of samples whose entries are off by two roundoffs. Another centre
    than their own would hide how large the entries were that have been rounded."""

    def others(self, X: Values) -> Others:
        return about(X, np.zeros(X.shape[1]))

    def precisely(self, X: Features, index: Index, weights: Array) -> tuple[Array, Lost] | None:
        """The slope of ``exp(-gamma d^2)`` in the distance d is less than ``sqrt(gamma)``."""
        found = super().precisely(X, index, weights)
        if found is None:
            return None
        own = 2.0 * UNIT * np.sqrt(self.gamma * row_squares(X))
        return found[0], found[1]._replace(own=own)


def named_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    *,
    gamma: str | float,
    degree: int,
    coef0: float,
    X: Any,
    weights: Array | None = None,
) -> Kernel:
    """The kernel of a name and its parameters, or of a function; a `Kernel` is returned as it is.
    ``X``, the training samples or their `Design`, and their weights are for the rules behind
    ``gamma``. Raises ValueError: an unknown name, or a parameter outside its range."""
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
        raise ValueError(f"kernel is one of {names} or a function, not {shown(kernel)}")
    return builders[kernel]()


def resolve_gamma(gamma: str | float, X: Values, weights: Array | None = None) -> float:
    """The number behind ``gamma``, by scikit-learn's rules; ValueError if there is none. 'scale' is
    ``1 / (n_features var(X))`` with the variance of all entries (1 where that is zero), 'auto' ``1
    / n_features``. A sample of weight 2 is the same as a repeated row."""
    if isinstance(gamma, str):
        if gamma not in ("scale", "auto"):
            raise ValueError(f"gamma is 'scale', 'auto' or a positive number, not {shown(gamma)}")
        design = as_design(compressed(X))
        return _scale(design, weights) if gamma == "scale" else 1.0 / design.n_features
    check_gamma(gamma)
    return float(gamma)


def _scale(design: Design, weights: Array | None) -> float:
    given = np.ones(design.n_samples) if weights is None else weights
    mean, variance = design.mean_and_variance(given / given.sum())
    middle = float(mean.mean())
    spread = float((variance + (mean - middle) ** 2).mean())
    return 1.0 / (design.n_features * spread) if spread > CONSTANT_VARIANCE * middle**2 else 1.0
