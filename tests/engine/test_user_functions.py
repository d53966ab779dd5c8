"""A user's own function: what is wrong in it is refused, and what is right is cached by what it was made from."""

import importlib.util
import math
import sys

import numba
import numpy as np
import pytest

import locbook as lb
from locbook import engine
from locbook.engine import exponential, fused_sweep, leaf, parts, program, sweep, user, vectors

X = np.linspace(0, 2, 9)[:, None]


def negative(s):
    return 0.5 - s


def invalid(s):
    return math.sqrt(0.5 - s)


def infinite(s):
    return 1.0 / s


@numba.njit
def raising(s):
    if s > 1.0:
        raise ValueError("too far")
    return 1.0


@numba.njit
def divides(s):  # jitted by the user, so a division by zero is an exception
    return 1.0 / (s - 1.0) ** 2


def uncompilable(s):
    return np.array([s]).tolist()[0] + open


def shrinking(x, y):
    return -1.0


@pytest.mark.parametrize("function", [negative, invalid, infinite])
def test_bad_weights_are_refused(function):
    for call in (lb.local_mean, lambda *a: lb.local_weights(*a[:2], a[3])):
        with pytest.raises(ValueError, match=f"{function.__name__}.*negative, NaN or infinite"):
            call(X[:1], X, X[:, 0], lb.Kernel(function, 1.0))
    with pytest.raises(ValueError, match="negative, NaN or infinite"):
        lb.local_mean(X[:1], X, X[:, 0], lb.gaussian(metric=shrinking))
    with pytest.raises(ValueError, match="negative, NaN"):
        lb.local_mean(X[:1], X, X[:, 0], lb.Kernel(log_profile=invalid))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("function", [raising, divides])
def test_an_exception_in_compiled_code_is_not_an_answer(function):
    with pytest.raises(ValueError, match="raised an exception"):
        lb.local_mean(X[:1], X, X[:, 0], lb.Kernel(function, 1.0))
    near = X[X[:, 0] < 0.9]  # where it does not raise, it answers
    assert 0 <= lb.local_mean(X[:1], near, near[:, 0], lb.Kernel(function, 1.0))[0] <= 0.9


def test_what_numba_cannot_compile_is_a_clear_error():
    with pytest.raises(TypeError, match="profile: Numba cannot compile 'uncompilable'"):
        lb.local_mean(X[:1], X, X[:, 0], lb.Kernel(uncompilable))


@pytest.mark.parametrize("name", ["gaussian", "epanechnikov", "laplace"])
def test_a_profile_of_ones_own_is_the_built_in(name):
    profiles = {
        "gaussian": lambda s: -0.5 * s, "laplace": lambda s: -math.sqrt(s),
        "epanechnikov": lambda s: 1.0 - s if s < 1.0 else 0.0,
    }  # fmt: skip
    word = "profile" if name == "epanechnikov" else "log_profile"
    own = lb.Kernel(**{word: profiles[name]}, bandwidth=0.7)
    np.testing.assert_array_equal(own.log(X), lb.KERNELS[name](0.7).log(X))
    far = np.array([[1e4]])
    if name != "epanechnikov":  # in the log domain a far query keeps its limit
        built_in = lb.local_mean(far, X, X[:, 0], lb.KERNELS[name](0.7))
        np.testing.assert_allclose(lb.local_mean(far, X, X[:, 0], own), built_in, rtol=1e-12)


def whole_numbers(s):
    return 3 / (1 + s**2 + 2 * s) - 0 * s


#: Profiles K, or log K: by the fused path, in the precision of the input.
SMOOTH = {
    "gaussian": ("profile", lambda s: math.exp(-s / 2)),
    "log gaussian": ("log_profile", lambda s: -0.5 * s),
    "log laplace": ("log_profile", lambda s: -math.sqrt(s)),
    "gaussian behind a branch": ("profile", lambda s: math.exp(-s / 2) if s >= 0 else 0.0),
    "log laplace behind a branch": ("log_profile", lambda s: -math.sqrt(s) if s >= 0 else 0.0),
    "whole numbers": ("profile", whole_numbers),
    "logarithm": ("profile", lambda s: 1 / (1 + math.log(1 + s))),
    "power": ("profile", lambda s: (1 + s) ** -1.5),
    "numpy": ("log_profile", lambda s: -np.log(1 + np.sqrt(s)) * 3),
    "tiny": ("profile", lambda s: 1e-60 * math.exp(-s)),
    "huge": ("profile", lambda s: 1e60 * math.exp(-s)),
    "jitted": ("profile", numba.njit(lambda s: 1.0 / (1.0 + s))),
}
RULERS = {
    "number": lambda d, m: 1.3 * math.sqrt(d),
    "vector": lambda d, m: np.linspace(0.8, 2.0, d) * math.sqrt(d),
    "per query": lambda d, m: lb.per_query(np.geomspace(0.5, 3.0, m) * math.sqrt(d)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("ruler", RULERS)
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_profiles_are_their_twins(name, ruler, dtype):
    rng = np.random.default_rng(1)
    word, function = SMOOTH[name]
    for d, p, m, n in ((2, 1, 9, 300), (3, 4, 70, 129), (8, 20, 13, 64)):
        q, x, y = (rng.normal(size=size).astype(dtype) for size in ((m, d), (n, d), (n, p)))
        kernel = 0.3 * lb.Kernel(**{word: function}, bandwidth=RULERS[ruler](d, m))
        weight = rng.choice([0.0, 0.5, 2.0], n)
        problem = engine.Problem.check(q, x, kernel, sample_weight=weight)
        if vectors.ENABLED:
            assert bool(leaf.as_product(problem).terms) == (kernel.kernel.line is None)
        h = kernel.bandwidth
        gap = (q[:, None].astype(float) - x[None]) / (h.values[:, None, None] if ruler == "per query" else h)
        made = np.vectorize(getattr(function, "py_func", function))((gap**2).sum(-1))
        w = 0.3 * weight * (np.exp(made) if word == "log_profile" else made)
        wide = 1e-5 if dtype == "float32" else 1e-12
        means, log_sums = engine.reductions.mean_and_log_sum(problem, y)
        np.testing.assert_allclose(log_sums, np.log(w.sum(1)), rtol=wide, atol=wide)
        np.testing.assert_allclose(means, w @ y / w.sum(1)[:, None], rtol=0, atol=wide * np.ptp(y))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_far_queries_under_a_profile_of_ones_own(dtype):
    """Weights below the range of float32, and of float64."""
    x = np.linspace(0, 1, 50)[:, None].astype(dtype)
    q = np.array([[0.5], [14.0], [26.0], [60.0]], dtype)
    own = lb.Kernel(lambda s: math.exp(-0.5 * s) if s >= 0 else 0.0, bandwidth=1.0)
    with pytest.warns(lb.EmptyNeighborhoodWarning, match="1 of 4"):
        answer = lb.local_mean(q, x, x[:, 0], own)
    np.testing.assert_allclose(answer[:3], lb.local_mean(q[:3], x, x[:, 0], lb.gaussian()), rtol=2e-5)
    assert np.isnan(answer[3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["gaussian", "gaussian behind a branch", "log laplace behind a branch"])
def test_a_profile_of_ones_own_has_the_same_bits_by_any_split(name, dtype, threads):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(3000, 3)).astype(dtype), rng.normal(size=(3000, 3)).astype(dtype)
    kernel = lb.Kernel(**dict([SMOOTH[name]]), bandwidth=1.0)
    whole = lb.local_mean(x, x, y, kernel)
    for count in (1, 2, 3):
        threads(count)
        np.testing.assert_array_equal(lb.local_mean(x, x, y, kernel), whole)
    np.testing.assert_array_equal(lb.local_mean(x[77:200], x, y, kernel), whole[77:200])


def test_numbers_in_a_function_keep_float32():
    def function(s):
        return (1 - s**3) ** 2 / (1 + 0.5 * s) if s < 1 else 0.0

    part = user._profile(function, False, "float32")
    part.compile(parts.FLOAT32_PROFILE_PART)
    if vectors.ENABLED:
        assert "cvtps2pd" not in next(iter(part.inspect_asm().values()))
    scalar = user.scalar_function(function, numba.float32, dtype="float32")
    scalar.compile((numba.float32,))
    assert scalar.nopython_signatures[0].return_type == numba.float32


def test_weights_that_overflow_are_refused():
    for call in (
        lambda k: lb.local_mean([[1e200]], [[1e200], [1.0]], [1.0, 2.0], k),
        lambda k: lb.local_weights([[1e200]], [[1e200], [1.0]], k),
        lambda k: k([[1e200]], [[1e200], [1.0]]),
        lambda k: k.log([[1e200]], [[1e200], [1.0]]),
        lambda k: engine.quantile(
            engine.Problem.check([[1e200]], [[1e200]], k), np.ones((1, 1)), np.array([0.5])
        ),
    ):
        with pytest.raises(ValueError, match="overflow"):
            call(lb.softmax())
    big = lb.discrete([[1e308, 1e308]])
    for call in (lb.local_mean, lambda *a: lb.local_weights(*a[:2], a[3])):
        with pytest.raises(ValueError, match="overflow"):
            call([[0]], [[0], [1]], [1.0, 2.0], big)
    np.testing.assert_array_equal(lb.local_weights([[30.0]], [[30.0], [0.0]], lb.softmax()), [[1, 0]])


def test_values_near_the_largest_float():
    y = np.array([1e308, 1.5e308, -1e308, 1.7e308])
    x = np.zeros((4, 1))
    assert lb.local_mean([[0.0]], x, y, "uniform")[0] == pytest.approx(0.8e308)
    assert lb.local_mean([[9.0]], x, y, "uniform", empty="mean")[0] == pytest.approx(0.8e308)
    assert lb.local_mean([[0.0]], x, np.full(4, -1.7e308))[0] == pytest.approx(-1.7e308, rel=1e-15)


# -- the disk cache ----------------------------------------------------------------------------------------------------


def test_the_cache_is_tied_to_all_sources_of_the_engine():
    for function in (sweep.sweep, program.evaluate, fused_sweep._fused_sweep, exponential.exp_negative):
        stamp = function._cache._cache_file._source_stamp
        assert isinstance(stamp, tuple)
        assert stamp[1] == parts.SOURCES


def test_the_digest_sees_every_source_and_the_kind_of_vectors(tmp_path, monkeypatch):
    file = tmp_path / "a.py"
    file.write_text("a = 1")
    first = parts.digest(file)
    file.write_text("a = 2")
    assert parts.digest(file) != first
    file.write_text("a = 1")
    assert parts.digest(file) == first
    monkeypatch.setattr(parts, "VECTOR_BYTES", 1)
    assert parts.digest(file) != first


CALLER = """
from locbook.engine.parts import jit
import callee_of_a_test as callee

@jit
def caller(x):
    return callee.twice(x) + 1
"""
CALLEE = """
from locbook.engine.parts import inner

@inner
def twice(x):
    return {factor} * x
"""


def test_a_change_in_another_file_of_the_engine_compiles_anew(tmp_path, monkeypatch):
    def load(name):
        spec = importlib.util.spec_from_file_location(name, tmp_path / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    def run(factor):
        callee = tmp_path / "callee_of_a_test.py"
        callee.write_text(CALLEE.format(factor=factor))
        monkeypatch.setattr(parts, "SOURCES", parts.digest(callee))  # as if it were one of the engine's
        load("callee_of_a_test")
        caller = load("caller_of_a_test").caller
        return caller(10), sum(caller.stats.cache_hits.values())

    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "caller_of_a_test.py").write_text(CALLER)
    assert run(2) == (21, 0)
    assert run(2) == (21, 1)  # the cache works
    assert run(3) == (31, 0)  # and is not trusted after the change


def test_caching_may_be_off():
    @numba.njit
    def plain(x):
        return x

    assert parts._tied(plain) is plain
    assert parts._tied(plain.py_func) is plain.py_func  # as under NUMBA_DISABLE_JIT


def test_what_has_no_wrapper_for_python_says_so():
    # Numba itself would crash
    for function in (sweep.push, program.measure, program.evaluate):
        with pytest.raises(TypeError, match="compiled code only"):
            function(1, 2)
