"""The fused path: local means and log-sums of the products that ``leaf`` knows, tile by tile.

Blocks of queries visit the tiles. For each tile and each four queries the fused kernel (:mod:`locbook.engine.fused`)
gives the weights, or already their sums; many columns of values are then summed by a value kernel
(:mod:`locbook.engine.values`). The kernels sum in the dtype of the tile, over at most some hundred samples a lane (1536
where lanes are columns of values); between tiles all sums are float64.

The shift of a query is the largest exponent when it was last looked at. It is moved only when a tile holds an exponent
beyond :data:`HEADROOM` above it: the tile is then done again. So weights are at most 2^HEADROOM, and no sum overflows.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from .panels import PANEL, zeros
from .parts import INTEGERS, TWO, address, array_types, call, inner, part
from .records import Record, Written, run
from .terms import ALL, AT_ONCE, NOBODY, ROWS_TYPE, SOME, rule_type
from .vectors import ROWS, VALUE_ROWS

#: Queries whose sums and weights are kept at once: a multiple of what either kernel takes at once.
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
    rule : Written or None
        The :class:`~locbook.engine.terms.Rule`, where something is prepared.
    panels, bias : arrays, shapes (panels, d, PANEL) and (panels, PANEL)
        The bias of weights that have no shift is their multiplicity.
    factors : array, shape (d,)
    values : array, shape (panels, p, PANEL), or (panels, PANEL, p to the next W)
        By the value kernel.
    by_row : bool
        Whether it is the latter.
    terms : int
        How many terms there are.
    logarithmic : bool
        Whether weights have a shift.
    """

    weigh: int
    weigh_some: int
    add: int
    prepare: int
    rule: Written | None
    panels: np.ndarray
    bias: np.ndarray
    factors: np.ndarray
    values: np.ndarray
    by_row: bool
    terms: int
    logarithmic: bool


class Queries(NamedTuple):
    """The queries of a task.

    Attributes
    ----------
    places : array, shape (rows, d)
        A multiple of ROWS; the last is there again and again.
    slope : array, shape (rows,)
    of_rule : Written or None
        What the rule needs of them, :class:`~locbook.engine.terms.Rows`.
    """

    places: np.ndarray
    slope: np.ndarray
    of_rule: Written | None


class Visits(NamedTuple):
    """Which tile is visited, and by which block, one visit after the other.

    Attributes
    ----------
    tiles, blocks : arrays of int64
    per_tile, per_block : int
        Panels of a tile, and queries of a block, at most BLOCK.
    """

    tiles: np.ndarray
    blocks: np.ndarray
    per_tile: int
    per_block: int


class Scratch(NamedTuple):
    """Room for a block; W lanes a sum, a slot for each column of values or for W of them.

    ``lanes``, ``weights``, ``tile_sums``: of one tile, in its dtype, filled by the kernels. ``work``: of four
    queries, for ``prepare``. ``takes_part``, ``who``: of AT_ONCE, filled by it; where nothing is prepared ``who`` stays
    ALL.
    """

    lanes: np.ndarray
    weights: np.ndarray
    work: np.ndarray
    takes_part: np.ndarray
    who: np.ndarray
    tile_sums: np.ndarray


class State(NamedTuple):
    """What is known of the queries of a task so far; ``rows`` are these to the next multiple of ROWS.

    Attributes
    ----------
    sums : array of float64, shape (rows, (1 + slots) W)
        The sum of the weights, then those of the slots.
    shift : array, shape (rows,)
        In the dtype of the tile.
    has_shift, lost : arrays of bool, shape (rows,)
        Whether a query has met a weight, and whether this path fails it.
    """

    sums: np.ndarray
    shift: np.ndarray
    has_shift: np.ndarray
    lost: np.ndarray


class Walk(NamedTuple):
    """All that the loop works on; ``look`` and ``keep`` are the addresses of ``_look`` and ``_keep``, or 0."""

    samples: Samples
    queries: Queries
    visits: Visits
    state: State
    room: Scratch
    look: int
    keep: int


@cache
def walk_type(dtype: str) -> Record:
    """Numba's type of :class:`Walk`."""
    one, two, three = array_types(dtype)
    flags = [types.Array(types.bool_, k, "C") for k in (1, 2)]
    kinds = {
        Samples: (*4 * [types.int64], rule_type(dtype), three, two, one, three, *3 * [types.int64]),
        Queries: (two, one, ROWS_TYPE),
        Visits: (INTEGERS, INTEGERS, types.int64, types.int64),
        State: (TWO, one, flags[0], flags[0]),
        Scratch: (three, two, two, flags[1], INTEGERS, three),
    }
    fields = [types.NamedTuple(kind, name) for name, kind in kinds.items()]
    return Record(types.NamedTuple((*fields, types.int64, types.int64), Walk))


def _slots(samples: Samples, n_lanes: int) -> int:
    return samples.values.shape[2] // n_lanes if samples.by_row else samples.values.shape[1]


def make_scratch(samples: Samples, per_tile: int, n_lanes: int) -> Scratch:
    """For tiles of ``per_tile`` panels and vectors of ``n_lanes`` numbers."""
    dtype, slots = samples.panels.dtype, _slots(samples, n_lanes)
    apart = samples.add != 0
    prepared, terms = samples.prepare != 0, samples.terms
    stored = apart or terms > 0
    return Scratch(
        lanes=zeros((BLOCK, 2 if apart else 2 + slots, n_lanes), dtype),
        weights=zeros((BLOCK if stored else 0, per_tile * PANEL), dtype),
        work=zeros((ROWS if terms > 1 else 0, per_tile * PANEL), dtype),
        takes_part=zeros((AT_ONCE if prepared else 0, per_tile * PANEL), np.bool_),
        who=np.full(AT_ONCE // ROWS, ALL),
        tile_sums=zeros((BLOCK, slots if apart else 0, n_lanes), dtype),
    )


def make_state(
    samples: Samples, rows: int, n_lanes: int, shift: np.ndarray, total: np.ndarray, sums: np.ndarray
) -> State:
    """The sums so far in the first lane, or in the lanes that are columns.

    ``shift``, ``total`` and ``sums`` are float64, of shapes (b,), (b,) and (b, p); the first is in powers of two, -inf
    before the first weight, NaN where the exponents are too large for this path.
    """
    b, p = sums.shape
    state = State(
        sums=zeros((rows, (1 + _slots(samples, n_lanes)) * n_lanes)),
        shift=np.zeros(rows, samples.panels.dtype),
        has_shift=np.zeros(rows, np.bool_),
        lost=np.zeros(rows, np.bool_),
    )
    known = shift > -np.inf
    state.has_shift[:b], state.lost[:b] = known, np.isnan(shift)
    state.shift[:b] = np.where(known, shift, 0.0)
    columns = slice(n_lanes, n_lanes + p) if samples.by_row else slice(n_lanes, None, n_lanes)
    for place, some in ((slice(1), total[:, None]), (columns, sums)):
        state.sums[:b, place] = np.where(known[:, None], some, 0.0)
    return state


def give_back(
    samples: Samples, state: State, n_lanes: int, shift: np.ndarray, total: np.ndarray, sums: np.ndarray
) -> None:
    """Fill them with what the sweep found, the lanes added up."""
    b, p = sums.shape
    found = state.sums[:b].reshape(b, -1, n_lanes)
    total[:] = found[:, 0].sum(axis=1)
    sums[:] = found[:, 1:].reshape(b, -1)[:, :p] if samples.by_row else found[:, 1:].sum(axis=2)
    # the largest weight is 1 or more, but for rounding; where there is no shift it may be anything
    least = 0.5 if samples.logarithmic else 0.0
    shift[:] = np.where(state.has_shift[:b], state.shift[:b], -np.inf)
    shift[state.lost[:b] | (state.has_shift[:b] & ~(total >= least))] = np.nan


@part
def _look(walk, start, line, fours, first, count):
    """Say of some fours of queries who takes part; returns how many rows held values that are no weights."""
    samples, room = walk.samples, walk.room
    place, who = line % AT_ONCE, room.who
    bad = call(
        samples.prepare, samples.rule, walk.queries.of_rule, walk.queries.places, samples.panels,
        start + line, line, fours, first, count, room.weights, room.work, room.takes_part[place:],
        who[place // ROWS :],
    )  # fmt: skip
    if samples.add:
        for r in range(line, line + fours * ROWS):
            for j in range(count * PANEL if who[r % AT_ONCE // ROWS] == NOBODY else 0):
                room.weights[r, j] = 0
    return bad


@part
def _keep(walk, start, rows, first, count):
    """Add the weights of a block times the values of a tile."""
    samples, room, sums = walk.samples, walk.room, walk.state.sums
    found = room.tile_sums
    call(samples.add, room.weights, rows, samples.values, first, count, found)
    # the value kernel works on VALUE_ROWS at once: what it adds up for rows that are none is forgotten
    for i in range((rows + VALUE_ROWS - 1) // VALUE_ROWS * VALUE_ROWS):
        place = found.shape[2]
        for slot in range(found.shape[1]):
            for lane in range(found.shape[2]):
                if i < rows:
                    sums[start + i, place + lane] += found[i, slot, lane]
                found[i, slot, lane] = 0
            place += found.shape[2]
    return 0


@inner
def _follow(top, k, sums, shift, has_shift):
    """Move the shift of query ``k`` to the largest exponent, where it must; returns whether it did.

    Exponents are beyond the shift: at the first weight, from a shift of 0, the largest itself.
    """
    if top == -math.inf or (has_shift[k] and not top > HEADROOM):
        return False
    if has_shift[k]:
        factor = math.exp2(-np.float64(top))
        for c in range(sums.shape[1]):
            sums[k, c] *= factor
    has_shift[k] = True
    shift[k] += top
    return top != 0.0


@inner
def _largest(lanes, i):
    top = lanes[i, 0, 0]
    for lane in range(1, lanes.shape[2]):
        if lanes[i, 0, lane] > top:
            top = lanes[i, 0, lane]
    return top


@part
def _fused_sweep(walk):
    """One visit after the other; returns what :func:`fused_sweep` does."""
    samples, visits, state, room = walk.samples, walk.visits, walk.state, walk.room
    queries, slope, panels, bias = walk.queries.places, walk.queries.slope, samples.panels, samples.bias
    factors, values, weigh, weigh_some = samples.factors, samples.values, samples.weigh, samples.weigh_some
    sums, shift, has_shift, lost = state.sums, state.shift, state.has_shift, state.lost
    lanes, weights, takes_part, who = room.lanes, room.weights, room.takes_part, room.who
    tiles, blocks, per_tile, per_block = visits.tiles, visits.blocks, visits.per_tile, visits.per_block
    look, keep, n_lanes = walk.look, walk.keep, lanes.shape[2]
    has_terms, bad = samples.terms > 0, 0
    for visit in range(tiles.size):
        start, first = blocks[visit] * per_block, tiles[visit] * per_tile
        rows = per_block if start + per_block <= queries.shape[0] else queries.shape[0] - start
        count = per_tile if first + per_tile <= panels.shape[0] else panels.shape[0] - first
        block_shift, taken = shift[start:], False
        for i in range(0, rows, ROWS):
            # At first one panel alone, only for the shift: so the tile is seldom done twice. Then the tile,
            # until no shift has moved, TRIES times at most. Each call overwrites ``lanes``; the last is added.
            # With ``look`` some may see what others do not, and the tile comes at once: a query's shift is to depend
            # on no other query. ``fours`` is how many fours are to be prepared first, 0 where they are already.
            again, tries, now = True, 0, count if has_shift[start + i] or look else 1
            place = i % AT_ONCE  # among the queries that one call prepares
            fours = 0
            if look and place == 0:
                fours = AT_ONCE // ROWS if i + AT_ONCE <= rows else (rows - i) // ROWS
            while again and tries < TRIES:
                if fours:
                    bad += call(look, walk, start, i, fours, first, count)
                found = who[place // ROWS]
                if found == NOBODY:
                    break
                # a kernel that stores weights does so over the log-weights of the terms
                fours = 1 if keep and has_terms else 0
                call(
                    weigh_some if found == SOME else weigh,
                    queries, start + i, i, panels, first, now, bias, slope, block_shift, factors, values,
                    lanes, weights, takes_part[place:],
                )  # fmt: skip
                again = now < count
                for r in range(i, i + ROWS):
                    again |= _follow(_largest(lanes, r), start + r, sums, shift, has_shift)
                tries, now = tries + (now == count), count
            if found == NOBODY:
                continue
            taken = True
            for r in range(i, i + ROWS):
                if again:  # exponents so large that one unit in their last place is beyond the headroom
                    lost[start + r] |= not _largest(lanes, r) <= HEADROOM
                for c in range(lanes.shape[1] - 1):
                    for lane in range(n_lanes):
                        sums[start + r, c * n_lanes + lane] += lanes[r, 1 + c, lane]
        if keep and taken:
            call(keep, walk, start, rows, first, count)
    return bad


def fused_sweep(samples: Samples, queries: Queries, visits: Visits, state: State, room: Scratch) -> int:
    """Add the samples of some tiles to the sums of some queries, in ``state``.

    Returns how many rows held values of a profile that are no weights.
    """
    kind = walk_type(samples.panels.dtype.name)
    some = kind, *5 * [types.intp]
    look = address(_look, *some) if samples.prepare else 0
    keep = address(_keep, *some[:-1]) if samples.add else 0
    return run(address(_fused_sweep, kind), kind, Walk(samples, queries, visits, state, room, look, keep))
