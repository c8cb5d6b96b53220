"""Constructor parameters as plain JSON and back, with nothing lost and nothing executed.

JSON has no tuples, no keys but strings, no infinities and no objects. Each is an object with one
tag: ``{"tuple": [...]}``, ``{"entries": [[key, value], ...]}``, ``{"float": "nan"}``,
``{"array": [...], "type": "<i8"}`` for one row of numbers or strings,
``{"part": "Ridge", "settings": {...}}``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass
from functools import cache, singledispatch
from inspect import isabstract
from typing import Any, TypeAlias, get_args, get_type_hints

import numpy as np

from proxmargin.certificates.certificate import Certificate, CertificateList
from proxmargin.estimators.registry import MODELS, model_names
from proxmargin.files.errors import ModelFileError, listed

# name in the file -> (module, attribute)
Allowed = dict[str, tuple[str, str]]

ESTIMATORS: Allowed = {name: ("proxmargin", name) for name in sorted(model_names())}

# estimators that hold other estimators, of any library: what to do instead
COMPOSED: Mapping[str, str] = {
    name: model.instead_of_saving for name, model in MODELS.items() if model.instead_of_saving
}
# no models of one set of coefficients: what to do instead
OTHERS: Mapping[str, str] = {
    "StabilitySelection": "write its to_frame() as CSV, and save a model of the stable features",
    "CalibratedMargin": "save its estimator, fitted to all samples, and calibrate the loaded one "
    "again: CalibratedMargin(load_model(path)).fit(X, y)",
}

# the packages of kernels, losses and penalties, and the table of solvers, which knows them all
_PART_HOMES = (
    "proxmargin.kernels",
    "proxmargin.losses",
    "proxmargin.penalties",
    "proxmargin.solvers.names",
)


@cache
def parts() -> Allowed:
    """Losses, penalties, kernels and solvers: the dataclasses there that are `is_portable`."""
    return {
        name: (home, name)
        for home in _PART_HOMES
        for name, value in vars(importlib.import_module(home)).items()
        if _is_part(value)
    }


def _is_part(value: object) -> bool:
    concrete = isinstance(value, type) and is_dataclass(value) and not isabstract(value)
    return concrete and getattr(value, "is_portable", False)


def named(allowed: Mapping[str, tuple[str, str]], name: str) -> type | None:
    """The class of that name, or None where the list does not have it."""
    if name not in allowed:
        return None
    module, attribute = allowed[name]
    found: type = getattr(importlib.import_module(module), attribute)
    return found


def is_known(allowed: Mapping[str, tuple[str, str]], value: object) -> bool:
    """Whether the object is exactly of a listed class (a subclass would come back changed)."""
    return named(allowed, type(value).__name__) is type(value)


# kinds of arrays that are stored
_ARRAYS = frozenset("biufU")
# their types as they are written, with the length of strings
_ARRAY_TYPE = re.compile(r"[<>|=]?(?:[biuf][1248]|U(\d{1,4}))")
# limit for the bytes of all strings in arrays, each as long as the longest of its array
_MAX_TEXT_BYTES = 2**28


@singledispatch
def to_plain(value: Any, where: str) -> Any:
    """The value as JSON can hold it.

    Raises
    ------
    ModelFileError
        The value cannot be stored; the message names the parameter `where` it was found.
    """
    if not is_known(parts(), value):
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
        found = {key: value for key, value in pairs}  # noqa: C416  (checks that these are pairs)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{where!r} is no dictionary ({error})") from error
    if len(found) != len(pairs):
        raise ModelFileError(f"{where!r} has a key twice")
    return found


def _array(plain: dict[str, Any], where: str) -> Any:
    entries = from_plain(_expect(plain["array"], list, where), where)
    word = _expect(plain["type"], str, where)
    if not _ARRAY_TYPE.fullmatch(word):
        raise ModelFileError(f"{where!r} is no array of numbers or strings, but of {word!r:.80}")
    try:
        found = np.array(entries, dtype=word)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{where!r} is no array of {word!r} ({error})") from error
    if found.ndim != 1 or repr(to_plain(found, where)["array"]) != repr(plain["array"]):
        raise ModelFileError(f"{where!r} is no row of entries of the type {word!r}")
    return found


def _float(plain: dict[str, Any], where: str) -> float:
    word = plain["float"]
    if word not in ("nan", "inf", "-inf"):
        raise ModelFileError(f"{where!r} holds {word!r} instead of a number")
    return float(word)


def _part(plain: dict[str, Any], where: str) -> Any:
    name = _expect(plain["part"], str, where)
    kind = named(parts(), name)
    if kind is None:
        raise ModelFileError(f"{where!r} names {name!r}, which is no part of the library")
    fields = {field.name for field in dataclasses.fields(kind) if field.init}
    settings = complete_settings(plain["settings"], fields, name)
    unfit = [field for field, value in settings.items() if not _fits(value, _hints(kind)[field])]
    if unfit:
        raise ModelFileError(f"{where!r} is no valid {name}: {unfit[0]} is of another type")
    try:
        return kind(**settings)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{where!r} is no valid {name} ({error})") from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is of the type of a field; nested parts check their own fields."""
    kinds = get_args(hint) or (hint,)
    if not all(kind in _PLAIN_TYPES for kind in kinds):
        return True
    return any(type(value) in _PLAIN_TYPES[kind] for kind in kinds)


_PLAIN_TYPES: dict[Any, tuple[type, ...]] = {
    float: (int, float),
    int: (int,),
    bool: (bool,),
    str: (str,),
    type(None): (type(None),),
}

_DECODERS: dict[frozenset[str], Callable[[dict[str, Any], str], Any]] = {
    frozenset({"tuple"}): _tuple,
    frozenset({"entries"}): _entries,
    frozenset({"array", "type"}): _array,
    frozenset({"float"}): _float,
    frozenset({"part", "settings"}): _part,
}


def complete_settings(plain: Any, names: Collection[str], what: str) -> dict[str, Any]:
    """Keyword arguments from their JSON form: each of the names, and no other.

    Raises
    ------
    ModelFileError
        Names are missing or unknown, or a value is nothing that `to_plain` writes.
    """
    given = set(_expect(plain, dict, f"settings of {what}"))
    unknown, missing = sorted(given - set(names)), sorted(set(names) - given)
    if unknown:
        raise ModelFileError(f"{what} has no parameters {listed(unknown)} in this version")
    if missing:
        raise ModelFileError(f"the settings of {what} lack {listed(missing)}")
    if _text_bytes(plain) > _MAX_TEXT_BYTES:
        raise ModelFileError(f"the settings of {what} have strings of an excessive size")
    return {name: from_plain(value, name) for name, value in plain.items()}


def _text_bytes(plain: Any) -> int:
    """Bytes of the strings in arrays, as their types declare them."""
    if isinstance(plain, list):
        return sum(map(_text_bytes, plain))
    if not isinstance(plain, dict):
        return 0
    entries, word = plain.get("array"), plain.get("type")
    declared = _ARRAY_TYPE.fullmatch(word) if isinstance(word, str) else None
    if declared and declared[1] and isinstance(entries, list):
        return 4 * int(declared[1]) * len(entries)
    return sum(map(_text_bytes, plain.values()))


def _expect(plain: Any, kind: type, where: str) -> Any:
    if not isinstance(plain, kind):
        raise ModelFileError(f"{where!r} should be a {kind.__name__}")
    return plain


AnyCertificate: TypeAlias = Certificate | CertificateList


def certificate_to_plain(certificate: AnyCertificate) -> Any:
    """One object for one problem, a list for one problem per class."""
    if isinstance(certificate, CertificateList):
        return [_one_to_plain(one) for one in certificate]
    return _one_to_plain(certificate)


def certificate_from_plain(plain: Any) -> AnyCertificate:
    """The certificate that was stored.

    Raises
    ------
    ModelFileError
        A field is missing, unknown or of the wrong type.
    """
    if isinstance(plain, list) and plain:
        return CertificateList([_one_from_plain(one) for one in plain])
    return _one_from_plain(plain)


@cache
def _fields() -> dict[str, type]:
    return get_type_hints(Certificate)


def _one_to_plain(certificate: Certificate) -> dict[str, Any]:
    return {
        name: to_plain(getattr(certificate, name), f"certificate_.{name}") for name in _fields()
    }


def _one_from_plain(plain: Any) -> Certificate:
    if not isinstance(plain, dict) or set(plain) != set(_fields()):
        raise ModelFileError("the certificate does not have the fields of a certificate")
    return Certificate(**{name: _field(plain[name], name, t) for name, t in _fields().items()})


def _field(plain: Any, name: str, kind: type) -> Any:
    value = from_plain(plain, name)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise ModelFileError(f"the certificate's {name} should be a {kind.__name__}")
    return value
