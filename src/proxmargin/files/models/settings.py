"""Constructor parameters and certificates as plain JSON and back, and the classes they may name.

To the tags of `proxmargin.solvers.resuming.codec` come ``{"array": [...], "type": "<i8"}`` for one
row of numbers or strings, and ``{"part": "Ridge", "settings": {...}}``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from functools import cache
from inspect import isabstract
from typing import Any, TypeAlias, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import ModelFileError, listed
from proxmargin.models.fitting.registry import MODELS, model_names
from proxmargin.optimality.certificates.certificate import Certificate, CertificateList
from proxmargin.solvers.resuming.codec import COMMON, PLAIN, Codec

ESTIMATORS = tuple(sorted(model_names()))

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
    "proxmargin.data.kernels",
    "proxmargin.losses",
    "proxmargin.penalties",
    "proxmargin.solvers.choice.names",
)


@cache
def parts() -> dict[str, type]:
    """Losses, penalties, kernels and solvers: the dataclasses there that are `is_portable`."""
    return {
        name: value
        for home in _PART_HOMES
        for name, value in vars(importlib.import_module(home)).items()
        if isinstance(value, type) and is_dataclass(value) and not isabstract(value)
        if getattr(value, "is_portable", False)
    }


# types of arrays as they are written, with the length of strings
_ARRAY_TYPE = re.compile(r"[<>|=]?(?:[biuf][1248]|U(\d{1,4}))")
# limit for the bytes of all strings in arrays, each as long as the longest of its array
_MAX_TEXT_BYTES = 2**28


class SettingsCodec(Codec):
    """Parameters, with the parts of the library among them."""

    Error = ModelFileError

    def _encode_number(self, value: np.generic, where: str) -> Any:
        plain = value.item()
        # a long double has no Python counterpart, and JSON no complex number
        if isinstance(plain, np.generic) or not isinstance(plain, int | float):
            raise ModelFileError(f"The parameter {where!r} cannot be stored: use a Python number.")
        return self.encode(plain, where)

    def _encode_array(self, value: NDArray[Any], where: str) -> Any:
        if value.ndim != 1 or value.dtype.kind not in PLAIN:
            raise ModelFileError(
                f"The parameter {where!r} cannot be stored: it is an array of {value.dtype} with "
                f"{value.ndim} dimensions; one row of numbers or strings can."
            )
        return {"array": self.encode(value.tolist(), where), "type": value.dtype.str}

    def _encode_object(self, value: Any, where: str) -> Any:
        kind = type(value)
        if parts().get(kind.__name__) is not kind:  # a derived class would come back changed
            what = "a function" if inspect.isroutine(value) else f"of type {kind.__qualname__}"
            raise ModelFileError(
                f"The parameter {where!r} cannot be stored: it is {what}; numbers, strings, None, "
                "lists, tuples, dicts and the library's own losses, penalties, kernels and solvers "
                "can."
            )
        names = [field.name for field in dataclasses.fields(value) if field.init]
        settings = {name: self.encode(getattr(value, name), f"{where}.{name}") for name in names}
        return {"part": kind.__name__, "settings": settings}

    def _decode_array(self, where: str, plain: dict[str, Any]) -> Any:
        entries = self.decode(self.expect(plain["array"], list, where), where)
        word = self.expect(plain["type"], str, where)
        if not _ARRAY_TYPE.fullmatch(word):
            raise ModelFileError(
                f"{where!r} is no array of numbers or strings, but of {word!r:.80}"
            )
        try:
            found = np.array(entries, dtype=word)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"{where!r} is no array of {word!r} ({error})") from error
        if found.ndim != 1 or repr(self.encode(found, where)["array"]) != repr(plain["array"]):
            raise ModelFileError(f"{where!r} is no row of entries of the type {word!r}")
        return found

    def _decode_part(self, where: str, plain: dict[str, Any]) -> Any:
        name = self.expect(plain["part"], str, where)
        kind: Any = parts().get(name)
        if kind is None:
            raise ModelFileError(f"{where!r} names {name!r}, which is no part of the library")
        fields = {field.name for field in dataclasses.fields(kind) if field.init}
        settings, hints = complete_settings(plain["settings"], fields, name), _hints(kind)
        unfit = [field for field, value in settings.items() if not _fits(value, hints[field])]
        if unfit:
            raise ModelFileError(f"{where!r} is no valid {name}: {unfit[0]} is of another type")
        try:
            return kind(**settings)
        except (TypeError, ValueError) as error:
            raise ModelFileError(f"{where!r} is no valid {name} ({error})") from error

    decoders = {
        **COMMON,
        frozenset({"array", "type"}): _decode_array,
        frozenset({"part", "settings"}): _decode_part,
    }


CODEC = SettingsCodec()
_hints = cache(get_type_hints)

_PLAIN_TYPES: dict[Any, tuple[type, ...]] = {
    float: (int, float),
    int: (int,),
    bool: (bool,),
    str: (str,),
    type(None): (type(None),),
}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is of the type of a field; nested parts check their own fields."""
    kinds = get_args(hint) or (hint,)
    if not all(kind in _PLAIN_TYPES for kind in kinds):
        return True
    return any(type(value) in _PLAIN_TYPES[kind] for kind in kinds)


def complete_settings(plain: Any, names: Collection[str], what: str) -> dict[str, Any]:
    """Keyword arguments from their JSON form: each of the names, and no other. Raises
    ModelFileError: names are missing or unknown, or a value is nothing that the codec writes."""
    given = set(CODEC.expect(plain, dict, f"settings of {what}"))
    unknown, missing = sorted(given - set(names)), sorted(set(names) - given)
    if unknown:
        raise ModelFileError(f"{what} has no parameters {listed(unknown)} in this version")
    if missing:
        raise ModelFileError(f"the settings of {what} lack {listed(missing)}")
    if _text_bytes(plain) > _MAX_TEXT_BYTES:
        raise ModelFileError(f"the settings of {what} have strings of an excessive size")
    return {name: CODEC.decode(value, name) for name, value in plain.items()}


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


AnyCertificate: TypeAlias = Certificate | CertificateList


def certificate_to_plain(certificate: AnyCertificate) -> Any:
    """One object for one problem, a list for one problem per class."""
    if isinstance(certificate, CertificateList):
        return [certificate_to_plain(one) for one in certificate]
    names = [field.name for field in dataclasses.fields(Certificate)]
    return {
        name: CODEC.encode(getattr(certificate, name), f"certificate_.{name}") for name in names
    }


def certificate_from_plain(plain: Any) -> AnyCertificate:
    """The certificate that was stored. Raises ModelFileError: a field is missing, unknown or of the
    wrong type."""
    if isinstance(plain, list) and plain:
        return CertificateList([_one_certificate(one) for one in plain])
    return _one_certificate(plain)


def _one_certificate(plain: Any) -> Certificate:
    kinds = _hints(Certificate)
    if not isinstance(plain, dict) or set(plain) != set(kinds):
        raise ModelFileError("the certificate does not have the fields of a certificate")
    values = {name: CODEC.decode(plain[name], name) for name in kinds}
    for name, kind in kinds.items():
        if kind is float and type(values[name]) is int:
            values[name] = float(values[name])
        if type(values[name]) is not kind:
            raise ModelFileError(f"the certificate's {name} should be a {kind.__name__}")
    return Certificate(**values)
