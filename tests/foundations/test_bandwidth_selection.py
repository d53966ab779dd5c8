"""The search for a bandwidth: bounded, positive, in the units of the data, and honest about its bounds."""

import numpy as np
import pytest

import locbook as lb

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 6, 80))[:, None]
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=80)
METHODS = ("loo", "gcv", "aicc")


def brute_score(x, y, h, method):
    w = np.exp(-0.5 * ((x - x.T) / h) ** 2)
    n = len(x)
    if method == "loo":
        np.fill_diagonal(w, 0)
        return ((y - w @ y / w.sum(1)) ** 2).mean()
    smoother = w / w.sum(1, keepdims=True)
    error, nu = ((y - smoother @ y) ** 2).mean(), np.trace(smoother)
    if method == "gcv":
        return error / (1 - nu / n) ** 2
    return np.log(error) + 1 + 2 * (nu + 1) / (n - nu - 2)


@pytest.mark.parametrize("method", METHODS)
def test_it_finds_the_minimum_of_the_formula(method):
    chosen = lb.select_bandwidth(X, Y, method=method)
    fine = np.exp(np.linspace(*np.log(chosen.bandwidths[[0, -1]]), 2000))
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = np.array([brute_score(X, Y, h, method) for h in chosen.bandwidths])
        best = np.nanmin([brute_score(X, Y, h, method) for h in fine[20:]])
    known = np.isfinite(chosen.scores) & np.isfinite(scores)  # the naive formula underflows
    assert known.sum() > 20
    np.testing.assert_allclose(chosen.scores[known], scores[known], rtol=1e-10)
    assert chosen.score <= best + 1e-6 * abs(best)
    assert chosen.score == chosen.scores.min()
    assert not chosen.at_bound
    assert chosen.kernel == lb.gaussian(chosen.bandwidth)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", [*lb.PROFILES][:-2])
def test_any_profile(name, method):
    chosen = lb.select_bandwidth(X, Y, name, method=method)
    assert 0 < chosen.bandwidth < np.inf
    assert np.isfinite(chosen.score)
    assert len(chosen.bandwidths) <= 25 + 40  # the bound on the evaluations
    assert (np.diff(chosen.bandwidths) > 0).all()
    assert len(chosen.bandwidths) == len(chosen.scores)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [2.0**-20, 1e-6, 1e5, 2.0**30])
def test_scale_equivariant(method, scale):
    chosen, scaled = (
        lb.select_bandwidth(X, Y, method=method),
        lb.select_bandwidth(scale * X, Y, method=method),
    )
    assert scaled.bandwidth == pytest.approx(scale * chosen.bandwidth, rel=1e-3)
    assert scaled.score == pytest.approx(chosen.score, rel=1e-6)
    values = lb.select_bandwidth(X, 100 * Y + 7, method=method)
    assert values.bandwidth == pytest.approx(chosen.bandwidth, rel=1e-3)


def test_a_vector_keeps_its_proportions():
    x = np.column_stack([X[:, 0], 1000 * RNG.normal(size=80)])
    chosen = lb.select_bandwidth(x, Y, lb.gaussian([1.0, 1e5]))
    assert chosen.bandwidth[1] == pytest.approx(1e5 * chosen.bandwidth[0])
    one = lb.select_bandwidth(X, Y)
    assert chosen.bandwidth[0] == pytest.approx(one.bandwidth, rel=0.05)
    matrix = lb.select_bandwidth(x, Y, lb.gaussian(np.diag([1.0, 1e5])))
    np.testing.assert_allclose(matrix.bandwidth, np.diag(chosen.bandwidth), rtol=1e-3)
    part = lb.select_bandwidth(x, Y, lb.gaussian(9.0, on=0) * lb.causal(on=0) + 1e-9)
    assert part.kernel.bandwidth == part.bandwidth


def test_at_bound():
    assert lb.select_bandwidth(X, Y, bounds=(1.0, 5.0)).at_bound  # the minimum is below
    assert lb.select_bandwidth(X, Y, bounds=(1e-2, 0.1)).at_bound  # and above
    assert not lb.select_bandwidth(X, Y, bounds=(0.05, 5.0)).at_bound
    noise = lb.select_bandwidth(X, RNG.normal(size=80))
    assert noise.bandwidth > 1.0
    chosen = lb.select_bandwidth(X, Y, bounds=(0.3, 0.4))
    assert 0.3 <= chosen.bandwidth <= 0.4


def test_it_ends_for_a_thousand_samples():
    x = RNG.uniform(size=(1000, 2))
    for method in METHODS:
        chosen = lb.select_bandwidth(x, x[:, 0] ** 2, lb.epanechnikov(), method=method, n_grid=5)
        assert len(chosen.scores) <= 45


def test_duplicates_and_absent_samples():
    x = np.repeat(np.arange(10.0), 4)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * RNG.normal(size=40)
    assert lb.select_bandwidth(x, y).bandwidth > 0
    weight = np.ones(80)
    weight[::5] = 0
    far = np.where(weight[:, None] > 0, X, 1e7)  # what is absent has no say in the bounds either
    ours = lb.select_bandwidth(far, Y, sample_weight=weight)
    without = lb.select_bandwidth(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(ours.bandwidths, without.bandwidths, rtol=1e-12)
    np.testing.assert_allclose(ours.scores, without.scores, rtol=1e-9)


def test_a_bandwidth_that_is_given_is_never_changed():
    model = lb.LocalMeanRegressor(bandwidth=0.123).fit(X, Y)
    assert model.bandwidth_ == model.bandwidth == 0.123
    chosen = lb.LocalMeanRegressor(bandwidth="loo").fit(X, Y)
    assert chosen.bandwidth == "loo"
    assert chosen.bandwidth_ == lb.select_bandwidth(X, Y).bandwidth


def test_the_bounds_need_little_memory():
    import tracemalloc

    x = RNG.normal(size=(200_000, 1)).astype(np.float32)
    from locbook.foundations.bandwidth_selection import _default_bounds

    problem = lb.engine.Problem.check(x, x, "gaussian")
    tracemalloc.start()
    low, high = _default_bounds(problem, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < low < 1e-4 < 8 < high < 30
    assert peak < 40e6  # 200 x n would be 320 MB


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"method": "cv"}, "method"), ({"bounds": (2.0, 1.0)}, "bounds"), ({"bounds": (0.0, 1.0)}, r"bounds\[0\]"),
        ({"bounds": 3.0}, "bounds"), ({"bounds": (1e-9, 1e-8), "kernel": "uniform"}, "bounds"),
        ({"n_grid": 2}, "n_grid"), ({"n_grid": 5.0}, "n_grid"), ({"kernel": lb.knn(3)}, "kernel"),
        ({"kernel": lb.gaussian(lb.knn_bandwidth(3))}, "kernel"), ({"kernel": lb.gaussian() * lb.laplace()}, "kernel"),
        ({"sample_weight": -np.ones(80)}, "sample_weight"), ({"sample_weight": np.arange(80) < 2}, "samples"),
    ],
)  # fmt: skip
def test_bad_input(options, name):
    with pytest.raises((ValueError, TypeError), match=name):
        lb.select_bandwidth(X, Y, **options)


def test_samples_without_a_scale():
    with pytest.raises(ValueError, match="samples are all equal"):
        lb.select_bandwidth(np.ones((5, 2)), np.arange(5.0))
    with pytest.raises(ValueError, match="samples must hold at least 3"):
        lb.select_bandwidth([[0.0], [1.0]], [0.0, 1.0])


# -- by the gradient ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in lb.PROFILES if name not in ("uniform", "student_t")][:-1])
def test_the_gradient_finds_what_the_search_finds(name):
    searched, learned = (lb.select_bandwidth(X, Y, name, method=method) for method in ("loo", "gradient"))
    assert learned.score <= searched.score * (1 + 1e-9)
    corners = name in ("triangular", "epanechnikov", "cosine")  # of the profile, and so of the loss
    assert learned.bandwidth == pytest.approx(searched.bandwidth, rel=0.05 if corners else 2e-3)
    assert learned.kernel == lb.KERNELS[name](learned.bandwidth)
    assert (np.diff(learned.bandwidths) > 0).all()
    assert learned.score == learned.scores.min()
    assert learned.score == pytest.approx(
        lb.select_bandwidth(X, Y, name, bounds=(learned.bandwidth, learned.bandwidth * 1.001)).scores[0]
    )
    assert len(learned.scores) < 25 + 120


def irrelevant(n=150):
    """Values that follow the first of three columns, which have unlike units."""
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(n, 3)) * [1.0, 100.0, 1e-4]
    return x, np.sin(6 * x[:, 0]) + 0.1 * rng.normal(size=n)


def test_a_vector_is_learned_entry_by_entry():
    x, y = irrelevant()
    start = np.ptp(x, axis=0)
    common, learned = (lb.select_bandwidth(x, y, lb.gaussian(start), method=m) for m in ("loo", "gradient"))
    assert learned.score < 0.3 * common.score
    relative = learned.bandwidth / start
    assert relative[0] < 0.2
    assert (relative[1:] > 0.4).all()  # the columns that say nothing are smoothed over
    assert learned.bandwidths.shape == (len(learned.scores), 3)
    assert learned.kernel == lb.gaussian(learned.bandwidth)
    # a minimum: no small change of an entry is better, within the bounds
    for c in range(3):
        for factor in (0.97, 1.03):
            other = learned.bandwidth * np.where(np.arange(3) == c, factor, 1.0)
            residuals = y - lb.local_mean(x, x, y, lb.gaussian(other).hollow())
            assert (residuals**2).mean() >= learned.score * (1 - 1e-6)


def test_the_gradient_scales_with_the_data_and_counts_multiplicities():
    x, y = irrelevant(60)
    weight = np.random.default_rng(0).integers(1, 4, 60)
    chosen = lb.select_bandwidth(
        x, y, lb.gaussian([1.0, 100.0, 1e-4]), method="gradient", sample_weight=weight
    )
    scaled = lb.select_bandwidth(
        x * 8.0, y * 1e6, lb.gaussian([1.0, 100.0, 1e-4]), method="gradient", sample_weight=weight * 2.0
    )
    np.testing.assert_allclose(scaled.bandwidth[0], 8 * chosen.bandwidth[0], rtol=1e-3)
    assert scaled.score == pytest.approx(1e12 * chosen.score, rel=1e-6)


def test_the_gradient_says_what_it_cannot_do_and_where_it_stopped():
    assert lb.select_bandwidth(X, Y, method="gradient", bounds=(1.0, 5.0)).at_bound
    assert not lb.select_bandwidth(X, Y, method="gradient").at_bound
    with pytest.raises(ValueError, match="derivative of the uniform kernel is 0"):
        lb.select_bandwidth(X, Y, "uniform", method="gradient")
    with pytest.raises(ValueError, match="got a matrix; see learn_metric"):
        lb.select_bandwidth(X, Y, lb.gaussian([[1.0]]), method="gradient")
    with pytest.raises(ValueError, match="bounds"):
        lb.select_bandwidth(X, Y, "tricube", method="gradient", bounds=(1e-9, 1e-8))
    compact = lb.select_bandwidth(X, Y, "tricube", method="gradient", bounds=(1e-3, 5.0))
    assert np.isinf(compact.scores).any()  # and it passes by what leaves a sample alone
    constant = lb.select_bandwidth(X, np.ones(80), method="gradient")
    assert constant.score == 0.0
