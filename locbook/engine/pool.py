"""The threads: a pool that sleeps between calls, and the number of threads.

Tasks are blocks of queries, or samples of the gradient; each calls compiled code that releases the GIL. The pool is
made of plain threads: it survives ``fork`` (a child makes its own), and several Python threads may use it at once. A
task must not depend on which thread runs it, so answers are the same for any number of them.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from .._validation import check_integer

T = TypeVar("T")
R = TypeVar("R")

#: Operations, each a lane of one vector instruction, that a task is worth: a quarter of a millisecond. Python takes a
#: tenth of one to begin and end a task, and threads do not run Python at once.
WORTH = 8_000_000
#: Operations for a pair of points, beside one for each column of points and values; for each step of a program instead;
#: and as many times as many are taken to be in a user's function.
PAIR, STEP, USER = 20, 100, 10

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
    """Set how many threads the engine uses at most; None goes back to the default. A small problem takes one.

    The answers do not depend on it.
    """
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


def split(count: int, most: int, unit: int = 1, work: float = math.inf) -> list[slice]:
    """Slices that cover ``range(count)``: whole units but the last, about ``most`` each, as much for each thread.

    ``work`` is how many operations they all take, roughly. Slices of less than :data:`WORTH` become fewer and longer,
    up to some 16 times as long.
    """
    units, threads = -(-count // unit), get_num_threads()
    fewest = 4 * threads if threads > 1 else 1
    tasks = -(-max(fewest, -(-count // most)) // threads) * threads
    if work < tasks * WORTH:
        tasks = max(int(work // WORTH), -(-count // (16 * most)), 1)
        tasks -= tasks % threads if tasks > threads else 0
    tasks = min(tasks, units)
    edges = [min(count, units * k // tasks * unit) for k in range(tasks + 1)] if count else []
    return [slice(start, stop) for start, stop in pairwise(edges)]


def run_tasks(task: Callable[[T], R], items: Sequence[T], work: float = math.inf) -> list[R]:
    """``[task(item) for item in items]``, by as many threads as there are if ``work`` is worth it (:func:`split`)."""
    threads = get_num_threads()
    if len(items) == 1 or threads == 1 or work < len(items) * WORTH:
        return [task(item) for item in items]
    return list(_get_pool(threads).map(task, items))


def run_split(
    task: Callable[[slice], R], count: int, most: int, unit: int = 1, work: float = math.inf
) -> list[R]:
    """The tasks of the slices that :func:`split` gives."""
    return run_tasks(task, split(count, most, unit, work), work)
