"""Where the time of a fit goes, by the profiler: checks of the input, and certificates."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sklearn

Stats = dict[Any, tuple[int, int, float, float, dict[Any, tuple[int, int, float, float]]]]


@dataclass(frozen=True)
class Shares:
    """Parts of the profiled time of a fit, 0 to 1."""

    checks: float
    certificates: float


def shares(fit: Callable[[], Any]) -> Shares:
    """Of one profiled call; what a part calls counts for it, once."""
    import proxmargin

    profile = cProfile.Profile()
    profile.runcall(fit)
    stats = pstats.Stats(profile)
    known: Stats = stats.stats  # type: ignore[attr-defined]
    total = max(float(stats.total_tt), 1e-9)  # type: ignore[attr-defined]
    library = Path(proxmargin.__file__).parent
    checks = library / "inputs", Path(sklearn.__file__).parent
    return Shares(
        _entered(known, library, checks) / total,
        _entered(known, library, (library / "certificates",)) / total,
    )


def _entered(stats: Stats, library: Path, folders: tuple[Path, ...]) -> float:
    """Seconds in functions of these folders, called from other parts of the library."""
    return sum(
        edge[3]
        for function, (*_, callers) in stats.items()
        if _is_in(function[0], folders)
        for caller, edge in callers.items()
        if _is_in(caller[0], (library,)) and not _is_in(caller[0], folders)
    )


def _is_in(file: str, folders: tuple[Path, ...]) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in folders)
