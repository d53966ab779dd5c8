r"""Derivatives of profiles and distances on the card, for the gradient.

The twins of :mod:`locbook.engine.slopes`, pair by pair. A slope is :math:`dK/ds` or :math:`d\log K/ds` of the squared
scaled distance s. A pull is ``pull(q, i, x, b, numbers, squared, c)``: the derivative of a squared distance D > 0 by
column c of the query, or of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ...kernels import metrics, profiles
from ..slopes import STEP
from .backend import device, nearest_whole, trigonometry
from .pairs import specialise
from .weigh import Step


@lru_cache(maxsize=64)
def slope(profile: Any, T: type) -> Callable:
    """Slope of a named profile (its code) or of a user's function, by a central difference in u."""
    if callable(profile):
        return _user_slope(profile, T)
    named = list(profiles.PROFILES.values())[profile]
    return _cosine_slope(T) if named.name == "cosine" else specialise(named.slope, T)


def _cosine_slope(T: type) -> Callable:
    zero, one, half, quarter = T(0), T(1), T(0.5), T(-0.25 * math.pi)
    sinpi = trigonometry(T)[0]

    @device
    def cosine_slope(s, a):
        u = T(math.sqrt(s))
        return quarter * T(sinpi(half * u)) / u if s < one else zero

    return cosine_slope


def _user_slope(function: Any, T: type) -> Callable:
    scalar = specialise(function, T)
    one, two, step = T(1), T(2), T(STEP)

    @device
    def user_slope(s, a):
        u = T(math.sqrt(s))
        low, high = u - step * max(u, one), u + step * max(u, one)
        return (T(scalar(high * high)) - T(scalar(low * low))) / ((high - low) * two * u)

    return user_slope


@lru_cache(maxsize=256)
def pull(step: Step, by_sample: bool, T: type) -> Callable:
    """The derivative of a step's squared distance by a column of the query, or of the sample."""
    special = {metrics.MATRIX: _matrix, metrics.HAVERSINE: _haversine, metrics.COSINE: _cosine}
    return special.get(step.metric, _of_differences)(step, by_sample, T)


def _of_differences(step: Step, by_sample: bool, T: type) -> Callable:
    code, at, count, number = step.metric, step.at, step.count, step.number + 2
    zero, one, two, all_of_them, rint = T(0), T(1), T(-2 if by_sample else 2), T(count), nearest_whole(T)

    @device
    def derivative(q, i, x, b, numbers, squared, c):
        gap, unit = q[at + c, i] - x[b, at + c], numbers[number + c]
        sign = one if gap > zero else (-one if gap < zero else zero)
        root = T(math.sqrt(squared))
        if code == metrics.MANHATTAN:
            return two * root * unit * sign
        if code == metrics.MINKOWSKI:
            return two * root * (abs(gap) * unit / root) ** (numbers[number + count] - one) * unit * sign
        if code == metrics.CHEBYSHEV:  # of the first column that is the farthest
            farthest = abs(gap) * unit
            for k in range(count):
                other = abs(q[at + k, i] - x[b, at + k]) * numbers[number + k]
                if other > farthest or (other == farthest and k < c):
                    unit = zero
            return two * farthest * unit * sign
        if code == metrics.PERIODIC:
            period = numbers[number + count + c]
            gap -= period * T(rint(gap / period))
        if code == metrics.NAN_EUCLIDEAN:
            present = zero
            for k in range(count):
                other = q[at + k, i] - x[b, at + k]
                present += one if other == other else zero
            gap = gap * all_of_them / max(present, one) if gap == gap else zero
        return two * gap * unit * unit

    return derivative


def _matrix(step: Step, by_sample: bool, T: type) -> Callable:
    at, count, number, zero, two = (
        step.at,
        step.count,
        step.number + 2 + step.count,
        T(0),
        T(-2 if by_sample else 2),
    )

    @device
    def derivative(q, i, x, b, numbers, squared, c):
        total = zero
        for r in range(count):
            inner = zero
            for k in range(count):
                inner += numbers[number + r * count + k] * (q[at + k, i] - x[b, at + k])
            total += numbers[number + r * count + c] * inner
        return two * total

    return derivative


def _haversine(step: Step, by_sample: bool, T: type) -> Callable:
    at, zero, one, two = step.at, T(0), T(1), T(2)
    turn, half_turn = T(1 / math.pi), T(0.5 / math.pi)
    sinpi, cospi = trigonometry(T)

    @device
    def derivative(q, i, x, b, numbers, squared, c):
        first, second = q[at, i], x[b, at]
        half, round_it = (first - second) * half_turn, (q[at + 1, i] - x[b, at + 1]) * half_turn
        here, there, across = T(cospi(first * turn)), T(cospi(second * turn)), T(sinpi(round_it))
        up, along = T(sinpi(half)), T(sinpi(half)) * T(cospi(half))
        a = up * up + here * there * across * across
        factor = two * T(math.sqrt(squared / (a * (one - a)))) if zero < a < one else zero
        if c == 1:
            value = here * there * across * T(cospi(round_it))
            return -factor * value if by_sample else factor * value
        if by_sample:
            return -factor * (along + here * T(sinpi(second * turn)) * across * across)
        return factor * (along - T(sinpi(first * turn)) * there * across * across)

    return derivative


def _cosine(step: Step, by_sample: bool, T: type) -> Callable:
    at, count, zero, two = step.at, step.count, T(0), T(-2)

    @device
    def derivative(q, i, x, b, numbers, squared, c):
        ours, theirs, both = zero, zero, zero
        for k in range(count):
            ours += q[at + k, i] * q[at + k, i]
            theirs += x[b, at + k] * x[b, at + k]
        if not (ours > zero and theirs > zero):
            return zero
        ours, theirs = T(math.sqrt(ours)), T(math.sqrt(theirs))
        for k in range(count):
            both += q[at + k, i] / ours * (x[b, at + k] / theirs)
        factor, mine, other = two * T(math.sqrt(squared)), q[at + c, i] / ours, x[b, at + c] / theirs
        if by_sample:
            return factor * (mine - both * other) / theirs
        return factor * (other - both * mine) / ours

    return derivative
