"""The fitted attributes of models by kind: as JSON and arrays, back, and whether they are sound.

Linear models have coefficients; models of the kernel family also weights of support vectors. With a
nonlinear kernel there are no coefficients: predictions need the support vectors.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from proxmargin.data.kernels import Kernel, Precomputed
from proxmargin.files.errors import ModelFileError
from proxmargin.files.tables.matrices import NUMBERS, array_from, bytes_of, csr_fault
from proxmargin.runtime.types import Estimator, Facts, Matrix, Record, Values
from proxmargin.solvers.resuming.codec import SPARSE

Fitted: TypeAlias = Record

_ALWAYS = ("intercept_", "classes_", "n_features_in_")
_CHOSEN = ("nu_", "kappa_")  # parameters of the loss that were given as words or shares
_PERHAPS = ("feature_names_in_", "n_iter_", "largest_offset_", *_CHOSEN)
_SCALING = ("feature_centre_", "feature_scale_")
# of a linear model that was standardised, which predicts without them
_OF_LINEAR = (*_PERHAPS, "feature_scale_")
_SUPPORT = ("dual_coef_", "support_")
_VECTORS = (*_SUPPORT, "support_vectors_", "gamma_", *_ALWAYS)
_FLOAT_BYTES = (4, 8)
# arrays of floats: their dimensions, and what they are
_FLOATS = {
    "coef_": (2, " of shape (n_outputs, n_features)"),
    "dual_coef_": (2, " of shape (n_outputs, n)"),
    "intercept_": (1, " of shape (n_outputs,)"),
    **dict.fromkeys(_SCALING, (1, ", one a feature")),
}
# the arrays of a sparse matrix, and kinds of their types
_SPARSE_PARTS: Mapping[str, frozenset[str]] = {
    "data": frozenset("f"),
    "indices": frozenset("i"),
    "indptr": frozenset("i"),
}
# A fixed-width string array needs rows x the longest string; a damaged file may declare any.
_MAX_TEXT_BYTES = 2**28


@dataclass(frozen=True)
class ModelForm:
    """The names of the attributes of one kind of model."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    has_gamma: bool = False
    of_numbers: bool = False  # whether support vectors are the numbers of samples

    def check(self, fitted: Fitted) -> None:
        """Refuse attributes that contradict each other; raises ModelFileError that says which."""
        classes, width = fitted["classes_"], fitted["n_features_in_"]
        demand(is_array(classes, "fiubUO", 1), "'classes_' must be one row of labels")
        _check_finite(classes, "classes_")
        count = len(set(classes.tolist()))
        demand(2 <= count == len(classes), "'classes_' must be two or more different labels")
        outputs = 1 if count == 2 else count
        for name, (ndim, shape) in _FLOATS.items():
            if name in fitted:
                value = fitted[name]
                demand(is_array(value, "f", ndim), f"{name!r} must be floats{shape}")
                if name != "feature_scale_":  # infinite for a constant feature
                    _check_finite(value, name)
                if name in _SCALING:
                    demand(value.size == width, f"{name!r} must be floats, one a feature")
                elif name == "intercept_":
                    demand(value.size == outputs, f"'intercept_' must have {outputs} entries")
                else:
                    rows = f"{count} classes need {outputs} rows of {name!r}"
                    demand(value.shape[0] == outputs, rows)
        demand(bool(np.all(fitted.get("feature_scale_", 1.0) > 0)), "'feature_scale_' must be > 0")
        columns, known_from = self._columns(fitted)
        is_count = type(width) is not bool and isinstance(width, int | np.integer)
        demand(is_count and width == columns >= 1, f"'n_features_in_' must be {known_from}")
        if "feature_names_in_" in fitted:
            names = fitted["feature_names_in_"]
            whole = is_array(names, "UO", 1) and len(set(names.tolist())) == len(names) == width
            demand(whole, f"'feature_names_in_' must be {width} different names")
        if "gamma_" in self.required:
            gamma = fitted["gamma_"]
            number = isinstance(gamma, int | float) and not isinstance(gamma, bool)
            fits = number and 0 < gamma < np.inf if self.has_gamma else gamma is None
            demand(fits, f"'gamma_' must be {'a number > 0' if self.has_gamma else 'None'}")
        for name in (name for name in _CHOSEN if name in fitted):
            value = fitted[name]
            one_each = is_array(value, "f", 1) and len(value) == outputs
            demand(
                one_each or (outputs == 1 and isinstance(value, float)),
                f"{name!r} must be a float, or one for each of more than two classes",
            )
            numbers = np.asarray(value)
            demand(bool(np.all((numbers >= 0) & (numbers < np.inf))), f"{name!r} must be >= 0")
        offsets = np.asarray(fitted.get("largest_offset_", 0.0))
        demand(bool(np.all(offsets >= 0)), "'largest_offset_' must be numbers >= 0")
        found = fitted.get("n_iter_", 0)
        counts = isinstance(found, int | np.integer) or is_array(found, "iu", 1)
        demand(counts and bool(np.all(np.asarray(found) >= 0)), "'n_iter_' must count iterations")

    def _columns(self, fitted: Fitted) -> tuple[int, str]:
        """How many features there are, and how that is known."""
        name = "coef_" if "coef_" in self.required else "support_vectors_"
        rows, width = fitted[name], fitted["n_features_in_"]
        if "support_" in self.required:
            index = fitted["support_"]
            rising = is_array(index, "iu", 1) and np.all(np.diff(index.astype(np.int64)) > 0)
            fits = rising and np.all(index >= 0)
            demand(bool(fits), "'support_' must be different samples, in their order")
            one_each = index.size == fitted["dual_coef_"].shape[1]
            demand(one_each, "'dual_coef_' must have one column a support vector")
        if self.of_numbers:
            same = is_array(rows, "iu", 1) and np.array_equal(rows, index)
            demand(same, "'support_vectors_' must be 'support_' for a precomputed kernel")
            inside = not index.size or int(index[-1]) < width
            demand(inside, "'support_' must be less than 'n_features_in_'")
            return width, "a number"
        demand(is_array(rows, "f", 2) or sp.issparse(rows), f"{name!r} must be rows of floats")
        if name == "support_vectors_":
            count = fitted["support_"].size
            demand(rows.shape[0] == count, f"{name!r} must have {count} rows")
        _check_finite(rows, name)
        return rows.shape[1], f"{name}'s width"


LINEAR = ModelForm(("coef_", *_ALWAYS), _OF_LINEAR)
WEIGHTED = ModelForm(("coef_", *_SUPPORT, *_ALWAYS), _OF_LINEAR)
WITHOUT_GAMMA = ModelForm(_VECTORS, _PERHAPS)
NONLINEAR = replace(WITHOUT_GAMMA, has_gamma=True)
PRECOMPUTED = replace(WITHOUT_GAMMA, of_numbers=True)


def form_of(estimator: Estimator) -> ModelForm:
    kernel = getattr(estimator, "kernel", None)
    if kernel is None:
        return LINEAR
    if isinstance(kernel, str) and kernel == "linear":
        return WEIGHTED
    if kernel == "precomputed" or isinstance(kernel, Precomputed):
        return PRECOMPUTED
    has_gamma = isinstance(kernel, str) or hasattr(kernel, "gamma")
    form = NONLINEAR if has_gamma or not isinstance(kernel, Kernel) else WITHOUT_GAMMA
    return replace(form, required=(*form.required, *_SCALING)) if estimator.standardize else form


def _check_finite(value: Any, name: str) -> None:
    is_sparse: bool = sp.issparse(value)
    numbers = value.data if is_sparse else value
    if numbers.dtype.kind == "f":
        demand(bool(np.isfinite(numbers).all()), f"{name!r} must be finite numbers")
        wide = numbers.dtype.itemsize in _FLOAT_BYTES
        demand(wide, f"{name!r} must be of type float32 or float64")


def is_array(value: object, kinds: str, ndim: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.ndim == ndim


def demand(holds: bool, sentence: str) -> None:
    if not holds:
        raise ModelFileError(sentence)


def collect(estimator: Estimator, form: ModelForm) -> Fitted:
    """The learned attributes of an estimator; raises ModelFileError if it is not fitted."""
    missing = [name for name in form.required if not hasattr(estimator, name)]
    if missing:
        raise ModelFileError(
            f"This {type(estimator).__name__} is not fitted (it has no {', '.join(missing)}); "
            "call fit before saving it."
        )
    names = form.required + form.optional
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def to_members(fitted: Facts) -> tuple[Record, dict[str, bytes]]:
    """The attributes as JSON, and the arrays among them as archive members."""
    plain: dict[str, object] = {}
    arrays: dict[str, bytes] = {}
    for name, value in fitted.items():
        kind = type(value).__name__
        if isinstance(value, np.ndarray) and value.dtype.kind in NUMBERS:
            plain[name] = {"array": f"{name}.npy"}
            arrays[f"{name}.npy"] = bytes_of(value)
        elif SPARSE.get(kind) is type(value):
            plain[name] = {"sparse": kind, "shape": [int(size) for size in value.shape]}
            for part in _SPARSE_PARTS:
                arrays[f"{name}.{part}.npy"] = bytes_of(getattr(value, part))
        elif is_array(value, "UO", 1) and all(type(each) is str for each in value.tolist()):
            plain[name] = {"text": value.tolist(), "dtype": value.dtype.kind}
        else:
            plain[name] = _number(name, value)
    return plain, arrays


def _number(name: str, value: Any) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    is_array = isinstance(value, np.ndarray)
    kind = f"an array of {value.dtype}" if is_array else f"a {type(value).__qualname__}"
    raise ModelFileError(
        f"The attribute {name!r} cannot be stored: numbers and strings can, and it is {kind}."
    )


def from_members(plain: object, read: Callable[[str], bytes], form: ModelForm) -> Fitted:
    if not isinstance(plain, dict) or not set(plain) <= {*form.required, *form.optional}:
        raise ModelFileError("it lists unknown fitted attributes")
    missing = [name for name in form.required if name not in plain]
    if missing:
        raise ModelFileError(f"it lacks {', '.join(missing)}")
    return {name: from_plain(name, value, read) for name, value in plain.items()}


def from_plain(name: str, plain: object, read: Callable[[str], bytes]) -> Any:
    if plain is None or type(plain) in (int, float):
        return plain
    if plain == {"array": f"{name}.npy"}:
        return _array(name, read, NUMBERS)
    if isinstance(plain, dict) and set(plain) == {"sparse", "shape"}:
        return _sparse(name, plain["sparse"], plain["shape"], read)
    if isinstance(plain, dict) and set(plain) == {"text", "dtype"}:
        return _text_array(name, plain["text"], plain["dtype"])
    raise ModelFileError(f"{name!r} has an unknown form")


def _array(name: str, read: Callable[[str], bytes], kinds: Collection[str]) -> Values:
    content = read(f"{name}.npy")
    try:
        return array_from(io.BytesIO(content), kinds, len(content))
    except ValueError as error:
        raise ModelFileError(f"the array {name!r} cannot be used: {error}") from error


def _sparse(name: str, kind: object, shape: object, read: Callable[[str], bytes]) -> Matrix:
    sizes = shape if isinstance(shape, list) else []
    valid = len(sizes) == 2 and all(type(size) is int and 0 <= size < 2**63 for size in sizes)
    if not valid or not isinstance(kind, str) or kind not in SPARSE:
        raise ModelFileError(f"{name!r} has an unknown form")
    data, indices, indptr = (
        _array(f"{name}.{part}", read, kinds) for part, kinds in _SPARSE_PARTS.items()
    )
    lines = np.array(sizes if kind.startswith("csr") else sizes[::-1])
    flat = all(part.ndim == 1 for part in (data, indices, indptr))
    if not flat or csr_fault(data, indices, indptr, lines) is not None:
        raise ModelFileError(f"{name!r} is no valid sparse matrix")
    return SPARSE[kind]((data, indices, indptr), shape=tuple(sizes))


def _text_array(name: str, strings: object, kind: object) -> Values:
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
