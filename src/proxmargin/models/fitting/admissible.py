"""nu and kappa: numbers or fractions of the largest admissible value; fits without a margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from proxmargin.data.inputs.parameters import check_strength
from proxmargin.optimality.certificates.certificate import Gap
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Estimator
from proxmargin.solvers.loop.report import Status


@dataclass(frozen=True)
class OfMax:
    """A fraction of a maximum that depends on the data."""

    fraction: float

    def of(self, largest: float) -> float:
        """The fraction of ``largest``; where that is infinite, ``fraction / (1 - fraction)``."""
        if np.isinf(largest):
            return self.fraction / (1.0 - self.fraction)
        return self.fraction * largest


def number_or_fraction(name: str, value: float | str, *, low_open: bool) -> float | OfMax:
    """A number >= 0 (or > 0), or a string such as ``'0.5max'`` with a fraction in (0, 1). Raises
    ValueError that names the parameter."""
    if isinstance(value, str):
        text = value.removesuffix("max")
        try:
            fraction = float(text)
        except ValueError:
            fraction = np.nan
        if text == value or not 0.0 < fraction < 1.0:
            raise ValueError(
                f"{name} must be a number, or a fraction of the largest admissible value such as "
                f"'0.5max' (strictly between 0 and 1), got {shown(value)}"
            )
        return OfMax(fraction)
    check_strength(name, value, low=0.0, low_open=low_open)
    return float(value)


LIMITS = (Status.ITERATION_LIMIT, Status.TIME_LIMIT, Status.WORK_LIMIT)


class Admissible(NamedTuple):
    """What the data say about a value of nu or kappa."""

    # whether the value is inside the range that leaves a margin; None if that is unknown
    leaves_margin: bool | None
    range_in_words: str  # the range of values that leave a margin, for messages


def no_margin(
    estimator: Estimator,
    parameter: str,
    gap: Gap,
    status: Status,
    is_share: bool,
    admissible: Callable[[], Admissible],
) -> str | None:
    """The warning if the margin is zero, else None; also None if a limit ended the search for one.

    ``parameter``: 'nu' or 'kappa'. ``status``: what ended the fit. ``is_share``: the value is a
    share of the largest admissible one, so that it warns instead of raising. ``admissible`` is
    called only if there is no margin. Raises ValueError if the value provably leaves no margin.
    """
    if gap.is_negative:
        return None
    value = f"{parameter}={getattr(estimator, parameter)!r}"
    within = f"the objective, zero here, is certified to be within {gap.gap:.2e} of the optimum"
    leaves_margin, range_in_words = admissible()
    if leaves_margin and status in LIMITS:
        return None
    if leaves_margin:
        return (
            f"{value} leaves a margin ({range_in_words}), but it is too small to be found against "
            f"{_advice(estimator, parameter)}; {within}"
        )
    if leaves_margin is None and gap.relative_gap > estimator.tol:
        early = f" before {status.value}" if status in LIMITS else ""
        return f"no margin was found for {value}{early}; {within}"
    if is_share:
        return f"{value} leaves no margin between the classes: {range_in_words}"
    raise ValueError(f"{value} leaves no margin between the classes: {range_in_words}")


def _advice(estimator: Estimator, parameter: str) -> str:
    """What the margin is too small for, and what would make it larger."""
    if estimator.kernel != "linear":
        other = "larger nu" if parameter == "nu" else "smaller kappa"
        return (
            f"the rounding of the kernel: a {other} or a narrower kernel would leave a larger one"
        )
    return "the units of the features" + ("" if estimator.standardize else ": standardize them")
