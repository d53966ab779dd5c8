"""Faults E (bandwidths, kernels, weights) of shared/faults.md: one test for each number."""

import inspect

import numpy as np
import pytest

import locbook as lb
from tests.engine.problems import KERNELS as TWINNED
from tests.engine.problems import close, twin_weights

DATA = np.array([0.0, 0.01, 0.02, 0.05])


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 7.0, 1e12])
def test_e31_rules_scale_with_the_data(scale):
    for rule, value in ((lb.silverman_bandwidth, 0.0173), (lb.scott_bandwidth, 0.0164)):
        assert rule(DATA)[0] == pytest.approx(value, abs=5e-5)
        assert rule(scale * DATA)[0] == pytest.approx(scale * rule(DATA)[0], rel=1e-12)
        np.testing.assert_allclose(
            rule(np.column_stack([DATA, scale * DATA]))[1], scale * rule(np.column_stack([DATA, DATA]))[0]
        )


@pytest.mark.parametrize(
    "name",
    [
        "uniform",
        "triangular",
        "epanechnikov",
        "biweight",
        "triweight",
        "tricube",
        "cosine",
        "gaussian",
        "laplace",
    ],
)
def test_e32_one_meaning_of_the_bandwidth(name):
    # numerically: the standard deviation of the density of one sample
    side = np.linspace(-40, 40, 80_001)
    p = lb.density(side[:, None], [[0.0]], lb.KERNELS[name](1.5))
    std = np.sqrt((p * side**2).sum() / p.sum())
    assert lb.convert_bandwidth(1.5, name, "std") == pytest.approx(std, rel=1e-3)
    if name == "epanechnikov":
        assert std == pytest.approx(1.5 / np.sqrt(5), rel=1e-4)
    if lb.PROFILES[name].support == 1.0:  # the bandwidth is the radius: weight just inside, none just outside
        assert (
            lb.KERNELS[name](1.5)([[0.0]], [[1.4999], [1.5001]])[0, 1]
            == 0
            < lb.KERNELS[name](1.5)([[0.0]], [[1.4999]])[0, 0]
        )


def test_e34_sample_weight_is_taken_everywhere():
    x, y = np.arange(5.0)[:, None], np.array([0.0, 1.0, 4.0, 9.0, 16.0])
    weight = [1, 3, 0, 2, 1]
    assert lb.local_mean([[0.0]], x, y, lb.knn(4), sample_weight=weight)[0] == pytest.approx(3 / 4)
    assert lb.local_mean([[0.0]], x, y, lb.knn(6), sample_weight=weight)[0] == pytest.approx((3 + 18) / 6)
    model = lb.LocalMeanRegressor("knn", n_neighbors=4).fit(x, y, sample_weight=weight)
    assert model.predict([[0.0]])[0] == pytest.approx(3 / 4)
    for name in ("local_mean", "local_weights", "explain", "smoother_matrix", "degrees_of_freedom", "leave_one_out",
                 "select_bandwidth", "log_density", "density"):  # fmt: skip
        assert "sample_weight" in inspect.signature(getattr(lb, name)).parameters


def test_e35_the_search_is_bounded_positive_and_ends():
    rng = np.random.default_rng(0)
    for n, noise in ((5, 0.0), (30, 0.0), (30, 5.0), (1000, 0.5)):
        x = rng.uniform(size=(n, 1))
        y = np.where(noise, noise * rng.normal(size=n), x[:, 0])
        for method in ("loo", "gcv", "aicc"):
            chosen = lb.select_bandwidth(x, y, method=method, n_grid=8)
            assert (chosen.bandwidths > 0).all()
            assert len(chosen.bandwidths) <= 8 + 40
            assert chosen.bandwidths[0] <= chosen.bandwidth <= chosen.bandwidths[-1]


@pytest.mark.parametrize("side", ["query", "sample"])
def test_e37_adaptive_bandwidths_of_duplicates_and_per_column(side):
    x = np.array([[0.0], [0.0], [0.0], [1.0], [5.0]])
    y = np.array([1.0, 2.0, 3.0, 10.0, 20.0])
    for profile in (lb.gaussian, lb.triangular, lb.epanechnikov, lb.uniform):
        for k in (1, 2):
            kernel = profile(lb.knn_bandwidth(k, side=side))
            answer = lb.local_mean([[0.0], [0.5]], x, y, kernel, empty="raise")
            if side == "query":
                assert answer[0] == pytest.approx(2.0)  # the three at the query, by a floored bandwidth
            assert ((answer >= 1) & (answer <= 20)).all()
    all_equal = lb.local_mean(
        [[3.0]], np.full((4, 1), 3.0), [1.0, 2.0, 3.0, 6.0], lb.tricube(lb.knn_bandwidth(2, side=side))
    )
    assert all_equal[0] == 3.0
    columns = lb.local_weights([[0.0, 0.0]], [[1.0, 0.0], [0.0, 10.0]], lb.gaussian([1.0, 10.0]))
    np.testing.assert_allclose(columns, [[0.5, 0.5]])


@pytest.mark.parametrize("name", TWINNED)
def test_e40_the_engine_heeds_every_option_that_the_twin_does(name):
    # shifted, so that an option that is ignored (a period, columns, a shape) cannot hide behind a symmetry
    rng = np.random.default_rng(2)
    m, n = 23, 41
    q = np.column_stack([rng.uniform(-3, 3, m), rng.uniform(-3, 3, m), rng.integers(0, 4, m)])
    x = np.column_stack([rng.uniform(-3, 3, n), rng.uniform(-3, 3, n), rng.integers(0, 4, n)])
    close(TWINNED[name](q, x), twin_weights(TWINNED[name], q, x))


def test_e40_angles():
    for kernel in (lb.von_mises(100.0), lb.gaussian(0.1, metric=lb.periodic(2 * np.pi))):
        x = np.array([[-3.1], [3.1]])
        at_pi, at_zero = np.log(kernel([[np.pi], [0.0]], x).sum(1) + 1e-300)
        assert at_pi > at_zero + 100
        for turn in (0.3, 2.0, 4.0, -9.0):
            q = np.array([[0.4], [3.0], [-2.5]])
            np.testing.assert_allclose(kernel(q + turn, x + turn), kernel(q, x), rtol=1e-9, atol=1e-300)
    assert lb.log_density([[np.pi]], [[-3.1], [3.1]], lb.von_mises(100.0)) > lb.log_density(
        [[0.0]], [[-3.1], [3.1]], lb.von_mises(100.0)
    )


def test_e40_haversine():
    # Berlin to Sydney is 16,090 km; across the date line is near
    places = np.radians([[52.52, 13.405], [-33.87, 151.21], [0.0, 179.9], [0.0, -179.9]])
    d = -lb.laplace(metric="haversine").log(places) * 6371
    assert d[0, 1] == pytest.approx(16_090, rel=0.01)
    assert d[2, 3] == pytest.approx(22.24, rel=0.01)
    assert (d.diagonal() == 0).all()
