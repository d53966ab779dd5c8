r"""The exponential of a number that is not above 0, fast enough to leave the distance the dearest part of a weight.

A call of the system's ``exp`` for every pair keeps a loop from being turned into vectors. This one is a few
multiplications and additions, which the compiler does for eight or four samples at a time, on any processor:

.. math:: e^x = 2^k\, e^r, \qquad k = \mathrm{round}(x / \ln 2), \qquad r = x - k \ln 2, \quad |r| \le \tfrac12 \ln 2.

:math:`e^r` is its Taylor polynomial of degree 13 (the first term left out is below 5e-18), :math:`\ln 2` is
subtracted in two parts so that r keeps all its digits, and :math:`2^k` is written into the exponent bits. The result
is within 1 unit in the last place; below ``exp(-708)``, where only denormal numbers are left, it is 0.
(Muller et al. 2018, *Handbook of Floating-Point Arithmetic*, section 10.)
"""

from __future__ import annotations

import numpy as np
from numba import njit

_LOG2_E = 1.4426950408889634  # 1 / ln 2
_LN2_HIGH = 0.6931471803691238  # ln 2 to 33 bits: k times it is exact
_LN2_LOW = 1.9082149292705877e-10

#: Below it the exponential is 0.
SMALLEST = -708.0


# Rounding must stay as it is written: "reassoc" would delete the subtraction of k ln 2 in two parts.
@njit(cache=True, error_model="numpy", nogil=True, fastmath={"contract"})
def exp_negative(x):
    """e^x for x <= 0 (or NaN, which stays NaN)."""
    k = np.rint(x * _LOG2_E)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
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
    power = np.int64((np.int64(k) + np.int64(1023)) << np.int64(52)).view(np.float64)
    return 0.0 if x < SMALLEST else p * power
