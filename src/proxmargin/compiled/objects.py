"""Object code of kernels, by Numba and llvmlite: the part of the build that runs in processes.

All private parts of Numba that ahead-of-time compilation rests on are here and in
`proxmargin.compiled.lowering`: ``JITCodeLibrary._optimize_final_module``, ``create_library`` of the
code generator, ``overloads[...].library`` and ``.fndesc``, the layout of results (`_placed`) and of
arguments (`build._words`), and the symbols that ``native/runtime.c`` defines.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding
from numba import from_dtype, types
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher

from proxmargin.compiled.library import PACKAGE
from proxmargin.compiled.lowering import Pipeline, Unoptimised, libraries, without_collector
from proxmargin.compiled.signatures import LETTERS, Kind, Signature, number_of, read

SIZES = {"d": 8, "f": 4, "q": 8, "i": 4, "Q": 8, "?": 1}  # bytes


class Compiled(NamedTuple):
    """A kernel for one signature."""

    code: bytes  # an object file that defines one symbol
    result: tuple[str, list[Any]]  # as native/caller.c reads it, in hexadecimal digits; its objects
    is_pass: bool


def symbol_of(signature: Signature) -> str:
    """The name of a kernel in its object file."""
    own = hashlib.sha256(f"{signature.kernel} {signature.text}".encode()).hexdigest()
    return f"{signature.kernel.rpartition('.')[2].strip('_')}_{own[:12]}"


def compiled(signature: Signature) -> Compiled:
    """Compile one signature; a process keeps what kernels have in common."""
    module, _, name = signature.kernel.rpartition(".")
    known = getattr(importlib.import_module(PACKAGE + module), name)
    is_pass = any(kind.is_address for kind in signature.kinds)
    options = {**known.targetoptions, "no_cfunc_wrapper": not is_pass}
    made: Any = CPUDispatcher(known.py_func, {}, options, Pipeline)
    arguments = tuple(map(_numba_type, signature.kinds))
    with without_collector(), _only_optimised(made.targetctx.codegen()):
        made.compile(arguments)
    overload = made.overloads[arguments]
    described = overload.fndesc
    symbol = described.llvm_cfunc_wrapper_name if is_pass else described.llvm_func_name
    parsed = binding.parse_assembly(overload.library.get_llvm_str())
    for each in (*parsed.functions, *parsed.global_variables):
        if not each.is_declaration and each.name != symbol:
            each.linkage = "internal"
    entry = parsed.get_function(symbol)
    entry.linkage, entry.visibility, entry.name = "external", "hidden", symbol_of(signature)
    target = binding.Target.from_triple(parsed.triple).create_target_machine(
        cpu=os.environ["NUMBA_CPU_NAME"], features="", opt=3, reloc="pic", codemodel="small"
    )
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()  # callees that are inlined
    tuning = binding.create_pipeline_tuning_options()
    passes.run(parsed, binding.create_pass_builder(target, tuning))
    objects: list[Any] = []
    result = b"" if is_pass else _placed(overload.signature.return_type, 0, objects)[0]
    return Compiled(target.emit_object(parsed), (result.hex(), objects), is_pass)


def _only_optimised(codegen: Any) -> Any:
    """Optimise the kernel as a whole, lower what it calls, and load nothing into this process."""

    class Optimised(Unoptimised):
        _optimize_final_module = JITCodeLibrary._optimize_final_module

    def made(options: Any, name: str, **_: Any) -> Any:
        # callees, which are lowered first, have no wrapper for Python
        whole = options is not None and not options.no_cpython_wrapper
        return (Optimised if whole else Unoptimised)(codegen, name)

    return libraries(codegen, made)


def _numba_type(kind: Kind) -> Any:
    found: Any
    if kind.head == "{":
        found = from_dtype(np.dtype([(name, np.dtype(part)) for name, part in kind.parts]))
    elif kind.is_tuple:
        parts = [_numba_type(part) for part in kind.parts]
        found = types.BaseTuple.from_types(parts, _class(kind.head) if kind.head else None)
    else:
        found = types.boolean if kind.head == "bool" else getattr(types, kind.head)
    if kind.array:
        array: Any = types.Array  # the stubs take literal orders alone
        found = array(found, int(kind.array[0]), kind.array[1], readonly=kind.array.endswith("r"))
    return types.CPointer(found) if kind.is_address else found


def _class(name: str) -> Any:
    return getattr(importlib.import_module(PACKAGE + read()[1][name]), name)


def _placed(kind: Any, at: int, objects: list[Any]) -> tuple[bytes, int]:
    """The code of a part of a result, and where it ends; C's rules of alignment."""
    at = -(-at // _alignment(kind)) * _alignment(kind)
    offset = at.to_bytes(2, "little")
    if isinstance(kind, types.NoneType):
        return b"n", at + 8
    if isinstance(kind, types.BaseTuple):
        name = getattr(kind, "instance_class", None)
        parts: Any = kind  # the stubs lack that tuples can be gone through
        code = bytes([ord("("), len(parts), 255 if name is None else number_of(name, objects)])
        for part in parts:
            own, at = _placed(part, at, objects)
            code += own
        return code, -(-at // _alignment(kind)) * _alignment(kind)
    if isinstance(kind, types.Array):
        head = bytes([ord("A"), number_of(str(kind.dtype), objects), kind.ndim])
        return head + offset, at + 8 * (5 + 2 * kind.ndim)
    if isinstance(kind, types.IntEnumMember):
        return bytes([ord("E"), number_of(kind.instance_class, objects)]) + offset, at + 8
    letter = LETTERS[str(kind)]
    return letter.encode() + offset, at + SIZES[letter]


def _alignment(kind: Any) -> int:
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        return max(map(_alignment, parts), default=1)
    return SIZES.get(LETTERS.get(str(kind), ""), 8)
