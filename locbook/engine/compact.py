"""Sums and means of one leaf with a bounded support: sieve, gather, weigh.

With the samples in k-d order (:mod:`locbook.engine.pruning`) a block of queries visits some panels; of their samples
most are still out of reach. The sieve (:mod:`locbook.engine.sieve`) finds those within it, their squared distances are
gathered in one row, and the profile turns that row into weights. What is added for a query does not depend on which
other queries share its block, to the bit.
"""

from __future__ import annotations

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.metrics import EUCLIDEAN
from . import named, vectors
from .panels import PANEL, pack
from .parts import call, inner, jit
from .pool import get_num_threads, run_tasks
from .problem import Problem
from .pruning import active_panels, box_distance
from .reach import BLOCK, Order
from .scores import DISTANCE
from .sieve import sieve_address
from .vectors import ROWS, lowest_bit

#: Share of the panels beyond which so many samples are within reach that looking at them one by one does not pay.
FEW = 0.1
#: Most queries of a task; samples that are gathered before they are weighed.
TASK, GATHERED = 32 * BLOCK, 512


@inner
def _weigh(profile, shape, squared, row, found, n, multiplicity, values, i, total, sums):
    call(profile, row, n, shape, squared)
    for j in range(n):
        k = found[j]
        w = row[j] * multiplicity[k] if multiplicity.size else row[j]
        total[i] += w
        for c in range(values.shape[1]):
            sums[i, c] += w * values[k, c]


@jit
def compact_sweep(
    sieve, profile, shape, queries, squared, panels, multiplicity, values, first_block, blocks, fours, boxes, scale,
    metric, reach, slack, total, sums,
):  # fmt: skip
    """Add all samples within reach to the sums of some queries, both in k-d order.

    Parameters
    ----------
    sieve, profile : int
        Addresses of parts.
    shape : float
        Of the profile.
    queries : array, shape (b to the next multiple of ROWS, d)
    squared : array, shape (b,)
        Squared bandwidths.
    panels : array, shape (panels, d, PANEL)
    multiplicity, values : arrays, shapes (n,) or (0,), and (n, p)
    first_block, blocks, fours, boxes, scale, metric, reach, slack
        As in :func:`locbook.engine.pruned_sweep.pruned_sweep`.
    total, sums : arrays, shapes (b,) and (b, p)
    """
    out, limits, passed = np.empty((ROWS, PANEL)), np.empty(ROWS), np.empty((ROWS, 1), np.int64)
    rows, found = np.empty((BLOCK, GATHERED)), np.empty((BLOCK, GATHERED), np.int64)
    counts, bias = np.zeros(BLOCK, np.int64), np.empty((0, 0))
    n, b = values.shape[0], total.size
    for start in range(0, b, BLOCK):
        stop = min(start + BLOCK, b)
        counts[:] = 0
        some, limit = active_panels(
            blocks[0],
            blocks[1],
            first_block + start // BLOCK,
            boxes[0],
            boxes[1],
            scale,
            metric,
            -1,
            reach,
            slack,
        )
        for panel in some:
            size = min(PANEL, n - panel * PANEL)
            everything = -1 if size == PANEL else (1 << size) - 1
            for i in range(start, stop, ROWS):
                four = first_block * (BLOCK // ROWS) + i // ROWS
                if box_distance(fours[0], fours[1], four, boxes[0], boxes[1], panel, scale, metric) > limit:
                    continue
                last = min(i + ROWS, stop) - 1
                for r in range(ROWS):
                    limits[r] = squared[min(i + r, last)] * (1.0 + slack)
                call(sieve, queries, i, panels, panel, 1, bias, limits, out, passed)
                for r in range(last - i + 1):
                    k = i - start + r
                    bits = passed[r, 0] & everything
                    while bits != 0:
                        j = lowest_bit(bits)
                        bits &= bits - 1
                        rows[k, counts[k]], found[k, counts[k]] = out[r, j], panel * PANEL + j
                        counts[k] += 1
                    if counts[k] > GATHERED - PANEL:
                        _weigh(
                            profile, shape, squared[i + r], rows[k], found[k], counts[k], multiplicity, values, i + r,
                            total, sums,
                        )  # fmt: skip
                        counts[k] = 0
        for i in range(start, stop):
            k = i - start
            _weigh(
                profile, shape, squared[i], rows[k], found[k], counts[k], multiplicity, values, i, total, sums
            )
    return 0


def compact_leaf(problem: Problem) -> base.RadialKernel | None:
    """The leaf, if the kernel is one named profile with a bounded support over a Euclidean distance; else None."""
    kernel = problem.kernel
    if (
        not isinstance(kernel, base.RadialKernel)
        or kernel.named is None
        or not np.isfinite(kernel.named.support)
    ):
        return None
    ruler = kernel.ruler
    simple = np.ndim(ruler) == 0 if not isinstance(ruler, VaryingBandwidth) else ruler.side == "query"
    fits = simple and kernel.metric.code == EUCLIDEAN and problem.mask is None and vectors.ENABLED
    return kernel if fits else None


def sum_compact(
    problem: Problem, kernel: base.RadialKernel, values: np.ndarray, pruned: Order
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the weights (m,), and of weight times value (m, p)."""
    m = len(problem.queries)
    total, sums = np.zeros(m), np.zeros((m, values.shape[1]))
    ruler = kernel.ruler
    widths = (
        ruler
        if np.ndim(ruler) == 0 and not isinstance(ruler, VaryingBandwidth)
        else problem.of_queries(ruler.values)
    )
    squared = np.broadcast_to(np.square(np.asarray(widths, dtype=np.float64)), (m,))[pruned.queries]
    panels = pack(pruned.points, np.float64)
    known = np.ascontiguousarray(values[pruned.samples], dtype=np.float64)
    weights = np.empty(0) if problem.sample_weight is None else problem.sample_weight[pruned.samples]
    parts = sieve_address(DISTANCE), named.profile_address(kernel.named.code), float(kernel.parameter)
    step = max(BLOCK, min(TASK, -(-m // (4 * get_num_threads() * BLOCK)) * BLOCK))

    def walk(start: int) -> None:
        some = slice(start, start + step)
        own = pruned.queries[some]
        state = total[own], sums[own]
        first, blocks, fours, boxes, scale, metric, _, reach, _, slack = pruned.arguments(start)
        compact_sweep(
            *(*parts, vectors.whole_rows(pruned.places[some]), squared[some], panels, weights, known, first),
            *(blocks, fours, boxes, scale, metric, reach, slack, *state),
        )
        total[own], sums[own] = state

    run_tasks(walk, range(0, m, step))
    return total, sums
