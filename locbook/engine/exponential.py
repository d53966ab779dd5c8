r"""The exponential, fast enough to leave the distance the dearest part of a weight.

A call of the system's ``exp`` for every pair keeps a loop from being turned into vectors. These are a few
multiplications and additions: :func:`exp_negative` and :func:`exp` in plain Numba, where the compiler does eight or
sixteen samples at a time, and 2^t for the vector kernels, whose numbers stand here and whose steps are
:meth:`locbook.engine.vectors.Vectors.exp2`.

.. math:: 2^t = 2^k\, 2^f, \qquad k = \mathrm{round}(t), \qquad f = t - k, \quad |f| \le \tfrac12 .

:math:`2^f` is a polynomial of degree 11 (6 in float32), the one that meets it at the Chebyshev nodes, off by 2e-17
(3e-9) at most, and :math:`2^k` is written into the exponent bits. For :math:`e^x` the same with
:math:`r = x - k \ln 2`, where :math:`\ln 2` is subtracted in two parts so that r keeps all its digits. The results are
within 1 unit in the last place (1.25 without fused multiply-add); where only denormal numbers are left they are 0, but
for :func:`exp`, which multiplies by 2^k in two steps to reach these. The
coefficients are computed again, to 60 digits, by ``tests/engine/test_exponential.py``.
(Muller et al. 2018, *Handbook of Floating-Point Arithmetic*, section 10.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .parts import inner, jit

_LOG2_E = 1.4426950408889634  # 1 / ln 2
_LN2_HIGH = 0.6931471803691238  # ln 2 to 33 bits: k times it is exact
_LN2_LOW = 1.9082149292705877e-10

#: Below it the exponential is 0.
SMALLEST = -708.0


class Powers(NamedTuple):
    """What 2^t needs in one float type.

    ``rounder`` is so large that its last bit is worth 1; with 1.5 in front a negative k keeps it in that range. From
    ``smallest`` on the result is no denormal number.
    """

    coefficients: tuple[float, ...]
    rounder: float
    mantissa_bits: int
    smallest: float


_POWERS_32 = (
    *(1.0, 0.6931472067028326, 0.24022650922288757, 0.05550327226670302, 0.009618056678524637),
    *(0.0013400428177615838, 0.0001546144469856913),
)
_POWERS_64 = (
    *(1.0, 0.6931471805599453, 0.24022650695910158, 0.055504108664821625, 0.009618129107587256),
    *(0.001333355814640647, 0.00015403530463724353, 1.5252733841556773e-05, 1.3215432535912375e-06),
    *(1.0178057087733941e-07, 7.074194297288521e-09, 4.4558179083360645e-10),
)
#: By the bytes of a number.
POWERS = {
    4: Powers(_POWERS_32, 1.5 * 2.0**23, 23, -125.0),
    8: Powers(_POWERS_64, 1.5 * 2.0**52, 52, -1021.0),
}
#: The same for e^r, r between half of -ln 2 and ln 2 (and a ten-thousandth more).
EXPONENTIALS = (
    *(1.0, 1.0, 0.5000000000000019, 0.1666666666666668, 0.04166666666648795, 0.008333333333319589),
    *(0.0013888888952352863, 0.00019841269890076403, 2.4801485441561313e-05, 2.755724088722987e-06),
    *(2.763265472252779e-07, 2.5110049204818658e-08),
)
EXPONENTIALS_32 = (
    *(1.0, 1.000000037738871, 0.5000000047146057, 0.16666415414043034),
    *(0.04166635277111453, 0.008375134774469875, 0.00139411188956441),
)


@inner(fastmath={"contract"})
def _small_exp(r):
    p = EXPONENTIALS[11]  # Horner's rule
    p = p * r + EXPONENTIALS[10]
    p = p * r + EXPONENTIALS[9]
    p = p * r + EXPONENTIALS[8]
    p = p * r + EXPONENTIALS[7]
    p = p * r + EXPONENTIALS[6]
    p = p * r + EXPONENTIALS[5]
    p = p * r + EXPONENTIALS[4]
    p = p * r + EXPONENTIALS[3]
    p = p * r + EXPONENTIALS[2]
    p = p * r + EXPONENTIALS[1]
    return p * r + EXPONENTIALS[0]


#: Adding it rounds to a whole number, which then stands in the last bits (:class:`Powers`).
_ROUNDER = POWERS[8].rounder
_LAST_BITS = np.float64(_ROUNDER).view(np.int64)


@inner
def _power_of_two(k):
    """2^k, written into the exponent bits, for a whole number k between -1022 and 1023."""
    return np.int64((k + np.int64(1023)) << np.int64(52)).view(np.float64)


# Rounding must stay as it is written: "reassoc" would delete the subtraction of k ln 2 in two parts.
@jit(fastmath={"contract"})
def exp_negative(x):
    """e^x for x <= 0 (or NaN, which stays NaN)."""
    rounded = x * _LOG2_E + _ROUNDER
    k = rounded - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    power = _power_of_two(np.float64(rounded).view(np.int64) - _LAST_BITS)
    return 0.0 if x < SMALLEST else _small_exp(r) * power


@jit(fastmath={"contract"})
def exp(x):
    """e^x for any x, denormal results too; a user's function gets it for ``math.exp`` and ``numpy.exp``."""
    x = -750.0 if x < -750.0 else 710.0 if x > 710.0 else x  # NaN stays
    rounded = x * _LOG2_E + _ROUNDER
    k = rounded - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    whole = np.float64(rounded).view(np.int64) - _LAST_BITS
    half = whole >> np.int64(1)
    return _small_exp(r) * _power_of_two(half) * _power_of_two(whole - half)


_LOG2_E_32, _ZERO = np.float32(_LOG2_E), np.float32(0.0)
_ROUNDER_32 = np.float32(POWERS[4].rounder)
_LAST_BITS_32 = _ROUNDER_32.view(np.int32)
#: From here to there the power of two is no denormal number, and none is beyond all floats.
_LEAST, _MOST = np.float32(-87.0), np.float32(89.0)
_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440054690583e-4)
_COEFFICIENTS_32 = tuple(np.float32(c) for c in EXPONENTIALS_32)


@jit(fastmath={"contract"})
def exp_32(x):
    """The same in float32, within 2 units in the last place from -87 to 88.3; below it 0, and inf beyond."""
    x = _MOST if x > _MOST else x
    rounded = x * _LOG2_E_32 + _ROUNDER_32
    k = rounded - _ROUNDER_32
    r = (x - k * _LN2_HIGH_32) - k * _LN2_LOW_32
    c = _COEFFICIENTS_32
    small = c[0] + r * (c[1] + r * (c[2] + r * (c[3] + r * (c[4] + r * (c[5] + r * c[6])))))
    bits = np.float32(rounded).view(np.int32) - _LAST_BITS_32
    power = np.int32((bits + np.int32(127)) << np.int32(23)).view(np.float32)
    return _ZERO if x < _LEAST else small * power
