"""Each profile is its formula, and its facts are the integrals that they claim to be."""

import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

import locbook as lb
from locbook.engine import reference
from locbook.kernels.profiles import get_profile

#: (name, shape) -> the formula, K as a function of u, written once more and apart from the library.
FORMULAS = {
    ("uniform", 0.0): lambda u: 1.0 * (u <= 1),
    ("triangular", 0.0): lambda u: max(1 - u, 0.0),
    ("epanechnikov", 0.0): lambda u: max(1 - u**2, 0.0),
    ("biweight", 0.0): lambda u: max(1 - u**2, 0.0) ** 2,
    ("triweight", 0.0): lambda u: max(1 - u**2, 0.0) ** 3,
    ("tricube", 0.0): lambda u: max(1 - u**3, 0.0) ** 3,
    ("cosine", 0.0): lambda u: math.cos(math.pi * u / 2) if u < 1 else 0.0,
    ("gaussian", 0.0): lambda u: math.exp(-(u**2) / 2),
    ("laplace", 0.0): lambda u: math.exp(-u),
    ("cauchy", 0.0): lambda u: 1 / (1 + u**2),
    ("student_t", 0.7): lambda u: (1 + u**2 / 0.7) ** -0.85,
    ("student_t", 3.0): lambda u: (1 + u**2 / 3) ** -2,
    ("student_t", 12.0): lambda u: (1 + u**2 / 12) ** -6.5,
    ("rational_quadratic", 0.6): lambda u: (1 + u**2 / 1.2) ** -0.6,
    ("rational_quadratic", 1.0): lambda u: (1 + u**2 / 2) ** -1,
    ("rational_quadratic", 7.5): lambda u: (1 + u**2 / 15) ** -7.5,
}
CASES = list(FORMULAS)
COMPACT = ["uniform", "triangular", "epanechnikov", "biweight", "triweight", "tricube", "cosine"]
EXPONENTIAL = ["gaussian", "laplace"]


def tail_power(name, shape):
    """The p of K ~ u^-p: as a density on R^d it needs p > d. None for tails that are no power."""
    return {"cauchy": 2.0, "student_t": shape + 1, "rational_quadratic": 2 * shape}.get(name)


def sphere(d):
    return 2 * math.pi ** (d / 2) / math.gamma(d / 2)


def integral(name, shape, d, extra=0, power=1):
    """Integral over R^d of |x|^extra K(x)^power, by quadrature along the radius."""

    def integrand(u):
        return u ** (d - 1 + extra) * FORMULAS[name, shape](u) ** power

    if name in COMPACT:
        value = quad(integrand, 0, 1, epsabs=0, epsrel=1e-11)[0]
    elif name in EXPONENTIAL:
        value = sum(quad(integrand, *ends, epsabs=1e-300, epsrel=1e-11)[0] for ends in ((0, 8), (8, 90)))
    else:  # u = tan(t) makes the tail a finite interval
        value = quad(
            lambda t: integrand(math.tan(t)) / math.cos(t) ** 2,
            0,
            math.pi / 2,
            epsabs=0,
            epsrel=1e-9,
            limit=400,
        )[0]
    return sphere(d) * value


def test_the_table_above_knows_every_profile():
    assert {name for name, _ in CASES} == set(lb.PROFILES)
    assert [lb.PROFILES[name].code for name in lb.PROFILES] == list(range(len(lb.PROFILES)))


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_the_formula(name, shape):
    u = np.concatenate([[0.0], np.geomspace(1e-8, 30, 60), [0.5, 1.0, 1.0 + 1e-12]])
    expected = [FORMULAS[name, shape](v) for v in u]
    profile = lb.PROFILES[name]
    np.testing.assert_allclose([profile(v * v, shape) for v in u], expected, rtol=1e-12, atol=1e-15)
    # the twin, and the compiled row of the engine
    shapes = {profile.parameter: shape} if profile.parameter else {}
    kernel = lb.get_kernel(name)(2.0, **shapes)
    np.testing.assert_allclose(reference.profile_weights(kernel, u), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(kernel([[0.0]], 2.0 * u[:, None])[0], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("d", [1, 2, 3, 8])
@pytest.mark.parametrize(("name", "shape"), CASES)
def test_normalizer_roughness_and_second_moment_are_their_integrals(name, shape, d):
    profile, tail = lb.PROFILES[name], tail_power(name, shape)
    if tail is not None and tail <= d:
        for fact in (profile.log_normalizer, profile.roughness):
            with pytest.raises(ValueError, match=f"'{name}'.*no normalising constant in dimension {d}"):
                fact(d, shape)
        assert profile.second_moment(d, shape) == math.inf
        return
    mass = integral(name, shape, d)
    assert math.exp(profile.log_normalizer(d, shape)) == pytest.approx(1 / mass, rel=1e-7)
    roughness = integral(name, shape, d, power=2) / mass**2
    assert profile.roughness(d, shape) == pytest.approx(roughness, rel=1e-7)
    if tail is not None and tail <= d + 2:
        assert profile.second_moment(d, shape) == math.inf
    else:
        spread = integral(name, shape, d, extra=2) / (d * mass)
        assert profile.second_moment(d, shape) == pytest.approx(spread, rel=1e-7)


@pytest.mark.parametrize(
    ("name", "roughness", "variance"),
    [
        ("uniform", 1 / 2, 1 / 3),
        ("triangular", 2 / 3, 1 / 6),
        ("epanechnikov", 3 / 5, 1 / 5),
        ("biweight", 5 / 7, 1 / 7),
        ("triweight", 350 / 429, 1 / 9),
        ("tricube", 175 / 247, 35 / 243),
        ("cosine", math.pi**2 / 16, 1 - 8 / math.pi**2),
        ("gaussian", 1 / (2 * math.sqrt(math.pi)), 1.0),
        ("laplace", 1 / 4, 2.0),
    ],
)
def test_constants_of_the_textbooks(name, roughness, variance):
    """Wand & Jones (1995), table 2.1, and the closed forms of the others."""
    assert lb.PROFILES[name].roughness() == pytest.approx(roughness, rel=1e-12)
    assert lb.PROFILES[name].second_moment() == pytest.approx(variance, rel=1e-12)


def test_constants_in_the_dimension_of_an_image():
    """784 columns: the moments themselves are beyond all floats, their logarithms are not."""
    d = 784
    half = mpmath.mpf(d) / 2
    log_sphere = mpmath.log(2) + half * mpmath.log(mpmath.pi) - mpmath.loggamma(half)
    ball = float(mpmath.loggamma(half + 1) - half * mpmath.log(mpmath.pi))
    assert lb.PROFILES["gaussian"].log_normalizer(d) == pytest.approx(
        -d / 2 * math.log(2 * math.pi), rel=1e-13
    )
    assert lb.PROFILES["uniform"].log_normalizer(d) == pytest.approx(ball, rel=1e-13)
    laplace = float(-log_sphere - mpmath.loggamma(d))
    assert lb.PROFILES["laplace"].log_normalizer(d) == pytest.approx(laplace, rel=1e-13)
    moment = mpmath.quad(lambda r: r ** (d - 1) * mpmath.cos(mpmath.pi * r / 2), [0, 0.9, 0.97, 0.99, 1])
    cosine = float(-log_sphere - mpmath.log(moment))
    assert lb.PROFILES["cosine"].log_normalizer(d) == pytest.approx(cosine, rel=1e-13)
    assert lb.PROFILES["gaussian"].second_moment(d) == pytest.approx(1.0, rel=1e-12)
    assert lb.PROFILES["laplace"].second_moment(d) == pytest.approx(d + 1, rel=1e-12)
    assert lb.PROFILES["gaussian"].roughness(d) == pytest.approx((4 * math.pi) ** (-d / 2), rel=1e-10)
    assert lb.PROFILES["uniform"].roughness(d) == math.inf


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_support(name, shape):
    profile = lb.PROFILES[name]
    u = np.concatenate([[0.0], np.linspace(1e-6, 1 - 1e-6, 50)])
    assert profile(0.0, shape) == 1.0
    if name in COMPACT:
        assert profile.support == 1.0
        assert min(profile(v * v, shape) for v in u) > 0
        assert profile(1.0, shape) == (1.0 if name == "uniform" else 0.0)
        beyond = [math.nextafter(1.0, 2), 1.1, 1e3, 1e300, math.inf]
        assert [profile(s, shape) for s in beyond] == [0.0] * len(beyond)
    else:
        assert profile.support == math.inf
        assert profile(100.0, shape) > 0
        assert profile(math.inf, shape) == 0.0  # pairs that have no distance


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_a_weight_never_rises_with_the_distance(name, shape):
    s = np.concatenate([[0.0], np.geomspace(1e-12, 1e6, 2000)])
    weights = np.array([lb.PROFILES[name](v, shape) for v in s])
    assert (np.diff(weights) <= 0).all()


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_exponential_profiles_keep_their_logarithm_far_away(name):
    profile = lb.PROFILES[name]
    assert profile.exponential
    assert profile.logarithmic
    assert profile.function(1e300, 0.0) == (-0.5e300 if name == "gaussian" else -1e150)
    others = [p for p in lb.PROFILES.values() if p.name not in EXPONENTIAL]
    assert not any(p.exponential for p in others)


def test_a_student_t_with_one_degree_of_freedom_is_the_cauchy_kernel():
    s = np.geomspace(1e-6, 1e6, 50)
    cauchy, student = lb.PROFILES["cauchy"], lb.PROFILES["student_t"]
    np.testing.assert_allclose([student(v, 1.0) for v in s], [cauchy(v) for v in s], rtol=1e-13)
    assert student.log_normalizer(1, 1.0) == pytest.approx(-math.log(math.pi), rel=1e-13)


def shadow_error(kernel, shadow):
    """How far g'(s) / -k(s) is from a constant, g' by central differences inside the supports."""
    s = np.linspace(0.06, 0.93, 40)
    step = 1e-5
    slope = np.array([(shadow(v + step) - shadow(v - step)) / (2 * step) for v in s])
    ratio = -slope / np.array([kernel(v) for v in s])
    largest = np.abs(ratio).max()
    return np.ptp(ratio) / largest if largest > 0 else math.inf


@pytest.mark.parametrize("name", [name for name in lb.PROFILES if not lb.PROFILES[name].parameter])
def test_the_shadow_is_the_one_profile_whose_slope_is_the_kernel(name):
    profile = lb.PROFILES[name]
    candidates = [p for p in lb.PROFILES.values() if p.parameter is None and p.support == profile.support]
    assert [p.name for p in candidates if shadow_error(profile, p) < 1e-6] == (
        [profile.shadow] if profile.shadow else []
    )


def test_the_chain_of_shadows():
    """Uniform -> Epanechnikov -> biweight -> triweight, and the Gaussian is its own (Cheng 1995)."""
    shadows = {name: p.shadow for name, p in lb.PROFILES.items() if p.shadow}
    assert shadows == {
        "uniform": "epanechnikov",
        "epanechnikov": "biweight",
        "biweight": "triweight",
        "gaussian": "gaussian",
    }


@pytest.mark.parametrize("dimension", [0, -1, 1.0, 2.5, True, "2", None, math.nan])
@pytest.mark.parametrize("fact", ["log_normalizer", "second_moment", "roughness"])
def test_a_dimension_is_a_positive_integer(fact, dimension):
    with pytest.raises((TypeError, ValueError), match="dimension must be"):
        getattr(lb.PROFILES["uniform"], fact)(dimension)


@pytest.mark.parametrize("name", ["Gaussian", "", None, 3, ["gaussian"]])
def test_an_unknown_profile_is_named_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"profile must be one of uniform, .*got"):
        get_profile(name)


# -- constants of kernels: the bandwidth and the metric counted in -------------------------------------------------


@pytest.mark.parametrize(
    "bandwidth", [0.3, [0.5, 2.0], [[1.0, 0.4], [-0.2, 0.7]]], ids=["number", "vector", "matrix"]
)
@pytest.mark.parametrize("name", ["gaussian", "epanechnikov", "uniform"])
def test_a_kernel_times_its_constant_is_a_density(name, bandwidth):
    kernel = lb.get_kernel(name)(bandwidth)
    radius = 14.0 if name == "gaussian" else 3.0
    axis = np.linspace(-radius, radius, 400)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    mass = kernel(np.zeros((1, 2)), grid).sum() * (axis[1] - axis[0]) ** 2
    assert mass * math.exp(kernel.log_normalizer(2)) == pytest.approx(
        1.0, rel=1e-6 if name == "gaussian" else 0.02
    )


def test_the_constant_of_a_mahalanobis_gaussian_is_the_normal_density():
    from scipy.stats import multivariate_normal

    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    kernel = lb.gaussian(0.7, metric=lb.mahalanobis(covariance))
    x = np.array([[0.4, -1.1], [0.0, 0.0]])
    ours = kernel(np.zeros((1, 2)), x)[0] * math.exp(kernel.log_normalizer(2))
    np.testing.assert_allclose(ours, multivariate_normal([0, 0], 0.49 * covariance).pdf(x), rtol=1e-12)


def test_the_constant_of_von_mises_is_the_circular_density():
    from scipy.stats import vonmises

    kernel = lb.von_mises(2.5)
    angles = np.linspace(-3, 3, 7)
    ours = kernel([[0.4]], angles[:, None])[0] * math.exp(kernel.log_normalizer(1))
    np.testing.assert_allclose(ours, vonmises(2.5, loc=0.4).pdf(angles), rtol=1e-12)
    assert kernel.log_normalizer(3) == pytest.approx(3 * kernel.log_normalizer(1), rel=1e-12)


def test_the_columns_looked_at_are_the_dimension():
    assert lb.gaussian(2.0, on=[1]).log_normalizer(5) == pytest.approx(
        lb.gaussian(2.0).log_normalizer(1), rel=1e-14
    )


@pytest.mark.parametrize(
    ("kernel", "dimension", "message"),
    [
        (lb.cauchy(), 2, "no normalising constant in dimension 2"),
        (lb.student_t(nu=2.0), 3, "student_t' with nu=2.0 has no normalising"),
        (lb.gaussian(metric="manhattan"), 2, "metric 'manhattan'"),
        (lb.gaussian(lb.per_query([1.0])), 1, "varying bandwidth"),
        (lb.gaussian([1.0, 2.0]), 3, "made for 2 columns, not for 3"),
        (lb.gaussian(np.eye(2)), 1, "made for 2 columns, not for 1"),
        (lb.gaussian(metric=lb.mahalanobis(np.eye(3))), 2, "made for 3 columns, not for 2"),
        (lb.Kernel(profile=math.exp), 1, "user's profile is not known"),
        (lb.knn(3), 1, "not a density"),
        (lb.softmax(), 1, "not a density"),
        (lb.gaussian() + lb.gaussian(), 1, "not a density"),
        (lb.gaussian().hollow(), 1, "not a density"),
    ],
    ids=repr,
)
def test_kernels_that_are_no_density_say_so(kernel, dimension, message):
    with pytest.raises(ValueError, match=message):
        kernel.log_normalizer(dimension)
