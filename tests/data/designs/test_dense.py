"""Dense data as they are stored."""

from __future__ import annotations

import numpy as np
import pytest
from numba import typeof

from proxmargin.data.designs import DenseDesign


@pytest.mark.parametrize("order", ["C", "F"])
def test_read_only_data_have_the_kernels_of_all_others(order, rng) -> None:
    X = np.asarray(rng.standard_normal((5, 3)), order=order)
    free = DenseDesign(X).lines
    held = X.copy(order="K")
    held.setflags(write=False)
    lines = DenseDesign(held).lines
    assert free is not None
    assert lines is not None
    assert np.shares_memory(lines, held)
    assert typeof(lines) == typeof(free)
    del held  # what is left holds the memory
    np.testing.assert_array_equal(lines, free)
