"""A user's own profile or distance inside the engine, at the engine's speed.

The scalar function is compiled alone into a *row* function with a fixed machine signature, and the engine, compiled
long before, calls it by address once for each row of a tile. So a new function costs its own compilation and
nothing else, and its weights are checked where they are made: a row function returns how many are good. Where the
scalar function raises an exception, Numba prints it and returns 0: no weight is good, and the engine refuses them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import carray, cfunc, njit, types
from numba.core import cgutils
from numba.core.errors import NumbaError
from numba.extending import intrinsic

_DOUBLE, _INT = ir.DoubleType(), ir.IntType(64)
_PROFILE_ROW = types.int64(types.CPointer(types.float64), types.intp)
_METRIC_ROW = types.int64(
    types.CPointer(types.float64),
    types.CPointer(types.float64),
    types.intp,
    types.CPointer(types.int64),
    types.intp,
    types.intp,
    types.CPointer(types.float64),
)


def _data(context, builder, array_type, value):
    return cgutils.create_struct_proxy(array_type)(context, builder, value=value).data


@intrinsic
def call_profile(typing_context, address, row, n):
    """Call the profile's row function at ``address`` on ``row[:n]``, in place; returns the count of good weights."""
    signature = types.int64(types.int64, row, types.int64)

    def generate(context, builder, sig, arguments):
        function = ir.FunctionType(_INT, [_DOUBLE.as_pointer(), _INT])
        pointer = builder.inttoptr(arguments[0], function.as_pointer())
        return builder.call(pointer, [_data(context, builder, sig.args[1], arguments[1]), arguments[2]])

    return signature, generate


@intrinsic
def call_metric(typing_context, address, q, tile, stride, columns, count, n, out):
    """Call the metric's row function at ``address``; returns the count of good distances."""
    signature = types.int64(types.int64, q, tile, types.int64, columns, types.int64, types.int64, out)

    def generate(context, builder, sig, arguments):
        double, integer = _DOUBLE.as_pointer(), _INT.as_pointer()
        function = ir.FunctionType(_INT, [double, double, _INT, integer, _INT, _INT, double])
        pointer = builder.inttoptr(arguments[0], function.as_pointer())
        data = [_data(context, builder, sig.args[k], arguments[k]) for k in (1, 2, 4, 7)]
        return builder.call(
            pointer, [data[0], data[1], arguments[3], data[2], arguments[5], arguments[6], data[3]]
        )

    return signature, generate


_compiled: dict[tuple[str, object], object] = {}
_lock = threading.Lock()


def _scalar(function: Callable, name: str) -> Callable:
    """The function, jitted without fast-math unless the user jitted it."""
    return function if hasattr(function, "py_func") else njit(error_model="numpy")(function)


def _compile(kind: str, function: Callable, build: Callable[[Callable], object], name: str) -> int:
    """Compile once for each function; the compiled object stays alive, so its address stays valid."""
    with _lock:
        if (kind, function) not in _compiled:
            try:
                _compiled[kind, function] = build(_scalar(function, name))
            except NumbaError as error:
                raise TypeError(
                    f"{name}: Numba cannot compile {getattr(function, '__name__', function)!r}; it must be a scalar "
                    f"function of numbers, with math instead of numpy calls on arrays. Numba says: {error}"
                ) from None
        return _compiled[kind, function].address


def profile_address(function: Callable, *, log: bool) -> int:
    """Address of the row function of a user's profile ``K(s)``, or ``log K(s)``.

    Raises
    ------
    TypeError
        If Numba cannot compile it.
    """

    def build(scalar: Callable) -> object:
        @cfunc(_PROFILE_ROW, error_model="numpy")
        def profile(pointer, n):
            row = carray(pointer, n)
            good = 0
            for j in range(n):
                weight = float(scalar(row[j]))
                # a weight is a number >= 0, its logarithm anything below infinity
                if log:
                    good += 1 if weight < math.inf else 0
                else:
                    good += 1 if 0.0 <= weight < math.inf else 0
                row[j] = weight
            return good

        return profile

    return _compile("log_profile" if log else "profile", function, build, "log_profile" if log else "profile")


def metric_address(function: Callable) -> int:
    """Address of the row function of a user's distance ``d(x, y)`` of two 1-D arrays.

    Raises
    ------
    TypeError
        If Numba cannot compile it.
    """

    def build(scalar: Callable) -> object:
        @cfunc(_METRIC_ROW, error_model="numpy")
        def metric(q_pointer, tile_pointer, stride, columns_pointer, count, n, out_pointer):
            columns = carray(columns_pointer, count)
            q = carray(q_pointer, stride)  # as long as memory allows: only the named columns are read
            tile = carray(tile_pointer, stride * (np.max(columns) + 1))
            out = carray(out_pointer, n)
            x, y = np.empty(count), np.empty(count)
            for c in range(count):
                x[c] = q[columns[c]]
            good = 0
            for j in range(n):
                for c in range(count):
                    y[c] = tile[columns[c] * stride + j]
                distance = float(scalar(x, y))
                good += 1 if 0.0 <= distance < math.inf else 0
                out[j] = distance * distance
            return good

        return metric

    return _compile("metric", function, build, "metric")
