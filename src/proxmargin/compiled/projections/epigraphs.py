"""Nearest points of the epigraphs of ``h(y) = max_k y_k + [k != own]``, row by row."""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import njit

__all__ = ["project_epigraphs"]


@njit(cache=True, nogil=True)
def project_epigraphs(rows, levels, codes, out, out_levels):
    """Proposition 3.3 of Chierchia et al. (2015); ``out`` may be ``rows``.

    With nu the entries of ``y + r`` in descending order, the level is ``theta = (zeta + nu_1 + ...
    + nu_m) / (m + 1)`` for the m with ``nu_(m+1) <= theta <= nu_m``: entries are added while they
    are above the mean so far, which they only raise up to themselves. Rows are sorted by insertion,
    no further than that.

    Parameters
    ----------
    rows : (n, K)
    levels : (n,)
    codes : (n,) integers, the class of r_k = [k != own]
    out, out_levels : (n, K) and (n,)
    """
    classes = rows.shape[1]
    left = np.empty(classes)
    for i in range(rows.shape[0]):
        own = codes[i]
        for k in range(classes):
            value = rows[i, k] + (0.0 if k == own else 1.0)
            place = k
            while place > 0 and left[place - 1] < value:
                left[place] = left[place - 1]
                place -= 1
            left[place] = value
        total, level = levels[i], levels[i]
        for m in range(classes):
            if left[m] <= level:
                break
            total += left[m]
            level = total / (m + 2)
        for k in range(classes):
            out[i, k] = min(rows[i, k], level - (0.0 if k == own else 1.0))
        out_levels[i] = level
