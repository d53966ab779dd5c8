r"""The value kernels: add weights times values, for a tile of samples.

:math:`O_{ic} \mathrel{+}= \sum_j w_{ij} v_{jc}` is a product of matrices. Few columns of values are stored in panels,
and each sum is kept as W partial sums, one a lane (:func:`lane_sums`); many columns are stored row by row, and the
lanes are columns (:func:`row_sums`). Either way the sums of four or six queries by up to four columns, or vectors of
columns, stay in registers while the samples pass by.

The gradient asks for the same with the sums the other way round, :math:`O_{jc} \mathrel{+}= \sum_i w_{ij} c_{ic}`: the
lanes are samples, and the queries pass by (:func:`sample_sums`).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types
from numba.extending import intrinsic

from .panels import PANEL
from .parts import address, array_types, part
from .scores import vector_groups
from .vectors import COLUMN_VECTORS, ROWS, VALUE_ROWS, Vectors


def sums_plain(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The twin of both, the lanes added up: weights (m, n) and values (n, p) to (m, p)."""
    return weights @ values


@intrinsic(prefer_literal=True)
def lane_sums(typing_context, n_columns, weights, row, values, first, count, column, lanes):
    """Add to ``lanes[row + i, column + c]``, shape (W,), the products of ``count`` panels from ``first``.

    For i below ROWS and c below ``n_columns``, a constant. ``weights`` has shape (rows, >= count * PANEL), and its
    first column belongs to the first sample of panel ``first``; ``values`` (panels, p, PANEL). Added up, the W lanes
    are ``weights @ values``.
    """
    arguments = (weights, row, values, first, count, column, lanes)
    signature = types.void(n_columns, *arguments)
    columns = range(n_columns.literal_value)

    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, values.dtype)
        each = range(ROWS)
        _, w, first_row, y, first_panel, n_panels, first_column, out = v.arguments(sig, numbers)
        rows = [v.plus(first_row, i) for i in each]
        places = [[out.at(r, v.plus(first_column, c), 0) for c in columns] for r in rows]
        sums = v.variables(ROWS, len(columns))
        for i in each:
            for c in columns:
                v.set(sums[i][c], v.load(places[i][c]))
        with v.loop(n_panels) as p:
            panel, start = v.plus(first_panel, p), v.times(p, PANEL)
            for j in range(0, PANEL, v.lanes):
                known = [v.load(y.at(panel, v.plus(first_column, c), j)) for c in columns]
                for i in each:
                    weight = v.load(w.at(rows[i], v.plus(start, j)))
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
        _, w, first_row, y, first_panel, n_panels, first_column, out = v.arguments(sig, numbers)
        rows = [v.plus(first_row, i) for i in each]
        places = [[out.at(r, v.integer(0), v.plus(first_column, c * v.lanes)) for c in vectors] for r in rows]
        own = v.variables(VALUE_ROWS, len(vectors))
        for i in each:
            for c in vectors:
                v.set(own[i][c], v.load(places[i][c]))
        with v.loop(
            v.times(n_panels, PANEL)
        ) as j:  # panels follow each other, so j may run on beyond the first
            known = [v.load(y.at(first_panel, j, v.plus(first_column, c * v.lanes))) for c in vectors]
            for i in each:
                weight = v.broadcast(w.at(rows[i], j))
                for c in vectors:
                    v.set(own[i][c], v.multiply_add(weight, known[c], v.get(own[i][c])))
        for i in each:
            for c in vectors:
                v.store(v.get(own[i][c]), places[i][c])
        return context.get_dummy_value()

    return signature, generate


@intrinsic(prefer_literal=True)
def sample_sums(typing_context, n_columns, weights, place, known, n_rows, column, panel, sums):
    """Add to ``sums[panel, column + c]``, shape (PANEL,), the products of ``n_rows`` queries.

    ``weights`` has shape (>= n_rows, samples), those of the panel from ``place`` on, and ``known`` (>= n_rows, p);
    ``n_columns`` is a constant. In all they add ``known.T @ weights``.
    """
    arguments = (weights, place, known, n_rows, column, panel, sums)
    signature = types.void(n_columns, *arguments)
    columns = range(n_columns.literal_value)

    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, weights.dtype)
        _, w, start, q, rows, first_column, p, out = v.arguments(sig, numbers)
        for starts in vector_groups(v):
            own = v.variables(len(columns), len(starts))
            with v.loop(rows) as i:
                lines = [v.load(w.at(i, v.plus(start, j))) for j in starts]
                for c in columns:
                    one = v.broadcast(q.at(i, v.plus(first_column, c)))
                    for k, line in enumerate(lines):
                        v.set(own[c][k], v.multiply_add(line, one, v.get(own[c][k])))
            for c in columns:
                for k, j in enumerate(starts):
                    place = out.at(p, v.plus(first_column, c), j)
                    v.store(v.add(v.load(place), v.get(own[c][k])), place)
        return context.get_dummy_value()

    return signature, generate


@lru_cache
def sample_sums_address(dtype: str) -> int:
    """Address of the part ``add(weights, rows, known, first, count, sums)``: all columns of ``known``.

    ``weights`` are those of ``count`` panels from ``first`` on; ``sums`` has shape (panels, p, PANEL).
    """

    @part
    def add(weights, rows, known, first, count, sums):
        columns = known.shape[1]
        for t in range(count):
            c, place, panel = 0, t * PANEL, first + t
            while c < columns:
                if c + ROWS <= columns:
                    sample_sums(ROWS, weights, place, known, rows, c, panel, sums)
                    c += ROWS
                else:
                    sample_sums(1, weights, place, known, rows, c, panel, sums)
                    c += 1
        return 0

    _, two, three = array_types(dtype)
    return address(add, two, types.intp, two, types.intp, types.intp, three)


@lru_cache
def values_address(dtype: str, by_row: bool) -> int:
    """Address of the part ``add(weights, rows, values, first, count, sums)``: all columns, for ``rows`` queries.

    By lanes ``sums`` has shape (>= rows, p, W); by row (>= rows, p / W, W).
    """
    way = int(by_row)

    @part
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

    _, two, three = array_types(dtype)
    return address(add, two, types.intp, three, types.intp, types.intp, three)
