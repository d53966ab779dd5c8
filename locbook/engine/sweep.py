"""The one loop: for each tile of samples, for each query, score -> weight -> accumulate.

:func:`sweep` is compiled once. A reduction is a branch of :func:`_accumulate` and the state that it fills:

=============  =====================================  ==========================================
reduction      ``sums`` (per query)                   ``order`` (per query)
=============  =====================================  ==========================================
SUM            --                                     --
MEAN           sum of w v, one a value column         --
MOMENTS        sums of w z z', then of w z y          --
CLASSES        sum of w, one a class                  --
CUMULATE       in: shares of the total to reach;      out: first row at which each is reached,
               last: running sum                      last: last row with a positive weight
TOP            the k largest scores, a heap           their rows
DENSE          every weight                           --
DIAGONAL       the weight of the query's own sample   --
=============  =====================================  ==========================================

In the log domain a row carries its running maximum: when a tile holds a larger log-weight, what was summed before
is scaled down, so no weight overflows and the largest never underflows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ..kernels import metrics, profiles
from . import exponential, user
from . import program as programs
from .cache import made_from
from .exponential import exp_negative
from .program import JIT, evaluate_row

SUM, MEAN, MOMENTS, CLASSES, CUMULATE, TOP, DENSE, DIAGONAL = range(8)

#: Sums may be reordered into vector lanes; NaN and infinity keep their meaning.
_SUMS = {**JIT, "fastmath": {"contract", "reassoc", "arcp", "nsz"}}


@njit(**_SUMS)
def _total(weights, n):
    total = 0.0
    for j in range(n):
        total += weights[j]
    return total


@njit(**_SUMS)
def _dot(weights, values, n):
    total = 0.0
    for j in range(n):
        total += weights[j] * values[j]
    return total


@njit(**JIT)
def _to_weights(row, n, shift, i):
    """Log-weights to weights relative to the running maximum ``shift[i]``; returns the factor for older sums."""
    top = shift[i]
    for j in range(n):
        if row[j] > top:
            top = row[j]
    factor = 1.0
    if top > shift[i]:
        factor = math.exp(shift[i] - top)  # exp(-inf) = 0 at the first weight
        shift[i] = top
    if top == -math.inf:
        for j in range(n):
            row[j] = 0.0
    else:
        for j in range(n):
            row[j] = exp_negative(row[j] - top)
    return factor


@njit(**JIT)
def _moments(row, n, q, tile, values, parents, dimensions, sums, z):
    """Add w z z' (upper triangle, row by row) and w z y, z the monomials of x - q."""
    size, outputs = parents.size, values.shape[0]
    for j in range(n):
        w = row[j]
        if w == 0.0:
            continue
        z[0] = 1.0
        for f in range(1, size):
            c = dimensions[f]
            z[f] = z[parents[f]] * (tile[c, j] - q[c])
        at = 0
        for f in range(size):
            wz = w * z[f]
            for g in range(f, size):
                sums[at] += wz * z[g]
                at += 1
        for f in range(size):
            wz = w * z[f]
            for c in range(outputs):
                sums[at] += wz * values[c, j]
                at += 1


@njit(**JIT)
def _push(score, row_id, scores, rows):
    """Put a candidate on the heap of the k best; the root is the worst: lowest score, then largest row."""
    if score < scores[0] or (score == scores[0] and row_id > rows[0]):
        return
    k = scores.size
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= k:
            break
        right = child + 1
        if right < k and (
            scores[right] < scores[child] or (scores[right] == scores[child] and rows[right] > rows[child])
        ):
            child = right
        if scores[child] > score or (scores[child] == score and rows[child] < row_id):
            break
        scores[parent] = scores[child]
        rows[parent] = rows[child]
        parent = child
    scores[parent] = score
    rows[parent] = row_id


@njit(**JIT)
def _accumulate(
    reduction,
    row,
    n,
    i,
    query_id,
    first,
    q,
    tile,
    values,
    labels,
    ids,
    parents,
    dimensions,
    total,
    sums,
    order,
    z,
):
    if reduction == MEAN:
        for c in range(values.shape[0]):
            sums[i, c] += _dot(row, values[c], n)
    elif reduction == MOMENTS:
        _moments(row, n, q, tile, values, parents, dimensions, sums[i], z)
    elif reduction == CLASSES:
        for j in range(n):
            sums[i, labels[first + j]] += row[j]
    elif reduction == CUMULATE:
        levels = sums.shape[1] - 1
        for j in range(n):
            if row[j] > 0.0:
                sums[i, levels] += row[j]
                order[i, levels] = ids[first + j]
                for k in range(levels):
                    if order[i, k] < 0 and sums[i, levels] >= sums[i, k]:
                        order[i, k] = ids[first + j]
    elif reduction == TOP:
        for j in range(n):
            if row[j] > -math.inf:
                _push(row[j], ids[first + j], sums[i], order[i])
    elif reduction == DENSE:
        for j in range(n):
            sums[i, ids[first + j]] = row[j]
    elif reduction == DIAGONAL:
        for j in range(n):
            if ids[first + j] == query_id:
                sums[i, 0] = row[j]
    if reduction < TOP:
        total[i] += _total(row, n)


@njit(**JIT)
def sweep(
    reduction,
    program,
    queries,
    query_ids,
    samples,
    ids,
    query_data,
    sample_data,
    masks,
    multiplicity,
    values,
    labels,
    parents,
    dimensions,
    width,
    shift,
    total,
    sums,
    order,
):
    """Reduce a chunk of samples into the state of a block of queries.

    Parameters
    ----------
    reduction : int
    program : Program
    queries : array, shape (b, d)
    query_ids : array of int64, shape (b,)
    samples : array, shape (n, d)
    ids : array of int64, shape (n,)
    query_data, sample_data : arrays, shapes (slots, b) and (slots, n)
    masks : array of bool, shape (masks, b, n)
    multiplicity : array, shape (n,) or (0,)
        Sample weights, or their logarithms where the program holds logarithms; empty for all 1.
    values : array, shape (n, p)
    labels : array of int64, shape (n,)
    parents, dimensions : arrays of int64
        The monomials of MOMENTS.
    width : int
        Samples in a tile. It fixes the order of summation, hence the last bit.
    shift, total : arrays, shape (b,)
        Running maximum of the log-weights and sum of the weights, both updated.
    sums, order : arrays, shapes (b, s) and (b, k)
        The state of the reduction, updated.

    Returns
    -------
    int
        How many weights were negative or NaN.
    """
    n, d = samples.shape
    p = values.shape[1]
    tile = np.empty((d, width))
    value_tile = np.empty((p, width))
    stack = np.empty((program.depth, width))
    work = np.empty(width)
    z = np.empty(max(1, parents.size))
    bad = 0
    for first in range(0, n, width):
        size = min(width, n - first)
        for j in range(size):
            for c in range(d):
                tile[c, j] = samples[first + j, c]
        for j in range(size):
            for c in range(p):
                value_tile[c, j] = values[first + j, c]
        for i in range(queries.shape[0]):
            bad += evaluate_row(
                program,
                queries[i],
                query_ids[i],
                i,
                tile,
                size,
                ids,
                first,
                query_data,
                sample_data,
                masks,
                stack,
                work,
            )
            row = stack[0]
            if multiplicity.size:
                for j in range(size):
                    if program.log:
                        row[j] += multiplicity[first + j]
                    else:
                        row[j] *= multiplicity[first + j]
            if program.log and reduction < TOP:
                factor = _to_weights(row, size, shift, i)
                if factor != 1.0:
                    total[i] *= factor
                    for c in range(sums.shape[1]):
                        sums[i, c] *= factor
            _accumulate(
                reduction,
                row,
                size,
                i,
                query_ids[i],
                first,
                queries[i],
                tile,
                value_tile,
                labels,
                ids,
                parents,
                dimensions,
                total,
                sums,
                order,
                z,
            )
    return bad


made_from(sweep, programs, exponential, metrics, profiles, user)
