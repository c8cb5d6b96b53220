"""Data files with named columns, whose cells are read when it is known which are needed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from proxmargin.files.errors import pandas, refused, said
from proxmargin.files.tables.cells import (
    MISSING,
    are_among,
    as_text,
    is_text,
    numbers_meant,
    numbers_or_text,
    without,
)
from proxmargin.files.tables.contents import USUAL, Dialect
from proxmargin.files.tables.labels import TARGET_NAMES
from proxmargin.files.tables.spelling import spelt_otherwise
from proxmargin.runtime.types import Column, Frame

_RANGE = re.compile(r"(\d+)-(\d+)")
Found = dict[str, Any]  # Series by the role of their column


@dataclass(frozen=True)
class NamedColumns:
    """A table with a header, read when it is known which columns are needed."""

    source: str
    names: list[str]  # in the file's order; "" where a column has none
    # callable (positions, text) -> DataFrame with at least the columns at these positions, by which
    # they are labelled, as the file has them: those in ``text`` as they are written there
    parse: Callable[[Collection[int], Collection[int]], Any]
    dialect: Dialect = USUAL
    typed: bool = False  # whether types tell text from numbers; otherwise the cells do
    notes: list[str] = field(default_factory=list)  # how the file was read, once that was done
    turned: bool = False  # whether the samples are columns of the file
    index_first: bool = False  # whether the first column has the names of the rows, and none itself
    words: Collection[int] = ()  # columns that are text whatever they look like
    signs: dict[str, str] = field(default_factory=dict)  # beside all numbers of a column
    unmatched: list[str] = field(default_factory=list)  # codes of one column that it does not have

    @cached_property
    def called(self) -> list[str]:
        """The names; a column without one is called as by pandas, such as ``Unnamed: 3``."""
        return [name or f"Unnamed: {j}" for j, name in enumerate(self.names)]

    @property
    def names_first(self) -> bool:
        """Whether the first column has the names of the rows."""
        return self.index_first or self.names[:1] in ([""], ["Unnamed: 0"])

    def load(self, positions: Sequence[int], text: Collection[int] = ()) -> Frame:
        """The columns at these positions: numbers, or strings; those in ``text`` as written."""
        text = {*text, *self.words}
        frame = self.parse(positions, text)
        if frame.columns.tolist() != list(positions):
            frame = frame[list(positions)]
        shared, own = self.dialect.codes(self.called)
        blank = ("",) if self.typed or self.dialect.na_text else MISSING
        words = []
        for j, dtype in frame.dtypes.items():
            name = self.called[j]
            codes = [*shared, *own.get(name, ())]
            if dtype.kind in "fiub" and not codes:
                continue
            cells = numbers_or_text(frame[j])
            strange = (c for c in own.get(name, ()) if not are_among(cells, [c]).any())
            self.unmatched.extend(f"{name}={code}" for code in strange)
            column = numbers_or_text(without(cells, codes))
            if is_text(column.dtype) and not self.typed:
                if j not in text:
                    words.append(j)
                elif not self.dialect.exact:
                    column = without(column, blank)
            frame[j] = column  # in place: the numbers of a wide table stay where they are
        self.meant(frame, words, [self.names[j] or str(j + 1) for j in words])
        return frame

    def as_text(self, position: int) -> Column:
        """One column as it is written."""
        return as_text(self.load([position], {position})[position]).rename(self.called[position])

    def all_as_text(self) -> Frame:
        every = list(range(len(self.names)))
        return self.load(every, every).apply(as_text)

    def meant(self, frame: Frame, labels: Iterable[object], names: Sequence[str]) -> None:
        """Read as numbers those columns that are meant so, and note what was taken for missing."""
        marks: dict[str, list[str]] = {}
        signs: dict[str, list[str]] = {}
        what = f"{self.source}: {'row' if self.turned else 'column'}"
        for label, name in zip(labels, names, strict=True):
            told = f"{what} {name!r}"
            found, missing, sign = numbers_meant(frame[label], told, self.dialect, frame)
            frame[label] = found
            if missing:
                marks[name] = missing
            if sign.strip("()"):
                self.signs[name] = sign.strip("()")
            if sign:
                signs.setdefault(sign, []).append(name)
        notes = [
            said("signs_in_brackets" if "(" in sign else "signs", self.source, sign=sign, names=n)
            for sign, n in signs.items()
        ]
        if marks:
            words = sorted({mark for missing in marks.values() for mark in missing})
            count = len(marks)
            notes.append(said("taken_for_missing", self.source, words=words, n=count, names=marks))
        self.notes.extend(note for note in notes if note not in self.notes)

    def parts(
        self, used: Mapping[int, str], roles: Mapping[str, int], text: Collection[int] = ()
    ) -> tuple[Any, Found]:
        """The features, by their names, and by their roles the other columns, from one reading."""
        # labels and groups are read as they are written: numbers would not tell 01 from 1
        words = {j for role, j in roles.items() if role != "weights"}
        frame = self.load(sorted({*used, *roles.values()}), {*text, *words})
        found = {role: frame[j].rename(self.called[j]) for role, j in roles.items()}
        if "ids" in found:  # numbers of typed tables
            found["ids"] = as_text(found["ids"])
        features = frame.drop(columns=set(roles.values()).difference(used))
        if [*features] != [*used]:  # which copies
            features = features[list(used)]
        features = features.set_axis(list(used.values()), axis=1)
        return (features if features.columns.is_unique else self._averaged(features)), found

    def _averaged(self, frame: Frame) -> Frame:
        """The means of columns of one name."""
        again = frame.columns.duplicated(keep=False)
        text = again & np.array([is_text(dtype) for dtype in frame.dtypes])
        if text.any():
            raise refused("no_mean", self.source, names=frame.columns[text].unique())
        means = frame.loc[:, again].T.groupby(level=0, sort=False).mean().T
        return pandas().concat([frame.loc[:, ~again], means], axis=1)[frame.columns.unique()]

    def elsewhere(self, given: str | int, option: str) -> str:
        """What to type where the name of a column is a cell of the first row or column."""
        every = range(len(self.names))
        if self.names == [str(j) for j in every]:
            line = self.load(every, every).iloc[0].fillna("")
            place = next((j for j in every if line[j] == given), None)
            return "" if place is None else f" or, as it is in the first row, {option}={place}"
        turn = " or, as a row has that name, turn the table (transpose=True)"
        return turn if (self.as_text(0) == given).any() else ""

    def position(self, given: str | int, option: str) -> int:
        """The column of that name or at that position. DataError: there is none, or several."""
        places = [j for j, name in enumerate(self.called) if name == given]
        if len(places) == 1:
            return places[0]
        if places:
            raise refused("several_columns", self.source, name=given, at=places, option=option)
        try:
            position = int(given)
        except ValueError:
            like = spelt_otherwise([str(given)], self.called).get(str(given), "")
            raise refused(
                "no_column",
                self.source,
                name=given,
                names=self.called,
                in_one=self.in_one(),
                typed=f"{option}={repr(like) if like else 'NAME'}",
                elsewhere=self.elsewhere(given, option),
            ) from None
        if not -len(self.names) <= position < len(self.names):
            count = len(self.names)
            raise refused("no_position", self.source, at=position, count=count, option=option)
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
                    raise refused("no_match", self.source, pattern=text, names=self.called)
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
        """The names of columns by position; several have one name if their mean is to be taken."""
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
        raise refused("repeated_names", self.source, names=names)

    def in_one(self) -> str:
        """What separates the cells of a table that looks like one column."""
        mark = next((m for m in ";\t|," if len(self.names) == 1 and m in self.names[0]), None)
        return "" if mark is None else f" (which looks separated by {mark!r}: separator={mark!r})"
