"""Chunks and blocks: samples are packed chunk by chunk, and blocks of queries walk a chunk's tiles as tasks.

A chunk is converted to float64 when its turn comes, so memory is O(m + n + chunk). A query's sums depend only on the
order of chunks and tiles, which depends on the columns alone: the answer is the same to the bit for any number of
threads and any block of queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from . import vectors
from .moments import linear_address
from .panels import PANEL, pack
from .plan import Plan
from .pool import STEP, USER, run_split, run_tasks
from .problem import Problem
from .pruned_sweep import pruned_sweep
from .reach import BLOCK as BLOCK_OF_PRUNING
from .reach import Order
from .sweep import (
    DENSE,
    DIAGONAL,
    MOMENTS,
    TOP,
    grouped_sweep,
    make_room,
    part_addresses,
    reduce_address,
    sweep,
)

#: Most queries of a task, and numbers in a chunk: 32 MB.
BLOCK, CHUNK = 256, 1 << 22
#: Numbers in a tile (samples times columns), and the most panels in it: with its weights it stays near the processor.
TILE, MOST_PANELS = 32768, 8


@dataclass
class State:
    """What a reduction fills, one row a query; all sums are in units of the exponential of ``shift``."""

    shift: np.ndarray
    total: np.ndarray
    sums: np.ndarray
    order: np.ndarray


def make_state(m: int, n_sums: int = 0, n_order: int = 0) -> State:
    """The state before the first sample."""
    return State(
        np.full(m, -np.inf),
        np.zeros(m),
        np.zeros((m, n_sums)),
        np.full((m, n_order), -1, dtype=np.int64),
    )


def contiguous(array: np.ndarray, dtype: type = np.float64) -> np.ndarray:
    """A block that compiled code knows by one type: contiguous and writeable (it is not written)."""
    block = np.ascontiguousarray(array, dtype=dtype)
    return block if block.flags.writeable else block.copy()


def slices(size: int, step: int) -> list[slice]:
    """Slices of ``step`` that cover ``range(size)``, the last one shorter."""
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]


def multiplicities(reduction: int, problem: Problem, plan: Plan) -> tuple[np.ndarray, float]:
    """Of the samples, or its logarithm, empty where all are 1; and the power of two that was taken out."""
    weight = problem.sample_weight
    if weight is None:
        return np.empty(0), 1.0
    if (
        reduction == TOP
    ):  # scores are not weights: only a multiplicity of 0 matters, and takes the sample away
        return np.where(weight > 0, 0.0, -np.inf), 1.0
    if plan.program.log:
        with np.errstate(divide="ignore"):
            return np.log(weight), 1.0
    unit = 2.0 ** np.clip(np.frexp(weight.max())[1], -1022, 1023)
    return weight / unit, unit


def run(
    reduction: int,
    problem: Problem,
    plan: Plan,
    state: State,
    *,
    values: np.ndarray | None = None,
    labels: np.ndarray | None = None,
    monomials: tuple[np.ndarray, np.ndarray] | None = None,
    order: np.ndarray | None = None,
    pruned: Order | None = None,
    block: int = BLOCK,
    chunk: int | None = None,
    tile: int | None = None,
) -> State:
    """Run one reduction over all queries and samples.

    Parameters
    ----------
    reduction : int
    problem : Problem
    plan : Plan
    state : State
        Filled in place.
    values : array, shape (n, p), optional
    labels : array of int64, shape (n,), optional
    monomials : (parents, dimensions), optional
    order : array of int64, shape (n,), optional
        Order in which the samples are visited; the rows' own when None.
    pruned : Order, optional
        Samples and queries in k-d order, to visit only what can matter.
    block, chunk, tile : int
        Sizes: queries of a task, samples of a chunk, panels of a tile; only the last two can touch the last bit of an
        answer.

    Raises
    ------
    ValueError
        If a user's profile or distance raised or gave a negative or NaN value, or weights overflow.
    """
    m, d = problem.queries.shape
    n = len(problem.samples)
    p = 0 if values is None else values.shape[1]
    if tile is None:
        tile = int(np.clip(TILE // (PANEL * max(d, p, 1)), 1, MOST_PANELS))
    if chunk is None:
        chunk = max(1, CHUNK // (PANEL * tile * max(d + p, 1)))
        chunk *= PANEL * tile
    block = max(1, block)
    multiplicity, unit = multiplicities(reduction, problem, plan)
    no_values, no_labels = np.empty((1, 0)), np.empty(0, np.int64)
    parents, dimensions = (no_labels, no_labels) if monomials is None else monomials
    reduce = None
    if reduction == MOMENTS and len(parents) > 1 and not parents.any():  # of local lines
        reduce = linear_address(len(parents) - 1, p)
    addresses = part_addresses(
        reduction, plan.program, reduce_address(reduction) if reduce is None else reduce
    )
    per_tile = tile if pruned is None else 1

    def walk(start: int, rows: slice | np.ndarray, columns: np.ndarray | slice, packed: tuple) -> int:
        """The queries of a task, from ``start`` in their order, and one packed chunk."""
        ids, panels, sample_data, weights, known, codes = packed
        query_ids = contiguous(problem.query_ids[rows], np.int64)
        count = len(query_ids)
        queries = np.empty((-(-count // vectors.ROWS) * vectors.ROWS, d))
        queries[:count] = problem.queries[rows]
        queries[count:] = queries[count - 1]
        masks = np.empty((len(plan.masks), count, len(ids)), dtype=np.bool_)
        for k, mask in enumerate(plan.masks):
            masks[k] = mask[rows][:, columns]
        parts = [part[rows] for part in (state.shift, state.total, state.sums, state.order)]
        given = (
            *(addresses, plan.program, queries, query_ids, contiguous(plan.query_data[:, rows])),
            *(panels, len(ids), ids, sample_data, masks, weights, known, codes, parents, dimensions),
        )
        room = make_room(plan.program.depth, len(parents), p, per_tile)
        if pruned is None:
            return sweep(*given, np.arange(-(-len(panels) // tile)), tile, room, *parts)
        bad = pruned_sweep(reduction == TOP, *given, *pruned.arguments(start), room, *parts)
        for whole, part in zip((state.shift, state.total, state.sums, state.order), parts, strict=True):
            whole[rows] = part
        return bad

    def packed(columns: np.ndarray | slice) -> tuple:
        ids = (
            np.arange(columns.start, columns.stop)
            if isinstance(columns, slice)
            else contiguous(columns, np.int64)
        )
        some = no_values[:, :0].repeat(len(ids), 0) if values is None else values[columns]
        return (
            ids,
            pack(problem.samples[columns], np.float64),
            contiguous(plan.sample_data[:, columns]),
            contiguous(multiplicity[columns]) if multiplicity.size else multiplicity,
            pack(some, np.float64, fill=0.0),
            no_labels if labels is None else contiguous(labels[columns], np.int64),
        )

    def walk_all(columns: np.ndarray | slice) -> int:
        now = packed(columns)
        return sum(run_split(lambda rows: walk(rows.start, rows, columns, now), m, block, work=work))

    def walk_groups(some: slice) -> int:
        """The problems of a task."""
        groups, count = problem.groups, some.stop - some.start
        rows = slice(some.start * groups.queries, some.stop * groups.queries)
        _, panels, _, weights, known, _ = packed(
            slice(some.start * groups.samples, some.stop * groups.samples)
        )
        masks = np.zeros((count, len(plan.masks), groups.queries, groups.n), dtype=np.bool_)
        for k, mask in enumerate(plan.masks):
            for g in range(count):
                masks[g, k, : groups.m] = mask[np.unravel_index(some.start + g, groups.lead)]
        parts = state.shift[rows], state.total[rows], state.sums[rows]
        queries = contiguous(problem.queries[rows])
        return grouped_sweep(
            *(addresses, plan.program, queries, panels, groups.n, weights, known, masks, tile),
            *(make_room(plan.program.depth, len(parents), p, tile), *parts),
        )

    met = n if problem.groups is None else problem.groups.samples  # by each query
    if reduction == DIAGONAL:
        met = 64
    work = float(m * met * (d + p + STEP * len(plan.program.steps)))
    work *= (USER if plan.users else 1) * (1.0 if pruned is None else pruned.share)
    with user_errors(problem, plan.users):
        if problem.groups is not None:
            most = max(1, chunk // problem.groups.samples)
            bad = sum(run_split(walk_groups, math.prod(problem.groups.lead), most, work=work))
        elif pruned is not None:
            block = max(BLOCK_OF_PRUNING, block // BLOCK_OF_PRUNING * BLOCK_OF_PRUNING)
            now = packed(pruned.samples)
            bad = sum(
                run_split(
                    lambda some: walk(some.start, pruned.queries[some], pruned.samples, now),
                    *(m, block, BLOCK_OF_PRUNING, work),
                )
            )
        elif reduction == DIAGONAL:  # a block meets its own rows only
            blocks = slices(m, min(block, 64))
            bad = sum(run_tasks(lambda rows: walk(rows.start, rows, rows, packed(rows)), blocks, work))
        else:
            bad = sum(walk_all(some if order is None else order[some]) for some in slices(n, chunk))
    if not plan.program.log:
        state.shift[:] = np.log(unit)
    check_user_values(problem, bad)
    if reduction < TOP:
        check_overflow(problem, state.total)
        if reduction == MOMENTS:
            check_overflow(problem, np.abs(state.sums))
    elif reduction == DENSE:
        check_overflow(problem, state.sums)
    return state


@contextmanager
def user_errors(problem: Problem, users: bool) -> Iterator[None]:
    """Name the kernel where a user's function raises."""
    try:
        yield
    except Exception as error:
        if not users:
            raise
        raise ValueError(
            f"kernel {problem.kernel!r}: a user's function raised an exception: {error!r}"
        ) from error


def check_user_values(problem: Problem, bad: int) -> None:
    """Refuse what a user's function gave where some of it is no weight or distance."""
    if bad:
        raise ValueError(
            f"kernel {problem.kernel!r}: a user's function gave values that are negative, NaN or infinite"
        )


def check_overflow(problem: Problem, weights: np.ndarray) -> None:
    """Refuse weights or log-weights that are NaN or infinite; a log-weight may be ``-inf``."""
    if not (weights < np.inf).all():
        raise ValueError(
            f"kernel {problem.kernel!r}: the weights overflow; scale the data or the kernel down"
        )
