"""The gradient on the card says what its twin says, and what the processor says."""

import numpy as np
import pytest
from numba import cuda as numba_cuda

import locbook as lb
from locbook.engine import LocalMeanGradient, Problem, cuda, reference
from locbook.engine.cuda import gradients
from locbook.engine.gradients import mean_vjp
from tests.cuda.simulated.test_twins import SIZES
from tests.engine.problems import KERNELS, M, N, arrays, close

#: Distances without a derivative, and the neighbours, which have no parameter.
ROUGH = ("knn, ties", "hamming", "user metric")
SMALL = SIZES | {"split": 12}


def same(ours, theirs, tolerance=1e-9):
    for name in ("queries", "samples", "values", "sample_weight"):
        close(getattr(ours, name), getattr(theirs, name), tolerance)
    for own, other in zip(ours.kernel, theirs.kernel, strict=True):
        assert (own is None) == (other is None)
        if own is not None:
            close(own, other, tolerance)


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, "plain") for name in KERNELS if name not in ROUGH]
    # of the others in float32
    + [
        (name, "both")
        for name in ("gaussian", "epanechnikov", "attention", "per sample", "knn", "user profile")
    ],
)
def test_twin(name, option):
    q, x, values, _, multiplicity, mask = arrays()
    cotangent = np.random.default_rng(1).normal(size=(M, 2))
    options = {"sample_weight": multiplicity + 1, "mask": mask} if option == "both" else {}
    given = Problem.check(q, x, KERNELS[name], **options)
    ours = cuda.mean_vjp(given, values, cotangent, **SMALL)
    same(ours, mean_vjp(given, values, cotangent))
    if option == "plain":
        *twin, _ = reference.mean_vjp(KERNELS[name], q, x, values, cotangent)
        for own, other in zip(ours[:4], twin, strict=True):
            close(own, other, 1e-7)


def in_float64(given):
    arrays = given.queries.astype(float), given.samples.astype(float)
    return Problem.check(*arrays, given.kernel, sample_weight=given.sample_weight, mask=given.mask)


@pytest.fixture
def precisions(monkeypatch):
    """In which precisions the sums of a gradient were made."""
    used = []

    def run(problem, *given):
        used.append(problem.dtype.type)
        return real(problem, *given)

    real = gradients._run
    monkeypatch.setattr(gradients, "_run", run)
    return used


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ROUGH])
def test_float32(name, precisions):
    q, x, values, _, multiplicity, mask = arrays()
    q[:, 1], x[:, 1] = (
        1.03 * q[:, 1],
        1.03 * x[:, 1],
    )  # off the edges and folds, at which float32 takes another side
    if "bias" in name:
        q[:, 1], x[:, 1] = np.round(q[:, 1]), np.round(x[:, 1])
    cotangent = np.random.default_rng(1).normal(size=(M, 2))
    q, x, values, cotangent = (a.astype(np.float32) for a in (q, x, values, cotangent))
    given = Problem.check(q, x, KERNELS[name], sample_weight=multiplicity + 1, mask=mask)
    ours = cuda.mean_vjp(given, values, cotangent, **SMALL)
    same(ours, mean_vjp(in_float64(given), values, cotangent), 1e-4)
    wide = name in ("knn", "knn in a product", "user profile", "user log profile")
    assert precisions == [np.float64 if wide else np.float32]


@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.cauchy(1.0)], ids=repr)
def test_float32_keeps_the_digits(kernel, size, precisions):
    """Cotangents of any size, and values that are large beside their differences."""
    q, x, values, *_ = (a.astype(np.float32) for a in arrays()[:3])
    values[:, 0] = np.round(16 * values[:, 0]) / 16 + 1e6
    cotangent = np.random.default_rng(1).normal(size=(M, 2))
    given = Problem.check(q, x, kernel)
    ours = cuda.mean_vjp(given, values, size * cotangent, **SMALL)
    theirs = mean_vjp(in_float64(given), values.astype(float), cotangent)
    same(LocalMeanGradient(*(a / size for a in ours[:4]), (ours.kernel[0] / size,)), theirs, 1e-4)
    assert precisions == [np.float32]


@pytest.mark.parametrize("what", ["far", "cotangents far apart", "float64 values", "long vectors", "narrow"])
def test_what_float32_does_not_hold(what, precisions):
    q, x, values, *_ = (a.astype(np.float32) for a in arrays()[:3])
    cotangent, kernel = np.ones((M, 2), np.float32), lb.gaussian(1.0)
    if what == "far":
        q[0] += 1000
    if what == "cotangents far apart":
        cotangent[0] = 1e-25
    if what == "float64 values":
        values = values.astype(float)
    if what == "long vectors":
        q, x, kernel = 30 * q, 30 * x, lb.softmax(2.0)
    if what == "narrow":
        q, x, kernel = np.float32(1e-10) * q, np.float32(1e-10) * x, lb.gaussian(1e-10)
    given = Problem.check(q, x, kernel)
    ours = cuda.mean_vjp(given, values, cotangent, **SMALL)
    assert precisions[-1] is np.float64
    theirs = mean_vjp(in_float64(given), values.astype(float), cotangent)
    size = np.abs(theirs.queries).max()
    close(ours.queries / size, theirs.queries / size, 1e-9)
    close(ours.values, theirs.values, 1e-9)


@pytest.mark.parametrize("name", ROUGH)
def test_without_coordinates(name):
    q, x, values, *_ = arrays()
    given = Problem.check(q, x, KERNELS[name])
    cotangent = np.ones((M, 2))
    with (
        pytest.raises(ValueError, match="no derivative")
        if name != "knn, ties"
        else pytest.MonkeyPatch.context()
    ):
        cuda.mean_vjp(given, values, cotangent, **SMALL)
    wrt = ("values", "sample_weight", "kernel")
    ours, theirs = (
        cuda.mean_vjp(given, values, cotangent, wrt, **SMALL),
        mean_vjp(given, values, cotangent, wrt),
    )
    assert ours.queries is ours.samples is None
    close(ours.values, theirs.values)
    close(ours.sample_weight, theirs.sample_weight)


@pytest.mark.parametrize("kernel", [lb.gaussian(0.8).hollow(), lb.epanechnikov(1.5).hollow()])
def test_leave_one_out(kernel):
    _, x, values, *_ = arrays()
    given = Problem.check(x, x, kernel)
    cotangent = np.random.default_rng(2).normal(size=(N, 2))
    same(cuda.mean_vjp(given, values, cotangent, **SMALL), mean_vjp(given, values, cotangent))


@pytest.mark.parametrize("there", [False, True], ids=["host", "card"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_far_queries(dtype, there):
    """Their weights underflow: the mean is that of the nearest."""
    q, x = np.array([[60.0], [1.2]], dtype), np.arange(4, dtype=dtype)[:, None]
    kernel, weight, slope = lb.cauchy(1.0) * lb.gaussian(1.0), np.arange(1.0, 5.0), np.ones((2, 1), dtype)
    theirs = mean_vjp(Problem.check(*map(np.float64, (q, x)), kernel, sample_weight=weight), x**2.0, slope)
    check, place = (cuda.check_problem, numba_cuda.to_device) if there else (Problem.check, np.asarray)
    given = check(place(q), place(x), kernel, sample_weight=place(weight))
    ours = cuda.mean_vjp(given, place(x**2), place(slope), **SMALL)
    arrays = (a.copy_to_host() if there else a for a in ours[:4])
    same(LocalMeanGradient(*arrays, ours.kernel), theirs, 1e-9 if dtype is np.float64 else 1e-5)


def test_cotangents_that_are_nan():
    q, x, slope = (
        np.array([[1.0], [50.0], [2.0]]),
        np.arange(3.0)[:, None],
        np.array([[1.0], [np.nan], [1.0]]),
    )
    kernel, place = lb.epanechnikov(1.5), numba_cuda.to_device
    given = cuda.check_problem(place(q), place(x), kernel)
    found = cuda.mean_vjp(given, place(x), place(slope), **SMALL)  # of a query without a neighbour
    close(found.samples.copy_to_host(), mean_vjp(Problem.check(q, x, kernel), x, slope).samples)
    with pytest.raises(ValueError, match="cotangent contains NaN in row 2"):
        cuda.mean_vjp(given, place(x), place(slope[[0, 0, 1]]), **SMALL)


def test_hidden_nan():
    q, x, values, _, _, mask = arrays()
    mask[:, 3] = False
    given = Problem.check(q, x, lb.gaussian(1.0), mask=mask)
    clean = cuda.mean_vjp(given, values, np.ones((M, 2)), **SMALL)
    broken_x, broken_values = x.copy(), values.copy()
    broken_x[3] = broken_values[3] = np.nan
    given = Problem(q, broken_x, given.kernel, None, mask, np.arange(M), given.dtype)
    broken = cuda.mean_vjp(given, broken_values, np.ones((M, 2)), **SMALL)
    for ours, right in zip(broken[:4], clean[:4], strict=True):
        np.testing.assert_array_equal(ours, right)
