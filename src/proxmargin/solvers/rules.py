"""The rules of ``solver='auto'``: a table by the kind of problem, each row with its reason.

Of the rows of a kind (`rules_for`) the first that matches and whose solver takes the problem is
used: only the solver knows all of what it is for (its intercept, its size). If it stalls, the next
row goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from proxmargin.losses import MinimaxFisher, MinimaxProbability
from proxmargin.problem import Problem
from proxmargin.solvers.facts import Facts
from proxmargin.traits import Trait

__all__ = ["KERNEL_RULES", "PASS_RULES", "RULES", "Rule", "rules_for"]

SIMPLEX_DUAL_PIECES = 2000  # hinge pieces up to which the simplex method beats `ssnal`


@dataclass(frozen=True, eq=False)
class Rule:
    """A row of the table: use the solver ``use`` with ``options`` if ``when`` holds.

    ``because`` is the reason.
    """

    when: Callable[[Facts], bool]
    use: str
    because: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def solver(self) -> tuple[str, Mapping[str, Any]]:
        """The solver's name and options."""
        return self.use, self.options


def _always(facts: Facts) -> bool:
    return True


# ---- rows of several kinds ----------------------------------------------------------------------

FISHER = Rule(_always, "fisher-secular", "MM-FDA: one eigendecomposition, then a scalar equation")
PROBABILITY = Rule(_always, "probability-newton", "MM-MPM: few Newton steps in the coefficients")
DUAL_COORDINATE_DESCENT = Rule(
    lambda facts: (
        (facts.is_sparse_and_wide and (facts.has_boxed_dual or facts.is_easy_logistic))
        or (not facts.smooth and facts.has_few_free_duals)
    ),
    "dual-coordinate-descent",
    "sparse data of many features, or a ridge so strong that most dual variables are at a bound: "
    "dual coordinate descent",
)
ACTIVE_SET = Rule(
    lambda facts: facts.wide,
    "active-set",
    "a piecewise linear or quadratic loss and a ridge, more features than samples: active set on "
    "the dual, with the Gram matrix of the samples",
)
INTERIOR_POINT = Rule(
    lambda facts: facts.small_systems,
    "interior-point",
    "a piecewise linear or quadratic loss and a ridge: interior point, with systems of the smaller "
    "of samples and features",
)
NET_INTERIOR_POINT = Rule(
    _always,
    "net-interior-point",
    "small data on which other methods stall, or bounds: interior point in units of the features",
)
NEWTON = Rule(
    _always,
    "newton",
    "one column of scores: proximal Newton on a working set of features",
)
HINGE_NEWTON = Rule(
    _always,
    "hinge-newton",
    "the hinge with an elastic net: semismooth Newton in an augmented Lagrangian",
)
LINEAR_PROGRAM = Rule(
    _always,
    "linear-program",
    "hinges and a polyhedral norm: the simplex method with row and column generation",
)
BALL_INTERIOR_POINT = Rule(
    lambda facts: facts.small_systems,
    "ball-interior-point",
    "a piecewise linear or quadratic loss in a ball: interior point, with systems of the smaller "
    "of samples and features",
)
BALL_NEWTON = Rule(_always, "ball-newton", "a smooth loss in a ball: Newton's method inside it")
FAPG_WS = Rule(
    lambda facts: facts.wide,
    "fapg-ws",
    "a smooth loss, more features than samples: accelerated proximal gradient on a working set of "
    "features",
)
FAPG = Rule(
    lambda facts: facts.smooth,
    "fapg",
    "a smooth loss: accelerated proximal gradient, preconditioned by feature scales",
)
FAPG_STAR = Rule(
    lambda facts: facts.single,
    "fapg-star",
    "a penalty with a smooth conjugate: accelerated proximal gradient on the dual",
)
FBPD = Rule(_always, "fbpd", "a loss with kinks that no other solver takes: primal-dual steps")
FALLBACK = (FAPG_STAR, FBPD)
SMOOTH_FALLBACK = (
    Rule(_always, "b-pgh", "a smooth loss: accelerated proximal gradient in the coefficients"),
    *FALLBACK,
)

# ---- one column of scores, by loss and penalty --------------------------------------------------

ONE_OUTPUT: Mapping[tuple[str, str], tuple[Rule, ...]] = {
    ("smooth", "l2"): (
        DUAL_COORDINATE_DESCENT,
        ACTIVE_SET,
        Rule(
            _always,
            "sampled-newton",
            "a smooth loss and a ridge, many samples of few features: Newton with the Hessian of a "
            "subsample, corrected by differences of gradients",
        ),
        Rule(_always, "ridge-newton", "a smooth loss and a ridge: Newton's method"),
        INTERIOR_POINT,
        NET_INTERIOR_POINT,
        NEWTON,
        *SMOOTH_FALLBACK,
    ),
    ("kinked", "l2"): (
        DUAL_COORDINATE_DESCENT,
        ACTIVE_SET,
        Rule(
            lambda facts: facts.tall and facts.has_similar_scales,
            "hinge-newton",
            "the hinge, many samples of few features: semismooth Newton in an augmented Lagrangian",
        ),
        INTERIOR_POINT,
        Rule(
            lambda facts: facts.system_exceeds_data,
            "fapg-star",
            "a loss with kinks and a ridge, data smaller than a square matrix of their shorter "
            "side: accelerated proximal gradient on the dual",
        ),
        HINGE_NEWTON,
        NET_INTERIOR_POINT,
        LINEAR_PROGRAM,
        *FALLBACK,
    ),
    ("smooth", "l1"): (
        Rule(
            _always,
            "chord-newton",
            "many samples of few features: proximal Newton whose Hessians, of the features in the "
            "model, serve several steps",
        ),
        NEWTON,
        NET_INTERIOR_POINT,
        FAPG_WS,
        FAPG,
        *SMOOTH_FALLBACK,
    ),
    ("kinked", "l1"): (HINGE_NEWTON, NET_INTERIOR_POINT, LINEAR_PROGRAM, *FALLBACK),
    ("smooth", "ball"): (
        Rule(
            lambda facts: facts.is_flat_ball,
            "ball-newton",
            "a smooth loss in a ball of p >= 2: Newton's method inside it",
        ),
        BALL_INTERIOR_POINT,
        Rule(
            lambda facts: facts.wide,
            "fapg-star",
            "a smooth loss in a ball, more features than samples: accelerated proximal gradient on "
            "the dual",
        ),
        BALL_NEWTON,
        *SMOOTH_FALLBACK,
    ),
    ("kinked", "ball"): (
        Rule(
            lambda facts: facts.is_tight_ball,
            "fapg-star",
            "a loss with kinks in a ball so small that most samples stay within their margins: "
            "accelerated proximal gradient on the dual",
        ),
        BALL_INTERIOR_POINT,
        *FALLBACK,
    ),
    ("smooth", "custom"): (FAPG, *SMOOTH_FALLBACK),
    ("kinked", "custom"): FALLBACK,
}

# ---- several columns of scores, by loss ---------------------------------------------------------

SEVERAL_OUTPUTS: Mapping[str, tuple[Rule, ...]] = {
    "smooth": (
        Rule(
            lambda facts: facts.has_l1,
            "class-newton",
            "a smooth loss of all classes together and an l1 norm: proximal Newton on a working "
            "set of coefficients",
        ),
        Rule(
            lambda facts: (
                facts.wide or (facts.is_elastic_net and (facts.coupled or facts.many_features))
            ),
            "fapg-ssnal",
            "a smooth loss of all classes together, many features or coupled classes: accelerated "
            "proximal gradient on a working set of features, then semismooth Newton",
            {"working_set": True},
        ),
        Rule(
            _always,
            "fapg-ssnal",
            "a smooth loss of all classes together: accelerated proximal gradient, then semismooth "
            "Newton on the dual where that is quicker",
        ),
        FAPG_WS,
        FAPG,
    ),
    "kinked": (
        Rule(
            lambda facts: facts.few_pieces,
            "linear-program",
            "hinges and a polyhedral norm, few samples: the simplex method with column generation",
        ),
        Rule(
            _always,
            "multiplier-newton",
            "a multiclass hinge: semismooth Newton in an augmented Lagrangian, on a working set of "
            "features",
        ),
        Rule(
            lambda facts: facts.pieces_within(SIMPLEX_DUAL_PIECES),
            "linear-program",
            "hinges and a polyhedral norm, too many samples for column generation alone: the "
            "simplex method",
        ),
        Rule(
            lambda facts: facts.very_wide and not facts.is_ridge,
            "ssnal",
            "hinges of all classes together, many more features than samples: semismooth Newton on "
            "the dual, on a working set of features",
            {"working_set": True},
        ),
        Rule(
            lambda facts: facts.many_dual_points,
            "fapg-ssnal",
            "hinges of all classes together, many of them: primal-dual steps, then semismooth "
            "Newton on the dual",
            {"first": "fbpd"},
        ),
        Rule(
            _always,
            "ssnal",
            "hinges of all classes together: semismooth Newton on the dual",
        ),
        Rule(
            _always,
            "ssnal",
            "hinges of all classes together: semismooth Newton on the dual, started again for "
            "smaller and smaller gaps",
            {"working_set": True},
        ),
        LINEAR_PROGRAM,
        FBPD,
    ),
}

# ---- other kinds --------------------------------------------------------------------------------

MINIMAX = (FISHER, PROBABILITY, *FALLBACK)
BUDGET = (
    LINEAR_PROGRAM,
    Rule(_always, "cutting-planes", "a budget for the loss: cutting planes in its multiplier"),
    FBPD,
)
# all of the above, which need features in memory; each once
RULES = tuple(
    dict.fromkeys(chain(MINIMAX, BUDGET, *ONE_OUTPUT.values(), *SEVERAL_OUTPUTS.values()))
)
# for a matrix of inner products, which has no features
KERNEL_RULES: tuple[Rule, ...] = (
    Rule(
        _always,
        "decomposition",
        "a kernel matrix and a sparse dual: block coordinate descent on the dual",
    ),
    Rule(
        _always,
        "dual-newton",
        "a kernel matrix and a loss that is curved everywhere: Newton's method on the dual",
    ),
)
# for data that are read anew in every pass: methods of few passes, none of columns or single rows
PASS_RULES: tuple[Rule, ...] = (
    FISHER,
    PROBABILITY,
    Rule(
        _always,
        "pass-newton",
        "data read in passes, a smooth loss: a proximal Newton step with each pass, from a sample "
        "of the rows",
    ),
    BALL_NEWTON,
    FAPG,
    replace(
        INTERIOR_POINT,
        when=lambda facts: facts.small_systems and not facts.wide,
    ),
    FAPG_STAR,
    FBPD,
)


def rules_for(problem: Problem) -> tuple[Rule, ...]:
    """The rules for problems of this kind, in the order in which they are asked.

    The kind is the access to the data (in memory, in passes, a kernel matrix), the loss (of one
    column of scores or several, smooth or with kinks, of moments, within a budget) and, for one
    column, the penalty.
    """
    if problem.design.passes_only:
        return PASS_RULES
    if problem.design.kernel_matrix is not None:
        return KERNEL_RULES
    if Trait.BUDGET in problem.traits:
        return BUDGET
    if isinstance(problem.loss.unshifted, MinimaxFisher | MinimaxProbability):
        return MINIMAX
    facts = Facts(problem)
    loss = "smooth" if facts.smooth else "kinked"
    return ONE_OUTPUT[loss, facts.penalty] if facts.single else SEVERAL_OUTPUTS[loss]
