"""Numba's simulator made faster, and stricter: kernels see NumPy's arrays, and lanes are greenlets, or plain calls.

A block runs lane by lane, each up to its next barrier. So that wrong kernels fail:

- a barrier that some lanes never reach is an error;
- shared and local memory begin as NaN (integers as a large number), as they hold anything on a card;
- lanes may run in a shuffled order between barriers (``SEED``), which uncovers what is written and read without one.
"""

import random
import sys

import numpy as np
from greenlet import getcurrent, greenlet
from numba.cuda.simulator import kernel, kernelapi
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

#: None runs the lanes in ascending order, a number in an order drawn anew after each barrier.
SEED = None


class Module(kernelapi.FakeCUDAModule):
    """What a kernel knows as ``cuda``: the lane that runs writes down where it is."""

    threadIdx = blockIdx = None

    def syncthreads(self):
        getcurrent().parent.switch()


def run_block(function, module, arguments, order):
    """Run the lanes of a block from barrier to barrier, until all have come to their end."""
    points = [kernelapi.Dim3(*point) for point in np.ndindex(*module.blockDim)]

    def run():
        with np.errstate(all="ignore"):  # a card gives no warnings
            function(*arguments)

    meets = "syncthreads" in function.__code__.co_names
    waiting = [(point, greenlet(run) if meets else None) for point in points]
    while waiting:
        if SEED is not None:
            order.shuffle(waiting)
        for module.threadIdx, lane in waiting:
            function(*arguments) if lane is None else lane.switch()
        waiting = [(point, lane) for point, lane in waiting if lane is not None and not lane.dead]
        if waiting and len(waiting) < len(points):
            raise RuntimeError(f"{len(points) - len(waiting)} of {len(points)} lanes ended before a barrier")


def plain(argument):
    """Arrays of the card as NumPy's, those in a named tuple as well."""
    if isinstance(argument, tuple):
        return type(argument)(*map(plain, argument))
    return argument._ary if isinstance(argument, FakeCUDAArray) else argument


def launch(self, *arguments):
    """Run a kernel on its grid."""
    sizes = kernel.normalize_kernel_dimensions(self.grid_dim, self.block_dim)
    module, order = Module(*sizes, self.dynshared_size), random.Random(SEED)
    arguments = [plain(argument) for argument in arguments]
    with kernelapi.swapped_cuda_module(self.fn, module), np.errstate(all="ignore"):
        for point in np.ndindex(*sizes[0]):
            module.blockIdx = kernelapi.Dim3(*point)
            run_block(self.fn, module, arguments, order)


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
    """Take the place of the simulator's launches and memory, for this process."""
    kernel.FakeCUDAKernel.__call__ = launch
    kernelapi.FakeCUDAShared.array = shared_array
    kernelapi.FakeCUDALocal.array = local_array
