"""The one place that imports ``numba.cuda``, and the border between the caller's arrays and the card's.

The package is `numba-cuda <https://nvidia.github.io/numba-cuda>`_ (``pip install "locbook[cuda]"``); what Numba itself
ships under the same name is out of date. ``import locbook`` never comes here: whoever asks for ``device="cuda"`` does.
Without the package everything here can be imported, :func:`is_available` is False, and :func:`require` says what to
install. With ``NUMBA_ENABLE_CUDASIM=1`` kernels run in Python, lane by lane, on NumPy arrays: slow, and good for tests.

Arrays that live on the card (PyTorch, CuPy, Numba, whatever carries ``__cuda_array_interface__`` or DLPack) are taken
without a copy, and :func:`give_back` returns answers in the same kind.

**Streams.** All work is on the default stream. The stream on which an array is being made is waited for, by the host,
when the array is taken, if it is another: PyTorch's current one, or the one that the array names, as Numba's do, and
those with an entry ``stream`` in their interface (CuPy). The default stream is waited for before an answer is given
back, so that any stream may read it.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .. import parts

cuda: Any = None
libdevice: Any = None
types: Any = None
#: Why there is no ``numba.cuda``, if there is none.
REASON = ""
if importlib.util.find_spec("numba_cuda") is None:
    REASON = "the package numba-cuda is not installed"
else:
    try:
        from numba import cuda
        from numba.cuda import libdevice, types
        from numba.cuda.core import config

        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a small problem is no fault of its caller's
    except Exception as error:  # no toolkit, wrong NumPy, broken driver: all end here
        cuda, REASON = None, f"numba-cuda cannot be imported: {error}"

#: Whether kernels run in Numba's simulator.
SIMULATED = cuda is not None and os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")
#: Digests of what kernels are made from: an edit compiles anew.
SOURCES = parts.SOURCES, parts.digest(*sorted(Path(__file__).parent.glob("*.py")))
#: DLPack's number for memory of an NVIDIA card.
DLPACK_CUDA = 2


class DeviceError(RuntimeError):
    """There is no card to compute on, or nothing that can talk to it."""


def is_available() -> bool:
    """Whether kernels can run: numba-cuda is there, and a card (or the simulator)."""
    return cuda is not None and (SIMULATED or bool(cuda.is_available()))


def require() -> None:
    """Refuse to go on without a card.

    Raises
    ------
    DeviceError
        Naming ``device``, what is missing and what to install.
    """
    if cuda is None:
        raise DeviceError(f"device='cuda' is not available: {REASON}; pip install \"locbook[cuda]\"")
    if not is_available():
        reason = str(cuda.cuda_error() or "no card was found").strip().splitlines()[0].rstrip(".")
        raise DeviceError(
            f"device='cuda' is not available: {reason}; it needs an NVIDIA card and its driver, else use device='cpu'"
        )


# -- decorators ------------------------------------------------------------------------------------------------------


def kernel(function: Callable) -> Any:
    """A kernel: what is launched on a grid. No fast-math: NaN, infinity and the order of sums keep their meaning.

    It is kept on disk, where Numba keeps what it compiles for the processor. The key holds all that a kernel closes
    over, pickled, hence the functions that it calls, a user's too; and here the sources of the engine.
    """
    if SIMULATED:
        return cuda.jit(function)
    try:
        made = cuda.jit(function, cache=True)
        made._cache._cache_file._source_stamp = made._cache._cache_file._source_stamp, *SOURCES
    except (RuntimeError, AttributeError):  # no folder to write to; another version of numba-cuda
        return cuda.jit(function)
    return made


def device(function: Callable) -> Any:
    """A function that kernels call, always inlined, by the compiler of the card; the simulator takes it as it is."""
    return function if SIMULATED else cuda.jit(device=True, forceinline=True)(function)


def type_of(T: type) -> Any:
    """Numba's type of a float, by which a kernel asks for an array of its own."""
    return types.float32 if T is np.float32 else types.float64


def trigonometry(T: type) -> tuple[Callable, Callable]:
    """``sin(pi x)`` and ``cos(pi x)``.

    ``math.cos`` reduces huge arguments with an array on the stack, in float64; these two need neither.
    """
    if SIMULATED:
        return (lambda x: math.sin(math.pi * x)), (lambda x: math.cos(math.pi * x))
    if T is np.float32:
        return libdevice.sinpif, libdevice.cospif
    return libdevice.sinpi, libdevice.cospi


def nearest_whole(T: type) -> Callable:
    """The nearest whole number, the even one of two."""
    if SIMULATED:
        return np.rint
    return libdevice.rintf if T is np.float32 else libdevice.rint


# -- arrays ----------------------------------------------------------------------------------------------------------


def kind_of(array: Any) -> str:
    """``"torch"``, ``"cupy"`` or ``"numba"`` for an array on a card, ``"numpy"`` for all else."""
    package = type(array).__module__.partition(".")[0]
    if package == "torch":
        return "torch" if getattr(array, "is_cuda", False) else "numpy"
    if package == "numba":
        return "numba"
    if hasattr(array, "__cuda_array_interface__"):
        return "cupy" if package == "cupy" else "numba"
    device_of = getattr(array, "__dlpack_device__", None)
    if package != "numpy" and device_of is not None and device_of()[0] == DLPACK_CUDA:
        return "cupy" if "cupy" in sys.modules else "torch"
    return "numpy"


def on_card(*arrays: Any) -> str:
    """The kind of the first array that lives on a card; ``"numpy"`` if none does."""
    return next((kind for kind in map(kind_of, arrays) if kind != "numpy"), "numpy")


def as_device(array: Any) -> Any:
    """The array as Numba's device array, sharing its memory; one that lives on the host is copied to the card."""
    kind = kind_of(array)
    if kind == "numpy":
        array = np.ascontiguousarray(array)
        # a kernel needs a pointer even to nothing
        return cuda.to_device(array if array.size else np.zeros((1,) * array.ndim, array.dtype))
    if type(array).__module__.startswith("numba."):
        if not getattr(array, "stream", 0):
            return array
        array.stream.synchronize()
        return array.bind()
    if kind == "torch":
        array = array.detach()
        stream = sys.modules[kind].cuda.current_stream(array.device)
        if stream.cuda_stream:  # 0 is the default
            stream.synchronize()
    if not hasattr(type(array), "__cuda_array_interface__"):
        array = sys.modules[kind].from_dlpack(array)
    return cuda.as_cuda_array(array).bind()  # after the stream that the interface names


def to_host(array: Any) -> np.ndarray:
    """A NumPy array; copied if it lives on the card."""
    return np.asarray(array) if kind_of(array) == "numpy" else as_device(array).copy_to_host()


def all_single(*arrays: Any) -> bool:
    """Whether all are float32."""
    return all((np.asarray(a) if kind_of(a) == "numpy" else as_device(a)).dtype == np.float32 for a in arrays)


def give_back(array: Any, kind: str) -> Any:
    """A device array in the caller's kind, sharing its memory; for ``"numpy"``, copied to the host."""
    if kind == "numpy":
        return array if isinstance(array, np.ndarray) else array.copy_to_host()
    if isinstance(array, np.ndarray):
        array = cuda.to_device(np.ascontiguousarray(array))
    cuda.default_stream().synchronize()
    if kind == "numba":
        return array
    module = importlib.import_module(kind)
    return module.as_tensor(array, device="cuda") if kind == "torch" else module.asarray(array)
