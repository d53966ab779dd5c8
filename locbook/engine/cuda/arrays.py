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
#: Rows to which a column is brought down on the card; what is left of it is added up, or compared, on the host.
FEW = 64


def grid(size: int, threads: int = THREADS) -> tuple[int, int]:
    """Blocks and threads for so many pieces of work."""
    return max(1, -(-size // threads)), threads


@lru_cache
def gather_kernel(transposed: bool) -> Any:
    """Copy rows and columns, and convert: ``out[r, c] = array[rows[r], columns[c]]``, or ``out[c, r]``."""

    @backend.kernel
    def gather(array, rows, columns, out):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        row, c = place // columns.size, place % columns.size
        if row < rows.size:
            if transposed:
                out[c, row] = array[rows[row], columns[c]]
            else:
                out[row, c] = array[rows[row], columns[c]]

    return gather


def gather(
    array: Any, columns: np.ndarray, T: type, *, transposed: bool = False, rows: np.ndarray | None = None
) -> Any:
    """Some columns of an array (n, d), and all or some rows, as a device array (n, c), or (c, n)."""
    if backend.kind_of(array) == "numpy":
        some = np.asarray(array)[slice(None) if rows is None else rows][:, columns]
        return backend.as_device(np.ascontiguousarray(some.T if transposed else some, dtype=T))
    array = backend.as_device(array)
    whole = rows is None and np.array_equal(columns, np.arange(array.shape[1]))
    if whole and not transposed and array.dtype == T and array.is_c_contiguous():
        return array
    rows = np.arange(array.shape[0]) if rows is None else rows
    out = cuda.device_array((len(columns), len(rows)) if transposed else (len(rows), len(columns)), T)
    places = (backend.as_device(np.asarray(a, dtype=np.int64)) for a in (rows, columns))
    gather_kernel(transposed)[grid(out.size)](array, *places, out)
    return out


@lru_cache
def clear_kernel() -> Any:
    """Write zeros."""

    @backend.kernel
    def clear(out):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        row, c = place // out.shape[1], place % out.shape[1]
        if row < out.shape[0]:
            out[row, c] = 0.0

    return clear


def cleared(array: Any) -> Any:
    """An array (n, c) of the card, filled with zeros."""
    clear_kernel()[grid(array.size)](array)
    return array


def zeros(rows: int, columns: int) -> Any:
    """An array of the card for sums, float64."""
    return cleared(cuda.device_array((rows, columns), np.float64))


@lru_cache
def fold_kernel() -> Any:
    """Sums of some rows for each row."""

    @backend.kernel
    def fold(array, rows, out):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        row, c = place // out.shape[1], place % out.shape[1]
        if row < out.shape[0]:
            total = 0.0
            for t in range(rows.shape[1]):
                total += array[rows[row, t], c]
            out[row, c] = total

    return fold


def folded(array: Any, rows: np.ndarray) -> Any:
    """Sums over the ``rows`` (r, t) of an array (n, c) of the card, shape (r, c), float64."""
    if rows.shape[1] == 1:  # each is its own
        return array
    out = cuda.device_array((len(rows), array.shape[1]), np.float64)
    fold_kernel()[grid(out.size)](array, backend.as_device(rows), out)
    return out


@lru_cache
def shift_kernel() -> Any:
    """Values in the unit and around the middle of their problem."""

    @backend.kernel
    def shift(values, unit, middle, out):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        j, c = place // out.shape[1], place % out.shape[1]
        if j < out.shape[0]:
            g = j // (out.shape[0] // unit.shape[0])
            out[j, c] = values[j, c] * unit[g, c] - middle[g, c]

    return shift


def shifted(values: Any, unit: np.ndarray, middle: np.ndarray, T: type) -> Any:
    """Values (n, p) of the card as ``value * unit - middle``, each shape (problems, p), in the wider precision."""
    if values.dtype == T and (unit == 1.0).all() and not middle.any():
        return values
    wide = np.result_type(values.dtype, T)
    out = cuda.device_array(values.shape, T)
    shift_kernel()[grid(out.size)](values, *(backend.as_device(a.astype(wide)) for a in (unit, middle)), out)
    return out


def converted(array: Any, T: type) -> Any:
    """An array (n, c) of the card in another precision."""
    shape = 1, array.shape[1]
    return shifted(array, np.ones(shape), np.zeros(shape), T)


@lru_cache
def range_kernel() -> Any:
    """Smallest and largest value of each column of each problem, over the rows of a block that take part."""

    @backend.kernel
    def ranges(values, bias, nothing, problems, low, high):
        c, blocks, n = cuda.threadIdx.x, cuda.gridDim.x // problems, values.shape[0] // problems
        problem = cuda.blockIdx.x // blocks
        while c < values.shape[1]:
            least, most = low[cuda.blockIdx.x, c], high[cuda.blockIdx.x, c]
            for j in range(problem * n + cuda.blockIdx.x % blocks, (problem + 1) * n, blocks):
                value = values[j, c]
                if bias[j] > nothing and value == value:
                    least, most = min(least, value), max(most, value)
            low[cuda.blockIdx.x, c], high[cuda.blockIdx.x, c] = least, most
            c += cuda.blockDim.x

    return ranges


def column_ranges(values: Any, bias: Any, nothing: float, problems: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the columns of values, over samples with ``bias`` above ``nothing``: (problems, p) each, float64."""
    (n, p), T = values.shape, values.dtype.type
    blocks = min(n // problems, max(1, FEW // problems))
    low, high = (
        backend.as_device(np.full((problems * blocks, p), end, dtype=T)) for end in (np.inf, -np.inf)
    )
    threads = min(THREADS, max(1, p))
    range_kernel()[problems * blocks, threads](values, bias, T(nothing), problems, low, high)
    low, high = (a.copy_to_host().reshape(problems, blocks, p).astype(np.float64) for a in (low, high))
    return low.min(axis=1), high.max(axis=1)


@lru_cache
def special_kernel() -> Any:
    """Look for NaN, infinity and minus infinity."""
    infinity = math.inf

    @backend.kernel
    def look(array, flags):
        place = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        row, column = place // array.shape[1], place % array.shape[1]
        if row < array.shape[0]:
            value = array[row, column]
            if value != value:
                flags[0] = 1
            elif value == infinity:
                flags[1] = 1
            elif value == -infinity:
                flags[2] = 1

    return look


def specials(array: Any) -> tuple[bool, bool, bool]:
    """Whether an array (n, c) of the card has NaN, infinity, minus infinity; only that comes to the host."""
    flags = backend.as_device(np.zeros(3, dtype=np.int32))
    special_kernel()[grid(array.size)](array, flags)
    return tuple(map(bool, flags.copy_to_host()))


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


def lengths(array: Any) -> Any:
    """Length of each row of a device array (n, d), on the card."""
    out = cuda.device_array(array.shape[0], array.dtype)
    length_kernel(array.dtype.type)[grid(array.shape[0])](array, out)
    return out


def longest(array: Any) -> float:
    """Length of the longest row of a device array (n, d), of those without NaN."""
    found = lengths(array)
    return max(0.0, column_ranges(found.reshape(found.size, 1), found, -np.inf, 1)[1].item())


# -- multiplicities --------------------------------------------------------------------------------------------------


#: Forms of multiplicities: in units of :func:`unit_of`; their logarithms; and, of scores, which are no weights, 0 where
#: a sample takes part, else minus infinity.
PLAIN, LOG, LOG2, SCORE = range(4)


@lru_cache
def copies_kernel(T: type) -> Any:
    """Multiplicities in a form that sums take."""
    nothing, plain, natural, binary = T(-math.inf), PLAIN, LOG, LOG2

    @backend.kernel
    def convert(weight, form, unit, out):
        j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if j < out.size:
            if form == plain:
                out[j] = weight[j] / unit
            elif weight[j] == 0.0:
                out[j] = nothing
            elif form == natural:
                out[j] = math.log(weight[j])
            elif form == binary:
                out[j] = math.log2(weight[j])
            else:
                out[j] = 0.0

    return convert


def copies(problem: Problem, form: int, T: type) -> Any:
    """Multiplicities (n,) on the card, in one of the forms above."""
    n = len(problem.samples)
    if problem.sample_weight is None:
        return backend.as_device(np.full(n, 1.0 if form == PLAIN else 0.0, dtype=T))
    out, unit = cuda.device_array(n, T), unit_of(problem) if form == PLAIN else 1.0
    copies_kernel(T)[grid(n)](backend.as_device(problem.sample_weight), form, unit, out)
    return out


def ends_of(problem: Problem) -> np.ndarray | None:
    """The smallest multiplicity above 0 and the largest, on the host; None where all are 1."""
    weight = problem.sample_weight
    if weight is None or backend.kind_of(weight) == "numpy":
        return None if weight is None else np.array([weight[weight > 0].min(), weight.max()])
    low, high = column_ranges(weight.reshape(weight.size, 1), weight, 0.0, 1)
    return np.array([low[0, 0], high[0, 0]])


def unit_of(problem: Problem) -> float:
    """The power of two that is taken out of multiplicities."""
    ends = ends_of(problem)
    return 1.0 if ends is None else 2.0 ** np.clip(np.frexp(ends[1])[1], -1022, 1023)


# -- problems --------------------------------------------------------------------------------------------------------


def problems_of(problem: Problem) -> int:
    """How many problems of one shape lie end to end."""
    return 1 if problem.groups is None else math.prod(problem.groups.lead)


def on_host(problem: Problem) -> Problem:
    """The same problem with NumPy arrays."""
    weight = None if problem.sample_weight is None else backend.to_host(problem.sample_weight)
    samples = backend.to_host(problem.samples)
    queries = samples if problem.queries is problem.samples else backend.to_host(problem.queries)
    mask = None if problem.mask is None else backend.to_host(problem.mask)
    return replace(problem, queries=queries, samples=samples, sample_weight=weight, mask=mask)


def for_planning(problem: Problem, *, looks: bool | None = None) -> Problem:
    """A problem that the plan can be made of: without the coordinates where it does not look at them.

    Then it has but the ends of the multiplicities, which tell whether sums hold them.

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
    return replace(problem, queries=queries, samples=samples, sample_weight=ends_of(problem))


def _has_hollow(kernel: base.Kernel) -> bool:
    return isinstance(kernel, base.HollowKernel) or any(map(_has_hollow, kernel.parts))


def load_data(problem: Problem, plan: Plan, T: type) -> Data:
    """What a plan reads, on the card. The distances of last neighbours are filled in later."""
    m, n = len(problem.queries), len(problem.samples)
    of_queries = np.array(plan.query_data, dtype=np.float64).reshape(-1, m)
    # rows beyond 2^24 are no float32; what is no row is not read
    with np.errstate(invalid="ignore"):
        last = np.roll(of_queries, -1, axis=0).astype(np.int64)
    problems = problems_of(problem)
    masks, starts = np.zeros((1, 1, 1), dtype=np.bool_), np.zeros(1, dtype=np.int64)
    if plan.masks:
        one = len(plan.masks) == 1
        masks = plan.masks[0] if one else np.stack([backend.to_host(mask) for mask in plan.masks])
        masks = backend.as_device(masks).reshape(len(plan.masks), m, n // problems)
        starts = np.repeat(np.arange(problems) * (n // problems), m // problems)
    return Data(
        backend.as_device(plan.program.numbers.astype(T)),
        backend.as_device(of_queries.astype(T)),
        backend.as_device(plan.sample_data.astype(T)),
        backend.as_device(last),
        masks if plan.masks else backend.as_device(masks),
        backend.as_device(starts),
        backend.as_device(problem.query_ids),
    )


def moderate(*arrays: np.ndarray) -> bool:
    """Whether numbers and their squares keep their digits in float32."""
    sizes = [np.abs(a[a != 0]) for a in arrays]
    return all(((size > 1e-18) & (size < 1e18)).all() for size in sizes)
