"""Products accumulated in float64 whatever the type of the data.

NumPy and SciPy would first copy float32 data to float64 for a float64 vector; these read the data
as they are: half the memory traffic at full precision. `along` and `across` are for dense
matrices with contiguous lines; `gather` and `scatter` for matrices compressed by lines, the first
multiplying along the lines (CSR times coefficients, CSC transposed times a dual), the second
across them.
"""

from __future__ import annotations

import numpy as np

from proxmargin.compiled.cache import SUMS, njit

# what is transposed at a time: whole lines of the cache on either side, that its first level holds
PATCH_ROWS = 64
PATCH_COLUMNS = 16


@njit(nogil=True, fastmath=SUMS)
def along(lines, right, out):
    """``out[i] = sum_j lines_ij right[j]``; the sum may be reordered, so that it vectorises."""
    for i in range(lines.shape[0]):
        total = 0.0
        for j in range(lines.shape[1]):
            total += np.float64(lines[i, j]) * right[j]
        out[i] = total


@njit(nogil=True)
def placed_twice(tile, store, start):
    """Write ``tile`` into the rows of a symmetric ``store`` from its diagonal on, and across.

    Parameters
    ----------
    tile : (m, n)
        ``K[start : start + m, start : start + n]``
    store : (n_store, n_store), n_store >= start + n
    start : int
    """
    for i in range(tile.shape[0]):
        to = store[start + i]
        for j in range(tile.shape[1]):
            to[start + j] = tile[i, j]
    for top in range(0, tile.shape[0], PATCH_ROWS):
        last = min(top + PATCH_ROWS, tile.shape[0])
        for left in range(0, tile.shape[1], PATCH_COLUMNS):
            for j in range(left, min(left + PATCH_COLUMNS, tile.shape[1])):
                to = store[start + j]
                for i in range(top, last):
                    to[start + i] = tile[i, j]


@njit(nogil=True, fastmath={"contract"})
def across(lines, right, out):
    """``out[j] += sum_i lines_ij right[i]``, line by line."""
    for i in range(lines.shape[0]):
        factor = right[i]
        if factor != 0.0:
            for j in range(lines.shape[1]):
                out[j] += lines[i, j] * factor


@njit(nogil=True, fastmath={"contract"})
def gather(data, indices, indptr, right, out):
    """``out[i] = sum_j data_ij right[j]`` over the entries of each compressed line i."""
    outputs = right.shape[1]
    if outputs == 1:
        column = right[:, 0]
        for i in range(out.shape[0]):
            total = 0.0
            # unsigned positions spare the test for negative ones
            for entry in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                total += data[entry] * column[np.uint64(indices[entry])]
            out[i, 0] = total
        return
    for i in range(out.shape[0]):
        for k in range(outputs):
            out[i, k] = 0.0
        for entry in range(indptr[i], indptr[i + 1]):
            value = data[entry]
            j = indices[entry]
            for k in range(outputs):
                out[i, k] += value * right[j, k]


@njit(nogil=True, fastmath={"contract"})
def scatter(data, indices, indptr, right, out):
    """``out[j] += sum_i data_ij right[i]`` over the entries of each compressed line i."""
    outputs = right.shape[1]
    if outputs == 1:
        for i in range(right.shape[0]):
            factor = right[i, 0]
            if factor != 0.0:
                for entry in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                    out[np.uint64(indices[entry]), 0] += data[entry] * factor
        return
    for i in range(right.shape[0]):
        live = False
        for k in range(outputs):
            if right[i, k] != 0.0:
                live = True
        if not live:
            continue
        for entry in range(indptr[i], indptr[i + 1]):
            value = data[entry]
            j = indices[entry]
            for k in range(outputs):
                out[j, k] += value * right[i, k]


@njit(nogil=True)
def scaled_lines(lines, live, centre, roots, by_rows, out):
    """``(x_ij - centre_j) roots_i`` for the samples i in ``live``, in the order of ``lines``.

    Parameters
    ----------
    lines : (n_samples, n_features), or its transpose, as ``by_rows`` says
    live : (m,) integers
    centre : (n_features,)
    roots : (n_samples,)
    out : (m, n_features), or its transpose
    """
    if by_rows:
        for i in range(live.size):
            line, root = lines[live[i]], roots[live[i]]
            for j in range(centre.size):
                out[i, j] = (line[j] - centre[j]) * root
        return
    for j in range(centre.size):
        for i in range(live.size):
            row = np.uint64(live[i])
            out[j, i] = (lines[j, row] - centre[j]) * roots[row]


@njit(nogil=True, fastmath=SUMS)
def line_squares(lines, weights, centre, of_lines, by_rows, out):
    """Weighted squares ``(x_ij - centre_j)^2`` of a dense matrix, added up in ``out``.

    Parameters
    ----------
    lines : (n_samples, n_features), or its transpose, as ``by_rows`` says
    weights : one for each place in a line where ``of_lines``, else one a line
    centre : (n_features,)
    of_lines : bool
        The sums of each line are wanted, otherwise those of each place in the lines.
    """
    for i in range(lines.shape[0]):
        line = lines[i]
        if of_lines:
            total = 0.0
            for j in range(line.size):
                off = line[j] - (centre[j] if by_rows else centre[i])
                total += weights[j] * off * off
            out[i] += total
        else:
            weight = weights[i]
            for j in range(line.size):
                off = line[j] - (centre[j] if by_rows else centre[i])
                out[j] += weight * off * off


@njit(nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})
def line_largest(lines, of_lines, out):
    """Largest absolute entry of each line of a dense matrix, or of each place in the lines."""
    if of_lines:
        for i in range(lines.shape[0]):
            out[i] = _largest_of(lines[i])
        return
    whole = lines.shape[0] - lines.shape[0] % 4
    for i in range(0, whole, 4):  # four lines share the updates of the maxima
        a, b, c, d = lines[i], lines[i + 1], lines[i + 2], lines[i + 3]
        for j in range(lines.shape[1]):
            one = max(abs(np.float64(a[j])), abs(np.float64(b[j])))
            two = max(abs(np.float64(c[j])), abs(np.float64(d[j])))
            out[j] = max(out[j], max(one, two))
    for i in range(whole, lines.shape[0]):
        line = lines[i]
        for j in range(line.size):
            out[j] = max(out[j], abs(np.float64(line[j])))


@njit(nogil=True, fastmath={"nnan", "nsz"})
def _largest_of(line):
    """The largest absolute entry; four at a time, as one maximum would wait for the last."""
    a = b = c = d = 0.0
    whole = line.size - line.size % 4
    for j in range(0, whole, 4):
        a = max(a, abs(np.float64(line[j])))
        b = max(b, abs(np.float64(line[j + 1])))
        c = max(c, abs(np.float64(line[j + 2])))
        d = max(d, abs(np.float64(line[j + 3])))
    for j in range(whole, line.size):
        a = max(a, abs(np.float64(line[j])))
    return max(max(a, b), max(c, d))


@njit(nogil=True)
def largest_entries(data, indices, indptr, by_rows, length):
    """Largest absolute entry of each column of a compressed matrix, (n_columns,)."""
    out = np.zeros(length)
    for line in range(indptr.size - 1):
        # entries are seldom the largest so far: a branch is faster than a maximum
        for entry in range(np.uint64(indptr[line]), np.uint64(indptr[line + 1])):
            column = np.uint64(indices[entry]) if by_rows else np.uint64(line)
            size = abs(data[entry])
            if size > out[column]:
                out[column] = size
    return out


@njit(nogil=True)
def centred_squares(data, indices, indptr, weights, centre, by_rows, of_rows, length):
    """Weighted squares ``(x_ij - centre_j)^2`` of a compressed matrix, by row or by column.

    Parameters
    ----------
    data, indices, indptr : arrays
        Compressed by rows if ``by_rows``, else by columns.
    weights : array
        One a column for sums of rows (``of_rows``), one a row for sums of columns.
    centre : (n_columns,)
    by_rows, of_rows : bool
    length : int
        Number of rows or columns that are summed.

    Returns
    -------
    (n_rows,) or (n_columns,)
        Every term is non-negative; entries that are not stored count ``centre^2``.
    """
    # gaps, entries that are not stored: of columns of rows, or of rows with a weight of columns
    has_gaps = weights != 0.0
    if of_rows:
        stored_in = np.zeros(weights.size, np.int64)
        for line in range(indptr.size - 1):
            for entry in range(indptr[line], indptr[line + 1]):
                stored_in[indices[entry] if by_rows else line] += 1
        has_gaps = (stored_in < length) & (centre != 0.0)
    out, stored, count = np.zeros(length), np.zeros(length), np.zeros(length, np.int64)
    for line in range(indptr.size - 1):
        for entry in range(indptr[line], indptr[line + 1]):
            row = line if by_rows else indices[entry]
            column = indices[entry] if by_rows else line
            at, other = (row, column) if of_rows else (column, row)
            off = data[entry] - centre[column]
            out[at] += weights[other] * off * off
            if has_gaps[other]:
                stored[at] += weights[other] * (centre[other] * centre[other] if of_rows else 1.0)
                count[at] += 1
    everything = 0.0
    for other in range(weights.size):
        if has_gaps[other]:
            everything += weights[other] * (centre[other] * centre[other] if of_rows else 1.0)
    most = np.count_nonzero(has_gaps)
    for at in range(length):
        if count[at] < most:
            gap = max(everything - stored[at], 0.0)
            out[at] += gap if of_rows else gap * centre[at] * centre[at]
    return out
