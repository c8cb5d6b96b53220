"""Features: numbers, and text columns as one feature per level; what tells of ids among them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.data.inputs.preprocessing import SeenLevels
from proxmargin.data.inputs.validation import AS_THEY_ARE
from proxmargin.files.errors import DataError, listed, pandas, plural, refused, warn, warned
from proxmargin.files.tables.cells import (
    DOUBTFUL,
    MISSING,
    MOSTLY,
    alike,
    as_text,
    example_of,
    is_text,
    measured,
    normal_form,
    numbers_among,
    slips,
    stray_words,
    text_columns,
)
from proxmargin.files.tables.contents import FeatureMatrix, Table, TableRequest
from proxmargin.runtime.memory import shortage
from proxmargin.runtime.types import Column, Frame, Values

_ID_NAME = re.compile(
    r"(?i:(^|[\W_])(id|ids|no|nr|number|code|key|name|names|barcode|accession|mrn)"
    r"|^(sample|patient|subject|specimen|gene|probe)s?)$|[a-z](ID|Id|No|Nr)$"
)
_TOTAL = re.compile(
    r"\s*((grand|column)\s+|sub-?)?(totals?|sum|mean|average|gesamt|insgesamt|summe|mittelwert)"
    r"\s*(:|\(.*\))?\s*",
    re.IGNORECASE,
)
_SUM = re.compile("total|sum|mean|average|gesamt|mittelwert")
# numbers that stand for missing cells in surveys and registers, where they are many and apart
_CODES = (*(-int(d * k) for d in "789" for k in (1, 2, 3, 4, 5)), 888, 999, 8888, 9999, 99999)
# and what else does where the other numbers are known
_CODES_APART = (*_CODES, -1, *(int(d * k) for d in "789" for k in (1, 2, 3, 4, 5)))
_CODED = 0.01  # of the rows at least
FAR = "numbers far from all others of their columns"
_FAR = 100  # times as far from others as these are from each other
_FEW_FAR = 3  # cells of a column at most
_PART = 200  # rows from which it is told which columns may have them
_FEW_ROWS = 5
_MOST_LEVELS = 20  # of a column most of whose cells differ
_MANY_GROUPS = 15  # words that may name patients, batches or centres
_SAMPLES_OF_GROUP = 10  # of each such word at most, on average
_SOME_ROWS = 1000  # that tell what all cells are
_MANY_ROWS = 10  # from which cells that all differ are no chance
_LONG_NUMBER = 10_000  # from which whole numbers that all differ look like ids
# Below this share of entries that can be non-zero, a one-hot matrix is stored sparse.
_DENSE_FROM = 0.1
_STRAY_WORDS = 5  # among numbers, which are named
_STRIP = 64  # columns that are copied at a time: those of a wide table lie apart in memory
# Missing cells are searched for in every column, but a message names only the first few.
_CELLS_NAMED = 5
# what to do about cells that cannot be used
_CORRECT = "remove these rows or fill in the values"
_FILL = (
    f"{_CORRECT}: --impute median (or mean, constant) on the command line, "
    "read_data(..., blanks=True) and compare(..., preprocess=SimpleImputer()) in Python"
)
NOT_FILLED = (
    f"{_CORRECT}, or fit the model again, to fill them in as in its training data: proxmargin "
    "{} -o MODEL, in Python a pipeline of SimpleImputer() and the model"
)


class Feature(NamedTuple):
    """One feature: a numeric column, or the indicator that a column equals a level."""

    column: str
    level: str | None = None

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column}={self.level}"


def joined_levels(frame: Frame) -> Frame:
    """The frame with the most frequent spelling for levels of one `normal_form`."""
    changed = {}
    for column in text_columns(frame):
        counts = column.value_counts(sort=True)
        same = {word: group[0] for group in alike(counts.index).values() for word in group}
        changed[column.name] = column.map(same).astype(column.dtype)
    return frame.assign(**changed)


def known_levels(
    frame: Frame, features: Sequence[Feature], request: TableRequest, source: str, exact: bool
) -> Any:
    """The frame of a model's columns, of whose levels unknown ones are refused or as asked."""
    own = {name: SeenLevels([*at], True, True, True) for name, at in _positions(features).items()}
    changed, unseen = {}, []
    for name, seen in (own | dict(request.levels)).items():
        column, known = as_text(frame[name]) if seen.is_text else frame[name], seen.known
        if exact and seen.is_text:
            column = column.fillna("") if "" in known else column
            column = column.where(column.isin(known), column.str.lstrip())
            column = column.mask(column.isin(set(MISSING).difference(known)))
        if request.normalize_levels and seen.is_text:
            by_form = {form: group[0] for form, group in alike(known).items() if len(group) == 1}
            spelt = {w: by_form.get(normal_form(w), w) for w in column.dropna().unique()}
            same = {word: word if word in known else other for word, other in spelt.items()}
            column = column.map(same).astype(column.dtype)
        strange = column.notna() & ~column.isin(known) & bool(known)  # no encoder, no levels
        if strange.any() and request.unseen == "error":
            unseen.append(_unseen(column[strange], known))
        elif strange.any() and not (seen.ignored if request.unseen == "zero" else seen.has_missing):
            levels = _unseen(column[strange], known)
            raise refused("unseen_refused", source, levels=levels, how=request.unseen, name=name)
        changed[name] = column.mask(strange) if request.unseen == "missing" else column
        if not seen.has_missing:
            _refuse_cells(changed[name].isna().to_frame(), source, "missing", request.not_filled)
    if unseen:
        filled = " or for missing cells (unseen='missing')" if request.blanks else ""
        raise refused("unseen_levels", source, levels="; ".join(unseen), filled=filled)
    return frame.assign(**changed)


def _unseen(column: Column, known: Sequence[object]) -> str:
    forms = {normal_form(str(level)): level for level in known}
    words = []
    for word, cells in column.groupby(column, sort=False):
        rows = f"row {listed(cells.index + 1, quote=False)}"
        like = forms.get(normal_form(str(word)))
        but = f", {like!r} but for the spelling (normalize_levels=True)" if like else ""
        words.append(f"{word!r} ({rows}{but})")
    return f"in {column.name!r} {listed(words, quote=False)}, of {listed(known)}"


def is_id_name(name: str) -> bool:
    """Whether a column is called as those are that name samples."""
    return _ID_NAME.search(name.strip()) is not None


def are_ids(column: Any) -> bool:
    """Whether a column of text names the rows: all cells differ, and are words."""
    if not is_text(column.dtype) or not column.is_unique or column.hasnans or len(column) < 2:
        return False
    if len(column) < _MANY_ROWS and not is_id_name(column.name):
        return False
    some = column.iloc[:: max(len(column) // _SOME_ROWS, 1)]
    words = numbers_among(some)[1].mean() < MOSTLY
    return bool(words and (is_id_name(column.name) or not measured(some)))


def _are_id_numbers(column: Column, name: str) -> bool:
    if column.dtype.kind not in "iuf" or len(column) < _MANY_ROWS or not column.is_unique:
        return False
    values = column.to_numpy()
    whole = bool(np.all(values == np.trunc(values)))
    # what counts the rows is told with all that gives a class away
    counts = column.is_monotonic_increasing
    return whole and not counts and (is_id_name(name) or bool(values.min() >= _LONG_NUMBER))


def digests_of(ids: Any) -> Values | None:
    """Numbers by which names of samples can be found again, but not read; None for numbers of rows,
    which other files have, too."""
    if ids is None:
        return None
    words = ids.dropna().str.strip()
    numbers = pandas().to_numeric(words.astype(object), errors="coerce").sort_values()
    counts = numbers.diff().iloc[1:].eq(1.0).all() and numbers.iloc[:1].isin([0, 1]).all()
    if counts or words.empty:
        return None
    found: Values = pandas().util.hash_array(words.to_numpy(dtype=object), categorize=False)
    return found


def totals(names: Column) -> Column:
    """The cells of a column that are called as rows are that sum up others."""
    words = as_text(names).dropna().unique().tolist()
    text = " ".join(words).casefold()  # told faster of all than of each
    found = [w for w in words if _TOTAL.fullmatch(w)] if _SUM.search(text) else []
    return names[as_text(names).isin(found)] if found else names[:0]


def told_of_totals(found: Column, source: str) -> str:
    """A sentence on rows that are called so."""
    rows = [f"row {r} ({name!r})" for r, name in zip(found.index + 1, found, strict=True)]
    return (
        f"{source}: called as totals are, and no samples then: {listed(rows, quote=False)}, "
        "counting data rows from 1"
    )


def warn_of_totals(ids: Column, source: str) -> None:
    """Warn, once, of rows that are called as those are that sum up others."""
    if len(found := totals(ids)):
        warn(f"{told_of_totals(found, source)}; remove them from the file.")


def warn_of_id_numbers(frame: Frame, source: str) -> None:
    """Warn, once, of columns of whole numbers that look like numbers of patients or samples."""
    names = dict.fromkeys([*frame.columns[:1], *filter(is_id_name, frame.columns)])
    found = [name for name in names if _are_id_numbers(frame[name], name)]
    if found:
        options = " ".join([f"(ids={found[0]!r})", *(f"(ignore={name!r})" for name in found[1:])])
        warned("id_numbers", source, found=found, options=options)


def warn_of_levels(frame: Frame, source: str) -> None:
    """Warn, once, of levels that are hardly meant, and of numbers among which are words."""
    doubts, stray = [], []
    for column in text_columns(frame):
        words = slips(sorted(column.dropna().unique()), column.name)
        if words:
            doubts.append(f"of {column.name!r}, {listed(words, quote=False)}")
        elif kind := measured(column):
            doubts.append(f"{column.name!r} holds {kind} (ignore={column.name!r})")
        if stray_words(column):
            stray.append(column)
    if doubts:
        warned("doubtful_levels", source, doubts=doubts)
    if stray:
        names = [column.name for column in stray]
        warned(
            "strange_cells", source, n=len(stray), cells=map(example_of, stray), words=_one(names)
        )


def extremes(X: Any) -> Values:
    """The least and the largest entry of each column, NaN where it has none: shape (2, n)."""
    if hasattr(X, "tocsr"):
        return np.array([X.nanmin(axis=0).toarray().ravel(), X.nanmax(axis=0).toarray().ravel()])
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any number
        return np.array([np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)])


def suspected_codes(
    X: Values, names: Sequence[str], ends: Values, known: Values | None = None
) -> dict[str, tuple[str, int]]:
    """Columns with a code of missing cells far from other numbers, the code, and in how many rows;
    ``ends``: their extremes; ``known``: those of training data, from which also others are told."""
    found: dict[str, tuple[str, int]] = {}
    if known is None and len(X) < _FEW_ROWS:
        return found
    usual = np.isin(ends, _CODES if known is None else _CODES_APART)
    at = np.flatnonzero(usual.any(axis=0)) if known is None else np.arange(len(names))
    others = known
    if others is None:
        others = extremes(np.where(np.isin(X[:, at], _CODES), np.nan, X[:, at]))
    with np.errstate(invalid="ignore"):
        # halved, as the difference of the largest numbers is no number
        (low, high), (least, most) = others / 2, ends[:, at] / 2
        below = ((least < 0) & (low >= 0)) | (least < low - (high - low))
        far = np.array([below, most > high + (high - low)])
        far &= high - low > (0.5 if known is None else 0.0)
    for k, end in np.argwhere(far.T).tolist():
        j = at[k]
        code = ends[end, j]
        count = int(np.count_nonzero(X[:, j] == code))
        many = count >= max(2, _CODED * len(X))
        if usual[end, j] and many if known is None else usual[end, j] or (many and code % 1 == 0):
            found[names[j]] = f"{code:.15g}", count
    return found


class FarCell(NamedTuple):
    """A number far from the others of its column, which reach from ``low`` to ``high``."""

    column: str
    value: float
    row: int
    low: float
    high: float

    def told(self) -> str:
        return f"{self.value:.15g} in row {self.row + 1} (others {self.low:.6g} to {self.high:.6g})"


def far_cells(
    X: Values, names: Sequence[str], ends: Values, rows: Any = None, known: Values | None = None
) -> list[FarCell]:
    """The first cells beyond all but a few others, or ``known`` extremes, by far more than these
    are apart: one column each. ``rows``: those of the file."""
    few = min(_FEW_FAR, len(X) // 10) or 1
    if len(X) < _FEW_ROWS or not X.size:
        return []
    usual = known
    if usual is None:
        some, kth = X[:: max(len(X) // _PART, 1)], (few, -1 - few)
        filled = (np.where(np.isnan(some), end, some) for end in ends[::-1])
        usual = np.array([np.partition(x, k, axis=0)[k] for x, k in zip(filled, kth, strict=True)])
    with np.errstate(invalid="ignore", over="ignore"):
        away = np.maximum(usual[0] - ends[0], ends[1] - usual[1])
        doubtful = np.flatnonzero((usual[1] > usual[0]) & (away > _FAR * (usual[1] - usual[0])))
    found = []
    for j in doubtful:
        values = X[:, j]
        others = np.sort(values[np.isfinite(values)])
        others = others[few:-few] if known is None else known[:, j]
        low, high = float(others[0]), float(others[-1])
        beyond = np.maximum(low - values, values - high) > _FAR * (high - low)
        alike = np.mean((low <= values) & (values <= high)) > MOSTLY  # or units differ
        levels = known is None and len(np.unique(others)) < _FEW_ROWS
        if beyond.any() and alike and high > low and not levels:
            at = int(np.argmax(beyond))
            place = at if rows is None else int(rows[at])
            found.append(FarCell(names[int(j)], float(values[at]), place, low, high))
    return found


def _warn_of_numbers(
    X: Values,
    names: Sequence[str],
    source: str,
    ends: Values,
    rows: Values | None,
    known: Values | None,
    way_out: str,
) -> None:
    """Warn, once, of numbers that look like codes of missing cells (see `suspected_codes`), and of
    those far from others."""
    found = suspected_codes(X, names, ends, known)
    far = [each for each in far_cells(X, names, ends, rows, known) if each.column not in found]
    if far:
        codes = [f"{each.column}={each.value!r}" for each in far]
        cells = [f"{each.column!r} holds {each.told()}" for each in far]
        warn(
            f"{source}: {FAR}: {listed(cells, quote=False)}, counting data rows from 1; correct "
            f"them if they are errors, or read them as missing (missing={_one(codes)!r})."
        )
    if not found:
        return
    words = [f"{name}={code}" for name, (code, _) in found.items()]
    cells = [f"{name!r} holds {code} in {plural(n, 'row')}" for name, (code, n) in found.items()]
    if known is not None:
        of = dict(zip(names, known.T.tolist(), strict=True))
        ranges = ("{:.6g} to {:.6g}".format(*of[name]) for name in found)
        cells = [f"{c} ({r} in training)" for c, r in zip(cells, ranges, strict=True)]
    advice = way_out or f"read them so (missing={_one(words)!r})"
    warned("suspected_codes", source, cells=cells, advice=advice)


def features_of(frame: Frame, source: str) -> list[Feature]:
    """All features of a training table: text columns give one per level, in sorted order."""
    found = []
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        levels = sorted(frame[name].dropna().unique()) if is_text(dtype) else [None]
        found += [Feature(name, level) for level in levels]
    names = pandas().Index([feature.name for feature in found])
    if not names.is_unique:
        clashes = names[names.duplicated()].unique()
        raise refused("same_feature", source, clashes=clashes)
    return found


def matching_features(wanted: Iterable[str], names: Sequence[str], source: str) -> list[Feature]:
    """The features called ``wanted``, by column or ``column=level``; DataError names the others."""
    wanted = list(wanted)
    present, whole = set(names), set(wanted)
    features, missing = [], []
    for name in wanted:
        # The level may itself contain '=': any split at one whose left side is a column will do,
        # except a column that the model uses as numbers.
        ends = [match.start() for match in re.finditer("=", name)]
        splits = [Feature(name[:at], name[at + 1 :]) for at in reversed(ends)]
        fits = [each for each in splits if each.column in present and each.column not in whole]
        if name in present or fits:
            features.append(Feature(name) if name in present else fits[0])
        else:
            missing.append(name.partition("=")[0] or name)
    if missing:
        missing = list(dict.fromkeys(missing))
        raise refused("columns_of_model_here", source, n=len(missing), lack=missing, names=names)
    return features


def feature_matrix(features: Sequence[Feature], frame: Frame, source: str) -> FeatureMatrix:
    """The matrix of the features, of float32 where all numbers are at most that wide."""
    numeric = [j for j, feature in enumerate(features) if feature.level is None]
    numbers = frame
    if len(numeric) < frame.shape[1] or len(numeric) < len(features):
        numbers = frame[[features[j].column for j in numeric]]
    kinds = set(numbers.dtypes)
    narrow = {np.dtype(np.float16), np.dtype(np.float32)}
    dtype = np.float32 if kinds and kinds <= narrow else np.float64
    shape = (len(frame), len(features))
    if len({feature.column for feature in features}) >= _DENSE_FROM * len(features):
        short = shortage(shape[0] * shape[1] * np.dtype(dtype).itemsize)
        if short:
            raise DataError(
                f"{source}: {shape[0]} rows of {shape[1]} features need {short}; use fewer."
            )
        X = np.empty(shape, dtype=dtype)  # in huge pages, which NumPy does not ask for zeros
        for start in range(0, len(numeric), _STRIP):  # columns come one by one from the parser
            where = numeric[start : start + _STRIP]
            together = where[-1] - where[0] < len(where)
            strip = numbers.iloc[:, start : start + _STRIP].to_numpy(dtype=dtype)
            X[:, slice(where[0], where[-1] + 1) if together else where] = strip
        X[:, [j for j, feature in enumerate(features) if feature.level is not None]] = 0.0
        for rows, columns in _indicators(features, frame):
            X[rows, columns] = 1.0
        return X
    values: Values = numbers.to_numpy(dtype=dtype)
    filled = np.nonzero(values)
    places = [(filled[0], np.array(numeric, dtype=np.intp)[filled[1]])]
    places += _indicators(features, frame)
    rows, columns = (np.concatenate(each) for each in zip(*places, strict=True))
    entries: Values = np.ones(rows.size, dtype=dtype)
    entries[: filled[0].size] = values[filled]
    return sp.coo_array((entries, (rows, columns)), shape=shape).tocsr()


def _positions(features: Iterable[Feature]) -> dict[str, dict[str, int]]:
    """For each column with levels the positions of its features."""
    found: dict[str, dict[str, int]] = {}
    for j, feature in enumerate(features):
        if feature.level is not None:
            found.setdefault(feature.column, {})[feature.level] = j
    return found


def _indicators(
    features: Sequence[Feature], frame: Frame
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each column of text the rows with a level that is a feature, and its position."""
    for column, levels in _positions(features).items():
        places = pandas().Index(list(levels)).get_indexer(as_text(frame[column]).astype(object))
        rows = np.flatnonzero(places >= 0)
        yield rows, np.array(list(levels.values()), dtype=np.intp)[places[rows]]


def refuse_text(frame: Frame, source: str, *, way_out: str) -> None:
    """Refuse columns of text, by their first cell that is no number."""
    text = text_columns(frame)
    if text:
        strays = {column.name: stray_words(column) for column in text}
        sums = [c.name for c in text if c.is_unique and strays[c.name]]
        sums = [name for name in sums if all(map(_TOTAL.fullmatch, strays[name]))]
        if sums and "ignore" in way_out:  # numbers of samples, and rows that sum up others
            way_out = f"if {sums[0]!r} names the samples, say so (ids={sums[0]!r}); {way_out}"
        words = [w for n, stray in strays.items() if n not in sums for w in stray]
        words = [word for word in words if word not in DOUBTFUL]
        words = list(dict.fromkeys(words))
        levels = [column for column in text if not strays[column.name]]
        none = [column.name for column in levels if measured(column) or _is_free(column)]
        if none and "ignore" in way_out:
            way_out = f"leave out those without levels (ignore={_one(none)!r}); {way_out}"
        groups = [column.name for column in levels if _may_name_groups(column)]
        if groups and "ignore" in way_out:  # of which levels would tell a class
            several = f"if {groups[0]!r} names patients, batches or centres, say so "
            way_out = f"{several}(groups={groups[0]!r}); {way_out}"
        if words and "ignore" in way_out:  # levels would be as many as numbers
            names = next(name for name, stray in strays.items() if stray)
            missing = f", read {listed(words)} as missing (missing={_one(words)!r})"
            missing = missing if len(words) <= _STRAY_WORDS else ""
            correct = f"correct these cells{missing}, or leave the column out (ignore={names!r})"
            way_out = f"{correct}; {way_out}" if levels else correct
        raise refused(
            "not_numeric", source, n=len(text), cells=map(example_of, text), way_out=way_out
        )


def _one(words: list[str]) -> str | list[str]:
    return words[0] if len(words) == 1 else words


def _may_name_groups(column: Column) -> bool:
    """Whether a column of text has many words, each of few samples."""
    words = column.nunique()
    few = words * _SAMPLES_OF_GROUP >= len(column) >= 2 * words
    return bool(words >= _MANY_GROUPS and few and not numbers_among(column)[1].any())


def _is_free(column: Column) -> bool:
    """Whether a column of text has too many words to be levels."""
    words = column.nunique()
    many = words > _MOST_LEVELS and words > MOSTLY * len(column)
    return bool(many and not numbers_among(column)[1].any())


def refuse_unusable_cells(
    frame: Any, source: str, blanks: bool = False, way_out: str = _FILL
) -> None:
    """Refuse infinite cells, and missing ones unless ``blanks`` are to be kept."""
    if not blanks:
        _refuse_cells(frame.isna(), source, "missing", way_out)
    numbers = frame.select_dtypes("floating")
    infinite = np.isinf(numbers)
    ends = [numbers[name][infinite[name]].unique() for name in numbers.columns[infinite.any()]]
    codes = sorted({f"{end:g}" for each in ends for end in each})
    if len(ends) == 1:
        codes = [f"{numbers.columns[infinite.any()][0]}={code}" for code in codes]
    advice = f"{_CORRECT}, or read them as missing (missing={_one(codes)!r})"
    _refuse_cells(infinite, source, "infinite", advice)


def _refuse_cells(mask: Any, source: str, kind: str, way_out: str) -> None:
    counts = mask.to_numpy().sum(axis=0)
    total = int(counts.sum())
    if total:
        cells = [
            f"row {mask.index[row] + 1}, column {mask.columns[j]!r}"
            for j in np.flatnonzero(counts)[:_CELLS_NAMED]
            for row in np.flatnonzero(mask.iloc[:, j])[:_CELLS_NAMED]
        ][:_CELLS_NAMED]
        more = f" and {total - len(cells)} more" if total > len(cells) else ""
        raise refused(
            "unusable_cells",
            source,
            count=plural(total, kind + " value"),
            cells="; ".join(cells),
            more=more,
            way_out=way_out,
        )


def checked(
    table: Table, known: Values | None = None, *, training: bool = True, not_filled: str = ""
) -> Table:
    """The table, with warnings of its numbers; ``not_filled``: what to do about missing ones, which
    are not to be filled in. DataError: one is beyond what models take."""
    X: Any = table.X
    names = table.feature_names
    if hasattr(X, "dtypes"):  # with the text that a model takes
        X = X.select_dtypes("number")
        names, X = [*X], X.to_numpy(dtype=np.float64)
    ends = extremes(X).astype(np.float64)
    low, high = ends
    wide = np.flatnonzero((high > AS_THEY_ARE.most) | (low < -AS_THEY_ARE.most))
    if wide.size:
        columns = X[:, wide].toarray() if sp.issparse(table.X) else X[:, wide]
        row, at = np.argwhere(np.abs(columns) > AS_THEY_ARE.most)[0].tolist()
        value, column = float(columns[row, at]), int(wide[at])
        name = str(column + 1) if names is None else names[column]
        place = row if table.rows is None else int(table.rows[row])
        code = "" if names is None else f" (missing='{name}={value!r}')"
        advice = not_filled or f"read the number as missing where it stands for that{code}"
        raise refused(
            "beyond_range",
            table.source,
            value=value,
            row=place + 1,
            name=name,
            most=AS_THEY_ARE.most,
            advice=advice,
        )
    if training and len(low) and X.shape[0] > 1 and not (low != high)[~np.isnan(low)].any():
        warned("one_value", table.source, count=len(low))
    if names is not None and not sp.issparse(X):
        known = known if known is not None and known.shape == ends.shape else None
        _warn_of_numbers(X, names, table.source, ends, table.rows, known, not_filled)
    return table
