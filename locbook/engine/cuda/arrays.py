"""Arrays in the form that kernels read: the columns of a program side by side, in one precision.

An array that is on the card already, in that precision and row after row, is read where it lies; all else is copied
once, which takes O(m + n) memory.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ...kernels import base
from ..plan import Plan
from ..problem import Problem
from . import backend
from .backend import cuda
from .weigh import Data

#: Threads of the small kernels that copy, merge and finish.
THREADS = 128


def grid(size: int, threads: int = THREADS) -> tuple[int, int]:
    """Blocks and threads for so many pieces of work."""
    return max(1, -(-size // threads)), threads


@lru_cache
def gather_kernel(transposed: bool) -> Any:
    """Copy columns, and convert: ``out[r, c] = array[r * step, columns[c]]``, or ``out[c, r]``."""

    @backend.kernel
    def gather(array, columns, step, out):
        rows = out.shape[1] if transposed else out.shape[0]
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        row, c = place // columns.size, place % columns.size
        if row < rows:
            if transposed:
                out[c, row] = array[row * step, columns[c]]
            else:
                out[row, c] = array[row * step, columns[c]]

    return gather


def gather(array: Any, columns: np.ndarray, T: type, *, transposed: bool = False, step: int = 1) -> Any:
    """Some columns of an array (n, d), and every ``step``-th row, as a device array (n, c), or (c, n)."""
    whole = step == 1 and np.array_equal(columns, np.arange(array.shape[1]))
    if backend.kind_of(array) == "numpy":
        some = np.asarray(array)[::step][:, columns]
        return backend.as_device(np.ascontiguousarray(some.T if transposed else some, dtype=T))
    array = backend.as_device(array)
    if whole and not transposed and array.dtype == T and array.is_c_contiguous():
        return array
    rows = -(-array.shape[0] // step)
    out = cuda.device_array((len(columns), rows) if transposed else (rows, len(columns)), T)
    given = array, backend.as_device(np.asarray(columns, dtype=np.int64)), step, out
    gather_kernel(transposed)[grid(rows * len(columns))](*given)
    return out


@lru_cache
def range_kernel() -> Any:
    """Smallest and largest value of each column, over the rows of each block that take part."""

    @backend.kernel
    def ranges(values, bias, nothing, low, high):
        c, rows = cuda.threadIdx.x, cuda.gridDim.x
        while c < values.shape[1]:
            least, most = low[cuda.blockIdx.x, c], high[cuda.blockIdx.x, c]
            for j in range(cuda.blockIdx.x, values.shape[0], rows):
                value = values[j, c]
                if bias[j] > nothing and value == value:
                    least, most = min(least, value), max(most, value)
            low[cuda.blockIdx.x, c], high[cuda.blockIdx.x, c] = least, most
            c += cuda.blockDim.x

    return ranges


def column_ranges(values: Any, bias: Any, nothing: float, blocks: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """Range of each column of values (n, p) over the samples whose ``bias`` is above ``nothing``, float64."""
    shape, T = (min(blocks, values.shape[0]), values.shape[1]), values.dtype.type
    low, high = (backend.as_device(np.full(shape, end, dtype=T)) for end in (np.inf, -np.inf))
    range_kernel()[shape[0], min(THREADS, max(1, shape[1]))](values, bias, T(nothing), low, high)
    return low.copy_to_host().min(0).astype(np.float64), high.copy_to_host().max(0).astype(np.float64)


@lru_cache
def length_kernel(T: type) -> Any:
    """Length of each row."""
    zero = T(0)

    @backend.kernel
    def lengths(array, out):
        row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if row < out.size:
            total = zero
            for c in range(array.shape[1]):
                total += array[row, c] * array[row, c]
            out[row] = T(math.sqrt(total))

    return lengths


def lengths(array: Any) -> np.ndarray:
    """Length of each row of a device array (n, d), float64, on the host."""
    out = cuda.device_array(array.shape[0], array.dtype)
    length_kernel(array.dtype.type)[grid(array.shape[0])](array, out)
    return out.copy_to_host().astype(np.float64)


# -- problems --------------------------------------------------------------------------------------------------------


def on_host(problem: Problem) -> Problem:
    """The same problem with NumPy arrays."""
    samples = backend.to_host(problem.samples)
    queries = samples if problem.queries is problem.samples else backend.to_host(problem.queries)
    mask = None if problem.mask is None else backend.to_host(problem.mask)
    return replace(problem, queries=queries, samples=samples, mask=mask)


def for_planning(problem: Problem, *, looks: bool | None = None) -> Problem:
    """A problem that the plan can be made of: without the coordinates where it does not look at them.

    It does, unless ``looks`` is False, where neighbours are counted, where codes and whole times are checked, and where
    a hollow kernel asks whether the queries are the samples; then arrays of the card are copied to the host.
    """
    if backend.on_card(problem.queries, problem.samples) == "numpy":
        return problem
    same, kernel = problem.queries is problem.samples, problem.kernel
    checked = (base.DiscreteKernel, base.RelativeBiasKernel)
    if looks is None:
        looks = kernel.adaptive or any(isinstance(leaf, checked) for leaf in kernel.leaves())
        looks = looks or (_has_hollow(kernel) and not same)
    if looks:
        return on_host(problem)
    samples = np.broadcast_to(np.zeros(()), problem.samples.shape)
    queries = samples if same else np.broadcast_to(np.zeros(()), problem.queries.shape)
    return replace(problem, queries=queries, samples=samples)


def _has_hollow(kernel: base.Kernel) -> bool:
    return isinstance(kernel, base.HollowKernel) or any(map(_has_hollow, kernel.parts))


def load_data(problem: Problem, plan: Plan, T: type) -> Data:
    """What a plan reads, on the card. The distances of last neighbours are filled in later."""
    m, n = len(problem.queries), len(problem.samples)
    of_queries = np.array(plan.query_data, dtype=np.float64).reshape(-1, m)
    # rows beyond 2^24 are no float32; what is no row is not read
    with np.errstate(invalid="ignore"):
        last = np.roll(of_queries, -1, axis=0).astype(np.int64)
    masks = np.zeros((1, 1, 1), dtype=np.bool_)
    if len(plan.masks) == 1:
        masks = backend.as_device(plan.masks[0]).reshape(1, m, n)
    elif plan.masks:
        masks = np.stack([backend.to_host(mask) for mask in plan.masks])
    return Data(
        backend.as_device(plan.program.numbers.astype(T)),
        backend.as_device(of_queries.astype(T)),
        backend.as_device(plan.sample_data.astype(T)),
        backend.as_device(last),
        masks if len(plan.masks) == 1 else backend.as_device(masks),
        backend.as_device(problem.query_ids),
    )


def moderate(*arrays: np.ndarray) -> bool:
    """Whether numbers and their squares keep their digits in float32."""
    sizes = [np.abs(a[a != 0]) for a in arrays]
    return all(((size > 1e-18) & (size < 1e18)).all() for size in sizes)
