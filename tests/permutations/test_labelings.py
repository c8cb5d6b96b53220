"""All labelings are all of them, once; drawn ones keep the labels of each group."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from proxmargin.permutations.labelings import all_labelings, count_labelings, drawn_labelings

CODES = np.array([0, 1, 1, 0, 2, 1])


@pytest.mark.parametrize("codes", [CODES, np.array([1, 0, 0, 0, 1]), np.array([0, 1])])
def test_every_different_labeling_is_listed_once(codes) -> None:
    found = {tuple(column) for column in all_labelings(codes, np.zeros(codes.size, int)).T}
    assert found == set(permutations(codes.tolist()))
    assert count_labelings(codes, np.zeros(codes.size, int)) == len(found)


def test_groups_keep_their_labels() -> None:
    groups = np.array([0, 0, 1, 1, 1, 0])
    every = all_labelings(CODES, groups)
    assert every.shape[1] == count_labelings(CODES, groups) == len({tuple(c) for c in every.T})
    drawn = drawn_labelings(CODES, groups, 50, np.random.default_rng(0))
    for columns in (every, drawn):
        for group in (0, 1):
            rows = np.sort(columns[groups == group], axis=0)
            assert (rows == np.sort(CODES[groups == group])[:, None]).all()


def test_drawn_labelings_are_equally_likely() -> None:
    codes = np.array([0, 0, 1, 1])
    drawn = drawn_labelings(codes, np.zeros(4, int), 6000, np.random.default_rng(0))
    _, counts = np.unique(drawn, axis=1, return_counts=True)
    assert counts.size == 6
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)  # five standard deviations
