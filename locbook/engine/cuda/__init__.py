"""The reductions on an NVIDIA card, by numba-cuda (``pip install "locbook[cuda]"``).

Nothing here is imported by ``import locbook``. In the order of reading:

==============  ======================================================================================================
file            what it is for
==============  ======================================================================================================
``reductions``  the functions, as in :mod:`locbook.engine.reductions`; arrays of the card in and out without a copy
``batch``       many problems of one shape in one grid
``border``      arrays of the card, checked without leaving it
``backend``     the one import of ``numba.cuda``; which arrays live on a card
``fused``       the kernels for one Gaussian, Laplace or softmax leaf: registers, tiles in shared memory
``sums``        the kernel of all other sums, and how parts are merged without losing digits
``weigh``       from the steps of a program to one function that weighs a pair
``pairs``       distances and profiles, ours by name and the user's own
``gradients``   what a number that depends on the means owes to each argument
``ready``       what goes into the sums of a gradient
``adjoints``    what a pair owes, and the kernel that adds it up
``slopes``      derivatives of profiles and distances
``order``       the k largest, quantiles, single weights
``driver``      launches: grids, parts of the samples, float32 where it holds, else float64
``arrays``      what kernels read, in the form in which they read it
==============  ======================================================================================================

**Accuracy.** float64 keeps the bounds of :mod:`locbook.engine`. float32 input is summed in float32, with F = 1e-5 as
there: queries whose exponents, or inner products, float32 does not hold are computed again in float64, and with them
all others of a batch. A squared distance is within (d + 8) u of itself, u = 6e-8, so a sample that close to the edge of
a compact kernel, or to the k-th neighbour, may fall on either side; neighbourhoods inside a kernel (``knn``) are told
apart in float64. Sums are blockwise and compensated (:mod:`locbook.engine.cuda.sums`). The same bits in every run on
one card, whatever queries are asked together.

A gradient of float32 input is summed in float32 if all its queries and cotangents hold in it, else in float64, and so
are neighbourhoods and users' profiles. In float32 it is held to 1e-4 of the largest number of a field; where a distance
has a fold (the farthest column, half a period), two that are as far to rounding may change places.

**Streams.** See ``backend``. :mod:`locbook.torch` takes tensors of a card.

**State.** Every kernel is held to the NumPy twins in Numba's simulator, and compiled for three generations of cards
without stack or spills. None has been run on a card yet: no time is claimed. Not there: tensor cores, one problem on
several cards. What goes by the host is said in ``reductions``. A kernel is compiled once, about a second, and then kept
on disk.
"""

from .backend import DeviceError, as_device, is_available, require, to_host
from .batch import Batch, batch_mean, batch_vjp
from .border import check_array, check_numbers, check_problem, check_values
from .gradients import ARGUMENTS, mean_vjp
from .reductions import (
    classes,
    dense_weights,
    log_sum,
    mean,
    moments,
    nearest,
    normalized_weights,
    quantile,
    self_weights,
    top,
)

__all__ = [
    "ARGUMENTS",
    "Batch",
    "DeviceError",
    "as_device",
    "batch_mean",
    "batch_vjp",
    "check_array",
    "check_numbers",
    "check_problem",
    "check_values",
    "classes",
    "dense_weights",
    "is_available",
    "log_sum",
    "mean",
    "mean_vjp",
    "moments",
    "nearest",
    "normalized_weights",
    "quantile",
    "require",
    "self_weights",
    "to_host",
    "top",
]
