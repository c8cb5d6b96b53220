"""Checks of parameters, of rows of folds among them, and seeds drawn from any ``random_state``."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterable
from copy import copy
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from proxmargin.data.inputs.aligned import refuse_masked
from proxmargin.data.inputs.kinds import Seed, Splits
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Estimator

# Products and quotients of three such numbers stay within the range of float64, 2e-308 to 1.8e308.
LARGEST = 1e100
LEAST = 1e-100  # of numbers that must be positive; others may be zero, and as close to it as given
# what users of other libraries look for, and where it is
ELSEWHERE = Path(__file__).with_name("elsewhere.json")


def refuse_unknown(cls: type, names: Iterable[str]) -> None:
    """Raise TypeError for a parameter that the class does not have, and say what has it."""
    known = _parameters(cls)
    for name in names:
        if known is not None and name not in known:
            elsewhere = json.loads(ELSEWHERE.read_text(encoding="utf-8"))
            hint = elsewhere.get(name, f"it has {', '.join(known)}")
            raise TypeError(f"{cls.__name__} has no parameter {name!r}; {hint}")


@cache
def _parameters(cls: type) -> tuple[str, ...] | None:
    """The names of the parameters; None of a subclass that hands on any keyword."""
    found = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    if any(one.kind is one.VAR_KEYWORD for one in found.values()):
        return None
    return tuple(name for name in found if name != "self")


def check_number(
    name: str,
    value: Any,
    *,
    low: float,
    high: float = np.inf,
    low_open: bool = False,
    integer: bool = False,
    optional: bool = False,
) -> None:
    """Raise unless ``value`` is a number in the range; the message names the parameter."""
    if value is None and optional:
        return
    kind = Integral if integer else Real
    good = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
    good = (
        good
        and (integer or abs(value) <= sys.float_info.max)
        and value <= high
        and (value > low or (not low_open and value == low))
    )
    if not good:
        least = f"{'>' if low_open else '>='} {low:g}"
        most = f" and <= {high:g}" if np.isfinite(high) else ""
        what = "an integer" if integer else "a finite number"
        raise ValueError(
            f"{name} must be {what} {least}{most}{' or None' if optional else ''}, got "
            f"{shown(value)}"
        )


def real_numbers(name: str, given: object) -> NDArray[np.float64]:
    """The numbers of a parameter, of any shape, as float64. ValueError that names it: text, True or
    False, complex numbers, dates, lists of different lengths, masked entries."""
    refuse_masked(name, given)
    try:
        # an array of one type hides text and truth values among the numbers of a list
        found = np.asarray(given, dtype=None if hasattr(given, "dtype") else object)
        if found.dtype == object:
            wrong = [each for each in found.ravel().tolist() if not _is_real(each)]
        else:
            wrong = [] if found.dtype.kind in "iuf" else [given]
        if not wrong:
            return found.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        wrong = [given]
    raise ValueError(f"{name} must be numbers, got {shown(wrong[0])}")


def _is_real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_strength(
    name: str, value: Any, *, low: float, low_open: bool = False, optional: bool = False
) -> None:
    """`check_number` for a number of the model itself, which also needs a moderate magnitude
    (`check_magnitude`)."""
    check_number(name, value, low=low, low_open=low_open, optional=optional)
    if value is not None:
        check_magnitude(name, float(value), positive=low_open)


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise unless ``value`` is one of ``choices``."""
    known = tuple(choices)
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, got {shown(value)}")


def check_flag(name: str, value: bool) -> None:
    """Raise unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")


def check_folds(name: str, cv: Splits) -> None:
    """Raise ValueError unless it is None, a number of folds, a splitter, or pairs of indices."""
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        if cv < 2:
            raise ValueError(f"{name} must be at least 2 folds, got {cv}")
    elif cv is not None and not _gives_splits(cv):
        raise ValueError(
            f"{name} must be a number of folds, an integer >= 2, a splitter of scikit-learn, or "
            f"pairs of row numbers (training, held out), got {shown(cv)}"
        )


def _gives_splits(cv: Any) -> bool:
    if isinstance(cv, str | bytes):
        return False
    if hasattr(cv, "split") or not hasattr(cv, "__len__"):
        return hasattr(cv, "split") or isinstance(cv, Iterable)
    try:
        sizes = [[len(rows) for rows in fold] for fold in cv]
    except TypeError:  # something of these has no length
        return False
    return bool(sizes) and all(len(fold) == 2 for fold in sizes)


def check_threads(n_jobs: int | None) -> None:
    """Raise ValueError unless it is a number of threads, as joblib counts them."""
    whole = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool | np.bool_)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be a number of threads, -1 for all cores or None, got {shown(n_jobs)}"
        )


def check_verbose(verbose: int) -> None:
    """Raise ValueError unless it is a flag or a level."""
    if not isinstance(verbose, bool):
        check_number("verbose", verbose, low=0, integer=True)


def check_magnitude(name: str, value: float, *, positive: bool) -> None:
    """Raise a `ValueError` that names the parameter if computations with it may leave the range."""
    if not abs(value) <= LARGEST:
        raise ValueError(
            f"{name} must be at most {LARGEST:g} in magnitude, got {value!r}: products with it "
            "would overflow"
        )
    if positive and value < LEAST:
        raise ValueError(
            f"{name} must be at least {LEAST:g}, got {value!r}: its reciprocal would overflow"
        )


SEEDS = 2**32  # how many scikit-learn takes as random_state
STATE = "random_state"


def row_numbers(fold: int, part: object, count: int) -> NDArray[np.intp]:
    """The training or test part of a fold, row numbers or a mask of ``count`` rows, as row numbers.
    Raises ValueError: it is neither, or has rows beyond the data."""
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


def drawn_seeds(random_state: Seed, count: int, *, below: int) -> list[int]:
    """Seeds in ``[0, below)``, at most ``2**32``; a generator is left in another state, an int
    gives the same ones. Raises ValueError: ``random_state`` is nothing that scikit-learn takes."""
    if isinstance(random_state, np.random.Generator):
        return [int(seed) for seed in random_state.integers(below, size=count)]
    source = checked_random_state(random_state)
    return [int(seed) for seed in source.randint(below, size=count, dtype=np.uint64)]


def checked_random_state(random_state: object) -> np.random.RandomState:
    """scikit-learn's, with a ValueError that names the parameter."""
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be an int from 0 to 2**32 - 1, a numpy.random.Generator, a "
            f"RandomState or None, got {shown(random_state)}"
        ) from error


def seeded_model(estimator: Estimator, seed: int) -> Estimator:
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


def seeded_splitter(cv: Splits, seed: int) -> Splits:
    """The splitter; a copy with a seed if it shuffles and has none."""
    if not _is_unseeded(cv):
        return cv
    seeded = copy(cv)
    setattr(seeded, STATE, seed)
    return seeded


def _is_unseeded(value: object) -> bool:
    """Whether it is a splitter that draws other folds whenever it is asked."""
    is_splitter = hasattr(value, "split") and hasattr(value, STATE)
    return is_splitter and getattr(value, STATE) is None and getattr(value, "shuffle", True)


def is_number_of_folds(cv: object) -> bool:
    """Whether ``cv`` says how many folds, and not which, or leaves that to a default (None)."""
    return cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool))
