"""Parts: compiled functions that the engine calls by their address.

The engine's loops are compiled once. What differs from kernel to kernel (a distance, a profile, a reduction, a user's
own function) is a *part*: a small jitted function that is compiled, or loaded from Numba's disk cache, when it is first
needed, and called once for a row of samples or for a whole tile. So the first call of a program compiles what it uses
and nothing else, and a user's function is as fast as ours.

Numba has function types for this, but compiles their callers anew for each; here the caller only sees a number.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit, types
from numba.core import cgutils
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from .vectors import VECTOR_BYTES

ONE, TWO, THREE = (types.Array(types.float64, k, "C") for k in (1, 2, 3))
INTEGERS, INTEGER_ROWS = (types.Array(types.int64, k, "C") for k in (1, 2))
#: Arguments of a distance and of a profile (:mod:`locbook.engine.named`).
METRIC_PART = (TWO, types.intp, THREE, types.intp, types.intp, INTEGERS, ONE, ONE, ONE, ONE)
PROFILE_PART = (ONE, types.intp, types.float64, types.float64)
FLOAT32_PROFILE_PART = (types.Array(types.float32, 1, "C"), *PROFILE_PART[1:])
#: Arguments of what accumulates (:func:`locbook.engine.sweep.reduce_address`).
REDUCE_PART = (
    *(TWO, types.intp, types.intp, types.intp, TWO, INTEGERS, THREE, types.intp, types.intp, INTEGERS),
    *(THREE, INTEGERS, INTEGERS, INTEGERS, THREE, THREE, TWO, TWO, INTEGER_ROWS),
)


def array_types(dtype: str) -> list[types.Array]:
    """Numba's types of contiguous arrays of this dtype with one, two and three axes."""
    return [types.Array(getattr(types, dtype), axes, "C") for axes in (1, 2, 3)]


_lock = threading.RLock()


def address(function: Any, *arguments: types.Type) -> int:
    """Address of a jitted function for arguments of these types; compiled on demand, kept alive by ``function``.

    The function must return an int64.
    """
    with _lock:
        return _address(function, arguments)


@cache
def _address(function: Any, arguments: tuple[types.Type, ...]) -> int:
    compiled = function.get_compile_result(types.int64(*arguments))
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def _lent(context, builder, kind, value):
    """An argument whose arrays have no counter of references (``meminfo``): the caller holds them while the part runs.

    Numba would count them up and down at each call, by atomic additions.
    """
    if isinstance(kind, types.Array):
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = zip(kind.types, cgutils.unpack_tuple(builder, value, len(kind.types)), strict=True)
        return context.make_tuple(builder, kind, [_lent(context, builder, *part) for part in parts])
    return value


@intrinsic
def call(typing_context, address, *arguments):
    """Call the part at ``address`` with the arguments; returns its int64. An exception in it is passed on.

    An intrinsic, which writes the instructions of the call (:mod:`locbook.engine.vectors` says how to read one): the
    number becomes a pointer to a function of these types, and Numba's own call follows.
    """
    arguments = tuple(types.unliteral(a) for a in arguments)
    signature = types.int64(types.int64, types.StarArgTuple(arguments))

    def generate(context, builder, sig, values):
        inner = sig.args[1].types
        numbers = [
            _lent(context, builder, *one)
            for one in zip(inner, cgutils.unpack_tuple(builder, values[1], len(inner)), strict=True)
        ]
        kind = context.call_conv.get_function_type(types.int64, inner)
        pointer = builder.inttoptr(values[0], kind.as_pointer())
        status, result = context.call_conv.call_function(builder, pointer, types.int64, inner, numbers)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return signature, generate


def digest(*files: Path) -> str:
    """A digest of the sources, and of the kind of vectors that they are compiled for."""
    found = hashlib.sha256(bytes([VECTOR_BYTES]))
    for file in files:
        found.update(file.read_bytes())
    return found.hexdigest()


_HERE = Path(__file__).parent
#: Of all that machine code of the engine is made from.
SOURCES = digest(*sorted(_HERE.glob("*.py")), *sorted(_HERE.with_name("kernels").glob("*.py")))


def _tied(function: Any) -> Any:
    """Tie the disk cache of a jitted function to all sources of the engine; returns it.

    Numba keys what it caches by the function's own source file alone: after an upgrade of another file, or under
    another ``LOCBOOK_VECTORS``, it would load the old machine code.
    """
    # there is no file where caching is off, and no cache where NUMBA_DISABLE_JIT is on
    file = getattr(getattr(function, "_cache", None), "_cache_file", None)
    if file is not None:
        file._source_stamp = (file._source_stamp, SOURCES)
    return function


def jit(
    function: Callable | None = None, *, allocates: bool = True, cache: bool = True, **options: Any
) -> Any:
    """``numba.njit`` with the options of the engine, for what Python calls.

    What does not allocate (``_nrt`` False) needs no counters of references, which take time to compile; it must return
    no array either. Nothing is called from C, so no wrapper for that is compiled.
    """
    if function is None:
        return lambda function: jit(function, allocates=allocates, cache=cache, **options)
    fixed = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    return _tied(njit(_nrt=allocates, cache=cache, **fixed, **options)(function))


class _OnlyCompiled(CPUDispatcher):
    """Numba would jump to a wrapper that is not there."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"{self.__qualname__} can be called by compiled code only")


def part(function: Callable | None = None, *, allocates: bool = False, **options: Any) -> Any:
    """The same for what only compiled code calls, by its address: a wrapper for Python is half of the compiling."""
    made = jit(function, allocates=allocates, no_cpython_wrapper=True, **options)
    if isinstance(made, CPUDispatcher):
        made.__class__ = _OnlyCompiled
    elif function is None:
        return lambda function: part(function, allocates=allocates, **options)
    return made


def inner(function: Callable | None = None, **options: Any) -> Any:
    """The same for what parts call by name: it becomes code of theirs, and no file of its own in the cache."""
    return part(function, cache=False, **options)
