"""The gradient of the local mean on the card: the function of :mod:`locbook.engine.gradients`.

The sums of the weights and the means come from the reductions. Then each pair is weighed once more for each sum that
is asked for, of four columns at most (:mod:`locbook.engine.cuda.adjoints`). Which sums those are, and what becomes of
them, is decided as on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...kernels import metrics
from ...kernels.base import Kernel, SoftmaxKernel
from .. import backward as g
from .. import program as p
from ..driver import multiplicities
from ..fused import LOG2_E
from ..gradients import (
    ARGUMENTS,
    LocalMeanGradient,
    Places,
    known_cotangent,
    through_program,
)
from ..plan import Plan
from ..problem import Problem
from ..stream import FLOAT32_ERROR, float32_error
from ..sweep import SUM
from . import backend
from .adjoints import (
    Given,
    adjoint,
    of_column_width,
    of_coordinate,
    of_distance,
    of_entry,
    of_logarithm,
    of_own_weight,
    of_values,
    pairs_kernel,
    whole,
)
from .arrays import gather, lengths, on_host, problems_of, shifted
from .backend import cuda
from .driver import Loaded, Sizes, accumulate, finish, load, precision, threads_of
from .reductions import log_sum, mean_or_nan, scales
from .sums import Part, Span, raw_kernel
from .weigh import cofactor, leaf_weight

#: Sums of a thread at once, and the distances whose derivatives are short enough for that; of others it makes one.
PANEL, SHORT = 4, (-1, metrics.EUCLIDEAN, metrics.MANHATTAN, metrics.PERIODIC)


class _Pairs:
    """Sums over pairs, launched; times ``unit``, in which cotangents are given."""

    def __init__(self, problem: Problem, loaded: Loaded, given: Given, sizes: Sizes, unit: float):
        self.loaded, self.given, self.sizes, self.unit = loaded, given, sizes, unit
        self.m, self.n, self.problems = len(problem.queries), len(problem.samples), problems_of(problem)
        self.bad = backend.as_device(np.zeros(1, dtype=np.int32))

    def sum(
        self, owed: Callable, column: Callable, width: int, *, by_sample: bool = False, panel: int = PANEL
    ) -> np.ndarray:
        """Sums of ``width`` columns for each query (m, width), or for each sample (n, width)."""
        loaded, sizes, T = self.loaded, self.sizes, self.loaded.T
        rows, over = (self.n, self.m) if by_sample else (self.m, self.n)
        threads = threads_of(rows, self.problems, sizes)
        out, everyone = cuda.device_array((rows, width), T), backend.as_device(np.arange(rows))

        def launch(made: Any, first: int, blocks: tuple, span: Span, part: Part) -> None:
            given = loaded.queries, loaded.samples, loaded.data, self.given, first, width - 1
            made[blocks, threads](*given, span, part)

        for first in range(0, width, panel):
            columns = min(panel, width - first)
            some = partial(launch, pairs_kernel(owed, column, columns, by_sample, T), first)
            state = accumulate(some, over, rows, columns, threads, T, sizes, problems=self.problems)
            finish(raw_kernel(T), everyone, state, first, out, self.bad)
        return out.copy_to_host().astype(np.float64) * self.unit


def mean_vjp(
    problem: Problem,
    values: Any,
    cotangent: Any,
    wrt: tuple[str, ...] = ARGUMENTS,
    forward: tuple[Any, Any] | None = None,
    **sizes: int,
) -> LocalMeanGradient:
    """The vector-Jacobian product of the local mean; see :func:`locbook.engine.gradients.mean_vjp`.

    float64 for NumPy callers. Arrays of the card are read where they lie; sums over the queries and the samples,
    O(m + n) numbers, come to the host, and go back in the queries' kind.
    """
    return give_back_gradient(vjp_on_host(problem, values, cotangent, wrt, forward, **sizes), problem, values)


def give_back_gradient(found: LocalMeanGradient, problem: Problem, values: Any) -> LocalMeanGradient:
    """A gradient of the host in the kind of the queries, and in the precision of queries, samples and values."""
    kind, (*arrays, kernel) = backend.on_card(problem.queries, problem.samples), found
    dtype = np.float32 if kind != "numpy" and _is_single(problem, values) else np.float64
    parts = [a if a is None else backend.give_back(a.astype(dtype, copy=False), kind) for a in arrays]
    if kernel is not None:  # small, and of the host as the kernel's parameters are
        kernel = tuple(k.astype(dtype, copy=False) if isinstance(k, np.ndarray) else k for k in kernel)
    return LocalMeanGradient(*parts, kernel)


def _is_single(problem: Problem, values: Any) -> bool:
    return problem.dtype == np.float32 and backend.all_single(values)


def _in_float64(problem: Problem) -> Problem:
    """The same problem, whose answers are float64; arrays are converted where they are read."""
    return replace(problem, dtype=np.dtype(np.float64))


def forward_of(problem: Problem, values: Any, sizes: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Means and log-sums on the host, float64, computed in the precision of the problem and its values."""
    middle = 0.0
    if _is_single(problem, values):
        values, middle = _around_middle(problem, values)
    else:
        problem = _in_float64(problem)
    means = backend.to_host(mean_or_nan(problem, values, sizes)) + middle
    return means, backend.to_host(log_sum(problem, **sizes)).astype(np.float64)


def _around_middle(problem: Problem, values: Any) -> tuple[Any, np.ndarray]:
    """float32 values less a middle of their own, on the card, and the middle for each query, float64."""
    source = gather_values(values, np.float32)
    *_, unit, middle = scales(problem, source)
    middle *= unit
    each = len(problem.queries) // len(middle)
    return shifted(source, np.ones(middle.shape), middle, np.float32), np.repeat(middle, each, axis=0)


def vjp_on_host(
    problem: Problem,
    values: Any,
    cotangent: Any,
    wrt: tuple[str, ...],
    forward: tuple[Any, Any] | None = None,
    **sizes: int,
) -> LocalMeanGradient:
    """What :func:`mean_vjp` gives, as float64 of the host."""
    backend.require()
    single = _is_single(problem, values)
    given = forward_of(problem, values, sizes) if forward is None else forward
    means, log_sums = (backend.to_host(part).astype(np.float64, copy=False) for part in given)
    alone = np.isneginf(log_sums)
    known = ~np.isnan(means).any(axis=1) & (~alone | (problem.kernel.full_support and problem.mask is None))
    slope = known_cotangent(backend.to_host(cotangent).astype(np.float64, copy=False), known)

    def run(plan: Plan, nodes: np.ndarray, leaves: list[tuple[Kernel, int]], places: Places) -> tuple:
        options = plan, nodes, leaves, places, values, slope
        totals = np.where(alone, np.inf, log_sums)
        if single and _holds(problem, plan, log_sums, slope):
            found = _run(problem, *options, means, totals, wrt, Sizes(**sizes))
            if found is not None:
                return found
        double = _in_float64(problem)
        exact = forward_of(double, values, sizes) if single else (means, log_sums)
        return _run(double, *options, exact[0], np.where(alone, np.inf, exact[1]), wrt, Sizes(**sizes))

    def again(few: Problem, rows: np.ndarray) -> LocalMeanGradient:
        return vjp_on_host(few, backend.to_host(values), slope[rows], ("values", "sample_weight"), **sizes)

    limit = np.flatnonzero(alone & known)
    found = through_program(on_host(problem), values.shape[1], limit, wrt, run, again)
    return LocalMeanGradient(*(x if name in wrt else None for name, x in zip(ARGUMENTS, found, strict=True)))


def _holds(problem: Problem, plan: Plan, log_sums: np.ndarray, cotangent: np.ndarray) -> bool:
    """Whether float32 holds the weights and the cotangents of a float32 problem.

    As for sums: numbers of moderate size, exponents near the largest that are off by :data:`FLOAT32_ERROR` at most, for
    all queries. The slope of a user's function is a difference, which wants the digits of float64.
    """
    if precision(problem, plan) is not np.float32 or plan.users:
        return False
    some = np.abs(cotangent[cotangent != 0])
    largest = np.abs(log_sums[np.isfinite(log_sums)]).max(initial=0.0)
    if some.size and some.min() < 1e-18 * some.max():
        return False
    if not plan.program.log:
        return largest < 80.0
    for leaf in problem.kernel.leaves():
        if isinstance(leaf, SoftmaxKernel):
            columns = leaf.columns(problem.samples.shape[1])
            sides = (
                lengths(gather(a, columns, np.float32)).max() for a in (problem.queries, problem.samples)
            )
            largest = max(largest, math.prod(sides) / leaf.temperature)
    return float32_error(largest * LOG2_E + 16.0, problem.samples.shape[1]) <= FLOAT32_ERROR


def _run(
    problem: Problem,
    plan: Plan,
    nodes: np.ndarray,
    leaves: list[tuple[Kernel, int]],
    places: Places,
    values: Any,
    cotangent: np.ndarray,
    means: np.ndarray,
    log_sums: np.ndarray,
    wrt: tuple[str, ...],
    sizes: Sizes,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """All sums: of the queries (m, .), of the samples (n, .), and of both together; places as on the processor.

    In the precision of the problem; None where float32 does not hold a sum.
    """
    T, (m, n), width = problem.dtype.type, (len(problem.queries), len(problem.samples)), values.shape[1]
    loaded = load(problem, plan, T)
    _, copies = multiplicities(SUM, problem, plan)
    totals = log_sums if loaded.log else log_sums - np.log(copies)
    unit = 1.0
    if T is np.float32:
        columns, middle = _around_middle(problem, values)
        means, unit = means - middle, 2.0 ** np.frexp(np.abs(cotangent).max(initial=0.0))[1]
    else:
        columns = gather_values(values, T)
    of_host = (backend.as_device(a.astype(T)) for a in (cotangent / unit, means, totals))
    pairs = _Pairs(problem, loaded, Given(*of_host, columns, loaded.bias), sizes, unit)
    of_queries, of_samples = np.zeros((m, places.queries)), np.zeros((n, places.samples))
    numbers = np.zeros(places.numbers)
    if "values" in wrt:
        share = adjoint(loaded.weigh, loaded.log, True, False, T)
        of_samples[:, :width] = pairs.sum(share, of_values(T), width, by_sample=True)
    if "sample_weight" in wrt:
        by_copies = adjoint(loaded.weigh, loaded.log, False, True, T)
        of_samples[:, width] = pairs.sum(by_copies, whole(T), 1, by_sample=True)[:, 0]
        of_samples[:, width] /= 1.0 if loaded.log else copies
    for leaf, k in leaves:
        node, step = nodes[k], loaded.structure.steps[k]
        size, panel = step.count, PANEL if step.metric in SHORT else 1
        if (node[[g.QUERY_PLACE, g.QUERY_WIDTH, g.SAMPLE_WIDTH, g.PLACE]] < 0).all():
            continue
        owed = _owed_to(loaded, k, T)
        through, to_width = owed, owed
        if step.kind == p.DISTANCE:
            through, to_width = (of_distance(step, owed, by_distance, T) for by_distance in (True, False))
        if node[g.QUERY_PLACE] >= 0:
            here, there = slice(node[g.QUERY_PLACE], None), slice(node[g.SAMPLE_PLACE], None)
            of_queries[:, here][:, :size] = pairs.sum(
                through, of_coordinate(step, False, T), size, panel=panel
            )
            found = pairs.sum(through, of_coordinate(step, True, T), size, by_sample=True, panel=panel)
            of_samples[:, there][:, :size] = found
        if node[g.QUERY_WIDTH] >= 0:
            of_queries[:, node[g.QUERY_WIDTH]] = pairs.sum(to_width, whole(T), 1)[:, 0]
        if node[g.SAMPLE_WIDTH] >= 0:
            of_samples[:, node[g.SAMPLE_WIDTH]] = pairs.sum(to_width, whole(T), 1, by_sample=True)[:, 0]
        if node[g.PLACE] >= 0:
            column, count = _parameter(loaded, leaf, k, node, T)
            scalar = step.kind == p.DISTANCE and node[g.BY_COLUMN] == 0
            sums = pairs.sum(to_width if scalar else through, column, count, panel=panel).sum(axis=0)
            numbers[node[g.PLACE] :][:count] = sums
    if T is np.float32 and pairs.bad.copy_to_host()[0]:
        return None
    return of_queries, of_samples, numbers


def gather_values(values: Any, T: type) -> Any:
    """The values on the card."""
    return gather(values, np.arange(values.shape[1]), T) if values.shape[1] else np.zeros((len(values), 1), T)


def _owed_to(loaded: Loaded, k: int, T: type) -> Callable:
    """What a pair owes leaf k: by the logarithm of its weight where the leaf gives that."""
    step = loaded.structure.steps[k]
    factor = cofactor(loaded.structure, k, T)
    if step.logarithmic or step.kind in (p.DOT, p.VON_MISES, p.OFFSETS):
        factor = of_logarithm(leaf_weight(loaded.structure, k, T), factor, T)
    return adjoint(factor, loaded.log, True, True, T)


def _parameter(loaded: Loaded, leaf: Kernel, k: int, node: np.ndarray, T: type) -> tuple[Callable, int]:
    """The column function of a leaf's parameter, and how many numbers that has."""
    step = loaded.structure.steps[k]
    if step.kind == p.DISTANCE:
        if node[g.BY_COLUMN] == 0:
            return whole(T), 1
        return of_column_width(step, T), step.count**2 if step.metric == metrics.MATRIX else step.count
    if step.kind in (p.DOT, p.VON_MISES):
        return of_own_weight(leaf_weight(loaded.structure, k, T), T), 1
    if step.kind == p.TABLE:
        return of_entry(step, T), leaf.matrix.size
    return of_entry(step, T), step.extra
