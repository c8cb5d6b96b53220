"""Element-wise kernel of the proximal method of multipliers for the hinge."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["smoothed_hinge"]


@njit(cache=True, nogil=True)
def smoothed_hinge(scores, signs, caps, centre, widths, dual):  # type: ignore[no-untyped-def]
    """The hinge smoothed around the multipliers ``centre``, and its own multipliers.

    ``sum_i max_{0 <= a <= caps_i}  a (1 - signs_i scores_i) - (a - centre_i)^2 / (2 widths_i)``;
    the maximisers are written into ``dual``. All arrays are (n_samples,); ``widths`` are positive
    where ``caps`` are.

    Returns
    -------
    value : float
    free : (n_free,) integers
        Samples whose maximiser is strictly inside: those with curvature ``widths``.
    """
    value = 0.0
    free = np.empty(scores.size, np.intp)
    count = 0
    for i in range(scores.size):
        if caps[i] <= 0.0:
            dual[i] = 0.0
            continue
        missing = 1.0 - signs[i] * scores[i]
        a = centre[i] + widths[i] * missing
        if a <= 0.0:
            a = 0.0
        elif a >= caps[i]:
            a = caps[i]
        else:
            free[count] = i
            count += 1
        move = a - centre[i]
        value += a * missing - 0.5 * move * move / widths[i]
        dual[i] = a
    return value, free[:count].copy()
