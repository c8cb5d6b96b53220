"""Models of other packages as models of this library: the same objective, other names.

The objective of LIBLINEAR has the intercept, over ``intercept_scaling``, as one more coefficient;
its models are those of the data with a column of ``intercept_scaling`` and no intercept.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from proxmargin.auditing.claims import (
    Claim,
    InFeatures,
    InKernel,
    check_data,
    check_support,
    own_claim,
)
from proxmargin.designs.samples import is_sparse
from proxmargin.estimators.base import MarginEstimator
from proxmargin.estimators.models.elastic_net import (
    ElasticNetSVC,
    SparseLogisticRegression,
    SquaredHingeSVC,
)
from proxmargin.estimators.models.regularized import L2SVC, SVC
from proxmargin.inputs.validation import validated_weights

__all__ = ["claim_of"]

Array = NDArray[np.float64]
LIBLINEAR = "liblinear"  # the solver whose objective penalises the intercept
KERNELS = ("linear", "poly", "rbf")  # of scikit-learn's SVC, those that are certified


def claim_of(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    """The claim of a fitted model of another package.

    Raises
    ------
    TypeError
        Its objective is none of this library's; says why.
    """
    if hasattr(model, "best_estimator_"):
        return claim_of(model.best_estimator_, X, y, sample_weight)
    if hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            X = X if step in (None, "passthrough") else step.transform(X)
        return claim_of(model.steps[-1][1], X, y, sample_weight)
    if isinstance(model, MarginEstimator):  # the last step of a pipeline
        return own_claim(model, X, y, sample_weight=sample_weight)
    for kind in type(model).__mro__:
        known = _KNOWN.get((kind.__module__.split(".")[0], kind.__name__))
        if known is not None:
            check_is_fitted(model)
            check_data(model, X, y)
            if sample_weight is not None and not has_fit_parameter(model, "sample_weight"):
                raise TypeError(f"{kind.__name__} of {kind.__module__} fits without sample_weight")
            sample_weight = validated_weights(sample_weight, X)
            claim = known(model, X, y, sample_weight)
            weights = _class_weights(model, y, sample_weight)
            idle = [label for label, weight in (weights or {}).items() if weight == 0]
            if idle:
                raise TypeError(f"class_weight gives the class {idle[0]!r} no weight")
            claim.estimator.set_params(class_weight=weights)
            return claim
    names = ", ".join(f"{package}'s {name}" for package, name in _KNOWN)
    raise TypeError(
        f"the objective of {type(model).__name__} is not known here. There are {names}; for "
        "coefficients of other programs give a model of proxmargin with coef and intercept"
    )


# ---- scikit-learn -------------------------------------------------------------------------------


def _linear_svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    if model.multi_class != "ovr":
        raise TypeError("LinearSVC(multi_class='crammer_singer') is not among the models here")
    _refuse_class_weights(model)
    total = _total(model, y, sample_weight)
    if model.penalty == "l1":
        alpha = 1.0 / (model.C * total)
        own: Any = SquaredHingeSVC(alpha, l1_ratio=1.0)
        factor = model.C * total
    else:
        own = (SVC if model.loss == "hinge" else L2SVC)(model.C)
        factor = 1.0
    return _with_column(own, model, X, y, sample_weight, factor)


def _logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    if not hasattr(model, "C"):
        raise TypeError(
            f"{type(model).__name__} chooses its C: fit LogisticRegression with the C that it "
            "chose (C_), and certify that"
        )
    penalty = getattr(model, "penalty", "deprecated")
    if penalty is None or penalty == "none" or not np.isfinite(model.C):
        told = f"C={model.C}" if penalty == "deprecated" else f"penalty={penalty!r}, C={model.C}"
        raise TypeError(
            f"LogisticRegression({told}), without a penalty, has no bound of its optimum here"
        )
    multi_class = getattr(model, "multi_class", "deprecated")  # until scikit-learn 1.8
    if multi_class == "multinomial" and len(model.classes_) == 2:
        raise TypeError(
            "LogisticRegression(multi_class='multinomial') of two classes has the objective of "
            "two score columns, which is not among the models here"
        )
    total = _total(model, y, sample_weight)
    own = SparseLogisticRegression(1.0 / (model.C * total), _l1_ratio(penalty, model.l1_ratio))
    if model.solver == LIBLINEAR or multi_class == "ovr":
        own = _one_against_the_rest(own, model)
    if model.solver == LIBLINEAR:
        return _with_column(own, model, X, y, sample_weight, model.C * total)
    return _as_it_is(own, model, X, y, sample_weight, model.C * total)


def _sgd(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    kinds: dict[str, Any] = {
        "hinge": ElasticNetSVC,
        "squared_hinge": SquaredHingeSVC,
        "log_loss": SparseLogisticRegression,
    }
    if model.loss not in kinds:
        raise TypeError(f"SGDClassifier(loss={model.loss!r}) is not among the models here")
    if model.penalty is None:
        raise TypeError("SGDClassifier(penalty=None) has no bound of its optimum here")
    _refuse_class_weights(model)
    share = len(y) / _total(model, y, sample_weight)  # its mean is over the count, not the weight
    own = kinds[model.loss](
        model.alpha * share, _l1_ratio(model.penalty, model.l1_ratio), multi_class="ovr"
    )
    return _as_it_is(own, model, X, y, sample_weight, 1.0 / share)


def _svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    if len(model.classes_) > 2:
        raise TypeError(
            "SVC fits every pair of classes: certify the pairs, or proxmargin.DDAGClassifier"
        )
    if model.kernel not in KERNELS:
        raise TypeError(f"SVC(kernel={model.kernel!r}) is not among the kernels certified here")
    own = SVC(model.C, kernel=model.kernel)
    if model.kernel == "linear":
        return _as_it_is(own, model, X, y, sample_weight, 1.0)
    if not model._gamma > 0.0:
        raise TypeError(f"SVC(gamma={model.gamma}) gives every sample the same score")
    own.set_params(gamma=float(model._gamma))
    if model.kernel == "poly":
        if model.degree < 1:
            raise TypeError(f"SVC(degree={model.degree}) gives every sample the same score")
        own.set_params(degree=int(model.degree), coef0=float(model.coef0))
    found = model.dual_coef_
    weights = np.zeros(len(y))
    weights[_support(model, X, sample_weight)] = (found.toarray() if is_sparse(found) else found)[0]
    return InKernel(
        estimator=own,
        X=X,
        y=y,
        sample_weight=sample_weight,
        weights=weights,
        shift=float(model.intercept_[0]),
    )


def _support(model: Any, X: Any, sample_weight: Any) -> NDArray[np.intp]:
    """The rows of X that are support vectors; raises unless they are the rows of the fit.

    libsvm drops samples of weight zero first, and ``support_`` counts the others.
    """
    rows = X.tocsr() if is_sparse(X) else np.asarray(X)
    kept = np.arange(rows.shape[0])
    if sample_weight is not None:
        kept = np.flatnonzero(np.asarray(sample_weight) > 0)
    if kept.size <= int(model.support_.max(initial=-1)):
        raise ValueError("X must be the data that the model was fitted to: it has fewer rows")
    index: NDArray[np.intp] = kept[model.support_]
    check_support(rows[index], model.support_vectors_)
    return index


# ---- skglm, celer -------------------------------------------------------------------------------


def _skglm_logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    own = SparseLogisticRegression(model.alpha, getattr(model, "l1_ratio", 1.0))
    return _as_it_is(_one_against_the_rest(own, model), model, X, y, sample_weight, 1.0)


def _skglm_svc(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    claim = _as_it_is(SVC(model.C), model, X, y, sample_weight, 1.0)
    claim.estimator.set_params(fit_intercept=False)  # it fits none, whatever its parameter says
    return claim


def _celer_logistic(model: Any, X: Any, y: Any, sample_weight: Any) -> Claim:
    if getattr(model, "penalty", "l1") != "l1":
        raise TypeError("celer's LogisticRegression is known here with the l1 penalty")
    price = model.C * len(y)
    own = _one_against_the_rest(SparseLogisticRegression(1.0 / price, 1.0), model)
    return _as_it_is(own, model, X, y, sample_weight, price)


# ---- parts --------------------------------------------------------------------------------------


def _l1_ratio(penalty: str, given: float | None) -> float:
    """The share of the l1 norm; the parameter counts where the penalty is none of the two ends."""
    return {"l1": 1.0, "l2": 0.0}.get(penalty, float(given or 0.0))


def _one_against_the_rest(own: Any, model: Any) -> Any:
    """The model of each class against the others, where there are more than two."""
    return own.set_params(multi_class="ovr") if len(model.classes_) > 2 else own


def _as_it_is(
    own: Any, model: Any, X: Any, y: Any, sample_weight: Any, factor: float
) -> InFeatures:
    """The same coefficients, and a free intercept or none."""
    own.set_params(fit_intercept=bool(getattr(model, "fit_intercept", True)))
    coef = model.coef_.toarray() if is_sparse(model.coef_) else np.atleast_2d(model.coef_)
    intercept = np.zeros(len(coef)) + np.ravel(getattr(model, "intercept_", 0.0))
    if len(coef) > 1 and getattr(own, "multi_class", "") == "joint":
        intercept = intercept - intercept.mean()  # the same probabilities
    return InFeatures(
        estimator=own,
        X=X,
        y=y,
        sample_weight=sample_weight,
        factor=factor,
        coef=coef.astype(float),
        intercept=intercept,
    )


def _with_column(
    own: Any, model: Any, X: Any, y: Any, sample_weight: Any, factor: float
) -> InFeatures:
    """The intercept as the coefficient of a column of ``intercept_scaling``."""
    if not model.fit_intercept:
        return _as_it_is(own, model, X, y, sample_weight, factor)
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
    return InFeatures(
        estimator=own,
        X=stacked,
        y=y,
        sample_weight=sample_weight,
        factor=factor,
        coef=wide,
        intercept=np.zeros(len(wide)),
    )


def _refuse_class_weights(model: Any) -> None:
    if model.class_weight is not None and len(model.classes_) > 2:
        raise TypeError(
            f"{type(model).__name__} weights only the class that it fits against the rest: "
            "class_weight with more than two classes is another model than those here"
        )


def _class_weights(model: Any, y: Any, sample_weight: Any) -> dict[Any, float] | None:
    """The weight of each class, as the model counted it."""
    if getattr(model, "class_weight", None) is None:
        return None
    if isinstance(model.class_weight, dict):
        return dict(model.class_weight)
    counted = hasattr(model, "class_weight_") or isinstance(model, SGDClassifier)
    named = () if counted or sample_weight is None else ("sample_weight",)
    known = signature(compute_class_weight).parameters  # weights count since scikit-learn 1.8
    options = {name: np.asarray(sample_weight) for name in named if name in known}
    found = compute_class_weight(model.class_weight, classes=model.classes_, y=y, **options)
    return dict(zip(model.classes_.tolist(), found.tolist(), strict=True))


def _total(model: Any, y: Any, sample_weight: Any) -> float:
    """Total weight of the samples."""
    weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    factors = _class_weights(model, y, sample_weight)
    if factors is not None:
        weights = weights * np.array([factors.get(label, 1.0) for label in np.asarray(y).tolist()])
    return float(weights.sum())


_KNOWN: dict[tuple[str, str], Callable[[Any, Any, Any, Any], Claim]] = {
    ("sklearn", "LinearSVC"): _linear_svc,
    ("sklearn", "LogisticRegression"): _logistic,
    ("sklearn", "SGDClassifier"): _sgd,
    ("sklearn", "SVC"): _svc,
    ("skglm", "SparseLogisticRegression"): _skglm_logistic,
    ("skglm", "LinearSVC"): _skglm_svc,
    ("celer", "LogisticRegression"): _celer_logistic,
}
