"""A loss of scores with a constant offset for each sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from proxmargin.compiled.rounding import UNIT, weighted_sum
from proxmargin.functions.losses.base import Array, Box, DualForm, Loss, Wrapped
from proxmargin.functions.penalties.base import Penalty
from proxmargin.functions.penalties.jacobian import ProxJacobian
from proxmargin.functions.traits import Trait


@dataclass(frozen=True, eq=False)
class Shifted(Wrapped):
    """``loss(Z + shift)``: the shift enters with a coefficient fixed at one.

    Its gradient is that of the loss at ``Z + shift``, its conjugate the conjugate less
    ``<shift, q>``, and its Fenchel-Young terms are those of ``Z + shift`` and q.

    Parameters
    ----------
    loss : Loss
    shift : (n_samples, n_outputs)
    """

    shift: Array

    @property
    def unshifted(self) -> Loss:
        return self.loss

    @property
    def offset(self) -> Array:
        return self.shift

    @cached_property
    def largest_offset(self) -> float:
        return float(np.max(np.abs(self.shift), initial=0.0))

    @property
    def traits(self) -> Trait:  # type: ignore[override]
        return self.loss.traits

    @cached_property
    def box(self) -> Box | None:
        box = self.loss.box
        return (
            None if box is None else box._replace(target=box.target - box.signs * self.shift[:, 0])
        )

    def value(self, scores: Array) -> float:
        return self.loss.value(scores + self.shift)

    def value_and_gradient(self, scores: Array) -> tuple[float, Array]:
        return self.loss.value_and_gradient(scores + self.shift)

    def curvature_bound(self, row_weights: Array) -> float:
        return self.loss.curvature_bound(row_weights)

    @property
    def row_curvatures(self) -> Array:
        return self.loss.row_curvatures

    def curvatures(self, scores: Array) -> Array:
        return self.loss.curvatures(scores + self.shift)

    def fenchel_young(self, scores: Array, dual: Array) -> float:
        return self.loss.fenchel_young(scores + self.shift, dual)

    def growth(self, scores: Array, gradient: Array, dual: Array, error: Array) -> float:
        """The growth of the inner loss for ``error`` plus the rounding of ``scores + shift``.

        A certificate accounts for ``error`` only. When it scales the dual point by s in [0, 1], the
        rounding adds up to ``(1 - s) <rounding, |dual|>``, which the last term includes.
        """
        moved = scores + self.shift
        rounding = _of_adding(scores, moved)
        grown = self.loss.growth(moved, gradient, dual, error + rounding)
        return grown + weighted_sum(np.abs(dual), rounding)

    def pessimistic(self, scores: Array, error: Array) -> Array:
        moved = scores + self.shift
        worst = self.loss.pessimistic(moved, error + _of_adding(scores, moved))
        return worst - self.shift

    def conjugate(self, dual: Array) -> float:
        return self.loss.conjugate(dual) - float(np.vdot(self.shift, dual))

    def balanced(self, dual: Array, intercept: Penalty) -> Array:
        return self.loss.balanced(dual, intercept)

    def best_intercept(self, scores: Array, intercept: Penalty, start: Array) -> Array:
        return self.loss.best_intercept(scores + self.shift, intercept, start)

    def domain_gauge(self, dual: Array) -> float:
        return self.loss.domain_gauge(dual)

    def conjugate_prox(self, dual: Array, step: float) -> Array:
        return self.loss.conjugate_prox(dual + step * self.shift, step)

    def conjugate_prox_jacobian(self, dual: Array, step: float) -> ProxJacobian:
        return self.loss.conjugate_prox_jacobian(dual + step * self.shift, step)

    def dual_form(self, intercept: Penalty, floor: float = 0.0) -> DualForm | None:
        form = self.loss.dual_form(intercept, floor)
        return None if form is None else _ShiftedForm(form, self.shift[:, 0])


def _of_adding(scores: Array, moved: Array) -> Array:
    """A bound on the rounding error of ``scores + shift``; zero where the score is zero."""
    return np.where(scores == 0, 0.0, 2.0 * UNIT * np.abs(moved))


class _ShiftedForm(DualForm):
    """The form of a loss with the linear term ``-<shift, q>``, ``-linear_term'u`` in u."""

    def __init__(self, form: DualForm, shift: Array) -> None:
        self.form = form
        self.offset = form.offset
        self.scale = form.scale
        self.linear_term = shift * form.scale
        self.constant = float(shift @ form.offset)

    def centre(self) -> Array:
        return self.form.centre()

    def uniform(self, level: float) -> Array:
        return self.form.uniform(level)

    def value(self, u: Array) -> float:
        return self.form.value(u) - float(self.linear_term @ u) - self.constant

    def prox(self, u: Array, step: float) -> Array:
        return self.form.prox(u + step * self.linear_term, step)

    def project(self, u: Array, step: float = 1.0) -> Array:
        return self.form.project(u, step)

    def smooth_value(self, u: Array) -> float:
        return self.form.smooth_value(u) - float(self.linear_term @ u) - self.constant

    def smooth_gradient(self, u: Array) -> Array:
        return self.form.smooth_gradient(u) - self.linear_term

    def smooth_divergence(self, u: Array, base: Array) -> float:
        return self.form.smooth_divergence(u, base)

    def smooth_curvature(self) -> float:
        return self.form.smooth_curvature()
