"""Arrays that hypothesis draws by a seed: entry by entry it takes longer than what is tested."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

# small integers and their halves, for ties and exact zeros; numbers that rounding is sensitive to
SPECIAL = np.array(
    [0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 1.0 / 3.0, 1e-5, 1e-16, 2.0**-1022, 5e-324, 1.0 + 2.0**-52]
)


def drawn_arrays(
    shape: int | tuple[int, ...], low: float, high: float
) -> SearchStrategy[np.ndarray]:
    """Arrays with entries from ``low`` to ``high``, both included.

    The kinds of entries are mixed in shares that are drawn, too: uniform numbers, special ones and
    their negatives, the ends, and repetitions of the entry before.
    """

    def array(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        size = int(np.prod(shape))
        special = rng.choice(SPECIAL, size) * rng.choice([-1.0, 1.0], size)
        kinds = [rng.uniform(low, high, size), special, rng.choice([low, high], size)]
        shares = rng.dirichlet([1.0, 1.0, 0.1])
        entries = np.choose(rng.choice(3, size, p=shares), kinds)
        again = 1 + np.flatnonzero(rng.random(size - 1) < rng.choice([0.0, 0.3]))
        entries[again] = entries[again - 1]
        return np.clip(entries, low, high).reshape(shape)

    return st.integers(0, 2**64 - 1).map(array)
