"""Kernels are values: equal when they say the same, hashable, printable, picklable, immutable."""

import copy
import math
import pickle

import numpy as np
import pytest
from numba import njit
from sklearn.base import clone

import locbook as lb
from locbook.kernels.base import RadialKernel

COVARIANCE = [[2.0, 0.5], [0.5, 1.0]]
MASK = np.array([[True, False], [False, True], [True, True]])


def plain_profile(s):
    return 1.0 / (1.0 + s)


@njit
def compiled_profile(s):
    return 1.0 / (1.0 + s)


def own_distance(a, b):
    return abs(a[0] - b[0])


#: Constructors that cannot be called without arguments.
NEED_MORE = ("knn", "discrete", "window", "relative_bias")
#: Kernels whose repr is Python that builds them again.
BUILDERS = {
    **{name: lb.KERNELS[name] for name in lb.KERNELS if name not in NEED_MORE},
    "number": lambda: lb.gaussian(0.1 + 0.2),
    "tiny": lambda: lb.gaussian(1e-100),
    "vector": lambda: lb.laplace([0.5, 2.0 / 3.0]),
    "matrix": lambda: lb.gaussian([[1.0, 0.25], [0.0, 2.0]]),
    "columns": lambda: lb.tricube(2, on=[2, 0]),
    "one column": lambda: lb.tricube(2, on=1),
    "metric": lambda: lb.uniform(2.0, metric="haversine"),
    "minkowski": lambda: lb.uniform(2.0, metric=lb.minkowski(1.5)),
    "periodic": lambda: lb.uniform(2.0, metric=lb.periodic(2 * math.pi), on=0),
    "periods": lambda: lb.gaussian([1.0, 2.0], metric=lb.periodic([1.0, 360.0])),
    "mahalanobis": lambda: lb.cauchy(metric=lb.mahalanobis(COVARIANCE)),
    "mahalanobis of one column": lambda: lb.cauchy(metric=lb.mahalanobis([[2.5]])),
    "student": lambda: lb.student_t(0.3, nu=4, metric="cosine", on=[0, 1]),
    "rational": lambda: lb.rational_quadratic([1.0, 2.0], alpha=0.25),
    "per query": lambda: lb.gaussian(lb.per_query([0.1, 1.0 / 3.0])),
    "per sample": lambda: lb.gaussian(lb.per_sample([0.1, 0.2])),
    "knn bandwidth": lambda: lb.gaussian(lb.knn_bandwidth(5)),
    "knn bandwidth, all": lambda: lb.uniform(
        lb.knn_bandwidth(5, side="sample", scale=0.7), metric="manhattan"
    ),
    "knn": lambda: lb.knn(7),
    "knn, all": lambda: lb.knn(7, ties="include", metric="nan_euclidean", on=[1]),
    "softmax, columns": lambda: lb.softmax(math.sqrt(3), on=[0, 2]),
    "von mises, columns": lambda: lb.von_mises(3, on=[1]),
    "discrete": lambda: lb.discrete([[0.1, 1.0, 0.0]]),
    "discrete, column": lambda: lb.discrete([[0.1], [1.0]], on=2),
    "discrete of one": lambda: lb.discrete([[0.5]]),
    "causal, column": lambda: lb.causal(on=3),
    "window": lambda: lb.window(3, on=1),
    "relative bias": lambda: lb.relative_bias([0.1, -2.0]),
    "relative bias, all": lambda: lb.relative_bias([0.5], on=2, first=-3),
    "user": lambda: lb.Kernel(profile=plain_profile, bandwidth=0.5, metric="manhattan", on=[0]),
    "user, jitted": lambda: lb.Kernel(profile=compiled_profile),
    "user, logarithm": lambda: lb.Kernel(log_profile=plain_profile, bandwidth=[1.0, 2.0]),
    "user metric": lambda: lb.gaussian(0.5, metric=own_distance),
    "sum": lambda: lb.gaussian() + lb.uniform() + lb.knn(2),
    "sum on the right": lambda: lb.gaussian() + (lb.uniform() + lb.knn(2)),
    "epsilon": lambda: 1e-3 + lb.gaussian(),
    "sum of epsilons": lambda: (lb.gaussian() + 0.1) + (lb.uniform() + 0.2),
    "product": lambda: lb.gaussian() * lb.uniform() * lb.knn(2),
    "product on the right": lambda: lb.gaussian() * (lb.uniform() * lb.knn(2)),
    "product of sums": lambda: (lb.gaussian() + 0.5) * (lb.uniform() + lb.knn(2)),
    "sum of products": lambda: lb.gaussian() * lb.uniform() + lb.knn(2) * lb.softmax(),
    "scaled": lambda: 0.1 * lb.gaussian(),
    "scaled sum": lambda: 0.1 * (lb.gaussian() + 0.1),
    "scaled product": lambda: 2.0 * (lb.gaussian() * lb.uniform()),
    "product of scaled": lambda: (2.0 * lb.gaussian()) * (3.0 * lb.uniform()),
    "scaled twice": lambda: 0.5 * (2 * lb.gaussian()),
    "sum of scaled": lambda: 0.5 * lb.gaussian() + 2 * lb.uniform(),
    "hollow": lambda: lb.gaussian().hollow(),
    "hollow sum": lambda: (lb.gaussian() + 0.1).hollow() + 0.1,
    "hollow product": lambda: (lb.gaussian() * lb.knn(3)).hollow() * lb.uniform(),
    "hollow scaled": lambda: (2.0 * lb.gaussian()).hollow(),
    "scaled hollow": lambda: 2.0 * lb.gaussian().hollow(),
    "hollow twice": lambda: lb.gaussian().hollow().hollow(),
}

#: Kernels whose repr is for the eye, because it would be too long.
LONG = {
    "long vector": lambda: lb.gaussian(np.linspace(1, 2, 17)),
    "long rulers": lambda: lb.gaussian(lb.per_query(np.linspace(1, 2, 9))),
    "table": lambda: lb.discrete(np.ones((5, 5))),
    "offsets": lambda: lb.relative_bias(np.zeros(9)),
    "masked": lambda: lb.gaussian().masked(MASK),
    "masked in a sum": lambda: (lb.gaussian() + 0.1).masked(MASK) + lb.uniform(),
}
ALL = {**BUILDERS, **LONG}


@pytest.mark.parametrize("name", BUILDERS)
def test_the_repr_builds_the_kernel_again(name):
    kernel = BUILDERS[name]()
    names = {n: getattr(lb, n) for n in lb.__all__}
    names |= {f.__name__: f for f in (plain_profile, compiled_profile, own_distance)}
    again = eval(repr(kernel), {"__builtins__": {}}, names)
    assert again == kernel
    assert repr(again) == repr(kernel)
    assert len(repr(kernel)) < 200


@pytest.mark.parametrize("name", LONG)
def test_a_long_repr_is_cut(name):
    assert len(repr(LONG[name]())) < 200
    assert "<" in repr(LONG[name]())


@pytest.mark.parametrize("name", ALL)
def test_two_that_say_the_same_are_equal(name):
    one, other = ALL[name](), ALL[name]()
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


def test_those_that_say_different_things_are_not_equal():
    kernels = [build() for name, build in ALL.items() if name not in ("sum on the right",)]
    by_repr = {repr(k): k for k in kernels}
    assert len(set(by_repr.values())) == len(by_repr)
    assert len(by_repr) > 55
    for kernel in kernels:
        assert kernel != kernel.hollow()
        assert kernel != 1.0 * kernel
        assert (kernel == "gaussian(1.0)") is False
        assert (kernel == None) is False  # noqa: E711


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lb.gaussian(1.0), lb.gaussian([1.0])),
        (lb.gaussian([1.0, 2.0]), lb.gaussian([2.0, 1.0])),
        (lb.gaussian([1.0]), lb.gaussian([[1.0]])),
        (lb.gaussian(), lb.gaussian(on=0)),
        (lb.gaussian(), lb.gaussian(metric="manhattan")),
        (lb.gaussian(), lb.laplace()),
        (lb.student_t(nu=3), lb.student_t(nu=4)),
        (lb.student_t(nu=3), lb.rational_quadratic(alpha=3)),
        (lb.gaussian() + lb.uniform(), lb.uniform() + lb.gaussian()),
        (lb.gaussian() + lb.uniform(), lb.gaussian() * lb.uniform()),
        (lb.gaussian() + (lb.uniform() + lb.knn(2)), lb.gaussian() + lb.uniform() + lb.knn(2)),
        (lb.gaussian() + 1, 1 * lb.gaussian()),
        (lb.knn(3), lb.knn(3, ties="include")),
        (lb.softmax(2.0), lb.von_mises(2.0)),
        (lb.discrete([[1.0, 2.0]]), lb.discrete([[1.0], [2.0]])),
        (lb.relative_bias([1.0, 2.0]), lb.relative_bias([1.0, 2.0], first=1)),
        (lb.gaussian().masked(MASK), lb.gaussian().masked(~MASK)),
        (lb.gaussian().masked(MASK), lb.gaussian().masked(MASK.T)),
        (lb.gaussian(lb.per_query([1.0])), lb.gaussian(lb.per_sample([1.0]))),
        (lb.Kernel(profile=plain_profile), lb.Kernel(log_profile=plain_profile)),
        (lb.Kernel(profile=plain_profile), lb.Kernel(profile=compiled_profile)),
        (lb.Kernel(profile=lambda s: 1.0), lb.Kernel(profile=lambda s: 1.0)),
    ],
    ids=repr,
)
def test_unequal(one, other):
    assert one != other


def test_one_thing_said_twice_is_equal():
    assert lb.window(2, on=1) == lb.uniform(2.0, on=[1]) == lb.Kernel("uniform", 2, on=(1,))
    assert lb.gaussian() + 0.5 == 0.5 + lb.gaussian()
    assert (
        lb.gaussian() * 2
        == 2.0 * lb.gaussian()
        == np.float32(2) * lb.gaussian()
        == np.int64(2) * lb.gaussian()
    )


# -- copies and pickles --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_pickling_keeps_the_value(name):
    kernel = ALL[name]()
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert type(again) is type(kernel)
    assert repr(again) == repr(kernel)
    for leaf in (*again.leaves(), again):
        for field in leaf._fields:
            value = getattr(leaf, field)
            value = getattr(value, "values", getattr(value, "parameter", value))
            assert not (isinstance(value, np.ndarray) and value.flags.writeable)


@pytest.mark.parametrize("name", ["user", "user, jitted", "user metric", "knn, all", "hollow", "matrix"])
def test_a_pickled_kernel_weighs_as_before(name):
    x = np.array(
        [[0.0, 1.0], [0.5, 2.0], [0.7, -1.0], [3.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.1], [9.0, 9.0]]
    )
    kernel = ALL[name]()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(kernel))(x), kernel(x))


def test_a_lambda_cannot_be_pickled_and_the_message_says_what_to_do():
    def local(s):
        return 1.0

    for function in (lambda s: 1.0, local):
        for kernel in (
            lb.Kernel(profile=function),
            lb.Kernel(log_profile=function) + 0.5,
            lb.gaussian(metric=function),
            lb.knn(2, metric=function).hollow(),
        ):
            with pytest.raises(
                pickle.PicklingError, match=r"cannot be pickled.*lambda or local.*numba\.njit"
            ):
                pickle.dumps(kernel)


def test_a_local_jitted_function_pickles():
    scale = 2.0
    kernel = lb.Kernel(profile=njit(lambda s: scale / (scale + s)))
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again([[0.0]], [[1.0]]), [[2 / 3]])


@pytest.mark.parametrize("name", [*ALL, "lambda"])
def test_a_copy_is_the_kernel_itself(name):
    kernel = lb.Kernel(profile=lambda s: 1.0) if name == "lambda" else ALL[name]()
    assert copy.copy(kernel) is kernel
    assert copy.deepcopy(kernel) is kernel
    assert clone(kernel, safe=False) is kernel


def test_an_estimator_with_a_kernel_clones():
    model = lb.LocalMeanRegressor(kernel=lb.Kernel(profile=lambda s: 1.0) + 0.1)
    assert clone(model).kernel is model.kernel


def test_metrics_and_rulers_pickle_and_copy():
    for value in (
        lb.periodic([1.0, 2.0]),
        lb.mahalanobis(COVARIANCE),
        lb.per_query([1.0]),
        lb.knn_bandwidth(2),
    ):
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
            assert again == value
            assert hash(again) == hash(value)


# -- immutability --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_nothing_can_be_set_or_deleted(name):
    kernel = ALL[name]()
    key = hash(kernel)
    for field in (*kernel._fields, "anything"):
        with pytest.raises(AttributeError, match=f"a kernel is immutable.*'{field}'"):
            setattr(kernel, field, 1.0)
        with pytest.raises(AttributeError, match="a kernel is immutable"):
            delattr(kernel, field)
    assert hash(kernel) == key


LEARNED = ("number", "vector", "softmax, columns", "von mises, columns", "discrete of one", "relative bias")


@pytest.mark.parametrize("name", ALL)
def test_parameters_build_the_kernel_again(name):
    kernel = ALL[name]() if name not in NEED_MORE else BUILDERS[name]()
    parameters = kernel.parameters
    assert len(parameters) == len(list(kernel.leaves()))
    assert kernel.with_parameters(parameters) == kernel.with_parameters([None] * len(parameters)) == kernel
    if name in LEARNED:
        changed = kernel.with_parameters([2 * np.asarray(parameters[0])])
        np.testing.assert_array_equal(changed.parameters[0], 2 * np.asarray(parameters[0]))
        assert changed != kernel
        assert repr(changed).split("(")[0] == repr(kernel).split("(")[0]


def test_parameters_that_fit_no_leaf_are_refused():
    kernel = 2.0 * lb.gaussian(0.5) * lb.causal(on=1) + 0.1
    assert kernel.parameters == (0.5, None, None)
    assert kernel.with_parameters([3.0, None, None]) == 2.0 * lb.gaussian(3.0) * lb.causal(on=1) + 0.1
    for parameters, message in (
        ([1.0], "parameters must have one entry for each of the 3 leaves, got 1"),
        ([1.0, 1.0, None], r"parameters: kernel causal\(on=1\) has none, got 1.0"),
        ([-1.0, None, None], "bandwidth must be a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            kernel.with_parameters(parameters)
    with pytest.raises(ValueError, match="follows from the samples"):
        lb.gaussian(lb.knn_bandwidth(3)).with_parameters([1.0])
    per_query = lb.gaussian(lb.per_query([1.0, 2.0])).with_parameters([[3.0, 4.0]])
    assert per_query == lb.gaussian(lb.per_query([3.0, 4.0]))


def test_arrays_inside_are_private_and_read_only():
    table, mask = np.ones((2, 2)), MASK.copy()
    discrete, masked = lb.discrete(table), lb.gaussian().masked(mask)
    biased = lb.relative_bias(table[0])
    table[0, 0], mask[0, 0] = 7.0, False
    assert discrete.matrix[0, 0] == biased.bias[0] == 1.0
    assert masked.mask[0, 0]
    assert mask.flags.writeable
    for array in (discrete.matrix, masked.mask):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0
    with pytest.raises(ValueError, match="read-only"):
        biased.bias[0] = 0


# -- the algebra refuses what it cannot mean -----------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 0.0, -2.5, math.nan, math.inf, 10**400])
def test_factors_and_epsilons_are_positive_and_finite(value):
    with pytest.raises(ValueError, match="factor must be a finite number above 0"):
        value * lb.gaussian()
    with pytest.raises(ValueError, match="epsilon must be a finite number above 0"):
        lb.gaussian() + value


@pytest.mark.parametrize(
    "value", [True, "2", None, [2.0], 1j, np.array([1.0, 2.0]), np.True_, object()], ids=repr
)
def test_only_numbers_and_kernels_take_part(value):
    for operate in (
        lambda: lb.gaussian() + value,
        lambda: value + lb.gaussian(),
        lambda: lb.gaussian() * value,
        lambda: value * lb.gaussian(),
    ):
        with pytest.raises(TypeError):
            operate()


def test_other_operators_have_no_meaning():
    for operate in (
        lambda k: k - k,
        lambda k: k / 2,
        lambda k: k**2,
        lambda k: -k,
        lambda k: 1 - k,
        lambda k: k < k,
    ):
        with pytest.raises(TypeError):
            operate(lb.gaussian())


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        ([[1, 0]], "mask must be boolean of shape .m, n., got int64"),
        ([True, False], r"mask must be boolean .*got bool of shape \(2,\)"),
        (None, "mask must be boolean"),
        (True, "mask must be boolean"),
        ([["a"]], "mask must be boolean"),
    ],
)
def test_a_mask_is_a_boolean_matrix(mask, message):
    with pytest.raises(TypeError, match=message):
        lb.gaussian().masked(mask)


def test_kinds_of_kernels():
    assert type(lb.Kernel(profile=plain_profile)) is RadialKernel
    assert lb.gaussian().parts == ()
    kernel = (lb.gaussian() + 0.5).hollow() * lb.knn(3)
    assert [repr(leaf) for leaf in kernel.leaves()] == ["gaussian(1.0)", "0.5", "knn(3)"]
    assert kernel.logarithmic
    assert kernel.adaptive
    assert not kernel.full_support
    assert lb.gaussian(lb.knn_bandwidth(3)).adaptive
    assert not lb.gaussian(lb.per_query([1.0])).adaptive
    assert (lb.uniform() + 0.1).full_support
    assert not (lb.uniform() * lb.gaussian()).full_support
    assert lb.gaussian(metric="nan_euclidean").hollow().allows_nan
    assert not (lb.gaussian(metric="nan_euclidean") * lb.causal()).allows_nan
