r"""The fused path: sums chunk by chunk, in float32 where the input is float32 and that is good enough, else in float64.

A log-weight t carries a rounding error of about :math:`(1 + T + \sqrt d / 4)\, 2^{-24}\, |t|`, T the number of terms,
and what counts is the error of those near the largest. Queries for
which it could reach :data:`FLOAT32_ERROR` are computed again in float64: far ones, and those of long vectors. Of a
user's profile nothing is known: on float32 input it is computed in float32, of a squared distance that is within
:math:`(d + 8)\, 2^{-24}` of itself. Of the other named ones only Cauchy's is, which does not enlarge that error.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..kernels.metrics import EUCLIDEAN
from . import fused_sweep as f
from . import pruning, vectors
from .driver import check_user_values, user_errors
from .fused import LOG2_E, weigh_address
from .leaf import Leaf, rows_of, rule_of
from .panels import PANEL, pack, pack_rows
from .pool import PAIR, USER, run_split
from .problem import Problem
from .reach import BLOCK, Reach, put_in_order, some_columns, support_of
from .records import write
from .scores import PRODUCT, SCALED, WEIGHT
from .terms import ROWS_TYPE, rule_type
from .values import values_address

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
#: Most panels of a tile where there are limits, by which whole tiles may be left out.
LIMITED = 4
#: Smaller values, and sums of weights without a shift, may have lost digits, or weights, below the range of float32.
LEAST = 1e-25


def stream(
    problem: Problem, leaf: Leaf, values: np.ndarray, prune: str | bool = "auto"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over all samples: logarithms of the scale (m,), sums of weights (m,), sums of weight times value (m, p).

    All float64, the sums in units of the scale. Its logarithm, to the base e, is -inf before the first weight; where
    weights have no shift it may be finite though all are 0. NaN: the query is too far for this path. Slopes, biases and
    shifts inside are in powers of two.
    """
    bias = np.zeros(len(problem.samples))
    if problem.sample_weight is not None:
        with np.errstate(divide="ignore"):
            bias = np.log2(problem.sample_weight)
    rows = np.arange(len(problem.queries))
    found = np.full(len(rows), -np.inf), np.zeros(len(rows)), np.zeros((len(rows), values.shape[1]))
    single = leaf.single and problem.samples.dtype == problem.queries.dtype == np.float32
    if single and not (values.dtype == np.float64 and ((values != 0) & (np.abs(values) < LEAST)).any()):
        good = fits_float32(problem, leaf, bias)
        if problem.groups is not None:  # all or none
            good[:] = good.all()
        # values around a middle of their own keep their digits in float32
        around, middle = around_middle(problem, values)
        shift, total, sums = part = _sums(problem, leaf, around, bias, "float32", rows[good], prune)
        sums += total[:, None] * (middle if len(middle) == 1 else middle[good])
        error = float32_error(np.abs(shift) + 16.0, len(leaf.columns), len(leaf.terms))
        least = LEAST if leaf.kind == WEIGHT else 0.0
        fine = (error <= FLOAT32_ERROR) & (total > least) & np.isfinite(total) & np.isfinite(sums).all(axis=1)
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
    """Values less a middle of theirs, and the middle: (1, p), or (m, p) where each problem has its own; float64.

    It is 0 where a value is less than half of it or more than twice. Else differences of float32 numbers are exact
    (Sterbenz 1974): a query that sees a few of the values gets these with their own digits.
    """
    groups = 1 if problem.groups is None else math.prod(problem.groups.lead)
    parts = values.reshape(groups, len(values) // groups, values.shape[1])
    low, high = parts.min(axis=1), parts.max(axis=1)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if not (((low > 0) & (high <= 4 * low)) | ((high < 0) & (low >= 4 * high))).any():
            return values, np.zeros((1, values.shape[1]))
        middle = np.median(parts[:, :: -(-parts.shape[1] // 999)], axis=1).astype(np.float32)
        ratios = np.stack([low, high]) / middle
    middle = np.where(((ratios >= 0.5) & (ratios <= 2.0)).all(axis=0), middle, 0.0).astype(np.float64)
    around = (parts - middle[:, None]).reshape(values.shape)
    return around, middle if groups == 1 else np.repeat(middle, problem.groups.queries, axis=0)


def float32_error(exponent: np.ndarray, d: int, terms: int = 0) -> np.ndarray:
    """Bound of the error of a log-weight to the base e; ``exponent`` is the size of the largest, in powers of two."""
    return (1 + terms + math.sqrt(d) / 4) * 2.0**-24 * math.log(2.0) * exponent


def fits_float32(problem: Problem, leaf: Leaf, bias: np.ndarray) -> np.ndarray:
    """For which queries float32 may be tried: slopes, multiplicities and inner products of moderate size."""
    finite = bias[np.isfinite(bias)]
    good = np.full(len(problem.queries), np.abs(finite).max(initial=0.0) <= 16.0)
    for part in leaf.terms or [leaf]:
        slope = np.abs(part.slope if part is leaf else LOG2_E / part.squared)
        good &= (slope < 1e18) & (slope > 1e-18)
        if part is not leaf and part.of_samples is not None:
            good &= bool(((part.of_samples < 1e18) & (part.of_samples > 1e-18)).all())
        if part.kind == SCALED:
            good &= bool(((part.factors < 1e9) & (part.factors > 1e-9)).all())
        if part.kind == PRODUCT:
            with np.errstate(over="ignore"):
                lengths = [
                    np.sqrt(np.einsum("ij,ij->i", x, x))
                    for x in (some_columns(a, part.columns) for a in (problem.queries, problem.samples))
                ]
            largest = slope * lengths[0] * lengths[1].max()
            good &= float32_error(largest, len(part.columns), len(leaf.terms)) <= FLOAT32_ERROR
    return good


def reach_of(problem: Problem, leaf: Leaf, bias: np.ndarray, dtype: str) -> Reach | None:
    """What the kernel can see in that dtype; None: everything.

    Of a product that is its first factor of bounded support; of a Gaussian or Laplace leaf what is not negligible,
    where all samples have a weight.
    """
    if leaf.prepared:
        return support_of(problem, problem.kernel)
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

    Chunk by chunk the samples are packed; a task is some blocks of ``unit`` queries, which visit all tiles of the
    chunk, or where it is pruned those of their lists: then a tile is one panel, a block smaller, and there is one
    chunk.
    """
    n, d, p, groups = len(problem.samples), len(leaf.columns), values.shape[1], problem.groups
    shift, total, sums = np.full(len(rows), -np.inf), np.zeros(len(rows)), np.zeros((len(rows), p))
    if not len(rows):
        return shift, total, sums
    number = np.dtype(dtype)
    lanes = vectors.VECTOR_BYTES // number.itemsize
    in_kernel, by_row = p <= IN_KERNEL, p >= lanes
    chosen = dtype, leaf.kind, leaf.root, p if in_kernel else 0, not in_kernel
    weigh = weigh_some = weigh_address(*chosen)
    if leaf.prepared and not leaf.terms:
        weigh_some = weigh_address(*chosen, True)
    if leaf.kind == WEIGHT:
        bias = np.ones(n) if problem.sample_weight is None else problem.sample_weight
    add = 0 if in_kernel else values_address(dtype, by_row)
    prepare = leaf.prepare(dtype)
    factors = leaf.factors.astype(number)
    some_queries = problem if len(rows) == len(problem.queries) else problem.rows(rows, problem.kernel)
    pruned = put_in_order(some_queries, reach_of(problem, leaf, bias, dtype), prune, dtype)
    if pruned is None:
        most = LIMITED if leaf.limited else MOST
        per_tile = min(max(TILE // (PANEL * max(d, p) * number.itemsize), FEWEST), most)
        per_chunk = max(1, CHUNK // (PANEL * per_tile * (d + p))) * PANEL * per_tile
        chunks, unit = [slice(first, min(first + per_chunk, n)) for first in range(0, n, per_chunk)], f.BLOCK
        if groups is not None:
            chunks, unit = [slice(0, n)], groups.block
            per_tile = max(k for k in range(1, per_tile + 1) if groups.samples // PANEL % k == 0)
    else:
        per_tile, chunks, unit = 1, [pruned.samples], BLOCK

    work = float(len(rows) * (n if groups is None else groups.samples) * (d + p + PAIR))
    work *= number.itemsize / 8 * (1.0 if pruned is None else pruned.share)
    users = any(term.user for term in leaf.terms)
    work *= USER if users else 1

    def task(samples: f.Samples, chunk: slice | np.ndarray, part: slice) -> int:
        some = part if pruned is None else pruned.queries[part]
        own = some if len(rows) == len(problem.queries) else rows[some]
        queries = vectors.whole_rows(some_columns(problem.queries[own], leaf.columns), number)
        # what the sweep fills: views of the answers, but under pruning copies, which go back below
        answers = own_rows, *_ = [whole[some] for whole in (shift, total, sums)]
        of_rule = write(ROWS_TYPE, rows_of(leaf, own, chunk)) if prepare else None
        given = f.Queries(queries, vectors.whole_rows(leaf.slope[own], number), of_rule)
        numbers = np.arange(-(-len(own_rows) // unit))
        if pruned is None:
            first, each = np.zeros_like(numbers), -(-len(samples.panels) // per_tile)
            if groups is not None:  # a block visits the tiles of its own problem
                each //= math.prod(groups.lead)
                first = (part.start // unit + numbers) // (groups.queries // unit) * each
            # a tile stays in the second-level cache while one block after another visits it
            tiles, visitors = (first + np.arange(each)[:, None]).ravel(), np.tile(numbers, each)
        else:
            tiles, ends = pruned.lists(part.start, len(numbers))
            visitors = np.repeat(numbers, np.diff(ends, prepend=0))
        state = f.make_state(samples, len(queries), lanes, *answers)
        visits = f.Visits(tiles, visitors, per_tile, unit)
        bad = f.fused_sweep(samples, given, visits, state, f.make_scratch(samples, per_tile, lanes))
        f.give_back(samples, state, lanes, *answers)
        if pruned is not None:
            for whole, own_part in zip((shift, total, sums), answers, strict=True):
                whole[some] = own_part
        return bad

    bad = 0
    for chunk in chunks:
        panels = pack(some_columns(problem.samples[chunk], leaf.columns), number)
        biases = pack(bias[chunk, None], number, fill=0.0 if leaf.kind == WEIGHT else -np.inf)[:, 0]
        known = pack_rows(values[chunk], number, lanes) if by_row else pack(values[chunk], number, fill=0.0)
        rule = write(rule_type(dtype), rule_of(leaf, chunk, number)) if prepare else None
        samples = f.Samples(
            weigh=weigh, weigh_some=weigh_some, add=add, prepare=prepare, rule=rule,
            panels=panels, bias=biases, factors=factors, values=known, by_row=by_row, terms=len(leaf.terms),
            logarithmic=leaf.kind != WEIGHT,
        )  # fmt: skip
        with user_errors(problem, users):
            bad += sum(run_split(partial(task, samples, chunk), len(rows), TASK, unit, work))
    if dtype == "float64":  # in float32 perhaps only beyond its range
        check_user_values(problem, bad)
    return shift, total, sums
