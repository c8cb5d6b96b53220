"""Checks of kernel matrices: symmetric, positive semidefinite, precise enough."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from proxmargin.compiled.rounding import EPS
from proxmargin.data.designs.samples import FEW_SAMPLES
from proxmargin.data.inputs.parameters import LARGEST
from proxmargin.data.kernels.functions import Custom
from proxmargin.data.kernels.matrix import ROWS_ENTRIES, KernelMatrix
from proxmargin.runtime.types import Array, Values

MIN_DIGITS = 3  # correct decimal digits required of kernel values
PROBE_SAMPLES = 3000  # samples on which positive semidefiniteness is checked


class IndefiniteKernelError(ValueError):
    """A kernel matrix has a negative eigenvalue or residual variance, ``amount``, beyond rounding;
    ``scale`` is the largest entry of its diagonal."""

    def __init__(self, amount: float, scale: float) -> None:
        super().__init__(
            f"the kernel matrix is not positive semidefinite: it has a value of {amount:.3g} where "
            f"none can be negative (its largest diagonal entry is {scale:.3g}); a kernel that is, "
            "such as 'rbf', 'linear' or 'poly' with coef0 >= 0, would work"
        )
        self.amount, self.scale = amount, scale

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.amount, self.scale)


def checked_precomputed(matrix: object) -> Values:
    """The given kernel matrix, not copied. Raises ValueError if it is sparse, not square, not of
    finite real numbers or, beyond rounding, not symmetric."""
    if sparse.issparse(matrix):
        raise ValueError("a precomputed kernel matrix is dense; its toarray() would work")
    K = np.asarray(matrix)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(
            f"a precomputed kernel matrix is square, one row and one column a training sample; "
            f"the shape given is {K.shape}"
        )
    if K.dtype.kind not in "fiub":
        raise ValueError(f"a precomputed kernel matrix has real numbers, not {K.dtype}")
    largest = _largest(K)
    if not np.isfinite(largest):
        raise ValueError("the precomputed kernel matrix has entries that are not finite")
    _check_symmetric(K, largest, precision_of(K) ** (2 / 3))
    return K


def check_digits(matrix: KernelMatrix) -> None:
    """Raise ValueError if rounding leaves fewer than `MIN_DIGITS` correct digits of the values."""
    most = 10.0**-MIN_DIGITS
    # the squared norms of both samples are rounded; the worst case is known at little cost
    if 2.0 * matrix.precision > most and matrix.rounding > most:
        raise ValueError(
            "the distances between these samples are lost in rounding: offsets of the features are "
            "too large for their differences, and of sparse data they are subtracted only from "
            "columns that are almost full; subtract them first"
        )


def check_size(diagonal: Array) -> None:
    """Raise ValueError if products of kernel values with this diagonal overflow."""
    largest = float(np.abs(diagonal).max(initial=0.0))
    if not largest <= LARGEST:
        raise ValueError(
            f"the values of the kernel reach {largest:.3g}, beyond {LARGEST:g}, where products "
            "overflow: scale the features, or choose a smaller gamma"
        )


def check_definite(matrix: KernelMatrix, rng: np.random.Generator) -> None:
    """Raise IndefiniteKernelError for a negative eigenvalue that is more than rounding, of the
    whole matrix or, of more than `PROBE_SAMPLES` samples, of a random part: the eigenvalues of a
    principal submatrix lie between those of the matrix."""
    diagonal, n = matrix.diagonal(), matrix.n_samples
    scale = float(np.abs(diagonal).max(initial=0.0))
    lowest = float(diagonal.min(initial=0.0))
    if lowest < -matrix.negative * scale:
        raise IndefiniteKernelError(lowest, scale)
    index = np.arange(n)
    if n > PROBE_SAMPLES:
        index = np.sort(rng.choice(n, PROBE_SAMPLES, replace=False))
    part = matrix.block(index, index)
    # entries exceed the diagonal only if the matrix is indefinite
    scale = max(scale, float(np.abs(part).max(initial=0.0)))
    allowed = matrix.negative * scale
    if allowed == 0.0:
        return  # the zero matrix
    least = _negative_eigenvalue(part, allowed)
    if least < -allowed:
        raise IndefiniteKernelError(least, scale)


def _negative_eigenvalue(part: Array, allowed: float) -> float:
    """An eigenvalue below ``-allowed`` of a leading part of the matrix, or zero."""
    # imported late: scipy.linalg is slow to load
    from scipy.linalg import eigh
    from scipy.linalg.lapack import dpotrf

    # `order` of the first leading minor at which the factorisation breaks down
    shifted = part + allowed * np.eye(len(part))
    order = int(dpotrf(shifted.T, overwrite_a=True)[1])
    if order == 0:
        return 0.0
    order = min(len(part), max(order, 500))
    return float(eigh(part[:order, :order], eigvals_only=True, subset_by_index=[0, 0])[0])


def check_function(kernel: Custom, X: Values) -> None:
    """Check on some samples that a function is symmetric and depends on two samples at a time."""
    sample = X[:: max(1, -(-X.shape[0] // FEW_SAMPLES))]
    values = kernel(sample, sample)
    largest = float(np.abs(values).max(initial=0.0))
    rounding = EPS ** (2 / 3)
    half = (values.shape[0] + 1) // 2
    apart = np.abs(kernel(sample[:half], sample) - values[:half]).max(initial=0.0)
    if apart > rounding * largest:
        raise ValueError(
            f"the kernel function gave values that differ by {apart:.3g} for the same samples "
            "among others; a value may depend on its own two samples only"
        )
    _check_symmetric(values, largest, rounding)


def _check_symmetric(K: Values, largest: float, rounding: float) -> None:
    apart = max(
        (
            float(np.abs(block - K[:, part].T.astype(np.float64, copy=False)).max(initial=0.0))
            for part, block in _row_blocks(K)
        ),
        default=0.0,
    )
    if apart > rounding * largest:
        raise ValueError(
            f"the kernel matrix is not symmetric: entries that mirror each other differ by up to "
            f"{apart:.3g}; (K + K.T) / 2 would be"
        )


def _largest(K: Values) -> float:
    """The largest absolute entry; nan or inf if there is one."""
    peaks = [float(np.abs(block).max(initial=0.0)) for _, block in _row_blocks(K)]
    return float(np.max(peaks, initial=0.0))


def _row_blocks(K: Values) -> Iterator[tuple[slice, Array]]:
    step = max(1, ROWS_ENTRIES // max(K.shape[0], 1))
    for start in range(0, K.shape[0], step):
        part = slice(start, start + step)
        yield part, K[part].astype(np.float64, copy=False)


def looks_single(K: Values) -> bool:
    """Whether every entry is exact in float32: then it was probably computed in float32."""
    with np.errstate(over="ignore"):  # infinite, and so different
        return all(np.array_equal(block.astype(np.float32), block) for _, block in _row_blocks(K))


def precision_of(K: Values) -> float:
    """Machine epsilon of the type that the entries are stored in."""
    return float(np.finfo(K.dtype if K.dtype.kind == "f" else np.float64).eps)
