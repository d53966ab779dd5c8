r"""The loop of the gradient: for a tile of samples and each query, weigh, then go back through the kernel's steps.

A query's mean y has :math:`\partial L/\partial w_j = s_j\,c^\top(v_j - y)/Z` for the weight of sample j, with the
cotangent c, multiplicities s and the sum of weights Z. The chain rule through sums and products needs, for each step k
of the program, only how much the weight changes with it: its *cofactor* :math:`\partial w/\partial k`, kept as a
logarithm where weights are. So nothing is divided by a weight, and what a compact factor does at its edge stays finite.

Sums over the samples are kept for each query, sums over the queries for each sample, and those over both (bandwidths)
beside them. A task has some of the samples, and meets all queries in their order.

What is done for a step is some parts (:func:`parts_of`), each compiled for that kind of step alone. All get the same
arguments: the record of everything, the number of the step, a query, a number (of queries from that one on while
weighing, of the query among those on the way back), the tile's first panel, and how many panels and samples it has.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import types

from ..kernels.logarithm import log1p
from .exponential import exp, exp_negative
from .panels import PANEL, zeros
from .parts import INTEGER_ROWS, INTEGERS, ONE, THREE, TWO, address, call, inner, part
from .program import (
    ADD,
    COLUMN_COUNT,
    COLUMN_START,
    CONSTANT,
    DISTANCE,
    DOT,
    EXTRA,
    HOLLOW,
    MULTIPLY,
    NECESSARY,
    NEIGHBORS,
    NUMBER_START,
    OFFSETS,
    PAST,
    PROGRAM,
    QUERY_SLOT,
    RUN,
    SAMPLE_SLOT,
    STEP,
    TABLE,
    VON_MISES,
    Program,
    Tile,
    is_empty,
    measure,
    place_of_offset,
    to_logarithms,
    weigh,
)
from .records import Record, run, whole
from .sweep import row_product, row_sum
from .vectors import ROWS

# What the gradient knows of a step beside the program: its operands, whether it needs the slope of its profile and the
# pull of its distance, and where its sums stand (-1: nowhere)
LEFT, RIGHT, SLOPE, PULL, QUERY_PLACE, SAMPLE_PLACE, QUERY_WIDTH, SAMPLE_WIDTH, PLACE, BY_COLUMN = range(10)
#: Whether a leaf gives a logarithm that is only multiplied: its derivative is that by the whole weight's logarithm.
WHOLE = 10
NODE_WIDTH = 11
#: Steps of the program that are taken as they are.
COMPILED = (DOT, VON_MISES, NEIGHBORS, TABLE, PAST, OFFSETS, CONSTANT)
#: Where ``Walk.parts`` has the slope of a step's profile; the others before it are called one after another.
SLOPE_AT = 4
#: Largest exponent of a cofactor, and largest cofactor: products with what is finite stay so.
MOST, LARGEST = 600.0, 1e260
#: Rows of ``Scratch.work``: c'(v - y); derivatives by the logarithms of the weights, with multiplicities; those by the
#: weights of a leaf, or by their logarithms; two for whoever needs them.
ERROR, BY_LOG, OWED, SPARE, OTHER = range(5)


class Rows(NamedTuple):
    """The queries of a block.

    Attributes
    ----------
    queries : array, shape (b to the next multiple of ROWS, d)
    ids : array of int64, shape (b,)
    data : array, shape (slots, b)
    cotangent, means : arrays, shape (b, p)
    log_sums : array, shape (b,)
        ``inf`` for a query that has no neighbour.
    sums : array, shape (b, q)
        Filled.
    """

    queries: np.ndarray
    ids: np.ndarray
    data: np.ndarray
    cotangent: np.ndarray
    means: np.ndarray
    log_sums: np.ndarray
    sums: np.ndarray


class Samples(NamedTuple):
    """The samples of a task.

    Attributes
    ----------
    panels : array, shape (panels, d, PANEL)
    ids : array of int64, shape (n,)
    data : array, shape (slots, n)
    multiplicity : array, shape (panels * PANEL,) or (0,)
        Or its logarithm; all 1 where empty.
    values : array, shape (panels, p, PANEL)
    sums : array, shape (panels, s, PANEL)
        First those by the values, then that by the multiplicity; updated.
    numbers : array
        Sums over queries and samples, updated.
    """

    panels: np.ndarray
    ids: np.ndarray
    data: np.ndarray
    multiplicity: np.ndarray
    values: np.ndarray
    sums: np.ndarray
    numbers: np.ndarray


class Scratch(NamedTuple):
    """Weights of all steps, their squared distances, cofactors, and rows."""

    tape: np.ndarray
    squared: np.ndarray
    cofactors: np.ndarray
    work: np.ndarray
    pull: np.ndarray


def make_scratch(steps: int, d: int, per_tile: int) -> Scratch:
    """For tiles of ``per_tile`` panels."""
    size = per_tile * PANEL
    shapes = (steps, ROWS, size), (steps, ROWS, size), (steps, size), (5, size), (d + 3, size)
    return Scratch(*map(zeros, shapes))


class Walk(NamedTuple):
    """What the loop works on.

    Attributes
    ----------
    program : Program
    nodes : array of int64, shape (k, NODE_WIDTH)
        For each step.
    parts : array of int64, shape (k, 5)
        What :func:`parts_of` gives for each step.
    empty, of_values : int
        Addresses of :func:`_empty`, or 0, and of :func:`_values_address`.
    rows : Rows
    samples : Samples
    masks : array of bool, shape (masks, b, n)
    scratch : Scratch
    per_tile : int
    """

    program: Program
    nodes: np.ndarray
    parts: np.ndarray
    empty: int
    of_values: int
    rows: Rows
    samples: Samples
    masks: np.ndarray
    scratch: Scratch
    per_tile: int


_INT = types.int64
WALK = Record(
    types.NamedTuple(
        (
            *(PROGRAM, INTEGER_ROWS, INTEGER_ROWS, _INT, _INT),
            types.NamedTuple((TWO, INTEGERS, TWO, TWO, TWO, ONE, TWO), Rows),
            types.NamedTuple((THREE, INTEGERS, TWO, ONE, THREE, THREE, ONE), Samples),
            types.Array(types.bool_, 3, "C"),
            types.NamedTuple((THREE, THREE, TWO, TWO, TWO), Scratch),
            _INT,
        ),
        Walk,
    )
)
STEP_PART = (WALK, *6 * [types.intp])


@inner
def _tile(walk, first, count, size):
    samples = walk.samples
    return Tile(samples.panels, first, count, size, samples.ids, samples.data, walk.masks)


@part
def _empty(walk, k, i, rows, first, count, size):
    return is_empty(whole(walk.program), walk.rows.queries, i, rows, _tile(walk, first, count, size))


# -- weights -----------------------------------------------------------------------------------------------------------


@part
def _weigh_leaf(walk, k, i, rows, first, count, size):
    program, queries, scratch = walk.program, walk.rows, walk.scratch
    return call(
        program.steps[k, RUN],
        whole(program),
        program.steps[k],
        queries.queries,
        queries.ids,
        queries.data,
        i,
        rows,
        _tile(walk, first, count, size),
        scratch.tape,
        k,
        scratch.work[SPARE],
    )


@lru_cache
def _distance_address(convert: bool) -> int:
    """The same for a distance, which keeps the squares; ``convert``: its profile gives weights among logarithms."""

    @part
    def weigh_distance(walk, k, i, rows, first, count, size):
        program, tile, scratch = whole(walk.program), _tile(walk, first, count, size), walk.scratch
        step, squared, weights = program.steps[k], scratch.squared[k], scratch.tape[k]
        measure(program, step, walk.rows.queries, i, rows, tile, squared, scratch.work[SPARE])
        for r in range(rows):
            for j in range(count * PANEL):
                weights[r, j] = squared[r, j]
        weigh(program, step, walk.rows.data, i, rows, tile, weights)
        if convert:
            to_logarithms(rows, count * PANEL, weights)
        return 0

    return address(weigh_distance, *STEP_PART)


@lru_cache
def _weigh_address(kind: int, log: bool) -> int:
    """Address of the part that fills ``scratch.tape[k]`` with the weights after a step, for some queries."""
    if kind <= CONSTANT:
        return address(_weigh_leaf, *STEP_PART)
    zero = -math.inf if log else 0.0
    plus, times, hollow = kind == ADD, kind == MULTIPLY, kind == HOLLOW

    @part
    def combine(walk, k, i, rows, first, count, size):
        tape, left, right = walk.scratch.tape, walk.nodes[k, LEFT], walk.nodes[k, RIGHT]
        offset = first * PANEL
        for r in range(rows):
            row, a = tape[k, r], tape[left, r]
            if plus or times:
                b = tape[right, r]
                for j in range(count * PANEL):
                    if times:
                        row[j] = a[j] + b[j] if log else a[j] * b[j]
                    elif log:
                        high, low = (a[j], b[j]) if a[j] > b[j] else (b[j], a[j])
                        both = high + log1p(exp_negative(low - high))
                        row[j] = both if high > -math.inf else high
                    else:
                        row[j] = a[j] + b[j]
            elif hollow:
                ids, own = walk.samples.ids, walk.rows.ids[i + r]
                for j in range(size):
                    row[j] = zero if ids[offset + j] == own else a[j]
            else:
                mask = walk.masks[walk.program.steps[k, EXTRA], i + r]
                for j in range(size):
                    row[j] = a[j] if mask[offset + j] else zero
        return 0

    return address(combine, *STEP_PART)


# -- and back ----------------------------------------------------------------------------------------------------------


@lru_cache
def _values_address(log: bool, copies: bool) -> int:
    """Address of the part that adds the derivatives by the values and multiplicities of the samples.

    Leaves in the scratch c'(v - y), the derivatives by the logarithms of the weights, and the last step's cofactor.
    """
    zero = -math.inf if log else 0.0

    @part
    def of_values(walk, k, i, r, first, count, size):
        scratch, rows, samples = walk.scratch, walk.rows, walk.samples
        n, offset, p = count * PANEL, first * PANEL, rows.means.shape[1]
        weights, cofactor, work = scratch.tape[k, r], scratch.cofactors[k], scratch.work
        error, by_log, share = work[ERROR], work[BY_LOG], work[SPARE]
        cotangent, means = rows.cotangent[i + r], rows.means[i + r]
        values, sums = samples.values, samples.sums
        log_sum = rows.log_sums[i + r]
        start = -log_sum if log else min(math.exp(min(-log_sum, MOST)), LARGEST)
        for j in range(n):
            error[j] = 0.0
        for t in range(count):
            for c in range(p):
                slope, middle, v = cotangent[c], means[c], values[first + t, c]
                for j in range(PANEL):
                    error[t * PANEL + j] += slope * (v[j] - middle)
        # loops of few arrays each: those are the ones that the compiler turns into vectors
        for j in range(n):
            cofactor[j] = start
            share[j] = exp(min(weights[j] + start, MOST)) if log else weights[j] * start
        for j in range(size, n):
            error[j] = share[j] = 0.0
            cofactor[j] = zero
        for t in range(count):
            mine = sums[first + t, p]
            for j in range(PANEL):
                by_log[t * PANEL + j] = share[t * PANEL + j] * error[t * PANEL + j]
                mine[j] += by_log[t * PANEL + j]
        if copies:
            multiplicity = samples.multiplicity
            for j in range(size):
                number = multiplicity[offset + j]
                cofactor[j] = cofactor[j] + number if log else cofactor[j] * number
            for j in range(size):
                share[j] = exp(min(weights[j] + cofactor[j], MOST)) if log else weights[j] * cofactor[j]
                by_log[j] = share[j] * error[j]
        for t in range(count):
            for c in range(p):
                slope, mine = cotangent[c], sums[first + t, c]
                for j in range(PANEL):
                    mine[j] += share[t * PANEL + j] * slope
        return 0

    return address(of_values, *STEP_PART)


@lru_cache
def _share_address(kind: int, log: bool) -> int:
    """Address of the part that gives the operands of a step their cofactors, from the step's own."""
    zero = -math.inf if log else 0.0
    plus, times, hollow = kind == ADD, kind == MULTIPLY, kind == HOLLOW

    @part
    def share_out(walk, k, i, r, first, count, size):
        tape, cofactors = walk.scratch.tape, walk.scratch.cofactors
        left, right = walk.nodes[k, LEFT], walk.nodes[k, RIGHT]
        own, a, n = cofactors[k], cofactors[left], count * PANEL
        offset = first * PANEL
        if plus:
            b = cofactors[right]
            for j in range(n):
                a[j] = b[j] = own[j]
        elif times:
            b, x, y = cofactors[right], tape[left, r], tape[right, r]
            for j in range(n):
                if log:
                    a[j], b[j] = own[j] + y[j], own[j] + x[j]
                else:
                    a[j], b[j] = own[j] * y[j], own[j] * x[j]
        else:
            for j in range(size, n):
                a[j] = own[j]
            if hollow:
                ids, query = walk.samples.ids, walk.rows.ids[i + r]
                for j in range(size):
                    a[j] = zero if ids[offset + j] == query else own[j]
            else:
                mask = walk.masks[walk.program.steps[k, EXTRA], i + r]
                for j in range(size):
                    a[j] = own[j] if mask[offset + j] else zero
        return 0

    return address(share_out, *STEP_PART)


@lru_cache
def _owed_address(log: bool, logarithm: bool, whole: bool) -> int:
    """Address of the part that makes ``OWED`` of a leaf's cofactor.

    That is by the logarithm of the leaf's weight if it gives that, or else by the weight.
    """

    @part
    def owed(walk, k, i, r, first, count, size):
        work, n = walk.scratch.work, count * PANEL
        error, out = work[BY_LOG if whole else ERROR], work[OWED]
        weights, cofactor = walk.scratch.tape[k, r], walk.scratch.cofactors[k]
        for j in range(n):
            if whole:
                out[j] = error[j]
            elif logarithm:
                out[j] = exp(min(weights[j] + cofactor[j], MOST)) * error[j]
            elif log:
                out[j] = exp(min(cofactor[j], MOST)) * error[j]
            else:
                out[j] = cofactor[j] * error[j]
        return 0

    return address(owed, *STEP_PART)


@lru_cache
def _profile_address(by_sample: bool) -> int:
    """Address of the part that goes back through a profile: from ``OWED`` to the derivatives by squared distances.

    ``by_sample``: whether each sample has a bandwidth of its own.
    """

    @part
    def of_profile(walk, k, i, r, first, count, size):
        steps, nodes, numbers, work = walk.program.steps, walk.nodes, walk.program.numbers, walk.scratch.work
        n, offset, start = count * PANEL, first * PANEL, steps[k, NUMBER_START]
        squared, b, s, slope = walk.scratch.squared[k, r], work[OWED], work[SPARE], work[OTHER]
        width, slot = numbers[start + 1], steps[k, QUERY_SLOT]
        if slot >= 0:
            width *= walk.rows.data[slot, i + r]
        inverse = 1.0 / width
        if by_sample:
            widths = walk.samples.data[steps[k, SAMPLE_SLOT]]
            for j in range(n):
                s[j] = squared[j] * inverse
            for j in range(size):
                s[j] /= widths[offset + j]
        for j in range(n):
            scaled = s[j] if by_sample else squared[j] * inverse
            # at distance 0 no derivative of a distance is looked at
            some = (b[j] != 0.0) & (scaled > 0.0) & (scaled < math.inf) & (squared[j] < math.inf)
            b[j] = b[j] if some else 0.0
            s[j] = scaled if some else 1.0
            squared[j] = squared[j] if some else 1.0
        call(walk.parts[k, SLOPE_AT], s, n, numbers[start], slope)
        for j in range(n):
            by_log = b[j] * slope[j]
            slope[j], b[j] = by_log * s[j], by_log * inverse
        total = row_sum(slope, n)
        if nodes[k, PLACE] >= 0 and nodes[k, BY_COLUMN] == 0:
            walk.samples.numbers[nodes[k, PLACE]] += total
        if nodes[k, QUERY_WIDTH] >= 0:
            walk.rows.sums[i + r, nodes[k, QUERY_WIDTH]] += total
        if by_sample:
            place = nodes[k, SAMPLE_WIDTH]
            if place >= 0:
                for t in range(count):
                    mine = walk.samples.sums[first + t, place]
                    for j in range(PANEL):
                        mine[j] += slope[t * PANEL + j]
            for j in range(size):
                b[j] /= widths[offset + j]
        return 0

    return address(of_profile, *STEP_PART)


@lru_cache
def _leaf_address(kind: int) -> int:
    """Address of the part that goes back through a leaf that looks at no distance."""
    table, offsets, product = kind == TABLE, kind == OFFSETS, kind == DOT

    @part
    def of_leaf(walk, k, i, r, first, count, size):
        steps, b, panels = walk.program.steps, walk.scratch.work[OWED], walk.samples.panels
        columns, place = walk.program.columns[steps[k, COLUMN_START] :], walk.nodes[k, PLACE]
        q, sums, numbers = walk.rows.queries[i + r], walk.samples.sums, walk.samples.numbers
        if table:
            line = place + int(q[columns[0]]) * steps[k, EXTRA]
            for j in range(size):
                numbers[line + int(panels[first + j // PANEL, columns[0], j % PANEL])] += b[j]
        elif offsets:
            step, known = steps[k], walk.program.numbers
            for j in range(size):
                offset = q[columns[0]] - panels[first + j // PANEL, columns[0], j % PANEL]
                numbers[place + place_of_offset(step, known, offset)] += b[j]
        else:
            factor = walk.program.numbers[steps[k, NUMBER_START]]
            if place >= 0:
                weights, total = walk.scratch.tape[k, r], 0.0
                for j in range(count * PANEL):
                    total += b[j] * weights[j] if b[j] != 0.0 else 0.0
                numbers[place] += total
            if walk.nodes[k, QUERY_PLACE] >= 0:
                for c in range(steps[k, COLUMN_COUNT]):
                    at, total = q[columns[c]], 0.0
                    for t in range(count):
                        x, own = panels[first + t, columns[c]], b[t * PANEL : (t + 1) * PANEL]
                        mine = sums[first + t, walk.nodes[k, SAMPLE_PLACE] + c]
                        if product:
                            for j in range(PANEL):
                                mine[j] += own[j] * factor * at
                            total += factor * row_product(own, x, PANEL)
                        else:
                            for j in range(PANEL):
                                turn = own[j] * factor * math.sin(at - x[j])
                                total -= turn
                                mine[j] += turn
                    walk.rows.sums[i + r, walk.nodes[k, QUERY_PLACE] + c] += total
        return 0

    return address(of_leaf, *STEP_PART)


# -- the loop ----------------------------------------------------------------------------------------------------------


def parts_of(step: np.ndarray, node: np.ndarray, log: bool, pull: int, slope: int) -> list[int]:
    """The parts of a step, a line of ``Walk.parts``: weigh; on the way back share out, or owe, leaf and pull; slope."""
    kind, whole = int(step[STEP]), bool(node[WHOLE])
    distance = kind == DISTANCE
    weigh = _distance_address(log and not step[EXTRA]) if distance else _weigh_address(kind, log)
    parts = [weigh, 0, 0, 0, slope]
    if kind > CONSTANT:
        parts[1] = 0 if whole else _share_address(kind, log)
    elif node[SLOPE] or node[[QUERY_PLACE, PLACE]].max() >= 0:
        logarithm = kind in (DOT, VON_MISES, OFFSETS) or (distance and step[EXTRA] & 1)
        parts[1] = _owed_address(log, bool(logarithm and not whole), whole)
        parts[2] = _profile_address(bool(step[SAMPLE_SLOT] >= 0)) if distance else _leaf_address(kind)
        parts[3] = pull
    return parts


def addresses(program: Program, copies: bool) -> dict[str, int]:
    """The parts that :class:`Walk` names; ``copies``: whether there are multiplicities."""
    return {
        "empty": address(_empty, *STEP_PART) if program.steps[:, NECESSARY].any() else 0,
        "of_values": _values_address(program.log, copies),
    }


@part
def _walk_back(walk):
    parts, steps, log_sums = walk.parts, walk.parts.shape[0], walk.rows.log_sums
    panels, per_tile, queries = walk.samples.panels.shape[0], walk.per_tile, walk.rows.ids.size
    for first in range(0, panels, per_tile):
        count = min(per_tile, panels - first)
        size = min(count * PANEL, walk.samples.ids.size - first * PANEL)
        for i in range(0, queries, ROWS):
            rows = min(ROWS, queries - i)
            if walk.empty and call(walk.empty, walk, 0, i, rows, first, count, size):
                continue
            for k in range(steps):
                call(parts[k, 0], walk, k, i, rows, first, count, size)
            for r in range(rows):
                if log_sums[i + r] == math.inf:
                    continue
                call(walk.of_values, walk, steps - 1, i, r, first, count, size)
                for k in range(steps - 1, -1, -1):
                    for way in range(1, SLOPE_AT):
                        if parts[k, way]:
                            call(parts[k, way], walk, k, i, r, first, count, size)
    return 0


def walk_back(walk: Walk) -> None:
    """Add a block of queries and the samples of a task to the sums of the gradient."""
    run(address(_walk_back, WALK), WALK, walk)
