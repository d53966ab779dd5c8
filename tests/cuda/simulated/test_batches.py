"""Batches on the card say what they say on the processor, and are one launch for all problems."""

import contextlib

import numpy as np
import pytest
from numba import cuda as numba_cuda

import locbook as lb
from locbook import engine
from locbook.engine import cuda
from locbook.engine.cuda import backend, driver
from tests.engine.problems import close

pytestmark = pytest.mark.filterwarnings("ignore::locbook.EmptyNeighborhoodWarning")

SIZES = {"block": 8, "tile": 4, "split": 4, "blocks": 8, "side": 4, "each": 2}
BATCHED = {
    "gaussian": lb.gaussian(1.3),
    "softmax": lb.softmax(2.0),
    "attention": lb.softmax(2.0, on=0) * lb.causal(on=1) * lb.laplace(1.0, on=1),
    "compact": lb.epanechnikov(1.2) * lb.gaussian(2.0),
    "one by one": lb.knn(3) * lb.gaussian(1.0),
}
FIELDS = ("queries", "samples", "values", "sample_weight")


def points(dtype, p=3):
    """Queries (2, 3, 5, 2), samples (2, 1, 7, 2), values (3, 7, p), weights (2, 1, 7), a mask (3, 5, 7)."""
    rng = np.random.default_rng(0)
    q, x, values = (rng.normal(size=s) for s in ((2, 3, 5, 2), (2, 1, 7, 2), (3, 7, p)))
    q[..., 1], x[..., 1] = np.round(2 * q[..., 1]), np.round(2 * x[..., 1])
    mask = rng.random((3, 5, 7)) < 0.8
    given = [np.ascontiguousarray(a.astype(dtype)) for a in (q, x, values)]
    return given, {"sample_weight": rng.integers(0, 4, (2, 1, 7)) + 0.5, "mask": mask}


def host(array):
    return array if isinstance(array, np.ndarray) else array.copy_to_host()


def same(ours, theirs, dtype):
    for name in FIELDS:
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a.shape == b.shape
        close(host(a), b, 1e-9 if dtype is np.float64 else 1e-4)
    for a, b in zip(ours.kernel, theirs.kernel, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            close(a, b, 1e-9 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize(("dtype", "option"), [(np.float64, "plain"), (np.float32, "both")])
@pytest.mark.parametrize("name", list(BATCHED))
def test_as_on_the_processor(name, dtype, option):
    given, options = points(dtype)
    options = options if option == "both" else {}
    batches = [module.Batch.check(*given, BATCHED[name], **options) for module in (cuda, engine)]
    ours, theirs = cuda.batch_mean(batches[0], **SIZES), engine.batch_mean(batches[1])
    for a, b in zip(ours, theirs, strict=True):
        some = np.isfinite(b)
        np.testing.assert_array_equal(some, np.isfinite(a))
        close(np.where(some, a, 0), np.where(some, b, 0), 1e-11 if dtype is np.float64 else 2e-5)
    slope = np.random.default_rng(1).normal(size=(2, 3, 5, 3))
    for forward in (None, theirs):
        ours = cuda.batch_vjp(batches[0], slope, forward=forward, **SIZES)
        same(ours, engine.batch_vjp(batches[1], slope), dtype)


@pytest.mark.parametrize(("name", "dtype"), [("gaussian", np.float32), ("attention", np.float64)])
def test_arrays_of_the_card(name, dtype):
    given, options = points(dtype)
    batch = engine.Batch.check(*given, BATCHED[name], **options)
    on_card = [numba_cuda.to_device(a) for a in given]
    options["mask"] = numba_cuda.to_device(options["mask"])
    ours = cuda.Batch.check(*on_card, BATCHED[name], **options)
    if backend.SIMULATED:  # no copy where nothing is stretched
        assert np.shares_memory(ours.flat[0]._ary, on_card[0]._ary)
    means, log_sums = cuda.batch_mean(ours, **SIZES)
    theirs = engine.batch_mean(batch)
    assert means.dtype == log_sums.dtype == dtype
    close(host(means), theirs[0], 1e-11 if dtype is np.float64 else 2e-5)
    slope = numba_cuda.to_device(np.ones((2, 3, 5, 3)))
    found = cuda.batch_vjp(ours, slope, **SIZES)
    assert found.queries.dtype == dtype
    same(found, engine.batch_vjp(batch, np.ones((2, 3, 5, 3))), dtype)


@pytest.mark.parametrize("name", ["gaussian", "attention"])
def test_a_batch_is_as_many_launches_as_a_problem(name, monkeypatch):
    launches = []
    real = driver.accumulate
    for module in (driver, cuda.gradients):
        monkeypatch.setattr(module, "accumulate", lambda *a, **o: launches.append(1) or real(*a, **o))
    counted = []
    (q, x, values), _ = points(np.float64)
    for some in (slice(0, 1), slice(None)):
        given = q[some, some], x[some], values[some]
        batch = cuda.Batch.check(*given, BATCHED[name])
        cuda.batch_mean(batch)
        cuda.batch_vjp(batch, np.ones((*batch.queries.shape[:-1], 3)))
        counted.append(len(launches))
        launches.clear()
    assert counted[0] == counted[1] > 0


@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.cauchy(1.0)])
def test_values_of_each_problem_keep_their_digits(kernel):
    rng = np.random.default_rng(0)
    q, x = (rng.normal(size=(3, size, 2)).astype(np.float32) for size in (4, 9))
    values = (
        rng.normal(size=(3, 9, 2)).astype(np.float32) + np.array([1e8, 0, 1e8], np.float32)[:, None, None]
    )
    ours = cuda.batch_mean(cuda.Batch.check(q, x, values, kernel), **SIZES)[0]
    close(ours[1], engine.batch_mean(engine.Batch.check(q, x, values, kernel))[0][1], 1e-5)
    assert (ours >= values.min(1, keepdims=True)).all()
    assert (ours <= values.max(1, keepdims=True)).all()


@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.cauchy(1.0)])
@pytest.mark.parametrize("p", [1, 20])
def test_the_same_bits_as_each_problem_alone(kernel, p):
    (q, x, values), _ = points(np.float64, p)
    together = cuda.batch_mean(cuda.Batch.check(q, x, values, kernel), **SIZES)[0]
    for i, j in np.ndindex(2, 3):
        alone = cuda.mean(engine.Problem.check(q[i, j], x[i, 0], kernel), values[j], **SIZES)
        np.testing.assert_array_equal(together[i, j], alone)


@pytest.mark.parametrize("empty", ["nan", "nearest", "mean", "raise"])
def test_a_query_of_a_batch_without_a_neighbour(empty):
    x = np.arange(6.0)[:, None] + np.zeros((2, 1, 1))
    q = np.array([[[2.0], [3.0]], [[50.0], [4.0]]])
    given = q, x, x**2, lb.epanechnikov(1.5)
    if empty == "raise":
        with pytest.raises(ValueError, match="1 of 2 queries"):
            lb.local_mean(*given, empty=empty, device="cuda")
        return
    told = pytest.warns(lb.EmptyNeighborhoodWarning, match=r"1 of 4 .*first: \(1, 0\)")
    with told if empty == "nan" else contextlib.nullcontext():
        ours = lb.local_mean(*given, empty=empty, device="cuda")
    close(ours, lb.local_mean(*given, empty=empty))


def test_the_public_functions():
    (q, x, values), options = points(np.float32)
    kernel = BATCHED["gaussian"]
    ours = lb.local_mean(q, x, values, kernel, device="cuda", return_log_sum=True, **options)
    theirs = lb.local_mean(q, x, values, kernel, return_log_sum=True, **options)
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        close(a, b, 2e-5)
    slope = np.ones((2, 3, 5, 3), np.float32)
    found = [
        lb.local_mean_vjp(slope, q, x, values, kernel, device=device, **options) for device in ("cuda", "cpu")
    ]
    same(*found, np.float32)
    assert found[0].queries.dtype == np.float32
    with pytest.raises(ValueError, match="leading axes must agree"):
        lb.local_mean(*map(numba_cuda.to_device, (q, x[[0, 1, 0]], values)), kernel, device="cuda")
    with pytest.raises(TypeError, match="mask must be boolean"):
        lb.local_mean(q, x, values, kernel, mask=options["mask"].astype(int), device="cuda")
