"""What a sceptic found in products of kernels and in profiles of one's own: nothing of it may come back."""

import math

import numpy as np
import pytest

import locbook as lb

# -- 1. who sees a few samples gets their values, however large those of the others ----------------


@pytest.mark.parametrize("p", [1, 3, 16])
@pytest.mark.parametrize("limit", ["window", "mask", "causal"])
@pytest.mark.parametrize(
    "kernel", [lb.gaussian(3.0), lb.laplace(3.0), lb.gaussian(3.0) * lb.cauchy(5.0)], ids=repr
)
def test_small_values_beside_large_ones_that_are_not_seen(kernel, limit, p):
    time = np.arange(100, dtype=np.float32)[:, None]
    values = np.full((100, p), 1000, np.float32)
    values[:9], values[-1] = 1e-3, -1.0
    seen = {"window": lb.window(2.0), "causal": lb.causal(), "mask": None}[limit]
    mask = (time[:, 0] < 5)[None] if limit == "mask" else None
    kernel = kernel if seen is None else kernel * seen
    answer = lb.local_mean(time[3:4], time, values, kernel, mask=mask)
    np.testing.assert_allclose(answer, np.full((1, p), 1e-3), rtol=1e-6)


@pytest.mark.parametrize("kernel", [lb.gaussian(), lb.softmax(2.0), lb.gaussian() * lb.cauchy(2.0)], ids=repr)
def test_a_mask_hides_values_as_large_as_float32_has(kernel):
    rng = np.random.default_rng(0)
    x, values = rng.normal(size=(200, 2)).astype(np.float32), rng.uniform(1e-3, 2e-3, 200).astype(np.float32)
    gone = np.arange(200) % 7 == 0
    wanted = lb.local_mean(x[:5], x[~gone], values[~gone], kernel)
    values[gone] = np.finfo(np.float32).min
    answer = lb.local_mean(x[:5], x, values, kernel, mask=np.tile(~gone, (5, 1)))
    np.testing.assert_allclose(answer, wanted, rtol=1e-6)


# -- 2. a value beyond the range of float32 concerns the queries that meet it ----------------------


def beyond_float32(s):
    return math.exp(95.0 - s)


@pytest.mark.parametrize("word", ["profile", "log_profile"])
def test_a_query_beyond_float32_leaves_the_others_alone(word):
    def steep(s):
        return 1.0 / (s * s * s * s * s * s * s * s) if s > 1e-9 else 1.0

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)).astype(np.float32), rng.normal(size=(300, 3)).astype(np.float32)
    q = (rng.normal(size=(40, 2)) + 6).astype(np.float32)
    kernel = lb.Kernel(**{word: beyond_float32 if word == "profile" else steep}, bandwidth=1.0)
    together = lb.local_mean(np.vstack([x[:1] + np.float32(1e-4), q]), x, y, kernel, prune=False)
    np.testing.assert_array_equal(together[1:], lb.local_mean(q, x, y, kernel, prune=False))
    wanted = lb.local_mean(x[:1].astype(float) + 1e-4, x.astype(float), y, kernel)
    np.testing.assert_allclose(together[:1], wanted, atol=1e-3)


# -- 3. what Numba compiles in float64, it does in float32 -----------------------------------------

MIXED = (1, 2.5)


def indexes(s):
    return MIXED[0] / (MIXED[1] + s)


def has_an_inner_function(s):
    def scaled(t):
        return MIXED[1] * t

    return 1.0 / (1.0 + scaled(s))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [indexes, has_an_inner_function])
def test_functions_with_tuples_and_inner_functions(function, dtype):
    x = np.linspace(0, 2, 70)[:, None].astype(dtype)
    weights = np.vectorize(function)((x.astype(float) - x.astype(float).T) ** 2)
    wanted = weights @ x[:, 0] / weights.sum(1)
    np.testing.assert_allclose(lb.local_mean(x, x, x[:, 0], lb.Kernel(function)), wanted, rtol=1e-5)


@pytest.mark.parametrize("function", [math.exp, np.exp, "".join])
def test_what_is_no_python_function_is_named(function):
    x = np.linspace(0, 2, 9)[:, None]
    with pytest.raises(TypeError, match="profile: Numba cannot compile"):
        lb.local_mean(x, x, x[:, 0], lb.Kernel(function))
