"""What a part can do, and what a solver needs of the parts it is given."""

from __future__ import annotations

from enum import Flag, auto

__all__ = ["Trait"]


class Trait(Flag):
    """Properties declared by losses, penalties, intercepts and designs.

    A solver declares the traits it needs; a mismatch is a sentence before any work starts.
    """

    NONE = 0
    SMOOTH = auto()
    """The loss has a Lipschitz continuous gradient."""
    OUTPUTWISE = auto()
    """The loss is a sum over outputs: its curvature does not couple the columns of the scores."""
    SEPARABLE = auto()
    """The penalty is a sum over single coefficients, so that coordinate descent is exact."""
    SINGLE_OUTPUT = auto()
    """The problem has one column of scores (binary)."""
    MANY_OUTPUTS = auto()
    """The problem has several coupled columns of scores (multiclass, all together)."""
    COMPILED = auto()
    """The loss is one that the compiled kernels know."""
    SMOOTH_CONJUGATE = auto()
    """The conjugate of the penalty is smooth: the problem can be solved from its dual side."""
    QUADRATIC_CONJUGATE = auto()
    """The conjugate of the penalty is quadratic: gradients of the dual are linear in the dual."""
    DUAL_FORM = auto()
    """Projections onto the dual points of the loss are known."""

    def sentence(self) -> str:
        """Say in words what the trait asks for."""
        return "; ".join(_MEANING[trait] for trait in Trait if trait in self)


_MEANING = {
    Trait.SMOOTH: "a loss with a Lipschitz continuous gradient",
    Trait.OUTPUTWISE: "a loss that is a sum over outputs",
    Trait.SEPARABLE: "a penalty that is a sum over single coefficients",
    Trait.SINGLE_OUTPUT: "a binary problem (or multi_class='ovr')",
    Trait.COMPILED: "a huberized hinge, squared hinge or logistic loss",
    Trait.SMOOTH_CONJUGATE: "a penalty with a ridge part, or a ball",
    Trait.QUADRATIC_CONJUGATE: "a ridge penalty",
    Trait.DUAL_FORM: "a loss whose dual form is known",
    Trait.MANY_OUTPUTS: "a joint multiclass problem (more than two classes, multi_class='joint')",
}
