"""Object code of kernels, by Numba and llvmlite: the part of the build that runs in processes.

The lines of ``signatures.txt`` are described in docs/developing/compiled-kernels.md. What of
Numba's private parts ahead-of-time compilation rests on is here and in ``native/``: the layout of
arguments and results, and the symbols that ``runtime.c`` defines.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
from typing import Any, NamedTuple

from llvmlite import binding
from numba import from_dtype, types
from numba.core.codegen import JITCodeLibrary

from proxmargin.compiled.library import PACKAGE, place_of, record

# as native/caller.c has them
LETTERS = {"float64": "d", "int64": "q", "uint64": "Q", "bool": "?", "none": "n"}
ORDERS = {"C": 1, "F": 2, "A": 0}  # NumPy's flags
WORDS = {"double": "double", "i64": "int64_t", "i8": "int8_t"}  # LLVM's types in C; else addresses


class Lowered(JITCodeLibrary):
    """Code that is only linked into other code, and neither optimised nor run by itself.

    Callers contain all that they call: Numba would compile the last link of a chain of calls as
    many times as the chain is long.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class Compiled(NamedTuple):
    """A kernel for one signature."""

    code: bytes  # an object file that defines one symbol
    words: list[str]  # types in C of what it is given
    arguments: str  # the codes that native/caller.c reads, in hexadecimal digits
    result: str
    objects: list[Any]  # what they refer to: classes as ``module:name``, and dtypes


class _Types(dict[str, Any]):
    """Numba's types by the names of the list, with functions for what is made of types."""

    CALLS = {  # what Python reads instead of the list's ways to write types
        r"\{(.*?)\}": r"record('\1')",
        r"(\w+):(\d)([CFA])(r?)": r"array(\1,\2,'\3','\4')",
        r"(?<!\w)\(": "plain(",
        r"\*(\S+)": r"address(\1)",
    }

    def __init__(self, modules: dict[str, str]) -> None:
        self.modules = modules
        array: Any = types.Array  # the stubs take literal orders alone
        self["bool"], self["address"] = types.boolean, types.CPointer
        self["array"] = lambda kind, *of: array(kind, *of[:2], readonly=bool(of[2]))
        self["plain"] = lambda *parts: types.BaseTuple.from_types(parts)
        self["record"] = lambda text: from_dtype(record(text))

    def __missing__(self, name: str) -> Any:
        if name not in self.modules:
            return getattr(types, name)
        kind = getattr(importlib.import_module(PACKAGE + self.modules[name]), name)
        return lambda *parts: types.BaseTuple.from_types(parts, kind)

    def read(self, text: str) -> tuple[Any, ...]:
        """The types of the arguments in a line of the list."""
        for pattern, call in self.CALLS.items():
            text = re.sub(pattern, call, text)
        return tuple(eval(word, {"__builtins__": {}}, self) for word in text.split(" "))


def compiled(kernel: str, text: str, modules: dict[str, str], symbol: str) -> Compiled:
    """Compile a kernel for the types of a line; ``modules`` are those of named tuples."""
    gc.disable()  # millions of objects live to the end
    module, _, name = kernel.rpartition(".")
    known = getattr(importlib.import_module(PACKAGE + module), name)
    kinds = _Types(modules).read(text)
    codegen = known.targetctx.codegen()
    codegen.create_library = lambda name, **more: Lowered(codegen, name)
    codegen.set_env = lambda name, env: None  # nothing is in memory
    known.compile(kinds)
    overload = known.overloads[kinds]
    JITCodeLibrary._optimize_final_module(overload.library)
    parsed = binding.parse_assembly(overload.library.get_llvm_str())
    own = overload.fndesc.llvm_func_name
    for each in (*parsed.functions, *parsed.global_variables):
        if not each.is_declaration and each.name != own:
            each.linkage = "internal"
    entry = parsed.get_function(own)
    entry.linkage, entry.visibility, entry.name = "external", "hidden", symbol
    target = binding.Target.from_triple(parsed.triple).create_target_machine(
        cpu=os.environ["NUMBA_CPU_NAME"], features="", opt=3, reloc="pic", codemodel="small"
    )
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()  # callees that are inlined
    tuning = binding.create_pipeline_tuning_options()
    passes.run(parsed, binding.create_pass_builder(target, tuning))
    words = [WORDS.get(str(each.type), "void *") for each in entry.arguments][2:]
    objects: list[Any] = []
    arguments = bytes([len(kinds)]) + b"".join(_code(kind, objects) for kind in kinds)
    if hasattr(overload.signature.return_type, "instance_class"):
        raise TypeError(f"{kernel} returns a named tuple")
    result = _code(overload.signature.return_type, objects)
    return Compiled(target.emit_object(parsed), words, arguments.hex(), result.hex(), objects)


def _code(kind: Any, objects: list[Any]) -> bytes:
    """How native/caller.c reads a type; what it refers to goes into the list."""

    def of(letter: str, described: Any, *numbers: int) -> bytes:
        if described not in objects:
            objects.append(described)
        return bytes([ord(letter), objects.index(described), *numbers])

    if isinstance(kind, types.CPointer | types.IntEnumMember):
        return _code(kind.dtype, objects)
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind  # the stubs lack that tuples can be gone through
        head = of("(", place_of(getattr(kind, "instance_class", tuple)), len(parts))
        return head + b"".join(_code(part, objects) for part in parts)
    if isinstance(kind, types.Array):
        flags = ORDERS[kind.layout], kind.mutable and 4  # of 256: may be written
        return of("A", str(kind.dtype), kind.ndim, *flags)
    if isinstance(kind, types.Record):
        fields = ",".join(f"{name}:{kind.typeof(name)}" for name in kind.fields)
        return of("R", f"{{{fields}}}")
    return LETTERS[str(kind)].encode()
