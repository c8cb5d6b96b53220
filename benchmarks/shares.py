"""Where the time of a fit goes, by the profiler."""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sklearn

SLOWER = 1.1  # ratio to another package from which a row is explained
# files and folders of the library that a part of the time is spent in
CHECKS = ("data/inputs",)
KERNEL = ("data/kernels", "data/designs/samples.py")
STEPS = ("compiled/solvers",)
CERTIFICATES = ("optimality/certificates",)

Stats = dict[Any, tuple[int, int, float, float, dict[Any, tuple[int, int, float, float]]]]


@dataclass(frozen=True)
class Shares:
    """Parts of the profiled time of a fit, 0 to 1.

    Attributes
    ----------
    checks : float
        Of the input.
    certificates : float
    kernel : float
        Values of a kernel, and products with its matrix.
    steps : float
        Compiled steps of the solver, such as SMO.
    """

    checks: float
    certificates: float
    kernel: float = 0.0
    steps: float = 0.0

    @property
    def words(self) -> str:
        """The parts of a kernel machine, the largest first, and the rest."""
        named = {
            "kernel values and products": self.kernel,
            "steps of the solver": self.steps,
            "checks of the input": self.checks,
            "certificates": self.certificates,
        }
        named["other Python code"] = max(1.0 - sum(named.values()), 0.0)
        ordered = sorted(named.items(), key=lambda one: -one[1])
        return ", ".join(f"{share:.0%} {name}" for name, share in ordered)


def shares(fit: Callable[[], Any]) -> Shares:
    """Of one profiled call; what a part calls counts for it, once."""
    import proxmargin

    profile = cProfile.Profile()
    profile.runcall(fit)
    stats = pstats.Stats(profile)
    known: Stats = stats.stats  # type: ignore[attr-defined]
    total = max(float(stats.total_tt), 1e-9)  # type: ignore[attr-defined]
    library = Path(proxmargin.__file__).parent

    def part(names: tuple[str, ...], *beside: Path) -> float:
        return _entered(known, library, (*(library / name for name in names), *beside)) / total

    checks = part(CHECKS, Path(sklearn.__file__).parent)
    return Shares(checks, *map(part, (CERTIFICATES, KERNEL, STEPS)))


def _entered(stats: Stats, library: Path, folders: tuple[Path, ...]) -> float:
    """Seconds in functions of these folders or files, called from other parts of the library."""
    return sum(
        edge[3]
        for function, (*_, callers) in stats.items()
        if _is_in(function[0], folders)
        for caller, edge in callers.items()
        if _is_in(caller[0], (library,)) and not _is_in(caller[0], folders)
    )


def _is_in(file: str, folders: tuple[Path, ...]) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in folders)
