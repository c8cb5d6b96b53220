"""The samples of a table: which column is what, the labels of another table, and the features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from proxmargin.files.errors import DataError, listed, pandas, plural, refused, said, warned
from proxmargin.files.tables.cells import MISSING, is_text, normal_form, text_columns, without
from proxmargin.files.tables.columns import Found, NamedColumns
from proxmargin.files.tables.contents import Table, TableRequest
from proxmargin.files.tables.features import (
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
    told_of_totals,
    totals,
    warn_of_id_numbers,
    warn_of_levels,
    warn_of_totals,
)
from proxmargin.files.tables.labels import (
    OUTCOMES,
    TARGET_NAMES,
    class_columns,
    class_labels,
    group_names,
    other_classes,
    refuse_one_class,
    refuse_too_wide,
    sample_weights,
    warn_of_default_target,
    written_labels,
)
from proxmargin.files.tables.matrices import same_width
from proxmargin.files.tables.spelling import name_form
from proxmargin.runtime.types import Column, Frame, Values

_USE_ENCODE = (
    "correct them, encode them as one feature per level (encode=True), or leave them out "
    "(ignore=NAME)"
)
_OR_TARGET = "; if one of them has the labels, name it (target=NAME)"
_TAKE = "; take the labels from another table (labels=FILE)"
_TURN = (
    "; if the samples are the columns, turn the table (transpose=True) and take the labels from "
    "another one (labels=FILE)"
)


def _roles(
    of: NamedColumns, request: TableRequest, taken: Mapping[int, str], roles: Sequence[str]
) -> dict[str, int]:
    """The positions of the columns of these ``roles``; others are ``taken`` for what is said."""
    given = {role: getattr(request, role) for role in roles}
    found = {role: of.position(c, role) for role, c in given.items() if c is not None}
    for role, name in request.roles.items():  # as the training table of a model had them
        j = of.called.index(name) if of.called.count(name) == 1 else -1
        if j >= 0 and role in roles and role not in found and j not in {*taken, *found.values()}:
            found[role] = j
    if "ids" not in found and of.names_first and 0 not in {*taken, *found.values()}:
        found["ids"] = 0
    if "target" in roles and "target" not in found:
        # a column of weights is hardly one of labels; a column of groups may be
        others = (j for role, j in found.items() if role != "groups")
        target = of.usual_target({*taken, *others}, last=request.labelled)
        found |= {} if target is None else {"target": target}
    target = found.get("target")
    used = dict(taken) | {j: f"the {role}" for role, j in found.items() if role != "target"}
    if target in used:
        raise refused("target_taken", of.source, name=of.called[target], used=used[target])
    if found.get("groups", -1) == found.get("weights", -2):
        name = of.called[found["groups"]]
        raise DataError(f"{of.source}: the weights {name!r} cannot be the groups.")
    return found


def training_table(
    of: NamedColumns, request: TableRequest, labels: NamedColumns | None = None
) -> Table:
    """All columns without a role as features, and the labels, perhaps of another table."""
    source, asked = of.source, request.ids
    of.dialect.refuse_unknown_missing(source, [*of.called, *(labels.called if labels else ())])
    if labels is not None and asked not in of.called and asked in labels.called:
        request = replace(request, ids=None)  # of the labels alone
    ignored = dict.fromkeys(of.matching(request.ignore), "ignored")
    own = ("ids",) if labels is not None else ("ids", "groups", "weights", "target")
    roles = _roles(of, request, ignored, own)
    used = [j for j in range(len(of.names)) if j not in {*roles.values(), *ignored}]
    frame, found = of.parts(of.distinct(used, request.duplicates), roles)
    frame, notes = _without_names(of, frame, found, request.ids)
    read, lost = len(frame), 0  # samples without a row of labels, of which the notes speak
    if labels is not None:
        more, told, lost = _joined(labels, found, replace(request, ids=asked), of)
        found |= more
        notes += told
        if "target" in found and (name := found["target"].name) in frame.columns:
            raise refused("target_in_both", source, name=name, other=labels.source)
    target = found.get("target")
    if target is not None and request.labelled:
        samples, told = _samples(source, found, lost, request.unlabelled)
        notes += told
        frame, found = (frame, found) if samples.all() else _rows(samples, frame, found)
    if target is not None and request.normalize_levels:
        found["target"] = joined_levels(found["target"].to_frame()).iloc[:, 0]
    elsewhere = "" if labels is not None else _TAKE if of.turned else _TURN
    usual = [of.called[j] for j in ignored if of.called[j].lower() in TARGET_NAMES]
    usual = usual if request.target is None and "target" in roles else []
    if usual:
        elsewhere = f"; it is the last column, as {listed(usual)} is left out{elsewhere}"
    y = _labels(of, found.get("target"), request.labelled, elsewhere)
    if y is not None and request.drop_classes:
        kept = other_classes(y, request.drop_classes, source)
        (frame, found), y = _rows(kept, frame, found), y[kept]
    if len(frame) < read and not of.typed:  # words may have been in the other rows only
        frame = frame.copy(deep=False)
        words = [column.name for column in text_columns(frame)]
        of.meant(frame, words, words)
    if request.normalize_levels:
        frame = joined_levels(frame)
    if request.encode:
        warn_of_levels(frame, source)
    else:
        refuse_text(frame, source, way_out=_way_out(frame, request))
    warn_of_id_numbers(frame, source)
    if "ids" in found and not request.labelled:
        warn_of_totals(found["ids"], source)
    features = features_of(frame, source)
    if y is not None and request.labelled:
        refuse_one_class(y, found["target"].name, source)
        refuse_too_wide(source, len(features), y)
    table = _table(source, features, frame, found, y, request.blanks)
    if request.target is None and request.labelled:
        warn_of_default_target(table, source, usual)
    unmatched = [*of.unmatched, *(labels.unmatched if labels else ())]
    if unmatched:
        notes.append(f"{source}: matched no cell: {listed(dict.fromkeys(unmatched))} (missing=)")
    return replace(
        table,
        weights=sample_weights(found["weights"], source) if "weights" in found else None,
        groups=group_names(found["groups"], source) if "groups" in found else None,
        notes=(*of.notes, *notes),
        signs=tuple(f"{name}={sign}" for name, sign in of.signs.items() if name in frame),
    )


def _samples(source: str, found: Found, lost: int, unlabelled: str) -> tuple[Column, list[str]]:
    """Which rows are samples, and notes on others: rows that sum up, and those without a label,
    which are left out if asked for. ``lost``: samples of which the notes speak."""
    target = found["target"]
    sums = totals(target)
    sums = sums[~sums.duplicated(keep=False)]  # a word of more rows is a class
    sums = totals(found["ids"]) if "ids" in found and not len(sums) else sums
    if len(sums) and unlabelled == "error":
        raise DataError(
            f"{told_of_totals(sums, source)}; leave them out as rows without a label "
            "(unlabelled='drop'), or call them otherwise."
        )
    kept = pandas().Series(~target.index.isin(sums.index), target.index)
    what, rows = "called as totals are", sums.index + 1
    notes = [said("left_out", source, what=what, count=len(rows), rows=rows)] if len(rows) else []
    if unlabelled == "drop":
        labelled = target.notna()
        others = int((kept & ~labelled).sum()) - lost
        notes += [f"{source}: {plural(others, 'row')} without a label"] if others > 0 else []
        kept = kept & labelled
    if not kept.any():
        raise refused("no_label", source, name=target.name)
    return kept, notes


def _way_out(frame: Frame, request: TableRequest) -> str:
    """What to do about columns of text, of which one may be the target."""
    if request.target is not None:
        return _USE_ENCODE
    outcomes = (c.name for c in text_columns(frame) if c.name.lower() in OUTCOMES)
    outcome = next(outcomes, None)
    first = f"if it has the labels, name it (target={outcome!r}); "
    return f"{_USE_ENCODE}{_OR_TARGET}" if outcome is None else f"{first}{_USE_ENCODE}"


def _without_names(
    of: NamedColumns, frame: Frame, found: Found, asked: str | int | None
) -> tuple[Any, list[str]]:
    """The features without empty columns and names of samples (``ids``), and notes on these."""
    unnamed = [name for name in frame.columns if name.startswith("Unnamed: ")]
    empty = [name for name in unnamed if frame[name].isna().all()]
    text = text_columns(frame)
    others = [] if asked is not None else [c.name for c in text if are_ids(c)]
    same = [c.name for c in text if len(c) > 1 and (c == c.iloc[0]).fillna(False).all()]
    if len({*others, *same, *empty}) == frame.shape[1]:  # or there would be no feature
        others, same = [], []
    if others:
        found.setdefault("ids", frame[others[0]])
    left = {"as the same word in each row": same, "as without a name and a cell": empty}
    notes = [
        f"{of.source}: left out, {why}: {listed(names)}" for why, names in left.items() if names
    ]
    if "ids" in found and asked is None:
        names = list(dict.fromkeys([found["ids"].name, *others]))
        several = "name the samples, and are no features"
        what = several if len(names) > 1 else "names the samples, and is no feature"
        notes.append(f"{of.source}: {listed(names)} {what} (another one: ids=NAME)")
    if out := [*empty, *others, *same]:
        frame = frame.drop(columns=out)
    if not frame.shape[1]:
        raise refused("no_features", of.source, names=of.called, in_one=of.in_one())
    return frame, notes


def _rows(kept: Any, frame: Any, found: Found) -> tuple[Any, Found]:
    """Some of the rows, which keep their numbers."""
    return frame[kept], {role: column[kept] for role, column in found.items()}


def _table(
    source: str,
    features: Sequence[Feature],
    frame: Frame,
    found: Found,
    y: Values | None,
    blanks: bool,
    *way_out: str,
) -> Table:
    X = feature_matrix(features, frame, source)
    with np.errstate(all="ignore"):  # a sum is finite where all cells are, or beyond the range
        whole = np.isfinite((X.data if sp.issparse(X) else X).sum())
    words = frame.columns[[is_text(dtype) for dtype in frame.dtypes]]
    if not whole or frame[words].isna().to_numpy().any():
        refuse_unusable_cells(frame, source, blanks, *way_out)
    names = [feature.name for feature in features]
    target = None if y is None else found["target"].name
    return Table(X, y, names, target, source, ids=found.get("ids"), rows=frame.index.to_numpy())


def _labels(
    of: NamedColumns, column: Any, labelled: bool = False, elsewhere: str = ""
) -> Values | None:
    # a target column with gaps waits for its predictions
    if column is None or (column.isna().any() and not labelled):
        return None
    column = column if of.typed else written_labels(column)
    return class_labels(column.to_numpy(), column.name, of.source, column.index, elsewhere)


def _joined(
    labels: NamedColumns, samples: Found, request: TableRequest, of: NamedColumns
) -> tuple[Found, list[str], int]:
    """The columns of ``labels`` for ``samples``, notes on names without a partner, and how many."""
    source = labels.source
    if "ids" not in samples:
        raise DataError(
            f"{of.source}: no column names the samples, by which {source} could be joined; the "
            f"columns are {listed(of.called)}{_turn(labels, of) or ': name it (ids=NAME).'}"
        )
    wanted = samples["ids"].str.strip()
    key = _key(labels, wanted, request.ids, of)
    roles = ("ids", "groups", "weights", "target")
    places = _roles(labels, replace(request, ids=key, labelled=False), {}, roles)
    if request.labelled and "target" not in places:
        places["target"] = _target_among(labels, {*places.values()})
    _, found = labels.parts({}, places)
    written = found["ids"] = found["ids"].str.strip()
    repeated = written[written.duplicated() & written.notna()].unique()
    if len(repeated):
        raise refused("repeated_ids", source, name=labels.called[key], repeated=repeated)
    names, sought = _normal_forms(written, wanted)
    notes = []
    others = written[names.notna() & ~names.isin(sought)]
    if len(others):
        count = plural(len(others), "row")
        notes.append(f"{source}: {count} without a sample in {of.source}: {listed(others)}")
    lost = wanted[~sought.isin(names)]
    if len(lost):
        count = plural(len(lost), "sample")
        notes.append(f"{source}: no row for {count} of {of.source}: {listed(lost)}")
        if len(lost) == len(wanted):
            raise DataError(
                f"{notes[-1]}; its column {labels.called[key]!r} has {listed(written.dropna())}: "
                "name another column (ids=NAME)."
            )
        if request.unlabelled == "error" and request.labelled:
            raise DataError(
                f"{notes[-1]}; leave these samples out (unlabelled='drop'), or name other columns "
                "(ids=NAME)."
            )
    rows = pandas().DataFrame(found)[names.notna()].set_axis(names.dropna())
    rows = rows.reindex(sought).set_axis(wanted.index)
    taken = {role: rows[role].rename(found[role].name) for role in found if role != "ids"}
    other = (rows["ids"] != wanted).fillna(False)
    if other.any():
        notes.append(
            f"{source}: {plural(int(other.sum()), 'name')} written otherwise: "
            f"{rows['ids'][other].iloc[0]!r} is {wanted[other].iloc[0]!r}"
        )
    return taken, notes, len(lost)


def _target_among(labels: NamedColumns, taken: Collection[int]) -> int:
    """The only column of a table of labels that may hold classes. DataError: there are others."""
    free = [j for j, name in enumerate(labels.names) if name and j not in taken]
    cells = labels.load(free).set_axis([labels.called[j] for j in free], axis=1)
    found = [j for j in free if labels.called[j].lower() in OUTCOMES]
    if len(found) != 1:
        classes = class_columns(cells)
        found = free if len(free) == 1 else [j for j in free if labels.called[j] in classes]
    if len(found) == 1:
        return found[0]
    names = [n for n in classes if found] or [labels.called[j] for j in free]
    raise DataError(
        f"{labels.source}: it cannot be known which column has the labels: "
        + (
            f"{listed(names)}; name it (target={names[0]!r})."
            if names
            else "there is none beside the names of samples; name another table (labels=FILE)."
        )
    )


def _key(labels: NamedColumns, wanted: Any, given: str | int | None, samples: NamedColumns) -> int:
    """The column whose cells are most often names of the samples, or the one of that name."""
    if isinstance(given, str) and given in labels.called:
        return labels.position(given, "ids")
    shared = []
    for _, column in labels.all_as_text().items():
        names, sought = _normal_forms(column.str.strip(), wanted)
        shared.append(names[names.isin(sought)].nunique())
    best = int(np.argmax(shared))
    if shared[best]:
        return best
    way = _turn(labels, samples) or ": name the column there (ids=NAME)."
    raise DataError(
        f"{labels.source}: no column has names of the samples of {samples.source}, which are "
        f"{listed(wanted)}{way}"
    )


def _turn(labels: NamedColumns, samples: NamedColumns) -> str:
    """What to type where a column of labels has the names of columns of samples."""
    cells = labels.all_as_text()
    headed = cells.apply(lambda column: column.str.strip().isin(samples.called).mean())
    turn = f"; the columns of {samples.source} are called so: turn it (transpose=True)."
    return turn if headed.max() > 0.5 else ""


def _normal_forms(first: Column, second: Column) -> tuple[Column, Column]:
    """Two columns of names in a form in common, if it tells apart all that differ."""
    columns = first, second
    for form in (name_form, normal_form):
        forms = [column.map(form, na_action="ignore") for column in columns]
        if all(f.nunique() == c.nunique() for f, c in zip(forms, columns, strict=True)):
            return forms[0], forms[1]
    return columns


def model_table(
    of: NamedColumns, request: TableRequest, labels: NamedColumns | None = None
) -> Table:
    """The model's features, found by name; other columns are ignored."""
    if request.feature_names is None:
        return same_width(training_table(of, request, labels), request, may_pad=False)
    of.dialect.refuse_unknown_missing(of.source, of.called)
    used, features = _features(of, request)
    ignored = of.matching(request.ignore)
    lacking = [name for j, name in used.items() if j in ignored]
    if lacking:
        raise DataError(f"{of.source}: the model needs {listed(lacking)}, which cannot be ignored.")
    taken = dict.fromkeys(ignored, "ignored") | dict.fromkeys(used, "a feature of the model")
    own = ("ids",) if labels is not None else ("ids", "groups", "target")
    roles = _roles(of, request, taken, own)
    by_chance = "ids" not in roles
    if by_chance:
        free = [j for j in range(len(of.names)) if j not in {*taken, *roles.values()}]
        named = (j for j in free if is_id_name(of.called[j]))
        first = next(named, 0)
        roles |= {"ids": first} if first in free else {}
    twice = roles.pop("ids") if roles.get("ids") in used else None  # as a feature, too
    words = [name for name, each in request.levels.items() if each.is_text]
    levelled = {feature.column for feature in features if feature.level is not None}.union(words)
    text = {j for j, name in used.items() if name in levelled}
    frame, found = of.parts(used, roles, text)
    notes: list[str] = []
    if twice is not None:
        found["ids"] = of.as_text(twice)
    if "ids" in found:
        warn_of_totals(found["ids"], of.source)
    if by_chance and "ids" in found and not are_ids(found["ids"]):
        del found["ids"]
    if labels is not None:
        more, notes, _ = _joined(labels, found, request, of)
        found |= more
    if "target" in found and request.unlabelled == "drop":
        kept = found["target"].notna()
        if not kept.all():
            notes.append(f"{of.source}: {plural(int((~kept).sum()), 'row')} without a label")
        frame, found = _rows(kept, frame, found)
    numbers = frame.drop(columns=list(levelled))
    refuse_text(numbers, of.source, way_out="the model was fitted on numbers there")
    _compare_signs(of, numbers, request.signs)
    if of.dialect.exact:
        found = {
            role: without(c.str.lstrip(), MISSING) if is_text(c.dtype) else c
            for role, c in found.items()
        }
    y = _labels(of, found.get("target"))
    exact = of.dialect.exact and not of.typed
    frame = known_levels(frame, features, request, of.source, exact)
    objects = [name for name, each in request.levels.items() if each.is_text or each.as_objects]
    if objects:
        cells = frame[objects].astype(object)
        frame = frame.assign(**cells.where(cells.notna(), np.nan))
        target = None if y is None else found["target"].name
        table = Table(frame, y, [*frame], target, of.source, ids=found.get("ids"))
    else:
        table = _table(of.source, features, frame, found, y, request.blanks, request.not_filled)
    groups = group_names(found["groups"], of.source) if "groups" in found else None
    return replace(table, groups=groups, notes=(*of.notes, *notes))


def _compare_signs(of: NamedColumns, numbers: Frame, signs: Sequence[str]) -> None:
    """Refuse columns without the signs that numbers had in training, and warn of other signs."""
    known = {name: sign for name, _, sign in (each.rpartition("=") for each in signs)}
    filled = map(str, numbers.columns[numbers.notna().any().to_numpy()])
    here = {name: of.signs.get(name, "") for name in filled}
    other = [
        f"{name!r} with {known[name]!r}, here with {(sign and repr(sign)) or 'none'}"
        for name, sign in here.items()
        if name in known and sign != known[name]
    ]
    if other:
        raise refused("other_signs", of.source, other=other)
    more = [f"{name!r} with {s!r}" for name, s in here.items() if s and name not in known]
    if more:
        warned("more_signs", of.source, more=more)


def _features(of: NamedColumns, request: TableRequest) -> tuple[dict[int, str], list[Feature]]:
    """The columns that a model uses, by position, and its features."""
    wanted = list(request.feature_names or ())
    counts = Counter(of.called)
    if request.duplicates != "error":
        places = of.distinct(range(len(of.names)), request.duplicates)
    elif repeated := [name for name in wanted if counts[name] > 1]:
        of.refuse_repeated(repeated)
    else:
        places = {j: name for j, name in enumerate(of.called) if counts[name] == 1}
    try:
        features = matching_features(wanted, list(places.values()), of.source)
    except DataError as error:
        raise DataError(f"{str(error)[:-1]}{_way_to_rows(of, wanted)}.") from None
    of_name: dict[str, list[int]] = {}  # several where their mean is to be taken
    for j, name in places.items():
        of_name.setdefault(name, []).append(j)
    columns = dict.fromkeys(feature.column for feature in features)
    return {j: name for name in columns for j in of_name[name]}, features


def _way_to_rows(of: NamedColumns, names: Collection[str]) -> str:
    """What to type where the first column has names of features."""
    if not of.as_text(0).str.strip().isin(names).any():
        return ""
    if of.turned:
        return "; columns are called so as the table is written: leave out transpose=True"
    return f"; {of.called[0]!r} has such names in its rows: turn the table (transpose=True)"
