"""Each layer of the engine against its twin, in both float types: random numbers and nasty ones."""

import importlib
import math
import os
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from numba import njit, types

from locbook import engine
from locbook.engine import parts, program, vectors
from locbook.engine.exponential import POWERS, exp, exp_32
from locbook.engine.fused import weigh_address, weigh_plain
from locbook.engine.fused_sweep import HEADROOM
from locbook.engine.moments import linear_address, linear_sums_plain
from locbook.engine.panels import PANEL, pack, pack_rows, unpack
from locbook.engine.parts import call
from locbook.engine.records import Record, run, whole
from locbook.engine.scores import (
    DISTANCE,
    LOG_WEIGHT,
    PRODUCT,
    SCALED,
    WEIGHT,
    scores_address,
    scores_plain,
)
from locbook.engine.sieve import sieve_address, sieve_plain
from locbook.engine.values import lane_sums, row_sums, sample_sums_address, sums_plain, values_address
from locbook.engine.vectors import COLUMN_VECTORS, ROWS, VALUE_ROWS, lowest_bit
from locbook.kernels.logarithm import log, log1p

needs_vectors = pytest.mark.skipif(not vectors.ENABLED, reason="this processor takes the plain path")
DTYPES = ["float32", "float64"]
#: Error of the exponential; more where the processor may lack the fused multiply-add.
EXP_ULPS = 1.0 if vectors.ENABLED else 1.25
NUMBERS = np.random.default_rng


@njit
def call_part(address, arguments):
    return call(address, *arguments)


def over(function):
    """The scalar function over an array, by a loop that LLVM may turn into vectors."""

    @njit(error_model="numpy")
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    def run(x):
        x = np.asarray(x)
        out = np.empty_like(x)
        loop(x, out)
        return out

    return run


def ulps(ours, exact):
    """Errors in units of the last place of the exact results, objects of mpmath."""
    unit = np.finfo(ours.dtype)
    with mpmath.workdps(60):
        errors = []
        for got, want in zip(ours.ravel().tolist(), exact, strict=True):
            exponent = max(mpmath.frexp(want)[1] - 1, unit.minexp)
            errors.append(abs(mpmath.mpf(got) - want) / mpmath.ldexp(1, exponent - unit.nmant))
        return np.array(errors, dtype=float)


def exact_of(function, x):
    with mpmath.workdps(60):
        return [function(mpmath.mpf(v)) for v in np.asarray(x).ravel().tolist()]


def around(points, dtype):
    """The points and the floats on both sides."""
    points = np.asarray(points, dtype=dtype)
    return np.concatenate([points, *(np.nextafter(points, dtype(side)) for side in (-np.inf, np.inf))])


# -- panels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", [None, 0.0, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 129])
def test_panels(n, dtype, fill):
    for d in (1, 5):
        rows = NUMBERS(n).normal(size=(n, d)).astype(np.float32)
        panels = pack(rows[:, ::-1], np.dtype(dtype), fill)
        assert panels.shape == (-(-n // PANEL), d, PANEL)
        assert panels.dtype == dtype
        assert panels.flags.c_contiguous
        np.testing.assert_array_equal(unpack(panels, n), rows[:, ::-1])
        for i in (0, n // 2, n - 1):
            np.testing.assert_array_equal(panels[i // PANEL, :, i % PANEL], rows[i, ::-1])
        rest = unpack(panels, len(panels) * PANEL)[n:]
        assert len(rest) == -n % PANEL
        np.testing.assert_array_equal(
            rest, np.broadcast_to(rows[-1, ::-1] if fill is None else fill, rest.shape)
        )


def test_queries_are_filled_up_by_the_last():
    for n in range(1, 2 * ROWS + 1):
        whole = vectors.whole_rows(np.arange(2.0 * n).reshape(n, 2))
        assert len(whole) == -(-n // ROWS) * ROWS
        np.testing.assert_array_equal(whole[n:, 0], [2.0 * n - 2] * (len(whole) - n))


# -- vectors -----------------------------------------------------------------------------------------------------------


@njit
def _largest(row, n):
    return vectors.largest(row, n)


@pytest.mark.parametrize("function", [_largest, vectors._largest_plain], ids=["vectors", "plain"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_largest(dtype, function):
    nothing, low = -np.inf, np.finfo(dtype).min
    for n in (0, PANEL, 3 * PANEL):
        row = np.full(n + PANEL, 9.0, dtype)  # what lies behind is not read
        for some in (nothing, np.nan, np.inf, low, -0.5):
            row[:n] = some
            assert function(row, n) == (nothing if n == 0 or np.isnan(some) else some)
        for background in (np.nan, nothing, low, -3.0):
            for j in range(n):
                row[:n] = background
                row[j] = -2.5
                assert function(row, n) == -2.5
                row[j] = np.nan
                assert function(row, n) == (nothing if np.isnan(background) else background)
        row[:n] = NUMBERS(n).normal(size=n)
        assert function(row, n) == row[:n].max(initial=nothing)


def test_lowest_bit():
    @njit
    def lowest(mask):
        return lowest_bit(mask)

    rng = NUMBERS(0)
    for bit in range(64):
        for higher in (0, int(rng.integers(1 << 62)), -1):
            mask = np.array([(higher << (bit + 1) | 1 << bit) & (1 << 64) - 1], np.uint64).view(np.int64)[0]
            assert lowest(mask) == bit
    assert lowest(np.int64(0)) == 64


# -- elementary functions ----------------------------------------------------------------------------------------------


def test_exponential_over_the_whole_range():
    rng = NUMBERS(1)
    x = np.concatenate(
        [
            rng.uniform(-745, 709.7, 3000),
            rng.uniform(-745.2, -708, 1000),  # denormal results
            rng.uniform(-1, 1, 1000) * 10.0 ** rng.uniform(-300, 0, 1000),
            around(np.arange(-2149, 2048) * (0.5 * math.log(2.0)), np.float64),  # the power of two changes
        ]
    )
    x = x[x < math.log(np.finfo(float).max)]
    error = ulps(over(exp)(x), exact_of(mpmath.exp, x))
    assert error.max() <= EXP_ULPS, (x[error.argmax()], error.max())


def test_exponential_in_float32():
    rng = NUMBERS(2)
    x = np.concatenate(
        [
            rng.uniform(-87, 88.3, 4000),
            rng.uniform(-1, 1, 1000) * 10.0 ** rng.uniform(-40, 0, 1000),
            around(np.arange(-250, 255) * (0.5 * math.log(2.0)), np.float32),
        ]
    ).astype(np.float32)
    error = ulps(over(exp_32)(x), exact_of(mpmath.exp, x))
    assert error.max() <= 2.0, (x[error.argmax()], error.max())
    ends = np.array([0.0, -87.1, -1e38, -np.inf, 88.8, 1e38, np.inf, np.nan], np.float32)
    expected = [1, 0, 0, 0, np.inf, np.inf, np.inf, np.nan]
    np.testing.assert_array_equal(over(exp_32)(ends), expected)


def test_exponential_at_the_ends():
    largest = 709.782712893384  # the exponential of the next float is beyond all
    x = np.array(
        [0.0, -0.0, 5e-324, -5e-324, -745.2, -750.0, -1e308, -np.inf, np.nextafter(largest, 800), 710.0]
    )
    np.testing.assert_array_equal(over(exp)(x), [1, 1, 1, 1, 0, 0, 0, 0, np.inf, np.inf])
    np.testing.assert_array_equal(over(exp)(np.array([1e308, np.inf, np.nan])), [np.inf, np.inf, np.nan])
    assert ulps(over(exp)(np.array([largest])), exact_of(mpmath.exp, [largest]))[0] <= 1.0


def powers_of_two(t):
    """2^t by the fused kernel: products of samples of one column with 1, slope 1."""
    dtype = t.dtype
    panels, one = pack(t[:, None], dtype), np.ones((ROWS, 1), dtype)
    count = len(panels)
    weights, lanes = np.empty((ROWS, count * PANEL), dtype), np.empty((ROWS, 2, 64 // dtype.itemsize), dtype)
    given = (
        *(one, 0, 0, panels, 0, count, np.zeros((count, PANEL), dtype), np.ones(ROWS, dtype)),
        *(np.zeros(ROWS, dtype), np.ones(1, dtype), np.empty((count, 0, PANEL), dtype), lanes, weights),
        np.zeros((0, 0), np.bool_),
    )
    call_part(weigh_address(dtype.name, PRODUCT, False, 0, True), given)
    assert (weights == weights[0]).all() or np.isnan(weights).any()
    return weights[0, : len(t)]


@needs_vectors
@pytest.mark.parametrize("dtype", DTYPES)
def test_power_of_two_over_the_whole_range(dtype):
    kind, rng = np.dtype(dtype).type, NUMBERS(2)
    smallest, end = POWERS[kind().itemsize].smallest, float(np.finfo(dtype).maxexp)
    halves = np.arange(2 * smallest, 2 * end) / 2
    t = np.concatenate(
        [
            rng.uniform(smallest, end - 0.1, 3000),
            rng.uniform(-2, 2, 3000),
            rng.uniform(-1, 1, 500) * 10.0 ** rng.uniform(-30, 0, 500),
            around(halves, kind),
        ]
    ).astype(dtype)
    t = t[(t >= smallest) & (t < end)]
    ours = powers_of_two(t)
    error = ulps(ours, exact_of(lambda v: mpmath.power(2, v), t))
    assert error.max() <= 1.0, (t[error.argmax()], error.max())
    whole = np.arange(smallest, end, dtype=dtype)
    np.testing.assert_array_equal(powers_of_two(whole), np.ldexp(kind(1), whole.astype(int)))
    below = np.array(
        [np.nextafter(kind(smallest), kind(-np.inf)), 2 * smallest, -1e30, -np.inf, np.nan], dtype
    )
    np.testing.assert_array_equal(powers_of_two(below), np.zeros(5))
    assert end > HEADROOM


def test_logarithm_of_one_plus_x():
    rng = NUMBERS(3)
    x = np.concatenate(
        [
            10.0 ** rng.uniform(-320, 308, 3000),
            10.0 ** rng.uniform(-18, 1, 3000),
            around(2.0 ** np.arange(-60, 1024), np.float64),
            around(math.sqrt(0.5) * 2.0 ** np.arange(1, 1024) - 1, np.float64),
            around([1e16, np.finfo(float).max / 2, 1.1e-16, 2.2e-16], np.float64),
            [5e-324, 2.3e-308, np.finfo(float).max],
        ]
    )
    error = ulps(over(log1p)(x), exact_of(mpmath.log1p, x))
    assert error.max() <= 2.0, (x[error.argmax()], error.max())
    np.testing.assert_array_equal(over(log1p)(np.array([0.0, np.inf])), [0.0, np.inf])


def test_logarithm():
    rng = NUMBERS(4)
    x = np.concatenate(
        [
            10.0 ** rng.uniform(-323, 308, 3000),
            1 + rng.uniform(-0.4, 0.6, 3000),
            1 + rng.choice([-1, 1], 500) * 10.0 ** rng.uniform(-16, -1, 500),
            around(2.0 ** np.arange(-1022, 1024), np.float64),
            around(math.sqrt(0.5) * 2.0 ** np.arange(-1000, 1024), np.float64),
            [5e-324, 2.3e-308, np.finfo(float).max],
        ]
    )
    error = ulps(over(log)(x), exact_of(mpmath.log, x))
    assert error.max() <= 2.0, (x[error.argmax()], error.max())
    ends = np.array([0.0, -0.0, 1.0, np.inf, -1e-320, -1.0, -np.inf, np.nan])
    np.testing.assert_array_equal(over(log)(ends), [-np.inf, -np.inf, 0.0, np.inf, *4 * [np.nan]])


# -- scores ------------------------------------------------------------------------------------------------------------

#: Queries (8, 5) and samples (n, 5).
POINTS = {
    "normal": lambda rng, n: (rng.normal(size=(8, 5)), rng.normal(size=(n, 5))),
    "offset": lambda rng, n: (rng.normal(size=(8, 5)) + 1e6, rng.normal(size=(n, 5)) + 1e6),
    "scales": lambda rng, n: (
        rng.normal(size=(8, 5)) * 10.0 ** np.arange(-8, 7, 3),
        rng.normal(size=(n, 5)) * 10.0 ** np.arange(-8, 7, 3),
    ),
    "equal": lambda rng, n: (np.full((8, 5), 0.1), np.full((n, 5), 0.1)),
    "tiny": lambda rng, n: (rng.normal(size=(8, 5)) * 1e-30, rng.normal(size=(n, 5)) * 1e-30),
}


def score_size(q, x, factors, kind):
    """Sum of the magnitudes of what is added up for a score."""
    return (
        scores_plain(np.abs(q), np.abs(x), factors, kind)
        if kind == PRODUCT
        else scores_plain(q, x, factors, kind)
    )


@needs_vectors
@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [DISTANCE, SCALED, PRODUCT])
def test_scores(kind, dtype, name):
    q, x = POINTS[name](NUMBERS(4), 5 * PANEL - 3)
    q, panels = q.astype(dtype), pack(x, np.dtype(dtype))
    for columns in ([0, 1, 2, 3, 4], [3], [4, 0, 2]):
        used = np.array(columns, dtype=np.int64)
        others = np.setdiff1d(np.arange(5), used)
        broken, broken_q = panels.copy(), q.copy()
        broken[:, others] = broken_q[:, others] = np.nan  # what is not asked for is not read
        factors = NUMBERS(5).uniform(0.1, 9.0, len(used)).astype(dtype)
        first, count, row = 1, 3, 4
        out = np.full((ROWS, count * PANEL + 7), -7.0, dtype)
        given = (broken_q, row, broken, first, count, used, factors, out)
        assert call_part(scores_address(dtype, kind), given) == 0
        wide = [
            part.astype(np.float64) for part in (q[row:, used], panels[first : first + count, used], factors)
        ]
        bound = (len(used) + 4) * np.finfo(dtype).eps * score_size(*wide, kind) + np.finfo(dtype).tiny
        assert (np.abs(out[:, :-7] - scores_plain(*wide, kind)) <= bound).all()
        assert (out[:, -7:] == -7.0).all()


def test_scores_by_hand():
    q, x = np.array([[1.0, 2.0]]), np.full((1, 2, PANEL), 4.0)
    f = np.array([1.0, 0.5])
    assert [scores_plain(q, x, f, kind)[0, 0] for kind in (DISTANCE, SCALED, PRODUCT)] == [13.0, 10.0, 12.0]


# -- the fused kernel --------------------------------------------------------------------------------------------------

#: Kind of score, root, columns of values, whether weights are stored: what the engine asks for.
WEIGHS = [
    *((kind, False, n_values, n_values == 0) for kind in (DISTANCE, SCALED, PRODUCT) for n_values in (0, 2)),
    (DISTANCE, True, 0, True),
    (DISTANCE, True, 1, False),
    (SCALED, True, 0, False),
    (PRODUCT, False, 1, True),
    *((kind, False, n_values, n_values == 0) for kind in (LOG_WEIGHT, WEIGHT) for n_values in (0, 2)),
]


@needs_vectors
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("kind", "root", "n_values", "store"), WEIGHS)
def test_weigh(kind, root, n_values, store, dtype):
    unit, smallest = np.finfo(dtype).eps, POWERS[np.dtype(dtype).itemsize].smallest
    part = weigh_address(dtype, kind, root, n_values, store)
    for case in ("normal", "offset", "equal", "far", "nobody"):
        given = kind in (LOG_WEIGHT, WEIGHT)
        if kind == PRODUCT and case == "offset":
            continue  # terms of 1e12 leave an exponent no digits
        if kind == WEIGHT and case == "far":
            continue  # no shift
        rng = NUMBERS(6)
        q, x = POINTS[case if case in POINTS else "normal"](rng, 4 * PANEL - 9)
        first, count, row, line = 1, 3, 4, 2
        q, panels = q.astype(dtype), pack(x, np.dtype(dtype))
        lines = slice(line, line + ROWS)
        bias = pack(rng.uniform(-3, 3, (len(x), 1)), np.dtype(dtype), fill=-np.inf)[:, 0]
        bias[2, 5:60:7] = -np.inf
        if case == "nobody":
            bias[:] = -np.inf
        slope = rng.uniform(-1, -0.1, 8).astype(dtype) * (-1 if kind == PRODUCT else 1)
        factors = rng.uniform(0.2, 2.0, 5).astype(dtype)
        wide = [part.astype(np.float64) for part in (q[row:], panels[first : first + count])]
        wide_bias, wide_slope, wide_factors = (a.astype(np.float64) for a in (bias[first:], slope, factors))
        score = scores_plain(*wide, wide_factors, DISTANCE if given else kind)
        score = np.sqrt(score) if root else score
        if kind == WEIGHT:  # from 0 on, and multiplicities
            bias = np.where(np.isfinite(bias), np.abs(bias), 0).astype(dtype)
            wide_bias = bias[first:].astype(np.float64)
            score = np.exp(-score / (1 + np.median(score)))
        if given:
            score = (-score if kind == LOG_WEIGHT else score).astype(dtype).astype(np.float64)
            wide_slope = np.full(8, math.log2(math.e) if kind == LOG_WEIGHT else 1.0)
        # near the largest exponent, or so far below it that most are 0
        shift = np.full(8, np.nan, dtype)
        shift[lines] = (wide_slope[row:, None] * score).max(1) + (900.0 if case == "far" else 0.0)
        values = rng.normal(size=(4, n_values + 1, PANEL)).astype(dtype)
        n_lanes = vectors.VECTOR_BYTES // np.dtype(dtype).itemsize
        lanes = np.full((8, 2 + n_values, n_lanes), np.nan, dtype)
        weights = np.full((8, count * PANEL + 5), -7.0, dtype)
        if given:
            weights[lines, :-5] = score
        nobody = np.zeros((0, 0), np.bool_)
        arguments = (
            *(
                q,
                row,
                line,
                panels,
                first,
                count,
                bias,
                slope,
                shift,
                factors,
                values,
                lanes,
                weights,
                nobody,
            ),
        )
        assert call_part(part, arguments) == 0

        wide_shift = shift[lines].astype(np.float64)
        shown = (score, None) if given else wide
        expected = weigh_plain(
            *shown, wide_bias[:count], wide_slope[row:], wide_shift, wide_factors, kind, root
        )
        size = np.abs(score) if given else score_size(*wide, wide_factors, kind) ** (0.5 if root else 1.0)
        size = np.abs(wide_slope[row:, None]) * size
        size += np.abs(wide_shift[:, None]) + 3
        wrong = 12 * unit * size  # of an exponent
        seen = expected[1] > 2.0 ** (smallest + 1)
        top = lanes[lines, 0].max(1)
        np.testing.assert_array_equal(np.isinf(top), np.isinf(expected[0]))
        finite = np.isfinite(top)
        assert (np.abs(top[finite] - expected[0][finite]) <= wrong.max(1)[finite]).all()
        bound = np.expm1(wrong) + 2 * unit
        cut = np.where(seen, expected[1], 0.0)
        off = bound * cut + 2.0 ** (smallest + 2)
        if store:
            assert (np.abs(weights[lines, :-5] - cut) <= off).all(), case
            assert (weights[lines, -5:] == -7.0).all()
        weights[lines] = -7.0 if store or given else weights[lines]
        assert (weights == -7.0).all()
        known = values[first : first + count].transpose(1, 0, 2).reshape(n_values + 1, -1).astype(float)
        for e, factor in enumerate([np.ones(count * PANEL), *known[:n_values]]):
            allowed = (off + 64 * unit * cut) @ np.abs(factor)
            assert (np.abs(lanes[lines, 1 + e].sum(1) - cut @ factor) <= allowed).all(), (case, e)
        untouched = np.delete(lanes, np.arange(line, line + ROWS), axis=0)
        assert np.isnan(untouched).all()
        if case in ("normal", "equal", "offset"):
            assert cut.sum(1).min() > 0.1  # the test is about something
        if case == "nobody":
            assert (top == (0 if kind == WEIGHT else -np.inf)).all()
            assert (lanes[lines, 1:] == 0).all()


# -- the value kernels -------------------------------------------------------------------------------------------------


def _value_problem(dtype, whole, queries):
    """Weights (queries, 3 panels) and values (4 panels, 9); whole numbers, whose sums are exact, or cancelling ones."""
    rng = NUMBERS(7)
    weights, values = rng.uniform(0, 1, (queries, 3 * PANEL)), rng.normal(size=(4 * PANEL, 9 * 16))
    if whole:
        weights, values = rng.integers(0, 9, weights.shape), rng.integers(-9, 10, values.shape)
    else:
        values *= 10.0 ** rng.uniform(-6, 6, values.shape)
    return weights.astype(dtype), values.astype(dtype)


def _check_sums(ours, before, weights, values, dtype, whole):
    weights, values = weights.astype(float), values.astype(float)
    right = before + sums_plain(weights, values)
    if whole:
        np.testing.assert_array_equal(ours, right)
    else:
        bound = (
            (len(values) + 2) * np.finfo(dtype).eps * (before + sums_plain(np.abs(weights), np.abs(values)))
        )
        assert (np.abs(ours - right) <= bound).all()


@needs_vectors
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_columns", [1, COLUMN_VECTORS])
def test_lane_sums(n_columns, dtype, whole):
    @njit
    def add(weights, row, values, first, count, column, lanes):
        lane_sums(n_columns, weights, row, values, first, count, column, lanes)

    weights, values = _value_problem(dtype, whole, 2 * ROWS)
    width, panels = vectors.VECTOR_BYTES // np.dtype(dtype).itemsize, pack(values[:, :9], np.dtype(dtype))
    for row, first, count, column in ((0, 0, 3, 0), (ROWS, 1, 2, 3), (2, 3, 1, 9 - n_columns), (1, 2, 0, 0)):
        lanes = np.full((2 * ROWS, 9, width), 3.0, dtype)
        add(weights, row, panels, first, count, column, lanes)
        rows, columns = slice(row, row + ROWS), slice(column, column + n_columns)
        some = values[first * PANEL : (first + count) * PANEL, columns]
        _check_sums(
            lanes[rows, columns].sum(2), 3.0 * width, weights[rows, : count * PANEL], some, dtype, whole
        )
        lanes[rows, columns] = 3.0
        assert (lanes == 3.0).all()


@needs_vectors
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n_vectors", [1, COLUMN_VECTORS])
def test_row_sums(n_vectors, dtype, whole):
    @njit
    def add(weights, row, values, first, count, column, sums):
        row_sums(n_vectors, weights, row, values, first, count, column, sums)

    weights, values = _value_problem(dtype, whole, 2 * VALUE_ROWS)
    lanes = vectors.VECTOR_BYTES // np.dtype(dtype).itemsize
    p, width, panels = values.shape[1], n_vectors * lanes, values.reshape(-1, PANEL, values.shape[1])
    for row, first, count, column in (
        (0, 0, 3, 0),
        (VALUE_ROWS, 1, 2, 16),
        (2, 3, 1, p - width),
        (1, 2, 0, 0),
    ):
        sums = np.full((2 * VALUE_ROWS, p // lanes, lanes), 3.0, dtype)
        add(weights, row, panels, first, count, column, sums)
        flat = sums.reshape(2 * VALUE_ROWS, p)
        rows, columns = slice(row, row + VALUE_ROWS), slice(column, column + width)
        some = values[first * PANEL : (first + count) * PANEL, columns]
        _check_sums(flat[rows, columns], 3.0, weights[rows, : count * PANEL], some, dtype, whole)
        flat[rows, columns] = 3.0
        assert (sums == 3.0).all()


@needs_vectors
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [1, 3, ROWS, 9])
def test_sample_sums(p, dtype, whole):
    @njit
    def add(address, *arguments):
        return call(address, *arguments)

    weights, values = _value_problem(dtype, whole, 2 * VALUE_ROWS)
    known = np.ascontiguousarray(values[: 2 * VALUE_ROWS, :p])
    for rows, first, count in ((2 * VALUE_ROWS, 0, 3), (5, 2, 1), (1, 1, 2)):
        sums = np.full((4, p, PANEL), 3.0, dtype)
        add(sample_sums_address(dtype), weights, rows, known, first, count, sums)
        flat = sums[first : first + count].transpose(0, 2, 1).reshape(-1, p)
        _check_sums(flat, 3.0, weights[:rows, : count * PANEL].T, known[:rows], dtype, whole)
        sums[first : first + count] = 3.0
        assert (sums == 3.0).all()


@pytest.mark.parametrize(("n", "p", "lanes"), [(1, 1, 8), (64, 16, 16), (130, 9, 8)])
def test_rows_in_panels(n, p, lanes):
    rows = np.random.default_rng(0).normal(size=(n, p))
    panels = pack_rows(rows, np.float32, lanes)
    assert panels.shape == (-(-n // PANEL), PANEL, -(-p // lanes) * lanes)
    flat = panels.reshape(-1, panels.shape[2])
    np.testing.assert_array_equal(flat[:n, :p], rows.astype(np.float32))
    assert not flat[n:].any()
    assert not flat[:, p:].any()


@needs_vectors
@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_columns_of_values(dtype, by_row):
    lanes = vectors.VECTOR_BYTES // np.dtype(dtype).itemsize
    step, group = (lanes, VALUE_ROWS) if by_row else (1, ROWS)
    for n_columns in (1, COLUMN_VECTORS - 1, COLUMN_VECTORS, 2 * COLUMN_VECTORS + 1):
        p, rows = n_columns * step, 2 * group
        weights, values = _value_problem(dtype, True, rows)
        values = np.ascontiguousarray(values[:, np.arange(p) % values.shape[1]])
        panels = values.reshape(-1, PANEL, p) if by_row else pack(values, np.dtype(dtype))
        sums = np.full((rows + 1, n_columns, lanes), 2.0, dtype)
        assert call_part(values_address(dtype, by_row), (weights, rows, panels, 1, 2, sums)) == 0
        ours = sums[:rows].reshape(rows, p) - 2.0 if by_row else sums[:rows].sum(2) - 2.0 * lanes
        right = sums_plain(weights[:, : 2 * PANEL].astype(float), values[PANEL : 3 * PANEL].astype(float))
        np.testing.assert_array_equal(ours, right)
        assert (sums[rows] == 2.0).all()


# -- moments of lines --------------------------------------------------------------------------------------------------


@needs_vectors
@pytest.mark.parametrize(("d", "p"), [(1, 0), (1, 1), (2, 1), (1, 2)])
def test_moments_of_lines(d, p):
    integer, flat, cube = np.empty(0, np.int64), np.empty((0, 0)), np.empty((0, 0, 0))
    for exactly in (True, False):
        rng = NUMBERS(10)
        q, x, y = (
            rng.integers(-3, 4, (8, d)),
            rng.integers(-3, 4, (4 * PANEL, d)),
            rng.integers(-3, 4, (4 * PANEL, p)),
        )
        weights = rng.integers(0, 3, (ROWS, 3 * PANEL)).astype(float)
        if not exactly:
            q, x, y = q + rng.normal(size=q.shape), x + rng.normal(size=x.shape), y + rng.normal(size=y.shape)
            weights *= rng.uniform(size=weights.shape)
        q, x, y = q.astype(float), x.astype(float), y.astype(float)
        weights[:, 70] = 0.0
        x[PANEL + 70] = 1e300  # takes no part, and its square is no float
        first, count, row, rows = 1, 3, 2, 3
        size = (d + 1) * (d + 2) // 2 + (d + 1) * p
        sums = np.full((8, size), 5.0)
        given = (
            *(weights, rows, row, count * PANEL, q, integer, pack(x, np.dtype(float)), first, count, integer),
            *(
                pack(y, np.dtype(float)),
                integer,
                integer,
                integer,
                cube,
                cube,
                flat,
                sums,
                integer.reshape(0, 0),
            ),
        )
        assert call_part(linear_address(d, p), given) == 0
        for r in range(rows):
            some = slice(first * PANEL, (first + count) * PANEL)
            near = np.where(weights[r][:, None] > 0, x[some], 0.0)
            right = linear_sums_plain(weights[r], q[row + r], near, y[some]) + 5.0
            if exactly:
                np.testing.assert_array_equal(sums[row + r], right)
            else:
                size = linear_sums_plain(weights[r], -np.abs(q[row + r]), np.abs(near), np.abs(y[some])) + 5.0
                assert (np.abs(sums[row + r] - right) <= 300 * np.finfo(float).eps * size).all()
        assert (np.delete(sums, np.arange(row, row + rows), axis=0) == 5.0).all()


# -- the sieve ---------------------------------------------------------------------------------------------------------


def _sieved(kind, q, panels, first, count, row, bias, limits):
    """Scores and a truth value for each sample."""
    out, passed = np.full((ROWS, count * PANEL), np.nan), np.full((ROWS, count + 1), 77, np.int64)
    if kind == PRODUCT:
        out = np.empty((0, 0), np.float32)
    given = q, row, panels, first, count, bias, limits, out, passed
    assert call_part(sieve_address(kind), given) == 0
    assert (passed[:, count] == 77).all()
    bits = passed[:, :count, None].view(np.uint64) >> np.arange(PANEL, dtype=np.uint64) & np.uint64(1)
    return out, bits.reshape(ROWS, -1).astype(bool)


@needs_vectors
@pytest.mark.parametrize("kind", [DISTANCE, PRODUCT])
def test_sieve(kind):
    dtype = np.float64 if kind == DISTANCE else np.float32
    limits = np.array([[3.0], [-np.inf], [np.inf], [np.nan], [0.0], [-4.0], [6.0], [11.0]], dtype)
    for d in (1, 2, 7):
        rng = NUMBERS(8)
        q, x = rng.integers(-2, 3, (8, d)).astype(dtype), rng.integers(-2, 3, (5 * PANEL, d)).astype(dtype)
        panels, bias = pack(x, dtype), rng.integers(-2, 3, (5, PANEL)).astype(dtype)
        bias[3, 20:40] = -np.inf
        for row, first, count in ((0, 0, 5), (4, 1, 3), (2, 4, 1), (3, 2, 2)):
            some, own = panels[first : first + count], slice(row, row + ROWS)
            out, ours = _sieved(kind, q, panels, first, count, row, bias, limits[own, 0])
            with np.errstate(invalid="ignore"):
                twin = sieve_plain(
                    q[own], some, bias[first : first + count], limits[own].repeat(count, 1), kind
                )
            np.testing.assert_array_equal(ours, twin)
            if kind == DISTANCE:
                np.testing.assert_array_equal(out, scores_plain(q[own], some, np.ones(d), kind))
    assert ours.any()
    assert not ours.all()


@needs_vectors
def test_sieve_of_distances_compares_what_it_writes():
    rng = NUMBERS(9)
    q, x = rng.normal(size=(ROWS, 3)) + 1e5, rng.normal(size=(4 * PANEL, 3)) + 1e5
    panels, no_bias = pack(x, np.float64), np.empty((0, 0))
    out, _ = _sieved(DISTANCE, q, panels, 0, 4, 0, no_bias, np.zeros(ROWS))
    np.testing.assert_allclose(out, ((q[:, None] - x) ** 2).sum(2), rtol=1e-14)
    for rank in (0, 17, 255):
        limits = np.sort(out, axis=1)[:, rank].copy()
        again, ours = _sieved(DISTANCE, q, panels, 0, 4, 0, no_bias, limits)
        np.testing.assert_array_equal(again, out)
        np.testing.assert_array_equal(ours, out <= limits[:, None])  # the limit itself passes
        _, fewer = _sieved(DISTANCE, q, panels, 0, 4, 0, no_bias, np.nextafter(limits, 0))
        np.testing.assert_array_equal(ours.sum(1) - fewer.sum(1), np.ones(ROWS))


# -- parts -------------------------------------------------------------------------------------------------------------


def test_an_exception_in_a_part_is_passed_on():
    def part(factor):
        @njit(error_model="numpy")
        def times(n):
            if n < 0:
                raise ValueError("n must not be negative")
            return factor * n

        return times

    twice, thrice = part(2), part(3)
    first = parts.address(twice, types.int64)
    assert first == parts.address(twice, types.int64)
    assert first != parts.address(thrice, types.int64)
    assert call_part(first, (21,)) == 42
    assert call_part(parts.address(thrice, types.int64), (21,)) == 63
    with pytest.raises(ValueError, match="n must not be negative"):
        call_part(first, (-1,))
    assert call_part(first, (4,)) == 8  # and all goes on


def test_what_is_called_both_ways_returns_a_number_by_itself():
    """A part called by name is compiled for what it returns; called by its address it must return an integer."""
    compiled = njit(error_model="numpy", no_cpython_wrapper=True)(program.is_empty.py_func)
    compiled.compile(program.IS_EMPTY_PART)
    assert compiled.nopython_signatures[0].return_type == types.int64


class _Pair(NamedTuple):
    weights: np.ndarray
    size: int


class _Given(NamedTuple):
    rows: np.ndarray
    pair: _Pair
    doubled: bool


PAIR = types.NamedTuple((types.Array(types.float32, 2, "C"), types.int64), _Pair)
GIVEN = Record(types.NamedTuple((parts.THREE, PAIR, types.boolean), _Given))


@njit
def _size_of(pair):
    return pair.size


def test_a_record_is_read_field_by_field():
    @njit(error_model="numpy")
    def part(given):
        rows, pair = given.rows, given.pair
        for i in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                rows[i, j, pair.size - 1] = pair.weights[i, j] * (2 if given.doubled else 1)
        some = rows[rows.shape[0] - 1]  # a view, by strides
        some[0, 0] = -1.0
        return _size_of(whole(given.pair))

    weights = NUMBERS(3).random((3, 2), dtype=np.float32)
    for doubled in (False, True):
        given = _Given(np.zeros((3, 2, 5)), _Pair(weights, 4), doubled)
        assert run(parts.address(part, GIVEN), GIVEN, given) == 4
        wanted = np.zeros((3, 2, 5))
        wanted[:, :, 3] = weights * (1 + doubled)
        wanted[2, 0, 0] = -1.0
        np.testing.assert_array_equal(given.rows, wanted)


@pytest.mark.parametrize(
    "weights",
    [np.zeros((3, 2)), np.zeros(6, np.float32), np.zeros((2, 3), np.float32).T],
    ids=["dtype", "axes", "order"],
)
def test_a_record_takes_no_other_array(weights):
    with pytest.raises(TypeError, match="a record wants"):
        run(0, GIVEN, _Given(np.zeros((3, 2, 5)), _Pair(weights, 4), False))


PARTS = """
from locbook.engine import named, sieve, scores, vectors
addresses = [named.metric_address(code) for code in (0, 1)] + [named.profile_address(code) for code in (2, 12)]
if vectors.ENABLED:
    addresses += [scores.scores_address("float64", kind) for kind in (0, 2)] + [sieve.sieve_address(0)]
assert len(set(addresses)) == len(addresses)
"""


def test_parts_are_compiled_once_for_all_processes(tmp_path):
    def files():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        subprocess.run(
            [sys.executable, "-c", PARTS], check=True, env=environment, cwd=Path(__file__).parents[2]
        )
        return {f: f.stat().st_mtime_ns for f in tmp_path.rglob("*") if f.is_file()}

    first = files()
    # two numbers in the closure of one function: machine code for each
    assert sum(f.name.startswith("named.metric_address.") and f.suffix == ".nbc" for f in first) == 2
    assert files() == first  # nothing is compiled again, nothing is left


def test_all_machine_code_of_the_engine_is_tied_to_its_sources():
    """Numba alone would not see a change in the file of a function that another one calls."""
    tied = []
    for found in pkgutil.iter_modules(engine.__path__, "locbook.engine."):
        for function in vars(importlib.import_module(found.name)).values():
            file = getattr(getattr(function, "_cache", None), "_cache_file", None)
            if file is not None and function.py_func.__module__.startswith("locbook.engine"):
                assert file._source_stamp[1] == parts.SOURCES, function
                tied.append(function)
    assert len(tied) > 20
