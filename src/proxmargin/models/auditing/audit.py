"""`certify`: how far any coefficients are from the optimum of a model."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from proxmargin.data.inputs.aligned import by_sample
from proxmargin.models.auditing.claims import Value, own_claim
from proxmargin.models.auditing.foreign import claim_of
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList, combined
from proxmargin.runtime.brief import shown

GIVEN = "given"
BELOW = 1e-9  # relative: an objective so far below the lower bound is not rounding


def certify(
    model: Any,
    X: Any,
    y: Any,
    coef: Any = None,
    intercept: Any = None,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    tol: float = 1e-6,
) -> Certificate | CertificateList:
    """Certify coefficients, whoever computed them.

    The objective of the model is computed at the coefficients, with a bound on rounding. A lower
    bound of the optimum comes from their own gradient, and where that proves less than ``tol``,
    from a fit of the model by this library: the gap is the difference, so it shows how far the
    coefficients are from the best ones, and never less than that.

    Parameters
    ----------
    model : estimator
        One of this library with ``coef`` and ``intercept``; or, without them, any fitted linear or
        kernel model of it; or a fitted `LinearSVC`, `SVC`, `LogisticRegression` or `SGDClassifier`
        of scikit-learn, `SparseLogisticRegression` or `LinearSVC` of skglm, or
        `LogisticRegression` of celer: each for its own objective, in its own units. Searches and
        pipelines stand for their last step.
    X : (n_samples, n_features)
        The data that the model was fitted to. Models of LIBLINEAR, which penalise the intercept as
        a coefficient, are certified on a copy with a column of ones.
    y : (n_samples,) labels
    coef : (n_rows, n_features) or (n_features,), optional
        In the units of the data; a row a class, one for two classes.
    intercept : (n_rows,) or float, optional
        By default zeros.
    sample_weight, offset : (n_samples,), optional
        As in the fit.
    tol : float, default 1e-6
        The relative gap at which the coefficients count as optimal, and to which the lower bound is
        computed.

    Returns
    -------
    Certificate, or CertificateList with one a class
        ``primal`` is the objective at the coefficients (of nu-SVM, MM-FDA and MM-MPM at their
        best multiple, as only the direction matters there), ``dual`` the lower bound, ``converged``
        whether the relative gap is at most ``tol``; ``because`` says where the bound comes from.

    Raises
    ------
    ValueError
        Bad data; other columns, rows or classes than those of the fit; coefficients of another
        shape or outside of the model's constraints.
    TypeError
        A model whose objective is not among those of this library; says why.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from proxmargin import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> fitted = LogisticRegression(max_iter=100).fit(X, y)
    >>> certify(fitted, X, y).relative_gap > 1e-4  # it stopped early, and this is by how much
    True
    """
    started = perf_counter()
    sample_weight = by_sample("sample_weight", sample_weight, X)
    offset = by_sample("offset", offset, X)
    if isinstance(model, MarginEstimator):
        claim = own_claim(model, X, y, coef, intercept, sample_weight, offset)
    elif coef is not None or intercept is not None:
        raise TypeError("coef and intercept are for models of proxmargin; others bring their own")
    elif offset is not None:
        raise TypeError("offset is for models of proxmargin")
    else:
        claim = claim_of(model, X, y, sample_weight)
    claim.estimator.__dict__.update(tol=tol)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        values = claim.values()
    for k, value in enumerate(values):
        if not value.primal < np.inf:
            which = f" (problem {k} of {len(values)})" if len(values) > 1 else ""
            if value.inside:
                raise ValueError(
                    f"the objective of {shown(claim.estimator)} overflows at these "
                    f"coefficients{which}: they have diverged, and are no fit of it"
                )
            raise ValueError(
                f"the coefficients are outside of the constraints of {claim.estimator}{which}: "
                "bounds, a norm at most 1, or sums over the classes that must be zero"
            )
    needed = any(value.relative_gap(value.dual) > tol for value in values)
    bounds = claim.bounds() if needed else [None] * len(values)
    seconds = (perf_counter() - started) / len(values)
    return combined(
        [
            _certificate(value, bound, claim.factor, tol, seconds)
            for value, bound in zip(values, bounds, strict=True)
        ]
    )


def _certificate(
    value: Value, bound: Certificate | None, factor: float, tol: float, seconds: float
) -> Certificate:
    """The gap between the objective at given coefficients and the larger lower bound."""
    dual, because = value.dual, "the lower bound is that of the coefficients' own gradient"
    if bound is not None and bound.dual > dual:
        dual, because = bound.dual, f"the lower bound is that of a fit by {bound.solver!r}"
    if value.primal < dual - BELOW * max(abs(dual), value.negligible):
        raise ValueError(
            f"the objective at these coefficients, {value.primal:.6g}, is below the lower bound of "
            f"the optimum, {dual:.6g}: X, y or the weights are not those of the fit"
        )
    relative = value.relative_gap(dual)
    return Certificate(
        primal=value.primal,
        dual=dual,
        gap=max(value.primal - dual, 0.0),
        relative_gap=relative,
        kkt_residual=value.kkt_residual,
        converged=relative <= tol,
        stop_reason="the coefficients were given",
        n_iter=0,
        n_passes=0.0 if bound is None else bound.n_passes,
        seconds=seconds,
        solver=GIVEN,
        because=because,
    ).scaled(factor)
