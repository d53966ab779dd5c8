"""The gradient: as its twin, as finite differences, as autograd on the dense formula, and where it could break."""

import math

import mpmath
import numpy as np
import pytest

import locbook as lb
from locbook import engine
from locbook.engine import Problem, gradients, reference, vectors
from tests.engine.problems import KERNELS, MATRIX, arrays

#: Not differentiable by coordinates.
ROUGH = {"hamming": "hamming", "user metric": "canberra"}
#: Profiles that are differentiated by a difference.
USERS = ("user profile", "user log profile")
OPTIONS = ("plain", "weighted", "masked", "both")


def options(name, multiplicity, mask):
    found = {}
    if name in ("weighted", "both"):
        found["sample_weight"] = multiplicity
    if name in ("masked", "both"):
        found["mask"] = mask
    return found


def cotangents(m, p=2, seed=3):
    return np.random.default_rng(seed).normal(size=(m, p))


def near(ours, expected, tolerance):
    ours, expected = np.asarray(ours, dtype=float), np.asarray(expected, dtype=float)
    assert ours.shape == expected.shape
    assert np.isfinite(ours).all()
    assert np.abs(ours - expected).max(initial=0.0) <= tolerance * max(
        1e-3, np.abs(expected).max(initial=0.0)
    )


def same(ours, expected, tolerance):
    """Two gradients agree."""
    for one, other in zip(ours[:4], expected[:4], strict=True):
        near(one, other, tolerance)
    assert [x is None for x in ours[4]] == [x is None for x in expected[4]]
    for one, other in zip(ours[4], expected[4], strict=True):
        if one is not None:
            near(one, other, tolerance)


# -- all kernels against the twin and against finite differences -------------------------------------------------------


#: The twin counts neighbours by rows: for multiplicities see the test of repeated rows.
PAIRS = [
    (name, option)
    for name, kernel in KERNELS.items()
    for option in OPTIONS
    if name not in ROUGH and not (kernel.adaptive and option in ("weighted", "both"))
]


@pytest.mark.parametrize(("name", "option"), PAIRS)
def test_twin(name, option):
    q, x, values, _, multiplicity, mask = arrays()
    kernel, given, slope = KERNELS[name], options(option, multiplicity, mask), cotangents(len(q))
    ours = lb.local_mean_vjp(slope, q, x, values, kernel, **given)
    twin = reference.mean_vjp(kernel, q, x, values, slope, **given)
    assert all(np.abs(part).max() > 1e-4 for part in ours[2:4])
    same(ours, twin, 1e-7 if name in USERS else 1e-11)


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in ROUGH])
def test_multiplicities_are_repeated_rows(name):
    q, x, values, _, multiplicity, mask = arrays()
    rows = np.repeat(np.arange(len(x)), multiplicity.astype(int))
    kernel, repeated = KERNELS[name], KERNELS[name]
    if getattr(kernel.bandwidth, "side", None) == "sample" and kernel.bandwidth.values is not None:
        repeated = kernel.with_bandwidth(lb.per_sample(kernel.bandwidth.values[rows]))
    slope = cotangents(len(q))
    ours = lb.local_mean_vjp(slope, q, x, values, kernel, sample_weight=multiplicity, mask=mask)
    apart = lb.local_mean_vjp(slope, q, x[rows], values[rows], repeated, mask=mask[:, rows])
    for field in ("samples", "values"):
        total = np.zeros_like(getattr(ours, field))
        np.add.at(total, rows, getattr(apart, field))
        near(getattr(ours, field), total, 1e-10)
    near(ours.queries, apart.queries, 1e-10)


def difference(function, at, direction, step=1e-5):
    """Directional derivative by a central difference of fourth order."""
    near_, far = (function(at + k * step * direction) - function(at - k * step * direction) for k in (1, 2))
    return (8 * near_ - far) / (12 * step)


def smooth_arrays():
    """As ``arrays``, with times that do not tie."""
    q, x, values, _, multiplicity, mask = arrays(seed=1)
    rng = np.random.default_rng(8)
    q[:, 1], x[:, 1] = q[:, 1] + rng.uniform(-0.04, 0.04, len(q)), x[:, 1] + rng.uniform(-0.04, 0.04, len(x))
    return q, x, values, multiplicity + 0.5, mask


@pytest.mark.parametrize("name", list(KERNELS))
def test_finite_differences(name):
    q, x, values, multiplicity, mask = smooth_arrays()
    kernel, slope, rng = KERNELS[name], cotangents(len(q)), np.random.default_rng(2)
    given = {"sample_weight": None if kernel.adaptive else multiplicity, "mask": mask}

    def loss(q=q, x=x, values=values, kernel=kernel, **other):
        means = engine.mean(Problem.check(q, x, kernel, **{**given, **other}), values, warn=False)
        return np.nansum(slope * means)

    wrt = ("values", "sample_weight", "kernel") if name in ROUGH else gradients.ARGUMENTS
    found = lb.local_mean_vjp(slope, q, x, values, kernel, wrt=wrt, **given)

    def check(derivative, function, at):
        for _ in range(3):
            direction = rng.normal(size=np.shape(at))
            size = np.abs(np.asarray(derivative) * direction).sum()
            assert abs((derivative * direction).sum() - difference(function, at, direction)) <= 1e-7 * (
                size + 1.0
            )

    check(found.values, lambda v: loss(values=v), values)
    if not kernel.adaptive:
        check(found.sample_weight, lambda s: loss(sample_weight=s), multiplicity)
    if name not in ROUGH:  # the last column holds codes

        def moved(points, delta):
            return np.column_stack([points[:, :2] + delta, points[:, 2]])

        check(found.queries[:, :2], lambda delta: loss(q=moved(q, delta)), np.zeros((len(q), 2)))
        check(found.samples[:, :2], lambda delta: loss(x=moved(x, delta)), np.zeros((len(x), 2)))
    for number, derivative in enumerate(found.kernel):
        if derivative is not None:
            at, others = kernel.parameters[number], [None] * len(found.kernel)

            def changed(value, k=number, others=others):
                return kernel.with_parameters([*others[:k], value, *others[k + 1 :]])

            check(derivative, lambda value, change=changed: loss(kernel=change(value)), at)
            assert np.shape(derivative) == np.shape(at)


HOLLOW = {
    "gaussian": lb.gaussian(0.8),
    "biweight": lb.biweight(2.0, on=0) + 0.01,
    "knn": lb.knn(4) * lb.gaussian(1.0),
    "knn bandwidth": lb.gaussian(lb.knn_bandwidth(4)),
    "knn bandwidth of samples": lb.laplace(lb.knn_bandwidth(3, side="sample")),
    "part": lb.gaussian(0.5).hollow() + 0.2 * lb.cauchy(1.0),
    "masked": lb.gaussian(0.5).masked(np.tri(41, dtype=bool)) * 2.0 + lb.triweight(3.0),
}


@pytest.mark.parametrize("name", list(HOLLOW))
def test_kernels_that_know_the_rows(name):
    _, x, values, *_ = arrays()
    slope = cotangents(len(x))
    kernel = HOLLOW[name] if name in ("part", "masked") else HOLLOW[name].hollow()
    same(
        lb.local_mean_vjp(slope, x, x, values, kernel),
        reference.mean_vjp(kernel, x, x, values, slope),
        1e-11,
    )


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 700), (1030, 65), (1100, 2500)])
def test_many_tasks_and_blocks(m, n):
    rng = np.random.default_rng(m)
    q, x, values = rng.normal(size=(m, 2)), rng.normal(size=(n, 2)), rng.normal(size=(n, 3))
    kernel = lb.gaussian([0.5, 0.8]) * (
        lb.epanechnikov(2.0) + 0.1 * lb.laplace(lb.per_sample(rng.uniform(1, 2, n)))
    )
    slope, mask = cotangents(m, 3), rng.random((m, n)) < 0.9
    mask[:, 0] = True
    weight = rng.uniform(0, 2, n)
    ours = lb.local_mean_vjp(slope, q, x, values, kernel, sample_weight=weight, mask=mask)
    same(ours, reference.mean_vjp(kernel, q, x, values, slope, weight, mask), 1e-10)


@pytest.mark.parametrize(
    "name", ["gaussian", "sum", "attention", "matrix bandwidth", "discrete", "knn bandwidth"]
)
def test_threads_do_not_change_a_bit(name, threads):
    q, x, values, *_ = arrays(1500, 900)
    found = []
    for count in (1, 2, 5):
        threads(count)
        found.append(lb.local_mean_vjp(cotangents(1500), q, x, values, KERNELS[name]))
    for other in found[1:]:
        for one, two in zip((*found[0][:4], *found[0][4]), (*other[:4], *other[4]), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("number", "tolerance"), [("float64", 1e-11), ("float32", 1e-4)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        lb.gaussian(0.9), lb.softmax(2.0), lb.gaussian([0.7, 1.5]), 3.0 * lb.gaussian(),
        lb.softmax(2.0) * lb.causal(on=0), lb.window(1.0, on=1) * lb.gaussian(0.9, on=1) * lb.causal(on=0),
    ],
    ids=repr,
)  # fmt: skip
def test_the_program_gives_what_the_path_of_one_leaf_gives(kernel, masked, number, tolerance, monkeypatch):
    rng = np.random.default_rng(2)
    q, x, values = (rng.normal(size=size).astype(number) for size in ((300, 2), (500, 2), (500, 3)))
    slope, options = cotangents(300, 3).astype(number), {"sample_weight": rng.uniform(0.5, 2.0, 500)}
    if masked:
        options["mask"] = rng.random((300, 500)) < 0.5
        options["mask"][7] = False  # a query without a neighbour
    paths = []

    def spy(*arguments, way=gradients.fused_vjp):
        paths.append(way(*arguments))
        return paths[-1]

    monkeypatch.setattr(gradients, "fused_vjp", spy)
    ours = lb.local_mean_vjp(slope, q, x, values, kernel, **options)
    assert (paths[0] is not None) == vectors.ENABLED
    monkeypatch.setattr(gradients, "fused_vjp", lambda *_: None)
    theirs = lb.local_mean_vjp(slope, q, x, values, kernel, **options)
    same(ours._replace(kernel=theirs.kernel), theirs, tolerance)
    wide = (
        3 * tolerance if len(ours.kernel) > 1 else tolerance
    )  # under limits fewer pairs, and their sum may cancel
    for one, other in zip(ours.kernel, theirs.kernel, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            near(one, other, wide)


def test_pandas_and_whole_numbers_are_taken():
    pd = pytest.importorskip("pandas")
    x, y = np.arange(12).reshape(6, 2), np.arange(6) ** 2
    expected = lb.local_mean_vjp(np.ones(6), x.astype(float), x.astype(float), y.astype(float))
    frame = pd.DataFrame(x, columns=["a", "b"])
    for q, s, v in ((x, x, y), (frame, frame, pd.Series(y)), (x.tolist(), x.astype(np.uint8), y.tolist())):
        found = lb.local_mean_vjp(pd.Series(np.ones(6)), q, s, v)
        assert isinstance(found.queries, np.ndarray)
        same(found, expected, 1e-13)


def test_memory_is_that_of_the_arguments():
    import tracemalloc

    rng = np.random.default_rng(0)
    n = 20_000
    x, values, slope = rng.normal(size=(n, 1)), rng.normal(size=n), rng.normal(size=n)
    kernel = lb.tricube(0.001) + 1e-6 * lb.cauchy(1.0)
    lb.local_mean_vjp(slope[:9], x[:9], x, values, kernel)
    tracemalloc.start()
    found = lb.local_mean_vjp(slope[:2000], x[:2000], x, values, kernel)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(found.samples).all()
    assert peak < 40e6  # all weights would be 320 MB


# -- profiles ----------------------------------------------------------------------------------------------------------

EXACT = {
    "uniform": lambda s, a: mpmath.mpf(1),
    "triangular": lambda s, a: 1 - mpmath.sqrt(s),
    "epanechnikov": lambda s, a: 1 - s,
    "biweight": lambda s, a: (1 - s) ** 2,
    "triweight": lambda s, a: (1 - s) ** 3,
    "tricube": lambda s, a: (1 - s ** mpmath.mpf(1.5)) ** 3,
    "cosine": lambda s, a: mpmath.cos(mpmath.pi * mpmath.sqrt(s) / 2),
    "gaussian": lambda s, a: -s / 2,
    "laplace": lambda s, a: -mpmath.sqrt(s),
    "cauchy": lambda s, a: 1 / (1 + s),
    "student_t": lambda s, a: -(a + 1) / 2 * mpmath.log(1 + s / a),
    "rational_quadratic": lambda s, a: -a * mpmath.log(1 + s / (2 * a)),
}


@pytest.mark.parametrize("name", list(lb.PROFILES))
def test_slopes_of_the_profiles(name):
    profile, a = lb.PROFILES[name], 1.7
    for s in (1e-12, 1e-3, 0.2, 0.5, 0.97, *([] if profile.support == 1 else [1.0, 3.0, 50.0, 1e8])):
        with mpmath.workdps(60):
            exact = mpmath.diff(
                lambda t: EXACT[name](t, mpmath.mpf(a)), mpmath.mpf(s), h=mpmath.mpf(s) * 1e-20
            )
        assert profile.slope(s, a) == pytest.approx(float(exact), rel=1e-13, abs=1e-300)
    if profile.support == 1:
        assert profile.slope(1.0, a) == profile.slope(4.0, a) == 0.0


# -- hard places -------------------------------------------------------------------------------------------------------


def test_far_queries_have_the_gradient_of_the_limit():
    x, values = np.array([[0.0], [1.0], [3.0]]), np.array([2.0, 5.0, -1.0])
    for far, h in ((1e3, 0.1), (1e8, 0.1), (1e8, 1e-150)):  # the last has a log-weight of -inf
        found = lb.local_mean_vjp([1.0], [[far]], x, values, lb.gaussian(h))
        np.testing.assert_allclose(found.values, [0, 0, 1])
        for part in found[:2]:
            np.testing.assert_array_equal(part, 0.0)
        np.testing.assert_array_equal(found.sample_weight, 0.0)
        assert found.kernel == (0.0,)
    laplace = lb.local_mean_vjp([1.0], [[1e8]], x, values, lb.laplace(2.0))
    w = np.exp((x[:, 0] - 3.0) / 2)
    np.testing.assert_allclose(laplace.values, w / w.sum(), rtol=1e-7)
    # all distances grow alike, so moving the query changes nothing, and moving a sample does
    np.testing.assert_allclose(laplace.queries, 0.0, atol=1e-7)
    p = w / w.sum()
    np.testing.assert_allclose(laplace.samples[:, 0], p * (values - p @ values) / 2, rtol=1e-6)


def test_duplicates_share_and_coinciding_points_pull_nowhere():
    x, values = np.array([[0.5], [0.5], [2.0]]), np.array([1.0, 4.0, 2.0])
    kernels = [
        lb.laplace(0.7),
        lb.triangular(2.0),
        lb.gaussian(0.7, metric="manhattan"),
        lb.laplace(metric="cosine"),
    ]
    for kernel in (*kernels, lb.Kernel(log_profile=minus_root)):
        found = lb.local_mean_vjp([1.0], [[0.5]], x, values, kernel)
        np.testing.assert_array_equal(found.samples[:2], 0.0)
        assert np.isfinite(found.queries).all()
        assert np.isfinite(found.kernel[0])
        assert found.values[0] == found.values[1] > 0


def minus_root(s):
    return -math.sqrt(s)


def test_one_sample_moves_nothing():
    for kernel in (lb.gaussian(), lb.softmax(), lb.tricube(3.0), lb.von_mises(), lb.cauchy() + 0.1):
        found = lb.local_mean_vjp([[2.0, 3.0]], [[0.3]], [[1.0]], [[5.0, 1e8]], kernel)
        np.testing.assert_allclose(found.values, [[2.0, 3.0]], rtol=4e-15)
        for part in (*found[:2], found.sample_weight, found.kernel[0]):
            np.testing.assert_array_equal(part, 0.0)


def test_empty_neighborhoods_contribute_nothing():
    x, values = np.array([[0.0], [1.0]]), np.array([1.0, 3.0])
    q = np.array([[0.5], [9.0], [0.2]])
    for kernel in (lb.epanechnikov(1.0), lb.epanechnikov(1.0) * lb.gaussian(1.0)):
        whole = lb.local_mean_vjp([1.0, np.nan, -2.0], q, x, values, kernel)
        some = lb.local_mean_vjp([1.0, -2.0], q[[0, 2]], x, values, kernel)
        np.testing.assert_array_equal(whole.queries, [some.queries[0], [0.0], some.queries[1]])
        for one, two in zip((*whole[1:4], *whole[4]), (*some[1:4], *some[4]), strict=True):
            np.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="cotangent contains NaN in row 2"):
        lb.local_mean_vjp([1.0, np.nan, np.nan], q, x, values, kernel)


def test_nan_under_the_mask_leaks_nowhere():
    q, x, values, *_ = arrays()
    mask = np.ones((len(q), len(x)), dtype=bool)
    mask[:, [3, 17]] = False
    broken, empty = x.copy(), values.copy()
    broken[3], empty[[3, 17]] = np.nan, np.nan
    for kernel in (lb.gaussian(), lb.softmax(), lb.tricube(4.0), lb.laplace(on=0) * lb.causal(on=1) + 0.1):
        ours = lb.local_mean_vjp(cotangents(len(q)), q, broken, empty, kernel, mask=mask)
        rest = np.setdiff1d(np.arange(len(x)), [3, 17])
        alone = lb.local_mean_vjp(cotangents(len(q)), q, x[rest], values[rest], kernel)
        for field in ("samples", "values", "sample_weight"):
            np.testing.assert_array_equal(getattr(ours, field)[[3, 17]], 0.0)
            near(getattr(ours, field)[rest], getattr(alone, field), 1e-12)
        near(ours.queries, alone.queries, 1e-12)
        near(ours.kernel[0], alone.kernel[0], 1e-12)


def test_a_multiplicity_of_zero_has_the_derivative_of_letting_the_sample_in():
    q, x, values, _, multiplicity, _ = arrays()
    assert (multiplicity == 0).sum() > 3
    for kernel in (lb.gaussian(), lb.biweight(3.0), lb.student_t(nu=2.0)):
        found = lb.local_mean_vjp(cotangents(len(q)), q, x, values, kernel, sample_weight=multiplicity)

        def loss(s, kernel=kernel):
            return (
                cotangents(len(q)) * engine.mean(Problem.check(q, x, kernel, sample_weight=s), values)
            ).sum()

        for j in np.flatnonzero(multiplicity == 0):
            one, two = multiplicity.copy(), multiplicity.copy()
            one[j], two[j] = 1e-5, 2e-5
            forward = (4 * loss(one) - loss(two) - 3 * loss(multiplicity)) / 2e-5
            assert found.sample_weight[j] == pytest.approx(forward, rel=1e-5, abs=1e-8)
        np.testing.assert_array_equal(found.samples[multiplicity == 0], 0.0)


def test_entries_that_are_zero_have_a_derivative_too():
    q, x, values, *_ = arrays()
    table = np.array([[0.0, 1.0, 0.3, 0.2], [1.0, 0.0, 0.5, 0.0], [0.2, 0.3, 0.0, 1.0], [0.1, 0.7, 0.6, 0.0]])
    for factor in (lb.gaussian(on=0), lb.biweight(3.0, on=0)):
        kernel, slope = lb.discrete(table, on=2) * factor, cotangents(len(q))
        found = lb.local_mean_vjp(slope, q, x, values, kernel).kernel[0]
        near(found, reference.mean_vjp(kernel, q, x, values, slope)[4][0], 1e-11)
        assert np.abs(found[table == 0]).min() > 1e-6


@pytest.mark.parametrize("scale", [1e-120, 1e-3, 1e120])
def test_the_gradient_has_the_units_of_the_data(scale):
    q, x, values, *_ = arrays()
    for make in (lb.gaussian, lb.laplace, lb.biweight, lb.cauchy):
        one = lb.local_mean_vjp(cotangents(len(q)), q, x, values, make(2.0))
        other = lb.local_mean_vjp(cotangents(len(q)), q * scale, x * scale, values, make(2.0 * scale))
        near(other.queries * scale, one.queries, 1e-10)
        near(other.samples * scale, one.samples, 1e-10)
        near(other.kernel[0] * scale, one.kernel[0], 1e-10)


def test_shifts_and_permutations():
    q, x, values, *_ = arrays()
    q, x = np.round(q * 64) / 64, np.round(x * 64) / 64  # so that the shift is exact
    slope, kernel = cotangents(len(q)), lb.gaussian(0.8) * lb.laplace([1.0, 2.0, 3.0])
    one = lb.local_mean_vjp(slope, q, x, values, kernel)
    near(one.queries.sum(0) + one.samples.sum(0), np.zeros(3), 1e-10)  # to move all moves nothing
    moved = lb.local_mean_vjp(slope, q + 1024, x + 1024, values + 1e6, kernel)
    same(moved, one, 1e-8)
    rows, lines = np.random.default_rng(0).permutation(len(x)), np.random.default_rng(1).permutation(len(q))
    other = lb.local_mean_vjp(slope[lines], q[lines], x[rows], values[rows], kernel)
    near(other.queries, one.queries[lines], 1e-12)
    for field in ("samples", "values", "sample_weight"):
        near(getattr(other, field), getattr(one, field)[rows], 1e-12)
    same(lb.local_mean_vjp(slope, q, x, values, 3.0 * kernel), one, 1e-12)


# -- against autograd --------------------------------------------------------------------------------------------------


def dense_autograd(log_weights, tensors, values, slope, sample_weight, mask, dtype):
    """Gradients by PyTorch of the mean of dense weights."""
    torch = pytest.importorskip("torch")
    leaves = [torch.tensor(t, dtype=dtype, requires_grad=True) for t in (*tensors, values, sample_weight)]
    *parameters, v, s = leaves
    log_w = log_weights(torch, *parameters) + torch.log(s)
    log_w = log_w.masked_fill(~torch.tensor(mask), -torch.inf)
    means = torch.softmax(log_w, dim=1) @ v
    (means * torch.tensor(slope, dtype=dtype)).sum().backward()
    return [leaf.grad.numpy() for leaf in leaves]


def attention_kernel(temperature, width, bias):
    time = lb.laplace(width, on=2) * lb.relative_bias(bias, on=2) * lb.causal(on=2)
    return lb.softmax(temperature, on=[0, 1]) * time


def attention(torch, q, x, temperature, width, bias):
    scores = q[:, :2] @ x[:, :2].T / temperature
    offset = q[:, None, 2] - x[None, :, 2]
    clipped = (offset - 0).clamp(0, len(bias) - 1).long()
    past = torch.where(offset >= 0, 0.0, -torch.inf)
    return scores - offset.abs() / width + bias[clipped.detach()] + past


def radial(torch, q, x, widths):
    difference = (q[:, None] - x[None]) / widths
    return -0.5 * (difference**2).sum(-1)


def of_samples(torch, q, x, widths):
    return -0.5 * ((q[:, None] - x[None]) ** 2).sum(-1) / widths[None] ** 2


def of_queries(torch, q, x, widths):
    return -((q[:, None] - x[None]) ** 2).sum(-1).sqrt() / widths[:, None]


def by_matrix(torch, q, x, matrix):
    return -0.5 * (torch.linalg.solve(matrix, (q[:, None] - x[None])[..., None])[..., 0] ** 2).sum(-1)


@pytest.mark.parametrize(("number", "tolerance"), [("float64", 1e-10), ("float32", 1e-4)])
@pytest.mark.parametrize("name", ["attention", "vector", "per sample", "per query", "matrix"])
def test_autograd(name, number, tolerance):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(6)
    m, n, p = 70, 90, 3
    time = [rng.integers(0, 12, size) for size in (m, n)]
    time[1][0] = 0  # every query has a past
    q, x = (np.column_stack([rng.normal(size=(len(t), 2)), t]) for t in time)
    if name != "attention":
        q, x = rng.normal(size=(m, 3)), rng.normal(size=(n, 3))
    values, slope, mask = rng.normal(size=(n, p)), cotangents(m, p), rng.random((m, n)) < 0.8
    mask[:, 0], weight = True, rng.uniform(0.5, 2.0, n)
    made, formula, parameters = {
        "attention": (
            attention_kernel,
            attention,
            (1.3, 4.0, rng.normal(size=6)),
        ),
        "vector": (lb.gaussian, radial, (np.array([0.7, 1.5, 1.0]),)),
        "per sample": (lambda h: lb.gaussian(lb.per_sample(h)), of_samples, (rng.uniform(0.7, 2.0, n),)),
        "per query": (lambda h: lb.laplace(lb.per_query(h)), of_queries, (rng.uniform(0.7, 2.0, m),)),
        "matrix": (lb.gaussian, by_matrix, (MATRIX,)),
    }[name]  # fmt: skip
    q, x, values = (a.astype(number) for a in (q, x, values))
    dtype = getattr(torch, number)
    expected = dense_autograd(formula, (q, x, *parameters), values, slope, weight, mask, dtype)
    ours = lb.local_mean_vjp(slope, q, x, values, made(*parameters), sample_weight=weight, mask=mask)
    assert ours.queries.dtype == ours.values.dtype == ours.sample_weight.dtype == number
    kernel = [part for part in ours.kernel if part is not None]
    if name == "attention":  # time is a coordinate to the engine, and an index to us
        ours = ours._replace(queries=ours.queries[:, :2], samples=ours.samples[:, :2])
        expected[0], expected[1] = expected[0][:, :2], expected[1][:, :2]
    for one, other in zip(
        (ours.queries, ours.samples, *kernel, ours.values, ours.sample_weight), expected, strict=True
    ):
        near(one, other, tolerance)


# -- what is asked for, and what is refused ----------------------------------------------------------------------------


def test_only_what_is_asked_for():
    q, x, values, *_ = arrays()
    slope, kernel = cotangents(len(q)), KERNELS["sum"]
    whole = lb.local_mean_vjp(slope, q, x, values, kernel)
    for name in gradients.ARGUMENTS:
        found = lb.local_mean_vjp(slope, q, x, values, kernel, wrt=(name,))
        assert [part is not None for part in found] == [field == name for field in found._fields]
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


def test_shapes_follow_the_values():
    x, y = np.arange(4.0)[:, None], np.arange(4.0)
    one = lb.local_mean_vjp([1.0, 2.0], x[:2], x, y)
    two = lb.local_mean_vjp([[1.0], [2.0]], x[:2], x, y[:, None])
    assert one.values.shape == (4,)
    assert two.values.shape == (4, 1)
    np.testing.assert_array_equal(one.values, two.values[:, 0])
    small = lb.local_mean_vjp([1.0, 2.0], *(a.astype(np.float32) for a in (x[:2], x, y)))
    assert small.samples.dtype == np.float32
    near(small.samples, one.samples, 1e-6)


@pytest.mark.parametrize("name", list(ROUGH))
def test_a_metric_without_a_derivative_says_so(name):
    q, x, values, *_ = arrays()
    for wrt in (("queries",), ("samples", "values"), gradients.ARGUMENTS):
        with pytest.raises(ValueError, match=rf"metric '?{ROUGH[name]}'? has no derivative"):
            lb.local_mean_vjp(cotangents(len(q)), q, x, values, KERNELS[name], wrt=wrt)
    assert lb.local_mean_vjp(cotangents(len(q)), q, x, values, KERNELS[name], wrt=("kernel",)).kernel[0] != 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cotangent": [1.0]}, r"cotangent must have the shape of the means, \(3,\), got \(1,\)"),
        ({"cotangent": [[1.0], [1.0], [1.0]]}, r"cotangent must be 1-D, got .*\(3, 1\)"),
        ({"cotangent": [1.0, np.inf, 1.0]}, "cotangent contains infinity"),
        ({"cotangent": [1.0, np.nan, 1.0]}, "cotangent contains NaN in row 1"),
        ({"wrt": ("bandwidth",)}, "wrt must be one of 'queries'"),
        ({"values": [1.0, np.nan]}, "values contains NaN"),
        ({"kernel": "gauss"}, "kernel must be"),
    ],
)
def test_bad_input(change, message):
    given = {"cotangent": [1.0, 2.0, 3.0], "queries": [[0.0], [1.0], [2.0]], "samples": [[0.0], [1.0]]}
    with pytest.raises(ValueError, match=message):
        lb.local_mean_vjp(**{**given, "values": [1.0, 2.0], **change})
