"""The fused path: local means and log-sums of one exponential leaf, tile by tile.

A block of queries walks the tiles. For each tile and each four queries the fused kernel
(:mod:`locbook.engine.fused`) gives the weights, or already their sums; many columns of values are then summed by a value
kernel (:mod:`locbook.engine.values`). The kernels sum in the dtype of the tile, over at most some hundred samples a
lane; between tiles all sums are float64.

The shift of a query is the largest exponent when it was last looked at. It is moved only when a tile holds an exponent
beyond :data:`HEADROOM` above it: the tile is then done again. So weights are at most 2^HEADROOM, and no sum overflows.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from . import exponential, panels, values, vectors
from .panels import PANEL
from .parts import JIT, call, made_from
from .values import lane_sums, row_sums
from .vectors import COLUMN_VECTORS, ROWS, VALUE_ROWS

#: Queries whose sums and weights are kept at once.
BLOCK = 96
#: Both kernels divide it.
GROUP = math.lcm(ROWS, VALUE_ROWS)
#: How far, in powers of two, an exponent may lie above the shift.
HEADROOM = 20.0

#: How often a tile is done again.
TRIES = 3

# How the values are summed: in the fused kernel, as lanes, as rows
IN_KERNEL, LANES, ROW_BY_ROW = range(3)


@njit(**JIT)
def _largest(lanes, i):
    top = lanes[i, 0, 0]
    for lane in range(1, lanes.shape[2]):
        if lanes[i, 0, lane] > top:
            top = lanes[i, 0, lane]
    return top


@njit(**JIT)
def _rescale(i, factor, wide, deep):
    for c in range(wide.shape[1]):
        for lane in range(wide.shape[2]):
            wide[i, c, lane] *= factor
    for c in range(deep.shape[1]):
        deep[i, c] *= factor


@njit(**JIT)
def _follow(i, lanes, shift, seen, wide, deep):
    """Move the shift of query ``i`` to the largest exponent, where it must; returns whether it did."""
    top = _largest(lanes, i)
    if top == -math.inf or (seen[i] and not top > HEADROOM):
        return False
    if seen[i]:
        _rescale(i, math.exp2(-np.float64(top)), wide, deep)
    seen[i] = True
    shift[i] += top
    return top != 0.0


@njit(**JIT)
def _add_values(how, weights, row_values, panel_values, first, count, lanes, rows):
    b = weights.shape[0]
    if how == LANES:
        c, p = 0, panel_values.shape[1]
        while c < p:
            for i in range(0, b, ROWS):
                if c + COLUMN_VECTORS <= p:
                    lane_sums(COLUMN_VECTORS, weights, i, panel_values, first, count, c, lanes)
                else:
                    lane_sums(1, weights, i, panel_values, first, count, c, lanes)
            c += COLUMN_VECTORS if c + COLUMN_VECTORS <= p else 1
    else:
        c, p, width = 0, row_values.shape[1], lanes.shape[2]
        while c < p:
            for i in range(0, b, VALUE_ROWS):
                if c + COLUMN_VECTORS * width <= p:
                    row_sums(COLUMN_VECTORS, weights, i, row_values, first * PANEL, count * PANEL, c, rows)
                else:
                    row_sums(1, weights, i, row_values, first * PANEL, count * PANEL, c, rows)
            c += COLUMN_VECTORS * width if c + COLUMN_VECTORS * width <= p else width


@njit(**JIT)
def sweep_block(
    weigh,
    how,
    queries,
    slope,
    panels,
    bias,
    factors,
    panel_values,
    row_values,
    n_lanes,
    tiles,
    per_tile,
    shift,
    total,
    sums,
):
    """:func:`fused_sweep` for queries whose sums and weights stay in the second-level cache."""
    b, dtype = queries.shape[0], queries.dtype
    in_kernel = panel_values.shape[1] if how == IN_KERNEL else 0
    on_lanes = panel_values.shape[1] if how == LANES else 0
    lanes = np.zeros((b, 2 + in_kernel, n_lanes), dtype)
    padded = (b + GROUP - 1) // GROUP * GROUP
    weights = np.zeros((padded if how != IN_KERNEL else 0, per_tile * PANEL), dtype)
    tile_lanes = np.zeros((padded, on_lanes, n_lanes), dtype)
    tile_rows = np.zeros((padded, row_values.shape[1]), dtype)
    wide = np.zeros((b, 1 + panel_values.shape[1], n_lanes))
    deep = np.zeros((b, row_values.shape[1]))
    near = np.zeros(b, dtype)
    seen, lost = np.zeros(b, np.bool_), np.zeros(b, np.bool_)
    for i in range(b):
        lost[i] = math.isnan(shift[i])
        if shift[i] > -math.inf:
            near[i], seen[i], wide[i, 0, 0] = shift[i], True, total[i]
            for c in range(sums.shape[1]):
                if how == ROW_BY_ROW:
                    deep[i, c] = sums[i, c]
                else:
                    wide[i, 1 + c, 0] = sums[i, c]
    for tile in tiles:
        first = tile * per_tile
        count = min(per_tile, panels.shape[0] - first)
        for i in range(0, b, ROWS):
            if not seen[i]:  # a first look at one panel, so that the tile is not done twice
                call(
                    weigh, queries, i, panels, first, 1, bias, slope, near, factors, panel_values, lanes, weights
                )
                for r in range(i, i + ROWS):
                    _follow(r, lanes, near, seen, wide, deep)
            again, tries = True, 0
            while again and tries < TRIES:
                tries += 1
                call(
                    weigh, queries, i, panels, first, count, bias, slope, near, factors, panel_values, lanes, weights
                )
                again = False
                for r in range(i, i + ROWS):
                    again |= _follow(r, lanes, near, seen, wide, deep)
            if again:  # exponents so large that one unit in their last place is beyond the headroom
                for r in range(i, i + ROWS):
                    lost[r] |= not _largest(lanes, r) <= HEADROOM
            for r in range(i, i + ROWS):
                for c in range(1 + in_kernel):
                    for lane in range(n_lanes):
                        wide[r, c, lane] += lanes[r, 1 + c, lane]
        if how != IN_KERNEL:
            _add_values(how, weights, row_values, panel_values, first, count, tile_lanes, tile_rows)
            for i in range(b):
                for c in range(on_lanes):
                    for lane in range(n_lanes):
                        wide[i, 1 + c, lane] += tile_lanes[i, c, lane]
                        tile_lanes[i, c, lane] = 0
                for c in range(tile_rows.shape[1]):
                    deep[i, c] += tile_rows[i, c]
                    tile_rows[i, c] = 0
    for i in range(b):
        shift[i] = near[i] if seen[i] else -math.inf
        total[i] = 0.0
        for lane in range(n_lanes):
            total[i] += wide[i, 0, lane]
        if lost[i] or (seen[i] and not total[i] >= 0.5):  # the largest weight is at least 1, but for rounding
            shift[i] = math.nan
        for c in range(sums.shape[1]):
            sums[i, c] = 0.0
            if how == ROW_BY_ROW:
                sums[i, c] = deep[i, c]
            else:
                for lane in range(n_lanes):
                    sums[i, c] += wide[i, 1 + c, lane]



@njit(**JIT)
def fused_sweep(
    weigh,
    how,
    queries,
    slope,
    panels,
    bias,
    factors,
    panel_values,
    row_values,
    n_lanes,
    tiles,
    per_tile,
    shift,
    total,
    sums,
):
    """Add the samples of some tiles to the sums of some queries.

    Parameters
    ----------
    weigh : int
        Address of the fused kernel.
    how : int
        ``IN_KERNEL``, ``LANES`` or ``ROW_BY_ROW``.
    queries : array, shape (b, d)
        b a multiple of ROWS.
    slope : array, shape (b,)
    panels, bias : arrays, shapes (panels, d, PANEL) and (panels, PANEL)
    factors : array, shape (d,)
    panel_values : array, shape (panels, p, PANEL)
    row_values : array, shape (panels * PANEL, p to the next W)
        Only one of both is filled, by ``how``; the other is empty.
    n_lanes : int
        W.
    tiles : array of int64
        Numbers of the tiles, in the order of their visit; a tile is ``per_tile`` panels.
    shift, total : arrays of float64, shape (b,)
        ``shift`` in powers of two; -inf before the first weight, NaN where the exponents are too large for this kernel.
    sums : array of float64, shape (b, >= p)
    """
    for start in range(0, queries.shape[0], BLOCK):
        some = slice(start, min(start + BLOCK, queries.shape[0]))
        sweep_block(
            weigh,
            how,
            queries[some],
            slope[some],
            panels,
            bias,
            factors,
            panel_values,
            row_values,
            n_lanes,
            tiles,
            per_tile,
            shift[some],
            total[some],
            sums[some],
        )


made_from(fused_sweep, exponential, panels, values, vectors)
