"""The lanes of Numba's simulator as greenlets: faster than a thread each, and stricter.

A block runs lane by lane, each up to its next barrier. So that wrong kernels fail:

- a barrier that some lanes never reach is an error;
- shared and local memory begin as NaN (integers as a large number), as they hold anything on a card;
- lanes may run in a shuffled order between barriers (``SEED``), which uncovers what is written and read without one.
"""

import random
import sys
from types import SimpleNamespace

import numpy as np
from greenlet import getcurrent, greenlet
from numba.cuda.simulator import kernel, kernelapi

#: None runs the lanes in ascending order, a number in an order drawn anew after each barrier.
SEED = None


class Lane(greenlet):
    """One thread of a block."""

    def syncthreads(self):
        self.parent.switch()


def run_block(manager, grid_point, *arguments):
    """Run the lanes of a block from barrier to barrier, until all have come to their end."""
    order = random.Random(SEED)
    width, height, _ = manager._block_dim
    lanes = []

    def run():
        with np.errstate(all="ignore"):  # a card gives no warnings
            manager._f(*arguments)

    for point in np.ndindex(*manager._block_dim):
        lane = Lane(run)
        lane.threadIdx, lane.blockIdx = kernelapi.Dim3(*point), kernelapi.Dim3(*grid_point)
        lane.thread_id = point[0] + width * (point[1] + height * point[2])
        lanes.append(lane)
    waiting = list(lanes)
    while waiting:
        if SEED is not None:
            order.shuffle(waiting)
        for lane in waiting:
            lane.switch()
        waiting = [lane for lane in waiting if not lane.dead]
        if waiting and len(waiting) < len(lanes):
            raise RuntimeError(f"{len(lanes) - len(waiting)} of {len(lanes)} lanes ended before a barrier")


def fresh(shape, dtype):
    """Memory as a kernel finds it."""
    array = np.empty(shape, kernelapi.numpy_support.as_dtype(dtype) if hasattr(dtype, "bitwidth") else dtype)
    array.fill(np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max)
    return array


def shared_array(self, shape, dtype, alignment=None):
    """One array for each place in the code that asks, for all lanes of the block."""
    frame = sys._getframe(1)
    place = frame.f_code, frame.f_lasti
    if place not in self._allocations:
        self._allocations[place] = fresh(shape, dtype)
    return self._allocations[place]


def local_array(self, shape, dtype, alignment=None):
    return fresh(shape, dtype)


def install():
    """Take the place of the simulator's threads, for this process."""
    kernelapi.threading = SimpleNamespace(current_thread=getcurrent, Lock=kernelapi.threading.Lock)
    kernel.BlockManager.run = run_block
    kernelapi.FakeCUDAShared.array = shared_array
    kernelapi.FakeCUDALocal.array = local_array
