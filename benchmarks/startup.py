"""Time the start: ``python -m benchmarks.startup [--runs N] [--output PATH]``.

Each time is taken in a fresh process. ``cold`` has an empty folder for Numba's cache, ``warm`` one that an earlier
process filled. Python's own bytecode is there in either case, as pip leaves it: it lies in a temporary folder, and an
uncounted process writes it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COLD_RUNS = 3

#: What is timed, its target in seconds, and how the table calls it.
TARGETS = {
    "import_numba": (None, "import numba"),
    "import_locbook": (1.0, "import locbook"),
    "first_call_cold": (3.0, "first call, cold cache"),
    "first_call_warm": (1.2, "first call, warm cache"),
    "second_profile": (1.0, "second user profile"),
}
#: First calls of other parts of the engine, each with an empty cache; the target is that of the default kernel.
OTHERS = {
    "pruned": "a Gaussian that sees few samples",
    "compact": "a compact kernel that sees few",
    "general": "a sum of two kernels",
    "own": "a user's profile",
    "nearest": "the 5 nearest",
    "distance": "another distance",
    "causal": "causal attention",
    "line": "a local line",
    "weights": "the weights written down",
    "gradient": "the gradient",
    "any gradient": "the gradient of any other kernel",
}


def cache_files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def session() -> dict[str, Any]:
    """One process of a user: seconds of its first steps, and what later calls with other arguments compile."""
    import numpy as np
    from numba.core import event

    import locbook as lb

    folder = Path(os.environ["NUMBA_CACHE_DIR"])
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    seconds: dict[str, float] = {}
    compiled: dict[str, dict[str, float]] = {}

    def timed(name: str, call: Callable[[], Any]) -> None:
        files, start = cache_files(folder), time.perf_counter()
        with event.install_recorder("numba:compile") as recorder:
            call()
        seconds[name] = time.perf_counter() - start
        functions = sum(kind.is_start for _, kind in recorder.buffer)
        compiled[name] = {"functions": functions, "files": cache_files(folder) - files}

    own, other = (lambda s: 1.0 / (1.0 + s)), (lambda s: 1.0 / (1.0 + s * s))
    timed("first_call", lambda: lb.local_mean(x[:100], x, y, lb.gaussian(0.5)))
    timed("first_profile", lambda: lb.local_mean(x[:100], x, y, lb.Kernel(profile=own, bandwidth=0.5)))
    timed("second_profile", lambda: lb.local_mean(x[:100], x, y, lb.Kernel(profile=other, bandwidth=0.5)))
    timed("new bandwidth", lambda: lb.local_mean(x[:100], x, y, lb.gaussian(0.7)))
    timed("sample_weight", lambda: lb.local_mean(x[:100], x, y, lb.gaussian(0.7), sample_weight=y**2))
    timed("batch of 1", lambda: lb.local_mean(x[:1], x, y, lb.gaussian(0.7)))
    timed("batch of 1000", lambda: lb.local_mean(x, x, y, lb.gaussian(0.7)))
    return {"seconds": seconds, "compiled": compiled}


def other(name: str) -> float:
    """Seconds of one of :data:`OTHERS` in this process."""
    import numpy as np

    import locbook as lb

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20_000, 2)), rng.normal(size=20_000)
    few = x[:1000], x[:1000], y[:1000]
    calls: dict[str, Callable[[], Any]] = {
        "pruned": lambda: lb.local_mean(x, x, y, lb.gaussian(0.01)),
        "compact": lambda: lb.local_mean(x, x, y, lb.epanechnikov(0.05)),
        "general": lambda: lb.local_mean(*few, lb.gaussian(0.5) + lb.cauchy(1.0)),
        "own": lambda: lb.local_mean(*few, lb.Kernel(lambda s: 1.0 / (1.0 + s), bandwidth=0.5)),
        "nearest": lambda: lb.local_mean(*few, lb.knn(5)),
        "distance": lambda: lb.local_mean(*few, lb.gaussian(0.5, metric="manhattan")),
        "causal": lambda: lb.local_mean(*few, lb.softmax(on=1) * lb.causal(on=0)),
        "line": lambda: lb.engine.moments(
            lb.engine.Problem.check(*few[:2], lb.gaussian(0.5)), few[2][:, None]
        ),
        "weights": lambda: lb.local_weights(*few[:2], lb.gaussian(0.5)),
        "gradient": lambda: lb.local_mean_vjp(y[:1000], *few, lb.gaussian(0.5)),
        "any gradient": lambda: lb.local_mean_vjp(y[:1000], *few, lb.cauchy(0.5)),
    }
    start = time.perf_counter()
    calls[name]()
    return time.perf_counter() - start


def fresh(code: str, environment: dict[str, str]) -> Any:
    """What a fresh process prints as JSON."""
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(run.stdout)


def measure(runs: int = 20) -> dict[str, Any]:
    """Seconds of each step (best and median), functions and files that a new argument compiles, files in the cache."""
    from_session = "import json; from benchmarks.startup import session; print(json.dumps(session()))"
    import_only = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        base["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")

        def in_cache(cache: str, code: str = from_session) -> Any:
            (folder / cache).mkdir(exist_ok=True)
            return fresh(code, base | {"NUMBA_CACHE_DIR": str(folder / cache)})

        in_cache("uncounted")
        cold = [in_cache(f"cold{k}") for k in range(COLD_RUNS)]
        files = {"1": cache_files(folder / "cold0")}
        warm = [in_cache("cold0") for _ in range(runs - 1)]
        files[str(runs)] = cache_files(folder / "cold0")
        imports = [
            [in_cache("cold0", import_only.format(module)) for module in ("numba", "locbook")]
            for _ in range(runs)
        ]
        others = {
            name: [
                in_cache(f"{name}{k}", f"from benchmarks.startup import other; print(other({name!r}))")
                for k in range(COLD_RUNS)
            ]
            for name in OTHERS
        }
    samples = {
        "import_numba": [pair[0] for pair in imports],
        "import_locbook": [pair[1] for pair in imports],
        "first_call_cold": [run["seconds"]["first_call"] for run in cold],
        "first_call_warm": [run["seconds"]["first_call"] for run in warm],
        "second_profile": [run["seconds"]["second_profile"] for run in warm],
    }
    return {
        "seconds": {
            key: {
                "best": min(times),
                "median": statistics.median(times),
                "runs": len(times),
                "target": TARGETS[key][0],
            }
            for key, times in samples.items()
        },
        "first_calls": {
            name: {"best": min(times), "median": statistics.median(times), "runs": len(times)}
            for name, times in others.items()
        },
        "compiled": warm[-1]["compiled"],
        "cache_files": files,
    }


def print_table(result: dict[str, Any]) -> None:
    print(f"{'seconds in a fresh process':<30}{'best':>8}{'median':>8}{'runs':>6}{'target':>8}")
    for key, row in result["seconds"].items():
        target = "" if row["target"] is None else f"{row['target']:.1f}"
        verdict = "  MISSED" if row["target"] is not None and row["median"] > row["target"] else ""
        print(
            f"{TARGETS[key][1]:<30}{row['best']:>8.2f}{row['median']:>8.2f}{row['runs']:>6}{target:>8}{verdict}"
        )
    print(f"\n{'first call of, cold cache':<40}{'best':>8}{'median':>8}{'target':>8}")
    target = TARGETS["first_call_cold"][0]
    for name, row in result["first_calls"].items():
        verdict = "  MISSED" if row["median"] > target else ""
        print(f"{OTHERS[name]:<40}{row['best']:>8.2f}{row['median']:>8.2f}{target:>8.1f}{verdict}")
    print(f"\n{'compiled, warm cache':<30}{'functions':>10}{'files':>8}{'target':>8}")
    for name, row in result["compiled"].items():
        is_new_argument = name.startswith(("new", "sample", "batch"))
        verdict = "  MISSED" if is_new_argument and any(row.values()) else ""
        print(
            f"{name:<30}{row['functions']:>10}{row['files']:>8}{'0' if is_new_argument else '':>8}{verdict}"
        )
    first, last = result["cache_files"].values()
    print(f"\nfiles in the cache after {' and '.join(result['cache_files'])} processes: {first} and {last}")
    if last != first:
        print("MISSED: the cache grows")


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="processes on the warm cache (default 20)")
    parser.add_argument("--output", type=Path, help="where to write the figures as JSON")
    options = parser.parse_args(arguments)
    if options.runs < 2:
        parser.error(f"--runs must be at least 2, got {options.runs}")
    result = measure(options.runs)
    print_table(result)
    if options.output:
        options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


if __name__ == "__main__":
    main()
