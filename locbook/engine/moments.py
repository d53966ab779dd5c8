r"""The moments of local lines in few columns: :math:`\sum w\,z z^\top` and :math:`\sum w\,z y^\top`, z = (1, x - q).

The general form (:mod:`locbook.engine.sweep`) writes the monomials of every pair down and multiplies rows. With up to
:data:`MOST` sums they fit into registers, and a pair costs d subtractions, d products and a multiply-add for each sum.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import types
from numba.extending import intrinsic

from . import vectors
from .panels import PANEL
from .parts import REDUCE_PART, address, part
from .vectors import VECTOR_BYTES, Vectors

#: Most sums that are kept in registers, of 32 or of 16.
MOST = 21 if VECTOR_BYTES == 64 else 9


def linear_sums_plain(
    weights: np.ndarray, query: np.ndarray, samples: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """The twin, for one query: the upper triangle of sum w z z', row by row, then sum w z y', row by row.

    The kernel adds both to ``out``, in this order, its lanes summed.
    """
    z = np.column_stack([np.ones(len(samples)), samples - query])
    second, first = (z * weights[:, None]).T @ z, (z * weights[:, None]).T @ values
    return np.concatenate([second[np.triu_indices(z.shape[1])], first.ravel()])


@intrinsic(prefer_literal=True)
def _linear_sums(
    typing_context, n_columns, n_values, weights, row, queries, query, panels, first, count, values, out
):
    signature = types.void(
        n_columns, n_values, weights, row, queries, query, panels, first, count, values, out
    )
    d, p = n_columns.literal_value, n_values.literal_value

    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, panels.dtype)
        _, _, w, line, q, query, x, first_panel, n_panels, y, s = v.arguments(sig, numbers)
        own = [v.broadcast(q.at(query, v.integer(c))) for c in range(d)]
        size = (d + 1) * (d + 2) // 2 + (d + 1) * p
        sums = v.variables(size)
        nothing = v.constant(0.0)
        with v.loop(n_panels) as t:
            panel, start = v.plus(first_panel, t), v.times(t, PANEL)
            for j in range(0, PANEL, v.lanes):
                weight = v.load(w.at(line, v.plus(start, j)))
                # a sample that does not take part may be so far that its square is infinite
                near = builder.fcmp_ordered(">", weight, nothing)
                gaps = [v.subtract(v.load(x.at(panel, v.integer(c), j)), own[c]) for c in range(d)]
                z = [None, *(builder.select(near, gap, nothing) for gap in gaps)]
                known = [v.load(y.at(panel, v.integer(c), j)) for c in range(p)]
                k = 0
                products = [weight, *(v.multiply(weight, one) for one in z[1:])]
                for f in range(d + 1):
                    for g in range(f, d + 1):
                        old = v.get(sums[k])
                        # z_0 is 1
                        new = v.multiply_add(products[f], z[g], old) if g else v.add(old, weight)
                        v.set(sums[k], new)
                        k += 1
                for f in range(d + 1):
                    for c in range(p):
                        v.set(sums[k], v.multiply_add(products[f], known[c], v.get(sums[k])))
                        k += 1
        for k in range(size):
            place = s.at(query, v.integer(k))
            builder.store(builder.fadd(builder.load(place), v.total(v.get(sums[k]))), place)
        return context.get_dummy_value()

    return signature, generate


@lru_cache
def linear_address(n_columns: int, n_values: int) -> int | None:
    """Address of the part that accumulates them, as in :func:`locbook.engine.sweep.reduce_address`.

    None if there are too many.
    """
    sums = (n_columns + 1) * (n_columns + 2) // 2 + (n_columns + 1) * n_values
    if not vectors.ENABLED or sums > MOST:
        return None

    @part
    def linear(
        weights, rows, i, size, queries, query_ids, panels, first, count, ids, values, labels, parents, dimensions,
        lanes, z, weighted, sums, order,
    ):  # fmt: skip
        for r in range(rows):
            _linear_sums(n_columns, n_values, weights, r, queries, i + r, panels, first, count, values, sums)
        return 0

    return address(linear, *REDUCE_PART)
