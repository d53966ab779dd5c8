r"""The loop of the gradient: for a tile of samples and each query, weigh, then go back through the kernel's steps.

A query's mean y has :math:`\partial L/\partial w_j = s_j\,c^\top(v_j - y)/Z` for the weight of sample j, with the
cotangent c, multiplicities s and the sum of weights Z. The chain rule through sums and products needs, for each step k
of the program, only how much the weight changes with it: its *cofactor* :math:`\partial w/\partial k`, kept as a
logarithm where weights are. So nothing is divided by a weight, and what a compact factor does at its edge stays finite.

Sums over the samples are kept for each query, sums over the queries for each sample, and those over both (bandwidths)
beside them. A task has some of the samples, and meets all queries in their order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels.logarithm import log1p
from .exponential import exp, exp_negative
from .panels import PANEL
from .parts import call, inner, jit
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
    NUMBER_START,
    OFFSETS,
    PARAMETER_COUNT,
    QUERY_SLOT,
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
from .slopes import row_product, row_sum
from .vectors import ROWS

# What the gradient knows of a step beside the program: its operands, addresses, and where its sums stand (-1: nowhere)
LEFT, RIGHT, SLOPE, PULL, QUERY_PLACE, SAMPLE_PLACE, QUERY_WIDTH, SAMPLE_WIDTH, PLACE, BY_COLUMN = range(10)
#: Whether a leaf gives a logarithm that is only multiplied: its derivative is that by the whole weight's logarithm.
WHOLE = 10
NODE_WIDTH = 11
#: Largest exponent of a cofactor, and largest cofactor: products with what is finite stay so.
MOST, LARGEST = 600.0, 1e260


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


class Scratch(NamedTuple):
    """Weights of all steps, their squared distances, cofactors, and rows."""

    tape: np.ndarray
    squared: np.ndarray
    cofactors: np.ndarray
    work: np.ndarray
    pull: np.ndarray


@inner
def _forward(program, nodes, evaluate, rows, i, count, tile, scratch):
    """The weights after each step, in ``scratch.tape``."""
    zero = -math.inf if program.log else 0.0
    n, offset, steps, tape = tile.count * PANEL, tile.first * PANEL, program.steps, scratch.tape
    for k in range(steps.shape[0]):
        step, kind = steps[k], steps[k, STEP]
        if kind == DISTANCE:
            measure(program, step, rows.queries, i, count, tile, scratch.squared[k], scratch.work[0])
            for r in range(count):
                row, squared = tape[k, r], scratch.squared[k, r]
                for j in range(n):
                    row[j] = squared[j]
            weigh(program, step, rows.data, i, count, tile, tape[k])
            if program.log and not step[EXTRA]:
                to_logarithms(count, n, tape[k])
            continue
        if kind <= CONSTANT:
            alone = Program(steps[k : k + 1], program.columns, program.numbers, program.log, 1)
            call(
                evaluate,
                alone,
                rows.queries,
                rows.ids,
                rows.data,
                i,
                count,
                tile,
                tape[k : k + 1],
                scratch.work[0],
            )
            continue
        for r in range(count):
            row, a = tape[k, r], tape[nodes[k, LEFT], r]
            b = tape[nodes[k, RIGHT], r]
            if kind == ADD:
                for j in range(n):
                    if program.log:
                        high, low = max(a[j], b[j]), min(a[j], b[j])
                        both = high + log1p(exp_negative(low - high))
                        row[j] = both if high > -math.inf else high
                    else:
                        row[j] = a[j] + b[j]
            elif kind == MULTIPLY:
                for j in range(n):
                    row[j] = a[j] + b[j] if program.log else a[j] * b[j]
            elif kind == HOLLOW:
                for j in range(tile.size):
                    row[j] = zero if tile.ids[offset + j] == rows.ids[i + r] else a[j]
            else:
                mask = tile.masks[step[EXTRA], i + r]
                for j in range(tile.size):
                    row[j] = a[j] if mask[offset + j] else zero


@inner
def _shares(log, weights, cofactor, out, n):
    """Weights times cofactors, out of logarithms if they are."""
    if log:
        for j in range(n):
            out[j] = min(weights[j] + cofactor[j], MOST)
        for j in range(n):
            out[j] = exp(out[j])
    else:
        for j in range(n):
            out[j] = weights[j] * cofactor[j]


@inner
def _values(program, rows, i, r, tile, multiplicity, values, scratch, sample_sums):
    """Derivatives by the values and multiplicities.

    Leaves in the scratch c'(v - y), the derivatives by the logarithms of the weights, and the last step's cofactor.
    """
    p, last, n, offset = values.shape[1], program.steps.shape[0] - 1, tile.count * PANEL, tile.first * PANEL
    weights, cofactor = scratch.tape[last, r], scratch.cofactors[last]
    error, share, by_copies = scratch.work[0], scratch.work[1], scratch.work[2]
    copies = multiplicity[offset : offset + n] if multiplicity.size else multiplicity  # or their logarithms
    log_sum = rows.log_sums[i + r]
    inverse = min(math.exp(min(-log_sum, MOST)), LARGEST)
    for j in range(n):
        error[j] = 0.0
    for t in range(tile.count):
        some = error[t * PANEL : (t + 1) * PANEL]
        for c in range(p):
            slope, middle, v = rows.cotangent[i + r, c], rows.means[i + r, c], values[tile.first + t, c]
            for j in range(PANEL):
                some[j] += slope * (v[j] - middle)
    # loops of few arrays each: those are the ones that the compiler turns into vectors
    for j in range(n):
        cofactor[j] = -log_sum if program.log else inverse
    _shares(program.log, weights, cofactor, by_copies, n)
    if copies.size == 0:
        for j in range(n):
            share[j] = by_copies[j]
    else:
        if program.log:
            for j in range(n):
                cofactor[j] += copies[j]
        else:
            for j in range(n):
                cofactor[j] *= copies[j]
        _shares(program.log, weights, cofactor, share, n)
    whole = scratch.work[4]
    for j in range(n):
        by_copies[j] *= error[j]
    for j in range(n):
        whole[j] = share[j] * error[j]
    for j in range(tile.size, n):
        error[j] = share[j] = by_copies[j] = whole[j] = 0.0
        cofactor[j] = -math.inf if program.log else 0.0
    for t in range(tile.count):
        mine, some = sample_sums[tile.first + t, p], by_copies[t * PANEL : (t + 1) * PANEL]
        for j in range(PANEL):
            mine[j] += some[j]
        some = share[t * PANEL : (t + 1) * PANEL]
        for c in range(p):
            slope, mine = rows.cotangent[i + r, c], sample_sums[tile.first + t, c]
            for j in range(PANEL):
                mine[j] += some[j] * slope


@inner
def _share_out(program, nodes, k, rows, i, r, tile, scratch):
    """From the cofactor of a step to those of its operands."""
    kind, own = program.steps[k, STEP], scratch.cofactors[k]
    zero = -math.inf if program.log else 0.0
    n, offset = tile.count * PANEL, tile.first * PANEL
    left, right = nodes[k, LEFT], nodes[k, RIGHT]
    a, b = scratch.cofactors[left], scratch.cofactors[right]
    if kind == ADD:
        for j in range(n):
            a[j] = b[j] = own[j]
    elif kind == MULTIPLY:
        first, second = scratch.tape[left, r], scratch.tape[right, r]
        for j in range(n):
            if program.log:
                a[j], b[j] = own[j] + second[j], own[j] + first[j]
            else:
                a[j], b[j] = own[j] * second[j], own[j] * first[j]
    else:
        for j in range(n):
            a[j] = own[j]
        if kind == HOLLOW:
            for j in range(tile.size):
                a[j] = zero if tile.ids[offset + j] == rows.ids[i + r] else own[j]
        else:
            mask = tile.masks[program.steps[k, EXTRA], i + r]
            for j in range(tile.size):
                a[j] = own[j] if mask[offset + j] else zero


@inner
def _of_distance(program, nodes, k, rows, i, r, tile, scratch, b, sample_sums, numbers):
    """Back through a profile and a distance; ``b`` holds the derivatives by the weight, or by its logarithm."""
    step, node = program.steps[k], nodes[k]
    n, offset, start = tile.count * PANEL, tile.first * PANEL, step[NUMBER_START]
    squared, s, slope = scratch.squared[k, r], scratch.work[1], scratch.work[2]
    width = program.numbers[start + 1]
    if step[QUERY_SLOT] >= 0:
        width *= rows.data[step[QUERY_SLOT], i + r]
    inverse = 1.0 / width
    for j in range(n):
        s[j] = squared[j] * inverse
    if step[SAMPLE_SLOT] >= 0:
        widths = tile.data[step[SAMPLE_SLOT], offset : offset + tile.size]
        for j in range(tile.size):
            s[j] /= widths[j]
    for j in range(n):
        # at distance 0 no derivative of a distance is looked at
        some = (b[j] != 0.0) & (s[j] > 0.0) & (s[j] < math.inf) & (squared[j] < math.inf)
        b[j] = b[j] if some else 0.0
        s[j] = s[j] if some else 1.0
        squared[j] = squared[j] if some else 1.0
    call(node[SLOPE], s, n, program.numbers[start], slope)
    for j in range(n):
        b[j] *= slope[j]
        slope[j] = b[j] * s[j]
    if node[PLACE] >= 0 and node[BY_COLUMN] == 0:
        numbers[node[PLACE]] += row_sum(slope, n)
    if node[QUERY_WIDTH] >= 0:
        rows.sums[i + r, node[QUERY_WIDTH]] += row_sum(slope, n)
    if node[SAMPLE_WIDTH] >= 0:
        for t in range(tile.count):
            mine, some = sample_sums[tile.first + t, node[SAMPLE_WIDTH]], slope[t * PANEL : (t + 1) * PANEL]
            for j in range(PANEL):
                mine[j] += some[j]
    if node[PULL] == 0:
        return
    for j in range(n):
        b[j] *= inverse
    if step[SAMPLE_SLOT] >= 0:
        widths = tile.data[step[SAMPLE_SLOT], offset : offset + tile.size]
        for j in range(tile.size):
            b[j] /= widths[j]
    first, count = step[COLUMN_START], step[COLUMN_COUNT]
    number = start + 2 + count
    call(
        node[PULL],
        rows.queries,
        i + r,
        tile.panels,
        tile.first,
        tile.count,
        program.columns[first : first + count],
        program.numbers[start + 2 : number],
        program.numbers[number : number + step[PARAMETER_COUNT]],
        squared,
        b,
        scratch.pull,
        rows.sums[i + r],
        node[QUERY_PLACE],
        sample_sums,
        node[SAMPLE_PLACE],
        numbers,
        node[PLACE] if node[BY_COLUMN] == 1 else -1,
    )


@inner
def _of_leaf(program, nodes, k, rows, i, r, tile, scratch, sample_sums, numbers):
    """Back through a leaf."""
    step, node = program.steps[k], nodes[k]
    kind, place = step[STEP], node[PLACE]
    n, start = tile.count * PANEL, step[NUMBER_START]
    columns = program.columns[step[COLUMN_START] : step[COLUMN_START] + step[COLUMN_COUNT]]
    error, cofactor, weights = scratch.work[0], scratch.cofactors[k], scratch.tape[k, r]
    b = scratch.work[3]
    # by the logarithm of the leaf's weight where it gives that
    logarithm = kind in (DOT, VON_MISES, OFFSETS) or (kind == DISTANCE and step[EXTRA] & 1)
    if node[WHOLE] == 1:
        whole = scratch.work[4]
        for j in range(n):
            b[j] = whole[j]
    elif logarithm:
        _shares(True, weights, cofactor, b, n)
    elif program.log:
        for j in range(n):
            b[j] = exp(min(cofactor[j], MOST))
    else:
        for j in range(n):
            b[j] = cofactor[j]
    if node[WHOLE] == 0:
        for j in range(n):
            b[j] *= error[j]
    if kind == DISTANCE:
        _of_distance(program, nodes, k, rows, i, r, tile, scratch, b, sample_sums, numbers)
    elif kind == TABLE:
        line = place + int(rows.queries[i + r, columns[0]]) * step[EXTRA]
        for j in range(tile.size):
            t = j // PANEL
            numbers[line + int(tile.panels[tile.first + t, columns[0], j - t * PANEL])] += b[j]
    elif kind == OFFSETS:
        now = rows.queries[i + r, columns[0]]
        for j in range(tile.size):
            t = j // PANEL
            offset = now - tile.panels[tile.first + t, columns[0], j - t * PANEL]
            numbers[place + place_of_offset(step, program.numbers, offset)] += b[j]
    else:
        factor = program.numbers[start]
        if place >= 0:
            total = 0.0
            for j in range(n):
                total += b[j] * weights[j] if b[j] != 0.0 else 0.0
            numbers[place] += total
        if node[QUERY_PLACE] >= 0:
            for c in range(columns.size):
                at, total = rows.queries[i + r, columns[c]], 0.0
                for t in range(tile.count):
                    x, own = tile.panels[tile.first + t, columns[c]], b[t * PANEL : (t + 1) * PANEL]
                    mine = sample_sums[tile.first + t, node[SAMPLE_PLACE] + c]
                    if kind == DOT:
                        for j in range(PANEL):
                            mine[j] += own[j] * factor * at
                        total += factor * row_product(own, x, PANEL)
                    else:
                        for j in range(PANEL):
                            turn = own[j] * factor * math.sin(at - x[j])
                            total -= turn
                            mine[j] += turn
                rows.sums[i + r, node[QUERY_PLACE] + c] += total


@jit
def walk_back(
    program,
    nodes,
    evaluate,
    rows,
    panels,
    ids,
    sample_data,
    masks,
    multiplicity,
    values,
    per_tile,
    sample_sums,
    numbers,
):
    """Add a block of queries and the samples of a task to the sums of the gradient.

    Parameters
    ----------
    program : Program
    nodes : array of int64, shape (k, NODE_WIDTH)
        For each step.
    evaluate : int
        Address of :func:`locbook.engine.program.evaluate`.
    rows : Rows
    panels : array, shape (panels, d, PANEL)
    ids : array of int64, shape (n,)
    sample_data : array, shape (slots, n)
    masks : array of bool, shape (masks, b, n)
    multiplicity : array, shape (panels * PANEL,) or (0,)
        Or its logarithm; all 1 where empty.
    values : array, shape (panels, p, PANEL)
    per_tile : int
    sample_sums : array, shape (panels, s, PANEL)
        First those by the values, then that by the multiplicity; updated.
    numbers : array
        Sums over queries and samples, updated.
    """
    size, steps = per_tile * PANEL, program.steps.shape[0]
    scratch = Scratch(
        np.zeros((steps, ROWS, size)),
        np.zeros((steps, ROWS, size)),
        np.zeros((steps, size)),
        np.zeros((5, size)),
        np.zeros((panels.shape[1] + 3, size)),
    )
    for first in range(0, panels.shape[0], per_tile):
        count = min(per_tile, panels.shape[0] - first)
        tile = Tile(
            panels, first, count, min(count * PANEL, ids.size - first * PANEL), ids, sample_data, masks
        )
        for i in range(0, rows.ids.size, ROWS):
            some = min(ROWS, rows.ids.size - i)
            if is_empty(program, rows.queries, i, some, tile):
                continue
            _forward(program, nodes, evaluate, rows, i, some, tile, scratch)
            for r in range(some):
                if rows.log_sums[i + r] == math.inf:
                    continue
                _values(program, rows, i, r, tile, multiplicity, values, scratch, sample_sums)
                for k in range(steps - 1, -1, -1):
                    if program.steps[k, STEP] > CONSTANT:
                        if nodes[k, WHOLE] == 0:
                            _share_out(program, nodes, k, rows, i, r, tile, scratch)
                    elif nodes[k, QUERY_PLACE] >= 0 or nodes[k, SLOPE] != 0 or nodes[k, PLACE] >= 0:
                        _of_leaf(program, nodes, k, rows, i, r, tile, scratch, sample_sums, numbers)


@jit
def pull_pairs(pull, queries, panels, columns, scale, parameters, squared, b, query_sums, sample_sums):
    """Back through one distance for each query: to the sample at its place in the panels.

    ``squared`` and ``b`` are the squared distances and the derivatives by them, shape (m,), 0 where there is none.
    """
    work = np.zeros((panels.shape[1] + 3, PANEL))
    ones, own = np.ones(PANEL), np.zeros(PANEL)
    for i in range(b.size):
        if b[i] == 0.0:
            continue
        t, j = i // PANEL, i % PANEL
        ones[j], own[j] = squared[i], b[i]
        call(
            *(pull, queries, i, panels, t, 1, columns, scale, parameters, ones, own, work, query_sums[i]),
            *(0, sample_sums, 0, own, -1),
        )
        ones[j], own[j] = 1.0, 0.0
