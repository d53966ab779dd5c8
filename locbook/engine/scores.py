"""Scores: what a kernel of one leaf asks of a query and a sample, for four queries and a panel of samples.

:func:`score_columns` is the heart of the vector path. It walks the columns of a panel and keeps the scores of four
queries and ``COLUMN_VECTORS`` vectors of samples in registers. Distances are sums of squared differences, never an
expansion: 1e8 and 1e8 + 1 are 1 apart. :func:`scores` writes the scores down, for kernels that are no single
exponential leaf; :mod:`locbook.engine.fused` turns them into weights at once.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types
from numba.extending import intrinsic

from .panels import PANEL, unpack
from .parts import address, array_types, part
from .vectors import COLUMN_VECTORS, ROWS, Vectors

#: What is computed of a query and a sample: the squared distance, the same with a factor for each column, the product.
#: Or what a profile made of it: a log-weight, or a weight.
DISTANCE, SCALED, PRODUCT, LOG_WEIGHT, WEIGHT = range(5)


def scores_plain(queries: np.ndarray, panels: np.ndarray, factors: np.ndarray, kind: int) -> np.ndarray:
    """The twin: scores of all queries (m, d) and the samples of all panels, shape (m, panels * PANEL)."""
    samples = unpack(panels, panels.shape[0] * PANEL)
    if kind == PRODUCT:
        return queries @ samples.T
    differences = samples[None] - queries[:, None]
    return ((differences * factors if kind == SCALED else differences) ** 2).sum(-1)


def score_columns(v: Vectors, kind: int, queries, rows, panels, panel, starts, factors, columns=None):
    """Write the loop over the columns; returns the scores, a list for each query of a vector for each start.

    Parameters
    ----------
    v : Vectors
    kind : int
    queries, panels, factors : Array
        Shapes (b, d), (panels, d, PANEL) and (d,).
    rows : list
        Numbers of the queries.
    panel : number of the panel
    starts : list of int
        First samples of the vectors.
    columns : Array, optional
        Numbers of the columns; all of them when None. ``factors`` has one for each.
    """
    scores = v.variables(len(rows), len(starts))
    with v.loop(panels.shape[1] if columns is None else columns.shape[0]) as k:
        column = k if columns is None else v.builder.load(columns.at(k))
        samples = [v.load(panels.at(panel, column, j)) for j in starts]
        factor = v.broadcast(factors.at(k)) if kind == SCALED else None
        for row, line in zip(rows, scores, strict=True):
            at = v.broadcast(queries.at(row, column))
            for sample, one in zip(samples, line, strict=True):
                if kind == PRODUCT:
                    v.set(one, v.multiply_add(sample, at, v.get(one)))
                else:
                    gap = v.subtract(sample, at)
                    gap = v.multiply(gap, factor) if kind == SCALED else gap
                    v.set(one, v.multiply_add(gap, gap, v.get(one)))
    return [[v.get(one) for one in line] for line in scores]


def vector_groups(v: Vectors) -> list[list[int]]:
    """First samples of the vectors of a panel, those that are kept at once together.

    For W = 8 these are [0, 8, 16, 24] and [32, 40, 48, 56].
    """
    starts = range(0, PANEL, v.lanes)
    return [list(starts[k : k + COLUMN_VECTORS]) for k in range(0, len(starts), COLUMN_VECTORS)]


@intrinsic(prefer_literal=True)
def _scores(typing_context, kind, queries, row, panels, first, count, columns, factors, out):
    signature = types.void(kind, queries, row, panels, first, count, columns, factors, out)

    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, panels.dtype)
        _, q, first_row, x, first_panel, n_panels, c, f, s = v.arguments(sig, numbers)
        rows = [v.plus(first_row, i) for i in range(ROWS)]
        with v.loop(n_panels) as p:
            panel = v.plus(first_panel, p)
            for starts in vector_groups(v):
                found = score_columns(v, kind.literal_value, q, rows, x, panel, starts, f, c)
                for i, line in enumerate(found):
                    for j, one in zip(starts, line, strict=True):
                        v.store(one, s.at(v.integer(i), v.plus(v.times(p, PANEL), j)))
        return context.get_dummy_value()

    return signature, generate


def _make(kind: int):
    @part
    def scores(queries, row, panels, first, count, columns, factors, out):
        _scores(kind, queries, row, panels, first, count, columns, factors, out)
        return 0

    return scores


@lru_cache
def scores_address(dtype: str, kind: int) -> int:
    """Address of the part ``scores(queries, row, panels, first, count, columns, factors, out)``.

    ``out[i, : count * PANEL]`` gets the scores of query ``row + i``, i below ROWS, from the columns named.
    """
    one, two, three = array_types(dtype)
    integers = types.Array(types.int64, 1, "C")
    return address(_make(kind), two, types.intp, three, types.intp, types.intp, integers, one, two)
