"""The loss of linear scores and its derivatives, in one reading of the data."""

from __future__ import annotations

from proxmargin.compiled.cache import njit

__all__ = ["expanded", "expanded_lines"]

ROWS = 256  # read together: with a hundred features they stay in the second-level cache
SUMS = {"reassoc", "contract", "nsz"}  # in any order, so that loops vectorise


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def expanded(phi, scores, shift, signs, weights, dual, bend):
    """First and second derivatives of the loss at ``scores + shift``, and their sums.

    Parameters
    ----------
    dual, bend : (n_samples,)
        Minus the first derivatives, and the second ones, are written into them.

    Returns
    -------
    slope : float
        Sum of ``dual``.
    curvature : float
        Sum of ``bend``.
    loss : float
    """
    slope, _, curvature, loss = phi.evaluated(scores, shift, signs, weights, dual, bend)
    return slope, curvature, loss


@njit(cache=True, nogil=True, allocates=False, error_model="numpy")
def expanded_lines(phi, lines, coef, shift, offset, signs, weights, scores, dual, bend, pulled):
    """`expanded` at the scores ``lines @ coef + shift + offset``.

    A block of samples is read twice, for its scores and for its part of ``lines' dual``, the second
    time from the cache.

    Parameters
    ----------
    lines : (n_samples, n_features)
        By rows.
    offset : (n_samples,), or empty for none
    scores : (n_samples,)
        Set to the scores without ``shift``.
    pulled : (n_features,)
        Set to ``lines' dual``.

    Returns
    -------
    slope, curvature, loss : float
    """
    slope, curvature, loss = 0.0, 0.0, 0.0
    pulled[:] = 0.0
    for first in range(0, scores.size, ROWS):
        last = min(first + ROWS, scores.size)
        here = slice(first, last)
        _scores(lines[here], coef, scores[here])
        for i in range(first, last if offset.size > 0 else first):
            scores[i] += offset[i]
        one, _, two, three = phi.evaluated(
            scores[here], shift, signs[here], weights[here], dual[here], bend[here]
        )
        slope, curvature, loss = slope + one, curvature + two, loss + three
        _pull(lines[here], dual[here], pulled)
    return slope, curvature, loss


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def _scores(lines, coef, out):
    """``lines @ coef``, four rows at a time: they share the reads of the coefficients."""
    whole = out.size - out.size % 4
    for i in range(0, whole, 4):
        a, b, c, d = lines[i], lines[i + 1], lines[i + 2], lines[i + 3]
        s = t = u = v = 0.0
        for j in range(coef.size):
            s += a[j] * coef[j]
            t += b[j] * coef[j]
            u += c[j] * coef[j]
            v += d[j] * coef[j]
        out[i], out[i + 1], out[i + 2], out[i + 3] = s, t, u, v
    for i in range(whole, out.size):
        s = 0.0
        for j in range(coef.size):
            s += lines[i, j] * coef[j]
        out[i] = s


@njit(cache=True, nogil=True, allocates=False, error_model="numpy", fastmath=SUMS)
def _pull(lines, dual, out):
    """Add ``lines' dual``, four rows at a time: they share the updates of the sums."""
    whole = dual.size - dual.size % 4
    for i in range(0, whole, 4):
        a, b, c, d = lines[i], lines[i + 1], lines[i + 2], lines[i + 3]
        s, t, u, v = dual[i], dual[i + 1], dual[i + 2], dual[i + 3]
        for j in range(out.size):
            out[j] += (a[j] * s + b[j] * t) + (c[j] * u + d[j] * v)
    for i in range(whole, dual.size):
        s = dual[i]
        for j in range(out.size):
            out[j] += lines[i, j] * s
