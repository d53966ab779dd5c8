"""Small problems: Gaussian local means of few points, where what a call costs beside the arithmetic counts.

A run is a hundred calls: one alone is too short for the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import gaussian
from .attention import arrays
from .case import Case, Cost, Data, Peer

CALLS = 100
SIZES = (30, 100, 300, 1000)


def calls(run: Callable[[Data], Any]) -> Callable[[Data], Any]:
    """As many calls; the last answer."""

    def again(data: Data) -> Any:
        for _ in range(CALLS - 1):
            run(data)
        return run(data)

    return again


def cost(n: int, m: int) -> Cost:
    one = vars(gaussian.cost(2, 1, "float64")(n, m))
    return Cost(**{name: CALLS * value for name, value in one.items()})


def cases() -> list[Case]:
    sdpa = "torch.nn.functional.scaled_dot_product_attention"
    peers = (
        Peer("numpy.exp", calls(gaussian.numpy_dense), None, "on scipy's cdist"),
        Peer(sdpa, calls(gaussian.expanded(3)), None, "expanded square, d + 1 columns"),
    )
    return [
        Case(
            "small", f"{CALLS} calls, {n:,} points", n, n, 2, 1, "float64",
            arrays(2, 1), calls(gaussian.ours), gaussian.reference, peers, cost,
        )
        for n in SIZES
    ]  # fmt: skip
