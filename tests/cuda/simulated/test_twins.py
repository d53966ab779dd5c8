"""Every reduction on the card says what its NumPy twin says: every kernel, both precisions, masks, multiplicities."""

import numpy as np
import pytest

import locbook as lb
from locbook.engine import Problem, cuda, monomials, reference
from locbook.kernels.metrics import as_metric
from tests.engine.problems import KERNELS, M, N, arrays, close, twin_weights

NAMES = list(KERNELS)
#: Small, so that there are several blocks, tiles, parts and launches.
SIZES = {"block": 8, "tile": 6, "split": 16, "blocks": 6, "side": 4, "each": 2}
TOLERANCE = {np.float64: 1e-11, np.float32: 3e-5}
DTYPES = [np.float64, np.float32]

pytestmark = pytest.mark.filterwarnings("ignore::locbook.EmptyNeighborhoodWarning")


def made(name, option, dtype):
    """Problem, twin weights and the arrays, which float32 holds exactly as the twin gets them."""
    q, x, values, labels, multiplicity, mask = arrays()
    if dtype is np.float32 and name in (
        "window",
        "sum",
    ):  # edges at which samples lie are not told apart in float32
        q[:, 1], x[:, 1] = 1.03 * q[:, 1], 1.03 * x[:, 1]
    q, x, values = q.astype(dtype), x.astype(dtype), values.astype(dtype)
    options = {"sample_weight": multiplicity, "mask": mask} if option == "both" else {}
    w = twin_weights(KERNELS[name], q, x, **options)
    return Problem.check(q, x, KERNELS[name], **options), w, (q, x, values, labels)


@pytest.mark.parametrize("option", ["plain", "both"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_sums(name, dtype, option):
    given, w, (_, _, values, labels) = made(name, option, dtype)
    some = w.sum(1) > 0
    assert some.sum() > len(w) // 2
    tolerance = TOLERANCE[dtype]
    with np.errstate(divide="ignore", invalid="ignore"):
        close(np.exp(cuda.log_sum(given, **SIZES)), w.sum(1), tolerance)
        close(cuda.mean(given, values, **SIZES), reference.mean(w, values.astype(float)), tolerance)
        close(cuda.classes(given, labels, 4, **SIZES), reference.classes(w, labels, 4), tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_order_and_single_weights(name, dtype):
    given, w, (q, x, values, _) = made(name, "both", dtype)
    some, tolerance = w.sum(1) > 0, TOLERANCE[dtype]
    shares = np.where(some[:, None], w / np.where(some, w.sum(1), 1.0)[:, None], 0.0)
    close(cuda.normalized_weights(given, **SIZES), shares, tolerance)
    dense = cuda.dense_weights(KERNELS[name], q, x, log=False)
    plain = reference.weights(KERNELS[name], q.astype(float), x.astype(float))
    close(dense, plain, tolerance)
    log = cuda.dense_weights(KERNELS[name], q, x, log=True)
    if dtype is np.float64:
        np.testing.assert_array_equal(np.isneginf(log), plain == 0)
    close(np.exp(log), plain, tolerance)
    levels = np.array([0.77, 0.0, 1.0, 0.3])
    ours = cuda.quantile(given, values[:, :1], levels, **SIZES)[:, 0]
    expected = np.array([reference.quantile(w, values[:, 0], level) for level in levels]).T
    reached = np.cumsum(shares[:, np.argsort(values[:, 0], kind="stable")], 1)[..., None]
    sure = some & (np.abs(reached - levels[[0, 3]]) > 10 * tolerance).all((1, 2))
    assert sure.any()
    np.testing.assert_array_equal(ours[sure][:, [0, 3]], expected[sure][:, [0, 3]])
    if dtype is np.float64:  # in float32, who stands at an edge may be the first
        np.testing.assert_array_equal(ours[sure, 1], expected[sure, 1])
    assert (np.where(values[:, 0] <= ours[:, 2:3], shares, 0.0).sum(1)[some] > 1 - 10 * tolerance).all()
    assert np.isnan(ours[~some]).all()


@pytest.mark.parametrize("degree", [0, 1, 3])
@pytest.mark.parametrize("name", ["epanechnikov", "gaussian", "knn", "attention", "user metric"])
def test_moments(name, degree):
    given, w, (q, x, values, _) = made(name, "both", np.float64)
    second, first = reference.moments(w, q, x, values, monomials(3, degree))
    ours = cuda.moments(given, values, degree, **SIZES)
    scale = np.exp(ours.log_scale)[:, None, None]
    scale = np.where(np.isfinite(scale), scale, 0.0)
    size = w.sum(1).max()
    close(ours.second * scale / size, second / size)
    close(ours.first * scale / size, first / size)
    np.testing.assert_array_equal(ours.second, ours.second.transpose(0, 2, 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "per query"])
def test_self_weights_and_hollow(name, dtype):
    _, x, values, *_ = arrays()
    if dtype is np.float32 and name in ("window", "sum"):
        x[:, 1] *= 1.03
    x, values = x.astype(dtype), values.astype(dtype)
    kernel, tolerance = KERNELS[name], TOLERANCE[dtype]
    w = twin_weights(kernel, x, x)
    with np.errstate(invalid="ignore"):
        close(cuda.self_weights(Problem.check(x, x, kernel), **SIZES), np.diag(w) / w.sum(1), tolerance)
    hollow = reference.weights(kernel.hollow(), x.astype(float), x.astype(float))
    given = Problem.check(x, x, kernel.hollow())
    with np.errstate(invalid="ignore"):
        means = reference.mean(hollow, values.astype(float))
        close(cuda.mean(given, values, warn=False, **SIZES), means, tolerance)
    assert (np.diag(cuda.normalized_weights(given, warn=False, **SIZES)) == 0).all()


@pytest.mark.parametrize("k", [1, 7, N])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "hamming", "cosine"])
def test_nearest(metric, k):
    q, x, *_, mask = arrays()
    d = np.round(reference.distances(q, x, as_metric(metric)), 12)  # ties that rounding parted
    found = cuda.nearest(Problem.check(q, x, "gaussian"), k, metric, **SIZES)
    close(found.distances, np.sort(d, axis=1)[:, :k])
    if metric == "hamming":  # many ties: the row decides
        np.testing.assert_array_equal(found.indices, reference.nearest(d, k))
    masked = cuda.nearest(Problem.check(q, x, "gaussian", mask=mask), k, metric, **SIZES)
    far = np.sort(np.where(mask, d, np.inf), axis=1)[:, :k]
    np.testing.assert_array_equal(np.isinf(masked.distances), np.isinf(far))
    np.testing.assert_array_equal(masked.indices == -1, np.isinf(far))
    close(np.where(np.isinf(far), 0, masked.distances), np.where(np.isinf(far), 0, far))
    hollow = cuda.nearest(Problem.check(x, x, "gaussian"), min(k, N - 1), metric, exclude_self=True, **SIZES)
    assert (hollow.indices != np.arange(N)[:, None]).all()


@pytest.mark.parametrize(
    "name", ["knn", "knn, ties", "knn bandwidth", "knn bandwidth of samples", "knn in a product"]
)
def test_neighbours_found_on_the_card(name, monkeypatch):
    """The plan asks one function for neighbours; here it is the card's."""
    calls = []

    def top(*arguments, prune, **options):
        calls.append(arguments)
        return cuda.top(*arguments, **options, **SIZES)

    monkeypatch.setattr("locbook.engine.reductions.top", top)
    given, w, (_, _, values, _) = made(name, "both", np.float64)
    with np.errstate(invalid="ignore"):
        close(cuda.mean(given, values, **SIZES), reference.mean(w, values))
    assert calls


@pytest.mark.parametrize("k", [1, 4])
def test_nearest_in_float32(k):
    q, x, *_ = arrays()
    q, x = q.astype(np.float32), x.astype(np.float32)
    found = cuda.nearest(Problem.check(q, x, "gaussian"), k, **SIZES)
    d = reference.distances(q, x, as_metric("euclidean"))
    close(found.distances, np.sort(d, axis=1)[:, :k], 1e-6)
    close(np.take_along_axis(d, found.indices, 1), found.distances, 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["gaussian", "laplace", "softmax", "vector bandwidth", "per query"])
@pytest.mark.parametrize(("d", "p"), [(2, 0), (5, 3), (3, 20), (21, 1), (40, 70)])
def test_one_leaf_in_many_columns(name, d, p, dtype):
    """The kernel of registers, and the kernel of blocks, with one and several panels of values."""
    rng = np.random.default_rng(d + p)
    q, x = (rng.normal(size=(size, d)).astype(dtype) for size in (M, N))
    values, weight = rng.normal(size=(N, p)).astype(dtype) + 3, rng.integers(0, 3, N).astype(float)
    kernel = {
        "gaussian": lb.gaussian(1.3), "laplace": lb.laplace(0.9), "softmax": lb.softmax(2.0),
        "vector bandwidth": lb.gaussian(np.linspace(0.7, 2.0, d)),
        "per query": lb.laplace(lb.per_query(np.linspace(0.7, 2.0, M))),
    }[name]  # fmt: skip
    w = twin_weights(kernel, q, x, sample_weight=weight)
    given = Problem.check(q, x, kernel, sample_weight=weight)
    close(cuda.log_sum(given, **SIZES), np.log(w.sum(1)), TOLERANCE[dtype])
    if p:
        expected = reference.mean(w, values.astype(float))
        close(cuda.mean(given, values, **SIZES), expected, TOLERANCE[dtype])
