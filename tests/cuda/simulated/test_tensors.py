"""``locbook.torch`` on tensors of a card: they are read where they lie, and so are the answers made there."""

from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda as numba_cuda

import locbook as lb
import locbook.torch

torch = pytest.importorskip("torch")

from locbook.engine.cuda import arrays as cuda_arrays  # noqa: E402
from locbook.engine.cuda import backend, gradients  # noqa: E402
from tests.cuda import tensors  # noqa: E402
from tests.cuda.copies import copies, stay  # noqa: E402
from tests.cuda.tensors import CardTensor  # noqa: E402

RNG = np.random.default_rng(0)
M, N = 6, 7


def points(dtype=torch.float64):
    """Queries, samples, values, sample weights."""
    shapes = (M, 2), (N, 2), (N, 2)
    given = [torch.tensor(RNG.normal(size=shape), dtype=dtype) for shape in shapes]
    return [*given, torch.tensor(RNG.uniform(0.5, 2, N), dtype=dtype)]


def on_card(given, **options):
    return [CardTensor(t.clone(), **options) for t in given]


@pytest.fixture
def noted(monkeypatch):
    return tensors.install(monkeypatch)


def test_the_fake_keeps_its_numbers(noted):
    (t,) = on_card([torch.ones(2, 3)])
    for reach in (lambda: t.numpy(), lambda: np.asarray(t)):
        with pytest.raises((RuntimeError, TypeError)):
            reach()
    assert backend.as_device(t)._ary.ctypes.data == t.inner.data_ptr()
    assert isinstance(2 * t + t.exp(), CardTensor)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kernel", [lb.gaussian([1.0, 1.0]), lb.tricube([4.0, 5.0]) + 0.1], ids=repr)
def test_as_on_the_processor(kernel, dtype, noted):
    given = [*points(dtype), torch.tensor([1.1, 1.7], dtype=dtype)]
    mask = torch.tensor(RNG.random((M, N)) < 0.8)
    mask[:, -1] = True
    slope = torch.tensor(RNG.normal(size=(M, 2)), dtype=dtype)
    found = []
    for place in ("processor", "card"):
        q, x, values, weight, width = (
            on_card(given, requires_grad=True) if place == "card" else [t.requires_grad_() for t in given]
        )
        here = CardTensor(mask) if place == "card" else mask
        parameters = [width, *[None for _ in kernel.leaves()][1:]]
        means = lb.torch.local_mean(
            q, x, values, kernel, parameters=parameters, sample_weight=weight, mask=here
        )
        wanted = q, x, values, weight, width
        slopes = torch.autograd.grad(
            (means * (CardTensor(slope) if place == "card" else slope)).sum(), wanted
        )
        found.append((means, *slopes))
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    for ours, theirs in zip(*reversed(found), strict=True):
        assert isinstance(ours, CardTensor)
        assert ours.dtype == theirs.dtype == dtype
        torch.testing.assert_close(ours.inner, theirs.detach(), rtol=tolerance, atol=tolerance)
    assert set(noted) == {"cuda:0"}


def test_a_batch(noted):
    rng = np.random.default_rng(1)
    shapes = (2, 3, 4, 2), (2, 1, 5, 2), (1, 3, 5, 4), (2, 1, 5)
    given = [torch.tensor(rng.uniform(0.5, 2, size=shape)) for shape in shapes]
    found = []
    for card in (False, True):
        here = on_card(given, requires_grad=True) if card else [t.requires_grad_() for t in given]
        means = lb.torch.local_mean(*here[:3], "softmax", sample_weight=here[3])
        found.append((means, *torch.autograd.grad(means.square().sum(), here)))
    for theirs, ours in zip(*found, strict=True):
        assert isinstance(ours, CardTensor)
        torch.testing.assert_close(ours.inner, theirs.detach(), rtol=1e-10, atol=1e-10)


def test_nothing_is_copied(noted, monkeypatch):
    q, x, values, _ = on_card(points())
    taken = []
    real = backend.as_device
    monkeypatch.setattr(backend, "as_device", lambda a: taken.append(a) or real(a))
    means = lb.torch.local_mean(q, x, values, "laplace")
    pointers = {t.__cuda_array_interface__["data"][0] for t in taken if isinstance(t, CardTensor)}
    assert {t.inner.data_ptr() for t in (q, x, values)} == pointers
    assert isinstance(means, CardTensor)


@pytest.fixture
def brought(noted, monkeypatch):
    """What comes to the host, where columns are brought down to one number."""
    for module in (cuda_arrays, gradients):
        monkeypatch.setattr(module, "FEW", 1)
    return copies(monkeypatch)


def compare(found, theirs, tolerance=1e-10):
    for ours, other in zip(found[:4], theirs[:4], strict=True):
        assert isinstance(ours, CardTensor)
        torch.testing.assert_close(ours.inner.numpy(), other, rtol=tolerance, atol=tolerance)
    for ours, other in zip(found.kernel, theirs.kernel, strict=True):
        torch.testing.assert_close(ours, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kernel", [lb.softmax(1.5), lb.cauchy([1.0, 2.0])], ids=repr)
def test_a_gradient_stays_on_the_card(kernel, dtype, brought):
    """In and out, under a mask, with multiplicities, and of a forward pass: no array comes to the host."""
    mask = torch.tensor(RNG.random((M, N)) < 0.8)
    mask[:, -1] = True
    q, x, values, weight = given = points(dtype)
    slope = torch.tensor(RNG.normal(size=(M, 2)), dtype=dtype)
    theirs = lb.local_mean_vjp(
        *(t.numpy() for t in (slope, q, x, values)), kernel, sample_weight=weight.numpy(), mask=mask.numpy()
    )
    c, q, x, values, weight, mask = on_card([slope, *given, mask])
    options = {"sample_weight": weight, "mask": mask}
    forward = lb.local_mean(q, x, values, kernel, **options, return_log_sum=True)
    for known in (None, forward):
        found = lb.local_mean_vjp(c, q, x, values, kernel, **options, forward=known)
        assert {a.dtype for a in found[:4]} == {dtype}
        compare(found, theirs, 1e-10 if dtype == torch.float64 else 1e-4)
    # the means of float32 are looked at, query by query
    assert stay((c, q, x, values, weight, mask, *forward), brought, M if dtype == torch.float64 else 1000)


@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.gaussian(lb.per_query([1.0, 2.0, 1.5]))], ids=repr)
def test_a_gradient_of_a_batch_stays_on_the_card(kernel, brought):
    """What is stretched is stretched there, and added up there."""
    shapes = (2, 1, 3, 2), (3, 5, 2), (1, 3, 5, 2), (2, 1, 5), (3, 1, 5), (2, 3, 3, 2)
    q, x, values, weight, mask, c = [torch.tensor(RNG.uniform(0.5, 2, size=shape)) for shape in shapes]
    given, mask = (c, q, x, values), mask < 1.5
    mask[..., 0] = True
    options = {"sample_weight": weight, "mask": mask}
    theirs = lb.local_mean_vjp(
        *(t.numpy() for t in given), kernel, **{name: t.numpy() for name, t in options.items()}
    )
    given, options = on_card(given), dict(zip(options, on_card(options.values()), strict=True))
    forward = lb.local_mean(*given[1:], kernel, **options, return_log_sum=True)
    for known in (None, forward):
        compare(lb.local_mean_vjp(*given, kernel, **options, forward=known), theirs)
    # a number of each of the six problems, and the derivatives by what a kernel holds, of the queries of one
    assert stay((*given, *options.values(), *forward), brought, 7)


def test_the_queries_that_are_the_samples(noted):
    _, x, values, _ = points()
    found = []
    for t, v in (
        (x.clone().requires_grad_(), values),
        (CardTensor(x, requires_grad=True), CardTensor(values)),
    ):
        lb.torch.local_mean(t, t, v[:, 0], lb.gaussian().hollow()).square().sum().backward()
        found.append(t.grad)
    torch.testing.assert_close(found[1].inner, found[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("current", [0, 7])
def test_the_stream_that_makes_a_tensor_is_waited_for(current, monkeypatch):
    noted = tensors.install(monkeypatch, current)
    lb.torch.local_mean(*on_card(points())[:3])
    assert ("stream" in noted) == (current != 0)


@pytest.mark.parametrize("which", [0, 1, 2, 3, "sample_weight", "mask"])
def test_the_stream_that_an_array_names_is_waited_for(which):
    """Of each array of a gradient, the cotangent among them."""
    ready = []
    stream = SimpleNamespace(synchronize=lambda: ready.append(True))
    q, x, values, weight = (t.numpy() for t in points())
    given = dict(enumerate([np.ones((M, 2)), q, x, values]))
    given |= {"sample_weight": weight, "mask": np.ones((M, N), dtype=bool)}
    given = {name: numba_cuda.to_device(array) for name, array in given.items()}
    given[which] = given[which].bind(stream)
    positional = [given.pop(k) for k in range(4)]
    lb.local_mean_vjp(*positional, **given, wrt=("values",))
    assert ready


def test_the_default_stream_is_waited_for_before_an_answer_is_given_back(noted, monkeypatch):
    ready = []

    class Stream:
        def synchronize(self):
            ready.append(True)

    monkeypatch.setattr(backend.cuda, "default_stream", Stream)
    monkeypatch.setattr(torch, "as_tensor", lambda *a, **o: ready or pytest.fail("too early"))
    backend.give_back(np.zeros(2), "torch")


@pytest.mark.parametrize("name", ["samples", "values", "sample_weight", "mask", "parameters[0]"])
@pytest.mark.parametrize("other", ["cpu", "cuda:1"])
def test_tensors_of_different_devices(name, other):
    q, x, values, weight = points()
    given = {
        "queries": q, "samples": x, "values": values, "sample_weight": weight,
        "mask": torch.ones(M, N, dtype=torch.bool), "parameters[0]": torch.tensor(1.0),
    }  # fmt: skip
    given = {k: t if k == name and other == "cpu" else CardTensor(t) for k, t in given.items()}
    if other != "cpu":
        given[name] = CardTensor(given[name].inner, other)
    given["parameters"] = [given.pop("parameters[0]")]
    place = f"{name} must be on cuda:0, where queries are, got {other}".replace("[", r"\[")
    with pytest.raises(ValueError, match=place):
        lb.torch.local_mean(**given)
