"""Between which values nu and kappa give a margin.

Below ``nu_min`` the reduced convex hulls of the classes meet and the nu-SVM has no margin; above
``nu_max`` it has no dual point. From ``kappa_max`` on the ellipsoids of the minimax models meet.
In the space of a kernel all this is that of models with at most `KERNEL_RANK` support vectors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.linalg import LinearOperator, lsmr
from sklearn.base import BaseEstimator

from proxmargin.compiled.clock import clock
from proxmargin.designs import (
    DenseDesign,
    Design,
    SparseDesign,
    StandardizedDesign,
    as_design,
    standardized,
)
from proxmargin.designs.kernel_design import KernelDesign
from proxmargin.designs.low_rank import factorise
from proxmargin.designs.standardized import rescaled
from proxmargin.inputs.targets import Targets
from proxmargin.inputs.validation import check_choice, validated, validated_weights
from proxmargin.limits.reduced_hulls import FEASIBLE, meeting_nu
from proxmargin.losses.base import Array
from proxmargin.losses.tail_mean import largest_nu
from proxmargin.pace import affordable, eigen_work, gram_work

__all__ = [
    "KERNEL_RANK",
    "kappa_max",
    "largest_kappa",
    "largest_nu",
    "nu_range",
    "smallest_nu",
    "with_features",
]

MODELS = ("fda", "mpm")
# columns of the factor of a kernel: this many samples have a part in the models that count
KERNEL_RANK = 500

# what a linear program says that ended with its time
TIMED_OUT = 1
# steps of the tries at a separating hyperplane before the linear program is solved
SEPARATING_STEPS = (10, 40, 160)
# up to this many samples or features, one dense eigenvalue decomposition is the fastest
DIRECT = 3000
# vectors multiplied with the data at a time while their n x n products are formed
BLOCK = 64
# singular values below this share of the largest, times the size, are rounding
RANK = 1e-13
# a part of the mean difference larger than this, relative to it, lies outside the range
OUTSIDE = 1e-6
# where products with the data must do: from this kappa on, ellipsoids count as never meeting,
# which is looked for with more and more accuracy
NEVER, LOOKS = 1e4, (1e-5, 1e-6, 1e-7, 1e-8)
# relative accuracy of the value for two ellipsoids, and of the iterative solutions behind it
ACCURACY, SOLVED = 1e-12, 1e-13
# steps of LSMR at most, and at least, whatever the time that is left
LSMR_STEPS = 12000
FEWEST_STEPS = 4
SEARCH_STEPS = 200


def nu_range(X: Any, y: Any, sample_weight: Any = None) -> tuple[float, float]:
    """The values of nu for which a nu-SVM with intercept has a margin: ``nu_min < nu <= nu_max``.

    Of `NuSVC` with a linear kernel; ``nu_max`` is the same for every kernel.

    ``nu_max = 2 min(S+, S-) / S`` with the weights S+ and S- of the classes. ``nu_min`` is the
    largest nu at which the reduced convex hulls of the classes meet, 0 where even the hulls
    themselves do not: the data can then be separated.

    Parameters
    ----------
    X : (n_samples, n_features) array, data frame, or CSR / CSC matrix
    y : (n_samples,) labels of two classes
    sample_weight : (n_samples,), optional

    Returns
    -------
    nu_min, nu_max : float
        ``nu_min >= nu_max`` where no nu gives a margin. The accuracy of ``nu_min`` is that of a
        linear program, about 1e-7.

    Raises
    ------
    ValueError
        For bad data, or other than two classes.
    RuntimeError
        Where the linear program could not be solved.

    Notes
    -----
    Ito, Takeda and Toh (2017, 3.2.4), who print max for min.
    """
    design, signs, shares = _checked(X, y, sample_weight)
    return smallest_nu(design, signs, shares), largest_nu(signs, shares)


def kappa_max(X: Any, y: Any, model: str, sample_weight: Any = None) -> float:
    """The kappa at which the ellipsoids of a minimax model meet: there is a margin below it.

    Of `MarginFDA` ("fda") and `MarginMPM` ("mpm") with a linear kernel.

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
    """
    check_choice("model", model, MODELS)
    design, signs, shares = _checked(X, y, sample_weight)
    return largest_kappa(design, signs, shares, model)


def _checked(X: Any, y: Any, sample_weight: Any) -> tuple[Design, Array, Array]:
    X, y = validated(_Data(), X, y)
    targets = Targets.encode(y, validated_weights(sample_weight, X), None)
    if targets.classes.size != 2:
        raise ValueError(
            f"y holds {targets.classes.size} classes: nu and kappa are parameters of binary models"
        )
    live = np.flatnonzero(targets.weights)
    if live.size < targets.weights.size:
        X, targets = X[live], targets.picked(live)
    return as_design(X), targets.signs(1)[:, 0], targets.shares


class _Data(BaseEstimator):  # type: ignore[misc]
    """Whom the checks of scikit-learn speak of."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


# -- in the space of a kernel -------------------------------------------------------------------


def with_features(design: Design, deadline: float = np.inf) -> Design:
    """The design itself; for a kernel matrix a factor, whose rank is that of the kernel or 500.

    A factor stands for the models that are combinations of its pivots. With fewer models kappa_max
    is smaller and nu_min larger than they are for the kernel.
    """
    if not isinstance(design, KernelDesign):
        return design
    columns = factorise(design.matrix, rank=KERNEL_RANK, deadline=deadline).factor
    return DenseDesign(columns if columns.size else np.zeros((design.n_samples, 1)))


# -- the nu-SVM ---------------------------------------------------------------------------------


def smallest_nu(design: Design, signs: Array, shares: Array, deadline: float = np.inf) -> float:
    """The largest nu at which the reduced convex hulls meet; 0 where the hulls do not.

    With a the dual point times nu, the linear program

        maximise sum a   over   0 <= a <= s,   y'a = 0,   X'(y a) = 0,

    which has the solution 0 where a hyperplane separates the classes. That is tried first, by
    least squares. Centre and scale of the features do not matter. For many samples of few
    features `meeting_nu` is faster than the simplex method.

    Parameters
    ----------
    design : Design
    signs, shares : (n_samples,)
    deadline : float
        On the clock of `proxmargin.compiled.clock`.

    Raises
    ------
    RuntimeError
        Where the linear program could not be solved.
    TimeoutError
        Where it was not solved until the deadline.
    """
    _check_time(deadline)
    design = with_features(design)
    if _separates(standardized(design, shares), signs, shares):
        return 0.0
    met = meeting_nu(design, signs, shares, deadline)
    if met is not None:
        return met if met > FEASIBLE else 0.0
    _check_time(deadline)
    equalities = _balance(design, shares)
    low, high = np.where(signs > 0, 0.0, -shares), np.where(signs > 0, shares, 0.0)
    found: Any = linprog(  # type: ignore[call-overload]
        -signs,
        A_eq=equalities,
        b_eq=np.zeros(equalities.shape[0]),
        bounds=np.column_stack([low, high]),
        method="highs",
        options={
            "primal_feasibility_tolerance": FEASIBLE,
            "dual_feasibility_tolerance": FEASIBLE,
            "time_limit": max(deadline - clock(), 0.0),
        },
    )
    if found.status == TIMED_OUT:
        _check_time(deadline)
    if not found.success:
        raise RuntimeError(f"the linear program for the smallest nu failed: {found.message}")
    return float(-found.fun) if -found.fun > FEASIBLE else 0.0


def _check_time(deadline: float) -> None:
    if clock() >= deadline:
        raise TimeoutError("the smallest nu was not found in time")


def _separates(design: Design, signs: Array, shares: Array) -> bool:
    """Whether a least-squares hyperplane, solved better and better, has both classes apart."""
    root = np.sqrt(shares)
    operator = LinearOperator(
        (design.n_samples, design.n_features),
        matvec=lambda coef: root * design.scores(coef.reshape(-1, 1))[:, 0],
        rmatvec=lambda dual: design.adjoint((root * dual.reshape(-1)).reshape(-1, 1))[:, 0],
        dtype=np.float64,
    )
    wanted = root * (signs - float(shares @ signs))
    up, down = ((shares > 0) & one for one in (signs > 0, signs < 0))
    for steps in SEPARATING_STEPS:
        coef = lsmr(operator, wanted, atol=1e-8, btol=1e-8, maxiter=steps)[0][:, None]
        scores = design.scores(coef)[:, 0]
        gap = float(scores[up].min() - scores[down].max())
        if gap > 2.0 * float(design.enclosed(coef, np.zeros(1), scores).error[0]):
            return True
    return False


def _balance(design: Design, shares: Array) -> Any:
    """The rows of ``X'`` and a row of ones, in good units; with fewer samples than features,
    as many combinations of them as there are samples."""
    while isinstance(design, StandardizedDesign):
        design = design.base
    ones = np.ones((1, design.n_samples))
    if isinstance(design, SparseDesign):
        parts, scale = design.sweep_data(), rescaled(design, shares).scale
        columns = sparse.csc_array(parts, shape=(design.n_samples, design.n_features))
        scaled = (columns @ sparse.diags_array(1.0 / scale)).T
        return sparse.vstack([scaled, sparse.csr_array(ones)], format="csr")
    matrix, centre, scale = standardized(design, shares).sweep_data()
    rows: Any = ((matrix - centre) / scale).T
    if rows.shape[0] > rows.shape[1]:
        rows = np.linalg.qr(rows, mode="r")
    return np.vstack([rows, ones])


# -- the minimax models -------------------------------------------------------------------------


def largest_kappa(
    design: Design,
    signs: Array,
    shares: Array,
    model: str,
    *,
    infinite: float = NEVER,
    deadline: float = np.inf,
) -> float:
    """The kappa at which the ellipsoids meet; infinite where they never do. See `kappa_max`.

    It is the least length, by the norm of the model, of a g with ``Z g = D``, where the columns
    of Z are the deviations of the samples from the mean of their class: of all of g for "fda",
    of its longer half, one a class, for "mpm". Features are standardised, which changes neither.

    Parameters
    ----------
    design : Design
    signs, shares : (n_samples,)
    model : "fda" or "mpm"
    infinite : float
        Larger values count as infinite; beyond the default rounding decides.
    deadline : float
        On the clock of `proxmargin.compiled.clock`: what has been found until then counts, for
        data that are large both ways a value that is too small.
    """
    design = with_features(design, deadline)
    classes = np.packbits(signs > 0).tobytes()  # hashable: every class of a design is kept
    return design.remembered(
        _largest_kappa, classes, shares, model, infinite, signs=signs, deadline=deadline
    )


def _largest_kappa(
    design: Design,
    classes: bytes,
    shares: Array,
    model: str,
    infinite: float,
    *,
    signs: Array,
    deadline: float,
) -> float:
    spread = Spread(standardized(design, shares), signs, shares)
    short, long = sorted((design.n_samples, design.n_features))
    work = gram_work(long, short, design.density) + eigen_work(short)
    if short <= DIRECT and affordable(work, deadline):
        whitened = _whitened(spread)
        if whitened is None:
            return np.inf
        if model == "fda":  # the length of all of g does not ask how S+ and S- share it
            largest = float(np.linalg.norm(whitened[1]))
        else:
            largest = _longer_half(_direct(*whitened))
    else:
        lengths = _iterative(spread, infinite, deadline)
        if lengths is None:
            return np.inf
        whole = lengths(0.5)
        largest = (
            float(np.hypot(whole.up, whole.down))
            if model == "fda"
            else _longer_half(lengths, deadline)
        )
    return largest if largest <= infinite else np.inf


class Halves(NamedTuple):
    """The lengths of the two halves of a solution of ``Z g = D``."""

    up: float
    down: float


Lengths = Callable[[float], Halves]
"""From m in (0, 1) to the halves of the g of least ``m |g+|^2 + (1 - m) |g-|^2``."""


class Spread:
    """The mean difference D and the deviations Z of a design: ``Z Z' = S+ + S-``.

    Column i of Z is ``sqrt(s_i / S_o) (x_i - mean_o)``.

    Attributes
    ----------
    design : Design
    up : (n_samples,) of bool
        The samples of the positive class.
    of_class : (n_samples, 2)
        The share of each sample in each class.
    """

    def __init__(self, design: Design, signs: Array, shares: Array) -> None:
        self.design = design
        self.up = signs > 0
        self.of_class = np.column_stack([shares * self.up, shares * ~self.up])
        self.of_class /= self.of_class.sum(axis=0)
        self.roots = np.sqrt(self.of_class)

    def difference(self) -> Array:
        """D, (n_features,)."""
        return self.design.adjoint(self.of_class @ np.array([[1.0], [-1.0]]))[:, 0]

    def centred(self, g: Array) -> Array:
        """The combination of samples that g is of deviations: ``Z g = X' centred(g)``."""
        shape = (-1,) + (1,) * (g.ndim - 1)
        root = self.roots.sum(axis=1).reshape(shape)
        return root * g - self.of_class @ (self.roots.T @ g)

    def deviations(self, g: Array) -> Array:
        """``Z g``, for g of shape (n_samples,)."""
        return self.design.adjoint(self.centred(g)[:, None])[:, 0]

    def spreads(self, coef: Array) -> Array:
        """``Z' w``, for w of shape (n_features,)."""
        return self.scores_spread(self.design.scores(coef[:, None]))[:, 0]

    def scores_spread(self, scores: Array) -> Array:
        """What `spreads` does to scores, (n_samples, n_outputs)."""
        return self.roots.sum(axis=1)[:, None] * scores - self.roots @ (self.of_class.T @ scores)


def _whitened(spread: Spread) -> tuple[Array, Array] | None:
    """``S+`` and D in coordinates in which ``Z Z'`` is the identity; None if D sticks out.

    From the eigenvalues of ``Z Z'`` or ``Z' Z``, whichever is smaller.
    """
    few_features = spread.design.n_features <= spread.design.n_samples
    return _whitened_by_features(spread) if few_features else _whitened_by_samples(spread)


def _direct(up: Array, difference: Array) -> Lengths:
    """From what `_whitened` found.

    ``S+`` and ``S- = 1 - S+`` are diagonal together: one decomposition serves all m.
    """
    part, axes = np.linalg.eigh(up)
    part, d = np.clip(part, 0.0, 1.0), axes.T @ difference

    def lengths(m: float) -> Halves:
        # (S+ / m + S- / (1 - m)) w = D,  g+ = Z+'w / m,  g- = Z-'w / (1 - m), without dividing
        w = d / (part * (1.0 - m) + (1.0 - part) * m)
        return Halves(
            (1.0 - m) * float(np.sqrt(part @ w**2)), m * float(np.sqrt((1.0 - part) @ w**2))
        )

    return lengths


def _whitened_by_features(spread: Spread) -> tuple[Array, Array] | None:
    """``S+`` and D where ``S+ + S-`` is the identity, from p x p matrices."""
    difference = spread.difference()
    grams = [
        spread.design.gram(share, spread.design.adjoint(share[:, None])[:, 0])
        for share in spread.of_class.T
    ]
    values, axes = np.linalg.eigh(grams[0] + grams[1])
    live = values > RANK * values.size * max(float(values[-1]), 0.0)
    inner = axes.T @ difference
    if np.linalg.norm(inner[~live]) > OUTSIDE * np.linalg.norm(difference):
        return None
    to_white = axes[:, live] / np.sqrt(values[live])
    return to_white.T @ grams[0] @ to_white, inner[live] / np.sqrt(values[live])


def _whitened_by_samples(spread: Spread) -> tuple[Array, Array] | None:
    """The same from n x n matrices, products of the data with blocks of unit vectors."""
    difference = spread.difference()
    n = spread.up.size
    products = np.empty((n, n))
    for start in range(0, n, BLOCK):
        part = slice(start, min(start + BLOCK, n))
        unit = np.zeros((n, part.stop - part.start))
        unit[np.arange(part.start, part.stop), np.arange(unit.shape[1])] = 1.0
        pulled = spread.design.adjoint(spread.centred(unit))
        products[:, part] = spread.scores_spread(spread.design.scores(pulled))
    values, axes = np.linalg.eigh(0.5 * (products + products.T))
    live = values > RANK * n * max(float(values[-1]), 0.0)
    d = axes[:, live].T @ spread.spreads(difference) / values[live]
    rest = difference - spread.deviations(axes[:, live] @ d)
    if np.linalg.norm(rest) > OUTSIDE * np.linalg.norm(difference):
        return None
    up = axes[spread.up][:, live]
    return up.T @ up, d


def _iterative(spread: Spread, infinite: float, deadline: float) -> Lengths | None:
    """By least squares with products only (LSMR); None if D sticks out of the range of Z.

    Its g grow from step to step: one that the deadline cuts short is too short.
    """
    started = clock()
    difference = spread.difference()
    shape = (spread.design.n_features, spread.up.size)
    spread.spreads(difference)
    step = clock() - started  # of two products, as LSMR's are

    def solved(m: float, accuracy: float) -> Array:
        weights = np.where(spread.up, 1.0 / np.sqrt(m), 1.0 / np.sqrt(1.0 - m))
        operator = LinearOperator(
            shape,
            matvec=lambda g: spread.deviations(weights * g.reshape(-1)),
            rmatvec=lambda w: weights * spread.spreads(w.reshape(-1)),
            dtype=np.float64,
        )
        left = min(max(deadline - clock(), 0.0) / step, LSMR_STEPS)
        limit = max(int(left), FEWEST_STEPS)
        found = lsmr(operator, difference, atol=accuracy, btol=SOLVED, conlim=0, maxiter=limit)
        g: Array = weights * found[0]
        return g

    def lengths(m: float) -> Halves:
        g = solved(m, SOLVED)
        return Halves(*(float(np.linalg.norm(g[one])) for one in (spread.up, ~spread.up)))

    for accuracy in LOOKS:
        rest = difference - spread.deviations(solved(0.5, accuracy))
        late = clock() >= deadline
        if late or np.linalg.norm(rest) <= OUTSIDE * np.linalg.norm(difference):
            return lengths
        # every w proves that no g with Z g = D is shorter than w'D / |Z'w|
        if rest @ difference > infinite * np.linalg.norm(spread.spreads(rest)):
            return None
    return None


def _longer_half(lengths: Lengths, deadline: float = np.inf) -> float:
    """``min_g max(|g+|, |g-|)``: the m at which the halves are equal, or an end.

    For every m the longer half is an upper bound and ``sqrt(m |g+|^2 + (1 - m) |g-|^2)`` a lower
    one. The step of Lanckriet et al. (2002) adds ``log |g+| / |g-|``, which decreases, to the
    log-odds of m; between two signs of it the secant is faster.
    """
    odds, low, high = 0.0, (-np.inf, 0.0), (np.inf, 0.0)
    upper = np.inf
    for _ in range(SEARCH_STEPS):
        m = 1.0 / (1.0 + np.exp(-odds))
        up, down = lengths(m)
        upper = min(upper, max(up, down))
        lower = float(np.sqrt(m * up**2 + (1.0 - m) * down**2))
        if upper - lower <= ACCURACY * upper or min(up, down) == 0 or clock() >= deadline:
            break
        ratio = float(np.log(up / down))
        low, high = ((odds, ratio), high) if ratio > 0 else (low, (odds, ratio))
        odds = _next_odds(low, high, odds + ratio)
        if odds in (low[0], high[0]):
            break
    return upper


def _next_odds(low: tuple[float, float], high: tuple[float, float], step: float) -> float:
    """The secant where the root is bracketed, kept away from its ends; else the plain step."""
    width = high[0] - low[0]
    if not np.isfinite(width):
        return step
    root = low[0] + width * low[1] / (low[1] - high[1])
    return min(max(root, low[0] + 0.01 * width), high[0] - 0.01 * width)
