r"""Gaussian local mean by direct differences: SDPA on the expanded square, KeOps, NumPy, ``torch.cdist``.

The bandwidth is :math:`\sqrt d / 2`: every sample counts, nothing can be left out.
"""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import locbook as lb

from .attention import SIZES, arrays, sdpa
from .case import AbsentError, Case, Cost, Data, Peer, by_block

#: Over SDPA, KeOps, NumPy and torch.cdist, in float32.
SDPA_TARGETS = (2.0, 1.5, 1.0)
KEOPS_TARGET, NUMPY_TARGET, CDIST_TARGET = 20.0, 7.0, 4.0


def bandwidth(d: int) -> float:
    return math.sqrt(d) / 2


def rate(data: Data) -> float:
    """Factor g of the squared distance in exp(-g s)."""
    return 1 / (2 * bandwidth(data.q.shape[1]) ** 2)


def ours(data: Data) -> np.ndarray:
    return lb.local_mean(data.q, data.x, data.v, lb.gaussian(bandwidth(data.q.shape[1])))


def reference(data: Data) -> np.ndarray:
    from scipy.spatial.distance import cdist

    x, v = data.x.astype(np.float64), data.v.astype(np.float64)

    def block(q: np.ndarray) -> np.ndarray:
        weights = np.exp(-rate(data) * cdist(q, x, "sqeuclidean"))
        return weights @ v / weights.sum(axis=1, keepdims=True)

    return by_block(block, data.q)


def expanded(columns: int) -> Callable[[Data], np.ndarray]:
    """SDPA: |q - x|^2 = |q|^2 - 2 (q x - |x|^2 / 2), with -|x|^2 / 2 as one more column; |q|^2 cancels."""

    def run(data: Data) -> np.ndarray:
        q = np.column_stack([data.q, np.ones(len(data.q), data.q.dtype)])
        x = np.column_stack([data.x, -0.5 * np.einsum("ij,ij->i", data.x, data.x)])
        return sdpa(q, x, data.v, columns, 2 * rate(data))

    return run


@cache
def _keops_sum(d: int, p: int) -> Callable:
    """KeOps' compiled reduction: the sums of weights times values and of weights."""
    os.environ.setdefault("KEOPS_CACHE_FOLDER", str(Path(tempfile.gettempdir()) / "keops"))
    os.environ.update(KEOPS_VERBOSE="0", PYKEOPS_VERBOSE="0")
    if not (shutil.which("c++") or shutil.which("g++") or os.environ.get("CXX")):
        raise AbsentError("a C++ compiler")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pykeops.numpy import Genred
    names = ["g = Pm(1)", f"q = Vi({d})", f"x = Vj({d})", f"v = Vj({p + 1})"]
    return Genred("Exp(-g * SqDist(q, x)) * v", names, reduction_op="Sum", axis=1)


def keops(data: Data) -> np.ndarray:
    d, p = data.q.shape[1], data.v.shape[1]
    values = np.column_stack([data.v, np.ones(len(data.v), data.v.dtype)])
    sums = _keops_sum(d, p)(np.array([rate(data)], data.q.dtype), data.q, data.x, values, backend="CPU")
    return sums[:, :-1] / sums[:, -1:]


def numpy_dense(data: Data) -> np.ndarray:
    """In place, and in the caller's dtype from the distances on: twice as fast as it is usually written."""
    from scipy.spatial.distance import cdist

    weights = cdist(data.q, data.x, "sqeuclidean").astype(data.q.dtype, copy=False)
    weights *= -rate(data)
    np.exp(weights, out=weights)
    return weights @ data.v / weights.sum(axis=1, keepdims=True)


def torch_dense(data: Data) -> np.ndarray:
    import torch

    q, x, v = (torch.from_numpy(array) for array in (data.q, data.x, data.v))
    weights = torch.cdist(q, x).square_().mul_(-rate(data)).exp_()
    return (weights @ v / weights.sum(dim=1, keepdim=True)).numpy()


def cost(d: int, p: int, dtype: str) -> Callable[[int, int], Cost]:
    """A pair: d subtractions and d multiply-adds, a scale, the exponential, p multiply-adds, the total's addition."""
    size = np.dtype(dtype).itemsize
    return lambda n, m: Cost(
        flops=n * m * (3 * d + 1 + 2 * p + 1),
        exponentials=n * m,
        bytes=size * (m * d + n * (d + p) + m * p),
        instructions=n * m * (2 * d + 1 + p + 1),
    )


def _peers(d: int, dtype: str, sdpa_target: float) -> tuple[Peer, ...]:
    def aim(target: float) -> float | None:
        return target if dtype == "float32" else None

    name = "torch.nn.functional.scaled_dot_product_attention"
    peers: list[Any] = [Peer(name, expanded(d + 1), aim(sdpa_target), "expanded square, d + 1 columns")]
    if d < 15 and dtype == "float32":
        peers.append(Peer(name, expanded(16), None, "expanded square, all filled up to 16 columns"))
    return (
        *peers,
        Peer("pykeops.numpy.Genred", keops, aim(KEOPS_TARGET)),
        Peer("numpy.exp", numpy_dense, aim(NUMPY_TARGET), "on scipy's cdist"),
        Peer("torch.cdist", torch_dense, aim(CDIST_TARGET)),
    )


def cases() -> list[Case]:
    return [
        Case(
            "gaussian", "Gaussian local mean", 10_000, 10_000, d, p, dtype,
            arrays(d, p), ours, reference, _peers(d, dtype, target), cost(d, p, dtype),
        )
        for dtype in ("float32", "float64")
        for (d, p), target in zip(SIZES, SDPA_TARGETS, strict=True)
    ]  # fmt: skip
