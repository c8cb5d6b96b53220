"""Published tables of scores."""

from __future__ import annotations

import numpy as np
from benchmarks.papers.xu.xu2015 import BINARY, BINARY_RANKS, MULTICLASS, SIGNED_RANKS

__all__ = ["BINARY", "BINARY_RANKS", "DEMSAR", "MULTICLASS", "SIGNED_RANKS"]

# Demsar (2006), Table 6: areas under the curve of C4.5, with m, with cf, with both, on 14 data
# sets. The ranks printed there tell the two 0.975 of `voting` apart: the third is the larger.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
