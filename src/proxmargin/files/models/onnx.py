"""ONNX graphs of fitted models, by converters for skl2onnx: all in double precision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

import proxmargin
from proxmargin.data.inputs.kinds import Features
from proxmargin.data.kernels import Linear, Polynomial, Rbf, Sigmoid
from proxmargin.files.models.archive import ESTIMATORS
from proxmargin.models.fitting.predicting import LogisticProbabilities
from proxmargin.models.selection.calibration import CalibratedMargin
from proxmargin.models.selection.calibrators import (
    SURE,
    BetaLogOdds,
    MultinomialMap,
    OneVersusRestMap,
    ScaledMap,
    SigmoidLogOdds,
    StepLogOdds,
    TwoClassMap,
)
from proxmargin.runtime.optional import optional
from proxmargin.runtime.types import Estimator, Values

FLOAT = 1  # the number of float32 among the types of ONNX
DOUBLE = 11  # and of float64
OPTIONS = {
    "zipmap": [True, False, "columns"],
    "output_class_labels": [False, True],
    "nocl": [True, False],
}


def to_onnx(model: Estimator, X: Features | None = None, **options: object) -> Any:
    """The ONNX graph of a fitted model, which onnxruntime and others predict with.

    Its outputs are the labels and the probabilities, or the scores of the classes of a model that
    has no probabilities (of two classes the negative score and the score). They are computed in
    double precision.

    Parameters
    ----------
    model : a fitted model
        Linear or with a kernel by name, for any number of classes; a search, a `CalibratedMargin`,
        or a pipeline that ends with one after transformers that skl2onnx knows.
    X : (n_samples, n_features) array or data frame, optional
        Rows whose types are those of the graph's input; float32 by default.
    **options
        Of ``skl2onnx.to_onnx``; ``options={"zipmap": True}`` for dictionaries of probabilities.

    Returns
    -------
    onnx.ModelProto
        With ``SerializeToString()``.

    Raises
    ------
    ImportError
        skl2onnx is not installed; says what to type.
    NotImplementedError
        A kernel that is a function or a matrix, or a calibrated classifier of another library.

    See Also
    --------
    save_model : A file for this library, with all parameters and the certificate.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import SparseLogisticRegression, to_onnx
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SparseLogisticRegression(alpha=0.02, standardize=True).fit(X, y)
    >>> to_onnx(model, X).graph.input[0].name
    'X'
    """
    skl2onnx = optional("skl2onnx", "an ONNX graph", "onnx")
    from skl2onnx.common.data_types import FloatTensorType
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    for name in (*ESTIMATORS, "CalibratedMargin"):
        kind = getattr(proxmargin, name)
        skl2onnx.update_registered_converter(
            *(kind, f"Proxmargin{name}", calculate_linear_classifier_output_shapes, _convert),
            options=OPTIONS,
        )
    if X is None and "initial_types" not in options:
        options["initial_types"] = [("X", FloatTensorType([None, model.n_features_in_]))]
    return skl2onnx.to_onnx(_plain(model), X, **{"options": {"zipmap": False}, **options})


def _plain(model: Estimator) -> Estimator:
    """The model without what skl2onnx does not know: searches, and pipelines of this library."""
    if isinstance(model, Pipeline):
        return Pipeline([(name, _plain(step)) for name, step in model.steps])
    return getattr(model, "best_estimator_", model)


class _Operators:
    """ONNX operators of one version, by name."""

    def __init__(self, version: int) -> None:
        self.version = version

    def __getattr__(self, name: str) -> Callable[..., Any]:
        from skl2onnx.algebra import onnx_ops

        return partial(getattr(onnx_ops, f"Onnx{name}"), op_version=self.version)

    def log_sigmoid(self, x: object) -> object:
        """``min(x, 0) - log(1 + exp(-|x|))``, which does not overflow."""
        rest = self.Log(self.Add(self.Exp(self.Neg(self.Abs(x))), np.ones(1)))
        return self.Sub(self.Min(x, np.zeros(1)), rest)

    def logit(self, p: object) -> object:
        return self.Sub(self.Log(p), self.Log(self.Sub(np.ones(1), p)))

    def affine(self, x: Any, factor: Any, shift: object) -> object:
        product = self.MatMul(x, factor) if np.ndim(factor) == 2 else self.Mul(x, _one(factor))
        return self.Add(product, _one(shift))


def _one(number: object) -> NDArray[np.float64]:
    return np.atleast_1d(np.asarray(number, dtype=np.float64))


def _convert(scope: object, operator: Any, container: Any) -> None:
    """The converter of a model, as skl2onnx calls it."""
    from skl2onnx.common.data_types import DoubleTensorType

    model, ops = operator.raw_operator, _Operators(container.target_opset)
    label, values = operator.outputs
    if isinstance(model, CalibratedMargin):
        each = [
            _calibrated(ops, model.calibrator_, _scores_of_any(ops, operator.inputs[0], one))
            for one in model._predicting
        ]
        total = each[0] if len(each) == 1 else ops.Sum(*each)
        decisions = found = ops.Mul(total, _one(1.0 / len(each)))
    else:
        scores = _scores(ops, ops.Cast(operator.inputs[0], to=DOUBLE), model)
        binary = model.classes_.size == 2
        decisions = ops.Concat(ops.Neg(scores), scores, axis=1) if binary else scores
        found = _probabilities(ops, model, scores, decisions)
    best = ops.ArgMax(decisions, axis=1, keepdims=0)
    classes = model.classes_.astype(np.int64 if model.classes_.dtype.kind in "biu" else str)
    named = ops.ArrayFeatureExtractor(classes[None, :], best)
    ops.Reshape(named, np.array([-1]), output_names=[label]).add_to(scope, container)
    kind = DOUBLE if isinstance(values.type, DoubleTensorType) else FLOAT
    ops.Cast(found, to=kind, output_names=[values]).add_to(scope, container)


def _scores_of_any(ops: Any, X: Any, model: Estimator) -> object:
    """Scores by a model or a pipeline."""
    from skl2onnx.algebra.onnx_operator import OnnxSubEstimator

    *before, (_, model) = getattr(model, "steps", [(None, model)])
    for _, step in before:
        if step not in (None, "passthrough"):
            X = OnnxSubEstimator(step, X, op_version=ops.version)
    model = _plain(model)
    name = type(model).__name__
    if name not in ESTIMATORS:
        raise NotImplementedError(
            f"CalibratedMargin of a {name} has no ONNX graph: one of this library's models has"
        )
    return _scores(ops, ops.Cast(X, to=DOUBLE), model)


def _scores(ops: Any, X: Values, model: Estimator) -> object:
    """(n_samples, 1), or a column a class."""
    if hasattr(model, "coef_"):
        return ops.affine(X, model.coef_.T.astype(np.float64), model.intercept_)
    kernel, support = model._named_kernel(None), model.support_vectors_
    if type(kernel) not in (Linear, Polynomial, Rbf, Sigmoid):
        raise NotImplementedError(
            f"{type(model).__name__} with kernel={model.kernel!r} has no ONNX graph: "
            "kernels by name have, but for 'precomputed'"
        )
    if hasattr(support, "toarray"):
        support = support.toarray()
        if model.standardize:
            support = support - model._rest / model.feature_scale_
    if model.standardize:
        X = ops.Div(ops.Sub(X, _one(model.feature_centre_)), _one(model.feature_scale_))
    support = np.asarray(support, dtype=np.float64)
    values = ops.MatMul(X, support.T)
    if isinstance(kernel, Rbf):
        squares = ops.MatMul(ops.Mul(X, X), np.ones((support.shape[1], 1)))
        distances = ops.Sub(ops.Add(squares, (support**2).sum(axis=1)), ops.Mul(values, _one(2.0)))
        nearest = ops.Max(distances, np.zeros(1))  # rounding makes some negative
        values = ops.Exp(ops.Mul(nearest, _one(-kernel.gamma)))
    elif not isinstance(kernel, Linear):
        values = ops.affine(values, kernel.gamma, kernel.coef0)
        is_power = isinstance(kernel, Polynomial)
        values = ops.Pow(values, _one(kernel.degree)) if is_power else ops.Tanh(values)
    return ops.affine(values, model.dual_coef_.T.astype(np.float64), model.intercept_)


def _probabilities(ops: _Operators, model: Estimator, scores: object, decisions: object) -> object:
    """Of a model by itself; its scores if it has none."""
    if hasattr(model, "calibrator_"):
        return _calibrated(ops, model.calibrator_, scores)
    joint = model.classes_.size > 2 and getattr(model, "multi_class", None) == "joint"
    if not isinstance(model, LogisticProbabilities):
        return decisions
    if joint:
        return ops.Softmax(scores, axis=1)
    return ops.Softmax(ops.log_sigmoid(decisions), axis=1)


def _calibrated(ops: Any, found: Any, scores: object) -> object:
    """The map of a calibrator, (n_samples, n_classes)."""
    if isinstance(found, ScaledMap):
        return _calibrated(ops, found.inner, ops.Div(scores, _one(found.scale)))
    if isinstance(found, TwoClassMap):
        odds = _log_odds(ops, found.odds, scores)
        return ops.Concat(ops.Sigmoid(ops.Neg(odds)), ops.Sigmoid(odds), axis=1)
    if isinstance(found, MultinomialMap):
        return ops.Softmax(ops.affine(scores, np.array(found.coef).T, found.intercept), axis=1)
    assert isinstance(found, OneVersusRestMap)
    first = ops.Max(_calibrated(ops, found.first, scores), _one(SURE))
    odds = ops.logit(ops.Min(first, _one(1.0 - SURE)))
    columns = np.eye(len(found.each))[:, :, None]
    each = [
        _log_odds(ops, one, ops.MatMul(odds, column))
        for one, column in zip(found.each, columns, strict=True)
    ]
    return ops.Softmax(ops.log_sigmoid(ops.Concat(*each, axis=1)), axis=1)


def _log_odds(ops: Any, found: Any, scores: object) -> object:
    if isinstance(found, SigmoidLogOdds):
        return ops.affine(scores, found.slope, found.shift)
    if isinstance(found, StepLogOdds):  # a sum of ramps
        widths, rises = np.diff(found.scores), np.diff(found.shares)
        into = ops.Min(ops.Max(ops.Sub(scores, found.scores[:-1]), np.zeros(1)), widths)
        slopes = np.divide(rises, widths, out=np.zeros_like(rises), where=widths > 0)
        return ops.logit(ops.affine(into, slopes[:, None], found.shares[0]))
    assert isinstance(found, BetaLogOdds)
    logits = _log_odds(ops, found.first, scores)
    first = ops.Mul(ops.log_sigmoid(logits), _one(found.coef[0]))
    second = ops.Mul(ops.log_sigmoid(ops.Neg(logits)), _one(found.coef[1]))
    return ops.Add(ops.Sub(first, second), _one(found.shift))
