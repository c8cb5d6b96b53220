"""Data files with named columns: the target, the names of the samples, the features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import DataError, listed, pandas, plural
from proxmargin.files.tables.contents import Table, TableRequest, Wanted, is_text
from proxmargin.files.tables.labels import (
    TARGET_NAMES,
    Found,
    best_key,
    class_labels,
    group_names,
    other_classes,
    partners,
    refuse_too_wide,
    sample_weights,
    warn_of_default_target,
    written_labels,
)
from proxmargin.files.tables.levels import (
    NOT_FILLED,
    Feature,
    are_ids,
    as_text,
    feature_matrix,
    features_of,
    is_id_name,
    joined_levels,
    known_levels,
    matching_features,
    refuse_text,
    refuse_unusable_cells,
    text_columns,
    warn_of_codes,
    warn_of_id_numbers,
    warn_of_levels,
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
_TURN = (
    "; if the samples are the columns, turn the table (transpose=True) and take the labels from "
    "another one (labels=FILE)"
)
_TAKE = "; take the labels from another table (labels=FILE)"
_RANGE = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class NamedColumns:
    """A table with a header, read when it is known which columns are needed."""

    source: str
    names: list[str]  # the header, in the file's order; "" where a column has none
    # callable (positions, text) -> DataFrame of the columns at these positions, by which they are
    # labelled, in that order: numbers or booleans of NumPy, NaN where they are missing, or pandas
    # strings, NA where they are. Those also in `text` come as the text they are in the file
    load: Callable[[Sequence[int], Collection[int]], Any]
    # whether the file tells text from numbers, as typed formats do; otherwise the cells do
    tells_text: bool = True
    notes: Sequence[str] = ()  # how the file was read; complete once columns are loaded
    turned: bool = False  # whether the samples are columns of the file
    index_first: bool = False  # whether the first column has the names of the rows, and none itself
    # callable (frame of some rows) -> the frame, with the numbers that its words are now
    reread: Callable[[Any], Any] = lambda frame: frame

    @cached_property
    def called(self) -> list[str]:
        """The names; a column without one is called as by pandas, such as ``Unnamed: 3``."""
        return [name or f"Unnamed: {j}" for j, name in enumerate(self.names)]

    def table(self, request: TableRequest, labels: NamedColumns | None = None) -> Table:
        """All columns but the target and those of other roles as features, and the target as
        labels; ``labels``: the table that has them, joined by the names of the samples."""
        asked = request.ids
        if labels is not None and asked not in self.called and asked in labels.called:
            request = replace(request, ids=None)  # of the labels alone
        ignored = self._matching(request.ignore)
        beside = ("groups", "weights") if labels is None else ()
        roles = self._roles(request, ignored, beside, has_target=labels is None)
        used = [j for j in range(len(self.names)) if j not in {*roles.values(), *ignored}]
        names = self._distinct(used, request.duplicates)
        frame, found = self._load(list(names), roles, names)
        frame, ids, notes = self._without_names(frame, found.get("ids"), request.ids)
        told = 0  # rows without a label, of which the notes speak
        if labels is not None:
            more, said, told = labels.joined(ids, replace(request, ids=asked), self)
            found, notes = found | more, [*notes, *said]
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
            if not kept.all():
                others = int((~kept).sum()) - told
                if others:
                    notes.append(f"{self.source}: {plural(others, 'row')} without a label")
                frame, ids, found = _rows(kept, frame, ids, found)
        elsewhere = "" if labels is not None else _TAKE if self.turned else _TURN
        y = self._labels(found.get("target"), request, elsewhere)
        if y is not None and request.drop_classes:
            kept = other_classes(y, request.drop_classes, self.source)
            frame, ids, found = _rows(kept, frame, ids, found)
            y = y[kept]
        if len(frame) < read:
            frame = self.reread(frame)
        if request.normalize_levels:
            frame = joined_levels(frame)
        if request.encode:
            warn_of_levels(frame, self.source)
        else:
            or_target = "" if request.target is not None else _OR_TARGET
            refuse_text(frame, self.source, way_out=_USE_ENCODE + or_target)
        warn_of_id_numbers(frame, self.source)
        features = features_of(frame)
        counts = Counter(feature.name for feature in features)
        clashes = [name for name, count in counts.items() if count > 1]
        if clashes:
            raise DataError(
                f"{self.source}: encoding gives the name {listed(clashes)} twice; rename the "
                "column."
            )
        if y is not None and request.labelled:
            refuse_too_wide(self.source, len(features), y)
        named = None if target is None else target.name
        table = self._table(features, frame, named, y, request.blanks)
        warn_of_codes(table.X, table.feature_names or (), self.source)
        if request.target is None and request.labelled:
            warn_of_default_target(table, self.source)
        weights, groups = found.get("weights"), found.get("groups")
        return replace(
            table,
            weights=None if weights is None else sample_weights(weights, self.source),
            groups=None if groups is None else group_names(groups, self.source),
            ids=ids,
            notes=(*self.notes, *notes),
        )

    def for_model(self, wanted: Wanted) -> Table:
        """The model's features, found by name; other columns are ignored."""
        asked = None if wanted.ids is None else self._position(wanted.ids, "ids")
        place = self._names_of_rows(wanted) if asked is None else asked
        ids = None
        if place is not None:
            # which may be a feature, as numbers, too
            ids = as_text(self.load([place], {place})[place]).rename(self.called[place])
            if asked is None and not (place == 0 and self._index_first) and not are_ids(ids):
                place = ids = None
        table = self._for_model(wanted, place)
        return replace(table, ids=ids, notes=(*self.notes, *table.notes))

    def _for_model(self, wanted: Wanted, ids: int | None) -> Table:
        if wanted.feature_names is None:
            return same_width(self.table(replace(wanted, ids=ids)), wanted, may_pad=False)
        repeated = {name for name, count in Counter(self.called).items() if count > 1}
        every = range(len(self.names))
        if wanted.duplicates == "error":
            places = {j: self.called[j] for j in every if self.called[j] not in repeated}
            needed = [name for name in wanted.feature_names if name in repeated]
            if needed:
                self._refuse_repeated(needed)
        else:
            places = self._distinct(every, wanted.duplicates)
        try:
            features = matching_features(wanted.feature_names, list(places.values()), self.source)
        except DataError as error:
            way = self._way_to_rows(wanted.feature_names)
            raise DataError(f"{str(error)[:-1]}{way}.") from None
        levelled = {feature.column for feature in features if feature.level is not None}
        columns = dict.fromkeys(feature.column for feature in features)
        order = {name: at for at, name in enumerate(columns)}
        used = {j: name for j, name in places.items() if name in columns}
        used = dict(sorted(used.items(), key=lambda item: order[item[1]]))
        ignored = self._matching(wanted.ignore)
        lacking = [name for j, name in used.items() if j in ignored]
        if lacking:
            raise DataError(
                f"{self.source}: the model needs {listed(lacking)}, which cannot be ignored."
            )
        target = self._target(
            wanted.target,
            last_by_default=False,
            out_of_question={*used, *ignored, *(() if ids is None else (ids,))},
        )
        if target in used:
            raise DataError(
                f"{self.source}: the target {self.called[target]!r} is a feature of the model; "
                "name another column, or none."
            )
        text = {j for j, name in used.items() if name in levelled}
        roles = {} if target is None else {"target": target}
        frame, found = self._load(list(used), roles, used, text)
        refuse_text(
            frame.drop(columns=list(levelled)),
            self.source,
            way_out="the model was fitted on numbers there",
        )
        frame = known_levels(frame, features, wanted, self.source)
        y = self._labels(found.get("target"), TableRequest(labelled=False))
        named = None if target is None else self.called[target]
        return self._table(features, frame, named, y, wanted.blanks, NOT_FILLED)

    def joined(
        self, ids: Any, request: TableRequest, samples: NamedColumns
    ) -> tuple[Found, list[str], int]:
        """The target, the groups and the weights of this table for the samples of another one, in
        the order of their names ``ids``, notes on names without a partner, and how many samples
        have none."""
        if ids is None:
            raise DataError(
                f"{samples.source}: no column names the samples, by which {self.source} could be "
                f"joined; the columns are {listed(samples.called)}"
                f"{self._way_to(samples, ': name it (ids=NAME).')}"
            )
        wanted = ids.str.strip()
        place = self._key(wanted, request.ids, samples)
        own = replace(request, ids=place)
        roles = self._roles(own, (), ("groups", "weights"), has_target=True)
        _, found = self._load([], roles, {})
        return partners(wanted, found, self.called[place], self.source, samples.source, request)

    def _key(self, wanted: Any, given: str | int | None, samples: NamedColumns) -> int:
        """The column whose cells are most often names of the samples, or the one of that name."""
        if isinstance(given, str) and given in self.called:
            return self._position(given, "ids")
        every = list(range(len(self.names)))
        frame = self.load(every, every).apply(as_text)
        best = best_key(frame, wanted)
        if best is not None:
            return best
        raise DataError(
            f"{self.source}: no column has names of the samples of {samples.source}, which are "
            f"{listed(wanted)}{self._way_to(samples, ': name the column there (ids=NAME).')}"
        )

    def _way_to(self, samples: NamedColumns, named: str) -> str:
        """What to type where a column here has the names of columns there; else ``named``."""
        every = list(range(len(self.names)))
        frame = self.load(every, every).apply(as_text)
        headed = frame.apply(lambda column: column.str.strip().isin(samples.called).mean())
        turn = f"; the columns of {samples.source} are called so: turn it (transpose=True)."
        return turn if headed.max() > 0.5 else named

    def _way_to_rows(self, names: Collection[str]) -> str:
        """What to type where the first column has names of features."""
        first = as_text(self.load([0], {0})[0])
        if not first.str.strip().isin(names).any():
            return ""
        if self.turned:
            return "; columns are called so as the table is written: leave out transpose=True"
        return f"; {self.called[0]!r} has such names in its rows: turn the table (transpose=True)"

    @cached_property
    def _index_first(self) -> bool:
        return bool(self.names) and (self.index_first or self.names[0] in ("", "Unnamed: 0"))

    def _names_of_rows(self, wanted: Wanted) -> int | None:
        """The first column that may name the samples and is no feature of the model."""
        used = set(wanted.feature_names or ())
        ignored = self._matching(wanted.ignore)
        named = {None if wanted.target is None else self._position(wanted.target, "target")}
        free = [
            j
            for j, name in enumerate(self.called)
            if name not in used and j not in ignored and j not in named
        ]
        if self._index_first and 0 in free:
            return 0
        by_name = (j for j in free if is_id_name(self.called[j]))
        return next(by_name, 0 if 0 in free and wanted.feature_names is not None else None)

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
        roles = {
            role: self._position(column, role)
            for role, column in given.items()
            if column is not None
        }
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
            if target is not None:
                self._refuse_another_role(target, roles, ignored)
                roles["target"] = target
        if roles.get("groups", -1) == roles.get("weights", -2):
            name = self.called[roles["groups"]]
            raise DataError(f"{self.source}: the weights {name!r} cannot be the groups.")
        return roles

    def _refuse_another_role(
        self, target: int, roles: Mapping[str, int], ignored: Collection[int]
    ) -> None:
        what = next((f"the {role}" for role, j in roles.items() if j == target), None)
        what = "ignored" if target in ignored else what
        if what is not None:
            raise DataError(
                f"{self.source}: the target {self.called[target]!r} cannot be {what}; name the "
                "column with the labels (target=NAME)."
            )

    def _matching(self, given: Iterable[str | int]) -> set[int]:
        """The columns of these names, positions, ranges of positions and patterns."""
        found: set[int] = set()
        for each in given:
            text = str(each)
            named = [j for j, name in enumerate(self.called) if name == each]
            between = _RANGE.fullmatch(text)
            if named or any(mark in text for mark in "*?["):
                named = named or [j for j, n in enumerate(self.called) if fnmatchcase(n, text)]
                if not named:
                    raise DataError(
                        f"{self.source}: no column is called like {text!r}; the columns are "
                        f"{listed(self.called)} (ignore=NAME)."
                    )
                found.update(named)
            elif between:
                ends = [self._position(end, "ignore") for end in between.groups()]
                found.update(range(ends[0], ends[1] + 1))
            else:
                found.add(self._position(each, "ignore"))
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
        seen: dict[str, int] = {}
        found = {}
        for j, name in names.items():
            seen[name] = seen.get(name, -1) + 1
            own = f"{name}.{seen[name]}" if seen[name] else name
            while seen[name] and own in counts:
                own += "_"
            if duplicates == "suffix" or not seen[name]:
                found[j] = own
        return found

    def _refuse_repeated(self, names: Sequence[str]) -> None:
        raise DataError(
            f"{self.source}: column names must differ; used more than once: {listed(names)}; "
            f"{_DUPLICATES}."
        )

    def _load(
        self,
        used: Sequence[int],
        roles: Mapping[str, int],
        names: Mapping[int, str],
        text: Collection[int] = (),
    ) -> tuple[Any, Found]:
        """The frame of the features, and by their roles the other columns that there are, from one
        reading."""
        # labels and groups are read as they are written: numbers would not tell 01 from 1
        words = {j for role, j in roles.items() if role != "weights"}
        frame = self.load([*used, *dict.fromkeys(roles.values())], {*text, *words})
        found = {role: frame[j].rename(self.called[j]) for role, j in roles.items()}
        if "ids" in found:  # numbers of typed tables
            found["ids"] = as_text(found["ids"])
        features = frame.iloc[:, : len(used)].set_axis([names[j] for j in used], axis=1)
        if not features.columns.is_unique:
            features = self._averaged(features)
        return features, found

    def _averaged(self, frame: Any) -> Any:
        """The means of columns of one name."""
        again = frame.columns[frame.columns.duplicated(keep=False)]
        chosen = frame.columns.isin(again)
        text = [n for n, dtype in zip(frame.columns, frame.dtypes, strict=True) if is_text(dtype)]
        words = [name for name in again.unique() if name in text]
        if words:
            raise DataError(
                f"{self.source}: columns of text have no mean: {listed(words)}; {_DUPLICATES}."
            )
        means = frame.loc[:, chosen].T.groupby(level=0, sort=False).mean().T
        order = list(dict.fromkeys(frame.columns))
        return pandas().concat([frame.loc[:, ~chosen], means], axis=1)[order]

    def _without_names(
        self, frame: Any, ids: Any, asked: str | int | None
    ) -> tuple[Any, Any, list[str]]:
        """The features without columns that hold nothing and have no name, and without those that
        name the samples, of which the first is kept; and notes on both."""
        notes = []
        empty = [
            name
            for name in frame.columns
            if name.startswith("Unnamed: ") and frame[name].isna().all()
        ]
        text = text_columns(frame)
        others = [] if asked is not None else [c.name for c in text if are_ids(c)]
        same = [c.name for c in text if len(c) > 1 and not c.hasnans and c.nunique() == 1]
        if len({*others, *same, *empty}) == frame.shape[1]:  # or there would be no feature
            others, same = [], []
        if ids is None and others:
            ids = frame[others[0]]
        if empty or others or same:
            frame = frame.drop(columns=[*empty, *others, *same])
        if same:
            notes.append(f"{self.source}: left out, as the same word in each row: {listed(same)}")
        if empty:
            notes.append(f"{self.source}: left out, as without a name and a cell: {listed(empty)}")
        if ids is not None and asked is None:
            names = list(dict.fromkeys([ids.name, *others]))
            what = "names the samples, and is no feature"
            if len(names) > 1:
                what = "name the samples, and are no features"
            notes.append(f"{self.source}: {listed(names)} {what} (another one: ids=NAME)")
        if not frame.shape[1]:
            raise DataError(
                f"{self.source}: no feature columns; found only {listed(self.called)}"
                f"{_separator_hint(self.names)}."
            )
        return frame, ids, notes

    def _table(
        self,
        features: Sequence[Feature],
        frame: Any,
        target: str | None,
        y: NDArray[Any] | None,
        blanks: bool,
        *way_out: str,
    ) -> Table:
        X = feature_matrix(features, frame, self.source)
        with np.errstate(all="ignore"):  # a sum is finite where all cells are, or beyond the range
            whole = np.isfinite((X.data if sp.issparse(X) else X).sum())
        words = frame.columns[[is_text(dtype) for dtype in frame.dtypes]]
        if not whole or any(frame[name].hasnans for name in words):
            refuse_unusable_cells(frame, self.source, blanks, *way_out)
        names = [feature.name for feature in features]
        return Table(X, y, names, target if y is not None else None, self.source)

    def _labels(
        self, column: Any, request: TableRequest, elsewhere: str = ""
    ) -> NDArray[Any] | None:
        # a target column with gaps waits for its predictions
        if column is None or (column.isna().any() and not request.labelled):
            return None
        if not self.tells_text:
            column = written_labels(column)
        return class_labels(column.to_numpy(), column.name, self.source, column.index, elsewhere)

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


def _rows(kept: Any, frame: Any, ids: Any, found: Found) -> tuple[Any, Any, Found]:
    """Some of the rows, which keep their numbers."""
    others = {role: column[kept] for role, column in found.items()}
    return frame[kept], None if ids is None else ids[kept], others


def _separator_hint(names: Sequence[str]) -> str:
    mark = next((mark for mark in ";\t|," if len(names) == 1 and mark in names[0]), None)
    return "" if mark is None else f" (which looks separated by {mark!r}: separator={mark!r})"
