"""Seeds drawn from whatever ``random_state`` may be."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["drawn_seeds"]


def drawn_seeds(random_state: Any, count: int, *, below: int) -> list[int]:
    """Seeds in ``[0, below)``; a generator is left in another state, an int gives the same ones.

    Parameters
    ----------
    random_state : int, numpy.random.Generator, RandomState or None
    count : int
    below : int
        At most ``2**32``.

    Raises
    ------
    ValueError
        ``random_state`` is something else, or an int that is no seed.
    """
    if isinstance(random_state, np.random.Generator):
        return [int(seed) for seed in random_state.integers(below, size=count)]
    try:
        source = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be an int from 0 to 2**32 - 1, a numpy.random.Generator, a "
            f"RandomState or None, got {random_state!r}"
        ) from error
    return [int(seed) for seed in source.randint(below, size=count, dtype=np.uint64)]
