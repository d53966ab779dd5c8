"""``prune="auto" | True | False`` give the same answer: by data, kernels, bandwidths, restrictions, reductions."""

import functools

import numpy as np
import pytest

import locbook as lb
from locbook import engine
from locbook.engine import compact, pruning, reach, reductions, reference, stream, vectors
from locbook.engine.leaf import as_leaf
from locbook.engine.panels import PANEL
from locbook.kernels.metrics import as_metric
from tests.engine import exact
from tests.engine.problems import bump, canberra, problem

COMPACT = ("uniform", "triangular", "epanechnikov", "biweight", "triweight", "tricube", "cosine")
METRICS = ("euclidean", "manhattan", "chebyshev")
EXPONENTIAL = ("gaussian", "laplace")
#: |a - b| <= this, relative to the largest value or 1: two orders of some hundred additions.
BOUND = 1e-13

needs_vectors = pytest.mark.skipif(not vectors.ENABLED, reason="a Gaussian is pruned on the vector path only")


# -- data --------------------------------------------------------------------------------------------------------------


def _normal(rng, n, d):
    return rng.normal(size=(n, d))


def _clusters(rng, n, d):
    return rng.normal(scale=9, size=(5, d))[rng.integers(5, size=n)] + rng.normal(scale=0.2, size=(n, d))


def _grid(rng, n, d):
    """Many duplicates, and distances that tie."""
    return rng.integers(-2, 3, size=(n, d)) * 0.5


def _line(rng, n, d):
    """One column that varies."""
    x = np.full((n, d), 0.1)
    x[:, d // 2] = rng.normal(size=n)
    return x


def _equal(rng, n, d):
    return np.full((n, d), -0.3)


def _offset(rng, n, d):
    return rng.normal(size=(n, d)) + 1e8


DATA = {f.__name__[1:]: f for f in (_normal, _clusters, _grid, _line, _equal, _offset)}


def arrays(name, n, d, m=43, dtype=np.float64):
    """Queries, samples, values (n, 2), labels; a few queries are far from all samples."""
    rng = np.random.default_rng([n, d, len(name)])
    points = DATA[name](rng, n + m, d).astype(dtype)
    q, x = points[:m], points[m:]
    q[:3] += 40.0
    return q, x, rng.normal(size=(n, 2)).astype(dtype), rng.integers(0, 3, n)


def radius(d):
    """Within it lie some neighbours, and beyond it some samples."""
    return 0.4 + 0.3 * d


def options_of(option, m, n):
    """Multiplicities, with zeros, and masks."""
    rng = np.random.default_rng(n)
    options = {}
    if "weight" in option:
        options["sample_weight"] = rng.integers(0 if "zero" in option else 1, 5, n).astype(float)
        options["sample_weight"][:1] = 1.0
    if "mask" in option:
        options["mask"] = rng.random((m, n)) < 0.7
    return options


OPTIONS = ("", "weight", "weight zero", "mask", "mask weight zero")


# -- the reductions ----------------------------------------------------------------------------------------------------


def answers(given, values, labels, prune, *, some=False):
    """Answers by name; the policies for empty neighbourhoods as well."""
    found = {"log_sum": engine.log_sum(given, prune=prune)}
    for empty in ("nan", "nearest", "mean"):
        found[f"mean {empty}"] = engine.mean(given, values, empty, prune=prune, warn=False)
    if not some:
        found["classes"] = engine.classes(given, labels, 3, "mean", prune=prune)
        moments = engine.moments(given, values, 1, prune=prune)
        found["log_scale"] = np.where(np.isfinite(moments.log_scale), moments.log_scale, 0.0)
        unit = np.exp(found.pop("log_scale"))[:, None, None]
        found["second"], found["first"] = moments.second * unit, moments.first * unit
    return found


def compare(given, values, labels, *, bound=BOUND, some=False):
    """The answers with and without pruning, within the bound; returns those with it."""
    whole = answers(given, values, labels, False, some=some)
    for prune in (True, "auto"):
        pruned = answers(given, values, labels, prune, some=some)
        for name, right in whole.items():
            ours = pruned[name]
            np.testing.assert_array_equal(np.isfinite(ours), np.isfinite(right), err_msg=name)
            finite = np.isfinite(right)
            size = max(1.0, np.abs(right[finite]).max(initial=0.0))
            if name.startswith("mean"):
                size = max(1.0, np.abs(values).max())
            error = np.abs(ours[finite] - right[finite]).max(initial=0.0)
            assert error <= bound * size, f"{name}, prune={prune}: {error} of {size}"
    return whole


def _seen(whole):
    """Whether the problem is about something: some queries have neighbours, some have none."""
    return np.isfinite(whole["log_sum"]).any() and np.isneginf(whole["log_sum"]).any()


# -- compact kernels ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("name", COMPACT)
def test_compact_kernels(name, metric):
    for d in range(1, 9):
        data = list(DATA)[(d + len(name)) % len(DATA)]
        q, x, values, labels = arrays(data, 331, d)
        assert _seen(compare(problem(lb.KERNELS[name](radius(d), metric=metric), q, x), values, labels))


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("option", OPTIONS)
def test_data_and_options(data, option):
    for d, kernel in (
        (1, lb.epanechnikov(0.5)),
        (2, lb.uniform(0.5, metric="manhattan")),
        (3, lb.tricube([1.0, 0.5, 2.0])),
    ):
        q, x, values, labels = arrays(data, 331, d)
        whole = compare(problem(kernel, q, x, **options_of(option, len(q), len(x))), values, labels)
        assert _seen(whole)


def _bandwidths(m, n):
    rng = np.random.default_rng(5)
    return {
        "vector": lambda h: h([0.4, 1.0]),
        "equal vector": lambda h: h([0.7, 0.7]),
        "per query": lambda h: h(lb.per_query(rng.uniform(0.05, 1.5, m))),
        "per sample": lambda h: h(lb.per_sample(rng.uniform(0.05, 1.5, n))),
        "on a column": lambda h: h(0.2, on=1),
    }


@pytest.mark.parametrize("bandwidth", _bandwidths(1, 1))
@pytest.mark.parametrize("metric", METRICS)
def test_bandwidths(bandwidth, metric):
    q, x, values, labels = arrays("clusters", 500, 2)
    for name in ("uniform", "cosine", "triangular"):
        kernel = _bandwidths(len(q), len(x))[bandwidth](functools.partial(lb.KERNELS[name], metric=metric))
        for option in ("", "weight zero", "mask"):
            given = problem(kernel, q, x, **options_of(option, len(q), len(x)))
            assert _seen(compare(given, values, labels, some=option == "mask"))


@pytest.mark.parametrize("data", DATA)
def test_products_hollow_and_masked_kernels(data):
    _, x, values, labels = arrays(data, 203, 2)
    mask = np.random.default_rng(2).random((len(x), len(x))) < 0.5
    kernels = (
        lb.tricube(0.6).hollow(),
        lb.uniform(0.6).masked(mask),
        (lb.gaussian(0.3) * lb.epanechnikov(0.8, on=1)).hollow(),
        3.0 * lb.student_t(1.0) * lb.biweight(0.7, metric="chebyshev"),
        lb.softmax(4.0, on=0) * lb.triangular(0.5, on=1)
        if data != "offset"
        else lb.cosine(0.5) * lb.laplace(1.0),
        lb.knn(90) * lb.uniform(0.9),
        lb.uniform(0.5) * (lb.gaussian() + lb.uniform(9.0)),
    )
    for kernel in kernels:
        given = problem(kernel, x, x, **options_of("weight", len(x), len(x)))
        compare(given, values, labels, some=True)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_handful_of_samples(n):
    for d in (1, 5):
        for data in DATA:
            q, x, values, labels = arrays(data, n, d)
            for name in COMPACT:
                compare(problem(lb.KERNELS[name](2.0), q, x), values, labels)


def test_every_number_of_samples_around_the_edges_of_panels():
    q, x, values, labels = arrays("normal", 2 * PANEL + 2, 2)
    for n in range(1, 2 * PANEL + 3):
        given = problem(lb.triangular(0.8), q[: n % 7 + 1], x[:n])
        compare(given, values[:n], labels[:n], some=n % 16 not in (0, 1, 15))


def test_few_within_reach_are_gathered():
    """More samples than are gathered at once, in few of many panels: exact numbers add up exactly."""
    rng = np.random.default_rng(0)
    x = np.concatenate([np.zeros((1300, 2)), rng.integers(10, 10_000, (19_000, 2))]).astype(float)
    values = rng.integers(-9, 10, (len(x), 3)).astype(float)
    order = rng.permutation(len(x))
    q = np.concatenate([np.zeros((5, 2)), x[-90:]])
    counts = np.array([(np.abs(x - p).max(1) <= 3).sum() for p in q])
    sums = np.array([values[np.abs(x - p).max(1) <= 3].sum(0) for p in q])
    inner = ((x[:, None] - q) ** 2).sum(2) <= 9.0
    for kernel, inside in ((lb.uniform(3.0), inner.T), (lb.uniform(3.0, metric="chebyshev"), None)):
        given = problem(kernel, q, x[order])
        right = counts if inside is None else inside.sum(1)
        total = sums if inside is None else inside @ values
        np.testing.assert_array_equal(engine.log_sum(given, prune=True), np.log(right))
        np.testing.assert_array_equal(engine.mean(given, values[order], prune=True), total / right[:, None])


def cells_of(grid, points):
    """The twin: the cell of each point."""
    places = np.clip((points[:, grid.columns] - grid.low) * grid.inverse, 0, grid.counts - 1).astype(int)
    return np.ravel_multi_index(places.T, grid.counts)


@pytest.mark.parametrize("data", DATA)
def test_the_cells_of_a_grid(data):
    for d in (1, 2, 3, 5):
        q, x, _, _ = arrays(data, 700, d)
        for width in (1e-150, 1e-3, 0.4, 1e3, 1e150):
            grid = compact.make_grid(x, width)
            cells = np.prod(grid.counts)
            assert len(grid.columns) == min(d, 3)
            assert cells <= 2 * len(x) + 16
            assert 1 / grid.inverse >= width * (1 - 1e-15)
            for points in (x, q):
                starts, rows = compact.sort_into(grid, points)
                wanted = cells_of(grid, points)
                np.testing.assert_array_equal(rows, np.argsort(wanted, kind="stable"))
                np.testing.assert_array_equal(np.diff(starts), np.bincount(wanted, minlength=cells))


def test_no_grid_beyond_the_floats():
    x = np.array([[-1.7e308], [1.7e308], [0.0]])
    assert compact.make_grid(x, 1.0) is None
    given = problem(lb.uniform(1.0), np.array([[0.5], [1.7e308]]), x)
    np.testing.assert_array_equal(engine.log_sum(given, prune=True), [0.0, 0.0])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("h", [1.0, 0.1, 1 / 3, 3.0, 1e-3, 7e5])
def test_samples_exactly_at_the_support(h, metric):
    rng = np.random.default_rng(1)
    # h away in one column, and the floats on both sides of it
    edge = np.array([h, np.nextafter(h, 0), np.nextafter(h, np.inf)])
    x = np.zeros((600, 3))
    x[np.arange(600), rng.integers(3, size=600)] = rng.choice([-1, 1], 600) * rng.choice(edge, 600)
    q, values = np.zeros((9, 3)), rng.normal(size=(600, 1))
    for d in (1, 3):
        for kernel in (lb.uniform(h, metric=metric), lb.uniform([h, h, h][:d], metric=metric)):
            given = problem(kernel, q[:, :d], x[:, :d])
            counts = [np.exp(engine.log_sum(given, prune=prune)) for prune in (True, False, "auto")]
            np.testing.assert_array_equal(counts[0], counts[1])
            np.testing.assert_array_equal(counts[2], counts[1])
            inside = (np.abs(x[:, :d]).max(1) <= h).sum()
            assert (
                inside - 1e-9 <= counts[0][0]
            )  # what is within the support is in, to the last bit of the edge
            compare(given, values, np.zeros(600, dtype=int))


def test_policies_of_far_queries():
    q = np.array([[1e6, 0.0], [-3e7, 2e5], [0.0, 0.0]])
    _, x, values, labels = arrays("normal", 300, 2)
    whole = compare(problem(lb.biweight(0.5), q, x), values, labels)
    np.testing.assert_array_equal(np.isnan(whole["mean nan"][:, 0]), [True, True, False])
    nearest = np.argmin(((q[:, None] - x) ** 2).sum(2), axis=1)
    np.testing.assert_array_equal(whole["mean nearest"][:2], values[nearest[:2]])
    np.testing.assert_allclose(whole["mean mean"][:2], np.broadcast_to(values.mean(0), (2, 2)), rtol=1e-13)
    with pytest.raises(ValueError, match="2 of 3 queries"):
        engine.mean(problem(lb.biweight(0.5), q, x), values, "raise", prune=True)


# -- equal to the bit --------------------------------------------------------------------------------------------------


KINDS = {
    "few": lb.tricube(0.15),
    "many": lb.tricube(1.5),
    "manhattan": lb.cosine(0.3, metric="manhattan"),
    "product": lb.gaussian(0.2) * lb.uniform(0.4),
    "matrix": lb.tricube(np.array([[0.3, 0.1], [0.0, 0.2]])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_for_any_split_and_threads(kind, threads):
    q, x, values, labels = arrays("normal", 2500, 2, m=203)
    weight = options_of("weight zero", len(q), len(x))

    def run(rows):
        given = problem(KINDS[kind], q[rows], x, **weight)
        return answers(given, values, labels, True)

    threads(1)
    whole = run(slice(None))
    for count in (2, 3):
        threads(count)
        for name, answer in run(slice(None)).items():
            np.testing.assert_array_equal(answer, whole[name], err_msg=name)
    shuffled = np.random.default_rng(0).permutation(len(q))
    for pieces in (
        [slice(0, 1), slice(1, None)],
        [slice(0, 97), slice(97, None)],
        [slice(i, i + 16) for i in range(0, 203, 16)],
    ):
        for order in (np.arange(len(q)), shuffled):
            parts = [run(order[piece]) for piece in pieces]
            for name, answer in whole.items():
                np.testing.assert_array_equal(
                    np.concatenate([p[name] for p in parts]), answer[order], err_msg=name
                )


def test_same_bits_whatever_the_other_queries_see():
    """The choice between looking at samples one by one and panel by panel does not depend on the split."""
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(scale=0.05, size=(1000, 2)), rng.uniform(-50, 50, size=(2000, 2))])
    q = np.concatenate([rng.normal(scale=0.05, size=(64, 2)), rng.uniform(-50, 50, size=(2000, 2))])
    values = rng.normal(size=(len(x), 1))
    whole = engine.mean(problem(lb.tricube(1.0), q, x), values, prune=True, warn=False)
    alone = engine.mean(problem(lb.tricube(1.0), q[:64], x), values, prune=True)
    np.testing.assert_array_equal(alone, whole[:64])


# -- Gaussian and Laplace kernels --------------------------------------------------------------------------------------


@needs_vectors
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EXPONENTIAL)
@pytest.mark.parametrize("data", [name for name in DATA if name != "offset"])
def test_exponential_kernels(data, name, dtype):
    bound = BOUND if dtype == np.float64 else exact.FLOAT32
    for d in (1, 2, 3, 5, 8):
        for n in (1, 65, 700):
            q, x, values, labels = arrays(data, n, d, dtype=dtype)
            widths = np.random.default_rng(d).uniform(0.01, 0.5, len(q))
            for h in (0.02, 0.3, 50.0, np.linspace(0.02, 0.3, d), lb.per_query(widths)):
                kernel = lb.KERNELS[name](h)
                for option in ("", "weight", "weight zero"):
                    given = problem(kernel, q, x, **options_of(option, len(q), n))
                    whole = answers(given, values, labels, False, some=True)
                    for prune in (True, "auto"):
                        ours = answers(given, values, labels, prune, some=True)
                        assert (
                            np.abs(ours["mean nan"] - whole["mean nan"]).max()
                            <= bound * np.ptp(values, axis=0).max() + BOUND
                        )
                        wrong = np.abs(ours["log_sum"] - whole["log_sum"])
                        assert (wrong <= bound * (1 + np.abs(whole["log_sum"]))).all()


@needs_vectors
@pytest.mark.parametrize("name", EXPONENTIAL)
def test_no_digit_is_left_out(name):
    """Small boxes of many samples: those that are left out begin where the weights are too small to count."""
    rng = np.random.default_rng(4)
    q, x = rng.uniform(size=(40, 1)), rng.uniform(size=(20_000, 1))
    given = problem(lb.KERNELS[name](0.02 if name == "gaussian" else 0.005), q, x)
    compare(given, x, None, some=True)
    order = reach.put_in_order(
        given, stream.reach_of(given, as_leaf(given), np.zeros(len(x)), "float64"), True
    )
    blocks = order.blocks[0].shape[1]
    assert order.lists(0, blocks)[0].size < 0.9 * blocks * order.boxes[0].shape[1]


@needs_vectors
def test_exponential_kernels_at_an_offset():
    q, x, values, labels = arrays("offset", 700, 2)
    for name in EXPONENTIAL:
        compare(problem(lb.KERNELS[name](0.1), q, x), values, labels, some=True, bound=1e-12)


@needs_vectors
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", EXPONENTIAL)
def test_multiplicities_far_apart(name, dtype):
    """A far sample whose multiplicity makes up for the distance is not left out."""
    x = np.concatenate([np.zeros((70, 1)), np.full((70, 1), 5.0)]).astype(dtype)
    y = np.repeat([[1.0], [2.0]], 70, axis=0).astype(dtype)
    h = 0.5 if name == "gaussian" else 0.1  # e^-50 away
    weight = np.repeat([1e-9, 1e9], 70)
    for heavy in (weight, weight[::-1].copy()):
        given = problem(lb.KERNELS[name](h), x[:1], x, sample_weight=heavy)
        np.testing.assert_allclose(
            engine.mean(given, y, prune=True), engine.mean(given, y, prune=False), rtol=1e-6
        )
        np.testing.assert_allclose(
            engine.log_sum(given, prune=True), engine.log_sum(given, prune=False), rtol=1e-6
        )


@needs_vectors
@pytest.mark.parametrize("name", EXPONENTIAL)
def test_what_is_left_out_is_nothing_beside_the_range_of_the_values(name):
    """The weight of the far samples is e^-200; their values are 1e90 times those of the near ones."""
    x = np.concatenate([np.zeros((64, 1)), np.full((64, 1), 20.0)])
    y = np.concatenate([np.zeros((64, 1)), np.full((64, 1), 1e90)])
    given = problem(lb.KERNELS[name](1.0 if name == "gaussian" else 0.1), np.zeros((1, 1)), x)
    right = engine.mean(given, y, prune=False)
    assert right[0, 0] > 1000.0
    np.testing.assert_allclose(engine.mean(given, y, prune=True), right, rtol=0, atol=4e-18 * 1e90)


# -- the nearest -------------------------------------------------------------------------------------------------------


def _compare_nearest(given, k, metric, **options):
    whole = engine.nearest(given, k, metric, prune=False, **options)
    for prune in (True, "auto"):
        found = engine.nearest(given, k, metric, prune=prune, **options)
        np.testing.assert_allclose(found.distances, whole.distances, rtol=1e-15, atol=0)
        np.testing.assert_array_equal(found.indices, whole.indices)
    return whole


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("data", DATA)
def test_nearest(data, metric):
    for d in range(1, 9, 1 if data == "normal" else 3):
        q, x, _, _ = arrays(data, 331, d)
        for k in (1, 5, 64, 65, 200, 331):
            found = _compare_nearest(problem("gaussian", q, x), k, metric)
        if data == "grid":  # exact: the rows of the twin
            d_all = reference.distances(q, x, as_metric(metric))
            np.testing.assert_array_equal(found.indices, reference.nearest(d_all, 331))
        for option in ("weight zero", "mask", "mask weight zero"):
            _compare_nearest(problem("gaussian", q, x, **options_of(option, len(q), len(x))), 9, metric)
        itself = problem("gaussian", x, x, **options_of("weight zero" if d % 2 else "", len(x), len(x)))
        _compare_nearest(itself, 7, metric, exclude_self=True)


def test_nearest_of_every_number_of_samples():
    q, x, _, _ = arrays("grid", 2 * PANEL + 2, 2)
    for n in range(1, 2 * PANEL + 3):
        for k in {1, min(5, n), n}:
            _compare_nearest(problem("gaussian", q[: n % 5 + 1], x[:n]), k, "euclidean")
        if n > 1:
            _compare_nearest(problem("gaussian", x[:n], x[:n]), n - 1, "euclidean", exclude_self=True)


def test_nearest_by_threads_and_splits(threads):
    q, x, _, _ = arrays("clusters", 900, 3, m=203)
    for prune in (True, False):
        threads(1)
        whole = engine.nearest(problem("gaussian", q, x), 6, prune=prune)
        threads(2)
        for rows in (slice(None), slice(0, 1), slice(50, 180)):
            found = engine.nearest(problem("gaussian", q[rows], x), 6, prune=prune)
            np.testing.assert_array_equal(found.distances, whole.distances[rows])
            np.testing.assert_array_equal(found.indices, whole.indices[rows])


@pytest.mark.parametrize("prune", [True, False])
def test_nearest_among_samples_much_nearer_than_the_rest(prune):
    """Squares that no float32 holds beside those of the farthest sample."""
    rng = np.random.default_rng(0)
    for unit in 10.0 ** -np.arange(10.0, 30.0, 0.5):
        near = rng.normal(size=(150, 2)) * unit
        x = np.concatenate([near, -near, [[1.0, 0.0], [-1.0, 0.0]]])
        q = rng.normal(size=(40, 2)) * unit
        right = reference.distances(q / unit, x / unit, as_metric("euclidean"))
        found = engine.nearest(problem("gaussian", q, x), 5, prune=prune)
        np.testing.assert_array_equal(found.indices, reference.nearest(right, 5), err_msg=f"unit {unit}")


def test_nearest_of_queries_so_far_off_that_samples_tie():
    rng = np.random.default_rng(0)
    x, away = rng.normal(size=(500, 3)), rng.normal(size=(40, 3))
    x[:100] = 10.0 + 1e-7 * x[:100]
    x[100] = 30.0
    for far in 10.0 ** np.arange(10, 19):
        _compare_nearest(problem("gaussian", far * away, x), 5, "euclidean")


# -- what may be asked -------------------------------------------------------------------------------------------------

CALLS = {
    "log_sum": lambda given, prune: engine.log_sum(given, prune=prune),
    "mean": lambda given, prune: engine.mean(given, np.ones((len(given.samples), 1)), prune=prune),
    "moments": lambda given, prune: engine.moments(given, np.ones((len(given.samples), 1)), prune=prune),
    "classes": lambda given, prune: engine.classes(
        given, np.zeros(len(given.samples), dtype=int), 2, prune=prune
    ),
    "nearest": lambda given, prune: engine.nearest(given, 2, prune=prune),
}


@pytest.mark.parametrize("prune", ["yes", "True", "", None, 1, 0, 2.5], ids=repr)
@pytest.mark.parametrize("call", CALLS)
def test_other_values_are_refused(call, prune):
    x = np.arange(9.0)[:, None]
    for kernel in (lb.uniform(2.0), lb.gaussian(), lb.softmax(), lb.gaussian().hollow()):
        with pytest.raises(ValueError, match=r"prune must be .*auto.*True.*False"):
            CALLS[call](problem(kernel, x, x), prune)


@pytest.mark.parametrize("call", CALLS)
def test_truth_values_of_numpy(call):
    x = np.arange(9.0)[:, None]
    for prune in (np.True_, np.False_):
        CALLS[call](problem(lb.uniform(2.0), x, x), prune)
    with pytest.raises(ValueError, match="reaches every sample"):
        CALLS["log_sum"](problem(lb.softmax(), x, x), np.True_)


EVERYWHERE = {
    "softmax": lb.softmax(),
    "student_t": lb.student_t(1.0),
    "cauchy": lb.cauchy(1.0),
    "user": lb.Kernel(bump, 1.0),
    "product": lb.softmax() * lb.cauchy(1.0),
}
#: Kernels that are 0 somewhere, by no box that the engine knows.
ELSEWHERE = {
    "knn": lb.knn(3),
    "sum": lb.uniform(1.0) + lb.gaussian(1.0) + lb.cauchy(1.0),
    "another distance": lb.uniform(1.0, metric=lb.minkowski(3.0)),
    "user's distance": lb.uniform(1.0, metric=canberra),
    "gaussian, manhattan": lb.gaussian(1.0, metric="manhattan"),
    "hollow": lb.gaussian(1.0).hollow(),
    "knn bandwidth": lb.tricube(lb.knn_bandwidth(5)),
}
REDUCTIONS = [name for name in CALLS if name != "nearest"]


@pytest.mark.parametrize("call", REDUCTIONS)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_a_kernel_that_reaches_every_sample_says_so(name, call):
    x = arrays("normal", 90, 2)[1]
    given = problem(EVERYWHERE[name], x, x)
    with pytest.raises(ValueError, match=r"prune=True: kernel .* reaches every sample") as error:
        CALLS[call](given, True)
    assert repr(EVERYWHERE[name]) in str(error.value)
    np.testing.assert_array_equal(CALLS[call](given, "auto")[0], CALLS[call](given, False)[0])


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_kernel_that_cannot_be_pruned_by_boxes_has_the_same_answer(name):
    _, x, values, labels = arrays("normal", 90, 2)
    for option in OPTIONS:
        given = problem(ELSEWHERE[name], x, x, **options_of(option, len(x), len(x)))
        whole = answers(given, values, labels, False)
        for found, answer in answers(given, values, labels, True).items():
            if name in (
                "sum",
                "knn bandwidth",
            ):  # its parts, and the bandwidths once they are numbers, have boxes
                np.testing.assert_allclose(answer, whole[found], rtol=BOUND, atol=BOUND, err_msg=found)
            else:
                np.testing.assert_array_equal(answer, whole[found], err_msg=found)


@pytest.mark.parametrize("kernel", ["gaussian", "softmax"])
@pytest.mark.parametrize("metric", ["hamming", "cosine", lb.minkowski(3.0)])
def test_a_distance_without_boxes(metric, kernel):
    """The kernel has no part in it."""
    q, x, *_ = arrays("grid", 90, 2)
    _compare_nearest(problem(kernel, q, x), 3, metric)


# -- the automatic choice ----------------------------------------------------------------------------------------------


@pytest.fixture
def ordered(monkeypatch):
    """What was put in order, call by call."""
    found, original = [], reach.put_in_order

    def spy(*arguments):
        found.append(original(*arguments))
        return found[-1]

    monkeypatch.setattr(reductions, "put_in_order", spy)
    monkeypatch.setattr("locbook.engine.stream.put_in_order", spy)
    return found


@pytest.fixture
def gridded(monkeypatch):
    """Whether sums were taken from a grid, call by call."""
    found, original = [], reductions.sum_compact

    def spy(*arguments):
        answer = original(*arguments)
        found.append(answer is not None)
        return answer

    monkeypatch.setattr(reductions, "sum_compact", spy)
    return found


@pytest.mark.parametrize("h", [0.01, 0.6, 30.0])
def test_automatic_choice(h, ordered, gridded):
    q, x, values, _ = arrays("normal", 20_000, 2, m=3000)
    kernels = [lb.epanechnikov(h), lb.uniform(h, metric="chebyshev")]
    kernels += [lb.gaussian(h), lb.laplace(h / 3)] if vectors.ENABLED and h != 0.6 else []
    for kernel in kernels:
        given = problem(kernel, q, x)
        ordered.clear()
        gridded.clear()
        ours = engine.mean(given, values, warn=False)
        cells = h == 0.01 and kernel is kernels[0]
        assert any(gridded) == cells
        assert [order is not None for order in ordered] == ([] if cells else [h < 1.0])

        whole = engine.mean(given, values, warn=False, prune=False)
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(whole))
        assert np.nanmax(np.abs(ours - whole)) <= 1e-12


def test_a_grid_is_made_where_it_pays(gridded):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(3000, 2))
    crowd = np.concatenate([x, 1e-3 * rng.normal(size=(3000, 2))])
    for q, samples, wanted in ((x, x, True), (x[:9], x, False), (x, x[:99], False), (x, crowd, False)):
        given = problem(lb.triangular(0.02), q, samples)
        gridded.clear()
        engine.log_sum(given, prune="auto")
        engine.log_sum(given, prune=True)
        engine.log_sum(given, prune=False)
        assert gridded == [wanted, True, False]


@needs_vectors
def test_a_wide_kernel_is_not_put_in_order_in_vain(monkeypatch):
    """A few pairs tell; to order all points takes a quarter of the time."""
    q, x, values, _ = arrays("normal", 20_000, 2, m=3000)
    asked, original = [], pruning.kd_order

    def spy(*arguments):
        asked.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(pruning, "kd_order", spy)
    for make in (lb.gaussian, lb.laplace, lambda h: lb.gaussian(h) * lb.tricube(8.0)):
        engine.mean(problem(make(1.0), q, x), values, warn=False)
        assert asked == []
        engine.mean(problem(make(1.0), q, x), values, warn=False, prune=True)
        assert asked
        asked.clear()


def test_nothing_is_put_in_order_where_it_cannot_pay(ordered):
    rng = np.random.default_rng(0)
    for m, n, d in ((20_000, 100, 2), (4, 20_000, 2), (3000, 3000, 9)):
        given = problem(
            lb.uniform(0.01, metric="manhattan"), rng.normal(size=(m, d)), rng.normal(size=(n, d))
        )
        engine.log_sum(given)
    assert ordered == [None] * 3


def test_a_wrong_prune_is_named_also_where_there_are_no_boxes():
    x = np.arange(9.0)[:, None]
    with pytest.raises(ValueError, match="prune"):
        engine.nearest(problem(lb.uniform(2.0), x, x), 2, "hamming", prune="never")
