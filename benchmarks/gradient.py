"""Gradient of the softmax local mean by queries, samples and values: the backward pass of PyTorch's SDPA.

Both sides have the answer of the forward pass at hand, which is not timed: the means and the logarithms of the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import locbook as lb

from .attention import SIZES
from .case import Case, Cost, Data, Peer, range_error

TARGETS = {"float32": (1.5, 1.5, 1.0), "float64": (1.5, 1.5, 1.0)}
Answer = tuple[np.ndarray, np.ndarray, np.ndarray]


def arrays(d: int, p: int) -> Callable[[np.random.Generator, int, int], Data]:
    """All standard normal."""

    def make(rng: np.random.Generator, n: int, m: int) -> Data:
        shapes = {"q": (m, d), "x": (n, d), "v": (n, p), "slope": (m, p)}
        return Data(**{name: rng.normal(size=shape) for name, shape in shapes.items()})

    return make


def ours(data: Data) -> Answer:
    kernel = lb.softmax(math.sqrt(data.q.shape[1]))
    if not hasattr(data, "forward"):
        data.forward = lb.local_mean(data.q, data.x, data.v, kernel, return_log_sum=True)
    found = lb.local_mean_vjp(
        data.slope, data.q, data.x, data.v, kernel, wrt=("queries", "samples", "values"), forward=data.forward
    )
    return found.queries, found.samples, found.values


def reference(data: Data) -> Answer:
    q, x, v, slope = (a.astype(np.float64) for a in (data.q, data.x, data.v, data.slope))
    scale = 1 / math.sqrt(q.shape[1])
    of_q, of_x, of_v = np.zeros(q.shape), np.zeros(x.shape), np.zeros(v.shape)
    for k in range(0, len(q), 500):
        some = slice(k, k + 500)
        scores = q[some] @ x.T * scale
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        pull = slope[some] @ v.T
        pull = weights * (pull - (weights * pull).sum(axis=1, keepdims=True)) * scale
        of_q[some] = pull @ x
        of_x += pull.T @ q[some]
        of_v += weights.T @ slope[some]
    return of_q, of_x, of_v


def sdpa(data: Data) -> Answer:
    import torch

    d, p = data.q.shape[1], data.v.shape[1]

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.nn.functional.pad(torch.from_numpy(array), (0, d - array.shape[1]))[None, None]

    if not hasattr(data, "graph"):
        inputs = [tensor(a).requires_grad_() for a in (data.q, data.x, data.v)]
        answer = torch.nn.functional.scaled_dot_product_attention(*inputs, scale=1 / math.sqrt(d))
        data.graph = answer, inputs, tensor(data.slope)
    answer, inputs, slope = data.graph
    found = torch.autograd.grad(answer, inputs, slope, retain_graph=True)
    of_q, of_x, of_v = (a[0, 0].numpy() for a in found)
    return of_q, of_x, of_v[:, :p]


def error(answer: Answer, wanted: Answer) -> float:
    """The largest of the three."""
    return max(range_error(a, b) for a, b in zip(answer, wanted, strict=True))


def cost(d: int, p: int, dtype: str) -> Callable[[int, int], Cost]:
    """A pair: three times d multiply-adds, twice p, a scale, the exponential, a subtraction and a product."""
    size = np.dtype(dtype).itemsize
    return lambda n, m: Cost(
        flops=n * m * (6 * d + 4 * p + 3),
        exponentials=n * m,
        bytes=2 * size * (m * (d + p) + n * (d + p)),
        instructions=n * m * (3 * d + 2 * p + 3),
    )


def cases() -> list[Case]:
    name = "torch.nn.functional.scaled_dot_product_attention"
    return [
        Case(
            "gradient", "gradient of the softmax local mean", 10_000, 10_000, d, p, dtype,
            arrays(d, p), ours, reference,
            (Peer(name, sdpa, target, "backward" + (", values filled up to d columns" if p < d else "")),),
            cost(d, p, dtype), error,
        )
        for dtype, targets in TARGETS.items()
        for (d, p), target in zip(SIZES, targets, strict=True)
    ]  # fmt: skip
