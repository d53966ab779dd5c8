r"""Whitening: a Mahalanobis distance, or a bandwidth matrix, is the Euclidean distance of other columns.

.. math:: (x - x')^\top C^{-1} (x - x') = \lVert z - z' \rVert^2, \qquad z = L^{-1}(x - c), \quad C = L L^\top

and for a bandwidth matrix B the map is :math:`B^{-1}`. A product with a matrix for every pair becomes one for every
point, and such a kernel takes the ways of the Euclidean ones: the fused path, the boxes, the grid.

z carries rounding errors of its own size, so the centre c is a median of the samples, column by column. Where a sample
is more than :data:`FARTHEST` bandwidths away from it, the leaf stays as it is, and the program maps the difference of
each pair (``matrix_row`` in :mod:`locbook.kernels.metrics`). The new columns are float64, and so is what follows. The k
nearest and kNN bandwidths keep the matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import LARGEST, VaryingBandwidth
from ..kernels.metrics import MATRIX, Metric
from .parts import jit
from .pool import run_split
from .problem import Problem
from .reach import coordinates

#: The farthest sample, in bandwidths from the centre, up to which points are mapped.
FARTHEST = 1e3
#: Points of a task.
TASK = 4096


@jit
def map_points(points, centre, columns, out):
    """``out = (points - centre) @ columns``, shapes (n, d), (d,), (d, r) and (n, r); each row by itself."""
    for i in range(points.shape[0]):
        own = out[i]
        own[:] = 0.0
        for c in range(points.shape[1]):
            gap = points[i, c] - centre[c]
            for r in range(own.size):
                own[r] += columns[c, r] * gap


def _map_of(leaf: base.Kernel, n_columns: int) -> tuple[np.ndarray, float] | None:
    """The map of a leaf, and the smallest bandwidth beside it; None where there is none, or the leaf does not fit."""
    if not isinstance(leaf, base.RadialKernel):
        return None
    size, ruler = len(leaf.columns(n_columns)), leaf.ruler
    if np.ndim(ruler) == 2:
        return (np.linalg.inv(ruler), 1.0) if len(ruler) == size else None
    if leaf.metric.code != MATRIX:
        return None
    widths = ruler.values if isinstance(ruler, VaryingBandwidth) else ruler
    if widths is None:  # measured by the nearest
        return None
    return leaf.metric.parameters(size).reshape(size, size), float(np.min(widths))


def whiten(problem: Problem, *, keep_columns: bool = False) -> Problem:
    """The same problem with Euclidean distances in the place of those with a matrix, where that keeps the digits.

    Parameters
    ----------
    problem : Problem
    keep_columns : bool
        Whether the columns of the samples must stay what they are; the new ones then follow them.

    Returns
    -------
    Problem
        The weights are the same. The very problem where no leaf has a map, or where the one leaf is not mapped.
    """
    n_columns = problem.samples.shape[1]
    leaves = list(problem.kernel.leaves())
    maps = [_map_of(leaf, n_columns) for leaf in leaves]
    if not any(maps):
        return problem
    alone = len(leaves) == 1 and not keep_columns
    queries, samples = ([], []) if alone else ([problem.queries], [problem.samples])
    width, whitened = 0 if alone else n_columns, []
    for leaf, found in zip(leaves, maps, strict=True):
        points = None if found is None else _mapped(problem, leaf.columns(n_columns), *found)
        if points is not None:
            queries.append(points[0])
            samples.append(points[1])
            on = None if alone else tuple(range(width, width + points[1].shape[1]))
            width += points[1].shape[1]
            ruler = 1.0 if np.ndim(leaf.ruler) == 2 else leaf.ruler
            leaf = leaf.replaced(ruler=ruler, metric=Metric("euclidean"), on=on)
        # it looked at all columns: it must not see the new ones
        elif "on" in leaf._fields and leaf.on is None:
            leaf = leaf.replaced(on=tuple(range(n_columns)))
        whitened.append(leaf)
    if alone and not samples:
        return problem
    kernel = problem.kernel.with_leaves(whitened)
    both = np.hstack(samples)
    same = problem.queries is problem.samples
    return replace(problem, queries=both if same else np.hstack(queries), samples=both, kernel=kernel)


def _mapped(
    problem: Problem, columns: np.ndarray, matrix: np.ndarray, smallest: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Queries and samples on the other side of the map; None where they would lose digits."""
    x = coordinates(problem.samples, columns)
    centre = np.median(x[:: -(-len(x) // 999)], axis=0)
    columns_of_map = np.ascontiguousarray(matrix.T)

    def mapped(points: np.ndarray) -> np.ndarray:
        out = np.empty((len(points), len(matrix)))
        run_split(
            lambda some: map_points(points[some], centre, columns_of_map, out[some]),
            *(len(points), TASK),
            work=matrix.size * len(points),
        )
        return out

    with np.errstate(over="ignore", invalid="ignore"):
        samples = mapped(x)
        if not np.einsum("ij,ij->i", samples, samples).max() <= (FARTHEST * smallest) ** 2:
            return None
        if problem.queries is problem.samples:
            return samples, samples
        queries = mapped(coordinates(problem.queries, columns))
        return (queries, samples) if np.abs(queries).max() <= LARGEST else None
