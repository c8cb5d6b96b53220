"""The fitted attributes of models by kind: as JSON and arrays, back, and whether they are sound.

Linear models have coefficients; models of the kernel family also weights of support vectors. With a
nonlinear kernel there are no coefficients: predictions need the support vectors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import ModelFileError
from proxmargin.files.npy import NUMBERS, array_from, bytes_of
from proxmargin.files.tables.matrices import csr_fault
from proxmargin.kernels import Kernel, Precomputed

Fitted: TypeAlias = dict[str, Any]

_ALWAYS = ("intercept_", "classes_", "n_features_in_")
_CHOSEN = ("nu_", "kappa_")  # parameters of the loss that were given as words or shares
_PERHAPS = ("feature_names_in_", "n_iter_", "largest_offset_", *_CHOSEN)
_SCALING = ("feature_centre_", "feature_scale_")
# of a linear model that was standardised, which predicts without them
_OF_LINEAR = (*_PERHAPS, "feature_scale_")
_FLOAT_BYTES = (4, 8)


@dataclass(frozen=True)
class ModelForm:
    """The attributes of one kind of model."""

    # required, optional: names of attributes
    required: tuple[str, ...]
    optional: tuple[str, ...]
    # refuses attributes that contradict each other, with a `ModelFileError` that says which
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


_COMPRESSED: Mapping[str, Any] = {
    kind.__name__: kind for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)
}
_COMPRESSED_PARTS: Mapping[str, frozenset[str]] = {
    "data": frozenset("f"),
    "indices": frozenset("i"),
    "indptr": frozenset("i"),
}
# A fixed-width string array needs rows x the longest string; a damaged file may declare any.
_MAX_TEXT_BYTES = 2**28


def collect(estimator: Any, form: ModelForm) -> Fitted:
    """The learned attributes of an estimator. Raises ModelFileError: the estimator is not
    fitted."""
    missing = [name for name in form.required if not hasattr(estimator, name)]
    if missing:
        raise ModelFileError(
            f"This {type(estimator).__name__} is not fitted (it has no {', '.join(missing)}); "
            "call fit before saving it."
        )
    names = form.required + form.optional
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def member_of(name: str) -> str:
    """The archive member that holds an array attribute."""
    return f"{name}.npy"


def to_members(fitted: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The attributes as JSON, and the arrays among them as archive members."""
    plain = {name: _to_plain(name, value) for name, value in fitted.items()}
    arrays: dict[str, bytes] = {}
    for name, value in fitted.items():
        if sp.issparse(value):
            parts = {part: getattr(value, part) for part in _COMPRESSED_PARTS}
            arrays.update({member_of(f"{name}.{k}"): bytes_of(v) for k, v in parts.items()})
        elif plain[name] == {"array": member_of(name)}:
            arrays[member_of(name)] = bytes_of(value)
    return plain, arrays


def _to_plain(name: str, value: Any) -> Any:
    if sp.issparse(value):
        return _compressed(name, value)
    if not isinstance(value, np.ndarray):
        return _number(name, value)
    if value.dtype.kind in NUMBERS:
        return {"array": member_of(name)}
    strings = value.tolist()
    if value.ndim != 1 or not all(type(item) is str for item in strings):
        raise ModelFileError(
            f"The attribute {name!r} cannot be stored: only numbers and strings can, "
            f"and it is an array of {value.dtype}."
        )
    return {"text": strings, "dtype": value.dtype.kind}


def _compressed(name: str, value: Any) -> dict[str, Any]:
    kind = type(value).__name__
    if _COMPRESSED.get(kind) is not type(value):
        raise ModelFileError(f"The attribute {name!r} cannot be stored: it is a {kind}.")
    return {"sparse": kind, "shape": [int(size) for size in value.shape]}


def _number(name: str, value: Any) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    raise ModelFileError(
        f"The attribute {name!r} cannot be stored: it is of type {type(value).__qualname__}."
    )


def array_members(plain: Mapping[str, Any]) -> set[str]:
    """The archive members that the JSON form refers to."""
    members = set()
    for name, value in plain.items():
        if isinstance(value, dict) and "array" in value:
            members.add(member_of(name))
        if isinstance(value, dict) and "sparse" in value:
            members.update(member_of(f"{name}.{part}") for part in _COMPRESSED_PARTS)
    return members


def from_members(plain: Any, read: Callable[[str], bytes], form: ModelForm) -> Fitted:
    """The attributes from their JSON form and the archive's members."""
    if not isinstance(plain, dict) or not set(plain) <= {*form.required, *form.optional}:
        raise ModelFileError("it lists unknown fitted attributes")
    missing = [name for name in form.required if name not in plain]
    if missing:
        raise ModelFileError(f"it lacks {', '.join(missing)}")
    return {name: _from_plain(name, value, read) for name, value in plain.items()}


def _from_plain(name: str, plain: Any, read: Callable[[str], bytes]) -> Any:
    if plain is None or type(plain) in (int, float):
        return plain
    if plain == {"array": member_of(name)}:
        return _array(name, read, NUMBERS)
    if isinstance(plain, dict) and set(plain) == {"sparse", "shape"}:
        return _sparse(name, plain["sparse"], plain["shape"], read)
    if isinstance(plain, dict) and set(plain) == {"text", "dtype"}:
        return _text_array(name, plain["text"], plain["dtype"])
    raise ModelFileError(f"{name!r} has an unknown form")


def _array(name: str, read: Callable[[str], bytes], kinds: Collection[str]) -> NDArray[Any]:
    try:
        return array_from(read(member_of(name)), kinds)
    except ModelFileError:
        raise
    except ValueError as error:
        raise ModelFileError(f"the array {name!r} cannot be used: {error}") from error


def _sparse(name: str, kind: Any, shape: Any, read: Callable[[str], bytes]) -> Any:
    sizes = shape if isinstance(shape, list) else []
    valid = len(sizes) == 2 and all(type(size) is int and 0 <= size < 2**63 for size in sizes)
    if not valid or not isinstance(kind, str) or kind not in _COMPRESSED:
        raise ModelFileError(f"{name!r} has an unknown form")
    data, indices, indptr = (
        _array(f"{name}.{part}", read, kinds) for part, kinds in _COMPRESSED_PARTS.items()
    )
    lines = np.array(sizes if kind.startswith("csr") else sizes[::-1])
    flat = all(part.ndim == 1 for part in (data, indices, indptr))
    if not flat or csr_fault(data, indices, indptr, lines) is not None:
        raise ModelFileError(f"{name!r} is no valid sparse matrix")
    return _COMPRESSED[kind]((data, indices, indptr), shape=tuple(sizes))


def _text_array(name: str, strings: Any, kind: Any) -> NDArray[Any]:
    if not isinstance(strings, list) or not all(type(item) is str for item in strings):
        raise ModelFileError(f"{name!r} should be a list of strings")
    if kind == "U" and 4 * len(strings) * max(map(len, strings), default=0) <= _MAX_TEXT_BYTES:
        words = np.array(strings, dtype=str)
        if words.tolist() != strings:  # NUL characters at an end get lost
            raise ModelFileError(f"{name!r} has strings that end in NUL characters")
        return words
    if kind == "O":
        return np.array(strings, dtype=object)
    raise ModelFileError(f"{name!r} has strings of an unknown or excessive size")
