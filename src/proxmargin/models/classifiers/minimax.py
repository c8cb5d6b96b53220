"""MM-FDA and MM-MPM: the largest margin between class ellipsoids, linear or with a kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from proxmargin.compiled.clock import clock
from proxmargin.compiled.rounding import TINY, Enclosed, levels
from proxmargin.data.designs import Design
from proxmargin.data.inputs.kinds import KernelChoice, OneVsRest, Width
from proxmargin.data.inputs.parameters import check_choice
from proxmargin.data.inputs.targets import Targets
from proxmargin.data.kernels.matrix import KernelDesign
from proxmargin.functions.losses import Loss, MinimaxFisher, MinimaxProbability
from proxmargin.functions.penalties import Penalty, Ridge
from proxmargin.models.classifiers.kernel_machine import Finish, KernelMachine, Named, per_class
from proxmargin.models.fitting.admissible import Admissible, OfMax, no_margin, number_or_fraction
from proxmargin.models.fitting.assembly import each_class
from proxmargin.models.fitting.assembly import unmet as short_of
from proxmargin.models.fitting.documented import documented_kernels
from proxmargin.models.fitting.fitting import FitContext
from proxmargin.models.limits.kappa import Largest, clear_kappa, largest_kappa
from proxmargin.optimality.certificates.certificate import Gap, combined
from proxmargin.optimality.problem import Problem
from proxmargin.runtime.brief import users_level
from proxmargin.runtime.types import Array
from proxmargin.solvers.loop.report import Solution, Status
from proxmargin.solvers.shared.batched_labels import Axes, FisherSpectra, FitsLabelings

KAPPA_ACCURACY = 1e-6  # relative, of kappa_max
UNCERTAIN_KAPPA = 100.0  # beyond it rounding decides whether kappa_max is finite
# shares of the time limit of a fit
KAPPA_TIME = 0.4  # of the computation of kappa_max
FACTOR_TIME = 0.1  # of the kernel's factor for it


@dataclass(eq=False, repr=False)
class _MinimaxMachine(KernelMachine):
    """Base of both models: ``kappa`` and the rule for the intercept."""

    _without_offset = "only the direction of its coefficients is fitted"
    _is_faster_in_axes = True
    _model: ClassVar[str]
    _loss_class: ClassVar[type[MinimaxFisher] | type[MinimaxProbability]]

    kappa: float | str = "0.5max"
    bias: Literal["training_error", "minimax"] = "training_error"
    kernel: KernelChoice = "linear"
    gamma: Width = "scale"
    degree: int = 3
    coef0: float = 0.0
    multi_class: OneVsRest = "ovr"

    def _check_model(self) -> None:
        super()._check_model()
        number_or_fraction("kappa", self.kappa, low_open=False)
        check_choice("bias", self.bias, INTERCEPT_RULES)

    def _losses(
        self, targets: Targets, design: Design, joint: bool, context: FitContext
    ) -> Sequence[Loss]:
        kappa = number_or_fraction("kappa", self.kappa, low_open=False)
        deadline = context.stop.deadline
        factor_until = clock() + FACTOR_TIME * max(deadline - clock(), 0.0)
        losses: list[Loss] = []
        classes = each_class(targets)
        for positive in classes:
            signs = targets.signs(positive)[:, 0]
            chosen = kappa
            if isinstance(chosen, OfMax):
                now = clock()
                part = KAPPA_TIME * max(deadline - now, 0.0) / (len(classes) - len(losses))
                data = design, signs, targets.shares
                until = factor_until if isinstance(design, KernelDesign) else now + part
                most = largest_kappa(*data, self._model, infinite=UNCERTAIN_KAPPA, deadline=until)
                clear = clear_kappa(*data, self._model, deadline=until)
                context.largest.append(most if clear.is_known else Largest(most.lower, np.inf))
                chosen = min(chosen.of(most.value), clear.value)
            losses.append(self._loss_class(signs, targets.shares, chosen, targets.total))
        return losses

    def _losses_before_kernel(self, targets: Targets, design: Design) -> Sequence[Loss]:
        signs = targets.signs(each_class(targets)[0])[:, 0]
        return [self._loss_class(signs, targets.shares, 1.0, targets.total)]

    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        return Ridge(1.0)

    def _loss_of(self, problem: Problem) -> MinimaxFisher | MinimaxProbability:
        assert isinstance(problem.loss, self._loss_class)
        return problem.loss

    def _finish(self, problem: Problem, scores: Callable[[], Enclosed], intercept: Array) -> Finish:
        if not self.fit_intercept:
            return Finish(1.0, np.zeros(1))
        rule, bare = INTERCEPT_RULES[self.bias], scores().plus(-intercept)
        return Finish(1.0, np.array([rule(self._loss_of(problem), bare)]))

    def _note_chosen(self, problems: Sequence[Problem]) -> None:
        self.kappa_ = per_class([float(self._loss_of(problem).kappa) for problem in problems])

    def _check_gap(
        self, problem: Problem, gap: Gap, status: Status, context: FitContext, classes: Named
    ) -> str | None:
        def admissible() -> Admissible:
            loss = self._loss_of(problem)
            most = largest_kappa(
                problem.design,
                loss.signs,
                loss.shares,
                self._model,
                deadline=context.stop.deadline,
            )
            leaves_margin = loss.kappa < most.lower * (1.0 - KAPPA_ACCURACY)
            if leaves_margin:
                return Admissible(True, f"it is below kappa_max={most}, for {classes()}")
            if most.is_known:
                return Admissible(False, f"it is not below kappa_max={most}, for {classes()}")
            return Admissible(None, f"kappa_max, which the time limit left unsettled, is {most}")

        return no_margin(self, "kappa", gap, status, isinstance(self.kappa, str), admissible)

    def _note_run(self, solutions: list[Solution], context: FitContext) -> None:
        """State in certificates and one warning if kappa is a share of a bound of kappa_max."""
        unsettled = {k: most for k, most in enumerate(context.largest) if not most.is_known}
        if not unsettled:
            super()._note_run(solutions, context)
            return
        told = [*solutions]
        for k, most in unsettled.items():
            known = told[k].certificate
            reason = f"{known.stop_reason}; {_share_of_bound(self.kappa, most)}"
            told[k] = replace(told[k], certificate=replace(known, stop_reason=reason))
        self.certificate_ = combined([one.certificate for one in told], self.classes_)
        warned = bool(context.remarks) or bool(short_of(told, self.stopping != "gap"))
        super()._note_run(told, context)
        if not warned:
            count = f" (in {len(unsettled)} of {len(told)} class problems)"
            reason = _share_of_bound(self.kappa, next(iter(unsettled.values())))
            warnings.warn(
                f"{type(self).__name__}: {reason}{count if len(told) > 1 else ''}: "
                f"kappa_={self.kappa_!r}",
                ConvergenceWarning,
                stacklevel=users_level(),
            )


def _share_of_bound(kappa: float | str, most: Largest) -> str:
    return (
        f"kappa={kappa!r} is a share of a lower bound, as time_limit ended the computation of "
        f"kappa_max, which is {most}"
    )


@documented_kernels("'minimax-newton', 'apg', 'fapg-guaranteed', 'fapg', 'fapg-star'")
class MarginFDA(_MinimaxMachine):
    """Fisher's discriminant as a margin (Ito et al. 2017, 3.2.6, (16)): MM-FDA.

    ``maximise  w'(m+ - m-) - kappa sqrt(w'(S+ + S-) w)`` over ``|w| <= 1``, for class means m and
    population covariances S: the distance of the mean difference from an ellipsoid. Fitted with
    ``|w|^2 / 2`` instead of the bound, which gives the same direction.

    Parameters
    ----------
    <kappa>
    <shared>

    <attributes>
    kappa_ : float, or (n_classes,) where there are more than two
        The kappa of each problem.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import MarginFDA
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MarginFDA(kappa="0.5max", standardize=True).fit(X, y)
    >>> model.certificate_.converged, round(model.score(X, y), 2)
    (True, 0.97)
    """

    _model = "fda"
    _loss_class = MinimaxFisher

    def _of_labelings(self, axes: Axes, signs: Array) -> FitsLabelings | None:
        asked = number_or_fraction("kappa", self.kappa, low_open=False)
        if not axes.centred or axes.squares.size < 2 or asked == 0.0:
            return None
        if not isinstance(asked, OfMax):
            return FisherSpectra(lambda _: asked)
        return FisherSpectra(lambda most: asked.of(most if most <= UNCERTAIN_KAPPA else np.inf))


@documented_kernels("'minimax-newton', 'apg', 'fapg-guaranteed', 'fapg', 'fapg-star'")
class MarginMPM(_MinimaxMachine):
    """Minimax probability machine as a margin (Ito et al. 2017, 3.2.7, (17)): MM-MPM.

    ``maximise  w'(m+ - m-) - kappa (sqrt(w'S+ w) + sqrt(w'S- w))`` over ``|w| <= 1``: the distance
    between two ellipsoids around the class means. Fitted with ``|w|^2 / 2`` instead of the bound,
    which gives the same direction.

    Parameters
    ----------
    <kappa>
    <shared>

    <attributes>
    kappa_ : float, or (n_classes,) where there are more than two
        The kappa of each problem.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from proxmargin import MarginMPM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MarginMPM(kappa="0.5max", standardize=True).fit(X, y)
    >>> model.certificate_.converged, round(model.score(X, y), 2)
    (True, 0.98)
    """

    _model = "mpm"
    _loss_class = MinimaxProbability


Minimax = MinimaxFisher | MinimaxProbability

SHARE_ROUNDING = 1e-12  # difference of training errors that is rounding of sums of shares


def training_error(loss: Minimax, scores: Enclosed) -> float:
    """The intercept with the least weighted training error ((26) of Ito et al. 2017). Thresholds
    are midpoints of two neighbouring scores that differ by more than their rounding, so that they
    never part identical samples, or lie beyond all scores; among those with the least error the one
    in the widest interval is taken. ``scores``: those without an intercept, (n_samples, 1)."""
    signs, shares = loss.signs, loss.shares
    live = np.flatnonzero(shares > 0)
    found = scores.values[live, 0]
    error = np.broadcast_to(scores.error, scores.values.shape)[live, 0]
    level = levels(found, error)
    order = np.lexsort((found, level))
    values, order = found[order], live[order]
    # error with a threshold below all scores, then with the first samples below it
    steps = np.concatenate([[0.0], np.cumsum(shares[order] * signs[order])])
    gaps = np.concatenate([[0.0], np.diff(values), [0.0]])
    apart = np.diff(np.sort(level), prepend=-1, append=live.size) > 0
    errors = np.where(apart, steps, np.inf)
    best = np.flatnonzero(errors <= errors.min() + SHARE_ROUNDING)
    widest = gaps[best] >= gaps[best].max() - 2.0 * float(error.max(initial=0.0))
    k = int(best[np.argmax(widest)])  # the lowest of those that rounding does not tell apart
    spread = max(float(values[-1] - values[0]), TINY)
    if k == 0:
        return -float(values[0] - 0.5 * spread)
    if k == values.size:
        return -float(values[-1] + 0.5 * spread)
    return -0.5 * float(values[k - 1] + values[k])


def minimax(loss: Minimax, scores: Enclosed) -> float:
    """The intercept at which both classes have the same worst-case margin. ``scores``: those
    without an intercept, (n_samples, 1)."""
    positive, negative = loss.nearest_scores(scores.values)
    return -0.5 * (positive + negative)


INTERCEPT_RULES = {"training_error": training_error, "minimax": minimax}
