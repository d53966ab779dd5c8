"""Faults C (floating-point distances) and D (memory) of shared/faults.md: one test for each number."""

import subprocess
import sys

import numpy as np
import pytest

import locbook as lb
from locbook.engine import Problem, nearest


@pytest.mark.parametrize("offset", [1e8, -1e9, 1e12, 2.0**52])
@pytest.mark.parametrize(
    "metric", ["euclidean", "manhattan", "chebyshev", lb.minkowski(3.0), lb.mahalanobis([[1.0]])]
)
def test_c22_one_apart_is_one_apart_wherever(offset, metric):
    x, q = np.array([[offset], [offset + 1]]), np.array([[offset + 1]])
    found = nearest(Problem.check(q, x, "gaussian"), 2, metric)
    assert found.indices.tolist() == [[1, 0]]
    np.testing.assert_allclose(found.distances, [[0.0, 1.0]])
    w = lb.local_weights(q, x, lb.gaussian(metric=metric))
    np.testing.assert_allclose(
        w, lb.local_weights(q - offset, x - offset, lb.gaussian(metric=metric)), rtol=1e-15
    )


def test_c22_the_nearer_of_two_near_neighbours():
    x = np.array([[1e9], [1e9 + 1]])
    found = nearest(Problem.check([[1e9 + 0.9]], x, "gaussian"), 1)
    assert found.indices.tolist() == [[1]]
    assert found.distances[0, 0] == pytest.approx(0.1, abs=1e-6)
    assert lb.local_mean([[1e9 + 0.9]], x, [0.0, 1.0], lb.knn(1))[0] == 1.0


@pytest.mark.parametrize(("size", "gap", "columns"), [(1e4, 0.01, 30), (1e6, 0.25, 7), (1e2, 1e-4, 200)])
def test_c23_float32_rows_that_differ_little(size, gap, columns):
    x = np.full((30, columns), size, dtype=np.float32)
    y = np.full((30, columns), size + gap, dtype=np.float32)
    true = np.sqrt(columns) * abs(float(y[0, 0]) - float(x[0, 0]))
    found = nearest(Problem.check(y, x, "gaussian"), 30)
    np.testing.assert_allclose(found.distances, true, rtol=1e-12)
    np.testing.assert_array_equal(nearest(Problem.check(x, x, "gaussian"), 1).distances, 0.0)
    assert (lb.gaussian(1.0)(x).diagonal() == 1.0).all()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "bool"])
def test_c25_unsigned_differences_do_not_wrap(dtype):
    x, q = np.array([[0], [1]]).astype(dtype), np.array([[1]]).astype(dtype)
    for metric in ("euclidean", "manhattan", "chebyshev"):
        found = nearest(Problem.check(q, x, "gaussian"), 2, metric)
        assert found.distances.tolist() == [[0.0, 1.0]]
        assert nearest(Problem.check(x, x, "gaussian"), 2, metric).distances.tolist() == [[0.0, 1.0]] * 2
    assert lb.local_mean(q, x, [3.0, 5.0], lb.uniform(1.0))[0] == 4.0
    top = np.array([[255], [0]], dtype="uint8")
    assert lb.scott_bandwidth(top)[0] == lb.scott_bandwidth(top.astype(float))[0]
    assert lb.local_mean(top, top, np.array([200, 100], dtype="uint8"), lb.uniform(255.0)).tolist() == [
        150.0,
        150.0,
    ]


# -- memory ------------------------------------------------------------------------------------------------------------

#: Resident memory now, and the most there ever was, in MB.
MEMORY = """
import numpy as np, locbook as lb

def memory(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))

lb.set_num_threads(2)
lb.engine.pool.WORTH = 0  # threads for small problems as well
lb.local_mean(np.zeros((600, 3)), np.zeros((600, 3)), np.zeros(600))  # threads, machine code
rng = np.random.default_rng(0)
"""
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def megabytes(script):
    """What the script prints last: a number of megabytes."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY + script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


@needs_proc
def test_c26_d27_memory_of_large_problems():
    # 300 columns of uint8 that are never held as float64 (144 MB)
    small, large = megabytes(
        """
x = rng.integers(0, 255, size=(60_000, 300), dtype=np.uint8)
q = x[:40].copy()
before = memory("VmRSS")
lb.local_mean(q, x, x[:, 0], lb.gaussian(50.0))
lb.local_mean(q, x, x[:, 0], lb.knn(3))
print(memory("VmHWM") - before)
x, q = rng.normal(size=(100_000, 3)), rng.normal(size=(10_000, 3))
y = x[:, 0]
before = memory("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # forget the peak so far
lb.local_mean(q, x, y, lb.epanechnikov(0.5), empty="nearest")
print(memory("VmHWM") - before)
"""
    )
    assert small < 100
    assert large < 300  # the matrix would be 8 GB


@needs_proc
def test_d30_memory_does_not_grow_over_many_small_calls():
    grown, more = megabytes(
        """
x = rng.normal(size=(20, 2))
model = lb.LocalMeanRegressor(bandwidth=0.5).fit(x, x[:, 0])
def calls(count):
    for i in range(count):
        kernel = lb.gaussian(0.5 + 1e-6 * i)
        lb.local_mean(x[:3], x, x[:, 0], kernel)
        lb.leave_one_out(x, x[:, 0], lb.knn(3))
        if i % 10 == 0:
            lb.set_num_threads(1 + i % 3)
            lb.local_mean(np.zeros((600, 2)), x, x[:, 0], kernel)
calls(200)
before = memory("VmRSS")
calls(800)
print(memory("VmRSS") - before)
import threading
print(threading.active_count())
"""
    )
    assert grown < 6
    assert more <= 8  # pools that are no longer used end their threads
