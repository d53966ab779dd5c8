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
from typing import Any

import numpy as np
from numba import njit, types

from ..kernels import metrics, profiles
from .panels import PANEL
from .parts import INTEGERS, ONE, THREE, TWO, address, inner
from .user import scalar_function

#: Arguments of a slope and of a pull.
SLOPE_PART = (ONE, types.intp, types.float64, ONE)
PULL_PART = (
    *(TWO, types.intp, THREE, types.intp, types.intp, INTEGERS, ONE, ONE, ONE, ONE, TWO),
    *(ONE, types.int64, THREE, types.int64, ONE, types.int64),
)
#: Metrics that have a derivative.
SMOOTH = tuple(set(range(metrics.USER)) - {metrics.HAMMING})
#: Step of the central difference of a user's profile, relative to max(u, 1).
STEP = 6e-6

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


# -- profiles ----------------------------------------------------------------------------------------------------------


@lru_cache
def slope_address(code: int) -> int:
    """Address of the part ``slope(row, n, a, out)`` of a named profile; ``row`` holds ``s > 0``."""

    @inner
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


@inner
def _add(g, column, first, count, query_sums, query_place, sample_sums, sample_place):
    """Add a row of derivatives by a column of the query, which are minus those by the samples'."""
    query_sums[query_place + column] += row_sum(g, count * PANEL)
    for t in range(count):
        mine, some = sample_sums[first + t, sample_place + column], g[t * PANEL : (t + 1) * PANEL]
        for j in range(PANEL):
            mine[j] -= some[j]


@inner
def _pull_matrix(
    queries, i, panels, first, count, columns, scale, parameters, squared, b, work, query_sums, query_place,
    sample_sums, sample_place, numbers, place,
):  # fmt: skip
    """D = |M (q - x)|^2: the derivative by q is 2 b M' y, that by M is 2 b y (q - x)', y = M (q - x)."""
    q, d, n, g, y, matrix = queries[i], columns.size, count * PANEL, work[0], work[2:], parameters
    for r in range(d):
        for j in range(n):
            y[r, j] = 0.0
        for c in range(d):
            at, entry = q[columns[c]], matrix[r * d + c]
            for t in range(count):
                x = panels[first + t, columns[c]]
                for j in range(PANEL):
                    y[r, t * PANEL + j] += entry * (at - x[j])
        for j in range(n):
            y[r, j] *= 2.0 * b[j]
    if query_place >= 0:
        for c in range(d):
            for j in range(n):
                g[j] = 0.0
            for r in range(d):
                entry = matrix[r * d + c]
                for j in range(n):
                    g[j] += entry * y[r, j]
            _add(g, c, first, count, query_sums, query_place, sample_sums, sample_place)
    if place >= 0:
        for r in range(d):
            for c in range(d):
                at = q[columns[c]]
                for t in range(count):
                    x = panels[first + t, columns[c]]
                    for j in range(PANEL):
                        g[t * PANEL + j] = y[r, t * PANEL + j] * (at - x[j])
                numbers[place + r * d + c] += row_sum(g, n)
    return 0


@inner
def _pull_haversine(
    queries, i, panels, first, count, columns, scale, parameters, squared, b, work, query_sums, query_place,
    sample_sums, sample_place, numbers, place,
):  # fmt: skip
    """D = (2 asin sqrt a)^2, dD/da = 2 sqrt(D / (a (1 - a)))."""
    if query_place < 0:
        return 0
    q = queries[i]
    latitude, longitude = q[columns[0]], q[columns[1]]
    for t in range(count):
        there, around = panels[first + t, columns[0]], panels[first + t, columns[1]]
        mine = sample_sums[first + t]
        for j in range(PANEL):
            k = t * PANEL + j
            half, turn = 0.5 * (latitude - there[j]), 0.5 * (longitude - around[j])
            here, other, across = math.cos(latitude), math.cos(there[j]), math.sin(turn) ** 2
            a = math.sin(half) ** 2 + here * other * across
            factor = b[k] * 2.0 * math.sqrt(squared[k] / (a * (1.0 - a))) if 0.0 < a < 1.0 else 0.0
            along, round_it = math.sin(half) * math.cos(half), here * other * math.sin(turn) * math.cos(turn)
            query_sums[query_place] += factor * (along - math.sin(latitude) * other * across)
            query_sums[query_place + 1] += factor * round_it
            mine[sample_place, j] -= factor * (along + here * math.sin(there[j]) * across)
            mine[sample_place + 1, j] -= factor * round_it
    return 0


@inner
def _pull_cosine(
    queries, i, panels, first, count, columns, scale, parameters, squared, b, work, query_sums, query_place,
    sample_sums, sample_place, numbers, place,
):  # fmt: skip
    """D = (1 - e f)^2 of the unit vectors e, f; by q it is -2 b sqrt(D) (f - (e f) e) / |q|."""
    if query_place < 0:
        return 0
    q, d, n = queries[i], columns.size, count * PANEL
    g, cosine, length = work[0], work[1], work[2]
    norm = 0.0
    for j in range(n):
        cosine[j] = length[j] = 0.0
    for c in range(d):
        norm += q[columns[c]] ** 2
    norm = math.sqrt(norm)
    for c in range(d):
        at = q[columns[c]]
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
            x, mine = panels[first + t, columns[c]], sample_sums[first + t, sample_place + c]
            for j in range(PANEL):
                k = t * PANEL + j
                if norm > 0.0 and length[k] > 0.0:
                    factor, unit = -2.0 * b[k] * math.sqrt(squared[k]), x[j] / length[k]
                    g[k] = factor * (unit - cosine[k] * at) / norm
                    mine[j] += factor * (at - cosine[k] * unit) / length[k]
                else:
                    g[k] = 0.0
        query_sums[query_place + c] += row_sum(g, n)
    return 0


_PULLS = {metrics.MATRIX: _pull_matrix, metrics.HAVERSINE: _pull_haversine, metrics.COSINE: _pull_cosine}


@lru_cache
def pull_address(code: int) -> int:
    """Address of the part ``pull`` of a distance.

    Its arguments: ``queries, i, panels, first, count, columns, scale, parameters, squared, b, work, query_sums,
    query_place, sample_sums, sample_place, numbers, place``. ``squared`` and ``b`` are rows of the squared distances,
    > 0, and of the derivatives by them; ``work`` is scratch, shape (columns + 2, panels * PANEL). Negative places are
    those of sums that no one asks for.
    """
    if code in _PULLS:
        return address(_PULLS[code], *PULL_PART)

    @inner
    def pull(
        queries, i, panels, first, count, columns, scale, parameters, squared, b, work, query_sums, query_place,
        sample_sums, sample_place, numbers, place,
    ):  # fmt: skip
        q, d, n = queries[i], columns.size, count * PANEL
        g, moved, extra = work[0], work[1], work[2]
        if code in (metrics.CHEBYSHEV, metrics.NAN_EUCLIDEAN):
            for j in range(n):
                extra[j] = 0.0
            for c in range(d):
                at = q[columns[c]]
                for t in range(count):
                    x = panels[first + t, columns[c]]
                    for j in range(PANEL):
                        size = abs(at - x[j]) * scale[c]
                        if code == metrics.CHEBYSHEV:
                            extra[t * PANEL + j] = max(extra[t * PANEL + j], size)
                        else:  # columns present
                            extra[t * PANEL + j] += 0.0 if math.isnan(size) else 1.0
        for c in range(d):
            at, unit = q[columns[c]], scale[c]
            for t in range(count):
                x, part = panels[first + t, columns[c]], slice(t * PANEL, (t + 1) * PANEL)
                d2, factor, out, other = squared[part], b[part], g[part], extra[part]
                for j in range(PANEL):
                    difference = at - x[j]
                    sign = (difference > 0.0) - (difference < 0.0)
                    if code == metrics.MANHATTAN:
                        slope = math.sqrt(d2[j]) * unit * sign
                    elif code == metrics.CHEBYSHEV:
                        largest = abs(difference) * unit == other[j]
                        slope = other[j] * unit * sign if largest else 0.0
                        other[j] = -1.0 if largest else other[j]
                    elif code == metrics.MINKOWSKI:
                        root = math.sqrt(d2[j])
                        share = abs(difference) * unit / root
                        slope = root * share ** (parameters[0] - 1.0) * unit * sign
                    else:
                        if code == metrics.PERIODIC:
                            difference -= parameters[c] * np.rint(difference / parameters[c])
                        if code == metrics.NAN_EUCLIDEAN:
                            difference = 0.0 if math.isnan(difference) else difference
                        slope = difference * unit * unit
                        if code == metrics.NAN_EUCLIDEAN:
                            slope *= d / max(other[j], 1.0)
                    out[j] = 2.0 * factor[j] * slope
                if place >= 0:
                    product = moved[part]
                    for j in range(PANEL):
                        difference = at - x[j]
                        if code == metrics.PERIODIC:
                            difference -= parameters[c] * np.rint(difference / parameters[c])
                        if code == metrics.NAN_EUCLIDEAN:
                            difference = 0.0 if math.isnan(difference) else difference
                        product[j] = out[j] * difference
            if query_place >= 0:
                _add(g, c, first, count, query_sums, query_place, sample_sums, sample_place)
            if place >= 0:
                numbers[place + c] += row_sum(moved, n)
        return 0

    return address(pull, *PULL_PART)
