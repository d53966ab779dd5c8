r"""The logarithm, without a call that would keep a loop from being turned into vectors.

.. math:: \log y = k \ln 2 + \log m, \qquad y = 2^k m, \quad \sqrt{1/2} \le m < \sqrt 2, \qquad
    \log m = 2\,\mathrm{artanh}\,f, \quad f = \frac{m - 1}{m + 1}

by the series of artanh; :math:`\ln 2` is in two parts. Results are within 2 units in the last place.
(Muller et al. 2018, *Handbook of Floating-Point Arithmetic*, section 10.)
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_JIT = {"cache": True, "error_model": "numpy", "nogil": True, "fastmath": {"contract"}}

_SQRT_HALF = np.float64(math.sqrt(0.5)).view(np.int64)
#: The smallest number that is not denormal, and a power of two that lifts denormal ones above it.
_NORMAL, _LIFT = 2.0**-1022, 54


@njit(**_JIT)
def _log(y, rest):
    """Log y + rest, for y > 0 that is not denormal, and a small rest."""
    bits = np.float64(y).view(np.int64)
    k = (bits - _SQRT_HALF) >> np.int64(52)
    m = np.int64(bits - (k << np.int64(52))).view(np.float64)
    f = (m - 1.0) / (m + 1.0)
    z = f * f
    series = 1.0 / 23.0
    series = series * z + 1.0 / 21.0
    series = series * z + 1.0 / 19.0
    series = series * z + 1.0 / 17.0
    series = series * z + 1.0 / 15.0
    series = series * z + 1.0 / 13.0
    series = series * z + 1.0 / 11.0
    series = series * z + 1.0 / 9.0
    series = series * z + 1.0 / 7.0
    series = series * z + 1.0 / 5.0
    series = series * z + 1.0 / 3.0
    # ln 2 in two parts, the first of 33 bits
    return k * 0.6931471803691238 + (2.0 * f + (2.0 * f * z * series + (k * 1.9082149292705877e-10 + rest)))


@njit(**_JIT)
def log(x):
    """Log x; -inf at 0, NaN below it. A user's function gets it for ``math.log`` and ``numpy.log``."""
    small = x < _NORMAL
    value = _log(x * 2.0**_LIFT if small else x, 0.0) - (_LIFT * math.log(2.0) if small else 0.0)
    ends = x if x > 0.0 else -math.inf if x == 0.0 else math.nan
    return value if 0.0 < x < math.inf else ends


@njit(**_JIT)
def log1p(x):
    """log(1 + x) for x >= 0; what 1 + x loses in rounding is added at the end."""
    y = 1.0 + x
    value = _log(y, (x - (y - 1.0)) / y if x < 1e16 else 0.0)
    return value if y < math.inf else y
