"""Data files with named columns: the target, the names of the samples, the features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.cells import (
    MISSING,
    are_among,
    as_text,
    is_text,
    normal_form,
    numbers_meant,
    numbers_or_text,
    text_columns,
    without,
)
from proxmargin.files.tables.contents import USUAL, Dialect, Table, TableRequest
from proxmargin.files.tables.features import (
    NOT_FILLED,
    Feature,
    are_ids,
    feature_matrix,
    features_of,
    is_id_name,
    joined_levels,
    known_levels,
    matching_features,
    refuse_text,
    refuse_unusable_cells,
    warn_of_id_numbers,
    warn_of_levels,
    warn_of_numbers,
)
from proxmargin.files.tables.labels import (
    OUTCOMES,
    TARGET_NAMES,
    class_labels,
    group_names,
    other_classes,
    refuse_too_wide,
    sample_weights,
    warn_of_default_target,
    written_labels,
)
from proxmargin.files.tables.matrices import same_width

_USE_ENCODE = (
    "correct them, encode them as one feature per level (encode=True), or leave them out "
    "(ignore=NAME)"
)
_OR_TARGET = "; if one of them has the labels, name it (target=NAME)"
_DUPLICATES = (
    "number them (duplicates='suffix'), take their mean (duplicates='mean') or the first "
    "(duplicates='first'), or leave them out (ignore=NAME)"
)
_TAKE = "; take the labels from another table (labels=FILE)"
_TURN = (
    "; if the samples are the columns, turn the table (transpose=True) and take the labels from "
    "another one (labels=FILE)"
)
_RANGE = re.compile(r"(\d+)-(\d+)")

Found = dict[str, Any]  # Series by the role of their column


@dataclass(frozen=True)
class NamedColumns:
    """A table with a header, read when it is known which columns are needed."""

    source: str
    names: list[str]  # the header, in the file's order; "" where a column has none
    # callable (positions, text) -> DataFrame with at least the columns at these positions, by which
    # they are labelled, as the file has them: those in ``text`` as they are written there
    parse: Callable[[Collection[int], Collection[int]], Any]
    dialect: Dialect = USUAL
    typed: bool = False  # whether types tell text from numbers; otherwise the cells do
    notes: list[str] = field(default_factory=list)  # how the file was read, once that was done
    turned: bool = False  # whether the samples are columns of the file
    index_first: bool = False  # whether the first column has the names of the rows, and none itself
    words: Collection[int] = ()  # columns that are text whatever they look like
    unmatched: list[str] = field(default_factory=list)  # codes of one column that it does not have

    @cached_property
    def called(self) -> list[str]:
        """The names; a column without one is called as by pandas, such as ``Unnamed: 3``."""
        return [name or f"Unnamed: {j}" for j, name in enumerate(self.names)]

    # -- cells ---------------------------------------------------------------------------------

    def load(self, positions: Sequence[int], text: Collection[int] = ()) -> Any:
        """The columns at these positions, by which they are labelled: numbers or booleans of NumPy,
        NaN where they are missing, or pandas strings, NA where they are. Those in ``text`` come as
        the text they are in the file, if that does not type them as numbers."""
        text = {*text, *self.words}
        frame = self.parse(positions, text)
        if frame.columns.tolist() != list(positions):
            frame = frame[list(positions)]
        shared = self.dialect.shared_missing(self.called)
        own = self.dialect.own_missing(self.called)
        blank = ("",) if self.typed or self.dialect.na_text else MISSING
        words = []
        for j, dtype in frame.dtypes.items():
            codes = [*shared, *own.get(self.called[j], ())]
            if dtype.kind in "fiub" and not codes:
                continue
            cells = numbers_or_text(frame[j])
            self.unmatched.extend(
                f"{self.called[j]}={code}"
                for code in own.get(self.called[j], ())
                if not are_among(cells, [code]).any()
            )
            column = numbers_or_text(without(cells, codes))
            if not is_text(column.dtype) or self.typed or (j in text and self.dialect.exact):
                pass
            elif j in text:
                column = without(column, blank)
            else:
                words.append(j)
            frame[j] = column  # in place: the numbers of a wide table stay where they are
        self._meant(frame, words, [self.names[j] or str(j + 1) for j in words])
        return frame

    def _meant(self, frame: Any, labels: Iterable[Any], names: Sequence[str]) -> None:
        """Read those columns of the frame as numbers that are meant so. A note says what was taken
        for missing."""
        marks: dict[str, list[str]] = {}
        signs: dict[str, list[str]] = {}
        what = f"{self.source}: {'row' if self.turned else 'column'}"
        for label, name in zip(labels, names, strict=True):
            found, missing, sign = numbers_meant(frame[label], f"{what} {name!r}", self.dialect)
            frame[label] = found
            if missing:
                marks[name] = missing
            if sign:
                signs.setdefault(sign, []).append(name)
        told = [
            f"{self.source}: numbers are read without their {sign!r}"
            f"{', those in brackets as negative' if '(' in sign else ''}: {listed(columns)}"
            for sign, columns in signs.items()
        ]
        if marks:
            each = sorted({mark for missing in marks.values() for mark in missing})
            told.append(
                f"{self.source}: {listed(each)} among numbers {'is' if len(each) == 1 else 'are'} "
                f"taken for missing in {plural(len(marks), 'column')}: {listed(marks)}"
            )
        self.notes.extend(note for note in told if note not in self.notes)

    # -- training ------------------------------------------------------------------------------

    def table(self, request: TableRequest, labels: NamedColumns | None = None) -> Table:
        """All columns but the target and those of other roles as features, and the target as
        labels; ``labels``: the table that has them, joined by the names of the samples."""
        named = [*self.called, *([] if labels is None else labels.called)]
        self.dialect.refuse_unknown_missing(self.source, named)
        asked = request.ids
        if labels is not None and asked not in self.called and asked in labels.called:
            request = replace(request, ids=None)  # of the labels alone
        ignored = self._matching(request.ignore)
        beside = ("groups", "weights") if labels is None else ()
        roles = self._roles(request, ignored, beside, has_target=labels is None)
        used = [j for j in range(len(self.names)) if j not in {*roles.values(), *ignored}]
        frame, found = self._load(self._distinct(used, request.duplicates), roles)
        frame, notes = self._without_names(frame, found, request.ids)
        lost = 0  # samples without a row of labels, of which the notes speak
        if labels is not None:
            more, said, lost = labels.joined(found, replace(request, ids=asked), self)
            found |= more
            notes += said
        target, read = found.get("target"), len(frame)
        if labels is not None and target is not None and target.name in frame.columns:
            raise DataError(
                f"{self.source}: the target {target.name!r} of {labels.source} is a column here, "
                f"too: leave it out (ignore={target.name!r})."
            )
        if target is not None and request.labelled and request.unlabelled == "drop":
            kept = target.notna()
            if not kept.any():
                raise DataError(
                    f"{self.source}: no row has a label in {target.name!r}; name the column with "
                    "the labels (target=NAME)."
                )
            others = int((~kept).sum()) - lost
            if others:
                notes.append(f"{self.source}: {plural(others, 'row')} without a label")
            frame, found = _rows(kept, frame, found)
        elsewhere = "" if labels is not None else _TAKE if self.turned else _TURN
        if target is not None and request.normalize_levels:
            found["target"] = joined_levels(found["target"].to_frame()).iloc[:, 0]
        y = self._labels(found.get("target"), request.labelled, elsewhere)
        if y is not None and request.drop_classes:
            kept = other_classes(y, request.drop_classes, self.source)
            (frame, found), y = _rows(kept, frame, found), y[kept]
        if len(frame) < read and not self.typed:  # words may have been in the other rows only
            frame = frame.copy(deep=False)
            words = [column.name for column in text_columns(frame)]
            self._meant(frame, words, words)
        if request.normalize_levels:
            frame = joined_levels(frame)
        if request.encode:
            warn_of_levels(frame, self.source)
        else:
            way_out = _USE_ENCODE
            if request.target is None:
                text = [column.name for column in text_columns(frame)]
                outcome = next((name for name in text if name.lower() in OUTCOMES), None)
                first = f"if it has the labels, name it (target={outcome!r}); "
                way_out = f"{way_out}{_OR_TARGET}" if outcome is None else f"{first}{way_out}"
            refuse_text(frame, self.source, way_out=way_out)
        warn_of_id_numbers(frame, self.source)
        features = features_of(frame, self.source)
        if y is not None and request.labelled:
            refuse_too_wide(self.source, len(features), y)
        table = self._table(features, frame, found, y, request.blanks)
        warn_of_numbers(table.X, table.feature_names or (), self.source)
        if request.target is None and request.labelled:
            warn_of_default_target(table, self.source)
        weights, groups = found.get("weights"), found.get("groups")
        unmatched = [*self.unmatched, *([] if labels is None else labels.unmatched)]
        if unmatched:
            notes.append(
                f"{self.source}: matched no cell: {listed(dict.fromkeys(unmatched))} (missing=)"
            )
        return replace(
            table,
            weights=None if weights is None else sample_weights(weights, self.source),
            groups=None if groups is None else group_names(groups, self.source),
            notes=(*self.notes, *notes),
        )

    def _load(
        self, used: Mapping[int, str], roles: Mapping[str, int], text: Collection[int] = ()
    ) -> tuple[Any, Found]:
        """The frame of the features, by their names, and by their roles the other columns that
        there are, from one reading."""
        # labels and groups are read as they are written: numbers would not tell 01 from 1
        words = {j for role, j in roles.items() if role != "weights"}
        frame = self.load([*used, *dict.fromkeys(roles.values())], {*text, *words})
        found = {role: frame[j].rename(self.called[j]) for role, j in roles.items()}
        if "ids" in found:  # numbers of typed tables
            found["ids"] = as_text(found["ids"])
        features = frame.iloc[:, : len(used)].set_axis(list(used.values()), axis=1)
        return (features if features.columns.is_unique else self._averaged(features)), found

    def _averaged(self, frame: Any) -> Any:
        """The means of columns of one name."""
        again = frame.columns.duplicated(keep=False)
        text = np.array([is_text(dtype) for dtype in frame.dtypes])
        if (text & again).any():
            words = frame.columns[text & again].unique()
            raise DataError(
                f"{self.source}: columns of text have no mean: {listed(words)}; {_DUPLICATES}."
            )
        means = frame.loc[:, again].T.groupby(level=0, sort=False).mean().T
        order = list(dict.fromkeys(frame.columns))
        return pandas().concat([frame.loc[:, ~again], means], axis=1)[order]

    def _without_names(
        self, frame: Any, found: Found, asked: str | int | None
    ) -> tuple[Any, list[str]]:
        """The features without columns that hold nothing and have no name, and without those that
        name the samples, of which the first becomes their ``ids``; and notes on both."""
        unnamed = [name for name in frame.columns if name.startswith("Unnamed: ")]
        empty = [name for name in unnamed if frame[name].isna().all()]
        text = text_columns(frame)
        others = [] if asked is not None else [c.name for c in text if are_ids(c)]
        same = [c.name for c in text if len(c) > 1 and (c == c.iloc[0]).fillna(False).all()]
        if len({*others, *same, *empty}) == frame.shape[1]:  # or there would be no feature
            others, same = [], []
        if others:
            found.setdefault("ids", frame[others[0]])
        notes = []
        if same:
            notes.append(f"{self.source}: left out, as the same word in each row: {listed(same)}")
        if empty:
            notes.append(f"{self.source}: left out, as without a name and a cell: {listed(empty)}")
        if "ids" in found and asked is None:
            names = list(dict.fromkeys([found["ids"].name, *others]))
            one = len(names) == 1
            what = (
                "names the samples, and is no feature"
                if one
                else ("name the samples, and are no features")
            )
            notes.append(f"{self.source}: {listed(names)} {what} (another one: ids=NAME)")
        frame = frame.drop(columns=[*empty, *others, *same])
        if not frame.shape[1]:
            raise DataError(
                f"{self.source}: no feature columns; found only {listed(self.called)}"
                f"{_separator_hint(self.names)}."
            )
        return frame, notes

    def _table(
        self,
        features: Sequence[Feature],
        frame: Any,
        found: Found,
        y: NDArray[Any] | None,
        blanks: bool,
        *way_out: str,
    ) -> Table:
        X = feature_matrix(features, frame, self.source)
        with np.errstate(all="ignore"):  # a sum is finite where all cells are, or beyond the range
            whole = np.isfinite((X.data if sp.issparse(X) else X).sum())
        words = frame.columns[[is_text(dtype) for dtype in frame.dtypes]]
        if not whole or frame[words].isna().to_numpy().any():
            refuse_unusable_cells(frame, self.source, blanks, *way_out)
        names = [feature.name for feature in features]
        target = None if y is None else found["target"].name
        return Table(
            X, y, names, target, self.source, ids=found.get("ids"), rows=frame.index.to_numpy()
        )

    def _labels(
        self, column: Any, labelled: bool = False, elsewhere: str = ""
    ) -> NDArray[Any] | None:
        # a target column with gaps waits for its predictions
        if column is None or (column.isna().any() and not labelled):
            return None
        if not self.typed:
            column = written_labels(column)
        return class_labels(column.to_numpy(), column.name, self.source, column.index, elsewhere)

    # -- prediction ----------------------------------------------------------------------------

    def for_model(self, request: TableRequest) -> Table:
        """The model's features, found by name; other columns are ignored."""
        if request.feature_names is None:
            return same_width(self.table(request), request, may_pad=False)
        self.dialect.refuse_unknown_missing(self.source, self.called)
        places = self._places(request)
        try:
            features = matching_features(request.feature_names, list(places.values()), self.source)
        except DataError as error:
            way = self._way_to_rows(request.feature_names)
            raise DataError(f"{str(error)[:-1]}{way}.") from None
        levelled = {feature.column for feature in features if feature.level is not None}
        words = [name for name, each in request.levels.items() if each.is_text]
        levelled.update(words)
        of_name: dict[str, list[int]] = {}  # several where their mean is to be taken
        for j, name in places.items():
            of_name.setdefault(name, []).append(j)
        columns = dict.fromkeys(feature.column for feature in features)
        used = {j: name for name in columns for j in of_name[name]}
        ignored = self._matching(request.ignore)
        lacking = [name for j, name in used.items() if j in ignored]
        if lacking:
            raise DataError(
                f"{self.source}: the model needs {listed(lacking)}, which cannot be ignored."
            )
        asked = None if request.ids is None else self._position(request.ids, "ids")
        out = {*used, *ignored, *(() if asked is None else (asked,))}
        target = self._target(request.target, last_by_default=False, out_of_question=out)
        if target in used:
            raise DataError(
                f"{self.source}: the target {self.called[target]!r} is a feature of the model; "
                "name another column, or none."
            )
        place = self._names_of_rows({*out, target}) if asked is None else asked
        roles = {role: j for role, j in (("target", target), ("ids", place)) if j is not None}
        if place in used:  # as numbers, too
            del roles["ids"]
        text = {j for j, name in used.items() if name in levelled}
        frame, found = self._load(used, roles, text)
        if place in used:
            found["ids"] = as_text(self.load([place], {place})[place]).rename(self.called[place])
        by_chance = asked is None and not (place == 0 and self._index_first)
        if by_chance and "ids" in found and not are_ids(found["ids"]):
            del found["ids"]
        numbers = frame.drop(columns=list(levelled))
        refuse_text(numbers, self.source, way_out="the model was fitted on numbers there")
        if self.dialect.exact:
            found = {
                role: without(c.str.lstrip(), MISSING) if is_text(c.dtype) else c
                for role, c in found.items()
            }
        y = self._labels(found.get("target"))
        exact = self.dialect.exact and not self.typed
        frame = known_levels(frame, features, request, self.source, exact)
        objects = [name for name, each in request.levels.items() if each.is_text or each.as_objects]
        if objects:
            cells = frame[objects].astype(object)
            frame = frame.assign(**cells.where(cells.notna(), np.nan))
            named = None if y is None else found["target"].name
            told = tuple(self.notes)
            return Table(frame, y, [*frame], named, self.source, ids=found.get("ids"), notes=told)
        table = self._table(features, frame, found, y, request.blanks, NOT_FILLED)
        return replace(table, notes=tuple(self.notes))

    def _places(self, request: TableRequest) -> dict[int, str]:
        """The columns that a model may use, by position, of which repeated ones need a decision."""
        if request.duplicates != "error":
            return self._distinct(range(len(self.names)), request.duplicates)
        counts = Counter(self.called)
        needed = [name for name in request.feature_names or () if counts[name] > 1]
        if needed:
            self._refuse_repeated(needed)
        return {j: name for j, name in enumerate(self.called) if counts[name] == 1}

    def _names_of_rows(self, taken: Collection[int | None]) -> int | None:
        """The first column that may name the samples and is not taken."""
        free = [j for j in range(len(self.names)) if j not in taken]
        if self._index_first and 0 in free:
            return 0
        by_name = (j for j in free if is_id_name(self.called[j]))
        return next(by_name, 0 if 0 in free else None)

    def _way_to_rows(self, names: Collection[str]) -> str:
        """What to type where the first column has names of features."""
        first = as_text(self.load([0], {0})[0])
        if not first.str.strip().isin(names).any():
            return ""
        if self.turned:
            return "; columns are called so as the table is written: leave out transpose=True"
        return f"; {self.called[0]!r} has such names in its rows: turn the table (transpose=True)"

    # -- labels for the samples of another table -----------------------------------------------

    def joined(
        self, samples: Found, request: TableRequest, of: NamedColumns
    ) -> tuple[Found, list[str], int]:
        """The target, the groups and the weights of this table for the ``samples`` of another one,
        in their order, notes on names without a partner, and how many samples have none.
        DataError: a name stands twice, or a sample has no row and needs one."""
        if "ids" not in samples:
            raise DataError(
                f"{of.source}: no column names the samples, by which {self.source} could be "
                f"joined; the columns are {listed(of.called)}"
                f"{self._way_to(of) or ': name it (ids=NAME).'}"
            )
        wanted = samples["ids"].str.strip()
        key = self._key(wanted, request.ids, of)
        roles = self._roles(replace(request, ids=key), (), ("groups", "weights"), has_target=True)
        _, found = self._load({}, roles)
        written = found.pop("ids").str.strip()
        repeated = written[written.duplicated() & written.notna()].unique()
        if len(repeated):
            raise DataError(
                f"{self.source}: the column {self.called[key]!r} must name each sample once, and "
                f"has {listed(repeated)} more than once; remove the other rows, or name another "
                "column (ids=NAME)."
            )
        names, sought = _normal_forms(written, wanted)
        notes = []
        others = written[names.notna() & ~names.isin(sought)]
        if len(others):
            count = plural(len(others), "row")
            notes.append(
                f"{self.source}: {count} without a sample in {of.source}: {listed(others)}"
            )
        lost = wanted[~sought.isin(names)]
        if len(lost):
            count = plural(len(lost), "sample")
            notes.append(f"{self.source}: no row for {count} of {of.source}: {listed(lost)}")
            if len(lost) == len(wanted):
                raise DataError(
                    f"{notes[-1]}; its column {self.called[key]!r} has {listed(written.dropna())}: "
                    "name another column (ids=NAME)."
                )
            if request.unlabelled == "error" and request.labelled:
                raise DataError(
                    f"{notes[-1]}; leave these samples out (unlabelled='drop'), or name other "
                    "columns (ids=NAME)."
                )
        rows = pandas().Index(names).get_indexer(sought)
        taken = {
            role: column.take(rows.clip(0)).set_axis(wanted.index).where(rows >= 0)
            for role, column in {**found, "": written}.items()
        }
        same = taken.pop("")
        other = (same != wanted).fillna(False)
        if other.any():
            notes.append(
                f"{self.source}: {plural(int(other.sum()), 'name')} written otherwise: "
                f"{same[other].iloc[0]!r} is {wanted[other].iloc[0]!r}"
            )
        return taken, notes, len(lost)

    def _key(self, wanted: Any, given: str | int | None, samples: NamedColumns) -> int:
        """The column whose cells are most often names of the samples, or the one of that name."""
        if isinstance(given, str) and given in self.called:
            return self._position(given, "ids")
        shared = []
        for _, column in self._as_text().items():
            names, sought = _normal_forms(column.str.strip(), wanted)
            shared.append(names[names.isin(sought)].nunique())
        best = int(np.argmax(shared))
        if shared[best]:
            return best
        raise DataError(
            f"{self.source}: no column has names of the samples of {samples.source}, which are "
            f"{listed(wanted)}{self._way_to(samples) or ': name the column there (ids=NAME).'}"
        )

    def _as_text(self) -> Any:
        every = list(range(len(self.names)))
        return self.load(every, every).apply(as_text)

    def _way_to(self, samples: NamedColumns) -> str:
        """What to type where a column here has the names of columns there."""
        headed = self._as_text().apply(
            lambda column: column.str.strip().isin(samples.called).mean()
        )
        turn = f"; the columns of {samples.source} are called so: turn it (transpose=True)."
        return turn if headed.max() > 0.5 else ""

    # -- which column is what ------------------------------------------------------------------

    @cached_property
    def _index_first(self) -> bool:
        return bool(self.names) and (self.index_first or self.names[0] in ("", "Unnamed: 0"))

    def _roles(
        self,
        request: TableRequest,
        ignored: Collection[int],
        beside: Sequence[str],
        *,
        has_target: bool,
    ) -> dict[str, int]:
        """The positions of the columns that are no features, by what they are."""
        given = {role: getattr(request, role) for role in ("ids", *beside)}
        roles = {role: self._position(c, role) for role, c in given.items() if c is not None}
        taken = {*ignored, *roles.values()}
        if request.target is not None and has_target:
            taken.add(self._position(request.target, "target"))
        if "ids" not in roles and self._index_first and 0 not in taken:
            roles["ids"] = 0
        if has_target:
            # a column of weights is hardly one of labels; a column of groups may be
            out = {*ignored, *(j for role, j in roles.items() if role != "groups")}
            target = self._target(
                request.target, last_by_default=request.labelled, out_of_question=out
            )
            what = [f"the {role}" for role, j in roles.items() if j == target]
            what = ["ignored"] if target in ignored else what
            if what and target is not None:
                raise DataError(
                    f"{self.source}: the target {self.called[target]!r} cannot be {what[0]}; name "
                    "the column with the labels (target=NAME)."
                )
            if target is not None:
                roles["target"] = target
        if roles.get("groups", -1) == roles.get("weights", -2):
            name = self.called[roles["groups"]]
            raise DataError(f"{self.source}: the weights {name!r} cannot be the groups.")
        return roles

    def _target(
        self,
        target: str | int | None,
        *,
        last_by_default: bool,
        out_of_question: Collection[int],
    ) -> int | None:
        """The column that is named, or else an obvious one of those in question."""
        if target is not None:
            return self._position(target, "target")
        free = [j for j, name in enumerate(self.names) if name and j not in out_of_question]
        usual = [j for j in free if self.names[j].lower() in TARGET_NAMES]
        if len(usual) == 1:
            return usual[0]
        return free[-1] if last_by_default and free else None

    def _matching(self, given: Iterable[str | int]) -> set[int]:
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
                first, last = (self._position(end, "ignore") for end in between.groups())
                named = [*range(first, last + 1)]
            found.update(named or [self._position(each, "ignore")])
        return found

    def _position(self, given: str | int, option: str) -> int:
        places = [j for j, name in enumerate(self.called) if name == given]
        if len(places) > 1:
            raise DataError(
                f"{self.source}: {given!r} is the name of {len(places)} columns; give a position: "
                f"{listed(places, quote=False)} ({option}=POSITION)."
            )
        if places:
            return places[0]
        try:
            position = int(given)
        except ValueError:
            raise DataError(
                f"{self.source}: there is no column {given!r}; the columns are "
                f"{listed(self.called)}{_separator_hint(self.names)}: name one of them "
                f"({option}=NAME){self._where_it_occurs(given, option)}."
            ) from None
        if not -len(self.names) <= position < len(self.names):
            raise DataError(
                f"{self.source}: there is no column at position {position}; the file has "
                f"{plural(len(self.names), 'column')}: 0 is the first, -1 the last ({option}=NAME)."
            )
        return position % len(self.names)

    def _where_it_occurs(self, given: str | int, option: str) -> str:
        """What to type where the name of a column is a cell: of a row, or of a first line that is
        no header."""
        every = range(len(self.names))
        if self.names == [str(j) for j in every]:
            line = self.load(every, every).iloc[0].fillna("")
            place = next((j for j in every if line[j] == given), None)
            return "" if place is None else f" or, as it is in the first row, {option}={place}"
        first = self.load([0], {0})[0]
        turn = " or, as a row has that name, turn the table (transpose=True)"
        return turn if (first == given).any() else ""

    def _distinct(self, used: Iterable[int], duplicates: str) -> dict[int, str]:
        """The names of the features by position; several have one name where their mean is to be
        taken."""
        names = {j: self.called[j] for j in used}
        counts = Counter(names.values())
        if len(counts) == len(names) or duplicates == "mean":
            return names
        if duplicates == "error":
            self._refuse_repeated([name for name, count in counts.items() if count > 1])
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

    def _refuse_repeated(self, names: Sequence[str]) -> None:
        raise DataError(
            f"{self.source}: column names must differ; used more than once: {listed(names)}; "
            f"{_DUPLICATES}."
        )


def _rows(kept: Any, frame: Any, found: Found) -> tuple[Any, Found]:
    """Some of the rows, which keep their numbers."""
    return frame[kept], {role: column[kept] for role, column in found.items()}


def _normal_forms(first: Any, second: Any) -> tuple[Any, Any]:
    """Two columns of names in their normal forms, if these tell apart all that differ."""
    forms = [column.map(normal_form, na_action="ignore") for column in (first, second)]
    pairs = zip(forms, (first, second), strict=True)
    if all(form.nunique() == column.nunique() for form, column in pairs):
        return forms[0], forms[1]
    return first, second


def _separator_hint(names: Sequence[str]) -> str:
    mark = next((mark for mark in ";\t|," if len(names) == 1 and mark in names[0]), None)
    return "" if mark is None else f" (which looks separated by {mark!r}: separator={mark!r})"
