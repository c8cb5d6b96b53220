"""A classifier with any loss of a margin and any penalty, given as objects."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Self

from proxmargin.data.designs import Design
from proxmargin.data.inputs.kinds import MultiClass
from proxmargin.data.inputs.targets import Targets
from proxmargin.functions.losses import HuberizedHinge, MarginLoss
from proxmargin.functions.penalties import (
    Ball,
    CustomPenalty,
    ElasticNet,
    Penalty,
    Ridge,
    WeightedElasticNet,
)
from proxmargin.functions.penalties.custom import OwnPenalty, without_conjugate
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.coefficients import SelectsFeatures
from proxmargin.models.fitting.parameters import ThreadParameters
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Record

# penalties that the classifier accepts
KNOWN = (ElasticNet, WeightedElasticNet, Ridge, Ball, CustomPenalty)
PARTS = ("loss", "penalty")


@dataclass(eq=False, repr=False)
class MarginClassifier(SelectsFeatures, ThreadParameters, MarginEstimator):
    """``minimise mean loss(y (x'w + b)) + penalty(w)`` for a loss and a penalty of your choice.

    Parameters
    ----------
    loss : MarginLoss, optional
        From `proxmargin.losses`; default ``HuberizedHinge()``.
    penalty : ElasticNet, WeightedElasticNet, Ridge, Ball or CustomPenalty, optional
        From `proxmargin.penalties`; default ``ElasticNet(l1=0.005, l2=0.005)``. More than two
        classes are fitted together with an elastic net or a ridge only, or with a penalty of your
        own that `sums_to_zero`. With ``standardize`` the bounds of a `WeightedElasticNet` are those
        of the standardised coefficients. A `CustomPenalty` is one of your own.
    multi_class : {'joint', 'ovr'}
        More than two classes: the loss summed over the wrong classes with coefficients that sum
        to zero, or one problem a class.
    fit_intercept, standardize, class_weight, solver, solver_options, stopping, tol, max_iter, \
time_limit, warm_start, callbacks, verbose, random_state, \
n_jobs
        As in `proxmargin.HuberizedSVC`, which also lists the fitted attributes.

    See Also
    --------
    CalibratedMargin : Probabilities of the classes, from held-out scores of this classifier.

    Examples
    --------
    >>> from proxmargin import MarginClassifier
    >>> from proxmargin.losses import SquaredHinge
    >>> from proxmargin.penalties import ElasticNet
    >>> model = MarginClassifier(loss=SquaredHinge(), penalty=ElasticNet(l1=0.02, l2=0.001))
    """

    loss: MarginLoss | None = None
    penalty: Penalty | CustomPenalty | None = None
    multi_class: MultiClass = "joint"

    def get_params(self, deep: bool = True) -> Record:
        """Parameters; with ``deep`` those of loss and penalty too, as ``loss__delta``."""
        found: Record = super().get_params(deep=False)
        if deep:
            for part in PARTS:
                found |= {f"{part}__{name}": value for name, value in self._fields(part).items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Set parameters; one such as ``loss__delta`` replaces the loss by one with that delta.

        Raises
        ------
        ValueError
            There is no such parameter, or loss or penalty refuse the value.
        """
        own = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**own)
        for part in PARTS:
            known = self._fields(part)
            inner = {
                name.removeprefix(f"{part}__"): value
                for name, value in params.items()
                if name.startswith(f"{part}__")
            }
            for name in inner:
                if name not in known:
                    raise ValueError(
                        f"Invalid parameter {part}__{name}: {part} {self._part(part)!r} has "
                        f"{', '.join(known) or 'none'}"
                    )
            if inner:
                setattr(self, part, type(self._part(part))(**(known | inner)))
        strange = [n for n in params if "__" in n and n.split("__")[0] not in PARTS]
        if strange:
            raise ValueError(f"Invalid parameter {strange[0]!r}: only loss and penalty have parts")
        return self

    def _part(self, name: str) -> MarginLoss | Penalty | CustomPenalty:
        return self._margin_loss() if name == "loss" else self._given_penalty()

    def _fields(self, name: str) -> Record:
        """The parameters of the loss or of the penalty, by name."""
        part = self._part(name)
        if is_dataclass(part):
            return {each.name: getattr(part, each.name) for each in fields(part) if each.init}
        if isinstance(part, CustomPenalty) and hasattr(part, "get_params"):
            return dict(part.get_params(deep=False))
        return {}  # others are refused when it is fitted

    def _check_model(self) -> None:
        if not isinstance(self._margin_loss(), MarginLoss):
            raise ValueError(f"loss must be a MarginLoss object or None, got {shown(self.loss)}")
        if not isinstance(self._given_penalty(), KNOWN):
            names = ", ".join(kind.__name__ for kind in KNOWN)
            raise ValueError(
                f"penalty must be one of {names}, an object such as Ridge(0.1), or None, got "
                f"{shown(self.penalty)}"
            )
        if isinstance(self.penalty, CustomPenalty) and not self.penalty.has_conjugate:
            raise ValueError(without_conjugate(self.penalty))

    def _margin_loss(self) -> MarginLoss:
        return HuberizedHinge() if self.loss is None else self.loss

    def _given_penalty(self) -> Penalty | CustomPenalty:
        return ElasticNet(0.005, 0.005) if self.penalty is None else self.penalty

    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        given = self._given_penalty()
        if not isinstance(given, CustomPenalty):
            return given
        joint = targets.classes.size > 2 and self.multi_class == "joint"
        if joint and not given.sums_to_zero:
            raise ValueError(
                f"penalty {given!r} is not for classes that are fitted together (sums_to_zero = "
                "False): use multi_class='ovr'"
            )
        return OwnPenalty(given, (design.n_features, targets.classes.size if joint else 1))
