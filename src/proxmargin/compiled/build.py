"""Compile the kernels ahead of time: ``python -m proxmargin.compiled.build [LEVEL ...]``.

Numba compiles each signature of the list for a level of processors to LLVM's code, llvmlite makes
object code of that (`proxmargin.compiled.objects`), and the C compiler links it, with ``native/``,
into one library a level. The result lies in the folder ``library`` beside this file
(`proxmargin.compiled.library`). Object code is kept among the user's caches by what it was made of;
a build after a change of C takes seconds.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import cpu_count

from proxmargin.compiled import digest, library

if TYPE_CHECKING:
    from proxmargin.compiled.objects import Compiled

CACHE = Path.home() / ".cache" / "proxmargin" / "objects"
LINKED = {  # how compilers are asked for a library that Python loads
    "linux": ["-shared", "-fPIC", "-s", "-Wl,--gc-sections", "-lm"],
    "darwin": ["-bundle", "-fPIC", "-undefined", "dynamic_lookup", "-Wl,-dead_strip"],
    "win32": ["-shared", f"-L{sys.base_prefix}/libs", "-lpython3"],
}


class Signature(NamedTuple):
    """A line of the list: a kernel, as a module below proxmargin and a name, and types."""

    kernel: str
    text: str


Made = dict[Signature, tuple[str, "Compiled"]]  # with the names of their symbols


def main(*words: str) -> None:
    """Levels of processors, or all; default: this one's. ``--first``: for a first comparison."""
    levels, partly = [word for word in words if word != "--first"], "--first" in words
    if not levels and is_there(partly):
        return
    reason, known = "", digest.levels()
    if not known:
        reason = f"{digest.MACHINE} is not known"
    elif not digest.compiler():
        needed = "on Debian, type: sudo apt-get install gcc python3-dev"
        reason = f"there is no C compiler or no Python.h; {needed}"
    elif not library.has_numba():
        reason = f"type: pip install 'numba=={digest.NUMBA}.*'"
    elif not {*levels} <= {*known, "all"}:
        reason = f"levels of processors are {', '.join(known)}, and all"
    if reason:
        sys.exit(f"kernels are compiled on their first use, and none is built: {reason}")
    build(list(known) if levels == ["all"] else levels or [_own_level()], partly=partly)


def is_there(partly: bool) -> bool:
    """Whether there is a library of the sources as they are, which this processor runs."""
    try:
        return library.Library(digest.FOLDER).is_complete or partly
    except library.UNUSABLE:
        return False


def _own_level() -> str:
    """The best level that this processor runs."""
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    return next(each for each, name in digest.levels().items() if not name or features[name])


def signatures() -> tuple[list[Signature], set[Signature], dict[str, str]]:
    """Those of the list, those of them that a first comparison calls, and modules of tuples."""
    lines = [line.split(" ", 1) for line in (digest.HERE / "signatures.txt").open()]
    listed = [(name, Signature(name.removeprefix("+"), text.strip())) for name, text in lines]
    modules = dict(each.text.split() for name, each in listed if name == "class")
    found = [each for name, each in listed if name != "class"]
    return found, {each for name, each in listed if name.startswith("+")}, modules


def build(levels: list[str], *, partly: bool) -> None:
    """Put the libraries of these levels, and their digests, where the package looks for them."""
    listed, first, modules = signatures()
    chosen = [each for each in listed if each in first or not partly]
    digests = dict[str, str]()
    digest.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=digest.FOLDER) as scratch:
        for level in levels:
            path = _linked(Path(scratch, level), level, _compiled(chosen, modules, level), modules)
            digests[level] = sha256(path.read_bytes()).hexdigest()
            os.replace(path, digest.FOLDER / path.name)
        known = {"digest": digest.of_sources(), "libraries": digests, "complete": not partly}
        draft = Path(scratch) / "kernels.json"
        draft.write_text(json.dumps(known | {"made by": _makers()}))
        os.replace(draft, digest.FOLDER / draft.name)
    library.Library(digest.FOLDER)  # or it lacks a symbol that native/runtime.c should define


# ---- object code -------------------------------------------------------------------------------


def _compiled(chosen: list[Signature], modules: dict[str, str], level: str) -> Made:
    """In this order; from the cache where it has them."""
    keys = {each: _key(each, modules, level) for each in chosen}
    missing = [each for each, key in keys.items() if kept(key) is None]
    missing.sort(key=lambda each: -len(each.text))  # the longest take the longest
    os.environ |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_OPT": "3"}
    os.environ |= {library.SETTING: library.BUILDING, "OMP_NUM_THREADS": "1"}
    print(f"{level}: compiling {len(missing)} of {len(chosen)} kernels", file=sys.stderr)
    CACHE.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(cpu_count(), get_context("spawn")) as pool:
        list(pool.map(partial(_keep, modules), missing, map(keys.__getitem__, missing)))
    return {each: (key, kept(key)) for each, key in keys.items()}


def _keep(modules: dict[str, str], signature: Signature, key: str) -> None:
    """Compile a kernel, in a process of its own, into the cache."""
    from proxmargin.compiled.objects import compiled

    logging.disable()  # that kernels are compiled
    draft = CACHE / f"{key}.{os.getpid()}"
    draft.write_bytes(gzip.compress(pickle.dumps(compiled(*signature, modules, key)), 1))
    os.replace(draft, CACHE / key)


def kept(key: str) -> Any:
    """What is in a file of the cache; None where it is not there, or damaged."""
    try:
        return pickle.loads(gzip.decompress((CACHE / key).read_bytes()))
    except Exception:  # bytes that are no pickle raise any
        return None


@cache
def _content(module: str) -> str:
    """A digest of a module of kernels and of all that it imports; nothing of other modules."""
    path = digest.HERE.parent.joinpath(*module.split(".")).with_suffix(".py")
    if path not in digest.sources():
        return ""
    text, imported = path.read_text(), set[str]()
    for source, names in re.findall(r"^from proxmargin\.([\w.]+) import \(?([\w\s,]*)", text, re.M):
        imported |= {source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))}
    return sha256("".join([text, *map(_content, sorted(imported))]).encode()).hexdigest()


def _key(signature: Signature, modules: dict[str, str], level: str) -> str:
    """The name of object code, and of its symbol, by what it is made of."""
    named = sorted(modules.keys() & re.findall(r"\w+", signature.text))
    files = signature.kernel.rpartition(".")[0], "compiled.objects", *map(modules.get, named)
    made_of = [_makers(), level, *signature, *map(_content, files)]
    return "kernel_" + sha256("\0".join(made_of).encode()).hexdigest()[:32]


def _makers() -> str:
    return ", ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite"))


# ---- the library -------------------------------------------------------------------------------


def _calls(compiled: Made, modules: dict[str, str]) -> str:
    """C code that calls kernels by words, with the table of what they are given.

    Passes over samples, whose first argument is an address, are called by kernels, by theirs.
    """
    kernels: dict[str, list[Any]] = {}
    passes: dict[str, int] = {}
    lines, entries, addresses = ["#include <stdint.h>"], list[str](), list[str]()
    # what fits C order alone comes before what fits any
    for signature in sorted(compiled, key=lambda each: len(re.findall(r":\dA", each.text))):
        symbol, made = compiled[signature]
        lines.append(f"int {symbol}({', '.join(['void *', 'void *', *made.words])});")
        if signature.text.startswith("*"):
            passes[f"{signature.kernel} {made.objects[0]}"] = len(addresses)
            addresses.append(f"(void *){symbol}")
            continue
        row = len(entries), made.arguments, made.result, made.objects
        kernels.setdefault(signature.kernel, []).append(row)
        passed = "".join(f", *({word} *)(w + {k})" for k, word in enumerate(made.words))
        call = f"{{ return {symbol}(r, e{passed}); }}"
        lines.append(f"static int e{len(entries)}(void *r, void **e, int64_t *w) {call}")
        entries.append(f"e{len(entries)}")
    tuples = [f"{library.PACKAGE}{module}:{name}" for name, module in modules.items()]
    table = json.dumps({"kernels": kernels, "passes": passes, "tuples": tuples})
    lines.append("typedef int (*Entry)(void *, void **, int64_t *);")
    lines.append(f"const Entry kernel_entries[] = {{{', '.join(entries)}}};")
    lines.append(f"void *const pass_addresses[] = {{{', '.join(addresses)}}};")
    lines.append(f"const char kernel_table[] = {json.dumps(table)};")
    return "\n".join(lines)


def _linked(scratch: Path, level: str, compiled: Made, modules: dict[str, str]) -> Path:
    """Link object code and C, ours and Numba's wrappers of LAPACK, into a library."""
    scratch.mkdir()
    (scratch / "calls.c").write_text(_calls(compiled, modules))
    for symbol, each in compiled.values():
        (scratch / f"{symbol}.o").write_bytes(each.code)
    out = scratch / f"kernels-{level}{digest.SUFFIX}"
    numba: Any = find_spec("numba")
    places = [sysconfig.get_paths()["include"], np.get_include(), *numba.submodule_search_locations]
    sources = [*sorted((digest.HERE / "native").glob("*.c")), scratch / "calls.c"]
    most = max(len(each.words) for _, each in compiled.values())
    named = [f'-DKERNEL_LEVEL="{level}"', f"-DMOST_WORDS={most}", *(f"-I{each}" for each in places)]
    run = [*digest.compiler(), *named, *sources, *sorted(scratch.glob("*.o"))]
    run += ["-O2", "-w", *LINKED[sys.platform], "-o", out]
    subprocess.run([str(word) for word in run], check=True)
    return out


if __name__ == "__main__":
    main(*sys.argv[1:])
