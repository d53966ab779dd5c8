"""One engine: streamed, kernel-weighted reductions over samples.

A model says *what* to reduce (:mod:`locbook.engine.reductions`); the engine decides *how*: the kernel becomes a
program (:mod:`~locbook.engine.plan`, :mod:`~locbook.engine.program`), blocks and threads walk the samples
(:mod:`~locbook.engine.driver`), one compiled loop weighs and accumulates (:mod:`~locbook.engine.sweep`). The plain
NumPy twins stand in :mod:`locbook.engine.reference`.
"""

from .pool import get_num_threads, set_num_threads
from .problem import Problem
from .reductions import (
    EMPTY,
    EmptyNeighborhoodWarning,
    Moments,
    Neighbors,
    classes,
    dense_weights,
    log_sum,
    mean,
    moments,
    monomials,
    nearest,
    normalized_weights,
    quantile,
    self_weights,
)

__all__ = [
    "EMPTY",
    "EmptyNeighborhoodWarning",
    "Moments",
    "Neighbors",
    "Problem",
    "classes",
    "dense_weights",
    "get_num_threads",
    "log_sum",
    "mean",
    "moments",
    "monomials",
    "nearest",
    "normalized_weights",
    "quantile",
    "self_weights",
    "set_num_threads",
]
