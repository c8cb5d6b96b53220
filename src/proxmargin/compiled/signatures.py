"""The closed list of types that kernels are compiled for ahead of time: ``signatures.txt``.

A line is the name of a kernel and the types of its arguments: numbers by their NumPy names, arrays
as ``float64:2C`` (two dimensions in C order; F: Fortran's, A: any), with an ``r`` at the end if the
kernel does not write to them, records as ``{name:type,...}``, tuples as ``(...)`` and named ones as
``Name(...)``. A star before a type: its address. A plus before a line: a first comparison, of dense
data, calls it. Lines ``class`` say where named tuples are.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

FILE = Path(__file__).with_name("signatures.txt")
# as native/caller.c knows them
LETTERS = {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "uint64": "Q", "bool": "?"}


class Kind(NamedTuple):
    """A type of the list."""

    head: str  # name of a number, a named tuple or a dtype; "" for plain tuples; "{" for records
    parts: tuple[Any, ...] = ()  # kinds of a tuple's members; fields (name, kind) of a record
    array: str = ""  # of arrays: dimensions, order, and r
    is_tuple: bool = False
    is_address: bool = False


class Signature(NamedTuple):
    """A kernel and the types of its arguments."""

    kernel: str  # module below proxmargin, and name
    text: str  # the types as in the file
    kinds: tuple[Kind, ...]
    is_first: bool = False


@cache
def read() -> tuple[list[Signature], dict[str, str]]:
    """All signatures, and the modules of named tuples."""
    found, classes = [], {}
    for line in FILE.read_text().splitlines():
        first, *rest = line.split(" ")
        if first == "class":
            classes[rest[0]] = rest[1]
        else:
            kinds = tuple(map(parsed, rest))
            kernel = first.removeprefix("+")
            found.append(Signature(kernel, " ".join(rest), kinds, first != kernel))
    return found, classes


def parsed(text: str) -> Kind:
    """The kind that a word of the file means."""
    kind, rest = _kind(text)
    if rest:
        raise ValueError(f"{rest!r} is left of the type {text!r}")
    return kind


def _kind(text: str) -> tuple[Kind, str]:
    if text.startswith("*"):
        kind, rest = _kind(text[1:])
        return kind._replace(is_address=True), rest
    if text.startswith("{"):
        inner, _, rest = text[1:].partition("}")
        fields = (field.split(":") for field in inner.split(","))
        return Kind("{", tuple((name, kind) for name, kind in fields)), rest
    head = re.match(r"\w*", text)[0]  # type: ignore[index]
    rest = text[len(head) :]
    if rest.startswith("("):
        parts, rest = [], rest[1:]
        while not rest.startswith(")"):
            part, rest = _kind(rest.removeprefix(","))
            parts.append(part)
        return Kind(head, tuple(parts), is_tuple=True), rest[1:]
    array = re.match(r":(\d[CFA]r?)", rest)
    if array:
        return Kind(head, array=array[1]), rest[array.end() :]
    return Kind(head), rest


def described(value: Any) -> str:
    """The type of an argument as the file would have it."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{value.dtype}:{value.ndim}{order}{'' if flags.writeable else 'r'}"
    if isinstance(value, tuple):
        name = type(value).__name__ if type(value) is not tuple else ""
        return f"{name}({','.join(map(described, value))})"
    if isinstance(value, np.void):
        fields = (f"{name}:{value.dtype[name]}" for name in value.dtype.names or ())
        return "{" + ",".join(fields) + "}"
    if value is None:
        return "none"
    if isinstance(value, np.generic):
        return str(value.dtype)
    return {bool: "bool", int: "int64", float: "float64"}.get(type(value), type(value).__name__)


def is_ours(kind: type) -> bool:
    """Whether a named tuple is one of the list, none of a user's own."""
    return read()[1].get(kind.__name__) == kind.__module__.removeprefix("proxmargin.")


def is_listed(value: Any) -> bool:
    """Whether all named tuples in an argument are of the list."""
    if not isinstance(value, tuple):
        return True
    return (type(value) is tuple or is_ours(type(value))) and all(map(is_listed, value))


def place_of(kind: type) -> str:
    """Where a class is, as tables have it."""
    return f"{kind.__module__}:{kind.__qualname__}"


def number_of(described: Any, objects: list[Any]) -> int:
    """The number of what a code refers to, a class as ``module:name`` or a dtype, in its list."""
    described = place_of(described) if isinstance(described, type) else described
    if described not in objects:
        objects.append(described)
    return objects.index(described)
