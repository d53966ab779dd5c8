"""What this machine can do at most: multiply-adds, exponentials and bytes read, each second.

Small Numba loops without intrinsics, which LLVM turns into vectors; the best of several runs, on one thread and on
two. ``python -m benchmarks.peak`` prints them.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit

from .roofline import DEGREE

LANES, STEPS, CHAINS = 512, 16, 8
BANDWIDTH_BYTES = 1 << 28  # more than any cache
RUNS = 7


@njit(nogil=True, fastmath={"contract"}, error_model="numpy")
def _multiply_add(x, scale, shift, repeats):
    """For each number eight chains of multiply-adds, none of which waits for another."""
    for _ in range(repeats):
        for i in range(len(x)):
            a = x[i]
            b, c, d, e = a + shift, a - shift, a + scale, a - scale
            f, g, h = a * scale, a * shift, -a
            for _ in range(16):
                a, b, c, d = a * scale + shift, b * scale + shift, c * scale + shift, d * scale + shift
                e, f, g, h = e * scale + shift, f * scale + shift, g * scale + shift, h * scale + shift
            x[i] = ((a + b) + (c + d)) + ((e + f) + (g + h))


def _exponential(dtype: str) -> Callable:
    """A loop of exponentials, without care for what is too small or too large."""
    real, whole = np.dtype(dtype).type, {"float32": np.int32, "float64": np.int64}[dtype]
    digits, bias = {"float32": (23, 127), "float64": (52, 1023)}[dtype]
    log2_e = real(1.4426950408889634)
    rounder = real(1.5 * 2.0**digits)
    # Taylor's, from the highest on: others cost the same
    first, *rest = (real(math.log(2) ** k / math.factorial(k)) for k in range(DEGREE[dtype], -1, -1))
    rest = tuple(rest)

    @njit(nogil=True, fastmath={"contract"}, error_model="numpy")
    def exponentials(x, y, repeats):
        for _ in range(repeats):
            for i in range(len(x)):
                t = x[i] * log2_e
                k = (t + rounder) - rounder
                f = t - k
                p = first
                for c in rest:
                    p = p * f + c
                y[i] = p * whole(whole(whole(k) + whole(bias)) << whole(digits)).view(real)

    return exponentials


@njit(nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _read(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return total


def _best_rate(calls: list[Callable[[], Any]], work: float) -> float:
    """Work in a second of all calls together, each on its own thread and by that thread's CPU time: the best run."""
    rates = []
    for _ in range(RUNS):
        gate = threading.Barrier(len(calls))

        def rate(call: Callable[[], Any], gate: threading.Barrier = gate) -> float:
            gate.wait()
            start = time.thread_time()
            call()
            return work / (time.thread_time() - start)

        with ThreadPoolExecutor(len(calls)) as pool:
            rates.append(sum(pool.map(rate, calls)))
    return max(rates)


def _scaled(call: Callable[[int], Any], seconds: float = 0.03) -> int:
    """How often to repeat a loop so that it takes about ``seconds``; the first call compiles."""
    call(1)
    start = time.thread_time()
    call(100)
    return max(100, int(100 * seconds / max(time.thread_time() - start, 1e-9)))


def measure(threads: tuple[int, ...] = (1, 2), bandwidth_bytes: int = BANDWIDTH_BYTES) -> dict[str, Any]:
    """Peaks by dtype and number of threads.

    Returns
    -------
    dict
        ``gflops``, ``gexp_s`` (both ``{dtype: {threads: rate}}``) and ``bandwidth_gb_s`` (``{threads: rate}``).
    """
    found: dict[str, Any] = {"gflops": {}, "gexp_s": {}, "bandwidth_gb_s": {}}
    for dtype in ("float32", "float64"):
        real = np.dtype(dtype).type
        x = [np.linspace(0, 1, LANES, dtype=dtype) for _ in range(max(threads))]
        y = [np.empty_like(a) for a in x]
        exponential = _exponential(dtype)

        def add(k: int, repeats: int, x: list = x, real: type = real) -> None:
            _multiply_add(x[k], real(0.999), real(1e-4), repeats)

        def exp(k: int, repeats: int, x: list = x, y: list = y, loop: Callable = exponential) -> None:
            loop(x[k], y[k], repeats)

        for name, call, work in (("gflops", add, 2 * STEPS * CHAINS), ("gexp_s", exp, 1)):
            repeats = _scaled(lambda repeats, call=call: call(0, repeats))
            found[name][dtype] = {}
            for count in threads:
                calls = [lambda k=k, call=call, repeats=repeats: call(k, repeats) for k in range(count)]
                found[name][dtype][str(count)] = _best_rate(calls, work * LANES * repeats) / 1e9
    data = [np.ones(bandwidth_bytes // 8) for _ in range(max(threads))]
    _read(data[0][:8])
    for count in threads:
        calls = [lambda k=k: _read(data[k]) for k in range(count)]
        found["bandwidth_gb_s"][str(count)] = _best_rate(calls, 8 * len(data[0])) / 1e9
    return found


def lines(peak: dict[str, Any]) -> list[str]:
    """The peaks in words."""
    rows = [("multiply-adds, GFLOP/s", peak["gflops"]), ("exponentials, 10^9/s", peak["gexp_s"])]
    told = [
        f"{what}, {dtype}: " + ", ".join(f"{rate:.1f} on {k}" for k, rate in rates.items())
        for what, by_dtype in rows
        for dtype, rates in by_dtype.items()
    ]
    bandwidth = ", ".join(f"{rate:.1f} on {k}" for k, rate in peak["bandwidth_gb_s"].items())
    return [*told, f"bytes read, GB/s: {bandwidth}"]


if __name__ == "__main__":
    print("\n".join(lines(measure())))
