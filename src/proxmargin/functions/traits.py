"""Properties of the parts of a problem that solvers rely on."""

from __future__ import annotations

import json
from enum import Flag, auto
from functools import cache
from pathlib import Path


class Trait(Flag):
    """Properties declared by losses, penalties, intercepts and designs. A solver declares the
    traits it needs; a missing one is reported before any work starts."""

    NONE = 0
    SMOOTH = auto()
    """The loss has a Lipschitz continuous gradient."""
    OUTPUTWISE = auto()
    """The loss is a sum over outputs: its curvature does not couple the columns of the scores."""
    SEPARABLE = auto()
    """The penalty is a sum over single coefficients, so that coordinate descent is exact."""
    NET = auto()
    """The penalty is an elastic net, perhaps with strengths and bounds for each feature: it has
    `Penalty.net`."""
    UNIFORM_NET = auto()
    """The same elastic net for all features, without bounds: `l1` and `l2` describe it."""
    SINGLE_OUTPUT = auto()
    """The problem has one column of scores (binary)."""
    MANY_OUTPUTS = auto()
    """The problem has several coupled columns of scores (multiclass, all together)."""
    COMPILED = auto()
    """There are compiled kernels for the loss."""
    SMOOTH_CONJUGATE = auto()
    """The conjugate of the penalty is smooth: the problem can be solved from its dual side."""
    QUADRATIC_CONJUGATE = auto()
    """The conjugate of the penalty is quadratic: gradients of the dual are linear in the dual."""
    MARGINS = auto()
    """The loss is a weighted sum of losses of one margin: `Problem.margins` is that sum."""
    HINGE = auto()
    """The loss of one margin is the hinge."""
    DUAL_FORM = auto()
    """The projection onto the domain of the loss's conjugate is known."""
    CONJUGATE_PROX = auto()
    """The prox of the conjugate of the loss is known."""
    CONJUGATE_PROX_JACOBIAN = auto()
    """An element of the generalised Jacobian of that prox is known."""
    PROX_JACOBIAN = auto()
    """An element of the generalised Jacobian of the penalty's prox is known."""
    BALL = auto()
    """The penalty is the indicator of an l_p ball: `Problem.ball`."""
    BUDGET = auto()
    """The loss is an exact penalty for a budget of another loss: `Problem.level_set`."""

    @cache
    def sentence(self) -> str:
        """The trait in words, for messages."""
        meaning = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
        return "; ".join(meaning[str(trait.name)] for trait in Trait if trait in self)
