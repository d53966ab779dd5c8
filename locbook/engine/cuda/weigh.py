"""From a program of steps to one function of the card that weighs a pair.

The plan of the processor (:mod:`locbook.engine.plan`) is the lowering; there is no second one. Its steps say what is
to be done in which order; here each becomes a small function, and a step that joins two rows becomes a function of two
functions, so that the stack is gone before anything is compiled. What a step *is* (:class:`Step`) is a constant of the
compiled code, what it *reads* (:class:`Data`) is an argument: a new bandwidth, table or mask compiles nothing.

The finished ``weigh(q, i, x, b, j, data)`` gives the weight, or its logarithm, of query i (column i of the transposed
queries ``q``) and sample j, which stands in row b of ``x``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...kernels import base, metrics
from ...kernels.base import Kernel
from ...kernels.profiles import SCORE
from .. import program as p
from ..plan import Plan
from . import pairs
from .backend import device, trigonometry


class Step(NamedTuple):
    """What is compiled for a step.

    Attributes
    ----------
    kind : int
        Of :mod:`locbook.engine.program`.
    at, count : int
        Its columns among those that are gathered for the program.
    number : int
        Where its numbers start.
    query_slot, sample_slot, extra : int
        Rows of the data that it reads; the mask's number, or the width of a table.
    metric, user_metric : int, function or None
    scaled : bool
        Whether any difference has a factor.
    profile : int, function or None
        The code, or the user's function.
    logarithmic : bool
        Whether the profile gives logarithms.
    """

    kind: int
    at: int
    count: int
    number: int
    query_slot: int
    sample_slot: int
    extra: int
    metric: int = -1
    user_metric: Any = None
    scaled: bool = False
    profile: Any = None
    logarithmic: bool = False


class Structure(NamedTuple):
    """All that is compiled for a program: its steps, and whether weights are logarithms."""

    steps: tuple[Step, ...]
    log: bool


class Data(NamedTuple):
    """What a program reads, on the card.

    Attributes
    ----------
    numbers : array, shape (k,)
    of_queries : array, shape (slots, m)
    of_samples : array, shape (slots, n)
    last : array of int64, shape (slots, m)
        Row of the last neighbour, beside its distance in ``of_queries``.
    masks : array of bool, shape (masks, m, n)
        n is that of a problem, where there are several.
    starts : array of int64, shape (m,)
        Where the samples of a query's problem begin; read beside a mask.
    ids : array of int64, shape (m,)
        Rows of the queries among all queries.
    """

    numbers: Any
    of_queries: Any
    of_samples: Any
    last: Any
    masks: Any
    starts: Any
    ids: Any


def structure_of(plan: Plan, kernel: Kernel | None, metric: metrics.Metric | None = None) -> tuple:
    """The structure of a plan and the columns to gather for it.

    The plan knows distances and profiles by the address of their machine code; the kernel's leaves, which stand in the
    order of the steps that push a row, know them by name. ``metric`` instead of a kernel is a plan for scores.

    Returns
    -------
    structure : Structure
    columns : array of int64
    """
    measured = iter(
        [] if kernel is None else [_measured(leaf) for leaf in kernel.leaves() if _has_metric(leaf)]
    )
    if kernel is None:
        measured = iter([(metric.code, metric.parameter, SCORE, True)])
    gathered: list[int] = []
    steps = []
    for row in plan.program.steps:
        start, count = int(row[p.COLUMN_START]), int(row[p.COLUMN_COUNT])
        columns = [int(c) for c in plan.program.columns[start : start + count]]
        step = Step(
            int(row[p.STEP]),
            _place(columns, gathered),
            count,
            int(row[p.NUMBER_START]),
            int(row[p.QUERY_SLOT]),
            int(row[p.SAMPLE_SLOT]),
            int(row[p.EXTRA]),
        )
        if step.kind in (p.DISTANCE, p.NEIGHBORS):
            code, parameter, profile, logarithmic = next(measured)
            factors = plan.program.numbers[step.number + 2 : step.number + 2 + count]
            step = step._replace(
                metric=code,
                user_metric=parameter if code == metrics.USER else None,
                scaled=bool((factors != 1.0).any()),
                profile=profile,
                logarithmic=logarithmic,
            )
        steps.append(step)
    return Structure(tuple(steps), plan.program.log), np.array(gathered or [0], dtype=np.int64)


def _place(columns: list[int], gathered: list[int]) -> int:
    """Where ``columns`` stand side by side among those gathered; appended where they do not."""
    for at in range(len(gathered) - len(columns) + 1):
        if gathered[at : at + len(columns)] == columns:
            return at
    gathered.extend(columns)
    return len(gathered) - len(columns)


def _has_metric(leaf: Kernel) -> bool:
    return isinstance(leaf, (base.RadialKernel, base.NeighborKernel))


def _measured(leaf: Kernel) -> tuple:
    """Metric code and parameter, profile, and whether it is logarithmic, of a leaf with a distance."""
    code, parameter = leaf.metric.code, leaf.metric.parameter
    if isinstance(leaf, base.NeighborKernel):
        return code, parameter, None, False
    if np.ndim(leaf.ruler) == 2 and isinstance(leaf.ruler, np.ndarray):
        code = metrics.MATRIX
    if leaf.named is not None:
        return code, parameter, leaf.named.code, leaf.logarithmic
    return code, parameter, leaf.function, leaf.logarithmic


@lru_cache(maxsize=256)
def compose(structure: Structure, T: type) -> Callable:
    """The function ``weigh`` of a structure, in the precision ``T``."""
    stack: list[Callable] = []
    for step in structure.steps:
        if step.kind in (p.ADD, p.MULTIPLY):
            right, left = stack.pop(), stack.pop()
            stack.append(_JOIN[step.kind](left, right, structure.log, T))
        elif step.kind in (p.HOLLOW, p.MASK):
            stack.append(_RESTRICT[step.kind](stack.pop(), step, structure.log, T))
        else:
            stack.append(_PUSH[step.kind](step, structure.log, T))
    (weigh,) = stack
    return weigh


@lru_cache(maxsize=256)
def cofactor(structure: Structure, k: int, T: type) -> Callable:
    """By how much the weight changes with that of step k, a leaf: what it is multiplied with, or its logarithm.

    The same functions join and restrict it: a product multiplies with the other factor, a sum leaves it alone.
    """
    start = T(0) if structure.log else T(1)
    stack: list[
        tuple[Callable | None, Callable | None]
    ] = []  # what weighs, and the cofactor if step k is in it
    for number, step in enumerate(structure.steps):
        if step.kind in (p.ADD, p.MULTIPLY):
            (right, of_right), (left, of_left) = stack.pop(), stack.pop()
            mine, other = (of_left, right) if of_left else (of_right, left)
            if mine and step.kind == p.MULTIPLY:
                mine = _multiply(mine, other, structure.log, T)
            stack.append((_JOIN[step.kind](left, right, structure.log, T), mine))
        elif step.kind in (p.HOLLOW, p.MASK):
            weigh, mine = stack.pop()
            restrict = _RESTRICT[step.kind]
            stack.append(
                (restrict(weigh, step, structure.log, T), mine and restrict(mine, step, structure.log, T))
            )
        else:
            mine = device(lambda q, i, x, b, j, data: start) if number == k else None
            stack.append((_PUSH[step.kind](step, structure.log, T), mine))
    return stack[0][1]


@lru_cache(maxsize=256)
def leaf_weight(structure: Structure, k: int, T: type) -> Callable:
    """The weight of step k alone, a leaf, or its logarithm."""
    step = structure.steps[k]
    return _PUSH[step.kind](step, structure.log, T)


@lru_cache(maxsize=256)
def squared_distance(step: Step, T: type) -> Callable:
    """The distance of a step (:func:`locbook.engine.cuda.pairs.metric`)."""
    return pairs.metric(step.metric, step.at, step.count, step.number + 2, step.scaled, T, step.user_metric)


# -- leaves ----------------------------------------------------------------------------------------------------------


def _logarithm(T: type) -> Callable:
    """Of a weight; minus infinity of 0, NaN of NaN."""
    zero, nothing = T(0), T(-math.inf)
    return device(lambda weight: nothing if weight == zero else T(math.log(weight)))


def _distance(step: Step, log: bool, T: type) -> Callable:
    squared = squared_distance(step, T)
    number, query_slot, sample_slot = step.number, step.query_slot, step.sample_slot
    if callable(step.profile):
        profile = pairs.user_profile(step.profile, step.logarithmic, T)
    else:
        profile = pairs.profile(step.profile, T)
    logarithm, take_logarithm = _logarithm(T), log and not step.logarithmic

    @device
    def weigh(q, i, x, b, j, data):
        unit = data.numbers[number + 1]
        if query_slot >= 0:
            unit *= data.of_queries[query_slot, i]
        u = squared(q, i, x, b, data.numbers)
        if sample_slot >= 0:
            u /= data.of_samples[sample_slot, j]
        u /= unit
        weight = profile(u, data.numbers[number])
        if take_logarithm:
            weight = logarithm(weight)
        return weight if u == u else u  # NaN: the user's distance was none

    return weigh


def _dot(step: Step, log: bool, T: type) -> Callable:
    at, count, number, zero = step.at, step.count, step.number, T(0)

    @device
    def weigh(q, i, x, b, j, data):
        product = zero
        for c in range(count):
            product += q[at + c, i] * x[b, at + c]
        return product * data.numbers[number]

    return weigh


def _von_mises(step: Step, log: bool, T: type) -> Callable:
    at, count, number, zero, turn = step.at, step.count, step.number, T(0), T(1 / math.pi)
    cospi = trigonometry(T)[1]

    @device
    def weigh(q, i, x, b, j, data):
        total = zero
        for c in range(count):
            total += T(cospi((q[at + c, i] - x[b, at + c]) * turn))
        return total * data.numbers[number]

    return weigh


def _neighbors(step: Step, log: bool, T: type) -> Callable:
    """1 for the k nearest; the last to enter may have a share, one of -1 lets in all at that distance."""
    squared, slot = squared_distance(step, T), step.query_slot
    zero, one, logarithm = T(0), T(1), _logarithm(T)

    @device
    def weigh(q, i, x, b, j, data):
        distance = squared(q, i, x, b, data.numbers)
        limit, share, last = data.of_queries[slot, i], data.of_queries[slot + 2, i], data.last[slot, i]
        weight = one if distance < limit else zero
        if distance == limit:
            if share < zero or j < last:
                weight = one
            elif j == last:
                weight = share
        return logarithm(weight) if log else weight

    return weigh


def _table(step: Step, log: bool, T: type) -> Callable:
    at, number, width, logarithm = step.at, step.number, step.extra, _logarithm(T)

    @device
    def weigh(q, i, x, b, j, data):
        weight = data.numbers[number + np.int64(q[at, i]) * width + np.int64(x[b, at])]
        return logarithm(weight) if log else weight

    return weigh


def _past(step: Step, log: bool, T: type) -> Callable:
    at, seen, nothing = step.at, T(0) if log else T(1), T(-math.inf) if log else T(0)
    return device(lambda q, i, x, b, j, data: seen if x[b, at] <= q[at, i] else nothing)


def _offsets(step: Step, log: bool, T: type) -> Callable:
    """A bias for each whole offset of times, of which the first and the last go on for ever."""
    at, number, zero, last = step.at, step.number, T(0), T(step.extra - 1)

    @device
    def weigh(q, i, x, b, j, data):
        offset = q[at, i] - x[b, at] - data.numbers[number]
        bias = data.numbers[number + 1 + np.int64(min(max(offset, zero), last))]
        return bias if log else T(math.exp(bias))

    return weigh


def _constant(step: Step, log: bool, T: type) -> Callable:
    number = step.number
    return device(lambda q, i, x, b, j, data: data.numbers[number])


# -- what joins and restricts ----------------------------------------------------------------------------------------


def _add(left: Callable, right: Callable, log: bool, T: type) -> Callable:
    nothing = T(-math.inf)

    @device
    def plain(q, i, x, b, j, data):
        return left(q, i, x, b, j, data) + right(q, i, x, b, j, data)

    @device
    def logarithmic(q, i, x, b, j, data):
        first, second = left(q, i, x, b, j, data), right(q, i, x, b, j, data)
        high, low = max(first, second), min(first, second)
        if low > nothing:
            high += T(math.log1p(T(math.exp(low - high))))
        return high if first == first and second == second else first + second  # NaN is passed on

    return logarithmic if log else plain


def _multiply(left: Callable, right: Callable, log: bool, T: type) -> Callable:
    @device
    def plain(q, i, x, b, j, data):
        return left(q, i, x, b, j, data) * right(q, i, x, b, j, data)

    @device
    def logarithmic(q, i, x, b, j, data):
        return left(q, i, x, b, j, data) + right(q, i, x, b, j, data)

    return logarithmic if log else plain


def _hollow(inner: Callable, step: Step, log: bool, T: type) -> Callable:
    nothing = T(-math.inf) if log else T(0)
    return device(lambda q, i, x, b, j, data: nothing if j == data.ids[i] else inner(q, i, x, b, j, data))


def _mask(inner: Callable, step: Step, log: bool, T: type) -> Callable:
    nothing, number = T(-math.inf) if log else T(0), step.extra

    @device
    def weigh(q, i, x, b, j, data):
        return inner(q, i, x, b, j, data) if data.masks[number, i, j - data.starts[i]] else nothing

    return weigh


_PUSH = {
    p.DISTANCE: _distance,
    p.DOT: _dot,
    p.VON_MISES: _von_mises,
    p.NEIGHBORS: _neighbors,
    p.TABLE: _table,
    p.PAST: _past,
    p.OFFSETS: _offsets,
    p.CONSTANT: _constant,
}
_JOIN = {p.ADD: _add, p.MULTIPLY: _multiply}
_RESTRICT = {p.HOLLOW: _hollow, p.MASK: _mask}
