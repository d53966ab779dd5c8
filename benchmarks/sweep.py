"""Cost of a pair in the Gaussian local mean against n, d and p, on one thread: what the book draws."""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import numpy as np

from . import gaussian
from .attention import arrays
from .case import Data
from .roofline import least_seconds
from .timing import Effort, seconds, set_threads

M = 1000
AT = {"n": 10_000, "d": 3, "p": 1}
AXES = {
    "n": (1_000, 3_000, 10_000, 30_000, 100_000),
    "d": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "p": (1, 2, 4, 8, 16, 32, 64, 128, 256),
}


def measure(
    peak: dict[str, Any], effort: Effort, m: int = M, axes: dict[str, tuple] = AXES
) -> list[dict[str, Any]]:
    """One point an axis, value and dtype: ``ns_per_pair``, and ``ns_least`` by the roofline."""
    set_threads(1)
    points = []
    for dtype in ("float32", "float64"):
        for axis, values in axes.items():
            for value in values:
                at = AT | {axis: value}
                n, d, p = at["n"], at["d"], at["p"]
                made = vars(arrays(d, p)(np.random.default_rng(0), n, m))
                data = Data(**{name: np.ascontiguousarray(a, dtype=dtype) for name, a in made.items()})
                run = partial(gaussian.ours, data)
                run()
                times = [seconds(run, 1) for _ in range(effort.most)]
                point = {"axis": axis, "n": n, "m": m, "d": d, "p": p, "dtype": dtype}
                cost = vars(gaussian.cost(d, p, dtype)(n, m)) | {"dtype": dtype}
                least, _ = least_seconds(cost, peak, 1)
                point["ns_per_pair"] = 1e9 * statistics.median(times) / (n * m)
                points.append(point | {"ns_least": 1e9 * least / (n * m)})
    return points
