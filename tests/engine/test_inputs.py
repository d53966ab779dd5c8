"""The same numbers in another type or layout give the same answer, and nothing of the caller's is written to."""

import numpy as np
import pytest

import locbook as lb
from locbook import engine
from tests.engine.problems import close, problem

RNG = np.random.default_rng(5)
Q, X = RNG.integers(0, 12, size=(19, 3)), RNG.integers(0, 12, size=(37, 3))
Y = RNG.integers(0, 200, size=(37, 2))
KERNELS = {
    "gaussian": lb.gaussian(3.0),
    "epanechnikov": lb.epanechnikov(9.0),
    "knn": lb.knn(4, ties="include"),
    "knn bandwidth": lb.gaussian(lb.knn_bandwidth(3)),
    "softmax": lb.softmax(40.0),
    "periodic": lb.gaussian(1.5, metric=lb.periodic(12.0)),
    "discrete": lb.discrete(RNG.uniform(0.1, 1, size=(12, 12)), on=1),
}


def _fortran(a):
    return np.asfortranarray(a)


def _strided(a):
    wide = np.full((2 * a.shape[0], 3 * a.shape[1]), 77, dtype=a.dtype)
    wide[::2, 1::3] = a
    return wide[::2, 1::3]


def _reversed(a):
    return np.ascontiguousarray(a[::-1, ::-1])[::-1, ::-1]


def _read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {"fortran": _fortran, "strided": _strided, "reversed": _reversed, "read-only": _read_only}
DTYPES = [
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "uint16",
    "uint64",
    ">f8",
    "<i4",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_dtypes(name, dtype):
    expected = lb.local_mean(Q.astype(float), X.astype(float), Y.astype(float), KERNELS[name])
    q, x, y = Q.astype(dtype), X.astype(dtype), Y.astype(dtype if dtype not in ("int8",) else "int16")
    answer = lb.local_mean(q, x, y, KERNELS[name])
    small = dtype in ("float32", "float16")
    assert answer.dtype == (np.float32 if small else np.float64)
    if small:
        # exponential kernels in float32 with float64 sums between tiles, all others in float64
        np.testing.assert_allclose(answer, expected, rtol=1e-6)
    else:
        np.testing.assert_array_equal(answer, expected)
    # one float64 array among float32 ones makes the answer float64, whichever it is
    for mixed in ((Q, x, y), (q, X, y), (q, x, Y)):
        assert lb.local_mean(*mixed, KERNELS[name]).dtype == np.float64


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8"])
def test_layouts(layout, dtype):
    make = LAYOUTS[layout]
    q, x, y = Q.astype(dtype), X.astype(dtype), Y.astype(dtype)
    weight, mask = RNG.integers(1, 3, 37).astype(float), RNG.random((19, 37)) < 0.7
    expected = lb.local_mean(q, x, y, KERNELS["gaussian"], sample_weight=weight, mask=mask)
    given = [make(q), make(x), make(y), make(weight[:, None])[:, 0], make(mask)]
    kept = [a.copy() for a in given]
    answer = lb.local_mean(*given[:3], KERNELS["gaussian"], sample_weight=given[3], mask=given[4])
    np.testing.assert_array_equal(answer, expected)
    for array, copy in zip(given, kept, strict=True):
        np.testing.assert_array_equal(array, copy)
    close(engine.nearest(problem("gaussian", given[0], given[1]), 5).distances,
          engine.nearest(problem("gaussian", q, x), 5).distances, 0)  # fmt: skip


def test_memory_map(tmp_path):
    for name, array in (("x", X.astype(float)), ("y", Y.astype(float))):
        np.save(tmp_path / f"{name}.npy", array)
    x, y = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy")
    for kernel in KERNELS.values():
        np.testing.assert_array_equal(lb.local_mean(Q, x, y, kernel), lb.local_mean(Q, X, Y, kernel))


def test_booleans_and_lists():
    x = RNG.random((20, 4)) < 0.5
    y = RNG.random(20) < 0.5
    answer = lb.local_mean(x, x, y, lb.gaussian(0.3, metric="hamming"))
    np.testing.assert_array_equal(
        answer, lb.local_mean(x * 1.0, x * 1.0, y * 1.0, lb.gaussian(0.3, metric="hamming"))
    )
    np.testing.assert_array_equal(
        lb.local_mean(Q.tolist(), X.tolist(), Y.tolist(), "gaussian"), lb.local_mean(Q, X, Y, "gaussian")
    )


@pytest.mark.parametrize("shape", [(37,), (37, 1), (37, 5)])
def test_outputs_keep_their_shape(shape):
    values = RNG.normal(size=shape)
    answer = lb.local_mean(Q, X, values, KERNELS["gaussian"])
    assert answer.shape == (19, *shape[1:])
    columns = values.reshape(37, -1)
    for c in range(columns.shape[1]):  # one output at a time gives the same bits
        one = lb.local_mean(Q, X, columns[:, c], KERNELS["gaussian"])
        np.testing.assert_array_equal(answer.reshape(19, -1)[:, c], one)


def test_one_query_one_sample_one_column():
    assert lb.local_mean([[3]], [[5]], [7], "gaussian").tolist() == [7.0]
    assert lb.local_weights([[3]], [[5]], "gaussian").tolist() == [[1.0]]
    assert lb.smoother_matrix([[5]], "laplace").tolist() == [[1.0]]
    assert lb.degrees_of_freedom([[5]], lb.knn(1)) == 1.0
