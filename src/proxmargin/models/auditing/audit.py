"""`certify`: how far any coefficients are from the optimum of a model, also of other packages.

The objective of LIBLINEAR has the intercept, over ``intercept_scaling``, as one more coefficient;
its models are those of the data with a column of ``intercept_scaling`` and no intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from proxmargin.data.designs.samples import is_sparse
from proxmargin.data.inputs.aligned import by_sample
from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.data.inputs.validation import validated_weights
from proxmargin.models.auditing.claims import (
    Claim,
    InFeatures,
    InKernel,
    Value,
    check_data,
    check_support,
    own_claim,
)
from proxmargin.models.classifiers.elastic_net import (
    ElasticNetSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from proxmargin.models.classifiers.regularized import L2SVC, SVC
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList, combined
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Array, Estimator, Record, Values

GIVEN = "given"
BELOW = 1e-9  # relative: an objective so far below the lower bound is not rounding


def certify(
    model: Estimator,
    X: Features,
    y: Labels,
    coef: ArrayLike | None = None,
    intercept: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
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


LIBLINEAR = "liblinear"  # the solver whose objective penalises the intercept
KERNELS = ("linear", "poly", "rbf")  # of scikit-learn's SVC, those that are certified


def claim_of(model: Estimator, X: Any, y: Labels, sample_weight: ArrayLike | None) -> Claim:
    """The claim of a fitted model of another package; TypeError says why its objective is none of
    this library's."""
    if hasattr(model, "best_estimator_"):
        return claim_of(model.best_estimator_, X, y, sample_weight)
    if hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return claim_of(model.steps[-1][1], X, y, sample_weight)
    if isinstance(model, MarginEstimator):  # the last step of a pipeline
        return own_claim(model, X, y, sample_weight=sample_weight)
    for kind in type(model).__mro__:
        package = PACKAGES.get(kind.__module__.split(".")[0])
        if package is not None and kind.__name__ in package.claims:
            check_is_fitted(model)
            check_data(model, X, y)
            if sample_weight is not None and not has_fit_parameter(model, "sample_weight"):
                raise TypeError(f"{kind.__name__} of {kind.__module__} fits without sample_weight")
            fit = package(model, X, y, validated_weights(sample_weight, X))
            claim = package.claims[kind.__name__](fit)
            weights = fit.class_weights()
            idle = [label for label, weight in (weights or {}).items() if weight == 0]
            if idle:
                raise TypeError(f"class_weight gives the class {idle[0]!r} no weight")
            claim.estimator.set_params(class_weight=weights)
            return claim
    known = ((package, name) for package, fits in PACKAGES.items() for name in fits.claims)
    names = ", ".join(f"{package}'s {name}" for package, name in known)
    raise TypeError(
        f"the objective of {type(model).__name__} is not known here. There are {names}; for "
        "coefficients of other programs give a model of proxmargin with coef and intercept"
    )


def _l1_ratio(penalty: str, given: float | None) -> float:
    """The share of the l1 norm; the parameter counts where the penalty is none of the two ends."""
    return {"l1": 1.0, "l2": 0.0}.get(penalty, float(given or 0.0))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model of another package, and the data of its fit."""

    model: Estimator
    X: Any
    y: Any
    sample_weight: Array | None
    claims: ClassVar[dict[str, Callable[[Any], Claim]]] = {}
    """By the name of the model's class, how its claim is stated."""

    def claim(
        self, own: Any, factor: float, X: Values, coef: Array, intercept: Array
    ) -> InFeatures:
        return InFeatures(
            estimator=own,
            X=X,
            y=self.y,
            sample_weight=self.sample_weight,
            factor=factor,
            coef=coef,
            intercept=intercept,
        )

    def as_it_is(self, own: Estimator, factor: float) -> InFeatures:
        """The same coefficients, and a free intercept or none."""
        model = self.model
        own.set_params(fit_intercept=bool(getattr(model, "fit_intercept", True)))
        coef = model.coef_.toarray() if is_sparse(model.coef_) else np.atleast_2d(model.coef_)
        intercept = np.zeros(len(coef)) + np.ravel(getattr(model, "intercept_", 0.0))
        if len(coef) > 1 and getattr(own, "multi_class", "") == "joint":
            intercept = intercept - intercept.mean()  # the same probabilities
        return self.claim(own, factor, self.X, coef.astype(float), intercept)

    def one_against_the_rest(self, own: SparseLogisticRegression) -> Estimator:
        """The model of each class against the others, where there are more than two."""
        return own.set_params(multi_class="ovr") if len(self.model.classes_) > 2 else own

    def class_weights(self) -> dict[Any, float] | None:
        """The weight of each class, as the model counted it."""
        model = self.model
        if getattr(model, "class_weight", None) is None:
            return None
        if isinstance(model.class_weight, dict):
            return dict(model.class_weight)
        counted = hasattr(model, "class_weight_") or isinstance(model, SGDClassifier)
        named = () if counted or self.sample_weight is None else ("sample_weight",)
        known = signature(compute_class_weight).parameters  # weights count since scikit-learn 1.8
        options = {name: self.sample_weight for name in named if name in known}
        found = compute_class_weight(
            model.class_weight, classes=model.classes_, y=self.y, **options
        )
        return dict(zip(model.classes_.tolist(), found.tolist(), strict=True))

    def total(self) -> float:
        """Total weight of the samples."""
        weights = np.ones(len(self.y)) if self.sample_weight is None else self.sample_weight
        factors = self.class_weights()
        if factors is not None:
            weights = weights * np.array(
                [factors.get(label, 1.0) for label in np.asarray(self.y).tolist()]
            )
        return float(weights.sum())


class OfScikitLearn(Fitted):
    """Models of scikit-learn."""

    def linear_svc(self) -> Claim:
        model = self.model
        if model.multi_class != "ovr":
            raise TypeError("LinearSVC(multi_class='crammer_singer') is not among the models here")
        self.refuse_class_weights()
        total = self.total()
        if model.penalty == "l1":
            alpha = 1.0 / (model.C * total)
            own: Any = SquaredHingeSVC(alpha, l1_ratio=1.0)
            factor = model.C * total
        else:
            own = (SVC if model.loss == "hinge" else L2SVC)(model.C)
            factor = 1.0
        return self.with_column(own, factor)

    def logistic(self) -> Claim:
        model = self.model
        if not hasattr(model, "C"):
            raise TypeError(
                f"{type(model).__name__} chooses its C: fit LogisticRegression with the C that it "
                "chose (C_), and certify that"
            )
        penalty = getattr(model, "penalty", "deprecated")
        if penalty is None or penalty == "none" or not np.isfinite(model.C):
            told = (
                f"C={model.C}" if penalty == "deprecated" else f"penalty={penalty!r}, C={model.C}"
            )
            raise TypeError(
                f"LogisticRegression({told}), without a penalty, has no bound of its optimum here"
            )
        multi_class = getattr(model, "multi_class", "deprecated")  # until scikit-learn 1.8
        if multi_class == "multinomial" and len(model.classes_) == 2:
            raise TypeError(
                "LogisticRegression(multi_class='multinomial') of two classes has the objective of "
                "two score columns, which is not among the models here"
            )
        total = self.total()
        own = SparseLogisticRegression(1.0 / (model.C * total), _l1_ratio(penalty, model.l1_ratio))
        if model.solver == LIBLINEAR or multi_class == "ovr":
            own = self.one_against_the_rest(own)
        if model.solver == LIBLINEAR:
            return self.with_column(own, model.C * total)
        return self.as_it_is(own, model.C * total)

    def sgd(self) -> Claim:
        model = self.model
        kinds: Record = {
            "hinge": ElasticNetSVC,
            "squared_hinge": SquaredHingeSVC,
            "log_loss": SparseLogisticRegression,
        }
        if model.loss not in kinds:
            raise TypeError(f"SGDClassifier(loss={model.loss!r}) is not among the models here")
        if model.penalty is None:
            raise TypeError("SGDClassifier(penalty=None) has no bound of its optimum here")
        self.refuse_class_weights()
        share = len(self.y) / self.total()  # its mean is over the count, not the weight
        own = kinds[model.loss](
            model.alpha * share, _l1_ratio(model.penalty, model.l1_ratio), multi_class="ovr"
        )
        return self.as_it_is(own, 1.0 / share)

    def svc(self) -> Claim:
        model = self.model
        if len(model.classes_) > 2:
            raise TypeError(
                "SVC fits every pair of classes: certify the pairs, or proxmargin.DDAGClassifier"
            )
        if model.kernel not in KERNELS:
            raise TypeError(f"SVC(kernel={model.kernel!r}) is not among the kernels certified here")
        own = SVC(model.C, kernel=model.kernel)
        if model.kernel == "linear":
            return self.as_it_is(own, 1.0)
        if not model._gamma > 0.0:
            raise TypeError(f"SVC(gamma={model.gamma}) gives every sample the same score")
        own.set_params(gamma=float(model._gamma))
        if model.kernel == "poly":
            if model.degree < 1:
                raise TypeError(f"SVC(degree={model.degree}) gives every sample the same score")
            own.set_params(degree=int(model.degree), coef0=float(model.coef0))
        found = model.dual_coef_
        weights = np.zeros(len(self.y))
        weights[self.support()] = (found.toarray() if is_sparse(found) else found)[0]
        return InKernel(
            estimator=own,
            X=self.X,
            y=self.y,
            sample_weight=self.sample_weight,
            weights=weights,
            shift=float(model.intercept_[0]),
        )

    def support(self) -> NDArray[np.intp]:
        """The rows of X that are support vectors; raises unless they are those of the fit. libsvm
        drops samples of weight zero first, and ``support_`` counts the others."""
        rows = self.X.tocsr() if is_sparse(self.X) else np.asarray(self.X)
        kept = np.arange(rows.shape[0])
        if self.sample_weight is not None:
            kept = np.flatnonzero(self.sample_weight > 0)
        if kept.size <= int(self.model.support_.max(initial=-1)):
            raise ValueError("X must be the data that the model was fitted to: it has fewer rows")
        index: NDArray[np.intp] = kept[self.model.support_]
        check_support(rows[index], self.model.support_vectors_)
        return index

    def with_column(self, own: Estimator, factor: float) -> InFeatures:
        """The intercept as the coefficient of a column of ``intercept_scaling``."""
        model, X = self.model, self.X
        if not model.fit_intercept:
            return self.as_it_is(own, factor)
        scaling = float(model.intercept_scaling)
        coef = model.coef_.toarray() if is_sparse(model.coef_) else np.asarray(model.coef_)
        wide = np.hstack([coef, np.reshape(model.intercept_, (-1, 1)) / scaling])
        column = np.full((X.shape[0] if hasattr(X, "shape") else len(X), 1), scaling)
        stacked = (
            sparse.hstack([X, sparse.csr_array(column)], format="csr")
            if is_sparse(X)
            else np.hstack([X, column])
        )
        own.set_params(fit_intercept=False)
        return self.claim(own, factor, stacked, wide, np.zeros(len(wide)))

    def refuse_class_weights(self) -> None:
        if self.model.class_weight is not None and len(self.model.classes_) > 2:
            raise TypeError(
                f"{type(self.model).__name__} weights only the class it fits against the rest: "
                "class_weight with more than two classes is another model than those here"
            )

    claims: ClassVar = {
        "LinearSVC": linear_svc,
        "LogisticRegression": logistic,
        "SGDClassifier": sgd,
        "SVC": svc,
    }


class OfSkglm(Fitted):
    """Models of skglm."""

    def logistic(self) -> Claim:
        own = SparseLogisticRegression(self.model.alpha, getattr(self.model, "l1_ratio", 1.0))
        return self.as_it_is(self.one_against_the_rest(own), 1.0)

    def linear_svc(self) -> Claim:
        claim = self.as_it_is(SVC(self.model.C), 1.0)
        claim.estimator.set_params(fit_intercept=False)  # it fits none, whatever it says
        return claim

    claims: ClassVar = {"SparseLogisticRegression": logistic, "LinearSVC": linear_svc}


class OfCeler(Fitted):
    """Models of celer."""

    def logistic(self) -> Claim:
        if getattr(self.model, "penalty", "l1") != "l1":
            raise TypeError("celer's LogisticRegression is known here with the l1 penalty")
        price = self.model.C * len(self.y)
        own = self.one_against_the_rest(SparseLogisticRegression(1.0 / price, 1.0))
        return self.as_it_is(own, price)

    claims: ClassVar = {"LogisticRegression": logistic}


PACKAGES: dict[str, type[Fitted]] = {"sklearn": OfScikitLearn, "skglm": OfSkglm, "celer": OfCeler}
