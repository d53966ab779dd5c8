"""The public functions with ``device="cuda"`` say what they say on the processor."""

import numpy as np
import pytest
from numba import cuda as numba_cuda

import locbook as lb

RNG = np.random.default_rng(0)
Q, X, Y = RNG.normal(size=(7, 2)), RNG.normal(size=(20, 2)), RNG.normal(size=(20, 2))
WEIGHT, MASK = RNG.integers(1, 4, 20).astype(float), RNG.random((7, 20)) < 0.8
KERNEL = lb.gaussian(0.7)


@pytest.mark.parametrize("values", [Y, Y[:, 0]], ids=["columns", "one"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_local_mean(values, dtype):
    given = [a.astype(dtype) for a in (Q, X, values)]
    options = {"sample_weight": WEIGHT, "mask": MASK, "return_weights": True, "return_log_sum": True}
    theirs = lb.local_mean(*given, KERNEL, **options)
    ours = lb.local_mean(*given, KERNEL, device="cuda", **options)
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=1e-12 if dtype is np.float64 else 1e-5)
    assert ours[0].dtype == theirs[0].dtype


def test_the_other_functions():
    for function in (lb.log_density, lb.density, lb.local_weights):
        np.testing.assert_allclose(function(Q, X, KERNEL, device="cuda"), function(Q, X, KERNEL), atol=1e-12)
    ours = lb.local_mean_vjp(np.ones((7, 2)), Q, X, Y, KERNEL, device="cuda")
    theirs = lb.local_mean_vjp(np.ones((7, 2)), Q, X, Y, KERNEL)
    for a, b in zip((*ours[:4], ours.kernel[0]), (*theirs[:4], theirs.kernel[0]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_the_estimator():
    models = [lb.LocalMeanRegressor(bandwidth=0.7, device=device).fit(X, Y) for device in ("cuda", "cpu")]
    np.testing.assert_allclose(*(model.predict(Q) for model in models), atol=1e-12)


@pytest.mark.parametrize("values", [Y, Y[:, 0]], ids=["columns", "one"])
def test_gradients_of_arrays_of_the_card(values):
    slope = np.ones((7, *values.shape[1:]))
    on_card = [numba_cuda.to_device(np.ascontiguousarray(a)) for a in (slope, Q, X, values)]
    found = lb.local_mean_vjp(*on_card, KERNEL, device="cuda")
    theirs = lb.local_mean_vjp(slope, Q, X, values, KERNEL)
    for a, b in zip(found[:4], theirs[:4], strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a), b, atol=1e-10)
    forward = lb.local_mean(*on_card[1:], KERNEL, device="cuda", return_log_sum=True)
    again = lb.local_mean_vjp(*on_card, KERNEL, device="cuda", forward=forward)
    np.testing.assert_allclose(np.asarray(again.queries), theirs.queries, atol=1e-10)
    with pytest.raises(ValueError, match=r"forward\[1\] must hold one log-sum"):
        lb.local_mean_vjp(*on_card, KERNEL, device="cuda", forward=(forward[0], forward[1][:5]))
    single = [numba_cuda.to_device(np.ascontiguousarray(a, dtype=np.float32)) for a in (slope, Q, X, values)]
    assert lb.local_mean_vjp(*single, lb.gaussian([0.7, 0.9]), device="cuda").queries.dtype == np.float32
    with pytest.raises(ValueError, match="cotangent must have the shape"):
        lb.local_mean_vjp(on_card[0][:5], *on_card[1:], KERNEL, device="cuda")


def test_arrays_of_the_card():
    on_card = [numba_cuda.to_device(a) for a in (Q, X, Y)]
    found = lb.local_mean(*on_card, KERNEL, device="cuda", return_log_sum=True)
    theirs = lb.local_mean(Q, X, Y, KERNEL, return_log_sum=True)
    for a, b in zip(found, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), b, atol=1e-12)
