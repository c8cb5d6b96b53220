"""States of solvers as JSON and plain arrays, and back bit for bit, with nothing executed.

JSON has no tuples, NumPy numbers or objects. Each is an object with one tag:
``{"tuple": [...]}``, ``{"number": [type, value]}``, ``{"array": name}``, ``{"entries": [...]}``,
``{"sparse": kind, "shape": ..., "parts": ...}``, ``{"stop": {...}, "tells": bool}``,
``{"member": [class, name]}`` of an enumeration, and ``{"record": class, "fields": {...}}`` for
the library's own records. Records are restored without calling constructors, and only of classes
that are already loaded: a name in a file causes no import.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.designs import Design
from proxmargin.loop.stopping import Stop
from proxmargin.losses import Loss
from proxmargin.problem import Problem

__all__ = ["ArrayStore", "EncodingError", "decoded", "encoded"]

OURS = "proxmargin."
# dtype kinds that need no pickle
PLAIN = frozenset("biufU")
SPARSE: Mapping[str, Any] = {
    kind.__name__: kind for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix)
}
PARTS = ("data", "indices", "indptr")
# fields of a `Stop` that belong to the run and not to its state
OF_THE_RUN = frozenset({"deadline", "most_work", "effort", "most_further_work", "callbacks"})


class ArrayStore(dict[str, NDArray[Any]]):
    """Arrays under generated names; each array is stored once."""

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[int, str] = {}

    def named(self, array: NDArray[Any]) -> str:
        """The name of the array, which is added if it is new."""
        name = self._names.setdefault(id(array), f"a{len(self)}")
        self[name] = array
        return name


class EncodingError(ValueError):
    """A value that cannot be encoded, or a text that cannot be decoded."""


def encoded(value: Any, arrays: ArrayStore) -> Any:
    """The value in JSON types; its arrays are added to ``arrays``.

    Raises
    ------
    EncodingError
        The value holds more than arrays, numbers and the library's records of them.
    """
    return _plain(value, arrays)


@singledispatch
def _plain(value: Any, arrays: ArrayStore) -> Any:
    kind = type(value)
    if isinstance(value, Problem | Design | Loss) or not kind.__module__.startswith(OURS):
        raise EncodingError(f"a {kind.__qualname__} is no array or number")
    if isinstance(value, Enum):
        return {"member": [_name(kind), value.name]}
    if not dataclasses.is_dataclass(value):
        raise EncodingError(f"a {kind.__qualname__} is no record of arrays and numbers")
    return _record(kind, _fields(value), arrays)


def _record(kind: type, values: Mapping[str, Any], arrays: ArrayStore) -> Any:
    return {
        "record": _name(kind),
        "fields": {name: _plain(value, arrays) for name, value in values.items()},
    }


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


@_plain.register(type(None))
@_plain.register(bool)
@_plain.register(int)
@_plain.register(float)
@_plain.register(str)
def _(value: Any, arrays: ArrayStore) -> Any:
    return value


@_plain.register
def _(value: np.generic, arrays: ArrayStore) -> Any:
    if value.dtype.kind not in PLAIN:
        raise EncodingError(f"a number of type {value.dtype} has no plain form")
    return {"number": [value.dtype.str, value.item()]}


@_plain.register
def _(value: np.ndarray, arrays: ArrayStore) -> Any:
    if value.dtype.kind not in PLAIN:
        raise EncodingError(f"an array of {value.dtype} has no plain form")
    return {"array": arrays.named(value)}


@_plain.register
def _(value: list, arrays: ArrayStore) -> Any:  # type: ignore[type-arg]
    return [_plain(each, arrays) for each in value]


@_plain.register
def _(value: tuple, arrays: ArrayStore) -> Any:  # type: ignore[type-arg]
    kind = type(value)
    if kind is tuple:
        return {"tuple": [_plain(each, arrays) for each in value]}
    if not (hasattr(kind, "_fields") and kind.__module__.startswith(OURS)):
        raise EncodingError(f"a {kind.__qualname__} is no record of arrays and numbers")
    return _record(kind, dict(zip(kind._fields, value, strict=True)), arrays)


@_plain.register
def _(value: dict, arrays: ArrayStore) -> Any:  # type: ignore[type-arg]
    return {"entries": [[_plain(k, arrays), _plain(v, arrays)] for k, v in value.items()]}


@_plain.register
def _(value: Stop, arrays: ArrayStore) -> Any:
    kept = {name: each for name, each in _fields(value).items() if name not in OF_THE_RUN}
    return {
        "stop": {name: _plain(each, arrays) for name, each in kept.items()},
        "tells": bool(value.callbacks),
    }


@_plain.register(sp.sparray)
@_plain.register(sp.spmatrix)
def _(value: Any, arrays: ArrayStore) -> Any:
    kind = type(value).__name__
    if kind not in SPARSE:
        raise EncodingError(f"a {kind} has no plain form")
    parts = {name: _plain(getattr(value, name), arrays) for name in PARTS}
    return {"sparse": kind, "shape": list(value.shape), "parts": parts}


def decoded(plain: Any, arrays: Mapping[str, NDArray[Any]], stop: Stop) -> Any:
    """The value that `encoded` turned into ``plain``, with the limits ``stop`` of this run.

    Raises
    ------
    EncodingError
        ``plain`` was not written by this version.
    """
    try:
        return _Decoding(arrays, stop).value(plain)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise EncodingError(f"it holds a state that this version cannot read ({error})") from error


@dataclasses.dataclass(frozen=True)
class _Decoding:
    arrays: Mapping[str, NDArray[Any]]
    stop: Stop

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(each) for each in plain]
        if isinstance(plain, dict):
            return _DECODERS[frozenset(plain)](self, **plain)
        return plain

    def tuple(self, tuple: Any) -> Any:
        return (*map(self.value, tuple),)

    def number(self, number: Any) -> Any:
        kind = np.dtype(number[0])
        if kind.kind not in PLAIN:
            raise TypeError(f"{kind} is no type of a number")
        return kind.type(number[1])

    def array(self, array: str) -> Any:
        return self.arrays[array]

    def entries(self, entries: Any) -> Any:
        return {self.value(key): self.value(value) for key, value in entries}

    def sparse(self, sparse: str, shape: Any, parts: Any) -> Any:
        found = (*(self.value(parts[name]) for name in PARTS),)
        return SPARSE[sparse](found, shape=(*shape,))

    def a_stop(self, stop: Any, tells: bool) -> Stop:
        kept = {name: self.value(each) for name, each in stop.items()}
        told = self.stop.callbacks if tells else ()
        return dataclasses.replace(self.stop, **kept, callbacks=told)

    def member(self, member: Any) -> Any:
        kind = _class(member[0])
        if not issubclass(kind, Enum):
            raise TypeError(f"{member[0]} is no enumeration")
        return kind[member[1]]

    def record(self, record: str, fields: Any) -> Any:
        kind = _class(record)
        values = {name: self.value(each) for name, each in fields.items()}
        known = _names(kind)
        if known != set(values):
            raise TypeError(f"{record} has other attributes: {sorted(known ^ set(values))}")
        if issubclass(kind, tuple):
            return tuple.__new__(kind, (values[name] for name in kind._fields))
        made = kind.__new__(kind)
        for name, each in values.items():
            # bypass the guard of frozen records, as their constructors do
            object.__setattr__(made, name, each)
        return made


_DECODERS: Mapping[frozenset[str], Callable[..., Any]] = {
    frozenset({"tuple"}): _Decoding.tuple,
    frozenset({"number"}): _Decoding.number,
    frozenset({"array"}): _Decoding.array,
    frozenset({"entries"}): _Decoding.entries,
    frozenset({"sparse", "shape", "parts"}): _Decoding.sparse,
    frozenset({"stop", "tells"}): _Decoding.a_stop,
    frozenset({"member"}): _Decoding.member,
    frozenset({"record", "fields"}): _Decoding.record,
}


def _class(name: Any) -> Any:
    """The class of this name in a loaded module of the library."""
    module, _, path = name.partition(":")
    if not module.startswith(OURS) or module not in sys.modules or "." in path:
        raise TypeError(f"{name} is no record of the library")
    found = vars(sys.modules[module]).get(path)
    if not isinstance(found, type) or found.__module__ != module:
        raise TypeError(f"{name} is no record of the library")
    return found


def _names(kind: Any) -> set[str]:
    """The names of the attributes of a record."""
    if issubclass(kind, tuple):
        return set(kind._fields)
    if issubclass(kind, Problem | Design | Loss) or not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind.__qualname__} is no record of arrays and numbers")
    return {field.name for field in dataclasses.fields(kind)}
