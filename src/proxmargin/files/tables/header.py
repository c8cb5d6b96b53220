"""The names of columns: which one is meant, by name, position or pattern."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NoReturn

from proxmargin.files.errors import DataError, listed, plural
from proxmargin.files.tables.cells import is_number, normal_form
from proxmargin.files.tables.labels import TARGET_NAMES

DIFFER = (
    "number them (duplicates='suffix'), take their mean (duplicates='mean') or the first "
    "(duplicates='first'), or leave them out (ignore=NAME)"
)
_RANGE = re.compile(r"(\d+)-(\d+)")
_R_WRITES = re.compile(r"^X(?=[\d_])|[-._\s]")  # names of columns, by make.names


def name_form(name: str) -> str:
    """What names have in common that differ only in case, blanks, hyphens, points or underscores,
    the format of a number, or an X that R writes before digits."""
    text = name.strip()
    plain = _R_WRITES.sub(lambda found: "" if found[0] == "X" else ".", text).casefold()
    return normal_form(text) if is_number(text) else plain


def spelt_otherwise(wanted: Iterable[str], present: Iterable[str]) -> dict[str, str]:
    """The names of those ``present`` that are none of the ``wanted`` ones, but like one of them
    alone, by that."""
    sought, there = dict.fromkeys(wanted), dict.fromkeys(present)
    given, found = Counter(map(name_form, sought)), Counter(map(name_form, there))
    own = {name_form(name): name for name in there if name not in sought}
    forms = {name: name_form(name) for name in sought if name not in there}
    return {n: own[f] for n, f in forms.items() if f in own and given[f] == found[f] == 1}


def told_otherwise(source: str, other: Mapping[str, str]) -> str:
    """A note on names of a model by those that are taken for them."""
    pairs = [f"{here!r} is {name!r}" for name, here in other.items()]
    count = plural(len(pairs), "column")
    return f"{source}: {count} of the model written otherwise: {listed(pairs, quote=False)}"


@dataclass(frozen=True)
class Header:
    """The names of the columns of a table."""

    source: str
    names: list[str]  # in the file's order; "" where a column has none

    @cached_property
    def called(self) -> list[str]:
        """The names; a column without one is called as by pandas, such as ``Unnamed: 3``."""
        return [name or f"Unnamed: {j}" for j, name in enumerate(self.names)]

    def elsewhere(self, given: str | int, option: str) -> str:
        """What else to type where no column is called so; a header alone does not tell."""
        return ""

    def position(self, given: str | int, option: str) -> int:
        """The column of that name or at that position. DataError: there is none, or several."""
        places = [j for j, name in enumerate(self.called) if name == given]
        if len(places) == 1:
            return places[0]
        if places:
            raise DataError(
                f"{self.source}: {given!r} is the name of {len(places)} columns; give a position: "
                f"{listed(places, quote=False)} ({option}=POSITION)."
            )
        try:
            position = int(given)
        except ValueError:
            like = spelt_otherwise([str(given)], self.called).get(str(given), "")
            raise DataError(
                f"{self.source}: there is no column {given!r}; the columns are "
                f"{listed(self.called)}{self.in_one()}: name one of them "
                f"({option}={(like and repr(like)) or 'NAME'}){self.elsewhere(given, option)}."
            ) from None
        if not -len(self.names) <= position < len(self.names):
            raise DataError(
                f"{self.source}: there is no column at position {position}; the file has "
                f"{plural(len(self.names), 'column')}: 0 is the first, -1 the last ({option}=NAME)."
            )
        return position % len(self.names)

    def matching(self, given: Iterable[str | int]) -> set[int]:
        """The columns of these names, positions, ranges of positions and patterns."""
        found: set[int] = set()
        for each in given:
            text = str(each)
            named = [j for j, name in enumerate(self.called) if name == each]
            if not named and any(mark in text for mark in "*?["):
                named = [j for j, name in enumerate(self.called) if fnmatchcase(name, text)]
                if not named:
                    raise DataError(
                        f"{self.source}: no column is called like {text!r}; the columns are "
                        f"{listed(self.called)} (ignore=NAME)."
                    )
            between = _RANGE.fullmatch(text)
            if between and not named:
                first, last = (self.position(end, "ignore") for end in between.groups())
                named = [*range(first, last + 1)]
            found.update(named or [self.position(each, "ignore")])
        return found

    def usual_target(self, taken: Collection[int], *, last: bool) -> int | None:
        """The only column that is called as targets are or, ``last``, the last one with a name."""
        free = [j for j, name in enumerate(self.names) if name and j not in taken]
        usual = [j for j in free if self.names[j].lower() in TARGET_NAMES]
        if len(usual) == 1:
            return usual[0]
        return free[-1] if last and free else None

    def distinct(self, used: Iterable[int], duplicates: str) -> dict[int, str]:
        """The names of columns by position; several have one name where their mean is to be
        taken."""
        names = {j: self.called[j] for j in used}
        counts = Counter(names.values())
        if len(counts) == len(names) or duplicates == "mean":
            return names
        if duplicates == "error":
            self.refuse_repeated([name for name, count in counts.items() if count > 1])
        seen: Counter[str] = Counter()
        found = {}
        for j, name in names.items():
            own = f"{name}.{seen[name]}" if seen[name] else name
            while seen[name] and own in counts:
                own += "_"
            if duplicates == "suffix" or not seen[name]:
                found[j] = own
            seen[name] += 1
        return found

    def refuse_repeated(self, names: Sequence[str]) -> NoReturn:
        raise DataError(
            f"{self.source}: column names must differ; used more than once: {listed(names)}; "
            f"{DIFFER}."
        )

    def in_one(self) -> str:
        """What separates the cells of a table that looks like one column."""
        mark = next((m for m in ";\t|," if len(self.names) == 1 and m in self.names[0]), None)
        return "" if mark is None else f" (which looks separated by {mark!r}: separator={mark!r})"
