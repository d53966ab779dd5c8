r"""Products on the fused path: what is said of four queries and a tile before the fused kernel sums it.

A kernel may be a product of *terms*, each a profile of a score, and of *limits*, which are 0 or 1: the arrow of time, a
window, a mask, a hollow kernel. Terms are evaluated one after the other for a row of samples, and added up as
log-weights or multiplied as weights. A tile in which the limits let nobody take part is skipped. One exponential term
is no term here: the fused kernel finds its scores itself, and where only some take part it is told who.

All is computed in the precision of the samples, but for the limits, which compare numbers of the caller as they are.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import types

from ..kernels.logarithm import log as logarithm
from .panels import PANEL
from .parts import INTEGERS, ONE, TWO, address, array_types, call, inner, part
from .records import Record
from .vectors import ROWS

#: Kinds of limits: a number not after the query's, not farther than a width, not the same; and a mask.
CAUSAL, WINDOW, OTHER, MASK = range(4)
#: Who of a tile takes part for some of four queries.
NOBODY, SOME, ALL = range(3)
#: Queries that are prepared in one call.
AT_ONCE = 2 * ROWS


class Limits(NamedTuple):
    """The limits and masks of a kernel, and what they need of a chunk of samples; masks come last.

    Attributes
    ----------
    kinds, parts : arrays of int64, shape (limits + masks,)
        CAUSAL, WINDOW, OTHER or MASK, and the address of the part that keeps samples out (:func:`limit_address`).
    ask : int
        Address of the part that asks a mask about a whole tile (:func:`mask_address`); 0 where there are none.
    widths : array of float64, shape (limits,)
        Squared, of windows.
    marks : array of float64, shape (limits, panels * PANEL)
        Times, or row numbers.
    low, high : arrays of float64, shape (limits, panels)
        Their range.
    size : int
        How many samples the masks have; 0 where there are neither masks nor limits.
    """

    kinds: np.ndarray
    parts: np.ndarray
    ask: int
    widths: np.ndarray
    marks: np.ndarray
    low: np.ndarray
    high: np.ndarray
    size: int


class Rule(NamedTuple):
    """The terms and limits of a kernel, and what they need of a chunk of samples.

    Attributes
    ----------
    multiply : int
        Address of what multiplies the terms (:func:`multiply_address`); 0 where there are none.
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
    limits : Limits
    """

    multiply: int
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
    limits: Limits


class Rows(NamedTuple):
    """What a rule needs of the queries of a task; b is a multiple of ROWS, and the last query is there again and again.

    Attributes
    ----------
    squared : array of float64, shape (terms, b)
        Squared bandwidths; for softmax minus the temperature.
    marks : array of float64, shape (limits, b)
        Times, or row numbers.
    low, high : arrays of float64, shape (limits, b / ROWS)
        Their range among four queries.
    masks : array of bool, shape (masks, b, samples)
    """

    squared: np.ndarray
    marks: np.ndarray
    low: np.ndarray
    high: np.ndarray
    masks: np.ndarray


#: Numba's types of :class:`Limits` and :class:`Rows`.
LIMITS_TYPE = Record(
    types.NamedTuple((INTEGERS, INTEGERS, types.int64, ONE, TWO, TWO, TWO, types.int64), Limits)
)
ROWS_TYPE = Record(types.NamedTuple((TWO, TWO, TWO, TWO, types.Array(types.bool_, 3, "C")), Rows))


@inner
def _of_tile(limits, k, first, count):
    """Least and largest mark of a tile."""
    low, high = limits.low[k, first], limits.high[k, first]
    for t in range(first + 1, first + count):
        low = limits.low[k, t] if limits.low[k, t] < low else low
        high = limits.high[k, t] if limits.high[k, t] > high else high
    return low, high


@inner
def _by_gaps(kind, width, least, greatest):
    """Who of a tile takes part, by the least and the greatest difference of a sample's mark and a query's."""
    if kind == CAUSAL:
        return NOBODY if least > 0.0 else ALL if greatest <= 0.0 else SOME
    if kind == WINDOW:
        gap = least if least > -greatest else -greatest
        if gap > 0.0 and gap * gap / width > 1.0:
            return NOBODY
        farthest = greatest if greatest > -least else -least
        return ALL if farthest * farthest / width <= 1.0 else SOME
    return ALL if least > 0.0 or greatest < 0.0 else SOME


@part
def _by_mask(limits, rows, k, start, first, count):
    begin, end = first * PANEL, (first + count) * PANEL
    end = end if end < limits.size else limits.size
    some, every = False, True
    for r in range(start, start + ROWS):
        mask = rows.masks[k - rows.marks.shape[0], r, begin:end]
        for j in range(end - begin):
            some |= mask[j]
            every &= mask[j]
    return NOBODY if not some else ALL if every else SOME


@cache
def mask_address() -> int:
    """Address of the part that says by the mask ``k`` who of a tile takes part: NOBODY, SOME or ALL.

    Its arguments: ``limits, rows, k, start, first, count``.
    """
    return address(_by_mask, LIMITS_TYPE, ROWS_TYPE, *4 * [types.intp])


@part
def _causal(limits, rows, k, start, first, count, takes_part):
    begin, end = first * PANEL, (first + count) * PANEL
    for r in range(ROWS):
        now, marks, who = rows.marks[k, start + r], limits.marks[k, begin:end], takes_part[r]
        for j in range(end - begin):
            who[j] &= marks[j] <= now
    return 0


@part
def _window(limits, rows, k, start, first, count, takes_part):
    begin, end, width = first * PANEL, (first + count) * PANEL, limits.widths[k]
    for r in range(ROWS):
        now, marks, who = rows.marks[k, start + r], limits.marks[k, begin:end], takes_part[r]
        for j in range(end - begin):
            gap = now - marks[j]
            who[j] &= gap * gap / width <= 1.0
    return 0


@part
def _other(limits, rows, k, start, first, count, takes_part):
    begin, end = first * PANEL, (first + count) * PANEL
    for r in range(ROWS):
        now, marks, who = rows.marks[k, start + r], limits.marks[k, begin:end], takes_part[r]
        for j in range(end - begin):
            who[j] &= marks[j] != now
    return 0


@part
def _masked(limits, rows, k, start, first, count, takes_part):
    begin, end = first * PANEL, (first + count) * PANEL
    end = end if end < limits.size else limits.size
    for r in range(ROWS):
        mask, who = rows.masks[k - rows.marks.shape[0], start + r, begin:end], takes_part[r]
        for j in range(end - begin):
            who[j] &= mask[j]
    return 0


@cache
def limit_address(kind: int) -> int:
    """Address of the part that keeps samples out by a limit of this kind, or by a mask.

    Its arguments: ``limits, rows, k, start, first, count, takes_part``.
    By the limit ``k`` ``takes_part[r]`` becomes False for the samples of a tile that the query ``start + r`` does not
    see, one of four.
    """
    function = {CAUSAL: _causal, WINDOW: _window, OTHER: _other, MASK: _masked}[kind]
    flags = types.Array(types.bool_, 2, "C")
    return address(function, LIMITS_TYPE, ROWS_TYPE, *4 * [types.intp], flags)


@inner
def _who(limits, rows, start, first, count, takes_part):
    """Who of a tile takes part for the four queries from ``start`` on: NOBODY, SOME or ALL.

    Where it is only SOME, ``takes_part`` says for each of the four which samples.
    """
    found, four = ALL, start // ROWS
    for k in range(limits.kinds.size):
        kind = limits.kinds[k]
        if kind == MASK:
            seen = call(limits.ask, limits, rows, k, start, first, count)
        else:
            low, high = _of_tile(limits, k, first, count)
            width = limits.widths[k]
            seen = _by_gaps(kind, width, low - rows.high[k, four], high - rows.low[k, four])
        found = seen if seen < found else found
        if found == NOBODY:
            return found
    if found == SOME:
        for r in range(ROWS):
            for j in range(count * PANEL):
                takes_part[r, j] = True
        for k in range(limits.parts.size):
            call(limits.parts[k], limits, rows, k, start, first, count, takes_part)
    return found


@inner
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


@part
def _one_term(rule, rows, queries, panels, start, first, count, out, work):
    return _term(0, rule, rows, queries, panels, start, first, count, out)


@part
def _several_terms(rule, rows, queries, panels, start, first, count, out, work):
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


@part
def _prepare(rule, rows, queries, panels, start, line, fours, first, count, weights, work, takes_part, who):
    bad = 0
    for four in range(fours):
        begin = four * ROWS
        who[four] = found = _who(rule.limits, rows, start + begin, first, count, takes_part[begin:])
        if rule.multiply == 0 or found == NOBODY:
            continue
        out = weights[line + begin :]
        wrong = call(rule.multiply, rule, rows, queries, panels, start + begin, first, count, out, work)
        for r in range(ROWS):
            if wrong >> r & 1:
                bad += 1
                for j in range(count * PANEL):
                    out[r, j] = math.inf
            if found == SOME:
                for j in range(count * PANEL):
                    out[r, j] = out[r, j] if takes_part[begin + r, j] else rule.nothing[0]
    return bad


@cache
def multiply_address(dtype: str, several: bool) -> int:
    """Address of the part that multiplies terms.

    Its arguments: ``rule, rows, queries, panels, start, first, count, out, work``.
    It fills ``out[i]`` with the log-weights or weights of a tile for the query ``start + i``, and returns a bit for
    each of the four rows that held values of a profile that are no weights.
    """
    _, two, three = array_types(dtype)
    function = _several_terms if several else _one_term
    return address(function, rule_type(dtype), ROWS_TYPE, two, three, *3 * [types.intp], two, two)


@cache
def prepare_address(dtype: str) -> int:
    """Address of the part that says who takes part, and with what weight.

    Its arguments: ``rule, rows, queries, panels, start, line, fours, first, count, weights, work, takes_part, who``.
    For some fours of queries, from ``start`` on, and a tile it fills ``who`` with NOBODY, SOME or ALL, one a four.
    Where only SOME take part it fills ``takes_part[i]``; where there are terms, and not for NOBODY,
    ``weights[line + i]`` with log-weights or weights. It returns how many rows held values of a profile that are no
    weights; such a row becomes infinite: in float32 its query goes to float64, which decides.
    """
    _, two, three = array_types(dtype)
    flags = types.Array(types.bool_, 2, "C")
    places = rule_type(dtype), ROWS_TYPE, two, three
    return address(_prepare, *places, *5 * [types.intp], two, two, flags, INTEGERS)


@cache
def rule_type(dtype: str) -> Record:
    """Numba's type of :class:`Rule`."""
    one, two, _ = array_types(dtype)
    flags = types.Array(types.bool_, 1, "C")
    rule = (
        *(types.int64, INTEGERS, INTEGERS, ONE, flags, INTEGERS, INTEGERS, one, INTEGERS, two, types.boolean),
        *(one, LIMITS_TYPE.kind),
    )
    return Record(types.NamedTuple(rule, Rule))
