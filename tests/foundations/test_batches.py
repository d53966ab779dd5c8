"""A batch of problems is each problem alone: values and gradients."""

import itertools
import math

import numpy as np
import pytest

import locbook as lb
from locbook import engine

LEAD, D, P = (2, 3), 4, 5
FEATURES, TIME = [0, 1, 2], 3
KERNELS = {
    "softmax": lb.softmax(1.5, on=FEATURES),
    "gaussian": lb.gaussian(1.2, on=FEATURES),
    "gaussian by column": lb.gaussian([0.7, 1.0, 2.0, 30.0]),
    "laplace": lb.laplace(2.0, on=FEATURES),
    "causal": lb.softmax(1.5, on=FEATURES) * lb.causal(on=TIME),
    "alibi": lb.softmax(1.5, on=FEATURES) * lb.laplace(9.0, on=TIME) * lb.causal(on=TIME),
    "bias": lb.softmax(1.5, on=FEATURES) * lb.relative_bias(np.linspace(-1, 1, 9), on=TIME, first=-4),
    "sum": 2.0 * lb.gaussian(0.8, on=FEATURES) + lb.cauchy(3.0),
    "compact": lb.epanechnikov(3.0, on=FEATURES),
    "knn": lb.knn(3, on=FEATURES),
    "kNN bandwidth": lb.gaussian(lb.knn_bandwidth(4), on=FEATURES),
}
SIZES = [(1, 1), (5, 7), (64, 64), (97, 130), (12, 260)]
#: All but one sample for several neighbours.
CASES = [(name, size) for name in KERNELS for size in SIZES if size[1] > 5 or "nn" not in name.lower()]
BOUND = {np.float64: 1e-12, np.float32: 1e-5}


def arrays(m, n, dtype, seed=0):
    """Samples shared by the heads, a time column, values of each head."""
    rng = np.random.default_rng(seed)
    q, x = rng.normal(size=(*LEAD, m, D)), rng.normal(size=(LEAD[0], 1, n, D))
    q[..., TIME], x[..., TIME] = np.arange(m) + max(n - m, 0), np.arange(n)
    values, slope = rng.normal(size=(*LEAD, n, P)), rng.normal(size=(*LEAD, m, P))
    return [a.astype(dtype) for a in (q, x, values, slope)]


def options(m, n, seed=1):
    rng = np.random.default_rng(seed)
    mask = rng.random((LEAD[0], 1, m, n)) < 0.7
    mask[..., : -(-n // 2)] = True
    weight = rng.random((LEAD[0], 1, n)) + 1.0
    return {"": {}, "weight": {"sample_weight": weight}, "both": {"sample_weight": weight, "mask": mask}}


def alone(given, some):
    """The arguments of each problem."""
    full = {name: np.broadcast_to(a, (*LEAD, *a.shape[2:])) for name, a in some.items()}
    for index in itertools.product(*map(range, LEAD)):
        yield (
            index,
            [np.broadcast_to(a, (*LEAD, *a.shape[2:]))[index] for a in given],
            {k: a[index] for k, a in full.items()},
        )


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize(("name", "size"), CASES)
def test_each_problem_alone(name, size, dtype):
    q, x, values, _ = arrays(*size, dtype)
    for some in options(*size).values():
        means, log_sums = lb.local_mean(
            q, x, values, KERNELS[name], return_log_sum=True, empty="mean", **some
        )
        assert means.shape == (*LEAD, size[0], P)
        assert means.dtype == dtype
        for index, given, own in alone((q, x, values), some):
            right = lb.local_mean(*given, KERNELS[name], return_log_sum=True, empty="mean", **own)
            np.testing.assert_allclose(means[index], right[0], atol=BOUND[dtype])
            np.testing.assert_allclose(log_sums[index], right[1], rtol=BOUND[dtype], atol=BOUND[dtype])


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize(("name", "size"), CASES)
def test_gradients_of_each_problem_alone(name, size, dtype):
    q, x, values, slope = arrays(*size, dtype)
    bound = {np.float64: 1e-11, np.float32: 1e-4}[dtype]
    for some in options(*size).values():
        ours = lb.local_mean_vjp(slope, q, x, values, KERNELS[name], **some)
        right = [np.zeros(a.shape) for a in ours[:4]]
        kernel = None
        for index, given, own in alone((slope, q, x, values), some):
            one = lb.local_mean_vjp(*(a.astype(np.float64) for a in given), KERNELS[name], **own)
            for whole, part in zip(right, one[:4], strict=True):
                whole[
                    tuple(0 if size == 1 else i for i, size in zip(index, whole.shape[:2], strict=True))
                ] += part
            parts = [0.0 if part is None else part for part in one.kernel]
            kernel = parts if kernel is None else [a + b for a, b in zip(kernel, parts, strict=True)]
        for name_, a, b in zip(engine.LocalMeanGradient._fields, ours[:4], right, strict=False):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, atol=bound * max(1.0, np.abs(b).max()), err_msg=name_)
        for a, b in zip(ours.kernel, kernel, strict=True):
            if a is not None:
                np.testing.assert_allclose(a, b, atol=2 * bound * max(1.0, np.abs(b).max()))


@pytest.mark.parametrize("name", ["softmax", "causal", "gaussian by column"])
def test_threads_change_no_bit(name, threads):
    q, x, values, slope = arrays(97, 130, np.float32)
    found = []
    for count in (1, 2, 3):
        threads(count)
        means, log_sums = lb.local_mean(q, x, values, KERNELS[name], return_log_sum=True)
        found.append([means, log_sums, *lb.local_mean_vjp(slope, q, x, values, KERNELS[name])[:4]])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_forward_pass_may_be_given():
    for name in ("softmax", "causal"):
        q, x, values, slope = arrays(30, 40, np.float64)
        forward = lb.local_mean(q, x, values, KERNELS[name], return_log_sum=True)
        ours = lb.local_mean_vjp(slope, q, x, values, KERNELS[name], forward=forward)
        right = lb.local_mean_vjp(slope, q, x, values, KERNELS[name])
        for a, b in zip(ours[:4], right[:4], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def test_padding_by_weight_is_seen_nowhere():
    """Sentences of different length: weight 0, whatever stands there."""
    q, x, values, _ = arrays(20, 30, np.float64)
    weight = np.ones((*LEAD, 30))
    weight[..., 20:] = 0
    kernel = KERNELS["softmax"]
    short = lb.local_mean(q, x[..., :20, :], values[..., :20, :], kernel)
    x, values = (np.broadcast_to(a, (*LEAD, *a.shape[2:])).copy() for a in (x, values))
    x[..., 20:, :], values[..., 20:, :] = 3.0, 1e300
    np.testing.assert_allclose(lb.local_mean(q, x, values, kernel, sample_weight=weight), short, atol=1e-14)


def test_masks_hide_nan_and_empty_rows_follow_the_policy():
    q, x, values, _ = arrays(6, 8, np.float64)
    mask = np.ones((*LEAD, 6, 8), bool)
    mask[1, 2, :, 5:] = False
    mask[0, 1, 3] = False
    x, values = (np.broadcast_to(a, (*LEAD, *a.shape[2:])).copy() for a in (x, values))
    x[1, 2, 6], values[1, 2, 7] = np.nan, np.nan
    with pytest.warns(lb.EmptyNeighborhoodWarning, match="1 of 36"):
        means = lb.local_mean(q, x, values, KERNELS["softmax"], mask=mask)
    assert np.isnan(means[0, 1, 3]).all()
    assert np.isnan(means).sum() == P
    with pytest.raises(ValueError, match="no sample with a positive weight"):
        lb.local_mean(q, x, values, KERNELS["softmax"], mask=mask, empty="raise")
    with pytest.raises(ValueError, match="samples contains NaN"):
        lb.local_mean(q, x, values, KERNELS["softmax"], mask=np.ones((1, 8), bool))
    with pytest.raises(ValueError, match="samples contains NaN"):
        lb.local_mean(q, x, values, KERNELS["softmax"])


def test_means_stay_among_their_own_values():
    q, x, values, _ = arrays(50, 70, np.float32)
    values = values + 1000 * np.arange(6).reshape(2, 3, 1, 1).astype(np.float32)
    means = lb.local_mean(q, x, values, KERNELS["gaussian"])
    assert (means >= values.min(axis=-2, keepdims=True)).all()
    assert (means <= values.max(axis=-2, keepdims=True)).all()


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"queries": np.zeros((2, 4, 5, D))}, ValueError, "leading axes"),
        ({"queries": np.zeros((*LEAD, 5, D + 1))}, ValueError, "columns"),
        ({"values": np.zeros((*LEAD, 8, P))}, ValueError, "rows"),
        ({"values": np.zeros(7)}, ValueError, "values must be"),
        ({"queries": np.full((*LEAD, 5, D), np.nan)}, ValueError, "queries"),
        ({"queries": np.zeros((*LEAD, 0, D))}, ValueError, "queries"),
        ({"samples": np.zeros((*LEAD, 7, D), complex)}, TypeError, "samples"),
        ({"mask": np.ones((5, 7))}, TypeError, "mask"),
        ({"mask": np.ones((4, 7), bool)}, ValueError, "mask"),
        ({"sample_weight": -np.ones((2, 1, 7))}, ValueError, "sample_weight"),
        ({"sample_weight": np.zeros((2, 1, 7))}, ValueError, "sample_weight"),
        ({"sample_weight": np.ones(8)}, ValueError, "sample_weight"),
        ({"kernel": 3}, TypeError, "kernel"),
        ({"kernel": lb.gaussian([1.0, 2.0])}, ValueError, "bandwidth"),
        ({"kernel": lb.gaussian(on=9)}, ValueError, "on|column"),
        ({"return_weights": True}, ValueError, "return_weights"),
        ({"empty": "zero"}, ValueError, "empty"),
    ],
    ids=str,
)
def test_bad_input_is_named(change, error, match):
    q, x, values, _ = arrays(5, 7, np.float64)
    given = {"queries": q, "samples": x, "values": values, "kernel": "gaussian"} | change
    with pytest.raises(error, match=match):
        lb.local_mean(**given)


def test_attention_is_pytorchs():
    torch = pytest.importorskip("torch")
    q, x, values, slope = (np.random.default_rng(k).normal(size=(2, 4, 50, 16)) for k in range(4))
    for dtype, bound in ((np.float64, 1e-10), (np.float32, 1e-4)):
        given = [a.astype(dtype) for a in (q, x, values)]
        tensors = [torch.from_numpy(a).requires_grad_() for a in given]
        wanted = torch.nn.functional.scaled_dot_product_attention(*tensors)
        wanted.backward(torch.from_numpy(slope.astype(dtype)))
        kernel = lb.softmax(math.sqrt(16))
        np.testing.assert_allclose(lb.local_mean(*given, kernel), wanted.detach(), atol=bound)
        found = lb.local_mean_vjp(slope.astype(dtype), *given, kernel)
        for ours, tensor in zip(found[:3], tensors, strict=True):
            np.testing.assert_allclose(ours, tensor.grad, atol=bound)
