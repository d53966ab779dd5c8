"""Distances against scikit-learn, SciPy and their own definitions; axioms; offsets, integers, angles, NaN."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import haversine_distances, nan_euclidean_distances

import locbook as lb
from locbook.engine import reference
from locbook.kernels.metrics import as_metric

few = settings(derandomize=True, deadline=None, max_examples=40)
COVARIANCE = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, -0.4], [0.0, -0.4, 0.5]])
PERIODS = np.array([1.0, 2.5, 360.0])


def distances(metric, queries, samples, **options):
    """What the engine measures: a Laplace kernel's log-weight is minus the distance."""
    return -lb.laplace(metric=metric, **options).log(queries, samples)


def torus(queries, samples, periods=PERIODS):
    """Column by column, the nearest of the images up to twenty periods away."""
    images = np.arange(-20, 21)[:, None] * periods
    columns = np.abs(queries[:, None, None, :] - samples[None, :, None, :] + images).min(axis=2)
    return np.sqrt((columns**2).sum(-1))


#: One oracle for each distance: label -> (metric, peer).
ORACLES = {
    "euclidean": ("euclidean", lambda q, x: cdist(q, x, "euclidean")),
    "manhattan": ("manhattan", lambda q, x: pairwise_distances(q, x, metric="manhattan")),
    "chebyshev": ("chebyshev", lambda q, x: cdist(q, x, "chebyshev")),
    "minkowski 1": (lb.minkowski(1), lambda q, x: cdist(q, x, "cityblock")),
    "minkowski 1.5": (lb.minkowski(1.5), lambda q, x: cdist(q, x, "minkowski", p=1.5)),
    "minkowski 2": (lb.minkowski(2.0), lambda q, x: cdist(q, x, "euclidean")),
    "minkowski 7": (lb.minkowski(7), lambda q, x: cdist(q, x, "minkowski", p=7)),
    "mahalanobis": (
        lb.mahalanobis(COVARIANCE),
        lambda q, x: cdist(q, x, "mahalanobis", VI=np.linalg.inv(COVARIANCE)),
    ),
    "hamming": ("hamming", lambda q, x: cdist(np.round(q), np.round(x), "hamming")),
    "haversine": ("haversine", lambda q, x: haversine_distances(q[:, :2], x[:, :2])),
    "periodic": (lb.periodic(PERIODS), torus),
    "cosine": ("cosine", lambda q, x: pairwise_distances(q, x, metric="cosine")),
    "nan_euclidean": ("nan_euclidean", nan_euclidean_distances),
}


def points(label, dtype=np.float64):
    rng = np.random.default_rng(7)
    q, x = rng.normal(size=(9, 3)), rng.normal(size=(40, 3))
    x[3] = q[2]
    if label == "hamming":
        q, x = np.round(q), np.round(x)
    if label == "haversine":
        q, x = (a[:, :2] * [0.6, 1.5] for a in (q, x))
    if label == "nan_euclidean":
        q[rng.random(q.shape) < 0.3] = np.nan
        x[rng.random(x.shape) < 0.3] = np.nan
        x[:2], q[0] = [[np.nan, np.nan, 1.0], [np.nan, np.nan, np.nan]], [1.0, 2.0, np.nan]
    return q.astype(dtype), x.astype(dtype)


@pytest.mark.parametrize("label", ORACLES)
def test_against_the_peer_and_the_twin(label):
    metric, peer = ORACLES[label]
    q, x = points(label)
    expected = peer(q, x)
    if label == "nan_euclidean":
        assert np.isnan(expected).any()  # pairs without a common column: no distance, weight 0
        expected = np.where(np.isnan(expected), np.inf, expected)
    ours = distances(metric, q, x)
    assert ours.dtype == np.float64
    np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(ours, reference.distances(q, x, as_metric(metric)), rtol=1e-12, atol=1e-14)


def test_the_oracle_table_knows_every_distance():
    from locbook.kernels.metrics import _CODES

    assert {as_metric(metric).name for metric, _ in ORACLES.values()} == set(_CODES)


@pytest.mark.parametrize("label", ORACLES)
def test_float32_is_as_good_as_float32_input(label):
    metric, peer = ORACLES[label]
    q, x = points(label, np.float32)
    ours = distances(metric, q, x)
    assert ours.dtype == np.float32
    expected = peer(q.astype(np.float64), x.astype(np.float64))
    expected = np.where(np.isnan(expected), np.inf, expected)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("label", [label for label in ORACLES if label != "haversine"])
def test_chosen_columns_are_the_distance_of_those_columns(label):
    metric, _ = ORACLES[label]
    q, x = points(label)
    wide_q, wide_x = (np.column_stack([a[:, 2], np.full(len(a), 9.0), a[:, 0], a[:, 1]]) for a in (q, x))
    wide_x[:, 1] = -5.0  # not looked at
    np.testing.assert_array_equal(distances(metric, wide_q, wide_x, on=[2, 3, 0]), distances(metric, q, x))


# -- axioms --------------------------------------------------------------------------------------------------------


def number(width=100.0):
    return st.floats(-width, width, allow_subnormal=False).map(lambda v: round(v, 6))


AXIOMS = {
    "euclidean": "euclidean",
    "manhattan": "manhattan",
    "chebyshev": "chebyshev",
    "minkowski 1": lb.minkowski(1),
    "minkowski 1.2": lb.minkowski(1.2),
    "minkowski 30": lb.minkowski(30),
    "mahalanobis": lb.mahalanobis(COVARIANCE),
    "hamming": "hamming",
    "haversine": "haversine",
    "periodic": lb.periodic(PERIODS),
}


@pytest.mark.parametrize("label", AXIOMS)
@given(data=st.data())
@few
def test_axioms(label, data):
    metric = as_metric(AXIOMS[label])
    assert metric.is_metric
    width = math.pi if label == "haversine" else 100.0
    values = st.integers(0, 2).map(float) if label == "hamming" else number(width)
    x = data.draw(arrays(np.float64, (4, 2 if label == "haversine" else 3), elements=values))
    d = distances(metric, x, x.copy())
    assert (d >= 0).all()
    assert (d.diagonal() == 0).all()
    np.testing.assert_array_equal(d, d.T)
    # d(a, c) <= d(a, b) + d(b, c), to rounding; near antipodes an angle has half the digits
    slack = 1e-7 if label == "haversine" else 1e-12 * (1 + d.max())
    assert (d[:, None, :] <= d[:, :, None] + d[None, :, :] + slack).all()
    if label not in ("haversine", "periodic"):
        apart = (x[:, None] != x[None]).any(-1)
        assert (d[apart] > 0).all()


def test_what_is_called_no_metric_breaks_the_triangle():
    x = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    d = distances("cosine", x, x)
    assert not as_metric("cosine").is_metric
    assert d[0, 2] > d[0, 1] + d[1, 2] + 0.1
    x = np.array([[0.0, 0.0], [np.nan, 0.0], [9.0, 0.0]])
    d = distances("nan_euclidean", x, x)
    assert not as_metric("nan_euclidean").is_metric
    assert d[0, 2] > d[0, 1] + d[1, 2] + 1
    assert not as_metric(lambda a, b: 0.0).is_metric


@given(x=arrays(np.float64, (4, 3), elements=number()), shift=number(1e3))
@few
def test_cosine_sees_directions_only(x, shift):
    scale = 1.0 + abs(shift)
    d = distances("cosine", x, scale * x)
    length = np.linalg.norm(x, axis=1)
    same = np.where(length > 0, 0.0, 1.0)
    np.testing.assert_allclose(d.diagonal(), same, atol=1e-14)
    assert (d >= 0).all()
    assert (d <= 2 + 1e-12).all()


def test_cosine_of_a_zero_vector_is_one():
    q, x = [[0.0, 0.0], [1.0, 0.0]], [[0.0, 0.0], [2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]]
    np.testing.assert_allclose(distances("cosine", q, x), [[1, 1, 1, 1], [1, 0, 1, 2]], atol=1e-15)


def test_cosine_near_zero_does_not_cancel():
    """1 - cos of an angle of 1e-6 is 5e-13, of which 1 - <x, y> keeps three digits."""
    angle = 1e-6
    d = distances("cosine", [[1.0, 0.0]], [[math.cos(angle), math.sin(angle)]])
    assert d[0, 0] == pytest.approx(2 * math.sin(angle / 2) ** 2, rel=1e-9)


# -- offsets, huge and tiny numbers, integers ----------------------------------------------------------------------


@pytest.mark.parametrize("offset", [1e8, -1e8, 1e9])
@pytest.mark.parametrize("label", [n for n in ORACLES if n not in ("hamming", "haversine", "cosine")])
def test_an_offset_changes_no_distance(label, offset):
    metric, _ = ORACLES[label]
    rng = np.random.default_rng(3)
    q, x = rng.integers(-40, 40, (6, 3)) / 8, rng.integers(-40, 40, (9, 3)) / 8  # exact, offset and all
    np.testing.assert_array_equal(distances(metric, q + offset, x + offset), distances(metric, q, x))


@pytest.mark.parametrize(
    ("bandwidth", "metric"),
    [
        *(([0.3, 0.7, 3.1], m) for m in ("euclidean", "manhattan", "chebyshev", "nan_euclidean")),
        ([0.3, 0.7, 3.1], lb.minkowski(3)),
        ([0.3, 0.7, 3.1], lb.periodic([3.0, 5.0, 7.0])),
        (np.array([[0.3, 0.1, 0.0], [0.0, 0.7, 0.2], [0.1, 0.0, 3.1]]), "euclidean"),
    ],
    ids=repr,
)
def test_an_offset_changes_no_distance_in_units_of_a_bandwidth(bandwidth, metric):
    """The difference is divided, not the coordinates: 1e8 / 0.3 has lost what tells them apart."""
    rng = np.random.default_rng(3)
    q, x = rng.integers(-40, 40, (6, 3)) / 8, rng.integers(-40, 40, (9, 3)) / 8
    kernel = lb.laplace(bandwidth, metric=metric)
    np.testing.assert_array_equal(kernel.log(q + 1e8, x + 1e8), kernel.log(q, x))


def test_neighbours_of_the_cancelling_square():
    """scikit-learn#9354 and #20278: an expanded square gives 0, and the wrong neighbour."""
    assert distances("euclidean", [[1e8]], [[1e8 + 1]])[0, 0] == 1.0
    assert lb.knn(1)([[1e9 + 0.9]], [[1e9], [1e9 + 1]]).tolist() == [[0.0, 1.0]]
    # pytorch#42479: thirty rows and columns of 1e4 against 1e4 + 0.01, in float32
    a = np.full((30, 30), 1e4, np.float32)
    b = a + np.float32(0.01)
    true = math.sqrt(30) * float(b[0, 0] - a[0, 0])
    np.testing.assert_allclose(distances("euclidean", a, b), true, rtol=1e-6)
    assert (distances("euclidean", a, a).diagonal() == 0).all()


@pytest.mark.parametrize("label", ["euclidean", "manhattan", "chebyshev", "minkowski 7", "nan_euclidean"])
@pytest.mark.parametrize("scale", [1e-140, 1e-6, 1e6, 1e140])
def test_distances_scale_with_the_data(label, scale):
    metric, _ = ORACLES[label]
    q, x = points("euclidean")
    np.testing.assert_allclose(
        distances(metric, scale * q, scale * x), scale * distances(metric, q, x), rtol=1e-12
    )


def test_a_high_minkowski_exponent_neither_under_nor_overflows():
    """0.0001 ** 100 is no float, and SciPy's distance of it is 0."""
    d = distances(lb.minkowski(100), [[0.0, 0.0]], [[1e-4, 1e-5], [1e5, 1e5], [0.0, 0.0]])
    np.testing.assert_allclose(d, [[1e-4, 1e5 * 2**0.01, 0.0]], rtol=1e-13)


def test_euclidean_in_the_columns_of_an_image():
    rng = np.random.default_rng(0)
    q, x = rng.random((3, 784)), rng.random((20, 784))
    for label in ("euclidean", "manhattan", "chebyshev", "cosine", "hamming"):
        np.testing.assert_allclose(
            distances(label, q, x), cdist(q, x, "cityblock" if label == "manhattan" else label), rtol=1e-12
        )


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int64])
@pytest.mark.parametrize(
    "metric", ["euclidean", "manhattan", "chebyshev", lb.minkowski(3), lb.periodic(1000.0)]
)
def test_integers_do_not_wrap(metric, dtype):
    q, x = np.array([[1]], dtype), np.array([[2], [0], [1], [100]], dtype)
    np.testing.assert_allclose(distances(metric, q, x), [[1, 1, 0, 99]], rtol=1e-15)
    low, high = np.iinfo(np.int8).min, np.iinfo(np.int8).max
    assert distances(metric, np.array([[low]], np.int8), np.array([[high]], np.int8))[0, 0] == pytest.approx(
        255
    )


def test_booleans_are_zero_and_one():
    assert distances("hamming", [[True, False]], [[True, True], [False, True]]).tolist() == [[0.5, 1.0]]


# -- angles, missing values ----------------------------------------------------------------------------------------


def test_haversine_of_known_cities():
    """Paris to Buenos Aires is 11,050 km on a ball of 6371 km."""
    paris, ezeiza = np.radians([49.0083899664, 2.53844117956]), np.radians([-34.83333, -58.5166646])
    d = distances("haversine", [paris], [ezeiza, paris, -paris])
    assert d[0, 0] * 6371 == pytest.approx(11099.54, abs=0.01)
    assert d[0, 1] == 0.0


def test_haversine_wraps_at_the_date_line_and_the_poles():
    d = distances("haversine", [[0.0, math.pi - 0.01]], [[0.0, -math.pi + 0.01]])
    assert d[0, 0] == pytest.approx(0.02, rel=1e-12)
    d = distances("haversine", [[math.pi / 2, 0.3]], [[math.pi / 2, 2.9], [-math.pi / 2, 1.0]])
    np.testing.assert_allclose(d, [[0.0, math.pi]], atol=1e-8)


@given(x=arrays(np.float64, (8, 2), elements=st.floats(-20, 20)))
@few
def test_haversine_is_an_angle_for_any_numbers(x):
    """Latitudes beyond the poles (degrees, by mistake) must not give NaN by a rounding below zero."""
    mirrored = np.column_stack([math.pi - x[:, 0], x[:, 1] + math.pi])  # the same places, over the pole
    d = distances("haversine", np.vstack([x, mirrored]), np.vstack([x, mirrored]))
    assert ((d >= 0) & (d <= math.pi)).all()
    np.testing.assert_allclose(d[:8, 8:].diagonal(), 0.0, atol=1e-6)


def test_haversine_needs_two_columns():
    with pytest.raises(ValueError, match=r"haversine' needs 2 columns .*got 3"):
        distances("haversine", [[0.0, 0, 0]], [[0.0, 0, 0]])


@given(
    x=st.floats(-3, 3),
    y=st.floats(-3, 3),
    turns=st.integers(-1000, 1000),
    period=st.floats(0.1, 1000),
)
@few
def test_periodic_does_not_see_whole_turns(x, y, turns, period):
    metric = lb.periodic(period)
    near, far = distances(metric, [[x]], [[y], [y + turns * period]])[0]
    assert far == pytest.approx(near, abs=1e-10 * (1 + abs(turns * period)))
    assert near <= period / 2 * (1 + 1e-12)


def test_one_period_for_all_columns_or_one_for_each():
    q, x = points("euclidean")
    np.testing.assert_array_equal(distances(lb.periodic(2.0), q, x), distances(lb.periodic([2.0] * 3), q, x))
    with pytest.raises(ValueError, match="metric: 2 periods, but the kernel looks at 3 columns"):
        distances(lb.periodic([1.0, 2.0]), q, x)
    with pytest.raises(
        ValueError, match=r"metric: the covariance is \(3, 3\), but the kernel looks at 1 columns"
    ):
        distances(lb.mahalanobis(COVARIANCE), [[0.0]], [[1.0]])


def test_the_density_of_angles_wraps():
    """arviz-stats#423: at pi, between -3.1 and 3.1, it must be higher than at 0, and turning changes nothing."""
    angles = np.array([[-3.1], [3.1]])
    for kernel in (lb.gaussian(0.1, metric=lb.periodic(2 * math.pi)), lb.von_mises(100.0)):
        at_pi, at_zero = kernel.log([[math.pi], [0.0]], angles).max(axis=1)
        assert at_pi > at_zero + 10
        np.testing.assert_allclose(kernel([[1.0]], angles), kernel([[1.0 + 2.2]], angles + 2.2), rtol=1e-9)


def test_a_pair_without_a_common_column_has_weight_zero():
    x = np.array([[np.nan, 1.0], [1.0, np.nan], [1.0, 1.0]])
    for name in ("uniform", "triangular", "tricube", "gaussian", "laplace", "cauchy", "student_t"):
        weights = lb.get_kernel(name)(2.0, metric="nan_euclidean")(x[:1], x)
        assert weights[0, 1] == 0.0
        assert weights[0, 0] == weights[0, 2] == 1.0
    assert lb.gaussian(metric="nan_euclidean").log(x[:1], x)[0, 1] == -np.inf


def test_missing_values_are_refused_where_they_mean_nothing():
    for metric in ("euclidean", "hamming", "cosine", lb.minkowski(3)):
        with pytest.raises(ValueError, match=r"samples contains NaN .first at row 1, column 0"):
            distances(metric, [[0.0]], [[0.0], [np.nan]])
    with pytest.raises(ValueError, match="samples contains infinity"):
        distances("nan_euclidean", [[0.0]], [[np.nan], [np.inf]])


# -- the user's own ------------------------------------------------------------------------------------------------


def city(a, b):
    total = 0.0
    for c in range(a.size):
        total += abs(a[c] - b[c])
    return total


compiled_city = njit(city)


@pytest.mark.parametrize("function", [city, compiled_city], ids=["plain", "njit"])
def test_a_distance_of_ones_own_is_the_named_one(function):
    q, x = points("euclidean")
    np.testing.assert_allclose(distances(function, q, x), distances("manhattan", q, x), rtol=1e-14)
    np.testing.assert_array_equal(
        lb.tricube(1.3, metric=function, on=[2, 0])(q, x),
        lb.tricube(1.3, metric="manhattan", on=[2, 0])(q, x),
    )
    np.testing.assert_array_equal(lb.knn(3, metric=function)(q, x), lb.knn(3, metric="manhattan")(q, x))
    wide = lb.knn_bandwidth(4)
    np.testing.assert_allclose(
        lb.gaussian(wide, metric=function)(q, x), lb.gaussian(wide, metric="manhattan")(q, x), rtol=1e-12
    )
    np.testing.assert_allclose(  # many tiles
        distances(function, q, np.tile(x, (40, 1))),
        distances("manhattan", q, np.tile(x, (40, 1))),
        rtol=1e-14,
    )


def test_a_distance_that_is_negative_or_nan_is_refused():
    def signed(a, b):
        return a[0] - b[0]

    def root(a, b):
        return math.sqrt(a[0] - b[0])

    for function in (signed, root):
        assert distances(function, [[1.0]], [[1.0], [0.0]]).tolist() == [[0.0, 1.0]]
        with pytest.raises(ValueError, match=r"user's function .*negative, NaN or infinite"):
            distances(function, [[1.0]], [[1.0], [2.0]])


def test_a_distance_that_numba_cannot_compile_is_named():
    def curious(a, b):
        return str(a) + {}

    with pytest.raises(TypeError, match="metric: Numba cannot compile 'curious'"):
        distances(curious, [[1.0]], [[1.0]])


# -- as values, and bad input --------------------------------------------------------------------------------------


def test_metrics_are_values():
    assert lb.minkowski(3) == lb.minkowski(3.0) != lb.minkowski(4)
    assert lb.periodic(2) == lb.periodic([2.0]) != lb.periodic([2.0, 2.0])
    assert hash(lb.mahalanobis(COVARIANCE)) == hash(lb.mahalanobis(COVARIANCE.tolist()))
    assert lb.mahalanobis(COVARIANCE) != lb.mahalanobis(2 * COVARIANCE)
    assert as_metric("cosine") == lb.Metric("cosine") != "cosine"
    assert as_metric(city) == as_metric(city) != as_metric(compiled_city)
    metric = lb.periodic([1.0, 2.0])
    with pytest.raises(AttributeError, match="immutable"):
        metric.parameter = np.ones(2)
    with pytest.raises(ValueError, match="read-only"):
        metric.parameter[0] = 5.0
    theirs = COVARIANCE.copy()
    metric = lb.mahalanobis(theirs)
    theirs[:] = 7.0
    assert metric == lb.mahalanobis(COVARIANCE)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lb.minkowski(0.5), ValueError, "p must be at least 1 .*got 0.5"),
        (lambda: lb.minkowski(0), ValueError, "p must be a finite number above 0, got 0"),
        (lambda: lb.minkowski(math.inf), ValueError, "p must be a finite number"),
        (lambda: lb.minkowski(math.nan), ValueError, "p must be a finite number"),
        (lambda: lb.minkowski("2"), TypeError, "p must be a number, got '2'"),
        (lambda: lb.minkowski(True), TypeError, "p must be a number, got True"),
        (lambda: lb.minkowski(2 + 0j), TypeError, "p must be a number"),
        (lambda: lb.minkowski([2.0]), TypeError, "p must be a number"),
        (lambda: lb.mahalanobis([[1.0, 2.0]]), ValueError, r"covariance must be square, got shape \(1, 2\)"),
        (lambda: lb.mahalanobis(2.0), ValueError, "covariance must be 2-D"),
        (lambda: lb.mahalanobis([[1.0, 0.1], [0.2, 1.0]]), ValueError, "covariance must be symmetric"),
        (
            lambda: lb.mahalanobis([[1.0, 1.0], [1.0, 1.0]]),
            ValueError,
            "covariance must be positive definite",
        ),
        (
            lambda: lb.mahalanobis([[1.0, 2.0], [2.0, 1.0]]),
            ValueError,
            "positive definite, got .*eigenvalue -1",
        ),
        (
            lambda: lb.mahalanobis([[-1.0, 0.0], [0.0, -1.0]]),
            ValueError,
            "covariance must be positive definite",
        ),
        (lambda: lb.mahalanobis(np.zeros((2, 2))), ValueError, "covariance must be positive definite"),
        (lambda: lb.mahalanobis([[np.nan]]), ValueError, "covariance contains NaN"),
        (
            lambda: lb.mahalanobis(np.eye(2, dtype=bool)),
            TypeError,
            "covariance must hold numbers, got dtype bool",
        ),
        (lambda: lb.mahalanobis(np.eye(2) * 1j), TypeError, "covariance: complex data not supported"),
        (lambda: lb.periodic(0.0), ValueError, "period must be a finite number above 0"),
        (lambda: lb.periodic([1.0, -1.0]), ValueError, "period must be above 0 everywhere, got -1"),
        (lambda: lb.periodic(math.nan), ValueError, "period must be a finite number"),
        (lambda: lb.periodic([1.0, math.inf]), ValueError, "period contains infinity"),
        (lambda: lb.periodic("6.28"), TypeError, "period must be a number, got '6.28'"),
        (lambda: lb.periodic(["6.28"]), TypeError, "period must be numeric"),
        (lambda: lb.periodic(True), TypeError, "period must be a number, got True"),
        (lambda: lb.periodic(None), TypeError, "period must be a number, got None"),
        (lambda: lb.periodic([[1.0]]), ValueError, "period must be 1-D"),
        (lambda: lb.periodic([]), ValueError, "period must not be empty"),
        (lambda: lb.gaussian(metric="euclid"), ValueError, "metric must be one of chebyshev, .*got 'euclid'"),
        (
            lambda: lb.gaussian(metric="minkowski"),
            ValueError,
            r"'minkowski' needs a parameter: use lb.minkowski",
        ),
        (lambda: lb.gaussian(metric=2), TypeError, "metric must be a name, a Metric or a function .*got int"),
        (lambda: lb.gaussian(metric=None), TypeError, "metric must be .*got NoneType"),
        (lambda: lb.Metric("euclid"), ValueError, "name must be one of .*got 'euclid'"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_covariance_may_have_columns_of_unlike_size():
    """Variances of 1e-16 and 1e16 are positive definite, whatever their ratio says."""
    metric = lb.mahalanobis(np.diag([1e-16, 1e16]))
    np.testing.assert_allclose(
        distances(metric, [[0.0, 0.0]], [[1e-8, 0.0], [3e-8, 4e8]]), [[1, 5]], rtol=1e-12
    )


def test_a_covariance_may_be_symmetric_to_rounding():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    covariance = turn @ np.diag(np.arange(1.0, 7.0)) @ turn.T
    covariance[0, 1] += 1e-15
    lb.mahalanobis(covariance)
