r"""Pruning: leave out the samples that cannot matter, before any distance is computed.

Samples stand in *panels* of ``leaf`` rows and queries in *blocks*, both in k-d order (Bentley 1975): cut at the median
of the widest column until ``leaf`` rows are left. Neighbours then share a panel, and a panel fills a small box.
Between the box of a block and the box of a panel no two points are nearer than ``nearest`` or farther than
``farthest``; column by column, with factor :math:`\sigma_c`,

.. math::
    g_c = \sigma_c \max(0,\ l_c - H_c,\ L_c - h_c), \qquad G_c = \sigma_c \max(H_c - l_c,\ h_c - L_c),

where [L, H] is the block and [l, h] the panel; the metric makes a squared distance of the g and of the G. Then

- a kernel of bounded support sees the panels with nearest <= support squared;
- a kernel of exponential type sees those whose weight is not negligible beside the best: every query of the block has
  a sample within U, the least ``farthest`` of all panels, so log K(nearest) < log K(U) - r leaves a sample out only
  where its weight is below e^-r of the largest (:func:`log_reach`);
- the k nearest are found from near to far, until the next panel is farther than the k-th of every query.

A block of 16 queries is listed once; its fours, small boxes as well, then skip what only the others need.

All distances are squared and measured from differences, as :mod:`locbook.kernels.metrics` does, so give
the very coordinates that the engine computes with, and the factors apart. Rounding keeps order (a <= b rounds to
a <= b), so a bound computed in the same steps is a bound of the computed distance; ``slack`` covers other steps, such
as a fused multiply-add or float32 (:func:`slack_of`, :func:`with_slack`).
"""

from __future__ import annotations

import math

import numpy as np

from ..kernels.metrics import CHEBYSHEV, EUCLIDEAN
from ..kernels.profiles import PROFILES
from .parts import inner, jit
from .pool import get_num_threads, run_tasks

GAUSSIAN, LAPLACE = PROFILES["gaussian"].code, PROFILES["laplace"].code
#: Fewer points are put in order by one thread.
SHARED = 4096
#: Any code but those two: the reach is the squared radius of the support.
COMPACT = PROFILES["uniform"].code


@inner
def _extremes(points, rows, column):
    low = high = points[rows[0], column]
    for i in range(rows.size):
        low = min(low, points[rows[i], column])
        high = max(high, points[rows[i], column])
    return low, high


@jit
def _value_of_rank(values, rank, counts):
    """What ``np.sort(values)[rank]`` would be; ``values`` is overwritten, ``counts`` is scratch of at least 8.

    A histogram tells in which bucket the rank falls, and only that bucket is kept: two rounds as a rule. Each round
    leaves a range at most a seventh as wide, and floats span 2100 powers of two: O(n) whatever the values.
    """
    size = values.size
    while size > 32:
        low = high = values[0]
        for i in range(size):
            low, high = min(low, values[i]), max(high, values[i])
        if low == high:
            return low
        unit = 1.0  # brings differences beyond the floats, or next to none, back among them
        if high - low == math.inf:
            unit = 0.25
        elif high - low < 1e-290:
            unit = 2.0**500
        buckets = min(counts.size, size // 4)
        start = low * unit
        factor = (buckets - 1) / (high * unit - start)
        for i in range(buckets):
            counts[i] = 0
        for i in range(size):
            counts[int((values[i] * unit - start) * factor)] += 1
        bucket = 0
        while rank >= counts[bucket]:
            rank -= counts[bucket]
            bucket += 1
        kept = 0
        for i in range(size):
            value = values[i]
            values[kept] = value
            kept += int((value * unit - start) * factor) == bucket
        size = kept
    for i in range(1, size):  # what is left is sorted by insertion
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return values[rank]


@jit
def _cut(points, scale, leaf, order, start, stop, until):
    """Cut ``order[start:stop]`` into ranges of at most ``until`` or a leaf; returns them, shape (r, 2)."""
    d = points.shape[1]
    after = np.empty(stop - start, np.int64)
    keys, work = np.empty(stop - start), np.empty(stop - start)
    counts = np.empty(256, np.int64)
    ranges, done = [(start, stop)], []
    while ranges:
        start, stop = ranges.pop()
        size = stop - start
        if size <= max(leaf, until):
            done.append((start, stop))
            continue
        rows = order[start:stop]
        column, low, high = 0, 0.0, 0.0
        for c in range(d):
            a, b = _extremes(points, rows, c)
            if (b - a) * scale[c] > (high - low) * scale[column]:
                column, low, high = c, a, b
        leaves = (size + leaf - 1) // leaf
        middle = leaves // 2 if leaves <= 4 else max(4, leaves // 2 // 4 * 4)
        middle *= leaf
        ranges.append((start + middle, stop))
        ranges.append((start, start + middle))
        if low == high:
            continue
        for i in range(size):
            keys[i] = work[i] = points[rows[i], column]
        median = _value_of_rank(work[:size], middle, counts)
        equal = middle
        for i in range(size):
            equal -= keys[i] < median
        # stable, and without a jump: both places are written, and one of them moves on
        left = right = 0
        for i in range(size):
            row = rows[i]
            tie = (keys[i] == median) & (equal > 0)
            before = (keys[i] < median) | tie
            rows[left] = after[right] = row
            left += before
            right += 1 - before
            equal -= tie
        for i in range(right):
            rows[left + i] = after[i]
    found = np.empty((len(done), 2), np.int64)
    for i in range(len(done)):
        found[i, 0], found[i, 1] = done[i]
    return found


def kd_order(points: np.ndarray, scale: np.ndarray, leaf: int) -> np.ndarray:
    """Order the points so that every ``leaf`` in a row fill a small box.

    Each range is cut across its widest column into the points before and after the median; of equal points the lower
    row comes first. Cuts keep fours of leaves together, so that ``4 * leaf`` in a row fill a small box too. Every leaf
    holds ``leaf`` points but the last, in ascending rows. O(d n log n) for any points; the threads take what the first
    cuts leave.

    Parameters
    ----------
    points : array, shape (n, d)
        Finite.
    scale : array, shape (d,)
        Factor of each column, positive: one over its bandwidth.
    leaf : int
        At least 1.

    Returns
    -------
    array of int64, shape (n,)
        Row numbers, a permutation.
    """
    order = np.arange(len(points))
    share = len(points) // get_num_threads() + 4 * leaf
    ranges = _cut(points, scale, leaf, order, 0, len(points), max(share, SHARED))
    run_tasks(lambda some: _cut(points, scale, leaf, order, some[0], some[1], leaf), ranges)
    return order


@jit
def boxes(points, leaf):
    """Smallest and largest coordinates of each ``leaf`` points in a row; the last box may hold fewer.

    Parameters
    ----------
    points : array, shape (n, d)
        In k-d order.

    Returns
    -------
    low, high : arrays of float64, shape (d, ceil(n / leaf))
        Transposed: the loops over boxes run along memory.
    """
    n, d = points.shape
    count = (n + leaf - 1) // leaf
    low, high = np.full((d, count), math.inf), np.full((d, count), -math.inf)
    for i in range(n):
        box = i // leaf
        for c in range(d):
            low[c, box] = min(low[c, box], points[i, c])
            high[c, box] = max(high[c, box], points[i, c])
    return low, high


@jit
def box_distances(query_low, query_high, block, low, high, scale, metric, nearest, farthest):
    """Squared distances between which all pairs of a block and each panel lie.

    Parameters
    ----------
    query_low, query_high : arrays of float64, shape (d, blocks)
        The boxes of the blocks.
    block : int
        The block looked at.
    low, high : arrays of float64, shape (d, panels)
        The boxes of the panels.
    scale : array, shape (d,)
    metric : int
        ``EUCLIDEAN``, ``MANHATTAN`` or ``CHEBYSHEV``.
    nearest, farthest : arrays of float64, shape (panels,)
        The answer.
    """
    nearest[:] = 0.0
    farthest[:] = 0.0
    for c in range(scale.size):
        a, b, unit = query_low[c, block], query_high[c, block], scale[c]
        for j in range(nearest.size):
            # written as choices, which become vectors; no NaN comes here
            above, below = low[c, j] - b, a - high[c, j]
            gap, span = (above, -below) if above > below else (below, -above)
            gap = (gap if gap > 0.0 else 0.0) * unit
            span *= unit
            if metric == EUCLIDEAN:
                nearest[j] += gap * gap
                farthest[j] += span * span
            elif metric == CHEBYSHEV:
                nearest[j] = max(nearest[j], gap)
                farthest[j] = max(farthest[j], span)
            else:
                nearest[j] += gap
                farthest[j] += span
    if metric != EUCLIDEAN:
        for j in range(nearest.size):
            nearest[j] *= nearest[j]
            farthest[j] *= farthest[j]


@jit
def box_distance(query_low, query_high, block, low, high, panel, scale, metric):
    """One entry of ``nearest``, for a few queries of a block: give the boxes of such groups, ``boxes(queries, 4)``."""
    total = 0.0
    for c in range(scale.size):
        gap = max(0.0, low[c, panel] - query_high[c, block], query_low[c, block] - high[c, panel]) * scale[c]
        if metric == EUCLIDEAN:
            total += gap * gap
        elif metric == CHEBYSHEV:
            total = max(total, gap)
        else:
            total += gap
    return total if metric == EUCLIDEAN else total * total


@jit
def with_slack(squared, slack):
    """The squared distance beyond which a box is out of reach; the tiny part is for squares too small for float32."""
    return squared * (1.0 + slack) + 1e-37


@jit
def active_panels(query_low, query_high, block, low, high, scale, metric, profile, reach, slack):
    """The panels that a block of queries has to visit.

    Parameters
    ----------
    query_low, query_high, block, low, high, scale, metric
        As in :func:`box_distances`. Distances are in bandwidths if ``scale`` holds one over the bandwidth.
    profile : int
        ``GAUSSIAN`` or ``LAPLACE``; any other code stands for a bounded support.
    reach : float
        The squared radius of the support; for the two of exponential type what :func:`log_reach` gives.
    slack : float
        What :func:`slack_of` gives.

    Returns
    -------
    panels : array of int64
        Ascending. For the two of exponential type the panel sure to hold a near sample comes first, so that the running
        maximum is near its final value at once. They count on one sample with a weight in each panel but the last
        (on two in a hollow kernel, which takes one away): leave samples of weight 0 out, and do not prune under a mask.
    limit : float
        The squared distance beyond which a panel was left out; a few queries of the block may leave out more of them
        where :func:`box_distance` is greater.
    """
    panels = low.shape[1]
    nearest, farthest = np.empty(panels), np.empty(panels)
    box_distances(query_low, query_high, block, low, high, scale, metric, nearest, farthest)
    limit, first = reach, -1
    if profile in (GAUSSIAN, LAPLACE):
        first = np.argmin(farthest[: max(1, panels - 1)])  # the last may hold a single sample
        limit = farthest[first]
        limit = limit + 2.0 * reach if profile == GAUSSIAN else (math.sqrt(limit) + reach) ** 2
    limit = with_slack(limit, slack)
    active = np.empty(panels, np.int64)
    count = 0
    if first >= 0:
        active[0] = first
        count = 1
    for j in range(panels):
        active[count] = j  # never beyond the end: the first is not counted twice
        count += (nearest[j] <= limit) & (j != first)
        if count == panels:
            break
    return active[:count].copy(), limit


@jit
def active_lists(query_low, query_high, first, count, low, high, scale, metric, profile, reach, slack):
    """The panels of ``count`` blocks from ``first`` on, end to end, and where each block's end; both int64."""
    found, ends = [], np.empty(count, np.int64)
    size = 0
    for block in range(count):
        panels, _ = active_panels(
            query_low, query_high, first + block, low, high, scale, metric, profile, reach, slack
        )
        found.append(panels)
        size += panels.size
        ends[block] = size
    lists = np.empty(size, np.int64)
    place = 0
    for panels in found:
        for panel in panels:  # one by one: the check of an assignment to a slice takes seconds to compile
            lists[place] = panel
            place += 1
    return lists, ends


@jit
def _sift(panels, distances, size, top):
    """Let the entry at ``top`` of a heap sink to where no entry below it is nearer, or as near with a lower number."""
    panel, distance = panels[top], distances[top]
    while True:
        child = 2 * top + 1
        if child >= size:
            break
        if child + 1 < size and (
            distances[child + 1] < distances[child]
            or (distances[child + 1] == distances[child] and panels[child + 1] < panels[child])
        ):
            child += 1
        if distances[child] > distance or (distances[child] == distance and panels[child] > panel):
            break
        panels[top], distances[top] = panels[child], distances[child]
        top = child
    panels[top], distances[top] = panel, distance


@jit
def drop_nearest(panels, distances, size):
    """Take the nearest of the first ``size`` panels off the heap of :func:`order_panels`; returns how many are left."""
    panels[0], distances[0] = panels[size - 1], distances[size - 1]
    _sift(panels, distances, size - 1, 0)
    return size - 1


@jit
def order_panels(query_low, query_high, block, low, high, scale, metric, sure, slack):
    """The panels that may hold one of the k nearest of a block, as a heap with the nearest on top.

    Few of them are visited, so they are not sorted. With ``worst`` the largest of the k-th squared distances of the
    block's queries so far (``inf`` while one has fewer than k)::

        panels, distances = order_panels(...)
        size = panels.size
        while size > 0 and distances[0] <= with_slack(worst, slack):
            ...  # visit panels[0], update worst
            size = drop_nearest(panels, distances, size)

    A panel at the very distance is visited: it may hold a tie with a lower row number.

    Parameters
    ----------
    query_low, query_high, block, low, high, scale, metric, slack
        As in :func:`active_panels`.
    sure : int
        How many panels (not the last) surely hold k samples that take part: ``ceil(k / leaf)``, or
        ``ceil(k / (leaf - 1))`` for a hollow kernel; larger than the number of panels if that is not known.

    Returns
    -------
    panels : array of int64
        The first is the nearest, of equal ones the lowest.
    distances : array of float64
        Their smallest squared distances.
    """
    count = low.shape[1]
    nearest, farthest = np.empty(count), np.empty(count)
    box_distances(query_low, query_high, block, low, high, scale, metric, nearest, farthest)
    limit = math.inf
    if sure < count:
        limit = _value_of_rank(farthest[: count - 1], sure - 1, np.empty(64, np.int64))
    panels = np.nonzero(nearest <= with_slack(limit, slack))[0]
    distances = nearest[panels]
    for top in range(panels.size // 2 - 1, -1, -1):
        _sift(panels, distances, panels.size, top)
    return panels, distances


def probes(blocks: int) -> np.ndarray:
    """At most 8 blocks, spread evenly over the order, hence over space."""
    count = min(8, blocks)
    return (2 * np.arange(count) + 1) * blocks // (2 * count)


def active_share(
    query_low: np.ndarray,
    query_high: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    scale: np.ndarray,
    metric: int,
    profile: int,
    reach: float,
    slack: float,
) -> float:
    """Share of all panels that a block visits, the mean of a few; arguments as of :func:`active_panels`."""
    found = [
        active_panels(query_low, query_high, b, low, high, scale, metric, profile, reach, slack)[0].size
        for b in probes(query_low.shape[1])
    ]
    return float(np.mean(found)) / low.shape[1]


def nearest_share(
    queries: np.ndarray,
    query_low: np.ndarray,
    query_high: np.ndarray,
    samples: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    scale: np.ndarray,
    metric: int,
    k: int,
    slack: float,
    leaf: int,
) -> float:
    """The same for the k nearest, judged by the k-th distance of one query of a few blocks.

    ``queries``, shape ``(m, d)``, and ``samples``, shape ``(n, d)``, are in order, and 1 <= k <= n.
    """
    n, blocks = len(samples), query_low.shape[1]
    found = []
    for b in probes(blocks):
        q = queries[b * len(queries) // blocks].astype(np.float64)[:, None]  # of this block, or next to it
        panels, _ = order_panels(q, q, 0, low, high, scale, metric, -(-k // leaf), slack)
        rows = (panels[:, None] * leaf + np.arange(leaf)).ravel()
        x = samples[rows[rows < n]].T.astype(np.float64, order="C")
        squared = np.empty(x.shape[1])
        box_distances(q, q, 0, x, x, scale, metric, squared, np.empty_like(squared))
        reach = np.partition(squared, k - 1)[k - 1]
        found.append(
            active_panels(query_low, query_high, b, low, high, scale, metric, COMPACT, reach, slack)[0].size
        )
    return float(np.mean(found)) / low.shape[1]


def log_reach(n: int, dtype: np.dtype | type, weight_ratio: float = 1.0) -> float:
    """How far below the largest log-weight a sample may be left out.

    All ``n`` samples left out together weigh less than 4e-18 of the largest weight (2e-9 in float32), also where the
    largest multiplicity is ``weight_ratio`` times the smallest.
    """
    digits = 20.0 if np.dtype(dtype) == np.float32 else 40.0
    return digits + math.log(max(1, n)) + math.log(weight_ratio)


def slack_of(d: int, dtype: np.dtype | type) -> float:
    """By how much, relative to it, a squared distance over ``d`` columns may be off when computed in that dtype."""
    return 4.0 * (d + 4) * float(np.finfo(dtype).eps)


#: In the time that the engine takes for one pair: to put one point in order, and to test one column of one box.
SORT, SCAN = 250.0, 2.0


def worth_pruning(n: int, m: int, d: int, leaf: int, block: int, share: float | None = None) -> bool:
    """What ``prune="auto"`` decides, twice.

    Before anything is ordered (``share`` None): whether order and lists cost at most a quarter of all n m pairs, which
    is what is lost if it was in vain. Then, with the share of the panels that blocks visit: whether visits, at twice
    the cost of a straight walk, and lists take at most 0.7 of it.
    """
    lists = SCAN * d / (leaf * block)
    if share is None:
        return n >= 8 * leaf and lists + SORT * (1.0 / n + 1.0 / m) < 0.25
    return 2.0 * share + lists < 0.7
