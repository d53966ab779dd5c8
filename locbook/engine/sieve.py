"""The sieve: which samples of a panel pass a limit, for four queries at a time, as 64 bits a query.

Where few samples matter (the nearest, those within a small support), what costs is to find out that the others do not.
The kernel compares scores in registers and returns bits; what passes is then looked at one by one.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types
from numba.extending import intrinsic

from . import scores
from .panels import PANEL
from .parts import address, part
from .scores import DISTANCE, score_columns, vector_groups
from .vectors import ROWS, Vectors


def sieve_plain(
    queries: np.ndarray, panels: np.ndarray, bias: np.ndarray, limits: np.ndarray, kind: int
) -> np.ndarray:
    """The twin: which samples pass, shape (m, panels * PANEL); ``limits`` has shape (m, panels)."""
    score = scores.scores_plain(queries, panels, np.ones(queries.shape[1]), kind)
    limit = np.repeat(limits, PANEL, axis=1)
    return score <= limit if kind == DISTANCE else score + bias.ravel() >= limit


@intrinsic(prefer_literal=True)
def _sieve(typing_context, kind, queries, row, panels, first, count, bias, limits, out, passed):
    signature = types.void(kind, queries, row, panels, first, count, bias, limits, out, passed)
    distances = kind.literal_value == DISTANCE

    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, panels.dtype)
        _, q, first_row, x, first_panel, n_panels, b, c, s, bits = v.arguments(sig, numbers)
        rows = [v.plus(first_row, i) for i in range(ROWS)]
        limit = [v.broadcast(c.at(v.integer(i))) for i in range(ROWS)]
        with v.loop(n_panels) as p:
            panel = v.plus(first_panel, p)
            masks = [v.integer(0)] * ROWS
            for starts in vector_groups(v):
                found = score_columns(v, kind.literal_value, q, rows, x, panel, starts, None)
                for k, j in enumerate(starts):
                    offset = None if distances else v.load(b.at(panel, j))
                    for i in range(ROWS):
                        score = found[i][k]
                        if distances:
                            v.store(score, s.at(v.integer(i), v.plus(v.times(p, PANEL), j)))
                            passes = builder.fcmp_ordered("<=", score, limit[i])
                        else:
                            passes = builder.fcmp_ordered(">=", v.add(score, offset), limit[i])
                        masks[i] = builder.or_(masks[i], builder.shl(v.bits(passes), v.integer(j)))
            for i in range(ROWS):
                builder.store(masks[i], bits.at(v.integer(i), p))
        return context.get_dummy_value()

    return signature, generate


@lru_cache
def sieve_address(kind: int) -> int:
    """Address of the part ``sieve(queries, row, panels, first, count, bias, limits, out, passed)``.

    For the queries ``row .. row + ROWS - 1`` and ``count`` panels ``passed[i, p]`` gets a bit for each sample whose
    squared distance is at most ``limits[i]`` (in float64; ``out[i]`` gets the distances), or whose inner product and
    ``bias`` sum up to at least ``limits[i]`` (in float32).
    """

    @part
    def sieve(queries, row, panels, first, count, bias, limits, out, passed):
        _sieve(kind, queries, row, panels, first, count, bias, limits, out, passed)
        return 0

    number = types.float64 if kind == DISTANCE else types.float32
    one, two, three = (types.Array(number, k, "C") for k in (1, 2, 3))
    return address(
        sieve,
        *(two, types.intp, three, types.intp, types.intp, two, one, two, types.Array(types.int64, 2, "C")),
    )
