"""Times on an NVIDIA card, beside PyTorch, KeOps and CuPy where they are installed. **Not yet run on a card.**

``python -m benchmarks.cuda`` prints the card's name, what it can do at most as small kernels measure it (bytes moved,
multiply-adds in float32 and float64), and a line for each piece of work: the time, the share of the least time that its
arithmetic and its bytes need at those peaks, the largest error against float64 on the processor, and the same of each
peer. All arrays are on the card before the clock starts; compilation is not timed.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import locbook as lb
from locbook import engine
from locbook.engine import Problem
from locbook.engine import cuda as ours
from locbook.engine.cuda import backend
from locbook.engine.cuda.backend import cuda

from .case import Cost, range_error

RUNS, CHAINS, STEPS = 9, 8, 4096
#: Bytes of each array of the copy, more than any cache; rows whose answers are checked.
COPIED, CHECKED = 1 << 29, 50
#: Queries and samples; columns of both and of the values.
SIZES = (20_000, 100_000)
SHAPES = ((2, 1), (8, 8), (64, 64))


def seconds(call: Callable[[], Any]) -> float:
    """Median wall time of a call, the card idle before and after."""
    call()
    times = []
    for _ in range(RUNS):
        cuda.synchronize()
        start = time.perf_counter()
        call()
        cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# -- peaks -----------------------------------------------------------------------------------------------------------


def bandwidth() -> float:
    """Bytes that a copy reads and writes in a second."""

    @cuda.jit
    def copy(source, target):
        step = cuda.gridDim.x * cuda.blockDim.x
        for i in range(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, source.size, step):
            target[i] = source[i]

    source, target = (cuda.to_device(np.zeros(COPIED // 4, np.float32)) for _ in range(2))
    return 2 * COPIED / seconds(lambda: copy[4096, 256](source, target))


def multiply_adds(T: type) -> float:
    """Floating-point operations in a second, two for each fused multiply-add, of chains that do not wait."""

    @cuda.jit
    def chains(out, scale, shift):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        a = T(i)
        b, c, d, e = a + shift, a - shift, a + scale, a - scale
        f, g, h = a * scale, a * shift, -a
        for _ in range(STEPS):
            a, b, c, d = a * scale + shift, b * scale + shift, c * scale + shift, d * scale + shift
            e, f, g, h = e * scale + shift, f * scale + shift, g * scale + shift, h * scale + shift
        out[i] = ((a + b) + (c + d)) + ((e + f) + (g + h))

    threads = 256 * 4096
    out = cuda.device_array(threads, T)
    spent = seconds(lambda: chains[4096, 256](out, T(0.999), T(1e-4)))
    return 2.0 * CHAINS * STEPS * threads / spent


# -- work ------------------------------------------------------------------------------------------------------------


def cost(m: int, n: int, d: int, p: int, item: int, *, product: bool) -> Cost:
    """A pair takes 2 operations a column (3 for a squared difference), 2 a value, and a few for the weight."""
    return Cost(
        m * n * ((2 if product else 3) * d + 2 * p + 4.0), 1.0 * m * n, item * (m * (d + p) + n * (d + p))
    )


def share(work: Cost, spent: float, flops: float, moved: float) -> float:
    """Of the time, what the multiply-adds or the bytes need at least; exponentials run in units of their own."""
    return max(work.flops / flops, work.bytes / moved) / spent


def peers(name: str, q: np.ndarray, x: np.ndarray, v: np.ndarray) -> Iterator[tuple[str, Callable, Callable]]:
    """Name of a peer, its call, and how its answer becomes NumPy's."""
    d = q.shape[1]
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        if torch.cuda.is_available():
            a, b, c = (torch.as_tensor(array, device="cuda") for array in (q, x, v))
            if name == "softmax":
                attention = torch.nn.functional.scaled_dot_product_attention
                given = a[None, None], b[None, None], c[None, None]
                yield "torch SDPA", lambda: attention(*given)[0, 0], lambda t: t.cpu().numpy()
            if importlib.util.find_spec("pykeops") is not None:
                from pykeops.torch import LazyTensor

                left, right, values = LazyTensor(a[:, None]), LazyTensor(b[None]), LazyTensor(c[None])
                score = (
                    (left | right) / d**0.5
                    if name == "softmax"
                    else -((left - right) ** 2).sum(-1) / (2.0 * d)
                )
                yield "KeOps", lambda: score.sumsoftmaxweight(values, axis=1), lambda t: t.cpu().numpy()
    if importlib.util.find_spec("cupy") is not None and name != "softmax":
        import cupy

        a, b, c = map(cupy.asarray, (q, x, v))

        def dense() -> Any:  # by blocks of queries, so that the weights have room
            parts = []
            for k in range(0, len(a), 1000):
                squared = ((a[k : k + 1000, None] - b[None]) ** 2).sum(-1) if d <= 4 else None
                if squared is None:
                    some = a[k : k + 1000]
                    squared = (some**2).sum(1)[:, None] + (b**2).sum(1) - 2 * some @ b.T
                w = cupy.exp(-squared / (2 * d))
                parts.append(w @ c / w.sum(1, keepdims=True))
            return cupy.concatenate(parts)

        yield "CuPy, dense", dense, cupy.asnumpy


def rows(peaks: dict[str, float]) -> Iterator[str]:
    """A line for each piece of work and who does it."""
    m, n = SIZES
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64"):
        for name in ("gaussian", "softmax"):
            for d, p in SHAPES:
                q, x = (rng.normal(size=(size, d)).astype(dtype) for size in (m, n))
                v = rng.normal(size=(n, p)).astype(dtype)
                kernel = lb.KERNELS[name](float(np.sqrt(d)))
                wide = [array.astype(np.float64) for array in (q[:CHECKED], x)]
                right = engine.mean(Problem.check(*wide, kernel), v.astype(np.float64))
                given = ours.check_problem(*map(cuda.to_device, (q, x)), kernel)
                values = cuda.to_device(v)
                work = cost(m, n, d, p, np.dtype(dtype).itemsize, product=name == "softmax")
                calls = [
                    ("locbook", lambda given=given, values=values: ours.mean(given, values), backend.to_host)
                ]
                for who, call, to_host in [*calls, *peers(name, q, x, v)]:
                    error = range_error(to_host(call())[:CHECKED], right)
                    spent = seconds(call)
                    part = share(work, spent, peaks[dtype], peaks["bytes"])
                    yield (
                        f"{name} d={d} p={p} {dtype} m={m} n={n}: {who} {1e3 * spent:.2f} ms, "
                        f"{100 * part:.0f} % of the peak, error {error:.1e}"
                    )


def main() -> None:
    """Measure and print."""
    ours.require()
    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    peaks = {"bytes": bandwidth(), "float32": multiply_adds(np.float32), "float64": multiply_adds(np.float64)}
    print(f"{name}, compute capability {device.compute_capability}")
    print(f"copy {peaks['bytes'] / 1e9:.0f} GB/s")
    for dtype in ("float32", "float64"):
        print(f"multiply-adds, {dtype}: {peaks[dtype] / 1e12:.1f} TFLOP/s")
    for line in rows(peaks):
        print(line, flush=True)


if __name__ == "__main__":
    main()
