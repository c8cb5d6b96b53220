"""Memoisation: results computed once for an object and kept with it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from proxmargin.runtime.memory import copied

T = TypeVar("T")


if TYPE_CHECKING:
    cached_property = functools.cached_property
else:

    class cached_property(functools.cached_property):
        """That of functools without the lock that it has in Python 3.11.

        The lock is one for all objects. A thread that computes such a property of its own problem
        may wait for a pass over the data that begins when all threads wait for one.
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = vars(instance)
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


class Remembers:
    """An object that memoises functions of itself as long as it lives."""

    def remembered(self, make: Callable[..., T], *given: Any, **first: Any) -> T:
        """``make(self, *given, **first)``: computed once, and again when ``given`` changes.

        Concurrent threads may compute it twice, and get one of the two results. Results must not be
        modified.

        ``make``: a module-level function: it is part of the key, so that a closure would never be
        found. *given: arrays are compared by value with those of the last call, of which alone the
        result is kept. All other arguments must be hashable, and are part of the key. **first:
        arguments of the computation that are not part of the key.
        """
        if not given and (known := self._memory.get((make,))):  # fast path of most calls
            return known[1]
        arrays = [each for each in given if isinstance(each, np.ndarray)]
        key = (make, *(each for each in given if not isinstance(each, np.ndarray)))
        known = self._memory.get(key)
        if known is None or not all(map(np.array_equal, known[0], arrays)):
            known = None
            self._forget(key)  # frees memory of the size of the data before the next one is made
            known = [copied(each) for each in arrays], make(self, *given, **first)
            self._memory[key] = known
        found: T = known[1]
        return found

    def _forget(self, key: Hashable) -> None:
        """Drop a result and its own memory, which may refer to it in a cycle."""
        _, answer = self._memory.pop(key, ([], None))
        if isinstance(answer, Remembers):
            answer._memory.clear()

    @cached_property
    def _memory(self) -> dict[Hashable, tuple[list[np.ndarray], Any]]:
        """For each function with its hashable arguments: the arrays and the result."""
        return {}
