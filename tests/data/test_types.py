"""Columns, labels and weights of types that are no numbers: refused by name, with what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from proxmargin import L2SVC, SVC, DDAGClassifier

X = np.random.default_rng(0).normal(size=(30, 2))
y = np.arange(30) % 2
DAYS = pd.date_range("2020", periods=30)
# columns, and what is told of them
COLUMNS: dict[str, tuple[Any, str]] = {
    "dates": (DAYS, r"X holds datetime64\[.*\] in column 1 \('when'\), .*give numbers"),
    "zone": (DAYS.tz_localize("UTC"), r"X holds datetime64\[.*UTC\] in column 1 \('when'\)"),
    "durations": (DAYS - DAYS[0], r"X holds timedelta64\[.*\] in column 1 \('when'\)"),
    "periods": (DAYS.to_period("D"), r"X holds period\[D\] in column 1 \('when'\)"),
    "intervals": (pd.interval_range(0, 30), r"X holds interval\[.*\] in column 1 \('when'\)"),
    "lists": ([[1, 2]] * 30, r"X holds \[1, 2\] in row 0, column 1 \('when'\)"),
    "objects": ([each.date() for each in DAYS], r"X holds .*date.* in row 0, column 1 \('when'\)"),
}


@pytest.mark.parametrize(("column", "told"), COLUMNS.values(), ids=COLUMNS)
def test_a_column_of_no_numbers_is_named(column: Any, told: str) -> None:
    frame = pd.DataFrame({"size": X[:, 0], "when": column})
    known = L2SVC().fit(pd.DataFrame(X, columns=["size", "when"]), y)
    compared = SVC(kernel="rbf")
    for call in (
        L2SVC().fit,
        DDAGClassifier().fit,
        compared.fit,
        lambda data, _: known.predict(data),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            call(frame, y)


def test_dates_alone_are_no_nanoseconds() -> None:
    with pytest.raises(ValueError, match=r"X holds datetime64\[.*\] in column 0 \('when'\)"):
        L2SVC().fit(pd.DataFrame({"when": DAYS}), y)
    with pytest.raises(ValueError, match=r"X holds datetime64\[.*\], which is no number"):
        L2SVC().fit(np.asarray(DAYS)[:, None], y)


@pytest.mark.parametrize("kind", ["datetime", "date", "duration", "time"])
def test_dates_of_polars_are_refused(kind: str) -> None:
    polars = pytest.importorskip("polars")
    column = {
        "datetime": DAYS.to_list(),
        "date": [each.date() for each in DAYS],
        "duration": (DAYS - DAYS[0]).to_list(),
        "time": [each.time() for each in DAYS],
    }[kind]
    frame = polars.DataFrame({"size": X[:, 0], "when": column})
    with pytest.raises(ValueError, match=rf"(?i)X holds {kind}.* in column 1 \('when'\)"):
        L2SVC().fit(frame, y)


@pytest.mark.parametrize("form", [list, pd.Series, lambda mixed: np.array(mixed, dtype=object)])
def test_labels_of_several_types_are_told_by_row(form: Any) -> None:
    mixed = form([1, "a"] * 15)
    told = r"y must be of one type: row 1 \(counted from 0\) has 'a', a string, and row 0 has 1"
    for call in (L2SVC().fit, DDAGClassifier().fit, L2SVC().fit(X, y).score):
        with pytest.raises(ValueError, match=told):
            call(X, mixed)


@pytest.mark.parametrize("given", ["x", ["1"] * 30, np.ones(30) * 1j, np.asarray(DAYS), {}])
@pytest.mark.parametrize("name", ["sample_weight", "offset"])
def test_weights_and_offsets_are_real_numbers(given: Any, name: str) -> None:
    for model in (L2SVC(), SVC(kernel="rbf")):
        with pytest.raises(ValueError, match=f"{name} must be one number a sample: could"):
            model.fit(X, y, **{name: given})
    with pytest.raises(ValueError, match="sample_weight must be one number a sample"):
        DDAGClassifier().fit(X, y, sample_weight=given)
