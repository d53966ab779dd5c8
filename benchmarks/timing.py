"""How a row is timed: the answers first, then interleaved runs on one thread and on two.

On one thread the clock is the CPU time of the process, which other processes do not disturb; on two it is the wall
clock. Between two runs there is a pause, in which the threads of the libraries go to sleep: some spin after their
work, and would take the next run's core.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import threadpoolctl

import locbook as lb

from .case import BOUND, AbsentError, Case, Peer

THREADS = (1, 2)
PAUSE_S = 0.03


@dataclass(frozen=True)
class Effort:
    """How often a row runs: ``most`` times, fewer (but ``least``) once a side has had ``seconds``."""

    most: int
    least: int
    seconds: float


FULL, QUICK = Effort(9, 3, 6.0), Effort(3, 1, 1.0)


def prepare() -> None:
    """Allow every library two threads; before any of them is imported."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOCBOOK_NUM_THREADS")
    os.environ.update(dict.fromkeys(names, str(max(THREADS))))


def set_threads(threads: int) -> None:
    """Give every library that is loaded this number of threads."""
    lb.set_num_threads(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    if "faiss" in sys.modules:
        sys.modules["faiss"].omp_set_num_threads(threads)
    threadpoolctl.threadpool_limits(threads)  # BLAS and OpenMP, KeOps' too


def seconds(call: Callable[[], Any], threads: int) -> float:
    """Time of one call, after a pause."""
    time.sleep(PAUSE_S)
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    call()
    return clock() - start


def interleaved(ours: Callable, theirs: list[Callable], threads: int, effort: Effort) -> list[dict[str, Any]]:
    """Times of ``ours()`` beside each of ``theirs``: all take turns; who has had its time drops out."""
    set_threads(threads)
    pairs = [[] for _ in theirs]
    spent = [0.0] * len(theirs)
    for run in range(effort.most):
        active = [k for k in range(len(theirs)) if run < effort.least or spent[k] < effort.seconds]
        if not active:
            break
        own = seconds(ours, threads)
        for k in active:
            pairs[k].append((own, seconds(theirs[k], threads)))
            spent[k] += pairs[k][-1][1]
    return [summary(pair) for pair in pairs]


def summary(pairs: list[tuple[float, float]]) -> dict[str, Any]:
    """Medians, and the ratio of theirs over ours: median, lowest, highest of the runs."""
    ratios = [theirs / ours for ours, theirs in pairs]
    return {
        "ours_s": statistics.median(ours for ours, _ in pairs),
        "theirs_s": statistics.median(theirs for _, theirs in pairs),
        "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
        "runs": len(pairs),
    }  # fmt: skip


def measure(
    case: Case, n: int, m: int, effort: Effort, peers: Sequence[Peer]
) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Check one piece of work, then time it beside these peers.

    Returns
    -------
    rows : list of dict
        One a peer. ``agree`` is False where an answer is further from the reference than ``bound``, locbook's or
        the peer's: then the row has errors and no times.
    absent : list of dict
        ``peer`` and ``needs``, of peers that are not installed.
    """
    if not peers:
        return [], []
    data = case.data(n, m)
    data.threads = max(THREADS)
    set_threads(data.threads)
    start = time.perf_counter()
    answer = case.ours(data)
    first = time.perf_counter() - start
    reference = case.reference(data)
    bound = BOUND[case.dtype] if case.bound is None else case.bound
    common = {
        "family": case.family, "work": case.work, "n": n, "m": m, "d": case.d, "p": case.p, "dtype": case.dtype,
        "bound": bound, "error_ours": case.error(answer, reference), "first_call_s": first,
    }  # fmt: skip
    cost = case.cost and case.cost(n, m)
    common |= {name: getattr(cost, name, None) for name in ("flops", "exponentials", "bytes", "instructions")}
    rows, absent, timed = [], [], []
    for peer in peers:
        try:
            theirs = peer.run(data)
        except ImportError as error:
            needs = str(error) if isinstance(error, AbsentError) else peer.package
            absent.append({"peer": peer.name, "needs": needs})
            continue
        row = common | {
            "name": case.name(peer), "peer": peer.name, "note": peer.note, "target": peer.target,
            "error_theirs": case.error(theirs, reference),
        }  # fmt: skip
        row["agree"] = bool(np.maximum(row["error_ours"], row["error_theirs"]) <= bound)
        rows.append(row)
        if row["agree"]:
            row["threads"] = {}
            timed.append((row, peer))
    if timed:
        for threads in THREADS:
            data.threads = threads
            calls = [partial(peer.run, data) for _, peer in timed]
            found = interleaved(partial(case.ours, data), calls, threads, effort)
            for (row, _), times in zip(timed, found, strict=True):
                row["threads"][str(threads)] = times
    return rows, absent
