r"""The k nearest in Euclidean distance: sieve panels of samples, and look closely at what falls through.

Once a few samples have been seen, next to no other is nearer than the k-th best so far. So for four queries and a panel
of 64 samples a kernel computes scores, compares them with the k-th of each query, and returns 64 bits a query: nothing
is written down. Only where a bit is set is the distance put on the heap of the k best.

- With pruning (few columns) scores are squared distances in float64, and panels are visited from near to far.
- Without, they are inner products in float32 of centred coordinates, twice as many at once with a third of the work:
  :math:`\lVert q-x\rVert^2 = \lVert q\rVert^2 - 2\,(q\cdot x - \tfrac12\lVert x\rVert^2)`. The bound of their rounding
  error is taken off the limit, and what falls through is measured by differences in float64; so the answer is that of
  differences, and 1e8 and 1e8 + 1 are 1 apart.
"""

from __future__ import annotations

import numpy as np

from . import vectors
from .panels import PANEL, pack
from .parts import call, inner, jit
from .pool import run_tasks, split
from .problem import Problem
from .pruning import box_distance, drop_nearest, order_panels, with_slack
from .reach import BLOCK, Order, coordinates, some_columns
from .scores import DISTANCE, PRODUCT
from .sieve import sieve_address
from .sweep import push
from .vectors import ROWS, lowest_bit, multiply_add

#: Queries of a task, and numbers in a chunk.
TASK, CHUNK = 16 * BLOCK, 1 << 20
#: Queries that pass by while some panels stay in the second-level cache.
PASSING = 96
#: Panels that are sieved by one call.
AT_ONCE = 8
#: Half a unit in the last place of 1 in float32.
_U = 2.0**-24
#: Below it a product in float32 may be lost.
_TINY = 2.0**-125


@inner
def _squared_distance(queries, i, samples, j):
    """To the bit what the kernel of distances gives: a kernel of the k nearest compares the two."""
    total = 0.0
    for c in range(queries.shape[1]):
        gap = samples[j, c] - queries[i, c]
        total = multiply_add(gap, gap, total)
    return total


@jit
def pruned_nearest(
    sieve, queries, query_ids, panels, n, ids, hollow, first_block, blocks, fours, boxes, scale, metric, sure, slack,
    best, rows,
):  # fmt: skip
    """Queries and samples in k-d order; ``best`` (minus the squared distances) and ``rows`` are heaps, shape (b, k)."""
    out, limits, passed = np.empty((ROWS, PANEL)), np.empty(ROWS), np.empty((ROWS, 1), np.int64)
    bias = np.empty((0, 0))
    count = query_ids.size
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        block = first_block + start // BLOCK
        some, distances = order_panels(
            blocks[0], blocks[1], block, boxes[0], boxes[1], scale, metric, sure, slack
        )
        left = some.size
        while left > 0:
            worst = 0.0
            for i in range(start, stop):
                worst = max(worst, -best[i, 0])
            if distances[0] > with_slack(worst, slack):
                break
            panel = some[0]
            size = min(PANEL, n - panel * PANEL)
            everything = -1 if size == PANEL else (1 << size) - 1
            for i in range(start, stop, ROWS):
                last = min(i + ROWS, stop) - 1
                worst = 0.0
                for r in range(ROWS):
                    limits[r] = -best[min(i + r, last), 0]
                    worst = max(worst, limits[r])
                four = first_block * (BLOCK // ROWS) + i // ROWS
                if box_distance(
                    fours[0], fours[1], four, boxes[0], boxes[1], panel, scale, metric
                ) > with_slack(worst, slack):
                    continue
                call(sieve, queries, i, panels, panel, 1, bias, limits, out, passed)
                for r in range(last - i + 1):
                    bits = passed[r, 0] & everything
                    while bits != 0:
                        j = lowest_bit(bits)
                        bits &= bits - 1
                        row = ids[panel * PANEL + j]
                        if not (hollow and row == query_ids[i + r]):
                            push(-out[r, j], row, best[i + r], rows[i + r])
            left = drop_nearest(some, distances, left)
    return 0


@jit
def sieved_nearest(
    sieve,
    queries,
    query_ids,
    centred,
    lengths,
    unit,
    panels,
    bias,
    reaches,
    samples,
    first_row,
    hollow,
    best,
    rows,
):
    """Every panel of a chunk.

    Parameters
    ----------
    queries, samples : arrays of float64, shapes (b, d) and (n, d)
    centred, panels, bias : arrays of float32, shapes (b to the next multiple of ROWS, d), (panels, d, PANEL) and
        (panels, PANEL)
        Queries, samples, and minus half the squared length of each sample, ``-inf`` beyond the last.
        All centred, and in units of their largest coordinate.
    lengths : array, shape (b,)
        Of the centred queries.
    unit : float
        One over the square of that unit.
    reaches : array, shape (panels,)
        Largest length of a centred sample of each panel.
    first_row : int
        Row number of the chunk's first sample.
    best, rows : arrays, shape (b, k)
        Heaps: minus the squared distances, and row numbers.
    """
    out, limits, passed = (
        np.empty((0, 0), np.float32),
        np.empty(ROWS, np.float32),
        np.empty((ROWS, AT_ONCE), np.int64),
    )
    b, d = queries.shape
    for start in range(0, b, PASSING):
        panel = 0
        while panel < panels.shape[0]:
            count = AT_ONCE if panel >= 2 * AT_ONCE else 1  # one by one while the limits still fall fast
            count = min(count, panels.shape[0] - panel)
            reach = 0.0
            for p in range(count):
                reach = max(reach, reaches[panel + p])
            for i in range(start, min(start + PASSING, b), ROWS):
                for r in range(ROWS):
                    k = min(i + r, b - 1)
                    error = _U * reach * ((d + 6) * lengths[k] + 3.0 * reach) + (d + 2) * _TINY
                    error += (d + 8) * 2.0**-53 * (lengths[k] + reach) ** 2  # of the float64 numbers
                    limit = 0.5 * (lengths[k] * lengths[k] + best[k, 0] * unit) - error
                    limits[r] = limit - 8.0 * _U * abs(limit)
                call(sieve, centred, i, panels, panel, count, bias, limits, out, passed)
                for r in range(min(ROWS, b - i)):
                    for p in range(count):
                        size = samples.shape[0] - (panel + p) * PANEL
                        bits = passed[r, p] & (-1 if size >= PANEL else (1 << size) - 1)
                        while bits != 0:
                            j = (panel + p) * PANEL + lowest_bit(bits)
                            bits &= bits - 1
                            row = first_row + j
                            if not (hollow and row == query_ids[i + r]):
                                push(
                                    -_squared_distance(queries, i + r, samples, j),
                                    row,
                                    best[i + r],
                                    rows[i + r],
                                )
            panel += count
    return 0


def distance_from(samples: np.ndarray, columns: np.ndarray, center: np.ndarray) -> float:
    """Largest distance of a coordinate from the centre."""
    low, high = (
        extreme.reduce(some_columns(samples, columns), axis=0).astype(np.float64)
        for extreme in (np.minimum, np.maximum)
    )
    return float(np.maximum(high - center, center - low).max())


def sievable(problem: Problem, columns: np.ndarray) -> bool:
    """Whether squares of the coordinates stay well within the floats."""
    return all(
        abs(float(extreme.reduce(some_columns(part, columns), axis=None))) < 1e140
        for part in (problem.queries, problem.samples)
        for extreme in (np.minimum, np.maximum)
    )


def find_nearest(
    problem: Problem, columns: np.ndarray, k: int, *, hollow: bool, pruned: Order | None
) -> tuple[np.ndarray, np.ndarray]:
    """Heaps of the k nearest of each query: minus the squared distances and row numbers, shape (m, k)."""
    m, n = len(problem.queries), len(problem.samples)
    best, rows = np.full((m, k), -np.inf), np.full((m, k), np.iinfo(np.int64).max)
    q = coordinates(problem.queries, columns)
    tasks = split(m, TASK, BLOCK)
    if pruned is not None:
        sieve = sieve_address(DISTANCE)
        panels = pack(pruned.points, np.float64)

        def walk(some: slice) -> None:
            own = pruned.queries[some]
            heaps = best[own], rows[own]
            first, *boxes, scale, metric, _, _, sure, slack = pruned.arguments(some.start)
            pruned_nearest(
                *(
                    sieve,
                    vectors.whole_rows(pruned.places[some]),
                    problem.query_ids[own],
                    panels,
                    n,
                    pruned.samples,
                    hollow,
                    first,
                ),
                *(*boxes, scale, metric, sure, slack, *heaps),
            )
            best[own], rows[own] = heaps

        run_tasks(walk, tasks)
        return best, rows
    sieve = sieve_address(PRODUCT)
    center = some_columns(problem.samples, columns).mean(axis=0, dtype=np.float64)
    away = q - center
    largest = float(
        np.maximum(np.abs(away).max(initial=0.0), distance_from(problem.samples, columns, center))
    )
    unit = 2.0 ** -np.clip(
        np.frexp(largest)[1], -460, 460
    )  # smaller ones all pass, and are looked at closely
    away *= unit
    lengths = np.sqrt(np.einsum("ij,ij->i", away, away))
    per_chunk = max(PANEL, CHUNK // len(columns) // PANEL * PANEL)
    for first in range(0, n, per_chunk):
        x = coordinates(problem.samples[first : first + per_chunk], columns)
        some = (x - center) * unit
        squared = np.einsum("ij,ij->i", some, some)
        panels = pack(some, np.float32)
        bias = pack(-0.5 * squared[:, None], np.float32, fill=-np.inf)[:, 0]
        reaches = np.sqrt(np.maximum.reduceat(squared, np.arange(0, len(squared), PANEL)))

        def look(own: slice, first=first, x=x, panels=panels, bias=bias, reaches=reaches) -> None:
            sieved_nearest(
                *(
                    sieve,
                    q[own],
                    problem.query_ids[own],
                    vectors.whole_rows(away[own], np.float32),
                    lengths[own],
                    unit * unit,
                ),
                *(panels, bias, reaches, x, first, hollow, best[own], rows[own]),
            )

        run_tasks(look, tasks)
    return best, rows
