"""`njit` for the kernels of this package: `numba.njit`, with a cache of its own.

Its kernels, their files and the clock that stops while they are compiled rely on parts of Numba
that are not public. In a version without one of them, Numba compiles as it always does, in every
process anew.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numba

from proxmargin.compiled import folders

if TYPE_CHECKING:
    from proxmargin.compiled.kernel import Kernel

logger = logging.getLogger("proxmargin")

SUMS = {"reassoc", "contract", "nsz"}  # `fastmath` of sums in any order: their loops vectorise


def njit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit`, where ``cache=True`` keeps the result in the cache of this package.

    A kernel with ``allocates=False`` makes no arrays, only views of those that it is given, and
    counts no references to them: counting is atomic and takes, where arrays come in tuples, longer
    than the work of a small kernel, and half of the time of its compilation.
    """
    kept, allocates = options.pop("cache", False), options.pop("allocates", True)

    def compiled(function: Any) -> Any:
        if folders.config.DISABLE_JIT:
            return function
        made = _kind_of_kernel(kept)
        if made is None:
            return numba.njit(**options)(function)
        fixed = {"nopython": True, "boundscheck": None, "_nrt": allocates}
        return made(function, targetoptions={**fixed, **options})

    return compiled


@cache
def _kind_of_kernel(kept: bool) -> type[Kernel] | None:
    """The class of kernels, those kept on disk or the others; None where Numba lacks its parts."""
    try:
        from proxmargin.compiled import meter, note
        from proxmargin.compiled.kept_kernels import KeptKernel
        from proxmargin.compiled.kernel import Kernel

        meter.listen()
        note.listen()
    except (ImportError, AttributeError) as missing:
        _say_that_nothing_is_kept(str(missing))
        return None
    return KeptKernel if kept else Kernel


@cache
def _say_that_nothing_is_kept(reason: str) -> None:
    logger.warning(
        "every process compiles its kernels anew, as Numba %s differs from the versions that the "
        "cache of kernels was written for (%s)",
        numba.__version__,
        reason,
    )
