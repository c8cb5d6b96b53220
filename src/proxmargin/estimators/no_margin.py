"""The error or warning if a parameter leaves no margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxmargin.certificates.gap import Gap

__all__ = ["no_margin"]


def no_margin(
    estimator: Any, parameter: str, gap: Gap, is_share: bool, least: Callable[[], str]
) -> str | None:
    """The warning if the margin is zero, else None.

    Parameters
    ----------
    parameter : str
        'nu' or 'kappa'.
    is_share : bool
        The value is a share of the largest admissible one: warn instead of raising.
    least : callable
        Describes the admissible values; called only if needed.

    Raises
    ------
    ValueError
        If the value provably leaves no margin.
    """
    if gap.is_negative:
        return None
    value = getattr(estimator, parameter)
    if gap.relative_gap <= estimator.tol:
        told = f"{parameter}={value!r} leaves no margin between the classes: {least()}"
        if not is_share:
            raise ValueError(told)
    else:
        told = (
            f"no margin was found for {parameter}={value!r}; the objective, zero here, is "
            f"certified to be within {gap.gap:.2e} of the optimum"
        )
    return told
