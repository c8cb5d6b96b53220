"""What a fitted estimator has learned: which attributes are stored, and how they fit together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import ModelFileError
from proxmargin.files.npy import NUMBERS, array_from, bytes_of

Fitted: TypeAlias = dict[str, Any]

_REQUIRED = ("coef_", "intercept_", "classes_", "n_features_in_")
_OPTIONAL = ("feature_names_in_", "n_iter_")
# A fixed-width string array needs rows x the longest string; a damaged file may declare any.
_MAX_TEXT_BYTES = 2**28


def collect(estimator: Any) -> Fitted:
    """The learned attributes of an estimator.

    Raises
    ------
    ModelFileError
        The estimator is not fitted.
    """
    missing = [name for name in _REQUIRED if not hasattr(estimator, name)]
    if missing:
        raise ModelFileError(
            f"This {type(estimator).__name__} is not fitted (it has no {', '.join(missing)}); "
            "call fit before saving it."
        )
    return {
        name: getattr(estimator, name) for name in _REQUIRED + _OPTIONAL if hasattr(estimator, name)
    }


def member_of(name: str) -> str:
    """The archive member that holds an array attribute."""
    return f"{name}.npy"


def to_members(fitted: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The attributes as JSON, and the arrays among them as archive members."""
    plain = {name: _to_plain(name, value) for name, value in fitted.items()}
    arrays = {
        member_of(name): bytes_of(value)
        for name, value in fitted.items()
        if plain[name] == {"array": member_of(name)}
    }
    return plain, arrays


def _to_plain(name: str, value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return _count(name, value)
    if value.dtype.kind in NUMBERS:
        return {"array": member_of(name)}
    strings = value.tolist()
    if value.ndim != 1 or not all(type(item) is str for item in strings):
        raise ModelFileError(
            f"The attribute {name!r} cannot be stored: only numbers and strings can, "
            f"and it is an array of {value.dtype}."
        )
    return {"text": strings, "dtype": value.dtype.kind}


def _count(name: str, value: Any) -> int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise ModelFileError(
        f"The attribute {name!r} cannot be stored: it is of type {type(value).__qualname__}."
    )


def array_members(plain: Mapping[str, Any]) -> set[str]:
    """The archive members that the JSON form refers to."""
    return {
        member_of(name)
        for name, value in plain.items()
        if isinstance(value, dict) and "array" in value
    }


def from_members(plain: Any, read: Callable[[str], bytes]) -> Fitted:
    """The attributes from their JSON form and the archive's members."""
    if not isinstance(plain, dict) or not set(plain) <= {*_REQUIRED, *_OPTIONAL}:
        raise ModelFileError("it lists unknown fitted attributes")
    missing = [name for name in _REQUIRED if name not in plain]
    if missing:
        raise ModelFileError(f"it lacks {', '.join(missing)}")
    return {name: _from_plain(name, value, read) for name, value in plain.items()}


def _from_plain(name: str, plain: Any, read: Callable[[str], bytes]) -> Any:
    if type(plain) is int:
        return plain
    if plain == {"array": member_of(name)}:
        try:
            return array_from(read(member_of(name)), NUMBERS)
        except ModelFileError:
            raise
        except ValueError as error:
            raise ModelFileError(f"the array {name!r} cannot be used: {error}") from error
    if isinstance(plain, dict) and set(plain) == {"text", "dtype"}:
        return _text_array(name, plain["text"], plain["dtype"])
    raise ModelFileError(f"{name!r} has an unknown form")


def _text_array(name: str, strings: Any, kind: Any) -> NDArray[Any]:
    if not isinstance(strings, list) or not all(type(item) is str for item in strings):
        raise ModelFileError(f"{name!r} should be a list of strings")
    if kind == "U" and 4 * len(strings) * max(map(len, strings), default=0) <= _MAX_TEXT_BYTES:
        return np.array(strings, dtype=str)
    if kind == "O":
        return np.array(strings, dtype=object)
    raise ModelFileError(f"{name!r} has strings of an unknown or excessive size")


def check(fitted: Mapping[str, Any]) -> None:
    """Refuse attributes that contradict each other.

    Raises
    ------
    ModelFileError
        The message says which two do.
    """
    coef, intercept, classes = (fitted[name] for name in ("coef_", "intercept_", "classes_"))
    _demand(_is_array(coef, "f", 2), "'coef_' must be floats of shape (n_outputs, n_features)")
    _demand(_is_array(intercept, "f", 1), "'intercept_' must be floats of shape (n_outputs,)")
    _demand(_is_array(classes, "fiubUO", 1), "'classes_' must be one row of labels")
    _demand(
        len(classes) >= 2 and len(set(classes.tolist())) == len(classes),
        "'classes_' must be two or more different labels",
    )
    outputs = 1 if len(classes) == 2 else len(classes)
    _demand(coef.shape[0] == outputs, f"{len(classes)} classes need {outputs} rows of 'coef_'")
    _demand(intercept.shape[0] == outputs, f"'intercept_' must have {outputs} entries")
    _check_features(fitted, coef.shape[1])
    _check_iterations(fitted.get("n_iter_", 0))


def _check_features(fitted: Mapping[str, Any], width: int) -> None:
    count = fitted["n_features_in_"]
    _demand(type(count) is not bool and count == width, "'n_features_in_' must be coef_'s width")
    if "feature_names_in_" in fitted:
        names = fitted["feature_names_in_"]
        _demand(
            _is_array(names, "UO", 1) and len(set(names.tolist())) == len(names) == width,
            f"'feature_names_in_' must be {width} different names",
        )


def _check_iterations(count: Any) -> None:
    valid = isinstance(count, int | np.integer) or _is_array(count, "iu", 1)
    _demand(valid and bool(np.all(np.asarray(count) >= 0)), "'n_iter_' must count iterations")


def _is_array(value: Any, kinds: str, ndim: int) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.ndim == ndim


def _demand(holds: bool, sentence: str) -> None:
    if not holds:
        raise ModelFileError(sentence)
