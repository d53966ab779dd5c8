"""Sums of weights, and of weights times a term: the kernel of every reduction but order and rows.

One thread has one query. The samples come by in tiles, which the threads of a block load together into shared memory;
blocks of the grid's second dimension take other parts of the samples. In the log domain a thread carries the running
maximum of the log-weights: when it rises, what was summed before is scaled down. Hence a far query gets its limit,
never 0/0.

**Rounding.** Sums are made in three steps, each in ascending order of the samples: over a tile (64 samples), over the
tiles of a part (at most 64 of them), over the parts with the rounding error carried along (Knuth's two-sum). So a sum
of n terms is off by at most (64 + 64 + 3) u times the sum of their magnitudes, u = 6e-8 or 1.1e-16, whatever n is; and
it is the same to the bit in every run, for sizes depend on the shapes alone, whatever queries are asked together.

A term is what is multiplied with the weight: a value, 1 for a class, a monomial.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from .backend import cuda, device, kernel, type_of

#: Most columns that a thread sums at once; each is a register or two.
WIDTH = 8


class Span(NamedTuple):
    """Which samples a launch takes: parts of ``split`` from ``start`` to ``stop``, of each of so many problems.

    Problems of one shape lie end to end, and a block has queries of one of them: blocks of the grid's first dimension
    go through the queries of the first problem, then through those of the second.
    """

    problems: int
    start: int
    split: int
    stop: int


class Part(NamedTuple):
    """Sums over some parts of the samples: logarithms of the scale (g, r), of weights (g, r), of terms (g, w, r)."""

    shift: Any
    total: Any
    sums: Any


class Terms(NamedTuple):
    """What terms are made of, on the card.

    Attributes
    ----------
    values : array, shape (n, p)
    labels : array of int64, shape (n,)
    queries, samples : arrays, shapes (m, d) and (n, d)
        All columns, for monomials.
    factors : array of int64, shape (k, degree)
        Columns of the differences that a monomial is a product of; -1 to fill.
    outputs : array of int64, shape (k,)
        Column of ``values`` that a monomial is multiplied with; -1 for none.
    """

    values: Any
    labels: Any
    queries: Any
    samples: Any
    factors: Any
    outputs: Any


# -- terms -----------------------------------------------------------------------------------------------------------


@lru_cache
def value_term(T: type) -> Callable:
    """Column c of the values."""
    return device(lambda terms, i, j, c: terms.values[j, min(c, terms.values.shape[1] - 1)])


@lru_cache
def class_term(T: type) -> Callable:
    """1 if the sample is of class c."""
    zero, one = T(0), T(1)
    return device(lambda terms, i, j, c: one if terms.labels[j] == c else zero)


@lru_cache
def monomial_term(T: type) -> Callable:
    """The monomial c of the difference of sample and query, times a value where it says so."""
    one = T(1)

    @device
    def monomial(terms, i, j, c):
        c = min(c, terms.factors.shape[0] - 1)
        product = one
        for k in range(terms.factors.shape[1]):
            column = terms.factors[c, k]
            if column >= 0:
                product *= terms.samples[j, column] - terms.queries[i, column]
        if terms.outputs[c] >= 0:
            product *= terms.values[j, terms.outputs[c]]
        return product

    return monomial


# -- the kernels -----------------------------------------------------------------------------------------------------


@lru_cache
def span_of() -> Callable:
    """What a block does, of ``own`` queries and ``n`` samples that each problem has.

    Where the queries of its problem begin, where its first query stands among them, its first sample and its last.
    """

    @device
    def span_of(span, own, n, x, y, per_block):
        blocks = (own - 1) // per_block + 1
        problem = x // blocks
        begin = problem * n + span.start + y * span.split
        end = min(begin + span.split, problem * n + span.stop)
        return problem * own, (x - problem * blocks) * per_block, begin, end

    return span_of


@lru_cache(maxsize=256)
def sums_kernel(
    weigh: Callable, term: Callable, log: bool, width: int, columns: int, tile: int, T: type
) -> Any:
    """Sums over parts of the samples (:class:`Span`), for the queries ``rows``.

    ``tile`` is 0 where a tile of so many columns has no room: then samples are read from global memory.
    """
    zero, nothing, infinity = T(0), T(-math.inf) if log else T(0), T(math.inf)
    step, room = tile if tile else 64, (max(tile, 1), columns if tile else 1)
    real, size, block_span = type_of(T), width + 1, span_of()

    @kernel
    def sums(rows, queries, samples, data, bias, terms, first, span, part, bad):
        near = cuda.local.array(size, real)
        far = cuda.local.array(size, real)
        shared = cuda.shared.array(room, real)
        own, n = rows.size // span.problems, samples.shape[0] // span.problems
        origin, place, begin, end = block_span(
            span, own, n, cuda.blockIdx.x, cuda.blockIdx.y, cuda.blockDim.x
        )
        place += cuda.threadIdx.x
        busy = place < own
        place = origin + min(place, own - 1)  # all threads load tiles, those without a query too
        i = rows[place]
        top = nothing
        for c in range(size):
            far[c] = zero
        for j0 in range(begin, end, step):
            count = min(step, end - j0)
            if tile:
                cuda.syncthreads()
                for e in range(cuda.threadIdx.x, count * columns, cuda.blockDim.x):
                    shared[e // columns, e % columns] = samples[j0 + e // columns, e % columns]
                cuda.syncthreads()
            for c in range(size):
                near[c] = zero
            for r in range(count):
                j = j0 + r
                weight = (
                    weigh(queries, i, shared, r, j, data) if tile else weigh(queries, i, samples, j, j, data)
                )
                if log:
                    weight += bias[j]
                else:
                    weight *= bias[j]
                if not (nothing <= weight < infinity):
                    bad[0] = 1
                if log and weight > nothing:
                    if weight > top:
                        fade = T(math.exp(top - weight))  # 0 at the first weight
                        top = weight
                        for c in range(size):
                            near[c] *= fade
                            far[c] *= fade
                    weight = T(math.exp(weight - top))
                if weight > zero:
                    near[0] += weight
                    for c in range(width):
                        near[c + 1] += weight * term(terms, i, j, first + c)
            for c in range(size):
                far[c] += near[c]
        if busy:
            part.shift[cuda.blockIdx.y, place] = top
            part.total[cuda.blockIdx.y, place] = far[0]
            for c in range(width):
                part.sums[cuda.blockIdx.y, c, place] = far[c + 1]

    return sums


@lru_cache
def merge_kernel(binary: bool, T: type) -> Any:
    """Add parts to the state, whose sums are pairs: a number and what rounding took from it.

    One thread has one query and one column of the sums, the weights themselves first. Parts are added one by one, so it
    does not matter how many a launch made. ``binary`` says that scales are powers of 2, not of e.
    """
    zero, nothing = T(0), T(-math.inf)
    power = math.exp2 if binary else math.exp

    @kernel
    def merge(part, parts, old_shift, new_shift, state):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        column = cuda.blockIdx.y
        if place < old_shift.size:
            top, high, low = old_shift[place], zero, zero
            if top > nothing:
                high, low = state[0, column, place], state[1, column, place]
            for g in range(parts):
                scale = part.shift[g, place]
                if scale > nothing:
                    more = part.total[g, place] if column == 0 else part.sums[g, column - 1, place]
                    if scale > top:
                        fade = T(power(top - scale))
                        high, low, top = high * fade, low * fade, scale
                    else:
                        more *= T(power(scale - top))
                    both = high + more
                    rest = both - high
                    low += (high - (both - rest)) + (more - rest)
                    high = both
            state[0, column, place], state[1, column, place] = high, low
            if column == 0:
                new_shift[place] = top

    return merge


@lru_cache
def mean_kernel(T: type) -> Any:
    """Finish means: ``out[rows[t], first + c]``, NaN where no sample has a weight.

    A mean lies between the least and the largest value of its problem; rounding must not carry it beyond. All four,
    shapes (problems, p), are in the unit and around the middle in which values are summed.
    """
    zero, wrong, infinity = T(0), T(math.nan), T(math.inf)

    @kernel
    def finish(rows, state, first, middle, low, high, unit, out, bad):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        c = first + cuda.blockIdx.y
        if place < rows.size and c < out.shape[1]:
            total = state[0, 0, place] + state[1, 0, place]
            mean = wrong
            if not total < infinity:
                bad[0] = 1
            elif total > zero:
                k, g = 1 + cuda.blockIdx.y, place // (rows.size // unit.shape[0])
                mean = (state[0, k, place] + state[1, k, place]) / total + middle[g, c]
                mean = min(max(mean, low[g, c]), high[g, c]) * unit[g, c]
            out[rows[place], c] = mean

    return finish


@lru_cache
def add_kernel(T: type) -> Any:
    """Add sums as they are, times ``unit``, to ``out``: column ``first + c`` goes to ``columns[first + c]``.

    Where ``out`` has fewer rows than there are, row by row in turn, so that its rows add up to the sum over all.
    """
    infinity = T(math.inf)

    @kernel
    def add(state, first, columns, unit, out, bad):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        k = 1 + cuda.blockIdx.y
        c = first + cuda.blockIdx.y
        if place < out.shape[0] and c < columns.size:
            total = out[place, columns[c]]
            for row in range(place, state.shape[2], out.shape[0]):
                value = state[0, k, row] + state[1, k, row]
                if not abs(value) < infinity:
                    bad[0] = 1
                total += unit * value
            out[place, columns[c]] = total

    return add


@lru_cache
def log_kernel(T: type) -> Any:
    """Finish log-sums: ``out[rows[t]]``; minus infinity where all weights are 0. Scales are times ``base``."""
    zero, nothing, infinity = T(0), T(-math.inf), T(math.inf)

    @kernel
    def finish(rows, shift, state, base, offset, out, bad):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if place < rows.size:
            total = state[0, 0, place] + state[1, 0, place]
            value = nothing
            if not total < infinity:
                bad[0] = 1
            elif total > zero:
                value = T(math.log(total)) + shift[place] * base + offset
            out[rows[place]] = value

    return finish
