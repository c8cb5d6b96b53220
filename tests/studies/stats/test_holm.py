"""Holm's procedure against printed values and its definition."""

from __future__ import annotations

import numpy as np
import pytest

from proxmargin.stats import ControlComparison, against_control, holm
from tests.studies.stats.tables import BINARY, BINARY_RANKS, DEMSAR, MULTICLASS


def compared(scores: np.ndarray, **options: object) -> ControlComparison:
    result = holm(scores, **options)  # type: ignore[arg-type]
    assert isinstance(result, ControlComparison)
    return result


def test_the_example_of_demsar() -> None:
    result = compared(DEMSAR)
    np.testing.assert_allclose(result.zscore, [2.342, 0.512, 2.416], atol=1e-3)
    np.testing.assert_allclose(result.pvalue, [0.019, 0.607, 0.016], atol=2e-3)
    assert (result.adjusted < 0.05).tolist() == [True, False, True]


def test_the_comparisons_of_xu_et_al_with_their_methods() -> None:
    binary = compared(BINARY_RANKS, higher_is_better=False)
    np.testing.assert_allclose(binary.pvalue[:3], [0.8875, 0.0072, 0.0477], atol=5.1e-5)
    assert binary.pvalue[3] == pytest.approx(5.57e-5, abs=1e-7)
    assert (binary.adjusted < 0.05).tolist() == [False, True, False, True]
    assert (binary.adjusted < 0.10).tolist() == [False, True, True, True]
    multiclass = compared(MULTICLASS)
    np.testing.assert_allclose(multiclass.pvalue, [0.0253, 0.0736], atol=5.1e-5)


def test_the_ranks_of_gisette_as_table_5_of_xu_et_al_has_them_change_a_conclusion() -> None:
    corrected = compared(BINARY)
    assert (corrected.adjusted < 0.05).tolist() == [False, True, False, True]
    # ADMM: 0.066 alone and 0.13 adjusted, not different from B-PGH at level 0.1 any more
    assert (corrected.adjusted < 0.10).tolist() == [False, True, False, True]
    assert corrected.pvalue[2] == pytest.approx(0.0660, abs=5e-5)


def test_adjusted_p_values_are_the_least_levels_that_reject() -> None:
    pvalues = np.array([0.02, 0.001, 0.3, 0.02, 0.011, 1.0])
    adjusted = holm(pvalues)
    assert isinstance(adjusted, np.ndarray)
    for level in np.linspace(0.001, 1.0, 400):
        rejected = np.zeros(6, bool)
        for step, test in enumerate(np.argsort(pvalues, kind="stable")):
            if pvalues[test] > level / (6 - step):
                break
            rejected[test] = True
        np.testing.assert_array_equal(adjusted <= level, rejected)


def test_no_p_values_are_none_adjusted() -> None:
    assert np.size(holm([])) == 0


def test_the_control_is_named_or_counted() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(MULTICLASS, columns=["M-PGH", "OVA", "DDAG"])
    result = compared(frame, control="OVA")
    assert result.names == ("M-PGH", "DDAG")
    np.testing.assert_array_equal(result.zscore, compared(MULTICLASS, control=1).zscore)
    assert list(result.to_frame()["model"]) == ["M-PGH", "DDAG"]
    for control in ("SVM", 3, -1):
        with pytest.raises(ValueError, match="M-PGH, OVA, DDAG"):
            holm(frame, control=control)


def test_what_is_no_probability_is_refused() -> None:
    for pvalues in ([0.5, 1.5], [-0.1], [np.nan]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            holm(pvalues)


def test_tables_have_a_function_of_their_own() -> None:
    alone, dispatched = against_control(DEMSAR, control=2), compared(DEMSAR, control=2)
    assert (alone.control, alone.names) == (dispatched.control, dispatched.names)
    np.testing.assert_array_equal(alone.adjusted, dispatched.adjusted)
    with pytest.raises(ValueError, match="shape"):
        against_control([0.1, 0.2])


def test_parameters_of_tables_are_refused_with_p_values() -> None:
    with pytest.raises(ValueError, match="control=1 is for tables"):
        holm([0.1, 0.2], control=1)
    with pytest.raises(ValueError, match="higher_is_better=False is for tables"):
        holm([0.1, 0.2], higher_is_better=False)
    for pvalues in (["a", "b"], [0.1 + 1j]):
        with pytest.raises(ValueError, match="must be numbers"):
            holm(pvalues)


def test_numbers_that_are_names_come_before_positions() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(MULTICLASS, columns=[2, 0, 1])
    assert against_control(frame, control=2).control == "2"
    assert against_control(frame, control="0").names == ("2", "1")
    assert against_control(frame).control == "2"
    years = frame.set_axis([2012, 2013, 2014], axis=1)
    assert against_control(years, control=2013).names == ("2012", "2014")
    with pytest.raises(ValueError, match="control=1 is no model"):
        against_control(years, control=1)


def test_columns_of_the_same_name_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"same name: SVM$"):
        holm(pandas.DataFrame(MULTICLASS, columns=["SVM", "DWD", "SVM"]))


@pytest.mark.parametrize("control", [True, 1.0, [0], ()])
def test_a_control_that_is_neither_name_nor_column_is_refused(control: object) -> None:
    with pytest.raises(ValueError, match="control="):
        against_control(MULTICLASS, control=control)  # type: ignore[arg-type]


def test_a_direction_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(ValueError, match="higher_is_better must be True or False"):
        holm(MULTICLASS, higher_is_better="no")  # type: ignore[arg-type]
