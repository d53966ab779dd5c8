"""The local mean as a layer of PyTorch."""

import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import locbook as lb
import locbook.torch

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)
M, N = 6, 9


def tensor(array, dtype=None, *, grad=True):
    return torch.tensor(array, dtype=dtype or torch.float64, requires_grad=grad)


def points(dtype=None):
    """Queries, samples (the last column whole times), values, sample weights."""
    time = [np.arange(size, dtype=float)[::-1].copy() for size in (M, N)]
    q, x = (np.column_stack([RNG.normal(size=(len(t), 2)), t]) for t in time)
    arrays = (q, x, RNG.normal(size=(N, 2)), RNG.uniform(0.5, 2, N))
    return [tensor(a, dtype) for a in arrays]


CASES = {
    "gaussian": (lb.gaussian(on=[0, 1]), [1.3]),
    "vector": (lb.laplace([1.0, 1.0], on=[0, 1]), [[0.8, 1.4]]),
    "matrix": (lb.gaussian(np.eye(2), on=[0, 1]), [[[1.0, 0.2], [0.1, 0.8]]]),
    "per sample": (lb.gaussian(lb.per_sample(np.ones(N)), on=[0, 1]), [np.linspace(0.5, 2, N)]),
    "per query": (lb.cauchy(lb.per_query(np.ones(M)), on=[0, 1]) * 2.0, [np.linspace(0.5, 2, M)]),
    "angles": (lb.von_mises(on=[0, 1]) + 0.1, [2.0, None]),
    "table": (lb.discrete(np.ones((M, N)), on=2), [RNG.uniform(0.1, 1, (M, N))]),
    "attention": (
        lb.softmax(on=[0, 1]) * lb.relative_bias([0, 0, 0], on=2, first=-1) * (lb.causal(on=2) + 0.1),
        [1.4, [0.5, -1.0, 0.3], None, None],
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_gradcheck(name):
    kernel, parameters = CASES[name]
    q, x, values, weight = points()
    some = [i for i, p in enumerate(parameters) if p is not None]
    mask = torch.tensor(RNG.random((M, N)) < 0.8)
    mask[:, -1] = True

    def function(place_q, place_x, values, weight, *given):
        whole = list(parameters)
        for i, p in zip(some, given, strict=True):
            whole[i] = p
        # the times are no coordinates here
        q_, x_ = (torch.cat([a, b[:, 2:].detach()], 1) for a, b in ((place_q, q), (place_x, x)))
        return lb.torch.local_mean(q_, x_, values, kernel, parameters=whole, sample_weight=weight, mask=mask)

    given = [tensor(parameters[i]) for i in some]
    places = [tensor(a[:, :2].detach().numpy()) for a in (q, x)]
    assert torch.autograd.gradcheck(function, (*places, values, weight, *given), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_as_the_dense_formula(dtype):
    q, x, values, weight = points(dtype)
    width = tensor(0.9, dtype)
    kernel = lb.gaussian(on=[0, 1])
    ours = lb.torch.local_mean(q, x, values, kernel, parameters=[width], sample_weight=weight)
    scores = -0.5 * torch.cdist(q[:, :2], x[:, :2]) ** 2 / width**2 + weight.log()
    dense = torch.softmax(scores, 1) @ values
    assert ours.dtype == dense.dtype == dtype
    slope = torch.randn(M, 2, dtype=dtype, generator=torch.Generator().manual_seed(1))
    inputs = (q, x, values, weight, width)
    found, expected = (torch.autograd.grad((y * slope).sum(), inputs) for y in (ours, dense))
    tolerance = 1e-10 if dtype == torch.float64 else 1e-4
    torch.testing.assert_close(ours, dense, rtol=tolerance, atol=tolerance)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_only_what_needs_a_gradient_gets_one():
    q, x, values, _ = points()
    still = x.detach()
    # a metric without a derivative is no obstacle where none is asked for
    means = lb.torch.local_mean(q.detach(), still, values, lb.gaussian(0.5, metric="hamming"))
    means.sum().backward()
    assert values.grad is not None
    assert q.grad is None
    assert not lb.torch.local_mean(q.detach(), still, values.detach()).requires_grad
    with pytest.raises(ValueError, match="metric 'hamming' has no derivative"):
        lb.torch.local_mean(q, still, values, lb.gaussian(0.5, metric="hamming")).sum().backward()


@pytest.mark.parametrize(
    "kernel", [lb.gaussian(), lb.softmax(), lb.laplace() * lb.biweight(4.0, on=0)], ids=repr
)
def test_a_batch(kernel):
    rng = np.random.default_rng(1)
    q, x, values, weight = (
        tensor(rng.normal(size=(2, 3, 5, 2))), tensor(rng.normal(size=(2, 1, 7, 2))),
        tensor(rng.normal(size=(1, 3, 7, 4))), tensor(rng.uniform(0.5, 2, size=(2, 1, 7))),
    )  # fmt: skip
    parameters = [tensor(1.2), *[None for _ in kernel.leaves()][1:]]

    def function(q, x, values, weight, first):
        return lb.torch.local_mean(
            q, x, values, kernel, parameters=[first, *parameters[1:]], sample_weight=weight
        )

    assert function(q, x, values, weight, parameters[0]).shape == (2, 3, 5, 4)
    assert torch.autograd.gradcheck(function, (q, x, values, weight, parameters[0]), rtol=1e-6, atol=1e-8)


def test_means_that_were_changed_are_not_used():
    q, x, values, _ = points()
    means = lb.torch.local_mean(q, x, values)
    means += 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        means.sum().backward()


def test_queries_that_are_the_samples_add_up_both():
    _, x, values, _ = points()
    x = tensor(x.detach()[:, :2].numpy())
    slope = RNG.normal(size=(N, 2))
    (lb.torch.local_mean(x, x, values, lb.gaussian().hollow()) * tensor(slope, grad=False)).sum().backward()
    array = x.detach().numpy()
    apart = lb.local_mean_vjp(slope, array, array, values.detach().numpy(), lb.gaussian().hollow())
    np.testing.assert_allclose(x.grad.numpy(), apart.queries + apart.samples, rtol=1e-12)


def test_one_column_of_values_and_several_steps_of_a_graph():
    q, x, values, _ = points()
    first, log_width = values[:, 0], tensor(0.2)
    means = lb.torch.local_mean(2 * q[:, :2], x[:, :2], first, "laplace", parameters=[log_width.exp()])
    assert means.shape == (M,)
    means.square().sum().backward()
    assert all(torch.isfinite(t.grad).all() and t.grad.abs().sum() > 0 for t in (q, x, values, log_width))
    assert (values.grad[:, 1] == 0).all()


def test_a_query_without_a_neighbour_has_no_gradient():
    q, x, values = tensor([[0.0], [50.0]]), tensor([[0.1], [0.7]]), tensor([1.0, 2.0])
    with pytest.warns(lb.EmptyNeighborhoodWarning):
        means = lb.torch.local_mean(q, x, values, lb.tricube(1.0))
    assert torch.isnan(means).tolist() == [False, True]
    torch.nan_to_num(means).sum().backward()
    assert q.grad[1] == 0
    assert q.grad[0] != 0


def test_it_is_differentiable_once():
    q, x, values, _ = points()
    for loss in (torch.sum, torch.norm):
        means = lb.torch.local_mean(q, x, values)
        (slope,) = torch.autograd.grad(loss(means), q, create_graph=True)
        with pytest.raises(RuntimeError, match="can be differentiated once, not twice"):
            slope.sum().backward()


def test_the_example_runs():
    text = inspect.getdoc(lb.torch.local_mean).partition("loss::")[2]
    names = {}
    exec(textwrap.dedent(text), names)
    x, y = names["x"].double().numpy(), names["y"].double().numpy()
    best = lb.select_bandwidth(x, y)
    assert names["loss"].item() == pytest.approx(best.score, rel=0.01)
    assert names["log_bandwidth"].exp().item() == pytest.approx(best.bandwidth, rel=0.1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"queries": np.zeros((2, 1))}, TypeError, "queries must be a tensor, got ndarray"),
        ({"values": torch.zeros(3, dtype=torch.int64)}, TypeError, "values must be torch.float32 or torch.float64"),
        ({"samples": torch.zeros(3, 1, dtype=torch.bfloat16)}, TypeError, "samples must be torch.float32"),
        ({"mask": torch.ones(2, 3)}, TypeError, "mask must be torch.bool, got torch.float32"),
        ({"samples": torch.zeros(3, 1, device="meta")}, ValueError, r"samples must be in the memory .*got meta"),
        ({"kernel": lb.gaussian}, TypeError, "kernel must be a Kernel or a name"),
        ({"kernel": "bell"}, ValueError, "kernel must be a Kernel or one of"),
        ({"parameters": []}, ValueError, "parameters must have one entry for each of the 1 leaves, got 0"),
        ({"parameters": [0.5]}, TypeError, r"parameters\[0\] must be a tensor, got float"),
        ({"parameters": [torch.tensor(-1.0)]}, ValueError, "bandwidth must be a finite number above 0"),
        ({"kernel": lb.knn(2), "parameters": [torch.tensor(1.0)]}, ValueError, "parameters: kernel knn.* has none"),
    ],
)  # fmt: skip
def test_bad_input(change, error, message):
    given = {"queries": torch.zeros(2, 1), "samples": torch.zeros(3, 1), "values": torch.zeros(3)}
    with pytest.raises(error, match=message):
        lb.torch.local_mean(**{**given, **change})


def test_without_pytorch_there_is_a_word_about_it():
    code = """if True:
        import sys
        sys.modules["torch"] = None
        import locbook.torch
        try:
            locbook.torch.local_mean(1, 2, 3)
        except ImportError as error:
            print(error)"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert run.stdout.startswith("locbook.torch needs PyTorch, which is not installed")


def test_locbook_does_not_import_it():
    code = "import sys, locbook, locbook.torch; locbook.local_mean, print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert run.stdout == "False\n"
