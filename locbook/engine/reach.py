"""Reach: which kernels can leave samples out unseen, and whether it pays.

:mod:`locbook.engine.pruning` knows boxes and distances; this module knows kernels. A kernel can be pruned by the
first of its factors that has a bounded support in a distance of coordinates, and a single Gaussian or Laplace leaf by
what the dtype can see. ``prune="auto"`` asks the cost model, in up to eight columns; the answer is the same either
way, up to the order of summation.

What a Gaussian or Laplace kernel leaves out is at most 4e-18 of the weight (2e-9 in float32), so a mean moves by at
most that share of the range of the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._validation import check_option
from ..kernels import base
from ..kernels.bandwidth import VaryingBandwidth
from ..kernels.metrics import CHEBYSHEV, EUCLIDEAN, MANHATTAN, Metric
from . import pruning
from .panels import PANEL
from .problem import Problem

#: Queries in a block that is listed once, and in the groups of a block that skip what only the others need.
BLOCK, FOUR = 16, 4
#: Most columns in which ``prune="auto"`` prunes.
MOST_COLUMNS = 8
#: Of more pairs in reach, among a few, ``prune="auto"`` orders nothing: no choice of panels would leave enough out.
MOST_SEEN = 0.5
#: Most numbers that are put in order at once: samples are not cut into chunks then.
MOST_NUMBERS = 1 << 26


@dataclass
class Reach:
    """How far a kernel reaches.

    Attributes
    ----------
    columns : array of int64
    metric : int
    scale : array of float64, shape (columns,)
        Factor of each column: one over its bandwidth where columns have bandwidths of their own, else 1.
    profile : int
        ``pruning.GAUSSIAN``, ``pruning.LAPLACE`` or ``pruning.COMPACT``.
    squared : float
        The squared radius of the support, in units of the scale. For the two of exponential type what
        :func:`locbook.engine.pruning.log_reach` gives, times h^2 for a Gaussian and h for Laplace, with the widest
        bandwidth h that is not in the scale.
    nearest : int
        The number of neighbours sought, or 0; ``squared`` is then not used.
    per_panel : int
        How many samples of a full panel surely take part; 0 if that is not known.
    """

    columns: np.ndarray
    metric: int
    scale: np.ndarray
    profile: int = pruning.COMPACT
    squared: float = math.inf
    nearest: int = 0
    per_panel: int = PANEL


@dataclass
class Order:
    """Samples and queries in k-d order, with their boxes.

    ``points`` and ``places`` are their coordinates in order, ``boxes`` those of panels, ``blocks`` those of blocks.
    ``share`` of the pairs are looked at, about, where that was asked.
    """

    reach: Reach
    samples: np.ndarray
    queries: np.ndarray
    points: np.ndarray
    places: np.ndarray
    boxes: tuple[np.ndarray, np.ndarray]
    blocks: tuple[np.ndarray, np.ndarray]
    slack: float
    share: float

    @cached_property
    def fours(self) -> tuple[np.ndarray, np.ndarray]:
        """Boxes of the fours of queries."""
        return pruning.boxes(self.places, FOUR)

    def lists(self, start: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The panels that ``count`` blocks visit, the first with the query ``start``; and where each block's end."""
        reach = self.reach
        return pruning.active_lists(
            *(*self.blocks, start // BLOCK, count, *self.boxes, reach.scale, reach.metric, reach.profile),
            *(float(reach.squared), self.slack),
        )

    def arguments(self, start: int) -> tuple:
        """What :func:`locbook.engine.pruned_sweep.pruned_sweep` needs for the queries from ``start`` on."""
        reach, panels = self.reach, self.boxes[0].shape[1]
        return (
            *(start // BLOCK, self.blocks, self.fours, self.boxes, reach.scale, reach.metric, reach.profile),
            *(float(reach.squared), self.slack, np.empty((2, panels)), np.empty(panels + 1, np.int64)),
        )


def support_of(problem: Problem, kernel: base.Kernel) -> Reach | None:
    """The reach of the first factor with a bounded support; None if there is none."""
    if isinstance(kernel, base.SumKernel):
        return None
    for part in kernel.parts:
        found = support_of(problem, part)
        if found is not None:
            return found
    if not isinstance(kernel, base.RadialKernel) or kernel.named is None or math.isinf(kernel.named.support):
        return None
    if kernel.metric.code not in (EUCLIDEAN, MANHATTAN, CHEBYSHEV):
        return None
    columns, ruler = kernel.columns(problem.queries.shape[1]), kernel.ruler
    scale, widest = np.ones(len(columns)), 1.0
    if isinstance(ruler, VaryingBandwidth):
        if ruler.values is None:
            return None
        widest = float(np.max(ruler.values))
    elif np.ndim(ruler) == 0:
        widest = float(ruler)
    elif ruler.ndim == 1 and len(ruler) == len(columns):
        scale = 1.0 / ruler
    else:
        return None
    return Reach(columns, kernel.metric.code, scale, squared=(kernel.named.support * widest) ** 2)


def nearest_reach(
    problem: Problem, columns: np.ndarray, metric: Metric, k: int, *, hollow: bool, masked: bool
) -> Reach | None:
    """The reach of a search for the ``k`` nearest."""
    if metric.code not in (EUCLIDEAN, MANHATTAN, CHEBYSHEV):
        return None
    known = not masked and (problem.sample_weight is None or bool((problem.sample_weight > 0).all()))
    return Reach(
        np.asarray(columns), metric.code, np.ones(len(columns)), nearest=k, per_panel=(PANEL - hollow) * known
    )


def fades(kernel: base.Kernel) -> bool:
    """Whether a kernel has weights that are, or round to, nothing."""
    return any(
        isinstance(leaf, base.NeighborKernel)
        or (
            isinstance(leaf, base.RadialKernel)
            and (leaf.line is not None or (leaf.named is not None and math.isfinite(leaf.named.support)))
        )
        for leaf in kernel.leaves()
    )


def some_columns(array: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Some columns; the array itself where they are all."""
    d = array.shape[1]
    return array if len(columns) == d and columns.tolist() == list(range(d)) else array[:, columns]


def coordinates(array: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Some columns, contiguous and in float64; not a copy where none is needed."""
    block = np.ascontiguousarray(some_columns(array, columns), dtype=np.float64)
    return block if block.flags.writeable else block.copy()


def refuse_far(kernel: base.Kernel, prune: str | bool) -> None:
    """Refuse ``prune=True`` for a kernel that reaches every sample."""
    if prune is True and not fades(kernel):
        raise ValueError(f"prune=True: kernel {kernel!r} reaches every sample")


def check_prune(prune: str | bool) -> str | bool:
    """``"auto"``, True or False; a ValueError for anything else."""
    if isinstance(prune, (bool, np.bool_)):
        return bool(prune)
    return check_option(prune, "prune", ("auto", True, False))


def put_in_order(
    problem: Problem, reach: Reach | None, prune: str | bool, dtype: str = "float64"
) -> Order | None:
    """Samples and queries in order if the kernel is to be pruned, else None.

    Raises
    ------
    ValueError
        If ``prune`` is True and the kernel reaches every sample. There is no error for one that fades but cannot be
        pruned here, because of a mask, the distance or the processor: it takes all samples, with the same answer.
    """
    prune = check_prune(prune)
    if not prune:
        return None
    m, n = len(problem.queries), len(problem.samples)
    if reach is None:
        refuse_far(problem.kernel, prune)
        return None
    d = len(reach.columns)
    auto, share = prune == "auto", 1.0
    if auto and (
        d > MOST_COLUMNS
        or (reach.nearest and n < PANEL * 4**d)  # hardly a panel is out of reach of all
        or n * problem.samples.shape[1] > MOST_NUMBERS
        or not pruning.worth_pruning(n, m, d, PANEL, BLOCK)
    ):
        return None
    slack = pruning.slack_of(d, dtype)
    x, q = (coordinates(a, reach.columns) for a in (problem.samples, problem.queries))
    if not (np.isfinite(x).all() and np.isfinite(q).all()):
        return None
    if (
        auto
        and not reach.nearest
        and pruning.seen_share(q, x, reach.scale, reach.metric, reach.profile, reach.squared) > MOST_SEEN
    ):
        return None
    samples = pruning.kd_order(x, reach.scale, PANEL)
    x = x[samples]
    low, high = pruning.boxes(x, PANEL)
    queries = pruning.kd_order(q, reach.scale, FOUR)
    q = q[queries]
    blocks = pruning.boxes(q, BLOCK)
    if auto:
        if reach.nearest:
            share = pruning.nearest_share(
                q, *blocks, x, low, high, reach.scale, reach.metric, reach.nearest, slack, PANEL
            )
        else:
            share = pruning.active_share(
                *blocks, low, high, reach.scale, reach.metric, reach.profile, reach.squared, slack
            )
        if not pruning.worth_pruning(n, m, d, PANEL, BLOCK, share):
            return None
    return Order(reach, samples, queries, x, q, (low, high), blocks, slack, share)
