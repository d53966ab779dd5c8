"""Panels: samples stored so that a kernel reads what it needs side by side.

A panel holds :data:`PANEL` consecutive samples, transposed: its first line has the first coordinate of all of them,
and so on. Panels follow each other, so a panel of 64 columns lies in 16 or 32 kilobytes of its own and stays in the
first-level cache while one query after another passes by; a whole transposed matrix would spread it over memory.
"""

from __future__ import annotations

import math
from ctypes import addressof, c_char

import numpy as np

#: Samples in a panel.
PANEL = 64
#: Bytes of a line of the cache.
LINE = 64


_place = (c_char * 0).from_buffer


def place_of(array: np.ndarray) -> int:
    """Where its numbers are: ``array.ctypes.data``, in a quarter of the time where the array is writeable."""
    return addressof(_place(array)) if array.flags.writeable else array.ctypes.data


def empty(shape: tuple[int, ...], dtype: type | np.dtype = np.float64) -> np.ndarray:
    """Room that begins where a line of the cache does, so that no vector lies in two lines."""
    size, each = math.prod(shape), np.dtype(dtype).itemsize
    room = np.empty(size + LINE // each, dtype)
    start = -place_of(room) % LINE // each
    return room[start : start + size].reshape(shape)


def zeros(shape: tuple[int, ...], dtype: type | np.dtype = np.float64) -> np.ndarray:
    """The same, filled with 0."""
    room = empty(shape, dtype)
    room[...] = 0
    return room


def pack(rows: np.ndarray, dtype: np.dtype, fill: float | None = None) -> np.ndarray:
    """Rows (n, d) as panels, shape (ceil(n / PANEL), d, PANEL), contiguous.

    The last panel ends with ``fill``, or with its last row again and again.
    """
    n, d = rows.shape
    panels = empty((-(-n // PANEL), d, PANEL), dtype)
    whole = n // PANEL
    panels[:whole] = rows[: whole * PANEL].reshape(whole, PANEL, d).transpose(0, 2, 1)
    if n % PANEL:
        panels[whole, :, : n % PANEL] = rows[whole * PANEL :].T
        panels[whole, :, n % PANEL :] = rows[-1][:, None] if fill is None else fill
    return panels


def pack_rows(rows: np.ndarray, dtype: np.dtype, lanes: int) -> np.ndarray:
    """Rows (n, p) as panels that are not transposed, shape (ceil(n / PANEL), PANEL, p to the next of ``lanes``)."""
    n, p = rows.shape
    panels = zeros((-(-n // PANEL), PANEL, -(-p // lanes) * lanes), dtype)
    panels.reshape(-1, panels.shape[2])[:n, :p] = rows
    return panels


def unpack(panels: np.ndarray, n: int) -> np.ndarray:
    """The rows again, shape (n, d)."""
    return panels.transpose(0, 2, 1).reshape(-1, panels.shape[1])[:n]
