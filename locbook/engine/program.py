"""A kernel as a program: the few numbers by which compiled code knows it, and the function that runs it.

The engine lowers a kernel to a list of steps for a small stack machine (:mod:`locbook.engine.plan`). One step fills
or changes the rows of weights from four queries to a tile of samples, so the cost of choosing the step vanishes.
Steps, distances and profiles are parts (:mod:`locbook.engine.parts`), ours and the user's alike: nothing is compiled
for a new kernel, bandwidth or metric but the parts that it is the first to need.

A Gaussian is one step, ``DISTANCE``: a part fills the row with squared distances, another turns them into
log-weights. A sum of two Gaussians is ``DISTANCE, DISTANCE, ADD``: each pushes a row, and ``ADD`` leaves one.

Where any part of a kernel is of exponential type, the row holds log-weights and products are sums; else it holds
weights. A sample that does not take part has weight 0 (log-weight ``-inf``) whatever its coordinates hold.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import types

from ..kernels.logarithm import log as logarithm
from ..kernels.logarithm import log1p
from .exponential import exp_negative
from .panels import PANEL
from .parts import INTEGER_ROWS, INTEGERS, ONE, THREE, TWO, address, call, inner, part

# Steps that push a row
DISTANCE, DOT, VON_MISES, NEIGHBORS, TABLE, PAST, OFFSETS, CONSTANT = range(8)
# Steps that work on the rows pushed before
ADD, MULTIPLY, HOLLOW, MASK = range(8, 12)
STEPS = tuple(range(12))

# Columns of a step: where its columns and numbers start in those of the program, and how many; which row of the data of
# queries and samples it reads (-1: none); addresses; whether the distance takes four queries at once (scores.py);
# whether no other part can overrule it. EXTRA: the mask's number, the table's width, or 1 if a profile is logarithmic.
# RUN: the address of the part that does the step.
STEP, COLUMN_START, COLUMN_COUNT, NUMBER_START, PARAMETER_COUNT, QUERY_SLOT, SAMPLE_SLOT = range(7)
METRIC_ADDRESS, PROFILE_ADDRESS, BY_FOUR, NECESSARY, EXTRA, RUN = range(7, 13)
STEP_WIDTH = 13


class Program(NamedTuple):
    """What compiled code needs to weigh a pair.

    Attributes
    ----------
    steps : array of int64, shape (k, STEP_WIDTH)
    columns : array of int64
        Column numbers of all steps, end to end.
    numbers : array of float64
        Bandwidths, shape parameters, tables of all steps, end to end.
    log : bool
        Whether rows hold log-weights.
    depth : int
        Rows of stack needed.
    """

    steps: np.ndarray
    columns: np.ndarray
    numbers: np.ndarray
    log: bool
    depth: int


class Tile(NamedTuple):
    """The samples of some panels.

    Attributes
    ----------
    panels : array, shape (panels, d, PANEL)
        Of the whole chunk; the tile has ``count`` of them from ``first``.
    first, count : int
    size : int
        How many samples the tile has: the last panel may not be full.
    ids : array of int64
        Row numbers of the samples of the chunk.
    data : array, shape (slots, samples of the chunk)
        What the program needs for each sample.
    masks : array of bool, shape (masks, queries, samples of the chunk)
    """

    panels: np.ndarray
    first: int
    count: int
    size: int
    ids: np.ndarray
    data: np.ndarray
    masks: np.ndarray


@inner
def measure(program, step, queries, i, rows, tile, out, work):
    """Fill rows with squared distances, or with inner products, by the step's part."""
    start, count = step[COLUMN_START], step[COLUMN_COUNT]
    columns = program.columns[start : start + count]
    number = step[NUMBER_START] + 2
    scale = program.numbers[number : number + count]
    if step[BY_FOUR] == 1:
        return call(
            step[METRIC_ADDRESS], queries, i, tile.panels, tile.first, tile.count, columns, scale, out
        )
    parameters = program.numbers[number + count : number + count + step[PARAMETER_COUNT]]
    bad = 0
    for r in range(rows):
        bad += call(
            step[METRIC_ADDRESS],
            queries,
            i + r,
            tile.panels,
            tile.first,
            tile.count,
            columns,
            scale,
            parameters,
            out[r],
            work,
        )
    return bad


@inner
def weigh(program, step, query_data, i, rows, tile, out):
    """profile(d^2 / h^2). Numbers of the step: shape a, h^2, one factor a column, the metric's parameters."""
    start, n = step[NUMBER_START], tile.count * PANEL
    offset = tile.first * PANEL
    bad = 0
    for r in range(rows):
        row = out[r]
        squared = program.numbers[start + 1]
        if step[QUERY_SLOT] >= 0:
            squared *= query_data[step[QUERY_SLOT], i + r]
        if step[SAMPLE_SLOT] >= 0:
            squares = tile.data[step[SAMPLE_SLOT], offset : offset + tile.size]  # h^2 of each sample
            for j in range(tile.size):
                row[j] /= squares[j]
        bad += call(step[PROFILE_ADDRESS], row, n, program.numbers[start], squared)
    return bad


@inner
def to_logarithms(rows, n, out):
    """For a profile that gives weights in a program of logarithms."""
    for r in range(rows):
        row = out[r]
        for j in range(n):
            row[j] = logarithm(row[j])


@inner
def _von_mises(concentration, columns, q, tile, row):
    for j in range(tile.count * PANEL):
        row[j] = 0.0
    for t in range(tile.count):
        some = row[t * PANEL : (t + 1) * PANEL]
        for c in range(columns.size):
            at, x = q[columns[c]], tile.panels[tile.first + t, columns[c]]
            for j in range(PANEL):
                some[j] += concentration * math.cos(at - x[j])


@inner
def _neighbors(step, log, i, query_data, tile, row):
    """Turn squared distances into 1[among the k nearest]; the last to enter may enter with a share.

    Query data: squared distance of the k-th, its row, its share; a share of -1 lets all at that distance in.
    """
    slot, ids = step[QUERY_SLOT], tile.ids[tile.first * PANEL :]
    limit, last, share = query_data[slot, i], query_data[slot + 1, i], query_data[slot + 2, i]
    for j in range(tile.size):
        weight = 0.0
        if row[j] < limit:
            weight = 1.0
        elif row[j] == limit:
            row_id = ids[j]
            if share < 0.0 or row_id < last:
                weight = 1.0
            elif row_id == last:
                weight = share
        row[j] = weight
        if log:
            row[j] = logarithm(weight)


@inner
def _table(step, numbers, log, q, tile, column, row):
    start, width = step[NUMBER_START], step[EXTRA]
    line = start + int(q[column]) * width
    for t in range(tile.count):
        for j in range(PANEL):
            weight = numbers[line + int(tile.panels[tile.first + t, column, j])]
            if log:
                weight = logarithm(weight)
            row[t * PANEL + j] = weight


@inner
def place_of_offset(step, numbers, difference):
    """Place in a table of offsets, clipped to its ends. Numbers of the step: the first offset, then the table."""
    place = min(max(difference - numbers[step[NUMBER_START]], 0.0), step[EXTRA] - 1.0)
    return int(place)


@inner
def _offsets(step, numbers, now, tile, column, row):
    start = step[NUMBER_START] + 1
    for t in range(tile.count):
        for j in range(PANEL):
            offset = now - tile.panels[tile.first + t, column, j]
            row[t * PANEL + j] = numbers[start + place_of_offset(step, numbers, offset)]


@part
def is_empty(program, queries, i, rows, tile):
    """1 where a mask or the arrow of time, one that nothing can overrule, keeps all samples of the tile out, else 0."""
    offset = tile.first * PANEL
    for k in range(program.steps.shape[0]):
        step = program.steps[k]
        if step[NECESSARY] == 0:
            continue
        found = False
        if step[STEP] == MASK:
            for r in range(rows):
                mask = tile.masks[step[EXTRA], i + r, offset : offset + tile.size]
                for j in range(tile.size):
                    if mask[j]:
                        found = True
                        break
        else:
            column = program.columns[step[COLUMN_START]]
            latest = queries[i, column]
            for r in range(1, rows):
                latest = max(latest, queries[i + r, column])
            for t in range(tile.count):
                x = tile.panels[tile.first + t, column]
                for j in range(PANEL):
                    found |= x[j] <= latest
        if not found:
            return 1
    return 0


@inner
def _add(log, row, other, n):
    for j in range(n):
        if not log:
            row[j] += other[j]
        else:
            a, b = row[j], other[j]
            high, low = (a, b) if a > b else (b, a)
            both = high + log1p(exp_negative(low - high))
            row[j] = both if high > -math.inf else high


@part
def evaluate(program, queries, query_ids, query_data, i, rows, tile, stack, work):
    """Weigh a few queries against the samples of a tile; the answer stands in ``stack[0, :rows, :tile.size]``.

    Weights, or log-weights where ``program.log``.

    Parameters
    ----------
    program : Program
    queries : array, shape (b, d)
        b is a multiple of ROWS.
    query_ids : array of int64, shape (b,)
        The queries' rows among all queries.
    query_data : array, shape (slots, b)
    i, rows : int
        The first query and their number, at most ROWS.
    tile : Tile
    stack, work : arrays, shapes (depth, ROWS, panels * PANEL) and (panels * PANEL,)

    Returns
    -------
    int
        0 where all that users' functions gave is good: not negative, not NaN, not infinite.
    """
    top, bad = -1, 0
    for k in range(program.steps.shape[0]):
        step = program.steps[k]
        if step[STEP] <= CONSTANT:
            top += 1
        elif step[STEP] <= MULTIPLY:
            top -= 1
        bad += call(step[RUN], program, step, queries, query_ids, query_data, i, rows, tile, stack, top, work)
    return bad


@lru_cache
def step_address(kind: int, log: bool, convert: bool = False) -> int:
    """Address of the part that does a step of one kind; its answer stands in ``stack[top]``.

    Its arguments: ``program, step, queries, query_ids, query_data, i, rows, tile, stack, top, work``.

    Parameters
    ----------
    kind : int
    log : bool
        Of the program.
    convert : bool
        Whether a profile gives weights in a program of logarithms.
    """
    zero, one = (-math.inf, 0.0) if log else (0.0, 1.0)

    # the constants are known to Numba: only one branch is compiled
    @part
    def run(program, step, queries, query_ids, query_data, i, rows, tile, stack, top, work):
        n, offset, out, numbers = tile.count * PANEL, tile.first * PANEL, stack[top], program.numbers
        columns = program.columns[step[COLUMN_START] : step[COLUMN_START] + step[COLUMN_COUNT]]
        bad = 0
        if kind in (DISTANCE, DOT, NEIGHBORS):
            bad += measure(program, step, queries, i, rows, tile, out, work)
        if kind == DISTANCE:
            bad += weigh(program, step, query_data, i, rows, tile, out)
            if convert:
                to_logarithms(rows, n, out)
            return bad
        for r in range(rows):
            row = out[r]
            if kind == DOT:
                factor = numbers[step[NUMBER_START]]
                for j in range(n):
                    row[j] *= factor
            elif kind == VON_MISES:
                _von_mises(numbers[step[NUMBER_START]], columns, queries[i + r], tile, row)
            elif kind == NEIGHBORS:
                _neighbors(step, log, i + r, query_data, tile, row)
            elif kind == TABLE:
                _table(step, numbers, log, queries[i + r], tile, columns[0], row)
            elif kind == OFFSETS:
                _offsets(step, numbers, queries[i + r, columns[0]], tile, columns[0], row)
            elif kind == PAST:
                now = queries[i + r, columns[0]]
                for t in range(tile.count):
                    for j in range(PANEL):
                        row[t * PANEL + j] = (
                            one if tile.panels[tile.first + t, columns[0], j] <= now else zero
                        )
            elif kind == CONSTANT:
                value = numbers[step[NUMBER_START]]
                for j in range(n):
                    row[j] = value
            elif kind == ADD:
                _add(log, row, stack[top + 1, r], n)
            elif kind == MULTIPLY:
                other = stack[top + 1, r]
                for j in range(n):
                    if log:
                        row[j] += other[j]
                    else:
                        row[j] *= other[j]
            elif kind == HOLLOW:
                for j in range(tile.size):
                    row[j] = zero if tile.ids[offset + j] == query_ids[i + r] else row[j]
            else:
                mask = tile.masks[step[EXTRA], i + r]
                for j in range(tile.size):
                    row[j] = row[j] if mask[offset + j] else zero
        return bad

    return address(run, *STEP_PART)


#: Types of a program and a tile, and the arguments of :func:`evaluate`, which the loop calls as a part.
PROGRAM = types.NamedTuple((INTEGER_ROWS, INTEGERS, ONE, types.boolean, types.int64), Program)
TILE = types.NamedTuple(
    (THREE, types.int64, types.int64, types.int64, INTEGERS, TWO, types.Array(types.bool_, 3, "C")), Tile
)
EVALUATE_PART = (PROGRAM, TWO, INTEGERS, TWO, types.intp, types.intp, TILE, THREE, ONE)
STEP_PART = (PROGRAM, INTEGERS, *EVALUATE_PART[1:-1], types.intp, ONE)
#: Arguments of :func:`is_empty`, another part.
IS_EMPTY_PART = (PROGRAM, TWO, types.intp, types.intp, TILE)


@part
def products(queries, i, panels, first, count, columns, scale, parameters, out, work):
    """Inner products, where the processor has no vector kernel."""
    for j in range(count * PANEL):
        out[j] = 0.0
    for t in range(count):
        some = out[t * PANEL : (t + 1) * PANEL]
        for c in range(columns.size):
            at, x = queries[i, columns[c]], panels[first + t, columns[c]]
            for j in range(PANEL):
                some[j] += at * x[j]
    return 0
