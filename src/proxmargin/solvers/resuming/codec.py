"""Values as JSON and plain arrays, and back with nothing lost and nothing executed.

JSON has no tuples, keys that are no strings, infinities, NumPy numbers or objects. Each is an
object with one tag, ``{"tuple": [...]}``, ``{"entries": [[key, value], ...]}``, ``{"float":
"nan"}``, or one that a kind of file adds to these: model files (`proxmargin.files.models.archive`)
and the states of solvers in checkpoints (`StateCodec`).
"""

from __future__ import annotations

import dataclasses
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from proxmargin.data.designs import Design
from proxmargin.functions.losses import Loss
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.types import Facts, Record, Values
from proxmargin.solvers.loop.solver import Stop

Decoder: TypeAlias = Callable[[Any, str, Record], Any]

OURS = "proxmargin."
PLAIN = frozenset("biufU")  # dtype kinds that need no pickle
SPARSE: Facts = {
    kind.__name__: kind for kind in (sp.csr_array, sp.csc_array, sp.csr_matrix, sp.csc_matrix)
}
PARTS = ("data", "indices", "indptr")  # of a sparse matrix
# fields of a `Stop` that belong to the run and not to its state
OF_THE_RUN = frozenset(
    {"time_limit", "deadline", "most_work", "effort", "most_further_work", "callbacks"}
)


class EncodingError(ValueError):
    """A state that holds more than arrays, numbers and the library's records of them."""


class Codec(ABC):
    """Encodes and decodes; ``where`` names the value in messages."""

    Error: ClassVar[type[ValueError]]
    decoders: ClassVar[Mapping[frozenset[str], Decoder]]

    def encode(self, value: Any, where: str = "") -> Any:
        """The value in JSON types; raises ``Error`` if it cannot be stored."""
        if value is None or isinstance(value, bool):
            return value
        for kind, encode in _ENCODERS.items():
            if isinstance(value, kind):
                return encode(self, value, where)
        return self._encode_object(value, where)

    @abstractmethod
    def _encode_number(self, value: np.generic, where: str) -> Any: ...
    @abstractmethod
    def _encode_array(self, value: Values, where: str) -> Any: ...
    @abstractmethod
    def _encode_object(self, value: object, where: str) -> Any: ...

    def _encode_list(self, value: list[object], where: str) -> Any:
        return [self.encode(each, f"{where}[{j}]") for j, each in enumerate(value)]

    def _encode_tuple(self, value: tuple[object, ...], where: str) -> Any:
        return {"tuple": self._encode_list([*value], where)}

    def _encode_entries(self, value: dict[object, object], where: str) -> Any:
        keys = self._encode_list([*value], where)
        values = [self.encode(each, f"{where}[{key!r}]") for key, each in value.items()]
        return {"entries": [[*pair] for pair in zip(keys, values, strict=True)]}

    def decode(self, plain: object, where: str = "") -> Any:
        """The value that `encode` turned into ``plain``; raises ValueError if it is none."""
        if isinstance(plain, list):
            return [self.decode(each, where) for each in plain]
        if not isinstance(plain, dict):
            return plain
        decode = self.decoders.get(frozenset(plain))
        if decode is None:
            raise self.Error(f"{where!r} has an unknown form with {sorted(plain)}")
        return decode(self, where, plain)

    def expect(self, plain: object, kind: type, where: str) -> Any:
        if not isinstance(plain, kind):
            raise self.Error(f"{where!r} should be a {kind.__name__}")
        return plain

    def _decode_tuple(self, where: str, plain: Record) -> tuple[object, ...]:
        return (*self.decode(self.expect(plain["tuple"], list, where), where),)

    def _decode_entries(self, where: str, plain: Record) -> dict[object, object]:
        pairs = self.decode(self.expect(plain["entries"], list, where), where)
        try:
            found = {key: value for key, value in pairs}  # noqa: C416  (checks them to be pairs)
        except (TypeError, ValueError) as error:
            raise self.Error(f"{where!r} is no dictionary ({error})") from error
        if len(found) != len(pairs):
            raise self.Error(f"{where!r} has a key twice")
        return found

    def _decode_float(self, where: str, plain: Record) -> float:
        if plain["float"] not in ("nan", "inf", "-inf"):
            raise self.Error(f"{where!r} holds {plain['float']!r} instead of a number")
        return float(plain["float"])


# in this order: a float64 of NumPy is a float, too
_ENCODERS: Mapping[type, Callable[[Any, Any, str], Any]] = {
    str: lambda codec, value, where: str(value),
    np.generic: lambda codec, value, where: codec._encode_number(value, where),
    int: lambda codec, value, where: int(value),
    float: lambda codec, value, where: (
        float(value) if math.isfinite(value) else {"float": repr(float(value))}
    ),
    np.ndarray: lambda codec, value, where: codec._encode_array(value, where),
    list: Codec._encode_list,
    tuple: lambda codec, value, where: codec._encode_tuple(value, where),
    dict: Codec._encode_entries,
}

COMMON: Mapping[frozenset[str], Decoder] = {
    frozenset({"tuple"}): Codec._decode_tuple,
    frozenset({"entries"}): Codec._decode_entries,
    frozenset({"float"}): Codec._decode_float,
}


@dataclasses.dataclass(frozen=True)
class StateCodec(Codec):
    """States of solvers: arrays under generated names, and the library's records of them. Its tags
    are the last of this class. Records are restored without calling constructors, and only of
    classes that are already loaded: a name in a file causes no import."""

    arrays: dict[str, Values]  # those that are encoded are added, each once
    stop: Stop = dataclasses.field(default_factory=Stop)  # this run's, in place of the encoded one
    limit: int | None = None  # of the iterations of the run that was encoded
    _names: dict[int, str] = dataclasses.field(default_factory=dict)

    Error = EncodingError

    def _check_plain(self, dtype: np.dtype[np.generic]) -> None:
        if dtype.kind not in PLAIN:
            raise EncodingError(f"a number of type {dtype} has no plain form")

    def _encode_number(self, value: np.generic, where: str) -> Any:
        self._check_plain(value.dtype)
        return {"number": [value.dtype.str, value.item()]}

    def _encode_array(self, value: Values, where: str) -> Any:
        self._check_plain(value.dtype)
        name = self._names.setdefault(id(value), f"a{len(self.arrays)}")
        self.arrays[name] = value
        return {"array": name}

    def _encode_tuple(self, value: tuple[object, ...], where: str) -> Any:
        if type(value) is tuple:
            return super()._encode_tuple(value, where)
        return self._encode_object(value, where)

    def _encode_object(self, value: Any, where: str) -> Any:
        kind = type(value)
        if kind.__name__ in SPARSE and sp.issparse(value):
            parts = {part: self.encode(getattr(value, part), where) for part in PARTS}
            return {"sparse": kind.__name__, "shape": [*value.shape], "parts": parts}  # type: ignore[attr-defined]
        name = f"{kind.__module__}:{kind.__qualname__}"
        if isinstance(value, Enum) and name.startswith(OURS):
            return {"member": [name, value.name]}
        names = _fields_of(kind)
        if names is None:
            raise EncodingError(f"a {kind.__qualname__} is no array, number or record of them")
        is_stop = isinstance(value, Stop)
        kept = [each for each in names if not (is_stop and each in OF_THE_RUN)]
        fields = {each: self.encode(getattr(value, each), where) for each in kept}
        if is_stop:
            return {"stop": fields, "tells": bool(value.callbacks)}
        return {"record": name, "fields": fields}

    def _decode_number(self, where: str, plain: Record) -> Any:
        kind = np.dtype(plain["number"][0])
        self._check_plain(kind)
        return kind.type(plain["number"][1])

    def _decode_sparse(self, where: str, plain: Record) -> Any:
        parts = (*(self.decode(plain["parts"][name], where) for name in PARTS),)
        return SPARSE[plain["sparse"]](parts, shape=(*plain["shape"],))

    def _decode_stop(self, where: str, plain: Record) -> Stop:
        fields = {name: each for name, each in plain["stop"].items() if name not in OF_THE_RUN}
        kept = {name: self.decode(each, where) for name, each in fields.items()}
        kept["max_iter"] = self._moved(kept["max_iter"])
        callbacks = self.stop.callbacks if plain["tells"] else ()
        return dataclasses.replace(self.stop, **kept, callbacks=callbacks)

    def _moved(self, limit: int | None) -> int | None:
        """The iteration limit of a part of a run, as far from that of this run as it was before."""
        now = self.stop.max_iter
        if limit is None or now is None or self.limit is None:
            return now
        return limit + now - self.limit

    def _decode_member(self, where: str, plain: Record) -> Any:
        kind = _class(plain["member"][0])
        if not issubclass(kind, Enum):
            raise TypeError(f"{kind.__qualname__} is no enumeration")
        return kind[plain["member"][1]]

    def _decode_record(self, where: str, plain: Record) -> Any:
        kind = _class(plain["record"])
        values = {name: self.decode(each, where) for name, each in plain["fields"].items()}
        names = _fields_of(kind)
        if names is None or {*names} != set(values):
            other = sorted({*(names or ())} ^ set(values))
            raise TypeError(f"{kind.__qualname__} has other attributes: {other}")
        if issubclass(kind, tuple):
            return tuple.__new__(kind, (values[name] for name in kind._fields))
        made = kind.__new__(kind)
        for name, each in values.items():
            # bypass the guard of frozen records, as their constructors do
            object.__setattr__(made, name, each)
        return made

    decoders = {
        **COMMON,
        frozenset({"number"}): _decode_number,
        frozenset({"array"}): lambda codec, where, plain: codec.arrays[plain["array"]],
        frozenset({"sparse", "shape", "parts"}): _decode_sparse,
        frozenset({"stop", "tells"}): _decode_stop,
        frozenset({"member"}): _decode_member,
        frozenset({"record", "fields"}): _decode_record,
    }


def _class(name: str) -> Any:
    """The class of this name in a loaded module of the library, or the only one if it moved."""
    module, _, path = name.partition(":")
    ours = [key for key in sys.modules if key.startswith(OURS)]
    homes = [module] if module in ours else ours
    named = [(home, vars(sys.modules[home]).get(path)) for home in homes]
    found = [kind for home, kind in named if isinstance(kind, type) and kind.__module__ == home]
    if len(found) != 1 or not module.startswith(OURS):
        raise TypeError(f"{name} is no record of the library")
    return found[0]


def _fields_of(kind: Any) -> tuple[str, ...] | None:
    """The names of what a record of the library holds; None for other classes."""
    if not kind.__module__.startswith(OURS) or issubclass(kind, Problem | Design | Loss):
        return None
    if issubclass(kind, tuple):
        names: tuple[str, ...] | None = getattr(kind, "_fields", None)
        return names
    is_record = dataclasses.is_dataclass(kind)
    return tuple(each.name for each in dataclasses.fields(kind)) if is_record else None
