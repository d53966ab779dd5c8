r"""Profiles: how a weight falls with the scaled distance.

A profile is a scalar function of :math:`s = u^2`, the *squared* distance in bandwidths,
:math:`u = d(x, x') / h`. The square saves the root where only :math:`u^2` is needed. Each profile is one jitted
function with its formula; beside it stand its facts: support, normalising constant, roughness, second moment,
shadow. Profiles of exponential type, and the two whose tails can underflow, return :math:`\log K`, so that a query
a thousand bandwidths away is still weighed rightly.

Constants follow from the radial moments :math:`M_j(K) = \int_0^\infty r^j K(r)\,dr`: with the area of the unit
sphere :math:`\omega_d = 2\pi^{d/2}/\Gamma(d/2)`,

.. math::
    c_{K,d} = \frac{1}{\omega_d M_{d-1}(K)}, \qquad
    \mu_2 = \frac{M_{d+1}(K)}{d\,M_{d-1}(K)}, \qquad
    R = c_{K,d}^2\,\omega_d\,M_{d-1}(K^2).

They are computed as logarithms: in 784 dimensions a Gaussian's moment is beyond all floats.

Sources: Wand & Jones (1995), *Kernel Smoothing*, section 4.3; Cheng (1995) for the shadows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numba import njit

from .._validation import check_integer
from .logarithm import log1p

_JIT = {"cache": True, "error_model": "numpy", "nogil": True, "inline": "never"}


@njit(**_JIT)
def uniform(s, a):
    """K = 1[u <= 1]; the ball of radius h (radius neighbours)."""
    return 1.0 if s <= 1.0 else 0.0


@njit(**_JIT)
def uniform_slope(s, a):
    """dK/ds = 0: flat on both sides of the edge."""
    return 0.0


@njit(**_JIT)
def triangular(s, a):
    """K = (1 - u)_+."""
    return 1.0 - math.sqrt(s) if s < 1.0 else 0.0


@njit(**_JIT)
def triangular_slope(s, a):
    """dK/ds = -1 / (2u)."""
    return -0.5 / math.sqrt(s) if s < 1.0 else 0.0


@njit(**_JIT)
def epanechnikov(s, a):
    """K = (1 - u^2)_+ (Epanechnikov 1969)."""
    return 1.0 - s if s < 1.0 else 0.0


@njit(**_JIT)
def epanechnikov_slope(s, a):
    """dK/ds = -1."""
    return -1.0 if s < 1.0 else 0.0


@njit(**_JIT)
def biweight(s, a):
    """K = (1 - u^2)_+^2, also called quartic."""
    return (1.0 - s) * (1.0 - s) if s < 1.0 else 0.0


@njit(**_JIT)
def biweight_slope(s, a):
    """dK/ds = -2 (1 - u^2)."""
    return -2.0 * (1.0 - s) if s < 1.0 else 0.0


@njit(**_JIT)
def triweight(s, a):
    """K = (1 - u^2)_+^3."""
    return (1.0 - s) * (1.0 - s) * (1.0 - s) if s < 1.0 else 0.0


@njit(**_JIT)
def triweight_slope(s, a):
    """dK/ds = -3 (1 - u^2)^2."""
    return -3.0 * (1.0 - s) * (1.0 - s) if s < 1.0 else 0.0


@njit(**_JIT)
def tricube(s, a):
    """K = (1 - u^3)_+^3, the weight of lowess (Cleveland 1979)."""
    c = 1.0 - s * math.sqrt(s)
    return c * c * c if s < 1.0 else 0.0


@njit(**_JIT)
def tricube_slope(s, a):
    """dK/ds = -9/2 u (1 - u^3)^2."""
    u = math.sqrt(s)
    c = 1.0 - s * u
    return -4.5 * u * c * c if s < 1.0 else 0.0


@njit(**_JIT)
def cosine(s, a):
    """K = cos(pi u / 2) 1[u <= 1]."""
    return math.cos(0.5 * math.pi * math.sqrt(s)) if s < 1.0 else 0.0


@njit(**_JIT)
def cosine_slope(s, a):
    """dK/ds = -pi sin(pi u / 2) / (4u)."""
    u = math.sqrt(s)
    return -0.25 * math.pi * math.sin(0.5 * math.pi * u) / u if s < 1.0 else 0.0


@njit(**_JIT)
def gaussian(s, a):
    """Log K = -u^2 / 2."""
    return -0.5 * s


@njit(**_JIT)
def gaussian_slope(s, a):
    """d(log K)/ds = -1/2."""
    return -0.5


@njit(**_JIT)
def laplace(s, a):
    """Log K = -u."""
    return -math.sqrt(s)


@njit(**_JIT)
def laplace_slope(s, a):
    """d(log K)/ds = -1 / (2u)."""
    return -0.5 / math.sqrt(s)


@njit(**_JIT)
def cauchy(s, a):
    """K = 1 / (1 + u^2)."""
    return 1.0 / (1.0 + s)


@njit(**_JIT)
def cauchy_slope(s, a):
    """dK/ds = -1 / (1 + u^2)^2."""
    return -1.0 / ((1.0 + s) * (1.0 + s))


@njit(**_JIT)
def student_t(s, a):
    """Log K = -(nu + 1)/2 log(1 + u^2 / nu), with a = nu > 0."""
    return -0.5 * (a + 1.0) * log1p(s / a)


@njit(**_JIT)
def student_t_slope(s, a):
    """d(log K)/ds = -(nu + 1) / (2 (nu + u^2))."""
    return -0.5 * (a + 1.0) / (a + s)


@njit(**_JIT)
def rational_quadratic(s, a):
    """Log K = -alpha log(1 + u^2 / (2 alpha)), with a = alpha > 0."""
    return -a * log1p(s / (2.0 * a))


@njit(**_JIT)
def rational_quadratic_slope(s, a):
    """d(log K)/ds = -alpha / (2 alpha + u^2)."""
    return -a / (2.0 * a + s)


def _log_beta(a: float, b: float) -> float:
    """Logarithm of the beta function; SciPy's does not cancel, and takes long to import."""
    from scipy.special import betaln

    return float(betaln(a, b))


def _log_beta_moment(q: float, m: float, j: float) -> float:
    """Integral of r^j (1 - r^q)^m over [0, 1]."""
    return _log_beta((j + 1) / q, m + 1) - math.log(q)


_gauss_legendre = cache(np.polynomial.legendre.leggauss)


def _log_cosine_moment(j: float, power: int) -> float:
    """Gauss-Legendre: the integrand is entire, 128 nodes give full precision up to d of a thousand."""
    nodes, weights = _gauss_legendre(128)
    r = 0.5 * (nodes + 1.0)
    return math.log(0.5 * weights @ (r**j * np.cos(0.5 * np.pi * r) ** power))


def _log_power_moment(scale: float, b: float, j: float) -> float:
    """Integral of r^j (1 + r^2/scale)^-b over [0, inf); infinite when the tail is too heavy."""
    half = 0.5 * (j + 1)
    if b <= half:
        return math.inf
    return half * math.log(scale) + _log_beta(half, b - half) - math.log(2.0)


def _log_gaussian_moment(j: float, power: int) -> float:
    return math.lgamma(0.5 * (j + 1)) - 0.5 * (j + 1) * math.log(0.5 * power) - math.log(2.0)


def _log_laplace_moment(j: float, power: int) -> float:
    return math.lgamma(j + 1) - (j + 1) * math.log(power)


@dataclass(frozen=True)
class Profile:
    """A named profile and its facts.

    Parameters
    ----------
    name : str
        Name in the registry and of the constructor, e.g. ``"gaussian"``.
    code : int
        Number by which compiled code calls it.
    function : callable
        Jitted scalar function of ``(s, a)``: ``K``, or ``log K`` where ``logarithmic``.
    slope : callable
        Its derivative by ``s``, jitted, for ``s > 0``; 0 beyond the edge of a compact kernel.
    log_moment : callable
        ``log_moment(j, power, a)``, the logarithm of the integral of ``r**j * K(r)**power`` over ``[0, inf)``.
    support : float
        Radius, in bandwidths, beyond which the weight is 0; ``inf`` for full support.
    logarithmic : bool
        Whether ``function`` returns ``log K`` and is reduced in the log domain.
    exponential : bool
        Whether ``K`` is of exponential type: a far query is answered by its nearest samples.
    shadow : str or None
        The profile ``g`` with ``g'(u^2)`` proportional to ``-k(u^2)``: the mean shift of ``k`` climbs the density
        of its shadow (Cheng 1995). None where the shadow has no name here.
    parameter : str or None
        Name of the shape parameter ``a``, positive.
    """

    name: str
    code: int
    function: Callable
    slope: Callable
    log_moment: Callable[[float, int, float], float]
    support: float = 1.0
    logarithmic: bool = False
    exponential: bool = False
    shadow: str | None = None
    parameter: str | None = None

    def __call__(self, s: float, a: float = 0.0) -> float:
        """Weight ``K`` at the squared scaled distance ``s``."""
        value = self.function(float(s), float(a))
        return math.exp(value) if self.logarithmic else value

    def log_normalizer(self, dimension: int, a: float = 0.0) -> float:
        r"""Logarithm of :math:`c_{K,d}`, for which :math:`c_{K,d}\,K(\lVert x\rVert)` is a density on R^d.

        Raises
        ------
        ValueError
            If the kernel has no normalising constant in that dimension (heavy tails).
        """
        dimension = check_integer(dimension, "dimension")
        moment = self.log_moment(dimension - 1, 1, a)
        if math.isinf(moment):
            shape = f" with {self.parameter}={a}" if self.parameter else ""
            raise ValueError(
                f"kernel {self.name!r}{shape} has no normalising constant in dimension {dimension}: "
                "its tail is too heavy to be a density there"
            )
        return -_log_sphere(dimension) - moment

    def second_moment(self, dimension: int = 1, a: float = 0.0) -> float:
        """Variance of one coordinate under the normalised kernel with bandwidth 1; ``inf`` where it has none."""
        dimension = check_integer(dimension, "dimension")
        spread = self.log_moment(dimension + 1, 1, a)
        if math.isinf(spread):
            return math.inf
        return math.exp(spread - self.log_moment(dimension - 1, 1, a)) / dimension

    def roughness(self, dimension: int = 1, a: float = 0.0) -> float:
        """Integral of the squared normalised kernel with bandwidth 1, the R(K) of bandwidth theory.

        ``inf`` where no float holds it: beyond some hundred dimensions a ball of radius 1 has next to no volume.
        """
        logarithm = 2 * self.log_normalizer(dimension, a) + _log_sphere(dimension)
        logarithm += self.log_moment(dimension - 1, 2, a)
        return math.exp(logarithm) if logarithm < 709.0 else math.inf


def _log_sphere(dimension: int) -> float:
    """Logarithm of the area of the unit sphere in R^d."""
    return math.log(2.0) + 0.5 * dimension * math.log(math.pi) - math.lgamma(0.5 * dimension)


_ALL = (
    Profile("uniform", 0, uniform, uniform_slope, lambda j, p, a: -math.log(j + 1), shadow="epanechnikov"),
    Profile("triangular", 1, triangular, triangular_slope, lambda j, p, a: _log_beta_moment(1, p, j)),
    Profile(
        "epanechnikov",
        2,
        epanechnikov,
        epanechnikov_slope,
        lambda j, p, a: _log_beta_moment(2, p, j),
        shadow="biweight",
    ),
    Profile(
        "biweight",
        3,
        biweight,
        biweight_slope,
        lambda j, p, a: _log_beta_moment(2, 2 * p, j),
        shadow="triweight",
    ),
    Profile("triweight", 4, triweight, triweight_slope, lambda j, p, a: _log_beta_moment(2, 3 * p, j)),
    Profile("tricube", 5, tricube, tricube_slope, lambda j, p, a: _log_beta_moment(3, 3 * p, j)),
    Profile("cosine", 6, cosine, cosine_slope, lambda j, p, a: _log_cosine_moment(j, p)),
    Profile(
        "gaussian",
        7,
        gaussian,
        gaussian_slope,
        lambda j, p, a: _log_gaussian_moment(j, p),
        support=math.inf,
        logarithmic=True,
        exponential=True,
        shadow="gaussian",
    ),
    Profile(
        "laplace",
        8,
        laplace,
        laplace_slope,
        lambda j, p, a: _log_laplace_moment(j, p),
        support=math.inf,
        logarithmic=True,
        exponential=True,
    ),
    Profile(
        "cauchy", 9, cauchy, cauchy_slope, lambda j, p, a: _log_power_moment(1.0, p, j), support=math.inf
    ),
    Profile(
        "student_t",
        10,
        student_t,
        student_t_slope,
        lambda j, p, a: _log_power_moment(a, 0.5 * p * (a + 1), j),
        support=math.inf,
        logarithmic=True,
        parameter="nu",
    ),
    Profile(
        "rational_quadratic",
        11,
        rational_quadratic,
        rational_quadratic_slope,
        lambda j, p, a: _log_power_moment(2.0 * a, p * a, j),
        support=math.inf,
        logarithmic=True,
        parameter="alpha",
    ),
)

#: Registry of the named profiles.
PROFILES: dict[str, Profile] = {p.name: p for p in _ALL}


#: Code by which the engine asks for the score ``-s`` itself (nearest neighbours).
SCORE = len(_ALL)


def get_profile(name: str) -> Profile:
    """The profile of that name.

    Raises
    ------
    ValueError
        If there is none; the message lists the names.
    """
    try:
        return PROFILES[name]
    except (KeyError, TypeError):
        raise ValueError(f"profile must be one of {', '.join(PROFILES)}, got {name!r}") from None
