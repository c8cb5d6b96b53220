"""The error or warning where the data admit no margin for a parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proxmargin.certificates.gap import Gap

__all__ = ["no_margin"]


def no_margin(
    estimator: Any, parameter: str, gap: Gap, is_share: bool, least: Callable[[], str]
) -> str | None:
    """The warning where the margin that was found is zero.

    Parameters
    ----------
    parameter : str
        Its name, 'nu' or 'kappa'.
    is_share : bool
        The value was a share of the largest admissible one: then there is a warning, not an error.
    least : callable
        Returns the admissible values in words; called only if needed.

    Raises
    ------
    ValueError
        For a value that is proved to leave no margin.
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
