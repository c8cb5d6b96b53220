"""Data files with named columns: which is the target, which are features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from proxmargin.files.errors import DataError, listed, plural
from proxmargin.files.tables.contents import Table, TableRequest, Wanted
from proxmargin.files.tables.labels import (
    TARGET_NAMES,
    Feature,
    class_labels,
    feature_matrix,
    features_of,
    group_names,
    refuse_text,
    refuse_too_wide,
    refuse_unusable_cells,
    sample_weights,
    warn_of_default_target,
    warn_of_stray_text,
    written_labels,
)
from proxmargin.files.tables.matrices import same_width

_USE_ENCODE = "correct them, encode them as one feature per level (encode=True), or remove them"
_OR_TARGET = "; if one of them has the labels, name it (target=NAME)"


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
    notes: tuple[str, ...] = ()  # sentences about how the file was read, to be said once
    index_first: bool = False  # whether the first column has the names of the rows, and none itself

    def __post_init__(self) -> None:
        if "" in self.names:
            raise DataError(
                f"{self.source}: column {self.names.index('') + 1} has no name in the header; name "
                "it, or remove it if it is a row number."
            )
        repeated = [name for name, count in Counter(self.names).items() if count > 1]
        if repeated:
            raise DataError(
                f"{self.source}: column names must differ; used more than once: {listed(repeated)}."
            )

    def table(self, request: TableRequest) -> Table:
        """All columns but the target and the groups as features, and the target as labels."""
        ignored = {self._called(name, "ignore") for name in request.ignore}
        groups, weights = (
            None if given is None else self._called(given, role)
            for given, role in ((request.groups, "groups"), (request.weights, "weights"))
        )
        target = self._target(
            request.target,
            last_by_default=request.labelled,
            # a column of weights is hardly one of labels; a column of groups may be
            out_of_question=ignored if weights is None else {*ignored, weights},
        )
        if target is not None:
            for role, names in (("groups", {groups}), ("weights", {weights}), ("ignored", ignored)):
                if target in names:
                    what = role if role == "ignored" else f"the {role}"
                    raise DataError(
                        f"{self.source}: the target {target!r} cannot be {what}; name the column "
                        "with the labels (target=NAME)."
                    )
        if groups is not None and groups == weights:
            raise DataError(f"{self.source}: the weights {weights!r} cannot be the groups.")
        out = {target, groups, weights, *ignored}
        used = [name for name in self.names if name not in out]
        frame, found = self._load(used, target=target, groups=groups, weights=weights)
        if request.encode:
            warn_of_stray_text(frame, self.source)
        else:
            or_target = "" if request.target is not None else _OR_TARGET
            refuse_text(frame, self.source, way_out=_USE_ENCODE + or_target)
        features = features_of(frame)
        counts = Counter(feature.name for feature in features)
        clashes = [name for name, count in counts.items() if count > 1]
        if clashes:
            raise DataError(
                f"{self.source}: encoding gives the name {listed(clashes)} twice; rename the "
                "column."
            )
        y = self._labels(found["target"], required=request.labelled)
        if y is not None and request.labelled:
            refuse_too_wide(self.source, len(features), y)
        table = self._table(features, frame, target, y, request.blanks)
        if request.target is None and request.labelled:
            warn_of_default_target(table, self.source)
        if found["weights"] is not None:
            table = replace(table, weights=sample_weights(found["weights"], self.source))
        if found["groups"] is not None:
            table = replace(table, groups=group_names(found["groups"], self.source))
        return table

    def for_model(self, wanted: Wanted) -> Table:
        """The model's features, found by name; other columns are ignored."""
        if wanted.ids is None:
            return self._for_model(wanted)
        name = self._called(wanted.ids, "ids")
        # which may be a feature, as numbers, too
        frame = self._frame([name], {name})
        return replace(self._for_model(wanted, name), ids=frame[name])

    def _for_model(self, wanted: Wanted, ids: str | None = None) -> Table:
        if wanted.feature_names is None:
            ignore = (*wanted.ignore, *(() if ids is None else (ids,)))
            request = TableRequest(
                wanted.target, labelled=False, ignore=ignore, blanks=wanted.blanks
            )
            table = self.table(request)
            return same_width(table, wanted, may_pad=False)
        features = matching_features(wanted.feature_names, self.names, self.source)
        levelled = {feature.column for feature in features if feature.level is not None}
        used = list(dict.fromkeys(feature.column for feature in features))
        ignored = {self._called(name, "ignore") for name in wanted.ignore}
        lacking = [name for name in used if name in ignored]
        if lacking:
            raise DataError(
                f"{self.source}: the model needs {listed(lacking)}, which cannot be ignored."
            )
        target = self._target(
            wanted.target, last_by_default=False, out_of_question={*used, *ignored}
        )
        if target in used:
            raise DataError(
                f"{self.source}: the target {target!r} is a feature of the model; "
                "name another column, or none."
            )
        frame, found = self._load(used, text=levelled, target=target)
        refuse_text(
            frame.drop(columns=list(levelled)),
            self.source,
            way_out="the model was fitted on numbers there",
        )
        y = self._labels(found["target"], required=False)
        return self._table(features, frame, target, y, wanted.blanks)

    def _called(self, given: str | int, option: str) -> str:
        if isinstance(given, str) and given in self.names:
            return given
        try:
            position = int(given)
        except ValueError:
            raise DataError(
                f"{self.source}: there is no column {given!r}; the columns are "
                f"{listed(self.names)}: name one of them ({option}=NAME)."
            ) from None
        if not -len(self.names) <= position < len(self.names):
            raise DataError(
                f"{self.source}: there is no column at position {position}; the file has "
                f"{plural(len(self.names), 'column')}: 0 is the first, -1 the last ({option}=NAME)."
            )
        return self.names[position]

    def _load(
        self, names: Sequence[str], text: Collection[str] = (), **roles: str | None
    ) -> tuple[Any, dict[str, Any]]:
        """The frame of the features, and by their roles the other columns that there are, from one
        reading."""
        if not names:
            raise DataError(
                f"{self.source}: no feature columns; found only {listed(self.names)}"
                f"{_separator_hint(self.names)}."
            )
        # labels and groups are read as they are written: numbers would not tell 01 from 1
        others = {role: name for role, name in roles.items() if name is not None}
        words = {name for role, name in others.items() if role != "weights"}
        frame = self._frame([*names, *others.values()], {*text, *words})
        rest = {role: None if name is None else frame[name] for role, name in roles.items()}
        if rest["target"] is not None and not self.tells_text:
            rest["target"] = written_labels(rest["target"])
        return frame.iloc[:, : len(names)], rest

    def _frame(self, names: Sequence[str], text: Collection[str]) -> Any:
        """The named columns by their names."""
        where = {name: position for position, name in enumerate(self.names)}
        frame = self.load([where[name] for name in names], {where[name] for name in text})
        return frame.set_axis(list(names), axis=1)

    def _table(
        self,
        features: Sequence[Feature],
        frame: Any,
        target: str | None,
        y: NDArray[Any] | None,
        blanks: bool,
    ) -> Table:
        refuse_unusable_cells(frame, self.source, blanks)
        X = feature_matrix(features, frame, self.source)
        names = [feature.name for feature in features]
        return Table(X, y, names, target if y is not None else None, self.source)

    def _labels(self, column: Any, *, required: bool) -> NDArray[Any] | None:
        if column is None or (column.isna().all() and not required):
            return None  # an empty target column waits for its predictions
        return class_labels(column.to_numpy(), column.name, self.source)

    def _target(
        self, target: str | int | None, *, last_by_default: bool, out_of_question: Collection[str]
    ) -> str | None:
        """The column that is named, or else an obvious one of those in question."""
        if target is not None:
            return self._called(target, "target")
        names = [name for name in self.names if name not in out_of_question]
        usual = [name for name in names if name.lower() in TARGET_NAMES]
        if len(usual) == 1:
            return usual[0]
        return names[-1] if last_by_default and names else None


def matching_features(wanted: Iterable[str], names: Sequence[str], source: str) -> list[Feature]:
    """The features called ``wanted`` among the columns of a file, of which ``column=level`` is the
    indicator of a level; DataError names the columns that are missing."""
    wanted = list(wanted)
    present, whole = set(names), set(wanted)
    features = [_matching_feature(name, present, whole) for name in wanted]
    missing = dict.fromkeys(
        name.partition("=")[0] or name
        for name, feature in zip(wanted, features, strict=True)
        if feature is None
    )
    if missing:
        raise DataError(
            f"{source}: {plural(len(missing), 'column')} of the model not in the file: "
            f"{listed(missing)}; the file has {listed(names)}."
        )
    return [feature for feature in features if feature is not None]


def _matching_feature(name: str, present: set[str], whole: set[str]) -> Feature | None:
    if name in present:
        return Feature(name)
    # The level may itself contain '=': any split at one whose left side is a column will do,
    # except a column that the model uses as numbers.
    for at in reversed([match.start() for match in re.finditer("=", name)]):
        if name[:at] in present and name[:at] not in whole:
            return Feature(name[:at], name[at + 1 :])
    return None


def _separator_hint(names: Sequence[str]) -> str:
    found = [mark for mark in (";", "\t", "|", ",") if len(names) == 1 and mark in names[0]]
    if not found:
        return ""
    return (
        f" (the header looks separated by {found[0]!r}; .csv files are separated by commas "
        "and .tsv files by tabs, unless another one is named: separator=)"
    )
