"""Compile the kernels ahead of time: ``python -m proxmargin.compiled.build [LEVEL ...]``.

Numba compiles each signature of the list for a level of processors to LLVM's code, llvmlite makes
object code of that, and the C compiler links it, with ``native/``, into one library a level. The
result lies in the folder ``library`` beside this file (`proxmargin.compiled.library`). Object code
is kept among the user's caches by what it was made of; a build after a change of C takes seconds.

The lines of ``signatures.txt`` are described in docs/developing/compiled-kernels.md. What of
Numba's private parts ahead-of-time compilation rests on is here and in ``native/``: the layout of
arguments and results, and the symbols that ``runtime.c`` defines.
"""

from __future__ import annotations

import gc
import gzip
import importlib
import inspect
import json
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count

from proxmargin.compiled import library

CACHE = Path.home() / ".cache" / "proxmargin" / "objects"
LINKED = {  # how compilers are asked for a library that Python loads
    "linux": ["-shared", "-fPIC", "-s", "-Wl,--gc-sections", "-lm"],
    "darwin": ["-bundle", "-fPIC", "-undefined", "dynamic_lookup", "-Wl,-dead_strip"],
    "win32": ["-shared", f"-L{sys.base_prefix}/libs", "-lpython3"],
}
# as native/caller.c has them
LETTERS = {"float64": "d", "int64": "q", "uint64": "Q", "bool": "?", "none": "n"}
ORDERS = {"C": 1, "F": 2, "A": 0}  # NumPy's flags
WORDS = {"double": "double", "i64": "int64_t", "i8": "int8_t"}  # LLVM's types in C; else addresses
CALLS = {  # what Python reads instead of the list's ways to write types
    r"\{(.*?)\}": r"record('{\1}')",
    r"(\w+):(\d)([CFA])(r?)": r"array(\1,\2,'\3','\4')",
    r"(?<!\w)\(": "plain(",
    r"\*(\S+)": r"address(\1)",
}


class Signature(NamedTuple):
    """A line of the list: a kernel, as a module below proxmargin and a name, and types."""

    kernel: str
    text: str


class Compiled(NamedTuple):
    """A kernel for one signature."""

    symbol: str
    code: bytes  # an object file that defines the symbol
    words: list[str]  # types in C of what it is given
    arguments: str  # the codes that native/caller.c reads, in hexadecimal digits
    result: str
    objects: list[Any]  # what they refer to: classes as ``module:name``, and dtypes


def main(*words: str) -> None:
    """Levels of processors, or all; default: this one's. ``--first``: for a first comparison."""
    chosen, partly = [word for word in words if word != "--first"], "--first" in words
    if not chosen and is_there(partly):
        return
    known, apt = library.levels(), "on Debian, type: sudo apt-get install gcc python3-dev"
    needed = {
        f"{library.MACHINE} is not known": known,
        f"there is no C compiler or no Python.h; {apt}": library.compiler(),
        f"type: pip install 'numba=={library.NUMBA}.*'": library.has_numba(),
        f"levels of processors are {', '.join(known)}, and all": {*chosen} <= {*known, "all"},
    }
    for reason, is_met in needed.items():
        if not is_met:
            sys.exit(f"kernels are compiled on their first use, and none is built: {reason}")
    signal.signal(signal.SIGTERM, _end)
    build(list(known) if chosen == ["all"] else chosen or [_own_level()], partly=partly)


def _end(number: int, frame: object) -> None:
    """End at once with the processes that compile; without them, after files that were begun."""
    processes = active_children()
    for process in processes:
        process.terminate()
    if processes:
        os._exit(128 + number)
    sys.exit(128 + number)


def is_there(partly: bool) -> bool:
    """Whether there is a library of the sources as they are, which this processor runs."""
    try:
        return library.Library(library.FOLDER).is_complete or partly
    except library.UNUSABLE:
        return False


def _own_level() -> str:
    """The best level that this processor runs."""
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    return next(each for each, name in library.levels().items() if not name or features[name])


def signatures() -> tuple[list[Signature], set[Signature], dict[str, str]]:
    """Those of the list, those of them that a first comparison calls, and modules of tuples."""
    lines = [line.split(" ", 1) for line in (library.HERE / "signatures.txt").open()]
    listed = [(name, Signature(name.removeprefix("+"), text.strip())) for name, text in lines]
    modules = dict(each.text.split() for name, each in listed if name == "class")
    found = [each for name, each in listed if name != "class"]
    return found, {each for name, each in listed if name.startswith("+")}, modules


def build(levels: list[str], *, partly: bool) -> None:
    """Put the libraries of these levels, and their digests, where the package looks for them."""
    listed, first, modules = signatures()
    chosen = [each for each in listed if each in first or not partly]
    digests = dict[str, str]()
    for level in levels:
        code = _linked(level, _compiled(chosen, modules, level), modules)
        digests[level] = sha256(code).hexdigest()
        _put(code, library.FOLDER / f"kernels-{level}{library.SUFFIX}")
    known = {"digest": library.of_sources(), "libraries": digests, "complete": not partly}
    _put(json.dumps(known).encode(), library.FOLDER / "kernels.json")
    library.Library(library.FOLDER)  # or it lacks a symbol that native/runtime.c should define


def _put(content: bytes, path: Path) -> None:
    """Write a file as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    os.replace(draft, path)


# ---- object code, from the cache or compiled in other processes --------------------------------


def _compiled(
    chosen: list[Signature], modules: dict[str, str], level: str
) -> dict[Signature, Compiled]:
    """In this order; from the cache where it has them."""
    keys = {each: _key(each, modules, level) for each in chosen}
    missing = [each for each, key in keys.items() if kept(key) is None]
    missing.sort(key=lambda each: -len(each.text))  # the longest take the longest
    os.environ |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_OPT": "3"}
    os.environ |= {library.SETTING: library.BUILDING, "OMP_NUM_THREADS": "1"}
    print(f"{level}: compiling {len(missing)} of {len(chosen)} kernels", file=sys.stderr)
    with ProcessPoolExecutor(cpu_count(), get_context("spawn")) as pool:
        list(pool.map(_keep, missing, [modules] * len(missing), map(keys.get, missing)))
    return {each: kept(key) for each, key in keys.items()}


def _keep(signature: Signature, modules: dict[str, str], key: str) -> None:
    """Compile a kernel, in a process of its own, into the cache."""
    logging.disable()  # that kernels are compiled
    _put(gzip.compress(pickle.dumps(tuple(compiled(signature, modules, key))), 1), CACHE / key)


def kept(key: str) -> Any:
    """What is in a file of the cache; None where it is not there, or damaged."""
    try:
        return Compiled(*pickle.loads(gzip.decompress((CACHE / key).read_bytes())))
    except Exception:  # bytes that are no pickle raise any
        return None


@cache
def _content(module: str) -> str:
    """A digest of a module of kernels and of all that it imports; nothing of other modules."""
    path = library.HERE.parent.joinpath(*module.split(".")).with_suffix(".py")
    if path not in library.sources():
        return ""
    text, imported = path.read_text(), set[str]()
    for source, names in re.findall(r"^from proxmargin\.([\w.]+) import \(?([\w\s,]*)", text, re.M):
        imported |= {source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))}
    return sha256("".join([text, *map(_content, sorted(imported))]).encode()).hexdigest()


def _key(signature: Signature, modules: dict[str, str], level: str) -> str:
    """The name of object code, and of its symbol, by what it is made of."""
    named = sorted(modules.keys() & re.findall(r"\w+", signature.text))
    files = signature.kernel.rpartition(".")[0], *map(modules.__getitem__, named)
    made_of = [*_makers(), level, *signature, *map(_content, files)]
    return "kernel_" + sha256("\0".join(made_of).encode()).hexdigest()[:32]


@cache
def _makers() -> list[str]:
    """What makes object code of files and types: versions, and the functions that follow."""
    versions = [f"{name} {version(name)}" for name in ("numba", "llvmlite")]
    functions: tuple[Any, ...] = types_of, compiled, _code
    return [*versions, *map(inspect.getsource, functions)]


# ---- a kernel ----------------------------------------------------------------------------------


def types_of(text: str, modules: dict[str, str]) -> tuple[Any, ...]:
    """Numba's types of the arguments in a line of the list; ``modules``: of named tuples."""
    from numba import from_dtype, types

    array: Any = types.Array  # the stubs take literal orders alone

    class Names(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            if name not in modules:
                return getattr(types, name)
            kind = getattr(importlib.import_module(library.PACKAGE + modules[name]), name)
            return lambda *parts: types.BaseTuple.from_types(parts, kind)

    names = Names(
        bool=types.boolean,
        address=types.CPointer,
        array=lambda kind, ndim, order, r: array(kind, ndim, order, readonly=bool(r)),
        plain=lambda *parts: types.BaseTuple.from_types(parts),
        record=lambda text: from_dtype(library.dtype_of(text)),
    )
    for pattern, call in CALLS.items():
        text = re.sub(pattern, call, text)
    return tuple(eval(word, {"__builtins__": {}}, names) for word in text.split(" "))


def compiled(signature: Signature, modules: dict[str, str], symbol: str) -> Compiled:
    """Compile a kernel for the types of a line."""
    from llvmlite import binding
    from numba.core.codegen import JITCodeLibrary

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

    gc.disable()  # millions of objects live to the end
    module, _, name = signature.kernel.rpartition(".")
    known = getattr(importlib.import_module(library.PACKAGE + module), name)
    kinds = types_of(signature.text, modules)
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
    returned = overload.signature.return_type
    if hasattr(returned, "instance_class"):
        raise TypeError(f"{signature.kernel} returns a named tuple")
    result = _code(returned, objects).hex()
    return Compiled(symbol, target.emit_object(parsed), words, arguments.hex(), result, objects)


def _code(kind: Any, objects: list[Any]) -> bytes:
    """How native/caller.c reads a type; what it refers to goes into the list."""
    from numba import types

    def of(letter: str, described: Any, *numbers: int) -> bytes:
        if described not in objects:
            objects.append(described)
        return bytes([ord(letter), objects.index(described), *numbers])

    if isinstance(kind, types.CPointer | types.IntEnumMember):
        return _code(kind.dtype, objects)
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind  # the stubs lack that tuples can be gone through
        head = of("(", library.place_of(getattr(kind, "instance_class", tuple)), len(parts))
        return head + b"".join(_code(part, objects) for part in parts)
    if isinstance(kind, types.Array):
        flags = ORDERS[kind.layout], kind.mutable and 4  # of 256: may be written
        return of("A", str(kind.dtype), kind.ndim, *flags)
    if isinstance(kind, types.Record):
        fields = ",".join(f"{name}:{kind.typeof(name)}" for name in kind.fields)
        return of("R", f"{{{fields}}}")
    return LETTERS[str(kind)].encode()


# ---- the library -------------------------------------------------------------------------------


def _calls(kernels: dict[Signature, Compiled], modules: dict[str, str]) -> str:
    """C code that calls kernels by words, with the table of what they are given.

    Passes over samples, whose first argument is an address, are called by kernels, by theirs.
    """
    rows: dict[str, list[Any]] = {}
    passes: dict[str, int] = {}
    lines, entries, addresses = ["#include <stdint.h>"], list[str](), list[str]()
    # what fits C order alone comes before what fits any
    for signature in sorted(kernels, key=lambda each: len(re.findall(r":\dA", each.text))):
        symbol, _, words, *codes, objects = kernels[signature]
        lines.append(f"int {symbol}({', '.join(['void *', 'void *', *words])});")
        if signature.text.startswith("*"):
            passes[f"{signature.kernel} {objects[0]}"] = len(addresses)
            addresses.append(f"(void *){symbol}")
            continue
        rows.setdefault(signature.kernel, []).append((len(entries), *codes, objects))
        passed = "".join(f", *({word} *)(w + {k})" for k, word in enumerate(words))
        call = f"{{ return {symbol}(r, e{passed}); }}"
        lines.append(f"static int e{len(entries)}(void *r, void **e, int64_t *w) {call}")
        entries.append(f"e{len(entries)}")
    tuples = [f"{library.PACKAGE}{module}:{name}" for name, module in modules.items()]
    table = json.dumps({"kernels": rows, "passes": passes, "tuples": tuples})
    lines.append("typedef int (*Entry)(void *, void **, int64_t *);")
    lines.append(f"const Entry kernel_entries[] = {{{', '.join(entries)}}};")
    lines.append(f"void *const pass_addresses[] = {{{', '.join(addresses)}}};")
    lines.append(f"const char kernel_table[] = {json.dumps(table)};")
    return "\n".join(lines)


def _linked(level: str, kernels: dict[Signature, Compiled], modules: dict[str, str]) -> bytes:
    """A library of object code and C, ours and Numba's wrappers of LAPACK."""
    numba: Any = find_spec("numba")
    places = [sysconfig.get_paths()["include"], np.get_include(), *numba.submodule_search_locations]
    most = max(len(each.words) for each in kernels.values())
    named = [f'-DKERNEL_LEVEL="{level}"', f"-DMOST_WORDS={most}", *(f"-I{each}" for each in places)]
    with tempfile.TemporaryDirectory() as folder:
        calls, out = Path(folder, "calls.c"), Path(folder, "kernels")
        calls.write_text(_calls(kernels, modules))
        for each in kernels.values():
            Path(folder, f"{each.symbol}.o").write_bytes(each.code)
        sources = [*sorted((library.HERE / "native").glob("*.c")), *sorted(calls.parent.glob("*"))]
        run = [*library.compiler(), *named, *sources, "-O2", "-w", *LINKED[sys.platform]]
        subprocess.run([str(word) for word in [*run, "-o", out]], check=True)
        return out.read_bytes()


if __name__ == "__main__":
    main(*sys.argv[1:])
