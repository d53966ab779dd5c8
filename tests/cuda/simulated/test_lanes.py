"""The lanes find what is wrong on purpose."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

from tests.cuda import lanes


@cuda.jit
def early_return(out):
    if cuda.threadIdx.x > 1:
        return
    cuda.syncthreads()
    out[cuda.threadIdx.x] = 1.0


@cuda.jit
def no_barrier(out):
    shared = cuda.shared.array(4, types.float64)
    shared[cuda.threadIdx.x] = cuda.threadIdx.x
    out[cuda.threadIdx.x] = shared[3 - cuda.threadIdx.x]


@cuda.jit
def with_barrier(out):
    shared = cuda.shared.array(4, types.float64)
    other = cuda.shared.array(4, types.float64)
    shared[cuda.threadIdx.x] = cuda.threadIdx.x
    cuda.syncthreads()
    out[cuda.threadIdx.x] = shared[3 - cuda.threadIdx.x]
    assert np.isnan(other[0])


def test_a_barrier_that_not_all_reach():
    with pytest.raises(RuntimeError, match="ended before a barrier"):
        early_return[1, 4](np.zeros(4))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_shared_memory(seed, monkeypatch):
    monkeypatch.setattr(lanes, "SEED", seed)
    out = np.zeros(4)
    no_barrier[1, 4](out)
    assert np.isnan(out).any()
    with_barrier[1, 4](out)
    np.testing.assert_array_equal(out, [3, 2, 1, 0])
