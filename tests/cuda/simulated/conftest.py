"""The simulator's lanes, before any kernel runs, and its arrays, which say that they are on a card."""

from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

from tests.cuda import lanes

lanes.install()
FakeCUDAArray.__cuda_array_interface__ = property(lambda array: array._ary.__array_interface__)
