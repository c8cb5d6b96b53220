"""Mutated tables are read or refused in a sentence, and no row is lost without a word."""

from __future__ import annotations

import re
import warnings
from collections import Counter

import numpy as np
import pytest

from proxmargin import read_data
from proxmargin.files.errors import DataError
from proxmargin.files.tables.contents import Dialect

QUICK = 300  # files
THOROUGH = 10_000  # files of the slow test
GROWTH = 2**28  # bytes that reading small files may add to the process
MARKS = (",", ";", "\t", "|", " ")
WORDS = ("", "NA", "?", "#N/A", "x", "1,5", "1e999", "inf", "-", "é", "#", "!", '"', "\0", "Total")


def table(rng: np.random.Generator) -> list[list[str]]:
    n, p = int(rng.integers(2, 14)), int(rng.integers(1, 5))
    rows = [[f"f{j}" for j in range(p)] + ["grp"]]
    cells = rng.normal(size=(n, p)).round(2).astype(str).tolist()
    labels = (("case", "control"), ("0", "1"), ("01", "02"))[rng.integers(3)]
    rows += [[*row, labels[i % 2]] for i, row in enumerate(cells)]
    if rng.random() < 0.3:
        rows = [["id", *rows[0]], *([f"P{i:03}", *row] for i, row in enumerate(rows[1:]))]
    return rows


def mutated(rng: np.random.Generator, rows: list[list[str]]) -> None:
    """One change, of a row or of a cell."""
    i = int(rng.integers(len(rows)))
    row = rows[i]
    j = int(rng.integers(max(len(row), 1)))
    kind = rng.integers(10)
    if kind == 0:
        rows.insert(i, [""] * len(row))
    elif kind == 1:
        rows.insert(i, list(row))
    elif kind == 2:
        rows.insert(i, list(rows[0]))
    elif kind == 3 and len(rows) > 2:
        del rows[i]
    elif kind == 4 and row:
        del row[j]
    elif kind == 5:
        row.append("")
    elif kind == 6:
        row.insert(j, WORDS[rng.integers(len(WORDS))])
    elif kind == 7 and row:
        del row[j:]
    elif row:
        row[j] = WORDS[rng.integers(len(WORDS))]


def content(rng: np.random.Generator) -> tuple[bytes, int]:
    """A file, and the rows with a cell that is not missing."""
    rows = table(rng)
    for _ in range(rng.integers(1, 4)):
        mutated(rng, rows)
    mark, end = MARKS[rng.integers(len(MARKS))], ("\n", "\r\n", "\r")[rng.integers(3)]
    lines = [mark.join(row) for row in rows]
    filled = sum(any(cell not in ("", "NA") for cell in row) for row in rows)
    text = end.join([*lines, ""])
    encoding = ("utf-8", "utf-8-sig", "utf-16", "latin-1")[rng.integers(4)]
    whole = text.encode(encoding)
    if rng.random() < 0.1:
        whole = whole[: rng.integers(1, len(whole) + 1)]
        filled = -1
    return whole, -1 if '"' in text else filled


def outcome(path, rng: np.random.Generator, options: dict) -> str:
    path = path.with_suffix((".csv", ".tsv", ".txt", ".data", "")[rng.integers(5)])
    whole, filled = content(rng)
    path.write_bytes(whole)
    try:
        read = read_data(path, blanks=True, encode=True, unlabelled="drop", **options)
    except DataError as error:
        return "refused" if "\n" not in str(error) else "several lines"
    if filled < 0:
        return "read"
    header = options["dialect"].header is not False
    # rows of empty cells are no rows of the file's
    left_out = r"(\d+) rows? (?!of empty cells)|(?:before the table|below the header): (\d+) line"
    named = sum(int(a or b) for note in read.notes for a, b in re.findall(left_out, note))
    assert read.X.shape[0] + named + header == filled, (whole, read.notes)
    return "read"


@pytest.mark.parametrize("count", [QUICK, pytest.param(THOROUGH, marks=pytest.mark.slow)])
def test_no_row_is_lost_without_a_word(tmp_path, count):
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes: Counter[str] = Counter()
    dialects = [{}, {}, {"header": True}, {"header": False}, {"short_rows": "missing"}]
    for case in range(count):
        rng = np.random.default_rng([11, case])
        options = {"dialect": Dialect(**dialects[case % len(dialects)])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcomes[outcome(tmp_path / "d", rng, options)] += 1
            except BaseException as error:
                error.add_note(f"in case {case}")
                raise
    assert outcomes["read"] > count / 10
    assert set(outcomes) == {"read", "refused"}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert 1024 * grown < GROWTH
