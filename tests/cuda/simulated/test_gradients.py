"""The gradient on the card says what its twin says, and what the processor says."""

import numpy as np
import pytest

import locbook as lb
from locbook.engine import Problem, cuda, reference
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


@pytest.mark.parametrize("option", ["plain", "both"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ROUGH])
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


def test_far_queries():
    x, values = np.arange(4.0)[:, None], np.arange(4.0)[:, None] ** 2
    given = Problem.check(np.array([[60.0], [1.2]]), x, lb.cauchy(1.0) * lb.gaussian(1.0))
    same(cuda.mean_vjp(given, values, np.ones((2, 1)), **SMALL), mean_vjp(given, values, np.ones((2, 1))))


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
