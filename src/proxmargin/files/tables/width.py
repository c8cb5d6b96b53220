"""A check, before a fit, that the coefficients of a model fit into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proxmargin.files.errors import DataError
from proxmargin.files.wording import plural
from proxmargin.runtime.memory import free_bytes, shortage

__all__ = ["refuse_too_wide"]

# vectors as long as the coefficients that a fit holds at once: 5 to 16, depending on the solver
_VECTORS = 8
_REMEDY = "choose fewer features, check that the target holds classes, or use more memory"


def refuse_too_wide(
    source: str,
    n_features: int,
    y: NDArray[Any],
    last_feature: Callable[[], str] | None = None,
) -> None:
    """Refuse features and classes whose coefficients cannot be fitted in the free memory.

    Parameters
    ----------
    y : (n_samples,) labels
    last_feature : callable, optional
        Says where the last feature is from and what to do, where one entry makes many features.

    Raises
    ------
    DataError
    """
    vector = 8 * _VECTORS * n_features
    if vector * max(len(y), 1) <= free_bytes():
        return  # however many classes there are
    classes = int(np.unique(y).size)
    short = shortage(vector * (1 if classes <= 2 else classes))
    if short:
        remedy = last_feature() if last_feature else _REMEDY
        raise DataError(
            f"{source}: a model of {plural(n_features, 'feature')} and {classes} classes needs "
            f"{short}; {remedy}."
        )
