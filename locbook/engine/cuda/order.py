"""The reductions that need order or rows: the k largest, quantiles, and single weights written down.

One thread has one query, as in :mod:`locbook.engine.cuda.sums`. The k largest are kept as a heap in global memory,
whose root, the worst, is looked at for each sample and changed for few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from .backend import cuda, device, kernel, type_of


@lru_cache(maxsize=256)
def weight_at(weigh: Callable, log: bool, T: type) -> Callable:
    """Weight of a pair, its multiplicity included, in units of the exponential of ``shift``; ``bad`` if it is none."""
    nothing, infinity = T(-math.inf) if log else T(0), T(math.inf)

    @device
    def weight(queries, i, samples, j, data, bias, shift, bad):
        value = weigh(queries, i, samples, j, j, data)
        value = value + bias[j] if log else value * bias[j]
        if not (nothing <= value < infinity):
            bad[0] = 1
        if log:
            value = T(math.exp(value - shift)) if value > nothing else T(0)
        return value

    return weight


# -- limits of neighbourhoods ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def limit_kernel(squared: Callable, slot: int, T: type) -> Any:
    """Measure the squared distance of each query's last neighbour; below 0 it stays: there is none."""
    zero = T(0)

    @kernel
    def measure(queries, samples, data):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < data.ids.size and data.of_queries[slot, i] >= zero:
            row = data.last[slot, i]
            data.of_queries[slot, i] = squared(queries, i, samples, row, data.numbers)

    return measure


# -- the k largest ---------------------------------------------------------------------------------------------------


@lru_cache
def _worse() -> Callable:
    """Whether a candidate is worse than another: a lower score, or the same and a larger row."""
    return device(lambda score, row, other, other_row: score < other or (score == other and row > other_row))


@lru_cache
def _sift() -> Callable:
    """Put a candidate at the root of a heap of ``size`` and let it sink; the root is the worst."""
    worse = _worse()

    @device
    def sift(scores, rows, g, place, size, score, row):
        parent, child = 0, 1
        while child < size:
            right = child + 1
            if right < size and worse(
                scores[g, right, place], rows[g, right, place], scores[g, child, place], rows[g, child, place]
            ):
                child = right
            if not worse(scores[g, child, place], rows[g, child, place], score, row):
                break
            scores[g, parent, place] = scores[g, child, place]
            rows[g, parent, place] = rows[g, child, place]
            parent, child = child, 2 * child + 1
        scores[g, parent, place] = score
        rows[g, parent, place] = row

    return sift


@lru_cache(maxsize=256)
def top_kernel(weigh: Callable, columns: int, tile: int, T: type) -> Any:
    """Heaps (g, k, r) of the largest log-weights, for parts of ``split`` samples from ``start`` to ``stop``."""
    nothing, infinity, sift = T(-math.inf), T(math.inf), _sift()
    step, room = tile if tile else 64, (max(tile, 1), columns if tile else 1)
    last, real = np.iinfo(np.int64).max, type_of(T)

    @kernel
    def top(queries, samples, data, bias, start, split, stop, scores, rows, bad):
        shared = cuda.shared.array(room, real)
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        g, k, m = cuda.blockIdx.y, scores.shape[1], scores.shape[2]
        begin = start + g * split
        end = min(begin + split, stop)
        if i < m:
            for h in range(k):
                scores[g, h, i], rows[g, h, i] = nothing, last
        worst = nothing
        for j0 in range(begin, end, step):
            count = min(step, end - j0)
            if tile:
                cuda.syncthreads()
                for e in range(cuda.threadIdx.x, count * columns, cuda.blockDim.x):
                    shared[e // columns, e % columns] = samples[j0 + e // columns, e % columns]
                cuda.syncthreads()
            for r in range(count if i < m else 0):
                j = j0 + r
                if tile:
                    score = weigh(queries, i, shared, r, j, data) + bias[j]
                else:
                    score = weigh(queries, i, samples, j, j, data) + bias[j]
                if not score < infinity:
                    bad[0] = 1
                if score > worst:  # an equal one with a larger row is worse
                    sift(scores, rows, g, i, k, score, j)
                    worst = scores[g, 0, i]

    return top


@lru_cache
def merge_top_kernel(T: type) -> Any:
    """Put the candidates of all parts on the heap of the state, (1, k, r)."""
    nothing, sift, worse = T(-math.inf), _sift(), _worse()

    @kernel
    def merge(part_scores, part_rows, parts, scores, rows):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        k = scores.shape[1]
        if i < scores.shape[2]:
            for g in range(parts):
                for h in range(k):
                    score, row = part_scores[g, h, i], part_rows[g, h, i]
                    if score > nothing and worse(scores[0, 0, i], rows[0, 0, i], score, row):
                        sift(scores, rows, 0, i, k, score, row)

    return merge


@lru_cache
def sort_kernel(T: type) -> Any:
    """Sort each heap in place, best first; rows that fill up become -1."""
    nothing, sift = T(-math.inf), _sift()

    @kernel
    def sort(scores, rows):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        k = scores.shape[1]
        if i < scores.shape[2]:
            for size in range(k - 1, 0, -1):
                score, row = scores[0, size, i], rows[0, size, i]
                scores[0, size, i], rows[0, size, i] = scores[0, 0, i], rows[0, 0, i]
                sift(scores, rows, 0, i, size, score, row)
            for h in range(k):
                if scores[0, h, i] == nothing:
                    rows[0, h, i] = -1

    return sort


@lru_cache
def distance_kernel(T: type) -> Any:
    """Scores and rows (k, m) as distances and rows (m, k)."""
    zero = T(0)

    @kernel
    def distances(scores, rows, out, out_rows):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        i, h = place // out.shape[1], place % out.shape[1]
        if i < out.shape[0]:
            out[i, h] = T(math.sqrt(max(zero, -scores[h, i])))
            out_rows[i, h] = rows[h, i]

    return distances


# -- quantiles -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def quantile_kernel(weigh: Callable, log: bool, T: type) -> Any:
    """Rows ``found[t, l]`` at which the share of the weight reaches ``levels[l]``, the samples taken in ``order``.

    The total is summed first, in the same steps (with Kahan's compensation) as then the running sum: that a level of 1
    is reached does not hang on rounding.
    """
    weight, zero = weight_at(weigh, log, T), T(0)

    @kernel
    def quantile(queries, samples, data, bias, order, levels, shift, found, bad):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < data.ids.size:
            total, lost = zero, zero
            for k in range(order.size):
                more = weight(queries, i, samples, order[k], data, bias, shift[i], bad) - lost
                both = total + more
                lost = (both - total) - more
                total = both
            running, lost, level = zero, zero, 0
            last = -1
            for k in range(order.size):
                own = weight(queries, i, samples, order[k], data, bias, shift[i], bad)
                more = own - lost
                both = running + more
                lost = (both - running) - more
                running = both
                if own > zero:
                    last = order[k]
                    while level < levels.size and running >= levels[level] * total:
                        found[i, level] = last
                        level += 1
            while level < levels.size:
                found[i, level] = last
                level += 1

    return quantile


# -- single weights --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def dense_kernel(weigh: Callable, log: bool, exponentiate: bool, T: type) -> Any:
    """Every weight: ``out[i, j]``; its logarithm in the log domain, unless ``exponentiate``."""
    infinity = T(math.inf)

    @kernel
    def dense(queries, samples, data, bias, out, bad):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        i, j = place // samples.shape[0], place % samples.shape[0]
        if i < data.ids.size:
            value = weigh(queries, i, samples, j, j, data)
            value = value + bias[j] if log else value * bias[j]
            if exponentiate:
                value = T(math.exp(value))
            if not value < infinity:
                bad[0] = 1
            out[i, j] = value

    return dense


@lru_cache(maxsize=256)
def share_kernel(weigh: Callable, log: bool, own: bool, T: type) -> Any:
    """Weights over their sum: ``out[i, j]``, or, of each query's ``own`` sample alone, ``out[i, 0]``.

    NaN where no sample has a weight.
    """
    weight, zero, wrong = weight_at(weigh, log, T), T(0), T(math.nan)

    @kernel
    def shares(queries, samples, data, bias, shift, sums, out, bad):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        i, j = place // out.shape[1], place % out.shape[1]
        if i < data.ids.size:
            row = data.ids[i] if own else j
            total = sums[0, 0, i] + sums[1, 0, i]
            value = weight(queries, i, samples, row, data, bias, shift[i], bad)
            out[i, j] = value / total if total > zero else wrong

    return shares
