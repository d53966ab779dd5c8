"""What every local mean must be, on random problems: averages, limits, symmetries, multiplicities."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import locbook as lb

few = settings(
    derandomize=True, max_examples=12, deadline=None, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
seeds = st.integers(0, 10_000)
#: To a few units in the last place, of sums of some dozens.
ULPS = 2e-15


def bump(s):
    return (1.0 - s) ** 4 if s < 1.0 else 0.0


RADIAL = {name: lb.KERNELS[name] for name in lb.PROFILES}
RADIAL["user"] = lambda h, **options: lb.Kernel(bump, h, **options)
COMPACT = [name for name in RADIAL if name == "user" or np.isfinite(lb.PROFILES[name].support)]
FULL = [name for name in RADIAL if name not in COMPACT]
EXPONENTIAL = [name for name in FULL if lb.PROFILES[name].exponential]
ADAPTIVE = {
    "knn": lambda k: lb.knn(k),
    "knn, ties": lambda k: lb.knn(k, ties="include"),
    "knn, manhattan": lambda k: lb.knn(k, metric="manhattan"),
    "knn bandwidth": lambda k: lb.gaussian(lb.knn_bandwidth(k)),
    "compact knn bandwidth": lambda k: lb.tricube(lb.knn_bandwidth(k)),
    "scaled knn bandwidth": lambda k: lb.epanechnikov(lb.knn_bandwidth(k, scale=1.5)),
    "knn of both": lambda k: lb.knn(k) * lb.laplace(lb.knn_bandwidth(k)),
}
SAMPLE_SIDE = {
    "sample side": lambda k: lb.gaussian(lb.knn_bandwidth(k, side="sample")),
    "compact sample side": lambda k: lb.biweight(lb.knn_bandwidth(k, side="sample", scale=3.0)) + 0.05,
}
OTHER = {
    "softmax": lb.softmax(2.0),
    "von_mises": lb.von_mises(1.5),
    "causal": lb.causal(on=1) + 1e-3,
    "window": lb.window(1.0, on=0) + 1e-3,
    "sum": lb.gaussian(0.5) + 0.2 * lb.uniform(2.0),
    "product": lb.gaussian(1.0, on=0) * lb.cauchy(1.0, on=1),
    "vector": lb.gaussian([0.5, 2.0]),
    "matrix": lb.laplace([[1.0, 0.2], [0.0, 0.7]]),
    "hamming": lb.gaussian(0.5, metric="hamming"),
}
FIXED = {name: make(3.0) if name in COMPACT else make(0.8) for name, make in RADIAL.items()} | OTHER
ALL = FIXED | {name: make(4) for name, make in (ADAPTIVE | SAMPLE_SIDE).items()}


def random_problem(seed, m=6, n=18, d=2, ties=False):
    rng = np.random.default_rng(seed)
    q, x, y = rng.normal(size=(m, d)), rng.normal(size=(n, d)), rng.normal(size=(n, 2))
    if ties:  # a grid: distances that are equal to the last bit, and duplicates
        q, x = np.round(q * 2) / 2, np.round(x * 2) / 2
    return q, x, y


def mean(q, x, y, kernel, **options):
    return lb.local_mean(q, x, y, kernel, empty=options.pop("empty", "nearest"), **options)


@pytest.mark.parametrize("name", ALL)
@few
@given(seed=seeds, ties=st.booleans(), size=st.sampled_from([1e-150, 1e-3, 1.0, 1e8, 1e150]))
def test_weights_are_shares_and_the_mean_lies_in_the_range(name, seed, ties, size):
    q, x, y = random_problem(seed, ties=ties)
    empty = (
        "nearest" if any(leaf.__class__.__name__ == "RadialKernel" for leaf in ALL[name].leaves()) else "mean"
    )
    answer, w = mean(q, x, y * size, ALL[name], empty=empty, return_weights=True)
    assert (w >= 0).all()
    np.testing.assert_allclose(w.sum(1), 1.0, rtol=0, atol=ULPS)
    low, high = size * y.min(0), size * y.max(0)
    slack = ULPS * size * np.abs(y).max()
    assert (answer >= low - slack).all()
    assert (answer <= high + slack).all()
    np.testing.assert_allclose(answer, w @ (size * y), rtol=0, atol=10 * slack)
    constant = mean(q, x, np.full(len(x), 3.7 * size), ALL[name], empty=empty)
    np.testing.assert_allclose(constant, 3.7 * size, rtol=ULPS)


@pytest.mark.parametrize("name", RADIAL)
@few
@given(seed=seeds)
def test_limits_of_the_bandwidth(name, seed):
    q, x, y = random_problem(seed)
    wide = 1e12 if name == "laplace" or name == "triangular" else 1e8
    np.testing.assert_allclose(mean(q, x, y, RADIAL[name](wide)), np.tile(y.mean(0), (6, 1)), atol=1e-10)
    narrow = RADIAL[name](1e-9)
    np.testing.assert_allclose(mean(x, x, y, narrow), y, atol=1e-12)  # each sample repeats its own value
    if name in EXPONENTIAL or name in COMPACT:
        closest = ((q[:, None] - x) ** 2).sum(-1).argmin(1)
        np.testing.assert_allclose(mean(q, x, y, narrow), y[closest], atol=1e-12)
    else:  # heavy tails: a power of the distance is left, whatever the bandwidth
        d = np.sqrt(((q[:, None] - x) ** 2).sum(-1))
        power = {"cauchy": 2.0, "student_t": 4.0, "rational_quadratic": 2.0}[name]
        w = d**-power
        np.testing.assert_allclose(mean(q, x, y, narrow), w @ y / w.sum(1, keepdims=True), atol=1e-10)


@pytest.mark.parametrize("name", RADIAL)
def test_far_queries(name):
    _, x, y = random_problem(3, d=1)
    near_end = y[[x[:, 0].argmax()]]
    far = np.array([[1e5]])
    answer = mean(far, x, y, RADIAL[name](0.5))
    if name in COMPACT or name == "gaussian":
        np.testing.assert_allclose(answer, near_end)
    elif name == "laplace":  # shares by differences of distance, not one sample
        w = np.exp((x[:, 0] - x.max()) / 0.5)
        np.testing.assert_allclose(answer[0], w @ y / w.sum(), rtol=1e-9)
    else:
        np.testing.assert_allclose(answer[0], y.mean(0), atol=1e-3)


@pytest.mark.parametrize("name", [name for name in ALL if name != "knn"])
@few
@given(seed=seeds)
def test_the_order_of_the_samples_is_nothing(name, seed):
    q, x, y = random_problem(seed)
    order = np.random.default_rng(seed).permutation(len(x))
    np.testing.assert_allclose(mean(q, x[order], y[order], ALL[name]), mean(q, x, y, ALL[name]), atol=1e-12)
    np.testing.assert_array_equal(mean(q[::-1], x, y, ALL[name]), mean(q, x, y, ALL[name])[::-1])


@pytest.mark.parametrize("name", [*RADIAL, *ADAPTIVE, *SAMPLE_SIDE])
@few
@given(seed=seeds, shift=st.sampled_from([1.0, -1e8, 1e8]))
def test_translation(name, seed, shift):
    q, x, y = random_problem(seed)
    q, x = np.round(q * 2**20) / 2**20, np.round(x * 2**20) / 2**20  # what is added can be taken away exactly
    np.testing.assert_array_equal(mean(q + shift, x + shift, y, ALL[name]), mean(q, x, y, ALL[name]))


@pytest.mark.parametrize("name", RADIAL)
@few
@given(seed=seeds, power=st.sampled_from([-490, -100, -3, 1, 60, 300, 490]))
def test_scale_of_the_samples_and_the_bandwidth(name, seed, power):
    q, x, y = random_problem(seed)
    scale = 2.0**power  # 2**490 is 3e147: a power of two, so that nothing is rounded
    h = 3.0 if name in COMPACT else 0.8
    np.testing.assert_array_equal(
        mean(scale * q, scale * x, y, RADIAL[name](scale * h)), mean(q, x, y, RADIAL[name](h))
    )
    vector = np.array([h, 2 * h])
    np.testing.assert_array_equal(
        mean(scale * q, scale * x, y, RADIAL[name](scale * vector)), mean(q, x, y, RADIAL[name](vector))
    )


@pytest.mark.parametrize("size", [1e-148, 1e-100, 1e100, 1e148])
@pytest.mark.parametrize("name", [*ADAPTIVE, *SAMPLE_SIDE, *RADIAL])
def test_extreme_sizes(name, size):
    q, x, y = random_problem(11)
    kernels = [ALL[name]] * 2
    if name in RADIAL:
        h = 3.0 if name in COMPACT else 0.8
        kernels = [RADIAL[name](h), RADIAL[name](size * h)]
    np.testing.assert_allclose(mean(size * q, size * x, y, kernels[1]), mean(q, x, y, kernels[0]), atol=1e-8)


@pytest.mark.parametrize("name", ALL)
@few
@given(seed=seeds, ties=st.booleans())
def test_multiplicity_two_is_the_row_twice_and_zero_is_no_row(name, seed, ties):
    q, x, y = random_problem(seed, ties=ties)
    weight = np.random.default_rng(seed + 1).integers(0, 4, len(x))
    if weight.sum() < 12:
        weight += 1
    rows = np.repeat(np.arange(len(x)), weight)
    expected, spread = lb.local_mean(q, x[rows], y[rows], ALL[name], empty="mean", return_weights=True)
    answer, w = lb.local_mean(q, x, y, ALL[name], empty="mean", sample_weight=weight, return_weights=True)
    np.testing.assert_allclose(answer, expected, atol=1e-12)
    together = np.zeros_like(w)
    np.add.at(together.T, rows, spread.T)
    np.testing.assert_allclose(w, together, atol=1e-12)
    if name not in (*ADAPTIVE, *SAMPLE_SIDE):  # only proportions matter, where neighbours are not counted
        again = lb.local_mean(q, x, y, ALL[name], empty="mean", sample_weight=1e-3 * weight)
        np.testing.assert_allclose(again, answer, atol=1e-12)


@pytest.mark.parametrize("name", list(lb.PROFILES)[:-2])
@few
@given(seed=seeds)
def test_multiplicity_of_a_density_and_of_a_choice(name, seed):
    q, x, y = random_problem(seed, n=30)
    weight = np.random.default_rng(seed + 1).integers(0, 3, 30)
    rows = np.repeat(np.arange(30), weight)
    if name != "cauchy":  # no density in two columns
        expected = lb.log_density(q, x[rows], RADIAL[name](2.0))
        np.testing.assert_allclose(
            lb.log_density(q, x, RADIAL[name](2.0), sample_weight=weight), expected, atol=1e-12
        )
    assert lb.degrees_of_freedom(x, FIXED[name], sample_weight=weight) == pytest.approx(
        lb.degrees_of_freedom(x[rows], FIXED[name]), rel=1e-12
    )
    for method in ("gcv", "aicc"):
        bounds = (0.5, 6.0)
        ours = lb.select_bandwidth(
            x, y, FIXED[name], method=method, bounds=bounds, n_grid=5, sample_weight=weight
        )
        twice = lb.select_bandwidth(x[rows], y[rows], FIXED[name], method=method, bounds=bounds, n_grid=5)
        grid, a, b = np.intersect1d(ours.bandwidths, twice.bandwidths, return_indices=True)
        assert len(grid) >= 5
        np.testing.assert_allclose(ours.scores[a], twice.scores[b], rtol=1e-9)


@pytest.mark.parametrize("ask", ["local_mean", "log_density", "density"])
def test_pruning_changes_the_work_and_not_the_answer(ask):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    given = (x[:50], x, y) if ask == "local_mean" else (x[:50], x)
    for kernel in (lb.uniform(0.3), lb.epanechnikov([0.2, 0.4])):
        forced, never, auto = (
            getattr(lb, ask)(*given, kernel, prune=prune) for prune in (True, False, "auto")
        )
        np.testing.assert_allclose(forced, never, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(auto, never, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="prune=True"):  # it reaches every sample
        getattr(lb, ask)(*given, lb.student_t(1.0, nu=3.0), prune=True)
