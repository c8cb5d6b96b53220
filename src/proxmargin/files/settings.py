"""Constructor parameters as plain JSON and back, with nothing lost and nothing executed.

JSON has no tuples, no keys but strings, no infinities and no objects. Each is an object with one
tag: ``{"tuple": [...]}``, ``{"entries": [[key, value], ...]}``, ``{"float": "nan"}``,
``{"array": [...], "type": "<i8"}`` for one row of numbers or strings,
``{"part": "Ridge", "settings": {...}}``.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from proxmargin.files import known
from proxmargin.files.errors import ModelFileError

# kinds of arrays that are stored, and the most bytes of an entry
_ARRAYS, _LARGEST_ITEM = frozenset("biufU"), 4096


@singledispatch
def to_plain(value: Any, where: str) -> Any:
    """The value as JSON can hold it.

    Raises
    ------
    ModelFileError
        The value cannot be stored; the message names the parameter `where` it was found.
    """
    if not known.is_known(known.PARTS, value):
        kind = "a function" if inspect.isroutine(value) else f"of type {type(value).__qualname__}"
        raise ModelFileError(
            f"The parameter {where!r} cannot be stored: it is {kind}; numbers, strings, None, "
            "lists, tuples, dicts and the library's own losses, penalties, kernels and solvers can."
        )
    fields = [field.name for field in dataclasses.fields(value) if field.init]
    settings = {name: to_plain(getattr(value, name), f"{where}.{name}") for name in fields}
    return {"part": type(value).__name__, "settings": settings}


@to_plain.register(type(None))
@to_plain.register(bool)
def _as_it_is(value: bool | None, where: str) -> Any:
    return value


@to_plain.register
def _(value: int, where: str) -> Any:
    return int(value)


@to_plain.register
def _(value: str, where: str) -> Any:
    return str(value)


@to_plain.register
def _(value: float, where: str) -> Any:
    return float(value) if math.isfinite(value) else {"float": repr(float(value))}


@to_plain.register
def _(value: np.bool_ | np.integer | np.floating, where: str) -> Any:
    plain = value.item()
    if isinstance(plain, np.generic):  # a long double has no Python counterpart
        raise ModelFileError(f"The parameter {where!r} cannot be stored: use a Python number.")
    return to_plain(plain, where)


@to_plain.register
def _(value: np.ndarray, where: str) -> Any:
    if value.ndim != 1 or value.dtype.kind not in _ARRAYS:
        raise ModelFileError(
            f"The parameter {where!r} cannot be stored: it is an array of {value.dtype} with "
            f"{value.ndim} dimensions; one row of numbers or strings can."
        )
    return {"array": to_plain(value.tolist(), where), "type": value.dtype.str}


@to_plain.register
def _(value: list, where: str) -> Any:  # type: ignore[type-arg]
    return [to_plain(item, f"{where}[{j}]") for j, item in enumerate(value)]


@to_plain.register
def _(value: tuple, where: str) -> Any:  # type: ignore[type-arg]
    return {"tuple": to_plain(list(value), where)}


@to_plain.register
def _(value: dict, where: str) -> Any:  # type: ignore[type-arg]
    entries = value.items()
    return {"entries": [[to_plain(k, where), to_plain(v, f"{where}[{k!r}]")] for k, v in entries]}


def from_plain(plain: Any, where: str) -> Any:
    """The value that `to_plain` turned into `plain`.

    Raises
    ------
    ModelFileError
        `plain` is nothing that `to_plain` writes.
    """
    if isinstance(plain, list):
        return [from_plain(item, where) for item in plain]
    if isinstance(plain, dict):
        decode = _DECODERS.get(frozenset(plain))
        if decode is None:
            raise ModelFileError(f"{where!r} has an unknown form with {sorted(plain)}")
        return decode(plain, where)
    return plain


def _tuple(plain: dict[str, Any], where: str) -> tuple[Any, ...]:
    return tuple(from_plain(_expect(plain["tuple"], list, where), where))


def _entries(plain: dict[str, Any], where: str) -> dict[Any, Any]:
    pairs = [from_plain(pair, where) for pair in _expect(plain["entries"], list, where)]
    try:
        return {key: value for key, value in pairs}  # noqa: C416  (checks that these are pairs)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{where!r} is no dictionary ({error})") from error


def _array(plain: dict[str, Any], where: str) -> Any:
    entries = from_plain(_expect(plain["array"], list, where), where)
    word = _expect(plain["type"], str, where)
    try:
        dtype = np.dtype(word)
        if dtype.kind not in _ARRAYS or dtype.itemsize > _LARGEST_ITEM:
            raise TypeError("numbers and strings can be stored")
        found = np.array(entries, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{where!r} is no array of {word!r} ({error})") from error
    if found.ndim != 1:
        raise ModelFileError(f"{where!r} is no row of numbers or strings")
    return found


def _float(plain: dict[str, Any], where: str) -> float:
    word = plain["float"]
    if word not in ("nan", "inf", "-inf"):
        raise ModelFileError(f"{where!r} holds {word!r} instead of a number")
    return float(word)


def _part(plain: dict[str, Any], where: str) -> Any:
    name = _expect(plain["part"], str, where)
    kind = known.named(known.PARTS, name)
    if kind is None:
        raise ModelFileError(f"{where!r} names {name!r}, which is no part of the library")
    settings = named_settings(plain["settings"], where)
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{where!r} is no valid {name} ({error})") from error


_DECODERS: dict[frozenset[str], Callable[[dict[str, Any], str], Any]] = {
    frozenset({"tuple"}): _tuple,
    frozenset({"entries"}): _entries,
    frozenset({"array", "type"}): _array,
    frozenset({"float"}): _float,
    frozenset({"part", "settings"}): _part,
}


def named_settings(plain: Any, where: str) -> dict[str, Any]:
    """Keyword arguments from their JSON form."""
    return {name: from_plain(value, name) for name, value in _expect(plain, dict, where).items()}


def _expect(plain: Any, kind: type, where: str) -> Any:
    if not isinstance(plain, kind):
        raise ModelFileError(f"{where!r} should be a {kind.__name__}")
    return plain
