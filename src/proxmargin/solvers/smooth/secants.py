"""Secant equations: what the slope did along the last steps, and the Hessians that agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from proxmargin.designs.base import Array, Index

__all__ = ["Secants"]

KEPT = 6  # steps; earlier ones tell of another place
LEAST_CURVATURE = 1e-8  # of a step, over that of the model, below which it is left out
ALMOST_ALL = 1e-12  # share of a step's square outside of the active features, up to which it counts


class Secants(NamedTuple):
    """The last steps of coefficients and intercept, and the changes of the slope in them.

    Attributes
    ----------
    steps, changes : (k, n_features + 1)
    """

    steps: Array
    changes: Array

    @classmethod
    def none(cls, n_features: int) -> Secants:
        return cls(np.zeros((0, n_features + 1)), np.zeros((0, n_features + 1)))

    def with_pair(self, step: Array, change: Array) -> Secants:
        """These and one more, which is the last."""
        if not step.any():
            return self
        return Secants(
            np.vstack([self.steps, step])[-KEPT:], np.vstack([self.changes, change])[-KEPT:]
        )

    def applied(self, gram: Array, active: Index, mean: Array) -> Array:
        """The model ``gram`` of the active features, updated to meet the secant equations (BFGS).

        With the intercept eliminated, the change of the slope is ``y - mean y_b``: for a quadratic
        that is the eliminated Hessian times the step, whatever the step of the intercept.
        """
        updated = gram
        for step, change in zip(self.steps, self.changes, strict=True):
            s = step[active]
            if step[:-1] @ step[:-1] - s @ s > ALMOST_ALL * (s @ s):
                continue
            y = change[active] - mean[active] * change[-1]
            image = updated @ s
            along, bend = float(s @ image), float(s @ y)
            if not (along > 0 and bend > LEAST_CURVATURE * along):
                continue
            updated = updated - np.outer(image, image / along) + np.outer(y, y / bend)
        return updated
