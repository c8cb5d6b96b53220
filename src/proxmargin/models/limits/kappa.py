"""Range of kappa that gives a margin: at ``kappa_max`` the ellipsoids of the classes touch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import hypot
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import bisect
from scipy.sparse.linalg import LinearOperator, lsmr
from sklearn.exceptions import ConvergenceWarning

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import ROOT_STEPS, TINY
from proxmargin.data.designs import Design, standardized
from proxmargin.data.designs.views import in_short_coordinates
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.parameters import check_choice
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.models.limits.binary_data import (
    CLEAR_RANK,
    RANK_TOLERANCE,
    checked,
    class_shares,
    fisher_limit,
    halves,
    with_features,
)
from proxmargin.runtime.threads import affordable, eigen_work, gram_work
from proxmargin.runtime.types import Array
from proxmargin.solvers.shared.numerical import MAX_SIDE

MODELS = ("fda", "mpm")
# kernels: eigenvalues of the covariance over the largest one
FAINT = 1e-12  # below it they are rounding
CLEAR_MARGIN = 0.01  # margin over the distance of the means of a kernel model with a share of kappa
# direct method: one dense eigendecomposition
RANGE_TOLERANCE = 1e-6  # relative residual of Z g = D, above which D is outside the range of Z
# iterative method: LSMR, with products only
INFINITE_KAPPA = 1e4  # kappa from which on it counts as infinite
RANGE_ACCURACIES = (1e-5, 1e-6, 1e-7, 1e-8)  # LSMR tolerances tried in turn to decide that
LSMR_TOLERANCE = 1e-13  # relative residual of the final solutions
LSMR_STEPS = 12000  # iteration limit
MIN_LSMR_STEPS = 4  # iterations that are done whatever the deadline
# balance of the two ellipsoids
KAPPA_TOLERANCE = 1e-12  # relative difference of the bounds of kappa at convergence
FAR_ODDS = 32.0  # log-odds of m at which the bounds of kappa differ by less, as m is 1 - 1e-14
PLAIN_STEPS = 20  # after which a balance that is not bracketed is looked for in steps that double
KNOWN_DIGITS = 1e-6  # relative difference of bounds up to which kappa counts as known


class Largest(NamedTuple):
    """Bounds of the largest kappa; they differ if a limit ended its computation."""

    lower: float
    upper: float

    @property
    def is_known(self) -> bool:
        return self.lower == self.upper or self.upper - self.lower <= KNOWN_DIGITS * self.lower

    @property
    def value(self) -> float:
        """The largest kappa if it is known, else its lower bound, below which there is a margin."""
        return self.upper if self.is_known else self.lower

    def __str__(self) -> str:
        if self.is_known:
            return f"{self.value:.6g}"
        most = "" if np.isinf(self.upper) else f" and at most {self.upper:.6g}"
        return f"at least {self.lower:.6g}{most}"


def kappa_max(
    X: Features, y: Labels, model: Literal["fda", "mpm"], sample_weight: ArrayLike | None = None
) -> float:
    """The kappa at which the ellipsoids of a minimax model touch: there is a margin below it.

    For `MarginFDA` ("fda") and `MarginMPM` ("mpm") with a linear kernel.

    With D the difference of the class means and ``S+``, ``S-`` the population covariances:
    ``sqrt(D' (S+ + S-)^+ D)`` for "fda", ``max_w w'D / (sqrt(w'S+w) + sqrt(w'S-w))`` for "mpm"
    (the minimax probability machine of Lanckriet et al. 2002); infinite where D has a part
    outside the range of ``S+ + S-``, as is usual with more features than samples. With more than
    3000 of both, values beyond 1e4 count as infinite.

    Parameters
    ----------
    X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
    y : (n_samples,) labels of two classes
    model : "fda" or "mpm"
    sample_weight : (n_samples,), optional

    Raises
    ------
    ValueError
        For bad data, other than two classes, or an unknown model.

    Warns
    -----
    ConvergenceWarning
        The result is a lower bound: iterations on many samples with many features did not end.

    See Also
    --------
    MarginFDA, MarginMPM : The models.
    nu_range : The same for NuSVC.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import kappa_max
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(kappa_max(X, y, "fda"), 2), round(kappa_max(X, y, "mpm"), 2)
    (2.6, 1.86)
    """
    check_choice("model", model, MODELS)
    design, signs, shares = checked(X, y, sample_weight)
    found = largest_kappa(design, signs, shares, model)
    if not found.is_known:
        warnings.warn(
            f"kappa_max is {found}, where {LSMR_STEPS} iterations of LSMR had not settled it",
            ConvergenceWarning,
            stacklevel=2,
        )
    return float(found.value)


def largest_kappa(
    design: Design,
    signs: Array,
    shares: Array,
    model: str,
    *,
    infinite: float = INFINITE_KAPPA,
    deadline: float = np.inf,
) -> Largest:
    """The kappa at which the ellipsoids touch; infinite if they never do. See `kappa_max`.

    It is the smallest norm of a g with ``Z g = D``, where the columns of Z are the deviations of
    the samples from the mean of their class. The norm is ``|g|`` for "fda", and ``max(|g+|, |g-|)``
    over the parts of g of the two classes for "mpm". Features are standardised, which changes
    neither. Values above ``infinite`` count as infinite; above the default they are rounding.
    After the ``deadline``, on the clock of `proxmargin.compiled.clock`, the bounds found so far are
    returned.
    """
    if isinstance(design, KernelDesign):
        return _with_kernel(design, signs, shares, model, infinite, deadline)
    classes = np.packbits(signs > 0).tobytes()  # hashable: every class of a design is kept
    return design.remembered(
        _largest_kappa, classes, shares, model, infinite, signs=signs, deadline=deadline
    )


def clear_kappa(
    design: Design, signs: Array, shares: Array, model: str, deadline: float = np.inf
) -> Largest:
    """The kappa up to which a kernel model has a margin that is clear of rounding.

    With it the margin of MM-FDA is a hundredth of the distance of the class means: the length of
    the shortest g with ``|D - Z g|`` so large, a continuous function of the kernel. For MM-MPM, as
    ``|v+| + |v-| <= sqrt(2) |v|``, its ``1 / sqrt(2)`` leaves no smaller margin. Features have no
    such bound, as the rank of few of them is clear.
    """
    if not isinstance(design, KernelDesign):
        return NEVER
    featured = with_features(design, deadline)
    spectrum = Spectrum.of(Spread(featured.design, signs, shares))
    found = spectrum.length_at(CLEAR_MARGIN) / (1.0 if model == "fda" else np.sqrt(2.0))
    return Largest(found, found if featured.is_whole else np.inf)


def _with_kernel(
    design: KernelDesign, signs: Array, shares: Array, model: str, infinite: float, deadline: float
) -> Largest:
    """`largest_kappa` with a kernel. Exact if it is strictly positive definite; infinite if it has
    more dimensions on the data than a factor. Otherwise as with features, those of the factor."""
    matrix = design.kernel_matrix
    if matrix.is_strict:
        sides = class_shares(matrix, signs, shares)
        limit = fisher_limit(*sides)
        if model == "mpm" and np.isfinite(limit):
            return _up_to(infinite, _longer_half(lambda m: Halves(*halves(*sides, m))))
        return _up_to(infinite, Largest(limit, limit))
    featured = with_features(design, deadline)
    if featured.is_whole and not featured.is_exact:
        return NEVER
    whitened = _whitened(Spread(featured.design, signs, shares), CLEAR_RANK)
    found = _of_whitened(whitened, model) if whitened else NEVER
    found = _up_to(infinite, found)
    return found if featured.is_whole else found._replace(upper=np.inf)


def _up_to(infinite: float, found: Largest) -> Largest:
    return Largest(*(each if each <= infinite else np.inf for each in found))


def _largest_kappa(
    design: Design,
    classes: bytes,
    shares: Array,
    model: str,
    infinite: float,
    *,
    signs: Array,
    deadline: float,
) -> Largest:
    scaled = standardized(design, shares)
    spread = Spread(scaled, signs, shares)
    short, long = sorted((design.n_samples, design.n_features))
    work = gram_work(long, short, design.density) + eigen_work(short)
    if short <= MAX_SIDE and affordable(work, deadline):
        spread = Spread(in_short_coordinates(scaled).design, signs, shares)
        whitened = _whitened(spread, RANK_TOLERANCE * short)
        if whitened is None:
            return NEVER
        found = _of_whitened(whitened, model)
    elif clock() >= deadline:
        found = Largest(_by_difference(spread, model), np.inf)
    else:
        lengths = _iterative(spread, infinite, deadline)
        if lengths is None:
            return NEVER
        found = _whole(lengths) if model == "fda" else _longer_half(lengths, deadline, ROOT_STEPS)
    return _up_to(infinite, found)


NEVER = Largest(np.inf, np.inf)


class Halves(NamedTuple):
    """The norms of the parts of g of the two classes, for a solution of ``Z g = D``. If iterations
    did not converge, ``m |g+|^2 + (1 - m) |g-|^2`` is a lower bound of its minimum."""

    up: float
    down: float
    is_solved: bool = True


Lengths = Callable[[float], Halves]
"""Maps m in (0, 1) to `Halves` of the g with the least ``m |g+|^2 + (1 - m) |g-|^2``."""


class Spread:
    """The mean difference D and the deviations Z of a design: ``Z Z' = S+ + S-``. Column i of Z is
    ``sqrt(s_i / S_o) (x_i - mean_o)``."""

    def __init__(self, design: Design, signs: Array, shares: Array) -> None:
        self.design = design
        self.up = signs > 0  # the samples of the positive class
        # (n_samples, 2); the share of each sample in each class
        self.of_class = np.column_stack([shares * self.up, shares * ~self.up])
        self.of_class /= self.of_class.sum(axis=0)
        self.roots = np.sqrt(self.of_class)

    def covariances(self) -> list[Array]:
        """S+ and S-, (n_features, n_features) each."""
        adjoint = self.design.adjoint
        return [self.design.gram(share, adjoint(share[:, None])[:, 0]) for share in self.of_class.T]

    def difference(self) -> Array:
        """D, (n_features,)."""
        return self.design.adjoint(self.of_class @ np.array([[1.0], [-1.0]]))[:, 0]

    def deviations(self, g: Array) -> Array:
        """``Z g``, for g of shape (n_samples,)."""
        centred = self.roots.sum(axis=1) * g - self.of_class @ (self.roots.T @ g)
        return self.design.adjoint(centred[:, None])[:, 0]

    def spreads(self, coef: Array) -> Array:
        """``Z' w``, for w of shape (n_features,)."""
        scores = self.design.scores(coef[:, None])[:, 0]
        spreads: Array = self.roots.sum(axis=1) * scores - self.roots @ (self.of_class.T @ scores)
        return spreads


class Spectrum(NamedTuple):
    """``S+ + S-`` in its principal axes, as far as its eigenvalues are above rounding, and D."""

    values: Array  # (n_features,) >= 0; eigenvalues over the largest one
    along: Array  # (n_features,); D along the axes
    unit: float  # the largest eigenvalue

    @classmethod
    def of(cls, spread: Spread) -> Spectrum:
        first, second = spread.covariances()
        values, axes = np.linalg.eigh(first + second)
        unit = max(float(values[-1]), TINY)
        return cls(np.maximum(values / unit, 0.0), axes.T @ spread.difference(), unit)

    def length(self, ridge: float) -> float:
        """``|g|`` for the least ``|D - Z g|^2 + ridge |g|^2``."""
        damped = self.along / (self.values + ridge)
        return float(np.sqrt(self.values @ damped**2 / self.unit))

    def left(self, ridge: float) -> float:
        """``|D - Z g|`` for that g, over ``|D|``."""
        rest = ridge * self.along / (self.values + ridge)
        return float(np.linalg.norm(rest)) / max(float(np.linalg.norm(self.along)), TINY)

    def length_at(self, left: float) -> float:
        """``|g|`` for the shortest g that leaves this part of ``|D|``; infinite if none does."""
        if self.left(FAINT) >= left or not self.along.any():
            return np.inf
        low, high = np.log(FAINT), 0.0
        while self.left(np.exp(high)) < left:
            high += 1.0
        ridge = bisect(lambda log: self.left(np.exp(log)) - left, low, high)
        return self.length(np.exp(ridge))


def _of_whitened(whitened: tuple[Array, Array], model: str) -> Largest:
    if model == "fda":  # |g| does not depend on how S+ and S- share the covariance
        length = float(np.linalg.norm(whitened[1]))
        return Largest(length, length)
    return _longer_half(_direct(*whitened))


def _direct(up: Array, difference: Array) -> Lengths:
    """The norms for every m, from ``S+`` and D in the coordinates of `_whitened`. As ``S- = 1 -
    S+`` there, one eigendecomposition diagonalises both and serves all m."""
    part, axes = np.linalg.eigh(up)
    part, d = np.clip(part, 0.0, 1.0), axes.T @ difference

    def lengths(m: float) -> Halves:
        # (S+ / m + S- / (1 - m)) w = D,  g+ = Z+'w / m,  g- = Z-'w / (1 - m), multiplied by m (1 -
        # m)
        w = d / (part * (1.0 - m) + (1.0 - part) * m)
        return Halves(
            (1.0 - m) * float(np.sqrt(part @ w**2)), m * float(np.sqrt((1.0 - part) @ w**2))
        )

    return lengths


def _whitened(spread: Spread, tolerance: float) -> tuple[Array, Array] | None:
    """``S+`` and D in coordinates with ``Z Z' = I``; None if D is outside the range of Z. An
    eigenvalue of ``Z Z'`` below ``tolerance`` times the largest one is rounding."""
    difference, (up, down) = spread.difference(), spread.covariances()
    values, axes = np.linalg.eigh(up + down)
    live = values > tolerance * max(float(values[-1]), 0.0)
    inner = axes.T @ difference
    if np.linalg.norm(inner[~live]) > RANGE_TOLERANCE * np.linalg.norm(difference):
        return None
    to_white = axes[:, live] / np.sqrt(values[live])
    return to_white.T @ up @ to_white, inner[live] / np.sqrt(values[live])


def _iterative(spread: Spread, infinite: float, deadline: float) -> Lengths | None:
    """The norms by LSMR, with products only; None if D is outside the range of Z. LSMR increases
    the norm of g monotonically: at the deadline it is a lower bound."""
    started, in_range = clock(), False
    difference = spread.difference()
    shape = (spread.design.n_features, spread.up.size)
    spread.spreads(difference)
    step = clock() - started  # time of two products, as in an iteration of LSMR

    def solved(m: float, accuracy: float) -> tuple[Array, bool]:
        weights = np.where(spread.up, 1.0 / np.sqrt(m), 1.0 / np.sqrt(1.0 - m))
        operator = LinearOperator(
            shape,
            matvec=lambda g: spread.deviations(weights * g.reshape(-1)),
            rmatvec=lambda w: weights * spread.spreads(w.reshape(-1)),
            dtype=np.float64,
        )
        left = max(deadline - clock(), 0.0)
        most = LSMR_STEPS if left >= LSMR_STEPS * step else int(left / step)
        limit = max(most, MIN_LSMR_STEPS)
        found = lsmr(
            operator, difference, atol=accuracy, btol=LSMR_TOLERANCE, conlim=0, maxiter=limit
        )
        return weights * found[0], found[1] != 7  # its code for the iteration limit

    def lengths(m: float) -> Halves:
        g, is_solved = solved(m, LSMR_TOLERANCE)
        up, down = (float(np.linalg.norm(g[one])) for one in (spread.up, ~spread.up))
        return Halves(up, down, is_solved and in_range)

    for accuracy in RANGE_ACCURACIES:
        g, is_solved = solved(0.5, accuracy)
        rest = difference - spread.deviations(g)
        in_range = bool(np.linalg.norm(rest) <= RANGE_TOLERANCE * np.linalg.norm(difference))
        if in_range:
            return lengths
        # every w proves that no g with Z g = D is shorter than w'D / |Z'w|
        if rest @ difference > infinite * np.linalg.norm(spread.spreads(rest)):
            return None
        if not is_solved or clock() >= deadline:
            return lengths
    return None


def _by_difference(spread: Spread, model: str) -> float:
    """A lower bound of kappa by two products with the data. Every w proves that no g with ``Z g =
    D`` is shorter than ``w'D / |Z'w|``, and that of no g both parts are shorter than ``w'D /
    (|Z+'w| + |Z-'w|)``; here w is D."""
    difference = spread.difference()
    image = spread.spreads(difference)
    parts = [float(np.linalg.norm(image[one])) for one in (spread.up, ~spread.up)]
    size = hypot(*parts) if model == "fda" else sum(parts)
    square = float(difference @ difference)
    if size == 0.0:
        return np.inf if square > 0.0 else 0.0
    return square / size


def _whole(lengths: Lengths) -> Largest:
    """The norm of all of g."""
    up, down, is_solved = lengths(0.5)
    length = float(np.hypot(up, down))
    return Largest(length, length if is_solved else np.inf)


def _longer_half(
    lengths: Lengths, deadline: float = np.inf, plain_steps: int = PLAIN_STEPS
) -> Largest:
    """``min_g max(|g+|, |g-|)``: at the m where both are equal, or at an end.

    For every m the larger norm is an upper bound and ``sqrt(m |g+|^2 + (1 - m) |g-|^2)`` a lower
    one. The step of Lanckriet et al. (2002) adds ``log |g+| / |g-|``, which decreases in m, to the
    log-odds of m; steps after ``plain_steps`` double them besides, as the balance may be at an
    end, where lengths by iterations lose digits. Once the sign change is bracketed the secant is
    faster.
    """
    odds, low, high = 0.0, (-np.inf, 0.0), (np.inf, 0.0)
    lower, upper = 0.0, np.inf
    for steps in range(ROOT_STEPS):
        m = 1.0 / (1.0 + np.exp(-odds))
        up, down, is_solved = lengths(m)
        upper = min(upper, max(up, down)) if is_solved else upper
        lower = max(lower, float(np.sqrt(m * up**2 + (1.0 - m) * down**2)))
        if min(up, down) == 0:  # then it is zero for every m
            return Largest(max(lower, up, down), upper)
        if lower >= (1.0 - KAPPA_TOLERANCE) * upper or clock() >= deadline:
            break
        ratio = float(np.log(up / down))
        low, high = ((odds, ratio), high) if ratio > 0 else (low, (odds, ratio))
        grown = odds if steps >= plain_steps else 0.0
        odds = float(np.clip(_next_odds(low, high, odds + grown + ratio), -FAR_ODDS, FAR_ODDS))
        if odds in (low[0], high[0]):
            break
    return Largest(min(lower, upper), upper)


def _next_odds(low: tuple[float, float], high: tuple[float, float], step: float) -> float:
    """The secant step if the root is bracketed, kept inside the bracket; else the given step."""
    width = high[0] - low[0]
    if not np.isfinite(width):
        return step
    root = low[0] + width * low[1] / (low[1] - high[1])
    return min(max(root, low[0] + 0.01 * width), high[0] - 0.01 * width)
