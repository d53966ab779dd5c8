"""Regression curves and time series whose mean function is known.

Sources of the curves: Donoho & Johnstone (1994), *Ideal spatial adaptation by wavelet shrinkage*, for
doppler, bumps and blocks (here not scaled to a common variance).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from locbook._validation import (
    RandomState,
    check_array,
    check_integer,
    check_option,
    check_random_state,
    check_real,
)

_KNOTS = np.array([0.10, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81])
_BUMP_HEIGHTS = np.array([4.0, 5.0, 3.0, 4.0, 5.0, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
_BUMP_WIDTHS = np.array([0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005])
_BLOCK_HEIGHTS = np.array([4.0, -5.0, 3.0, -4.0, 5.0, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2])


def _line(x):
    return 1 + 2 * x


def _sine(x):
    return np.sin(2 * np.pi * x)


def _step(x):
    return np.where(x < 0.5, 0.0, 1.0)


def _doppler(x):
    return np.sqrt(x * (1 - x)) * np.sin(2.1 * np.pi / (x + 0.05))


def _bumps(x):
    return (_BUMP_HEIGHTS * (1 + np.abs(x[:, None] - _KNOTS) / _BUMP_WIDTHS) ** -4).sum(axis=1)


def _blocks(x):
    return (_BLOCK_HEIGHTS * (1 + np.sign(x[:, None] - _KNOTS)) / 2).sum(axis=1)


CURVES = {f.__name__[1:]: f for f in (_line, _sine, _step, _doppler, _bumps, _blocks)}


def _clustered(rng, n):
    centre = rng.choice([0.25, 0.7, np.nan], size=n, p=[0.375, 0.375, 0.25])
    beside = np.clip(np.nan_to_num(centre, nan=0.5), 0.25, 0.7)
    return np.where(np.isnan(centre), rng.random(n), rng.beta(80 * beside, 80 * (1 - beside)))


DESIGNS = {
    "uniform": lambda _, n: np.linspace(0, 1, n),
    "random": lambda rng, n: np.sort(rng.random(n)),
    "skewed": lambda rng, n: np.sort(rng.random(n) ** 2),
    "clustered": lambda rng, n: np.sort(_clustered(rng, n)),
}


class Curve(NamedTuple):
    """``x`` (n, 1), ``y`` (n,), ``truth`` (points -> means), ``noise`` (n,): standard deviation of each y."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    truth: Callable[[ArrayLike], NDArray[np.float64]]
    noise: NDArray[np.float64]


class TimeSeries(NamedTuple):
    """``time``, ``values``, their parts ``trend`` and ``seasonal``, all (n,); ``truth`` (times -> means)."""

    time: NDArray[np.float64]
    values: NDArray[np.float64]
    trend: NDArray[np.float64]
    seasonal: NDArray[np.float64]
    truth: Callable[[ArrayLike], NDArray[np.float64]]


def make_curve(
    name: str = "sine",
    n_samples: int = 100,
    noise: float | Callable[[NDArray[np.float64]], ArrayLike] = 0.2,
    *,
    design: str = "random",
    random_state: RandomState = None,
) -> Curve:
    """Draw noisy values of a known curve on [0, 1]: ``y = f(x) + noise(x) * e``, e standard normal.

    Parameters
    ----------
    name : {"line", "sine", "step", "doppler", "bumps", "blocks"}
        ``1 + 2 x``; ``sin 2 pi x``; ``1[x >= 1/2]``; and, by Donoho & Johnstone (1994),
        ``sqrt(x (1 - x)) sin(2.1 pi / (x + 0.05))``, ``sum_j h_j (1 + |x - t_j| / w_j)**-4``,
        ``sum_j h_j (1 + sgn(x - t_j)) / 2``.
    n_samples : int, >= 1
    noise : float >= 0, or callable
        Standard deviation; a callable gets ``x`` (n,) and gives one for each (heteroscedastic noise).
    design : {"random", "uniform", "skewed", "clustered"}
        How x is placed: drawn uniformly; on a regular grid; drawn with density ``1 / (2 sqrt x)``, many near
        0, few near 1; three of four from two Beta clusters at 0.25 and 0.7, the rest uniformly. Sorted in
        each case.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    Curve
        Named tuple ``(x, y, truth, noise)``: (n, 1), (n,), a callable from (m,) or (m, 1) points to (m,)
        means, and the standard deviations (n,). All float64.

    Raises
    ------
    ValueError, TypeError
        If a name is unknown, a number out of range, or ``noise(x)`` has another shape or a negative value.

    References
    ----------
    Donoho, Johnstone (1994), Biometrika 81(3), 425-455.

    Examples
    --------
    >>> import numpy as np
    >>> from locbook.datasets import make_curve
    >>> x, y, truth, noise = make_curve("doppler", 50, noise=lambda x: 0.1 + x, random_state=0)
    >>> x.shape, y.shape, noise.shape
    ((50, 1), (50,), (50,))
    >>> make_curve("sine", 3, noise=0, design="uniform").y.round(12)
    array([ 0.,  0., -0.])
    >>> truth(np.array([0.25, 0.5])).shape
    (2,)
    """
    function = CURVES[check_option(name, "name", tuple(CURVES))]
    n = check_integer(n_samples, "n_samples")
    check_option(design, "design", tuple(DESIGNS))
    if not callable(noise):
        check_real(noise, "noise", 0)
    rng = check_random_state(random_state)

    def truth(points: ArrayLike) -> NDArray[np.float64]:
        points = check_array(points, "points", (1, 2))
        if points.ndim == 2 and points.shape[1] != 1:
            raise ValueError(f"points must have shape (m,) or (m, 1), got {points.shape}")
        return function(points.reshape(-1))

    x = DESIGNS[design](rng, n)
    scale = _noise_at(noise, x)
    y = function(x) + scale * rng.standard_normal(n)
    return Curve(x[:, None], y, truth, scale)


def _noise_at(noise, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Evaluate the standard deviation at each ``x``."""
    if not callable(noise):
        return np.full(x.shape, float(noise))
    scale = check_array(noise(x), "noise(x)", (1,))
    if scale.shape != x.shape or (scale < 0).any():
        raise ValueError(
            f"noise(x) must give {x.shape} values >= 0, got shape {scale.shape}, minimum {scale.min()}"
        )
    return scale


def make_seasonal(
    n_samples: int = 240,
    period: float = 24.0,
    *,
    amplitude: float = 1.0,
    slope: float = 0.005,
    noise: float = 0.2,
    random_state: RandomState = None,
) -> TimeSeries:
    """Make a time series of a line, a seasonal pattern and noise, at the times 0, 1, ..., n - 1.

    ``y_t = slope * t + amplitude * (sin p + sin(2 p) / 2) + noise * e_t`` with ``p = 2 pi t / period``.

    Parameters
    ----------
    n_samples : int, >= 1
    period : float, > 0
        In time steps; need not be an integer.
    amplitude, slope : float
    noise : float, >= 0
        Standard deviation.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    TimeSeries
        Named tuple ``(time, values, trend, seasonal, truth)``: four arrays (n,) float64, and a callable from
        any times (m,), also later ones, to the means (m,).

    Raises
    ------
    ValueError, TypeError
        If a number is out of range.

    Examples
    --------
    >>> from locbook.datasets import make_seasonal
    >>> series = make_seasonal(48, period=12, noise=0, random_state=0)
    >>> bool(abs(series.values - series.trend - series.seasonal).max() < 1e-12)
    True
    >>> series.truth([48.0, 49.0]).shape  # the future
    (2,)
    """
    n = check_integer(n_samples, "n_samples")
    period = check_real(period, "period", 0, open_low=True)
    amplitude, slope = check_real(amplitude, "amplitude"), check_real(slope, "slope")
    noise = check_real(noise, "noise", 0)
    rng = check_random_state(random_state)

    def season(time):
        phase = 2 * np.pi * time / period
        return amplitude * (np.sin(phase) + np.sin(2 * phase) / 2)

    def truth(points: ArrayLike) -> NDArray[np.float64]:
        points = check_array(points, "points", (1,))
        return slope * points + season(points)

    time = np.arange(n, dtype=np.float64)
    trend, seasonal = slope * time, season(time)
    return TimeSeries(time, trend + seasonal + noise * rng.standard_normal(n), trend, seasonal, truth)
