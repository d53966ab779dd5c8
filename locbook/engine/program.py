"""A kernel as a program: the few numbers by which compiled code knows it, and the function that runs it.

The engine lowers a kernel to a list of steps for a small stack machine (:mod:`locbook.engine.plan`). One step fills
or changes a whole row of weights, from one query to a tile of samples, so the cost of choosing the step vanishes.
Nothing is compiled for a new kernel, bandwidth or metric; a user's own function is compiled alone, once, and called
by its address (:mod:`locbook.engine.user`).

Where any part of a kernel is of exponential type, the row holds log-weights and products are sums; else it holds
weights. A sample that does not take part has weight 0 (log-weight ``-inf``) whatever its coordinates hold.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ..kernels import metrics, profiles
from ..kernels.metrics import USER, metric_row
from ..kernels.profiles import USER_PROFILE, profile_row
from . import user
from .cache import made_from
from .user import call_metric, call_profile

JIT = {"cache": True, "error_model": "numpy", "nogil": True}

# Steps that push a row
DISTANCE, DOT, VON_MISES, NEIGHBORS, TABLE, PAST, CONSTANT = range(7)
# Steps that work on the rows pushed before
ADD, MULTIPLY, HOLLOW, MASK = range(7, 11)

# Columns of a step
STEP, METRIC, PROFILE, COLUMN_START, COLUMN_COUNT, NUMBER_START, PARAMETER_COUNT = range(7)
QUERY_SLOT, SAMPLE_SLOT, METRIC_ADDRESS, PROFILE_ADDRESS, EXTRA = range(7, 12)
STEP_WIDTH = 12


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


@njit(**JIT)
def _distance(step, columns, numbers, log, q, i, tile, n, query_data, sample_data, first, row, work):
    """Push profile(d^2 / h^2). Numbers of the step: shape a, h^2, one factor a column, the metric's parameters."""
    start, count = step[NUMBER_START], step[COLUMN_COUNT]
    scale = numbers[start + 2 : start + 2 + count]
    parameters = numbers[start + 2 + count : start + 2 + count + step[PARAMETER_COUNT]]
    bad = 0
    if step[METRIC] == USER:
        bad += n - call_metric(step[METRIC_ADDRESS], q, tile, tile.shape[1], columns, count, n, row)
    else:
        metric_row(step[METRIC], q, tile, n, columns, scale, parameters, row, work)
    squared = numbers[start + 1]
    if step[QUERY_SLOT] >= 0:
        squared *= query_data[step[QUERY_SLOT], i]
    if squared != 1.0:
        for j in range(n):
            row[j] /= squared
    if step[SAMPLE_SLOT] >= 0:
        widths = sample_data[step[SAMPLE_SLOT]]
        for j in range(n):
            row[j] /= widths[first + j]
    if step[PROFILE] == USER_PROFILE:
        # infinitely far (no column in common, or beyond all floats): weight 0, whatever the user's function says
        for j in range(n):
            work[j] = row[j]
            if row[j] == math.inf:
                row[j] = 0.0
        bad += n - call_profile(step[PROFILE_ADDRESS], row, n)
        for j in range(n):
            if work[j] == math.inf:
                row[j] = -math.inf if step[EXTRA] == 1 else 0.0
    else:
        profile_row(step[PROFILE], numbers[start], row, n)
    if log and step[EXTRA] == 0:  # a profile that returns K in a program of logarithms
        for j in range(n):
            row[j] = math.log(row[j]) if row[j] > 0.0 else -math.inf
    return bad


@njit(**JIT)
def _dot(factor, columns, q, tile, n, row):
    for j in range(n):
        row[j] = 0.0
    for c in range(columns.size):
        at = q[columns[c]] * factor
        x = tile[columns[c]]
        for j in range(n):
            row[j] += at * x[j]


@njit(**JIT)
def _von_mises(concentration, columns, q, tile, n, row):
    for j in range(n):
        row[j] = 0.0
    for c in range(columns.size):
        at = q[columns[c]]
        x = tile[columns[c]]
        for j in range(n):
            row[j] += concentration * math.cos(at - x[j])


@njit(**JIT)
def _neighbors(step, log, i, ids, n, query_data, first, row):
    """Turn squared distances into 1[among the k nearest]; the last to enter may enter with a share.

    Query data: squared distance of the k-th, its row, its share; a share of -1 lets all at that distance in.
    """
    slot = step[QUERY_SLOT]
    limit, last, share = query_data[slot, i], query_data[slot + 1, i], query_data[slot + 2, i]
    for j in range(n):
        weight = 0.0
        if row[j] < limit:
            weight = 1.0
        elif row[j] == limit:
            row_id = ids[first + j]
            if share < 0.0 or row_id < last:
                weight = 1.0
            elif row_id == last:
                weight = share
        row[j] = weight
        if log:
            row[j] = math.log(weight) if weight > 0.0 else -math.inf


@njit(**JIT)
def _table(step, numbers, log, q, tile, n, column, row):
    start, width = step[NUMBER_START], step[EXTRA]
    line = start + int(q[column]) * width
    for j in range(n):
        weight = numbers[line + int(tile[column, j])]
        if log:
            row[j] = math.log(weight) if weight > 0.0 else -math.inf
        else:
            row[j] = weight


@njit(**JIT)
def evaluate_row(program, q, query_id, i, tile, n, ids, first, query_data, sample_data, masks, stack, work):
    """Weigh one query against the ``n`` samples of a tile; the answer stands in ``stack[0, :n]``.

    Parameters
    ----------
    program : Program
    q : array, shape (d,)
        The query; ``query_id`` its row among all queries, ``i`` its row in the block.
    tile : array, shape (d, >= n)
        The samples, transposed.
    ids : array of int64
        Row numbers of the samples of the chunk; the tile starts at ``first``.
    query_data, sample_data : arrays, shapes (slots, block) and (slots, chunk)
        What the program needs for each query and sample.
    masks : array of bool, shape (masks, block, chunk)
    stack, work : arrays, shapes (depth, >= n) and (>= n,)

    Returns
    -------
    int
        How many values from a user's function were negative or NaN.
    """
    log = program.log
    zero = -math.inf if log else 0.0
    top = -1
    bad = 0
    for k in range(program.steps.shape[0]):
        step = program.steps[k]
        kind = step[STEP]
        start, count = step[COLUMN_START], step[COLUMN_COUNT]
        columns = program.columns[start : start + count]
        if kind == DISTANCE:
            top += 1
            bad += _distance(
                step,
                columns,
                program.numbers,
                log,
                q,
                i,
                tile,
                n,
                query_data,
                sample_data,
                first,
                stack[top],
                work,
            )
        elif kind == DOT:
            top += 1
            _dot(program.numbers[step[NUMBER_START]], columns, q, tile, n, stack[top])
        elif kind == VON_MISES:
            top += 1
            _von_mises(program.numbers[step[NUMBER_START]], columns, q, tile, n, stack[top])
        elif kind == NEIGHBORS:
            top += 1
            parameters = program.numbers[step[NUMBER_START] : step[NUMBER_START] + step[PARAMETER_COUNT]]
            if step[METRIC] == USER:
                bad += n - call_metric(
                    step[METRIC_ADDRESS], q, tile, tile.shape[1], columns, count, n, stack[top]
                )
            else:
                ones = program.numbers[step[EXTRA] : step[EXTRA] + count]
                metric_row(step[METRIC], q, tile, n, columns, ones, parameters, stack[top], work)
            _neighbors(step, log, i, ids, n, query_data, first, stack[top])
        elif kind == TABLE:
            top += 1
            _table(step, program.numbers, log, q, tile, n, columns[0], stack[top])
        elif kind == PAST:
            top += 1
            now = q[columns[0]]
            one = 0.0 if log else 1.0
            for j in range(n):
                stack[top, j] = one if tile[columns[0], j] <= now else zero
        elif kind == CONSTANT:
            top += 1
            value = program.numbers[step[NUMBER_START]]
            for j in range(n):
                stack[top, j] = value
        elif kind == ADD:
            top -= 1
            a, b = stack[top], stack[top + 1]
            for j in range(n):
                if not log:
                    a[j] += b[j]
                elif a[j] >= b[j]:
                    a[j] = a[j] + math.log1p(math.exp(b[j] - a[j])) if a[j] > -math.inf else -math.inf
                else:
                    a[j] = b[j] + math.log1p(math.exp(a[j] - b[j]))
        elif kind == MULTIPLY:
            top -= 1
            a, b = stack[top], stack[top + 1]
            for j in range(n):
                if log:
                    a[j] += b[j]
                else:
                    a[j] *= b[j]
        elif kind == HOLLOW:
            for j in range(n):
                if ids[first + j] == query_id:
                    stack[top, j] = zero
        else:
            mask = masks[step[EXTRA], i]
            for j in range(n):
                if not mask[first + j]:
                    stack[top, j] = zero
    return bad


made_from(evaluate_row, metrics, profiles, user)
