r"""Kernels for the fused path: which they are, and how they go there.

A Gaussian, a Laplace kernel and a softmax are :math:`w = 2^{a s + b}` of one score s, with a slope a that may differ
from query to query. Their sums and means are what attention, densities and kernel regression are made of, so they have
a path of their own (:mod:`locbook.engine.fused_sweep`), in the precision of the input. Any other profile of a Euclidean
distance, a user's own too, and products of all these, with each other or with the arrow of time, windows and masks,
take it with one step more (:mod:`locbook.engine.terms`). All other kernels go through the program of steps
(:mod:`locbook.engine.program`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.metrics import CHEBYSHEV, EUCLIDEAN, MANHATTAN
from ..kernels.profiles import SCORE
from . import named, user, vectors
from .fused import LOG2_E
from .panels import PANEL, pack
from .problem import Problem, check_hollow, check_kernel_mask
from .scores import DISTANCE, LOG_WEIGHT, PRODUCT, SCALED, WEIGHT, scores_address
from .terms import (
    CAUSAL,
    MASK,
    OTHER,
    WINDOW,
    Limits,
    Rows,
    Rule,
    limit_address,
    mask_address,
    multiply_address,
    prepare_address,
)

#: Most columns in which a squared distance in float32 is good enough for Cauchy's profile.
MOST_COLUMNS = 64


@dataclass
class Term:
    """A factor of a product, for :mod:`locbook.engine.terms`.

    Attributes
    ----------
    kind : int
        Of the score.
    columns : array of int64
    factors : array of float64, shape (columns,)
    widths : array of float64, shape (m,)
        Bandwidths, or the temperature.
    of_samples : array of float64, shape (n,), or None
        Squared bandwidths of the samples.
    profile : callable
        Gives the address of the profile for a dtype.
    shape : float
        Its parameter.
    logarithmic, single, user : bool
        Whether it gives log-weights, whether float32 is good enough for it, and whether it is a user's.
    """

    kind: int
    columns: np.ndarray
    factors: np.ndarray
    widths: np.ndarray
    of_samples: np.ndarray | None
    profile: Callable[[str], int]
    shape: float
    logarithmic: bool
    single: bool
    user: bool

    @property
    def squared(self) -> np.ndarray:
        """By what the profile divides a score. Softmax has the profile SCORE, which changes the sign."""
        return -self.widths if self.kind == PRODUCT else self.widths**2


@dataclass
class Limit:
    """A factor that is 0 or 1, by two numbers.

    Attributes
    ----------
    kind : int
        CAUSAL, WINDOW or OTHER.
    squared : float
        Squared width of a window.
    of_queries, of_samples : arrays of float64, shapes (m,) and (n,)
    """

    kind: int
    squared: float
    of_queries: np.ndarray
    of_samples: np.ndarray


@dataclass
class Leaf:
    """A product that the fused path takes: one leaf of exponential type (``terms`` is empty), or terms; and limits.

    Attributes
    ----------
    kind, root
        Of the score (:mod:`locbook.engine.scores`), and whether the exponent is linear in its root; LOG_WEIGHT or
        WEIGHT where there are terms.
    columns : array of int64
        Those that any term looks at, ascending.
    factors : array of float64, shape (columns,)
        For each difference, where ``kind`` is SCALED.
    slope : array of float64, shape (m,)
        Exponents are slope times score, in powers of two; not used where there are terms.
    offset : float
        Added to the logarithm of every weight.
    terms : list of Term
    limits : list of Limit
    masks : list of arrays of bool, shape (m, n)
    """

    kind: int
    root: bool
    columns: np.ndarray
    factors: np.ndarray
    slope: np.ndarray
    offset: float
    terms: list[Term] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)

    @property
    def single(self) -> bool:
        """Whether float32 is good enough for the terms."""
        return all(term.single for term in self.terms)

    @property
    def limited(self) -> bool:
        """Whether a limit or a mask may keep samples out."""
        return bool(self.limits or self.masks)

    @property
    def prepared(self) -> bool:
        """Whether something is said of a pair before the fused kernel sums it."""
        return bool(self.terms) or self.limited

    def prepare(self, dtype: str) -> int:
        """Address of the part that says it; 0 where nothing is said."""
        return prepare_address(dtype) if self.prepared else 0


def as_leaf(problem: Problem) -> Leaf | None:
    """The leaf of exponential type that a problem's kernel is; None if it is another, or under limits or a mask."""
    leaf = as_product(problem)
    return None if leaf is None or leaf.prepared else leaf


def as_product(problem: Problem) -> Leaf | None:
    """The product that the fused path knows; None if the kernel is another one."""
    parts = _parts_of(problem, problem.kernel)
    if parts is None or (problem.groups is not None and problem.mask is not None):
        return None
    d, m, n = problem.queries.shape[1], len(problem.queries), len(problem.samples)
    offset, masks = 0.0, [] if problem.mask is None else [problem.mask]
    terms: list[Term] = []
    limits: list[Limit] = []
    for part in parts:
        if isinstance(part, float):
            offset += math.log(part)
        elif isinstance(part, np.ndarray):
            masks.append(part)
        elif part is OTHER:
            limits.append(Limit(OTHER, 1.0, problem.query_ids.astype(np.float64), np.arange(float(n))))
        elif is_limit(part):
            column = part.columns(d)[0]
            kind = CAUSAL if isinstance(part, base.CausalKernel) else WINDOW
            squared = 1.0 if kind == CAUSAL else float(part.ruler) ** 2
            marks = (a[:, column].astype(np.float64) for a in (problem.queries, problem.samples))
            limits.append(Limit(kind, squared, *marks))
        else:
            term = _term_of(problem, part)
            if term is None:
                return None
            terms.append(term)
    if not terms:
        return None
    if len(terms) == 1 and (leaf := _alone(parts, terms[0], offset)) is not None:
        leaf.limits, leaf.masks = limits, masks
        return leaf
    # a factor is added to the logarithm of the sum, so one term alone stays what it is
    logarithmic = terms[0].logarithmic if len(terms) == 1 else problem.kernel.logarithmic
    if not logarithmic and not moderate(problem.sample_weight):
        return None
    columns = np.unique(np.concatenate([term.columns for term in terms]))
    kind = LOG_WEIGHT if logarithmic else WEIGHT
    return Leaf(
        kind=kind, root=False, columns=columns, factors=np.ones(len(columns)), slope=np.zeros(m), offset=offset,
        terms=terms, limits=limits, masks=masks,
    )  # fmt: skip


def _parts_of(problem: Problem, kernel: base.Kernel) -> list[Any] | None:
    """Factors of a product: leaves, numbers, masks, and OTHER for a hollow kernel; None if it is no such product."""
    if isinstance(kernel, base.ScaledKernel):
        inner = _parts_of(problem, kernel.kernel)
        return None if inner is None else [*inner, float(kernel.factor)]
    if isinstance(kernel, base.ProductKernel):
        left, right = (_parts_of(problem, part) for part in kernel.parts)
        return None if left is None or right is None else [*left, *right]
    if isinstance(kernel, base.MaskedKernel) and problem.groups is None:
        check_kernel_mask(problem, kernel)
        inner = _parts_of(problem, kernel.kernel)
        return None if inner is None else [*inner, problem.of_queries(kernel.mask)]
    if isinstance(kernel, base.HollowKernel) and problem.groups is None:
        check_hollow(problem)
        inner = _parts_of(problem, kernel.kernel)
        return None if inner is None else [*inner, OTHER]
    if isinstance(kernel, base.ConstantKernel):
        return [kernel.value]
    known = isinstance(kernel, base.RadialKernel | base.SoftmaxKernel | base.CausalKernel)
    return [kernel] if known else None


def is_limit(leaf: base.Kernel) -> bool:
    """The arrow of time, or a window."""
    return isinstance(leaf, base.CausalKernel) or (
        isinstance(leaf, base.RadialKernel)
        and leaf.profile == "uniform"
        and isinstance(leaf.ruler, float)
        and leaf.on is not None
        and len(leaf.on) == 1
        and leaf.metric.code in (EUCLIDEAN, MANHATTAN, CHEBYSHEV)
    )


def _term_of(problem: Problem, kernel: base.Kernel) -> Term | None:
    columns, m = np.asarray(kernel.columns(problem.queries.shape[1])), len(problem.queries)
    ones = np.ones(len(columns))
    if isinstance(kernel, base.SoftmaxKernel):
        widths, score = np.full(m, kernel.temperature), partial(named.profile_address, SCORE)
        return Term(
            kind=PRODUCT, columns=columns, factors=ones, widths=widths, of_samples=None,
            profile=score, shape=0.0, logarithmic=True, single=True, user=False,
        )  # fmt: skip
    ruler, kind, factors, of_samples = kernel.ruler, DISTANCE, ones, None
    if kernel.metric.code != EUCLIDEAN:
        return None
    if isinstance(ruler, VaryingBandwidth):
        by_query = ruler.side == "query"
        known = problem.n_queries if by_query else len(problem.samples)
        if ruler.values is None or len(ruler.values) != known:
            return None
        given = np.asarray(ruler.values, dtype=np.float64)
        widths = problem.of_queries(given) if by_query else np.ones(m)
        of_samples = None if by_query else given**2
    elif np.ndim(ruler) == 0:
        widths = np.full(m, float(ruler))
    elif ruler.ndim == 1 and len(ruler) == len(columns):
        same = bool((ruler == ruler[0]).all())
        widths = np.full(m, float(ruler[0]) if same else 1.0)
        if not same:
            kind, factors = SCALED, 1.0 / ruler
    else:
        return None
    own = kernel.named is None
    if own:
        part = partial(_user_profile, kernel.function, kernel.logarithmic)
        single = True
    else:
        code = kernel.named.code
        part = partial(named.profile_address, code)
        single = code in named.IN_FLOAT32 and len(columns) <= MOST_COLUMNS
    return Term(
        kind=kind, columns=columns, factors=factors, widths=widths, of_samples=of_samples,
        profile=part, shape=kernel.parameter, logarithmic=kernel.logarithmic, single=single, user=own,
    )  # fmt: skip


def _alone(parts: list[Any], term: Term, offset: float) -> Leaf | None:
    """The one term as a leaf of exponential type, which needs no profile; None where it is none."""
    kernel = next(part for part in parts if isinstance(part, base._Leaf) and not is_limit(part))
    if isinstance(kernel, base.SoftmaxKernel):
        return Leaf(PRODUCT, False, term.columns, term.factors, LOG2_E / term.widths, offset)
    line = kernel.line
    if line is None or term.of_samples is not None:
        return None
    slope = line.slope * LOG2_E / term.widths
    slope = slope if line.root else slope / term.widths
    return Leaf(term.kind, line.root, term.columns, term.factors, slope, offset + line.start)


def moderate(weight: np.ndarray | None) -> bool:
    """Whether no product of these multiplicities with weights, and no sum, leaves the floats."""
    return weight is None or bool(((weight == 0) | ((weight > 1e-100) & (weight < 1e100))).all())


def _user_profile(function: Callable, log: bool, dtype: str) -> int:
    return user.profile_address(function, log=log, dtype=dtype)


def rule_of(leaf: Leaf, chunk: slice | np.ndarray, number: np.dtype) -> Rule:
    """The rule for a chunk of samples."""

    def rows(columns: list[np.ndarray], dtype: np.dtype) -> np.ndarray:
        """The columns, filled up to whole panels, shape (columns, panels, PANEL)."""
        if not columns:
            return np.empty((0, 0, PANEL), dtype)
        return np.ascontiguousarray(pack(np.column_stack([c[chunk] for c in columns]), dtype).swapaxes(0, 1))

    def flat(marks: np.ndarray) -> np.ndarray:
        return marks.reshape(len(marks), marks.shape[1] * PANEL)

    terms, dtype = leaf.terms, number.name
    columns = [np.searchsorted(leaf.columns, term.columns) for term in terms]
    own = [term.of_samples for term in terms if term.of_samples is not None]
    has_own = [term.of_samples is not None for term in terms]
    logarithmic = leaf.kind != WEIGHT
    marks = rows([limit.of_samples for limit in leaf.limits], np.dtype(np.float64))
    one_of_each = next((limit.of_samples for limit in leaf.limits), None)  # to count the samples by
    if one_of_each is None and leaf.masks:
        one_of_each = leaf.masks[0][0]
    kinds = [limit.kind for limit in leaf.limits] + [MASK] * len(leaf.masks)
    limits = Limits(
        kinds=np.array(kinds, np.int64),
        parts=np.array([limit_address(kind) for kind in kinds], np.int64),
        ask=mask_address() if leaf.masks else 0,
        widths=np.array([limit.squared for limit in leaf.limits], np.float64),
        marks=flat(marks),
        low=marks.min(axis=2),
        high=marks.max(axis=2),
        size=0 if one_of_each is None else len(one_of_each[chunk]),
    )
    return Rule(
        multiply=multiply_address(dtype, len(terms) > 1) if terms else 0,
        scores=np.array([scores_address(dtype, term.kind) for term in terms], np.int64),
        profiles=np.array([term.profile(dtype) for term in terms], np.int64),
        shapes=np.array([term.shape for term in terms], np.float64),
        to_log=np.array([logarithmic and not term.logarithmic for term in terms], np.bool_),
        starts=np.cumsum([0, *map(len, columns)]),
        columns=np.concatenate([np.empty(0, np.int64), *columns]),
        factors=np.concatenate([np.empty(0, number), *(term.factors for term in terms)]).astype(number),
        by_sample=np.where(has_own, np.cumsum(has_own, dtype=np.int64) - 1, -1).astype(np.int64),
        squares=flat(rows(own, number)),
        logarithmic=logarithmic,
        nothing=np.array([-np.inf if logarithmic else 0.0], number),
        limits=limits,
    )


def rows_of(leaf: Leaf, own: slice | np.ndarray, chunk: slice | np.ndarray) -> Rows:
    """What a rule needs of some queries."""
    whole = vectors.whole_rows(np.arange(len(leaf.slope))[own])
    squared = np.array([term.squared[whole] for term in leaf.terms]).reshape(len(leaf.terms), len(whole))
    marks = np.array([limit.of_queries[whole] for limit in leaf.limits]).reshape(len(leaf.limits), len(whole))
    fours = marks.reshape(len(marks), len(whole) // vectors.ROWS, vectors.ROWS)
    masks = np.empty(
        (len(leaf.masks), len(whole), len(leaf.masks[0][0, chunk]) if leaf.masks else 0), np.bool_
    )
    for k, mask in enumerate(leaf.masks):
        some = mask[own][:, chunk]
        masks[k, : len(some)], masks[k, len(some) :] = some, some[-1:]
    return Rows(squared, marks, fours.min(axis=2), fours.max(axis=2), masks)
