r"""The gradient of one Gaussian or softmax leaf, in the precision of the input, by the kernels of products.

The leaf may stand under limits (:mod:`locbook.engine.terms`): causal attention is such a kernel.

With the weights :math:`w_{ij}` of the fused kernel, their sums :math:`Z_i`, the means :math:`y_i` and cotangents
:math:`c_i`, a tile of queries and samples asks for

.. math::
    T_{ij} = \tfrac{c_i}{Z_i} \cdot (v_j - y_i), \quad A_{ij} = w_{ij} T_{ij} = \frac{\partial L}{\partial\log w_{ij}},
    \quad \sum_i w_{ij} \tfrac{c_i}{Z_i}, \quad \sum_i A_{ij}\, q_i, \quad \sum_j A_{ij}\, x_j :

products of matrices all, for which there are kernels (:mod:`locbook.engine.scores`, :mod:`locbook.engine.values`). The
gradient of a softmax of temperature :math:`\tau` is :math:`\sum_j A_{ij} x_j / \tau` for the query and
:math:`\sum_i A_{ij} q_i / \tau` for the sample; that of a Gaussian is :math:`\sum_j A_{ij} (x_j - q_i) / h^2` and
:math:`\sum_i A_{ij} (q_i - x_j) / h^2`. (:math:`\sum_j A_{ij}` is 0, but not where means are rounded: a column of ones
beside x finds what is left.) The parameter's follows from the other two by
Euler's theorem: nothing changes if coordinates and bandwidth grow alike, so
:math:`h\,\partial_h L = -\sum_i q_i\cdot\partial_{q_i} L - \sum_j x_j\cdot\partial_{x_j} L`. A temperature grows with
the queries alone: :math:`\tau\,\partial_\tau L = -\sum_i q_i\cdot\partial_{q_i} L`.

Weights come from differences, as everywhere; these sums are of coordinates less their centre. They lose digits where
the spread of the data is many bandwidths: beyond :data:`SPREAD` the pairs are pulled by their differences, one by one
(:mod:`locbook.engine.backward`).
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numba import types

from ..kernels.bandwidth import VaryingBandwidth
from .fused import LOG2_E, weigh_address
from .leaf import Leaf, as_product, rows_of, rule_of
from .panels import PANEL, pack, pack_rows, unpack, zeros
from .parts import INTEGERS, THREE, address, array_types, call, part
from .pool import PAIR, run_tasks
from .problem import Problem
from .reach import coordinates, some_columns
from .records import Record, Written, run, write
from .scores import PRODUCT, scores_address
from .stream import FLOAT32_ERROR, around_middle, fits_float32, float32_error
from .terms import ALL, NOBODY, ROWS_TYPE, SOME, rule_type
from .values import sample_sums_address, values_address
from .vectors import ENABLED, ROWS, VALUE_ROWS, VECTOR_BYTES

#: Queries that make whole rows for either kind of kernel, scores and values; queries of a tile.
UNIT = math.lcm(ROWS, VALUE_ROWS)
BLOCK = 4 * UNIT
#: Most panels of a tile, and the bytes of their coordinates, or of their values, so that all queries meet them in the
#: first-level cache.
PANELS, TILE = 4, 16_384
#: Most tasks, most blocks of queries that pass them at once, and most numbers of theirs that are kept: 32 MB.
TASKS, PASSING, ROOM = 32, 42, 1 << 22
#: Most bandwidths from the centre to the farthest point.
SPREAD = {"float32": 2e1, "float64": 1e4}
#: Largest values and cotangents.
LARGEST = {"float32": 1e12, "float64": 1e100}


class Parts(NamedTuple):
    """Addresses: the weights, as in ``fused_sweep``, and who calls ``prepare``, or 0; products; sums."""

    weigh: int
    weigh_some: int
    prepare: int
    look: int
    products: int
    of_queries: int
    of_samples: int


class Samples(NamedTuple):
    """The samples of a task.

    Attributes
    ----------
    panels, bias, factors
        As in :class:`locbook.engine.fused_sweep.Samples`.
    values : array, shape (panels, p, PANEL)
    points : array, shape (panels, e, PANEL), or (panels, PANEL, e to the next W)
        Coordinates less their centre, by factor, and for a Gaussian 1: e is d or d + 1.
    value_sums, point_sums : arrays of float64, shapes (panels, p, PANEL) and (panels, d + 1, PANEL)
        The answer: for each sample the sums over the queries; the last column is that of ``A``.
    """

    panels: np.ndarray
    bias: np.ndarray
    factors: np.ndarray
    values: np.ndarray
    points: np.ndarray
    value_sums: np.ndarray
    point_sums: np.ndarray


class Queries(NamedTuple):
    """Queries that pass, a multiple of both ROWS and VALUE_ROWS.

    Attributes
    ----------
    places : array, shape (b, d)
        As the weights want them.
    slope, shift : arrays, shape (b,)
    cotangent : array, shape (b, p)
        Over the sums of the weights; 0 for queries that fill up.
    level : array, shape (b,)
        The same times the means.
    points : array, shape (b, d + 1)
        Coordinates, of a Gaussian less the centre of the samples and by factor, of a softmax as they are; and 1.
    """

    places: np.ndarray
    slope: np.ndarray
    shift: np.ndarray
    cotangent: np.ndarray
    level: np.ndarray
    points: np.ndarray


class Scratch(NamedTuple):
    """Room for a tile; ``value_sums`` and ``point_sums`` are of all samples of a task, over the queries of one pass."""

    lanes: np.ndarray
    weights: np.ndarray
    work: np.ndarray
    takes_part: np.ndarray
    who: np.ndarray
    pulls: np.ndarray
    sums: np.ndarray
    value_sums: np.ndarray
    point_sums: np.ndarray
    columns: np.ndarray
    ones: np.ndarray


def make_scratch(samples: Samples, per_tile: int, by_row: bool) -> Scratch:
    """For tiles of BLOCK queries and ``per_tile`` panels."""
    dtype, size = samples.panels.dtype, per_tile * PANEL
    lanes = VECTOR_BYTES // dtype.itemsize
    p = samples.values.shape[1]
    slots = samples.points.shape[2] // lanes if by_row else samples.points.shape[1]
    return Scratch(
        lanes=zeros((BLOCK, 2, lanes), dtype),
        weights=zeros((BLOCK, size), dtype),
        work=np.zeros((0, size), dtype),
        takes_part=np.zeros((BLOCK, size), np.bool_),
        who=np.full(BLOCK // ROWS, ALL),
        pulls=zeros((BLOCK, size), dtype),
        sums=zeros((BLOCK, slots, lanes), dtype),
        value_sums=zeros(samples.value_sums.shape, dtype),
        point_sums=zeros(samples.point_sums.shape, dtype),
        columns=np.arange(p),
        ones=np.ones(p, dtype),
    )


class Given(NamedTuple):
    r"""What :func:`fused_backward` works on.

    Attributes
    ----------
    parts : Parts
    samples : Samples
    queries : Queries
    rule, of_rule : Written or None
        The :class:`Rule` and its :class:`Rows`.
    room : Scratch
    per_tile : int
        Panels of a tile.
    of_queries : array of float64, shape (b, e, 1), or (b, slots, W) where ``samples.points`` are by row
        The answer: :math:`\sum_j A_{ij} x_j`.
    """

    parts: Parts
    samples: Samples
    queries: Queries
    rule: Written | None
    of_rule: Written | None
    room: Scratch
    per_tile: int
    of_queries: np.ndarray


@cache
def given_type(dtype: str) -> Record:
    """Numba's type of :class:`Given`."""
    one, two, three = array_types(dtype)
    flags = types.Array(types.bool_, 2, "C")
    kinds = (
        types.NamedTuple(len(Parts._fields) * [types.int64], Parts),
        types.NamedTuple((three, two, one, three, three, THREE, THREE), Samples),
        types.NamedTuple((two, one, one, two, one, two), Queries),
        *(rule_type(dtype), ROWS_TYPE),
        types.NamedTuple(
            (three, two, two, flags, INTEGERS, two, three, three, three, INTEGERS, one), Scratch
        ),
        *(types.int64, THREE),
    )
    return Record(types.NamedTuple(kinds, Given))


@part
def _look(given, start, rows, first, count):
    """Say in the scratch who takes part; returns how many queries are among four for which somebody does."""
    room, taken = given.room, 0
    call(
        given.parts.prepare, given.rule, given.of_rule, given.queries.places, given.samples.panels,
        start, 0, rows // ROWS, first, count, room.weights, room.work, room.takes_part, room.who,
    )  # fmt: skip
    for i in range(rows):
        if room.who[i // ROWS] != NOBODY:
            taken += 1
        else:
            for j in range(count * PANEL):
                room.weights[i, j] = room.pulls[i, j] = 0
    return taken


@part
def _fused_backward(given):
    parts, samples, queries, room = given.parts, given.samples, given.queries, given.room
    panels, values, per_tile, who = samples.panels, samples.values, given.per_tile, room.who
    weights, pulls, cotangent, level = room.weights, room.pulls, queries.cotangent, queries.level
    sums, of_queries, by_row = room.sums, given.of_queries, given.of_queries.shape[2] > 1
    for start in range(0, level.size, BLOCK):
        rows = min(BLOCK, level.size - start)
        stop = start + rows
        for first in range(0, panels.shape[0], per_tile):
            count = min(per_tile, panels.shape[0] - first)
            if parts.look and call(parts.look, given, start, rows, first, count) == 0:
                continue
            for i in range(0, rows, ROWS):
                if who[i // ROWS] != NOBODY:
                    call(
                        parts.weigh_some if who[i // ROWS] == SOME else parts.weigh,
                        queries.places, start + i, i, panels, first, count, samples.bias, queries.slope,
                        queries.shift[start:stop], samples.factors, values, room.lanes, weights, room.takes_part[i:],
                    )  # fmt: skip
            for i in range(0, rows, ROWS):
                if who[i // ROWS] != NOBODY:
                    call(
                        parts.products, cotangent, start + i, values, first, count, room.columns, room.ones,
                        pulls[i : i + ROWS],
                    )  # fmt: skip
            call(parts.of_samples, weights, rows, cotangent[start:stop], first, count, room.value_sums)
            for i in range(rows):
                own = level[start + i]
                for j in range(count * PANEL):
                    pulls[i, j] = (pulls[i, j] - own) * weights[i, j]
            call(parts.of_samples, pulls, rows, queries.points[start:stop], first, count, room.point_sums)
            call(parts.of_queries, pulls, rows, samples.points, first, count, sums)
        for i in range(rows):
            for slot in range(sums.shape[1]):
                total = 0.0
                for lane in range(sums.shape[2]):
                    one = sums[i, slot, lane]
                    total += one
                    if by_row:
                        of_queries[start + i, slot, lane] += one
                    sums[i, slot, lane] = 0
                if not by_row:
                    of_queries[start + i, slot, 0] += total
    return 0


def fused_backward(dtype: str, given: Given) -> None:
    """All sums of some queries and the samples of a task."""
    kind = given_type(dtype)
    run(address(_fused_backward, kind), kind, given)


class Sums(NamedTuple):
    r"""What the gradient is made of, all float64.

    Attributes
    ----------
    queries, samples : arrays, shapes (m, d) and (n, d)
        Derivatives by the coordinates that the kernel looks at.
    values : array, shape (n, p)
    log_weight : array, shape (n,)
        :math:`\sum_i A_{ij}`, the derivative by the logarithm of the multiplicity.
    log_width : array, shape (d,)
        By the logarithm of each column's bandwidth; for a softmax their sum is that of the temperature.
    """

    queries: np.ndarray
    samples: np.ndarray
    values: np.ndarray
    log_weight: np.ndarray
    log_width: np.ndarray


def fused_vjp(
    problem: Problem, values: np.ndarray, cotangent: np.ndarray, log_sums: np.ndarray, means: np.ndarray
) -> Sums | None:
    """The sums, in the precision that holds, where the kernel is such a leaf and the data are moderate; else None.

    A query without a neighbour has the cotangent 0.

    Parameters
    ----------
    problem : Problem
    values, cotangent : arrays, shapes (n, p) and (m, p)
    log_sums, means : arrays, shapes (m,) and (m, p)
        What the reductions gave.
    """
    leaf = as_product(problem) if ENABLED else None
    varies = any(isinstance(getattr(k, "bandwidth", None), VaryingBandwidth) for k in problem.kernel.leaves())
    if leaf is None or leaf.terms or leaf.root or varies:
        return None
    alone = ~np.isfinite(log_sums)
    if cotangent[alone].any():
        return None
    log_sums, means = np.where(alone, leaf.offset, log_sums), np.where(alone[:, None], 0.0, means)
    if not _all_weigh(problem):
        return None
    given = problem.queries, problem.samples, values, cotangent
    for dtype in ("float32", "float64") if all(a.dtype == np.float32 for a in given) else ("float64",):
        ready = _moderate(problem, leaf, values, cotangent, log_sums, dtype)
        if ready is not None:
            return _backward(problem, leaf, values, cotangent, log_sums, means, dtype, *ready)
    return None


def _moderate(
    problem: Problem,
    leaf: Leaf,
    values: np.ndarray,
    cotangent: np.ndarray,
    log_sums: np.ndarray,
    dtype: str,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Queries and samples, of a Gaussian by factor and less the centre, if all goes well in that dtype; else None."""
    if not all(float(np.abs(a).max(initial=0.0)) <= LARGEST[dtype] for a in (values, cotangent)):
        return None
    if dtype == "float32":
        exponents = np.abs(log_sums - leaf.offset) * LOG2_E + 16.0
        if (float32_error(exponents, len(leaf.columns)) > FLOAT32_ERROR).any():
            return None
        if not fits_float32(problem, leaf, _bias(problem)).all():
            return None
    x, q = (coordinates(a, leaf.columns) for a in (problem.samples, problem.queries))
    center = x.mean(axis=0)
    if leaf.kind == PRODUCT:  # what a query gets does not change if all samples are moved
        return q, x - center
    x, q = (x - center) * leaf.factors, (q - center) * leaf.factors
    farthest = max(np.abs(x).max(), np.abs(q).max())
    return (q, x) if farthest * math.sqrt(_rate(leaf)) <= SPREAD[dtype] else None


def _all_weigh(problem: Problem) -> bool:
    """Whether no multiplicity is 0, but for samples that fill up."""
    weight = problem.sample_weight
    if weight is not None and problem.groups is not None:
        weight = weight.reshape(-1, problem.groups.samples)[:, : problem.groups.n]
    return weight is None or bool((weight > 0).all())


def _bias(problem: Problem) -> np.ndarray:
    if problem.sample_weight is None:
        return np.zeros(len(problem.samples))
    with np.errstate(divide="ignore"):
        return np.log2(problem.sample_weight)


def _rate(leaf: Leaf) -> float:
    """One over the temperature, or over the squared bandwidth."""
    return (1.0 if leaf.kind == PRODUCT else -2.0) * float(leaf.slope[0]) / LOG2_E


def _backward(
    problem: Problem,
    leaf: Leaf,
    values: np.ndarray,
    cotangent: np.ndarray,
    log_sums: np.ndarray,
    means: np.ndarray,
    dtype: str,
    q: np.ndarray,
    x: np.ndarray,
) -> Sums:
    (m, d), (n, p), number = q.shape, values.shape, np.dtype(dtype)
    exponents = (log_sums - leaf.offset) * LOG2_E
    shift = np.floor(exponents)  # the rest is exact as well
    pull = cotangent / np.exp2(exponents - shift)[:, None]
    values, of_queries = around_middle(problem, values)  # values around it keep their digits in float32
    level = np.einsum("ij,ij->i", pull, means - of_queries)
    lanes = VECTOR_BYTES // number.itemsize
    sought = x if leaf.kind == PRODUCT else np.column_stack([x, np.ones(n)])
    by_row = sought.shape[1] >= lanes
    prepare = leaf.prepare(dtype)
    parts = Parts(
        weigh=weigh_address(dtype, leaf.kind, False, 0, True),
        weigh_some=weigh_address(dtype, leaf.kind, False, 0, True, leaf.prepared),
        prepare=prepare,
        look=address(_look, given_type(dtype), *4 * [types.intp]) if prepare else 0,
        products=scores_address(dtype, PRODUCT),
        of_queries=values_address(dtype, by_row),
        of_samples=sample_sums_address(dtype),
    )
    panels = pack(some_columns(problem.samples, leaf.columns), number)
    per_tile = int(np.clip(TILE // (PANEL * max(d, p) * number.itemsize), 1, PANELS))
    samples = Samples(
        panels=panels,
        bias=pack(_bias(problem)[:, None], number, fill=-np.inf)[:, 0],
        factors=leaf.factors.astype(number),
        values=pack(values, number, fill=0.0),
        points=pack_rows(sought, number, lanes) if by_row else pack(sought, number, fill=0.0),
        value_sums=np.zeros((len(panels), p, PANEL)),
        point_sums=np.zeros((len(panels), d + 1, PANEL)),
    )

    def whole(array: np.ndarray, fill: float | None = None) -> np.ndarray:
        last = array[-1:] if fill is None else np.full((1, *array.shape[1:]), fill)
        joined = np.concatenate([array, np.repeat(last, -m % UNIT, axis=0)], dtype=number)
        return np.ascontiguousarray(joined)  # joined Fortran arrays are one

    every = Queries(
        places=whole(some_columns(problem.queries, leaf.columns)),
        slope=whole(leaf.slope),
        shift=whole(shift),
        cotangent=whole(pull, 0.0),
        level=whole(level, 0.0),
        points=whole(np.column_stack([q, np.ones(m)])),
    )

    def of_task(own: slice) -> tuple[Samples, slice, Written | None]:
        chunk = slice(own.start * PANEL, min(n, own.stop * PANEL))
        some = Samples(*(a if a is samples.factors else a[own] for a in samples))
        return some, chunk, write(rule_type(dtype), rule_of(leaf, chunk, number)) if prepare else None

    def task(given: tuple[Samples, slice, Written | None], rows: slice) -> np.ndarray:
        some, chunk, rule = given
        passing = Queries(*(a[rows] for a in every))
        own = slice(rows.start, min(m, rows.stop))
        of_rule = write(ROWS_TYPE, rows_of(leaf, own, chunk)) if prepare else None
        room = make_scratch(some, per_tile, by_row)
        sums = np.zeros((len(passing.slope), room.sums.shape[1], lanes if by_row else 1))
        fused_backward(dtype, Given(parts, some, passing, rule, of_rule, room, per_tile, sums))
        some.value_sums[:] += room.value_sums
        some.point_sums[:] += room.point_sums
        return sums.reshape(len(sums), -1)[:, : sought.shape[1]]

    queries = np.zeros((len(every.slope), sought.shape[1]))
    each_pair = 4 * (d + p + PAIR)  # operations, about
    if problem.groups is None:  # tasks by the data alone: the same bits for any number of threads
        each = -(-len(panels) // min(TASKS, len(panels)))
        dealt = [of_task(slice(first, first + each)) for first in range(0, len(panels), each)]
        passing = max(1, min(PASSING, ROOM // (len(dealt) * sought.shape[1]) // BLOCK)) * BLOCK
        for first in range(0, m, passing):
            rows = slice(first, first + passing)
            for part in run_tasks(partial(task, rows=rows), dealt, min(passing, m) * n * each_pair):
                queries[rows] += part
    else:
        each, size = problem.groups.samples // PANEL, problem.groups.queries
        groups = range(math.prod(problem.groups.lead))
        queries[:] = np.concatenate(
            run_tasks(
                lambda g: task(of_task(slice(g * each, (g + 1) * each)), slice(g * size, (g + 1) * size)),
                groups,
                m * problem.groups.samples * each_pair,
            )
        )
    queries = queries[:m]
    of_values = unpack(samples.value_sums, n)
    of_points = unpack(samples.point_sums, n)
    by_samples, log_weight = of_points[:, :d], of_points[:, d]
    if leaf.kind != PRODUCT:
        by_samples = by_samples - x * log_weight[:, None]
        queries = queries[:, :d] - q * queries[:, d:]
    queries, by_samples = _rate(leaf) * queries, _rate(leaf) * by_samples
    log_width = -(q * queries).sum(axis=0)
    if leaf.kind != PRODUCT:
        log_width -= (x * by_samples).sum(axis=0)
        queries, by_samples = queries * leaf.factors, by_samples * leaf.factors
    return Sums(queries, by_samples, of_values, log_weight, log_width)
