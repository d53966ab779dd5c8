"""The density: it integrates to one, in any dimension where it can, and its logarithm does not underflow."""

import numpy as np
import pytest

import locbook as lb

X = np.random.default_rng(0).normal(size=(40, 2))


@pytest.mark.parametrize("name", [name for name in lb.PROFILES if name not in ("cauchy",)])
def test_mass_one_on_the_plane(name):
    options = {"student_t": {"nu": 9.0}, "rational_quadratic": {"alpha": 6.0}}.get(name, {})
    kernel = lb.KERNELS[name]([0.9, 0.5], **options)
    side = np.linspace(-14, 14, 561)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    mass = lb.density(grid, X[:5], kernel, sample_weight=[1, 2, 3, 4, 5]).sum() * (side[1] - side[0]) ** 2
    assert mass == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "student_t", "rational_quadratic", "epanechnikov"])
def test_mass_one_on_the_line(name):
    side = np.linspace(-60, 60, 40_001)[:, None]
    options = {"student_t": {"nu": 3.0}, "rational_quadratic": {"alpha": 2.0}}.get(name, {})
    mass = lb.density(side, X[:, :1], lb.KERNELS[name](0.7, **options)).sum() * 120 / 40_000
    assert mass == pytest.approx(1.0, abs=1e-4)
    circle = np.linspace(-np.pi, np.pi, 2001)[:-1, None]
    assert lb.density(circle, X[:, :1], lb.von_mises(4.0)).mean() * 2 * np.pi == pytest.approx(1.0)


def test_far_away():
    far = lb.log_density([[1000.0, 0.0]], [[0.0, 0.0]], lb.gaussian(1.0))
    assert far[0] == pytest.approx(-500_000 - np.log(2 * np.pi))
    assert lb.density([[1000.0, 0.0]], [[0.0, 0.0]], lb.gaussian(1.0))[0] == 0.0
    assert lb.log_density([[3.0]], [[0.0]], lb.uniform(1.0))[0] == -np.inf
    single = lb.log_density(np.float32([[40.0]]), np.float32([[0.0]]), lb.gaussian(1.0))
    assert single.dtype == np.float32
    assert single[0] == pytest.approx(-800.9189, abs=1e-3)


def test_one_sample_more_columns_than_samples_and_a_constant_column():
    assert lb.density([[1.0]], [[1.0]], lb.gaussian(0.5))[0] == pytest.approx(1 / (0.5 * np.sqrt(2 * np.pi)))
    wide = lb.log_density(np.zeros((1, 9)), np.zeros((2, 9)), lb.gaussian(1.0))
    assert wide[0] == pytest.approx(-4.5 * np.log(2 * np.pi))
    collinear = lb.log_density([[1.0, 2.0]], [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]], lb.gaussian([1.0, 2.0]))
    assert np.isfinite(collinear).all()


def test_bandwidths_of_all_kinds_mean_the_same():
    grid = X[:7] + 0.1
    expected = lb.log_density(grid, X, lb.gaussian(0.4))
    for ruler in ([0.4, 0.4], 0.4 * np.eye(2)):
        np.testing.assert_allclose(lb.log_density(grid, X, lb.gaussian(ruler)), expected, rtol=1e-13)
    covariance = np.array([[0.5, 0.2], [0.2, 0.3]])
    np.testing.assert_allclose(
        lb.log_density(grid, X, lb.gaussian(metric=lb.mahalanobis(covariance))),
        lb.log_density(grid, X, lb.gaussian(np.linalg.cholesky(covariance))), rtol=1e-12,
    )  # fmt: skip
    np.testing.assert_allclose(  # a marginal of the columns looked at
        lb.log_density(grid, X, lb.gaussian(0.4, on=1)),
        lb.log_density(grid[:, 1:], X[:, 1:], lb.gaussian(0.4)),
    )
