"""What a paper concludes from a table or a figure, held against our numbers.

There is one tolerance of means over draws: two standard errors, of the differences on the same
draws where both sides have them, of both means together where one is printed. A difference within
them decides nothing. An order on several data sets holds if it is so beyond them on some set and
the contrary on none. Printed numbers are met if nine of ten are within them, as chance leaves one
of twenty out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.papers.table import Outcome, Verdict
from benchmarks.report import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "ALIKE",
    "ERRORS",
    "WORDS",
    "Agreement",
    "Claim",
    "alike",
    "decided",
    "faster",
    "illustrated",
    "judged",
    "met",
    "numbers",
    "order",
    "ordered",
    "standard_error",
    "told",
]

ERRORS = 2.0  # standard errors
ALIKE = 1.2  # a ratio of seconds below which none is faster: another run differs by as much
SHARE = 0.9  # of printed numbers that are met
HALF = 0.5  # of the conclusions, from which on open ones leave a table undecided
NAMED = 4  # numbers that differ, named in the overview
WORDS = {True: "yes", False: "no", None: "undecided"}
HEAD = ("claim", "here", "our numbers")


class Claim(NamedTuple):
    """A sentence of the paper, whether our numbers agree (None: they do not decide), and the
    numbers; ``main`` is one without which the table is undecided."""

    sentence: str
    holds: bool | None
    numbers: str
    main: bool = False


# ---- the tolerance ------------------------------------------------------------------------------


def standard_error(values: Sequence[float] | np.ndarray) -> float:
    """Of their mean; NaN of one value."""
    some = np.asarray(values, float)
    return float(some.std(ddof=1) / np.sqrt(some.size)) if some.size > 1 else float("nan")


def decided(differences: Sequence[float] | np.ndarray, bound: float = 0.0) -> bool | None:
    """Whether a mean is above a bound; None within `ERRORS` standard errors of it."""
    mean, error = float(np.mean(differences)), standard_error(differences)
    if not abs(mean - bound) > ERRORS * error:  # NaN too
        return None
    return bool(mean > bound)


def alike(differences: Sequence[float] | np.ndarray, bound: float) -> bool | None:
    """Whether a mean is within a bound of zero; None within `ERRORS` standard errors of it."""
    mean, error = abs(float(np.mean(differences))), standard_error(differences)
    if not abs(mean - bound) > ERRORS * error:
        return None
    return bool(mean < bound)


def faster(ours: Sequence[float] | np.ndarray, theirs: Sequence[float] | np.ndarray) -> bool | None:
    """By the ratios of seconds on the same problems or in the same turns, beyond `ALIKE`."""
    logs = np.log(np.asarray(theirs, float) / np.asarray(ours, float))
    if decided(logs, np.log(ALIKE)):
        return True
    return False if decided(-logs, np.log(ALIKE)) else None


def told(differences: Sequence[float] | np.ndarray) -> str:
    return f"{np.mean(differences):+.2g} ± {standard_error(differences):.2g}"


def ordered(sentence: str, differences: Mapping[str, np.ndarray], *, main: bool = False) -> Claim:
    """The claim that differences on the same draws are positive, on several data sets."""
    verdicts = {name: decided(each) for name, each in differences.items()}
    listed = "; ".join(
        f"{name}: {told(differences[name])} ({WORDS[one]})" for name, one in verdicts.items()
    )
    return Claim(sentence, order(verdicts.values()), listed, main)


def order(verdicts: Collection[bool | None]) -> bool | None:
    """Of an order on several sets: so on some and the contrary on none, or undecided."""
    if any(one is False for one in verdicts):
        return False
    return True if any(verdicts) else None


@dataclass(frozen=True)
class Agreement:
    """A mean of ours beside a printed one.

    Attributes
    ----------
    values : of our draws
    printed : float
    unit : float
        Of the last printed digit, or a coarser one.
    runs : draws of the printed mean
    deviation : float, optional
        Standard deviation of a draw in print; that of ours if not given.
    ours : float, optional
        Standard deviation of a draw of ours; that of the values if not given.
    """

    values: Sequence[float] | np.ndarray
    printed: float
    unit: float
    runs: int
    deviation: float | None = None
    ours: float | None = None

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def bound(self) -> float:
        """Half a unit, or so many standard errors of the difference."""
        count = len(self.values)
        spread = float(np.std(self.values, ddof=1)) if count > 1 else 0.0
        ours = spread if self.ours is None else self.ours
        theirs = ours if self.deviation is None else self.deviation
        error = np.sqrt(ours**2 / count + theirs**2 / self.runs)
        return max(ERRORS * float(error), 0.5 * self.unit + 1e-9)

    @property
    def holds(self) -> bool:
        return bool(abs(self.mean - self.printed) <= self.bound)


def numbers(found: Mapping[str, bool], what: str = "the printed means") -> list[Claim]:
    """The claim that so many printed numbers are met, from whether each of them is."""
    return met(what, [name for name, holds in found.items() if not holds], len(found))


def met(what: str, off: Sequence[str], count: int) -> list[Claim]:
    """The same from the names of those that are not, of so many."""
    if not count:
        return []
    rest = f" and {len(off) - NAMED} more" if len(off) > NAMED else ""
    but = f" (not {', '.join(off[:NAMED])}{rest})" if off else ""
    within = count - len(off)
    listed = f"{within} of {count}" + (f"; not {', '.join(off)}" if off else "")
    return [Claim(f"{what}{but}", within >= SHARE * count, listed)]


# ---- the verdict --------------------------------------------------------------------------------


def judged(
    body: str,
    claims: Sequence[Claim],
    printed: Sequence[Claim] = (),
    picture: Figure | None = None,
) -> Outcome:
    """Not if a conclusion fails, or a printed number where there are no conclusions; undecided if a
    main one or half of them are; reproduced if all hold and the printed numbers are met; else in
    shape."""
    verdict, why = _verdict(claims, printed)
    return Outcome(f"{_listed_all([*claims, *printed])}\n\n{body}", verdict, why, picture)


def illustrated(body: str, claims: Sequence[Claim], picture: Figure | None = None) -> Outcome:
    """Of identities, which only a fault of ours can break."""
    against = _listed(claims, False)
    verdict = Verdict.NOT if against else Verdict.ILLUSTRATION
    why = f"our implementation fails: {against}" if against else "tests our implementation"
    return Outcome(f"{_listed_all(claims)}\n\n{body}", verdict, why, picture)


def _listed_all(claims: Sequence[Claim]) -> str:
    return table(HEAD, [[one.sentence, WORDS[one.holds], one.numbers] for one in claims])


def _verdict(claims: Sequence[Claim], printed: Sequence[Claim]) -> tuple[Verdict, str]:
    against, differing = _listed(claims or printed, False), _listed(printed, False)
    unknown = _listed([*claims, *printed], None)
    if against:
        return Verdict.NOT, f"not so here: {against}"
    if printed and not differing and not unknown:
        return Verdict.REPRODUCED, "its numbers and conclusions"
    but = f"; not: {differing}" if differing else ""
    open_ = [one for one in claims if one.holds is None]
    if any(one.main for one in open_) or len(open_) > HALF * len(claims):
        return Verdict.UNDECIDED, f"{unknown}{but}"
    why = f"what the paper concludes holds here{but}"
    return Verdict.IN_SHAPE, f"{why}; undecided: {unknown}" if unknown else why


def _listed(claims: Sequence[Claim], holds: bool | None) -> str:
    return "; ".join(one.sentence for one in claims if WORDS[one.holds] == WORDS[holds])
