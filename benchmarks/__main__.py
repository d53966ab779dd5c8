"""Time locbook beside its peers: ``python -m benchmarks [--quick] [--output PATH] [--only TEXT]``.

Both run alternately in one process, on two threads, and their answers are compared before anything is timed. The first
call of locbook, which loads or compiles its machine code, is timed apart. What is printed is the peer's time over
locbook's, run by run: the median, and the lowest and highest. 2 means that locbook took half as long.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .oracles import Oracle

THREADS = 2
RUNS = {"full": 9, "quick": 3}


def use_two_threads() -> None:
    """Give every library two threads; before any of them is imported."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOCBOOK_NUM_THREADS")
    os.environ.update(dict.fromkeys(names, str(THREADS)))


def seconds(function: Callable[[Any], Any], data: Any) -> float:
    start = time.perf_counter()
    function(data)
    return time.perf_counter() - start


def measure(row: Oracle, *, quick: bool) -> dict[str, Any]:
    """Check one row of the table, then time it; ``error`` and no times where the answers differ."""
    n, m = (size // 4 if quick else size for size in row.size)
    dtype = row.dtypes[0]
    data = row.data(n, max(m, 1), dtype)
    first = seconds(row.ours, data)
    error = row.error(row.ours(data), row.reference(data))
    result = {
        "function": row.function, "case": row.case, "peer": row.peer,
        "n": n, "m": m, "dtype": dtype, "error": error, "bound": row.bound(dtype),
        "agree": error <= row.bound(dtype), "first_call_s": first,
    }  # fmt: skip
    if not result["agree"]:
        return result
    ours, theirs = [], []
    for _ in range(RUNS["quick" if quick else "full"]):
        ours.append(seconds(row.ours, data))
        theirs.append(seconds(row.theirs, data))
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    return result | {
        "ours_s": statistics.median(ours), "theirs_s": statistics.median(theirs),
        "ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios),
        "runs": len(ratios),
    }  # fmt: skip


def machine() -> dict[str, Any]:
    """Where the figures were made."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    versions = {}
    for name in ("locbook", "numpy", "numba", "scipy", "scikit-learn", "statsmodels", "torch", "faiss-cpu"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "processor": model, "cores": os.cpu_count(), "threads": THREADS, "system": platform.platform(),
        "python": platform.python_version(), "versions": versions,
    }  # fmt: skip


def line(result: dict[str, Any]) -> str:
    what = f"{result['function']} ({result['case']})"
    size = f"{result['n']} x {result['m']}" if result["m"] else str(result["n"])
    if not result["agree"]:
        times = f"DIFFERS: error {result['error']:.1e} > {result['bound']:.0e}"
    else:
        times = (
            f"{1e3 * result['ours_s']:9.2f} {1e3 * result['theirs_s']:9.2f} "
            f"{result['ratio']:8.2f}  {result['ratio_low']:.2f}-{result['ratio_high']:.2f}"
        )
    return f"{what:43s} {result['peer'].split('.')[0] + ' ' + result['peer'].split('.')[-1]:38s} {size:>12s} {times}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="a quarter of each size, fewer runs: under a minute"
    )
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).with_name("results.json"), help="JSON file"
    )
    options = parser.parse_args(arguments)
    use_two_threads()
    from .oracles import ORACLES

    print(
        f"{'function':43s} {'peer':38s} {'n x m':>12s} {'ours ms':>9s} {'peer ms':>9s} {'ratio':>8s}  low-high"
    )
    results, absent = [], set()
    for row in ORACLES:
        if options.only not in row.name:
            continue
        try:
            results.append(measure(row, quick=options.quick))
        except ImportError as error:
            absent.add(f"{row.package}: {error}")
            continue
        print(line(results[-1]), flush=True)
    for reason in sorted(absent):
        print(f"left out: {reason}")
    report = {"quick": options.quick, "machine": machine(), "results": results, "left_out": sorted(absent)}
    options.output.write_text(json.dumps(report, indent=1) + "\n")
    print(
        f"ratio: the peer's time over locbook's, median, lowest and highest of the runs; written to {options.output}"
    )
    return 0 if all(result["agree"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
