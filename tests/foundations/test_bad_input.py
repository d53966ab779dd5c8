"""Whatever is wrong with an argument is said before compiled code runs, by the argument's name."""

import numpy as np
import pytest
import scipy.sparse

import locbook as lb
from locbook.engine import driver, fused_sweep

X = np.arange(12.0).reshape(6, 2)
Y = np.arange(6.0)
Q = X[:3] + 0.5
SEEN = np.ones((3, 6), dtype=bool)


def with_nan(a):
    a = np.array(a, dtype=float)
    a.flat[1] = np.nan
    return a


def with_inf(a):
    a = np.array(a, dtype=float)
    a.flat[1] = -np.inf
    return a


#: What is wrong with an array of numbers, whichever it is.
BROKEN = {
    "NaN": with_nan,
    "infinite": with_inf,
    "complex": lambda a: np.asarray(a) + 1j,
    "text": lambda a: np.asarray(a).astype(str),
    "object": lambda a: np.array([{}] * np.size(a), dtype=object).reshape(np.shape(a)),
    "empty": lambda a: np.asarray(a)[:0],
    "ragged": lambda a: [[1.0], [1.0, 2.0], [1.0]],
    "dates": lambda a: np.asarray(a).astype("datetime64[s]"),
    "three dimensions": lambda a: np.asarray(a)[:, None, None],
}
MATRICES = BROKEN | {
    "one dimension": lambda a: np.asarray(a)[:, 0],
    "sparse": scipy.sparse.csr_array,
    "another number of columns": lambda a: np.asarray(a)[:, :1],
    "no columns": lambda a: np.asarray(a)[:, :0],
}
VECTORS = BROKEN | {"short": lambda a: a[:-1], "long": lambda a: np.append(a, a[-1:])}
WEIGHTS = VECTORS | {
    "negative": lambda a: -a,
    "all zero": lambda a: 0 * a,
    "two columns": lambda a: np.stack([a, a], 1),
}

#: Function -> its good arguments.
GOOD = {
    "local_mean": {"queries": Q, "samples": X, "values": Y, "kernel": "gaussian", "sample_weight": Y + 1, "mask": SEEN},
    "local_mean_vjp": {"cotangent": Q[:, 0], "queries": Q, "samples": X, "values": Y, "kernel": "gaussian",
                       "sample_weight": Y + 1, "mask": SEEN},
    "local_weights": {"queries": Q, "samples": X, "kernel": "gaussian", "sample_weight": Y + 1, "mask": SEEN},
    "explain": {"query": Q[0], "samples": X, "values": Y, "kernel": "gaussian", "sample_weight": Y + 1},
    "smoother_matrix": {"samples": X, "kernel": "gaussian", "sample_weight": Y + 1},
    "degrees_of_freedom": {"samples": X, "kernel": "gaussian", "sample_weight": Y + 1},
    "leave_one_out": {"samples": X, "values": Y, "kernel": "gaussian", "sample_weight": Y + 1},
    "select_bandwidth": {"samples": X, "values": Y, "kernel": "gaussian", "sample_weight": Y + 1},
    "learn_metric": {"samples": X, "values": Y, "kernel": "gaussian", "sample_weight": Y + 1},
    "log_density": {"queries": Q, "samples": X, "kernel": "gaussian", "sample_weight": Y + 1},
    "density": {"queries": Q, "samples": X, "kernel": "gaussian", "sample_weight": Y + 1},
}  # fmt: skip
ARRAYS = {"queries": MATRICES, "samples": MATRICES, "values": VECTORS, "sample_weight": WEIGHTS}
#: A pair that does not fit may be told by either name.
SAID = {"queries": "quer", "samples": "sample", "values": "values", "sample_weight": "sample_weight"}

CASES = [
    pytest.param(function, argument, broken, id=f"{function}-{argument}-{broken}")
    for function, good in GOOD.items()
    for argument in good
    if argument in ARRAYS
    for broken in ARRAYS[argument]
    if not (broken == "another number of columns" and "queries" not in good and "query" not in good)
    and not (function == "log_density" and broken == "x")
]


@pytest.fixture
def no_compiled_code(monkeypatch):
    """Fail the test where a compiled loop is reached."""

    def reached(*arguments):
        raise AssertionError("compiled code ran")

    monkeypatch.setattr(driver, "sweep", reached)
    monkeypatch.setattr(fused_sweep, "fused_sweep", reached)


def call(function, **changed):
    return getattr(lb, function)(**(GOOD[function] | changed))


@pytest.mark.parametrize("function", GOOD)
def test_the_good_arguments_are_good(function):
    call(function)


@pytest.mark.parametrize(("function", "argument", "broken"), CASES)
def test_broken_arrays(function, argument, broken, no_compiled_code):
    with pytest.raises((ValueError, TypeError), match=SAID[argument]):
        call(function, **{argument: ARRAYS[argument][broken](GOOD[function][argument])})


@pytest.mark.parametrize("function", GOOD)
@pytest.mark.parametrize("kernel", ["gauss", "knn", "student", None, 1.0, lb.gaussian, "discrete"])
def test_broken_kernels(function, kernel, no_compiled_code):
    with pytest.raises((ValueError, TypeError), match="kernel"):
        call(function, kernel=kernel)


@pytest.mark.parametrize("function", ["local_mean", "local_weights"])
@pytest.mark.parametrize(
    "mask", [np.ones((3, 6)), np.ones((6, 3), bool), np.ones((1, 6), bool), np.ones(6, bool), [[1, 0]], "all"]
)
def test_broken_masks(function, mask, no_compiled_code):
    with pytest.raises((ValueError, TypeError), match="mask"):
        call(function, mask=mask)


@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [
        *((f, "empty", v) for f in ("local_mean", "local_weights", "explain") for v in ("zero", None, 1)),
        *((f, "empty", v) for f in ("smoother_matrix", "leave_one_out") for v in ("zero", None, 1)),
        *((f, "prune", v) for f in ("local_mean", "log_density", "density") for v in ("never", None, 1)),
        ("leave_one_out", "method", "refit"), ("leave_one_out", "method", None),
        ("select_bandwidth", "method", "aic"),
        *(("explain", "top", v) for v in (0, 2.0, True, "3")),
        *(("explain", "query", v) for v in (X[:2], [[np.inf, 0.0]], [np.nan, 0.0], [1.0], "ab", [1j, 0], [], 3.0)),
    ],
)  # fmt: skip
def test_broken_options(function, argument, value, no_compiled_code):
    said = "quer" if argument == "query" else argument
    with pytest.raises((ValueError, TypeError), match=said):
        call(function, **{argument: value})


@pytest.mark.parametrize("method", ["hollow", "shortcut"])
def test_the_policy_is_checked_though_nobody_is_empty(method, no_compiled_code):
    with pytest.raises(ValueError, match="empty"):
        lb.leave_one_out(X, Y, "gaussian", method=method, empty="zero")


@pytest.mark.parametrize("k", [0, -1, 7, 2.0, True, "2", np.float64(2)])
def test_broken_neighbor_counts(k):
    calls = (
        lambda: lb.local_mean(Q, X, Y, lb.knn(k)),
        lambda: lb.local_mean(Q, X, Y, lb.gaussian(lb.knn_bandwidth(k))),
        lambda: lb.engine.nearest(lb.engine.Problem.check(Q, X, "gaussian"), k),
    )
    for each in calls:
        with pytest.raises((ValueError, TypeError), match="n_neighbors"):
            each()


def test_the_samples_must_have_what_the_kernel_looks_at(no_compiled_code):
    for kernel, said in (
        (lb.gaussian(on=2), "on="), (lb.gaussian([1.0, 2.0, 3.0]), "bandwidth"),
        (lb.gaussian(np.eye(3)), "bandwidth"),
        (lb.gaussian(lb.per_sample(np.ones(5))), "bandwidth"),
        (lb.gaussian(lb.per_query(np.ones(4))), "bandwidth"),
        (lb.gaussian(lb.per_query(np.ones(2))), "bandwidth"),
        (lb.gaussian(metric=lb.mahalanobis(np.eye(3))), "metric"),
        (lb.gaussian(metric=lb.periodic([1.0, 2.0, 3.0])), "metric"),
        (lb.gaussian(metric="haversine", on=0), "haversine"),
        (lb.discrete(np.ones((2, 2))), "queries"), (lb.gaussian().masked(np.ones((3, 5), bool)), "mask"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=said):
            lb.local_mean(Q, X, Y, kernel)


def test_a_density_needs_a_kernel_that_is_one(no_compiled_code):
    for kernel in (
        lb.cauchy(), lb.student_t(nu=1.0), lb.rational_quadratic(alpha=1.0), lb.knn(2), lb.softmax(),
        lb.discrete(np.ones((2, 2))),
        lb.gaussian() + 0.1, lb.gaussian() * lb.gaussian(), lb.gaussian(lb.knn_bandwidth(2)),
        lb.gaussian(metric="manhattan"),
        lb.gaussian().hollow(), lb.Kernel(profile=lambda s: 1.0), 2.0 * lb.gaussian(),
        lb.gaussian(lb.per_query([1.0] * 3)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="kernel"):
            lb.log_density(Q, X, kernel)


@pytest.mark.parametrize("count", [0, -1, 2.0, True, "2"])
def test_broken_thread_counts(count, monkeypatch):
    with pytest.raises((ValueError, TypeError), match="n_threads"):
        lb.set_num_threads(count)
    monkeypatch.setenv("LOCBOOK_NUM_THREADS", str(count) if count != "2" else "two")
    if count is not True:
        with pytest.raises(ValueError, match="LOCBOOK_NUM_THREADS"):
            lb.get_num_threads()
    monkeypatch.setenv("LOCBOOK_NUM_THREADS", "3")
    assert lb.get_num_threads() == 3
