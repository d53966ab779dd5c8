"""What a sceptic found in gradients, batches and the choice of bandwidths: nothing of it may come back."""

import warnings

import numpy as np
import pytest

import locbook as lb


def relative(found, wanted):
    wanted = np.asarray(wanted, dtype=np.float64)
    return np.abs(np.asarray(found, dtype=np.float64) - wanted).max() / np.abs(wanted).max()


def dense_gaussian(q, x, v, c, h):
    """Mean and its derivatives by numpy, float64: queries, samples, bandwidth."""
    q, x, v, c = (np.asarray(a, dtype=np.float64) for a in (q, x, v, c))
    gaps = q[:, None] - x[None]
    squared = (gaps**2).sum(-1) / h**2
    shares = np.exp(-0.5 * (squared - squared.min(1, keepdims=True)))
    shares /= shares.sum(1, keepdims=True)
    mean = shares @ v
    pull = shares * np.einsum("ip,ijp->ij", c, v[None] - mean[:, None])
    moved = pull[..., None] * gaps / h**2
    return mean, -moved.sum(1), moved.sum(0), (pull * squared).sum() / h


# -- 1. layout: queries, or cotangents, in Fortran order -------------------------------------------


@pytest.mark.parametrize("m", [3, 7, 8, 35, 71])
@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.softmax(), lb.laplace(1.0)], ids=repr)
def test_the_layout_of_queries_does_not_matter(kernel, m):
    rng = np.random.default_rng(0)
    q, x, v, c = (rng.normal(size=s) for s in ((m, 3), (40, 3), (40, 2), (m, 2)))
    np.testing.assert_allclose(
        lb.local_mean(np.asfortranarray(q), x, v, kernel), lb.local_mean(q, x, v, kernel), rtol=1e-12
    )
    wanted = lb.local_mean_vjp(c, q, x, v, kernel)
    for given in ((np.asfortranarray(c), q), (c, np.asfortranarray(q))):
        found = lb.local_mean_vjp(*given, x, v, kernel)
        for name in ("queries", "samples", "values"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-12)


@pytest.mark.parametrize("on", [[0, 1], [2, 0]])
def test_a_kernel_on_two_of_three_columns(on):
    rng = np.random.default_rng(0)
    q, x, v = (rng.normal(size=s) for s in ((7, 3), (40, 3), (40, 2)))
    wanted = dense_gaussian(q[:, on], x[:, on], v, np.ones((7, 2)), 1.0)[0]
    np.testing.assert_allclose(lb.local_mean(q, x, v, lb.gaussian(1.0, on=on)), wanted, rtol=1e-12)


def test_log_density_of_fortran_queries():
    rng = np.random.default_rng(0)
    q, x = rng.normal(size=(7, 3)), rng.normal(size=(40, 3))
    np.testing.assert_allclose(lb.log_density(np.asfortranarray(q), x), lb.log_density(q, x), rtol=1e-12)


# -- 2. the problems of a batch do not see each other ----------------------------------------------


@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.softmax(), lb.cauchy(1.0)], ids=repr)
def test_values_of_unlike_size_in_a_batch(kernel):
    rng = np.random.default_rng(0)
    q, x, v = (rng.normal(size=s) for s in ((2, 5, 2), (2, 9, 2), (2, 9, 1)))
    v *= np.array([1e-200, 1e200])[:, None, None]
    found = lb.local_mean(q, x, v, kernel)
    for i in range(2):
        np.testing.assert_allclose(found[i], lb.local_mean(q[i], x[i], v[i], kernel), rtol=1e-12)


@pytest.mark.parametrize("kernel", [lb.gaussian(1.0), lb.softmax(), lb.laplace(1.0)], ids=repr)
def test_values_of_unlike_size_in_a_float32_batch(kernel):
    rng = np.random.default_rng(0)
    q, x, v, c = (
        rng.normal(size=s).astype(np.float32) for s in ((2, 70, 2), (2, 65, 2), (2, 65, 3), (2, 70, 3))
    )
    v[0] *= 1e-3
    v[1] += 1e4
    found, slopes = lb.local_mean(q, x, v, kernel), lb.local_mean_vjp(c, q, x, v, kernel)
    double = [a[0].astype(np.float64) for a in (c, q, x, v)]
    assert relative(found[0], lb.local_mean(*double[1:], kernel)) < 1e-5
    wanted = lb.local_mean_vjp(*double, kernel)
    for name in ("queries", "samples"):
        assert relative(getattr(slopes, name)[0], getattr(wanted, name)) < 1e-5


# -- 3. gradients of wide float32 data ------------------------------------------------------------


@pytest.mark.parametrize("spread", [15.0, 90.0, 1e3, 1e4, 9e4])
@pytest.mark.parametrize("given", [False, True])
def test_float32_gradient_of_clusters_far_apart(spread, given):
    rng = np.random.default_rng(1)
    x, q = rng.normal(size=(300, 2)), rng.normal(size=(130, 2))
    for a in (x, q):
        a += np.where(np.arange(len(a)) < len(a) // 2, -spread, spread)[:, None]
    x, q, c = (a.astype(np.float32) for a in (x, q, rng.normal(size=(130, 1))))
    v = (np.sin(x.sum(1, keepdims=True)) + rng.normal(size=(300, 1))).astype(np.float32)
    kernel = lb.gaussian(1.0)
    forward = lb.local_mean(q, x, v, kernel, return_log_sum=True) if given else None
    found = lb.local_mean_vjp(c, q, x, v, kernel, forward=forward)
    _, queries, samples, bandwidth = dense_gaussian(q, x, v, c, 1.0)
    assert relative(found.queries, queries) < 2e-5
    assert relative(found.samples, samples) < 2e-5
    assert relative(found.kernel[0], bandwidth) < 2e-4


def test_float32_gradient_of_softmax_with_samples_far_from_zero():
    rng = np.random.default_rng(1)
    x, q, v, c = (rng.normal(size=s) for s in ((300, 2), (130, 2), (300, 1), (130, 1)))
    single = [a.astype(np.float32) for a in (c, q, x + 1e4, v)]
    wanted = lb.local_mean_vjp(*(a.astype(np.float64) for a in single), lb.softmax())
    found = lb.local_mean_vjp(*single, lb.softmax())
    assert relative(found.queries, wanted.queries) < 1e-5


# -- 4. borders ---------------------------------------------------------------------------------------

X, Y, Q = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 4.0]), np.array([[0.5], [10.0]])
BATCH = np.stack([Q] * 3), np.stack([X] * 3), np.stack([Y] * 3)[..., None]


def test_forward_of_another_policy_counts_for_nothing():
    kernel = lb.epanechnikov(1.5)
    forward = lb.local_mean(Q, X, Y, kernel, empty="mean", return_log_sum=True)
    found = lb.local_mean_vjp(np.ones(2), Q, X, Y, kernel, forward=forward).values
    np.testing.assert_allclose(found, lb.local_mean_vjp(np.ones(2), Q, X, Y, kernel).values)


def test_wrt_may_be_an_iterator():
    assert lb.local_mean_vjp(np.ones(2), Q, X, Y, wrt=iter(["kernel"])).kernel is not None


@pytest.mark.parametrize("wrt", [None, 5])
def test_wrt_of_a_wrong_type_is_named(wrt):
    with pytest.raises((TypeError, ValueError), match="wrt"):
        lb.local_mean_vjp(np.ones(2), Q, X, Y, wrt=wrt)


@pytest.mark.parametrize("log_sum", [np.array(0.0), "ab", np.zeros(2, complex)])
def test_forward_with_a_wrong_log_sum_is_named(log_sum):
    means = lb.local_mean(Q, X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((TypeError, ValueError), match=r"forward\[1\]"):
            lb.local_mean_vjp(np.ones(2), Q, X, Y, forward=(means, log_sum))


def test_forward_with_a_wrong_log_sum_is_named_in_a_batch():
    means, log_sum = lb.local_mean(*BATCH, return_log_sum=True)
    with pytest.raises(ValueError, match=r"forward\[1\]"):
        lb.local_mean_vjp(np.ones((3, 2, 1)), *BATCH, forward=(means, log_sum[..., None]))


@pytest.mark.parametrize("prune", ["bogus", None, 1])
def test_prune_is_checked_in_a_batch(prune):
    with pytest.raises(ValueError, match="prune"):
        lb.local_mean(*BATCH, prune=prune)


def test_prune_of_a_kernel_that_reaches_all_is_an_error_in_a_batch():
    with pytest.raises(ValueError, match="prune"):
        lb.local_mean(*BATCH, lb.softmax(), prune=True)


def test_a_batch_warns_once_and_counts_all():
    with pytest.warns(lb.EmptyNeighborhoodWarning) as caught:
        lb.local_mean(*BATCH, lb.epanechnikov(1.5))
    assert len(caught) == 1
    assert "3 of 6" in str(caught[0].message)


def test_the_gradient_of_a_batch_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lb.local_mean_vjp(np.ones((3, 2, 1)), *BATCH, lb.epanechnikov(1.5))


@pytest.mark.parametrize("parameters", [None, 5])
def test_with_parameters_names_what_is_wrong(parameters):
    with pytest.raises((TypeError, ValueError), match="parameters"):
        lb.gaussian().with_parameters(parameters)


@pytest.mark.parametrize("method", ["loo", "gradient"])
def test_select_bandwidth_of_values_of_any_size(method):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(63, 1))
    y = np.sin(2 * x[:, 0])
    wanted = lb.select_bandwidth(x, y, method=method).bandwidth
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (1e-200, 1e160):
            found = lb.select_bandwidth(x, size * y, method=method).bandwidth
            np.testing.assert_allclose(found, wanted, rtol=1e-3)


@pytest.mark.parametrize("kernel", [lb.knn(3), lb.uniform(1.0) + 0.1], ids=repr)
def test_learn_metric_refuses_a_kernel_without_a_derivative(kernel):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="kernel"):
        lb.learn_metric(rng.normal(size=(40, 2)), rng.normal(size=40), kernel)


def test_times_that_float64_cannot_tell_apart_are_refused():
    time = (np.arange(3) + 2**60)[:, None]
    with pytest.raises(ValueError, match="column 0"):
        lb.relative_bias([0.0, 1.0, 2.0])(time, time)


# -- 5. PyTorch ---------------------------------------------------------------------------------------


def test_a_mask_that_is_changed_before_backward():
    torch = pytest.importorskip("torch")
    from locbook.torch import local_mean

    torch.manual_seed(0)
    q, x, v = torch.randn(5, 2, requires_grad=True), torch.randn(7, 2), torch.randn(7, 3)
    mask = torch.ones(5, 7, dtype=torch.bool)
    means = local_mean(q, x, v, mask=mask)
    mask[:, 3:] = False
    with pytest.raises(RuntimeError, match="inplace"):
        means.sum().backward()


def test_transposed_queries_and_cotangents():
    torch = pytest.importorskip("torch")
    from locbook.torch import local_mean

    torch.manual_seed(0)
    q = torch.randn(2, 11, dtype=torch.float64, requires_grad=True)
    x, v, c = (torch.randn(*s, dtype=torch.float64) for s in ((7, 2), (7, 3), (3, 11)))
    (local_mean(q.T, x, v).T * c).sum().backward()
    found, q.grad = q.grad, None
    scores = -0.5 * ((q.T[:, None] - x[None]) ** 2).sum(-1)
    ((torch.softmax(scores, -1) @ v).T * c).sum().backward()
    torch.testing.assert_close(found, q.grad)


def test_a_kernel_name_without_its_arguments():
    torch = pytest.importorskip("torch")
    from locbook.torch import local_mean

    with pytest.raises(ValueError, match="kernel 'knn' needs n_neighbors"):
        local_mean(torch.ones(2, 1), torch.ones(3, 1), torch.ones(3), "knn")
