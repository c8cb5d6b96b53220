"""Kernels that are kept on disk: a file for each kernel and types of its arguments.

A file is a digest and what it is the digest of: a damaged one is known before anything of it is
run, removed, and made again. Files appear whole, under their names, or not at all. Nothing that is
wrong with the cache fails a fit; what cannot be kept is compiled in memory.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

from numba.core import types
from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from proxmargin.compiled import code, folders
from proxmargin.compiled.kernel import Kernel
from proxmargin.compiled.turns import turn

SEAL = sha256().digest_size  # bytes

_normalized: Any = normalize_signature
_pickled: Any = dumps
_rebuilt: Any = CompileResult._rebuild
_reduced: Any = CompileResult._reduce
_index_key: Any = FunctionCache._index_key

logger = logging.getLogger("proxmargin")


class KeptKernel(Kernel):
    """A kernel with a cache; of several processes one compiles it, and the others wait for that."""

    def __init__(self, py_func: Any, *options: Any, **more: Any) -> None:
        super().__init__(py_func, *options, **more)
        self._cache = KernelCache(py_func)  # as enable_caching does

    def compile(self, sig: Any) -> Any:
        arguments, _ = _normalized(sig)
        if tuple(arguments) in self.overloads:
            return super().compile(sig)
        with global_compiler_lock, turn(self._cache.file(sig, self.targetctx)):
            return super().compile(sig)


class KernelCache(FunctionCache):
    """What Numba asks for kernels on disk before it compiles, and hands what it has compiled."""

    def __init__(self, function: Any) -> None:
        self._py_func = function  # the base class makes keys of it
        self._stem = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self.enable()

    @property
    def cache_path(self) -> str:
        return str(next(folders.folders(), ""))

    def flush(self) -> None:
        for folder in folders.folders():
            for path in folder.glob(f"{self._stem}-*.nbc"):
                _remove(path)

    def file(self, sig: Any, target_context: Any) -> str:
        """The name of the file for these types."""
        return self._file(self._key(sig, target_context.codegen()))

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        target_context.refresh()
        if not self._enabled:
            return None
        key = self._key(sig, target_context.codegen())
        for path, content in _contents(self._file(key)):
            try:
                known, result = pickle.loads(content)
                if known == key:
                    folders.used(path.parent)
                    return _rebuilt(target_context, *result)
            except Exception:  # undamaged, but this Numba cannot use it
                _remove(path)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        home = folders.home()
        if home is None or not self._enabled or data.library.has_dynamic_globals:
            return
        if not all(map(code.can_be_kept, _named_tuples(sig))):
            return
        key = self._key(sig, data.codegen)
        content: bytes = _pickled((key, _reduced(data)))
        try:
            if folders.name() == folders.NAME:  # or a file was edited since this process began
                _write(home / self._file(key), content)
        except OSError as error:
            _warn_once(home, error.strerror or str(error))

    def _key(self, sig: Any, codegen: Any) -> Any:
        """Types of the arguments with their methods, processor, the code of the function itself."""
        own = _index_key(self, sig, codegen)
        return own, tuple(map(code.digest, _named_tuples(sig)))

    def _file(self, key: Any) -> str:
        return f"{self._stem}-{sha256(repr(key).encode()).hexdigest()[: folders.DIGITS]}.nbc"


def _named_tuples(kinds: Any) -> Iterator[type]:
    """The classes of named tuples among types of arguments, whose methods are compiled too."""
    for kind in kinds:
        kind = kind.dtype if isinstance(kind, types.CPointer) else kind
        if issubclass(type(kind), types.BaseNamedTuple):  # the stubs lack its attributes
            yield kind.instance_class
            yield from _named_tuples(kind.types)


def _contents(file: str) -> Iterator[tuple[Path, bytes]]:
    """Undamaged files of this name, the preferred one first."""
    for folder in folders.folders():
        path = folder / file
        try:
            with path.open("rb") as opened:
                if not folders.trusted(os.fstat(opened.fileno())):
                    continue
                whole = opened.read()
        except OSError:
            continue
        if whole[:SEAL] == sha256(whole[SEAL:]).digest():
            yield path, whole[SEAL:]
        else:
            _remove(path)


def _write(path: Path, content: bytes) -> None:
    """Write under another name and rename: a reader sees all of the file or none of it."""
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid4().hex}.tmp")
    try:
        with open(draft, "xb", opener=_readable_to_all) as file:
            file.write(sha256(content).digest() + content)
        os.replace(draft, path)
    except BaseException:
        _remove(draft)
        raise


def _readable_to_all(path: str, flags: int) -> int:
    return os.open(path, flags, 0o644)  # writable to others, it would never be read again


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


@cache
def _warn_once(home: Path, reason: str) -> None:
    logger.warning(
        "a compiled kernel cannot be kept in %s (%s) and will be compiled again: set "
        "NUMBA_CACHE_DIR to a folder with room for it",
        home,
        reason,
    )
