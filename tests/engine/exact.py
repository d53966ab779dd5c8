r"""Exact answers with 50 digits, and the one place where the engine's accuracy is stated.

**The bounds.** Every number that the caller gives is taken as exact. With :math:`u = 2^{-53}`, a log-weight
:math:`t_i` is wrong by at most

.. math:: |\Delta t_i| \le (d + 8)\,\kappa\,u\,a_i + 8u\,(1 + a_i)

:math:`a_i` is its size: :math:`|t_i|` for a profile of a distance, :math:`\sum_c |q_c k_c| / \tau` for softmax, and
for products the sum of the factors' sizes, the sample weight's logarithm among them; :math:`\kappa` is the condition
number of a bandwidth matrix or of a covariance, else 1. Such a matrix is applied to the points where sums are asked
for and no sample is farther than 1000 bandwidths from the others; a distance of r bandwidths is then wrong by
:math:`(d + 8)\,\kappa\,u\,(r + E)`, E the farthest distance between samples. For a profile that is no exponential the
first term is an error of the squared distance instead, and what it does to the weight is between
:math:`K(s(1-(d+8)\kappa u))` and :math:`K(s(1+(d+8)\kappa u))`: near the edge of a compact kernel a small weight has
fewer digits, and at the edge of the uniform kernel a sample may fall on either side. :class:`Weights` holds these
lower and upper ends.

Let p be the normalised weights, y the exact mean, R the range of the values that take part,
:math:`\varepsilon_i = (w_i^{high} - w_i^{low}) / \sum_j w_j^{low}` and :math:`\varepsilon` their sum; an ulp is one of
the answer, in its dtype.

=======================  ==============================================================================
mean                     :math:`\min(R, \sum_i \varepsilon_i |y_i - y|) + \sigma_n \sum_i p_i |y_i| + F R` + 2 ulp;
                         never beyond the values that take part, so equal values give that value
weight                   :math:`\varepsilon_i + p_i\,(\varepsilon + \sigma_n + F)` + 1 ulp
log-sum, log-density     :math:`\varepsilon + \sigma_n + (F + 8u)(1 + S)` + 1 ulp, S the sum of the magnitudes of
                         what is added up
moment                   :math:`\sum_i (w_i^{high} - w_i^{low} + (\sigma_n + 8(g + 1)u) w_i) |z_i z_i'|`, g the degree
                         of the product
distance                 :math:`(d/2 + 4)\,u` of itself
=======================  ==============================================================================

For an exponential :math:`\varepsilon` is about :math:`2(d + 8)u\sum_i p_i a_i`, and for one profile of a distance
without sample weights :math:`\sum_i p_i a_i \le \min_i |t_i| + \log n`: the bound grows with the log-weight of the
nearest sample and with nothing else.

:math:`\sigma_n = (16 + 2\sqrt n)\,u` is what n additions do. F is what computing in float32 may add: 0 for float64
input, :data:`FLOAT32` for float32 input, and 0 for moments and distances, which are always float64.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import mpmath
import numpy as np

from locbook.kernels import base
from locbook.kernels.bandwidth import VaryingBandwidth

DIGITS = 50
#: Unit roundoff of float64.
U = 2.0**-53
#: Share of the range of the values that computing weights in float32 may add.
FLOAT32 = 1e-5
#: Units in the last place of the answer, for rounding it.
ULPS = 2


def squared_error(d: int, condition: float = 1.0) -> float:
    """Relative error of a squared scaled distance, or of a dot product relative to its terms' magnitudes."""
    return (d + 8) * condition * U


def summation_error(n: int) -> float:
    """Relative error of a sum of n terms of one sign."""
    return (16 + 2 * np.sqrt(n)) * U


def float32_error(dtype: np.dtype) -> float:
    """What computing in the input's dtype may add."""
    return FLOAT32 if dtype == np.float32 else 0.0


def mean_bound(deviation, magnitude, span, answer, n: int, dtype: np.dtype):
    """Bound of a local mean from what stands in the table: sum e|y_i - y|, sum p|y_i|, R, y."""
    rounding = ULPS * np.spacing(np.abs(np.asarray(answer, dtype=np.float64)).astype(dtype)).astype(
        np.float64
    )
    wrong = np.where(deviation < span, deviation, span)
    return wrong + summation_error(n) * magnitude + float32_error(dtype) * span + rounding


# -- numbers with 50 digits ------------------------------------------------------------------------------------------


def _one(value):
    return mpmath.mpf(value.item() if isinstance(value, np.generic) else value)


_numbers = np.frompyfunc(_one, 1, 1)
exp, log, sqrt = (np.frompyfunc(getattr(mpmath, name), 1, 1) for name in ("exp", "log", "sqrt"))


def numbers(array) -> np.ndarray:
    """The array's numbers, exactly, as objects of mpmath."""
    return np.asarray(_numbers(np.asarray(array)), dtype=object)


def floats(array) -> np.ndarray:
    """Rounded to float64."""
    return np.asarray(array, dtype=object).astype(np.float64)


class Weights(NamedTuple):
    """Weights (m, n) as objects of mpmath, their lower and upper ends, and the size of their logarithms."""

    exact: np.ndarray
    low: np.ndarray
    high: np.ndarray
    size: np.ndarray

    def times(self, other: Weights) -> Weights:
        return Weights(*(a * b for a, b in zip(self[:3], other[:3], strict=True)), self.size + other.size)

    def epsilon(self) -> np.ndarray:
        """Relative error of the sum of the weights, twice; inf where the lower ends sum to 0."""
        low = self.low.sum(1)
        return np.array(
            [float(e / w) if w else np.inf for e, w in zip((self.high - self.low).sum(1), low, strict=True)]
        )

    def taken(self) -> np.ndarray:
        return (self.exact > 0).astype(bool)

    def shares(self) -> np.ndarray:
        total = self.exact.sum(1)
        return self.exact / np.where(total > 0, total, mpmath.mpf(1))[:, None]


def _size(weights: np.ndarray) -> np.ndarray:
    return np.abs(log(np.where(weights > 0, weights, mpmath.mpf(1))))


def _cut(function):
    """A profile that is 0 from u = 1 on."""
    return lambda s: np.array([function(v) if v < 1 else mpmath.mpf(0) for v in s.flat], object).reshape(
        s.shape
    )


def profile(name: str, a: float):
    """K as a function of s = u^2."""
    a = mpmath.mpf(a)
    power = np.frompyfunc(mpmath.power, 2, 1)
    return {
        "uniform": lambda s: np.where(s <= 1, mpmath.mpf(1), mpmath.mpf(0)),
        "triangular": _cut(lambda s: 1 - mpmath.sqrt(s)),
        "epanechnikov": _cut(lambda s: 1 - s),
        "biweight": _cut(lambda s: (1 - s) ** 2),
        "triweight": _cut(lambda s: (1 - s) ** 3),
        "tricube": _cut(lambda s: (1 - s * mpmath.sqrt(s)) ** 3),
        "cosine": _cut(lambda s: mpmath.cos(mpmath.pi / 2 * mpmath.sqrt(s))),
        "gaussian": lambda s: exp(-s / 2),
        "laplace": lambda s: exp(-sqrt(s)),
        "cauchy": lambda s: 1 / (1 + s),
        "student_t": lambda s: power(1 + s / a, -(a + 1) / 2),
        "rational_quadratic": lambda s: power(1 + s / (2 * a), -a),
    }[name]


def squared_distances(q: np.ndarray, x: np.ndarray, ruler=1.0, covariance=None) -> np.ndarray:
    """Squared scaled distances (m, n), and the lower and upper ends that the bound gives them."""
    difference = numbers(q)[:, None, :] - numbers(x)[None, :, :]
    matrix, h = ruler if np.ndim(ruler) == 2 else None, 1
    if isinstance(ruler, VaryingBandwidth):
        h = numbers(ruler.values)[:, None] if ruler.side == "query" else numbers(ruler.values)[None, :]
    elif np.ndim(ruler) == 1:
        difference = difference / numbers(ruler)
    elif matrix is None:
        h = _one(ruler)
    if covariance is not None:
        matrix = np.array(mpmath.cholesky(mpmath.matrix(covariance.tolist())).tolist(), dtype=object)
    if matrix is None:
        s, wrong = (difference * difference).sum(-1) / (h * h), squared_error(q.shape[1])
        return np.array([s, s * (1 - min(wrong, 1.0)), s * (1 + wrong)])
    inverse = np.array((mpmath.matrix(matrix.tolist()) ** -1).tolist(), dtype=object)
    r = sqrt(((difference @ inverse.T) ** 2).sum(-1)) / h
    among = (numbers(x)[:, None, :] - numbers(x)[None, :, :]) @ inverse.T
    farthest = sqrt((among * among).sum(-1)).max() / (h if np.ndim(h) == 0 else h.min())
    condition = np.linalg.cond(ruler if covariance is None else covariance)
    wrong = squared_error(q.shape[1], condition) * (r + min(farthest, 1000))
    return np.array([r, np.where(r > wrong, r - wrong, 0), r + wrong]) ** 2


def weigh(kernel: base.Kernel, q: np.ndarray, x: np.ndarray) -> Weights:
    """Weights of a kernel made of profiles of the Euclidean distance, softmax and products."""
    if isinstance(kernel, base.ProductKernel):
        return weigh(kernel.left, q, x).times(weigh(kernel.right, q, x))
    if isinstance(kernel, base.ScaledKernel):
        w = weigh(kernel.kernel, q, x)
        return w.times(
            Weights(*[np.full(w.exact.shape, _one(kernel.factor))] * 3, _size(np.array([[kernel.factor]])))
        )
    columns = kernel.columns(q.shape[1])
    q, x = q[:, columns], x[:, columns]
    if isinstance(kernel, base.SoftmaxKernel):
        terms = numbers(q)[:, None, :] * numbers(x)[None, :, :] / _one(kernel.temperature)
        t, size = terms.sum(-1), np.abs(terms).sum(-1)
        wrong = squared_error(len(columns)) * size
        return Weights(exp(t), exp(t - wrong), exp(t + wrong), size)
    assert kernel.metric.name in ("euclidean", "mahalanobis")
    s, near, far = squared_distances(q, x, kernel.ruler, kernel.metric.parameter)
    function = profile(kernel.profile, kernel.parameter)
    w = function(s)
    return Weights(w, function(far), function(near), _size(w))


def exact_weights(kernel, q, x, *, sample_weight=None, mask=None) -> Weights:
    """The weights with multiplicities and mask, and the errors of logarithm, exponential and product in their ends."""
    with mpmath.workdps(DIGITS):
        w = weigh(kernel, q, x)
        if sample_weight is not None:
            weight = numbers(sample_weight)[None, :]
            w = w.times(Weights(weight, weight, weight, _size(weight)))
        slack = np.minimum(8 * U * (1 + w.size), mpmath.mpf(1))
        parts = [w.exact, w.low * (1 - slack), w.high * (1 + slack)]
        if mask is not None:
            parts = [np.where(mask, part, mpmath.mpf(0)) for part in parts]
        return Weights(*parts, w.size)


# -- the reductions --------------------------------------------------------------------------------------------------


def mean(w: Weights, values: np.ndarray) -> np.ndarray:
    """Local mean, shape (m, p), objects of mpmath; NaN where no weight is positive."""
    with mpmath.workdps(DIGITS):
        total = w.exact.sum(1)
        answer = (w.exact @ numbers(values)) / np.where(total > 0, total, mpmath.mpf(1))[:, None]
        answer[np.array(total == 0, dtype=bool)] = mpmath.nan
        return answer


def log_sum(w: Weights) -> np.ndarray:
    """Logarithm of the sum of the weights, shape (m,), objects of mpmath."""
    with mpmath.workdps(DIGITS):
        return np.array(
            [mpmath.log(total) if total else -mpmath.inf for total in w.exact.sum(1)], dtype=object
        )


def assert_mean(answer, w: Weights, values, dtype, label="") -> None:
    """The answer (m,) or (m, p) is the exact mean, within the bound; NaN where there is none."""
    values = np.asarray(values).reshape(len(values), -1)
    answer = np.asarray(answer).reshape(len(w.exact), -1)
    expected = mean(w, values)
    empty = ~w.taken().any(1)
    np.testing.assert_array_equal(
        np.isnan(answer), np.broadcast_to(empty[:, None], answer.shape), err_msg=label
    )
    assert np.isfinite(answer[~empty]).all(), label
    with mpmath.workdps(DIGITS):
        shares, y = w.shares(), numbers(values)
        for i in np.flatnonzero(~empty):
            seen = y[w.taken()[i]]
            span, low = seen.max(0) - seen.min(0), w.low[i].sum()
            wrong = (w.high[i] - w.low[i]) @ np.abs(y - expected[i])
            deviation = wrong / low if low else span
            magnitude = shares[i] @ np.abs(y)
            bound = mean_bound(deviation, magnitude, span, floats(expected[i]), len(y), dtype)
            error = np.abs(numbers(answer[i]) - expected[i])
            assert (error <= bound).all(), (
                f"{label}, query {i}: {answer[i]} is not {floats(expected[i])}: error {floats(error)}, "
                f"bound {floats(bound)}"
            )


def assert_log_sum(answer, w: Weights, dtype, constant=0, total=1, label="") -> None:
    """The answer (m,) is log(sum of the weights) + constant - log(total), within the bound."""
    answer, sums, epsilon = np.asarray(answer), log_sum(w), w.epsilon()
    n = w.exact.shape[1]
    for i in range(len(answer)):
        if not w.taken()[i].any():
            assert answer[i] == -np.inf, label
            continue
        with mpmath.workdps(DIGITS):
            parts = [sums[i], mpmath.mpf(constant), -mpmath.log(total)]
            error = float(abs(_one(answer[i]) - sum(parts)))
            size = 1 + float(sum(abs(part) for part in parts))
        rounding = np.spacing(abs(dtype.type(answer[i])))
        bound = np.log1p(epsilon[i]) + summation_error(n) + (float32_error(dtype) + 8 * U) * size + rounding
        assert error <= bound, f"{label} query {i}: error {error}, bound {bound}, exact {sum(parts)}"


def assert_weights(answer, w: Weights, dtype, label="") -> None:
    """The normalised weights (m, n), within the bound; rows sum to 1."""
    n = w.exact.shape[1]
    with mpmath.workdps(DIGITS):
        exact = w.shares()
        error = floats(np.abs(numbers(answer) - exact))
        low = w.low.sum(1)[:, None]
        own = floats(
            np.where(low > 0, (w.high - w.low) / np.where(low > 0, low, mpmath.mpf(1)), mpmath.mpf(1))
        )
        exact = floats(exact)
    share = w.epsilon()[:, None] + summation_error(n) + float32_error(dtype)
    wrong = np.minimum(1.0, np.where(exact > 0, share, 0.0) * exact)
    bound = own + wrong + np.spacing(exact.astype(dtype)) + np.finfo(dtype).tiny
    assert (error <= bound).all(), f"{label}: {np.max(error / bound)} times the bound"
    sums = np.asarray(answer, dtype=np.float64).sum(1)
    unit = np.finfo(dtype).eps
    assert (np.abs(sums - 1) <= unit * (2 + np.sqrt(n)) + summation_error(n)).all(), label


def assert_moments(answer, w: Weights, q, x, values, table, label="") -> None:
    """Second and first moments times exp(log_scale), within the bound."""
    n = w.exact.shape[1]
    powers = np.zeros(len(table[0]), dtype=int)
    for k in range(1, len(table[0])):
        powers[k] = powers[table[0][k]] + 1
    degree = 2 * powers.max(initial=0)
    with mpmath.workdps(DIGITS):
        difference = numbers(x)[None] - numbers(q)[:, None]
        z = np.full((*w.exact.shape, len(table[0])), mpmath.mpf(1), dtype=object)
        for k in range(1, len(table[0])):
            z[..., k] = z[..., table[0][k]] * difference[..., table[1][k]]
        wrong = w.high - w.low + (summation_error(n) + 8 * (degree + 1) * U) * w.exact
        right = numbers(values)
        for i in range(len(q)):
            scale = mpmath.exp(_one(answer.log_scale[i]))
            for name, factor in (("second", z[i]), ("first", right)):
                ours = numbers(getattr(answer, name)[i]) * scale
                exact = z[i].T @ (w.exact[i][:, None] * factor)
                bound = np.abs(z[i]).T @ (wrong[i][:, None] * np.abs(factor))
                over = np.abs(ours - exact) > bound
                assert not over.any(), f"{label} {name}, query {i}: {ours} is not {exact}"


def assert_nearest(found, q, x, k, taken=None, label="") -> None:
    """Distances and rows of the k nearest, within the bound; -1 and inf where fewer take part."""
    d = q.shape[1]
    wrong = (0.5 * d + 4) * U
    with mpmath.workdps(DIGITS):
        distances = sqrt(squared_distances(q, x)[0])
        for i in range(len(q)):
            allowed = np.arange(len(x)) if taken is None else np.flatnonzero(taken[i])
            count = min(k, len(allowed))
            rows, own = found.indices[i], numbers(found.distances[i][:count])
            assert (rows[count:] == -1).all(), label
            assert np.isinf(found.distances[i][count:]).all(), label
            rows = rows[:count]
            assert len(set(rows)) == count, label
            assert np.isin(rows, allowed).all(), label
            right = np.array(sorted(distances[i][allowed])[:count], dtype=object)
            assert (np.abs(own - right) <= wrong * right).all(), f"{label} query {i}: {own} is not {right}"
            assert (np.abs(own - distances[i][rows]) <= wrong * right).all(), (
                f"{label} query {i}: rows {rows}"
            )
            assert (np.diff(found.distances[i][:count]) >= 0).all(), label


# -- many samples: long double ---------------------------------------------------------------------------------------

#: Whether long double is longer than double here.
LONG = bool(np.finfo(np.longdouble).eps < 1e-18)


def long_mean(kernel, q: np.ndarray, x: np.ndarray, values: np.ndarray):
    """One query's mean (p,), its bound, log-sum and epsilon, in long double; Gaussian, Laplace or softmax."""
    wide = partial(np.asarray, dtype=np.longdouble)
    x, d = wide(x), x.shape[1]
    if isinstance(kernel, base.SoftmaxKernel):
        terms = x * (wide(q) / wide(kernel.temperature))
        t, size = terms.sum(1), np.abs(terms).sum(1)
    else:
        s = (((wide(q) - x) / wide(kernel.ruler)) ** 2).sum(1)
        t = {"gaussian": -s / 2, "laplace": -np.sqrt(s)}[kernel.profile]
        size = np.abs(t)
    shift = t.max()
    w = np.exp(t - shift)
    total = w.sum()
    p, y = w / total, wide(values)
    wrong = 2 * p * (squared_error(d) * size + 8 * U * (1 + size))
    centre = y[0]
    mean = centre + p @ (y - centre)
    bound = mean_bound(wrong @ np.abs(y - mean), p @ np.abs(y), np.ptp(y, axis=0), mean, len(y), values.dtype)
    return mean, bound, shift + np.log(total), float(wrong.sum())
