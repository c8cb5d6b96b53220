"""What calls of kernels are in the list of signatures, and what it would say of others."""

from __future__ import annotations

import logging
import re
from typing import Any

import numpy as np

from proxmargin.compiled.library import Library


class Lacking(logging.Handler):
    """Notes the calls with types that the library lacks; not those of named tuples of one's own."""

    def __init__(self, library: Library) -> None:
        super().__init__()
        self.ours = {place.partition(":")[2] for place in library.tuples}
        self.lines: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg.startswith("the library lacks"):
            kernel, arguments = record.args  # type: ignore[misc]
            line = f"{kernel} {' '.join(map(described, arguments))}"
            if {*re.findall(r"(\w+)\(", line)} <= self.ours:
                self.lines.add(line)


def described(value: Any) -> str:
    """The type of an argument as src/proxmargin/compiled/signatures.txt has it."""
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
    if isinstance(value, np.generic):
        return str(value.dtype)
    named = {int: "int64", float: "float64", type(None): "none"}
    return named.get(type(value), type(value).__name__)
