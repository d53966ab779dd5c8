"""Records: many arrays that compiled code gets as one number, the place where they are written down.

Numba passes an array as seven numbers and more, so a function of thirty arrays has hundreds of arguments, and most of
the time to compile it goes into these. A *record* is a NamedTuple of arrays, integers and other records, of which
:func:`write` writes down where each array is, and its shape, in words of 8 bytes; :func:`run` writes and calls a part.
The words of ``Record((x, n, (y, k), rule))``, x and y of two axes and one, rule a record of its own::

    place -> x.data  x.shape[0]  x.shape[1]  n  y.data  y.shape[0]  k  rule's place

A part that gets the place reads a field where it names it, as ``record.field``, and hands the place on: ``record.n`` is
one load from ``place + 24``. Strides are not written, as arrays are contiguous. Fields cannot be set, but what is in
the arrays can.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import addressof, c_int64
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model
from numba.np import arrayobj, numpy_support

from .panels import place_of
from .parts import call, jit
from .vectors import INT

WORD = 8


class Record(types.Type):
    """Numba's type of a record.

    ``kind`` is Numba's type of a named tuple of the same fields: contiguous arrays, integers, named tuples of these,
    whose words stand among the others, and records, of which one word does, the place (0 for None). What
    :func:`write` gave is the value of such a field.
    """

    def __init__(self, kind: types.NamedTuple) -> None:
        self.kind, self.layout = kind, tuple(_layout(kind))
        super().__init__(name=f"{kind.instance_class.__name__}({','.join(map(_code, kind.types))})")


def _code(kind: types.Type) -> str:
    if isinstance(kind, types.BaseTuple):
        return f"({','.join(map(_code, kind.types))})"
    return f"{kind.dtype}{kind.ndim}" if isinstance(kind, types.Array) else str(kind)


# When the code runs a record is one int64, its place.
register_model(Record)(lambda manager, kind: models.PrimitiveModel(manager, kind, INT))


def _size(kind: types.Type) -> int:
    """How many words a field takes."""
    if isinstance(kind, types.BaseTuple):
        return sum(map(_size, kind.types))
    return 1 + kind.ndim if isinstance(kind, types.Array) else 1


# Numba asks twice about ``record.field``: here for its type, in ``_field`` for the instructions that read it.
@infer_getattr
class _Fields(AttributeTemplate):
    key = Record

    def generic_resolve(self, record: Record, name: str) -> types.Type | None:
        if name not in record.kind.fields:
            return None
        kind = record.kind.types[record.kind.fields.index(name)]
        return Record(kind) if isinstance(kind, types.BaseTuple) else kind


@lower_getattr_generic(Record)
def _field(context, builder, record, place, name):
    number = record.kind.fields.index(name)
    kind = record.kind.types[number]
    start = builder.add(place, INT(WORD * sum(map(_size, record.kind.types[:number]))))
    return start if isinstance(kind, types.BaseTuple) else _read(context, builder, kind, start)


def _read(context, builder, kind, place):
    """What is written at a place."""

    def word(number, kind=INT):
        at = builder.add(place, INT(WORD * number))
        return builder.load(builder.inttoptr(at, kind.as_pointer()))

    if isinstance(kind, types.BaseTuple):
        starts = np.cumsum([0, *map(_size, kind.types)])
        places = [builder.add(place, INT(WORD * int(start))) for start in starts[:-1]]
        fields = [_read(context, builder, *one) for one in zip(kind.types, places, strict=True)]
        return context.make_tuple(builder, kind, fields)
    if isinstance(kind, Record):
        return word(0)
    if not isinstance(kind, types.Array):
        return context.cast(builder, word(0), types.int64, kind)
    array = arrayobj.make_array(kind)(context, builder)
    each = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape, strides = [word(1 + axis) for axis in range(kind.ndim)], [INT(each)]
    for length in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    arrayobj.populate_array(
        array, data=word(0, array.data.type), shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides), itemsize=INT(each), meminfo=None,
    )  # fmt: skip
    return array._getvalue()


@intrinsic
def whole(typing_context, record):
    """The named tuple that a record holds, for a function that wants one."""

    def generate(context, builder, sig, values):
        return _read(context, builder, sig.args[0].kind, values[0])

    return record.kind(record), generate


def _layout(kind: types.Type) -> Iterator[tuple[np.dtype, int] | Record | None]:
    """Type and number of axes of each array, the record of a place, None for an integer."""
    for one in kind.types:
        if isinstance(one, types.BaseTuple):
            yield from _layout(one)
        elif isinstance(one, types.Array):
            yield numpy_support.as_dtype(one.dtype), one.ndim
        else:
            yield one if isinstance(one, Record) else None


def _flat(fields: tuple) -> list[Any]:
    flat = []
    for value in fields:
        if isinstance(value, tuple):
            flat += _flat(value)
        else:
            flat.append(value)
    return flat


class Written:
    """A record that is written down, and kept as long as this is."""

    def __init__(self, record: Record, words: list[int], fields: tuple):
        self.record, self.fields, self.words = record, fields, (c_int64 * len(words))(*words)
        self.place = addressof(self.words)


def write(record: Record, fields: tuple) -> Written:
    """Write down the fields of a record.

    Raises
    ------
    TypeError
        If an array is not of the record's type, or not contiguous.
    """
    words: list[int] = []
    for known, value in zip(record.layout, _flat(fields), strict=True):
        if type(known) is tuple:
            flags = value.flags
            if value.ndim != known[1] or value.dtype != known[0] or not flags.c_contiguous:
                raise TypeError(
                    f"a record wants {known[1]} axes of {known[0]}, not {value.dtype} of shape {value.shape}"
                )
            words.append(place_of(value))
            words += value.shape
        elif known is None:
            words.append(int(value))
        else:
            if value is not None and value.record != known:
                raise TypeError(f"a record wants {known} here, not {value.record}")
            words.append(0 if value is None else value.place)
    return Written(record, words, fields)


@jit(allocates=False)
def _run(part, place):
    # an int64 for a part whose argument is a record: the same at run time
    return call(part, place)


def run(part: int, record: Record, fields: tuple) -> int:
    """Call a part of one argument, a record, with these fields; returns its int64."""
    written = write(record, fields)  # named, so that it lives until the part is done
    return _run(part, written.place)
