"""The gradient of the local mean on the card: the function of :mod:`locbook.engine.gradients`.

The sums of the weights and the means come from the reductions. Then each pair is weighed once more for each sum that
is asked for, of four columns at most (:mod:`locbook.engine.cuda.adjoints`). Which sums those are, and what becomes of
them, is decided as on the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...kernels import metrics
from ...kernels.base import Kernel
from .. import backward as g
from .. import program as p
from ..driver import multiplicities
from ..gradients import (
    ARGUMENTS,
    LocalMeanGradient,
    Places,
    known_cotangent,
    through_program,
)
from ..plan import Plan
from ..problem import Problem
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
from .arrays import gather, grid, on_host
from .backend import cuda
from .driver import Loaded, Sizes, accumulate, load
from .reductions import log_sum, mean
from .sums import raw_kernel
from .weigh import cofactor, leaf_weight

#: Sums of a thread at once, and the distances whose derivatives are short enough for that; of others it makes one.
PANEL, SHORT = 4, (-1, metrics.EUCLIDEAN, metrics.MANHATTAN, metrics.PERIODIC)


class _Pairs:
    """Sums over pairs, launched."""

    def __init__(self, loaded: Loaded, given: Given, m: int, n: int, sizes: Sizes):
        self.loaded, self.given, self.m, self.n, self.sizes = loaded, given, m, n, sizes
        self.bad = backend.as_device(np.zeros(1, dtype=np.int32))

    def sum(
        self, owed: Callable, column: Callable, width: int, *, by_sample: bool = False, panel: int = PANEL
    ) -> np.ndarray:
        """Sums of ``width`` columns for each query (m, width), or for each sample (n, width)."""
        loaded, sizes, T = self.loaded, self.sizes, self.loaded.T
        rows, over = (self.n, self.m) if by_sample else (self.m, self.n)
        out, everyone = cuda.device_array((rows, width), T), backend.as_device(np.arange(rows))
        for first in range(0, width, panel):
            columns = min(panel, width - first)
            made = pairs_kernel(owed, column, columns, by_sample, T)

            def launch(
                blocks: tuple, start: int, stop: int, part: Any, made: Any = made, first: int = first
            ) -> None:
                given = loaded.queries, loaded.samples, loaded.data, self.given, first, width - 1
                made[blocks, sizes.block](*given, start, sizes.split, stop, *part)

            state = accumulate(launch, over, rows, columns, sizes.block, T, sizes)
            blocks, threads = grid(rows)
            raw_kernel(T)[(blocks, columns), threads](everyone, state.sums, first, out, self.bad)
        return out.copy_to_host().astype(np.float64)


def mean_vjp(
    problem: Problem, values: Any, cotangent: Any, wrt: tuple[str, ...] = ARGUMENTS, **sizes: int
) -> LocalMeanGradient:
    """The vector-Jacobian product of the local mean; see :func:`locbook.engine.gradients.mean_vjp`.

    float64. Arrays of the card are read where they lie; sums over the queries and the samples, O(m + n) numbers, come
    to the host, and go back in the queries' kind.
    """
    backend.require()
    kind = backend.on_card(problem.queries, problem.samples)
    double = _in_float64(problem)
    log_sums = backend.to_host(log_sum(double, **sizes))
    means = backend.to_host(mean(double, values, "nan", warn=False, **sizes))
    alone = np.isneginf(log_sums)
    slope = backend.to_host(cotangent).astype(np.float64, copy=False)
    slope = known_cotangent(slope, ~np.isnan(means).any(axis=1))

    def run(plan: Plan, nodes: np.ndarray, leaves: list[tuple[Kernel, int]], places: Places) -> tuple:
        totals = np.where(alone, np.inf, log_sums)
        return _run(double, plan, nodes, leaves, places, values, slope, means, totals, wrt, Sizes(**sizes))

    def again(few: Problem, rows: np.ndarray) -> LocalMeanGradient:
        return mean_vjp(few, backend.to_host(values), slope[rows], ("values", "sample_weight"), **sizes)

    limit = np.flatnonzero(alone & ~np.isnan(means).any(axis=1))
    *arrays, kernel = through_program(on_host(double), values.shape[1], limit, wrt, run, again)
    parts = [
        backend.give_back(x, kind) if name in wrt else None
        for name, x in zip(ARGUMENTS, arrays, strict=False)
    ]
    return LocalMeanGradient(*parts, kernel if "kernel" in wrt else None)


def _in_float64(problem: Problem) -> Problem:
    """The same problem, whose answers are float64; arrays are converted where they are read."""
    return replace(problem, dtype=np.dtype(np.float64))


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
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All sums: of the queries (m, .), of the samples (n, .), and of both together; places as on the processor."""
    T, (m, n), width = np.float64, (len(problem.queries), len(problem.samples)), values.shape[1]
    loaded = load(problem, plan, T)
    _, unit = multiplicities(SUM, problem, plan)
    totals = log_sums if loaded.log else log_sums - np.log(unit)
    arrays = (cotangent, means, gather_values(values, T), totals)
    pairs = _Pairs(loaded, Given(*map(backend.as_device, arrays), loaded.bias), m, n, sizes)
    of_queries, of_samples = np.zeros((m, places.queries)), np.zeros((n, places.samples))
    numbers = np.zeros(places.numbers)
    if "values" in wrt:
        share = adjoint(loaded.weigh, loaded.log, True, False, T)
        of_samples[:, :width] = pairs.sum(share, of_values(T), width, by_sample=True)
    if "sample_weight" in wrt:
        by_copies = adjoint(loaded.weigh, loaded.log, False, True, T)
        of_samples[:, width] = pairs.sum(by_copies, whole(T), 1, by_sample=True)[:, 0]
        of_samples[:, width] /= 1.0 if loaded.log else unit
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
