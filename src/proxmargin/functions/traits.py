"""Properties of the parts of a problem that solvers rely on."""

from __future__ import annotations

from enum import Flag, auto
from functools import cache


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
        return "; ".join(_MEANING[trait] for trait in Trait if trait in self)


_MEANING = {
    Trait.SMOOTH: "a loss with a Lipschitz continuous gradient",
    Trait.MARGINS: "a loss of margins",
    Trait.HINGE: "the hinge loss",
    Trait.OUTPUTWISE: "a loss that is a sum over outputs",
    Trait.SEPARABLE: "a penalty that is a sum over single coefficients",
    Trait.NET: "an elastic net",
    Trait.UNIFORM_NET: "an elastic net, the same for all features and without bounds",
    Trait.SINGLE_OUTPUT: "a binary problem (or multi_class='ovr')",
    Trait.COMPILED: "a huberized hinge, squared hinge or logistic loss",
    Trait.SMOOTH_CONJUGATE: "a penalty with a ridge part, or a ball",
    Trait.QUADRATIC_CONJUGATE: "a ridge penalty",
    Trait.DUAL_FORM: "a loss whose dual form is known",
    Trait.CONJUGATE_PROX: (
        "a loss whose conjugate has a known prox: a hinge or huberized hinge, or one of all scores"
    ),
    Trait.CONJUGATE_PROX_JACOBIAN: "a loss whose conjugate has a prox with a known derivative",
    Trait.PROX_JACOBIAN: "a penalty whose prox has a known derivative",
    Trait.BALL: "coefficients in a ball",
    Trait.BUDGET: "a loss within a budget (eta)",
    Trait.MANY_OUTPUTS: "a joint multiclass problem (more than two classes, multi_class='joint')",
}
