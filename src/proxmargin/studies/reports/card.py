"""The data card: what to know, and what to doubt, about a data set before models are compared."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, rankdata

from proxmargin.data.inputs.kinds import Features, Labels
from proxmargin.runtime.types import Matrix, Record, Values

# entries of a block of columns in float64: 16 MB, so that a few of them fit beside any data
BLOCK_ENTRIES = 1 << 21
ROWS_THAT_RISE = 20  # fewer rows rise by chance: of p features of 20 rows, 2 p / 20! do
DIGEST = 16  # bytes: among 1e9 rows, two differing ones agree with probability 1e-21
BLOCK_ROWS = 1024  # that are made contiguous at once
LISTED = 10  # features and rows listed by name at most; counts are of all
RARE = 10  # samples below which a class is called rare
SCREENED_ROWS = 20_000  # drawn at random, on which single features are screened at most
SUSPICIOUS_AUC = 0.99  # area under the curve from which one feature alone is a suspect
# level at which chance must not explain it, all features and classes considered (Bonferroni)
CHANCE = 0.01
# entries above which leaks are not searched: seconds, and a fit to so many takes as long
SEARCHED = 2e7
# share of rows that repeat earlier ones, below which rounding to a few digits explains them
FEW_REPEATS = 0.01
MANY = 4  # features that separate the classes, from which they are hardly copies of the label
NAMED = 3  # columns named by a sentence

Names = Sequence[str]


def data_card(X: Features, y: Labels, feature_names: Names | None = None) -> Record:
    """Sizes, faults and suspects of leakage of a data set.

    Nothing is changed, and sparse data are not made dense.

    Parameters
    ----------
    X : (n_samples, n_features) array, sparse matrix or data frame of numbers
        May have missing entries (NaN).
    y : (n_samples,)
        Labels of the classes.
    feature_names : (n_features,), optional
        By default those of the data frame, or ``x0``, ``x1``, ...

    Returns
    -------
    dict
        Plain values, ready for JSON: ``n_samples``, ``n_features``, ``sparse``, ``density``,
        ``classes`` (label and count), ``missing``, ``constant``, ``duplicate_rows``,
        ``duplicate_columns``, ``sorted_by_class``, ``screened_rows``, ``separating`` (how many
        features alone separate a class), ``suspects`` (feature, what, class, auc, advice) and
        ``findings``: a list of (what, advice), in sentences. Counts are of
        all, lists of names of the first ten.

    Raises
    ------
    ValueError
        Shapes do not agree, or the data are no numbers.

    See Also
    --------
    write_report : A page that holds the card.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from proxmargin.reports import data_card
    >>> card = data_card(*load_wine(return_X_y=True))
    >>> card["n_samples"], card["n_features"], card["sorted_by_class"]
    (178, 13, True)
    """
    table, of, names = _checked(X, y, feature_names)
    labels, codes = np.unique(of, return_inverse=True)
    counts = np.bincount(codes)
    by_column, by_row = (table.tocsc(), table.tocsr()) if _is_sparse(table) else (table, table)
    missing, constant, in_row_order = _column_facts(by_column)
    rows = _groups(_sparse_lines(by_row) if _is_sparse(table) else _dense_lines(by_row))
    across = _sparse_lines(by_column) if _is_sparse(table) else _dense_lines(by_column.T)
    twins = _groups(across, kept=set(np.flatnonzero(~constant).tolist()))
    conflicts = [group for group in rows if np.unique(codes[group]).size > 1]
    screened = np.arange(of.size)
    if of.size > SCREENED_ROWS:
        drawn = np.random.default_rng(0).choice(of.size, SCREENED_ROWS, replace=False)
        screened = np.sort(drawn)
    separating, separators = _separators(by_column, by_row, codes, labels, names, screened)
    card: Record = {
        "n_samples": int(table.shape[0]),
        "n_features": int(table.shape[1]),
        "sparse": _is_sparse(table),
        "density": float(table.nnz / np.prod(table.shape)) if _is_sparse(table) else None,
        "classes": [
            {"label": str(label), "count": int(count)}
            for label, count in zip(labels, counts, strict=True)
        ],
        "missing": {"entries": int(missing.sum()), **_named(missing > 0, names)},
        "constant": _named(constant, names),
        "duplicate_rows": {
            "count": sum(group.size - 1 for group in rows),
            "conflicting": sum(group.size for group in conflicts),
            "examples": [(group[:LISTED] + 1).tolist() for group in (conflicts or rows)[:LISTED]],
        },
        "duplicate_columns": {
            "count": sum(group.size - 1 for group in twins),
            "examples": [[names[j] for j in group[:LISTED]] for group in twins[:LISTED]],
        },
        "sorted_by_class": bool(labels.size > 1 and (np.diff(codes) != 0).sum() == labels.size - 1),
        "screened_rows": int(screened.size),
        "separating": separating,
        "suspects": [*_orders(in_row_order, names), *separators],
    }
    return {**card, "findings": [{"what": w, "advice": a} for w, a in _findings(card)]}


def _is_sparse(X: object) -> bool:  # which tells mypy nothing
    return bool(sp.issparse(X))


def _checked(X: Any, y: Labels, names: Names | None) -> tuple[Any, Values, list[str]]:
    if names is None and hasattr(X, "columns"):
        names = list(X.columns)
    if _is_sparse(X):
        # canonical, so that equal lines have equal bytes; the caller's matrix stays as it is
        X = sp.csr_array(X, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
    else:
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"X must be a table of numbers, and has shape {X.shape}, dtype {X.dtype}")
    y = np.asarray(y)
    if y.shape != X.shape[:1]:
        raise ValueError(f"y must have one label for each of the {X.shape[0]} rows of X")
    found = [f"x{j}" for j in range(X.shape[1])] if names is None else [str(n) for n in names]
    if len(found) != X.shape[1]:
        raise ValueError(f"{len(found)} feature_names were given for {X.shape[1]} features")
    return X, y, found


def _named(which: NDArray[np.bool_], names: Names) -> Record:
    """How many features there are of a kind, and the first of them by name."""
    places = which.nonzero()[0]
    return {"count": int(places.size), "features": [names[j] for j in places[:LISTED]]}


def _orders(which: NDArray[np.bool_], names: Names) -> Iterator[Record]:
    for j in which.nonzero()[0][:LISTED]:
        yield {
            "feature": names[j],
            "what": "follows the order of the rows, as an identifier, a date or a run order does",
            "class": None,
            "auc": None,
            "advice": "Leave it out: it says when or where a sample was written down.",
        }


def _separators(
    by_column: Any,
    by_row: Any,
    codes: NDArray[np.intp],
    labels: Values,
    names: Names,
    screened: NDArray[np.intp],
) -> tuple[int, list[Record]]:
    """How many features alone tell a class from the rest, and the first of them for which chance is
    no explanation."""
    if screened.size < codes.size:
        by_column = by_row[screened].tocsc() if _is_sparse(by_row) else by_row[screened]
        codes = codes[screened]
    members = np.eye(labels.size)[codes]
    between = "{} from the other classes"
    if labels.size == 2:  # the second curve is the first, turned round
        members, labels, between = members[:, 1:], labels[1:], "the two classes"
    areas = single_feature_auc(by_column, members)
    sides = np.nan_to_num(np.maximum(areas, 1 - areas))
    best = sides.max(axis=0)
    count, found = int(np.count_nonzero(best >= SUSPICIOUS_AUC)), []
    for j in np.argsort(-best, kind="stable")[: min(count, LISTED)]:
        k = int(sides[:, j].argmax())
        column, inside = _column(by_column, j), members[:, k] > 0
        test = mannwhitneyu(column[inside], column[~inside], nan_policy="omit")
        if test.pvalue * areas.size < CHANCE:
            auc = float(sides[k, j])
            how = "perfectly" if auc == 1 else "almost perfectly"
            found.append(
                {
                    "feature": names[j],
                    "what": f"alone separates {between.format(labels[k])} {how} (AUC {auc:.3f})",
                    "class": str(labels[k]),
                    "auc": auc,
                    "advice": OF_MANY if count >= MANY else OF_FEW,
                }
            )
    return (count if found else 0), found


def _column(X: Any, j: int) -> Values:
    return X[:, [j]].toarray()[:, 0] if _is_sparse(X) else X[:, j]


OF_FEW = (
    "Leave such features out if they become known only with the class (a result of the diagnosis, "
    "a code of the label); real measurements are strong markers."
)
OF_MANY = (
    "So many are hardly copies of the label: they are markers of a large difference, or the "
    "classes were measured in different batches."
)


# what is said of one and of several, and what to do
FINDINGS = Path(__file__).parent / "template" / "findings.json"


def _findings(card: Record) -> Iterator[tuple[str, str]]:
    rows, missing = card["duplicate_rows"], card["missing"]
    rare: Record = min(
        card["classes"], key=lambda each: each["count"], default={"label": "", "count": 0}
    )
    counts = {
        "conflicting": rows["conflicting"],
        "copies": rows["count"],
        "sorted": int(card["sorted_by_class"]),
        "rare": rare["count"] * (rare["count"] < RARE),
        "missing": missing["entries"],
        "constant": card["constant"]["count"],
        "twins": card["duplicate_columns"]["count"],
    }
    features = f"{missing['count']:,} feature{'s' if missing['count'] > 1 else ''}"
    for name, (one, many, advice) in json.loads(FINDINGS.read_text("utf-8")).items():
        if n := counts[name]:
            told = (one if n == 1 else many).format(n=n, features=features, label=rare["label"])
            yield told, advice
    suspects = card["suspects"]
    # the features of a kind share their advice
    for advice in dict.fromkeys(each["advice"] for each in suspects):
        kin = [each for each in suspects if each["advice"] == advice]
        first = f"{kin[0]['feature']} {kin[0]['what']}"
        others = [each["feature"] for each in kin[1:]]
        more = card["separating"] - LISTED if kin[0]["auc"] is not None else 0
        others += [f"{more:,} more"] if more > 0 else []
        also = f"; similarly {', '.join(others)}" if others else ""
        yield f"{first}{also}.", advice


NAMES_ROWS = "numbers or names the rows"


def leak_signs(
    X: Matrix, y: Values, names: Sequence[str] | None = None, *, grouped: bool = False
) -> list[str]:
    """What makes scores of these data too good, in sentences with options of the command line.
    Levels of text are ``column=level``; ``grouped``: rows that belong together are known."""
    stored = X.nnz if hasattr(X, "nnz") else X.size
    if stored > SEARCHED:
        return []
    card = data_card(X, y, names)
    return list(_signs(card, X, np.asarray(y), names, grouped))


def _signs(
    card: Record, X: Matrix, y: Values, names: Sequence[str] | None, grouped: bool
) -> Iterator[str]:
    ordered = [each["feature"] for each in card["suspects"] if each["auc"] is None]
    # columns of text with as many levels as there are rows
    levels = Counter(name.partition("=")[0] for name in names or () if "=" in name)
    ordered += [column for column, count in levels.items() if count == y.size > 1]
    if ordered:
        yield f"{_listed(ordered)} {NAMES_ROWS}: {_ignore(ordered)}"
    called = list(names) if names is not None else [f"x{j}" for j in range(card["n_features"])]
    suspects = [each["feature"] for each in card["suspects"] if each["auc"] is not None]
    alone = [name for name in suspects if _separates(X, y, called.index(name))]
    if alone:
        yield (
            f"{_listed(alone)} alone separates the classes: {_ignore(alone)}, "
            "if it is known only with the class"
        )
    repeats = card["duplicate_rows"]["count"]
    if repeats >= max(1, FEW_REPEATS * y.size) and not grouped:
        yield (
            f"{repeats} of {y.size} rows repeat earlier ones, and copies on both sides of a split "
            "make scores too good: remove them, or keep them together (compare --groups COL)"
        )
    if card["sorted_by_class"]:
        yield (
            "the rows are sorted by class: folds of your own must be shuffled "
            "(StratifiedKFold(shuffle=True)), as those of compare are"
        )


def _separates(X: Any, y: Values, j: int) -> bool:
    """Whether each class has an interval of the feature to itself."""
    column = _column(X, j)
    known = ~np.isnan(column)
    groups = (column[known & (y == label)] for label in np.unique(y[known]))
    ends = sorted((group.min(), group.max()) for group in groups)
    return len(ends) > 1 and all(left[1] < right[0] for left, right in pairwise(ends))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(repr, names[:NAMED])) + more


def _ignore(names: Sequence[str]) -> str:
    return " ".join(f"--ignore {shlex.quote(name.partition('=')[0])}" for name in names[:NAMED])


def _column_facts(X: Values) -> tuple[Values, ...]:
    """Of each column of an array or a canonical CSC matrix: how many entries are not finite;
    whether it has one value in all rows, or none; and whether it is in the order of the rows."""
    if hasattr(X, "indptr"):
        return _sparse_facts(X)
    found = [_block_facts(block) for _, block in blocks(X)]
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def blocks(X: Values) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Blocks of columns in float64, each with its place."""
    width = max(1, BLOCK_ENTRIES // max(1, X.shape[0]))
    for start in range(0, X.shape[1], width):
        place = slice(start, start + width)
        yield place, np.asarray(X[:, place], dtype=np.float64)


def _block_facts(block: NDArray[np.float64]) -> tuple[Values, ...]:
    finite = np.isfinite(block)
    missing = (~finite).sum(axis=0)
    # fmin and fmax pass over NaN
    least, largest = np.fmin.reduce(block, axis=0), np.fmax.reduce(block, axis=0)
    constant = (least == largest) | (missing == block.shape[0])
    return missing, constant, _in_row_order(block, least, largest)


def _in_row_order(block: NDArray[np.float64], least: Values, largest: Values) -> NDArray[np.bool_]:
    """Whether values rise or fall from row to row, or are consecutive whole numbers, each once: a
    row number, a run order or a time."""
    n = block.shape[0]
    if n < ROWS_THAT_RISE:
        return np.zeros(block.shape[1], dtype=bool)
    with np.errstate(invalid="ignore"):
        # most columns are out after the first rows
        head = np.diff(block[:ROWS_THAT_RISE], axis=0)
        candidates = (head > 0).all(axis=0) | (head < 0).all(axis=0)
        candidates |= largest - least == n - 1
    ordered = np.zeros(block.shape[1], dtype=bool)
    for j in candidates.nonzero()[0]:
        steps = np.diff(block[:, j])
        consecutive = (np.diff(np.sort(block[:, j])) == 1).all()
        ordered[j] = (steps > 0).all() or (steps < 0).all() or consecutive
    return ordered


def _sparse_facts(X: Any) -> tuple[Values, ...]:
    n, p = X.shape
    stored = np.diff(X.indptr)
    owner = np.repeat(np.arange(p), stored)
    finite = np.isfinite(X.data)
    missing = np.bincount(owner[~finite], minlength=p)
    least, largest = (end(axis=0).toarray().ravel() for end in (X.nanmin, X.nanmax))
    constant = (least == largest) | (missing == n)
    ordered = np.zeros(p, dtype=bool)
    # a column of distinct values has at most one zero
    for j in (stored >= n - 1).nonzero()[0]:
        column = X[:, [j]].toarray().astype(np.float64)
        ordered[j] = _in_row_order(column, least[[j]], largest[[j]])[0]
    return missing, constant, ordered


def _groups(lines: Iterator[bytes], kept: set[int] | None = None) -> list[NDArray[np.intp]]:
    """Groups of equal lines, two or more in each; where ``kept`` is given, of these alone."""
    seen: dict[bytes, list[int]] = {}
    for place, line in enumerate(lines):
        if kept is None or place in kept:
            seen.setdefault(blake2b(line, digest_size=DIGEST).digest(), []).append(place)
    return [np.array(places) for places in seen.values() if len(places) > 1]


def _dense_lines(X: Values) -> Iterator[bytes]:
    for start in range(0, X.shape[0], BLOCK_ROWS):
        # adding zero turns -0.0, which equals 0.0, into it
        block = np.ascontiguousarray(X[start : start + BLOCK_ROWS]) + 0
        yield from (line.tobytes() for line in block)


def _sparse_lines(X: Any) -> Iterator[bytes]:
    """Places and values of each line along the compressed axis."""
    data = X.data + 0
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop].tobytes() + data[start:stop].tobytes()


def single_feature_auc(X: Values, members: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas under the curves, (n_classes, n_features), of each class (a column of ``members``,
    zeros and ones) against the rest, by rank sums with midranks; zeros of a CSC matrix are one tie.
    Missing entries of an array are left out; NaN for columns of a matrix with some, and without a
    class or a rest."""
    sizes = members.sum(axis=0)[:, None]
    count = np.full(X.shape[1], members.shape[0], dtype=np.float64)
    if hasattr(X, "indptr"):
        sums = _sparse_rank_sums(X, members)
    else:
        sums, sizes, count = _rank_sums(X, members)
    rest = count - sizes
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((sums - sizes * (sizes + 1) / 2) / (sizes * rest))


def _rank_sums(X: Values, members: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Sums of ranks among the known entries, and the numbers of these, of a class and of all."""
    sums, sizes = np.empty((2, members.shape[1], X.shape[1]))
    count = np.empty(X.shape[1])
    for place, block in blocks(X):
        known = ~np.isnan(block)
        # missing entries rank last, which leaves the ranks of the others as they are
        ranks = rankdata(np.where(known, block, np.inf), axis=0)
        sums[:, place] = members.T @ np.where(known, ranks, 0.0)
        sizes[:, place] = members.T @ known
        count[place] = known.sum(axis=0)
    return sums, sizes, count


def _sparse_rank_sums(X: Any, members: NDArray[np.float64]) -> NDArray[np.float64]:
    n, p = X.shape
    stored = np.diff(X.indptr)
    owner = np.repeat(np.arange(p), stored)
    zeros = n - stored
    values = np.unique(np.nan_to_num(X.data, nan=np.inf), return_inverse=True)[1]
    # those of one column are next to each other, its zeros between negative and positive values
    own = rankdata(owner * (X.nnz + 1) + values)
    ranks = own - X.indptr[owner] + np.where(X.data > 0, zeros[owner], 0)
    of_zeros = np.bincount(owner[X.data < 0], minlength=p) + (zeros + 1) / 2
    sums = np.empty((members.shape[1], p))
    for k, member in enumerate(members.T):
        of_class = member[X.indices]
        listed = np.bincount(owner, weights=of_class * ranks, minlength=p)
        unlisted = member.sum() - np.bincount(owner, weights=of_class, minlength=p)
        sums[k] = listed + unlisted * of_zeros
    sums[:, np.unique(owner[~np.isfinite(X.data)])] = np.nan
    return sums
