r"""Derivatives of profiles and distances as parts, for the gradient.

A *slope* is that of a profile, :math:`dK/ds` or :math:`d\log K/ds`, over a row of squared scaled distances. A *pull*
is the chain rule through a squared distance :math:`D = d(q, x)^2`: it is given :math:`b = \partial L/\partial D` of
one query and a tile of samples, and adds :math:`b\,\partial D/\partial q` to the query's sums and
:math:`b\,\partial D/\partial x` to the samples'. Where a bandwidth has an entry a column, or is a matrix
:math:`M^{-1}`, it also adds up what their derivatives need: :math:`\sum b\,\partial D/\partial q_c\,(q_c - x_c)`, or
:math:`\partial L/\partial M`.

Where a distance has a corner it takes the slope 0 (coinciding points, antipodes, columns that agree), or that of the
first column (Chebyshev ties); where a difference is wrapped, that of the branch it is on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types

from ..kernels import metrics, profiles
from .backward import (
    BY_COLUMN,
    OWED,
    PLACE,
    QUERY_PLACE,
    SAMPLE_PLACE,
    STEP_PART,
    WALK,
    Walk,
)
from .panels import PANEL
from .parts import ONE, address, call, inner, part
from .program import COLUMN_COUNT, COLUMN_START, NUMBER_START
from .records import Record, run
from .sweep import row_sum
from .user import scalar_function

#: Arguments of a slope.
SLOPE_PART = (ONE, types.intp, types.float64, ONE)
#: Metrics that have a derivative.
SMOOTH = tuple(set(range(metrics.USER)) - {metrics.HAMMING})
#: Step of the central difference of a user's profile, relative to max(u, 1).
STEP = 6e-6


# -- profiles ----------------------------------------------------------------------------------------------------------


@lru_cache
def slope_address(code: int) -> int:
    """Address of the part ``slope(row, n, a, out)`` of a named profile; ``row`` holds ``s > 0``."""

    @part
    def slope(row, n, a, out):
        for j in range(n):
            s = row[j]
            if code == 0:
                out[j] = profiles.uniform_slope(s, a)
            elif code == 1:
                out[j] = profiles.triangular_slope(s, a)
            elif code == 2:
                out[j] = profiles.epanechnikov_slope(s, a)
            elif code == 3:
                out[j] = profiles.biweight_slope(s, a)
            elif code == 4:
                out[j] = profiles.triweight_slope(s, a)
            elif code == 5:
                out[j] = profiles.tricube_slope(s, a)
            elif code == 6:
                out[j] = profiles.cosine_slope(s, a)
            elif code == 7:
                out[j] = profiles.gaussian_slope(s, a)
            elif code == 8:
                out[j] = profiles.laplace_slope(s, a)
            elif code == 9:
                out[j] = profiles.cauchy_slope(s, a)
            elif code == 10:
                out[j] = profiles.student_t_slope(s, a)
            else:
                out[j] = profiles.rational_quadratic_slope(s, a)
        return 0

    return address(slope, *SLOPE_PART)


@cache
def _user_slope(function: Callable) -> Any:
    scalar = scalar_function(function, types.float64)

    @njit(error_model="numpy", nogil=True)
    def slope(row, n, a, out):
        for j in range(n):
            u = math.sqrt(row[j])
            low, high = u - STEP * max(u, 1.0), u + STEP * max(u, 1.0)
            out[j] = (float(scalar(high * high)) - float(scalar(low * low))) / ((high - low) * 2.0 * u)
        return 0

    return slope


def user_slope_address(function: Callable) -> int:
    r"""Address of the slope of a user's profile: a central difference in u, of :math:`f(u^2)`.

    :math:`df/du` is off by about :math:`2 \cdot 10^{-11} |f| + 6 \cdot 10^{-12} |d^3 f/du^3|`, where u is up to 1.
    """
    return address(_user_slope(function), *SLOPE_PART)


# -- distances ---------------------------------------------------------------------------------------------------------
#
# A pull is called like every part of a step (:mod:`locbook.engine.backward`). It finds the squared distances, > 0, in
# ``scratch.squared``, and the derivatives by them in ``OWED``.


@part
def _pull_matrix(walk, k, i, r, first, count, size):
    """D = |M (q - x)|^2: the derivative by q is 2 b M' y, that by M is 2 b y (q - x)', y = M (q - x)."""
    steps, nodes, panels, work = walk.program.steps, walk.nodes, walk.samples.panels, walk.scratch.pull
    d, n, g, y, b = steps[k, COLUMN_COUNT], count * PANEL, work[0], work[2:], walk.scratch.work[OWED]
    q, columns = walk.rows.queries[i + r], walk.program.columns[steps[k, COLUMN_START] :]
    matrix = walk.program.numbers[steps[k, NUMBER_START] + 2 + d :]
    for row in range(d):
        for j in range(n):
            y[row, j] = 0.0
        for c in range(d):
            at, entry = q[columns[c]], matrix[row * d + c]
            for t in range(count):
                x = panels[first + t, columns[c]]
                for j in range(PANEL):
                    y[row, t * PANEL + j] += entry * (at - x[j])
        for j in range(n):
            y[row, j] *= 2.0 * b[j]
    if nodes[k, QUERY_PLACE] >= 0:
        for c in range(d):
            for j in range(n):
                g[j] = 0.0
            for row in range(d):
                entry = matrix[row * d + c]
                for j in range(n):
                    g[j] += entry * y[row, j]
            walk.rows.sums[i + r, nodes[k, QUERY_PLACE] + c] += row_sum(g, n)
            for t in range(count):
                mine = walk.samples.sums[first + t, nodes[k, SAMPLE_PLACE] + c]
                for j in range(PANEL):
                    mine[j] -= g[t * PANEL + j]
    if nodes[k, BY_COLUMN] == 1:
        for row in range(d):
            for c in range(d):
                at = q[columns[c]]
                for t in range(count):
                    x = panels[first + t, columns[c]]
                    for j in range(PANEL):
                        g[t * PANEL + j] = y[row, t * PANEL + j] * (at - x[j])
                walk.samples.numbers[nodes[k, PLACE] + row * d + c] += row_sum(g, n)
    return 0


@part
def _pull_haversine(walk, k, i, r, first, count, size):
    """D = (2 asin sqrt a)^2, dD/da = 2 sqrt(D / (a (1 - a)))."""
    query_place, sample_place = walk.nodes[k, QUERY_PLACE], walk.nodes[k, SAMPLE_PLACE]
    if query_place < 0:
        return 0
    squared, b, panels = walk.scratch.squared[k, r], walk.scratch.work[OWED], walk.samples.panels
    q, columns = walk.rows.queries[i + r], walk.program.columns[walk.program.steps[k, COLUMN_START] :]
    query_sums, sample_sums = walk.rows.sums[i + r], walk.samples.sums
    latitude, longitude = q[columns[0]], q[columns[1]]
    for t in range(count):
        there, around = panels[first + t, columns[0]], panels[first + t, columns[1]]
        mine = sample_sums[first + t]
        for j in range(PANEL):
            place = t * PANEL + j
            half, turn = 0.5 * (latitude - there[j]), 0.5 * (longitude - around[j])
            here, other, across = math.cos(latitude), math.cos(there[j]), math.sin(turn) ** 2
            a = math.sin(half) ** 2 + here * other * across
            factor = b[place] * 2.0 * math.sqrt(squared[place] / (a * (1.0 - a))) if 0.0 < a < 1.0 else 0.0
            along, round_it = math.sin(half) * math.cos(half), here * other * math.sin(turn) * math.cos(turn)
            query_sums[query_place] += factor * (along - math.sin(latitude) * other * across)
            query_sums[query_place + 1] += factor * round_it
            mine[sample_place, j] -= factor * (along + here * math.sin(there[j]) * across)
            mine[sample_place + 1, j] -= factor * round_it
    return 0


@part
def _pull_cosine(walk, k, i, r, first, count, size):
    """D = (1 - e f)^2 of the unit vectors e, f; by q it is -2 b sqrt(D) (f - (e f) e) / |q|."""
    query_place, sample_place = walk.nodes[k, QUERY_PLACE], walk.nodes[k, SAMPLE_PLACE]
    if query_place < 0:
        return 0
    squared, b, panels = walk.scratch.squared[k, r], walk.scratch.work[OWED], walk.samples.panels
    q, columns = walk.rows.queries[i + r], walk.program.columns[walk.program.steps[k, COLUMN_START] :]
    d, n, work = walk.program.steps[k, COLUMN_COUNT], count * PANEL, walk.scratch.pull
    g, cosine, length = work[0], work[1], work[2]
    norm = 0.0
    for j in range(n):
        cosine[j] = length[j] = 0.0
    for c in range(d):
        norm += q[columns[c]] ** 2
    norm = math.sqrt(norm)
    for c in range(d):
        for t in range(count):
            x = panels[first + t, columns[c]]
            for j in range(PANEL):
                length[t * PANEL + j] += x[j] * x[j]
    for j in range(n):
        length[j] = math.sqrt(length[j])
    for c in range(d):
        at = q[columns[c]] / norm
        for t in range(count):
            x = panels[first + t, columns[c]]
            for j in range(PANEL):
                cosine[t * PANEL + j] += at * (x[j] / length[t * PANEL + j])
    for c in range(d):
        at = q[columns[c]] / norm
        for t in range(count):
            x, mine = panels[first + t, columns[c]], walk.samples.sums[first + t, sample_place + c]
            for j in range(PANEL):
                place = t * PANEL + j
                if norm > 0.0 and length[place] > 0.0:
                    factor, unit = -2.0 * b[place] * math.sqrt(squared[place]), x[j] / length[place]
                    g[place] = factor * (unit - cosine[place] * at) / norm
                    mine[j] += factor * (at - cosine[place] * unit) / length[place]
                else:
                    g[place] = 0.0
        walk.rows.sums[i + r, query_place + c] += row_sum(g, n)
    return 0


_PULLS = {metrics.MATRIX: _pull_matrix, metrics.HAVERSINE: _pull_haversine, metrics.COSINE: _pull_cosine}


@lru_cache
def pull_address(code: int, moves: bool, by_column: bool) -> int:
    """Address of the part ``pull`` of a distance.

    ``moves``: whether derivatives by coordinates are asked for; ``by_column``: those by the bandwidth of each column.
    """
    if code in _PULLS:
        return address(_PULLS[code], *STEP_PART)
    manhattan, chebyshev, minkowski = (
        code == one for one in (metrics.MANHATTAN, metrics.CHEBYSHEV, metrics.MINKOWSKI)
    )
    periodic, missing = code == metrics.PERIODIC, code == metrics.NAN_EUCLIDEAN
    counts = chebyshev or missing

    @part
    def pull(walk, k, i, r, first, count, size):
        steps, nodes, panels, work = walk.program.steps, walk.nodes, walk.samples.panels, walk.scratch.pull
        d, n, column, scale = (
            steps[k, COLUMN_COUNT],
            count * PANEL,
            steps[k, COLUMN_START],
            steps[k, NUMBER_START] + 2,
        )
        queries, columns, numbers = walk.rows.queries, walk.program.columns, walk.program.numbers
        d2, b, out, moved, other = (
            walk.scratch.squared[k, r],
            walk.scratch.work[OWED],
            work[0],
            work[1],
            work[2],
        )
        if counts:
            for j in range(n):
                other[j] = 0.0
            for c in range(d):
                at, unit = queries[i + r, columns[column + c]], numbers[scale + c]
                for t in range(count):
                    x = panels[first + t, columns[column + c]]
                    for j in range(PANEL):
                        size = abs(at - x[j]) * unit
                        if chebyshev:
                            other[t * PANEL + j] = max(other[t * PANEL + j], size)
                        else:  # columns present
                            other[t * PANEL + j] += 0.0 if math.isnan(size) else 1.0
        for c in range(d):
            at, unit = queries[i + r, columns[column + c]], numbers[scale + c]
            for t in range(count):
                x = panels[first + t, columns[column + c]]
                if moves:
                    mine = walk.samples.sums[first + t, nodes[k, SAMPLE_PLACE] + c]
                for j in range(PANEL):
                    place = t * PANEL + j
                    difference = at - x[j]
                    if periodic:
                        period = numbers[scale + d + c]
                        difference -= period * np.rint(difference / period)
                    if missing:
                        difference = 0.0 if math.isnan(difference) else difference
                    sign = (difference > 0.0) - (difference < 0.0)
                    if manhattan:
                        slope = math.sqrt(d2[place]) * unit * sign
                    elif chebyshev:
                        largest = abs(difference) * unit == other[place]
                        slope = other[place] * unit * sign if largest else 0.0
                        other[place] = -1.0 if largest else other[place]
                    elif minkowski:
                        root = math.sqrt(d2[place])
                        share = abs(difference) * unit / root
                        slope = root * share ** (numbers[scale + d] - 1.0) * unit * sign
                    elif missing:
                        slope = difference * unit * unit * (d / max(other[place], 1.0))
                    else:
                        slope = difference * unit * unit
                    out[place] = 2.0 * b[place] * slope
                    if moves:
                        mine[j] -= out[place]
                    if by_column:
                        moved[place] = out[place] * difference
            if moves:
                walk.rows.sums[i + r, nodes[k, QUERY_PLACE] + c] += row_sum(out, n)
            if by_column:
                walk.samples.numbers[nodes[k, PLACE] + c] += row_sum(moved, n)
        return 0

    return address(pull, *STEP_PART)


class _Pairs(NamedTuple):
    walk: Walk
    pull: int
    squared: np.ndarray
    owed: np.ndarray


_PAIRS = Record(types.NamedTuple((WALK.kind, types.int64, ONE, ONE), _Pairs))


@inner
def _pull_pairs(pairs):
    walk, squared, owed = pairs.walk, pairs.squared, pairs.owed
    ones, own = walk.scratch.squared[0, 0], walk.scratch.work[OWED]
    for i in range(owed.size):
        if owed[i] == 0.0:
            continue
        t, j = i // PANEL, i % PANEL
        ones[j], own[j] = squared[i], owed[i]
        call(pairs.pull, walk, 0, i, 0, t, 1, PANEL)
        ones[j], own[j] = 1.0, 0.0
    return 0


def pull_pairs(walk: Walk, code: int, squared: np.ndarray, owed: np.ndarray) -> None:
    """Back through the distance of a program's one step, for each query: to the sample at its place in the panels.

    ``squared`` and ``owed`` are the squared distances and the derivatives by them, shape (m,), 0 where there is none.
    """
    walk.scratch.squared[:], walk.scratch.work[OWED] = 1.0, 0.0
    run(address(_pull_pairs, _PAIRS), _PAIRS, _Pairs(walk, pull_address(code, True, False), squared, owed))
