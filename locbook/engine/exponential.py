r"""The exponential, fast enough to leave the distance the dearest part of a weight.

A call of the system's ``exp`` for every pair keeps a loop from being turned into vectors. These are a few
multiplications and additions, which the compiler does for eight or sixteen samples at a time:

.. math:: 2^t = 2^k\, 2^f, \qquad k = \mathrm{round}(t), \qquad f = t - k, \quad |f| \le \tfrac12 .

:math:`2^f` is its Taylor polynomial, of degree 13 (7 in float32; the first term left out is below 5e-18, 6e-9), and
:math:`2^k` is written into the exponent bits. For :math:`e^x` the same with :math:`r = x - k \ln 2`, where
:math:`\ln 2` is subtracted in two parts so that r keeps all its digits. The results are within 1 unit in the last
place; where only denormal numbers are left they are 0.
(Muller et al. 2018, *Handbook of Floating-Point Arithmetic*, section 10.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

_LOG2_E = 1.4426950408889634  # 1 / ln 2
_LN2_HIGH = 0.6931471803691238  # ln 2 to 33 bits: k times it is exact
_LN2_LOW = 1.9082149292705877e-10

#: Below it the exponential is 0.
SMALLEST = -708.0


class Powers(NamedTuple):
    """What 2^t needs in one float type."""

    coefficients: tuple[float, ...]
    rounder: float
    mantissa_bits: int
    smallest: float


def _taylor(degree: int) -> tuple[float, ...]:
    return tuple(math.log(2.0) ** k / math.factorial(k) for k in range(degree + 1))


#: By the bytes of a number.
POWERS = {4: Powers(_taylor(7), 1.5 * 2.0**23, 23, -125.0), 8: Powers(_taylor(13), 1.5 * 2.0**52, 52, -1021.0)}


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract"})
def _taylor_of_exp(r):
    p = 1.0 / 6227020800.0  # 1/13!, then Horner's rule
    p = p * r + 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p


@njit(cache=True, error_model="numpy", nogil=True)
def _power_of_two(k):
    """2^k, written into the exponent bits, for a whole number k between -1022 and 1023."""
    return np.int64((np.int64(k) + np.int64(1023)) << np.int64(52)).view(np.float64)


# Rounding must stay as it is written: "reassoc" would delete the subtraction of k ln 2 in two parts.
@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract"})
def exp_negative(x):
    """e^x for x <= 0 (or NaN, which stays NaN)."""
    k = np.rint(x * _LOG2_E)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    return 0.0 if x < SMALLEST else _taylor_of_exp(r) * _power_of_two(k)


@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract"})
def exp(x):
    """e^x for any x, denormal results too; a user's function gets it for ``math.exp`` and ``numpy.exp``."""
    x = min(max(x, -750.0), 710.0) if x == x else x
    k = np.rint(x * _LOG2_E)
    half = np.floor(0.5 * k)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    return _taylor_of_exp(r) * _power_of_two(half) * _power_of_two(k - half)
