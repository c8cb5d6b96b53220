"""The interface of margin losses in kernels: a named tuple whose methods are compiled.

The tuple holds the parameters of the loss, and its methods are scalar functions of a margin t. A
kernel is given the tuple and calls ``phi.value(t)``; Numba compiles the kernel for its type, with
the methods inlined. Methods may call each other, `math`, and functions compiled by
`proxmargin.compiled.cache.njit`.

Required are

    smoothness           a field: the Lipschitz constant of phi'
    value(t)             phi(t)
    descent(t)           -phi'(t), the dual coordinate a >= 0
    curvature(t)         phi''(t)
    fenchel_young(t, a)  phi(t) + phi*(-a) + a t >= 0, without cancellation

and what `Defaults` has can be replaced.
"""

from __future__ import annotations

import math
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from proxmargin.compiled.cache import at_first_compilation
from proxmargin.compiled.losses.evaluation import evaluated

# names of their arguments
REQUIRED = {
    "value": "t",
    "descent": "t",
    "curvature": "t",
    "fenchel_young": "t a",
}
T = TypeVar("T")


class Defaults:
    """Methods that follow from the required ones."""

    def descent_and_curvature(self: Any, t: float) -> Any:
        """`descent` and `curvature`; losses with a common subexpression replace this method."""
        return self.descent(t), self.curvature(t)

    def value_and_shrunk_gap(self: Any, t: float, share: float, near_share: float) -> Any:
        """The value, and `fenchel_young` against ``share < 1`` times its own dual coordinate.

        ``near_share`` is ``share log_excess(1 / share - 1)``, the same for all samples.
        """
        return self.value(t), self.fenchel_young(t, share * self.descent(t))

    def evaluated(
        self: Any, scores: Any, shift: float, signs: Any, weights: Any, theta: Any, curvature: Any
    ) -> Any:
        """A pass over the samples, see `proxmargin.compiled.losses.evaluation.evaluated`."""
        return evaluated(self, scores, shift, signs, weights, theta, curvature)

    def shrunk_bound(self: Any, a: float, curvature: float) -> float:
        """A number B for a bound of `fenchel_young` against shares of the own dual coordinate.

        For ``a = descent(t)``, ``curvature = phi''(t)`` and all ``0 < share <= 1``,
        ``fenchel_young(t, share a) <= (1 - share)^2 B / (2 share)``. Infinite if none is known.
        Where it is finite, ``fenchel_young(t, b) <= (b - a)^2 / (2 c d curvature)`` must hold, too,
        for b no closer to the ends of the dual interval than c and d times what a is.
        """
        return math.inf

    def zone(self: Any) -> float:
        """Width of the curved zone below a margin of 1, beyond which phi is linear."""
        return math.inf

    def majorant(self: Any, t: float) -> float:
        """Curvature of a quadratic above phi that touches it at t, where phi is linear or zero."""
        return self.smoothness


OPTIONAL = tuple(name for name in vars(Defaults) if not name.startswith("_"))
_known: dict[str, type] = {}


def scalars(kind: type[T]) -> type[T]:
    """Class decorator: let kernels call the methods of a named tuple of parameters.

    Raises
    ------
    TypeError
        A required method is missing, or the name is taken: compiled code is known by it.
    """
    missing = [name for name in ("smoothness", *REQUIRED) if not hasattr(kind, name)]
    if missing:
        raise TypeError(f"{kind.__name__} lacks {', '.join(missing)}")
    other = _known.setdefault(kind.__name__, kind)
    if (other.__module__, other.__qualname__) != (kind.__module__, kind.__qualname__):
        raise TypeError(f"there is a {kind.__name__} in {other.__module__} already")
    _known[kind.__name__] = kind
    for name in OPTIONAL:
        if name not in vars(kind):
            setattr(kind, name, vars(Defaults)[name])
    return kind


def _tell_numba(name: str, arguments: str) -> None:
    """Register with Numba that the method ``name`` of a named tuple is in the tuple's class."""
    from numba import types
    from numba.extending import overload_method

    def method(phi: Any, *_: Any) -> Any:
        kind = phi.instance_class
        return getattr(kind, name) if _known.get(kind.__name__) is kind else None

    named = [Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in arguments.split()]
    method.__signature__ = Signature(named)  # type: ignore[attr-defined]
    # Methods keep their order of operations in kernels that may reorder their own sums. Numba would
    # let them inherit that freedom, and terms that do not cancel as they are written would.
    options = {"nogil": True, "fastmath": False}
    register: Any = overload_method  # its stubs lack the keywords
    register(types.BaseNamedTuple, name, strict=False, jit_options=options)(method)


@at_first_compilation
def _tell_numba_all() -> None:
    for name, arguments in REQUIRED.items():
        _tell_numba(name, f"self {arguments}")
    for name in OPTIONAL:
        _tell_numba(name, " ".join(signature(getattr(Defaults, name)).parameters))
