"""Where to compute: what is chosen, and what is said where there is no card."""

import numpy as np
import pytest

import locbook as lb
from locbook import engine

X = np.random.default_rng(0).normal(size=(30, 2))
Y = X[:, 0] ** 2


class OnCard:
    """An array that says it lives on a card, by one of the two protocols."""

    def __init__(self, protocol):
        if protocol == "interface":
            self.__cuda_array_interface__ = {
                "shape": (30, 2),
                "typestr": "<f8",
                "data": (0, False),
                "version": 3,
            }
        else:
            self.__dlpack_device__ = lambda: (2, 0)


CALLS = {
    "local_mean": lambda x, **o: lb.local_mean(x, x, Y, **o),
    "local_weights": lambda x, **o: lb.local_weights(x, x, **o),
    "local_mean_vjp": lambda x, **o: lb.local_mean_vjp(Y, x, x, Y, **o),
    "log_density": lambda x, **o: lb.log_density(x, x, **o),
    "density": lambda x, **o: lb.density(x, x, **o),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_processor_is_the_default(call):
    first = call(X)
    for device in ("auto", "cpu"):
        found = call(X, device=device)
        if isinstance(first, tuple):
            for a, b in zip(first, found, strict=True):
                np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_array_equal(first, found)


@pytest.mark.parametrize("device", ["gpu", "", None, 0, "CUDA"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_unknown_devices(call, device):
    with pytest.raises(ValueError, match="device must be one of 'auto', 'cpu', 'cuda'"):
        call(X, device=device)


@pytest.mark.parametrize("protocol", ["interface", "dlpack"])
def test_auto_is_where_the_arrays_are(protocol):
    given = OnCard(protocol)
    assert engine.choose_device("auto", queries=X, samples=given) == "cuda"
    assert engine.choose_device("auto", queries=X, samples=X.tolist()) == "cpu"
    assert engine.choose_device("cuda", queries=X) == "cuda"
    with pytest.raises(ValueError, match="device='cpu', but samples lives on a card"):
        engine.choose_device("cpu", queries=X, samples=given)


def test_tensors_of_the_processor_stay_there():
    torch = pytest.importorskip("torch")
    assert engine.choose_device("auto", queries=torch.zeros(3, 2)) == "cpu"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_without_a_card(call):
    cuda = pytest.importorskip("locbook.engine.cuda")
    if cuda.is_available():
        pytest.skip("there is a card")
    for given, device in ((X, "cuda"), (OnCard("interface"), "auto")):
        with pytest.raises(cuda.DeviceError, match="device='cuda' is not available"):
            call(given, device=device)


def test_the_estimator_has_a_device():
    cuda = pytest.importorskip("locbook.engine.cuda")
    model = lb.LocalMeanRegressor(bandwidth=0.5, device="cpu").fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), lb.LocalMeanRegressor(bandwidth=0.5).fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="device"):
        lb.LocalMeanRegressor(device="gpu").fit(X, Y)
    if not cuda.is_available():
        with pytest.raises(cuda.DeviceError, match="device"):
            lb.LocalMeanRegressor(device="cuda").fit(X, Y)


def test_a_batch_without_a_card():
    cuda = pytest.importorskip("locbook.engine.cuda")
    if cuda.is_available():
        pytest.skip("there is a card")
    for call in (lb.local_mean, lambda *given, **o: lb.local_mean_vjp(X[None], *given, **o)):
        with pytest.raises(cuda.DeviceError, match="device='cuda' is not available"):
            call(X[None], X[None], X[None], device="cuda")
