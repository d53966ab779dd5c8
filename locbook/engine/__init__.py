r"""One engine: streamed, kernel-weighted reductions over samples.

**How to read it.** For every few queries and every tile of samples: score, weight, add up. The files in this order.
Whoever follows the Gaussian local mean alone reads ``local_mean`` in ``foundations.local_mean``, ``set_up`` in
``devices`` and ``Problem.check`` in ``problem``; in ``reference`` ``weights`` of a radial kernel, ``distances`` and
``scaled_distances`` of one bandwidth, ``profile_weights`` and ``mean``; in ``reductions`` ``mean``,
``mean_and_log_sum`` and ``_sums``; then ``panels``, ``run_split`` in ``pool``, and the top of ``parts`` to ``call``,
``jit``, ``part`` and ``inner`` included. There the path forks::

    local_mean -> Problem.check -> mean -> mean_and_log_sum -> _sums
      vectors:  as_product -> stream -> _sums -> run_split: some blocks of queries, on a thread, do
                  fused_sweep -> _fused_sweep: for a tile and four queries
                    weigh of fused: score, power of two and sums, in registers
      without:  make_plan -> run -> run_split: a block of queries, on a thread, does
                  sweep: for a tile and four queries
                    visit -> evaluate: measure and weigh of program; then _to_weights and _mean

On a processor without vectors: ``make_plan`` in ``plan``, there ``_lower`` of a radial kernel, ``_distance_step`` and
``_metric_fields``, the top of ``program``, ``run`` in ``driver``, in ``sweep`` the function of that name, ``visit``,
``_to_weights`` and ``_mean``, in ``program`` ``evaluate``, ``step_address``, ``measure`` and ``weigh``,
``metric_address`` and ``profile_address`` in ``named``, ``euclidean_row`` in ``kernels.metrics``, ``gaussian`` in
``kernels.profiles``. Else, which is the rule: ``as_product``, ``_term_of`` and ``_alone`` in ``leaf``, the top of
``fused`` with ``weigh_plain``, ``stream`` and ``_sums`` in ``stream`` (read it for ``prune=False``: ``pruned`` and
``groups`` are None, nothing is ``prepared``), the top of ``records``, in ``fused_sweep`` all to ``State``,
``_fused_sweep`` (``look`` and ``keep`` are 0) and ``_follow``; and last, how vectors do it: the top of ``vectors``,
``exponential``, ``exp2`` in ``vectors``, in ``scores`` the loop ``score_columns`` beside ``scores_plain``, in ``fused``
at last ``_weigh`` beside ``weigh_plain``.

**Words.** A *panel* is 64 samples, transposed; a *tile* is some panels; a *chunk* is all tiles that are packed at once.
A *four* is four queries, ``ROWS`` of them; a *block* is some fours; a *task* is one block or some, which one thread
walks through a chunk. How many are some, each path says at its top. A *leaf* is a kernel that is made of no others,
softmax for example; its *ruler* is its bandwidth. *Multiplicities* are what callers give as ``sample_weight``. *The
arrow of time* is the kernel ``causal``: no sample later than the query. A *log-weight* is the logarithm of a weight, a
*shift* a number near the largest of a query, which is subtracted from all of them before the exponential is taken.

**Other ways**, each from where it leaves the first one.

- *Causal attention*: ``_parts_of``, ``_alone``, ``rule_of`` and ``rows_of`` in ``leaf`` (softmax is the leaf, the arrow
  of time a limit), ``_who``, ``_by_gaps`` and ``_causal`` in ``terms``, then ``samples.prepare`` in ``fused_sweep`` and
  ``limited`` in ``fused``.
- *A user's profile*: ``_term_of`` in ``leaf``, ``_profile`` in ``user``, ``quotient`` in ``named``, ``_term`` in
  ``terms``, then the kinds WEIGHT and LOG_WEIGHT in ``weigh_plain``. One that is an exponential of a line never gets
  there: ``line_of`` in ``kernels.lines``, which ``_alone`` in ``leaf`` asks.
- *Mahalanobis*: ``whiten``, which ``mean_and_log_sum`` calls; from there on the kernel is a Euclidean one.
- *The k nearest*: ``nearest`` and ``top`` in ``reductions``, ``find_nearest`` and ``nearest_in_cells`` in ``nearest``.
  The kernel ``knn`` asks ``top`` for its neighbours' rows (``neighbor_weights`` in ``neighborhoods``), kNN bandwidths
  become numbers (``measured`` there).
- *Sums of kernels*: part by part, ``_summands`` and ``_add`` in ``reductions``; without vectors one program does all.
- *Samples left out*: the top of ``pruning``, ``reach_of`` in ``stream``, ``put_in_order`` and ``Order.lists`` in
  ``reach``, ``choose_panels`` in ``pruning``; ``task`` in ``stream`` then visits the panels of these lists.
- *The gradient*: the top of ``gradients`` and its ``mean_vjp``. Of a Gaussian or softmax leaf ``_backward`` and
  ``_fused_backward`` in ``fused_backward``; of any kernel ``_run`` in ``gradients``, ``parts_of`` and ``_walk_back`` in
  ``backward``.

==================  ================================================================================================
file                what it is for
==================  ================================================================================================
``reference``       the NumPy twins: what is meant, every weight in memory
``reductions``      the functions that models call: what is added up, which path does it, who has no neighbour
``problem``         the arguments, checked once at the border
``whitening``       Mahalanobis distances and bandwidth matrices as Euclidean distances of other columns
``neighborhoods``   the kernel ``knn`` and the kNN bandwidths: who the k nearest are, where the kernel stands
..                  *the general path, plain Numba with a few calls of vector kernels where there are any: any kernel*
``panels``          64 samples side by side, so that a loop over them is a loop over vectors
``parts``           compiled functions that are called by their address: nothing is compiled before it is needed
``records``         many arrays as one argument of a part
``named``           the named distances and profiles as parts
``user``            a user's profile or distance as a part
``program``         a kernel as a few steps of a stack machine, and the function that runs them
``plan``            from the kernel's expression to these steps
``sweep``           the one loop, and what each reduction does in it
``driver``          chunks of samples, blocks of queries
``pool``            the threads, and how much work is worth one
..                  *the vector kernels: registers, by hand; a kernel's plain twin stands above it*
``exponential``     powers of e in plain Numba, and the numbers for powers of 2: a polynomial and a shift of bits
``vectors``         vectors of numbers over LLVM, a method for each instruction; which processors have them
``scores``          squared distances and inner products of four queries and a panel
``fused``           score, weight and sum in one go, for one Gaussian, Laplace or softmax leaf
``terms``           before it: products of other profiles, and who takes part by time, window or mask
``values``          weights times values, where there are many columns of them
``moments``         the moments of local lines, in few columns
``fused_sweep``     the loop around ``fused``: running maximum, sums in float64 between tiles
``leaf``            which kernels go this way
``stream``          their sums, chunk by chunk; float32 where it holds, else float64
..                  *leaving samples out: the same answer from fewer distances*
``pruning``         boxes around panels, and what cannot be in reach of them; the cost model
``reach``           how far a kernel reaches, and whether it pays
``pruned_sweep``    the loop of ``sweep`` once more, over the panels that are left
``sieve``           which samples of a panel pass a limit, as 64 bits
``nearest``         the k nearest in Euclidean distance, by a grid of cells in up to three columns, else by the sieve
``compact``         sums of a compact kernel, by a grid of cells
..                  *the gradient: the general path, once more backwards*
``gradients``       the derivatives by queries, samples, values, multiplicities and the kernel's parameters
``backward``        its loop: cofactors instead of sums
``slopes``          derivatives of the profiles and distances as parts
``fused_backward``  the same for one Gaussian or softmax leaf, under a mask too, by products of matrices
..                  *many problems of one shape*
``batch``           laid end to end; a block of queries meets the samples of its own
..                  *on a card: the package* ``cuda``, *which has a guide of its own*
``devices``         where to compute
==================  ================================================================================================

**Accuracy.** Every number given is taken as exact, float32 included; Euclidean distances are sums of squared
differences. With :math:`u = 2^{-53}`, the log-weight t of a sample is wrong by at most :math:`(d + 8)\,u\,|t| +
8u\,(1 + |t|)`. For softmax :math:`|t|` is :math:`\sum_c |q_c k_c| / \tau`, in products it is the sum of the factors';
for a profile that is no exponential the first term is an error of the squared distance, :math:`(d + 8)\,u` of it. A
bandwidth matrix or a covariance of condition :math:`\kappa` makes a distance of r bandwidths wrong by
:math:`(d + 8)\,\kappa\,u\,(r + E)`, E the distance of the farthest samples, 1000 at most (``whitening``). Hence, with
the normalised weights p, the exact mean y, the range R of the values that take part and
:math:`\varepsilon_i = 2 p_i\,|\Delta t_i|`,

- a local mean is within :math:`\min(R, \sum_i \varepsilon_i |y_i - y|) + (16 + 2\sqrt n)\,u \sum_i p_i |y_i| + F R` and
  two units in the last place, and never beyond the values that some query sees;
- a log-density is within :math:`\sum_i \varepsilon_i + (16 + 2\sqrt n)\,u + (F + 8u)(1 + S)` and one unit in the last
  place, S the sum of the magnitudes of what is added up;
- a distance is within :math:`(d/2 + 4)\,u` of itself down to 1e-153, below which squares underflow.

F is 0 for float64 and 1e-5 for float32 input: what goes through ``fused`` is computed in float32 where that holds, all
else in float64, moments always. A user's profile is computed in float32 on float32 input, of a squared distance that is
within :math:`(d + 8)\,2^{-24}` of itself; what the function makes of that, its author knows. Coordinates beyond 1e150
are refused where a square overflows. ``tests/engine/exact.py`` states these bounds in code;
``tests/engine/test_accuracy.py`` holds the engine to them with 50 digits.

**Same bits.** An answer is the same to the bit for any number of threads and any block of queries, in every run. Where
samples are left out the sums run in another order, which may depend on the queries that are asked together, and with it
the rounding; under ``prune=False`` a query's answer depends on no other query, but for two cases: a batch is
computed in float32 as a whole or not at all, and under a mask a mean is clipped to the values that some query sees,
which may touch its last bit.
"""

from .batch import Batch, batch_mean, batch_vjp, is_batch
from .devices import as_type, choose_device, lives_on_card, of_host, reductions_of, set_up
from .gradients import LocalMeanGradient, mean_vjp
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
    "Batch",
    "EmptyNeighborhoodWarning",
    "LocalMeanGradient",
    "Moments",
    "Neighbors",
    "Problem",
    "as_type",
    "batch_mean",
    "batch_vjp",
    "choose_device",
    "classes",
    "dense_weights",
    "get_num_threads",
    "is_batch",
    "lives_on_card",
    "log_sum",
    "mean",
    "mean_vjp",
    "moments",
    "monomials",
    "nearest",
    "normalized_weights",
    "of_host",
    "quantile",
    "reductions_of",
    "self_weights",
    "set_num_threads",
    "set_up",
]
