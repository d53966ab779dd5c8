r"""The fused tile kernel: score -> weight -> sum for four queries at a time, nothing written in between.

For kernels of exponential type with one leaf the weight of a pair is

.. math:: w_{ij} = 2^{\,a_i s_{ij} + b_j - c_i},

with the score s (a squared distance, its root, or an inner product), the slope a of the query (for a Gaussian minus one
over twice the squared bandwidth, times :math:`\log_2 e`), the bias b of the sample (:math:`\log_2` of its multiplicity,
:math:`-\infty` where it does not take part) and the shift c of the query, an exponent that is near the largest so far
(:mod:`locbook.engine.fused_sweep` says how near). So the sums of four queries stay in registers while panels of samples
stream past: d subtractions and multiply-adds, some twenty instructions for the power, one addition for the sum of the
weights, one multiply-add for each column of values.

Under any other profile :mod:`locbook.engine.terms` writes log-weights or weights into ``weights`` first, and the kernel
reads them there. A log-weight stands for the score, with a = :math:`\log_2 e`. A weight is only multiplied by b, here
the multiplicity itself; there is no exponent and no shift.

:func:`weigh_plain` says in NumPy what the exponents and the weights are.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numba import types
from numba.extending import intrinsic

from .panels import PANEL
from .parts import address, array_types, part
from .scores import LOG_WEIGHT, WEIGHT, score_columns, scores_plain, vector_groups
from .vectors import ROWS, Vectors

LOG2_E = 1.0 / math.log(2.0)


def weigh_plain(
    queries: np.ndarray,
    panels: np.ndarray,
    bias: np.ndarray,
    slope: np.ndarray,
    shift: np.ndarray,
    factors: np.ndarray,
    kind: int,
    root: bool,
    takes_part: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Largest exponent of each query beyond its shift, shape (m,), and the weights, shape (m, panels * PANEL).

    The vector kernel sums the weights too, each sum in W lanes: with the answer ``top, w`` of this function and its
    ``lanes`` of the same queries, ``lanes[:, 0].max(-1)`` is ``top``, ``lanes[:, 1].sum(-1)`` is ``w.sum(1)``, and
    ``lanes[:, 2 + e].sum(-1)`` is ``w`` times column e of the values.

    Parameters
    ----------
    queries : array, shape (m, d)
    panels : array, shape (panels, d, PANEL)
        Samples, transposed panel by panel (:mod:`locbook.engine.panels`).
    bias : array, shape (panels, PANEL)
    slope, shift : arrays, shape (m,)
    factors : array, shape (d,)
    kind : int
        Of the score (:mod:`locbook.engine.scores`).
    root : bool
        Whether the exponent is linear in the root of the score.
    takes_part : array of bool, shape (m, panels * PANEL), optional
        Which samples do; all when None.
    """
    # LOG_WEIGHT, WEIGHT: ``queries`` are the rows of ``weights``, each with its log-weights or weights
    given = kind in (LOG_WEIGHT, WEIGHT)
    score = queries if given else scores_plain(queries, panels, factors, kind)
    if kind == WEIGHT:
        return np.zeros(len(queries)), score * bias.ravel()
    slope = np.full(len(queries), LOG2_E) if given else slope
    exponents = slope[:, None] * (np.sqrt(score) if root else score) + (bias.ravel() - shift[:, None])
    if takes_part is not None:
        exponents = np.where(takes_part, exponents, -np.inf)
    return exponents.max(1), np.exp2(exponents)


@intrinsic(prefer_literal=True)
def _weigh(
    typing_context,
    kind, root, n_values, store, limited,
    queries, row, line, panels, first, count, bias, slope, shift, factors, values, lanes, weights, takes_part,
):  # fmt: skip
    constants = kind, root, n_values, store, limited
    arguments = (
        queries,
        row,
        line,
        panels,
        first,
        count,
        bias,
        slope,
        shift,
        factors,
        values,
        lanes,
        weights,
        takes_part,
    )
    signature = types.void(*constants, *arguments)

    def generate(context, builder, sig, numbers):
        score_kind, rooted, n_columns, stored, some = (constant.literal_value for constant in constants)
        # named as in the formula; the constants come first
        v = Vectors(context, builder, panels.dtype)
        q, first_row, first_line, x, first_panel, n_panels, b, a, c, f, y, out, w, taking = v.arguments(
            sig, numbers
        )[5:]
        rows, lines = ([v.plus(start, i) for i in range(ROWS)] for start in (first_row, first_line))
        given = score_kind in (LOG_WEIGHT, WEIGHT)
        slopes = [v.constant(LOG2_E) if given else v.broadcast(a.at(r)) for r in rows]
        shifts = [v.broadcast(c.at(line)) for line in lines]
        top, total = v.variables(ROWS, start=0.0 if score_kind == WEIGHT else -np.inf), v.variables(ROWS)
        sums = v.variables(ROWS, n_columns)
        with v.loop(n_panels) as p:
            panel, start = v.plus(first_panel, p), v.times(p, PANEL)
            for starts in vector_groups(v):  # i is a query, j the first of W samples, as in the formula
                if given:
                    found = [[v.load(w.at(line, v.plus(start, j))) for j in starts] for line in lines]
                else:
                    found = score_columns(v, score_kind, q, rows, x, panel, starts, f)
                for k, j in enumerate(starts):
                    biases = v.load(b.at(panel, j))
                    known = [v.load(y.at(panel, e, j)) for e in range(n_columns)]
                    for i in range(ROWS):
                        score = v.root(found[i][k]) if rooted else found[i][k]
                        if score_kind == WEIGHT:
                            weight = v.multiply(score, biases)
                        else:
                            # slope * score + (bias - shift)
                            exponent = v.multiply_add(score, slopes[i], v.subtract(biases, shifts[i]))
                            if some:
                                truths = v.truths(taking.at(v.integer(i), v.plus(start, j)))
                                exponent = builder.select(truths, exponent, v.constant(-np.inf))
                            # exponents.max(1), lane by lane; in this order a NaN is passed over
                            v.set(top[i], v.maximum(exponent, v.get(top[i])))
                            weight = v.exp2(exponent)
                        v.set(total[i], v.add(v.get(total[i]), weight))
                        for e, value in enumerate(known):
                            v.set(sums[i][e], v.multiply_add(weight, value, v.get(sums[i][e])))
                        if stored:
                            v.store(weight, w.at(lines[i], v.plus(start, j)))
        for i in range(ROWS):
            for e, variable in enumerate([top[i], total[i], *sums[i]]):
                v.store(v.get(variable), out.at(lines[i], e, 0))
        return context.get_dummy_value()  # nothing

    return signature, generate


def _make(kind: int, root: int, n_values: int, store: int, limited: int):
    # to Numba the arguments are constants of ``weigh``: one kernel is compiled for each choice, without a branch
    @part
    def weigh(
        queries,
        row,
        line,
        panels,
        first,
        count,
        bias,
        slope,
        shift,
        factors,
        values,
        lanes,
        weights,
        takes_part,
    ):
        _weigh(
            kind, root, n_values, store, limited,
            queries, row, line, panels, first, count, bias, slope, shift, factors, values, lanes, weights, takes_part,
        )  # fmt: skip
        return 0

    return weigh


@lru_cache
def weigh_address(
    dtype: str, kind: int, root: bool, n_values: int, store: bool, limited: bool = False
) -> int:
    """Address of the fused kernel, the part ``weigh``.

    Its arguments: ``queries, row, line, panels, first, count, bias, slope, shift, factors, values, lanes, weights,
    takes_part``.
    ``row`` counts the queries of the task, ``line`` those of the block, which ``shift``, ``lanes``, ``weights`` have.
    For the queries ``row .. row + ROWS - 1``, with slopes at the same rows and shifts at ``line + i``, and ``count``
    panels from ``first`` it fills ``lanes[line + i]``, shape (2 + n_values, W): the largest exponents, the sums of the
    weights, and the sums of weight times value, still apart for the W lanes; with ``store`` also
    ``weights[line + i, : count * PANEL]``, where for the kinds LOG_WEIGHT and WEIGHT the profile left its answers.

    Parameters
    ----------
    dtype : {"float32", "float64"}
    kind, root
        As in :func:`weigh_plain`.
    n_values : int
        Columns of values that are summed in registers; they have shape (panels, >= n_values, PANEL).
    store : bool
        Whether the weights are written down.
    limited : bool
        Whether only those samples take part that are True in ``takes_part[i, : count * PANEL]``.
    """
    one, two, three = array_types(dtype)
    return address(
        _make(kind, int(root), n_values, int(store), int(limited)),
        *(two, types.intp, types.intp, three, types.intp, types.intp, two, one, one, one, three, three, two),
        types.Array(types.bool_, 2, "C"),
    )
