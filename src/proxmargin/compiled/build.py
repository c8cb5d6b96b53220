"""Compile the kernels ahead of time: ``python -m proxmargin.compiled.build [LEVEL ...]``.

Numba compiles each signature of the list for a level of processors to LLVM's code, llvmlite makes
object code of that, and the C compiler links it, with ``native/``, into one library a level. The
result lies in the folder ``library`` beside this file (`proxmargin.compiled.library`). Object code
is kept among the user's caches by what it was made of; a build after a change of C takes seconds.

All private parts of Numba that ahead-of-time compilation rests on are here and in
`proxmargin.compiled.kernel`: ``JITCodeLibrary._optimize_final_module``,
``create_library`` of the code generator, ``overloads[...].library`` and ``.fndesc``, the calling
convention (`_words`, `_result`), and the symbols that ``native/runtime.c`` defines. `NUMBA` is the
only version that it is tried with; any other is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import inspect
import json
import logging
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from proxmargin.compiled import digest, library
from proxmargin.compiled.signatures import Kind, Signature, read

NUMBA = ("0.68",)  # beginnings of the versions that this is tried with
CACHE = Path.home() / ".cache" / "proxmargin"
MOST_BYTES = 2048  # of a block of arguments in words, and of a result, as in native/caller.c
HEAVY = ("advance", "begin", "newton_steps", "restart", "descend", "quadratic_minimum")  # first


class Compiled(NamedTuple):
    """A kernel for one signature."""

    code: bytes  # an object file that defines one symbol
    result: Any  # code and objects of its result, see `_result`
    is_pass: bool


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Compile the kernels ahead of time.")
    levels = digest.LEVELS.get(digest.machine().rpartition("-")[2], ())
    parser.add_argument(
        "levels",
        nargs="*",
        metavar="LEVEL",
        help=f"of processors: {', '.join(levels)}, or all; default: this one's",
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--again", action="store_true", help="even where one is up to date")
    chosen = parser.parse_args(arguments)
    wanted = chosen.levels or ["here"]
    if wanted == ["all"]:
        wanted = list(levels)
    if wanted == ["here"] and not chosen.again and digest.is_current():
        return
    compiler = shlex.split(os.environ.get("CC", shutil.which("cc") or shutil.which("gcc") or ""))
    if not levels:
        sys.exit(f"no kernels are built: {digest.machine()} is not known")
    headers = Path(sysconfig.get_paths()["include"], "Python.h")
    if not compiler or not headers.exists():
        sys.exit(
            "no kernels are built, and they are compiled on their first use: there is no C "
            "compiler or no Python.h; on Debian, type: sudo apt-get install gcc python3-dev"
        )
    build(wanted, chosen.jobs, compiler)


def build(levels: list[str], jobs: int, compiler: list[str]) -> None:
    """Put the libraries of these levels, and the table, where the package looks for them."""
    if levels == ["here"]:
        levels = [_own_level(compiler)]
    signatures, classes = read()
    digests: dict[str, str] = {}
    table: dict[str, Any] = {}
    made_from = digest.digest_of(digest.sources())
    digest.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=digest.FOLDER) as scratch:
        for level in levels:
            compiled = list(_all_compiled(signatures, level, jobs))
            table, thunks = _table(signatures, compiled, classes)
            path = _linked(Path(scratch), level, thunks, compiled, compiler)
            digests[level] = hashlib.sha256(path.read_bytes()).hexdigest()
            os.replace(path, digest.FOLDER / path.name)
        table |= {
            "digest": made_from,
            "machine": digest.machine(),
            "made by": _makers(),
            "libraries": digests,
        }
        draft = Path(scratch) / "kernels.json"
        draft.write_bytes(digest.sealed(json.dumps(table).encode()))
        os.replace(draft, digest.FOLDER / draft.name)
    library.Library(digest.FOLDER)  # or it lacks a symbol that native/runtime.c should define


# ---- in processes of their own: Numba ------------------------------------------------------------


def _all_compiled(signatures: list[Signature], level: str, jobs: int) -> Iterator[Compiled]:
    """In the order of the list; from the cache where it has them."""
    base = [path for path in digest.sources() if path.suffix == ".py"]
    outside = {name for name, module in read()[1].items() if not module.startswith("compiled.")}
    inside = [path for path in base if digest.HERE in path.parents]
    steps = [inspect.getsource(step) for step in (_compiled, _only_optimised, _numba_type, _placed)]
    common = f"{_makers()} {level} {steps}"
    made_of = {True: digest.digest_of(base), False: digest.digest_of(inside)}
    paths = []
    for each in signatures:
        own = made_of[any(f"{name}(" in each.text for name in outside)]
        key = hashlib.sha256(f"{common} {own} {each.kernel} {each.text}".encode()).hexdigest()
        paths.append(CACHE / "objects" / key[:32])
    missing = [k for k, path in enumerate(paths) if not path.exists()]
    missing.sort(key=lambda k: not signatures[k].kernel.endswith(HEAVY))
    settings = {
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": "",
        "PROXMARGIN_KERNELS": "numba",
        "NUMBA_OPT": "3",
        "OMP_NUM_THREADS": "1",
    }
    os.environ.update(settings)
    print(f"{level}: compiling {len(missing)} of {len(signatures)} kernels", file=sys.stderr)
    (CACHE / "objects").mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs, get_context("spawn"), _quietly) as pool:
        futures = {pool.submit(_compiled, signatures[k]): k for k in missing}
        for future in as_completed(futures):
            path = paths[futures[future]]
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_bytes(pickle.dumps(future.result()))
            os.replace(draft, path)
    for path in paths:
        yield pickle.loads(path.read_bytes())


def _quietly() -> None:
    """Nothing is said about the first use of kernels."""
    logging.getLogger("proxmargin").setLevel(logging.ERROR)


def _compiled(signature: Signature) -> Compiled:
    """Compile one signature; a process keeps what kernels have in common."""
    import numba
    from llvmlite import binding
    from numba.core.registry import CPUDispatcher

    from proxmargin.compiled import kernel as jit

    if not numba.__version__.startswith(NUMBA):
        raise RuntimeError(f"kernels are built by Numba {NUMBA[-1]}, not {numba.__version__}")
    if not jit.private_steps_work():
        raise RuntimeError("this Numba takes other steps than those that the build replaces")
    module, _, name = signature.kernel.rpartition(".")
    known = getattr(importlib.import_module(library.PACKAGE + module), name)
    is_pass = any(kind.is_address for kind in signature.kinds)
    options = {**known.targetoptions, "no_cfunc_wrapper": not is_pass}
    made: Any = CPUDispatcher(known.py_func, {}, options, jit._Pipeline)
    types = tuple(map(_numba_type, signature.kinds))
    with jit._without_collector(), _only_optimised(made.targetctx.codegen()):
        made.compile(types)
    overload = made.overloads[types]
    described = overload.fndesc
    symbol = described.llvm_cfunc_wrapper_name if is_pass else described.llvm_func_name
    parsed = binding.parse_assembly(overload.library.get_llvm_str())
    for each in (*parsed.functions, *parsed.global_variables):
        if not each.is_declaration and each.name != symbol:
            each.linkage = "internal"
    entry = parsed.get_function(symbol)
    entry.linkage, entry.visibility, entry.name = "external", "hidden", _symbol(signature)
    target = binding.Target.from_triple(parsed.triple).create_target_machine(
        cpu=os.environ["NUMBA_CPU_NAME"], features="", opt=3, reloc="pic", codemodel="small"
    )
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()  # callees that are inlined
    passes.run(
        parsed, binding.create_pass_builder(target, binding.create_pipeline_tuning_options())
    )
    objects: list[Any] = []
    result = "" if is_pass else _result(overload.signature.return_type, objects)
    return Compiled(target.emit_object(parsed), (result, objects), is_pass)


@contextmanager
def _only_optimised(codegen: Any) -> Iterator[None]:
    """Optimise the kernel as a whole, lower what it calls, and load nothing into this process."""
    from numba.core.codegen import JITCodeLibrary
    from numba.core.targetconfig import ConfigStack

    from proxmargin.compiled import kernel as jit

    class _Optimised(jit._Unoptimised):
        _optimize_final_module = JITCodeLibrary._optimize_final_module

    make = codegen.create_library

    def made(name: str, **_: Any) -> Any:
        # its callees, which are lowered first, have no wrapper for Python
        function = ConfigStack.top_or_none()
        whole = function is not None and not function.no_cpython_wrapper
        return (_Optimised if whole else jit._Unoptimised)(codegen, name)

    codegen.create_library = made
    try:
        yield
    finally:
        codegen.create_library = make


def _numba_type(kind: Kind) -> Any:
    import numba
    from numba import types

    found: Any
    if kind.head == "{":
        found = numba.from_dtype(_dtype(kind))
    elif kind.array:
        base, order, read_only = getattr(types, kind.head), kind.array[1], kind.array.endswith("r")
        base = types.boolean if kind.head == "bool" else base
        array: Any = types.Array  # the stubs take literal orders alone
        found = array(base, int(kind.array[0]), order, readonly=read_only)
    elif kind.is_tuple:
        parts = [_numba_type(part) for part in kind.parts]
        found = types.BaseTuple.from_types(parts, _class(kind.head) if kind.head else None)
    else:
        found = types.boolean if kind.head == "bool" else getattr(types, kind.head)
    return types.CPointer(found) if kind.is_address else found


def _dtype(kind: Kind) -> Any:
    import numpy as np

    return np.dtype([(name, np.dtype(part)) for name, part in kind.parts])


def _class(name: str) -> Any:
    return getattr(importlib.import_module(library.PACKAGE + read()[1][name]), name)


LETTERS = {"float64": "d", "float32": "f", "int64": "q", "int32": "i", "uint64": "Q", "bool": "?"}
SIZES = {"d": 8, "f": 4, "q": 8, "i": 4, "Q": 8, "?": 1}


def _result(kind: Any, objects: list[Any]) -> str:
    """The code of a result as native/caller.c reads it, in hexadecimal digits."""
    code, _ = _placed(kind, 0, objects)
    return code.hex()


def _placed(kind: Any, at: int, objects: list[Any]) -> tuple[bytes, int]:
    """The code of a part of the result, and where it ends; C's rules of alignment."""
    from numba import types

    if isinstance(kind, types.NoneType):
        return b"n", at + 8
    if _is_tuple(kind):
        at = -(-at // _alignment(kind)) * _alignment(kind)
        name = getattr(kind, "instance_class", None)
        number = 255 if name is None else _number(f"{name.__module__}:{name.__qualname__}", objects)
        code = bytes([ord("("), len(kind), number])
        for part in kind:
            own, at = _placed(part, at, objects)
            code += own
        return code, -(-at // _alignment(kind)) * _alignment(kind)
    at = -(-at // _alignment(kind)) * _alignment(kind)
    offset = at.to_bytes(2, "little")
    if isinstance(kind, types.Array):
        head = bytes([ord("A"), _number(str(kind.dtype), objects), kind.ndim])
        return head + offset, at + 8 * (5 + 2 * kind.ndim)
    if isinstance(kind, types.IntEnumMember):
        name = kind.instance_class
        number = _number(f"{name.__module__}:{name.__qualname__}", objects)
        return bytes([ord("E"), number]) + offset, at + 8
    letter = LETTERS[str(kind)]
    return letter.encode() + offset, at + SIZES[letter]


def _is_tuple(kind: Any) -> bool:
    from numba import types

    return isinstance(kind, types.BaseTuple)


def _alignment(kind: Any) -> int:
    if _is_tuple(kind):
        return max(map(_alignment, kind), default=1)
    return SIZES.get(LETTERS.get(str(kind), ""), 8)


def _number(described: Any, objects: list[Any]) -> int:
    if described not in objects:
        objects.append(described)
    return objects.index(described)


# ---- the table, and the library ----------------------------------------------------------------


def _table(
    signatures: list[Signature], compiled: list[Compiled], classes: dict[str, str]
) -> tuple[dict[str, Any], str]:
    """How kernels are called, and the C code that calls them by words."""
    kernels: dict[str, list[Any]] = {}
    passes: dict[str, int] = {}
    lines, entries, addresses = ["#include <stdint.h>"], list[str](), list[str]()
    for signature, made in zip(signatures, compiled, strict=True):
        symbol = _symbol(signature)
        if made.is_pass:
            name = signature.kinds[0].head
            passes[f"{signature.kernel} {library.PACKAGE}{classes[name]}:{name}"] = len(addresses)
            lines.append(f"void {symbol}(void);")
            addresses.append(f"(void *){symbol}")
            continue
        result, objects = made.result
        objects = list(objects)
        words = [word for kind in signature.kinds for word in _words(kind)]
        code = bytes([len(signature.kinds)])
        code += b"".join(_argument(kind, objects, classes) for kind in signature.kinds)
        if 8 * len(words) > 8 * MOST_BYTES:
            raise ValueError(f"{signature.kernel} has too many arguments")
        kernels.setdefault(signature.kernel, []).append((len(entries), code.hex(), result, objects))
        given = "".join(f", {word}" for word in words)
        passed = "".join(f", *({word} *)(w + {k})" for k, word in enumerate(words))
        lines.append(f"int {symbol}(void *, void *{given});")
        lines.append(
            f"static int e{len(entries)}(void *r, void **e, int64_t *w)"
            f" {{ return {symbol}(r, e{passed}); }}"
        )
        entries.append(f"e{len(entries)}")
    for rows in kernels.values():  # what fits C order alone comes before what fits any
        rows.sort(key=lambda row: row[1].count(_ANY_ORDER))
    lines.append("typedef int (*Entry)(void *, void **, int64_t *);")
    lines.append(f"const Entry kernel_entries[] = {{{', '.join(entries)}}};")
    lines.append(f"void *const pass_addresses[] = {{{', '.join(addresses)}}};")
    return {"kernels": kernels, "passes": passes}, "\n".join(lines)


_ANY_ORDER = b"A".hex()


def _words(kind: Kind) -> list[str]:
    """C types of Numba's arguments for one of Python's, all of at most eight bytes."""
    if kind.head == "{":
        return ["void *"]
    if kind.array:
        return ["void *", "void *", "int64_t", "int64_t", "void *"] + ["int64_t"] * (
            2 * int(kind.array[0])
        )
    if kind.is_tuple:
        return [word for part in kind.parts for word in _words(part)]
    numbers = {"float64": "double", "float32": "float", "int32": "int32_t", "bool": "int8_t"}
    return [] if kind.head == "none" else [numbers.get(kind.head, "int64_t")]


def _argument(kind: Kind, objects: list[Any], classes: dict[str, str]) -> bytes:
    """The code of an argument as native/caller.c reads it."""
    if kind.head == "{":
        fields = [list(field) for field in kind.parts]
        return bytes([ord("R"), _number(fields, objects)])
    if kind.array:
        writes = not kind.array.endswith("r")
        number = _number(kind.head, objects)
        return bytes([ord("A"), number, int(kind.array[0]), ord(kind.array[1]), writes])
    if kind.is_tuple:
        where = f"{library.PACKAGE}{classes[kind.head]}:{kind.head}" if kind.head else ""
        number = _number(where, objects) if where else 255
        parts = b"".join(_argument(part, objects, classes) for part in kind.parts)
        return bytes([ord("("), len(kind.parts), number]) + parts
    return b"n" if kind.head == "none" else LETTERS[kind.head].encode()


def _symbol(signature: Signature) -> str:
    digest = hashlib.sha256(f"{signature.kernel} {signature.text}".encode()).hexdigest()
    return f"{signature.kernel.rpartition('.')[2].strip('_')}_{digest[:12]}"


def _linked(
    scratch: Path, level: str, thunks: str, compiled: list[Compiled], compiler: list[str]
) -> Path:
    """Link object code and C into a library."""
    import numpy as np

    (scratch / "thunks.c").write_text(thunks)
    objects = []
    for k, each in enumerate(compiled):
        objects.append(scratch / f"{k}.o")
        objects[-1].write_bytes(each.code)
    out = scratch / f"kernels-{level}{digest.SUFFIX}"
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    native = sorted((digest.HERE / "native").glob("*.c"))
    flags = [
        "-O2",
        "-shared",
        "-fPIC",
        "-w",
        "-s",
        f'-DKERNEL_LEVEL="{level}"',
        "-Wl,--gc-sections",
    ]
    run = [*compiler, *flags, *include, *native, scratch / "thunks.c", *objects, "-lm", "-o", out]
    subprocess.run([str(word) for word in run], check=True)
    return out


def _own_level(compiler: list[str]) -> str:
    """The best level that this processor runs."""
    levels = digest.LEVELS[digest.machine().rpartition("-")[2]]
    if len(levels) == 1:
        return levels[0]
    for level in levels:
        test = f'int main(void) {{ return !__builtin_cpu_supports("{level}"); }}'
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/level"
            run = [*compiler, "-x", "c", "-", "-o", program]
            subprocess.run(run, input=test, text=True, check=True)
            if subprocess.run([program]).returncode == 0:
                return level
    sys.exit("no kernels are built: this processor is older than x86-64-v2")


def _makers() -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite"))


if __name__ == "__main__":
    main()
