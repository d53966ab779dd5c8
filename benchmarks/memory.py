"""Growth of resident memory in one large local mean, in a fresh process.

``python -m benchmarks.memory N M D`` prints it in MB. The code is compiled by a small call first: what counts is what
the arrays of a large problem ask for.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import locbook as lb

N, M, D = 100_000, 10_000, 3
TARGET_MB = 100.0
NAME = "memory: Gaussian local mean float64, growth of resident memory"


def peak_mb() -> float:
    """Most memory that was resident since the last reset.

    On Linux not by ``getrusage``, which a process starts with the peak of the one that started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return next(
            int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if "VmHWM" in line
        )
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def reset_peak() -> None:
    """Give back what compiling left free, and forget its peak, where the system can (Linux)."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    switch = Path("/proc/self/clear_refs")
    if switch.exists():
        switch.write_text("5")


def growth_mb(call: Callable[[], Any]) -> float:
    """By how much resident memory grew at most in a call."""
    reset_peak()
    before = peak_mb()
    call()
    return peak_mb() - before


def growth_of_local_mean(n: int, m: int, d: int) -> float:
    rng = np.random.default_rng(0)
    q, x, y = rng.normal(size=(m, d)), rng.normal(size=(n, d)), rng.normal(size=n)
    lb.local_mean(q[:300], x[:10_000], y[:10_000], lb.gaussian(0.5))
    return growth_mb(lambda: lb.local_mean(q, x, y, lb.gaussian(0.5)))


def measure(n: int = N, m: int = M, d: int = D) -> dict[str, Any]:
    """The row of the table."""
    command = [sys.executable, "-m", "benchmarks.memory", str(n), str(m), str(d)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    return {
        "name": NAME, "family": "memory", "work": "growth of resident memory", "n": n, "m": m, "d": d, "p": 1,
        "dtype": "float64", "grown_mb": float(run.stdout), "target_mb": TARGET_MB,
    }  # fmt: skip


if __name__ == "__main__":
    print(growth_of_local_mean(*map(int, sys.argv[1:])))
