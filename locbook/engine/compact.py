r"""Sums and means of one leaf with a bounded support: a grid of cells, and a look into the cells around a query.

Samples are sorted into cells at least as wide as the support reaches, in up to three columns, so the neighbours of a
query are in a few cells around its own, and those in one row of cells lie side by side in memory. Their squared
distances are taken one by one, what is within reach is gathered, and the profile turns it into weights. What is added
for a query does not depend on the other queries, to the bit.

The cell of a number grows with it, rounding included, so a cell between those of ``q - r`` and ``q + r`` holds every
sample x with \|x - q\| <= r.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.metrics import EUCLIDEAN
from . import named, vectors
from .parts import call, inner, jit
from .pool import PAIR, run_split
from .problem import Problem
from .pruning import boxes, slack_of, with_slack
from .reach import MOST_NUMBERS, check_prune, coordinates

#: Columns of the grid at most.
GRID_COLUMNS = 3
#: Share of the samples beyond which looking at them one by one does not pay.
FEW = 0.1
#: Fewer samples or queries are not worth a grid.
FEWEST_SAMPLES, FEWEST_QUERIES = 512, 64
#: Most queries of a task; samples that are gathered before they are weighed.
TASK, GATHERED = 512, 512
#: As many pairs take as long as to find the cells of a query.
QUERY = 50


class Grid(NamedTuple):
    """Cells of equal edges.

    Attributes
    ----------
    columns : array of int64, shape (g,)
    low : array, shape (g,)
        Where the first cell begins.
    inverse : float
        One over the edge.
    counts : array of int64, shape (g,)
        Cells along each column; the first and the last hold what lies beyond as well.
    """

    columns: np.ndarray
    low: np.ndarray
    inverse: float
    counts: np.ndarray


def make_grid(points: np.ndarray, reach: float) -> Grid | None:
    """At most about two cells a point, with edges of ``reach`` or more; None where extents overflow."""
    low, high = boxes(points, len(points))
    with np.errstate(over="ignore"):
        low, extents = low[:, 0], (high - low)[:, 0]
        if not np.isfinite(extents).all():
            return None
        columns = np.sort(np.argsort(-extents, kind="stable")[:GRID_COLUMNS])
        edge, most = reach, 2.0 * len(points) + 16.0
        while (cells := np.prod(extents[columns] / edge + 1.0)) > most:
            edge *= max(1.25, (min(cells, 1e300) / most) ** (1.0 / len(columns)))
    return Grid(columns, low[columns], 1.0 / edge, (extents[columns] / edge).astype(np.int64) + 1)


@inner
def place_on(grid, k, x):
    """Number of the cell along axis ``k``; beyond the grid that at its edge."""
    place, last = (x - grid.low[k]) * grid.inverse, grid.counts[k] - 1.0
    place = place if place > 0.0 else 0.0
    return np.intp(place if place < last else last)


@jit(allocates=False)
def _sort_into(grid, points, cell_of, starts, rows):
    n, cells = points.shape[0], starts.size - 2
    for i in range(n):
        cell = 0
        for k in range(grid.counts.size):
            cell = cell * grid.counts[k] + place_on(grid, k, points[i, grid.columns[k]])
        cell_of[i] = cell
        starts[cell + 2] += 1
    for cell in range(cells):
        starts[cell + 2] += starts[cell + 1]
    # each cell's start is one place further on, and moves to the cell's end, which is the start of the next
    for i in range(n):
        at = starts[cell_of[i] + 1]
        rows[at] = i
        starts[cell_of[i] + 1] = at + 1


def sort_into(grid: Grid, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counting sort.

    Returns
    -------
    starts : array of int64, shape (cells + 1,)
        Cell after cell, the last column of the grid fastest.
    rows : array of int64, shape (n,)
        The rows of the points, by cell; in one cell they ascend.
    """
    cell_of, rows = np.empty((2, len(points)), np.int64)
    starts = np.zeros(np.prod(grid.counts) + 2, np.int64)
    _sort_into(grid, points, cell_of, starts, rows)
    return starts[:-1], rows


@inner
def _add_found(profile, shape, squared, row, found, n, multiplicity, values, i, total, sums):
    call(profile, row, n, shape, squared)
    mass = total[i]
    for j in range(n):
        k = found[j]
        w = row[j] * multiplicity[k] if multiplicity.size else row[j]
        mass += w
        for c in range(values.shape[1]):
            sums[i, c] += w * values[k, c]
    total[i] = mass


if vectors.ENABLED:

    @inner
    def _add_square(gap, total):
        return vectors.multiply_add(gap, gap, total)

else:

    @inner
    def _add_square(gap, total):
        return total + gap * gap


@jit
def compact_sweep(
    profile, shape, slack, grid, starts, samples, multiplicity, values, queries, squared, order, total, sums
):
    """Add all samples within reach to the sums of some queries.

    Parameters
    ----------
    profile : int
        Address of a part.
    shape : float
        Of the profile.
    slack : float
        What :func:`locbook.engine.pruning.slack_of` gives.
    grid, starts : Grid, array
    samples : array, shape (d, n)
        By cell, as ``multiplicity``, shape (n,) or (0,), and ``values``, shape (n, p).
    queries, squared, total, sums : arrays, shapes (m, d), (m,), (m,) and (m, p)
        ``squared`` holds the squared bandwidths.
    order : array of int64
        Rows of the queries that are looked at.
    """
    last, d = grid.counts.size - 1, samples.shape[0]
    # made here, nothing else can lie where they do, which makes the loops faster
    first, final, at = (
        np.empty(last + 1, np.int64),
        np.empty(last + 1, np.int64),
        np.empty(last + 1, np.int64),
    )
    row, found = np.empty(GATHERED), np.empty(GATHERED, np.int64)
    for i in order:
        q, limit = queries[i], with_slack(squared[i], slack)
        wide = math.sqrt(limit) * (1.0 + 1e-14)
        for k in range(last + 1):
            x = q[grid.columns[k]]
            first[k] = at[k] = place_on(grid, k, x - wide)
            final[k] = place_on(grid, k, x + wide)
        count, k = 0, last
        while k >= 0:
            line = 0
            for k in range(last):
                line = (line + at[k]) * grid.counts[k + 1]
            for j in range(starts[line + first[last]], starts[line + final[last] + 1]):
                near = _add_square(samples[0, j] - q[0], 0.0)
                if d > 1:
                    near = _add_square(samples[1, j] - q[1], near)
                if d > 2:
                    near = _add_square(samples[2, j] - q[2], near)
                for c in range(3, d):
                    near = _add_square(samples[c, j] - q[c], near)
                row[count], found[count] = near, j  # written always, kept if near: no branch
                count += near <= limit
                if count == GATHERED:
                    _add_found(
                        profile, shape, squared[i], row, found, count, multiplicity, values, i, total, sums
                    )
                    count = 0
            k = last - 1  # the next line of cells
            while k >= 0 and at[k] == final[k]:
                at[k] = first[k]
                k -= 1
            if k >= 0:
                at[k] += 1
        _add_found(profile, shape, squared[i], row, found, count, multiplicity, values, i, total, sums)


def compact_leaf(problem: Problem) -> base.RadialKernel | None:
    """The leaf, if the kernel is one named profile with a bounded support over a Euclidean distance; else None.

    With one bandwidth, or one for each query, and without a mask.
    """
    kernel = problem.kernel
    if (
        not isinstance(kernel, base.RadialKernel)
        or kernel.named is None
        or not np.isfinite(kernel.named.support)
    ):
        return None
    ruler = kernel.ruler
    if isinstance(ruler, VaryingBandwidth):
        simple = ruler.side == "query" and ruler.values is not None
    else:
        simple = np.ndim(ruler) == 0
    return kernel if simple and kernel.metric.code == EUCLIDEAN and problem.mask is None else None


def sum_compact(
    problem: Problem, values: np.ndarray, prune: str | bool
) -> tuple[np.ndarray, np.ndarray] | None:
    """Sums of the weights (m,), and of weight times value (m, p).

    None where there is no such leaf or, under ``prune="auto"``, where a grid does not pay.
    """
    kernel = compact_leaf(problem)
    m, n = len(problem.queries), len(problem.samples)
    prune = check_prune(prune)
    if kernel is None or not prune:
        return None
    columns = kernel.columns(problem.samples.shape[1])
    if prune == "auto" and (n < FEWEST_SAMPLES or m < FEWEST_QUERIES or n * len(columns) > MOST_NUMBERS):
        return None
    ruler = kernel.ruler
    widths = problem.of_queries(ruler.values) if isinstance(ruler, VaryingBandwidth) else ruler
    squared = np.broadcast_to(np.square(np.asarray(widths, dtype=np.float64)), (m,))
    x, q = (coordinates(a, columns) for a in (problem.samples, problem.queries))
    grid = make_grid(x, float(np.max(widths)) * kernel.named.support)
    if grid is None:
        return None
    starts, rows = sort_into(grid, x)
    # samples that a query looks at if queries are where samples are: those of its cell, times the cells around it
    around = 3 ** len(grid.columns) * float(np.square(np.diff(starts)).sum()) / n
    if prune == "auto" and around > FEW * n:
        return None
    order = sort_into(grid, q)[1]
    known = np.ascontiguousarray(values[rows], dtype=np.float64)
    weights = np.empty(0) if problem.sample_weight is None else problem.sample_weight[rows]
    given = (
        *(
            named.profile_address(kernel.named.code),
            float(kernel.parameter),
            slack_of(len(columns), "float64"),
        ),
        *(grid, starts, np.ascontiguousarray(x[rows].T), weights, known, q, squared),
    )
    total, sums = np.zeros(m), np.zeros((m, values.shape[1]))
    work = m * (QUERY + around) * (len(columns) + values.shape[1] + PAIR)
    run_split(lambda some: compact_sweep(*given, order[some], total, sums), m, TASK, work=work)
    return total, sums
