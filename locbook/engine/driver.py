"""Blocks and threads: a block of queries is a task, and walks all samples in chunks.

Each task calls :func:`locbook.engine.sweep.sweep`, which releases the GIL, for one chunk after another; a chunk is
converted to float64 when its turn comes, so memory is O(m + n + block x chunk). A query's sums depend only on the
order of chunks and tiles, which depends on the columns alone: the answer is the same to the bit for any number of
threads and any block of queries.

The pool is made of plain threads that sleep between calls. It survives ``fork`` (a child makes its own), and several
Python threads may use it at once.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from .._validation import check_integer
from .plan import Plan
from .problem import Problem
from .sweep import DENSE, DIAGONAL, TOP, sweep

#: Queries in a block, and samples in a chunk: about a million pairs a call, some milliseconds.
BLOCK, CHUNK = 256, 4096
#: Numbers in a tile (samples times columns): it stays in the second-level cache.
TILE = 32768

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_threads: int | None = None


def _forget_pool() -> None:
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def get_num_threads() -> int:
    """Threads that the engine uses.

    The number set by :func:`set_num_threads`, else the environment's ``LOCBOOK_NUM_THREADS``, else all cores that
    the process may run on.
    """
    if _threads is not None:
        return _threads
    value = os.environ.get("LOCBOOK_NUM_THREADS")
    if value:
        if not value.isdecimal() or int(value) < 1:
            raise ValueError(f"LOCBOOK_NUM_THREADS must be a positive integer, got {value!r}")
        return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def set_num_threads(n_threads: int | None) -> None:
    """Set how many threads the engine uses; None goes back to the default. The answers do not depend on it."""
    global _threads, _pool
    checked = None if n_threads is None else check_integer(n_threads, "n_threads")
    with _lock:
        _threads, _pool = checked, None  # an old pool finishes what it has, then its threads end


def _get_pool(n_threads: int) -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None or _pool._max_workers != n_threads:
            _pool = ThreadPoolExecutor(n_threads, thread_name_prefix="locbook")
        return _pool


@dataclass
class State:
    """What a reduction fills, one row a query."""

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


def _float_block(array: np.ndarray) -> np.ndarray:
    """A float64 block that compiled code knows by one type: contiguous and writeable (it is not written)."""
    block = np.ascontiguousarray(array, dtype=np.float64)
    return block if block.flags.writeable else block.copy()


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
    block: int = BLOCK,
    chunk: int = CHUNK,
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
    block, chunk, tile : int
        Sizes; only the last two can touch the last bit of an answer.

    Raises
    ------
    ValueError
        If a user's profile or distance raised or gave a negative or NaN value, or weights overflow.
    """
    m, d = problem.queries.shape
    n = len(problem.samples)
    p = 0 if values is None else values.shape[1]
    if reduction == DIAGONAL:
        block = min(block, 64)  # a block meets its own rows only, so the pairs computed are n x block
    width = tile if tile is not None else int(np.clip(TILE // max(d, p, 1), 32, 512))
    block = max(1, min(block, -(-m // get_num_threads())))
    chunk = max(1, min(chunk, (1 << 22) // max(d, p, 1)))
    width = min(width, chunk)
    multiplicity = np.empty(0)
    if problem.sample_weight is not None:
        with np.errstate(divide="ignore"):
            multiplicity = np.log(problem.sample_weight) if plan.program.log else problem.sample_weight
        # scores are not weights: only a multiplicity of 0 matters, and takes the sample away
        if reduction == TOP:
            multiplicity = np.where(problem.sample_weight > 0, 0.0 if plan.program.log else 1.0, multiplicity)
        multiplicity = np.ascontiguousarray(multiplicity)
    no_values, no_labels = np.empty((chunk, 0)), np.empty(0, np.int64)
    parents, dimensions = (no_labels, no_labels) if monomials is None else monomials

    def task(start: int) -> int:
        rows = slice(start, min(start + block, m))
        queries = _float_block(problem.queries[rows])
        query_ids = problem.query_ids[rows]
        query_data = _float_block(plan.query_data[:, rows])
        parts = (state.shift[rows], state.total[rows], state.sums[rows], state.order[rows])
        bad = 0
        for first in range(0, n, chunk):
            some = rows if reduction == DIAGONAL else slice(first, min(first + chunk, n))
            columns = some if order is None else order[some]
            ids = np.arange(some.start, some.stop) if order is None else np.ascontiguousarray(columns)
            masks = np.empty((len(plan.masks), len(queries), len(ids)), dtype=np.bool_)
            for k, mask in enumerate(plan.masks):
                masks[k] = mask[rows][:, columns]
            bad += sweep(
                reduction,
                plan.program,
                queries,
                query_ids,
                _float_block(problem.samples[columns]),
                ids,
                query_data,
                _float_block(plan.sample_data[:, columns]),
                masks,
                _float_block(multiplicity[columns]) if multiplicity.size else multiplicity,
                no_values[: len(ids)] if values is None else _float_block(values[columns]),
                no_labels if labels is None else np.ascontiguousarray(labels[columns]),
                parents,
                dimensions,
                width,
                *parts,
            )
            if reduction == DIAGONAL:
                break
        return bad

    starts = range(0, m, block)
    threads = min(get_num_threads(), len(starts))
    bad = sum(_get_pool(get_num_threads()).map(task, starts)) if threads > 1 else sum(map(task, starts))
    if bad:
        raise ValueError(
            f"kernel {problem.kernel!r}: a user's function raised an exception, or gave values that are negative, "
            f"NaN or infinite ({bad} in all)"
        )
    if reduction < TOP:
        check_overflow(problem, state.total)
    elif reduction == DENSE:
        check_overflow(problem, state.sums)
    return state


def check_overflow(problem: Problem, weights: np.ndarray) -> None:
    """Refuse weights or log-weights that are NaN or infinite; a log-weight may be ``-inf``."""
    if not (weights < np.inf).all():
        raise ValueError(
            f"kernel {problem.kernel!r}: the weights overflow; scale the data or the kernel down"
        )
