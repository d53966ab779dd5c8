"""The engine's exponential against arithmetic with 60 digits."""

import math

import mpmath
import numpy as np
import pytest
from numba import njit

from locbook.engine.exponential import EXPONENTIALS, EXPONENTIALS_32, POWERS, SMALLEST, exp_negative
from locbook.engine.named import quotient


@njit
def row(x, out):
    for i in range(x.size):
        out[i] = exp_negative(x[i])


def worst_ulp(x):
    out = np.empty_like(x)
    row(x, out)
    with mpmath.workdps(60):
        exact = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
        return max(
            float(abs(mpmath.mpf(float(got)) - want) / mpmath.mpf(float(np.spacing(float(want)))))
            for got, want in zip(out, exact, strict=True)
        )


@pytest.mark.parametrize("reach", [1e-300, 1e-9, 0.5, 1.0, 20.0, 700.0])
def test_within_one_unit_in_the_last_place(reach):
    rng = np.random.default_rng(0)
    assert worst_ulp(-rng.uniform(0, reach, size=2000)) < 1.0


def test_where_the_power_of_two_changes():
    k = np.arange(1, 1400)
    halves = -(0.5 * k) * math.log(2)
    around = np.concatenate([halves, np.nextafter(halves, 0), np.nextafter(halves, -1e3)])
    assert worst_ulp(around[around > SMALLEST]) < 1.0


def test_the_ends():
    assert exp_negative(0.0) == 1.0
    assert exp_negative(-0.0) == 1.0
    assert exp_negative(SMALLEST) > 0
    assert exp_negative(np.nextafter(SMALLEST, -1e3)) == 0.0
    assert exp_negative(-1e308) == exp_negative(-math.inf) == 0.0
    assert math.isnan(exp_negative(math.nan))


def test_a_row_is_what_its_entries_are():
    x = -np.random.default_rng(1).uniform(0, 800, size=1003)
    whole, single = np.empty_like(x), np.empty(1)
    row(x, whole)
    for i in range(0, len(x), 7):
        row(x[i : i + 1], single)
        assert single[0] == whole[i]


@njit(error_model="numpy")
def quotients(a, b, out):
    for i in range(a.size):
        out[i] = quotient(a[i], b[i], 1.0 / b[i])


def test_quotients_are_those_of_a_division():
    rng = np.random.default_rng(3)
    powers = 2.0 ** rng.integers(-300, 300, 20_000)
    ones = np.nextafter(powers, 0)  # Markstein's exception, by its theorem
    for b in (powers * rng.uniform(1, 2, 20_000), ones):
        near = [b, np.nextafter(b, math.inf), np.nextafter(b, 0)]
        for a in (*near, b * rng.uniform(0, 4, 20_000), 0 * b, b + math.inf):
            out = np.empty_like(a)
            quotients(a, b, out)
            np.testing.assert_array_equal(out, a / b)


@pytest.mark.parametrize(
    ("stored", "function", "half", "error"),
    [
        (POWERS[4].coefficients, lambda t: mpmath.mpf(2) ** t, "0.5", 3e-9),
        (POWERS[8].coefficients, lambda t: mpmath.mpf(2) ** t, "0.5", 2.5e-17),
        (EXPONENTIALS, mpmath.exp, "0.346608247", 2.5e-17),
        (EXPONENTIALS_32, mpmath.exp, "0.346608247", 3e-9),
    ],
    ids=["2^f, float32", "2^f, float64", "e^r", "e^r, float32"],
)
def test_the_coefficients_are_those_of_the_interpolation(stored, function, half, error):
    with mpmath.workdps(60):
        half, n = mpmath.mpf(half), len(stored)
        nodes = [half * mpmath.cos(mpmath.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
        powers = mpmath.matrix([[x**j for j in range(n)] for x in nodes])
        exact = mpmath.lu_solve(powers, mpmath.matrix([function(x) for x in nodes]))
        for got, want in zip(stored, exact, strict=True):
            assert abs(got - want) <= 1e-8 * abs(want)
        worst = max(
            abs(
                mpmath.polyval([mpmath.mpf(c) for c in reversed(stored)], half * k / 200)
                / function(half * k / 200)
                - 1
            )
            for k in range(-200, 201)
        )
        assert worst <= error
