"""The fitted attributes of an estimator as JSON and arrays, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import ModelFileError
from proxmargin.files.models.forms import ModelForm
from proxmargin.files.npy import NUMBERS, array_from, bytes_of
from proxmargin.files.tables.npz import csr_fault

Fitted: TypeAlias = dict[str, Any]

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
    """The learned attributes of an estimator.

    Raises
    ------
    ModelFileError
        The estimator is not fitted.
    """
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
