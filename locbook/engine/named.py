"""The named distances and profiles as parts.

The code is a constant of each part, so that only its branch is compiled.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ..kernels import metrics, profiles
from ..kernels.logarithm import log
from ..kernels.metrics import (
    CHEBYSHEV,
    COSINE,
    EUCLIDEAN,
    HAMMING,
    HAVERSINE,
    MANHATTAN,
    MATRIX,
    MINKOWSKI,
    PERIODIC,
)
from .exponential import exp_negative
from .panels import PANEL
from .parts import FLOAT32_PROFILE_PART, METRIC_PART, PROFILE_PART, address, inner, part
from .vectors import ENABLED, multiply_add


@inner
def minkowski_row(q, tile, n, columns, scale, parameters, out, work):
    """In units of the largest difference, so that no power is beyond all floats; here, as it needs the exponential."""
    p = parameters[0]
    for j in range(n):
        out[j] = 0.0
    for c in range(columns.size):
        at, unit, x = q[columns[c]], scale[c], tile[columns[c]]
        for j in range(n):
            difference = abs(at - x[j]) * unit
            out[j] = difference if difference > out[j] else out[j]
    for j in range(n):
        work[j] = 0.0
    for c in range(columns.size):
        at, unit, x = q[columns[c]], scale[c], tile[columns[c]]
        for j in range(n):
            power = exp_negative(p * log(abs(at - x[j]) * unit / out[j]))
            work[j] += power if 0.0 < out[j] < math.inf else 0.0
    for j in range(n):
        # the sum is between 1 and the number of columns
        root = exp_negative(2.0 / p * log(1.0 / work[j]))
        out[j] = out[j] / root * out[j] if 0.0 < out[j] < math.inf else out[j]


@lru_cache
def metric_address(code: int) -> int:
    """Address of the part ``metric(queries, i, panels, first, count, columns, scale, parameters, out, work)``.

    It fills ``out[: count * PANEL]`` with squared distances from query ``i`` to the samples of ``count`` panels, and
    returns how many are bad: none.
    """

    # names of this module: numbers that Numba knows, so it compiles one branch
    @part
    def metric(queries, i, panels, first, count, columns, scale, parameters, out, work):
        q = queries[i]
        for t in range(count):
            some = out[t * PANEL : (t + 1) * PANEL]
            tile = panels[first + t]
            if code == EUCLIDEAN:
                metrics.euclidean_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == MANHATTAN:
                metrics.manhattan_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == CHEBYSHEV:
                metrics.chebyshev_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == MINKOWSKI:
                minkowski_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == MATRIX:
                metrics.matrix_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == HAMMING:
                metrics.hamming_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == HAVERSINE:
                metrics.haversine_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == PERIODIC:
                metrics.periodic_row(q, tile, PANEL, columns, scale, parameters, some, work)
            elif code == COSINE:
                metrics.cosine_row(q, tile, PANEL, columns, scale, parameters, some, work)
            else:
                metrics.nan_euclidean_row(q, tile, PANEL, columns, scale, parameters, some, work)
        return 0

    return address(metric, *METRIC_PART)


@inner
def quotient(a, b, inverse):
    """A / b to the last digit, for b > 0 and its ``inverse``, finite; where that is fast, without a division.

    What a times the inverse leaves is known exactly (Markstein 1990, IBM J. Res. Dev. 34, 111-119).
    """
    if not ENABLED:
        return a / b
    q = a * inverse
    near = multiply_add(multiply_add(-q, b, a), inverse, q)
    return near if q < math.inf else q


#: By code: whether the profile is a logarithm (or the score, the last).
LOGARITHMIC = (*(p.logarithmic for p in profiles.PROFILES.values()), True)


@part
def _cauchy_in_float32(row, n, a, squared):
    one, inverse = np.float32(1.0), np.float32(1.0 / squared)
    for j in range(n):
        row[j] = one / (one + row[j] * inverse)
    return 0


@part
def _gaussian_in_float32(row, n, a, squared):
    factor = np.float32(-0.5 / squared)
    for j in range(n):
        row[j] *= factor
    return 0


@part
def _laplace_in_float32(row, n, a, squared):
    inverse = np.float32(1.0 / squared)
    for j in range(n):
        row[j] = -math.sqrt(row[j] * inverse)
    return 0


@part
def _score_in_float32(row, n, a, squared):
    factor = np.float32(-1.0 / squared)
    for j in range(n):
        row[j] *= factor
    return 0


#: Profiles, or their logarithms, whose relative error is at most that of the squared distance: float32 will do.
IN_FLOAT32 = {
    profiles.PROFILES["gaussian"].code: _gaussian_in_float32,
    profiles.PROFILES["laplace"].code: _laplace_in_float32,
    profiles.PROFILES["cauchy"].code: _cauchy_in_float32,
    profiles.SCORE: _score_in_float32,
}


@lru_cache
def profile_address(code: int, dtype: str = "float64") -> int:
    """Address of the part ``profile(row, n, a, squared)``: squared distances become weights or log-weights, in place.

    ``squared`` is the squared bandwidth, s = d^2 / h^2. Profiles that give weights are divided by it, so that s is
    exactly 1 at the distance h; those that give logarithms do with the inverse. In float32 there are those of
    :data:`IN_FLOAT32`.
    """
    if dtype == "float32":
        return address(IN_FLOAT32[code], *FLOAT32_PROFILE_PART)

    @part
    def profile(row, n, a, squared):
        inverse = 1.0 / squared
        normal = 0.0 < inverse < math.inf
        for j in range(n):
            s = quotient(row[j], squared, inverse) if not LOGARITHMIC[code] else row[j] * inverse
            s = s if normal else row[j] / squared
            if code == 0:
                row[j] = profiles.uniform(s, a)
            elif code == 1:
                row[j] = profiles.triangular(s, a)
            elif code == 2:
                row[j] = profiles.epanechnikov(s, a)
            elif code == 3:
                row[j] = profiles.biweight(s, a)
            elif code == 4:
                row[j] = profiles.triweight(s, a)
            elif code == 5:
                row[j] = profiles.tricube(s, a)
            elif code == 6:
                row[j] = profiles.cosine(s, a)
            elif code == 7:
                row[j] = profiles.gaussian(s, a)
            elif code == 8:
                row[j] = profiles.laplace(s, a)
            elif code == 9:
                row[j] = profiles.cauchy(s, a)
            elif code == 10:
                row[j] = profiles.student_t(s, a)
            elif code == 11:
                row[j] = profiles.rational_quadratic(s, a)
            else:  # the score by which the nearest are found
                row[j] = -s
        return 0

    return address(profile, *PROFILE_PART)
