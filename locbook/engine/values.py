r"""The value kernels: add weights times values, for a tile of samples.

:math:`O_{ic} \mathrel{+}= \sum_j w_{ij} v_{jc}` is a product of matrices. Few columns of values are stored in panels,
and each sum is kept as W partial sums, one a lane (:func:`lane_sums`); many columns are stored row by row, and the
lanes are columns (:func:`row_sums`). Either way four or six queries and up to four vectors of values stay in
registers while the samples pass by.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types
from numba.extending import intrinsic

from .panels import PANEL
from .parts import address, inner
from .vectors import COLUMN_VECTORS, ROWS, VALUE_ROWS, Vectors


def sums_plain(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The twin of both: weights (m, n) and values (n, p) to (m, p)."""
    return weights @ values


@intrinsic(prefer_literal=True)
def lane_sums(typing_context, n_columns, weights, row, values, first, count, column, lanes):
    """Add to ``lanes[row + i, column + c]``, shape (W,), the products of ``count`` panels from ``first``.

    ``weights`` has shape (rows, >= count * PANEL); ``values`` (panels, p, PANEL); ``n_columns`` is a constant.
    """
    arguments = (weights, row, values, first, count, column, lanes)
    signature = types.void(n_columns, *arguments)
    columns = range(n_columns.literal_value)

    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, values.dtype)
        each = range(ROWS)
        w, y, out = (v.array(sig.args[k], numbers[k]) for k in (1, 3, 7))
        rows = [v.plus(numbers[2], i) for i in each]
        places = [[out.at(r, v.plus(numbers[6], c), 0) for c in columns] for r in rows]
        sums = v.variables(ROWS, len(columns))
        for i in each:
            for c in columns:
                v.set(sums[i][c], v.load(places[i][c]))
        with v.loop(numbers[5]) as p:
            panel, start = v.plus(numbers[4], p), v.times(p, PANEL)
            for part in range(0, PANEL, v.lanes):
                known = [v.load(y.at(panel, v.plus(numbers[6], c), part)) for c in columns]
                for i in each:
                    weight = v.load(w.at(rows[i], v.plus(start, part)))
                    for c in columns:
                        v.set(sums[i][c], v.multiply_add(weight, known[c], v.get(sums[i][c])))
        for i in each:
            for c in columns:
                v.store(v.get(sums[i][c]), places[i][c])
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def row_sums(typing_context, n_vectors, weights, row, values, first, count, column, sums):
    """Add to ``sums[row + i, column // W ...]``, shape (n_vectors, W), the products of ``count`` panels from ``first``.

    ``weights`` has shape (rows, >= count * PANEL); ``values`` (panels, PANEL, p), p a multiple of W; ``n_vectors`` is a
    constant.
    """
    arguments = (weights, row, values, first, count, column, sums)
    signature = types.void(n_vectors, *arguments)
    vectors = range(n_vectors.literal_value)

    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, values.dtype)
        each = range(VALUE_ROWS)
        w, y, out = (v.array(sig.args[k], numbers[k]) for k in (1, 3, 7))
        rows = [v.plus(numbers[2], i) for i in each]
        places = [[out.at(r, v.integer(0), v.plus(numbers[6], c * v.lanes)) for c in vectors] for r in rows]
        inner = v.variables(VALUE_ROWS, len(vectors))
        for i in each:
            for c in vectors:
                v.set(inner[i][c], v.load(places[i][c]))
        with v.loop(
            v.times(numbers[5], PANEL)
        ) as j:  # panels follow each other, so j may run on beyond the first
            known = [v.load(y.at(numbers[4], j, v.plus(numbers[6], c * v.lanes))) for c in vectors]
            for i in each:
                weight = v.broadcast(w.at(rows[i], j))
                for c in vectors:
                    v.set(inner[i][c], v.multiply_add(weight, known[c], v.get(inner[i][c])))
        for i in each:
            for c in vectors:
                v.store(v.get(inner[i][c]), places[i][c])
        return context.get_dummy_value()

    return signature, generate


@lru_cache
def values_address(dtype: str, by_row: bool) -> int:
    """Address of the part ``add(weights, rows, values, first, count, sums)``: all columns, for ``rows`` queries.

    By lanes ``sums`` has shape (>= rows, p, W); by row (>= rows, p / W, W).
    """
    way = int(by_row)

    @inner
    def add(weights, rows, values, first, count, sums):
        c, columns = 0, values.shape[1 + way]
        width = sums.shape[2] if way else 1
        while c < columns:
            many = c + COLUMN_VECTORS * width <= columns
            if way == 1:
                for i in range(0, rows, VALUE_ROWS):
                    if many:
                        row_sums(COLUMN_VECTORS, weights, i, values, first, count, c, sums)
                    else:
                        row_sums(1, weights, i, values, first, count, c, sums)
            else:
                for i in range(0, rows, ROWS):
                    if many:
                        lane_sums(COLUMN_VECTORS, weights, i, values, first, count, c, sums)
                    else:
                        lane_sums(1, weights, i, values, first, count, c, sums)
            c += COLUMN_VECTORS * width if many else width
        return 0

    two, three = (types.Array(getattr(types, dtype), k, "C") for k in (2, 3))
    return address(add, two, types.intp, three, types.intp, types.intp, three)
