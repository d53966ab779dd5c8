"""The registry, the constructors, and what they refuse."""

import inspect
import math

import numpy as np
import pytest

import locbook as lb
from locbook.kernels.constructors import make_kernel

NAMES = [
    "uniform",
    "triangular",
    "epanechnikov",
    "biweight",
    "triweight",
    "tricube",
    "cosine",
    "gaussian",
    "laplace",
    "cauchy",
    "student_t",
    "rational_quadratic",
    "softmax",
    "von_mises",
    "knn",
    "discrete",
    "causal",
    "window",
    "relative_bias",
]
RADIAL = [name for name in NAMES if name in lb.PROFILES]


def test_the_registry_holds_every_constructor():
    assert list(lb.KERNELS) == NAMES
    for name in NAMES:
        assert lb.KERNELS[name] is getattr(lb, name) is lb.get_kernel(name)
        assert name in lb.__all__
        assert name in lb.kernels.__all__
    assert set(lb.PROFILES) < set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_constructor_is_documented(name):
    function = lb.KERNELS[name]
    for parameter in inspect.signature(function).parameters:
        assert f"    {parameter} : " in function.__doc__ or parameter in ("nu", "alpha")
    assert ":math:" in function.__doc__


@pytest.mark.parametrize("name", ["Gaussian", "gauss", "", None, 3, ["gaussian"], lb.gaussian])
def test_an_unknown_kernel_is_named_with_the_known_ones(name):
    with pytest.raises(ValueError, match=r"kernel must be a Kernel or one of uniform, .*relative_bias, got"):
        lb.get_kernel(name)


@pytest.mark.parametrize("name", RADIAL)
def test_kernels_of_a_distance(name):
    kernel = lb.KERNELS[name](2, metric="manhattan", on=1)
    assert kernel.bandwidth == 2.0
    assert kernel.named is lb.PROFILES[name]
    assert kernel.on == (1,)
    assert lb.KERNELS[name]().bandwidth == 1.0
    x = np.array([[5.0, 0.0], [-5.0, 1.0], [0.0, 0.5]])
    weights = kernel(x)
    assert (weights.diagonal() == 1).all()
    np.testing.assert_array_equal(weights, weights.T)
    assert kernel.logarithmic == lb.PROFILES[name].logarithmic
    assert kernel.full_support == math.isinf(lb.PROFILES[name].support)


#: Parameter -> (a call that takes it, values of the wrong type, values out of range).
NUMBERS = {
    "nu": lambda v: lb.student_t(nu=v),
    "alpha": lambda v: lb.rational_quadratic(alpha=v),
    "temperature": lb.softmax,
    "concentration": lb.von_mises,
    "width": lb.window,
    "bandwidth": lb.gaussian,
    "p": lb.minkowski,
    "factor": lambda v: lb.kernels.base.ScaledKernel(lb.gaussian(), v),
    "epsilon": lb.kernels.base.ConstantKernel,
}


@pytest.mark.parametrize("parameter", NUMBERS)
@pytest.mark.parametrize(
    "value", [True, np.False_, "1", None, 1 + 0j, np.complex64(1), object(), b"1"], ids=repr
)
def test_a_number_of_the_wrong_type_is_named(parameter, value):
    with pytest.raises(TypeError, match=f"{parameter} must be "):
        NUMBERS[parameter](value)


@pytest.mark.parametrize("parameter", NUMBERS)
@pytest.mark.parametrize("value", [0, 0.0, -1, -1e-300, math.nan, math.inf, -math.inf, 10**400], ids=repr)
def test_a_number_out_of_range_is_named(parameter, value):
    with pytest.raises(ValueError, match=f"{parameter} must be a finite number above 0"):
        NUMBERS[parameter](value)


@pytest.mark.parametrize("parameter", [p for p in NUMBERS if p != "bandwidth"])
@pytest.mark.parametrize("value", [[1.0], np.array([1.0]), (1.0, 2.0), [[1.0]]], ids=repr)
def test_one_number_is_no_array(parameter, value):
    with pytest.raises(TypeError, match=f"{parameter} must be a number"):
        NUMBERS[parameter](value)


@pytest.mark.parametrize("parameter", NUMBERS)
@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int16(2), np.uint8(2), np.array(2.0)], ids=repr)
def test_a_number_of_any_kind_is_taken(parameter, value):
    assert NUMBERS[parameter](value) == NUMBERS[parameter](2.0)


@pytest.mark.parametrize(
    ("on", "error", "message"),
    [
        (-1, ValueError, "on must be at least 0, got -1"),
        (1.0, TypeError, "on must be an integer, got 1.0"),
        (True, TypeError, "on must be an integer, got True"),
        ("x", TypeError, "on must be an integer, got 'x'"),
        ("", ValueError, "on must name different columns, at least one"),
        ([], ValueError, "on must name different columns, at least one"),
        ([0, 0], ValueError, r"on must name different columns, at least one, got \[0, 0\]"),
        ([0, 1.5], TypeError, "on must be an integer, got 1.5"),
        ([[0]], TypeError, "on must be an integer"),
        ([True, False], TypeError, "on must be an integer, got True"),
        (object(), TypeError, "on must be an integer"),
    ],
)
def test_bad_columns_are_named(on, error, message):
    for make in (lb.gaussian, lb.softmax, lb.von_mises, lb.causal):
        with pytest.raises(error, match=message):
            make(on=on)
    for call in (
        lambda: lb.knn(2, on=on),
        lambda: lb.discrete([[1.0]], on=on),
        lambda: lb.window(1.0, on=on),
        lambda: lb.relative_bias([0.0], on=on),
    ):
        with pytest.raises(error, match=message):
            call()


def test_columns_of_any_kind_are_taken():
    assert (
        lb.gaussian(on=np.int64(1)).on == lb.gaussian(on=[1]).on == lb.gaussian(on=np.array([1])).on == (1,)
    )
    assert lb.gaussian(on=range(3)).on == (0, 1, 2)
    assert lb.gaussian(on=[2, 0]).on == (2, 0)


@pytest.mark.parametrize(
    "make", [lb.causal, lambda on: lb.discrete([[1.0]], on=on), lambda on: lb.relative_bias([0.0], on=on)]
)
def test_a_kernel_of_one_column_takes_one(make):
    with pytest.raises(ValueError, match=r"on must be one column, got \[0, 1\]"):
        make(on=[0, 1])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1, got 0"),
        ({"n_neighbors": -3}, ValueError, "n_neighbors must be at least 1, got -3"),
        ({"n_neighbors": 3.0}, TypeError, "n_neighbors must be an integer, got 3.0"),
        ({"n_neighbors": np.float64(3)}, TypeError, "n_neighbors must be an integer"),
        ({"n_neighbors": True}, TypeError, "n_neighbors must be an integer, got True"),
        ({"n_neighbors": "3"}, TypeError, "n_neighbors must be an integer, got '3'"),
        ({"n_neighbors": None}, TypeError, "n_neighbors must be an integer, got None"),
        ({"n_neighbors": [3]}, TypeError, r"n_neighbors must be an integer, got \[3\]"),
        ({"ties": "first"}, ValueError, "ties must be one of 'index', 'include', got 'first'"),
        ({"ties": None}, ValueError, "ties must be one of 'index', 'include', got None"),
        ({"ties": ["index"]}, ValueError, "ties must be one of 'index', 'include'"),
        ({"metric": "euclid"}, ValueError, "metric must be one of"),
        ({"metric": 3}, TypeError, "metric must be a name"),
    ],
)
def test_bad_neighbours_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        lb.knn(**{"n_neighbors": 3, **arguments})


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        ([[1.0, -0.5]], ValueError, "matrix must be >= 0, got -0.5"),
        ([[1.0, math.nan]], ValueError, "matrix contains NaN .first at row 0, column 1"),
        ([[1.0, math.inf]], ValueError, "matrix contains infinity"),
        ([1.0, 2.0], ValueError, "matrix must be 2-D"),
        (np.ones((1, 1, 1)), ValueError, "matrix must be 2-D"),
        (np.ones((0, 3)), ValueError, "matrix must not be empty"),
        ([[1.0], [1.0, 2.0]], ValueError, "matrix must be a rectangular array"),
        ([["a"]], TypeError, "matrix must be numeric"),
        ([[1j]], TypeError, "matrix: complex"),
        (None, (TypeError, ValueError), "matrix must be"),
    ],
)
def test_bad_tables_are_named(matrix, error, message):
    with pytest.raises(error, match=message):
        lb.discrete(matrix)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bias": [0.0, np.inf]}, ValueError, "bias contains infinity"),
        ({"bias": [[0.0]]}, ValueError, "bias must be 1-D"),
        ({"bias": []}, ValueError, "bias must not be empty"),
        ({"bias": [True]}, TypeError, "bias must hold numbers"),
        ({"bias": [0.0], "first": 0.5}, TypeError, "first must be an integer, got 0.5"),
        ({"bias": [0.0], "first": 2**60}, ValueError, "first must be between"),
    ],
)
def test_bad_biases_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        lb.relative_bias(**arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lb.Kernel(), ValueError, "give exactly one of profile and log_profile"),
        (
            lambda: lb.Kernel(profile=abs, log_profile=abs),
            ValueError,
            "give exactly one of profile and log_profile",
        ),
        (lambda: lb.Kernel(profile=3.0), TypeError, "^profile must be a function of s .*, or a name"),
        (lambda: lb.Kernel(log_profile="gaussian"), TypeError, "^log_profile must be a function of s"),
        (lambda: lb.Kernel(profile="bell"), ValueError, "profile must be one of uniform, .*got 'bell'"),
        (lambda: lb.Kernel(profile="student_t"), ValueError, "kernel 'student_t' needs nu"),
        (
            lambda: lb.Kernel(profile="gaussian", parameter=2.0),
            ValueError,
            "'gaussian' has no shape parameter",
        ),
        (
            lambda: lb.Kernel(profile=abs, parameter=2.0),
            ValueError,
            "parameter belongs to a built-in profile",
        ),
        (lambda: lb.Kernel(profile=abs, metric="euclid"), ValueError, "metric must be one of"),
    ],
)
def test_a_bad_kernel_of_ones_own_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_estimators_parameters_make_a_kernel():
    assert make_kernel("gaussian") == lb.gaussian()
    assert make_kernel("gaussian", 2.0, "manhattan", on=None) == lb.gaussian(2.0, metric="manhattan")
    assert make_kernel("student_t", shape=5) == lb.student_t(nu=5)
    assert make_kernel("rational_quadratic", 2.0, shape=0.5) == lb.rational_quadratic(2.0, alpha=0.5)
    assert make_kernel("knn", n_neighbors=4, ties="include") == lb.knn(4, ties="include")
    assert make_kernel(lb.gaussian(3.0)) == lb.gaussian(3.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "bell"}, "kernel must be a Kernel or one of"),
        ({"kernel": None}, "kernel must be a Kernel or one of"),
        ({"kernel": lb.gaussian(), "bandwidth": 1.0}, "bandwidth must be None when kernel is a Kernel"),
        ({"kernel": "knn"}, "kernel 'knn' needs n_neighbors"),
        (
            {"kernel": "knn", "n_neighbors": 3, "bandwidth": 1.0},
            "bandwidth is no parameter of kernel 'knn'; it takes",
        ),
        ({"kernel": "gaussian", "n_neighbors": 3}, "n_neighbors is no parameter of kernel 'gaussian'"),
        ({"kernel": "gaussian", "shape": 3}, "shape is no parameter of kernel 'gaussian'"),
        ({"kernel": "softmax", "metric": "cosine"}, "metric is no parameter of kernel 'softmax'"),
        ({"kernel": "student_t", "shape": -1}, "nu must be a finite number above 0"),
    ],
)
def test_parameters_that_a_kernel_does_not_take_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_kernel(**arguments)
