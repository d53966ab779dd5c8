r"""Score, weight and sum in one go, for kernels of one exponential leaf: Gaussian, Laplace, softmax.

Weights are :math:`2^{a s + b}` of a score s, the squared distance, its root, or the inner product
(:mod:`locbook.engine.leaf` says which kernels that is; the plan of steps is not needed). Two kernels:

- :func:`thread_kernel`, for few columns: a thread has one to four queries, all in registers, and reads each sample of
  the tile once for all of them;
- :func:`block_kernel`, for many: a block has a square of queries and samples, and each thread a small square in it, as
  in a product of matrices; the columns come by in slices.

Both read :class:`Given` and write parts that :mod:`locbook.engine.cuda.sums` merges, and round as is said there.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

from ..scores import PRODUCT, SCALED
from .backend import cuda, kernel, type_of
from .sums import span_of

#: Samples that a thread scores before it weighs them.
AT_ONCE = 4
#: Columns of samples and values up to which a thread has its queries to itself.
FEW_COLUMNS, FEW_VALUES = 16, 8
#: Columns of a slice, and columns of values that a block sums at once.
SLICE, MOST_VALUES = 16, 64


class Given(NamedTuple):
    """What both kernels read, on the card.

    Attributes
    ----------
    rows : array of int64, shape (r,)
        The queries that are asked for.
    queries, samples : arrays, shapes (m, d) and (n, d)
    values : array, shape (n, p)
    bias : array, shape (n,)
    slope : array, shape (m,)
    factors : array, shape (d,)
        Of the differences, where scores are SCALED.
    """

    rows: Any
    queries: Any
    samples: Any
    values: Any
    bias: Any
    slope: Any
    factors: Any


@lru_cache(maxsize=256)
def thread_kernel(kind: int, root: bool, d: int, p: int, queries_each: int, tile: int, T: type) -> Any:
    """Parts for ``d`` columns and ``p`` of values; ``queries_each`` of a thread, ``tile`` a multiple of AT_ONCE."""
    zero, nothing, lowest = T(0), T(-math.inf), T(-3e38)
    exp2, real, block_span = math.exp2, type_of(T), span_of()
    samples_in, values_in = (tile, d), (tile, max(p, 1))
    mine, scores, sums = (queries_each, d), (queries_each, AT_ONCE), (queries_each, p + 1)

    @kernel
    def fused(given, first, span, part):
        rows, queries, samples, values, bias, slope, factors = given
        xs = cuda.shared.array(samples_in, real)
        vs = cuda.shared.array(values_in, real)
        bs = cuda.shared.array(tile, real)
        q = cuda.local.array(mine, real)
        far = cuda.local.array(sums, real)
        near = cuda.local.array(sums, real)
        score = cuda.local.array(scores, real)
        top = cuda.local.array(queries_each, real)
        steep = cuda.local.array(queries_each, real)
        lane, threads = cuda.threadIdx.x, cuda.blockDim.x
        own, n = rows.size // span.problems, samples.shape[0] // span.problems
        origin, place, begin, end = block_span(
            span, own, n, cuda.blockIdx.x, cuda.blockIdx.y, threads * queries_each
        )
        place += lane
        for a in range(queries_each):
            i = rows[origin + min(place + a * threads, own - 1)]
            steep[a], top[a] = slope[i], nothing
            for c in range(d):
                q[a, c] = queries[i, c]
            for c in range(p + 1):
                far[a, c] = zero
        for j0 in range(begin, end, tile):
            count = min(tile, end - j0)
            cuda.syncthreads()
            for e in range(lane, tile * d, threads):
                xs[e // d, e % d] = samples[j0 + e // d, e % d] if e < count * d else zero
            for e in range(lane, tile * p, threads):
                c = first + e % p
                vs[e // p, e % p] = values[j0 + e // p, c] if e < count * p else zero
            for r in range(lane, tile, threads):
                bs[r] = bias[j0 + r] if r < count else nothing
            cuda.syncthreads()
            for a in range(queries_each):
                for c in range(p + 1):
                    near[a, c] = zero
            for r0 in range(0, count, AT_ONCE):
                for a in range(queries_each):
                    for u in range(AT_ONCE):
                        score[a, u] = zero
                for u in range(AT_ONCE):
                    for c in range(d):
                        x = xs[r0 + u, c]
                        for a in range(queries_each):
                            if kind == PRODUCT:
                                score[a, u] += q[a, c] * x
                            else:
                                gap = q[a, c] - x
                                if kind == SCALED:
                                    gap *= factors[c]
                                score[a, u] += gap * gap
                for a in range(queries_each):
                    largest = nothing
                    for u in range(AT_ONCE):
                        s = T(math.sqrt(score[a, u])) if root else score[a, u]
                        score[a, u] = steep[a] * s + bs[r0 + u]
                        largest = max(largest, score[a, u])
                    if largest > top[a]:
                        fade = T(exp2(top[a] - largest))
                        top[a] = largest
                        for c in range(p + 1):
                            near[a, c] *= fade
                            far[a, c] *= fade
                    base = max(top[a], lowest)
                    for u in range(AT_ONCE):
                        weight = T(exp2(score[a, u] - base))
                        near[a, 0] += weight
                        for c in range(p):
                            near[a, c + 1] += weight * vs[r0 + u, c]
            for a in range(queries_each):
                for c in range(p + 1):
                    far[a, c] += near[a, c]
        for a in range(queries_each):
            if place + a * threads < own:
                i = origin + place + a * threads
                part.shift[cuda.blockIdx.y, i] = top[a]
                part.total[cuda.blockIdx.y, i] = far[a, 0]
                for c in range(p):
                    part.sums[cuda.blockIdx.y, c, i] = far[a, c + 1]

    return fused


@lru_cache(maxsize=64)
def block_kernel(kind: int, root: bool, p: int, side: int, each: int, T: type) -> Any:
    """Parts for any number of columns: ``side`` squared threads, each with ``each`` queries and ``each`` samples.

    ``p``, the columns of values summed at once, is a multiple of ``side`` (0 for none). A tile goes through: scores;
    the largest of each query; weights; their sums.
    """
    zero, nothing, lowest = T(0), T(-math.inf), T(-3e38)
    exp2, real, block_span = math.exp2, type_of(T), span_of()
    edge, threads = side * each, side * side
    per_row = threads // edge  # threads that share a row when it is summed up
    length, columns = edge // per_row, max(p // side, 1)
    slices, square, values_in, rows_in = (SLICE, edge), (edge, edge + 1), (edge, max(p, 1)), (per_row, edge)
    scores, sums = (each, each), (each, columns)

    @kernel
    def fused(given, first, span, part):
        rows, queries, samples, values, bias, slope, factors = given
        qs = cuda.shared.array(slices, real)
        xs = cuda.shared.array(slices, real)
        ws = cuda.shared.array(square, real)
        vs = cuda.shared.array(values_in, real)
        parts = cuda.shared.array(rows_in, real)
        tops = cuda.shared.array(edge, real)
        fades = cuda.shared.array(edge, real)
        score = cuda.local.array(scores, real)
        near = cuda.local.array(sums, real)
        far = cuda.local.array(sums, real)
        lane, d = cuda.threadIdx.x, queries.shape[1]
        tx, ty, row, piece = lane % side, lane // side, lane % edge, lane // edge * length
        own, n = rows.size // span.problems, samples.shape[0] // span.problems
        origin, block, begin, end = block_span(span, own, n, cuda.blockIdx.x, cuda.blockIdx.y, edge)
        sum_of_weights = zero
        for a in range(each):
            for k in range(columns):
                far[a, k] = zero
        if lane < edge:
            tops[lane] = nothing
        for j0 in range(begin, end, edge):
            for a in range(each):
                for b in range(each):
                    score[a, b] = zero
            for c0 in range(0, d, SLICE):
                cuda.syncthreads()
                for e in range(lane, edge * SLICE, threads):
                    r, c = e // SLICE, c0 + e % SLICE
                    i = rows[origin + min(block + r, own - 1)]
                    qs[e % SLICE, r] = zero
                    xs[e % SLICE, r] = zero
                    if c < d:
                        qs[e % SLICE, r] = queries[i, c]
                        if j0 + r < end:
                            xs[e % SLICE, r] = samples[j0 + r, c]
                cuda.syncthreads()
                for c in range(min(SLICE, d - c0)):
                    for a in range(each):
                        at = qs[c, ty * each + a]
                        for b in range(each):
                            x = xs[c, tx + side * b]
                            if kind == PRODUCT:
                                score[a, b] += at * x
                            else:
                                gap = at - x
                                if kind == SCALED:
                                    gap *= factors[c0 + c]
                                score[a, b] += gap * gap
            for e in range(lane, edge * p, threads):
                c, j = min(first + e % p, values.shape[1] - 1), j0 + e // p
                vs[e // p, e % p] = values[j, c] if j < end else zero
            for a in range(each):
                i = rows[origin + min(block + ty * each + a, own - 1)]
                for b in range(each):
                    j = j0 + tx + side * b
                    s = T(math.sqrt(score[a, b])) if root else score[a, b]
                    score[a, b] = slope[i] * s + bias[j] if j < end else nothing
                    ws[ty * each + a, tx + side * b] = score[a, b]
            cuda.syncthreads()
            largest = nothing
            for r in range(piece, piece + length):
                largest = max(largest, ws[row, r])
            parts[piece // length, row] = largest
            cuda.syncthreads()
            if lane < edge:
                largest = tops[lane]
                for k in range(per_row):
                    largest = max(largest, parts[k, lane])
                fades[lane] = T(exp2(max(tops[lane], lowest) - max(largest, lowest)))
                tops[lane] = largest
            cuda.syncthreads()
            for a in range(each):
                base = max(tops[ty * each + a], lowest)
                for b in range(each):
                    ws[ty * each + a, tx + side * b] = T(exp2(score[a, b] - base))
                for k in range(columns):
                    near[a, k] = zero
            cuda.syncthreads()
            weights = zero
            for r in range(piece, piece + length):
                weights += ws[row, r]
            parts[piece // length, row] = weights
            if p:
                for r in range(edge):
                    for a in range(each):
                        weight = ws[ty * each + a, r]
                        for k in range(columns):
                            near[a, k] += weight * vs[r, tx + side * k]
                for a in range(each):
                    for k in range(columns):
                        far[a, k] = far[a, k] * fades[ty * each + a] + near[a, k]
            cuda.syncthreads()
            if lane < edge:
                weights = zero
                for k in range(per_row):
                    weights += parts[k, lane]
                sum_of_weights = sum_of_weights * fades[lane] + weights
        if lane < edge and block + lane < own:
            part.shift[cuda.blockIdx.y, origin + block + lane] = tops[lane]
            part.total[cuda.blockIdx.y, origin + block + lane] = sum_of_weights
        for a in range(each):
            place = block + ty * each + a
            for k in range(columns):
                if place < own and tx + side * k < part.sums.shape[1]:
                    part.sums[cuda.blockIdx.y, tx + side * k, origin + place] = far[a, k]

    return fused
