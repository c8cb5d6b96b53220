"""A penalty of one's own: what a user writes, and what the library makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from proxmargin.compiled.rounding import NEGLIGIBLE, gamma
from proxmargin.functions.penalties.base import Penalty, Step
from proxmargin.functions.penalties.sum_to_zero import rows_sum_to_zero
from proxmargin.functions.traits import Trait
from proxmargin.runtime.types import Array

OWN_TERMS = 64  # roundoffs, besides one a coefficient, that a value of the user may be off by
MAX_EXPONENT = 1074  # 2^-1074 is the least positive number


class CustomPenalty(ABC):
    """Base of convex penalties of one's own, for `proxmargin.MarginClassifier`.

    A subclass has `value` and `prox` and, for the certificate, `conjugate`, or `dual_norm` if it is
    a norm. Make it a frozen dataclass, and its fields are parameters of a search
    (``penalty__delta``); or give it ``get_params`` as scikit-learn's objects have it.

    The value is zero at zero and nowhere negative; it may be infinite. Arrays of coefficients, and
    of dual points, have the shape (n_features, n_outputs), with one output for two classes and for
    one-vs-rest. With ``standardize`` the coefficients are those of the standardised features.

    Certificates rest on what these methods return. Numbers are taken to be accurate to one unit
    roundoff a coefficient and `OWN_TERMS` more, relative to themselves: any sum of terms that are
    not negative is. `proxmargin.penalties.check_penalty` tests the laws that they have to keep.

    See Also
    --------
    proxmargin.MarginClassifier : Takes a loss and a penalty.
    check_penalty : Tests the laws that it has to keep.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from proxmargin import MarginClassifier
    >>> from proxmargin.losses import Logistic
    >>> from proxmargin.penalties import CustomPenalty
    >>> @dataclass(frozen=True)
    ... class Norm(CustomPenalty):
    ...     strength: float = 0.1
    ...
    ...     def value(self, coef):
    ...         return self.strength * np.linalg.norm(coef)
    ...
    ...     def prox(self, coef, step):
    ...         length = np.linalg.norm(coef)
    ...         return coef * max(1 - step * self.strength / length, 0) if length else coef
    ...
    ...     def dual_norm(self, dual):
    ...         return np.linalg.norm(dual) / self.strength
    >>> X, y = np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), [0, 1, 0, 1]
    >>> MarginClassifier(Logistic(), Norm()).fit(X, y).certificate_.converged
    True
    """

    separable: ClassVar[bool] = False
    """The value is a sum over single coefficients. `prox` then gets one step a feature too, as an
    array (n_features, 1), so that solvers need not depend on the units of the features."""

    sign_invariant: ClassVar[bool] = False
    """The value depends on the absolute values of the coefficients only. Bounds on rounding are
    then cheap to compute for many features."""

    sums_to_zero: ClassVar[bool] = False
    """The value is meant for rows that sum to zero over the outputs, and `prox` returns such rows:
    more than two classes are fitted together. `conjugate` is that under this constraint."""

    is_portable: ClassVar[bool] = False
    """Model files do not store it: they have no code of users."""

    @abstractmethod
    def value(self, coef: Array) -> float:
        """P(coef) >= 0."""

    @abstractmethod
    def prox(self, coef: Array, step: Step) -> Array:
        """``argmin_u  P(u) + |u - coef|^2 / (2 step)``, same shape as ``coef``."""

    def conjugate(self, dual: Array) -> float:
        """``P*(dual) = sup_u <dual, u> - P(u)``, infinite outside its domain.

        That of a norm is zero where the dual norm is at most one.
        """
        if not self.has_dual_norm:
            raise TypeError(without_conjugate(self))
        return 0.0 if self.dual_norm(dual) <= 1.0 else np.inf

    def dual_norm(self, dual: Array) -> float:
        """For a norm P: ``sup <dual, u>`` over all u with ``P(u) <= 1``."""
        raise TypeError(f"{self!r} has no dual_norm(dual)")

    @property
    def has_dual_norm(self) -> bool:
        """`dual_norm` is implemented."""
        return type(self).dual_norm is not CustomPenalty.dual_norm

    @property
    def has_conjugate(self) -> bool:
        """`conjugate` or `dual_norm` is implemented."""
        return self.has_dual_norm or type(self).conjugate is not CustomPenalty.conjugate


def without_conjugate(own: CustomPenalty) -> str:
    """The sentence that says what a penalty lacks."""
    return (
        f"penalty {own!r} has neither conjugate(dual) nor, as norms do, dual_norm(dual): a "
        "certificate needs one of them"
    )


@dataclass(frozen=True, eq=False)
class OwnPenalty(Penalty):
    """The penalty of a user with all that solvers and certificates ask for.

    What its methods return is checked: errors name the method. They are given copies, which they
    may overwrite.

    Parameters
    ----------
    own : CustomPenalty
        With a conjugate or a dual norm.
    shape : (n_features, n_outputs)
        Of the coefficients.
    """

    own: CustomPenalty
    shape: tuple[int, int]

    is_portable = False
    by_features = False
    can_be_restricted = False

    def __post_init__(self) -> None:
        if not self.own.has_conjugate:
            raise ValueError(without_conjugate(self.own))
        if self.sums_to_zero and self.shape[1] == 1:
            raise ValueError(
                f"penalty {self.own!r} is for more than two classes that are fitted together "
                "(sums_to_zero = True), and there is one column of coefficients"
            )
        if self.value(np.zeros(self.shape)) != 0.0:
            raise ValueError(f"{self.own!r}: value(coef) must be 0 at zero coefficients")
        if not np.isfinite(self.largest_product(np.ones(self.shape), 1.0)):
            raise ValueError(
                f"{self.own!r} does not bound every coefficient: its conjugate is infinite at any "
                "multiple of some dual points, so that rounding leaves no certificate; add a ridge"
            )

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        return Trait.SEPARABLE if self.own.separable else Trait.NONE

    @property
    def takes_steps(self) -> bool:  # type: ignore[override]
        return self.own.separable

    @property
    def sums_to_zero(self) -> bool:  # type: ignore[override]
        return self.own.sums_to_zero

    @property
    def rounding(self) -> float:
        """Relative error of what the user's methods return."""
        return gamma(self.shape[0] * self.shape[1] + OWN_TERMS)

    # -- what the user gives, checked -------------------------------------------------------------

    def value(self, coef: Array) -> float:
        return self._number("value", self.own.value, coef)

    def prox(self, coef: Array, step: Step) -> Array:
        found = np.asarray(self.own.prox(coef.copy(), self._step(step)))
        if found.shape != coef.shape or found.dtype.kind not in "fiu":
            raise ValueError(
                f"{self.own!r}: prox(coef, step) must return numbers of the shape of coef, "
                f"{coef.shape}, got {found.dtype} of shape {found.shape}"
            )
        if not np.all(np.isfinite(found)):
            raise ValueError(f"{self.own!r}: prox(coef, step) must return finite numbers")
        found = found.astype(np.float64, copy=False)
        if self.sums_to_zero and not rows_sum_to_zero(found):
            raise ValueError(f"{self.own!r}: rows of prox(coef, step) must sum to zero")
        return found

    def conjugate(self, dual: Array) -> float:
        if self.own.has_dual_norm:
            return 0.0 if self.dual_norm(dual) <= 1.0 + self.rounding else np.inf
        return self._number("conjugate", self.own.conjugate, dual)

    def dual_norm(self, dual: Array) -> float:
        """The dual norm, of a norm."""
        return self._number("dual_norm", self.own.dual_norm, dual)

    def _number(self, name: str, method: Callable[[Array], float], at: Array) -> float:
        found: Any = method(at.copy())
        try:
            number = float(found)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self.own!r}: {name} must return a number, got {found!r}") from error
        if not number >= 0.0:
            raise ValueError(f"{self.own!r}: {name} must return a number >= 0, got {number!r}")
        return number

    def _step(self, step: Step) -> Step:
        """A number, or where the user takes them the steps of the features."""
        if np.ndim(step) == 0:
            return float(step)
        if np.ptp(step) == 0:
            return float(np.ravel(step)[0])
        if not self.takes_steps:
            raise TypeError(
                f"{self.own!r} has no prox with one step a feature (separable = False): solve in "
                "the units of the data"
            )
        return step

    # -- what follows from it ---------------------------------------------------------------------

    def into_domain(self, coef: Array) -> Array:
        if np.isfinite(self.value(coef)) and not self.sums_to_zero:
            return coef
        return self.prox(coef, NEGLIGIBLE)

    def domain_scale(self, dual: Array) -> float:
        """As in `Penalty`, but less by the rounding of the user's numbers, so that the scaled dual
        point surely is in the domain."""
        further = 1.0 + self.rounding
        if self.own.has_dual_norm:
            size = further * self.dual_norm(dual)
            return 1.0 if size <= 1.0 else 1.0 / (further * size)

        def inside(factor: float) -> bool:
            return self.conjugate(factor * further * dual) < np.inf

        if inside(1.0):
            return 1.0
        few, many = 0, MAX_EXPONENT  # 2^-few is outside
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if inside(2.0**-middle) else (middle, many)
        low, high = (2.0**-many if many < MAX_EXPONENT else 0.0), 2.0**-few
        for _ in range(54 if low > 0 else 0):  # until they are neighbouring numbers
            middle_factor = 0.5 * (low + high)
            low, high = (middle_factor, high) if inside(middle_factor) else (low, middle_factor)
        return low

    def fenchel_young(self, coef: Array, dual: Array) -> Array:
        """The sum is that of three numbers which cancel: a bound on their rounding is added. It is
        shared evenly by the features."""
        value = self.value(coef)
        other = 0.0 if self.own.has_dual_norm else self.conjugate(dual)
        product, size = float(np.vdot(dual, coef)), float(np.vdot(np.abs(dual), np.abs(coef)))
        total = max(value + other - product, 0.0) + 2.0 * self.rounding * (value + other + size)
        return np.full(len(coef), total / max(len(coef), 1))

    def largest_product(self, sizes: Array, level: float) -> float:
        """By the inequality of Fenchel and Young, for every t > 0 and the signs s of W,

            ``<sizes, |W|>  <=  (level + P*(t s sizes)) / t``.

        For an invariant P the signs do not matter. For a separable one the conjugate is at most the
        sum of those at both signs. Otherwise the inequality is used entry by entry.
        """
        sizes = np.broadcast_to(sizes, self.shape)
        largest = float(sizes.max(initial=0.0))
        if largest == 0.0:
            return 0.0
        if self.own.has_dual_norm and self.own.sign_invariant:
            return level * self.dual_norm(sizes)
        if not (self.own.separable or self.own.sign_invariant):
            slopes, offsets = self._reaches
            live = sizes > 0
            return float(np.sum(sizes[live] * (level + offsets[live]) / slopes[live]))

        def bound(t: float) -> float:
            opposite = 0.0 if self.own.sign_invariant else self.conjugate(-t * sizes)
            return (level + self.conjugate(t * sizes) + opposite) / t

        return _least(bound, 1.0 / largest)

    @cached_property
    def _reaches(self) -> tuple[Array, Array]:
        """Numbers t and c for each entry with ``|W_jk| <= (P(W) + c_jk) / t_jk``. For a norm ``1 /
        t`` is the dual norm of the unit vector, and c is zero."""
        slopes, offsets = np.zeros(self.shape), np.zeros(self.shape)
        unit, t = np.zeros(self.shape), 1.0
        for entry in np.ndindex(*self.shape):
            unit[entry] = 1.0
            if self.own.has_dual_norm:
                length = self.dual_norm(unit)
                slopes[entry] = 1.0 / length if length > 0 else np.inf
            else:
                t = self._multiple(unit, t)
                if t == 0.0:
                    return np.ones(self.shape), np.full(self.shape, np.inf)
                slopes[entry], offsets[entry] = t, self._both(t, unit)
            unit[entry] = 0.0
        return slopes, offsets

    def _both(self, t: float, unit: Array) -> float:
        return max(self.conjugate(t * unit), self.conjugate(-t * unit))

    def _multiple(self, unit: Array, t: float) -> float:
        """A large power of two t with ``P*(+-t unit) <= 1.0``; zero if there is none."""
        while t > NEGLIGIBLE and self._both(t, unit) > 1.0:
            t *= 0.5
        while 0 < t < 1.0 / NEGLIGIBLE and self._both(2.0 * t, unit) <= 1.0:
            t *= 2.0
        return t if t > NEGLIGIBLE else 0.0

    def violations(self, coef: Array, dual: Array) -> Array:
        """``(w - prox(w + t v)) / t`` for a small step t, whose limit for t to 0 is the difference
        of v and the subdifferential of P at w (the Yosida approximation)."""
        size = float(np.abs(dual).max(initial=0.0))
        if size == 0.0 and not coef.any():
            return np.zeros(len(coef))
        length = float(np.abs(coef).max(initial=0.0)) or size
        step = 1e-6 * length / (size or length)  # relative to the size of coefficients per dual
        residual = (coef - self.prox(coef + step * dual, step)) / step
        violations: Array = np.abs(residual).max(axis=1)
        return violations

    def critical_strength(self, dual: Array) -> float:
        if not self.own.has_dual_norm:
            raise TypeError(f"no strength of {self.own!r} is known: it has no dual_norm(dual)")
        return self.dual_norm(dual)

    def restricted(self, index: NDArray[np.intp]) -> Penalty:
        raise TypeError(f"no restriction of {self.own!r} to some of the features is known")


def _least(bound: Callable[[float], float], t: float) -> float:
    """The least of a quasiconvex function over ``t 2^k``; infinite if it is nowhere finite."""
    best = bound(t)
    for factor in (2.0, 0.5):
        at = t
        while NEGLIGIBLE < at < 1.0 / NEGLIGIBLE:
            at *= factor
            found = bound(at)
            if found > best or (found == best < np.inf) or (factor > 1 and found == np.inf):
                break
            best = found
    return best
