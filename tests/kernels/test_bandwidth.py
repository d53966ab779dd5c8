"""One meaning of "bandwidth": the converter, the rules for densities, rulers that vary, and bad rulers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import gaussian_kde

import locbook as lb
from locbook.kernels.bandwidth import LARGEST, SMALLEST, as_bandwidth

few = settings(derandomize=True, deadline=None, max_examples=40)
FINITE = [name for name in lb.PROFILES if name not in ("cauchy", "student_t", "rational_quadratic")]


# -- the converter -------------------------------------------------------------------------------------------------


def test_epanechnikov_is_off_by_the_square_root_of_five():
    """statsmodels#5547, scipy#22403: radius or standard deviation? Here the radius, and the converter says so."""
    assert lb.convert_bandwidth(1.0, "epanechnikov", "std") == pytest.approx(1 / math.sqrt(5), rel=1e-14)
    assert lb.convert_bandwidth(1.0, "std", "epanechnikov") == pytest.approx(math.sqrt(5), rel=1e-14)
    assert lb.convert_bandwidth(0.3, "gaussian", "std") == pytest.approx(0.3, rel=1e-14)
    assert lb.convert_bandwidth(0.3, "std", "uniform") == pytest.approx(0.3 * math.sqrt(3), rel=1e-14)


@pytest.mark.parametrize("name", FINITE)
def test_the_spread_of_the_weights_is_the_standard_deviation_asked_for(name):
    x = np.linspace(-60, 60, 120_001)[:, None]
    h = lb.convert_bandwidth(1.7, "std", name)
    weights = lb.get_kernel(name)(h)([[0.0]], x)[0]
    deviation = math.sqrt(np.average(x[:, 0] ** 2, weights=weights))
    assert deviation == pytest.approx(1.7, rel=2e-3 if name == "uniform" else 1e-5)


@pytest.mark.parametrize("dimension", [1, 2, 3, 8, 784])
@pytest.mark.parametrize("target", FINITE)
@pytest.mark.parametrize("source", ["gaussian", "tricube", "std"])
def test_converting_there_and_back(source, target, dimension):
    there = lb.convert_bandwidth(0.37, source, target, dimension=dimension)
    back = lb.convert_bandwidth(there, target, source, dimension=dimension)
    assert back == pytest.approx(0.37, rel=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_second_moment_depends_on_the_dimension(dimension):
    """One coordinate of the unit ball has variance 1 / (d + 2), under Epanechnikov's weights 1 / (d + 4)."""
    uniform = lb.convert_bandwidth(1.0, "uniform", "std", dimension=dimension)
    assert uniform == pytest.approx((dimension + 2) ** -0.5, rel=1e-13)
    epanechnikov = lb.convert_bandwidth(1.0, "epanechnikov", "std", dimension=dimension)
    assert epanechnikov == pytest.approx((dimension + 4) ** -0.5, rel=1e-13)


def test_the_radius_of_the_support():
    assert lb.convert_bandwidth(0.3, "tricube", "radius") == 0.3
    assert lb.convert_bandwidth(0.3, "gaussian", "radius") == math.inf


def test_heavy_tails_have_a_shape_and_a_limit():
    assert lb.convert_bandwidth(1.0, "student_t", "std", parameter=5) == pytest.approx(
        math.sqrt(5 / 3), rel=1e-13
    )
    assert lb.convert_bandwidth(1.0, "student_t", "gaussian", parameter=5) == pytest.approx(
        math.sqrt(5 / 3), rel=1e-13
    )
    same = lb.convert_bandwidth(2.0, "gaussian", "student_t", parameter=1e6)
    assert same == pytest.approx(2.0, rel=1e-5)
    with pytest.raises(ValueError, match="source: kernel 'student_t' has no finite variance in dimension 4"):
        lb.convert_bandwidth(1.0, "student_t", "std", parameter=5, dimension=4)
    with pytest.raises(ValueError, match="target: kernel 'cauchy' has no finite variance in dimension 1"):
        lb.convert_bandwidth(1.0, "std", "cauchy")


def test_a_vector_is_converted_entry_by_entry():
    h = np.array([0.1, 2.0, 30.0])
    np.testing.assert_allclose(lb.convert_bandwidth(h, "gaussian", "uniform"), h * math.sqrt(3), rtol=1e-13)
    assert isinstance(lb.convert_bandwidth(np.float32(0.5), "gaussian", "uniform"), float)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"bandwidth": 0.0}, ValueError, "bandwidth must be a finite number above 0, got 0"),
        ({"bandwidth": -1}, ValueError, "bandwidth must be a finite number above 0, got -1"),
        ({"bandwidth": math.nan}, ValueError, "bandwidth must be a finite number above 0, got nan"),
        ({"bandwidth": [1.0, -1.0]}, ValueError, "bandwidth must be above 0 everywhere, got -1"),
        ({"bandwidth": [1.0, math.inf]}, ValueError, "bandwidth contains infinity"),
        ({"bandwidth": "1"}, TypeError, "bandwidth must be a number, got '1'"),
        ({"bandwidth": True}, TypeError, "bandwidth must be a number, got True"),
        ({"bandwidth": 1j}, TypeError, "bandwidth must be a number"),
        ({"bandwidth": None}, TypeError, "bandwidth must be a number, got None"),
        ({"source": "normal"}, ValueError, "source must be 'std' or one of uniform, .*got 'normal'"),
        ({"target": "normal"}, ValueError, "target must be 'std' or one of uniform, .*got 'normal'"),
        ({"source": "radius"}, ValueError, "source must be 'std' or one of"),
        ({"source": "std", "target": "radius"}, ValueError, "profile must be one of .*got 'std'"),
        ({"source": "softmax"}, ValueError, "source must be 'std' or one of .*got 'softmax'"),
        ({"dimension": 0}, ValueError, "dimension must be at least 1, got 0"),
        ({"dimension": 2.0}, TypeError, "dimension must be an integer, got 2.0"),
        ({"source": "student_t"}, ValueError, "kernel 'student_t' needs nu"),
        ({"source": "student_t", "parameter": -1}, ValueError, "nu must be a finite number above 0, got -1"),
        ({"parameter": 3.0}, ValueError, "neither 'gaussian' nor 'uniform' has a shape, got 3.0"),
    ],
)
def test_what_cannot_be_converted_is_named(change, error, message):
    arguments = {"bandwidth": 1.0, "source": "gaussian", "target": "uniform", **change}
    with pytest.raises(error, match=message):
        lb.convert_bandwidth(**arguments)


# -- rules for densities -------------------------------------------------------------------------------------------

RULES = {"scott": lb.scott_bandwidth, "silverman": lb.silverman_bandwidth}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("n", "d"), [(2, 1), (30, 1), (50, 2), (400, 5)])
def test_rules_against_scipy(rule, n, d):
    x = np.random.default_rng(n + d).normal(size=(n, d)) * np.geomspace(0.01, 100, d) + 3
    peer = gaussian_kde(x.T, bw_method=rule)
    ours = RULES[rule](x)
    assert ours.shape == (d,)
    np.testing.assert_allclose(ours, np.sqrt(np.diag(np.atleast_2d(peer.covariance))), rtol=1e-10)
    np.testing.assert_allclose(ours / x.std(axis=0, ddof=1), peer.factor, rtol=1e-10)
    if d == 1:
        np.testing.assert_allclose(RULES[rule](x[:, 0]), ours, rtol=1e-14)
        ours_density = np.exp(lb.log_density(x[:5], x, lb.gaussian(ours)))
        np.testing.assert_allclose(ours_density, peer(x[:5].T), rtol=1e-9)


@pytest.mark.parametrize("rule", RULES)
@given(
    x=arrays(np.float64, (9, 2), elements=st.integers(-1000, 1000).map(float)),
    scale=st.floats(-8, 8).map(lambda e: 10.0**e),
)
@few
def test_rules_follow_the_scale_and_ignore_the_place(rule, x, scale):
    x[:2] = [[-1001, -1001], [1001, 1001]]  # no constant column
    expected = RULES[rule](x)
    np.testing.assert_allclose(RULES[rule](scale * x), scale * expected, rtol=1e-12)
    np.testing.assert_allclose(RULES[rule](x + 2.0**27), expected, rtol=1e-9)
    np.testing.assert_allclose(RULES[rule](x[::-1]), expected, rtol=1e-12)
    np.testing.assert_allclose(RULES[rule](np.hstack([x, x])), [*RULES[rule](np.hstack([x, x]))[:2]] * 2)


def test_the_small_case_of_scikit_learn_26658():
    assert lb.silverman_bandwidth([0.0, 0.01, 0.02, 0.05])[0] == pytest.approx(0.0173, abs=5e-5)


@pytest.mark.parametrize("rule", RULES)
def test_small_integers_do_not_wrap_in_a_rule(rule):
    x = np.array([0, 255, 10, 200], np.uint8)
    np.testing.assert_allclose(RULES[rule](x), RULES[rule](x.astype(float)), rtol=1e-14)
    assert RULES[rule](x.astype(np.float32)).dtype == np.float64


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("samples", "error", "message"),
    [
        ([1.0], ValueError, "samples must hold at least 2 rows"),
        ([[1.0, 2.0]], ValueError, "samples must hold at least 2 rows"),
        ([[1.0, 2.0], [3.0, 2.0]], ValueError, "samples: column 1 is constant"),
        ([0.1] * 7, ValueError, "samples: column 0 is constant"),
        ([1e8 + 0.1] * 10, ValueError, "samples: column 0 is constant"),
        ([[1.0, math.nan], [2.0, 3.0]], ValueError, "samples contains NaN"),
        ([math.inf, 1.0], ValueError, "samples contains infinity"),
        ([], ValueError, "samples must not be empty"),
        (np.zeros((2, 2, 2)), ValueError, "samples must be 1-D or 2-D"),
        (3.0, ValueError, "samples must be 1-D or 2-D"),
        ("abc", TypeError, "samples must be numeric"),
        ([1j, 2], TypeError, "samples: complex"),
    ],
)
def test_samples_without_a_rule_are_named(rule, samples, error, message):
    with pytest.raises(error, match=message):
        RULES[rule](samples)


# -- bad rulers ----------------------------------------------------------------------------------------------------

BAD_BANDWIDTHS = [
    (0, ValueError, "bandwidth must be a finite number above 0, got 0"),
    (-0.5, ValueError, "bandwidth must be a finite number above 0, got -0.5"),
    (math.nan, ValueError, "bandwidth must be a finite number above 0, got nan"),
    (math.inf, ValueError, "bandwidth must be a finite number above 0, got inf"),
    (10**400, ValueError, "bandwidth must be a finite number above 0"),
    (SMALLEST / 2, ValueError, "bandwidth must lie between 1e-150 and"),
    (LARGEST * 2, ValueError, "bandwidth must lie between .*got 2e"),
    (5e-324, ValueError, "bandwidth must lie between"),
    (True, TypeError, "bandwidth must be a number, got True"),
    (np.True_, TypeError, "bandwidth must be a number"),
    (np.array(True), TypeError, "bandwidth must be a number"),
    ("0.5", TypeError, "bandwidth must be a number, got '0.5'"),
    ("scott", TypeError, "bandwidth must be a number, got 'scott'"),
    (None, TypeError, "bandwidth must be a number, got None"),
    (1 + 0j, TypeError, "bandwidth must be a number"),
    (np.complex128(1), TypeError, "bandwidth must be a number"),
    (object(), TypeError, "bandwidth must be a number"),
    (lambda s: s, TypeError, "bandwidth must be a number"),
    ({}, TypeError, "bandwidth must be numeric"),
    ([], ValueError, "bandwidth must not be empty"),
    ([1.0, 0.0], ValueError, "bandwidth must be above 0 everywhere, got 0"),
    ([1.0, -2.0], ValueError, "bandwidth must be above 0 everywhere, got -2"),
    ([1.0, math.nan], ValueError, "bandwidth contains NaN .first at row 1"),
    ([1.0, math.inf], ValueError, "bandwidth contains infinity"),
    ([1.0, 1e-200], ValueError, "bandwidth must lie between .*got 1e-200"),
    ([True, True], TypeError, "bandwidth must hold numbers, got dtype bool"),
    (["1", "2"], TypeError, "bandwidth must be numeric"),
    ([1j, 1], TypeError, "bandwidth: complex"),
    ([[1.0], [1.0, 2.0]], ValueError, "bandwidth must be a rectangular array"),
    ([[1.0, 2.0]], ValueError, r"bandwidth must be square, got shape \(1, 2\)"),
    ([[1.0, 2.0], [2.0, 4.0]], ValueError, "bandwidth must be invertible"),
    (np.zeros((2, 2)), ValueError, "bandwidth must be invertible"),
    (1e-200 * np.eye(2), ValueError, "bandwidth must lie between .*got 1e-200"),
    (1e200 * np.eye(2), ValueError, r"bandwidth must lie between .*got 1e\+200"),
    (np.diag([1.0, math.nan]), ValueError, "bandwidth contains NaN"),
    (np.eye(2, dtype=bool), TypeError, "bandwidth must hold numbers, got dtype bool"),
    (np.ones((2, 2, 2)), ValueError, "bandwidth must be 1-D or 2-D"),
]


@pytest.mark.parametrize(("bandwidth", "error", "message"), BAD_BANDWIDTHS)
def test_a_bad_bandwidth_is_named_before_anything_runs(bandwidth, error, message):
    for make in (
        lb.gaussian,
        lb.uniform,
        lambda h: lb.Kernel(profile=abs, bandwidth=h),
        lb.gaussian().with_bandwidth,
    ):
        with pytest.raises(error, match=message):
            make(bandwidth)


@pytest.mark.parametrize("build", [lb.per_query, lb.per_sample])
@pytest.mark.parametrize(
    ("bandwidths", "error", "message"),
    [
        ([1.0, 0.0], ValueError, "bandwidths must be above 0 everywhere, got 0"),
        ([1.0, -1.0], ValueError, "bandwidths must be above 0 everywhere, got -1"),
        ([math.nan], ValueError, "bandwidths contains NaN"),
        ([1.0, 1e-160], ValueError, "bandwidths? must lie between"),
        ([], ValueError, "bandwidths must not be empty"),
        (1.0, ValueError, "bandwidths must be 1-D"),
        ([[1.0]], ValueError, "bandwidths must be 1-D"),
        ([True], TypeError, "bandwidths must hold numbers"),
        (["a"], TypeError, "bandwidths must be numeric"),
        (None, (TypeError, ValueError), "bandwidths"),
    ],
)
def test_bad_varying_bandwidths_are_named(build, bandwidths, error, message):
    with pytest.raises(error, match=message):
        build(bandwidths)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": 3.0}, TypeError, "n_neighbors must be an integer, got 3.0"),
        ({"n_neighbors": True}, TypeError, "n_neighbors must be an integer, got True"),
        ({"n_neighbors": "3"}, TypeError, "n_neighbors must be an integer, got '3'"),
        ({"side": "both"}, ValueError, "side must be one of 'query', 'sample', got 'both'"),
        ({"side": None}, ValueError, "side must be one of"),
        ({"scale": 0}, ValueError, "scale must be a finite number above 0"),
        ({"scale": math.nan}, ValueError, "scale must be a finite number above 0"),
        ({"scale": "1"}, TypeError, "scale must be a number"),
        ({"scale": 1e-200}, ValueError, "scale must lie between"),
    ],
)
def test_bad_neighbour_bandwidths_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        lb.knn_bandwidth(**{"n_neighbors": 3, **arguments})


def test_a_bandwidth_that_has_no_meaning_for_its_metric_is_refused():
    for bandwidth, metric in (
        ([1.0, 2.0], "hamming"),
        ([1.0, 2.0], "cosine"),
        ([1.0, 2.0], "haversine"),
        ([1.0, 2.0], lb.mahalanobis(np.eye(2))),
        ([1.0, 2.0], lambda a, b: 0.0),
        (np.eye(2), "manhattan"),
        (np.eye(2), "nan_euclidean"),
    ):
        with pytest.raises(
            ValueError, match=r"bandwidth of shape \(2.*has no meaning for metric .*give one number"
        ):
            lb.gaussian(bandwidth, metric=metric)
    with pytest.raises(ValueError, match=r"bandwidth has 2 entries, but on=\(0, 1, 2\) names 3 columns"):
        lb.gaussian([1.0, 2.0], on=[0, 1, 2])


def test_numbers_of_any_kind_are_one_bandwidth():
    for value in (2, 2.0, np.float32(2), np.int8(2), np.uint64(2), np.array(2.0), np.array(2)):
        kernel = lb.gaussian(value)
        assert kernel == lb.gaussian(2.0)
        assert type(kernel.bandwidth) is float
    assert lb.gaussian((1, 2)) == lb.gaussian(np.array([1.0, 2.0], np.float32)) == lb.gaussian([1, 2])
    assert lb.gaussian(SMALLEST).bandwidth == SMALLEST
    assert lb.gaussian(LARGEST).bandwidth == LARGEST


def test_a_bandwidth_is_a_private_copy():
    theirs = np.array([1.0, 2.0])
    kernel, ruler, matrix = lb.gaussian(theirs), lb.per_query(theirs), np.eye(2)
    table = lb.gaussian(matrix)
    theirs[:], matrix[0, 1] = 9.0, 0.5
    assert kernel == lb.gaussian([1.0, 2.0])
    assert ruler == lb.per_query([1.0, 2.0])
    assert table == lb.gaussian(np.eye(2))
    for array in (kernel.bandwidth, ruler.values, table.bandwidth, as_bandwidth([3.0])):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_varying_bandwidths_are_values():
    assert lb.per_query([1.0, 2.0]) == lb.per_query(np.array([1, 2]))
    assert lb.per_query([1.0]) != lb.per_sample([1.0])
    assert lb.knn_bandwidth(3) == lb.knn_bandwidth(np.int64(3)) != lb.knn_bandwidth(3, scale=2)
    assert len({lb.knn_bandwidth(3), lb.knn_bandwidth(3), lb.knn_bandwidth(3, side="sample")}) == 2
    with pytest.raises(AttributeError, match="immutable"):
        lb.knn_bandwidth(3).n_neighbors = 4


def test_with_bandwidth_changes_the_one_ruler():
    kernel = (0.5 * lb.student_t(1.0, nu=4, metric="manhattan", on=[0]) + 0.1).hollow()
    changed = kernel.with_bandwidth(7.0)
    assert changed == (0.5 * lb.student_t(7.0, nu=4, metric="manhattan", on=[0]) + 0.1).hollow()
    assert kernel.bandwidth == 1.0
    assert changed.bandwidth == 7.0
    mask = np.eye(2, dtype=bool)
    user = (lb.softmax() * lb.Kernel(log_profile=abs, bandwidth=1.0)).masked(mask)
    assert user.with_bandwidth([2.0]) == (lb.softmax() * lb.Kernel(log_profile=abs, bandwidth=[2.0])).masked(
        mask
    )
    for many, count in ((lb.gaussian() + lb.uniform(), 2), (lb.knn(3), 0), (lb.softmax() + 0.5, 0)):
        assert many.bandwidth is None
        with pytest.raises(ValueError, match=f"has {count} bandwidths; exactly one is needed"):
            many.with_bandwidth(1.0)
