"""The tests of the simulator, and larger ones, on a card. **Not yet run on a card.**

``python -m pytest tests/cuda/test_on_card.py``, where there is one; it compiles hundreds of kernels, a second each.
"""

import numpy as np
import pytest

import locbook as lb
import locbook.torch
from locbook import engine
from locbook.engine import Problem, cuda
from locbook.engine.cuda import backend
from tests.cuda.copies import copies, stay
from tests.engine.problems import KERNELS, arrays, close

HERE = cuda.is_available() and not backend.SIMULATED
pytestmark = [
    pytest.mark.skipif(not HERE, reason="no CUDA card, or numba-cuda is not installed"),
    pytest.mark.filterwarnings("ignore::locbook.EmptyNeighborhoodWarning"),
]

if HERE:
    from tests.cuda.simulated.test_batches import *  # noqa: F403
    from tests.cuda.simulated.test_gradients import *  # noqa: F403
    from tests.cuda.simulated.test_hard import *  # noqa: F403
    from tests.cuda.simulated.test_twins import *  # noqa: F403

TOLERANCE = {np.float64: 1e-10, np.float32: 2e-5}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "softmax"])
@pytest.mark.parametrize(("d", "p"), [(2, 1), (8, 8), (64, 64), (100, 3)])
def test_one_leaf_as_the_processor(name, d, p, dtype):
    rng = np.random.default_rng(0)
    q, x = (rng.normal(size=(size, d)).astype(dtype) for size in (3000, 20_000))
    values = rng.normal(size=(len(x), p)).astype(dtype)
    given = Problem.check(q, x, lb.KERNELS[name](float(np.sqrt(d))))
    close(cuda.mean(given, values), engine.mean(given, values), TOLERANCE[dtype])
    close(cuda.log_sum(given), engine.log_sum(given), TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [name for name in KERNELS if "per " not in name])
def test_programs_as_the_processor(name, dtype):
    q, x, values, labels, *_ = arrays(1000, 5000)
    q[:, 1], x[:, 1] = 1.03 * np.round(10 * q[:, 1]), 1.03 * np.round(10 * x[:, 1])
    if "bias" in name:
        q[:, 1], x[:, 1] = np.round(q[:, 1]), np.round(x[:, 1])
    q, x, values = q.astype(dtype), x.astype(dtype), values.astype(dtype)
    given = Problem.check(q, x, KERNELS[name])
    close(cuda.mean(given, values, warn=False), engine.mean(given, values, warn=False), TOLERANCE[dtype])
    close(cuda.classes(given, labels, 3), engine.classes(given, labels, 3), TOLERANCE[dtype])


def test_nearest_as_the_processor():
    q, x, *_ = arrays(500, 30_000)
    given = Problem.check(q, x, "gaussian")
    ours, theirs = cuda.nearest(given, 50), engine.nearest(given, 50)
    close(ours.distances, theirs.distances)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [lb.softmax(8.0), lb.softmax(8.0, on=[0, 1]) * lb.causal(on=2)], ids=repr)
def test_batches_as_the_processor(kernel, dtype):
    rng = np.random.default_rng(0)
    q, x, values = (rng.normal(size=(8, 12, length, 64)).astype(dtype) for length in (200, 300, 300))
    q[..., 2], x[..., 2] = np.arange(200) + 100, np.arange(300)
    ours, theirs = (module.batch_mean(module.Batch.check(q, x, values, kernel)) for module in (cuda, engine))
    for a, b in zip(ours, theirs, strict=True):
        close(a, b, TOLERANCE[dtype])


def test_same_bits_in_every_run():
    q, x, values, *_ = (a.astype(np.float32) for a in arrays(5000, 40_000)[:3])
    for kernel in (lb.gaussian(1.0), lb.gaussian(1.0) + lb.laplace(2.0)):
        given = Problem.check(q, x, kernel)
        first = cuda.mean(given, values)
        for _ in range(3):
            np.testing.assert_array_equal(cuda.mean(given, values), first)


@pytest.mark.parametrize("package", ["torch", "cupy"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_of_others(package, dtype):
    module = pytest.importorskip(package)
    q, x, values, *_ = (a.astype(dtype) for a in arrays(100, 500)[:3])

    def there(array):
        return module.as_tensor(array, device="cuda") if package == "torch" else module.asarray(array)

    on_card = [there(array) for array in (q, x, values)]
    host = Problem.check(q, x, "gaussian")
    given = cuda.check_problem(on_card[0], on_card[1], "gaussian")
    found = cuda.mean(given, on_card[2])
    assert given.samples is on_card[1]  # no copy
    assert type(found) is type(on_card[0])
    close(backend.to_host(found), engine.mean(host, values), 1e-6)


@pytest.mark.parametrize("package", ["torch", "cupy"])
@pytest.mark.parametrize("batch", [False, True], ids=["alone", "batch"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_others_stay_on_the_card(package, batch, dtype, monkeypatch):
    """In and out, under a mask, with multiplicities, and of a forward pass: no array comes to the host."""
    module, rng = pytest.importorskip(package), np.random.default_rng(0)
    tolerance = 1e-10 if dtype == "float64" else 1e-4
    shapes = (100, 3), (500, 3), (500, 2), (500,), (100, 500), (100, 2)
    if batch:
        shapes = (2, 4, 100, 3), (4, 500, 3), (2, 1, 500, 2), (4, 500), (2, 1, 100, 500), (2, 4, 100, 2)
    q, x, values, weight, mask, c = (rng.uniform(0.5, 2, shape).astype(dtype) for shape in shapes)
    mask = mask < 1.5

    def there(array):
        return module.as_tensor(array, device="cuda") if package == "torch" else module.asarray(array)

    kernel = lb.cauchy([1.0, 2.0, 1.5])
    theirs = lb.local_mean_vjp(c, q, x, values, kernel, sample_weight=weight, mask=mask)
    q, x, values, weight, mask, c = map(there, (q, x, values, weight, mask, c))
    brought, options = copies(monkeypatch), {"sample_weight": weight, "mask": mask}
    forward = lb.local_mean(q, x, values, kernel, **options, return_log_sum=True)
    for known in (None, forward):
        found = lb.local_mean_vjp(c, q, x, values, kernel, **options, forward=known)
        assert stay((c, q, x, values, weight, mask, *forward), brought, 65 if dtype == "float64" else 4001)
        for name in ("queries", "samples", "values", "sample_weight"):
            ours, other = getattr(found, name), getattr(theirs, name)
            assert type(ours) is type(q)
            assert ours.dtype == q.dtype
            close(ours.cpu().numpy() if package == "torch" else module.asnumpy(ours), other, tolerance)
        close(found.kernel[0], theirs.kernel[0], tolerance)


# -- PyTorch's tensors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.tricube(4.0) + 0.1], ids=repr)
def test_gradcheck_of_tensors_on_the_card(kernel):
    torch = pytest.importorskip("torch")
    q, x, values, *_ = arrays(6, 9)
    given = [torch.tensor(a, device="cuda", requires_grad=True) for a in (q, x, values, np.ones(9), 1.3)]

    def function(q, x, values, weight, width):
        parameters = [width, *[None for _ in kernel.leaves()][1:]]
        return locbook.torch.local_mean(q, x, values, kernel, parameters=parameters, sample_weight=weight)

    assert torch.autograd.gradcheck(function, given, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("aside", [False, True], ids=["default stream", "another stream"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors_as_on_the_processor(dtype, aside):
    torch = pytest.importorskip("torch")
    given = [torch.tensor(a, dtype=getattr(torch, dtype)) for a in arrays(700, 3000)[:3]]
    found = []
    for device in ("cpu", "cuda"):
        stream = torch.cuda.Stream() if aside and device == "cuda" else torch.cuda.current_stream()
        with torch.cuda.stream(stream):
            q, x, values = (t.to(device).requires_grad_() for t in given)
            # a tensor that is still being made
            means = locbook.torch.local_mean(q * 1.0, x, values, "laplace")
            found.append((means, *torch.autograd.grad(means.square().sum(), (q, x, values))))
        torch.cuda.synchronize()
    for theirs, ours in zip(*found, strict=True):
        assert ours.device.type == "cuda"
        assert ours.dtype == theirs.dtype
        close(ours.detach().cpu(), theirs.detach(), 1e-10 if dtype == "float64" else 1e-4)
