r"""The gradient of the local mean: what a number that depends on the means owes to each argument.

With the shares :math:`P_{ij} = s_j w_{ij} / \sum_k s_k w_{ik}`, the means :math:`y_i` and their cotangents
:math:`c_i = \partial L/\partial y_i`,

.. math::
    \frac{\partial L}{\partial v_j} = \sum_i P_{ij}\, c_i, \qquad
    \frac{\partial L}{\partial \log w_{ij}} = P_{ij}\; c_i^\top (v_j - y_i),

and the rest is the chain rule through the kernel, pair by pair (:mod:`locbook.engine.backward`). The sums of the
weights and the means come from the reductions; each pair is then weighed once more and forgotten, so memory is
O(m + n). Samples are dealt to a number of tasks that depends on the data alone, and each task meets the queries in
their order: the same bits for any number of threads. All of it is computed in float64, but for one Gaussian or softmax
leaf, for which :mod:`locbook.engine.fused_backward` may do the same in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.base import Kernel
from ..kernels.metrics import MATRIX
from . import backward as g
from . import program as p
from .driver import TILE, contiguous, multiplicities, slices
from .fused_backward import Sums, fused_vjp
from .leaf import is_limit
from .panels import PANEL, pack, unpack
from .plan import Plan, make_plan
from .pool import STEP, USER, run_tasks
from .problem import Problem
from .reductions import fallback_kernel, mean
from .slopes import SMOOTH, pull_address, pull_pairs, slope_address, user_slope_address
from .sweep import SUM
from .vectors import whole_rows

#: The arguments by which one may ask for the derivative.
ARGUMENTS = ("queries", "samples", "values", "sample_weight", "kernel")
#: Most tasks, queries of a block, panels of a tile, and numbers that all tasks keep of a kernel's parameters.
TASKS, BLOCK, MOST_PANELS, NUMBERS = 16, 1024, 8, 1 << 24
_NOWHERE = np.full(1, -1)


class LocalMeanGradient(NamedTuple):
    """Derivatives of a number by all that a local mean is made of; None for what was not asked for.

    Attributes
    ----------
    queries : array, shape (m, d)
    samples : array, shape (n, d)
    values : array, shape (n,) or (n, p)
    sample_weight : array, shape (n,)
        By the multiplicities; at 1 where none were given.
    kernel : tuple
        By the parameter of each leaf of the kernel, in the order of ``kernel.leaves()`` and in the parameter's shape:
        bandwidth, temperature, concentration, matrix or bias. None for a leaf that has none (``knn``, ``causal``, a
        constant) or whose bandwidth is computed from the samples.
    """

    queries: np.ndarray | None
    samples: np.ndarray | None
    values: np.ndarray | None
    sample_weight: np.ndarray | None
    kernel: tuple | None


@dataclass
class Places:
    """Where sums stand, and how many there are so far: for each query, for each sample, for all."""

    queries: int
    samples: int
    numbers: int

    def take(self, name: str, count: int) -> int:
        """Room for ``count`` sums more; returns where it begins."""
        start = getattr(self, name)
        setattr(self, name, start + count)
        return start


def mean_vjp(
    problem: Problem,
    values: np.ndarray,
    cotangent: np.ndarray,
    wrt: tuple[str, ...] = ARGUMENTS,
    forward: tuple[np.ndarray, np.ndarray] | None = None,
) -> LocalMeanGradient:
    """The vector-Jacobian product of the local mean.

    By the fused path where the kernel is one Gaussian or softmax leaf, be it under limits, else by the program.

    Parameters
    ----------
    problem : Problem
    values : array, shape (n, p)
    cotangent : array, shape (m, p)
        Ignored for a query without a neighbour.
    wrt : tuple of str
        Of :data:`ARGUMENTS`: what is asked for.
    forward : (means, log_sums), arrays of shapes (m, p) and (m,), optional
        Of the same problem, where they are known already.

    Returns
    -------
    LocalMeanGradient
        float64.

    Raises
    ------
    ValueError
        If the derivative by queries or samples is asked for and a distance has none.
    """
    if forward is None:
        forward = mean(problem, values, "nan", warn=False, with_log_sum=True)
    means, log_sums = forward
    alone = np.isneginf(log_sums)
    # without a weight a mean is a limit where the kernel is positive everywhere, else it is a policy's
    known = ~np.isnan(means).any(axis=1) & (~alone | (problem.kernel.full_support and problem.mask is None))
    cotangent = known_cotangent(cotangent, known)
    sums = fused_vjp(problem, values, cotangent, log_sums, means)
    if sums is not None:
        return of_leaf(problem, sums, wrt)
    problem, values = _in_float64(problem), values.astype(np.float64, copy=False)
    cotangent = cotangent.astype(np.float64, copy=False)
    totals = np.where(alone, np.inf, log_sums)
    *points, of_values, of_weight, kernel = _through_program(problem, values, cotangent, means, totals, wrt)
    limit = np.flatnonzero(alone & known)
    if limit.size:
        few = problem.rows(limit, fallback_kernel(problem.kernel, "nearest"))
        rest = mean_vjp(few, values, cotangent[limit], ("values", "sample_weight"))
        of_values, of_weight = of_values + rest.values, of_weight + rest.sample_weight
    return _asked((*points, of_values, of_weight, kernel), wrt)


def planned(problem: Problem, width: int, wrt: tuple[str, ...]) -> tuple[Plan, list, Places, np.ndarray]:
    """What is to be summed up for the gradient by the program, with ``width`` columns of values.

    Returns
    -------
    plan : Plan
    leaves : list of (Kernel, int)
        The leaves and their steps.
    places : Places
    nodes : array of int64, shape (steps, NODE_WIDTH)
    """
    plan, places = make_plan(problem, compiled=g.COMPILED), Places(0, width + 1, 0)
    leaves = list(_leaves(problem.kernel, plan))
    return plan, leaves, places, _nodes(problem, plan, leaves, places, wrt)


def _through_program(
    problem: Problem,
    values: np.ndarray,
    cotangent: np.ndarray,
    means: np.ndarray,
    log_sums: np.ndarray,
    wrt: tuple[str, ...],
) -> tuple:
    """The derivatives of any kernel, by the program; ``log_sums`` are inf for queries without a neighbour."""
    (m, d), width = problem.queries.shape, values.shape[1]
    plan, leaves, places, nodes = planned(problem, width, wrt)
    of_queries, of_samples, numbers = _run(
        problem, plan, leaves, nodes, places, values, cotangent, means, log_sums
    )
    queries, samples = np.zeros((m, d)), np.zeros((len(problem.samples), d))
    kernel = []
    for leaf, k in leaves:
        columns, node, widths = leaf.columns(d), nodes[k], None
        if node[g.QUERY_WIDTH] >= 0:
            widths = of_queries[:, node[g.QUERY_WIDTH]]
        if node[g.SAMPLE_WIDTH] >= 0:
            widths = of_samples[:, node[g.SAMPLE_WIDTH]]
        if node[g.QUERY_PLACE] >= 0:
            queries[:, columns] += of_queries[:, node[g.QUERY_PLACE] :][:, : len(columns)]
            samples[:, columns] += of_samples[:, node[g.SAMPLE_PLACE] :][:, : len(columns)]
            if follows_neighbors(plan, k):
                through_bandwidth(problem, plan, leaf, k, node, widths, queries, samples)
        kernel.append(of_parameter(leaf, widths, numbers[node[g.PLACE] :] if node[g.PLACE] >= 0 else None))
    return queries, samples, of_samples[:, :width], of_samples[:, width], tuple(kernel)


def _asked(found: tuple, wrt: tuple[str, ...]) -> LocalMeanGradient:
    return LocalMeanGradient(*(x if name in wrt else None for name, x in zip(ARGUMENTS, found, strict=True)))


def of_leaf(problem: Problem, sums: Sums, wrt: tuple[str, ...]) -> LocalMeanGradient:
    """The answer for a kernel of one leaf, and limits, which have no derivative."""
    leaves = list(problem.kernel.leaves())
    (leaf,) = (leaf for leaf in leaves if not is_limit(leaf))
    columns = leaf.columns(problem.queries.shape[1])
    queries, samples = sums.queries, sums.samples
    if not np.array_equal(columns, np.arange(problem.queries.shape[1])):
        queries, samples = np.zeros(problem.queries.shape), np.zeros(problem.samples.shape)
        queries[:, columns], samples[:, columns] = sums.queries, sums.samples
    weight = sums.log_weight
    if problem.sample_weight is not None:  # 0 where problems are filled up
        weight = np.divide(
            weight, problem.sample_weight, out=np.zeros(len(weight)), where=problem.sample_weight > 0
        )
    if isinstance(leaf, base.RadialKernel) and np.ndim(leaf.ruler) == 1:
        parameter = sums.log_width / leaf.ruler
    else:
        width = leaf.temperature if isinstance(leaf, base.SoftmaxKernel) else leaf.ruler
        parameter = float(sums.log_width.sum() / width)
    kernel = tuple(parameter if one is leaf else limit_slope(one) for one in leaves)
    return _asked((queries, samples, sums.values, weight, kernel), wrt)


def limit_slope(leaf: Kernel) -> float | None:
    """The derivative by the parameter of a limit: 0 by the width of a window."""
    return None if isinstance(leaf, base.CausalKernel) else 0.0


def known_cotangent(cotangent: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The cotangent, 0 for queries that have no mean; NaN for another query is an error."""
    broken = np.isnan(cotangent).any(axis=1)
    if (broken & known).any():
        row = int(np.argmax(broken & known))
        raise ValueError(f"cotangent contains NaN in row {row}, and that query has a neighbour")
    return cotangent if known.all() else np.where(known[:, None], cotangent, 0.0)


def _in_float64(problem: Problem) -> Problem:
    """The same problem in float64; queries that are the samples stay so."""
    samples = problem.samples.astype(np.float64, copy=False)
    same = problem.queries is problem.samples
    queries = samples if same else problem.queries.astype(np.float64, copy=False)
    return replace(problem, queries=queries, samples=samples, dtype=np.dtype(np.float64))


# -- what is summed up where -------------------------------------------------------------------------------------------


def _pushed(kernel: Kernel) -> Iterator[Kernel | None]:
    """Whose weights the steps push that push any: a leaf's, or a factor's (None)."""
    if not kernel.parts:
        yield kernel
    for part in kernel.parts:
        yield from _pushed(part)
    if isinstance(kernel, base.ScaledKernel):
        yield None


def _leaves(kernel: Kernel, plan: Plan) -> Iterator[tuple[Kernel, int]]:
    """The leaves and their steps."""
    pushing = np.flatnonzero(plan.program.steps[:, p.STEP] <= p.CONSTANT)
    for leaf, k in zip(_pushed(kernel), pushing, strict=True):
        if leaf is not None:
            yield leaf, int(k)


def _nodes(
    problem: Problem, plan: Plan, leaves: list[tuple[Kernel, int]], places: Places, wrt: tuple[str, ...]
) -> np.ndarray:
    """For each step its operands, and what the gradient computes there."""
    steps = plan.program.steps
    nodes = np.full((len(steps), g.NODE_WIDTH), -1, dtype=np.int64)
    nodes[:, [g.LEFT, g.RIGHT, g.SLOPE, g.PULL, g.BY_COLUMN, g.WHOLE]] = 0
    stack: list[int] = []
    for k, kind in enumerate(steps[:, p.STEP]):
        if kind in (p.ADD, p.MULTIPLY):
            nodes[k, g.RIGHT] = stack.pop()
        if kind > p.CONSTANT:
            nodes[k, g.LEFT] = stack.pop()
        stack.append(k)
    coordinates, parameters = "queries" in wrt or "samples" in wrt, "kernel" in wrt
    for leaf, k in leaves:
        node, size = nodes[k], len(leaf.columns(problem.queries.shape[1]))
        moves = isinstance(leaf, (base.RadialKernel, base.SoftmaxKernel, base.VonMisesKernel))
        if moves and coordinates:
            node[g.QUERY_PLACE], node[g.SAMPLE_PLACE] = (
                places.take("queries", size),
                places.take("samples", size),
            )
        ruler = leaf.bandwidth if isinstance(leaf, base.RadialKernel) else None
        if isinstance(ruler, VaryingBandwidth) and (parameters or (coordinates and ruler.values is None)):
            one = g.QUERY_WIDTH if ruler.side == "query" else g.SAMPLE_WIDTH
            node[one] = places.take("queries" if ruler.side == "query" else "samples", 1)
        elif parameters:
            _make_room(leaf, node, places, size)
        if isinstance(leaf, base.RadialKernel):
            _differentiate(leaf, node, coordinates=coordinates)
    _mark_whole(nodes, plan, leaves)
    return nodes


def _mark_whole(nodes: np.ndarray, plan: Plan, leaves: list[tuple[Kernel, int]]) -> None:
    """Mark the logarithms that are only multiplied, and all steps if none of the others asks for a cofactor."""
    if not plan.program.log:
        return
    kinds = plan.program.steps[:, p.STEP]
    multiplied = np.zeros(len(nodes), dtype=bool)
    multiplied[-1] = True
    for k in range(len(nodes) - 1, -1, -1):
        if kinds[k] in (p.MULTIPLY, p.HOLLOW, p.MASK):
            multiplied[nodes[k, [g.LEFT, g.RIGHT] if kinds[k] == p.MULTIPLY else [g.LEFT]]] |= multiplied[k]
    others = False
    for leaf, k in leaves:
        nodes[k, g.WHOLE] = multiplied[k] and leaf.logarithmic
        asked = nodes[k, g.SLOPE] != 0 or nodes[k, [g.QUERY_PLACE, g.PLACE]].max() >= 0
        others |= asked and not nodes[k, g.WHOLE]
    if not others:
        nodes[kinds > p.CONSTANT, g.WHOLE] = 1


def _make_room(leaf: Kernel, node: np.ndarray, places: Places, size: int) -> None:
    """Places for the sums of a leaf's parameter."""
    if isinstance(leaf, base.RadialKernel):
        node[g.BY_COLUMN] = int(np.ndim(leaf.ruler) > 0)
        node[g.PLACE] = places.take("numbers", size ** np.ndim(leaf.ruler))
    elif isinstance(leaf, (base.SoftmaxKernel, base.VonMisesKernel)):
        node[g.PLACE] = places.take("numbers", 1)
    elif isinstance(leaf, (base.DiscreteKernel, base.RelativeBiasKernel)):
        table = leaf.matrix if isinstance(leaf, base.DiscreteKernel) else leaf.bias
        node[g.PLACE] = places.take("numbers", table.size)


def _differentiate(leaf: base.RadialKernel, node: np.ndarray, *, coordinates: bool) -> None:
    """Say whether the slope of a leaf's profile is needed, and the pull of its distance."""
    if coordinates or node[g.BY_COLUMN] == 1:
        code = _metric_code(leaf)
        if code not in SMOOTH:
            raise ValueError(
                f"metric {leaf.metric!r} has no derivative by queries and samples; leave both out of wrt"
            )
        node[g.PULL] = 1
    node[g.SLOPE] = node[g.PULL] or node[[g.PLACE, g.QUERY_WIDTH, g.SAMPLE_WIDTH]].max() >= 0


def _metric_code(leaf: base.RadialKernel) -> int:
    return MATRIX if np.ndim(leaf.ruler) == 2 else leaf.metric.code


def _parts(plan: Plan, leaves: list[tuple[Kernel, int]], nodes: np.ndarray) -> np.ndarray:
    """The addresses of the parts of each step."""
    slopes, pulls = np.zeros((2, len(nodes)), dtype=np.int64)
    for leaf, k in leaves:
        if nodes[k, g.PULL]:
            moves, by_column = bool(nodes[k, g.QUERY_PLACE] >= 0), bool(nodes[k, g.BY_COLUMN])
            pulls[k] = pull_address(_metric_code(leaf), moves, by_column)
        if nodes[k, g.SLOPE] and leaf.named is not None:
            slopes[k] = slope_address(leaf.named.code)
        elif nodes[k, g.SLOPE]:
            slopes[k] = user_slope_address(leaf.function)
    steps = zip(plan.program.steps, nodes, pulls, slopes, strict=True)
    return np.array([g.parts_of(step, node, plan.program.log, *rest) for step, node, *rest in steps])


def follows_neighbors(plan: Plan, k: int) -> bool:
    """Whether the bandwidth of a step is measured to neighbours, which move it."""
    return bool((plan.measured_to.get(k, _NOWHERE) >= 0).any())


def through_bandwidth(
    problem: Problem,
    plan: Plan,
    leaf: base.RadialKernel,
    k: int,
    node: np.ndarray,
    widths: np.ndarray,
    queries: np.ndarray,
    samples: np.ndarray,
) -> None:
    """Add what goes through a kNN bandwidth, whose sums are ``widths``: the distance to each k-th neighbour."""
    step, rows, columns = plan.program.steps[k], plan.measured_to[k], leaf.columns(problem.queries.shape[1])
    by_query = leaf.ruler.side == "query"
    squared = (plan.query_data[step[p.QUERY_SLOT]] if by_query else plan.sample_data[step[p.SAMPLE_SLOT]]) / (
        (1 + 1e-12) * leaf.ruler.scale
    ) ** 2
    points, target = (problem.queries, queries) if by_query else (problem.samples, samples)
    panels = pack(problem.samples[np.maximum(rows, 0)], np.float64)
    here, there = np.zeros((len(rows), len(columns))), np.zeros((len(panels), len(columns), PANEL))
    alone, own = plan.program._replace(steps=plan.program.steps[k : k + 1]), node[None].copy()
    own[0, [g.QUERY_PLACE, g.SAMPLE_PLACE]] = 0
    one, two, three = (np.zeros(axes * (0,)) for axes in (1, 2, 3))  # what no pull looks at
    ids = np.zeros(0, dtype=np.int64)
    walk = g.Walk(
        program=alone, nodes=own, parts=own, empty=0, of_values=0, per_tile=1,
        rows=g.Rows(contiguous(points), ids, two, two, two, one, here),
        samples=g.Samples(panels, ids, two, one, three, there, one),
        masks=three.astype(np.bool_), scratch=g.make_scratch(1, len(columns), 1),
    )  # fmt: skip
    pull_pairs(walk, _metric_code(leaf), squared, np.where(rows >= 0, -widths / squared, 0.0))
    target[:, columns] += here
    chosen = np.flatnonzero(rows >= 0)
    np.add.at(samples, (rows[chosen, None], columns), unpack(there, len(rows))[chosen])


def of_parameter(leaf: Kernel, widths: np.ndarray | None, numbers: np.ndarray | None) -> Any:
    """The derivative by a leaf's parameter; None where there is none.

    From the sums by the bandwidths of the queries or the samples, or from those of all pairs, which may go on.
    """
    if isinstance(leaf, base.RadialKernel) and leaf.adaptive:
        return None
    if widths is not None:
        return -2.0 * widths / leaf.ruler.values
    if numbers is None:
        return None
    if isinstance(leaf, base.RadialKernel):
        if np.ndim(leaf.ruler) == 0:
            return float(-2.0 * numbers[0] / leaf.ruler)
        if np.ndim(leaf.ruler) == 1:
            return -numbers[: len(leaf.ruler)] / leaf.ruler
        inverse = np.linalg.inv(leaf.ruler)
        return -inverse.T @ numbers[: inverse.size].reshape(inverse.shape) @ inverse.T
    if isinstance(leaf, base.SoftmaxKernel):
        return float(-numbers[0] / leaf.temperature)
    if isinstance(leaf, base.VonMisesKernel):
        return float(numbers[0] / leaf.concentration)
    table = leaf.matrix if isinstance(leaf, base.DiscreteKernel) else leaf.bias
    return numbers[: table.size].reshape(table.shape).copy()


# -- the run -----------------------------------------------------------------------------------------------------------


def _run(
    problem: Problem,
    plan: Plan,
    leaves: list[tuple[Kernel, int]],
    nodes: np.ndarray,
    places: Places,
    values: np.ndarray,
    cotangent: np.ndarray,
    means: np.ndarray,
    log_sums: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All sums: of the queries (m, .), of the samples (n, .), and of both together."""
    m, d = problem.queries.shape
    n = len(problem.samples)
    panels = -(-n // PANEL)
    tasks = int(np.clip(NUMBERS // max(places.numbers, 1), 1, min(TASKS, panels)))
    of_task = -(-panels // tasks) * PANEL
    per_tile = int(np.clip(TILE // (PANEL * max(d, values.shape[1], 1)), 1, MOST_PANELS))
    copies, unit = multiplicities(SUM, problem, plan)

    def packed(columns: slice) -> g.Samples:
        x = pack(problem.samples[columns], np.float64)
        return g.Samples(
            panels=x,
            ids=np.arange(columns.start, columns.stop),
            data=contiguous(plan.sample_data[:, columns]),
            multiplicity=pack(copies[columns, None], np.float64).ravel() if copies.size else copies,
            values=pack(values[columns], np.float64, fill=0.0),
            sums=np.zeros((len(x), places.samples, PANEL)),
            numbers=np.zeros(places.numbers),
        )

    each_pair = 2 * (d + values.shape[1] + STEP * len(plan.program.steps))  # operations, about
    each_pair *= USER if plan.users else 1
    fixed = {"program": plan.program, "nodes": nodes, "parts": _parts(plan, leaves, nodes)}
    fixed |= g.addresses(plan.program, copies.size > 0)

    def passing(block: slice) -> g.Rows:
        """A block of queries; the sums are the task's."""
        totals = log_sums[block] if plan.program.log else log_sums[block] - np.log(unit)
        return g.Rows(
            whole_rows(contiguous(problem.queries[block])),
            contiguous(problem.query_ids[block], np.int64),
            contiguous(plan.query_data[:, block]),
            contiguous(cotangent[block]),
            contiguous(means[block]),
            contiguous(totals),
            np.zeros((0, 0)),
        )

    def walk(samples: g.Samples, rows: g.Rows, seen: list[np.ndarray]) -> np.ndarray:
        rows = rows._replace(sums=np.zeros((len(rows.ids), places.queries)))
        masks = np.zeros((len(seen), len(rows.ids), len(samples.ids)), dtype=np.bool_)
        for k, mask in enumerate(seen):
            masks[k, : mask.shape[0], : mask.shape[1]] = mask
        each = min(per_tile, len(samples.panels))
        scratch = g.make_scratch(len(nodes), d, each)
        g.walk_back(g.Walk(**fixed, rows=rows, samples=samples, masks=masks, scratch=scratch, per_tile=each))
        return rows.sums

    groups = problem.groups
    if groups is None:
        of_queries = np.zeros((m, places.queries))
        parts = slices(n, of_task)
        dealt = [packed(columns) for columns in parts]
        for block in slices(m, BLOCK):
            rows = passing(block)

            def task(k: int, rows: g.Rows = rows, block: slice = block) -> np.ndarray:
                return walk(dealt[k], rows, [mask[block, parts[k]] for mask in plan.masks])

            work = (block.stop - block.start) * n * each_pair
            for part in run_tasks(task, range(len(dealt)), work):
                of_queries[block] += part
    else:

        def one(k: int) -> tuple[g.Samples, np.ndarray]:
            """One of the problems."""
            some = packed(slice(k * groups.samples, (k + 1) * groups.samples))
            rows = passing(slice(k * groups.queries, (k + 1) * groups.queries))
            index = np.unravel_index(k, groups.lead)
            return some, walk(some, rows, [mask[index] for mask in plan.masks])

        found = run_tasks(one, range(math.prod(groups.lead)), m * groups.samples * each_pair)
        dealt = [some for some, _ in found]
        of_queries = np.concatenate([sums for _, sums in found])
    of_samples = np.concatenate([unpack(some.sums, len(some.ids)) for some in dealt])
    if not plan.program.log:
        of_samples[:, values.shape[1]] /= unit
    numbers = np.zeros(places.numbers)
    for some in dealt:
        numbers += some.numbers
    return of_queries, of_samples, numbers
