r"""Products on the fused path: what is said of four queries and a tile before the fused kernel sums it.

A kernel may be a product of *terms*, each a profile of a score, and of *limits*, which are 0 or 1: the arrow of time, a
window, a mask, a hollow kernel. Terms are evaluated one after the other for a row of samples, and added up as
log-weights or multiplied as weights. A tile in which the limits let nobody take part is skipped. One exponential term
is no term here: the fused kernel finds its scores itself, and where only some take part it is told who.

All is computed in the precision of the samples, but for the limits, which compare numbers of the caller as they are.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numba import types

from ..kernels.logarithm import log as logarithm
from .panels import PANEL
from .parts import INTEGERS, ONE, TWO, address, call, inner, part
from .records import Record
from .vectors import ROWS

#: Kinds of limits on the difference of two numbers: not after the query's, not farther than a width, not the same.
CAUSAL, WINDOW, OTHER = range(3)
#: Who of a tile takes part for some of four queries.
NOBODY, SOME, ALL = range(3)
#: Queries that are prepared in one call.
AT_ONCE = 2 * ROWS


class Rule(NamedTuple):
    """The terms and limits of a kernel, and what they need of a chunk of samples.

    Attributes
    ----------
    scores, profiles : arrays of int64, shape (terms,)
        Addresses of the scores (:mod:`locbook.engine.scores`) and of the profiles (:mod:`locbook.engine.named`).
    shapes : array of float64, shape (terms,)
        The profiles' parameters.
    to_log : array of bool, shape (terms,)
        Whether a profile gives weights where log-weights are added up.
    starts, columns, factors : arrays
        Where the columns of each term start (terms + 1,), the columns, and the factor of each difference.
    by_sample : array of int64, shape (terms,)
        Row in ``squares`` of the samples' squared bandwidths; -1 where they have none of their own.
    squares : array, shape (rows, panels * PANEL)
    logarithmic : bool
    nothing : array, shape (1,)
        The log-weight or weight of a sample that does not take part.
    limits : array of int64, shape (limits,)
    widths : array of float64, shape (limits,)
        Squared, of windows.
    marks : array of float64, shape (limits, panels * PANEL)
        Times, or row numbers.
    low, high : arrays of float64, shape (limits, panels)
        Their range.
    size : int
        How many samples the masks have; 0 where there are neither masks nor limits.
    """

    scores: np.ndarray
    profiles: np.ndarray
    shapes: np.ndarray
    to_log: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    factors: np.ndarray
    by_sample: np.ndarray
    squares: np.ndarray
    logarithmic: bool
    nothing: np.ndarray
    limits: np.ndarray
    widths: np.ndarray
    marks: np.ndarray
    low: np.ndarray
    high: np.ndarray
    size: int


class Rows(NamedTuple):
    """What a rule needs of the queries of a task.

    Attributes
    ----------
    squared : array of float64, shape (terms, b)
        Squared bandwidths; for softmax minus the temperature.
    marks : array of float64, shape (limits, b)
        b is read off them even where there are no limits.
    masks : array of bool, shape (masks, b, samples)
    """

    squared: np.ndarray
    marks: np.ndarray
    masks: np.ndarray


@inner(inline="always")
def _visible(causal, window, other, masked, rule, rows, start, first, count):
    """Who of a tile takes part for the queries from ``start`` on."""
    everybody = True
    last = rows.marks.shape[1] - 1  # rows that fill up are the last query again
    for k in range(rule.limits.size):
        low, high = rule.low[k, first], rule.high[k, first]
        for t in range(first + 1, first + count):
            low = rule.low[k, t] if rule.low[k, t] < low else low
            high = rule.high[k, t] if rule.high[k, t] > high else high
        earliest = latest = rows.marks[k, start if start < last else last]
        for r in range(start + 1, start + ROWS):
            now = rows.marks[k, r if r < last else last]
            earliest = now if now < earliest else earliest
            latest = now if now > latest else latest
        if causal and rule.limits[k] == CAUSAL:
            if low > latest:
                return NOBODY
            everybody &= high <= earliest
        elif window and rule.limits[k] == WINDOW:
            after, before = low - latest, earliest - high
            gap = after if after > before else before
            if gap > 0.0 and gap * gap / rule.widths[k] > 1.0:
                return NOBODY
            after, before = latest - low, high - earliest
            farthest = after if after > before else before
            everybody &= farthest * farthest / rule.widths[k] <= 1.0
        elif other:
            everybody &= latest < low or earliest > high
    if masked:
        begin, end = first * PANEL, (first + count) * PANEL
        end = end if end < rule.size else rule.size
        for k in range(rows.masks.shape[0]):
            some, every = False, True
            for r in range(start, start + ROWS):
                mask = rows.masks[k, r if r < last else last]
                for j in range(begin, end):
                    some |= mask[j]
                    every &= mask[j]
            if not some:
                return NOBODY
            everybody &= every
    return ALL if everybody else SOME


@inner(inline="always")
def _look(causal, window, other, masked, rule, rows, i, first, count, takes_part):
    """Write down in ``takes_part`` which samples of a tile take part for query ``i``."""
    begin, n, last = first * PANEL, count * PANEL, rows.marks.shape[1] - 1
    i = i if i < last else last
    for j in range(n):
        takes_part[j] = True
    for k in range(rule.limits.size):
        now, marks, width = rows.marks[k, i], rule.marks[k, begin : begin + n], rule.widths[k]
        if causal and rule.limits[k] == CAUSAL:
            for j in range(n):
                takes_part[j] &= marks[j] <= now
        elif window and rule.limits[k] == WINDOW:
            for j in range(n):
                gap = now - marks[j]
                takes_part[j] &= gap * gap / width <= 1.0
        elif other:
            for j in range(n):
                takes_part[j] &= marks[j] != now
    if masked:
        size = n if begin + n < rule.size else rule.size - begin
        for k in range(rows.masks.shape[0]):
            mask = rows.masks[k, i, begin : begin + size]
            for j in range(size):
                takes_part[j] &= mask[j]


@inner(inline="always")
def _term(f, rule, rows, queries, panels, start, first, count, out):
    """Fill the rows of ``out`` with one term; returns a bit for each row that held values that are no weights."""
    n, some, bad = count * PANEL, slice(rule.starts[f], rule.starts[f + 1]), 0
    call(rule.scores[f], queries, start, panels, first, count, rule.columns[some], rule.factors[some], out)
    for r in range(ROWS):
        row = out[r]
        if rule.by_sample[f] >= 0:
            squares = rule.squares[rule.by_sample[f], first * PANEL : first * PANEL + n]
            for j in range(n):
                row[j] /= squares[j]
        bad |= call(rule.profiles[f], row, n, rule.shapes[f], rows.squared[f, start + r]) << r
    return bad


@inner(inline="always")
def _multiply_terms(rule, rows, queries, panels, start, first, count, out, work):
    """Fill the rows of ``out`` with the product of some terms; returns as :func:`_term` does."""
    n, bad = count * PANEL, 0
    for f in range(rule.scores.size):
        room = out if f == 0 else work
        bad |= _term(f, rule, rows, queries, panels, start, first, count, room)
        for r in range(ROWS):
            row = room[r]
            if rule.to_log[f]:
                for j in range(n):
                    row[j] = logarithm(row[j])
            if f and rule.logarithmic:
                for j in range(n):
                    out[r, j] += row[j]
            elif f:
                for j in range(n):
                    out[r, j] *= row[j]
    return bad


@lru_cache
def prepare_address(dtype: str, terms: int, limits: tuple[int, ...] = (), masked: bool = False) -> int:
    """Address of the part that says who takes part, and with what weight.

    Its arguments: ``rule, rows, queries, panels, start, line, fours, first, count, weights, work, takes_part, who``.
    For some fours of queries, from ``start`` on, and a tile it fills ``who`` with NOBODY, SOME or ALL, one a four.
    Where only SOME take part it fills ``takes_part[i]``; where there are terms, and not for NOBODY,
    ``weights[line + i]`` with log-weights or weights. It returns how many rows held values of a profile that are no
    weights; such a row becomes infinite: in float32 its query goes to float64, which decides.

    Parameters
    ----------
    dtype : {"float32", "float64"}
    terms : int
        How many there are, 2 for more.
    limits : tuple of int
        Kinds of the limits.
    masked : bool
        Whether there are masks. What there is not is not compiled.
    """
    several, limited = terms > 1, bool(limits) or masked
    causal, window, other = (kind in limits for kind in (CAUSAL, WINDOW, OTHER))

    @part
    def prepare(
        rule, rows, queries, panels, start, line, fours, first, count, weights, work, takes_part, who
    ):
        nothing, bad, found = rule.nothing[0], 0, ALL
        for four in range(fours):
            begin = four * ROWS
            if limited:
                found = _visible(causal, window, other, masked, rule, rows, start + begin, first, count)
                if found == SOME:
                    for r in range(begin, begin + ROWS):
                        _look(
                            causal, window, other, masked, rule, rows, start + r, first, count, takes_part[r]
                        )
            who[four] = found
            if terms and found != NOBODY:
                out = weights[line + begin : line + begin + ROWS]
                if several:
                    wrong = _multiply_terms(
                        rule, rows, queries, panels, start + begin, first, count, out, work
                    )
                else:
                    wrong = _term(0, rule, rows, queries, panels, start + begin, first, count, out)
                for r in range(ROWS):
                    if wrong >> r & 1:
                        bad += 1
                        for j in range(count * PANEL):
                            out[r, j] = math.inf
                    if limited and found == SOME:
                        for j in range(count * PANEL):
                            out[r, j] = out[r, j] if takes_part[begin + r, j] else nothing
        return bad

    two, three = (types.Array(getattr(types, dtype), k, "C") for k in (2, 3))
    arguments = (
        *(rule_type(dtype), ROWS_TYPE, two, three),
        *(*5 * [types.intp], two, two, types.Array(types.bool_, 2, "C"), INTEGERS),
    )
    return address(prepare, *arguments)


@cache
def rule_type(dtype: str) -> Record:
    """Numba's type of :class:`Rule`."""
    one, two = (types.Array(getattr(types, dtype), k, "C") for k in (1, 2))
    flags = types.Array(types.bool_, 1, "C")
    rule = (
        *(INTEGERS, INTEGERS, ONE, flags, INTEGERS, INTEGERS, one, INTEGERS, two, types.boolean, one),
        *(INTEGERS, ONE, TWO, TWO, TWO, types.int64),
    )
    return Record(types.NamedTuple(rule, Rule))


#: Numba's type of :class:`Rows`.
ROWS_TYPE = Record(types.NamedTuple((TWO, TWO, types.Array(types.bool_, 3, "C")), Rows))
