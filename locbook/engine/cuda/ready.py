"""What goes into the sums of a gradient, made and looked at on the card: a few numbers of it come to the host."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..problem import Problem
from . import backend
from .arrays import column_ranges, gather, grid, problems_of, shifted
from .backend import cuda
from .reductions import log_sums_of, mean_or_nan, scales


class Facts(NamedTuple):
    """What the numbers that go into the sums are like.

    Attributes
    ----------
    smallest, largest : float
        Magnitudes of the cotangents; of those that are not 0.
    log_sum : float
        Largest magnitude.
    limit : bool
        Whether some mean is a limit: it has no log-sum, for its weights underflow.
    broken : bool
        Whether a cotangent is NaN, and its query has a mean.
    """

    smallest: float
    largest: float
    log_sum: float
    limit: bool
    broken: bool


class Ready(NamedTuple):
    """What goes into the sums, on the card.

    Attributes
    ----------
    values, means : arrays, shapes (n, p) and (m, p)
        In the precision of the problem; in float32 around a middle of the values.
    cotangent : array of float64, shape (m, p)
        0 for a query that has no mean.
    log_sums : array of float64, shape (m, 1)
        ``inf`` for a query that has none.
    each : array of float64, shape (m, 5)
        :class:`Facts` of each query.
    facts : Facts
        Of all.
    """

    values: Any
    means: Any
    cotangent: Any
    log_sums: Any
    each: Any
    facts: Facts

    def queries_of(self, fact: str) -> np.ndarray:
        """The rows of the queries of which it is true."""
        column = np.array([Facts._fields.index(fact)])
        return np.flatnonzero(gather(self.each, column, np.float64).copy_to_host())


@lru_cache
def ready_kernel() -> Any:
    """Cotangents, log-sums and facts of each query; ``everywhere``: a mean without a weight is a limit, else none."""
    infinity = math.inf

    @backend.kernel
    def ready(means, log_sums, cotangent, everywhere, owed, totals, each):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < log_sums.size:
            alone = log_sums[i] == -infinity
            known = everywhere or not alone
            for c in range(means.shape[1]):
                known = known and means[i, c] == means[i, c]
            smallest, largest, broken = infinity, 0.0, 0.0
            for c in range(means.shape[1]):
                value = 0.0
                if known:
                    value = cotangent[i, c]
                owed[i, c] = value
                if value != value:
                    broken = 1.0
                elif value != 0.0:
                    smallest, largest = min(smallest, abs(value)), max(largest, abs(value))
            totals[i, 0] = infinity if alone else log_sums[i]
            each[i, 0], each[i, 1], each[i, 2] = smallest, largest, 0.0 if alone else abs(log_sums[i])
            each[i, 3] = 1.0 if alone and known else 0.0
            each[i, 4] = broken

    return ready


def make_ready(
    problem: Problem, values: Any, cotangent: Any, forward: tuple[Any, Any] | None, sizes: dict[str, int]
) -> Ready:
    """Values, means and log-sums in the precision of the problem; computed where ``forward`` does not give them."""
    T, (m, p) = problem.dtype.type, (len(problem.queries), values.shape[1])
    columns, middle = gather(values, np.arange(p), T), np.zeros((problems_of(problem), p))
    if T is np.float32:
        *_, unit, middle = scales(problem, columns)
        middle *= unit
        columns = shifted(columns, np.ones(middle.shape), middle, T)
    if forward is None:
        means, log_sums = mean_or_nan(problem, columns, sizes), log_sums_of(problem, sizes)
    else:
        means, log_sums = map(backend.as_device, forward)
        means = shifted(means, np.ones(middle.shape), middle, T)
    owed, totals, each = (cuda.device_array((m, size), np.float64) for size in (p, 1, len(Facts._fields)))
    everywhere = problem.kernel.full_support and problem.mask is None
    ready_kernel()[grid(m)](means, log_sums, backend.as_device(cotangent), everywhere, owed, totals, each)
    low, high = column_ranges(each, totals.reshape(m), -np.inf, 1)
    return Ready(columns, means, owed, totals, each, Facts(low[0, 0], *high[0, 1:3], *(high[0, 3:] > 0)))
