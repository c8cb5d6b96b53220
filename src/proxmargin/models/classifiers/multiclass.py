"""Sparse multiclass support vector machines, all classes jointly (Chierchia et al. 2015)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from proxmargin.compiled.clock import clock
from proxmargin.data.designs import Design
from proxmargin.data.inputs.aligned import (
    by_class,
    by_feature,
    by_sample,
    feature_labels,
    is_labelled,
)
from proxmargin.data.inputs.kinds import Labels
from proxmargin.data.inputs.parameters import (
    check_choice,
    check_number,
    check_strength,
    real_numbers,
)
from proxmargin.data.inputs.targets import Targets, total_price
from proxmargin.data.inputs.validation import LARGEST_OFFSET
from proxmargin.functions.losses import (
    CrammerSinger,
    Hinge,
    Loss,
    Multinomial,
    PairwiseSquaredHinge,
    Shifted,
    wrong_classes,
)
from proxmargin.functions.penalties import ElasticNet, GroupL2, GroupLinf, Groups, Penalty
from proxmargin.functions.traits import Trait
from proxmargin.models.fitting.assembly import ALL, Assembly, Features, with_zero_sums
from proxmargin.models.fitting.base import MarginEstimator
from proxmargin.models.fitting.coefficients import SelectsFeatures
from proxmargin.models.fitting.documented import documented
from proxmargin.models.fitting.fitting import FitContext
from proxmargin.models.limits.budgets import (
    UnattainableError,
    at_sufficient_price,
    brought_within,
    budgeted,
    overspent,
)
from proxmargin.models.limits.least_loss import enclosed_least, least_point
from proxmargin.optimality.certificates.certify import certify
from proxmargin.optimality.problem import Point, Problem
from proxmargin.optimality.unpenalised import better_start, null_point
from proxmargin.runtime.brief import shown
from proxmargin.runtime.types import Array, Record, Values
from proxmargin.solvers.loop.report import Solution
from proxmargin.solvers.loop.run import Certify
from proxmargin.solvers.loop.solver import BUDGET_FACTOR, State

_SOLVERS = (
    "'linear-program', 'multiplier-newton', 'ssnal', 'fapg-ssnal', 'fbpd', for the smooth losses "
    "'m-pgh', 'm-pgh-2', 'fapg', 'fapg-ws', 'fista', 'forward-backward', 'fapg-ssnal', "
    "'class-newton' (with an l1 norm), with ``eta`` 'linear-program', 'cutting-planes', 'fbpd', "
    "'fbpd-linear'"
)

Norm: TypeAlias = Literal["l1", "l2", "elasticnet", "group_l2", "group_linf"]
JointLoss: TypeAlias = Literal["hinge", "squared_hinge", "logistic", "multinomial", "lee"]

LOSSES: Mapping[str, Callable[..., Loss]] = {  # of codes, shares, the number of classes, and total
    "hinge": CrammerSinger,
    "squared_hinge": PairwiseSquaredHinge,
    "logistic": partial(Multinomial, margin=1.0),
    "multinomial": Multinomial,
    "lee": partial(wrong_classes, Hinge()),
}
SMOOTH = ("squared_hinge", "logistic", "multinomial")
HINGES = ("hinge", "lee")
NETS = ("l1", "l2", "elasticnet")
LEAST_TIME = 0.5  # share of a time limit for the search of a point within a budget
# seconds of that search at least, however short the limit: without a point the gap is infinite
LEAST_SECONDS = 0.2
GROUP_NORMS = {"group_l2": GroupL2, "group_linf": GroupLinf}


@documented(_SOLVERS, parameters="joint")
@dataclass(eq=False, repr=False)
class MulticlassSVC(SelectsFeatures, MarginEstimator):
    """Multiclass support vector machine with a sparse penalty (Chierchia et al. 2015, (7), (8)).

    ``minimise  C sum_i s_i loss_i + g(W)`` over W (n_classes, n_features) and free intercepts
    b, with scores ``z_i = W x_i + b``; or, with ``C=None`` and ``eta``, ``minimise  g(W)`` subject
    to ``sum_i s_i loss_i <= eta``. Two classes are fitted in the same way: ``coef_`` is then the
    difference of the two rows.

    Parameters
    ----------
    penalty : {'l1', 'l2', 'elasticnet', 'group_l2', 'group_linf'}
        g: ``|W|_1``; ``|W|^2 / 2``; ``l1_ratio |W|_1 + (1 - l1_ratio) |W|^2 / 2``; the sum of the
        Euclidean, or largest absolute, entries over the groups.
    C : float > 0 or None, default 1.0
        `proxmargin.critical_C` is the largest one with all-zero coefficients.
    eta : float >= 0, optional
        Upper bound of the sum of weighted losses; if it is infeasible, an error states the least
        attainable sum. Needs ``C=None``.
    l1_ratio : float in [0, 1], default 0.5
        Of 'elasticnet'.
    groups : (n_features,) labels, dict, list of index arrays, or 'features'
        Of the group penalties: features with the same label (or listed together) form one group
        in each class; 'features' makes one group of the coefficients of a feature in all classes.
        Labels in a dict or a pandas Series are those of the features of these names.
        Every feature has to be in exactly one group.
    loss : {'hinge', 'squared_hinge', 'logistic', 'multinomial', 'lee'}
        ``max(0, max_{k != y} 1 + z_k - z_y)``, the hinge of Crammer and Singer;
        ``sum_{k != y} [1 + z_k - z_y]_+^2``; ``log(1 + sum_{k != y} exp(1 + z_k - z_y))``, and with
        'multinomial' the same without the margin of 1, the loss of `SparseLogisticRegression`; or
        ``sum_{k != y} [1 + z_k]_+``, that of Lee, Lin and Wahba, with coefficients and intercepts
        that sum to zero over the classes.
    margins : float >= 0, (n_samples,) or (n_classes, n_classes), default 1.0
        In place of each 1 in the loss, the mu of Chierchia et al.: a number, one for each sample of
        `fit`, or one for each true class (row) and wrong class (column, in the order of
        ``classes_``; the diagonal does not count), larger for worse mistakes. pandas objects are
        aligned: a Series with the index of ``X``, a data frame by its labels. 'multinomial' has
        none. Other margins than one number for all take 'linear-program', 'ssnal', 'fbpd', and
        those for smooth losses.
    <shared>

    <attributes>

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from proxmargin import MulticlassSVC
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MulticlassSVC(penalty="l1", C=0.05, standardize=True).fit(X, y)
    >>> model.certificate_.converged
    True
    """

    multi_class = "joint"
    _without_offset = "it has a score for each class, also of two"

    penalty: Norm = "l1"
    C: float | None = 1.0
    eta: float | None = None
    l1_ratio: float = 0.5
    groups: Labels | Mapping[Any, Any] | None = None
    loss: JointLoss = "hinge"
    margins: ArrayLike = 1.0

    def _check_model(self) -> None:
        check_choice("penalty", self.penalty, (*NETS, *GROUP_NORMS))
        check_choice("loss", self.loss, LOSSES)
        check_strength("C", self.C, low=0.0, low_open=True, optional=True)
        check_strength("eta", self.eta, low=0.0, optional=True)
        check_number("l1_ratio", self.l1_ratio, low=0.0, high=1.0)
        if (self.C is None) == (self.eta is None):
            raise ValueError(
                "give C (the losses as a penalty) or eta (the losses within a budget, with "
                f"C=None), got C={self.C!r} and eta={self.eta!r}"
            )
        if self.eta == 0 and self.loss in SMOOTH:
            raise ValueError(
                f"eta must be > 0 with loss={self.loss!r}: there is no price at which a smooth "
                "loss is zero (loss='hinge' with eta=0 is the separation with the least penalty)"
            )
        if (self.groups is not None) != (self.penalty in GROUP_NORMS):
            wanted = "needs groups" if self.groups is None else "takes no groups"
            raise ValueError(f"penalty={self.penalty!r} {wanted}, got groups={shown(self.groups)}")

        margins = self._checked_margins()
        if self.loss == "multinomial" and np.any(margins != 1.0):
            raise ValueError(
                "margins are not for loss='multinomial', which has none: loss='logistic' has"
            )

    def _checked_margins(self, classes: Values | None = None, given: object = None) -> Array:
        """The margins in the order of the ``classes`` and of the rows of ``given``, as far as known
        and labelled; the diagonal of a matrix, which does not count, is one."""
        if getattr(self.margins, "ndim", 0) == 2:
            order = getattr(self.margins, "index", None) if classes is None else classes
            ordered = by_class("margins", self.margins, order)
        else:
            ordered = by_sample("margins", self.margins, given)
        try:
            margins = real_numbers("margins", ordered)
        except ValueError:
            margins = np.full(1, np.nan)
        if margins.ndim == 2:
            margins = np.where(np.eye(*margins.shape) > 0, 1.0, margins)
        if margins.ndim > 2 or not np.all((margins >= 0.0) & (margins <= LARGEST_OFFSET)):
            raise ValueError(
                "margins must be a number >= 0, one a sample, or a matrix of one for each true "
                f"class (row) and wrong class (column), got {shown(self.margins)}"
            )
        return margins

    def _encoded(self, y: Values, weights: Array | None, given: object = None) -> Targets:
        targets = super()._encoded(y, weights)
        margins, count = self._checked_margins(targets.classes, given), targets.classes.size
        if margins.ndim == 2 and margins.shape != (count, count):
            gone = np.setdiff1d(y, targets.classes).tolist()
            left = f" with a positive weight (not {shown(gone)})" if gone else ""
            raise ValueError(
                f"margins must have a row and a column for each of the {count} classes{left}, got "
                f"shape {margins.shape}"
            )
        if margins.ndim != 1:
            return targets
        if margins.shape != targets.codes.shape:
            raise ValueError(
                f"margins must be one a sample, ({targets.codes.size},) here, got {margins.shape}: "
                "folds and permutations fit to some of the rows, for which type a number "
                f"(margins=1.0) or a ({count}, {count}) matrix of true and wrong class"
            )
        return replace(targets, margins=margins)

    def _losses(
        self, targets: Targets, design: Design, joint: bool, context: FitContext
    ) -> Sequence[Loss]:
        count = targets.classes.size
        loss = LOSSES[self.loss](targets.codes, targets.shares, count, targets.total)
        margins = self._checked_margins(targets.classes)
        if self._unit != 1.0 or np.all(margins == 1.0):
            return [loss]
        if targets.margins is not None:
            margins = targets.margins[:, None]
        elif margins.ndim == 2:
            margins = margins[targets.codes]
        # a margin mu instead of 1 is the constant mu - 1 in the scores of the wrong classes
        wrong = targets.codes[:, None] != np.arange(count)
        return [Shifted(loss, np.where(wrong, margins - 1.0, 0.0))]

    @property
    def _unit(self) -> float:
        """The size of coefficients and scores in the problems, and of their objective: hinges that
        all have one margin m are m times those with margin 1, of scores m times as small."""
        margins = self._checked_margins() if self.loss in HINGES else np.ones(())
        return float(margins) if margins.ndim == 0 and margins > 0.0 else 1.0

    @property
    def norm_share(self) -> float:
        """Share of the norm in the penalty; the rest is a ridge."""
        shares = {"l2": 0.0, "elasticnet": float(self.l1_ratio)}
        return shares.get(self.penalty, 1.0)

    def _penalty(self, targets: Targets, design: Design) -> Penalty:
        strength = 1.0 if self.C is None else 1.0 / total_price(float(self.C), targets)
        if self.penalty in GROUP_NORMS:
            return GROUP_NORMS[self.penalty](self._partition(), strength)
        net = ElasticNet.from_mixture(strength, self.norm_share)
        return replace(net, l2=self._unit * net.l2)

    def _partition(self) -> Groups:
        return _partition(self._ordered_groups(), self.n_features_in_)

    def _ordered_groups(self) -> Any:
        given = by_feature("groups", self.groups, self.n_features_in_, feature_labels(self))
        return np.array(given) if is_labelled(self.groups) else given

    def _in_order(self) -> Record:
        return {"groups": self._ordered_groups()} if is_labelled(self.groups) else {}

    def _problems(
        self, targets: Targets, design: Design, context: FitContext | None = None
    ) -> tuple[Problem, ...]:
        (loss,) = self._losses(targets, design, True, context or FitContext())
        penalty = with_zero_sums(self._penalty(targets, design), loss)
        problem = Problem(loss, penalty, design, self._intercept(joint=True))
        if self.eta is None:
            return (problem,)
        return (budgeted(problem, float(self.eta) / (self._unit * targets.total)),)

    @property
    def _most_work(self) -> float:
        return super()._most_work * (1.0 if self.eta is None else BUDGET_FACTOR)

    def _objective_scale(self, problem: Problem) -> float:
        price = 1.0 if self.C is None else float(self.C) * problem.loss.sample_count
        return self._unit * price

    def _starts(self, assembly: Assembly) -> list[Point | None]:
        (problem,) = assembly.problems
        if problem.loss.n_outputs == 2 and getattr(self, "coef_", np.empty((0, 0))).shape[0] == 1:
            known = self.warm_start and self.coef_.shape[1] == assembly.scale.size
            (point,) = self._points(assembly, self.coef_, self.intercept_) if known else (None,)
            start = None if point is None else better_start(problem, point)
        else:
            (start,) = super()._starts(assembly)
        # the null model costs nothing and meets a large budget; it ignores classes without weight
        return [null_point(problem) if start is None else start]

    def _points(self, assembly: Assembly, coef: Array, intercept: Array) -> list[Point]:
        unit = self._unit
        points = super()._points(assembly, coef / unit, intercept / unit)
        return [self._both(point) if point.coef.shape[1] == 1 else point for point in points]

    def _solve(
        self,
        assembly: Assembly,
        starts: Sequence[Point | State | None],
        context: FitContext,
        certify: Certify = certify,
    ) -> list[Solution]:
        limits = context.stop
        alone = replace(context, stop=replace(limits, time_limit=None))
        again = super()._solve

        def solve(problem: Problem, start: Point | None) -> Solution:
            one = replace(assembly, problems=(problem,))
            begin = starts if start is None else [start]
            return again(one, begin, alone, certify)[0]

        known: list[Point] = []

        def least_known(problem: Problem, enough: float) -> float:
            deadline = max(limits.deadline, clock() + LEAST_SECONDS)
            least = least_point(problem, enough, deadline)
            known.extend([] if least.point is None else [least.point])
            return least.loss

        (problem,) = assembly.problems
        if self.eta is None:
            return [solve(problem, None)]
        try:
            known += _within_reach(problem, limits.deadline)
            return [
                self._within_budget(
                    problem, at_sufficient_price(problem, solve, self.tol, least_known), known
                )
            ]
        except UnattainableError as error:
            least = error.least * self._unit * assembly.targets.total
            told = f"at least {least:.5g}" if error.is_bound else f"{least:.8g}"
            raise ValueError(
                f"eta={float(self.eta):g} is less than the weighted losses can sum to: the least "
                f"is {told}"
            ) from error

    def _within_budget(
        self, problem: Problem, solution: Solution, known: Sequence[Point]
    ) -> Solution:
        """The solution; if it exceeds the budget, moved towards a known point within it. Without
        such a point only its lower bound is certified."""
        above = overspent(problem, solution, self.tol)
        if not above:
            return solution
        for inside in known:
            mixed = brought_within(problem, solution, inside)
            if mixed is not None:
                return mixed
        told, more = solution.certificate, above * self._unit * problem.loss.sample_count
        reason = f"{told.stop_reason}, with losses of {more:.6g} above eta={self.eta}"
        nothing: Record = {"primal": np.inf, "gap": np.inf, "relative_gap": np.inf}
        return replace(
            solution, certificate=replace(told, stop_reason=reason, converged=False, **nothing)
        )

    def _published(
        self, assembly: Assembly, points: Sequence[Point], features: Features = ALL
    ) -> tuple[Array, Array]:
        if assembly.targets.classes.size == 2:
            points = [self._difference(point) for point in points]
        coef, intercept = super()._published(assembly, points, features)
        return self._unit * coef, self._unit * intercept

    def _losses_of_scores(self, scores: Array, targets: Targets, design: Design) -> Array:
        both = scores if targets.classes.size > 2 else scores * self._halves
        return self._unit * super()._losses_of_scores(both / self._unit, targets, design)

    def _difference(self, point: Point) -> Point:
        """The model of two classes as one row, scaled so that the loss is zero from margin one."""
        share = 0.5 if self.loss == "lee" else 1.0
        return Point(
            share * (point.coef[:, 1:] - point.coef[:, :1]),
            share * (point.intercept[1:] - point.intercept[:1]),
        )

    def _both(self, point: Point) -> Point:
        """The inverse of `_difference`, with rows that sum to zero."""
        return Point(point.coef * self._halves, point.intercept * self._halves)

    @property
    def _halves(self) -> Array:
        """The scores of both classes per unit of their `_difference`."""
        return np.array([-1.0, 1.0]) * (1.0 if self.loss == "lee" else 0.5)


def _within_reach(problem: Problem, deadline: float) -> list[Point]:
    """A point within the budget of a nonsmooth loss, if the time of the fit is limited. Without
    one, a fit that ends above its budget has no finite gap. Raises UnattainableError: the budget is
    below the least loss."""
    if np.isinf(deadline) or Trait.SMOOTH in problem.level_set.loss.traits:
        return []
    budget, now = problem.level_set.budget, clock()
    found = enclosed_least(problem, budget, now + max(LEAST_TIME * (deadline - now), LEAST_SECONDS))
    if found.lower > budget:
        raise UnattainableError(budget, found.lower, is_bound=True)
    return [found.point] if found.point is not None and found.upper <= budget else []


def _partition(groups: Values, n_features: int) -> Groups:
    """The groups from labels, lists of features or 'features'."""
    if isinstance(groups, str):
        if groups != "features":
            raise ValueError(
                "groups must be 'features', one label a feature, or a list of lists of features, "
                f"got {shown(groups)}"
            )
        return Groups.features(n_features)
    if isinstance(groups, list | tuple):
        groups = [sorted(g) if isinstance(g, set | frozenset) else g for g in groups]
        if groups and all(not isinstance(g, str) and np.ndim(g) == 1 for g in groups):
            return Groups.of_members(groups, n_features)
    found = Groups.within_classes(groups)
    if found.n_features != n_features:
        raise ValueError(
            f"groups has {found.n_features} labels, but X has {n_features} features: give one "
            "label a feature, a list of index arrays, or 'features'"
        )
    return found
