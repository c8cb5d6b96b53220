"""Compile the kernels ahead of time: ``python -m proxmargin.compiled.build [LEVEL ...]``.

Numba compiles each signature of the list for a level of processors to LLVM's code, llvmlite makes
object code of that (`proxmargin.compiled.objects`), and the C compiler links it, with ``native/``,
into one library a level. The result lies in the folder ``library`` beside this file
(`proxmargin.compiled.library`). Object code is kept among the user's caches by what it was made of;
a build after a change of C takes seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import cpu_count

from proxmargin.compiled import digest, library

if TYPE_CHECKING:
    from proxmargin.compiled.objects import Compiled

CACHE = Path.home() / ".cache" / "proxmargin" / "objects"
MOST_WORDS = 2048  # of the arguments of a kernel, as in native/caller.c
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


def main(arguments: Sequence[str] | None = None) -> None:
    levels = digest.levels()
    parser = argparse.ArgumentParser(description="Compile the kernels ahead of time.")
    of_processors = f"of processors: {', '.join(levels)}, or all; default: this one's"
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=of_processors)
    parser.add_argument("--first", action="store_true", help="only those of a first comparison")
    chosen = parser.parse_args(arguments)
    if not chosen.levels and is_there(chosen.first):
        return
    compiler = _compiler()
    wanted = list(levels) if chosen.levels == ["all"] else chosen.levels or [_own_level()]
    build(wanted, compiler, partly=chosen.first)


def is_there(partly: bool) -> bool:
    """Whether there is a library of the sources as they are, which this processor runs."""
    try:
        return library.Library(digest.FOLDER).is_complete or partly
    except library.UNUSABLE:
        return False


def _compiler() -> list[str]:
    """The command of the C compiler; an error that says what is missing for a build."""
    command, reason = digest.compiler(), ""
    if not digest.levels():
        reason = f"{digest.machine()} is not known"
    elif not command:
        needed = "on Debian, type: sudo apt-get install gcc python3-dev"
        reason = f"there is no C compiler or no Python.h; {needed}"
    elif not library.has_numba():
        reason = f"type: pip install 'numba=={digest.NUMBA}.*'"
    if reason:
        sys.exit(f"kernels are compiled on their first use, and none is built: {reason}")
    return command


def _own_level() -> str:
    """The best level that this processor runs."""
    from llvmlite.binding import get_host_cpu_features

    features = get_host_cpu_features()
    for level, feature in digest.levels().items():
        if not feature or features[feature]:
            return level
    sys.exit(f"no kernels are built: this processor is older than {level}")


def signatures() -> tuple[list[Signature], set[Signature], dict[str, str]]:
    """Those of the list, those of them that a first comparison calls, and modules of tuples."""
    found, first, modules = list[Signature](), set[Signature](), dict[str, str]()
    for line in (digest.HERE / "signatures.txt").read_text().splitlines():
        kernel, text = line.split(" ", 1)
        if kernel == "class":
            name, module = text.split()
            modules[name] = module
            continue
        found.append(Signature(kernel.removeprefix("+"), text))
        if kernel.startswith("+"):
            first.add(found[-1])
    return found, first, modules


def build(levels: list[str], compiler: list[str], *, partly: bool) -> None:
    """Put the libraries of these levels, and the table, where the package looks for them."""
    listed, first, modules = signatures()
    chosen = [each for each in listed if each in first or not partly]
    places = [f"{library.PACKAGE}{module}:{name}" for name, module in modules.items()]
    known = {"digest": digest.of_sources(), "machine": digest.machine(), "tuples": places}
    digests, table = dict[str, str](), dict[str, Any]()
    digest.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=digest.FOLDER) as scratch:
        for level in levels:
            compiled = _compiled(chosen, modules, level)
            table, calls = _table(compiled)
            path = _linked(Path(scratch, level), level, calls, compiled, compiler)
            digests[level] = hashlib.sha256(path.read_bytes()).hexdigest()
            os.replace(path, digest.FOLDER / path.name)
        table |= {**known, "libraries": digests, "made by": _makers(), "complete": not partly}
        draft = Path(scratch) / "kernels.json"
        draft.write_bytes(digest.sealed(json.dumps(table).encode()))
        os.replace(draft, digest.FOLDER / draft.name)
    library.Library(digest.FOLDER)  # or it lacks a symbol that native/runtime.c should define


# ---- object code -------------------------------------------------------------------------------


def _compiled(chosen: list[Signature], modules: dict[str, str], level: str) -> Made:
    """In this order; from the cache where it has them."""
    from proxmargin.compiled.objects import compiled

    keys = {each: _key(each, modules, level) for each in chosen}
    missing = [each for each, key in keys.items() if kept(CACHE / key) is None]
    missing.sort(key=lambda each: -len(each.text))  # the longest take the longest
    os.environ |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_OPT": "3"}
    os.environ |= {library.SETTING: "numba", "OMP_NUM_THREADS": "1"}
    print(f"{level}: compiling {len(missing)} of {len(chosen)} kernels", file=sys.stderr)
    CACHE.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(cpu_count(), get_context("spawn")) as pool:
        futures = {
            pool.submit(compiled, *each, modules, keys[each]): keys[each] for each in missing
        }
        for future in as_completed(futures):
            draft = CACHE / f"{futures[future]}.{os.getpid()}"
            draft.write_bytes(digest.sealed(pickle.dumps(future.result())))
            os.replace(draft, CACHE / futures[future])
    return {each: (key, kept(CACHE / key)) for each, key in keys.items()}


def kept(path: Path) -> Any:
    """What is in a file of the cache; None where it is not there, or damaged."""
    try:
        return pickle.loads(digest.unsealed(path))
    except (OSError, digest.Refused):
        return None


@cache
def _imports() -> dict[str, tuple[str, set[str]]]:
    """Of each file that kernels are made of, by its module: the text, and what it imports."""
    found = {}
    for path in digest.sources():
        if path.suffix == ".py":
            text, names = path.read_text(), set[str]()
            for source, more in re.findall(r"^from ([\w.]+) import \(?([\w\s,]*)", text, re.M):
                names |= {source, *(f"{source}.{name}" for name in re.findall(r"\w+", more))}
            parts = path.relative_to(digest.HERE.parent).with_suffix("").parts
            found[library.PACKAGE + ".".join(parts)] = text, names
    return found


def _key(signature: Signature, modules: dict[str, str], level: str) -> str:
    """The name of object code, and of its symbol, by what it is made of: what it imports, too."""
    tuples = {modules[name] for name in re.findall(r"[A-Z]\w*", signature.text) if name in modules}
    todo = {signature.kernel.rpartition(".")[0], "compiled.objects", *tuples}
    todo, met = {library.PACKAGE + name for name in todo}, set[str]()
    while todo:
        met |= todo
        todo = {name for each in todo for name in _imports()[each][1] & _imports().keys()} - met
    made_of = [_makers(), level, *signature, *(_imports()[name][0] for name in sorted(met))]
    return "kernel_" + hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:32]


def _makers() -> str:
    return ", ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite"))


# ---- the table, and the library ----------------------------------------------------------------


def _table(compiled: Made) -> tuple[dict[str, Any], str]:
    """How kernels are called, and the C code that calls them by words.

    Passes over samples, whose first argument is an address, are called by kernels, by theirs.
    """
    kernels: dict[str, list[Any]] = {}
    passes: dict[str, int] = {}
    lines, entries, addresses = ["#include <stdint.h>"], list[str](), list[str]()
    for signature, (symbol, made) in compiled.items():
        lines.append(f"int {symbol}({', '.join(['void *', 'void *', *made.words])});")
        if signature.text.startswith("*"):
            passes[f"{signature.kernel} {made.objects[0]}"] = len(addresses)
            addresses.append(f"(void *){symbol}")
            continue
        if len(made.words) > MOST_WORDS:
            raise ValueError(f"{signature.kernel} has too many arguments")
        row = len(entries), made.arguments, made.result, made.objects
        kernels.setdefault(signature.kernel, []).append(row)
        passed = "".join(f", *({word} *)(w + {k})" for k, word in enumerate(made.words))
        call = f"{{ return {symbol}(r, e{passed}); }}"
        lines.append(f"static int e{len(entries)}(void *r, void **e, int64_t *w) {call}")
        entries.append(f"e{len(entries)}")
    for rows in kernels.values():  # what fits C order alone comes before what fits any
        rows.sort(key=lambda row: row[1].count(b"A".hex()))
    lines.append("typedef int (*Entry)(void *, void **, int64_t *);")
    lines.append(f"const Entry kernel_entries[] = {{{', '.join(entries)}}};")
    lines.append(f"void *const pass_addresses[] = {{{', '.join(addresses)}}};")
    return {"kernels": kernels, "passes": passes}, "\n".join(lines)


def _linked(scratch: Path, level: str, calls: str, compiled: Made, compiler: list[str]) -> Path:
    """Link object code and C into a library."""
    scratch.mkdir()
    (scratch / "calls.c").write_text(calls)
    for symbol, each in compiled.values():
        (scratch / f"{symbol}.o").write_bytes(each.code)
    out = scratch / f"kernels-{level}{digest.SUFFIX}"
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    sources = [*sorted((digest.HERE / "native").glob("*.c")), scratch / "calls.c"]
    flags = ["-O2", "-w", f'-DKERNEL_LEVEL="{level}"', *LINKED[sys.platform]]
    run = [*compiler, *include, *sources, *sorted(scratch.glob("*.o")), *flags, "-o", out]
    subprocess.run([str(word) for word in run], check=True)
    return out


if __name__ == "__main__":
    main()
