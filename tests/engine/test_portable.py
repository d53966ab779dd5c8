"""The plain path and the vector paths of other processors give the same answers.

A battery of every reduction runs here and, in a process of its own, with vectors switched off; a part of it for a
processor without fused multiply-add, and for one with vectors of 32 bytes.
"""

import atexit
import tempfile
from functools import cache
from pathlib import Path

import numba
import numpy as np
import pytest
from llvmlite.binding import get_host_cpu_features

import locbook as lb
from locbook import engine
from locbook.engine import vectors
from locbook.engine.exponential import exp, exp_negative
from locbook.kernels.logarithm import log1p
from tests import background

AVX2 = "+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+avx,+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe"
#: Name -> what the environment says, the bytes of a vector that must follow, and whether the whole battery runs.
PATHS = {
    "switched off": ({"LOCBOOK_VECTORS": "0"}, 0, True),
    "without fma": ({"NUMBA_CPU_NAME": "generic"}, 0, False),
    "avx2": ({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": AVX2}, 32, False),
}
M, N, D = 37, 333, 2
#: |a - b| <= this, relative to the range of the values or the largest answer.
BOUNDS = {"float64": 1e-12, "float32": 1e-5}
_WIDTHS = np.linspace(0.3, 1.2, M)


def _bump(s):
    return (1.0 - s) ** 4 if s < 1.0 else 0.0


#: Kernels of the battery.
KERNELS = {
    "gaussian": lb.gaussian(0.4),
    "laplace": lb.laplace(0.3),
    "softmax": lb.softmax(0.7),
    "two bandwidths": lb.gaussian([0.3, 0.8]),
    "per query": lb.gaussian(lb.per_query(_WIDTHS)),
    "student_t": lb.student_t(0.4, nu=3.0),
    "uniform": lb.uniform(0.7),
    "tricube": lb.tricube(0.9),
    "compact, two bandwidths": lb.epanechnikov([0.7, 0.9]),
    "knn": lb.knn(7),
    "product": lb.laplace(0.5, metric="manhattan") * lb.triangular(1.5, metric="chebyshev", on=0) * 2.0,
    "past": lb.softmax(2.0) * (lb.causal(on=1) + 1e-3),
    "user": lb.Kernel(_bump, 1.1),
}
PRUNED = (
    "uniform",
    "tricube",
    "compact, two bandwidths",
    "product",
)  # all of them under masks, and hollow too
FEW = ("gaussian", "laplace", "user")
METRICS = ("euclidean", "manhattan", "chebyshev", "cosine")
EXPONENTIAL = ("gaussian", "laplace", "two bandwidths", "per query")


def arrays(dtype):
    """Queries, samples, values (n, 3), labels, multiplicities, a mask; no two distances tie."""
    rng = np.random.default_rng(11)
    q, x = rng.normal(size=(M, D)), rng.normal(size=(N, D))
    values = np.column_stack([rng.normal(size=N), np.sin(3 * x[:, 0]), rng.normal(size=N) * 1e3])
    q, x, values = (array.astype(dtype) for array in (q, x, values))
    return q, x, values, rng.integers(0, 4, N), rng.integers(1, 4, N).astype(float), rng.random((M, N)) < 0.8


def given(kernel, queries, samples, **options):
    return engine.Problem.check(queries, samples, kernel, **options)


def sums(dtype, names):
    """Log-sums and means, with and without pruning: the fused path, the program, few and many columns."""
    q, x, values, _, weight, mask = arrays(dtype)
    for name in names:
        for prune in (False, True) if name in PRUNED + EXPONENTIAL else ("auto",):
            for option in ({}, {"sample_weight": weight}, {"mask": mask, "sample_weight": weight}):
                label, one = (
                    f"{name}, prune={prune}, {'+'.join(option)}",
                    given(KERNELS[name], q, x, **option),
                )
                yield f"log_sum {label}", engine.log_sum(one, prune=prune)
                for p in (1, 3):
                    yield f"mean {p} {label}", engine.mean(one, values[:, :p], "nearest", prune=prune)
    many = np.concatenate([values, values, np.cos(values)] * 8, axis=1)  # in the kernel, by lanes, by rows
    for p in (4, 9, 70):
        yield f"mean of {p}", engine.mean(given(KERNELS["gaussian"], q, x), many[:, :p])
    near = np.random.default_rng(5).normal(size=(2500, D)).astype(dtype)  # few of them within reach
    for prune in (False, True) if vectors.ENABLED or len(names) > len(FEW) else (False,):
        found = engine.mean(given(lb.tricube(0.2), q, near), np.cos(near), "nearest", prune=prune)
        yield f"mean of few, prune={prune}", found


def others(dtype):
    """The other reductions."""
    q, x, values, labels, weight, mask = arrays(dtype)
    for name, kernel in KERNELS.items():
        one = given(kernel, q, x, sample_weight=weight, mask=mask)
        found = engine.moments(one, values[:, :1], 1)
        unit = np.exp(np.where(np.isfinite(found.log_scale), found.log_scale, 0.0))[:, None, None]
        yield f"second moment {name}", found.second * unit
        yield f"first moment {name}", found.first * unit
        yield f"classes {name}", engine.classes(one, labels, 4, "nearest")
        yield f"quantile {name}", engine.quantile(one, values[:, :1], np.array([0.29, 0.73]), "nearest")
        yield f"weights {name}", engine.normalized_weights(one, "nearest")
        if name != "per query":
            yield f"self {name}", engine.self_weights(given(kernel, x, x))
            yield f"hollow {name}", engine.mean(given(kernel.hollow(), x, x), values, "nearest")
    for name in PRUNED:
        hollow = given(KERNELS[name].hollow(), x, x, sample_weight=weight)
        yield f"hollow, pruned {name}", engine.mean(hollow, values, "nearest", prune=True)


def gradients(dtype, names):
    """The fused and the general path back; a batch as well."""
    q, x, values, _, weight, _ = arrays(dtype)
    slope = np.cos(3 * q[:, :1] + np.arange(3)).astype(dtype)
    for name in names:
        for option in ({}, {"sample_weight": weight}):
            found = engine.mean_vjp(given(KERNELS[name], q, x, **option), values, slope)
            for field, answer in zip(found._fields[:4], found[:4], strict=True):
                # as large as they get: zero is reached by cancelling
                yield f"gradient {name}, {'+'.join(option)}: {field}", answer / np.abs(answer).max()
    batch = engine.Batch.check(q[None], np.stack([x, x[::-1]]), values, KERNELS["softmax"])
    yield "means of a batch", engine.batch_mean(batch)[0]


def neighbors(dtype, metrics):
    """Distances and rows of the nearest; a mask takes them through the program."""
    q, x, *_, mask = arrays(dtype)
    for metric in metrics:
        for k in (1, 9, 80):
            for prune in (False, True) if metric != "cosine" else (False,):
                for option in ({}, {"mask": mask}) if len(metrics) > 1 else ({},):
                    label = f"{metric} {k} {prune} {'+'.join(option)}"
                    found = engine.nearest(given("gaussian", q, x, **option), k, metric, prune=prune)
                    yield f"distances {label}", found.distances
                    yield f"rows {label}", found.indices
    yield "rows exclude_self", engine.nearest(given("gaussian", x, x), 5, exclude_self=True).indices


def battery(whole):
    """Answers by name: all, or those by which the paths differ most."""
    answers = {}
    for dtype in BOUNDS:
        parts = [sums(dtype, KERNELS if whole else FEW)]
        parts.append(
            gradients(dtype, ("gaussian", "softmax", "two bandwidths", "student_t") if whole else FEW[:1])
        )
        if whole or vectors.ENABLED:
            parts.append(neighbors(dtype, METRICS if whole else METRICS[:1]))
        if whole:
            parts.append(others(dtype))
        for part in parts:
            answers |= {f"{dtype}: {name}": np.asarray(answer, dtype=float) for name, answer in part}
    return answers | {"VECTOR_BYTES": np.array(vectors.VECTOR_BYTES)} | functions()


@numba.njit(error_model="numpy")
def _tables(x):
    out = np.empty((3, x.size))
    for i in range(x.size):
        out[0, i], out[1, i], out[2, i] = exp(x[i]), exp_negative(-abs(x[i])), log1p(abs(x[i]))
    return out


def functions():
    """The elementary functions on this path."""
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [rng.uniform(-700, 700, 5000), rng.uniform(-1, 1, 5000), 10.0 ** rng.uniform(-9, 2, 5000)]
    )
    return {"x": x, "functions": _tables(x)}


@pytest.fixture(scope="module")
def here():
    return battery(True)


def _fits(width):
    return width != 32 or all(get_host_cpu_features().get(name) for name in ("avx2", "fma"))


@cache
def runs():
    """Other processes, one for each path, beside all other tests."""
    temporary = tempfile.TemporaryDirectory()
    atexit.register(temporary.cleanup)
    begun = {}
    for name, (settings, width, whole) in PATHS.items():
        # kept where the user keeps machine code, so that the next run is fast; apart: the switch is no part of its key
        cache = Path(numba.config.CACHE_DIR or temporary.name) / f"locbook-{name.replace(' ', '-')}"
        program = f"""if True:
            import sys, numpy
            from tests.engine.test_portable import battery
            numpy.savez(sys.argv[1], **battery({whole}))
        """
        file = Path(temporary.name) / f"{name}.npz"
        environment = {"NUMBA_CACHE_DIR": str(cache), **settings}
        names = ("LOCBOOK_VECTORS", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")
        if _fits(width):
            given = "-W", "error", "-c", program, str(file)
            begun[name] = file, background.begin(*given, without=names, **environment)
    return begun


@pytest.fixture(scope="module", params=PATHS)
def there(request):
    """Answers of another process, and the bytes of a vector that it must have used."""
    _, width, whole = PATHS[request.param]
    if not _fits(width):
        pytest.skip("this processor has no AVX2")
    file, process = runs()[request.param]
    ended = process.result()
    assert ended.returncode == 0, ended.stdout
    with np.load(file) as answers:
        return dict(answers), width, whole


@background.waits_for(runs)
def test_the_path_is_the_one_asked_for(there):
    answers, width, _ = there
    assert answers["VECTOR_BYTES"] == width


@background.waits_for(runs)
def test_same_answers(here, there):
    answers, _, whole = there
    assert answers.keys() == here.keys() if whole else answers.keys() < here.keys()
    compared = [name for name in answers if ": " in name]
    assert len(compared) > (600 if whole else 80)
    for name in compared:
        theirs, ours, (dtype, what) = answers[name], here[name], name.split(": ", 1)
        np.testing.assert_array_equal(np.isfinite(theirs), np.isfinite(ours), err_msg=name)
        if what.startswith(("rows", "quantile")):
            np.testing.assert_array_equal(theirs, ours, err_msg=name)
            continue
        finite = np.isfinite(ours)
        exact = what.startswith(("distances", "second", "first"))  # always computed in float64
        size = np.where(finite, np.abs(ours), 0.0).max(axis=0)
        error = np.where(finite, np.abs(np.where(finite, theirs, 0) - np.where(finite, ours, 0)), 0.0)
        bound = (BOUNDS["float64"] if exact else BOUNDS[dtype]) * (size + 1e-300)
        assert (error <= bound).all(), f"{name}: {np.max(error / bound)} times the bound"


def _long(function, x):
    return function(x.astype(np.longdouble)).astype(np.longdouble)


@background.waits_for(runs)
@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double is double here")
def test_elementary_functions(there):
    """Without fused multiply-add the exponential is a little worse."""
    answers, width, _ = there
    x = answers["x"]
    exact = _long(np.exp, x), _long(np.exp, -np.abs(x)), _long(np.log1p, np.abs(x))
    for ours, right, bound in zip(answers["functions"], exact, (1.25, 1.25, 2.0), strict=True):
        error = np.abs(ours - right) / np.spacing(right.astype(float))
        assert error.max() <= (1.0 if width and bound < 2 else bound)
