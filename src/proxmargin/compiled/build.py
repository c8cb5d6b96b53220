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
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from proxmargin.compiled import digest, library
from proxmargin.compiled.signatures import LETTERS, Kind, Signature, number_of, read

if TYPE_CHECKING:
    from proxmargin.compiled.objects import Compiled

CACHE = Path.home() / ".cache" / "proxmargin" / "objects"
MOST_WORDS = 2048  # of the arguments of a kernel, as in native/caller.c
HEAVY = ("advance", "begin", "newton_steps", "restart", "descend", "quadratic_minimum")  # first
LINKED = {  # how compilers are asked for a library that Python loads
    "linux": ["-shared", "-s", "-Wl,--gc-sections"],
    "darwin": ["-bundle", "-undefined", "dynamic_lookup", "-Wl,-dead_strip"],
    "win32": ["-shared", "-s", f"-L{sys.base_prefix}/libs", "-lpython3"],
}


def main(arguments: Sequence[str] | None = None) -> None:
    levels = digest.levels()
    parser = argparse.ArgumentParser(description="Compile the kernels ahead of time.")
    of_processors = f"of processors: {', '.join(levels)}, or all; default: this one's"
    parser.add_argument("levels", nargs="*", metavar="LEVEL", help=of_processors)
    parser.add_argument("--first", action="store_true", help="only those of a first comparison")
    parser.add_argument("--jobs", type=int, default=_processors())
    parser.add_argument("--again", action="store_true", help="even where one is up to date")
    chosen = parser.parse_args(arguments)
    if not (chosen.levels or chosen.again) and _is_there(chosen.first):
        return
    compiler = _compiler()
    wanted = chosen.levels or [_own_level(compiler)]
    signatures = [each for each in read()[0] if each.is_first or not chosen.first]
    build(list(levels) if wanted == ["all"] else wanted, signatures, chosen.jobs, compiler)


def _is_there(partly: bool) -> bool:
    """Whether there is a library of the sources as they are, which this processor runs."""
    try:
        return digest.is_current(digest.FOLDER, partly=partly) and bool(
            library.Library(digest.FOLDER)
        )
    except (library.Refused, OSError, ImportError):
        return False


def _processors() -> int:
    """Those that this process may use."""
    own = getattr(os, "sched_getaffinity", None)  # not everywhere
    return len(own(0)) if own else os.cpu_count() or 1


def _compiler() -> list[str]:
    """The command of the C compiler; an error that says what is missing for a build."""
    command, reason = digest.compiler(), ""
    if not digest.levels():
        reason = f"{digest.machine()} is not known"
    elif not command:
        needed = "on Debian, type: sudo apt-get install gcc python3-dev"
        reason = f"there is no C compiler or no Python.h; {needed}"
    elif not _makers().startswith(f"numba {digest.NUMBA}."):
        reason = f"type: pip install 'numba=={digest.NUMBA}.*'"
    if reason:
        sys.exit(f"kernels are compiled on their first use, and none is built: {reason}")
    return command


def _makers() -> str:
    try:
        return ", ".join(f"{name} {version(name)}" for name in ("numba", "llvmlite"))
    except PackageNotFoundError:
        return ""


def _own_level(compiler: list[str]) -> str:
    """The best level that this processor runs."""
    levels = digest.levels()
    if len(levels) == 1:
        return levels[0]
    tests = (f'if (__builtin_cpu_supports("{each}")) return {k};' for k, each in enumerate(levels))
    with tempfile.TemporaryDirectory() as folder:
        run = [*compiler, "-x", "c", "-", "-o", f"{folder}/level"]
        program = f"int main(void) {{ {' '.join(tests)} return {len(levels)}; }}"
        subprocess.run(run, input=program, text=True, check=True)
        best = subprocess.run([f"{folder}/level"]).returncode
    if best == len(levels):
        sys.exit(f"no kernels are built: this processor is older than {levels[-1]}")
    return levels[best]


def build(levels: list[str], signatures: list[Signature], jobs: int, compiler: list[str]) -> None:
    """Put the libraries of these levels, and the table, where the package looks for them."""
    made_from = digest.digest_of(digest.sources())
    digests: dict[str, str] = {}
    table: dict[str, Any] = {}
    digest.FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=digest.FOLDER) as scratch:
        for level in levels:
            compiled = list(_compiled(signatures, level, jobs))
            table, calls = _table(signatures, compiled)
            path = _linked(Path(scratch), level, calls, compiled, compiler)
            digests[level] = hashlib.sha256(path.read_bytes()).hexdigest()
            os.replace(path, digest.FOLDER / path.name)
        table |= {"digest": made_from, "machine": digest.machine(), "libraries": digests}
        table |= {"made by": _makers(), "complete": len(signatures) == len(read()[0])}
        draft = Path(scratch) / "kernels.json"
        draft.write_bytes(digest.sealed(json.dumps(table).encode()))
        os.replace(draft, digest.FOLDER / draft.name)
    library.Library(digest.FOLDER)  # or it lacks a symbol that native/runtime.c should define


def _compiled(signatures: list[Signature], level: str, jobs: int) -> Iterator[Compiled]:
    """In the order of the list; from the cache where it has them."""
    from proxmargin.compiled.objects import compiled

    paths = [CACHE / key for key in _keys(signatures, level)]
    missing = [k for k, path in enumerate(paths) if not _is_kept(path)]
    missing.sort(key=lambda k: not signatures[k].kernel.endswith(HEAVY))
    os.environ |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": "", "NUMBA_OPT": "3"}
    os.environ |= {"PROXMARGIN_KERNELS": "numba", "OMP_NUM_THREADS": "1"}
    print(f"{level}: compiling {len(missing)} of {len(signatures)} kernels", file=sys.stderr)
    CACHE.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        futures = {pool.submit(compiled, signatures[k]): k for k in missing}
        for future in as_completed(futures):
            path = paths[futures[future]]
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_bytes(digest.sealed(pickle.dumps(future.result())))
            os.replace(draft, path)
    for path in paths:
        yield pickle.loads(digest.unsealed(path.read_bytes()))


def _is_kept(path: Path) -> bool:
    """Whether object code is there, undamaged."""
    try:
        return bool(digest.unsealed(path.read_bytes()))
    except (OSError, ValueError):
        return False


def _keys(signatures: list[Signature], level: str) -> Iterator[str]:
    """Names that tell what object code is made of."""
    makers = [digest.HERE / name for name in ("objects.py", "lowering.py")]
    kernels = [path for path in digest.sources() if path.suffix == ".py"]
    inside = [path for path in kernels if digest.HERE in path.parents]
    outside = {name for name, module in read()[1].items() if not module.startswith("compiled.")}
    made_of = {True: digest.digest_of(kernels), False: digest.digest_of(inside)}
    common = f"{_makers()} {level} {digest.digest_of(makers)}"
    for each in signatures:
        own = made_of[any(f"{name}(" in each.text for name in outside)]
        key = f"{common} {own} {each.kernel} {each.text}"
        yield hashlib.sha256(key.encode()).hexdigest()[:32]


# ---- the table, and the library ----------------------------------------------------------------


def _table(signatures: list[Signature], compiled: list[Compiled]) -> tuple[dict[str, Any], str]:
    """How kernels are called, and the C code that calls them by words."""
    from proxmargin.compiled.objects import symbol_of

    kernels: dict[str, list[Any]] = {}
    passes: dict[str, int] = {}
    lines, entries, addresses = ["#include <stdint.h>"], list[str](), list[str]()
    for signature, made in zip(signatures, compiled, strict=True):
        symbol = symbol_of(signature)
        if made.is_pass:
            passes[f"{signature.kernel} {_place(signature.kinds[0].head)}"] = len(addresses)
            lines.append(f"void {symbol}(void);")
            addresses.append(f"(void *){symbol}")
            continue
        result, objects = made.result[0], list(made.result[1])
        words = [word for kind in signature.kinds for word in _words(kind)]
        if len(words) > MOST_WORDS:
            raise ValueError(f"{signature.kernel} has too many arguments")
        code = bytes([len(signature.kinds)])
        code += b"".join(_argument(kind, objects) for kind in signature.kinds)
        kernels.setdefault(signature.kernel, []).append((len(entries), code.hex(), result, objects))
        given = "".join(f", {word}" for word in words)
        passed = "".join(f", *({word} *)(w + {k})" for k, word in enumerate(words))
        call = f"{{ return {symbol}(r, e{passed}); }}"
        lines.append(f"int {symbol}(void *, void *{given});")
        lines.append(f"static int e{len(entries)}(void *r, void **e, int64_t *w) {call}")
        entries.append(f"e{len(entries)}")
    for rows in kernels.values():  # what fits C order alone comes before what fits any
        rows.sort(key=lambda row: row[1].count(b"A".hex()))
    lines.append("typedef int (*Entry)(void *, void **, int64_t *);")
    lines.append(f"const Entry kernel_entries[] = {{{', '.join(entries)}}};")
    lines.append(f"void *const pass_addresses[] = {{{', '.join(addresses)}}};")
    return {"kernels": kernels, "passes": passes}, "\n".join(lines)


def _words(kind: Kind) -> list[str]:
    """C types of Numba's arguments for one of Python's, all of at most eight bytes."""
    if kind.head == "{":
        return ["void *"]
    if kind.array:
        owners, sizes, data = ["void *"] * 2, ["int64_t"] * 2, "void *"
        return [*owners, *sizes, data] + ["int64_t"] * (2 * int(kind.array[0]))
    if kind.is_tuple:
        return [word for part in kind.parts for word in _words(part)]
    numbers = {"float64": "double", "float32": "float", "int32": "int32_t", "bool": "int8_t"}
    return [] if kind.head == "none" else [numbers.get(kind.head, "int64_t")]


def _argument(kind: Kind, objects: list[Any]) -> bytes:
    """The code of an argument as native/caller.c reads it."""
    if kind.head == "{":
        return bytes([ord("R"), number_of([list(field) for field in kind.parts], objects)])
    if kind.array:
        number, writes = number_of(kind.head, objects), not kind.array.endswith("r")
        return bytes([ord("A"), number, int(kind.array[0]), ord(kind.array[1]), writes])
    if kind.is_tuple:
        number = number_of(_place(kind.head), objects) if kind.head else 255
        parts = b"".join(_argument(part, objects) for part in kind.parts)
        return bytes([ord("("), len(kind.parts), number]) + parts
    return b"n" if kind.head == "none" else LETTERS[kind.head].encode()


def _place(name: str) -> str:
    """Where a named tuple of the list is."""
    return f"{library.PACKAGE}{read()[1][name]}:{name}"


def _linked(
    scratch: Path, level: str, calls: str, compiled: list[Compiled], compiler: list[str]
) -> Path:
    """Link object code and C into a library."""
    (scratch / "calls.c").write_text(calls)
    objects = [scratch / f"{k}.o" for k in range(len(compiled))]
    for path, each in zip(objects, compiled, strict=True):
        path.write_bytes(each.code)
    out = scratch / f"kernels-{level}{digest.SUFFIX}"
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    sources = [*sorted((digest.HERE / "native").glob("*.c")), scratch / "calls.c"]
    flags = ["-O2", "-fPIC", "-w", f'-DKERNEL_LEVEL="{level}"', *LINKED[sys.platform]]
    run = [*compiler, *include, *sources, *objects, *flags, "-lm", "-o", out]
    subprocess.run([str(word) for word in run], check=True)
    return out


if __name__ == "__main__":
    main()
