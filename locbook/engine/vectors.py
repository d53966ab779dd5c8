"""Explicit vectors: the few instructions that the inner kernels are written in.

LLVM turns a plain Numba loop into vectors by itself where it can prove that it may; what it does not do is to keep a
block of sums in registers while it walks the columns of a tile. The kernels in :mod:`~locbook.engine.scores`,
:mod:`~locbook.engine.fused` and :mod:`~locbook.engine.values` say this by hand. They are written with the class
:class:`Vectors`: a value of type "W numbers side by side", with load, store, multiply-add, maximum, power of two.
Nothing here is specific to a processor but :data:`VECTOR_BYTES` and what follows from it.

**Words.** A *register* is one of 16 or 32 places in the processor where numbers are while it computes with them. Here
it holds a *vector*, W numbers side by side (8 of float64 in 64 bytes), and one instruction does the same to all. A
*lane* is one of these W places. With 64 samples a panel and W = 8, lane 1 of a sum has met the samples 1, 9, 17, ...;
only at the very end are the lanes added up.

**How to read a kernel.** Numba turns a function into instructions for LLVM, its compiler. An ``@intrinsic`` writes them
by hand: it names the types of its arguments and its answer, and its ``generate`` is called *once, while the caller is
compiled*. In there a variable is no number but the name of one that will be there when the code runs; instructions
are appended to ``builder``, one or a handful by each method of :class:`Vectors`. So

- Python's ``for`` and ``if`` choose what is written: ``for i in range(ROWS)`` writes its body four times;
- ``with v.loop(n) as p`` writes a loop that is run, its body once;
- ``x.at(i, j)`` is ``&x[i, j]``, the address of a number, and ``v.load`` of it is ``x[i, j : j + W]``, ``v.broadcast``
  of it W times ``x[i, j]``; ``builder.load`` of it is the one number ``x[i, j]``; ``x.shape[0]`` too is a number of
  the run;
- ``v.set(s, v.add(v.get(s), a))`` is ``s += a``: a value never changes, a variable does;
- ``builder.select(c, a, b)`` is ``np.where(c, a, b)``, ``fcmp_ordered(">", a, b)`` is ``a > b``, False for NaN;
- ``v.integer(3)`` makes a number of the run of a Python number; the first index of ``at`` must be such a one;
- numbers that are constants of the caller (``prefer_literal``) are known while it is compiled: ``literal_value``;
- every intrinsic gives something back: where there is nothing to give it is ``get_dummy_value``.

In the methods themselves ``alloca`` makes room for a variable, ``gep`` goes from a pointer to the one so many numbers
further on, ``bitcast`` takes the same bits for another type, ``shuffle_vector`` picks lanes of two vectors, and
``shl``, ``zext`` and ``cttz`` shift, widen and count the zeros at the end of an integer. A name ``llvm.fma.v8f64`` is
an instruction of LLVM for 8 numbers of 64 bits.

Read the plain twin of a kernel first (it stands above it), then the kernel.

Vectors are used where the processor has fused multiply-add and vectors of 32 bytes or more, unless the environment says
``LOCBOOK_VECTORS=0``; elsewhere the loops of :mod:`~locbook.engine.program` and :mod:`~locbook.engine.sweep` do all.
Both give the same answers, up to rounding. The NumPy twins are for reading and for tests.
"""

from __future__ import annotations

import os

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

INT, INT32 = ir.IntType(64), ir.IntType(32)


def _features() -> set[str]:
    """Features that Numba compiles for: the host's, unless the environment names another processor."""
    if numba.config.CPU_NAME or numba.config.CPU_FEATURES:
        named = numba.config.CPU_FEATURES or ""
        return {name[1:] for name in named.split(",") if name.startswith("+")}
    return {name for name, present in llvm.get_host_cpu_features().items() if present}


def _vector_bytes() -> int:
    """Bytes of a vector to use, 0 for the plain path."""
    if os.environ.get("LOCBOOK_VECTORS", "1") == "0":
        return 0
    features = _features()
    if "fma" not in features:
        return 0
    return 64 if {"avx512f", "avx512vl", "avx512dq"} <= features else 32 if "avx2" in features else 0


#: Bytes of a vector: 64 (AVX-512), 32 (AVX2), or 0 for the plain path.
VECTOR_BYTES = _vector_bytes()
#: Whether the vector kernels are used.
ENABLED = VECTOR_BYTES > 0
#: Sums that a kernel keeps for each query: one for each vector of samples (scores), column of values, or vector of
#: columns (values). For four queries these are 16 of 32 registers, or 8 of 16.
COLUMN_VECTORS = 4 if VECTOR_BYTES == 64 else 2
#: Queries that a kernel works on at once; with 64 bytes a vector six where no score is computed.
ROWS, VALUE_ROWS = 4, 6 if VECTOR_BYTES == 64 else 4


class Array:
    """A contiguous array of the calling function: its shape, and pointers to its numbers."""

    def __init__(self, vectors: Vectors, array_type, array):
        fields = cgutils.create_struct_proxy(array_type)(vectors.context, vectors.builder, value=array)
        self.vectors, self.data = vectors, fields.data
        self.shape = cgutils.unpack_tuple(vectors.builder, fields.shape, array_type.ndim)

    def at(self, *indices):
        """Pointer to the number at these indices, one for each axis."""
        v = self.vectors
        offset = indices[0]
        for index, length in zip(indices[1:], self.shape[1:], strict=True):
            offset = v.plus(v.times(offset, length), index)
        return v.builder.gep(self.data, [INT(offset) if isinstance(offset, int) else offset])


class Vectors:
    """Vectors of one float type in the function that ``builder`` writes."""

    def __init__(self, context, builder, dtype):
        self.context, self.builder = context, builder
        self.scalar = context.get_value_type(dtype)
        self.size = dtype.bitwidth // 8
        self.lanes = VECTOR_BYTES // self.size
        self.type = ir.VectorType(self.scalar, self.lanes)
        # without it LLVM splits vectors of 64 bytes into two of 32
        if VECTOR_BYTES == 64:
            set.add(builder.function.attributes, '"prefer-vector-width"="512"')

    # -- integers and places -----------------------------------------------------------------------------------------

    def arguments(self, sig, numbers) -> list:
        """The arguments of an intrinsic: an :class:`Array` for each array, the number itself for all else."""
        return [
            Array(self, kind, number) if isinstance(kind, types.Array) else number
            for kind, number in zip(sig.args, numbers, strict=True)
        ]

    def integer(self, number: int):
        return INT(number)

    def plus(self, a, b):
        return (
            a if isinstance(b, int) and b == 0 else self.builder.add(a, INT(b) if isinstance(b, int) else b)
        )

    def times(self, a, b):
        return self.builder.mul(a, INT(b) if isinstance(b, int) else b)

    # -- vectors -----------------------------------------------------------------------------------------------------

    def _intrinsic(self, name: str, *arguments):
        kind = ir.FunctionType(self.type, [self.type] * len(arguments))
        suffix = f"v{self.lanes}f{8 * self.size}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.{name}.{suffix}")
        return self.builder.call(function, arguments)

    def constant(self, number: float):
        return ir.Constant(self.type, [number] * self.lanes)

    def load(self, pointer):
        return self.builder.load(self.builder.bitcast(pointer, self.type.as_pointer()), align=self.size)

    def store(self, vector, pointer):
        self.builder.store(vector, self.builder.bitcast(pointer, self.type.as_pointer()), align=self.size)

    def broadcast(self, pointer):
        """The number at ``pointer`` in every lane."""
        one = self.builder.insert_element(
            ir.Constant(self.type, ir.Undefined), self.builder.load(pointer), INT32(0)
        )
        lanes = ir.Constant(ir.VectorType(INT32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(one, ir.Constant(self.type, ir.Undefined), lanes)

    def truths(self, pointer):
        """W truth values, a byte each."""
        bytes_ = ir.VectorType(ir.IntType(8), self.lanes)
        found = self.builder.load(self.builder.bitcast(pointer, bytes_.as_pointer()), align=1)
        return self.builder.icmp_unsigned("!=", found, ir.Constant(bytes_, [0] * self.lanes))

    def add(self, a, b):
        return self.builder.fadd(a, b)

    def subtract(self, a, b):
        return self.builder.fsub(a, b)

    def multiply(self, a, b):
        return self.builder.fmul(a, b)

    def root(self, a):
        return self._intrinsic("sqrt", a)

    def multiply_add(self, a, b, c):
        """A b + c, rounded once."""
        return self._intrinsic("fma", a, b, c)

    def maximum(self, a, b):
        """The larger of a and b; b where a is NaN."""
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def variables(self, *shape: int, start: float = 0.0):
        """Nested lists of vectors that change in loops, set to ``start`` here; LLVM keeps them in registers."""
        if shape:
            return [self.variables(*shape[1:], start=start) for _ in range(shape[0])]
        return cgutils.alloca_once_value(self.builder, self.constant(start))

    def get(self, variable):
        return self.builder.load(variable)

    def set(self, variable, vector):
        self.builder.store(vector, variable)

    def total(self, vector):
        """The sum of the lanes, pair by pair."""
        lanes = self.lanes
        while lanes > 1:
            lanes //= 2
            order = ir.Constant(ir.VectorType(INT32, lanes), list(range(lanes, 2 * lanes)))
            low = ir.Constant(ir.VectorType(INT32, lanes), list(range(lanes)))
            undefined = ir.Constant(vector.type, ir.Undefined)
            halves = [self.builder.shuffle_vector(vector, undefined, some) for some in (low, order)]
            vector = self.builder.fadd(*halves)
        return self.builder.extract_element(vector, INT32(0))

    def bits(self, condition):
        """A vector of truth values as an integer, one bit a lane."""
        return self.builder.zext(self.builder.bitcast(condition, ir.IntType(self.lanes)), INT)

    def loop(self, count):
        """``with vectors.loop(count) as k:``, k a number of type int64."""
        return _Loop(self.builder, count)

    def exp2(self, t):
        """2^t, 0 below the smallest power (:data:`~locbook.engine.exponential.POWERS`); wrong beyond the floats."""
        from .exponential import POWERS

        powers, builder = POWERS[self.size], self.builder
        integer = ir.IntType(8 * self.size)
        integers = ir.VectorType(integer, self.lanes)
        # A number this large has no digits after the point: adding it rounds t to k, and k stands in its last bits.
        rounded = builder.fadd(t, self.constant(powers.rounder))
        rest = builder.fsub(t, builder.fsub(rounded, self.constant(powers.rounder)))
        value = self.constant(powers.coefficients[-1])  # 2^rest, by Horner's rule
        for coefficient in powers.coefficients[-2::-1]:
            value = self.multiply_add(value, rest, self.constant(coefficient))
        # Read as an integer, a float has its exponent above the mantissa: k is shifted there, which pushes out all bits
        # above k, and added. That multiplies by 2^k.
        shift = ir.Constant(integers, [powers.mantissa_bits] * self.lanes)
        exponent = builder.shl(builder.bitcast(rounded, integers), shift)
        value = builder.bitcast(builder.add(builder.bitcast(value, integers), exponent), self.type)
        return builder.select(
            builder.fcmp_ordered(">=", t, self.constant(powers.smallest)), value, self.constant(0.0)
        )


class _Loop:
    def __init__(self, builder, count):
        self.manager = cgutils.for_range(builder, INT(count) if isinstance(count, int) else count)

    def __enter__(self):
        return self.manager.__enter__().index

    def __exit__(self, *error):
        return self.manager.__exit__(*error)


@intrinsic
def multiply_add(typing_context, a, b, c):
    """A b + c of single numbers, rounded once, as the vectors do it."""

    def generate(context, builder, sig, numbers):
        kind = ir.FunctionType(numbers[0].type, [numbers[0].type] * 3)
        name = f"llvm.fma.f{sig.return_type.bitwidth}"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), numbers)

    return a(a, a, a), generate


@intrinsic
def lowest_bit(typing_context, mask):
    """Number of the lowest bit that is set in an int64; 64 if there is none."""

    def generate(context, builder, sig, numbers):
        return builder.cttz(numbers[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@intrinsic
def _largest(typing_context, row, n):
    def generate(context, builder, sig, numbers):
        v = Vectors(context, builder, row.dtype)
        line, count = v.arguments(sig, numbers)
        top = v.variables(4, start=-np.inf)
        with v.loop(builder.sdiv(count, INT(4 * v.lanes))) as k:
            for i, one in enumerate(top):
                place = line.at(v.plus(v.times(k, 4 * v.lanes), i * v.lanes))
                v.set(one, v.maximum(v.load(place), v.get(one)))
        largest = v.get(top[0])
        for one in top[1:]:
            largest = v.maximum(largest, v.get(one))
        answer = ir.Constant(v.scalar, -np.inf)
        for lane in range(v.lanes):
            one = builder.extract_element(largest, INT32(lane))
            answer = builder.select(builder.fcmp_ordered(">", one, answer), one, answer)
        return answer

    return row.dtype(row, types.intp), generate


def _largest_plain(row, n):
    top = -np.inf
    for j in range(n):
        if row[j] > top:
            top = row[j]
    return top


#: ``largest(row, n)``: the largest of ``row[:n]``, n a multiple of 64; NaN is passed over, -inf where there is nothing.
largest = _largest if ENABLED else njit(error_model="numpy")(_largest_plain)


def whole_rows(queries: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
    """A contiguous copy of the queries, the last one repeated to a multiple of ROWS: computed, and never read."""
    whole = np.empty((-(-len(queries) // ROWS) * ROWS, *queries.shape[1:]), dtype or queries.dtype)
    whole[: len(queries)], whole[len(queries) :] = queries, queries[-1:]
    return whole
