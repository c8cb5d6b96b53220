"""Features: numbers, and text columns as one feature per level; what tells of ids among them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from proxmargin.files.errors import DataError, listed, pandas, plural, warn
from proxmargin.files.tables.contents import FeatureMatrix, Wanted, is_number, is_text
from proxmargin.runtime.memory import shortage

# what people write where they do not know; CSV files have some of these as missing values already
_UNKNOWN = frozenset(
    {"", "?", "-", ".", "*", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "missing"}
)
_MONTH = r"(?i:(jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[^\W\d_]*)"
_DATE = re.compile(
    r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?"
    rf"|([\w ]+ )?((\d{{1,2}}[-. ]{{1,2}})?{_MONTH}\.?[- ]|{_MONTH}\.? \d{{1,2}},? )(19|20)?\d\d"
)
# times, and numbers with a unit or the sign of a limit: 12.5 mg, 12 %, <0.5
_MEASURED = re.compile(
    r"[<>≤≥~=$€£¥₹\s]*[+-]?(\d+[.,]\d+|\d+(?=\s|%|$))\s*%?([^\W\d_]\S*)?\s*|\d{1,2}:\d\d(:\d\d)?"
)
_ID_NAME = re.compile(
    r"(?i:(^|[\W_])(id|ids|no|nr|number|code|key|name|names|barcode|accession|mrn)"
    r"|^(sample|patient|subject|specimen|gene|probe)s?)$|[a-z](ID|Id|No|Nr)$"
)
# numbers that stand for missing cells in surveys and registers, where they are many and apart
_CODES = (*(-int(d * k) for d in "789" for k in (1, 2, 3, 4, 5)), 888, 999, 8888, 9999, 99999)
_CODED = 0.01  # of the rows at least
_FEW_ROWS = 5
_MOST_LEVELS = 20  # of a column most of whose cells differ
_MANY_ROWS = 10  # from which cells that all differ are no chance
_LONG_NUMBER = 10_000  # from which whole numbers that all differ look like ids


def normal_form(level: str) -> str:
    """What levels have in common that differ only in blanks, case or the format of a number."""
    text = " ".join(level.split()).casefold()
    return repr(float(text)) if is_number(text) else text


def normal_forms(first: Any, second: Any) -> tuple[Any, Any]:
    """Two columns of names in their normal forms, if these tell apart all that differ."""
    forms = [column.map(normal_form, na_action="ignore") for column in (first, second)]
    pairs = zip(forms, (first, second), strict=True)
    if all(form.nunique() == column.nunique() for form, column in pairs):
        return forms[0], forms[1]
    return first, second


def slips(words: Iterable[str]) -> list[str]:
    """Which of distinct words are hardly meant to be different, and which to be words."""
    words = list(words)
    return [
        f"{' and '.join(map(repr, same))} differ only in blanks, case or number format"
        for same in _alike(words).values()
        if len(same) > 1
    ] + [
        f"{word!r} looks like a missing value"
        for word in words
        if word.strip().casefold() in _UNKNOWN
    ]


def _alike(words: Iterable[str]) -> dict[str, list[str]]:
    alike: dict[str, list[str]] = {}
    for word in words:
        alike.setdefault(normal_form(word), []).append(word)
    return alike


def joined_levels(frame: Any) -> Any:
    """The frame with one spelling, the most frequent one, for levels that differ only in blanks,
    case or number format."""
    changed = {}
    for column in text_columns(frame):
        counts = column.value_counts(sort=True)
        same = {word: group[0] for group in _alike(counts.index).values() for word in group}
        changed[column.name] = column.map(same).astype(column.dtype)
    return frame.assign(**changed) if changed else frame


def known_levels(frame: Any, features: Sequence[Feature], wanted: Wanted, source: str) -> Any:
    """The frame of a model's columns, whose levels are those that the model has seen. Others are
    refused by column, level and row, or become missing, as ``wanted`` has it; where they are to be
    zero in all features, they stay."""
    levels: dict[str, list[str]] = {}
    for feature in features:
        if feature.level is not None:
            levels.setdefault(feature.column, []).append(feature.level)
    changed, unseen = {}, []
    for name, known in levels.items():
        column = as_text(frame[name])
        if wanted.normalize_levels:
            by_form = {form: group[0] for form, group in _alike(known).items() if len(group) == 1}
            spelt = {w: by_form.get(normal_form(w), w) for w in column.dropna().unique()}
            same = {word: word if word in known else other for word, other in spelt.items()}
            column = column.map(same).astype(column.dtype)
        strange = column.notna() & ~column.isin(known)
        if strange.any() and wanted.unseen == "error":
            unseen.append(_unseen(column[strange], known))
        elif wanted.unseen == "missing":
            column = column.mask(strange)
        changed[name] = column
    if unseen:
        raise DataError(
            f"{source}: levels that the model has not seen: {'; '.join(unseen)} (counting data "
            "rows from 1). Correct them, or take them for zero in all features (unseen='zero') or "
            "for missing cells (unseen='missing')."
        )
    return frame.assign(**changed) if changed else frame


def _unseen(column: Any, known: list[str]) -> str:
    forms = {normal_form(level): level for level in known}
    words = []
    for word, cells in column.groupby(column, sort=False):
        rows = f"row {listed(cells.index + 1, quote=False)}"
        like = forms.get(normal_form(word))
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
    numbers = np.mean([is_number(cell, ",") for cell in column])
    return bool(numbers < _MOSTLY and not _measured(column))


def _is_free(column: Any) -> bool:
    """Whether a column of text has too many words to be levels."""
    words, numbers = column.nunique(), _numbers_among(column)[1]
    return bool(words > _MOST_LEVELS and words > _MOSTLY * len(column) and not numbers.any())


def _measured(column: Any) -> str:
    """What most cells of a column of text are that are no levels; empty if they are words."""
    cells = column.dropna().str.strip()
    kinds = {"dates": _DATE, "times or numbers with a unit": _MEASURED}
    words = cells[~cells.map(is_number).astype(bool)]
    shares = {k: words.str.fullmatch(form).astype(float).mean() for k, form in kinds.items()}
    return next((kind for kind, share in shares.items() if share > _MOSTLY), "")


def warn_of_id_numbers(frame: Any, source: str) -> None:
    """Warn, once, of columns of whole numbers that look like numbers of patients or samples."""
    first = frame.columns[:1].tolist()
    named = [name for name in frame.columns if is_id_name(name)]
    found = [name for name in dict.fromkeys([*first, *named]) if _are_id_numbers(frame[name], name)]
    if found:
        warn(
            f"{source}: a different whole number in each row: {listed(found)}; if that is a number "
            "of the sample, it is no feature: "
            + " ".join(
                f"(ids={name!r})" if name == found[0] else f"(ignore={name!r})" for name in found
            )
            + "."
        )


def _are_id_numbers(column: Any, name: str) -> bool:
    if column.dtype.kind not in "iuf" or len(column) < _MANY_ROWS or not column.is_unique:
        return False
    values = column.to_numpy()
    whole = bool(np.all(values == np.trunc(values)))
    # what counts the rows is told with all that gives a class away
    return (
        whole
        and not column.is_monotonic_increasing
        and (is_id_name(name) or bool(values.min() >= _LONG_NUMBER))
    )


def warn_of_levels(frame: Any, source: str) -> None:
    """Warn, once, of levels that are hardly meant: spelt in two ways, missing, dates."""
    doubts = []
    for column in text_columns(frame):
        words = slips(sorted(column.dropna().unique()))
        if words:
            doubts.append(f"of {column.name!r}, {listed(words, quote=False)}")
        elif kind := _measured(column):
            doubts.append(f"{column.name!r} holds {kind}")
    if doubts:
        warn(
            f"{source}: levels that are hardly meant: {listed(doubts, quote=False)}; each becomes "
            "a feature of its own. Spellings are joined by normalize_levels=True, cells declared "
            "missing by missing='?', and columns left out by ignore=NAME."
        )
    _warn_of_stray_text(frame, source)


def suspected_codes(X: NDArray[Any], names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Columns in which a usual code of missing cells is apart from all other numbers, the code, and
    in how many rows."""
    found: dict[str, tuple[int, int]] = {}
    if len(X) < _FEW_ROWS:
        return found
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # columns without any number
        ends = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    for j in np.flatnonzero(np.isin(ends[0], _CODES) | np.isin(ends[1], _CODES)).tolist():
        column = X[:, j]
        others = column[~np.isin(column, _CODES) & ~np.isnan(column)]
        if not others.size:
            continue
        low, high = others.min(), others.max()
        for code in (ends[0][j], ends[1][j]):
            count = int(np.count_nonzero(column == code))
            below = code < 0 <= low or code < low - (high - low)
            apart = below or code > high + (high - low)
            if code in _CODES and count >= max(2, _CODED * len(X)) and apart and high - low > 1:
                found[names[j]] = int(code), count
    return found


def warn_of_codes(X: Any, names: Sequence[str], source: str) -> None:
    """Warn, once, of numbers that look like codes of missing cells."""
    found = {} if sp.issparse(X) else suspected_codes(X, names)
    if found:
        words = [f"{name}={code}" for name, (code, _) in found.items()]
        cells = (f"{name!r} holds {code} in {n} rows" for name, (code, n) in found.items())
        warn(
            f"{source}: numbers that look like codes of missing cells: {listed(cells, quote=False)}"
            f"; if they are, read them so (missing={(words[0] if len(words) == 1 else words)!r})."
        )


# Below this share of entries that can be non-zero, a one-hot matrix is stored sparse.
_DENSE_FROM = 0.1
# columns that are copied at a time: those of a wide table lie apart in memory
_STRIP = 64
# Missing cells are searched for in every column, but a message names only the first few.
_CELLS_NAMED = 5
# Share of numbers among its cells above which a column of text was probably meant to be numbers.
_MOSTLY = 0.5
# What to do about cells that cannot be used.
_CORRECT = "remove these rows or fill in the values"
_FILL = (
    f"{_CORRECT}: --impute median (or mean, constant) on the command line, "
    "read_data(..., blanks=True) and compare(..., preprocess=SimpleImputer()) in Python"
)
NOT_FILLED = (
    f"{_CORRECT}, or fit the model to fill them in as in its training data: proxmargin fit DATA "
    "--impute median, in Python a pipeline of SimpleImputer() and the model"
)


@dataclass(frozen=True)
class Feature:
    """One feature: a numeric column, or the indicator that a column equals a level."""

    column: str
    level: str | None = None

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column}={self.level}"


def features_of(frame: Any) -> list[Feature]:
    """All features of a training table: text columns give one per level, in sorted order."""
    found = []
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        levels = sorted(frame[name].dropna().unique()) if is_text(dtype) else [None]
        found += [Feature(name, level) for level in levels]
    return found


def feature_matrix(features: Sequence[Feature], frame: Any, source: str) -> FeatureMatrix:
    """The matrix of the features; a level without a feature gives zeros. Float32 where every
    numeric column is at most that wide, else float64. DataError: too little memory."""
    numeric = [j for j, feature in enumerate(features) if feature.level is None]
    numbers = frame
    if len(numeric) < frame.shape[1] or len(numeric) < len(features):
        numbers = frame[[features[j].column for j in numeric]]
    kinds = set(numbers.dtypes)
    narrow = {np.dtype(np.float16), np.dtype(np.float32)}
    dtype = np.float32 if kinds and kinds <= narrow else np.float64
    shape = (len(frame), len(features))
    dense_share = len({f.column for f in features}) / max(len(features), 1)
    if dense_share >= _DENSE_FROM:
        short = shortage(shape[0] * shape[1] * np.dtype(dtype).itemsize)
        if short:
            raise DataError(
                f"{source}: {shape[0]} rows of {shape[1]} features need {short}; use fewer."
            )
        X = np.zeros(shape, dtype=dtype)
        for start in range(0, len(numeric), _STRIP):  # columns come one by one from the parser
            strip = numbers.iloc[:, start : start + _STRIP].to_numpy(dtype=dtype)
            where = numeric[start : start + _STRIP]
            together = where[-1] - where[0] < len(where)
            X[:, slice(where[0], where[-1] + 1) if together else where] = strip
        for rows, columns in _indicators(features, frame):
            X[rows, columns] = 1.0
        return X
    values: NDArray[Any] = numbers.to_numpy(dtype=dtype)
    filled = np.nonzero(values)
    places = [(filled[0], np.array(numeric, dtype=np.intp)[filled[1]])]
    places += _indicators(features, frame)
    entries: NDArray[Any] = np.ones(sum(rows.size for rows, _ in places), dtype=dtype)
    entries[: filled[0].size] = values[filled]
    rows, columns = (np.concatenate(each) for each in zip(*places, strict=True))
    return sp.coo_array((entries, (rows, columns)), shape=shape).tocsr()


def _indicators(
    features: Sequence[Feature], frame: Any
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each column of text the rows with a level that is a feature, and its position."""
    positions: dict[str, dict[str, int]] = {}
    for j, feature in enumerate(features):
        if feature.level is not None:
            positions.setdefault(feature.column, {})[feature.level] = j
    for column, levels in positions.items():
        found = as_text(frame[column]).astype(object).map(levels).fillna(-1).to_numpy(dtype=np.intp)
        rows = np.flatnonzero((found >= 0) & frame[column].notna().to_numpy())
        yield rows, found[rows]


def refuse_text(frame: Any, source: str, *, way_out: str) -> None:
    text = text_columns(frame)
    if text:
        none = [column.name for column in text if _measured(column) or _is_free(column)]
        if none and "ignore" in way_out:
            names = none[0] if len(none) == 1 else none
            way_out = f"leave out those without levels (ignore={names!r}); {way_out}"
        stray = dict.fromkeys(word for column in text for word in _stray_words(column))
        missing = f", or read as missing (missing={next(iter(stray), '')!r})"
        raise DataError(
            f"{source}: {plural(len(text), 'column')} not numeric: "
            f"{listed(map(example_of, text), quote=False)}; {way_out}"
            f"{missing if len(stray) == 1 else ''}."
        )


def _stray_words(column: Any) -> list[str]:
    """The words of a column most of whose cells are numbers."""
    present, numbers = _numbers_among(column)
    words = column.iloc[present[~numbers]].unique().tolist()
    return words if numbers.mean() > _MOSTLY else []


def _warn_of_stray_text(frame: Any, source: str) -> None:
    """Warn, once, of text columns most of whose cells are numbers: they become levels, too."""
    text = text_columns(frame)
    shares = {column.name: float(_numbers_among(column)[1].mean()) for column in text}
    stray = [column for column in text if _MOSTLY < shares[column.name] < 1.0]
    if stray:
        warn(
            f"{source}: {plural(len(stray), 'column')} of numbers with cells that are none: "
            f"{listed(map(example_of, stray), quote=False)}; each value becomes a feature of its "
            "own: correct these cells, or ignore the columns."
        )


def as_text(column: Any) -> Any:
    """The column as text, of which numbers are written as Python does."""
    if is_text(column.dtype):
        return column
    return column.map(str).where(column.notna()).astype("string")


def text_columns(frame: Any) -> list[Any]:
    """The columns of text that hold anything."""
    names = (n for n, dtype in zip(frame.columns, frame.dtypes, strict=True) if is_text(dtype))
    return [frame[name] for name in names if frame[name].notna().any()]


def _numbers_among(column: Any) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The rows of cells that are not missing, and whether each is a number."""
    present = np.flatnonzero(column.notna())
    cells = column.iloc[present].tolist()  # with a decimal point or comma: it is not known
    return present, np.array([is_number(cell, ",") for cell in cells], dtype=bool)


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


def example_of(column: Any) -> str:
    """The first cell that is no number; where there are others, how many cells are numbers."""
    present, numbers = _numbers_among(column)
    row = int(present[numbers.argmin()])
    kind = f"; {kind}" if (kind := _measured(column)) else ""
    mixed = numbers.any() and not numbers.all()
    others = f"; {numbers.sum()} of {present.size} cells are numbers" if mixed else ""
    cell = column.iloc[row][:40]
    return f"{column.name!r} (row {column.index[row] + 1} holds {cell!r}{others}{kind})"


def refuse_unusable_cells(
    frame: Any, source: str, blanks: bool = False, way_out: str = _FILL
) -> None:
    """Refuse infinite cells, and missing ones unless ``blanks`` are to be kept. By data row (from
    1) and column name."""
    if not blanks:
        _refuse_cells(frame.isna(), source, "missing", way_out)
    floats = frame
    if any(dtype.kind != "f" for dtype in frame.dtypes):
        floats = frame.select_dtypes("floating")
    strips = (floats.iloc[:, at : at + _STRIP] for at in range(0, floats.shape[1], _STRIP))
    if any(np.isinf(strip.to_numpy()).any() for strip in strips):
        infinite = pandas().DataFrame(np.isinf(floats.to_numpy()), frame.index, floats.columns)
        _refuse_cells(infinite, source, "infinite", _CORRECT)


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
        raise DataError(
            f"{source}: {plural(total, kind + ' value')}: {'; '.join(cells)}{more} "
            f"(counting data rows from 1); {way_out}."
        )
