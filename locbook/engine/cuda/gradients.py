"""The gradient of the local mean on the card: the function of :mod:`locbook.engine.gradients`.

The sums of the weights and the means come from the reductions. Then each pair is weighed once more for each sum that
is asked for, of four columns at most (:mod:`locbook.engine.cuda.adjoints`), and added up where the answer stands, in
float64. Which sums those are is decided as on the processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...kernels import metrics
from ...kernels.base import Kernel, SoftmaxKernel
from .. import backward as g
from .. import program as p
from ..fused import LOG2_E
from ..gradients import (
    ARGUMENTS,
    LocalMeanGradient,
    follows_neighbors,
    known_cotangent,
    of_parameter,
    planned,
    through_bandwidth,
)
from ..plan import Plan
from ..problem import Problem
from ..reductions import check_range, fallback_kernel
from ..stream import FLOAT32_ERROR, float32_error
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
from .arrays import (
    FEW,
    cleared,
    converted,
    for_planning,
    gather,
    longest,
    problems_of,
    shifted,
    unit_of,
    zeros,
)
from .driver import Loaded, Sizes, accumulate, add, load, precision, threads_of
from .ready import Facts, Ready, make_ready
from .sums import Part, Span
from .weigh import cofactor, leaf_weight

#: Sums of a thread at once, and the distances whose derivatives are short enough for that; of others it makes one.
PANEL, SHORT = 4, (-1, metrics.EUCLIDEAN, metrics.MANHATTAN, metrics.PERIODIC)


class Owed(NamedTuple):
    """What is owed to each argument so far, on the card; None for what is not asked for.

    Attributes
    ----------
    queries, samples, values, sample_weight : arrays of float64, shapes (m, d), (n, d), (n, p) and (n, 1)
    """

    queries: Any
    samples: Any
    values: Any
    sample_weight: Any

    @classmethod
    def nothing(cls, problem: Problem, width: int, wrt: tuple[str, ...]) -> Owed:
        """Zeros, for ``width`` columns of values."""
        (m, d), n = problem.queries.shape, len(problem.samples)
        shapes = zip(cls._fields, ((m, d), (n, d), (n, width), (n, 1)), strict=True)
        return cls(*(zeros(*shape) if name in wrt else None for name, shape in shapes))


class _Pairs:
    """Sums over pairs, launched; times ``unit``, in which cotangents are given."""

    def __init__(self, problem: Problem, loaded: Loaded, given: Given, sizes: Sizes, unit: float):
        self.loaded, self.given, self.sizes, self.unit = loaded, given, sizes, unit
        self.m, self.n, self.problems = len(problem.queries), len(problem.samples), problems_of(problem)
        self.bad = backend.as_device(np.zeros(1, dtype=np.int32))

    def add(
        self,
        out: Any,
        owed: Callable,
        column: Callable,
        columns: np.ndarray,
        *,
        by_sample: bool = False,
        panel: int = PANEL,
        copies: float = 1.0,
    ) -> None:
        """Add sums for each query, or for each sample, over ``copies``, to ``columns`` of an array of the card."""
        loaded, sizes, T = self.loaded, self.sizes, self.loaded.T
        rows, over = (self.n, self.m) if by_sample else (self.m, self.n)
        threads, width = threads_of(rows, self.problems, sizes), len(columns)
        places = backend.as_device(np.asarray(columns, dtype=np.int64))

        def launch(made: Any, first: int, blocks: tuple, span: Span, part: Part) -> None:
            given = loaded.queries, loaded.samples, loaded.data, self.given, first, width - 1
            made[blocks, threads](*given, span, part)

        for first in range(0, width, panel):
            count = min(panel, width - first)
            some = partial(launch, pairs_kernel(owed, column, count, by_sample, T), first)
            state = accumulate(some, over, rows, count, threads, T, sizes, problems=self.problems)
            add(state.sums, first, places, self.unit / copies, out, self.bad)

    def widths(self, owed: Callable, *, by_sample: bool) -> np.ndarray:
        """What the bandwidths of the queries (m,), or of the samples (n,), are owed, on the host, where they are."""
        out = zeros(self.n if by_sample else self.m, 1)
        self.add(out, owed, whole(self.loaded.T), np.zeros(1), by_sample=by_sample)
        return out.copy_to_host()[:, 0]

    def total(self, owed: Callable, column: Callable, count: int, panel: int) -> np.ndarray:
        """Sums over all pairs (count,), on the host."""
        out = zeros(min(self.m, FEW), count)
        self.add(out, owed, column, np.arange(count), panel=panel)
        return out.copy_to_host().sum(axis=0)

    def add_of_host(self, out: Any, array: np.ndarray) -> None:
        """Add an array of the host."""
        sums = np.zeros((2, 1 + array.shape[1], len(array)))
        sums[0, 1:] = array.T
        add(backend.as_device(sums), 0, backend.as_device(np.arange(array.shape[1])), 1.0, out, self.bad)


def mean_vjp(
    problem: Problem,
    values: Any,
    cotangent: Any,
    wrt: tuple[str, ...] = ARGUMENTS,
    forward: tuple[Any, Any] | None = None,
    **sizes: int,
) -> LocalMeanGradient:
    """The vector-Jacobian product of the local mean; see :func:`locbook.engine.gradients.mean_vjp`.

    Arrays of the card, ``cotangent`` and ``forward`` among them, are read where they lie, and the derivatives are made
    there: in the queries' kind, float32 if queries, samples and values are. On NumPy arrays all answers are NumPy's,
    float64. The kernel's are of the host always, as its parameters are.
    """
    owed = Owed.nothing(problem, values.shape[1], wrt)
    kernel = add_vjp(owed, problem, values, cotangent, wrt, forward, sizes)
    n = len(problem.samples)
    return given_back_gradient(owed, (None, None, None, (n,)), kernel, problem, values, wrt)


def given_back_gradient(
    owed: Owed, shapes: tuple, kernel: tuple, problem: Problem, values: Any, wrt: tuple[str, ...]
) -> LocalMeanGradient:
    """In these shapes, in the kind of the queries and, on the card, the precision of queries, samples and values."""
    kind = backend.on_card(problem.queries, problem.samples)
    dtype = np.float32 if kind != "numpy" and _is_single(problem, values) else np.float64
    arrays = []
    for array, shape in zip(owed, shapes, strict=True):
        if array is not None:
            array = backend.give_back(converted(array, dtype), kind)
        arrays.append(array if array is None or shape is None else array.reshape(shape))
    kernel = tuple(k.astype(dtype, copy=False) if isinstance(k, np.ndarray) else k for k in kernel)
    return LocalMeanGradient(*arrays, kernel if "kernel" in wrt else None)


def _is_single(problem: Problem, values: Any) -> bool:
    return problem.dtype == np.float32 and backend.all_single(values)


def add_vjp(
    owed: Owed,
    problem: Problem,
    values: Any,
    cotangent: Any,
    wrt: tuple[str, ...],
    forward: tuple[Any, Any] | None,
    sizes: dict[str, int],
    *,
    together: bool = False,
) -> tuple | None:
    """Add what :func:`mean_vjp` gives to ``owed``, and give the derivatives by the kernel's parameters.

    ``together`` says that these are several problems; None, with nothing added, where one wants a closer look.
    """
    backend.require()
    seen, single = for_planning(problem), _is_single(problem, values)
    program, kernel = planned(seen, values.shape[1], wrt), None
    for here in (problem, _in_float64(problem))[not single :]:
        ready = make_ready(here, values, cotangent, forward, sizes)
        if together and (ready.facts.limit or ready.facts.broken):
            return None
        if ready.facts.broken:
            known = np.isin(np.arange(len(problem.queries)), ready.queries_of("broken"))
            known_cotangent(backend.to_host(cotangent), known)
        if here.dtype == np.float64 or _holds(problem, program[0], ready.facts):
            kernel = _run(here, seen, program, ready, owed, Sizes(**sizes))
        if kernel is not None:
            break
        forward = None  # means of float32 have not its digits
    if ready.facts.limit:
        _add_limits(owed, _in_float64(problem), values, ready, sizes)
    return kernel


def _in_float64(problem: Problem) -> Problem:
    """The same problem, whose answers are float64; arrays are converted where they are read."""
    return replace(problem, dtype=np.dtype(np.float64))


def _add_limits(owed: Owed, problem: Problem, values: Any, ready: Ready, sizes: dict[str, int]) -> None:
    """Add what the means that are limits owe: means of the nearest, which move with values and multiplicities."""
    if backend.on_card(problem.queries, problem.samples) == "numpy":
        check_range(problem)
    rows, d = ready.queries_of("limit"), problem.queries.shape[1]
    few = replace(
        problem,
        queries=gather(problem.queries, np.arange(d), np.float64, rows=rows),
        query_ids=problem.query_ids[rows],
        kernel=fallback_kernel(problem.kernel, "nearest"),
    )
    slope = gather(ready.cotangent, np.arange(values.shape[1]), np.float64, rows=rows)
    wrt = tuple(name for name in ("values", "sample_weight") if getattr(owed, name) is not None)
    add_vjp(owed._replace(queries=None, samples=None), few, values, slope, wrt, None, sizes)


def _holds(problem: Problem, plan: Plan, facts: Facts) -> bool:
    """Whether float32 holds the weights and the cotangents of a float32 problem.

    As for sums: numbers of moderate size, exponents near the largest that are off by :data:`FLOAT32_ERROR` at most, for
    all queries. The slope of a user's function is a difference, which wants the digits of float64.
    """
    if precision(problem, plan) is not np.float32 or plan.users:
        return False
    if facts.smallest < 1e-18 * facts.largest:
        return False
    largest = facts.log_sum
    if not plan.program.log:
        return largest < 80.0
    for leaf in problem.kernel.leaves():
        if isinstance(leaf, SoftmaxKernel):
            columns = leaf.columns(problem.samples.shape[1])
            sides = (longest(gather(a, columns, np.float32)) for a in (problem.queries, problem.samples))
            largest = max(largest, math.prod(sides) / leaf.temperature)
    return float32_error(largest * LOG2_E + 16.0, problem.samples.shape[1]) <= FLOAT32_ERROR


def _run(
    problem: Problem, seen: Problem, program: tuple, ready: Ready, owed: Owed, sizes: Sizes
) -> tuple | None:
    """All sums, added to ``owed``; the derivatives by the parameters, which are read off ``seen``, the planned problem.

    In the precision of the problem; None, and ``owed`` is zero again, where float32 does not hold a sum.
    """
    (plan, leaves, _, nodes), T = program, problem.dtype.type
    (m, width), d, n = ready.means.shape, problem.samples.shape[1], len(problem.samples)
    loaded = load(problem, plan, T)
    copies = 1.0 if loaded.log else unit_of(problem)  # what the reductions take out of multiplicities
    unit = 2.0 ** np.frexp(ready.facts.largest)[1] if T is np.float32 else 1.0
    slope = shifted(ready.cotangent, np.full((1, width), 1.0 / unit), np.zeros((1, width)), T)
    totals = shifted(ready.log_sums, np.ones((1, 1)), np.full((1, 1), np.log(copies)), T)
    given = Given(slope, ready.means, totals.reshape(m), ready.values, loaded.bias)
    pairs = _Pairs(problem, loaded, given, sizes, unit)
    if owed.values is not None:
        share = adjoint(loaded.weigh, loaded.log, True, False, T)
        pairs.add(owed.values, share, of_values(T), np.arange(width), by_sample=True)
    if owed.sample_weight is not None:
        by_copies = adjoint(loaded.weigh, loaded.log, False, True, T)
        pairs.add(owed.sample_weight, by_copies, whole(T), np.zeros(1), by_sample=True, copies=copies)
    kernel = []
    for leaf, k in leaves:
        node, step, widths, numbers = nodes[k], loaded.structure.steps[k], None, None
        panel = PANEL if step.metric in SHORT else 1
        through = to_width = _owed_to(loaded, k, T)
        if step.kind == p.DISTANCE:
            through, to_width = (of_distance(step, through, by_distance, T) for by_distance in (True, False))
        if node[g.QUERY_WIDTH] >= 0 or node[g.SAMPLE_WIDTH] >= 0:
            widths = pairs.widths(to_width, by_sample=node[g.SAMPLE_WIDTH] >= 0)
        if node[g.PLACE] >= 0:
            column, count = _parameter(loaded, leaf, k, node, T)
            scalar = step.kind == p.DISTANCE and node[g.BY_COLUMN] == 0
            numbers = pairs.total(to_width if scalar else through, column, count, panel)
        if node[g.QUERY_PLACE] >= 0:
            moved = np.zeros((m, d)), np.zeros((n, d))
            if follows_neighbors(plan, k):
                through_bandwidth(seen, plan, leaf, k, node, widths, *moved)
            for out, by_sample, more in zip((owed.queries, owed.samples), (False, True), moved, strict=True):
                if out is not None:
                    column = of_coordinate(step, by_sample, T)
                    pairs.add(out, through, column, leaf.columns(d), by_sample=by_sample, panel=panel)
                    if follows_neighbors(plan, k):
                        pairs.add_of_host(out, more)
        kernel.append(of_parameter(leaf, widths, numbers))
    if T is np.float32 and pairs.bad.copy_to_host()[0]:
        for array in owed:
            if array is not None:
                cleared(array)
        return None
    return tuple(kernel)


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
