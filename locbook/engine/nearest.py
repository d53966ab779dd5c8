r"""The k nearest in Euclidean distance: sieve panels of samples, and look closely at what falls through.

Once a few samples have been seen, next to no other is nearer than the k-th best so far. So for four queries and a panel
of 64 samples a kernel computes scores, compares them with the k-th of each query, and returns 64 bits a query: nothing
is written down. Only where a bit is set is the distance put on the heap of the k best.

- In up to three columns a grid of cells comes first: the cells around a query tell how dense the samples are there, and
  so at which radius a few more than k are to be expected. Where there are at least k, the k nearest are among them.
  Queries for which that takes too many samples or cells are left for what follows.
- With pruning (few columns) scores are squared distances in float64, and panels are visited from near to far.
- Without, they are inner products in float32 of centred coordinates, twice as many at once with a third of the work:
  :math:`\lVert q-x\rVert^2 = \lVert q\rVert^2 - 2\,(q\cdot x - \tfrac12\lVert x\rVert^2)`. The bound of their rounding
  error is taken off the limit, and what falls through is measured by differences in float64; so the answer is that of
  differences, and 1e8 and 1e8 + 1 are 1 apart.
"""

from __future__ import annotations

import math

import numpy as np

from . import vectors
from .compact import GRID_COLUMNS, make_grid, place_on, sort_into
from .panels import PANEL, pack
from .parts import call, inner, jit
from .pool import PAIR, run_split
from .problem import Problem
from .pruning import box_distance, box_distances, drop_nearest, order_panels, with_slack
from .reach import BLOCK, MOST_NUMBERS, Order, Reach, check_prune, coordinates, put_in_order, some_columns
from .scores import DISTANCE, PRODUCT
from .sieve import sieve_address
from .sweep import push
from .vectors import ROWS, lowest_bit, multiply_add

#: Queries of a task, and numbers in a chunk.
TASK, CHUNK = 16 * BLOCK, 1 << 20
#: Queries that pass by while some panels stay in the second-level cache.
PASSING = 96
#: Operations of a search in the grid, about.
SEARCH = 20_000
#: Panels that are sieved by one call.
AT_ONCE = 8
#: A grid is asked for so many neighbours at most; a query that needs more samples, or lines of cells, is left over.
MOST_NEIGHBORS, MOST = 128, 1024
#: One query in so many is asked first: where a quarter of these is left over, the grid is given up.
PROBE = 32
#: So few queries that are left over look at as much as they need.
FEW = 64
#: In the time that the sieve takes for a pair: to put a sample into its cell, and to answer a query by cells.
SORT, ANSWER = 300.0, 500.0
#: Least edge of a cell: its square is not lost.
EDGE = 1e-140
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


@inner
def _list_lines(grid, starts, q, wide, begins, ends):
    """The lines of cells that hold all samples within ``wide`` of a query: where each begins and ends.

    Returns how many lines have samples, and how many samples these are; -1 where there are too many lines.
    """
    first_a, last_a = place_on(grid, 0, q[0] - wide), place_on(grid, 0, q[0] + wide)
    first_b, last_b = place_on(grid, 1, q[1] - wide), place_on(grid, 1, q[1] + wide)
    first_c, last_c = place_on(grid, 2, q[2] - wide), place_on(grid, 2, q[2] + wide)
    lines = count = 0
    if (last_a - first_a + 1) * (last_b - first_b + 1) > begins.size:
        return lines, -1
    for a in range(first_a, last_a + 1):
        for b in range(first_b, last_b + 1):
            line = (a * grid.counts[1] + b) * grid.counts[2]
            begin, end = starts[line + first_c], starts[line + last_c + 1]
            begins[lines], ends[lines] = begin, end
            lines += end > begin
            count += end - begin
    return lines, count


@jit
def nearest_in_cells(
    grid, power, starts, ids, samples, queries, query_ids, hollow, order, most, best, rows
):  # fmt: skip
    """The k nearest of some queries, by a grid: those within a radius, if they are k or more.

    Cells around the query, more and more of them until they hold k samples, tell the density there. From it follows the
    radius at which two standard deviations more than k are to be expected; where they are fewer, it grows by half.

    Parameters
    ----------
    grid, starts, ids : Grid of three columns, arrays
    power : float
        One over the number of columns along which there are cells side by side.
    samples, queries : arrays, shapes (n, 3) and (m, 3)
        Samples by cell.
    order : array of int64
        Rows of the queries that are looked at.
    most : int
        Samples that are looked at for one query, and lines of cells.
    best, rows : arrays, shape (m, k)
        Heaps: minus the squared distances, and row numbers.

    Returns
    -------
    array of int64
        The queries that are left over; their heaps are as they were.
    """
    needed = best.shape[1] + hollow
    wanted = 2.0 * (needed + 2.0 * math.sqrt(needed))  # in a cube, of which a ball is half
    edge = 1.0 / grid.inverse
    # unsigned: what is never negative is not tested for it
    begins, ends = np.empty(most, np.uint64), np.empty(most, np.uint64)
    near, found = np.empty(most), np.empty(most, np.uint64)
    left, count_left = np.empty(order.size, np.int64), 0
    for i in order:
        q, outside = queries[i], 0.0
        for c in range(q.size):
            gap = max(0.0, grid.low[c] - q[c], q[c] - grid.low[c] - grid.counts[c] * edge)
            outside += gap * gap
        outside = math.sqrt(outside)
        wide = edge
        _, around = _list_lines(grid, starts, q, outside + wide, begins, ends)
        while 0 <= around < needed:
            wide *= 2.0
            _, around = _list_lines(grid, starts, q, outside + wide, begins, ends)
        wide = outside + (wide + 0.5 * edge) * (wanted / max(1, around)) ** power
        kept = np.uint64(0)
        while around >= 0 and kept < needed:
            lines, around = _list_lines(grid, starts, q, wide, begins, ends)
            if around < 0 or around > most:
                break
            limit = wide * wide * (1.0 - 1e-14)  # rounding adds less: what is within is in these cells
            kept = np.uint64(0)
            for line in range(lines):
                for j in range(begins[line], ends[line]):
                    gap = samples[j, 0] - q[0]
                    squared = gap * gap
                    gap = samples[j, 1] - q[1]
                    squared = multiply_add(gap, gap, squared)
                    gap = samples[j, 2] - q[2]
                    squared = multiply_add(gap, gap, squared)
                    near[kept], found[kept] = squared, j  # written always, kept if near: no branch
                    kept += np.uint64(squared <= limit)
            wide *= 1.5
        if kept < needed:
            left[count_left] = i
            count_left += 1
            continue
        for j in range(kept):
            row = ids[found[j]]
            if not (hollow and row == query_ids[i]):
                push(-near[j], row, best[i], rows[i])
    return left[:count_left].copy()


@jit
def pruned_nearest(
    sieve, queries, query_ids, panels, n, ids, hollow, first_block, blocks, fours, boxes, scale, metric, slack,
    distances, some, best, rows,
):  # fmt: skip
    """Queries and samples in k-d order; ``best`` (minus the squared distances) and ``rows`` are heaps, shape (b, k)."""
    out, limits, passed = np.empty((ROWS, PANEL)), np.empty(ROWS), np.empty((ROWS, 1), np.int64)
    bias = np.empty((0, 0))
    count = query_ids.size
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        block = first_block + start // BLOCK
        box_distances(
            blocks[0], blocks[1], block, boxes[0], boxes[1], scale, metric, distances[0], distances[1]
        )
        left = order_panels(distances[0], some)
        while left > 0:
            worst = 0.0
            for i in range(start, stop):
                worst = max(worst, -best[i, 0])
            if distances[0, 0] > with_slack(worst, slack):
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
            left = drop_nearest(some, distances[0], left)
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


def _empty_heaps(m: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """An empty place is worse than any sample."""
    return np.full((m, k), -np.inf), np.full((m, k), np.iinfo(np.int64).max)


def sieve_all(
    problem: Problem, columns: np.ndarray, k: int, *, hollow: bool, pruned: Order | None
) -> tuple[np.ndarray, np.ndarray]:
    """Heaps of the k nearest of each query, by the sieve: minus the squared distances and row numbers."""
    m, n = len(problem.queries), len(problem.samples)
    best, rows = _empty_heaps(m, k)
    q = coordinates(problem.queries, columns)
    work = m * n * (len(columns) + PAIR) * (1.0 if pruned is None else pruned.share)
    if pruned is not None:
        sieve = sieve_address(DISTANCE)
        panels = pack(pruned.points, np.float64)

        def walk(some: slice) -> None:
            own = pruned.queries[some]
            heaps = best[own], rows[own]
            first, blocks, fours, boxes, scale, metric, _, _, slack, *room = pruned.arguments(some.start)
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
                *(blocks, fours, boxes, scale, metric, slack, *room, *heaps),
            )
            best[own], rows[own] = heaps

        run_split(walk, m, TASK, BLOCK, work)
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

        run_split(look, m, TASK, BLOCK, work)
    return best, rows


def _three_columns(points: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """These columns in float64, and columns of zeros before them, which change no distance."""
    if len(columns) == GRID_COLUMNS:
        return coordinates(points, columns)
    three = np.zeros((len(points), GRID_COLUMNS))
    three[:, GRID_COLUMNS - len(columns) :] = some_columns(points, columns)
    return three


def search_cells(
    problem: Problem, columns: np.ndarray, best: np.ndarray, rows: np.ndarray, *, hollow: bool
) -> np.ndarray | None:
    """Fill the heaps of the queries that a grid answers; returns the others, or None where these are too many."""
    x, q = (_three_columns(points, columns) for points in (problem.samples, problem.queries))
    grid = make_grid(x, EDGE)
    starts, ids = sort_into(grid, x)
    order = sort_into(grid, q)[1]
    power = 1.0 / max(1, np.count_nonzero(grid.counts > 1))
    given = grid, power, starts, ids, np.take(x, ids, axis=0), q, problem.query_ids, hollow

    def answer(order: np.ndarray, most: int = MOST) -> np.ndarray:
        return nearest_in_cells(*given, order, most, best, rows)

    probes = np.arange(len(order)) % PROBE == 0
    left = [answer(order[probes])]
    if 4 * left[0].size > np.count_nonzero(probes):
        return None
    order = order[~probes]
    left += run_split(lambda some: answer(order[some]), len(order), TASK, work=len(order) * SEARCH)
    left = np.concatenate(left)
    return answer(left, max(len(x), len(starts))) if left.size <= FEW else left


def find_nearest(
    problem: Problem, columns: np.ndarray, k: int, *, hollow: bool, reach: Reach, prune: str | bool
) -> tuple[np.ndarray, np.ndarray]:
    """Heaps of the k nearest of each query: minus the squared distances and row numbers, shape (m, k)."""
    m, n = len(problem.queries), len(problem.samples)
    prune = check_prune(prune)
    pays = n * len(columns) <= MOST_NUMBERS and SORT / m + ANSWER / n < 1.0
    left = None
    if len(columns) <= GRID_COLUMNS and k <= MOST_NEIGHBORS and (pays if prune == "auto" else prune):
        best, rows = _empty_heaps(m, k)
        left = search_cells(problem, columns, best, rows, hollow=hollow)
    if left is None:
        return sieve_all(problem, columns, k, hollow=hollow, pruned=put_in_order(problem, reach, prune))
    if left.size:
        problem = problem.rows(left, problem.kernel)
        pruned = put_in_order(problem, reach, prune)
        best[left], rows[left] = sieve_all(problem, columns, k, hollow=hollow, pruned=pruned)
    return best, rows
