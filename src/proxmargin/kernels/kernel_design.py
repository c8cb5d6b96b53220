"""A kernel matrix as a design: coefficients are weights of samples, scores are ``K beta``."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from proxmargin.designs.base import Array, Design, Index
from proxmargin.kernels.matrix import KernelMatrix
from proxmargin.rows import evenly_taken

__all__ = ["KernelDesign", "kernel_matrix_of"]

# samples used to estimate the mean inner product
SPREAD_SAMPLES = 400


class KernelDesign(Design):
    """``beta -> K beta``: one coefficient a training sample.

    The coefficients of the model lie in the feature space of the kernel, and the penalty is theirs,
    not beta's: `certify_represented`, in `proxmargin.certificates.representer`, certifies problems
    over this design. Methods that would need features raise TypeError.

    Parameters
    ----------
    matrix : KernelMatrix
        The `kernel_matrix`.
    """

    has_columns = False
    kernel_matrix: KernelMatrix

    def __init__(self, matrix: KernelMatrix) -> None:
        n = matrix.n_samples
        super().__init__(n, n, 8 * n**2, counter=matrix.counter)
        self.kernel_matrix = matrix

    def scores(self, coef: Array) -> Array:
        return self.kernel_matrix.matvec(coef)

    def row_norms(self) -> Array:
        """``k(x_i, x_i)``, the squared length of each sample in the space of the kernel."""
        return self.kernel_matrix.diagonal()

    def spread(self, shares: Array) -> float:
        """Root mean square distance from the mean, in the space of the kernel.

        Its square is ``sum_i s_i K_ii - s'K s``. The second term is estimated from a few hundred
        samples at even steps of weight: all pairs would cost as much as the fit.
        """
        some, part = evenly_taken(shares, SPREAD_SAMPLES)
        part = part / part.sum()
        mean = float(part @ self.kernel_matrix.block(some, some) @ part)
        total = float(shares @ self.kernel_matrix.diagonal()) - mean
        return total**0.5 if total > 0 else 1.0

    def adjoint(self, dual: Array) -> NoReturn:
        raise _without("a product with the transpose")

    def row_squares(self, weights: Array, centre: Array) -> NoReturn:
        raise _without("a sum over the features")

    def column_squares(self, weights: Array, centre: Array) -> NoReturn:
        raise _without("the variance of each feature")

    def largest(self) -> NoReturn:
        raise _without("the largest entry of each feature")

    def precise_scores(self, coef: Array, intercept: Array) -> NoReturn:
        raise _without("a compensated product")

    def precise_adjoint(self, dual: Array) -> NoReturn:
        raise _without("a compensated product with the transpose")

    def gram(self, weights: Array, centre: Array) -> NoReturn:
        raise _without("products between features")

    def _outer_gram(self, weights: Array, centre: Array) -> NoReturn:
        raise _without("products between samples by features")

    def outer_gram(self) -> Array:
        """K: the inner products of the samples, computed once; not to be written into."""
        return self.remembered(_whole)

    def centred_gram(self, shares: Array) -> Array:
        """K: distances do not depend on the centre."""
        return self.outer_gram()

    def _rows(self, index: Index) -> KernelDesign:
        return KernelDesign(self.kernel_matrix.part(index))

    def _columns(self, index: Index) -> NoReturn:
        raise _without("some features")

    def sweep_data(self) -> tuple[Any, ...]:
        raise _without("columns of features")


def kernel_matrix_of(design: Design) -> KernelMatrix | None:
    """The kernel matrix, if the design is one."""
    return design.kernel_matrix if isinstance(design, KernelDesign) else None


def _whole(design: KernelDesign) -> Array:
    return design.kernel_matrix.rows(np.arange(design.n_samples))


def _without(what: str) -> TypeError:
    return TypeError(
        f"{what} was asked of a kernel matrix, which has inner products of samples but no "
        "features; a low-rank factor of it (kernels.low_rank) has some"
    )
