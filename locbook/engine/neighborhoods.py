"""Neighbourhoods by number: the k nearest of each query, counted with their multiplicities.

The kernel ``knn`` and the kNN bandwidths are made of them. Who the k nearest are depends on what holds where the kernel
stands in its expression: a hollow kernel and a mask keep samples out, and the neighbours are chosen among the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.metrics import Metric
from .problem import Problem, check_hollow, check_kernel_mask

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Rows beyond the k-th that are looked at for ties.
MOST_TIES = 8


class NearestKernel(base.NeighborKernel):
    """The nearest samples, all that tie, whatever their multiplicities; none where no sample takes part."""

    def __init__(self, *, metric: Metric, on: object):
        super().__init__(1, ties="include", metric=metric, on=on)


class Restrictions(NamedTuple):
    """Who is kept out where a kernel stands.

    Attributes
    ----------
    masks : tuple of arrays of bool, shape (m, n)
    hollow : bool
        Whether each sample is kept out of its own neighbourhood.
    """

    masks: tuple[np.ndarray, ...] = ()
    hollow: bool = False

    @classmethod
    def of(cls, problem: Problem) -> Restrictions:
        """What holds for the whole of a problem's kernel."""
        return cls(() if problem.mask is None else (problem.mask,))

    def inside(self, problem: Problem, kernel: base.Kernel) -> Restrictions:
        """What holds for the parts of a kernel that stands here.

        Raises
        ------
        ValueError
            If it is hollow and the queries are not the samples, or its mask does not fit.
        """
        if isinstance(kernel, base.HollowKernel):
            check_hollow(problem)
            return self._replace(hollow=True)
        if isinstance(kernel, base.MaskedKernel):
            check_kernel_mask(problem, kernel)
            return self._replace(masks=(*self.masks, problem.of_queries(kernel.mask)))
        return self


class Neighborhoods(NamedTuple):
    """The nearest samples of each query, by distance, then by row, until their multiplicities add up to k.

    Attributes
    ----------
    rows : array of int64, shape (m, r)
    counted : array of float64, shape (m, r)
        How much of its multiplicity each counts; 0 beyond the k-th.
    squares : array, shape (m, r)
        Squared distances; infinite where there are fewer than r.
    squared : array, shape (m,)
        That of the k-th; -1 where nobody takes part.
    row : array of int64, shape (m,)
        Its row.
    share : array, shape (m,)
        The part of its multiplicity that makes up k.
    """

    rows: np.ndarray
    counted: np.ndarray
    squares: np.ndarray
    squared: np.ndarray
    row: np.ndarray
    share: np.ndarray


def k_nearest(
    problem: Problem,
    columns: np.ndarray,
    metric: Metric,
    k: int,
    among: Restrictions,
    *,
    copies: bool = False,
    more: int = 0,
    prune: str | bool = "auto",
) -> Neighborhoods:
    """The k nearest of each query, as if each row stood there as many times as its multiplicity says.

    A hollow kernel leaves a sample out with all its multiplicity; ``copies`` leaves out one, and the others count.
    ``more`` rows than needed are looked for.

    Raises
    ------
    ValueError
        If there are fewer than k.
    """
    weights = np.ones(len(problem.samples)) if problem.sample_weight is None else problem.sample_weight
    wanted = np.full(len(problem.queries), float(k))
    available = weights.sum()
    left_out = weights[problem.query_ids] if among.hollow else np.zeros(1)
    if copies:
        wanted -= np.maximum(left_out - 1.0, 0.0)
        left_out = np.minimum(left_out, 1.0)
    least = available - left_out.max()
    if k > least + 1e-12 * available:
        others = " others" if among.hollow else ""
        raise ValueError(f"n_neighbors must be at most the {least:g}{others} samples there are, got {k}")
    # the most rows that may be needed: the smallest multiplicities that add up to k
    room = int(np.searchsorted(np.cumsum(np.sort(weights[weights > 0])), k * (1 - 1e-12))) + 1
    scores, rows = _nearest(problem, columns, metric, min(room + more, len(problem.samples)), among, prune)
    own = np.where(rows >= 0, weights[rows], 0.0)
    counted = np.cumsum(own, axis=1)
    reached = (counted >= wanted[:, None] * (1 - 1e-12)) & (rows >= 0)
    last = np.where(reached.any(axis=1), reached.argmax(axis=1), (rows >= 0).sum(axis=1) - 1)
    line = np.arange(len(rows))
    empty = last < 0  # a query that the mask leaves without any sample
    last = np.maximum(last, 0)
    before = np.where(last > 0, counted[line, last - 1], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.clip(np.where(own[line, last] > 0, (k - before) / own[line, last], 1.0), 0.0, 1.0)
    squared = np.where(empty, -1.0, np.where(wanted > 0, -scores[line, last], 0.0))
    own[np.arange(rows.shape[1]) > last[:, None]] = 0.0
    own[line, last] *= share
    return Neighborhoods(rows, own, -scores, squared, rows[line, last], share)


def the_nearest(
    problem: Problem, columns: np.ndarray, metric: Metric, among: Restrictions, *, more: int = 0
) -> Neighborhoods:
    """The nearest one, whatever its multiplicity."""
    scores, rows = _nearest(problem, columns, metric, min(1 + more, len(problem.samples)), among)
    squared, counted = np.where(rows[:, 0] < 0, -1.0, -scores[:, 0]), np.zeros(rows.shape)
    counted[:, 0] = rows[:, 0] >= 0
    return Neighborhoods(rows, counted, -scores, squared, rows[:, 0], np.ones(len(rows)))


def _with_ties(problem: Problem, found: Neighborhoods) -> Neighborhoods | None:
    """All that are as near as the k-th, with all their multiplicity; None where there may be more than were found."""
    near = found.squares <= found.squared[:, None]
    if near.shape[1] < len(problem.samples) and near[:, -1].any():
        return None
    weights = 1.0 if problem.sample_weight is None else problem.sample_weight[found.rows]
    return found._replace(counted=np.where(near, weights, 0.0))


def _nearest(
    problem: Problem,
    columns: np.ndarray,
    metric: Metric,
    k: int,
    among: Restrictions,
    prune: str | bool = "auto",
) -> tuple[np.ndarray, np.ndarray]:
    from .reductions import top  # which asks for plans, and these for neighbourhoods

    return top(problem, columns, metric, k, among.masks, hollow=among.hollow, prune=prune)


def measured_bandwidth(
    ruler: VaryingBandwidth, problem: Problem, columns: np.ndarray, metric: Metric, among: Restrictions
) -> tuple[np.ndarray, np.ndarray]:
    """The bandwidths of the queries, or of the samples, and the rows that they are measured to, or -1.

    Those that were given are checked and returned.

    Raises
    ------
    ValueError
        If there is not one for each.
    """
    n = len(problem.samples)
    if ruler.values is not None:
        wanted, name = (problem.n_queries, "queries") if ruler.side == "query" else (n, "samples")
        if len(ruler.values) != wanted:
            raise ValueError(f"bandwidth has {len(ruler.values)} entries, but there are {wanted} {name}")
        values = problem.of_queries(ruler.values) if ruler.side == "query" else ruler.values
        return values, np.full(len(values), -1)
    by_sample = ruler.side == "sample"
    if by_sample:
        # each sample's distance to its k-th other sample, whatever the query sees
        x, rows = problem.samples, np.arange(n)
        problem = Problem(x, x, problem.kernel, problem.sample_weight, None, rows, problem.dtype)
        among = Restrictions(hollow=True)
    found = k_nearest(problem, columns, metric, ruler.n_neighbors, among, copies=by_sample)
    widths = np.sqrt(np.maximum(found.squared, 0.0)) * (1 + 1e-12)
    used = problem.samples[:, columns]
    low, high = (extreme.reduce(used, axis=0).astype(np.float64) for extreme in (np.fmin, np.fmax))
    spread = float(np.fmax.reduce(high - low, initial=0.0))  # fmin and fmax pass over NaN
    floor = 1e-9 * spread if spread > 0 else 1.0
    return np.maximum(widths, floor) * ruler.scale, np.where(widths > floor, found.row, -1)


def measured(problem: Problem) -> Problem:
    """The same problem with the numbers of its kNN bandwidths.

    A user's profile that is no line keeps them: it may jump at the very distance of the k-th.
    """

    def in_numbers(kernel: base.Kernel, among: Restrictions) -> base.Kernel:
        inside = among.inside(problem, kernel)
        if kernel.parts:
            return kernel._rebuild([in_numbers(part, inside) for part in kernel.parts])
        if not isinstance(kernel, base.RadialKernel) or not kernel.adaptive:
            return kernel
        if kernel.named is None and kernel.line is None:
            return kernel
        columns = kernel.columns(problem.queries.shape[1])
        widths, side = (
            measured_bandwidth(kernel.ruler, problem, columns, kernel.metric, among)[0],
            kernel.ruler.side,
        )
        if side == "query":
            whole = np.ones(problem.n_queries)
            whole[problem.query_ids] = widths
            widths = whole
        return kernel.replaced(ruler=VaryingBandwidth(side, widths))

    kernel = problem.kernel
    return problem.with_kernel(in_numbers(kernel, Restrictions.of(problem))) if kernel.adaptive else problem


def neighbor_weights(problem: Problem, prune: str | bool) -> csr_array | None:
    """The weights of a kernel that is ``knn`` alone, shape (m, n): all but k of a row are 0.

    None for any other kernel, and where all that tie with the k-th are let in and these are many.
    """
    kernel, factor, among = problem.kernel, 1.0, Restrictions.of(problem)
    while isinstance(kernel, base.ScaledKernel | base.HollowKernel | base.MaskedKernel):
        factor *= kernel.factor if isinstance(kernel, base.ScaledKernel) else 1.0
        among, kernel = among.inside(problem, kernel), kernel.kernel
    if not isinstance(kernel, base.NeighborKernel) or problem.groups is not None:
        return None
    where, more = (problem, kernel.columns(problem.queries.shape[1]), kernel.metric), 0
    if kernel.ties == "include":
        more = MOST_TIES
    if isinstance(kernel, NearestKernel):
        found = the_nearest(*where, among, more=more)
    else:
        found = k_nearest(*where, kernel.n_neighbors, among, more=more, prune=prune)
    if more and (found := _with_ties(problem, found)) is None:
        return None
    from scipy.sparse import csr_array  # here: importing locbook, or another kernel's mean, does not need it

    counts = found.counted > 0
    ends = np.cumsum(np.count_nonzero(counts, axis=1))
    entries = factor * found.counted[counts], found.rows[counts], np.concatenate([[0], ends])
    return csr_array(entries, shape=(len(problem.queries), len(problem.samples)))
