"""What a query far from all samples gets, kernel by kernel (normalised weights)."""

import math

import numpy as np
import pytest

import locbook as lb

SAMPLES = np.array([[0.0, 0.0], [2.0, 1.0], [2.0, -1.0], [-1.0, 0.5], [1.9, 0.0]])
FAR = [1e3, 1e6]
DTYPES = [np.float32, np.float64]


def weights(kernel, query, samples=SAMPLES, dtype=np.float64, **options):
    answer = lb.local_weights(np.array([query], dtype), samples.astype(dtype), kernel, **options)
    assert answer.dtype == dtype
    return answer[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("bandwidth", [1.0, 1e-3, 50.0])
def test_gaussian_is_the_nearest_sample(far, dtype, bandwidth):
    x = SAMPLES * bandwidth
    w = weights(lb.gaussian(bandwidth), [-far * bandwidth, 0.0], x, dtype)
    np.testing.assert_allclose(w, [0, 0, 0, 1, 0], atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("far", FAR)
def test_gaussian_is_the_mean_of_the_tied_nearest(far, dtype):
    w = weights(lb.gaussian(), [far, 0.0], dtype=dtype)
    np.testing.assert_allclose(w, [0, 0.5, 0.5, 0, 0], atol=1e-9)
    y = np.array([7.0, 1.0, 4.0, 7.0, 7.0], dtype)
    answer = lb.local_mean(np.array([[far, 0.0]], dtype), SAMPLES.astype(dtype), y, lb.gaussian())
    assert answer[0] == pytest.approx(2.5, rel=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("far", FAR)
def test_laplace_weighs_by_differences_of_distance(far, dtype):
    """Not one sample: along a line at infinity the weight is exp(projection / h)."""
    w = weights(lb.laplace(0.8), [0.8 * far, 0.0], dtype=dtype)
    limit = np.exp(SAMPLES[:, 0] / 0.8)
    np.testing.assert_allclose(w, limit / limit.sum(), rtol=3 / far + 1e-6)
    assert (w > 0.005).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize(
    "kernel", [lb.cauchy(), lb.student_t(nu=3), lb.rational_quadratic(alpha=0.7)], ids=repr
)
def test_heavy_tails_end_in_the_global_mean(kernel, far, dtype):
    w = weights(kernel, [far, 0.0], dtype=dtype)
    np.testing.assert_allclose(w, 0.2, rtol=20 / far)
    assert w[1] > w[0] > w[3]  # and come to it from the right side
    if far == 1e3:
        assert np.ptp(w) > 1e-4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("name", [n for n, p in lb.PROFILES.items() if p.support == 1.0])
def test_compact_kernels_are_empty(name, far, dtype):
    kernel = lb.get_kernel(name)()
    with pytest.warns(lb.EmptyNeighborhoodWarning, match="1 of 1 queries have no sample"):
        assert weights(kernel, [far, 0.0], dtype=dtype).tolist() == [0.0] * 5
    np.testing.assert_allclose(weights(kernel, [far, 0.0], dtype=dtype, empty="nearest"), [0, 0.5, 0.5, 0, 0])
    np.testing.assert_allclose(weights(kernel, [far, 0.0], dtype=dtype, empty="mean"), 0.2, rtol=1e-6)
    with pytest.raises(ValueError, match="1 of 1 queries have no sample"):
        weights(kernel, [far, 0.0], dtype=dtype, empty="raise")


@pytest.mark.parametrize("far", [*FAR, 1e12, 1e100, 1e140])
def test_no_distance_is_too_far(far):
    """Differences of distance drown in rounding at last; the weights stay weights."""
    for kernel in (
        lb.gaussian(),
        lb.laplace(),
        lb.cauchy(),
        lb.student_t(),
        lb.softmax(),
        lb.gaussian() + 1e-12,
    ):
        w = weights(kernel, [far, 0.0])
        assert (w >= 0).all()
        assert w.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("far", FAR)
def test_products_with_an_exponential_factor_keep_their_limit(far):
    w = weights(lb.gaussian(on=0) * lb.cauchy(on=1), [far, 0.0])
    np.testing.assert_allclose(w, [0, 0.5, 0.5, 0, 0], atol=1e-9)
    w = weights(0.5 * lb.gaussian() * lb.laplace(), [-far, 0.0])
    np.testing.assert_allclose(w, [0, 0, 0, 1, 0], atol=1e-9)


def test_epsilon_ends_in_the_global_mean():
    for kernel in (lb.gaussian() + 1e-12, lb.uniform() + 1e-12):
        np.testing.assert_allclose(weights(kernel, [1e3, 0.0]), 0.2, rtol=1e-12)


def test_the_log_domain_of_ones_own():
    """The same Gaussian, as K and as log K: far away only what is known as a logarithm keeps the limit."""
    keeps = lb.Kernel(log_profile=lambda s: -0.5 * s if s >= 0 else 0.0)
    recognised = lb.Kernel(profile=lambda s: math.exp(-0.5 * s))
    loses = lb.Kernel(profile=lambda s: math.exp(-0.5 * s) if s >= 0 else 0.0)
    for kernel in (keeps, recognised):
        np.testing.assert_allclose(weights(kernel, [1e6, 0.0]), [0, 0.5, 0.5, 0, 0], atol=1e-9)
    with pytest.warns(lb.EmptyNeighborhoodWarning):
        assert weights(loses, [1e6, 0.0]).sum() == 0.0


def test_an_outlier_among_the_samples_is_its_own_neighbourhood():
    x = np.vstack([SAMPLES, [[1e6, 0.0]]])
    w = weights(lb.gaussian(), [1e6 - 10, 0.0], x)
    np.testing.assert_allclose(w, [0, 0, 0, 0, 0, 1], atol=1e-12)


def test_a_softmax_of_long_keys_is_the_best_key():
    w = weights(lb.softmax(1e-3), [1e3, 0.0])
    np.testing.assert_allclose(w, [0, 0.5, 0.5, 0, 0], atol=1e-9)


@pytest.mark.parametrize("far", FAR)
def test_offsets_move_nothing(far):
    shift = 2.0**27
    query, x = np.array([far, 0.0]), np.round(SAMPLES * 8) / 8
    for kernel in (lb.gaussian(), lb.laplace(), lb.cauchy()):
        np.testing.assert_array_equal(weights(kernel, query + shift, x + shift), weights(kernel, query, x))
