"""The fused path: local means and log-sums of the products that ``leaf`` knows, tile by tile.

A block of queries walks the tiles. For each tile and each four queries the fused kernel (:mod:`locbook.engine.fused`)
gives the weights, or already their sums; many columns of values are then summed by a value kernel
(:mod:`locbook.engine.values`). The kernels sum in the dtype of the tile, over at most some hundred samples a lane (1536
where lanes are columns of values); between tiles all sums are float64.

The shift of a query is the largest exponent when it was last looked at. It is moved only when a tile holds an exponent
beyond :data:`HEADROOM` above it: the tile is then done again. So weights are at most 2^HEADROOM, and no sum overflows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .panels import PANEL
from .parts import call, inner, jit
from .terms import ALL, AT_ONCE, NOBODY, SOME, Rule
from .vectors import ROWS, VALUE_ROWS

#: Queries whose sums and weights are kept at once; both kernels divide it.
BLOCK = 8 * math.lcm(ROWS, VALUE_ROWS)
#: How far, in powers of two, an exponent may lie above the shift.
HEADROOM = 20.0
#: How often a tile is done at most.
TRIES = 3


class Samples(NamedTuple):
    """A chunk of samples, and how it is weighed.

    Attributes
    ----------
    weigh, weigh_some, add, prepare : int
        Addresses: of the fused kernel, the same for a tile of which only some take part, the value kernel, and
        :func:`locbook.engine.terms.prepare_address`; the last two 0 where the fused kernel sums the values, and where
        it finds all weights, itself.
    rule : Rule
    panels, bias : arrays, shapes (panels, d, PANEL) and (panels, PANEL)
        The bias of weights that have no shift is their multiplicity.
    factors : array, shape (d,)
    values : array, shape (panels, p, PANEL), or (panels, PANEL, p to the next W)
        By the value kernel.
    by_row : bool
        Whether it is the latter.
    """

    weigh: int
    weigh_some: int
    add: int
    prepare: int
    rule: Rule
    panels: np.ndarray
    bias: np.ndarray
    factors: np.ndarray
    values: np.ndarray
    by_row: bool


class Scratch(NamedTuple):
    """Room for a block; W lanes a sum, a slot for each column of values or for W of them.

    ``lanes``, ``weights``, ``tile_sums``: of one tile, in its dtype, filled by the kernels. ``work``: of four
    queries, for ``prepare``. ``takes_part``, ``who``: of AT_ONCE, filled by it; where nothing is prepared ``who`` stays
    ALL. ``sums``: in float64, the
    sum of the weights, then the slots. ``shift``: in the dtype of the tile. ``has_shift``: whether a query has met a
    weight. ``lost``: whether this path fails it.
    """

    lanes: np.ndarray
    weights: np.ndarray
    work: np.ndarray
    takes_part: np.ndarray
    who: np.ndarray
    tile_sums: np.ndarray
    sums: np.ndarray
    shift: np.ndarray
    has_shift: np.ndarray
    lost: np.ndarray


def make_scratch(samples: Samples, per_tile: int, n_lanes: int) -> Scratch:
    """For tiles of ``per_tile`` panels and vectors of ``n_lanes`` numbers."""
    dtype = samples.panels.dtype
    slots = samples.values.shape[2] // n_lanes if samples.by_row else samples.values.shape[1]
    apart = samples.add != 0
    prepared, terms = samples.prepare != 0, samples.rule.scores.size
    stored = apart or (prepared and terms > 0)
    return Scratch(
        np.zeros((BLOCK, 2 if apart else 2 + slots, n_lanes), dtype),
        np.zeros((BLOCK if stored else 0, per_tile * PANEL), dtype),
        np.zeros((ROWS if terms > 1 else 0, per_tile * PANEL), dtype),
        np.zeros((AT_ONCE if prepared else 0, per_tile * PANEL), np.bool_),
        np.full(AT_ONCE // ROWS, ALL),
        np.zeros((BLOCK, slots if apart else 0, n_lanes), dtype),
        np.zeros((BLOCK, 1 + slots, n_lanes)),
        np.zeros(BLOCK, dtype),
        np.zeros(BLOCK, np.bool_),
        np.zeros(BLOCK, np.bool_),
    )


@inner
def _largest(lanes, i):
    top = lanes[i, 0, 0]
    for lane in range(1, lanes.shape[2]):
        if lanes[i, 0, lane] > top:
            top = lanes[i, 0, lane]
    return top


@inner
def _follow(i, lanes, sums, shift, has_shift):
    """Move the shift of query ``i`` to the largest exponent, where it must; returns whether it did.

    Exponents are beyond the shift: at the first weight, from a shift of 0, the largest itself.
    """
    top = _largest(lanes, i)
    if top == -math.inf or (has_shift[i] and not top > HEADROOM):
        return False
    if has_shift[i]:
        factor = math.exp2(-np.float64(top))
        for c in range(sums.shape[1]):
            for lane in range(sums.shape[2]):
                sums[i, c, lane] *= factor
    has_shift[i] = True
    shift[i] += top
    return top != 0.0


@inner
def _begin(start, b, by_row, shift, total, sums, block_shift, block_sums, has_shift, lost):
    """Take the sums so far into the first lane."""
    n_lanes = block_sums.shape[2]
    for i in range(BLOCK):
        known = i < b and shift[start + i] > -math.inf
        has_shift[i] = known
        lost[i] = i < b and math.isnan(shift[start + i])
        block_shift[i] = shift[start + i] if known else 0.0
        for slot in range(block_sums.shape[1]):
            for lane in range(n_lanes):
                block_sums[i, slot, lane] = 0.0
        if known:
            block_sums[i, 0, 0] = total[start + i]
            for slot in range(block_sums.shape[1] - 1):
                at = slot * n_lanes
                if by_row:
                    for lane in range(min(n_lanes, sums.shape[1] - at)):
                        block_sums[i, 1 + slot, lane] = sums[start + i, at + lane]
                else:
                    block_sums[i, 1 + slot, 0] = sums[start + i, slot]


@inner
def _end(start, b, by_row, least, shift, total, sums, block_shift, block_sums, has_shift, lost):
    """Give the sums back, their lanes added up. The sum of the weights is ``least`` or more, where there are any."""
    n_lanes = block_sums.shape[2]
    for i in range(b):
        k = start + i
        total[k] = 0.0
        for lane in range(n_lanes):
            total[k] += block_sums[i, 0, lane]
        for slot in range(block_sums.shape[1] - 1):
            at = slot * n_lanes
            if by_row:
                for lane in range(min(n_lanes, sums.shape[1] - at)):
                    sums[k, at + lane] = block_sums[i, 1 + slot, lane]
            else:
                sums[k, slot] = 0.0
                for lane in range(n_lanes):
                    sums[k, slot] += block_sums[i, 1 + slot, lane]
        shift[k] = block_shift[i] if has_shift[i] else -math.inf
        if lost[i] or (has_shift[i] and not total[k] >= least):
            shift[k] = math.nan


@jit
def fused_sweep(samples, queries, slope, of_rule, block, tiles, ends, per_tile, shift, total, sums, room):
    """Add the samples of some tiles to the sums of some queries.

    Parameters
    ----------
    samples : Samples
    queries : array, shape (b to the next multiple of ROWS, d)
    slope : array, shape (b to the next multiple of ROWS,)
    of_rule : Rows
    block : int
        Queries of a block, at most BLOCK.
    tiles, ends : arrays of int64
        Numbers of the tiles that the first block visits, then the second's, and so on, and where each block's end; a
        tile is ``per_tile`` panels.
    shift, total : arrays of float64, shape (b,)
        ``shift`` in powers of two; -inf before the first weight, NaN where the exponents are too large for this kernel.
    sums : array of float64, shape (b, p)
    room : Scratch

    Returns
    -------
    int
        How many rows held values of a profile that are no weights.
    """
    weigh, weigh_some, add, prepare, rule, panels, bias, factors, values, by_row = samples
    lanes, weights, work, takes_part, who, tile_sums, block_sums, block_shift, has_shift, lost = room
    has_terms = rule.scores.size > 0
    # the largest weight is 1 or more, but for rounding; where there is no shift it may be anything
    least = 0.5 if rule.logarithmic else 0.0
    bad = 0
    for number in range(ends.size):
        start = number * block
        b = min(block, total.size - start)
        rows = (b + ROWS - 1) // ROWS * ROWS
        _begin(start, b, by_row, shift, total, sums, block_shift, block_sums, has_shift, lost)
        for k in range(ends[number - 1] if number else 0, ends[number]):
            first = tiles[k] * per_tile
            count = min(per_tile, panels.shape[0] - first)
            taken = False
            for i in range(0, rows, ROWS):
                # At first a look at one panel, only for the shift: so the tile is seldom done twice. Then the tile,
                # until no shift has moved, TRIES times at most. Each call overwrites ``lanes``; the last is added.
                # Where some may see what others do not, no look: a query's shift is to depend on no other query.
                again, tries, now = True, 0, count if has_shift[i] or prepare else min(1, count)
                place = i % AT_ONCE  # among the queries that one call prepares
                fours = min(AT_ONCE, rows - i) // ROWS if prepare and place == 0 else 0
                while again and tries < TRIES:
                    if fours:
                        bad += call(
                            prepare, rule, of_rule, queries, panels, start + i, i, fours, first, count,
                            weights, work, takes_part[place:], who[place // ROWS :],
                        )  # fmt: skip
                    found = who[place // ROWS]
                    if found == NOBODY:
                        break
                    # a kernel that stores weights does so over the log-weights of the terms
                    fours = 1 if add and has_terms else 0
                    call(
                        weigh_some if found == SOME else weigh,
                        queries, start + i, i, panels, first, now, bias, slope, block_shift, factors, values,
                        lanes, weights, takes_part[place:],
                    )  # fmt: skip
                    again = now < count
                    for r in range(i, i + ROWS):
                        again |= _follow(r, lanes, block_sums, block_shift, has_shift)
                    tries, now = tries + (now == count), count
                if found == NOBODY:
                    for r in range(i, min(i + ROWS, weights.shape[0])):
                        for j in range(count * PANEL):
                            weights[r, j] = 0
                    continue
                taken = True
                for r in range(i, i + ROWS):
                    if again:  # exponents so large that one unit in their last place is beyond the headroom
                        lost[r] |= not _largest(lanes, r) <= HEADROOM
                    for c in range(lanes.shape[1] - 1):
                        for lane in range(lanes.shape[2]):
                            block_sums[r, c, lane] += lanes[r, 1 + c, lane]
            if add and taken:
                call(add, weights, rows, values, first, count, tile_sums)
                for i in range(rows):
                    for c in range(tile_sums.shape[1]):
                        for lane in range(tile_sums.shape[2]):
                            block_sums[i, 1 + c, lane] += tile_sums[i, c, lane]
                            tile_sums[i, c, lane] = 0
        _end(start, b, by_row, least, shift, total, sums, block_shift, block_sums, has_shift, lost)
    return bad
