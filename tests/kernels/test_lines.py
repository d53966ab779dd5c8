"""Profiles that are exponentials of a line: what is recognised, and that it is the kernel that it says."""

import math
from functools import partial

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locbook as lb
from locbook import engine
from locbook.engine.leaf import as_leaf
from locbook.kernels.base import _LINES
from locbook.kernels.lines import Line, function_of, line_of

RATE = 0.25


def of_global(s):
    return math.exp(-RATE * s)


def of_closure(rate):
    return lambda s: np.exp(-s * rate) * 2


def of_default(s, rate=3.0):
    return -rate * s


#: Functions, whether they are logarithms, and the line.
LINES = {
    "gaussian": (lambda s: math.exp(-0.5 * s), False, Line(0.0, -0.5, False)),
    "its logarithm": (lambda s: -s / 2, True, Line(0.0, -0.5, False)),
    "laplace": (lambda s: math.exp(-math.sqrt(s)), False, Line(0.0, -1.0, True)),
    "a power": (lambda s: np.exp(-3.0 * (4.0 * s) ** 0.5), False, Line(0.0, -6.0, True)),
    "logarithm of laplace": (lambda s: 1.0 - np.sqrt(s) - 2 * np.sqrt(s), True, Line(1.0, -3.0, True)),
    "scaled": (lambda s: math.e * math.exp(1.0 - s) / math.exp(2.0), False, Line(0.0, -1.0, False)),
    "a product": (lambda s: math.exp(-s) * np.exp(-2.0 * s), False, Line(0.0, -3.0, False)),
    "a quotient": (lambda s: math.exp(-3 * s) / math.exp(-s), False, Line(0.0, -2.0, False)),
    "numbers of numpy": (lambda s: np.float64(-0.5) * s + np.int64(1), True, Line(1.0, -0.5, False)),
    "global": (of_global, False, Line(0.0, -0.25, False)),
    "closure": (of_closure(1.5), False, Line(math.log(2.0), -1.5, False)),
    "default": (of_default, True, Line(0.0, -3.0, False)),
}


def branch(s):
    return math.exp(-s) if s < 3.0 else 0.0


def equal(s):
    return 0.0 if s == 0.0 else math.exp(-s)


def truth(s):
    return math.exp(-s) if s else 1.0


def helper(s):
    return of_global(s)


def caught(s):
    try:
        s = min(s, 1.0)
    except Exception:
        return math.exp(-s)
    return math.exp(-s)


#: Functions that are something else, or may be.
OTHERS = {
    "cauchy": (lambda s: 1.0 / (1.0 + s), False),
    "square": (lambda s: math.exp(-s * s), False),
    "square of a number": (lambda s: math.exp(-(s**2)), False),
    "branch": (branch, False),
    "equal": (equal, False),
    "truth": (truth, False),
    "absolute": (lambda s: -abs(s), True),
    "smallest": (lambda s: min(-s, -1.0), True),
    "sum": (lambda s: math.exp(-s) + 1e-3, False),
    "growing": (lambda s: math.exp(s), False),
    "flat": (lambda s: math.exp(0.0 * s), False),
    "logarithm": (lambda s: -math.log(1.0 + s), True),
    "both": (lambda s: -s - math.sqrt(s), True),
    "root of a sum": (lambda s: -math.sqrt(1.0 + s), True),
    "minus": (lambda s: -1.0 * math.exp(-s), False),
    "infinite": (lambda s: -s - math.inf, True),
    "nan": (lambda s: -s + math.nan, True),
    "nothing": (lambda s: None, True),
    "number": (lambda s: 1.0, False),
    "whole": (lambda s: math.exp(-int(s)), False),
    "line, not its exponential": (lambda s: 3.0 - s, False),
    "exponential, not its logarithm": (lambda s: math.exp(-s), True),
    "of another function": (helper, False),
    "what the symbol raises is caught": (caught, False),
    "jitted": (numba.njit(of_global), False),
    "partial": (partial(of_default, rate=2.0), True),
}


@pytest.mark.parametrize("name", LINES)
def test_lines_are_read_off(name):
    function, log, line = LINES[name]
    found = line_of(function, log)
    assert found == pytest.approx(line, rel=1e-15, abs=1e-15)
    for s in (0.0, 1e-3, 0.7, 5.0, 40.0):
        value = function(s) if log else math.log(function(s))
        assert function_of(found)(s) == pytest.approx(value, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("name", OTHERS)
def test_all_else_is_left_alone(name):
    assert line_of(*OTHERS[name]) is None


@settings(deadline=None)
@given(st.data())
def test_any_line_that_is_found_is_right(data):
    """Formulas of random steps: where one is a line, it has the values of the function."""
    number = st.floats(-3.0, 3.0).map(lambda x: round(x, 2))
    steps = data.draw(st.lists(st.tuples(st.sampled_from("+-*/r"), number), max_size=6))

    def function(s):
        value = -s
        for step, a in steps:
            if step == "+":
                value = value + a
            elif step == "-":
                value = a - value
            elif step == "*":
                value = value * a
            elif step == "/":
                value = value / a
            else:
                value = math.sqrt(value) - s
        return value

    found = line_of(function, True)
    if found is not None:
        for s in (0.0, 0.3, 2.0, 11.0):
            assert function_of(found)(s) == pytest.approx(function(s), rel=1e-12, abs=1e-12)


def test_the_named_lines():
    assert set(_LINES) == {name for name, profile in lb.PROFILES.items() if profile.exponential}
    for name, line in _LINES.items():
        assert lb.KERNELS[name](1.0).line == line
        np.testing.assert_allclose(
            [function_of(line)(s) for s in (0.0, 0.5, 7.0)],
            [lb.PROFILES[name].function(s, 0.0) for s in (0.0, 0.5, 7.0)],
            rtol=1e-15,
        )
    assert lb.cauchy(1.0).line is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["K", "log K"])
def test_a_gaussian_of_ones_own_is_the_gaussian(form, dtype):
    rng = np.random.default_rng(0)
    q, x, y = (rng.normal(size=size).astype(dtype) for size in ((50, 3), (400, 3), (400, 2)))
    own = {"K": {"profile": lambda s: math.exp(-s / 2)}, "log K": {"log_profile": lambda s: -s / 2}}[form]
    weight = rng.choice([0.0, 1.0, 2.0], 400)
    for bandwidth in (0.7, [0.5, 1.0, 2.0], lb.per_query(rng.uniform(0.5, 1.0, 50)), lb.knn_bandwidth(9)):
        kernel, named = lb.Kernel(**own, bandwidth=bandwidth), lb.gaussian(bandwidth)
        assert kernel.logarithmic
        for points in (q, q + 60.0):  # all weights of the latter are too small for a float
            for options in ({}, {"sample_weight": weight}):
                one, other = (lb.local_mean(points, x, y, k, **options) for k in (kernel, named))
                np.testing.assert_allclose(one, other, rtol=1e-4 if dtype == "float32" else 1e-9)
    kernel, named = lb.Kernel(**own, bandwidth=0.7), lb.gaussian(0.7)
    assert as_leaf(engine.Problem.check(q, x, kernel)) is not None
    np.testing.assert_allclose(kernel(q, x), named(q, x), rtol=1e-4 if dtype == "float32" else 1e-12)
    one, other = (lb.local_mean_vjp(y[:50], q, x, y, k) for k in (kernel, named))
    for a, b in zip(one[:3], other[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-5 if dtype == "float32" else 1e-12)


def test_a_factor_counts_in_a_sum():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    own = lb.Kernel(lambda s: 3.0 * math.exp(-s / 2), 0.5) + lb.cauchy(1.0)
    named = 3.0 * lb.gaussian(0.5) + lb.cauchy(1.0)
    np.testing.assert_allclose(lb.local_mean(x, x, y, own), lb.local_mean(x, x, y, named), rtol=1e-12)
    np.testing.assert_allclose(own(x, x), named(x, x), rtol=1e-13)
