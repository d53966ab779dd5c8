"""The one loop: for each tile of samples, for each four queries, score -> weight -> accumulate.

:func:`sweep` is compiled once. A reduction is a part (:mod:`locbook.engine.parts`), a branch of :func:`reduce_address`,
and the state that it fills:

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

Here too distances and sums come from vector kernels where there are vectors (``ENABLED``); the plain loop stands beside
them. ``lanes[r, c]`` are then the W partial sums of one sum, as many as a vector has numbers, and one number else.

In the log domain a row carries its running maximum: when a tile holds a larger log-weight, what was summed before
is scaled down, so no weight overflows and the largest never underflows.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import types

from .exponential import exp_negative
from .panels import PANEL, empty, zeros
from .parts import INTEGER_ROWS, INTEGERS, ONE, REDUCE_PART, THREE, TWO, address, call, inner, jit, part
from .program import (
    EVALUATE_PART,
    IS_EMPTY_PART,
    NECESSARY,
    PROGRAM,
    TILE,
    Program,
    Tile,
    evaluate,
    is_empty,
)
from .values import lane_sums
from .vectors import COLUMN_VECTORS, ENABLED, ROWS, VECTOR_BYTES, largest

SUM, MEAN, MOMENTS, CLASSES, CUMULATE, TOP, DENSE, DIAGONAL = range(8)
#: Partial sums of a vector of float64.
LANES = max(1, VECTOR_BYTES // 8)

#: Sums may be reordered into vector lanes; NaN and infinity keep their meaning.
_SUMS = {"contract", "reassoc", "arcp", "nsz"}


@inner(fastmath=_SUMS)
def row_sum(row, n):
    """Sum of the first ``n`` numbers."""
    total = 0.0
    for j in range(n):
        total += row[j]
    return total


@inner(fastmath=_SUMS)
def row_product(row, other, n):
    """Inner product of the first ``n`` numbers."""
    total = 0.0
    for j in range(n):
        total += row[j] * other[j]
    return total


@inner
def _to_weights(row, n, shift, i):
    """Log-weights to weights relative to the running maximum ``shift[i]``; returns the factor for older sums."""
    top = largest(row, n)
    factor = 1.0
    if top > shift[i]:
        factor = math.exp(shift[i] - top)  # exp(-inf) = 0 at the first weight
        shift[i] = top
    top = shift[i]
    if top == -math.inf:
        for j in range(n):
            row[j] = 0.0
    else:
        for j in range(n):
            row[j] = exp_negative(row[j] - top)
    return factor


@inner
def _mean(weights, rows, i, values, first, count, lanes, sums):
    """Add w v, for a few queries."""
    p = values.shape[1]
    if not ENABLED:
        for r in range(rows):
            for c in range(p):
                for t in range(count):
                    sums[i + r, c] += row_product(weights[r, t * PANEL :], values[first + t, c], PANEL)
        return
    lanes[:] = 0.0
    c = 0
    while c < p:
        if c + COLUMN_VECTORS <= p:
            lane_sums(COLUMN_VECTORS, weights, 0, values, first, count, c, lanes)
            c += COLUMN_VECTORS
        else:
            lane_sums(1, weights, 0, values, first, count, c, lanes)
            c += 1
    for r in range(rows):
        for c in range(p):
            for lane in range(LANES):
                sums[i + r, c] += lanes[r, c, lane]


@inner(allocates=True)  # as far as Numba is concerned, a new shape does
def _moments(
    weights,
    rows,
    i,
    size,
    queries,
    panels,
    first,
    count,
    values,
    parents,
    dimensions,
    lanes,
    z,
    weighted,
    sums,
):
    """Add w z z' (upper triangle, row by row) and w z y, z the monomials of x - q, for a few queries.

    Both are products of the rows w z with the rows z and y. ``z`` is scratch for the latter, shape (panels, f + p,
    PANEL), and ``weighted`` for the former, shape (f to the next multiple of ROWS, panels * PANEL).
    """
    features, outputs = parents.size, values.shape[1]
    for t in range(count):
        z[t, 0] = 1.0
        for c in range(outputs):
            z[t, features + c] = values[first + t, c]
    # by panels: an index that is no sum needs no look whether it is negative, and the loops become vectors
    width = weighted.shape[1] // PANEL
    own = weights.reshape(weights.shape[0], width, PANEL)
    products = weighted.reshape(weighted.shape[0], width, PANEL)
    for r in range(rows):
        for t in range(count):
            panel = first + t
            for j in range(PANEL):
                products[0, t, j] = own[r, t, j]
            for f in range(1, features):
                at, column, parent = queries[i + r, dimensions[f]], dimensions[f], parents[f]
                # a sample that does not take part may be so far that its monomials are infinite
                for j in range(PANEL):
                    w, product = own[r, t, j], z[t, parent, j] * (panels[panel, column, j] - at)
                    mine = product if w > 0.0 else 0.0
                    z[t, f, j] = mine
                    products[f, t, j] = w * mine
        _products(weighted, features, z, count, lanes)
        k = 0
        for f in range(features):
            for g in range(f, features):
                for lane in range(LANES):
                    sums[i + r, k] += lanes[f, g, lane]
                k += 1
        for f in range(features):
            for c in range(outputs):
                for lane in range(LANES):
                    sums[i + r, k] += lanes[f, features + c, lane]
                k += 1


@inner
def _products(weighted, features, z, count, lanes):
    """``lanes[f, g]``: the partial sums of the products of row f of ``weighted`` with row g of ``z``."""
    lanes[:] = 0.0
    for f in range(0, features, ROWS):
        if not ENABLED:
            for r in range(f, min(f + ROWS, features)):
                for g in range(z.shape[1]):
                    for t in range(count):
                        lanes[r, g, 0] += row_product(weighted[r, t * PANEL :], z[t, g], PANEL)
            continue
        g = f // COLUMN_VECTORS * COLUMN_VECTORS  # only g >= f is asked for
        while g < z.shape[1]:
            if g + COLUMN_VECTORS <= z.shape[1]:
                lane_sums(COLUMN_VECTORS, weighted, f, z, 0, count, g, lanes)
                g += COLUMN_VECTORS
            else:
                lane_sums(1, weighted, f, z, 0, count, g, lanes)
                g += 1


@inner
def push(score, row_id, scores, rows):
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


@jit
def sort_heaps(scores, rows):
    """Bring the heaps of some queries, shape (b, k), into order: best first, of equal scores the lowest row first."""
    for i in range(scores.shape[0]):
        for last in range(scores.shape[1] - 1, 0, -1):
            score, row = scores[i, last], rows[i, last]
            scores[i, last], rows[i, last] = scores[i, 0], rows[i, 0]  # the worst
            push(score, row, scores[i, :last], rows[i, :last])


@lru_cache
def reduce_address(reduction: int) -> int:
    """Address of the part that accumulates, ``reduce``.

    Its arguments: ``weights, rows, i, size, queries, query_ids, panels, first, count, ids, values, labels, parents,
    dimensions, lanes, z, weighted, sums, order``.
    ``weights[r, : count * PANEL]`` are those of query ``i + r``, 0 (a log-weight of ``-inf``) beyond ``size``.
    """

    @part(allocates=reduction == MOMENTS)
    def reduce(
        weights, rows, i, size, queries, query_ids, panels, first, count, ids, values, labels, parents, dimensions,
        lanes, z, weighted, sums, order,
    ):  # fmt: skip
        offset = first * PANEL
        if reduction == MEAN:
            _mean(weights, rows, i, values, first, count, lanes, sums)
        elif reduction == MOMENTS:
            _moments(
                weights,
                rows,
                i,
                size,
                queries,
                panels,
                first,
                count,
                values,
                parents,
                dimensions,
                lanes,
                z,
                weighted,
                sums,
            )
        for r in range(rows):
            row, k = weights[r], i + r
            if reduction == CLASSES:
                for j in range(size):
                    sums[k, labels[offset + j]] += row[j]
            elif reduction == CUMULATE:
                levels = sums.shape[1] - 1
                for j in range(size):
                    if row[j] > 0.0:
                        sums[k, levels] += row[j]
                        order[k, levels] = ids[offset + j]
                        for level in range(levels):
                            if order[k, level] < 0 and sums[k, levels] >= sums[k, level]:
                                order[k, level] = ids[offset + j]
            elif reduction == TOP:
                for t in range(0, size, PANEL):
                    if largest(row[t:], PANEL) >= sums[k, 0]:
                        for j in range(t, min(t + PANEL, size)):
                            if row[j] > -math.inf:
                                push(row[j], ids[offset + j], sums[k], order[k])
            elif reduction == DENSE:
                for j in range(size):
                    sums[k, ids[offset + j]] = row[j]
            elif reduction == DIAGONAL:
                for j in range(size):
                    if ids[offset + j] == query_ids[k]:
                        sums[k, 0] = row[j]
        return 0

    return address(reduce, *REDUCE_PART)


class Room(NamedTuple):
    """Scratch for a tile: the stack of the program and a row, and what means and moments are summed in."""

    stack: np.ndarray
    work: np.ndarray
    lanes: np.ndarray
    z: np.ndarray
    weighted: np.ndarray


def make_room(depth: int, features: int, outputs: int, per_tile: int) -> Room:
    """For a program of this depth, monomials and columns of values, and a tile of ``per_tile`` panels."""
    rows = max(ROWS, -(-features // ROWS) * ROWS)
    return Room(
        stack=empty((depth, ROWS, per_tile * PANEL)),
        work=empty((per_tile * PANEL,)),
        lanes=empty((rows, features + outputs, LANES)),
        z=empty((per_tile, features + outputs, PANEL)),
        weighted=zeros((rows, per_tile * PANEL)),
    )


@lru_cache
def visit_address(reduction: int, log: bool) -> int:
    """Address of the part that adds one tile to the state of the queries from ``i`` on, at most ROWS.

    Its arguments: ``parts, program, queries, query_ids, query_data, tile, multiplicity, values, labels, parents,
    dimensions, i, room, shift, total, sums, order``, as of :func:`sweep`. ``log`` is that of the program.
    """
    nothing = -math.inf if log else 0.0

    @part
    def visit(
        parts, program, queries, query_ids, query_data, tile, multiplicity, values, labels, parents, dimensions, i,
        room, shift, total, sums, order,
    ):  # fmt: skip
        left = query_ids.size - i
        rows = ROWS if left > ROWS else left
        if reduction != DENSE and parts[3] and call(parts[3], program, queries, i, rows, tile):
            return 0
        stack, work, lanes, z, weighted = room
        size, width, offset, found = tile.size, tile.count * PANEL, tile.first * PANEL, stack[0]
        bad = call(parts[1], program, queries, query_ids, query_data, i, rows, tile, stack, work)
        for r in range(rows):
            row = found[r]
            for j in range(size, width):
                row[j] = nothing
            if multiplicity.size:
                for j in range(size):
                    if log:
                        row[j] += multiplicity[offset + j]
                    else:
                        row[j] *= multiplicity[offset + j]
            if reduction < TOP:
                if log:
                    factor = _to_weights(row, width, shift, i + r)
                    total[i + r] *= factor
                    for c in range(sums.shape[1]):
                        sums[i + r, c] *= factor
                total[i + r] += row_sum(row, size)
        if reduction != SUM:
            call(
                parts[2], found, rows, i, size, queries, query_ids, tile.panels, tile.first, tile.count, tile.ids,
                values, labels, parents, dimensions, lanes, z, weighted, sums, order,
            )  # fmt: skip
        return bad

    return address(visit, *VISIT_PART)


ROOM = types.NamedTuple((THREE, ONE, THREE, THREE, TWO), Room)
VISIT_PART = (
    *(
        types.UniTuple(types.int64, 4),
        PROGRAM,
        TWO,
        INTEGERS,
        TWO,
        TILE,
        ONE,
        THREE,
        INTEGERS,
        INTEGERS,
        INTEGERS,
    ),
    *(types.intp, ROOM, ONE, ONE, TWO, INTEGER_ROWS),
)


def part_addresses(reduction: int, program: Program, reduce: int) -> tuple[int, int, int, int]:
    """Addresses of what :func:`sweep` calls: visit, evaluate, reduce; is_empty, or 0 where no step keeps all out."""
    keeps_out = program.steps[:, NECESSARY].any()
    return (
        visit_address(reduction, program.log),
        address(evaluate, *EVALUATE_PART),
        reduce,
        address(is_empty, *IS_EMPTY_PART) if keeps_out else 0,
    )


@jit
def grouped_sweep(
    parts, program, queries, panels, n, multiplicity, values, masks, per_tile, room, shift, total, sums
):
    """:func:`sweep` for problems end to end, as many as ``masks``, shape (groups, masks, b, n), has.

    Queries and panels are those of all, each filled up; ``n`` is the number of samples of one.
    """
    groups = masks.shape[0]
    m, each = total.size // groups, panels.shape[0] // groups
    tiles = np.arange((each + per_tile - 1) // per_tile)
    query_ids, ids = np.arange(m), np.arange(n)
    of_queries, of_samples = np.empty((0, m)), np.empty((0, n))
    none, order = np.empty(0, np.int64), np.empty((m, 0), np.int64)
    bad = 0
    for g in range(groups):
        rows, own = slice(g * m, (g + 1) * m), slice(g * each, (g + 1) * each)
        copies = multiplicity[g * each * PANEL : g * each * PANEL + n] if multiplicity.size else multiplicity
        bad += sweep(
            parts, program, queries[rows], query_ids, of_queries, panels[own], n, ids, of_samples, masks[g], copies,
            values[own], none, none, none, tiles, per_tile, room, shift[rows], total[rows], sums[rows], order,
        )  # fmt: skip
    return bad


@jit(allocates=False)
def sweep(
    parts, program, queries, query_ids, query_data, panels, n, ids, sample_data, masks, multiplicity, values, labels,
    parents, dimensions, tiles, per_tile, room, shift, total, sums, order,
):  # fmt: skip
    """Add the samples of some tiles of a chunk to the state of a block of queries.

    Parameters
    ----------
    parts : (int, int, int, int)
        What :func:`part_addresses` gives: called by address they are compiled once, and not again inside their callers.
    program : Program
    queries : array, shape (b to the next multiple of ROWS, d)
    query_ids : array of int64, shape (b,)
    query_data : array, shape (slots, b)
    panels : array, shape (panels, d, PANEL)
        The ``n`` samples of the chunk.
    ids : array of int64, shape (n,)
    sample_data : array, shape (slots, n)
    masks : array of bool, shape (masks, b, n)
    multiplicity : array, shape (n,) or (0,)
        Of the samples, or its logarithm; all 1 where empty.
    values : array, shape (panels, p, PANEL)
    labels : array of int64, shape (n,) or (0,)
    parents, dimensions : arrays of int64
        The monomials of the moments.
    tiles : array of int64
        Numbers of the tiles, in the order of their visit; a tile is ``per_tile`` panels.
    room : Room
    shift, total : arrays, shape (b,)
        Running maximum of the log-weights and sum of the weights, both updated.
    sums, order : arrays, shapes (b, s) and (b, k)
        The state of the reduction, updated.

    Returns
    -------
    int
        0 where all that users' functions gave is good, as :func:`locbook.engine.program.evaluate` says.
    """
    bad = 0
    for number in range(tiles.size):
        first = tiles[number] * per_tile
        count, size = panels.shape[0] - first, n - first * PANEL
        count = per_tile if count > per_tile else count
        size = count * PANEL if size > count * PANEL else size
        tile = Tile(panels, first, count, size, ids, sample_data, masks)
        for i in range(0, query_ids.size, ROWS):
            bad += call(
                parts[0], parts, program, queries, query_ids, query_data, tile, multiplicity, values, labels, parents,
                dimensions, i, room, shift, total, sums, order,
            )  # fmt: skip
    return bad
