r"""The reductions: what is accumulated over the samples, for each query.

=================  ================================================================
:func:`log_sum`    :math:`\log\sum_i w_i`
:func:`mean`       :math:`\sum_i w_i v_i / \sum_i w_i`
:func:`moments`    :math:`\sum_i w_i z z^\top`, :math:`\sum_i w_i z y^\top`
:func:`classes`    :math:`\sum_i w_i 1[y_i = c]`
:func:`quantile`   weighted order statistics
:func:`nearest`    the k nearest (:func:`top`: the same, for kernels that ask)
=================  ================================================================

:func:`dense_weights`, :func:`normalized_weights` and :func:`self_weights` write single weights down. Each reduction
has a NumPy twin of a few lines in :mod:`locbook.engine.reference` that says what is meant.

Where every weight of a query is 0, the policy ``empty`` answers: it leaves NaN, raises, or replaces the kernel, for
that query, by the nearest samples or by all of them, and the same reduction runs again.

``sizes`` are the ``block``, ``chunk`` and ``tile`` of :func:`locbook.engine.driver.run`, by which tests cut the work
otherwise. The fused path and the grids have sizes of their own, and do not look at them.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_integer, check_option
from ..kernels import base
from ..kernels.bandwidth import LARGEST
from ..kernels.base import Kernel
from ..kernels.metrics import EUCLIDEAN, Metric, as_metric
from . import sweep as s
from .compact import sum_compact
from .driver import check_overflow, make_state, run
from .leaf import as_product, moderate
from .nearest import find_nearest, sievable
from .neighborhoods import NearestKernel, measured, neighbor_weights
from .plan import make_plan, make_score_plan
from .pool import run_split
from .problem import Problem
from .reach import Order, fades, nearest_reach, put_in_order, refuse_far, support_of
from .stream import stream
from .vectors import ENABLED
from .whitening import whiten

#: Parts of a sum, products multiplied out, that are summed one by one.
MOST_SUMMANDS = 8
#: Classes that are summed as columns of values, and the most numbers that these may take.
MOST_CLASSES, MOST_ONES = 32, 1 << 23
#: Operations to sort a number of a heap, about.
SORTED = 300

EMPTY = ("nan", "nearest", "mean", "raise")


class EmptyNeighborhoodWarning(UserWarning):
    """Some queries have no sample with a positive weight."""


class Moments(NamedTuple):
    """Weighted moments around each query.

    Attributes
    ----------
    second : array, shape (m, f, f)
        Sum of ``w z z'``, z the monomials of ``x - query`` (:func:`monomials`).
    first : array, shape (m, f, p)
        Sum of ``w z y'``.
    log_scale : array, shape (m,)
        Logarithm of the factor by which both must be multiplied (the running maximum; 0 in the plain domain).
    """

    second: np.ndarray
    first: np.ndarray
    log_scale: np.ndarray


class Neighbors(NamedTuple):
    """The nearest samples of each query, by distance, then by row.

    Attributes
    ----------
    distances : array, shape (m, k)
        ``inf`` where fewer than k take part.
    indices : array of int64, shape (m, k)
        Rows of the samples; -1 where fewer than k take part.
    """

    distances: np.ndarray
    indices: np.ndarray


# -- empty neighbourhoods --------------------------------------------------------------------------------------------


def _distance_leaf(kernel: Kernel) -> base.RadialKernel | base.NeighborKernel | None:
    return next((k for k in kernel.leaves() if isinstance(k, (base.RadialKernel, base.NeighborKernel))), None)


def _largest(array: np.ndarray) -> float:
    return max(-float(np.fmin.reduce(array, axis=None)), float(np.fmax.reduce(array, axis=None)))


def check_range(problem: Problem, rows: slice | np.ndarray = slice(None)) -> None:
    """Refuse coordinates whose squares no float holds."""
    if max(_largest(problem.queries[rows]), _largest(problem.samples)) > LARGEST:
        raise ValueError(
            f"queries and samples must not go beyond {LARGEST}, where squared distances overflow"
        )


def _restrictions(kernel: Kernel, inner: Kernel) -> Kernel:
    """``inner`` under every hollow and mask that stands in ``kernel``."""
    for part in kernel.parts:
        inner = _restrictions(part, inner)
    if isinstance(kernel, base.HollowKernel):
        return inner.hollow()
    return inner.masked(kernel.mask) if isinstance(kernel, base.MaskedKernel) else inner


def fallback_kernel(kernel: Kernel, empty: str) -> Kernel:
    """The kernel that answers for a query without a neighbour, under the restrictions of the first."""
    if empty == "mean":
        return _restrictions(kernel, base.ConstantKernel(1.0))
    leaf = _distance_leaf(kernel)
    if leaf is None:
        raise ValueError(f"empty='nearest' needs a kernel with a distance, got {kernel!r}")
    return _restrictions(kernel, NearestKernel(metric=leaf.metric, on=leaf.on))


def fill_empty(
    problem: Problem,
    empty_rows: np.ndarray,
    empty: str,
    again: Callable[[Problem], np.ndarray],
    answer: np.ndarray,
    *,
    warn: bool = True,
) -> np.ndarray:
    """Answer for the queries without a neighbour, by the policy.

    Parameters
    ----------
    problem : Problem
    empty_rows : array of bool, shape (m,)
    empty : {"nan", "nearest", "mean", "raise"}
    again : callable
        The reduction, for the few queries under the fallback kernel; rows still empty must be NaN in its answer.
    answer : array, shape (m, ...)
        NaN in the empty rows; filled in place.
    warn : bool
        Whether rows that stay NaN give a warning, one for the call.

    Raises
    ------
    ValueError
        Under ``"raise"``, with the count.
    """
    kernel = problem.kernel
    rows = np.flatnonzero(empty_rows)
    policies = [empty] if empty in ("nearest", "mean") else []
    if kernel.full_support and problem.mask is None and _distance_leaf(kernel) is not None:
        # the weights are positive, only too small for a float: take their limit
        policies.insert(0, "nearest")
    for policy in policies:
        if len(rows):
            answer[rows] = again(problem.rows(rows, fallback_kernel(kernel, policy)))
            rows = rows[np.isnan(answer[rows]).reshape(len(rows), -1).any(axis=1)]
    if not len(rows):
        return answer
    check_range(problem, rows)
    message = (
        f"{len(rows)} of {problem.n_queries} queries have no sample with a positive weight "
        f"(first: row {problem.query_ids[rows[0]]})"
    )
    if empty == "raise":
        raise ValueError(message + "; widen the kernel or choose another `empty`")
    if warn:
        warnings.warn(
            message + f"; their answer is NaN (empty={empty!r})", EmptyNeighborhoodWarning, stacklevel=4
        )
    return answer


# -- reductions ------------------------------------------------------------------------------------------------------


def _sums(
    problem: Problem, values: np.ndarray, prune: str | bool, **sizes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Logarithm of a scale (m,), and in its units the sums of the weights (m,) and of weight times value (m, p).

    The sums of a sum of kernels are the sums of its parts. Those of a part are found by the neighbours' rows, by the
    grid of :mod:`locbook.engine.compact` where that pays, or by the fused path where the kernel is a product that it
    knows; else, and for queries beyond its range, by the program.
    """
    m = len(problem.queries)
    if isinstance(problem.kernel, base.ConstantKernel) and problem.mask is None and problem.groups is None:
        weights = np.ones(len(values)) if problem.sample_weight is None else problem.sample_weight
        sums = (weights[:, None] * values).sum(axis=0)
        return np.full(m, math.log(problem.kernel.value)), np.full(m, weights.sum()), np.tile(sums, (m, 1))
    if (known := neighbor_weights(problem, prune)) is not None:
        return np.zeros(m), known @ np.ones(len(values)), known @ values
    if not ENABLED:
        return _program_sums(problem, values, prune, **sizes)
    if 1 < _count(problem.kernel) <= MOST_SUMMANDS:
        refuse_far(problem.kernel, prune)
        parts = map(problem.with_kernel, _summands(problem.kernel))
        # a part that reaches every sample is no reason to refuse: another does not
        return _add([_sums(part, values, prune if fades(part.kernel) else False, **sizes) for part in parts])
    problem = measured(problem)
    if (leaf := as_product(problem)) is None:
        return _program_sums(problem, values, prune, **sizes)
    if leaf.prepared and (found := _compact_sums(problem, values, prune)) is not None:
        return found
    found = stream(problem, leaf, values, prune)
    lost = np.flatnonzero(np.isnan(found[0]))
    if lost.size:
        if problem.groups is None:
            again = _program_sums(problem.rows(lost, problem.kernel), values, False, **sizes)
        else:
            again = [part[lost] for part in _program_sums(problem, values, False, **sizes)]
        for whole, part in zip(found, again, strict=True):
            whole[lost] = part
    check_overflow(problem, found[1])
    return found


def _count(kernel: Kernel) -> int:
    """How many kernels a kernel is the sum of, products multiplied out."""
    counts = [_count(part) for part in kernel.parts]
    return sum(counts) if isinstance(kernel, base.SumKernel) else math.prod(counts)


def _summands(kernel: Kernel) -> list[Kernel]:
    """These kernels."""
    if not kernel.parts:
        return [kernel]
    parts = [_summands(part) for part in kernel.parts]
    if isinstance(kernel, base.SumKernel):
        return [one for some in parts for one in some]
    return [kernel._rebuild(list(some)) for some in itertools.product(*parts)]


def _add(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sums of several kernels from what :func:`_sums` gives for each."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = np.array(
            [np.where(total > 0, scale + np.log(total), -np.inf) for scale, total, _ in parts]
        )
        scale = logarithms.max(axis=0)
        shares = np.exp(logarithms - np.where(np.isneginf(scale), 0.0, scale))
        means = [np.where(total[:, None] > 0, sums / total[:, None], 0.0) for _, total, sums in parts]
    return (
        scale,
        shares.sum(axis=0),
        sum(share[:, None] * some for share, some in zip(shares, means, strict=True)),
    )


def _program_sums(
    problem: Problem, values: np.ndarray, prune: str | bool, **sizes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if (found := _compact_sums(problem, values, prune)) is not None:
        return found
    plan, state = make_plan(problem), make_state(len(problem.queries), values.shape[1])
    run(s.MEAN, problem, plan, state, values=values, pruned=_pruned(problem, prune), **sizes)
    return state.shift, state.total, state.sums


def _compact_sums(
    problem: Problem, values: np.ndarray, prune: str | bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    found = sum_compact(problem, values, prune) if moderate(problem.sample_weight) else None
    return None if found is None else (np.zeros(len(problem.queries)), *found)


def _pruned(problem: Problem, prune: str | bool) -> Order | None:
    return put_in_order(problem, support_of(problem, problem.kernel), prune)


def _units(problem: Problem, values: np.ndarray) -> np.ndarray | None:
    """Powers of two, by problem and column, that bring each into the range where no product and no sum is lost.

    None where all columns are there already.
    """
    if not values.size:
        return None
    groups = 1 if problem.groups is None else math.prod(problem.groups.lead)
    parts = values.reshape(groups, -1, values.shape[1])
    largest = np.maximum(-parts.min(axis=1).astype(np.float64), parts.max(axis=1))
    wide = 1e9 if problem.dtype == np.float32 else 1e100
    if ((largest == 0) | ((1 / wide < largest) & (largest < wide))).all():
        return None
    return np.where(largest > 0, 2.0 ** np.minimum(np.frexp(largest)[1], 1023), 1.0)


def _of_rows(units: np.ndarray, problem: Problem, *, samples: bool) -> np.ndarray:
    """The units of each sample or query; one row where there is one problem."""
    if problem.groups is None:
        return units
    return np.repeat(units, problem.groups.samples if samples else problem.groups.queries, axis=0)


def _taking_part(problem: Problem, values: np.ndarray) -> np.ndarray:
    """The rows of the values that some query may see."""
    seen = np.ones(len(values), dtype=bool) if problem.mask is None else problem.mask.any(axis=0)
    if problem.sample_weight is not None:
        seen &= problem.sample_weight > 0
    return values if seen.all() else values[seen]


def _range(problem: Problem, values: np.ndarray) -> tuple[Any, Any]:
    """The smallest and largest values that some query sees, by column, or by query and column in a batch."""
    if not values.size:
        return -np.inf, np.inf
    groups = problem.groups
    if groups is None:
        known = _taking_part(problem, values)
        return (known.min(axis=0), known.max(axis=0)) if len(known) else (-np.inf, np.inf)
    known = values.reshape(-1, groups.samples, values.shape[1])
    low, high = known.min(axis=1), known.max(axis=1)
    if problem.sample_weight is not None:
        seen = problem.sample_weight.reshape(-1, groups.samples, 1) > 0
        low, high = np.where(seen, known, np.inf).min(axis=1), np.where(seen, known, -np.inf).max(axis=1)
    return np.repeat(low, groups.queries, axis=0), np.repeat(high, groups.queries, axis=0)


def log_sum(problem: Problem, *, prune: str | bool = "auto", **sizes: int) -> np.ndarray:
    """Logarithm of the sum of the weights, shape (m,), float64; ``-inf`` where all are 0."""
    answer = mean_and_log_sum(problem, np.empty((len(problem.samples), 0)), prune, **sizes)[1]
    if problem.kernel.full_support and np.isneginf(answer).any():
        check_range(problem)
    return answer


def mean_and_log_sum(
    problem: Problem, values: np.ndarray, prune: str | bool = "auto", **sizes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means, shape (m, p), NaN where all weights are 0, and what :func:`log_sum` gives; float64."""
    units = _units(problem, values)
    scaled = values if units is None else values / _of_rows(units, problem, samples=True)
    low, high = _range(problem, scaled)
    scale, total, sums = _sums(whiten(problem), scaled, prune, **sizes)
    # whatever rounding does, a mean stays among the values
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(total[:, None] > 0, np.clip(sums / total[:, None], low, high), np.nan)
        logarithms = np.where(total > 0, scale + np.log(total), -np.inf)
    return means if units is None else means * _of_rows(units, problem, samples=False), logarithms


def mean(
    problem: Problem,
    values: np.ndarray,
    empty: str = "nan",
    *,
    warn: bool = True,
    prune: str | bool = "auto",
    with_log_sum: bool = False,
    **sizes: int,
) -> Any:
    """Weighted mean of ``values`` (n, p) around each query, shape (m, p), float64; with what :func:`log_sum` gives."""
    check_option(empty, "empty", EMPTY)

    def means(problem: Problem) -> np.ndarray:
        return mean_and_log_sum(problem, values, False, **sizes)[0]

    answer, logarithms = mean_and_log_sum(problem, values, prune, **sizes)
    answer = fill_empty(problem, np.isnan(answer[:, 0]), empty, means, answer, warn=warn)
    return (answer, logarithms) if with_log_sum else answer


def monomials(n_columns: int, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """The monomials up to a degree: each is its parent times one coordinate; the first is 1.

    Returns
    -------
    parents, dimensions : arrays of int64, shape (f,)
        ``z[k] = z[parents[k]] * difference[dimensions[k]]``.
    """
    degree = check_integer(degree, "degree", minimum=0)
    parents, dimensions, last = [0], [0], [0]
    layer = [0]
    for _ in range(degree):
        following = []
        for parent in layer:
            for c in range(last[parent], n_columns):  # columns in ascending order: each product once
                following.append(len(parents))
                parents.append(parent)
                dimensions.append(c)
                last.append(c)
        layer = following
    return np.array(parents), np.array(dimensions)


def moments(
    problem: Problem, values: np.ndarray, degree: int = 1, *, prune: str | bool = "auto", **sizes: int
) -> Moments:
    """Weighted moments of the monomials of ``x - query`` up to ``degree``, and their products with ``values``."""
    table = monomials(problem.samples.shape[1], degree)
    problem = whiten(problem, keep_columns=True)
    f, p = len(table[0]), values.shape[1]
    plan = make_plan(problem)
    state = make_state(len(problem.queries), f * (f + 1) // 2 + f * p)
    run(
        s.MOMENTS,
        problem,
        plan,
        state,
        values=values,
        monomials=table,
        pruned=_pruned(problem, prune),
        **sizes,
    )
    second = np.empty((len(problem.queries), f, f))
    upper = np.triu_indices(f)
    second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = state.sums[:, : len(upper[0])]
    return Moments(second, state.sums[:, len(upper[0]) :].reshape(-1, f, p), state.shift)


def classes(
    problem: Problem,
    labels: np.ndarray,
    n_classes: int,
    empty: str = "nan",
    *,
    prune: str | bool = "auto",
    **sizes: int,
) -> np.ndarray:
    """Share of the weight that each class has around each query, shape (m, c), float64; rows sum to 1."""
    check_option(empty, "empty", EMPTY)
    labels = np.ascontiguousarray(labels, dtype=np.int64)  # the one type that compiled code knows
    if labels.shape != (len(problem.samples),) or labels.min() < 0 or labels.max() >= n_classes:
        raise ValueError(f"labels must be one code in 0..{n_classes - 1} for each sample")

    def shares(problem: Problem, prune: str | bool = False) -> np.ndarray:
        sums = _class_sums(whiten(problem), labels, n_classes, prune, **sizes)
        with np.errstate(invalid="ignore"):  # by their own sum: one class alone has exactly 1
            return sums / sums.sum(axis=1, keepdims=True)

    answer = shares(problem, prune)
    return fill_empty(problem, np.isnan(answer[:, 0]), empty, shares, answer)


def _class_sums(
    problem: Problem, labels: np.ndarray, n_classes: int, prune: str | bool, **sizes: int
) -> np.ndarray:
    """Weight of each class around each query, shape (m, c), up to a factor for each."""
    m = len(problem.queries)
    if (known := neighbor_weights(problem, prune)) is not None:
        of_classes = known.data, labels[known.indices], known.indptr
        return type(known)(of_classes, shape=(m, n_classes)).toarray()
    if ENABLED and n_classes <= MOST_CLASSES and n_classes * len(labels) <= MOST_ONES:  # means of 0 and 1
        return _sums(problem, np.eye(n_classes, dtype=np.float32)[labels], prune, **sizes)[2]
    state = make_state(m, n_classes)
    run(s.CLASSES, problem, make_plan(problem), state, labels=labels, pruned=_pruned(problem, prune), **sizes)
    return state.sums


def quantile(
    problem: Problem, values: np.ndarray, levels: np.ndarray, empty: str = "nan", **sizes: int
) -> np.ndarray:
    """Weighted quantiles of ``values`` (n, p) around each query, shape (m, p, levels), float64.

    The quantile at level q is the smallest value at which the share of the weight reaches q (the inverse of the
    weighted distribution function; ``method="inverted_cdf"`` of ``numpy.quantile``).
    """
    check_option(empty, "empty", EMPTY)

    def one(problem: Problem) -> np.ndarray:
        problem = whiten(problem)
        plan = make_plan(problem)
        m, p = len(problem.queries), values.shape[1]
        answer = np.empty((m, p, len(levels)))
        for c in range(p):
            order = np.argsort(values[:, c], kind="stable")
            sums = run(s.SUM, problem, plan, make_state(m), order=order, **sizes)
            state = make_state(m, len(levels) + 1, len(levels) + 1)
            state.shift[:] = sums.shift  # final already, so the running sum repeats the sum above
            state.sums[:, :-1] = sums.total[:, None] * levels
            run(s.CUMULATE, problem, plan, state, order=order, **sizes)
            # rounding may leave a share of 1 unreached: it is the last sample that has a weight
            rows = np.where(state.order[:, :-1] < 0, state.order[:, -1:], state.order[:, :-1])
            answer[:, c] = np.where(rows < 0, np.nan, values[rows, c])
        return answer

    answer = one(problem)
    return fill_empty(problem, np.isnan(answer).any(axis=(1, 2)), empty, one, answer)


def top(
    problem: Problem,
    columns: np.ndarray,
    metric: Metric,
    k: int,
    masks: tuple[np.ndarray, ...] = (),
    *,
    hollow: bool = False,
    prune: str | bool = "auto",
    **sizes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` nearest of each query: minus the squared distances and rows, ties by row; ``-inf`` and -1 to fill."""
    reach = nearest_reach(problem, columns, metric, k, hollow=hollow, masked=bool(masks))
    if ENABLED and metric.code == EUCLIDEAN and reach.per_panel and not sizes and sievable(problem, columns):
        best, rows = find_nearest(problem, columns, k, hollow=hollow, reach=reach, prune=prune)
    else:
        pruned = put_in_order(problem, reach, prune if reach is not None or isinstance(prune, str) else False)
        state = make_state(len(problem.queries), k, k)
        state.sums[:] = -np.inf
        state.order[:] = np.iinfo(np.int64).max  # an empty place is worse than any sample
        plan = make_score_plan(problem, columns, metric, masks, hollow=hollow)
        run(s.TOP, problem, plan, state, pruned=pruned, **sizes)
        best, rows = state.sums, state.order
    run_split(lambda some: s.sort_heaps(best[some], rows[some]), len(best), 1024, work=best.size * SORTED)
    rows[np.isneginf(best)] = -1
    return best, rows


def nearest(
    problem: Problem,
    n_neighbors: int,
    metric: str | Metric = "euclidean",
    *,
    exclude_self: bool = False,
    prune: str | bool = "auto",
    **sizes: int,
) -> Neighbors:
    """The ``n_neighbors`` nearest samples of each query, by distance, then by row.

    ``exclude_self`` leaves a sample out of its own neighbourhood (the queries are the samples).
    """
    k = check_integer(n_neighbors, "n_neighbors", maximum=len(problem.samples) - int(exclude_self))
    columns = np.arange(problem.samples.shape[1])
    masks = () if problem.mask is None else (problem.mask,)
    scores, rows = top(
        problem, columns, as_metric(metric), k, masks, hollow=exclude_self, prune=prune, **sizes
    )
    if np.isneginf(scores).any():
        check_range(problem)
    return Neighbors(np.sqrt(np.maximum(-scores, 0.0)), rows)


# -- single weights --------------------------------------------------------------------------------------------------


def _dense(problem: Problem, log: bool | None, **sizes: int) -> tuple[np.ndarray, bool]:
    plan = make_plan(problem, log=log)
    state = make_state(len(problem.queries), len(problem.samples))
    run(s.DENSE, problem, plan, state, **sizes)
    return state.sums, plan.program.log


def dense_weights(kernel: Kernel, queries: np.ndarray, samples: np.ndarray, *, log: bool) -> np.ndarray:
    """What ``kernel(queries, samples)`` and ``kernel.log(queries, samples)`` give, shape (m, n)."""
    problem = Problem.check(queries, samples, kernel)
    weights, logarithmic = _dense(problem, True if log else None)
    if logarithmic and not log:
        with np.errstate(over="ignore"):
            np.exp(weights, out=weights)
    with np.errstate(over="ignore"):
        weights = weights.astype(problem.dtype, copy=False)
    check_overflow(problem, weights)
    return weights


def normalized_weights(problem: Problem, empty: str = "nan", *, warn: bool = True) -> np.ndarray:
    """Weights that sum to 1 in each row, shape (m, n), float64; a row without a neighbour follows ``empty``.

    Under ``"nan"`` such a row is all 0: the one case in which a row does not sum to 1.
    """
    check_option(empty, "empty", EMPTY)

    def normalized(problem: Problem) -> np.ndarray:
        weights, logarithmic = _dense(problem, None)
        if logarithmic:
            shift = weights.max(axis=1, keepdims=True)
            np.subtract(weights, np.where(np.isneginf(shift), 0.0, shift), out=weights)
            np.exp(weights, out=weights)
        with np.errstate(invalid="ignore", over="ignore"):
            total = weights.sum(axis=1, keepdims=True)
            check_overflow(problem, total)
            return np.divide(weights, total, out=weights)

    answer = normalized(problem)
    answer = fill_empty(problem, np.isnan(answer[:, 0]), empty, normalized, answer, warn=warn)
    return np.nan_to_num(answer, copy=False, nan=0.0)


def self_weights(problem: Problem) -> np.ndarray:
    """Share of its own weight in each sample's neighbourhood, the diagonal of the smoother; queries are the samples.

    Returns
    -------
    array, shape (n,)
        NaN where the neighbourhood is empty.
    """
    plan = make_plan(problem)
    state = run(s.DIAGONAL, problem, plan, make_state(len(problem.queries), 1))
    own = state.sums[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.exp((own if plan.program.log else np.log(own) + state.shift) - log_sum(problem))
