"""Memoisation: results computed once for an object and kept with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

__all__ = ["Remembers"]

T = TypeVar("T")


class Remembers:
    """An object that memoises functions of itself, for as long as it lives."""

    def remembered(self, make: Callable[..., T], *given: Any, **first: Any) -> T:
        """``make(self, *given, **first)``: computed once, and again when ``given`` changes.

        Concurrent threads may compute it twice, and get one of the two results. Results are
        read-only.

        Parameters
        ----------
        make : callable
            A function of a module: it is the key, so that a closure would never be found again.
        *given
            Arrays are compared by value with those of the last call: only the last result is
            kept. All other arguments are hashable, and part of the key.
        **first
            Arguments of the computation that are not part of the key.
        """
        if not given and (known := self._memory.get((make,))):  # most calls, and the quickest
            return known[1]
        arrays = [each for each in given if isinstance(each, np.ndarray)]
        key = (make, *(each for each in given if not isinstance(each, np.ndarray)))
        known = self._memory.get(key)
        if known is None or not all(map(np.array_equal, known[0], arrays)):
            known = None
            self._forget(key)  # before the next one is made: it may be of the data's size
            known = [np.array(each) for each in arrays], make(self, *given, **first)
            self._memory[key] = known
        found: T = known[1]
        return found

    def _forget(self, key: Hashable) -> None:
        """Drop an answer, and what it keeps, which may refer to it: no circle is left behind."""
        _, answer = self._memory.pop(key, ([], None))
        if isinstance(answer, Remembers):
            answer._memory.clear()

    @cached_property
    def _memory(self) -> dict[Hashable, tuple[list[np.ndarray], Any]]:
        """For each function and its hashable arguments: the arrays, and the result."""
        return {}
