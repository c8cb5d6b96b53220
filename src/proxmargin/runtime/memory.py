"""The free memory, vectors of memory-mapped files, and results that are kept with their object.

Files that need more than the free memory are rejected before they are read: a few bytes can expand
to many (a large index, a compressed line, a header of many names). Estimates are lower bounds, so
that no readable file is rejected.

The operating system writes mapped arrays to the disk where memory is short, so that the disk limits
the number of rows. Results that are written beside a mapped array (`empty_beside`) are mapped too:
what a fit makes of such vectors follows their storage.
"""

from __future__ import annotations

import functools
import mmap
import os
import tempfile
from collections.abc import Callable, Hashable, Iterator
from functools import wraps
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from proxmargin.runtime.types import Record, Values

# bytes assumed where no system call reports any: a small machine of today
UNKNOWN = 4 * 2**30
CACHED_ENTRIES = 1 << 16  # of float64 that fit in a core's cache: half a megabyte
# of float64 in a block: 4 MB. Its work outweighs the calls for it, and it is small beside the data
BLOCK_ENTRIES = 1 << 19
_CONTROL = Path("/sys/fs/cgroup")
# files of a control group: limit and use, in version 1 in a folder of their own
_CONTROL_FILES = (
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def shortage(needed: int) -> str | None:
    """None if ``needed`` bytes are free, otherwise both numbers: ``9.0 GB of memory, ...``."""
    free = free_bytes()
    return None if needed <= free else f"{in_words(needed)} of memory, and {in_words(free)} is free"


def free_bytes() -> int:
    """Bytes that this process can still allocate, by the machine, containers and limits."""
    known = [*_machine(), *_containers(), *_limits()]
    return max(min(known, default=UNKNOWN), 0)


def in_words(size: int) -> str:
    """``3.2 MB``."""
    scale = next((power for power in (4, 3, 2, 1) if size >= 1000**power), 0)
    unit = ("bytes", "kB", "MB", "GB", "TB")[scale]
    return f"{size} {unit}" if scale == 0 else f"{size / 1000**scale:.1f} {unit}"


def _machine() -> Iterator[int]:
    """Memory that no process uses; caches that the system would give up count as free."""
    available = _field(Path("/proc/meminfo"), "MemAvailable:")
    if available is not None:
        yield 1024 * available
        return
    for pages in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):  # the total where the free part is unknown
        if pages in getattr(os, "sysconf_names", ()):
            yield os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")
            return


def _containers() -> Iterator[int]:
    """Bytes left by the limits of the control groups of this process."""
    for folder in _control_groups():
        for limit_file, used_file in _CONTROL_FILES:
            limit, used = _number(folder / limit_file), _number(folder / used_file)
            if limit is not None and used is not None:
                cached = _field(folder / "memory.stat", "inactive_file") or 0
                yield limit - used + cached


def _control_groups() -> Iterator[Path]:
    """Folders of the groups, from that of this process up, in both versions of the interface."""
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        kind, _, inner = rest.partition(":")
        if kind in ("", "memory"):
            top = _CONTROL / kind
            group = top / inner.strip("/")
            yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(top))


def _limits() -> Iterator[int]:
    """Bytes left by ``ulimit -v`` and ``ulimit -d``."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    pages = _text(Path("/proc/self/statm")).split()
    for kind, place in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY:
            used = int(pages[place]) * resource.getpagesize() if pages else 0
            yield limit - used


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    """The number in a file, or None where it has none (``max`` is no limit)."""
    word = _text(path).strip()
    return int(word) if word.isdecimal() else None


def _field(path: Path, name: str) -> int | None:
    """The number after a name in a file of lines ``name number``."""
    for line in _text(path).splitlines():
        words = line.split()
        if len(words) > 1 and words[0] == name and words[1].isdecimal():
            return int(words[1])
    return None


LEAST_BYTES = 1 << 26  # of an array that is mapped: 64 MB


class _Pages(mmap.mmap):
    """The memory of a mapped array."""


def mapped_empty(shape: tuple[int, ...], dtype: DTypeLike = float) -> Values:
    """An array of undefined content, in a mapped file of the temporary folder if it is large.
    Raises OSError: the disk is full: the space is reserved at once."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size < LEAST_BYTES:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="proxmargin-") as file:
        try:
            _reserve(file, size)
        except OSError as error:
            raise OSError(
                error.errno,
                f"no room for a vector of {size} bytes in the temporary folder "
                f"{tempfile.gettempdir()} ({error.strerror}): set TMPDIR to another folder",
            ) from error
        pages = _Pages(file.fileno(), size)
    return np.frombuffer(pages, dtype).reshape(shape)


def mapped(values: Values) -> Values:
    """A copy that is mapped, or the array itself if it is small."""
    if values.nbytes < LEAST_BYTES or values.dtype.hasobject:
        return values
    copy = mapped_empty(values.shape, values.dtype)
    copy[...] = values
    return copy


def is_mapped(values: Values) -> bool:
    """Whether an array, or what it is a view of, is mapped."""
    base: object = values
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(getattr(base, "obj", None), _Pages)


def empty_beside(values: Values) -> NDArray[np.float64]:
    """An array of undefined float64 of the same shape, mapped if ``values`` are."""
    return mapped_empty(values.shape) if is_mapped(values) else np.empty(values.shape)


def beside(values: Values, made: Values) -> Values:
    """``made``, moved into a mapped file if ``values`` are in one."""
    return mapped(made) if is_mapped(values) else made


def copied(values: Values) -> Values:
    """A copy, mapped if ``values`` are."""
    copy = mapped_empty(values.shape, values.dtype) if is_mapped(values) else np.empty_like(values)
    copy[...] = values
    return copy


def _reserve(file: IO[bytes], size: int) -> None:
    """Reserve space: a write to a mapped page without it would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    zeros = bytes(min(size, LEAST_BYTES))
    for start in range(0, size, len(zeros)):
        file.write(zeros[: size - start])
    file.flush()


P = ParamSpec("P")
T = TypeVar("T")


if TYPE_CHECKING:
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """That of functools without the lock that it has in Python 3.11.

        The lock is one for all objects. A thread that computes such a property of its own problem
        may wait for a pass over the data that begins when all threads wait for one.
        """

        def __get__(self, instance: object, owner: type | None = None) -> Any:
            if instance is None:
                return self
            found = vars(instance)[self.attrname] = self.func(instance)
            return found


class Remembers:
    """An object that memoises functions of itself as long as it lives."""

    def remembered(self, make: Callable[..., T], *given: Any, **first: Any) -> T:
        """``make(self, *given, **first)``, kept until ``given`` changes: arrays are compared by
        value with the last call's, other arguments and the module-level ``make`` are the key,
        ``first`` is not. Results must not be modified; concurrent threads may compute one twice."""
        # for each function with its hashable arguments: the arrays and the result
        memory: dict[Hashable, tuple[list[np.ndarray], Any]] = vars(self).setdefault("_memory", {})
        if not given:
            kept = memory.get(make) or memory.setdefault(make, ([], make(self, **first)))
            return kept[1]
        arrays: list[np.ndarray] = []
        hashable: list[Hashable] = [make]
        for each in given:
            (arrays if isinstance(each, np.ndarray) else hashable).append(each)
        key = tuple(hashable)
        known = memory.get(key)
        if known is None or not all(map(np.array_equal, known[0], arrays)):
            # frees memory of the size of the data before the next result is made, with the
            # old one's own memory, which may refer to it in a cycle
            known = memory.pop(key, None)
            if known is not None and isinstance(known[1], Remembers):
                vars(known[1]).get("_memory", {}).clear()
            known = None
            known = list(map(copied, arrays)), make(self, *given, **first)
            memory[key] = known
        found: T = known[1]
        return found

    def __getstate__(self) -> Record:
        """Of a copy, which remembers for itself: functions by which it does are not pickled."""
        return {name: each for name, each in vars(self).items() if name != "_memory"}


def kept(make: Callable[P, T]) -> Callable[P, T]:
    """The function or method ``make(owner, ...)``, whose answers its owner keeps (`Remembers`)."""

    @wraps(make)
    def answer(*arguments: P.args, **first: P.kwargs) -> T:
        owner: Any = arguments[0]
        found: T = owner.remembered(make, *arguments[1:], **first)
        return found

    return answer


class _Memory:
    """The memory of an array, without its read-only flag.

    Kernels do not write to it, but Numba compiles them anew for read-only arrays, such as the
    memory maps that parallel fits share.
    """

    def __init__(self, array: Values) -> None:
        known = array.__array_interface__
        self.array = array  # must outlive this
        self.__array_interface__ = {**known, "data": (known["data"][0], False)}


def unlocked(array: Values) -> Values:
    """The array itself if it is writeable, else a view without the read-only flag."""
    return array if array.flags.writeable else np.asarray(_Memory(array))
