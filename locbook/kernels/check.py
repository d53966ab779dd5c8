"""Is it a localization kernel? Look at its weights on a sample and show the evidence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._validation import as_real, check_integer
from .base import Kernel, NeighborKernel, RadialKernel, RelativeBiasKernel, VonMisesKernel
from .metrics import periodic


class Finding(NamedTuple):
    """One property: whether it holds on the sample, the number that decides, and the rows where it was found."""

    holds: bool
    evidence: float
    where: tuple[int, ...]


class KernelReport(NamedTuple):
    """What :func:`check_kernel` found.

    Attributes
    ----------
    non_negative : Finding
        Smallest weight, and its pair.
    decaying : Finding
        Largest rise of the weight from a sample to a farther one, relative to the query's largest weight, with
        (query, nearer, farther). Needed of a localization kernel.
    symmetric : Finding
        Largest ``|K(a, b) - K(b, a)|``, relative, and its pair. Optional.
    positive_definite : Finding
        Smallest eigenvalue of the (symmetrised) weights, relative to the largest. For information: localization
        does not ask for it.
    """

    non_negative: Finding
    decaying: Finding
    symmetric: Finding
    positive_definite: Finding

    @property
    def is_localization_kernel(self) -> bool:
        """Non-negative and decaying, on this sample."""
        return self.non_negative.holds and self.decaying.holds

    def __str__(self) -> str:
        lines = []
        for name, finding in zip(self._fields, self, strict=True):
            word = "yes" if finding.holds else "no"
            rows = f" at rows {', '.join(map(str, finding.where))}" if finding.where else ""
            lines.append(f"{name.replace('_', ' '):18s} {word:4s} {finding.evidence: .3g}{rows}")
        return "\n".join(lines)


def check_kernel(
    kernel: Kernel, samples: Any, *, max_samples: int = 500, tolerance: float = 1e-10
) -> KernelReport:
    """Check non-negativity, decay, symmetry and positive definiteness on a sample, with the evidence.

    Parameters
    ----------
    kernel : Kernel
    samples : array, shape (n, d)
    max_samples : int
        Evenly spaced rows looked at; memory and time grow with its square and cube.
    tolerance : float
        Relative to the largest weight.

    Returns
    -------
    KernelReport
        A named tuple; ``print`` shows it as a table. It speaks of these samples: a "no" is a proof, a "yes" is not.

    Raises
    ------
    TypeError, ValueError
        If an argument is not fit, or a user's function gives negative or NaN weights (the engine refuses them).

    Notes
    -----
    Decay is measured in the distances that the kernel's leaves look at (a bandwidth for each column is their unit;
    angles are measured round the circle), else in the Euclidean distance. A sample counts as farther if it is
    farther by one of them and nearer by none.

    Examples
    --------
    >>> import numpy as np
    >>> import locbook as lb
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> report = lb.check_kernel(lb.uniform(0.3), x)
    >>> report.is_localization_kernel, report.symmetric.holds, report.positive_definite.holds
    (True, True, False)
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be a Kernel, got {type(kernel).__name__}")
    samples = as_real(samples, "samples", allow_nan=kernel.allows_nan)
    max_samples = check_integer(max_samples, "max_samples", minimum=2)
    rows = np.unique(np.linspace(0, len(samples) - 1, min(max_samples, len(samples))).astype(int))
    points = np.ascontiguousarray(samples[rows], dtype=np.float64)
    w = kernel(points, points)
    top = float(np.max(np.abs(w))) or 1.0

    lowest = np.unravel_index(np.argmin(w), w.shape)
    gap = np.abs(w - w.T)
    apart = np.unravel_index(np.argmax(gap), w.shape)
    spectrum = np.linalg.eigvalsh(0.5 * (w + w.T))
    # a factor of the query changes no share: look at each query's weights relative to its own largest
    log_w = kernel.log(points, points)
    peak = log_w.max(axis=1, keepdims=True)
    rise, where = _largest_rise(kernel, points, np.exp(log_w - np.where(np.isfinite(peak), peak, 0.0)))
    bound = float(np.abs(spectrum).max()) or 1.0

    def at(place: tuple) -> tuple[int, ...]:
        return tuple(int(rows[i]) for i in place)

    return KernelReport(
        Finding(bool(w[lowest] >= 0), float(w[lowest]), at(lowest)),
        Finding(bool(rise <= tolerance), rise, at(where)),
        Finding(bool(gap[apart] <= tolerance * top), float(gap[apart]) / top, at(apart)),
        Finding(bool(spectrum[0] >= -tolerance * bound), float(spectrum[0] / bound), ()),
    )


def _rulers(kernel: Kernel, n_columns: int) -> list[Kernel]:
    """Kernels whose log-weights are minus the distances that the leaves look at."""
    found = []
    for leaf in kernel.leaves():
        if isinstance(leaf, RadialKernel):
            units = leaf.ruler if isinstance(leaf.ruler, np.ndarray) else 1.0
            found.append(RadialKernel("laplace", units, metric=leaf.metric, on=leaf.on))
        elif isinstance(leaf, NeighborKernel):
            found.append(RadialKernel("laplace", metric=leaf.metric, on=leaf.on))
        elif isinstance(leaf, RelativeBiasKernel):
            found.append(RadialKernel("laplace", on=leaf.on))
        elif isinstance(leaf, VonMisesKernel):
            angle = periodic(2 * np.pi)
            found.extend(RadialKernel("laplace", metric=angle, on=c) for c in leaf.columns(n_columns))
    return list(dict.fromkeys(found)) or [RadialKernel("laplace")]


def _largest_rise(kernel: Kernel, points: np.ndarray, w: np.ndarray) -> tuple[float, tuple[int, int, int]]:
    """Largest rise of a weight above that of a nearer sample, with (query, nearer, farther)."""
    rulers = _rulers(kernel, points.shape[1])
    distances = np.stack([-ruler.log(points, points) for ruler in rulers])
    worst, where = 0.0, (0, 0, 0)
    for i in range(len(points)):
        by_distance = w[i, np.argsort(distances[0, i], kind="stable")]
        if len(rulers) == 1 and (by_distance - np.minimum.accumulate(by_distance)).max() <= worst:
            continue  # nothing here can be worse: most rows end here, before all pairs are compared
        near, far = distances[:, i, :, None], distances[:, i, None, :]
        # farther by no distance, and nearer by one, rounding apart
        nearer = (near <= far).all(axis=0) & (near < far * (1 - 1e-9)).any(axis=0)
        rises = np.where(nearer, w[i, None, :] - w[i, :, None], 0.0)
        pair = np.unravel_index(np.argmax(rises), rises.shape)
        if rises[pair] > worst:
            worst, where = float(rises[pair]), (i, *pair)
    return worst, where
