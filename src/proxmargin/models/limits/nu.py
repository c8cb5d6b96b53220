"""Range of nu that gives a margin.

Below ``nu_min`` the reduced convex hulls of the classes meet and the nu-SVM has no margin; above
``nu_max`` it has no dual point.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse.linalg import LinearOperator, lsmr

from proxmargin.compiled.clock import clock
from proxmargin.data.designs import Design, standardized
from proxmargin.data.designs.views import rescaled
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.kernels.matrix import kernel_matrix_of
from proxmargin.functions.losses.margins.hinge import Hinge
from proxmargin.functions.losses.margins.margin_sum import MarginSum
from proxmargin.functions.losses.tail_mean import largest_nu
from proxmargin.functions.penalties.elastic_net import Ridge
from proxmargin.models.limits.binary_data import (
    RANK_TOLERANCE,
    checked,
    class_shares,
    meeting_share,
    with_features,
)
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.threads import affordable
from proxmargin.runtime.types import Array
from proxmargin.solvers.interior.interior_point import InteriorPoint
from proxmargin.solvers.loop.minimize import minimize
from proxmargin.solvers.loop.solver import Stop
from proxmargin.solvers.programs.restricted_program import PROGRAM_TOLERANCE

SEPARATING_STEPS = (10, 40, 160)  # LSMR iterations of the hyperplanes that are tried in turn
MIN_ENTRIES = 50_000  # n_samples times n_features; below it the simplex method is as fast
TINY_RIDGE = 1e-8  # strength, for features of unit variance and a loss of at most one
RIDGE_GAP = 1e-9  # relative gap of the problem with that ridge
NU_TOLERANCE = 1e-8  # largest accepted difference of the bounds of nu


class ProgramTooLargeError(Exception):
    """The linear program for the smallest nu has more entries than allowed."""


def nu_range(X: Features, y: Labels, sample_weight: ArrayLike | None = None) -> tuple[float, float]:
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

    See Also
    --------
    NuSVC : The model.
    kappa_max : The same for MarginFDA and MarginMPM.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import nu_range
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> lowest, largest = nu_range(X, y)
    >>> round(lowest, 3), round(largest, 3)
    (0.0, 0.745)
    """
    design, signs, shares = checked(X, y, sample_weight)
    return smallest_nu(design, signs, shares), largest_nu(signs, shares)


def smallest_nu(
    design: Design,
    signs: Array,
    shares: Array,
    deadline: float = np.inf,
    *,
    max_entries: float = np.inf,
) -> float:
    """The largest nu at which the reduced convex hulls meet; 0 if the hulls are disjoint.

    With a the dual point times nu, it is the value of the linear program

        maximise sum a   over   0 <= a <= s,   y'a = 0,   X'(y a) = 0,

    which is 0 if a hyperplane separates the classes; a least-squares hyperplane is tried first. The
    value is invariant to centring and scaling of the features. For many samples of few features
    `meeting_nu` is faster than the simplex method. With a kernel that is strictly positive definite
    only equal samples of both classes matter.

    Raises ProgramTooLargeError: the program has more than ``max_entries``, n_samples times
    n_features. Raises RuntimeError: HiGHS could not solve it. Raises TimeoutError: it was not
    solved until the ``deadline``, on the clock of `proxmargin.compiled.clock`.
    """
    _check_time(deadline)
    matrix = kernel_matrix_of(design)
    if matrix is not None and matrix.is_strict:
        return meeting_share(*class_shares(matrix, signs, shares))
    design = with_features(design).design
    if _separates(standardized(design, shares), signs, shares):
        return 0.0
    met = meeting_nu(design, signs, shares, deadline)
    if met is not None:
        return met if met > PROGRAM_TOLERANCE else 0.0
    _check_time(deadline)
    if design.n_samples * design.n_features > max_entries:
        raise ProgramTooLargeError("the linear program for the smallest nu is too large")
    equalities = _balance_rows(design, shares)
    low, high = np.where(signs > 0, 0.0, -shares), np.where(signs > 0, shares, 0.0)
    found: Any = linprog(  # type: ignore[call-overload]
        -signs,
        A_eq=equalities,
        b_eq=np.zeros(equalities.shape[0]),
        bounds=np.column_stack([low, high]),
        method="highs",
        options={
            "primal_feasibility_tolerance": PROGRAM_TOLERANCE,
            "dual_feasibility_tolerance": PROGRAM_TOLERANCE,
            "time_limit": max(deadline - clock(), 0.0),
        },
    )
    if found.status == 1:  # it ran into its time limit
        _check_time(deadline)
    if not found.success:
        raise RuntimeError(f"the linear program for the smallest nu failed: {found.message}")
    return float(-found.fun) if -found.fun > PROGRAM_TOLERANCE else 0.0


def _check_time(deadline: float) -> None:
    if clock() >= deadline:
        raise TimeoutError("the smallest nu was not found within the time limit")


def _separates(design: Design, signs: Array, shares: Array) -> bool:
    """Whether a least-squares hyperplane, of increasing accuracy, separates the classes."""
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


def _balance_rows(design: Design, shares: Array) -> Any:
    """The rows of ``X'``, standardised, and a row of ones; for wide data the R of their QR."""
    design = design.stored.base
    ones = np.ones((1, design.n_samples))
    if design.compressed is not None:
        (data, indices, indptr), scale = design.sweep_data(), rescaled(design, shares).scale
        columns = sparse.csc_array(
            (data, indices, indptr), shape=(design.n_samples, design.n_features)
        )
        scaled = (columns @ sparse.diags_array(1.0 / scale)).T
        return sparse.vstack([scaled, sparse.csr_array(ones)], format="csr")
    matrix, centre, scale = standardized(design, shares).sweep_data()
    rows: Any = ((matrix - centre) / scale).T
    if rows.shape[0] > rows.shape[1]:
        rows = np.linalg.qr(rows, mode="r")
    return np.vstack([rows, ones])


def meeting_nu(
    design: Design, signs: Array, shares: Array, deadline: float = np.inf
) -> float | None:
    """The largest nu at which the reduced hulls meet; None if the linear program suits better.

    The dual of ``max sum a`` over ``0 <= a <= s``, ``y'a = 0``, ``X'(y a) = 0`` is the least hinge
    loss. An interior point method, whose systems are small for few features, minimises it with a
    tiny ridge. Its coefficients give an upper bound of nu; its dual point, projected onto the
    equality constraints, a lower bound.
    """
    n, p = design.n_samples, design.n_features
    if n < p or n * p < MIN_ENTRIES:
        return None
    scaled = standardized(design, shares)
    loss = MarginSum(Hinge(), signs[:, None], shares[:, None])
    problem = Problem(loss, Ridge(TINY_RIDGE), scaled, Ridge(0.0))
    solver = InteriorPoint()
    refused = solver.objection(problem) is not None
    if refused or not affordable(solver.work(problem), deadline):
        return None
    gap = minimize(problem, solver, stop=Stop(tol=RIDGE_GAP, deadline=deadline)).gap
    if not np.isfinite(gap.gap):
        return None
    scores = scaled.scores(gap.point.coef) + gap.point.intercept
    upper = loss.value(scores)
    balanced = _balanced(scaled, signs * np.abs(gap.dual_point[:, 0]), shares)
    within = signs * balanced
    if (within < -PROGRAM_TOLERANCE).any() or (within > shares + PROGRAM_TOLERANCE).any():
        return None
    lower = float(within.sum())
    return None if upper - lower > NU_TOLERANCE else max(0.5 * (lower + upper), 0.0)


def _balanced(design: Design, signed: Array, shares: Array) -> Array:
    """The signed dual point v projected onto ``1'v = 0``, ``X'v = 0``. The projection is in the
    norm scaled by the distances to the bounds: an affine scaling step."""
    room = np.minimum(np.abs(signed), shares - np.abs(signed)) ** 2
    p = design.n_features
    matrix = np.empty((p + 1, p + 1))
    matrix[:p, :p] = design.gram(room, np.zeros(p))
    matrix[:p, p] = matrix[p, :p] = design.adjoint(room[:, None])[:, 0]
    matrix[p, p] = room.sum()
    missed = np.append(design.adjoint(signed[:, None])[:, 0], signed.sum())
    by = np.linalg.lstsq(matrix, missed, rcond=RANK_TOLERANCE)[0]
    return signed - room * (design.scores(by[:p, None])[:, 0] + by[p])
