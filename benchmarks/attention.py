"""Softmax local mean, which is attention: PyTorch's ``scaled_dot_product_attention`` (SDPA)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import locbook as lb

from .case import Case, Cost, Data, Peer, by_block

SIZES = ((2, 1), (8, 8), (64, 64))
TARGETS = {"float32": (2.5, 2.0, 1.2), "float64": (2.0, 1.5, 1.2)}


def arrays(d: int, p: int) -> Callable[[np.random.Generator, int, int], Data]:
    """Queries, samples and values, all standard normal."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        return Data(q=rng.normal(size=(m, d)), x=rng.normal(size=(n, d)), v=rng.normal(size=(n, p)))

    return make


def ours(data: Data) -> np.ndarray:
    return lb.local_mean(data.q, data.x, data.v, lb.softmax(math.sqrt(data.q.shape[1])))


def reference(data: Data) -> np.ndarray:
    x, v = data.x.astype(np.float64), data.v.astype(np.float64)

    def block(q: np.ndarray) -> np.ndarray:
        scores = q @ x.T / math.sqrt(q.shape[1])
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return weights @ v / weights.sum(axis=1, keepdims=True)

    return by_block(block, data.q)


def sdpa(q: np.ndarray, x: np.ndarray, v: np.ndarray, columns: int, scale: float) -> np.ndarray:
    """SDPA on arrays that are filled with zeros up to ``columns``; without that for all that have them."""
    import torch

    def tensor(array: np.ndarray) -> torch.Tensor:
        missing = columns - array.shape[1]
        found = torch.from_numpy(array)[None, None]
        return torch.nn.functional.pad(found, (0, missing)) if missing else found

    answer = torch.nn.functional.scaled_dot_product_attention(tensor(q), tensor(x), tensor(v), scale=scale)
    return answer[0, 0, :, : v.shape[1]].numpy()


def attention(columns: int) -> Callable[[Data], np.ndarray]:
    return lambda data: sdpa(data.q, data.x, data.v, columns, 1 / math.sqrt(data.q.shape[1]))


def cost(d: int, p: int, dtype: str) -> Callable[[int, int], Cost]:
    """A pair: d multiply-adds, a scale, the exponential, p multiply-adds and the total's addition."""
    size = np.dtype(dtype).itemsize
    return lambda n, m: Cost(
        flops=n * m * (2 * d + 1 + 2 * p + 1),
        exponentials=n * m,
        bytes=size * (m * d + n * (d + p) + m * p),
        instructions=n * m * (d + 1 + p + 1),
    )


def cases() -> list[Case]:
    found = []
    for dtype, targets in TARGETS.items():
        for (d, p), target in zip(SIZES, targets, strict=True):
            # Values must have as many columns as queries: else SDPA takes a slower way with the m x n matrix.
            note = "values filled up to d columns" if p < d else ""
            name = "torch.nn.functional.scaled_dot_product_attention"
            peers = [Peer(name, attention(d), target, note)]
            if d < 16 and dtype == "float32":  # by far the fastest width of small ones
                peers.append(Peer(name, attention(16), None, "all filled up to 16 columns"))
            found.append(
                Case(
                    "attention", "softmax local mean", 10_000, 10_000, d, p, dtype,
                    arrays(d, p), ours, reference, tuple(peers), cost(d, p, dtype),
                )
            )  # fmt: skip
    return found
