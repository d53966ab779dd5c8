r"""What a pair owes in the gradient, and the kernel that adds it up.

With the error :math:`e_{ij} = c_i^\top (v_j - y_i)` of a cotangent c, and the sum of the weights :math:`Z_i`, a leaf's
weight owes :math:`e_{ij}\,s_j\,\partial w_{ij} / \partial k \,/\, Z_i`: the cofactor
:math:`\partial w/\partial k` is made from the program as the weight is. All here are factories. The *adjoint* is what a
pair owes, the *columns* are what the numbers (coordinates, a bandwidth, the entries of a table) get of it. A thread has
one query and sums over the samples, or one sample and sums over the queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...kernels import metrics
from .. import program as p
from .backend import cuda, device, kernel, nearest_whole, trigonometry, type_of
from .slopes import pull, slope
from .sums import span_of
from .weigh import Step, squared_distance


class Given(NamedTuple):
    """What the gradient reads beside the program, on the card.

    Attributes
    ----------
    cotangent, means : arrays, shape (m, p)
    log_sums : array, shape (m,)
        ``inf`` for a query that has no neighbour.
    values : array, shape (n, p)
    copies : array, shape (n,)
        Multiplicities, or their logarithms.
    """

    cotangent: Any
    means: Any
    log_sums: Any
    values: Any
    copies: Any


# -- what a pair owes --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def adjoint(weigh: Callable, log: bool, with_copies: bool, with_error: bool, T: type) -> Callable:
    """The weight, or a cofactor, times the error and the multiplicity, over the sum of the weights."""
    zero, nothing, infinity = T(0), T(-math.inf), T(math.inf)

    @device
    def owed(queries, i, samples, j, data, given):
        value = weigh(queries, i, samples, j, j, data)
        if log:
            value -= given.log_sums[i]
            if with_copies:
                value += given.copies[j]
            value = T(math.exp(value)) if value > nothing else zero
        else:
            value *= T(math.exp(-given.log_sums[i]))
            if with_copies:
                value *= given.copies[j]
        if with_error and value != zero:  # hidden NaN is not read
            error = zero
            for c in range(given.values.shape[1]):
                error += given.cotangent[i, c] * (given.values[j, c] - given.means[i, c])
            value *= error
        return value if given.log_sums[i] < infinity else zero

    return owed


@lru_cache(maxsize=256)
def of_logarithm(weight: Callable, factor: Callable, T: type) -> Callable:
    """A leaf's log-weight and the logarithm of its cofactor: their sum."""
    return device(lambda q, i, x, b, j, data: weight(q, i, x, b, j, data) + factor(q, i, x, b, j, data))


@lru_cache(maxsize=256)
def of_distance(step: Step, owed: Callable, by_distance: bool, T: type) -> Callable:
    """What a leaf's squared distance is owed, or, times its scaled square, its bandwidth; 0 where points coincide."""
    squared, steep = squared_distance(step, T), slope(step.profile, T)
    number, query_slot, sample_slot = step.number, step.query_slot, step.sample_slot
    zero, infinity = T(0), T(math.inf)

    @device
    def distance_owed(queries, i, samples, j, data, given):
        value = owed(queries, i, samples, j, data, given)
        if value != zero:
            distance, unit = squared(queries, i, samples, j, data.numbers), data.numbers[number + 1]
            if query_slot >= 0:
                unit *= data.of_queries[query_slot, i]
            if sample_slot >= 0:
                unit *= data.of_samples[sample_slot, j]
            s = distance / unit
            if not (zero < s < infinity and distance > zero):
                value = zero
            else:
                value *= steep(s, data.numbers[number]) * (T(1) / unit if by_distance else s)
        return value

    return distance_owed


# -- what its numbers get ----------------------------------------------------------------------------------------------


@lru_cache
def whole(T: type) -> Callable:
    """All of it."""
    one = T(1)
    return device(lambda queries, i, samples, j, data, given, c: one)


@lru_cache
def of_values(T: type) -> Callable:
    """By column c of the values: the cotangent."""
    return device(lambda queries, i, samples, j, data, given, c: given.cotangent[i, c])


@lru_cache(maxsize=256)
def of_coordinate(step: Step, by_sample: bool, T: type) -> Callable:
    """By column c of the query, or of the sample."""
    kind, at, number = step.kind, step.at, step.number
    if kind == p.DOT:
        if by_sample:
            return device(
                lambda queries, i, samples, j, data, given, c: queries[at + c, i] * data.numbers[number]
            )
        return device(
            lambda queries, i, samples, j, data, given, c: samples[j, at + c] * data.numbers[number]
        )
    if kind == p.VON_MISES:
        sinpi, turn, sign = trigonometry(T)[0], T(1 / math.pi), T(1 if by_sample else -1)

        @device
        def turned(queries, i, samples, j, data, given, c):
            return sign * data.numbers[number] * T(sinpi((queries[at + c, i] - samples[j, at + c]) * turn))

        return turned
    squared, slide = squared_distance(step, T), pull(step, by_sample, T)

    @device
    def pulled(queries, i, samples, j, data, given, c):
        distance = squared(queries, i, samples, j, data.numbers)
        return slide(queries, i, samples, j, data.numbers, distance, c)

    return pulled


@lru_cache(maxsize=256)
def of_column_width(step: Step, T: type) -> Callable:
    """By the bandwidth of a column, or by entry c of the matrix, before the factors that do not depend on the pair."""
    at, count, number, zero, two = step.at, step.count, step.number + 2 + step.count, T(0), T(2)
    slide, periodic, rint = of_coordinate(step, False, T), step.metric == metrics.PERIODIC, nearest_whole(T)

    @device
    def moved(queries, i, samples, j, data, given, c):
        gap = queries[at + c, i] - samples[j, at + c]
        if periodic:
            period = data.numbers[number + c]
            gap -= period * T(rint(gap / period))
        return slide(queries, i, samples, j, data, given, c) * gap if gap == gap else zero

    @device
    def entry(queries, i, samples, j, data, given, c):
        row, column, inner = c // count, c % count, zero
        for k in range(count):
            inner += data.numbers[number + row * count + k] * (queries[at + k, i] - samples[j, at + k])
        return two * inner * (queries[at + column, i] - samples[j, at + column])

    return entry if step.metric == metrics.MATRIX else moved


@lru_cache(maxsize=256)
def of_entry(step: Step, T: type) -> Callable:
    """By entry c of a table, or of a bias by offset: the pairs that read it."""
    at, number, width, one, zero, last = step.at, step.number, step.extra, T(1), T(0), T(step.extra - 1)

    @device
    def in_table(queries, i, samples, j, data, given, c):
        return one if np.int64(queries[at, i]) * width + np.int64(samples[j, at]) == c else zero

    @device
    def at_offset(queries, i, samples, j, data, given, c):
        offset = queries[at, i] - samples[j, at] - data.numbers[number]
        return one if np.int64(min(max(offset, zero), last)) == c else zero

    return in_table if step.kind == p.TABLE else at_offset


@lru_cache(maxsize=256)
def of_own_weight(weight: Callable, T: type) -> Callable:
    """By the factor of a leaf whose log-weight is linear in it."""
    zero, nothing = T(0), T(-math.inf)

    @device
    def own(queries, i, samples, j, data, given, c):
        value = weight(queries, i, samples, j, j, data)
        return value if value > nothing else zero

    return own


# -- the kernel --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def pairs_kernel(owed: Callable, column: Callable, width: int, by_sample: bool, T: type) -> Any:
    """Sums over the samples for each query, or over the queries for each sample: parts as of the other sums."""
    zero, size, real, block_span = T(0), width, type_of(T), span_of()

    @kernel
    def pairs(queries, samples, data, given, first, last, span, part):
        near = cuda.local.array(size, real)
        far = cuda.local.array(size, real)
        m, n = queries.shape[1] // span.problems, samples.shape[0] // span.problems
        own, over = (n, m) if by_sample else (m, n)
        origin, place, begin, end = block_span(
            span, own, over, cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockDim.x
        )
        place += cuda.threadIdx.x
        if place < own:
            place += origin
            for c in range(size):
                far[c] = zero
            for r0 in range(begin, end, 64):
                for c in range(size):
                    near[c] = zero
                for r in range(r0, min(r0 + 64, end)):
                    i, j = (r, place) if by_sample else (place, r)
                    value = owed(queries, i, samples, j, data, given)
                    if value != zero:
                        for c in range(size):
                            near[c] += value * column(
                                queries, i, samples, j, data, given, min(first + c, last)
                            )
                for c in range(size):
                    far[c] += near[c]
            part.shift[cuda.blockIdx.y, place] = zero
            part.total[cuda.blockIdx.y, place] = zero
            for c in range(size):
                part.sums[cuda.blockIdx.y, c, place] = far[c]

    return pairs
