"""The stated accuracy (tests/engine/exact.py) on nasty cases, against 50 digits; then properties of any problem."""

import math
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locbook as lb
from locbook import EmptyNeighborhoodWarning, engine
from tests.engine import exact
from tests.engine.problems import problem

DTYPES = (np.dtype(np.float64), np.dtype(np.float32))
#: Offset at which a data set of spread 1 still has its digits.
OFFSET = {DTYPES[0]: 1e8, DTYPES[1]: 1e4}
PROFILES = {
    **{name: lb.KERNELS[name] for name in ("uniform", "triangular", "epanechnikov", "biweight", "triweight")},
    **{name: lb.KERNELS[name] for name in ("tricube", "cosine", "gaussian", "laplace", "cauchy")},
    "student_t": lambda h: lb.student_t(h, nu=2.5),
    "rational_quadratic": lambda h: lb.rational_quadratic(h, alpha=0.6),
}
FULL = ("gaussian", "laplace", "cauchy", "student_t", "rational_quadratic")
both_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def points(rng, size, d, dtype, offset=0.0):
    return (offset + rng.normal(size=(size, d))).astype(dtype)


def check(kernel, q, x, values, label="", *, sample_weight=None, mask=None):
    """Mean, weights and log-sum of one problem, each within its bound; returns the exact weights."""
    w = exact.exact_weights(kernel, q, x, sample_weight=sample_weight, mask=mask)
    dtype = np.result_type(q, x, values)
    options = {"sample_weight": sample_weight, "mask": mask}
    some = w.taken().any(1)
    with (
        nullcontext() if some.all() else pytest.warns(EmptyNeighborhoodWarning, match=f"^{(~some).sum()} of")
    ):
        answer = lb.local_mean(q, x, values, kernel, **options)
    assert answer.dtype == (dtype if dtype.kind == "f" else np.float64)
    exact.assert_mean(answer, w, values, answer.dtype, f"mean, {label}")
    given = problem(kernel, q, x, **options)
    exact.assert_log_sum(engine.log_sum(given), w, answer.dtype, label=f"log_sum, {label}")
    weights = engine.normalized_weights(given, warn=False)
    assert not weights[~some].any()
    seen = exact.Weights(*(part[some] for part in w))
    exact.assert_weights(weights[some], seen, answer.dtype, f"weights, {label}")
    return w


# -- nasty cases -----------------------------------------------------------------------------------------------------


FOREVER = """
import numpy as np, locbook as lb
for dtype in (np.float64, np.float32):
    x = np.array([[-1.0], [0.5], [0.75], [3.0]] * 20, dtype=dtype)
    q, y = x[:9] + dtype(0.3), np.arange(80).astype(dtype)
    for h in np.geomspace(1e-18, 1e18, 37):
        for kernel in (lb.gaussian(h), lb.laplace(h), lb.laplace([h]), lb.cauchy(h), lb.softmax(h)):
            for weight in (None, np.geomspace(1e-300, 1e300, 80)):
                for values in (y, np.repeat(y[:, None], 20, 1)):
                    answer = lb.local_mean(q, x, values, kernel, sample_weight=weight)
                    assert ((answer > -1e-6) & (answer < 79.0001)).all(), (dtype, kernel, answer)
"""


def test_no_bandwidth_loops_forever():
    # in a process of its own: compiled code that does not end cannot be interrupted
    subprocess.run([sys.executable, "-c", FOREVER], check=True, timeout=120, cwd=Path(lb.__file__).parents[1])


@both_dtypes
@pytest.mark.parametrize("name", PROFILES)
def test_bandwidth_and_offset(name, dtype):
    rng = np.random.default_rng(1)
    for offset in (0.0, OFFSET[dtype]):
        x = points(rng, 11, 3, dtype, offset)
        values = np.column_stack([rng.normal(size=11), rng.normal(size=11) + offset]).astype(dtype)
        for ratio in (1e-6, 1e-3, 0.5, 1e3, 1e6):
            h = ratio * 2.0
            near = (x[3] + 0.3 * h).astype(dtype)
            q = np.vstack([x[:1], near, points(rng, 2, 3, dtype, offset)])
            check(PROFILES[name](h), q, x, values, f"offset {offset:g}, bandwidth {h:g}")


@both_dtypes
@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("temperature", [1e-3, 1.0, 1e3])
def test_softmax(temperature, offset, dtype):
    rng = np.random.default_rng(2)
    x = points(rng, 11, 3, dtype, OFFSET[dtype] if offset else 0.0)
    q, values = points(rng, 5, 3, dtype), rng.normal(size=11).astype(dtype)
    q[0] = 0  # all weights alike
    check(lb.softmax(temperature), q, x, values)


@both_dtypes
@pytest.mark.parametrize("d", [1, 2, 3, 8, 17, 64, 784])
def test_dimensions(d, dtype):
    rng = np.random.default_rng(d)
    n = 12 if d > 100 else 40
    q, x, values = points(rng, 3, d, dtype), points(rng, n, d, dtype), rng.normal(size=n).astype(dtype)
    h = 0.7 * math.sqrt(d)
    kernels = {"gaussian": lb.gaussian(h), "laplace": lb.laplace(h), "softmax": lb.softmax(math.sqrt(d))}
    if d < 100:
        kernels |= {name: PROFILES[name](2 * h) for name in PROFILES if name not in kernels}
    for name, kernel in kernels.items():
        check(kernel, q, x, values, name)
    narrow = lb.gaussian(0.05)  # log-weights of -400 d
    check(narrow, q, x, values, "narrow")


@both_dtypes
@pytest.mark.parametrize("name", [*FULL, "softmax"])
def test_far_queries_on_both_sides(name, dtype):
    rng = np.random.default_rng(3)
    x, values = points(rng, 13, 1, dtype), rng.normal(size=13).astype(dtype)
    far = np.array([1.0, 10.0, 1e2, 1e3, 1e4])
    for h in (1.0, 1e-3):
        q = np.concatenate([x.min() - far * h, x.max() + far * h]).astype(dtype)[:, None]
        kernel = lb.softmax(h) if name == "softmax" else PROFILES[name](h)
        check(kernel, q, x, values, f"bandwidth {h}")


@both_dtypes
@pytest.mark.parametrize("name", FULL)
def test_far_queries_between_two_samples_that_tie(name, dtype):
    x = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [40.0, 0.0]], dtype=dtype)
    values = np.array([1.0, 4.0, 7.0, -100.0], dtype=dtype)
    q = np.array([[0.0, 0.0], [0.0, 3.0], [0.0, -3.0]], dtype=dtype)
    for h in (1.0, 1e-1, 1e-2, 1e-4):
        w = check(PROFILES[name](h), q, x, values, f"bandwidth {h}")
    if name in ("gaussian", "laplace"):  # the tie is exact, and nobody else counts
        assert float(w.shares()[0, 1]) == pytest.approx(1 / 3, rel=1e-15)
        np.testing.assert_array_equal(lb.local_mean(q, x, values, PROFILES[name](h)), 4.0)


@both_dtypes
@pytest.mark.parametrize("name", [*PROFILES, "softmax"])
def test_duplicates_and_single_samples(name, dtype):
    rng = np.random.default_rng(4)
    kernel = lb.softmax(0.5) if name == "softmax" else PROFILES[name](1.5)
    x = np.repeat(points(rng, 3, 2, dtype), [1, 5, 7], axis=0)
    values = rng.normal(size=13).astype(dtype)
    check(kernel, np.vstack([x[[0, 4]], x[:1] + 1]).astype(dtype), x, values, "duplicates")
    for q in (x[:1], x[:1] + 1, x[:1] + 50):
        value = np.array([rng.normal()], dtype=dtype)
        w = check(kernel, q.astype(dtype), x[:1], value, "one sample")
        if w.taken().all():
            assert lb.local_mean(q.astype(dtype), x[:1], value, kernel)[0] == value[0]


def _well(d):
    rng = np.random.default_rng(5)
    return np.linalg.qr(rng.normal(size=(d, d)))[0] @ np.diag(np.linspace(0.5, 1.5, d))


RULERS = {
    "vector": np.array([1e-3, 1.0, 1e3]),
    "matrix": _well(3),
    "matrix, condition 1e6": _well(3) @ np.diag([1.0, 1e-3, 1e3]) @ _well(3).T,
    "scaled columns": np.diag([1.0, 1e-3, 1e3]) @ _well(3),
    "per query": lb.per_query(np.geomspace(1e-3, 1e3, 6)),
    "per sample": lb.per_sample(np.geomspace(1e-3, 1e3, 14)),
}


@both_dtypes
@pytest.mark.parametrize("name", ["gaussian", "laplace", "cauchy", "epanechnikov"])
@pytest.mark.parametrize("ruler", RULERS)
def test_rulers(ruler, name, dtype):
    rng = np.random.default_rng(6)
    q, x, values = points(rng, 6, 3, dtype), points(rng, 14, 3, dtype), rng.normal(size=14).astype(dtype)
    q[0] = x[0]
    q[1] = x[1] + np.array([1e-4, 0.1, 0.1], dtype=dtype)
    check(PROFILES[name](RULERS[ruler]), q, x, values)


@both_dtypes
@pytest.mark.parametrize("spread", [1.0, 600.0, 3e3, 1e9])
@pytest.mark.parametrize("name", ["gaussian", "cauchy", "epanechnikov"])
def test_covariances_of_near_and_far_samples(name, spread, dtype):
    """Near each query there are samples; the others are that far away, in bandwidths."""
    rng = np.random.default_rng(7)
    covariance = _well(3) @ _well(3).T
    x = rng.normal(size=(40, 3)) * 0.5 + spread * rng.integers(-1, 2, (40, 1)) / 2 + 7e3
    q = x[:8] + rng.normal(size=(8, 3)) * 0.3
    x, q, values = x.astype(dtype), q.astype(dtype), rng.normal(size=40).astype(dtype)
    kernel = PROFILES[name](2.0, metric=lb.mahalanobis(covariance))
    check(kernel, q, x, values, f"spread {spread}")
    check(kernel * lb.laplace(1.0, on=1) if name != "epanechnikov" else kernel, q, x, values, "a factor more")


PRODUCTS = {
    "gaussian x laplace": lb.gaussian(0.8, on=[0, 1]) * lb.laplace(0.3, on=2),
    "gaussian x window": lb.gaussian(0.8) * lb.window(1.0, on=2),
    "epanechnikov x cauchy": lb.epanechnikov(3.0, on=[0, 1]) * lb.cauchy(0.1, on=2),
    "softmax x gaussian": lb.softmax(2.0) * lb.gaussian(0.01, on=0),
    "gaussian x triweight": lb.gaussian(1e-3) * lb.triweight(3.0, on=1),
    "student x student x cauchy": lb.student_t(0.1) * lb.student_t(0.2, on=1) * lb.cauchy(1e-3),
    "scaled": 1e-200 * lb.gaussian(0.5) * lb.laplace(1e-2),
}


@both_dtypes
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, dtype):
    rng = np.random.default_rng(7)
    q, x, values = points(rng, 6, 3, dtype), points(rng, 14, 3, dtype), rng.normal(size=14).astype(dtype)
    check(PRODUCTS[name], q, x, values)


@both_dtypes
@pytest.mark.parametrize("name", [*PROFILES, "softmax"])
def test_sample_weights_from_1e_300_to_1e300(name, dtype):
    rng = np.random.default_rng(8)
    q, x, values = points(rng, 5, 2, dtype), points(rng, 21, 2, dtype), rng.normal(size=21).astype(dtype)
    kernel = lb.softmax() if name == "softmax" else PROFILES[name](2.0)
    for weight in (
        np.geomspace(1e-300, 1e300, 21),
        np.where(np.arange(21) % 2, 1e300, 0.0),
        np.full(21, 1e-300),
        rng.uniform(0.5, 2.0, 21) * 1e-300,
    ):
        check(kernel, q, x, values, f"weights from {weight.min()}", sample_weight=weight)


@pytest.mark.parametrize("kernel", [lb.cauchy(1.0), lb.epanechnikov(3.0), lb.gaussian(1.0)], ids=repr)
def test_sample_weights_at_the_ends_with_values_of_any_size(kernel):
    x = np.array([[0.0], [1.0], [2.0]])
    for weight in (1e300, 1e-300):
        for size in (1.0, 1e10, 1e-20, 1e300):
            values = size * np.array([1.0, 2.0, 4.0])
            check(kernel, x, x, values, f"weight {weight}, values {size}", sample_weight=np.full(3, weight))


@pytest.mark.parametrize("kernel", [lb.cauchy(1.0), lb.gaussian(1.0)], ids=repr)
def test_a_density_with_the_largest_sample_weights(kernel):
    total = lb.log_density([[0.0]], [[0.0], [0.0]], kernel, sample_weight=[1.5e308, 1.5e308])
    np.testing.assert_allclose(total, lb.log_density([[0.0]], [[0.0]], kernel), rtol=1e-15)


@pytest.mark.parametrize("kernel", [lb.cauchy(1.0), lb.laplace(1.0)], ids=repr)
def test_only_samples_of_tiny_weight_take_part(kernel):
    x, values = np.array([[0.0], [3.0], [4.0]]), np.array([1.0, 2.0, 50.0])
    mask = np.array([[True, True, False]])
    check(kernel, np.array([[1.0]]), x, values, sample_weight=np.array([1e-300, 3e-300, 1e300]), mask=mask)
    check(kernel, np.array([[1e20]]), x, values, sample_weight=np.array([1e-300, 3e-300, 1e-300]), mask=mask)


# -- values ----------------------------------------------------------------------------------------------------------


def _ulps(answer, value):
    return np.abs(answer - value).max() / np.spacing(np.abs(value))


@both_dtypes
@pytest.mark.parametrize("name", [*PROFILES, "softmax"])
def test_a_mean_of_equal_values_is_that_value(name, dtype):
    rng = np.random.default_rng(9)
    q, x = points(rng, 20, 2, dtype), points(rng, 1000, 2, dtype)
    kernel = lb.softmax() if name == "softmax" else PROFILES[name](3.0)
    sizes = (1 / 3, 1e8, 1e300, 1e-300) if dtype == np.float64 else (1 / 3, 1e4, 3e38, 1e-37)
    for size in sizes:
        for value in (dtype.type(size), -dtype.type(size)):
            for n in (3, 10, 100, 1000):
                answer = lb.local_mean(q, x[:n], np.full(n, value), kernel, empty="nearest")
                assert _ulps(answer, value) <= exact.ULPS, f"{n} values of {value}"


@both_dtypes
@pytest.mark.parametrize("name", ["gaussian", "laplace", "cauchy", "triweight", "softmax"])
def test_values_of_any_size(name, dtype):
    rng = np.random.default_rng(10)
    q, x = points(rng, 4, 2, dtype), points(rng, 30, 2, dtype)
    kernel = lb.softmax() if name == "softmax" else PROFILES[name](2.0)
    plain = rng.normal(size=30)
    large, small = (1e307, 1e-300) if dtype == np.float64 else (5e37, 1e-36)
    columns = {
        "large": large * plain,
        "small": small * plain,
        "offset": OFFSET[dtype] + plain,
        "large and equal": large * (1 + 1e-3 * plain),
        "one outlier": np.where(np.arange(30) == 4, large, plain),
        "plain": plain,
    }
    check(kernel, q, x, np.column_stack(list(columns.values())).astype(dtype), "together")
    for label, column in columns.items():
        check(kernel, q, x, column.astype(dtype), label)


def test_small_weights_of_small_values():
    x = np.array([[0.9999999], [0.9999998]])  # weights of about 1e-20
    check(lb.triweight(1.0), np.zeros((1, 1)), x, np.array([1e-300, 3e-300]))


# -- the ends of the range -------------------------------------------------------------------------------------------


@both_dtypes
@pytest.mark.parametrize("name", [*FULL, "epanechnikov"])
def test_data_near_the_ends_of_the_range(name, dtype):
    rng = np.random.default_rng(11)
    q, x, values = rng.normal(size=(5, 2)), rng.normal(size=(12, 2)), rng.normal(size=12).astype(dtype)
    for size in (1e-140, 1e-60, 1e60, 1e140) if dtype == np.float64 else (1e-30, 1e-20, 1e20, 1e37):
        for ratio in (1e-3, 2.0, 1e3):
            scaled = ((q * size).astype(dtype), (x * size).astype(dtype))
            check(PROFILES[name](ratio * size), *scaled, values, f"size {size:g}, bandwidth {ratio:g} of it")


def test_softmax_of_tiny_and_large_numbers():
    rng = np.random.default_rng(12)
    q, x, values = rng.normal(size=(5, 2)), rng.normal(size=(12, 2)), rng.normal(size=12)
    for size, temperature in ((1e-140, 1e-280), (1e140, 1e280), (1e-200, 1.0), (1e100, 1e199)):
        check(lb.softmax(temperature), q * size, x * size, values, f"size {size:g}")
    for size in (1e-30, 1e30):
        with_type = [(a * s).astype(np.float32) for a, s in ((q, size), (x, size), (values, 1.0))]
        check(lb.softmax(size * size), *with_type, f"float32, size {size:g}")


TOO_LARGE = {
    "mean": lambda kernel: lb.local_mean([[1e160]], [[0.0], [1.0]], [1.0, 2.0], kernel),
    "density": lambda kernel: lb.log_density([[1e160]], [[0.0], [1.0]], kernel),
    "weights": lambda kernel: lb.local_weights([[1e160]], [[0.0], [1.0]], kernel),
}


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("reduction", TOO_LARGE)
def test_distances_whose_squares_overflow_are_refused(reduction, name):
    with pytest.raises(ValueError, match=r"1e\+150|overflow"):
        TOO_LARGE[reduction](PROFILES[name](1.0))


def test_neighbors_beyond_the_squares_are_refused():
    for q, x in (([[0.0]], [[1e160], [2e160]]), ([[1e200]], [[-1e200]])):
        with pytest.raises(ValueError, match=r"1e\+150|overflow"):
            engine.nearest(problem("gaussian", np.array(q), np.array(x)), 1)
        with pytest.raises(ValueError, match=r"1e\+150|overflow"):
            lb.local_mean(q, x, np.arange(len(x)), lb.knn(1))


def test_moments_beyond_all_floats_are_refused():
    given = problem("gaussian", np.array([[1e140]]), np.array([[0.0], [1.0]]))
    with pytest.raises(ValueError, match="overflow"):
        engine.moments(given, np.ones((2, 1)), 3)


def test_softmax_beyond_all_floats_is_refused():
    x = [[1e200, 1e200], [1.0, 1.0]]
    for q in ([[1e200, 0.0]], [[1e200, -1e200]], [[-1e200, -1e200]]):
        with pytest.raises(ValueError, match=r"1e\+150|overflow"):
            lb.local_mean(q, x[:1], [1.0], lb.softmax())
        with pytest.raises(ValueError, match=r"1e\+150|overflow"):
            engine.log_sum(problem(lb.softmax(), np.array(q), np.array(x[:1])))


def test_products_of_heavy_tails_do_not_underflow():
    x, values = np.array([[0.0], [5e89]]), np.array([1.0, 3.0])
    check(lb.cauchy() * lb.cauchy(), np.array([[1e90]]), x, values)


# -- masks and empty rows --------------------------------------------------------------------------------------------


@both_dtypes
@pytest.mark.parametrize("name", [*PROFILES, "softmax"])
def test_masks(name, dtype):
    rng = np.random.default_rng(13)
    q, x, values = points(rng, 6, 2, dtype), points(rng, 17, 2, dtype), rng.normal(size=17).astype(dtype)
    kernel = lb.softmax() if name == "softmax" else PROFILES[name](1.0)
    mask = rng.random((6, 17)) < 0.5
    mask[[1, 4]] = False  # nobody takes part
    weight = rng.integers(0, 3, 17).astype(float)
    check(kernel, q, x, values, "mask", mask=mask)
    check(kernel, q, x, values, "mask and weights", mask=mask, sample_weight=weight)
    for policy in ("nearest", "mean"):
        if policy == "nearest" and name == "softmax":
            continue
        with pytest.warns(EmptyNeighborhoodWarning, match="^2 of 6"):
            answer = lb.local_mean(q, x, values, kernel, mask=mask, empty=policy)
        assert np.isnan(answer).tolist() == [i in (1, 4) for i in range(6)]
    with pytest.raises(ValueError, match="of 6 queries"):
        lb.local_mean(q, x, values, kernel, mask=mask, empty="raise")


@both_dtypes
@pytest.mark.parametrize("name", [name for name in PROFILES if name not in FULL])
def test_policies_of_empty_rows(name, dtype):
    rng = np.random.default_rng(14)
    offset = OFFSET[dtype]
    x, values = points(rng, 15, 2, dtype, offset), rng.normal(size=15).astype(dtype)
    q = np.vstack([x[:2], x[2:4] + 30]).astype(dtype)
    kernel = PROFILES[name](1e-3)
    nearest = lb.local_mean(q, x, values, kernel, empty="nearest")
    rows = exact.floats(exact.squared_distances(q, x)[0]).argmin(1)
    np.testing.assert_array_equal(nearest, values[rows])
    everybody = lb.local_mean(q, x, values, kernel, empty="mean")
    np.testing.assert_array_equal(everybody[:2], nearest[:2])
    mean = math.fsum(values) / 15
    bound = exact.mean_bound(0.0, np.abs(values).max(), np.ptp(values), mean, 15, dtype)
    assert np.abs(everybody[2:] - mean).max() <= bound


@pytest.mark.parametrize("d", [1, 8, 64, 784])
def test_float32_up_to_where_float64_takes_over(d):
    # log-weights from 0 to some thousands: against float64, which the tests above hold to 50 digits
    rng = np.random.default_rng(20)
    x = points(rng, 400, d, np.float32)
    columns = [np.where(np.arange(400) % 2, 1.0, -1.0), 1e4 + rng.normal(size=400), rng.normal(size=400)]
    values = np.column_stack(columns).astype(np.float32)
    span, largest = np.ptp(values.astype(float), axis=0), np.abs(values).max(0)
    kernels = [
        lb.gaussian(1.0),
        lb.laplace(0.1),
        lb.gaussian(0.3 * math.sqrt(d)),
        lb.softmax(math.sqrt(d) / 3),
    ]
    for reach in (1.0, 4.0, 8.0, 16.0, 30.0):
        away = reach / math.sqrt(d) * rng.normal(size=(40, d))
        q = (x[:40] + away).astype(np.float32)
        for kernel in (*kernels, lb.gaussian(np.linspace(0.5, 2.0, d) if d > 1 else 1.0)):
            small, wide = (lb.local_mean(q, x.astype(t), values, kernel) for t in (np.float32, np.float64))
            assert small.dtype == np.float32
            assert wide.dtype == np.float64
            bound = exact.mean_bound(0.0, largest, span, wide, 400, DTYPES[1])
            over = np.abs(small - wide) / bound
            assert over.max() <= 1, f"{kernel!r}, reach {reach}: {over.max(0)} of the bound, by column"
            small, wide = (engine.log_sum(problem(kernel, q, x.astype(t))) for t in (np.float32, np.float64))
            assert (np.abs(small - wide) <= exact.FLOAT32 * (1 + np.abs(wide))).all(), (
                f"{kernel!r}, reach {reach}"
            )


# -- integers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int64", "uint64", "bool"])
def test_integers(dtype):
    rng = np.random.default_rng(15)
    info = np.iinfo(dtype) if dtype != "bool" else None
    low, high = (0, 1) if info is None else (max(info.min, -(2**53)), min(info.max, 2**53))
    q, x, values = (
        rng.integers(low, high, size, endpoint=True).astype(dtype) for size in ((4, 3), (12, 3), 12)
    )
    q[0], q[1], x[0], x[1] = low, high, high, low  # differences that wrap around
    for name in ("gaussian", "laplace", "epanechnikov"):
        check(PROFILES[name](0.7 * (high - low)), q, x, values, name)
    exact.assert_nearest(engine.nearest(problem("gaussian", q, x), 5), q, x, 5)


# -- moments and neighbours ------------------------------------------------------------------------------------------


@both_dtypes
@pytest.mark.parametrize("name", ["gaussian", "laplace", "cauchy", "epanechnikov", "softmax", "product"])
@pytest.mark.parametrize("degree", [1, 2])
def test_moments(degree, name, dtype):
    rng = np.random.default_rng(16)
    for offset in (0.0, OFFSET[dtype]):
        if offset and name == "softmax":
            continue
        q, x = points(rng, 3, 2, dtype, offset), points(rng, 9, 2, dtype, offset)
        values = np.column_stack([rng.normal(size=9), rng.normal(size=9) + offset]).astype(dtype)
        for h in (1e-3, 2.0, 1e6):
            if name == "product":
                kernel = lb.gaussian(h, on=0) * lb.epanechnikov(10.0, on=1)
            else:
                kernel = lb.softmax(h) if name == "softmax" else PROFILES[name](h)
            answer = engine.moments(problem(kernel, q, x), values, degree)
            w = exact.exact_weights(kernel, q, x)
            table = engine.monomials(2, degree)
            exact.assert_moments(answer, w, q, x, values, table, f"offset {offset:g}, bandwidth {h:g}")


@both_dtypes
@pytest.mark.parametrize("d", [1, 2, 3, 8, 17, 64])
def test_nearest(d, dtype):
    rng = np.random.default_rng(d)
    for offset, size in ((0.0, 1.0), (OFFSET[dtype], 1.0), (0.0, 1e-18), (0.0, 1e18)):
        q, x = ((offset + size * rng.normal(size=(n, d))).astype(dtype) for n in (3, 30))
        x[20:] = x[:10]  # duplicates
        q[0] = x[5]
        mask = rng.random((3, 30)) < 0.5
        mask[1] = False
        mask[1, :2] = True  # fewer than k
        for taken in (None, mask):
            found = engine.nearest(problem("gaussian", q, x, mask=taken), 4)
            exact.assert_nearest(found, q, x, 4, taken, f"offset {offset:g}, size {size:g}")


@both_dtypes
@pytest.mark.parametrize("d", [1, 2, 3, 8, 17])
def test_ties_between_neighbours_go_by_row(d, dtype):
    rng = np.random.default_rng(d)
    q, x = ((OFFSET[dtype] + rng.integers(-2, 3, (n, d))).astype(dtype) for n in (7, 200))
    for k in (1, 5, 60):
        found = engine.nearest(problem("gaussian", q, x), k)
        squared = ((q.astype(int)[:, None] - x.astype(int)) ** 2).sum(-1)
        np.testing.assert_array_equal(found.indices, np.argsort(squared, axis=1, kind="stable")[:, :k])
        np.testing.assert_allclose(found.distances, np.sqrt(np.sort(squared, axis=1)[:, :k]), rtol=4e-16)


# -- a million samples -----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not exact.LONG, reason="long double is no longer than double here")
@both_dtypes
def test_a_million_samples(dtype):
    rng = np.random.default_rng(17)
    n = 1_000_000
    x = points(rng, n, 3, dtype, 100.0)
    values = np.column_stack([1e3 + rng.normal(size=n), rng.normal(size=n)]).astype(dtype)
    q = np.array([[100.0, 100.0, 100.0], [99.0, 101.5, 100.5], [90.0, 70.0, 130.0]], dtype)
    for kernel in (lb.gaussian(0.5), lb.laplace(0.1), lb.softmax(50.0)):
        answer = lb.local_mean(q, x, values, kernel)
        sums = engine.log_sum(problem(kernel, q, x))
        for i in range(len(q)):
            mean, bound, log_sum, epsilon = exact.long_mean(kernel, q[i], x, values)
            assert (np.abs(answer[i] - mean) <= bound).all(), (
                f"{kernel!r}, query {i}: {answer[i]} is not {mean}"
            )
            share = exact.float32_error(dtype) + 8 * exact.U
            bound = epsilon + exact.summation_error(n) + share * (1 + abs(log_sum))
            assert abs(sums[i] - log_sum) <= bound, f"{kernel!r}, query {i}: {sums[i]} is not {log_sum}"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("d", [1, 3, 784])
def test_log_density(d, dtype):
    rng = np.random.default_rng(18)
    for h in (1e-3, 1.0, 1e3):
        q, x = points(rng, 2, d, dtype), points(rng, 9, d, dtype)
        weight = rng.uniform(0.1, 2.0, 9)
        w = exact.exact_weights(lb.gaussian(h), q, x, sample_weight=weight)
        with mpmath.workdps(exact.DIGITS):
            constant = -d * (mpmath.log(2 * mpmath.pi) / 2 + mpmath.log(mpmath.mpf(h)))
            total = sum(exact.numbers(weight))
        answer = lb.log_density(q, x, lb.gaussian(h), sample_weight=weight)
        assert answer.dtype == dtype
        exact.assert_log_sum(answer, w, dtype, constant, total, f"bandwidth {h:g}")


# -- properties ------------------------------------------------------------------------------------------------------

LOCAL = {
    "gaussian": lb.gaussian,
    "laplace": lb.laplace,
    "cauchy": lb.cauchy,
    "epanechnikov": lb.epanechnikov,
    "softmax": lb.softmax,
    "product": lambda h: lb.gaussian(h, on=0) * lb.laplace(2 * h, on=1),
}
some_kernels = st.sampled_from(sorted(LOCAL))
some_bandwidths = st.sampled_from([1e-3, 0.1, 1.0, 30.0])
some_dtypes = st.sampled_from(DTYPES)
seeds = st.integers(0, 2**32 - 1)
properties = settings(max_examples=40, deadline=None, derandomize=True)


def made(seed, dtype, largest=90):
    """Queries near, far and on samples; samples, some twice; two columns of values; numbers on a grid of 1/1024."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 12), rng.integers(1, largest)
    x = np.round(rng.normal(size=(n, 2)) * 1024) / 1024
    x[n // 2 :: 3] = x[0]
    q = np.round(rng.normal(size=(m, 2)) * 1024) / 1024
    q[::3] = x[rng.integers(0, n, len(q[::3]))]
    q[1::4] *= 20.0
    values = np.column_stack([rng.normal(size=n), 5.0 + rng.integers(0, 3, n)])
    return rng, q.astype(dtype), x.astype(dtype), values.astype(dtype)


def mean_of(name, h, q, x, values, **options):
    return lb.local_mean(
        q, x, values, LOCAL[name](h), empty="nearest" if name == "epanechnikov" else "nan", **options
    )


def twice_the_bound(name, h, q, x, values, dtype):
    """For two answers to the same question."""
    q, x = q.astype(float), x.astype(float)
    size = (
        np.abs(LOCAL[name](h).log(q, x)).min(1)
        if name not in ("epanechnikov", "cauchy")
        else np.zeros(len(q))
    )
    if name == "softmax":
        size = (np.abs(q) @ np.abs(x).T).max(1) / h
    epsilon = 2 * exact.squared_error(2) * (2 + size + math.log(len(x)))
    if name == "epanechnikov":
        epsilon = np.full(len(q), 1e-9)  # near the edge a weight has fewer digits
    span, largest = np.ptp(values, axis=0), np.abs(values).max(0)
    return 2 * exact.mean_bound(epsilon[:, None] * span, largest, span, largest, len(x), dtype)


@properties
@given(seeds, some_kernels, some_bandwidths, some_dtypes)
def test_weights_sum_to_1_and_a_mean_stays_among_its_values(seed, name, h, dtype):
    rng, q, x, values = made(seed, dtype)
    mask = rng.random((len(q), len(x))) < 0.7
    mask[:, 0] = True
    weight = 10.0 ** rng.uniform(-3, 3, len(x))
    options = {"mask": mask, "sample_weight": weight, "empty": "mean"}
    answer, weights = lb.local_mean(q, x, values, LOCAL[name](h), return_weights=True, **options)
    assert answer.dtype == weights.dtype == dtype
    assert (weights >= 0).all()
    assert not weights[~mask].any()
    unit = np.finfo(dtype).eps
    assert np.abs(weights.astype(float).sum(1) - 1).max() <= unit * (2 + math.sqrt(len(x)))
    for i in range(len(q)):
        seen = values[mask[i]]
        slack = exact.ULPS * np.spacing(np.abs(seen).max(0))
        assert (answer[i] >= seen.min(0) - slack).all()
        assert (answer[i] <= seen.max(0) + slack).all()


@properties
@given(
    seeds,
    st.sampled_from(["gaussian", "laplace", "cauchy", "epanechnikov", "product"]),
    some_bandwidths,
    some_dtypes,
)
def test_a_shift_of_queries_and_samples(seed, name, h, dtype):
    _, q, x, values = made(seed, dtype)
    shift = dtype.type(2**20 if dtype == np.float64 else 2**12)
    here, there = mean_of(name, h, q, x, values), mean_of(name, h, q + shift, x + shift, values)
    assert ((q + shift) - shift == q).all()
    assert (np.abs(here - there) <= twice_the_bound(name, h, q, x, values, dtype)).all()


@properties
@given(seeds, some_kernels, some_bandwidths, some_dtypes)
def test_a_permutation_of_the_samples(seed, name, h, dtype):
    rng, q, x, values = made(seed, dtype, largest=2000)
    order = rng.permutation(len(x))
    here, there = mean_of(name, h, q, x, values), mean_of(name, h, q, x[order], values[order])
    assert (np.abs(here - there) <= twice_the_bound(name, h, q, x, values, dtype)).all()


@properties
@given(seeds, some_kernels, some_bandwidths, some_dtypes)
def test_a_permutation_of_the_queries_is_equal_to_the_bit(seed, name, h, dtype):
    rng, q, x, values = made(seed, dtype)
    whole = mean_of(name, h, q, x, values)
    sums = engine.log_sum(problem(LOCAL[name](h), q, x))
    order = rng.permutation(len(q))
    np.testing.assert_array_equal(mean_of(name, h, q[order], x, values), whole[order])
    np.testing.assert_array_equal(engine.log_sum(problem(LOCAL[name](h), q[order], x)), sums[order])
    some = order[: 1 + len(q) // 2]  # and so is an answer alone, or in other company
    np.testing.assert_array_equal(mean_of(name, h, q[some], x, values), whole[some])
    np.testing.assert_array_equal(mean_of(name, h, q[:1], x, values[:, 1]), whole[:1, 1])


@properties
@given(seeds, some_kernels, some_bandwidths, some_dtypes, st.integers(-40, 40))
def test_a_power_of_two_changes_no_bit(seed, name, h, dtype, power):
    _, q, x, values = made(seed, dtype)
    unit = dtype.type(2.0**power)
    scaled = h * 4.0**power if name == "softmax" else h * 2.0**power
    here, there = mean_of(name, h, q, x, values), mean_of(name, scaled, q * unit, x * unit, values)
    np.testing.assert_array_equal(here, there)
    np.testing.assert_array_equal(mean_of(name, h, q, x, values * unit), here * unit)


@properties
@given(seeds, some_kernels, some_bandwidths)
def test_float32_agrees_with_float64_on_the_same_numbers(seed, name, h):
    _, q, x, values = made(seed, DTYPES[1], largest=2000)
    small = mean_of(name, h, q, x, values)
    wide = mean_of(name, h, *(a.astype(float) for a in (q, x, values)))
    assert small.dtype == np.float32
    assert (np.abs(small - wide) <= twice_the_bound(name, h, q, x, values, DTYPES[1])).all()
    sums = engine.log_sum(problem(LOCAL[name](h), q, x))
    wide = engine.log_sum(problem(LOCAL[name](h), q.astype(float), x.astype(float)))
    np.testing.assert_array_equal(np.isinf(sums), np.isinf(wide))
    finite = np.isfinite(wide)
    assert (np.abs(sums[finite] - wide[finite]) <= exact.FLOAT32 * (1 + np.abs(wide[finite]))).all()


# -- the bounds themselves can be broken -----------------------------------------------------------------------------


@both_dtypes
def test_an_answer_beyond_the_bound_is_seen(dtype):
    rng = np.random.default_rng(19)
    q, x, values = points(rng, 3, 2, dtype), points(rng, 9, 2, dtype), rng.normal(size=(9, 1)).astype(dtype)
    kernel = lb.gaussian(1.0)
    given, w = problem(kernel, q, x), exact.exact_weights(kernel, q, x)
    off = 3e-5 if dtype == np.float32 else 1e-13
    answer, sums, weights = (
        engine.mean(given, values),
        engine.log_sum(given),
        engine.normalized_weights(given),
    )
    table = engine.monomials(2, 1)
    moments, found = engine.moments(given, values), engine.nearest(given, 3)
    swapped = found._replace(indices=found.indices[:, ::-1])
    cases = [
        (exact.assert_mean, answer, answer + off * np.ptp(values), (w, values, dtype)),
        (exact.assert_mean, answer, np.full_like(answer, np.nan), (w, values, dtype)),
        (exact.assert_log_sum, sums, sums + off * (2 + np.abs(sums)), (w, dtype)),
        (exact.assert_weights, weights, weights * (1 + off * 2), (w, dtype)),
        (exact.assert_weights, weights, np.roll(weights, 1, axis=1), (w, dtype)),
        (exact.assert_moments, moments, moments._replace(first=moments.first * (1 + 1e-13)), (w, q, x, values, table)),
        (exact.assert_moments, moments, moments._replace(log_scale=moments.log_scale - off), (w, q, x, values, table)),
        (exact.assert_nearest, found, found._replace(distances=found.distances * (1 + 1e-15)), (q, x, 3)),
        (exact.assert_nearest, found, swapped, (q, x, 3)),
    ]  # fmt: skip
    for check_it, right, wrong, rest in cases:
        check_it(right, *rest)
        with pytest.raises(AssertionError):
            check_it(wrong, *rest)
