"""Rows of folds, and seeds drawn from whatever ``random_state`` may be."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from proxmargin.runtime.brief import shown

SEEDS = 2**32  # how many scikit-learn takes as random_state
STATE = "random_state"


def row_numbers(fold: int, part: Any, count: int) -> NDArray[np.intp]:
    """A training or test part as row numbers.

    Parameters
    ----------
    fold : int
        Its number, for messages.
    part : row numbers or a mask
    count : int
        How many rows there are.

    Raises
    ------
    ValueError
        It is neither, or has rows beyond the data.
    """
    given = np.asarray(part)
    if given.size and given.dtype.kind not in "biu":
        raise ValueError(
            f"cv: fold {fold} has rows of type {given.dtype}: give row numbers, or a mask"
        )
    rows = np.flatnonzero(given) if given.dtype == np.bool_ else given.astype(np.intp)
    beyond = rows[(rows < -count) | (rows >= count)]
    if beyond.size or (given.dtype == np.bool_ and given.size != count):
        what = f"row {beyond[0]}" if beyond.size else f"a mask of {given.size} rows"
        raise ValueError(f"cv: fold {fold} has {what}, but X has {count} rows")
    return rows


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
            f"RandomState or None, got {shown(random_state)}"
        ) from error
    return [int(seed) for seed in source.randint(below, size=count, dtype=np.uint64)]


def seeded_model(estimator: Any, seed: int) -> Any:
    """A clone whose random parts draw from ``seed``, at any depth: steps of a pipeline, splitters
    of a search. Those that have a ``random_state`` of their own keep it."""
    model = clone(estimator)
    parameters = model.get_params(deep=True)
    states = [
        name
        for name, value in parameters.items()
        if value is None and name.rpartition("__")[2] == STATE
    ]
    splitters = [name for name, value in parameters.items() if _is_unseeded(value)]
    names = sorted([*states, *splitters])  # seeds do not depend on the order of parameters
    seeds = dict(zip(names, drawn_seeds(seed, len(names), below=SEEDS), strict=True))
    changes = {name: seeded_splitter(parameters[name], seeds[name]) for name in splitters}
    return model.set_params(**changes, **{name: seeds[name] for name in states})


def seeded_splitter(cv: Any, seed: int) -> Any:
    """The splitter; a copy with a seed if it shuffles and has none."""
    if not _is_unseeded(cv):
        return cv
    seeded = copy(cv)
    setattr(seeded, STATE, seed)
    return seeded


def _is_unseeded(value: Any) -> bool:
    """Whether it is a splitter that draws other folds whenever it is asked."""
    is_splitter = hasattr(value, "split") and hasattr(value, STATE)
    return is_splitter and getattr(value, STATE) is None and getattr(value, "shuffle", True)
