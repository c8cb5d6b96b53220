"""All labelings are all of them, once; drawn ones keep the labels of each group."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from proxmargin.models.permutations.labelings import all_labelings, count_labelings, drawn_labelings

CODES = np.array([0, 1, 1, 0, 2, 1])


NO_GROUPS = np.zeros(6, int)


@pytest.mark.parametrize("codes", [CODES, np.array([1, 0, 0, 0, 1]), np.array([0, 1])])
def test_every_different_labeling_is_listed_once_and_the_given_one_first(codes) -> None:
    groups = np.zeros(codes.size, int)
    every = all_labelings(codes, groups)
    found = {tuple(column) for column in every.T}
    assert found == set(permutations(codes.tolist()))
    assert count_labelings(codes, groups, 10_000) == len(found) == every.shape[1]
    np.testing.assert_array_equal(every[:, 0], codes)


def test_counts_beyond_what_is_asked_are_not_computed() -> None:
    assert count_labelings(CODES, NO_GROUPS, 59) == 60
    assert count_labelings(CODES, NO_GROUPS, 60) == 60
    assert count_labelings(CODES, NO_GROUPS, 10) == 11
    many = np.arange(2_000_000) % 2
    assert count_labelings(many, np.zeros(many.size, int), 1000) == 1001


def test_groups_keep_their_labels() -> None:
    groups = np.array([0, 0, 1, 1, 1, 0])
    every = all_labelings(CODES, groups)
    assert every.shape[1] == count_labelings(CODES, groups, 1000)
    assert every.shape[1] == len({tuple(column) for column in every.T})
    (drawn,) = drawn_labelings(CODES, groups, 50, 0, 50)
    for columns in (every, drawn):
        for group in (0, 1):
            rows = np.sort(columns[groups == group], axis=0)
            assert (rows == np.sort(CODES[groups == group])[:, None]).all()


def test_drawn_labelings_are_equally_likely() -> None:
    codes = np.array([0, 0, 1, 1])
    (drawn,) = drawn_labelings(codes, np.zeros(4, int), 6000, 0, 6000)
    _, counts = np.unique(drawn, axis=1, return_counts=True)
    assert counts.size == 6
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)  # five standard deviations


def test_what_is_drawn_does_not_depend_on_the_blocks() -> None:
    whole = np.hstack(list(drawn_labelings(CODES, NO_GROUPS, 47, 3, 100)))
    parts = np.hstack(list(drawn_labelings(CODES, NO_GROUPS, 47, 3, 20)))
    np.testing.assert_array_equal(whole, parts)
    assert whole.shape == (6, 47)
