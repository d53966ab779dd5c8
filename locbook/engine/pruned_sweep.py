"""The loop over tiles once more, with the tiles that cannot matter left out (:mod:`locbook.engine.pruning`).

This is the loop of :mod:`locbook.engine.sweep`; that of :mod:`locbook.engine.fused_sweep` gets lists of panels instead.

Queries come in k-d order. A block of 16 lists its panels once; its fours skip what only the others need. A tile is one
panel here, and what is added for it does not depend on which others are visited.
"""

from __future__ import annotations

import math

from .panels import PANEL
from .parts import call, inner, jit
from .program import Tile
from .pruning import box_distance, box_distances, choose_panels, drop_nearest, order_panels, with_slack
from .reach import BLOCK
from .vectors import ROWS


@inner
def _worst(sums, start, stop):
    """The largest of the k-th squared distances so far of some queries."""
    worst = 0.0
    for i in range(start, stop):
        worst = -sums[i, 0] if -sums[i, 0] > worst else worst
    return worst


@jit(allocates=False)
def pruned_sweep(
    top, parts, program, queries, query_ids, query_data, panels, n, ids, sample_data, masks, multiplicity, values,
    labels, parents, dimensions, first_block, blocks, fours, boxes, scale, metric, profile, reach, slack,
    distances, some, room, shift, total, sums, order,
):  # fmt: skip
    """:func:`locbook.engine.sweep.sweep` for samples and queries in k-d order.

    Parameters
    ----------
    top : bool
        Whether the reduction is TOP.
    first_block : int
        Number of the block that the first query begins.
    blocks, fours, boxes : (low, high)
        Boxes of all blocks of queries, of their fours, and of the panels, shapes (d, ...).
    scale, metric, profile, reach, slack
        As in :mod:`locbook.engine.pruning`.
    distances, some : arrays of float64 and int64, shapes (2, panels) and (panels + 1,)
        Room.
    """
    nearest, farthest = distances[0], distances[1]
    bad = 0
    for start in range(0, query_ids.size, BLOCK):
        stop = start + BLOCK if start + BLOCK < query_ids.size else query_ids.size
        block = first_block + start // BLOCK
        box_distances(blocks[0], blocks[1], block, boxes[0], boxes[1], scale, metric, nearest, farthest)
        limit, at = math.inf, 0
        if top:
            left = order_panels(nearest, some)
        else:
            left, limit = choose_panels(nearest, farthest, profile, reach, slack, some, 0)
        while left > 0:
            panel = some[at]
            if top and nearest[0] > with_slack(_worst(sums, start, stop), slack):
                break
            size = n - panel * PANEL
            tile = Tile(panels, panel, 1, PANEL if size > PANEL else size, ids, sample_data, masks)
            for i in range(start, stop, ROWS):
                if top:
                    limit = with_slack(_worst(sums, i, i + ROWS if i + ROWS < stop else stop), slack)
                four = first_block * (BLOCK // ROWS) + i // ROWS
                if box_distance(fours[0], fours[1], four, boxes[0], boxes[1], panel, scale, metric) > limit:
                    continue
                bad += call(
                    parts[0], parts, program, queries, query_ids, query_data, tile, multiplicity, values, labels,
                    parents, dimensions, i, room, shift, total, sums, order,
                )  # fmt: skip
            if top:
                left = drop_nearest(some, nearest, left)
            else:
                at, left = at + 1, left - 1
    return bad
