"""One piece of work: its arrays, how locbook and its peers do it, what it must cost and what ratio is aimed at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace as Data
from typing import Any

import numpy as np

#: |answer - reference| <= bound * (range of the reference), by dtype: what SDPA keeps in float32 is enough there.
BOUND = {"float32": 1e-4, "float64": 1e-10}


class AbsentError(ImportError):
    """A peer that is installed in part: what it lacks."""


@dataclass(frozen=True)
class Cost:
    """What the answer needs, however it is computed.

    Attributes
    ----------
    flops : float
        Additions and multiplications, without those inside the exponentials.
    exponentials : float
    bytes : float
        Inputs read once and the answer written once.
    instructions : float or None
        Arithmetic instructions for one number each, a multiply-add being one; without the exponentials.
    """

    flops: float
    exponentials: float
    bytes: float
    instructions: float | None = None


@dataclass(frozen=True)
class Peer:
    """Who else does the work.

    Attributes
    ----------
    name : str
        Begins with the module that must be installed.
    run : callable
        From the arrays to the answer, as NumPy arrays; ``data.threads`` is for those that want to be told.
    target : float or None
        The peer's time over locbook's that is aimed at; None: for information.
    note : str
        In which of its forms the peer runs.
    """

    name: str
    run: Callable[[Data], Any]
    target: float | None = None
    note: str = ""

    @property
    def package(self) -> str:
        return self.name.split(".")[0]


def range_error(answer: Any, reference: np.ndarray) -> float:
    """Largest error over the range of the reference; inf for another shape or NaN."""
    answer = np.asarray(answer, dtype=np.float64)
    if answer.shape != reference.shape:
        return np.inf
    error = float(np.abs(answer - reference).max() / (np.ptp(reference) or 1.0))
    return np.inf if np.isnan(error) else error


@dataclass(frozen=True)
class Case:
    """A piece of work; with each of its peers it is a row of the table.

    Attributes
    ----------
    family, work : str
    n, m : int
        Samples and queries; ``--quick`` takes a quarter of each.
    d, p : int or None
        Columns of samples and values.
    dtype : str
        Of all arrays, on both sides.
    make : callable
        ``make(rng, n, m)`` gives the arrays.
    ours : callable
        From the arrays to the answer.
    reference : callable
        The same, in float64 and in the plainest way.
    peers : tuple of Peer
    cost : callable or None
        ``cost(n, m)`` gives a :class:`Cost`.
    error : callable
        ``error(answer, reference)``.
    bound : float or None
        Largest error at which answers agree; None takes :data:`BOUND`.
    """

    family: str
    work: str
    n: int
    m: int
    d: int | None
    p: int | None
    dtype: str
    make: Callable[[np.random.Generator, int, int], Data]
    ours: Callable[[Data], Any]
    reference: Callable[[Data], Any]
    peers: tuple[Peer, ...]
    cost: Callable[[int, int], Cost] | None = None
    error: Callable[[Any, Any], float] = range_error
    bound: float | None = None

    def name(self, peer: Peer) -> str:
        """By which ``--only`` finds the row."""
        columns = "" if self.d is None else f" d={self.d} p={self.p}"
        return f"{self.family}: {self.work}{columns} {self.dtype}, {peer.name} {peer.note}".strip()

    def data(self, n: int, m: int, seed: int = 0) -> Data:
        """The arrays, floating ones in the row's dtype and in C order."""
        made = self.make(np.random.default_rng(seed), n, m)
        return Data(**{name: self._cast(value) for name, value in vars(made).items()})

    def _cast(self, value: Any) -> Any:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            return np.ascontiguousarray(value, dtype=self.dtype)
        return value


def by_block(answer: Callable[[np.ndarray], np.ndarray], queries: np.ndarray, size: int = 500) -> np.ndarray:
    """``answer`` of each block of queries, in float64: a reference that holds no m x n array."""
    return np.concatenate(
        [answer(queries[k : k + size].astype(np.float64)) for k in range(0, len(queries), size)]
    )
