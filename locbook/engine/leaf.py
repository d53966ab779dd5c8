r"""Kernels of one exponential leaf: which they are, and the fused path for them.

A Gaussian, a Laplace kernel and a softmax are :math:`w = 2^{a s + b}` of one score s, with a slope a that may differ
from query to query. Their sums and means are what attention, densities and kernel regression are made of, so they have
a path of their own (:mod:`locbook.engine.fused_sweep`), in the precision of the input. All other kernels, and masks, go
through the program of steps (:mod:`locbook.engine.program`).

float32 is computed in float32 where that is good enough. An exponent t carries a rounding error of about
:math:`(1 + \sqrt d / 4)\, 2^{-24}\, |t|`, and what counts is the error of the exponents near the largest. Queries for
which it could reach :data:`FLOAT32_ERROR` are computed again in float64: far ones, and those of long vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.metrics import EUCLIDEAN
from . import fused_sweep as f
from . import pruning, vectors
from .fused import weigh_address
from .panels import PANEL, pack, pack_rows
from .pool import run_tasks, split
from .problem import Problem
from .reach import BLOCK, Reach, put_in_order, some_columns
from .scores import DISTANCE, PRODUCT, SCALED
from .values import values_address

LOG2_E = 1.0 / math.log(2.0)
#: Columns of values that the fused kernel sums by itself.
IN_KERNEL = 2
#: Most queries of a task.
TASK = 8 * f.BLOCK
#: Bytes of a tile's coordinates, or of its values, and the most and fewest panels in it.
TILE, MOST, FEWEST = 393_216, 24, 3
#: Numbers packed at once: 32 MB of float64.
CHUNK = 1 << 22
#: Largest error of an exponent that float32 may make.
FLOAT32_ERROR = 1e-5


@dataclass
class Leaf:
    """A kernel of one exponential leaf, ready for the fused kernel.

    Attributes
    ----------
    kind, root
        Of the score (:mod:`locbook.engine.scores`), and whether the exponent is linear in its root.
    columns : array of int64
    factors : array of float64, shape (columns,)
        For each difference, where ``kind`` is SCALED.
    slope : array of float64, shape (m,)
        Exponents are slope times score, in powers of two.
    offset : float
        Added to the logarithm of every weight.
    """

    kind: int
    root: bool
    columns: np.ndarray
    factors: np.ndarray
    slope: np.ndarray
    offset: float


def as_leaf(problem: Problem) -> Leaf | None:
    """The leaf that a problem's kernel is; None if it is another kernel, or under a mask."""
    if problem.mask is not None:
        return None
    kernel, offset = problem.kernel, 0.0
    while isinstance(kernel, base.ScaledKernel):
        kernel, offset = kernel.kernel, offset + math.log(kernel.factor)
    columns = np.asarray(kernel.columns(problem.queries.shape[1])) if isinstance(kernel, base._Leaf) else None
    m = len(problem.queries)
    if isinstance(kernel, base.SoftmaxKernel):
        slope = np.full(m, LOG2_E / kernel.temperature)
        return Leaf(PRODUCT, False, columns, np.ones(len(columns)), slope, offset)
    if not isinstance(kernel, base.RadialKernel) or kernel.named is None or not kernel.named.exponential:
        return None
    ruler, kind, factors = kernel.ruler, DISTANCE, np.ones(len(columns))
    if kernel.metric.code != EUCLIDEAN:
        return None
    if isinstance(ruler, VaryingBandwidth):
        if ruler.side != "query" or ruler.values is None:
            return None
        widths = problem.of_queries(np.asarray(ruler.values, dtype=np.float64))
        if len(ruler.values) != problem.n_queries:
            return None
    elif np.ndim(ruler) == 0:
        widths = np.full(m, float(ruler))
    elif ruler.ndim == 1 and len(ruler) == len(columns):
        same = bool((ruler == ruler[0]).all())
        widths = np.full(m, float(ruler[0]) if same else 1.0)
        if not same:
            kind, factors = SCALED, 1.0 / ruler
    else:
        return None
    root = kernel.named.name == "laplace"
    slope = -LOG2_E / widths if root else -0.5 * LOG2_E / widths / widths
    return Leaf(kind, root, columns, factors, slope, offset)


def stream(
    problem: Problem, leaf: Leaf, values: np.ndarray, prune: str | bool = "auto"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over all samples: logarithms of the scale (m,), sums of weights (m,), sums of weight times value (m, p).

    All float64. The first, to the base e, is -inf where every weight is 0, and NaN for queries too far for this
    path; slopes, biases and shifts inside are in powers of two.
    """
    bias = np.zeros(len(problem.samples))
    if problem.sample_weight is not None:
        with np.errstate(divide="ignore"):
            bias = np.log2(problem.sample_weight)
    rows = np.arange(len(problem.queries))
    found = np.full(len(rows), -np.inf), np.zeros(len(rows)), np.zeros((len(rows), values.shape[1]))
    if problem.samples.dtype == problem.queries.dtype == np.float32:
        good = fits_float32(problem, leaf, bias)
        if problem.groups is not None:  # all or none
            good[:] = good.all()
        # values around a middle of their own keep their digits in float32
        around, middle = around_middle(problem, values)
        shift, total, sums = part = _sums(problem, leaf, around, bias, "float32", rows[good], prune)
        sums += total[:, None] * (middle if len(middle) == 1 else middle[good])
        near = float32_error(np.abs(shift) + 16.0, len(leaf.columns)) <= FLOAT32_ERROR
        fine = near & (total > 0) & np.isfinite(total) & np.isfinite(sums).all(axis=1)
        if problem.groups is not None:
            fine[:] = fine.all()
        if good.all() and fine.all():
            found, rows = part, rows[:0]
        else:
            good[good] = fine
            for whole, some in zip(found, part, strict=True):
                whole[good] = some[fine]
            rows = rows[~good]
    if len(rows):
        for whole, some in zip(
            found, _sums(problem, leaf, values, bias, "float64", rows, prune), strict=True
        ):
            whole[rows] = some
    return found[0] / LOG2_E + leaf.offset, found[1], found[2]


def around_middle(problem: Problem, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values less a middle of theirs, and the middle: (1, p), or (m, p) where each problem has its own; float64."""
    groups = 1 if problem.groups is None else math.prod(problem.groups.lead)
    parts = values.reshape(groups, len(values) // groups, values.shape[1])
    middle = np.median(parts[:, :: -(-parts.shape[1] // 999)], axis=1).astype(np.float64)
    around = (parts - middle[:, None]).reshape(values.shape)
    return around, middle if groups == 1 else np.repeat(middle, problem.groups.queries, axis=0)


def float32_error(exponent: np.ndarray, d: int) -> np.ndarray:
    """Bound of the rounding error of a log-weight, where the largest exponent is of that size."""
    return (1 + math.sqrt(d) / 4) * 2.0**-24 * math.log(2.0) * exponent


def fits_float32(problem: Problem, leaf: Leaf, bias: np.ndarray) -> np.ndarray:
    """For which queries float32 may be tried: slopes, multiplicities and inner products of moderate size."""
    finite = bias[np.isfinite(bias)]
    slope = np.abs(leaf.slope)
    good = (slope < 1e18) & (slope > 1e-18) & (np.abs(finite).max(initial=0.0) <= 16.0)
    if leaf.kind == SCALED:
        good &= bool(((leaf.factors < 1e9) & (leaf.factors > 1e-9)).all())
    if leaf.kind == PRODUCT:
        with np.errstate(over="ignore"):
            lengths = [
                np.sqrt(np.einsum("ij,ij->i", x, x))
                for x in (some_columns(a, leaf.columns) for a in (problem.queries, problem.samples))
            ]
        good &= float32_error(slope * lengths[0] * lengths[1].max(), len(leaf.columns)) <= FLOAT32_ERROR
    return good


def reach_of(problem: Problem, leaf: Leaf, bias: np.ndarray, dtype: str) -> Reach | None:
    """What a Gaussian or Laplace leaf can see in that dtype; None where some samples have no weight."""
    if leaf.kind == PRODUCT or not np.isfinite(bias).all():
        return None
    widest = 1.0 / np.abs(leaf.slope).min() * LOG2_E  # of the queries: h for Laplace, 2 h^2 for a Gaussian
    ratio = math.log(2.0) * float(np.ptp(bias))
    seen = pruning.log_reach(len(problem.samples), dtype) + ratio
    profile = pruning.LAPLACE if leaf.root else pruning.GAUSSIAN
    squared = seen * (widest if leaf.root else 0.5 * widest)
    return Reach(leaf.columns, EUCLIDEAN, leaf.factors, profile, squared)


def _sums(
    problem: Problem,
    leaf: Leaf,
    values: np.ndarray,
    bias: np.ndarray,
    dtype: str,
    rows: np.ndarray,
    prune: str | bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What :func:`stream` gives, for the queries ``rows`` in one dtype; the shifts in powers of two, without offset.

    Chunk by chunk the samples are packed; a task is some blocks of queries, which visit all tiles of the chunk.
    """
    n, d, p, groups = len(problem.samples), len(leaf.columns), values.shape[1], problem.groups
    shift, total, sums = np.full(len(rows), -np.inf), np.zeros(len(rows)), np.zeros((len(rows), p))
    if not len(rows):
        return shift, total, sums
    number = np.dtype(dtype)
    lanes = vectors.VECTOR_BYTES // number.itemsize
    in_kernel, by_row = p <= IN_KERNEL, p >= lanes
    weigh = weigh_address(dtype, leaf.kind, leaf.root, p if in_kernel else 0, not in_kernel)
    add = 0 if in_kernel else values_address(dtype, by_row)
    factors = leaf.factors.astype(number)
    some_queries = problem if len(rows) == len(problem.queries) else problem.rows(rows, problem.kernel)
    pruned = put_in_order(some_queries, reach_of(problem, leaf, bias, dtype), prune, dtype)
    if pruned is None:
        per_tile = int(np.clip(TILE // (PANEL * max(d, p) * number.itemsize), FEWEST, MOST))
        per_chunk = max(1, CHUNK // (PANEL * per_tile * (d + p))) * PANEL * per_tile
        chunks, unit = [slice(first, min(first + per_chunk, n)) for first in range(0, n, per_chunk)], f.BLOCK
        if groups is not None:
            chunks, unit = [slice(0, n)], groups.block
            per_tile = max(k for k in range(1, per_tile + 1) if groups.samples // PANEL % k == 0)
    else:
        per_tile, chunks, unit = 1, [pruned.samples], BLOCK

    def task(samples: f.Samples, part: slice) -> None:
        some = part if pruned is None else pruned.queries[part]
        own = some if len(rows) == len(problem.queries) else rows[some]
        queries = vectors.whole_rows(some_columns(problem.queries[own], leaf.columns), number)
        # what the sweep fills: views of the answers, but under pruning copies, which go back below
        state = own_rows, *_ = [whole[some] for whole in (shift, total, sums)]
        given = samples, queries, vectors.whole_rows(leaf.slope[own], number)
        if pruned is None:
            first = np.zeros(-(-len(own_rows) // unit), np.int64)
            each = -(-len(samples.panels) // per_tile)
            if groups is not None:  # a block visits the tiles of its own problem
                each //= math.prod(groups.lead)
                first[:] = (part.start // unit + np.arange(len(first))) // (groups.queries // unit) * each
            tiles, ends = (first[:, None] + np.arange(each)).ravel(), np.arange(1, len(first) + 1) * each
        else:
            first, blocks, _, boxes, *rest, _, slack = pruned.arguments(part.start)
            tiles, ends = pruning.active_lists(
                *blocks, first, -(-len(own_rows) // unit), *boxes, *rest, slack
            )
        f.fused_sweep(*given, unit, tiles, ends, per_tile, *state, f.make_scratch(samples, per_tile, lanes))
        if pruned is not None:
            for whole, own_part in zip((shift, total, sums), state, strict=True):
                whole[some] = own_part

    for chunk in chunks:
        panels = pack(some_columns(problem.samples[chunk], leaf.columns), number)
        biases = pack(bias[chunk, None], number, fill=-np.inf)[:, 0]
        known = pack_rows(values[chunk], number, lanes) if by_row else pack(values[chunk], number, fill=0.0)
        samples = f.Samples(weigh, add, panels, biases, factors, known, by_row)

        run_tasks(partial(task, samples), split(len(rows), TASK, unit))
    return shift, total, sums
