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

A block of 16 queries is listed once; outside the fused path its fours, small boxes as well, then skip what only the
others need.

All distances are squared and measured from differences, as :mod:`locbook.kernels.metrics` does, so give
the very coordinates that the engine computes with, and the factors apart. Rounding keeps order (a <= b rounds to
a <= b), so a bound computed in the same steps is a bound of the computed distance; ``slack`` covers other steps, such
as a fused multiply-add or float32 (:func:`slack_of`, :func:`with_slack`).
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np

from ..kernels.metrics import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from ..kernels.profiles import PROFILES
from .parts import inner, jit
from .pool import get_num_threads, run_tasks

GAUSSIAN, LAPLACE = PROFILES["gaussian"].code, PROFILES["laplace"].code
#: Fewer points are put in order by one thread.
SHARED = 4096
#: The code of one profile stands for all of bounded support: the reach is the squared radius of the support.
COMPACT = PROFILES["uniform"].code


@inner
def _select(values, size, rank, counts):
    """Where, among the first ``size`` values, what ``np.sort`` would put at ``rank`` stands in the end.

    The values are reordered: before that place stand those equal to it which come before the rank, and before these,
    if anything, smaller ones; ``counts`` is scratch of at least 8. A histogram tells in which bucket the rank falls,
    and only that bucket is kept: two rounds as a rule. Each round leaves a range at most a seventh as wide, and floats
    span 2100 powers of two: O(n) whatever the values.
    """
    while size > 32:
        low = high = values[0]
        for i in range(size):
            low = values[i] if values[i] < low else low
            high = values[i] if values[i] > high else high
        if low == high:
            return rank
        unit = 1.0  # brings differences beyond the floats, or next to none, back among them
        if high - low == math.inf:
            unit = 0.25
        elif high - low < 1e-290:
            unit = 2.0**500
        buckets = counts.size if counts.size < size // 4 else size // 4
        start = low * unit
        factor = (buckets - 1) / (high * unit - start)
        for i in range(buckets):
            counts[i] = 0
        for i in range(size):
            counts[np.intp((values[i] * unit - start) * factor)] += 1
        bucket = 0
        while rank >= counts[bucket]:
            rank -= counts[bucket]
            bucket += 1
        kept = 0
        for i in range(size):
            value = values[i]
            values[kept] = value
            kept += np.intp((value * unit - start) * factor) == bucket
        size = kept
    for i in range(1, size):  # what is left is sorted by insertion
        value, j = values[i], i
        while j > 0 and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value
    return rank


@jit(allocates=False)
def _cut(points, scale, leaf, until, order, keys, work, after, counts, ends):
    """Cut the rows ``order`` into ranges of at most ``until`` or a leaf; ``ends`` tells where they end.

    Returns how many they are. What is still to be cut waits at the back of ``ends``, which has a place for each leaf.
    ``keys``, ``work``, ``after`` (as many as there are rows) and ``counts`` are scratch.
    """
    start, done, waiting = 0, 0, ends.size - 1
    ends[waiting] = order.size
    while waiting < ends.size:
        size = ends[waiting] - start
        if size <= until:
            start = ends[waiting]
            ends[done] = start
            done += 1
            waiting += 1
            continue
        rows = order[start : start + size]
        column, widest = 0, 0.0
        for c in range(points.shape[1]):
            low = high = points[rows[0], c]
            for i in range(size):
                value = points[rows[i], c]
                low = value if value < low else low
                high = value if value > high else high
            if (high - low) * scale[c] > widest:
                column, widest = c, (high - low) * scale[c]
        leaves = (size + leaf - 1) // leaf
        middle = leaves // 2
        if leaves > 4:
            middle = 4 if leaves < 8 else leaves // 8 * 4
        middle *= leaf
        waiting -= 1
        ends[waiting] = start + middle
        if widest == 0.0:
            continue
        for i in range(size):
            keys[i] = work[i] = points[rows[i], column]
        place = _select(work, size, middle, counts)
        median, equal = work[place], 0  # how many of those equal to it come before the cut
        while equal < place and work[place - equal - 1] == median:
            equal += 1
        # stable, and without a jump: both places are written, and one of them moves on
        left = right = 0
        for i in range(size):
            row = rows[i]
            tie = (keys[i] == median) & (equal > 0)
            before = (keys[i] < median) | tie
            rows[left] = row
            after[right] = row
            left += before
            right += 1 - before
            equal -= tie
        for i in range(right):
            rows[left + i] = after[i]
    return done


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
    points = np.ascontiguousarray(points, dtype=np.float64)
    order = np.arange(len(points))

    def cut(some: slice, until: int) -> np.ndarray:
        rows = order[some]
        keys, work = np.empty((2, len(rows)))
        counts, ends = np.empty(256, np.int64), np.empty(-(-len(rows) // leaf), np.int64)
        found = _cut(points, scale, leaf, until, rows, keys, work, np.empty_like(rows), counts, ends)
        return ends[:found]

    share = len(points) // get_num_threads() + 4 * leaf
    ends = cut(slice(0, len(points)), max(share, SHARED))
    run_tasks(lambda edges: cut(slice(*edges), leaf), list(pairwise([0, *ends])))
    return order


def boxes(points: np.ndarray, leaf: int) -> tuple[np.ndarray, np.ndarray]:
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
    starts = np.arange(0, len(points), leaf)
    columns = np.ascontiguousarray(points.T, dtype=np.float64)
    return np.minimum.reduceat(columns, starts, axis=1), np.maximum.reduceat(columns, starts, axis=1)


@inner(inline="always")
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
    for j in range(nearest.size):
        nearest[j] = farthest[j] = 0.0
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
                nearest[j] = gap if gap > nearest[j] else nearest[j]
                farthest[j] = span if span > farthest[j] else farthest[j]
            else:
                nearest[j] += gap
                farthest[j] += span
    if metric != EUCLIDEAN:
        for j in range(nearest.size):
            nearest[j] *= nearest[j]
            farthest[j] *= farthest[j]


@inner
def box_distance(query_low, query_high, block, low, high, panel, scale, metric):
    """One entry of ``nearest``, for a few queries of a block: give the boxes of such groups, ``boxes(queries, 4)``."""
    total = 0.0
    for c in range(scale.size):
        above, below = low[c, panel] - query_high[c, block], query_low[c, block] - high[c, panel]
        gap = above if above > below else below
        gap = (gap if gap > 0.0 else 0.0) * scale[c]
        if metric == EUCLIDEAN:
            total += gap * gap
        elif metric == CHEBYSHEV:
            total = gap if gap > total else total
        else:
            total += gap
    return total if metric == EUCLIDEAN else total * total


@inner(inline="always")
def with_slack(squared, slack):
    """The squared distance beyond which a box is out of reach; the tiny part is for squares too small for float32."""
    return squared * (1.0 + slack) + 1e-37


@inner(inline="always")
def choose_panels(nearest, farthest, profile, reach, slack, panels, size):
    """Write the panels that a block of queries has to visit to ``panels``, from place ``size`` on.

    Parameters
    ----------
    nearest, farthest : arrays of float64, shape (count,)
        What :func:`box_distances` gives, in units of the scale.
    profile : int
        ``GAUSSIAN``, ``LAPLACE`` or ``COMPACT``.
    reach : float
        In the same units: ``Reach.squared`` of :mod:`locbook.engine.reach`.
    slack : float
        What :func:`slack_of` gives.
    panels : array of int64
        With room for ``count`` more and one. Ascending; but for the two of exponential type the panel sure to hold a
        near sample comes first, so that the running maximum is near its final value at once. They count on one sample
        with a weight in each panel but the last (on two in a hollow kernel, which takes one away): leave samples of
        weight 0 out, and do not prune under a mask.

    Returns
    -------
    size : int
        Where the panels end.
    limit : float
        The squared distance beyond which a panel was left out; a few queries of the block may leave out more of them
        where :func:`box_distance` is greater.
    """
    limit, first = reach, -1
    if profile != COMPACT:
        limit, first = farthest[0], 0
        for j in range(1, farthest.size - 1):  # the last may hold a single sample
            if farthest[j] < limit:
                limit, first = farthest[j], j
        if profile == GAUSSIAN:
            limit += 2.0 * reach
        else:
            root = math.sqrt(limit) + reach
            limit = root * root
        panels[size] = first
        size += 1
    limit = with_slack(limit, slack)
    for j in range(nearest.size):
        panels[size] = j
        size += (nearest[j] <= limit) & (j != first)
    return size, limit


@cache
def _lister(metric):
    """A function of its own for each metric: it compiles in half of the time."""

    @jit(allocates=False)
    def list_panels(
        query_low, query_high, first, low, high, scale, profile, reach, slack, nearest, farthest, lists, ends
    ):  # fmt: skip
        size = 0
        for block in range(ends.size):
            box_distances(query_low, query_high, first + block, low, high, scale, metric, nearest, farthest)
            size, _ = choose_panels(nearest, farthest, profile, reach, slack, lists, size)
            ends[block] = size

    return list_panels


def active_lists(
    query_low: np.ndarray,
    query_high: np.ndarray,
    first: int,
    count: int,
    low: np.ndarray,
    high: np.ndarray,
    scale: np.ndarray,
    metric: int,
    profile: int,
    reach: float,
    slack: float,
) -> tuple[np.ndarray, np.ndarray]:
    """The panels that ``count`` blocks from ``first`` on have to visit.

    Arguments as of :func:`box_distances` and :func:`choose_panels`; distances are in bandwidths if ``scale`` holds one
    over the bandwidth.

    Returns
    -------
    lists, ends : arrays of int64
        The panels end to end, and where each block's end.
    """
    panels = low.shape[1]
    nearest, farthest = np.empty((2, panels))
    lists, ends = np.empty(count * panels + 1, np.int64), np.empty(count, np.int64)
    _lister(metric)(
        query_low, query_high, first, low, high, scale, profile, reach, slack, nearest, farthest, lists, ends
    )
    return lists[: ends[-1]], ends


@inner
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
        panels[top] = panels[child]
        distances[top] = distances[child]
        top = child
    panels[top] = panel
    distances[top] = distance


@inner
def drop_nearest(panels, distances, size):
    """Take the nearest of the first ``size`` panels off the heap of :func:`order_panels`; returns how many are left."""
    panels[0] = panels[size - 1]
    distances[0] = distances[size - 1]
    _sift(panels, distances, size - 1, 0)
    return size - 1


@inner
def order_panels(nearest, panels):
    """Make a heap of all panels, with the nearest on top, of equal ones the lowest; returns how many they are.

    Few of them are visited, so they are not sorted. With ``worst`` the largest of the k-th squared distances of the
    block's queries so far (``inf`` while one has fewer than k)::

        size = order_panels(nearest, panels)
        while size > 0 and nearest[0] <= with_slack(worst, slack):
            ...  # visit panels[0], update worst
            size = drop_nearest(panels, nearest, size)

    A panel at the very distance is visited: it may hold a tie with a lower row number.

    Parameters
    ----------
    nearest : array of float64, shape (count,)
        What :func:`box_distances` gives; put into the order of ``panels``.
    panels : array of int64, at least of that shape
        The answer.
    """
    for j in range(nearest.size):
        panels[j] = j
    for top in range(nearest.size // 2 - 1, -1, -1):
        _sift(panels, nearest, nearest.size, top)
    return nearest.size


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
    """Share of all panels that a block visits, the mean of a few; arguments as of :func:`active_lists`."""
    found = [
        active_lists(query_low, query_high, b, 1, low, high, scale, metric, profile, reach, slack)[1][0]
        for b in probes(query_low.shape[1])
    ]
    return float(np.mean(found)) / low.shape[1]


def _squared(gaps: np.ndarray, scale: np.ndarray, metric: int) -> np.ndarray:
    """The twin of :func:`box_distances` for gaps of shape (d, n)."""
    gaps = gaps * scale[:, None]
    if metric == EUCLIDEAN:
        return np.square(gaps).sum(axis=0)
    return np.square(gaps.sum(axis=0) if metric == MANHATTAN else gaps.max(axis=0))


def seen_share(
    queries: np.ndarray, samples: np.ndarray, scale: np.ndarray, metric: int, profile: int, reach: float
) -> float:
    """Share of the pairs of a few queries and samples that are in reach; of the panels a block visits more.

    ``queries``, shape (m, d), and ``samples``, shape (n, d), in any order; the others as of :func:`active_lists`, but
    what is in reach of the nearest sample is only what is in reach of the query.
    """
    q, x = (a[:: -(-len(a) // most)] for a, most in ((queries, 32), (samples, 128)))
    gaps = np.abs(q[:, None] - x).reshape(-1, q.shape[1])
    limit = {GAUSSIAN: 2.0 * reach, LAPLACE: reach * reach}.get(profile, reach)
    with np.errstate(over="ignore"):
        return float(np.mean(_squared(gaps.T, scale, metric) <= limit))


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
        above, below = low - q, q - high
        sure, limit = -(-k // leaf), math.inf
        if sure < low.shape[1]:
            farthest = _squared(-np.minimum(above, below), scale, metric)[:-1]
            limit = np.partition(farthest, sure - 1)[sure - 1]
        nearest = _squared(np.maximum(np.maximum(above, below), 0.0), scale, metric)
        rows = (np.flatnonzero(nearest <= limit)[:, None] * leaf + np.arange(leaf)).ravel()
        x = samples[rows[rows < n]].T.astype(np.float64, order="C")
        reach = np.partition(_squared(np.abs(x - q), scale, metric), k - 1)[k - 1]
        found.append(
            active_lists(query_low, query_high, b, 1, low, high, scale, metric, COMPACT, reach, slack)[1][0]
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
