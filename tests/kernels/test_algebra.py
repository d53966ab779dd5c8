"""Kernels and their algebra: the engine against the twin, expression by expression."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import locbook as lb
from locbook.engine import reference
from locbook.kernels.base import ConstantKernel

few = settings(derandomize=True, deadline=None, max_examples=40)
RNG = np.random.default_rng(11)
QUERIES = RNG.normal(size=(7, 3))
SAMPLES = RNG.normal(size=(19, 3))
SAMPLES[4] = SAMPLES[2]  # a duplicate
SAMPLES[5] = QUERIES[1]  # a query that is a sample
MASK = RNG.random((7, 19)) < 0.6
SQUARE_MASK = RNG.random((19, 19)) < 0.6
MATRIX = np.array([[1.0, 0.3, 0.0], [0.0, 0.8, 0.2], [-0.1, 0.0, 1.5]])


def dip(s):
    """Not decaying, and more than 1: any weight >= 0 is a kernel."""
    return 2.0 - s if s < 2.0 else 0.25


@njit
def quartic_root(s):
    return -math.sqrt(math.sqrt(s))


#: Kernels between queries and samples.
PAIRS = {
    "number": lambda: lb.gaussian(0.7),
    "vector": lambda: lb.epanechnikov([1.0, 2.5, 4.0]),
    "vector, manhattan": lambda: lb.laplace([1.0, 2.5, 4.0], metric="manhattan"),
    "vector, chebyshev": lambda: lb.tricube([1.0, 2.5, 4.0], metric="chebyshev"),
    "vector, minkowski": lambda: lb.cosine([1.0, 2.5, 4.0], metric=lb.minkowski(3)),
    "vector, periodic": lambda: lb.gaussian([1.0, 2.5, 4.0], metric=lb.periodic([2.0, 3.0, 4.0])),
    "matrix": lambda: lb.gaussian(MATRIX),
    "matrix, columns": lambda: lb.biweight(3 * MATRIX[:2, :2], on=[2, 0]),
    "mahalanobis": lambda: lb.student_t(1.5, nu=2.5, metric=lb.mahalanobis(MATRIX @ MATRIX.T)),
    "columns": lambda: lb.gaussian(0.5, on=1),
    "columns, turned": lambda: lb.laplace([0.5, 1.5], on=[2, 0], metric="manhattan"),
    "per query": lambda: lb.gaussian(lb.per_query(np.linspace(0.2, 3, 7))),
    "per query, compact": lambda: lb.triweight(lb.per_query(np.linspace(0.2, 3, 7)), metric="chebyshev"),
    "per sample": lambda: lb.gaussian(lb.per_sample(np.linspace(0.2, 3, 19))),
    "per sample, columns": lambda: lb.triangular(lb.per_sample(np.linspace(0.2, 3, 19)), on=[0, 2]),
    "knn bandwidth": lambda: lb.gaussian(lb.knn_bandwidth(4)),
    "knn bandwidth, scaled": lambda: lb.tricube(
        lb.knn_bandwidth(6, scale=1.5), metric="manhattan", on=[0, 1]
    ),
    "knn bandwidth of samples": lambda: lb.gaussian(lb.knn_bandwidth(3, side="sample")),
    "one neighbour": lambda: lb.epanechnikov(lb.knn_bandwidth(1)),
    "a bandwidth of 0": lambda: lb.gaussian(lb.knn_bandwidth(1, side="sample")),
    "knn": lambda: lb.knn(5),
    "knn, all": lambda: lb.knn(19),
    "knn, ties": lambda: lb.knn(3, ties="include", metric="chebyshev", on=[1]),
    "softmax": lambda: lb.softmax(0.8),
    "softmax, columns": lambda: lb.softmax(2.0, on=[2, 1]),
    "von mises": lambda: lb.von_mises(1.7),
    "von mises, column": lambda: lb.von_mises(3.0, on=2),
    "causal": lambda: lb.causal(on=1),
    "window": lambda: lb.window(0.8, on=2),
    "user": lambda: lb.Kernel(profile=dip, bandwidth=1.3),
    "user, logarithm": lambda: lb.Kernel(log_profile=quartic_root, bandwidth=[1.0, 2.0, 3.0]),
    "sum": lambda: lb.gaussian(0.4) + lb.gaussian(2.0),
    "sum of both domains": lambda: lb.gaussian(0.4) + lb.epanechnikov(2.0),
    "sum of compact": lambda: lb.uniform(0.7) + lb.tricube(2.0, on=0),
    "epsilon": lambda: lb.uniform(0.5) + 0.01,
    "epsilon first": lambda: 1e-6 + lb.gaussian(0.3),
    "product": lambda: lb.gaussian(0.8, on=[0, 1]) * lb.uniform(1.0, on=2),
    "product of compact": lambda: lb.epanechnikov(1.5, on=0) * lb.triangular(2.0, on=[1, 2]),
    "product of exponential": lambda: lb.gaussian(0.9) * lb.softmax(1.5) * lb.laplace(2.0, on=1),
    "alibi": lambda: lb.softmax(math.sqrt(2), on=[0, 1]) * lb.laplace(0.5, on=2) * lb.causal(on=2),
    "windowed attention": lambda: lb.softmax(on=[0, 1]) * lb.window(0.9, on=2) * lb.causal(on=2),
    "scaled": lambda: 3.5 * lb.gaussian(0.9),
    "scaled compact": lambda: lb.biweight(1.9) * np.float64(0.25),
    "scaled twice": lambda: 2 * (lb.laplace() * 3) * 0.5,
    "share of a sum": lambda: 0.1 * lb.cauchy(0.5) + 2.0 * lb.uniform(1.0) + 0.5,
    "distributed": lambda: (lb.gaussian(0.5) + 0.2) * (lb.uniform(2.0) + 0.1 * lb.knn(3)),
    "nested": lambda: (
        lb.gaussian(2.0) * (lb.uniform(1.0, on=0) + (0.5 * lb.triangular(2.0) + 1e-3)) + 0.1 * lb.knn(2)
    ),
    "deep": lambda: ((((lb.uniform(1.0) + 0.1) * lb.cauchy()) + 0.2) * lb.gaussian()) + lb.softmax(4.0) * 0.3,
    "right heavy": lambda: (
        lb.uniform(2) + (lb.cauchy() * (lb.triangular(3) + (0.5 * (lb.tricube(2) + lb.knn(2)))))
    ),
    "masked": lambda: lb.gaussian(0.9).masked(MASK),
    "masked in a sum": lambda: lb.gaussian(0.9).masked(MASK) + 0.5 * lb.uniform(3.0).masked(~MASK),
    "masked twice": lambda: (lb.cauchy().masked(MASK) + 0.1).masked(MASK[::-1]),
    "epsilon inside a mask": lambda: (lb.uniform(0.4) + 0.1).masked(MASK) * lb.laplace(),
}

#: Kernels of the samples among themselves.
SQUARES = {
    "hollow": lambda: lb.gaussian(0.9).hollow(),
    "hollow compact": lambda: lb.tricube(1.2).hollow(),
    "hollow plus epsilon": lambda: lb.gaussian(0.9).hollow() + 0.1,
    "epsilon, then hollow": lambda: (lb.uniform(0.5) + 0.1).hollow(),
    "half hollow": lambda: lb.uniform(1.0).hollow() * lb.cauchy() + lb.triangular(0.3),
    "hollow factor": lambda: 2.0 * lb.softmax().hollow() * lb.laplace(),
    "hollow knn": lambda: lb.knn(4).hollow(),
    "hollow knn, ties": lambda: lb.knn(1, ties="include").hollow(),
    "hollow product of knn": lambda: (lb.knn(4) * lb.gaussian()).hollow(),
    "knn and hollow knn": lambda: lb.knn(4) + lb.knn(4).hollow(),
    "hollow knn bandwidth": lambda: lb.gaussian(lb.knn_bandwidth(3)).hollow(),
    "hollow nearest bandwidth": lambda: lb.epanechnikov(lb.knn_bandwidth(1)).hollow(),
    "hollow knn bandwidth of samples": lambda: lb.gaussian(lb.knn_bandwidth(3, side="sample")).hollow(),
    "hollow per sample": lambda: lb.triangular(lb.per_sample(np.linspace(0.5, 2, 19))).hollow(),
    "masked hollow": lambda: lb.gaussian().hollow().masked(SQUARE_MASK),
    "hollow masked": lambda: lb.cauchy().masked(SQUARE_MASK).hollow() + 1e-3,
    "hollow user": lambda: lb.Kernel(profile=dip).hollow(),
}


def assert_same(kernel, queries, samples):
    expected = reference.weights(kernel, np.asarray(queries, float), np.asarray(samples, float))
    weights, logs = kernel(queries, samples), kernel.log(queries, samples)
    assert weights.shape == logs.shape == (len(queries), len(samples))
    np.testing.assert_allclose(weights, expected, rtol=1e-11, atol=1e-15 * expected.max())
    # a weight just inside a compact support is a difference, known to 1e-15 of the largest and no better
    known = expected > 0
    slack = 0.0 if kernel.logarithmic else 1e-15 * expected.max() / expected[known]
    wanted = np.log(expected[known])
    assert (np.abs(logs[known] - wanted) <= 1e-9 * (1 + np.abs(wanted)) + slack).all()
    assert (logs[~known] < -700).all()  # 0, or too small for the plain weights
    return weights


@pytest.mark.parametrize("name", PAIRS)
def test_an_expression_is_what_its_twin_says(name):
    kernel = PAIRS[name]()
    weights = assert_same(kernel, QUERIES, SAMPLES)
    assert (weights > 0).any()
    assert kernel.full_support <= bool(np.isfinite(kernel.log(QUERIES, SAMPLES)).all())
    assert kernel.adaptive == ("knn" in repr(kernel))


@pytest.mark.parametrize("name", SQUARES)
def test_an_expression_of_the_samples_is_what_its_twin_says(name):
    kernel = SQUARES[name]()
    weights = assert_same(kernel, SAMPLES, SAMPLES)
    np.testing.assert_array_equal(kernel(SAMPLES), weights)
    np.testing.assert_array_equal(kernel(SAMPLES, SAMPLES.copy()), weights)  # equal rows are the samples too


@pytest.mark.parametrize(
    "name", ["number", "nested", "alibi", "knn bandwidth", "user", "mahalanobis", "distributed"]
)
def test_float32_in_float32_out(name):
    q, x = QUERIES.astype(np.float32), SAMPLES.astype(np.float32)
    kernel = PAIRS[name]()
    weights = kernel(q, x)
    assert weights.dtype == kernel.log(q, x).dtype == np.float32
    assert kernel(q, SAMPLES).dtype == kernel(QUERIES, x).dtype == np.float64
    expected = kernel(q.astype(np.float64), x.astype(np.float64))
    np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "name", ["number", "nested", "alibi", "knn bandwidth", "user", "mahalanobis", "masked"]
)
def test_any_layout_of_the_data_gives_the_same(name):
    kernel = PAIRS[name]()
    expected = kernel(QUERIES, SAMPLES)
    x = np.asfortranarray(SAMPLES)
    x.flags.writeable = False
    np.testing.assert_array_equal(kernel(QUERIES.tolist(), x), expected)
    strided = np.repeat(np.repeat(SAMPLES, 2, axis=0), 3, axis=1)[::2, ::3]
    np.testing.assert_array_equal(kernel(QUERIES[::-1][::-1], strided), expected)


def leaf():
    columns = st.sampled_from([None, [0], [2, 1]])
    width = st.floats(0.3, 4.0)
    radial = st.builds(
        lambda name, h, on, metric: lb.get_kernel(name)(h, on=on, metric=metric),
        st.sampled_from(["uniform", "epanechnikov", "tricube", "gaussian", "laplace", "cauchy", "student_t"]),
        width,
        columns,
        st.sampled_from(["euclidean", "manhattan", "chebyshev"]),
    )
    other = st.one_of(
        st.builds(lb.knn, st.integers(1, 19), ties=st.sampled_from(["index", "include"])),
        st.builds(lb.softmax, width, on=columns),
        st.builds(lb.causal, on=st.integers(0, 2)),
        st.builds(lambda k: lb.gaussian(lb.knn_bandwidth(k)), st.integers(1, 19)),
    )
    return st.one_of(radial, other)


def grow(inner):
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, c: c * a, inner, st.floats(0.01, 100.0)),
        st.builds(lambda a, c: a + c, inner, st.floats(1e-6, 10.0)),
    )


@given(kernel=st.recursive(leaf(), grow, max_leaves=6))
@settings(few, max_examples=120)
def test_any_expression_is_what_its_twin_says(kernel):
    assert_same(kernel, QUERIES, SAMPLES)


@given(kernel=st.recursive(leaf(), grow, max_leaves=4))
@settings(few, max_examples=60)
def test_any_hollow_expression_leaves_the_sample_out(kernel):
    """Hollow at i is the kernel of query i and the other samples: the definition of leave-one-out."""
    used = SAMPLES[:8]
    if any(getattr(k, "n_neighbors", 0) > 7 for k in kernel.leaves()) or "knn_bandwidth" in repr(kernel):
        kernel = lb.knn(2) + lb.gaussian(0.5)
    weights = kernel.hollow()(used)
    assert (weights.diagonal() == 0).all()
    for i in range(len(used)):
        others = np.delete(np.arange(8), i)
        np.testing.assert_allclose(weights[i, others], kernel(used[[i]], used[others])[0], rtol=1e-12)


def test_a_leaf_stays_itself_in_an_expression_of_the_other_domain():
    """Weights of 1e-300 beside weights of 1: the log domain keeps both."""
    kernel = lb.gaussian(1.0, on=0) * (lb.uniform(1.0, on=1) + 1e-12)
    logs = kernel.log([[0.0, 0.0]], [[0.0, 0.0], [100.0, 0.0], [1000.0, 5.0]])
    np.testing.assert_allclose(logs, [[1e-12, -5000.0, -5e5 + math.log(1e-12)]], rtol=1e-6, atol=1e-11)
    assert kernel([[0.0, 0.0]], [[1000.0, 5.0]])[0, 0] == 0.0  # underflow: the promise of log() alone


# -- what the algebra means ----------------------------------------------------------------------------------------


@given(h=st.floats(-6, 6).map(lambda e: 10.0**e), offset=st.sampled_from([0.0, 1e8, -3e5]))
@few
def test_a_number_a_vector_and_a_matrix_are_one_bandwidth(h, offset):
    q, x = h * np.round(4 * QUERIES) / 4, h * np.round(4 * SAMPLES) / 4
    q, x = q + offset * h, x + offset * h
    for name in ("gaussian", "triangular", "cauchy"):
        make = lb.get_kernel(name)
        expected = make(h)(q, x)
        np.testing.assert_array_equal(make([h, h, h])(q, x), expected)
        np.testing.assert_allclose(make(h * np.eye(3))(q, x), expected, rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(make(lb.per_query(np.full(7, h)))(q, x), expected, rtol=1e-14, atol=1e-15)
        np.testing.assert_allclose(
            make(lb.per_sample(np.full(19, h)))(q, x), expected, rtol=1e-14, atol=1e-15
        )
        covariance = lb.mahalanobis(h**2 * np.eye(3))
        np.testing.assert_allclose(make(1.0, metric=covariance)(q, x), expected, rtol=1e-9, atol=1e-15)


def test_a_vector_scales_the_columns_and_a_matrix_turns_them():
    h = np.array([0.5, 2.0, 7.0])
    np.testing.assert_allclose(
        lb.cauchy(h)(QUERIES, SAMPLES), lb.cauchy()(QUERIES / h, SAMPLES / h), rtol=1e-12
    )
    back = np.linalg.inv(MATRIX).T
    expected = lb.cauchy()(QUERIES @ back, SAMPLES @ back)
    np.testing.assert_allclose(lb.cauchy(MATRIX)(QUERIES, SAMPLES), expected, rtol=1e-12)
    covariance = lb.mahalanobis(MATRIX @ MATRIX.T)
    np.testing.assert_allclose(lb.cauchy(metric=covariance)(QUERIES, SAMPLES), expected, rtol=1e-12)


def test_a_product_of_gaussians_on_the_columns_is_the_gaussian():
    product = lb.gaussian(0.5, on=0) * lb.gaussian(2.0, on=1) * lb.gaussian(7.0, on=2)
    expected = lb.gaussian([0.5, 2.0, 7.0])(QUERIES, SAMPLES)
    np.testing.assert_allclose(product(QUERIES, SAMPLES), expected, rtol=1e-12)


def test_epsilon_is_the_global_mean_in_an_empty_neighbourhood_and_a_bias_elsewhere():
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 5.0])
    far, near = lb.local_mean([[100.0], [0.0]], x, y, lb.uniform(0.5) + 1e-3)
    assert far == pytest.approx(2.0, rel=1e-12)
    assert near == pytest.approx(6e-3 / 1.003, rel=1e-12)


def test_a_factor_changes_no_normalised_weight():
    expected = lb.local_weights(QUERIES, SAMPLES, lb.gaussian(0.6))
    for factor in (1e-300, 0.5, 1e300):
        ours = lb.local_weights(QUERIES, SAMPLES, factor * lb.gaussian(0.6))
        np.testing.assert_allclose(ours, expected, rtol=1e-12)


@pytest.mark.parametrize("length", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
def test_softmax_of_keys_of_one_length_is_a_gaussian(length, temperature):
    keys = length * SAMPLES / np.linalg.norm(SAMPLES, axis=1, keepdims=True)
    np.testing.assert_allclose(
        lb.local_weights(QUERIES, keys, lb.softmax(temperature)),
        lb.local_weights(QUERIES, keys, lb.gaussian(math.sqrt(temperature))),
        rtol=1e-9,
        atol=1e-15,
    )


def test_softmax_is_attention():
    q, k, v = QUERIES, SAMPLES, RNG.normal(size=(19, 2))
    scores = q @ k.T / math.sqrt(3)
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights @ v / weights.sum(1, keepdims=True)
    np.testing.assert_allclose(lb.local_mean(q, k, v, lb.softmax(math.sqrt(3))), expected, rtol=1e-12)
    # a thousand times the keys: exp(<q, k>) is no float any more
    best = lb.local_mean(q, 1000 * k, v, lb.softmax(1e-3))
    np.testing.assert_allclose(best, v[np.argmax(q @ k.T, axis=1)], rtol=1e-9)


@given(angle=st.floats(-math.pi, math.pi), turns=st.integers(-1000, 1000), kappa=st.floats(0.01, 500))
@few
def test_von_mises_does_not_see_whole_turns(angle, turns, kappa):
    x = np.linspace(-3, 3, 9)[:, None]
    here, there = lb.von_mises(kappa).log([[angle], [angle + turns * 2 * math.pi]], x)
    np.testing.assert_allclose(there, here, atol=kappa * 1e-11)
    assert lb.von_mises(kappa).log([[angle]], [[angle]])[0, 0] == pytest.approx(kappa)


def test_causal_lets_the_past_and_the_present_take_part():
    times = np.array([[0.0], [1.0], [1.0], [2.0]])
    assert lb.causal()(times).tolist() == [[1, 0, 0, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]]
    with pytest.raises(ValueError, match=r"on=\(1,\) is out of range: the data has 1 columns"):
        lb.causal(on=1)(times)


def test_a_bias_by_offset_is_clipped_to_its_ends():
    """Raffel et al. (2020): one number for each offset, added to the scores."""
    bias, times = np.array([0.5, -1.0, 2.0]), np.array([[-3], [0], [1], [7]])
    for first in (-1, 0, 5):
        offsets = times - times.T
        expected = bias[np.clip(offsets - first, 0, 2)]
        kernel = lb.relative_bias(bias, first=first)
        np.testing.assert_array_equal(kernel.log(times), expected)
        np.testing.assert_allclose(kernel(times), np.exp(expected), rtol=1e-15)
        both = np.hstack([RNG.normal(size=(4, 1)), times])
        product = lb.softmax(on=0) * lb.relative_bias(bias, on=1, first=first)
        np.testing.assert_allclose(product.log(both), np.outer(both[:, 0], both[:, 0]) + expected, rtol=1e-14)
    far = lb.relative_bias(bias).log([[1e15], [-1e15]], [[0.0]])
    np.testing.assert_array_equal(far, [[2.0], [0.5]])


@pytest.mark.parametrize(
    ("queries", "samples", "message"),
    [
        (
            [[0.5]],
            [[0.0]],
            r"queries: column 0 must hold whole times up to 2\*\*53 for a bias by offset, got 0.5 in row 0",
        ),
        ([[1.0]], [[0.0], [0.1]], "samples: column 0 must hold whole times .*got 0.1 in row 1"),
    ],
)
def test_times_between_the_offsets_are_refused(queries, samples, message):
    with pytest.raises(ValueError, match=message):
        lb.relative_bias([1.0])(queries, samples)


def test_a_window_holds_its_ends():
    times = np.arange(7.0)[:, None]
    for width in (1, 2.0, 3):
        expected = (np.abs(times - times.T) <= width).astype(float)
        np.testing.assert_array_equal(lb.window(width)(times), expected)
        np.testing.assert_array_equal((lb.window(width) * lb.causal())(times), np.tril(expected))


def test_an_alibi_head():
    """Press et al. (2022): scores minus slope times age, under a causal mask."""
    q, k, t = RNG.normal(size=(5, 2)), RNG.normal(size=(5, 2)), np.arange(5.0)[:, None]
    kernel = lb.softmax(math.sqrt(2), on=[0, 1]) * lb.laplace(4.0, on=2) * lb.causal(on=2)
    ours = lb.local_weights(np.hstack([q, t]), np.hstack([k, t]), kernel)
    scores = q @ k.T / math.sqrt(2) - 0.25 * np.abs(t - t.T)
    expected = np.tril(np.exp(scores))
    np.testing.assert_allclose(ours, expected / expected.sum(1, keepdims=True), rtol=1e-12)


# -- discrete ------------------------------------------------------------------------------------------------------

TABLE = np.array([[0.0, 1.0, 2.5, 0.0], [3.0, 0.0, 0.5, 0.1]])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64])
def test_a_discrete_kernel_is_its_table(dtype):
    q, x = np.array([[0], [1], [1]], dtype), np.array([[3], [2], [1], [0], [0]], dtype)
    expected = TABLE[np.ix_([0, 1, 1], [3, 2, 1, 0, 0])]
    np.testing.assert_allclose(lb.discrete(TABLE)(q, x), expected, rtol=1e-7)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(lb.discrete(TABLE).log(q, x), np.log(expected), rtol=1e-6)
    wide_q, wide_x = np.hstack([0 * q + 1, q]), np.hstack([0 * x, x])
    np.testing.assert_allclose(lb.discrete(TABLE, on=1)(wide_q, wide_x), expected, rtol=1e-7)


def test_a_discrete_kernel_in_an_expression():
    q, x = np.array([[0.0, 5.0], [1.0, 6.0]]), np.array([[3.0, 5.5], [2.0, 4.0], [0.0, 6.0]])
    for kernel in (
        lb.discrete(TABLE) * lb.laplace(2.0, on=1),
        lb.discrete(TABLE) + 0.1 * lb.gaussian(on=1),
        lb.discrete(TABLE) * lb.causal(on=1) * 3.0,
        lb.discrete(TABLE) * lb.uniform(1.0, on=1) + 1e-3,
    ):
        assert_same(kernel, q, x)


@pytest.mark.parametrize(
    ("queries", "samples", "message"),
    [
        ([[2]], [[0]], r"queries: column 0 must hold codes 0\.\.1 of the discrete kernel, got 2 in row 0"),
        ([[0]], [[0], [4]], r"samples: column 0 must hold codes 0\.\.3 .*got 4 in row 1"),
        ([[-1]], [[0]], "queries: column 0 must hold codes .*got -1"),
        ([[0.5]], [[0]], "queries: column 0 must hold codes .*got 0.5"),
        ([[0]], [[np.nan]], "samples contains NaN"),
    ],
)
def test_codes_outside_the_table_are_refused(queries, samples, message):
    with pytest.raises(ValueError, match=message):
        lb.discrete(TABLE)(queries, samples)


# -- neighbours under restrictions ---------------------------------------------------------------------------------


def test_neighbours_are_chosen_among_who_takes_part():
    """Inside a mask, the k nearest are the k nearest of those that it lets through."""
    d = reference.distances(QUERIES, SAMPLES, lb.Metric("euclidean"))
    order = np.argsort(np.where(MASK, d, np.inf), axis=1, kind="stable")[:, :4]
    expected = np.zeros_like(d)
    np.put_along_axis(expected, order, 1.0, axis=1)
    np.testing.assert_array_equal(lb.knn(4).masked(MASK)(QUERIES, SAMPLES), expected)
    widths = np.take_along_axis(d, order, 1)[:, 3]
    masked = lb.gaussian(lb.knn_bandwidth(4)).masked(MASK)(QUERIES, SAMPLES)
    np.testing.assert_allclose(
        masked, np.where(MASK, np.exp(-0.5 * (d / widths[:, None]) ** 2), 0), rtol=1e-9
    )


def test_ties_go_to_the_first_rows_or_to_all():
    x = np.array([[1.0], [-1.0], [1.0], [3.0]])
    assert lb.knn(2)([[0.0]], x).tolist() == [[1, 1, 0, 0]]
    assert lb.knn(1)([[0.0]], x).tolist() == [[1, 0, 0, 0]]
    assert lb.knn(1, ties="include")([[0.0]], x).tolist() == [[1, 1, 1, 0]]
    assert lb.knn(4, ties="include")([[0.0]], x).tolist() == [[1, 1, 1, 1]]


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize(
    "name", ["uniform", "triangular", "epanechnikov", "tricube", "cosine", "gaussian", "laplace"]
)
def test_a_knn_bandwidth_is_never_zero_over_zero(name, scale):
    """k = 1 gives the nearest; duplicates give their mean; one sample gives itself; all equal, the mean."""
    make = lb.get_kernel(name)
    x, y = scale * np.array([[0.0], [2.0], [2.0], [9.0]]), np.array([1.0, 2.0, 4.0, 8.0])
    q = scale * np.array([[0.1], [2.0], [8.0], [-50.0]])
    if name not in ("gaussian", "laplace"):
        answer = lb.local_mean(q, x, y, make(lb.knn_bandwidth(1)))
        np.testing.assert_allclose(answer, [1.0, 3.0, 8.0, 1.0], rtol=1e-9)
    at_duplicates = lb.local_mean(q[1:2], x, y, make(lb.knn_bandwidth(2)))
    assert at_duplicates[0] == pytest.approx(3.0, rel=1e-9)
    assert lb.local_mean(q, x[:1], y[:1], make(lb.knn_bandwidth(1))).tolist() == [1.0] * 4
    equal = np.full((4, 1), 7.0 * scale)
    np.testing.assert_allclose(lb.local_mean(equal, equal, y, make(lb.knn_bandwidth(3))), 3.75, rtol=1e-9)


# -- errors that only the data can show ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lb.gaussian([1.0, 2.0]), "bandwidth has 2 entries, but the kernel looks at 3 columns"),
        (lb.gaussian(np.eye(2)), "bandwidth has 2 entries, but the kernel looks at 3 columns"),
        (lb.gaussian(on=3), r"on=\(3,\) is out of range: the data has 3 columns"),
        (lb.gaussian(lb.per_query([1.0, 2.0])), "bandwidth has 2 entries, but there are 7 queries"),
        (lb.gaussian(lb.per_sample([1.0] * 18)), "bandwidth has 18 entries, but there are 19 samples"),
        (lb.knn(20), "n_neighbors must be at most the 19 samples there are, got 20"),
        (lb.gaussian(lb.knn_bandwidth(20)), "n_neighbors must be at most the 19 samples there are, got 20"),
        (lb.gaussian(lb.knn_bandwidth(19, side="sample")), "at most the 18 others samples there are, got 19"),
        (lb.gaussian().hollow(), "queries must be the samples, row by row, for a hollow kernel"),
        (
            lb.gaussian().masked(MASK.T),
            r"mask of the kernel has shape \(19, 7\), but the problem is \(7, 19\)",
        ),
        (lb.gaussian().masked(MASK[:, :1]), r"mask of the kernel has shape \(7, 1\)"),
    ],
    ids=repr,
)
def test_a_kernel_that_does_not_fit_the_data_says_so(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(QUERIES, SAMPLES)


@pytest.mark.parametrize(
    ("profile", "log_profile"),
    [("negative", None), ("nan", None), ("huge", None), (None, "nan"), (None, "huge")],
)
def test_a_profile_that_is_no_weight_is_refused(profile, log_profile):
    functions = {
        "negative": lambda s: 1.0 - s,
        "nan": lambda s: math.sqrt(1.0 - s),
        "huge": lambda s: math.inf if s > 1.0 else 1.0,
    }
    kernel = lb.Kernel(profile=functions.get(profile), log_profile=functions.get(log_profile))
    assert kernel([[0.0]], [[0.0]])[0, 0] in (1.0, math.e)
    with pytest.raises(ValueError, match=r"user's function .*negative, NaN or infinite"):
        kernel([[0.0]], [[0.0], [2.0]])


def test_minus_infinity_is_the_logarithm_of_no_weight():
    kernel = lb.Kernel(log_profile=lambda s: -math.inf if s > 1.0 else 0.0)
    assert kernel([[0.0]], [[0.5], [2.0]]).tolist() == [[1.0, 0.0]]


def test_a_profile_that_numba_cannot_compile_is_named():
    def curious(s):
        return {s: "weight"}["s"] + []

    with pytest.raises(
        TypeError, match=r"^profile: Numba cannot compile 'curious'; it must be a scalar function"
    ):
        lb.Kernel(profile=curious)([[0.0]], [[0.0]])
    with pytest.raises(TypeError, match=r"^log_profile: Numba cannot compile 'curious'"):
        lb.Kernel(log_profile=curious)([[0.0]], [[0.0]])


def test_a_profile_may_return_an_integer():
    kernel = lb.Kernel(profile=lambda s: 1 if s <= 1.0 else 0)
    np.testing.assert_array_equal(kernel(QUERIES, SAMPLES), lb.uniform()(QUERIES, SAMPLES))


def test_a_named_profile_through_the_class():
    assert lb.Kernel("tricube", 2.0) == lb.tricube(2.0)
    assert lb.Kernel("student_t", 2.0, parameter=4.0) == lb.student_t(2.0, nu=4)
    assert isinstance(lb.gaussian() + 1, lb.Kernel)
    assert list((lb.gaussian() + 0.5).leaves())[1] == ConstantKernel(0.5)


# -- nasty data ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("name", ["uniform", "epanechnikov", "gaussian", "laplace", "cauchy", "student_t"])
def test_any_bandwidth_gives_finite_weights(name, ratio):
    for offset in (0.0, 1e8):
        kernel = lb.get_kernel(name)(ratio)
        weights, logs = (
            kernel(QUERIES + offset, SAMPLES + offset),
            kernel.log(QUERIES + offset, SAMPLES + offset),
        )
        assert ((weights >= 0) & (weights <= 1)).all()
        assert not np.isnan(logs).any()
        expected = reference.weights(kernel, QUERIES + offset, SAMPLES + offset)
        np.testing.assert_allclose(weights, expected, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("d", [1, 2, 17, 784])
def test_any_number_of_columns(d):
    q, x = RNG.random((3, d)), RNG.random((11, d))
    for kernel in (
        lb.gaussian(math.sqrt(d)),
        lb.cauchy([1.0 + c % 3 for c in range(d)]),
        lb.softmax(d),
        lb.knn(3),
    ):
        assert_same(kernel, q, x)


def test_one_sample_and_one_query():
    for kernel in (lb.gaussian(), lb.uniform(), lb.knn(1), lb.gaussian(lb.knn_bandwidth(1)), lb.softmax()):
        assert_same(kernel, [[0.5, 1.0]], [[0.4, 1.0]])


def test_denormal_differences_are_no_nan():
    x = np.array([[0.0], [5e-324], [1e-310], [1e-160]])
    for kernel in (lb.gaussian(1e-150), lb.uniform(1e-150), lb.laplace(), lb.knn(2)):
        weights = kernel(x, x)
        assert ((weights >= 0) & (weights <= 1)).all()
        assert (weights.diagonal() == 1).all() or kernel == lb.knn(2)
