"""A problem: queries, samples and a kernel, checked once at the border, and what became of them.

Every model builds a :class:`Problem` from its caller's arguments and hands it to the reductions; every answer goes
back through :meth:`Problem.restore`, in the caller's dtype and, for pandas, with the caller's index.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._validation import (
    as_real,
    check_finite,
    check_mask,
    check_same_columns,
    check_sample_weight,
    check_values,
    result_dtype,
)
from ..kernels.base import Kernel, MaskedKernel
from ..kernels.constructors import make_kernel


class Groups(NamedTuple):
    """Problems laid end to end (:mod:`locbook.engine.batch`), each filled up.

    Attributes
    ----------
    lead : tuple of int
        Their axes.
    m, n : int
        Queries and samples of each.
    queries, samples : int
        The same when filled up.
    block : int
        Queries of a block, which divides ``queries``.
    """

    lead: tuple[int, ...]
    m: int
    n: int
    queries: int
    samples: int
    block: int


@dataclass(frozen=True)
class Problem:
    """Checked input of a reduction.

    Attributes
    ----------
    queries, samples : arrays, shapes (m, d) and (n, d)
        As the caller gave them where the type allows: small integers stay small until a block is converted.
    kernel : Kernel
    sample_weight : array, shape (n,), or None
        Multiplicities: weight 2 is the row twice. All 1 when None.
    mask : array of bool, shape (m, n), or None
        True where a sample takes part.
    query_ids : array of int64, shape (m,)
        Row numbers of the queries, by which a hollow kernel knows a sample as itself.
    dtype : dtype
        Of the answer.
    index : pandas index or None
    n_queries : int
        How many queries there were before :meth:`rows` took some: what is given for each query has that length.
    groups : Groups or None
        Where these are several problems: queries meet the samples of their own. The mask then has their axes as well.
    """

    queries: np.ndarray
    samples: np.ndarray
    kernel: Kernel
    sample_weight: np.ndarray | None
    mask: np.ndarray | None
    query_ids: np.ndarray
    dtype: np.dtype
    index: Any = None
    n_queries: int = -1
    groups: Groups | None = None

    def __post_init__(self):
        if self.n_queries < 0:
            object.__setattr__(self, "n_queries", len(self.queries))

    def of_queries(self, array: np.ndarray) -> np.ndarray:
        """The rows of these queries in an array that has one for each of the first problem's queries."""
        whole = np.array_equal(self.query_ids, np.arange(self.n_queries))
        return array if whole else array[self.query_ids]

    @classmethod
    def check(
        cls,
        queries: Any,
        samples: Any,
        kernel: Kernel | str,
        *,
        sample_weight: Any = None,
        mask: Any = None,
    ) -> Problem:
        """Check what a caller gave.

        Raises
        ------
        TypeError, ValueError
            Naming the parameter; see :mod:`locbook._validation`.
        """
        if isinstance(kernel, str):
            kernel = make_kernel(kernel)
        if not isinstance(kernel, Kernel):
            raise TypeError(f"kernel must be a Kernel or a name, got {type(kernel).__name__}")
        index = getattr(queries, "index", None) if hasattr(queries, "iloc") else None
        masked = mask is not None
        same = queries is samples
        samples = as_real(samples, "samples", allow_nan=kernel.allows_nan or masked)
        queries = samples if same else as_real(queries, "queries", allow_nan=kernel.allows_nan)
        if same and not kernel.allows_nan:
            check_finite(queries, "queries")
        check_same_columns(queries, samples)
        mask = check_mask(mask, len(queries), len(samples))
        weights = check_sample_weight(sample_weight, len(samples))
        if masked and not kernel.allows_nan:
            samples = without_hidden_nan(samples, mask, "samples")
        return cls(
            queries,
            samples,
            kernel,
            weights,
            mask,
            np.arange(len(queries)),
            result_dtype(queries, samples),
            index,
        )

    def values(self, values: Any, name: str = "values") -> np.ndarray:
        """Checked values, shape (n,) or (n, p); NaN only in samples that take part nowhere."""
        checked = check_values(values, len(self.samples), name=name, allow_nan=self.mask is not None)
        return checked if self.mask is None else without_hidden_nan(checked, self.mask, name)

    def with_kernel(self, kernel: Kernel) -> Problem:
        """The same problem under another kernel."""
        return replace(self, kernel=kernel)

    def rows(self, rows: np.ndarray, kernel: Kernel) -> Problem:
        """The same problem for some of the queries, under another kernel."""
        mask = None if self.mask is None else self.mask[rows]
        return replace(
            self,
            queries=self.queries[rows],
            mask=mask,
            query_ids=self.query_ids[rows],
            kernel=kernel,
            index=None,
        )

    def restore(self, answer: np.ndarray, values: Any = None, dtype: np.dtype | None = None) -> Any:
        """The answer in the caller's dtype; with the queries' index (and the values' names) where they are pandas.

        An answer that lives on a card is given back as it is.
        """
        if not isinstance(answer, np.ndarray):
            return answer
        answer = answer.astype(self.dtype if dtype is None else dtype, copy=False)
        if self.index is None:
            return answer
        import pandas as pd  # it is there: the queries are pandas

        if answer.ndim == 1:
            return pd.Series(answer, index=self.index, name=getattr(values, "name", None))
        return pd.DataFrame(answer, index=self.index, columns=getattr(values, "columns", None))


def without_hidden_nan(array: np.ndarray, mask: np.ndarray, name: str) -> np.ndarray:
    """Rows that no query may see, with 0 for NaN; NaN in a row that takes part is an error."""
    if array.dtype.kind != "f":
        return array
    broken = np.isnan(array).reshape(len(array), -1).any(axis=1)
    if not broken.any():
        return array
    seen = broken & mask.any(axis=0)
    if seen.any():
        raise ValueError(f"{name} contains NaN in row {int(np.argmax(seen))}, which the mask lets take part")
    array = array.copy()
    array[broken] = 0.0
    return array


def check_hollow(problem: Problem) -> None:
    """Refuse a hollow kernel where the queries are not the samples."""
    if problem.queries is not problem.samples:
        whole = problem.n_queries == len(problem.samples)
        if not whole or not np.array_equal(
            problem.queries, problem.samples[problem.query_ids], equal_nan=True
        ):
            raise ValueError(
                "queries must be the samples, row by row, for a hollow kernel: K(x_i, x_i) = 0 has no meaning elsewhere"
            )


def check_kernel_mask(problem: Problem, kernel: MaskedKernel) -> None:
    """Refuse a mask that does not fit the problem."""
    shape = (problem.n_queries, len(problem.samples))
    if kernel.mask.shape != shape:
        raise ValueError(f"mask of the kernel has shape {kernel.mask.shape}, but the problem is {shape}")
