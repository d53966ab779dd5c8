"""Far queries, large offsets, hidden NaN, empty neighbourhoods, wrong functions, and the order of the work."""

import numpy as np
import pytest
from numba import cuda as numba_cuda

import locbook as lb
from locbook import engine
from locbook.engine import Problem, cuda, reference
from locbook.engine.cuda import backend
from tests.cuda.simulated.test_twins import SIZES
from tests.engine.problems import KERNELS, M, N, arrays, close

DTYPES = [np.float64, np.float32]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kernel", [lb.gaussian(1.0), lb.laplace(1.0), lb.gaussian(1.0) * 0.5 + lb.gaussian(2.0)]
)
def test_far_queries_have_their_limit(kernel, dtype):
    samples, values = np.array([[0.0], [1.0], [3.0]], dtype), np.array([[1.0], [2.0], [5.0]], dtype)
    queries = np.array([[1e3], [-1e4], [1e6]], dtype)
    given = Problem.check(queries, samples, kernel)
    close(
        cuda.mean(given, values, **SIZES), engine.mean(given, values), 1e-6 if dtype is np.float32 else 1e-10
    )
    ours, theirs = cuda.log_sum(given, **SIZES), engine.log_sum(given)
    np.testing.assert_allclose(ours, theirs, rtol=3e-7 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize("name", ["gaussian", "epanechnikov", "sum"])
def test_differences_not_squares(name):
    kernel = {"gaussian": lb.gaussian(1.0), "epanechnikov": lb.epanechnikov(3.0)}.get(name)
    kernel = kernel or lb.gaussian(1.0) + lb.laplace(2.0)
    q, x = np.array([[1e8], [1e8 + 1]]), 1e8 + np.arange(4.0)[:, None]
    near = Problem.check(q - 1e8, x - 1e8, kernel)
    values = np.arange(4.0)[:, None] ** 2
    close(cuda.mean(Problem.check(q, x, kernel), values, **SIZES), cuda.mean(near, values, **SIZES), 1e-14)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, np.float64) for name in ("gaussian", "epanechnikov", "attention", "user metric")]
    + [(name, np.float32) for name in ("epanechnikov", "softmax", "user profile")],
)
def test_masked_nan_leaks_nowhere(name, dtype):
    q, x, values, labels, _, mask = (a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays())
    mask[:, [0, 7, N - 1]] = False
    clean = Problem.check(q, x, KERNELS[name], mask=mask)
    broken_x, broken_values = x.copy(), values.copy()
    broken_x[[0, 7, N - 1]] = broken_values[[0, 7, N - 1]] = np.nan
    # built by hand: the border replaces such rows
    broken = Problem(q, broken_x, KERNELS[name], None, mask, np.arange(M), clean.dtype)
    for reduce in (
        lambda given, v: cuda.mean(given, v, warn=False, **SIZES),
        lambda given, v: cuda.log_sum(given, **SIZES),
        lambda given, v: cuda.classes(given, labels, 3, **SIZES),
        lambda given, v: cuda.normalized_weights(given, warn=False, **SIZES),
        lambda given, v: cuda.nearest(given, 5, **SIZES).indices,
        lambda given, v: cuda.moments(given, v, 2, **SIZES).second,
    ):
        ours, right = reduce(broken, broken_values), reduce(clean, values)
        if dtype is np.float64:
            np.testing.assert_array_equal(ours, right)
        else:  # the middle that is taken from the values looks at all that are numbers
            close(ours, right, 1e-6)


def test_missing_coordinates():
    q, x, values, *_ = arrays()
    rng = np.random.default_rng(3)
    q[rng.random(q.shape) < 0.3] = np.nan
    x[rng.random(x.shape) < 0.3] = np.nan
    kernel = lb.gaussian(1.0, metric="nan_euclidean")
    w = reference.weights(kernel, q, x)
    given = Problem.check(q, x, kernel)
    with np.errstate(invalid="ignore"):
        close(cuda.mean(given, values, warn=False, **SIZES), reference.mean(w, values))


@pytest.mark.parametrize("empty", ["nan", "nearest", "mean", "raise"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_empty_neighbourhoods(empty, dtype):
    samples, values = np.arange(6, dtype=dtype)[:, None], np.arange(6, dtype=dtype)[:, None] ** 2
    queries = np.array([[2.0], [50.0], [-9.0]], dtype)
    given = Problem.check(queries, samples, lb.epanechnikov(1.5))
    if empty == "raise":
        for module in (cuda, engine):
            with pytest.raises(ValueError, match="2 of 3 queries"):
                module.mean(given, values, empty)
        return
    with pytest.warns(lb.EmptyNeighborhoodWarning) if empty == "nan" else pytest.MonkeyPatch.context():
        ours = cuda.mean(given, values, empty, **SIZES)
        ours_classes = cuda.classes(given, np.arange(6) % 2, 2, empty, **SIZES)
        ours_quantile = cuda.quantile(given, values, np.array([0.5]), empty, **SIZES)
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context():
        import warnings

        warnings.simplefilter("ignore")
        close(ours, engine.mean(given, values, empty), 1e-6)
        close(ours_classes, engine.classes(given, np.arange(6) % 2, 2, empty), 1e-6)
        close(ours_quantile, engine.quantile(given, values, np.array([0.5]), empty), 1e-6)


def negative(s):
    return 0.5 - s


def not_a_number(x, y):
    return (x[0] - y[0]) / (x[0] - y[0])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "kernel", [lb.Kernel(negative), lb.Kernel(negative) + 5.0, lb.gaussian(1.0, metric=not_a_number)]
)
def test_functions_that_give_no_weight(kernel, dtype):
    x = np.arange(5, dtype=dtype)[:, None]
    for reduce in (cuda.log_sum, cuda.self_weights):
        with pytest.raises(ValueError, match="user's function gave values"), np.errstate(invalid="ignore"):
            reduce(Problem.check(x, x, kernel), **SIZES)


def test_weights_that_overflow():
    x = np.array([[400.0], [500.0]])
    with pytest.raises(ValueError, match="overflow"):
        cuda.log_sum(Problem.check(1e160 * x, 1e160 * x, lb.softmax(1.0)), **SIZES)
    with pytest.raises((ValueError, OverflowError)):
        cuda.dense_weights(lb.softmax(1.0), x, x, log=False)


@pytest.mark.parametrize("name", ["gaussian", "attention", "epanechnikov", "knn"])
@pytest.mark.parametrize("size", [1e-12, 1e12, 1e300])
def test_values_of_any_size(name, size):
    q, x, values, *_ = arrays()
    given = Problem.check(q, x, KERNELS[name])
    close(cuda.mean(given, size * values, **SIZES) / size, engine.mean(given, values))


@pytest.mark.parametrize("name", ["gaussian", "epanechnikov", "attention"])
def test_multiplicities_far_apart(name):
    q, x, values, *_ = arrays()
    weight = 10.0 ** np.random.default_rng(0).uniform(-250, 250, N)
    given = Problem.check(q, x, KERNELS[name], sample_weight=weight)
    close(cuda.log_sum(given, **SIZES) / 600, engine.log_sum(given) / 600)
    close(cuda.mean(given, values, **SIZES), engine.mean(given, values))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["gaussian", "softmax", "attention", "knn", "tricube"])
def test_same_bits_whatever_the_order_of_the_lanes(name, dtype, monkeypatch):
    q, x, values, labels, *_ = (a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays())
    wide = np.repeat(values, 10, axis=1)
    given = Problem.check(q, x, KERNELS[name])
    found = []
    for seed in (None, 0, 1):
        if backend.SIMULATED:
            monkeypatch.setattr("tests.cuda.lanes.SEED", seed)
        found.append(
            [
                cuda.mean(given, values, warn=False, **SIZES),
                cuda.mean(given, wide, warn=False, **SIZES),
                cuda.classes(given, labels, 3, **SIZES),
                *cuda.nearest(given, 5, **SIZES),
            ]
        )
    for one in found[1:]:
        for a, b in zip(one, found[0], strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [1, 2, 9])
@pytest.mark.parametrize("name", ["gaussian", "attention", "tricube"])
def test_block_of_queries_changes_no_bit(name, p, dtype):
    q, x, values, *_ = (a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays())
    values = np.repeat(values[:, :1], p, axis=1)
    means = [
        cuda.mean(Problem.check(q[rows], x, KERNELS[name]), values, warn=False, **(SIZES | {"block": block}))
        for rows, block in ((slice(None), 8), (slice(None), 32), (slice(0, 5), 8))
    ]
    np.testing.assert_array_equal(means[0], means[1])
    np.testing.assert_array_equal(means[0][:5], means[2])


def test_float32_sums_keep_their_digits():
    """Many equal terms: what is rounded in a plain float32 sum shows; parts and two-sum keep it."""
    n = 3000
    x, values = np.zeros((n, 1), np.float32), np.linspace(1, 2, n, dtype=np.float32)[:, None]
    q = np.zeros((2, 1), np.float32)
    for kernel in (lb.gaussian(1.0), lb.cauchy(1.0)):
        ours = cuda.mean(Problem.check(q, x, kernel), values, block=2, tile=16, split=64, blocks=4)
        np.testing.assert_allclose(ours, values.mean(dtype=np.float64), rtol=3e-7)


def test_float64_values_beside_float32_points():
    q, x, values, *_ = arrays()
    values = 1e9 + values
    for kernel in (lb.gaussian(1.0), lb.gaussian(1.0) + 0.1, lb.gaussian(1e-3)):
        given = Problem.check(q.astype(np.float32), x.astype(np.float32), kernel)
        ours, right = cuda.mean(given, values, **SIZES) - 1e9, engine.mean(given, values) - 1e9
        # the answer is float32: it has the digits of that, not fewer
        assert np.abs(ours - right).max() <= np.spacing(np.float32(1e9))
        wide = cuda.check_problem(
            *map(numba_cuda.to_device, (q.astype(np.float32), x.astype(np.float32))), kernel
        )
        found = cuda.mean(wide, numba_cuda.to_device(values), **SIZES).copy_to_host()
        assert np.abs(found.astype(float) - 1e9 - right).max() <= np.spacing(np.float32(1e9))


# -- arrays of the card ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, np.float64) for name in ("gaussian", "discrete", "user metric")]
    + [(name, np.float32) for name in ("attention", "knn", "relative bias")],
)
def test_arrays_of_the_card_stay_there(name, dtype):
    q, x, values, labels, multiplicity, mask = (
        a.astype(dtype) if a.dtype.kind == "f" else a for a in arrays()
    )
    on_card = [numba_cuda.to_device(a) for a in (q, x, values)]
    given = cuda.check_problem(
        *on_card[:2], KERNELS[name], sample_weight=multiplicity, mask=numba_cuda.to_device(mask)
    )
    assert given.samples is on_card[1]  # no copy
    host = Problem.check(q, x, KERNELS[name], sample_weight=multiplicity, mask=mask)
    for ours, theirs in (
        (cuda.mean(given, on_card[2], warn=False, **SIZES), cuda.mean(host, values, warn=False, **SIZES)),
        (cuda.log_sum(given, **SIZES), cuda.log_sum(host, **SIZES)),
        (cuda.classes(given, labels, 3, **SIZES), cuda.classes(host, labels, 3, **SIZES)),
        (cuda.nearest(given, 3, **SIZES).indices, cuda.nearest(host, 3, **SIZES).indices),
        (cuda.quantile(given, on_card[2], [0.5], **SIZES), cuda.quantile(host, values, [0.5], **SIZES)),
        (cuda.moments(given, on_card[2], **SIZES).second, cuda.moments(host, values, **SIZES).second),
        (
            cuda.normalized_weights(given, warn=False, **SIZES),
            cuda.normalized_weights(host, warn=False, **SIZES),
        ),
    ):
        assert not isinstance(ours, np.ndarray)
        np.testing.assert_array_equal(ours.copy_to_host(), np.asarray(theirs, dtype=ours.dtype))


def test_empty_rows_of_arrays_of_the_card():
    samples, queries = np.arange(6.0)[:, None], np.array([[2.0], [50.0]])
    given = cuda.check_problem(*map(numba_cuda.to_device, (queries, samples)), lb.epanechnikov(1.5))
    found = cuda.mean(given, numba_cuda.to_device(samples), "nearest", **SIZES)
    np.testing.assert_array_equal(found.copy_to_host(), [[2.0], [5.0]])


@pytest.mark.parametrize("hollow", [False, True])
def test_queries_that_are_the_samples(hollow):
    x = numba_cuda.to_device(arrays()[1])
    kernel = lb.gaussian(1.0).hollow() if hollow else lb.gaussian(1.0)
    given = cuda.check_problem(x, x, kernel)
    host = x.copy_to_host()
    expected = engine.self_weights(Problem.check(host, host, kernel))
    close(cuda.self_weights(given, **SIZES).copy_to_host(), expected)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), "must be 2-D"),
        (np.array([[np.nan]]), "contains NaN"),
        (np.array([[np.inf]]), "contains infinity"),
        (np.array([[1j]]), "real numbers"),
        (np.zeros((0, 2)), "must not be empty"),
    ],
)
def test_wrong_arrays_of_the_card(array, message):
    with pytest.raises((TypeError, ValueError), match=f"samples.*{message}"):
        cuda.check_array(numba_cuda.to_device(array), "samples")


def test_a_mask_of_the_card_must_fit():
    x = numba_cuda.to_device(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="mask must be boolean of shape"):
        cuda.check_problem(x, x, "gaussian", mask=numba_cuda.to_device(np.ones((3, 2), dtype=bool)))
