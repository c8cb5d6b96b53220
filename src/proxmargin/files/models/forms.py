"""The attributes of fitted models by kind, and their consistency checks.

Linear models have coefficients; models of the kernel family also weights of support vectors. With a
nonlinear kernel there are no coefficients: predictions need the support vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from proxmargin.files.errors import ModelFileError
from proxmargin.kernels import Kernel, Precomputed

__all__ = ["ModelForm", "form_of"]

Fitted = Mapping[str, Any]

_ALWAYS = ("intercept_", "classes_", "n_features_in_")
_CHOSEN = ("nu_", "kappa_")  # parameters of the loss that were given as words or shares
_PERHAPS = ("feature_names_in_", "n_iter_", "largest_offset_", *_CHOSEN)
_SCALING = ("feature_centre_", "feature_scale_")
# of a linear model that was standardised, which predicts without them
_OF_LINEAR = (*_PERHAPS, "feature_scale_")
_FLOAT_BYTES = (4, 8)


@dataclass(frozen=True)
class ModelForm:
    """The attributes of one kind of model.

    Attributes
    ----------
    required, optional : names of attributes
    check : callable
        Refuses attributes that contradict each other, with a `ModelFileError` that says which.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    check: Callable[[Fitted], None]


def form_of(estimator: Any) -> ModelForm:
    """The form of the learned attributes of an estimator with these parameters."""
    kernel = getattr(estimator, "kernel", None)
    if kernel is None:
        return LINEAR
    if isinstance(kernel, str) and kernel == "linear":
        return WEIGHTED
    if kernel == "precomputed" or isinstance(kernel, Precomputed):
        return PRECOMPUTED
    has_gamma = isinstance(kernel, str) or hasattr(kernel, "gamma")
    form = NONLINEAR if has_gamma or not isinstance(kernel, Kernel) else WITHOUT_GAMMA
    return _scaled(form) if estimator.standardize else form


# -- checks ---------------------------------------------------------------------------------------


def _check_linear(fitted: Fitted) -> None:
    coef = fitted["coef_"]
    _demand(_is_array(coef, "f", 2), "'coef_' must be floats of shape (n_outputs, n_features)")
    _check_finite(fitted, "coef_")
    _check_outputs(fitted, "coef_")
    _check_features(fitted, coef.shape[1], "coef_'s width")
    if "feature_scale_" in fitted:
        _check_scale(fitted)


def _check_weighted(fitted: Fitted) -> None:
    _check_linear(fitted)
    _check_weights(fitted)


def _check_kernel(fitted: Fitted) -> None:
    _check_weights(fitted)
    vectors, count = fitted["support_vectors_"], fitted["support_"].size
    dense = _is_array(vectors, "f", 2)
    _demand(dense or sp.issparse(vectors), "'support_vectors_' must be rows of floats")
    _demand(vectors.shape[0] == count, f"'support_vectors_' must have {count} rows")
    _check_finite(fitted, "support_vectors_")
    _check_features(fitted, vectors.shape[1], "support_vectors_'s width")


def _check_precomputed(fitted: Fitted) -> None:
    _check_weights(fitted)
    index, vectors = fitted["support_"], fitted["support_vectors_"]
    same = _is_array(vectors, "iu", 1) and np.array_equal(vectors, index)
    _demand(same, "'support_vectors_' must be 'support_' for a precomputed kernel")
    _check_features(fitted, None, "")
    inside = not index.size or int(index[-1]) < fitted["n_features_in_"]
    _demand(inside, "'support_' must be less than 'n_features_in_'")
    _check_gamma(fitted, wanted=False)


def _check_with_gamma(fitted: Fitted) -> None:
    _check_kernel(fitted)
    _check_gamma(fitted, wanted=True)


def _check_without_gamma(fitted: Fitted) -> None:
    _check_kernel(fitted)
    _check_gamma(fitted, wanted=False)


def _check_weights(fitted: Fitted) -> None:
    weights, index = fitted["dual_coef_"], fitted["support_"]
    _demand(_is_array(weights, "f", 2), "'dual_coef_' must be floats of shape (n_outputs, n)")
    _check_outputs(fitted, "dual_coef_")
    _check_finite(fitted, "dual_coef_")
    rising = _is_array(index, "iu", 1) and bool(np.all(np.diff(index.astype(np.int64)) > 0))
    _demand(
        rising and bool(np.all(index >= 0)), "'support_' must be different samples, in their order"
    )
    _demand(index.size == weights.shape[1], "'dual_coef_' must have one column a support vector")


def _check_outputs(fitted: Fitted, name: str) -> None:
    intercept, classes = fitted["intercept_"], fitted["classes_"]
    _demand(_is_array(intercept, "f", 1), "'intercept_' must be floats of shape (n_outputs,)")
    _check_finite(fitted, "intercept_")
    _demand(_is_array(classes, "fiubUO", 1), "'classes_' must be one row of labels")
    _check_finite(fitted, "classes_")
    _demand(
        len(classes) >= 2 and len(set(classes.tolist())) == len(classes),
        "'classes_' must be two or more different labels",
    )
    outputs = 1 if len(classes) == 2 else len(classes)
    rows = fitted[name].shape[0]
    _demand(rows == outputs, f"{len(classes)} classes need {outputs} rows of {name!r}")
    _demand(intercept.shape[0] == outputs, f"'intercept_' must have {outputs} entries")
    for chosen in (name for name in _CHOSEN if name in fitted):
        _check_chosen(chosen, fitted[chosen], outputs)


def _check_chosen(name: str, value: Any, outputs: int) -> None:
    number = outputs == 1 and isinstance(value, float)
    _demand(
        number or (_is_array(value, "f", 1) and len(value) == outputs),
        f"{name!r} must be a float, or one for each of more than two classes",
    )
    numbers = np.asarray(value)
    _demand(bool(np.all((numbers >= 0) & (numbers < np.inf))), f"{name!r} must be >= 0")


def _check_features(fitted: Fitted, width: int | None, known_from: str) -> None:
    count = fitted["n_features_in_"]
    _demand(type(count) is not bool and isinstance(count, int | np.integer), "'n_features_in_'")
    width = int(count) if width is None else width
    _demand(count == width >= 1, f"'n_features_in_' must be {known_from}")
    if "feature_names_in_" in fitted:
        names = fitted["feature_names_in_"]
        _demand(
            _is_array(names, "UO", 1) and len(set(names.tolist())) == len(names) == width,
            f"'feature_names_in_' must be {width} different names",
        )
    _check_iterations(fitted.get("n_iter_", 0))
    for name in ("largest_offset_", *_CHOSEN):
        chosen = np.asarray(fitted.get(name, 0.0))
        _demand(bool(np.all(chosen >= 0)), f"{name!r} must be numbers >= 0")


def _check_gamma(fitted: Fitted, *, wanted: bool) -> None:
    gamma = fitted["gamma_"]
    if not wanted:
        _demand(gamma is None, "'gamma_' must be None: the kernel has none")
        return
    number = isinstance(gamma, int | float) and not isinstance(gamma, bool)
    _demand(number and 0 < gamma < np.inf, "'gamma_' must be a number > 0")


def _check_scaling(fitted: Fitted) -> None:
    _check_per_feature(fitted, "feature_centre_")
    _check_finite(fitted, "feature_centre_")
    _check_scale(fitted)


def _check_scale(fitted: Fitted) -> None:
    _check_per_feature(fitted, "feature_scale_")
    # infinite for a constant feature
    _demand(bool(np.all(fitted["feature_scale_"] > 0)), "'feature_scale_' must be > 0")


def _check_per_feature(fitted: Fitted, name: str) -> None:
    value, width = fitted[name], fitted["n_features_in_"]
    fits = _is_array(value, "f", 1) and value.size == width
    _demand(fits, f"{name!r} must be floats, one a feature")


def _check_iterations(count: Any) -> None:
    valid = isinstance(count, int | np.integer) or _is_array(count, "iu", 1)
    _demand(valid and bool(np.all(np.asarray(count) >= 0)), "'n_iter_' must count iterations")


def _check_finite(fitted: Fitted, name: str) -> None:
    value = fitted[name]
    is_sparse: bool = sp.issparse(value)
    numbers = value.data if is_sparse else value
    finite = numbers.dtype.kind != "f" or bool(np.isfinite(numbers).all())
    _demand(finite, f"{name!r} must be finite numbers")
    wide = numbers.dtype.kind != "f" or numbers.dtype.itemsize in _FLOAT_BYTES
    _demand(wide, f"{name!r} must be of type float32 or float64")


def _is_array(value: Any, kinds: str, ndim: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.ndim == ndim


def _demand(holds: bool, sentence: str) -> None:
    if not holds:
        raise ModelFileError(sentence)


# -- the forms ------------------------------------------------------------------------------------

_SUPPORT = ("dual_coef_", "support_")
_VECTORS = (*_SUPPORT, "support_vectors_", "gamma_", *_ALWAYS)

LINEAR = ModelForm(("coef_", *_ALWAYS), _OF_LINEAR, _check_linear)
WEIGHTED = ModelForm(("coef_", *_SUPPORT, *_ALWAYS), _OF_LINEAR, _check_weighted)
NONLINEAR = ModelForm(_VECTORS, _PERHAPS, _check_with_gamma)
WITHOUT_GAMMA = ModelForm(_VECTORS, _PERHAPS, _check_without_gamma)
PRECOMPUTED = ModelForm(_VECTORS, _PERHAPS, _check_precomputed)


def _scaled(form: ModelForm) -> ModelForm:
    def check(fitted: Fitted) -> None:
        form.check(fitted)
        _check_scaling(fitted)

    return ModelForm((*form.required, *_SCALING), form.optional, check)
